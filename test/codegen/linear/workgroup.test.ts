// Workgroups: threads that share a reduce (GROUPTOP), and axes that groups do not divide, run by JS, which
// executes barriers and exchanges and fails on a race. Results are those of the kernel without any OptOp.

import { ArgumentError, createSchedule, dtypes, Tensor } from "gradloom";
import { CUDARenderer } from "gradloom/render";
import { describe, expect, test } from "vitest";
import type { Kernel } from "../../../src/codegen/kernel.ts";
import { factorOf, type OptOp } from "../../../src/codegen/opt/opts.ts";
import type { Value } from "../../../src/dtype.ts";
import { Device } from "../../../src/runtime/registry.ts";
import { lazyOp, MemBuffer } from "../../../src/schedule/lazyop.ts";
import { ShapeTracker } from "../../../src/shape/shapetracker.ts";
import { expectValues, tensor } from "../../device/harness.ts";
import { registerOracle } from "../../devices/oracle.ts";
import { check, compare, floats, ints, values } from "../gpuchecks.ts";
import { gpuTarget, lastItem, lowered, opsIn, opt, runKernel, trips } from "../kernels.ts";

const { int32, float32, float64 } = dtypes;
await Device.open("JS");

describe("threads share a reduce", () => {
  test("a warp exchanges values, without memory", async () => {
    const kernel = await check(ints([3, 64], 1).sum(1), [opt("GROUPTOP", 1, 32)]);
    expect([kernel.globalSize, kernel.localSize]).toEqual([[3], [32]]);
    expect(opsIn(kernel, "SHFL").map((u) => u.mask)).toEqual([16, 8, 4, 2, 1]);
    expect(opsIn(kernel, "BARRIER")).toEqual([]);
    expect(trips(kernel)).toEqual([2]);
  });
  test("warps meet in shared memory", async () => {
    const kernel = await check(ints([3, 256], 2).max(1), [opt("GROUPTOP", 1, 128)]);
    expect(opsIn(kernel, "SHFL").map((u) => u.mask)).toEqual([16, 8, 4, 2, 1, 2, 1]);
    expect(opsIn(kernel, "DEFINE_LOCAL").map((u) => u.elements)).toEqual([4]);
    expect(opsIn(kernel, "BARRIER")).toHaveLength(1);
  });
  test("without exchange: a tree in shared memory", async () => {
    const kernel = await check(ints([3, 48], 3).sum(1), [opt("GROUPTOP", 1, 24)], 1);
    expect(opsIn(kernel, "SHFL")).toEqual([]);
    expect(opsIn(kernel, "IF")).toHaveLength(5);
    expect(opsIn(kernel, "BARRIER")).toHaveLength(6);
  });
  test("a number of threads that is not a power of two", async () => {
    for (const threads of [3, 5, 6, 12, 20, 24, 48]) {
      await check(ints([2, 240], threads).sum(1), [opt("GROUPTOP", 1, threads)]);
    }
  });
  test("threads that do not share stand beside those that do", async () => {
    for (const warp of [1, 4, 32]) {
      const rows = await check(ints([8, 64], 4).sum(1), [opt("LOCAL", 0, 4), opt("GROUPTOP", 1, 16)], warp);
      expect(rows.localSize, "the row is what lies side by side").toEqual([16, 4]);
      const columns = await check(
        ints([64, 8], 5).sum(0),
        [opt("LOCAL", 0, 4), opt("GROUPTOP", 1, 16)],
        warp,
      );
      expect(columns.localSize, "now the results are").toEqual([4, 16]);
    }
  });
  test("two axes of one reduce", async () => {
    const t = () => ints([6, 3, 8], 6).sum([0, 2]);
    await check(t(), [opt("GROUPTOP", 1, 3), opt("GROUPTOP", 2, 8)]);
    await check(t(), [opt("GROUPTOP", 1, 2), opt("GROUPTOP", 2, 2), opt("UNROLL", 2, 2)], 1);
  });
  test("prod, and 64 bits", async () => {
    await check(ints([4, 8], 7).prod(1), [opt("GROUPTOP", 1, 8)]);
    await check(ints([4, 8], 8).cast(float64).sum(1), [opt("GROUPTOP", 1, 8)], 4, 2);
  });
  test("a product of matrices, its sum shared", async () => {
    const product = ints([6, 16], 9).dot(ints([16, 4], 10));
    await check(product, [
      opt("LOCAL", 0, 2),
      opt("UPCAST", 1, 2),
      opt("GROUPTOP", 2, 4),
      opt("UNROLL", 2, 2),
    ]);
  });
  test("four axes and more stand in three indexes", async () => {
    const windows = () => ints([2, 6, 6, 6], 30).unfold(1, 3, 2).unfold(2, 3, 2).unfold(3, 3, 2);
    const shared = [4, 5, 6].map((axis) => opt("GROUPTOP", axis, 2));
    for (const warp of [1, 32]) {
      const kernel = await check(windows().max([4, 5, 6]), [...shared, opt("LOCAL", 3, 2)], warp);
      expect(kernel.localSize, "the third index has two axes").toEqual([2, 2, 4]);
      await check(
        windows().sum([4, 5, 6]),
        [...shared, opt("LOCAL", 0, 2), opt("LOCAL", 2, 2), opt("LOCAL", 3, 2)],
        warp,
      );
    }
  });
  test("threads of a padded axis belong to it, and share nothing", async () => {
    await check(ints([8, 4], 31).sum(1), [opt("PADTO", 0, 6), opt("LOCAL", 0, 2), opt("GROUPTOP", 1, 2)]);
  });
  test("an array of KEEP has a part for each of them", async () => {
    const softmax = () => floats([8, 6], 32).softmax();
    const close = async (opts: readonly OptOp[]) => check(softmax(), opts, 32, 4);
    // the maximum is shared, the sum is everyone's own
    const shared = await close([opt("GROUPTOP", 2, 2), opt("KEEP", 3, 6)]);
    expect(opsIn(shared, "DEFINE_LOCAL").map((u) => u.elements)).toContain(12);
    await close([opt("LOCAL", 0, 4), opt("KEEP", 3, 6), opt("UPCAST", 1, 2)]);
    // threads beyond the end of the row have nothing to read
    await close([opt("LOCAL", 1, 4), opt("KEEP", 3, 6)]);
  });
  test("inside a loop everyone waits before memory is used again", async () => {
    // the sum of all rows does not depend on the row, so rows are a loop around the sum of
    // one; no schedule makes this kernel
    const shape = [3, 4, 64];
    const item = await lastItem(ints(shape, 11).sum(2));
    const st = ShapeTracker.fromShape(shape);
    const x = lazyOp("LOAD", [], new MemBuffer(1, int32, st), int32, shape);
    const row = lazyOp("SUM", [x], [2], int32, [3, 4, 1]);
    const all = lazyOp("SUM", [x], [1, 2], int32, [3, 1, 1]);
    const seen = ShapeTracker.fromShape([3, 1, 1]).expand([3, 4, 1]);
    const both = lazyOp(
      "ADD",
      [row, lazyOp("VIEW", [all], seen, int32, [3, 4, 1])],
      undefined,
      int32,
      [3, 4, 1],
    );
    const out = new MemBuffer(0, int32, ShapeTracker.fromShape([3, 4, 1]));
    const made = { ...item, ast: [lazyOp("STORE", [both], out, int32, [3, 4, 1])] };
    const want = await runKernel(made, lowered(made));
    for (const warp of [1, 4]) {
      const kernel = lowered(made, [opt("GROUPTOP", 2, 64)], gpuTarget(warp));
      expect(trips(kernel), "the sum of all, then rows").toEqual([256, 4]);
      await compare(made, kernel, want);
    }
  });
});

