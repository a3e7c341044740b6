// What the GPU's heuristic makes of convolutions and their gradients, of pooling, and of reduces to few
// results: nothing is computed for nothing, sums that are long are shared, and the values are JS's.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dtypes, type Renderer, Tensor } from "gradloom";
import { CUDALanguage, CUDARenderer } from "gradloom/render";
import { describe, expect, test } from "vitest";
import { type Kernel, prepare, toFastKernel, toKernel } from "../../../../src/codegen/kernel.ts";
import { convolutionLists } from "../../../../src/codegen/opt/heuristics/convolutions.ts";
import { showOpts } from "../../../../src/codegen/opt/opts.ts";
import type { Gpu } from "../../../../src/codegen/target.ts";
import { cudaFor } from "../../../../src/render/languages.ts";
import { createSchedule } from "../../../../src/schedule/schedule.ts";
import { expectValues } from "../../../device/harness.ts";
import { registerOracle } from "../../../devices/oracle.ts";
import { Random } from "../../../shape/random.ts";
import { factors, gpuTarget, lastItem, lowered, opsIn, opt, runKernel, wholeFloats } from "../../kernels.ts";

const GPU = registerOracle("GPUCONV", CUDARenderer);
const fast = async (t: Tensor): Promise<Kernel> => toFastKernel((await lastItem(t)).ast, CUDARenderer, false);
const threads = (k: Kernel): number => k.localSize.reduce((a, b) => a * b, 1);
/** Never computed, so its size costs nothing. */
const empty = (...shape: number[]): Tensor => Tensor.empty(shape, { device: "JS" });

/** The gradient of the weight of a convolution of x, where y is multiplied by dy. */
function weightGradient(x: Tensor, w: Tensor, dy: (shape: readonly number[]) => Tensor): Tensor {
  w.requiresGrad = true;
  const y = x.conv2d(w);
  y.backward(dy(y.shape as number[]));
  return w.grad as Tensor;
}
/** The same with numbers. */
function numbers(device: string, batch: number, [from, to, side]: readonly number[], k: number): Tensor {
  const waves = (shape: readonly number[]): Tensor =>
    Tensor.arange(
      shape.reduce((a, b) => a * b, 1),
      { device },
    )
      .mul(0.37)
      .sin()
      .reshape(...shape)
      .contiguous();
  const w = Tensor.ones([to as number, from as number, k, k], { device });
  return weightGradient(waves([batch, from as number, side as number, side as number]), w, waves);
}

