// Which loops each node of a kernel runs in: its free axes, those of the ranges below it without the ones
// that a REDUCE or STAGE closes. The heuristics, KEEP, PACK and linearize ask. Most nodes have the same free
// axes as one of their sources, and share its set.

import type { UOpArena } from "../../uop/arena.ts";
import { UOpMap } from "../../uop/map.ts";
import type { Expr, Loop, LoopOwner, Range, Reduce, Stage, UOp } from "../../uop/node.ts";

/** Ids of axes. */
export type AxisIds = ReadonlySet<number>;

/** The axes of a node that is outside all loops. */
export const NO_AXES: AxisIds = new Set();

export const isReduce = (u: LoopOwner): u is Reduce => u.op === "REDUCE";

/** How many iterations a loop has at most. */
export const tripCount = ({ end }: Range | Loop): number => maximum(end);

/**
 * The largest value of an index: a constant, a variable, or a sum, product or quotient of such; 1 for
 * anything else.
 */
function maximum(u: Expr): number {
  if (u.op === "CONST") return Number(u.value);
  if (u.op === "DEFINE_VAR") return u.variable.max;
  if (u.op !== "ALU" || (u.fn !== "ADD" && u.fn !== "MUL" && u.fn !== "IDIV")) return 1;
  const [a, b] = [maximum(u.operands[0]), maximum(u.operands[1])];
  return u.fn === "ADD" ? a + b : u.fn === "MUL" ? a * b : Math.floor(a / b);
}

/** The free axes of every node below the root; `ranges` gets the range of each axis. */
export function freeAxes(root: UOp, arena: UOpArena, ranges: Map<number, Range>): UOpMap<AxisIds> {
  const free = new UOpMap<AxisIds>(arena);
  const filled = new Map<UOp, Stage>();
  for (const u of arena.nodes(root)) {
    let axes = NO_AXES;
    for (let i = 0; i < u.srcs.length; i++) {
      const below = free.get(u.srcs[i]!) ?? NO_AXES;
      if (below !== axes) axes = union(axes, below);
    }
    if (u.op === "RANGE") {
      axes = union(axes, new Set([u.axis.id]));
      ranges.set(u.axis.id, u);
    } else if (u.op === "REDUCE" || u.op === "STAGE") {
      const left = new Set(axes);
      for (const r of u.ranges) left.delete(r.axis.id);
      axes = left;
    }
    if (u.op === "STAGE") {
      // an array that is filled twice is set to zero first: the STAGE of the zeros belongs in the loops of
      // the second
      const before = filled.get(u.array);
      if (before !== undefined) free.set(before, union(free.get(before) ?? NO_AXES, axes));
      filled.set(u.array, u);
    }
    free.set(u, axes);
  }
  return free;
}

const covers = (a: AxisIds, b: AxisIds): boolean => {
  for (const x of b) if (!a.has(x)) return false;
  return true;
};
function union(a: AxisIds, b: AxisIds): AxisIds {
  if (b.size === 0) return a;
  if (a.size === 0 || covers(b, a)) return b;
  return covers(a, b) ? a : new Set([...a, ...b]);
}
