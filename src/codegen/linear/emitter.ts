// Appends nodes to the list of a kernel as they are asked for. Nothing is interned: memory holds other values
// after each barrier, so two equal loads are two. Only x + 0, x * 1 and the like are folded.

import { type DType, dtypes, PtrDType, type Value } from "../../dtype.ts";
import type { AluOp } from "../../ops.ts";
import type { UOpGraph } from "../../uop/list.ts";
import {
  type DefineAcc,
  type DefineLocal,
  type Expr,
  type If,
  type Loop,
  type Memory,
  makeUOp,
  type Phi,
  type UOp,
} from "../../uop/node.ts";

const { int32, bool } = dtypes;
const zeroOf = (d: DType): Value => (d.isBig ? 0n : 0);
/** One end of a copy. */
export interface CopyAddress {
  readonly memory: Memory;
  readonly index: Expr;
}

/** What is copied: a vector of memory; where `inside` is false, zeros. */
export interface CopySource extends CopyAddress {
  readonly elements: number;
  readonly inside?: Expr | undefined;
}

export class Emitter {
  readonly list: UOpGraph;

  constructor(list: UOpGraph) {
    this.list = list;
  }
  push<U extends UOp>(u: U): U {
    this.list.push(u);
    return u;
  }

  // ---- expressions ----

  const(n: number): Expr {
    return this.push(makeUOp("CONST", int32, [], n));
  }
  alu(fn: AluOp, dtype: DType, ...operands: readonly Expr[]): Expr {
    return this.push(makeUOp("ALU", dtype, operands, fn));
  }
  /** Arithmetic on indexes. */
  int(fn: "ADD" | "MUL" | "IDIV" | "MOD" | "XOR", x: Expr, y: Expr): Expr {
    const is = (u: Expr, n: number): boolean => u.op === "CONST" && u.value === n;
    const isSum = fn === "ADD" || fn === "XOR";
    if (is(y, isSum ? 0 : 1)) return fn === "MOD" ? this.const(0) : x;
    if (is(x, 0)) return isSum ? y : x;
    if (is(y, 0) && fn === "MUL") return y;
    return this.alu(fn, int32, x, y);
  }
  compare(fn: "CMPLT" | "CMPEQ", x: Expr, y: Expr): Expr {
    return this.alu(fn, bool, x, y);
  }
  /** All of these conditions hold; undefined where there are none. */
  and([first, ...rest]: readonly Expr[]): Expr | undefined {
    return first && rest.reduce((x, y) => this.alu("AND", bool, x, y), first);
  }
  /** Where the gate is closed the value is 0. */
  load(memory: Memory, index: Expr, elements = 1, gate?: Expr): Expr {
    const { base } = memory.dtype;
    const type = elements === 1 ? base : base.vec(elements);
    const gated = gate === undefined ? [] : [gate, this.zero(type)];
    return this.push(makeUOp("LOAD", type, [memory, index, ...gated], undefined));
  }
  zero(type: DType): Expr {
    return this.push(makeUOp("CONST", type, [], zeroOf(type)));
  }
  shuffle(value: Expr, mask: number): Expr {
    return this.push(makeUOp("SHFL", value.dtype, [value], mask));
  }
  /** Combines the indexes of a workgroup into one number. The first is the innermost. */
  flatten(axes: readonly { readonly index: Expr; readonly size: number }[]): Expr {
    return axes.reduceRight<Expr>(
      (outer, { index, size }) => this.int("ADD", this.int("MUL", outer, this.const(size)), index),
      this.const(0),
    );
  }

  // ---- memory and accumulators ----

  /** An array in shared memory. */
  local(element: DType, elements: number): DefineLocal {
    const n = this.list.uops.filter((u) => u.op === "DEFINE_LOCAL").length;
    return this.push(makeUOp("DEFINE_LOCAL", PtrDType(element, true), [], [`shared${n}`, elements]));
  }
  store(memory: Memory, index: Expr, value: Expr, gate?: Expr): void {
    const gates = gate === undefined ? [] : [gate];
    this.push(makeUOp("STORE", undefined, [memory, index, value, ...gates], undefined));
  }
  accumulator(dtype: DType, initial: Value): DefineAcc {
    return this.push(makeUOp("DEFINE_ACC", dtype, [], initial));
  }
  /** The accumulator gets a value; after the loops it holds that of the last iteration. */
  phi(accumulator: DefineAcc, value: Expr, ...loops: readonly Loop[]): Phi {
    return this.push(makeUOp("PHI", accumulator.dtype, [accumulator, value, ...loops], undefined));
  }

  // ---- effects ----

  barrier(): void {
    this.push(makeUOp("BARRIER", undefined, [], undefined));
  }
  if(condition: Expr): If {
    return this.push(makeUOp("IF", undefined, [condition], undefined));
  }
  endIf(branch: If): void {
    this.push(makeUOp("ENDIF", undefined, [branch], undefined));
  }
  asyncCopy(to: CopyAddress, { memory, index, elements, inside }: CopySource, gate: Expr | undefined): void {
    const srcs = [to.memory, to.index, memory, index];
    const always = (): Expr => this.push(makeUOp("CONST", bool, [], 1));
    if (inside !== undefined) srcs.push(gate ?? always(), inside);
    else if (gate !== undefined) srcs.push(gate);
    this.push(makeUOp("ASYNC", undefined, srcs, elements));
  }
  commit(): void {
    this.push(makeUOp("COMMIT", undefined, [], undefined));
  }
  wait(pending: number): void {
    this.push(makeUOp("WAIT", undefined, [], pending));
  }
}
