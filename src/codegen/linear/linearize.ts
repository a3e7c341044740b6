// The graph becomes a list: every node is placed in the outermost loop it can stand in (loop-invariant code
// motion). RANGE nodes become LOOPs, or SPECIALs where the target runs a grid; a REDUCE becomes an
// accumulator, its loops and a PHI; a STAGE the loops that fill an array. Comes after everything that changes
// the graph; renderers read the result from top to bottom.

import { dtypes, scalarOf } from "../../dtype.ts";
import { ArgumentError, InternalError } from "../../errors.ts";
import { getOrMake, toposort } from "../../helpers.ts";
import { REDUCE } from "../../ops.ts";
import { type Sint, smax, sprod } from "../../shape/symbolic.ts";
import { isThread } from "../../uop/axis.ts";
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
  withIndex,
} from "../../uop/node.ts";
import { changedSrcs } from "../../uop/rewrite.ts";
import { type AxisIds, freeAxes, isReduce, NO_AXES } from "../analysis/loops.ts";
import type { KernelGraph } from "../lower/lower.ts";
import { type OptOp, showOpts } from "../opt/opts.ts";
import type { Target } from "../target.ts";
import { accumulate, termsOf } from "./accumulate.ts";
import { AsyncCopies } from "./asynccopy.ts";
import { Emitter } from "./emitter.ts";
import { type AccessCount, dimsOf, inStrips, nearestLast } from "./grid.ts";
import { inStage, readsFrom, SoftwarePipeline } from "./pipeline.ts";
import { combineThreads, type ThreadAxis } from "./workgroup.ts";

export interface Linear {
  readonly uops: UOpGraph;
  /** workgroups and threads of a grid; empty where the kernel is all loops */
  readonly globalSize: readonly Sint[];
  readonly localSize: readonly number[];
}

export function linearize(lowered: KernelGraph, opts: readonly OptOp[], target: Target): Linear {
  return new Linearizer(lowered, opts, target).run();
}

const keyOf = (ranges: readonly Range[]): string => ranges.map((r) => r.axis.id).join();

class Linearizer {
  readonly arena;
  readonly emit: Emitter;
  readonly target: Target;
  readonly #lowered: KernelGraph;
  readonly #opts: readonly OptOp[];
  /** the axis whose loop is the grid of a target that has none of its own */
  readonly #thread: number | undefined;
  readonly #list: UOpGraph;
  /** the axes a node depends on */
  readonly #free: UOpMap<AxisIds>;
  readonly #nodes: readonly UOp[];
  readonly #ranges = new Map<number, Range>();
  /** by the ranges they run over */
  readonly #owners = new Map<string, LoopOwner[]>();
  /** graph node -> list node; what was placed inside a loop is forgotten when the loop closes */
  readonly #placed: UOpMap<UOp>;
  readonly #scopes: UOp[][] = [[]];
  readonly #open = new Set<number>();
  readonly #global: Sint[] = [];
  readonly #local: number[] = [];
  /** the axes of the workgroup, innermost first */
  readonly #threads: Axis[] = [];
  /** where in its shared memory a tile has the stage that this iteration computes with */
  readonly #stages = new Map<TileNode, Expr>();
  /** of the loop that was opened last, if its iterations read the operands of the next */
  #pipeline: SoftwarePipeline | undefined;
  /** how many axes are open that are not loops */
  #gridAxes = 0;

