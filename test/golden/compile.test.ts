// The golden kernels (pipeline.ts) beyond their texts: real compilers take them, and their values are right
// on every device that is there. A compiler that is not installed skips its test and says so.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Device, DTypeError, dtypes, type Renderer, Tensor } from "gradloom";
import {
  ClangLanguage,
  ClangRenderer,
  CUDALanguage,
  CUDARenderer,
  HIPLanguage,
  HIPRenderer,
  MetalRenderer,
  WGSLRenderer,
} from "gradloom/render";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { METAL_STDLIB } from "../render/metalstub.ts";
import { GOLDENS, type Golden, kernelText } from "./pipeline.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gradloom-golden-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const isThere = (command: string): boolean => spawnSync(command, ["--version"]).status === 0;

/** All kernels in one file, headers and pragmas first; their names differ. */
const batch = (renderer: Renderer): string => {
  const lines = GOLDENS.flatMap((g) => kernelText(renderer, g).split("\n"));
  const isHead = (line: string) => /^(?:#|using namespace)/.test(line);
  return [...new Set(lines.filter(isHead)), ...lines.filter((line) => !isHead(line)), ""].join("\n");
};

/** What the compiler says, warnings too; nothing when it is content. */
function complaints(command: string, args: readonly string[], file: string, text: string): string {
  writeFileSync(join(folder, file), text);
  const run = spawnSync(command, [...args, file], { encoding: "utf8", cwd: folder });
  return `${run.stderr}${run.stdout}${run.status === 0 ? "" : `ended with ${run.status ?? run.signal}`}`;
}

test("the kernels of a batch have different names", () => {
  const names = GOLDENS.map((g) => /void (\w+)\(/.exec(kernelText(ClangRenderer, g))?.[1]);
  expect(names).toEqual(["E_16", "r_4_4_4", "E_4_4", "r_4_4_4_4", "E_8", "r_4_n"]);
});

test.for(["gcc", "clang"])("C compiles with %s, without a warning", (compiler, { skip }) => {
  skip(!isThere(compiler), `${compiler} is not installed`);
  const args = ["-Wall", "-Wextra", "-O1", ...ClangLanguage.flags, "-shared", "-fPIC", "-o", "out.so"];
  expect(complaints(compiler, args, "kernels.c", batch(ClangRenderer))).toBe("");
});

test("CUDA compiles with nvcc", { timeout: 120_000 }, ({ skip }) => {
  skip(!isThere("nvcc"), "nvcc is not installed");
  const args = ["-cubin", "-arch=sm_90", ...CUDALanguage.flags, "-o", "out.cubin"];
  expect(complaints("nvcc", args, "kernels.cu", batch(CUDARenderer))).toBe("");
});

test("HIP compiles with clang-19", { timeout: 60_000 }, ({ skip }) => {
  skip(!isThere("clang-19"), "clang-19 is not installed");
  const device = ["--offload-arch=gfx1100", "--offload-device-only", "--no-gpu-bundle-output"];
  const alone = ["-nogpulib", "-nogpuinc", "-c", "-emit-llvm", "-o", "out.bc"];
  const args = ["-x", "hip", ...device, ...alone, "-O1", ...HIPLanguage.flags];
  expect(complaints("clang-19", args, "kernels.hip", batch(HIPRenderer))).toBe("");
});

test("Metal is well formed for clang++ and a stub of its library", ({ skip }) => {
  skip(!isThere("clang++"), "clang++ is not installed");
  writeFileSync(join(folder, "metal_stdlib"), METAL_STDLIB);
  const half = ["-Xclang", "-fallow-half-arguments-and-returns", "-Xclang", "-fnative-half-type"];
  const args = ["-std=c++14", "-fsyntax-only", "-w", ...half, "-I.", "-x", "c++"];
  expect(complaints("clang++", args, "kernels.metal", batch(MetalRenderer))).toBe("");
});

describe.each(["JS", "WASM", "CLANG"])("the values on %s", (device) => {
  test.for(GOLDENS)("$name", async (golden, { skip }) => {
    const missing = await Device.open(device).then(
      () => "",
      (e: Error) => e.message,
    );
    skip(missing !== "", missing);
    const values = [...(await golden.tensor(device).data())].map(Number);
    expect(values).toHaveLength(golden.expected.length);
    for (const [i, x] of values.entries()) {
      const off = Math.abs(x - (golden.expected[i] as number));
      expect(off, `element ${i} is ${x}, expected ${golden.expected[i]}`).toBeLessThanOrEqual(
        golden.tolerance,
      );
    }
  });
});

test("a type that a target lacks is refused also where it is only on the way", () => {
  const through = (dtype: "int8" | "float64"): Golden => ({
    name: `through ${dtype}`,
    tensor: (device) => new Tensor([1.5, 256], { device }).cast(dtype).cast(dtypes.float32),
    expected: [],
    tolerance: 0,
  });
  expect(() => kernelText(WGSLRenderer, through("float64"))).toThrow(DTypeError);
  expect(() => kernelText(WGSLRenderer, through("float64"))).toThrow(/CAST: WEBGPU has no float64/);
  expect(() => kernelText(MetalRenderer, through("float64"))).toThrow(/METAL has no float64/);
  expect(kernelText(MetalRenderer, through("int8"))).toContain("(char)");
});
