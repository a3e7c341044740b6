// SWAP of an output axis and a reduce axis: the loop of a sum goes around the loop over its results, which then stand in an
// array while it runs. A row times a matrix reads whole rows of the matrix one after the other, as memory likes it, in place
// of a few columns from top to bottom. In goes a graph and the list, out comes the graph without those REDUCEs.

import { dtypes, PtrDType, scalarOf } from "../../dtype.ts";
import { ArgumentError } from "../../errors.ts";
import { prod, toposort } from "../../helpers.ts";
import { REDUCE } from "../../ops.ts";
import { mapGraph } from "../../uop/rewrite.ts";
import { type UOp, type UOpArena, valueType } from "../../uop/uops.ts";
import { replace } from "../analysis/affine.ts";
import type { Axis, Lowered } from "../lower/lower.ts";
import { MAX_RUN } from "../passes/blocksums.ts";
import { isLane } from "../passes/expand.ts";
import type { Target } from "../target.ts";
import { arrayBytes, isOutput } from "./keep.ts";
import { type OptOp, showOpts } from "./opts.ts";

/** Ranges made here are numbered from here: no kernel has as many axes, and others make fewer. */
const FIRST_ID = 3000;

export function swapSums(lowered: Lowered, opts: readonly OptOp[], target: Target): UOp {
  const ops = opts.filter((o) => o.op === "SWAP" && !isOutput(o.amount, lowered.axes));
  return ops.reduce((sink, o, i) => new Swapper({ ...lowered, sink }, o, target, i).run(), lowered.sink);
}

class Swapper {
  readonly #arena: UOpArena;
  readonly #axes: readonly Axis[];
  readonly #sink: UOp;
  readonly #opt: OptOp;
  readonly #target: Target;
  readonly #number: number;
  /** the loop that goes inside, and the same loop while the sum runs */
  readonly #outer: UOp;
  readonly #inner: UOp;
  #arrays = 0;
  #room: number;

  constructor({ sink, arena, axes, order }: Lowered, opt: OptOp, target: Target, number: number) {
    this.#sink = sink;
    this.#arena = arena;
    this.#axes = axes;
    this.#opt = opt;
    this.#target = target;
    this.#number = number;
    this.#room = target.sharedMax;
    if (target.hasLocal) this.#refuse(`${target.name} has a grid in place of the loop`);
    // of a loop that LOCAL made two of it is the inner one
    const axis = order.findLast((a) => a.of === opt.axis);
    const nodes = toposort([sink], (x) => x.srcs);
    const outer = nodes.find((u) => u.op === "RANGE" && u.arg === axis?.id);
    if (outer === undefined) this.#refuse("there is no loop over this axis");
    this.#outer = outer as UOp;
    this.#inner = arena.make("RANGE", dtypes.int32, this.#outer.srcs, FIRST_ID + number);
    for (const u of nodes) if (u.op === "DEFINE_LOCAL") this.#room -= arrayBytes(u);
  }

  run(): UOp {
    const sink = mapGraph(this.#sink, this.#arena, (u) => {
      if (u.op !== "REDUCE") return undefined;
      const loops = u.srcs.slice(1).filter((r) => !this.#isLane(r));
      const isMeant = loops.some((r) => this.#axes[r.arg as number]?.of === this.#opt.amount);
      return isMeant ? this.#swapped(u, loops) : undefined;
    });
    if (this.#arrays === 0) this.#refuse("no sum has this reduce axis as a loop");
    return sink;
  }
  #refuse(why: string): never {
    throw new ArgumentError(
      `${showOpts([this.#opt])}: ${why}; SWAP takes two output axes, or an output axis with the axis of a sum inside its loop`,
    );
  }
  #isLane(range: UOp): boolean {
    const axis = this.#axes[range.arg as number];
    return axis !== undefined && isLane(axis);
  }

  /** The sums are set to nothing, every turn of the sum's own loops adds to all of them, then they are read. */
  #swapped(u: UOp<"REDUCE">, loops: readonly UOp[]): UOp {
    const a = this.#arena;
    const [body, ...ranges] = u.srcs as [UOp, ...UOp[]];
    const nodes = toposort([body], (x) => x.srcs);
    if (!nodes.includes(this.#outer)) this.#refuse("the sum is the same in every turn of the loop");
    if (nodes.some((n) => n.op === "REDUCE" || n.op === "STAGE")) this.#refuse("the sum has loops inside");
    const turns = loops.reduce((n, r) => n * sizeOf(r, () => this.#refuse("a loop has no constant size")), 1);
    if (u.arg === "SUM" && valueType(u).isFloat && turns > MAX_RUN) this.#refuse("the sum goes in blocks");
    const own = ranges.filter((r) => this.#isLane(r));
    const lanes = nodes.filter((r) => r.op === "RANGE" && this.#isLane(r) && !own.includes(r));
    const array = this.#array(u, lanes);
    const at = (loop: UOp): UOp =>
      lanes.reduce((index, r) => a.alu("ADD", a.alu("MUL", index, r.srcs[1] as UOp), r), loop);
    const stage = (from: UOp | undefined, value: UOp, over: readonly UOp[]): UOp => {
      const sum = from === undefined ? value : a.alu(REDUCE[u.arg].combine, from, value);
      const store = a.make("STORE", undefined, [array, at(this.#inner), sum], undefined);
      return a.make("STAGE", array.dtype, [array, store, ...over], undefined);
    };
    const load = (filled: UOp, loop: UOp): UOp => a.make("LOAD", u.dtype, [filled, at(loop)], undefined);
    const empty = a.constant(valueType(u), REDUCE[u.arg].identity(scalarOf(valueType(u))));
    const zeros = stage(undefined, empty, [this.#inner]);
    const inside = replace(body, new Map([[this.#outer, this.#inner]]), a);
    const turn = own.length === 0 ? inside : a.make("REDUCE", u.dtype, [inside, ...own], u.arg);
    const sums = stage(load(zeros, this.#inner), turn, [...loops, this.#inner]);
    return load(sums, this.#outer);
  }
  #array(u: UOp, lanes: readonly UOp[]): UOp<"DEFINE_LOCAL"> {
    const refuse = (): never => this.#refuse("the loop over this axis has no constant size");
    const size = prod([this.#outer, ...lanes].map((r) => sizeOf(r, refuse)));
    const pointer = PtrDType(valueType(u), true);
    const name = `sums${this.#number}_${this.#arrays++}`;
    const array = this.#arena.make("DEFINE_LOCAL", pointer, [], [name, size]) as UOp<"DEFINE_LOCAL">;
    this.#room -= arrayBytes(array);
    if (this.#room < 0) this.#refuse(`${this.#target.name} has room for ${this.#target.sharedMax} bytes`);
    return array;
  }
}

function sizeOf(range: UOp, otherwise: () => never): number {
  const end = range.srcs[1] as UOp;
  return end.op === "CONST" ? Number(end.arg) : otherwise();
}
