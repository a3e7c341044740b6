// Normalisation layers: over the batch (with running statistics, updated in place and computed with the next
// optimiser step), over the sample, over groups of channels, and by magnitude only. Tensor has the formulas;
// here are the parameters.

import { dtypes } from "../dtype.ts";
import { ArgumentError, ShapeError } from "../errors.ts";
import { batchNorm, instanceNorm } from "../tensor/neural/layers.ts";
import { showShape } from "../tensor/show.ts";
import { Tensor } from "../tensor/tensor.ts";
import { filled, type LayerOptions, positive, statistic } from "./layers.ts";
import { Module, trains } from "./module.ts";
import { groupNorm, layerNorm, rmsNorm } from "./operations.ts";
import { leaveUpdate } from "./updates.ts";

export interface BatchNormOptions extends LayerOptions {
  readonly eps?: number;
  /** the weight of a new batch in the running statistics; null: the plain average of all batches */
  readonly momentum?: number | null;
  /**
   * whether the n-th batch weighs at least 1/n, so that the initial 0 and 1 of the running statistics never
   * count: for short runs. Without it, as in torch, 20 batches leave 12 % of them. Default: false
   */
  readonly warmUp?: boolean;
  /** whether to learn a scale and a shift */
  readonly affine?: boolean;
  readonly trackRunningStats?: boolean;
}

/** The running statistics of batch norm and instance norm. */
interface Running {
  readonly mean: Tensor;
  readonly variance: Tensor;
  readonly count: Tensor;
}

/** Channels in dim 1, with an optional scale, shift and running statistics. */
abstract class ChannelNorm extends Module {
  training: boolean | undefined = undefined;
  weight: Tensor | undefined;
  bias: Tensor | undefined;
  runningMean: Tensor | undefined;
  runningVar: Tensor | undefined;
  numBatchesTracked: Tensor | undefined;
  readonly numFeatures: number;
  readonly eps: number;
  readonly momentum: number | null;
  readonly warmUp: boolean;

  constructor(numFeatures: number, options: BatchNormOptions) {
    super();
    positive(this.constructor.name, { numFeatures });
    this.numFeatures = numFeatures;
    this.eps = options.eps ?? 1e-5;
    this.momentum = options.momentum === undefined ? 0.1 : options.momentum;
    this.warmUp = options.warmUp ?? false;
    if (options.affine) {
      this.weight = filled([numFeatures], 1, options);
      this.bias = filled([numFeatures], 0, options);
    }
    if (!options.trackRunningStats) return;
    this.runningMean = statistic([numFeatures], 0, options);
    this.runningVar = statistic([numFeatures], 1, options);
    this.numBatchesTracked = statistic([], 0, { ...options, dtype: dtypes.int64 });
  }

  protected checkInput(x: Tensor, dims: readonly number[]): void {
    const name = this.constructor.name;
    if (!dims.includes(x.ndim)) {
      throw new ShapeError(
        `${name}: shape ${showShape(x.shape)} has ${x.ndim} dims, expected ${dims.join(" or ")}`,
      );
    }
    if (x.shape[1] === this.numFeatures) return;
    throw new ShapeError(
      `${name}: shape ${showShape(x.shape)} has ${x.shape[1]} channels in dim 1, the layer has ${this.numFeatures}`,
    );
  }
  protected get affineOptions() {
    return { weight: this.weight ?? null, bias: this.bias ?? null, eps: this.eps };
  }
  protected get running(): Running | undefined {
    const { runningMean: mean, runningVar: variance, numBatchesTracked: count } = this;
    return mean === undefined || variance === undefined || count === undefined
      ? undefined
      : { mean, variance, count };
  }

  /**
   * Normalises by the batch with `run`, which updates the given statistics and leaves them to be computed
   * later.
   */
  protected track(run: (mean: Tensor | null, variance: Tensor | null, momentum: number) => Tensor): Tensor {
    const { running, momentum, warmUp } = this;
    if (running === undefined || !trains(this)) return run(null, null, 0);
    const { mean, variance, count } = running;
    Tensor.noGrad(() => count.assign(count.add(1n)));
    leaveUpdate(mean, variance, count);
    if (momentum !== null && !warmUp) return run(mean, variance, momentum);
    const batch = [mean, variance].map((t) => t.zerosLike()) as [Tensor, Tensor];
    const y = run(...batch, 1);
    Tensor.noGrad(() => {
      for (const [i, t] of [mean, variance].entries()) {
        const average = count.expand(t.shape).cast(t.dtype).reciprocal();
        const part = momentum === null ? average : average.maximum(momentum);
        t.assign(t.add((batch[i] as Tensor).sub(t).mul(part)));
      }
    });
    return y;
  }
}

