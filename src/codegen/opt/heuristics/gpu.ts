// A list of OptOps for a target with workgroups (Target.gpu): which items read neighbours in memory, who shares a reduce, how
// many results an item keeps in registers. In goes the kernel lowered without any, out comes the list. It looks at how far
// each load and store moves along each axis, and at how many workgroups there would be.

import { getOrMake, prod, toposort } from "../../../helpers.ts";
import { smax } from "../../../shape/symbolic.ts";
import type { UOpMap } from "../../../uop/map.ts";
import { elementOf, type UOp } from "../../../uop/uops.ts";
import { type AxisIds, freeAxes } from "../../analysis/free.ts";
import type { Axis, Lowered } from "../../lower/lower.ts";
import { strideOf } from "../../passes/expand.ts";
import type { Gpu, Target } from "../../target.ts";
import type { OptOp, OptOpName } from "../opts.ts";
import { convolutionLists } from "./convolutions.ts";
import { matrixLists } from "./products.ts";

/** Items of a workgroup where nothing speaks for another number. */
const ITEMS = 256;
/** Items that hide each other's waiting for memory on one unit. */
const BUSY = 1024;
/** Elements of a row that an item has at once, so that it waits for them together; and the most that stay in registers. */
const KEPT = 8;
const MAX_KEPT = 32;
/** Results that an item keeps in registers: products of rows and columns. */
const TILE = 8;
/** Products in the loop of a tile, written out. */
const MAX_BODY = 256;
/** Of a sum that items share each has so many terms; at least so many where there are too few results for all items. */
const [SHARE, LEAST] = [256, 16];
/** Results are few where so many times as many would keep all items busy. */
const FEW = 16;

const powerBelow = (n: number): number => 2 ** Math.floor(Math.log2(Math.max(1, n)));
const powerAbove = (n: number): number => 2 ** Math.ceil(Math.log2(Math.max(1, n)));

/** At most `most` parts of so many, none of them (or few) for nothing. */
function evenly(size: number, most: number): number {
  let [best, score] = [1, 0];
  for (let n = 1; n <= most && n <= size; n++) {
    const used = size / (Math.ceil(size / n) * n);
    if (n * used ** 4 > score) [best, score] = [n, n * used ** 4];
  }
  return best;
}
/** The largest divisor of `size` that is at most `most`. */
const divisor = (size: number, most: number): number =>
  most <= 1 || size % most === 0 ? Math.max(1, most) : divisor(size, most - 1);
/** Turns of a loop of so many that are written out together. */
const turns = (size: number): number => [4, 2].find((n) => size % n === 0) ?? 1;

/** Lists in the order in which they should be tried: the first that fits the kernel is good. */
export function chooseGpuOpts(lowered: Lowered, target: Target, gpu: Gpu): OptOp[][] {
  return [
    ...matrixLists(lowered, gpu),
    ...convolutionLists(lowered, target, gpu),
    new GpuHeuristic(lowered, target, gpu).choose(),
  ];
}

class GpuHeuristic {
  readonly #target: Target;
  readonly #gpu: Gpu;
  readonly #axes: readonly Axis[];
  readonly #ranges = new Map<number, UOp>();
  readonly #free: UOpMap<AxisIds>;
  readonly #memory: readonly UOp[];
  readonly #reduces: readonly UOp<"REDUCE">[];
  readonly #strides = new Map<number, Map<UOp, number | undefined>>();
  /** output axes that everything depends on: they are the grid */
  readonly #outer: readonly Axis[];
  /** output axes that some reduce does not depend on: loops, or items that share the reduce */
  readonly #inner: readonly Axis[];
  readonly #opts: OptOp[] = [];
  readonly #left = new Map<number, number>();
  #items = 1;

  constructor({ sink, arena, axes, order }: Lowered, target: Target, gpu: Gpu) {
    this.#target = target;
    this.#gpu = gpu;
    this.#axes = axes;
    const nodes = arena.nodes(sink);
    this.#free = freeAxes(sink, arena, this.#ranges);
    this.#reduces = nodes.filter((u) => u.op === "REDUCE");
    this.#memory = nodes.filter((u) => u.op === "LOAD" || u.op === "STORE");
    const everywhere = (a: Axis): boolean => this.#reduces.every((r) => this.#free.get(r)?.has(a.id));
    this.#outer = order.filter(everywhere);
    this.#inner = order.filter((a) => !everywhere(a));
  }

