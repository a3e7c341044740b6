// A reduction whose ranges are partly lanes: lanes of UNROLL are combined in every iteration of the loops
// that are left, lanes of GROUP have accumulators of their own, which are combined after the last iteration.
// One axis of these may be vectors: its accumulators are the lanes of one vector.

import { range } from "../../../helpers.ts";
import { REDUCE, type ReduceOp } from "../../../ops.ts";
import type { UOpArena } from "../../../uop/arena.ts";
import type { Expr, Range, Reduce } from "../../../uop/node.ts";
import type { Expansion } from "./expansion.ts";
import type { Lane, LaneAxis } from "./lanes.ts";

/** The ranges of a reduction by what becomes of them. */
export interface ReduceRanges {
  readonly loops: readonly Range[];
  readonly unrolled: readonly LaneAxis[];
  readonly grouped: readonly LaneAxis[];
  /** the one of those whose accumulators are a vector */
  readonly vectorGroup: LaneAxis | undefined;
}

export function rangesOf(u: Reduce, { lanes, vectorAxes, hasVectors }: Expansion): ReduceRanges {
  const axes = u.ranges.flatMap((r) => lanes.axisOf(r) ?? []);
  const grouped = axes.filter((a) => a.axis.kind === "group");
  return {
    loops: u.ranges.filter((r) => lanes.axisOf(r) === undefined),
    unrolled: axes.filter((a) => a.axis.kind === "unroll"),
    grouped,
    vectorGroup: hasVectors(u) ? grouped.find((a) => vectorAxes.includes(a)) : undefined,
  };
}

/** The reduce for one lane of the result, or along `along` for a vector of them. */
export function reduction(u: Reduce, lane: Lane, along: LaneAxis | undefined, x: Expansion): Expr {
  const { fn, body } = u;
  const { arena, lanes } = x;
  const { loops, unrolled, grouped, vectorGroup } = x.rangesOf(u);
  const vectorAxis = along ?? vectorGroup;
  const accumulators = lanes
    .combinations(
      grouped.filter((a) => a !== vectorGroup),
      lane,
    )
    .flatMap((l) => (vectorGroup === undefined ? [l] : lanes.vectors(l, vectorGroup)));
  const totals = accumulators.map((first) => {
    const terms = lanes
      .combinations(unrolled, first)
      .map((l) => (vectorAxis === undefined ? x.scalar(body, l) : x.vector(body, l, vectorAxis)));
    const term = combine(fn, terms, arena);
    // the first sum of a loop is 0 + x, which is 0 for an x of -0
    if (loops.length === 0 && fn === "SUM") return arena.alu("ADD", term, arena.constant(term.dtype, 0));
    return arena.reduce(fn, term, loops);
  });
  const total = combine(fn, totals, arena);
  if (vectorGroup === undefined) return total;
  const parts = range(lanes.widthOf(vectorGroup)).map((i) => arena.gep(total, i));
  return combine(fn, parts, arena);
}

/** As a pairwise tree: the shortest dependency chain. */
function combine(fn: ReduceOp, values: readonly Expr[], arena: UOpArena): Expr {
  let left = values;
  while (left.length > 1) {
    const before = left;
    left = range(Math.ceil(before.length / 2)).map((i) => {
      const [x, y] = [before[2 * i]!, before[2 * i + 1]];
      return y === undefined ? x : arena.alu(REDUCE[fn].combine, x, y);
    });
  }
  return left[0]!;
}
