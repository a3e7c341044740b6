// Which loops each node of a kernel runs in. They are its free axes: the axes of all ranges below it, except
// those that a REDUCE, STAGE or TILE closes. The heuristics, KEEP, PACK and linearize ask. Most nodes have
// the same free axes as one of their sources, and share its set.

import type { UOpArena } from "../../uop/arena.ts";
import { UOpMap } from "../../uop/map.ts";
import type { Expr, Loop, LoopOwner, Range, Reduce, Stage, UOp } from "../../uop/node.ts";

/** Ids of axes. */
export type AxisIds = ReadonlySet<number>;

/** The axes of a node that is outside all loops. */
export const NO_AXES: AxisIds = new Set();

export const isReduce = (u: LoopOwner): u is Reduce => u.op === "REDUCE";

/** The iterations of a loop whose number does not depend on variables; undefined: it does. */
export const constantSize = ({ end }: Range): number | undefined =>
  end.op === "CONST" ? Number(end.value) : undefined;

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
  let filled: Map<UOp, Stage> | undefined;
  const known = (s: UOp): AxisIds => free.get(s) ?? NO_AXES;
  const nodes = arena.nodes(root);
  for (let i = 0; i < nodes.length; i++) {
    const u = nodes[i]!;
    const axes = freeAxesOf(u, known);
    if (u.op === "RANGE") ranges.set(u.axis.id, u);
    else if (u.op === "STAGE") {
      // an array that is filled twice is set to zero first: the STAGE of the zeros belongs in the loops of
      // the second
      const before = filled?.get(u.array);
      if (before !== undefined) free.set(before, union(free.get(before) ?? NO_AXES, axes));
      filled ??= new Map();
      filled.set(u.array, u);
    }
    free.set(u, axes);
  }
  return free;
}

/** The free axes of one node, from those of its sources. */
export function freeAxesOf(u: UOp, below: (s: UOp) => AxisIds): AxisIds {
  let axes = NO_AXES;
  for (let i = 0; i < u.srcs.length; i++) {
    const some = below(u.srcs[i]!);
    if (some !== axes) axes = union(axes, some);
  }
  if (u.op === "RANGE") return union(axes, new Set([u.axis.id]));
  if (u.op !== "REDUCE" && u.op !== "STAGE" && u.op !== "TILE") return axes;
  const left = new Set(axes);
  for (const r of u.op === "TILE" ? u.tile.coordinates : u.ranges) left.delete(r.axis.id);
  return left;
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
