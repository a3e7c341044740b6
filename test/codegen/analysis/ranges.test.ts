// Range analysis: loops, variables and arithmetic on them have a least and a greatest value; what may wrap or
// comes from memory has none.

import { expect, test } from "vitest";
import { rangesOf } from "../../../src/codegen/analysis/ranges.ts";
import { type DType, dtypes } from "../../../src/dtype.ts";
import { Variable } from "../../../src/shape/symbolic.ts";
import { UOpArena } from "../../../src/uop/arena.ts";
import type { Expr } from "../../../src/uop/node.ts";

const a = new UOpArena();
const row = a.range({ size: 8, kind: "output", of: 0 });
const n = a.variable(Variable("n", 2, 5) as never);
const rangeOf = (u: Expr) => rangesOf(a.nodes(u)).get(u);

test("loops, variables and arithmetic on them", () => {
  expect(rangeOf(row)).toEqual([0, 7]);
  expect(rangeOf(n)).toEqual([2, 5]);
  expect(rangeOf(a.alu("ADD", a.alu("MUL", row, a.int(-4)), n))).toEqual([-26, 5]);
  expect(rangeOf(a.alu("MOD", a.alu("SUB", row, n), a.int(3)))).toEqual([-2, 2]);
  expect(rangeOf(a.alu("IDIV", row, n))).toEqual([0, 3]);
  expect(rangeOf(a.alu("WHERE", a.alu("CMPLT", row, n), row, a.int(100)))).toEqual([0, 100]);
});

test("nothing is known of what may wrap, what is divided by 0, and what is loaded", () => {
  expect(rangeOf(a.alu("MUL", row, a.int(2 ** 29)))).toBeUndefined();
  expect(rangeOf(a.alu("IDIV", n, row))).toBeUndefined();
  const loaded = a.load(a.global(dtypes.int32, 1, false), row);
  expect(rangeOf(a.alu("ADD", loaded, a.int(1)))).toBeUndefined();
});

test("a number below 0 wraps where there are no signs", () => {
  const below = a.alu("SUB", row, a.int(5));
  expect(rangeOf(below)).toEqual([-5, 2]);
  for (const d of [dtypes.uint32, dtypes.uint64]) {
    expect(rangeOf(a.cast(below, d))).toBeUndefined();
    expect(rangeOf(a.cast(a.cast(below, d), dtypes.int64))).toBeUndefined();
    expect(rangeOf(a.cast(row, d))).toEqual([0, 7]);
  }
  expect(rangeOf(a.cast(below, dtypes.int8))).toEqual([-5, 2]);
});

test("the type bounds what is read or cast in 8 or 16 bits, not what is computed in them", () => {
  const below = a.alu("SUB", row, a.int(5));
  expect(rangeOf(a.cast(below, dtypes.uint8))).toEqual([0, 255]);
  expect(rangeOf(a.cast(a.cast(below, dtypes.uint8), dtypes.int64))).toEqual([0, 255]);
  const read = (d: DType): Expr => a.load(a.global(d, 0, false), row);
  expect(rangeOf(a.cast(read(dtypes.int16), dtypes.int32))).toEqual([-32768, 32767]);
  expect(rangeOf(read(dtypes.int32))).toBeUndefined();
  expect(rangeOf(a.alu("ADD", read(dtypes.int8), read(dtypes.int8)))).toBeUndefined();
});
