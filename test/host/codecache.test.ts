// Code that V8 made for a part of the package, for the next process: it is taken if it is whole and fits, and
// nothing but time is lost if it is not. A small part stands for the core; the built package comes last.

import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { isBetter, keepCode } from "../../src/host/codecache.ts";
import { keyOf, loadPart, type PackagePart } from "../../src/host/start.ts";
import { type Built, buildPackage } from "../scripts/built.ts";

const PART = "module.exports=(function(given){return (()=>given+1)()});\n";

describe("a part", () => {
  let folder = "";
  let count = 0;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "gradloom-code-"));
    writeFileSync(join(folder, "part.cjs"), PART);
    stub({});
    process.setSourceMapsEnabled(false); // the test runner may have set it
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
    rmSync(folder, { recursive: true });
  });
  const stub = (changes: Record<string, string>): void => {
    const settings = { CACHE: join(folder, "cache"), CODECACHE: "1", NODE_V8_COVERAGE: "", ...changes };
    for (const [name, value] of Object.entries(settings)) vi.stubEnv(name, value);
  };
  const load = (name = "./part.cjs"): PackagePart =>
    loadPart(name, pathToFileURL(join(folder, "index.js")).href, () => (given) => `bundled ${given}`);
  const code = (): string => join(folder, "cache", "code");
  /** Loads the part, uses it and keeps its code; how many kernels the process compiled whose code it took. */
  const next = (kernels = 1): number | undefined => {
    const { make, code } = load();
    expect(make(++count)).toBe(count + 1);
    if (code !== undefined) keepCode([code], kernels);
    return code?.kernels;
  };
  const onlyFile = (): string => {
    const files = readdirSync(code());
    expect(files.length).toBe(1);
    return join(code(), files[0] as string);
  };

  test("the code of the first process is taken by the second", () => {
    expect([next(7), next(), next()]).toEqual([-1, 7, 7]);
    if (process.getuid !== undefined) expect(statSync(onlyFile()).mode & 0o077).toBe(0);
  });
  test("a process that compiled many more kernels keeps its own", () => {
    expect([next(2), next(4), next(5), next(6)]).toEqual([-1, 2, 2, 5]);
    expect([isBetter(0, -1, 1e6), isBetter(3, 1, 59), isBetter(3, 1, 61), isBetter(2, 1, 1)]).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });
  test("a damaged file is not taken, and replaced", () => {
    next(7);
    const file = onlyFile();
    const whole = readFileSync(file);
    const flipped = [0, 9, 100, whole.length / 2, whole.length - 1].map((at) =>
      whole.map((byte, i) => (i === at ? byte ^ 1 : byte)),
    );
    for (const damage of [...flipped, whole.subarray(1), whole.subarray(0, 10), whole.subarray(0, 0)]) {
      writeFileSync(file, damage);
      expect([next(7), next()]).toEqual([-1, 7]);
    }
  });
  test("code that V8 refuses is replaced", () => {
    const part = join(folder, "part.cjs");
    utimesSync(part, 5, 5);
    next(7);
    const other = readFileSync(onlyFile());
    for (const at of [0, other.length / 2]) other.fill(1, at + 8, at + 40); // V8's own header
    writeFileSync(onlyFile(), other);
    // V8 would find the same text in this process, and not look at the code
    writeFileSync(part, PART.replace("given+1", "1+given"));
    utimesSync(part, 5, 5);
    expect([next(8), next()]).toEqual([-1, 8]);
  });
  test("another text in the same file has other code, even if it is as long", () => {
    next(7);
    const file = join(folder, "part.cjs");
    writeFileSync(file, PART.replace("given+1", "given+2"));
    utimesSync(file, 1, 1);
    expect(load().code?.kernels).toBe(-1);
    expect(load().make(1)).toBe(3);
  });
  test("the key depends on each of its parts, and starts with the name of the file", () => {
    const keys = [
      ["./a.cjs", "b", "c"],
      ["./a.cjs", "b", "d"],
      ["./a.cjs", "bc", ""],
      ["./a.cjs", "", "bc"],
    ];
    expect(new Set(keys.map((parts) => keyOf(...parts))).size).toBe(4);
    expect(keyOf("./a.cjs", "b")).toMatch(/^a\.cjs-\w{6,}$/);
  });
  test("folders that cannot be used, or not safely, are left alone without a word", () => {
    const warn = vi.spyOn(console, "warn");
    writeFileSync(join(folder, "file"), "");
    stub({ CACHE: join(folder, "file") });
    expect([next(), next()]).toEqual([-1, -1]);
    if (process.getuid !== undefined) {
      stub({});
      next(7);
      chmodSync(join(folder, "cache"), 0o777);
      const before = readFileSync(onlyFile());
      expect([next(100), next(100)]).toEqual([-1, -1]);
      expect(readFileSync(onlyFile()).equals(before)).toBe(true);
    }
    expect(warn).not.toHaveBeenCalled();
  });
  test("a file that others may write is not taken, and replaced", ({ skip }) => {
    skip(process.getuid === undefined, "files have no owners here");
    next(7);
    chmodSync(onlyFile(), 0o622);
    expect([next(8), next()]).toEqual([-1, 8]);
  });
  test("CODECACHE=0, CACHE=0, coverage and source maps leave it to Node", () => {
    for (const [name, value] of Object.entries({ CODECACHE: "0", CACHE: "0", NODE_V8_COVERAGE: folder })) {
      stub({ [name]: value });
      expect(next()).toBe(undefined);
    }
    stub({});
    process.setSourceMapsEnabled(true);
    expect(next()).toBe(undefined);
    expect(existsSync(join(folder, "cache"))).toBe(false);
  });
  test("in a bundle there is no such file: the bundler's own is taken", () => {
    expect(load("./none.cjs").make(1)).toBe("bundled 1");
    expect(loadPart("./part.cjs", undefined, () => () => "bundled").make(1)).toBe("bundled");
  });
  test("old code goes where there is much of it", () => {
    mkdirSync(code(), { recursive: true, mode: 0o700 });
    chmodSync(join(folder, "cache"), 0o700);
    for (let i = 0; i < 5; i++) {
      writeFileSync(join(code(), `old${i}`), new Uint8Array(8 * 2 ** 20));
      utimesSync(join(code(), `old${i}`), i + 1, i + 1);
    }
    next();
    expect(readdirSync(code()).filter((name) => name.startsWith("old"))).toEqual(["old3", "old4"]);
  });
});

