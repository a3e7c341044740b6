// IMAGE=1 and IMAGE=2: convolutions over two dims and products of matrices whose operands and results lie in
// images (src/images.ts), of 16-bit floats or of float32. What is not a multiple of four is padded. In go the
// operands, out comes the result as the caller would have computed it, or undefined: it computes it itself.
// Only Node has images; `#tensor/images` is this file or browser.ts.

import { type DType, dtypes } from "../../dtype.ts";
import { env } from "../../env.ts";
import { ArgumentError } from "../../errors.ts";
import type { Interval } from "../../shape/view.ts";
import { type Frame, fitWindows, places, windows } from "../conv/conv.ts";
import { contiguous, wrap } from "../core.ts";
import { mul } from "../math/arithmetic.ts";
import { broadcastShape } from "../math/promotion.ts";
import { pad } from "../movement/arrange.ts";
import { expand, permute, reduceSum, reshape, shrink, transpose } from "../movement/views.ts";
import type { Tensor } from "../tensor.ts";

/** Values of a pixel. */
const LANES = 4;
const filled = (n: number): number => Math.ceil(n / LANES) * LANES;

type ImageMaker = (shape: readonly number[]) => DType;
/** What operands are stored in; undefined: IMAGE is off, or one is not of float32 and a fixed size. */
function imageFor(...operands: readonly Tensor[]): ImageMaker | undefined {
  if (env.IMAGE === 0) return undefined;
  const kind = [undefined, dtypes.imageh, dtypes.imagef][env.IMAGE];
  if (kind === undefined) {
    throw new ArgumentError(
      `IMAGE=${env.IMAGE}: expected 0 (buffers), 1 (images of 16-bit floats) or 2 (images of float32)`,
    );
  }
  const isPlain = ({ dtype, lazydata }: Tensor): boolean =>
    dtype === dtypes.float32 && lazydata.shape.every((d) => typeof d === "number" && d > 0);
  return operands.every(isPlain) ? kind : undefined;
}

/** The same values as another type; gradients are float32 whatever the operands lie in. */
const retyped = (x: Tensor, dtype: DType): Tensor => wrap(x.lazydata.cast(dtype), [x], (g) => [g]);
/** As an image of so many rows, wherever it is stored. */
const asImage = (x: Tensor, image: ImageMaker, rows: number): Tensor =>
  retyped(x, image([rows, x.size / rows / LANES, LANES]));
/** In memory, as an image of so many rows. */
const stored = (x: Tensor, image: ImageMaker, rows: number): Tensor => contiguous(asImage(x, image, rows));
const asFloat = (x: Tensor): Tensor => retyped(x, dtypes.float32);
/** Repeated first, so that the image is what is read over and over. */
const expanded = (x: Tensor, shape: readonly number[]): Tensor => asFloat(expand(x, shape));
/** The first elements along some axes, or zeros after the last. */
const resized = (x: Tensor, sizes: Readonly<Record<number, number>>): Tensor => {
  const ends = x.shape.map((d, i): Interval => [0, (sizes[i] ?? d) - d]);
  if (ends.every(([, more]) => more === 0)) return x;
  if (ends.some(([, more]) => Number(more) < 0))
    return shrink(
      x,
      x.shape.map((d, i): Interval => [0, sizes[i] ?? d]),
    );
  return pad(x, ends as readonly (readonly [number, number])[]);
};

/**
 * `x` [batch, group, in, h, w] with `amounts` of zeros around it, under `w` [group, out, in, kh, kw], no
 * gradient recorded. Channels are the last axis of both images: four input channels are a pixel of the
 * input, weights for four output channels a pixel of the weights. Where each group has one channel, four
 * groups are a pixel.
 */
export function imageConvolution(
  x: Tensor,
  amounts: readonly Interval[],
  w: Tensor,
  f: Frame,
): Tensor | undefined {
  const image = imageFor(x, w);
  if (image === undefined || f.kernel.length !== 2) return undefined;
  const [batch, groups, channels, height, width] = x.shape as [number, number, number, number, number];
  const [, outputs, , kh, kw] = w.shape as [number, number, number, number, number];
  const isDepthwise = channels === 1 && outputs === 1 && groups % LANES === 0;
  const [inner, outer] = isDepthwise ? [1, 1] : [filled(channels), filled(outputs)];

  const rows = permute(resized(x, { 2: inner }), [0, 3, 4, 1, 2]);
  const seen = windows(fitWindows(permute(stored(rows, image, batch * height), [0, 3, 4, 1, 2]), amounts), f);
  const [oh, ow] = [height, width].map((size, i) =>
    places(size + Number(amounts[i]?.[0]) + Number(amounts[i]?.[1]), f, i),
  ) as [number, number];

  // [group, out / 4, kh, kw, in, 4], where groups with one channel are the last axis
  const lanes = isDepthwise ? [groups / LANES, LANES, 1, 1] : [groups, outer / LANES, LANES, inner];
  const split = reshape(resized(w, { 1: outer, 2: inner }), [...lanes, kh, kw]);
  const order = isDepthwise ? [0, 2, 4, 5, 3, 1] : [0, 1, 4, 5, 3, 2];
  const packed = permute(split, order);
  const weights = stored(packed, image, Number(packed.shape[0]) * Number(packed.shape[1]));
  const by = isDepthwise
    ? reshape(permute(weights, [0, 5, 1, 4, 2, 3]), [groups, 1, kh, kw, 1])
    : reshape(permute(weights, [0, 1, 5, 2, 3, 4]), [groups, outer, kh, kw, inner]);

  const full = [batch, oh, ow, groups, outer, kh, kw, inner];
  const left = reshape(permute(seen, [0, 3, 4, 1, 5, 6, 2]), [batch, oh, ow, groups, 1, kh, kw, inner]);
  const right = reshape(by, [1, 1, 1, groups, outer, kh, kw, inner]);
  const sum = reduceSum(mul(expanded(left, full), expanded(right, full)), [5, 6, 7]);
  const made = asImage(reshape(sum, full.slice(0, 5)), image, batch * oh);
  return asFloat(resized(permute(made, [0, 3, 4, 1, 2]), { 2: outputs }));
}

/**
 * The product of matrices `x` [..., m, k] and `w` [..., k, n]: a pixel has four neighbours along the last
 * axis of each, and of the result.
 */
export function imageProduct(x: Tensor, w: Tensor): Tensor | undefined {
  const image = imageFor(x, w);
  if (image === undefined || x.ndim < 2 || w.ndim < 2) return undefined;
  const rowsOf = (t: Tensor): number => t.size / Number(t.shape.at(-1));
  const [k, n] = w.shape.slice(-2).map(filled) as [number, number];
  const a = resized(x, { [x.ndim - 1]: k });
  const b = resized(w, { [w.ndim - 2]: k, [w.ndim - 1]: n });
  const left = reshape(stored(a, image, rowsOf(a)), [...a.shape.slice(0, -1), 1, k]);
  const columns = reshape(stored(b, image, rowsOf(b)), [...b.shape.slice(0, -2), 1, k, n]);
  const right = transpose(columns, -1, -2);
  const full = broadcastShape("matmul", [left, right]) as readonly number[];
  const product = mul(expanded(left, full), expanded(right, full));
  const sums = reduceSum(product, [product.ndim - 1]);
  const result = reshape(sums, product.shape.slice(0, -1));
  const made = asImage(result, image, rowsOf(result));
  return asFloat(resized(made, { [made.ndim - 1]: Number(w.shape.at(-1)) }));
}