/**
 * Normalises every channel (dim 1) over the batch and all other dims: in training by the batch's own mean and
 * variance, otherwise by the running ones.
 * @example
 * new nn.BatchNorm(4).forward(Tensor.ones(2, 4, 3)).shape // => [2, 4, 3]
 */
export class BatchNorm extends ChannelNorm {
  static override readonly name: string = "BatchNorm";
  protected readonly dims: readonly number[] = [2, 3, 4, 5];

  constructor(numFeatures: number, options: BatchNormOptions = {}) {
    super(numFeatures, { affine: true, trackRunningStats: true, ...options });
  }
  forward(x: Tensor): Tensor {
    this.checkInput(x, this.dims);
    const { affineOptions, running } = this;
    if (running !== undefined && !trains(this))
      return batchNorm(x, running.mean, running.variance, affineOptions);
    return this.track((mean, variance, momentum) =>
      batchNorm(x, mean, variance, { ...affineOptions, training: true, momentum }),
    );
  }
}
/**
 * BatchNorm of [batch, channels] or [batch, channels, length].
 * @example
 * new nn.BatchNorm1d(3).forward(Tensor.ones(2, 3)).shape // => [2, 3]
 */
export class BatchNorm1d extends BatchNorm {
  static override readonly name: string = "BatchNorm1d";
  protected override readonly dims = [2, 3];
}
/**
 * BatchNorm of [batch, channels, height, width].
 * @example
 * new nn.BatchNorm2d(3).forward(Tensor.ones(2, 3, 4, 4)).shape // => [2, 3, 4, 4]
 */
export class BatchNorm2d extends BatchNorm {
  static override readonly name: string = "BatchNorm2d";
  protected override readonly dims = [4];
}
/**
 * BatchNorm of [batch, channels, depth, height, width].
 * @example
 * new nn.BatchNorm3d(3).forward(Tensor.ones(2, 3, 2, 2, 2)).shape // => [2, 3, 2, 2, 2]
 */
export class BatchNorm3d extends BatchNorm {
  static override readonly name: string = "BatchNorm3d";
  protected override readonly dims = [5];
}

/**
 * Normalises every channel of every sample over its spatial dims. By default nothing is learned or tracked.
 */
abstract class InstanceNorm extends ChannelNorm {
  protected abstract readonly dims: number;

  constructor(numFeatures: number, options: BatchNormOptions = {}) {
    super(numFeatures, { affine: false, trackRunningStats: false, ...options });
  }
  forward(input: Tensor): Tensor {
    const single = input.ndim === this.dims - 1;
    const x = single ? input.unsqueeze(0) : input;
    this.checkInput(x, [this.dims]);
    const y = this.#normalized(x);
    return single ? y.squeeze(0) : y;
  }
  #normalized(x: Tensor): Tensor {
    const { affineOptions, running } = this;
    if (running !== undefined && !trains(this)) {
      const { mean: runningMean, variance: runningVar } = running;
      return instanceNorm(x, { ...affineOptions, runningMean, runningVar, useInputStats: false });
    }
    return this.track((runningMean, runningVar, momentum) =>
      instanceNorm(x, { ...affineOptions, runningMean, runningVar, momentum }),
    );
  }
}
/**
 * InstanceNorm of [batch, channels, length], or without the batch.
 * @example
 * await new nn.InstanceNorm1d(1, { eps: 0 }).forward(new Tensor([[[1, 3]]])).tolist() // => [[[-1, 1]]]
 */
export class InstanceNorm1d extends InstanceNorm {
  static override readonly name: string = "InstanceNorm1d";
  protected readonly dims = 3;
}
/**
 * InstanceNorm of [batch, channels, height, width], or without the batch.
 * @example
 * new nn.InstanceNorm2d(3).forward(Tensor.ones(2, 3, 4, 4)).shape // => [2, 3, 4, 4]
 */
