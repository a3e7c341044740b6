// SHARED: what the items of a workgroup read several times in a turn of a reduce comes through shared memory. A load becomes
// one from a TILE, which says what part of the buffer that is and how it lies there; fetch.ts writes the copies. Between
// pickOneHot and blockSums, while axes are still ranges. Items that read rows below each other must not meet in one bank: rows
// get a gap, or, for LDMATRIX, their pieces change places (`Swizzle`), which keeps what is copied at once together.

import { PtrDType } from "../dtype.ts";
import { ArgumentError } from "../errors.ts";
import { range, sum, toposort } from "../helpers.ts";
import { affine, replace, toIndex } from "./affine.ts";
import { isLane } from "./expand.ts";
import { type Axis, isItem, type Lowered } from "./lower.ts";
import { type OptOp, showOpts } from "./opts.ts";
import { mapGraph } from "./rewrite.ts";
import { elementOf, type Swizzle, type Tile, type UOp, valueType } from "./uops.ts";

/** What one copy moves at most, the least it can, and the gap between rows, in bytes. */
const MAX_COPY = 16;
const MIN_COPY = 4;
/** What all banks hold together, in bytes. */
const BANKS = 128;

/** A load as one from shared memory: the part of the buffer, and where in it which turn of which range is. */
export interface Staged {
  readonly tile: UOp;
  readonly pitches: ReadonlyMap<UOp, number>;
  /** where it is before the first turn of all: not 0 where a range goes backwards */
  readonly offset: number;
}

/** A dim of a part: elements so far apart in the buffer, and the ranges that go along it, so many of them a turn. */
interface Dim {
  readonly stride: number;
  readonly size: number;
  readonly walks: ReadonlyMap<UOp, number>;
  /** as of a Walk: of one of its ranges */
  readonly apart: boolean;
}
/** A range inside the loop, and how far it moves. */
interface Walk {
  readonly range: UOp;
  /** the axis of the kernel that it is a part of */
  readonly of: number;
  readonly size: number;
  readonly stride: number;
  /** its turns are read at the same time, by items or as the rows of a matrix: not lanes or loops */
  readonly apart: boolean;
}

/** Applies SHARED to the reduces over the axis it names. TC does so itself, for its operands. */
export function shareLoads(lowered: Lowered, opts: readonly OptOp[]): UOp {
  const opt = opts.find((o) => o.op === "SHARED");
  if (opt === undefined || opts.some((o) => o.op === "TC")) return lowered.sink;
  const { arena, axes } = lowered;
  const items = axes.filter(isItem);
  let staged = 0;
  const sink = mapGraph(lowered.sink, arena, (u) => {
    if (u.op !== "REDUCE" || !u.srcs.slice(1).some((r) => axes[r.arg as number]?.of === opt.axis))
      return undefined;
    const [body, ...ranges] = u.srcs as [UOp, ...UOp[]];
    const loop = loopOf(ranges, opt, lowered);
    const inner = toposort([body], (x) => (x.op === "REDUCE" || x.op === "LOAD" ? [] : x.srcs));
    const by = new Map<UOp, UOp>();
    for (const load of inner) {
      if (load.op !== "LOAD") continue;
      const below = new Set(
        toposort([load as UOp], (x) => x.srcs).flatMap((x) => (x.op === "RANGE" ? [x.arg] : [])),
      );
      // what every item reads for itself gains nothing
      if (items.every((a) => below.has(a.id))) continue;
      const found = stage(load, loop, lowered, opt.amount);
      if (found === undefined) continue;
      staged++;
      const at = toIndex({ terms: found.pitches, k: found.offset }, arena);
      by.set(load, arena.make("LOAD", load.dtype, [found.tile, at], undefined));
    }
    return by.size === 0
      ? undefined
      : arena.make("REDUCE", u.dtype, [replace(body, by, arena), ...ranges], u.arg);
  });
  if (staged === 0) {
    throw new ArgumentError(
      `${showOpts([opt])}: nothing that this reduce reads can be shared by a workgroup`,
    );
  }
  return sink;
}

