// Reductions and what is made of them: sum, extremes, mean, variance.

import { bounds, type DTypeLike, dtypes, sumDType } from "../../dtype.ts";
import { env } from "../../env.ts";
import { ShapeError } from "../../errors.ts";
import { range } from "../../helpers.ts";
import type { Sint } from "../../shape/symbolic.ts";
import { cast, counting, sizeAt, wrap } from "../core.ts";
import {
  bitwiseAnd,
  bitwiseOr,
  bitwiseXor,
  div,
  eq,
  isNarrow,
  logicalNot,
  maximum,
  mul,
  ne,
  neg,
  square,
  sub,
  toFloat,
  where,
} from "../math/arithmetic.ts";
import { axesOf, axisOf, expand, reduceSum, reshape } from "../movement/views.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import { mayWrap, requireFit, watchedSum } from "../wholes.ts";

/** One dim or several; none at all, as in torch, means every dim. */
export type Axes = number | readonly number[];
/**
 * Who of several equal extremes gets the gradient: the first, or all in equal parts;
 * with "equal", NaN is not counted among them.
 */
export type Ties = "first" | "shared" | "equal";
/** The type to compute in and to return: the input is cast first. */
export interface Typed {
  readonly dtype?: DTypeLike;
}

/** Without the reduced dims, unless they are to stay. */
export function drop(self: Tensor, axes: readonly number[], keepdim: boolean): Tensor {
  return keepdim
    ? self
    : reshape(
        self,
        self.lazydata.shape.filter((_, i) => !axes.includes(i)),
      );
}
/**
 * The dims of a reduction: all for undefined and for []. A 0-d tensor has a dim
 * 0 to name, but none to reduce.
 */
export function dimsOf(self: Tensor, method: string, dim: Axes | undefined): number[] {
  if (dim === undefined || (Array.isArray(dim) && dim.length === 0)) return range(self.ndim);
  if (self.ndim > 0) return axesOf(self, method, dim);
  for (const d of typeof dim === "number" ? [dim] : dim) axisOf(self, method, d, 1);
  return [];
}
/** How many elements each result is made of. */
export function countOf(self: Tensor, axes: readonly number[]): number {
  return axes.reduce((n, a) => n * sizeAt(self, a), 1);
}
/** The sum over `dim`, divided by the number of its terms less `correction`. */
function average(
  self: Tensor,
  method: string,
  dim: Axes | undefined,
  keepdim: boolean,
  correction: number,
): Tensor {
  const axes = dimsOf(self, method, dim);
  const { shape } = self.lazydata;
  if (axes.every((a) => typeof shape[a] === "number")) {
    const count = countOf(self, axes);
    const total = sum(mayWrap(self, count) ? cast(self, toFloat(self.dtype)) : self, dim, keepdim);
    const floats = cast(total, toFloat(total.dtype));
    // 41 * (1 / 41) is not 1: a mean is divided, unless 1 / count is exact
    if (correction === 0 && Math.log2(count) % 1) return div(floats, count);
    return mul(floats, 1 / Math.max(0, count - correction));
  }
  // a symbolic size is counted in the kernel, so that one serves every binding;
  // divided before the sum, both are one
  const x = cast(self, toFloat(self.dtype));
  const count = reduceSum(wrap(x.lazydata.const(1)), axes);
  const left = correction === 0 ? count : maximum(sub(count, correction), 0);
  return sum(div(x, expand(left, shape)), dim, keepdim);
}
/**
 * The largest along `axes`, which stay as dims of size 1; `flow` says who of
 * the equal ones gets the gradient.
 */
export function reduceMax(self: Tensor, axes: readonly number[], flow: Ties = "equal"): Tensor {
  const { shape } = self.lazydata;
  return wrap(self.lazydata.r("REDUCE_MAX", axes), [self], (g, out) => {
    const equal = eq(self, expand(out, shape));
    const largest = flow === "equal" ? equal : bitwiseOr(equal, ne(self, self));
    const [at] = axes;
    if (flow === "first" && at !== undefined) return [where(firstOf(largest, at), expand(g, shape), 0)];
    const chosen = cast(largest, g.dtype);
    return [mul(chosen, expand(div(g, reduceSum(chosen, axes)), shape))];
  });
}
/** Of the flags along a dim only the first that is set. */
export function firstOf(self: Tensor, at: number): Tensor {
  const { shape } = self.lazydata;
  const n = shape[at] as Sint;
  // counted down, so that the largest is the first
  const left = reshape(
    neg(counting(self, n)),
    shape.map((_, i) => (i === at ? n : 1)),
  );
  const far = bounds(left.dtype)[0];
  const mine = where(self, expand(left, shape), far);
  return bitwiseAnd(self, eq(mine, expand(reduceMax(mine, [at]), shape)));
}

