// The rewrite engine: what a pattern matches and captures, which rule of a table wins, and how a table is
// applied to a whole graph. The rules here are made up; FOLD has a test of its own.

import { describe, expect, test } from "vitest";
import { dtypes } from "../../src/dtype.ts";
import { MAX_FUSED_DEPTH } from "../../src/schedule/split.ts";
import { Variable } from "../../src/shape/symbolic.ts";
import { UOpArena } from "../../src/uop/arena.ts";
import type { Expr, UOp } from "../../src/uop/node.ts";
import { alu, any, constant, either, memory, node, op, type Pattern } from "../../src/uop/pattern.ts";
import { graphRewrite, mapGraph, RuleTable, rewriteOne, rule } from "../../src/uop/rewrite.ts";

const { int32, float32, bool } = dtypes;

class Kit {
  readonly arena = new UOpArena();
  readonly variable = (name: string): Expr => this.arena.variable(Variable(name, 0, 9));
  readonly n = (v: number): Expr => this.arena.int(v);
  readonly add = (a: Expr, b: Expr): Expr => this.arena.alu("ADD", a, b);
  readonly mul = (a: Expr, b: Expr): Expr => this.arena.alu("MUL", a, b);
}
const keep = ({ x }: { readonly x: Expr }) => x;

describe("patterns", () => {
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
});

describe("tables", () => {
  test("the first rule that applies wins; one that gives nothing lets the next try", () => {
    const { arena, variable, n, add } = new Kit();
    const x = variable("x");
    const tried: string[] = [];
    const log = (name: string, result: UOp | undefined) =>
      rule(name, either("ADD", any("x"), constant("c")), () => {
        tried.push(name);
        return result;
      });
    const table = new RuleTable([log("no", undefined), log("yes", n(1)), log("late", n(2))]);
    expect(rewriteOne(add(x, n(5)), table, arena)).toBe(n(1));
    expect(tried).toEqual(["no", "yes"]);
  });
  test("a rule that gives the node itself does not count", () => {
    const { arena, variable, n, add } = new Kit();
    const table = new RuleTable([
      rule("itself", op("ALU"), (_, __, root) => root),
      rule("one", op("ALU"), (_, a) => a.constant(int32, 1)),
    ]);
    expect(rewriteOne(add(variable("x"), n(2)), table, arena)).toBe(n(1));
  });
  test("rules without an op of their own meet every node", () => {
    const { arena, variable, n, add } = new Kit();
    const x = variable("x");
    const table = new RuleTable([
      rule(
        "any int",
        any("x", (u) => u.dtype === int32),
        (_, a) => a.constant(int32, 3),
      ),
    ]);
    for (const u of [x, add(x, n(1)), arena.cast(arena.cast(x, float32), int32)]) {
      expect(rewriteOne(u, table, arena)).toBe(n(3));
    }
    expect(rewriteOne(arena.cast(x, float32), table, arena)).toBeUndefined();
  });
  test("nodes with and without constant sources are not confused by the lookup", () => {
    const { arena, variable, n, add } = new Kit();
    const [x, y] = [variable("x"), variable("y")];
    const table = new RuleTable([
      rule("with", either("ADD", any("x"), constant("c")), (_, a) => a.constant(int32, 1)),
      rule("without", alu("ADD", any("x"), any("y")), (_, a) => a.constant(int32, 2)),
    ]);
    for (let i = 0; i < 2; i++) {
      expect(rewriteOne(add(x, y), table, arena)).toBe(n(2));
      expect(rewriteOne(add(x, n(9)), table, arena)).toBe(n(1));
    }
  });
});

