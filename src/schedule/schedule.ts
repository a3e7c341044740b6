// LazyBuffers in, ScheduleItems out, in dependency order. `createSchedule` asks fuse.ts which nodes are
// stored, builds the AST of each and orders the items: an assign comes after everything that reads the old
// value. Nothing is allocated or changed here: asking twice gives the same answer.

import { settleImages } from "#schedule/images";
import type { DType, Value } from "../dtype.ts";
import { env } from "../env.ts";
import { InternalError, StaleError, SymbolicError } from "../errors.ts";
import {
  arraysEqual,
  each,
  getOrMake,
  mapEach,
  mapped,
  runSync,
  type Step,
  toposort,
  toposortSteps,
} from "../helpers.ts";
import type { CustomFn, LazyBuffer, Together } from "../lazy/lazybuffer.ts";
import { requireNodes } from "../lazy/placement.ts";
import { type AluOp, isAluOp, isReduceOp, opRecord } from "../ops.ts";
import type { Buffer } from "../runtime/buffer.ts";
import { ShapeTracker } from "../shape/shapetracker.ts";
import type { Sint, Variable } from "../shape/symbolic.ts";
import { markConsumed } from "./consumed.ts";
import { fuseSteps } from "./fuse.ts";
import { groupDrafts } from "./group.ts";
import { ConstBuffer, interned, type LazyOp, lazyOp, loopAst, MemBuffer } from "./lazyop.ts";
import type { Structure } from "./reuse.ts";
import { buffersOf } from "./split.ts";

/** One thing to run: a kernel (its AST starts with STORE), a COPY, an EMPTY or a CUSTOM. */
export interface ScheduleItem {
  readonly ast: readonly LazyOp[];
  readonly outputs: readonly Buffer[];
  readonly inputs: readonly Buffer[];
  readonly varVals: ReadonlyMap<Variable, number>;
  /** the nodes that the outputs belong to; they are marked as realised when the item has run */
  readonly lazies: readonly LazyBuffer[];
  /**
   * the nodes that are read; the old and the new value of an assign share a buffer. Unset on items made by
   * hand
   */
  readonly reads?: readonly LazyBuffer[];
  /** a launch that completes no node: the node that it is a part of */
  readonly partOf?: LazyBuffer;
}

/** The argument of a SCAN: a loop, which knows its launches. */
export interface LaunchList extends Together {
  items(): ScheduleItem[];
  /** the results are computed */
  release(): void;
}

/** An item while it is being ordered. */
export interface Draft {
  readonly item: ScheduleItem & { readonly reads: readonly LazyBuffer[] };
  readonly out: LazyBuffer;
}

/** Between the ASTs of so many kernels scheduling could stop: each has up to some hundred nodes. */
const ITEMS = 2;

/** What makes large schedules fast (tuning.ts), which pages load on demand. */
type ScheduleTuning = typeof import("./tuning.ts");
let tuning: ScheduleTuning | undefined;
const repeatedIn: ScheduleTuning["repeatedIn"] = (nodes) => tuning?.repeatedIn(nodes) ?? [];
/** Schedules of graphs that were seen before (reuse.ts), which pages load on demand. */
let reuse: typeof import("./reuse.ts") | undefined;
export const useTuning = (given: ScheduleTuning): void => {
  tuning = given;
};
export const useReuse = (given: typeof reuse): void => {
  reuse = given;
};
/** Tells a page that a program makes many schedules. */
const MANY_SCHEDULES = 100;
let schedules = 0;
let onMany = (): void => {};
export const onManySchedules = (f: () => void): void => {
  onMany = f;
};

/**
 * What has to run to compute these nodes, in order. Changes nothing; `runSchedule` runs it. No kernel mixes
 * nodes with ids below `since` and newer ones. `maxBuffers`: how many buffers a kernel of a device may have.
 */
