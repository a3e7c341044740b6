// The loop nest of a kernel, for the heuristics: which code runs in which loops, how each load and store
// moves along each axis, how large things are. In goes the kernel lowered without any OptOps; nothing is
// changed.

import { InternalError } from "../../errors.ts";
import { getOrMake } from "../../helpers.ts";
import { opCost } from "../../ops.ts";
import { mod, smax, smin } from "../../shape/symbolic.ts";
import type { UOpArena } from "../../uop/arena.ts";
import type { UOpMap } from "../../uop/map.ts";
import type { Alu, Axis, Expr, Load, Range, Reduce, Store, UOp } from "../../uop/node.ts";
import type { KernelGraph } from "../lower/lower.ts";
import type { Keepable } from "../opt/keep.ts";
import type { Target } from "../target.ts";
import { type AxisIds, freeAxes, NO_AXES } from "./loops.ts";
import { hasUnitStride } from "./strides.ts";

/** How much more may be computed so that vectors fit: an axis of 6 takes 8 lanes. */
const MAX_WASTE = 1.75;

/** Code that runs in the same loops: the body of a reduction, or what leads to the stores. */
export interface LoopBody {
  readonly reduce: Reduce | undefined;
  /** the loops it runs in, by the id of their axis */
  readonly axes: AxisIds;
  readonly memory: readonly (Load | Store)[];
  /** arithmetic on floats */
  readonly alus: readonly Alu[];
  /** what these cost in one iteration, in simple operations */
  readonly weight: number;
  /** the product of the sizes of its loops */
  readonly iterations: number;
}

/** How an access moves along an axis: it stays where it is, it goes to the next element, or it jumps. */
export type AccessPattern = "invariant" | "unit" | "strided";

const isFloatAlu = (u: UOp): u is Alu => u.op === "ALU" && u.operands.at(-1)?.dtype.isFloat === true;

export class LoopNest {
  readonly axes: readonly Axis[];
  /** the output axes, outermost first */
  readonly order: readonly Axis[];
  readonly ranges = new Map<number, Range>();
  readonly target: Target;
  /** the kernel writes what it reads, so it must not compute anything twice */
  readonly inPlace: boolean;
  /** the first is what leads to the stores, the others are the bodies of reductions */
  readonly bodies: readonly [LoopBody, ...LoopBody[]];
  readonly keepable: readonly Keepable[];
  readonly #arena: UOpArena;
  readonly #free: UOpMap<AxisIds>;
  readonly #patterns = new Map<UOp, Map<number, AccessPattern>>();

