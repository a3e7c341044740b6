// Convolution, pooling, resampling and windows against plain loops over arrays, gradients against finite
// differences, and the kernels that come out: no column matrix, no division in inner loops.

import { Tensor } from "gradloom";
import { describe, expect, it } from "vitest";
import { gap, gradientGap, innerDivisions, kernelsOf, numbers, random, size, tensor } from "../numeric.ts";

// ---- plain arrays ----

/** Every index of a shape, first dim slowest. */
function* places(shape: readonly number[]): Generator<number[]> {
  const n = size(shape);
  for (let i = 0; i < n; i++) {
    let rest = i;
    const at: number[] = [];
    for (const s of shape.toReversed()) {
      at.unshift(rest % s);
      rest = Math.floor(rest / s);
    }
    yield at;
  }
}
const flat = (shape: readonly number[], at: readonly number[]): number =>
  at.reduce((n, x, i) => n * (shape[i] as number) + x, 0);
const inside = (shape: readonly number[], at: readonly number[]): boolean =>
  at.every((x, i) => x >= 0 && x < (shape[i] as number));

interface Geometry {
  readonly kernel: number[];
  readonly stride: number[];
  readonly padding: number[];
  readonly dilation: number[];
}
const outputs = (sizes: readonly number[], g: Geometry): number[] =>
  sizes.map((s, i) => {
    const span = (g.dilation[i] as number) * ((g.kernel[i] as number) - 1) + 1;
    return Math.floor((s + 2 * (g.padding[i] as number) - span) / (g.stride[i] as number)) + 1;
  });
const source = (o: readonly number[], k: readonly number[], g: Geometry): number[] =>
  o.map(
    (x, i) =>
      x * (g.stride[i] as number) + (k[i] as number) * (g.dilation[i] as number) - (g.padding[i] as number),
  );

function plainConv(x: Tensor, w: Tensor, g: Geometry, groups: number): number[] {
  const [n, , ...sizes] = x.shape as [number, number, ...number[]];
  const [co, ci] = w.shape as [number, number];
  const [xs, ws] = [numbers(x), numbers(w)];
  const out = outputs(sizes, g);
  return [...places([n, co, ...out])].map(([b, c, ...o]) => {
    const group = Math.floor((c as number) / (co / groups));
    let sum = 0;
    for (const [i, ...k] of places([ci, ...g.kernel])) {
      const at = source(o, k, g);
      if (!inside(sizes, at)) continue;
      const from = [b as number, group * ci + (i as number), ...at];
      sum +=
        (xs[flat(x.shape, from)] as number) * (ws[flat(w.shape, [c as number, i as number, ...k])] as number);
    }
    return sum;
  });
}

/** A random window that fits: sizes, kernels, strides, paddings and dilations of n dims. */
function randomGeometry(n: number, pick: (n: number) => number): { sizes: number[]; g: Geometry } {
  const list = (f: () => number): number[] => Array.from({ length: n }, f);
  const g = {
    kernel: list(() => 1 + pick(3)),
    stride: list(() => 1 + pick(3)),
    padding: list(() => pick(3)),
    dilation: list(() => 1 + pick(2)),
  };
  const sizes = g.kernel.map((k, i) => Math.max(1, (g.dilation[i] as number) * (k - 1) + 1) + pick(5));
  return { sizes, g };
}

/** A geometry as options: the kernel is not one of them. */
const optionsOf = ({ kernel: _, ...o }: { kernel?: number[] }): object => o;
const conv = (x: Tensor, w: Tensor, bias: Tensor | null, o: object): Tensor =>
  [x.conv1d, x.conv2d, x.conv3d][x.ndim - 3]?.call(x, w, bias, optionsOf(o)) as Tensor;
const convTranspose = (x: Tensor, w: Tensor, o: object): Tensor =>
  [x.convTranspose1d, x.convTranspose2d, x.convTranspose3d][x.ndim - 3]?.call(
    x,
    w,
    null,
    optionsOf(o),
  ) as Tensor;