export const createSchedule = (
  outs: readonly LazyBuffer[],
  since = 0,
  maxBuffers: (device: string) => number = buffersOf,
): ScheduleItem[] => runSync(scheduleSteps(requireNodes(outs), since, maxBuffers), "createSchedule");
/** The same, and it could stop after every few nodes. Nodes that are built meanwhile have no part in it. */
export function* scheduleSteps(
  outs: readonly LazyBuffer[],
  since = 0,
  maxBuffers: (device: string) => number = buffersOf,
): Step<ScheduleItem[]> {
  if (++schedules === MANY_SCHEDULES) onMany();
  let wanted = outs.flatMap((o) => o.parts.map((p) => p.base)).filter((b) => b.realized === undefined);
  for (;;) {
    settleImages(wanted);
    if (reuse === undefined || maxBuffers !== buffersOf)
      return launched((yield* newSchedule(wanted, since, maxBuffers)).items);
    const structure = yield* reuse.structureSteps(wanted, since);
    if (structure === undefined) return launched((yield* newSchedule(wanted, since, maxBuffers)).items);
    // an assign destroys the old value: pending nodes that read it are computed first
    const late = (yield* isReadElsewhere(structure)) ? yield* lateReaders(structure.nodes) : [];
    if (late.length > 0) {
      wanted = [...late, ...wanted];
      continue;
    }
    const kept = repeatedIn(structure.nodes).filter((b) => !wanted.includes(b));
    if (kept.length > 0) {
      wanted = [...kept, ...wanted];
      continue;
    }
    const known = yield* reuse.knownSchedule(structure);
    if (known !== undefined) return launched(known);
    const { items, isWhole } = yield* newSchedule(wanted, since, maxBuffers);
    if (isWhole) yield* reuse.keepSchedule(structure, items);
    return launched(items);
  }
}

/** `isWhole`: nothing had to be computed besides what was asked for. A loop is one item. */
function* newSchedule(
  asked: readonly LazyBuffer[],
  since: number,
  maxBuffers: (device: string) => number,
): Step<{ items: ScheduleItem[]; isWhole: boolean }> {
  for (let wanted = asked; ; ) {
    const fusion = yield* fuseSteps(wanted, maxBuffers, tuning?.storeScatters);
    const late = yield* lateReaders(fusion.all);
    const kept = repeatedIn(fusion.all).filter((b) => !wanted.includes(b));
    if (late.length > 0 || kept.length > 0) {
      wanted = [...late, ...kept, ...wanted];
      continue;
    }
    yield* each(fusion.all, requireFresh);
    const drafts = new Map<LazyBuffer, Draft>();
    const stored = fusion.all.filter((b) => fusion.realizes.has(b) && b.op !== "CONST");
    yield* each(stored, (b) => drafts.set(b, draft(b, fusion.realizes, drafts)), ITEMS);
    const roots = wanted.map((b) => drafts.get(b)).filter((d) => d !== undefined);
    const { sorted, before, torn } = yield* order(roots, drafts);
    if (torn.length === 0) {
      const isWhole = wanted === asked;
      if (!env.FUSE) return { items: sorted.map((d) => d.item), isWhole };
      const wishes = { wanted: new Set(wanted), alone: fusion.alone, since, maxBuffers };
      const groups = yield* groupDrafts(sorted, before, wishes);
      const items = yield* mapEach(
        groups,
        (g) => {
          const { item } = g.length === 1 ? (g[0] as Draft) : joined(g, fusion.realizes);
          return tuning?.splitReduction(item) ?? item;
        },
        ITEMS,
      );
      const list = items.flat();
      return { items: [...(tuning?.shareOffsets(list) ?? list)], isWhole };
    }
    // one kernel needs a value from before an assign and one from after it: store the old part separately
    const all = new Set(fusion.all);
    const parts = torn
      .flatMap((t) => t.pendingReaders())
      .filter((b) => all.has(b) && !fusion.realizes.has(b));
    if (parts.length === 0) {
      throw new StaleError(
        `schedule: one kernel needs a tensor of shape [${torn[0]?.shape}] both as it was before an assign and ` +
          "after it; realize what reads the old value first",
      );
    }
    wanted = [...parts, ...wanted];
  }
}

