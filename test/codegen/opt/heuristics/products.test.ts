// Blocks of a product of matrices come from the figures of the GPU: what registers and shared memory hold,
// ranked by what moving operands costs. On the H200 the block is the one that was measured to be fastest; on
// a smaller GPU it is smaller and still fits.

import { createSchedule, Tensor } from "gradloom";
import { CUDARenderer } from "gradloom/render";
import { describe, expect, test } from "vitest";
import { prepare, toFastKernel } from "../../../../src/codegen/kernel.ts";
import { chooseLists } from "../../../../src/codegen/opt/heuristics/index.ts";
import { productLists } from "../../../../src/codegen/opt/heuristics/products.ts";
import { factorsOf, type OptOp, showOpts } from "../../../../src/codegen/opt/opts.ts";
import type { Gpu, Renderer } from "../../../../src/codegen/target.ts";
import { nvidiaGpu } from "../../../../src/render/nvidia.ts";
import { Device } from "../../../../src/runtime/registry.ts";
import type { LazyOp } from "../../../../src/schedule/lazyop.ts";
import { Random } from "../../../shape/random.ts";

await Device.open("JS");

type Sides = readonly [m: number, k: number, n: number];
type Type = "float32" | "bfloat16" | "float16";
const astOf = (t: Tensor): readonly LazyOp[] => createSchedule([t.lazydata]).at(-1)?.ast ?? [];
const empty = (shape: readonly number[], dtype: Type): Tensor =>
  Tensor.empty([...shape], { device: "JS", dtype });
const product = ([m, k, n]: Sides, type: Type): Tensor => empty([m, k], type).matmul(empty([k, n], type));

const h200 = { ...CUDARenderer, sharedMax: 227 * 1024, gpu: nvidiaGpu(90, { computeUnits: 132 }) };
/**
 * A GPU that nobody measured: a quarter of the compute units, half of the registers and threads, little
 * shared memory.
 */
const small = {
  ...CUDARenderer,
  sharedMax: 48 * 1024,
  gpu: {
    ...nvidiaGpu(86, {
      computeUnits: 16,
      registersPerUnit: 32768,
      threadsPerUnit: 1024,
      sharedPerUnit: 48 * 1024,
    }),
    workgroupsPerUnit: 16,
  },
};
const listsFor = (t: Tensor, target: Renderer & { gpu: Gpu }): OptOp[][] =>
  productLists(prepare(astOf(t), [], target), target, target.gpu);

/** The result of a workgroup: [rows, columns] of axes 0 and 1. */
const blockOf = (list: readonly OptOp[], core: readonly number[]): number[] =>
  [0, 1].map(
    (axis) => factorsOf(list, "UPCAST", [axis]) * factorsOf(list, "LOCAL", [axis]) * (core[axis] ?? 1),
  );
const usesTensorCores = (list: readonly OptOp[]): boolean => list.some((o) => o.op === "TC");
const stagesOf = (list: readonly OptOp[]): number => list.find((o) => o.op === "SHARED")?.stages ?? 0;
const threadsOf = (list: readonly OptOp[], { warp }: Gpu): number =>
  factorsOf(list, "LOCAL") * (usesTensorCores(list) ? warp : 1);

describe("on an H200", () => {
  test("tensor cores: the largest block that leaves few compute units idle", () => {
    const best = (side: number) =>
      blockOf(listsFor(product([side, side, side], "bfloat16"), h200)[0] ?? [], [16, 8]);
    expect(best(4096)).toEqual([128, 256]);
    expect(best(2048)).toEqual([128, 256]);
    expect(best(1536)).toEqual([128, 128]);
    expect(best(1024)).toEqual([128, 64]);
  });
  test("a workgroup that is alone on its compute unit fetches further ahead", () => {
    const stages = (side: number) =>
      stagesOf(listsFor(product([side, side, side], "bfloat16"), h200)[0] ?? []);
    expect(stages(4096)).toBe(4);
    expect(stages(1024)).toBe(3);
  });
  test("float32: square tiles of as many results as two workgroups have registers for", () => {
    const [list = []] = listsFor(product([2048, 512, 2048], "float32"), h200);
    expect(list).toEqual([
      { op: "UPCAST", axis: 0, lanes: 8 },
      { op: "LOCAL", axis: 0, threads: 16 },
      { op: "UPCAST", axis: 1, lanes: 4 },
      { op: "LOCAL", axis: 1, threads: 16 },
      { op: "UPCAST", axis: 1, lanes: 2 },
      { op: "UNROLL", axis: 2, factor: 8 },
      { op: "SHARED", axis: 2, stages: 4 },
    ]);
  });
  test("where blocks that are square do not divide the result, long ones do", () => {
    const [list = []] = listsFor(product([64, 512, 65536], "bfloat16"), h200);
    const [m = 0, n = 0] = blockOf(list, [16, 8]);
    expect(m).toBe(64);
    expect(n).toBeGreaterThan(128);
  });
  test("fewer results than compute units: the smallest block", () => {
    const [list = []] = listsFor(product([32, 512, 64], "bfloat16"), h200);
    expect(blockOf(list, [16, 8])).toEqual([16, 8]);
  });
});

