// INTERCHANGE (loop interchange): the loop of a sum goes around the loop over its results, which are in an
// array while it runs (scalar expansion). A row times a matrix then reads whole rows of the matrix one after
// the other, instead of a few columns from top to bottom. In goes a graph and the list, out comes the graph
// without those REDUCEs.

import { scalarOf } from "../../dtype.ts";
import { prod, toposort } from "../../helpers.ts";
import { REDUCE } from "../../ops.ts";
import type { UOpArena } from "../../uop/arena.ts";
import { isLane } from "../../uop/axis.ts";
import type { DefineLocal, Expr, Memory, Range, Reduce, Sink, Stage, UOp } from "../../uop/node.ts";
import { mapGraph } from "../../uop/rewrite.ts";
import { substitute } from "../../uop/substitute.ts";
import { constantSize } from "../analysis/loops.ts";
import type { KernelGraph } from "../lower/lower.ts";
import { MAX_RUN } from "../passes/blocksums.ts";
import type { Target } from "../target.ts";
import { ArrayRoom } from "./arrays.ts";
import type { OptOp } from "./opts.ts";
import { axesOf, constantAxes, type OptDoc, type OptRecord, refuse } from "./record.ts";

export const INTERCHANGE_DOC: OptDoc = {
  textbook: "loop interchange with scalar expansion",
  summary:
    "The loop of a sum goes around the loop over its results. The accumulators are an array while it runs.",
  picture: `
for i: s = 0; for k: s += x[k] * w[k, i]; y[i] = s
                              INTERCHANGE(0, reduce=1)
for k: for i: s[i] += x[k] * w[k, i]
for i: y[i] = s[i]`,
};

export const INTERCHANGE: OptRecord<"INTERCHANGE"> = {
  name: "INTERCHANGE",
  params: {
    axis: { meaning: "an output axis", least: 0 },
    reduce: { meaning: "the reduce axis of a sum inside its loop", least: 0 },
  },
  takes: "output",
  expected: "the reduce axis of a sum inside its loop",
  candidates: (kernel, { target }) =>
    target.grid !== undefined
      ? []
      : constantAxes(kernel, "output").flatMap(({ axis }) =>
          axesOf(kernel, "reduce").map((r) => ({ op: "INTERCHANGE", axis, reduce: r.axis }) as const),
        ),
  transform: (graph, opt, { target, index }) => ({
    ...graph,
    sink: new Interchanger(graph, opt, target, index).run(),
  }),
};

class Interchanger {
  readonly #arena: UOpArena;
  readonly #sink: Sink;
  readonly #opt: OptOp<"INTERCHANGE">;
  readonly #number: number;
  /** the output loop, and its copy inside the reduction */
  readonly #outer: Range;
  readonly #inner: Range;
  #arrays = 0;
  readonly #room: ArrayRoom;

  constructor(
    { sink, arena, order }: KernelGraph,
    opt: OptOp<"INTERCHANGE">,
    target: Target,
    number: number,
  ) {
    this.#sink = sink;
    this.#arena = arena;
    this.#opt = opt;
    this.#number = number;
    if (target.grid !== undefined) this.#refuse(`${target.name} has a grid in place of the loop`);
    // if LOCAL split the axis, take the inner loop
    const axis = order.findLast((a) => a.of === opt.axis);
    const nodes = toposort<UOp>([sink], (x) => x.srcs);
    const outer = nodes.filter((u) => u.op === "RANGE").find((r) => r.axis === axis);
    if (outer === undefined) this.#refuse("there is no loop over this axis");
    this.#outer = outer;
    const { size, of } = outer.axis;
    this.#inner = arena.range({ size, kind: "output", of }, outer.end);
    this.#room = new ArrayRoom(target, nodes);
  }

  run(): Sink {
    const sink = mapGraph(this.#sink, this.#arena, (u) => {
      if (u.op !== "REDUCE") return undefined;
      const loops = u.ranges.filter((r) => !isLane(r.axis));
      const isMeant = loops.some((r) => r.axis.of === this.#opt.reduce);
      return isMeant ? this.#interchanged(u, loops) : undefined;
    });
    if (this.#arrays === 0) this.#refuse("no sum has this reduce axis as a loop");
    return sink;
  }
  #refuse(why: string): never {
    return refuse(this.#opt, why, "INTERCHANGE takes an output axis and the axis of a sum inside its loop");
  }

  /**
   * The sums are set to zero, every iteration of the sum's own loops adds to all of them, then they are read.
   */
  #interchanged(u: Reduce, loops: readonly Range[]): Expr {
    const a = this.#arena;
    const { fn, body, dtype } = u;
    const nodes = toposort<UOp>([body], (x) => x.srcs);
    if (!nodes.includes(this.#outer)) this.#refuse("the sum is the same in every iteration of the loop");
    if (nodes.some((n) => n.op === "REDUCE" || n.op === "STAGE")) this.#refuse("the sum has loops inside");
    const refuse = (): never => this.#refuse("a loop does not have a constant size");
    const iterations = prod(loops.map((r) => sizeOf(r, refuse)));
    if (fn === "SUM" && dtype.isFloat && iterations > MAX_RUN) this.#refuse("the sum goes in blocks");
    const own = u.ranges.filter((r) => isLane(r.axis));
    const ranges = nodes.filter((r) => r.op === "RANGE");
    const lanes = ranges.filter((r) => isLane(r.axis) && !own.includes(r));
    const array = this.#array(u, lanes);
    const at = (loop: Range): Expr =>
      lanes.reduce<Expr>((index, r) => a.alu("ADD", a.alu("MUL", index, r.end), r), loop);
    const stage = (from: Expr | undefined, value: Expr, over: readonly Range[]): Stage => {
      const sum = from === undefined ? value : a.alu(REDUCE[fn].combine, from, value);
      return a.stage(array, [a.store(array, at(this.#inner), sum)], over);
    };
    const load = (filled: Memory, loop: Range): Expr => a.load(filled, at(loop));
    const empty = a.constant(dtype, REDUCE[fn].identity(scalarOf(dtype)));
    const zeros = stage(undefined, empty, [this.#inner]);
    const inside = substitute(body, new Map<UOp, UOp>([[this.#outer, this.#inner]]), a);
    const term = a.reduce(fn, inside, own);
    const sums = stage(load(zeros, this.#inner), term, [...loops, this.#inner]);
    return load(sums, this.#outer);
  }
  #array({ dtype }: Reduce, lanes: readonly Range[]): DefineLocal {
    const refuse = (): never => this.#refuse("the loop over this axis does not have a constant size");
    const size = prod([this.#outer, ...lanes].map((r) => sizeOf(r, refuse)));
    const array = this.#arena.local(dtype, `sums${this.#number}_${this.#arrays++}`, size);
    this.#room.take(array, (why) => this.#refuse(why));
    return array;
  }
}

const sizeOf = (r: Range, otherwise: () => never): number => constantSize(r) ?? otherwise();
