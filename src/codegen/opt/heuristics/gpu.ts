// Lists of OptOps for a target with workgroups (Target.gpu): which threads read neighbours in memory, which
// share a reduction, how many results a thread keeps in registers. In goes the kernel lowered without any,
// out come the lists, the best first. What is not a contraction is decided by how far each load and store
// moves along each axis, and by how many workgroups there would be.

import { getOrMake, prod, toposort } from "../../../helpers.ts";
import { smax } from "../../../shape/symbolic.ts";
import { elementOf } from "../../../uop/list.ts";
import type { UOpMap } from "../../../uop/map.ts";
import type { Axis, Load, Range, Reduce, Store, UOp } from "../../../uop/node.ts";
import { type AxisIds, freeAxes, NO_AXES } from "../../analysis/loops.ts";
import { type Strides, strideOf } from "../../analysis/strides.ts";
import type { KernelGraph } from "../../lower/lower.ts";
import type { Gpu, Target } from "../../target.ts";
import { factorOf, type OptOp, type SplitName, splitBy } from "../opts.ts";
import { convolutionLists } from "./convolutions.ts";
import type { Heuristic } from "./index.ts";
import { workgroupThreads } from "./occupancy.ts";
import { productLists, threadLists } from "./products.ts";

/** Iterations of the loop of a full tile that are unrolled. */
const UNROLLED = 4;
/** Results are few if this many times as many would be needed to keep all threads busy. */
const FEW = 16;
/** The fewest threads that share a sum: with fewer, combining their results does not pay. */
const MIN_SHARERS = 4;
/** The fewest terms of each of them. */
const TERMS_PER_SHARER = 4;
/** Elements are of four bytes, as far as registers and vectors are counted. */
const WORD = 4;

/** What the figures of the machine mean for a kernel. */
class Limits {
  /** the usual number of threads of a workgroup */
  readonly threads: number;
  /** threads of all compute units together that hide the latency of memory: half of the most that fit */
  readonly busy: number;
  /**
   * elements of a row that a thread loads before it uses the first, to overlap their latencies: two vectors
   */
  readonly kept: number;
  /** the most that stay in registers at full occupancy */
  readonly maxKept: number;
  /** the side of the tile of results that the registers of a thread hold at half occupancy */
  readonly tile: number;
  /** terms of a sum that take a thread as long as combining the parts of a workgroup */
  readonly share: number;

  constructor(gpu: Gpu) {
    this.threads = workgroupThreads(gpu);
    this.busy = (gpu.computeUnits * gpu.threadsPerUnit) / 2;
    this.kept = (2 * gpu.vectorBytes) / WORD;
    this.maxKept = gpu.registersPerUnit / gpu.threadsPerUnit;
    this.tile = powerBelow(Math.sqrt(2 * this.maxKept));
    const { combine, barrier } = gpu.cycles;
    // a step for each bit of a warp's thread numbers, a barrier, then the same among warps by way of shared
    // memory
    this.share = powerBelow((Math.log2(gpu.warp) + Math.log2(this.threads / gpu.warp)) * combine + barrier);
  }
}

const powerBelow = (n: number): number => 2 ** Math.floor(Math.log2(Math.max(1, n)));
const powerAbove = (n: number): number => 2 ** Math.ceil(Math.log2(Math.max(1, n)));

/** The iterations of all these loops together. */
const iterationsOf = (...axes: readonly Axis[]): number => prod(axes.map((a) => smax(a.size)));

/** Into how many parts, at most `most`, to divide `size`, so that few threads are idle in the last round. */
function evenly(size: number, most: number): number {
  let [best, score] = [1, 0];
  for (let n = 1; n <= most && n <= size; n++) {
    const used = size / (Math.ceil(size / n) * n);
    if (n * used ** 4 > score) [best, score] = [n, n * used ** 4];
  }
  return best;
}
/** The largest divisor of `size` that is at most `most`. */
const divisorUpTo = (size: number, most: number): number =>
  most <= 1 || size % most === 0 ? Math.max(1, most) : divisorUpTo(size, most - 1);
