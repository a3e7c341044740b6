// Losses that compare classes with each other: multiMarginLoss, multilabelMarginLoss,
// multilabelSoftMarginLoss. This tensor holds a score for each class along its last dim.

import { dtypes } from "../../dtype.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../errors.ts";
import { cast, counting, detach } from "../core.ts";
import {
  add,
  bitwiseAnd,
  bitwiseOr,
  eq,
  gt,
  le,
  logicalNot,
  lt,
  mul,
  neg,
  square,
  sub,
  toFloat,
  where,
} from "../math/arithmetic.ts";
import { rsub } from "../math/rounding.ts";
import { expand, reshape, unsqueeze } from "../movement/views.ts";
import { logsigmoid } from "../neural/activations.ts";
import { mean, sum } from "../reduce/reduce.ts";
import { cumsum } from "../reduce/scan.ts";
import { any } from "../reduce/totals.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import { requireRange } from "../wholes.ts";
import { together } from "./common.ts";
import { type MarginOptions, reduced, type WeightedLossOptions } from "./loss.ts";

export interface MultiMarginOptions<T> extends MarginOptions {
  /** the power of each shortfall: 1 (the default) or 2 */
  readonly p?: 1 | 2;
  /** multiplies the loss of each class */
  readonly weight?: T | null;
}

/** [batch, classes] scores of one type, and targets that fit them. */
function scores(self: Tensor, method: string, target: Tensor, perClass: boolean): [Tensor, Tensor] {
  if (self.ndim === 0)
    return scores(reshape(self, 1), method, perClass ? reshape(target, 1) : target, perClass);
  if (self.ndim === 1 && !perClass && target.size === 1 && target.ndim === 1) {
    return scores(self, method, reshape(target, []), perClass);
  }
  const shape = perClass ? self.shape : self.shape.slice(0, -1);
  if (self.ndim < 1 || self.ndim > 2 || showShape(target.shape) !== showShape(shape)) {
    throw new ShapeError(
      `${method}: input ${showShape(self.shape)} and target ${showShape(target.shape)} do not fit; expected [classes] or ` +
        `[batch, classes], and a target of shape ${perClass ? "the input's" : "[] or [batch]"}`,
    );
  }
  if (!target.dtype.isInt) {
    throw new DTypeError(`${method}: class numbers are integers, got ${target.dtype.name}; cast the target`);
  }
  // of several classes -1 is the end of the list
  requireRange(method, target, { size: self.shape.at(-1) as number, ...(perClass && { ignored: -1 }) });
  return [cast(self, toFloat(self.dtype)), cast(detach(target), dtypes.int32)];
}
/** Whether each of the target's numbers is the class: [..., targets, classes]. */
function isClass(self: Tensor, numbers: Tensor): Tensor {
  const classes = self.shape.at(-1) as number;
  const full = [...numbers.shape, classes];
  return eq(expand(unsqueeze(numbers, -1), full), expand(counting(self, classes), full));
}

export function multiMarginLoss(
  self: Tensor,
  target: Tensor,
  options: MultiMarginOptions<Tensor> = {},
): Tensor {
  const method = "multiMarginLoss";
  const { p = 1, margin = 1, weight, reduction } = options;
  if (p !== 1 && p !== 2) throw new ArgumentError(`${method}: p is ${p}, expected 1 or 2`);
  const [x, t] = scores(self, method, target, false);
  const classes = x.shape.at(-1) as number;
  if (weight != null && (weight.ndim !== 1 || weight.size !== classes)) {
    throw new ShapeError(
      `${method}: weight has shape ${showShape(weight.shape)}, expected one number for each of the ${classes} classes`,
    );
  }
  const right = isClass(x, t);
  const own = sum(where(right, x, 0), -1, true);
  const short = add(sub(x, own), margin);
  const hinge = where(bitwiseOr(right, le(short, 0)), 0, p === 2 ? square(short) : short);
  const scaled = weight == null ? hinge : mul(hinge, sum(where(right, cast(weight, x.dtype), 0), -1, true));
  return reduced(mul(sum(scaled, -1), 1 / classes), method, reduction);
}
export function multilabelMarginLoss(
  self: Tensor,
  target: Tensor,
  { reduction }: MarginOptions = {},
): Tensor {
  const method = "multilabelMarginLoss";
  const [x, t] = scores(self, method, target, true);
  const classes = x.shape.at(-1) as number;
  const listed = eq(cumsum(cast(lt(t, 0), dtypes.int32), -1), 0);
  const named = bitwiseAnd(isClass(x, t), unsqueeze(listed, -1));
  const targets = any(named, -2);
  const own = sum(where(named, unsqueeze(x, -2), 0), -1);
  const short = add(sub(unsqueeze(x, -2), unsqueeze(own, -1)), 1);
  const counts = bitwiseAnd(
    bitwiseAnd(unsqueeze(listed, -1), unsqueeze(logicalNot(targets), -2)),
    gt(short, 0),
  );
  return reduced(mul(sum(where(counts, short, 0), [-2, -1]), 1 / classes), method, reduction);
}
export function multilabelSoftMarginLoss(
  self: Tensor,
  target: Tensor,
  { weight, reduction }: WeightedLossOptions<Tensor> = {},
): Tensor {
  const [x, t] = together(self, "multilabelSoftMarginLoss", target);
  const loss = neg(add(mul(t, logsigmoid(x)), mul(rsub(t, 1), logsigmoid(neg(x)))));
  const scaled = weight == null ? loss : mul(loss, weight);
  return reduced(mean(scaled, -1), "multilabelSoftMarginLoss", reduction);
}
