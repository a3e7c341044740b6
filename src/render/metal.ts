// The Metal Shading Language, as tables like those of languages.ts: the seeds' language, which spells any
// list of UOps, and what a device adds to it (threads of a SIMD group that exchange values and multiply
// matrices, vectors of 16 bytes). Also the figures of Apple's GPUs by which kernels are chosen.

import { GRID } from "../codegen/linear/workgrouplinear.ts";
import { GPU_OPS } from "../codegen/opt/gpuops.ts";
import { gpuLists } from "../codegen/opt/heuristics/gpu.ts";
import { SIMDGROUP_MATRICES } from "../codegen/opt/simdgroupmatrix.ts";
import type { Gpu, Renderer } from "../codegen/target.ts";
import { type DType, dtypes, scalarOf } from "../dtype.ts";
import { InternalError } from "../errors.ts";
import { range } from "../helpers.ts";
import { type BodyFacts, type CStyleLanguage, renderCStyle } from "./cstyle.ts";
import { MANY_GROUPS, rendererFor } from "./languages.ts";
import { metalWarp, shuffleHelpers } from "./metalwarp.ts";
import { cstyleOps, type Words } from "./spelling.ts";
import { dotLane, GPU_TYPES, L, noHelper, overloaded, typeNames, XYZW } from "./typenames.ts";

// ---- the language ----

const scalarNames = typeNames({ ...GPU_TYPES, bool: "bool" }, { bfloat16: "ushort" });
/** Built-in vectors have up to four lanes; longer ones are words with the same bits. */
const LANES = 4;
const typeName = (d: DType): string => (d.count <= LANES ? scalarNames(d) : scalarNames(wordsOf(d)));
const wordsOf = (d: DType): DType => {
  if (d.itemsize > 4 * LANES) throw new InternalError(`Metal has no vector of ${d.count} ${scalarOf(d)}`);
  return dtypes.uint32.vec(d.itemsize / 4);
};

/** The precise namespace keeps its accuracy whatever the host says about fast math. */
const metalWords: Words = {
  typeName,
  functions: new Set(["exp2", "log2", "sin", "cos"]),
  call: overloaded("precise::"),
  infinity: "INFINITY",
  nan: "NAN",
  suffix: L,
};

/** The part of a longer vector that has the bits of one word: its type. */
const partOf = (d: DType): DType => scalarOf(d).vec(4 / scalarOf(d).itemsize);
const longVector = (d: DType, lanes: readonly string[]): string | undefined => {
  if (d.count <= LANES) return undefined;
  const part = partOf(d);
  const words = range(wordsOf(d).count).map((i) => {
    const own = lanes.slice(i * part.count, (i + 1) * part.count);
    return `as_type<uint>(${scalarNames(part)}(${own.join(",")}))`;
  });
  return `${typeName(d)}(${words.join(",")})`;
};
const lane = (v: string, i: number, d: DType): string => {
  if (d.count <= LANES) return dotLane(v, i);
  const part = partOf(d);
  return `as_type<${scalarNames(part)}>(${v}.${XYZW[Math.floor(i / part.count)]}).${XYZW[i % part.count]}`;
};

const metalOps = cstyleOps(metalWords);

/** The host must compile with fast math off: with it, NaN and infinity are assumed away. */
export const MetalLanguage: CStyleLanguage = {
  ...metalWords,
  kernelPrefix: "kernel ",
  bufferPrefix: "device ",
  smemPrefix: "threadgroup ",
  smemAlign: "alignas(16) ",
  prefixForCast: true,
  argIntPrefix: "constant int&",
  barrier: "threadgroup_barrier(mem_flags::mem_threadgroup);",
  warp: undefined,
  staticShared: Infinity,
  launchBounds: () => "",
  float4: "float4",
  vectorBrackets: ["(", ")"],
  longVector,
  usesPtrArithmetic: true,
  extraArgs: ["uint3 gid [[threadgroup_position_in_grid]]", "uint3 lid [[thread_position_in_threadgroup]]"],
  codeForWorkitem: { g: (dim) => `gid.${XYZW[dim]}`, l: (dim) => `lid.${XYZW[dim]}` },
  codeForOp: metalOps,
  lane,
  bitcast: (to, _, x) => `as_type<${typeName(to)}>(${x})`,
  bitcastHelper: noHelper,
  hasVectors: false,
  fused: false,
  wrapsSigned: false,
  flags: ["-fno-fast-math"],
  preamble: () => ["#include <metal_stdlib>", "using namespace metal;"],
};

const isFused = (d: DType): boolean => d === dtypes.float32;

/**
 * What a device compiles. Only fma() rounds once: a compiler may not join a product and a sum by itself. The
 * attribute before a kernel has the compiler leave registers for all threads of the threadgroup.
 */
