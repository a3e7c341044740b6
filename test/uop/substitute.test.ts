// Substitution: other nodes in the place of some, once or all the way down, and loads gated where the
// replacement has no meaning.

import { describe, expect, test } from "vitest";
import { dtypes } from "../../src/dtype.ts";
import { UOpArena } from "../../src/uop/arena.ts";
import type { Expr, Range } from "../../src/uop/node.ts";
import { substitute } from "../../src/uop/substitute.ts";

const { float32 } = dtypes;

class Kit {
  readonly a = new UOpArena();
  readonly data = this.a.global(float32, 1, false);
  readonly range = (size = 8): Range => this.a.range({ size, kind: "output", of: 0 });
  readonly add = (x: Expr, y: Expr): Expr => this.a.alu("ADD", x, y);
  readonly mul = (x: Expr, y: Expr): Expr => this.a.alu("MUL", x, y);
}

describe("once", () => {
  test("wherever the node is, and folded again", () => {
    const { a, data, range, add, mul } = new Kit();
    const [i, j] = [range(), range()];
    const before = a.load(data, add(mul(i, a.int(4)), mul(i, j)));
    expect(substitute(before, new Map([[i, j]]), a)).toBe(a.load(data, add(mul(j, a.int(4)), mul(j, j))));
    expect(substitute(before, new Map([[i, a.int(0)]]), a)).toBe(a.load(data, a.int(0)));
  });
  test("a graph without the node is the same graph", () => {
    const { a, data, range } = new Kit();
    const root = a.load(data, range());
    expect(substitute(root, new Map([[range(), a.int(1)]]), a)).toBe(root);
    expect(substitute(root, new Map(), a)).toBe(root);
  });
  test("a replacement may mention what it replaces", () => {
    const { a, range, add, mul } = new Kit();
    const i = range();
    const shifted = add(i, a.int(1));
    expect(substitute(mul(i, i), new Map([[i, shifted]]), a)).toBe(mul(shifted, shifted));
  });
  test("two that exchange places", () => {
    const { a, range } = new Kit();
    const [i, j] = [range(), range()];
    const by = new Map([
      [i, j],
      [j, i],
    ]);
    expect(substitute(a.alu("SUB", i, j), by, a)).toBe(a.alu("SUB", j, i));
  });
});

test("nested: what a replacement is made of is replaced too", () => {
  const { a, data, range, add, mul } = new Kit();
  const [i, j] = [range(), range()];
  const [inner, outer] = [mul(i, a.int(2)), add(mul(i, a.int(2)), j)];
  const by = new Map([
    [outer, a.load(data, add(inner, a.int(1)))],
    [inner, j],
  ]);
  const root = mul(outer, inner);
  expect(substitute(root, by, a)).toBe(mul(a.load(data, add(inner, a.int(1))), j));
  expect(substitute(root, by, a, { nested: true })).toBe(mul(a.load(data, add(j, a.int(1))), j));
});

describe("gated", () => {
  test("loads that the replacement reaches, and no others", () => {
    const { a, data, range, add } = new Kit();
    const [i, j] = [range(), range()];
    const where = a.alu("CMPLT", j, a.int(3));
    const root = add(a.load(data, i), a.load(data, j));
    expect(substitute(root, new Map([[i, add(j, a.int(5))]]), a, { where })).toBe(
      add(a.load(data, add(j, a.int(5)), { gate: where }), a.load(data, j)),
    );
  });
  test("a load that has a gate keeps it, and what it gives otherwise", () => {
    const { a, data, range } = new Kit();
    const [i, j] = [range(), range()];
    const where = a.alu("CMPLT", j, a.int(3));
    const gate = a.alu("CMPLT", a.int(0), j);
    const otherwise = a.constant(float32, 7);
    const root = a.load(data, i, { gate, otherwise });
    const both = a.alu("AND", gate, where);
    expect(substitute(root, new Map([[i, j]]), a, { where })).toBe(
      a.load(data, j, { gate: both, otherwise }),
    );
  });
  test("an array was filled before, in loops of its own", () => {
    const { a, range } = new Kit();
    const [i, j] = [range(), range()];
    const array = a.local(float32, "temp0", 8);
    const filled = a.stage(array, [a.store(array, i, a.cast(i, float32))], [i]);
    const root = a.load(filled, i);
    const where = a.alu("CMPLT", j, a.int(3));
    expect(substitute(root, new Map([[i, j]]), a, { where })).toBe(a.load(filled, j, { gate: where }));
  });
});

test("a gated load of a vector keeps its lanes", () => {
  const { a, data, range } = new Kit();
  const [i, j] = [range(), range()];
  const where = a.alu("CMPLT", j, a.int(3));
  const made = substitute(a.load(data, i, { lanes: 4 }), new Map([[i, j]]), a, { where });
  expect(made).toBe(a.load(data, j, { gate: where, lanes: 4 }));
  expect(made.dtype).toBe(float32.vec(4));
});