  constructor(lowered: KernelGraph, opts: readonly OptOp[], target: Target) {
    const { arena, sink } = lowered;
    this.#lowered = lowered;
    this.arena = arena;
    this.target = target;
    this.#thread = opts.findLast((o) => o.op === "THREAD")?.axis;
    this.#opts = opts;
    this.#list = new UOpGraph(arena);
    this.emit = new Emitter(this.#list);
    this.#nodes = arena.nodes(sink);
    this.#free = freeAxes(sink, arena, this.#ranges);
    this.#placed = new UOpMap(arena);
    for (const u of this.#nodes) {
      if (u.op === "REDUCE" || u.op === "STAGE") getOrMake(this.#owners, keyOf(u.ranges), () => []).push(u);
    }
  }

  run(): Linear {
    const globals: DefineGlobal[] = [];
    const vars: DefineVar[] = [];
    const arrays: DefineLocal[] = [];
    for (const u of this.#nodes) {
      if (u.op === "DEFINE_GLOBAL") globals.push(u);
      else if (u.op === "DEFINE_VAR") vars.push(u);
      else if (u.op === "DEFINE_LOCAL") arrays.push(u);
    }
    globals.sort((a, b) => a.position - b.position);
    vars.sort((a, b) => (a.variable.name < b.variable.name ? -1 : 1));
    for (const u of [...globals, ...vars, ...arrays]) this.#put(u, u);
    const { stores } = this.#lowered.sink;
    const { grid, loops } = this.#arrange();
    if (grid.length > 0 && !this.target.hasLocal) this.#hoist(stores);
    this.#openGrid(grid);
    const opened = loops.map((axis) => {
      this.#hoist(stores);
      return this.#openLoop(this.#rangeOf(axis));
    });
    // all that is read, then all that is written: one output may be the old value of another
    if (stores.length > 1) for (const s of stores) this.place(s.value);
    for (const s of stores) this.#place(this.#storedOnce(s));
    for (const loop of opened.reverse()) this.#close(loop);
    this.#requireShared();
    return { uops: this.#list, globalSize: this.#global, localSize: this.#local };
  }

  /**
   * Axes that some reduction does not depend on go inside, so that the reduction runs once and not for each
   * of their elements; there they are loops even where the target has a grid.
   */
  #arrange(): { grid: readonly Axis[]; loops: readonly Axis[] } {
    // a reduction that folded away leaves nothing for its threads
    const order = this.#lowered.order.filter((a) => a.kind !== "top" || this.#ranges.has(a.id));
    const owners = [...this.#owners.values()].flat();
    const everywhere = (a: Axis): boolean => owners.every((r) => this.#isIn(a, r));
    if (this.target.hasLocal) {
      const grid = order.filter((a) => isThread(a) || everywhere(a));
      return { grid, loops: order.filter((a) => !grid.includes(a)) };
    }
    const loops = [...order.filter(everywhere), ...order.filter((a) => !everywhere(a))];
    const threads = loops.filter((a) => a.of === this.#thread && a.kind === "output");
    return { grid: threads, loops: loops.filter((a) => !threads.includes(a)) };
  }

  /** Arrays of a target without workgroups lie where they find room. */
  #requireShared(): void {
    const { hasLocal, sharedMax, name } = this.target;
    let bytes = 0;
    for (const u of this.#list) if (u.op === "DEFINE_LOCAL") bytes += u.elements * u.dtype.base.itemsize;
    if (hasLocal && bytes > sharedMax) {
      throw new ArgumentError(
        `${showOpts(this.#opts)}: the kernel takes ${bytes} bytes of shared memory, ${name} has ${sharedMax}; use smaller amounts`,
      );
    }
  }

  #rangeOf(axis: Axis): Range {
    const range = this.#ranges.get(axis.id);
    if (range === undefined) throw new InternalError(`axis ${axis.id} is used nowhere`);
    return range;
  }
  #freeOf(u: UOp): AxisIds {
    return this.#free.get(u) ?? NO_AXES;
  }
  #isIn(axis: Axis, u: UOp): boolean {
    return this.#freeOf(u).has(axis.id);
  }
  /** All loops that the node depends on are open. */
  #isReady(u: UOp): boolean {
    for (const axis of this.#freeOf(u)) if (!this.#open.has(axis)) return false;
    return true;
  }

  // ---- placing ----

  /** A node of the list stands for one of the graph until the loop closes. */
  #know(graph: UOp, made: UOp): void {
    this.#placed.set(graph, made);
    this.#scopes.at(-1)?.push(graph);
  }
  #put(graph: UOp, made: UOp): UOp {
    this.#list.push(made);
    this.#know(graph, made);
    return made;
  }
  isPlaced(u: UOp): boolean {
    return this.#placed.has(u);
  }