describe("convolutions", () => {
  test("threads divide the picture: no result is computed twice or thrown away", async () => {
    for (const side of [24, 28, 12, 10]) {
      const kernel = await fast(empty(64, 32, side, side).conv2d(empty(32, 32, 5, 5)));
      const exact = 2 * 64 * 32 * (side - 4) ** 2 * 32 * 25;
      expect(kernel.ops / exact, `${side}`).toBeLessThan(1.1);
      const warps = Math.ceil(threads(kernel) / 32);
      expect(threads(kernel) / (32 * warps), `${side}`).toBeGreaterThan(0.7);
      expect(factors(kernel, "SHARED"), "operands come through shared memory").toBeGreaterThan(1);
    }
  });
  test("a gradient of few weights over many pictures: threads share the sum", async () => {
    const kernel = await fast(
      weightGradient(empty(512, 32, 24, 24), empty(32, 32, 5, 5), (shape) => empty(...shape)),
    );
    expect(factors(kernel, "GROUPTOP")).toBeGreaterThanOrEqual(64);
    const groups = kernel.globalSize.reduce<number>((n, s) => n * Number(s), 1);
    expect(groups * threads(kernel)).toBeGreaterThan(50_000);
  });
  test("the gradient has JS's values", async () => {
    for (const [batch, shape, k] of [
      [16, [2, 8, 12], 5],
      [32, [3, 4, 9], 3],
      [24, [1, 5, 11], 4],
    ] as const) {
      const [got, want] = await Promise.all(
        [GPU, "JS"].map((d) => numbers(d, batch, shape, k).data() as Promise<Float32Array>),
      );
      want?.forEach((v, i) => void expect(Math.abs((got?.[i] as number) - v), `${shape}`).toBeLessThan(2e-4));
    }
    const kernel = await fast(numbers("JS", 16, [2, 8, 12], 5));
    expect(factors(kernel, "GROUPTOP")).toBeGreaterThan(1);
  });
  test("every list that is proposed fits, and has JS's values: strides, groups, windows that are turned round", async () => {
    const base = gpuTarget(32);
    const target = { ...base, gpu: { ...(base.gpu as Gpu), computeUnits: 1 } };
    const r = new Random(7);
    const whole = (...shape: number[]): Tensor => wholeFloats("JS", shape, r).contiguous();
    const cases: Tensor[] = [
      whole(2, 8, 10, 10).conv2d(whole(16, 8, 3, 3)),
      whole(4, 6, 17, 13).conv2d(whole(16, 6, 3, 5), null, { stride: 2 }),
      whole(2, 16, 12, 12).conv2d(whole(16, 8, 3, 3), null, { groups: 2, dilation: 2 }),
      whole(2, 8, 10, 10).conv2d(whole(8, 16, 3, 3).permute(1, 0, 2, 3).flip([2, 3])),
      whole(4, 64, 6, 6).conv2d(whole(32, 64, 1, 1)),
      weightGradient(whole(4, 4, 9, 9), whole(8, 4, 4, 4), (shape) => whole(...shape)),
      weightGradient(whole(4, 1, 20, 20), whole(16, 1, 5, 5), (shape) => whole(...shape)),
    ];
    for (const t of cases) {
      const item = await lastItem(t);
      const want = await runKernel(item, lowered(item));
      const lists = convolutionLists(prepare(item.ast, [], target), target, target.gpu, 0);
      expect(lists.length, `${t.shape}`).toBeGreaterThan(0);
      for (const list of lists) {
        const kernel = lowered(item, list, target);
        expect(opsIn(kernel, "ASYNC"), showOpts(list)).not.toEqual([]);
        expectValues(dtypes.float32, await runKernel(item, kernel), want, showOpts(list), { zeros: "equal" });
      }
    }
  });
  test("few products, few terms and results that are too few for the machine are left to others", async () => {
    const target = CUDARenderer;
    const proposed = async (t: Tensor): Promise<number> => {
      const { ast } = await lastItem(t);
      return convolutionLists(prepare(ast, [], target), target, target.gpu as Gpu).length;
    };
    expect(await proposed(empty(1, 8, 10, 10).conv2d(empty(8, 8, 3, 3)))).toBe(0);
    expect(await proposed(empty(64, 1, 32, 32).conv2d(empty(32, 1, 3, 3)))).toBe(0);
    const few = weightGradient(empty(2048, 2, 12, 12), empty(2, 2, 3, 3), (shape) => empty(...shape));
    expect(await proposed(few)).toBe(0);
    expect(
      await proposed(
        empty(64, 32, 10, 10)
          .conv2d(empty(32, 32, 3, 3))
          .relu(),
      ),
    ).toBeGreaterThan(0);
    const bare = { ...target, sharedMax: 0 };
    const { ast } = await lastItem(empty(64, 32, 10, 10).conv2d(empty(32, 32, 3, 3)));
    expect(convolutionLists(prepare(ast, [], bare), bare, bare.gpu as Gpu)).toEqual([]);
  });
  test("the kernels compile with nvcc, and stay in registers", { timeout: 120_000 }, async ({ skip }) => {
    skip(spawnSync("nvcc", ["--version"]).status !== 0, "nvcc is not installed");
    const kernels = await Promise.all(
      [
        empty(512, 32, 24, 24).conv2d(empty(32, 32, 5, 5)),
        empty(512, 32, 28, 28).conv2d(empty(32, 32, 5, 5).permute(1, 0, 2, 3).flip([2, 3])),
        empty(64, 64, 57, 57)
          .conv2d(empty(128, 64, 3, 3), empty(128), { stride: 2 })
          .relu(),
        weightGradient(empty(8, 32, 24, 24), empty(32, 32, 5, 5), (shape) => empty(...shape)),
      ].map(fast),
    );
    const folder = mkdtempSync(join(tmpdir(), "gradloom-conv-"));
    for (const k of kernels) {
      writeFileSync(join(folder, "k.cu"), CUDARenderer.render(k.name, k.uops).code);
      const args = ["-cubin", "-arch=sm_90", "-Xptxas", "-v", ...CUDALanguage.flags, "-o", "k.cubin", "k.cu"];
      const run = spawnSync("nvcc", args, { cwd: folder, encoding: "utf8" });
      expect(run.status, run.stderr).toBe(0);
      const spilt = Number(/(\d+) bytes spill stores/.exec(run.stderr + run.stdout)?.[1]);
      expect(spilt, showOpts(k.opts)).toBeLessThan(64);
    }
    rmSync(folder, { recursive: true });
  });
  test("an axis of millions is not looked through", async () => {
    const { ast } = await lastItem(empty(2 ** 23, 64).dot(empty(64, 12)));
    const start = performance.now();
    toFastKernel(ast, CUDARenderer, false);
    // 50 ms on a quiet machine; minutes where all that might divide the axis is tried
    expect(performance.now() - start).toBeLessThan(20_000);
  });

  test("what is read in the loop decides who are neighbours, not the bias after it", async () => {
    // so that nothing comes through shared memory
    const target = { ...cudaFor(CUDARenderer, 75, { computeUnits: 132 }), sharedMax: 0 };
    const item = await lastItem(empty(64, 32, 10, 10).conv2d(empty(64, 32, 3, 3), empty(64)));
    const kernel = toFastKernel(item.ast, target, false);
    const text = target.render(kernel.name, kernel.uops).code;
    // the weights, 288 apart an output channel, move along the outermost threads
    expect(text).toMatch(/\(lidx2\*(288|576|1152)\)/);
  });
});