describe("a softmax is one kernel, a group a row", () => {
  const row = (size: number, lanes: number): OptOp[] =>
    [1, 2, 3].flatMap((axis) => [
      opt(axis === 1 ? "UPCAST" : "UNROLL", axis, lanes),
      opt(axis === 1 ? "LOCAL" : "GROUPTOP", axis, size),
      opt(axis === 1 ? "UPCAST" : "UNROLL", axis, 2),
    ]);
  test("its row is read once, as vectors, and its exponentials are computed once", async () => {
    const kernel = await check(floats([3, 64], 12).softmax(), row(8, 4), 4, 4);
    expect([kernel.globalSize, kernel.localSize, trips(kernel)]).toEqual([[3], [8], []]);
    const memory = opsIn(kernel, "LOAD").filter((u) => u.buffer.op === "DEFINE_GLOBAL");
    expect(memory.map((u) => u.dtype)).toEqual([float32.vec(4), float32.vec(4)]);
    expect(opsIn(kernel, "ALU").filter((u) => u.fn === "EXP2")).toHaveLength(8);
  });
  test("a row that the threads do not divide", async () => {
    const kernel = await check(floats([3, 52], 13).softmax(), row(8, 4), 4, 4);
    expect(opsIn(kernel, "STORE").filter((u) => u.gate !== undefined).length).toBeGreaterThan(0);
    await check(
      floats([3, 13], 14).softmax(),
      row(8, 1).filter((o) => factorOf(o) > 1),
      32,
      4,
    );
  });
  test("threads of the result serve every reduce that does not depend on them", async () => {
    const kernel = await check(
      floats([2, 16], 15).var(1),
      [opt("GROUPTOP", 1, 8), opt("GROUPTOP", 2, 8)],
      4,
      8,
    );
    expect(kernel.localSize).toEqual([8]);
    expect(opsIn(kernel, "DEFINE_LOCAL")).toHaveLength(2);
  });
});

