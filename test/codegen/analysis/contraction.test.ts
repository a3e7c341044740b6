// What counts as a contraction: a sum of products, through casts, and which factor has the rows of the
// result.

import { describe, expect, test } from "vitest";
import {
  axesBelow,
  contractionOf,
  loadsOf,
  onlyContraction,
  rowsAndColumns,
} from "../../../src/codegen/analysis/contraction.ts";
import { dtypes } from "../../../src/dtype.ts";
import { UOpArena } from "../../../src/uop/arena.ts";
import { type Expr, isProduct, type Range } from "../../../src/uop/node.ts";

const { float16, float32 } = dtypes;

/** A[i, k] and B[k, j] of a product of matrices of 4 x 4. */
function operands(type = float32) {
  const a = new UOpArena();
  const loop = (kind: "output" | "reduce", of: number): Range => a.range({ size: 4, kind, of });
  const [i, j, k] = [loop("output", 0), loop("output", 1), loop("reduce", 2)];
  const at = (row: Expr, column: Expr): Expr => a.alu("ADD", a.alu("MUL", row, a.int(4)), column);
  const [x, y] = [a.load(a.global(type, 1, false), at(i, k)), a.load(a.global(type, 2, false), at(k, j))];
  const store = (value: Expr) => a.sink([a.store(a.global(value.dtype, 0, true), at(i, j), value)]);
  return { a, i, j, k, x, y, store };
}

describe("contractionOf", () => {
  test("a sum of products, with its factors and loops", () => {
    const { a, k, x, y } = operands();
    const sum = a.reduce("SUM", a.alu("MUL", x, y), [k]);
    const found = contractionOf(sum);
    expect(found?.sum).toBe(sum);
    expect(found?.factors.map((f) => f.value)).toEqual([x, y]);
    expect(found?.factors.map((f) => f.source)).toEqual([x, y]);
    expect(found?.ranges).toEqual([k]);
    expect(found && loadsOf(found)).toEqual([x, y]);
  });
  test("factors that were widened for the sum: the source is what was in memory", () => {
    const { a, k, x, y } = operands(float16);
    const wide = [x, y].map((v) => a.cast(v, float32)) as [Expr, Expr];
    const found = contractionOf(a.reduce("SUM", a.alu("MUL", ...wide), [k]));
    expect(found?.factors.map((f) => f.value)).toEqual(wide);
    expect(found?.factors.map((f) => f.source)).toEqual([x, y]);
  });
  test("not a maximum of products, a sum of something else, or a product", () => {
    const { a, k, x, y } = operands();
    const product = a.alu("MUL", x, y);
    expect(isProduct(product)).toBe(true);
    expect(contractionOf(product)).toBeUndefined();
    expect(contractionOf(a.reduce("REDUCE_MAX", product, [k]))).toBeUndefined();
    expect(contractionOf(a.reduce("SUM", a.alu("ADD", x, y), [k]))).toBeUndefined();
  });
  test("factors that are computed are not loads", () => {
    const { a, k, x, y } = operands();
    const found = contractionOf(a.reduce("SUM", a.alu("MUL", a.alu("EXP2", x), y), [k]));
    expect(found).toBeDefined();
    expect(found && loadsOf(found)).toBeUndefined();
  });
});

describe("onlyContraction", () => {
  test("of a kernel with one reduction, whatever is done with its result", () => {
    const { a, k, x, y, store } = operands();
    const sum = a.reduce("SUM", a.alu("MUL", x, y), [k]);
    expect(onlyContraction(store(a.alu("EXP2", sum)), a)?.sum).toBe(sum);
  });
  test("not of a kernel with two, or none", () => {
    const { a, k, x, y, store } = operands();
    const sum = a.reduce("SUM", a.alu("MUL", x, y), [k]);
    const most = a.reduce("REDUCE_MAX", x, [k]);
    expect(onlyContraction(store(a.alu("ADD", sum, most)), a)).toBeUndefined();
    expect(onlyContraction(store(x), a)).toBeUndefined();
  });
});

test("rows and columns: whichever order they are multiplied in", () => {
  const { a, i, j, k, x, y } = operands();
  expect(axesBelow(x)).toEqual(new Set([i.axis.id, k.axis.id]));
  expect(rowsAndColumns(x, y, i.axis, j.axis)).toEqual([x, y]);
  expect(rowsAndColumns(y, x, i.axis, j.axis)).toEqual([x, y]);
  expect(rowsAndColumns(x, y, j.axis, i.axis)).toEqual([y, x]);
  // a factor that moves along both is not a matrix of rows, nor is one that moves along neither
  const both = a.alu("MUL", x, a.cast(j, float32));
  expect(rowsAndColumns(both, y, i.axis, j.axis)).toBeUndefined();
  expect(rowsAndColumns(a.cast(k, float32), y, i.axis, j.axis)).toBeUndefined();
});
