// What one iteration of a reduction does to its accumulators: which terms its body adds up, which of them are
// products that are added in one instruction. linearize calls this inside the innermost loop; it places the
// operands.

import { scalarOf } from "../../dtype.ts";
import { REDUCE } from "../../ops.ts";
import type { UOpArena } from "../../uop/arena.ts";
import { type DefineAcc, type Expr, isProduct, makeUOp, type Reduce, type UOp } from "../../uop/node.ts";
import { fusesProducts, type Target } from "../target.ts";
import type { Emitter } from "./emitter.ts";

/** What this needs from the linearizer. */
export interface Placer {
  readonly arena: UOpArena;
  readonly emit: Emitter;
  readonly target: Target;
  place(u: Expr): Expr;
  isPlaced(u: UOp): boolean;
}
/** A reduction and its accumulator. */
export interface Accumulation {
  readonly reduce: Reduce;
  readonly accumulator: DefineAcc;
}

/** Gives an accumulator the value that it has after the iteration. */
export type Assign = (accumulator: DefineAcc, value: Expr) => UOp;

/** The values that the accumulators get in this iteration, each handed to `assign` as soon as it is there. */
export const accumulate = (all: readonly Accumulation[], placer: Placer, assign: Assign): UOp[] =>
  all.map(({ reduce, accumulator }) => {
    // terms already placed by an earlier reduction are not split again
    const terms = termsOf(reduce, placer);
    const sum = terms.reduce<Expr>((x, t) => addTerm(reduce, t, x, placer), accumulator);
    return assign(accumulator, sum);
  });

/** The terms that the body of a reduction adds up, if adding them one by one is better than the tree. */
export function termsOf({ fn, body, dtype }: Reduce, placer: Placer): readonly Expr[] {
  const { target } = placer;
  const isVector = scalarOf(dtype) !== dtype;
  const fuses = fusesProducts(target, dtype) || (isVector && target.gpu !== undefined);
  const all = fn === "SUM" && fuses ? addends(body, placer) : [body];
  // sums of other terms keep their pairwise tree: a shorter dependency chain
  return all.some((t) => t.op === "WMMA" || isProduct(t)) ? all : [body];
}
/** The leaves of a tree of additions; a part of it that is needed elsewhere too stays whole. */
function addends(u: Expr, placer: Placer): Expr[] {
  if (u.op !== "ALU" || u.fn !== "ADD" || placer.isPlaced(u)) return [u];
  return u.operands.flatMap((s) => addends(s, placer));
}

export function addTerm({ fn, dtype }: Reduce, term: Expr, sum: Expr, placer: Placer): Expr {
  const { arena, emit, target } = placer;
  if (term.op === "WMMA") {
    const operands = [placer.place(term.a), placer.place(term.b)];
    return emit.push(makeUOp("WMMA", term.dtype, [...operands, sum], term.core));
  }
  const fuses = fn === "SUM" && fusesProducts(target, dtype);
  if (fuses && isProduct(term) && !placer.isPlaced(term)) {
    const [x, y] = term.operands;
    return emit.push(arena.alu("MULACC", placer.place(x), placer.place(y), sum));
  }
  return emit.push(arena.alu(REDUCE[fn].combine, placer.place(term), sum));
}
