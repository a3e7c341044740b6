// The lanes of UPCAST, UNROLL and GROUP are written out: a node that depends on lanes becomes one node for each of them.
// One axis of lanes may become vectors of the target's width: neighbours in memory are loaded, computed and stored as
// one, and what cannot be is taken apart where it stands. Between decompose and linearize; no RANGE of a lane is left.

import { dtypes, scalarOf } from "../../dtype.ts";
import { ArgumentError, InternalError } from "../../errors.ts";
import { getOrMake, prod, range, toposort } from "../../helpers.ts";
import { REDUCE, type ReduceOp } from "../../ops.ts";
import { UOpMap } from "../../uop/map.ts";
import { type UOp, type UOpArena, valueType } from "../../uop/uops.ts";
import type { Axis, Lowered } from "../lower/lower.ts";
import type { Simd, Target } from "../target.ts";

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

/** Whether an index goes on through all of these loops, of these sizes and the outermost first, as it would in one. */
export function isEven(index: UOp, loops: readonly UOp[], sizes: readonly number[]): boolean {
  const strides = loops.map((r) => strideOf(index, r));
  const step = strides.at(-1);
  return step !== undefined && strides.every((s, i) => s === step * prod(sizes.slice(i + 1)));
}

/** Which lane of each axis is meant: a field of bits for each axis of lanes. */
type Lane = number;

/** An axis of lanes, and where its number stands in a Lane. */
interface Field {
  readonly axis: Axis;
  readonly size: number;
  readonly range: UOp;
  readonly shift: number;
  /** the bits of the field */
  readonly mask: number;
}

/** What lanes make of a node. */
interface Spread {
  /** the fields of the lanes it depends on; 0: only something below it does */
  readonly mask: number;
  /** what it is for each lane, and for each vector by its first lane */
  scalars: Map<Lane, UOp> | undefined;
  vectors: Map<Lane, UOp> | undefined;
}

/** How the lanes and loops of a reduce are gone through. */
interface Turns {
  /** ranges that stay loops */
  readonly loops: readonly UOp[];
  /** combined in every turn */
  readonly unrolled: readonly Field[];
  /** with accumulators of their own */
  readonly groups: readonly Field[];
  /** the one of these whose accumulators are vectors */
  readonly across: Field | undefined;
}

class Expander {
  readonly #arena: UOpArena;
  readonly #axes: readonly Axis[];
  readonly #sink: UOp;
  readonly #simd: Simd | undefined;
  /** by the id of their axis */
  readonly #fields = new Map<number, Field>();
  /** of each node that has lanes below it; the others stay as they are */
  readonly #spreads: UOpMap<Spread>;
  readonly #turns = new Map<UOp, Turns>();
  readonly #strides = new Map<Field, Map<UOp, number | undefined>>();
  /** the axes that become vectors; no node depends on two of them */
  readonly #wide: readonly Field[];

  constructor({ sink, arena, axes }: Lowered, target: Target) {
    this.#arena = arena;
    this.#axes = axes;
    this.#sink = sink;
    this.#simd = target.simd;
    const nodes = arena.nodes(sink);
    this.#spreads = new UOpMap(arena);
    for (const u of nodes) {
      const mask = this.#maskOf(u);
      if (mask !== undefined) this.#spreads.set(u, { mask, scalars: undefined, vectors: undefined });
    }
    this.#wide = this.#chooseWide(nodes);
  }

  run(): UOp {
    const stores = this.#sink.srcs.flatMap((s) => this.#stores(s));
    return this.#arena.make("SINK", undefined, stores, undefined);
  }
  /** A STORE for each lane or vector of lanes. */
  #stores(s: UOp): UOp[] {
    const wide = this.#wide.find((f) => this.#depends(s, f));
    const others = [...this.#fields.values()].filter((f) => f !== wide && this.#depends(s, f));
    return this.#lanes(others, 0).flatMap((lane) =>
      wide === undefined
        ? [this.#scalar(s, lane)]
        : this.#chunks(lane, wide).flatMap((l) => this.#store(s, l, wide)),
    );
  }

  // ---- which lanes ----