const MetalDeviceLanguage: CStyleLanguage = {
  ...MetalLanguage,
  warp: metalWarp,
  attributes: ({ threads }) => `[[max_total_threads_per_threadgroup(${threads})]] `,
  codeForOp: {
    ...metalOps,
    MULACC: (d, ...xs) => (isFused(d) ? `fma(${xs.join(",")})` : metalOps.MULACC(d, ...xs)),
  },
  preamble: (facts: BodyFacts) => [
    ...MetalLanguage.preamble(facts),
    ...([...facts.scalars].some((d) => d.isFloat) ? ["#pragma clang fp contract(off)"] : []),
    ...shuffleHelpers(facts),
  ],
};

// ---- the target ----

/** What a GPU says of itself. */
export interface MetalFacts {
  readonly name: string;
  /**
   * SIMD groups of 32 threads exchange values and multiply matrices: Apple's own GPUs from M1 on. Others say
   * nothing of their SIMD groups before a kernel is compiled.
   */
  readonly isApple: boolean;
  /** threads of a threadgroup, in all and along each dimension */
  readonly threads: number;
  readonly threadsByDimension: readonly number[];
  readonly threadgroupMemory: number;
}
/** Those of the first M1. */
const LEAST: MetalFacts = {
  name: "Apple M1",
  isApple: true,
  threads: 1024,
  threadsByDimension: [1024, 1024, 1024],
  threadgroupMemory: 32768,
};

const WARP = 32;
/** Cores, which Metal does not tell, by what Apple calls a chip: the fewest that are sold under the name. */
const CORES: readonly (readonly [suffix: string, cores: number])[] = [
  ["Ultra", 48],
  ["Max", 24],
  ["Pro", 14],
  ["", 8],
];
const coresOf = (name: string): number =>
  (CORES.find(([suffix]) => name.endsWith(suffix)) as (typeof CORES)[number])[1];

/**
 * Of a core of Apple's GPUs, as published microbenchmarks of M1 and M2 have them; assumed for all others.
 * 208 KiB of registers, of which a thread has up to 128 words; a cache line of 128 bytes; four schedulers
 * that each do 32 multiply-adds in a cycle. The cycles of steps are assumed: nothing here was measured.
 */
function gpuOf({ name, isApple, threads, threadgroupMemory }: MetalFacts): Gpu {
  return {
    arch: name,
    warp: isApple ? WARP : 1,
    vectorBytes: 16,
    transactionBytes: 128,
    computeUnits: coresOf(name),
    schedulers: 4,
    registersPerUnit: 53248,
    registersPerThread: 128,
    threadsPerUnit: Math.min(2048, 8 * threads),
    workgroupsPerUnit: 16,
    sharedPerUnit: Math.max(threadgroupMemory, 61440),
    sharedReserved: 0,
    multiplyAddsPerCycle: 128,
    fetchRate: 32,
    sharedRate: 128,
    sharedLatency: 24,
    // 12 KiB of instructions of about 8 bytes
    loopInstructions: 1280,
    cycles: { multiplyAdd: 1.08, loop: 8, copy: 4, barrier: 40, store: 16, combine: 30 },
    tensorCores: isApple ? SIMDGROUP_MATRICES : [],
    sharedWord: 1,
    hasAsyncCopy: false,
    fuses: isFused,
  };
}

/** What the language has: any Metal GPU can have its kernels, written without OptOps. */
export const MetalRenderer: Renderer<string> = rendererFor(
  MetalLanguage,
  {
    name: "METAL",
    grid: GRID,
    globalMax: [MANY_GROUPS, MANY_GROUPS, MANY_GROUPS],
    localMax: [1024, 1024, 1024],
    sharedMax: 32768,
    // the argument table of a function
    maxBuffers: 31,
  },
  { bfloat16: "bits", float64: "none" },
);

/** Entries of the argument table that are left for variables. */
const VARIABLES = 5;
/**
 * The renderer for one GPU. Subnormal float32 may count as 0 there. A MULACC of the user rounds twice; those
 * that round once come from linearize, into sums.
 */
export function metalFor(facts: MetalFacts = LEAST): Renderer<string> {
  return {
    ...MetalRenderer,
    ieee: false,
    maxBuffers: MetalRenderer.maxBuffers - VARIABLES,
    localMax: facts.threadsByDimension.map((n) => Math.min(n, facts.threads)),
    sharedMax: facts.threadgroupMemory,
    optOps: GPU_OPS,
    heuristic: gpuLists,
    gpu: gpuOf(facts),
    has: (op, d) => MetalRenderer.has(op, d) && (op !== "MULACC" || !isFused(scalarOf(d))),
    render: (name, uops) => renderCStyle(MetalDeviceLanguage, name, uops),
  };
}
