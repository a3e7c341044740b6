// Names that users choose (of Variables, kernels, functions) in texts that are compiled or shown: they become
// identifiers of every language, they do not clash with what renderers write, and they cannot leave the word
// in which they stand.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import {
  ArgumentError,
  Device,
  dtypes,
  PtrDType,
  profiler,
  SymbolicError,
  Tensor,
  UOpGraph,
  Variable,
  withEnv,
} from "gradloom";
import {
  ClangLanguage,
  CUDALanguage,
  HIPLanguage,
  MetalLanguage,
  OpenCLLanguage,
  uopsToCStyle,
  uopsToWGSL,
  WASMRenderer,
} from "gradloom/render";
import { describe, expect, test, vi } from "vitest";
import { findCompiler } from "../src/devices/clang/compiler.ts";
import { identifier, kernelIdentifier } from "../src/names.ts";
import { isPrintable, printable } from "../src/printable.ts";

const HOSTILE = [
  'n); system("touch /tmp/x"); int m = (1',
  "n, float* data0",
  "n */ } int evil() { return 1; } /*",
  "n // x",
  "#define float int",
  '"; \\',
  "<script>alert(1)</script>",
  "</text><svg onload=alert(1)>",
  "größe",
  "числo",
  "😀",
  " ",
  "1n",
  "int",
  "data0",
  "val0",
  "begin",
  "__proto__",
  "constructor",
  "$&",
  "x".repeat(200),
];

/** data0[i] = n + k, with a loop and a shared array: everything that has a name. */
function kernel(variable: string, other = "k", buffer = "data0"): UOpGraph {
  const g = new UOpGraph();
  const out = g.add("DEFINE_GLOBAL", PtrDType(dtypes.int), [], [0, buffer, true]);
  const n = g.add("DEFINE_VAR", dtypes.int32, [], Variable(variable, 1, 8));
  const k = g.add("DEFINE_VAR", dtypes.int32, [], Variable(other, 1, 9));
  const zero = g.add("CONST", dtypes.int, [], 0);
  const loop = g.add("LOOP", dtypes.int, [zero, n]);
  g.add("STORE", undefined, [out, loop, g.add("ALU", dtypes.int, [n, k], "ADD")]);
  g.add("ENDLOOP", undefined, [loop]);
  return g;
}
const TEXTS: Readonly<Record<string, (name: string, g: UOpGraph) => string>> = {
  C: (name, g) => uopsToCStyle(ClangLanguage, name, g),
  CUDA: (name, g) => uopsToCStyle(CUDALanguage, name, g),
  HIP: (name, g) => uopsToCStyle(HIPLanguage, name, g),
  Metal: (name, g) => uopsToCStyle(MetalLanguage, name, g),
  OpenCL: (name, g) => uopsToCStyle(OpenCLLanguage, name, g),
  WGSL: uopsToWGSL,
};

describe.each(Object.entries(TEXTS))("in %s", (_, render) => {
  test("a hostile name of a Variable is one word, everything else stays as it is", () => {
    for (const name of HOSTILE) {
      const word = identifier(name);
      expect(word).toMatch(/^[A-Za-z][A-Za-z0-9_]{0,63}$/);
      const plain = render("test", kernel("zzz"));
      expect(render("test", kernel(name))).toBe(plain.replaceAll(/\bzzz\b/g, word));
    }
  });
  test("a Variable and a buffer of one name get two", () => {
    const text = render("test", kernel("same", "k", "same"));
    for (const word of ["same", "same_1"])
      expect(text.split(new RegExp(`\\b${word}\\b`)).length).toBeGreaterThan(2);
  });
  test("a hostile name of a buffer is one word", () => {
    for (const name of HOSTILE.filter((x) => !/^[A-Za-z]\w*$/.test(x))) {
      const text = render("test", kernel("zzz", "k", name));
      expect(text.replaceAll(identifier(name), "data0")).toBe(render("test", kernel("zzz")));
    }
  });
  test("a hostile name of a kernel is refused", () => {
    for (const name of [...HOSTILE.filter((x) => !/^[A-Za-z_]\w*$/.test(x)), "x".repeat(300)])
      expect(() => render(name, kernel("n"))).toThrow(ArgumentError);
  });
});

