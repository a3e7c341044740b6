// LazyBuffers in, ScheduleItems out, in an order in which they can run. `createSchedule` asks fuse.ts where to cut,
// builds the AST of each stored node and orders the items, assigns after everything that reads the old value.
// Nothing is allocated or changed here: asking twice gives the same answer.

import type { DType, Value } from "../dtype.ts";
import { InternalError, StaleError, SymbolicError } from "../errors.ts";
import { getOrMake, toposort } from "../helpers.ts";
import type { CustomFn, LazyBuffer } from "../lazy/lazybuffer.ts";
import { type AluOp, isAluOp, isReduceOp, opRecord } from "../ops.ts";
import type { Buffer } from "../runtime/buffer.ts";
import { ShapeTracker } from "../shape/shapetracker.ts";
import type { Variable } from "../shape/symbolic.ts";
import { type Cut, cut } from "./fuse.ts";
import { ConstBuffer, type LazyOp, lazyOp, MemBuffer, shapeKey } from "./lazyop.ts";

/** One thing to run: a kernel (its ast starts with STORE), a COPY, an EMPTY or a CUSTOM. */
export interface ScheduleItem {
  readonly ast: readonly LazyOp[];
  readonly outputs: readonly Buffer[];
  readonly inputs: readonly Buffer[];
  readonly varVals: ReadonlyMap<Variable, number>;
  /** the nodes whose values the outputs are: marked realised when the item has run */
  readonly lazies: readonly LazyBuffer[];
}

/** An item while it is being ordered. */
interface Draft {
  readonly item: ScheduleItem;
  readonly out: LazyBuffer;
  /** the nodes it reads; several may share one buffer (before and after an assign) */
  readonly reads: readonly LazyBuffer[];
}

export function createSchedule(outs: readonly LazyBuffer[]): ScheduleItem[] {
  let wanted = outs.filter((o) => o.base.realized === undefined);
  let plan = cut(wanted);
  // an assign ends the life of the old value: what was built on it and still waits is computed first
  for (let late = lateReaders(plan); late.length > 0; late = lateReaders(plan)) {
    wanted = [...late, ...wanted];
    plan = cut(wanted);
  }
  for (const b of plan.all) if (b.stale !== undefined) throw new StaleError(b.stale);
  const drafts = new Map<LazyBuffer, Draft>();
  for (const b of plan.all) {
    if (plan.realizes.has(b) && b.op !== "CONST") drafts.set(b, draft(b, plan.realizes));
  }
  const roots = wanted.map((o) => drafts.get(o.base)).filter((d) => d !== undefined);
  return order(roots, drafts).map((d) => d.item);
}

/** Unrealised ends of the graph that read what this plan will overwrite, and are not part of it. */
function lateReaders(plan: Cut): LazyBuffer[] {
  const inPlan = new Set(plan.all);
  const seen = new Set<LazyBuffer>();
  const late: LazyBuffer[] = [];
  const todo = plan.all.flatMap((b) => (b.op === "ASSIGN" ? b.assigned.pendingReaders() : []));
  for (let b = todo.pop(); b !== undefined; b = todo.pop()) {
    if (seen.has(b) || b.stale !== undefined) continue;
    seen.add(b);
    const readers = b.pendingReaders();
    if (readers.length === 0 && !inPlan.has(b)) late.push(b);
    todo.push(...readers);
  }
  return late;
}

/** Sources before users; whoever reads a buffer's old value before the assign to it. */
function order(roots: readonly Draft[], drafts: ReadonlyMap<LazyBuffer, Draft>): Draft[] {
  const readersOf = new Map<LazyBuffer, Draft[]>();
  for (const d of drafts.values()) for (const r of d.reads) getOrMake(readersOf, r, () => []).push(d);
  const before = (d: Draft): Draft[] => {
    const sources = d.reads.map((r) => drafts.get(r)).filter((x) => x !== undefined);
    if (d.out.op !== "ASSIGN") return sources;
    const target = d.out.assigned;
    const own = drafts.get(target);
    const readers = (readersOf.get(target) ?? []).filter((x) => x !== d);
    return own === undefined ? [...sources, ...readers] : [own, ...sources, ...readers];
  };
  const sorted = toposort(roots, before);
  const at = new Map(sorted.map((d, i) => [d, i]));
  for (const d of sorted) {
    if (before(d).every((b) => (at.get(b) as number) < (at.get(d) as number))) continue;
    throw new StaleError(
      `schedule: one kernel needs a tensor of shape [${d.out.shape}] both as it was before an assign and after it; ` +
        "realize what reads the old value first",
    );
  }
  return sorted;
}

