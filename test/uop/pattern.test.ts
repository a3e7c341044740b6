// Patterns: what they match and capture. The rules here are made up; FOLD has a test of its own.

import { expect, test } from "vitest";
import { dtypes } from "../../src/dtype.ts";
import { Variable } from "../../src/shape/symbolic.ts";
import { UOpArena } from "../../src/uop/arena.ts";
import { type Expr, isExpr, type Memory, type Range, type UOp } from "../../src/uop/node.ts";
import {
  alu,
  any,
  anyAlu,
  anything,
  constant,
  either,
  memory,
  node,
  op,
  type Pattern,
  reduce,
  when,
} from "../../src/uop/pattern.ts";
import { RuleTable, rewriteOne, rule } from "../../src/uop/rewrite.ts";

const { int32, float32, bool } = dtypes;

class Kit {
  readonly arena = new UOpArena();
  readonly variable = (name: string): Expr => this.arena.variable(Variable(name, 0, 9));
  readonly n = (v: number): Expr => this.arena.int(v);
  readonly add = (a: Expr, b: Expr): Expr => this.arena.alu("ADD", a, b);
  readonly mul = (a: Expr, b: Expr): Expr => this.arena.alu("MUL", a, b);
}
const keep = ({ x }: { readonly x: Expr }) => x;

