// Convolution. Windows are views: padding, repeating and cutting make one index expression, so that a
// convolution is one product summed in one kernel and no column matrix is ever stored. A convolution's
// gradients are convolutions. Pooling and resampling are in the layers above.

import { imageConvolution } from "#tensor/images";
import { dtypes, promote } from "../../dtype.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../errors.ts";
import { range } from "../../helpers.ts";
import type { Sint } from "../../shape/symbolic.ts";
import type { Interval } from "../../shape/view.ts";
import { cast, contiguous, detach, sizeAt, sizesFrom, wrap } from "../core.ts";
import { add, isNarrow, mul } from "../math/arithmetic.ts";
import { pad, squeeze } from "../movement/arrange.ts";
import {
  expand,
  flip,
  permute,
  reduceSum,
  reshape,
  shrink,
  spreadOut,
  unsqueeze,
} from "../movement/views.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";

/** One number for all spatial dims, or one a dim. */
export type PerDim = number | readonly number[];

export interface ConvOptions {
  /** how far the window moves; default 1 */
  readonly stride?: PerDim;
  /** zeros on both sides, or "valid" (none), or "same": the output has the size of the input; default 0 */
  readonly padding?: PerDim | "same" | "valid";
  /** the distance between the taps of the window; default 1 */
  readonly dilation?: PerDim;
  /** input and output channels come in this many parts that do not meet; default 1 */
  readonly groups?: number;
}
export interface ConvTransposeOptions extends ConvOptions {
  readonly padding?: PerDim;
  /** sizes added at the end of each spatial dim; default 0 */
  readonly outputPadding?: PerDim;
}

const at = (xs: readonly number[], i: number): number => xs[i] as number;

/** One integer a spatial dim; `least` is the smallest that makes sense. */
export function perDim(method: string, name: string, value: PerDim, n: number, least: number): number[] {
  const given = typeof value === "number" ? [value] : [...value];
  const list = given.length === 1 ? range(n).map(() => at(given, 0)) : given;
  if (list.length === n && list.every((x) => Number.isInteger(x) && x >= least)) return list;
  throw new ArgumentError(
    `${method}: ${name} is [${given}], expected one integer or ${n} of them, each at least ${least}`,
  );
}

/** How a window moves over each spatial dim, and how many positions it has. */
export interface Frame {
  readonly kernel: readonly number[];
  readonly stride: readonly number[];
  readonly dilation: readonly number[];
}
/** A convolution: its window, the sizes it moves over, and the zeros around them. */
interface Convolution extends Frame {
  readonly sizes: readonly number[];
  readonly pads: readonly Interval[];
}
/** A tensor with a batch dim; `undo` takes the dim off a result where the tensor had none. */
export interface Batched<T> {
  readonly x: T;
  readonly undo: (y: T) => T;
}
/** The elements from the first tap of a window to its last. */
export const reach = ({ kernel, dilation }: Frame, i: number): number =>
  at(dilation, i) * (at(kernel, i) - 1) + 1;
export const places = (size: number, f: Frame, i: number): number =>
  Math.floor((size - reach(f, i)) / at(f.stride, i)) + 1;

// ---- windows ----

/** Adds zeros to, or cuts elements off, the ends of the last dims: amounts may be negative. */
export function fitWindows(self: Tensor, amounts: readonly Interval[]): Tensor {
  const lead = range(self.ndim - amounts.length).map(() => null);
  const sizes = sizesFrom(self, lead.length);
  const ends = amounts as readonly (readonly [number, number])[];
  const cut = ends.map(([a, b], i): Interval => [Math.max(0, -a), at(sizes, i) - Math.max(0, -b)]);
  const grown = ends.map(([a, b]): Interval => [Math.max(0, a), Math.max(0, b)]);
  const cuts = cut.some(([a, b], i) => a !== 0 || b !== sizes[i]);
  const kept = cuts ? shrink(self, [...lead, ...cut]) : self;
  return grown.every(([a, b]) => a === 0 && b === 0) ? kept : pad(kept, [...lead, ...grown]);
}

/**
 * The windows over the last dims, as a view: [..., i] becomes [..., o, k], where (o, k) is element
 * `o * stride + k * dilation`.
 */
export function windows(self: Tensor, f: Frame): Tensor {
  const n = f.kernel.length;
  const sizes = sizesFrom(self, self.ndim - n);
  const out = sizes.map((s, i) => places(s, f, i));
  const apart = out.every((o, i) => {
    const [k, s] = [at(f.kernel, i), at(f.stride, i)];
    return (k === 1 || at(f.dilation, i) === 1) && s >= k && o * s <= at(sizes, i);
  });
  if (apart) return blocksOf(self, out, f);
  return wrap(sliding(detach(self), sizes, out, f).lazydata, [self], (g) => [overlap(g, sizes, f)]);
}

