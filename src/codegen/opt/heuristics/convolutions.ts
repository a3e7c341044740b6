// Lists of OptOps for sums of products of two buffers, along several axes, on a GPU: convolutions and their gradients. Workgroups
// fetch parts of both through shared memory, and an item keeps a block of results in registers. All blocks and workgroups that
// divide the axes are looked at, and estimated by what measuring taught: how many instructions a product takes, how many
// workgroups a unit has at once, how many of its items are idle. In goes the kernel lowered without OptOps, out come the best lists.

import { prod, range, sum } from "../../../helpers.ts";
import { elementOf } from "../../../uop/list.ts";
import type { Axis, Load, Store } from "../../../uop/node.ts";
import { affine } from "../../analysis/affine.ts";
import { loadsOf, onlyContraction } from "../../analysis/contraction.ts";
import type { Lowered } from "../../lower/lower.ts";
import type { Gpu, Target } from "../../target.ts";
import { type OptOp, type SplitName, splitBy } from "../opts.ts";
import { partOf, type Walk } from "../shared.ts";

/** Products from which on a kernel is worth the trouble, and terms of a sum: few of them are read where they are. */
const MIN_PRODUCTS = 1 << 22;
const MIN_TERMS = 64;
/** Results that an item keeps in registers, and products that are written out. */
const MIN_SUMS = 12;
const MAX_SUMS = 104;
const MAX_BODY = 640;
/** Lanes of one axis: more where they are neighbours in memory. */
const MAX_LANES = 8;
const MAX_ROW = 24;
/** Items of a workgroup. */
const MIN_ITEMS = 64;
const MAX_ITEMS = 256;
/** Registers of a unit, items that it can have at once, and bytes of shared memory. */
const REGISTERS = 65536;
const RESIDENT = 2048;
const SHARED = 220_000;
const STAGES = 2;
/** Cycles of a copy and of a barrier, of a store and of items that meet for a sum; bytes that a unit is brought in a cycle. */
const COPY_CYCLES = 3;
const BARRIER_CYCLES = 40;
const STORE_CYCLES = 16;
const MEETING_CYCLES = 30;
const FETCH_RATE = 48;
/** What is left of the speed of a deep block. */
const DEEP = 0.93;
/** Blocks of results and plans with each of them that are looked at more closely, and lists that are given. */
const BLOCKS = 16;
const PLANS = 8;
const LISTS = 4;
/** With less of the machine at work something else is better: a sum that is shared by many. */
const MIN_SCORE = 0.1;

/** How many workgroups of so many items, each with so many sums, a unit has registers for: it has four parts, each with its own. */
const groupsAtOnce = (items: number, sums: number): number => {
  const registers = Math.ceil((1.5 * sums + 30) / 8) * 8;
  const warps = 4 * Math.min(16, Math.floor(REGISTERS / 128 / registers));
  return Math.max(1, Math.min(32, Math.floor(warps / Math.ceil(items / 32))));
};

/** A factor of the products: how far it moves along each axis, by the axis's id. */
interface Factor {
  readonly strides: ReadonlyMap<number, number>;
  readonly itemsize: number;
}
/** What the kernel computes. */
interface Sum {
  readonly factors: readonly Factor[];
  readonly outputs: readonly Axis[];
  /** the outermost first */
  readonly terms: readonly Axis[];
  /** how far the result moves along each output axis */
  readonly stored: ReadonlyMap<number, number>;
}
interface Walks {
  readonly walks: readonly Walk[];
  readonly items: ReadonlyMap<Axis, Walk>;
  readonly others: readonly number[];
}
interface Fetched {
  /** bytes of shared memory, and of one turn */
  readonly shared: number;
  readonly bytes: number;
  readonly copies: number;
  /** in a turn of the innermost loop, each counted as often as it takes turns */
  readonly loads: number;
}
/** How an axis is cut: lanes, items, and what is left. */
interface Cut {
  readonly axis: Axis;
  readonly lanes: number;
  readonly items: number;
}
interface Plan {
  readonly outputs: readonly Cut[];
  readonly terms: readonly Cut[];
  /** which of the terms has the loop that fetches */
  readonly fetch: number;
}
interface Scored {
  readonly plan: Plan;
  readonly score: number;
}

/** `least`: with fewer products there are none. */
export function convolutionLists(
  lowered: Lowered,
  target: Target,
  gpu: Gpu,
  least: number = MIN_PRODUCTS,
): OptOp[][] {
  const found = gpu.copiesAhead && target.sharedMax > 0 ? sumOf(lowered, least) : undefined;
  if (found === undefined) return [];
  return new Search(found, target, gpu).best().map(({ plan }) => listOf(plan));
}