function requireFresh(b: LazyBuffer): void {
  if (b.stale !== undefined) throw new StaleError(b.stale);
}
/** These nodes and all unrealised nodes that depend on them, by ways that do not pass `stored`. */
export function* buildOn(nodes: readonly LazyBuffer[], stored?: ReadonlySet<LazyBuffer>): Step<LazyBuffer[]> {
  const found = new Set(nodes);
  // a Set also gives what is added while it is gone through
  yield* each(found, (b) => {
    if (!stored?.has(b)) for (const r of b.pendingReaders()) found.add(r);
  });
  return [...found];
}

/** How many nodes outside of a graph are visited to see that nobody will ask for them. */
const MAX_ELSEWHERE = 1000;

/**
 * Whether the graph assigns, and a node outside of it, which somebody may still ask for, reads one of its
 * values: it may have to be computed first. A quick answer, on the safe side: most nodes have no reader
 * outside, and what was computed on the way to something else, and all that reads it, is garbage.
 */
function* isReadElsewhere({ assigns, nodes, users, places }: Structure): Step<boolean> {
  if (assigns.length === 0) return false;
  const targets = new Set(assigns.map((b) => b.assigned));
  const seen = new Set<LazyBuffer>();
  const todo: LazyBuffer[] = [];
  yield* each(nodes, (b, i) => {
    if (b.srcs === undefined && !targets.has(b)) return;
    if (b.readersKept > (users[i] as number)) for (const r of b.pendingReaders()) todo.push(r);
  });
  for (let b = todo.pop(); b !== undefined; b = todo.pop()) {
    if (places.has(b) || seen.has(b) || b.stale !== undefined) continue;
    if (!b.consumed || seen.size > MAX_ELSEWHERE) return true;
    seen.add(b);
    for (const r of b.pendingReaders()) todo.push(r);
  }
  return false;
}

/** The pending nodes outside of a graph that must be computed before the assigns in it. */
function* lateReaders(graph: readonly LazyBuffer[]): Step<LazyBuffer[]> {
  const assigns = graph.filter((b) => b.op === "ASSIGN" && b.srcs !== undefined);
  if (assigns.length === 0) return [];
  return yield* endsOn(
    assigns.map((b) => b.assigned),
    assigns,
    new Set(graph),
  );
}

/** The pending nodes that depend on these values: they must be computed before the memory is overwritten. */
export const waitingOn = (nodes: readonly LazyBuffer[]): Step<LazyBuffer[]> => endsOn(nodes, [], new Set());
/**
 * Ends of the graph that read `old` values and are not in `planned`. Nodes that also read the new value (one
 * of `assigns` for each old one) are left for later. So are intermediate nodes of something that has been
 * computed: most of these are garbage.
 */
