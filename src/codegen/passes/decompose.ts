// What a target lacks, in terms of what it has: ops it cannot spell are decomposed (their record says how), casts and
// divisions that would trap or be undefined are guarded. Narrow floats are emulate.ts's part. Between lower and
// linearize.

import { bounds, type DType, floatToIntVia } from "../../dtype.ts";
import { DTypeError } from "../../errors.ts";
import { type Algebra, opRecord } from "../../ops.ts";
import { graphRewrite, mapGraph, RuleTable, rule } from "../../uop/rewrite.ts";
import { type UOp, type UOpArena, valueType } from "../../uop/uops.ts";
import type { Target } from "../target.ts";
import { emulate } from "./emulate.ts";

export function decompose(sink: UOp, target: Target, arena: UOpArena): UOp {
  let root = emulate(sink, target, arena);
  const isMissing = (u: UOp): boolean => u.op === "ALU" && !target.has(u.arg, operandType(u));
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
    const isMissing = (u: UOp): boolean =>
      u.op === "ALU" && !target.has(u.arg, operandType(u)) && !functions.fused.has(u);
    table = new RuleTable([
      rule(`what ${target.name} lacks`, { op: "ALU", where: isMissing }, (_, arena, u) => {
        if (u.op !== "ALU") return undefined;
        const how = opRecord(u.arg).decompose;
        if (how !== undefined) return how(functions.on(arena), ...u.srcs);
        throw new DTypeError(
          `${u.arg}: ${target.name} cannot do it on ${operandType(u).name}; cast the operands first`,
        );
      }),
    ]);
    tables.set(target, table);
  }
  return table;
}

/**
 * Decompositions add products in one step where vectors of the target can: they round better for it. A MULACC of the user
 * rounds twice everywhere, so those made here are remembered.
 */
class Functions {
  readonly fused = new WeakSet<UOp>();
  readonly #target: Target;

  constructor(target: Target) {
    this.#target = target;
  }
  on(arena: UOpArena): Algebra<UOp> {
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
/** Something that lowering knows it of, or that times a positive number. */
function isNotPositive(u: UOp, arena: UOpArena): boolean {
  if (arena.notPositive.has(u)) return true;
  if (u.op !== "ALU" || u.arg !== "MUL") return false;
  const [x, y] = u.srcs as [UOp, UOp];
  return y.op === "CONST" && Number(y.arg) > 0 && isNotPositive(x, arena);
}
const operandType = (u: UOp): DType => valueType(u.srcs.at(-1) as UOp);

/** Float to integer as castValue says: NaN is 0, out of range stops at the ends, then the width wraps. */
function saturateCast(u: UOp, a: UOpArena): UOp | undefined {
  const [x] = u.srcs;
  if (u.op !== "CAST" || x === undefined) return undefined;
  const [from, to] = [valueType(x), valueType(u)];
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

const isConst = (u: UOp): u is UOp<"CONST"> => u.op === "CONST";

/** Integer division: by zero gives 0, by -1 negates (the smallest integer wraps), as OPS says. */
function guardDivision(u: UOp, a: UOpArena): UOp | undefined {
  if (u.op !== "ALU" || (u.arg !== "IDIV" && u.arg !== "MOD")) return undefined;
  const [x, y] = u.srcs as readonly [UOp, UOp];
  const dtype = valueType(y);
  if (dtype.isFloat || (isConst(y) && Number(y.arg) > 0) || (y.op === "DEFINE_VAR" && y.arg.min > 0))
    return undefined;
  const zero = a.constant(dtype, 0);
  const byZero = a.alu("CMPEQ", y, zero);
  const byMinusOne = dtype.kind === "int" ? a.alu("CMPEQ", y, a.constant(dtype, -1)) : falseOf(a, byZero);
  const unsafe = a.alu("OR", byZero, byMinusOne);
  const safe = a.alu(u.arg, x, a.alu("WHERE", unsafe, a.constant(dtype, 1), y));
  if (u.arg === "MOD") return a.alu("WHERE", unsafe, zero, safe);
  const negated = dtype.kind === "int" ? a.alu("WHERE", byMinusOne, a.alu("NEG", x), safe) : safe;
  return a.alu("WHERE", byZero, zero, negated);
}
const falseOf = (a: UOpArena, like: UOp): UOp => a.constant(valueType(like) as DType, 0);
