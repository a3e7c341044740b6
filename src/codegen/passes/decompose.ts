// What a target lacks, in terms of what it has: ops it cannot spell are decomposed (their record says how),
// casts and divisions that would trap or be undefined are guarded. Narrow floats are emulate.ts's part.
// Between lower and linearize.

import { emulate } from "#codegen/narrow";
import { bounds, dtypes, floatToIntVia } from "../../dtype.ts";
import { DTypeError } from "../../errors.ts";
import { getOrMake } from "../../helpers.ts";
import { type Algebra, opRecord } from "../../ops.ts";
import type { UOpArena } from "../../uop/arena.ts";
import type { Alu, Expr, Sink, UOp } from "../../uop/node.ts";
import { alu, any, anyAlu, node } from "../../uop/pattern.ts";
import { graphRewrite, RuleTable, rewriteEach, rule } from "../../uop/rewrite.ts";
import { narrowSupport, type Target } from "../target.ts";

export function decompose(sink: Sink, target: Target, arena: UOpArena): Sink {
  const isNarrow = (u: UOp): boolean => narrowSupport(target, u.dtype) !== "native";
  let root = arena.nodes(sink).some(isNarrow) ? emulate(sink, target, arena) : sink;
  const isMissing = (u: UOp): boolean => u.op === "ALU" && !target.has(u.fn, u.operandType);
  if (arena.nodes(root).some(isMissing)) root = graphRewrite(root, missingOps(target), arena);
  if (!target.saturatingCast) root = rewriteEach(root, SATURATING_CASTS, arena);
  if (!target.safeDivision) root = rewriteEach(root, GUARDED_DIVISIONS, arena);
  return root;
}

const tables = new WeakMap<Target, RuleTable>();

function missingOps(target: Target): RuleTable {
  let table = tables.get(target);
  if (table === undefined) {
    const functions = new FusedFunctions(target);
    const isMissing = (u: Alu): boolean => !target.has(u.fn, u.operandType) && !functions.fused.has(u);
    table = new RuleTable([
      rule(`what ${target.name} lacks`, anyAlu(isMissing), (_, arena, u) => {
        const how = opRecord(u.fn).decompose;
        if (how !== undefined) return how(functions.on(arena), ...u.operands);
        throw new DTypeError(
          `${u.fn}: ${target.name} cannot do it on ${u.operandType.name}; cast the operands first`,
        );
      }),
    ]);
    tables.set(target, table);
  }
  return table;
}

/**
 * Decompositions use a fused multiply-add where the target's vectors have one, which rounds once. A MULACC of
 * the user rounds twice on all targets, so those made here are remembered.
 */
class FusedFunctions {
  readonly fused = new WeakSet<Expr>();
  readonly #target: Target;
  readonly #algebras = new WeakMap<UOpArena, Algebra<Expr>>();

  constructor(target: Target) {
    this.#target = target;
  }
  on(arena: UOpArena): Algebra<Expr> {
    return getOrMake(this.#algebras, arena, () => this.#algebra(arena));
  }
  #algebra(arena: UOpArena): Algebra<Expr> {
    const { simd } = this.#target;
    const [width = 1] = simd?.widths ?? [];
    return {
      alu: (op, ...srcs) => {
        const made = arena.alu(op, ...srcs);
        if (op === "MULACC") this.fused.add(made);
        return made;
      },
      constant: (dtype, value) => arena.constant(dtype, value),
      cast: (x, dtype) => arena.cast(x, dtype),
      bitcast: (x, dtype) => arena.bitcast(x, dtype),
      dtypeOf: (x) => arena.dtypeOf(x),
      hasDouble: this.#target.support(dtypes.float64) !== "none",
      ieee: this.#target.ieee,
      fuses: (dtype) => simd?.fuses(dtype.vec(width)) === true,
      isNotPositive: (x) => isNotPositive(x, arena),
    };
  }
}
/**
 * Lowering proved it (`arena.notPositive`), or the value is a proven one times a positive constant. exp2 then
 * needs no clamp from above.
 */
function isNotPositive(u: Expr, arena: UOpArena): boolean {
  if (arena.notPositive.has(u)) return true;
  if (u.op !== "ALU" || u.fn !== "MUL") return false;
  const [x, y] = u.operands;
  return y.op === "CONST" && y.sign > 0 && isNotPositive(x, arena);
}

/** Float to integer as castValue says. */
const SATURATING_CASTS = new RuleTable([
  rule(
    "(int) x = 0 if x is NaN, the ends where x is beyond them, then the width wraps",
    node("CAST", [any("x", (u) => u.dtype.isFloat)], (u) => u.dtype.isInt),
    ({ x }, a, { dtype: to }) => {
      const from = x.dtype;
      const via = floatToIntVia(to);
      const [lo, hi] = bounds(via);
      // the largest integer rounds up to a power of two as a float: "not below it" is the exact test
      const [low, high] = [a.constant(from, Number(lo)), a.constant(from, Number(hi))];
      const inside = a.alu("AND", a.alu("CMPLT", low, x), a.alu("CMPLT", x, high));
      const plain = a.cast(a.alu("WHERE", inside, x, a.constant(from, 0)), via);
      const above = a.alu("WHERE", a.alu("CMPLT", x, high), plain, a.constant(via, hi));
      const below = a.alu("WHERE", a.alu("CMPLT", low, x), above, a.constant(via, lo));
      const whole = a.alu("WHERE", a.alu("CMPNE", x, x), a.constant(via, 0), below);
      return a.cast(whole, to);
    },
  ),
]);

/** Positive for all inputs of the kernel. */
const isPositive = (u: Expr): boolean =>
  (u.op === "CONST" && u.sign > 0) || (u.op === "DEFINE_VAR" && u.variable.min > 0);
/** A divisor that may be 0 or -1, for which division traps or is undefined. */
const unsafeDivisor = any("m", (u) => !u.dtype.isFloat && !isPositive(u));

/** What a division must know about its divisor; `safe` is the divisor, or 1 where it is 0 or -1. */
function guard(m: Expr, a: UOpArena) {
  const { dtype } = m;
  const isZero = a.alu("CMPEQ", m, a.constant(dtype, 0));
  const isMinusOne =
    dtype.kind === "int" ? a.alu("CMPEQ", m, a.constant(dtype, -1)) : a.constant(isZero.dtype, 0);
  const isUnsafe = a.alu("OR", isZero, isMinusOne);
  return { isZero, isMinusOne, isUnsafe, safe: a.alu("WHERE", isUnsafe, a.constant(dtype, 1), m) };
}
/** Integer division as OPS says; by -1 it negates, so the smallest integer wraps. */
const GUARDED_DIVISIONS = new RuleTable([
  rule("n // m = 0 if m = 0, -n if m = -1", alu("IDIV", any("n"), unsafeDivisor), ({ n, m }, a) => {
    const { isZero, isMinusOne, safe } = guard(m, a);
    const quotient = a.alu("IDIV", n, safe);
    const signed = m.dtype.kind === "int" ? a.alu("WHERE", isMinusOne, a.alu("NEG", n), quotient) : quotient;
    return a.alu("WHERE", isZero, a.constant(m.dtype, 0), signed);
  }),
  rule("n % m = 0 if m = 0 or m = -1", alu("MOD", any("n"), unsafeDivisor), ({ n, m }, a) => {
    const { isUnsafe, safe } = guard(m, a);
    return a.alu("WHERE", isUnsafe, a.constant(m.dtype, 0), a.alu("MOD", n, safe));
  }),
]);
