// The loader of cubins: on files made here, and on what nvcc makes where there is one.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadCubin } from "../../../../src/devices/nv/commands/cubin.ts";
import { buildCubin } from "./elf.ts";

const code = Uint8Array.from({ length: 160 }, (_, i) => i);

describe("a cubin made by hand", () => {
  test("its facts", () => {
    const bytes = buildCubin({
      name: "k",
      code,
      parameters: [8, 4, 8],
      registers: 77,
      barriers: 2,
      shared: 5000,
      local: 48,
      maxThreads: 96,
      constants: new Uint8Array([1, 2, 3, 4]),
    });
    const k = loadCubin(bytes, "k", 90);
    expect(k).toMatchObject({ registers: 77, barriers: 2, shared: 5000, local: 48, maxThreads: 96 });
    expect(k.parameters).toEqual([
      { offset: 0x210, size: 8 },
      { offset: 0x218, size: 4 },
      { offset: 0x220, size: 8 },
    ]);
    expect(k.constant0.byteLength).toBe(0x228);
    expect([...k.image.subarray(k.entry, k.entry + 160)]).toEqual([...code]);
    const bank = k.banks.get(3);
    expect(bank?.size).toBe(4);
    expect([...k.image.subarray(bank?.offset, (bank?.offset ?? 0) + 4)]).toEqual([1, 2, 3, 4]);
    expect(k.entry % 128).toBe(0);
  });
  test("addresses are put where relocations say", () => {
    const bytes = buildCubin({
      name: "k",
      code,
      parameters: [],
      constants: new Uint8Array(16),
      relocations: [
        { in: "constants", at: 8, type: 2, addend: 16 },
        { in: "constants", at: 0, type: 1, addend: 0 },
        { in: "code", at: 16, type: 0x38, addend: 32 },
        { in: "code", at: 32, type: 0x39, addend: 32 },
      ],
    });
    const k = loadCubin(bytes, "k", 90);
    const base = 0x12_3456_0000;
    k.relocate(base);
    const view = new DataView(k.image.buffer);
    const bank = k.banks.get(3)?.offset ?? 0;
    expect(Number(view.getBigUint64(bank + 8, true))).toBe(base + k.entry + 16);
    expect(view.getUint32(bank, true)).toBe((base + k.entry) >>> 0);
    expect(view.getUint32(k.entry + 20, true)).toBe((base + k.entry + 32) >>> 0);
    expect(view.getUint32(k.entry + 36, true)).toBe(0x12);
    expect(view.getUint32(k.entry + 16, true)).toBe(0x13121110);
  });
  test("what it is not", () => {
    const bytes = buildCubin({ name: "k", code, parameters: [] });
    expect(() => loadCubin(bytes, "other", 90)).toThrow(/has no kernel other; it has k/);
    expect(() => loadCubin(bytes, "k", 80)).toThrow(/for another GPU than sm_80/);
    expect(() => loadCubin(new Uint8Array(100), "k", 90)).toThrow(/not a cubin/);
    const odd = { in: "code" as const, at: 0, type: 0x77, addend: 0 };
    const relocated = loadCubin(buildCubin({ name: "k", code, parameters: [], relocations: [odd] }), "k", 90);
    expect(() => relocated.relocate(0)).toThrow(/relocation of type 0x77/);
  });
});

function nvcc(source: string): Uint8Array | string {
  const folder = mkdtempSync(join(tmpdir(), "gradloom-"));
  try {
    writeFileSync(join(folder, "k.cu"), source);
    const args = ["-arch=sm_90a", "-cubin", "-o", join(folder, "k.cubin"), join(folder, "k.cu")];
    execFileSync("nvcc", args, { stdio: "pipe" });
    return readFileSync(join(folder, "k.cubin"));
  } catch (e) {
    if ((e as NodeJS.ErrnoException).code === "ENOENT") return "there is no nvcc on the PATH";
    throw e;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("what nvcc makes", ({ skip }) => {
  const made = nvcc(`
    extern "C" __global__ void __launch_bounds__(256) shared(float* out, const float* a, int n) {
      __shared__ float s[256];
      s[threadIdx.x] = a[threadIdx.x];
      __syncthreads();
      if (threadIdx.x < n) out[threadIdx.x] = s[255 - threadIdx.x];
    }
    extern "C" __global__ void stack(double* out, const int* a, int n) {
      volatile double x[50];
      for (int i = 0; i < 50; i++) x[i] = sin((double)a[i]);
      out[0] = x[n];
    }`);
  skip(typeof made === "string", String(made));
  const shared = loadCubin(made as Uint8Array, "shared", 90);
  expect(shared.parameters).toEqual([
    { offset: 0x210, size: 8 },
    { offset: 0x218, size: 8 },
    { offset: 0x220, size: 4 },
  ]);
  expect(shared).toMatchObject({ barriers: 1, local: 0, maxThreads: 256 });
  // the compiler counts the kilobyte that the system keeps
  expect(shared.shared).toBe(2048);
  expect(shared.registers).toBeGreaterThan(4);
  const stack = loadCubin(made as Uint8Array, "stack", 90);
  expect(stack.local).toBeGreaterThanOrEqual(400);
  stack.relocate(0x2_0000_0000);
  expect(stack.banks.has(4)).toBe(true); // the addresses of the tables of sin
});
