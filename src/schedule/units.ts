// Reduces that leave units of a GPU idle go in two kernels: parts, as many as keep the units busy, and what is made of them.
// These are large ones to far fewer results than there are units, and sums of products with few blocks of results and many
// terms, as the gradient of a convolution's weight. In goes an item as grouping left it, out come one or two; the buffer of
// the parts is theirs alone. Reduces that are cut whatever device they are on are lazy/'s business, how a workgroup shares
// one codegen's.

import { toposort } from "../helpers.ts";
import { isReduceOp, type ReduceOp } from "../ops.ts";
import { Buffer } from "../runtime/buffer.ts";
import { Device } from "../runtime/registry.ts";
import { ShapeTracker } from "../shape/shapetracker.ts";
import { smax, sprod } from "../shape/symbolic.ts";
import type { Shape } from "../shape/view.ts";
import { ConstBuffer, type LazyOp, lazyOp, MemBuffer } from "./lazyop.ts";
import type { ScheduleItem } from "./schedule.ts";

/** With fewer elements for each of the units a reduce takes less time than another kernel. */
const MANY = 1 << 15;
/** So many workgroups a unit keep it busy. */
const WORKGROUPS = 2;
/** Products from which on a second kernel costs nothing beside them. */
const MIN_PRODUCTS = 1 << 26;
/** Each factor is used so often at least: it is worth having a block of results at once. */
const MIN_REUSE = 8;
/** Results of a block, and the fewest terms of a part. */
const BLOCK = 1 << 14;
const MIN_TERMS = 256;

/** Whether a reduce of so many elements to so few results leaves units of the device idle. */
export function leavesIdle(device: string, elements: number, results: number): boolean {
  const units = Device.unitsOf(device);
  return 2 * results <= units && elements >= units * MANY;
}

/** The items that run in place of this one. */
export function inParts(item: ScheduleItem): readonly ScheduleItem[] {
  const units = Device.unitsOf(item.outputs[0]?.device ?? "");
  if (units === 0 || item.varVals.size > 0) return [item];
  const nodes = toposort<LazyOp>(item.ast, (u) => u.srcs);
  const reduces = nodes.filter((u): u is LazyOp<ReduceOp> => isReduceOp(u.op));
  const cut = reduces.length === 0 ? undefined : (rowsCut(reduces, item) ?? productCut(reduces, item, units));
  return cut === undefined ? [item] : split(item, reduces, cut);
}

interface Cut {
  readonly axis: number;
  readonly count: number;
}

const elementsOf = (u: LazyOp | undefined): number => (u === undefined ? 0 : smax(sprod(u.shape)));

/** Of reduces to few results: at least so many parts that units are busy, and not twice as many. */
function rowsCut(reduces: readonly LazyOp<ReduceOp>[], { outputs }: ScheduleItem): Cut | undefined {
  const device = outputs[0]?.device as string;
  const [first] = reduces as readonly [LazyOp<ReduceOp>];
  const [source] = first.srcs;
  const results = elementsOf(first);
  if (!leavesIdle(device, elementsOf(source), results)) return undefined;
  const alike = reduces.every(
    (r) => String(r.srcs[0]?.shape) === String(source?.shape) && String(r.arg) === String(first.arg),
  );
  const least = Math.ceil((WORKGROUPS * Device.unitsOf(device)) / results);
  if (!alike) return undefined;
  for (const [axis, size] of axesToCut(reduces)) {
    for (let count = least; count < 2 * least && count < size; count++)
      if (size % count === 0) return { axis, count };
  }
  return undefined;
}

/** Of a sum of products: as many parts as there are units for, in each of which many terms are left. */
function productCut(
  reduces: readonly LazyOp<ReduceOp>[],
  { inputs, outputs }: ScheduleItem,
  units: number,
): Cut | undefined {
  const [sum] = reduces as readonly [LazyOp<ReduceOp>];
  const [product] = sum.srcs;
  if (reduces.length !== 1 || sum.op !== "SUM" || product?.op !== "MUL") return undefined;
  const stored = (u: LazyOp): number => {
    if (u.op === "LOAD") return (inputs[u.arg.idx - outputs.length] as Buffer).size;
    return u.op === "CONST" ? 1 : elementsOf(u.op === "VIEW" ? u.srcs[0] : u);
  };
  const size = elementsOf(product);
  if (size < MIN_PRODUCTS || !product.srcs.every((s) => stored(s) * MIN_REUSE <= size)) return undefined;
  const blocks = elementsOf(sum) / BLOCK;
  const terms = size / elementsOf(sum);
  const most = Math.min((WORKGROUPS * units) / Math.max(1, blocks), terms / MIN_TERMS);
  for (const [axis, length] of axesToCut(reduces)) {
    const count = divisor(length, most);
    if (count >= 4) return { axis, count };
  }
  return undefined;
}
/** The largest divisor of `size` that is at most `most`, and not all of it. */
function divisor(size: number, most: number): number {
  for (let n = Math.floor(Math.min(most, size / 2)); n > 1; n--) if (size % n === 0) return n;
  return 1;
}

