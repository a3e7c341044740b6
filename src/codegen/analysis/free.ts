// Which loops each node of a kernel runs in: the axes of the ranges below it, but for those that a reduce or a filled array
// closes. Heuristics and linearize ask. Most nodes depend on what one of their sources depends on, and share its set.

import { UOpMap } from "../../uop/map.ts";
import type { UOp, UOpArena } from "../../uop/uops.ts";

/** Ids of axes. */
export type AxisIds = ReadonlySet<number>;
/** What runs in loops of its own. */
export type Looping = UOp<"REDUCE" | "STAGE">;

const NONE: AxisIds = new Set();

export const isReduce = (u: Looping): u is UOp<"REDUCE"> => u.op === "REDUCE";
export const rangesOf = (u: Looping): readonly UOp[] =>
  u.srcs.slice(1).filter((s) => s.op === "RANGE" || isReduce(u));

/** For every node below the root; `ranges` gets the range of each axis. */
export function freeAxes(root: UOp, arena: UOpArena, ranges: Map<number, UOp>): UOpMap<AxisIds> {
  const free = new UOpMap<AxisIds>(arena);
  const filled = new Map<UOp, UOp>();
  for (const u of arena.nodes(root)) {
    let axes = NONE;
    for (let i = 0; i < u.srcs.length; i++) {
      const below = free.get(u.srcs[i]!) as AxisIds;
      if (below !== axes) axes = union(axes, below);
    }
    if (u.op === "RANGE") {
      axes = union(axes, new Set([u.arg]));
      ranges.set(u.arg, u);
    } else if (u.op === "REDUCE" || u.op === "STAGE") {
      const left = new Set(axes);
      for (const r of rangesOf(u)) left.delete(r.arg as number);
      axes = left;
      // an array that is filled again is emptied before, each time: the zeros of a sum belong into the same loops
      const array = u.srcs[0] as UOp;
      const before = u.op === "STAGE" ? filled.get(array) : undefined;
      if (before !== undefined) free.set(before, union(free.get(before) as AxisIds, axes));
      if (u.op === "STAGE") filled.set(array, u);
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
