// The grid of a kernel where the target has workgroups: which threads are neighbours in a warp, and in which
// order workgroups traverse a large product. In go the axes that linearize does not make loops of; linearize
// opens the dimensions (dimensions.ts) and binds the axes to them.

import { dtypes } from "../../dtype.ts";
import type { AluOp } from "../../ops.ts";
import type { Sint } from "../../shape/symbolic.ts";
import type { UOpGraph } from "../../uop/list.ts";
import type { Axis, Expr, Range } from "../../uop/node.ts";
import { strideOf } from "../analysis/strides.ts";

/** Rows of workgroups in a strip, and the waves of workgroups from which strips pay. */
const [STRIP, MANY_WAVES] = [8, 4];

/** A load or store: its index, and how often a thread does it. */
export interface AccessCount {
  readonly index: Expr;
  readonly times: number;
}

/** Orders the axes so that threads whose most frequent accesses are nearest to each other are in one warp. */
export function nearestLast(
  threads: readonly Axis[],
  memory: readonly AccessCount[],
  rangeOf: (axis: Axis) => Range,
): Axis[] {
  const most = Math.max(...memory.map((m) => m.times));
  const often = memory.filter((m) => m.times * 4 >= most);
  const distance = (a: Axis): number => {
    if (a.kind === "warp") return 0;
    const strides = often.map((m) => Math.abs(strideOf(m.index, rangeOf(a)) ?? 0));
    return Math.min(...strides.filter((s) => s > 0), Number.MAX_SAFE_INTEGER);
  };
  return threads
    .map((axis) => ({ axis, distance: distance(axis) }))
    .sort((a, b) => b.distance - a.distance)
    .map(({ axis }) => axis);
}

/**
 * Traverse large products in strips of rows so that concurrent workgroups share cache lines. In go the
 * indexes of a workgroup, out come those of the block that it computes.
 */
export function inStrips(
  specials: readonly Expr[],
  sizes: readonly Sint[],
  units: number,
  list: UOpGraph,
): readonly Expr[] {
  const [x, y, ...rest] = specials;
  const [wide = 1, high = 1] = sizes;
  if (x === undefined || y === undefined || typeof wide !== "number" || typeof high !== "number")
    return specials;
  if (high % STRIP !== 0 || wide * high <= MANY_WAVES * units) return specials;
  const number = (n: number): Expr => list.add("CONST", dtypes.int32, [], n);
  const int = (op: AluOp, a: Expr, b: Expr): Expr => list.add("ALU", dtypes.int32, [a, b], op);
  const at = int("ADD", int("MUL", y, number(wide)), x);
  const strip = int("MUL", int("IDIV", at, number(STRIP * wide)), number(STRIP));
  const row = int("ADD", strip, int("MOD", at, number(STRIP)));
  return [int("IDIV", int("MOD", at, number(STRIP * wide)), number(STRIP)), row, ...rest];
}
