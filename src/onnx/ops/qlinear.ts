// Ops of com.microsoft on 8-bit numbers: each number has a scale and a zero point beside it. What is not a
// product is computed on the numbers that they stand for, and rounded once at the end.

import { dtypes } from "../../dtype.ts";
import { prod, range } from "../../helpers.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { TYPES } from "../elements.ts";
import type { TensorValue } from "../values.ts";
import { dynamicallyQuantised, quantised } from "./cast.ts";
import { cast, sizeOf, sizes, typed } from "./common.ts";
import { averagePool, maxPool, POOL, type PoolAttributes } from "./conv.ts";
import { attendPacked, HEADS, type HeadOptions } from "./heads.ts";
import { type Call, flag, float, int, ints, type OpTable, type Output, op, type Versions } from "./op.ts";
import { RECURRENT, type RecurrentAttributes, runLstm } from "./rnn.ts";

const whole = (x: Tensor): Tensor => cast(x, dtypes.int32);
const real = (x: Tensor): Tensor => cast(x, dtypes.float32);
const one = (x: Tensor): Tensor => (x.size === 1 ? x.reshape([]) : x);
const shifted = (x: Tensor, zero: Tensor | undefined): Tensor =>
  zero === undefined ? whole(x) : whole(x).sub(whole(one(zero)));

/** Inputs `i` to `i + 2`: elements, their scale, their zero point. */
const meant = (c: Call, i: number): Tensor =>
  real(shifted(c.t(i), c.maybe(i + 2))).mul(real(one(c.t(i + 1))));
/** In the type of input `like`, with the scale and the zero point at `i`. */
function said(c: Call, y: Tensor, i: number, like: number): TensorValue {
  const zero = c.has(i + 1) ? one(c.t(i + 1)) : undefined;
  return quantised(y.div(real(one(c.t(i)))), zero, c.type(like));
}

const binary = (f: (a: Tensor, b: Tensor) => Tensor): Versions =>
  op({}, (c) => said(c, f(meant(c, 0), meant(c, 3)), 6, 0));
const unary = (f: (x: Tensor) => Tensor): Versions => op({}, (c) => said(c, f(meant(c, 0)), 3, 0));

/** From channels behind to channels in front, and back. */
const toFront = (x: Tensor): Tensor => x.movedim(x.ndim - 1, 1);
const toBack = (x: Tensor): Tensor => x.movedim(1, x.ndim - 1);
function inFront<A extends { channels_last: boolean }>(c: Call<A>, f: (x: Tensor) => Tensor): TensorValue {
  const x = meant(c, 0);
  return said(c, c.attr.channels_last ? toBack(f(toFront(x))) : f(x), 3, 0);
}
const LAST = { channels_last: flag(false) };
type PoolCall = Call<PoolAttributes & { count_include_pad: boolean; channels_last: boolean }>;
const globalAverage = (x: Tensor): Tensor => x.mean(range(x.ndim).slice(2), true);

function concat(c: Call<{ axis: number }>): TensorValue {
  const count = (c.inputs.length - 2) / 3;
  if (!Number.isInteger(count) || count < 1) c.fail(`${c.inputs.length - 2} inputs are not triples`);
  const parts = range(count).map((i) => meant(c, 2 + 3 * i));
  return said(c, Tensor.cat(parts, c.axis(c.attr.axis, (parts[0] as Tensor).ndim)), 0, 2);
}
function softmax(c: Call<{ axis: number; opset: number }>): TensorValue {
  const x = meant(c, 0);
  const axis = c.axis(c.attr.axis, x.ndim);
  if (c.attr.opset >= 13) return said(c, x.softmax(axis), 3, 0);
  const rows = x.reshape([prod(sizes(x).slice(0, axis)), -1]);
  return said(c, rows.softmax(1).reshape(sizes(x)), 3, 0);
}
const reduceMean = op({ axes: ints.required, keepdims: flag(true) }, (c) => {
  const x = meant(c, 0);
  return said(c, x.mean(c.axes(c.attr.axes, x.ndim), c.attr.keepdims), 3, 0);
});

// ---- products ----

/** Zero points and scales of a second operand are one, or one a column. */
function integerProduct(a: Tensor, aZero: Tensor | undefined, b: Tensor, bZero: Tensor | undefined): Tensor {
  const rows = aZero !== undefined && aZero.size > 1 ? aZero.reshape([...sizes(aZero), 1]) : aZero;
  return shifted(a, rows).matmul(shifted(b, bZero));
}
const columns = (scale: Tensor): Tensor => real(one(scale));
const plus = (y: Tensor, bias: Tensor | undefined): Tensor => (bias === undefined ? y : y.add(bias));

const toFloat = op({}, (c) => {
  const product = integerProduct(c.t(0), c.maybe(4), c.t(1), c.maybe(5));
  const y = real(product)
    .mul(columns(c.t(2)))
    .mul(columns(c.t(3)));
  return cast(plus(y, c.maybe(6)), c.t(2).dtype);
});
const dynamicProduct = op({}, (c) => {
  const { codes, scale, zero } = dynamicallyQuantised(c.t(0));
  const product = integerProduct(codes.tensor, zero.tensor, c.t(1), c.maybe(3));
  return plus(
    real(product)
      .mul(scale)
      .mul(columns(c.t(2))),
    c.maybe(4),
  );
});

