// Elementwise math: arithmetic, comparison, bits, choice and the primitive functions, with broadcasting and promotion
// as in torch. What is made of these is in the layers after reduce (elementary, special, functions).

import { type DType, dtypes } from "../dtype.ts";
import { ArgumentError, DTypeError } from "../errors.ts";
import { type Algebra, type AluOp, opRecord } from "../ops.ts";
import type { Sint } from "../shape/symbolic.ts";
import type { Element } from "./base.ts";
import { MovementTensor } from "./movement.ts";
import { broadcastShape, commonType, isNarrow, notBool, operandValue, toFloat } from "./promotion.ts";

export { isNarrow, notBool, toFloat };

/** `alpha` times the other operand is added or subtracted. */
export interface Scaled {
  readonly alpha?: Element;
}
/** How a quotient is made whole: cut towards zero, or down; undefined and null leave it as it is. */
export interface Rounded {
  readonly roundingMode?: "trunc" | "floor" | null;
}

/** log(2) in two parts; multiples of the first up to 2^12 are exact in float32. */
const LN2_PARTS = [2839 / 4096, Math.LN2 - 2839 / 4096 + 2.3190468138462996e-17] as const;

export abstract class MathTensor extends MovementTensor {
  // ---- operands ----

  /** Operands as nodes of one shape and one type: the common one, or what `dtype` makes of it. */
  protected operands(
    method: string,
    others: readonly (this | Element)[],
    dtype?: (common: DType) => DType,
  ): this[] {
    const all = [this, ...others];
    const common = commonType(method, all);
    return this.#spread(method, all, dtype?.(common) ?? common);
  }
  #spread(
    method: string,
    xs: readonly (this | Element)[],
    type: DType,
    shape = broadcastShape(method, xs),
  ): this[] {
    return xs.map((x) => {
      if (x instanceof MathTensor) return x.broadcastTo(shape).cast(type);
      return this.constant(shape, type, operandValue(method, x, type));
    });
  }
  /** The primitive: operands of one shape and type, the gradient as the op's record says. */
  protected alu(op: AluOp, ...others: readonly this[]): this {
    const srcs = [this, ...others];
    const lb = this.lazydata.e(op, ...others.map((o) => o.lazydata));
    return this.wrap(lb, srcs, (g, out) => opRecord(op).gradient(g.#algebra(), g, out, ...srcs));
  }
  /** What gradients are written in: constants have this tensor's shape and place. */
  #algebra(): Algebra<this> {
    return {
      alu: (op, first, ...rest) => (first as this).alu(op, ...rest),
      constant: (dtype, value) => this.wrap(this.lazydata.const(value, dtype)),
      cast: (x, dtype) => x.cast(dtype),
      bitcast: (x, dtype) => x.bitcast(dtype),
      dtypeOf: (x) => x.dtype,
    };
  }
  #binary(method: string, op: AluOp, other: this | Element, dtype?: (common: DType) => DType): this {
    const [a, b] = this.operands(method, [other], dtype) as [this, this];
    return a.alu(op, b);
  }
  #float(op: AluOp): this {
    return this.cast(toFloat(this.dtype)).alu(op);
  }
  /**
   * A function of each element, integers as floats. Half-width floats compute in float32: the steps of a formula would
   * lose their few digits. The derivative may use the result.
   */
  protected unary(value: (x: this) => this, derivative: (x: this, out: this) => this): this {
    const x = this.cast(toFloat(this.dtype));
    if (isNarrow(x.dtype)) return x.cast(dtypes.float32).unary(value, derivative).cast(x.dtype);
    return this.wrap(value(x.detach()).lazydata, [x], (g, out) => [g.mul(derivative(x, out))]);
  }
  /** A function of two operands, with the gradients of both. */
  protected binary(
    method: string,
    other: this | Element,
    value: (a: this, b: this) => this,
    gradient: (g: this, out: this, a: this, b: this) => readonly [this, this],
    dtype?: (common: DType) => DType,
  ): this {
    const [a, b] = this.operands(method, [other], dtype) as [this, this];
    return this.wrap(value(a.detach(), b.detach()).lazydata, [a, b], (g, out) => gradient(g, out, a, b));
  }
  #integers(method: string, op: AluOp, other: this | Element, bool: boolean): this {
    return this.#binary(method, op, other, (d) => {
      if (d.isInt || (bool && d.kind === "bool")) return d;
      throw new DTypeError(`${method}: takes integers${bool ? " or bools" : ""}, got ${d.name}; cast first`);
    });
  }

  /**
   * This tensor in a larger shape, dims of size 1 repeated; what has the shape already stays as it is.
   * @example
   * await new Tensor([1, 2]).broadcastTo([2, 2]).tolist() // => [[1, 2], [1, 2]]
   */
  broadcastTo(shape: readonly Sint[]): this {
    return shape.length === this.ndim && shape.every((s, i) => s === this.lazydata.shape[i])
      ? this
      : this.expand(shape);
  }

  // ---- arithmetic ----

  /**
   * `this + alpha * x`, elementwise, with broadcasting.
   * @example
   * await new Tensor([1, 2]).add(new Tensor([10, 20]), { alpha: 2 }).tolist() // => [21, 42]
   */
  add(x: this | Element, { alpha = 1 }: Scaled = {}): this {
    return this.#binary("add", "ADD", scaled(x, alpha));
  }
  /**
   * `this - alpha * x`
   * @example
   * await new Tensor([5, 7]).sub(2).tolist() // => [3, 5]
   */
  sub(x: this | Element, { alpha = 1 }: Scaled = {}): this {
    return this.#binary("sub", "SUB", scaled(x, alpha), notBool("sub"));
  }
  /**
   * `this * x`
   * @example
   * await new Tensor([1, 2]).mul(3).tolist() // => [3, 6]
   */
  mul(x: this | Element): this {
    return this.#binary("mul", "MUL", x);
  }
  /**
   * `this / x`; integers give floats. With `roundingMode` the quotient is cut towards zero ("trunc") or down ("floor"),
   * and integers stay integers; an integer divided by 0 gives 0.
   * @example
   * await new Tensor([7, -7]).div(2, { roundingMode: "floor" }).tolist() // => [3, -4]
   */
  div(x: this | Element, { roundingMode }: Rounded = {}): this {
    if (roundingMode === undefined || roundingMode === null) return this.#binary("div", "DIV", x, toFloat);
    if (roundingMode === "floor") return this.floorDivide(x);
    if (roundingMode !== "trunc") {
      throw new ArgumentError(`div: roundingMode is ${roundingMode}, expected "trunc", "floor" or null`);
    }
    const cut = (a: this, b: this) => (a.dtype.isFloat ? a.div(b).trunc() : a.idiv(b));
    return this.binary("div", x, cut, (g) => [g.zero(), g.zero()], notBool("div with roundingMode"));
  }
  /**
   * The quotient rounded down. An integer divided by 0 gives 0.
   * @example
   * await new Tensor([7, -7]).floorDivide(2).tolist() // => [3, -4]
   */
  floorDivide(x: this | Element): this {
    const zeros = (g: this) => [g.zero(), g.zero()] as const;
    return this.binary("floorDivide", x, (a, b) => a.#quotientDown(b), zeros, notBool("floorDivide"));
  }
  #quotientDown(b: this): this {
    if (!this.dtype.isFloat) return this.idiv(b).sub(this.#oddRest(b).cast(this.dtype));
    // the rest is exact and the quotient rounds: 1 / 0.1 in floats is 10, but 0.1 fits only 9 times
    const whole = this.sub(this.fmod(b)).div(b);
    const down = this.#oddRest(b).where(whole.sub(1), whole);
    const low = down.floor();
    const near = down.sub(low).gt(0.5).where(low.add(1), low);
    const quotient = this.div(b);
    const signed = down.eq(0).where(quotient.mul(0), near);
    return b.eq(0).where(quotient, signed);
  }
  /** Where the remainder of C is not yet that of Python: it is not 0, and its sign is not the divisor's. */
  #oddRest(b: this): this {
    const rest = this.fmod(b);
    return rest.ne(0).alu("AND", rest.lt(0).alu("CMPNE", b.lt(0)));
  }
  /**
   * Integer division towards zero; by zero gives 0.
   * @example
   * await new Tensor([7, -7]).idiv(2).tolist() // => [3, -3]
   */
  idiv(x: this | Element): this {
    return this.#integers("idiv", "IDIV", x, false);
  }
  /**
   * The remainder with the sign of the dividend, as in C; an integer modulo 0 is 0.
   * @example
   * await new Tensor([7, -7]).fmod(3).tolist() // => [1, -1]
   */
  fmod(x: this | Element): this {
    return this.#binary("fmod", "MOD", x, notBool("fmod"));
  }
  /**
   * The remainder with the sign of the divisor, as in Python; an integer modulo 0 is 0.
   * @example
   * await new Tensor([7, -7]).remainder(3).tolist() // => [1, 2]
   */
  remainder(x: this | Element): this {
    return this.binary(
      "remainder",
      x,
      (a, b) => a.#oddRest(b).where(a.fmod(b).add(b), a.fmod(b)),
      (g, _, a, b) => [g, g.mul(a.detach().floorDivide(b.detach())).neg()],
      notBool("remainder"),
    );
  }
  /**
   * `-this`
   * @example
   * await new Tensor([1, -2]).neg().tolist() // => [-1, 2]
   */
  neg(): this {
    notBool("neg")(this.dtype);
    return this.alu("NEG");
  }
  /**
   * `this * x + y`
   * @example
   * await new Tensor([1, 2]).mulacc(10, 3).tolist() // => [13, 23]
   */
  mulacc(x: this | Element, y: this | Element): this {
    const [a, b, c] = this.operands("mulacc", [x, y]) as [this, this, this];
    return a.alu("MULACC", b, c);
  }
  /**
   * The larger of two; NaN wins, equal ones share the gradient.
   * @example
   * await new Tensor([1, 5]).maximum(3).tolist() // => [3, 5]
   */
  maximum(x: this | Element): this {
    return this.#binary("maximum", "MAX", x);
  }
  /**
   * The smaller of two; NaN wins, equal ones share the gradient.
   * @example
   * await new Tensor([1, 5]).minimum(3).tolist() // => [1, 3]
   */
  minimum(x: this | Element): this {
    return this.binary(
      "minimum",
      x,
      // where b is not below a and is a number, a it is
      (a, b) => b.alu("CMPLT", a).alu("OR", b.alu("CMPNE", b)).alu("WHERE", b, a),
      (g, _, a, b) => {
        const half = a.eq(b).where(g.mul(0.5), g);
        return [b.lt(a).where(0, half), a.lt(b).where(0, half)];
      },
    );
  }
  /**
   * `this * this`
   * @example
   * await new Tensor([3, -4]).square().tolist() // => [9, 16]
   */
  square(): this {
    const x = this.dtype.kind === "bool" ? this.cast(dtypes.int32) : this;
    return x.mul(x);
  }

  // ---- comparison and choice: bool results ----

  /**
   * `this < x`
   * @example
   * await new Tensor([1, 3]).lt(2).tolist() // => [true, false]
   */
  lt(x: this | Element): this {
    return this.#binary("lt", "CMPLT", x);
  }
  /**
   * `this > x`
   * @example
   * await new Tensor([1, 3]).gt(2).tolist() // => [false, true]
   */
  gt(x: this | Element): this {
    const [a, b] = this.operands("gt", [x]) as [this, this];
    return b.alu("CMPLT", a);
  }
  /**
   * `this <= x`
   * @example
   * await new Tensor([1, 2, 3]).le(2).tolist() // => [true, true, false]
   */
  le(x: this | Element): this {
    const [a, b] = this.operands("le", [x]) as [this, this];
    return a.alu("CMPLT", b).alu("OR", a.alu("CMPEQ", b));
  }
  /**
   * `this >= x`
   * @example
   * await new Tensor([1, 2, 3]).ge(2).tolist() // => [false, true, true]
   */
  ge(x: this | Element): this {
    const [a, b] = this.operands("ge", [x]) as [this, this];
    return b.alu("CMPLT", a).alu("OR", a.alu("CMPEQ", b));
  }
  /**
   * `this == x`
   * @example
   * await new Tensor([1, 2]).eq(2).tolist() // => [false, true]
   */
  eq(x: this | Element): this {
    return this.#binary("eq", "CMPEQ", x);
  }
  /**
   * `this != x`
   * @example
   * await new Tensor([1, 2]).ne(2).tolist() // => [true, false]
   */
  ne(x: this | Element): this {
    return this.#binary("ne", "CMPNE", x);
  }
  /**
   * True where the element is 0 or false.
   * @example
   * await new Tensor([0, 2]).logicalNot().tolist() // => [true, false]
   */
  logicalNot(): this {
    return this.eq(0);
  }
  /**
   * `this ? x : y`; this must be bool.
   * @example
   * await new Tensor([true, false]).where(1, new Tensor([7, 8])).tolist() // => [1, 8]
   */
  where(x: this | Element, y: this | Element): this {
    if (this.dtype.kind !== "bool") {
      throw new DTypeError(
        `where: the condition is ${this.dtype.name}, expected bool; compare first, as in t.ne(0)`,
      );
    }
    const shape = broadcastShape("where", [this, x, y]);
    const [a, b] = this.#spread("where", [x, y], commonType("where", [x, y]), shape) as [this, this];
    return this.broadcastTo(shape).alu("WHERE", a, b);
  }

  // ---- bits ----

  /**
   * `this & x`, of integers or bools.
   * @example
   * await new Tensor([6, 5]).bitwiseAnd(3).tolist() // => [2, 1]
   */
  bitwiseAnd(x: this | Element): this {
    return this.#integers("bitwiseAnd", "AND", x, true);
  }
  /**
   * `this | x`, of integers or bools.
   * @example
   * await new Tensor([6, 5]).bitwiseOr(3).tolist() // => [7, 7]
   */
  bitwiseOr(x: this | Element): this {
    return this.#integers("bitwiseOr", "OR", x, true);
  }
  /**
   * `this ^ x`, of integers or bools.
   * @example
   * await new Tensor([6, 5]).bitwiseXor(3).tolist() // => [5, 6]
   */
  bitwiseXor(x: this | Element): this {
    return this.#integers("bitwiseXor", "XOR", x, true);
  }
  /**
   * `this << x`, by x modulo the width of the type; bitwiseLeftShift is torch's.
   * @example
   * await new Tensor([1, 3]).lshift(2).tolist() // => [4, 12]
   */
  lshift(x: this | Element): this {
    return this.#integers("lshift", "SHL", x, false);
  }
  /**
   * `this >> x`, by x modulo the width of the type; bitwiseRightShift is torch's.
   * @example
   * await new Tensor([8, -8]).rshift(2).tolist() // => [2, -2]
   */
  rshift(x: this | Element): this {
    return this.#integers("rshift", "SHR", x, false);
  }

  // ---- functions; integers become floats ----

  /**
   * 2 to the power of each element.
   * @example
   * await new Tensor([3, -1]).exp2().tolist() // => [8, 0.5]
   */
  exp2(): this {
    return this.#float("EXP2");
  }
  /**
   * e to the power of each element.
   * @example
   * await new Tensor([0, -Infinity]).exp().tolist() // => [1, 0]
   */
  exp(): this {
    return this.unary(
      (x) => {
        // x log2(e) rounds, and by more the larger it is; what it lost comes back as a factor near 1
        const y = x.mul(Math.LOG2E);
        const n = y.trunc();
        const f = LN2_PARTS.reduce<this>((r, part) => r.sub(n.mul(part)), x).mul(Math.LOG2E);
        const factor = f.sub(y.sub(n)).mul(Math.LN2).add(1);
        return y.exp2().mul(x.mul(x).lt(1e6).where(factor, 1));
      },
      (_, out) => out,
    );
  }
  /**
   * The logarithm to base 2.
   * @example
   * await new Tensor([8, 0.5]).log2().tolist() // => [3, -1]
   */
  log2(): this {
    return this.#float("LOG2");
  }
  /**
   * The natural logarithm.
   * @example
   * await new Tensor([1, 0]).log().tolist() // => [0, -Infinity]
   */
  log(): this {
    return this.unary(
      (x) => x.log2().mul(Math.LN2),
      (x) => x.reciprocal(),
    );
  }
  /**
   * The square root.
   * @example
   * await new Tensor([1, 4]).sqrt().tolist() // => [1, 2]
   */
  sqrt(): this {
    return this.#float("SQRT");
  }
  /**
   * `1 / this`
   * @example
   * await new Tensor([2, 4]).reciprocal().tolist() // => [0.5, 0.25]
   */
  reciprocal(): this {
    return this.#float("RECIP");
  }
  /**
   * The part before the point. Integers stay as they are.
   * @example
   * await new Tensor([1.7, -1.7]).trunc().tolist() // => [1, -1]
   */
  trunc(): this {
    return this.steps((x) => x.alu("TRUNC"));
  }
  /**
   * The largest integer that is not above. Integers stay as they are.
   * @example
   * await new Tensor([1.7, -1.7]).floor().tolist() // => [1, -2]
   */
  floor(): this {
    return this.steps((x) => {
      const t = x.alu("TRUNC");
      return x.lt(t).where(t.sub(1), t);
    });
  }
  /**
   * The smallest integer that is not below. Integers stay as they are.
   * @example
   * await new Tensor([1.2, -1.7]).ceil().tolist() // => [2, -1]
   */
  ceil(): this {
    return this.steps((x) => {
      const t = x.alu("TRUNC");
      return t.lt(x).where(t.add(1), t);
    });
  }
  /** A function of floats that is flat between its steps: its gradient is 0. */
  protected steps(value: (x: this) => this): this {
    if (!this.dtype.isFloat) return this;
    return this.wrap(value(this.detach()).lazydata, [this], (g) => [g.zero()]);
  }
  /** Zeros in the shape and type of this tensor: what flows back from where nothing depends on the input. */
  protected zero(): this {
    return this.wrap(this.lazydata.const(0));
  }
}

const scaled = <T extends MathTensor>(x: T | Element, alpha: Element): T | Element => {
  if (alpha === 1) return x;
  if (x instanceof MathTensor) return x.mul(alpha);
  return typeof x === "bigint" && typeof alpha === "bigint" ? x * alpha : Number(x) * Number(alpha);
};