/** Windows that do not meet are the blocks of a reshape. */
function blocksOf(self: Tensor, out: readonly number[], { kernel, stride }: Frame): Tensor {
  const n = out.length;
  const lead = self.lazydata.shape.slice(0, self.ndim - n);
  const whole = lead.map(() => null);
  const cut = shrink(self, [...whole, ...out.map((o, i): Interval => [0, o * at(stride, i)])]);
  const split = reshape(cut, [...lead, ...out.flatMap((o, i) => [o, at(stride, i)])]);
  const blocks = shrink(split, [...whole, ...kernel.flatMap((k): [null, Interval] => [null, [0, k]])]);
  return permute(blocks, interleaved(lead.length, n, 0));
}

/**
 * A row of i elements, repeated and read again in rows of i + d, is moved on by d in each row: row k has
 * element o + k * d at o. (Rows of a * i + d, where the stride needs more room.)
 */
function sliding(
  self: Tensor,
  sizes: readonly number[],
  out: readonly number[],
  { kernel, stride, dilation }: Frame,
): Tensor {
  const n = sizes.length;
  const lead = self.lazydata.shape.slice(0, self.ndim - n);
  const whole = lead.map(() => null);
  const rows = sizes.map((s, i) => {
    const d = at(dilation, i);
    return s * Math.max(1, Math.ceil((at(out, i) * at(stride, i) - d) / s)) + d;
  });
  const times = sizes.map((s, i) => Math.ceil((at(kernel, i) * at(rows, i)) / s));
  const repeated = reshape(
    expand(reshape(self, [...lead, ...sizes.flatMap((s) => [1, s])]), [
      ...lead,
      ...sizes.flatMap((s, i) => [at(times, i), s]),
    ]),
    [...lead, ...sizes.map((s, i) => s * at(times, i))],
  );
  return permute(
    reshape(
      shrink(
        reshape(
          shrink(
            reshape(shrink(repeated, [...whole, ...rows.map((r, i): Interval => [0, r * at(kernel, i)])]), [
              ...lead,
              ...rows.flatMap((r, i) => [at(kernel, i), r]),
            ]),
            [...whole, ...out.flatMap((o, i): [null, Interval] => [null, [0, o * at(stride, i)]])],
          ),
          [...lead, ...out.flatMap((o, i) => [at(kernel, i), o, at(stride, i)])],
        ),
        [...whole, ...out.flatMap((): [null, null, Interval] => [null, null, [0, 1]])],
      ),
      [...lead, ...out.flatMap((o, i) => [at(kernel, i), o])],
    ),
    interleaved(lead.length, n, 1),
  );
}

/**
 * The sum of windows laid over each other, each at its position: [..., o, k] becomes [..., i]. The gradient
 * of `windows`, as that is the gradient of this.
 */
export function overlap(self: Tensor, sizes: readonly number[], f: Frame): Tensor {
  const n = sizes.length;
  const g = detach(self);
  const lead = g.lazydata.shape.slice(0, g.ndim - 2 * n);
  const whole = lead.map(() => null);
  const out = g.shape.slice(lead.length, lead.length + n);
  // taps backwards, and room for a window before the first: then element p is the sum of (p + k * d, k)
  const taps = range(n).map((i) => lead.length + n + i);
  const steps = [...lead.map(() => 1), ...f.stride, ...f.kernel.map(() => 1)];
  const far = out.map((o, i) => (o - 1) * at(f.stride, i) + 1);
  const room = far.map((m, i): Interval => [reach(f, i) - 1, at(sizes, i) - m]);
  const pairs = permute(
    pad(spreadOut(flip(g, taps), steps, [...g.shape.slice(0, lead.length), ...far, ...f.kernel]), [
      ...whole,
      ...room,
      ...taps.map(() => null),
    ]),
    [...range(lead.length), ...range(n).flatMap((i) => [lead.length + i, lead.length + n + i])],
  );
  const flat = sizes.map((size, i) => (size + reach(f, i) - 1) * at(f.kernel, i));
  // that diagonal is a window again: one position is a row of taps, one tap is d rows and a tap
  const diagonal = {
    kernel: f.kernel,
    stride: f.kernel,
    dilation: f.dilation.map((d, i) => d * at(f.kernel, i) + 1),
  };
  const sum = reshape(reduceSum(windows(reshape(pairs, [...lead, ...flat]), diagonal), taps), [
    ...lead,
    ...sizes,
  ]);
  return wrap(sum.lazydata, [self], (x) => [windows(x, f)]);
}

