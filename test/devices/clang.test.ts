// CLANG: what is compiled once, and that a kernel of a grid does the part it is given.

import * as fs from "node:fs";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Device, type HCQCompatCompiled, Tensor, withEnv } from "gradloom";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sourceOf } from "../../src/codegen/target.ts";
import {
  type CCompiler,
  compile,
  findCompiler,
  hasMacro,
  vectorsOf,
} from "../../src/devices/clang/compiler.ts";
import { hasWideUnits } from "../../src/devices/clang/wide.ts";
import { openKoffi } from "../../src/host/koffi.ts";
import { Native } from "../../src/host/native.ts";
import { load } from "../host/native.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gradloom-test-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function compilerOrWhy(candidates?: readonly string[]): CCompiler | string {
  try {
    return findCompiler(candidates);
  } catch (e) {
    return (e as Error).message;
  }
}
const found = compilerOrWhy();

describe("a kernel", () => {
  const source = (name: string, what: string) =>
    sourceOf(
      `void ${name}(int* data0, const int n, const int begin, const int end) {\n` +
        `  for (int gidx0 = begin; gidx0 < end; gidx0++) {\n    data0[gidx0] = ${what};\n  }\n}`,
      { buffers: 1, vals: 1, isPart: true },
    );

  test("is compiled once for all names, and anew for other text or another compiler", async ({ skip }) => {
    if (typeof found === "string") return skip(found);
    withEnv({ CACHE: join(folder, "c") }, () => {
      const files = () => readdirSync(join(folder, "c", "clang")).length;
      const first = compile(found, "E_4", source("E_4", "n"));
      expect([...compile(found, "E_4n1", source("E_4n1", "n"))]).toEqual([...first]);
      expect(files()).toBe(1);
      compile(found, "E_4", source("E_4", "n+1"));
      expect(files()).toBe(2);
      compile({ ...found, macros: `${found.macros}#define OTHER 1\n` }, "E_4", source("E_4", "n"));
      expect(files()).toBe(3);
    });
  });
  test.each(["gcc", "clang"])("keeps its nested loops: %s", async (command) => {
    // gcc 12 at -O2 makes nothing at all of this valid C, unless overflow is defined
    const text = `#include <math.h>
void r(float* data0, const int* data1) {
  float temp0[72];
  for (int i = 0; i < 3; i++) {
    int alu0 = i*24;
    for (int j = 0; j < 8; j++) {
      int alu1 = j*3;
      for (int k = 0; k < 3; k++) {
        for (int l = 0; l < 24; l++) { temp0[(l*3)+k] = exp2f(data1[alu0+l]); }
        float val0 = temp0[((alu1+k)*3)+k];
        int alu2 = (alu0+alu1)+k;
        data0[alu2] = val0+data1[alu2];
      }
    }
  }
}`;
    const asked = compilerOrWhy([command]);
    if (typeof asked === "string") return console.log(`skip: ${asked}`);
    const koffi = await openKoffi("CLANG");
    const kernel = withEnv({ CACHE: "0" }, () =>
      load(koffi, compile(asked, "r", sourceOf(text, { buffers: 2 }))),
    );
    const [out, given] = [koffi.alloc("uint8_t", 288), koffi.alloc("uint8_t", 288)];
    const xs = new Int32Array(koffi.view(given, 288)).map((_, i) => i % 7);
    new Int32Array(koffi.view(given, 288)).set(xs);
    kernel.run([out, given], []);
    expect([...new Float32Array(koffi.view(out, 288))]).toEqual(Array.from(xs, (x) => 2 ** x + x));
    for (const memory of [out, given]) koffi.free(memory);
  });
  test("of a grid does the part it is given", async ({ skip }) => {
    if (typeof found === "string") return skip(found);
    const koffi = await openKoffi("CLANG");
    const kernel = load(koffi, compile(found, "E_8", source("E_8", "gidx0*n")));
    const memory = koffi.alloc("uint8_t", 32);
    const ints = new Int32Array(koffi.view(memory, 32)).fill(-1);
    kernel.run([memory], [10, 2, 5]);
    expect([...ints]).toEqual([-1, -1, 20, 30, 40, -1, -1, -1]);
    kernel.run([memory], [10, 5, 8]);
    expect([...ints]).toEqual([-1, -1, 20, 30, 40, 50, 60, 70]);
    koffi.free(memory);
  });
});

test("the vectors of a processor, by what its compiler defines", () => {
  const compilerWith = (names: string[]) => ({
    command: ["cc"],
    macros: names.map((n) => `#define ${n} 1\n`).join(""),
  });
  const of = (...names: string[]) => vectorsOf(compilerWith(names), false);
  expect(of("__SSE2__")).toEqual({ widths: [4], accumulators: 12, registers: 16, fused: false });
  expect(of("__AVX2__", "__FMA__")).toEqual({ widths: [8, 4], accumulators: 12, registers: 16, fused: true });
  expect(of("__AVX2__", "__FMA__", "__AVX512VL__")).toEqual({
    widths: [8, 4],
    accumulators: 16,
    registers: 32,
    fused: true,
  });
  expect(vectorsOf(compilerWith(["__AVX2__", "__FMA__", "__AVX512VL__"]), true).widths).toEqual([16, 8, 4]);
  expect(of("__aarch64__", "__ARM_NEON")).toEqual({
    widths: [4],
    accumulators: 16,
    registers: 32,
    fused: true,
  });
});

