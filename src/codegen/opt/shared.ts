// SHARED (shared-memory tiling): what the threads of a workgroup read several times in an iteration of a
// reduce comes through shared memory. A load becomes one from a TILE, which says what part of the buffer is
// copied and its layout there; linear/tilecopies.ts emits the copies. Between pickOneHot and blockSums, while
// axes are still ranges. Rows are padded, or their pieces change places from row to row (swizzled), to avoid
// bank conflicts.

import { PtrDType } from "../../dtype.ts";
import { ArgumentError } from "../../errors.ts";
import { sum, toposort } from "../../helpers.ts";
import { isLane, isThread } from "../../uop/axis.ts";
import { elementOf } from "../../uop/list.ts";
import type { Swizzle, Tile } from "../../uop/matrix.ts";
import type { Expr, Load, Range, Reduce, Sink, TileNode, UOp } from "../../uop/node.ts";
import { mapGraph } from "../../uop/rewrite.ts";
import { substitute } from "../../uop/substitute.ts";
import { affine, toIndex } from "../analysis/affine.ts";
import { REGISTER_STAGES } from "../linear/stagedcopies.ts";
import type { KernelGraph } from "../lower/lower.ts";
import type { Gpu } from "../target.ts";
import { computedTile } from "./computedtile.ts";
import { type OptOp, showOpts } from "./opts.ts";
import { constantAxes, type OptDoc, type OptRecord } from "./record.ts";

export const SHARED_DOC: OptDoc = {
  textbook: "shared-memory tiling with prefetch",
  summary:
    "What a workgroup reads in an iteration of a reduction is copied to shared memory beforehand, by asynchronous " +
    "copies or through registers. Inner loops of the reduction read it there.",
  picture: `
for k: s += a[i, k] * b[k, j]         SHARED(2, stages=2)
copy the tile of iteration 0
for k: copy the tile of iteration k+1; wait for that of k; barrier
  s += tile a[i, k] * tile b[k, j]`,
};

export const SHARED: OptRecord<"SHARED"> = {
  name: "SHARED",
  params: {
    axis: { meaning: "a reduce axis that has a loop", least: 0 },
    stages: { meaning: "the iterations whose tiles are in shared memory at once", least: 1 },
  },
  takes: "reduce",
  expected:
    "1 or 2 stages, more only where the hardware copies by itself; without shared memory leave it out",
  once: true,
  refusal: (_, { stages }, { gpu, name }) => {
    if (gpu === undefined) return `${name} has no shared memory`;
    return stages <= maxStages(gpu)
      ? undefined
      : `${name} copies through registers, in up to ${maxStages(gpu)} stages`;
  },
  candidates: (kernel, { target: { gpu } }) =>
    gpu === undefined
      ? []
      : constantAxes(kernel, "reduce").flatMap(({ axis }) =>
          [1, 2, 3]
            .filter((stages) => stages <= maxStages(gpu))
            .map((stages) => ({ op: "SHARED", axis, stages }) as const),
        ),
  // TC brings its own operands to shared memory
  transform: (graph, opt, { opts, target: { gpu } }) =>
    gpu === undefined || opts.some((o) => o.op === "TC")
      ? graph
      : { ...graph, sink: shareLoads(graph, opt, gpu) },
};

/** Whether operands come faster from shared memory than from the cache. */
export const pays = (gpu: Gpu): boolean => gpu.sharedRate > gpu.fetchRate;
/** The most iterations whose tiles can be in shared memory at once. */
export const maxStages = (gpu: Gpu): number => (gpu.hasAsyncCopy ? Infinity : REGISTER_STAGES);

/** The fewest bytes that one copy moves; the most are those of a vector. */
const MIN_COPY = 4;
/** What decides how a tile is laid out: the bytes of a vector, and of a row across all banks. */
export type SharedFigures = Pick<Gpu, "vectorBytes" | "sharedRate">;

/** A load from a tile in shared memory: the tile, and how far in it the address moves along each range. */
export interface TiledLoad {
  readonly tile: TileNode;
  readonly pitches: ReadonlyMap<Range, number>;
  /** the offset at iteration 0 of all ranges: not 0 where a range goes backwards */
  readonly offset: number;
}

