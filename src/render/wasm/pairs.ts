// Words of 32 bits that a kernel puts together from two neighbours of 16 bits in memory, as DOT does with the
// factors of a sum: one load brings both. In goes a value, out comes the load of the first of the two. The
// emitter says where values live.

import { dtypes } from "../../dtype.ts";
import type { AluOp } from "../../ops.ts";
import type { Alu, Expr, Load } from "../../uop/node.ts";

/** What this must know of the kernel. */
export interface LoadPlaces {
  /** the value is written at its only use */
  isInline(u: Expr): boolean;
  /** the first load reads what lies behind that of the second, in the same buffer */
  follows(next: Load, before: Load): boolean;
}

/**
 * A word of two neighbours in memory, as DOT makes it of int16: `low & 0xffff | high << 16`. It is one load;
 * engines do not see that. Gives the load of the first.
 */
export function pairIn(e: LoadPlaces, u: Expr): Load | undefined {
  if (u.op !== "ALU" || u.fn !== "OR" || u.dtype !== dtypes.int32) return undefined;
  const [x, y] = u.operands;
  if (x.op !== "ALU" || y.op !== "ALU" || !isWith(x, "AND", 0xffff) || !isWith(y, "SHL", 16))
    return undefined;
  const [low, high] = [loadIn(x.operands[0]), loadIn(y.operands[0])];
  const parts = [x, y, x.operands[0], y.operands[0], low, high];
  if (low === undefined || high === undefined || !parts.every((p) => p !== undefined && e.isInline(p)))
    return undefined;
  return low.buffer === high.buffer && e.follows(high, low) ? low : undefined;
}
const isWith = (u: Alu, fn: AluOp, constant: number): boolean =>
  u.fn === fn && u.operands[1]?.op === "CONST" && u.operands[1].is(constant);
/** The ungated load of 16 bits that a cast widens. */
const loadIn = (u: Expr | undefined): Load | undefined => {
  const load = u?.op === "CAST" && u.operand.op === "LOAD" ? u.operand : undefined;
  const isHalf = load?.dtype === dtypes.int16 || load?.dtype === dtypes.uint16;
  return isHalf && load?.gate === undefined ? load : undefined;
};
