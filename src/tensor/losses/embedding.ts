// Losses that bring together what belongs together: rankings, triplets, angles. Part of gradloom/distances.

import { cast } from "../core.ts";
import {
  add,
  div,
  eq,
  lt,
  minimum,
  mul,
  ne,
  neg,
  sqrt,
  square,
  sub,
  toFloat,
  where,
} from "../math/arithmetic.ts";
import { sum } from "../reduce/reduce.ts";
import type { Tensor } from "../tensor.ts";
import { together } from "./common.ts";
import { pairwiseDistance } from "./distance.ts";
import { type LossOptions, logSigmoid, type MarginOptions, reduced, type TripletOptions } from "./loss.ts";

/** What is below 0 becomes 0. */
function hinge(self: Tensor): Tensor {
  return where(lt(self, 0), 0, self);
}
export function hingeEmbeddingLoss(
  self: Tensor,
  target: Tensor,
  { margin = 1, reduction }: MarginOptions = {},
): Tensor {
  const apart = where(ne(target, 1), hinge(add(neg(self), margin)), 0);
  return reduced(add(apart, where(ne(target, -1), self, 0)), "hingeEmbeddingLoss", reduction);
}
export function marginRankingLoss(
  self: Tensor,
  other: Tensor,
  target: Tensor,
  { margin = 0, reduction }: MarginOptions = {},
): Tensor {
  const loss = hinge(add(mul(neg(target), sub(self, other)), margin));
  return reduced(cast(loss, toFloat(loss.dtype)), "marginRankingLoss", reduction);
}
export function tripletMarginLoss(
  self: Tensor,
  positive: Tensor,
  negative: Tensor,
  options: TripletOptions = {},
): Tensor {
  const { margin = 1, p = 2, eps = 1e-6, swap = false, reduction } = options;
  const near = pairwiseDistance(self, positive, { p, eps });
  const far = pairwiseDistance(self, negative, { p, eps });
  const other = swap ? minimum(far, pairwiseDistance(positive, negative, { p, eps })) : far;
  return reduced(hinge(add(sub(near, other), margin)), "tripletMarginLoss", reduction);
}
export function cosineEmbeddingLoss(
  self: Tensor,
  other: Tensor,
  target: Tensor,
  { margin = 0, reduction }: MarginOptions = {},
): Tensor {
  const [a, b] = together(self, "cosineEmbeddingLoss", other);
  const squares = (x: Tensor): Tensor => add(sum(square(x), -1), 1e-12);
  const cosine = div(sum(mul(a, b), -1), sqrt(mul(squares(a), squares(b))));
  const apart = hinge(sub(cosine, margin));
  const loss = where(eq(target, 1), add(neg(cosine), 1), where(eq(target, -1), apart, 0));
  return reduced(loss, "cosineEmbeddingLoss", reduction);
}
export function softMarginLoss(self: Tensor, target: Tensor, { reduction }: LossOptions = {}): Tensor {
  const [x, t] = together(self, "softMarginLoss", target);
  return reduced(neg(logSigmoid(mul(x, t))), "softMarginLoss", reduction);
}