  /** Places a node and what it needs, here; the loops it depends on are open. */
  place(u: Expr): Expr;
  place(u: Memory): Memory;
  place(u: UOp): UOp {
    return this.#place(u);
  }
  #place(u: UOp): UOp {
    const known = this.#placed.get(u);
    if (known !== undefined) return known;
    if (u.op === "RANGE") throw new InternalError(`axis ${u.axis.id} is used outside its loop`);
    if (u.op === "REDUCE" || u.op === "STAGE") return this.#placeOwner(u);
    if (u.op === "TILE") return this.#placeTiles([u]);
    // a STORE reads best value first: the accumulator and its loop, then the address
    if (u.op === "STORE") this.place(u.value);
    const srcs = changedSrcs(u, this.#placeSrc);
    // nothing is left to fold, and the loops make each node the only one of its kind
    return this.#put(u, srcs === undefined ? u : copyUOp(u, this.#inStage(u, srcs)));
  }
  /** Of an access to a tile: the index goes to the stage of this iteration. */
  #inStage(u: UOp, srcs: readonly UOp[]): readonly UOp[] {
    if ((u.op !== "LOAD" && u.op !== "LDMATRIX") || u.buffer.op !== "TILE") return srcs;
    const offset = this.#stages.get(u.buffer);
    return withIndex(srcs, (index) => inStage(index, offset, this.#list));
  }
  readonly #placeSrc = (s: UOp): UOp => this.#place(s);

  /**
   * Of threads that have the same result one stores it, if they all read at such places too: there may be the
   * old value of what is stored, and a thread that comes late would compute with the new one.
   */
  #storedOnce(store: Store): Store {
    const alike = this.#threads.filter((a) => !this.#isIn(a, store));
    const isRead = (u: UOp): boolean =>
      u.op === "LOAD" && u.buffer.op === "DEFINE_GLOBAL" && !alike.some((a) => this.#isIn(a, u));
    if (alike.length === 0 || !this.#nodes.some(isRead)) return store;
    const { arena } = this;
    const firsts = alike.map((a) => arena.alu("CMPLT", this.#rangeOf(a), arena.int(1)));
    const gates = store.gate === undefined ? firsts : [store.gate, ...firsts];
    return arena.store(store.buffer, store.index, store.value, arena.and(gates));
  }

  /** Loop-invariant code motion: places, before a loop is opened, all that does not depend on it. */
  #hoist(roots: readonly UOp[]): void {
    const seen = new UOpSet(this.arena);
    const visit = (u: UOp): void => {
      if (seen.has(u) || this.#placed.has(u)) return;
      seen.add(u);
      if (u.op !== "STORE" && this.#isReady(u)) this.#place(u);
      else for (let i = 0; i < u.srcs.length; i++) visit(u.srcs[i]!);
    };
    for (const r of roots) visit(r);
  }

  // ---- what has loops of its own ----

  /**
   * A reduction, and with it what runs over the same ranges: one set of loops,
   * an accumulator or an array each.
   */
  #placeOwner(first: LoopOwner): UOp {
    const { ranges } = first;
    if (isReduce(first) && this.#isShared(first)) return this.#placeShared(first);
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
      this.#hoist([...bodies, ...stores, ...ranges]);
      const tiles = this.#tilesOf(bodies, r);
      if (tiles.length === 0) return this.#openLoop(r);
      const isInnermost = r === ranges.at(-1) && stages.length === 0;
      return this.#openTiledLoop(tiles, r, isInnermost ? this.#firstOperands(reduces) : []);
    });
    // before the sums: a product that is stored is not fused into one of them
    for (const s of stores) this.#place(s);
    const pipeline = this.#pipeline;
    this.#pipeline = undefined;
    const phis = accumulate(accumulations, this, pipeline, (acc, sum) => this.emit.phi(acc, sum, ...loops));
    for (const loop of loops.toReversed()) this.#close(loop);
    for (const r of ready) {
      const made = isReduce(r) ? phis[reduces.indexOf(r)] : this.#placed.get(r.array);
      if (made !== undefined) this.#know(r, made);
    }
    return this.#known(first);
  }
  #known(u: UOp): UOp {
    const made = this.#placed.get(u);
    if (made === undefined) throw new InternalError(`${u.op} was not placed with its loops`);
    return made;
  }
  /**
   * What can run in the loops of `first`: nothing that waits for an array that these
   * loops fill, or fills one they read.
   */
  #together(first: LoopOwner): LoopOwner[] {
    const all = this.#owners.get(keyOf(first.ranges)) ?? [];
    const ready = all.filter((r) => r === first || (!this.#placed.has(r) && this.#isReady(r)));
    if (ready.every(isReduce)) return ready;
    const needs = (a: UOp, b: UOp): boolean => toposort([a], (x) => x.srcs).includes(b);
    const chosen = [first];
    for (const r of ready) if (!chosen.some((c) => c === r || needs(c, r) || needs(r, c))) chosen.push(r);
    return chosen;
  }

  // ---- tiles in shared memory ----

  /** The parts of buffers that move with this loop. */
  #tilesOf(bodies: readonly Expr[], loop: Range): TileNode[] {
    const below = toposort<UOp>(bodies, (u) => (this.#placed.has(u) ? [] : u.srcs));
    return below.filter((u) => u.op === "TILE").filter((u) => u.loop === loop);
  }
  #copiesTo(tiles: readonly TileNode[]): { copies: AsyncCopies; locals: Map<TileNode, DefineLocal> } {
    const copies = new AsyncCopies(this.emit, this.#threadAxes());
    const locals = new Map<TileNode, DefineLocal>();
    for (const t of tiles) locals.set(t, copies.prepare(t, this.place(t.buffer), this.place(t.base)));
    return { copies, locals };
  }
  /** Tiles that do not move with a loop are copied here; gives the memory of the first. */
  #placeTiles(tiles: readonly TileNode[]): UOp {
    const { copies, locals } = this.#copiesTo(tiles);
    copies.start(undefined, this.#isInLoop());
    for (const [tile, local] of locals) this.#know(tile, local);
    return this.#known(tiles[0] as TileNode);
  }
  /**
   * Opens the loop that these tiles move with. `operands`: what an iteration starts with,
   * if the one before is to read it.
   */
  #openTiledLoop(tiles: readonly TileNode[], range: Range, operands: readonly Expr[]): Loop {
    const isInLoop = this.#isInLoop();
    const { copies, locals } = this.#copiesTo(tiles);
    const end = this.place(range.end);
    copies.start(end, isInLoop);
    const early = tiles.every((t) => t.tile.stages > 1) ? operands.filter((u) => readsFrom(u, tiles)) : [];
    const pipeline =
      early.length > 0 ? new SoftwarePipeline(this.emit, copies, locals, this.#placeSrc) : undefined;
    pipeline?.prologue(early);
    const loop = this.#openLoop(range);
    for (const [tile, local] of locals) this.#know(tile, local);
    const offsets = pipeline === undefined ? copies.iteration(loop, end) : copies.currentStage();
    tiles.forEach((t, i) => {
      const offset = offsets[i];
      if (offset !== undefined) this.#stages.set(t, offset);
    });
    for (const [operand, acc] of pipeline?.carried ?? []) this.#know(operand, acc);
    pipeline?.enter(loop, end);
    this.#pipeline = pipeline;
    return loop;
  }
  /** What the first products of an iteration multiply. */
  #firstOperands(reduces: readonly Reduce[]): Expr[] {
    const firsts = reduces.map((r) => termsOf(r, this)[0]);
    const products = firsts.filter((t) => t?.op === "WMMA");
    return products.length < firsts.length ? [] : [...new Set(products.flatMap((t) => [t.a, t.b]))];
  }
  #isInLoop(): boolean {
    return this.#open.size > this.#gridAxes;
  }

  // ---- reductions that the threads of a workgroup share ----

  /** The axes of the workgroup, innermost first. */
  #threadAxes(): ThreadAxis[] {
    return this.#threads.map((a) => ({ index: this.place(this.#rangeOf(a)), size: smax(a.size) }));
  }
  #isShared(reduce: Reduce): boolean {
    return reduce.ranges.some((r) => isThread(r.axis));
  }
  /**
   * Reductions over the threads of the workgroup; those that can be done together wait for each other once.
   */
  #placeShared(first: Reduce): UOp {
    const { ranges } = first;
    // what it needs may be another reduction over the same threads
    this.place(first.body);
    const ready = (this.#owners.get(keyOf(ranges)) ?? [])
      .filter(isReduce)
      .filter((r) => !this.#placed.has(r) && this.#isReady(r) && this.#isNear(r, first));
    const parts = ready.map((reduce) => ({ reduce, value: this.place(reduce.body) }));
    const shared = new Set(ranges.map((r) => r.axis.id));
    const axes = this.#threadAxes().map((axis, i) => {
      const { id } = this.#threads[i] ?? { id: -1 };
      return { ...axis, shares: shared.has(id) };
    });
    const group = { axes, gpu: this.target.gpu, isInLoop: this.#isInLoop(), emit: this.emit };
    combineThreads(parts, group).forEach((total, i) => {
      const { reduce } = parts[i] ?? { reduce: first };
      this.#know(reduce, total);
    });
    return this.#known(first);
  }
  /** A reduction that needs another, or more loops than are open, comes later. */
  #isNear(r: Reduce, first: Reduce): boolean {
    if (r === first) return true;
    return !toposort<UOp>([r.body], (u) => (this.#placed.has(u) ? [] : u.srcs)).some(
      (u) => u.op === "REDUCE" && this.#isShared(u) && !this.#placed.has(u),
    );
  }

