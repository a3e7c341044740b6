// The texts of the C-like languages: the kernels printed in the seeds to the letter, what is inlined and what
// gets a name, and how literals and each language's own words are spelt. What the texts
// mean is tested in compile.test.ts.

import { describe, expect, test } from "vitest";
import type { Source } from "../../src/codegen/target.ts";
import { JSRenderer } from "../../src/devices/js.ts";
import { type DType, dtypes, PtrDType, type Value } from "../../src/dtype.ts";
import type { AluOp } from "../../src/ops.ts";
import { type CStyleLanguage, uopsToCStyle } from "../../src/render/cstyle.ts";
import { HIPLanguage, HIPRenderer } from "../../src/render/hip.ts";
import { ClangLanguage, ClangRenderer, CUDALanguage, CUDARenderer } from "../../src/render/languages.ts";
import { MetalLanguage, MetalRenderer } from "../../src/render/metal.ts";
import { OpenCLLanguage, OpenCLRenderer } from "../../src/render/opencl.ts";
import { pythonFloat } from "../../src/render/spelling.ts";
import { WASMRenderer } from "../../src/render/wasm/renderer.ts";
import { WGSLRenderer } from "../../src/render/webgpu.ts";
import { UOpGraph } from "../../src/uop/list.ts";
import type { UOp } from "../../src/uop/node.ts";
import { dotProduct, groupCase, structureCase } from "./kernels.ts";

const METAL_ARGS = "uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]";
const METAL = "#include <metal_stdlib>\nusing namespace metal;\n";
const { int, float } = dtypes;

