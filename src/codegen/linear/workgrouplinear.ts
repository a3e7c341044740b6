// Linearize for kernels whose workgroups have threads: these share reductions (workgroup.ts) and tiles in
// shared memory (tilecopies.ts), and an iteration may read the operands of the next (pipeline.ts). A renderer
// with a grid puts GRID into Target.grid.

import { ArgumentError } from "../../errors.ts";
import { toposort } from "../../helpers.ts";
import { smax } from "../../shape/symbolic.ts";
import { isThread } from "../../uop/axis.ts";
import { roomOfResults } from "../../uop/matrix.ts";
import {
  type Axis,
  type DefineLocal,
  type Expr,
  isLoad,
  type Loop,
  type LoopOwner,
  type Range,
  type Reduce,
  type Store,
  type TileNode,
  type UOp,
  withIndex,
} from "../../uop/node.ts";
import { isReduce } from "../analysis/loops.ts";
import { showOpts } from "../opt/opts.ts";
import { coalesce } from "../passes/coalesce.ts";
import type { Grid } from "../target.ts";
import { type Accumulation, type Assign, termsOf } from "./accumulate.ts";
import { type AccessCount, inStrips, nearestLast } from "./grid.ts";
import { GridLinearizer } from "./gridlinear.ts";
import { keyOf, type LinearKernel, type Owners } from "./linearize.ts";
import { matrixProducts } from "./matrixproducts.ts";
import { inStage, readsFrom, SoftwarePipeline } from "./pipeline.ts";
import { StagedCopies } from "./stagedcopies.ts";
import { combineThreads, type ThreadAxis } from "./workgroup.ts";

class WorkgroupLinearizer extends GridLinearizer {
  /** the axes of the workgroup, innermost first */
  readonly #threads: Axis[] = [];
  /** the offset in shared memory of the stage of a tile that this iteration reads */
  readonly #stages = new Map<TileNode, Expr>();
  /** the copies that an iteration of a loop makes */
  readonly #copies = new Map<Loop, StagedCopies>();
  /** of the loop that was opened last, if it is software-pipelined */
  #pipeline: SoftwarePipeline | undefined;
  /** how many axes are open that are not loops */
  #gridAxes = 0;

  override run(): LinearKernel {
    const made = super.run();
    this.#requireShared();
    return made;
  }

