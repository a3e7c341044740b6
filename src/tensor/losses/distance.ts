// Lengths and distances: p-norms of vectors and of differences, cosines. Their gradients are 0 where a length
// is 0, though the functions have a corner there, as in torch.

import { ArgumentError, ShapeError } from "../../errors.ts";
import { cast, detach, wrap } from "../core.ts";
import { add, div, eq, maximum, mul, ne, sqrt, square, sub, toFloat, where } from "../math/arithmetic.ts";
import { pow } from "../math/elementary.ts";
import { axesOf, expand, reduceSum, unsqueeze } from "../movement/views.ts";
import { dimsOf, drop } from "../reduce/reduce.ts";
import { amax, amin } from "../reduce/totals.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import { magnitude, together } from "./common.ts";

/** `this` to a power, for what is never negative; the slope at 0 is 0. */
function power(self: Tensor, e: number): Tensor {
  const x = detach(self);
  const value = e === 0.5 ? sqrt(x) : pow(x, e);
  return wrap(value.lazydata, [self], (g, out) => [where(eq(self, 0), 0, mul(g, div(mul(out, e), self)))]);
}
/** The p-norm along `axes`, which stay as dims of size 1. */
function lengthOf(self: Tensor, p: number, axes: readonly number[]): Tensor {
  if (p === 0) {
    const count = reduceSum(cast(ne(detach(self), 0), self.dtype), axes);
    return wrap(count.lazydata, [self], (g) => [expand(mul(g, 0), self.lazydata.shape)]);
  }
  if (p === 1) return reduceSum(magnitude(self), axes);
  if (p === 2) return power(reduceSum(square(self), axes), 0.5);
  if (Math.abs(p) === Infinity) {
    const dims = axes.length === 0 ? undefined : axes;
    return p > 0 ? amax(magnitude(self), dims, true) : amin(magnitude(self), dims, true);
  }
  return power(reduceSum(power(magnitude(self), p), axes), 1 / p);
}
export function normalize(self: Tensor, { p = 2, dim = 1, eps = 1e-12 }: NormalizeOptions = {}): Tensor {
  const x = cast(self, toFloat(self.dtype));
  const axes = typeof dim === "number" ? dimsOf(self, "normalize", dim) : axesOf(self, "normalize", dim);
  return div(x, maximum(lengthOf(x, p, axes), eps));
}

export function cosineSimilarity(
  self: Tensor,
  x2: Tensor,
  { dim = 1, eps = 1e-8 }: { dim?: number; eps?: number } = {},
): Tensor {
  const [a, b] = together(self, "cosineSimilarity", x2);
  const axes = dimsOf(a, "cosineSimilarity", dim);
  // divided before the sum: so the lengths and the product are one kernel
  const unit = (x: Tensor): Tensor => div(x, maximum(lengthOf(x, 2, axes), eps));
  return drop(reduceSum(mul(unit(a), unit(b)), axes), axes, false);
}

export function pairwiseDistance(
  self: Tensor,
  x2: Tensor,
  { p = 2, eps = 1e-6, keepdim = false }: PairwiseOptions = {},
): Tensor {
  const [a, b] = together(self, "pairwiseDistance", x2);
  const axes = dimsOf(a, "pairwiseDistance", -1);
  return drop(lengthOf(add(sub(a, b), eps), p, axes), axes, keepdim);
}

export function cdist(self: Tensor, x2: Tensor, p = 2): Tensor {
  if (self.ndim < 2 || x2.ndim < 2 || self.shape.at(-1) !== x2.shape.at(-1)) {
    throw new ShapeError(
      `cdist: got ${showShape(self.shape)} and ${showShape(x2.shape)}; expected rows of one length in at least 2 dims`,
    );
  }
  if (!(p >= 0)) throw new ArgumentError(`cdist: p is ${p}, expected a number from 0 up`);
  const [a, b] = together(unsqueeze(self, -2), "cdist", unsqueeze(x2, -3));
  const last = a.ndim - 1;
  const apart = sub(a, b);
  // rows of no elements are all at distance 0, for every p
  const far = a.shape[last] === 0 ? reduceSum(apart, [last]) : lengthOf(apart, p, [last]);
  return drop(far, [last], false);
}

export interface NormalizeOptions {
  readonly p?: number;
  readonly dim?: number | readonly number[];
  readonly eps?: number;
}
export interface PairwiseOptions {
  readonly p?: number;
  readonly eps?: number;
  readonly keepdim?: boolean;
}
