// Dropout of whole channels (1d, 2d, 3d), and dropout that keeps the mean and the variance of
// self-normalising networks (SELU). Neither changes anything outside of training.

import { ArgumentError, ShapeError } from "../errors.ts";
import { showShape } from "../tensor/show.ts";
import { Tensor } from "../tensor/tensor.ts";
import { Module, trains } from "./module.ts";

function checkP(name: string, p: number): void {
  if (p >= 0 && p <= 1) return;
  throw new ArgumentError(`${name}: p is ${p}, expected a probability from 0 to 1`);
}
/** Ones and zeros of a shape that broadcasts to the input: zero with probability `p`. */
function kept(x: Tensor, shape: readonly number[], p: number): Tensor {
  const ones = Tensor.ones([...shape], { dtype: "float32", device: x.device });
  return ones.dropout(p, true).ne(0).cast(x.dtype);
}
/** A number for each channel of each sample; `batched` says whether dim 0 is the batch. */
const channels = (x: Tensor, batched: boolean): number[] =>
  x.shape.map((n, i) => (i < (batched ? 2 : 1) ? n : 1));

/** The common part of dropouts of whole channels. */
abstract class ChannelDropout extends Module {
  training: boolean | undefined = undefined;
  readonly p: number;
  constructor(p: number) {
    super();
    checkP(new.target.name, p);
    this.p = p;
  }
  /** Whether an input with this many dims has a batch; undefined if such an input is not allowed. */
  protected abstract batched(ndim: number): boolean | undefined;
  protected abstract readonly expected: string;
  forward(x: Tensor): Tensor {
    const batched = this.batched(x.ndim);
    if (batched === undefined) {
      throw new ShapeError(
        `${this.constructor.name}: shape ${showShape(x.shape)}, expected ${this.expected}`,
      );
    }
    if (this.p === 0 || !trains(this)) return x;
    const mask = kept(x, channels(x, batched), this.p);
    return x.mul(this.p === 1 ? mask : mask.div(1 - this.p));
  }
}
/**
 * In training, sets whole channels of [n, c, length] or [c, length] to zero with probability `p`, and scales
 * up the rest.
 * @example
 * await new nn.Dropout1d(0.5).eval().forward(new Tensor([[1, 2]])).tolist() // => [[1, 2]]
 */
export class Dropout1d extends ChannelDropout {
  static override readonly name: string = "Dropout1d";
  protected readonly expected = "[n, channels, length] or [channels, length]";
  constructor(p = 0.5) {
    super(p);
  }
  protected batched(ndim: number): boolean | undefined {
    return ndim === 3 || (ndim === 2 ? false : undefined);
  }
}
/**
 * As Dropout1d, of [n, c, height, width]; as in torch, three dims are [n, c, length].
 * @example
 * new nn.Dropout2d().forward(Tensor.ones(1, 2, 4, 4)).shape // => [1, 2, 4, 4]
 */
export class Dropout2d extends ChannelDropout {
  static override readonly name: string = "Dropout2d";
  protected readonly expected = "[n, channels, height, width] or [n, channels, length]";
  constructor(p = 0.5) {
    super(p);
  }
  protected batched(ndim: number): boolean | undefined {
    return ndim === 4 || ndim === 3 || undefined;
  }
}
/**
 * As Dropout1d, of [n, c, depth, height, width] or [c, depth, height, width].
 * @example
 * new nn.Dropout3d().forward(Tensor.ones(1, 2, 3, 4, 4)).shape // => [1, 2, 3, 4, 4]
 */
export class Dropout3d extends ChannelDropout {
  static override readonly name: string = "Dropout3d";
  protected readonly expected = "[n, channels, depth, height, width] or [channels, depth, height, width]";
  constructor(p = 0.5) {
    super(p);
  }
  protected batched(ndim: number): boolean | undefined {
    return ndim === 5 || (ndim === 4 ? false : undefined);
  }
}

/** What SELU gives for very negative elements: the value of those that are dropped. */
const SATURATED = -1.7580993408473766;

/** Sets elements where the mask is 0 to SELU's limit, then restores mean 0 and variance 1. */
function alphaDropped(x: Tensor, mask: Tensor, p: number): Tensor {
  if (p === 1) return x.mul(0);
  const scale = 1 / Math.sqrt((1 - p) * (1 + p * SATURATED ** 2));
  const rest = mask.sub(1).mul(-SATURATED); // SATURATED where the mask is 0
  return x
    .mul(mask)
    .add(rest)
    .mul(scale)
    .add(-scale * SATURATED * p);
}
/**
 * Dropout for networks of SELU: dropped elements take the value that SELU has far below zero, and mean and
 * variance stay.
 * @example
 * await new nn.AlphaDropout(0.5).eval().forward(new Tensor([1, 2])).tolist() // => [1, 2]
 */
export class AlphaDropout extends Module {
  static override readonly name: string = "AlphaDropout";
  training: boolean | undefined = undefined;
  readonly p: number;
  constructor(p = 0.5) {
    super();
    checkP("AlphaDropout", p);
    this.p = p;
  }
  forward(x: Tensor): Tensor {
    return this.p === 0 || !trains(this) ? x : alphaDropped(x, kept(x, x.shape, this.p), this.p);
  }
}
/**
 * AlphaDropout of whole channels: of [n, c, ...], one choice for each n and c.
 * @example
 * await new nn.FeatureAlphaDropout().eval().forward(new Tensor([[[1, 2]]])).tolist() // => [[[1, 2]]]
 */
export class FeatureAlphaDropout extends Module {
  static override readonly name: string = "FeatureAlphaDropout";
  training: boolean | undefined = undefined;
  readonly p: number;
  constructor(p = 0.5) {
    super();
    checkP("FeatureAlphaDropout", p);
    this.p = p;
  }
  forward(x: Tensor): Tensor {
    if (x.ndim < 2) {
      throw new ShapeError(`FeatureAlphaDropout: shape ${showShape(x.shape)}, expected [n, channels, …]`);
    }
    return this.p === 0 || !trains(this) ? x : alphaDropped(x, kept(x, channels(x, true), this.p), this.p);
  }
}
