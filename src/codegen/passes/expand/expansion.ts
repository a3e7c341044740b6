// What the parts of expand share: the lanes of the kernel, and what a node becomes for one of them or for a
// vector of them. expand.ts remembers what was made; scalar.ts, vector.ts and reduction.ts make it.

import type { Made, UOpArena } from "../../../uop/arena.ts";
import type { Expr, Load, Reduce, Store, UOp } from "../../../uop/node.ts";
import type { Lane, LaneAxis, Lanes } from "./lanes.ts";
import type { ReduceRanges } from "./reduction.ts";

export interface Expansion {
  readonly arena: UOpArena;
  readonly lanes: Lanes;
  /** the axes that become vectors; no node depends on two of them */
  readonly vectorAxes: readonly LaneAxis[];
  /** the node for one lane */
  scalar<U extends UOp>(u: U, lane: Lane): Made<U["op"]>;
  /** the node for the vector along this axis that starts at the lane */
  vector(u: Expr, first: Lane, along: LaneAxis): Expr;
  /** a STORE for each lane or vector of lanes */
  stores(s: Store): Store[];
  /** the ranges of a reduction by what becomes of them */
  rangesOf(u: Reduce): ReduceRanges;
  /** whether the target can compute the node on vectors */
  hasVectors(u: Expr): boolean;
  /** whether an access goes to neighbours in memory along the axis: it can be one vector */
  hasUnitStride(access: Load | Store, along: LaneAxis): boolean;
}
