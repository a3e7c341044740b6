// The graph becomes a list: every node is placed in the outermost loop possible (loop-invariant code motion).
// RANGE nodes become LOOPs, or SPECIALs where they are dimensions of a grid; a REDUCE becomes an accumulator,
// its loops and a PHI; a STAGE the loops that fill an array. Comes after everything that changes the graph;
// renderers read the result from top to bottom. This is all for a target whose kernels are loops. What a grid
// and its workgroups add is in gridlinear.ts and workgrouplinear.ts, which come with renderers that have a
// grid (Target.grid).

import { dtypes, scalarOf } from "../../dtype.ts";
import { InternalError } from "../../errors.ts";
import { getOrMake } from "../../helpers.ts";
import { REDUCE } from "../../ops.ts";
import { type Sint, smax, sprod } from "../../shape/symbolic.ts";
import { UOpGraph } from "../../uop/list.ts";
import { UOpMap, UOpSet } from "../../uop/map.ts";
import {
  type Axis,
  copyUOp,
  type DefineGlobal,
  type DefineLocal,
  type DefineVar,
  type Expr,
  type Loop,
  type LoopOwner,
  type Memory,
  type Range,
  type Reduce,
  type Store,
  type TileNode,
  type UOp,
} from "../../uop/node.ts";
import { changedSrcs } from "../../uop/rewrite.ts";
import { type AxisIds, freeAxes, isReduce, NO_AXES } from "../analysis/loops.ts";
import type { KernelGraph } from "../lower/lower.ts";
import type { OptOp } from "../opt/opts.ts";
import type { Target } from "../target.ts";
import { type Accumulation, type Assign, accumulate } from "./accumulate.ts";
import { dimsOf } from "./dimensions.ts";
import { Emitter } from "./emitter.ts";

export interface LinearKernel {
  readonly uops: UOpGraph;
  /** workgroups and threads of a grid; empty where the kernel is all loops */
  readonly globalSize: readonly Sint[];
  readonly localSize: readonly number[];
}

/** Which axes are dimensions of the grid, and which are loops. */
export interface Arrangement {
  readonly grid: readonly Axis[];
  readonly loops: readonly Axis[];
}
/** What runs in the same loops. */
export interface Owners {
  readonly ranges: readonly Range[];
  readonly reduces: readonly Reduce[];
  readonly stages: readonly LoopOwner[];
}

export type Linearize = (lowered: KernelGraph, opts: readonly OptOp[], target: Target) => LinearKernel;

export const linearize: Linearize = (lowered, opts, target) =>
  (lowered.linearize ?? target.grid?.linearize ?? inLoops)(lowered, opts, target);
const inLoops: Linearize = (lowered, opts, target) => new Linearizer(lowered, opts, target).run();

export const keyOf = (ranges: readonly Range[]): string => ranges.map((r) => r.axis.id).join();

export class Linearizer {
  readonly arena;
  readonly emit: Emitter;
  readonly target: Target;
  protected readonly lowered: KernelGraph;
  protected readonly opts: readonly OptOp[];
  /** the axis whose loop THREAD makes the grid */
  readonly #thread: number | undefined;
  protected readonly list: UOpGraph;
  /** the axes a node depends on */
  readonly #free: UOpMap<AxisIds>;
  protected readonly nodes: readonly UOp[];
  protected readonly ranges = new Map<number, Range>();
  /** by the ranges they run over */
  protected readonly owners = new Map<string, LoopOwner[]>();
  /** graph node -> list node; what was placed inside a loop is forgotten when the loop closes */
  protected readonly placed: UOpMap<UOp>;
  readonly #scopes: UOp[][] = [[]];
  protected readonly open = new Set<number>();
  protected readonly globalSize: Sint[] = [];
  protected readonly localSize: number[] = [];

  constructor(lowered: KernelGraph, opts: readonly OptOp[], target: Target) {
    const { arena, sink } = lowered;
    this.lowered = lowered;
    this.arena = arena;
    this.target = target;
    this.#thread = opts.find((o) => o.op === "THREAD")?.axis;
    this.opts = opts;
    this.list = new UOpGraph(arena);
    this.emit = new Emitter(this.list);
    this.nodes = arena.nodes(sink);
    this.#free = freeAxes(sink, arena, this.ranges);
    this.placed = new UOpMap(arena);
    for (const u of this.nodes) {
      if (u.op === "REDUCE" || u.op === "STAGE") getOrMake(this.owners, keyOf(u.ranges), () => []).push(u);
    }
  }

  run(): LinearKernel {
    const globals: DefineGlobal[] = [];
    const vars: DefineVar[] = [];
    const arrays: DefineLocal[] = [];
    for (const u of this.nodes) {
      if (u.op === "DEFINE_GLOBAL") globals.push(u);
      else if (u.op === "DEFINE_VAR") vars.push(u);
      else if (u.op === "DEFINE_LOCAL") arrays.push(u);
    }
    globals.sort((a, b) => a.position - b.position);
    vars.sort((a, b) => (a.variable.name < b.variable.name ? -1 : 1));
    for (const u of [...globals, ...vars, ...arrays]) this.#put(u, u);
    const { stores } = this.lowered.sink;
    const { grid, loops } = this.arrange();
    if (grid.length > 0 && this.target.grid === undefined) this.hoist(stores);
    this.openGrid(grid);
    this.storeIn(loops, stores);
    const { list: uops, globalSize, localSize } = this;
    return { uops, globalSize, localSize };
  }

