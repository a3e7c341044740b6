// The lanes of UPCAST, UNROLL and GROUP are written out: a node that depends on lanes becomes one node for
// each of them, or one for each vector of them where the target has vectors. Between decompose and linearize;
// no RANGE of a lane is left. The parts, in expand/: which lanes there are (lanes.ts), a node for one lane
// (scalar.ts), for a vector (vector.ts), and reduces over lanes (reduction.ts).

import { getOrMake } from "../../helpers.ts";
import type { Made, UOpArena } from "../../uop/arena.ts";
import { isLane } from "../../uop/axis.ts";
import { UOpMap } from "../../uop/map.ts";
import type { Expr, Load, Reduce, Sink, Store, UOp } from "../../uop/node.ts";
import { hasUnitStride, type Strides } from "../analysis/strides.ts";
import type { KernelGraph } from "../lower/lower.ts";
import type { Simd, Target } from "../target.ts";
import type { Expansion } from "./expand/expansion.ts";
import { type Lane, type LaneAxis, Lanes } from "./expand/lanes.ts";
import { type ReduceRanges, rangesOf } from "./expand/reduction.ts";
import { scalar } from "./expand/scalar.ts";
import { broadcast, chooseVectorAxes, vector, vectorStores } from "./expand/vector.ts";

export function expand({ sink, arena, axes }: KernelGraph, target: Target): Sink {
  if (!axes.some(isLane)) return sink;
  const expander = new Expander(sink, arena, target.simd);
  return arena.sink(sink.stores.flatMap((s) => expander.stores(s)));
}

/** Each node is made once for each combination of the lanes that it depends on. */
class Expander implements Expansion {
  readonly arena: UOpArena;
  readonly lanes: Lanes;
  readonly vectorAxes: readonly LaneAxis[];
  readonly #simd: Simd | undefined;
  readonly #scalars: UOpMap<Map<Lane, UOp>>;
  /** vectors, by their first lane */
  readonly #vectors: UOpMap<Map<Lane, Expr>>;
  readonly #ranges = new Map<Reduce, ReduceRanges>();
  readonly #strides = new Map<LaneAxis, Strides>();

  constructor(sink: Sink, arena: UOpArena, simd: Simd | undefined) {
    this.arena = arena;
    this.#simd = simd;
    this.#scalars = new UOpMap(arena);
    this.#vectors = new UOpMap(arena);
    this.lanes = new Lanes(sink, arena, simd?.widths ?? []);
    this.vectorAxes = chooseVectorAxes(sink, simd, this);
  }

  scalar<U extends UOp>(u: U, lane: Lane): Made<U["op"]>;
  scalar(u: UOp, lane: Lane): UOp {
    const mask = this.lanes.maskOf(u);
    if (mask === undefined) return u;
    const known = this.#scalars.get(u)?.get(lane & mask);
    if (known !== undefined) return known;
    const made = scalar(u, lane, this);
    remember(this.#scalars, u, lane & mask, made);
    return made;
  }
  vector(u: Expr, first: Lane, along: LaneAxis): Expr {
    const mask = this.lanes.maskOf(u) ?? 0;
    // not remembered by its lanes: one value can be broadcast along axes of different widths
    if ((mask & along.mask) === 0) return broadcast(this.scalar(u, first), along, this);
    const known = this.#vectors.get(u)?.get(first & mask);
    if (known !== undefined) return known;
    const made = vector(u, first, along, this);
    remember(this.#vectors, u, first & mask, made);
    return made;
  }
  stores(s: Store): Store[] {
    const along = this.vectorAxes.find((a) => this.lanes.depends(s, a));
    const others = this.lanes.axes.filter((a) => a !== along && this.lanes.depends(s, a));
    return this.lanes
      .combinations(others, 0)
      .flatMap((lane) =>
        along === undefined
          ? [this.scalar(s, lane)]
          : this.lanes.vectors(lane, along).flatMap((first) => vectorStores(s, first, along, this)),
      );
  }

  rangesOf(u: Reduce): ReduceRanges {
    return getOrMake(this.#ranges, u, () => rangesOf(u, this));
  }
  readonly hasVectors = (u: Expr): boolean => this.#simd?.has(u) === true;
  readonly hasUnitStride = (access: Load | Store, along: LaneAxis): boolean => {
    const known = getOrMake(this.#strides, along, (): Strides => new Map());
    return hasUnitStride(access, along.range, this.#simd, known);
  };
}

function remember<V>(made: UOpMap<Map<Lane, V>>, u: UOp, lane: Lane, value: V): void {
  getOrMake(made, u, () => new Map()).set(lane, value);
}