describe("the seeds' kernels", () => {
  const BODY = `  int acc0 = 0;
  for (int ridx0 = 0; ridx0 < 2; ridx0++) {
    int val0 = data1[ridx0];
    int val1 = data2[ridx0];
    acc0 = ((val0*val1)+acc0);
  }
  data0[0] = acc0;
}`;

  test("r_2 in Metal", () => {
    expect(uopsToCStyle(MetalLanguage, "r_2", dotProduct())).toBe(
      `${METAL}kernel void r_2(device int* data0, const device int* data1, const device int* data2, ${METAL_ARGS}) {
  int acc0 = 0;
  for (int ridx0 = 0; ridx0 < 2; ridx0++) {
    int val0 = *(data1+ridx0);
    int val1 = *(data2+ridx0);
    acc0 = ((val0*val1)+acc0);
  }
  *(data0+0) = acc0;
}`,
    );
  });
  test("r_2 in C, CUDA and OpenCL", () => {
    const [clang, cuda, opencl] = [ClangLanguage, CUDALanguage, OpenCLLanguage].map((l) =>
      uopsToCStyle(l, "r_2", dotProduct()),
    );
    expect(clang).toBe(`void r_2(int* data0, const int* data1, const int* data2) {\n${BODY}`);
    expect(cuda).toBe(
      `extern "C" __global__ void r_2(int* data0, const int* data1, const int* data2) {\n${BODY}`,
    );
    const args = "__global int* data0, const __global int* data1, const __global int* data2";
    expect(opencl).toBe(`__kernel void r_2(${args}) {\n${BODY}`);
  });
  test("r_2 in HIP", () => {
    const attribute = (...names: string[]) => names.map((n) => `__attribute__((${n}))`).join(" ");
    const ocml = (
      t: string,
      n: number,
    ) => `  ${attribute("device", "const")} ${t} __ocml_fmax_f${n}(${t}, ${t});
  ${attribute("device", "pure")} ${t} __ocml_exp2_f${n}(${t});
  ${attribute("device", "pure")} ${t} __ocml_log2_f${n}(${t});
  ${attribute("device", "const")} ${t} __ocml_sqrt_f${n}(${t});
  ${attribute("device")} ${t} __ocml_sin_f${n}(${t});
`;
    const ockl = ["local_id", "group_id", "local_size"].map(
      (f) => `extern "C" ${attribute("device", "const")} size_t __ockl_get_${f}(unsigned int);\n`,
    );
    const prefix = `${ockl.join("")}extern "C" {\n${ocml("float", 32)}${ocml("double", 64)}${ocml("_Float16", 16)}}\n`;
    const head = `extern "C" __attribute__((global))void r_2(int* data0, const int* data1, const int* data2) {\n`;
    expect(uopsToCStyle(HIPLanguage, "r_2", dotProduct())).toBe(prefix + head + BODY);
  });

  test("r_4: a cast is inlined", () => {
    const g = new UOpGraph();
    const data0 = g.add("DEFINE_GLOBAL", PtrDType(float), [], [0, "data0", true]);
    const data1 = g.add("DEFINE_GLOBAL", PtrDType(int), [], [1, "data1", false]);
    const acc = g.add("DEFINE_ACC", int, [], 0);
    const zero = g.add("CONST", int, [], 0);
    const loop = g.add("LOOP", int, [zero, g.add("CONST", int, [], 4)]);
    const sum = g.add("ALU", int, [g.add("LOAD", int, [data1, loop]), acc], "ADD");
    const phi = g.add("PHI", int, [acc, sum, loop]);
    g.add("ENDLOOP", undefined, [loop]);
    const mean = g.add("ALU", float, [g.add("CAST", float, [phi]), g.add("CONST", float, [], 0.25)], "MUL");
    g.add("STORE", undefined, [data0, zero, mean]);
    expect(uopsToCStyle(MetalLanguage, "r_4", g)).toBe(
      `${METAL}kernel void r_4(device float* data0, const device int* data1, ${METAL_ARGS}) {
  int acc0 = 0;
  for (int ridx0 = 0; ridx0 < 4; ridx0++) {
    int val0 = *(data1+ridx0);
    acc0 = (val0+acc0);
  }
  *(data0+0) = ((float)(acc0)*0.25f);
}`,
    );
  });
  test("r_4n1: a value with two users gets a name", () => {
    const g = new UOpGraph();
    const data0 = g.add("DEFINE_GLOBAL", PtrDType(float), [], [0, "data0", true]);
    const data1 = g.add("DEFINE_GLOBAL", PtrDType(int), [], [1, "data1", false]);
    const data2 = g.add("DEFINE_GLOBAL", PtrDType(float), [], [2, "data2", false]);
    const acc = g.add("DEFINE_ACC", float, [], 0);
    const zero = g.add("CONST", int, [], 0);
    const mean = g.add("LOAD", float, [data2, zero]);
    const loop = g.add("LOOP", int, [zero, g.add("CONST", int, [], 4)]);
    const x = g.add("CAST", float, [g.add("LOAD", int, [data1, loop])]);
    const d = g.add("ALU", float, [x, mean], "SUB");
    const sum = g.add("ALU", float, [g.add("ALU", float, [d, d], "MUL"), acc], "ADD");
    const phi = g.add("PHI", float, [acc, sum, loop]);
    g.add("ENDLOOP", undefined, [loop]);
    const variance = g.add("ALU", float, [phi, g.add("CONST", float, [], 1 / 3)], "MUL");
    g.add("STORE", undefined, [data0, zero, variance]);
    const args = `device float* data0, const device int* data1, const device float* data2, ${METAL_ARGS}`;
    expect(uopsToCStyle(MetalLanguage, "r_4n1", g)).toBe(`${METAL}kernel void r_4n1(${args}) {
  float acc0 = 0.0f;
  float val0 = *(data2+0);
  for (int ridx0 = 0; ridx0 < 4; ridx0++) {
    int val1 = *(data1+ridx0);
    float alu0 = ((float)(val1)-val0);
    acc0 = ((alu0*alu0)+acc0);
  }
  *(data0+0) = (acc0*0.3333333333333333f);
}`);
  });
});