describe("convolution", () => {
  it("is what plain loops compute, in 1 to 3 dims", () => {
    const pick = random(5);
    for (let round = 0; round < 30; round++) {
      const { sizes, g } = randomGeometry(1 + (round % 3), pick);
      const groups = 1 + pick(2);
      const x = tensor([1 + pick(2), groups * (1 + pick(2)), ...sizes], round);
      const w = tensor([groups * (1 + pick(2)), (x.shape[1] as number) / groups, ...g.kernel], round + 1);
      const y = conv(x, w, null, { ...g, groups });
      expect(y.shape.slice(2)).toEqual(outputs(sizes, g));
      expect(gap(numbers(y), plainConv(x, w, g, groups)), JSON.stringify({ sizes, g })).toBeLessThan(1e-5);
    }
  });

  it("and its transpose are adjoint: (conv x) . y = x . (convT y)", () => {
    const pick = random(9);
    for (let round = 0; round < 24; round++) {
      const { sizes, g } = randomGeometry(1 + (round % 3), pick);
      const groups = 1 + pick(2);
      const x = tensor([2, groups * 2, ...sizes], round);
      const w = tensor([groups * 3, 2, ...g.kernel], round + 1);
      const y = conv(x, w, null, { ...g, groups });
      const z = tensor(y.shape, round + 2);
      // the sizes that the stride skipped are put back by outputPadding
      const outputPadding = sizes.map((s, i) => {
        const at = (l: number[]): number => l[i] as number;
        const span = at(g.dilation) * (at(g.kernel) - 1) + 1;
        return s - (((y.shape[2 + i] as number) - 1) * at(g.stride) + span - 2 * at(g.padding));
      });
      const fits = outputPadding.every(
        (p, i) => p < Math.max(g.stride[i] as number, g.dilation[i] as number),
      );
      if (!fits) continue;
      const back = convTranspose(z, w, { ...g, groups, outputPadding });
      const [a, b] = [y.mul(z).sum().itemSync(), x.mul(back).sum().itemSync()];
      expect(Math.abs(Number(a) - Number(b))).toBeLessThan(1e-4);
    }
  });

  it("pads 'same' at the end where one side needs more, 'valid' not at all", async () => {
    const x = new Tensor([[[1, 2, 3]]]);
    const w = new Tensor([[[1, 10]]]);
    expect(await x.conv1d(w, null, { padding: "same" }).tolist()).toEqual([[[21, 32, 3]]]);
    expect(await x.conv1d(w, null, { padding: "valid" }).tolist()).toEqual([[[21, 32]]]);
  });

  it("keeps integers and half-width floats, and adds those in float32", async () => {
    const ones = new Tensor(Array(4096).fill(1), { dtype: "float16" }).reshape(1, 1, 4096);
    const y = ones.conv1d(ones);
    expect([y.dtype.name, await y.item()]).toEqual(["float16", 4096]);
    expect(new Tensor([[[1, 2]]]).conv1d(new Tensor([[[1, 1]]])).dtype.name).toBe("int32");
  });

  it("of an empty batch is empty", () => {
    expect(tensor([0, 2, 5]).conv1d(tensor([3, 2, 2])).shape).toEqual([0, 3, 4]);
  });

  it("has the gradients of finite differences", () => {
    const o = { stride: [2, 1], padding: [1, 2], dilation: [1, 2], groups: 2 };
    const f = (x: Tensor, w: Tensor, b: Tensor) => x.conv2d(w, b, o);
    expect(gradientGap(f, [[2, 4, 5, 6], [4, 2, 3, 2], [4]])).toBeLessThan(1e-6);
    const t = { stride: [2, 3], padding: [1, 0], outputPadding: [1, 2], groups: 2 };
    const g = (x: Tensor, w: Tensor, b: Tensor) => x.convTranspose2d(w, b, t);
    expect(gradientGap(g, [[2, 4, 3, 4], [4, 2, 3, 2], [4]])).toBeLessThan(1e-6);
    const h = (x: Tensor, w: Tensor) => x.convTranspose3d(w, null, { stride: 2, dilation: 2 });
    expect(
      gradientGap(h, [
        [1, 2, 2, 3, 2],
        [2, 2, 2, 1, 2],
      ]),
    ).toBeLessThan(1e-6);
  });

  it("has gradients of gradients", () => {
    const second = (x: Tensor, w: Tensor): Tensor => {
      const [a, b] = [x, w].map((t) => new Tensor(t.lazydata, { requiresGrad: true })) as [Tensor, Tensor];
      const leaves = x.requiresGrad ? ([x, w] as const) : ([a, b] as const);
      const y = leaves[0].conv2d(leaves[1], null, { stride: 2, padding: 1 });
      y.square().mul(y).sum().backward(undefined, { createGraph: true });
      const [gx, gw] = leaves.map((l) => l.grad as Tensor) as [Tensor, Tensor];
      for (const l of leaves) l.grad = undefined;
      return gx.square().sum().add(gw.square().sum()).reshape(1);
    };
    expect(
      gradientGap(second, [
        [1, 2, 4, 4],
        [2, 2, 3, 3],
      ]),
    ).toBeLessThan(1e-5);
  });
});