/** A range inside the loop: its iterations, and how far an index moves with each of them. */
export interface Walk {
  /** the axis of the kernel that it is a part of */
  readonly of: number;
  readonly size: number;
  readonly stride: number;
  /** lanes are written out, neighbours are read at once; tile: the side of a matrix that a warp multiplies */
  readonly kind: "lane" | "thread" | "tile" | "loop";
}
/**
 * A dim of a tile: its stride in the buffer, and how many of its elements each range along it moves in an
 * iteration.
 */
export interface TileDim {
  readonly stride: number;
  readonly size: number;
  readonly walks: ReadonlyMap<Walk, number>;
  /** one of these ranges is threads, or the side of a matrix */
  readonly apart: boolean;
}
/** The layout of a tile in shared memory. */
export interface TileLayout extends Pick<Tile, "dims" | "size" | "vector" | "swizzle"> {
  readonly pitches: ReadonlyMap<Walk, number>;
  readonly offset: number;
  /** loads of a thread for all its lanes */
  readonly loads: number;
}

/** The graph in which the reduces over the axis that SHARED names read shared memory. */
function shareLoads(lowered: KernelGraph, opt: OptOp<"SHARED">, gpu: SharedFigures): Sink {
  let count = 0;
  const sink = mapGraph(lowered.sink, lowered.arena, (u) => {
    if (u.op !== "REDUCE" || !u.ranges.some((r) => r.axis.of === opt.axis)) return undefined;
    const by = sharedLoads(u, lowered, opt, gpu);
    count += by.size;
    if (by.size === 0) return undefined;
    return lowered.arena.reduce(u.fn, substitute(u.body, by, lowered.arena), u.ranges);
  });
  if (count === 0) {
    throw new ArgumentError(
      `${showOpts([opt])}: nothing that this reduce reads can be shared by a workgroup; expected LOCAL on an axis along ` +
        "which it reads the same again",
    );
  }
  return sink;
}
/** Maps the loads of a reduction that can be shared to loads from shared memory. */
function sharedLoads(
  { body, ranges }: Reduce,
  lowered: KernelGraph,
  opt: OptOp<"SHARED">,
  gpu: SharedFigures,
): Map<UOp, UOp> {
  const { arena, axes } = lowered;
  const threads = axes.filter(isThread);
  const loop = loopOf(ranges, opt);
  const by = new Map<UOp, UOp>();
  for (const load of toposort<UOp>([body], (x) => (x.op === "REDUCE" || x.op === "LOAD" ? [] : x.srcs))) {
    if (load.op !== "LOAD") continue;
    const below = new Set(
      toposort<UOp>([load], (x) => x.srcs).flatMap((x) => (x.op === "RANGE" ? [x.axis] : [])),
    );
    // a load that no two threads share gains nothing
    if (threads.every((a) => below.has(a))) continue;
    const options = { stages: opt.stages, gpu };
    const found = tileOf(load, loop, lowered, options) ?? computedTile(load, loop, lowered, options);
    if (found === undefined) continue;
    by.set(load, arena.load(found.tile, toIndex({ terms: found.pitches, k: found.offset }, arena)));
  }
  return by;
}

/**
 * The loop whose iterations copy, of the axis that SHARED names, and the loops of the reduction inside it.
 */
export interface CopyLoop {
  /** undefined: the reduce has no loop at all */
  readonly loop: Range | undefined;
  readonly inside: readonly Range[];
}
export function loopOf(ranges: readonly Range[], opt: OptOp<"SHARED">): CopyLoop {
  const loops = ranges.filter((r) => r.axis.kind === "reduce");
  const at = loops.findIndex((r) => r.axis.of === opt.axis);
  if (at >= 0 || loops.length === 0) return { loop: loops[at], inside: loops.slice(at + 1) };
  throw new ArgumentError(
    `${showOpts([opt])}: this axis does not have a loop, another axis of this reduce has one; name that axis`,
  );
}

/**
 * What reads a tile: threads, an element or vector each, or a warp, matrices whose rows are padded or
 * swizzled.
 */
export type Reader = "threads" | "matrices" | "swizzled";

