// The types of elements: sizes and names, every bit pattern of float16 and bfloat16, rounding, casts at the
// edges, the tables of promotion, and host arrays to bytes and back. Expected values are written
// out, not computed by dtype.ts.

import { describe, expect, test } from "vitest";
import {
  bfloat16ToNumber,
  bitcastValue,
  bounds,
  castValue,
  DType,
  type DTypeName,
  dtypes,
  float16ToNumber,
  floatToIntVia,
  numberToBfloat16,
  numberToFloat16,
  type PromotionOperand,
  PtrDType,
  promote,
  readValue,
  resultType,
  scalarOf,
  sumDType,
  toDType,
  type Value,
  wrap,
  writeValue,
} from "../src/dtype.ts";
import { DTypeError } from "../src/errors.ts";
import { decodeArray, dtypeOfTyped, encodeArray } from "../src/hostarrays.ts";
import { Random } from "./shape/random.ts";

const { bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64 } = dtypes;
const { float16, bfloat16, float32, float64 } = dtypes;

describe("the types", () => {
  test("there are thirteen, with their sizes", () => {
    const sizes = Object.fromEntries(dtypes.all.map((d) => [d.name, d.itemsize]));
    expect(sizes).toEqual({
      bool: 1,
      int8: 1,
      uint8: 1,
      int16: 2,
      uint16: 2,
      int32: 4,
      uint32: 4,
      int64: 8,
      uint64: 8,
      float16: 2,
      bfloat16: 2,
      float32: 4,
      float64: 8,
    });
  });
  test("aliases are the types themselves, and print as in listings", () => {
    expect([dtypes.char, dtypes.int, dtypes.long, dtypes.half, dtypes.float, dtypes.double]).toEqual([
      int8,
      int32,
      int64,
      float16,
      float32,
      float64,
    ]);
    expect(String(float32)).toBe("dtypes.float");
    expect(String(PtrDType(int32))).toBe("ptr.dtypes.int");
  });
  test("vectors and pointers are interned", () => {
    expect(float32.vec(4)).toBe(float32.vec(4));
    expect(float32.vec(1)).toBe(float32);
    expect(float32.vec(4).itemsize).toBe(16);
    expect(scalarOf(float32.vec(4))).toBe(float32);
    expect(scalarOf(int8)).toBe(int8);
    expect(PtrDType(float32)).toBe(PtrDType(float32));
    expect(PtrDType(float32)).not.toBe(PtrDType(float32, true));
    expect(PtrDType(float32, true).local).toBe(true);
  });
  test("each type prints as itself alone", () => {
    const printed = [dtypes.int32, dtypes.int32.vec(4), dtypes.int4, float32.vec(8)].map(String);
    expect(printed).toEqual(["dtypes.int", "dtypes.int.vec(4)", "dtypes.int4", "dtypes.float.vec(8)"]);
  });
  test("kinds", () => {
    expect(dtypes.all.filter((d) => d.isFloat)).toEqual([float16, bfloat16, float32, float64]);
    expect(dtypes.all.filter((d) => d.isBig)).toEqual([int64, uint64]);
    expect(dtypes.all.filter((d) => !d.isInt && !d.isFloat)).toEqual([bool]);
    expect(dtypes.all.map((d) => d.bits)).toEqual([8, 8, 8, 16, 16, 32, 32, 64, 64, 16, 16, 32, 64]);
    expect(dtypes.all.every((d) => d.itemsize * 8 === d.bits && !d.isPacked)).toBe(true);
    expect([dtypes.int4, dtypes.uint4, dtypes.float4e2m1].map((d) => [d.bits, d.isPacked])).toEqual([
      [4, true],
      [4, true],
      [4, true],
    ]);
    expect([dtypes.int4.bytesFor(0), dtypes.int4.bytesFor(5), float32.bytesFor(5)]).toEqual([0, 3, 20]);
  });
  test("names are looked up, unknown ones refused", () => {
    expect(toDType("half")).toBe(float16);
    expect(toDType(int8)).toBe(int8);
    for (const name of ["float8", "all", "toString", ""]) {
      expect(() => toDType(name as DTypeName), name).toThrow(DTypeError);
    }
  });
  test("bounds", () => {
    expect(dtypes.all.map((d) => bounds(d))).toEqual([
      [0, 1],
      [-128, 127],
      [0, 255],
      [-32768, 32767],
      [0, 65535],
      [-2147483648, 2147483647],
      [0, 4294967295],
      [-9223372036854775808n, 9223372036854775807n],
      [0n, 18446744073709551615n],
      [-Infinity, Infinity],
      [-Infinity, Infinity],
      [-Infinity, Infinity],
      [-Infinity, Infinity],
    ]);
  });
});

