// Lists of OptOps for contractions along several axes, on a GPU: convolutions and their gradients. Workgroups
// fetch parts of both factors through shared memory, and a thread keeps a block of results in registers. All
// blocks and workgroups that divide the axes are estimated with the target's figures: the instructions for a
// product, the workgroups that a compute unit has at once, the threads that are idle. In goes the kernel
// lowered without OptOps, out come the best lists.

import { prod, range, sum } from "../../../helpers.ts";
import { elementOf } from "../../../uop/list.ts";
import type { Axis, Load, Store } from "../../../uop/node.ts";
import { affine } from "../../analysis/affine.ts";
import { loadsOf, onlyContraction } from "../../analysis/contraction.ts";
import type { KernelGraph } from "../../lower/lower.ts";
import type { Gpu, Target } from "../../target.ts";
import { type OptOp, type SplitName, splitBy } from "../opts.ts";
import { layoutOf, pays, type Walk } from "../shared.ts";
import { registersOf, workgroupsByRegisters, workgroupsByRoom, workgroupThreads } from "./occupancy.ts";

/** A kernel is worth the search if it keeps the whole machine busy for this many cycles. */
const MIN_CYCLES = 250;
/** The fewest terms of a sum: with fewer, operands are read from global memory. */
const MIN_TERMS = 64;
/**
 * The fewest accumulators of a thread: with fewer, loads dominate. And the part of its registers that must
 * stay free, or values are spilt.
 */
const MIN_ACCUMULATORS = 12;
const FREE_REGISTERS = 0.25;
/** Operands that a thread holds for each of its accumulators, in registers. */
const OPERANDS = 0.5;
/** The most lanes of one axis, and of one along which a factor is contiguous. */
const MAX_LANES = 8;
const MAX_ROW = 24;
/** The fewest warps of a workgroup, so that one can compute while another waits. */
const MIN_WARPS = 2;
/** Pipeline stages: one iteration is computed while the operands of the next are copied. */
const STAGES = 2;
/** The part of its time that a workgroup waits at its barriers; only another workgroup can use it. */
const BARRIER_WAIT = 0.25;
/** The part of its time that a thread spends on rereading operands where a block has lanes of three axes. */
const READ_AGAIN = 0.07;
/**
 * How many blocks of results, and plans for each of them, are estimated more closely, and how many lists are
 * returned.
 */
const BLOCKS = 16;
const PLANS = 8;
const LISTS = 4;
/** Below this score another strategy wins: a sum that many threads share. */
const MIN_SCORE = 0.1;

/** How far a factor of the products moves along each axis, by the axis's id. */
interface StridedFactor {
  readonly strides: ReadonlyMap<number, number>;
  readonly itemsize: number;
}
/** What the kernel computes. */
interface SumOfProducts {
  readonly factors: readonly StridedFactor[];
  readonly outputs: readonly Axis[];
  /** the outermost first */
  readonly terms: readonly Axis[];
  /** how far the result moves along each output axis */
  readonly stored: ReadonlyMap<number, number>;
}
/**
 * The ranges of a factor inside the loop that fetches; those of threads by their axis; its strides along the
 * other loops.
 */
interface Walks {
  readonly walks: readonly Walk[];
  readonly threads: ReadonlyMap<Axis, Walk>;
  readonly others: readonly number[];
}
interface Fetched {
  /** bytes of shared memory, and of one iteration */
  readonly shared: number;
  readonly bytes: number;
  readonly copies: number;
  /** loads in an iteration of the innermost loop, with the repetitions that bank conflicts cause */
  readonly loads: number;
}
/** How an axis is split: lanes, threads, and what is left. */
interface SplitAxis {
  readonly axis: Axis;
  readonly lanes: number;
  readonly threads: number;
}
interface TilePlan {
  readonly outputs: readonly SplitAxis[];
  readonly terms: readonly SplitAxis[];
  /** which of the terms has the loop that fetches */
  readonly fetch: number;
}
interface Scored {
  readonly plan: TilePlan;
  readonly score: number;
}

/** `least`: a sum of fewer products gets no lists. */
export function convolutionLists(
  lowered: KernelGraph,
  target: Target,
  gpu: Gpu,
  least: number = MIN_CYCLES * gpu.computeUnits * gpu.multiplyAddsPerCycle,
): OptOp[][] {
  const found = target.sharedMax > 0 && pays(gpu) ? sumOf(lowered, least) : undefined;
  if (found === undefined) return [];
  return new ConvolutionSearch(found, target, gpu).best().map(({ plan }) => listOf(plan));
}