export interface TileOptions {
  readonly stages: number;
  readonly gpu: SharedFigures;
  /** default: threads */
  readonly reader?: Reader | undefined;
}

/**
 * The tile of its buffer that a workgroup reads by this load in an iteration of the loop; undefined where
 * that is not a box.
 */
export function tileOf(
  load: Load,
  { loop, inside }: CopyLoop,
  { arena }: KernelGraph,
  { stages, gpu, reader }: TileOptions,
): TiledLoad | undefined {
  const { buffer, index, gate } = load;
  if (gate !== undefined) return undefined;
  const isInner = innerRanges({ loop, inside });
  const { terms, k } = affine(index);
  const walks = new Map<Range, Walk>();
  const base = new Map<Expr, number>();
  for (const [t, stride] of terms) {
    if (t === loop) continue;
    if (t.op === "RANGE" && isInner(t) && typeof t.axis.size === "number") walks.set(t, walkOf(t, stride));
    else if (toposort<UOp>([t], (x) => x.srcs).some((x) => x === loop || isInner(x))) return undefined;
    else base.set(t, stride);
  }
  const step = loop === undefined ? 0 : (terms.get(loop) ?? 0);
  if (walks.size === 0 || (loop !== undefined && step === 0)) return undefined;
  const first = k + sum([...walks.values()].map((w) => Math.min(0, w.stride * (w.size - 1))));
  const others = [...base.values(), step, first];
  const part = layoutOf([...walks.values()], others, elementOf(load).itemsize, gpu, reader);
  if (part === undefined) return undefined;
  const { dims, size, vector, swizzle, pitches, offset } = part;
  const tile: Tile = {
    dims,
    size,
    vector,
    swizzle,
    step,
    stages: loop === undefined ? 1 : stages,
    coordinates: [],
  };
  const from = toIndex({ terms: base, k: first }, arena);
  return {
    tile: arena.tile(PtrDType(load.dtype, true), tile, buffer, from, loop),
    pitches: new Map([...walks].map(([r, w]) => [r, pitches.get(w) ?? 0])),
    offset,
  };
}

/** Whether a range runs within an iteration of the loop that copies. */
export const innerRanges =
  ({ inside }: CopyLoop) =>
  (u: UOp): u is Range =>
    u.op === "RANGE" && (isThread(u.axis) || isLane(u.axis) || u.axis.kind === "tile" || inside.includes(u));

/** A range inside the loop, which moves an index by this stride. */
export const walkOf = ({ axis }: Range, stride: number): Walk => ({
  of: axis.of,
  size: typeof axis.size === "number" ? axis.size : 1,
  stride,
  kind: isLane(axis) ? "lane" : axis.kind === "tile" ? "tile" : isThread(axis) ? "thread" : "loop",
});

/**
 * The layout of what these ranges cover; undefined where that is not a box, or cannot be copied. `others`:
 * the strides and offsets of everything else in the address, which decide the alignment of copies.
 */
export function layoutOf(
  walks: readonly Walk[],
  others: readonly number[],
  itemsize: number,
  gpu: SharedFigures,
  reader: Reader = "threads",
): TileLayout | undefined {
  const unit = gpu.vectorBytes / itemsize;
  const dims = boxOf(walks, unit, reader);
  const [row, ...outer] = dims ?? [];
  if (dims === undefined || row === undefined) return undefined;
  const vector = vectorOf(row, [...others, ...outer.map((d) => d.stride)], unit);
  if (vector * itemsize < MIN_COPY) return undefined;
  // elements that are copied one by one may be stored in any order: the one that takes the fewest loads to
  // read is chosen
  const orders = dims.map((_, i) => [i, ...dims.keys()].filter((d, at, all) => all.indexOf(d) === at));
  const laid = (vector > 1 ? orders.slice(0, 1) : orders).map((order) =>
    layOut(dims, order, unit, howTo(reader, itemsize, gpu)),
  );
  const best = laid.reduce((x, y) => (y.loads < x.loads ? y : x));
  return { ...best, dims: merged(best.dims), vector };
}
/** The layout of these dims, the first of which lies side by side. */
export const layoutInOrder = (
  dims: readonly TileDim[],
  itemsize: number,
  gpu: SharedFigures,
  reader: Reader = "threads",
): Omit<TileLayout, "vector"> =>
  layOut(dims, [...dims.keys()], gpu.vectorBytes / itemsize, howTo(reader, itemsize, gpu));

