// KEEP (memoisation between loops): a value that one loop computes at some cost, and a later loop over the
// same elements computes again, is kept in an array between the two: the exp of a softmax is summed, then
// divided by the sum. In go the places where lowering evaluated the kernel's ops, out come what could be kept
// (for the heuristics to choose from) and the graph in which it is: a STAGE node is the array after the loop
// that fills it. Each thread and lane has a part of its own.

import { ArgumentError } from "../../errors.ts";
import { prod, toposort } from "../../helpers.ts";
import { isAluOp, opCost } from "../../ops.ts";
import type { LazyOp } from "../../schedule/lazyop.ts";
import { add, mul, type Sint, smax } from "../../shape/symbolic.ts";
import { isLane } from "../../uop/axis.ts";
import type { DefineLocal, Expr, Range, Sink, UOp } from "../../uop/node.ts";
import { substitute } from "../../uop/substitute.ts";
import type { Lowered, Place } from "../lower/lower.ts";
import type { Target } from "../target.ts";
import { type OptOp, showOpts } from "./opts.ts";
import type { OptDoc, OptRecord } from "./record.ts";

/** A reduce as lowering met it: the dims it goes over, its loops, and where its body is evaluated. */
export interface Home {
  readonly dims: readonly number[];
  /** the number of its outermost axis, as OptOps count them */
  readonly axis: number;
  readonly ranges: readonly Range[];
  readonly place: Place;
}

/** A value that could be kept: computed in the loops of `home`, needed again at `later` places. */
export interface Keepable {
  readonly home: Home;
  readonly value: LazyOp;
  readonly later: readonly Place[];
  readonly elements: number;
}

/** Writing an element and reading it again is worth so many operations. */
export const KEEP_COST = 6;

/** All that is worth keeping, the value of a reduce that others build on first. */
export function findKeepable(homes: readonly Home[], places: readonly Place[]): Keepable[] {
  return homes.flatMap((home) => {
    if (home.place.gate !== 1) return [];
    const later = places.filter((p) => p !== home.place && isSameButFor(home.dims, p.idx, home.place.idx));
    const shared = [...home.place.done.keys()].filter((op) =>
      later.some((p) => p.done.has(op) && p.done.get(op) !== home.place.done.get(op)),
    );
    const costly = shared.filter((op) => costOf(op) > KEEP_COST);
    // what another of them is made of comes with it
    const parts = new Set(
      toposort(
        costly.flatMap((op) => op.srcs),
        (x) => x.srcs,
      ),
    );
    return costly
      .filter((op) => !parts.has(op))
      .flatMap((value): Keepable[] => {
        const sizes = home.dims.map((d) => value.shape[d]);
        if (!sizes.every((s) => typeof s === "number")) return [];
        const computed = home.place.done.get(value);
        const at = later.filter((p) => p.done.has(value) && p.done.get(value) !== computed);
        return [{ home, value, later: at, elements: prod(sizes) }];
      });
  });
}
const isSameButFor = (dims: readonly number[], a: readonly Sint[], b: readonly Sint[]): boolean =>
  a.length === b.length && a.every((x, d) => x === b[d] || dims.includes(d));

/** The operations behind a value, down to what is loaded, summed up before the loop, or kept already. */
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
    const elements = new Map(keepable.map((s) => [s.home.axis, s.elements]));
    return [...elements].map(([axis, n]) => ({ op: "KEEP", axis, elements: n }));
  },
  // all of them at once: a value that is kept may be made of another
  transform: (graph, _, { opts, target, index }) =>
    index === 0 ? { ...graph, sink: keepValues(graph, opts, target) } : graph,
};

/** The graph in which the values that KEEP ops name are kept. */
function keepValues(graph: Lowered, opts: readonly OptOp[], { name, sharedMax }: Target): Sink {
  const kept = new Map<LazyOp, Keepable>();
  const loads = new Map<Expr, Expr>();
  let room = sharedMax;
  for (const o of opts) {
    if (o.op !== "KEEP") continue;
    const named = graph.keepable.filter((c) => c.home.axis === o.axis && !kept.has(c.value));
    const refuse = (why: string): never => {
      throw new ArgumentError(`${showOpts([o])}: ${why}; KEEP takes the axis of a reduce and its elements`);
    };
    if (named.length === 0) refuse("no loop after this one computes anything costly of it again");
    for (const stage of named) {
      if (stage.elements !== o.elements) refuse(`the loop has ${stage.elements} elements`);
      kept.set(stage.value, stage);
      room -= keep(stage, `temp${kept.size - 1}`, loads, graph);
      if (room < 0) refuse(`${name} has room for ${sharedMax} bytes`);
    }
  }
  return substitute(graph.sink, loads, graph.arena, { nested: true });
}

/**
 * Makes the LOADs that take the place of the value where it is needed later. Returns the bytes of the array.
 */
function keep(
  { home, value, later, elements }: Keepable,
  name: string,
  loads: Map<Expr, Expr>,
  { arena, threads, indexes }: Lowered,
): number {
  const computed = home.place.done.get(value);
  if (computed === undefined) return 0;
  // threads that would all write the same are not at the same iteration when one of them reads
  const lanes = [...threads, ...lanesOf(computed, home)];
  const sizes = lanes.map((r) => smax(r.axis.size));
  const array = arena.local(computed.dtype, name, elements * prod(sizes));
  const at = (place: Place): Expr =>
    lanes.reduce(
      (index, lane, i) => arena.alu("ADD", arena.alu("MUL", index, arena.int(sizes[i]!)), lane),
      indexes.toExpr(flat(home.dims, value, place)),
    );
  const store = arena.store(array, at(home.place), computed);
  const filled = arena.stage(array, [store], home.ranges);
  for (const place of later) {
    const replaced = place.done.get(value);
    if (replaced === undefined) continue;
    const gates = [
      place.gate === 1 ? undefined : indexes.toExpr(place.gate),
      indexes.inBounds(flat(home.dims, value, place)),
    ].filter((g) => g !== undefined);
    const gate = gates.length === 0 ? undefined : arena.and(gates);
    loads.set(replaced, arena.load(filled, at(place), { gate }));
  }
  return arrayBytes(array);
}

/** What an array takes; each starts on a cache line. */
export function arrayBytes({ dtype, elements }: DefineLocal): number {
  return Math.ceil((elements * dtype.base.itemsize) / 64) * 64;
}

/** Which element of the array a place means: its dims of the reduce, the last one the innermost. */
const flat = (dims: readonly number[], value: LazyOp, { idx }: Place): Sint =>
  dims.reduce<Sint>((at, d) => add(mul(at, value.shape[d]!), idx[d]!), 0);

/** The lanes that are computed side by side while the array is filled, other than those of its own loops. */
function lanesOf(value: Expr, home: Home): Range[] {
  const free = new Map<UOp, ReadonlySet<Range>>();
  let last: ReadonlySet<Range> = new Set();
  for (const u of toposort<UOp>([value], (x) => x.srcs)) {
    const mine = new Set(u.srcs.flatMap((x) => [...(free.get(x) ?? [])]));
    if (u.op === "RANGE") mine.add(u);
    else if (u.op === "REDUCE") for (const r of u.ranges) mine.delete(r);
    free.set(u, mine);
    last = mine;
  }
  return [...last]
    .filter((r) => isLane(r.axis) && !home.ranges.includes(r))
    .sort((a, b) => a.axis.id - b.axis.id);
}
