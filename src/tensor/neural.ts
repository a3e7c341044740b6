// What networks are made of: linear maps, normalisation, attention. Losses are in the layer below, dropout and
// embedding further down.

import { ArgumentError, ShapeError } from "../errors.ts";
import { range } from "../helpers.ts";
import type { Sint } from "../shape/symbolic.ts";
import { withRecording } from "./autograd.ts";
import { showShape } from "./base.ts";
import { MarginTensor } from "./margin.ts";
import { requireTensors } from "./movement.ts";

/** Multiplies and shifts what was normalised. */
export interface AffineOptions<T> {
  readonly weight?: T | null;
  readonly bias?: T | null;
  /** added to the variance; default 1e-5 */
  readonly eps?: number;
}
export interface BatchNormOptions<T> extends AffineOptions<T> {
  /** use the statistics of this batch, and move the running ones; default false */
  readonly training?: boolean;
  /** how far the running statistics move to those of the batch; default 0.1 */
  readonly momentum?: number;
}
export interface InstanceNormOptions<T> extends AffineOptions<T> {
  readonly runningMean?: T | null;
  readonly runningVar?: T | null;
  /** default true */
  readonly useInputStats?: boolean;
  readonly momentum?: number;
}
export interface RmsNormOptions<T> {
  readonly weight?: T | null;
  /** default: the smallest step of the type at 1 */
  readonly eps?: number | null;
}
export interface AttentionOptions<T> {
  /** bool: which keys a query may see; float: added to the scores */
  readonly attnMask?: T | null;
  readonly dropoutP?: number;
  /** a query sees the keys up to its own number */
  readonly isCausal?: boolean;
  /** default: 1 / sqrt(size of a query) */
  readonly scale?: number | null;
  /** keys and values may have fewer heads (dim -3), each for several of the queries' */
  readonly enableGqa?: boolean;
}

/** Normalised values and the statistics they were normalised with; these keep the reduced dims. */
interface Standardized<T> {
  readonly value: T;
  readonly mean: T;
  readonly variance: T;
}

const EPSILON: Readonly<Record<string, number>> = {
  float64: 2 ** -52,
  float32: 2 ** -23,
  float16: 2 ** -10,
  bfloat16: 2 ** -7,
};

export abstract class NeuralTensor extends MarginTensor {
  /**
   * x W^T + b: `weight` is [out, in].
   *
   * @example
   * await new Tensor([1, 2]).linear(new Tensor([[3, 4], [5, 6]]), new Tensor([10, 20])).tolist() // => [21, 37]
   */
  linear(weight: this, bias?: this | null): this {
    requireTensors("linear", { weight });
    if (weight.ndim < 1 || weight.ndim > 2 || this.ndim < 1 || this.shape.at(-1) !== weight.shape.at(-1)) {
      throw new ShapeError(
        `linear: input ${showShape(this.shape)} and weight ${showShape(weight.shape)} do not fit; ` +
          "the weight is [out, in], and in is the last size of the input",
      );
    }
    const y = this.dot(weight.ndim === 2 ? weight.transpose() : weight);
    return bias == null ? y : y.add(bias);
  }

  // ---- normalisation ----

