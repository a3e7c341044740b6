// Numbers that are written into integers: one rule for every place. What does not fit is refused by the name
// of the function; where torch promotes, the result is a float.

import { ArgumentError, type DTypeLike, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";

const ones = (dtype: DTypeLike): Tensor => Tensor.ones([3], { dtype });
const yes = Tensor.ones([3], { dtype: "bool" });
const at = new Tensor([0]);
type Writes = (dtype: DTypeLike, value: number) => Tensor;
const WRITES: readonly (readonly [string, Writes])[] = [
  ["full", (dtype, v) => Tensor.full([3], v, { dtype })],
  ["fullLike", (dtype, v) => yes.fullLike(v, { dtype })],
  ["fill", (dtype, v) => ones(dtype).fill(v)],
  ["setitem", (dtype, v) => ones(dtype).setitem([0], v)],
  ["setitem", (dtype, v) => ones(dtype).setitem([at], v)],
  ["pad", (dtype, v) => ones(dtype).pad([1, 1], "constant", v)],
  ["maskedFill", (dtype, v) => ones(dtype).maskedFill(yes, v)],
  ["indexFill", (dtype, v) => ones(dtype).indexFill(0, at, v)],
  ["indexPut", (dtype, v) => ones(dtype).indexPut([at], v)],
  ["scatter", (dtype, v) => ones(dtype).scatter(0, at, v)],
  ["arange", (dtype, v) => Tensor.arange(v, v + 2, { dtype })],
];
describe.each(WRITES)("%s", (name, write) => {
  test.each<[DTypeLike, number]>([
    ["int32", 1.5],
    ["int32", 2 ** 31],
    ["uint8", 300],
    ["uint8", -1],
    ["int8", -129],
    ["int64", 0.5],
  ])("%s refuses %d", (dtype, value) => {
    // a range of integers loses the fractions of its ends, as in torch
    if (name === "arange" && value % 1 !== 0) return;
    expect(() => write(dtype, value)).toThrow(ArgumentError);
    expect(() => write(dtype, value)).toThrow(`${name}: ${value} does not fit ${dtype}`);
  });
  test("what fits is written", async () => {
    expect([...(await write("uint8", 7).data())]).toContain(7);
    expect([...(await write("int8", -7).data())]).toContain(-7);
  });
});
test("NaN and infinities are not integers", () => {
  for (const v of [NaN, Infinity, -Infinity]) {
    for (const [name, write] of WRITES.slice(0, -1))
      expect(() => write("int32", v)).toThrow(`${name}: ${v} does not fit`);
  }
});
test("bools and bigints are written as numbers", async () => {
  expect(await Tensor.full([1], true, { dtype: "int32" }).tolist()).toEqual([1]);
  expect(await Tensor.full([1], 5n, { dtype: "int32" }).tolist()).toEqual([5]);
  expect(await ones("int32").setitem([0], false).tolist()).toEqual([0, 1, 1]);
});
test("arithmetic, where and clamp promote as in torch", async () => {
  for (const made of [ones("int32").add(0.5), yes.where(ones("int32"), 0.5), ones("int32").clamp(0.5, 2)]) {
    expect(made.dtype.name).toBe("float32");
  }
  expect(await ones("uint8").add(-1).tolist()).toEqual([0, 0, 0]);
  expect(await ones("uint8").scatter(0, at, -1, { reduce: "add" }).tolist()).toEqual([0, 1, 1]);
  expect(() => yes.where(ones("uint8"), 300)).toThrow("where: 300 does not fit uint8");
  expect(() => ones("uint8").clamp(-1, 3)).toThrow("clamp: -1 does not fit uint8");
});
