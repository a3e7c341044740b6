// The graph becomes a list: every node is placed in the outermost loop it can stand in, RANGE nodes become LOOPs (or
// SPECIALs where the target runs a grid), a REDUCE becomes an accumulator, its loops and a PHI, a STAGE the loops that fill
// an array. Comes after everything that changes the graph; renderers read the result from top to bottom.

import { dtypes, type Pointer, scalarOf } from "../../dtype.ts";
import { ArgumentError, InternalError } from "../../errors.ts";
import { getOrMake, range, toposort } from "../../helpers.ts";
import { REDUCE } from "../../ops.ts";
import { type Sint, smax, sprod } from "../../shape/symbolic.ts";
import { UOpMap, UOpSet } from "../../uop/map.ts";
import { changedSrcs } from "../../uop/rewrite.ts";
import { makeUOp, type UOp, UOpGraph, valueType } from "../../uop/uops.ts";
import { type AxisIds, freeAxes, isReduce, type Looping, rangesOf } from "../analysis/free.ts";
import { type Axis, isItem, type Lowered } from "../lower/lower.ts";
import { type OptOp, showOpts } from "../opt/opts.ts";
import { fusesProducts, type Target } from "../target.ts";
import { Fetch } from "./asynccopy.ts";
import { type Access, dimsOf, inStrips, nearestLast } from "./grid.ts";
import { Ahead, inPart, readsFrom } from "./pipeline.ts";
import { combineItems, type Workgroup } from "./workgroup.ts";

export interface Linear {
  readonly uops: UOpGraph;
  /** work groups and work items of a grid; empty where the kernel is all loops */
  readonly globalSize: readonly Sint[];
  readonly localSize: readonly number[];
}

export function linearize(lowered: Lowered, opts: readonly OptOp[], target: Target): Linear {
  return new Linearizer(lowered, opts, target).run();
}

const keyOf = (ranges: readonly UOp[]): string => ranges.map((r) => r.arg).join();

class Linearizer {
  readonly #lowered: Lowered;
  readonly #target: Target;
  readonly #opts: readonly OptOp[];
  /** the axis whose loop is the grid of a target that has none of its own */
  readonly #thread: number | undefined;
  readonly #list: UOpGraph;
  /** the axes a node depends on */
  readonly #free: UOpMap<AxisIds>;
  readonly #nodes: readonly UOp[];
  readonly #ranges = new Map<number, UOp>();
  /** by the ranges they run over */
  readonly #looping = new Map<string, Looping[]>();
  /** graph node -> list node; what was placed inside a loop is forgotten when the loop closes */
  readonly #placed: UOpMap<UOp>;
  readonly #scopes: UOp[][] = [[]];
  readonly #open = new Set<number>();
  readonly #global: Sint[] = [];
  readonly #local: number[] = [];
  /** the axes of the workgroup, the innermost first */
  readonly #items: Axis[] = [];
  /** where in its shared memory the part of a tile is that this turn computes with */
  readonly #stages = new Map<UOp, UOp>();
  /** the loop that was opened last, if its turns read the operands of the next */
  #ahead: Ahead | undefined;
  /** how many axes are open that are no loops */
  #gridAxes = 0;

