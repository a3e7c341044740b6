// Products on matrices that subgroups hold, and of whose elements nobody knows the thread (WebGPU's subgroup
// matrix). JS runs the kernels; Dawn's backend without a GPU checks their texts.

import { ArgumentError, Device, dtypes, Tensor } from "gradloom";
import { beforeAll, describe, expect, test } from "vitest";
import { toFastKernel } from "../../../src/codegen/kernel.ts";
import { type OptOp, showOpts } from "../../../src/codegen/opt/opts.ts";
import { type MatrixSides, subgroupMatrix } from "../../../src/codegen/opt/subgroupmatrix.ts";
import type { GpuDevice } from "../../../src/devices/webgpu/api.ts";
import type { DType, Value } from "../../../src/dtype.ts";
import { LEAST_WEBGPU, webgpuFor } from "../../../src/render/webgpu.ts";
import { SUBGROUP_MATRICES } from "../../../src/render/wgslmatrix.ts";
import type { TensorCore } from "../../../src/uop/matrix.ts";
import { expectValues, tensor } from "../../device/harness.ts";
import { nullDevice } from "../../devices/webgpu/nulldevice.ts";
import { Random } from "../../shape/random.ts";
import { gpuTarget, lastItem, lowered, opsIn, opt, runKernel } from "../kernels.ts";

await Device.open("JS");
const { float16, float32 } = dtypes;

/** As NVIDIA's, Apple's and Intel's GPUs have them. */
const SIDES: readonly (readonly [MatrixSides, subgroup: number])[] = [
  [{ m: 16, n: 16, k: 16, from: float16, to: float32 }, 32],
  [{ m: 16, n: 8, k: 16, from: float16, to: float32 }, 32],
  [{ m: 8, n: 8, k: 8, from: float32, to: float32 }, 32],
  [{ m: 8, n: 16, k: 16, from: float16, to: float32 }, 32],
];
const targetOf = (matrices: readonly MatrixSides[], subgroup: number) =>
  webgpuFor(
    {
      ...LEAST_WEBGPU,
      hasHalf: true,
      subgroup,
      threads: 1024,
      threadsByDimension: [1024, 1024, 64],
      workgroupMemory: 49152,
      matrices,
    },
    SUBGROUP_MATRICES,
  );
/** Small whole numbers: every sum is exact. */
function matrix(type: DType, shape: readonly number[], seed: number): Tensor {
  const random = new Random(seed);
  const values: Value[] = Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => random.int(-3, 3));
  return tensor("JS", type, values, shape);
}
const product = (type: DType, [m, k, n]: readonly number[], turned = false): Tensor =>
  matrix(type, [m!, k!], 1).dot(turned ? matrix(type, [n!, k!], 2).T : matrix(type, [k!, n!], 2));

test("every element of a matrix has one thread", () => {
  for (const [sides, subgroup] of SIDES) {
    const core = subgroupMatrix(sides, subgroup) as TensorCore;
    for (const [side, height, width] of [
      ["a", sides.m, sides.k],
      ["b", sides.k, sides.n],
      ["c", sides.m, sides.n],
    ] as const) {
      const { elements, row, column } = core[side];
      const at = (digits: typeof row, lane: number, e: number): number =>
        digits.reduce(
          (n, [from, by, size, times]) => n + (Math.floor((from === "lane" ? lane : e) / by) % size) * times,
          0,
        );
      const seen = new Set<number>();
      for (let lane = 0; lane < subgroup; lane++)
        for (let e = 0; e < elements; e++) {
          const [r, c] = [at(row, lane, e), at(column, lane, e)];
          expect(r < height && c < width, `${core.name} ${side} ${r} ${c}`).toBe(true);
          seen.add(r * width + c);
        }
      expect(seen.size).toBe(height * width);
    }
  }
  expect(subgroupMatrix({ m: 5, n: 7, k: 3, from: float16, to: float32 }, 32)).toBeUndefined();
});

describe.each(SIDES)("%o in subgroups of %i", (sides, subgroup) => {
  const core = subgroupMatrix(sides, subgroup) as TensorCore;
  const opts: OptOp[] = [
    opt("TC", 2, 0),
    opt("UPCAST", 0, 2),
    opt("LOCAL", 1, 2),
    opt("UNROLL", 2, 2),
    opt("SHARED", 2, 1),
  ];
  test.each([
    [false, "as it is"],
    [true, "transposed"],
  ])("values; the second operand transposed: %s", async (turned) => {
    const base = gpuTarget(subgroup);
    const target = { ...base, sharedMax: 2 ** 18, gpu: { ...base.gpu!, tensorCores: [core] } };
    for (const of of [
      product(sides.from, [64, 64, 64], turned),
      product(sides.from, [64, 64, 64], turned).add(1).relu(),
    ]) {
      const item = await lastItem(of);
      for (const stages of [1, 2]) {
        const list = [...opts.slice(0, -1), opt("SHARED", 2, stages)];
        const kernel = lowered(item, list, target);
        expect(opsIn(kernel, "LDFRAGMENT").map((u) => u.operandLoad.isTransposed)).toContain(turned);
        const want = await runKernel(item, lowered(item));
        expectValues(item.outputs[0]?.dtype as DType, await runKernel(item, kernel), want, showOpts(list));
      }
    }
  });
  test("what is not in shared memory is refused", async () => {
    const base = gpuTarget(subgroup);
    const target = { ...base, gpu: { ...base.gpu!, tensorCores: [core] } };
    const item = await lastItem(product(sides.from, [64, 64, 64]));
    expect(() => lowered(item, opts.slice(0, -1), target)).toThrow(ArgumentError);
  });
});

describe("texts", () => {
  let device: GpuDevice | string;
  beforeAll(async () => {
    device = await nullDevice(["shader-f16", "subgroups", "chromium-experimental-subgroup-matrix"]);
  });
  test("the heuristic multiplies matrices, and Dawn accepts the kernels", async ({ skip }) => {
    if (typeof device === "string") return skip(device);
    const target = targetOf([SIDES[0]![0]], 32);
    let seen = 0;
    for (const [m, k, n] of [
      [4096, 4096, 4096],
      [256, 512, 128],
      [64, 64, 64],
      [100, 64, 64],
    ] as const) {
      const empty = (shape: number[]): Tensor => Tensor.empty(shape, { device: "JS", dtype: "float16" });
      const { ast } = await lastItem(
        empty([m, k])
          .dot(empty([k, n]))
          .gelu(),
      );
      const kernel = toFastKernel(ast, target, false);
      const code = target.render(kernel.name, kernel.uops).code;
      expect(code, `${m} x ${k} x ${n}`).toContain("subgroupMatrixMultiplyAccumulate");
      seen++;
      const { messages } = await device.createShaderModule({ label: kernel.name, code }).getCompilationInfo();
      expect(messages.map((x) => `line ${x.lineNum}: ${x.message}`)).toEqual([]);
    }
    expect(seen).toBe(4);
  });
});