describe("the built package", () => {
  let built: Built;
  beforeAll(async () => {
    built = await buildPackage();
  }, 60_000);
  afterAll(() => built.remove());

  const files = (): string[] => readdirSync(join(built.folder, "cache", "code")).sort();
  /** A file that is written again is another one. */
  const ids = (): string[] =>
    files().map((name) => `${name} ${statSync(join(built.folder, "cache", "code", name)).ino}`);
  // products of vectors switch a flag of V8 on in Node 20, and the rest is loaded after that
  const program = (then: string): string => `
import { Tensor, nn } from "built";
const a = Tensor.arange(64 * 64).reshape(64, 64).mul(0.5);
console.log((await a.matmul(a).sum().item()) > 0, ${then});`;
  const run = (then: string, flags: string[] = []): string => built.run("code.mjs", program(then), {}, flags);

  test("the second process takes the code of the first: of the core, and of what loads later", () => {
    expect(run("nn.Linear.name")).toBe("true Linear");
    const first = ids();
    expect(files().map((name) => name.replace(/-.*/, ""))).toEqual(["core", "rest"]);
    expect(run("nn.Linear.name")).toBe("true Linear");
    expect(ids()).toEqual(first);
  }, 30_000);
  test("flags of V8 have code of their own", () => {
    const before = ids();
    const flags = ["--disallow-code-generation-from-strings"];
    expect(run("1", flags)).toBe("true 1");
    const after = ids();
    expect(after.length).toBeGreaterThan(before.length);
    expect(run("1", flags)).toBe("true 1");
    expect(ids()).toEqual(after);
  }, 30_000);
  test("a thread takes it, too", () => {
    const before = ids();
    const text = `
import { Worker } from "node:worker_threads";
new Worker(new URL("./code.mjs", import.meta.url)).on("exit", (code) => console.log("exit", code));`;
    expect(built.run("thread.mjs", text)).toBe("true 1\nexit 0");
    expect(ids()).toEqual(before);
    // it keeps none of its own: flags of V8 are those of all threads
    const CACHE = join(built.folder, "of a thread");
    expect(built.run("thread.mjs", text, { CACHE })).toBe("true 1\nexit 0");
    expect(existsSync(CACHE)).toBe(false);
  }, 30_000);
});
