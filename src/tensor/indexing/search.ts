// Reading at indices that are computed (gradloom/scatter): take, and where values belong in a sorted row.

import { dtypes } from "../../dtype.ts";
import { ArgumentError, ShapeError } from "../../errors.ts";
import { arraysEqual } from "../../helpers.ts";
import { LazyBuffer } from "../../lazy/lazybuffer.ts";
import { cast, wrap } from "../core.ts";
import { bitwiseOr, le, lt, toFloat } from "../math/arithmetic.ts";
import { isnan } from "../math/rounding.ts";
import { ravel } from "../movement/arrange.ts";
import { axisOf, expand, unsqueeze } from "../movement/views.ts";
import { sum } from "../reduce/reduce.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import { fromEnd, gathered, indexed, misfit, pick, type SearchOptions } from "./getitem.ts";

export function takeAlongDim(self: Tensor, index: Tensor, dim?: number): Tensor {
  if (dim === undefined) {
    const checked = indexed("takeAlongDim", index, self.size, true);
    return gathered(ravel(self), 0, ravel(checked), (i, n) => fromEnd(i, n));
  }
  const at = axisOf(self, "takeAlongDim", dim);
  const places = indexed("takeAlongDim", index, self.shape[at] as number, true);
  if (index.ndim !== self.ndim) throw misfit(self, "takeAlongDim", dim, index);
  const common = self.shape.map((s, d) => (s === 1 ? (index.shape[d] as number) : s));
  const x = expand(self, common.with(at, self.shape[at] as number));
  return gathered(x, at, expand(places, common.with(at, index.shape[at] as number)), (i, n) => fromEnd(i, n));
}
export function take(self: Tensor, index: Tensor): Tensor {
  return pick(ravel(self), 0, [indexed("take", index, self.size, true)], (i, n) => fromEnd(i, n));
}
export function searchsorted(
  self: Tensor,
  values: Tensor | number,
  { right, side, sorter }: SearchOptions<Tensor> = {},
): Tensor {
  if (typeof values === "number") {
    const wanted = wrap(LazyBuffer.constant(self.device, [], toFloat(self.dtype), values));
    return searchsorted(self, wanted, { right, side, sorter });
  }
  if (side !== undefined && side !== "left" && side !== "right") {
    throw new ArgumentError(`searchsorted: side is ${side}, expected "left" or "right"`);
  }
  if (right === true && side === "left") {
    throw new ArgumentError('searchsorted: right and side "left" contradict each other; give one of them');
  }
  if (sorter !== undefined) return searchsorted(takeAlongDim(self, sorter, -1), values, { right, side });
  if (
    self.ndim === 0 ||
    (self.ndim > 1 && !arraysEqual(self.shape.slice(0, -1), values.shape.slice(0, -1)))
  ) {
    throw new ShapeError(
      `searchsorted: values ${showShape(values.shape)} do not fit the sorted ${showShape(self.shape)}; it is a vector, or all dims but the last agree`,
    );
  }
  const full = [...values.shape, self.shape.at(-1) as number];
  const x = expand(self.ndim === 1 || values.ndim === 0 ? self : unsqueeze(self, -2), full);
  const v = expand(unsqueeze(values, -1), full);
  const before = right === true || side === "right" ? le(x, v) : lt(x, v);
  return sum(cast(bitwiseOr(before, isnan(v)), dtypes.int32), -1); // NaN comes last
}
export function bucketize(
  self: Tensor,
  boundaries: Tensor,
  options: { readonly right?: boolean } = {},
): Tensor {
  return searchsorted(boundaries, self, options);
}
