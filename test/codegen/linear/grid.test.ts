// Lowering for a target that runs a grid: which axes become gidx and lidx, what happens to more than three of
// them, and that a fused reduce keeps the axes it does not depend on as loops. The lists are checked, and run
// with the grid as loops around them.

import { dtypes, type Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import type { Kernel } from "../../../src/codegen/kernel.ts";
import type { OptOp } from "../../../src/codegen/opt/opts.ts";
import type { DType, Value } from "../../../src/dtype.ts";
import { Device } from "../../../src/runtime/registry.ts";
import { expectValues, tensor } from "../../device/harness.ts";
import { Random } from "../../shape/random.ts";
import { gridAsLoops, gridTarget, lastItem, lowered, opsIn, opt, runKernel, trips } from "../kernels.ts";

const { int32, float32 } = dtypes;
await Device.open("JS");

const ints = (shape: readonly number[], seed: number): Tensor => {
  const random = new Random(seed);
  const values: Value[] = Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => random.int(-9, 9));
  return tensor("JS", int32, values, shape);
};
/** name -> size of every index of the grid, in the order of the list */
const grid = (kernel: Kernel): Record<string, number> =>
  Object.fromEntries(
    opsIn(kernel, "SPECIAL").map((u) => [
      (u.arg as [number, string, number])[1],
      (u.arg as [number, string, number])[2],
    ]),
  );

/** Lowers for the grid, runs it, compares with what JS's own loops give. */
async function check(
  t: Tensor,
  opts: readonly OptOp[] = [],
  ulps = 0,
  target = gridTarget(),
): Promise<Kernel> {
  const item = await lastItem(t);
  const kernel = lowered(item, opts, target);
  const [got, want] = [await runKernel(item, gridAsLoops(kernel)), await runKernel(item, lowered(item))];
  expectValues(item.outputs[0]?.dtype as DType, got, want, kernel.name, ulps > 0 ? { ulps } : {});
  for (const u of opsIn(kernel, "SPECIAL")) {
    const [dim, name, size] = u.arg as [number, string, number];
    const sizes = name.startsWith("g") ? kernel.globalSize : kernel.localSize;
    expect(sizes[dim], name).toBe(size);
  }
  return kernel;
}

describe("the grid", () => {
  test("an axis is gidx0, and there is no loop", async () => {
    const kernel = await check(ints([24], 1).add(1));
    expect(grid(kernel)).toEqual({ gidx0: 24 });
    expect(trips(kernel)).toEqual([]);
    expect([kernel.globalSize, kernel.localSize]).toEqual([[24], []]);
  });
  test("the innermost axis comes first", async () => {
    const kernel = await check(ints([4, 6], 2).T.add(ints([6, 4], 3)));
    expect(grid(kernel)).toEqual({ gidx0: 4, gidx1: 6 });
    expect(kernel.globalSize).toEqual([4, 6]);
    const three = await check(ints([2, 3, 4], 4).permute(2, 1, 0).mul(2));
    expect(three.globalSize).toEqual([2, 3, 4]);
  });
  test("one element needs no grid", async () => {
    const kernel = await check(ints([1], 5).add(1));
    expect(kernel.globalSize).toEqual([]);
    expect(opsIn(kernel, "SPECIAL")).toEqual([]);
  });
  test("more than three axes: the outer ones share gidx2 and are taken apart", async () => {
    const four = await check(ints([2, 3, 4, 5], 6).permute(3, 2, 1, 0).add(1));
    expect(four.globalSize).toEqual([2, 3, 20]);
    expect(grid(four)).toEqual({ gidx0: 2, gidx1: 3, gidx2: 20 });
    const five = await check(ints([2, 3, 2, 3, 2], 7).permute(4, 3, 2, 1, 0).mul(3));
    expect(five.globalSize).toEqual([2, 3, 12]);
    const six = await check(ints([2, 2, 2, 2, 2, 2], 8).permute(5, 4, 3, 2, 1, 0).neg());
    expect(six.globalSize).toEqual([2, 2, 16]);
  });
  test("a dimension that is longer than the device's: all axes share the first", async () => {
    const target = { ...gridTarget(), globalMax: [1000, 4, 4], localMax: [64, 4, 2] };
    const turned = ints([2, 5, 3], 16).permute(2, 1, 0).add(1);
    const long = await check(turned, [], 0, target);
    expect(long.globalSize).toEqual([30]);
    expect(grid(long)).toEqual({ gidx0: 30 });
    expect((await check(ints([2, 4, 3], 17).permute(2, 1, 0).add(1), [], 0, target)).globalSize).toEqual([
      2, 4, 3,
    ]);
    const local = [opt("LOCAL", 0, 3), opt("LOCAL", 1, 5), opt("LOCAL", 2, 2)];
    expect((await check(turned, local, 0, target)).localSize).toEqual([30]);
    const wide = { ...target, localMax: [16, 4, 2] };
    await expect(check(turned, local, 0, wide)).rejects.toThrow(
      /workgroups of 30 threads; GRID takes up to 16/,
    );
  });
  test("a reduce is a loop in every thread", async () => {
    const kernel = await check(ints([4, 6], 9).sum(1));
    expect(grid(kernel)).toEqual({ gidx0: 4 });
    expect(trips(kernel)).toEqual([6]);
    const matmul = await check(ints([8, 12], 10).dot(ints([12, 6], 11)));
    expect(matmul.globalSize).toEqual([6, 8]);
    expect(trips(matmul)).toEqual([12]);
    const all = await check(ints([5, 7], 12).max());
    expect([all.globalSize, trips(all)]).toEqual([[], [35]]);
  });
  test("padded reads", async () => {
    const kernel = await check(
      ints([3, 4], 13)
        .pad([
          [1, 1],
          [2, 0],
        ])
        .add(5),
    );
    expect(kernel.globalSize).toEqual([6, 5]);
  });
});