/** The sum of products that the kernel is all about; undefined where it is about something else. */
function sumOf({ sink, arena, order }: Lowered, least: number): Sum | undefined {
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
  const factors = loads.flatMap((l): Factor[] => {
    const moves = l.gate === undefined ? strides(l) : undefined;
    return moves === undefined ? [] : [{ strides: moves, itemsize: elementOf(l).itemsize }];
  });
  if (stored === undefined || factors.length !== loads.length) return undefined;
  return { factors, outputs: order, terms, stored };
}
/** How far an access moves along each axis, by the axis's id; undefined where its index is not affine in the loops. */
function strides({ index }: Load | Store): ReadonlyMap<number, number> | undefined {
  const moves = new Map<number, number>();
  for (const [term, stride] of affine(index).terms) {
    if (term.op !== "RANGE") return undefined;
    moves.set(term.axis.id, stride);
  }
  return moves;
}
const sizeOf = ({ size }: Axis): number => (typeof size === "number" ? size : 1);
const rest = ({ axis, lanes, items }: Cut): number => sizeOf(axis) / (lanes * items);
const divisors = (n: number, most: number): number[] =>
  range(Math.min(n, most)).flatMap((i) => (n % (i + 1) === 0 ? [i + 1] : []));

/** Every choice of one from each, the product of which is not too large. Of each the smallest comes first. */
function choices(from: readonly (readonly number[])[], most: number): number[][] {
  let all: { chosen: number[]; product: number }[] = [{ chosen: [], product: 1 }];
  for (const next of from) {
    all = all.flatMap(({ chosen, product }) =>
      next.filter((n) => n * product <= most).map((n) => ({ chosen: [...chosen, n], product: n * product })),
    );
  }
  return all.map((c) => c.chosen);
}
/** How many turns the items of a warp take to read a unit each: those in the same bank take turns, the same is read once. */
function turns(order: readonly Cut[], pitches: ReadonlyMap<Axis, number>, unit: number): number {
  const read = new Set<number>();
  for (let lane = 0; lane < 32; lane++) {
    let [left, at] = [lane, 0];
    for (const { axis, items } of order) {
      at += (left % items) * (pitches.get(axis) ?? 0);
      left = Math.floor(left / items);
    }
    if (left === 0) read.add(Math.floor(at / unit));
  }
  const banks = new Array<number>(8).fill(0);
  for (const at of read) banks[at % 8]! += 1;
  return Math.max(...banks);
}

const mostOf = <T extends { readonly score: number }>(all: readonly T[], n: number): T[] =>
  all.toSorted((a, b) => b.score - a.score).slice(0, n);

class Search {
  readonly #sum: Sum;
  readonly #target: Target;
  readonly #gpu: Gpu;

  constructor(found: Sum, target: Target, gpu: Gpu) {
    this.#sum = found;
    this.#target = target;
    this.#gpu = gpu;
  }

  /** The plans that fit, the best first, of those that promise most. */
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

