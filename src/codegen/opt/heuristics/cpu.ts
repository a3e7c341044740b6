// A list of OptOps for loops on a CPU: which axes become vectors, how large the tile of results is that stays
// in registers, what is unrolled, which operands are packed, what threads share. In goes the kernel lowered
// without any OptOps, out comes the list. It is chosen by how each load and store moves along each axis, and
// by the figures of the target's vectors and caches.

import { sum } from "../../../helpers.ts";
import type { LazyOp } from "../../../schedule/lazyop.ts";
import { smax } from "../../../shape/symbolic.ts";
import type { Axis, Load, Store } from "../../../uop/node.ts";
import { type LoopBody, LoopNest } from "../../analysis/loopnest.ts";
import type { KernelGraph } from "../../lower/lower.ts";
import { MAX_RUN } from "../../passes/blocksums.ts";
import { PLAIN_ITERATIONS, type Target } from "../../target.ts";
import { dotted } from "../dot.ts";
import { costOf, KEEP_COST } from "../keep.ts";
import { factorsOf, type OptOp, splitBy } from "../opts.ts";
import type { Heuristic } from "./index.ts";
import { scatterList } from "./scatter.ts";
import { type Packing, VectorTiles } from "./vectortiles.ts";

/** The most vector operations in the innermost loop: more would only be slower to compile. */
const MAX_BODY = 72;
/** A body of this many vector operations hides the overhead of its loop. */
const BUSY_BODY = 16;
/** A reduction of up to this many iterations, all its loops together, is fully unrolled. */
const WHOLE_ITERATIONS = 16;
/**
 * How a matrix is read row by row: lanes at once, rows at once, and parts of the columns for threads to
 * share.
 */
