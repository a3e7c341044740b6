// The figures of NVIDIA's GPUs by which kernels are chosen: what the driver tells of a GPU, the rest by its
// compute capability. In goes the capability (90 is Hopper), out comes the Gpu of a target.

import { MMA } from "../codegen/opt/mma.ts";
import type { Gpu, GpuCycles } from "../codegen/target.ts";
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

const WARP = 32;
/** Parts of a multiprocessor, each with a scheduler that issues one instruction a cycle. */
const SCHEDULERS = 4;
/** Cycles; 19 to 29 from Volta to Hopper, as published microbenchmarks have it. */
const SHARED_LATENCY = 24;
/** Of an addition, four cycles, and of the instruction that uses it. */
const ADD_LATENCY = 6;
/** Bytes that a multiprocessor hands on in a cycle: one sector of a cache line. */
const WRITE_RATE = 32;

/**
 * What steps cost a scheduler. Lanes, latencies and rates are those of the generation; instructions are those
 * that the renderer writes, alike for all of them. Two figures have no formula and were measured on Hopper:
 * the issue slots that a multiply-add loses, and the barrier. They are the same for all here because a
 * multiprocessor has had four partitions with two register banks each since Volta.
 */
function cyclesOf({ multiplyAddsPerCycle }: Generation): GpuCycles {
  return {
    // a warp of 32 threads takes two cycles where a scheduler has 16 lanes; 8 % of the slots are lost
    multiplyAdd: ((WARP * SCHEDULERS) / multiplyAddsPerCycle) * 1.08,
    // the counter, a comparison and a branch; four addresses; one slot until the branch is taken
    loop: 8,
    // the address here, the address there, the copy itself
    copy: 3,
    barrier: 40,
    // 4 bytes a thread, at a quarter of the rate of the multiprocessor
    store: (WARP * 4) / (WRITE_RATE / SCHEDULERS),
    // a shuffle goes through the crossbar of shared memory, and then the two values are added
    combine: SHARED_LATENCY + ADD_LATENCY,
  };
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
    warp: WARP,
    vectorBytes: 16,
    transactionBytes: 128,
    schedulers: SCHEDULERS,
    registersPerUnit: 65536,
    registersPerThread: 255,
    sharedReserved: capability >= 80 ? 1024 : 0,
    ...found,
    ...queried,
    sharedRate: 128,
    sharedLatency: SHARED_LATENCY,
    loopInstructions: 640, // of 16 bytes: they fit into the 12 KiB next to a scheduler
    cycles: cyclesOf(found),
    tensorCores: MMA.filter((c) => capability >= (c.from.itemsize === 1 ? 89 : 80)),
    sharedWord: 1,
    hasAsyncCopy: capability >= 80,
    fuses: isFused,
  };
}
