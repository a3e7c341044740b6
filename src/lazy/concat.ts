// Concatenates nodes of one device along an axis: each is padded to the full size, and a balanced tree of
// WHEREs selects. This keeps every bit (a sum of padded parts would lose the sign of -0). It is one kernel,
// except for very many parts: those are joined in groups, and the groups are joined.

import { dtypes } from "../dtype.ts";
import { add, type Sint, sub } from "../shape/symbolic.ts";
import type { Interval } from "../shape/view.ts";
import type { LazyBuffer } from "./lazybuffer.ts";

/** An element is selected from all parts of its kernel, so that more parts than this are joined in groups. */
const MAX_JOINED = 64;

/** The start of each part along the axis, and the end of the last. */
export function startsOf(parts: readonly LazyBuffer[], axis: number): Sint[] {
  const starts: Sint[] = [0];
  for (const p of parts) starts.push(add(starts.at(-1) as Sint, p.shape[axis] as Sint));
  return starts;
}

export function concat(parts: readonly LazyBuffer[], axis: number): LazyBuffer {
  if (parts.length <= MAX_JOINED) return selected(parts, axis);
  // groups of equal size on every level
  const levels = Math.ceil(Math.log(parts.length) / Math.log(MAX_JOINED));
  const size = Math.ceil(parts.length ** (1 / levels));
  const groups: LazyBuffer[] = [];
  for (let i = 0; i < parts.length; i += size)
    groups.push(selected(parts.slice(i, i + size), axis).contiguous());
  return concat(groups, axis);
}

function selected(parts: readonly LazyBuffer[], axis: number): LazyBuffer {
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