describe("the seeds' examples built by hand", () => {
  test("nothing", () => {
    expect(uopsToCStyle(MetalLanguage, "test", [])).toBe(`${METAL}kernel void test(${METAL_ARGS}) {\n\n}`);
  });
  // the seed passes float16 here and prints the text of an int
  test.each([
    [int, "int"],
    [dtypes.float16, "half"],
  ] as const)("one buffer of %s", (dtype, name) => {
    const uops = new UOpGraph();
    uops.add("DEFINE_GLOBAL", PtrDType(dtype), [], [0, "data0", true]);
    const text = `${METAL}kernel void test(device ${name}* data0, ${METAL_ARGS}) {\n\n}`;
    expect(uopsToCStyle(MetalLanguage, "test", uops)).toBe(text);
  });
  test("store 199", () => {
    const uops = new UOpGraph();
    const data0 = uops.add("DEFINE_GLOBAL", PtrDType(int), [], [0, "data0", true]);
    const value = uops.add("CONST", int, [], 199);
    const zero = uops.add("CONST", int, [], 0);
    uops.add("STORE", float, [data0, zero, value]);
    const head = `${METAL}kernel void test(device int* data0, ${METAL_ARGS}) {`;
    expect(uopsToCStyle(MetalLanguage, "test", uops)).toBe(`${head}\n  *(data0+0) = 199;\n}`);
  });
  test("store 199 + 200, folded", () => {
    const uops = new UOpGraph();
    const data0 = uops.add("DEFINE_GLOBAL", PtrDType(int), [], [0, "data0", true]);
    const sum = uops.add(
      "ALU",
      int,
      [uops.add("CONST", int, [], 199), uops.add("CONST", int, [], 200)],
      "ADD",
    );
    uops.add("STORE", float, [data0, uops.add("CONST", int, [], 0), sum]);
    const head = `${METAL}kernel void test(device int* data0, ${METAL_ARGS}) {`;
    expect(uopsToCStyle(MetalLanguage, "test", uops)).toBe(`${head}\n  *(data0+0) = 399;\n}`);
  });
});

/** The lines between the braces of a kernel that stores op(x, y, …) of fresh loads. */
function aluText(language: CStyleLanguage, op: AluOp, d: DType, arity: number): string {
  const g = new UOpGraph();
  const out = g.add("DEFINE_GLOBAL", PtrDType(d), [], [0, "data0", true]);
  const input = g.add("DEFINE_GLOBAL", PtrDType(d), [], [1, "data1", false]);
  const at = (i: number) => g.add("CONST", int, [], i);
  const srcs = Array.from({ length: arity }, (_, i) => g.add("LOAD", d, [input, at(i)]));
  g.add("STORE", undefined, [out, at(0), g.add("ALU", d, srcs, op)]);
  const last = uopsToCStyle(language, "k", g).split("\n").at(-2) ?? "";
  return last.replace(/^.* = /, "").replace(/;$/, "");
}
function constText(language: CStyleLanguage, d: DType, value: Value): string {
  const g = new UOpGraph();
  const out = g.add("DEFINE_GLOBAL", PtrDType(d), [], [0, "data0", true]);
  g.add("STORE", undefined, [out, g.add("CONST", int, [], 0), g.add("CONST", d, [], value)]);
  return (uopsToCStyle(language, "k", g).split("\n").at(-2) ?? "").replace(/^.* = /, "").replace(/;$/, "");
}

describe("ops", () => {
  test.each([
    [ClangLanguage, "exp2f(val0)", "fmodf(val0,val1)"],
    [CUDALanguage, "exp2f(val0)", "fmodf(val0,val1)"],
    [MetalLanguage, "precise::exp2(val0)", "precise::fmod(val0,val1)"],
    [HIPLanguage, "__ocml_exp2_f32(val0)", "__ocml_fmod_f32(val0,val1)"],
    [OpenCLLanguage, "exp2(val0)", "fmod(val0,val1)"],
  ])("math functions of language %#", (language, exp2, fmod) => {
    expect(aluText(language, "EXP2", float, 1)).toBe(exp2);
    expect(aluText(language, "MOD", float, 2)).toBe(fmod);
  });
  test("double and half", () => {
    expect(aluText(ClangLanguage, "SIN", dtypes.double, 1)).toBe("sin(val0)");
    expect(aluText(CUDALanguage, "SQRT", dtypes.half, 1)).toBe("(half)(sqrtf((float)(val0)))");
    expect(aluText(HIPLanguage, "SQRT", dtypes.half, 1)).toBe("__ocml_sqrt_f16(val0)");
  });
  test("MAX keeps NaN", () => {
    expect(aluText(ClangLanguage, "MAX", float, 2)).toBe("(((val0>val1)|(val0!=val0))?val0:val1)");
    expect(aluText(HIPLanguage, "MAX", float, 2)).toContain("__ocml_fmax_f32(val0,val1)");
    expect(aluText(ClangLanguage, "MAX", int, 2)).toBe("((val0>val1)?val0:val1)");
  });
  test("narrow integers are cut, counts are taken modulo the width", () => {
    expect(aluText(ClangLanguage, "ADD", dtypes.int8, 2)).toBe("(signed char)(val0+val1)");
    expect(aluText(ClangLanguage, "MUL", dtypes.uint16, 2)).toBe(
      "(unsigned short)((unsigned int)(val0)*val1)",
    );
    expect(aluText(ClangLanguage, "SHL", int, 2)).toBe("(val0<<(val1&31))");
    expect(aluText(ClangLanguage, "SHR", dtypes.long, 2)).toBe("(val0>>(val1&63))");
  });
  test("bool", () => {
    expect(aluText(ClangLanguage, "ADD", dtypes.bool, 2)).toBe("(val0|val1)");
    expect(aluText(ClangLanguage, "MUL", dtypes.bool, 2)).toBe("(val0&val1)");
  });
  test("an op that makes no sense is our bug", () => {
    expect(() => aluText(ClangLanguage, "SIN", int, 1)).toThrow(
      /internal: SIN of dtypes.int cannot be rendered/,
    );
  });
});

