// Elementwise math: arithmetic, comparison, bits, choice and the primitive functions, with broadcasting and
// promotion as in torch. What is made of these is in the layers after reduce (elementary, special,
// functions).

import { type DType, dtypes } from "../../dtype.ts";
import { ArgumentError, DTypeError } from "../../errors.ts";
import { type Algebra, type AluOp, opRecord } from "../../ops.ts";
import type { Sint } from "../../shape/symbolic.ts";
import type { Backward } from "../autograd.ts";
import type { Element } from "../core.ts";
import { bitcast, cast, constant, detach, isTracked, TensorHandle, typed, wrap } from "../core.ts";
import { expand } from "../movement/views.ts";
import type { Tensor } from "../tensor.ts";
import { requireFit } from "../wholes.ts";

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

// ---- operands ----

/** Operands as nodes of one shape and one type: the common one, or what `dtype` makes of it. */
export function operands(
  self: Tensor,
  method: string,
  others: readonly (Tensor | Element)[],
  dtype?: (common: DType) => DType,
): Tensor[] {
  const all = [self, ...others];
  const common = commonType(all);
  return spreadTo(self, method, all, dtype?.(common) ?? common);
}
function spreadTo(
  self: Tensor,
  method: string,
  xs: readonly (Tensor | Element)[],
  type: DType,
  shape = broadcastShape(method, xs),
): Tensor[] {
  return xs.map((x) => {
    if (x instanceof TensorHandle) return typed(broadcastTo(x, shape), type);
    return constant(self, shape, type, operandValue(method, x, type));
  });
}
/** The primitive: operands of one shape and type, the gradient as the op's record says. */
export function alu(self: Tensor, op: AluOp, ...others: readonly Tensor[]): Tensor {
  const srcs = [self, ...others];
  const lb = self.lazydata.e(op, ...others.map((o) => o.lazydata));
  return isTracked(srcs) ? wrap(lb, srcs, gradientOf(op, srcs)) : wrap(lb);
}
const gradientOf =
  (op: AluOp, srcs: readonly Tensor[]): Backward<Tensor> =>
  (g, out) =>
    opRecord(op).gradient(algebra(g), g, out, ...srcs);
/** What gradients are written in: constants have this tensor's shape and device. */
function algebra(self: Tensor): Algebra<Tensor> {
  return {
    alu: (op, first, ...rest) => alu(first as Tensor, op, ...rest),
    constant: (dtype, value) => wrap(self.lazydata.const(value, dtype)),
    cast: (x, dtype) => cast(x, dtype),
    bitcast: (x, dtype) => bitcast(x, dtype),
    dtypeOf: (x) => x.dtype,
  };
}
function binaryAlu(
  self: Tensor,
  method: string,
  op: AluOp,
  other: Tensor | Element,
  dtype?: (common: DType) => DType,
): Tensor {
  const [a, b] = operands(self, method, [other], dtype) as [Tensor, Tensor];
  return alu(a, op, b);
}
export function floatAlu(self: Tensor, op: AluOp): Tensor {
  return alu(typed(self, toFloat(self.dtype)), op);
}
/**
 * A function of each element, integers as floats. Half-width floats compute in float32: the steps of a
 * formula would lose their few digits. The derivative may use the result.
 */
export function unary(
  self: Tensor,
  value: (x: Tensor) => Tensor,
  derivative: (x: Tensor, out: Tensor) => Tensor,
): Tensor {
  const x = typed(self, toFloat(self.dtype));
  if (isNarrow(x.dtype)) return cast(unary(cast(x, dtypes.float32), value, derivative), x.dtype);
  return wrap(value(detach(x)).lazydata, [x], (g, out) => [mul(g, derivative(x, out))]);
}
/** A function of two operands, with the gradients of both. */
export function binary(
  self: Tensor,
  method: string,
  other: Tensor | Element,
  value: (a: Tensor, b: Tensor) => Tensor,
  gradient: (g: Tensor, out: Tensor, a: Tensor, b: Tensor) => readonly [Tensor, Tensor],
  dtype?: (common: DType) => DType,
): Tensor {
  const [a, b] = operands(self, method, [other], dtype) as [Tensor, Tensor];
  return wrap(value(detach(a), detach(b)).lazydata, [a, b], (g, out) => gradient(g, out, a, b));
}
function integers(self: Tensor, method: string, op: AluOp, other: Tensor | Element, bool: boolean): Tensor {
  return binaryAlu(self, method, op, other, (d) => {
    if (d.isInt || (bool && d.kind === "bool")) return d;
    throw new DTypeError(`${method}: takes integers${bool ? " or bools" : ""}, got ${d.name}; cast first`);
  });
}

export function broadcastTo(self: Tensor, shape: readonly Sint[]): Tensor {
  return shape.length === self.ndim && shape.every((s, i) => s === self.lazydata.shape[i])
    ? self
    : expand(self, shape);
}

