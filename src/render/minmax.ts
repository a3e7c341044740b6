// `a < b ? b : a` is a maximum, `b < a ? b : a` a minimum, and processors have vector instructions for both.
// In goes an ALU, out come its operands in the order of those instructions. Renderers spell them.

import type { Alu, Expr } from "../uop/node.ts";

interface MinMax {
  readonly isMax: boolean;
  /**
   * [a, b]: the maximum is `a < b ? b : a`, the minimum `b < a ? b : a`. Where the comparison is false, it is
   * a.
   */
  readonly operands: readonly [Expr, Expr];
}

export function minMaxOf(u: Alu): MinMax | undefined {
  if (u.fn !== "WHERE") return undefined;
  const [condition, x, y] = u.operands;
  if (condition.op !== "ALU" || condition.fn !== "CMPLT") return undefined;
  const [a, b] = condition.operands;
  if (x === b && y === a) return { isMax: true, operands: [a, b] };
  return x === a && y === b ? { isMax: false, operands: [b, a] } : undefined;
}
