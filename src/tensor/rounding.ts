// Signs, rounding, bounds, tests, logic, and tensors made like another one: what needs no function but comparison.

import { bounds, type DType, type DTypeLike, dtypes, toDType } from "../dtype.ts";
import { ArgumentError, DTypeError, ShapeError } from "../errors.ts";
import { range } from "../helpers.ts";
import { LazyBuffer } from "../lazy/lazybuffer.ts";
import { onEach } from "../lazy/multi.ts";
import type { Element } from "./base.ts";
import { notBool, type Scaled, toFloat } from "./math.ts";
import { requireTensors } from "./movement.ts";
import { operandValue } from "./promotion.ts";
import { ReduceTensor } from "./reduce.ts";

/** When two numbers count as equal: |a - b| <= atol + rtol * |b|. */
export interface Closeness {
  readonly rtol?: number;
  readonly atol?: number;
  readonly equalNan?: boolean;
}
/** The type and the place of a tensor made like another one. */
export interface Like {
  readonly dtype?: DTypeLike;
  readonly device?: string;
}

/** The integer type that has the bits of a float type. */
export const bitsOf = (d: DType): DType => toDType(`int${d.itemsize * 8}` as DTypeLike);

export abstract class RoundingTensor extends ReduceTensor {
  // ---- signs ----

  /**
   * The absolute value.
   * @example
   * await new Tensor([-2, 3]).abs().tolist() // => [2, 3]
   */
  abs(): this {
    if (!this.dtype.isFloat) return this.dtype.kind === "int" ? this.lt(0).where(this.neg(), this) : this;
    const x = this.detach();
    // the sign bit of zero goes too
    const value = x.le(0).where(x.neg().add(0), x);
    return this.wrap(value.lazydata, [this], (g) => [g.mul(this.sign())]);
  }
  /**
   * -1, 0 or 1; NaN gives 0.
   * @example
   * await new Tensor([-2, 0, 3]).sign().tolist() // => [-1, 0, 1]
   */
  sign(): this {
    if (this.dtype.kind === "bool") return this;
    const of = (x: this) => x.gt(0).cast(x.dtype).sub(x.lt(0).cast(x.dtype));
    return this.dtype.isFloat ? this.steps(of) : of(this);
  }
  /**
   * `sign` by its name for complex numbers.
   * @example
   * await new Tensor([-2, 0, 3]).sgn().tolist() // => [-1, 0, 1]
   */
  sgn(): this {
    return this.sign();
  }
  /**
   * The tensor itself; bools are refused, as by `neg`.
   * @example
   * await new Tensor([-2, 3]).positive().tolist() // => [-2, 3]
   */
  positive(): this {
    notBool("positive")(this.dtype);
    return this;
  }
  /**
   * The angle of a real number in the complex plane: pi below zero, 0 otherwise, NaN for NaN.
   * @example
   * await new Tensor([-2, 3]).angle().tolist() // => [3.1415927410125732, 0]
   */
  angle(): this {
    return this.cast(toFloat(this.dtype)).steps((x) => x.lt(0).where(Math.PI, x.isnan().where(x, 0)));
  }
  /**
   * Whether the sign bit is set: true for -0 as well.
   * @example
   * await new Tensor([-1.5, -0, 2]).signbit().tolist() // => [true, true, false]
   */
  signbit(): this {
    return this.dtype.isFloat ? this.bitcast(bitsOf(this.dtype)).lt(0) : this.lt(0);
  }
  /**
   * The size of this with the sign of `x`; integers give floats.
   * @example
   * await new Tensor([1, -2]).copysign(-3).tolist() // => [-1, -2]
   */
  copysign(x: this | Element): this {
    const [a, b] = this.operands("copysign", [x], toFloat) as [this, this];
    const size = a.detach().abs();
    const value = b.detach().signbit().where(size.neg(), size);
    return this.wrap(value.lazydata, [a, b], (g, out) => [
      g.mul(a.eq(0).where(0, out.detach().div(a.detach()))),
      g.zero(),
    ]);
  }
  /**
   * `x - alpha * this`: subtraction with the operands swapped.
   * @example
   * await new Tensor([1, 2]).rsub(10).tolist() // => [9, 8]
   */
  rsub(x: this | Element, { alpha = 1 }: Scaled = {}): this {
    const [a, b] = this.operands("rsub", [x], notBool("rsub")) as [this, this];
    return b.sub(a, { alpha });
  }

  // ---- rounding and bounds ----

