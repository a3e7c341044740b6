// A list of OptOps for loops on a CPU: which axes become vectors, how large the tile of results is that stays
// in registers, what is unrolled, which operands are packed, what threads share. In goes the kernel lowered
// without any OptOps, out comes the list. It is chosen by how each load and store moves along each axis, and
// by the figures of the target's vectors and caches.

import { getOrMake, prod, sum } from "../../../helpers.ts";
import type { LazyOp } from "../../../schedule/lazyop.ts";
import { smax } from "../../../shape/symbolic.ts";
import type { Axis, Load, Store } from "../../../uop/node.ts";
import { isProduct } from "../../analysis/contraction.ts";
import { type AccessPattern, type LoopBody, LoopNest } from "../../analysis/loopnest.ts";
import { isCollapsible, strideOf } from "../../analysis/strides.ts";
import { MAX_RUN } from "../../passes/blocksums.ts";
import { costOf, STAGE_COST } from "../keep.ts";
import { factorsOf, type OptOp, splitBy } from "../opts.ts";
import type { Heuristic } from "./index.ts";

/** Vector operations in the innermost loop: more would only be slower to compile. */
const MAX_BODY = 72;
/** A body of so many vector operations hides what its loop costs. */
const BUSY_BODY = 16;
/** A reduction of no more iterations than this, all its loops together, is written out whole. */
const WHOLE_ITERATIONS = 16;
/**
 * Kernels with fewer iterations than this stay as they are: nothing is gained, and they are the ones people
 * read.
 */
const MIN_ITERATIONS = 64;
/** A loop with fewer iterations than this does not pay for packing operands before it. */
const PACK_ITERATIONS = 16;
/** Cycles of a loop's counter and branch in an iteration, and of a load beside what it takes to run. */
const LOOP_CYCLES = 1;
const LOAD_ISSUE = 0.1;
/**
 * How a matrix is read row by row: lanes at once, rows at once, and parts of the columns for threads to
 * share.
 */
const STREAM = { lanes: [16, 8], rows: [8, 6, 4], parts: [4, 6, 5, 8, 3, 10, 12] } as const;
/**
 * A loop that threads share has at least so many iterations, so that their parts are of about the same size.
 */
const SHARED_ITERATIONS = 8;

type Access = Load | Store;

/** Operands that are copied before the loop over an output axis (pack.ts). */
interface Packing {
  /** the axis of that loop */
  readonly axis: number;
  /** all that the sum reads again in every iteration of it */
  readonly loads: ReadonlySet<Access>;
  /** lanes that are apart are copied to lie side by side; that pays where the sum is one loop afterwards */
  readonly gathers: boolean;
}
/** A way to compute a tile of results, and what it costs. */
interface Best {
  readonly tile: Tile;
  readonly packing: Packing | undefined;
  readonly cost: number;
}
/** Lanes of each axis; along the axis of the vectors, vectors. */
type Tile = ReadonlyMap<number, number>;

/** Lanes of an axis worth trying. */
const AMOUNTS = [1, 2, 3, 4, 5, 6, 7, 8] as const;
/** Of an element, as it is computed with. */
const itemsizeOf = (u: Access): number => (u.op === "LOAD" ? u : u.value).dtype.itemsize;
const sizeOf = (tile: Tile): number => prod([...tile.values()]);

/** Where lowering refuses the list, threads at least share the kernel as it is. */
export const cpuLists: Heuristic = (lowered, target, inPlace) => {
  const opts = new CpuHeuristic(new LoopNest(lowered, target, inPlace)).choose();
  const threads = opts.filter((o) => o.op === "THREAD");
  return threads.length === opts.length ? [opts] : [opts, threads];
};

class CpuHeuristic {
  readonly #k: LoopNest;
  /** bytes that are left for arrays */
  #room: number;
  /** what was chosen to be packed, if anything */
  #packed: Packing | undefined;
  /** by the axis of the vectors: what could be packed, and the best tile */
  readonly #packings = new Map<number, Packing | undefined>();
  readonly #bests = new Map<number, Best>();
  readonly #waits = new Map<Access, number>();
  /** operands that are not larger stay in the first cache wherever they are */
  readonly #near: number;
  /** an array may be as large to stay in the first cache, or next to it */
  readonly #arrayBytes: number;

