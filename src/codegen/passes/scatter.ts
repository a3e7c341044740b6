// A sum whose terms say by an index which result they belong to becomes a loop over its terms (scatter). As
// lowered, every result goes through all terms and leaves out those of other results: `data[c] = sum over r
// of (index[r] == c ? x[r] : 0)`. Instead all results are set to 0, then each term is added where its index
// points. The mirror image of onehot.ts. Terms are added in their order, so the result is always the same;
// threads share results, never one result. Between lower and the heuristics, for targets whose kernels are
// loops. The schedule (schedule/scatter.ts) has stored such a sum by itself, or with what it is added to.

import { prod } from "../../helpers.ts";
import { REDUCE } from "../../ops.ts";
import { isBetterScattered } from "../../scattercost.ts";
import { smax } from "../../shape/symbolic.ts";
import type { UOpArena } from "../../uop/arena.ts";
import { type Axis, isLane } from "../../uop/axis.ts";
import type { Const, Expr, Range, Reduce, UOp } from "../../uop/node.ts";
import { substitute } from "../../uop/substitute.ts";
import { freeAxes, NO_AXES } from "../analysis/loops.ts";
import { linearizeScatter } from "../linear/scatterlinear.ts";
import type { KernelGraph } from "../lower/lower.ts";
import { onSink, type Pass, type PassContext } from "../pass.ts";
import { conjuncts, isInRange, pickOneHot } from "./onehot.ts";

/** The loops of a kernel that is a scatter. */
export interface ScatterLoops {
  /** around everything: each iteration has results of its own */
  readonly outer: readonly Axis[];
  /** the axes of results that the terms choose from: loops only where the results are set to their start */
  readonly chosen: readonly Axis[];
  /** over the terms */
  readonly terms: readonly Axis[];
  /** over what is added at once */
  readonly row: readonly Axis[];
}

/** The passes in which terms of a sum are chosen by an index, or choose their result by one. */
export const BY_INDEX: readonly Pass[] = [
  onSink("one-hot sums", ({ sink, arena }) => pickOneHot(sink, arena)),
  { name: "scatter", run: scatter },
];

function scatter(graph: KernelGraph, { opts, target }: PassContext): KernelGraph {
  const [store, second] = graph.sink.stores;
  if (target.grid !== undefined || store === undefined || second !== undefined) return graph;
  // PADTO computes results twice: here it would add terms twice
  if (store.gate !== undefined || opts.some((o) => o.op === "PADTO")) return graph;
  const total = totalOf(store.value, graph.arena);
  const terms = total && termsOf(total.reduce, graph.arena);
  if (total === undefined || terms === undefined) return graph;
  const scatter = new Scatter(graph, total, terms);
  const thread = opts.find((o) => o.op === "THREAD")?.axis;
  return scatter.isBetter(thread) ? scatter.run() : graph;
}

/** A reduction, and what its result is combined with in the same way as its terms. */
interface Combined {
  readonly reduce: Reduce;
  readonly base: Expr | undefined;
}
function totalOf(value: Expr, arena: UOpArena): Combined | undefined {
  if (value.op === "REDUCE") return { reduce: value, base: undefined };
  if (value.op !== "ALU") return undefined;
  const [x, y] = value.operands;
  for (const [reduce, base] of [
    [x, y],
    [y, x],
  ]) {
    if (reduce?.op !== "REDUCE" || base === undefined || value.fn !== REDUCE[reduce.fn].combine) continue;
    if (!arena.nodes(base).some((u) => u.op === "REDUCE")) return { reduce, base };
  }
  return undefined;
}

/** The terms of a reduction that are not left out. */
interface Terms {
  readonly term: Expr;
  /** where one of these does not hold the term is `start` */
  readonly conditions: readonly Expr[];
  /** combined with any result it changes nothing */
  readonly start: Expr;
}
function termsOf({ fn, body, dtype }: Reduce, arena: UOpArena): Terms | undefined {
  const conditions: Expr[] = [];
  const nothing = arena.constant(dtype, REDUCE[fn].identity(dtype));
  let start: Const | undefined;
  let term = body;
  while (term.op === "ALU" && term.fn === "WHERE") {
    const [condition, x, otherwise] = term.operands;
    if (otherwise.op !== "CONST" || (start !== undefined && start !== otherwise)) break;
    start = otherwise;
    conditions.push(...conjuncts(condition));
    term = x;
  }
  // conditions that are counted, or of which one has to hold
  const counted = term.op === "CAST" && fn === "SUM" ? term.operand : term;
  if (counted.op === "ALU" && counted.dtype.kind === "bool" && fn !== "PROD") {
    conditions.push(...conjuncts(counted));
    term = arena.constant(dtype, 1);
  }
  if (conditions.length === 0) return undefined;
  return start === undefined || isNothing(start, fn) ? { term, conditions, start: nothing } : undefined;
}
function isNothing(c: Const, fn: Reduce["fn"]): boolean {
  if (fn === "SUM") return c.is(0) || c.is(-0);
  return c.is(Number(REDUCE[fn].identity(c.dtype)));
}

/** A condition that names the only result along an axis to which a term goes. */
interface Choice {
  readonly condition: Expr;
  readonly range: Range;
  /** as the term has it, and in the loop of results */
  readonly given: Expr;
  readonly index: Expr;
  readonly isInRange: Expr;
}

const sizeOf = (axes: readonly Axis[]): number => prod(axes.map((a) => smax(a.size)));

class Scatter {
  readonly #graph: KernelGraph;
  readonly #total: Combined;
  readonly #terms: Terms;
  readonly #choices: readonly Choice[];
  readonly #ranges = new Map<number, Range>();
  readonly #loops: ScatterLoops;