describe("constants", () => {
  test("floats print as in Python", () => {
    const cases: [number, string][] = [
      [0.25, "0.25"],
      [1 / 3, "0.3333333333333333"],
      [0, "0.0"],
      [-0, "-0.0"],
      [1e20, "1e+20"],
      [1e16, "1e+16"],
      [1e15, "1000000000000000.0"],
      [1e-5, "1e-05"],
      [0.0001, "0.0001"],
      [1.5e-7, "1.5e-07"],
      [1e300, "1e+300"],
      [-2.5, "-2.5"],
      [123456789.125, "123456789.125"],
    ];
    for (const [x, text] of cases) expect(pythonFloat(x)).toBe(text);
    expect(constText(ClangLanguage, float, 1e20)).toBe("1e+20f");
    expect(constText(ClangLanguage, dtypes.double, 0.1)).toBe("0.1");
    expect(constText(MetalLanguage, dtypes.half, 0.5)).toBe("(half)(0.5f)");
  });
  test("what has no literal", () => {
    expect(constText(ClangLanguage, float, Infinity)).toBe("INFINITY");
    expect(constText(ClangLanguage, float, -Infinity)).toBe("(-INFINITY)");
    expect(constText(CUDALanguage, float, NaN)).toBe("__int_as_float(0x7fc00000)");
    expect(constText(HIPLanguage, dtypes.double, Infinity)).toBe("(double)(__builtin_inff())");
    expect(constText(OpenCLLanguage, float, 1e300)).toBe("INFINITY");
  });
  test("integers", () => {
    expect(constText(ClangLanguage, int, -2147483648)).toBe("(-2147483647-1)");
    expect(constText(ClangLanguage, dtypes.uint, 4294967295)).toBe("4294967295u");
    expect(constText(ClangLanguage, dtypes.long, -(2n ** 63n))).toBe("(-9223372036854775807ll-1ll)");
    expect(constText(OpenCLLanguage, dtypes.ulong, 2n ** 64n - 1n)).toBe("18446744073709551615UL");
    expect(constText(ClangLanguage, dtypes.bool, 1)).toBe("1");
  });
});

