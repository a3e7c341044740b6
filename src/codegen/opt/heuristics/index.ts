// Which OptOps make a kernel fast, without a search. In goes a kernel lowered without any, out come lists in
// the order in which they should be tried: lowering may refuse one (too little shared memory, operands that
// are not boxes), then the next is tried. The empty list always fits. Each target names its own heuristic:
// cpu.ts or gpu.ts.

import type { KernelGraph } from "../../lower/lower.ts";
import type { Target } from "../../target.ts";
import type { OptOp } from "../opts.ts";

/** `inPlace`: the kernel writes what it reads, so it must not compute anything twice. */
export type Heuristic = (
  lowered: KernelGraph,
  target: Target,
  inPlace: boolean,
) => Iterable<readonly OptOp[]>;

export const chooseLists: Heuristic = (lowered, target, inPlace) =>
  target.heuristic(lowered, target, inPlace);