function* endsOn(
  old: readonly LazyBuffer[],
  assigns: readonly LazyBuffer[],
  planned: ReadonlySet<LazyBuffer>,
): Step<LazyBuffer[]> {
  // what reads the result of an assign reads memory: steps of training that wait behind this one do not count
  const stored = new Set(assigns);
  const near = yield* buildOn((yield* mapEach(old, (b) => b.pendingReaders())).flat(), stored);
  if (near.length === 0) return [];
  // one bit per assign: which old values and which new ones a node depends on
  const news = new Map(assigns.map((b, i) => [b, 1n << BigInt(i)]));
  const olds = new Map(old.map((b, i) => [b, 1n << BigInt(i)]));
  const stale = new Set<LazyBuffer>();
  const threatened = new Set<LazyBuffer>();
  const sorted = yield* toposortSteps(near, (x) => (x.srcs ?? []).map((s) => s.base));
  yield* each(sorted, (b) => {
    let [o, n] = [0n, 0n];
    for (const { base } of b.srcs ?? []) {
      o |= olds.get(base) ?? 0n;
      n |= news.get(base) ?? 0n;
      if (stale.has(base)) stale.add(b);
    }
    if (b.stale !== undefined) stale.add(b);
    if ((o & ~n) !== 0n && !stale.has(b)) threatened.add(b);
    if (o !== 0n && !stored.has(b)) olds.set(b, (olds.get(b) ?? 0n) | o);
    if (n !== 0n) news.set(b, (news.get(b) ?? 0n) | n);
  });
  const ends: LazyBuffer[] = [];
  // users first: a node that only garbage reads may be an end itself
  const garbage = new Set<LazyBuffer>();
  yield* each([...threatened].reverse(), (b) => {
    if (planned.has(b)) return;
    const readers = b.pendingReaders().filter((r) => !garbage.has(r));
    if (b.consumed && readers.length === 0) garbage.add(b);
    if (readers.some((r) => threatened.has(r))) return;
    if (!b.consumed || readers.some((r) => !r.consumed && !stale.has(r))) ends.push(b);
  });
  return ends.reverse();
}

/**
 * Sources before users; readers of an old value before the assign to it. `torn`: the assigns for which no
 * such order exists.
 */
function* order(roots: readonly Draft[], drafts: ReadonlyMap<LazyBuffer, Draft>) {
  // a kernel alone depends on none
  if (drafts.size === 1 && roots.length === 1)
    return { sorted: [...roots], before: (): readonly Draft[] => [], torn: [] };
  const readersOf = new Map<LazyBuffer, Draft[]>();
  yield* each(drafts.values(), (d) => {
    for (const r of d.item.reads) getOrMake(readersOf, r, () => []).push(d);
  });
  const oldReaders = (d: Draft): Draft[] =>
    d.out.op === "ASSIGN" ? (readersOf.get(d.out.assigned) ?? []).filter((x) => x !== d) : [];
  const known = new Map<Draft, readonly Draft[]>();
  const before = (d: Draft): readonly Draft[] =>
    getOrMake(known, d, () => {
      const own = d.out.op === "ASSIGN" ? [d.out.assigned] : [];
      const sources = [...own, ...d.item.reads].map((r) => drafts.get(r)).filter((x) => x !== undefined);
      return [...sources, ...oldReaders(d)];
    });
  const sorted = yield* toposortSteps(roots, before);
  const at = new Map(sorted.map((d, i) => [d, i]));
  let cyclic = false;
  yield* each(sorted, (d, i) => {
    cyclic ||= before(d).some((b) => (at.get(b) as number) >= i);
  });
  const torn = cyclic
    ? sorted.filter((d) => oldReaders(d).some((b) => toposort([b], before).includes(d)))
    : [];
  return { sorted, before, torn: torn.map((d) => d.out.assigned) };
}

/** One item for a group. What the members read from each other is computed in the kernel, and also stored. */
const joined = (group: readonly Draft[], realizes: ReadonlySet<LazyBuffer>): Draft =>
  new AstBuilder(
    group.map((d) => d.out),
    realizes,
  ).draft();

/** The item that computes one stored node. */
function draft(
  out: LazyBuffer,
  realizes: ReadonlySet<LazyBuffer>,
  drafts: ReadonlyMap<LazyBuffer, Draft>,
): Draft {
  const srcs = out.sources;
  if (out.op === "SCAN") return loopDraft(out, drafts);
  if (out.op === "COPY" || out.op === "EMPTY" || out.op === "CUSTOM") {
    const arg = out.op === "CUSTOM" ? (out.arg as CustomFn) : undefined;
    const ast = [lazyOp(out.op, [], arg as never, out.dtype, out.shape)];
    const inputs = srcs.map((s) => s.buffer);
    for (const src of srcs) requireFresh(src.base);
    const reads = srcs.map((s) => s.base);
    return { item: { ast, outputs: [out.buffer], inputs, varVals: new Map(), lazies: [out], reads }, out };
  }
  return new AstBuilder([out], realizes).draft();
}

