// For the tests of kernels for GPUs: inputs of small whole numbers, and a kernel run by JS and compared with
// the kernel without any OptOp.

import { dtypes, type Tensor } from "gradloom";
import type { Kernel } from "../../src/codegen/kernel.ts";
import { type OptOp, showOpts } from "../../src/codegen/opt/opts.ts";
import type { DType, Value } from "../../src/dtype.ts";
import type { ScheduleItem } from "../../src/schedule/schedule.ts";
import { expectValues, tensor } from "../device/harness.ts";
import { Random } from "../shape/random.ts";
import { gpuTarget, lastItem, lowered, runKernel } from "./kernels.ts";

export const values = (shape: readonly number[], seed: number): Value[] => {
  const random = new Random(seed);
  return Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => random.int(-9, 9));
};
export const ints = (shape: readonly number[], seed: number): Tensor =>
  tensor("JS", dtypes.int32, values(shape, seed), shape);
export const floats = (shape: readonly number[], seed: number): Tensor =>
  tensor("JS", dtypes.float32, values(shape, seed), shape);

/** Runs the kernel and compares with what is wanted, of which zeros may have the other sign. */
export async function compare(
  item: ScheduleItem,
  kernel: Kernel,
  want: readonly Value[],
  ulps = 0,
): Promise<void> {
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
export async function check(t: Tensor, opts: readonly OptOp[], warp = 32, ulps = 0): Promise<Kernel> {
  const item = await lastItem(t);
  const kernel = lowered(item, opts, gpuTarget(warp));
  await compare(item, kernel, await runKernel(item, lowered(item)), ulps);
  return kernel;
}
