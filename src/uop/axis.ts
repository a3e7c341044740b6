// The axis of a RANGE: which loop of the kernel it is, and how that loop is run.

import type { Sint } from "../shape/symbolic.ts";

/**
 * How a loop is run. `output` and `local` axes run over the result, `reduce` axes inside a REDUCE, and `top`
 * axes are the threads of a workgroup that share a REDUCE. The expand pass writes out the lanes: `upcast`
 * lanes of the result, and lanes of a reduction that are combined in every iteration (`unroll`) or after the
 * last one (`group`). `tile` axes are the sides of the matrices that a warp multiplies, until TC turns them
 * into a `warp` and lanes. `copy` axes are the positions in a tile that is computed as it is copied.
 */
export type AxisKind =
  | "output"
  | "local"
  | "top"
  | "reduce"
  | "upcast"
  | "unroll"
  | "group"
  | "tile"
  | "warp"
  | "copy";

export interface Axis {
  /** handed out by the arena: no two ranges of a kernel have the same */
  readonly id: number;
  readonly size: Sint;
  readonly kind: AxisKind;
  /** the axis of the kernel, as OptOps number them, that this is a part of; -1: none of them */
  readonly of: number;
}

/** Whether the axis is an index of the workgroup. A REDUCE over it combines the values of its threads. */
export const isThread = ({ kind }: Pick<Axis, "kind">): boolean =>
  kind === "local" || kind === "top" || kind === "warp";

/** Whether the expand pass writes the axis out. */
export const isLane = ({ kind }: Pick<Axis, "kind">): boolean =>
  kind === "upcast" || kind === "unroll" || kind === "group";
