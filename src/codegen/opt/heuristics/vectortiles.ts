// The tile of results that a CPU keeps in registers while it adds up a sum: how many vectors along one axis
// and how many lanes of others, and whether operands are packed before. All tiles that the registers hold are
// estimated, in cycles. In go the loop nest and the loop body with the most iterations; cpu.ts asks for the
// best tile of an axis.

import { InternalError } from "../../../errors.ts";
import { getOrMake, prod } from "../../../helpers.ts";
import { opCost } from "../../../ops.ts";
import { isProduct, type Load, type Store } from "../../../uop/node.ts";
import type { AccessPattern, LoopBody, LoopNest } from "../../analysis/loopnest.ts";
import { isCollapsible, strideOf } from "../../analysis/strides.ts";
import { lineBytes } from "../arrays.ts";
import { type WordStep, wordSteps } from "../dot.ts";

/** A loop with fewer iterations than this does not pay for packing operands before it. */
const PACK_ITERATIONS = 16;
/** Cycles of a loop's counter and branch in an iteration, and extra cycles of a load. */
const LOOP_CYCLES = 1;
const LOAD_ISSUE = 0.1;
/**
 * A loop that threads share has at least this many iterations, so that their parts have about the same size.
 */
const SHARED_ITERATIONS = 8;

type Access = Load | Store;

/** Operands that are copied before the loop over an output axis (pack.ts). */
export interface Packing {
  /** the axis of that loop */
  readonly axis: number;
  /** all that the sum reads again in every iteration of it */
  readonly loads: ReadonlySet<Access>;
  /** strided lanes are copied to be contiguous; that pays if the loops of the sum can then be collapsed */
  readonly gathers: boolean;
}
/** A way to compute a tile of results, and what it costs. */
interface Best {
  readonly tile: VectorTile;
  readonly packing: Packing | undefined;
  readonly cost: number;
}
/** Lanes of each axis; for the axis of the vectors, how many vectors. */
type VectorTile = ReadonlyMap<number, number>;

/** Lanes of an axis worth trying. */
const AMOUNTS = [1, 2, 3, 4, 5, 6, 7, 8] as const;
/** The bytes of an element, in the type that it is computed in. */
const itemsizeOf = (u: Access): number => (u.op === "LOAD" ? u : u.value).dtype.itemsize;
const vectorsIn = (tile: VectorTile): number => prod([...tile.values()]);

export class VectorTiles {
  readonly #k: LoopNest;
  readonly #hot: LoopBody;
  readonly #words: readonly WordStep[];
  /** operands of up to this many bytes stay in the first cache anyway */
  readonly #near: number;
  /** by the axis of the vectors: what could be packed, and the best tile */
  readonly #packings = new Map<number, Packing | undefined>();
  readonly #bests = new Map<number, Best>();
  readonly #waits = new Map<Access, number>();

  /** `hot`: the loop body that the tiles are for */
  constructor(kernel: LoopNest, hot: LoopBody) {
    this.#k = kernel;
    this.#hot = hot;
    this.#near = kernel.target.core.l1Bytes / 2;
    this.#words = hot.reduce === undefined ? [] : wordSteps(hot.reduce.body);
  }