  constructor(lowered: Lowered, opts: readonly OptOp[], target: Target) {
    this.#lowered = lowered;
    this.#thread = opts.findLast((o) => o.op === "THREAD")?.axis;
    this.#target = target;
    this.#opts = opts;
    this.#list = new UOpGraph(lowered.arena);
    this.#nodes = lowered.arena.nodes(lowered.sink);
    this.#free = freeAxes(lowered.sink, lowered.arena, this.#ranges);
    this.#placed = new UOpMap(lowered.arena);
    for (const u of this.#nodes) {
      if (u.op === "REDUCE" || u.op === "STAGE")
        getOrMake(this.#looping, keyOf(rangesOf(u)), () => []).push(u);
    }
  }

  run(): Linear {
    const globals: UOp<"DEFINE_GLOBAL">[] = [];
    const vars: UOp<"DEFINE_VAR">[] = [];
    const arrays: UOp[] = [];
    for (const u of this.#nodes) {
      if (u.op === "DEFINE_GLOBAL") globals.push(u);
      else if (u.op === "DEFINE_VAR") vars.push(u);
      else if (u.op === "DEFINE_LOCAL") arrays.push(u);
    }
    globals.sort((a, b) => a.arg[0] - b.arg[0]);
    vars.sort((a, b) => (a.arg.name < b.arg.name ? -1 : 1));
    for (const u of [...globals, ...vars, ...arrays]) this.#put(u, u);
    const stores = this.#lowered.sink.srcs;
    const { grid, loops } = this.#arrange();
    if (grid.length > 0 && !this.#target.hasLocal) this.#hoist(stores);
    this.#openGrid(grid);
    const opened = loops.map((axis) => {
      this.#hoist(stores);
      return this.#openLoop(this.#rangeOf(axis));
    });
    // all that is read, then all that is written: one output may be the old value of another
    if (stores.length > 1) for (const s of stores) this.#place(s.srcs[2] as UOp);
    for (const s of stores) this.#place(this.#storedOnce(s));
    for (const loop of opened.reverse()) this.#close(loop);
    this.#requireShared();
    return { uops: this.#list, globalSize: this.#global, localSize: this.#local };
  }

  /**
   * Axes that some reduce does not depend on go inside, so that the reduce runs once and not for each of their
   * elements; there they are loops even where the target has a grid.
   */
  #arrange(): { grid: readonly Axis[]; loops: readonly Axis[] } {
    // a reduce that folded away leaves nothing for its items
    const order = this.#lowered.order.filter((a) => a.kind !== "top" || this.#ranges.has(a.id));
    const looping = [...this.#looping.values()].flat();
    const everywhere = (a: Axis): boolean => looping.every((r) => this.#free.get(r)?.has(a.id));
    if (this.#target.hasLocal) {
      const grid = order.filter((a) => isItem(a) || everywhere(a));
      return { grid, loops: order.filter((a) => !grid.includes(a)) };
    }
    const loops = [...order.filter(everywhere), ...order.filter((a) => !everywhere(a))];
    const threads = loops.filter((a) => a.of === this.#thread && a.kind === "output");
    return { grid: threads, loops: loops.filter((a) => !threads.includes(a)) };
  }

  /** Arrays of a target without workgroups lie where they find room. */
  #requireShared(): void {
    const { hasLocal, sharedMax, name } = this.#target;
    let bytes = 0;
    for (const u of this.#list)
      if (u.op === "DEFINE_LOCAL") bytes += u.arg[1] * (u.dtype as Pointer).base.itemsize;
    if (hasLocal && bytes > sharedMax) {
      throw new ArgumentError(
        `${showOpts(this.#opts)}: the kernel takes ${bytes} bytes of shared memory, ${name} has ${sharedMax}; use smaller amounts`,
      );
    }
  }

  #rangeOf(axis: Axis): UOp {
    const range = this.#ranges.get(axis.id);
    if (range === undefined) throw new InternalError(`axis ${axis.id} is used nowhere`);
    return range;
  }

  /** All loops that the node depends on are open. */
  #isReady(u: UOp): boolean {
    for (const axis of this.#free.get(u) as AxisIds) if (!this.#open.has(axis)) return false;
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

  /** Places a node and what it needs, here; the loops it depends on are open. */
  #place(u: UOp): UOp {
    const known = this.#placed.get(u);
    if (known !== undefined) return known;
    if (u.op === "RANGE") throw new InternalError(`axis ${u.arg} is used outside its loop`);
    if (u.op === "REDUCE" || u.op === "STAGE") return this.#placeLooping(u);
    if (u.op === "TILE") return this.#placeTiles([u], undefined, []);
    // a STORE reads best value first: the accumulator and its loop, then the address
    if (u.op === "STORE") this.#place(u.srcs[2] as UOp);
    const srcs = changedSrcs(u, this.#placeSrc);
    const [tile] = u.srcs;
    if (tile?.op === "TILE" && srcs !== undefined)
      srcs[1] = inPart(srcs[1] as UOp, this.#stages.get(tile), this.#list);
    // nothing is left to fold, and the loops make each node the only one of its kind
    return this.#put(u, srcs === undefined ? u : (makeUOp(u.op, u.dtype, srcs, u.arg) as UOp));
  }

  /**
   * Of items that have the same result one stores it, if they all read at such places too: there may be the old value of what
   * is stored, and whoever comes late would compute with the new one.
   */
  #storedOnce(store: UOp): UOp {
    const alike = this.#items.filter((a) => !this.#isIn(a, store));
    const isRead = (u: UOp): boolean =>
      u.op === "LOAD" && u.srcs[0]?.op === "DEFINE_GLOBAL" && !alike.some((a) => this.#isIn(a, u));
    if (alike.length === 0 || !this.#nodes.some(isRead)) return store;
    const { arena } = this.#lowered;
    const firsts = alike.map((a) => arena.alu("CMPLT", this.#rangeOf(a), arena.constant(dtypes.int32, 1)));
    const gate = [...store.srcs.slice(3), ...firsts].reduce((x, y) => arena.alu("AND", x, y));
    return arena.make("STORE", undefined, [...store.srcs.slice(0, 3), gate], undefined);
  }
  #isIn(axis: Axis, u: UOp): boolean {
    return (this.#free.get(u) as AxisIds).has(axis.id);
  }

  readonly #placeSrc = (s: UOp): UOp => this.#place(s);

  /** Places, before a loop is opened, all that does not depend on it. */
  #hoist(roots: readonly UOp[]): void {
    const seen = new UOpSet(this.#lowered.arena);
    const visit = (u: UOp): void => {
      if (seen.has(u) || this.#placed.has(u)) return;
      seen.add(u);
      if (u.op !== "STORE" && this.#isReady(u)) this.#place(u);
      else for (let i = 0; i < u.srcs.length; i++) visit(u.srcs[i]!);
    };
    for (const r of roots) visit(r);
  }

  /** A reduce, and with it what runs over the same ranges: one set of loops, an accumulator or an array each. */
  #placeLooping(first: Looping): UOp {
    const ranges = rangesOf(first);
    if (isReduce(first) && this.#isShared(first)) return this.#placeShared(first);
    const ready = this.#together(first);
    const reduces = ready.filter(isReduce);
    const stages = ready.filter((r) => !isReduce(r));
    const accs = reduces.map((r) => {
      const acc = this.#lowered.arena.make(
        "DEFINE_ACC",
        r.dtype,
        [],
        REDUCE[r.arg].identity(scalarOf(valueType(r))),
      );
      this.#list.push(acc);
      return acc;
    });
    const bodies = reduces.map((r) => r.srcs[0] as UOp);
    const stores = stages.flatMap((r) => r.srcs.filter((s) => s.op === "STORE"));
    const loops = ranges.map((r) => {
      this.#hoist([...bodies, ...stores, ...ranges]);
      const tiles = this.#tilesOf(bodies, r);
      if (tiles.length === 0) return this.#openLoop(r);
      const isInnermost = r === ranges.at(-1) && stages.length === 0;
      return this.#placeTiles(tiles, r, isInnermost ? this.#firstOperands(reduces) : []);
    });
    // before the sums: a product that is stored is not fused into one of them
    for (const s of stores) this.#place(s);
    const phis = this.#accumulate(reduces, accs, (acc, sum) =>
      this.#list.add("PHI", acc.dtype, [acc, sum, ...loops]),
    );
    for (const loop of [...loops].reverse()) this.#close(loop);
    ready.forEach((r) => {
      const made = isReduce(r) ? phis[reduces.indexOf(r)] : this.#placed.get(r.srcs[0] as UOp);
      this.#know(r, made as UOp);
    });
    return this.#placed.get(first) as UOp;
  }
  /** The parts of buffers that move with this loop. */
  #tilesOf(bodies: readonly UOp[], loop: UOp): UOp<"TILE">[] {
    const below = toposort(bodies, (u) => (this.#placed.has(u) ? [] : u.srcs));
    return below.filter((u) => u.op === "TILE").filter((u) => u.srcs[2] === loop);
  }
  /**
   * Opens the loop that fetches these tiles and gives it; without a loop they are fetched here, and the first is given.
   * `operands`: what a turn starts with, if it is to be read in the turn before.
   */
  #placeTiles(tiles: readonly UOp<"TILE">[], range: UOp | undefined, operands: readonly UOp[]): UOp {
    const again = this.#open.size > this.#gridAxes;
    const fetch = new Fetch(this.#list, this.#itemAxes());
    const locals = tiles.map((t) => {
      const [buffer, base] = t.srcs.map((s) => (s === range ? s : this.#place(s))) as [UOp, UOp];
      return fetch.prepare(t, buffer, base);
    });
    const end = range === undefined ? undefined : this.#place(range.srcs[1] as UOp);
    fetch.open(end, again);
    const early = tiles.every((t) => t.arg.stages > 1) ? operands.filter((u) => readsFrom(u, tiles)) : [];
    const inside = new Map(tiles.map((t, i) => [t as UOp, locals[i] as UOp]));
    const ahead = early.length > 0 ? new Ahead(this.#list, fetch, inside, this.#placeSrc) : undefined;
    ahead?.start(early);
    const loop = range === undefined ? undefined : this.#openLoop(range);
    inside.forEach((local, t) => void this.#know(t, local));
    if (loop === undefined || end === undefined) return locals[0] as UOp;
    const places = ahead === undefined ? fetch.turn(loop, end) : fetch.now();
    tiles.forEach((t, i) => void this.#stages.set(t, places[i] as UOp));
    ahead?.carried.forEach((acc, u) => void this.#know(u, acc));
    ahead?.enter(loop, end);
    this.#ahead = ahead;
    return loop;
  }
  /** What the first products of a turn multiply. */
  #firstOperands(reduces: readonly UOp<"REDUCE">[]): UOp[] {
    const first = reduces.map((r) => this.#termsOf(r)[0] as UOp);
    return first.every((t) => t.op === "WMMA") ? [...new Set(first.flatMap((t) => t.srcs))] : [];
  }
  /** The axes of the workgroup, the innermost first. */
  #itemAxes(): { index: UOp; size: number }[] {
    return this.#items.map((a) => ({ index: this.#place(this.#rangeOf(a)), size: a.size as number }));
  }
  /** What can run in the loops of `first`; not what waits for an array that these loops fill, or fills one that they read. */
  #together(first: Looping): Looping[] {
    const all = this.#looping.get(keyOf(rangesOf(first))) ?? [];
    const ready = all.filter((r) => r === first || (!this.#placed.has(r) && this.#isReady(r)));
    if (ready.every(isReduce)) return ready;
    const needs = (a: UOp, b: UOp): boolean => toposort([a], (x) => x.srcs).includes(b);
    const chosen = [first];
    for (const r of ready) if (!chosen.some((c) => c === r || needs(c, r) || needs(r, c))) chosen.push(r);
    return chosen;
  }

  #isShared(reduce: UOp<"REDUCE">): boolean {
    return rangesOf(reduce).some((r) => isItem(this.#lowered.axes[r.arg as number]));
  }
  /** Reduces over the items of the workgroup, those that can be done at once together: they wait for each other once. */
  #placeShared(first: UOp<"REDUCE">): UOp {
    const ranges = rangesOf(first);
    // what it needs may be another reduce over the same items
    this.#place(first.srcs[0] as UOp);
    const ready = (this.#looping.get(keyOf(ranges)) ?? [])
      .filter(isReduce)
      .filter((r) => !this.#placed.has(r) && this.#isReady(r) && this.#isNear(r, first));
    const values = ready.map((r) => this.#place(r.srcs[0] as UOp));
    const itemRanges = this.#items.map((a) => this.#rangeOf(a));
    const group: Workgroup = {
      items: this.#itemAxes().map((item, i) => ({ ...item, shares: ranges.includes(itemRanges[i] as UOp) })),
      gpu: this.#target.gpu,
      again: this.#open.size > this.#gridAxes,
      list: this.#list,
    };
    combineItems(ready, values, group).forEach((total, i) => void this.#know(ready[i] as UOp, total));
    return this.#placed.get(first) as UOp;
  }
  /** A reduce that needs another, or more loops than are open, comes later. */
  #isNear(r: UOp, first: UOp): boolean {
    if (r === first) return true;
    return !toposort([r.srcs[0] as UOp], (u) => (this.#placed.has(u) ? [] : u.srcs)).some(
      (u) => u.op === "REDUCE" && this.#isShared(u) && !this.#placed.has(u),
    );
  }

  /**
   * The accumulators after one turn. Products of matrices go lane by lane of their sums, what the next lane multiplies is read
   * before this one is computed, in the last lane what the next turn starts with: reading and multiplying do not wait for
   * each other.
   */
  #accumulate(
    reduces: readonly UOp<"REDUCE">[],
    accs: readonly UOp[],
    assign: (acc: UOp, sum: UOp) => UOp,
  ): UOp[] {
    const isTensor = (r: UOp<"REDUCE">): boolean => this.#termsOf(r).some((t) => t.op === "WMMA");
    if (!reduces.some(isTensor)) {
      return accs.map((acc, i) => {
        const r = reduces[i] as UOp<"REDUCE">;
        return assign(acc, this.#addTerms(r, this.#termsOf(r), acc));
      });
    }
    const sums = [...accs];
    const terms = reduces.map((r) => this.#termsOf(r));
    const lanes = range(Math.max(...terms.map((t) => t.length))).map((n) => terms.map((t) => t[n]));
    const read = (lane: readonly (UOp | undefined)[] | undefined): void => {
      for (const t of lane ?? []) if (t?.op === "WMMA") for (const s of t.srcs) this.#place(s);
    };
    const ahead = this.#ahead;
    this.#ahead = undefined;
    read(lanes[0]);
    lanes.forEach((lane, n) => {
      read(lanes[n + 1]);
      if (n === 0) ahead?.copy();
      if (n === lanes.length - 1) ahead?.readNext();
      lane.forEach((t, i) => {
        const r = reduces[i] as UOp<"REDUCE">;
        if (t !== undefined) sums[i] = this.#addTerms(r, [t], sums[i] as UOp);
      });
    });
    ahead?.finish();
    return accs.map((acc, i) => assign(acc, sums[i] as UOp));
  }
  #addTerms(r: UOp<"REDUCE">, terms: readonly UOp[], acc: UOp): UOp {
    return terms.reduce((sum, t) => this.#addTerm(r, t, sum), acc);
  }
  #termsOf(r: UOp<"REDUCE">): UOp[] {
    const body = r.srcs[0] as UOp;
    const isVector = scalarOf(valueType(r)) !== valueType(r);
    const fuses = fusesProducts(this.#target, valueType(r)) || (isVector && this.#target.gpu !== undefined);
    const all = r.arg === "SUM" && fuses ? this.#terms(body) : [body];
    // sums of anything else than products stay in pairs, which wait less for each other
    return all.some((t) => t.op === "WMMA" || (t.op === "ALU" && t.arg === "MUL")) ? all : [body];
  }
  #addTerm(r: UOp<"REDUCE">, t: UOp, sum: UOp): UOp {
    const { arena } = this.#lowered;
    const push = (u: UOp): UOp => {
      this.#list.push(u);
      return u;
    };
    if (t.op === "WMMA") {
      const operands = t.srcs.map((s) => this.#place(s));
      return push(makeUOp("WMMA", t.dtype, [...operands, sum], t.arg));
    }
    const fuses = r.arg === "SUM" && fusesProducts(this.#target, valueType(r));
    if (fuses && t.op === "ALU" && t.arg === "MUL" && !this.#placed.has(t)) {
      return push(arena.alu("MULACC", this.#place(t.srcs[0] as UOp), this.#place(t.srcs[1] as UOp), sum));
    }
    return push(arena.alu(REDUCE[r.arg].combine, this.#place(t), sum));
  }
  /** What a sum of lanes adds up; a part of it that is needed elsewhere too stays whole. */
  #terms(u: UOp): UOp[] {
    if (u.op !== "ALU" || u.arg !== "ADD" || this.#placed.has(u)) return [u];
    return u.srcs.flatMap((s) => this.#terms(s));
  }

  // ---- loops ----

  #openLoop(range: UOp): UOp {
    const ends = range.srcs.map((s) => this.#place(s));
    const loop = this.#list.add("LOOP", dtypes.int32, ends);
    this.#scopes.push([]);
    this.#know(range, loop);
    this.#open.add(range.arg as number);
    return loop;
  }
  #close(loop: UOp): void {
    this.#list.add("ENDLOOP", undefined, [loop]);
    for (const u of this.#scopes.pop() ?? []) {
      if (u.op === "RANGE") this.#open.delete(u.arg);
      this.#placed.delete(u);
    }
  }

  /** Axes as the dimensions of a grid, innermost first; those that have no dimension of their own are taken apart. */
  #openGrid(axes: readonly Axis[]): void {
    const groups = axes.filter((a) => !isItem(a));
    const items = nearestLast(axes.filter(isItem), this.#accesses(axes), (a) => this.#rangeOf(a));
    const { globalMax, localMax } = this.#target;
    this.#openDims(groups, "gidx", this.#global, globalMax);
    this.#openDims(items, "lidx", this.#local, localMax);
    this.#items.push(...items.toReversed());
    const width = items.reduce((n, a) => n * smax(a.size), 1);
    const most = Math.max(...localMax);
    if (items.length > 0 && width > most) {
      throw new ArgumentError(
        `${showOpts(this.#opts)}: workgroups of ${width} items; ${this.#target.name} takes up to ${most}; use smaller amounts`,
      );
    }
    this.#gridAxes = axes.length;
  }
  /** What the kernel loads and stores, and how often an item of the grid does. */
  #accesses(grid: readonly Axis[]): Access[] {
    const ids = new Set(grid.map((a) => a.id));
    return this.#nodes
      .filter((u) => u.op === "LOAD" || u.op === "STORE")
      .map((u) => {
        const loops = [...(this.#free.get(u) as AxisIds)].filter((id) => !ids.has(id));
        const times = loops.reduce((n, id) => n * smax(this.#lowered.axes[id]?.size ?? 1), 1);
        return { index: u.srcs[1] as UOp, times };
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
    const { units = Infinity } = this.#target.gpu ?? {};
    const places = isProduct ? inStrips(specials, sizes, units, this.#list) : specials;
    dims.forEach((members, dim) => void this.#unpack(members, places[dim] as UOp));
  }
  /** The indexes of axes, innermost first, out of one number. */
  #unpack(axes: readonly Axis[], all: UOp): void {
    let rest = all;
    const last = axes.at(-1) as Axis;
    for (const a of axes.slice(0, -1)) {
      const size = this.#place(this.#rangeOf(a).srcs[1] as UOp);
      this.#bind(a, this.#list.add("ALU", dtypes.int32, [rest, size], "MOD"));
      rest = this.#list.add("ALU", dtypes.int32, [rest, size], "IDIV");
    }
    this.#bind(last, rest);
  }
  #bind(axis: Axis, index: UOp): void {
    this.#placed.set(this.#rangeOf(axis), index);
    this.#open.add(axis.id);
  }
}