  // ---- loops and the grid ----

  #openLoop(range: Range): Loop {
    const ends = [this.place(range.start), this.place(range.end)];
    const loop = this.#list.add("LOOP", dtypes.int32, ends) as Loop;
    this.#scopes.push([]);
    this.#know(range, loop);
    this.#open.add(range.axis.id);
    return loop;
  }
  #close(loop: Loop): void {
    this.#list.add("ENDLOOP", undefined, [loop]);
    for (const u of this.#scopes.pop() ?? []) {
      if (u.op === "RANGE") this.#open.delete(u.axis.id);
      this.#placed.delete(u);
    }
  }

  /** Axes as the dimensions of a grid, innermost first; those without a dimension of their own share one. */
  #openGrid(axes: readonly Axis[]): void {
    const groups = axes.filter((a) => !isThread(a));
    const unsorted = axes.filter(isThread);
    const threads =
      unsorted.length < 2 ? unsorted : nearestLast(unsorted, this.#accesses(axes), (a) => this.#rangeOf(a));
    const { globalMax, localMax, name } = this.target;
    this.#openDims(groups, "gidx", this.#global, globalMax);
    this.#openDims(threads, "lidx", this.#local, localMax);
    this.#threads.push(...threads.toReversed());
    const width = threads.reduce((n, a) => n * smax(a.size), 1);
    const most = Math.max(...localMax);
    if (threads.length > 0 && width > most) {
      throw new ArgumentError(
        `${showOpts(this.#opts)}: workgroups of ${width} threads; ${name} takes up to ${most}; use smaller amounts`,
      );
    }
    this.#gridAxes = axes.length;
  }
  /** What the kernel loads and stores, and how often a thread of the grid does. */
  #accesses(grid: readonly Axis[]): AccessCount[] {
    const ids = new Set(grid.map((a) => a.id));
    const sizes = new Map(this.#lowered.axes.map((a) => [a.id, smax(a.size)]));
    return this.#nodes
      .filter((u) => u.op === "LOAD" || u.op === "STORE")
      .map((u) => {
        const loops = [...this.#freeOf(u)].filter((id) => !ids.has(id));
        return { index: u.index, times: loops.reduce((n, id) => n * (sizes.get(id) ?? 1), 1) };
      });
  }
  #openDims(axes: readonly Axis[], name: string, sizes: Sint[], limits: readonly number[]): void {
    const dims = dimsOf(axes, limits);
    const specials = dims.map((members, dim) => {
      const size = sprod(members.map((a) => a.size));
      sizes.push(size);
      return this.#list.add("SPECIAL", dtypes.int32, [], [dim, `${name}${dim}`, smax(size)]);
    });
    const isProduct = name === "gidx" && this.#nodes.some((u) => u.op === "WMMA");
    const units = this.target.gpu?.computeUnits ?? Infinity;
    const indexes = isProduct ? inStrips(specials, sizes, units, this.#list) : specials;
    dims.forEach((members, dim) => {
      const index = indexes[dim];
      if (index !== undefined) this.#unflatten(members, index);
    });
  }
  /** The indexes of axes, innermost first, out of one number. */
  #unflatten(axes: readonly Axis[], all: Expr): void {
    let rest = all;
    for (const a of axes) {
      if (a === axes.at(-1)) {
        this.#bind(a, rest);
        break;
      }
      const size = this.place(this.#rangeOf(a).end);
      this.#bind(a, this.#list.add("ALU", dtypes.int32, [rest, size], "MOD"));
      rest = this.#list.add("ALU", dtypes.int32, [rest, size], "IDIV");
    }
  }
  #bind(axis: Axis, index: Expr): void {
    this.#placed.set(this.#rangeOf(axis), index);
    this.#open.add(axis.id);
  }
}