  constructor(kernel: LoopNest) {
    this.#k = kernel;
    this.#near = kernel.target.core.l1Bytes / 2;
    this.#arrayBytes = 2 * kernel.target.core.l1Bytes;
    this.#room = kernel.target.sharedMax;
  }

  choose(): OptOp[] {
    const { simd } = this.#k.target;
    const opts: OptOp[] = [];
    const hot = this.#k.bodies.reduce((a, b) => (b.iterations > a.iterations ? b : a));
    if (hot.iterations < MIN_ITERATIONS) return opts;
    const streamed = simd === undefined ? undefined : this.#streamed(hot);
    if (streamed !== undefined) opts.push(...streamed);
    else if (simd !== undefined) {
      for (const axis of this.#wideAxes(hot)) opts.push(...this.#tile(axis, hot));
      if (opts.length === 0) opts.push(...this.#side(hot));
      opts.push(...this.#unrolled(hot, opts));
    }
    return [...opts, ...this.#staged(opts), ...this.#threads(opts, hot)];
  }

  /** Whether there is enough to do for a second thread before it has woken up. */
  #isLarge(): boolean {
    return this.#k.work() >= this.#k.target.core.wakeOperations;
  }

  // ---- vectors ----

  /** Axes along which vectors save most, no two of them in one loop body. */
  #wideAxes(hot: LoopBody): number[] {
    const gains = [...this.#k.ranges.keys()]
      .map((id) => {
        const width = this.#k.widthOf(id);
        return { id, gain: ((width - 1) * this.#gain(id, hot)) / this.#k.waste(id, width) };
      })
      .filter(({ gain }) => gain > 0);
    const chosen: number[] = [];
    const sorted = gains.sort((a, b) => b.gain - a.gain);
    const inSum = sorted.filter(({ id }) => hot.reduce !== undefined && hot.axes.has(id));
    // packing makes neighbours of anything, at a price: only the whole cost says which axis is best for it
    if (inSum.some(({ id }) => this.#packing(id, hot) !== undefined)) {
      const cost = new Map(
        inSum.slice(0, 3).map(({ id }) => [id, this.#best(id, hot).cost / this.#k.widthOf(id)]),
      );
      sorted.sort((a, b) => (cost.get(a.id) ?? Infinity) - (cost.get(b.id) ?? Infinity) || b.gain - a.gain);
    }
    for (const { id } of sorted) {
      const meets = this.#k.bodies.some((s) => s.axes.has(id) && chosen.some((c) => s.axes.has(c)));
      if (!meets) chosen.push(id);
    }
    return chosen;
  }
  /**
   * What vectors save of an iteration: a load or an operation serves all lanes, but a gather costs more than
   * it saves.
   */
  #gain(id: number, hot: LoopBody): number {
    const packing = this.#packing(id, hot);
    const saved = { invariant: 3, unit: 3, strided: -3 } as const;
    let gain = 0;
    for (const s of this.#k.bodies) {
      if (!s.axes.has(id)) continue;
      const memory = s.memory.reduce((n, u) => n + saved[this.#patternIn(u, id, packing)], 0);
      const alus = s.alus.filter((u) => this.#k.depends(u, id)).length;
      gain += s.iterations * (memory + alus);
    }
    return gain;
  }

  /**
   * How many vectors along the axis, and beside them how many lanes of other output axes, are computed at
   * once.
   */
  #tile(wide: number, hot: LoopBody): OptOp[] {
    const width = this.#k.widthOf(wide);
    const isOutput = this.#k.isOutput(wide);
    const op = isOutput ? "UPCAST" : "GROUP";
    const axis = this.#k.number(wide);
    const lanes = (vectors: number): OptOp[] => {
      const n = width * vectors;
      return [
        ...(this.#k.divides(wide, n) ? [] : [{ op: "PADTO", axis, multiple: n } as const]),
        splitBy(op, axis, n),
      ];
    };
    if (hot.reduce === undefined || !hot.axes.has(wide)) {
      const body = this.#k.bodies
        .filter((s) => s.axes.has(wide))
        .reduce((n, s) => n + s.weight + s.memory.length, 0);
      const vectors = [4, 2].find((v) => v * body <= MAX_BODY && this.#k.divides(wide, v * width)) ?? 1;
      return lanes(vectors);
    }
    const { tile, packing } = this.#best(wide, hot);
    const opts = [...tile].flatMap(([id, n]): OptOp[] =>
      id === wide ? lanes(n) : [{ op: "UPCAST", axis: this.#k.number(id), lanes: n }],
    );
    if (packing === undefined) return opts;
    this.#packed = packing;
    this.#room -= this.#packedBytes(tile, wide, packing, hot);
    return [...opts, { op: "PACK", axis: this.#k.number(packing.axis) }];
  }
  /**
   * The tile with the fewest cycles for each vector of results, and whether its operands are packed before.
   */
  #best(wide: number, hot: LoopBody): Best {
    return getOrMake(this.#bests, wide, () => this.#findBest(wide, hot));
  }
  #findBest(wide: number, hot: LoopBody): Best {
    const others = [...hot.axes].filter((id) => id !== wide && this.#k.isOutput(id));
    // a load that is invariant along an axis is what a tile of that axis saves
    const reused = others.filter((id) => hot.memory.some((u) => this.#k.pattern(u, id) === "invariant"));
    // nothing is shared: each vector takes registers for its sum, what it loads and what it makes of it
    const most =
      reused.length > 0 || this.#k.isOutput(wide)
        ? Infinity
        : (this.#k.target.simd?.registers ?? 1) / (1 + hot.memory.length + hot.weight);
    const tiles = this.#tiles(wide, reused).filter((t) => sizeOf(t) <= Math.max(1, most));
    const found = this.#packing(wide, hot);
    const ways = tiles.map((tile) => ({ tile, packing: undefined as Packing | undefined }));
    if (found !== undefined) {
      const fitting = tiles.filter((t) => this.#packedBytes(t, wide, found, hot) <= this.#room);
      // long runs are copied faster than short ones
      ways.push(...fitting.reverse().map((tile) => ({ tile, packing: found })));
    }
    const ends = this.#ends(wide, hot);
    const costs = ways.map((way) => ({ ...way, cost: ends + this.#cost(way.tile, wide, hot, way.packing) }));
    return costs.reduce((a, b) => (b.cost < a.cost - 1e-9 ? b : a));
  }
  /** What comes after a sum, for each of its iterations: lanes that are added up, or stored one by one. */
  #ends(wide: number, hot: LoopBody): number {
    const width = this.#k.widthOf(wide);
    const sums = hot.reduce?.ranges.map((r) => this.#k.size(r.axis.id)) ?? [];
    if (!this.#k.isOutput(wide)) return (2 * width * width) / prod(sums);
    const [results] = this.#k.bodies;
    const apart = results.memory.filter((u) => this.#k.pattern(u, wide) === "strided");
    return (2 * width * apart.length) / prod(sums);
  }
  /** Vectors along the wide axis, and lanes of at most two others, as many as there are registers for. */
  #tiles(wide: number, others: readonly number[]): Tile[] {
    const most = this.#k.target.simd?.accumulators ?? 1;
    const width = this.#k.widthOf(wide);
    const vectors = (t: Tile): number => t.get(wide) ?? 1;
    const vectorCounts = AMOUNTS.filter((n) => n <= most && this.#k.fits(wide, n * width));
    let tiles: { tile: Tile; size: number }[] = vectorCounts.map((n) => ({
      tile: new Map([[wide, n]]),
      size: n,
    }));
    for (const id of others) {
      const amounts = AMOUNTS.filter((n) => n > 1 && this.#k.divides(id, n));
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
  #cost(tile: Tile, wide: number, hot: LoopBody, packing: Packing | undefined): number {
    const { simd } = this.#k.target;
    if (simd === undefined) return 0;
    const { broadcastLoads, gatherLoads } = simd;
    const accumulators = sizeOf(tile);
    let loads = 0;
    let waits = 0;
    for (const u of hot.memory) {
      let n = 1;
      const isPacked = packing?.loads.has(u) === true;
      for (const [id, lanes] of tile) {
        const pattern = this.#patternIn(u, id, packing);
        if (id === wide)
          n *= { invariant: broadcastLoads, unit: lanes, strided: gatherLoads * lanes }[pattern];
        else if (pattern !== "invariant") n *= lanes;
      }
      loads += n;
      if (packing !== undefined && isPacked) {
        // it is read and written, one by one where it is gathered, once for all iterations of the loop
        const each = this.#k.pattern(u, wide) === "strided" ? 2 * this.#k.widthOf(wide) : 2;
        waits += (each * n * (tile.get(packing.axis) ?? 1)) / this.#k.size(packing.axis);
      } else waits += this.#wait(u, hot);
    }
    const sum = hot.reduce;
    const isSumOfProducts = sum !== undefined && isProduct(sum.body);
    const fused = isSumOfProducts && simd.fuses(sum.dtype.vec(this.#k.widthOf(wide)));
    const alus = accumulators * (hot.weight + (fused ? 0 : 1));
    const waste = this.#k.waste(wide, (tile.get(wide) ?? 1) * this.#k.widthOf(wide));
    const busy = Math.max(alus / simd.aluPerCycle, loads / simd.loadsPerCycle, simd.latency);
    return (waste * (busy + LOAD_ISSUE * loads + LOOP_CYCLES + waits)) / accumulators;
  }

  // ---- packing ----

  #patternIn(u: Access, id: number, packing: Packing | undefined): AccessPattern {
    const pattern = this.#k.pattern(u, id);
    return pattern === "strided" && packing?.gathers && packing.loads.has(u) ? "unit" : pattern;
  }
  /**
   * Cycles that an iteration waits for an operand whose next element is far away, or found by nested loops.
   */
  #wait(u: Access, hot: LoopBody): number {
    return getOrMake(this.#waits, u, () => this.#findWait(u, hot));
  }
  #findWait(u: Access, hot: LoopBody): number {
    const { core, simd } = this.#k.target;
    const loops = hot.reduce?.ranges ?? [];
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
  #packing(wide: number, hot: LoopBody): Packing | undefined {
    if (!this.#packings.has(wide)) this.#packings.set(wide, this.#findPacking(wide, hot));
    return this.#packings.get(wide);
  }
  #findPacking(wide: number, hot: LoopBody): Packing | undefined {
    const { hasLocal, hasThreads } = this.#k.target;
    const sums = hot.reduce?.ranges.map((r) => r.axis.id) ?? [];
    const isConstant = (id: number): boolean => typeof this.#k.axes[id]?.size === "number";
    if (sums.length === 0 || this.#k.inPlace || hasLocal || this.#k.bodies.length !== 2) return undefined;
    if (!this.#k.isOutput(wide) || ![...sums, wide].every(isConstant)) return undefined;
    const outputs = [...hot.axes].filter((id) => this.#k.isOutput(id) && isConstant(id));
    // threads share another loop: each of them runs all of the loop after the packing
    const isShared = (id: number): boolean =>
      this.#k.size(id) / (id === wide ? 4 * this.#k.widthOf(id) : 1) >= SHARED_ITERATIONS;
    const found = outputs
      .filter((id) => id !== wide && this.#k.size(id) >= PACK_ITERATIONS)
      .filter((id) => !hasThreads || !this.#isLarge() || outputs.some((o) => o !== id && isShared(o)))
      .map((axis): Packing => {
        const loads = hot.memory.filter((u) => {
          const free = this.#k.free(u);
          return !free.has(axis) && sums.some((id) => free.has(id));
        });
        const rest = hot.memory.filter((u) => !loads.includes(u));
        return { axis, loads: new Set(loads), gathers: rest.every((u) => this.#isCollapsible(u, hot)) };
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
  #isCollapsible(u: Access, hot: LoopBody): boolean {
    const loops = hot.reduce?.ranges ?? [];
    const sizes = loops.map((r) => this.#k.size(r.axis.id));
    return isCollapsible(u.index, loops, sizes);
  }
  /** The size of the arrays that a tile reads packed operands from. */
  #packedBytes(tile: Tile, wide: number, { loads }: Packing, hot: LoopBody): number {
    const lanes = (id: number): number => (tile.get(id) ?? 1) * (id === wide ? this.#k.widthOf(id) : 1);
    return [...loads].reduce((bytes, u) => {
      const axes = [...this.#k.free(u)];
      const sizes = axes.map((id) => (this.#k.isOutput(id) ? lanes(id) : this.#k.size(id)));
      // it may be packed as the wider type that it is cast to
      const itemsize = Math.max(itemsizeOf(u), hot.reduce?.dtype.itemsize ?? 0);
      return bytes + Math.ceil((prod(sizes) * itemsize) / 64) * 64;
    }, 0);
  }
  /**
   * A row times a matrix that is read from memory once: rows of the matrix one after the other, several at a
   * time, with all sums of a part of the columns in an array. Undefined: it is something else.
   */
  #streamed(hot: LoopBody): OptOp[] | undefined {
    const { hasLocal, hasThreads } = this.#k.target;
    const outputs = [...hot.axes].filter((id) => this.#k.isOutput(id));
    const [wide] = outputs;
    const sums = hot.reduce?.ranges ?? [];
    const last = sums.at(-1);
    if (outputs.length !== 1 || wide === undefined || sums.length !== 1) return undefined;
    if (hot.reduce === undefined || last === undefined) return undefined;
    if (this.#k.inPlace || hasLocal || this.#k.bodies.length !== 2) return undefined;
    const isFar = (u: Access): boolean =>
      this.#k.pattern(u, wide) === "unit" &&
      this.#wait(u, hot) > 0 &&
      this.#k.bytes(u) > this.#k.target.core.l2Bytes;
    const lanes = STREAM.lanes.find((n) => n % this.#k.widthOf(wide) === 0 && this.#k.divides(wide, n));
    const rows = STREAM.rows.find((n) => this.#k.divides(last.axis.id, n));
    if (!hot.memory.some(isFar) || lanes === undefined || rows === undefined) return undefined;
    const iterations = this.#k.size(wide) / lanes;
    const parts = hasThreads ? STREAM.parts.find((n) => iterations % n === 0 && iterations > n) : 1;
    if (parts === undefined || this.#k.size(last.axis.id) / rows > MAX_RUN) return undefined;
    const bytes = (this.#k.size(wide) / parts) * hot.reduce.dtype.itemsize;
    if (bytes > Math.min(this.#arrayBytes, this.#room)) return undefined;
    const [axis, sum] = [this.#k.number(wide), this.#k.number(last.axis.id)];
    return [
      { op: "UPCAST", axis, lanes },
      ...(parts === 1 ? [] : [{ op: "LOCAL", axis, threads: iterations / parts } as const]),
      { op: "UNROLL", axis: sum, factor: rows },
      { op: "INTERCHANGE", axis, reduce: sum },
    ];
  }
  /**
   * Lanes where no axis has vectors all through: along one with vectors in a load at least (the rows of a
   * transposed copy, whose cache lines are then used up at once), else along one where results are
   * neighbours, or where all lanes have the same gates.
   */
  #side(hot: LoopBody): OptOp[] {
    const outputs = this.#k.order.filter((a) => a.kind === "output" && hot.axes.has(a.id));
    const memory = this.#k.bodies.flatMap((s) => s.memory);
    const isInvariant = (a: Axis): boolean =>
      memory.every((u) => {
        return u.gate === undefined || !this.#k.depends(u.gate, a.id);
      });
    const hasVectors = (a: Axis, op: "LOAD" | "STORE"): boolean =>
      memory.some((u) => u.op === op && this.#k.pattern(u, a.id) === "unit");
    const invariant = outputs.filter(isInvariant);
    const loads = invariant.find((a) => hasVectors(a, "LOAD") && !hasVectors(a, "STORE"));
    const axis = loads ?? invariant.find((a) => hasVectors(a, "STORE")) ?? invariant[0];
    if (axis === undefined) return [];
    const lanes = (axis === loads ? [8, 4, 2] : [4, 2]).find((n) => this.#k.divides(axis.id, n));
    return lanes === undefined ? [] : [{ op: "UPCAST", axis: axis.of, lanes }];
  }

  /** The innermost reduce loop, where its body is small enough to be written several times. */
  #unrolled(hot: LoopBody, opts: readonly OptOp[]): OptOp[] {
    // what is packed is read in one long loop
    if (hot.reduce === undefined || this.#packed !== undefined) return [];
    const last = hot.reduce.ranges.at(-1);
    if (last === undefined) return [];
    const isTiled = opts.some((o) => o.op === "UPCAST");
    const { id, size, kind } = last.axis;
    if (kind !== "reduce" || typeof size !== "number") return [];
    const grouped = factorsOf(opts, "GROUP", [this.#k.number(id)]);
    // lanes of a vector are one operation; where the sum has the vectors, the tile has none
    const summed = opts.some((o) => o.op === "GROUP");
    const lanes = summed || !isTiled ? 1 : (this.#k.target.simd?.widths[0] ?? 1);
    // a tile shares what it loads, a plain sum loads for each of its vectors
    const vectors = isTiled ? 1 : grouped / this.#k.widthOf(id);
    const loads = isTiled ? 0 : hot.memory.length;
    const body = ((hot.weight + 1 + loads) * vectors * factorsOf(opts, "UPCAST")) / lanes;
    const left = size / grouped;
    const most = Math.max(1, Math.floor(MAX_BODY / body));
    const whole = this.#whole(hot, opts);
    if (whole !== undefined && factorsOf(whole, "UNROLL") <= Math.min(most, WHOLE_ITERATIONS)) return whole;
    // a tile that keeps the machine busy gains nothing from more of the same, but for a loop that is gone
    // altogether
    const busy = body >= BUSY_BODY;
    const some = busy ? undefined : [4, 2].find((n) => n <= most && left % n === 0);
    const factor = left <= Math.min(busy ? 3 : 8, most) ? left : (some ?? 1);
    return factor === 1 ? [] : [{ op: "UNROLL", axis: this.#k.number(id), factor }];
  }

  /**
   * All loops of the reduction written out: those of a pool are short. Undefined: the size of one is not
   * constant.
   */
  #whole(hot: LoopBody, opts: readonly OptOp[]): OptOp[] | undefined {
    const axes = hot.reduce?.ranges.map((r) => r.axis) ?? [];
    if (!axes.every((a) => typeof a.size === "number")) return undefined;
    return axes.flatMap(({ of: axis, size }) => {
      const taken = factorsOf(opts, "GROUP", [axis]);
      return size === taken ? [] : [{ op: "UNROLL", axis, factor: Number(size) / taken } as const];
    });
  }

  /**
   * What is cheaper to keep than to compute again, as long as it stays in a cache: each value in the first
   * loop that has it.
   */
  #staged(opts: readonly OptOp[]): OptOp[] {
    let room = Math.min(this.#arrayBytes, this.#room);
    const kept = new Set<LazyOp>();
    const axes = new Set<number>();
    return this.#k.stages.flatMap(({ home, value, elements }): OptOp[] => {
      const own = home.ranges.map((r) => this.#k.number(r.axis.id));
      // a longer sum is split into blocks, which are other loops
      const isCut = elements / factorsOf(opts, "GROUP", own) > MAX_RUN;
      if (axes.has(home.axis) || isCut || costOf(value, kept) <= STAGE_COST) return [];
      // the op names a loop: all that is worth keeping of it is kept
      const all = this.#k.stages.filter((s) => s.home.axis === home.axis && !kept.has(s.value));
      const bytes = all.map((s) => {
        const around = this.#k.around(s.home.place.done.get(s.value));
        const numbers = [...around].map((id) => this.#k.number(id));
        return s.elements * factorsOf(opts, "UPCAST", numbers) * s.value.dtype.itemsize;
      });
      room -= sum(bytes);
      if (room < 0) return [];
      axes.add(home.axis);
      for (const s of all) kept.add(s.value);
      return [{ op: "KEEP", axis: home.axis, elements }];
    });
  }

  /** A loop that is long enough to be shared, in kernels with enough to do; it becomes the outermost. */
  #threads(opts: readonly OptOp[], hot: LoopBody): OptOp[] {
    if (!this.#k.target.hasThreads || !this.#isLarge()) return [];
    const left = (a: Axis): number => Math.ceil(smax(a.size) / factorsOf(opts, "UPCAST", [a.of]));
    // a reduce that does not depend on the loop would be computed again in every part of it
    const everywhere = (a: Axis): boolean => this.#k.bodies.every((s) => s.axes.has(a.id));
    const outputs = this.#k.order.filter(
      (a) => a.kind === "output" && left(a) > 1 && everywhere(a) && a.id !== this.#packed?.axis,
    );
    const long = outputs.filter((a) => left(a) >= 16);
    const read = (a: Axis): number => this.#readAgain(a, left(a), hot);
    const axis = long.sort((a, b) => read(a) - read(b))[0] ?? outputs.sort((a, b) => left(b) - left(a))[0];
    return axis === undefined ? [] : [{ op: "THREAD", axis: axis.of, least: 1 }];
  }
  /**
   * Bytes from memory if this loop is around all others: what is invariant along it is read again in every
   * iteration.
   */
  #readAgain(a: Axis, iterations: number, hot: LoopBody): number {
    const { l2Bytes } = this.#k.target.core;
    return hot.memory.reduce((sum, u) => {
      const bytes = this.#k.bytes(u);
      return this.#k.depends(u, a.id) || bytes <= l2Bytes ? sum : sum + bytes * iterations;
    }, 0);
  }
}