  /** Mean 0 and variance 1 over `axes`. Mean and variance are shared by the values and by their gradient. */
  #standardized(axes: readonly number[], eps: number): Standardized<this> {
    const n = axes.reduce((k, a) => k * (this.shape[a] as number), 1);
    const mean = this.reduceSum(axes).mul(1 / n);
    const centred = this.sub(mean);
    const variance = centred
      .square()
      .reduceSum(axes)
      .mul(1 / n);
    // expanded before the root is taken: loops take what does not change out by themselves, and nothing more is stored
    const scale = variance.expand(this.lazydata.shape).add(eps).rsqrt();
    const value = this.wrap(centred.mul(scale).lazydata, [this], (g, out) => {
      const along = g
        .mul(out)
        .reduceSum(axes)
        .mul(1 / n);
      return [
        g
          .sub(g.reduceSum(axes).mul(1 / n))
          .sub(out.mul(along))
          .mul(scale),
      ];
    });
    return { value, mean, variance };
  }
  /** Weight and bias, one number each a channel (dim 1). */
  #affine(method: string, weight: this | null | undefined, bias: this | null | undefined): this {
    const scaled = weight == null ? this : this.mul(this.#perChannel(method, "weight", weight));
    return bias == null ? scaled : scaled.add(this.#perChannel(method, "bias", bias));
  }
  #perChannel(method: string, name: string, x: this): this {
    if (x.ndim === 1 && x.size === this.shape[1]) return x.along(1, this.ndim);
    throw new ShapeError(
      `${method}: ${name} has shape ${showShape(x.shape)}, expected [${this.shape[1]}]: one number a channel of ${showShape(this.shape)}`,
    );
  }

  /**
   * Normalises each channel (dim 1): in training by its mean and variance in this batch, otherwise by the running ones.
   * Training also assigns the moved running statistics, which are computed when those are realised: realise them with
   * the step that made them.
   *
   * @example
   * await new Tensor([[3], [5]]).batchNorm(new Tensor([1]), new Tensor([4]), { eps: 0 }).tolist() // => [[1], [2]]
   */
  batchNorm(runningMean?: this | null, runningVar?: this | null, options: BatchNormOptions<this> = {}): this {
    const { weight, bias, training = false, momentum = 0.1, eps = 1e-5 } = options;
    if (this.size === 0) return this;
    if (this.ndim < 2) {
      throw new ShapeError(
        `batchNorm: shape ${showShape(this.shape)} has no channels; expected [batch, channels, ...]`,
      );
    }
    if (training) {
      return this.wide((x) => {
        const axes = range(x.ndim).filter((i) => i !== 1);
        const n = this.#several("batchNorm", axes);
        const { value, mean, variance } = x.#standardized(axes, eps);
        move(runningMean, mean, momentum);
        move(runningVar, variance.mul(n / (n - 1)), momentum);
        return value.#affine("batchNorm", weight, bias);
      });
    }
    return this.#byRunning("batchNorm", runningMean, runningVar, eps).#affine("batchNorm", weight, bias);
  }
  #several(method: string, axes: readonly number[]): number {
    const n = axes.reduce((k, a) => k * (this.shape[a] as number), 1);
    if (n > 1) return n;
    throw new ShapeError(
      `${method}: shape ${showShape(this.shape)} has one value to normalise in each channel; its variance needs at least two`,
    );
  }
  #byRunning(
    method: string,
    mean: this | null | undefined,
    variance: this | null | undefined,
    eps: number,
  ): this {
    if (mean == null || variance == null) {
      throw new ArgumentError(
        `${method}: without the statistics of the batch it needs runningMean and runningVar`,
      );
    }
    return this.wide((x) => {
      const shape = x.lazydata.shape;
      // expanded before the root is taken, so that nothing but the result is stored
      const spread = x.#perChannel(method, "runningVar", variance.detach()).expand(shape);
      return x.sub(x.#perChannel(method, "runningMean", mean.detach())).mul(spread.add(eps).rsqrt());
    });
  }

  /**
   * Normalises over the last dims, whose sizes are given.
   *
   * @example
   * await new Tensor([[1, 3]]).layerNorm([2], { eps: 0 }).tolist() // => [[-1, 1]]
   */
  layerNorm(normalizedShape: number | readonly number[], options: AffineOptions<this> = {}): this {
    const { weight, bias, eps = 1e-5 } = options;
    const axes = this.#lastDims("layerNorm", normalizedShape, weight, bias);
    return this.wide((x) => {
      const { value } = x.#standardized(axes, eps);
      const scaled = weight == null ? value : value.mul(weight);
      return bias == null ? scaled : scaled.add(bias);
    });
  }
  #lastDims(
    method: string,
    shape: number | readonly number[],
    ...affine: readonly (this | null | undefined)[]
  ) {
    const sizes = typeof shape === "number" ? [shape] : shape;
    const first = this.ndim - sizes.length;
    const fits = (s: readonly Sint[]): boolean =>
      s.length === sizes.length && sizes.every((n, i) => n === s[i]);
    if (sizes.length > 0 && first >= 0 && fits(this.shape.slice(first))) {
      const bad = affine.find((a) => a != null && !fits(a.shape));
      if (bad == null) return sizes.map((_, i) => first + i);
      throw new ShapeError(
        `${method}: weight and bias have the normalised shape ${showShape(sizes)}, got ${showShape(bad.shape)}`,
      );
    }
    throw new ShapeError(
      `${method}: normalizedShape is ${showShape(sizes)}, expected the last sizes of ${showShape(this.shape)}`,
    );
  }
  /**
   * Divides by the root of the mean square over the last dims, whose sizes are given.
   *
   * @example
   * await new Tensor([[3, 3]]).rmsNorm([2], { eps: 0 }).tolist() // => [[1, 1]]
   */
  rmsNorm(normalizedShape: number | readonly number[], options: RmsNormOptions<this> = {}): this {
    const { weight } = options;
    const axes = this.#lastDims("rmsNorm", normalizedShape, weight);
    const eps = options.eps ?? EPSILON[this.dtype.name] ?? 2 ** -23;
    return this.wide((x) => {
      const n = axes.reduce((k, a) => k * (x.shape[a] as number), 1);
      const y = x.mul(
        x
          .square()
          .reduceSum(axes)
          .mul(1 / n)
          .add(eps)
          .rsqrt(),
      );
      return weight == null ? y : y.mul(weight);
    });
  }

  /**
   * Normalises each of `numGroups` groups of channels of each sample.
   *
   * @example
   * await new Tensor([[1, 3, 5, 7]]).groupNorm(2, { eps: 0 }).tolist() // => [[-1, 1, -1, 1]]
   */
  groupNorm(numGroups: number, options: AffineOptions<this> = {}): this {
    const { weight, bias, eps = 1e-5 } = options;
    const channels = this.shape[1] ?? 0;
    if (this.ndim < 2 || !Number.isInteger(numGroups) || numGroups < 1 || channels % numGroups !== 0) {
      throw new ShapeError(
        `groupNorm: shape ${showShape(this.shape)} with ${numGroups} groups; expected at least 2 dims and groups that divide dim 1`,
      );
    }
    return this.wide((x) => {
      const { shape } = x.lazydata;
      const parts = [numGroups, channels / numGroups];
      const groups = x.reshape([shape[0] as Sint, ...parts, ...shape.slice(2)]);
      let { value } = groups.#standardized(range(groups.ndim).slice(2), eps);
      // scaled in this shape: another one between the sums and the result would cost a kernel
      const laid = (name: string, y: this): this =>
        x.#perChannel("groupNorm", name, y).reshape([1, ...parts, ...shape.slice(2).map(() => 1)]);
      if (weight != null) value = value.mul(laid("weight", weight));
      if (bias != null) value = value.add(laid("bias", bias));
      return value.reshape(shape);
    });
  }

  /**
   * Normalises each channel of each sample over its spatial dims.
   *
   * @example
   * await new Tensor([[[1, 3], [5, 5]]]).instanceNorm({ eps: 1 }).mul(Math.SQRT2).round().tolist() // => [[[-1, 1], [0, 0]]]
   */
  instanceNorm(options: InstanceNormOptions<this> = {}): this {
    const {
      runningMean,
      runningVar,
      weight,
      bias,
      useInputStats = true,
      momentum = 0.1,
      eps = 1e-5,
    } = options;
    if (this.ndim < 3) {
      throw new ShapeError(
        `instanceNorm: shape ${showShape(this.shape)} has no spatial dims; expected [batch, channels, spatial...]`,
      );
    }
    if (!useInputStats) {
      return this.#byRunning("instanceNorm", runningMean, runningVar, eps).#affine(
        "instanceNorm",
        weight,
        bias,
      );
    }
    return this.wide((x) => {
      const axes = range(x.ndim).slice(2);
      const n = x.#several("instanceNorm", axes);
      const { value, mean, variance } = x.#standardized(axes, eps);
      move(runningMean, mean.mean(0), momentum);
      move(runningVar, variance.mul(n / (n - 1)).mean(0), momentum);
      return value.#affine("instanceNorm", weight, bias);
    });
  }

  // ---- attention ----

  /**
   * softmax(q k^T scale + mask) v, this tensor being the queries: [..., L, E], keys [..., S, E] and values [..., S, V]
   * give [..., L, V]. A query that may see no key gives 0.
   *
   * @example
   * await new Tensor([[0]]).scaledDotProductAttention(new Tensor([[1], [1]]), new Tensor([[2], [4]])).tolist() // => [[3]]
   */
  scaledDotProductAttention(key: this, value: this, options: AttentionOptions<this> = {}): this {
    requireTensors("scaledDotProductAttention", { key, value });
    const method = "scaledDotProductAttention";
    const { attnMask, dropoutP = 0, isCausal = false, scale, enableGqa = false } = options;
    this.#checkAttention(method, key, value, attnMask, isCausal);
    const [k, v] = enableGqa ? [this.#headsOf(method, key), this.#headsOf(method, value)] : [key, value];
    const raw = this.dot(k.transpose()).mul(scale ?? 1 / Math.sqrt(this.shape.at(-1) as number));
    const scores = isCausal ? raw.#causal() : attnMask == null ? raw : raw.#masked(attnMask);
    const weights = attnMask == null ? scores.softmax(-1) : scores.#softmaxOrZero();
    return (dropoutP > 0 ? weights.dropout(dropoutP, true) : weights).dot(v);
  }
  #checkAttention(
    method: string,
    key: this,
    value: this,
    mask: this | null | undefined,
    causal: boolean,
  ): void {
    const rows = this.ndim >= 2 && key.ndim >= 2 && value.ndim >= 2;
    if (!rows || this.shape.at(-1) !== key.shape.at(-1) || key.shape.at(-2) !== value.shape.at(-2)) {
      throw new ShapeError(
        `${method}: query ${showShape(this.shape)}, key ${showShape(key.shape)} and value ${showShape(value.shape)} do not fit; ` +
          "expected [..., L, E], [..., S, E] and [..., S, V]",
      );
    }
    if (causal && mask != null) {
      throw new ArgumentError(
        `${method}: give either attnMask or isCausal; put the causal part into the mask`,
      );
    }
  }
  /** Each head as often as this tensor has heads for it. */
  #headsOf(method: string, x: this): this {
    const [have, want] = [x.shape.at(-3), this.shape.at(-3)];
    if (have === undefined || want === undefined || want % have !== 0) {
      throw new ShapeError(
        `${method}: enableGqa shares the heads of ${showShape(x.shape)} among those of ${showShape(this.shape)}; dim -3 must divide`,
      );
    }
    const { shape } = x.lazydata;
    const [lead, rest] = [shape.slice(0, -2), shape.slice(-2)];
    return x
      .reshape([...lead, 1, ...rest])
      .expand([...lead, want / have, ...rest])
      .reshape([...lead.slice(0, -1), want, ...rest]);
  }
  #causal(): this {
    return this.numbers(this.ndim - 2)
      .lt(this.numbers(this.ndim - 1))
      .where(-Infinity, this);
  }
  #masked(mask: this): this {
    return mask.dtype.kind === "bool" ? mask.where(this, -Infinity) : this.add(mask);
  }
  #softmaxOrZero(): this {
    const blind = withRecording(false, () => this.max(-1, true).eq(-Infinity));
    return blind.where(0, blind.where(0, this).softmax(-1));
  }
}

/** A running statistic goes towards that of a batch, without gradients. */
function move<T extends NeuralTensor>(running: T | null | undefined, batch: T, momentum: number): void {
  if (running == null) return;
  const now = batch.detach().reshape(running.lazydata.shape).cast(running.dtype);
  running.assign(
    running
      .detach()
      .mul(1 - momentum)
      .add(now.mul(momentum)),
  );
}
