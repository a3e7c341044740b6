// Reductions, order and running reductions: against plain loops over arrays, with NaN, ties, zeros, empty and
// 0-d tensors, short rows and long ones; gradients against finite differences;
// the number of kernels; bad input.

import { createSchedule, type DTypeName, dtypes, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { deviceTest, inRange } from "../../device/harness.ts";
import { gradientGap } from "../numeric.ts";

/** Numbers with ties, the same in every run. */
const some = (n: number, range = 20): number[] =>
  Array.from({ length: n }, (_, i) => ((i * 7919 + 13) % 104729) % range);
const numbers = async (t: Tensor): Promise<number[]> => Array.from(await t.data(), Number);
const kernels = (...ts: readonly Tensor[]) =>
  createSchedule(ts.map((t) => t.lazydata)).filter((si) => si.ast[0]?.op === "STORE").length;

/** torch's order: NaN last, ties by place; turned around, ties still by place. */
function sorted(xs: readonly number[], descending = false): number[] {
  const compare = (a: number, b: number): number => {
    if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
    return a < b ? -1 : a > b ? 1 : 0;
  };
  return [...xs.keys()].sort((i, j) => {
    const c = compare(xs[i] as number, xs[j] as number);
    return (descending ? -c : c) || i - j;
  });
}

describe("order", () => {
  deviceTest("sort and argsort, both ways, with NaN, infinities, both zeros and ties", async (device) => {
    const xs = inRange([3, NaN, -1, 0, Infinity, -0, 3, -Infinity, 2.5, NaN, -1, 1e-40, -1e-40]);
    const t = new Tensor(xs, { device });
    for (const descending of [false, true]) {
      const want = sorted(xs.map(Math.fround), descending);
      const [values, indices] = t.sort(0, descending);
      expect(await numbers(indices)).toEqual(want);
      expect(await numbers(values.add(0))).toEqual(want.map((i) => Math.fround(xs[i] as number) + 0));
      expect(await numbers(t.argsort(0, descending))).toEqual(want);
    }
  });
  test("of every type", async () => {
    const xs = [3, 1, 100, 0, 1, 7, 120];
    for (const dtype of dtypes.all) {
      const signed = dtype.kind === "int" || dtype.isFloat;
      const list =
        dtype.kind === "bool" ? xs.map((x) => x % 2) : signed ? xs.map((x, i) => (i % 2 ? -x : x)) : xs;
      const [values, indices] = new Tensor(list, { dtype }).sort();
      expect(values.dtype).toBe(dtype);
      expect(indices.dtype).toBe(dtypes.int32);
      expect(await numbers(indices), dtype.name).toEqual(sorted(list));
      expect(await numbers(new Tensor(list, { dtype }).argsort(-1, true)), dtype.name).toEqual(
        sorted(list, true),
      );
    }
    const big = [2n ** 62n, -(2n ** 63n), 2n ** 63n - 1n, 5n];
    expect(await new Tensor(big).sort()[0].tolist()).toEqual([-(2n ** 63n), 5n, 2n ** 62n, 2n ** 63n - 1n]);
  });
  test("along every dim", async () => {
    const xs = some(60);
    const t = new Tensor(xs, { dtype: "float32" }).reshape(3, 4, 5);
    for (const dim of [0, 1, 2, -1]) {
      const [values, indices] = t.sort(dim);
      expect(values.shape).toEqual([3, 4, 5]);
      // the places lead to the values, and the values ascend
      const there = (await indices
        .transpose(dim, -1)
        .reshape(-1, t.shape.at(dim) as number)
        .tolist()) as number[][];
      const rows = (await t
        .transpose(dim, -1)
        .reshape(-1, t.shape.at(dim) as number)
        .tolist()) as number[][];
      expect(there).toEqual(rows.map((r) => sorted(r)));
      const got = await values
        .transpose(dim, -1)
        .reshape(-1, t.shape.at(dim) as number)
        .tolist();
      expect(got).toEqual(rows.map((r) => sorted(r).map((i) => r[i])));
    }
  });
  test("long rows go through the network and come out the same", async () => {
    const n = 6001;
    const xs = Array.from({ length: n }, (_, i) =>
      i % 997 === 5 ? NaN : Math.fround(Math.sin(i * 12.9898) * 100),
    );
    for (let i = 0; i < n; i += 50) xs[i] = xs[0] as number;
    const [values, indices] = new Tensor(Float32Array.from(xs)).sort();
    await Tensor.realize(values, indices);
    const want = sorted(xs);
    expect(await numbers(indices)).toEqual(want);
    expect(await numbers(values)).toEqual(want.map((i) => xs[i]));
    const down = await numbers(new Tensor(Float32Array.from(xs)).topk(5)[1]);
    expect(down).toEqual(sorted(xs, true).slice(0, 5));
  });
  test("topk and kthvalue", async () => {
    const t = new Tensor([
      [3, 1, 2],
      [9, 9, 4],
    ]);
    expect(await t.topk(2)[0].tolist()).toEqual([
      [3, 2],
      [9, 9],
    ]);
    expect(await t.topk(2)[1].tolist()).toEqual([
      [0, 2],
      [0, 1],
    ]);
    expect(await t.topk(1, 0, false)[0].tolist()).toEqual([[3, 1, 2]]);
    expect(t.topk(0)[0].shape).toEqual([2, 0]);
    expect(await t.kthvalue(2, 1)[0].tolist()).toEqual([2, 9]);
    expect(await t.kthvalue(2, 1, true)[1].tolist()).toEqual([[2], [0]]);
  });
  test("median and quantile", async () => {
    const t = new Tensor([
      [4, 1, 3, 2],
      [5, NaN, 7, 6],
    ]);
    expect(await t.median(1)[0].tolist()).toEqual([2, NaN]);
    expect(await t.median(1)[1].tolist()).toEqual([3, 1]);
    expect(await t.nanmedian(1)[0].tolist()).toEqual([2, 6]);
    expect(await t.median().item()).toBe(NaN);
    expect(await t.nanmedian().item()).toBe(4);
    expect(t.median(0, true)[0].shape).toEqual([1, 4]);
    const x = new Tensor([4, 1, 3, 2], { dtype: "float32" });
    expect(await x.quantile([0, 0.5, 1]).tolist()).toEqual([1, 2.5, 4]);
    for (const [interpolation, want] of [
      ["lower", 2],
      ["higher", 3],
      ["midpoint", 2.5],
      ["nearest", 2],
      ["linear", 2.2],
    ] as const) {
      expect(await x.quantile(0.4, 0, false, { interpolation }).item(), interpolation).toBeCloseTo(want, 6);
    }
    expect(await t.quantile(0.5, 1).tolist()).toEqual([2.5, NaN]);
    expect(t.quantile([0.1, 0.2], 1, true).shape).toEqual([2, 2, 1]);
  });
  test("of nothing and of one", async () => {
    expect(Tensor.zeros(3, 0).sort()[0].shape).toEqual([3, 0]);
    expect(Tensor.zeros(0, 3).sort()[1].shape).toEqual([0, 3]);
    expect(await new Tensor(5).sort()[0].item()).toBe(5);
    expect(await new Tensor(5).topk(1)[1].item()).toBe(0);
    expect(await new Tensor(5.5).median(0)[0].item()).toBe(5.5);
  });
});

describe("totals", () => {
  deviceTest("argmax and argmin: the first of equals, NaN before all", async (device) => {
    const t = new Tensor(
      [
        [1, 3, 3],
        [NaN, 5, NaN],
        [-Infinity, -Infinity, -Infinity],
      ],
      { device },
    );
    expect(await t.argmax(1).tolist()).toEqual([1, 0, 0]);
    expect(await t.argmin(1).tolist()).toEqual([0, 0, 0]);
    expect(await t.argmax().item()).toBe(3);
    expect(t.argmax(undefined, true).shape).toEqual([1, 1]);
    expect(await t.argmax(0, true).tolist()).toEqual([[1, 1, 1]]);
    expect(await new Tensor([3n, -(2n ** 63n), 2n ** 63n - 1n], { device }).argmin(0).item()).toBe(1);
    expect(await new Tensor([true, false], { device }).argmin(0).item()).toBe(1);
    expect(await new Tensor(7, { device }).argmax(-1).item()).toBe(0);
  });
  deviceTest("any and all, of nothing too", async (device) => {
    const t = new Tensor(
      [
        [0, 0],
        [NaN, 1],
      ],
      { device },
    );
    expect(await t.any(1).tolist()).toEqual([false, true]);
    expect(await t.all(1).tolist()).toEqual([false, true]);
    expect(await t.all().item()).toBe(false);
    expect(await Tensor.zeros(0, 2).any(0).tolist()).toEqual([false, false]);
    expect(await Tensor.zeros(0, 2).all(0).tolist()).toEqual([true, true]);
    expect(await t.countNonzero(0).tolist()).toEqual([1, 1]);
  });
  test("prod: types, overflow beyond 32 bits, nothing", async () => {
    expect(await new Tensor([9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9]).prod().item()).toBe(9n ** 12n);
    expect(await new Tensor([true, true]).prod().item()).toBe(1);
    expect(await Tensor.zeros(0).prod().item()).toBe(1);
    expect(await new Tensor([2, 3]).prod(0, false, { dtype: "float32" }).item()).toBe(6);
    expect(await new Tensor([300, 300], { dtype: "float16" }).prod().item()).toBe(Infinity);
  });
  test("logsumexp at infinities", async () => {
    const t = new Tensor([
      [-Infinity, -Infinity],
      [Infinity, 1],
      [1000, 1000],
    ]);
    const [none, all, large] = (await t.logsumexp(1).tolist()) as number[];
    expect([none, all]).toEqual([-Infinity, Infinity]);
    expect(large).toBeCloseTo(1000.6931, 3);
    expect(await Tensor.zeros(2, 0).logsumexp(1).tolist()).toEqual([-Infinity, -Infinity]);
  });
  test("norms of every order", async () => {
    const t = new Tensor(
      [
        [3, -4],
        [0, 12],
      ],
      { dtype: "float32" },
    );
    const norms: readonly (readonly [number, number])[] = [
      [0, 3],
      [1, 19],
      [2, 13],
      [Infinity, 12],
      [-Infinity, 0],
      [3, (27 + 64 + 1728) ** (1 / 3)],
    ];
    for (const [ord, want] of norms)
      expect(await t.vectorNorm(ord).item(), `ord ${ord}`).toBeCloseTo(want, 4);
    expect(await t.vectorNorm(2, 1).tolist()).toEqual([5, 12]);
    expect(await t.vectorNorm(-1, 0).tolist()).toEqual([0, 3]);
    expect(await t.dist(t.add(1), 1).item()).toBe(4);
  });
  test("moments, what is not NaN, neighbours", async () => {
    const t = new Tensor([
      [1, NaN, 4],
      [NaN, NaN, NaN],
    ]);
    expect(await t.nansum(1).tolist()).toEqual([5, 0]);
    expect(await t.nanmean(1).tolist()).toEqual([2.5, NaN]);
    const x = new Tensor(
      [
        [1, 4, 9],
        [2, 2, 2],
      ],
      { dtype: "float32" },
    );
    const [variance, mean] = x.varMean(1);
    expect([await variance.tolist(), await mean.tolist()]).toEqual([
      [expect.closeTo(16.333, 2), 0],
      [expect.closeTo(4.6667, 3), 2],
    ]);
    expect(await x.stdMean(1, true, 0)[0].tolist()).toEqual([[expect.closeTo(3.29983, 4)], [0]]);
    expect(await x.var(1, false, 5).tolist()).toEqual([Infinity, NaN]);
    expect(await x.aminmax(1)[1].tolist()).toEqual([9, 2]);
    expect(await x.diff().tolist()).toEqual([
      [3, 5],
      [0, 0],
    ]);
    expect(await x.diff(2).tolist()).toEqual([[2], [0]]);
    expect(x.diff(5).shape).toEqual([2, 0]);
    expect(await x.trapezoid().tolist()).toEqual([9, 4]);
    expect(await x.trapezoid({ x: new Tensor([0, 1, 3]) }).tolist()).toEqual([15.5, 6]);
  });
  test("no dims at all are every dim, as in torch", async () => {
    const t = Tensor.ones(2, 3);
    for (const f of ["sum", "mean", "amax", "logsumexp", "std"] as const)
      expect(t[f]([]).shape, f).toEqual([]);
    expect(t.any([]).shape).toEqual([2, 3]);
    expect(await new Tensor(3).sum(-1).item()).toBe(3);
  });
  test("the mean of equal numbers is that number, whatever their count", async () => {
    for (const n of [3, 8, 41, 47, 49, 107, 189, 1000]) {
      const flags = Tensor.ones([n], { dtype: "bool" });
      for (const ones of [flags, flags.cast("float32").contiguous(), flags.cast("int32")]) {
        expect(await ones.mean().item(), `${n} of ${ones.dtype.name}`).toBe(1);
      }
    }
    // as torch: 198 / 200 and not 198 * 0.005
    expect(await Tensor.arange(200).lt(198).mean().item()).toBe(Math.fround(0.99));
  });
  test("a dtype to compute in", async () => {
    const t = new Tensor([1, 2, 3]);
    expect(t.sum(0, false, { dtype: "int64" }).dtype).toBe(dtypes.int64);
    expect(t.mean(0, false, { dtype: "float64" }).dtype).toBe(dtypes.float64);
    expect(t.softmax(0, { dtype: "float64" }).dtype).toBe(dtypes.float64);
    expect(t.cumsum(0, { dtype: "float32" }).dtype).toBe(dtypes.float32);
    expect(await t.softmax(0, { dtype: "float64" }).sum().item()).toBeCloseTo(1, 15);
  });
});

/** The loop: `f` of what is so far and the next. */
function running(xs: readonly number[], f: (a: number, b: number) => number): number[] {
  let so: number | undefined;
  return xs.map((x) => {
    so = so === undefined ? x : f(so, x);
    return so;
  });
}

describe("running reductions", () => {
  for (const n of [1, 2, 50, 64, 65, 97, 1000, 5000]) {
    test(`of ${n} elements`, async () => {
      const xs = some(n, 7);
      const t = new Tensor(xs, { dtype: "float32" });
      expect(await numbers(t.cumsum(0))).toEqual(running(xs, (a, b) => a + b));
      expect(await numbers(t.cummax(0)[0])).toEqual(running(xs, Math.max));
      expect(await numbers(t.cummin(0)[0])).toEqual(running(xs, Math.min));
      // of equal ones the last
      const last = running([...xs.keys()], (a, b) => ((xs[b] as number) >= (xs[a] as number) ? b : a));
      expect(await numbers(t.cummax(0)[1])).toEqual(last);
      const signs = xs.map((x) => (x % 2 ? -1 : 1));
      expect(await numbers(new Tensor(signs, { dtype: "float32" }).cumprod(0))).toEqual(
        running(signs, (a, b) => a * b),
      );
      const logs = await numbers(t.logcumsumexp(0));
      const want = running(xs, (a, b) => Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b))));
      logs.forEach((x, i) => void expect(x).toBeCloseTo(want[i] as number, 4));
    });
  }
  deviceTest("along every dim of a tensor of three", async (device) => {
    const xs = some(60, 9);
    const t = new Tensor(xs, { dtype: "int32", device }).reshape(3, 4, 5);
    for (const dim of [0, 1, 2]) {
      const rows = (await t
        .transpose(dim, -1)
        .reshape(-1, t.shape[dim] as number)
        .tolist()) as number[][];
      const got = await t
        .cumsum(dim)
        .transpose(dim, -1)
        .reshape(-1, t.shape[dim] as number)
        .tolist();
      expect(got).toEqual(rows.map((r) => running(r, (a, b) => a + b)));
    }
  });
  test("NaN stays, infinities do not become NaN", async () => {
    const t = new Tensor([1, NaN, 5, NaN]);
    expect(await t.cummax(0)[0].tolist()).toEqual([1, NaN, NaN, NaN]);
    expect(await t.cummax(0)[1].tolist()).toEqual([0, 1, 1, 3]);
    expect(await new Tensor([-Infinity, -Infinity, 0, Infinity]).logcumsumexp(0).tolist()).toEqual([
      -Infinity,
      -Infinity,
      0,
      Infinity,
    ]);
  });
  test("types: bools and small integers count in 32 bits, products of integers in 64", async () => {
    expect(await new Tensor([true, true, true]).cumsum(0).tolist()).toEqual([1, 2, 3]);
    expect(await new Tensor([100, 100], { dtype: "int8" }).cumsum(0).tolist()).toEqual([100, 200]);
    expect(await new Tensor([100000, 100000]).cumprod(0).tolist()).toEqual([100000n, 10000000000n]);
    expect(new Tensor([true, false]).cummax(0)[0].dtype).toBe(dtypes.bool);
    expect(await new Tensor(4).cumsum(0).item()).toBe(4);
    expect(Tensor.zeros(0, 3).cumsum(0).shape).toEqual([0, 3]);
  });
});

