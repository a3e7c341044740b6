// Kernels that differ only in where in a buffer their loads begin become one: rows of a matrix, slices of a
// sequence, parts of a join. In: the items of a schedule. Out: the same items; where several are alike, the
// offsets of their loads are Variables, so that one kernel is compiled for all of them.

import { getOrMake } from "../helpers.ts";
import { ShapeTracker } from "../shape/shapetracker.ts";
import { add, markFixed, mul, ownVariable, type Sint, type Variable } from "../shape/symbolic.ts";
import { View } from "../shape/view.ts";
import { astNodes, keyWith, type LazyOp, MemBuffer, showArg } from "./lazyop.ts";
import type { ScheduleItem } from "./schedule.ts";

/** So many kernels that differ in offsets share one. Fewer are compiled as they are. */
const MIN_ALIKE = 4;
/** How many different kernels are remembered. */
const MAX_KINDS = 1024;
/** An offset is a Variable times the largest power of 2 up to this: loads of vectors stay aligned. */
const MAX_ALIGNED = 16;
/** Larger buffers are not indexed by a Variable of 32 bits. */
const MAX_SIZE = 2 ** 28;

/** What kernels that differ only in offsets have in common. */
interface SharedKernel {
  /** the offsets of some of them */
  readonly seen: Set<string>;
  ast?: readonly LazyOp[];
}
const kinds = new Map<string, SharedKernel>();

/** An offset as a Variable: this times `factor`. */
interface Offset {
  readonly value: number;
  readonly factor: number;
  readonly variable: Variable;
}
interface Found {
  readonly kind: SharedKernel;
  readonly offsets: readonly Offset[];
  readonly places: ReadonlyMap<LazyOp, Offset>;
}

export function shareOffsets(items: readonly ScheduleItem[]): ScheduleItem[] {
  const found = items.map(alike);
  return items.map((item, i) => {
    const mine = found[i];
    if (mine === undefined || mine.kind.seen.size < MIN_ALIKE) return item;
    mine.kind.ast ??= moved(item.ast, mine.places);
    const varVals = new Map(item.varVals);
    for (const { variable, value } of mine.offsets) varVals.set(variable, value);
    return { ...item, ast: mine.kind.ast, varVals };
  });
}

/** The kernels like that of this item; undefined: all its loads begin where their buffers do. */
function alike({ ast, outputs, inputs, partOf }: ScheduleItem): Found | undefined {
  // the kernels of a loop are shared already
  if (ast[0]?.op !== "STORE" || partOf !== undefined) return undefined;
  const offsets: Offset[] = [];
  const places = new Map<LazyOp, Offset>();
  const key = keyWith(ast, (u) => {
    const from = u.op === "LOAD" ? lowestOf(u.arg.st) : 0;
    const size = u.op === "LOAD" ? (inputs[u.arg.idx - outputs.length]?.size ?? 0) : 0;
    if (u.op !== "LOAD" || from <= 0 || size > MAX_SIZE || u.dtype.isPacked) return showArg(u);
    let factor = 1;
    while (factor < MAX_ALIGNED && from % (2 * factor) === 0) factor *= 2;
    const value = from / factor;
    let at = offsets.findIndex((x) => x.value === value && x.factor === factor);
    if (at < 0) {
      const variable = ownVariable(`offset${offsets.length}`, 0, Math.floor((size - 1) / factor));
      markFixed(variable);
      at = offsets.push({ value, factor, variable }) - 1;
    }
    const offset = offsets[at] as Offset;
    places.set(u, offset);
    const { shape, strides, mask, offset: start } = u.arg.st.views[0] as View;
    const view = `${shape}/${strides}/${mask?.join(";")}+${(start as number) - from}`;
    return `${u.arg.idx}:${u.arg.dtype.name}${view}@${at}*${factor}<${offset.variable.max}`;
  });
  if (offsets.length === 0) return undefined;
  if (kinds.size >= MAX_KINDS && !kinds.has(key)) kinds.delete(kinds.keys().next().value as string);
  const kind = getOrMake(kinds, key, (): SharedKernel => ({ seen: new Set() }));
  if (kind.seen.size < MIN_ALIKE) kind.seen.add(offsets.map((x) => x.value).join());
  return { kind, offsets, places };
}

/** The lowest element of its buffer that a view reads, if that is known; otherwise 0. */
function lowestOf({ views }: ShapeTracker): number {
  const { shape, strides, offset, mask } = views[0] as View;
  if (views.length > 1 || typeof offset !== "number") return 0;
  let low = offset;
  for (const [i, step] of strides.entries()) {
    const [first, end] = mask?.[i] ?? [0, shape[i]];
    const extreme = (step as number) < 0 ? add(end as Sint, -1) : first;
    if (typeof step !== "number" || typeof extreme !== "number") return 0;
    low += step * extreme;
  }
  return low;
}

function moved(ast: readonly LazyOp[], places: ReadonlyMap<LazyOp, Offset>): readonly LazyOp[] {
  const done = new Map<LazyOp, LazyOp>();
  for (const u of astNodes(ast)) {
    const offset = places.get(u);
    const srcs = u.srcs.map((s) => done.get(s) as LazyOp);
    if (offset === undefined || u.op !== "LOAD") {
      done.set(u, { ...u, srcs } as LazyOp);
      continue;
    }
    const { shape, strides, mask, offset: start } = u.arg.st.views[0] as View;
    const shift = (start as number) - offset.value * offset.factor;
    const view = View.create(shape, strides, add(mul(offset.variable, offset.factor), shift), mask);
    const st = ShapeTracker.fromViews([view]);
    done.set(u, { ...u, srcs, arg: new MemBuffer(u.arg.idx, u.arg.dtype, st) } as LazyOp);
  }
  return ast.map((u) => done.get(u) as LazyOp);
}
