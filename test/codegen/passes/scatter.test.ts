// Sums whose terms choose their result: values of random scatters with repeated indices against plain loops,
// what must not spread to other results, and the loops of the kernels.

import { createSchedule, Device, type DTypeName, Tensor, TinyJit, toKernel } from "gradloom";
import "gradloom/all";
import { describe, expect, test } from "vitest";
import { JSRenderer } from "../../../src/devices/js.ts";
import { whyClosed } from "../../device/harness.ts";

/** Numbers below n. */
function random(seed: number): (n: number) => number {
  let state = seed;
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor(((state >>> 8) / 2 ** 24) * n);
  };
}
const size = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);
const list = (n: number, f: (i: number) => number): number[] => Array.from({ length: n }, (_, i) => f(i));

type Combine = "add" | "amax" | "amin" | "prod" | "set";
const COMBINE: Record<Combine, (a: number, b: number) => number> = {
  add: (a, b) => a + b,
  amax: Math.max,
  amin: Math.min,
  prod: (a, b) => a * b,
  set: (_, b) => b,
};
interface Case {
  readonly shape: readonly number[];
  readonly dim: number;
  /** the shape of the index, all of whose elements have a source */
  readonly places: readonly number[];
  readonly self: readonly number[];
  readonly index: readonly number[];
  readonly source: readonly number[];
}
/** Along `dim` an index may be longer or shorter, along the other dims it is as large as the tensor. */
function caseOf(pick: (n: number) => number, few: readonly number[]): Case {
  const dims = 1 + pick(3);
  const dim = pick(dims);
  const shape = list(dims, (d) => (d === dim ? 60 + pick(80) : 1 + pick(dims === 1 ? 1 : 9)));
  const places = shape.with(dim, 300 + pick(300));
  const value = (): number => few[pick(few.length)] as number;
  return {
    shape,
    dim,
    places,
    self: list(size(shape), value),
    index: list(size(places), () => pick(shape[dim] as number)),
    source: list(size(places), value),
  };
}
/** The place in the tensor that each element of the index names. */
function targets({ shape, dim, places, index }: Case): number[] {
  const inner = size(shape.slice(dim + 1));
  const [n, k] = [shape[dim] as number, places[dim] as number];
  return index.map((at, i) => (Math.floor(i / (inner * k)) * n + at) * inner + (i % inner));
}
function scattered(c: Case, how: Combine, start: readonly number[] = c.self): number[] {
  const out = [...start];
  const at = targets(c);
  at.forEach((to, i) => {
    out[to] = COMBINE[how](out[to] as number, c.source[i] as number);
  });
  return out;
}

const TYPES: readonly [DTypeName, readonly number[]][] = [
  ["float32", [-2, -1, 0, 1, 2, 0.5]],
  ["float32", [-2, -1, 1, 2, Infinity, 3]],
  ["float64", [-2, -1, 0, 1, 2, 0.25]],
  ["float16", [-2, -1, 0, 1, 0.5]],
  ["int32", [-3, -1, 0, 1, 5]],
  ["int64", [-3, -1, 0, 1, 5]],
  ["uint8", [0, 1, 2]],
];
const numbers = async (t: Tensor): Promise<number[]> => [...(await t.data())].map(Number);
const wraps = (dtype: DTypeName, x: number): number => (dtype === "uint8" ? x & 255 : x);
/** The devices whose kernels are loops, and how many random cases each gets: CLANG compiles slowly. */
const DEVICES = [["JS", 14], ["WASM", 28], ["CLANG", 2]] as const; // biome-ignore format: pairs
function loopTest(title: string, body: (device: string, cases: number) => Promise<void>): void {
  test.for(DEVICES)(`%s: ${title}`, async ([device, cases], { skip }) => {
    const reason = await whyClosed(device);
    skip(reason !== undefined, reason);
    await body(device, cases);
  });
}
const tensor = async (
  values: readonly number[],
  shape: readonly number[],
  dtype: DTypeName,
  device: string,
): Promise<Tensor> => await new Tensor(values as number[], { dtype, device }).reshape(shape).realize();
/** What the kernels of loops are made of, in the order in which they run. */
const kernelsOf = (...ts: readonly Tensor[]): string[] =>
  createSchedule(ts.map((t) => t.contiguous().lazydata))
    .filter((si) => si.ast[0]?.op === "STORE")
    .map((si) => [...toKernel(si.ast, [], JSRenderer).uops].map((u) => u.op).join(" "));

