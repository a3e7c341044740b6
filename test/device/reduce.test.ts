// SUM and MAX over every set of axes, on every type, with and without keepdim, over nothing at all; and what
// is made of them: mean, var, softmax, logSoftmax, dot and matmul, against plain
// loops over arrays. On every device.

import { type DType, dtypes, ShapeError, Tensor } from "gradloom";
import { describe, expect } from "vitest";
import { castValue, sumDType, type Value } from "../../src/dtype.ts";
import { opRecord, REDUCE, type ReduceOp } from "../../src/ops.ts";
import { indexes } from "../shape/model.ts";
import { Random } from "../shape/random.ts";
import { count, deviceTest, edges, expectValues, read, tensor, typesOn } from "./harness.ts";

const { float32, float64, float16, bfloat16, int32, bool } = dtypes;

/** The reduce as a loop: every element joins the accumulator of its place. */
function reduced(
  d: DType,
  op: ReduceOp,
  xs: readonly Value[],
  shape: readonly number[],
  axes: readonly number[],
) {
  const kept = shape.map((s, i) => (axes.includes(i) ? 1 : s));
  const out: Value[] = Array.from({ length: count(kept) }, () => REDUCE[op].identity(d));
  let n = 0;
  for (const at of indexes(shape)) {
    const to = at.reduce((flat, x, i) => flat * (kept[i] as number) + (axes.includes(i) ? 0 : x), 0);
    out[to] = opRecord(REDUCE[op].combine).evaluate(d, out[to] as Value, xs[n++] as Value);
  }
  return { kept, out };
}
const subsets = (n: number): number[][] =>
  Array.from({ length: 2 ** n }, (_, m) =>
    Array.from({ length: n }, (_, i) => i).filter((i) => (m >> i) & 1),
  );

/** Whole numbers, so that the order of a float sum does not matter. */
const whole = (d: DType, n: number, seed: number): Value[] => {
  const random = new Random(seed);
  return Array.from({ length: n }, () => castValue(d, random.int(-9, 9), int32));
};

describe("every set of axes", () => {
  const shape = [3, 2, 4];
  for (const op of ["sum", "max"] as const) {
    deviceTest(`${op} of [3, 2, 4], with and without keepdim`, async (device) => {
      const xs = whole(float32, 24, 1);
      const t = tensor(device, float32, xs, shape);
      const some = subsets(3).filter((axes) => axes.length > 0); // none at all means every axis, as in torch
      const all = some.map((axes) => ({ axes, kept: t[op](axes, true), bare: t[op](axes) }));
      await Tensor.realize(...all.map((a) => a.kept), ...all.map((a) => a.bare));
      for (const { axes, kept, bare } of all) {
        const model = reduced(float32, op === "sum" ? "SUM" : "REDUCE_MAX", xs, shape, axes);
        const want = model.out;
        expect(kept.shape).toEqual(model.kept);
        expect(bare.shape).toEqual(shape.filter((_, i) => !axes.includes(i)));
        expectValues(float32, await read(kept), want, `${op} over [${axes}]`, { zeros: "equal" });
        expectValues(float32, await read(bare), want, `${op} over [${axes}], no keepdim`, { zeros: "equal" });
      }
      expect((await read(t[op]())).length).toBe(1);
      expect(t[op](-1).shape).toEqual([3, 2]);
      expect(t[op]([0, -1], true).shape).toEqual([1, 2, 1]);
    });
  }
});

