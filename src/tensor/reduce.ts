// Reductions, and what is made of them: mean, variance, softmax, dot and matmul.

import { type DType, dtypes, promote, sumDType } from "../dtype.ts";
import { ShapeError } from "../errors.ts";
import type { ReduceOp } from "../ops.ts";
import type { Sint } from "../shape/symbolic.ts";
import { showShape } from "./base.ts";
import { MathTensor } from "./math.ts";

export type Axes = number | readonly number[];

const isNarrow = (d: DType): boolean => d === dtypes.float16 || d === dtypes.bfloat16;

export abstract class ReduceTensor extends MathTensor {
  #reduce(method: string, op: ReduceOp, axis: Axes | undefined, keepdim: boolean): this {
    const axes = this.axes(method, axis);
    const out = this.lazydata.r(op, axes);
    return this.wrap(keepdim ? out : out.reshape(out.shape.filter((_, i) => !axes.includes(i))));
  }
  #count(axes: readonly number[]): number {
    return axes.reduce((n, a) => n * (this.shape[a] as number), 1);
  }

  /** The sum over `axis` (all of them by default). Small integers and bools add up in 32 bits. */
  sum(axis?: Axes, keepdim = false): this {
    // half-width floats would lose what they add: float32 holds the running sum
    if (isNarrow(this.dtype)) return this.cast(dtypes.float32).sum(axis, keepdim).cast(this.dtype);
    return this.cast(sumDType(this.dtype)).#reduce("sum", "SUM", axis, keepdim);
  }
  /** The largest element; NaN wins. */
  max(axis?: Axes, keepdim = false): this {
    this.#requireElements("max", axis);
    return this.#reduce("max", "REDUCE_MAX", axis, keepdim);
  }
  /** The smallest element; NaN wins. */
  min(axis?: Axes, keepdim = false): this {
    this.#requireElements("min", axis);
    if (this.dtype.kind === "bool") return this.logicalNot().max(axis, keepdim).logicalNot();
    if (this.dtype.isFloat) return this.neg().max(axis, keepdim).neg();
    // ~x turns the order of integers around without overflow
    const ones = this.dtype.kind === "int" ? -1 : 2n ** BigInt(this.dtype.bits) - 1n;
    const flip = (t: this): this => t.bitwiseXor(t.wrap(t.lazydata.const(ones)));
    return flip(flip(this).max(axis, keepdim));
  }
  #requireElements(method: string, axis: Axes | undefined): void {
    const axes = this.axes(method, axis);
    if (this.#count(axes) > 0) return;
    throw new ShapeError(
      `${method}: shape ${showShape(this.shape)} has no elements along dim ${axes.join(", ")}; there is no ${method} of nothing`,
    );
  }

  /** Integers give float32. */
  mean(axis?: Axes, keepdim = false): this {
    const axes = this.axes("mean", axis);
    if (isNarrow(this.dtype)) return this.cast(dtypes.float32).mean(axis, keepdim).cast(this.dtype);
    const total = this.sum(axis, keepdim);
    return (total.dtype.isFloat ? total : total.cast(dtypes.float32)).mul(1 / this.#count(axes));
  }
  /** The variance; `correction` 1 (the default) divides by n - 1. */
  var(axis?: Axes, keepdim = false, correction = 1): this {
    if (isNarrow(this.dtype))
      return this.cast(dtypes.float32).var(axis, keepdim, correction).cast(this.dtype);
    const axes = this.axes("var", axis);
    const x = this.dtype.isFloat ? this : this.cast(dtypes.float32);
    const difference = x.sub(this.mean(axis, true));
    return difference
      .square()
      .sum(axis, keepdim)
      .mul(1 / Math.max(0, this.#count(axes) - correction));
  }
  /** The square root of the variance. */
  std(axis?: Axes, keepdim = false, correction = 1): this {
    return this.var(axis, keepdim, correction).sqrt();
  }
  /** exp(x) / sum(exp(x)) along `axis`, safe for large values. */
  softmax(axis = -1): this {
    const e = this.#shifted("softmax", axis).exp();
    return e.div(e.sum(this.ndim === 0 ? [] : axis, true));
  }
  /** The logarithm of softmax, computed without its overflow. */
  logSoftmax(axis = -1): this {
    const x = this.#shifted("logSoftmax", axis);
    return x.sub(
      x
        .exp()
        .sum(this.ndim === 0 ? [] : axis, true)
        .log(),
    );
  }
  #shifted(method: string, axis: number): this {
    if (this.ndim > 0) this.axis(method, axis);
    const x = this.dtype.isFloat ? this : this.cast(dtypes.float32);
    return this.ndim === 0 || this.size === 0 ? x.sub(x) : x.sub(x.max(axis, true));
  }

  /** The matrix product; vectors are rows on the left and columns on the right, batches broadcast. */
  dot(w: this): this {
    const [n, m] = [this.ndim, w.ndim];
    if (n === 0 || m === 0) {
      throw new ShapeError(
        `dot: got ${showShape(this.shape)} and ${showShape(w.shape)}; both need at least one dim (mul multiplies scalars)`,
      );
    }
    const inner = -Math.min(m, 2);
    const [k, kw] = [this.lazydata.shape.at(-1), w.lazydata.shape.at(inner)];
    if (k !== kw) {
      throw new ShapeError(
        `dot: cannot multiply ${showShape(this.shape)} by ${showShape(w.shape)}; dim -1 of the first is ${k}, dim ${inner} of the second is ${kw}, expected equal`,
      );
    }
    if (isNarrow(this.dtype) && isNarrow(w.dtype)) {
      const type = promote(this.dtype, w.dtype);
      return this.cast(dtypes.float32).dot(w.cast(dtypes.float32)).cast(type);
    }
    const extra = Math.min(n - 1, m - 1, 1);
    const ones = Array.from({ length: extra }, () => 1);
    const { shape: a } = this.lazydata;
    const { shape: b } = w.lazydata;
    const left = this.reshape([...a.slice(0, -1), ...ones, a.at(-1) as Sint]);
    const right = w.reshape([...b.slice(0, -2), ...ones, ...b.slice(inner)]).transpose(-1, inner);
    return left.mul(right).sum(-1);
  }
  /** torch's name for dot. */
  matmul(w: this): this {
    return this.dot(w);
  }
}
