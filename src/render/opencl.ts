// OpenCL C, as tables like those of languages.ts: kernels for a GPU are a grid of threads, with tiles in
// local memory. For the host's own processor, whose drivers are made of clang, they are those of C, loops
// with vectors, of which each thread does a part.

import { GRID } from "../codegen/linear/workgrouplinear.ts";
import { GPU_OPS } from "../codegen/opt/gpuops.ts";
import { gpuLists } from "../codegen/opt/heuristics/gpu.ts";
import type { OptRecord } from "../codegen/opt/record.ts";
import { SHARED } from "../codegen/opt/shared.ts";
import type { ImageLimits, Renderer, Support } from "../codegen/target.ts";
import { type DType, dtypes, scalarOf } from "../dtype.ts";
import { ArgumentError } from "../errors.ts";
import { type BodyFacts, type CStyleLanguage, type ImageWords, PIXEL_INDEX, renderCStyle } from "./cstyle.ts";
import { ClangRenderer, clangRenderer, MANY, MANY_GROUPS, rendererFor } from "./languages.ts";
import { type OpenClGpuFacts, openclGpu } from "./openclgpu.ts";
import { cstyleOps, type Words } from "./spelling.ts";
import { FUNCTIONS, GPU_TYPES, HEX, indexLane, noHelper, overloaded, typeNames } from "./typenames.ts";
import { type Vectors, vectorPreamble } from "./vectors.ts";

/** A kernel may not take pointers to bool: one byte, 0 or 1. */
const openclWords: Words = {
  typeName: typeNames(
    { ...GPU_TYPES, bool: "uchar", float16: "ushort" },
    { bool: "uchar", float16: "ushort", bfloat16: "ushort" },
  ),
  functions: FUNCTIONS,
  call: overloaded(""),
  infinity: "INFINITY",
  nan: "NAN",
  suffix: { uint32: "u", int64: "L", uint64: "UL" },
};

/** What is outside of an image reads as zeros (passes/pixels.ts counts on it). */
const openclImages: ImageWords = {
  parameter: (isWritten) => `${isWritten ? "write_only" : "read_only"} image2d_t`,
  sampler: "const sampler_t smp = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;",
  read: (image, at) => `read_imagef(${image}, smp, ${at})`,
  write: (image, at, value) => `write_imagef(${image}, ${at}, ${value})`,
};

const openclPragmas = ({ scalars }: BodyFacts): string[] => [
  ...(scalars.has(dtypes.float64) ? ["#pragma OPENCL EXTENSION cl_khr_fp64 : enable"] : []),
  // a fused multiply-add rounds once where evaluate rounds twice
  ...([...scalars].some((d) => d.isFloat) ? ["#pragma OPENCL FP_CONTRACT OFF"] : []),
];

export const OpenCLLanguage: CStyleLanguage = {
  ...openclWords,
  kernelPrefix: "__kernel ",
  bufferPrefix: "__global ",
  smemPrefix: "__local ",
  smemAlign: "__attribute__((aligned(16))) ",
  prefixForCast: true,
  argIntPrefix: "const int",
  barrier: "barrier(CLK_LOCAL_MEM_FENCE);",
  images: openclImages,
  warp: undefined,
  staticShared: Infinity,
  launchBounds: () => "",
  float4: "(float4)",
  vectorBrackets: ["(", ")"],
  usesPtrArithmetic: false,
  extraArgs: [],
  codeForWorkitem: { g: (dim) => `get_group_id(${dim})`, l: (dim) => `get_local_id(${dim})` },
  codeForOp: cstyleOps(openclWords),
  lane: (v, i) => `${v}.s${HEX[i]}`,
  bitcast: (to, _, x) => `as_${openclWords.typeName(to)}(${x})`,
  bitcastHelper: noHelper,
  hasVectors: false,
  fused: false,
  wrapsSigned: false,
  flags: [],
  preamble: openclPragmas,
};

const plainOps = cstyleOps(openclWords);
/** For a GPU that adds products in one instruction: sums of float32 are made of it. */
const OpenCLFmaLanguage: CStyleLanguage = {
  ...OpenCLLanguage,
  codeForOp: {
    ...plainOps,
    MULACC: (d, ...xs) => (d === dtypes.float32 ? `fma(${xs.join(",")})` : plainOps.MULACC(d, ...xs)),
  },
};

/** Vectors of bools are masks, as in C. */
const hostWords: Words = {
  ...openclWords,
  typeName: typeNames({ ...GPU_TYPES, bool: "uchar", float16: "ushort", bfloat16: "ushort" }),
};
/**
 * For the host's processor, whose drivers are made of clang: vectors are those of C, under other names than
 * the language's own, and arrays belong to a thread.
 */