/** The loop that fetches, of the axis that SHARED names, and the loops of the reduce inside it. */
export function loopOf(
  ranges: readonly UOp[],
  opt: OptOp,
  { axes }: Lowered,
): { loop: UOp | undefined; inside: readonly UOp[] } {
  const loops = ranges.filter((r) => axes[r.arg as number]?.kind === "reduce");
  const at = loops.findIndex((r) => axes[r.arg as number]?.of === opt.axis);
  if (at >= 0 || loops.length === 0) return { loop: loops[at], inside: loops.slice(at + 1) };
  throw new ArgumentError(`${showOpts([opt])}: this axis has no loop, another of this reduce has; name that`);
}

/** What reads a part: items one element or vector, or a warp matrices, the rows of which have a gap between them or are swizzled. */
type Reader = "items" | "matrices" | "swizzled";

/** The part of its buffer that a workgroup reads by this load in a turn of the loop; undefined where that is no box. */
export function stage(
  load: UOp,
  { loop, inside }: ReturnType<typeof loopOf>,
  lowered: Lowered,
  stages: number,
  reader: Reader = "items",
): Staged | undefined {
  const { arena, axes } = lowered;
  const [buffer, index, gate] = load.srcs as [UOp, UOp, UOp?];
  if (gate !== undefined) return undefined;
  const isInner = (u: UOp): boolean => {
    const axis = u.op === "RANGE" ? axes[u.arg] : undefined;
    return axis !== undefined && (isItem(axis) || isLane(axis) || axis.kind === "tile" || inside.includes(u));
  };
  const { terms, k } = affine(index);
  const walks: Walk[] = [];
  const base = new Map<UOp, number>();
  for (const [t, stride] of terms) {
    const size = isInner(t) ? axes[t.arg as number]?.size : undefined;
    const { kind, of = -1 } = axes[t.arg as number] ?? {};
    const apart = isItem(axes[t.arg as number]) || kind === "tile";
    if (typeof size === "number") walks.push({ range: t, of, size, stride, apart });
    else if (t !== loop && toposort([t], (x) => x.srcs).some((x) => isInner(x) || x === loop))
      return undefined;
    else if (t !== loop) base.set(t, stride);
  }
  const step = loop === undefined ? 0 : (terms.get(loop) ?? 0);
  const dims = boxOf(walks, reader !== "items");
  if (dims === undefined || dims.length === 0 || (loop !== undefined && step === 0)) return undefined;
  const first = k + sum(walks.map((w) => Math.min(0, w.stride * (w.size - 1))));
  const type = elementOf(load);
  const others = [...base.values(), step, first, ...dims.slice(1).map((d) => d.stride)];
  const vector = vectorOf(dims[0] as Dim, others, type.itemsize);
  if (vector * type.itemsize < MIN_COPY) return undefined;
  const lanes = walks.filter((w) => isLane(axes[w.range.arg as number] as Axis));
  // what is copied one by one may lie in any order: in that in which it is read with the fewest loads
  const orders = dims.map((_, i) => [i, ...dims.keys()].filter((d, at, all) => all.indexOf(d) === at));
  const laid = (vector > 1 ? orders.slice(0, 1) : orders).map((order) =>
    layOut(dims, order, walks, type.itemsize, reader === "swizzled"),
  );
  const loads = laid.map((l) => countLoads(l, lanes, MAX_COPY / type.itemsize));
  const { pitches, offset, ...place } = laid[loads.indexOf(Math.min(...loads))] as Layout;
  const srcs = [buffer, toIndex({ terms: base, k: first }, arena), ...(loop === undefined ? [] : [loop])];
  const spec: Tile = { ...place, vector, step, stages: loop === undefined ? 1 : stages };
  return {
    tile: arena.make("TILE", PtrDType(valueType(load), true), srcs, spec),
    pitches,
    offset,
  };
}

/**
 * Ranges as the dims of a box, the one whose elements are nearest to each other first. A range whose steps are within what the
 * nearer ones cover goes along the same dim: a window that moves, or a row that goes on, `rows`: if it is the same axis that
 * does. undefined: they overlap unevenly.
 */
function boxOf(walks: readonly Walk[], rows: boolean): Dim[] | undefined {
  const dims: { stride: number; size: number; walks: Map<UOp, number>; apart: boolean; of: number }[] = [];
  for (const w of walks.toSorted((a, b) => Math.abs(a.stride) - Math.abs(b.stride))) {
    const [stride, sign] = [Math.abs(w.stride), Math.sign(w.stride)];
    const last = dims.at(-1);
    const by = stride / (last?.stride ?? 1);
    const isRow = dims.length === 1 && (!rows || last?.of === w.of);
    if (last === undefined || by > last.size || (by === last.size && !isRow))
      dims.push({ stride, size: w.size, walks: new Map([[w.range, sign]]), apart: w.apart, of: w.of });
    else if (!Number.isInteger(by)) return undefined;
    else {
      last.size += by * (w.size - 1);
      last.walks.set(w.range, by * sign);
      last.apart ||= w.apart;
    }
  }
  return dims;
}

