// Floats of 16 and 8 bits on targets that do not compute with them. A narrow value becomes a float32 that
// holds it exactly; arithmetic is done in float32 and rounded after each op. With `storage` the target
// converts by itself; with `bits` loads and stores move integers of the same size and the conversion is
// integer arithmetic (narrow.ts).

import { type DType, dtypes, Pointer, PtrDType, scalarOf, wrap } from "../../dtype.ts";
import { floatFromBits, floatToBits } from "../../narrow.ts";
import type { UOpArena } from "../../uop/arena.ts";
import { type Expr, isExpr, type Memory, type Sink, type UOp, type UType } from "../../uop/node.ts";
import { alu, any, anyAlu, anything, node, op, type Pattern, reduce, when } from "../../uop/pattern.ts";
import { RuleTable, rule, translate } from "../../uop/rewrite.ts";
import { narrowSupport, type Support, type Target } from "../target.ts";

const { float32, uint8, uint16, uint32 } = dtypes;

/** The same kernel without floats that the target does not compute with. */
export const emulate = (sink: Sink, target: Target, arena: UOpArena): Sink =>
  translate(sink, narrowFloats(target), arena);

const [c, x, y, z] = [any("c"), any("x"), any("y"), any("z")];
const tables = new WeakMap<Target, RuleTable>();

/** The conditions see nodes as they were, with narrow types; what is captured is a float32 by then. */
function narrowFloats(target: Target): RuleTable {
  const known = tables.get(target);
  if (known !== undefined) return known;
  const how = (d: UType): Support => narrowSupport(target, d);
  const isNarrow = (u: { readonly dtype: UType }): boolean => how(u.dtype) !== "native";
  const narrow = <C, R extends Expr>(p: Pattern<C, R>): Pattern<C, R> => when(p, isNarrow);
  const isInBits = (u: UOp): u is Memory => u.dtype instanceof Pointer && how(u.dtype) === "bits";
  const isNarrowExpr = (u: UOp): u is Expr => isExpr(u) && isNarrow(u);
  /** The nearest value of the narrow type, as float32. */
  const round = (a: UOpArena, value: Expr, { dtype }: Expr): Expr =>
    how(dtype) === "storage"
      ? a.cast(a.cast(value, dtype), float32)
      : fromBits(toBits(value, dtype, how(dtype), a), dtype, how(dtype), a);

  /** What widened a value is undone. */
  const narrowed = (value: Expr, dtype: DType, a: UOpArena): Expr => {
    if (how(dtype) === "bits") return toBits(value, dtype, "bits", a);
    return value.op === "CAST" && value.operand.dtype === dtype ? value.operand : a.cast(value, dtype);
  };

  const table = new RuleTable([
    rule("memory in bits is memory of integers", anything(isInBits), (_, a, u, now) =>
      a.withType(u, PtrDType(integer(u.dtype), u.dtype.local), u.srcs.map(now)),
    ),
    rule("a load widens", op("LOAD", isNarrow), (_, a, { buffer, index, gate, dtype }, now) => {
      const value = a.load(now(buffer), now(index), { gate: gate && now(gate) });
      return how(dtype) === "bits" ? fromBits(value, dtype, "bits", a) : a.cast(value, float32);
    }),
    rule(
      "a store narrows",
      op("STORE", (u) => isNarrow(u.value)),
      (_, a, { buffer, index, value, gate }, now) => {
        const { dtype } = value;
        const narrowed =
          how(dtype) === "bits" ? toBits(now(value), dtype, "bits", a) : a.cast(now(value), dtype);
        return a.store(now(buffer), now(index), narrowed, gate && now(gate));
      },
    ),
    rule(
      "a vector that is copied as it is",
      op("LOAD", (u) => u.dtype.count > 1 && how(scalarOf(u.dtype)) === "bits"),
      (_, a, { buffer, index, gate, dtype }, now) =>
        a.load(now(buffer), now(index), { gate: gate && now(gate), lanes: dtype.count }),
    ),
    rule(
      "the lanes of a vector narrow",
      op("VECTORIZE", (u) => how(scalarOf(u.dtype)) !== "native"),
      (_, a, { lanes, dtype }, now) => a.vectorize(lanes.map((l) => narrowed(now(l), scalarOf(dtype), a))),
    ),
    rule("a constant is one of the narrow values", op("CONST", isNarrow), (_, a, { dtype, value }) =>
      a.constant(float32, wrap(dtype, value)),
    ),
    rule("a cast rounds", node("CAST", [x], isNarrow), (f, a, u) => round(a, a.cast(f.x, float32), u)),
    rule(
      "a bitcast is of the narrow bits",
      node("BITCAST", [x], (u) => isNarrow(u) || isNarrow(u.operand)),
      (f, a, { operand, dtype }) => {
        const bits = isNarrow(operand) ? toBits(f.x, operand.dtype, how(operand.dtype), a) : f.x;
        if (how(dtype) === "native") return a.bitcast(bits, dtype);
        return fromBits(a.bitcast(bits, integer(dtype)), dtype, how(dtype), a);
      },
    ),
    rule("c ? x : y needs no rounding", narrow(alu("WHERE", c, x, y)), (f, a) =>
      a.alu("WHERE", f.c, f.x, f.y),
    ),
    rule("max(x, y) needs no rounding", narrow(alu("MAX", x, y)), (f, a) => a.alu("MAX", f.x, f.y)),
    rule("x * y + z rounds twice", narrow(alu("MULACC", x, y, z)), (f, a, u) =>
      round(a, a.alu("ADD", round(a, a.alu("MUL", f.x, f.y), u), f.z), u),
    ),
    rule("other arithmetic rounds", anyAlu(isNarrow), (_, a, u, now) =>
      round(a, a.alu(u.fn, ...u.operands.map((o) => now(o))), u),
    ),
    rule("a running sum is a float32, and rounds at the end", narrow(reduce("SUM", x)), (_, a, u, now) =>
      round(a, a.withType(u, float32, u.srcs.map(now)), u),
    ),
    rule("whatever else is narrow is a float32", anything(isNarrowExpr), (_, a, u, now) =>
      a.withType(u, float32, u.srcs.map(now)),
    ),
  ]);
  tables.set(target, table);
  return table;
}

/** The integer that has the bits of a narrow float, or of what a pointer points to. */
const integer = (d: UType): DType => {
  const base = d instanceof Pointer ? d.base : d;
  return base?.itemsize === 1 ? uint8 : uint16;
};

function fromBits(bits: Expr, type: DType, support: Support, a: UOpArena): Expr {
  if (support === "storage") return a.cast(a.bitcast(bits, type), float32);
  return floatFromBits(a, a.cast(bits, uint32), type);
}

function toBits(value: Expr, type: DType, support: Support, a: UOpArena): Expr {
  if (support === "storage") return a.bitcast(a.cast(value, type), integer(type));
  return a.cast(floatToBits(a, value, type), integer(type));
}
