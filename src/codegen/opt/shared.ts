// SHARED: what the items of a workgroup read several times in a turn of a reduce comes through shared memory. A load becomes
// one from a TILE, which says what part of the buffer that is and how it lies there; fetch.ts writes the copies. Between
// pickOneHot and blockSums, while axes are still ranges. Rows get a gap, or their pieces change places from row to row
// (swizzled), so that items do not meet in one bank.

import { PtrDType } from "../../dtype.ts";
import { ArgumentError } from "../../errors.ts";
import { sum, toposort } from "../../helpers.ts";
import { mapGraph } from "../../uop/rewrite.ts";
import { elementOf, type Swizzle, type Tile, type UOp, valueType } from "../../uop/uops.ts";
import { affine, replace, toIndex } from "../analysis/affine.ts";
import { type Axis, isItem, type Lowered } from "../lower/lower.ts";
import { isLane } from "../passes/expand.ts";
import { type OptOp, showOpts } from "./opts.ts";

/** What one copy moves at most, and the least it can, in bytes. */
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

/** A range inside the loop: how often it turns, and how far an index moves with each turn. */
export interface Walk {
  /** the axis of the kernel that it is a part of */
  readonly of: number;
  readonly size: number;
  readonly stride: number;
  /** lanes are written out, neighbours are read at once; tile: the side of a matrix that a warp multiplies */
  readonly kind: "lane" | "item" | "tile" | "loop";
}
/** A dim of a part: elements so far apart in the buffer, and the ranges that go along it, so many of them a turn. */
interface Dim {
  readonly stride: number;
  readonly size: number;
  readonly walks: ReadonlyMap<Walk, number>;
  /** one of these is of items, or of a matrix */
  readonly apart: boolean;
}
/** How a part lies in shared memory. */
interface Part extends Pick<Tile, "dims" | "size" | "vector" | "swizzle"> {
  readonly pitches: ReadonlyMap<Walk, number>;
  readonly offset: number;
  /** how often an item reads from it for all its lanes */
  readonly loads: number;
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
      `${showOpts([opt])}: nothing that this reduce reads can be shared by a workgroup; expected LOCAL on an axis along ` +
        "which it reads the same again",
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
  const walks = new Map<UOp, Walk>();
  const base = new Map<UOp, number>();
  for (const [t, stride] of terms) {
    const axis = axes[t.arg as number];
    const size = isInner(t) ? axis?.size : undefined;
    if (axis !== undefined && typeof size === "number")
      walks.set(t, { of: axis.of, size, stride, kind: kindOf(axis) });
    else if (t !== loop && toposort([t], (x) => x.srcs).some((x) => isInner(x) || x === loop))
      return undefined;
    else if (t !== loop) base.set(t, stride);
  }
  const step = loop === undefined ? 0 : (terms.get(loop) ?? 0);
  if (walks.size === 0 || (loop !== undefined && step === 0)) return undefined;
  const first = k + sum([...walks.values()].map((w) => Math.min(0, w.stride * (w.size - 1))));
  const others = [...base.values(), step, first];
  const part = partOf([...walks.values()], others, elementOf(load).itemsize, reader);
  if (part === undefined) return undefined;
  const { dims, size, vector, swizzle, pitches, offset } = part;
  const srcs = [buffer, toIndex({ terms: base, k: first }, arena), ...(loop === undefined ? [] : [loop])];
  const spec: Tile = { dims, size, vector, swizzle, step, stages: loop === undefined ? 1 : stages };
  return {
    tile: arena.make("TILE", PtrDType(valueType(load), true), srcs, spec),
    pitches: new Map([...walks].map(([r, w]) => [r, pitches.get(w) as number])),
    offset,
  };
}

/**
 * What these ranges cover, as it lies in shared memory; undefined where that is no box, or cannot be copied. `others`: strides
 * and offsets of what its place in the buffer is made of, which say where a copy may start.
 */