// ---- convolution ----

/**
 * This [n, group, in, i] under `w` [group, out, in, k], no gradient recorded:
 * [n, group, out, o] in one kernel.
 */
function correlate(self: Tensor, w: Tensor, stride: readonly number[], dilation: readonly number[]): Tensor {
  const n = stride.length;
  const f: Frame = { kernel: w.shape.slice(3), stride, dilation };
  const out = sizesFrom(self, 3).map((s, i) => places(s, f, i));
  const [batch, groups, inner] = self.lazydata.shape as readonly [Sint, Sint, Sint];
  const outer = w.lazydata.shape[1] as Sint;
  const full = [batch, groups, outer, ...out, inner, ...f.kernel];
  // [n, g, in, o, k] -> [n, g, 1, o, in, k]; the product is summed over in and k
  const seen = expand(
    reshape(
      permute(windows(self, f), [0, 1, ...range(n).map((i) => 3 + i), 2, ...range(n).map((i) => 3 + n + i)]),
      [batch, groups, 1, ...out, inner, ...f.kernel],
    ),
    full,
  );
  const by = expand(reshape(w, [1, groups, outer, ...out.map(() => 1), inner, ...f.kernel]), full);
  const sum = reduceSum(
    mul(seen, by),
    range(1 + n).map((i) => 3 + n + i),
  );
  return reshape(sum, [batch, groups, outer, ...out]);
}

/**
 * `fit`, with the zeros in memory: every window that meets them would ask for each element whether it is one.
 * What was widened for the sum is stored as it was before.
 */
function framed(self: Tensor, amounts: readonly Interval[], f: Frame): Tensor {
  const pads = amounts.some(([a, b]) => Number(a) > 0 || Number(b) > 0);
  if (!pads || f.kernel.every((k) => k === 1)) return fitWindows(self, amounts);
  return cast(contiguous(fitWindows(beforeWidening(self), amounts)), self.dtype);
}
function beforeWidening(self: Tensor): Tensor {
  // a node on several devices has no base
  if (self.lazydata.parts.length > 1) return self;
  const { base, st } = self.lazydata;
  const [source] = base.op === "CAST" ? (base.srcs ?? []) : [];
  const isWider = source?.dtype.isFloat === true && source.dtype.itemsize < self.dtype.itemsize;
  return isWider && st.contiguous ? reshape(wrap(source), self.lazydata.shape) : self;
}

// Input, weights and output are bound by one trilinear form. Each of the three methods computes one of them
// from the other two, so each is the gradient of both others, to any order.

/** The output: this [n, group, in, i], `w` [group, out, in, k], result [n, group, out, o]. */
function convolve(self: Tensor, w: Tensor, c: Convolution): Tensor {
  const made =
    imageConvolution(detach(self), c.pads, detach(w), c) ??
    correlate(framed(detach(self), c.pads, c), detach(w), c.stride, c.dilation);
  return wrap(made.lazydata, [self, w], (g) => [
    self.requiresGrad ? unconvolve(g, w, c) : undefined,
    w.requiresGrad ? weightsOf(self, g, c) : undefined,
  ]);
}

/** The input, from the output and the weights: what a transposed convolution computes. */
function unconvolve(self: Tensor, w: Tensor, c: Convolution): Tensor {
  const spatial = c.kernel.map((_, i) => 3 + i);
  const far = sizesFrom(self, 3).map((o, i) => (o - 1) * at(c.stride, i) + 1);
  const steps = [1, 1, 1, ...c.stride];
  const g = detach(self);
  const spread = c.stride.every((s) => s === 1)
    ? g
    : spreadOut(g, steps, [...self.shape.slice(0, 3), ...far]);
  const room = far.map((m, i): Interval => {
    const left = reach(c, i) - 1 - Number(c.pads[i]?.[0]);
    return [left, at(c.sizes, i) + reach(c, i) - 1 - m - left];
  });
  const turned = permute(flip(detach(w), spatial), [0, 2, 1, ...spatial]);
  const ones = c.kernel.map(() => 1);
  const made =
    imageConvolution(spread, room, turned, { ...c, stride: ones }) ??
    correlate(framed(spread, room, c), turned, ones, c.dilation);
  return wrap(made.lazydata, [self, w], (x) => [
    self.requiresGrad ? convolve(x, w, c) : undefined,
    w.requiresGrad ? weightsOf(x, self, c) : undefined,
  ]);
}

/**
 * The weights, from this input and an output: taps and positions change roles, as do samples and channels.
 */
