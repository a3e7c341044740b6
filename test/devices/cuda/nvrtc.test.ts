// The compiler of CUDA kernels: what it asks of NVRTC, what it keeps, what it says where something is
// missing; and, where NVRTC is installed (it needs no GPU), that our own headers mean what the toolkit's do.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DeviceError, withEnv } from "gradloom";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { builtinsBeside, headersBeside, nvrtcPaths } from "../../../src/devices/cuda/find.ts";
import { HEADERS } from "../../../src/devices/cuda/headers.ts";
import {
  type Compilation,
  CudaCompiler,
  loadNvrtc,
  type Nvrtc,
  openNvrtc,
} from "../../../src/devices/cuda/nvrtc.ts";
import { openKoffi } from "../../../src/host/koffi.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gradloom-test-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const kernel = (name: string, body: string) => `extern "C" __global__ void ${name}(float* data0) { ${body} }`;

/** Remembers what it was asked, and answers with the text itself. */
class Recorder implements Nvrtc {
  readonly asked: { source: string; options: readonly string[]; kind: string }[] = [];
  version = "13.0";
  readonly archs = [75, 80, 90, 100];
  compile(source: string, options: readonly string[], kind: "cubin" | "ptx"): Compilation {
    this.asked.push({ source, options, kind });
    if (source.includes("wrong")) return { ok: false, log: "kernel.cu(1): error: identifier is undefined" };
    return { ok: true, code: new TextEncoder().encode(source) };
  }
}

describe("the compiler", () => {
  test("compiles to a cubin of the GPU's own architecture", () => {
    withEnv({ CACHE: "0" }, () => {
      const nvrtc = new Recorder();
      const { kind, entry } = new CudaCompiler(nvrtc, 90, "CUDA").compile("E_4", kernel("E_4", ""));
      expect([kind, entry]).toEqual(["cubin", "E_4"]);
      expect(nvrtc.asked[0]?.options).toContain("--gpu-architecture=sm_90a");
      expect(nvrtc.asked[0]?.options).toContain("--fmad=false");
      new CudaCompiler(nvrtc, 80, "CUDA").compile("E_4", kernel("E_4", ""));
      expect(nvrtc.asked[1]?.options).toContain("--gpu-architecture=sm_80");
    });
  });
  test("a GPU that NVRTC does not know gets PTX of the last one before it; an older one is refused", () => {
    withEnv({ CACHE: "0" }, () => {
      const nvrtc = new Recorder();
      const { kind } = new CudaCompiler(nvrtc, 95, "CUDA").compile("E_4", kernel("E_4", ""));
      expect(kind).toBe("ptx");
      expect(nvrtc.asked[0]).toMatchObject({ kind: "ptx" });
      expect(nvrtc.asked[0]?.options).toContain("--gpu-architecture=compute_90");
      expect(() => new CudaCompiler(nvrtc, 61, "CUDA")).toThrow(/this GPU is sm_61.*CUDA_PATH/);
    });
  });
  test("the same kernel is compiled once for all its numbers, and anew for another version or text", () => {
    withEnv({ CACHE: join(folder, "cache") }, () => {
      const nvrtc = new Recorder();
      const compile = (name: string, body: string, arch = 90) =>
        new CudaCompiler(nvrtc, arch, "CUDA").compile(name, kernel(name, body));
      const first = compile("r_4_2", "");
      const again = compile("r_4_2n17", "");
      expect(nvrtc.asked).toHaveLength(1);
      expect(again.entry).toBe("r_4_2");
      expect([...again.code]).toEqual([...first.code]);
      compile("r_4_2n1", "data0[0] = 1;");
      compile("r_4_2", "", 80);
      nvrtc.version = "13.1";
      compile("r_4_2", "");
      expect(nvrtc.asked).toHaveLength(4);
    });
  });
  test("what NVRTC refuses is reported with the name, its words and the source", () => {
    withEnv({ CACHE: "0" }, () => {
      const compiler = new CudaCompiler(new Recorder(), 90, "CUDA:1");
      expect(() => compiler.compile("E_4", kernel("E_4", "wrong"))).toThrow(
        /^CUDA:1: NVRTC refused the kernel E_4:\nkernel\.cu\(1\): error.*source:\nextern "C"/s,
      );
    });
  });
});