// ---- arithmetic ----

export function add(self: Tensor, x: Tensor | Element, { alpha = 1 }: Scaled = {}): Tensor {
  return binaryAlu(self, "add", "ADD", scaled(x, alpha));
}
export function sub(self: Tensor, x: Tensor | Element, { alpha = 1 }: Scaled = {}): Tensor {
  return binaryAlu(self, "sub", "SUB", scaled(x, alpha), notBool("sub"));
}
export function mul(self: Tensor, x: Tensor | Element): Tensor {
  return binaryAlu(self, "mul", "MUL", x);
}
export function div(self: Tensor, x: Tensor | Element, { roundingMode }: Rounded = {}): Tensor {
  if (roundingMode === undefined || roundingMode === null) return binaryAlu(self, "div", "DIV", x, toFloat);
  if (roundingMode === "floor") return floorDivide(self, x);
  if (roundingMode !== "trunc") {
    throw new ArgumentError(`div: roundingMode is ${roundingMode}, expected "trunc", "floor" or null`);
  }
  const cut = (a: Tensor, b: Tensor) => (a.dtype.isFloat ? trunc(div(a, b)) : idiv(a, b));
  return binary(self, "div", x, cut, (g) => [zero(g), zero(g)], notBool("div with roundingMode"));
}
export function floorDivide(self: Tensor, x: Tensor | Element): Tensor {
  const zeros = (g: Tensor) => [zero(g), zero(g)] as const;
  return binary(self, "floorDivide", x, (a, b) => quotientDown(a, b), zeros, notBool("floorDivide"));
}
function quotientDown(self: Tensor, b: Tensor): Tensor {
  if (!self.dtype.isFloat) return sub(idiv(self, b), cast(oddRest(self, b), self.dtype));
  // the rest is exact and the quotient rounds: 1 / 0.1 in floats is 10, but 0.1 fits only 9 times
  const whole = div(sub(self, fmod(self, b)), b);
  const down = where(oddRest(self, b), sub(whole, 1), whole);
  const low = floor(down);
  const near = where(gt(sub(down, low), 0.5), add(low, 1), low);
  const quotient = div(self, b);
  const signed = where(eq(down, 0), mul(quotient, 0), near);
  return where(eq(b, 0), quotient, signed);
}
/** Where the remainder of C is not yet that of Python: it is not 0, and its sign is not the divisor's. */
function oddRest(self: Tensor, b: Tensor): Tensor {
  const rest = fmod(self, b);
  return alu(ne(rest, 0), "AND", alu(lt(rest, 0), "CMPNE", lt(b, 0)));
}
export function idiv(self: Tensor, x: Tensor | Element): Tensor {
  return integers(self, "idiv", "IDIV", x, false);
}
export function fmod(self: Tensor, x: Tensor | Element): Tensor {
  return binaryAlu(self, "fmod", "MOD", x, notBool("fmod"));
}
export function remainder(self: Tensor, x: Tensor | Element): Tensor {
  return binary(
    self,
    "remainder",
    x,
    (a, b) => where(oddRest(a, b), add(fmod(a, b), b), fmod(a, b)),
    (g, _, a, b) => [g, neg(mul(g, floorDivide(detach(a), detach(b))))],
    notBool("remainder"),
  );
}
export function neg(self: Tensor): Tensor {
  notBool("neg")(self.dtype);
  return alu(self, "NEG");
}
export function mulacc(self: Tensor, x: Tensor | Element, y: Tensor | Element): Tensor {
  const [a, b, c] = operands(self, "mulacc", [x, y]) as [Tensor, Tensor, Tensor];
  return alu(a, "MULACC", b, c);
}
export function maximum(self: Tensor, x: Tensor | Element): Tensor {
  return binaryAlu(self, "maximum", "MAX", x);
}
export function minimum(self: Tensor, x: Tensor | Element): Tensor {
  return binary(
    self,
    "minimum",
    x,
    // where b is not below a and is a number, a it is
    (a, b) => alu(alu(alu(b, "CMPLT", a), "OR", alu(b, "CMPNE", b)), "WHERE", b, a),
    (g, _, a, b) => {
      const half = where(eq(a, b), mul(g, 0.5), g);
      return [where(lt(b, a), 0, half), where(lt(a, b), 0, half)];
    },
  );
}
export function square(self: Tensor): Tensor {
  requireFit(self, "square");
  const x = self.dtype.kind === "bool" ? cast(self, dtypes.int32) : self;
  return mul(x, x);
}

// ---- comparison and choice: bool results ----

