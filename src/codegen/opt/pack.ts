// PACK (operand packing): operands that are reread in every iteration of the axis's loop are copied before
// the loop, in the order in which sums read them. The elements of a column are far apart, and with a stride
// of a power of two they evict each other from the cache; in an array they are neighbours. In goes a graph
// and the list, out comes the graph in which LOADs read arrays.

import { getOrMake, prod, toposort } from "../../helpers.ts";
import type { UOpArena } from "../../uop/arena.ts";
import { isLane } from "../../uop/axis.ts";
import { type Expr, isExpr, type Range, type Reduce, type Sink, type UOp } from "../../uop/node.ts";
import { mapGraph } from "../../uop/rewrite.ts";
import { substitute } from "../../uop/substitute.ts";
import { type AxisIds, constantSize, freeAxesOf } from "../analysis/loops.ts";
import { hasUnitStride, isCollapsible } from "../analysis/strides.ts";
import type { KernelGraph } from "../lower/lower.ts";
import type { Target } from "../target.ts";
import { ArrayRoom } from "./arrays.ts";
import type { OptOp } from "./opts.ts";
import { constantAxes, type OptDoc, type OptRecord, refuse } from "./record.ts";

export const PACK_DOC: OptDoc = {
  textbook: "operand packing",
  summary:
    "Operands that sums reread in every iteration over an output axis are copied before its loop, in the order in " +
    "which they are read.",
  picture: `
for i: for j: for k:
  y[i, j] += a[i, k] * b[k, j]        PACK(0)
for j: for k: p[j, k] = b[k, j]
for i: for j: for k: y[i, j] += a[i, k] * p[j, k]`,
};

export const PACK: OptRecord<"PACK"> = {
  name: "PACK",
  params: { axis: { meaning: "an output axis that operands of a sum do not depend on", least: 0 } },
  takes: "output",
  expected: "nothing else",
  candidates: (kernel, { target }) =>
    target.grid !== undefined ? [] : constantAxes(kernel, "output").map(({ axis }) => ({ op: "PACK", axis })),
  transform: (graph, opt, { target, index }) => ({
    ...graph,
    sink: new Packer(graph, opt, target).run(`pack${index}_`),
  }),
};

/** What packing must know about a node. */
interface NodeFacts {
  /** the axes it depends on */
  readonly free: AxisIds;
  /** it reads a buffer */
  readonly loads: boolean;
  /** it has loops of its own */
  readonly loops: boolean;
}

class Packer {
  readonly #arena: UOpArena;
  readonly #sink: Sink;
  readonly #opt: OptOp<"PACK">;
  readonly #target: Target;
  readonly #facts = new Map<UOp, NodeFacts>();
  /** the LOADs that replace what was packed */
  readonly #packed = new Map<UOp, Expr>();
  /** the ranges of the axis that the op names */
  readonly #named = new Set<number>();
  readonly #room: ArrayRoom;

  constructor({ sink, arena }: KernelGraph, opt: OptOp<"PACK">, target: Target) {
    this.#sink = sink;
    this.#arena = arena;
    this.#opt = opt;
    this.#target = target;
    this.#room = new ArrayRoom(target, arena.nodes(sink));
  }