interface QuantisedGemm {
  readonly alpha: number;
  readonly transA: boolean;
  readonly transB: boolean;
}
/** A, its scale and zero point, B, its own, a sum in int32, and the scale and zero point of the result. */
function gemm(c: Call<QuantisedGemm>): Output {
  const { alpha, transA, transB } = c.attr;
  const [a, b] = [shifted(c.t(0), c.maybe(2)), c.t(3)];
  const matrix = shifted(transB ? b.transpose(0, 1) : b, c.maybe(5));
  const product = (transA ? a.transpose(0, 1) : a).matmul(matrix);
  const scale = real(one(c.t(1)))
    .mul(columns(c.t(4)))
    .mul(alpha);
  const y = real(c.has(6) ? product.add(c.t(6)) : product).mul(scale);
  return c.has(7) ? said(c, y, 7, c.has(8) ? 8 : 0) : y;
}

/** Input, weights, bias, two scales, mask, two zero points, past. */
function attention(c: Call<HeadOptions & { do_rotary: boolean }>): readonly Output[] {
  if (c.attr.do_rotary) c.unsupported("do_rotary");
  const product = integerProduct(c.t(0), c.maybe(6), c.t(1), c.maybe(7));
  const scale = real(one(c.t(3))).mul(columns(c.t(4)));
  const all = cast(real(product).mul(scale).add(c.t(2)), c.t(2).dtype);
  return attendPacked(c, all, undefined, { mask: c.maybe(5), past: c.maybe(8), scores: undefined });
}

// ---- others ----

const nhwcMaxPool = op({ ...POOL, storage_order: int(0) }, (c) =>
  typed(toBack(maxPool(c, toFront(c.t(0)))[0]), c.type(0)),
);

/** Numbers a direction, or a column of each. */
const ofDirections = (x: Tensor): Tensor =>
  x.ndim === 1 ? x.reshape([-1, 1, 1]) : x.reshape([sizeOf(x, 0), 1, -1]);
/**
 * An LSTM whose weights are [directions, inputs, gates] in 8 bits. Its inputs and states stay floats:
 * rounding those, too, is left to products of integers that need it.
 */
function lstm(c: Call<RecurrentAttributes & { input_forget: boolean }>): readonly Output[] {
  const weights = (i: number, scale: number): TensorValue => {
    const zero = c.has(scale + 1) ? ofDirections(whole(c.t(scale + 1))) : 0;
    const y = real(whole(c.t(i)).sub(zero)).mul(ofDirections(c.t(scale)));
    return typed(y.transpose(1, 2), TYPES.float);
  };
  const rest = c.inputs.slice(3, 8);
  return runLstm(c.withInputs([c.any(0), weights(1, 8), weights(2, 10), ...rest]));
}

const WEIGHTED = { ...HEADS, do_rotary: flag(false), past_present_share_buffer: flag(false) };
export const qlinear: OpTable = {
  "com.microsoft.QLinearAdd": binary((a, b) => a.add(b)),
  "com.microsoft.QLinearMul": binary((a, b) => a.mul(b)),
  "com.microsoft.QLinearSigmoid": unary((x) => x.sigmoid()),
  "com.microsoft.QLinearLeakyRelu": op({ alpha: float(0.01) }, (c) => {
    const x = meant(c, 0);
    return said(c, x.lt(0).where(x.mul(c.attr.alpha), x), 3, 0);
  }),
  "com.microsoft.QLinearSoftmax": op({ axis: int(-1), opset: int.required }, softmax),
  "com.microsoft.QLinearReduceMean": reduceMean,
  "com.microsoft.QLinearConcat": op({ axis: int.required }, concat),
  "com.microsoft.QLinearWhere": op({}, (c) =>
    said(c, cast(c.t(0), dtypes.bool).where(meant(c, 1), meant(c, 4)), 7, 1),
  ),
  "com.microsoft.QLinearGlobalAveragePool": op(LAST, (c) => inFront(c, globalAverage)),
  "com.microsoft.QLinearAveragePool": op(
    { ...POOL, ...LAST, count_include_pad: flag(false) },
    (c: PoolCall) => inFront(c, (x) => averagePool(c, x)),
  ),
  "com.microsoft.NhwcMaxPool": nhwcMaxPool,
  "com.microsoft.QGemm": op({ alpha: float(1), transA: flag(false), transB: flag(false) }, gemm),
  "com.microsoft.MatMulIntegerToFloat": toFloat,
  "com.microsoft.DynamicQuantizeMatMul": dynamicProduct,
  "com.microsoft.QAttention": op(WEIGHTED, attention),
  "com.microsoft.DynamicQuantizeLSTM": op({ ...RECURRENT, input_forget: flag(false) }, lstm),
};