describe("the kernels of a convolution", () => {
  const x = tensor([2, 4, 9, 9], 1);
  const w = tensor([6, 4, 3, 3], 2);
  const b = tensor([6], 3);

  it("are one forward, with bias and relu, for every kind of window; padding is stored by one more", () => {
    // 9 taps would ask of every element whether it is padding: one pass that writes the zeros costs less
    for (const o of [
      {},
      { padding: 1 },
      { stride: 2 },
      { dilation: 2 },
      { stride: 2, padding: 1, dilation: 2 },
    ]) {
      const list = kernelsOf(x.conv2d(w, b, o).relu());
      expect(list.length).toBe(o.padding === undefined ? 1 : 2);
      for (const k of list) expect(innerDivisions(k)).toBe(0);
    }
    expect(kernelsOf(x.conv2d(tensor([6, 4, 1, 1]), b, { padding: 1 })).length).toBe(1);
    expect(kernelsOf(x.convTranspose2d(tensor([4, 2, 3, 3]), null, { padding: 1 })).length).toBe(2);
  });

  it("are one a gradient, two convolutions and a sum, and one for each padding", () => {
    const [lx, lw, lb] = [x, w, b].map((t) => new Tensor(t.lazydata, { requiresGrad: true })) as Tensor[];
    const y = (lx as Tensor).conv2d(lw as Tensor, lb, { padding: 1 });
    const g = tensor(y.shape, 4);
    y.backward(g);
    const grads = [lx, lw, lb].map((t) => t?.grad as Tensor);
    expect(grads.map((t) => kernelsOf(t).length)).toEqual([2, 2, 1]);
    expect(kernelsOf(...grads).length).toBe(5);
    for (const k of kernelsOf(...grads)) expect(innerDivisions(k)).toBe(0);
    // the gradient of the input is computed where the input is, not on its padding
    expect(kernelsOf(grads[0] as Tensor)[1]?.name).toMatch(/^r_2_4_9_9_6_3_3/);
  });

  it("are those of its inputs too, where the input is computed: it is stored once, not once a tap", () => {
    expect(kernelsOf(x.add(1).conv2d(w)).length).toBe(2);
  });
});

// ---- pooling ----

function plainPool(
  x: Tensor,
  g: Geometry,
  ceil: boolean,
  take: (window: number[], at: number[]) => number,
): number[] {
  const [n, c, ...sizes] = x.shape as [number, number, ...number[]];
  const xs = numbers(x);
  const out = sizes.map((s, i) => {
    const [k, st, p, d] = [g.kernel, g.stride, g.padding, g.dilation].map((l) => l[i] as number) as number[];
    const room = (s + 2 * (p as number) - (d as number) * ((k as number) - 1) - 1) / (st as number);
    const o = (ceil ? Math.ceil(room) : Math.floor(room)) + 1;
    return ceil && (o - 1) * (st as number) >= s + (p as number) ? o - 1 : o;
  });
  return [...places([n, c, ...out])].map(([b, ch, ...o]) => {
    const window: number[] = [];
    const at: number[] = [];
    for (const k of places(g.kernel)) {
      const from = source(o, k, g);
      if (!inside(sizes, from)) continue;
      window.push(xs[flat(x.shape, [b as number, ch as number, ...from])] as number);
      at.push(flat(sizes, from));
    }
    return take(window, at);
  });
}

