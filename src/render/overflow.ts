// Which signed ops of a kernel may overflow where it shows. Languages without wrapping integers (CUDA, Metal,
// OpenCL) leave signed overflow undefined: their compilers may take `a + 1 < a` for false. In goes the list
// of a kernel, out comes the set of ALUs to be spelt in unsigned arithmetic. Indices are proven small and
// stay plain; so do values that are only summed, multiplied and stored, where every compiler wraps, unless a
// constant is so large that the compiler concludes a sign from it.

import { rangesOf } from "../codegen/analysis/ranges.ts";
import type { AluOp } from "../ops.ts";
import type { UOp } from "../uop/node.ts";
import { OVERFLOWS } from "./spelling.ts";

/**
 * Ops that see only the low bits of a source, so that what the compiler assumes of the high ones is moot. Not
 * AND and OR: one that clears or sets a sign is left out where the compiler knows the sign.
 */
const MODULAR: ReadonlySet<AluOp> = new Set<AluOp>([...OVERFLOWS, "WHERE"]);
/** clang takes x in `x + INT_MIN` for positive, and makes it `x | INT_MIN`. */
const LARGE = 2 ** 30;
const isLarge = (s: UOp): boolean => {
  const x = s.op === "VECTORIZE" ? s.lanes[0] : s;
  return x?.op === "CONST" && Math.abs(Number(x.value)) >= LARGE;
};

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
  const ranges = rangesOf(uops);
  // backwards, so that every user is judged before its sources
  const seen = new Set<UOp>();
  for (const u of uops.toReversed()) {
    for (const s of u.srcs) if (looksAtAll(u, s) || (seen.has(u) && u.op === "ALU")) seen.add(s);
  }
  // compilers make an absolute value of `x < 0 ? -x : x`, which the smallest number does not have
  const shows = (u: UOp<"ALU">): boolean => u.fn === "NEG" || seen.has(u) || u.srcs.some(isLarge);
  return new Set(uops.filter((u) => isSignedALU(u) && !ranges.has(u) && shows(u)));
}
