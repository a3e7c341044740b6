// Element by element: arithmetic, comparisons, bits, activations. Shapes broadcast from the last dim.

import { dtypes } from "../../dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { TYPES } from "../elements.ts";
import { TensorValue } from "../values.ts";
import { bool, widened } from "./common.ts";
import { type Call, flag, float, int, type OpTable, op, string, type Versions, versions } from "./op.ts";

const unary = (f: (x: Tensor) => Tensor): Versions => op({}, (c) => f(c.t(0)));
/** Functions whose polynomials are those of float32, for halves too. */
const wide = (f: (x: Tensor) => Tensor): Versions => op({}, (c) => widened(c.t(0), f));

/** Before version 7 the second operand was aligned at an axis, and only if `broadcast` was set. */
function aligned(call: Call<{ axis: number | undefined; broadcast: boolean }>): readonly [Tensor, Tensor] {
  const [a, b] = [call.t(0), call.t(1)];
  const { axis, broadcast } = call.attr;
  if (!broadcast || axis === undefined) return [a, b];
  const at = call.axis(axis, a.ndim);
  const after = a.ndim - at - b.ndim;
  if (after < 0) call.fail(`the second operand has ${b.ndim} dims, which do not fit behind axis ${axis}`);
  return [a, b.reshape([...b.shape, ...new Array<number>(after).fill(1)])];
}
const OLD = { axis: int(), broadcast: flag(false) };
function binary(f: (a: Tensor, b: Tensor) => Tensor): Versions {
  return versions(
    op(OLD, (c) => f(...aligned(c))),
    op({}, (c) => f(c.t(0), c.t(1)), 7),
  );
}

const div = (a: Tensor, b: Tensor): Tensor =>
  a.dtype.isInt ? a.div(b, { roundingMode: "trunc" }) : a.div(b);

/** The type is that of the base. */
function pow(x: Tensor, y: Tensor): Tensor {
  const { dtype } = x;
  if (dtype.isFloat || !y.dtype.isFloat) return x.pow(y.cast(dtype));
  return x.cast(dtypes.float64).pow(y.cast(dtypes.float64)).cast(dtype);
}

const variadic = (f: (a: Tensor, b: Tensor) => Tensor): Versions =>
  op({}, (c) => c.all().reduce((a, b) => f(a, b)));
const mean = op({}, (c) =>
  c
    .all()
    .reduce((a, b) => a.add(b))
    .div(c.inputs.length),
);

/** A shift by the width or more leaves no bit, or only those of the sign; a negative one goes as unsigned. */
function shift(x: Tensor, y: Tensor, direction: string): Tensor {
  const { dtype } = x;
  const limit = dtype.bits;
  const isFar = y.lt(0).bitwiseOr(y.ge(limit));
  const by = isFar.where(y.zerosLike(), y);
  if (direction === "LEFT") return isFar.where(x.zerosLike(), x.lshift(by));
  const signs = dtype.kind === "int" ? x.lt(0).where(x.onesLike().neg(), x.zerosLike()) : x.zerosLike();
  return isFar.where(signs, x.rshift(by));
}

const equal = op({}, (c) => {
  const [a, b] = [c.value(0), c.value(1)];
  if (!a.isText) return bool(a.tensor.eq(b.tensor));
  const [x, y] = [a.texts, b.texts];
  const n = Math.max(x.length, y.length);
  if ((x.length !== n && x.length !== 1) || (y.length !== n && y.length !== 1))
    c.fail("strings of different shapes are not compared");
  const data = Array.from({ length: n }, (_, i) =>
    x[x.length === 1 ? 0 : i] === y[y.length === 1 ? 0 : i] ? 1 : 0,
  );
  return c.known(TYPES.bool, x.length === n ? a.shape : b.shape, data);
});
const comparison = (f: (a: Tensor, b: Tensor) => Tensor): Versions =>
  versions(
    op(OLD, (c) => bool(f(...aligned(c)))),
    op({}, (c) => bool(f(c.t(0), c.t(1))), 7),
  );