describe("pooling", () => {
  it("is what plain loops compute, values and indices", () => {
    const pick = random(3);
    for (let round = 0; round < 24; round++) {
      const { sizes, g: any } = randomGeometry(1 + (round % 3), pick);
      const g = { ...any, padding: any.kernel.map((k) => pick(Math.floor(k / 2) + 1)) };
      const x = tensor([2, 2, ...sizes], round);
      const ceilMode = pick(2) === 0;
      const { stride, padding, dilation } = g;
      const options = { stride, padding, ceilMode };
      const n = sizes.length as 1 | 2 | 3;
      const largest = (w: number[]) => Math.max(...w);
      const [y, at] = x[`maxPool${n}dWithIndices`](g.kernel, { ...options, dilation });
      expect(numbers(y)).toEqual(plainPool(x, g, ceilMode, largest));
      expect(numbers(at)).toEqual(plainPool(x, g, ceilMode, (w, i) => i[w.indexOf(largest(w))] as number));
      const near = { ...g, dilation: g.kernel.map(() => 1) };
      const mean = (w: number[]) => w.reduce((a, b) => a + b, 0) / w.length;
      const avg = x[`avgPool${n}d`](g.kernel, { ...options, countIncludePad: false });
      expect(gap(numbers(avg), plainPool(x, near, ceilMode, mean)), JSON.stringify(options)).toBeLessThan(
        1e-5,
      );
    }
  });

  it("sends the gradient of equal maxima to the first, and that of NaN to the NaN", async () => {
    const x = new Tensor([[2, 2, 1, 1, Number.NaN, 3]], { dtype: "float32" });
    const leaf = new Tensor(x.lazydata, { requiresGrad: true });
    const y = leaf.maxPool1d(2);
    expect(await y.tolist()).toEqual([[2, 1, Number.NaN]]);
    y.sum().backward();
    expect(await leaf.grad?.tolist()).toEqual([[1, 0, 1, 0, 1, 0]]);
  });

  it("never takes padding for an element", async () => {
    const low = new Tensor([[-Infinity, -Infinity]]);
    const [y, at] = low.maxPool1dWithIndices(2, { stride: 1, padding: 1 });
    expect(await y.tolist()).toEqual([[-Infinity, -Infinity, -Infinity]]);
    expect(await at.tolist()).toEqual([[0, 0, 1]]);
    expect(await new Tensor([[-5, -7]]).maxPool1d(3, { stride: 1, padding: 1 }).tolist()).toEqual([[-5, -5]]);
  });

  it("has the gradients of finite differences", () => {
    const o = { stride: [2, 1], padding: 1, ceilMode: true };
    expect(gradientGap((x) => x.maxPool2d(3, { ...o, dilation: [1, 2] }), [[1, 2, 7, 7]])).toBeLessThan(1e-6);
    expect(gradientGap((x) => x.avgPool2d(3, o), [[1, 2, 6, 7]])).toBeLessThan(1e-6);
    expect(
      gradientGap(
        (x) => x.lpPool2d(3, 2),
        [[1, 2, 4, 4]],
        (v) => v + 2,
      ),
    ).toBeLessThan(1e-6);
    expect(gradientGap((x) => x.adaptiveAvgPool3d([2, 3, 2]), [[1, 2, 3, 4, 4]])).toBeLessThan(1e-6);
    expect(gradientGap((x) => x.adaptiveMaxPool2d([3, 2]), [[1, 2, 4, 5]])).toBeLessThan(1e-6);
    expect(gradientGap((x) => x.adaptiveMaxPool1d(2), [[1, 2, 4]])).toBeLessThan(1e-6);
  });

  it("is one kernel, also with padding, where the windows are views", () => {
    const x = tensor([2, 3, 8, 8]);
    for (const y of [
      x.maxPool2d(2),
      x.maxPool2d(3, { stride: 2, padding: 1 }),
      x.avgPool2d(3, { stride: 2, padding: 1, countIncludePad: false }),
      x.adaptiveMaxPool2d(4),
    ]) {
      const list = kernelsOf(y);
      expect(list.length).toBe(1);
      expect(innerDivisions(list[0] as (typeof list)[0])).toBe(0);
    }
    // one a dim: the means along a dim are read again by the next
    expect(kernelsOf(x.adaptiveAvgPool2d(3)).length).toBe(2);
  });

  it("adapts to sizes that do not divide", async () => {
    const x = new Tensor([[1, 5, 2, 8, 3]]);
    expect(await x.adaptiveAvgPool1d(2).mul(3).tolist()).toEqual([[8, 13]]);
    // float16 rounds once, not after each dim
    const most = new Tensor([0.5, 3.54, -1.42, 4.62, -2.84, 1.2, -3.76, 2.28]).cast("float16");
    const image = most.cat(most.sum().neg().reshape(1)).reshape(1, 3, 3);
    expect(await image.adaptiveAvgPool2d(1).item()).toBeCloseTo(await image.mean().item(), 6);
    const [y, at] = x.adaptiveMaxPool1dWithIndices(3);
    expect([await y.tolist(), await at.tolist()]).toEqual([[[5, 8, 8]], [[1, 3, 3]]]);
  });
  it("adapts sizes whose product takes more than 32 bits, and more outputs than a call takes arguments", async () => {
    const [from, to] = [300_000, 200_000];
    const x = Tensor.arange(from).cast("float64").reshape(1, from);
    const [means, maxima] = [await x.adaptiveAvgPool1d(to).data(), await x.adaptiveMaxPool1d(to).data()];
    for (let n = 0; n < to; n += 999) {
      const [first, end] = [Math.floor((n * from) / to), Math.ceil(((n + 1) * from) / to)];
      expect([means[n], maxima[n]]).toEqual([(first + end - 1) / 2, end - 1]);
    }
  });
  it("means over spans are 0 where the terms cancel, and do not see what is beside them", async () => {
    const x = new Tensor([[[-1, 3, -2, 0, 0]], [[NaN, 1, 2, 3, 4]]]);
    expect(await x.adaptiveAvgPool1d(2).tolist()).toEqual([[[0, -2 / 3].map(Math.fround)], [[NaN, 3]]]);
    const y = new Tensor([
      [1, 1, 5],
      [-2, 1, 5],
      [1, -2, 5],
      [3, 3, Infinity],
    ]).reshape(1, 1, 4, 3);
    expect(await y.interpolate({ size: [2, 2], mode: "area" }).tolist()).toEqual([
      [
        [
          [0.25, 3],
          [1.25, Infinity],
        ],
      ],
    ]);
    expect(
      await x
        .shrink([[0, 1], null, null])
        .unsqueeze(2)
        .interpolate({ size: [1, 2], mode: "area" })
        .tolist(),
    ).toEqual([[[[0, Math.fround(-2 / 3)]]]]);
  });
});

