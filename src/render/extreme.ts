// A choice between two values by comparing just these two is the larger or the smaller of them, and vectors
// have an instruction for that. In goes a WHERE, out come its operands in the order of those instructions.
// Renderers spell it.

import type { UOp } from "../uop/node.ts";

export interface Extreme {
  readonly largest: boolean;
  /**
   * [a, b]: the largest is `a < b ? b : a`, the smallest `b < a ? b : a`. Where a comparison fails, it is a.
   */
  readonly of: readonly [UOp, UOp];
}

export function extremeOf(u: UOp): Extreme | undefined {
  const [condition, x, y] = u.srcs as [UOp, UOp, UOp];
  if (u.op !== "ALU" || u.arg !== "WHERE" || condition.op !== "ALU" || condition.arg !== "CMPLT")
    return undefined;
  const [a, b] = condition.srcs as [UOp, UOp];
  if (x === b && y === a) return { largest: true, of: [a, b] };
  return x === a && y === b ? { largest: false, of: [b, a] } : undefined;
}
