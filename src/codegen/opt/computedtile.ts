// Tiles that are computed as they are copied to shared memory: what a workgroup needs of an expression in an
// iteration of a loop. The expression may be a load that a gate excludes, or whose index is divided (a
// convolution as a product of matrices), a cast, a product with a scale, a mask. It must be a function of one
// position along each axis of the kernel: then each thread computes it at positions of its own. In goes the
// expression, out comes a TILE (linear/tilevalues.ts emits it); undefined: it is not such a function.

import { PtrDType, scalarOf } from "../../dtype.ts";
import { getOrMake, range } from "../../helpers.ts";
import type { UOpArena } from "../../uop/arena.ts";
import type { Tile } from "../../uop/matrix.ts";
import type { Expr, Load, Range, UOp } from "../../uop/node.ts";
import { substitute } from "../../uop/substitute.ts";
import { affine } from "../analysis/affine.ts";
import { type Loading, loadingAlong } from "../analysis/vectorsteps.ts";
import type { KernelGraph } from "../lower/lower.ts";
import {
  type CopyLoop,
  innerRanges,
  layoutInOrder,
  type TileDim,
  type TiledLoad,
  type TileOptions,
  type Walk,
  walkOf,
} from "./shared.ts";

/** Elements that are loaded one by one are stored in words of this many bytes: a bank of shared memory. */
const WORD = 4;

/** The position along an axis of the kernel, as a sum of multiples of ranges. */
interface Position {
  readonly of: number;
  readonly ranges: ReadonlyMap<Range, number>;
  readonly size: number;
  /** the range that moves by one */
  readonly unit: Range;
}

export function computedTile(
  value: Expr,
  copyLoop: CopyLoop,
  { arena }: KernelGraph,
  options: TileOptions,
): TiledLoad | undefined {
  const nodes = arena.nodes(value);
  if (nodes.some((u) => u.op === "REDUCE" || u.op === "STAGE" || u.op === "TILE")) return undefined;
  const loads = nodes.filter((u) => u.op === "LOAD");
  const isInner = innerRanges(copyLoop);
  const ranges = nodes.filter((u) => u.op === "RANGE").filter(isInner);
  const { loop } = copyLoop;
  if (loads.length === 0 || ranges.length === 0 || (loop !== undefined && !nodes.includes(loop)))
    return undefined;
  const positions = positionsIn(value, ranges);
  if (positions === undefined) return undefined;
  const copied = new Copied(value, loads, positions, arena);
  return copied.tile(loop, options);
}

// ---- positions ----

/**
 * The position along each axis; undefined where the expression depends on the ranges of an axis in another
 * way than through one sum of them.
 */
function positionsIn(value: Expr, inner: readonly Range[]): Position[] | undefined {
  const byAxis = new Map<number, Range[]>();
  for (const r of inner) getOrMake(byAxis, r.axis.of, () => []).push(r);
  const found = new Map<number, ReadonlyMap<Range, number>>();
  for (const terms of sumsIn(value)) {
    for (const [of, ranges] of byAxis) {
      const factors = ranges.map((r) => terms.get(r) ?? 0);
      if (factors.every((f) => f === 0)) continue;
      const least = Math.min(...factors.map(Math.abs));
      const unit = factors.find((f) => Math.abs(f) === least) ?? 0;
      if (unit === 0) return undefined;
      const known = getOrMake(found, of, () => new Map(ranges.map((r, i) => [r, factors[i]! / unit])));
      if (ranges.some((r, i) => known.get(r) !== factors[i]! / unit)) return undefined;
    }
  }
  const positions = [...byAxis.keys()].map((of) => positionOf(of, found.get(of)));
  return positions.every((p) => p !== undefined) ? positions : undefined;
}
/** The ranges must count through the position without a gap. */
function positionOf(of: number, ranges: ReadonlyMap<Range, number> | undefined): Position | undefined {
  let size = 1;
  let unit: Range | undefined;
  for (const [r, by] of [...(ranges ?? [])].sort(([, x], [, y]) => x - y)) {
    if (by !== size || typeof r.axis.size !== "number") return undefined;
    unit ??= r;
    size *= r.axis.size;
  }
  return ranges && unit && { of, ranges, size, unit };
}
/** The ranges in every sum of an expression on integers, with their factors; nothing else mentions a range. */
function sumsIn(value: Expr): ReadonlyMap<UOp, number>[] {
  const sums: ReadonlyMap<UOp, number>[] = [];
  const seen = new Set<UOp>();
  const visit = (u: UOp): void => {
    if (seen.has(u)) return;
    seen.add(u);
    const isSum = u.op === "RANGE" || (u.op === "ALU" && u.dtype.isInt && (u.fn === "ADD" || u.fn === "MUL"));
    if (!isSum) {
      for (const s of u.srcs) visit(s);
      return;
    }
    const { terms } = affine(u);
    sums.push(terms);
    for (const t of terms.keys()) {
      if (t === u && t.op !== "RANGE") for (const s of t.srcs) visit(s);
      else if (t.op !== "RANGE") visit(t);
    }
  };
  visit(value);
  return sums;
}

