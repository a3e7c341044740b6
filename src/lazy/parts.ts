// Sums of products with few results and many terms, as the gradient of a convolution's weight: a machine with many units has
// too few blocks of results for them. Their sum is cut into parts, which are added up by a second kernel. In go what is summed and
// over which axes, out comes which axis is cut and into how many parts. LazyBuffer.r() makes the two sums of it.

import { Device } from "../runtime/registry.ts";
import { smax } from "../shape/symbolic.ts";
import type { LazyBuffer } from "./lazybuffer.ts";

/** How an axis is cut. */
export interface Parts {
  readonly axis: number;
  readonly count: number;
}

/** Products from which on a second kernel costs nothing beside them. */
const MIN_PRODUCTS = 1 << 26;
/** Each factor is used so often at least: it is worth having a block of results at once. */
const MIN_REUSE = 8;
/** Results of a block, and the fewest terms of a part. */
const BLOCK = 1 << 14;
const MIN_TERMS = 256;

/** undefined: it is no such sum, or its device has units for it as it is. */
export function productParts(summed: LazyBuffer, axes: readonly number[]): Parts | undefined {
  const { base, device } = summed;
  const units = Device.isOpen(device) ? Device.get(device).renderer?.gpu?.units : undefined;
  if (units === undefined || base.op !== "MUL" || !summed.isWhole || base.realized !== undefined)
    return undefined;
  const size = smax(summed.size);
  const isReused = base.sources.every((s) => smax(s.base.size) * MIN_REUSE <= size);
  const sizes = axes.map((a) => summed.shape[a]);
  if (size < MIN_PRODUCTS || !isReused || !sizes.every((s) => typeof s === "number")) return undefined;
  const terms = sizes.reduce((n, s) => n * s, 1);
  const blocks = size / terms / BLOCK;
  if (blocks >= units) return undefined;
  const most = Math.min((2 * units) / Math.max(1, blocks), terms / MIN_TERMS);
  for (const [i, axis] of axes.entries()) {
    const count = divisor(sizes[i] as number, most);
    if (count >= 4) return { axis, count };
  }
  return undefined;
}

/** The largest divisor of `size` that is at most `most`, and not all of it. */
function divisor(size: number, most: number): number {
  for (let n = Math.min(Math.floor(most), size / 2); n > 1; n--) if (size % n === 0) return n;
  return 1;
}
