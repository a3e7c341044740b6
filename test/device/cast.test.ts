// Every cast (13 x 13 types) and every bitcast between types of one size, over edge values and random bits,
// on every device, against castValue and bitcastValue. Results are looked at as bits, all targets of one
// source in one kernel, and stored in their own type besides.

import { type DType, dtypes, Tensor } from "gradloom";
import { describe, expect } from "vitest";
import { bitcastValue, castValue, readValue, type Value } from "../../src/dtype.ts";
import { Random } from "../shape/random.ts";
import { deviceTest, edges, expectValues, has, inRange, read, rows, tensor, typesOn } from "./harness.ts";

const BITS: Record<number, DType> = {
  1: dtypes.uint8,
  2: dtypes.uint16,
  4: dtypes.uint32,
  8: dtypes.uint64,
};
const bitsType = (d: DType): DType => BITS[d.itemsize] as DType;

/** A value of any type as the 64-bit integer that has its bits. */
const asBits = (t: Tensor): Tensor => t.bitcast(bitsType(t.dtype)).cast(dtypes.uint64);
const fromBits = (d: DType, bits: Value): Value =>
  bitcastValue(d, castValue(bitsType(d), bits, dtypes.uint64), bitsType(d));

/** What a cast may trip over: the edges of every type as far as this one can hold them. */
function inputs(d: DType): Value[] {
  const all = dtypes.all.flatMap((from) => edges(from).map((x) => castValue(d, x, from)));
  const halves = d.isFloat ? [0.49999, 1.999, -1.999, 127.5, 128.5, -128.9, 32767.5, 4294967295.5] : [];
  const more = halves.map((x) => castValue(d, x, dtypes.float64));
  return [...all, ...more].filter((x, i, xs) => xs.findIndex((y) => Object.is(x, y)) === i);
}

/** Random bit patterns of a type. */
function randomBits(d: DType, n: number, seed: number): Value[] {
  const random = new Random(seed);
  const view = new DataView(new ArrayBuffer(8));
  return inRange(
    Array.from({ length: n }, () => {
      for (let i = 0; i < 8; i++) view.setUint8(i, random.int(0, 255));
      return readValue(view, 0, d);
    }),
  );
}

describe("cast", () => {
  for (const from of dtypes.all) {
    const body = async (device: string): Promise<void> => {
      const types = typesOn(device);
      const xs = [...inputs(from), ...randomBits(from, 100, from.name.length)];
      const got = await rows(
        device,
        [{ dtype: from, values: xs }],
        types.map((to) => (x) => asBits(x.cast(to))),
      );
      types.forEach((to, k) => {
        const want = xs.map((x) => castValue(to, x, from));
        const values = (got[k] as Value[]).map((bits) => fromBits(to, bits));
        expectValues(to, values, want, (i) => `${from.name} ${xs[i]} as ${to.name}`);
      });
    };
    deviceTest(`from ${from.name} to every type`, body, from);
  }

  for (const to of dtypes.all) {
    const body = async (device: string): Promise<void> => {
      const wide = has(device, dtypes.float64) ? dtypes.float64 : dtypes.float32;
      const from = to === wide ? dtypes.int64 : wide;
      const xs = inputs(from);
      const got = await read(tensor(device, from, xs).cast(to));
      expectValues(
        to,
        got,
        xs.map((x) => castValue(to, x, from)),
        (i) => `${from.name} ${xs[i]}`,
      );
    };
    deviceTest(`stored as ${to.name}`, body, to);
  }

  deviceTest("a constant is cast as memory would be", async (device) => {
    const values = [300, -1, 2.5, -2.5, 70000, NaN, -0];
    for (const to of [dtypes.uint8, dtypes.bool, dtypes.float16, dtypes.int64]) {
      const constant = (x: number) => new Tensor(x, { dtype: dtypes.float32, device }).cast(to);
      const got = await rows(
        device,
        [{ dtype: dtypes.int32, values: [0] }],
        values.map((x) => () => constant(x).expand(values.length, 1)),
      );
      const want = values.map((x) => castValue(to, x, dtypes.float32));
      expectValues(to, got.flat(), want, (i) => `${values[i]}`);
    }
  });
});

describe("bitcast", () => {
  for (const size of [1, 2, 4, 8]) {
    const ofSize = dtypes.all.filter((d) => d.itemsize === size);
    for (const from of ofSize) {
      const body = async (device: string): Promise<void> => {
        const types = typesOn(device, ofSize);
        const xs = [...edges(from), ...randomBits(from, 200, size)];
        // the choice between the two bitcasts keeps them from being folded to one
        const always: Value[] = xs.map(() => 1);
        const got = await rows(
          device,
          [
            { dtype: from, values: xs },
            { dtype: dtypes.bool, values: always },
          ],
          types.map((to) => (x, on) => asBits(on.where(x.bitcast(to), x.bitcast(to).mul(0)))),
        );
        types.forEach((to, k) => {
          const bits = got[k] as Value[];
          xs.forEach((x, i) => {
            const what = `${from.name} ${x} as ${to.name}`;
            const got = [from, to].map((as) => fromBits(as, bits[i] as Value)) as [Value, Value];
            // which of the many NaNs a NaN is, is not specified: it only has to stay one
            if (Number.isNaN(x)) expect(got.some(Number.isNaN), what).toBe(true);
            else expectValues(to, [got[1]], [bitcastValue(to, x, from)], what);
          });
        });
      };
      deviceTest(`from ${from.name} to every type of ${size} bytes`, body, from);
    }
  }

  deviceTest("back and forth keeps every bit that is not a NaN's", async (device) => {
    const bits = [0, 0x80000000, 1, 0x80000001, 0x3f800000, 0x7f7fffff, 0x7f800000, 0xff800000, 0x00800000];
    const t = tensor(device, dtypes.uint32, bits);
    expect(await t.bitcast(dtypes.float32).contiguous().bitcast(dtypes.uint32).tolist()).toEqual(bits);
  });
});

describe("64-bit integers", () => {
  deviceTest("come back as BigInt arrays", async (device) => {
    const t = new Tensor([2n ** 63n - 1n, -(2n ** 63n), -1n], { device });
    expect(t.dtype).toBe(dtypes.int64);
    expect(await t.add(1).data()).toEqual(BigInt64Array.of(-(2n ** 63n), -(2n ** 63n) + 1n, 0n));
    const u = new Tensor(BigUint64Array.of(2n ** 64n - 1n, 0n, 2n ** 63n), { device });
    expect(u.dtype).toBe(dtypes.uint64);
    expect(await u.add(u).data()).toEqual(BigUint64Array.of(2n ** 64n - 2n, 0n, 0n));
    expect(await u.cast(dtypes.int64).tolist()).toEqual([-1n, 0n, -(2n ** 63n)]);
    expect(await u.max().item()).toBe(2n ** 64n - 1n);
    expect(await t.sum().item()).toBe(-2n);
  });
  deviceTest("a number that float64 cannot hold survives", async (device) => {
    const big = 2n ** 53n + 1n;
    expect(await new Tensor([big], { device }).mul(1).add(0n).tolist()).toEqual([big]);
    expect(await Tensor.full([2], big, { dtype: dtypes.int64, device }).add(big).tolist()).toEqual([
      2n * big,
      2n * big,
    ]);
  });
});