/** The item of a loop, one for all its results. */
function loopDraft(out: LazyBuffer, drafts: ReadonlyMap<LazyBuffer, Draft>): Draft {
  const loop = out.arg as LaunchList;
  const known = loop.results.find((r) => drafts.has(r));
  if (known !== undefined) return drafts.get(known) as Draft;
  const reads = out.sources;
  for (const src of reads) requireFresh(src);
  const item = {
    ast: loopAst(out),
    outputs: loop.results.map((r) => r.buffer),
    inputs: reads.map((s) => s.buffer),
    varVals: new Map(),
    lazies: loop.results,
    reads,
  };
  return { item, out };
}
/** Replaces the item of a loop by its kernels, which run step by step. */
const launched = (items: readonly ScheduleItem[]): ScheduleItem[] =>
  items.flatMap((item) => (item.ast[0]?.op === "SCAN" ? item.ast[0].arg.items() : item));

/** Builds the AST of one kernel. Views are pushed down to the loads as far as possible. */
class AstBuilder {
  readonly #outs: readonly LazyBuffer[];
  readonly #realizes: ReadonlySet<LazyBuffer>;
  readonly #inputs: Buffer[] = [];
  readonly #reads = new Set<LazyBuffer>();
  readonly #varVals = new Map<Variable, number>();
  /** for each node, the first view through which it is seen; most nodes are seen through one */
  readonly #memo = new Map<LazyBuffer, { readonly st: ShapeTracker; readonly op: LazyOp }>();
  /** and all others, by their keys */
  readonly #others = new Map<LazyBuffer, Map<string, LazyOp>>();

  constructor(outs: readonly LazyBuffer[], realizes: ReadonlySet<LazyBuffer>) {
    this.#outs = outs;
    this.#realizes = realizes;
  }

