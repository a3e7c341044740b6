// Rendered kernels through real compilers: C (gcc, clang) and OpenCL (pocl) run and are compared with ops.ts
// value by value; CUDA, HIP and Metal are compiled only. A compiler that is not
// installed skips its tests and says so.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, type TestContext, test } from "vitest";
import { sourceOf } from "../../src/codegen/target.ts";
import { compile, findCompiler } from "../../src/devices/clang/compiler.ts";
import { type DType, dtypes } from "../../src/dtype.ts";
import { CompileError, DeviceError } from "../../src/errors.ts";
import { type Koffi, openKoffi } from "../../src/host/koffi.ts";
import type { AluOp } from "../../src/ops.ts";
import { type CStyleLanguage, renderCStyle, uopsToCStyle } from "../../src/render/cstyle.ts";
import { HIPLanguage } from "../../src/render/hip.ts";
import { ClangLanguage, CUDALanguage } from "../../src/render/languages.ts";
import { MetalLanguage } from "../../src/render/metal.ts";
import { OpenCLLanguage } from "../../src/render/opencl.ts";
import { load } from "../host/native.ts";
import {
  allCases,
  aluCase,
  type Case,
  castCase,
  differences,
  encode,
  groupCase,
  overflowCase,
  widened,
} from "./kernels.ts";
import { METAL_STDLIB } from "./metalstub.ts";
import { OpenCL } from "./opencl.ts";

const { float16, bfloat16, float64, all } = dtypes;
const without = (...lacking: DType[]): DType[] => all.filter((d) => !lacking.includes(d));

const isThere = (command: string): boolean => spawnSync(command, ["--version"]).status === 0;
function skip(ctx: TestContext, reason: string): never {
  console.log(`skip: ${reason}`);
  return ctx.skip(reason) as never;
}

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gradloom-test-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

// ---- C ----

/** Runs a case with every buffer in koffi's memory, as the CLANG device does. */
function runC(koffi: Koffi, compiler: string, c: Case): Uint8Array[] {
  const binary = compile(findCompiler([compiler]), c.name, renderCStyle(ClangLanguage, c.name, c.uops));
  const kernel = load(koffi, binary);
  const outs = c.outputs.map((o) => koffi.alloc("uint8_t", Math.max(16, o.values.length * o.dtype.itemsize)));
  const ins = c.inputs.map(({ dtype, values }) => {
    const bytes = encode(dtype, values);
    const address = koffi.alloc("uint8_t", Math.max(16, bytes.length));
    new Uint8Array(koffi.view(address, bytes.length)).set(bytes);
    return address;
  });
  kernel.run([...outs, ...ins], c.vals);
  const results = c.outputs.map((o, i) => {
    const bytes = o.values.length * o.dtype.itemsize;
    return new Uint8Array(koffi.view(outs[i] as bigint, bytes)).slice();
  });
  for (const address of [...outs, ...ins]) koffi.free(address);
  return results;
}

/** The ops that a language has; codegen decomposes the others. */
const spelt =
  (language: CStyleLanguage) =>
  (op: AluOp): boolean =>
    language.codeForOp[op] !== undefined;
const C_CASES = allCases(without(float16, bfloat16), without(bfloat16), spelt(ClangLanguage));

const VECTOR_CASES = [
  ...[dtypes.int8, dtypes.int32, dtypes.int64].map((d) => overflowCase(d)),
  ...without(float16, bfloat16).map((d) => aluCase(d)),
  ...without(bfloat16).map((d) => castCase(d, without(bfloat16))),
];

describe.each(["gcc", "clang"])("C through %s", (compiler) => {
  test("every op, cast and constant agrees with ops.ts", async (ctx) => {
    if (!isThere(compiler)) skip(ctx, `${compiler} is not installed`);
    const koffi = await openKoffi("CLANG");
    const wrong = C_CASES.flatMap((c) => differences(c, runC(koffi, compiler, c)));
    expect(wrong).toEqual([]);
  });

  test.for([4, 8])("every op and cast on vectors of %d agrees with ops.ts", async (width, ctx) => {
    if (!isThere(compiler)) skip(ctx, `${compiler} is not installed`);
    const koffi = await openKoffi("CLANG");
    const wrong = VECTOR_CASES.flatMap((c) => {
      const wide = widened(c, width);
      return differences(wide, runC(koffi, compiler, wide));
    });
    expect(wrong).toEqual([]);
  });

  test("a kernel of a hundred buffers", async (ctx) => {
    if (!isThere(compiler)) skip(ctx, `${compiler} is not installed`);
    const koffi = await openKoffi("CLANG");
    const args = Array.from({ length: 100 }, (_, i) => `int* data${i}`).join(", ");
    const source = `void many(${args}, const int n) {\n  data0[0] = data99[1]+n;\n}`;
    const kernel = load(
      koffi,
      compile(findCompiler([compiler]), "many", sourceOf(source, { buffers: 100, vals: 1 })),
    );
    const memory = koffi.alloc("uint8_t", 16);
    new Int32Array(koffi.view(memory, 16))[1] = 40;
    kernel.run(Array<bigint>(100).fill(memory), [2]);
    expect(new Int32Array(koffi.view(memory, 16))[0]).toBe(42);
    koffi.free(memory);
  });

  test("a kernel that does not compile", (ctx) => {
    if (!isThere(compiler)) skip(ctx, `${compiler} is not installed`);
    const bad = "void bad(int* data0) {\n  data0[0] = nothing;\n}";
    const attempt = () => compile(findCompiler([compiler]), "bad", sourceOf(bad, { buffers: 1 }));
    expect(attempt).toThrow(CompileError);
    expect(attempt).toThrow(/refused the kernel bad:.*nothing.*source:\nvoid bad/s);
  });
});

