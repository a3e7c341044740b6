// A kernel seen from its loops, for those who choose OptOps: which code runs in which of them, how far each load and store
// moves along each axis, how large things are. In goes the kernel lowered without any OptOps; nothing is changed.

import { getOrMake, toposort } from "../../helpers.ts";
import { type AluOp, opCost } from "../../ops.ts";
import { smax } from "../../shape/symbolic.ts";
import type { UOpMap } from "../../uop/map.ts";
import { type UOp, valueType } from "../../uop/uops.ts";
import type { Axis, Lowered } from "../lower/lower.ts";
import type { Stage } from "../opt/keep.ts";
import { isNext } from "../passes/expand.ts";
import type { Target } from "../target.ts";
import { type AxisIds, freeAxes } from "./free.ts";

/** How much more may be computed so that vectors fit: an axis of 6 takes 8 lanes. */
const MAX_WASTE = 1.4;

/** Code that runs in the same loops: the body of a reduce, or what leads to the stores. */
export interface Scope {
  readonly reduce: UOp | undefined;
  /** the loops it runs in, by the number of their axis */
  readonly axes: AxisIds;
  /** LOADs and STOREs */
  readonly memory: readonly UOp[];
  readonly alus: readonly UOp[];
  /** the operations that these are */
  readonly weight: number;
  readonly turns: number;
}

/** How an access meets an axis: it stays where it is, goes to the neighbour, or jumps. */
export type Step = "stays" | "next" | "jumps";

export class Scopes {
  readonly axes: readonly Axis[];
  /** the output axes, outermost first */
  readonly order: readonly Axis[];
  readonly ranges = new Map<number, UOp>();
  readonly target: Target;
  /** the kernel writes what it reads, so it must not compute anything twice */
  readonly inPlace: boolean;
  /** the axes that a node depends on */
  readonly free: UOpMap<AxisIds>;
  readonly scopes: readonly Scope[];
  readonly stages: readonly Stage[];
  readonly #steps = new Map<UOp, Map<number, Step>>();

  constructor({ sink, arena, axes, order, stages }: Lowered, target: Target, inPlace: boolean) {
    this.inPlace = inPlace;
    this.axes = axes;
    this.stages = stages;
    this.order = order;
    this.target = target;
    this.free = freeAxes(sink, arena, this.ranges);
    const reduces = arena.nodes(sink).filter((u) => u.op === "REDUCE");
    this.scopes = [
      this.#scope(undefined, sink.srcs),
      ...reduces.map((r) => this.#scope(r, [r.srcs[0] as UOp])),
    ];
  }

  #scope(reduce: UOp | undefined, roots: readonly UOp[]): Scope {
    const inner = toposort(roots, (u) => (u.op === "REDUCE" ? [] : u.srcs));
    const alus = inner.filter((u) => u.op === "ALU" && valueType(u.srcs.at(-1) as UOp).isFloat);
    const axes = new Set(roots.flatMap((r) => [...(this.free.get(r) as AxisIds)]));
    for (const r of reduce?.srcs.slice(1) ?? []) axes.add(r.arg as number);
    return {
      reduce,
      axes,
      memory: inner.filter((u) => u.op === "LOAD" || u.op === "STORE"),
      alus,
      weight: this.#weight(reduce, roots),
      turns: [...axes].reduce((n, id) => n * this.size(id), 1),
    };
  }
  /** Operations of a turn. What is kept by an earlier loop counts there. */
  #weight(reduce: UOp | undefined, roots: readonly UOp[]): number {
    const kept = new Set(this.stages.flatMap((s) => s.later.map((p) => p.done.get(s.value))));
    const isHere = (u: UOp): boolean => u.op !== "REDUCE" && !kept.has(u);
    const alus = toposort(roots, (u) => (isHere(u) ? u.srcs : [])).filter(
      (u) => u.op === "ALU" && isHere(u) && valueType(u.srcs.at(-1) as UOp).isFloat,
    );
    // vectors have no instruction for a maximum that keeps NaN
    const combine = reduce?.arg === "REDUCE_MAX" && valueType(reduce).isFloat ? 2 : 0;
    return alus.reduce((n, u) => n + opCost(u.arg as AluOp), combine);
  }
  size(id: number): number {
    return smax((this.axes[id] as Axis).size);
  }
  divides(id: number, n: number): boolean {
    const { size } = this.axes[id] as Axis;
    return typeof size === "number" && size % n === 0;
  }
  /** Whether `n` lanes of the axis at once make sense, the last of them computed twice where `n` does not divide it. */
  fits(id: number, n: number): boolean {
    const { size, kind } = this.axes[id] as Axis;
    if (typeof size !== "number" || this.divides(id, n)) return this.divides(id, n);
    return kind === "output" && !this.inPlace && n <= size && this.waste(id, n) <= MAX_WASTE;
  }
  /** The widest vectors that fit the axis. */
  widthOf(id: number): number {
    return this.target.simd?.widths.find((w) => this.fits(id, w)) ?? 1;
  }
  waste(id: number, n: number): number {
    return (Math.ceil(this.size(id) / n) * n) / this.size(id);
  }
  step(u: UOp, id: number): Step {
    const known = getOrMake(this.#steps, u, () => new Map<number, Step>());
    return getOrMake(known, id, () => {
      if (!this.free.get(u)?.has(id)) return "stays";
      return isNext(u, this.ranges.get(id) as UOp, this.target.simd) ? "next" : "jumps";
    });
  }

  /** The part of a buffer that is read or written. */
  bytes(u: UOp): number {
    const { itemsize } = valueType((u.op === "LOAD" ? u : u.srcs[2]) as UOp);
    return [...(this.free.get(u) as AxisIds)].reduce((n, id) => n * this.size(id), itemsize);
  }
  work(): number {
    return this.scopes.reduce((n, s) => n + s.turns * (1 + s.alus.length), 0);
  }

  number(id: number): number {
    return (this.axes[id] as Axis).of;
  }
}