describe("every type", () => {
  const shape = [4, 3, 5];
  for (const d of dtypes.all) {
    const body = async (device: string): Promise<void> => {
      const xs = whole(d, 60, 2);
      const t = tensor(device, d, xs, shape);
      const type = sumDType(d);
      expect(t.sum().dtype).toBe(type);
      expect(t.max().dtype).toBe(d);
      const wide = xs.map((x) => castValue(type, x, d));
      expectValues(type, await read(t.sum([0, 2])), reduced(type, "SUM", wide, shape, [0, 2]).out, "sum");
      const largest = reduced(d, "REDUCE_MAX", xs, shape, [1]).out;
      expectValues(d, await read(t.max(1)), largest, "max", { zeros: "equal" });
    };
    deviceTest(`sum and max of ${d.name}`, body, d);
  }
  for (const d of [bool, dtypes.int8, dtypes.uint32, dtypes.int64, dtypes.uint64, float32]) {
    deviceTest(`the ends of ${d.name}`, async (device) => {
      const xs = edges(d).filter((x) => !Number.isNaN(x));
      const sorted = [...xs].sort((a, b) => (a < b ? -1 : 1));
      const t = tensor(device, d, xs);
      expectValues(d, await read(t.max()), [sorted.at(-1) as Value], "max");
      expectValues(d, await read(t.min()), [sorted[0] as Value], "min");
      if (d.isFloat) return;
      const type = sumDType(d);
      const add = (a: Value, b: Value) => opRecord("ADD").evaluate(type, a, castValue(type, b, d));
      expectValues(type, await read(t.sum()), [xs.reduce(add, type.isBig ? 0n : 0)], "sum wraps");
    });
  }

  deviceTest("float sums that lose nothing they should keep", async (device) => {
    // 4096 ones in float16: the running sum would stop at 2048
    const ones = Tensor.full([4097], 1, { dtype: float16, device }).contiguous();
    expect(await ones.sum().item()).toBe(4096);
    expect(await ones.mean().item()).toBe(1);
    expect(await tensor(device, bool, [1, 0, 1, 1]).sum().item()).toBe(3);
    expect(await tensor(device, dtypes.int8, [100, 100, 100]).sum().item()).toBe(300);
    expect(await tensor(device, dtypes.uint8, [200, 200]).sum().item()).toBe(400);
  });
});

describe("NaN, infinities and zeros", () => {
  deviceTest("NaN wins wherever it stands", async (device) => {
    const rows = [0, 1, 2].map((at) => [1, 5, -2].map((x, i) => (i === at ? NaN : x)));
    const t = new Tensor(rows, { device });
    expectValues(float32, await read(t.max(1)), [NaN, NaN, NaN], "max");
    expectValues(float32, await read(t.min(1)), [NaN, NaN, NaN], "min");
    expectValues(float32, await read(t.sum(1)), [NaN, NaN, NaN], "sum");
  });
  deviceTest("infinities", async (device) => {
    const t = tensor(device, float32, [-Infinity, -Infinity, Infinity, -Infinity, 3, Infinity], [2, 3]);
    expectValues(float32, await read(t.max(1)), [Infinity, Infinity], "max");
    expectValues(float32, await read(t.sum(0)), [-Infinity, -Infinity, Infinity], "sum");
    expectValues(float32, await read(t.sum(1)), [NaN, NaN], "sum of inf and -inf");
    for (const d of typesOn(device, [float32, float64])) {
      const low = tensor(device, d, [-Infinity, -Infinity]);
      expectValues(d, await read(low.max()), [-Infinity], "max of -inf");
    }
  });
});

describe("nothing to reduce", () => {
  deviceTest("a sum of nothing is zero, a max of nothing is refused", async (device) => {
    const t = tensor(device, float32, [], [2, 0, 3]);
    expect(await t.sum().item()).toBe(0);
    expect(await t.sum(1).tolist()).toEqual([
      [0, 0, 0],
      [0, 0, 0],
    ]);
    expect(await t.sum(0).tolist()).toEqual([]);
    expect(await t.sum([0, 2], true).tolist()).toEqual([[]]);
    expect(() => t.max()).toThrow(ShapeError);
    expect(() => t.max(1)).toThrow(/no elements along dim 1/);
    expect(() => t.min(1)).toThrow(ShapeError);
    expect(t.max(0).shape).toEqual([0, 3]);
    expect(await t.max(0).tolist()).toEqual([]);
    expect(await t.mean().item()).toBeNaN();
    expect(await tensor(device, int32, [], [0]).sum().item()).toBe(0);
    expect(await tensor(device, dtypes.int64, [], [0]).sum().item()).toBe(0n);
  });
  deviceTest("axes of size 1 and no axes", async (device) => {
    const t = tensor(device, float32, [1, 2, 3], [1, 3, 1]);
    expect(await t.sum([0, 2]).tolist()).toEqual([1, 2, 3]);
    expect(await t.max([0, 2], true).tolist()).toEqual([[[1], [2], [3]]]);
    expect(await t.sum([]).item()).toBe(6);
    const scalar = new Tensor(5, { device });
    expect(await scalar.sum().item()).toBe(5);
    expect(await scalar.max().item()).toBe(5);
    expect(await scalar.mean().item()).toBe(5);
  });
  deviceTest("bad axes", async (device) => {
    const t = tensor(device, float32, [1, 2], [2]);
    expect(() => t.sum(1)).toThrow(/dim 1 is out of range/);
    expect(() => t.sum(-2)).toThrow(ShapeError);
    expect(() => t.max([0, 0])).toThrow(/named twice/);
    expect(() => t.sum(0.5)).toThrow(ShapeError);
  });
});

