// Losses that fewer programs use: robust distances, and the divergence and likelihood of distributions. They
// load on demand, with the distances.

import { ArgumentError } from "../../errors.ts";
import { cast } from "../core.ts";
import { add, div, eq, exp, gt, le, log, lt, maximum, mul, square, sub, where } from "../math/arithmetic.ts";
import { unsqueeze } from "../movement/views.ts";
import { sum } from "../reduce/reduce.ts";
import type { Tensor } from "../tensor.ts";
import { magnitude, scalar, together } from "./common.ts";
import { compared, type LossOptions, l1Loss, type Reduction, reduced } from "./loss.ts";

// ---- robust distances ----

export function smoothL1Loss(
  self: Tensor,
  target: Tensor,
  { beta = 1, reduction }: LossOptions & { beta?: number } = {},
): Tensor {
  if (!(beta >= 0)) throw new ArgumentError(`smoothL1Loss: beta is ${beta}, expected a number from 0 up`);
  if (beta === 0) return l1Loss(self, target, { reduction: reduction ?? "mean" });
  const [x, t] = compared(self, "smoothL1Loss", target);
  const far = magnitude(sub(x, t));
  const loss = where(lt(far, beta), mul(square(far), 0.5 / beta), sub(far, 0.5 * beta));
  return reduced(loss, "smoothL1Loss", reduction);
}
export function huberLoss(
  self: Tensor,
  target: Tensor,
  { delta = 1, reduction }: LossOptions & { delta?: number } = {},
): Tensor {
  if (!(delta > 0)) throw new ArgumentError(`huberLoss: delta is ${delta}, expected a number above 0`);
  const [x, t] = compared(self, "huberLoss", target);
  const far = magnitude(sub(x, t));
  const loss = where(le(far, delta), mul(square(far), 0.5), mul(sub(far, 0.5 * delta), delta));
  return reduced(loss, "huberLoss", reduction);
}

// ---- distributions ----

export function klDiv(
  self: Tensor,
  target: Tensor,
  { reduction = "mean", logTarget = false }: KlDivOptions = {},
): Tensor {
  const [x, t] = compared(self, "klDiv", target);
  const loss = logTarget
    ? mul(exp(t), sub(t, x))
    : sub(where(eq(t, 0), cast(scalar(self, 0), t.dtype), mul(t, log(where(eq(t, 0), 1, t)))), mul(t, x));
  if (reduction !== "batchmean") return reduced(loss, "klDiv", reduction);
  return self.ndim === 0 ? sum(loss) : div(sum(loss), self.shape[0] as number);
}

export function poissonNllLoss(self: Tensor, target: Tensor, options: PoissonOptions = {}): Tensor {
  const { logInput = true, full = false, eps = 1e-8, reduction } = options;
  const [x, t] = compared(self, "poissonNllLoss", target);
  const loss = logInput ? sub(exp(x), mul(t, x)) : sub(x, mul(t, log(add(x, eps))));
  if (!full) return reduced(loss, "poissonNllLoss", reduction);
  const above = where(gt(t, 1), t, 1);
  const stirling = add(sub(mul(above, log(above)), above), mul(log(mul(above, 2 * Math.PI)), 0.5));
  return reduced(add(loss, where(gt(t, 1), stirling, 0)), "poissonNllLoss", reduction);
}
export function gaussianNllLoss(
  self: Tensor,
  target: Tensor,
  variance: Tensor,
  options: GaussianOptions = {},
): Tensor {
  const { full = false, eps = 1e-6, reduction } = options;
  const [x, t] = together(self, "gaussianNllLoss", target);
  // one variance for each row may come without the last dim
  const rows =
    x.ndim > 0 && variance.ndim === x.ndim - 1 && x.shape.slice(0, -1).join() === variance.shape.join();
  const spread = maximum(cast(rows ? unsqueeze(variance, -1) : variance, x.dtype), eps);
  const loss = mul(add(log(spread), div(square(sub(x, t)), spread)), 0.5);
  return reduced(full ? add(loss, 0.5 * Math.log(2 * Math.PI)) : loss, "gaussianNllLoss", reduction);
}

export interface KlDivOptions {
  /** "batchmean": the sum divided by the size of dim 0, which is the divergence of distributions */
  readonly reduction?: Reduction | "batchmean";
  readonly logTarget?: boolean;
}
export interface PoissonOptions extends LossOptions {
  /** this tensor is the logarithm of the mean; default true */
  readonly logInput?: boolean;
  /** add Stirling's approximation of log(target!) */
  readonly full?: boolean;
  readonly eps?: number;
}
export interface GaussianOptions extends LossOptions {
  /** add the constant log(2 pi) / 2 */
  readonly full?: boolean;
  readonly eps?: number;
}
