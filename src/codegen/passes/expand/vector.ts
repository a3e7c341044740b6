// A node for a vector of lanes: neighbours in memory are loaded and stored as one, what the target can
// compute on vectors is a vector, and anything else is made lane by lane and gathered. Also: which axes of
// lanes become vectors.

import { mapped } from "../../../helpers.ts";
import type { UOpArena } from "../../../uop/arena.ts";
import type { Expr, Load, Sink, Store, UOp } from "../../../uop/node.ts";
import type { Simd } from "../../target.ts";
import type { Expansion } from "./expansion.ts";
import type { Lane, LaneAxis } from "./lanes.ts";
import { reduction } from "./reduction.ts";

/** `u` depends on the axis. */
export function vector(u: Expr, first: Lane, along: LaneAxis, x: Expansion): Expr {
  const { arena, lanes } = x;
  if (u.op === "LOAD" && x.hasUnitStride(u, along)) return load(u, first, along, x);
  if (u.op === "REDUCE" && x.hasVectors(u)) return reduction(u, first, along, x);
  if ((u.op === "ALU" || u.op === "CAST" || u.op === "BITCAST") && x.hasVectors(u)) {
    const operands = u.op === "ALU" ? u.operands : [u.operand];
    return arena.withType(
      u,
      u.dtype.vec(lanes.widthOf(along)),
      mapped<Expr, Expr>(operands, (o) => x.vector(o, first, along)),
    );
  }
  const [one, ...others] = lanes.ofVector(first, along).map((lane) => x.scalar(u, lane));
  return join(one!, others, arena);
}

/** One value in all lanes. */
export const broadcast = (value: Expr, along: LaneAxis, { arena, lanes }: Expansion): Expr =>
  join(value, new Array<Expr>(lanes.widthOf(along) - 1).fill(value), arena);

function join(first: Expr, others: readonly Expr[], arena: UOpArena): Expr {
  if (first.op === "CONST" && others.every((o) => o === first)) {
    return arena.withType(first, first.dtype.vec(1 + others.length), []);
  }
  return arena.vectorize([first, ...others]);
}

function load(u: Load, first: Lane, along: LaneAxis, x: Expansion): Expr {
  const [buffer, index] = [x.scalar(u.buffer, first), x.scalar(u.index, first)];
  const gate = u.gate && x.scalar(u.gate, first);
  const otherwise = u.otherwise && x.vector(u.otherwise, first, along);
  return x.arena.load(buffer, index, { gate, otherwise, lanes: x.lanes.widthOf(along) });
}

/** One STORE of the vector, or one for each lane where these are not neighbours. */
export function vectorStores(u: Store, first: Lane, along: LaneAxis, x: Expansion): Store[] {
  const { arena, lanes } = x;
  const value = x.vector(u.value, first, along);
  const store = (lane: Lane, what: Expr): Store => {
    const gate = u.gate && x.scalar(u.gate, lane);
    return arena.store(u.buffer, x.scalar(u.index, lane), what, gate);
  };
  if (x.hasUnitStride(u, along)) return [store(first, value)];
  return lanes.ofVector(first, along).map((lane, i) => store(lane, arena.gep(value, i)));
}

/** Scores of an access with unit stride and of one without, and the weight of accesses inside a sum. */
const [NEIGHBOURS, APART, INSIDE_SUM] = [4, -1, 8];

/**
 * The axes along which most accesses have unit stride, the best first, such that no node depends on two of
 * them.
 */
export function chooseVectorAxes(
  sink: Sink,
  simd: Simd | undefined,
  { arena, lanes, hasUnitStride }: Pick<Expansion, "arena" | "lanes" | "hasUnitStride">,
): readonly LaneAxis[] {
  if (simd === undefined) return [];
  const nodes = arena.nodes(sink);
  const reduces = nodes.filter((u) => u.op === "REDUCE");
  const accesses = nodes.filter((u) => u.op === "LOAD" || u.op === "STORE");
  // what a sum reads, it reads many times
  const inside = new Set(
    arena.nodesFrom(
      reduces.map((r) => r.body),
      (u) => u.srcs,
    ),
  );
  const found: { axis: LaneAxis; score: number }[] = [];
  for (const axis of lanes.axes) {
    if (axis.axis.kind === "unroll" || lanes.widthOf(axis) === 1) continue;
    let score = 0;
    for (const u of accesses) {
      if (!lanes.depends(u, axis)) continue;
      score += (hasUnitStride(u, axis) ? NEIGHBOURS : APART) * (inside.has(u) ? INSIDE_SUM : 1);
    }
    // a sum is many operations: vectors pay even if their operands must be gathered, where no axis is better
    const isSummed = reduces.some((r) => lanes.depends(r, axis) && simd.has(r));
    if (score > 0 || isSummed) found.push({ axis, score });
  }
  const chosen: LaneAxis[] = [];
  for (const { axis } of found.sort((a, b) => b.score - a.score)) {
    const mask = chosen.reduce((m, c) => m | c.mask, 0);
    const meets = (u: UOp): boolean => lanes.depends(u, axis) && lanes.depends(u, { mask });
    if (mask === 0 || !nodes.some(meets)) chosen.push(axis);
  }
  return chosen;
}
