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
  if (u.op === "CONST") return [Number(u.arg), Number(u.arg)];
  if (u.op === "SPECIAL") return [0, u.arg[2] - 1];
  if (u.op === "DEFINE_VAR") return [u.arg.min, u.arg.max];
  const srcs = u.srcs.map((s) => known.get(s));
  const [a, b] = srcs;
  if (u.op === "LOOP" && a !== undefined && b !== undefined) return [a[0], b[1] - 1];
  if (u.op === "CAST") return a;
  if (u.op !== "ALU") return undefined;
  if (u.arg === "NEG" && a !== undefined) return [-a[1], -a[0]];
  if (u.arg === "WHERE" && b !== undefined && srcs[2] !== undefined) return span([...b, ...srcs[2]]);
  return a !== undefined && b !== undefined ? RANGE_OF[u.arg]?.(a, b) : undefined;
}

/** Narrow values are computed in ints, which hold the result; narrow lanes are not. */
const isSignedALU = (u: UOp): u is UOp<"ALU"> =>
  u.op === "ALU" &&
  OVERFLOWS.has(u.arg) &&
  valueType(u).kind === "int" &&
  (valueType(u).count > 1 || valueType(u).itemsize >= 4);

/** Does this user look at more than the low bits of its source? */
function looksAtAll(user: UOp, src: UOp): boolean {
  if (user.op === "ALU") return !MODULAR.has(user.arg);
  if (user.op === "CAST")
    return valueType(user).isFloat || valueType(user).itemsize > valueType(src).itemsize;
  return user.op === "LOAD" || (user.op === "STORE" && user.srcs[2] !== src);
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
