// What networks are made of: linear maps, normalisation, attention. Losses are in the layer below, dropout
// and embedding further down.

import { ArgumentError, ShapeError } from "../../errors.ts";
import { range } from "../../helpers.ts";
import type { Sint } from "../../shape/symbolic.ts";
import { withRecording } from "../autograd.ts";
import { numbersOf } from "../conv/resample.ts";
import { cast, detach, sizeAt, TensorHandle, wrap } from "../core.ts";
import { dot } from "../linalg/products.ts";
import { along } from "../losses/common.ts";
import { wide } from "../losses/loss.ts";
import { add, eq, lt, mul, square, sub, where } from "../math/arithmetic.ts";
import { rsqrt } from "../math/elementary.ts";
import { expand, reduceSum, reshape, transpose } from "../movement/views.ts";
import { dropout } from "../random/random.ts";
import { max, mean } from "../reduce/reduce.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import { assign } from "../values.ts";
import { softmax } from "./softmax.ts";

/** Multiplies and shifts what was normalised. */
export interface AffineOptions<T> {
  readonly weight?: T | null;
  readonly bias?: T | null;
  /** added to the variance; default 1e-5 */
  readonly eps?: number;
}
export interface BatchNormOptions<T> extends AffineOptions<T> {
  /** use the statistics of this batch, and move the running ones; default false */
  readonly training?: boolean;
  /** how far the running statistics move to those of the batch; default 0.1 */
  readonly momentum?: number;
}
export interface InstanceNormOptions<T> extends AffineOptions<T> {
  readonly runningMean?: T | null;
  readonly runningVar?: T | null;
  /** default true */
  readonly useInputStats?: boolean;
  readonly momentum?: number;
}
export interface RmsNormOptions<T> {
  readonly weight?: T | null;
  /** default: the smallest step of the type at 1 */
  readonly eps?: number | null;
}
export interface AttentionOptions<T> {
  /** bool: which keys a query may see; float: added to the scores */
  readonly attnMask?: T | null;
  readonly dropoutP?: number;
  /** a query sees the keys up to its own number */
  readonly isCausal?: boolean;
  /** default: 1 / sqrt(size of a query) */
  readonly scale?: number | null;
  /** keys and values may have fewer heads (dim -3), each for several of the queries' */
  readonly enableGqa?: boolean;
}

/** Normalised values and the statistics they were normalised with; these keep the reduced dims. */
interface Standardized<T> {
  readonly value: T;
  readonly mean: T;
  readonly variance: T;
}

const EPSILON: Readonly<Record<string, number>> = {
  float64: 2 ** -52,
  float32: 2 ** -23,
  float16: 2 ** -10,
  bfloat16: 2 ** -7,
};

export function linear(self: Tensor, weight: Tensor, bias?: Tensor | null): Tensor {
  if (!(weight instanceof TensorHandle))
    throw new ArgumentError("linear: the weight is not a Tensor; expected nn.parameter(…)");
  if (weight.ndim < 1 || weight.ndim > 2 || self.ndim < 1 || self.shape.at(-1) !== weight.shape.at(-1)) {
    throw new ShapeError(
      `linear: input ${showShape(self.shape)} and weight ${showShape(weight.shape)} do not fit; ` +
        "the weight is [out, in], and in is the last size of the input",
    );
  }
  const y = dot(self, weight.ndim === 2 ? transpose(weight) : weight);
  return bias == null ? y : add(y, bias);
}

// ---- normalisation ----

/** Mean 0 and variance 1 over `axes`. Mean and variance are shared by the values and by their gradient. */
function standardized(self: Tensor, axes: readonly number[], eps: number): Standardized<Tensor> {
  const n = axes.reduce((k, a) => k * sizeAt(self, a), 1);
  const mean = mul(reduceSum(self, axes), 1 / n);
  const centred = sub(self, mean);
  const variance = mul(reduceSum(square(centred), axes), 1 / n);
  // expanded before the root is taken: loops take what does not change out by
  // themselves, and nothing more is stored
  const scale = rsqrt(add(expand(variance, self.lazydata.shape), eps));
  const value = wrap(mul(centred, scale).lazydata, [self], (g, out) => {
    const along = mul(reduceSum(mul(g, out), axes), 1 / n);
    return [mul(sub(sub(g, mul(reduceSum(g, axes), 1 / n)), mul(out, along)), scale)];
  });
  return { value, mean, variance };
}
/** Weight and bias, one number each a channel (dim 1). */
function affineOf(
  self: Tensor,
  method: string,
  weight: Tensor | null | undefined,
  bias: Tensor | null | undefined,
): Tensor {
  const scaled = weight == null ? self : mul(self, perChannel(self, method, "weight", weight));
  return bias == null ? scaled : add(scaled, perChannel(self, method, "bias", bias));
}
function perChannel(self: Tensor, method: string, name: string, x: Tensor): Tensor {
  if (x.ndim === 1 && x.size === self.shape[1]) return along(x, 1, self.ndim);
  throw new ShapeError(
    `${method}: ${name} has shape ${showShape(x.shape)}, expected [${self.shape[1]}]: one number a channel of ${showShape(self.shape)}`,
  );
}

