// Elementwise math: arithmetic, comparison, bits, choice and functions, with broadcasting and promotion as in torch.

import { type DType, dtypes, promote, resultType, type Value } from "../dtype.ts";
import { ArgumentError, DTypeError, ShapeError } from "../errors.ts";
import { LazyBuffer } from "../lazy/lazybuffer.ts";
import type { AluOp } from "../ops.ts";
import type { Sint } from "../shape/symbolic.ts";
import { type Element, showShape } from "./base.ts";
import { MovementTensor } from "./movement.ts";

const DEFAULT_FLOAT = dtypes.float32;

/** The type that a plain number takes part in a promotion with. */
function elementType(x: Element): DType {
  if (typeof x === "boolean") return dtypes.bool;
  if (typeof x === "bigint") return dtypes.int64;
  if (typeof x !== "number") {
    const got = Array.isArray(x) ? "an array" : String(x);
    throw new ArgumentError(
      `an operand is ${got}; expected a Tensor, number, bigint or boolean (wrap an array: new Tensor([1, 2]))`,
    );
  }
  return Number.isInteger(x) ? dtypes.int32 : DEFAULT_FLOAT;
}
const toValue = (x: Element): Value => (typeof x === "boolean" ? Number(x) : x);

/** What torch.result_type says of tensors and plain numbers together. */
const commonType = (xs: readonly (MathTensor | Element)[]): DType =>
  resultType(
    xs.map((x) => {
      if (!(x instanceof MathTensor)) return { dtype: elementType(x), rank: "number" };
      return { dtype: x.dtype, rank: x.ndim === 0 ? "zerodim" : "dimensioned" };
    }),
  );

/** The shape that all tensors broadcast to, dims aligned at the end. */
function broadcastShape(method: string, xs: readonly (MathTensor | Element)[]): Sint[] {
  const shapes = xs.flatMap((x) => (x instanceof MathTensor ? [x.lazydata.shape] : []));
  const ndim = Math.max(...shapes.map((s) => s.length));
  const out: Sint[] = [];
  for (let i = 1; i <= ndim; i++) {
    const sizes = shapes.map((s) => s.at(-i) ?? 1);
    const size = sizes.find((s) => s !== 1) ?? 1;
    if (sizes.some((s) => s !== 1 && s !== size)) {
      throw new ShapeError(
        `${method}: shapes ${shapes.map(showShape).join(" and ")} do not broadcast; ` +
          `dim ${-i} has sizes ${sizes.join(" and ")}, expected equal or 1`,
      );
    }
    out.unshift(size);
  }
  return out;
}

export abstract class MathTensor extends MovementTensor {
  protected boolType(): DType {
    return dtypes.bool;
  }

  // ---- operands ----

