// Lists: each node once and in its place.

import { expect, test } from "vitest";
import { dtypes, PtrDType } from "../../src/dtype.ts";
import { Variable } from "../../src/shape/symbolic.ts";
import { UOpArena } from "../../src/uop/arena.ts";
import { elementOf, UOpGraph } from "../../src/uop/list.ts";
import { makeUOp, type Range } from "../../src/uop/node.ts";

const { int32, float32 } = dtypes;

test("a list knows the place of its own nodes only", () => {
  const a = new UOpArena();
  const list = new UOpGraph(a);
  const range = (of: number): Range => a.range({ size: 4, kind: "output", of });
  const [x, y] = [range(0), range(1)];
  list.push(x);
  expect([list.has(x), list.has(y), list.indexOf(x), list.indexOf(y)]).toEqual([true, false, 0, -1]);
});

test("a node is in the list once, where it was added first", () => {
  const g = new UOpGraph();
  const one = g.add("CONST", int32, [], 1);
  const two = g.add("CONST", int32, [], 2);
  expect(g.add("CONST", int32, [], 1)).toBe(one);
  expect([...g]).toEqual([one, two]);
});

test("buffers and variables in the order in which they came", () => {
  const g = new UOpGraph();
  const [n, m] = [Variable("n", 1, 9), Variable("m", 1, 9)];
  g.add("DEFINE_VAR", int32, [], n);
  const second = g.add("DEFINE_GLOBAL", PtrDType(float32), [], [1, "data1", false]);
  const first = g.add("DEFINE_GLOBAL", PtrDType(float32), [], [0, "data0", true]);
  g.add("DEFINE_VAR", int32, [], m);
  expect(g.globals()).toEqual([second, first]);
  expect(g.vars()).toEqual([n, m]);
});

test("what an access moves, as it is in memory", () => {
  const data = makeUOp("DEFINE_GLOBAL", PtrDType(float32), [], [0, "data0", true]);
  const zero = makeUOp("CONST", int32, [], 0);
  expect(elementOf(makeUOp("LOAD", float32.vec(4), [data, zero], undefined))).toBe(float32);
});