  constructor(graph: KernelGraph, total: Combined, terms: Terms) {
    this.#graph = graph;
    this.#total = total;
    this.#terms = terms;
    const free = freeAxes(graph.sink, graph.arena, this.#ranges);
    const found = terms.conditions
      .flatMap((c) => this.#choice(c) ?? [])
      .filter((c, i, all) => all.findIndex((x) => x.range === c.range) === i);
    const depends = (u: UOp, { axis }: Range): boolean => (free.get(u) ?? NO_AXES).has(axis.id);
    const { ranges } = total.reduce;
    this.#choices = found.filter(
      ({ given }) => ranges.some((r) => depends(given, r)) && !found.some((c) => depends(given, c.range)),
    );
    const chosen = this.#choices.map((c) => c.range.axis);
    const { order } = graph;
    const first = Math.min(...chosen.map((a) => a.of));
    // the outer one of two loops over one axis
    const isSplit = (a: Axis): boolean =>
      a.kind === "output" && order.some((x) => x.of === a.of && x.kind === "local");
    const isOuter = (a: Axis): boolean => a.of < first || isSplit(a);
    const others = order.filter((a) => !chosen.includes(a));
    this.#loops = {
      outer: others.filter(isOuter),
      chosen,
      terms: ranges.filter((r) => this.#choices.some((c) => depends(c.given, r))).map((r) => r.axis),
      row: others.filter((a) => !isOuter(a)),
    };
  }

  /** `condition`: an index of the term equals the number of a result. */
  #choice(condition: Expr): Choice | undefined {
    if (condition.op !== "ALU" || condition.fn !== "CMPEQ") return undefined;
    const { arena: a, order } = this.#graph;
    const [x, y] = condition.operands;
    for (const [side, index] of [
      [x, y],
      [y, x],
    ] as const) {
      if (!index.dtype.isInt) return undefined;
      const place = side.op === "CAST" ? side.operand : side;
      const parts: readonly Expr[] = place.op === "ALU" && place.fn === "ADD" ? place.operands : [place];
      const range = parts.find((p) => p.op === "RANGE" && order.includes(p.axis));
      if (range?.op !== "RANGE") continue;
      const before = parts.find((p) => p !== range);
      const wide = index.dtype.itemsize < 4 ? a.cast(index, range.dtype) : index;
      const at = before === undefined ? wide : a.alu("SUB", wide, a.cast(before, wide.dtype));
      return {
        condition,
        range,
        given: index,
        index: a.cast(at, range.dtype),
        isInRange: isInRange(at, range.end, a),
      };
    }
    return undefined;
  }

  /** `thread`: the axis that threads share. */
  isBetter(thread: number | undefined): boolean {
    const { outer, chosen, terms } = this.#loops;
    if (chosen.length === 0 || terms.some(isLane)) return false;
    if (thread !== undefined && !outer.some((a) => a.of === thread && a.kind === "output")) return false;
    const isResult = (a: Axis): boolean => a.kind === "output" || a.kind === "local" || a.kind === "upcast";
    const results = this.#graph.axes.filter(isResult);
    const first = Math.min(...chosen.map((a) => a.of));
    const isChosen = (a: Axis): boolean => chosen.some((c) => c.of === a.of);
    return isBetterScattered({
      results: sizeOf(results.filter(isChosen)),
      terms: sizeOf(terms),
      width: sizeOf(results.filter((a) => a.of > first && !isChosen(a))),
      batch: sizeOf(results.filter((a) => a.of < first)),
    });
  }

  run(): KernelGraph {
    const { arena: a, sink, order } = this.#graph;
    const { outer, chosen, terms, row } = this.#loops;
    const { reduce, base } = this.#total;
    const { term, conditions, start } = this.#terms;
    const [store] = sink.stores;
    if (store?.buffer.op !== "DEFINE_GLOBAL") return this.#graph;
    const { combine } = REDUCE[reduce.fn];
    const first = base === undefined ? start : a.alu(combine, base, start);
    const setLoops = order.filter((x) => chosen.includes(x) || row.includes(x));
    const started = a.stage(
      store.buffer,
      [a.store(store.buffer, store.index, first)],
      this.#rangesOf(setLoops),
    );
    const inRange = a.and(this.#choices.map((c) => c.isInRange));
    const at = new Map<UOp, UOp>(this.#choices.map((c) => [c.range, c.index]));
    const inside = (x: Expr): Expr => substitute(x, at, a, { where: inRange });
    // a loop that no index depends on goes over terms of one result: they are combined first
    const inner = reduce.ranges.filter((r) => !terms.includes(r.axis));
    const others = conditions.filter((c) => !this.#choices.some((x) => x.condition === c)).map(inside);
    const isInner = (c: Expr): boolean => a.nodes(c).some((u) => u.op === "RANGE" && inner.includes(u));
    const gate = a.and([inRange, ...others.filter((c) => !isInner(c))]);
    const left = others.filter(isInner);
    const one = left.length === 0 ? inside(term) : a.alu("WHERE", a.and(left), inside(term), start);
    const index = substitute(store.index, at, a);
    const value = a.alu(combine, a.reduce(reduce.fn, one, inner), a.load(started, index, { gate }));
    return {
      ...this.#graph,
      sink: a.sink([a.store(store.buffer, index, value, gate)]),
      order: [...outer, ...terms, ...row],
      scatter: this.#loops,
      linearize: linearizeScatter,
    };
  }
  #rangesOf(axes: readonly Axis[]): Range[] {
    return axes.flatMap((x) => this.#ranges.get(x.id) ?? []);
  }
}