describe("resampling", () => {
  it("repeats and skips whole elements as views", () => {
    const x = tensor([1, 1, 4, 4]);
    const before = kernelsOf(x.interpolate({ scaleFactor: 2 }).add(1));
    expect([before.length, before[0]?.ops]).toEqual([1, 64]);
  });

  it("has the places and weights of the modes", async () => {
    const x = new Tensor([[[0, 4, 8]]], { dtype: "float32" });
    expect(await x.interpolate({ size: 5, mode: "linear", alignCorners: true }).tolist()).toEqual([
      [[0, 2, 4, 6, 8]],
    ]);
    expect(await x.interpolate({ size: 6, mode: "linear" }).tolist()).toEqual([[[0, 1, 3, 5, 7, 8]]]);
    expect(await x.interpolate({ size: 2 }).tolist()).toEqual([[[0, 4]]]);
    expect(await x.interpolate({ size: 2, mode: "nearest-exact" }).tolist()).toEqual([[[0, 8]]]);
    expect(await x.interpolate({ size: 2, mode: "area" }).tolist()).toEqual([[[2, 6]]]);
  });

  it("has the gradients of finite differences", () => {
    const modes = ["nearest", "nearest-exact", "bilinear", "bicubic", "area"] as const;
    for (const mode of modes) {
      for (const size of [
        [5, 3],
        [2, 7],
      ]) {
        const f = (x: Tensor) => x.interpolate({ size, mode });
        expect(gradientGap(f, [[1, 2, 3, 4]]), mode).toBeLessThan(1e-6);
      }
    }
  });
});