test("WASM: names of Variables are not in the module, and a kernel's name is a string of known length", () => {
  const codeOf = (g: UOpGraph, name = "test") => WASMRenderer.render(name, g).code as Uint8Array<ArrayBuffer>;
  for (const name of HOSTILE) {
    expect(codeOf(kernel(name))).toEqual(codeOf(kernel("zzz")));
    const module = new WebAssembly.Module(codeOf(kernel("n"), name));
    expect(WebAssembly.Module.exports(module)).toEqual([{ name, kind: "function" }]);
  }
});

test("a Variable may have the name of anything that a C kernel uses", ({ skip }) => {
  let compiler: ReturnType<typeof findCompiler>;
  try {
    compiler = findCompiler();
  } catch (e) {
    return skip(String(e));
  }
  // all words of the renderers themselves: helpers, types, functions of C
  const files = ["languages", "spelling", "vectors", "cstyle", "overflow", "minmax"];
  const texts = files.map((f) => readFileSync(join(import.meta.dirname, `../src/render/${f}.ts`), "utf8"));
  const names = new Set([...texts.join(" ").matchAll(/[A-Za-z_]\w*/g)].map(([word]) => word));
  for (const word of ["begin", "end", "main", "restrict", ...Object.getOwnPropertyNames(Math)])
    names.add(word);
  const code = [...names].map((name, i) => uopsToCStyle(ClangLanguage, `test${i}`, kernel(name))).join("\n");
  const [command = "", ...args] = compiler.command;
  const answer = spawnSync(command, [...args, "-fsyntax-only", "-Werror=shadow", "-x", "c", "-"], {
    input: code,
    encoding: "utf8",
  });
  expect(answer.stderr).toBe("");
  expect(names.size).toBeGreaterThan(500);
});

test.each(["JS", "WASM", "CLANG"])("on %s hostile Variables compute", async (device) => {
  try {
    await Device.open(device);
  } catch {
    return; // no compiler here
  }
  const x = await new Tensor([1, 2, 3, 4, 5, 6, 7, 8], { device }).realize();
  const sums = HOSTILE.slice(0, device === "CLANG" ? 6 : HOSTILE.length).map((name) =>
    x.shrink([[0, Variable(name, 1, 8).bind(3)]]).sum(),
  );
  await Tensor.realize(...sums);
  for (const sum of sums) expect(await sum.item()).toBe(6);
});

test("a Variable whose name moves a cursor, ends a line or is endless is refused cheaply", () => {
  for (const name of ["a\nb", "\x1b[2J", "a\0", "\u202eabc", "a\u2028", "x".repeat(1e7)]) {
    expect(() => Variable(name, 1, 8)).toThrow(SymbolicError);
    expect(isPrintable(name)).toBe(false);
  }
  expect(printable("x".repeat(1e7))).toHaveLength(201);
});

test("names of functions are shown without what moves a cursor, in DEBUG output and in a trace", async () => {
  const fn = ([out]: readonly { copyin(x: Uint8Array): unknown }[]): void =>
    void out?.copyin(new Uint8Array([1]));
  Object.defineProperty(fn, "name", { value: '\x07"</script>\n' });
  const lines: string[] = [];
  const log = vi.spyOn(console, "log").mockImplementation((...xs) => void lines.push(xs.join(" ")));
  try {
    await withEnv({ DEBUG: 2, PROFILE: 1 }, () => Tensor.customOp(fn, [1], [], { dtype: "uint8" }).realize());
  } finally {
    log.mockRestore();
  }
  const shown = stripVTControlCharacters(lines.join(""));
  expect(shown).toContain('"</script>');
  expect(shown).not.toContain("\x07");
  expect(() => JSON.parse(JSON.stringify(profiler.spans))).not.toThrow();
  profiler.reset();
});

test("a kernel may be called what its sizes are called", () => {
  expect(kernelIdentifier("r_4_2n1")).toBe("r_4_2n1");
  expect(() => kernelIdentifier("")).toThrow(/cannot be the name of a kernel/);
});
