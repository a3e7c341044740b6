// FOLD: what is always true and always cheaper. Applied to every node as it is made, so no stage ever sees
// 199+200 or x*1. Exact: a float rule must hold for NaN, infinities and -0 too. In the patterns `n` is an
// exact number (an integer or a bool), `b` a bool, `c` a constant and `x`, `y` anything.

import { bitcastValue, castValue, scalarOf, type Value, wrap } from "../dtype.ts";
import { type AluOp, opRecord } from "../ops.ts";
import type { UOpArena } from "./arena.ts";
import type { Alu, Const, Expr } from "./node.ts";
import { alu, any, anyAlu, constant, either, memory, node } from "./pattern.ts";
import { RuleTable, rule } from "./rewrite.ts";

const isScalar = (u: Expr): boolean => u.dtype.count === 1;
const isExact = (u: Expr): boolean => !u.dtype.isFloat;
const isBool = (u: Expr): boolean => u.dtype.kind === "bool";
const is = (value: number) => (u: Const) => u.is(value);
const isZero = (u: Const): boolean => u.is(0) || u.is(-0);
/** The value of a constant as its type has it; in a vector, that of every lane. */
const constantValue = (u: Const): Value => wrap(scalarOf(u.dtype), u.value);

const [x, y] = [any("x"), any("y")];
const n = any("n", isExact);
const b = any("b", isBool);
const zero = constant("c", isZero);
const one = constant("c", is(1));
const zeroOf = (_: unknown, a: UOpArena, u: Expr): Expr => a.constant(u.dtype, 0);

const isConst = (u: { readonly op: string }): u is Const => u.op === "CONST";
const isAllConst = (u: Alu): boolean => isScalar(u) && u.srcs.every(isConst);
function foldConstants(_: unknown, a: UOpArena, u: Alu): Expr | undefined {
  const operands = u.srcs.filter(isConst);
  const last = operands.at(-1);
  return last && a.constant(u.dtype, opRecord(u.fn).evaluate(last.dtype, ...operands.map(constantValue)));
}
/** (n op c1) op c2 = n op (c1 op c2), for an op that is associative on integers. */
const regroup = (op: AluOp) =>
  rule(
    `(n ${op} c1) ${op} c2`,
    either(op, either(op, n, constant("c1")), constant("c2")),
    ({ n: left, c1, c2 }, a) => {
      const right = opRecord(op).evaluate(scalarOf(left.dtype), constantValue(c1), constantValue(c2));
      return a.alu(op, left, a.constant(left.dtype, right));
    },
  );

export const FOLD = new RuleTable([
  rule("constants", anyAlu(isAllConst, true), foldConstants),
  rule("cast of a constant", node("CAST", [constant("c")], isScalar), ({ c }, a, u) =>
    a.constant(u.dtype, castValue(u.dtype, constantValue(c), c.dtype)),
  ),
  rule("bitcast of a constant", node("BITCAST", [constant("c")], isScalar), ({ c }, a, u) =>
    a.constant(u.dtype, bitcastValue(u.dtype, constantValue(c), c.dtype)),
  ),
  // a byte that becomes a bool on the way keeps one bit
  rule("bitcast of a bitcast", node("BITCAST", [node("BITCAST", [x], (u) => !isBool(u))]), (f, a, u) =>
    a.bitcast(f.x, u.dtype),
  ),

  rule("n + 0 = n", either("ADD", n, zero), (f) => f.n),
  rule("x + (-0.0) = x", either("ADD", x, constant("c", is(-0))), (f) => f.x),
  rule("x - 0 = x", alu("SUB", x, constant("c", is(0))), (f) => f.x),
  rule("n - n = 0", alu("SUB", n, n), zeroOf),
  rule("x * 1 = x", either("MUL", x, one), (f) => f.x),
  rule("n * 0 = 0", either("MUL", n, zero), zeroOf),
  rule("x / 1 = x", alu("DIV", x, one), (f) => f.x),
  rule("x // 1 = x", alu("IDIV", x, one), (f) => f.x),
  rule("n % 1 = 0", alu("MOD", n, one), zeroOf),
  rule("0 // x = 0", alu("IDIV", zero, x), zeroOf),
  rule(
    "0 % x = 0",
    alu(
      "MOD",
      constant("c", (u) => isExact(u) && isZero(u)),
      x,
    ),
    zeroOf,
  ),
  rule("--x = x", alu("NEG", alu("NEG", x)), (f) => f.x),
  rule("max(x, x) = x", alu("MAX", x, x), (f) => f.x),
  rule("x < x = false", alu("CMPLT", x, x), zeroOf),
  rule("n != n = false", alu("CMPNE", n, n), zeroOf),
  rule("x | 0 = x", either("OR", x, zero), (f) => f.x),
  rule("x ^ 0 = x", either("XOR", x, zero), (f) => f.x),
  rule("x ^ x = 0", alu("XOR", x, x), zeroOf),
  rule("x & 0 = 0", either("AND", x, zero), zeroOf),
  rule("x & x = x", alu("AND", x, x), (f) => f.x),
  rule("b & true = b", either("AND", b, one), (f) => f.b),
  rule("b | true = true", either("OR", b, one), (f) => f.c),
  rule("x << 0 = x", alu("SHL", x, zero), (f) => f.x),
  rule("x >> 0 = x", alu("SHR", x, zero), (f) => f.x),
  rule("true ? x : y = x", alu("WHERE", one, x, y), (f) => f.x),
  rule("false ? x : y = y", alu("WHERE", zero, x, y), (f) => f.y),
  rule("c ? x : x = x", alu("WHERE", y, x, x), (f) => f.x),
  rule("a load if true", node("LOAD", [memory("buffer"), any("index"), one, y]), (f, a, u) =>
    a.load(f.buffer, f.index, { lanes: u.dtype.count }),
  ),
  rule("a load if false", node("LOAD", [memory("buffer"), any("index"), zero, y]), (f) => f.y),
  regroup("ADD"),
  regroup("MUL"),
]);
