// STAGE on an output axis: what sums read again in every turn of its loop is copied before the loop, in the order in which
// they read it. The columns of a matrix lie far apart, and at a distance of a power of two they drive each other out of the
// cache; in an array they are neighbours. In goes a graph and the list, out comes the graph in which LOADs read arrays.

import { dtypes, PtrDType } from "../../dtype.ts";
import { ArgumentError } from "../../errors.ts";
import { getOrMake, prod, toposort } from "../../helpers.ts";
import { changedSrcs, mapGraph } from "../../uop/rewrite.ts";
import { type UOp, type UOpArena, valueType } from "../../uop/uops.ts";
import { replace } from "../analysis/affine.ts";
import type { Axis, Lowered } from "../lower/lower.ts";
import { isEven, isLane, isNext } from "../passes/expand.ts";
import type { Target } from "../target.ts";
import { arrayBytes, isOutput } from "./keep.ts";
import { type OptOp, showOpts } from "./opts.ts";

export function packOperands(lowered: Lowered, opts: readonly OptOp[], target: Target): UOp {
  const ops = opts.filter((o) => o.op === "STAGE" && isOutput(o.axis, lowered.axes));
  return ops.reduce(
    (sink, o, i) => new Packer({ ...lowered, sink }, o, target).run(`pack${i}_`),
    lowered.sink,
  );
}

/** What a node is made of, as far as packing looks at it. */
interface Facts {
  /** the ids of the ranges it depends on */
  readonly free: ReadonlySet<number>;
  /** it reads a buffer */
  readonly loads: boolean;
  /** it has loops of its own */
  readonly loops: boolean;
}

/** Ranges made here are numbered from here: no kernel has as many axes, and blocks.ts makes fewer. */
const FIRST_ID = 2000;

class Packer {
  readonly #arena: UOpArena;
  readonly #axes: readonly Axis[];
  readonly #sink: UOp;
  readonly #opt: OptOp;
  readonly #target: Target;
  readonly #facts = new Map<UOp, Facts>();
  /** the LOADs that stand for what was packed */
  readonly #packed = new Map<UOp, UOp>();
  #room: number;
  #merged = 0;

  constructor({ sink, arena, axes }: Lowered, opt: OptOp, target: Target) {
    this.#sink = sink;
    this.#arena = arena;
    this.#axes = axes;
    this.#opt = opt;
    this.#target = target;
    this.#room = target.sharedMax;
  }