export class InstanceNorm2d extends InstanceNorm {
  static override readonly name: string = "InstanceNorm2d";
  protected readonly dims = 4;
}
/**
 * InstanceNorm of [batch, channels, depth, height, width], or without the batch.
 * @example
 * new nn.InstanceNorm3d(3).forward(Tensor.ones(2, 3, 2, 2, 2)).shape // => [2, 3, 2, 2, 2]
 */
export class InstanceNorm3d extends InstanceNorm {
  static override readonly name: string = "InstanceNorm3d";
  protected readonly dims = 5;
}

export interface LayerNormOptions extends LayerOptions {
  readonly eps?: number;
  /** whether to learn a scale (and a shift); default: true */
  readonly elementwiseAffine?: boolean;
  /** whether to learn a shift; default: true */
  readonly bias?: boolean;
}

const shapeOf = (size: number | readonly number[]): number[] =>
  typeof size === "number" ? [size] : [...size];

/**
 * Normalises every sample over its last dims.
 * @example
 * const norm = new nn.LayerNorm(2, { eps: 0 });
 * await norm.forward(new Tensor([[1, 3], [5, 1]])).tolist() // => [[-1, 1], [1, -1]]
 */
export class LayerNorm {
  weight: Tensor | undefined;
  bias: Tensor | undefined;
  readonly normalizedShape: readonly number[];
  readonly eps: number;

  constructor(normalizedShape: number | readonly number[], options: LayerNormOptions = {}) {
    this.normalizedShape = shapeOf(normalizedShape);
    this.eps = options.eps ?? 1e-5;
    if (options.elementwiseAffine === false) return;
    this.weight = filled(this.normalizedShape, 1, options);
    if (options.bias !== false) this.bias = filled(this.normalizedShape, 0, options);
  }
  forward(x: Tensor): Tensor {
    const { weight = null, bias = null, eps } = this;
    return layerNorm(x, this.normalizedShape, { weight, bias, eps });
  }
}

export interface RMSNormOptions extends LayerOptions {
  /** default: the distance from 1 to the next number of the input's dtype */
  readonly eps?: number;
  /** whether to learn a scale; default: true */
  readonly elementwiseAffine?: boolean;
}

/**
 * Divides by the root of the mean square over the last dims.
 * @example
 * await new nn.RMSNorm(2, { eps: 0 }).forward(new Tensor([[3, 3]])).tolist() // => [[1, 1]]
 */
export class RMSNorm {
  weight: Tensor | undefined;
  readonly normalizedShape: readonly number[];
  readonly eps: number | undefined;

  constructor(normalizedShape: number | readonly number[], options: RMSNormOptions = {}) {
    this.normalizedShape = shapeOf(normalizedShape);
    this.eps = options.eps;
    if (options.elementwiseAffine !== false) this.weight = filled(this.normalizedShape, 1, options);
  }
  forward(x: Tensor): Tensor {
    return rmsNorm(x, this.normalizedShape, { weight: this.weight ?? null, eps: this.eps ?? null });
  }
}

export interface GroupNormOptions extends LayerOptions {
  readonly eps?: number;
  /** whether to learn a scale and a shift; default: true */
  readonly affine?: boolean;
}

/**
 * Normalises groups of channels (dim 1) of every sample.
 * @example
 * new nn.GroupNorm(2, 4).forward(Tensor.ones(1, 4, 3)).shape // => [1, 4, 3]
 */
export class GroupNorm {
  weight: Tensor | undefined;
  bias: Tensor | undefined;
  readonly numGroups: number;
  readonly eps: number;

  constructor(numGroups: number, numChannels: number, options: GroupNormOptions = {}) {
    positive("GroupNorm", { numGroups, numChannels });
    if (numChannels % numGroups !== 0) {
      throw new ArgumentError(
        `GroupNorm: ${numGroups} groups do not divide ${numChannels} channels; choose a divisor`,
      );
    }
    this.numGroups = numGroups;
    this.eps = options.eps ?? 1e-5;
    if (options.affine === false) return;
    this.weight = filled([numChannels], 1, options);
    this.bias = filled([numChannels], 0, options);
  }
  forward(x: Tensor): Tensor {
    const { weight = null, bias = null, eps } = this;
    return groupNorm(x, this.numGroups, { weight, bias, eps });
  }
}