  run(name: string): Sink {
    if (this.#target.grid !== undefined) this.#refuse(`${this.#target.name} has a grid in place of the loop`);
    const sink = mapGraph(this.#sink, this.#arena, (u) =>
      u.op === "REDUCE" ? this.#packedSum(u, name) : undefined,
    );
    if (this.#packed.size === 0) this.#refuse("no sum reads the same in every iteration of its loop");
    return sink;
  }
  #refuse(why: string): never {
    return refuse(this.#opt, why, "PACK takes an output axis that operands of a sum do not depend on");
  }

  /** undefined: nothing that it reads is packed. */
  #packedSum({ fn, body, ranges }: Reduce, name: string): Expr | undefined {
    if (this.#isInvariant(body)) return undefined;
    const loops = ranges.filter((r) => !isLane(r.axis));
    const found = new Map<UOp, UOp>();
    this.#packBelow(body, loops, name, found);
    const changed = substitute(body, found, this.#arena);
    if (changed === body) return undefined;
    const one = loops.length > 1 ? this.#collapsed(changed, loops) : undefined;
    if (one === undefined) return this.#arena.reduce(fn, changed, ranges);
    return this.#arena.reduce(fn, one.body, [one.range, ...ranges.filter((r) => isLane(r.axis))]);
  }

  #factsOf(u: UOp): NodeFacts {
    return getOrMake(this.#facts, u, () => {
      const below = u.srcs.map((s) => this.#factsOf(s));
      if (u.op === "RANGE" && u.axis.of === this.#opt.axis) this.#named.add(u.axis.id);
      const loops = u.op === "REDUCE" || u.op === "STAGE";
      return {
        free: freeAxesOf(u, (s) => this.#factsOf(s).free),
        loads: u.op === "LOAD" || below.some((f) => f.loads),
        loops: loops || below.some((f) => f.loops),
      };
    });
  }
  /** The same in every iteration of the loop over the axis. */
  #isInvariant(u: UOp): boolean {
    return [...this.#factsOf(u).free].every((id) => !this.#named.has(id));
  }

  /**
   * Packs the largest parts of the body of a sum that can be. `found` gets the LOADs that take their place.
   */
  #packBelow(u: UOp, loops: readonly Range[], name: string, found: Map<UOp, UOp>): void {
    const { free, loads, loops: hasLoops } = this.#factsOf(u);
    if (!loads || found.has(u)) return;
    if (u.op === "REDUCE" || u.op === "STAGE") found.set(u, u);
    else if (isExpr(u) && !hasLoops && this.#isInvariant(u) && loops.some((r) => free.has(r.axis.id))) {
      const load = getOrMake(this.#packed, u, () => this.#pack(u, loops, `${name}${this.#packed.size}`));
      found.set(u, load);
    } else for (const s of u.srcs) this.#packBelow(s, loops, name, found);
  }

  /**
   * Loop collapsing: a packed array is read from beginning to end, whatever loops filled it. If all other
   * operands have one stride through these loops too, they become one loop: the three of a convolution would
   * have a few iterations each. undefined: they have not.
   */
  #collapsed(body: Expr, loops: readonly Range[]): { body: Expr; range: Range } | undefined {
    const a = this.#arena;
    const sizes = loops.map(constantSize).filter((n) => n !== undefined);
    const innermost = loops.at(-1);
    if (sizes.length !== loops.length || innermost === undefined) return undefined;
    const range = a.range({ size: prod(sizes), kind: "reduce", of: innermost.axis.of });
    const merged = new Map<UOp, UOp>(loops.map((r) => [r, r === innermost ? range : a.int(0)]));
    const isFree = (u: UOp | undefined): boolean =>
      u !== undefined && loops.some((r) => this.#factsOf(u).free.has(r.axis.id));
    const by = new Map<UOp, UOp>();
    for (const u of toposort<UOp>([body], (x) => (x.op === "LOAD" || !isFree(x) ? [] : x.srcs))) {
      if (!isFree(u)) continue;
      if (u.op === "RANGE") return undefined;
      if (u.op !== "LOAD") continue;
      const { buffer, index, gate, otherwise } = u;
      if (!isCollapsible(index, loops, sizes) || isFree(gate) || isFree(otherwise)) return undefined;
      by.set(u, a.load(buffer, substitute(index, merged, a), { gate, otherwise }));
    }
    return { body: substitute(body, by, a), range };
  }

  /**
   * The order of the array: loops, the outermost first, then lanes; those that are contiguous in memory are
   * the innermost.
   */
  #pack(value: Expr, loops: readonly Range[], name: string): Expr {
    const a = this.#arena;
    const { free } = this.#factsOf(value);
    const nodes = toposort<UOp>([value], (x) => x.srcs);
    const own = loops.filter((r) => free.has(r.axis.id));
    // lanes of UNROLL are terms of one sum: they are never a vector
    const next = (r: Range): number =>
      r.axis.kind === "unroll"
        ? -1
        : nodes.filter((u) => u.op === "LOAD" && hasUnitStride(u, r, this.#target.simd)).length;
    const ranges = nodes.filter((r) => r.op === "RANGE");
    const lanes = ranges.filter((r) => isLane(r.axis)).sort((x, y) => next(x) - next(y));
    let [elements, index] = [1, a.int(0)];
    for (const r of [...own, ...lanes]) {
      const size = constantSize(r);
      if (size === undefined) this.#refuse("a loop of the sum does not have a constant size");
      elements *= size;
      index = a.alu("ADD", a.alu("MUL", index, a.int(size)), r);
    }
    const array = a.local(value.dtype, name, elements);
    this.#room.take(array, (why) => this.#refuse(why));
    const filled = a.stage(array, [a.store(array, index, value)], own);
    return a.load(filled, index);
  }
}
