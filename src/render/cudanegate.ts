// Negating integers in CUDA. NVIDIA's assembler (ptxas 13.0) miscompiles `neg` of up to 32 bits: it drops the
// sign of the middle operand when it joins two maxima into one instruction, and it does not extend the sign
// of the smallest 16-bit number. So -x is spelt ~x + 1, with a complement that the compiler cannot fold back
// into a `neg`. Products by -1 and differences from 0 are negations to the compiler, and so here.

import type { DType } from "../dtype.ts";
import type { AluOp } from "../ops.ts";
import type { Spell } from "./spelling.ts";

const HELPER = `static __device__ inline int negated(int x) {
  int r;
  asm("not.b32 %0, %1;" : "=r"(r) : "r"(x));
  return (int)(1u+(unsigned int)r);
}`;
export const negateHelpers = (body: string): readonly string[] => (body.includes("negated(") ? [HELPER] : []);

/**
 * Plain int32 stays as it is: those are indices, proven small, and values whose low bits alone count. What
 * may overflow where it shows is spelt in uint32.
 */
const isAffected = (d: DType): boolean =>
  d.isInt && (d.itemsize < 4 || (d.kind === "uint" && d.itemsize === 4));
const isLiteral = (text: string | undefined, n: number): boolean =>
  text?.replace(/^\([a-z ]+\)/, "").replace(/^\((.*)\)$/, "$1") === String(n);

/** The ops of CUDA, with their negations spelt as above. */
export function withNegations(
  ops: Readonly<Record<"NEG" | "SUB" | "MUL", Spell>>,
  typeName: (d: DType) => string,
): Pick<Readonly<Record<AluOp, Spell>>, "NEG" | "SUB" | "MUL"> {
  const negated = (d: DType, x = ""): string => `(${typeName(d)})negated(${x})`;
  return {
    NEG: (d, a) => (isAffected(d) ? negated(d, a) : ops.NEG(d, a)),
    SUB: (d, a, b) => (isAffected(d) && isLiteral(a, 0) ? negated(d, b) : ops.SUB(d, a, b)),
    MUL: (d, a, b) => {
      if (!isAffected(d)) return ops.MUL(d, a, b);
      return isLiteral(b, -1) ? negated(d, a) : isLiteral(a, -1) ? negated(d, b) : ops.MUL(d, a, b);
    },
  };
}
