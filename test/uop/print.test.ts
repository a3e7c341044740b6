// A graph as text: operators bind as in C, shared values are named once, loops come first, gates and arrays
// are shown.

import { expect, test } from "vitest";
import { dtypes } from "../../src/dtype.ts";
import { UOpArena } from "../../src/uop/arena.ts";
import type { Expr } from "../../src/uop/node.ts";
import { showGraph } from "../../src/uop/print.ts";

const { float32 } = dtypes;

function setup() {
  const a = new UOpArena();
  const [out, x] = [a.global(float32, 0, true), a.global(float32, 1, false)];
  const row = a.range({ size: 4, kind: "output", of: 0 });
  const column = a.range({ size: 8, kind: "reduce", of: 1 });
  const show = (value: Expr, index: Expr = row, gate?: Expr): string[] =>
    showGraph(a.sink([a.store(out, index, value, gate)])).split("\n");
  return { a, x, row, column, show };
}

test("loops, then the store", () => {
  const { a, x, row, column, show } = setup();
  const index = a.alu("ADD", a.alu("MUL", row, a.int(8)), column);
  const total = a.reduce("SUM", a.load(x, index), [column]);
  expect(show(total)).toEqual([
    "loops: r0 < 4 output, r1 < 8 reduce",
    "data0[r0] = sum over r1 of data1[r0 * 8 + r1]",
  ]);
});

test("parentheses stand only where they change the meaning", () => {
  const { a, x, row, show } = setup();
  const [p, q] = [a.load(x, row), a.load(x, a.int(3))];
  const r = a.load(x, a.int(5));
  const last = (value: Expr): string | undefined => show(value).at(-1);
  expect(last(a.alu("MUL", a.alu("ADD", p, q), r))).toBe("data0[r0] = (data1[r0] + data1[3]) * data1[5]");
  expect(last(a.alu("ADD", a.alu("MUL", p, q), r))).toBe("data0[r0] = data1[r0] * data1[3] + data1[5]");
  expect(last(a.alu("SUB", p, a.alu("SUB", q, r)))).toBe("data0[r0] = data1[r0] - (data1[3] - data1[5])");
  expect(last(a.alu("WHERE", a.alu("CMPLT", p, q), r, a.load(x, a.int(7))))).toBe(
    "data0[r0] = data1[r0] < data1[3] ? data1[5] : data1[7]",
  );
  expect(last(a.alu("EXP2", a.alu("ADD", p, r)))).toBe("data0[r0] = exp2(data1[r0] + data1[5])");
});

test("what several lines need is named once", () => {
  const { a, x, row, show } = setup();
  const sum = a.alu("ADD", a.load(x, row), a.load(x, a.int(3)));
  expect(show(a.alu("MUL", sum, sum)).slice(1)).toEqual(["t0 = data1[r0] + data1[3]", "data0[r0] = t0 * t0"]);
});

test("gates and arrays", () => {
  const { a, x, row, column, show } = setup();
  const gate = a.alu("CMPLT", row, a.int(3));
  expect(show(a.load(x, row, { gate }), row, gate).slice(-2)).toEqual([
    "t0 = r0 < 3",
    "data0[r0 if t0] = data1[r0 if t0]",
  ]);
  const array = a.local(float32, "temp0", 8);
  const filled = a.stage(array, [a.store(array, column, a.load(x, column))], [column]);
  expect(show(a.load(filled, a.int(2))).slice(-2)).toEqual([
    "temp0: for r1: temp0[r1] = data1[r1]",
    "data0[r0] = temp0[2]",
  ]);
  const once = a.stage(array, [a.store(array, a.int(1), a.load(x, a.int(3)))], []);
  expect(show(a.load(once, a.int(1))).at(-2)).toBe("temp0: temp0[1] = data1[3]");
});