  choose(): OptOp[] {
    if (this.#reduces.length === 0) this.#elementwise();
    else if (!this.#tiles()) this.#rows();
    return this.#opts;
  }

  // ---- the kernel seen from its axes ----

  #size(id: number): number {
    return smax((this.#axes[id] as Axis).size);
  }
  /** Elements between one turn of the axis and the next; 0 where it stays, undefined where it jumps about. */
  #stride(u: UOp, id: number): number | undefined {
    const known = getOrMake(this.#strides, id, () => new Map<UOp, number | undefined>());
    return strideOf(u.srcs[1] as UOp, this.#ranges.get(id) as UOp, known);
  }
  /** Bytes of all accesses that go to the neighbour along this axis, each counted as often as it happens. */
  #near(id: number): number {
    return this.#memory
      .filter((u) => this.#stride(u, id) === 1)
      .reduce((n, u) => n + elementOf(u).itemsize * this.#turns(u), 0);
  }
  #turns(u: UOp): number {
    return prod([...(this.#free.get(u) as AxisIds)].map((id) => this.#size(id)));
  }
  /** The axis of these along which most memory is side by side; the last of several. */
  #nearest(axes: readonly Axis[]): Axis | undefined {
    let best: Axis | undefined;
    let most = -1;
    for (const a of axes) {
      const near = this.#near(a.id);
      if (near >= most) [best, most] = [a, near];
    }
    return best;
  }

  // ---- the list ----

  #add(op: OptOpName, { id, of: axis }: Axis, amount: number): void {
    if (amount <= 1) return;
    this.#opts.push({ op, axis, amount });
    this.#left.set(id, Math.ceil(this.#rest(id) / amount));
    if (op === "LOCAL" || op === "GROUPTOP") this.#items *= amount;
  }
  #rest(id: number): number {
    return this.#left.get(id) ?? this.#size(id);
  }
  #isStatic(a: Axis): boolean {
    return typeof a.size === "number";
  }
  /** As many lanes of the axis as one load or store moves; 1 where they would not lie side by side. */
  #vector(a: Axis): number {
    const near = this.#memory.filter((u) => this.#stride(u, a.id) === 1);
    if (!this.#isStatic(a) || near.length === 0) return 1;
    const widest = Math.max(...near.map((u) => elementOf(u).itemsize));
    for (let width = this.#gpu.vectorBytes / widest; width > 1; width /= 2) {
      const aligned = near.filter((u) => this.#isAligned(u, a.id, width));
      if (this.#size(a.id) % width === 0 && aligned.length > 0) return width;
    }
    return 1;
  }
  /** The access starts at a multiple of `width` whatever the other axes are. */
  #isAligned(u: UOp, id: number, width: number): boolean {
    const others = [...(this.#free.get(u.srcs[1] as UOp) as AxisIds)].filter((x) => x !== id);
    return others.every((x) => (this.#stride(u, x) ?? 1) % width === 0);
  }

  /** Neighbours in memory go to neighbours in a workgroup, a vector each. */
  #elementwise(): void {
    const near = this.#nearest(this.#outer);
    if (near === undefined) return;
    // what one workgroup can do at once waits for nothing but itself
    const tiny = prod(this.#outer.map((a) => this.#size(a.id))) <= ITEMS;
    const vector = tiny ? 1 : this.#vector(near);
    this.#add("UPCAST", near, vector);
    const other = this.#nearest(this.#outer.filter((a) => a !== near));
    if (other !== undefined && this.#near(other.id) > 0 && this.#vector(other) > 1) {
      // what is read along one axis is written along another: squares, in which both have neighbours
      this.#add("UPCAST", other, this.#vector(other));
      for (const a of [near, other]) this.#add("LOCAL", a, Math.min(Math.sqrt(ITEMS), this.#rest(a.id)));
      return;
    }
    this.#fill(near, ITEMS);
    // without vectors more loads at once
    if (vector === 1 && this.#rest(near.id) >= this.#gpu.units * 4) this.#add("UPCAST", near, 4);
  }
  /** Items along the axis, and along others where it is short. */
  #fill(first: Axis, items: number): void {
    for (const a of [first, ...this.#outer.toReversed().filter((x) => x !== first)]) {
      this.#add("LOCAL", a, evenly(this.#rest(a.id), Math.min(items / this.#items, this.#limit())));
    }
  }
  #limit(): number {
    return Math.max(...this.#target.localMax);
  }

  /** Products that are used again along two output axes: an item computes a tile of results. */
  #tiles(): boolean {
    const hot = this.#reduces.reduce((x, y) => (this.#work(y) > this.#work(x) ? y : x));
    const loads = toposort([hot.srcs[0] as UOp], (u) => u.srcs).filter((u) => u.op === "LOAD");
    const reused = (a: Axis): boolean => loads.some((u) => !this.#free.get(u)?.has(a.id));
    const axes = this.#outer.filter((a) => reused(a) && this.#isStatic(a) && this.#size(a.id) > 1);
    const near = this.#nearest(axes);
    const other = axes
      .filter(
        (a) =>
          a !== near &&
          loads.some(
            (u) => !this.#free.get(u)?.has(a.id) && near !== undefined && this.#free.get(u)?.has(near.id),
          ),
      )
      .sort((a, b) => this.#size(a.id) - this.#size(b.id))
      .at(-1);
    if (near === undefined || other === undefined) return false;
    const outs = prod(this.#outer.map((a) => this.#size(a.id)));
    const sums = hot.srcs.slice(1).map((r) => this.#axes[r.arg as number] as Axis);
    const terms = prod(sums.map((a) => this.#size(a.id)));
    const long = terms / SHARE;
    const groups = outs / (ITEMS * TILE * TILE);
    const { units } = this.#gpu;
    // where a sum is long enough for many, a tile need not be small to keep the machine busy
    const shared = long >= 4;
    const busy = groups >= units || (shared && groups * Math.min(long, ITEMS) * 4 >= units);
    const most = busy ? TILE : groups * 4 >= units ? TILE / 2 : 2;
    const size = this.#size(near.id);
    const few = shared && size <= TILE ? size : most;
    const across = [
      divisor(size, size % 4 === 0 ? Math.min(4, few) : few),
      divisor(this.#size(other.id), most),
    ];
    this.#add("UPCAST", near, across[0] as number);
    this.#add("UPCAST", other, across[1] as number);
    // few results an item leave registers for more items
    const crowd = prod(across) <= 2 * TILE ? this.#limit() : ITEMS;
    const lacking = (units * BUSY) / (outs / prod(across));
    const helpers = powerBelow(Math.min(crowd, lacking, lacking >= FEW ? terms / LEAST : long));
    const room = helpers >= 4 ? Math.max(1, ITEMS / helpers) : ITEMS;
    const side = Math.sqrt(room);
    this.#add("LOCAL", near, evenly(this.#rest(near.id), side));
    this.#add("LOCAL", other, evenly(this.#rest(other.id), side));
    this.#fill(near, room);
    const last = sums.at(-1) as Axis;
    const body = prod(across) * this.#size(last.id);
    if (this.#isStatic(last))
      this.#add(
        "UNROLL",
        last,
        body <= MAX_BODY && this.#size(last.id) <= TILE ? this.#size(last.id) : turns(this.#size(last.id)),
      );
    if (helpers >= 4) this.#together(sums.toReversed(), helpers);
    return true;
  }
  /** Items that share a sum, along the axes where neighbours are near first: whole rows, if there is room. */
  #together(sums: readonly Axis[], helpers: number): void {
    let room = helpers;
    for (const a of sums.filter((x) => this.#isStatic(x))) {
      const amount = divisor(this.#rest(a.id), Math.floor(room));
      this.#add("GROUPTOP", a, amount);
      room /= amount;
    }
  }
  #work(r: UOp<"REDUCE">): number {
    return prod([...(this.#free.get(r.srcs[0] as UOp) as AxisIds)].map((id) => this.#size(id)));
  }

  /** Reduces whose operands are read once: by items side by side along the rows, or along the results. */
  #rows(): void {
    const outs = prod(this.#outer.map((a) => this.#size(a.id)));
    const reduced = [...new Set(this.#reduces.flatMap((r) => r.srcs.slice(1)))].map(
      (r) => this.#axes[r.arg as number] as Axis,
    );
    const along = this.#nearest([...reduced, ...this.#inner, ...this.#outer]) as Axis;
    if (this.#outer.includes(along)) this.#columns(along, reduced, outs);
    else this.#shared(along, reduced, outs);
  }

  /** Items side by side along the results; where these are few, several share a sum. */
  #columns(along: Axis, reduced: readonly Axis[], outs: number): void {
    const wanted = this.#gpu.units * BUSY;
    const vector = this.#vector(along);
    if (outs / vector >= wanted) this.#add("UPCAST", along, vector);
    const longest = Math.max(...reduced.map((a) => this.#size(a.id)));
    const helpers = outs >= wanted ? 1 : Math.min(powerAbove(wanted / outs), 32, powerBelow(longest / 4));
    this.#fill(along, helpers > 1 ? 32 : ITEMS);
    for (const a of reduced) {
      const room = powerBelow(this.#limit() / this.#items);
      if (this.#isStatic(a)) this.#add("GROUPTOP", a, Math.min(helpers, room, powerBelow(this.#size(a.id))));
      this.#unroll(a);
    }
  }

  /** The items of a workgroup share a row: what each of them read stays in its registers for the next pass. */
  #shared(along: Axis, reduced: readonly Axis[], outs: number): void {
    const size = this.#size(along.id);
    const same = (a: Axis): boolean =>
      this.#size(a.id) === size &&
      this.#isStatic(a) &&
      this.#isStatic(along) &&
      this.#position(a) === this.#position(along);
    const row = [...reduced, ...this.#inner].filter((a) => a === along || same(a));
    const vector = Math.min(...row.map((a) => this.#vector(a)).filter((v) => v > 1), this.#vector(along));
    const vectors = Math.ceil(size / vector);
    const kept = Math.max(1, KEPT / vector);
    const enough = row.length > 1 ? powerAbove(vectors / kept) : Math.min(ITEMS, powerAbove(vectors / kept));
    const many = outs * enough >= this.#gpu.units * BUSY;
    const items = Math.min(many ? enough : powerAbove(vectors), this.#limit(), powerBelow(vectors));
    const far = Math.ceil(vectors / items);
    for (const a of row) {
      const isOutput = a.kind === "output";
      const lanes: OptOpName = isOutput ? "UPCAST" : "UNROLL";
      const count = this.#items;
      if (this.#isStatic(a)) this.#add(lanes, a, vector);
      this.#add(isOutput ? "LOCAL" : "GROUPTOP", a, items);
      // all axes of the row have the same items
      this.#items = count === 1 ? items : count;
      if (this.#isStatic(a)) this.#add(lanes, a, far * vector <= MAX_KEPT ? far : turns(far));
    }
    this.#alongside(row, reduced, outs);
  }
  /** Other axes: more items for a sum where rows are few and short, more rows where a row is short. */
  #alongside(row: readonly Axis[], reduced: readonly Axis[], outs: number): void {
    const wanted = this.#gpu.units * BUSY;
    const others = reduced.filter((x) => !row.includes(x));
    for (const size of new Set(others.map((a) => this.#size(a.id)))) {
      const same = others.filter((a) => this.#size(a.id) === size);
      // several reduces over the same have the same items, or none
      const alike = row.length === 1 || (this.#inner.length === 0 && same.length === row.length);
      const count = this.#items;
      const lacking = powerBelow(wanted / (outs * count));
      const amount = Math.min(lacking, powerBelow(this.#limit() / count), powerBelow(size));
      for (const a of same) {
        if (this.#isStatic(a) && alike) this.#add("GROUPTOP", a, amount);
        if (row.length > 1 && this.#items > count) this.#items = count * amount;
        this.#unroll(a);
      }
    }
    const last = this.#outer.at(-1);
    if (last !== undefined && this.#items < ITEMS / 2) this.#fill(last, ITEMS / 2);
  }
  /** A short loop is written out, a longer one in parts: loads that do not wait for each other, as registers hold them. */
  #unroll(a: Axis): void {
    const left = this.#rest(a.id);
    if (!this.#isStatic(a)) return;
    const lanes = this.#opts.filter((o) => o.op === "UNROLL" && this.#sharesLoop(o.axis, a.of));
    const loads = this.#memory.filter((u) => u.op === "LOAD" && this.#free.get(u)?.has(a.id)).length;
    const held = loads * prod(lanes.map((o) => o.amount));
    const most = left <= 8 ? left : turns(left);
    // of the registers of a unit a small workgroup has more for each of its items
    const room = this.#items <= ITEMS ? 2 * MAX_KEPT : MAX_KEPT;
    this.#add("UNROLL", a, held <= KEPT ? most : divisor(most, Math.max(1, Math.floor(room / held))));
  }
  /** Which of the axes of its reduce, or of those that are no grid: a row of several has one of each. */
  #position(a: Axis): number {
    const reduce = this.#reduces.find((r) => r.srcs.slice(1).some((s) => s.arg === a.id));
    return reduce === undefined ? this.#inner.indexOf(a) : reduce.srcs.findIndex((s) => s.arg === a.id) - 1;
  }
  /** Two reduce axes, by the numbers that OptOps have for them, are of one reduce. */
  #sharesLoop(x: number, y: number): boolean {
    const has = (r: UOp, of: number): boolean =>
      r.srcs.slice(1).some((s) => this.#axes[s.arg as number]?.of === of);
    return this.#reduces.some((r) => has(r, x) && has(r, y));
  }
}