function weightsOf(self: Tensor, g: Tensor, c: Convolution): Tensor {
  const spatial = c.kernel.map((_, i) => 3 + i);
  const used = c.pads.map(([before], i): Interval => {
    const last = (at(g.shape, 3 + i) - 1) * at(c.stride, i) + reach(c, i);
    return [before, last - Number(before) - at(c.sizes, i)];
  });
  const made = permute(
    correlate(
      permute(framed(detach(self), used, c), [2, 1, 0, ...spatial]),
      permute(detach(g), [1, 2, 0, ...spatial]),
      c.dilation,
      c.stride,
    ),
    [1, 2, 0, ...spatial],
  );
  return wrap(made.lazydata, [self, g], (w) => [
    self.requiresGrad ? unconvolve(g, w, c) : undefined,
    g.requiresGrad ? convolve(self, w, c) : undefined,
  ]);
}

export function batched(self: Tensor, method: string, n: number): Batched<Tensor> {
  if (self.ndim === n + 2) return { x: self, undo: (y) => y };
  if (self.ndim === n + 1) return { x: unsqueeze(self, 0), undo: (y) => squeeze(y, 0) };
  throw new ShapeError(
    `${method}: shape ${showShape(self.shape)} has ${self.ndim} dims, expected ${n + 2} (batch, channels, ${n} spatial) or ${n + 1}`,
  );
}

function convOperands(
  self: Tensor,
  method: string,
  w: Tensor,
  bias: Tensor | null | undefined,
  n: number,
  groups: number,
  axis: 0 | 1,
) {
  const { x, undo } = batched(self, method, n);
  const [c, cw] = [sizeAt(x, 1), at(w.shape, 0)];
  const channels = axis === 0 ? at(w.shape, 1) * groups : cw;
  const outputs = axis === 0 ? cw : at(w.shape, 1) * groups;
  const split = Number.isInteger(groups) && groups >= 1 && c % groups === 0 && cw % groups === 0;
  if (w.ndim !== n + 2 || c !== channels || !split) {
    const layout = axis === 0 ? "[out, in / groups, kernel]" : "[in, out / groups, kernel]";
    throw new ShapeError(
      `${method}: input ${showShape(self.shape)}, weight ${showShape(w.shape)} and groups ${groups} do not fit; ` +
        `the weight is ${layout} with ${n} kernel sizes, and groups divides its channels and the input's ${c}`,
    );
  }
  if (bias != null && (bias.ndim !== 1 || bias.size !== outputs)) {
    throw new ShapeError(`${method}: bias has shape ${showShape(bias.shape)}, expected [${outputs}]`);
  }
  const type = promote(x.dtype, w.dtype);
  if (type.kind === "bool") throw new DTypeError(`${method}: bool cannot be convolved; cast to float32`);
  // half-width floats would lose what they add: float32 holds the running sum
  const wide = isNarrow(type) ? dtypes.float32 : type;
  const finish = (y: Tensor): Tensor => {
    const joined = reshape(y, [...y.lazydata.shape.slice(0, 1), outputs, ...y.lazydata.shape.slice(3)]);
    const shifted =
      bias == null ? joined : add(joined, reshape(cast(bias, wide), [outputs, ...range(n).map(() => 1)]));
    return undo(cast(shifted, type));
  };
  const [batch, , ...spatial] = x.lazydata.shape as readonly [Sint, Sint, ...Sint[]];
  const grouped = reshape(cast(x, wide), [batch, groups, c / groups, ...spatial]);
  const weights = reshape(cast(w, wide), [groups, cw / groups, ...w.shape.slice(1)]);
  return { grouped, weights, finish };
}

function conv(
  self: Tensor,
  method: string,
  w: Tensor,
  bias: Tensor | null | undefined,
  n: number,
  options: ConvOptions,
): Tensor {
  const { stride = 1, padding = 0, dilation = 1, groups = 1 } = options;
  const { grouped, weights, finish } = convOperands(self, method, w, bias, n, groups, 0);
  const f: Frame = {
    kernel: weights.shape.slice(3),
    stride: perDim(method, "stride", stride, n, 1),
    dilation: perDim(method, "dilation", dilation, n, 1),
  };
  const sizes = sizesFrom(grouped, 3);
  const pads = paddingOf(method, padding, f);
  const room = pads.map(([before, after], i) => at(sizes, i) + Number(before) + Number(after));
  const short = range(n).find((i) => at(room, i) < reach(f, i) || f.kernel[i] === 0);
  if (short !== undefined) {
    throw new ShapeError(
      `${method}: a kernel of ${f.kernel[short]} with dilation ${f.dilation[short]} does not fit into ` +
        `${room[short]} elements (input ${showShape(self.shape)}, padding included); pad more or use a smaller kernel`,
    );
  }
  return finish(convolve(grouped, weights, { ...f, sizes, pads }));
}