const OpenCLHostLanguage: CStyleLanguage = {
  ...OpenCLLanguage,
  ...hostWords,
  codeForOp: cstyleOps(hostWords),
  bitcast: (to, _, x) => `as_${hostWords.typeName(to)}(${x})`,
  smemPrefix: "",
  smemAlign: "__attribute__((aligned(64))) ",
  codeForWorkitem: undefined,
  partOf: (size) => [
    `const int begin = (int)((long)get_group_id(0)*${size}/get_num_groups(0));`,
    `const int end = (int)((long)(get_group_id(0)+1)*${size}/get_num_groups(0));`,
  ],
  lane: indexLane,
  hasVectors: true,
  preamble: (facts) => {
    const own = `typedef int ${hostWords.typeName(PIXEL_INDEX)} `;
    const vectors = vectorPreamble(facts.body, hostWords.typeName).filter((line) => !line.startsWith(own));
    const names = vectors.flatMap((line) => /^typedef \S+ (\w+) /.exec(line)?.[1] ?? []);
    return [...openclPragmas(facts), ...names.map((n) => `#define ${n} ${n}_`), ...vectors];
  },
};

/**
 * Half is an extension that pocl and many drivers lack: it moves as bits. The least that OpenCL promises
 * otherwise.
 */
export const OpenCLRenderer: Renderer<string> = rendererFor(
  OpenCLLanguage,
  {
    name: "OPENCL",
    grid: GRID,
    globalMax: [MANY_GROUPS, MANY_GROUPS, MANY_GROUPS],
    localMax: [256, 256, 256],
    sharedMax: 32768,
    // pointers in 1 KB of parameters
    maxBuffers: 120,
  },
  { float16: "bits", bfloat16: "bits" },
);

/** What an OpenCL device says of itself. */
export interface OpenClFacts {
  /** it is the host's processor, with these vectors */
  readonly vectors: Vectors | undefined;
  readonly hasDoubles: boolean;
  /** threads of a group, in all and in each dimension */
  readonly groupSize: number;
  readonly itemSizes: readonly number[];
  readonly localBytes: number;
  readonly parameterBytes: number;
  /** the largest image; undefined: it has none */
  readonly images: ImageLimits | undefined;
  /** it is a GPU, of which the driver says this */
  readonly gpu: OpenClGpuFacts | undefined;
  /** its quotients and roots of float32 are rounded as IEEE 754 wants */
  readonly isRounded: boolean;
}
/** The renderer for one device. */
export function openclFor(facts: OpenClFacts): Renderer<string> {
  const { vectors, gpu, images, hasDoubles, isRounded, groupSize, itemSizes, localBytes, parameterBytes } =
    facts;
  const common = {
    // some bytes are left for variables
    maxBuffers: Math.min(MANY, Math.floor(parameterBytes / 8) - 8),
    ieee: isRounded,
    ...(images && { images }),
    support: (d: DType): Support =>
      scalarOf(d) === dtypes.float64 && !hasDoubles ? "none" : OpenCLRenderer.support(d),
  };
  if (vectors !== undefined) return { ...OpenCLRenderer, ...onProcessor(vectors), ...common };
  const localMax = itemSizes.map((n) => Math.min(n, groupSize));
  return { ...OpenCLRenderer, ...common, localMax, sharedMax: localBytes, ...(gpu && onGpu(gpu, facts)) };
}

/** Images have a cache of their own: only parts of buffers go to local memory. */
const SHARED_BUFFERS: OptRecord<"SHARED"> = {
  ...SHARED,
  transform: (graph, ...args) => {
    const image = graph.arena.nodes(graph.sink).find((u) => u.op === "DEFINE_GLOBAL" && u.dtype.image);
    if (image === undefined) return SHARED.transform?.(graph, ...args) ?? graph;
    throw new ArgumentError(`SHARED: the kernel has the image ${image.dtype}; leave SHARED out`);
  },
};

/** Kernels as a grid of threads, with tiles in local memory and loads of several elements at once. */
function onGpu(
  facts: OpenClGpuFacts,
  { groupSize, localBytes }: Pick<OpenClFacts, "groupSize" | "localBytes">,
): Partial<Renderer<string>> {
  const gpu = openclGpu(facts, groupSize, localBytes);
  const isFused = (d: DType): boolean => gpu.fuses(scalarOf(d));
  const language = facts.hasFma ? OpenCLFmaLanguage : OpenCLLanguage;
  return {
    // shuffles are an extension that few drivers have: linearize hears of threads that exchange nothing
    grid: {
      ...GRID,
      linearize: (graph, opts, target) =>
        GRID.linearize(graph, opts, { ...target, gpu: { ...gpu, warp: 1 } }),
    },
    optOps: GPU_OPS.map((o) => (o.name === SHARED.name ? SHARED_BUFFERS : o)),
    heuristic: gpuLists,
    gpu,
    // a MULACC of the user rounds twice; those that round once come from linearize, into sums
    has: (op, d) => OpenCLRenderer.has(op, d) && (op !== "MULACC" || !isFused(d)),
    render: (name, uops) => renderCStyle(language, name, uops),
  };
}

/** Kernels as loops with vectors, of which each thread does a part. */
function onProcessor(vectors: Vectors): Partial<Renderer<string>> {
  const { grid, globalMax, localMax, sharedMax, optOps, heuristic } = ClangRenderer;
  const { hasThreads, simd, has } = clangRenderer(vectors);
  const language = { ...OpenCLHostLanguage, fused: vectors.fused };
  return {
    ...{ grid, globalMax, localMax, sharedMax, optOps, heuristic, hasThreads, simd },
    has: (op, d) => has(op, d) && language.codeForOp[op] !== undefined,
    render: (name, uops) => renderCStyle(language, name, uops),
  };
}