/** The contraction that the kernel consists of; undefined where it does something else. */
function sumOf({ sink, arena, order }: KernelGraph, least: number): SumOfProducts | undefined {
  const found = onlyContraction(sink, arena);
  const loads = found && loadsOf(found);
  const [store, other] = sink.stores;
  if (found === undefined || loads === undefined || store === undefined || other !== undefined)
    return undefined;
  const terms = found.ranges.map((r) => r.axis);
  const isStatic = [...order, ...terms].every((a) => typeof a.size === "number");
  if (!isStatic || prod([...order, ...terms].map(sizeOf)) < least) return undefined;
  if (prod(terms.map(sizeOf)) < MIN_TERMS) return undefined;
  const stored = strides(store);
  const factors = loads.flatMap((l): StridedFactor[] => {
    const moves = l.gate === undefined ? strides(l) : undefined;
    return moves === undefined ? [] : [{ strides: moves, itemsize: elementOf(l).itemsize }];
  });
  if (stored === undefined || factors.length !== loads.length) return undefined;
  return { factors, outputs: order, terms, stored };
}
/**
 * How far an access moves along each axis, by the axis's id; undefined where its index is not affine in the
 * loops.
 */
function strides({ index }: Load | Store): ReadonlyMap<number, number> | undefined {
  const moves = new Map<number, number>();
  for (const [term, stride] of affine(index).terms) {
    if (term.op !== "RANGE") return undefined;
    moves.set(term.axis.id, stride);
  }
  return moves;
}
const sizeOf = ({ size }: Axis): number => (typeof size === "number" ? size : 1);
const rest = ({ axis, lanes, threads }: SplitAxis): number => sizeOf(axis) / (lanes * threads);
const divisors = (n: number, most: number): number[] =>
  range(Math.min(n, most)).flatMap((i) => (n % (i + 1) === 0 ? [i + 1] : []));

/** Every way to choose one number from each list such that their product is at most `most`. */
function choices(from: readonly (readonly number[])[], most: number): number[][] {
  let all: { chosen: number[]; product: number }[] = [{ chosen: [], product: 1 }];
  for (const next of from) {
    all = all.flatMap(({ chosen, product }) =>
      next.filter((n) => n * product <= most).map((n) => ({ chosen: [...chosen, n], product: n * product })),
    );
  }
  return all.map((c) => c.chosen);
}
/**
 * Accesses to shared memory in which the threads of a warp read a vector each: those to one bank are
 * serialised (a bank conflict), equal addresses are read once.
 */
function bankConflicts(
  order: readonly SplitAxis[],
  pitches: ReadonlyMap<Axis, number>,
  vector: number,
  gpu: Gpu,
): number {
  const read = new Set<number>();
  for (let lane = 0; lane < gpu.warp; lane++) {
    let [left, at] = [lane, 0];
    for (const { axis, threads } of order) {
      at += (left % threads) * (pitches.get(axis) ?? 0);
      left = Math.floor(left / threads);
    }
    if (left === 0) read.add(Math.floor(at / vector));
  }
  const banks = new Array<number>(gpu.sharedRate / gpu.vectorBytes).fill(0);
  for (const at of read) banks[at % banks.length]! += 1;
  return Math.max(...banks);
}

const mostOf = <T extends { readonly score: number }>(all: readonly T[], n: number): T[] =>
  all.toSorted((a, b) => b.score - a.score).slice(0, n);

class ConvolutionSearch {
  readonly #sum: SumOfProducts;
  readonly #target: Target;
  readonly #gpu: Gpu;
  /** limits of the accumulators of a thread and of the threads of a workgroup */
  readonly #maxAccumulators: number;
  readonly #minThreads: number;
  readonly #maxThreads: number;

  constructor(found: SumOfProducts, target: Target, gpu: Gpu) {
    this.#sum = found;
    this.#target = target;
    this.#gpu = gpu;
    const registers = (1 - FREE_REGISTERS) * gpu.registersPerThread;
    this.#maxAccumulators = Math.floor((registers - registersOf(0, 0)) / (1 + OPERANDS));
    this.#minThreads = MIN_WARPS * gpu.warp;
    this.#maxThreads = workgroupThreads(gpu);
  }