  constructor({ sink, arena, axes, order, keepable }: KernelGraph, target: Target, inPlace: boolean) {
    this.inPlace = inPlace;
    this.axes = axes;
    this.keepable = keepable;
    this.order = order;
    this.target = target;
    this.#arena = arena;
    this.#free = freeAxes(sink, arena, this.ranges);
    const reduces = arena.nodes(sink).filter((u) => u.op === "REDUCE");
    this.bodies = [this.#body(undefined, sink.stores), ...reduces.map((r) => this.#body(r, [r.body]))];
  }

  #body(reduce: Reduce | undefined, roots: readonly (Store | Expr)[]): LoopBody {
    const inner = this.#arena.nodesFrom(roots, (u) => (u.op === "REDUCE" ? [] : u.srcs));
    const axes = new Set(roots.flatMap((r) => [...this.free(r)]));
    for (const r of reduce?.ranges ?? []) axes.add(r.axis.id);
    const alus = inner.filter(isFloatAlu);
    return {
      reduce,
      axes,
      memory: inner.filter((u) => u.op === "LOAD" || u.op === "STORE"),
      alus,
      weight: this.#weight(reduce, roots, alus),
      iterations: [...axes].reduce((n, id) => n * this.size(id), 1),
    };
  }
  /** The cost of an iteration, in which `all` is computed. What an earlier loop keeps is counted there. */
  #weight(reduce: Reduce | undefined, roots: readonly (Store | Expr)[], all: readonly Alu[]): number {
    const alus = this.keepable.length === 0 ? all : this.#notKept(roots);
    // vectors have no instruction for a maximum that keeps NaN
    const combine = reduce?.fn === "REDUCE_MAX" && reduce.dtype.isFloat ? 2 : 0;
    return alus.reduce((n, u) => n + opCost(u.fn), combine);
  }
  #notKept(roots: readonly (Store | Expr)[]): readonly Alu[] {
    const kept = new Set<UOp | undefined>(
      this.keepable.flatMap((s) => s.consumers.map((p) => p.done.get(s.value))),
    );
    const isHere = (u: UOp): boolean => u.op !== "REDUCE" && !kept.has(u);
    return this.#arena
      .nodesFrom(roots, (u) => (isHere(u) ? u.srcs : []))
      .filter(isFloatAlu)
      .filter(isHere);
  }

  axis(id: number): Axis {
    const axis = this.axes[id];
    if (axis === undefined) throw new InternalError(`this kernel has no axis ${id}`);
    return axis;
  }
  /** The number by which OptOps name the axis. */
  number(id: number): number {
    return this.axis(id).of;
  }
  isOutput(id: number): boolean {
    return this.axis(id).kind === "output";
  }
  size(id: number): number {
    return smax(this.axis(id).size);
  }
  divides(id: number, n: number): boolean {
    return mod(this.axis(id).size, n) === 0;
  }
  /**
   * Whether `n` lanes of the axis at once make sense. If `n` does not divide the axis, the last iteration
   * computes some elements a second time.
   */
  fits(id: number, n: number): boolean {
    if (this.divides(id, n)) return true;
    const { size } = this.axis(id);
    return this.isOutput(id) && !this.inPlace && n <= smin(size) && this.waste(id, n) <= MAX_WASTE;
  }
  /** The same for an axis whose size is not known: nothing divides it. */
  fitsUnknown(id: number, n: number): boolean {
    return typeof this.axis(id).size !== "number" && this.fits(id, n);
  }
  /** The vectors that finish the axis in the fewest steps; of those that need as many, the widest. */
  widthOf(id: number): number {
    const widths = this.target.simd?.widths.filter((w) => this.fits(id, w)) ?? [];
    const useful = (w: number): number => w / this.waste(id, w);
    return widths.reduce((best, w) => (useful(w) > useful(best) ? w : best), widths[0] ?? 1);
  }
  /** How many times as much is computed if the axis is rounded up to a multiple of `n`. */
  waste(id: number, n: number): number {
    return (Math.ceil(this.size(id) / n) * n) / this.size(id);
  }

  /** The axes that a node depends on. */
  free(u: UOp): AxisIds {
    return this.#free.get(u) ?? NO_AXES;
  }
  /** Like `free`, but all axes for a node no longer in the kernel. */
  around(u: UOp | undefined): Iterable<number> {
    return (u && this.#free.get(u)) ?? this.ranges.keys();
  }
  depends(u: UOp, id: number): boolean {
    return this.free(u).has(id);
  }
  pattern(access: Load | Store, id: number): AccessPattern {
    // asked for every tile of a heuristic: no closure is made where the answer is known
    const known = this.#patterns.get(access)?.get(id);
    if (known !== undefined) return known;
    const pattern = this.#patternOf(access, id);
    getOrMake(this.#patterns, access, () => new Map<number, AccessPattern>()).set(id, pattern);
    return pattern;
  }
  #patternOf(access: Load | Store, id: number): AccessPattern {
    const range = this.ranges.get(id);
    if (range === undefined || !this.depends(access, id)) return "invariant";
    return hasUnitStride(access, range, this.target.simd) ? "unit" : "strided";
  }
  /** The part of a buffer that is read or written. */
  bytes(access: Load | Store): number {
    const { itemsize } = (access.op === "LOAD" ? access : access.value).dtype;
    return [...this.free(access)].reduce((n, id) => n * this.size(id), itemsize);
  }
  /** All operations of the kernel, roughly. */
  work(): number {
    return this.bodies.reduce((n, b) => n + b.iterations * (1 + b.weight), 0);
  }
  /** Whether there is more to do than one thread does while another wakes up. */
  isLarge(): boolean {
    return this.work() >= this.target.core.wakeOperations;
  }
}
