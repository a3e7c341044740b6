// Lengths and distances: p-norms of vectors and of differences, cosines. Their gradients are 0 where a length is 0,
// though the functions have a corner there, as in torch.

import { ArgumentError, ShapeError } from "../errors.ts";
import { range } from "../helpers.ts";
import { type Element, showShape } from "./base.ts";
import { ImageTensor } from "./image.ts";
import { toFloat } from "./math.ts";
import { requireTensors } from "./movement.ts";

export abstract class DistanceTensor extends ImageTensor {
  /** The magnitude; the slope at 0 is 0. */
  protected magnitude(): this {
    return this.maximum(this.neg());
  }
  /** `this` to a power, for what is never negative; the slope at 0 is 0. */
  #power(e: number): this {
    const x = this.detach();
    const value = e === 0.5 ? x.sqrt() : x.pow(e);
    return this.wrap(value.lazydata, [this], (g, out) => [this.eq(0).where(0, g.mul(out.mul(e).div(this)))]);
  }
  /** The p-norm along `axes`, which stay as dims of size 1. */
  protected length(p: number, axes: readonly number[]): this {
    if (p === 0) {
      const count = this.detach().ne(0).cast(this.dtype).reduceSum(axes);
      return this.wrap(count.lazydata, [this], (g) => [g.mul(0).expand(this.lazydata.shape)]);
    }
    if (p === 1) return this.magnitude().reduceSum(axes);
    if (p === 2) return this.square().reduceSum(axes).#power(0.5);
    if (Math.abs(p) === Infinity) {
      const dims = axes.length === 0 ? undefined : axes;
      return p > 0 ? this.magnitude().amax(dims, true) : this.magnitude().amin(dims, true);
    }
    return this.magnitude()
      .#power(p)
      .reduceSum(axes)
      .#power(1 / p);
  }
  /** Two tensors as floats of one type and one shape. */
  protected together(method: string, x: this): [this, this] {
    return this.operands(method, [x], toFloat) as [this, this];
  }

  /**
   * Vectors along `dim` divided by their p-norm; shorter ones than `eps` are divided by `eps`.
   *
   * @example
   * await new Tensor([[3, 4]]).normalize({ p: 1 }).mul(7).tolist() // => [[3, 4]]
   */
  normalize({ p = 2, dim = 1, eps = 1e-12 }: NormalizeOptions = {}): this {
    const x = this.cast(toFloat(this.dtype));
    const axes = typeof dim === "number" ? this.dims("normalize", dim) : this.axes("normalize", dim);
    return x.div(x.length(p, axes).maximum(eps));
  }

  /**
   * The cosine of the angle between vectors along `dim`.
   *
   * @example
   * await new Tensor([[3, 4]]).cosineSimilarity(new Tensor([[4, 3]])).mul(25).round().tolist() // => [24]
   */
  cosineSimilarity(x2: this, { dim = 1, eps = 1e-8 }: { dim?: number; eps?: number } = {}): this {
    requireTensors("cosineSimilarity", { x2 });
    const [a, b] = this.together("cosineSimilarity", x2);
    const axes = a.dims("cosineSimilarity", dim);
    // divided before the sum: so the lengths and the product are one kernel
    const unit = (x: this): this => x.div(x.length(2, axes).maximum(eps));
    return unit(a).mul(unit(b)).reduceSum(axes).drop(axes, false);
  }

  /**
   * The p-norm of the differences of vectors along the last dim, each difference moved by `eps`.
   *
   * @example
   * await new Tensor([[1, 1]]).pairwiseDistance(new Tensor([[4, 5]]), { eps: 0 }).tolist() // => [5]
   */
  pairwiseDistance(x2: this, { p = 2, eps = 1e-6, keepdim = false }: PairwiseOptions = {}): this {
    requireTensors("pairwiseDistance", { x2 });
    const [a, b] = this.together("pairwiseDistance", x2);
    const axes = a.dims("pairwiseDistance", -1);
    return a.sub(b).add(eps).length(p, axes).drop(axes, keepdim);
  }

  /**
   * The p-norm of the difference of each row here and each row of `x2`: [..., m, k] and [..., n, k] give [..., m, n].
   *
   * @example
   * await new Tensor([[0, 0], [3, 4]]).cdist(new Tensor([[0, 0]])).tolist() // => [[0], [5]]
   */
  cdist(x2: this, p = 2): this {
    requireTensors("cdist", { x2 });
    if (this.ndim < 2 || x2.ndim < 2 || this.shape.at(-1) !== x2.shape.at(-1)) {
      throw new ShapeError(
        `cdist: got ${showShape(this.shape)} and ${showShape(x2.shape)}; expected rows of one length in at least 2 dims`,
      );
    }
    if (!(p >= 0)) throw new ArgumentError(`cdist: p is ${p}, expected a number from 0 up`);
    const [a, b] = this.unsqueeze(-2).together("cdist", x2.unsqueeze(-3));
    const last = a.ndim - 1;
    const apart = a.sub(b);
    // rows of no elements are all at distance 0, for every p
    const far = a.shape[last] === 0 ? apart.reduceSum([last]) : apart.length(p, [last]);
    return far.drop([last], false);
  }

  /** The number `x` where a tensor is wanted. */
  protected scalar(x: Element): this {
    return this.wrap(this.lazydata.const(typeof x === "boolean" ? Number(x) : x));
  }
  /** [1, …, n, …, 1]: a vector laid along `axis` of `ndim` dims. */
  protected along(axis: number, ndim: number): this {
    return this.reshape(range(ndim).map((i) => (i === axis ? this.size : 1)));
  }
}

export interface NormalizeOptions {
  readonly p?: number;
  readonly dim?: number | readonly number[];
  readonly eps?: number;
}
export interface PairwiseOptions {
  readonly p?: number;
  readonly eps?: number;
  readonly keepdim?: boolean;
}
