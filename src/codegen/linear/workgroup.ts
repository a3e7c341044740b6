// A reduce over the items of a workgroup: each item has a part, and in the end all of them have the total. Neighbours in a
// warp exchange values by SHFL, warps meet in shared memory, where every item then finds all parts. Called by linearize, which
// has the list and the items' indexes; every item must come by, so nothing of this stands under a condition.

import { type DType, dtypes, PtrDType, scalarOf } from "../../dtype.ts";
import { range } from "../../helpers.ts";
import { type AluOp, REDUCE, type ReduceOp } from "../../ops.ts";
import {
  makeUOp,
  type UOp,
  type UOpArgs,
  type UOpGraph,
  type UOpName,
  type UType,
  valueType,
} from "../../uop/uops.ts";
import type { Gpu } from "../target.ts";

/** An axis of the workgroup. Several may stand in one lidx, of which `index` is then a part. */
export interface ItemAxis {
  readonly index: UOp;
  readonly size: number;
  /** the reduce is over it */
  readonly shares: boolean;
}

/** The workgroup that a list is for, and what it is allowed. */
export interface Workgroup {
  /** the innermost first: neighbours along it are neighbours in a warp */
  readonly items: readonly ItemAxis[];
  readonly gpu: Gpu | undefined;
  /** inside a loop: what is in shared memory may still be read by items that are a turn behind */
  readonly again: boolean;
  readonly list: UOpGraph;
}

/** As many parts are read by every item; of more a tree is made. */
const MAX_READ = 8;
const { int32 } = dtypes;

/** The totals of `values` by the ops of `reduces`, which all run over the same items. */
export function combineItems(
  reduces: readonly UOp<"REDUCE">[],
  values: readonly UOp[],
  group: Workgroup,
): UOp[] {
  return new Combination(group).run(
    reduces.map((r) => r.arg),
    values,
  );
}

class Combination {
  readonly #list: UOpGraph;
  readonly #again: boolean;
  /** the innermost axis, if it is one of those that share */
  readonly #lane: ItemAxis | undefined;
  /** neighbours that exchange values by SHFL */
  readonly #width: number;
  /** which of those that share this item is, and of how many */
  readonly #position: UOp;
  readonly #count: number;
  /** the same for the items that do not share */
  readonly #others: UOp;
  readonly #rows: number;

  constructor({ items, gpu, again, list }: Workgroup) {
    this.#list = list;
    this.#again = again;
    const shared = items.filter((i) => i.shares);
    this.#lane = items[0]?.shares ? items[0] : undefined;
    this.#width = largestPower(this.#lane?.size ?? 1, gpu?.warp ?? 1);
    this.#count = product(shared);
    const rest = items.filter((i) => !i.shares);
    this.#rows = product(rest);
    this.#position = this.#number(shared);
    this.#others = this.#number(rest);
  }