function convTranspose(
  self: Tensor,
  method: string,
  w: Tensor,
  bias: Tensor | null | undefined,
  n: number,
  options: ConvTransposeOptions,
): Tensor {
  const { stride = 1, padding = 0, outputPadding = 0, dilation = 1, groups = 1 } = options;
  const { grouped, weights, finish } = convOperands(self, method, w, bias, n, groups, 1);
  const f: Frame = {
    kernel: weights.shape.slice(3),
    stride: perDim(method, "stride", stride, n, 1),
    dilation: perDim(method, "dilation", dilation, n, 1),
  };
  const before = perDim(method, "padding", padding, n, 0);
  const after = perDim(method, "outputPadding", outputPadding, n, 0);
  const large = after.findIndex((a, i) => a >= Math.max(at(f.stride, i), at(f.dilation, i)));
  if (large >= 0) {
    throw new ArgumentError(
      `${method}: outputPadding ${after[large]} must be smaller than stride ${f.stride[large]} or dilation ${f.dilation[large]}`,
    );
  }
  const sizes = sizesFrom(grouped, 3).map(
    (o, i) => (o - 1) * at(f.stride, i) + reach(f, i) - 2 * at(before, i) + at(after, i),
  );
  const empty = sizes.findIndex((s) => s < 1);
  if (empty >= 0) {
    throw new ShapeError(
      `${method}: input ${showShape(self.shape)} with padding [${before}] leaves size ${sizes[empty]} in spatial dim ${empty}; pad less`,
    );
  }
  const pads = before.map((b, i): Interval => [b, b - at(after, i)]);
  return finish(unconvolve(grouped, weights, { ...f, sizes, pads }));
}

export function conv1d(
  self: Tensor,
  weight: Tensor,
  bias?: Tensor | null,
  options: ConvOptions = {},
): Tensor {
  return conv(self, "conv1d", weight, bias, 1, options);
}
export function conv2d(
  self: Tensor,
  weight: Tensor,
  bias?: Tensor | null,
  options: ConvOptions = {},
): Tensor {
  return conv(self, "conv2d", weight, bias, 2, options);
}
export function conv3d(
  self: Tensor,
  weight: Tensor,
  bias?: Tensor | null,
  options: ConvOptions = {},
): Tensor {
  return conv(self, "conv3d", weight, bias, 3, options);
}
export function convTranspose1d(
  self: Tensor,
  weight: Tensor,
  bias?: Tensor | null,
  options: ConvTransposeOptions = {},
): Tensor {
  return convTranspose(self, "convTranspose1d", weight, bias, 1, options);
}
export function convTranspose2d(
  self: Tensor,
  weight: Tensor,
  bias?: Tensor | null,
  options: ConvTransposeOptions = {},
): Tensor {
  return convTranspose(self, "convTranspose2d", weight, bias, 2, options);
}
export function convTranspose3d(
  self: Tensor,
  weight: Tensor,
  bias?: Tensor | null,
  options: ConvTransposeOptions = {},
): Tensor {
  return convTranspose(self, "convTranspose3d", weight, bias, 3, options);
}

/** [lead, a0, b0, a1, b1, ...] -> [lead, first of each pair, other of each pair]. */
function interleaved(lead: number, n: number, first: 0 | 1): number[] {
  const pairs = (part: number): number[] => range(n).map((i) => lead + 2 * i + part);
  return [...range(lead), ...pairs(first), ...pairs(1 - first)];
}

/** Zeros before and after each spatial dim. */
function paddingOf(method: string, padding: PerDim | "same" | "valid", f: Frame): Interval[] {
  if (typeof padding !== "string") {
    return perDim(method, "padding", padding, f.kernel.length, 0).map((p): Interval => [p, p]);
  }
  if (padding === "valid") return f.kernel.map((): Interval => [0, 0]);
  if (padding !== "same") {
    throw new ArgumentError(`${method}: padding is "${padding}", expected numbers, "same" or "valid"`);
  }
  if (f.stride.some((s) => s !== 1)) {
    throw new ArgumentError(
      `${method}: padding "same" takes stride 1, got [${f.stride}]; give the padding in numbers`,
    );
  }
  // an odd number of zeros leaves the larger part at the end
  return f.kernel.map((_, i): Interval => {
    const all = reach(f, i) - 1;
    return [Math.floor(all / 2), all - Math.floor(all / 2)];
  });
}