// ---- what is made of reduces ----

const near = (got: readonly Value[], want: readonly number[], what: string): void => {
  expect(got.length, what).toBe(want.length);
  const bad = want.flatMap((w, i) =>
    Math.abs(Number(got[i]) - w) <= 2e-6 * Math.max(1, Math.abs(w)) ? [] : [`[${i}] ${got[i]} for ${w}`],
  );
  expect(bad, what).toEqual([]);
};
const randomFloats = (n: number, seed: number): number[] => {
  const random = new Random(seed);
  return Array.from({ length: n }, () => Math.fround(random.int(-4000, 4000) / 1000));
};
const rowsOf = (xs: readonly number[], n: number): number[][] =>
  Array.from({ length: xs.length / n }, (_, i) => xs.slice(i * n, (i + 1) * n));
const total = (xs: readonly number[]): number => xs.reduce((a, b) => a + b, 0);
const mean = (xs: readonly number[]): number => total(xs) / xs.length;
const variance = (xs: readonly number[], correction = 1): number =>
  total(xs.map((x) => (x - mean(xs)) ** 2)) / Math.max(0, xs.length - correction);
const softmax = (xs: readonly number[]): number[] => {
  const e = xs.map((x) => Math.exp(x - Math.max(...xs)));
  return e.map((x) => x / total(e));
};

describe("mean, variance, softmax", () => {
  deviceTest("mean and var", async (device) => {
    const xs = randomFloats(35, 3);
    const t = tensor(device, float32, xs, [5, 7]);
    near(await read(t.mean()), [mean(xs)], "mean");
    near(await read(t.mean(1)), rowsOf(xs, 7).map(mean), "mean(1)");
    near(
      await read(t.var(1)),
      rowsOf(xs, 7).map((r) => variance(r)),
      "var(1)",
    );
    near(
      await read(t.var(1, true, 0)),
      rowsOf(xs, 7).map((r) => variance(r, 0)),
      "var without correction",
    );
    near(await read(t.std()), [Math.sqrt(variance(xs))], "std");
    const ints = tensor(device, int32, [1, 2, 3, 4]);
    expect(ints.mean().dtype).toBe(float32);
    expect(await ints.mean().item()).toBe(2.5);
    near(await read(ints.var()), [5 / 3], "var of ints");
    expect(await tensor(device, float32, [3]).var().item()).toBeNaN();
  });
  deviceTest("mean and var of float16, bfloat16 and float64", async (device) => {
    const xs = [1.5, 2, -3, 4.25, 100, 7];
    for (const d of typesOn(device, [float16, bfloat16, float64])) {
      const t = tensor(device, d, xs);
      expect(t.var().dtype).toBe(d);
      const [m, v] = [await t.mean().item(), await t.var().item()].map(Number) as [number, number];
      const bound = { float16: 2 ** -11, bfloat16: 2 ** -8, float64: 1e-15 }[d.name] as number;
      expect(Math.abs(m / mean(xs) - 1)).toBeLessThanOrEqual(bound);
      expect(Math.abs(v / variance(xs) - 1)).toBeLessThanOrEqual(2 * bound);
    }
  });
  deviceTest("softmax and logSoftmax", async (device) => {
    const xs = randomFloats(24, 4);
    const t = tensor(device, float32, xs, [4, 6]);
    const want = rowsOf(xs, 6).flatMap(softmax);
    near(await read(t.softmax()), want, "softmax");
    near(await read(t.logSoftmax()), want.map(Math.log), "logSoftmax");
    const columns = rowsOf(await nested(t.softmax(0).transpose()), 4);
    const model = rowsOf(await nested(t.transpose()), 4).map(softmax);
    near(columns.flat(), model.flat(), "softmax(0)");
    const large = tensor(device, float32, [1000, 1001, 1002, -1000, 0, 1000], [2, 3]);
    near(await read(large.softmax()), [...softmax([0, 1, 2]), 0, 0, 1], "large values");
    const ints = tensor(device, int32, [1, 2, 3]);
    near(await read(ints.softmax()), softmax([1, 2, 3]), "softmax of ints");
    expect(await new Tensor(3, { device }).softmax().item()).toBe(1);
    expect(await tensor(device, float32, [], [2, 0]).softmax().tolist()).toEqual([[], []]);
    const masked = tensor(device, float32, [-Infinity, 0, 0]);
    near(await read(masked.softmax()), [0, 0.5, 0.5], "a masked element");
  });
  const nested = async (t: Tensor): Promise<number[]> => (await read(t)).map(Number);
});

