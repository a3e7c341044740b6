// KEEP (memoisation between loops): a value that one loop computes at some cost, and a later loop over the
// same elements computes again, is kept in an array between the two: the exp of a softmax is summed, then
// divided by the sum. In go the sites at which lowering evaluated the kernel's ops. Out come the values that
// could be kept, for the heuristics to choose from, and the graph with those that KEEP names: a STAGE node is
// the array after the loop that fills it. Each thread and lane has its own elements.

import { prod, toposort } from "../../helpers.ts";
import { isAluOp, opCost } from "../../ops.ts";
import type { LazyOp } from "../../schedule/lazyop.ts";
import { add, mul, type Sint, smax } from "../../shape/symbolic.ts";
import type { UOpArena } from "../../uop/arena.ts";
import { isLane } from "../../uop/axis.ts";
import type { DefineLocal, Expr, Range, Sink } from "../../uop/node.ts";
import { substitute } from "../../uop/substitute.ts";
import { freeAxes, NO_AXES } from "../analysis/loops.ts";
import type { KernelGraph, Site } from "../lower/lower.ts";
import type { Target } from "../target.ts";
import { ArrayRoom } from "./arrays.ts";
import type { OptOp } from "./opts.ts";
import { type OptDoc, type OptRecord, refuse } from "./record.ts";

/** The loops of a reduction as lowering met them: the dims they go over, and the site of the body. */
export interface Producer {
  readonly dims: readonly number[];
  /** the number of its outermost axis, as OptOps count them */
  readonly axis: number;
  readonly ranges: readonly Range[];
  readonly site: Site;
}

/** A value that could be kept: `producer` computes it, and the later sites `consumers` need it again. */
export interface Keepable {
  readonly producer: Producer;
  readonly value: LazyOp;
  readonly consumers: readonly Site[];
  readonly elements: number;
}

/** Writing an element and reading it again costs as much as this many operations. */
export const KEEP_COST = 6;

/** All values worth keeping, those of a reduction that others depend on first. */
export function findKeepable(producers: readonly Producer[], sites: readonly Site[]): Keepable[] {
  return producers.flatMap((producer) => {
    if (producer.site.gate !== 1) return [];
    const consumers = sites.filter(
      (p) => p !== producer.site && isSameButFor(producer.dims, p.idx, producer.site.idx),
    );
    if (consumers.length === 0) return [];
    const shared = [...producer.site.done.keys()].filter((op) =>
      consumers.some((p) => p.done.has(op) && p.done.get(op) !== producer.site.done.get(op)),
    );
    const costly = shared.filter((op) => costOf(op) > KEEP_COST);
    if (costly.length === 0) return [];
    // a value that another of them is computed from need not be kept
    const parts = new Set(
      toposort(
        costly.flatMap((op) => op.srcs),
        (x) => x.srcs,
      ),
    );
    return costly
      .filter((op) => !parts.has(op))
      .flatMap((value): Keepable[] => {
        const sizes = producer.dims.map((d) => value.shape[d]);
        if (!sizes.every((s) => typeof s === "number")) return [];
        const computed = producer.site.done.get(value);
        const at = consumers.filter((p) => p.done.has(value) && p.done.get(value) !== computed);
        return [{ producer, value, consumers: at, elements: prod(sizes) }];
      });
  });
}
const isSameButFor = (dims: readonly number[], a: readonly Sint[], b: readonly Sint[]): boolean =>
  a.length === b.length && a.every((x, d) => x === b[d] || dims.includes(d));

/**
 * The operations it takes to compute a value from what is loaded, reduced before the loop, or kept already.
 */
export function costOf(value: LazyOp, kept: ReadonlySet<LazyOp> = new Set()): number {
  const isHere = (u: LazyOp): boolean => !kept.has(u) && (isAluOp(u.op) || u.op === "CAST");
  const nodes = toposort([value], (u) => (isHere(u) ? u.srcs : []));
  return nodes.reduce((n, u) => n + (isHere(u) && isAluOp(u.op) ? opCost(u.op) : 0), 0);
}

export const KEEP_DOC: OptDoc = {
  textbook: "memoisation of a value between loops (array expansion)",
  summary:
    "What the loop over a reduce axis computes at some cost, and a later loop computes again, is kept in an array " +
    "between the two.",
  picture: `
for k: s += exp(x[k])
for k: y[k] = exp(x[k]) / s           KEEP(1, elements=8)
for k: t[k] = exp(x[k]); s += t[k]
for k: y[k] = t[k] / s`,
};

