// What a TypeScript program sees: values infer without casts, shapes are numbers. The type check is the
// test; a wrong type in this file fails `npm run typecheck`.

import {
  Buffer,
  dtypes,
  type Element,
  type NestedArray,
  type NumberArray,
  Tensor,
  type TypedArray,
} from "gradloom";
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

test("data() is an array of numbers, or what the variable says", async () => {
  const t = new Tensor([1.5, 2, 4]);
  const values = await t.data();
  expectTypeOf(values).toEqualTypeOf<NumberArray>();
  expectTypeOf(values[0]).toEqualTypeOf<number | undefined>();
  let total = 0;
  for (const x of values) total += x;
  const rows: number[] = values.reduce<number[]>((list, x) => list.concat(x), []);
  const most: number[] = [values.reduce((a, b) => a + b, 0), Math.max(...values), Array.from(values).length];
  const twice: number[] = [...values.map((x) => 2 * x).filter((x) => x > 3)];
  expect([total, rows, most, twice]).toEqual([7.5, [1.5, 2, 4], [7.5, 4, 3], [4, 8]]);
  const floats: Float32Array = await t.data();
  const copy: Float32Array = new Float32Array(values);
  const bigs: BigInt64Array = t.cast("int64").dataSync();
  const sum: bigint = (await t.cast("int64").data<BigInt64Array>()).reduce((a, b) => a + b, 0n);
  const any: TypedArray = values;
  expect([floats, copy, any, bigs, sum]).toEqual([
    values,
    values,
    values,
    new BigInt64Array([1n, 2n, 4n]),
    7n,
  ]);
  // @ts-expect-error: elements are in a typed array
  const wrong: string = await t.data();
  expect(wrong).toEqual(values);
  const buffer = new Buffer("EXT", 1, dtypes.float32).allocate(
    new Uint8Array(new Float32Array([2.5]).buffer),
  );
  expectTypeOf(await buffer.data()).toEqualTypeOf<NumberArray>();
  expect(buffer.dataSync<Float32Array>()).toEqual(new Float32Array([2.5]));
});

test("what is read goes on without casts", async () => {
  const t = new Tensor([[1, 2], [3, 4]]); // biome-ignore format: a matrix
  const [[a, b] = [], [c] = []] = await t.tolist<number[][]>();
  expectTypeOf(a).toEqualTypeOf<number | undefined>();
  const pairs: [number, number][] = await t.tolist();
  const scalar: number = await t.sum().tolist();
  const losses: number[] = [];
  losses.push(await t.sum().item());
  const both: [number, number] = await Promise.all([t.max().item(), t.min().item()]);
  const wide: number | bigint = await t.sum().item();
  if (await t.gt(1).any().item<boolean>()) losses.push(0);
  expect([a, b, c, pairs[1], scalar, losses, both, wide]).toEqual([
    1, 2, 3, [3, 4], 10, [10, 0], [4, 1], 10,
  ]); // biome-ignore format: values
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