test("whether vectors of 512 bits pay is measured, and always the same", async ({ skip }) => {
  if (typeof found === "string") return skip(found);
  const koffi = await openKoffi("CLANG");
  const native = new Native({ koffi, fs, folder: tmpdir() });
  const isWide = hasWideUnits(found, koffi, native);
  expect(hasWideUnits(found, koffi, native)).toBe(isWide);
  if (!hasMacro(found, "__AVX512VL__")) expect(isWide).toBe(false);
  expect(hasWideUnits({ ...found, macros: "#define __AVX2__ 1\n" }, koffi, native)).toBe(false);
});

describe("the rings of CLANG", () => {
  const names = ["CLANG:40", "CLANG:41"];
  const dev = (name: string) => Device.get(name) as unknown as HCQCompatCompiled & WithHardware;
  interface WithHardware {
    readonly hardware: { readonly workers: { readonly present: boolean } };
  }
  const ready = typeof found === "string" ? Promise.resolve() : Promise.all(names.map((n) => Device.open(n)));

  test("each device has its own timeline, and work on both is right", async ({ skip }) => {
    skip(typeof found === "string", String(found));
    await ready;
    const [a, b] = [dev("CLANG:40"), dev("CLANG:41")] as const;
    expect(a.timelineSignal).not.toBe(b.timelineSignal);
    expect(a.space).toBe(b.space);
    const values = [a.timelineValue, b.timelineValue];
    let t = await new Tensor([1, 2, 3], { device: names[0] as string }).realize();
    for (let i = 0; i < 20; i++) t = t.add(i).to(names[(i + 1) % 2] as string);
    expect(await t.tolist()).toEqual([191, 192, 193]);
    expect(a.timelineValue).toBeGreaterThan(values[0] as number);
    expect(b.timelineValue).toBeGreaterThan(values[1] as number);
  });

  test("a product that threads share is the same, also on workers", async ({ skip }) => {
    skip(typeof found === "string", String(found));
    await ready;
    const name = names[0] as string;
    const n = 256;
    const a = await Tensor.arange(n * n, { dtype: "float32" })
      .reshape(n, n)
      .remainder(7)
      .to(name)
      .realize();
    const there = a.to("WASM");
    const plain = await there.matmul(there).data();
    for (let round = 0; round < 20; round++) expect(await a.matmul(a).data()).toEqual(plain);
    expect(dev(name).hardware.workers.present).toBe(true);
  });

  test("memory that is freed while it is read, and written by the host in its turn", async ({ skip }) => {
    skip(typeof found === "string", String(found));
    await ready;
    const name = names[1] as string;
    const n = 256;
    const ones = await Tensor.full([n, n], 1, { device: name }).contiguous().realize();
    const sums: Tensor[] = [];
    for (let i = 0; i < 10; i++) {
      const x = await new Tensor(new Float32Array(n * n).fill(i)).reshape(n, n).to(name).realize();
      sums.push(await x.matmul(ones).sum().realize());
      x.dispose();
    }
    expect(await Promise.all(sums.map((s) => s.item()))).toEqual(sums.map((_, i) => i * n ** 3));
  });

  test("1,000 submissions with the limit at 50", async ({ skip }) => {
    skip(typeof found === "string", String(found));
    await Device.open("CLANG:42");
    const d = dev("CLANG:42");
    d.timelineLimit = 50;
    let t = await new Tensor([0], { device: "CLANG:42" }).realize();
    for (let i = 0; i < 1000; i++) t = await t.add(1).realize();
    expect(await t.item()).toBe(1000);
    expect(d.era).toBeGreaterThanOrEqual(19);
  });
});

test("a wait that nothing meets names the device, also where a sync call waits", async ({ skip }) => {
  if (typeof found === "string") return skip(found);
  const d = (await Device.open("CLANG:7")) as HCQCompatCompiled;
  const x = await new Tensor([1, 2], { device: "CLANG:7" }).realize();
  const stop = () => {
    const value = d.nextTimelineValue();
    d.computeQueue().wait(d.allocSignal(0, "never"), 1).signal(d.timelineSignal, value).submit(d);
  };
  for (const read of [async () => x.dataSync(), () => x.add(1).data()]) {
    stop();
    await expect(withEnv({ HCQ_TIMEOUT: 0.2 }, read)).rejects.toThrow(
      /^CLANG:7: nothing moved for .* Queued:\nCLANG:7 compute:/s,
    );
  }
  expect(await x.add(1).tolist()).toEqual([2, 3]);
});
