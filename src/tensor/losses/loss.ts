// Losses: how far a prediction is from its target, by the names and rules of torch.nn.functional. This tensor
// is the prediction. All take `reduction`: "mean" (the default), "sum" or "none".

import { dtypes } from "../../dtype.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../errors.ts";
import { numbersOf } from "../conv/resample.ts";
import { cast, detach, wrap } from "../core.ts";
import {
  add,
  bitwiseAnd,
  div,
  eq,
  exp,
  isNarrow,
  log,
  maximum,
  minimum,
  mul,
  ne,
  neg,
  square,
  sub,
  toFloat,
  where,
} from "../math/arithmetic.ts";
import { log1p, sigmoid } from "../math/elementary.ts";
import { axisOf, expand, reduceSum, reshape } from "../movement/views.ts";
import { logSoftmax, softmax } from "../neural/softmax.ts";
import { drop, mean, sum } from "../reduce/reduce.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import { requireRange } from "../wholes.ts";
import { along, magnitude, scalar, together } from "./common.ts";

export type Reduction = "mean" | "sum" | "none";
export interface LossOptions {
  readonly reduction?: Reduction;
}
export interface WeightedLossOptions<T> extends LossOptions {
  /** multiplies the loss of each element */
  readonly weight?: T | null;
}
export interface BceOptions<T> extends WeightedLossOptions<T> {
  /** multiplies the loss of targets that are 1 */
  readonly posWeight?: T | null;
}
export interface ClassLossOptions<T> extends LossOptions {
  /** multiplies the loss of each class */
  readonly weight?: T | null;
  /** targets of this number count for nothing; default -100 */
  readonly ignoreIndex?: number;
}
export interface CrossEntropyOptions<T> extends ClassLossOptions<T> {
  /** the part of the target that is spread over all classes; default 0 */
  readonly labelSmoothing?: number;
}

/** `fn` in float32 where this tensor is narrower: its sums would lose what they add. */
export function wide(self: Tensor, fn: (x: Tensor) => Tensor): Tensor {
  if (!isNarrow(self.dtype)) return fn(cast(self, toFloat(self.dtype)));
  return cast(fn(cast(self, dtypes.float32)), self.dtype);
}
export function reduced(self: Tensor, method: string, reduction: Reduction = "mean"): Tensor {
  if (reduction === "none") return self;
  if (reduction === "sum") return sum(self);
  if (reduction === "mean") return mean(self);
  throw new ArgumentError(`${method}: reduction is "${reduction}", expected "mean", "sum" or "none"`);
}

// ---- classes ----

/** The classes that numbers in `target` choose along `axis`: what both kinds of class loss need. */
function choice(self: Tensor, method: string, target: Tensor, axis: number, ignored?: number) {
  const { shape } = self.lazydata;
  const rest = shape.toSpliced(axis, 1);
  if (target.ndim !== rest.length || !rest.every((s, i) => s === target.lazydata.shape[i])) {
    throw new ShapeError(
      `${method}: input ${showShape(self.shape)} has its classes along dim ${axis}, so the target is ${showShape(rest)} with ` +
        `class numbers; got ${showShape(target.shape)}`,
    );
  }
  if (!target.dtype.isInt) {
    throw new DTypeError(`${method}: class numbers are integers, got ${target.dtype.name}; cast the target`);
  }
  const range = { size: self.shape[axis] as number, ...(ignored !== undefined && { ignored }) };
  const numbers = cast(detach(requireRange(method, target, range)), dtypes.int32);
  const index = expand(reshape(numbers, shape.with(axis, 1)), shape);
  return { numbers, index, chosen: eq(index, numbersOf(self, axis)) };
}

