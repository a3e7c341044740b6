// Real code objects: kernels that codegen makes for each family (vectors, shared memory, exchanges within a
// wavefront, matrix cores, scratch) through clang-19, read by the loader. And what a user reads where a
// compiler is missing, or refuses.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dtypes, type Tensor, withEnv } from "gradloom";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Kernel } from "../../../src/codegen/kernel.ts";
import type { OptOp } from "../../../src/codegen/opt/opts.ts";
import { type Renderer, sourceOf } from "../../../src/codegen/target.ts";
import { type Hsaco, loadHsaco } from "../../../src/devices/amd/commands/hsaco.ts";
import { findComgr, findHipClang, findHipTool, HipCompiler } from "../../../src/devices/amd/compiler.ts";
import type { DType } from "../../../src/dtype.ts";
import { optimized } from "../../../src/engine/compiler.ts";
import { CompileError, DeviceError } from "../../../src/errors.ts";
import type { Waitable } from "../../../src/helpers.ts";
import { range } from "../../../src/helpers.ts";
import { amdFor } from "../../../src/render/amd.ts";
import { renderCStyle } from "../../../src/render/cstyle.ts";
import { AMDLanguage } from "../../../src/render/hip.ts";
import { Device } from "../../../src/runtime/registry.ts";
import { lastItem, lowered } from "../../codegen/kernels.ts";
import { tensor } from "../../device/harness.ts";
import { allCases, type Case, groupCase } from "../../render/kernels.ts";

