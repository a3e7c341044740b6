// Split reductions: a reduction that would leave compute units of a GPU idle runs as two kernels. The first
// computes enough partial results to keep all units busy, the second combines them. This pays off for large
// reductions to few results, and for contractions with few tiles of results and many terms, such as the
// gradient of a convolution's weight. In: an item after grouping. Out: one or two items; the buffer between
// them is private. Reductions that are split on every device are split in lazy/; how a workgroup shares one
// is decided in codegen.

import { toposort } from "../helpers.ts";
import type { AxisSplit } from "../lazy/axissplit.ts";
import { isReduceOp, type ReduceOp } from "../ops.ts";
import { Buffer } from "../runtime/buffer.ts";
import { Device } from "../runtime/registry.ts";
import { ShapeTracker } from "../shape/shapetracker.ts";
import { smax, sprod } from "../shape/symbolic.ts";
import type { Shape } from "../shape/view.ts";
import { leavesUnitsIdle } from "./group.ts";
import { ConstBuffer, type LazyOp, lazyOp, MemBuffer } from "./lazyop.ts";
import type { ScheduleItem } from "./schedule.ts";

/** This many workgroups keep a compute unit busy. */
const WORKGROUPS = 2;
/** If each compute unit has at least this many products, the cost of a second kernel is negligible. */
const MIN_PRODUCTS_PER_UNIT = 1 << 19;
/** Each operand is used at least this often, so that a tile of results is worth computing at once. */
const MIN_REUSE = 8;
/** The results in a tile, and the fewest terms of a partial sum. */
const TILE = 1 << 14;
const MIN_TERMS = 256;

/** The items that run instead of this one: one, or the two of a split reduction. */
export function splitReduction(item: ScheduleItem): readonly ScheduleItem[] {
  const units = Device.unitsOf(item.outputs[0]?.device ?? "");
  if (units === 0 || item.varVals.size > 0) return [item];
  const nodes = toposort<LazyOp>(item.ast, (u) => u.srcs);
  const reduces = nodes.filter((u): u is LazyOp<ReduceOp> => isReduceOp(u.op));
  const axisSplit =
    reduces.length === 0 ? undefined : (splitRows(reduces, item) ?? splitContraction(reduces, item, units));
  return axisSplit === undefined ? [item] : split(item, reduces, axisSplit);
}

const elementsOf = (u: LazyOp | undefined): number => (u === undefined ? 0 : smax(sprod(u.shape)));

/**
 * For reductions to few results: at least as many parts as keep the compute units busy, and less than twice
 * as many.
 */
function splitRows(reduces: readonly LazyOp<ReduceOp>[], { outputs }: ScheduleItem): AxisSplit | undefined {
  const device = outputs[0]?.device as string;
  const [first] = reduces as readonly [LazyOp<ReduceOp>];
  const [source] = first.srcs;
  const results = elementsOf(first);
  if (!leavesUnitsIdle(device, elementsOf(source), results)) return undefined;
  const alike = reduces.every(
    (r) => String(r.srcs[0]?.shape) === String(source?.shape) && String(r.arg) === String(first.arg),
  );
  const least = Math.ceil((WORKGROUPS * Device.unitsOf(device)) / results);
  if (!alike) return undefined;
  for (const [axis, size] of splittableAxes(reduces)) {
    for (let count = least; count < 2 * least && count < size; count++)
      if (size % count === 0) return { axis, count };
  }
  return undefined;
}

