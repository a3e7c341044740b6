// Concatenates nodes of one device along an axis: each is padded to the full size, and a balanced tree of
// WHEREs selects. One kernel, which keeps every bit (a sum of padded parts would lose the sign of -0).

import { dtypes } from "../dtype.ts";
import { type Sint, ssum, sub } from "../shape/symbolic.ts";
import type { Interval } from "../shape/view.ts";
import type { LazyBuffer } from "./lazybuffer.ts";

/** The start of each part along the axis, and the end of the last. */
export const startsOf = (parts: readonly LazyBuffer[], axis: number): Sint[] => {
  const sizes = parts.map((p) => p.shape[axis] as Sint);
  return [0, ...sizes.map((_, i) => ssum(sizes.slice(0, i + 1)))];
};

export function concat(parts: readonly LazyBuffer[], axis: number): LazyBuffer {
  const starts = startsOf(parts, axis);
  const total = starts.at(-1) as Sint;
  const along = (x: Interval): Interval[] =>
    (parts[0] as LazyBuffer).shape.map((_, d) => (d === axis ? x : [0, 0]));
  // a balanced tree: a long chain would be split into several kernels
  const choose = (lo: number, hi: number): LazyBuffer => {
    const part = parts[lo] as LazyBuffer;
    if (hi - lo === 1) return part.pad(along([starts[lo] as Sint, sub(total, starts[hi] as Sint)]));
    const mid = (lo + hi) >> 1;
    const end = starts[mid] as Sint;
    const first = choose(lo, mid);
    const before = first.const(1, dtypes.bool).shrink(first.shape.map((d, i) => [0, i === axis ? end : d]));
    return before.pad(along([0, sub(total, end)])).e("WHERE", first, choose(mid, hi));
  };
  return parts.length === 1 ? (parts[0] as LazyBuffer) : choose(0, parts.length);
}