/** What a pattern means, by the definition of the format. */
function meaning(bits: number, exponentBits: number, mantissaBits: number): number {
  const sign = bits >> 15 ? -1 : 1;
  const exponent = (bits >> mantissaBits) & (2 ** exponentBits - 1);
  const mantissa = bits & (2 ** mantissaBits - 1);
  const bias = 2 ** (exponentBits - 1) - 1;
  if (exponent === 2 ** exponentBits - 1) return mantissa === 0 ? sign * Infinity : NaN;
  if (exponent === 0) return sign * mantissa * 2 ** (1 - bias - mantissaBits);
  return sign * (2 ** mantissaBits + mantissa) * 2 ** (exponent - bias - mantissaBits);
}

describe.each([
  { name: "float16", d: float16, from: float16ToNumber, to: numberToFloat16, e: 5, m: 10 },
  { name: "bfloat16", d: bfloat16, from: bfloat16ToNumber, to: numberToBfloat16, e: 8, m: 7 },
])("$name", ({ d, from, to, e, m }) => {
  const infinity = (2 ** e - 1) << m;

  test("every bit pattern means what the format says, and comes back", () => {
    const wrong: number[] = [];
    for (let bits = 0; bits < 65536; bits++) {
      const x = from(bits);
      const back = to(x);
      const isNan = (bits & 0x7fff) > infinity;
      const good = isNan ? Number.isNaN(x) && (back & 0x7fff) > infinity : back === bits;
      if (!good || !Object.is(x, meaning(bits, e, m))) wrong.push(bits);
    }
    expect(wrong).toEqual([]);
  });

  test("between two neighbours the nearer one is taken, the even one of two as near", () => {
    const wrong: string[] = [];
    for (let bits = 0; bits < infinity; bits++) {
      const [low, high] = [from(bits), from(bits + 1)];
      // beyond the largest value, the next would be 2^(bias+1)
      const next = Number.isFinite(high) ? high : low + (low - from(bits - 1));
      const middle = (low + next) / 2;
      // bfloat16 sees a float32, so a little more must be visible there
      const little = Math.max(middle * 2 ** (d === bfloat16 ? -23 : -50), 2 ** -149);
      const even = bits % 2 === 0 ? bits : bits + 1;
      const got = [to(middle), to(middle + little), to(middle - little), to(-middle)];
      const want = [even, bits + 1, bits, even | 0x8000];
      if (got.join() !== want.join()) wrong.push(`${bits}: ${got} for ${want}`);
    }
    expect(wrong.slice(0, 5), `${wrong.length} wrong`).toEqual([]);
  });

  test("zeros, NaN and what is too large or too small", () => {
    expect([to(0), to(-0)]).toEqual([0, 0x8000]);
    expect(Object.is(from(0x8000), -0)).toBe(true);
    expect([to(Infinity), to(-Infinity), to(1e300), to(-1e300)]).toEqual([
      infinity,
      infinity | 0x8000,
      infinity,
      infinity | 0x8000,
    ]);
    expect((to(NaN) & 0x7fff) > infinity).toBe(true);
    expect(to(1e-300)).toBe(0);
    expect(to(-1e-300)).toBe(0x8000);
    expect(to(1)).toBe((2 ** (e - 1) - 1) << m);
  });

  test("wrap is the same rounding", () => {
    for (const x of [0.1, 1 / 3, 1000.7, -5.55, 1e-7, 70000]) {
      expect(wrap(d, Math.fround(x))).toBe(from(to(Math.fround(x))));
    }
  });
});

