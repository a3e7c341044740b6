// Workgroups: items that share a reduce (GROUPTOP), axes that groups do not divide, vectors in memory, and
// what the heuristic for GPUs makes of kernels, all run by JS, which executes barriers and exchanges and
// fails on a race. Results are those of the kernel without any OptOp.

import { ArgumentError, createSchedule, dtypes, runSchedule, Tensor } from "gradloom";
import { CUDARenderer } from "gradloom/render";
import { describe, expect, test } from "vitest";
import { type Kernel, toFastKernel } from "../../../src/codegen/kernel.ts";
import { factorOf, type OptOp, showOpts } from "../../../src/codegen/opt/opts.ts";
import type { DType, Value } from "../../../src/dtype.ts";
import { Device } from "../../../src/runtime/registry.ts";
import { lazyOp, MemBuffer } from "../../../src/schedule/lazyop.ts";
import type { ScheduleItem } from "../../../src/schedule/schedule.ts";
import { ShapeTracker } from "../../../src/shape/shapetracker.ts";
import { expectValues, tensor } from "../../device/harness.ts";
import { makeProgram } from "../../device/program.ts";
import { registerOracle } from "../../devices/oracle.ts";
import { Random } from "../../shape/random.ts";
import { gpuTarget, lastItem, lowered, opsIn, opt, runKernel, trips } from "../kernels.ts";

const { int32, float32, float64 } = dtypes;
await Device.open("JS");

const values = (shape: readonly number[], seed: number): Value[] => {
  const random = new Random(seed);
  return Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => random.int(-9, 9));
};
const ints = (shape: readonly number[], seed: number): Tensor =>
  tensor("JS", int32, values(shape, seed), shape);
const floats = (shape: readonly number[], seed: number): Tensor =>
  tensor("JS", float32, values(shape, seed), shape);

async function compare(item: ScheduleItem, kernel: Kernel, want: readonly Value[], ulps = 0): Promise<void> {
  const type = item.outputs[0]?.dtype as DType;
  const what = `${kernel.name} with ${showOpts(kernel.opts)}`;
  expectValues(
    type,
    await runKernel(item, kernel),
    [...want],
    what,
    ulps > 0 ? { ulps } : { zeros: "equal" },
  );
}
/** Lowers for a GPU, runs it, compares with what JS's own loops give. */
async function check(t: Tensor, opts: readonly OptOp[], warp = 32, ulps = 0): Promise<Kernel> {
  const item = await lastItem(t);
  const kernel = lowered(item, opts, gpuTarget(warp));
  await compare(item, kernel, await runKernel(item, lowered(item)), ulps);
  return kernel;
}