  /**
   * The nearest integer, halves to the even one; `decimals` digits after the point stay (negative: before it).
   * @example
   * await new Tensor([0.5, 1.5, -2.7]).round().tolist() // => [0, 2, -3]
   */
  round(decimals = 0): this {
    if (decimals !== 0) {
      const scale = 10 ** Math.abs(decimals);
      const wide = (x: this) =>
        decimals > 0 ? x.mul(scale).round().div(scale) : x.div(scale).round().mul(scale);
      return this.steps(wide);
    }
    return this.steps((x) => {
      const t = x.trunc();
      const rest = x.sub(t).abs();
      const odd = t.mul(0.5).trunc().ne(t.mul(0.5));
      const away = rest.gt(0.5).bitwiseOr(rest.eq(0.5).bitwiseAnd(odd));
      return away.where(x.lt(0).where(t.sub(1), t.add(1)), t);
    });
  }
  /**
   * The part after the point, with the sign of the whole.
   * @example
   * await new Tensor([1.5, -1.5]).frac().tolist() // => [0.5, -0.5]
   */
  frac(): this {
    if (!this.dtype.isFloat) throw new DTypeError(`frac: takes floats, got ${this.dtype.name}; cast first`);
    return this.sub(this.trunc());
  }
  /**
   * Not below `min` and not above `max`; either may be left out. NaN stays NaN.
   * @example
   * await new Tensor([1, 5, 9]).clamp(2, 6).tolist() // => [2, 5, 6]
   */
  clamp(min?: this | Element | null, max?: this | Element | null): this {
    const low = min ?? undefined;
    const high = max ?? undefined;
    if (low === undefined && high === undefined) {
      throw new ArgumentError("clamp: neither min nor max is given; give at least one");
    }
    if (high === undefined) return this.clampMin(low as this | Element);
    if (low === undefined) return this.clampMax(high);
    const [x, lo, hi] = this.operands("clamp", [low, high]) as [this, this, this];
    const value = x.detach().maximum(lo.detach()).minimum(hi.detach());
    return this.wrap(value.lazydata, [x, lo, hi], (g) => {
      const inside = x.ge(lo).bitwiseAnd(x.le(hi));
      const below = lo.lt(hi).bitwiseAnd(x.lt(lo));
      const above = x.gt(hi).bitwiseOr(hi.lt(lo));
      return [inside, below, above].map((c) => c.where(g, 0));
    });
  }
  /**
   * Not below `min`.
   * @example
   * await new Tensor([1, 5]).clampMin(3).tolist() // => [3, 5]
   */
  clampMin(min: this | Element): this {
    return this.binary(
      "clampMin",
      min,
      (x, lo) => x.maximum(lo),
      (g, _, x, lo) => [x.ge(lo).where(g, 0), x.lt(lo).where(g, 0)],
    );
  }
  /**
   * Not above `max`.
   * @example
   * await new Tensor([1, 5]).clampMax(3).tolist() // => [1, 3]
   */
  clampMax(max: this | Element): this {
    return this.binary(
      "clampMax",
      max,
      (x, hi) => x.minimum(hi),
      (g, _, x, hi) => [x.le(hi).where(g, 0), x.gt(hi).where(g, 0)],
    );
  }
  /**
   * The larger of two; a number wins over NaN.
   * @example
   * await new Tensor([1, NaN]).fmax(0).tolist() // => [1, 0]
   */
  fmax(x: this | Element): this {
    const [a, b] = this.operands("fmax", [x]) as [this, this];
    return a.ge(b).bitwiseOr(b.isnan()).where(a, b);
  }
  /**
   * The smaller of two; a number wins over NaN.
   * @example
   * await new Tensor([1, NaN]).fmin(0).tolist() // => [0, 0]
   */
  fmin(x: this | Element): this {
    const [a, b] = this.operands("fmin", [x]) as [this, this];
    return a.le(b).bitwiseOr(b.isnan()).where(a, b);
  }
  /**
   * From this to `end` by `weight`: 0 stays here, 1 arrives.
   * @example
   * await new Tensor([0, 10]).lerp(new Tensor([4, 20]), 0.25).tolist() // => [1, 12.5]
   */
  lerp(end: this | Element, weight: this | Element): this {
    const [a, b, w] = this.operands("lerp", [end, weight], toFloat) as [this, this, this];
    const way = b.sub(a);
    // from the nearer end, so that weights 0 and 1 are exact
    return w
      .abs()
      .lt(0.5)
      .where(a.add(w.mul(way)), b.sub(way.mul(w.rsub(1))));
  }
  /**
   * NaN and infinities replaced: by `nan`, and by the largest and smallest finite number unless told otherwise.
   * @example
   * await new Tensor([NaN, Infinity, 1.5]).nanToNum(0, 9).tolist() // => [0, 9, 1.5]
   */
  nanToNum(nan = 0, posinf?: number | null, neginf?: number | null): this {
    if (!this.dtype.isFloat) return this;
    const most = largest(this.dtype);
    const finite = this.isnan().where(nan, this.eq(Infinity).where(posinf ?? most, this));
    return this.eq(-Infinity).where(neginf ?? -most, finite);
  }