/** For a contraction: as many parts as there are compute units for, as long as each part keeps many terms. */
function splitContraction(
  reduces: readonly LazyOp<ReduceOp>[],
  { inputs, outputs }: ScheduleItem,
  units: number,
): AxisSplit | undefined {
  const [sum] = reduces as readonly [LazyOp<ReduceOp>];
  const [product] = sum.srcs;
  if (reduces.length !== 1 || sum.op !== "SUM" || product?.op !== "MUL") return undefined;
  const stored = (u: LazyOp): number => {
    if (u.op === "LOAD") return (inputs[u.arg.idx - outputs.length] as Buffer).size;
    return u.op === "CONST" ? 1 : elementsOf(u.op === "VIEW" ? u.srcs[0] : u);
  };
  const size = elementsOf(product);
  if (size < MIN_PRODUCTS_PER_UNIT * units) return undefined;
  if (!product.srcs.every((s) => stored(s) * MIN_REUSE <= size)) return undefined;
  const tiles = elementsOf(sum) / TILE;
  const terms = size / elementsOf(sum);
  const most = Math.min((WORKGROUPS * units) / Math.max(1, tiles), terms / MIN_TERMS);
  for (const [axis, length] of splittableAxes(reduces)) {
    const count = divisor(length, most);
    if (count >= 4) return { axis, count };
  }
  return undefined;
}
/** The largest divisor of `size` that is at most `most` and less than `size`. */
function divisor(size: number, most: number): number {
  for (let n = Math.floor(Math.min(most, size / 2)); n > 1; n--) if (size % n === 0) return n;
  return 1;
}

/** The reduction axes, with their sizes, along which no ARANGE varies. */
function splittableAxes(reduces: readonly LazyOp<ReduceOp>[]): [axis: number, size: number][] {
  const below = (roots: readonly LazyOp[]): LazyOp[] => toposort<LazyOp>(roots, (u) => u.srcs);
  const nodes = below(reduces.flatMap((r) => r.srcs));
  // a reduction that depends on another one is not a sum of partial results
  if (nodes.some((u) => isReduceOp(u.op))) return [];
  // a one-hot sum becomes a load, but only if it is not split
  const numbers = nodes
    .filter((u) => u.op === "ARANGE" || u.op === "VIEW")
    .filter((u) => hasNumbers(below([u])));
  const [first] = reduces as readonly [LazyOp<ReduceOp>];
  return first.arg.flatMap((axis): [number, number][] => {
    const size = first.srcs[0]?.shape[axis];
    return typeof size !== "number" || numbers.some((u) => moves(u.arg, axis)) ? [] : [[axis, size]];
  });
}
/** Whether the view shows another element, or none, when the index along the axis changes. */
const moves = (st: ShapeTracker, axis: number): boolean =>
  st.realStrides()[axis] !== 0 || st.axisIsMasked(axis);
const hasNumbers = (nodes: readonly LazyOp[]): boolean => nodes.some((u) => u.op === "ARANGE");

/** The item that computes the partial results, and the item that combines them into the original outputs. */
function split(
  item: ScheduleItem,
  reduces: readonly LazyOp<ReduceOp>[],
  axisSplit: AxisSplit,
): ScheduleItem[] {
  const device = item.outputs[0]?.device as string;
  const [first] = reduces as readonly [LazyOp<ReduceOp>];
  const seen = first.srcs[0]?.shape as Shape;
  const shape = first.shape.map((d, i) => (i === axisSplit.axis ? axisSplit.count : d));
  const size = smax(sprod(shape));
  const buffers = reduces.map((r) => new Buffer(device, size, r.dtype));
  const partial = new ItemCopy(item, reduces.length);
  const done = new Map<LazyOp, LazyOp>();
  const parts = reduces.map((r, i): LazyOp => {
    const part = partial.rebuild(r.srcs[0] as LazyOp, done, (st) => withParts(st, seen, axisSplit));
    const axes = r.arg.map((a) => a + 1);
    const kept = part.shape.map((d, k) => (axes.includes(k) ? 1 : d));
    const sum = lazyOp(r.op, [part], axes, r.dtype, kept);
    return lazyOp("STORE", [sum], new MemBuffer(i, r.dtype, ShapeTracker.fromShape(kept)), r.dtype, kept);
  });
  const rest = new ItemCopy(item, item.outputs.length);
  const totals = new Map<LazyOp, LazyOp>(
    reduces.map((r, i) => {
      const idx = rest.add(buffers[i] as Buffer);
      const arg = new MemBuffer(idx, r.dtype, combined(r.shape, axisSplit));
      const load = lazyOp("LOAD", [], arg, r.dtype, shape);
      return [r, lazyOp(r.op, [load], [axisSplit.axis], r.dtype, r.shape)];
    }),
  );
  const ast = item.ast.map((u) => rest.rebuild(u, totals));
  const reads = (inputs: readonly Buffer[]) =>
    item.reads === undefined ? {} : { reads: item.reads.filter((lb) => inputs.includes(lb.buffer)) };
  return [
    { ...item, ast: parts, outputs: buffers, inputs: partial.inputs, lazies: [], ...reads(partial.inputs) },
    { ...item, ast, inputs: rest.inputs, ...reads(rest.inputs) },
  ];
}

