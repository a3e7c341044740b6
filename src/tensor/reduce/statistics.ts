// Reductions that fewer programs use (gradloom/order): those that pass over NaN, pairs of results,
// differences and integrals.

import { ArgumentError, ShapeError } from "../../errors.ts";
import { cast } from "../core.ts";
import { add, div, logicalNot, mul, ne, sub, toFloat, where } from "../math/arithmetic.ts";
import { isnan } from "../math/rounding.ts";
import { cat } from "../movement/join.ts";
import { axisOf, reshape } from "../movement/views.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import { type Axes, dimsOf, mean, std, sum, type Typed, variance } from "./reduce.ts";
import { amax, amin, type DiffOptions, part, vectorNorm } from "./totals.ts";

export function countNonzero(self: Tensor, dim?: Axes): Tensor {
  dimsOf(self, "countNonzero", dim);
  return sum(ne(self, 0), dim);
}

export function aminmax(self: Tensor, dim?: number, keepdim = false): [Tensor, Tensor] {
  return [amin(self, dim, keepdim), amax(self, dim, keepdim)];
}
export function nansum(self: Tensor, dim?: Axes, keepdim = false, typed: Typed = {}): Tensor {
  return sum(where(isnan(self), 0, self), dim, keepdim, typed);
}
export function nanmean(self: Tensor, dim?: Axes, keepdim = false, typed: Typed = {}): Tensor {
  return div(nansum(self, dim, keepdim, typed), sum(logicalNot(isnan(self)), dim, keepdim));
}
export function varMean(self: Tensor, dim?: Axes, keepdim = false, correction = 1): [Tensor, Tensor] {
  return [variance(self, dim, keepdim, correction), mean(self, dim, keepdim)];
}
export function stdMean(self: Tensor, dim?: Axes, keepdim = false, correction = 1): [Tensor, Tensor] {
  return [std(self, dim, keepdim, correction), mean(self, dim, keepdim)];
}

export function dist(self: Tensor, x: Tensor, p = 2): Tensor {
  return vectorNorm(sub(self, x), p);
}

export function diff(self: Tensor, n = 1, dim = -1, { prepend, append }: DiffOptions<Tensor> = {}): Tensor {
  if (self.ndim === 0)
    throw new ShapeError("diff: a 0-d tensor has no neighbours; expected at least one dim");
  if (!Number.isInteger(n) || n < 0)
    throw new ArgumentError(`diff: n is ${n}, expected an integer from 0 up`);
  const at = axisOf(self, "diff", dim);
  const ends = [self, append].filter((t) => t !== undefined);
  const joined = prepend === undefined ? cat(self, ends.slice(1), at) : cat(prepend, ends, at);
  let out: Tensor = n === 0 ? self : joined;
  for (let i = 0; i < n; i++) {
    const size = out.shape[at] as number;
    const [after, before] = [part(out, at, Math.min(1, size), size), part(out, at, 0, Math.max(0, size - 1))];
    out = out.dtype.kind === "bool" ? ne(after, before) : sub(after, before);
  }
  return out;
}
export function trapezoid(
  self: Tensor,
  {
    x,
    dx = 1,
    dim = -1,
  }: {
    readonly x?: Tensor;
    readonly dx?: number;
    readonly dim?: number;
  } = {},
): Tensor {
  const at = axisOf(self, "trapezoid", dim);
  const n = self.shape[at] as number;
  if (n === 0) return cast(sum(self, at), toFloat(self.dtype));
  const mean = mul(add(part(self, at, 1, n), part(self, at, 0, n - 1)), 0.5);
  if (x === undefined) return mul(sum(mean, at), dx);
  const places = x as Tensor;
  if (places.shape.at(places.ndim === 1 ? 0 : at) !== n) {
    throw new ShapeError(
      `trapezoid: x has shape ${showShape(places.shape)} for samples of shape ${showShape(self.shape)}; expected ${n} places along dim ${dim}`,
    );
  }
  const gaps = diff(places, 1, places.ndim === 1 ? 0 : at);
  const aligned =
    places.ndim === 1
      ? reshape(
          gaps,
          self.shape.map((_, i) => (i === at ? n - 1 : 1)),
        )
      : gaps;
  return sum(mul(mean, aligned), at);
}