  /** The loops over the results, and the stores in them. */
  protected storeIn([axis, ...inner]: readonly Axis[], stores: readonly Store[]): void {
    if (axis !== undefined) {
      this.hoist(stores);
      const loop = this.openLoop(this.rangeOf(axis));
      this.storeIn(inner, stores);
      this.closeLoop(loop);
      return;
    }
    // all values before all stores: one output may be the old value of another
    if (stores.length > 1) for (const s of stores) this.place(s.value);
    for (const s of stores) this.#place(this.storedOnce(s));
  }

  /**
   * Axes that some reduction does not depend on go inside, so that the reduction runs once and not for each
   * of their elements.
   */
  protected arrange(): Arrangement {
    const { order } = this.lowered;
    const loops = [
      ...order.filter((a) => this.isEverywhere(a)),
      ...order.filter((a) => !this.isEverywhere(a)),
    ];
    const threads = loops.filter((a) => a.of === this.#thread && a.kind === "output");
    return { grid: threads, loops: loops.filter((a) => !threads.includes(a)) };
  }
  /** All reductions and filled arrays depend on the axis. */
  protected isEverywhere(axis: Axis): boolean {
    for (const owners of this.owners.values()) if (!owners.every((r) => this.isIn(axis, r))) return false;
    return true;
  }

  protected rangeOf(axis: Axis): Range {
    const range = this.ranges.get(axis.id);
    if (range === undefined) throw new InternalError(`axis ${axis.id} has no loop`);
    return range;
  }
  protected freeOf(u: UOp): AxisIds {
    return this.#free.get(u) ?? NO_AXES;
  }
  protected isIn(axis: Axis, u: UOp): boolean {
    return this.freeOf(u).has(axis.id);
  }
  /** All loops that the node depends on are open. */
  protected isReady(u: UOp): boolean {
    for (const axis of this.freeOf(u)) if (!this.open.has(axis)) return false;
    return true;
  }

  // ---- placing ----

  /** Until the loop closes, this node of the list stands for that of the graph. */
  protected know(graph: UOp, made: UOp): void {
    this.placed.set(graph, made);
    this.#scopes.at(-1)?.push(graph);
  }
  #put(graph: UOp, made: UOp): UOp {
    this.list.push(made);
    this.know(graph, made);
    return made;
  }
  isPlaced(u: UOp): boolean {
    return this.placed.has(u);
  }