export function batchNorm(
  self: Tensor,
  runningMean?: Tensor | null,
  runningVar?: Tensor | null,
  options: BatchNormOptions<Tensor> = {},
): Tensor {
  const { weight, bias, training = false, momentum = 0.1, eps = 1e-5 } = options;
  if (self.size === 0) return self;
  if (self.ndim < 2) {
    throw new ShapeError(
      `batchNorm: shape ${showShape(self.shape)} has no channels; expected [batch, channels, ...]`,
    );
  }
  if (training) {
    return wide(self, (x) => {
      const axes = range(x.ndim).filter((i) => i !== 1);
      const n = several(self, "batchNorm", axes);
      const { value, mean, variance } = standardized(x, axes, eps);
      move(runningMean, mean, momentum);
      move(runningVar, mul(variance, n / (n - 1)), momentum);
      return affineOf(value, "batchNorm", weight, bias);
    });
  }
  return byRunning(self, "batchNorm", runningMean, runningVar, options);
}
function several(self: Tensor, method: string, axes: readonly number[]): number {
  const n = axes.reduce((k, a) => k * sizeAt(self, a), 1);
  if (n > 1) return n;
  throw new ShapeError(
    `${method}: shape ${showShape(self.shape)} has one value to normalise in each channel; its variance needs at least two`,
  );
}
function byRunning(
  self: Tensor,
  method: string,
  mean: Tensor | null | undefined,
  variance: Tensor | null | undefined,
  { weight, bias, eps = 1e-5 }: AffineOptions<Tensor>,
): Tensor {
  if (mean == null || variance == null) {
    throw new ArgumentError(
      `${method}: without the statistics of the batch it needs runningMean and runningVar`,
    );
  }
  return wide(self, (x) => {
    const shape = x.lazydata.shape;
    // expanded before the root is taken, so that nothing but the result is stored
    const spread = expand(perChannel(x, method, "runningVar", detach(variance)), shape);
    const value = mul(sub(x, perChannel(x, method, "runningMean", detach(mean))), rsqrt(add(spread, eps)));
    return affineOf(value, method, weight, bias);
  });
}

export function layerNorm(
  self: Tensor,
  normalizedShape: number | readonly number[],
  options: AffineOptions<Tensor> = {},
): Tensor {
  const { weight, bias, eps = 1e-5 } = options;
  const axes = lastDims(self, "layerNorm", normalizedShape, weight, bias);
  return wide(self, (x) => {
    const { value } = standardized(x, axes, eps);
    const scaled = weight == null ? value : mul(value, weight);
    return bias == null ? scaled : add(scaled, bias);
  });
}
function lastDims(
  self: Tensor,
  method: string,
  shape: number | readonly number[],
  ...affine: readonly (Tensor | null | undefined)[]
) {
  const sizes = typeof shape === "number" ? [shape] : shape;
  const first = self.ndim - sizes.length;
  const fits = (s: readonly Sint[]): boolean =>
    s.length === sizes.length && sizes.every((n, i) => n === s[i]);
  if (sizes.length > 0 && first >= 0 && fits(self.lazydata.shape.slice(first))) {
    const bad = affine.find((a) => a != null && !fits(a.shape));
    if (bad == null) return sizes.map((_, i) => first + i);
    throw new ShapeError(
      `${method}: weight and bias have the normalised shape ${showShape(sizes)}, got ${showShape(bad.shape)}`,
    );
  }
  throw new ShapeError(
    `${method}: normalizedShape is ${showShape(sizes)}, expected the last sizes of ${showShape(self.shape)}`,
  );
}
export function rmsNorm(
  self: Tensor,
  normalizedShape: number | readonly number[],
  options: RmsNormOptions<Tensor> = {},
): Tensor {
  const { weight } = options;
  const axes = lastDims(self, "rmsNorm", normalizedShape, weight);
  const eps = options.eps ?? EPSILON[self.dtype.name] ?? 2 ** -23;
  return wide(self, (x) => {
    const n = axes.reduce((k, a) => k * sizeAt(x, a), 1);
    const y = mul(x, rsqrt(add(mul(reduceSum(square(x), axes), 1 / n), eps)));
    return weight == null ? y : mul(y, weight);
  });
}

export function groupNorm(self: Tensor, numGroups: number, options: AffineOptions<Tensor> = {}): Tensor {
  const { weight, bias, eps = 1e-5 } = options;
  const channels = sizeAt(self, 1);
  if (self.ndim < 2 || !Number.isInteger(numGroups) || numGroups < 1 || channels % numGroups !== 0) {
    throw new ShapeError(
      `groupNorm: shape ${showShape(self.shape)} with ${numGroups} groups; expected at least 2 dims and groups that divide dim 1`,
    );
  }
  return wide(self, (x) => {
    const { shape } = x.lazydata;
    const parts = [numGroups, channels / numGroups];
    const groups = reshape(x, [shape[0] as Sint, ...parts, ...shape.slice(2)]);
    let { value } = standardized(groups, range(groups.ndim).slice(2), eps);
    // scaled in this shape: another one between the sums and the result would cost a kernel
    const laid = (name: string, y: Tensor): Tensor =>
      reshape(perChannel(x, "groupNorm", name, y), [1, ...parts, ...shape.slice(2).map(() => 1)]);
    if (weight != null) value = mul(value, laid("weight", weight));
    if (bias != null) value = add(value, laid("bias", bias));
    return reshape(value, shape);
  });
}