const identity = op({}, (c) => {
  const value = c.any(0);
  return value instanceof TensorValue && !value.isText ? value.tensor : value;
});

/** Above `high` the result is `high`, even where `low` is above it. */
function clip(x: Tensor, low: Tensor | number | undefined, high: Tensor | number | undefined): Tensor {
  const raised = low === undefined ? x : x.maximum(low);
  return high === undefined ? raised : raised.minimum(high);
}
const LOWEST = -3.4028234663852886e38;

const alpha = (fallback: number, f: (x: Tensor, alpha: number) => Tensor): Versions =>
  op({ alpha: float(fallback) }, (c) => f(c.t(0), c.attr.alpha));
const beyond = (x: Tensor, isOn: boolean, sign: 1 | -1): Tensor =>
  isOn ? x.eq(sign * Infinity) : bool(x.zerosLike());

function prelu(x: Tensor, slope: Tensor): Tensor {
  return x.lt(0).where(x.mul(slope), x);
}
/** Before version 7 the slopes were those of the channels. */
const channels = (x: Tensor, slope: Tensor): Tensor =>
  slope.ndim === 1 && x.ndim > 1 ? slope.reshape([-1, ...new Array<number>(x.ndim - 2).fill(1)]) : slope;

const elu = (x: Tensor, a: number): Tensor => x.lt(0).where(x.minimum(0).expm1().mul(a), x);
const softplus = (x: Tensor): Tensor => x.maximum(0).add(x.abs().neg().exp().log1p());
const swish = (x: Tensor, a: number): Tensor => x.mul(x.mul(a).sigmoid());

