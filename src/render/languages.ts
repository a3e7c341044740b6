// The C-like languages as tables: what each calls its types, functions, address spaces and threads, and
// the renderers made of them with the limits of their devices. Nothing here walks a kernel; cstyle.ts does.

import { GRID } from "../codegen/linear/workgrouplinear.ts";
import { CPU_OPS, GRID_OPS } from "../codegen/opt/cpuops.ts";
import { GPU_OPS } from "../codegen/opt/gpuops.ts";
import { cpuLists } from "../codegen/opt/heuristics/cpu.ts";
import { gpuLists } from "../codegen/opt/heuristics/gpu.ts";
import { COMMON_CORE, type Renderer, type Support, type Target } from "../codegen/target.ts";
import { type DType, dtypes, SMALL_FLOATS, scalarOf } from "../dtype.ts";
import { isLibraryFunction } from "../ops.ts";
import { type CStyleLanguage, renderCStyle } from "./cstyle.ts";
import { negateHelpers, withNegations } from "./cudanegate.ts";
import { cudaBounds, cudaWarp } from "./cudawarp.ts";
import { isFused, nvidiaGpu, type Queried } from "./nvidia.ts";
import { cstyleOps, type Words } from "./spelling.ts";
import { C_TYPES, FUNCTIONS, HEX, indexLane, LL, libm, noHelper, typeNames, XYZW } from "./typenames.ts";
import { type Vectors, vectorPreamble, vectorSimd } from "./vectors.ts";

// ---- C ----

const clangWords: Words = {
  typeName: typeNames(C_TYPES),
  functions: FUNCTIONS,
  call: libm,
  infinity: "INFINITY",
  nan: "NAN",
  suffix: LL,
};

/** gcc has no __fp16 on x86, and clang before 15 no _Float16. */
const HALF = `#ifdef __clang__
typedef __fp16 half;
#else
typedef _Float16 half;
#endif`;

/** One pair of int16 times another; the sum wraps. */
const DOT2 = `static inline int dot2(int a, int b) {
  return (int)((unsigned)((short)a*(short)b)+(unsigned)((a>>16)*(b>>16)));
}`;

const CALLS = new RegExp(
  `\\b(?:${[...FUNCTIONS, "sqrt", "trunc", "fmod"].join("|")})f?\\(|\\b(?:INFINITY|NAN)\\b`,
);

