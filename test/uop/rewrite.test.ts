// The rewrite engine: what a pattern matches and captures, which rule of a table wins, and how a table is
// applied to a whole graph. The rules here are made up; FOLD has a test of its own.

import { describe, expect, test } from "vitest";
import { dtypes } from "../../src/dtype.ts";
import { MAX_FUSED_DEPTH } from "../../src/schedule/split.ts";
import { Variable } from "../../src/shape/symbolic.ts";
import { UOpArena } from "../../src/uop/arena.ts";
import type { Expr, UOp } from "../../src/uop/node.ts";
import { alu, any, constant, either, op } from "../../src/uop/pattern.ts";
import {
  graphRewrite,
  mapGraph,
  RuleTable,
  rewriteEach,
  rewriteOne,
  rule,
  translate,
} from "../../src/uop/rewrite.ts";

const { int32, float32 } = dtypes;

class Kit {
  readonly arena = new UOpArena();
  readonly variable = (name: string): Expr => this.arena.variable(Variable(name, 0, 9));
  readonly n = (v: number): Expr => this.arena.int(v);
  readonly add = (a: Expr, b: Expr): Expr => this.arena.alu("ADD", a, b);
  readonly mul = (a: Expr, b: Expr): Expr => this.arena.alu("MUL", a, b);
}

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
  test("a pass that changes nothing gives the same root, one that changes a leaf rebuilds what is above it", () => {
    const { arena, variable, add, mul } = new Kit();
    const [x, y] = [variable("x"), variable("y")];
    const root = mul(add(x, y), y);
    expect(mapGraph(root, arena, () => undefined)).toBe(root);
    expect(mapGraph(root, arena, (u) => (u === x ? y : undefined))).toBe(mul(add(y, y), y));
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

describe("each node by itself", () => {
  const halve = new RuleTable([
    rule(
      "x * c = (x * c/2) * 2",
      alu(
        "MUL",
        any("x"),
        constant("c", (c) => Number(c.value) % 2 === 0),
      ),
      ({ x, c }, a) => a.alu("SHL", a.alu("MUL", x, a.int(Number(c.value) / 2)), a.int(1)),
    ),
  ]);
  test("a replacement's parts are left alone, a replacement is not", () => {
    const { arena, variable, n, mul } = new Kit();
    const x = variable("x");
    const once = arena.alu("SHL", mul(x, n(4)), n(1));
    expect(rewriteEach(mul(x, n(8)), halve, arena)).toBe(once);
    // graphRewrite goes on inside: 8 = 2 * 2 * 2
    const inside = arena.alu("SHL", arena.alu("SHL", arena.alu("SHL", x, n(1)), n(1)), n(1));
    expect(graphRewrite(mul(x, n(8)), halve, arena)).toBe(inside);
  });
  test("until no rule applies to it", () => {
    const { arena, variable, n, add } = new Kit();
    const x = variable("x");
    const up = new RuleTable([
      rule(
        "2 -> 3 -> 4",
        constant("c", (c) => c.value === 2 || c.value === 3),
        ({ c }, a) => a.int(Number(c.value) + 1),
      ),
    ]);
    expect(rewriteEach(add(x, n(2)), up, arena)).toBe(add(x, n(4)));
  });
});

describe("a graph whose types change", () => {
  /** ints become floats, and a sum is rounded down */
  const floats = new RuleTable([
    rule("variable", op("DEFINE_VAR"), (_, a, u) => a.cast(u, float32)),
    rule(
      "constant",
      constant("c", (u) => u.dtype === int32),
      (_, a, u) => a.constant(float32, u.value),
    ),
    rule(
      "x + y",
      alu(
        "ADD",
        any("x", (u) => u.dtype === int32),
        any("y"),
      ),
      ({ x, y }, a) => a.alu("TRUNC", a.alu("ADD", x, y)),
    ),
  ]);
  test("rules match what was there, and are given what it became", () => {
    const { arena, variable, n, add } = new Kit();
    const x = variable("x");
    const float = arena.cast(x, float32);
    const want = arena.alu("TRUNC", arena.alu("ADD", float, arena.constant(float32, 5)));
    expect(translate(add(x, n(5)), floats, arena)).toBe(want);
  });
  test("`now` gives what a source became; a node without a rule is made again", () => {
    const { arena, variable, n } = new Kit();
    const [x, buffer] = [variable("x"), arena.global(float32, 0, true)];
    const table = new RuleTable([
      rule(
        "4 is 5",
        constant("c", (u) => u.value === 4),
        (_, a) => a.int(5),
      ),
      rule("a load one further", op("LOAD"), (_, a, { buffer, index }, now) =>
        a.load(now(buffer), a.alu("ADD", now(index), a.int(1))),
      ),
    ]);
    const root = arena.sink([arena.store(buffer, x, arena.load(buffer, n(4)))]);
    const made = translate(root, table, arena);
    const [store] = made.stores;
    expect(store?.value).toBe(arena.load(buffer, n(6)));
    expect([store?.buffer, store?.index]).toEqual([buffer, x]);
    expect(translate(x, table, arena)).toBe(x);
  });
});
