// A sum in which one term is selected by its index is that term. Gathers and embeddings, which are written as
// comparisons with ARANGE, become indexed loads. Between lower and decompose.

import { dtypes } from "../../dtype.ts";
import { toposort } from "../../helpers.ts";
import type { UOpArena } from "../../uop/arena.ts";
import type { Const, Expr, Range, Sink, UOp } from "../../uop/node.ts";
import { alu, any, constant, reduce } from "../../uop/pattern.ts";
import { RuleTable, rewriteEach, rule } from "../../uop/rewrite.ts";
import { substitute } from "../../uop/substitute.ts";

const isZero = (c: Const): boolean => c.is(0) || c.is(-0);

const ONE_HOT = new RuleTable([
  rule(
    "sum over r of (r == e ? f(r) : 0) = f(e) if e is in the range, else 0",
    reduce("SUM", alu("WHERE", any("condition"), any("f"), constant("zero", isZero))),
    ({ condition, f, zero }, a, { ranges }) => {
      const conditions = conjuncts(condition);
      for (const c of conditions) {
        const choice = chosen(c, ranges);
        if (choice === undefined) continue;
        const { range, index } = choice;
        const inRange = isInRange(index, range.end, a);
        const at = new Map([[range, a.cast(index, range.dtype)]]);
        const atIndex = (x: Expr): Expr => substitute(x, at, a, { where: inRange });
        const others = conditions.filter((other) => other !== c).map(atIndex);
        const term = a.alu("WHERE", a.and([inRange, ...others]), atIndex(f), zero);
        return a.reduce(
          "SUM",
          term,
          ranges.filter((r) => r !== range),
        );
      }
      return undefined;
    },
  ),
]);

export const pickOneHot = (sink: Sink, arena: UOpArena): Sink => rewriteEach(sink, ONE_HOT, arena);

/** 0 <= index < end, in the type of the index. */
export function isInRange(index: Expr, end: Expr, a: UOpArena): Expr {
  // an index of fewer bits than the range takes the type of the range
  const at = index.dtype.itemsize < end.dtype.itemsize ? a.cast(index, end.dtype) : index;
  const zero = a.constant(at.dtype, 0);
  const size = a.cast(end, at.dtype);
  const negative = a.alu("CMPLT", at, zero);
  return a.alu("AND", a.alu("CMPLT", at, size), a.alu("XOR", negative, a.constant(dtypes.bool, 1)));
}

/** The conditions that an AND joins. */
export function conjuncts(u: Expr): readonly Expr[] {
  if (u.op !== "ALU" || u.fn !== "AND" || u.dtype.kind !== "bool") return [u];
  return u.operands.flatMap(conjuncts);
}

/** `range == index`, with an index that does not depend on the range. */
function chosen(u: Expr, ranges: readonly Range[]): { range: Range; index: Expr } | undefined {
  if (u.op !== "ALU" || u.fn !== "CMPEQ") return undefined;
  const [x, y] = u.operands;
  for (const [side, index] of [
    [x, y],
    [y, x],
  ] as const) {
    const range = side.op === "CAST" ? side.operand : side;
    if (range.op !== "RANGE" || !ranges.includes(range) || !index.dtype.isInt) continue;
    if (!toposort<UOp>([index], (n) => n.srcs).includes(range)) return { range, index };
  }
  return undefined;
}
