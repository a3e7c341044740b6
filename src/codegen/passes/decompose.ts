// What a target lacks, in terms of what it has: ops it cannot spell are decomposed (their record says how),
// casts and divisions that would trap or be undefined are guarded. Narrow floats are emulate.ts's part.
// Between lower and linearize.

import { bounds, floatToIntVia } from "../../dtype.ts";
import { DTypeError } from "../../errors.ts";
import { type Algebra, opRecord } from "../../ops.ts";
import type { UOpArena } from "../../uop/arena.ts";
import type { Alu, Expr, Sink, UOp } from "../../uop/node.ts";
import { anyAlu, graphRewrite, mapGraph, RuleTable, rule } from "../../uop/rewrite.ts";
import type { Target } from "../target.ts";
import { emulate } from "./emulate.ts";

export function decompose(sink: Sink, target: Target, arena: UOpArena): Sink {
  let root = emulate(sink, target, arena);
  const isMissing = (u: UOp): boolean => u.op === "ALU" && !target.has(u.fn, u.operandType);
  if (arena.nodes(root).some(isMissing)) root = graphRewrite(root, missingOps(target), arena);
  if (!target.saturatingCast) root = mapGraph(root, arena, saturateCast);
  if (!target.safeDivision) root = mapGraph(root, arena, guardDivision);
  return root;
}

const tables = new WeakMap<Target, RuleTable>();

function missingOps(target: Target): RuleTable {
  let table = tables.get(target);
  if (table === undefined) {
    const functions = new Functions(target);
    const isMissing = (u: Alu): boolean => !target.has(u.fn, u.operandType) && !functions.fused.has(u);
    table = new RuleTable([
      rule(`what ${target.name} lacks`, anyAlu(isMissing), (_, arena, u: Alu) => {
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
 * Decompositions add products in one step where vectors of the target can: they round better for it. A MULACC
 * of the user rounds twice everywhere, so those made here are remembered.
 */
class Functions {
  readonly fused = new WeakSet<Expr>();
  readonly #target: Target;

  constructor(target: Target) {
    this.#target = target;
  }
  on(arena: UOpArena): Algebra<Expr> {
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
      fuses: (dtype) => simd?.fuses(dtype.vec(width)) === true,
      isNotPositive: (x) => isNotPositive(x, arena),
    };
  }
}
/** Lowering knows it of the value, or it is such a value times a positive number. */
function isNotPositive(u: Expr, arena: UOpArena): boolean {
  if (arena.notPositive.has(u)) return true;
  if (u.op !== "ALU" || u.fn !== "MUL") return false;
  const [x, y] = u.operands;
  return y.op === "CONST" && Number(y.value) > 0 && isNotPositive(x, arena);
}

/** Float to integer as castValue says: NaN is 0, out of range stops at the ends, then the width wraps. */
function saturateCast(u: UOp, a: UOpArena): Expr | undefined {
  if (u.op !== "CAST") return undefined;
  const { operand: x, dtype: to } = u;
  const from = x.dtype;
  if (!from.isFloat || !to.isInt) return undefined;
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
}

/** Known to be above zero, whatever the kernel is given. */
const isPositive = (u: Expr): boolean =>
  (u.op === "CONST" && Number(u.value) > 0) || (u.op === "DEFINE_VAR" && u.variable.min > 0);

/** Integer division: by zero gives 0, by -1 negates (the smallest integer wraps), as OPS says. */
function guardDivision(u: UOp, a: UOpArena): Expr | undefined {
  if (u.op !== "ALU" || (u.fn !== "IDIV" && u.fn !== "MOD")) return undefined;
  const [x, y] = u.operands;
  const { dtype } = y;
  if (dtype.isFloat || isPositive(y)) return undefined;
  const zero = a.constant(dtype, 0);
  const byZero = a.alu("CMPEQ", y, zero);
  const byMinusOne =
    dtype.kind === "int" ? a.alu("CMPEQ", y, a.constant(dtype, -1)) : a.constant(byZero.dtype, 0);
  const unsafe = a.alu("OR", byZero, byMinusOne);
  const safe = a.alu(u.fn, x, a.alu("WHERE", unsafe, a.constant(dtype, 1), y));
  if (u.fn === "MOD") return a.alu("WHERE", unsafe, zero, safe);
  const negated = dtype.kind === "int" ? a.alu("WHERE", byMinusOne, a.alu("NEG", x), safe) : safe;
  return a.alu("WHERE", byZero, zero, negated);
}