  /** Places a node and what it needs, here; the loops it depends on are open. */
  place(u: Expr): Expr;
  place(u: Memory): Memory;
  place(u: UOp): UOp {
    return this.#place(u);
  }
  #place(u: UOp): UOp {
    const known = this.placed.get(u);
    if (known !== undefined) return known;
    if (u.op === "RANGE") throw new InternalError(`axis ${u.axis.id} has no loop here`);
    if (u.op === "REDUCE" || u.op === "STAGE") return this.placeOwner(u);
    if (u.op === "TILE") return this.placeTile(u);
    // the value of a STORE is placed first, with its loop and accumulator; the address follows
    if (u.op === "STORE") this.place(u.value);
    const srcs = changedSrcs(u, this.placeSrc);
    // not interned: nothing is left to fold, and each loop has its own copy of a node
    return this.#put(u, srcs === undefined ? u : copyUOp(u, this.sourcesHere(u, srcs)));
  }
  protected readonly placeSrc = (s: UOp): UOp => this.#place(s);

  /** Loop-invariant code motion: places, before a loop is opened, all that does not depend on it. */
  protected hoist(roots: readonly UOp[]): void {
    const seen = new UOpSet(this.arena);
    const visit = (u: UOp): void => {
      if (seen.has(u) || this.placed.has(u)) return;
      seen.add(u);
      if (u.op !== "STORE" && this.isReady(u)) this.#place(u);
      else for (let i = 0; i < u.srcs.length; i++) visit(u.srcs[i]!);
    };
    for (const r of roots) visit(r);
  }

  // ---- what has loops of its own ----

  /**
   * A reduction, and with it what runs over the same ranges: one set of loops, an accumulator or an array
   * each.
   */
  protected placeOwner(first: LoopOwner): UOp {
    const { ranges } = first;
    const ready = this.#together(first);
    const reduces = ready.filter(isReduce);
    const stages = ready.filter((r) => !isReduce(r));
    const accumulations = reduces.map((reduce) => {
      const { dtype, fn } = reduce;
      const initial = REDUCE[fn].identity(scalarOf(dtype));
      return { reduce, accumulator: this.emit.accumulator(dtype, initial) };
    });
    const bodies = reduces.map((r) => r.body);
    const stores = stages.flatMap((r) => r.stores);
    const loops = ranges.map((r) => {
      this.hoist([...bodies, ...stores, ...ranges]);
      return this.openLoopOf(r, { ranges, reduces, stages });
    });
    // before the sums: a product that is stored is not fused into one of them
    for (const s of stores) this.#place(s);
    const phis = this.accumulate(accumulations, (acc, sum) => this.emit.phi(acc, sum, ...loops));
    for (const loop of loops.toReversed()) this.closeLoop(loop);
    for (const r of ready) {
      const made = isReduce(r) ? phis[reduces.indexOf(r)] : this.placed.get(r.array);
      if (made !== undefined) this.know(r, made);
    }
    return this.known(first);
  }
  protected known(u: UOp): UOp {
    const made = this.placed.get(u);
    if (made === undefined) throw new InternalError(`${u.op} was not placed`);
    return made;
  }
  /**
   * Loop fusion: what can run in the loops of `first`. Not what reads an array that these loops fill, nor
   * what fills an array that they read.
   */
  #together(first: LoopOwner): LoopOwner[] {
    const all = this.owners.get(keyOf(first.ranges)) ?? [];
    const ready = all.filter((r) => r === first || (!this.placed.has(r) && this.isReady(r)));
    if (ready.every(isReduce)) return ready;
    const needs = (a: UOp, b: UOp): boolean => this.arena.nodes(a).includes(b);
    const chosen = [first];
    for (const r of ready) if (!chosen.some((c) => c === r || needs(c, r) || needs(r, c))) chosen.push(r);
    return chosen;
  }

  // ---- what a grid and its workgroups do otherwise (gridlinear.ts, workgrouplinear.ts) ----

  /** The store of a result. Where several threads have it, one of them stores it. */
  protected storedOnce(store: Store): Store {
    return store;
  }
  protected placeTile(tile: TileNode): UOp {
    throw new InternalError(`${this.target.name} has no ${tile.op}`);
  }
  /** The sources of a node of the list, which are placed. */
  protected sourcesHere(_: UOp, srcs: readonly UOp[]): readonly UOp[] {
    return srcs;
  }
  /** Opens a loop of `owners`. */
  protected openLoopOf(range: Range, _owners: Owners): Loop {
    return this.openLoop(range);
  }
  /** What one iteration does to the accumulators. */
  protected accumulate(all: readonly Accumulation[], assign: Assign): UOp[] {
    return accumulate(all, this, assign);
  }

  // ---- loops and the grid ----

  protected openLoop(range: Range): Loop {
    const ends = [this.place(range.start), this.place(range.end)];
    const loop = this.list.add("LOOP", range.dtype, ends) as Loop;
    this.#scopes.push([]);
    this.know(range, loop);
    this.open.add(range.axis.id);
    return loop;
  }
  protected closeLoop(loop: Loop): void {
    this.list.add("ENDLOOP", undefined, [loop]);
    for (const u of this.#scopes.pop() ?? []) {
      if (u.op === "RANGE") this.open.delete(u.axis.id);
      this.placed.delete(u);
    }
  }

  /** Axes as the dimensions of a grid, innermost first; those without a dimension of their own share one. */
  protected openGrid(axes: readonly Axis[]): void {
    this.openDims(axes, "gidx", this.globalSize, this.target.globalMax);
  }
  protected openDims(
    axes: readonly Axis[],
    name: string,
    sizes: Sint[],
    limits: readonly number[],
    reorder: (specials: readonly Expr[]) => readonly Expr[] = (specials) => specials,
  ): void {
    const dims = dimsOf(axes, limits);
    const specials = dims.map((members) => this.openDim(members, name, sizes));
    const indexes = reorder(specials);
    dims.forEach((members, dim) => {
      const index = indexes[dim];
      if (index !== undefined) this.#unflatten(members, index);
    });
  }
  /** One dimension for these axes; gives the index along it. */
  protected openDim(axes: readonly Axis[], name: string, sizes: Sint[]): Expr {
    return this.special(sprod(axes.map((a) => a.size)), name, sizes);
  }
  protected special(size: Sint, name: string, sizes: Sint[]): Expr {
    const dim = sizes.push(size) - 1;
    return this.list.add("SPECIAL", dtypes.int32, [], [dim, `${name}${dim}`, smax(size)]);
  }
  /** Takes one number apart into the indexes of axes, innermost first. */
  #unflatten(axes: readonly Axis[], all: Expr): void {
    let rest = all;
    for (const a of axes) {
      if (a === axes.at(-1)) {
        this.#bind(a, rest);
        break;
      }
      const size = this.place(this.rangeOf(a).end);
      this.#bind(a, this.list.add("ALU", dtypes.int32, [rest, size], "MOD"));
      rest = this.list.add("ALU", dtypes.int32, [rest, size], "IDIV");
    }
  }
  #bind(axis: Axis, index: Expr): void {
    this.placed.set(this.rangeOf(axis), index);
    this.open.add(axis.id);
  }
}