describe("rounding, some by name", () => {
  test("float16", () => {
    const halves: [number, number][] = [
      [2048.5, 2048],
      [2049, 2048],
      [2051, 2052],
      [65519, 65504],
      [65520, Infinity],
      [2 ** -24, 2 ** -24],
      [2 ** -25, 0],
      [2 ** -25 * 1.001, 2 ** -24],
      [2 ** -14 - 2 ** -26, 2 ** -14],
    ];
    for (const [x, want] of halves) expect(float16ToNumber(numberToFloat16(x)), String(x)).toBe(want);
  });
  test("bfloat16", () => {
    const values: [number, number][] = [
      [257, 256],
      [259, 260],
      [1.00390625, 1],
      [1.01171875, 1.015625],
      [3.4e38, Infinity],
      [3.39e38, 3.3895313892515355e38],
    ];
    for (const [x, want] of values) expect(bfloat16ToNumber(numberToBfloat16(x)), String(x)).toBe(want);
  });
});

describe("wrap", () => {
  test("integers of any number of bits", () => {
    const [int2, uint2, int3] = [
      new DType("int2", "int2", "int", 2, Int8Array),
      new DType("uint2", "uint2", "uint", 2, Uint8Array),
      new DType("int3", "int3", "int", 3, Int8Array),
    ];
    expect([0, 1, 2, 3, 4, -1].map((x) => wrap(int2, x))).toEqual([0, 1, -2, -1, 0, -1]);
    expect([0, 1, 2, 3, 4, -1].map((x) => wrap(uint2, x))).toEqual([0, 1, 2, 3, 0, 3]);
    expect([3, 4, 7, 8].map((x) => wrap(int3, x))).toEqual([3, -4, -1, 0]);
    // four elements a byte, from its low end up
    expect([...encodeArray(int2, [1, -2, -1, 0, 1])]).toEqual([0b00_11_10_01, 0b01]);
    expect([...decodeArray(int2, Uint8Array.of(0b00_11_10_01, 0b01), 5)]).toEqual([1, -2, -1, 0, 1]);
  });
  test("integers keep their low bits", () => {
    const rows: [DType, Value, Value][] = [
      [int8, 128, -128],
      [int8, -129, 127],
      [uint8, -1, 255],
      [uint8, 256, 0],
      [int16, 32768, -32768],
      [uint16, -1, 65535],
      [int32, 2 ** 31, -(2 ** 31)],
      [uint32, -1, 4294967295],
      [int64, 2n ** 63n, -(2n ** 63n)],
      [uint64, -1n, 2n ** 64n - 1n],
      [int64, 5, 5n],
      [bool, 7, 1],
      [bool, 0, 0],
    ];
    for (const [d, x, want] of rows) expect(wrap(d, x), `${d.name} ${x}`).toBe(want);
  });
});

