// Which reductions are scatters: each term says by an index which result it belongs to, as in the gradient of
// an embedding. Written as a sum over all pairs of a result and a term, they take as many steps as there are
// pairs. A kernel of loops goes through the terms once instead (codegen/passes/scatter.ts), if the reduction
// has a kernel to itself. In: the nodes of a graph. Out: those where such kernels end. fuse.ts asks.

import { env } from "../env.ts";
import { each, type Step } from "../helpers.ts";
import type { LazyBuffer } from "../lazy/lazybuffer.ts";
import { REDUCE, type ReduceOp } from "../ops.ts";
import { Device } from "../runtime/registry.ts";
import { isBetterScattered } from "../scattercost.ts";
import { ShapeTracker } from "../shape/shapetracker.ts";
import { elements, type GraphNode } from "./graph.ts";

/** How many nodes of an index are looked at. */
const MAX_INDEX_NODES = 100;

/** A node, and the view through which it is seen by the reduction. */
interface Seen {
  readonly base: LazyBuffer;
  readonly st: ShapeTracker;
}
const see = (x: LazyBuffer, st: ShapeTracker): Seen =>
  x._base === undefined ? { base: x, st } : { base: x._base, st: x.st.add(st).simplify() };
const isPending = ({ base }: Seen): boolean => base.realized === undefined;
const sourcesOf = ({ base, st }: Seen): Seen[] => (base.srcs ?? []).map((s) => see(s, st));

/**
 * Stores the nodes where the kernels of scatters end: the reduction, or what its results are added to as they
 * are among themselves, since a kernel can start from there.
 */
export function* storeScatters(all: readonly GraphNode[]): Step<ReadonlySet<LazyBuffer>> {
  const ends: GraphNode[] = [];
  const look = (b: GraphNode): void => {
    if (isScatter(b.lb)) ends.push(addsTo(b) ?? b);
  };
  if (env.FUSE !== 0) yield* each(all, look);
  for (const b of ends) b.mustStore = true;
  return new Set(ends.map(({ lb }) => lb));
}
function addsTo(reduce: GraphNode): GraphNode | undefined {
  const [use] = reduce.uses;
  if (use === undefined || reduce.uses.length !== 1) return undefined;
  const { by, through } = use;
  const combines = by.lb.op === REDUCE[reduce.lb.op as ReduceOp].combine;
  const isSame = through.st.contiguous && elements(through.shape) === reduce.elements;
  return combines && isSame && by.lb.dtype === reduce.lb.dtype ? by : undefined;
}

/** Whether the reduction is better run as a scatter, on a device whose kernels are loops. */
function isScatter(reduce: LazyBuffer): boolean {
  const [source] = reduce.srcs ?? [];
  if (source === undefined || !reduce.isReduce || !runsLoops(reduce.device)) return false;
  const axes = reduce.arg as readonly number[];
  const conditions = conditionsOf(see(source, ShapeTracker.fromShape(source.shape)));
  const chosen = new Set(conditions.flatMap((c) => chosenAxis(c, axes) ?? []));
  if (chosen.size === 0) return false;
  const { shape } = source;
  const size = (which: (axis: number) => boolean): number => elements(shape.filter((_, i) => which(i)));
  const first = Math.min(...chosen);
  const isOther = (i: number): boolean => !chosen.has(i) && !axes.includes(i);
  return isBetterScattered({
    results: size((i) => chosen.has(i)),
    terms: size((i) => axes.includes(i)),
    width: size((i) => i > first && isOther(i)),
    batch: size((i) => i < first && isOther(i)),
  });
}
const runsLoops = (device: string): boolean => {
  const target = Device.isOpen(device) ? Device.get(device).renderer : undefined;
  return target !== undefined && target.grid === undefined;
};

/** Under which conditions a term is not left out: `where(a & b, x, 0)`, or a condition that is counted. */
function conditionsOf(term: Seen): Seen[] {
  const found: Seen[] = [];
  let at = term;
  while (isPending(at) && at.base.op === "WHERE") {
    const [condition, value] = sourcesOf(at) as [Seen, Seen];
    found.push(...conjuncts(condition));
    at = value;
  }
  const counted = isPending(at) && at.base.op === "CAST" ? sourcesOf(at)[0] : at;
  if (counted?.base.dtype.kind === "bool") found.push(...conjuncts(counted));
  return found;
}
/** The conditions that an AND joins. */
const conjuncts = (x: Seen): Seen[] =>
  isPending(x) && x.base.op === "AND" && x.base.dtype.kind === "bool" ? sourcesOf(x).flatMap(conjuncts) : [x];

/**
 * `index == count`: the axis of results along which the count goes, if the index depends on the term only.
 */
function chosenAxis(condition: Seen, axes: readonly number[]): number | undefined {
  if (!isPending(condition) || condition.base.op !== "CMPEQ") return undefined;
  const [x, y] = sourcesOf(condition) as [Seen, Seen];
  for (const [side, index] of [
    [x, y],
    [y, x],
  ] as const) {
    const count = isPending(side) && side.base.op === "CAST" ? sourcesOf(side)[0] : side;
    if (count?.base.op !== "ARANGE" || !isPending(count)) continue;
    const varying = [...variesAlong(count.st)];
    const [axis] = varying;
    if (varying.length !== 1 || axis === undefined || axes.includes(axis)) continue;
    const others = indexAxes(index);
    if (!others.has(axis) && axes.some((a) => others.has(a))) return axis;
  }
  return undefined;
}
/** The axes along which the elements that an index is computed from differ. */
function indexAxes(index: Seen): ReadonlySet<number> {
  const found = new Set<number>();
  const seen = new Set<string>();
  const todo = [index];
  for (let x = todo.pop(); x !== undefined; x = todo.pop()) {
    const { base, st } = x;
    const key = `${base.id}|${st.key}`;
    if (base.op === "CONST" || seen.has(key)) continue;
    seen.add(key);
    if (isLeaf(base) || seen.size > MAX_INDEX_NODES) for (const axis of variesAlong(st)) found.add(axis);
    else todo.push(...sourcesOf(x));
  }
  return found;
}
/** Whether a kernel reads the node from memory, counts, or has a loop for it. */
const isLeaf = (lb: LazyBuffer): boolean => lb.realized !== undefined || lb.isLoad || lb.isReduce;

/** The axes along which a view shows more than one element. */
function* variesAlong(st: ShapeTracker): Generator<number> {
  const strides = st.realStrides();
  for (let i = 0; i < strides.length; i++)
    if (st.shape[i] !== 1 && (strides[i] !== 0 || st.axisIsMasked(i))) yield i;
}
