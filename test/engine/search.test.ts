// BEAM: a search gives a kernel that computes the same, keeps what it found, and believes no list that does not fit.

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clearKernelCache, Device, Tensor, withEnv } from "gradloom";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

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
const lists = (): string[] => readdirSync(join(folder, "opts")).map((f) => join(folder, "opts", f));

describe("BEAM", () => {
  test("measures lists, and the kernel it takes computes what the plain one does", async () => {
    const want = await withEnv({ NOOPT: 1 }, product);
    const compile = vi.spyOn(device, "compile");
    const got = await withEnv({ BEAM: 2, CACHE: folder }, product);
    expect(got).toEqual(want); // small integers: exact in any order
    expect(compile.mock.calls.length).toBeGreaterThan(10);
    compile.mockRestore();
    expect(lists()).toHaveLength(1);
    for (const f of lists()) expect(Array.isArray(JSON.parse(readFileSync(f, "utf8")))).toBe(true);
  });
  test("takes what an earlier process found without measuring again", async () => {
    await withEnv({ BEAM: 1, CACHE: folder }, product);
    clearKernelCache();
    const compile = vi.spyOn(device, "compile");
    await withEnv({ BEAM: 1, CACHE: folder }, product);
    expect(compile).toHaveBeenCalledTimes(1);
    compile.mockRestore();
  });
  test.each([
    ["no JSON", "{{"],
    ["no list", "7"],
    ["a list for another kernel", JSON.stringify([{ op: "UPCAST", axis: 9, amount: 4 }])],
    ["an op that is not there", JSON.stringify([{ op: "MELT", axis: 0, amount: 4 }])],
    ["items that are no ops", JSON.stringify([null, 3])],
  ])("searches anew where it finds %s", async (_, text) => {
    const want = await withEnv({ NOOPT: 1 }, product);
    await withEnv({ BEAM: 1, CACHE: folder }, product);
    for (const f of lists()) writeFileSync(f, text);
    clearKernelCache();
    expect(await withEnv({ BEAM: 1, CACHE: folder }, product)).toEqual(want);
    for (const f of lists()) expect(readFileSync(f, "utf8")).not.toBe(text);
  });
  test("CACHE=0 keeps nothing", async () => {
    await withEnv({ BEAM: 1, CACHE: "0" }, product);
    expect(readdirSync(folder)).toEqual([]);
  });
});