  // ---- tests and logic: bool results ----

  /**
   * Whether the element is NaN.
   * @example
   * await new Tensor([1, NaN]).isnan().tolist() // => [false, true]
   */
  isnan(): this {
    return this.ne(this);
  }
  /**
   * Whether the element is infinite.
   * @example
   * await new Tensor([1, -Infinity]).isinf().tolist() // => [false, true]
   */
  isinf(): this {
    return this.dtype.isFloat ? this.abs().eq(Infinity) : this.ne(this);
  }
  /**
   * Whether the element is infinity.
   * @example
   * await new Tensor([Infinity, -Infinity]).isposinf().tolist() // => [true, false]
   */
  isposinf(): this {
    return this.dtype.isFloat ? this.eq(Infinity) : this.ne(this);
  }
  /**
   * Whether the element is minus infinity.
   * @example
   * await new Tensor([Infinity, -Infinity]).isneginf().tolist() // => [false, true]
   */
  isneginf(): this {
    return this.dtype.isFloat ? this.eq(-Infinity) : this.ne(this);
  }
  /**
   * Whether the element is a real number: always, since there are no others here.
   * @example
   * await new Tensor([1, NaN]).isreal().tolist() // => [true, true]
   */
  isreal(): this {
    return this.fullLike(true, { dtype: dtypes.bool });
  }
  /**
   * Whether the element is neither infinite nor NaN.
   * @example
   * await new Tensor([1, NaN, Infinity]).isfinite().tolist() // => [true, false, false]
   */
  isfinite(): this {
    return this.dtype.isFloat ? this.abs().lt(Infinity) : this.eq(this);
  }
  /**
   * Whether the elements are near each other: |this - x| <= atol + rtol * |x|.
   * @example
   * await new Tensor([1, 2]).isclose(new Tensor([1.000001, 2.1])).tolist() // => [true, false]
   */
  isclose(x: this, { rtol = 1e-5, atol = 1e-8, equalNan = false }: Closeness = {}): this {
    requireTensors("isclose", { x });
    if (rtol < 0 || atol < 0) {
      throw new ArgumentError(`isclose: rtol ${rtol} and atol ${atol} must not be negative`);
    }
    const [a, b] = this.detach().operands("isclose", [x.detach()]) as [this, this];
    const same = a.eq(b);
    const either = equalNan ? same.bitwiseOr(a.isnan().bitwiseAnd(b.isnan())) : same;
    const float = toFloat(a.dtype);
    const gap = a.dtype.kind === "bool" ? a.cast(float).sub(b.cast(float)) : a.sub(b).cast(float);
    const near = gap.abs().le(b.cast(float).abs().mul(rtol).add(atol));
    return either.bitwiseOr(gap.isfinite().bitwiseAnd(near).bitwiseAnd(b.isfinite()));
  }
  /**
   * Whether all elements are near each other, as a 0-d bool tensor: lazy as everything else, `item()` reads it.
   * @example
   * await new Tensor([1, 2]).allclose(new Tensor([1.000001, 2])).item() // => true
   */
  allclose(x: this, closeness: Closeness = {}): this {
    requireTensors("allclose", { x });
    const apart = this.isclose(x, closeness).logicalNot();
    return apart
      .wrap(apart.lazydata.r("REDUCE_MAX", range(apart.ndim)))
      .reshape([])
      .logicalNot();
  }
  /**
   * Whether shapes and all elements are equal, as a 0-d bool tensor: lazy as everything else, `item()` reads it.
   * @example
   * await new Tensor([1, 2]).equal(new Tensor([1, 2])).item() // => true
   */
  equal(x: this): this {
    requireTensors("equal", { x });
    const same = this.shape.join() === x.shape.join();
    if (!same) return this.wrap(LazyBuffer.constant(this.device, [], dtypes.bool, 0));
    const apart = this.ne(x);
    return apart
      .wrap(apart.lazydata.r("REDUCE_MAX", range(apart.ndim)))
      .reshape([])
      .logicalNot();
  }
  /**
   * Whether both are true (not 0).
   * @example
   * await new Tensor([0, 2]).logicalAnd(new Tensor([1, 1])).tolist() // => [false, true]
   */
  logicalAnd(x: this | Element): this {
    return this.#truths("logicalAnd", x, (a, b) => a.bitwiseAnd(b));
  }
  /**
   * Whether one is true (not 0), or both.
   * @example
   * await new Tensor([0, 2]).logicalOr(new Tensor([0, 0])).tolist() // => [false, true]
   */
  logicalOr(x: this | Element): this {
    return this.#truths("logicalOr", x, (a, b) => a.bitwiseOr(b));
  }
  /**
   * Whether exactly one is true (not 0).
   * @example
   * await new Tensor([0, 2]).logicalXor(new Tensor([1, 1])).tolist() // => [true, false]
   */
  logicalXor(x: this | Element): this {
    return this.#truths("logicalXor", x, (a, b) => a.bitwiseXor(b));
  }
  #truths(method: string, x: this | Element, join: (a: this, b: this) => this): this {
    const [a, b] = this.operands(method, [x]) as [this, this];
    return join(a.ne(0), b.ne(0));
  }
  /**
   * Every bit turned; bools are negated.
   * @example
   * await new Tensor([0, 5]).bitwiseNot().tolist() // => [-1, -6]
   */
  bitwiseNot(): this {
    if (this.dtype.kind === "bool") return this.logicalNot();
    if (this.dtype.isInt) return this.turned();
    throw new DTypeError(`bitwiseNot: takes integers or bools, got ${this.dtype.name}; cast first`);
  }
  /**
   * `this << x`; a shift by the width or more, or by less than 0, gives 0.
   * @example
   * await new Tensor([1, 3]).bitwiseLeftShift(2).tolist() // => [4, 12]
   */
  bitwiseLeftShift(x: this | Element): this {
    const [a, b] = this.#shift("bitwiseLeftShift", x);
    return a.#shiftable(b).where(a.lshift(b), 0);
  }
  /**
   * `this >> x`; a shift by the width or more, or by less than 0, leaves only the sign.
   * @example
   * await new Tensor([8, -8]).bitwiseRightShift(2).tolist() // => [2, -2]
   */
  bitwiseRightShift(x: this | Element): this {
    const [a, b] = this.#shift("bitwiseRightShift", x);
    const gone = a.dtype.kind === "int" ? a.rshift(a.dtype.bits - 1) : 0;
    return a.#shiftable(b).where(a.rshift(b), gone);
  }
  #shift(method: string, x: this | Element): [this, this] {
    const [a, b] = this.operands(method, [x]) as [this, this];
    if (a.dtype.isInt) return [a, b];
    throw new DTypeError(`${method}: takes integers, got ${a.dtype.name}; cast first`);
  }
  #shiftable(by: this): this {
    return by.ge(0).bitwiseAnd(by.lt(this.dtype.bits));
  }

  // ---- tensors like this one ----

  /**
   * A tensor of this shape full of `value`; type and device are this one's unless told otherwise.
   * @example
   * await new Tensor([1, 2]).fullLike(7).tolist() // => [7, 7]
   */
  fullLike(value: Element, { dtype = this.dtype, device = this.device }: Like = {}): this {
    const v = operandValue("fullLike", value, toDType(dtype));
    const { lazydata: lb } = this;
    if (device === this.device) return this.wrap(lb.const(v, toDType(dtype)));
    return this.wrap(onEach(device, (d) => LazyBuffer.constant(d, lb.shape, toDType(dtype), v)));
  }
  /**
   * Zeros in this shape.
   * @example
   * await new Tensor([1, 2]).zerosLike().tolist() // => [0, 0]
   */
  zerosLike(like: Like = {}): this {
    return this.fullLike(0, like);
  }
  /**
   * Ones in this shape.
   * @example
   * await new Tensor([5, 6]).onesLike().tolist() // => [1, 1]
   */
  onesLike(like: Like = {}): this {
    return this.fullLike(1, like);
  }
  /**
   * Every element replaced by `value`, a number or a 0-d tensor. A new tensor: nothing is overwritten.
   * @example
   * await new Tensor([1, 2]).fill(3).tolist() // => [3, 3]
   */
  fill(value: this | Element): this {
    if (!(value instanceof ReduceTensor)) {
      const v = operandValue("fill", value, this.dtype);
      return this.wrap(this.lazydata.const(v), [this], (g) => [g.zero()]);
    }
    if (value.ndim !== 0) {
      throw new ShapeError(`fill: the value has shape [${value.shape}], expected a number or a 0-d tensor`);
    }
    const filled = value.cast(this.dtype).expand(this.lazydata.shape);
    return this.wrap(filled.lazydata, [this, filled], (g) => [g.zero(), g]);
  }
}

/** The largest finite number of a float type. */
function largest(d: DType): number {
  const known = new Map([
    [dtypes.float16, 65504],
    [dtypes.bfloat16, 2 ** 127 * (2 - 2 ** -7)],
    [dtypes.float32, 2 ** 127 * (2 - 2 ** -23)],
    [dtypes.float64, Number.MAX_VALUE],
  ]);
  return known.get(d) ?? Number(bounds(d)[1]);
}