/** Iterations of a loop of this size that are unrolled. */
const unrolled = (size: number): number => [4, 2].find((n) => size % n === 0) ?? 1;

/** Lists are made when they are asked for: most kernels take the first. */
export const gpuLists: Heuristic = function* (lowered, target) {
  const { gpu } = target;
  if (gpu === undefined) return;
  yield* productLists(lowered, target, gpu);
  yield* convolutionLists(lowered, target, gpu);
  yield* threadLists(lowered, target, gpu, false);
  yield new GpuHeuristic(lowered, target, gpu).choose();
};

class GpuHeuristic {
  readonly #target: Target;
  readonly #gpu: Gpu;
  readonly #ranges = new Map<number, Range>();
  readonly #free: UOpMap<AxisIds>;
  readonly #memory: readonly (Load | Store)[];
  readonly #reduces: readonly Reduce[];
  readonly #strides = new Map<number, Strides>();
  /** output axes that everything depends on: they are the grid */
  readonly #outer: readonly Axis[];
  /** output axes that some reduction does not depend on: loops, or threads that share the reduction */
  readonly #inner: readonly Axis[];
  readonly #opts: OptOp[] = [];
  readonly #left = new Map<number, number>();
  readonly #limits: Limits;
  /** of the workgroup so far */
  #threads = 1;

  constructor({ sink, arena, order }: KernelGraph, target: Target, gpu: Gpu) {
    this.#target = target;
    this.#gpu = gpu;
    this.#limits = new Limits(gpu);
    const nodes = arena.nodes(sink);
    this.#free = freeAxes(sink, arena, this.#ranges);
    this.#reduces = nodes.filter((u) => u.op === "REDUCE");
    this.#memory = nodes.filter((u) => u.op === "LOAD" || u.op === "STORE");
    const everywhere = (a: Axis): boolean => this.#reduces.every((r) => this.#depends(r, a));
    this.#outer = order.filter(everywhere);
    this.#inner = order.filter((a) => !everywhere(a));
  }

