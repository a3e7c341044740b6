// Powers on every device: exact where the power is a number of the type, and as IEEE 754 says for signs,
// zeros, infinities and NaN. How far the others are off is in scripts/accuracy.test.ts.

import { type DType, dtypes, Tensor } from "gradloom";
import { expect } from "vitest";
import { opRecord } from "../src/ops.ts";
import { deviceTest, has, inRange, read } from "./device/harness.ts";

/** The columns of pairs as arrays of a type. */
const columns = (dtype: DType, pairs: readonly (readonly [number, number])[]) =>
  ([0, 1] as const).map((i) => {
    const values = pairs.map((p) => p[i]);
    return dtype === dtypes.float32 ? Float32Array.from(values) : Float64Array.from(values);
  }) as [Float32Array, Float32Array];
const TYPES = [
  [dtypes.float32, Float32Array, 2 ** 24],
  [dtypes.float64, Float64Array, 2 ** 53],
] as const;
const typesOf = (device: string) => TYPES.filter(([dtype]) => has(device, dtype));

deviceTest("powers of integers that the type has are exact", async (device) => {
  for (const [dtype, , limit] of typesOf(device)) {
    const pairs: [number, number][] = [];
    for (let x = -40; x <= 40; x++) {
      for (let y = 0; y <= 30; y++) if (Math.abs(x) ** y <= limit) pairs.push([x, y]);
    }
    const [x, y] = columns(dtype, pairs);
    const got = await read(new Tensor(x, { device }).pow(new Tensor(y, { device })));
    const want = pairs.map(([a, b]) => Number(BigInt(a) ** BigInt(b)));
    expect(got.map(Number)).toEqual(want);
  }
});

deviceTest("constant exponents", async (device) => {
  for (const [, Type] of typesOf(device)) {
    const x = new Tensor(Type.of(10, 3, -2, 1.5), { device });
    expect(await read(x.pow(3))).toEqual([1000, 27, -8, 3.375]);
    expect(await read(x.pow(5))).toEqual([100000, 243, -32, 7.59375]);
    expect(await read(x.pow(8))).toEqual([1e8, 6561, 256, 25.62890625]);
  }
});

deviceTest("zeros, infinities, NaN and signs", async (device) => {
  const all = [0, -0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, Infinity, -Infinity, NaN, 1e30, -1e30, 1e-40, 7];
  const values = inRange(all);
  const pairs = values.flatMap((x) => values.map((y) => [x, y] as const));
  for (const [dtype] of typesOf(device)) {
    const [x, y] = columns(dtype, pairs);
    const got = await read(new Tensor(x, { device }).pow(new Tensor(y, { device })));
    for (const [i, value] of got.entries()) {
      const truth = Number(opRecord("POW").evaluate(dtypes.float64, x[i] as number, y[i] as number));
      const want = dtype === dtypes.float32 ? Math.fround(truth) : truth;
      const isPlain = Number.isFinite(want) && want !== 0 && Math.abs(want) !== 1;
      const off = Math.abs(Number(value) - want) / Math.abs(want);
      const is = isPlain
        ? off < (dtype === dtypes.float32 ? 2e-7 : 4e-16) || want < 1e-38
        : Object.is(value, want);
      expect(is, `${dtype.name} ${x[i]} ** ${y[i]}: ${value}, expected ${want}`).toBe(true);
    }
  }
});