/** The axes that reduces run over and along which nothing is counted, with their sizes. */
function axesToCut(reduces: readonly LazyOp<ReduceOp>[]): [axis: number, size: number][] {
  const below = (roots: readonly LazyOp[]): LazyOp[] => toposort<LazyOp>(roots, (u) => u.srcs);
  const nodes = below(reduces.flatMap((r) => r.srcs));
  // one that waits for another is no sum of parts
  if (nodes.some((u) => isReduceOp(u.op))) return [];
  // a sum that picks a term by its number is a load, but only in one piece
  const numbers = nodes
    .filter((u) => u.op === "ARANGE" || u.op === "VIEW")
    .filter((u) => hasNumbers(below([u])));
  const [first] = reduces as readonly [LazyOp<ReduceOp>];
  return first.arg.flatMap((axis): [number, number][] => {
    const size = first.srcs[0]?.shape[axis];
    return typeof size !== "number" || numbers.some((u) => moves(u.arg, axis)) ? [] : [[axis, size]];
  });
}
/** Whether a view shows another element, or none, with each step along the axis. */
const moves = (st: ShapeTracker, axis: number): boolean =>
  st.realStrides()[axis] !== 0 || st.axisIsMasked(axis);
const hasNumbers = (nodes: readonly LazyOp[]): boolean => nodes.some((u) => u.op === "ARANGE");

/** The item that computes the parts, and the one that makes of them what the item was for. */
function split(item: ScheduleItem, reduces: readonly LazyOp<ReduceOp>[], cut: Cut): ScheduleItem[] {
  const device = item.outputs[0]?.device as string;
  const [first] = reduces as readonly [LazyOp<ReduceOp>];
  const seen = first.srcs[0]?.shape as Shape;
  const shape = first.shape.map((d, i) => (i === cut.axis ? cut.count : d));
  const size = smax(sprod(shape));
  const buffers = reduces.map((r) => new Buffer(device, size, r.dtype));
  const apart = new Renumbered(item, reduces.length);
  const done = new Map<LazyOp, LazyOp>();
  const parts = reduces.map((r, i): LazyOp => {
    const part = apart.rebuild(r.srcs[0] as LazyOp, done, (st) => divided(st, seen, cut));
    const axes = r.arg.map((a) => a + 1);
    const kept = part.shape.map((d, k) => (axes.includes(k) ? 1 : d));
    const sum = lazyOp(r.op, [part], axes, r.dtype, kept);
    return lazyOp("STORE", [sum], new MemBuffer(i, r.dtype, ShapeTracker.fromShape(kept)), r.dtype, kept);
  });
  const rest = new Renumbered(item, item.outputs.length);
  const totals = new Map<LazyOp, LazyOp>(
    reduces.map((r, i) => {
      const idx = rest.add(buffers[i] as Buffer);
      const arg = new MemBuffer(idx, r.dtype, together(r.shape, cut));
      const load = lazyOp("LOAD", [], arg, r.dtype, shape);
      return [r, lazyOp(r.op, [load], [cut.axis], r.dtype, r.shape)];
    }),
  );
  const ast = item.ast.map((u) => rest.rebuild(u, totals));
  const reads = (inputs: readonly Buffer[]) =>
    item.reads === undefined ? {} : { reads: item.reads.filter((lb) => inputs.includes(lb.buffer)) };
  return [
    { ...item, ast: parts, outputs: buffers, inputs: apart.inputs, lazies: [], ...reads(apart.inputs) },
    { ...item, ast, inputs: rest.inputs, ...reads(rest.inputs) },
  ];
}

/** Seen with the parts as the first axis: as side by side as they are stored they are computed. */
function divided(st: ShapeTracker, shape: Shape, { axis, count }: Cut): ShapeTracker {
  const apart = shape.flatMap((d, i) => (i === axis ? [count, (d as number) / count] : [d]));
  const order = [axis, ...apart.keys()].filter((d, i, all) => all.indexOf(d) === i);
  return st.reshape(apart).permute(order);
}
/** The parts of results of this shape, along the axis that was cut. */
function together(shape: Shape, { axis, count }: Cut): ShapeTracker {
  const others = shape.filter((_, i) => i !== axis);
  const order = shape.map((_, i) => (i === axis ? 0 : i < axis ? i + 1 : i));
  return ShapeTracker.fromShape([count, ...others]).permute(order);
}

type See = (st: ShapeTracker) => ShapeTracker;

/** Nodes of an item for another one, which has only the inputs that they read. */
class Renumbered {
  readonly inputs: Buffer[] = [];
  readonly #item: ScheduleItem;
  readonly #outputs: number;
  /** what lies below views, as it is */
  readonly #viewed = new Map<LazyOp, LazyOp>();

  constructor(item: ScheduleItem, outputs: number) {
    this.#item = item;
    this.#outputs = outputs;
  }

  /** The number of a buffer that is read. */
  add(buffer: Buffer): number {
    const at = this.inputs.indexOf(buffer);
    return this.#outputs + (at >= 0 ? at : this.inputs.push(buffer) - 1);
  }

  /** The same value, as it is or seen otherwise; `done` has what is known already. */
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
