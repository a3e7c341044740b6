// Which kernels are products of matrices: any sides, batches, broadcasts, computed operands, convolutions and
// their gradients go to tensor cores, and give the values of plain loops. JS runs what CUDA would be given.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSchedule, dtypes, Tensor } from "gradloom";
import { CUDALanguage, CUDARenderer } from "gradloom/render";
import { describe, expect, test } from "vitest";
import { type Kernel, prepare, toFastKernel } from "../../../../src/codegen/kernel.ts";
import { matrixProducts } from "../../../../src/codegen/opt/heuristics/matrixproduct.ts";
import { showOpts } from "../../../../src/codegen/opt/opts.ts";
import type { DType } from "../../../../src/dtype.ts";
import { nvidiaGpu } from "../../../../src/render/nvidia.ts";
import { Device } from "../../../../src/runtime/registry.ts";
import { expectValues, tensor } from "../../../device/harness.ts";
import { registerOracle } from "../../../devices/oracle.ts";
import { Random } from "../../../shape/random.ts";
import { opsIn } from "../../kernels.ts";

const { bfloat16, float16, float32 } = dtypes;
// few compute units: small works keep them busy
const tiny = { ...CUDARenderer, gpu: nvidiaGpu(90, { computeUnits: 2 }) };
const GPU = registerOracle("GPUPRODUCT", tiny);
await Device.open(GPU);
const h200 = { ...CUDARenderer, sharedMax: 227 * 1024, gpu: nvidiaGpu(90, { computeUnits: 132 }) };

const empty = (shape: readonly number[], dtype: DType = bfloat16): Tensor =>
  Tensor.empty([...shape], { device: GPU, dtype: dtype.name as "bfloat16" });
const kernelsOf = (...outs: Tensor[]): Kernel[] =>
  createSchedule(outs.map((t) => t.lazydata)).flatMap(({ ast }) =>
    ast[0]?.op === "STORE" ? [toFastKernel(ast, h200, false)] : [],
  );
const usesTensorCores = (k: Kernel): boolean => opsIn(k, "WMMA").length > 0;
const last = (t: Tensor): Kernel => kernelsOf(t).at(-1) as Kernel;