describe("work groups", () => {
  test("LOCAL splits an axis into workgroups and threads", async () => {
    const kernel = await check(ints([24], 14).add(1), [opt("LOCAL", 0, 8)]);
    expect(grid(kernel)).toEqual({ gidx0: 3, lidx0: 8 });
    expect([kernel.globalSize, kernel.localSize]).toEqual([[3], [8]]);
  });
  test("a matmul in tiles", async () => {
    const product = () => ints([8, 12], 15).dot(ints([12, 6], 16));
    const kernel = await check(product(), [opt("LOCAL", 0, 4), opt("LOCAL", 1, 3)]);
    expect([kernel.globalSize, kernel.localSize]).toEqual([
      [2, 2],
      [3, 4],
    ]);
    const mixed = await check(product(), [
      opt("LOCAL", 0, 2),
      opt("UPCAST", 0, 2),
      opt("UPCAST", 1, 3),
      opt("UNROLL", 2, 4),
    ]);
    expect([mixed.globalSize, mixed.localSize, trips(mixed)]).toEqual([[2, 2], [2], [3]]);
    expect(opsIn(mixed, "STORE")).toHaveLength(6);
    const swapped = await check(product(), [opt("SWAP", 0, 1)]);
    expect(swapped.globalSize).toEqual([8, 6]);
  });
  test("an axis that is one group has no gidx", async () => {
    const kernel = await check(ints([4, 6], 17).T.add(ints([6, 4], 18)), [opt("LOCAL", 1, 4)]);
    expect(grid(kernel)).toEqual({ gidx0: 6, lidx0: 4 });
  });
  test("four local axes share the third", async () => {
    const t = ints([2, 3, 4, 5], 19).permute(3, 2, 1, 0).add(1);
    const kernel = await check(t, [
      opt("LOCAL", 0, 5),
      opt("LOCAL", 1, 2),
      opt("LOCAL", 2, 3),
      opt("LOCAL", 3, 2),
    ]);
    // the axes that lie side by side in memory come first: one for what is written, one for what is read
    expect(kernel.localSize).toEqual([2, 5, 6]);
    expect(kernel.globalSize).toEqual([2]);
  });
});

describe("fused reduces", () => {
  const floats = (shape: readonly number[], seed: number) => ints(shape, seed).cast(float32);
  test("softmax: a thread a row, its columns a loop", async () => {
    const kernel = await check(floats([4, 6], 20).softmax(), [], 2);
    expect(grid(kernel)).toEqual({ gidx0: 4 });
    // max, sum, and the columns that are stored
    expect(trips(kernel)).toEqual([6, 6, 6]);
  });
  test("softmax over the first axis: the other one is the grid", async () => {
    const kernel = await check(floats([4, 6], 21).softmax(0), [], 2);
    expect(kernel.globalSize).toEqual([6]);
    expect(trips(kernel)).toEqual([4, 4, 4]);
  });
  test("layer normalisation without weights", async () => {
    const x = floats([3, 8], 22);
    const normal = x.sub(x.mean(1, true)).mul(x.var(1, true, 0).add(1e-5).rsqrt());
    const kernel = await check(normal, [], 8);
    expect(kernel.globalSize).toEqual([3]);
    expect(trips(kernel).every((n) => n === 8)).toBe(true);
  });
  test("a variance is a thread a row", async () => {
    const kernel = await check(floats([5, 8], 23).var(1), [], 4);
    expect(kernel.globalSize).toEqual([5]);
    expect(trips(kernel)).toEqual([8, 8]);
  });
  test("a batch and heads stay in the grid", async () => {
    const kernel = await check(floats([2, 3, 4, 5], 24).permute(1, 0, 2, 3).softmax(), [], 2);
    expect(kernel.globalSize.reduce<number>((a, b) => a * Number(b), 1)).toBe(24);
    expect(trips(kernel)).toEqual([5, 5, 5]);
  });
  test("UPCAST of the loop that is left", async () => {
    const kernel = await check(floats([4, 6], 25).softmax(), [opt("UPCAST", 1, 3)], 2);
    expect(opsIn(kernel, "STORE")).toHaveLength(3);
    expect(kernel.globalSize).toEqual([4]);
  });
});
