// Weights that were quantised in blocks: the elements of a block have a narrow type and share a scale, and
// perhaps a zero point. In go the packed elements (or the bytes they lie in) and the scales, out comes a
// float32 tensor, lazily: a kernel that reads it unpacks and scales as it loads, and nothing is written in
// between.

import { type DTypeLike, toDType } from "../dtype.ts";
import { DTypeError, ShapeError } from "../errors.ts";
import type { Tensor } from "../tensor/tensor.ts";

/**
 * How blocks of elements are stored: an element stands for `value * scale`, plus the zero point where there
 * is one.
 */
export interface BlockFormat {
  /** the type of the elements, for example "int4", "uint4", "float4e2m1" or "int8" */
  readonly values: DTypeLike;
  /** elements that share a scale, along the last dim */
  readonly block: number;
  readonly scale: DTypeLike;
  /** the type of the zero points, if the format has them */
  readonly zero?: DTypeLike;
}

/**
 * The numbers that blocks of quantised elements stand for, as float32. `packed` has the format's type of
 * elements, or is the bytes they lie in (uint8), the first element at the low end of a byte; `scale` and
 * `zero` have one element a block.
 * @example
 * const format = { values: "int4", block: 4, scale: "float32" };
 * const packed = new Tensor([1, -2, 3, -8], { dtype: "int4" });
 * await nn.dequantize(format, packed, new Tensor([0.5])).tolist() // => [0.5, -1, 1.5, -4]
 */
export function dequantize(format: BlockFormat, packed: Tensor, scale: Tensor, zero?: Tensor): Tensor {
  const type = toDType(format.values);
  const elements = type.isPacked && packed.dtype.name === "uint8" ? packed.bitcast(type) : packed;
  requireType("packed", elements, format.values);
  requireType("scale", scale, format.scale);
  if ((zero === undefined) !== (format.zero === undefined)) {
    throw new DTypeError(
      `dequantize: ${zero === undefined ? "got no zero points, the format has them" : "got zero points, the format has none"}`,
    );
  }
  const { shape } = elements;
  const last = shape.at(-1) ?? 0;
  const blocks = [...shape.slice(0, -1), last / format.block];
  requireShape("scale", scale, blocks, format.block, shape);
  const spread = (t: Tensor): Tensor => t.cast("float32").unsqueeze(-1);
  const product = elements
    .cast("float32")
    .reshape([...blocks, format.block])
    .mul(spread(scale));
  if (zero === undefined || format.zero === undefined) return product.reshape(shape);
  requireType("zero", zero, format.zero);
  requireShape("zero", zero, blocks, format.block, shape);
  return product.add(spread(zero)).reshape(shape);
}

function requireType(what: string, t: Tensor, wanted: DTypeLike): void {
  if (t.dtype === toDType(wanted)) return;
  throw new DTypeError(
    `dequantize: ${what} is ${t.dtype.name}, the format says ${toDType(wanted).name}; cast or bitcast it`,
  );
}
function requireShape(
  what: string,
  t: Tensor,
  blocks: readonly number[],
  block: number,
  shape: readonly number[],
): void {
  if (t.shape.length === blocks.length && t.shape.every((n, i) => n === blocks[i])) return;
  throw new ShapeError(
    `dequantize: ${what} has shape [${t.shape}] for elements of shape [${shape}] in blocks of ${block}; expected [${blocks}]`,
  );
}
