// STAGE: a value that one loop computes at some cost, and a later loop over the same elements computes again, is kept in
// an array between the two. The exp of a softmax is summed, and divided by the sum. In go the places where lowering
// evaluated the kernel's ops, out come what could be kept (for heuristic.ts to choose from) and the graph in which it is:
// a STAGE is the array after the loop that fills it. Each thread, lane and member of a workgroup has a part of its own.

import { type Pointer, PtrDType } from "../../dtype.ts";
import { ArgumentError } from "../../errors.ts";
import { getOrMake, prod, toposort } from "../../helpers.ts";
import { isAluOp, opCost } from "../../ops.ts";
import type { LazyOp } from "../../schedule/lazyop.ts";
import { add, mul, type Sint } from "../../shape/symbolic.ts";
import { changedSrcs } from "../../uop/rewrite.ts";
import { type UOp, type UOpArena, valueType } from "../../uop/uops.ts";
import type { Axis, Place } from "../lower/lower.ts";
import { isLane } from "../passes/expand.ts";
import type { Target } from "../target.ts";
import { type OptOp, showOpts } from "./opts.ts";

/** A reduce as lowering met it: the dims it goes over, its loops, and where its body is evaluated. */
export interface Home {
  readonly dims: readonly number[];
  /** the number of its outermost axis, as OptOps count them */
  readonly axis: number;
  readonly ranges: readonly UOp[];
  readonly place: Place;
}

/** A value that could be kept: computed in the loops of `home`, needed again at `later` places. */
export interface Stage {
  readonly home: Home;
  readonly value: LazyOp;
  readonly later: readonly Place[];
  readonly elements: number;
}

/** Writing an element and reading it again is worth so many operations. */
export const STAGE_COST = 6;

