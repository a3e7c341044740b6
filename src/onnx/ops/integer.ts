// Products of quantised numbers: exact in int32, rescaled at the end.

import { dtypes } from "../../dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { TensorValue } from "../values.ts";
import { quantised } from "./cast.ts";
import { cast, sizes, typed } from "./common.ts";
import { CONV, convolve, type Windows } from "./conv.ts";
import { type Call, flag, type OpTable, op } from "./op.ts";

/**
 * With 0 where the zero point was, in int32; one of a list counts for rows, or for a dim. The difference of
 * two values of 8 bits fits 16 bits: as int16 half as much is stored where it is stored, and products of such
 * values have instructions of their own (DOT2).
 */
function centred(c: Call, x: number, zero: number, fitted: (zero: Tensor) => Tensor): Tensor {
  const value = c.t(x);
  if (!c.has(zero) || isKnownZero(c.value(zero))) return cast(value, dtypes.int32);
  const z = c.t(zero);
  const by = z.ndim === 0 ? z : fitted(z);
  return cast(cast(value, dtypes.int16).sub(cast(by, dtypes.int16)), dtypes.int32);
}
/** Symmetric weights: the file has zeros, and nothing has to be subtracted. */
const isKnownZero = (zero: TensorValue): boolean =>
  zero.isKnown && zero.sources.size === 0 && Array.from(zero.host.data).every((x) => Number(x) === 0);
/** A zero point of the first operand is for all, for each row, or has dims of its own. */
const ofRows = (zero: Tensor): Tensor => (zero.ndim === 1 ? zero.reshape([-1, 1]) : zero);
const asGiven = (zero: Tensor): Tensor => zero;
const ofFilters =
  (x: Tensor) =>
  (zero: Tensor): Tensor =>
    zero.reshape(sizes(x).map((_, d) => (d === 0 ? -1 : 1)));

const float = (x: Tensor): Tensor => cast(x, dtypes.float32);

function rescaled(c: Call, product: Tensor, scale: Tensor, zero: number): TensorValue {
  return quantised(float(product).mul(scale), c.t(zero), c.type(zero));
}

function qLinearMatMul(c: Call): TensorValue {
  const a = centred(c, 0, 2, ofRows);
  const b = centred(c, 3, 5, asGiven);
  const scale = float(ofRows(c.t(1)))
    .mul(float(c.t(4)))
    .div(float(c.t(6)));
  return rescaled(c, a.matmul(b), scale, 7);
}

type Quantised = Windows & { readonly group: number };
const convInteger = (c: Call<Quantised>, x: number, xZero: number, w: number, wZero: number): Tensor => {
  const [a, b] = [centred(c, x, xZero, asGiven), centred(c, w, wZero, ofFilters(c.t(w)))];
  return convolve(c, a, b, undefined);
};
function qLinearConv(c: Call<Quantised>): TensorValue {
  const product = convInteger(c, 0, 2, 3, 5);
  const channels = (t: Tensor): Tensor =>
    t.size === 1
      ? t.reshape([])
      : t.reshape([
          1,
          -1,
          ...sizes(product)
            .slice(2)
            .map(() => 1),
        ]);
  const bias = c.maybe(8);
  const sum = bias === undefined ? product : product.add(channels(bias));
  const scale = float(c.t(1))
    .reshape([])
    .mul(float(channels(c.t(4))))
    .div(float(c.t(6)).reshape([]));
  return rescaled(c, sum, scale, 7);
}

export const integer: OpTable = {
  MatMulInteger: op({}, (c) => centred(c, 0, 2, ofRows).matmul(centred(c, 1, 3, asGiven))),
  ConvInteger: op(CONV, (c) => convInteger(c, 0, 2, 1, 3)),
  QLinearMatMul: op({}, qLinearMatMul),
  QLinearConv: op(CONV, qLinearConv),
  "com.microsoft.QLinearConv": op({ ...CONV, channels_last: flag(false) }, (c) => {
    if (!c.attr.channels_last) return qLinearConv(c);
    const x = c.t(0);
    const [, ...rest] = c.inputs;
    const front = typed(x.movedim(x.ndim - 1, 1), c.type(0));
    const y = qLinearConv(c.withInputs([front, ...rest]));
    return typed(y.tensor.movedim(1, x.ndim - 1), y.type);
  }),
};
