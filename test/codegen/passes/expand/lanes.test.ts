// Lanes: which there are, which of them a node depends on, and how they are counted and put into vectors.

import { expect, test } from "vitest";
import { type Lane, type LaneAxis, Lanes, laneOf } from "../../../../src/codegen/passes/expand/lanes.ts";
import { dtypes } from "../../../../src/dtype.ts";
import { UOpArena } from "../../../../src/uop/arena.ts";
import type { Range } from "../../../../src/uop/node.ts";

const { float32 } = dtypes;
/** out[loop * 3 + column] = sum over k, and over 2 lanes of it, of the column. */
function kernel(columns = 3) {
  const a = new UOpArena();
  const loop = a.range({ size: 5, kind: "output", of: 0 });
  const column = a.range({ size: columns, kind: "upcast", of: 1 });
  const k = a.range({ size: 7, kind: "reduce", of: 2 });
  const unrolled = a.range({ size: 2, kind: "unroll", of: 2 });
  const load = a.load(a.global(float32, 1, false), a.alu("ADD", a.alu("ADD", column, unrolled), k));
  const sum = a.reduce("SUM", load, [k, unrolled]);
  const index = a.alu("ADD", a.alu("MUL", loop, a.int(columns)), column);
  const sink = a.sink([a.store(a.global(float32, 0, true), index, sum)]);
  const lanes = new Lanes(sink, a, [4, 2]);
  const axis = (r: Range): LaneAxis => {
    const found = lanes.axisOf(r);
    if (found === undefined) throw new Error("a loop, not lanes");
    return found;
  };
  return { a, loop, column, k, unrolled, load, sum, lanes, axis };
}

test("axes of lanes have bits of their own; loops have none", () => {
  const { lanes, loop, k, column, unrolled, axis } = kernel();
  expect([loop, k].map((r) => lanes.axisOf(r))).toEqual([undefined, undefined]);
  expect([axis(column).size, axis(unrolled).size]).toEqual([3, 2]);
  expect(axis(column).mask & axis(unrolled).mask).toBe(0);
  expect(lanes.axes).toHaveLength(2);
});

test("a node depends on the lanes below it, but for those that a reduce closes", () => {
  const { lanes, loop, column, unrolled, load, sum, axis } = kernel();
  expect([column, unrolled].map((r) => lanes.depends(load, axis(r)))).toEqual([true, true]);
  expect([column, unrolled].map((r) => lanes.depends(sum, axis(r)))).toEqual([true, false]);
  expect(lanes.maskOf(loop)).toBeUndefined();
});

test("a reduce over all lanes below it depends on none, and is still made again", () => {
  const a = new UOpArena();
  const lane = a.range({ size: 2, kind: "group", of: 0 });
  const sum = a.reduce("SUM", a.cast(lane, float32), [lane]);
  const lanes = new Lanes(a.sink([a.store(a.global(float32, 0, true), a.int(0), sum)]), a, []);
  expect(lanes.maskOf(sum)).toBe(0);
});

test("every combination once, the last axis the fastest", () => {
  const { lanes, column, unrolled, axis } = kernel();
  const axes = [axis(column), axis(unrolled)];
  const numbers = lanes.combinations(axes, 0).map((l: Lane) => axes.map((x) => laneOf(l, x)));
  expect(numbers).toEqual([
    [0, 0],
    [0, 1],
    [1, 0],
    [1, 1],
    [2, 0],
    [2, 1],
  ]);
  expect(lanes.combinations([], 5)).toEqual([5]);
});

test("vectors are as wide as divides the axis", () => {
  for (const [size, width, firsts] of [
    [8, 4, [0, 4]],
    [6, 2, [0, 2, 4]],
    [3, 1, [0, 1, 2]],
  ] as const) {
    const { lanes, column, unrolled, axis } = kernel(size);
    const along = axis(column);
    expect(lanes.widthOf(along)).toBe(width);
    const [, other = 0] = lanes.combinations([axis(unrolled)], 0);
    const vectors = lanes.vectors(other, along);
    expect(vectors.map((l) => laneOf(l, along))).toEqual(firsts);
    expect(vectors.every((l) => laneOf(l, axis(unrolled)) === 1)).toBe(true);
    const last = vectors.at(-1) ?? 0;
    const start = firsts.at(-1) ?? 0;
    expect(lanes.ofVector(last, along).map((l) => laneOf(l, along))).toEqual(
      Array.from({ length: width }, (_, i) => start + i),
    );
  }
});

test("more lanes than a number holds are refused", () => {
  expect(() => kernel(2 ** 31 - 1)).toThrow(/cannot have 2 lanes more; use smaller amounts/);
});