/** All that is worth keeping, the value of a reduce that others build on first. */
export function findStages(homes: readonly Home[], places: readonly Place[]): Stage[] {
  return homes.flatMap((home) => {
    if (home.place.gate !== 1) return [];
    const later = places.filter((p) => p !== home.place && isSameButFor(home.dims, p.idx, home.place.idx));
    const shared = [...home.place.done.keys()].filter((op) =>
      later.some((p) => p.done.has(op) && p.done.get(op) !== home.place.done.get(op)),
    );
    const costly = shared.filter((op) => costOf(op) > STAGE_COST);
    // what another of them is made of comes with it
    const parts = new Set(
      toposort(
        costly.flatMap((op) => op.srcs),
        (x) => x.srcs,
      ),
    );
    return costly
      .filter((op) => !parts.has(op))
      .flatMap((value): Stage[] => {
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

/** What staging needs of a kernel that was lowered. */
export interface Staging {
  readonly arena: UOpArena;
  readonly axes: readonly Axis[];
  /** the members of a workgroup */
  readonly items: readonly UOp[];
  readonly target: Target;
  /** a symbolic integer as UOps */
  readonly index: (x: Sint) => UOp;
  /** whether an index is not beyond the end of its axes; undefined where it never is */
  readonly there: (x: Sint) => UOp | undefined;
}

/** The graph in which the values that STAGE ops name are kept. */
export function keepStages(sink: UOp, all: readonly Stage[], opts: readonly OptOp[], s: Staging): UOp {
  const kept = new Map<LazyOp, Stage>();
  const loads = new Map<UOp, UOp>();
  let room = s.target.sharedMax;
  for (const o of opts) {
    if (o.op !== "STAGE" || isOutput(o.axis, s.axes)) continue; // operands.ts has those of output axes
    const named = all.filter((c) => c.home.axis === o.axis && !kept.has(c.value));
    const refuse = (why: string): never => {
      throw new ArgumentError(`${showOpts([o])}: ${why}; STAGE takes the axis of a reduce and its elements`);
    };
    if (named.length === 0) refuse("no loop after this one computes anything costly of it again");
    for (const stage of named) {
      if (stage.elements !== o.amount) refuse(`the loop has ${stage.elements} elements`);
      kept.set(stage.value, stage);
      room -= keep(stage, `temp${kept.size - 1}`, loads, s);
      if (room < 0) refuse(`${s.target.name} has room for ${s.target.sharedMax} bytes`);
    }
  }
  return loads.size === 0 ? sink : replace(sink, loads, s.arena);
}

/** Whether OptOps mean an output axis by this number. */
export const isOutput = (of: number, axes: readonly Axis[]): boolean =>
  axes.some((a) => a.of === of && (a.kind === "output" || a.kind === "local" || a.kind === "upcast"));

/** Makes the LOADs that stand for the value where it is needed later; gives the bytes of the array. */
function keep(
  { home, value, later, elements }: Stage,
  name: string,
  loads: Map<UOp, UOp>,
  s: Staging,
): number {
  const { arena } = s;
  const computed = home.place.done.get(value) as UOp;
  const dtype = valueType(computed);
  // members that would all write the same are turns apart when one of them reads
  const lanes = [...s.items, ...lanesOf(computed, home, s.axes)];
  const sizes = lanes.map((r) => (s.axes[r.arg as number] as Axis).size as number);
  const size = elements * prod(sizes);
  const pointer = PtrDType(dtype, true);
  const array = arena.make("DEFINE_LOCAL", pointer, [], [name, size]);
  const at = (place: Place): UOp => {
    const first = s.index(flat(home.dims, value, place));
    return lanes.reduce((index, lane, i) => {
      const many = arena.constant(valueType(lane), sizes[i] as number);
      return arena.alu("ADD", arena.alu("MUL", index, many), lane);
    }, first);
  };
  const store = arena.make("STORE", undefined, [array, at(home.place), computed], undefined);
  const filled = arena.make("STAGE", pointer, [array, store, ...home.ranges], undefined);
  for (const place of later) {
    const gates = [
      place.gate === 1 ? undefined : s.index(place.gate),
      s.there(flat(home.dims, value, place)),
    ].filter((g) => g !== undefined);
    const gate =
      gates.length === 0 ? [] : [gates.reduce((x, y) => arena.alu("AND", x, y)), arena.constant(dtype, 0)];
    const load = arena.make("LOAD", dtype, [filled, at(place), ...gate], undefined);
    loads.set(place.done.get(value) as UOp, load);
  }
  return arrayBytes(array as UOp<"DEFINE_LOCAL">);
}

/** What an array takes; each starts on a cache line. */
export function arrayBytes(array: UOp<"DEFINE_LOCAL">): number {
  const { itemsize } = (array.dtype as Pointer).base;
  return Math.ceil((array.arg[1] * itemsize) / 64) * 64;
}

/** Which element of the array a place means: its dims of the reduce, the last one the innermost. */
const flat = (dims: readonly number[], value: LazyOp, { idx }: Place): Sint =>
  dims.reduce<Sint>((at, d) => add(mul(at, value.shape[d] as Sint), idx[d] as Sint), 0);

/** The lanes that are computed side by side while the array is filled, other than those of its own loops. */
function lanesOf(value: UOp, home: Home, axes: readonly Axis[]): UOp[] {
  const free = new Map<UOp, ReadonlySet<UOp>>();
  for (const u of toposort([value], (x) => x.srcs)) {
    const mine = new Set(u.srcs.flatMap((x) => [...(free.get(x) as ReadonlySet<UOp>)]));
    if (u.op === "RANGE") mine.add(u);
    else if (u.op === "REDUCE") for (const r of u.srcs.slice(1)) mine.delete(r);
    free.set(u, mine);
  }
  return [...(free.get(value) as ReadonlySet<UOp>)]
    .filter((r) => {
      return isLane(axes[r.arg as number] as Axis) && !home.ranges.includes(r);
    })
    .sort((a, b) => (a.arg as number) - (b.arg as number));
}

/** The graph with other nodes in the place of some; what stands for them is rebuilt too. */
function replace(root: UOp, by: ReadonlyMap<UOp, UOp>, arena: UOpArena): UOp {
  const done = new Map<UOp, UOp>();
  const visit = (u: UOp): UOp =>
    getOrMake(done, u, () => {
      const other = by.get(u);
      if (other !== undefined) return visit(other);
      const srcs = changedSrcs(u, visit);
      return srcs === undefined ? u : arena.withSrcs(u, srcs);
    });
  return visit(root);
}