test("an op, an ALU op and sources in their order", () => {
  const { arena, variable, n } = new Kit();
  const [x, y] = [variable("x"), variable("y")];
  const table = new RuleTable([
    rule(
      "x-7",
      alu(
        "SUB",
        any("x"),
        constant("c", (c) => c.value === 7),
      ),
      keep,
    ),
  ]);
  expect(rewriteOne(arena.alu("SUB", x, n(7)), table, arena)).toBe(x);
  expect(rewriteOne(arena.alu("SUB", n(7), x), table, arena)).toBeUndefined();
  expect(rewriteOne(arena.alu("SUB", x, n(8)), table, arena)).toBeUndefined();
  expect(rewriteOne(arena.alu("SUB", x, y), table, arena)).toBeUndefined();
  expect(rewriteOne(arena.alu("ADD", x, n(7)), table, arena)).toBeUndefined();
  expect(rewriteOne(x, table, arena)).toBeUndefined();
});
test("either order of two sources, nested too", () => {
  const { arena, variable, n, add, mul } = new Kit();
  const [x, y] = [variable("x"), variable("y")];
  const table = new RuleTable([
    rule("x*c+y", either("ADD", either("MUL", any("x"), constant("c")), any("y")), (f, a) =>
      a.alu("MAX", f.x, f.y),
    ),
  ]);
  const want = arena.alu("MAX", x, y);
  for (const product of [mul(x, n(3)), mul(n(3), x)]) {
    expect(rewriteOne(add(product, y), table, arena)).toBe(want);
    expect(rewriteOne(add(y, product), table, arena)).toBe(want);
  }
});
test("a name captured twice must be the same node", () => {
  const { arena, variable, add, mul } = new Kit();
  const [x, y, z] = [variable("x"), variable("y"), variable("z")];
  const table = new RuleTable([
    rule(
      "x*y+x*z",
      alu("ADD", either("MUL", any("x"), any("y")), either("MUL", any("x"), any("z"))),
      (f, a) => a.alu("MUL", f.x, a.alu("ADD", f.y, f.z)),
    ),
  ]);
  const want = mul(x, add(y, z));
  expect(rewriteOne(add(mul(x, y), mul(x, z)), table, arena)).toBe(want);
  // the first try of a pair may bind the wrong one: the engine must take it back
  expect(rewriteOne(add(mul(x, y), mul(z, x)), table, arena)).toBe(want);
  expect(rewriteOne(add(mul(x, y), mul(z, z)), table, arena)).toBeUndefined();
});
test("`where` sees the node, and the root can be captured", () => {
  const { arena, variable } = new Kit();
  const x = variable("x");
  const seen: UOp[] = [];
  const isInt = (u: UOp) => u.dtype === int32;
  const cast: Pattern<{ root: Expr; x: Expr }, Expr> = { op: "CAST", as: "root", srcs: [any("x", isInt)] };
  const table = new RuleTable([
    rule("cast", cast, (f, _, root) => {
      seen.push(f.root, root);
      return f.x;
    }),
  ]);
  const float = arena.cast(x, float32);
  expect(rewriteOne(float, table, arena)).toBe(x);
  expect(seen).toEqual([float, float]);
  expect(rewriteOne(arena.cast(float, bool), table, arena)).toBeUndefined();
});
test("the number of sources must fit", () => {
  const { arena, variable, n } = new Kit();
  const buf = arena.global(int32, 0, false);
  const table = new RuleTable([rule("load", node("LOAD", [memory("b"), any("i")]), (f) => f.i)]);
  const x = variable("x");
  const gate = arena.alu("CMPLT", x, n(5));
  const plain = arena.load(buf, x);
  const gated = arena.load(buf, x, { gate });
  expect(rewriteOne(plain, table, arena)).toBe(x);
  expect(rewriteOne(gated, table, arena)).toBeUndefined();
});
test("a reduce of a body, over any ranges", () => {
  const { arena, variable } = new Kit();
  const range = (of: number): Range => arena.range({ size: 4, kind: "reduce", of });
  const [i, j] = [range(0), range(1)];
  const table = new RuleTable([
    rule("sum of -x", reduce("SUM", alu("NEG", any("x"))), ({ x }, a, { ranges }) =>
      a.alu("NEG", a.reduce("SUM", x, ranges)),
    ),
  ]);
  const negative = arena.alu("NEG", variable("x"));
  for (const ranges of [[i], [i, j]]) {
    expect(rewriteOne(arena.reduce("SUM", negative, ranges), table, arena)).toBe(
      arena.alu("NEG", arena.reduce("SUM", variable("x"), ranges)),
    );
  }
  expect(rewriteOne(arena.reduce("SUM", variable("x"), [i]), table, arena)).toBeUndefined();
  // another function first must not hide the rule from the next
  const other = new RuleTable(table.rules);
  expect(rewriteOne(arena.reduce("REDUCE_MAX", negative, [i]), other, arena)).toBeUndefined();
  expect(rewriteOne(arena.reduce("SUM", negative, [i]), other, arena)).toBeDefined();
});
test("a condition on top of a pattern", () => {
  const { arena, variable, n, add } = new Kit();
  const [x, y] = [variable("x"), variable("y")];
  const sum = alu("ADD", any("x"), any("y"));
  const table = new RuleTable([
    rule(
      "twice",
      when(sum, (u) => u.operands[0] === x),
      (f) => f.y,
    ),
  ]);
  expect(rewriteOne(add(x, y), table, arena)).toBe(y);
  expect(rewriteOne(add(y, x), table, arena)).toBeUndefined();
  const both = when(
    when(sum, (u) => u.operands[0] === x),
    (u) => u.operands[1] === n(3),
  );
  const narrower = new RuleTable([rule("both", both, (f) => f.x)]);
  expect(rewriteOne(add(x, n(3)), narrower, arena)).toBe(x);
  expect(rewriteOne(add(x, y), narrower, arena)).toBeUndefined();
  expect(rewriteOne(add(y, n(3)), narrower, arena)).toBeUndefined();
});
test("an op whatever its sources, any ALU, anything at all", () => {
  const { arena, variable, n, mul } = new Kit();
  const x = variable("x");
  const buffer = arena.global(int32, 0, false);
  const gate = arena.alu("CMPLT", x, n(5));
  const loads = new RuleTable([rule("load", op("LOAD"), (_, __, u) => u.index)]);
  expect(rewriteOne(arena.load(buffer, x), loads, arena)).toBe(x);
  expect(rewriteOne(arena.load(buffer, x, { gate }), loads, arena)).toBe(x);
  const products = new RuleTable([
    rule(
      "product",
      anyAlu((u) => u.fn === "MUL"),
      (_, a) => a.int(1),
    ),
  ]);
  expect(rewriteOne(mul(x, x), products, arena)).toBe(n(1));
  expect(rewriteOne(gate, products, arena)).toBeUndefined();
  const isPointer = (u: UOp): u is Memory => !isExpr(u);
  const pointers = new RuleTable([rule("pointer", anything(isPointer), (_, a, u) => a.load(u, x))]);
  expect(rewriteOne(buffer, pointers, arena)).toBe(arena.load(buffer, x));
  expect(rewriteOne(x, pointers, arena)).toBeUndefined();
});
