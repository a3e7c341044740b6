// What several families of ops share: parts of a Tensor, arithmetic in a wider type, padding.

import { type DType, dtypes } from "../../dtype.ts";
import { plainSize } from "../../shape/guards.ts";
import { add, mul, type Sint, sub } from "../../shape/symbolic.ts";
import { Tensor } from "../../tensor/tensor.ts";
import type { ElementType } from "../elements.ts";
import { sizeTensor, TensorValue } from "../values.ts";
import type { Call } from "./op.ts";
import type { SlicePiece } from "./shapes.ts";

export const bool = (x: Tensor): Tensor => (x.dtype === dtypes.bool ? x : x.cast(dtypes.bool));
export const cast = (x: Tensor, dtype: DType): Tensor => (x.dtype === dtype ? x : x.cast(dtype));
export const int64 = (x: Tensor): Tensor => cast(x, dtypes.int64);

/** A half is computed with as float32 and rounded once at the end. */
export function widened(x: Tensor, f: (x: Tensor) => Tensor): Tensor {
  const { dtype } = x;
  if (!dtype.isFloat || dtype.bits >= 32) return f(x);
  return f(x.cast(dtypes.float32)).cast(dtype);
}
/** The type in which sums of this type are formed. */
export const wideOf = (d: DType): DType => (d.isFloat && d.bits < 32 ? dtypes.float32 : d);

/** The shape; `sizes` has it as numbers, which are those of this run alone where a size is symbolic. */
export const dims = (x: Tensor): readonly Sint[] => x.lazydata.shape;
export const dimOf = (x: Tensor, dim: number): Sint => dims(x).at(dim) as Sint;
export const sizes = (x: Tensor): number[] => [...(x.shape as readonly number[])];
export const sizeOf = (x: Tensor, dim: number): number => plainSize(dimOf(x, dim));
/** The sizes behind the batch and the channels. */
export const spatialOf = (x: Tensor): number[] => dims(x).slice(2).map(plainSize);

/** Ones that make a list of channels broadcast against [N, C, ...]. */
export const asChannels = (x: Tensor, ndim: number): Tensor =>
  x.reshape([1, -1, ...new Array<number>(Math.max(0, ndim - 2)).fill(1)]);

/** One piece of each dim. */
export function cut(x: Tensor, cuts: readonly SlicePiece<Sint>[]): Tensor {
  if (cuts.some((c) => c.count === 0)) {
    return Tensor.zeros(
      cuts.map((c) => c.count),
      { dtype: x.dtype, device: x.device },
    );
  }
  const spans = cuts.map(({ start, step, count }) => {
    const span = mul(sub(count, 1), Math.abs(step));
    const first = step < 0 ? sub(start, span) : start;
    return [first, add(add(first, span), 1)] as const;
  });
  const part = x.shrink(spans);
  const back = cuts.flatMap((c, d) => (c.step < 0 ? [d] : []));
  const turned = back.length === 0 ? part : part.flip(back);
  return cuts.some((c) => Math.abs(c.step) > 1 && c.count !== 1)
    ? turned.stride(cuts.map((c) => (c.count === 1 ? 1 : Math.abs(c.step))))
    : turned;
}

/** A Tensor whose element type its dtype does not tell. */
export const typed = (x: Tensor, type: ElementType): TensorValue => TensorValue.of(cast(x, type.dtype), type);

/** Host numbers as a Tensor where the others are. */
export const hostTensor = (
  call: Call,
  data: readonly number[],
  shape: readonly number[],
  dtype: DType,
): Tensor =>
  data.length === 0
    ? Tensor.zeros([...shape], { dtype, ...call.on })
    : new Tensor([...data], { dtype, ...call.on }).reshape([...shape]);

/** Indices that may count from the end, as ones that do not. */
export function positive(index: Tensor, size: Sint): Tensor {
  const at = cast(index, dtypes.int32);
  return at.lt(0).where(at.add(typeof size === "number" ? size : sizeTensor(size, index)), at);
}