describe("groups wider than what is left", () => {
  test("the threads beyond the end do nothing", async () => {
    const kernel = await check(ints([13], 16).add(1), [opt("LOCAL", 0, 8)]);
    expect([kernel.globalSize, kernel.localSize]).toEqual([[2], [8]]);
    await check(ints([5, 7], 17).T.add(1), [opt("LOCAL", 0, 4), opt("LOCAL", 1, 2)]);
    await check(ints([13], 18).add(1), [opt("LOCAL", 0, 4), opt("UPCAST", 0, 3)]);
    await check(ints([12], 19).add(1), [opt("UPCAST", 0, 4), opt("LOCAL", 0, 2)]);
  });
  test("of a reduce they add nothing: 0 to a sum, the least to a max, 1 to a product", async () => {
    for (const threads of [2, 4, 8]) {
      const list = [opt("GROUPTOP", 1, threads), opt("UNROLL", 1, 2)];
      await check(ints([3, 11], 20).sum(1), list);
      await check(ints([3, 11], 21).sub(20).max(1), list);
      await check(ints([3, 11], 22).prod(1), list);
    }
  });
  test("no memory beyond the end is touched", async () => {
    // reading outside fails on JS
    await check(ints([7, 9], 23).dot(ints([9, 5], 24)), [
      opt("LOCAL", 0, 4),
      opt("LOCAL", 1, 4),
      opt("GROUPTOP", 2, 4),
    ]);
  });
  test("more threads than there are elements, and groups that are too wide", async () => {
    const item = await lastItem(ints([7], 25).add(1));
    expect(() => lowered(item, [opt("LOCAL", 0, 8)], gpuTarget(32))).toThrow(ArgumentError);
    const wide = await lastItem(ints([64, 64], 26).T.add(ints([64, 64], 27)));
    expect(() => lowered(wide, [opt("LOCAL", 0, 32), opt("LOCAL", 1, 64)], gpuTarget(32))).toThrow(
      "2048 threads",
    );
  });
});

describe("refused", () => {
  test("GROUPTOP where there are no workgroups, or on an output axis", async () => {
    const item = await lastItem(ints([4, 8], 28).sum(1));
    expect(() => lowered(item, [opt("GROUPTOP", 1, 4)])).toThrow(
      /GROUPTOP\(1, threads=4\): JS does not have it; expected one of UPCAST, UNROLL, GROUP/,
    );
    const without = { ...gpuTarget(32), grid: undefined };
    expect(() => lowered(item, [opt("GROUPTOP", 1, 4)], without)).toThrow(/no.* workgroups.*use GROUP/);
    expect(() => lowered(item, [opt("GROUPTOP", 0, 2)], gpuTarget(32))).toThrow(ArgumentError);
  });
  test("NOLOCALS and a workgroup", async () => {
    const item = await lastItem(ints([4, 8], 29).sum(1));
    expect(() => lowered(item, [opt("NOLOCALS"), opt("LOCAL", 0, 2)], gpuTarget(32))).toThrow("NOLOCALS");
    await check(ints([4, 8], 29).sum(1), [opt("NOLOCALS"), opt("UNROLL", 1, 2)]);
  });
});

describe("a result that takes the place of what it is made of", () => {
  const GPU = registerOracle("GPUPLACE", CUDARenderer);
  test("is stored by one of the threads that share its sum: the others may not have read yet", async () => {
    for (const [rows, columns] of [
      [4096, 1],
      [1024, 6],
      [64, 3],
    ] as const) {
      const step = async (device: string): Promise<Value[]> => {
        const on = (shape: readonly number[], seed: number): Tensor =>
          tensor(device, float32, values(shape, seed), shape).contiguous();
        const [x, mean, square] = [on([rows, columns], 1), on([1, columns], 2), on([1, columns], 3)];
        await Tensor.realize(x, mean, square);
        const sum = x.sum(0, true);
        mean.assign(mean.mul(0.5).add(sum));
        square.assign(square.mul(0.5).add(sum.mul(sum)));
        const all = [mean, square, mean.add(square), sum];
        const kernels = createSchedule(all.map((t) => t.lazydata)).filter((i) => i.ast[0]?.op === "STORE");
        expect(kernels, "all of it at once").toHaveLength(1);
        await Tensor.realize(...all);
        return (await Promise.all(all.map(async (t) => Array.from<Value>(await t.data())))).flat();
      };
      expectValues(float32, await step(GPU), await step("JS"), `${rows} ${columns}`, { zeros: "equal" });
    }
  });
  test("a sum that nothing of the kind is read for is stored by all: no condition", async () => {
    const shared = [opt("GROUPTOP", 1, 32)];
    const gated = (k: Kernel): boolean[] => opsIn(k, "STORE").map((u) => u.gate !== undefined);
    expect(gated(await check(ints([3, 64], 1).sum(1), shared))).toEqual([false]);
    expect(
      gated(
        await check(
          ints([3, 64], 1)
            .sum(1)
            .add(ints([3], 2)),
          shared,
        ),
      ),
    ).toEqual([true]);
    const besides = await check(
      ints([4, 64], 1)
        .sum(1)
        .add(ints([4], 2)),
      [opt("LOCAL", 0, 4), ...shared],
    );
    expect(gated(besides)).toEqual([true]);
  });
});