describe("gradients", () => {
  const cases: Record<string, readonly [(t: Tensor) => Tensor, readonly number[]]> = {
    sort: [(t) => t.sort()[0], [3, 5]],
    sortDescending: [(t) => t.sort(0, true)[0], [4, 3]],
    topk: [(t) => t.topk(2)[0], [3, 5]],
    kthvalue: [(t) => t.kthvalue(2)[0], [3, 5]],
    median: [(t) => t.median(1)[0], [3, 4]],
    medianAll: [(t) => t.median(), [7]],
    quantile: [(t) => t.quantile([0.3, 0.8], 1), [3, 5]],
    max: [(t) => t.max(1), [3, 5]],
    amin: [(t) => t.amin([0, 2]), [2, 3, 4]],
    prod: [(t) => t.prod(1), [3, 5]],
    prodAll: [(t) => t.prod(), [2, 3]],
    logsumexp: [(t) => t.logsumexp([0, 1]), [3, 5]],
    cumsum: [(t) => t.cumsum(1), [2, 70]],
    cumprod: [(t) => t.mul(0.1).add(1).cumprod(1), [2, 70]],
    cummax: [(t) => t.cummax(1)[0], [2, 9]],
    cummin: [(t) => t.cummin(0)[0], [9, 2]],
    logcumsumexp: [(t) => t.logcumsumexp(1), [2, 70]],
    norm1: [(t) => t.vectorNorm(1, 1), [3, 4]],
    norm2: [(t) => t.vectorNorm(), [3, 4]],
    norm3: [(t) => t.vectorNorm(3.5, 0), [3, 4]],
    normNegative: [(t) => t.vectorNorm(-1.5, 0), [3, 4]],
    normInfinite: [(t) => t.vectorNorm(Infinity, 1), [3, 4]],
    nanmean: [(t) => t.nanmean(1), [3, 4]],
    varMean: [(t) => t.varMean(1, false, 0)[0].add(t.stdMean(1)[0]), [3, 4]],
    diff: [(t) => t.diff(2), [3, 5]],
    trapezoid: [(t) => t.trapezoid({ dx: 0.5 }), [3, 5]],
    dist: [(t) => t.dist(t.mul(3).sin()), [5]],
  };
  test.each(Object.keys(cases))("%s", (name) => {
    const [f, shape] = cases[name] as (typeof cases)[string];
    expect(gradientGap(f, [shape])).toBeLessThan(1e-6);
  });
  const gradient = async (f: (t: Tensor) => Tensor, xs: readonly number[]) => {
    const t = new Tensor(xs, { requiresGrad: true, dtype: "float32" });
    f(t).sum().backward();
    return numbers(t.grad as Tensor);
  };
  test("prod and cumprod beside zeros", async () => {
    expect(await gradient((t) => t.prod(), [2, 0, 3])).toEqual([0, 6, 0]);
    expect(await gradient((t) => t.prod(), [2, 0, 0])).toEqual([0, 0, 0]);
    expect(await gradient((t) => t.prod(), [2, 4])).toEqual([4, 2]);
    expect(await gradient((t) => t.cumprod(0), [2, 0, 3])).toEqual([1, 8, 0]);
  });
  test("norms at 0 and equal elements", async () => {
    expect(await gradient((t) => t.vectorNorm(), [0, 0])).toEqual([0, 0]);
    expect(await gradient((t) => t.vectorNorm(0.5), [0, 4])).toEqual([0, 1]);
    expect(await gradient((t) => t.amax(), [2, 2, 1])).toEqual([0.5, 0.5, 0]);
    expect(await gradient((t) => t.std(), [2, 2])).toEqual([0, 0]);
    expect(await gradient((t) => t.vectorNorm(0), [0, 3])).toEqual([0, 0]);
  });
  test("of gradients: softmax and prod", async () => {
    const second = (f: (t: Tensor) => Tensor) =>
      gradientGap(
        (t) => {
          const x = new Tensor(t.lazydata, { requiresGrad: true });
          x.context = undefined;
          const y = t.requiresGrad ? t : x;
          const before = y.grad;
          y.grad = undefined;
          f(y).sum().backward(undefined, { createGraph: true });
          const first = y.grad as unknown as Tensor;
          y.grad = before;
          return first;
        },
        [[5]],
      );
    expect(second((t) => t.softmax().square())).toBeLessThan(1e-6);
    expect(second((t) => t.logSoftmax().square())).toBeLessThan(1e-6);
    expect(second((t) => t.prod())).toBeLessThan(1e-6);
    expect(second((t) => t.cumsum(0).square())).toBeLessThan(1e-6);
  });
});

