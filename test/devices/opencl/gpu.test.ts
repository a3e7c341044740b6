// Kernels in the form that OPENCL has for a GPU: a grid of threads with tiles in local memory, barriers, and
// loads of several elements. No machine of ours has such a GPU, so the driver of the CPU runs them, under a
// device that says it is one, and JS says what is right.

import { createSchedule, Device, dtypes, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { toFastKernel } from "../../../src/codegen/kernel.ts";
import { showOpts } from "../../../src/codegen/opt/opts.ts";
import type { Renderer } from "../../../src/codegen/target.ts";
import { openAsGpu, whyClosed } from "./open.ts";

const closed = await whyClosed();
const GPU = "CLGPU";
if (closed === undefined) await openAsGpu(GPU);
const renderer = () => Device.get(GPU).renderer as Renderer<string>;

/** The same values on a device: whole numbers and halves, so that sums are exact in any order. */
const values = (device: string, shape: readonly number[], dtype = dtypes.float32): Tensor =>
  Tensor.arange(
    shape.reduce((n, d) => n * d, 1),
    { device: "JS" },
  )
    .mul(7)
    .remainder(23)
    .sub(dtype.kind === "uint" || dtype.kind === "bool" ? 0 : 11)
    .reshape([...shape])
    .cast(dtype)
    .to(device)
    .contiguous();

const WORKS: Readonly<Record<string, (device: string) => Tensor>> = {
  "a product of matrices": (d) => values(d, [256, 128]).matmul(values(d, [128, 192])),
  "a product with sides that nothing divides": (d) => values(d, [67, 45]).matmul(values(d, [45, 71])),
  "a matrix by a vector": (d) => values(d, [512, 256]).matmul(values(d, [256])),
  "a batch of products": (d) => values(d, [3, 64, 32]).matmul(values(d, [3, 32, 64])),
  "a convolution": (d) => values(d, [2, 8, 20, 20]).conv2d(values(d, [16, 8, 3, 3]), null, { padding: 1 }),
  "a sum of all": (d) => values(d, [1 << 16]).sum(),
  "sums of columns": (d) => values(d, [1000, 33]).sum(0),
  "sums of rows": (d) => values(d, [33, 1000]).sum(1),
  "a row and its largest": (d) => values(d, [40, 600]).sub(values(d, [40, 600]).max(1, true)),
  "a transposed copy": (d) => values(d, [96, 160]).transpose(0, 1).contiguous(),
  "an elementwise chain": (d) => values(d, [64, 64]).mul(0.5).add(3).relu().square(),
};

describe("kernels as a grid of threads give what JS gives", () => {
  test.for(Object.entries(WORKS))("%s", async ([, work], { skip }) => {
    skip(closed !== undefined, closed);
    expect(await work(GPU).tolist()).toEqual(await work("JS").tolist());
  });
  test.for([
    ...[dtypes.bool, dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16, dtypes.int32, dtypes.uint32],
    ...[dtypes.int64, dtypes.uint64, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64],
  ])("vectors of $name", async (dtype, { skip }) => {
    skip(closed !== undefined, closed);
    skip(renderer().support(dtype) === "none", `the driver has no ${dtype.name}`);
    const work = (d: string) => {
      const x = values(d, [64, 128], dtype);
      return x.ne(values(d, [64, 128], dtype).transpose(0, 1).reshape(64, 128)).where(x, x.mul(x));
    };
    const { text } = kernelOf(values(GPU, [64, 128], dtype).add(values(GPU, [64, 128], dtype)));
    expect(text).toMatch(/\*\(\(__global \w+(2|4|8|16)\*\)/);
    expect(await work(GPU).tolist()).toEqual(await work("JS").tolist());
  });
});

/** The last kernel of a tensor. */
function kernelOf(t: Tensor): { opts: string; text: string } {
  const ast = createSchedule([t.lazydata]).at(-1)?.ast ?? [];
  const kernel = toFastKernel(ast, renderer(), false);
  return { opts: showOpts(kernel.opts), text: renderer().render(kernel.name, kernel.uops).code };
}

test("a product of matrices has its tiles in local memory", ({ skip }) => {
  skip(closed !== undefined, closed);
  const { opts, text } = kernelOf(values(GPU, [256, 128]).matmul(values(GPU, [128, 192])));
  expect(opts).toMatch(/SHARED\(2, stages=2\)/);
  expect(text).toMatch(/__local float shared0\[\d+\];/);
  expect(text).toContain("barrier(CLK_LOCAL_MEM_FENCE);");
  expect(text).toMatch(/float4 val\d+ = \*\(\(__global float4\*\)\(data1/);
  expect(text).toMatch(/\*\(\(__global float4\*\)\(data0.*\)\) = \(float4\)\(/);
});

test("the figures of the GPU are those of its driver", ({ skip }) => {
  skip(closed !== undefined, closed);
  const cpu = Device.get("OPENCL").renderer;
  const { gpu, localMax, sharedMax } = renderer();
  expect(cpu?.gpu).toBeUndefined();
  expect(gpu?.warp).toBeGreaterThan(0);
  expect(gpu?.computeUnits).toBeGreaterThan(0);
  expect(gpu?.threadsPerUnit).toBeLessThanOrEqual(8 * Math.max(...localMax));
  expect(gpu?.sharedPerUnit).toBeGreaterThanOrEqual(sharedMax);
});