/** The view with the parts as first axis, so that they are computed in the order in which they are stored. */
function withParts(st: ShapeTracker, shape: Shape, { axis, count }: AxisSplit): ShapeTracker {
  const reshaped = shape.flatMap((d, i) => (i === axis ? [count, (d as number) / count] : [d]));
  const order = [axis, ...reshaped.keys()].filter((d, i, all) => all.indexOf(d) === i);
  return st.reshape(reshaped).permute(order);
}
/** The partial results, seen with the parts along the axis that was split. */
function combined(shape: Shape, { axis, count }: AxisSplit): ShapeTracker {
  const others = shape.filter((_, i) => i !== axis);
  const order = shape.map((_, i) => (i === axis ? 0 : i < axis ? i + 1 : i));
  return ShapeTracker.fromShape([count, ...others]).permute(order);
}

type See = (st: ShapeTracker) => ShapeTracker;

/** Copies nodes of an item into another one, which has only the inputs that these nodes read. */
class ItemCopy {
  readonly inputs: Buffer[] = [];
  readonly #item: ScheduleItem;
  readonly #outputs: number;
  /** copies of what lies below a VIEW; `see` does not apply there */
  readonly #viewed = new Map<LazyOp, LazyOp>();

  constructor(item: ScheduleItem, outputs: number) {
    this.#item = item;
    this.#outputs = outputs;
  }

  /** The index of an input buffer in the new item. */
  add(buffer: Buffer): number {
    const at = this.inputs.indexOf(buffer);
    return this.#outputs + (at >= 0 ? at : this.inputs.push(buffer) - 1);
  }

  /** The same value, seen through `see` if given. `done` holds the nodes that are copied already. */
  rebuild(root: LazyOp, done: Map<LazyOp, LazyOp>, see?: See): LazyOp {
    const isEnd = (u: LazyOp): boolean => done.has(u) || (u.op === "VIEW" && see !== undefined);
    for (const u of toposort<LazyOp>([root], (x) => (isEnd(x) ? [] : x.srcs)))
      if (!done.has(u)) done.set(u, this.#one(u, done, see));
    return done.get(root) as LazyOp;
  }
  #one(u: LazyOp, done: ReadonlyMap<LazyOp, LazyOp>, see: See | undefined): LazyOp {
    const { op, dtype } = u;
    const seen = (st: ShapeTracker): ShapeTracker => see?.(st) ?? st;
    if (op === "LOAD") {
      const st = seen(u.arg.st);
      const idx = this.add(this.#item.inputs[u.arg.idx - this.#item.outputs.length] as Buffer);
      return lazyOp(op, [], new MemBuffer(idx, dtype, st), dtype, st.shape);
    }
    if (op === "CONST") {
      const st = seen(u.arg.st);
      return lazyOp(op, [], new ConstBuffer(u.arg.val, dtype, st), dtype, st.shape);
    }
    const srcs = u.srcs.map((s) =>
      op === "VIEW" && see !== undefined ? this.rebuild(s, this.#viewed) : (done.get(s) as LazyOp),
    );
    if (op === "ARANGE" || op === "VIEW") {
      const st = seen(u.arg);
      return lazyOp(op, srcs, st, dtype, st.shape);
    }
    return { ...u, srcs, shape: isReduceOp(op) ? u.shape : (srcs[0] as LazyOp).shape } as LazyOp;
  }
}
