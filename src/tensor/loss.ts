// Losses: how far a prediction is from its target, by the names and rules of torch.nn.functional. This tensor is the
// prediction. All take `reduction`: "mean" (the default), "sum" or "none".

import { dtypes } from "../dtype.ts";
import { ArgumentError, DTypeError, ShapeError } from "../errors.ts";
import { showShape } from "./base.ts";
import { DistanceTensor } from "./distance.ts";
import { isNarrow, toFloat } from "./math.ts";
import { requireTensors } from "./movement.ts";

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

export abstract class LossTensor extends DistanceTensor {
  /** `fn` in float32 where this tensor is narrower: its sums would lose what they add. */
  protected wide(fn: (x: this) => this): this {
    if (!isNarrow(this.dtype)) return fn(this.cast(toFloat(this.dtype)));
    return fn(this.cast(dtypes.float32)).cast(this.dtype);
  }
  protected reduced(method: string, reduction: Reduction = "mean"): this {
    if (reduction === "none") return this;
    if (reduction === "sum") return this.sum();
    if (reduction === "mean") return this.mean();
    throw new ArgumentError(`${method}: reduction is "${reduction}", expected "mean", "sum" or "none"`);
  }

  // ---- classes ----

  /** The classes that numbers in `target` choose along `axis`: what both kinds of class loss need. */
  #choice(method: string, target: this, axis: number) {
    const { shape } = this.lazydata;
    const rest = shape.toSpliced(axis, 1);
    if (target.ndim !== rest.length || !rest.every((s, i) => s === target.lazydata.shape[i])) {
      throw new ShapeError(
        `${method}: input ${showShape(this.shape)} has its classes along dim ${axis}, so the target is ${showShape(rest)} with ` +
          `class numbers; got ${showShape(target.shape)}`,
      );
    }
    if (!target.dtype.isInt) {
      throw new DTypeError(
        `${method}: class numbers are integers, got ${target.dtype.name}; cast the target`,
      );
    }
    const numbers = target.detach().cast(dtypes.int32);
    const index = numbers.reshape(shape.with(axis, 1)).expand(shape);
    return { numbers, index, chosen: index.eq(this.numbers(axis)) };
  }

  /** The loss of log-probabilities along `axis`, or of logits, given class numbers. */
  #classLoss(
    method: string,
    target: this,
    axis: number,
    options: CrossEntropyOptions<this>,
    logits: boolean,
  ): this {
    const { ignoreIndex = -100, labelSmoothing: smooth = 0, reduction = "mean" } = options;
    const { numbers, index, chosen } = this.#choice(method, target, axis);
    const weight = this.#classWeight(method, axis, options.weight);
    const kept = index.ne(ignoreIndex);
    const hit = chosen.bitwiseAnd(kept);
    const one = weight ?? this.scalar(1);
    const rest = smooth / (this.shape[axis] as number);
    const spread = chosen.where(1 - smooth + rest, rest).cast(this.dtype);
    const coefficients = smooth === 0 ? hit.where(one, 0) : kept.where(spread.mul(one), 0);
    // one term of the sum is chosen by its number: that becomes an indexed load
    const terms = (logs: this): this =>
      smooth === 0 ? hit.where(weight === undefined ? logs : logs.mul(weight), 0) : logs.mul(coefficients);
    const loss = logits
      ? this.#entropy(axis, terms, coefficients)
      : terms(this).reduceSum([axis]).drop([axis], false).neg();
    if (reduction !== "mean") return loss.reduced(method, reduction);
    const counts =
      weight === undefined
        ? numbers.ne(ignoreIndex).cast(this.dtype)
        : hit.where(weight, 0).reduceSum([axis]).drop([axis], false);
    // divided before the sum: so the count and the sum are one kernel
    return loss.div(counts.sum(undefined, true)).sum();
  }
  /**
   * Minus the sum along `axis` of coefficients times the log-softmax of this tensor; `terms` makes the products. The
   * gradient is computed from the logits again: nothing of the size of the logits is stored on the way.
   */
  #entropy(axis: number, terms: (logs: this) => this, coefficients: this): this {
    const sum = terms(this.detach().logSoftmax(axis)).reduceSum([axis]).drop([axis], false);
    return this.wrap(sum.neg().lazydata, [this, coefficients], (g) => {
      const flow = g.reshape(this.lazydata.shape.with(axis, 1)).expand(this.lazydata.shape);
      const share = this.softmax(axis)
        .mul(coefficients.reduceSum([axis]))
        .sub(coefficients);
      return [share.mul(flow), coefficients.requiresGrad ? this.logSoftmax(axis).neg().mul(flow) : undefined];
    });
  }
  #classWeight(method: string, axis: number, weight: this | null | undefined): this | undefined {
    if (weight == null) return undefined;
    if (weight.ndim === 1 && weight.size === this.shape[axis]) {
      return weight.detach().cast(this.dtype).along(axis, this.ndim).expand(this.lazydata.shape);
    }
    throw new ShapeError(
      `${method}: weight has shape ${showShape(weight.shape)}, expected one number for each of the ${this.shape[axis]} classes`,
    );
  }
  /** The loss of logits, given a probability for each class. */
  #softClassLoss(method: string, target: this, axis: number, options: CrossEntropyOptions<this>): this {
    const { labelSmoothing: smooth = 0 } = options;
    if (!target.dtype.isFloat) {
      throw new DTypeError(
        `${method}: a target of the input's shape holds probabilities, got ${target.dtype.name}; cast it, or give class numbers of one dim less`,
      );
    }
    const goal = smooth === 0 ? target : target.mul(1 - smooth).add(smooth / (this.shape[axis] as number));
    const weight = this.#classWeight(method, axis, options.weight);
    const coefficients = weight === undefined ? goal.cast(this.dtype) : goal.cast(this.dtype).mul(weight);
    const terms = (logs: this): this => logs.mul(coefficients.detach());
    return this.#entropy(axis, terms, coefficients).reduced(method, options.reduction);
  }

  #classAxis(method: string): number {
    if (this.ndim > 0) return this.ndim === 1 ? 0 : 1;
    throw new ShapeError(
      `${method}: a scalar has no classes; expected [classes], [batch, classes] or more dims`,
    );
  }

  /**
   * The cross entropy between logits (classes along dim 1) and class numbers, or a probability for each class.
   *
   * @example
   * await new Tensor([[0, 0]]).crossEntropy(new Tensor([1])).exp().item() // => 2
   */
  crossEntropy(target: this, options: CrossEntropyOptions<this> = {}): this {
    requireTensors("crossEntropy", { target });
    const method = "crossEntropy";
    const axis = this.#classAxis(method);
    const { labelSmoothing = 0 } = options;
    if (!(labelSmoothing >= 0 && labelSmoothing <= 1)) {
      throw new ArgumentError(
        `${method}: labelSmoothing is ${labelSmoothing}, expected a number from 0 to 1`,
      );
    }
    return this.wide((x) =>
      showShape(target.shape) === showShape(this.shape)
        ? x.#softClassLoss(method, target, axis, options)
        : x.#classLoss(method, target, axis, options, true),
    );
  }
  /**
   * The negative log-likelihood: this tensor holds log-probabilities, classes along dim 1.
   *
   * @example
   * await new Tensor([[-1, -2]]).nllLoss(new Tensor([1])).item() // => 2
   */
  nllLoss(target: this, options: ClassLossOptions<this> = {}): this {
    requireTensors("nllLoss", { target });
    const axis = this.#classAxis("nllLoss");
    return this.wide((x) => x.#classLoss("nllLoss", target, axis, options, false));
  }
  /**
   * tinygrad's cross entropy: logits with the classes along the last dim, and class numbers; -1 is ignored.
   *
   * @example
   * await new Tensor([[0, 0]]).sparseCategoricalCrossentropy(new Tensor([1])).exp().item() // => 2
   */
  sparseCategoricalCrossentropy(target: this, options: CrossEntropyOptions<this> = {}): this {
    requireTensors("sparseCategoricalCrossentropy", { target });
    const method = "sparseCategoricalCrossentropy";
    const axis = this.axis(method, -1);
    return this.wide((x) => x.#classLoss(method, target, axis, { ignoreIndex: -1, ...options }, true));
  }

  // ---- probabilities ----

  #sameShape(method: string, target: this): void {
    if (showShape(target.shape) === showShape(this.shape)) return;
    throw new ShapeError(
      `${method}: input ${showShape(this.shape)} and target ${showShape(target.shape)} must have one shape; expand or reshape one`,
    );
  }
  #weighted(weight: this | null | undefined): this {
    return weight == null ? this : this.mul(weight);
  }

  /**
   * The binary cross entropy of probabilities; their logarithms are cut at -100.
   *
   * @example
   * await new Tensor([0.5]).binaryCrossEntropy(new Tensor([1], { dtype: "float32" })).exp().item() // => 2
   */
  binaryCrossEntropy(target: this, { weight, reduction }: WeightedLossOptions<this> = {}): this {
    requireTensors("binaryCrossEntropy", { target });
    this.#sameShape("binaryCrossEntropy", target);
    const [x, t] = this.together("binaryCrossEntropy", target);
    const [p, goal] = [x.detach(), t.detach()];
    const yes = p.log().maximum(-100).mul(goal);
    const no = p.neg().add(1).log().maximum(-100).mul(goal.neg().add(1));
    // the slope stays finite at 0 and 1
    const loss = x.wrap(yes.add(no).neg().lazydata, [x, t], (g) => [
      g.mul(x.sub(t)).div(x.mul(x.neg().add(1)).maximum(1e-12)),
      t.requiresGrad ? g.mul(x.neg().add(1).log().sub(x.log())) : undefined,
    ]);
    return loss.#weighted(weight).reduced("binaryCrossEntropy", reduction);
  }

  /** log(sigmoid(x)) that neither overflows nor has a corner at 0. */
  #logSigmoid(): this {
    const x = this.detach();
    const value = x.minimum(0).sub(x.magnitude().neg().exp().log1p());
    return this.wrap(value.lazydata, [this], (g) => [g.mul(this.neg().sigmoid())]);
  }
  /**
   * The binary cross entropy of logits.
   *
   * @example
   * await new Tensor([0]).bceWithLogits(new Tensor([1])).exp().item() // => 2
   */
  bceWithLogits(target: this, options: BceOptions<this> = {}): this {
    requireTensors("bceWithLogits", { target });
    this.#sameShape("bceWithLogits", target);
    const [x, t] = this.together("bceWithLogits", target);
    const { weight, posWeight, reduction } = options;
    const logs = x.#logSigmoid();
    const positive = posWeight == null ? logs : logs.mul(posWeight.sub(1).mul(t).add(1));
    return t.neg().add(1).mul(x).sub(positive).#weighted(weight).reduced("bceWithLogits", reduction);
  }
  /**
   * `bceWithLogits` under torch's long name.
   *
   * @example
   * await new Tensor([0]).binaryCrossEntropyWithLogits(new Tensor([1])).exp().item() // => 2
   */
  binaryCrossEntropyWithLogits(target: this, options: BceOptions<this> = {}): this {
    requireTensors("binaryCrossEntropyWithLogits", { target });
    return this.bceWithLogits(target, options);
  }

  /**
   * The Kullback-Leibler divergence of log-probabilities from a target of probabilities (or of their logarithms).
   *
   * @example
   * await new Tensor([-1, -2]).klDiv(new Tensor([0, 1]), { reduction: "sum" }).item() // => 2
   */
  klDiv(target: this, { reduction = "mean", logTarget = false }: KlDivOptions = {}): this {
    requireTensors("klDiv", { target });
    const [x, t] = this.together("klDiv", target);
    const loss = logTarget
      ? t.exp().mul(t.sub(x))
      : t
          .eq(0)
          .where(this.scalar(0).cast(t.dtype), t.mul(t.eq(0).where(1, t).log()))
          .sub(t.mul(x));
    if (reduction !== "batchmean") return loss.reduced("klDiv", reduction);
    return this.ndim === 0 ? loss.sum() : loss.sum().div(this.shape[0] as number);
  }

  // ---- distances ----

  /**
   * The mean of the squares of the differences.
   *
   * @example
   * await new Tensor([1, 2]).mseLoss(new Tensor([1, 4])).item() // => 2
   */
  mseLoss(target: this, { weight, reduction }: WeightedLossOptions<this> = {}): this {
    requireTensors("mseLoss", { target });
    const [x, t] = this.together("mseLoss", target);
    return x.sub(t).square().#weighted(weight).reduced("mseLoss", reduction);
  }
  /**
   * The mean of the magnitudes of the differences.
   *
   * @example
   * await new Tensor([1, 2]).l1Loss(new Tensor([1, 4])).item() // => 1
   */
  l1Loss(target: this, { weight, reduction }: WeightedLossOptions<this> = {}): this {
    requireTensors("l1Loss", { target });
    const [x, t] = this.together("l1Loss", target);
    return x.sub(t).magnitude().#weighted(weight).reduced("l1Loss", reduction);
  }
  /**
   * Squares of differences below `beta`, magnitudes beyond.
   *
   * @example
   * await new Tensor([1, 2]).smoothL1Loss(new Tensor([2, 4]), { reduction: "none" }).tolist() // => [0.5, 1.5]
   */
  smoothL1Loss(target: this, { beta = 1, reduction }: LossOptions & { beta?: number } = {}): this {
    requireTensors("smoothL1Loss", { target });
    if (!(beta >= 0)) throw new ArgumentError(`smoothL1Loss: beta is ${beta}, expected a number from 0 up`);
    if (beta === 0) return this.l1Loss(target, { reduction: reduction ?? "mean" });
    const [x, t] = this.together("smoothL1Loss", target);
    const far = x.sub(t).magnitude();
    const loss = far.lt(beta).where(far.square().mul(0.5 / beta), far.sub(0.5 * beta));
    return loss.reduced("smoothL1Loss", reduction);
  }
  /**
   * Half the squares of differences up to `delta`, `delta` times their magnitudes beyond.
   *
   * @example
   * await new Tensor([1, 2]).huberLoss(new Tensor([2, 4]), { reduction: "none" }).tolist() // => [0.5, 1.5]
   */
  huberLoss(target: this, { delta = 1, reduction }: LossOptions & { delta?: number } = {}): this {
    requireTensors("huberLoss", { target });
    if (!(delta > 0)) throw new ArgumentError(`huberLoss: delta is ${delta}, expected a number above 0`);
    const [x, t] = this.together("huberLoss", target);
    const far = x.sub(t).magnitude();
    const loss = far.le(delta).where(far.square().mul(0.5), far.sub(0.5 * delta).mul(delta));
    return loss.reduced("huberLoss", reduction);
  }

  // ---- rankings ----

  /** What is below 0 becomes 0. */
  #hinge(): this {
    return this.lt(0).where(0, this);
  }
  /**
   * The distance itself where the target is 1, what is missing to `margin` where it is -1.
   *
   * @example
   * await new Tensor([0.5, 0.25]).hingeEmbeddingLoss(new Tensor([1, -1]), { reduction: "none" }).tolist() // => [0.5, 0.75]
   */
  hingeEmbeddingLoss(target: this, { margin = 1, reduction }: MarginOptions = {}): this {
    requireTensors("hingeEmbeddingLoss", { target });
    const apart = target.ne(1).where(this.neg().add(margin).#hinge(), 0);
    return apart.add(target.ne(-1).where(this, 0)).reduced("hingeEmbeddingLoss", reduction);
  }
  /**
   * How far this tensor fails to be above `other` (target 1) or below it (target -1) by `margin`.
   *
   * @example
   * await new Tensor([1, 3]).marginRankingLoss(new Tensor([2, 2]), new Tensor([1, 1])).item() // => 0.5
   */
  marginRankingLoss(other: this, target: this, { margin = 0, reduction }: MarginOptions = {}): this {
    requireTensors("marginRankingLoss", { other, target });
    const loss = target.neg().mul(this.sub(other)).add(margin).#hinge();
    return loss.cast(toFloat(loss.dtype)).reduced("marginRankingLoss", reduction);
  }
  /**
   * How far `positive` fails to be nearer than `negative` by `margin`.
   *
   * @example
   * await new Tensor([[0, 0]]).tripletMarginLoss(new Tensor([[0, 0]]), new Tensor([[3, 4]])).item() // => 0
   */
  tripletMarginLoss(positive: this, negative: this, options: TripletOptions = {}): this {
    requireTensors("tripletMarginLoss", { positive, negative });
    const { margin = 1, p = 2, eps = 1e-6, swap = false, reduction } = options;
    const near = this.pairwiseDistance(positive, { p, eps });
    const far = this.pairwiseDistance(negative, { p, eps });
    const other = swap ? far.minimum(positive.pairwiseDistance(negative, { p, eps })) : far;
    return near.sub(other).add(margin).#hinge().reduced("tripletMarginLoss", reduction);
  }
  /**
   * 1 - the cosine where the target is 1, the cosine above `margin` where it is -1.
   *
   * @example
   * await new Tensor([[1, 0]]).cosineEmbeddingLoss(new Tensor([[0, 1]]), new Tensor([1])).item() // => 1
   */
  cosineEmbeddingLoss(other: this, target: this, { margin = 0, reduction }: MarginOptions = {}): this {
    requireTensors("cosineEmbeddingLoss", { other, target });
    const [a, b] = this.together("cosineEmbeddingLoss", other);
    const squares = (x: this): this => x.square().sum(-1).add(1e-12);
    const cosine = a
      .mul(b)
      .sum(-1)
      .div(squares(a).mul(squares(b)).sqrt());
    const apart = cosine.sub(margin).#hinge();
    const loss = target.eq(1).where(cosine.neg().add(1), target.eq(-1).where(apart, 0));
    return loss.reduced("cosineEmbeddingLoss", reduction);
  }
  /**
   * log(1 + exp(-target * x)), for targets 1 and -1.
   *
   * @example
   * await new Tensor([0]).softMarginLoss(new Tensor([1])).exp().item() // => 2
   */
  softMarginLoss(target: this, { reduction }: LossOptions = {}): this {
    requireTensors("softMarginLoss", { target });
    const [x, t] = this.together("softMarginLoss", target);
    return x.mul(t).#logSigmoid().neg().reduced("softMarginLoss", reduction);
  }

  // ---- likelihoods ----

  /**
   * The negative log-likelihood of counts under a Poisson distribution; this tensor is (the logarithm of) its mean.
   *
   * @example
   * await new Tensor([0]).poissonNllLoss(new Tensor([3])).item() // => 1
   */
  poissonNllLoss(target: this, options: PoissonOptions = {}): this {
    requireTensors("poissonNllLoss", { target });
    const { logInput = true, full = false, eps = 1e-8, reduction } = options;
    const [x, t] = this.together("poissonNllLoss", target);
    const loss = logInput ? x.exp().sub(t.mul(x)) : x.sub(t.mul(x.add(eps).log()));
    if (!full) return loss.reduced("poissonNllLoss", reduction);
    const above = t.gt(1).where(t, 1);
    const stirling = above
      .mul(above.log())
      .sub(above)
      .add(
        above
          .mul(2 * Math.PI)
          .log()
          .mul(0.5),
      );
    return loss.add(t.gt(1).where(stirling, 0)).reduced("poissonNllLoss", reduction);
  }
  /**
   * The negative log-likelihood of the target under normal distributions with this mean and the given variance.
   *
   * @example
   * await new Tensor([1]).gaussianNllLoss(new Tensor([3]), new Tensor([1])).item() // => 2
   */
  gaussianNllLoss(target: this, variance: this, options: GaussianOptions = {}): this {
    requireTensors("gaussianNllLoss", { target, variance });
    const { full = false, eps = 1e-6, reduction } = options;
    const [x, t] = this.together("gaussianNllLoss", target);
    // one variance for each row may come without the last dim
    const rows =
      x.ndim > 0 && variance.ndim === x.ndim - 1 && x.shape.slice(0, -1).join() === variance.shape.join();
    const spread = (rows ? variance.unsqueeze(-1) : variance).cast(x.dtype).maximum(eps);
    const loss = spread.log().add(x.sub(t).square().div(spread)).mul(0.5);
    return (full ? loss.add(0.5 * Math.log(2 * Math.PI)) : loss).reduced("gaussianNllLoss", reduction);
  }
}

export interface KlDivOptions {
  /** "batchmean": the sum divided by the size of dim 0, which is the divergence of distributions */
  readonly reduction?: Reduction | "batchmean";
  readonly logTarget?: boolean;
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