  /** The best plans that fit, the best first. */
  best(): Scored[] {
    const blocks = mostOf(
      this.#blocks().map((plan) => ({ plan, score: this.#filled(plan) / this.#body(plan) })),
      BLOCKS,
    );
    const scored = blocks.flatMap(({ plan: block }) => {
      const plans = this.#workgroups(block).map((plan) => ({ plan, score: this.#occupation(plan, 1) }));
      return mostOf(plans, PLANS).map(({ plan }) => ({ plan, score: this.#score(plan) }));
    });
    return mostOf(
      scored.filter((s) => s.score > MIN_SCORE),
      LISTS,
    );
  }

  /** Whether only one factor moves along an output axis: then the other is reused along it. */
  #reuses(a: Axis): boolean {
    const [x, y] = this.#sum.factors.map((f) => (f.strides.get(a.id) ?? 0) !== 0);
    return x !== y;
  }
  #isRow(a: Axis): boolean {
    return this.#sum.factors.some((f) => Math.abs(f.strides.get(a.id) ?? 0) === 1);
  }

  /**
   * The lanes of a thread along each axis, at most the inner three, and which axes of the sum are unrolled.
   */
  #blocks(): TilePlan[] {
    const inner = this.#sum.outputs.filter((a) => this.#reuses(a)).slice(-3);
    const lanes = this.#sum.outputs.map((a) => {
      const most = this.#isRow(a) ? MAX_ROW : MAX_LANES;
      return inner.includes(a) ? divisors(sizeOf(a), most) : [1];
    });
    const unrolls = this.#unrolls();
    return choices(lanes, this.#maxAccumulators)
      .filter((n) => prod(n) >= MIN_ACCUMULATORS)
      .flatMap((n) =>
        unrolls
          .filter((u) => prod(n) * prod(u) <= this.#gpu.loopInstructions)
          .map((u) => ({
            outputs: this.#sum.outputs.map((axis, i) => ({ axis, lanes: n[i] ?? 1, threads: 1 })),
            terms: this.#sum.terms.map((axis, i) => ({ axis, lanes: u[i] ?? 1, threads: 1 })),
            fetch: 0,
          })),
      );
  }
  /**
   * The last axis of the sum is unrolled, fully if it is short, and the one before it too if both are short.
   */
  #unrolls(): number[][] {
    const sizes = this.#sum.terms.map(sizeOf);
    const last = sizes.at(-1) ?? 1;
    const before = sizes.at(-2);
    const some = last <= MAX_LANES ? last : Math.max(...divisors(last, MAX_LANES / 2));
    const inner =
      before !== undefined && before <= 4 && some === last && sizes.length > 2 ? [1, before] : [1];
    return inner.map((n) =>
      sizes.map((_, i) => (i === sizes.length - 1 ? some : i === sizes.length - 2 ? n : 1)),
    );
  }

  /** The threads of each axis, and the loop that fetches. */
  #workgroups(block: TilePlan): TilePlan[] {
    const threads = block.outputs.map(({ axis, lanes }) =>
      this.#reuses(axis) ? divisors(sizeOf(axis) / lanes, this.#maxThreads) : [1],
    );
    const all = prod(threads.map((n) => n.at(-1) ?? 1));
    const sharers = all < this.#minThreads ? this.#sharers(block) : [block.terms];
    const fetching = block.terms.flatMap(({ axis, lanes }, i) => (sizeOf(axis) > lanes ? [i] : []));
    return sharers.flatMap((terms) => {
      const helpers = prod(terms.map((t) => t.threads));
      const enough = choices(threads, this.#maxThreads / helpers).filter(
        (n) => prod(n) * helpers >= Math.min(this.#minThreads, all),
      );
      const even = enough.filter((n) => (prod(n) * helpers) % this.#gpu.warp === 0);
      return (even.length > 0 ? even : enough).flatMap((n) =>
        fetching
          .filter((i) => rest(terms[i]!) > 1)
          .map((fetch) => ({
            outputs: block.outputs.map((o, i) => ({ ...o, threads: n[i] ?? 1 })),
            terms,
            fetch,
          })),
      );
    });
  }
  /** Where results are few, threads share the sum along the axis before the last. */
  #sharers(block: TilePlan): (readonly SplitAxis[])[] {
    const at = block.terms.length - 2;
    const shared = block.terms[at];
    if (shared === undefined) return [block.terms];
    return divisors(sizeOf(shared.axis) / shared.lanes, this.#gpu.warp)
      .filter((n) => Number.isInteger(Math.log2(n)))
      .map((n) => block.terms.map((t, i) => (i === at ? { ...t, threads: n } : t)));
  }

  // ---- what it takes ----

  #walks(factor: StridedFactor, { outputs, terms, fetch }: TilePlan): Walks {
    const walks: Walk[] = [];
    const threads = new Map<Axis, Walk>();
    const others: number[] = [];
    const add = ({ of }: Axis, size: number, stride: number, kind: Walk["kind"]): Walk => {
      const walk = { of, size, stride, kind };
      walks.push(walk);
      return walk;
    };
    const cut = (c: SplitAxis, isInside: boolean): void => {
      const stride = factor.strides.get(c.axis.id) ?? 0;
      if (stride === 0) return;
      if (c.lanes > 1) add(c.axis, c.lanes, stride, "lane");
      if (c.threads > 1) threads.set(c.axis, add(c.axis, c.threads, stride * c.lanes, "thread"));
      const outer = stride * c.lanes * c.threads;
      if (isInside && rest(c) > 1) add(c.axis, rest(c), outer, "loop");
      else if (rest(c) > 1) others.push(outer);
    };
    for (const c of outputs) cut(c, false);
    terms.forEach((c, i) => void cut(c, i > fetch));
    return { walks, threads, others };
  }

  /** Cycles of a thread for one product, with its share of the loads; `loads` includes bank conflicts. */
  #cost(plan: TilePlan, loads: number): number {
    const { multiplyAdd, loop } = this.#gpu.cycles;
    return multiplyAdd + (loads + loop) / prod([...plan.outputs, ...plan.terms].map((c) => c.lanes));
  }
  /** The part of the machine that small workgroups of such blocks fill. */
  #filled({ outputs }: TilePlan): number {
    return Math.min(1, prod(outputs.map(rest)) / (this.#minThreads * this.#gpu.computeUnits));
  }
  /** The cycles of a product before threads are chosen. */
  #body(plan: TilePlan): number {
    const loads = this.#sum.factors.map((f) => {
      const { walks, others } = this.#walks(f, plan);
      const part = walks.length === 0 ? undefined : layoutOf(walks, others, f.itemsize, this.#gpu);
      return part?.loads ?? prod(walks.filter((w) => w.kind === "lane").map((w) => w.size));
    });
    return this.#cost(plan, 2 * sum(loads));
  }

  /**
   * What an iteration of the loop fetches, and what it costs to read; undefined where a factor cannot come
   * through shared memory.
   */
  #fetched(plan: TilePlan): Fetched | undefined {
    let [shared, bytes, copies] = [0, 0, 0];
    const parts: { loads: number; pitches: Map<Axis, number>; vector: number }[] = [];
    for (const f of this.#sum.factors) {
      const { walks, threads, others } = this.#walks(f, plan);
      const step = f.strides.get(plan.terms[plan.fetch]!.axis.id) ?? 0;
      const part =
        step === 0 || walks.length === 0
          ? undefined
          : layoutOf(walks, [...others, step], f.itemsize, this.#gpu);
      if (part === undefined) return undefined;
      const elements = prod(part.dims.map((d) => d.size));
      shared += part.size * f.itemsize * STAGES;
      bytes += elements * f.itemsize;
      copies += elements / part.vector;
      const pitches = new Map([...threads].map(([a, w]) => [a, Math.abs(part.pitches.get(w) ?? 0)]));
      parts.push({ loads: part.loads, pitches, vector: this.#gpu.vectorBytes / f.itemsize });
    }
    // as linearize orders them: those with the smallest stride are neighbours
    const distance = ({ axis }: SplitAxis): number =>
      Math.min(...parts.map((p) => p.pitches.get(axis) ?? Infinity));
    const order = [...plan.outputs, ...plan.terms]
      .filter((c) => c.threads > 1)
      .sort((a, b) => distance(a) - distance(b));
    const loads = sum(parts.map((p) => p.loads * (1 + bankConflicts(order, p.pitches, p.vector, this.#gpu))));
    return { shared, bytes, copies, loads };
  }

  /** The workgroups that a compute unit has at once, and the warps of each. */
  #resident(plan: TilePlan, shared: number): { atOnce: number; warps: number } {
    const threads = prod([...plan.outputs, ...plan.terms].map((c) => c.threads));
    const accumulators = prod(plan.outputs.map((c) => c.lanes));
    const registers = registersOf(accumulators, OPERANDS * accumulators);
    const atOnce = Math.min(
      workgroupsByRegisters(this.#gpu, threads, registers),
      workgroupsByRoom(this.#gpu, threads, shared),
      Math.ceil(prod(plan.outputs.map(rest)) / this.#gpu.computeUnits),
    );
    return { atOnce, warps: Math.ceil(threads / this.#gpu.warp) };
  }
  /** The part of a compute unit that its number of warps keeps busy. */
  #occupation(plan: TilePlan, shared: number): number {
    const { atOnce, warps } = this.#resident(plan, shared);
    const resident = atOnce * warps;
    const { computeUnits, warp, schedulers, sharedLatency } = this.#gpu;
    const each = prod(plan.outputs.map(rest)) / computeUnits;
    const busy = each / Math.ceil(each);
    const full = prod([...plan.outputs, ...plan.terms].map((c) => c.threads)) / (warp * warps);
    const even = resident / (schedulers * Math.ceil(resident / schedulers));
    // a workgroup waits only at its own barriers, and warps wait for loads if they have little else to do
    const apart = 1 - BARRIER_WAIT / atOnce;
    const accumulators = prod(plan.outputs.map((c) => c.lanes));
    const ready = resident * Math.max(accumulators, sharedLatency);
    const hidden = 1 - (schedulers * sharedLatency) / 2 / Math.max(schedulers * sharedLatency, ready);
    return busy * full * (0.5 + 0.5 * even) * apart * hidden;
  }

  /** The part of a compute unit's peak rate that is reached; 0 where the plan does not fit. */
  #score(plan: TilePlan): number {
    const fetched = this.#fetched(plan);
    if (fetched === undefined || fetched.shared > this.#target.sharedMax) return 0;
    const threads = prod([...plan.outputs, ...plan.terms].map((c) => c.threads));
    const { atOnce, warps } = this.#resident(plan, fetched.shared);
    if (atOnce === 0) return 0;
    // cycles of an iteration, of one scheduler
    const { cycles, schedulers, fetchRate } = this.#gpu;
    const accumulators = prod(plan.outputs.map((c) => c.lanes));
    const products =
      accumulators * prod(plan.terms.map((c, i) => (i > plan.fetch ? rest(c) * c.lanes : c.lanes)));
    const computing = products * this.#cost(plan, fetched.loads);
    const copying = cycles.copy * Math.ceil(fetched.copies / threads) + cycles.barrier;
    const moving = fetched.bytes / fetchRate / (warps / schedulers);
    const iteration = Math.max(computing + copying, moving);
    // cycles of a result after the last iteration: threads that share it combine their parts, one stores it
    const helpers = prod(plan.terms.map((c) => c.threads));
    const terms = prod(this.#sum.terms.map(sizeOf)) / helpers;
    const ending = cycles.store / this.#storeWidth(plan) + (helpers > 1 ? cycles.combine : 0);
    const score =
      this.#occupation(plan, fetched.shared) *
      (terms / (terms + schedulers * ending)) *
      (products / iteration);
    return this.#readsAgain(plan) ? (1 - READ_AGAIN) * score : score;
  }
  /**
   * Whether lanes are of three axes and only the last axis of the sum is unrolled: then what a thread loads
   * is not reused in the next iteration.
   */
  #readsAgain({ outputs, terms }: TilePlan): boolean {
    const before = terms.at(-2);
    return before !== undefined && rest(before) > 1 && outputs.filter((c) => c.lanes > 1).length > 2;
  }
  /** Results that a thread stores at once. */
  #storeWidth({ outputs }: TilePlan): number {
    const lanes = outputs
      .filter((c) => c.lanes > 1)
      .map((c) => ({ ...c, stride: Math.abs(this.#sum.stored.get(c.axis.id) ?? 0) }))
      .sort((a, b) => a.stride - b.stride);
    let run = 1;
    for (const c of lanes) if (c.stride === run) run *= c.lanes;
    return [4, 2].find((n) => run % n === 0) ?? 1;
  }
}

function listOf({ outputs, terms, fetch }: TilePlan): OptOp[] {
  const list: OptOp[] = [];
  const add = (op: SplitName, { axis }: SplitAxis, factor: number): void => {
    if (factor > 1) list.push(splitBy(op, axis.of, factor));
  };
  for (const c of outputs.toReversed()) add("UPCAST", c, c.lanes);
  for (const c of outputs.toReversed()) add("LOCAL", c, c.threads);
  for (const c of terms) add("UNROLL", c, c.lanes);
  for (const c of terms) add("GROUPTOP", c, c.threads);
  list.push({ op: "SHARED", axis: terms[fetch]!.axis.of, stages: STAGES });
  return list;
}
