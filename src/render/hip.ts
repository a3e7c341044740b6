// HIP, the C++ of AMD's GPUs, as a table like those of languages.ts. HIPLanguage calls the functions of
// AMD's device library, as programs do that are linked with it. AMDLanguage, which the device AMD compiles,
// needs no library: thread ids, roots and shuffles are the compiler's builtins, and codegen spells out the
// rest.

import { GRID } from "../codegen/linear/workgrouplinear.ts";
import type { Renderer } from "../codegen/target.ts";
import { type DType, dtypes, scalarOf } from "../dtype.ts";
import { amdBounds, amdWarp } from "./amdwarp.ts";
import type { BodyFacts, CStyleLanguage } from "./cstyle.ts";
import { MANY, MANY_GROUPS, rendererFor } from "./languages.ts";
import { isFused } from "./nvidia.ts";
import { cstyleOps, type Words } from "./spelling.ts";
import { C_TYPES, FUNCTIONS, indexLane, LL, libm, noHelper, typeNames } from "./typenames.ts";

const hipTypes = typeNames({ ...C_TYPES, bool: "bool", float16: "_Float16" });
const BITS: Readonly<Record<string, number>> = { float16: 16, float32: 32, float64: 64 };
const hipWords: Words = {
  typeName: hipTypes,
  functions: FUNCTIONS,
  call: (fn, d, ...xs) => `__ocml_${fn}_f${BITS[d.name]}(${xs.join(",")})`,
  infinity: "__builtin_inff()",
  nan: '__builtin_nanf("")',
  suffix: LL,
};
const hipOps = cstyleOps(hipWords);

const HIP_PREFIX = `extern "C" __attribute__((device)) __attribute__((const)) size_t __ockl_get_local_id(unsigned int);
extern "C" __attribute__((device)) __attribute__((const)) size_t __ockl_get_group_id(unsigned int);
extern "C" __attribute__((device)) __attribute__((const)) size_t __ockl_get_local_size(unsigned int);
extern "C" {\n${[dtypes.float32, dtypes.float64, dtypes.float16]
  .map((d) => {
    const [t, n] = [hipTypes(d), BITS[d.name]];
    return `  __attribute__((device)) __attribute__((const)) ${t} __ocml_fmax_f${n}(${t}, ${t});
  __attribute__((device)) __attribute__((pure)) ${t} __ocml_exp2_f${n}(${t});
  __attribute__((device)) __attribute__((pure)) ${t} __ocml_log2_f${n}(${t});
  __attribute__((device)) __attribute__((const)) ${t} __ocml_sqrt_f${n}(${t});
  __attribute__((device)) ${t} __ocml_sin_f${n}(${t});\n`;
  })
  .join("")}}\nextern "C" __attribute__((global))`;

/** The functions of ocml that HIP_PREFIX does not declare. */
const hipDeclarations = (body: string): string[] => {
  const called = new Set(body.match(/__ocml_\w+_f\d+/g));
  return [...called]
    .filter((f) => !HIP_PREFIX.includes(f))
    .map((f) => {
      const t = hipTypes(
        dtypes.all.find((d) => d.isFloat && f.endsWith(`f${BITS[d.name]}`)) ?? dtypes.float32,
      );
      const args = f.includes("fmod") || f.includes("pow") ? `${t}, ${t}` : t;
      return `extern "C" __attribute__((device)) __attribute__((const)) ${t} ${f}(${args});`;
    });
};

export const HIPLanguage: CStyleLanguage = {
  ...hipWords,
  kernelPrefix: HIP_PREFIX,
  bufferPrefix: "",
  smemPrefix: "__attribute__((shared)) ",
  smemAlign: "__attribute__((aligned(16))) ",
  prefixForCast: false,
  argIntPrefix: "const int",
  barrier:
    '__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");',
  warp: undefined,
  staticShared: Infinity,
  launchBounds: () => "",
  float4: "(float4)",
  vectorBrackets: ["{", "}"],
  usesPtrArithmetic: false,
  extraArgs: [],
  codeForWorkitem: { g: (dim) => `__ockl_get_group_id(${dim})`, l: (dim) => `__ockl_get_local_id(${dim})` },
  codeForOp: {
    ...hipOps,
    // ocml's fmax drops a NaN
    MAX: (d, a = "", b = "") =>
      d.isFloat
        ? `((${a}!=${a})?${a}:((${b}!=${b})?${b}:__ocml_fmax_f${BITS[d.name]}(${a},${b})))`
        : hipOps.MAX(d, a, b),
  },
  lane: indexLane,
  bitcast: (to, _, x) => `__builtin_bit_cast(${hipTypes(to)}, ${x})`,
  bitcastHelper: noHelper,
  hasVectors: false,
  fused: false,
  wrapsSigned: true,
  // HIP_PREFIX says size_t, which only HIP's own headers would define
  flags: ["-fwrapv", "-ffp-contract=off", "-Dsize_t=__SIZE_TYPE__"],
  preamble: ({ vectors, body }) => [
    ...hipDeclarations(body),
    ...[...vectors].map((d) => {
      const s = scalarOf(d);
      return `typedef ${hipTypes(s)} ${hipTypes(d)} __attribute__((ext_vector_type(${d.count})));`;
    }),
  ],
};

/** Without a library: what the compiler has itself. */
const amdWords: Words = {
  ...hipWords,
  typeName: hipTypes,
  functions: new Set(),
  call: (fn, d, ...xs) => libm(`__builtin_${fn}`, d, ...xs).replace("(half)", "(_Float16)"),
};
const amdOps = cstyleOps(amdWords);
const amdVector = (d: DType): string => {
  // a vector of bool would have a bit for each lane
  const lane = scalarOf(d) === dtypes.bool ? "unsigned char" : amdWords.typeName(scalarOf(d));
  return `typedef ${lane} ${amdWords.typeName(d)} __attribute__((ext_vector_type(${d.count})));`;
};
const DIMENSION = "xyz";

/** What the device AMD compiles. */
export const AMDLanguage: CStyleLanguage = {
  ...HIPLanguage,
  ...amdWords,
  kernelPrefix: 'extern "C" __attribute__((global)) ',
  warp: amdWarp,
  launchBounds: amdBounds,
  codeForWorkitem: {
    g: (dim) => `__builtin_amdgcn_workgroup_id_${DIMENSION[dim]}()`,
    l: (dim) => `__builtin_amdgcn_workitem_id_${DIMENSION[dim]}()`,
  },
  codeForOp: {
    ...amdOps,
    MULACC: (d, ...xs) => (isFused(d) ? amdWords.call("fma", d, ...xs) : amdOps.MULACC(d, ...xs)),
  },
  bitcast: (to, _, x) => `__builtin_bit_cast(${amdWords.typeName(to)}, ${x})`,
  flags: ["-fwrapv", "-ffp-contract=off"],
  preamble: ({ vectors }: BodyFacts) => [...vectors].map(amdVector),
};

export const HIPRenderer: Renderer<string> = rendererFor(
  HIPLanguage,
  {
    name: "HIP",
    grid: GRID,
    globalMax: [MANY_GROUPS, 65535, 65535],
    localMax: [1024, 1024, 1024],
    sharedMax: 65536,
    maxBuffers: MANY,
  },
  { bfloat16: "bits" },
);
