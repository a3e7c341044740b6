// topk by partial selection: the order of torch (NaN is the largest, equal elements keep their order) for
// rows long enough that blocks are left out, in few kernels, with gradients at the places chosen.

import { createSchedule, type DTypeName, Tensor } from "gradloom";
import "gradloom/all";
import { describe, expect, test } from "vitest";

const kernels = (...ts: readonly Tensor[]): number =>
  createSchedule(ts.map((t) => t.lazydata)).filter((si) => si.ast[0]?.op === "STORE").length;

/** Places of the first `k` in order: NaN above all, both zeros equal, earlier places first. */
function expected(row: readonly number[], k: number, largest: boolean): number[] {
  const above = (a: number, b: number): number =>
    Number.isNaN(a) ? (Number.isNaN(b) ? 0 : 1) : Number.isNaN(b) ? -1 : a === b ? 0 : a > b ? 1 : -1;
  const order = [...row.keys()].sort((i, j) => {
    const by = above(row[i] as number, row[j] as number);
    return (largest ? -by : by) || i - j;
  });
  return order.slice(0, k);
}

/** Few different values, some of them special: many ties. */
function rowOf(n: number, seed: number, special: readonly number[]): number[] {
  let state = seed;
  return Array.from({ length: n }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const r = state >>> 8;
    return r % 97 === 0 && special.length > 0 ? (special[r % special.length] as number) : (r % 4001) - 2000;
  });
}

describe("values and places", () => {
  const cases: [DTypeName, readonly number[]][] = [
    ["float32", [NaN, -0, 0, Infinity, -Infinity]],
    ["float64", [NaN, -0, 0, Infinity, -Infinity]],
    ["int32", [2 ** 31 - 1, -(2 ** 31)]],
    ["uint8", []],
  ];
  for (const [dtype, special] of cases) {
    for (const [rows, n, k, largest] of [
      [1, 5003, 7, true],
      [3, 2000, 20, false],
      [2, 1500, 1, true],
    ] as const) {
      test(`${dtype}: ${k} of ${rows} x ${n}, ${largest ? "largest" : "smallest"}`, async () => {
        const data = Array.from({ length: rows }, (_, i) =>
          rowOf(n, i + 1, special).map((v) => (dtype === "uint8" ? v & 255 : v)),
        );
        const x = await new Tensor(data, { dtype }).realize();
        const [values, places] = x.topk(k, -1, largest);
        const want = data.map((row) => expected(row, k, largest));
        expect(await places.tolist()).toEqual(want);
        const found = (await values.tolist()) as number[][];
        found.forEach((row, i) => {
          const own = (want[i] as number[]).map((p) => data[i]?.[p]);
          expect(row.map((v) => v + 0)).toEqual(own.map((v) => (v as number) + 0));
        });
      });
    }
  }
  test("64-bit integers beyond the exact floats", async () => {
    const data = Array.from({ length: 3000 }, (_, i) => 2n ** 62n + BigInt((i * 7919) % 3000));
    data[1234] = 2n ** 63n - 1n;
    const [values, places] = new Tensor(data, { dtype: "int64" }).topk(3);
    expect(await values.tolist()).toEqual([2n ** 63n - 1n, 2n ** 62n + 2999n, 2n ** 62n + 2998n]);
    expect((await places.tolist()) as number[]).toContain(1234);
  });
  test("along another dim, and with a row that is all NaN", async () => {
    const data = Array.from({ length: 2100 }, (_, i) => [i % 700, NaN]);
    const [values, places] = (await new Tensor(data).realize()).topk(3, 0);
    expect(await places.tolist()).toEqual([
      [699, 0],
      [1399, 1],
      [2099, 2],
    ]);
    expect(await values.tolist()).toEqual([
      [699, NaN],
      [699, NaN],
      [699, NaN],
    ]);
  });
});

test("the gradient goes to the places chosen", async () => {
  const data = rowOf(3000, 5, []);
  const x = new Tensor(data, { dtype: "float32", requiresGrad: true });
  x.topk(4)[0]
    .mul(new Tensor([1, 2, 3, 4]))
    .sum()
    .backward();
  const want = new Float32Array(3000);
  expected(data, 4, true).forEach((p, i) => {
    want[p] = i + 1;
  });
  expect(await (x.grad as Tensor).data()).toEqual(want);
});

describe("few kernels, whatever the row", () => {
  const x = Tensor.rand(32_000).realizeSync();
  test("topk", () => {
    expect(kernels(...x.topk(50))).toBeLessThan(20);
    expect(kernels(...x.topk(1))).toBeLessThan(12);
    expect(kernels(...x.topk(500))).toBeLessThan(30);
  });
  test("multinomial, with and without replacement", () => {
    expect(kernels(x.multinomial(1))).toBeLessThan(16);
    expect(kernels(x.multinomial(8))).toBeLessThan(20);
    expect(kernels(x.multinomial(8, true))).toBeLessThan(16);
  });
});

test("multinomial never draws a weight of 0, nor one twice", async () => {
  Tensor.manualSeed(7);
  const weights = new Tensor(Array.from({ length: 4000 }, (_, i) => (i % 40 === 3 ? 1 + i : 0)));
  const drawn = (await weights.multinomial(60).tolist()) as number[];
  expect(new Set(drawn).size).toBe(60);
  expect(drawn.every((i) => i % 40 === 3)).toBe(true);
});