describe("kernels", () => {
  const ready = (shape: readonly number[], dtype: DTypeName = "float32") =>
    new Tensor(some(shape.reduce((a, b) => a * b, 1)), { dtype }).reshape(shape).realizeSync();
  const x = ready([32, 50]);
  test.each([
    // one pass over a row, however many reductions it takes
    ["softmax", () => x.softmax(), 1],
    ["logSoftmax", () => x.logSoftmax(), 1],
    ["logsumexp", () => x.logsumexp(1), 1],
    ["argmax: the maximum, then the first place where it is", () => x.argmax(1), 1],
    ["argmin", () => x.argmin(), 1],
    ["std", () => x.std(1), 1],
    ["vectorNorm", () => x.vectorNorm(3, 1), 1],
    ["prod", () => x.prod(1), 1],
    ["any", () => x.any(), 1],
    ["a short cumsum", () => x.cumsum(1), 1],
    ["a short logcumsumexp", () => x.logcumsumexp(1), 1],
    // the blocks, the totals of the blocks, both together
    ["a long cumsum", () => ready([4, 1000]).cumsum(1), 3],
    // keys, ranks, places
    ["argsort", () => x.argsort(), 3],
    // and the values by their places
    ["sort", () => x.sort()[0], 4],
    // few places by index: the values are loaded by the kernel that finds them
    ["topk", () => x.topk(3)[0], 3],
  ] as const)("%s", (_, f, most) => {
    expect(kernels(f())).toBeLessThanOrEqual(most);
  });
  test("gradients of softmax and logSoftmax are one kernel each", () => {
    for (const f of [(t: Tensor) => t.softmax(), (t: Tensor) => t.logSoftmax()]) {
      const t = new Tensor(ready([32, 50]).lazydata, { requiresGrad: true });
      f(t).mul(x).sum().backward();
      expect(kernels(t.grad as Tensor)).toBe(1);
    }
  });
});

