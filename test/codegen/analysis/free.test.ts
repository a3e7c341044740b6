// Which loops a node runs in: those of its sources, without those that a reduce closes.

import { expect, test } from "vitest";
import { freeAxes } from "../../../src/codegen/analysis/free.ts";
import { dtypes, PtrDType } from "../../../src/dtype.ts";
import { type UOp, UOpArena } from "../../../src/uop/uops.ts";

const { int32, float32 } = dtypes;

test("a sum depends on the loops around it, what it adds on its own too", () => {
  const a = new UOpArena();
  const range = (id: number): UOp => a.make("RANGE", int32, [a.constant(int32, 0), a.constant(int32, 4)], id);
  const [i, j, k] = [range(0), range(1), range(2)] as [UOp, UOp, UOp];
  const buffer = a.make("DEFINE_GLOBAL", PtrDType(float32), [], [1, "data1", false]);
  const load = a.make("LOAD", float32, [buffer, a.alu("ADD", i, j)], undefined);
  const sum = a.make("REDUCE", float32, [load, j], "SUM");
  const twice = a.alu("MUL", sum, sum);
  const other = a.alu("ADD", twice, a.cast(k, float32));
  const ranges = new Map<number, UOp>();
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
