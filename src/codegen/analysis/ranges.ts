// Range analysis (interval arithmetic): between which integers a value stays, whatever the inputs are. In go
// the nodes of a graph or of a list, sources first; out come those whose range is known and fits their type.
// A rule or a pass that needs a proof (an index is not negative, a sum does not overflow) asks here.

import { bounds, type DType, scalarOf } from "../../dtype.ts";
import type { AluOp } from "../../ops.ts";
import { isExpr, type UOp } from "../../uop/node.ts";

/** The least and the greatest value. */
export type ValueBounds = readonly [least: number, greatest: number];

const span = (xs: readonly number[]): ValueBounds => [Math.min(...xs), Math.max(...xs)];
const INTERVAL_OF: Partial<Record<AluOp, (a: ValueBounds, b: ValueBounds) => ValueBounds | undefined>> = {
  ADD: (a, b) => [a[0] + b[0], a[1] + b[1]],
  SUB: (a, b) => [a[0] - b[1], a[1] - b[0]],
  MUL: (a, b) => span([a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1]]),
  MAX: (a, b) => [Math.max(a[0], b[0]), Math.max(a[1], b[1])],
  IDIV: (a, b) => (b[0] > 0 ? span([Math.trunc(a[0] / b[0]), Math.trunc(a[1] / b[0]), 0]) : undefined),
  MOD: (a, b) => (b[0] > 0 ? [a[0] < 0 ? 1 - b[1] : 0, b[1] - 1] : undefined),
};

/** Numbers are exact up to 2^53 only: a 64-bit range stops well below. */
const fits = (d: DType, [least, greatest]: ValueBounds): boolean => {
  const limit = d.itemsize === 8 ? 2 ** 52 : 2 ** (d.itemsize * 8 - 1);
  // what is below 0 wraps where there are no signs
  return least >= (d.kind === "uint" ? 0 : -limit) && greatest < limit;
};

/** What the type says of a value of 8 or 16 bits that is read, or that a cast has wrapped. */
function boundsOfType(u: UOp): ValueBounds | undefined {
  if ((u.op !== "LOAD" && u.op !== "CAST") || !u.dtype.isInt || scalarOf(u.dtype).itemsize > 2)
    return undefined;
  const [least, greatest] = bounds(scalarOf(u.dtype));
  return [Number(least), Number(greatest)];
}

function intervalOf(u: UOp, known: ReadonlyMap<UOp, ValueBounds>): ValueBounds | undefined {
  if (u.op === "CONST") return [Number(u.value), Number(u.value)];
  if (u.op === "SPECIAL") return [0, u.size - 1];
  if (u.op === "DEFINE_VAR") return [u.variable.min, u.variable.max];
  if (u.op === "CAST") return known.get(u.operand);
  if (u.op === "LOOP" || u.op === "RANGE") {
    const [start, end] = [known.get(u.start), known.get(u.end)];
    return start && end && [start[0], end[1] - 1];
  }
  if (u.op !== "ALU") return undefined;
  const [a, b, c] = u.operands.map((x) => known.get(x));
  if (u.fn === "NEG") return a && [-a[1], -a[0]];
  if (u.fn === "WHERE") return b && c && span([...b, ...c]);
  return a && b && INTERVAL_OF[u.fn]?.(a, b);
}

/** The ranges of integers; a value without one may be anything, or may have wrapped. */
export function rangesOf(nodes: Iterable<UOp>): ReadonlyMap<UOp, ValueBounds> {
  const known = new Map<UOp, ValueBounds>();
  for (const u of nodes) {
    const range = intervalOf(u, known);
    const fitting = range !== undefined && isExpr(u) && u.dtype.isInt && fits(scalarOf(u.dtype), range);
    const bounded = fitting ? range : boundsOfType(u);
    if (bounded !== undefined) known.set(u, bounded);
  }
  return known;
}
