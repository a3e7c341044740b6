// What a TypeScript program sees: values infer without casts, shapes are numbers. The type check is the
// test; a wrong type in this file fails `npm run typecheck`.

import { type Element, type NestedArray, Tensor } from "gradloom";
import { expect, expectTypeOf, test } from "vitest";

test("item() is what the variable says, and a number where nothing says more", async () => {
  const t = new Tensor([1.5, 2]);
  const total = await t.sum().item();
  expectTypeOf(total).toEqualTypeOf<number>();
  const any: boolean = await t.gt(1).any().item();
  const big: bigint = await t.sum().cast("int64").item();
  const synced: bigint = t.sum().cast("int64").itemSync();
  // @ts-expect-error: an element is a number, a bigint or a boolean
  const wrong: string = await t.sum().item();
  expect([total, any, big, synced, wrong]).toEqual([3.5, true, 3n, 3n, 3.5]);
});

test("tolist() is nested as the variable says", async () => {
  const t = new Tensor([[1, 2], [3, 4]]); // biome-ignore format: a matrix
  const rows: number[][] = await t.tolist();
  const flags: boolean[] = t.gt(1).flatten().tolistSync();
  const first: number = (await t.tolist<number[][]>())[0]?.[0] ?? NaN;
  const unknown = await t.tolist();
  expectTypeOf(unknown).toEqualTypeOf<NestedArray>();
  // @ts-expect-error: there are no strings in a tensor
  const wrong: string[] = await t.tolist();
  expect([rows, flags, first, unknown, wrong]).toEqual([
    [[1, 2], [3, 4]], [false, true, true, true], 1, [[1, 2], [3, 4]], [[1, 2], [3, 4]],
  ]); // biome-ignore format: matrices
  const sum = rows.flat().reduce((a, b) => a + b, 0);
  expect(sum).toBe(10);
});

test("shape is an array of numbers", () => {
  const { shape } = new Tensor([[1, 2, 3]]);
  expectTypeOf(shape).toEqualTypeOf<readonly number[]>();
  const elements: number = shape.reduce((a, b) => a * b, 1);
  // @ts-expect-error: it is the tensor's own
  expect(() => Object.freeze(shape).push(1)).toThrow(TypeError);
  expect(elements).toBe(3);
  expectTypeOf<Element>().toEqualTypeOf<number | bigint | boolean>();
});

test("methods give tensors, and options are checked", () => {
  const t = new Tensor([1, 2]);
  expectTypeOf(t.add(1)).toEqualTypeOf<Tensor>();
  expectTypeOf(t.median(0)).toEqualTypeOf<[Tensor, Tensor]>();
  expectTypeOf(t.median()).toEqualTypeOf<Tensor>();
  // @ts-expect-error: alpha is what is meant
  expect(() => t.add(1, { alfa: 2 })).toThrow("add: unknown option alfa; did you mean alpha?");
  // @ts-expect-error: a string is not an operand
  expect(() => t.mul("2")).toThrow("mul");
});