describe("on an H200", () => {
  test("sides that nothing divides", () => {
    for (const [m, k, n] of [
      [4095, 4099, 4101],
      [1000, 1000, 1000],
      [257, 4096, 4096],
      [2048, 100, 2050],
    ] as const)
      for (const type of [bfloat16, float16])
        expect(usesTensorCores(last(empty([m, k], type).matmul(empty([k, n], type)))), `${m} ${k} ${n}`).toBe(
          true,
        );
  });
  test("a convolution and both gradients; no picture is stored as float32 for it", () => {
    const [x, w] = [empty([64, 64, 56, 56]), empty([64, 64, 3, 3])];
    x.requiresGrad = w.requiresGrad = true;
    const y = x.conv2d(w, undefined, { padding: 1 });
    expect(usesTensorCores(last(y))).toBe(true);
    const [padded] = createSchedule([y.lazydata]);
    expect(padded?.outputs[0]?.dtype).toBe(bfloat16);
    y.backward(empty(y.shape as number[]));
    expect(usesTensorCores(last(x.grad as Tensor))).toBe(true);
  });
  test("a batch between rows and columns, an operand that is broadcast, several sums", () => {
    const products: [string, Tensor][] = [
      ["a batch in the middle", Tensor.einsum("mbk,bkn->mbn", empty([512, 8, 256]), empty([8, 256, 512]))],
      ["two sums", Tensor.einsum("mkl,nlk->mn", empty([512, 16, 32]), empty([512, 32, 16]))],
      ["rows apart", Tensor.einsum("abk,cbk->acb", empty([256, 4, 256]), empty([256, 4, 256]))],
      ["heads", Tensor.einsum("bqhd,bkhd->bhqk", empty([4, 300, 8, 64]), empty([4, 300, 8, 64]))],
    ];
    for (const [name, t] of products) expect(usesTensorCores(last(t)), name).toBe(true);
  });
  test("few results of a long sum are left to threads that share it", () => {
    expect(usesTensorCores(last(empty([17, 65537]).matmul(empty([65537, 19]))))).toBe(false);
  });
  test("operands through registers take fewer terms at once: nothing is spilt", { timeout: 120_000 }, ({
    skip,
  }) => {
    skip(spawnSync("nvcc", ["--version"]).status !== 0, "nvcc is not installed");
    const ks = [
      last(empty([4095, 4099]).matmul(empty([4099, 4101]))),
      last(empty([64, 64, 56, 56]).conv2d(empty([64, 64, 3, 3]), undefined, { padding: 1 })),
    ];
    const folder = mkdtempSync(join(tmpdir(), "gradloom-products-"));
    try {
      for (const k of ks) {
        writeFileSync(join(folder, "kernel.cu"), h200.render(k.name, k.uops).code);
        const args = [
          "-cubin",
          "-arch=sm_90",
          "-Xptxas",
          "-v",
          ...CUDALanguage.flags,
          "-o",
          "out.cubin",
          "kernel.cu",
        ];
        const { stderr, status } = spawnSync("nvcc", args, { encoding: "utf8", cwd: folder });
        expect(status, stderr).toBe(0);
        expect(stderr, showOpts(k.opts)).toContain("0 bytes spill stores, 0 bytes spill loads");
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

test("axes are named as COLLAPSE and SWAP leave them", () => {
  const t = Tensor.einsum("mbk,bkn->mbn", empty([32, 3, 16]), empty([3, 16, 24]));
  const { ast } = createSchedule([t.lazydata]).at(-1)!;
  const [found] = matrixProducts(prepare(ast, [], tiny), tiny.gpu);
  expect(found).toMatchObject({ axes: { m: 0, n: 2, k: 3 }, m: 32, n: 24, k: 16, others: 3 });
  expect(showOpts(found?.opts ?? [])).toBe("SWAP(0, with=1)");
});

/** Whole numbers that all types have; the same on both devices. */
function operand(device: string, shape: readonly number[], type: DType, seed: number): Tensor {
  const random = new Random(seed);
  const size = shape.reduce((a, b) => a * b, 1);
  return tensor(
    device,
    type,
    Array.from({ length: size }, () => random.int(-3, 3)),
    shape,
  );
}
type Make = (x: (shape: readonly number[], seed: number) => Tensor, r: Random) => Tensor;
const WORKS: Record<string, Make> = {
  product: (x, r) => x([r.int(16, 60), 45], 1).matmul(x([45, r.int(16, 60)], 2)),
  transposed: (x, r) => x([35, r.int(16, 50)], 1).T.matmul(x([r.int(16, 50), 35], 2).T),
  batch: (x, r) => Tensor.einsum("mbk,bkn->mbn", x([r.int(16, 60), 3, 33], 1), x([3, 33, r.int(16, 40)], 2)),
  broadcast: (x, r) => x([3, r.int(16, 50), 40], 1).matmul(x([40, r.int(16, 50)], 2)),
  sums: (x, r) => Tensor.einsum("mkl,nlk->mn", x([r.int(16, 50), 6, 7], 1), x([r.int(16, 50), 7, 6], 2)),
  epilogue: (x, r) => {
    const n = r.int(16, 90);
    return x([33, 50], 1)
      .matmul(x([50, n], 2))
      .add(x([n], 3))
      .relu()
      .add(x([33, n], 4));
  },
  convolution: (x, r) => x([2, 5, r.int(7, 12), 9], 1).conv2d(x([19, 5, 3, 3], 2), undefined, { padding: 1 }),
  gradients: (x, r) => {
    const [a, w] = [x([2, 17, r.int(7, 10), 8], 1), x([18, 17, 2, 2], 2)];
    a.requiresGrad = w.requiresGrad = true;
    const y = a.conv2d(w, undefined, { padding: 1 });
    y.backward(x(y.shape as number[], 3));
    return (a.grad as Tensor)
      .sum(1)
      .flatten()
      .cat((w.grad as Tensor).flatten());
  },
};
describe.each([bfloat16, float16, float32])("values: $name", (type) => {
  test.each(Object.entries(WORKS))("%s", async (name, make) => {
    for (const seed of [type === bfloat16 ? 1 : 2]) {
      const run = (device: string): Promise<ArrayLike<number | bigint | boolean>> =>
        make((shape, s) => operand(device, shape, type, s), new Random(seed))
          .cast(float32)
          .data() as never;
      const [got, want] = [await run(GPU), await run("JS")];
      expectValues(float32, [...(got as Float32Array)], [...(want as Float32Array)], `${name} ${seed}`, {
        zeros: "equal",
      });
    }
  });
});
