// FOLD: what is always true and always cheaper. Applied to every node as it is made, so no stage ever sees
// 199+200 or x*1. Exact: a float rule must hold for NaN, infinities and -0 too.

import { bitcastValue, castValue, type DType, Pointer, type Value, wrap } from "../dtype.ts";
import { type AluOp, opRecord } from "../ops.ts";
import { alu, any, constant, either, type Found, RuleTable, rule } from "./rewrite.ts";
import type { UOp, UOpArena } from "./uops.ts";

const type = (u: UOp): DType => u.dtype as DType;
const isScalar = (u: UOp): boolean => !(u.dtype instanceof Pointer) && (u.dtype?.count ?? 0) === 1;
const exact = (u: UOp): boolean => u.dtype !== undefined && !(u.dtype instanceof Pointer) && !u.dtype.isFloat;
const notBool = (u: UOp): boolean => type(u).kind !== "bool";
const is = (n: number) => (u: UOp<"CONST">) => Object.is(Number(u.arg), n);
const zero = constant("c", (u) => Number(u.arg) === 0);
const one = constant("c", is(1));
const constantOf = (u: UOp): Value => wrap(type(u), (u as UOp<"CONST">).arg);
const value = (f: Found, name: string): Value => constantOf(f[name] as UOp);
const x = ({ x: u }: Found) => u;
const zeroOf = (_: Found, a: UOpArena, u: UOp) => a.constant(type(u), 0);
const falseOf = (_: Found, a: UOpArena, u: UOp) => a.constant(type(u), 0);

/** (x op c1) op c2 -> x op (c1 op c2), for integers. */
const regroup = (op: AluOp) =>
  rule(
    `(x ${op} c1) ${op} c2`,
    either(op, either(op, any("x", exact), constant("c1")), constant("c2")),
    (f, a) => {
      const t = type(f.x as UOp);
      return a.alu(op, f.x as UOp, a.constant(t, opRecord(op).evaluate(t, value(f, "c1"), value(f, "c2"))));
    },
  );

const allConstant = (u: UOp): boolean => isScalar(u) && u.srcs.every((s) => s.op === "CONST");
function foldConstants(_: Found, a: UOpArena, u: UOp): UOp | undefined {
  if (u.op !== "ALU") return undefined;
  const last = u.srcs.at(-1) as UOp;
  return a.constant(type(u), opRecord(u.arg).evaluate(type(last), ...u.srcs.map(constantOf)));
}

export const FOLD = new RuleTable([
  rule("constants", { op: "ALU", where: allConstant, hasConst: true }, foldConstants),
  rule("cast of a constant", { op: "CAST", srcs: [constant("c")] }, (f, a, u) =>
    isScalar(u) ? a.constant(type(u), castValue(type(u), value(f, "c"), type(f.c as UOp))) : undefined,
  ),
  rule("bitcast of a constant", { op: "BITCAST", srcs: [constant("c")] }, (f, a, u) =>
    isScalar(u) ? a.constant(type(u), bitcastValue(type(u), value(f, "c"), type(f.c as UOp))) : undefined,
  ),
  // a byte that becomes a bool on the way keeps one bit
  rule(
    "bitcast of bitcast",
    { op: "BITCAST", srcs: [{ op: "BITCAST", srcs: [any("x")], where: notBool }] },
    (f, a, u) => a.bitcast(f.x as UOp, type(u)),
  ),
  rule("x+0", either("ADD", any("x", exact), zero), x),
  rule("x+(-0.0)", either("ADD", any("x"), constant("c", is(-0))), x),
  rule("x-0", alu("SUB", any("x"), constant("c", is(0))), x),
  rule("x-x", alu("SUB", any("x", exact), any("x")), zeroOf),
  rule("x*1", either("MUL", any("x"), one), x),
  rule("x*0", either("MUL", any("x", exact), zero), zeroOf),
  rule("x/1", alu("DIV", any("x"), one), x),
  rule("x//1", alu("IDIV", any("x"), one), x),
  rule("x%1", alu("MOD", any("x", exact), one), zeroOf),
  rule("0//x", alu("IDIV", zero, any("x")), zeroOf),
  rule("0%x", alu("MOD", { ...zero, where: (u) => exact(u) && Number(u.arg) === 0 }, any("x")), zeroOf),
  rule("--x", alu("NEG", alu("NEG", any("x"))), x),
  rule("max(x,x)", alu("MAX", any("x"), any("x")), x),
  rule("x<x", alu("CMPLT", any("x"), any("x")), falseOf),
  rule("x!=x", alu("CMPNE", any("x", exact), any("x")), falseOf),
  rule("x|0", either("OR", any("x"), zero), x),
  rule("x^0", either("XOR", any("x"), zero), x),
  rule("x^x", alu("XOR", any("x"), any("x")), zeroOf),
  rule("x&0", either("AND", any("x"), zero), zeroOf),
  rule("x&x", alu("AND", any("x"), any("x")), x),
  rule(
    "b&true",
    either(
      "AND",
      any("x", (u) => type(u).kind === "bool"),
      one,
    ),
    x,
  ),
  rule(
    "b|true",
    either(
      "OR",
      any("x", (u) => type(u).kind === "bool"),
      one,
    ),
    ({ c }) => c,
  ),
  rule("x<<0", alu("SHL", any("x"), zero), x),
  rule("x>>0", alu("SHR", any("x"), zero), x),
  rule("true?a:b", alu("WHERE", one, any("x"), any("y")), x),
  rule("false?a:b", alu("WHERE", zero, any("y"), any("x")), x),
  rule("c?x:x", alu("WHERE", any("c"), any("x"), any("x")), x),
  rule("load if true", { op: "LOAD", srcs: [any("b"), any("i"), one, any("y")] }, (f, a, u) =>
    a.make("LOAD", u.dtype, [f.b as UOp, f.i as UOp], undefined),
  ),
  rule("load if false", { op: "LOAD", srcs: [any("b"), any("i"), zero, any("x")] }, x),
  regroup("ADD"),
  regroup("MUL"),
]);
