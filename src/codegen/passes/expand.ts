// The lanes of UPCAST, UNROLL and GROUP are written out: a node that depends on lanes becomes one node for
// each of them. One axis of lanes may become vectors of the target's width: neighbours in memory are loaded,
// computed and stored as one, and what cannot be is taken apart where it stands. Between decompose and
// linearize; no RANGE of a lane is left.

import { ArgumentError, InternalError } from "../../errors.ts";
import { getOrMake, range, toposort } from "../../helpers.ts";
import { REDUCE, type ReduceOp } from "../../ops.ts";
import type { Made, UOpArena } from "../../uop/arena.ts";
import { type Axis, isLane } from "../../uop/axis.ts";
import { UOpMap } from "../../uop/map.ts";
import type { Expr, Load, Range, Reduce, Sink, Stage, Store, UOp } from "../../uop/node.ts";
import { hasUnitStride, type Strides } from "../analysis/strides.ts";
import type { Lowered } from "../lower/lower.ts";
import type { Simd, Target } from "../target.ts";

export function expand(lowered: Lowered, target: Target): Sink {
  const { sink, axes } = lowered;
  if (!axes.some(isLane)) return sink;
  return new Expander(lowered, target).run();
}

/** Which lane of each axis is meant: a field of bits for each axis of lanes. */
type Lane = number;

/** An axis of lanes, and where its number stands in a Lane. */
interface Field {
  readonly axis: Axis;
  readonly size: number;
  readonly range: Range;
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
  vectors: Map<Lane, Expr> | undefined;
}

/** How the lanes and loops of a reduce are gone through. */
interface Turns {
  /** ranges that stay loops */
  readonly loops: readonly Range[];
  /** combined in every iteration */
  readonly unrolled: readonly Field[];
  /** with accumulators of their own */
  readonly groups: readonly Field[];
  /** the one of these whose accumulators are vectors */
  readonly across: Field | undefined;
}

class Expander {
  readonly #arena: UOpArena;
  readonly #sink: Sink;
  readonly #simd: Simd | undefined;
  /** by the id of their axis */
  readonly #fields = new Map<number, Field>();
  /** of each node that has lanes below it; the others stay as they are */
  readonly #spreads: UOpMap<Spread>;
  readonly #turns = new Map<Reduce, Turns>();
  readonly #strides = new Map<Field, Strides>();
  /** the axes that become vectors; no node depends on two of them */
  readonly #wide: readonly Field[];