test("a GPU before Ada multiplies no floats of 8 bits, one before Ampere no matrices at all", () => {
  const types = (arch: number) =>
    cudaFor(CUDARenderer, arch, { computeUnits: 100 }).gpu?.tensorCores.map((c) => c.from.name);
  expect(types(75)).toEqual([]);
  expect(types(86)).toEqual(["bfloat16", "float16", "float32"]);
  expect(types(90)).toEqual(CUDARenderer.gpu?.tensorCores.map((c) => c.from.name));
  expect(types(90)).toContain("float8e4m3");
  expect(cudaFor(CUDARenderer, 90, { computeUnits: 100 }).gpu?.computeUnits).toBe(100);
});

test("a GPU before Ampere copies to shared memory through registers", async () => {
  const item = await lastItem(empty(64, 64).dot(empty(64, 64)));
  const list = [opt("LOCAL", 0, 16), opt("LOCAL", 1, 16), opt("UNROLL", 2, 16), opt("SHARED", 2, 2)];
  const [turing, ampere] = [75, 80].map((arch) => cudaFor(CUDARenderer, arch, { computeUnits: 4 })) as [
    Renderer,
    Renderer,
  ];
  expect(opsIn(toFastKernel(item.ast, ampere, false), "ASYNC")).not.toEqual([]);
  expect(opsIn(toFastKernel(item.ast, turing, false), "ASYNC")).toEqual([]);
  expect(opsIn(toKernel(item.ast, list, ampere), "ASYNC")).not.toEqual([]);
  for (const kernel of [toKernel(item.ast, list, turing), toFastKernel(item.ast, turing, false)]) {
    expect(opsIn(kernel, "STORE").filter((u) => u.buffer.op === "DEFINE_LOCAL")).not.toEqual([]);
  }
});

