// CLANG: what a second process finds in the cache of the first, and that a kernel of a grid does the part it is given.

import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { withEnv } from "gradloom";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cached, keyOf } from "../../src/devices/clang/cache.ts";
import {
  type CCompiler,
  compile,
  findCompiler,
  load,
  openKoffi,
  vectorsOf,
} from "../../src/devices/clang/compiler.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gradloom-test-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function compilerOrWhy(): CCompiler | string {
  try {
    return findCompiler();
  } catch (e) {
    return (e as Error).message;
  }
}
const found = compilerOrWhy();

describe("the cache", () => {
  const bytes = Uint8Array.of(1, 2, 3);
  const never = (): never => {
    throw new Error("made again");
  };

  test("what was made is found again, under its key only", () => {
    withEnv({ CACHE: join(folder, "a") }, () => {
      expect([...cached("kind", keyOf("x"), () => bytes)]).toEqual([1, 2, 3]);
      expect([...cached("kind", keyOf("x"), never)]).toEqual([1, 2, 3]);
      expect(() => cached("kind", keyOf("y"), never)).toThrow("made again");
      expect(() => cached("other", keyOf("x"), never)).toThrow("made again");
    });
    expect(readdirSync(join(folder, "a", "kind"))).toEqual([keyOf("x")]);
  });
  test("CACHE=0 keeps nothing", () => {
    withEnv({ CACHE: "0" }, () => {
      expect([...cached("kind", keyOf("x"), () => bytes)]).toEqual([1, 2, 3]);
      expect(() => cached("kind", keyOf("x"), never)).toThrow("made again");
    });
    expect(existsSync("0")).toBe(false);
  });
  test("a folder that cannot be made costs time and no more", () => {
    const file = join(folder, "file");
    writeFileSync(file, "");
    withEnv({ CACHE: file }, () => expect([...cached("kind", "k", () => bytes)]).toEqual([1, 2, 3]));
  });
  test("too many files: the older half goes", () => {
    const crowded = join(folder, "b", "kind");
    mkdirSync(crowded, { recursive: true });
    for (let i = 0; i < 8300; i++) writeFileSync(join(crowded, `f${i}`), "");
    utimesSync(join(crowded, "f8000"), 1, 1);
    withEnv({ CACHE: join(folder, "b") }, () => cached("kind", "last", () => bytes));
    const left = readdirSync(crowded);
    expect(left.length).toBeLessThan(4300);
    expect(left).not.toContain("f8000");
    expect(left).toContain("last");
  });
});

describe("a kernel", () => {
  const source = (name: string, what: string) =>
    `void ${name}(int* data0, const int n, const int begin, const int end) {\n` +
    `  for (int gidx0 = begin; gidx0 < end; gidx0++) {\n    data0[gidx0] = ${what};\n  }\n}`;

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
  test("of a grid does the part it is given", async ({ skip }) => {
    if (typeof found === "string") return skip(found);
    const koffi = await openKoffi();
    const kernel = load(koffi, compile(found, "E_8", source("E_8", "gidx0*n")));
    const memory = koffi.alloc("uint8_t", 32);
    const ints = new Int32Array(koffi.view(memory, 32)).fill(-1);
    kernel.run([memory], [10, 2, 5]);
    expect([...ints]).toEqual([-1, -1, 20, 30, 40, -1, -1, -1]);
    kernel.run([memory], [10, 5, 8]);
    expect([...ints]).toEqual([-1, -1, 20, 30, 40, 50, 60, 70]);
    koffi.free(memory);
    kernel.unload();
  });
});

test("the vectors of a processor, by what its compiler defines", () => {
  const of = (...names: string[]) =>
    vectorsOf({ command: ["cc"], macros: names.map((n) => `#define ${n} 1\n`).join("") });
  expect(of("__SSE2__")).toEqual({ width: 4, accumulators: 12, fused: false });
  expect(of("__AVX2__", "__FMA__")).toEqual({ width: 8, accumulators: 12, fused: true });
  expect(of("__AVX2__", "__FMA__", "__AVX512VL__")).toEqual({ width: 8, accumulators: 24, fused: true });
  expect(of("__aarch64__", "__ARM_NEON")).toEqual({ width: 4, accumulators: 24, fused: true });
});