describe("windows", () => {
  deviceTest("a maximum over three axes of a window, and its gradient", async (device) => {
    const side = 5;
    const at = (b: number, z: number, y: number, x: number) => ((b * side + z) * side + y) * side + x;
    const xs = Array.from({ length: 2 * side ** 3 }, (_, i) => ((i * 37) % 251) - 100);
    const starts = [0, 2];
    const [want, gradient] = [[] as number[], new Array<number>(xs.length).fill(0)];
    for (const b of [0, 1])
      for (const z of starts)
        for (const y of starts)
          for (const x of starts) {
            const places = [0, 1, 2].flatMap((i) =>
              [0, 1, 2].flatMap((j) => [0, 1, 2].map((k) => at(b, z + i, y + j, x + k))),
            );
            const best = places.reduce((p, q) => ((xs[q] as number) > (xs[p] as number) ? q : p));
            gradient[best] = (gradient[best] as number) + want.length;
            want.push(xs[best] as number);
          }
    const t = tensor(device, float32, xs, [2, 1, side, side, side]);
    t.requiresGrad = true;
    const pooled = t.maxPool3d(3, { stride: 2 });
    near(await read(pooled), want, "maxPool3d");
    pooled
      .mul(Tensor.arange(want.length, { device }).reshape(pooled.shape as number[]))
      .sum()
      .backward();
    near(await read(t.grad as Tensor), gradient, "its gradient");
  });
});

/**
 * The product of [..., n, k] by [..., k, m] as loops; `batch` pairs of matrices, each chosen by its index.
 */
function matmul(a: number[], b: number[], n: number, k: number, m: number): number[] {
  const out: number[] = [];
  for (let i = 0; i < n; i++)
    for (let j = 0; j < m; j++)
      out.push(
        total(Array.from({ length: k }, (_, l) => (a[i * k + l] as number) * (b[l * m + j] as number))),
      );
  return out;
}