describe("bad input", () => {
  const x = Tensor.ones(2, 3);
  const cases: readonly (readonly [() => unknown, RegExp])[] = [
    [() => x.sort(2), /sort: dim 2 is out of range for shape \[2, 3\]/],
    [() => x.topk(4), /topk: k is 4 for dim -1 of shape \[2, 3\], expected 0 to 3/],
    [() => x.kthvalue(0), /kthvalue: k is 0/],
    [() => x.quantile(1.5), /quantile: q is 1.5/],
    [
      () => x.quantile(0.5, 0, false, { interpolation: "cubic" as "linear" }),
      /quantile: interpolation is cubic/,
    ],
    [() => x.cumsum(5), /cumsum: dim 5 is out of range/],
    [() => x.prod(-3), /prod: dim -3 is out of range/],
    [() => x.amax([0, 0]), /named twice/],
    [() => Tensor.zeros(0).argmax(), /argmax: shape \[0\] has no elements/],
    [() => Tensor.zeros(2, 0).median(1), /median: shape \[2, 0\] has no elements/],
    [() => Tensor.ones().diff(), /diff: a 0-d tensor/],
    [() => x.diff(-1), /diff: n is -1/],
    [() => x.trapezoid({ x: Tensor.ones(2) }), /trapezoid: x has shape \[2\]/],
    [() => Tensor.ones().sum(1), /sum: dim 1 is out of range/],
  ];
  test.each(cases.map(([f, message]) => [String(message), f, message] as const))("%s", (_, f, message) => {
    expect(f).toThrow(message);
  });
});
