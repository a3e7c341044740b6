// A large reduce to far fewer results than a GPU has units goes in two kernels: parts, as many as keep the units busy, and what
// is made of them. In goes an item as grouping left it, out come one or two; the buffer of the parts is theirs alone. Reduces
// that are cut whatever kernel they come into are lazy/'s business, how a workgroup shares one codegen's.

import { toposort } from "../helpers.ts";
import { isReduceOp, type ReduceOp } from "../ops.ts";
import { Buffer } from "../runtime/buffer.ts";
import { Device } from "../runtime/registry.ts";
import { ShapeTracker } from "../shape/shapetracker.ts";
import { type Sint, smax, sprod } from "../shape/symbolic.ts";
import type { Shape } from "../shape/view.ts";
import { ConstBuffer, type LazyOp, lazyOp, MemBuffer } from "./lazyop.ts";
import type { ScheduleItem } from "./schedule.ts";

/** With fewer elements for each of the units a reduce takes less time than another kernel. */
const MANY = 1 << 15;
/** So many workgroups a unit keep it busy. */
const WORKGROUPS = 2;

/** Whether a reduce of so many elements to so few results leaves units of the device idle. */
export function leavesIdle(device: string, elements: number, results: number): boolean {
  const units = Device.unitsOf(device);
  return 2 * results <= units && elements >= units * MANY;
}

/** The items that run in place of this one. */
export function inParts(item: ScheduleItem): readonly ScheduleItem[] {
  const device = item.outputs[0]?.device ?? "";
  const nodes = toposort<LazyOp>(item.ast, (u) => u.srcs);
  const reduces = nodes.filter((u): u is LazyOp<ReduceOp> => isReduceOp(u.op));
  const [first] = reduces;
  const source = first?.srcs[0];
  if (first === undefined || source === undefined || item.varVals.size > 0) return [item];
  const results = smax(sprod(first.shape));
  if (!leavesIdle(device, smax(sprod(source.shape)), results)) return [item];
  const alike = reduces.every(
    (r) => String(r.srcs[0]?.shape) === String(source.shape) && String(r.arg) === String(first.arg),
  );
  const cut = alike ? cutOf(reduces, Math.ceil((WORKGROUPS * Device.unitsOf(device)) / results)) : undefined;
  return cut === undefined ? [item] : split(item, reduces, cut);
}

interface Cut {
  readonly axis: number;
  readonly count: number;
}

/** The first axis that has at least so many equal parts, and not twice as many; and along which nothing is counted. */
function cutOf(reduces: readonly LazyOp<ReduceOp>[], least: number): Cut | undefined {
  const below = (roots: readonly LazyOp[]): LazyOp[] => toposort<LazyOp>(roots, (u) => u.srcs);
  const nodes = below(reduces.flatMap((r) => r.srcs));
  // one that waits for another is no sum of parts
  if (nodes.some((u) => isReduceOp(u.op))) return undefined;
  // a sum that picks a term by its number is a load, but only in one piece
  const numbers = nodes
    .filter((u) => u.op === "ARANGE" || u.op === "VIEW")
    .filter((u) => hasNumbers(below([u])));
  const [first] = reduces as readonly [LazyOp<ReduceOp>];
  for (const axis of first.arg) {
    const size = first.srcs[0]?.shape[axis];
    if (typeof size !== "number" || numbers.some((u) => moves(u.arg, axis))) continue;
    for (let count = least; count < 2 * least && count < size; count++)
      if (size % count === 0) return { axis, count };
  }
  return undefined;
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
    const part = apart.rebuild(r.srcs[0] as LazyOp, done, (st) => st.reshape(divided(seen, cut)));
    const axes = r.arg.map((a) => (a >= cut.axis ? a + 1 : a));
    const kept = part.shape.map((d, k) => (axes.includes(k) ? 1 : d));
    const sum = lazyOp(r.op, [part], axes, r.dtype, kept);
    return lazyOp("STORE", [sum], new MemBuffer(i, r.dtype, ShapeTracker.fromShape(kept)), r.dtype, kept);
  });
  const rest = new Renumbered(item, item.outputs.length);
  const totals = new Map<LazyOp, LazyOp>(
    reduces.map((r, i) => {
      const idx = rest.add(buffers[i] as Buffer);
      const arg = new MemBuffer(idx, r.dtype, ShapeTracker.fromShape(shape));
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

const divided = (shape: Shape, { axis, count }: Cut): Sint[] =>
  shape.flatMap((d, i) => (i === axis ? [count, (d as number) / count] : [d]));

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