describe("images and columns", () => {
  it("fold what unfold took apart: each element as often as windows hold it", async () => {
    const x = tensor([2, 3, 5, 6]);
    const o = { padding: [1, 2], dilation: [1, 2], stride: [2, 1] };
    const columns = x.imUnfold([3, 2], o);
    const counts = x.mul(0).add(1).imUnfold([3, 2], o).imFold([5, 6], [3, 2], o);
    const back = columns.imFold([5, 6], [3, 2], o).div(counts);
    expect(gap(numbers(back), numbers(x))).toBeLessThan(1e-6);
    // unfold is a view of what is padded: reading it is one kernel, and so is fold
    expect(kernelsOf(columns.add(1)).length).toBe(1);
    expect(kernelsOf(tensor(columns.shape).imFold([5, 6], [3, 2], o)).length).toBe(1);
  });

  it("have the gradients of finite differences", () => {
    const o = { padding: 1, dilation: 2, stride: 2 };
    expect(gradientGap((x) => x.imUnfold(2, o), [[1, 2, 4, 5]])).toBeLessThan(1e-6);
    expect(gradientGap((x) => x.imFold([4, 5], 2, o), [[1, 8, 6]])).toBeLessThan(1e-6);
  });

  it("shuffle pixels and channels there and back, as views", () => {
    const x = tensor([2, 8, 3, 3]);
    const y = x.pixelShuffle(2);
    expect(y.shape).toEqual([2, 2, 6, 6]);
    expect(numbers(y.pixelUnshuffle(2))).toEqual(numbers(x));
    expect(numbers(x.channelShuffle(2).channelShuffle(4))).toEqual(numbers(x));
    expect(kernelsOf(y).length).toBe(0);
  });
});

describe("bad input is refused with the method, what came and the rule", () => {
  const x = tensor([1, 4, 8, 8]);
  const w = tensor([6, 4, 3, 3]);
  it.each([
    [
      () => x.conv2d(tensor([6, 3, 3, 3])),
      /^conv2d: input \[1, 4, 8, 8\], weight \[6, 3, 3, 3\] and groups 1/,
    ],
    [() => x.conv2d(w, null, { groups: 3 }), /^conv2d: .* groups 3 do not fit/],
    [() => x.conv2d(w, tensor([5])), /^conv2d: bias has shape \[5\], expected \[6\]/],
    [() => x.conv2d(tensor([6, 4, 9, 9])), /^conv2d: a kernel of 9 .* does not fit into 8/],
    [() => x.conv2d(w, null, { stride: 0 }), /^conv2d: stride is \[0\], expected .* at least 1/],
    [() => x.conv2d(w, null, { stride: 2, padding: "same" }), /^conv2d: padding "same" takes stride 1/],
    [() => x.conv1d(w), /^conv1d: shape \[1, 4, 8, 8\] has 4 dims, expected 3/],
    [
      () => x.convTranspose2d(tensor([4, 2, 3, 3]), null, { outputPadding: 1 }),
      /^convTranspose2d: outputPadding 1/,
    ],
    [() => x.maxPool2d(2, { padding: 2 }), /^maxPool2d: padding 2 is more than half of the window 2/],
    [() => x.avgPool2d(9), /^avgPool2d: a window \[9,9\] does not fit into shape \[1, 4, 8, 8\]/],
    [() => x.avgPool2d(2, { divisorOverride: 0 }), /^avgPool2d: divisorOverride is 0/],
    [() => x.adaptiveAvgPool2d([1, 2, 3]), /^adaptiveAvgPool2d: outputSize is \[1,2,3\]/],
    [() => x.interpolate({ size: 4, mode: "linear" }), /^interpolate: shape .* mode "linear" takes 3/],
    [() => x.interpolate({}), /^interpolate: give either size or scaleFactor/],
    [() => x.interpolate({ size: 4, alignCorners: true }), /^interpolate: alignCorners is for linear/],
    [() => x.pixelShuffle(3), /^pixelShuffle: .* 4 channels, expected a multiple of 9/],
    [() => x.pixelUnshuffle(3), /^pixelUnshuffle: .* pixels \[8, 8\], expected multiples of 3/],
    [() => x.channelShuffle(3), /^channelShuffle: shape \[1, 4, 8, 8\] with groups 3/],
    [() => tensor([1, 8, 5]).imFold(4, 2), /^imFold: shape \[1, 8, 5\] has 8 rows and 5 columns/],
  ])("%s", (f, message) => {
    expect(f).toThrow(message);
  });
});