describe("castValue", () => {
  const rows: [from: DType, x: Value, to: DType, want: Value][] = [
    // to bool: everything but zero is true
    [float32, NaN, bool, 1],
    [float32, -0, bool, 0],
    [float32, 1e-45, bool, 1],
    [int64, 0n, bool, 0],
    [int64, 2n ** 40n, bool, 1],
    // float to integer: truncates, NaN is 0, saturates at int32 and wraps to the width
    [float32, 2.9, int32, 2],
    [float32, -2.9, int32, -2],
    [float64, -0.5, int32, 0],
    [float32, NaN, int32, 0],
    [float32, Infinity, int32, 2147483647],
    [float32, -Infinity, int32, -2147483648],
    [float32, 3e9, int32, 2147483647],
    [float32, -1, uint8, 255],
    [float32, 300, uint8, 44],
    [float32, 300, int8, 44],
    [float32, 1e10, int8, -1],
    [float32, -1e10, int8, 0],
    [float32, 1e10, uint16, 65535],
    [float32, -40000, int16, 25536],
    // uint32 goes through int64, 64-bit integers stop at their own ends
    [float64, 4294967295, uint32, 4294967295],
    [float64, 4294967296, uint32, 0],
    [float64, -1, uint32, 4294967295],
    [float64, 1e30, uint32, 4294967295],
    [float64, -1e30, uint32, 0],
    [float64, 1e30, int64, 2n ** 63n - 1n],
    [float64, -1e30, int64, -(2n ** 63n)],
    [float64, 2 ** 63, int64, 2n ** 63n - 1n],
    [float64, -1, uint64, 0n],
    [float64, 1e30, uint64, 2n ** 64n - 1n],
    [float64, 2 ** 63, uint64, 2n ** 63n],
    [float64, NaN, uint64, 0n],
    // integer to integer: low bits, with the sign
    [int32, -1, uint64, 2n ** 64n - 1n],
    [uint32, 4294967295, int64, 4294967295n],
    [int64, -1n, uint8, 255],
    [uint64, 2n ** 63n, int64, -(2n ** 63n)],
    [int64, 2n ** 32n + 5n, int32, 5],
    [uint8, 200, int8, -56],
    [bool, 1, int64, 1n],
    // integer to float: rounded once
    [int32, 16777217, float32, 16777216],
    [int32, 16777219, float32, 16777220],
    [int64, 2n ** 53n + 1n, float64, 2 ** 53],
    [int64, 2n ** 24n + 1n, float32, 16777216],
    // halfway in float32 and a little more: through float64 it would be exactly halfway
    [int64, 2n ** 60n + 2n ** 36n + 1n, float32, 2 ** 60 + 2 ** 37],
    [int64, -(2n ** 60n) - 2n ** 36n - 1n, float32, -(2 ** 60) - 2 ** 37],
    [int64, 2n ** 60n + 2n ** 36n, float32, 2 ** 60],
    [uint64, 2n ** 64n - 1n, float32, 2 ** 64],
    [int32, 65520, float16, Infinity],
    [int32, 2049, float16, 2048],
    [int32, 257, bfloat16, 256],
    [bool, 1, float16, 1],
    // float to float
    [float64, 1e40, float32, Infinity],
    [float64, 1e-50, float32, 0],
    [float64, -1e-50, float32, -0],
    [float32, -0, float16, -0],
    [float64, 0.1, float32, 0.10000000149011612],
    [float32, NaN, bfloat16, NaN],
  ];
  test.each(rows)("%s %s as %s is %s", (from, x, to, want) => {
    expect(castValue(to, x, from)).toBe(want);
  });
  test("where floats saturate", () => {
    const via = Object.fromEntries(
      dtypes.all.filter((d) => d.isInt).map((d) => [d.name, floatToIntVia(d).name]),
    );
    expect(via).toEqual({
      int8: "int32",
      uint8: "int32",
      int16: "int32",
      uint16: "int32",
      int32: "int32",
      uint32: "int64",
      int64: "int64",
      uint64: "uint64",
    });
  });
  test("a 64-bit integer becomes the nearest float32, by comparing with its neighbours", () => {
    const random = new Random(5);
    const next = (x: number, by: number): number => {
      const words = new Int32Array(new Float32Array([x]).buffer);
      words[0] = (words[0] as number) + by;
      return new Float32Array(words.buffer)[0] as number;
    };
    const gap = (a: bigint, b: number): bigint => (a > BigInt(b) ? a - BigInt(b) : BigInt(b) - a);
    for (let i = 0; i < 3000; i++) {
      const bits = BigInt(random.int(0, 2 ** 31 - 1)) * 2n ** 32n + BigInt(random.int(0, 2 ** 31 - 1)) * 2n;
      const x = (bits >> BigInt(random.int(0, 36))) | (1n << 26n);
      const got = Number(castValue(float32, x, int64));
      expect(Math.fround(got)).toBe(got);
      expect(gap(x, got) <= gap(x, next(got, 1)) && gap(x, got) <= gap(x, next(got, -1)), `${x}`).toBe(true);
    }
  });
});

