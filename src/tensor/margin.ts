// Losses that compare classes with each other: multiMarginLoss, multilabelMarginLoss, multilabelSoftMarginLoss. This
// tensor holds a score for each class along its last dim.

import { dtypes } from "../dtype.ts";
import { ArgumentError, DTypeError, ShapeError } from "../errors.ts";
import { showShape } from "./base.ts";
import { LossTensor, type MarginOptions, type WeightedLossOptions } from "./loss.ts";
import { toFloat } from "./math.ts";
import { requireTensors } from "./movement.ts";

export interface MultiMarginOptions<T> extends MarginOptions {
  /** the power of each shortfall: 1 (the default) or 2 */
  readonly p?: 1 | 2;
  /** multiplies the loss of each class */
  readonly weight?: T | null;
}

export abstract class MarginTensor extends LossTensor {
  /** [batch, classes] scores of one type, and targets that fit them. */
  #scores(method: string, target: this, perClass: boolean): [this, this] {
    if (this.ndim === 0)
      return this.reshape(1).#scores(method, perClass ? target.reshape(1) : target, perClass);
    if (this.ndim === 1 && !perClass && target.size === 1 && target.ndim === 1) {
      return this.#scores(method, target.reshape([]), perClass);
    }
    const shape = perClass ? this.shape : this.shape.slice(0, -1);
    if (this.ndim < 1 || this.ndim > 2 || showShape(target.shape) !== showShape(shape)) {
      throw new ShapeError(
        `${method}: input ${showShape(this.shape)} and target ${showShape(target.shape)} do not fit; expected [classes] or ` +
          `[batch, classes], and a target of shape ${perClass ? "the input's" : "[] or [batch]"}`,
      );
    }
    if (!target.dtype.isInt) {
      throw new DTypeError(
        `${method}: class numbers are integers, got ${target.dtype.name}; cast the target`,
      );
    }
    return [this.cast(toFloat(this.dtype)), target.detach().cast(dtypes.int32)];
  }
  /** Whether each of the target's numbers is the class: [..., targets, classes]. */
  #isClass(numbers: this): this {
    const classes = this.shape.at(-1) as number;
    const full = [...numbers.shape, classes];
    return numbers.unsqueeze(-1).expand(full).eq(this.counting(classes).expand(full));
  }

  /**
   * How far the other classes come within `margin` of the right one, to the power of `p`, over the number of classes.
   *
   * @example
   * await new Tensor([[1, 2, 0]]).multiMarginLoss(new Tensor([1])).item() // => 0
   */
  multiMarginLoss(target: this, options: MultiMarginOptions<this> = {}): this {
    requireTensors("multiMarginLoss", { target });
    const method = "multiMarginLoss";
    const { p = 1, margin = 1, weight, reduction } = options;
    if (p !== 1 && p !== 2) throw new ArgumentError(`${method}: p is ${p}, expected 1 or 2`);
    const [x, t] = this.#scores(method, target, false);
    const classes = x.shape.at(-1) as number;
    if (weight != null && (weight.ndim !== 1 || weight.size !== classes)) {
      throw new ShapeError(
        `${method}: weight has shape ${showShape(weight.shape)}, expected one number for each of the ${classes} classes`,
      );
    }
    const right = x.#isClass(t);
    const own = right.where(x, 0).sum(-1, true);
    const short = x.sub(own).add(margin);
    const hinge = right.bitwiseOr(short.le(0)).where(0, p === 2 ? short.square() : short);
    const scaled = weight == null ? hinge : hinge.mul(right.where(weight.cast(x.dtype), 0).sum(-1, true));
    return scaled
      .sum(-1)
      .mul(1 / classes)
      .reduced(method, reduction);
  }
  /**
   * How far each class that is no target comes within 1 of each that is. The targets of a row are class numbers up to
   * the first -1.
   *
   * @example
   * await new Tensor([[1, 2, 0.5]]).multilabelMarginLoss(new Tensor([[1, -1, 0]])).item() // => 0
   */
  multilabelMarginLoss(target: this, { reduction }: MarginOptions = {}): this {
    requireTensors("multilabelMarginLoss", { target });
    const method = "multilabelMarginLoss";
    const [x, t] = this.#scores(method, target, true);
    const classes = x.shape.at(-1) as number;
    const listed = t.lt(0).cast(dtypes.int32).cumsum(-1).eq(0);
    const named = x.#isClass(t).bitwiseAnd(listed.unsqueeze(-1));
    const targets = named.any(-2);
    const own = named.where(x.unsqueeze(-2), 0).sum(-1);
    const short = x.unsqueeze(-2).sub(own.unsqueeze(-1)).add(1);
    const counts = listed
      .unsqueeze(-1)
      .bitwiseAnd(targets.logicalNot().unsqueeze(-2))
      .bitwiseAnd(short.gt(0));
    return counts
      .where(short, 0)
      .sum([-2, -1])
      .mul(1 / classes)
      .reduced(method, reduction);
  }
  /**
   * The binary cross entropy of the logits of each class, averaged over the classes.
   *
   * @example
   * await new Tensor([[0, 0]]).multilabelSoftMarginLoss(new Tensor([[1, 0]])).exp().item() // => 2
   */
  multilabelSoftMarginLoss(target: this, { weight, reduction }: WeightedLossOptions<this> = {}): this {
    requireTensors("multilabelSoftMarginLoss", { target });
    const [x, t] = this.together("multilabelSoftMarginLoss", target);
    const loss = t.mul(x.logsigmoid()).add(t.rsub(1).mul(x.neg().logsigmoid())).neg();
    const scaled = weight == null ? loss : loss.mul(weight);
    return scaled.mean(-1).reduced("multilabelSoftMarginLoss", reduction);
  }
}
