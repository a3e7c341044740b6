// Reductions, and what is made of them: mean, variance, softmax, dot and matmul.

import { bounds, type DTypeLike, dtypes, promote, sumDType, toDType } from "../dtype.ts";
import { ArgumentError, ShapeError } from "../errors.ts";
import { range } from "../helpers.ts";
import type { Sint } from "../shape/symbolic.ts";
import { showShape } from "./base.ts";
import { isNarrow, MathTensor, toFloat } from "./math.ts";
import { requireTensors } from "./movement.ts";

/** One dim or several; none at all, as in torch, means every dim. */
export type Axes = number | readonly number[];
/** Who of several equal extremes gets the gradient: the first, or all in equal parts; among "equal" ones NaN is none. */
export type Ties = "first" | "shared" | "equal";
/** The type to compute in and to return: the input is cast first. */
export interface Typed {
  readonly dtype?: DTypeLike;
}

export abstract class ReduceTensor extends MathTensor {
  /** Without the reduced dims, unless they are to stay. */
  protected drop(axes: readonly number[], keepdim: boolean): this {
    return keepdim ? this : this.reshape(this.lazydata.shape.filter((_, i) => !axes.includes(i)));
  }
  /** The dims of a reduction: all for undefined and for []. A 0-d tensor has a dim 0 to name, but none to reduce. */
  protected dims(method: string, dim: Axes | undefined): number[] {
    if (dim === undefined || (Array.isArray(dim) && dim.length === 0)) return range(this.ndim);
    if (typeof dim === "object" && !Array.isArray(dim)) {
      throw new ArgumentError(
        `${method}: dim is ${String(dim)}; expected a number, an array of numbers or nothing (all dims)`,
      );
    }
    if (this.ndim > 0) return this.axes(method, dim);
    for (const d of typeof dim === "number" ? [dim] : dim) this.axis(method, d, 1);
    return [];
  }
  /** How many elements each result is made of. */
  protected count(axes: readonly number[]): number {
    return axes.reduce((n, a) => n * (this.shape[a] as number), 1);
  }
  /** The sum over `dim`, divided by the number of its terms less `correction`. */
  #average(method: string, dim: Axes | undefined, keepdim: boolean, correction: number): this {
    const axes = this.dims(method, dim);
    const { shape } = this.lazydata;
    if (axes.every((a) => typeof shape[a] === "number")) {
      const total = this.sum(dim, keepdim);
      return total.cast(toFloat(total.dtype)).mul(1 / Math.max(0, this.count(axes) - correction));
    }
    // a symbolic size is counted in the kernel, so that one serves every binding; divided before the sum, both are one
    const x = this.cast(toFloat(this.dtype));
    const count = x.wrap(x.lazydata.const(1)).reduceSum(axes);
    const left = correction === 0 ? count : count.sub(correction).maximum(0);
    return x.div(left.expand(shape)).sum(dim, keepdim);
  }
  /** The largest along `axes`, which stay as dims of size 1; `flow` says who of the equal ones gets the gradient. */
  #reduceMax(axes: readonly number[], flow: Ties = "equal"): this {
    const { shape } = this.lazydata;
    return this.wrap(this.lazydata.r("REDUCE_MAX", axes), [this], (g, out) => {
      const equal = this.eq(out.expand(shape));
      const largest = flow === "equal" ? equal : equal.bitwiseOr(this.ne(this));
      const [at] = axes;
      if (flow === "first" && at !== undefined) return [largest.first(at).where(g.expand(shape), 0)];
      const chosen = largest.cast(g.dtype);
      return [chosen.mul(g.div(chosen.reduceSum(axes)).expand(shape))];
    });
  }
  /** Of the flags along a dim only the first that is set. */
  protected first(at: number): this {
    const { shape } = this.lazydata;
    const n = shape[at] as Sint;
    // counted down, so that the largest is the first
    const left = this.counting(n)
      .neg()
      .reshape(shape.map((_, i) => (i === at ? n : 1)));
    const far = bounds(left.dtype)[0];
    const mine = this.where(left.expand(shape), far);
    return this.bitwiseAnd(mine.eq(mine.#reduceMax([at]).expand(shape)));
  }

  /**
   * The sum over `dim` (all of them by default). Small integers and bools add up in 32 bits.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).sum(0).tolist() // => [4, 6]
   */
  sum(dim?: Axes, keepdim = false, { dtype }: Typed = {}): this {
    if (dtype !== undefined) return this.cast(dtype).sum(dim, keepdim).cast(dtype);
    // half-width floats would lose what they add: float32 holds the running sum
    if (isNarrow(this.dtype)) return this.cast(dtypes.float32).sum(dim, keepdim).cast(this.dtype);
    const axes = this.dims("sum", dim);
    return this.cast(sumDType(this.dtype)).reduceSum(axes).drop(axes, keepdim);
  }
  /**
   * The largest element along `dim` (argmax tells where, maxWithIndices gives both); NaN wins. Of equal ones along one
   * dim the first gets the gradient; over all or several dims they share it, as in amax.
   * @example
   * await new Tensor([[1, 5], [7, 3]]).max(1).tolist() // => [5, 7]
   */
  max(dim?: Axes, keepdim = false): this {
    return this.extreme("max", dim, keepdim, typeof dim === "number" ? "first" : "shared");
  }
  /** The largest or the smallest elements, with the gradient as `flow` says. */
  protected extreme(method: string, dim: Axes | undefined, keepdim: boolean, flow: Ties): this {
    const axes = this.requireElements(method, dim);
    const largest = (x: this) => x.#reduceMax(axes, flow).drop(axes, keepdim);
    if (method === "max" || method === "amax") return largest(this);
    if (this.dtype.kind === "bool") return largest(this.logicalNot()).logicalNot();
    return this.dtype.isFloat ? largest(this.neg()).neg() : largest(this.turned()).turned();
  }
  /**
   * The smallest element along `dim` (argmin tells where, minWithIndices gives both); NaN wins. Of equal ones along one
   * dim the first gets the gradient; over all or several dims they share it, as in amin.
   * @example
   * await new Tensor([[1, 5], [7, 3]]).min(1).tolist() // => [1, 3]
   */
  min(dim?: Axes, keepdim = false): this {
    return this.extreme("min", dim, keepdim, typeof dim === "number" ? "first" : "shared");
  }
  /** ~x turns the order of integers around without overflow. */
  protected turned(): this {
    const ones = this.dtype.kind === "int" ? -1 : 2n ** BigInt(this.dtype.bits) - 1n;
    return this.bitwiseXor(this.wrap(this.lazydata.const(ones)));
  }
  protected requireElements(method: string, dim: Axes | undefined): readonly number[] {
    const axes = this.dims(method, dim);
    if (this.count(axes) > 0) return axes;
    throw new ShapeError(
      `${method}: shape ${showShape(this.shape)} has no elements along dim ${axes.join(", ")}; there is no ${method} of nothing`,
    );
  }

  /**
   * The mean over `dim`; integers give float32.
   * @example
   * await new Tensor([1, 2, 6]).mean().item() // => 3
   */
  mean(dim?: Axes, keepdim = false, { dtype }: Typed = {}): this {
    if (dtype !== undefined) return this.cast(dtype).mean(dim, keepdim);
    if (isNarrow(this.dtype)) return this.cast(dtypes.float32).mean(dim, keepdim).cast(this.dtype);
    return this.#average("mean", dim, keepdim, 0);
  }
  /**
   * The variance; `correction` 1 (the default) divides by n - 1.
   * @example
   * await new Tensor([1, 2, 3]).var().item() // => 1
   */
  var(dim?: Axes, keepdim = false, correction = 1): this {
    return this.#variance("var", dim, keepdim, correction);
  }
  #variance(method: string, dim: Axes | undefined, keepdim: boolean, correction: number): this {
    if (isNarrow(this.dtype)) {
      return this.cast(dtypes.float32).#variance(method, dim, keepdim, correction).cast(this.dtype);
    }
    this.dims(method, dim);
    const x = this.cast(toFloat(this.dtype));
    const difference = x.sub(this.mean(dim, true));
    return difference.square().#average(method, dim, keepdim, correction);
  }
  /**
   * The standard deviation; `correction` 1 (the default) divides by n - 1.
   * @example
   * await new Tensor([1, 2, 3]).std().item() // => 1
   */
  std(dim?: Axes, keepdim = false, correction = 1): this {
    const variance = this.#variance("std", dim, keepdim, correction);
    // equal elements have no direction in which to part: 0, where the root has no finite slope
    return this.wrap(variance.lazydata.e("SQRT"), [variance], (g, out) => [
      out.eq(0).where(0, g.div(out.mul(2))),
    ]);
  }

  /**
   * exp(x) / sum(exp(x)) along `dim`, safe for large values.
   * @example
   * await new Tensor([3, 3]).softmax().tolist() // => [0.5, 0.5]
   */
  softmax(dim = -1, { dtype }: Typed = {}): this {
    return this.#normalized("softmax", dim, dtype, (x, axes) => {
      const e = x.detach().#shifted(axes).#expSmall();
      // one division a row: the sum is at least 1, so its reciprocal loses next to nothing
      return this.wrap(e.mul(e.reduceSum(axes).reciprocal()).lazydata, [x], (g, out) => [
        out.mul(g.sub(g.mul(out).reduceSum(axes))),
      ]);
    });
  }
  /**
   * The logarithm of softmax, without the detour.
   * @example
   * await new Tensor([3, 3]).logSoftmax().exp().sum().item() // => 1
   */
  logSoftmax(dim = -1, { dtype }: Typed = {}): this {
    return this.#normalized("logSoftmax", dim, dtype, (x, axes) => {
      const shifted = x.detach().#shifted(axes);
      return this.wrap(shifted.sub(shifted.#expSmall().reduceSum(axes).log()).lazydata, [x], (g, out) => [
        g.sub(out.exp().mul(g.reduceSum(axes))),
      ]);
    });
  }
  #normalized(
    method: string,
    dim: number,
    dtype: DTypeLike | undefined,
    f: (x: this, axes: readonly number[]) => this,
  ): this {
    const axes = this.dims(method, dim);
    const x = this.cast(dtype === undefined ? toFloat(this.dtype) : toDType(dtype));
    return isNarrow(x.dtype) ? f(x.cast(dtypes.float32), axes).cast(x.dtype) : f(x, axes);
  }
  /** exp of what is not above 0: where exp would take care of lost digits, next to nothing is left to add. */
  #expSmall(): this {
    return this.mul(Math.LOG2E).exp2();
  }
  #shifted(axes: readonly number[]): this {
    return this.size === 0 ? this : this.sub(this.#reduceMax(axes));
  }

  /**
   * The matrix product; vectors are rows on the left and columns on the right, batches broadcast.
   * @example
   * await new Tensor([1, 2]).dot(new Tensor([3, 4])).item() // => 11
   */
  dot(w: this): this {
    return this.#product("dot", w);
  }
  #product(method: string, w: this): this {
    requireTensors(method, { w });
    const [n, m] = [this.ndim, w.ndim];
    if (n === 0 || m === 0) {
      throw new ShapeError(
        `${method}: got ${showShape(this.shape)} and ${showShape(w.shape)}; both need at least one dim (mul multiplies scalars)`,
      );
    }
    const inner = -Math.min(m, 2);
    const [k, kw] = [this.lazydata.shape.at(-1), w.lazydata.shape.at(inner)];
    if (k !== kw) {
      throw new ShapeError(
        `${method}: cannot multiply ${showShape(this.shape)} by ${showShape(w.shape)}; dim -1 of the first is ${k}, dim ${inner} of the second is ${kw}, expected equal`,
      );
    }
    if (isNarrow(this.dtype) && isNarrow(w.dtype)) {
      const type = promote(this.dtype, w.dtype);
      return this.cast(dtypes.float32).#product(method, w.cast(dtypes.float32)).cast(type);
    }
    // small integers and bools multiply in the type that they add up in
    const type = promote(this.dtype, w.dtype);
    if (sumDType(type) !== type) return this.cast(sumDType(type)).#product(method, w.cast(sumDType(type)));
    const extra = Math.min(n - 1, m - 1, 1);
    const ones = Array.from({ length: extra }, () => 1);
    const { shape: a } = this.lazydata;
    const { shape: b } = w.lazydata;
    const left = this.reshape([...a.slice(0, -1), ...ones, a.at(-1) as Sint]);
    const right = w.reshape([...b.slice(0, -2), ...ones, ...b.slice(inner)]).transpose(-1, inner);
    return left.mul(right).sum(-1);
  }
  /**
   * The matrix product: torch's name for dot with batches.
   * @example
   * await new Tensor([[1, 2]]).matmul(new Tensor([[3], [4]])).tolist() // => [[11]]
   */
  matmul(w: this): this {
    return this.#product("matmul", w);
  }
}