/** The loss of log-probabilities along `axis`, or of logits, given class numbers. */
function classLoss(
  self: Tensor,
  method: string,
  target: Tensor,
  axis: number,
  options: CrossEntropyOptions<Tensor>,
  logits: boolean,
): Tensor {
  const { ignoreIndex = -100, labelSmoothing: smooth = 0, reduction = "mean" } = options;
  const { numbers, index, chosen } = choice(self, method, target, axis, ignoreIndex);
  const weight = classWeight(self, method, axis, options.weight);
  const kept = ne(index, ignoreIndex);
  const hit = bitwiseAnd(chosen, kept);
  const one = weight ?? scalar(self, 1);
  const rest = smooth / (self.shape[axis] as number);
  const spread = cast(where(chosen, 1 - smooth + rest, rest), self.dtype);
  const coefficients = smooth === 0 ? where(hit, one, 0) : where(kept, mul(spread, one), 0);
  // one term of the sum is chosen by its number: that becomes an indexed load
  const terms = (logs: Tensor): Tensor =>
    smooth === 0 ? where(hit, weight === undefined ? logs : mul(logs, weight), 0) : mul(logs, coefficients);
  const loss = logits
    ? entropy(self, axis, terms, coefficients)
    : neg(drop(reduceSum(terms(self), [axis]), [axis], false));
  if (reduction !== "mean") return reduced(loss, method, reduction);
  const counts =
    weight === undefined
      ? cast(ne(numbers, ignoreIndex), self.dtype)
      : drop(reduceSum(where(hit, weight, 0), [axis]), [axis], false);
  // divided before the sum: so the count and the sum are one kernel
  return sum(div(loss, sum(counts, undefined, true)));
}
/**
 * Minus the sum along `axis` of coefficients times the log-softmax of this tensor; `terms` makes the
 * products. The gradient is computed from the logits again: nothing of the size of
 * the logits is stored on the way.
 */
function entropy(self: Tensor, axis: number, terms: (logs: Tensor) => Tensor, coefficients: Tensor): Tensor {
  const sum = drop(reduceSum(terms(logSoftmax(detach(self), axis)), [axis]), [axis], false);
  return wrap(neg(sum).lazydata, [self, coefficients], (g) => {
    const flow = expand(reshape(g, self.lazydata.shape.with(axis, 1)), self.lazydata.shape);
    const share = sub(mul(softmax(self, axis), reduceSum(coefficients, [axis])), coefficients);
    return [mul(share, flow), coefficients.requiresGrad ? mul(neg(logSoftmax(self, axis)), flow) : undefined];
  });
}
function classWeight(
  self: Tensor,
  method: string,
  axis: number,
  weight: Tensor | null | undefined,
): Tensor | undefined {
  if (weight == null) return undefined;
  if (weight.ndim === 1 && weight.size === self.shape[axis]) {
    return expand(along(cast(detach(weight), self.dtype), axis, self.ndim), self.lazydata.shape);
  }
  throw new ShapeError(
    `${method}: weight has shape ${showShape(weight.shape)}, expected one number for each of the ${self.shape[axis]} classes`,
  );
}
/** The loss of logits, given a probability for each class. */
function softClassLoss(
  self: Tensor,
  method: string,
  target: Tensor,
  axis: number,
  options: CrossEntropyOptions<Tensor>,
): Tensor {
  const { labelSmoothing: smooth = 0 } = options;
  if (!target.dtype.isFloat) {
    throw new DTypeError(
      `${method}: a target of the input's shape holds probabilities, got ${target.dtype.name}; cast it, or give class numbers of one dim less`,
    );
  }
  const goal = smooth === 0 ? target : add(mul(target, 1 - smooth), smooth / (self.shape[axis] as number));
  const weight = classWeight(self, method, axis, options.weight);
  const coefficients = weight === undefined ? cast(goal, self.dtype) : mul(cast(goal, self.dtype), weight);
  const terms = (logs: Tensor): Tensor => mul(logs, detach(coefficients));
  return reduced(entropy(self, axis, terms, coefficients), method, options.reduction);
}

function classAxis(self: Tensor, method: string): number {
  if (self.ndim > 0) return self.ndim === 1 ? 0 : 1;
  throw new ShapeError(
    `${method}: a scalar has no classes; expected [classes], [batch, classes] or more dims`,
  );
}

export function crossEntropy(
  self: Tensor,
  target: Tensor,
  options: CrossEntropyOptions<Tensor> = {},
): Tensor {
  const method = "crossEntropy";
  const axis = classAxis(self, method);
  const { labelSmoothing = 0 } = options;
  if (!(labelSmoothing >= 0 && labelSmoothing <= 1)) {
    throw new ArgumentError(`${method}: labelSmoothing is ${labelSmoothing}, expected a number from 0 to 1`);
  }
  return wide(self, (x) =>
    showShape(target.shape) === showShape(self.shape)
      ? softClassLoss(x, method, target, axis, options)
      : classLoss(x, method, target, axis, options, true),
  );
}
export function nllLoss(self: Tensor, target: Tensor, options: ClassLossOptions<Tensor> = {}): Tensor {
  const axis = classAxis(self, "nllLoss");
  return wide(self, (x) => classLoss(x, "nllLoss", target, axis, options, false));
}
export function sparseCategoricalCrossentropy(
  self: Tensor,
  target: Tensor,
  options: CrossEntropyOptions<Tensor> = {},
): Tensor {
  const method = "sparseCategoricalCrossentropy";
  const axis = axisOf(self, method, -1);
  return wide(self, (x) => classLoss(x, method, target, axis, { ignoreIndex: -1, ...options }, true));
}