  choose(): OptOp[] {
    if (this.#reduces.length === 0) this.#elementwise();
    else if (!this.#tiles()) this.#rows();
    return this.#opts;
  }

  // ---- the kernel seen from its axes ----

  #axesOf(u: UOp): readonly Axis[] {
    return [...(this.#free.get(u) ?? NO_AXES)].flatMap((id) => this.#ranges.get(id)?.axis ?? []);
  }
  #depends(u: UOp, a: Axis): boolean {
    return this.#free.get(u)?.has(a.id) === true;
  }
  /** The stride of an access along the axis; 0 where it is invariant, undefined where it varies. */
  #stride({ index }: Load | Store, { id }: Axis): number | undefined {
    const range = this.#ranges.get(id);
    if (range === undefined) return 0;
    return strideOf(
      index,
      range,
      getOrMake(this.#strides, id, (): Strides => new Map()),
    );
  }
  /** Bytes of all accesses that go to the neighbour along this axis, each counted as often as it happens. */
  #near(a: Axis): number {
    return this.#memory
      .filter((u) => this.#stride(u, a) === 1)
      .reduce((n, u) => n + elementOf(u).itemsize * this.#iterations(u), 0);
  }
  #iterations(u: UOp): number {
    return iterationsOf(...this.#axesOf(u));
  }
  /** The axis along which most accesses are contiguous; the last one of equals. */
  #nearest(axes: readonly Axis[]): Axis | undefined {
    let best: Axis | undefined;
    let most = -1;
    for (const a of axes) {
      const near = this.#near(a);
      if (near >= most) [best, most] = [a, near];
    }
    return best;
  }

  // ---- the list ----

  #add(op: SplitName, axis: Axis, factor: number): void {
    if (factor <= 1) return;
    this.#opts.push(splitBy(op, axis.of, factor));
    this.#left.set(axis.id, Math.ceil(this.#rest(axis) / factor));
    if (op === "LOCAL" || op === "GROUPTOP") this.#threads *= factor;
  }
  #rest(a: Axis): number {
    return this.#left.get(a.id) ?? iterationsOf(a);
  }
  #isStatic(a: Axis): boolean {
    return typeof a.size === "number";
  }
  /** The lanes of the axis that one load or store moves; 1 where they are not contiguous. */
  #vector(a: Axis): number {
    const near = this.#memory.filter((u) => this.#stride(u, a) === 1);
    if (!this.#isStatic(a) || near.length === 0) return 1;
    const widest = Math.max(...near.map((u) => elementOf(u).itemsize));
    for (let width = this.#gpu.vectorBytes / widest; width > 1; width /= 2) {
      const aligned = near.filter((u) => this.#isAligned(u, a, width));
      if (iterationsOf(a) % width === 0 && aligned.length > 0) return width;
    }
    return 1;
  }
  /** The access starts at a multiple of `width` whatever the other axes are. */
  #isAligned(u: Load | Store, a: Axis, width: number): boolean {
    const others = this.#axesOf(u.index).filter((x) => x.id !== a.id);
    return others.every((x) => (this.#stride(u, x) ?? 1) % width === 0);
  }

  /** Coalescing: neighbouring threads access neighbouring vectors. */
  #elementwise(): void {
    const near = this.#nearest(this.#outer);
    if (near === undefined) return;
    // one workgroup can do it all at once: vectors would only leave threads idle
    const tiny = iterationsOf(...this.#outer) <= this.#limits.threads;
    const vector = tiny ? 1 : this.#vector(near);
    this.#add("UPCAST", near, vector);
    const other = this.#nearest(this.#outer.filter((a) => a !== near));
    if (other !== undefined && this.#near(other) > 0 && this.#vector(other) > 1) {
      // reads are contiguous along one axis and writes along another: squares, in which both find neighbours
      this.#add("UPCAST", other, this.#vector(other));
      for (const a of [near, other])
        this.#add("LOCAL", a, Math.min(2 ** Math.floor(Math.log2(this.#limits.threads) / 2), this.#rest(a)));
      return;
    }
    this.#fill(near, this.#limits.threads);
    // without vectors: more loads at once
    if (vector === 1 && this.#rest(near) >= this.#gpu.computeUnits * 4) this.#add("UPCAST", near, 4);
  }
  /** Threads along the axis, and along others where it is short. */
  #fill(first: Axis, threads: number): void {
    for (const a of [first, ...this.#outer.toReversed().filter((x) => x !== first)]) {
      this.#add("LOCAL", a, evenly(this.#rest(a), Math.min(threads / this.#threads, this.#limit())));
    }
  }
  #limit(): number {
    return Math.max(...this.#target.localMax);
  }

  /** Operands that are reused along two output axes: a thread computes a tile of results. */
  #tiles(): boolean {
    const hot = this.#reduces.reduce((x, y) => (this.#work(y) > this.#work(x) ? y : x));
    const loads = toposort<UOp>([hot.body], (u) => u.srcs).filter((u) => u.op === "LOAD");
    const reused = (a: Axis): boolean => loads.some((u) => !this.#depends(u, a));
    const axes = this.#outer.filter((a) => reused(a) && this.#isStatic(a) && iterationsOf(a) > 1);
    const near = this.#nearest(axes);
    const other = axes
      .filter(
        (a) =>
          a !== near &&
          loads.some((u) => !this.#depends(u, a) && near !== undefined && this.#depends(u, near)),
      )
      .sort((a, b) => iterationsOf(a) - iterationsOf(b))
      .at(-1);
    if (near === undefined || other === undefined) return false;
    const outs = iterationsOf(...this.#outer);
    const sums = hot.ranges.map((r) => r.axis);
    const terms = iterationsOf(...sums);
    const { threads, tile, share, busy: wanted } = this.#limits;
    const long = terms / share;
    // a sum that is long enough is shared by many threads
    const shared = long >= MIN_SHARERS;
    const most = this.#tileSide(outs, shared ? Math.min(long, threads) : 0);
    const size = iterationsOf(near);
    const few = shared && size <= tile ? size : most;
    const vector = this.#gpu.vectorBytes / WORD;
    const across = [
      divisorUpTo(size, size % vector === 0 ? Math.min(vector, few) : few),
      divisorUpTo(iterationsOf(other), most),
    ] as const;
    this.#add("UPCAST", near, across[0]);
    this.#add("UPCAST", other, across[1]);
    // threads with few results leave registers for more threads
    const crowd = prod(across) <= 2 * tile ? this.#limit() : threads;
    const lacking = wanted / (outs / prod(across));
    const helpers = powerBelow(Math.min(crowd, lacking, lacking >= FEW ? FEW * long : long));
    const room = helpers >= MIN_SHARERS ? Math.max(1, threads / helpers) : threads;
    const side = Math.sqrt(room);
    this.#add("LOCAL", near, evenly(this.#rest(near), side));
    this.#add("LOCAL", other, evenly(this.#rest(other), side));
    this.#fill(near, room);
    const last = sums.at(-1);
    if (last !== undefined && this.#isStatic(last)) {
      const n = iterationsOf(last);
      this.#add("UNROLL", last, prod(across) * n <= UNROLLED * tile * tile && n <= tile ? n : unrolled(n));
    }
    if (helpers >= MIN_SHARERS) this.#together(sums.toReversed(), helpers);
    return true;
  }
  /**
   * The side of the tile of a thread: as large as registers allow, unless there are too few workgroups to
   * keep the machine busy. `sharers`: threads that could share a sum.
   */
  #tileSide(outs: number, sharers: number): number {
    const { computeUnits } = this.#gpu;
    const { threads, tile } = this.#limits;
    const workgroups = outs / (threads * tile * tile);
    // a tile with half the side makes four times as many workgroups, and so do four threads that share a sum
    if (workgroups >= computeUnits || workgroups * sharers * MIN_SHARERS >= computeUnits) return tile;
    return workgroups * 4 >= computeUnits ? tile / 2 : 2;
  }
  /** Threads that share a sum, first along the innermost axes: whole rows, if there is room. */
  #together(sums: readonly Axis[], helpers: number): void {
    let room = helpers;
    for (const a of sums.filter((x) => this.#isStatic(x))) {
      const threads = divisorUpTo(this.#rest(a), Math.floor(room));
      this.#add("GROUPTOP", a, threads);
      room /= threads;
    }
  }
  #work({ body }: Reduce): number {
    return this.#iterations(body);
  }

  /**
   * Reductions whose operands are read once: by threads side by side along the rows, or along the results.
   */
  #rows(): void {
    const outs = iterationsOf(...this.#outer);
    const reduced = [...new Set(this.#reduces.flatMap((r) => r.ranges))].map((r) => r.axis);
    const along = this.#nearest([...reduced, ...this.#inner, ...this.#outer]);
    if (along === undefined) return;
    if (this.#outer.includes(along)) this.#columns(along, reduced, outs);
    else this.#shared(along, reduced, outs);
  }

  /** Threads side by side along the results; where these are few, several share a sum. */
  #columns(along: Axis, reduced: readonly Axis[], outs: number): void {
    const { warp } = this.#gpu;
    const { busy: wanted, threads } = this.#limits;
    const vector = this.#vector(along);
    if (outs / vector >= wanted) this.#add("UPCAST", along, vector);
    const longest = Math.max(...reduced.map((a) => iterationsOf(a)));
    const helpers =
      outs >= wanted ? 1 : Math.min(powerAbove(wanted / outs), warp, powerBelow(longest / TERMS_PER_SHARER));
    this.#fill(along, helpers > 1 ? warp : threads);
    for (const a of reduced) {
      const room = powerBelow(this.#limit() / this.#threads);
      if (this.#isStatic(a)) this.#add("GROUPTOP", a, Math.min(helpers, room, powerBelow(iterationsOf(a))));
      this.#unroll(a);
    }
  }

  /**
   * The threads of a workgroup share a row: what each of them read stays in its registers for the next loop
   * over the row.
   */
  #shared(along: Axis, reduced: readonly Axis[], outs: number): void {
    const size = iterationsOf(along);
    const same = (a: Axis): boolean =>
      iterationsOf(a) === size &&
      this.#isStatic(a) &&
      this.#isStatic(along) &&
      this.#position(a) === this.#position(along);
    const row = [...reduced, ...this.#inner].filter((a) => a === along || same(a));
    const vector = Math.min(...row.map((a) => this.#vector(a)).filter((v) => v > 1), this.#vector(along));
    const vectors = Math.ceil(size / vector);
    const { threads: usual, busy, kept: atOnce, maxKept } = this.#limits;
    const kept = Math.max(1, atOnce / vector);
    const enough = row.length > 1 ? powerAbove(vectors / kept) : Math.min(usual, powerAbove(vectors / kept));
    const many = outs * enough >= busy;
    const threads = Math.min(many ? enough : powerAbove(vectors), this.#limit(), powerBelow(vectors));
    const far = Math.ceil(vectors / threads);
    for (const a of row) {
      const isOutput = a.kind === "output";
      const lanes: SplitName = isOutput ? "UPCAST" : "UNROLL";
      const count = this.#threads;
      if (this.#isStatic(a)) this.#add(lanes, a, vector);
      this.#add(isOutput ? "LOCAL" : "GROUPTOP", a, threads);
      // all axes of the row have the same threads
      this.#threads = count === 1 ? threads : count;
      if (this.#isStatic(a)) this.#add(lanes, a, far * vector <= maxKept ? far : unrolled(far));
    }
    this.#alongside(row, reduced, outs);
  }
  /** Other axes: more threads for a sum where rows are few and short, more rows where a row is short. */
  #alongside(row: readonly Axis[], reduced: readonly Axis[], outs: number): void {
    const { busy: wanted, threads } = this.#limits;
    const others = reduced.filter((x) => !row.includes(x));
    for (const size of new Set(others.map((a) => iterationsOf(a)))) {
      const same = others.filter((a) => iterationsOf(a) === size);
      // several reductions over the same axis must have the same threads, or none
      const alike = row.length === 1 || (this.#inner.length === 0 && same.length === row.length);
      const count = this.#threads;
      const lacking = powerBelow(wanted / (outs * count));
      const helpers = Math.min(lacking, powerBelow(this.#limit() / count), powerBelow(size));
      for (const a of same) {
        if (this.#isStatic(a) && alike) this.#add("GROUPTOP", a, helpers);
        if (row.length > 1 && this.#threads > count) this.#threads = count * helpers;
        this.#unroll(a);
      }
    }
    const last = this.#outer.at(-1);
    if (last !== undefined && this.#threads < threads / 2) this.#fill(last, threads / 2);
  }
  /** A short loop is fully unrolled, a longer one partly: up to the loads that registers hold. */
  #unroll(a: Axis): void {
    const left = this.#rest(a);
    const { threads, kept: atOnce, maxKept } = this.#limits;
    if (!this.#isStatic(a)) return;
    const lanes = this.#opts.filter((o) => o.op === "UNROLL" && this.#sharesLoop(o.axis, a.of));
    const loads = this.#memory.filter((u) => u.op === "LOAD" && this.#depends(u, a)).length;
    const held = loads * prod(lanes.map(factorOf));
    const most = left <= atOnce ? left : unrolled(left);
    // in a small workgroup each thread has more of the registers of the compute unit
    const room = this.#threads <= threads ? 2 * maxKept : maxKept;
    this.#add("UNROLL", a, held <= atOnce ? most : divisorUpTo(most, Math.max(1, Math.floor(room / held))));
  }
  /** The position of an axis in its reduction, or among the axes that are not the grid. */
  #position(a: Axis): number {
    const positions = this.#reduces.map((r) => r.ranges.findIndex((s) => s.axis.id === a.id));
    return positions.find((p) => p >= 0) ?? this.#inner.indexOf(a);
  }
  /** Whether two reduce axes, by the numbers that OptOps have for them, are of one reduction. */
  #sharesLoop(x: number, y: number): boolean {
    const has = (r: Reduce, of: number): boolean => r.ranges.some((s) => s.axis.of === of);
    return this.#reduces.some((r) => has(r, x) && has(r, y));
  }
}