export function sum(self: Tensor, dim?: Axes, keepdim = false, { dtype }: Typed = {}): Tensor {
  if (dtype !== undefined) return cast(sum(cast(self, dtype), dim, keepdim), dtype);
  // half-width floats would lose what they add: float32 holds the running sum
  if (isNarrow(self.dtype)) return cast(sum(cast(self, dtypes.float32), dim, keepdim), self.dtype);
  const axes = dimsOf(self, "sum", dim);
  requireFit(self, "sum", axes);
  const type = sumDType(self.dtype);
  const isWatched = env.CHECK > 0 && type === dtypes.int32;
  const total = reduceSum(cast(self, isWatched ? dtypes.int64 : type), axes);
  return drop(isWatched ? cast(watchedSum("sum", total), type) : total, axes, keepdim);
}
export function max(self: Tensor, dim?: Axes, keepdim = false): Tensor {
  return extreme(self, "max", dim, keepdim, typeof dim === "number" ? "first" : "shared");
}
/** The largest or the smallest elements, with the gradient as `flow` says. */
export function extreme(
  self: Tensor,
  method: string,
  dim: Axes | undefined,
  keepdim: boolean,
  flow: Ties,
): Tensor {
  const axes = requireElements(self, method, dim);
  const largest = (x: Tensor) => drop(reduceMax(x, axes, flow), axes, keepdim);
  if (method === "max" || method === "amax") return largest(self);
  return upsideDown(largest(upsideDown(self)));
}
/** The smallest becomes the largest, and back. */
export function upsideDown(self: Tensor): Tensor {
  if (self.dtype.kind === "bool") return logicalNot(self);
  return self.dtype.isFloat ? neg(self) : turned(self);
}
export function min(self: Tensor, dim?: Axes, keepdim = false): Tensor {
  return extreme(self, "min", dim, keepdim, typeof dim === "number" ? "first" : "shared");
}
/** ~x turns the order of integers around without overflow. */
export function turned(self: Tensor): Tensor {
  const ones = self.dtype.kind === "int" ? -1 : 2n ** BigInt(self.dtype.bits) - 1n;
  return bitwiseXor(self, wrap(self.lazydata.const(ones)));
}
export function requireElements(self: Tensor, method: string, dim: Axes | undefined): readonly number[] {
  const axes = dimsOf(self, method, dim);
  if (countOf(self, axes) > 0) return axes;
  throw new ShapeError(
    `${method}: shape ${showShape(self.shape)} has no elements along dim ${axes.join(", ")}; there is no ${method} of nothing`,
  );
}

export function mean(self: Tensor, dim?: Axes, keepdim = false, { dtype }: Typed = {}): Tensor {
  if (dtype !== undefined) return mean(cast(self, dtype), dim, keepdim);
  if (isNarrow(self.dtype)) return cast(mean(cast(self, dtypes.float32), dim, keepdim), self.dtype);
  return average(self, "mean", dim, keepdim, 0);
}
export function variance(self: Tensor, dim?: Axes, keepdim = false, correction = 1): Tensor {
  return varianceOf(self, "var", dim, keepdim, correction);
}
function varianceOf(
  self: Tensor,
  method: string,
  dim: Axes | undefined,
  keepdim: boolean,
  correction: number,
): Tensor {
  if (isNarrow(self.dtype)) {
    return cast(varianceOf(cast(self, dtypes.float32), method, dim, keepdim, correction), self.dtype);
  }
  dimsOf(self, method, dim);
  const x = cast(self, toFloat(self.dtype));
  const difference = sub(x, mean(self, dim, true));
  return average(square(difference), method, dim, keepdim, correction);
}
export function std(self: Tensor, dim?: Axes, keepdim = false, correction = 1): Tensor {
  const variance = varianceOf(self, "std", dim, keepdim, correction);
  // equal elements have no direction in which to part: 0, where the root has no finite slope
  return wrap(variance.lazydata.e("SQRT"), [variance], (g, out) => [
    where(eq(out, 0), 0, div(g, mul(out, 2))),
  ]);
}