  run(ops: readonly ReduceOp[], values: readonly UOp[]): UOp[] {
    const parts = values.map((v, i) => this.#exchange(ops[i] as ReduceOp, v, this.#width));
    if (this.#count === this.#width) return parts;
    if (this.#again) this.#add("BARRIER", undefined, [], undefined);
    const left = this.#count / this.#width;
    const first = this.#width > 1 ? this.#test("CMPEQ", this.#mod(this.#width), 0) : undefined;
    const at = this.#place(this.#int("IDIV", this.#position, this.#const(this.#width)));
    const memory = parts.map((v) => {
      const size = left * this.#rows;
      const local = this.#define(valueType(v), size);
      this.#add("STORE", undefined, [local, at, v, ...(first === undefined ? [] : [first])], undefined);
      return local;
    });
    this.#add("BARRIER", undefined, [], undefined);
    const isPower = largestPower(left, left) === left;
    if (left > MAX_READ && !(isPower && left <= this.#width)) {
      this.#tree(ops, memory, left);
      return memory.map((m) => this.#load(m, this.#others));
    }
    return memory.map((m, i) => {
      const op = ops[i] as ReduceOp;
      if (isPower && left <= this.#width)
        return this.#exchange(op, this.#load(m, this.#place(this.#mod(left))), left);
      return this.#pairs(
        op,
        range(left).map((k) => this.#load(m, this.#place(this.#const(k)))),
      );
    });
  }

  /** Where a part lies in shared memory: items that are neighbours but share nothing lie side by side. */
  #place(part: UOp): UOp {
    return this.#int("ADD", this.#int("MUL", part, this.#const(this.#rows)), this.#others);
  }

  /** Each of `width` neighbours gets the total of all of them: the same, since a + b is b + a. */
  #exchange(op: ReduceOp, value: UOp, width: number): UOp {
    let total = value;
    for (let mask = width >> 1; mask > 0; mask >>= 1) {
      total = this.#combine(op, total, this.#add("SHFL", value.dtype, [total], mask));
    }
    return total;
  }

  /** Half of the parts are added to the other half until one is left. */
  #tree(ops: readonly ReduceOp[], memory: readonly UOp[], parts: number): void {
    const mine = this.#place(this.#position);
    for (let left = parts; left > 1; ) {
      const half = Math.ceil(left / 2);
      const condition = this.#test("CMPLT", this.#position, left - half);
      const open = this.#add("IF", undefined, [condition], undefined);
      memory.forEach((m, i) => {
        const other = this.#load(m, this.#int("ADD", mine, this.#const(half * this.#rows)));
        const total = this.#combine(ops[i] as ReduceOp, this.#load(m, mine), other);
        this.#add("STORE", undefined, [m, mine, total], undefined);
      });
      this.#add("ENDIF", undefined, [open], undefined);
      this.#add("BARRIER", undefined, [], undefined);
      left = half;
    }
  }
  #pairs(op: ReduceOp, values: readonly UOp[]): UOp {
    let left = [...values];
    while (left.length > 1) {
      const before = left;
      left = range(Math.ceil(before.length / 2)).map((i) => {
        const [x, y] = [before[2 * i] as UOp, before[2 * i + 1]];
        return y === undefined ? x : this.#combine(op, x, y);
      });
    }
    return left[0] as UOp;
  }

  // ---- nodes; every one is new, since memory is another after each barrier ----

  #add<K extends UOpName>(op: K, dtype: UType, srcs: readonly UOp[], arg: UOpArgs[K]): UOp {
    const made = makeUOp(op, dtype, srcs, arg) as UOp;
    this.#list.push(made);
    return made;
  }
  #combine(op: ReduceOp, x: UOp, y: UOp): UOp {
    return this.#add("ALU", x.dtype, [x, y], REDUCE[op].combine);
  }
  #define(type: DType, size: number): UOp {
    const n = this.#list.uops.filter((u) => u.op === "DEFINE_LOCAL").length;
    return this.#add("DEFINE_LOCAL", PtrDType(scalarOf(type), true), [], [`shared${n}`, size]);
  }
  #load(memory: UOp, at: UOp): UOp {
    const { base } = memory.dtype as { base: DType };
    return this.#add("LOAD", base, [memory, at], undefined);
  }
  #const(n: number): UOp {
    return this.#add("CONST", int32, [], n);
  }
  #int(op: AluOp, x: UOp, y: UOp): UOp {
    if (y.op === "CONST" && y.arg === (op === "ADD" ? 0 : 1)) return x;
    if (x.op === "CONST" && x.arg === 0) return op === "ADD" ? y : x;
    return this.#add("ALU", int32, [x, y], op);
  }
  #test(op: AluOp, x: UOp, n: number): UOp {
    return this.#add("ALU", dtypes.bool, [x, this.#const(n)], op);
  }
  /** The innermost index modulo n, where n divides its size or is the whole of it. */
  #mod(n: number): UOp {
    const { index, size } = this.#lane as ItemAxis;
    return size === n ? index : this.#add("ALU", int32, [index, this.#const(n)], "MOD");
  }
  /** One number out of several indexes, the first the innermost. */
  #number(items: readonly ItemAxis[]): UOp {
    return items.reduceRight<UOp>(
      (outer, i) => this.#int("ADD", this.#int("MUL", outer, this.#const(i.size)), i.index),
      this.#const(0),
    );
  }
}

const product = (items: readonly ItemAxis[]): number => items.reduce((n, i) => n * i.size, 1);
/** The largest power of two that divides n, at most `most`. */
const largestPower = (n: number, most: number): number => {
  let power = 1;
  while (power * 2 <= most && n % (power * 2) === 0) power *= 2;
  return power;
};