test("no compiler, no koffi: the message says what to install", async () => {
  expect(() => findCompiler(["no-such-cc", "no-such-gcc"])).toThrow(DeviceError);
  expect(() => findCompiler(["no-such-cc"])).toThrow(/tried no-such-cc.*install clang or gcc/);
  const missing = openKoffi("CLANG", () => Promise.reject(new Error("Cannot find package 'koffi'")));
  await expect(missing).rejects.toThrow(DeviceError);
  await expect(openKoffi("CLANG", () => Promise.reject(new Error("gone")))).rejects.toThrow(
    /npm install koffi/,
  );
});

// ---- OpenCL ----

test("OpenCL: every op, cast and constant agrees with ops.ts", async (ctx) => {
  const cl = await OpenCL.open().catch((e: Error) => skip(ctx, `no OpenCL device: ${e.message}`));
  const native = without(float16, bfloat16);
  const cases = [...allCases(native, native, spelt(OpenCLLanguage)), groupCase()];
  const sources = cases.map((c) => uopsToCStyle(OpenCLLanguage, c.name, c.uops));
  const program = cl.build(sources.join("\n"));
  const wrong = cases.flatMap((c) => differences(c, program.run(c)));
  program.release();
  expect(wrong).toEqual([]);
});

// ---- compiled only ----

/**
 * Many kernels in one file: each in its own namespace, so that their helpers do
 * not meet; includes come first.
 */
function oneFile(language: CStyleLanguage, cases: readonly Case[]): string {
  const texts = cases.map((c) => uopsToCStyle(language, c.name, c.uops));
  const isInclude = (line: string) => line.startsWith("#include");
  const includes = new Set(texts.flatMap((t) => t.split("\n").filter(isInclude)));
  const bodies = texts.map((t, i) => {
    const rest = t.split("\n").filter((line) => !isInclude(line) && !line.startsWith("using namespace"));
    return `namespace k${i} {\n${rest.join("\n")}\n}`;
  });
  const using = texts[0]?.includes("using namespace metal;") ? ["using namespace metal;"] : [];
  return [...includes, ...using, ...bodies].join("\n");
}

function runCompiler(command: string, args: readonly string[], file: string, text: string): string {
  writeFileSync(join(folder, file), text);
  const answer = spawnSync(command, [...args, join(folder, file)], { encoding: "utf8", cwd: folder });
  return answer.status === 0
    ? ""
    : `${answer.stderr}${answer.stdout}`.slice(0, 4000) || `ended by ${answer.signal}`;
}

test("CUDA compiles with nvcc", { timeout: 120_000 }, (ctx) => {
  if (!isThere("nvcc")) skip(ctx, "nvcc is not installed");
  const native = without(bfloat16);
  const text = oneFile(CUDALanguage, [...allCases(native, native, spelt(CUDALanguage)), groupCase()]);
  const args = ["-cubin", "-arch=sm_90", ...CUDALanguage.flags, "-o", "out.cubin"];
  expect(runCompiler("nvcc", args, "kernels.cu", text)).toBe("");
});

test("HIP compiles with clang-19", { timeout: 60_000 }, (ctx) => {
  if (!isThere("clang-19")) skip(ctx, "clang-19 is not installed");
  const native = without(bfloat16);
  const text = oneFile(HIPLanguage, [...allCases(native, native, spelt(HIPLanguage)), groupCase()]);
  const hip = ["-x", "hip", "--offload-arch=gfx1100", "--offload-device-only", "--no-gpu-bundle-output"];
  // not linked: the functions of ocml come from AMD's device library
  const args = [
    ...hip,
    "-nogpulib",
    "-nogpuinc",
    "-O1",
    "-w",
    ...HIPLanguage.flags,
    "-c",
    "-emit-llvm",
    "-o",
    "out.bc",
  ];
  expect(runCompiler("clang-19", args, "kernels.hip", text)).toBe("");
});

test("Metal is well formed for clang++ and a stub of its library", (ctx) => {
  if (!isThere("clang++")) skip(ctx, "clang++ is not installed");
  const native = without(bfloat16, float64);
  const text = oneFile(MetalLanguage, [...allCases(native, native, spelt(MetalLanguage)), groupCase()]);
  mkdirSync(join(folder, "include"), { recursive: true });
  writeFileSync(join(folder, "include", "metal_stdlib"), METAL_STDLIB);
  const half = ["-Xclang", "-fallow-half-arguments-and-returns", "-Xclang", "-fnative-half-type"];
  const args = ["-std=c++14", "-fsyntax-only", "-w", ...half, `-I${join(folder, "include")}`, "-x", "c++"];
  expect(runCompiler("clang++", args, "kernels.metal", text)).toBe("");
});
