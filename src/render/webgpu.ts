// The target of WebGPU: limits as the device has them, and the figures of its GPU by which kernels are
// chosen. WebGPU tells neither compute units nor registers; those are assumed, and what the API does tell
// (subgroups, workgroup memory, threads) replaces what it can.

import { GRID, gpuLists, WEBGPU_OPS } from "#codegen/gputuning";
import type { MatrixSides } from "../codegen/opt/subgroupmatrix.ts";
import { COMMON_CORE, type Gpu, type Renderer, type Support } from "../codegen/target.ts";
import { type DType, scalarOf } from "../dtype.ts";
import { renderWGSL } from "./wgsl.ts";
import type { SubgroupMatrices } from "./wgslmatrix.ts";
import { hasType, NUMBER } from "./wgslops.ts";

/** What a device says of itself. */
export interface WebGpuFacts {
  /** a driver that computes on the CPU */
  readonly isSoftware: boolean;
  readonly hasHalf: boolean;
  /** threads that exchange values without memory; 1: none do */
  readonly subgroup: number;
  readonly workgroupsPerDimension: number;
  readonly threads: number;
  readonly threadsByDimension: readonly number[];
  readonly workgroupMemory: number;
  readonly buffers: number;
  /** bytes of a kernel's variables that need no buffer */
  readonly immediates: number;
  /** products of matrices that its subgroups compute */
  readonly matrices: readonly MatrixSides[];
  /** the name of its architecture: what a search found holds for the same one only */
  readonly architecture: string;
}
/** What every device has. */
export const LEAST_WEBGPU: WebGpuFacts = {
  isSoftware: false,
  hasHalf: false,
  subgroup: 1,
  workgroupsPerDimension: 65535,
  threads: 256,
  threadsByDimension: [256, 256, 64],
  workgroupMemory: 16384,
  buffers: 8,
  immediates: 0,
  matrices: [],
  architecture: "unknown",
};

const isFused = (d: DType): boolean => d.isFloat;

/**
 * Those of a desktop, although laptops and phones have fewer: workgroups that are too small cost a small GPU
 * little, workgroups that are too few leave most of a large one idle.
 */
const COMPUTE_UNITS = 128;
const THREADS_PER_UNIT = 2048;
const REGISTERS_PER_UNIT = 65536;
const SCHEDULERS = 4;
/** A barrier, a round trip through workgroup memory, an addition, in cycles of a scheduler. */
const [BARRIER, SHARED_LATENCY, ADD_LATENCY] = [40, 24, 6];
/** Bytes in a cycle from the cache, and from workgroup memory. */
const [FETCH_RATE, SHARED_RATE] = [32, 128];
/** Where a CPU does the work, a barrier switches from thread to thread: cycles for each of them. */
const SWITCH = 100;

function gpuOf(facts: WebGpuFacts, matrixSupport: SubgroupMatrices | undefined): Gpu {
  const { isSoftware, subgroup, threads, workgroupMemory, architecture, matrices } = facts;
  const lanes = Math.max(subgroup, 1);
  const barrier = isSoftware ? SWITCH * threads : BARRIER;
  return {
    arch: architecture,
    warp: lanes,
    vectorBytes: 16,
    transactionBytes: 128,
    computeUnits: COMPUTE_UNITS,
    schedulers: SCHEDULERS,
    registersPerUnit: REGISTERS_PER_UNIT,
    registersPerThread: 255,
    // a workgroup may have an eighth of them, where eight fill a unit
    threadsPerUnit: Math.min(THREADS_PER_UNIT, 8 * threads),
    workgroupsPerUnit: 16,
    sharedPerUnit: Math.max(workgroupMemory, 65536),
    sharedReserved: 0,
    multiplyAddsPerCycle: 128,
    fetchRate: FETCH_RATE,
    // a CPU's workgroup memory is memory like any other
    sharedRate: isSoftware ? FETCH_RATE : SHARED_RATE,
    sharedLatency: SHARED_LATENCY,
    loopInstructions: 640,
    cycles: {
      multiplyAdd: 1.08,
      loop: 8,
      // two addresses, a load and a store
      copy: 4,
      barrier,
      store: 16,
      combine: isSoftware ? barrier : SHARED_LATENCY + ADD_LATENCY,
    },
    tensorCores: matrices.map((m) => matrixSupport?.coreOf(m, lanes)).filter((c) => c !== undefined),
    sharedWord: 4,
    hasAsyncCopy: false,
    fuses: isFused,
  };
}

/** `matrices`: what subgroup matrices need, which pages do not load, as no browser has them. */
export function webgpuFor(facts: WebGpuFacts, matrices?: SubgroupMatrices): Renderer<string> {
  const narrow: Readonly<Record<string, Support>> = {
    float16: facts.hasHalf ? "native" : "bits",
    bfloat16: "bits",
    float8e4m3: "bits",
    float8e5m2: "bits",
  };
  return {
    name: "WEBGPU",
    grid: GRID,
    hasThreads: false,
    globalMax: Array(3).fill(facts.workgroupsPerDimension),
    localMax: facts.threadsByDimension.map((n) => Math.min(n, facts.threads)),
    sharedMax: facts.workgroupMemory,
    maxBuffers: facts.buffers,
    support: (d) => narrow[scalarOf(d).name] ?? (hasType(d) ? "native" : "none"),
    // a MULACC of the user rounds twice; those that may round once come from linearize, into sums
    has: (op, d) => Object.hasOwn(NUMBER, op) && (op !== "MULACC" || !isFused(scalarOf(d))),
    saturatingCast: true,
    ieee: false,
    safeDivision: false,
    optOps:
      matrices === undefined || facts.matrices.length === 0 ? WEBGPU_OPS : [...WEBGPU_OPS, ...matrices.ops],
    heuristic: gpuLists,
    core: COMMON_CORE,
    simd: undefined,
    gpu: gpuOf(facts, matrices),
    render: (name, uops) => renderWGSL(name, uops, facts.immediates, matrices?.spelling),
  };
}
/** With what every device has, and 16-bit floats. */
export const WGSLRenderer: Renderer<string> = webgpuFor({ ...LEAST_WEBGPU, hasHalf: true });