export const math: OpTable = {
  Abs: unary((x) => (x.dtype.kind === "uint" ? x : x.abs())),
  Neg: unary((x) => x.neg()),
  Floor: unary((x) => x.floor()),
  Ceil: unary((x) => x.ceil()),
  Round: unary((x) => x.round()),
  Sqrt: unary((x) => x.sqrt()),
  Exp: wide((x) => x.exp()),
  Log: wide((x) => x.log()),
  Reciprocal: unary((x) => x.reciprocal()),
  Sign: unary((x) => x.sign()),
  Sin: wide((x) => x.sin()),
  Cos: wide((x) => x.cos()),
  Tan: wide((x) => x.tan()),
  Asin: wide((x) => x.asin()),
  Acos: wide((x) => x.acos()),
  Atan: wide((x) => x.atan()),
  Sinh: wide((x) => x.sinh()),
  Cosh: wide((x) => x.cosh()),
  Tanh: wide((x) => x.tanh()),
  Asinh: wide((x) => x.asinh()),
  Acosh: wide((x) => x.acosh()),
  Atanh: wide((x) => x.atanh()),
  Erf: wide((x) => x.erf()),
  Identity: identity,
  Not: unary((x) => bool(x.logicalNot())),
  BitwiseNot: unary((x) => x.bitwiseNot()),
  IsNaN: unary((x) => bool(x.ne(x))),
  IsInf: op({ detect_negative: flag(true), detect_positive: flag(true) }, (c) =>
    bool(beyond(c.t(0), c.attr.detect_positive, 1).bitwiseOr(beyond(c.t(0), c.attr.detect_negative, -1))),
  ),

  Add: binary((a, b) => a.add(b)),
  Sub: binary((a, b) => a.sub(b)),
  Mul: binary((a, b) => a.mul(b)),
  Div: binary(div),
  Pow: binary(pow),
  Mod: op({ fmod: flag(false) }, (c) => (c.attr.fmod ? c.t(0).fmod(c.t(1)) : c.t(0).remainder(c.t(1)))),
  Max: variadic((a, b) => a.maximum(b)),
  Min: variadic((a, b) => a.minimum(b)),
  Sum: variadic((a, b) => a.add(b)),
  Mean: mean,
  BitwiseAnd: binary((a, b) => a.bitwiseAnd(b)),
  BitwiseOr: binary((a, b) => a.bitwiseOr(b)),
  BitwiseXor: binary((a, b) => a.bitwiseXor(b)),
  BitShift: op({ direction: string.required }, (c) => {
    const { direction } = c.attr;
    if (direction !== "LEFT" && direction !== "RIGHT")
      c.fail(`direction is "${direction}", expected LEFT or RIGHT`);
    return shift(c.t(0), c.t(1), direction);
  }),

  Equal: versions(
    op(OLD, (c) => bool(aligned(c)[0].eq(aligned(c)[1]))),
    equal.map(([, o]) => [7, o] as const),
  ),
  Less: comparison((a, b) => a.lt(b)),
  LessOrEqual: comparison((a, b) => a.le(b)),
  Greater: comparison((a, b) => a.gt(b)),
  GreaterOrEqual: comparison((a, b) => a.ge(b)),
  And: comparison((a, b) => a.bitwiseAnd(b)),
  Or: comparison((a, b) => a.bitwiseOr(b)),
  Xor: comparison((a, b) => a.bitwiseXor(b)),

  Clip: versions(
    op({ min: float(LOWEST), max: float(-LOWEST) }, (c) => clip(c.t(0), c.attr.min, c.attr.max)),
    op({}, (c) => clip(c.t(0), c.maybe(1), c.maybe(2)), 11),
  ),
  Relu: unary((x) => x.maximum(0)),
  LeakyRelu: alpha(0.01, (x, a) => x.lt(0).where(x.mul(a), x)),
  PRelu: versions(
    op({}, (c) => prelu(c.t(0), channels(c.t(0), c.t(1)))),
    op({}, (c) => prelu(c.t(0), c.t(1)), 7),
  ),
  Elu: alpha(1, (x, a) => widened(x, (y) => elu(y, a))),
  Celu: alpha(1, (x, a) => widened(x, (y) => elu(y.div(a), 1).mul(a))),
  Selu: op({ alpha: float(1.6732631921768188), gamma: float(1.0507010221481323) }, (c) =>
    widened(c.t(0), (x) => elu(x, c.attr.alpha).mul(c.attr.gamma)),
  ),
  ThresholdedRelu: alpha(1, (x, a) => x.gt(a).where(x, x.zerosLike())),
  Sigmoid: wide((x) => x.sigmoid()),
  HardSigmoid: op({ alpha: float(0.2), beta: float(0.5) }, (c) =>
    clip(c.t(0).mul(c.attr.alpha).add(c.attr.beta), 0, 1),
  ),
  HardSwish: unary((x) => x.mul(clip(x.div(6).add(0.5), 0, 1))),
  Softplus: wide(softplus),
  Softsign: unary((x) => x.div(x.abs().add(1))),
  Mish: wide((x) => x.mul(softplus(x).tanh())),
  Swish: alpha(1, (x, a) => widened(x, (y) => swish(y, a))),
  SwiGLU: op({ alpha: float(1) }, (c) => {
    const [a, b] = [c.t(0), c.t(1)];
    return widened(a, (x) => swish(x, c.attr.alpha).mul(b.cast(x.dtype)));
  }),
  Gelu: op({ approximate: string("none") }, (c) => {
    const { approximate } = c.attr;
    if (approximate !== "none" && approximate !== "tanh") return c.fail(`approximate is "${approximate}"`);
    return widened(c.t(0), (x) => x.gelu(approximate));
  }),
  Shrink: op({ bias: float(0), lambd: float(0.5) }, (c) => {
    const x = c.t(0);
    const { bias, lambd } = c.attr;
    const none = x.zerosLike();
    return x
      .lt(-lambd)
      .where(x.add(bias), x.gt(lambd).where(x.sub(bias), none))
      .cast(x.dtype);
  }),
};
