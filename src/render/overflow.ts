// Which signed ops of a kernel may overflow where it shows. Languages without wrapping integers (CUDA, Metal,
// OpenCL) leave signed overflow undefined: their compilers may take `a + 1 < a` for false. In goes the list
// of a kernel, out comes the set of ALUs to be spelt in unsigned arithmetic. Indices are proven small and
// stay plain; so do values that are only summed, multiplied and stored, where every compiler wraps.

import { type DType, scalarOf } from "../dtype.ts";
import type { AluOp } from "../ops.ts";
import { type UOp, valueType } from "../uop/node.ts";
import { OVERFLOWS } from "./spelling.ts";

type Range = readonly [number, number];

/** Ops that see only the low bits of a source, so that what the compiler assumes of the high ones is moot. */
const MODULAR: ReadonlySet<AluOp> = new Set<AluOp>([...OVERFLOWS, "AND", "OR", "XOR", "WHERE"]);

const span = (xs: readonly number[]): Range => [Math.min(...xs), Math.max(...xs)];
const RANGE_OF: Partial<Record<AluOp, (a: Range, b: Range) => Range | undefined>> = {
  ADD: (a, b) => [a[0] + b[0], a[1] + b[1]],
  SUB: (a, b) => [a[0] - b[1], a[1] - b[0]],
  MUL: (a, b) => span([a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1]]),
  MAX: (a, b) => [Math.max(a[0], b[0]), Math.max(a[1], b[1])],
  IDIV: (a, b) => (b[0] > 0 ? span([Math.trunc(a[0] / b[0]), Math.trunc(a[1] / b[0]), 0]) : undefined),
  MOD: (a, b) => (b[0] > 0 ? [a[0] < 0 ? 1 - b[1] : 0, b[1] - 1] : undefined),
};

/** Numbers are exact up to 2^53 only: a 64-bit range stops well below. */
const fits = (d: DType, [lo, hi]: Range): boolean => {
  const limit = d.itemsize === 8 ? 2 ** 52 : 2 ** (d.itemsize * 8 - 1);
  return lo >= -limit && hi < limit;
};

function rangeOf(u: UOp, known: ReadonlyMap<UOp, Range>): Range | undefined {
  if (u.op === "CONST") return [Number(u.value), Number(u.value)];
  if (u.op === "SPECIAL") return [0, u.size - 1];
  if (u.op === "DEFINE_VAR") return [u.variable.min, u.variable.max];
  if (u.op === "CAST") return known.get(u.operand);
  if (u.op === "LOOP") {
    const [start, end] = [known.get(u.start), known.get(u.end)];
    return start && end && [start[0], end[1] - 1];
  }
  if (u.op !== "ALU") return undefined;
  const [a, b, c] = u.operands.map((x) => known.get(x));
  if (u.fn === "NEG") return a && [-a[1], -a[0]];
  if (u.fn === "WHERE") return b && c && span([...b, ...c]);
  return a && b && RANGE_OF[u.fn]?.(a, b);
}

/** Narrow values are computed in ints, which hold the result; narrow lanes are not. */
const isSignedALU = (u: UOp): u is UOp<"ALU"> =>
  u.op === "ALU" &&
  OVERFLOWS.has(u.fn) &&
  u.dtype.kind === "int" &&
  (u.dtype.count > 1 || u.dtype.itemsize >= 4);

/** Does this user look at more than the low bits of its source? */
function looksAtAll(user: UOp, src: UOp): boolean {
  if (user.op === "ALU") return !MODULAR.has(user.fn);
  if (user.op === "CAST") return user.dtype.isFloat || user.dtype.itemsize > user.operand.dtype.itemsize;
  return user.op === "LOAD" || (user.op === "STORE" && user.value !== src);
}

export function overflowing(uops: readonly UOp[]): Set<UOp> {
  const ranges = new Map<UOp, Range>();
  for (const u of uops) {
    const r = rangeOf(u, ranges);
    if (r !== undefined && valueType(u).isInt && fits(scalarOf(valueType(u)), r)) ranges.set(u, r);
  }
  // backwards, so that every user is judged before its sources
  const seen = new Set<UOp>();
  for (const u of uops.toReversed()) {
    for (const s of u.srcs) if (looksAtAll(u, s) || (seen.has(u) && u.op === "ALU")) seen.add(s);
  }
  return new Set(uops.filter((u) => isSignedALU(u) && !ranges.has(u) && seen.has(u)));
}