  /**
   * The tile with the fewest cycles for each vector of results, and whether its operands are packed before.
   */
  best(wide: number): Best {
    return getOrMake(this.#bests, wide, () => this.#findBest(wide));
  }
  #findBest(wide: number): Best {
    const others = [...this.#hot.axes].filter((id) => id !== wide && this.#k.isOutput(id));
    // a load that is invariant along an axis is what a tile of that axis saves
    const reused = others.filter((id) =>
      this.#hot.memory.some((u) => this.#k.pattern(u, id) === "invariant"),
    );
    // no operand is reused: each vector takes registers for its sum, its operands and its intermediate values
    const most =
      reused.length > 0 || this.#k.isOutput(wide)
        ? Infinity
        : (this.#k.target.simd?.registers ?? 1) / (1 + this.#hot.memory.length + this.#hot.weight);
    const tiles = this.#tiles(wide, reused).filter((t) => vectorsIn(t) <= Math.max(1, most));
    const epilogue = this.#epilogueCost(wide);
    let best: Best | undefined;
    const consider = (tile: VectorTile, packing: Packing | undefined): void => {
      const cost = epilogue + this.#cost(tile, wide, packing);
      if (best === undefined || cost < best.cost - 1e-9) best = { tile, packing, cost };
    };
    for (const tile of tiles) consider(tile, undefined);
    const found = this.packing(wide);
    if (found !== undefined) {
      // the largest tiles first: long runs are copied faster than short ones
      for (const tile of tiles.toReversed())
        if (this.packedBytes(tile, wide, found) <= this.#k.target.sharedMax) consider(tile, found);
    }
    if (best === undefined) throw new InternalError(`axis ${wide} has no tile`);
    return best;
  }
  /**
   * The cost of what comes after a sum, per iteration of it: lanes that are added up, or stored one by one.
   */
  #epilogueCost(wide: number): number {
    const width = this.#k.widthOf(wide);
    const sums = this.#hot.reduce?.ranges.map((r) => this.#k.size(r.axis.id)) ?? [];
    if (!this.#k.isOutput(wide)) return (2 * width * width) / prod(sums);
    const [results] = this.#k.bodies;
    const apart = results.memory.filter((u) => this.#k.pattern(u, wide) === "strided");
    return (2 * width * apart.length) / prod(sums);
  }
  /** All tiles that the registers hold: vectors along the wide axis, and lanes of at most two other axes. */
  #tiles(wide: number, others: readonly number[]): VectorTile[] {
    const most = this.#k.target.simd?.accumulators ?? 1;
    const width = this.#k.widthOf(wide);
    const vectors = (t: VectorTile): number => t.get(wide) ?? 1;
    const vectorCounts = AMOUNTS.filter((n) => n <= most && this.#k.fits(wide, n * width));
    let tiles: { tile: VectorTile; size: number }[] = vectorCounts.map((n) => ({
      tile: new Map([[wide, n]]),
      size: n,
    }));
    for (const id of others) {
      const amounts = AMOUNTS.filter((n) => n > 1 && (this.#k.divides(id, n) || this.#k.fitsUnknown(id, n)));
      const wider = tiles.flatMap(({ tile, size }) =>
        tile.size === 3
          ? []
          : amounts
              .filter((n) => n * size <= most)
              .map((n) => ({ tile: new Map(tile).set(id, n), size: n * size })),
      );
      tiles = [...tiles, ...wider];
    }
    // of tiles that cost the same the first is taken: the one with the fewest vectors
    return tiles.map((t) => t.tile).sort((a, b) => vectors(a) - vectors(b));
  }
  /**
   * Cycles for one vector of results in an iteration: arithmetic, loads or the latency of a sum, whichever is
   * longest.
   */
  #cost(tile: VectorTile, wide: number, packing: Packing | undefined): number {
    const { simd } = this.#k.target;
    if (simd === undefined) return 0;
    const { broadcastLoads, laneLoads } = simd;
    const width = this.#k.widthOf(wide);
    const accumulators = vectorsIn(tile);
    let loads = 0;
    let waits = 0;
    for (const u of this.#hot.memory) {
      let n = 1;
      const isPacked = packing?.loads.has(u) === true;
      for (const [id, lanes] of tile) {
        const pattern = this.patternIn(u, id, packing);
        if (pattern === "invariant") n *= id === wide ? broadcastLoads : 1;
        else n *= id === wide && pattern === "strided" ? laneLoads * width * lanes : lanes;
      }
      loads += n;
      if (packing !== undefined && isPacked) {
        // an operand is read and written once for all iterations of the loop, element by element where it is
        // strided
        const each = this.#k.pattern(u, wide) === "strided" ? 2 * width : 2;
        waits += (each * n * (tile.get(packing.axis) ?? 1)) / this.#k.size(packing.axis);
      } else waits += this.wait(u);
    }
    const sum = this.#hot.reduce;
    const isSumOfProducts = sum !== undefined && isProduct(sum.body);
    const fused = isSumOfProducts && simd.fuses(sum.dtype.vec(width));
    const alus = accumulators * (this.#hot.weight + (fused ? 0 : 1)) + this.#wordCost(tile, packing);
    const waste = this.#k.waste(wide, (tile.get(wide) ?? 1) * width);
    const busy = Math.max(alus / simd.aluPerCycle, loads / simd.loadsPerCycle, simd.latency);
    return (waste * (busy + LOAD_ISSUE * loads + LOOP_CYCLES + waits)) / accumulators;
  }

  /** Operations that make words (dot.ts): once for each lane of the axes that they depend on. */
  #wordCost(tile: VectorTile, packing: Packing | undefined): number {
    let cost = 0;
    for (const { step, loads } of this.#words) {
      if (packing !== undefined && loads.every((u) => packing.loads.has(u))) continue;
      let n = opCost(step.fn);
      for (const [id, lanes] of tile) if (this.#k.depends(step, id)) n *= lanes;
      cost += n;
    }
    return cost;
  }

  // ---- packing ----

  patternIn(u: Access, id: number, packing: Packing | undefined): AccessPattern {
    const pattern = this.#k.pattern(u, id);
    return pattern === "strided" && packing?.gathers && packing.loads.has(u) ? "unit" : pattern;
  }
  /** Cycles that an iteration waits for an operand with a long stride, or one that nested loops walk. */
  wait(u: Access): number {
    return getOrMake(this.#waits, u, () => this.#findWait(u));
  }
  #findWait(u: Access): number {
    const { core, simd } = this.#k.target;
    const loops = this.#hot.reduce?.ranges ?? [];
    const innermost = loops.at(-1);
    if (innermost === undefined) return 0;
    const stride = strideOf(u.index, innermost);
    const isFar = Math.abs(stride ?? 0) * itemsizeOf(u) >= core.longStride;
    const nested = loops.filter((r) => this.#k.depends(u, r.axis.id)).length > 1;
    if (this.#k.bytes(u) <= this.#near) return 0;
    return isFar ? core.missCycles : nested ? (simd?.nesting ?? 0) : 0;
  }
  /**
   * The longest loop over results along which operands with vectors of the axis are invariant. The kernel has
   * one sum only: packing interchanges loops, and another sum could be computed again in every iteration.
   */
  packing(wide: number): Packing | undefined {
    if (!this.#packings.has(wide)) this.#packings.set(wide, this.#findPacking(wide));
    return this.#packings.get(wide);
  }
  #findPacking(wide: number): Packing | undefined {
    const { grid, hasThreads } = this.#k.target;
    const sums = this.#hot.reduce?.ranges.map((r) => r.axis.id) ?? [];
    const isConstant = (id: number): boolean => typeof this.#k.axes[id]?.size === "number";
    if (sums.length === 0 || this.#k.inPlace || grid !== undefined || this.#k.bodies.length !== 2)
      return undefined;
    if (!this.#k.isOutput(wide) || ![...sums, wide].every(isConstant)) return undefined;
    const outputs = [...this.#hot.axes].filter((id) => this.#k.isOutput(id) && isConstant(id));
    // threads share another loop: each of them runs all of the loop after the packing
    const isShared = (id: number): boolean =>
      this.#k.size(id) / (id === wide ? 4 * this.#k.widthOf(id) : 1) >= SHARED_ITERATIONS;
    const found = outputs
      .filter((id) => id !== wide && this.#k.size(id) >= PACK_ITERATIONS)
      .filter((id) => !hasThreads || !this.#k.isLarge() || outputs.some((o) => o !== id && isShared(o)))
      .map((axis): Packing => {
        const loads = this.#hot.memory.filter((u) => {
          const free = this.#k.free(u);
          return !free.has(axis) && sums.some((id) => free.has(id));
        });
        const rest = this.#hot.memory.filter((u) => !loads.includes(u));
        return { axis, loads: new Set(loads), gathers: rest.every((u) => this.#isCollapsible(u)) };
      })
      .filter(({ loads }) =>
        [...loads].some((u) => this.#k.depends(u, wide) && this.#k.bytes(u) > this.#near),
      );
    return found.reduce<Packing | undefined>(
      (a, b) => (a === undefined || this.#k.size(b.axis) > this.#k.size(a.axis) ? b : a),
      undefined,
    );
  }
  /** All loops of the sum go through the operand as a single loop would. */
  #isCollapsible(u: Access): boolean {
    const loops = this.#hot.reduce?.ranges ?? [];
    const sizes = loops.map((r) => this.#k.size(r.axis.id));
    return isCollapsible(u.index, loops, sizes);
  }
  /** The size of the arrays that a tile reads packed operands from. */
  packedBytes(tile: VectorTile, wide: number, { loads }: Packing): number {
    const lanes = (id: number): number => (tile.get(id) ?? 1) * (id === wide ? this.#k.widthOf(id) : 1);
    return [...loads].reduce((bytes, u) => {
      const axes = [...this.#k.free(u)];
      const sizes = axes.map((id) => (this.#k.isOutput(id) ? lanes(id) : this.#k.size(id)));
      // it may be packed as the wider type that it is cast to
      const itemsize = Math.max(itemsizeOf(u), this.#hot.reduce?.dtype.itemsize ?? 0);
      return bytes + lineBytes(prod(sizes) * itemsize);
    }, 0);
  }
}