describe("values", () => {
  loopTest("of random scatters", async (device, cases) => {
    for (let seed = 1; seed <= cases; seed++) {
      const pick = random(seed * 977);
      const [dtype, few] = TYPES[seed % TYPES.length] as (typeof TYPES)[number];
      if (Device.get(device).renderer?.support(new Tensor([0], { dtype }).dtype) === "none") continue;
      const c = caseOf(pick, few);
      const self = await tensor(c.self, c.shape, dtype, device);
      const index = await tensor(c.index, c.places, "int32", device);
      const source = await tensor(c.source, c.places, dtype, device);
      const results: [string, Tensor, number[]][] = [
        ["scatterAdd", self.scatterAdd(c.dim, index, source), scattered(c, "add")],
        ["scatter", self.scatter(c.dim, index, source), scattered(c, "set")],
        ["amax", self.scatterReduce(c.dim, index, source, "amax"), scattered(c, "amax")],
        ["amin", self.scatterReduce(c.dim, index, source, "amin"), scattered(c, "amin")],
      ];
      for (const [name, got, wanted] of results)
        expect(await numbers(got), `${seed}: ${name} ${dtype} [${c.shape}] dim ${c.dim}`).toEqual(
          wanted.map((x) => wraps(dtype, x)),
        );
    }
  });
  loopTest("of whole rows, several indices and flags, eager and replayed", async (device) => {
    const pick = random(5);
    const [rows, width, n] = [90, 12, 400];
    const x = await tensor(
      list(rows * width, (i) => i % 7),
      [rows, width],
      "float32",
      device,
    );
    const y = await tensor(
      list(n * width, (i) => (i % 5) - 2),
      [n, width],
      "float32",
      device,
    );
    const spots = list(n, () => pick(width));
    const column = await tensor(spots, [n], "int32", device);
    const step = new TinyJit((index: Tensor) => ({
      rows: x.indexAdd(0, index, y).contiguous(),
      places: x.indexPut([index, column], y.narrow(1, 0, 1).reshape(n), { accumulate: true }).contiguous(),
      any: Tensor.zeros([rows], { dtype: "bool", device })
        .scatterReduce(0, index, column.gt(5), "amax")
        .contiguous(),
    }));
    for (let call = 0; call < 4; call++) {
      // -1 counts from the end, and computed indices beyond it name nothing
      const at = list(n, () => pick(rows + 20) - 10);
      const index = await tensor(at, [n], "int32", device);
      const got = await step((await index.add(0).realize()).detach());
      const [sums, cells] = [list(rows * width, (i) => i % 7), list(rows * width, (i) => i % 7)];
      const any = list(rows, () => 0);
      at.forEach((given, i) => {
        const row = given < 0 ? given + rows : given;
        if (given >= 0 && given < rows && (spots[i] as number) > 5) any[given] = 1;
        if (row >= rows) return;
        for (let j = 0; j < width; j++) sums[row * width + j]! += ((i * width + j) % 5) - 2;
        cells[row * width + (spots[i] as number)]! += ((i * width) % 5) - 2;
      });
      expect(await numbers(got.rows)).toEqual(sums);
      expect(await numbers(got.places)).toEqual(cells);
      expect(await numbers(got.any)).toEqual(any);
    }
  });
  loopTest("stay in their results where they are NaN or infinite", async (device) => {
    const index = await tensor(
      list(500, (i) => i % 100),
      [500],
      "int32",
      device,
    );
    const source = await tensor(
      list(500, (i) => (i === 7 ? NaN : i === 8 ? Infinity : 1)),
      [500],
      "float32",
      device,
    );
    const zeros = Tensor.zeros([100], { device });
    for (const out of [zeros.scatterAdd(0, index, source), zeros.scatterReduce(0, index, source, "amax")]) {
      const values = await numbers(out);
      expect(values[7]).toBe(NaN);
      expect(values[8]).toBe(Infinity);
      expect(values.filter((v) => !Number.isFinite(v)).length).toBe(2);
    }
  });
  loopTest("of a table that is updated in place", async (device) => {
    const pick = random(9);
    const [rows, width, n] = [70, 8, 300];
    const at = list(n, () => pick(rows));
    const table = (await tensor(list(rows * width, () => 1), [rows, width], "float32", device)).contiguous(); // biome-ignore format: one line
    const index = await tensor(at, [n], "int32", device);
    table.requiresGrad = true;
    const wanted = list(rows * width, () => 1);
    for (let step = 0; step < 3; step++) {
      table.grad = undefined;
      index.embedding(table).sum().backward();
      const grad = table.grad as unknown as Tensor;
      Tensor.noGrad(() => table.assign(table.sub(grad.mul(0.5))));
      await table.realize();
      for (const row of at) for (let j = 0; j < width; j++) wanted[row * width + j]! -= 0.5;
      // what is added may be the table itself
      const twice = table.detach();
      const sum = twice.indexAdd(0, index, twice.narrow(0, 0, 1).expand([n, width]));
      await sum.realize();
    }
    expect(await numbers(table)).toEqual(wanted);
  });
});