describe("dot and matmul", () => {
  const numbers = (d: DType, n: number, seed: number) => whole(d, n, seed).map(Number);
  deviceTest("vectors and matrices", async (device) => {
    const [a, b, v] = [numbers(float32, 12, 5), numbers(float32, 20, 6), numbers(float32, 4, 7)];
    const [A, B, V] = [
      tensor(device, float32, a, [3, 4]),
      tensor(device, float32, b, [4, 5]),
      tensor(device, float32, v),
    ];
    const check = async (t: Tensor, shape: number[], want: number[], what: string) => {
      expect(t.shape, what).toEqual(shape);
      expectValues(
        float32,
        await read(t),
        want.map((x) => x + 0),
        what,
        { zeros: "equal" },
      );
    };
    await check(A.dot(B), [3, 5], matmul(a, b, 3, 4, 5), "2-d by 2-d");
    await check(V.dot(V), [], matmul(v, v, 1, 4, 1), "1-d by 1-d");
    await check(A.dot(V), [3], matmul(a, v, 3, 4, 1), "2-d by 1-d");
    await check(V.matmul(B), [5], matmul(v, b, 1, 4, 5), "1-d by 2-d");
    await check(A.T.dot(A), [4, 4], matmul(transposed(a, 3, 4), a, 4, 3, 4), "by a transposed view");
    expect(() => A.dot(A)).toThrow(/cannot multiply \[3, 4\] by \[3, 4\]/);
    expect(() => A.dot(new Tensor(1, { device }))).toThrow(ShapeError);
  });
  const transposed = (a: number[], n: number, m: number): number[] =>
    Array.from({ length: n * m }, (_, i) => a[(i % n) * m + Math.floor(i / n)] as number);

  deviceTest("batches, and batches that broadcast", async (device) => {
    const [a, b] = [numbers(float32, 2 * 3 * 2 * 3, 8), numbers(float32, 2 * 3 * 3 * 4, 9)];
    const A = tensor(device, float32, a, [2, 3, 2, 3]);
    const B = tensor(device, float32, b, [2, 3, 3, 4]);
    const loose = { zeros: "equal" } as const;
    const product = (x: number[], y: number[]) => matmul(x, y, 2, 3, 4);
    const [as, bs] = [rowsOf(a, 6), rowsOf(b, 12)];
    const both = as.flatMap((x, i) => product(x, bs[i] as number[]));
    expectValues(float32, await read(A.dot(B)), both, "batch", loose);
    const one = as.flatMap((x) => product(x, bs[0] as number[]));
    const single = tensor(device, float32, bs[0] as number[], [3, 4]);
    expectValues(float32, await read(A.dot(single)), one, "one matrix for all", loose);
    // [2, 1, 2, 3] by [3, 3, 4] is [2, 3, 2, 4]
    const left = tensor(device, float32, a.slice(0, 12), [2, 1, 2, 3]);
    const right = tensor(device, float32, b.slice(0, 36), [3, 3, 4]);
    const crossed = [0, 1].flatMap((i) =>
      [0, 1, 2].flatMap((j) => product(as[i] as number[], bs[j] as number[])),
    );
    expect(left.dot(right).shape).toEqual([2, 3, 2, 4]);
    expectValues(float32, await read(left.dot(right)), crossed, "broadcast", loose);
    const vector = tensor(device, float32, [1, -2, 3]);
    const applied = as.flatMap((x) => matmul(x, [1, -2, 3], 2, 3, 1));
    expect(A.dot(vector).shape).toEqual([2, 3, 2]);
    expectValues(float32, await read(A.dot(vector)), applied, "by a vector", loose);
  });
  deviceTest("types and nothing", async (device) => {
    for (const d of typesOn(device, [int32, dtypes.int64, float16, float64])) {
      const [a, b] = [numbers(d, 6, 10), numbers(d, 6, 11)];
      const big = (xs: number[]): Value[] => xs.map((x) => (d.isBig ? BigInt(x) : x));
      const t = tensor(device, d, big(a), [2, 3]).dot(tensor(device, d, big(b), [3, 2]));
      expect(t.dtype).toBe(d);
      expectValues(d, await read(t), big(matmul(a, b, 2, 3, 2)), d.name, { zeros: "equal" });
    }
    const empty = tensor(device, float32, [], [2, 0]).dot(tensor(device, float32, [], [0, 3]));
    expect(await empty.tolist()).toEqual([
      [0, 0, 0],
      [0, 0, 0],
    ]);
    expect(tensor(device, float32, [], [0, 3]).dot(tensor(device, float32, [1, 2, 3])).shape).toEqual([0]);
  });
});

describe("negations", () => {
  // NVIDIA's assembler lost signs here
  deviceTest(
    "the largest and smallest of negated integers, and what is compared and cast",
    async (device) => {
      const cases = dtypes.all
        .filter((d) => d.kind === "int")
        .flatMap((d) => {
          const low = -(2n ** BigInt(d.itemsize * 8 - 1));
          const list = [0n, 1n, 0n, 3n, -7n, 9n, low, 1n, low + 1n, 0n, low, low];
          const xs = list.map((x) => castValue(d, x, dtypes.int64));
          const t = tensor(device, d, xs, [4, 3]);
          const want = list.map((x) => (x === low ? low : -x));
          return [t.neg(), t.mul(-1)].map((n) => ({
            d,
            want,
            results: [n.max(1), n.min(1), n.ge(0), n.cast(dtypes.int64)],
          }));
        });
      await Tensor.realize(...cases.flatMap((c) => c.results));
      for (const { d, want, results } of cases) {
        const got = await Promise.all(results.map(async (r) => (await read(r)).map(BigInt)));
        const best = (beats: (a: bigint, b: bigint) => boolean): bigint[] =>
          [0, 3, 6, 9].map((i) => want.slice(i, i + 3).reduce((a, b) => (beats(a, b) ? a : b)));
        const [most, least] = [best((a, b) => a > b), best((a, b) => a < b)];
        expect(got, d.name).toEqual([most, least, want.map((x) => BigInt(x >= 0n)), want]);
      }
    },
  );
});