describe("items share a reduce", () => {
  test("a warp exchanges values, without memory", async () => {
    const kernel = await check(ints([3, 64], 1).sum(1), [opt("GROUPTOP", 1, 32)]);
    expect([kernel.globalSize, kernel.localSize]).toEqual([[3], [32]]);
    expect(opsIn(kernel, "SHFL").map((u) => u.arg)).toEqual([16, 8, 4, 2, 1]);
    expect(opsIn(kernel, "BARRIER")).toEqual([]);
    expect(trips(kernel)).toEqual([2]);
  });
  test("warps meet in shared memory", async () => {
    const kernel = await check(ints([3, 256], 2).max(1), [opt("GROUPTOP", 1, 128)]);
    expect(opsIn(kernel, "SHFL").map((u) => u.arg)).toEqual([16, 8, 4, 2, 1, 2, 1]);
    expect(opsIn(kernel, "DEFINE_LOCAL").map((u) => (u.arg as [string, number])[1])).toEqual([4]);
    expect(opsIn(kernel, "BARRIER")).toHaveLength(1);
  });
  test("without exchange: a tree in shared memory", async () => {
    const kernel = await check(ints([3, 48], 3).sum(1), [opt("GROUPTOP", 1, 24)], 1);
    expect(opsIn(kernel, "SHFL")).toEqual([]);
    expect(opsIn(kernel, "IF")).toHaveLength(5);
    expect(opsIn(kernel, "BARRIER")).toHaveLength(6);
  });
  test("a number of items that is not a power of two", async () => {
    for (const items of [3, 5, 6, 12, 20, 24, 48]) {
      await check(ints([2, 240], items).sum(1), [opt("GROUPTOP", 1, items)]);
    }
  });
  test("items that do not share stand beside those that do", async () => {
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
  test("items of a padded axis belong to it, and share nothing", async () => {
    await check(ints([8, 4], 31).sum(1), [opt("PADTO", 0, 6), opt("LOCAL", 0, 2), opt("GROUPTOP", 1, 2)]);
  });
  test("an array of KEEP has a part for each of them", async () => {
    const softmax = () => floats([8, 6], 32).softmax();
    const close = async (opts: readonly OptOp[]) => check(softmax(), opts, 32, 4);
    // the maximum is shared, the sum is everyone's own
    const shared = await close([opt("GROUPTOP", 2, 2), opt("KEEP", 3, 6)]);
    expect(opsIn(shared, "DEFINE_LOCAL").map((u) => (u.arg as [string, number])[1])).toContain(12);
    await close([opt("LOCAL", 0, 4), opt("KEEP", 3, 6), opt("UPCAST", 1, 2)]);
    // items beyond the end of the row have nothing to read
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
    const memory = opsIn(kernel, "LOAD").filter((u) => u.srcs[0]?.op === "DEFINE_GLOBAL");
    expect(memory.map((u) => u.dtype)).toEqual([float32.vec(4), float32.vec(4)]);
    expect(opsIn(kernel, "ALU").filter((u) => u.arg === "EXP2")).toHaveLength(8);
  });
  test("a row that the items do not divide", async () => {
    const kernel = await check(floats([3, 52], 13).softmax(), row(8, 4), 4, 4);
    expect(opsIn(kernel, "STORE").filter((u) => u.srcs[3] !== undefined).length).toBeGreaterThan(0);
    await check(
      floats([3, 13], 14).softmax(),
      row(8, 1).filter((o) => factorOf(o) > 1),
      32,
      4,
    );
  });
  test("items of the result serve every reduce that does not depend on them", async () => {
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
  test("the items beyond the end do nothing", async () => {
    const kernel = await check(ints([13], 16).add(1), [opt("LOCAL", 0, 8)]);
    expect([kernel.globalSize, kernel.localSize]).toEqual([[2], [8]]);
    await check(ints([5, 7], 17).T.add(1), [opt("LOCAL", 0, 4), opt("LOCAL", 1, 2)]);
    await check(ints([13], 18).add(1), [opt("LOCAL", 0, 4), opt("UPCAST", 0, 3)]);
    await check(ints([12], 19).add(1), [opt("UPCAST", 0, 4), opt("LOCAL", 0, 2)]);
  });
  test("of a reduce they add nothing: 0 to a sum, the least to a max, 1 to a product", async () => {
    for (const items of [2, 4, 8]) {
      const list = [opt("GROUPTOP", 1, items), opt("UNROLL", 1, 2)];
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
  test("more items than there are elements, and groups that are too wide", async () => {
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
    const without = { ...gpuTarget(32), hasLocal: false };
    expect(() => lowered(item, [opt("GROUPTOP", 1, 4)], without)).toThrow(/no.* workgroups.*use GROUP/);
    expect(() => lowered(item, [opt("GROUPTOP", 0, 2)], gpuTarget(32))).toThrow(ArgumentError);
  });
  test("NOLOCALS and a workgroup", async () => {
    const item = await lastItem(ints([4, 8], 29).sum(1));
    expect(() => lowered(item, [opt("NOLOCALS"), opt("LOCAL", 0, 2)], gpuTarget(32))).toThrow("NOLOCALS");
    await check(ints([4, 8], 29).sum(1), [opt("NOLOCALS"), opt("UNROLL", 1, 2)]);
  });
});

describe("vectors in memory", () => {
  const types = (kernel: Kernel, op: "LOAD" | "STORE") =>
    opsIn(kernel, op).map((u) => ((op === "STORE" ? u.srcs[2] : u) as { dtype: unknown }).dtype);
  test("neighbours are one load and one store", async () => {
    const kernel = await check(ints([32], 30).add(ints([32], 31)), [opt("UPCAST", 0, 8)]);
    const four = int32.vec(4);
    expect([types(kernel, "LOAD"), types(kernel, "STORE")]).toEqual([
      [four, four, four, four],
      [four, four],
    ]);
  });
  test("16 bytes of narrower types, 8 elements of 64 bits are four", async () => {
    const half = await check(ints([32], 32).cast("int16").contiguous().add(1), [opt("UPCAST", 0, 8)]);
    expect(types(half, "LOAD")).toEqual([dtypes.int16.vec(8)]);
    const long = await check(ints([32], 33).cast("int64").contiguous().add(1), [opt("UPCAST", 0, 8)]);
    expect(types(long, "LOAD")).toEqual(new Array(4).fill(dtypes.int64.vec(2)));
  });
  test("not where a row starts anywhere", async () => {
    const kernel = await check(
      ints([4, 9], 34)
        .shrink([null, [0, 8]])
        .add(1),
      [opt("UPCAST", 1, 4)],
    );
    expect(new Set(types(kernel, "LOAD"))).toEqual(new Set([int32]));
    expect(new Set(types(kernel, "STORE"))).toEqual(new Set([int32.vec(4)]));
  });
  test("a padded read is a vector where it is one condition", async () => {
    const kernel = await check(
      ints([4, 8], 35)
        .pad([[1, 1], null])
        .add(1),
      [opt("UPCAST", 1, 4)],
    );
    expect(types(kernel, "LOAD")).toEqual([int32.vec(4)]);
  });
});

describe("the heuristic", () => {
  const CASES: Readonly<Record<string, [() => Tensor, ulps?: number]>> = {
    "two vectors": [() => ints([4096], 40).mul(ints([4096], 41))],
    "a size that nothing divides": [() => ints([1009], 42).add(3)],
    "a transposed copy": [() => ints([40, 24], 43).T.add(1)],
    "five axes": [() => ints([2, 3, 4, 3, 5], 44).permute(4, 2, 0, 3, 1).add(1)],
    "a full sum": [() => ints([3000], 45).sum()],
    "a sum of rows": [() => ints([6, 500], 46).sum(1)],
    "a sum of columns": [() => ints([500, 6], 47).sum(0)],
    "a sum of short rows": [() => ints([300, 4], 48).sum(1)],
    channels: [() => ints([8, 4, 5, 5], 49).sum([0, 2, 3])],
    "a matmul": [() => ints([32, 24], 50).dot(ints([24, 40], 51))],
    "a matmul of odd sizes": [() => ints([13, 7], 52).dot(ints([7, 11], 53))],
    "a matrix and a vector": [() => ints([40, 64], 54).dot(ints([64], 55))],
    "a batch of products": [() => ints([3, 8, 8], 56).dot(ints([3, 8, 8], 57))],
    "a convolution": [() => ints([2, 3, 8, 8], 58).conv2d(ints([4, 3, 3, 3], 59), undefined, { padding: 1 })],
    "the gradient of a convolution's weights": [
      () => {
        const w = floats([4, 2, 3, 3], 71);
        w.requiresGrad = true;
        const y = floats([40, 2, 8, 8], 72).conv2d(w);
        y.backward(floats(y.shape as number[], 73));
        return w.grad as Tensor;
      },
    ],
    "a pooling": [() => ints([2, 3, 8, 8], 60).maxPool2d([2, 2])],
    "a softmax": [() => floats([5, 64], 61).softmax(), 6],
    "a softmax of odd rows": [() => floats([5, 77], 62).softmax(), 8],
    "a softmax of columns": [() => floats([16, 12], 63).softmax(0), 4],
    "a layer norm": [
      () => floats([4, 96], 64).layerNorm([96], { weight: floats([96], 65), bias: floats([96], 66) }),
      16,
    ],
    "a variance": [() => floats([4, 100], 67).var(1), 8],
    "a cumulative sum": [() => ints([4, 20], 68).cumsum(1)],
    "half precision": [() => ints([64], 69).cast("float16").contiguous().mul(2)],
    "one element": [() => ints([1], 70).add(1)],
  };
  test.each(Object.entries(CASES))("%s", async (_, [make, ulps]) => {
    const item = await lastItem(make());
    const want = await runKernel(item, lowered(item));
    for (const warp of [1, 32])
      await compare(item, toFastKernel(item.ast, gpuTarget(warp), false), want, ulps);
  });
});

describe("random kernels", () => {
  const guess = (r: Random, name: string): OptOp[] => {
    const sizes = name.replace(/n\d+$/, "").split("_").slice(1).map(Number);
    return Array.from({ length: r.int(1, 4) }, () =>
      opt(
        r.pick(["LOCAL", "LOCAL", "GROUPTOP", "GROUPTOP", "GROUPTOP", "UPCAST", "UNROLL", "GROUP", "SWAP"]),
        r.int(0, sizes.length - 1),
        r.pick([2, 2, 3, 4, 4, 5, 8]),
      ),
    );
  };
  test("lists of the heuristic, and lists that somebody made up", async () => {
    let [ran, shared] = [0, 0];
    for (let seed = 1; seed <= 300; seed++) {
      const program = await makeProgram(seed + 9000, "JS", 5 + (seed % 16));
      const r = new Random(seed);
      const target = gpuTarget(r.pick([1, 2, 4, 32]));
      for (const item of createSchedule([(program.nodes.at(-1) as { t: Tensor }).t.lazydata])) {
        if (item.ast[0]?.op === "STORE" && item.outputs[0]?.size !== 0) {
          const plain = lowered(item);
          const want = await runKernel(item, plain);
          const kernels = [toFastKernel(item.ast, target, false)];
          for (let k = 0; k < 10; k++) {
            try {
              kernels.push(lowered(item, guess(r, plain.name), target));
            } catch (e) {
              if (!(e instanceof ArgumentError)) throw e;
            }
          }
          for (const kernel of kernels) {
            ran++;
            if (kernel.opts.some((o) => o.op === "GROUPTOP")) shared++;
            const type = item.outputs[0]?.dtype ?? float32;
            const what = `seed ${seed} ${program.text()}${kernel.name} with ${showOpts(kernel.opts)}`;
            expectValues(type, await runKernel(item, kernel), want, what, { zeros: "equal" });
          }
        }
        await runSchedule([item]);
      }
    }
    expect([ran > 400, shared > 40]).toEqual([true, true]);
  });
});

describe("a result that takes the place of what it is made of", () => {
  const GPU = registerOracle("GPUPLACE", CUDARenderer);
  test("is stored by one of the items that share its sum: the others may not have read yet", async () => {
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
    const gated = (k: Kernel): boolean[] => opsIn(k, "STORE").map((u) => u.srcs.length === 4);
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
