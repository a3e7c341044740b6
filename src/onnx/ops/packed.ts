// Weights of a few bits that com.microsoft packs into bytes: products with them, and rows picked out of them.
// They are widened as they are read.

import { dtypes } from "../../dtype.ts";
import { range } from "../../helpers.ts";
import { Tensor } from "../../tensor/tensor.ts";
import type { TensorValue } from "../values.ts";
import { spread } from "./cast.ts";
import { cast, positive, sizeOf, sizes, typed, wideOf } from "./common.ts";
import { type Call, int, type OpTable, op } from "./op.ts";

/** Several numbers a byte, the first in its low bits: they lie side by side in the last dim. */
function unpacked(bytes: Tensor, bits: number): Tensor {
  const wide = cast(bytes, dtypes.int32);
  if (bits === 8) return wide;
  const each = 8 / bits;
  const shifts = Tensor.arange(each, { dtype: dtypes.int32, device: bytes.device }).mul(bits);
  const apart = wide
    .unsqueeze(-1)
    .rshift(shifts)
    .bitwiseAnd(2 ** bits - 1);
  return apart.reshape([...sizes(bytes).slice(0, -1), sizeOf(bytes, -1) * each]);
}
/** The first `n` of the last dim. */
const first = (x: Tensor, n: number): Tensor =>
  sizeOf(x, -1) === n ? x : x.shrink(range(x.ndim).map((d) => (d === x.ndim - 1 ? [0, n] : null)));

interface NBits {
  readonly K: number;
  readonly N: number;
  readonly bits: number;
  readonly block_size: number;
  readonly accuracy_level: number;
  readonly weight_prepacked: number;
}
/** A product with weights of 2, 4 or 8 bits: [N, blocks, bytes], a scale and a zero point for each block. */
function matMulNBits(c: Call<NBits>): Tensor {
  const { K, N, bits, block_size, weight_prepacked } = c.attr;
  if (![2, 4, 8].includes(bits)) c.unsupported(`weights of ${bits} bits`);
  if (weight_prepacked !== 0) c.unsupported("weights in the order of one kind of GPU");
  if (c.has(4)) c.unsupported("weights in groups (g_idx)");
  const blocks = Math.ceil(K / block_size);
  const x = c.t(0);
  const wide = wideOf(x.dtype);
  const codes = unpacked(c.t(1).reshape([N, -1]), bits).reshape([N, blocks, block_size]);
  const scale = cast(c.t(2), wide).reshape([N, blocks, 1]);
  const given = c.maybe(3);
  const zero =
    given === undefined
      ? 2 ** (bits - 1)
      : given.dtype.isFloat
        ? cast(given, wide).reshape([N, blocks, 1])
        : cast(first(unpacked(given.reshape([N, -1]), bits), blocks), wide).unsqueeze(-1);
  const weights = cast(codes, wide)
    .sub(zero)
    .mul(scale)
    .reshape([N, blocks * block_size]);
  const y = cast(cast(x, wide).matmul(first(weights, K).transpose(0, 1)), x.dtype);
  const bias = c.maybe(5);
  return bias === undefined ? y : y.add(bias);
}

interface GatheredBlocks {
  readonly gather_axis: number;
  readonly quantize_axis: number;
  readonly block_size: number;
  readonly bits: number;
}
/** Rows of a table of few bits, widened after they have been picked. */
function gatherBlocks(c: Call<GatheredBlocks>): TensorValue {
  const { block_size } = c.attr;
  const data = c.t(0);
  const type = c.type(0);
  // int4 and uint4 are types of the standard; bytes are packed by the op's own rule
  const isBytes = type.bits === 8;
  const bits = isBytes ? c.attr.bits : 8;
  if (![2, 4, 8].includes(bits)) c.fail(`bits is ${bits}, expected 2, 4 or 8`);
  const gatherAxis = c.axis(c.attr.gather_axis, data.ndim);
  const axis = c.axis(c.attr.quantize_axis, data.ndim);
  if (gatherAxis === axis) c.unsupported("gathering along the dim that the blocks are along");
  const index = positive(c.t(1), sizeOf(data, gatherAxis)).reshape([-1]);
  const picked = (x: Tensor): Tensor => x.indexSelect(gatherAxis, index);
  const codes = unpacked(picked(data), bits);
  const scale = picked(c.t(2));
  const at = (part: Tensor): Tensor => spread(c, part, codes, axis, block_size);
  const zero = c.has(3)
    ? at(first(unpacked(picked(c.t(3)), bits), sizeOf(scale, -1)))
    : isBytes
      ? 2 ** (bits - 1)
      : 0;
  const y = cast(codes.sub(zero), dtypes.float32).mul(cast(at(scale), dtypes.float32));
  return typed(y.reshape(sizes(y).toSpliced(gatherAxis, 1, ...c.shape(1))), c.type(2));
}

export const packed: OpTable = {
  "com.microsoft.MatMulNBits": op(
    {
      K: int.required,
      N: int.required,
      bits: int(4),
      block_size: int.required,
      accuracy_level: int(0),
      weight_prepacked: int(0),
    },
    matMulNBits,
  ),
  "com.microsoft.GatherBlockQuantized": op(
    { gather_axis: int(0), quantize_axis: int(1), block_size: int(128), bits: int(4) },
    gatherBlocks,
  ),
};