export const KEEP: OptRecord<"KEEP"> = {
  name: "KEEP",
  params: {
    axis: { meaning: "a reduce axis: the outermost of its reduction", least: 0 },
    elements: { meaning: "the iterations of the loops of that reduction", least: 1 },
  },
  takes: "reduce",
  expected: "the number of its elements",
  candidates: ({ keepable }) => {
    const elements = new Map(keepable.map((k) => [k.producer.axis, k.elements]));
    return [...elements].map(([axis, n]) => ({ op: "KEEP", axis, elements: n }));
  },
  // all of them at once: a kept value may depend on another
  transform: (graph, _, { opts, target, index }) =>
    index === 0 ? { ...graph, sink: keepValues(graph, opts, target) } : graph,
};

/** The graph in which the values that KEEP ops name are kept. */
function keepValues(graph: KernelGraph, opts: readonly OptOp[], target: Target): Sink {
  const kept = new Map<LazyOp, Keepable>();
  const loads = new Map<Expr, Expr>();
  const room = new ArrayRoom(target);
  for (const o of opts) {
    if (o.op !== "KEEP") continue;
    const named = graph.keepable.filter((c) => c.producer.axis === o.axis && !kept.has(c.value));
    const refused = (why: string): never =>
      refuse(o, why, "KEEP takes the axis of a reduction and its elements");
    if (named.length === 0) refused("no loop after this one computes anything costly of it again");
    for (const keepable of named) {
      if (keepable.elements !== o.elements) refused(`the loop has ${keepable.elements} elements`);
      kept.set(keepable.value, keepable);
      const array = keep(keepable, `temp${kept.size - 1}`, loads, graph);
      if (array !== undefined) room.take(array, refused);
    }
  }
  return substitute(graph.sink, loads, graph.arena, { nested: true });
}

/** Makes the LOADs that replace the value at its consumers. Returns the array that they read. */
function keep(
  { producer, value, consumers, elements }: Keepable,
  name: string,
  loads: Map<Expr, Expr>,
  { arena, threads, indexes }: KernelGraph,
): DefineLocal | undefined {
  const computed = producer.site.done.get(value);
  if (computed === undefined) return undefined;
  // each thread has its own elements: threads are not in step, so they cannot share them without a barrier
  const lanes = [...threads, ...lanesOf(computed, producer, arena)];
  const sizes = lanes.map((r) => smax(r.axis.size));
  const array = arena.local(computed.dtype, name, elements * prod(sizes));
  const at = (site: Site): Expr =>
    lanes.reduce(
      (index, lane, i) => arena.alu("ADD", arena.alu("MUL", index, arena.int(sizes[i]!)), lane),
      indexes.toExpr(flat(producer.dims, value, site)),
    );
  const store = arena.store(array, at(producer.site), computed);
  const filled = arena.stage(array, [store], producer.ranges);
  for (const site of consumers) {
    const replaced = site.done.get(value);
    if (replaced === undefined) continue;
    const gates = [
      site.gate === 1 ? undefined : indexes.toExpr(site.gate),
      indexes.inBounds(flat(producer.dims, value, site)),
    ].filter((g) => g !== undefined);
    const gate = gates.length === 0 ? undefined : arena.and(gates);
    loads.set(replaced, arena.load(filled, at(site), { gate }));
  }
  return array;
}

/** Which element of the array a site means: its dims of the reduce, the last one the innermost. */
const flat = (dims: readonly number[], value: LazyOp, { idx }: Site): Sint =>
  dims.reduce<Sint>((at, d) => add(mul(at, value.shape[d]!), idx[d]!), 0);

/** The lanes that the value depends on, other than those of the producer's own loops. */
function lanesOf(value: Expr, producer: Producer, arena: UOpArena): Range[] {
  const ranges = new Map<number, Range>();
  const free = [...(freeAxes(value, arena, ranges).get(value) ?? NO_AXES)];
  return free
    .sort((a, b) => a - b)
    .flatMap((id) => ranges.get(id) ?? [])
    .filter((r) => isLane(r.axis) && !producer.ranges.includes(r));
}