interface Layout extends Pick<Tile, "dims" | "size" | "swizzle"> {
  readonly pitches: ReadonlyMap<UOp, number>;
  readonly offset: number;
}
/**
 * Dims in the given order. What is read at the same time lies an odd number of units apart, so that it is in other banks, or
 * close together and swizzled, if rows are long and even enough.
 */
function layOut(
  ...[dims, order, walks, itemsize, close]: [
    readonly Dim[],
    readonly number[],
    readonly Walk[],
    number,
    boolean,
  ]
): Layout {
  const unit = MAX_COPY / itemsize;
  const swizzle =
    close && dims.length > 1 ? swizzleOf((dims[order[0] as number] as Dim).size, itemsize) : undefined;
  const pitch: number[] = [];
  let size = 1;
  for (const [at, i] of order.entries()) {
    const dim = dims[i] as Dim;
    if (at > 0) size = (Math.ceil(size / unit) | (dim.apart && swizzle === undefined ? 1 : 0)) * unit;
    pitch[i] = size;
    size *= dim.size;
  }
  const pitches = new Map(
    dims.flatMap((d, i) => [...d.walks].map(([r, by]) => [r, by * (pitch[i] as number)])),
  );
  const offset = sum(walks.map((w) => Math.max(0, -(pitches.get(w.range) as number)) * (w.size - 1)));
  return {
    dims: merged(dims.map((d, i) => ({ size: d.size, stride: d.stride, pitch: pitch[i] as number }))),
    size: Math.ceil(size / unit) * unit,
    swizzle,
    pitches,
    offset,
  };
}
/** Dims that go on without a gap in the buffer and in shared memory are one: fewer parts of an index. */
function merged(dims: Tile["dims"]): Tile["dims"] {
  const found: { size: number; stride: number; pitch: number }[] = [];
  for (const d of dims) {
    const last = found.at(-1);
    const goesOn = (at: "stride" | "pitch"): boolean => last !== undefined && d[at] === last[at] * last.size;
    if (last !== undefined && goesOn("stride") && goesOn("pitch")) last.size *= d.size;
    else found.push({ ...d });
  }
  return found;
}
/** For rows of so many elements: any eight of them below each other have their pieces of one column in all banks. */
function swizzleOf(row: number, itemsize: number): Swizzle | undefined {
  const bytes = row * itemsize;
  if (bytes < 2 * MAX_COPY || !Number.isInteger(Math.log2(bytes))) return undefined;
  const pieces = Math.min(bytes, BANKS) / MAX_COPY;
  return { unit: MAX_COPY / itemsize, pieces, every: Math.max(bytes, BANKS) / itemsize };
}

/** How many loads an item needs for its lanes, where one gives up to `most` neighbours. */
function countLoads({ pitches, offset }: Layout, lanes: readonly Walk[], most: number): number {
  const fixed = [...pitches].filter(([r]) => !lanes.some((l) => l.range === r)).map(([, p]) => p);
  let all = [offset];
  for (const { range: r, size } of lanes)
    all = all.flatMap((at) => range(size).map((i) => at + i * (pitches.get(r) as number)));
  const left = new Set(all);
  let count = 0;
  for (let width = most; width >= 1; width /= 2) {
    if (fixed.some((p) => p % width !== 0)) continue;
    for (const at of left) {
      const run = range(width).map((i) => at + i);
      if (at % width !== 0 || !run.every((x) => left.has(x))) continue;
      for (const x of run) left.delete(x);
      count++;
    }
  }
  return count;
}

/** As many elements at once as are side by side, and start at a multiple of their number. */
function vectorOf(row: Dim, others: readonly number[], itemsize: number): number {
  if (row.stride !== 1) return 1;
  let vector = MAX_COPY / itemsize;
  while (vector > 1 && (row.size % vector !== 0 || others.some((s) => s % vector !== 0))) vector /= 2;
  return vector;
}
