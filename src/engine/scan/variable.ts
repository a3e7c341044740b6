// The variable that counts the steps of a loop. Each launch has a value of its own, which a capture keeps;
// other variables get their values with every call.

import { markFixed, ownVariable, type Sint } from "../../shape/symbolic.ts";

/**
 * The variable of a loop inside of `depth` others; a plain 0 where there is only one step. Kernels depend on
 * its range, so that loops share theirs if it is that of the next power of 2; `exact` is for stacks so large
 * that such an index would not fit.
 */
export function loopVariable(depth: number, length: number, exact: boolean): Sint {
  if (length === 1) return 0;
  const v = ownVariable(`scan_step${depth}`, 0, exact ? length - 1 : 2 ** Math.ceil(Math.log2(length)) - 1);
  markFixed(v);
  return v;
}