export function partOf(
  walks: readonly Walk[],
  others: readonly number[],
  itemsize: number,
  reader: Reader = "items",
): Part | undefined {
  const dims = boxOf(walks, MAX_COPY / itemsize, reader);
  if (dims === undefined) return undefined;
  const strides = dims.slice(1).map((d) => d.stride);
  const vector = vectorOf(dims[0] as Dim, [...others, ...strides], itemsize);
  if (vector * itemsize < MIN_COPY) return undefined;
  // what is copied one by one may lie in any order: in that in which it is read with the fewest loads
  const orders = dims.map((_, i) => [i, ...dims.keys()].filter((d, at, all) => all.indexOf(d) === at));
  const laid = (vector > 1 ? orders.slice(0, 1) : orders).map((order) =>
    layOut(dims, order, itemsize, reader),
  );
  const best = laid.reduce((x, y) => (y.loads < x.loads ? y : x));
  return { ...best, vector };
}

const kindOf = (a: Axis): Walk["kind"] =>
  isLane(a) ? "lane" : a.kind === "tile" ? "tile" : isItem(a) ? "item" : "loop";

/**
 * Ranges as the dims of a box, the one whose elements are nearest to each other first. A range whose steps are within what the
 * nearer ones cover goes along the same dim: a window that moves, or a row that goes on. undefined: they overlap unevenly.
 */
function boxOf(walks: readonly Walk[], unit: number, reader: Reader): Dim[] | undefined {
  const dims: { stride: number; size: number; walks: Map<Walk, number>; apart: boolean; of: number }[] = [];
  for (const w of walks.toSorted((a, b) => Math.abs(a.stride) - Math.abs(b.stride))) {
    const [stride, sign] = [Math.abs(w.stride), Math.sign(w.stride)];
    const apart = w.kind === "item" || w.kind === "tile";
    const last = dims.at(-1);
    const by = stride / (last?.stride ?? 1);
    // the rows of a matrix are of one axis; items that would be in the same banks get a gap
    const goesOn =
      reader === "items"
        ? w.kind !== "item" || (dims.length === 1 && by % (2 * unit) !== 0)
        : dims.length === 1 && last?.of === w.of;
    if (last === undefined || by > last.size || (by === last.size && !goesOn))
      dims.push({ stride, size: w.size, walks: new Map([[w, sign]]), apart, of: w.of });
    else if (!Number.isInteger(by)) return undefined;
    else {
      last.size += by * (w.size - 1);
      last.walks.set(w, by * sign);
      last.apart ||= apart;
    }
  }
  return dims;
}

/**
 * Dims in the given order. What is read at the same time lies an odd number of units apart, so that it is in other banks, or
 * close together and swizzled, if rows are long and even enough.
 */
function layOut(
  dims: readonly Dim[],
  order: readonly number[],
  itemsize: number,
  reader: Reader,
): Omit<Part, "vector"> {
  const unit = MAX_COPY / itemsize;
  const isClose = reader === "swizzled" && dims.length > 1;
  const swizzle = isClose ? swizzleOf((dims[order[0] as number] as Dim).size, itemsize) : undefined;
  const pitch: number[] = [];
  let size = 1;
  for (const [at, i] of order.entries()) {
    const dim = dims[i] as Dim;
    const isOdd = swizzle === undefined && (dim.apart || reader === "items");
    if (at > 0) size = (Math.ceil(size / unit) | (isOdd ? 1 : 0)) * unit;
    pitch[i] = size;
    size *= dim.size;
  }
  const pitches = new Map(
    dims.flatMap((d, i) => [...d.walks].map(([w, by]) => [w, by * (pitch[i] as number)])),
  );
  const offset = sum([...pitches].map(([w, p]) => Math.max(0, -p) * (w.size - 1)));
  const placed = dims.map((d, i) => ({ size: d.size, stride: d.stride, pitch: pitch[i] as number }));
  const loads = countLoads(pitches, offset, unit);
  return { dims: merged(placed), size: Math.ceil(size / unit) * unit, swizzle, pitches, offset, loads };
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
function countLoads(pitches: ReadonlyMap<Walk, number>, offset: number, most: number): number {
  let left = new Set([offset]);
  let widest = most;
  for (const [{ size, kind }, p] of pitches) {
    if (kind !== "lane") while (p % widest !== 0) widest /= 2;
    else {
      const wider = new Set<number>();
      for (const at of left) for (let i = 0; i < size; i++) wider.add(at + i * p);
      left = wider;
    }
  }
  let count = 0;
  for (let width = widest; width >= 1; width /= 2) {
    for (const at of left) {
      let run = at % width === 0 ? 1 : 0;
      while (run > 0 && run < width && left.has(at + run)) run++;
      if (run < width) continue;
      for (let i = 0; i < width; i++) left.delete(at + i);
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
