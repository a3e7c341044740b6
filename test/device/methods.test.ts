// The elementwise methods of Tensor as a user calls them, on every device: what they make of NaN, infinities,
// -0 and the ends of the integers, plain numbers as operands, and the type that a
// combination has (torch's tables).

import { type DType, DTypeError, type DTypeName, dtypes, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import type { Value } from "../../src/dtype.ts";
import { deviceTest, expectValues, has, inRange, read, rows, tensor } from "./harness.ts";

const { bool, int8, int16, int32, int64, uint8, float16, float32, float64 } = dtypes;
const SPECIAL = [NaN, Infinity, -Infinity, 0, -0, 1, -1, 2.5, -2.5, 0.5, -0.5, 1e-40, 3e38];

/** One function of each special value (or pair of them) against plain JavaScript. */
type Case = readonly [string, (a: Tensor, b: Tensor) => Tensor, (a: number, b: number) => number | boolean];

async function check(device: string, cases: readonly Case[], ulps = 0, d: DType = float32): Promise<void> {
  const special = inRange(SPECIAL);
  const pairs = special.flatMap((a) => special.map((b) => [Math.fround(a), Math.fround(b)] as const));
  const columns = [0, 1].map((k) => ({ dtype: float32, values: pairs.map((p) => p[k] as number) }));
  const got = await rows(
    device,
    columns,
    cases.map(([, f]) => f),
  );
  cases.forEach(([name, , plain], k) => {
    const want = pairs.map(([a, b]) => {
      const x = Number(plain(a, b));
      return ulps > 0 ? x : d === float32 ? Math.fround(x) : x;
    });
    const what = (i: number) => `${name}(${pairs[i]?.map((x) => (Object.is(x, -0) ? "-0" : x))})`;
    expectValues(d, got[k] as Value[], want, what, ulps > 0 ? { ulps } : {});
  });
}

describe("floats", () => {
  deviceTest("comparisons: NaN is not even itself", (device) =>
    check(
      device,
      [
        ["lt", (a, b) => a.lt(b), (a, b) => a < b],
        ["gt", (a, b) => a.gt(b), (a, b) => a > b],
        ["le", (a, b) => a.le(b), (a, b) => a <= b],
        ["ge", (a, b) => a.ge(b), (a, b) => a >= b],
        ["eq", (a, b) => a.eq(b), (a, b) => a === b],
        ["ne", (a, b) => a.ne(b), (a, b) => a !== b],
        ["ne itself", (a) => a.ne(a), (a) => Number.isNaN(a)],
        ["eq itself", (a) => a.eq(a), (a) => !Number.isNaN(a)],
        ["logicalNot", (a) => a.logicalNot(), (a) => a === 0],
      ],
      0,
      bool,
    ),
  );
  deviceTest("arithmetic keeps signs, NaN and infinities", (device) =>
    check(device, [
      ["add", (a, b) => a.add(b), (a, b) => a + b],
      ["sub", (a, b) => a.sub(b), (a, b) => a - b],
      ["mul", (a, b) => a.mul(b), (a, b) => a * b],
      ["div", (a, b) => a.div(b), (a, b) => a / b],
      ["fmod", (a, b) => a.fmod(b), (a, b) => a % b],
      ["neg", (a) => a.neg(), (a) => -a],
      ["mul 1", (a) => a.mul(1), (a) => a],
      ["mul -1", (a) => a.mul(-1), (a) => -a],
      ["mul 0", (a) => a.mul(0), (a) => a * 0],
      ["add 0", (a) => a.add(0), (a) => a + 0],
      ["sub 0", (a) => a.sub(0), (a) => a - 0],
      ["add -0", (a) => a.add(-0), (a) => a],
      ["sub itself", (a) => a.sub(a), (a) => a - a],
      ["twice neg", (a) => a.neg().neg(), (a) => a],
      ["div 1", (a) => a.div(1), (a) => a],
      ["square", (a) => a.square(), (a) => a * a],
      ["abs", (a) => a.abs(), Math.abs],
      ["trunc", (a) => a.trunc(), Math.trunc],
      ["sqrt", (a) => a.sqrt(), Math.sqrt],
      ["reciprocal", (a) => a.reciprocal(), (a) => 1 / a],
      ["where", (a, b) => a.lt(b).where(a, b), (a, b) => (a < b ? a : b)],
      ["where a number", (a, b) => a.lt(b).where(-0, a), (a, b) => (a < b ? -0 : a)],
    ]),
  );
  // which of two zeros is larger is not specified, so they do not meet here: + 0 makes them one
  deviceTest("maximum, minimum, relu, floor and ceil", (device) =>
    check(device, [
      ["maximum", (a, b) => a.maximum(b).add(0), (a, b) => Math.max(a, b) + 0],
      ["minimum", (a, b) => a.minimum(b).add(0), (a, b) => Math.min(a, b) + 0],
      ["maximum of a number", (a) => a.maximum(1), (a) => Math.max(a, 1)],
      ["minimum of a number", (a) => a.minimum(-1), (a) => Math.min(a, -1)],
      ["relu", (a) => a.relu().add(0), (a) => Math.max(a, 0) + 0],
      ["floor", (a) => a.floor(), Math.floor],
      ["ceil", (a) => a.ceil().add(0), (a) => Math.ceil(a) + 0],
    ]),
  );
  deviceTest("functions", async (device) => {
    await check(
      device,
      [
        ["exp2", (a) => a.exp2(), (a) => 2 ** a],
        ["log2", (a) => a.log2(), Math.log2],
        ["sin", (a) => (a.lt(1e30).where(a, 0) as Tensor).sin(), (a) => Math.sin(a < 1e30 ? a : 0)],
      ],
      2,
    );
    // made of the ones above: the rounding of an argument or a factor comes on top
    await check(
      device,
      [
        ["exp", (a) => a.maximum(-80).minimum(80).exp(), (a) => Math.exp(clamp(a, 80))],
        ["log", (a) => a.log(), Math.log],
        ["rsqrt", (a) => a.rsqrt(), (a) => 1 / Math.sqrt(a)],
        ["sigmoid", (a) => a.maximum(-9).minimum(9).sigmoid(), (a) => 1 / (1 + Math.exp(-clamp(a, 9)))],
      ],
      4,
    );
  });
  const clamp = (x: number, by: number): number => (Number.isNaN(x) ? x : Math.min(by, Math.max(-by, x)));

  deviceTest("cos, also of large arguments", async (device) => {
    const xs = [...Array.from({ length: 41 }, (_, i) => (i - 20) * 0.5), 100, 1e4, -12345, 1e6];
    const got = await read(tensor(device, float32, xs).cos());
    xs.forEach((x, i) => void expect(Math.abs(Number(got[i]) - Math.cos(x)), `cos(${x})`).toBeLessThan(3e-7));
  });
  deviceTest("-0 survives copies, views and constants", async (device) => {
    const t = tensor(device, float32, [-0, 0, -0, 5]);
    expectValues(float32, await read(t), [-0, 0, -0, 5], "a copy");
    expectValues(float32, await read(t.flip(0).contiguous()), [5, -0, 0, -0], "a view");
    expectValues(float32, await read(Tensor.full([2], -0, { device })), [-0, -0], "a constant");
    expectValues(float32, await read(new Tensor([-0, 1], { device })), [-0, 1], "an array");
    if (has(device, float64))
      expectValues(float64, await read(t.cast(float64)), [-0, 0, -0, 5], "a wider type");
    expectValues(float16, await read(t.cast(float16)), [-0, 0, -0, 5], "a narrower type");
    expectValues(
      float32,
      await read(Tensor.full([1], 0, { dtype: float32, device }).neg()),
      [-0],
      "neg of 0",
    );
  });
});

describe("integers", () => {
  deviceTest("wrap around, and divide by anything", async (device) => {
    const [lo, hi] = [-(2 ** 31), 2 ** 31 - 1];
    const got = await rows(
      device,
      [
        { dtype: int32, values: [lo, hi, lo, hi, 7, -7, 7, -7, 5] },
        { dtype: int32, values: [-1, 1, 1, -1, 0, 0, -2, 2, 33] },
      ],
      [
        (a, b) => a.add(b),
        (a, b) => a.sub(b),
        (a, b) => a.mul(b),
        (a, b) => a.idiv(b),
        (a, b) => a.fmod(b),
        (a) => a.neg(),
        (a) => a.abs(),
        (a, b) => a.lshift(b),
        (a, b) => a.rshift(b),
      ],
    );
    expect(got).toEqual(
      [
        [hi, lo, lo + 1, hi - 1, 7, -7, 5, -5, 38],
        [lo + 1, hi - 1, hi, lo, 7, -7, 9, -9, -28],
        [lo, hi, lo, lo + 1, 0, 0, -14, -14, 165],
        [lo, hi, lo, lo + 1, 0, 0, -3, -3, 0],
        [0, 0, 0, 0, 0, 0, 1, -1, 5],
        [lo, lo + 1, lo, lo + 1, -7, 7, -7, 7, -5],
        [lo, hi, lo, hi, 7, 7, 7, 7, 5],
        [0, -2, 0, lo, 7, -7, -(2 ** 30), -28, 10],
        [-1, 2 ** 30 - 1, -(2 ** 30), 0, 7, -7, 0, -2, 2],
      ].map((row) => row.map((x) => x + 0)),
    );
  });
  deviceTest("narrow types stay narrow", async (device) => {
    const t = tensor(device, int8, [127, -128, 100]);
    expect(await t.add(1).tolist()).toEqual([-128, -127, 101]);
    expect(await t.mul(t).tolist()).toEqual([1, 0, 16]);
    const u = tensor(device, uint8, [0, 255, 128]);
    expect(await u.sub(1).tolist()).toEqual([255, 254, 127]);
    expect(await u.neg().tolist()).toEqual([0, 1, 128]);
    expect(await u.minimum(200).maximum(1).tolist()).toEqual([1, 200, 128]);
    expect(
      await tensor(device, int64, [2n ** 62n, -1n])
        .mul(2)
        .tolist(),
    ).toEqual([-(2n ** 63n), -2n]);
  });
  deviceTest("shifts count modulo the width, in vectors too", async (device) => {
    for (const [dtype, least] of [
      [int8, -(2 ** 7)],
      [int16, -(2 ** 15)],
      [int32, -(2 ** 31)],
    ] as const) {
      const t = tensor(device, dtype, new Array(16).fill(1));
      expect(await t.lshift(-1).tolist(), dtype.name).toEqual(new Array(16).fill(least));
      expect(await t.lshift(dtype.bits + 1).tolist(), dtype.name).toEqual(new Array(16).fill(2));
      const low = tensor(device, dtype, new Array(16).fill(least));
      expect(await low.rshift(-1).tolist(), dtype.name).toEqual(new Array(16).fill(-1));
    }
  });
  deviceTest("div and functions of integers are floats", async (device) => {
    const t = tensor(device, int32, [1, 2, 0]);
    expect(t.div(2).dtype).toBe(float32);
    expect(await t.div(t).tolist()).toEqual([1, 1, NaN]);
    expect(await t.sqrt().tolist()).toEqual([1, Math.fround(Math.SQRT2), 0]);
    expect(t.exp2().dtype).toBe(float32);
    expect(tensor(device, bool, [1]).log2().dtype).toBe(float32);
    expect(t.trunc().dtype).toBe(int32);
    expect(t.floor().dtype).toBe(int32);
  });
  deviceTest("bools", async (device) => {
    const [a, b] = [tensor(device, bool, [0, 0, 1, 1]), tensor(device, bool, [0, 1, 0, 1])];
    expect(await a.add(b).tolist()).toEqual([false, true, true, true]);
    expect(await a.mul(b).tolist()).toEqual([false, false, false, true]);
    expect(await a.bitwiseXor(b).tolist()).toEqual([false, true, true, false]);
    expect(await a.maximum(b).tolist()).toEqual([false, true, true, true]);
    expect(await a.logicalNot().tolist()).toEqual([true, true, false, false]);
    expect(await a.where(b, true).tolist()).toEqual([true, true, false, true]);
    expect(() => a.sub(b)).toThrow(DTypeError);
    expect(() => a.neg()).toThrow(DTypeError);
    expect(() => tensor(device, float32, [1]).bitwiseAnd(1)).toThrow(/takes integers or bools, got float32/);
    expect(() => tensor(device, float32, [1]).idiv(2)).toThrow(DTypeError);
  });
});

// ---- the type of a result ----

const NAMES = [
  "bool",
  "uint8",
  "int8",
  "int16",
  "int32",
  "int64",
  "float16",
  "bfloat16",
  "float32",
  "float64",
] as const;
const SHORT: Record<string, DTypeName> = {
  b1: "bool",
  u1: "uint8",
  i1: "int8",
  i2: "int16",
  i4: "int32",
  i8: "int64",
  f2: "float16",
  bf: "bfloat16",
  f4: "float32",
  f8: "float64",
};
/** torch.promote_types, rows and columns in the order of NAMES. */
// biome-ignore format: a table
const PROMOTED = [
  "b1 u1 i1 i2 i4 i8 f2 bf f4 f8",
  "u1 u1 i2 i2 i4 i8 f2 bf f4 f8",
  "i1 i2 i1 i2 i4 i8 f2 bf f4 f8",
  "i2 i2 i2 i2 i4 i8 f2 bf f4 f8",
  "i4 i4 i4 i4 i4 i8 f2 bf f4 f8",
  "i8 i8 i8 i8 i8 i8 f2 bf f4 f8",
  "f2 f2 f2 f2 f2 f2 f2 f4 f4 f8",
  "bf bf bf bf bf bf f4 bf f4 f8",
  "f4 f4 f4 f4 f4 f4 f4 f4 f4 f8",
  "f8 f8 f8 f8 f8 f8 f8 f8 f8 f8",
].map((row) => row.split(" ").map((s) => SHORT[s] as DTypeName));

/** [a tensor of this type, with a number, with a fraction]: torch.result_type with Python's int and float,
 * but that our default integer is int32 where torch's is int64. */
// biome-ignore format: a table
const WITH_NUMBERS: readonly (readonly [DTypeName, DTypeName, DTypeName])[] = [
  ["bool", "int32", "float32"], ["uint8", "uint8", "float32"], ["int8", "int8", "float32"],
  ["int16", "int16", "float32"], ["int32", "int32", "float32"], ["int64", "int64", "float32"],
  ["float16", "float16", "float16"], ["bfloat16", "bfloat16", "bfloat16"],
  ["float32", "float32", "float32"], ["float64", "float64", "float64"],
];

/** [a tensor with dims, a 0-d tensor, the result] */
const WITH_ZERO_DIM: readonly (readonly [DTypeName, DTypeName, DTypeName])[] = [
  ["uint8", "int64", "uint8"],
  ["int8", "uint8", "int8"],
  ["int32", "int64", "int32"],
  ["bool", "int16", "int16"],
  ["bool", "uint8", "uint8"],
  ["int64", "bool", "int64"],
  ["int32", "float64", "float64"],
  ["int64", "float16", "float16"],
  ["uint8", "bfloat16", "bfloat16"],
  ["float16", "float64", "float16"],
  ["bfloat16", "float16", "bfloat16"],
  ["float32", "float64", "float32"],
  ["float32", "int64", "float32"],
  ["float64", "float32", "float64"],
  ["bool", "float64", "float64"],
];

const dims = (d: DTypeName): Tensor => Tensor.full([2], 1, { dtype: d });
const zeroDim = (d: DTypeName): Tensor => new Tensor(1, { dtype: d });

describe("promotion", () => {
  test("two tensors", () => {
    NAMES.forEach((a, i) => {
      NAMES.forEach((b, j) => {
        const want = PROMOTED[i]?.[j];
        expect(dims(a).add(dims(b)).dtype.name, `${a} + ${b}`).toBe(want);
        expect(dims(a).maximum(dims(b)).dtype.name, `maximum(${a}, ${b})`).toBe(want);
        expect(zeroDim(a).mul(zeroDim(b)).dtype.name, `0-d ${a} * 0-d ${b}`).toBe(want);
        expect(dims(a).lt(dims(b)).dtype).toBe(bool);
        expect(dims("bool").where(dims(a), dims(b)).dtype.name, `where(${a}, ${b})`).toBe(want);
      });
    });
  });
  test("a tensor and a number", () => {
    for (const [d, whole, fraction] of WITH_NUMBERS) {
      expect(dims(d).add(1).dtype.name, `${d} + 1`).toBe(whole);
      expect(dims(d).mul(1.5).dtype.name, `${d} * 1.5`).toBe(fraction);
      expect(zeroDim(d).add(1).dtype.name, `0-d ${d} + 1`).toBe(whole);
      expect(zeroDim(d).mul(1.5).dtype.name, `0-d ${d} * 1.5`).toBe(fraction);
      expect(dims(d).add(true).dtype.name, `${d} + true`).toBe(d);
      expect(dims("bool").where(dims(d), 1.5).dtype.name, `where(${d}, 1.5)`).toBe(fraction);
    }
    expect(dims("bool").add(1n).dtype).toBe(int64);
    expect(dims("int32").add(1n).dtype).toBe(int32);
  });
  test("a tensor with dims and one without", () => {
    for (const [d, z, want] of WITH_ZERO_DIM) {
      expect(dims(d).add(zeroDim(z)).dtype.name, `${d} + 0-d ${z}`).toBe(want);
      expect(zeroDim(z).add(dims(d)).dtype.name, `0-d ${z} + ${d}`).toBe(want);
    }
  });
  deviceTest("values meet in the common type", async (device) => {
    const a = tensor(device, int8, [-1, 127]);
    const b = tensor(device, uint8, [255, 200]);
    expect(await a.add(b).tolist()).toEqual([254, 327]);
    expect(await a.lt(b).tolist()).toEqual([true, true]);
    expect(
      await tensor(device, int32, [2 ** 24 + 1, 3])
        .add(tensor(device, float32, [0.5, 0.5]))
        .tolist(),
    ).toEqual([2 ** 24, 3.5]);
    const mixed = tensor(device, float16, [1, 2049]).add(tensor(device, dtypes.bfloat16, [1 / 128, 1]));
    expect(mixed.dtype).toBe(float32);
    expect(await mixed.tolist()).toEqual([1 + 1 / 128, 2049]);
    expect(await tensor(device, bool, [1, 0]).add(2).tolist()).toEqual([3, 2]);
    expect(await tensor(device, uint8, [250]).add(10).tolist()).toEqual([4]);
  });
});