export function instanceNorm(self: Tensor, options: InstanceNormOptions<Tensor> = {}): Tensor {
  const { runningMean, runningVar, weight, bias, useInputStats = true, momentum = 0.1, eps = 1e-5 } = options;
  if (self.ndim < 3) {
    throw new ShapeError(
      `instanceNorm: shape ${showShape(self.shape)} has no spatial dims; expected [batch, channels, spatial...]`,
    );
  }
  if (!useInputStats) {
    return byRunning(self, "instanceNorm", runningMean, runningVar, options);
  }
  return wide(self, (x) => {
    const axes = range(x.ndim).slice(2);
    const n = several(x, "instanceNorm", axes);
    const { value, mean: average, variance } = standardized(x, axes, eps);
    move(runningMean, mean(average, 0), momentum);
    move(runningVar, mean(mul(variance, n / (n - 1)), 0), momentum);
    return affineOf(value, "instanceNorm", weight, bias);
  });
}

// ---- attention ----

export function scaledDotProductAttention(
  self: Tensor,
  key: Tensor,
  value: Tensor,
  options: AttentionOptions<Tensor> = {},
): Tensor {
  const method = "scaledDotProductAttention";
  const { attnMask, dropoutP = 0, isCausal = false, scale, enableGqa = false } = options;
  checkAttention(self, method, key, value, attnMask, isCausal);
  const [k, v] = enableGqa ? [headsOf(self, method, key), headsOf(self, method, value)] : [key, value];
  const raw = mul(dot(self, transpose(k)), scale ?? 1 / Math.sqrt(self.shape.at(-1) as number));
  const scores = isCausal ? causalOf(raw) : attnMask == null ? raw : masked(raw, attnMask);
  const weights = attnMask == null ? softmax(scores, -1) : softmaxOrZero(scores);
  return dot(dropoutP > 0 ? dropout(weights, dropoutP, true) : weights, v);
}
function checkAttention(
  self: Tensor,
  method: string,
  key: Tensor,
  value: Tensor,
  mask: Tensor | null | undefined,
  causal: boolean,
): void {
  const rows = self.ndim >= 2 && key.ndim >= 2 && value.ndim >= 2;
  if (!rows || self.shape.at(-1) !== key.shape.at(-1) || key.shape.at(-2) !== value.shape.at(-2)) {
    throw new ShapeError(
      `${method}: query ${showShape(self.shape)}, key ${showShape(key.shape)} and value ${showShape(value.shape)} do not fit; ` +
        "expected [..., L, E], [..., S, E] and [..., S, V]",
    );
  }
  if (causal && mask != null) {
    throw new ArgumentError(`${method}: give either attnMask or isCausal; put the causal part into the mask`);
  }
}
/** Each head as often as this tensor has heads for it. */
function headsOf(self: Tensor, method: string, x: Tensor): Tensor {
  const [have, want] = [x.shape.at(-3), self.shape.at(-3)];
  if (have === undefined || want === undefined || want % have !== 0) {
    throw new ShapeError(
      `${method}: enableGqa shares the heads of ${showShape(x.shape)} among those of ${showShape(self.shape)}; dim -3 must divide`,
    );
  }
  const { shape } = x.lazydata;
  const [lead, rest] = [shape.slice(0, -2), shape.slice(-2)];
  return reshape(expand(reshape(x, [...lead, 1, ...rest]), [...lead, want / have, ...rest]), [
    ...lead.slice(0, -1),
    want,
    ...rest,
  ]);
}
function causalOf(self: Tensor): Tensor {
  return where(lt(numbersOf(self, self.ndim - 2), numbersOf(self, self.ndim - 1)), -Infinity, self);
}
function masked(self: Tensor, mask: Tensor): Tensor {
  return mask.dtype.kind === "bool" ? where(mask, self, -Infinity) : add(self, mask);
}
function softmaxOrZero(self: Tensor): Tensor {
  const blind = withRecording(false, () => eq(max(self, -1, true), -Infinity));
  return where(blind, 0, softmax(where(blind, 0, self), -1));
}

/** A running statistic goes towards that of a batch, without gradients. */
function move(running: Tensor | null | undefined, batch: Tensor, momentum: number): void {
  if (running == null) return;
  const now = cast(reshape(detach(batch), running.lazydata.shape), running.dtype);
  assign(running, add(mul(detach(running), 1 - momentum), mul(now, momentum)));
}