/** The item that computes one stored node. */
function draft(out: LazyBuffer, realizes: ReadonlySet<LazyBuffer>): Draft {
  const srcs = out.sources;
  if (out.op === "COPY" || out.op === "EMPTY" || out.op === "CUSTOM") {
    const arg = out.op === "CUSTOM" ? (out.arg as CustomFn) : undefined;
    const ast = [lazyOp(out.op, [], arg as never, out.dtype, out.shape)];
    const inputs = srcs.map((s) => s.buffer);
    const item = { ast, outputs: [out.buffer], inputs, varVals: new Map(), lazies: [out] };
    return { item, out, reads: srcs.map((s) => s.base) };
  }
  return new AstBuilder(out, realizes).draft();
}

/** Builds the AST of one kernel, views pushed down to the loads as far as they go. */
class AstBuilder {
  readonly #out: LazyBuffer;
  readonly #realizes: ReadonlySet<LazyBuffer>;
  readonly #inputs: Buffer[] = [];
  readonly #reads = new Set<LazyBuffer>();
  readonly #varVals = new Map<Variable, number>();
  readonly #memo = new Map<string, LazyOp>();

  constructor(out: LazyBuffer, realizes: ReadonlySet<LazyBuffer>) {
    this.#out = out;
    this.#realizes = realizes;
  }

  draft(): Draft {
    const out = this.#out;
    const st = this.#unbind(ShapeTracker.fromShape(out.shape));
    const value = this.#compute(out, ShapeTracker.fromShape(out.shape));
    const store = lazyOp("STORE", [value], new MemBuffer(0, out.dtype, st), out.dtype, st.shape);
    const item = {
      ast: [store],
      outputs: [out.buffer],
      inputs: this.#inputs,
      varVals: this.#varVals,
      lazies: [out],
    };
    return { item, out, reads: [...this.#reads] };
  }

  /** `lb` seen through `st`: a load, a constant, or computed in place. */
  #see(lb: LazyBuffer, st: ShapeTracker): LazyOp {
    const { base } = lb;
    const through = lb === base ? st : lb.st.add(st).simplify();
    const key = `${base.id}|${through.key}`;
    return getOrMake(this.#memo, key, () => {
      if (base.op === "CONST") return this.#constant(base.dtype, base.arg as Value, through);
      if (base.realized !== undefined || this.#realizes.has(base)) return this.#load(base, through);
      return this.#compute(base, through);
    });
  }

  #constant(dtype: DType, value: Value, st: ShapeTracker): LazyOp {
    const seen = this.#unbind(st);
    return lazyOp("CONST", [], new ConstBuffer(value, dtype, seen), dtype, seen.shape);
  }
  #load(base: LazyBuffer, st: ShapeTracker): LazyOp {
    this.#reads.add(base);
    let at = this.#inputs.indexOf(base.buffer);
    if (at < 0) at = this.#inputs.push(base.buffer) - 1;
    const seen = this.#unbind(st);
    return lazyOp("LOAD", [], new MemBuffer(at + 1, base.dtype, seen), base.dtype, seen.shape);
  }

  #compute(base: LazyBuffer, st: ShapeTracker): LazyOp {
    const { op, dtype } = base;
    const srcs = base.sources;
    const first = srcs[0] as LazyBuffer;
    if (op === undefined) throw new InternalError("a view cannot be computed");
    if (op === "CONTIGUOUS" || op === "ASSIGN") return this.#see(first, st);
    const own = st.contiguous && shapeKey(st.shape) === shapeKey(base.shape);
    if (!own && (isReduceOp(op) || !this.#padMovesBelow(base, st))) {
      const plain = this.#compute(base, ShapeTracker.fromShape(base.shape));
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
        src.shape.map((d, i) => (axes.includes(i) ? 1 : d)),
      );
    }
    const values = srcs.map((s) => this.#see(s, st));
    const { shape } = values[0] as LazyOp;
    if (op === "CAST" || op === "BITCAST") return lazyOp(op, values, dtype, dtype, shape);
    if (isAluOp(op)) return lazyOp<AluOp>(op, values, undefined, dtype, shape);
    throw new InternalError(`${op} cannot be part of a kernel`);
  }

  /** A masked view of an op with op(0) ≠ 0 must be applied to the result, not to the sources. */
  #padMovesBelow(base: LazyBuffer, st: ShapeTracker): boolean {
    if (base.op === undefined || !isAluOp(base.op) || opRecord(base.op).padSafe) return true;
    return !st.views.some((v) => v.mask !== undefined);
  }

  /** Symbolic sizes lose their values here: the kernel takes them as arguments. */
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

/** Marks what an item computed, and what it made stale: readers of a value that is no longer there. */
export function itemDone(item: ScheduleItem): void {
  for (const lb of item.lazies) {
    const target = lb.op === "ASSIGN" ? lb.assigned : undefined;
    lb.markRealized();
    for (const r of target?.pendingReaders() ?? []) {
      r.stale ??=
        `a tensor of shape [${r.shape}] (${r.op}) was built on a value that an assign has overwritten since; ` +
        "realize it before the assign, or build it again from the new value";
    }
  }
}
