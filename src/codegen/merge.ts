// Which neighbouring dims of a kernel are one loop: those that every buffer steps through as one. [4,4] elements
// read and written in order are E_16, a transposed one stays E_4_4.

import { toposort } from "../helpers.ts";
import { isReduceOp } from "../ops.ts";
import type { LazyOp } from "../schedule/lazyop.ts";
import { mul, type Sint } from "../shape/symbolic.ts";
import type { View } from "../shape/view.ts";

/**
 * Groups the dims of `root`'s shape (all of them, or only `axes`), outermost first. Dims are seen as far down as
 * they keep their meaning: through elementwise ops and reduces, to the views of LOAD, CONST, STORE and VIEW.
 */
export function mergeDims(root: LazyOp, axes?: readonly number[]): number[][] {
  const nodes = toposort([root], (u) => (u.op === "VIEW" && u !== root ? [] : u.srcs));
  const dims = axes ?? root.shape.map((_, i) => i);
  const groups: number[][] = [];
  for (const d of dims) {
    const last = groups.at(-1);
    if (last?.at(-1) === d - 1 && nodes.every((u) => joins(u, d))) last.push(d);
    else groups.push([d]);
  }
  return groups;
}

/** Whether dims d-1 and d may be one loop as far as this node is concerned. */
function joins(u: LazyOp, d: number): boolean {
  if (isReduceOp(u.op)) {
    const axes = u.arg as readonly number[];
    const src = u.srcs[0]?.shape;
    // a dim of size 1 is on neither side
    if (src?.[d] === 1 || src?.[d - 1] === 1) return true;
    return axes.includes(d) === axes.includes(d - 1);
  }
  if (u.op === "VIEW") return joinsView(u.arg.views.at(-1) as View, d);
  if (u.op === "LOAD" || u.op === "STORE" || u.op === "CONST")
    return joinsView(u.arg.st.views.at(-1) as View, d);
  return true;
}

function joinsView(v: View, d: number): boolean {
  const full = (i: number) => v.mask === undefined || (v.mask[i]?.[0] === 0 && v.mask[i]?.[1] === v.shape[i]);
  if (!full(d) || !full(d - 1)) return false;
  if (v.shape[d] === 1 || v.shape[d - 1] === 1) return true;
  return v.strides[d - 1] === mul(v.strides[d] as Sint, v.shape[d] as Sint);
}