/** What decides about gaps between rows. */
interface RowSpacing {
  readonly reader: Reader;
  readonly swizzle: (row: number) => Swizzle | undefined;
}
const howTo = (reader: Reader, itemsize: number, gpu: SharedFigures): RowSpacing => ({
  reader,
  swizzle: (row) => (reader === "swizzled" ? swizzleOf(row, itemsize, gpu) : undefined),
});

/**
 * Ranges as the dims of a box, the one whose elements are nearest to each other first. A range whose steps
 * are within what the nearer ones cover goes along the same dim: a window that moves, or a row that goes on.
 * undefined: they overlap unevenly.
 */
function boxOf(walks: readonly Walk[], unit: number, reader: Reader): TileDim[] | undefined {
  const dims: { stride: number; size: number; walks: Map<Walk, number>; apart: boolean; of: number }[] = [];
  for (const w of walks.toSorted((a, b) => Math.abs(a.stride) - Math.abs(b.stride))) {
    const [stride, sign] = [Math.abs(w.stride), Math.sign(w.stride)];
    const apart = w.kind === "thread" || w.kind === "tile";
    const last = dims.at(-1);
    const by = stride / (last?.stride ?? 1);
    // the rows of a matrix are along one axis; threads that would access the same banks get a gap
    const goesOn =
      reader === "threads"
        ? w.kind !== "thread" || (dims.length === 1 && by % (2 * unit) !== 0)
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
 * Dims in the given order. Rows that are read at the same time are an odd number of vectors (of `unit`
 * elements) apart, so that they are in different banks, or without gaps and swizzled, if rows are long enough
 * and a power of two.
 */
function layOut(
  dims: readonly TileDim[],
  order: readonly number[],
  unit: number,
  how: RowSpacing,
): Omit<TileLayout, "vector"> {
  const row = order.flatMap((i) => dims[i] ?? [])[0];
  const swizzle = dims.length > 1 && row !== undefined ? how.swizzle(row.size) : undefined;
  const pitch: number[] = [];
  let size = 1;
  for (const [at, i] of order.entries()) {
    const dim = dims[i]!;
    const isOdd = swizzle === undefined && (dim.apart || how.reader === "threads");
    if (at > 0) size = (Math.ceil(size / unit) | (isOdd ? 1 : 0)) * unit;
    pitch[i] = size;
    size *= dim.size;
  }
  const pitches = new Map(dims.flatMap((d, i) => [...d.walks].map(([w, by]) => [w, by * pitch[i]!])));
  const offset = sum([...pitches].map(([w, p]) => Math.max(0, -p) * (w.size - 1)));
  const placed = dims.map((d, i) => ({ size: d.size, stride: d.stride, pitch: pitch[i]! }));
  const loads = countLoads(pitches, offset, unit);
  return { dims: placed, size: Math.ceil(size / unit) * unit, swizzle, pitches, offset, loads };
}
/** Dims without a gap between them, in the buffer and in shared memory, become one: shorter indexes. */
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
/** For rows of this many elements: a column of successive rows is spread over all banks. */
function swizzleOf(row: number, itemsize: number, gpu: SharedFigures): Swizzle | undefined {
  const { vectorBytes, sharedRate } = gpu;
  const bytes = row * itemsize;
  if (bytes < 2 * vectorBytes || !Number.isInteger(Math.log2(bytes))) return undefined;
  const pieces = Math.min(bytes, sharedRate) / vectorBytes;
  return { unit: vectorBytes / itemsize, pieces, every: Math.max(bytes, sharedRate) / itemsize };
}

/** How many loads a thread needs for its lanes, if one loads up to `most` neighbours. */
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

/** The widest vectors, of up to `most` elements, that are contiguous and aligned. */
function vectorOf(row: TileDim, others: readonly number[], most: number): number {
  if (row.stride !== 1) return 1;
  let vector = most;
  while (vector > 1 && (row.size % vector !== 0 || others.some((s) => s % vector !== 0))) vector /= 2;
  return vector;
}
