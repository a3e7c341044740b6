// SHARED: what the items of a workgroup read several times in a turn of a reduce comes through shared memory. A load becomes
// one from a TILE, which says what part of the buffer that is and how it lies there; fetch.ts writes the copies. Between
// pickOneHot and blockSums, while axes are still ranges. Rows get a gap, so that items do not meet in one bank.

import { PtrDType } from "../dtype.ts";
import { ArgumentError } from "../errors.ts";
import { toposort } from "../helpers.ts";
import { affine, replace, toIndex } from "./affine.ts";
import { isLane } from "./expand.ts";
import { isItem, type Lowered } from "./lower.ts";
import { type OptOp, showOpts } from "./opts.ts";
import { mapGraph } from "./rewrite.ts";
import { elementOf, type Tile, type UOp, valueType } from "./uops.ts";

/** What one copy moves at most, the least it can, and the gap between rows, in bytes. */
const MAX_COPY = 16;
const MIN_COPY = 4;

/** A load as one from shared memory: the part of the buffer, and how far it is there from one turn of a range to the next. */
export interface Staged {
  readonly tile: UOp;
  readonly pitches: ReadonlyMap<UOp, number>;
}

interface Dim {
  readonly range: UOp;
  readonly size: number;
  readonly stride: number;
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
      const at = toIndex({ terms: found.pitches, k: 0 }, arena);
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

/** The loop that fetches: the innermost of a reduce, which must be of the axis that SHARED names. */
export function loopOf(ranges: readonly UOp[], opt: OptOp, { axes }: Lowered): UOp | undefined {
  const loop = ranges.findLast((r) => axes[r.arg as number]?.kind === "reduce");
  if (loop === undefined || axes[loop.arg as number]?.of === opt.axis) return loop;
  throw new ArgumentError(`${showOpts([opt])}: another axis of this reduce is inside; name the innermost`);
}

/** The part of its buffer that a workgroup reads by this load in a turn of the loop; undefined where that is no box. */
export function stage(
  load: UOp,
  loop: UOp | undefined,
  lowered: Lowered,
  stages: number,
): Staged | undefined {
  const { arena, axes } = lowered;
  const [buffer, index, gate] = load.srcs as [UOp, UOp, UOp?];
  if (gate !== undefined) return undefined;
  const isInner = (u: UOp): boolean => {
    const axis = u.op === "RANGE" ? axes[u.arg] : undefined;
    return axis !== undefined && (isItem(axis) || isLane(axis) || axis.kind === "tile");
  };
  const { terms, k } = affine(index);
  const dims: Dim[] = [];
  const base = new Map<UOp, number>();
  for (const [t, stride] of terms) {
    if (isInner(t)) dims.push({ range: t, size: axes[t.arg as number]?.size as number, stride });
    else if (t !== loop && toposort([t], (x) => x.srcs).some((x) => isInner(x) || x === loop))
      return undefined;
    else if (t !== loop) base.set(t, stride);
  }
  const step = loop === undefined ? 0 : (terms.get(loop) ?? 0);
  if (dims.length === 0 || (loop !== undefined && step === 0)) return undefined;
  dims.sort((a, b) => a.stride - b.stride);
  const apart = dims.every((d, i) => d.stride > 0 && (i === 0 || d.stride >= end(dims[i - 1] as Dim)));
  if (!apart) return undefined;
  const type = elementOf(load);
  const laid = layOut(dims, type.itemsize);
  const others = [...base.values(), step, k, ...laid.dims.slice(1).map((d) => d.stride)];
  const vector = vectorOf(laid.dims[0] as Tile["dims"][number], others, type.itemsize);
  if (vector * type.itemsize < MIN_COPY) return undefined;
  const srcs = [buffer, toIndex({ terms: base, k }, arena), ...(loop === undefined ? [] : [loop])];
  const spec: Tile = { ...laid, vector, step, stages: loop === undefined ? 1 : stages };
  const tile = arena.make("TILE", PtrDType(valueType(load), true), srcs, spec);
  return { tile, pitches: new Map(dims.map((d, i) => [d.range, laid.pitches[i] as number])) };
}
const end = (d: Dim): number => d.stride * d.size;

/** In the order of the buffer, rows with a gap after each; dims that are one in both are merged. */
function layOut(dims: readonly Dim[], itemsize: number): Pick<Tile, "dims" | "size"> & { pitches: number[] } {
  const unit = MAX_COPY / itemsize;
  const pitches: number[] = [];
  const merged: { size: number; stride: number; pitch: number }[] = [];
  let pitch = 1;
  let isRow = true;
  dims.forEach((d, i) => {
    const before = dims[i - 1];
    const goesOn = before !== undefined && d.stride === end(before);
    if (before !== undefined && isRow && !goesOn) {
      pitch = Math.ceil(pitch / unit) * unit + unit;
      isRow = false;
    }
    pitches.push(pitch);
    const last = merged.at(-1);
    if (last !== undefined && goesOn && last.pitch * last.size === pitch) last.size *= d.size;
    else merged.push({ size: d.size, stride: d.stride, pitch });
    pitch *= d.size;
  });
  return { dims: merged, size: Math.ceil(pitch / unit) * unit, pitches };
}

/** As many elements at once as are side by side, and start at a multiple of their number. */
function vectorOf(row: Tile["dims"][number], others: readonly number[], itemsize: number): number {
  if (row.stride !== 1) return 1;
  let vector = MAX_COPY / itemsize;
  while (vector > 1 && (row.size % vector !== 0 || others.some((s) => s % vector !== 0))) vector /= 2;
  return vector;
}