  /** undefined: no lanes below it. */
  #maskOf(u: UOp): number | undefined {
    if (u.op === "RANGE") return this.#field(u)?.mask;
    let mask: number | undefined;
    for (let i = 0; i < u.srcs.length; i++) {
      const below = this.#spreads.get(u.srcs[i]!);
      if (below !== undefined) mask = (mask ?? 0) | below.mask;
    }
    if (mask === undefined) return undefined;
    // an array is one for all lanes, which have parts of it
    if (u.op === "STAGE") return 0;
    if (u.op !== "REDUCE") return mask;
    for (const r of u.srcs.slice(1)) mask &= ~(this.#field(r)?.mask ?? 0);
    return mask;
  }
  /** The lanes that a range stands for; undefined: it is a loop. */
  #field(r: UOp): Field | undefined {
    const known = this.#fields.get(r.arg as number);
    if (known !== undefined) return known;
    // ranges that blockSums made are numbered beyond the kernel's own, and are no lanes
    const axis = this.#axes[r.arg as number];
    if (axis === undefined || !isLane(axis)) return undefined;
    const size = axis.size as number;
    const shift = [...this.#fields.values()].reduce((n, f) => n + bits(f.size), 0);
    if (shift + bits(size) > 31) {
      throw new ArgumentError(
        `UPCAST, UNROLL and GROUP: a kernel cannot have ${size} lanes more; use smaller amounts`,
      );
    }
    const field = { axis, size, range: r, shift, mask: (2 ** bits(size) - 1) << shift };
    this.#fields.set(axis.id, field);
    return field;
  }
  /** Every combination of the lanes of these axes. */
  #lanes(fields: readonly Field[], from: Lane): Lane[] {
    let all = [from];
    for (const f of fields) all = all.flatMap((lane) => range(f.size).map((n) => at(lane, f, n)));
    return all;
  }
  /** The first lane of each vector along the axis. */
  #chunks(lane: Lane, wide: Field): Lane[] {
    const width = this.#widthOf(wide);
    return range(wide.size / width).map((c) => at(lane, wide, c * width));
  }
  /** The lanes of the vector that starts here. */
  #within(lane: Lane, wide: Field): Lane[] {
    const first = laneOf(lane, wide);
    return range(this.#widthOf(wide)).map((i) => at(lane, wide, first + i));
  }
  /** The widest vectors that fill the lanes of the axis. */
  #widthOf({ size }: Field): number {
    return this.#simd?.widths.find((w) => size % w === 0) ?? 1;
  }
  #depends(u: UOp, { mask }: Field): boolean {
    return ((this.#spreads.get(u)?.mask ?? 0) & mask) !== 0;
  }

  /** The axes along which most of the memory is next to each other, the best first, as far as they never meet. */
  #chooseWide(nodes: readonly UOp[]): readonly Field[] {
    const simd = this.#simd;
    if (simd === undefined) return [];
    const found: { field: Field; score: number }[] = [];
    const reduces = nodes.filter((u) => u.op === "REDUCE");
    const memory = nodes.filter((u) => u.op === "LOAD" || u.op === "STORE");
    // what a sum reads, it reads many times
    const often = new Set(
      toposort(
        reduces.map((r) => r.srcs[0] as UOp),
        (x) => x.srcs,
      ),
    );
    for (const field of this.#fields.values()) {
      if (field.axis.kind === "unroll" || this.#widthOf(field) === 1) continue;
      let score = 0;
      for (const u of memory) {
        if (this.#depends(u, field)) score += (this.#isNext(u, field) ? 4 : -1) * (often.has(u) ? 8 : 1);
      }
      // a sum is many operations: even operands that are put together pay, if nothing better is there
      const sums = reduces.some((r) => this.#depends(r, field) && simd.has(r));
      if (score > 0 || sums) found.push({ field, score });
    }
    const chosen: Field[] = [];
    for (const { field } of found.sort((a, b) => b.score - a.score)) {
      const others = chosen.reduce((mask, f) => mask | f.mask, 0);
      const meets = (u: UOp): boolean =>
        this.#depends(u, field) && ((this.#spreads.get(u)?.mask ?? 0) & others) !== 0;
      if (others === 0 || !nodes.some(meets)) chosen.push(field);
    }
    return chosen;
  }
  #isNext(u: UOp, field: Field): boolean {
    const known = getOrMake(this.#strides, field, () => new Map<UOp, number | undefined>());
    return isNext(u, field.range, this.#simd, known);
  }

  // ---- one lane ----

  #scalar(u: UOp, lane: Lane): UOp {
    const spread = this.#spreads.get(u);
    if (spread === undefined) return u;
    const key = lane & spread.mask;
    const known = spread.scalars?.get(key);
    if (known !== undefined) return known;
    const made = this.#scalarNew(u, lane);
    spread.scalars ??= new Map();
    spread.scalars.set(key, made);
    return made;
  }
  #scalarNew(u: UOp, lane: Lane): UOp {
    if (u.op === "RANGE") return this.#arena.constant(dtypes.int32, laneOf(lane, this.#field(u) as Field));
    if (u.op === "REDUCE") return this.#reduce(u, lane, undefined);
    if (u.op === "STAGE") return this.#stage(u);
    if (u.op === "ELEMENT") {
      const [vector, index] = u.srcs.map((s) => this.#scalar(s, lane)) as [UOp, UOp];
      if (index.op !== "CONST") throw new InternalError("the lane of a vector depends on more than lanes");
      return this.#gep(vector, Number(index.arg));
    }
    return this.#arena.withSrcs(
      u,
      u.srcs.map((s) => this.#scalar(s, lane)),
    );
  }

  // ---- vectors: `lane` names the first of them on the axis `wide` ----

  #vector(u: UOp, lane: Lane, wide: Field): UOp {
    const spread = this.#spreads.get(u);
    if (spread === undefined) return this.#splat(u, u, wide);
    const key = lane & spread.mask;
    const known = spread.vectors?.get(key);
    if (known !== undefined) return known;
    const made = this.#vectorNew(u, lane, wide);
    spread.vectors ??= new Map();
    spread.vectors.set(key, made);
    return made;
  }
  /** One value in all lanes. */
  #splat(u: UOp, one: UOp, wide: Field): UOp {
    return this.#join(u, new Array<UOp>(this.#widthOf(wide)).fill(one));
  }
  #vectorNew(u: UOp, lane: Lane, wide: Field): UOp {
    const a = this.#arena;
    const { has } = this.#simd as Simd;
    if (!this.#depends(u, wide)) return this.#splat(u, this.#scalar(u, lane), wide);
    const type = valueType(u).vec(this.#widthOf(wide));
    if (u.op === "LOAD" && this.#isNext(u, wide)) {
      const [buffer, index, gate, alt] = u.srcs as [UOp, UOp, UOp?, UOp?];
      const at = [this.#scalar(buffer, lane), this.#scalar(index, lane)];
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
    return this.#join(
      u,
      this.#within(lane, wide).map((l) => this.#scalar(u, l)),
    );
  }
  #join(u: UOp, lanes: readonly UOp[]): UOp {
    const type = valueType(u).vec(lanes.length);
    const [first] = lanes as [UOp];
    if (first.op === "CONST" && lanes.every((l) => l === first)) return this.#arena.constant(type, first.arg);
    return this.#arena.make("VECTORIZE", type, lanes, undefined);
  }

  #store(u: UOp, lane: Lane, wide: Field): UOp[] {
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

  // ---- arrays and reduces ----

  /** Filled by all lanes, in the loops that are left. */
  #stage(u: UOp<"STAGE">): UOp {
    const [array, ...rest] = u.srcs as [UOp, ...UOp[]];
    const srcs = rest.flatMap((s) => {
      if (s.op === "STORE") return this.#stores(s);
      return this.#field(s) === undefined ? [s] : [];
    });
    return this.#arena.make("STAGE", u.dtype, [array, ...srcs], undefined);
  }

  #turnsOf(u: UOp<"REDUCE">): Turns {
    const ranges = u.srcs.slice(1);
    const fields = ranges.flatMap((r) => this.#field(r) ?? []);
    const groups = fields.filter((f) => f.axis.kind === "group");
    return {
      loops: ranges.filter((r) => this.#field(r) === undefined),
      unrolled: fields.filter((f) => f.axis.kind === "unroll"),
      groups,
      across: this.#simd?.has(u) === true ? groups.find((f) => this.#wide.includes(f)) : undefined,
    };
  }
  /** Lanes of UNROLL are combined in every turn, those of GROUP have accumulators of their own. */
  #reduce(u: UOp<"REDUCE">, lane: Lane, wide: Field | undefined): UOp {
    const body = u.srcs[0] as UOp;
    const { loops, unrolled, groups, across } = getOrMake(this.#turns, u, () => this.#turnsOf(u));
    const vector = wide ?? across;
    const firsts = this.#lanes(
      groups.filter((f) => f !== across),
      lane,
    ).flatMap((l) => (across === undefined ? [l] : this.#chunks(l, across)));
    const totals = firsts.map((l) => {
      const turns = this.#lanes(unrolled, l).map((t) =>
        vector === undefined ? this.#scalar(body, t) : this.#vector(body, t, vector),
      );
      const turn = this.#combine(u.arg, turns);
      // the first sum of a loop is 0 + x, which is 0 for an x of -0
      if (loops.length === 0 && u.arg === "SUM")
        return this.#arena.alu("ADD", turn, this.#arena.constant(valueType(turn), 0));
      return loops.length === 0 ? turn : this.#arena.make("REDUCE", turn.dtype, [turn, ...loops], u.arg);
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

/** Bits that hold the numbers below n. */
const bits = (n: number): number => 32 - Math.clz32(n - 1);
/** The lane with number `n` on this axis. */
const at = (lane: Lane, { mask, shift }: Field, n: number): Lane => (lane & ~mask) | (n << shift);
const laneOf = (lane: Lane, { mask, shift }: Field): number => (lane & mask) >>> shift;
