// How an index moves with a loop: the stride of sums and multiples, what becomes one vector, and which loops
// could be one.

import { expect, test } from "vitest";
import { hasUnitStride, isCollapsible, strideOf } from "../../../src/codegen/analysis/strides.ts";
import { dtypes } from "../../../src/dtype.ts";
import { WASMRenderer } from "../../../src/render/wasm/renderer.ts";
import { UOpArena } from "../../../src/uop/arena.ts";
import type { Expr, Range, UOp } from "../../../src/uop/node.ts";

const { float32 } = dtypes;
const a = new UOpArena();
const loop = (of: number): Range => a.range({ size: 4, kind: "output", of });
const [i, j] = [loop(0), loop(1)];
const times = (x: Expr, n: number): Expr => a.alu("MUL", x, a.int(n));

test("the stride of a sum of multiples", () => {
  const index = a.alu("ADD", times(i, 12), a.alu("ADD", j, a.int(5)));
  expect([i, j].map((r) => strideOf(index, r))).toEqual([12, 1]);
  expect(strideOf(times(index, 3), i)).toBe(36);
  expect(strideOf(a.int(7), i)).toBe(0);
});
test("an index that is not linear has no stride along that loop, and 0 along others", () => {
  const square = a.alu("MUL", i, i);
  expect(strideOf(square, i)).toBeUndefined();
  expect(strideOf(square, j)).toBe(0);
  expect(strideOf(a.alu("IDIV", i, a.int(2)), i)).toBeUndefined();
});
test("an access to neighbours is one vector, unless its gate changes from one to the next", () => {
  const buffer = a.global(float32, 0, false);
  const load = (gate?: Expr): Extract<UOp, { op: "LOAD" }> => {
    const made = a.load(buffer, a.alu("ADD", times(i, 8), j), { gate });
    if (made.op !== "LOAD") throw new Error(`a ${made.op}`);
    return made;
  };
  const { simd } = WASMRenderer;
  expect([i, j].map((r) => hasUnitStride(load(), r, simd))).toEqual([false, true]);
  expect(hasUnitStride(load(a.alu("CMPLT", i, a.int(3))), j, simd)).toBe(true);
  expect(hasUnitStride(load(a.alu("CMPLT", j, a.int(3))), j, simd)).toBe(false);
  expect(hasUnitStride(load(), j, undefined)).toBe(false);
});
test("loops could be one where the outer goes on where the inner ends", () => {
  const sizes = [4, 4];
  expect(isCollapsible(a.alu("ADD", times(i, 4), j), [i, j], sizes)).toBe(true);
  expect(isCollapsible(a.alu("ADD", times(i, 8), times(j, 2)), [i, j], sizes)).toBe(true);
  expect(isCollapsible(a.alu("ADD", times(i, 8), j), [i, j], sizes)).toBe(false);
});