describe("gradients", () => {
  test.for(["JS", "WASM"])("%s: of gathers, and of these", async (device) => {
    const pick = random(3);
    const [rows, width, n] = [80, 6, 300];
    const at = list(n, () => pick(rows));
    const index = await tensor(at, [n], "int32", device);
    const x = await tensor(list(rows * width, (i) => (i % 9) - 4), [rows, width], "float32", device); // biome-ignore format: one line
    x.requiresGrad = true;
    // sum of cubes of what is gathered: first 3x² and then 6x for each time a row is named
    const times = list(rows, (row) => at.filter((a) => a === row).length);
    const picked = x.indexSelect(0, index);
    picked.mul(picked).mul(picked).sum().backward(undefined, { createGraph: true });
    const first = x.grad as Tensor;
    const value = (i: number): number => (i % 9) - 4;
    const count = (i: number): number => times[Math.floor(i / width)] as number;
    const close = (wanted: (i: number) => number) => list(rows * width, (i) => wanted(i) + 0);
    expect(await numbers(first.add(0))).toEqual(close((i) => count(i) * 3 * value(i) ** 2));
    x.grad = undefined;
    first.sum().backward();
    expect(await numbers((x.grad as unknown as Tensor).add(0))).toEqual(
      close((i) => count(i) * 6 * value(i)),
    );
  });
});

describe("kernels", () => {
  const index = new Tensor(list(1000, (i) => i % 64)).realizeSync();
  const x = Tensor.ones([1000, 4]).contiguous().realizeSync();
  const to = Tensor.ones([64, 4]).contiguous().realizeSync();
  const LOOPS = /^((?!LOOP).)*LOOP .*STORE ENDLOOP .*LOOP .*IF .*STORE ENDLOOP ENDIF ENDLOOP$/;
  test("go through the terms once, and start from what they are added to", () => {
    const [kernel, ...others] = kernelsOf(to.indexAdd(0, index, x));
    expect(others).toEqual([]);
    expect(kernel).toMatch(LOOPS);
  });
  test("have no other result, and nothing follows in them", () => {
    const sums = Tensor.zeros([64, 4]).indexAdd(0, index, x);
    const kernels = kernelsOf(sums.add(1).exp(), sums.sum(1, true).expand([64, 4]).mul(sums));
    expect(kernels.filter((k) => k.includes(" IF ")).length).toBe(1);
    expect(kernels[0]).toMatch(LOOPS);
  });
  test("are plain sums where there are few terms, few results or little to do", () => {
    for (const [results, terms] of [
      [4000, 1],
      [2, 4000],
      [20, 30],
    ] as const) {
      // biome-ignore format: pairs
      const few = new Tensor(list(terms, () => 1)).realizeSync();
      const ones = Tensor.ones([terms, 4]).contiguous().realizeSync();
      const [kernel] = kernelsOf(Tensor.zeros([results, 4]).indexAdd(0, few, ones));
      expect(kernel, `${terms} to ${results}`).not.toContain(" IF ");
    }
  });
});
