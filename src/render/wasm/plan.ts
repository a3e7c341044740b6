// Where each value of a kernel lives: on the wasm stack at its only use, or in locals. In goes the linear
// list, out comes an EmitPlan by position. A value moves to its use only within one block, past no store that
// its load could see and past no assignment of an accumulator it reads. Emitting code is left to wasm.ts.

import type { Value } from "../../dtype.ts";
import { Pointer } from "../../dtype.ts";
import { InternalError } from "../../errors.ts";
import type { UOpGraph } from "../../uop/list.ts";
import type { Expr, Special, UOp, UOpName } from "../../uop/node.ts";
import { isV128 } from "./lanes.ts";

/** An element index: a value that may be absent, plus a constant number of elements. */
interface ElementIndex {
  readonly base: Expr | undefined;
  readonly plus: number;
}

export interface EmitPlan {
  readonly uops: readonly UOp[];
  position(u: UOp): number;
  /** the value is used, or the uop is a statement */
  readonly live: readonly boolean[];
  /** emitted at its only use instead of where it stands */
  readonly inline: readonly boolean[];
  /** of LOADs and STOREs */
  readonly index: readonly (ElementIndex | undefined)[];
  readonly grid: readonly Special[];
}

const STATEMENTS: ReadonlySet<UOpName> = new Set([
  "STORE",
  "PHI",
  "SPECIAL",
  "LOOP",
  "ENDLOOP",
  "IF",
  "ENDIF",
  "DEFINE_ACC",
  "BARRIER",
]);
/** What needs no place of its own to be read again: constants and parameters. */
const FREE: ReadonlySet<UOpName> = new Set(["CONST", "DEFINE_GLOBAL", "DEFINE_LOCAL", "DEFINE_VAR"]);
/** Deeper expressions are cut into locals: the emitter and the engine's validator recurse. */
const MAX_DEPTH = 100;

export const isStatement = (u: UOp): boolean => STATEMENTS.has(u.op);
export const isFree = (u: UOp): boolean => FREE.has(u.op);
/** How many values of WebAssembly a uop is: a vector of four lanes is one. */
export const countOf = (u: UOp): number =>
  u.dtype === undefined || u.dtype instanceof Pointer || isV128(u.dtype) ? 1 : u.dtype.count;
/** The lanes a uop works on; a STORE has those of its value. */
export const lanesOf = (u: UOp): number => countOf(u.op === "STORE" ? u.value : u);

/** The accumulator behind a value: PHIs read what they assign. */
export function accumulatorOf(u: UOp): UOp | undefined {
  let behind: UOp = u;
  while (behind.op === "PHI") behind = behind.accumulator;
  return behind.op === "DEFINE_ACC" ? behind : undefined;
}

/** Proofs that an index is not negative: only then its constant part may move into the instruction. */
class NotNegative {
  readonly #known = new Map<UOp, boolean>();

  holds(u: UOp): boolean {
    const known = this.#known.get(u);
    if (known !== undefined) return known;
    const proved = this.#prove(u);
    this.#known.set(u, proved);
    return proved;
  }
  #prove(u: UOp): boolean {
    if (u.op === "CONST") return Number(u.value) >= 0;
    if (u.op === "LOOP") return this.holds(u.start);
    if (u.op === "SPECIAL") return true;
    if (u.op === "DEFINE_VAR") return u.variable.min >= 0;
    if (u.op === "CAST") {
      const from = u.operand.dtype;
      return (from.kind === "uint" || from.kind === "bool") && from.itemsize < 4;
    }
    if (u.op !== "ALU") return false;
    switch (u.fn) {
      case "ADD":
      case "MUL":
      case "IDIV":
        return u.operands.every((x) => this.holds(x));
      case "MOD":
      case "SHR":
        return this.holds(u.operands[0]);
      case "AND":
        return u.operands.some((x) => this.holds(x));
      default:
        return false;
    }
  }
}

function splitIndex(index: Expr, itemsize: number, proof: NotNegative): ElementIndex {
  let base = index;
  let plus = 0;
  const fits = (n: Expr): n is UOp<"CONST"> =>
    n.op === "CONST" && Number(n.value) >= 0 && (plus + Number(n.value)) * itemsize < 2 ** 31;
  for (;;) {
    if (fits(base)) return { base: undefined, plus: plus + Number(base.value) };
    if (base.op !== "ALU" || base.fn !== "ADD") break;
    const [a, b]: readonly [Expr, Expr] = base.operands;
    const [rest, c] = a.op === "CONST" ? [b, a] : [a, b];
    if (!fits(c) || !proof.holds(rest)) break;
    plus += Number(c.value);
    base = rest;
  }
  return { base, plus };
}