describe("limits of the target", () => {
  const bytesOf = (
    list: readonly OptOp[],
    core: readonly [number, number, number],
    itemsize: number,
  ): number => {
    const [m = 0, n = 0] = blockOf(list, core);
    return stagesOf(list) * factorsOf(list, "UNROLL") * core[2] * (m + n) * itemsize;
  };
  test("with less shared memory: smaller blocks, or fewer stages, and none that cannot fit", () => {
    const t = product([4096, 4096, 4096], "bfloat16");
    const fitting = (sharedMax: number) => listsFor(t, { ...h200, sharedMax }).filter(usesTensorCores);
    for (const sharedMax of [227, 100, 48, 16].map((k) => k * 1024)) {
      for (const list of fitting(sharedMax))
        expect(bytesOf(list, [16, 8, 16], 2)).toBeLessThanOrEqual(sharedMax);
    }
    const first = (sharedMax: number) => bytesOf(fitting(sharedMax)[0] ?? [], [16, 8, 16], 2);
    expect(first(227 * 1024)).toBeGreaterThan(100 * 1024);
    expect(first(48 * 1024)).toBeGreaterThan(0);
  });
  test("with fewer registers: smaller tiles", () => {
    const t = product([4096, 4096, 4096], "float32");
    const results = (registersPerUnit: number): number => {
      const gpu = { ...h200.gpu, registersPerUnit };
      const [list = []] = listsFor(t, { ...h200, gpu });
      return factorsOf(list, "UPCAST");
    };
    expect(results(65536)).toBe(64);
    expect(results(32768)).toBe(16);
  });
  test("a GPU without asynchronous copies or tensor cores multiplies by threads, in two stages", () => {
    const gpu = nvidiaGpu(75, { computeUnits: 40 });
    const lists = listsFor(product([1024, 1024, 1024], "bfloat16"), { ...h200, gpu });
    expect(lists.length).toBeGreaterThan(0);
    expect(lists.filter(usesTensorCores)).toEqual([]);
    expect(new Set(lists.map(stagesOf))).toEqual(new Set([2]));
  });
});

describe("on a smaller GPU", () => {
  test("the first list fits: registers, threads and shared memory of a workgroup", () => {
    for (const side of [256, 1024, 4096]) {
      for (const type of ["bfloat16", "float32"] as const) {
        const [list = []] = listsFor(product([side, side, side], type), small);
        expect(threadsOf(list, small.gpu), showOpts(list)).toBeLessThanOrEqual(small.gpu.threadsPerUnit);
        // a result of a tensor core is 16 x 8 numbers for 32 threads
        const accumulators = factorsOf(list, "UPCAST") * (usesTensorCores(list) ? 4 : 1);
        expect(accumulators * threadsOf(list, small.gpu)).toBeLessThan(small.gpu.registersPerUnit);
        expect(stagesOf(list), showOpts(list)).toBeGreaterThan(1);
      }
    }
  });
  test("random works: what is chosen is lowered, and no list is needed twice", () => {
    const r = new Random(12);
    const sides = [16, 24, 48, 64, 96, 128, 192, 256, 384];
    for (let i = 0; i < 24; i++) {
      const type = r.pick(["float32", "bfloat16", "float16"] as const);
      const t = product([r.pick(sides), r.pick(sides), r.pick(sides)], type);
      const kernel = toFastKernel(astOf(t), small, false);
      const threads = kernel.localSize.reduce((a, b) => a * b, 1);
      expect(threads, showOpts(kernel.opts)).toBeLessThanOrEqual(1024);
      const lists = [...chooseLists(prepare(astOf(t), [], small), small, false)].map((l) => showOpts(l));
      expect(new Set(lists).size, lists.join("\n")).toBe(lists.length);
    }
  });
  test("convolutions and reductions are lowered too", () => {
    const x = empty([16, 16, 20, 20], "float32");
    const works = [
      x.conv2d(empty([32, 16, 5, 5], "float32")),
      x.conv2d(empty([16, 16, 3, 3], "float32"), null, { padding: 1 }).relu(),
      empty([2048, 1024], "float32").softmax(),
      empty([512, 2048], "float32").sum(0),
      empty([1 << 20], "float32").sum(),
    ];
    for (const t of works) {
      const kernel = toFastKernel(astOf(t), small, false);
      expect(kernel.opts.length, kernel.name).toBeGreaterThan(0);
      const threads = kernel.localSize.reduce((a, b) => a * b, 1);
      expect(threads, showOpts(kernel.opts)).toBeLessThanOrEqual(1024);
    }
  });
});