  protected override openGrid(axes: readonly Axis[]): void {
    super.openGrid(axes);
    const unsorted = axes.filter(isThread);
    const threads =
      unsorted.length < 2 ? unsorted : nearestLast(unsorted, this.#accesses(axes), (a) => this.rangeOf(a));
    const { localMax, name } = this.target;
    this.openDims(threads, "lidx", this.localSize, localMax);
    this.#threads.push(...threads.toReversed());
    const width = threads.reduce((n, a) => n * smax(a.size), 1);
    const most = Math.max(...localMax);
    if (threads.length > 0 && width > most) {
      throw new ArgumentError(
        `${showOpts(this.opts)}: workgroups of ${width} threads; ${name} takes up to ${most}; use smaller amounts`,
      );
    }
    this.#gridAxes = axes.length;
  }
  /** Products of matrices go through large grids in strips. */
  protected override inOrder(specials: readonly Expr[]): readonly Expr[] {
    if (!this.nodes.some((u) => u.op === "WMMA")) return specials;
    return inStrips(specials, this.globalSize, this.target.gpu?.computeUnits ?? Infinity, this.list);
  }

  /**
   * Where several threads have the same result and also read its location, only the first stores it: a late
   * thread would otherwise read the new value.
   */
  protected override storedOnce(store: Store): Store {
    return super.storedOnce(this.#storedByFirst(store));
  }
  #storedByFirst(store: Store): Store {
    const alike = this.#threads.filter((a) => !this.isIn(a, store));
    const isRead = (u: UOp): boolean =>
      u.op === "LOAD" && u.buffer.op === "DEFINE_GLOBAL" && !alike.some((a) => this.isIn(a, u));
    if (alike.length === 0 || !this.nodes.some(isRead)) return store;
    const { arena } = this;
    const firsts = alike.map((a) => arena.alu("CMPLT", this.rangeOf(a), arena.int(1)));
    const gates = store.gate === undefined ? firsts : [store.gate, ...firsts];
    return arena.store(store.buffer, store.index, store.value, arena.and(gates));
  }

  // ---- tiles in shared memory ----

  /** A tile that does not move with a loop is copied here. */
  protected override placeTile(tile: TileNode): UOp {
    const { copies, locals } = this.#copiesTo([tile]);
    copies.start(undefined, this.#isInLoop());
    for (const [t, local] of locals) this.know(t, local);
    return this.known(tile);
  }
  /** For an access to a tile: adds the offset of this iteration's stage to the index. */
  protected override sourcesHere(u: UOp, srcs: readonly UOp[]): readonly UOp[] {
    if (!isLoad(u) || u.buffer.op !== "TILE") return srcs;
    const offset = this.#stages.get(u.buffer);
    return withIndex(srcs, (index) => inStage(index, offset, this.list));
  }
  protected override openLoopOf(range: Range, { ranges, reduces, stages }: Owners): Loop {
    const tiles = this.#tilesOf(
      reduces.map((r) => r.body),
      range,
    );
    if (tiles.length === 0) return this.openLoop(range);
    const isInnermost = range === ranges.at(-1) && stages.length === 0;
    return this.#openTiledLoop(tiles, range, isInnermost ? this.#firstOperands(reduces) : []);
  }
  protected override closeLoop(loop: Loop): void {
    this.#copies.get(loop)?.finish();
    super.closeLoop(loop);
  }
  /** Products of matrices are software-pipelined. */
  protected override accumulate(all: readonly Accumulation[], assign: Assign): UOp[] {
    const pipeline = this.#pipeline;
    this.#pipeline = undefined;
    return matrixProducts(all, this, pipeline, assign) ?? super.accumulate(all, assign);
  }

  /** The parts of buffers that move with this loop. */
  #tilesOf(bodies: readonly Expr[], loop: Range): TileNode[] {
    const below = toposort<UOp>(bodies, (u) => (this.placed.has(u) ? [] : u.srcs));
    return below.filter((u) => u.op === "TILE").filter((u) => u.loop === loop);
  }
  #copiesTo(tiles: readonly TileNode[]): { copies: StagedCopies; locals: Map<TileNode, DefineLocal> } {
    const copies = new StagedCopies(this, this.#threadAxes(), this.target.gpu?.hasAsyncCopy === true);
    const locals = new Map<TileNode, DefineLocal>();
    for (const t of tiles) locals.set(t, copies.prepare(t));
    return { copies, locals };
  }
  /**
   * Opens the loop that these tiles move with. `operands`: what an iteration multiplies first, for software
   * pipelining.
   */
  #openTiledLoop(tiles: readonly TileNode[], range: Range, operands: readonly Expr[]): Loop {
    const isInLoop = this.#isInLoop();
    const { copies, locals } = this.#copiesTo(tiles);
    const end = this.place(range.end);
    copies.start(end, isInLoop);
    const early = tiles.every((t) => t.tile.stages > 1) ? operands.filter((u) => readsFrom(u, tiles)) : [];
    const pipeline =
      early.length > 0 && this.target.gpu?.hasAsyncCopy === true
        ? new SoftwarePipeline(this.emit, copies, locals, this.placeSrc)
        : undefined;
    pipeline?.prologue(early);
    const loop = this.openLoop(range);
    this.#copies.set(loop, copies);
    for (const [tile, local] of locals) this.know(tile, local);
    const offsets = pipeline?.currentStage() ?? copies.iteration(loop, end);
    tiles.forEach((t, i) => {
      const offset = offsets[i];
      if (offset !== undefined) this.#stages.set(t, offset);
    });
    for (const [operand, acc] of pipeline?.carried ?? []) this.know(operand, acc);
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
    return this.open.size > this.#gridAxes;
  }

  // ---- reductions that the threads of a workgroup share ----

  protected override placeOwner(first: LoopOwner): UOp {
    return isReduce(first) && this.#isShared(first) ? this.#placeShared(first) : super.placeOwner(first);
  }
  /** The axes of the workgroup, innermost first. */
  #threadAxes(): ThreadAxis[] {
    return this.#threads.map((a) => ({ index: this.place(this.rangeOf(a)), size: smax(a.size) }));
  }
  #isShared(reduce: Reduce): boolean {
    return reduce.ranges.some((r) => isThread(r.axis));
  }
  /** Reductions over the threads of the workgroup; those that can be done together share their barriers. */
  #placeShared(first: Reduce): UOp {
    const { ranges } = first;
    // what it needs may be another reduction over the same threads
    this.place(first.body);
    const ready = (this.owners.get(keyOf(ranges)) ?? [])
      .filter(isReduce)
      .filter((r) => !this.placed.has(r) && this.isReady(r) && this.#isNear(r, first));
    const parts = ready.map((reduce) => ({ reduce, value: this.place(reduce.body) }));
    const shared = new Set(ranges.map((r) => r.axis.id));
    const axes = this.#threadAxes().map((axis, i) => {
      const { id } = this.#threads[i] ?? { id: -1 };
      return { ...axis, shares: shared.has(id) };
    });
    const group = { axes, gpu: this.target.gpu, isInLoop: this.#isInLoop(), emit: this.emit };
    combineThreads(parts, group).forEach((total, i) => {
      const { reduce } = parts[i] ?? { reduce: first };
      this.know(reduce, total);
    });
    return this.known(first);
  }
  /** A reduction that needs another comes later. */
  #isNear(r: Reduce, first: Reduce): boolean {
    if (r === first) return true;
    return !toposort<UOp>([r.body], (u) => (this.placed.has(u) ? [] : u.srcs)).some(
      (u) => u.op === "REDUCE" && this.#isShared(u) && !this.placed.has(u),
    );
  }
  #requireShared(): void {
    const { sharedMax, name, gpu } = this.target;
    const threads = this.#threads.reduce((n, a) => n * smax(a.size), 1);
    const core = this.nodes.find((u) => u.op === "WMMA")?.core;
    let bytes = core?.isOpaque === true ? roomOfResults(core, threads) : 0;
    for (const u of this.list)
      if (u.op === "DEFINE_LOCAL") bytes += u.elements * elementBytes(u, this.list, gpu?.sharedWord ?? 1);
    if (bytes > sharedMax) {
      throw new ArgumentError(
        `${showOpts(this.opts)}: the kernel takes ${bytes} bytes of shared memory, ${name} has ${sharedMax}; use smaller amounts`,
      );
    }
  }

  /** What the kernel loads and stores, and how often a thread of the grid does. */
  #accesses(grid: readonly Axis[]): AccessCount[] {
    const ids = new Set(grid.map((a) => a.id));
    const sizes = new Map(this.lowered.axes.map((a) => [a.id, smax(a.size)]));
    return this.nodes
      .filter((u) => u.op === "LOAD" || u.op === "STORE")
      .map((u) => {
        const loops = [...this.freeOf(u)].filter((id) => !ids.has(id));
        return { index: u.index, times: loops.reduce((n, id) => n * (sizes.get(id) ?? 1), 1) };
      });
  }
}

/** What an element takes in shared memory: a word at least, where threads store less than a word at once. */
function elementBytes(local: DefineLocal, list: Iterable<UOp>, word: number): number {
  const { itemsize } = local.dtype.base;
  if (itemsize % word === 0) return itemsize;
  for (const u of list)
    if (u.op === "STORE" && u.buffer === local && (u.value.dtype.count * itemsize) % word !== 0) return word;
  return itemsize;
}

/** What a renderer with a grid has for codegen. */
export const GRID: Grid = {
  linearize: (lowered, opts, target) => new WorkgroupLinearizer(lowered, opts, target).run(),
  coalesce,
};