/** The sources whose values a uop needs, given how its index was split. */
function operands(u: UOp, index: ElementIndex | undefined): readonly UOp[] {
  switch (u.op) {
    case "LOAD":
    case "STORE":
      return [index?.base, ...(u.op === "LOAD" ? [u.gate, u.otherwise] : [u.value, u.gate])].filter(
        (s) => s !== undefined,
      );
    case "PHI":
      return [u.value];
    case "VECTORIZE": {
      // one value in all lanes is pushed once
      const [first] = u.lanes;
      return isV128(u.dtype) && first !== undefined && u.lanes.every((x) => x === first) ? [first] : u.lanes;
    }
    case "LOOP":
      // the end is read again after each iteration
      return [u.start, u.end, u.end];
    case "ENDLOOP":
    case "ENDIF":
      return [];
    default:
      return u.srcs;
  }
}

/** Facts of the list that do not depend on where values live. */
interface BlockFacts {
  /** which block a position stands in; a LOOP or IF stands in the block around it */
  readonly block: readonly number[];
  /** STOREs before a position */
  readonly stores: readonly number[];
  /** positions of the assignments of an accumulator */
  readonly assigned: ReadonlyMap<UOp, number[]>;
  readonly grid: readonly Special[];
}

function layout(uops: readonly UOp[]): BlockFacts {
  const n = uops.length;
  const block: number[] = [];
  const stores = [0];
  const assigned = new Map<UOp, number[]>();
  const grid: Special[] = [];
  const stack = [0];
  let blocks = 0;
  for (let i = 0; i < n; i++) {
    const u = uops[i] as UOp;
    if (u.op === "ENDLOOP" || u.op === "ENDIF") stack.pop();
    block[i] = stack.at(-1) ?? 0;
    if (u.op === "LOOP" || u.op === "IF" || u.op === "SPECIAL") stack.push(++blocks);
    if (u.op === "SPECIAL") grid.push(u);
    stores[i + 1] = (stores[i] as number) + (u.op === "STORE" ? 1 : 0);
    const acc = u.op === "PHI" ? accumulatorOf(u) : undefined;
    if (acc === undefined) continue;
    const list = assigned.get(acc);
    if (list === undefined) assigned.set(acc, [i]);
    else list.push(i);
  }
  // the grid is open to the end of the kernel
  if (stack.length !== 1 + grid.length)
    throw new InternalError("WASM: a LOOP or IF of the kernel is not closed");
  return { block, stores, assigned, grid };
}

/** Whether the value at `i` may as well be computed at `p`, later in the list. */
function mayMove(u: UOp, i: number, p: number, l: BlockFacts): boolean {
  if (l.block[i] !== l.block[p]) return false;
  if (u.op === "LOAD" && l.stores[p] !== l.stores[i + 1]) return false;
  for (const s of u.srcs) {
    const acc = accumulatorOf(s);
    if (acc !== undefined && l.assigned.get(acc)?.some((at) => at > i && at < p)) return false;
  }
  return true;
}

const zeros = (n: number): number[] => new Array<number>(n).fill(0);

export function plan(graph: UOpGraph): EmitPlan {
  const { uops } = graph;
  const n = uops.length;
  const facts = layout(uops);
  const proof = new NotNegative();
  const index: (ElementIndex | undefined)[] = new Array(n);
  const uses = zeros(n);
  const usedAt = zeros(n); // where the last user seen is emitted
  const depth = zeros(n);
  const live = new Array<boolean>(n).fill(false);
  const inline = new Array<boolean>(n).fill(false);

  // backwards: every user is settled before its sources
  for (let i = n - 1; i >= 0; i--) {
    const u = uops[i] as UOp;
    const statement = isStatement(u);
    if (!statement && uses[i] === 0) continue;
    live[i] = true;
    const at = usedAt[i] as number;
    const wide = lanesOf(u) > 1;
    const moves =
      !statement && !wide && uses[i] === 1 && (depth[i] as number) < MAX_DEPTH && mayMove(u, i, at, facts);
    inline[i] = moves;
    if (u.op === "LOAD" || u.op === "STORE") {
      index[i] = splitIndex(u.index, u.buffer.dtype.base.itemsize, proof);
    }
    for (const s of operands(u, index[i])) {
      if (isFree(s)) continue;
      const j = graph.indexOf(s);
      if (j < 0 || j >= i)
        throw new InternalError(`WASM: ${u.op} at ${i} uses ${s.op}, which does not stand before it`);
      uses[j] = (uses[j] as number) + (wide ? 2 : 1); // lanes are emitted one by one: each reads the source
      usedAt[j] = moves ? at : i;
      depth[j] = moves ? (depth[i] as number) + 1 : 0;
    }
  }
  return { uops, position: (u) => graph.indexOf(u), live, inline, index, grid: facts.grid };
}

/** The value of a constant source. */
export const constantOf = (u: UOp | undefined): Value | undefined =>
  u?.op === "CONST" ? u.value : undefined;