describe("whole graphs", () => {
  test("sources first, and a replacement is rewritten again", () => {
    const { arena, variable, n, add, mul } = new Kit();
    const [x, y] = [variable("x"), variable("y")];
    // 2 -> 3 -> 4 in two steps, wherever it stands
    const table = new RuleTable([
      rule(
        "up",
        constant("c", (c) => c.value === 2 || c.value === 3),
        (f, a) => a.constant(int32, Number(f.c.value) + 1),
      ),
    ]);
    const before = add(mul(x, n(2)), mul(y, add(x, n(3))));
    expect(graphRewrite(before, table, arena)).toBe(add(mul(x, n(4)), mul(y, add(x, n(4)))));
    const untouched = mul(x, y);
    expect(graphRewrite(untouched, table, arena)).toBe(untouched);
  });
  test("a shared node is rewritten once", () => {
    const { arena, variable, n, add, mul } = new Kit();
    const x = variable("x");
    const shared = mul(x, n(7));
    let times = 0;
    const table = new RuleTable([
      rule(
        "count",
        alu(
          "MUL",
          any("x"),
          constant("c", (c) => c.value === 7),
        ),
        (f, a) => {
          times++;
          return a.alu("SHL", f.x, a.constant(int32, 3));
        },
      ),
    ]);
    const root = add(add(shared, n(1)), mul(shared, shared));
    const shifted = arena.alu("SHL", x, n(3));
    expect(graphRewrite(root, table, arena)).toBe(add(add(shifted, n(1)), mul(shifted, shifted)));
    expect(times).toBe(1);
  });
  test("what is rebuilt is folded again", () => {
    const { arena, variable, n, add, mul } = new Kit();
    const [x, y] = [variable("x"), variable("y")];
    const table = new RuleTable([
      rule(
        "y is 0",
        op("DEFINE_VAR", (u) => u === y),
        (_, a) => a.constant(int32, 0),
      ),
    ]);
    expect(graphRewrite(add(x, mul(y, n(5))), table, arena)).toBe(x);
  });
  test("mapGraph looks at every node once and not at what it put there", () => {
    const { arena, variable, n, add } = new Kit();
    const x = variable("x");
    const seen: string[] = [];
    const root = add(add(x, n(1)), variable("y"));
    const mapped = mapGraph(root, arena, (u, a) => {
      seen.push(u.op);
      return u.op === "DEFINE_VAR" ? a.alu("MUL", u, a.int(2)) : undefined;
    });
    const twice = (u: Expr) => arena.alu("MUL", u, n(2));
    expect(mapped).toBe(add(add(twice(x), n(1)), twice(variable("y"))));
    expect(seen.filter((op) => op === "DEFINE_VAR")).toHaveLength(2);
    expect(seen.at(-1)).toBe("ALU");
  });
  test("a graph as deep as the schedule lets a kernel become", () => {
    const { arena, variable, n, add } = new Kit();
    let u = variable("x");
    const depth = MAX_FUSED_DEPTH;
    for (let i = 0; i < depth; i++) u = arena.alu("SUB", add(u, variable("y")), u);
    const table = new RuleTable([
      rule(
        "y is 1",
        op("DEFINE_VAR", (v) => v === variable("y")),
        (_, a) => a.constant(int32, 1),
      ),
    ]);
    let want = variable("x");
    for (let i = 0; i < depth; i++) want = arena.alu("SUB", add(want, n(1)), want);
    expect(graphRewrite(u, table, arena)).toBe(want);
    expect(mapGraph(u, arena, () => undefined)).toBe(u);
  });
});

describe("interning", () => {
  test("equal nodes are one node, effects and accumulators are not", () => {
    const { arena, variable, n, add } = new Kit();
    const x = variable("x");
    expect(add(x, n(1))).toBe(add(x, n(1)));
    expect(add(x, n(1))).not.toBe(add(n(1), x));
    expect(n(0)).not.toBe(arena.constant(dtypes.int8, 0));
    expect(arena.constant(float32, 0)).not.toBe(arena.constant(float32, -0));
    expect(arena.constant(float32, NaN)).toBe(arena.constant(float32, NaN));
    expect(arena.constant(dtypes.int64, 1)).toBe(arena.constant(dtypes.int64, 1n));
    const acc = () => arena.make("DEFINE_ACC", int32, [], 0);
    expect(acc()).not.toBe(acc());
    const buf = (i: number, d = int32) => arena.global(d, i, false);
    expect(buf(1)).toBe(buf(1));
    expect(buf(1)).not.toBe(buf(2));
    expect(buf(1)).not.toBe(buf(1, float32));
  });
  test("the number of sources of an ALU op is checked", () => {
    const { arena, variable } = new Kit();
    expect(() => arena.alu("ADD", variable("x"))).toThrow(/ADD takes 2 sources, got 1/);
  });
});
