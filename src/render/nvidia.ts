// The figures of NVIDIA's GPUs by which kernels are chosen: what the driver tells of a GPU, the rest by its
// compute capability. In goes the capability (90 is Hopper), out comes the Gpu of a target.

import { MMA } from "../codegen/opt/mma.ts";
import type { Gpu } from "../codegen/target.ts";
import { type DType, dtypes } from "../dtype.ts";

/** What differs between generations. */
type Generation = Pick<
  Gpu,
  "threadsPerUnit" | "workgroupsPerUnit" | "sharedPerUnit" | "multiplyAddsPerCycle" | "fetchRate"
>;
/**
 * By the first capability of the generation, as CUDA's programming guide has them; those before Volta count
 * as Volta.
 */
const VOLTA = generation(2048, 32, 96, 64, 32);
const GENERATIONS: readonly (readonly [capability: number, Generation])[] = [
  [75, generation(1024, 16, 64, 64, 32)],
  [80, generation(2048, 32, 164, 64, 48)],
  [86, generation(1536, 16, 100, 128, 32)],
  [87, generation(1536, 16, 164, 128, 32)],
  [89, generation(1536, 24, 100, 128, 32)],
  [90, generation(2048, 32, 228, 128, 48)],
  [120, generation(1536, 24, 100, 128, 32)],
];
function generation(
  threadsPerUnit: number,
  workgroupsPerUnit: number,
  sharedKiB: number,
  multiplyAddsPerCycle: number,
  fetchRate: number,
): Generation {
  const sharedPerUnit = sharedKiB * 1024;
  return { threadsPerUnit, workgroupsPerUnit, sharedPerUnit, multiplyAddsPerCycle, fetchRate };
}

export const isFused = (d: DType): boolean => d === dtypes.float32 || d === dtypes.float64;

/** What a driver knows of the GPU itself. */
export type Queried = Pick<Gpu, "computeUnits"> &
  Partial<Pick<Gpu, "threadsPerUnit" | "registersPerUnit" | "sharedPerUnit" | "workgroupsPerUnit">>;

/**
 * Ampere (80) and later multiply matrices of 16-bit elements and copy asynchronously; Ada (89) and later
 * multiply matrices of 8-bit elements.
 */
export function nvidiaGpu(capability: number, queried: Queried): Gpu {
  const [, found = VOLTA] = GENERATIONS.findLast(([from]) => capability >= from) ?? [];
  return {
    arch: `sm_${capability}`,
    warp: 32,
    vectorBytes: 16,
    transactionBytes: 128,
    schedulers: 4,
    registersPerUnit: 65536,
    registersPerThread: 255,
    sharedReserved: capability >= 80 ? 1024 : 0,
    ...found,
    ...queried,
    sharedRate: 128,
    sharedLatency: 24,
    loopInstructions: 640,
    cycles: { multiplyAdd: 1.08, loop: 8, asyncCopy: 3, barrier: 40, store: 16, combine: 30 },
    tensorCores: MMA.filter((c) => capability >= (c.from.itemsize === 1 ? 89 : 80)),
    hasAsyncCopy: capability >= 80,
    fuses: isFused,
  };
}