  run(name: string): UOp {
    if (this.#opt.amount !== 1) this.#refuse("its operands are packed whole");
    if (this.#target.hasLocal) this.#refuse(`${this.#target.name} has a grid in place of the loop`);
    for (const u of toposort([this.#sink], (x) => x.srcs)) {
      if (u.op === "DEFINE_LOCAL") this.#room -= arrayBytes(u);
    }
    const sink = mapGraph(this.#sink, this.#arena, (u) => {
      if (u.op !== "REDUCE") return undefined;
      const [body, ...ranges] = u.srcs as [UOp, ...UOp[]];
      const loops = ranges.filter((r) => !this.#isLane(r));
      if (this.#isSteady(body)) return undefined;
      const changed = this.#visit(body, loops, name);
      if (changed === body) return undefined;
      const lanes = ranges.filter((r) => this.#isLane(r));
      const one = loops.length > 1 ? this.#asOne(changed, loops) : undefined;
      const srcs = one === undefined ? [changed, ...ranges] : [one.body, one.range, ...lanes];
      return this.#arena.make("REDUCE", u.dtype, srcs, u.arg);
    });
    if (this.#packed.size === 0) this.#refuse("no sum reads the same in every turn of its loop");
    return sink;
  }
  #refuse(why: string): never {
    throw new ArgumentError(
      `${showOpts([this.#opt])}: ${why}; STAGE takes an output axis that operands of a sum do not depend on, and 1`,
    );
  }

  #factsOf(u: UOp): Facts {
    return getOrMake(this.#facts, u, () => {
      const below = u.srcs.map((s) => this.#factsOf(s));
      const free = new Set(below.flatMap((f) => [...f.free]));
      if (u.op === "RANGE") free.add(u.arg);
      const loops = u.op === "REDUCE" || u.op === "STAGE";
      return {
        free,
        loads: u.op === "LOAD" || below.some((f) => f.loads),
        loops: loops || below.some((f) => f.loops),
      };
    });
  }
  #isLane(range: UOp): boolean {
    const axis = this.#axes[range.arg as number];
    return axis !== undefined && isLane(axis);
  }
  /** The same in every turn of the loop over the axis. */
  #isSteady(u: UOp): boolean {
    return [...this.#factsOf(u).free].every((id) => this.#axes[id]?.of !== this.#opt.axis);
  }

  /** The body of a sum with LOADs from arrays in place of the largest parts that can be packed. */
  #visit(u: UOp, loops: readonly UOp[], name: string): UOp {
    const { free, loads, loops: hasLoops } = this.#factsOf(u);
    if (!loads || u.op === "REDUCE" || u.op === "STAGE") return u;
    if (!hasLoops && this.#isSteady(u) && loops.some((r) => free.has(r.arg as number))) {
      return getOrMake(this.#packed, u, () => this.#pack(u, loops, `${name}${this.#packed.size}`));
    }
    const srcs = changedSrcs(u, (s) => this.#visit(s, loops, name));
    return srcs === undefined ? u : this.#arena.withSrcs(u, srcs);
  }

  /**
   * An array is read from its begin to its end, whatever loops filled it. Where all else that the sum reads goes on
   * in even steps too, one loop does: the three of a convolution would turn a few times each. Undefined: it does not.
   */
  #asOne(body: UOp, loops: readonly UOp[]): { body: UOp; range: UOp } | undefined {
    const a = this.#arena;
    const sizes = loops.map((r) => Number((r.srcs[1] as UOp).arg));
    const range = a.make(
      "RANGE",
      dtypes.int32,
      [a.constant(dtypes.int32, 0), a.constant(dtypes.int32, prod(sizes))],
      FIRST_ID + this.#merged++,
    );
    const zero = a.constant(dtypes.int32, 0);
    const merged = new Map(loops.map((r) => [r, r === loops.at(-1) ? range : zero]));
    const isFree = (u: UOp): boolean => loops.some((r) => this.#factsOf(u).free.has(r.arg as number));
    let even = true;
    const visit = (u: UOp): UOp => {
      if (!isFree(u)) return u;
      const [buffer, index, ...rest] = u.srcs as [UOp, UOp, ...UOp[]];
      if (u.op !== "LOAD") {
        if (u.op === "RANGE") even = false;
        return a.withSrcs(u, u.srcs.map(visit));
      }
      if (!isEven(index, loops, sizes) || rest.some(isFree)) even = false;
      return a.withSrcs(u, [buffer, replace(index, merged, a), ...rest]);
    };
    const made = visit(body);
    return even ? { body: made, range } : undefined;
  }

  /** Loops first, the outermost first, then lanes; those that lie side by side in memory are the innermost. */
  #pack(value: UOp, loops: readonly UOp[], name: string): UOp {
    const a = this.#arena;
    const { free } = this.#factsOf(value);
    const nodes = toposort([value], (x) => x.srcs);
    const own = loops.filter((r) => free.has(r.arg as number));
    // lanes of UNROLL are terms of one sum: they are never a vector
    const next = (r: UOp): number =>
      this.#axes[r.arg as number]?.kind === "unroll"
        ? -1
        : nodes.filter((u) => u.op === "LOAD" && isNext(u, r, this.#target.simd)).length;
    const lanes = nodes.filter((r) => r.op === "RANGE" && this.#isLane(r)).sort((x, y) => next(x) - next(y));
    const sizes = [...own, ...lanes].map((r) => {
      const end = r.srcs[1] as UOp;
      if (end.op !== "CONST") this.#refuse("a loop of the sum has no constant size");
      return Number(end.arg);
    });
    const index = [...own, ...lanes].reduce(
      (at, r, i) => a.alu("ADD", a.alu("MUL", at, a.constant(dtypes.int32, sizes[i] as number)), r),
      a.constant(dtypes.int32, 0),
    );
    const pointer = PtrDType(valueType(value), true);
    const array = a.make("DEFINE_LOCAL", pointer, [], [name, prod(sizes)]) as UOp<"DEFINE_LOCAL">;
    this.#room -= arrayBytes(array);
    if (this.#room < 0) this.#refuse(`${this.#target.name} has room for ${this.#target.sharedMax} bytes`);
    const store = a.make("STORE", undefined, [array, index, value], undefined);
    const filled = a.make("STAGE", pointer, [array, store, ...own], undefined);
    return a.make("LOAD", valueType(value), [filled, index], undefined);
  }
}
