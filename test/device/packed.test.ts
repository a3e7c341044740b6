// Packed types (int4, uint4, float4e2m1) on every device that is open: making, casting, computing, moving,
// storing and reading back, against plain arithmetic on arrays of numbers.

import { type DType, DTypeError, dtypes, nn, ShapeError, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { WGSLRenderer } from "../../src/render/webgpu.ts";
import { Device } from "../../src/runtime/registry.ts";
import { lastItem, lowered, rendererOf, runKernel } from "../codegen/kernels.ts";
import { Random } from "../shape/random.ts";
import { deviceTest, INTERPRETED, read, typesOn } from "./harness.ts";

const { int4, uint4, float4e2m1, int8, uint8, int32, int64, float16, float32, float64, bool } = dtypes;
const PACKED = [int4, uint4, float4e2m1] as const;

/** What the 4 bits of an element mean, by the definition of the formats. */
function meaning(d: DType, bits: number): number {
  if (d === uint4) return bits;
  if (d === int4) return bits < 8 ? bits : bits - 16;
  const magnitude = [0, 0.5, 1, 1.5, 2, 3, 4, 6][bits % 8] as number;
  return bits < 8 ? magnitude : -magnitude;
}
const ALL = Array.from({ length: 16 }, (_, bits) => bits);

/**
 * The value that a number becomes: integers drop their fraction and wrap, floats round to the nearest, ties
 * to even bits.
 */
function nearest(d: DType, x: number): number {
  if (d.isInt) {
    const whole = Number.isNaN(x) ? 0 : Math.trunc(Math.min(Math.max(x, -(2 ** 31)), 2 ** 31 - 1));
    return meaning(d, ((whole % 16) + 16) % 16);
  }
  if (Number.isNaN(x)) return 6;
  const size = Math.min(Math.abs(x), 100);
  const best = ALL.slice(0, 8).reduce((a, b) => {
    const [da, db] = [Math.abs(meaning(d, a) - size), Math.abs(meaning(d, b) - size)];
    return db < da || (db === da && b % 2 === 0) ? b : a;
  });
  return meaning(d, best) * (x < 0 || Object.is(x, -0) ? -1 : 1);
}
/** Zeros of either sign are one here: -0 + 0 is not what is tested. */
const plain = (xs: readonly unknown[]): number[] => xs.map((x) => Number(x) + 0);

const some = (r: Random, d: DType, n: number): number[] =>
  Array.from({ length: n }, () => meaning(d, r.int(0, 15)));
const tensorOf = (device: string, d: DType, values: readonly number[], shape?: readonly number[]): Tensor => {
  const t = new Tensor([...values], { dtype: d, device });
  return shape === undefined ? t : t.reshape([...shape]);
};

describe.each(PACKED.map((d) => [d.name, d] as const))("%s", (_, d) => {
  test("two elements share a byte, the first at its low end", async () => {
    const t = new Tensor(
      ALL.map((b) => meaning(d, b)),
      { dtype: d },
    );
    expect(d.bytesFor(16)).toBe(8);
    expect(d.bytesFor(7)).toBe(4);
    expect([...(await t.bitcast(uint8).data())]).toEqual(
      Array.from({ length: 8 }, (_, i) => 2 * i + 16 * (2 * i + 1)),
    );
  });
  test("host values wrap or round once", async () => {
    const xs = [0.3, -7.5, 9, 1.25, 100, -100, 2.5];
    // an integer type takes whole numbers only
    const given = d.isInt ? xs.map(Math.trunc).filter((x) => x === nearest(d, x)) : xs;
    expect(plain((await new Tensor(given, { dtype: d }).tolist()) as number[])).toEqual(
      plain(given.map((x) => nearest(d, x))),
    );
  });
  deviceTest("every pattern, from bytes and back", async (device) => {
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
    const t = new Tensor(bytes, { device }).bitcast(d);
    expect(t.shape).toEqual([512]);
    const want = [...bytes].flatMap((b) => [meaning(d, b & 15), meaning(d, b >> 4)]);
    expect(await read(t.cast(float32))).toEqual(want);
    expect(await read(t)).toEqual(want);
    expect(await read(t.bitcast(uint8))).toEqual([...bytes]);
    const words = new Uint32Array(bytes.buffer);
    expect(await read(new Tensor(words, { device }).bitcast(d).contiguous().bitcast("uint32"))).toEqual([
      ...words,
    ]);
  });
  deviceTest("casts from and to other types, odd sizes too", async (device) => {
    const r = new Random(3);
    const floats = Array.from({ length: 301 }, () =>
      Math.fround((r.int(-1000, 1000) / 997) * 2 ** r.int(-3, 9)),
    );
    const edges = [
      0,
      -0,
      0.25,
      0.75,
      1.25,
      1.75,
      2.5,
      3.5,
      5,
      -5,
      5.0001,
      7,
      1e9,
      -1e9,
      Infinity,
      -Infinity,
      NaN,
    ];
    const values = [...edges, ...floats];
    const want = values.map((x) => nearest(d, x));
    const cast = tensorOf(device, float32, values).cast(d);
    expect(plain(await read(cast))).toEqual(plain(want));
    expect(plain(await read(cast.contiguous().cast(float32)))).toEqual(plain(want));
    const whole = Array.from({ length: 77 }, () => r.int(-128, 127));
    for (const from of [int8, int32, int64]) {
      const t = tensorOf(device, from, whole).cast(d).contiguous();
      expect(plain(await read(t.cast(float32)))).toEqual(plain(whole.map((x) => nearest(d, x))));
    }
    const own = some(r, d, 33);
    for (const to of typesOn(device, [int8, int32, int64, float16, float64, bool])) {
      const got = plain(await read(tensorOf(device, d, own).cast(to)));
      const as = (x: number): number => (to === bool ? Number(x !== 0) : to.isInt ? Math.trunc(x) : x);
      expect(got, to.name).toEqual(plain(own.map(as)));
    }
  });
  deviceTest("elementwise ops wrap or round after each", async (device) => {
    const r = new Random(5);
    const [xs, ys] = [some(r, d, 63), some(r, d, 63)];
    const [x, y] = [tensorOf(device, d, xs), tensorOf(device, d, ys)];
    const each = (f: (a: number, b: number) => number): number[] =>
      plain(xs.map((a, i) => nearest(d, f(a, ys[i] as number))));
    expect(plain(await read(x.add(y)))).toEqual(each((a, b) => a + b));
    expect(plain(await read(x.sub(y)))).toEqual(each((a, b) => a - b));
    expect(plain(await read(x.mul(y).add(x)))).toEqual(each((a, b) => nearest(d, a * b) + a));
    expect(plain(await read(x.maximum(y)))).toEqual(each(Math.max));
    expect(plain(await read(x.lt(y).where(x, y)))).toEqual(each(Math.min));
    expect((await read(x.eq(y))).map(Boolean)).toEqual(xs.map((a, i) => a === ys[i]));
    expect(plain(await read(x.neg()))).toEqual(each((a) => -a));
    if (d.isFloat) return;
    expect(plain(await read(x.bitwiseAnd(y)))).toEqual(each((a, b) => a & b));
    expect(plain(await read(x.bitwiseXor(y)))).toEqual(each((a, b) => a ^ b));
    expect(plain(await read(x.lshift(1)))).toEqual(each((a) => a << 1));
    expect(plain(await read(x.rshift(2)))).toEqual(each((a) => a >> 2));
  });
  deviceTest("reductions and products of matrices", async (device) => {
    const r = new Random(7);
    const [xs, ys] = [some(r, d, 5 * 12), some(r, d, 12 * 3)];
    const [x, y] = [tensorOf(device, d, xs, [5, 12]), tensorOf(device, d, ys, [12, 3])];
    const row = (i: number): number[] => xs.slice(12 * i, 12 * i + 12);
    const sums = Array.from({ length: 5 }, (_, i) => row(i).reduce((a, b) => a + b));
    expect(plain(await read(x.cast(float32).sum(1)))).toEqual(sums);
    // a sum of small integers is int32, one of small floats rounds at its end
    expect(plain(await read(x.sum(1)))).toEqual(plain(d.isInt ? sums : sums.map((s) => nearest(d, s))));
    expect(await read(x.max(1))).toEqual(Array.from({ length: 5 }, (_, i) => Math.max(...row(i))));
    const product = Array.from({ length: 15 }, (_, k) => {
      const [i, j] = [Math.floor(k / 3), k % 3];
      return row(i).reduce((s, a, n) => s + a * (ys[3 * n + j] as number), 0);
    });
    expect(plain(await read(x.cast(float32).dot(y.cast(float32))))).toEqual(plain(product));
    expect(plain(await read(x.cast(float32).dot(y.cast(float32)).cast(d)))).toEqual(
      plain(product.map((v) => nearest(d, v))),
    );
  });
  deviceTest("views start at any element, and are stored in words", async (device) => {
    const r = new Random(11);
    const xs = some(r, d, 7 * 9);
    const x = tensorOf(device, d, xs, [7, 9]);
    const at = (i: number, j: number): number => xs[9 * i + j] as number;
    const grid = (rows: number, columns: number, f: (i: number, j: number) => number): number[] =>
      Array.from({ length: rows * columns }, (_, k) => f(Math.floor(k / columns), k % columns));
    const part = x.shrink([
      [1, 6],
      [3, 8],
    ]);
    const wanted = grid(5, 5, (i, j) => at(i + 1, j + 3));
    expect(await read(part)).toEqual(wanted);
    expect(await read(part.contiguous().cast(float32))).toEqual(wanted);
    expect(await read(x.T.contiguous())).toEqual(grid(9, 7, (i, j) => at(j, i)));
    expect(await read(x.flip(1).contiguous())).toEqual(grid(7, 9, (i, j) => at(i, 8 - j)));
    const padded = part.pad([
      [0, 1],
      [2, 0],
    ]);
    expect(plain(await read(padded.contiguous()))).toEqual(
      plain(grid(6, 7, (i, j) => (i < 5 && j >= 2 ? at(i + 1, j + 1) : 0))),
    );
    expect(
      await read(
        Tensor.cat([
          x,
          part
            .reshape([-1])
            .shrink([[0, 9]])
            .reshape([1, 9]),
        ]),
      ),
    ).toEqual([...xs, ...wanted.slice(0, 9)]);
    expect(await read(x.reshape([7, 9, 1]).expand([7, 9, 4]).contiguous())).toEqual(
      xs.flatMap((v) => [v, v, v, v]),
    );
  });
  deviceTest("many elements, on all threads, and an assign in place", async (device) => {
    const n = INTERPRETED.includes(device) ? 1001 : 100_001;
    const values = Array.from({ length: n }, (_, i) => meaning(d, (i * 7 + (i >> 4)) & 15));
    const t = tensorOf(device, d, values);
    await t.realize();
    await t.assign(t.add(1)).realize();
    const got = await read(t.add(1));
    const want = values.map((v) => nearest(d, nearest(d, v + 1) + 1));
    expect(got.findIndex((v, i) => Number(v) !== want[i])).toBe(-1);
  });
  test("words of 32 bits where the target has no bytes", async () => {
    await Device.open("JS");
    const wordTarget = {
      ...rendererOf("JS"),
      support: (t: DType) => (t.bits < 32 && t.kind !== "bool" ? "none" : "native") as "none" | "native",
    };
    const r = new Random(13);
    const xs = some(r, d, 48);
    const item = await lastItem(tensorOf("JS", d, xs, [3, 16]).T.add(1).contiguous());
    const kernel = lowered(item, [], wordTarget);
    const want = Array.from({ length: 48 }, (_, k) =>
      nearest(d, (xs[16 * (k % 3) + Math.floor(k / 3)] as number) + 1),
    );
    expect(plain(await runKernel(item, kernel))).toEqual(plain(want));
    const { code } = WGSLRenderer.render("k", lowered(item, [], WGSLRenderer).uops);
    expect(code).toContain("array<u32>");
  });
  test("files without such a type refuse it", async () => {
    const t = new Tensor([1, 2], { dtype: d });
    await expect(nn.safeSave({ t })).rejects.toThrow(`t is ${d.name}, which the format does not have`);
    await expect(nn.npySave(t)).rejects.toThrow(`NumPy has no ${d.name}`);
  });
});

test("promotion: the wider type, and one that holds both", async () => {
  const one = (dtype: DType) => new Tensor([1], { dtype });
  expect(one(int4).add(one(uint4)).dtype).toBe(int8);
  expect(one(int4).add(one(int8)).dtype).toBe(int8);
  expect(one(uint4).add(one(uint8)).dtype).toBe(uint8);
  expect(one(int4).add(one(float4e2m1)).dtype).toBe(float4e2m1);
  expect(one(float4e2m1).add(one(float16)).dtype).toBe(float16);
  expect(one(int4).sum().dtype).toBe(int32);
  expect(one(int4).exp().dtype).toBe(float32);
});
test("bytes and elements that do not match are refused", () => {
  expect(() => new Tensor([1, 2, 3], { dtype: int4 }).bitcast(uint8)).toThrow(ShapeError);
  expect(() => new Tensor([1]).bitcast(float64)).toThrow(DTypeError);
  expect(() => new Tensor([1], { dtype: int64 }).bitcast(int4)).toThrow(/int64 has 64 bits, int4 has 4/);
});