// ---- probabilities ----

const unlike = (self: Tensor, method: string, target: Tensor, what: string): ShapeError =>
  new ShapeError(
    `${method}: input ${showShape(self.shape)} and target ${showShape(target.shape)} ${what}; expand or reshape one`,
  );
function sameShape(self: Tensor, method: string, target: Tensor): void {
  if (showShape(target.shape) !== showShape(self.shape))
    throw unlike(self, method, target, "must have the same shape");
}
const warned = new Set<string>();
/** Both as floats of one shape. [n, 1] with [n] would be broadcast to [n, n], which is hardly ever meant. */
export function compared(self: Tensor, method: string, target: Tensor): [Tensor, Tensor] {
  const both = together(self, method, target);
  const shape = showShape(both[0].shape);
  if (![self, target].some((t) => showShape(t.shape) === shape) && !warned.has(method)) {
    warned.add(method);
    console.warn(`gradloom: ${unlike(self, method, target, `are compared as ${shape}`).message}`);
  }
  return both;
}
function weighted(self: Tensor, weight: Tensor | null | undefined): Tensor {
  return weight == null ? self : mul(self, weight);
}

export function binaryCrossEntropy(
  self: Tensor,
  target: Tensor,
  { weight, reduction }: WeightedLossOptions<Tensor> = {},
): Tensor {
  sameShape(self, "binaryCrossEntropy", target);
  const [x, t] = together(self, "binaryCrossEntropy", target);
  const [p, goal] = [detach(x), detach(t)];
  const yes = mul(maximum(log(p), -100), goal);
  const no = mul(maximum(log(add(neg(p), 1)), -100), add(neg(goal), 1));
  // the slope stays finite at 0 and 1
  const loss = wrap(neg(add(yes, no)).lazydata, [x, t], (g) => [
    div(mul(g, sub(x, t)), maximum(mul(x, add(neg(x), 1)), 1e-12)),
    t.requiresGrad ? mul(g, sub(log(add(neg(x), 1)), log(x))) : undefined,
  ]);
  return reduced(weighted(loss, weight), "binaryCrossEntropy", reduction);
}

/** log(sigmoid(x)) that neither overflows nor has a corner at 0. */
export function logSigmoid(self: Tensor): Tensor {
  const x = detach(self);
  const value = sub(minimum(x, 0), log1p(exp(neg(magnitude(x)))));
  return wrap(value.lazydata, [self], (g) => [mul(g, sigmoid(neg(self)))]);
}
export function bceWithLogits(self: Tensor, target: Tensor, options: BceOptions<Tensor> = {}): Tensor {
  sameShape(self, "bceWithLogits", target);
  const [x, t] = together(self, "bceWithLogits", target);
  const { weight, posWeight, reduction } = options;
  const logs = logSigmoid(x);
  const positive = posWeight == null ? logs : mul(logs, add(mul(sub(posWeight, 1), t), 1));
  return reduced(weighted(sub(mul(add(neg(t), 1), x), positive), weight), "bceWithLogits", reduction);
}
export function binaryCrossEntropyWithLogits(
  self: Tensor,
  target: Tensor,
  options: BceOptions<Tensor> = {},
): Tensor {
  return bceWithLogits(self, target, options);
}

// ---- distances ----

export function mseLoss(
  self: Tensor,
  target: Tensor,
  { weight, reduction }: WeightedLossOptions<Tensor> = {},
): Tensor {
  const [x, t] = compared(self, "mseLoss", target);
  return reduced(weighted(square(sub(x, t)), weight), "mseLoss", reduction);
}
export function l1Loss(
  self: Tensor,
  target: Tensor,
  { weight, reduction }: WeightedLossOptions<Tensor> = {},
): Tensor {
  const [x, t] = compared(self, "l1Loss", target);
  return reduced(weighted(magnitude(sub(x, t)), weight), "l1Loss", reduction);
}

export interface MarginOptions extends LossOptions {
  readonly margin?: number;
}
export interface TripletOptions extends MarginOptions {
  readonly p?: number;
  readonly eps?: number;
  /** use the nearer of the two distances to the negative */
  readonly swap?: boolean;
}
