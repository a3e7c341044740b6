// A reduction over the threads of a workgroup: each thread has a part, and in the end all of them have the
// total. Threads of a warp exchange values by SHFL; warps write to shared memory, where every thread then
// finds all parts. linearize calls this. Every thread must take part, so none of this is conditional.

import { scalarOf } from "../../dtype.ts";
import { InternalError } from "../../errors.ts";
import { range } from "../../helpers.ts";
import { REDUCE, type ReduceOp } from "../../ops.ts";
import type { DefineLocal, Expr, Reduce } from "../../uop/node.ts";
import type { Gpu } from "../target.ts";
import type { Emitter } from "./emitter.ts";

/** An axis of the workgroup. Several axes may share one lidx; `index` is then computed from it. */
export interface ThreadAxis {
  readonly index: Expr;
  readonly size: number;
}
/** A thread axis and whether the reduction runs along it. */
export interface SharedAxis extends ThreadAxis {
  readonly shares: boolean;
}

/** The workgroup, and where the reduction is. */
export interface Workgroup {
  /** innermost first: neighbours along it are neighbours in a warp */
  readonly axes: readonly SharedAxis[];
  readonly gpu: Gpu | undefined;
  /** inside a loop: threads that are an iteration behind may still read what is in shared memory */
  readonly isInLoop: boolean;
  readonly emit: Emitter;
}

/** Every thread reads up to this many parts. More are combined as a tree. */
const MAX_READ = 8;

/** A reduction and the part of it that each thread has. */
export interface PartialResult {
  readonly reduce: Reduce;
  readonly value: Expr;
}

/** The totals of these parts, which all run over the same threads. */
export const combineThreads = (parts: readonly PartialResult[], group: Workgroup): Expr[] =>
  new Combination(group).run(parts);

interface PartialSlot {
  readonly fn: ReduceOp;
  readonly memory: DefineLocal;
}

class Combination {
  readonly #emit: Emitter;
  readonly #isInLoop: boolean;
  /** the innermost axis, if the reduction runs along it */
  readonly #lane: ThreadAxis | undefined;
  /** neighbours that exchange values by SHFL */
  readonly #width: number;
  /** the index of this thread among those that share the reduction, and their number */
  readonly #position: Expr;
  readonly #count: number;
  /** the same for the threads that do not share */
  readonly #others: Expr;
  readonly #rows: number;

  constructor({ axes, gpu, isInLoop, emit }: Workgroup) {
    this.#emit = emit;
    this.#isInLoop = isInLoop;
    const shared = axes.filter((a) => a.shares);
    this.#lane = axes[0]?.shares ? axes[0] : undefined;
    this.#width = largestPower(this.#lane?.size ?? 1, gpu?.warp ?? 1);
    this.#count = product(shared);
    const rest = axes.filter((a) => !a.shares);
    this.#rows = product(rest);
    this.#position = emit.flatten(shared);
    this.#others = emit.flatten(rest);
  }

  run(parts: readonly PartialResult[]): Expr[] {
    const emit = this.#emit;
    const ofWarps = parts.map(({ reduce: { fn }, value }) => ({
      fn,
      value: this.#exchange(fn, value, this.#width),
    }));
    if (this.#count === this.#width) return ofWarps.map((w) => w.value);
    if (this.#isInLoop) emit.barrier();
    const left = this.#count / this.#width;
    const isFirst =
      this.#width > 1 ? emit.compare("CMPEQ", this.#laneModulo(this.#width), emit.const(0)) : undefined;
    const at = this.#indexOf(emit.int("IDIV", this.#position, emit.const(this.#width)));
    const slots = ofWarps.map(({ fn, value }): PartialSlot => {
      const memory = emit.local(scalarOf(value.dtype), left * this.#rows);
      emit.store(memory, at, value, isFirst);
      return { fn, memory };
    });
    emit.barrier();
    const isPower = largestPower(left, left) === left;
    const fitsWarp = isPower && left <= this.#width;
    if (left > MAX_READ && !fitsWarp) {
      this.#tree(slots, left);
      return slots.map((s) => emit.load(s.memory, this.#others));
    }
    return slots.map(({ fn, memory }) => {
      if (fitsWarp) return this.#exchange(fn, emit.load(memory, this.#indexOf(this.#laneModulo(left))), left);
      return this.#inPairs(
        fn,
        range(left).map((k) => emit.load(memory, this.#indexOf(emit.const(k)))),
      );
    });
  }

  /** Where a part is in shared memory: those of neighbouring threads of other reductions are side by side. */
  #indexOf(part: Expr): Expr {
    return this.#emit.int("ADD", this.#emit.int("MUL", part, this.#emit.const(this.#rows)), this.#others);
  }

  /** Each of `width` neighbours gets the total of all of them: the same, since a + b is b + a. */
  #exchange(fn: ReduceOp, value: Expr, width: number): Expr {
    let total = value;
    for (let mask = width >> 1; mask > 0; mask >>= 1) {
      total = this.#combine(fn, total, this.#emit.shuffle(total, mask));
    }
    return total;
  }

  /** A tree: half of the parts are combined with the other half until one is left. */
  #tree(slots: readonly PartialSlot[], parts: number): void {
    const emit = this.#emit;
    const mine = this.#indexOf(this.#position);
    for (let left = parts; left > 1; ) {
      const half = Math.ceil(left / 2);
      const branch = emit.if(emit.compare("CMPLT", this.#position, emit.const(left - half)));
      for (const { fn, memory } of slots) {
        const other = emit.load(memory, emit.int("ADD", mine, emit.const(half * this.#rows)));
        emit.store(memory, mine, this.#combine(fn, emit.load(memory, mine), other));
      }
      emit.endIf(branch);
      emit.barrier();
      left = half;
    }
  }
  #inPairs(fn: ReduceOp, values: readonly Expr[]): Expr {
    const [x, y, ...rest] = values;
    if (x === undefined) throw new InternalError("a workgroup shares a reduction that has no parts");
    if (y === undefined) return x;
    const pairs = [this.#combine(fn, x, y)];
    for (let i = 0; i < rest.length; i += 2) {
      const [a, b] = rest.slice(i, i + 2);
      if (a !== undefined) pairs.push(b === undefined ? a : this.#combine(fn, a, b));
    }
    return this.#inPairs(fn, pairs);
  }
  #combine(fn: ReduceOp, x: Expr, y: Expr): Expr {
    return this.#emit.alu(REDUCE[fn].combine, x.dtype, x, y);
  }
  /** The innermost index modulo n, where n divides its size or is the whole of it. */
  #laneModulo(n: number): Expr {
    if (this.#lane === undefined) throw new InternalError("no axis of this workgroup exchanges values");
    const { index, size } = this.#lane;
    return size === n ? index : this.#emit.int("MOD", index, this.#emit.const(n));
  }
}

const product = (axes: readonly ThreadAxis[]): number => axes.reduce((n, a) => n * a.size, 1);
/** The largest power of two that divides n, at most `most`. */
const largestPower = (n: number, most: number): number => {
  let power = 1;
  while (power * 2 <= most && n % (power * 2) === 0) power *= 2;
  return power;
};
