// A WASM memory above 4 GiB (memory64): what WASM_MEMORY takes and refuses, and a whole program with all its
// tensors beyond 32 bits of address. That one runs in a process of its own, on a Node that has memory64: this
// one, or the current one among the optional packages of bench/.

import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CONTROL_BYTES } from "../../../src/devices/wasm/layout.ts";
import { hasWideMemory, sizedMemory } from "../../../src/devices/wasm/sized.ts";

const root = join(import.meta.dirname, "../../..");
const PROBE = 'new WebAssembly.Memory({ address: "i64", initial: 0n, maximum: 1n })';

/** A Node whose engine has memory64. */
function wideNode(): string | undefined {
  const { platform, arch } = process;
  const name = platform === "win32" ? ["win", "node.exe"] : [platform, "node"];
  const optional = join(root, `bench/node_modules/node-${name[0]}-${arch}/bin/${name[1]}`);
  const has = (file: string) => existsSync(file) && spawnSync(file, ["-e", PROBE]).status === 0;
  return [process.execPath, optional].find(has);
}
const node = wideNode();
const whyNot = "no Node with memory64 here: Node 24, or npm install --prefix bench --ignore-scripts";

let folder = "";
beforeAll(() => {
  // below node_modules, so that the program finds koffi
  folder = mkdtempSync(join(root, "node_modules/.wide-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = (file: string, gigabytes: string) =>
  spawnSync(file, [join(folder, "program.mjs")], {
    encoding: "utf8",
    env: { ...process.env, WASM_MEMORY: gigabytes, THREADS: "2", DEV: "WASM" },
  });

describe("WASM_MEMORY", () => {
  test("of 4 and less is a memory of that size with 32-bit addresses", () => {
    expect(sizedMemory(false, 4)).toMatchObject({ isWide: false, maxBytes: 2 ** 32 });
    const small = sizedMemory(false, 0.125);
    expect(small).toMatchObject({ isWide: false, maxBytes: 2 ** 27 });
    expect(small.alloc(2 ** 26, false)).toBeGreaterThanOrEqual(CONTROL_BYTES);
    expect(small.alloc(2 ** 26, false)).toBeUndefined();
  });
  test("is refused where it is too small, too large or not a number", () => {
    for (const gigabytes of [0, 0.001, 16.5, NaN]) {
      expect(() => sizedMemory(false, gigabytes)).toThrow(
        `WASM_MEMORY is ${gigabytes}, expected gigabytes from 1/16 to 16`,
      );
    }
  });
  test("above 4 is refused by an engine without memory64", ({ skip }) => {
    skip(hasWideMemory(), "this engine has memory64");
    expect(() => sizedMemory(true, 16)).toThrow(/more than 4 GiB need memory64, which this engine does not/);
  });
});

describe("a memory above 4 GiB", () => {
  test("computes, replays, trains and copies what lies beyond 32 bits of address", ({ skip }) => {
    if (node === undefined) return skip(true, whyNot);
    const bundle = [
      join(root, "scripts/standalone.mjs"),
      join(folder, "program.mjs"),
      join(import.meta.dirname, "wideprogram.ts"),
    ];
    const built = spawnSync(process.execPath, bundle, { encoding: "utf8", cwd: root });
    expect(built.status, built.stderr).toBe(0);
    const { status, stdout, stderr } = run(node, "8");
    expect(status, stderr).toBe(0);
    const report = JSON.parse(stdout);
    expect(report).toMatchObject({ isWide: true, maxBytes: 2 ** 33, heldBelow: 2 ** 32 });
    expect(report.at).toBeGreaterThan(2 ** 32);
    const [values, replayed, losses] = report.wasm;
    expect(values).toEqual(report.js[0]);
    expect(replayed).toEqual(report.js[1]);
    losses.forEach((x: number, i: number) => {
      expect(x).toBeCloseTo(report.js[2][i], 6);
    });
    expect(losses.at(-1)).toBeLessThan(losses[0]);
    expect(report.last).toEqual([2 ** 22 - 1, 2 ** 22]);
    // the sum of 1 to 2^22, as an int32
    expect(report.moved).toBe(2 ** 21);
    expect([2 ** 21, undefined]).toContain(report.native);
    // blocks of the runtime: each is another, and what queues name them by has 32 bits
    expect(new Set(report.own).size).toBe(5);
    for (const at of report.own) expect(at + 2 ** 24).toBeLessThanOrEqual(2 ** 32);
    expect(report.again).toBe(report.own[0]);
    expect(report.failure).toMatch(/^OutOfMemoryError: WASM: .* ends at 8589934592\. .*raise WASM_MEMORY/);
  }, 120_000);
});
