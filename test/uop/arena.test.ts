// The arena: equal nodes are one, ranges get ids, builders give the types that ops have, folding happens as
// nodes are made.

import { describe, expect, test } from "vitest";
import { dtypes } from "../../src/dtype.ts";
import { Variable } from "../../src/shape/symbolic.ts";
import { UOpArena } from "../../src/uop/arena.ts";
import type { Expr, Range } from "../../src/uop/node.ts";

const { bool, int8, int32, int64, float32 } = dtypes;
const range = (a: UOpArena, of = 0): Range => a.range({ size: 4, kind: "output", of });

describe("interning", () => {
  test("equal nodes are one node, effects and accumulators are not", () => {
    const a = new UOpArena();
    const x = a.variable(Variable("x", 0, 9));
    const next = (): Expr => a.alu("ADD", x, a.int(1));
    expect(next()).toBe(next());
    expect(next()).not.toBe(a.alu("ADD", a.int(1), x));
    expect(a.variable(Variable("x", 0, 9))).toBe(x);
    const accumulator = () => a.make("DEFINE_ACC", int32, [], 0);
    expect(accumulator()).not.toBe(accumulator());
    const buffer = a.global(int32, 0, true);
    expect(a.store(buffer, x, x)).not.toBe(a.store(buffer, x, x));
    expect(a.local(int32, "temp", 4)).not.toBe(a.local(int32, "temp", 4));
  });
  test("constants by their type and value; -0 is not 0, NaN is NaN", () => {
    const a = new UOpArena();
    expect(a.int(0)).toBe(a.constant(int32, 0));
    expect(a.int(0)).not.toBe(a.constant(int8, 0));
    expect(a.constant(float32, 0)).not.toBe(a.constant(float32, -0));
    expect(a.constant(float32, NaN)).toBe(a.constant(float32, NaN));
    expect(a.constant(int64, 1)).toBe(a.constant(int64, 1n));
    expect(a.constant(int8, 257)).toBe(a.constant(int8, 1));
  });
  test("buffers by their position and type", () => {
    const a = new UOpArena();
    expect(a.global(int32, 1, false)).toBe(a.global(int32, 1, false));
    expect(a.global(int32, 1, false)).not.toBe(a.global(int32, 2, false));
    expect(a.global(int32, 1, false)).not.toBe(a.global(float32, 1, false));
  });
  test("a node that folds is what it folds to, every time", () => {
    const a = new UOpArena();
    const x = a.variable(Variable("x", 0, 9));
    const sum = (): Expr => a.alu("ADD", x, a.int(0));
    expect([sum(), sum()]).toEqual([x, x]);
  });
});

describe("ranges", () => {
  test("have ids from 0, and no two have the same", () => {
    const a = new UOpArena();
    const ranges = [range(a), range(a), range(a, 1)];
    expect(ranges.map((r) => r.axis.id)).toEqual([0, 1, 2]);
    expect(new Set(ranges).size).toBe(3);
    expect(range(new UOpArena()).axis.id).toBe(0);
  });
  test("end at their size, or at a node", () => {
    const a = new UOpArena();
    expect(range(a).end).toBe(a.int(4));
    const size = Variable("size", 1, 9);
    const end = a.variable(size);
    expect(a.range({ size, kind: "reduce", of: 0 }, end).end).toBe(end);
    expect(() => a.range({ size, kind: "reduce", of: 0 })).toThrow(/needs its end as a node/);
  });
});

describe("builders", () => {
  test("the number of sources of an ALU op is checked", () => {
    const a = new UOpArena();
    expect(() => a.alu("ADD", a.int(1))).toThrow(/ADD takes 2 sources, got 1/);
  });
  test("comparisons are bools, the rest is what its operands are", () => {
    const a = new UOpArena();
    const x = a.cast(range(a), float32);
    expect([a.alu("CMPLT", x, x).dtype, a.alu("MUL", x, x).dtype]).toEqual([bool, float32]);
    expect([a.cast(x, float32), a.bitcast(x, float32)]).toEqual([x, x]);
  });
  test("a load has the type of the memory; what its gate leaves out is 0", () => {
    const a = new UOpArena();
    const [buffer, i] = [a.global(float32, 1, false), range(a)];
    expect(a.load(buffer, i).dtype).toBe(float32);
    expect(a.load(buffer, i, { lanes: 4 }).dtype).toBe(float32.vec(4));
    const gated = a.load(buffer, i, { gate: a.alu("CMPLT", i, a.int(3)), lanes: 2 });
    if (gated.op !== "LOAD") throw new Error(`a load became ${gated.op}`);
    expect(gated.otherwise).toBe(a.constant(float32.vec(2), 0));
  });
  test("a reduce over nothing is its body", () => {
    const a = new UOpArena();
    const i = range(a);
    expect(a.reduce("SUM", i, [])).toBe(i);
    expect(a.reduce("SUM", i, [i]).op).toBe("REDUCE");
  });
  test("all of some conditions, of one and of none", () => {
    const a = new UOpArena();
    const [x, y] = [a.alu("CMPLT", range(a), a.int(1)), a.alu("CMPLT", range(a), a.int(2))];
    expect(a.and([])).toBe(a.constant(bool, 1));
    expect(a.and([x])).toBe(x);
    expect(a.and([x, y])).toBe(a.alu("AND", x, y));
  });
  test("the lane of a vector: of scalars the scalar, of a constant the constant", () => {
    const a = new UOpArena();
    const [x, y] = [range(a), range(a)];
    expect(a.gep(a.vectorize([x, y]), 1)).toBe(y);
    expect(a.gep(a.constant(int32.vec(2), 3), 1)).toBe(a.int(3));
    const vector = a.load(a.global(int32, 1, false), x, { lanes: 2 });
    expect(a.gep(vector, 1)).toBe(a.make("GEP", int32, [vector], 1));
  });
  test("a node again with other sources, or as another type", () => {
    const a = new UOpArena();
    const [x, y] = [range(a), range(a)];
    expect(a.withSrcs(a.alu("ADD", x, y), [y, a.int(0)])).toBe(y);
    const sum = a.reduce("SUM", x, [y]);
    const wide = a.withType(sum, float32, [a.cast(x, float32), y]);
    expect([wide.op, wide.dtype]).toEqual(["REDUCE", float32]);
  });
});

test("nodes come sources first, each once, and as one list as long as the root is the same", () => {
  const a = new UOpArena();
  const [x, y] = [range(a), range(a)];
  const sum = a.alu("ADD", x, y);
  const root = a.alu("MUL", sum, a.alu("ADD", sum, x));
  const nodes = a.nodes(root);
  for (const u of nodes) for (const s of u.srcs) expect(nodes.indexOf(s)).toBeLessThan(nodes.indexOf(u));
  expect(new Set(nodes).size).toBe(nodes.length);
  expect(nodes.at(-1)).toBe(root);
  expect(a.nodes(root)).toBe(nodes);
});