/** C for clang and gcc. */
export const ClangLanguage: CStyleLanguage = {
  ...clangWords,
  kernelPrefix: "",
  bufferPrefix: "",
  smemPrefix: "",
  smemAlign: "__attribute__((aligned(64))) ",
  prefixForCast: false,
  argIntPrefix: "const int",
  barrier: "",
  warp: undefined,
  staticShared: Infinity,
  launchBounds: () => "",
  float4: "(float4)",
  vectorBrackets: ["{", "}"],
  usesPtrArithmetic: false,
  extraArgs: [],
  codeForWorkitem: undefined,
  codeForOp: { ...cstyleOps(clangWords), DOT2: (_, a, b) => `dot2(${a},${b})` },
  lane: indexLane,
  // no function: clang 14 returns no __fp16
  bitcast: (to, from, x) =>
    `((union { ${clangWords.typeName(from)} a; ${clangWords.typeName(to)} b; }){ ${x} }).b`,
  bitcastHelper: noHelper,
  hasVectors: true,
  fused: false,
  // without -fwrapv clang knows that an index does not wrap, and counts addresses up instead
  wrapsSigned: false,
  // two buffers of different types may be one memory
  flags: ["-ffp-contract=off", "-fno-math-errno", "-fno-strict-aliasing"],
  preamble: ({ scalars, body }) => [
    ...(CALLS.test(body) ? ["#include <math.h>"] : []),
    ...(scalars.has(dtypes.float16) ? [HALF] : []),
    ...(/\bdot2\(/.test(body) ? [DOT2] : []),
    ...vectorPreamble(body, clangWords.typeName),
  ],
};

// ---- CUDA ----

/** NVRTC brings no headers: infinity and NaN are spelt through their bits. */
const cudaWords: Words = {
  typeName: typeNames(
    { ...C_TYPES, bool: "bool", bfloat16: "bfloat16" },
    {
      int64: "longlong",
      uint64: "ulonglong",
      // half2 is a name of cuda_fp16.h
      float16: "halfx",
      bfloat16: "bfloat16x",
    },
  ),
  functions: FUNCTIONS,
  call: libm,
  infinity: "__int_as_float(0x7f800000)",
  nan: "__int_as_float(0x7fc00000)",
  suffix: LL,
};

const plainOps = cstyleOps(cudaWords);
const cudaOps = { ...plainOps, ...withNegations(plainOps, cudaWords.typeName) };

/** CUDA has vectors up to four lanes, and none of half or bool: the others are structs. */
const cudaVector = (d: DType): string => {
  const [s, v] = [cudaWords.typeName(scalarOf(d)), cudaWords.typeName(d)];
  const names = Array.from({ length: d.count }, (_, i) => cudaLaneName(i));
  const fields = names.map((n) => `${s} ${n};`).join(" ");
  const make = `static __device__ inline ${v} make_${v}(${names.map((n) => `${s} ${n}`).join(", ")})`;
  return `struct __align__(${Math.min(16, d.itemsize)}) ${v} { ${fields} };
${make} { ${v} r; ${names.map((n) => `r.${n} = ${n};`).join(" ")} return r; }`;
};
const cudaLaneName = (i: number): string => XYZW[i] ?? `s${HEX[i]}`;
const isBuiltinInCUDA = (d: DType): boolean =>
  d.count <= 4 && ![dtypes.bool, dtypes.float16, dtypes.bfloat16].includes(scalarOf(d));

/** Converted by one instruction, and without a header. */
const CUDA_BFLOAT16 = `struct __align__(2) bfloat16 {
  unsigned short bits;
  bfloat16() = default;
  __device__ explicit bfloat16(float x) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  __device__ operator float() const { return __uint_as_float((unsigned)bits << 16); }
};`;

const CUDA_BITCAST = `template <class T, class F> static __device__ inline T bitcast(F x) {
  T y;
  memcpy(&y, &x, sizeof(y));
  return y;
}`;

export const CUDALanguage: CStyleLanguage = {
  ...cudaWords,
  kernelPrefix: 'extern "C" __global__ ',
  bufferPrefix: "",
  smemPrefix: "__shared__ ",
  smemAlign: "__align__(16) ",
  prefixForCast: false,
  argIntPrefix: "const int",
  barrier: "__syncthreads();",
  warp: cudaWarp,
  staticShared: 49152,
  launchBounds: cudaBounds,
  float4: "make_float4",
  vectorBrackets: ["(", ")"],
  usesPtrArithmetic: false,
  extraArgs: [],
  codeForWorkitem: { g: (dim) => `blockIdx.${XYZW[dim]}`, l: (dim) => `threadIdx.${XYZW[dim]}` },
  codeForOp: {
    ...cudaOps,
    MULACC: (d, ...xs) => (isFused(d) ? libm("fma", d, ...xs) : cudaOps.MULACC(d, ...xs)),
  },
  lane: (v, i) => `${v}.${cudaLaneName(i)}`,
  bitcast: (to, _, x) => `bitcast<${cudaWords.typeName(to)}>(${x})`,
  bitcastHelper: () => CUDA_BITCAST,
  hasVectors: false,
  fused: false,
  wrapsSigned: false,
  flags: ["--fmad=false"],
  preamble: ({ scalars, vectors, body }) => [
    ...(scalars.has(dtypes.float16) ? ["#include <cuda_fp16.h>"] : []),
    ...(scalars.has(dtypes.bfloat16) ? [CUDA_BFLOAT16] : []),
    ...negateHelpers(body),
    ...[...vectors].filter((d) => !isBuiltinInCUDA(d)).map(cudaVector),
  ],
};

// ---- the renderers ----

type LanguageLimits = Pick<Target, "name" | "grid" | "globalMax" | "localMax" | "sharedMax" | "maxBuffers">;

/** Codegen clamps casts and guards divisions for all of them: C leaves both undefined. */
export const rendererFor = (
  language: CStyleLanguage,
  limits: LanguageLimits,
  lacks: Readonly<Record<string, Support>>,
): Renderer<string> => ({
  ...limits,
  support: (d) => lacks[scalarOf(d).name] ?? (SMALL_FLOATS.has(scalarOf(d)) ? "bits" : "native"),
  // CUDA's powf is 4 ulp off
  has: (op, d) => language.codeForOp[op] !== undefined && (op !== "POW" || scalarOf(d) === dtypes.float64),
  saturatingCast: false,
  ieee: true,
  safeDivision: false,
  hasThreads: false,
  optOps: limits.grid !== undefined ? GRID_OPS : CPU_OPS,
  heuristic: cpuLists,
  core: COMMON_CORE,
  simd: undefined,
  gpu: undefined,
  render: (name, uops) => renderCStyle(language, name, uops),
});

/** workgroups along a dimension */
export const MANY_GROUPS = 2 ** 31 - 1;
/** No kernel needs as many buffers. */
export const MANY = 500;

/** C of the host, as loops, one value at a time. */
export const ClangRenderer: Renderer<string> = rendererFor(
  ClangLanguage,
  { name: "CLANG", grid: undefined, globalMax: [], localMax: [], sharedMax: 1 << 18, maxBuffers: MANY },
  { float16: "storage", bfloat16: "bits" },
);

/**
 * C of the host with the vectors of its processor. The C library's functions take one value: they are spelt
 * out. A MULACC of the user rounds twice; those that round once come from linearize, into sums.
 */
export const clangRenderer = (vectors: Vectors): Renderer<string> => ({
  ...ClangRenderer,
  hasThreads: true,
  simd: vectorSimd(vectors),
  has: (op, d) =>
    ClangRenderer.has(op, d) &&
    (scalarOf(d) !== dtypes.float32 || !(isLibraryFunction(op) || (vectors.fused && op === "MULACC"))),
  render: (name, uops) => renderCStyle({ ...ClangLanguage, fused: vectors.fused }, name, uops),
});
const cudaRenderer = rendererFor(
  CUDALanguage,
  {
    name: "CUDA",
    grid: GRID,
    globalMax: [MANY_GROUPS, 65535, 65535],
    localMax: [1024, 1024, 64],
    sharedMax: 49152,
    // pointers in 4 KB of parameters
    maxBuffers: MANY,
  },
  { bfloat16: "storage" },
);
/**
 * NVIDIA's GPUs from Ampere on; cudaFor takes away what older ones lack. A MULACC of the user rounds twice;
 * those that round once come from linearize, into sums.
 */
export const CUDARenderer: Renderer<string> = {
  ...cudaRenderer,
  optOps: GPU_OPS,
  heuristic: gpuLists,
  gpu: nvidiaGpu(90, { computeUnits: 132 }),
  has: (op, d) => cudaRenderer.has(op, d) && (op !== "MULACC" || !isFused(scalarOf(d))),
};
/** The renderer for one GPU: its compute capability, and what the driver tells of it. */
export const cudaFor = (base: Renderer<string>, capability: number, queried: Queried): Renderer<string> =>
  base.gpu === undefined ? base : { ...base, gpu: nvidiaGpu(capability, queried) };
