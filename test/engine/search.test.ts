// BEAM: a search gives a kernel that computes the same, keeps what it found, and
// believes no list that does not fit.

import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { clearKernelCache, createSchedule, Device, Tensor, withEnv } from "gradloom";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { prepare } from "../../src/codegen/kernel.ts";
import type { Renderer } from "../../src/codegen/target.ts";
import { searchKernel } from "../../src/engine/search.ts";
import { runAsync } from "../../src/helpers.ts";
import { keep, kept } from "../../src/host/diskcache.ts";
import { nvidiaGpu } from "../../src/render/nvidia.ts";

let folder: string;
let device: Awaited<ReturnType<typeof Device.open>>;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "gradloom-beam-"));
  device = await Device.open("WASM");
  clearKernelCache();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const numbers = (n: number, k: number): Float32Array =>
  Float32Array.from({ length: n }, (_, i) => ((i * k) % 17) - 8);
const product = async (): Promise<number[]> => {
  const x = await new Tensor(numbers(24 * 40, 7)).reshape(24, 40).realize();
  const y = await new Tensor(numbers(40 * 12, 5)).reshape(40, 12).realize();
  return Array.from(await x.matmul(y).data(), Number);
};
/** The keys of the lists that are kept, and the text of one. */
const lists = (): string[] => readdirSync(join(folder, "opts")).map((f) => basename(f, ".sum"));
const textOf = (key: string): string =>
  new TextDecoder().decode(withEnv({ CACHE: folder }, () => kept("opts", key)));

describe("BEAM", () => {
  test("measures lists, and the kernel it takes computes what the plain one does", async () => {
    const want = await withEnv({ NOOPT: 1 }, product);
    const compile = vi.spyOn(device, "compile");
    const got = await withEnv({ BEAM: 2, CACHE: folder }, product);
    expect(got).toEqual(want); // small integers: exact in any order
    expect(compile.mock.calls.length).toBeGreaterThan(10);
    compile.mockRestore();
    expect(lists()).toHaveLength(1);
    for (const key of lists()) expect(Array.isArray(JSON.parse(textOf(key)))).toBe(true);
  });
  test("takes what an earlier process found without measuring again", async () => {
    await withEnv({ BEAM: 1, CACHE: folder }, product);
    clearKernelCache();
    const compile = vi.spyOn(device, "compile");
    await withEnv({ BEAM: 1, CACHE: folder }, product);
    expect(compile).toHaveBeenCalledTimes(1);
    compile.mockRestore();
  });
  test("finds nothing where tf32 is allowed and was not, or the target has other figures", async () => {
    const x = Tensor.empty([24, 40]).matmul(Tensor.empty([40, 12]));
    const ast = createSchedule([x.lazydata]).at(-1)?.ast ?? [];
    const renderer = device.renderer as Renderer;
    const compile = vi.spyOn(device, "compile");
    const searches = async (target: Renderer, allow = 0): Promise<boolean> => {
      compile.mockClear();
      const settings = { CACHE: folder, BEAM_SECONDS: 0, ALLOW_TF32: allow };
      await withEnv(settings, () => runAsync(searchKernel(ast, device, target, false, 1)));
      return compile.mock.calls.length > 0;
    };
    const core = { ...renderer.core, l2Bytes: 1 << 21 };
    const hopper = { ...renderer, gpu: nvidiaGpu(90, { computeUnits: 132 }) };
    const others = [{ ...renderer, core }, hopper, { ...hopper, gpu: { ...hopper.gpu, arch: "sm_100" } }];
    expect(await searches(renderer)).toBe(true);
    expect(await searches(renderer)).toBe(false);
    expect(await searches(renderer, 1)).toBe(true);
    for (const other of others) expect(await searches(other)).toBe(true);
    expect(await searches(renderer)).toBe(false);
    compile.mockRestore();
  });
  test.each([
    ["no JSON", "{{"],
    ["no list", "7"],
    ["a list for another kernel", JSON.stringify([{ op: "UPCAST", axis: 9, lanes: 4 }])],
    ["an op that is not there", JSON.stringify([{ op: "MELT", axis: 0, amount: 4 }])],
    ["items that are not ops", JSON.stringify([null, 3])],
  ])("searches anew where it finds %s", async (_, text) => {
    const want = await withEnv({ NOOPT: 1 }, product);
    await withEnv({ BEAM: 1, CACHE: folder }, product);
    const bytes = new TextEncoder().encode(text);
    for (const key of lists()) withEnv({ CACHE: folder }, () => keep("opts", key, bytes));
    clearKernelCache();
    expect(await withEnv({ BEAM: 1, CACHE: folder }, product)).toEqual(want);
    for (const key of lists()) expect(textOf(key)).not.toBe(text);
  });
  test("stops when time is up, with the best list so far", async () => {
    const compiled = async (seconds: number): Promise<number> => {
      clearKernelCache();
      const compile = vi.spyOn(device, "compile");
      expect(await withEnv({ BEAM: 4, BEAM_SECONDS: seconds, CACHE: "0" }, product)).toEqual(want);
      const { length } = compile.mock.calls;
      compile.mockRestore();
      return length;
    };
    const want = await withEnv({ NOOPT: 1 }, product);
    // the heuristic's list and the empty one are measured in any case, then the winner is compiled
    expect(await compiled(0)).toBe(3);
    expect(await compiled(20)).toBeGreaterThan(10);
  });
  test("stops when a round gains nothing", async () => {
    const fixed = { run: async () => 0.001 } as unknown as Awaited<ReturnType<typeof device.compile>>;
    const renderer = device.renderer as Renderer;
    const x = Tensor.empty([24, 40]).matmul(Tensor.empty([40, 12]));
    const ast = createSchedule([x.lazydata]).at(-1)?.ast ?? [];
    const compile = vi.spyOn(device, "compile").mockReturnValue(fixed);
    const search = searchKernel(ast, device, renderer, false, 1);
    await withEnv({ CACHE: "0", BEAM_SECONDS: 1000 }, () => runAsync(search));
    const lists = new Set(compile.mock.calls.map(([, source]) => String(source.code)));
    compile.mockRestore();
    // two starts, then one round of single ops on the best of them
    const plain = prepare(ast, [], renderer);
    const ops = renderer.optOps.flatMap((op) => op.candidates(plain, { target: renderer, inPlace: false }));
    expect(lists.size).toBeGreaterThan(10);
    expect(lists.size).toBeLessThanOrEqual(2 + ops.length);
  });
  test("shows a person at a terminal how far it is, and clears the line", async () => {
    const isTTY = process.stderr.isTTY;
    const written: string[] = [];
    const write = vi.spyOn(process.stderr, "write").mockImplementation((text) => {
      written.push(String(text));
      return true;
    });
    try {
      process.stderr.isTTY = true;
      await withEnv({ BEAM: 1, BEAM_SECONDS: 0, CACHE: "0" }, product);
      expect(written.some((t) => /BEAM r_\S+: \d+ lists in \d+ s, best \S+ µs/.test(t))).toBe(true);
      expect(written.at(-1)).toBe("\r\x1b[K");
      const { length } = written;
      process.stderr.isTTY = false;
      clearKernelCache();
      await withEnv({ BEAM: 1, BEAM_SECONDS: 0, CACHE: "0" }, product);
      expect(written).toHaveLength(length);
    } finally {
      process.stderr.isTTY = isTTY;
      write.mockRestore();
    }
  });
  test("CACHE=0 keeps nothing", async () => {
    await withEnv({ BEAM: 1, CACHE: "0" }, product);
    expect(readdirSync(folder)).toEqual([]);
  });
});
