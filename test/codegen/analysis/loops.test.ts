// Which loops a node runs in: those of its sources, without those that a reduce closes.

import { expect, test } from "vitest";
import { freeAxes, tripCount } from "../../../src/codegen/analysis/loops.ts";
import { dtypes } from "../../../src/dtype.ts";
import { Variable } from "../../../src/shape/symbolic.ts";
import { UOpArena } from "../../../src/uop/arena.ts";
import type { Range, UOp } from "../../../src/uop/node.ts";

const { float32 } = dtypes;

test("a sum depends on the loops around it, what it adds on its own too", () => {
  const a = new UOpArena();
  const range = (of: number): Range => a.range({ size: 4, kind: "output", of });
  const [i, j, k] = [range(0), range(1), range(2)];
  const buffer = a.global(float32, 1, false);
  const load = a.load(buffer, a.alu("ADD", i, j));
  const sum = a.reduce("SUM", load, [j]);
  const twice = a.alu("MUL", sum, sum);
  const other = a.alu("ADD", twice, a.cast(k, float32));
  const ranges = new Map<number, Range>();
  const free = freeAxes(other, a, ranges);
  const ids = (u: UOp): number[] => [...(free.get(u) ?? [])].sort();
  expect([buffer, load, sum, twice, other].map(ids)).toEqual([[], [0, 1], [0], [0], [0, 2]]);
  expect(free.get(twice)).toBe(free.get(sum));
  expect([...ranges].sort()).toEqual([
    [0, i],
    [1, j],
    [2, k],
  ]);
});

test("the trip count of a loop: a constant, or what a variable makes of it at most", () => {
  const a = new UOpArena();
  const n = a.variable(Variable("n", 1, 10));
  const loop = (end: Parameters<typeof a.alu>[1]) =>
    tripCount(a.range({ size: 4, kind: "output", of: 0 }, end));
  expect(loop(a.int(4))).toBe(4);
  expect(loop(n)).toBe(10);
  expect(loop(a.alu("ADD", a.alu("MUL", n, a.int(3)), a.int(2)))).toBe(32);
  expect(loop(a.alu("IDIV", n, a.int(4)))).toBe(2);
  expect(loop(a.alu("MOD", n, a.int(4)))).toBe(1);
});