  /** Operands as nodes of one shape and one type: the common one, or what `dtype` makes of it. */
  #operands(
    method: string,
    others: readonly (this | Element)[],
    dtype?: (common: DType) => DType,
  ): LazyBuffer[] {
    const all = [this, ...others];
    const common = commonType(all);
    return this.#spread(all, dtype?.(common) ?? common, broadcastShape(method, all));
  }
  #spread(xs: readonly (this | Element)[], type: DType, shape: readonly Sint[]): LazyBuffer[] {
    return xs.map((x) => {
      if (!(x instanceof MathTensor)) return LazyBuffer.constant(this.device, shape, type, toValue(x));
      return x.broadcastTo(shape).lazydata.cast(type);
    });
  }
  #binary(method: string, op: AluOp, other: this | Element, dtype?: (common: DType) => DType): this {
    const [a, b] = this.#operands(method, [other], dtype) as [LazyBuffer, LazyBuffer];
    return this.wrap(a.e(op, b));
  }
  #float(op: AluOp): this {
    return this.wrap(this.lazydata.cast(toFloat(this.dtype)).e(op));
  }
  #integers(method: string, op: AluOp, other: this | Element, bool: boolean): this {
    return this.#binary(method, op, other, (d) => {
      if (d.isInt || (bool && d.kind === "bool")) return d;
      throw new DTypeError(`${method}: takes integers${bool ? " or bools" : ""}, got ${d.name}; cast first`);
    });
  }

  broadcastTo(shape: readonly Sint[]): this {
    return shape.length === this.ndim && shape.every((s, i) => s === this.lazydata.shape[i])
      ? this
      : this.expand(shape);
  }

  // ---- arithmetic ----

  /** `this + x`, elementwise, with broadcasting. */
  add(x: this | Element): this {
    return this.#binary("add", "ADD", x);
  }
  /** `this - x` */
  sub(x: this | Element): this {
    return this.#binary("sub", "SUB", x, notBool("sub"));
  }
  /** `this * x` */
  mul(x: this | Element): this {
    return this.#binary("mul", "MUL", x);
  }
  /** `this / x`; integers give floats. */
  div(x: this | Element): this {
    return this.#binary("div", "DIV", x, toFloat);
  }
  /** Integer division towards zero; by zero gives 0. */
  idiv(x: this | Element): this {
    return this.#integers("idiv", "IDIV", x, false);
  }
  /** The remainder with the sign of the dividend (C's, torch.fmod); an integer modulo 0 is 0. */
  fmod(x: this | Element): this {
    return this.#binary("fmod", "MOD", x, notBool("fmod"));
  }
  neg(): this {
    notBool("neg")(this.dtype);
    return this.wrap(this.lazydata.e("NEG"));
  }
  /** `this * x + y` */
  mulacc(x: this | Element, y: this | Element): this {
    const [a, b, c] = this.#operands("mulacc", [x, y]) as [LazyBuffer, LazyBuffer, LazyBuffer];
    return this.wrap(a.e("MULACC", b, c));
  }
  /** The larger of the two; NaN wins. */
  maximum(x: this | Element): this {
    return this.#binary("maximum", "MAX", x);
  }
  /** The smaller of the two; NaN wins. */
  minimum(x: this | Element): this {
    const [a, b] = this.#operands("minimum", [x]) as [LazyBuffer, LazyBuffer];
    // NaN wins as in maximum: where b is not below a and is a number, a it is
    const pick = b.e("CMPLT", a).e("OR", b.e("CMPNE", b));
    return this.wrap(pick.e("WHERE", b, a));
  }
  square(): this {
    return this.mul(this);
  }

  // ---- comparison and choice: bool results ----

  lt(x: this | Element): this {
    return this.#binary("lt", "CMPLT", x);
  }
  gt(x: this | Element): this {
    const [a, b] = this.#operands("gt", [x]) as [LazyBuffer, LazyBuffer];
    return this.wrap(b.e("CMPLT", a));
  }
  le(x: this | Element): this {
    const [a, b] = this.#operands("le", [x]) as [LazyBuffer, LazyBuffer];
    return this.wrap(a.e("CMPLT", b).e("OR", a.e("CMPEQ", b)));
  }
  ge(x: this | Element): this {
    const [a, b] = this.#operands("ge", [x]) as [LazyBuffer, LazyBuffer];
    return this.wrap(b.e("CMPLT", a).e("OR", a.e("CMPEQ", b)));
  }
  eq(x: this | Element): this {
    return this.#binary("eq", "CMPEQ", x);
  }
  ne(x: this | Element): this {
    return this.#binary("ne", "CMPNE", x);
  }
  /** true where this is 0 */
  logicalNot(): this {
    return this.eq(0);
  }
  /** `this ? x : y`; this must be bool. */
  where(x: this | Element, y: this | Element): this {
    if (this.dtype.kind !== "bool") {
      throw new DTypeError(
        `where: the condition is ${this.dtype.name}, expected bool; compare first, as in t.ne(0)`,
      );
    }
    const shape = broadcastShape("where", [this, x, y]);
    const [a, b] = this.#spread([x, y], commonType([x, y]), shape) as [LazyBuffer, LazyBuffer];
    return this.wrap(this.broadcastTo(shape).lazydata.e("WHERE", a, b));
  }

  // ---- bits ----

  bitwiseAnd(x: this | Element): this {
    return this.#integers("bitwiseAnd", "AND", x, true);
  }
  bitwiseOr(x: this | Element): this {
    return this.#integers("bitwiseOr", "OR", x, true);
  }
  bitwiseXor(x: this | Element): this {
    return this.#integers("bitwiseXor", "XOR", x, true);
  }
  /** Shifts modulo the width of the type. */
  lshift(x: this | Element): this {
    return this.#integers("lshift", "SHL", x, false);
  }
  rshift(x: this | Element): this {
    return this.#integers("rshift", "SHR", x, false);
  }

  // ---- functions; integers become floats ----

  exp2(): this {
    return this.#float("EXP2");
  }
  exp(): this {
    return this.cast(toFloat(this.dtype))
      .mul(1 / Math.LN2)
      .exp2();
  }
  log2(): this {
    return this.#float("LOG2");
  }
  log(): this {
    return this.log2().mul(Math.LN2);
  }
  sin(): this {
    return this.#float("SIN");
  }
  cos(): this {
    const x = this.cast(toFloat(this.dtype));
    return x
      .mul(-1)
      .add(Math.PI / 2)
      .sin();
  }
  sqrt(): this {
    return this.#float("SQRT");
  }
  reciprocal(): this {
    return this.#float("RECIP");
  }
  /** `1 / sqrt(this)` */
  rsqrt(): this {
    return this.sqrt().reciprocal();
  }
  /** Rounds towards zero; integers stay as they are. */
  trunc(): this {
    return this.dtype.isFloat ? this.wrap(this.lazydata.e("TRUNC")) : this;
  }
  floor(): this {
    const t = this.trunc();
    return this.dtype.isFloat ? this.lt(t).where(t.sub(1), t) : this;
  }
  ceil(): this {
    const t = this.trunc();
    return this.dtype.isFloat ? t.lt(this).where(t.add(1), t) : this;
  }
  /** `max(this, 0)` */
  relu(): this {
    return this.maximum(0);
  }
  abs(): this {
    if (!this.dtype.isFloat) return this.dtype.kind === "int" ? this.lt(0).where(this.neg(), this) : this;
    // the sign bit of zero goes too
    return this.le(0).where(this.neg().add(0), this);
  }
  /** `1 / (1 + exp(-this))` */
  sigmoid(): this {
    return this.neg().exp().add(1).reciprocal();
  }
}

/** Integers and bools compute functions in float32. */
const toFloat = (d: DType): DType => (d.isFloat ? d : promote(d, DEFAULT_FLOAT));
const notBool =
  (method: string) =>
  (d: DType): DType => {
    if (d.kind !== "bool") return d;
    throw new DTypeError(
      `${method}: bool has no such operation; use logicalNot or bitwiseXor, or cast to int32`,
    );
  };