describe("bitcastValue", () => {
  const rows: [from: DType, x: Value, to: DType, want: Value][] = [
    [float32, 1, int32, 0x3f800000],
    [float32, -0, int32, -(2 ** 31)],
    [float32, -0, uint32, 2 ** 31],
    [uint32, 0x7f800000, float32, Infinity],
    [float64, 1, uint64, 0x3ff0000000000000n],
    [int64, -1n, uint64, 2n ** 64n - 1n],
    [float16, 1, uint16, 0x3c00],
    [bfloat16, 1, int16, 0x3f80],
    [float16, 1, bfloat16, 0.0078125],
    [int8, -1, uint8, 255],
    [bool, 1, uint8, 1],
    [uint8, 5, bool, 1],
    [uint8, 0, bool, 0],
  ];
  test.each(rows)("%s %s as %s is %s", (from, x, to, want) => {
    expect(bitcastValue(to, x, from)).toBe(want);
  });
});

describe("promotion", () => {
  test("torch.promote_types where torch has both types, and it does not matter who comes first", () => {
    // biome-ignore format: a table
    const rows: [DType, DType, DType][] = [
      [bool, bool, bool], [bool, int8, int8], [bool, float16, float16], [uint8, int8, int16],
      [uint8, int16, int16], [uint8, int64, int64], [int8, int32, int32], [int64, float16, float16],
      [int64, bfloat16, bfloat16], [uint8, float32, float32], [float16, bfloat16, float32],
      [float16, float32, float32], [bfloat16, float32, float32], [bfloat16, float64, float64],
      [float32, float64, float64], [int32, int64, int64],
    ];
    for (const [a, b, want] of rows) {
      expect(promote(a, b), `${a.name}, ${b.name}`).toBe(want);
      expect(promote(b, a), `${b.name}, ${a.name}`).toBe(want);
    }
  });
  test("unsigned types above 8 bits take the next signed type that holds both", () => {
    // biome-ignore format: a table
    const rows: [DType, DType, DType][] = [
      [uint16, int16, int32], [uint16, int8, int32], [uint16, int32, int32], [uint16, uint8, uint16],
      [uint32, int32, int64], [uint32, int8, int64], [uint32, int64, int64], [uint32, uint64, uint64],
      [uint64, int64, float32], [uint64, int8, float32], [uint64, uint8, uint64], [uint64, bool, uint64],
      [uint32, float16, float16], [uint64, float64, float64],
    ];
    for (const [a, b, want] of rows) {
      expect(promote(a, b), `${a.name}, ${b.name}`).toBe(want);
      expect(promote(b, a), `${b.name}, ${a.name}`).toBe(want);
    }
  });
  test("a type with itself, and symmetry", () => {
    for (const a of dtypes.all) {
      expect(promote(a, a)).toBe(a);
      for (const b of dtypes.all) expect(promote(a, b)).toBe(promote(b, a));
    }
  });

  const dim = (dtype: DType): PromotionOperand => ({ dtype, rank: "dimensioned" });
  const zero = (dtype: DType): PromotionOperand => ({ dtype, rank: "zerodim" });
  const number = (dtype: DType): PromotionOperand => ({ dtype, rank: "number" });
  test("resultType: 0-d tensors and numbers raise the category, not the width", () => {
    const rows: [PromotionOperand[], DType][] = [
      [[dim(int8), zero(int64)], int8],
      [[dim(int8), zero(float64)], float64],
      [[dim(int64), zero(float16)], float16],
      [[dim(float16), zero(float64)], float16],
      [[dim(bool), zero(uint8)], uint8],
      [[zero(int8), zero(int64)], int64],
      [[dim(int32), number(float32)], float32],
      [[dim(uint8), number(int32)], uint8],
      [[dim(bool), number(int32)], int32],
      [[dim(float64), number(float32)], float64],
      [[zero(int64), number(float32)], float32],
      [[zero(float16), number(float32)], float16],
      [[number(int32), number(float32)], float32],
      [[number(bool), number(int32)], int32],
      [[dim(int32), zero(float64), number(float32)], float64],
      [[dim(bool), zero(int16), number(float32)], float32],
      [[dim(int8), dim(uint8), zero(int64), number(int32)], int16],
    ];
    for (const [operands, want] of rows) {
      const text = operands.map((o) => `${o.rank} ${o.dtype.name}`).join(", ");
      expect(resultType(operands), text).toBe(want);
      expect(resultType([...operands].reverse()), text).toBe(want);
    }
    expect(() => resultType([])).toThrow(DTypeError);
  });
  test("sums of narrow integers are wider", () => {
    expect(dtypes.all.map((d) => sumDType(d).name)).toEqual([
      ...["int32", "int32", "uint32", "int32", "uint32", "int32", "uint32", "int64", "uint64"],
      ...["float16", "bfloat16", "float32", "float64"],
    ]);
  });
});