// ---- the tile ----

/** How a tile is copied. */
interface TileCopying {
  /** what lies side by side in shared memory */
  readonly inner: Position;
  /** elements along it that a thread copies at once */
  readonly width: number;
  /** they are also loaded at once */
  readonly isVector: boolean;
}

class Copied {
  readonly #value: Expr;
  readonly #loads: readonly Load[];
  readonly #positions: readonly Position[];
  readonly #arena: UOpArena;

  constructor(value: Expr, loads: readonly Load[], positions: readonly Position[], arena: UOpArena) {
    this.#value = value;
    this.#loads = loads;
    this.#positions = positions;
    this.#arena = arena;
  }

  tile(loop: Range | undefined, { stages, gpu, reader }: TileOptions): TiledLoad | undefined {
    const a = this.#arena;
    const { itemsize } = this.#value.dtype;
    const copying = this.#innermost(gpu.vectorBytes / itemsize);
    const { inner, width } = copying;
    // threads that store parts of one word get in each other's way
    if (width * itemsize < WORD) return undefined;
    const order = [inner, ...this.#positions.filter((p) => p !== inner)];
    const walks = new Map<Range, Walk>();
    const dims = order.map((p): TileDim => {
      const along = [...p.ranges].map(([r, by]) => [walkOf(r, by), by, r] as const);
      for (const [w, , r] of along) walks.set(r, w);
      const apart = along.some(([w]) => w.kind === "thread" || w.kind === "tile");
      return { stride: 0, size: p.size, walks: new Map(along.map(([w, by]) => [w, by])), apart };
    });
    const layout = layoutInOrder(dims, itemsize, gpu, reader);
    const coordinates = order.map((p) => this.#copyRange(p === inner ? p.size / width : p.size, p.of));
    const base = this.#vector(order, coordinates, copying);
    const [buffer] = this.#loads.map((l) => l.buffer);
    if (buffer === undefined) return undefined;
    const { pitches, offset, dims: placed, size, swizzle } = layout;
    const tile: Tile = {
      dims: placed,
      size,
      vector: width,
      swizzle,
      step: 0,
      stages: loop === undefined ? 1 : stages,
      coordinates,
    };
    return {
      tile: a.tile(PtrDType(scalarOf(this.#value.dtype), true), tile, buffer, base, loop),
      pitches: new Map([...walks].map(([r, w]) => [r, pitches.get(w) ?? 0])),
      offset,
    };
  }

  #copyRange(size: number, of: number): Range {
    return this.#arena.range({ kind: "copy", size, of });
  }
  /**
   * The axis along which loads are the widest vectors, else one along which they go to neighbours; and how
   * many elements are copied at once.
   */
  #innermost(most: number): TileCopying {
    const found = this.#positions.map((p) => {
      let widest = most;
      while (widest > 1 && p.size % widest !== 0) widest /= 2;
      const along = this.#copyRange(p.size, p.of);
      const value = this.#at(new Map([[p, along]]));
      return { p, widest, ...loadingAlong(value, along, widest, this.#arena) };
    });
    const rank = ({ width, isNear }: Loading): number => 2 * width + (isNear ? 1 : 0);
    const best = found.reduce((x, y) => (rank(y) > rank(x) ? y : x));
    const word = Math.min(best.widest, Math.max(1, WORD / this.#value.dtype.itemsize));
    const isVector = best.width > 1 && best.width >= word;
    return { inner: best.p, width: Math.max(best.width, word), isVector };
  }
  /** The expression where these axes have these positions. */
  #at(positions: ReadonlyMap<Position, Expr>): Expr {
    const by = new Map<UOp, UOp>();
    for (const [{ ranges, unit }, at] of positions)
      for (const r of ranges.keys()) by.set(r, r === unit ? at : this.#arena.int(0));
    return substitute(this.#value, by, this.#arena);
  }
  /** The elements at these coordinates, of which the first counts vectors. */
  #vector(order: readonly Position[], coordinates: readonly Range[], { width, isVector }: TileCopying): Expr {
    const a = this.#arena;
    const element = (lane: number): Expr =>
      this.#at(
        new Map(
          order.map((p, i): [Position, Expr] => {
            const at: Expr = coordinates[i] ?? a.int(0);
            if (i > 0 || width === 1) return [p, at];
            return [p, a.alu("ADD", a.alu("MUL", at, a.int(width)), a.int(lane))];
          }),
        ),
      );
    const first = element(0);
    if (width === 1) return first;
    if (!isVector || first.op !== "LOAD" || first.otherwise?.op === "LOAD")
      return a.vectorize(range(width).map((lane) => element(lane)));
    const { buffer, index, gate, otherwise } = first;
    const zeros = otherwise?.op === "CONST" ? a.constant(first.dtype.vec(width), otherwise.value) : undefined;
    return a.load(buffer, index, { gate, otherwise: zeros, lanes: width });
  }
}