  constructor({ sink, arena }: Lowered, target: Target) {
    this.#arena = arena;
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

  run(): Sink {
    return this.#arena.sink(this.#sink.stores.flatMap((s) => this.#stores(s)));
  }
  /** A STORE for each lane or vector of lanes. */
  #stores(s: Store): Store[] {
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
    for (const r of u.ranges) mask &= ~(this.#field(r)?.mask ?? 0);
    return mask;
  }
  /** The lanes that a range stands for; undefined: it is a loop. */
  #field(r: Range): Field | undefined {
    const known = this.#fields.get(r.axis.id);
    if (known !== undefined) return known;
    const { axis } = r;
    const { size } = axis;
    if (!isLane(axis) || typeof size !== "number") return undefined;
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

  /**
   * The axes along which most of the memory is next to each other, the best first, as far as they never meet.
   */
  #chooseWide(nodes: readonly UOp[]): readonly Field[] {
    const simd = this.#simd;
    if (simd === undefined) return [];
    const found: { field: Field; score: number }[] = [];
    const reduces = nodes.filter((u) => u.op === "REDUCE");
    const memory = nodes.filter((u) => u.op === "LOAD" || u.op === "STORE");
    // what a sum reads, it reads many times
    const often = new Set(
      toposort(
        reduces.map((r): UOp => r.body),
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
  #isNext(u: Load | Store, field: Field): boolean {
    const known = getOrMake(this.#strides, field, (): Strides => new Map());
    return hasUnitStride(u, field.range, this.#simd, known);
  }

  // ---- one lane ----

  #scalar<U extends UOp>(u: U, lane: Lane): Made<U["op"]>;
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
    if (u.op === "RANGE") return this.#laneIndex(u, lane);
    if (u.op === "REDUCE") return this.#reduce(u, lane, undefined);
    if (u.op === "STAGE") return this.#stage(u);
    if (u.op === "ELEMENT") {
      const [vector, index] = [this.#scalar(u.vector, lane), this.#scalar(u.index, lane)];
      if (index.op !== "CONST") throw new InternalError("the lane of a vector depends on more than lanes");
      return this.#arena.gep(vector, Number(index.value));
    }
    return this.#arena.withSrcs(
      u,
      u.srcs.map((s) => this.#scalar(s, lane)),
    );
  }

  #laneIndex(r: Range, lane: Lane): Expr {
    const field = this.#field(r);
    return field === undefined ? r : this.#arena.int(laneOf(lane, field));
  }

  // ---- vectors: `lane` names the first of them on the axis `wide` ----

  #vector(u: Expr, lane: Lane, wide: Field): Expr {
    const spread = this.#spreads.get(u);
    if (spread === undefined) return this.#splat(u, wide);
    const key = lane & spread.mask;
    const known = spread.vectors?.get(key);
    if (known !== undefined) return known;
    const made = this.#vectorNew(u, lane, wide);
    spread.vectors ??= new Map();
    spread.vectors.set(key, made);
    return made;
  }
  /** One value in all lanes. */
  #splat(one: Expr, wide: Field): Expr {
    return this.#join(one, new Array<Expr>(this.#widthOf(wide) - 1).fill(one));
  }
  #vectorNew(u: Expr, lane: Lane, wide: Field): Expr {
    const a = this.#arena;
    if (!this.#depends(u, wide)) return this.#splat(this.#scalar(u, lane), wide);
    const width = this.#widthOf(wide);
    if (u.op === "LOAD" && this.#isNext(u, wide)) {
      const [buffer, index] = [this.#scalar(u.buffer, lane), this.#scalar(u.index, lane)];
      const gate = u.gate && this.#scalar(u.gate, lane);
      const otherwise = u.otherwise && this.#vector(u.otherwise, lane, wide);
      return a.load(buffer, index, { gate, otherwise, lanes: width });
    }
    if (u.op === "REDUCE" && this.#hasVectors(u)) return this.#reduce(u, lane, wide);
    if ((u.op === "ALU" || u.op === "CAST" || u.op === "BITCAST") && this.#hasVectors(u)) {
      const operands = u.op === "ALU" ? u.operands : [u.operand];
      return a.withType(
        u,
        u.dtype.vec(width),
        operands.map((x) => this.#vector(x, lane, wide)),
      );
    }
    const [first, ...others] = this.#within(lane, wide).map((l) => this.#scalar(u, l));
    return this.#join(first!, others);
  }
  #hasVectors(u: Expr): boolean {
    return this.#simd?.has(u) === true;
  }
  #join(first: Expr, others: readonly Expr[]): Expr {
    if (first.op === "CONST" && others.every((l) => l === first)) {
      return this.#arena.constant(first.dtype.vec(1 + others.length), first.value);
    }
    return this.#arena.vectorize([first, ...others]);
  }

  #store(u: Store, lane: Lane, wide: Field): Store[] {
    const vector = this.#vector(u.value, lane, wide);
    const store = (l: Lane, value: Expr): Store => {
      const gate = u.gate && this.#scalar(u.gate, l);
      return this.#arena.store(u.buffer, this.#scalar(u.index, l), value, gate);
    };
    if (this.#isNext(u, wide)) return [store(lane, vector)];
    return this.#within(lane, wide).map((l, i) => store(l, this.#arena.gep(vector, i)));
  }

  // ---- arrays and reduces ----

  /** Filled by all lanes, in the loops that are left. */
  #stage({ array, stores, ranges }: Stage): Stage {
    const written = stores.flatMap((s) => this.#stores(s));
    return this.#arena.stage(
      array,
      written,
      ranges.filter((r) => this.#field(r) === undefined),
    );
  }

  #turnsOf(u: Reduce): Turns {
    const { ranges } = u;
    const fields = ranges.flatMap((r) => this.#field(r) ?? []);
    const groups = fields.filter((f) => f.axis.kind === "group");
    return {
      loops: ranges.filter((r) => this.#field(r) === undefined),
      unrolled: fields.filter((f) => f.axis.kind === "unroll"),
      groups,
      across: this.#hasVectors(u) ? groups.find((f) => this.#wide.includes(f)) : undefined,
    };
  }
  /** Lanes of UNROLL are combined in every iteration, those of GROUP have accumulators of their own. */
  #reduce(u: Reduce, lane: Lane, wide: Field | undefined): Expr {
    const { fn, body } = u;
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
      const turn = this.#combine(fn, turns);
      // the first sum of a loop is 0 + x, which is 0 for an x of -0
      if (loops.length === 0 && fn === "SUM")
        return this.#arena.alu("ADD", turn, this.#arena.constant(turn.dtype, 0));
      return this.#arena.reduce(fn, turn, loops);
    });
    const total = this.#combine(fn, totals);
    if (across === undefined) return total;
    const lanes = range(this.#widthOf(across)).map((i) => this.#arena.gep(total, i));
    return this.#combine(fn, lanes);
  }
  /** In pairs, so that no chain is longer than it must be. */
  #combine(op: ReduceOp, values: readonly Expr[]): Expr {
    let left = values;
    while (left.length > 1) {
      const [half, before] = [Math.ceil(left.length / 2), left];
      left = range(half).map((i) => {
        const [x, y] = [before[2 * i]!, before[2 * i + 1]];
        return y === undefined ? x : this.#arena.alu(REDUCE[op].combine, x, y);
      });
    }
    return left[0]!;
  }
}

/** Bits that hold the numbers below n. */
const bits = (n: number): number => 32 - Math.clz32(n - 1);
/** The lane with number `n` on this axis. */
const at = (lane: Lane, { mask, shift }: Field, n: number): Lane => (lane & ~mask) | (n << shift);
const laneOf = (lane: Lane, { mask, shift }: Field): number => (lane & mask) >>> shift;
