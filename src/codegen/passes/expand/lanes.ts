// Which lanes a kernel has, and which of them each node depends on. A Lane packs one lane index per axis into
// bit fields. In goes the graph; the rest of expand asks.

import { ArgumentError } from "../../../errors.ts";
import { range } from "../../../helpers.ts";
import type { UOpArena } from "../../../uop/arena.ts";
import { type Axis, isLane } from "../../../uop/axis.ts";
import { UOpMap } from "../../../uop/map.ts";
import type { Range, Sink, UOp } from "../../../uop/node.ts";

/** One lane index for each axis of lanes, in bit fields. */
export type Lane = number;

/** An axis of lanes, and the bit field of a Lane that has its lane index. */
export interface LaneAxis {
  readonly axis: Axis;
  readonly size: number;
  readonly range: Range;
  readonly shift: number;
  readonly mask: number;
}

export class Lanes {
  readonly #widths: readonly number[];
  /** by the id of their axis */
  readonly #axes = new Map<number, LaneAxis>();
  readonly #masks: UOpMap<number>;

  /** `widths`: how many lanes the vectors of the target have, the widest first */
  constructor(sink: Sink, arena: UOpArena, widths: readonly number[]) {
    this.#widths = widths;
    this.#masks = new UOpMap(arena);
    for (const u of arena.nodes(sink)) {
      const mask = this.#dependences(u);
      if (mask !== undefined) this.#masks.set(u, mask);
    }
  }

  get axes(): readonly LaneAxis[] {
    return [...this.#axes.values()];
  }
  /** The lanes that a range stands for; undefined: it is a loop. */
  axisOf({ axis }: Range): LaneAxis | undefined {
    return this.#axes.get(axis.id);
  }
  /**
   * The axes of lanes that a node depends on, as a mask of their bit fields. 0: it depends on none, but
   * something below it does. undefined: nothing below it has lanes, so it stays as it is.
   */
  maskOf(u: UOp): number | undefined {
    return this.#masks.get(u);
  }
  depends(u: UOp, { mask }: Pick<LaneAxis, "mask">): boolean {
    return ((this.#masks.get(u) ?? 0) & mask) !== 0;
  }

  /** Like freeAxesOf (analysis/loops.ts), for lanes and as bits: expand asks far more often. */
  #dependences(u: UOp): number | undefined {
    if (u.op === "RANGE") return this.#define(u)?.mask;
    let mask: number | undefined;
    for (let i = 0; i < u.srcs.length; i++) {
      const below = this.#masks.get(u.srcs[i]!);
      if (below !== undefined) mask = (mask ?? 0) | below;
    }
    if (mask === undefined) return undefined;
    // all lanes share one array; each owns a part
    if (u.op === "STAGE") return 0;
    if (u.op !== "REDUCE") return mask;
    for (const r of u.ranges) mask &= ~(this.axisOf(r)?.mask ?? 0);
    return mask;
  }
  #define(r: Range): LaneAxis | undefined {
    const { axis } = r;
    const { size } = axis;
    if (!isLane(axis) || typeof size !== "number") return undefined;
    const shift = this.axes.reduce((n, a) => n + bits(a.size), 0);
    if (shift + bits(size) > 31) {
      throw new ArgumentError(
        `UPCAST, UNROLL and GROUP: a kernel cannot have ${size} lanes more; use smaller amounts`,
      );
    }
    const made = { axis, size, range: r, shift, mask: (2 ** bits(size) - 1) << shift };
    this.#axes.set(axis.id, made);
    return made;
  }

  /** Every combination of the lanes of these axes; the others as in `from`. */
  combinations(axes: readonly LaneAxis[], from: Lane): Lane[] {
    let all = [from];
    for (const a of axes) all = all.flatMap((lane) => range(a.size).map((n) => withLane(lane, a, n)));
    return all;
  }
  /** The widest vectors that fill the lanes of the axis. */
  widthOf({ size }: LaneAxis): number {
    return this.#widths.find((w) => size % w === 0) ?? 1;
  }
  /** The first lane of each vector along the axis. */
  vectors(lane: Lane, along: LaneAxis): Lane[] {
    const width = this.widthOf(along);
    return range(along.size / width).map((v) => withLane(lane, along, v * width));
  }
  /** The lanes of the vector that starts here. */
  ofVector(first: Lane, along: LaneAxis): Lane[] {
    const start = laneOf(first, along);
    return range(this.widthOf(along)).map((i) => withLane(first, along, start + i));
  }
}

/** Bits that hold the numbers below n. */
const bits = (n: number): number => 32 - Math.clz32(n - 1);
/** The lane with number `n` on this axis. */
const withLane = (lane: Lane, { mask, shift }: LaneAxis, n: number): Lane => (lane & ~mask) | (n << shift);
export const laneOf = (lane: Lane, { mask, shift }: LaneAxis): number => (lane & mask) >>> shift;