const ARCHS = ["gfx90a", "gfx942", "gfx1100", "gfx1201"] as const;
const search = findHipClang(["clang-19"]);
const clang = "found" in search ? search.found : search.tried.join(", ");
let folder = "";
beforeAll(async () => {
  await Device.open("JS");
  folder = mkdtempSync(join(tmpdir(), "gradloom-test-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const zeros = (type: DType, ...shape: number[]): Tensor =>
  tensor(
    "JS",
    type,
    range(shape.reduce((a, b) => a * b, 1)).map(() => 0),
    shape,
  );
const rendererOf = (arch: string): Renderer<string> => amdFor(arch, { computeUnits: 96 }) as Renderer<string>;

interface Made {
  readonly text: string;
  readonly hsaco: Hsaco;
  readonly kernel: Kernel;
}
async function make(arch: string, t: Tensor, opts?: readonly OptOp[]): Promise<Made> {
  const renderer = rendererOf(arch);
  const item = await lastItem(t);
  const kernel = opts === undefined ? optimized(item.ast, renderer, false) : lowered(item, opts, renderer);
  const source = renderer.render(kernel.name, kernel.uops);
  const compiler = new HipCompiler(clang as Exclude<typeof clang, string>, arch, "AMD");
  const { code, entry } = await compiler.compile(kernel.name, source);
  const hsaco = loadHsaco(code, entry, arch);
  expect(hsaco.offsets).toEqual(range(source.buffers).map((i) => 8 * i));
  expect(hsaco.kernargBytes).toBe(8 * source.buffers);
  expect([hsaco.isWave32, hsaco.entry % 256]).toEqual([arch.startsWith("gfx1"), 0]);
  return { text: source.code, hsaco, kernel };
}

describe.each(ARCHS)("%s", (arch) => {
  test("kernels of the heuristics become code objects that the loader reads", { timeout: 60_000 }, async ({
    skip,
  }) => {
    if (typeof clang === "string") return skip(clang);
    const { float32, float16, bfloat16 } = dtypes;
    await withEnv({ CACHE: folder }, async () => {
      const [vectors, rows, half, brain] = await Promise.all([
        make(arch, zeros(float32, 4096).add(1).sqrt()),
        make(arch, zeros(float32, 64, 4096).sum(1)),
        make(arch, zeros(float16, 256, 256).dot(zeros(float16, 256, 256))),
        make(arch, zeros(bfloat16, 256, 256).dot(zeros(bfloat16, 256, 256).T)),
      ]);
      expect(vectors.text).toContain("*((float4*)(");
      expect(vectors.hsaco.scratch).toBe(0);
      expect(rows.text).toContain("hip_shuffle<");
      expect(rows.kernel.localSize.reduce((a, b) => a * b)).toBe(rows.hsaco.maxThreads);
      for (const { text, hsaco, kernel } of [half, brain]) {
        expect(kernel.opts.map((o) => o.op)).toEqual(expect.arrayContaining(["TC", "SHARED"]));
        expect(text).toContain(arch.startsWith("gfx9") ? "__builtin_amdgcn_mfma" : "__builtin_amdgcn_wmma");
        expect(hsaco.shared).toBeGreaterThan(0);
        expect(hsaco.shared).toBeLessThanOrEqual(65536);
      }
    });
  });
  test("scratch, and a wait that blocks", { timeout: 60_000 }, ({ skip }) => {
    if (typeof clang === "string") return skip(clang);
    const text = `extern "C" __attribute__((global)) void deep(int* data0, const int n) {
  int all[100];
  for (int i = 0; i < 100; i++) all[i] = data0[i];
  data0[0] = all[data0[n]];
}`;
    withEnv({ CACHE: "0" }, () => {
      const compiler = new HipCompiler(clang, arch, "AMD");
      const made: unknown = compiler.compile("deep", sourceOf(text, { buffers: 1, vals: 1 }));
      const hsaco = loadHsaco((made as Waitable<{ code: Uint8Array }>).waitSync().code, "deep", arch);
      expect(hsaco.scratch).toBeGreaterThanOrEqual(400);
      expect([hsaco.offsets, hsaco.kernargBytes, hsaco.maxThreads]).toEqual([[0, 8], 12, 1024]);
      const isGfx90a = arch === "gfx90a";
      expect([hsaco.wantsScratchDescriptor, hsaco.wantsScratchAddress]).toEqual([isGfx90a, isGfx90a]);
    });
  });
});

/** Many kernels in one text, each in its own namespace. */
const oneFile = (cases: readonly Case[]): string =>
  cases.map((c, i) => `namespace k${i} {\n${renderCStyle(AMDLanguage, c.name, c.uops).code}\n}`).join("\n");

test("every op, cast and constant needs no library", { timeout: 120_000 }, ({ skip }) => {
  if (typeof clang === "string") return skip(clang);
  const types = dtypes.all.filter((d) => d !== dtypes.bfloat16);
  const text = oneFile([
    ...allCases(types, types, (op) => AMDLanguage.codeForOp[op] !== undefined),
    groupCase(),
  ]);
  const device = ["-x", "hip", "--offload-device-only", "--offload-arch=gfx1100", "--no-gpu-bundle-output"];
  const args = [
    ...device,
    "-nogpulib",
    "-nogpuinc",
    "-O1",
    "-w",
    ...AMDLanguage.flags,
    "-o",
    join(folder, "all.hsaco"),
    "-",
  ];
  // linked, so that a function that nobody has is an error
  const answer = spawnSync(clang.name, args, { input: text, encoding: "utf8" });
  expect(answer.stderr.slice(0, 2000)).toBe("");
});

test("a kernel that does not compile, now and later", async ({ skip }) => {
  if (typeof clang === "string") return skip(clang);
  const compiler = new HipCompiler(clang, "gfx1100", "AMD");
  const bad = sourceOf('extern "C" __attribute__((global)) void bad(int* data0) {\n  data0[0] = nothing;\n}');
  await expect(async () => compiler.compile("bad", bad)).rejects.toThrow(CompileError);
  await expect(async () => compiler.compile("bad", bad)).rejects.toThrow(
    /refused the kernel bad:.*nothing.*source:/s,
  );
  expect(() => compiler.compile("other", bad)).toThrow(/no kernel other/);
});
test("no compiler: the message says what was tried and what to install", async () => {
  const none = (arch: string) =>
    findHipTool(arch, [() => findHipClang(["no-such-clang"]), () => findComgr(arch, ["libnothing.so"])]);
  expect(() => none("gfx942")).toThrow(DeviceError);
  expect(() => none("gfx942")).toThrow(
    /kernels of gfx942 \(no-such-clang does not answer, libnothing\.so.*\); install clang-19 and lld-19, or .*libamd_comgr/,
  );
  await withEnv({ ROCM_PATH: "/nowhere" }, async () => {
    expect(() => findHipTool("gfx942")).toThrow(
      /nowhere.*clang does not answer, .*nowhere.*libamd_comgr\.so\.3.*libamd_comgr\.so\.2/,
    );
  });
});
test("the library is asked only where there is no clang", () => {
  const tool = { name: "first", version: "1", command: (): [string] => ["first"] };
  const second = (): never => {
    throw new Error("asked");
  };
  expect(findHipTool("gfx90a", [() => ({ found: tool }), second])).toBe(tool);
  expect(findHipTool("gfx90a", [() => ({ tried: ["none"] }), () => ({ found: tool })])).toBe(tool);
});
test("a compiler that is ended by a signal is an error that says so", async ({ skip }) => {
  if (process.platform === "win32") return skip("Windows has no signals");
  const tool = { name: "it", version: "1", command: (): [string, ...string[]] => ["sh", "-c", "kill -9 $$"] };
  const source = sourceOf('extern "C" __attribute__((global)) void gone(int* data0) {}', { buffers: 1 });
  await withEnv({ CACHE: "0" }, async () => {
    await expect(async () => new HipCompiler(tool, "gfx90a", "AMD").compile("gone", source)).rejects.toThrow(
      /it refused the kernel gone:\nit ended by SIGKILL/,
    );
  });
});