describe("host arrays", () => {
  test("values there and back for every type", () => {
    const samples: Record<string, readonly Value[]> = {
      bool: [0, 1],
      int64: [-(2n ** 63n), -1n, 2n ** 63n - 1n],
      uint64: [0n, 2n ** 64n - 1n],
      float16: [1.5, -0, Infinity, NaN, 65504],
      bfloat16: [1.5, -0, -Infinity, NaN, 256],
      float32: [0.10000000149011612, -0, NaN],
      float64: [0.1, -0, Number.MIN_VALUE],
    };
    for (const d of dtypes.all) {
      const values = samples[d.name] ?? bounds(d);
      const bytes = encodeArray(d, values);
      expect(bytes.byteLength).toBe(values.length * d.itemsize);
      const back = decodeArray(d, bytes);
      expect(Array.from<Value>(back), d.name).toEqual(values);
      const view = new DataView(bytes.buffer);
      values.forEach((x, i) => void expect(readValue(view, i * d.itemsize, d)).toBe(x));
    }
  });
  test("numbers are converted as from float64, bigints as from int64, booleans as 0 and 1", () => {
    expect([...encodeArray(uint8, [-1, 256.7, NaN, true, false, 511n])]).toEqual([255, 0, 0, 1, 0, 255]);
    expect([...encodeArray(bool, [0, -0, 0.1, NaN, true])]).toEqual([0, 0, 1, 1, 1]);
    expect(decodeArray(int64, encodeArray(int64, [1.9, -1.9, 3n]))).toEqual(BigInt64Array.of(1n, -1n, 3n));
    expect(decodeArray(uint64, encodeArray(uint64, [2n ** 64n - 1n]))).toEqual(
      BigUint64Array.of(2n ** 64n - 1n),
    );
    expect(decodeArray(float32, encodeArray(float32, [2n ** 60n + 2n ** 36n + 1n]))[0]).toBe(
      2 ** 60 + 2 ** 37,
    );
  });
  test("half-width floats are rounded once, straight from the double", () => {
    // a little off the middle between two neighbours, by less than float32 can show
    const [h, b] = [1 + 2 ** -11, 1 + 2 ** -8];
    const little = 2 ** -40;
    expect([...decodeArray(float16, encodeArray(float16, [h, h + little, h - little, -h - little]))]).toEqual(
      [1, 1 + 2 ** -10, 1, -1 - 2 ** -10],
    );
    expect([
      ...decodeArray(bfloat16, encodeArray(bfloat16, [b, b + little, b - little, -b - little])),
    ]).toEqual([1, 1 + 2 ** -7, 1, -1 - 2 ** -7]);
    const odd = 1 + 3 * 2 ** -8; // the middle above an odd neighbour
    expect([...decodeArray(bfloat16, encodeArray(bfloat16, [odd, odd - little]))]).toEqual([
      1 + 2 ** -6,
      1 + 2 ** -7,
    ]);
    expect(decodeArray(bfloat16, encodeArray(bfloat16, [2n ** 62n + 2n ** 54n + 1n]))[0]).toBe(
      2 ** 62 + 2 ** 55,
    );
    // a cast goes through float32, as every device does
    expect([castValue(float16, h + little, float64), castValue(bfloat16, b + little, float64)]).toEqual([
      1, 1,
    ]);
  });
  test("numbers become integers without a detour through bigint, to the same values", () => {
    const edge = [7, 8, 15, 16, 31, 32, 53, 63, 64, 100].flatMap((n) => [
      2 ** n,
      2 ** n - 1,
      2 ** n + 1,
      2 ** n + 0.5,
    ]);
    const values = [0, -0, 0.9, 1e300, Infinity, NaN, ...edge].flatMap((x) => [x, -x]);
    for (const d of dtypes.all.filter((t) => t.isInt)) {
      const [lo, hi] = bounds(floatToIntVia(d)).map(BigInt) as [bigint, bigint];
      const want = values.map((x) => {
        if (Number.isNaN(x)) return 0n;
        const t = Math.abs(x) === Infinity ? (x > 0 ? hi : lo) : BigInt(Math.trunc(x));
        const clamped = t < lo ? lo : t > hi ? hi : t;
        return d.kind === "int" ? BigInt.asIntN(d.bits, clamped) : BigInt.asUintN(d.bits, clamped);
      });
      const got = decodeArray(d, encodeArray(d, values));
      expect(Array.from<Value, bigint>(got, BigInt), d.name).toEqual(want);
    }
  });
  test("little endian", () => {
    expect([...encodeArray(uint16, [0x1234])]).toEqual([0x34, 0x12]);
    expect([...encodeArray(float16, [1])]).toEqual([0x00, 0x3c]);
    expect([...encodeArray(bfloat16, [1])]).toEqual([0x80, 0x3f]);
    const view = new DataView(new ArrayBuffer(8));
    writeValue(view, 0, int32, -2);
    expect(new Uint8Array(view.buffer, 0, 4)).toEqual(Uint8Array.of(254, 255, 255, 255));
  });
  test("decoding shares memory where it can, and copies what is not aligned", () => {
    const bytes = encodeArray(int32, [1, 2, 3]);
    expect(decodeArray(int32, bytes).buffer).toBe(bytes.buffer);
    const shifted = new Uint8Array(13);
    shifted.set(bytes, 1);
    expect([...decodeArray(int32, shifted.subarray(1))]).toEqual([1, 2, 3]);
    expect(decodeArray(float16, encodeArray(float16, [0.5]))).toEqual(Float32Array.of(0.5));
    expect(decodeArray(float32, new Uint8Array(0)).length).toBe(0);
  });
  test("typed arrays name their type", () => {
    expect(dtypeOfTyped(new Uint8ClampedArray(1))).toBe(uint8);
    expect(dtypeOfTyped(new BigInt64Array(1))).toBe(int64);
    expect(dtypeOfTyped(new Float64Array(1))).toBe(float64);
    expect(dtypeOfTyped(new DataView(new ArrayBuffer(1)))).toBeUndefined();
    expect(float32).toBeInstanceOf(DType);
  });
});
