// The lanes of UPCAST, UNROLL and GROUP are written out: a node that depends on lanes becomes one node for each of them.
// One axis of lanes may become vectors of the target's width: neighbours in memory are loaded, computed and stored as
// one, and what cannot be is taken apart where it stands. Between decompose and linearize; no RANGE of a lane is left.

import { dtypes, scalarOf } from "../dtype.ts";
import { getOrMake, range, toposort } from "../helpers.ts";
import { REDUCE, type ReduceOp } from "../ops.ts";
import type { Axis, Lowered } from "./lower.ts";
import type { Simd, Target } from "./target.ts";
import { type UOp, type UOpArena, valueType } from "./uops.ts";

export function expand(lowered: Lowered, target: Target): UOp {
  const { sink, axes } = lowered;
  if (!axes.some(isLane)) return sink;
  return new Expander(lowered, target).run();
}

const LANES: ReadonlySet<Axis["kind"]> = new Set<Axis["kind"]>(["upcast", "unroll", "group"]);
export const isLane = (a: Axis): boolean => LANES.has(a.kind);

/** How far an index moves from one turn of the range to the next; undefined where that is not always the same. */
export function strideOf(
  index: UOp,
  axis: UOp,
  known: Map<UOp, number | undefined> = new Map(),
): number | undefined {
  if (known.has(index)) return known.get(index);
  let stride: number | undefined;
  if (index === axis) stride = 1;
  else if (index.op === "ALU" && (index.arg === "ADD" || index.arg === "MUL")) {
    const [a, b] = index.srcs as [UOp, UOp];
    const [x, y] = [strideOf(a, axis, known), strideOf(b, axis, known)];
    const factor = b.op === "CONST" ? Number(b.arg) : undefined;
    if (x !== undefined && y !== undefined) {
      if (index.arg === "ADD") stride = x + y;
      else if (x === 0 && y === 0) stride = 0;
      else if (factor !== undefined) stride = x * factor;
    }
  } else if (index.srcs.every((s) => strideOf(s, axis, known) === 0)) stride = 0;
  known.set(index, stride);
  return stride;
}

/** Whether a LOAD or STORE goes to neighbours in memory along the axis, for all lanes or for none: one vector. */
export function isNext(
  u: UOp,
  axis: UOp,
  simd: Simd | undefined,
  known: Map<UOp, number | undefined> = new Map(),
): boolean {
  const [buffer, index] = u.srcs as [UOp, UOp];
  const gate = u.srcs[u.op === "LOAD" ? 2 : 3];
  const steady = gate === undefined || strideOf(gate, axis, known) === 0;
  return steady && simd?.memory(buffer) === true && strideOf(index, axis, known) === 1;
}

/** Which lane of each axis is meant, by the axis' id. */
type Lane = ReadonlyMap<number, number>;

class Expander {
  readonly #arena: UOpArena;
  readonly #axes: readonly Axis[];
  readonly #sink: UOp;
  readonly #simd: Simd | undefined;
  /** the lanes a node depends on; undefined: there are none below it either, it stays as it is */
  readonly #deps = new Map<UOp, readonly number[] | undefined>();
  readonly #ranges = new Map<number, UOp>();
  readonly #scalars = new Map<UOp, Map<string, UOp>>();
  readonly #vectors = new Map<UOp, Map<string, UOp>>();
  readonly #strides = new Map<number, Map<UOp, number | undefined>>();
  /** the axes that become vectors; no node depends on two of them */
  readonly #wide: ReadonlySet<number>;

  constructor({ sink, arena, axes }: Lowered, target: Target) {
    this.#arena = arena;
    this.#axes = axes;
    this.#sink = sink;
    this.#simd = target.simd;
    for (const u of toposort([sink], (x) => x.srcs)) this.#deps.set(u, this.#depsOf(u));
    this.#wide = this.#chooseWide();
  }

