// The figures of a GPU behind OpenCL, by which kernels are chosen. The driver tells compute units, threads,
// local memory and how many threads run in lockstep; registers, caches and cycles are assumed to be those of
// a desktop GPU, as for WebGPU (webgpu.ts). None of them was measured: no GPU has run these kernels yet.

import type { Gpu } from "../codegen/target.ts";
import { type DType, dtypes } from "../dtype.ts";

/** What the driver tells of a GPU. */
export interface OpenClGpuFacts {
  /** the name of the device: what a search found holds for the same one only */
  readonly deviceName: string;
  readonly computeUnits: number;
  /** a group is best a multiple of so many threads: those that run in lockstep */
  readonly preferredMultiple: number;
  /** it adds products in one instruction */
  readonly hasFma: boolean;
}

const THREADS_PER_UNIT = 2048;
const REGISTERS_PER_UNIT = 65536;
const SHARED_PER_UNIT = 65536;
const SCHEDULERS = 4;
/** A barrier, a round trip through local memory, an addition, in cycles of a scheduler. */
const [BARRIER, SHARED_LATENCY, ADD_LATENCY] = [40, 24, 6];

export function openclGpu(facts: OpenClGpuFacts, groupSize: number, localBytes: number): Gpu {
  const { deviceName, computeUnits, preferredMultiple, hasFma } = facts;
  return {
    arch: deviceName,
    warp: preferredMultiple,
    vectorBytes: 16,
    transactionBytes: 128,
    computeUnits,
    schedulers: SCHEDULERS,
    registersPerUnit: REGISTERS_PER_UNIT,
    registersPerThread: 255,
    // a group may have an eighth of them, where eight fill a unit
    threadsPerUnit: Math.min(THREADS_PER_UNIT, 8 * groupSize),
    workgroupsPerUnit: 16,
    sharedPerUnit: Math.max(localBytes, SHARED_PER_UNIT),
    sharedReserved: 0,
    multiplyAddsPerCycle: 128,
    fetchRate: 32,
    sharedRate: 128,
    sharedLatency: SHARED_LATENCY,
    loopInstructions: 640,
    cycles: {
      multiplyAdd: hasFma ? 1.08 : 2.16,
      loop: 8,
      // two addresses, a load and a store
      copy: 4,
      barrier: BARRIER,
      store: 16,
      combine: SHARED_LATENCY + ADD_LATENCY,
    },
    tensorCores: [],
    sharedWord: 1,
    hasAsyncCopy: false,
    fuses: (d: DType) => hasFma && d === dtypes.float32,
  };
}