describe("structure", () => {
  const vectors = (language: CStyleLanguage) => uopsToCStyle(language, "k", structureCase().uops);

  test("a minus before a minus does not become a decrement", () => {
    const g = new UOpGraph();
    const data0 = g.add("DEFINE_GLOBAL", PtrDType(float), [], [0, "data0", true]);
    const zero = g.add("CONST", int, [], 0);
    const x = g.add("LOAD", float, [data0, zero]);
    g.add("STORE", undefined, [
      data0,
      zero,
      g.add("ALU", float, [x, g.add("CONST", float, [], -1.5)], "SUB"),
    ]);
    expect(uopsToCStyle(ClangLanguage, "k", g)).toContain("data0[0] = (val0-(-1.5f));");
  });
  test("threads, workgroup memory, barriers", () => {
    const text = (l: CStyleLanguage) => uopsToCStyle(l, "k", groupCase().uops);
    expect(text(MetalLanguage)).toContain("int gidx0 = gid.x; /* 2 */\n  int lidx0 = lid.x; /* 4 */");
    expect(text(MetalLanguage)).toContain("threadgroup float temp[4];");
    expect(text(CUDALanguage)).toContain(
      "int gidx0 = blockIdx.x; /* 2 */\n  int lidx0 = threadIdx.x; /* 4 */",
    );
    expect(text(CUDALanguage)).toContain("__shared__ float temp[4];");
    expect(text(CUDALanguage)).toContain("__syncthreads();");
    expect(text(HIPLanguage)).toContain("int gidx0 = __ockl_get_group_id(0); /* 2 */");
    expect(text(OpenCLLanguage)).toContain("int lidx0 = get_local_id(0); /* 4 */");
    expect(text(OpenCLLanguage)).toContain("__local float temp[4];");
    expect(() => text(ClangLanguage)).toThrow(/SPECIAL lidx0/);
  });
  test("variables follow the buffers; gates; vectors", () => {
    expect(vectors(MetalLanguage)).toContain("const device float* data1, constant int& n, uint3 gid");
    expect(vectors(ClangLanguage)).toContain("void k(float* data0, const float* data1, const int n) {");
    expect(vectors(ClangLanguage)).toContain("?data1[alu");
    expect(vectors(ClangLanguage)).toContain("if (alu2) data0[2] = val1;");
    expect(vectors(ClangLanguage)).toContain("  if (alu2) {\n    data0[3] = 0.25f;\n  }");
    expect(vectors(CUDALanguage)).toContain("make_float4(");
    expect(vectors(OpenCLLanguage)).toContain("*((__global float4*)(data0+4)) = (float4)(");
    expect(vectors(ClangLanguage)).toContain(
      "typedef float float4 __attribute__((vector_size(16), aligned(4)));",
    );
  });
  test("an expression does not move past the assignment of an accumulator it reads", () => {
    const lines = vectors(ClangLanguage)
      .split("\n")
      .map((l) => l.trim());
    const named = lines.findIndex((l) => l.includes("-1.0f") && l.startsWith("float alu"));
    expect(named).toBeGreaterThan(0);
    expect(lines.findIndex((l) => l.startsWith("acc0 ="))).toBeGreaterThan(named);
  });
  test("a long chain is cut: compilers limit the nesting of brackets", () => {
    const g = new UOpGraph();
    const data0 = g.add("DEFINE_GLOBAL", PtrDType(float), [], [0, "data0", true]);
    const zero = g.add("CONST", int, [], 0);
    const x = g.add("LOAD", float, [data0, zero]);
    let y: UOp = x;
    for (let i = 0; i < 500; i++) y = g.add("ALU", float, [y, x], i % 2 ? "MUL" : "ADD");
    g.add("STORE", undefined, [data0, zero, y]);
    const longest = Math.max(
      ...uopsToCStyle(ClangLanguage, "k", g)
        .split("\n")
        .map((l) => l.split("(").length),
    );
    expect(longest).toBeLessThan(100);
  });
  test("double in OpenCL asks for its extension", () => {
    const g = new UOpGraph();
    g.add("DEFINE_GLOBAL", PtrDType(dtypes.double), [], [0, "data0", true]);
    expect(uopsToCStyle(OpenCLLanguage, "k", g)).toContain("#pragma OPENCL EXTENSION cl_khr_fp64 : enable");
  });
  test("signed overflow that shows is unsigned where the language does not wrap; indices stay plain", () => {
    const g = new UOpGraph();
    const data0 = g.add("DEFINE_GLOBAL", PtrDType(dtypes.bool), [], [0, "data0", true]);
    const data1 = g.add("DEFINE_GLOBAL", PtrDType(int), [], [1, "data1", false]);
    const gidx = g.add("SPECIAL", int, [], [0, "gidx0", 64]);
    const at = g.add("ALU", int, [g.add("ALU", int, [gidx, g.add("CONST", int, [], 4)], "MUL"), gidx], "ADD");
    const x = g.add("LOAD", int, [data1, at]);
    const next = g.add("ALU", int, [x, g.add("CONST", int, [], 1)], "ADD");
    g.add("STORE", undefined, [data0, gidx, g.add("ALU", dtypes.bool, [next, x], "CMPLT")]);
    const text = uopsToCStyle(CUDALanguage, "k", g);
    expect(text).toContain("int val0 = data1[(gidx0*4)+gidx0];");
    expect(text).toContain("((int)((unsigned int)(val0)+(unsigned int)(1))<val0)");
    expect(uopsToCStyle(HIPLanguage, "k", g)).toContain("((val0+1)<val0)");
  });
  test("so is the sum with a constant from which a compiler concludes a sign, and what an AND looks at", () => {
    const text = (build: (g: UOpGraph, x: UOp) => UOp): string => {
      const g = new UOpGraph();
      const [out, data] = [0, 1].map((i) =>
        g.add("DEFINE_GLOBAL", PtrDType(int), [], [i, `data${i}`, i === 0]),
      );
      const at = g.add("SPECIAL", int, [], [0, "gidx0", 64]);
      g.add("STORE", undefined, [out as UOp, at, build(g, g.add("LOAD", int, [data as UOp, at]))]);
      return uopsToCStyle(CUDALanguage, "k", g);
    };
    const plus = (g: UOpGraph, x: UOp, n: number): UOp =>
      g.add("ALU", int, [x, g.add("CONST", int, [], n)], "ADD");
    expect(text((g, x) => plus(g, x, 5))).not.toContain("unsigned");
    expect(text((g, x) => plus(g, x, -(2 ** 31)))).toContain("(unsigned int)(val0)");
    expect(text((g, x) => g.add("ALU", int, [plus(g, x, 5), x], "AND"))).toContain("(unsigned int)(val0)");
  });
  test("a negation that is only stored is unsigned, too: the compiler may make an absolute value of it", () => {
    const absolute = (d: DType): string => {
      const g = new UOpGraph();
      const data0 = g.add("DEFINE_GLOBAL", PtrDType(d), [], [0, "data0", true]);
      const data1 = g.add("DEFINE_GLOBAL", PtrDType(d), [], [1, "data1", false]);
      const gidx = g.add("SPECIAL", int, [], [0, "gidx0", 64]);
      const x = g.add("LOAD", d, [data1, gidx]);
      const below = g.add("ALU", dtypes.bool, [x, g.add("CONST", d, [], 0)], "CMPLT");
      const value = g.add("ALU", d, [below, g.add("ALU", d, [x], "NEG"), x], "WHERE");
      g.add("STORE", undefined, [data0, gidx, value]);
      return uopsToCStyle(CUDALanguage, "k", g);
    };
    expect(absolute(dtypes.int64)).toContain("?(long long)(-(unsigned long long)(val0)):val0)");
    expect(absolute(int)).toContain("?(int)(unsigned int)negated((unsigned int)(val0)):val0)");
  });
  test("CUDA negates integers by their complement where it shows; indices stay plain", () => {
    const negations = (d: DType): string => {
      const g = new UOpGraph();
      const data0 = g.add("DEFINE_GLOBAL", PtrDType(dtypes.bool), [], [0, "data0", true]);
      const data1 = g.add("DEFINE_GLOBAL", PtrDType(d), [], [1, "data1", false]);
      const number = (t: DType, n: number): UOp => g.add("CONST", t, [], n);
      const gidx = g.add("SPECIAL", int, [], [0, "gidx0", 64]);
      const back = g.add("ALU", int, [gidx, number(int, -1)], "MUL");
      const x = g.add("LOAD", d, [data1, g.add("ALU", int, [back, number(int, 63)], "ADD")]);
      const all = [
        g.add("ALU", d, [x], "NEG"),
        g.add("ALU", d, [x, number(d, -1)], "MUL"),
        g.add("ALU", d, [number(d, 0), x], "SUB"),
      ];
      for (const n of all)
        g.add("STORE", undefined, [data0, gidx, g.add("ALU", dtypes.bool, [n, x], "CMPLT")]);
      return uopsToCStyle(CUDALanguage, "k", g);
    };
    for (const d of [dtypes.int8, dtypes.int16, int]) {
      const text = negations(d);
      expect(text.match(/negated\((\(unsigned int\)\()?val0\)/g), text).toHaveLength(3);
      expect(text).toContain("static __device__ inline int negated(int x)");
      expect(text).toContain("data1[(gidx0*-1)+63]");
    }
    expect(negations(dtypes.int64)).not.toContain("negated");
  });
});

test("renderers: limits and types", () => {
  const all = [ClangRenderer, MetalRenderer, CUDARenderer, HIPRenderer, OpenCLRenderer];
  expect(all.map((r) => r.name)).toEqual(["CLANG", "METAL", "CUDA", "HIP", "OPENCL"]);
  expect(all.map((r) => r.grid !== undefined)).toEqual([false, true, true, true, true]);
  expect(all.map((r) => r.support(dtypes.float16))).toEqual([
    "storage",
    "native",
    "native",
    "native",
    "bits",
  ]);
  expect(all.map((r) => r.support(dtypes.float64))).toEqual(["native", "none", "native", "native", "native"]);
  expect(
    all.every(
      (r) =>
        r.support(dtypes.bfloat16) === (r === CUDARenderer ? "storage" : "bits") &&
        !r.safeDivision &&
        !r.saturatingCast,
    ),
  ).toBe(true);
  expect(ClangRenderer.render("r_2", dotProduct()).code).toBe(
    uopsToCStyle(ClangLanguage, "r_2", dotProduct()),
  );
});

describe("what a launch has to know is in fields of the source", () => {
  const factsOf = ({ code: _, binding: __, ...facts }: Source): Omit<Source, "code" | "binding"> => facts;
  const none = { buffers: 0, vals: 0, isPart: false, dynamicShared: 0 };

  test("buffers and variables are counted", () => {
    const { uops } = structureCase();
    for (const r of [ClangRenderer, MetalRenderer, WGSLRenderer, WASMRenderer, JSRenderer])
      expect(factsOf(r.render("k", uops)), r.name).toEqual({ ...none, buffers: 2, vals: 1 });
    expect(factsOf(ClangRenderer.render("k", dotProduct()))).toEqual({ ...none, buffers: 3 });
  });
  test("memory that threads share is declared outside of loops, where OpenCL and Metal want it", () => {
    const g = new UOpGraph();
    const out = g.add("DEFINE_GLOBAL", PtrDType(float), [], [0, "data0", true]);
    const loop = g.add("LOOP", int, [g.add("CONST", int, [], 0), g.add("CONST", int, [], 4)]);
    const temp = g.add("DEFINE_LOCAL", PtrDType(float, true), [], ["temp", 8]);
    g.add("STORE", undefined, [temp, loop, g.add("CONST", float, [], 1)]);
    g.add("STORE", undefined, [out, loop, g.add("LOAD", float, [temp, loop])]);
    g.add("ENDLOOP", undefined, [loop]);
    for (const l of [OpenCLLanguage, MetalLanguage])
      expect(uopsToCStyle(l, "k", g)).toMatch(/\{\n {2}.*(__local|threadgroup) float temp\[8\];\n {2}for/);
    expect(uopsToCStyle(ClangLanguage, "k", g)).toMatch(/\{\n {2}for .*\n {4}.* float temp\[8\];/);
  });
  test("a kernel whose threads each do a part says so", () => {
    const g = new UOpGraph();
    const out = g.add("DEFINE_GLOBAL", PtrDType(int), [], [0, "data0", true]);
    const i = g.add("SPECIAL", int, [], [0, "gidx0", 8]);
    g.add("STORE", undefined, [out, i, i]);
    for (const r of [ClangRenderer, WASMRenderer])
      expect(factsOf(r.render("k", g)), r.name).toEqual({ ...none, buffers: 1, isPart: true });
  });
  test("shared memory beyond what CUDA can declare is given by the launch", () => {
    const kernel = (floats: number): Source<string> => {
      const g = new UOpGraph();
      const out = g.add("DEFINE_GLOBAL", PtrDType(float), [], [0, "data0", true]);
      const temp = g.add("DEFINE_LOCAL", PtrDType(float, true), [], ["temp", floats]);
      const zero = g.add("CONST", int, [], 0);
      g.add("STORE", undefined, [out, zero, g.add("LOAD", float, [temp, zero])]);
      return CUDARenderer.render("k", g);
    };
    expect(factsOf(kernel(12 << 10))).toEqual({ ...none, buffers: 1 });
    expect(kernel(12 << 10).code).toContain(`__shared__ float temp[${12 << 10}];`);
    expect(factsOf(kernel(16 << 10))).toEqual({ ...none, buffers: 1, dynamicShared: 64 << 10 });
    expect(kernel(16 << 10).code).toContain("unsigned char shared_memory[];\n");
  });
});
