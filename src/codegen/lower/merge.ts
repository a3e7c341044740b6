// Loop collapsing: which neighbouring dims of a kernel are one loop. Two dims merge if every buffer has one
// stride across both. [4,4] elements that are read and written in order are E_16, a transposed one stays
// E_4_4. In go the ASTs, out come groups of dims.

import { arraysEqual, getOrMake, mapped, range } from "../../helpers.ts";
import { isReduceOp, type ReduceOp } from "../../ops.ts";
import type { LazyOp } from "../../schedule/lazyop.ts";
import type { ShapeTracker } from "../../shape/shapetracker.ts";
import { mul, type Sint } from "../../shape/symbolic.ts";
import { type Shape, stridesFor } from "../../shape/view.ts";

/**
 * For each dim of the kernel, the dim of the node that follows it; undefined: the node does not depend on it.
 */
type NodeDim = number | undefined;
type NodeDims = readonly NodeDim[];
/**
 * Whether dims p and d of the kernel, with only dims of size 1 between them, may be one loop for one node.
 */
type Condition = (p: number, d: number) => boolean;

/**
 * Groups the dims of the roots, which have one shape; all of them, or only `axes`. The outermost comes first.
 */
export function mergeDims(roots: readonly LazyOp[], axes?: readonly number[]): number[][] {
  const shape = roots[0]?.shape ?? [];
  const all = range(shape.length);
  const dims = axes ?? all;
  if (dims.length < 2) return mapped(dims, (d) => [d]);
  const conditions: Condition[] = [];
  for (const r of roots) collect(r, all, conditions, new Map());
  const groups: number[][] = [];
  for (const d of dims) {
    const last = groups.at(-1);
    const before = last?.findLast((p) => shape[p] !== 1);
    const joins = before === undefined || shape[d] === 1 || conditions.every((c) => c(before, d));
    if (last?.at(-1) === d - 1 && joins) last.push(d);
    else groups.push([d]);
  }
  return groups;
}

/**
 * Follows the dims down to the loads, through elementwise ops, reductions and views that only rename dims.
 */
function collect(u: LazyOp, dims: NodeDims, into: Condition[], seen: Map<LazyOp, NodeDims[]>): void {
  const before = getOrMake(seen, u, () => []);
  if (before.some((b) => arraysEqual(b, dims))) return;
  before.push(dims);
  let below: NodeDims | undefined = dims;
  if (u.op === "LOAD" || u.op === "STORE" || u.op === "CONST")
    into.push((p, d) => joinsView(u.arg.st, dims[p], dims[d]));
  else if (u.op === "ARANGE") into.push((p, d) => joinsView(u.arg, dims[p], dims[d]));
  else if (isLazyReduce(u)) into.push((p, d) => joinsReduce(u, dims[p], dims[d]));
  else if (u.op === "VIEW") {
    into.push((p, d) => joinsView(u.arg, dims[p], dims[d]));
    below = renamed(u.arg, u.srcs[0].shape, dims);
    if (below === undefined) into.push(() => false);
  }
  if (below !== undefined) for (const s of u.srcs) collect(s, below, into, seen);
}

const isLazyReduce = (u: LazyOp): u is LazyOp<ReduceOp> => isReduceOp(u.op);

/** A reduced and a kept dim are different loops. A dim of size 1 is on neither side. */
function joinsReduce(u: LazyOp<ReduceOp>, a: NodeDim, b: NodeDim): boolean {
  const sizes = u.srcs[0].shape;
  if (a === undefined || b === undefined || sizes[a] === 1 || sizes[b] === 1) return true;
  return u.arg.includes(a) === u.arg.includes(b);
}

function joinsView(st: ShapeTracker, a: NodeDim, b: NodeDim): boolean {
  const v = st.views.at(-1);
  if (v === undefined || (a === undefined && b === undefined)) return true;
  const full = (i: number) => v.mask === undefined || (v.mask[i]?.[0] === 0 && v.mask[i]?.[1] === v.shape[i]);
  if ((a !== undefined && !full(a)) || (b !== undefined && !full(b))) return false;
  const step = (i: NodeDim): Sint => (i === undefined ? 0 : v.strides[i]!);
  const size = (i: NodeDim): Sint | undefined => (i === undefined ? undefined : v.shape[i]);
  if (size(a) === 1 || size(b) === 1) return true;
  return b === undefined ? step(a) === 0 : step(a) === mul(step(b), v.shape[b]!);
}

/** The dims below a view that keeps, drops or repeats whole dims; undefined for one that does more. */
function renamed(st: ShapeTracker, below: Shape, dims: NodeDims): NodeDims | undefined {
  const [v] = st.views;
  if (st.views.length !== 1 || v === undefined || v.mask !== undefined || v.offset !== 0) return undefined;
  const strides = stridesFor(below);
  const taken = new Set<number>();
  const names = v.shape.map((size, i) => {
    if (v.strides[i] === 0) return undefined;
    const at = below.findIndex((s, j) => s === size && strides[j] === v.strides[i] && !taken.has(j));
    if (at >= 0) taken.add(at);
    return at;
  });
  if (names.includes(-1)) return undefined;
  return dims.map((d) => (d === undefined ? undefined : names[d]));
}