  run(): UOp {
    const a = this.#arena;
    const stores = this.#sink.srcs.flatMap((s) => {
      const lanes = this.#deps.get(s) ?? [];
      const wide = this.#wideOf(s);
      return this.#lanes(lanes.filter((id) => id !== wide)).flatMap((lane) =>
        wide === undefined
          ? [this.#scalar(s, lane)]
          : this.#chunks(lane, wide).flatMap((l) => this.#store(s, l, wide)),
      );
    });
    return a.make("SINK", undefined, stores, undefined);
  }

  // ---- which lanes ----

  #depsOf(u: UOp): readonly number[] | undefined {
    if (u.op === "RANGE") {
      if (!isLane(this.#axis(u))) return undefined;
      this.#ranges.set(u.arg, u);
      return [u.arg];
    }
    let deps: readonly number[] | undefined;
    for (const s of u.srcs) {
      const below = this.#deps.get(s);
      if (below === undefined) continue;
      deps = deps === undefined || deps.length === 0 ? below : [...new Set([...deps, ...below])];
    }
    if (u.op !== "REDUCE" || deps === undefined) return deps;
    const own = u.srcs.slice(1).map((r) => r.arg);
    return deps.filter((id) => !own.includes(id));
  }
  #axis(r: UOp): Axis {
    // ranges that blockSums made are numbered beyond the kernel's own, and are no lanes
    return this.#axes[r.arg as number] ?? { id: r.arg as number, size: 0, kind: "reduce", of: -1 };
  }
  #size(id: number): number {
    return (this.#axes[id] as Axis).size as number;
  }
  /** Every combination of the lanes of these axes. */
  #lanes(ids: readonly number[], from: Lane = new Map()): Lane[] {
    return ids.reduce<Lane[]>(
      (all, id) => all.flatMap((lane) => range(this.#size(id)).map((n) => new Map(lane).set(id, n))),
      [from],
    );
  }
  /** The first lane of each vector along the axis. */
  #chunks(lane: Lane, wide: number): Lane[] {
    const width = this.#widthOf(wide);
    return range(this.#size(wide) / width).map((c) => new Map(lane).set(wide, c * width));
  }
  /** The lanes of the vector that starts here. */
  #within(lane: Lane, wide: number): Lane[] {
    const first = lane.get(wide) as number;
    return range(this.#widthOf(wide)).map((i) => new Map(lane).set(wide, first + i));
  }
  /** The widest vectors that fill the lanes of the axis. */
  #widthOf(id: number): number {
    return this.#simd?.widths.find((w) => this.#size(id) % w === 0) ?? 1;
  }
  #wideOf(u: UOp): number | undefined {
    return this.#deps.get(u)?.find((id) => this.#wide.has(id));
  }
  #depends(u: UOp, id: number): boolean {
    return this.#deps.get(u)?.includes(id) === true;
  }

  /** The axes along which most of the memory is next to each other, the best first, as far as they never meet. */
  #chooseWide(): ReadonlySet<number> {
    const simd = this.#simd;
    const found: { id: number; score: number }[] = [];
    const reduces = [...this.#deps.keys()].filter((u) => u.op === "REDUCE");
    // what a sum reads, it reads many times
    const often = new Set(
      toposort(
        reduces.map((r) => r.srcs[0] as UOp),
        (x) => x.srcs,
      ),
    );
    for (const id of this.#ranges.keys()) {
      if (simd === undefined || this.#axes[id]?.kind === "unroll" || this.#widthOf(id) === 1) continue;
      let score = 0;
      for (const u of this.#deps.keys()) {
        if ((u.op === "LOAD" || u.op === "STORE") && this.#depends(u, id))
          score += (this.#isNext(u, id) ? 4 : -1) * (often.has(u) ? 8 : 1);
      }
      // a sum is many operations: even operands that are put together pay, if nothing better is there
      const sums = reduces.some((r) => this.#depends(r, id) && simd.has(r));
      if (score > 0 || sums) found.push({ id, score });
    }
    const chosen = new Set<number>();
    for (const { id } of found.sort((a, b) => b.score - a.score)) {
      const meets = [...this.#deps.values()].some(
        (d) => d?.includes(id) && d.some((other) => chosen.has(other)),
      );
      if (!meets) chosen.add(id);
    }
    return chosen;
  }
  #isNext(u: UOp, id: number): boolean {
    const known = getOrMake(this.#strides, id, () => new Map<UOp, number | undefined>());
    return isNext(u, this.#ranges.get(id) as UOp, this.#simd, known);
  }

  // ---- one lane ----

  #key(u: UOp, lane: Lane): string {
    return (this.#deps.get(u) ?? []).map((id) => lane.get(id)).join();
  }
  #scalar(u: UOp, lane: Lane): UOp {
    if (this.#deps.get(u) === undefined) return u;
    const known = getOrMake(this.#scalars, u, () => new Map<string, UOp>());
    return getOrMake(known, this.#key(u, lane), () => {
      if (u.op === "RANGE") return this.#arena.constant(dtypes.int32, lane.get(u.arg) as number);
      if (u.op === "REDUCE") return this.#reduce(u, lane, undefined);
      return this.#arena.withSrcs(
        u,
        u.srcs.map((s) => this.#scalar(s, lane)),
      );
    });
  }

  // ---- vectors: `lane` names the first of them on the axis `wide` ----

  #vector(u: UOp, lane: Lane, wide: number): UOp {
    const known = getOrMake(this.#vectors, u, () => new Map<string, UOp>());
    return getOrMake(known, this.#key(u, lane), () => this.#vectorNew(u, lane, wide));
  }
  #vectorNew(u: UOp, lane: Lane, wide: number): UOp {
    const a = this.#arena;
    const { has } = this.#simd as Simd;
    const width = this.#widthOf(wide);
    const type = valueType(u).vec(width);
    if (!this.#depends(u, wide)) {
      const one = this.#scalar(u, lane);
      return this.#join(u, new Array<UOp>(width).fill(one));
    }
    if (u.op === "LOAD" && this.#isNext(u, wide)) {
      const [buffer, index, gate, alt] = u.srcs as [UOp, UOp, UOp?, UOp?];
      const at = [buffer, this.#scalar(index, lane)];
      if (gate === undefined || alt === undefined) return a.make("LOAD", type, at, undefined);
      return a.make(
        "LOAD",
        type,
        [...at, this.#scalar(gate, lane), this.#vector(alt, lane, wide)],
        undefined,
      );
    }
    if (u.op === "REDUCE" && has(u)) return this.#reduce(u, lane, wide);
    if ((u.op === "ALU" || u.op === "CAST" || u.op === "BITCAST") && has(u)) {
      const srcs = u.srcs.map((s) => this.#vector(s, lane, wide));
      return a.make(u.op, type, srcs, u.arg as never);
    }
    const lanes = this.#within(lane, wide).map((l) => this.#scalar(u, l));
    return this.#join(u, lanes);
  }
  #join(u: UOp, lanes: readonly UOp[]): UOp {
    const type = valueType(u).vec(lanes.length);
    const [first] = lanes as [UOp];
    if (first.op === "CONST" && lanes.every((l) => l === first)) return this.#arena.constant(type, first.arg);
    return this.#arena.make("VECTORIZE", type, lanes, undefined);
  }

  #store(u: UOp, lane: Lane, wide: number): UOp[] {
    const [buffer, index, value, gate] = u.srcs as [UOp, UOp, UOp, UOp?];
    const vector = this.#vector(value, lane, wide);
    const store = (l: Lane, what: UOp): UOp => {
      const rest = gate === undefined ? [] : [this.#scalar(gate, l)];
      return this.#arena.make("STORE", undefined, [buffer, this.#scalar(index, l), what, ...rest], undefined);
    };
    if (this.#isNext(u, wide)) return [store(lane, vector)];
    return this.#within(lane, wide).map((l, i) => store(l, this.#gep(vector, i)));
  }
  /** One lane of a vector. */
  #gep(vector: UOp, lane: number): UOp {
    if (vector.op === "VECTORIZE") return vector.srcs[lane] as UOp;
    const type = scalarOf(valueType(vector));
    if (vector.op === "CONST") return this.#arena.constant(type, vector.arg);
    return this.#arena.make("GEP", type, [vector], lane);
  }

  // ---- reduces ----

  /** Lanes of UNROLL are combined in every turn, those of GROUP have accumulators of their own. */
  #reduce(u: UOp<"REDUCE">, lane: Lane, wide: number | undefined): UOp {
    const [body, ...ranges] = u.srcs as [UOp, ...UOp[]];
    const rest = ranges.filter((r) => !isLane(this.#axis(r)));
    const own = (kind: Axis["kind"]) =>
      ranges.map((r) => this.#axis(r)).flatMap((x) => (x.kind === kind ? [x.id] : []));
    const groups = own("group");
    const across = this.#simd?.has(u) === true ? groups.find((id) => this.#wide.has(id)) : undefined;
    const vector = wide ?? across;
    const firsts = this.#lanes(
      groups.filter((id) => id !== across),
      lane,
    ).flatMap((l) => (across === undefined ? [l] : this.#chunks(l, across)));
    const totals = firsts.map((l) => {
      const turns = this.#lanes(own("unroll"), l).map((t) =>
        vector === undefined ? this.#scalar(body, t) : this.#vector(body, t, vector),
      );
      const turn = this.#combine(u.arg, turns);
      // the first sum of a loop is 0 + x, which is 0 for an x of -0
      if (rest.length === 0 && u.arg === "SUM")
        return this.#arena.alu("ADD", turn, this.#arena.constant(valueType(turn), 0));
      return rest.length === 0 ? turn : this.#arena.make("REDUCE", turn.dtype, [turn, ...rest], u.arg);
    });
    const total = this.#combine(u.arg, totals);
    if (across === undefined) return total;
    const lanes = range(this.#widthOf(across)).map((i) => this.#gep(total, i));
    return this.#combine(u.arg, lanes);
  }
  /** In pairs, so that no chain is longer than it must be. */
  #combine(op: ReduceOp, values: readonly UOp[]): UOp {
    let left = values;
    while (left.length > 1) {
      const [half, before] = [Math.ceil(left.length / 2), left];
      left = range(half).map((i) => {
        const [x, y] = [before[2 * i] as UOp, before[2 * i + 1]];
        return y === undefined ? x : this.#arena.alu(REDUCE[op].combine, x, y);
      });
    }
    return left[0] as UOp;
  }
}