  /** Whether an output axis moves one factor only: then the other is used again along it. */
  #reuses(a: Axis): boolean {
    const [x, y] = this.#sum.factors.map((f) => (f.strides.get(a.id) ?? 0) !== 0);
    return x !== y;
  }
  #isRow(a: Axis): boolean {
    return this.#sum.factors.some((f) => Math.abs(f.strides.get(a.id) ?? 0) === 1);
  }

  /** Which lanes an item has of each axis, the inner three, and which of the terms are written out. */
  #blocks(): Plan[] {
    const inner = this.#sum.outputs.filter((a) => this.#reuses(a)).slice(-3);
    const lanes = this.#sum.outputs.map((a) => {
      const most = this.#isRow(a) ? MAX_ROW : MAX_LANES;
      return inner.includes(a) ? divisors(sizeOf(a), most) : [1];
    });
    const unrolls = this.#unrolls();
    return choices(lanes, MAX_SUMS)
      .filter((n) => prod(n) >= MIN_SUMS)
      .flatMap((n) =>
        unrolls
          .filter((u) => prod(n) * prod(u) <= MAX_BODY)
          .map((u) => ({
            outputs: this.#sum.outputs.map((axis, i) => ({ axis, lanes: n[i] ?? 1, items: 1 })),
            terms: this.#sum.terms.map((axis, i) => ({ axis, lanes: u[i] ?? 1, items: 1 })),
            fetch: 0,
          })),
      );
  }
  /** The last axis of the sum is written out, all of it if it is short; the one before too, if that is little. */
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

  /** The items of each axis, and the loop that fetches. */
  #workgroups(block: Plan): Plan[] {
    const items = block.outputs.map(({ axis, lanes }) =>
      this.#reuses(axis) ? divisors(sizeOf(axis) / lanes, MAX_ITEMS) : [1],
    );
    const all = prod(items.map((n) => n.at(-1) ?? 1));
    const sharers = all < MIN_ITEMS ? this.#sharers(block) : [block.terms];
    const fetching = block.terms.flatMap(({ axis, lanes }, i) => (sizeOf(axis) > lanes ? [i] : []));
    return sharers.flatMap((terms) => {
      const helpers = prod(terms.map((t) => t.items));
      const enough = choices(items, MAX_ITEMS / helpers).filter(
        (n) => prod(n) * helpers >= Math.min(MIN_ITEMS, all),
      );
      const even = enough.filter((n) => (prod(n) * helpers) % 32 === 0);
      return (even.length > 0 ? even : enough).flatMap((n) =>
        fetching
          .filter((i) => rest(terms[i]!) > 1)
          .map((fetch) => ({
            outputs: block.outputs.map((o, i) => ({ ...o, items: n[i] ?? 1 })),
            terms,
            fetch,
          })),
      );
    });
  }
  /** Where results are few, items share the sum along the axis before the last. */
  #sharers(block: Plan): (readonly Cut[])[] {
    const at = block.terms.length - 2;
    const shared = block.terms[at];
    if (shared === undefined) return [block.terms];
    return divisors(sizeOf(shared.axis) / shared.lanes, 32)
      .filter((n) => Number.isInteger(Math.log2(n)))
      .map((n) => block.terms.map((t, i) => (i === at ? { ...t, items: n } : t)));
  }

  // ---- what it takes ----

  /** The ranges of a factor inside the loop that fetches, those of items by their axis, and how far it moves by the others. */
  #walks(factor: Factor, { outputs, terms, fetch }: Plan): Walks {
    const walks: Walk[] = [];
    const items = new Map<Axis, Walk>();
    const others: number[] = [];
    const add = ({ of }: Axis, size: number, stride: number, kind: Walk["kind"]): Walk => {
      const walk = { of, size, stride, kind };
      walks.push(walk);
      return walk;
    };
    const cut = (c: Cut, isInside: boolean): void => {
      const stride = factor.strides.get(c.axis.id) ?? 0;
      if (stride === 0) return;
      if (c.lanes > 1) add(c.axis, c.lanes, stride, "lane");
      if (c.items > 1) items.set(c.axis, add(c.axis, c.items, stride * c.lanes, "thread"));
      const outer = stride * c.lanes * c.items;
      if (isInside && rest(c) > 1) add(c.axis, rest(c), outer, "loop");
      else if (rest(c) > 1) others.push(outer);
    };
    for (const c of outputs) cut(c, false);
    terms.forEach((c, i) => void cut(c, i > fetch));
    return { walks, items, others };
  }

  /** Cycles that a product takes an item, with the loads for it: `loads` counts each as often as it takes turns. */
  #cost(plan: Plan, loads: number): number {
    return 1.08 + (loads + 8) / prod([...plan.outputs, ...plan.terms].map((c) => c.lanes));
  }
  /** What part of the machine small workgroups of such blocks fill. */
  #filled({ outputs }: Plan): number {
    return Math.min(1, prod(outputs.map(rest)) / (MIN_ITEMS * this.#gpu.units));
  }
  /** The cycles before items are chosen. */
  #body(plan: Plan): number {
    const loads = this.#sum.factors.map((f) => {
      const { walks, others } = this.#walks(f, plan);
      const part = walks.length === 0 ? undefined : partOf(walks, others, f.itemsize);
      return part?.loads ?? prod(walks.filter((w) => w.kind === "lane").map((w) => w.size));
    });
    return this.#cost(plan, 2 * sum(loads));
  }

  /** What a turn of the loop fetches, and what it costs to read; undefined where a factor cannot come through shared memory. */
  #fetched(plan: Plan): Fetched | undefined {
    let [shared, bytes, copies] = [0, 0, 0];
    const parts: { loads: number; pitches: Map<Axis, number>; unit: number }[] = [];
    for (const f of this.#sum.factors) {
      const { walks, items, others } = this.#walks(f, plan);
      const step = f.strides.get(plan.terms[plan.fetch]!.axis.id) ?? 0;
      const part =
        step === 0 || walks.length === 0 ? undefined : partOf(walks, [...others, step], f.itemsize);
      if (part === undefined) return undefined;
      const elements = prod(part.dims.map((d) => d.size));
      shared += part.size * f.itemsize * STAGES;
      bytes += elements * f.itemsize;
      copies += elements / part.vector;
      const pitches = new Map([...items].map(([a, w]) => [a, Math.abs(part.pitches.get(w) ?? 0)]));
      parts.push({ loads: part.loads, pitches, unit: 16 / f.itemsize });
    }
    // as linearize has them: those are neighbours that are nearest
    const distance = ({ axis }: Cut): number =>
      Math.min(...parts.map((p) => p.pitches.get(axis) ?? Infinity));
    const order = [...plan.outputs, ...plan.terms]
      .filter((c) => c.items > 1)
      .sort((a, b) => distance(a) - distance(b));
    const loads = sum(parts.map((p) => p.loads * (1 + turns(order, p.pitches, p.unit))));
    return { shared, bytes, copies, loads };
  }

  /** How many warps a unit has at once. */
  #resident(plan: Plan, shared: number): { atOnce: number; warps: number } {
    const items = prod([...plan.outputs, ...plan.terms].map((c) => c.items));
    const warps = Math.ceil(items / 32);
    const sums = prod(plan.outputs.map((c) => c.lanes));
    const room = Math.min(Math.floor(SHARED / (shared + 1024)), Math.floor(RESIDENT / (32 * warps)));
    const each = prod(plan.outputs.map(rest)) / this.#gpu.units;
    return { atOnce: Math.min(groupsAtOnce(items, sums), room, Math.ceil(each)), warps };
  }
  /** What part of a unit is busy, as far as that is a matter of how many warps it has. */
  #occupation(plan: Plan, shared: number): number {
    const { atOnce, warps } = this.#resident(plan, shared);
    const resident = atOnce * warps;
    const each = prod(plan.outputs.map(rest)) / this.#gpu.units;
    const busy = each / Math.ceil(each);
    const full = prod([...plan.outputs, ...plan.terms].map((c) => c.items)) / (32 * warps);
    const even = resident / (4 * Math.ceil(resident / 4));
    // workgroups wait for themselves but not for each other, and warps for what they load if they have little else to do
    const apart = 1 - 0.25 / atOnce;
    const sums = prod(plan.outputs.map((c) => c.lanes));
    const hidden = 1 - 48 / Math.max(96, resident * Math.max(sums, 24));
    return busy * full * (0.5 + 0.5 * even) * apart * hidden;
  }

  /** How much of what a unit could do it does; 0 where the plan does not fit. */
  #score(plan: Plan): number {
    const fetched = this.#fetched(plan);
    if (fetched === undefined || fetched.shared > this.#target.sharedMax) return 0;
    const items = prod([...plan.outputs, ...plan.terms].map((c) => c.items));
    const { atOnce, warps } = this.#resident(plan, fetched.shared);
    if (atOnce === 0) return 0;
    // cycles of a turn, of one of the four schedulers
    const sums = prod(plan.outputs.map((c) => c.lanes));
    const inTurn = sums * prod(plan.terms.map((c, i) => (i > plan.fetch ? rest(c) * c.lanes : c.lanes)));
    const computing = inTurn * this.#cost(plan, fetched.loads);
    const copying = COPY_CYCLES * Math.ceil(fetched.copies / items) + BARRIER_CYCLES;
    const moving = fetched.bytes / FETCH_RATE / (warps / 4);
    const turn = Math.max(computing + copying, moving);
    // cycles of a result when all is added up: those that share it meet, one stores it
    const helpers = prod(plan.terms.map((c) => c.items));
    const terms = prod(this.#sum.terms.map(sizeOf)) / helpers;
    const ending = STORE_CYCLES / this.#storeWidth(plan) + (helpers > 1 ? MEETING_CYCLES : 0);
    const score = this.#occupation(plan, fetched.shared) * (terms / (terms + 4 * ending)) * (inTurn / turn);
    return this.#isDeep(plan) ? DEEP * score : score;
  }
  /** Lanes of three axes, and of the sum only the last is written out: what an item loads does not stay for the next turn. */
  #isDeep({ outputs, terms }: Plan): boolean {
    const before = terms.at(-2);
    return before !== undefined && rest(before) > 1 && outputs.filter((c) => c.lanes > 1).length > 2;
  }
  /** Results that an item stores at once. */
  #storeWidth({ outputs }: Plan): number {
    const lanes = outputs
      .filter((c) => c.lanes > 1)
      .map((c) => ({ ...c, stride: Math.abs(this.#sum.stored.get(c.axis.id) ?? 0) }))
      .sort((a, b) => a.stride - b.stride);
    let run = 1;
    for (const c of lanes) if (c.stride === run) run *= c.lanes;
    return [4, 2].find((n) => run % n === 0) ?? 1;
  }
}

function listOf({ outputs, terms, fetch }: Plan): OptOp[] {
  const list: OptOp[] = [];
  const add = (op: SplitName, { axis }: Cut, factor: number): void => {
    if (factor > 1) list.push(splitBy(op, axis.of, factor));
  };
  for (const c of outputs.toReversed()) add("UPCAST", c, c.lanes);
  for (const c of outputs.toReversed()) add("LOCAL", c, c.items);
  for (const c of terms) add("UNROLL", c, c.lanes);
  for (const c of terms) add("GROUPTOP", c, c.items);
  list.push({ op: "SHARED", axis: terms[fetch]!.axis.of, stages: STAGES });
  return list;
}
