// The target of AMD's GPUs: the HIP that needs no library (hip.ts), and the figures by which kernels are
// chosen. What the driver tells of a GPU comes in, the rest is by its family, from AMD's instruction set
// manuals and white papers. None of it was measured.

import { GRID } from "../codegen/linear/workgrouplinear.ts";
import { GPU_OPS } from "../codegen/opt/gpuops.ts";
import { gpuLists } from "../codegen/opt/heuristics/gpu.ts";
import { MFMA, WMMA11, WMMA12 } from "../codegen/opt/matrixcores.ts";
import type { Gpu, Renderer } from "../codegen/target.ts";
import { scalarOf } from "../dtype.ts";
import { AMDLanguage } from "./hip.ts";
import { MANY, MANY_GROUPS, rendererFor } from "./languages.ts";
import { isFused } from "./nvidia.ts";

/** What differs between families. */
type Family = Pick<
  Gpu,
  | "warp"
  | "schedulers"
  | "registersPerUnit"
  | "registersPerThread"
  | "threadsPerUnit"
  | "workgroupsPerUnit"
  | "multiplyAddsPerCycle"
  | "sharedLatency"
  | "loopInstructions"
  | "tensorCores"
>;

/** Four SIMD units of 16 lanes; each thread may have 256 registers and as many accumulation registers. */
const CDNA2: Family = {
  warp: 64,
  schedulers: 4,
  registersPerUnit: 4 * 512 * 64,
  registersPerThread: 512,
  threadsPerUnit: 4 * 8 * 64,
  workgroupsPerUnit: 32,
  multiplyAddsPerCycle: 64,
  sharedLatency: 64,
  // 32 KiB that two compute units share, of 8 bytes
  loopInstructions: 2048,
  tensorCores: MFMA,
};
/** The instruction cache is twice as large, and float32 is issued in pairs. */
const CDNA3: Family = { ...CDNA2, multiplyAddsPerCycle: 128, loopInstructions: 4096 };
/**
 * Two SIMD units of 32 lanes. Some pairs of instructions are issued together, which what we write seldom
 * allows.
 */
const RDNA3: Family = {
  warp: 32,
  schedulers: 2,
  registersPerUnit: 2 * 1536 * 32,
  registersPerThread: 256,
  threadsPerUnit: 2 * 16 * 32,
  workgroupsPerUnit: 16,
  multiplyAddsPerCycle: 64,
  sharedLatency: 30,
  // 32 KiB for each pair of compute units
  loopInstructions: 2048,
  tensorCores: WMMA11,
};
const RDNA4: Family = { ...RDNA3, tensorCores: WMMA12 };

/** The GPUs that kernels are compiled for, by the name of their instruction set. */
const FAMILIES: Readonly<Record<string, Family>> = {
  gfx90a: CDNA2,
  gfx942: CDNA3,
  gfx1100: RDNA3,
  gfx1101: RDNA3,
  // the smaller ones have two thirds of the registers
  gfx1102: { ...RDNA3, registersPerUnit: 2 * 1024 * 32 },
  gfx1200: RDNA4,
  gfx1201: RDNA4,
};
export const AMD_ARCHS: readonly string[] = Object.keys(FAMILIES);

/** What the kernel driver tells. */
export type AmdFacts = Pick<Gpu, "computeUnits">;

const ADD_LATENCY = 6;
/** Bytes that a compute unit hands on in a cycle. */
const WRITE_RATE = 64;

function amdGpu(arch: string, family: Family, facts: AmdFacts): Gpu {
  const { warp, schedulers, multiplyAddsPerCycle, sharedLatency } = family;
  return {
    arch,
    vectorBytes: 16,
    transactionBytes: 128,
    // RDNA has 128 KiB for two compute units
    sharedPerUnit: 65536,
    sharedReserved: 0,
    ...family,
    ...facts,
    fetchRate: 64,
    sharedRate: 128,
    cycles: {
      multiplyAdd: (warp * schedulers) / multiplyAddsPerCycle,
      loop: 8,
      // two addresses, a load and a store
      copy: 4,
      barrier: 40,
      store: (warp * 4) / (WRITE_RATE / schedulers),
      combine: sharedLatency + ADD_LATENCY,
    },
    sharedWord: 1,
    hasAsyncCopy: false,
    fuses: isFused,
  };
}

const base = rendererFor(
  AMDLanguage,
  {
    name: "AMD",
    grid: GRID,
    globalMax: [MANY_GROUPS, 65535, 65535],
    localMax: [1024, 1024, 1024],
    sharedMax: 65536,
    maxBuffers: MANY,
  },
  { bfloat16: "bits" },
);

/**
 * The renderer for one GPU, by the name of its instruction set (gfx1100); undefined: it is not known here.
 */
export function amdFor(arch: string, facts: AmdFacts): Renderer<string> | undefined {
  const family = FAMILIES[arch];
  if (family === undefined) return undefined;
  return {
    ...base,
    optOps: GPU_OPS,
    heuristic: gpuLists,
    gpu: amdGpu(arch, family, facts),
    // a MULACC of the user rounds twice; those that round once come from linearize, into sums
    has: (op, d) => base.has(op, d) && (op !== "MULACC" || !isFused(scalarOf(d))),
  };
}
/** A common one, for those who look at kernels. */
export const AMDRenderer = amdFor("gfx1100", { computeUnits: 96 }) as Renderer<string>;