  draft(): Draft {
    const ast = mapped(this.#outs, (out, i) => {
      const st = this.#unbind(out.st);
      const value = this.#see(out, out.st);
      return lazyOp("STORE", [value], new MemBuffer(i, out.dtype, st), out.dtype, st.shape);
    });
    const item = {
      ast: interned(ast),
      outputs: this.#outs.map((out) => out.buffer),
      inputs: this.#inputs,
      varVals: this.#varVals,
      lazies: this.#outs,
      reads: [...this.#reads],
    };
    return { item, out: this.#outs.at(-1) as LazyBuffer };
  }

  /** `lb` seen through `st`: a load, a constant, or computed in the kernel. */
  #see(lb: LazyBuffer, st: ShapeTracker): LazyOp {
    const base = lb._base ?? lb;
    const through = lb === base ? st : lb.st.add(st).simplify();
    const first = this.#memo.get(base);
    if (first === undefined) {
      const op = this.#make(base, through);
      this.#memo.set(base, { st: through, op });
      return op;
    }
    if (first.st === through || first.st.key === through.key) return first.op;
    const others = getOrMake(this.#others, base, () => new Map<string, LazyOp>());
    return getOrMake(others, through.key, () => this.#make(base, through));
  }
  #make(base: LazyBuffer, st: ShapeTracker): LazyOp {
    if (base.op === "CONST") return this.#constant(base.dtype, base.arg as Value, st);
    const stored = this.#realizes.has(base) && !this.#outs.includes(base);
    if (base.realized !== undefined || stored) return this.#load(base, st);
    return this.#compute(base, st);
  }

  #constant(dtype: DType, value: Value, st: ShapeTracker): LazyOp {
    const seen = this.#unbind(st);
    return lazyOp("CONST", [], new ConstBuffer(value, dtype, seen), dtype, seen.shape);
  }
  #load(base: LazyBuffer, st: ShapeTracker): LazyOp {
    requireFresh(base);
    this.#reads.add(base);
    let at = this.#inputs.indexOf(base.buffer);
    if (at < 0) at = this.#inputs.push(base.buffer) - 1;
    const seen = this.#unbind(st);
    const idx = this.#outs.length + at;
    return lazyOp("LOAD", [], new MemBuffer(idx, base.dtype, seen), base.dtype, seen.shape);
  }

  #compute(base: LazyBuffer, st: ShapeTracker): LazyOp {
    const { op, dtype } = base;
    const srcs = base.sources;
    const first = srcs[0] as LazyBuffer;
    if (op === undefined) throw new InternalError("a view has no op");
    if (op === "ARANGE") {
      const seen = this.#unbind(st);
      return lazyOp(op, [], seen, dtype, seen.shape);
    }
    if (op === "CONTIGUOUS" || op === "ASSIGN") return this.#see(first, st);
    const own = st.contiguous && arraysEqual<Sint>(st.shape, base.shape);
    if (!own && (isReduceOp(op) || !this.#padMovesBelow(base, st))) {
      const plain = this.#compute(base, base.st);
      const seen = this.#unbind(st);
      return lazyOp("VIEW", [plain], seen, dtype, seen.shape);
    }
    if (isReduceOp(op)) {
      const src = this.#see(first, ShapeTracker.fromShape(first.shape));
      const axes = base.arg as readonly number[];
      return lazyOp(
        op,
        [src],
        axes,
        dtype,
        mapped(src.shape, (d, i) => (axes.includes(i) ? 1 : d)),
      );
    }
    const values = mapped(srcs, (s) => this.#see(s, st));
    const { shape } = values[0] as LazyOp;
    if (op === "CAST" || op === "BITCAST") return lazyOp(op, values, dtype, dtype, shape);
    if (isAluOp(op)) return lazyOp<AluOp>(op, values, undefined, dtype, shape);
    throw new InternalError(`a kernel has no ${op}`);
  }

  /** A masked view of an op with op(0) ≠ 0 must be applied to the result, not to the sources. */
  #padMovesBelow(base: LazyBuffer, st: ShapeTracker): boolean {
    if (base.op === undefined || !isAluOp(base.op) || opRecord(base.op).padSafe) return true;
    return !st.views.some((v) => v.mask !== undefined);
  }

  /** Symbolic sizes are separated from their values here: the kernel takes the values as arguments. */
  #unbind(st: ShapeTracker): ShapeTracker {
    const [bare, values] = st.simplify().unbind();
    for (const [v, n] of values) {
      const before = this.#varVals.get(v);
      if (before !== undefined && before !== n) {
        throw new SymbolicError(
          `variable ${v.name} is bound to ${before} and to ${n} in one kernel; bind it once`,
        );
      }
      this.#varVals.set(v, n);
    }
    return bare;
  }
}

/** Marks what an item computed, and what it made stale: the old value and its readers. */
export function itemDone(item: ScheduleItem): void {
  for (const lb of item.lazies) {
    const target = lb.op === "ASSIGN" ? lb.assigned : undefined;
    const { sources } = lb;
    lb.markRealized();
    markConsumed(sources);
    if (target !== undefined) markOverwritten(target);
    if (lb.op === "SCAN") (lb.arg as LaunchList).release();
  }
}

/** The memory of `target` now holds another value: neither it nor its pending readers can be read. */
export function markOverwritten(target: LazyBuffer): void {
  for (const r of [target, ...target.pendingReaders()]) {
    r.stale ??=
      `a tensor of shape [${r.shape}] (${r.op}) was built on a value, or shares memory, that an assign has ` +
      "overwritten since; realize it before the assign, or take it from the tensor that was assigned to";
  }
}