const STREAM = { lanes: [16, 8], rows: [8, 6, 4], parts: [4, 6, 5, 8, 3, 10, 12] } as const;
/** If lowering refuses the list, the second one lets threads share the plain kernel. */
export const cpuLists: Heuristic = (lowered, target, inPlace) => {
  if (lowered.scatter !== undefined) return [scatterList(lowered, lowered.scatter, target)];
  const dots = dotted(lowered, target);
  const plain = listsOf(lowered, target, inPlace);
  return dots === undefined
    ? plain
    : [...listsOf(dots.kernel, target, inPlace).map((list) => [dots.opt, ...list]), ...plain];
};
const listsOf = (lowered: KernelGraph, target: Target, inPlace: boolean): (readonly OptOp[])[] => {
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
  /** the loop body with the most iterations, and the tiles for it */
  readonly #hot: LoopBody;
  readonly #tiles: VectorTiles;
  /** an array of up to this size stays near the core: in the first cache, or at the start of the second */
  readonly #arrayBytes: number;

  constructor(kernel: LoopNest) {
    this.#k = kernel;
    this.#hot = kernel.bodies.reduce((a, b) => (b.iterations > a.iterations ? b : a));
    this.#tiles = new VectorTiles(kernel, this.#hot);
    this.#arrayBytes = 2 * kernel.target.core.l1Bytes;
    this.#room = kernel.target.sharedMax;
  }

  choose(): OptOp[] {
    const { simd } = this.#k.target;
    const opts: OptOp[] = [];
    if (this.#hot.iterations < PLAIN_ITERATIONS) return opts;
    const streamed = simd === undefined ? undefined : this.#streamed();
    if (streamed !== undefined) opts.push(...streamed);
    else if (simd !== undefined) {
      for (const axis of this.#wideAxes()) opts.push(...this.#tile(axis));
      if (opts.length === 0) opts.push(...this.#side());
      opts.push(...this.#unrolled(opts));
    }
    return [...opts, ...this.#staged(opts), ...this.#threads(opts)];
  }

  // ---- vectors ----

  /** Axes along which vectors save most, no two of them in one loop body. */
  #wideAxes(): number[] {
    const gains = [...this.#k.ranges.keys()]
      .map((id) => {
        const width = this.#k.widthOf(id);
        return { id, gain: ((width - 1) * this.#gain(id)) / this.#k.waste(id, width) };
      })
      .filter(({ gain }) => gain > 0);
    const chosen: number[] = [];
    const sorted = gains.sort((a, b) => b.gain - a.gain);
    const inSum = sorted.filter(({ id }) => this.#hot.reduce !== undefined && this.#hot.axes.has(id));
    // packing makes any operand contiguous, at a price: only the whole cost says which axis is best for it
    if (inSum.some(({ id }) => this.#tiles.packing(id) !== undefined)) {
      const cost = new Map(
        inSum.slice(0, 3).map(({ id }) => [id, this.#tiles.best(id).cost / this.#k.widthOf(id)]),
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
  #gain(id: number): number {
    const packing = this.#tiles.packing(id);
    const saved = { invariant: 3, unit: 3, strided: -3 } as const;
    let gain = 0;
    for (const s of this.#k.bodies) {
      if (!s.axes.has(id)) continue;
      const memory = s.memory.reduce((n, u) => n + saved[this.#tiles.patternIn(u, id, packing)], 0);
      const alus = s.alus.filter((u) => this.#k.depends(u, id)).length;
      gain += s.iterations * (memory + alus);
    }
    return gain;
  }

  /** How many vectors along the axis, and how many lanes of other output axes, are computed at once. */
  #tile(wide: number): OptOp[] {
    const width = this.#k.widthOf(wide);
    const isOutput = this.#k.isOutput(wide);
    const op = isOutput ? "UPCAST" : "GROUP";
    const split = (id: number, by: "UPCAST" | "GROUP", n: number): OptOp[] => {
      const axis = this.#k.number(id);
      const rounding: OptOp[] = this.#k.divides(id, n) ? [] : [{ op: "PADTO", axis, multiple: n }];
      return [...rounding, splitBy(by, axis, n)];
    };
    const lanes = (vectors: number): OptOp[] => split(wide, op, width * vectors);
    if (this.#hot.reduce === undefined || !this.#hot.axes.has(wide)) {
      const body = this.#k.bodies
        .filter((s) => s.axes.has(wide))
        .reduce((n, s) => n + s.weight + s.memory.length, 0);
      const several = (n: number): boolean => this.#k.divides(wide, n) || this.#k.fitsUnknown(wide, n);
      const vectors = [4, 2].find((v) => v * body <= MAX_BODY && several(v * width)) ?? 1;
      return lanes(vectors);
    }
    const { tile, packing } = this.#tiles.best(wide);
    const opts = [...tile].flatMap(([id, n]): OptOp[] => (id === wide ? lanes(n) : split(id, "UPCAST", n)));
    if (packing === undefined) return opts;
    this.#packed = packing;
    this.#room -= this.#tiles.packedBytes(tile, wide, packing);
    return [...opts, { op: "PACK", axis: this.#k.number(packing.axis) }];
  }
  /**
   * A row times a matrix that is read from memory once: rows of the matrix one after the other, several at a
   * time, with all sums of a part of the columns in an array. Undefined: it is something else.
   */
  #streamed(): OptOp[] | undefined {
    const { grid, hasThreads } = this.#k.target;
    const outputs = [...this.#hot.axes].filter((id) => this.#k.isOutput(id));
    const [wide] = outputs;
    const sums = this.#hot.reduce?.ranges ?? [];
    const last = sums.at(-1);
    if (outputs.length !== 1 || wide === undefined || sums.length !== 1) return undefined;
    if (this.#hot.reduce === undefined || last === undefined) return undefined;
    if (this.#k.inPlace || grid !== undefined || this.#k.bodies.length !== 2) return undefined;
    const isFar = (u: Load | Store): boolean =>
      this.#k.pattern(u, wide) === "unit" &&
      this.#tiles.wait(u) > 0 &&
      this.#k.bytes(u) > this.#k.target.core.l2Bytes;
    const lanes = STREAM.lanes.find((n) => n % this.#k.widthOf(wide) === 0 && this.#k.divides(wide, n));
    const rows = STREAM.rows.find((n) => this.#k.divides(last.axis.id, n));
    if (!this.#hot.memory.some(isFar) || lanes === undefined || rows === undefined) return undefined;
    const iterations = this.#k.size(wide) / lanes;
    const parts = hasThreads ? STREAM.parts.find((n) => iterations % n === 0 && iterations > n) : 1;
    if (parts === undefined || this.#k.size(last.axis.id) / rows > MAX_RUN) return undefined;
    const bytes = (this.#k.size(wide) / parts) * this.#hot.reduce.dtype.itemsize;
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
   * Lanes where no axis has unit stride everywhere: along an axis with unit stride in a load (the rows of a
   * transposed copy, whose cache lines are then used completely), else along one where results are
   * contiguous, or where all lanes have the same gates.
   */
  #side(): OptOp[] {
    const outputs = this.#k.order.filter((a) => a.kind === "output" && this.#hot.axes.has(a.id));
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

  /** Unrolls the innermost reduction loop if its body is small enough. */
  #unrolled(opts: readonly OptOp[]): OptOp[] {
    // what is packed is read in one long loop
    if (this.#hot.reduce === undefined || this.#packed !== undefined) return [];
    const last = this.#hot.reduce.ranges.at(-1);
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
    const loads = isTiled ? 0 : this.#hot.memory.length;
    const body = ((this.#hot.weight + 1 + loads) * vectors * factorsOf(opts, "UPCAST")) / lanes;
    const left = size / grouped;
    const most = Math.max(1, Math.floor(MAX_BODY / body));
    const whole = this.#whole(opts);
    if (whole !== undefined && factorsOf(whole, "UNROLL") <= Math.min(most, WHOLE_ITERATIONS)) return whole;
    // a tile that keeps the machine busy gains nothing from unrolling, unless the loop disappears
    const busy = body >= BUSY_BODY;
    const some = busy ? undefined : [4, 2].find((n) => n <= most && left % n === 0);
    const factor = left <= Math.min(busy ? 3 : 8, most) ? left : (some ?? 1);
    return factor === 1 ? [] : [{ op: "UNROLL", axis: this.#k.number(id), factor }];
  }

  /**
   * All loops of the reduction fully unrolled: those of a pooling are short. undefined: the size of one is
   * not constant.
   */
  #whole(opts: readonly OptOp[]): OptOp[] | undefined {
    const axes = this.#hot.reduce?.ranges.map((r) => r.axis) ?? [];
    if (!axes.every((a) => typeof a.size === "number")) return undefined;
    return axes.flatMap(({ of: axis, size }) => {
      const taken = factorsOf(opts, "GROUP", [axis]);
      return size === taken ? [] : [{ op: "UNROLL", axis, factor: Number(size) / taken } as const];
    });
  }

  /** KEEP for values that are cheaper to keep than to compute again, as long as they stay in a cache. */
  #staged(opts: readonly OptOp[]): OptOp[] {
    let room = Math.min(this.#arrayBytes, this.#room);
    const kept = new Set<LazyOp>();
    const axes = new Set<number>();
    return this.#k.keepable.flatMap(({ producer, value, elements }): OptOp[] => {
      const own = producer.ranges.map((r) => this.#k.number(r.axis.id));
      // a longer sum is split into blocks, which are other loops
      const isCut = elements / factorsOf(opts, "GROUP", own) > MAX_RUN;
      if (axes.has(producer.axis) || isCut || costOf(value, kept) <= KEEP_COST) return [];
      // KEEP names a loop: all values of it that are worth keeping are kept
      const all = this.#k.keepable.filter((s) => s.producer.axis === producer.axis && !kept.has(s.value));
      const bytes = all.map((s) => {
        const around = this.#k.around(s.producer.site.done.get(s.value));
        const numbers = [...around].map((id) => this.#k.number(id));
        return s.elements * factorsOf(opts, "UPCAST", numbers) * s.value.dtype.itemsize;
      });
      room -= sum(bytes);
      if (room < 0) return [];
      axes.add(producer.axis);
      for (const s of all) kept.add(s.value);
      return [{ op: "KEEP", axis: producer.axis, elements }];
    });
  }

  /** Large kernels: a loop that is long enough for threads to share; it becomes the outermost. */
  #threads(opts: readonly OptOp[]): OptOp[] {
    if (!this.#k.target.hasThreads || !this.#k.isLarge()) return [];
    const left = (a: Axis): number => Math.ceil(smax(a.size) / factorsOf(opts, "UPCAST", [a.of]));
    // a reduction that does not depend on the loop would be computed again by every thread
    const everywhere = (a: Axis): boolean => this.#k.bodies.every((s) => s.axes.has(a.id));
    const outputs = this.#k.order.filter(
      (a) => a.kind === "output" && left(a) > 1 && everywhere(a) && a.id !== this.#packed?.axis,
    );
    const long = outputs.filter((a) => left(a) >= 16);
    const read = (a: Axis): number => this.#readAgain(a, left(a));
    const axis = long.sort((a, b) => read(a) - read(b))[0] ?? outputs.sort((a, b) => left(b) - left(a))[0];
    return axis === undefined ? [] : [{ op: "THREAD", axis: axis.of }];
  }
  /**
   * Bytes from memory if this loop is around all others: what is invariant along it is read again in every
   * iteration.
   */
  #readAgain(a: Axis, iterations: number): number {
    const { l2Bytes } = this.#k.target.core;
    return this.#hot.memory.reduce((sum, u) => {
      const bytes = this.#k.bytes(u);
      return this.#k.depends(u, a.id) || bytes <= l2Bytes ? sum : sum + bytes * iterations;
    }, 0);
  }
}