export function lt(self: Tensor, x: Tensor | Element): Tensor {
  return binaryAlu(self, "lt", "CMPLT", x);
}
export function gt(self: Tensor, x: Tensor | Element): Tensor {
  const [a, b] = operands(self, "gt", [x]) as [Tensor, Tensor];
  return alu(b, "CMPLT", a);
}
export function le(self: Tensor, x: Tensor | Element): Tensor {
  const [a, b] = operands(self, "le", [x]) as [Tensor, Tensor];
  return alu(alu(a, "CMPLT", b), "OR", alu(a, "CMPEQ", b));
}
export function ge(self: Tensor, x: Tensor | Element): Tensor {
  const [a, b] = operands(self, "ge", [x]) as [Tensor, Tensor];
  return alu(alu(b, "CMPLT", a), "OR", alu(a, "CMPEQ", b));
}
export function eq(self: Tensor, x: Tensor | Element): Tensor {
  return binaryAlu(self, "eq", "CMPEQ", x);
}
export function ne(self: Tensor, x: Tensor | Element): Tensor {
  return binaryAlu(self, "ne", "CMPNE", x);
}
export function logicalNot(self: Tensor): Tensor {
  return eq(self, 0);
}
export function where(self: Tensor, x: Tensor | Element, y: Tensor | Element): Tensor {
  if (self.dtype.kind !== "bool") {
    throw new DTypeError(
      `where: the condition is ${self.dtype.name}, expected bool; compare first, as in t.ne(0)`,
    );
  }
  const shape = broadcastShape("where", [self, x, y]);
  const [a, b] = spreadTo(self, "where", [x, y], commonType([x, y]), shape) as [Tensor, Tensor];
  return alu(broadcastTo(self, shape), "WHERE", a, b);
}

// ---- bits ----

export function bitwiseAnd(self: Tensor, x: Tensor | Element): Tensor {
  return integers(self, "bitwiseAnd", "AND", x, true);
}
export function bitwiseOr(self: Tensor, x: Tensor | Element): Tensor {
  return integers(self, "bitwiseOr", "OR", x, true);
}
export function bitwiseXor(self: Tensor, x: Tensor | Element): Tensor {
  return integers(self, "bitwiseXor", "XOR", x, true);
}
export function lshift(self: Tensor, x: Tensor | Element): Tensor {
  return integers(self, "lshift", "SHL", x, false);
}
export function rshift(self: Tensor, x: Tensor | Element): Tensor {
  return integers(self, "rshift", "SHR", x, false);
}

// ---- functions; integers become floats ----

export function exp2(self: Tensor): Tensor {
  return floatAlu(self, "EXP2");
}
export function exp(self: Tensor): Tensor {
  return unary(
    self,
    (x) => {
      // x log2(e) rounds, and by more the larger it is; what it lost comes back as a factor near 1
      const y = mul(x, Math.LOG2E);
      const n = trunc(y);
      const f = mul(
        LN2_PARTS.reduce<Tensor>((r, part) => sub(r, mul(n, part)), x),
        Math.LOG2E,
      );
      const factor = add(mul(sub(f, sub(y, n)), Math.LN2), 1);
      return mul(exp2(y), where(lt(mul(x, x), 1e6), factor, 1));
    },
    (_, out) => out,
  );
}
export function log2(self: Tensor): Tensor {
  return floatAlu(self, "LOG2");
}
export function log(self: Tensor): Tensor {
  return unary(
    self,
    (x) => mul(log2(x), Math.LN2),
    (x) => reciprocal(x),
  );
}
export function sqrt(self: Tensor): Tensor {
  return floatAlu(self, "SQRT");
}
export function reciprocal(self: Tensor): Tensor {
  return floatAlu(self, "RECIP");
}
export function trunc(self: Tensor): Tensor {
  return steps(self, (x) => alu(x, "TRUNC"));
}
export function floor(self: Tensor): Tensor {
  return steps(self, (x) => {
    const t = alu(x, "TRUNC");
    return where(lt(x, t), sub(t, 1), t);
  });
}
export function ceil(self: Tensor): Tensor {
  return steps(self, (x) => {
    const t = alu(x, "TRUNC");
    return where(lt(t, x), add(t, 1), t);
  });
}
/** A function of floats that is flat between its steps: its gradient is 0. */
export function steps(self: Tensor, value: (x: Tensor) => Tensor): Tensor {
  if (!self.dtype.isFloat) return self;
  return wrap(value(detach(self)).lazydata, [self], (g) => [zero(g)]);
}
/** Zeros in the shape and type of this tensor: what flows back from where nothing depends on the input. */
export function zero(self: Tensor): Tensor {
  return wrap(self.lazydata.const(0));
}

const scaled = (x: Tensor | Element, alpha: Element): Tensor | Element => {
  if (alpha === 1) return x;
  if (x instanceof TensorHandle) return mul(x, alpha);
  return typeof x === "bigint" && typeof alpha === "bigint" ? x * alpha : Number(x) * Number(alpha);
};