describe("few results", () => {
  const groups = (k: Kernel): number => k.globalSize.reduce<number>((n, s) => n * Number(s), 1);
  test("of a product of matrices: threads share its sums, also where these are short", async () => {
    // a layer of 10 results on a batch, and the gradient of its weight
    for (const product of [
      empty(512, 576).matmul(empty(576, 10)),
      empty(512, 576).matmul(empty(10, 576).T),
      empty(512, 10).T.matmul(empty(512, 576)),
    ]) {
      const kernel = await fast(product);
      expect(factors(kernel, "GROUPTOP"), kernel.name).toBeGreaterThanOrEqual(16);
      expect(groups(kernel) * threads(kernel), kernel.name).toBeGreaterThan(20_000);
    }
    const many = await fast(empty(2048, 576).matmul(empty(576, 512)));
    expect(factors(many, "GROUPTOP")).toBe(1);
  });
  test("of products of any small size have JS's values", async () => {
    const random = new Random(7);
    for (let i = 0; i < 12; i++) {
      const [m, k, n] = [random.int(1, 40), random.int(16, 300), random.int(1, 12)] as const;
      const of = (device: string): Tensor => {
        const waves = (...shape: [number, number]): Tensor =>
          Tensor.arange(shape[0] * shape[1], { device })
            .mul(0.7)
            .sin()
            .reshape(...shape)
            .contiguous();
        return waves(m, k).matmul(i % 2 === 0 ? waves(k, n) : waves(n, k).T);
      };
      const [got, want] = await Promise.all([GPU, "JS"].map((d) => of(d).data() as Promise<Float32Array>));
      want?.forEach(
        (v, j) => void expect(Math.abs((got?.[j] as number) - v), `${m} ${k} ${n}`).toBeLessThan(1e-4),
      );
    }
  });
  test("of several sums in one loop: what is read at once fits into registers", async () => {
    const [x, y, z] = [empty(512, 32, 400), empty(512, 32, 400), empty(512, 32, 400)];
    const all = [x.mul(y), x.mul(z), y.mul(z), x].map((t) => t.sum([0, 2]));
    const item = createSchedule(all.map((t) => t.lazydata)).at(-1);
    expect(item?.outputs).toHaveLength(4);
    const kernel = toFastKernel(item?.ast ?? [], CUDARenderer, false);
    const loaded = kernel.uops.uops.filter((u) => u.op === "LOAD" && u.srcs[0]?.op === "DEFINE_GLOBAL");
    expect(loaded.reduce((n, u) => n + (u.dtype as { count: number }).count, 0)).toBeLessThanOrEqual(32);
  });
  test("of sums over two axes of one size: both are shared, none is taken for the row of another", async () => {
    for (const [sum, least] of [
      [empty(64, 64, 64).sum([0, 2]), 1024],
      [empty(8, 64, 64, 64).sum([1, 3]), 256],
      [empty(256, 16, 16).sum([0, 2]), 256],
    ] as const) {
      const kernel = await fast(sum);
      expect(threads(kernel), kernel.name).toBeGreaterThanOrEqual(least);
    }
  });
  test("computed one by one: a thread each", async () => {
    const kernel = await fast(empty(64).sqrt().add(empty(64)));
    expect([kernel.globalSize, kernel.localSize]).toEqual([[], [64]]);
    expect((await fast(empty(1024).sqrt().add(empty(1024)))).localSize).toEqual([256]);
  });
});

test("pooling fills its workgroups", async () => {
  const kernel = await fast(empty(512, 32, 20, 20).maxPool2d(2));
  expect(threads(kernel)).toBeGreaterThanOrEqual(96);
});

describe("rows that are too few for the compute units of a GPU", () => {
  const kernels = (rows: number, columns: number, device: string): number => {
    const x = Tensor.empty([rows, columns], { device });
    return createSchedule([x.var(1).lazydata]).filter((i) => i.ast[0]?.op === "STORE").length;
  };
  test("are no one kernel there, and one elsewhere", async () => {
    await Tensor.ones([1], { device: GPU }).realize();
    expect(kernels(4, 2 ** 16, GPU)).toBe(2);
    expect(kernels(4, 2 ** 16, "JS")).toBe(1);
  });
  test("but for what is small, or has rows enough", () => {
    expect(kernels(4, 2 ** 15, GPU)).toBe(1);
    expect(kernels(256, 2 ** 10, GPU)).toBe(1);
    const units = CUDARenderer.gpu?.computeUnits as number;
    expect([units - 1, units].map((rows) => kernels(rows, 2 ** 18, GPU))).toEqual([2, 1]);
  });
  test("their values", async () => {
    const x = (device: string) =>
      Tensor.arange(4 * 2 ** 16, { device, dtype: dtypes.float32 })
        .mul(0.01)
        .sin();
    const [a, b] = await Promise.all(
      [GPU, "JS"].map(
        (d) =>
          x(d)
            .reshape(4, 2 ** 16)
            .var(1)
            .data() as Promise<Float32Array>,
      ),
    );
    b?.forEach((v, i) => void expect(a?.[i]).toBeCloseTo(v, 5));
  });
});