describe("the search", () => {
  test("finds a toolkit by its folder, the library with what it needs, and headers", () => {
    const root = join(folder, "toolkit");
    mkdirSync(join(root, "lib64"), { recursive: true });
    mkdirSync(join(root, "include"));
    for (const f of ["libnvrtc.so", "libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.alt.so.13"])
      writeFileSync(join(root, "lib64", f), "");
    writeFileSync(join(root, "lib64/libnvrtc-builtins.so.13.0"), "");
    const found = [...nvrtcPaths(root)];
    expect(found).toEqual(
      ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"].map((f) => join(root, "lib64", f)),
    );
    expect(builtinsBeside(found[0] as string)).toEqual([join(root, "lib64/libnvrtc-builtins.so.13.0")]);
    expect(headersBeside(found[0] as string)).toBeUndefined();
    writeFileSync(join(root, "include/cuda_fp16.h"), "");
    expect(headersBeside(found[0] as string)).toBe(join(root, "include"));
    const packages = join(folder, "site-packages");
    const library = join(packages, "nvidia/cu13/lib/libnvrtc.so.13");
    mkdirSync(dirname(library), { recursive: true });
    writeFileSync(library, "");
    expect([...nvrtcPaths(packages)]).toEqual([library]);
    expect([...nvrtcPaths(join(packages, "nvidia/cu13"))]).toEqual([library]);
    expect([...nvrtcPaths(join(root, "nowhere/libnvrtc.so"))]).toEqual([join(root, "nowhere/libnvrtc.so")]);
  });
});

describe("NVRTC itself", () => {
  async function real(): Promise<Nvrtc | string> {
    try {
      return openNvrtc(await openKoffi("CUDA"), "CUDA");
    } catch (e) {
      return (e as Error).message;
    }
  }

  test("what is missing is named, with what to install", async () => {
    const koffi = await openKoffi("CUDA");
    const load = (CUDA_PATH: string, paths: string[]) => () =>
      withEnv({ CUDA_PATH }, () => loadNvrtc(koffi, "NV", paths));
    const nowhere = load("", [join(folder, "libnvrtc.so")]);
    expect(nowhere).toThrow(DeviceError);
    expect(nowhere).toThrow(
      /^NV: cannot load NVRTC.*1 places.*libnvrtc\.so.*pip install nvidia-cuda-nvrtc.*CUDA_PATH/s,
    );
    expect(load("", [])).toThrow(/nothing was there to try/);
    expect(load(folder, [])).toThrow(/from CUDA_PATH=.*: no libnvrtc lies there; .*unset CUDA_PATH/);
    expect(load(folder, [join(folder, "libnvrtc.so")])).toThrow(/from CUDA_PATH=.*libnvrtc\.so \(.*unset/);
  });

  test("compiles to an ELF file for sm_90, and says where an error is", async ({ skip }) => {
    const nvrtc = await real();
    if (typeof nvrtc === "string") return skip(nvrtc);
    expect(nvrtc.version).toMatch(/^\d+\.\d+/);
    withEnv({ CACHE: "0" }, () => {
      const compiler = new CudaCompiler(nvrtc, 90, "CUDA");
      const { code, kind } = compiler.compile("E_1", kernel("E_1", "data0[0] = 1.0f;"));
      expect(kind).toBe("cubin");
      expect([...code.subarray(0, 4)]).toEqual([0x7f, 0x45, 0x4c, 0x46]);
      expect(() => compiler.compile("E_1", kernel("E_1", "data0[0] = nothing;"))).toThrow(
        /identifier "nothing" is undefined/,
      );
    });
  });
  test("compiles what is nested deep", async ({ skip }) => {
    const nvrtc = await real();
    if (typeof nvrtc === "string") return skip(nvrtc);
    const nested = (n: number): string => (n === 0 ? "data0[0]" : `(${nested(n - 1)}*${n}.5f+data0[${n}])`);
    const { code } = withEnv({ CACHE: "0" }, () =>
      new CudaCompiler(nvrtc, 90, "CUDA").compile("E_1", kernel("E_1", `data0[0] = ${nested(200)};`)),
    );
    expect(code.byteLength).toBeGreaterThan(10_000);
  });
  test("our own headers compile, casts and arithmetic included", async ({ skip }) => {
    const nvrtc = await real();
    if (typeof nvrtc === "string") return skip(nvrtc);
    const source = (HEADERS["cuda_fp16.h"] as string).replace("#pragma once", "");
    const use = `extern "C" __global__ void k(half* a, float* b, double* c, long long* d, bool* e) {
      half x = a[0];
      a[1] = (half)(((float)(x)*2.0f)); a[2] = x*x+x-x/x; a[3] = -x; a[4] = (half)(c[0]); a[5] = (half)(d[0]);
      a[6] = (x<a[7])?x:a[7]; e[0] = x!=x; c[1] = (double)(x); d[1] = (long long)(x); a[8] = (half)(e[1]);
    }`;
    const answer = nvrtc.compile(source + use, ["--gpu-architecture=sm_90a", "--std=c++17"], "cubin");
    expect(answer.ok ? "" : answer.log).toBe("");
  });
});
