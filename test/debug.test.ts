// What a person sees with DEBUG=1 to 6: each level adds its own lines to those of the level before, one line
// a kernel or copy has the columns of the seeds, and names are coloured only where a terminal reads.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { clearKernelCache, Device, GlobalCounters, resetKernelNames, Tensor, withEnv } from "gradloom";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { colored, padColored, setClock } from "../src/helpers.ts";
import { statsLine } from "../src/runtime/stats.ts";

beforeEach(() => {
  resetKernelNames();
  clearKernelCache();
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  setClock(() => performance.now());
});

/** Everything printed while `fn` runs, line by line. */
async function printed(DEBUG: number, fn: () => unknown): Promise<string[]> {
  const lines: string[] = [];
  vi.spyOn(console, "log").mockImplementation((...xs) => void lines.push(...xs.join(" ").split("\n")));
  try {
    await withEnv({ DEBUG }, async () => fn());
  } finally {
    vi.restoreAllMocks();
  }
  return lines;
}

const dot = (device?: string) => {
  const options = device === undefined ? {} : { device };
  return new Tensor([1, 2], options).dot(new Tensor([3, 4], options)).item();
};

const STATS = [
  /^\*\*\* EXT {10}synchronize {32}arg {3}1 mem .* GB tm/,
  /^\*\*\* WASM {3,}\d+ copy {8}8, {4}WASM <- EXT {14}arg {3}2 mem/,
  /^\*\*\* WASM {3,}\d+ copy {8}8, {4}WASM <- EXT {14}arg {3}2 mem/,
  /^\*\*\* WASM {3,}\d+ r_2 {40}arg {3}3 mem/,
  /^\*\*\* WASM {9}synchronize {32}arg {3}1 mem/,
  /^\*\*\* EXT {3,}\d+ copy {8}4, {5}EXT <- WASM {13}arg {3}2 mem/,
];
const AST = [
  "COPY",
  "COPY",
  "STORE MemBuffer(0, dtypes.int, ShapeTracker(View([1])))",
  "  SUM 0",
  "    MUL",
  "      LOAD MemBuffer(1, dtypes.int, ShapeTracker(View([2])))",
  "      LOAD MemBuffer(2, dtypes.int, ShapeTracker(View([2])))",
  "COPY",
];
/** Machine code is shown as the C that does the same. */
const SOURCE = [
  /^\/\/ \d+ bytes for WASM, in C:$/,
  "void r_2(int* data0, const int* data1, const int* data2) {",
  "  int acc0 = 0;",
  "  for (int ridx0 = 0; ridx0 < 2; ridx0++) {",
  "    int val0 = data1[ridx0];",
  "    int val1 = data2[ridx0];",
  "    acc0 = ((val0*val1)+acc0);",
  "  }",
  "  data0[0] = acc0;",
  "}",
];
const UOPS = [/^step {2}Op_name/, /^ {3}0 UOps\.DEFINE_GLOBAL/, ...Array<RegExp>(13).fill(/^ +\d+ UOps\./)];
const QUEUE = [
  "WASM: WAIT(EXT) COPY(WASM <- EXT) COPY(WASM <- EXT) STORE(1 out, 2 in) SYNC(WASM)",
  "EXT: SYNC(EXT) WAIT(WASM) COPY(EXT <- WASM)",
];

describe("each level adds to the one before", () => {
  const matchAll = (lines: readonly string[], patterns: readonly (string | RegExp)[]) => {
    expect(lines).toEqual(patterns.map((p) => (typeof p === "string" ? p : expect.stringMatching(p))));
  };
  /** The kernel is compiled between the second copy and its own line. */
  const around = (...compiling: readonly (string | RegExp)[]) => [
    ...STATS.slice(0, 3),
    ...compiling,
    ...STATS.slice(3),
  ];

  test("0: nothing", async () => {
    matchAll(await printed(0, () => dot()), []);
    matchAll(await printed(0, () => Device.open("JS:20")), []);
  });
  test("1: devices", async () => {
    matchAll(await printed(1, () => dot()), []);
    matchAll(await printed(1, () => dot("JS:21")), ["opened device JS:21"]);
  });
  test("2: kernel timings", async () => matchAll(await printed(2, () => dot()), STATS));
  test("3: the schedule", async () => matchAll(await printed(3, () => dot()), [...AST, ...STATS]));
  test("4: source", async () => matchAll(await printed(4, () => dot()), [...AST, ...around(...SOURCE)]));
  test("5: uops", async () =>
    matchAll(await printed(5, () => dot()), [...AST, ...around(...UOPS, ...SOURCE)]));
  test("6: queues", async () =>
    matchAll(await printed(6, () => dot()), [...AST, ...QUEUE, ...around(...UOPS, ...SOURCE)]));

  test("a compiled kernel is not shown again", async () => {
    await dot();
    const lines = await printed(5, () => dot());
    expect(lines.filter((line) => line.includes("UOps.") || line.includes("WebAssembly"))).toEqual([]);
  });
  test("4 shows text where the device compiles text", async () => {
    await Device.open("NULL");
    const lines = await printed(4, () => dot("NULL"));
    expect(lines).toContain("void r_2(int* data0, const int* data1, const int* data2) {");
    expect(lines).toContain("    acc0 = ((val0*val1)+acc0);");
  });
});

describe("the columns", () => {
  test("device, number, name, arguments, memory, time and time so far, GFLOPS, GB/s", () => {
    const before = { ...GlobalCounters };
    Object.assign(GlobalCounters, { kernelCount: 7, copyCount: 5, memUsed: 1.234e9, timeSumS: 0.0125 });
    const e = { device: "WASM", args: 3, ops: 2e6, bytes: 12e6, seconds: 0.001 };
    const lines = [
      statsLine({ ...e, kind: "kernel", name: "r_256_256_256" }),
      statsLine({ ...e, kind: "kernel", name: "E_4", device: "WASM:12", seconds: undefined }),
      statsLine({ ...e, kind: "sync", name: "synchronize", ops: 0, bytes: 0, seconds: 0 }),
    ];
    Object.assign(GlobalCounters, before);
    expect(lines).toEqual([
      "*** WASM      12 r_256_256_256                              arg   3 mem  1.23 GB " +
        "tm   1000.00us/    12.50ms (    2.00 GFLOPS,    12.00 GB/s)",
      "*** WASM:12   12 E_4                                        arg   3 mem  1.23 GB",
      "*** WASM         synchronize                                arg   3 mem  1.23 GB " +
        "tm      0.00us/    12.50ms (    0.00 GFLOPS,     0.00 GB/s)",
    ]);
  });

  test("what a kernel reports: operations and bytes over the time that the device took", async () => {
    const x = await Tensor.ones(1_000_000).contiguous().realize();
    const y = await Tensor.ones(1_000_000).contiguous().realize();
    resetKernelNames();
    GlobalCounters.reset();
    setClock(() => 0); // the host's clock has no say in it
    const lines = await printed(2, () => x.add(y).realize());
    expect(lines).toHaveLength(1);
    const [, us, total, gflops, rate] =
      /^\*\*\* WASM {7}1 \w+ +arg {3}3 mem +\d+\.\d\d GB tm +([\d.]+)us\/ +([\d.]+)ms \( +([\d.]+) GFLOPS, +([\d.]+) GB\/s\)$/
        .exec(lines[0] as string)
        ?.map(Number) ?? [];
    expect(us).toBeGreaterThan(10);
    expect(total).toBeCloseTo((us as number) / 1000, 1);
    expect(gflops).toBeCloseTo(1e6 / (us as number) / 1000, 1);
    expect(rate).toBeCloseTo(12e6 / (us as number) / 1000, 1);
    expect([GlobalCounters.globalOps, GlobalCounters.globalMem]).toEqual([1e6, 12e6]);
  });

  test("a copy says how much and where: bytes, or megabytes from a million on", async () => {
    const lines = await printed(2, async () => {
      await new Tensor(new Uint8Array(999_999)).realize();
      await new Tensor(new Uint8Array(2_500_000)).realize();
    });
    const names = lines.filter((l) => l.includes("copy")).map((l) => /copy.*?<- \w+/.exec(l)?.[0]);
    expect(names).toEqual(["copy   999999,    WASM <- EXT", "copy    2.50M,    WASM <- EXT"]);
  });

  test("kernels and copies are numbered in the order in which they run", async () => {
    GlobalCounters.reset();
    const lines = await printed(2, () => dot());
    const numbers = lines.filter((l) => !l.includes("synchronize")).map((l) => Number(l.slice(12, 16)));
    expect(numbers).toEqual([1, 2, 3, 4]);
  });
});

// ---- colours ----

const root = join(import.meta.dirname, "..");
const index = JSON.stringify(pathToFileURL(join(root, "src", "index.ts")).href);
const PROGRAM = `const { Tensor } = await import(${index});
console.log(await new Tensor([1, 2]).dot(new Tensor([3, 4])).item());`;
const NODE = ["--import", "tsx", "--input-type=module", "--eval", PROGRAM];

function child(env: Record<string, string>, terminal: boolean) {
  const { DEV: _, NO_COLOR: __, FORCE_COLOR: ___, ...rest } = process.env;
  const quote = (s: string) => `'${s.replaceAll("'", "'\\''")}'`;
  const options = { cwd: root, encoding: "utf8", env: { ...rest, ...env } } as const;
  const run = terminal
    ? spawnSync("script", ["-qec", [process.execPath, ...NODE].map(quote).join(" "), "/dev/null"], options)
    : spawnSync(process.execPath, NODE, options);
  expect(run.status, run.stderr).toBe(0);
  return run.stdout.replaceAll("\r\n", "\n");
}
const hasScript = spawnSync("script", ["--version"], { encoding: "utf8" }).stdout?.includes("util-linux");
const ESC = "\u001b";

describe("colours are for terminals", () => {
  test("a pipe gets none, and every level from the environment", () => {
    const text = child({ DEBUG: "6" }, false);
    expect(text).not.toContain(ESC);
    expect(text).toMatch(/^opened device EXT\n/); // EXT is opened when the first tensor is made
    expect(text).toContain(`\n${QUEUE[0]}\n`);
    expect(text).toMatch(/\n\*\*\* WASM {6,}3 r_2 {40}arg/);
    expect(text).toMatch(/\n11\n$/);
  });

  test("a terminal gets them: kernels cyan, copies yellow, synchronize bright red", ({ skip }) => {
    skip(!hasScript, "no script of util-linux to make a terminal with");
    const text = child({ DEBUG: "2" }, true);
    expect(text).toContain(`${ESC}[36mr_2${ESC}[0m`);
    expect(text).toContain(`${ESC}[33mcopy        8,    WASM <- EXT    ${ESC}[0m`);
    expect(text).toContain(`${ESC}[91msynchronize${ESC}[0m`);
    // the columns stand where they stand without colours
    const columns = text
      .replaceAll(new RegExp(`${ESC}\\[\\d+m`, "g"), "")
      .split("\n")
      .filter((l) => l.startsWith("***"));
    expect(columns.map((l) => l.indexOf(" arg "))).toEqual(columns.map(() => 59));
  });

  test("a terminal and NO_COLOR: none", ({ skip }) => {
    skip(!hasScript, "no script of util-linux to make a terminal with");
    const text = child({ DEBUG: "2", NO_COLOR: "1" }, true);
    expect(text).toContain(" r_2 ");
    expect(text).not.toContain(ESC);
  });

  test("colored and padColored", () => {
    const stdout = { isTTY: true };
    vi.spyOn(process, "stdout", "get").mockReturnValue(stdout as typeof process.stdout);
    const red = withEnv({ NO_COLOR: "" }, () => colored("x", "red"));
    expect(red).toBe(`${ESC}[31mx${ESC}[0m`);
    expect(withEnv({ NO_COLOR: "" }, () => colored("x", "RED"))).toBe(`${ESC}[91mx${ESC}[0m`);
    expect(withEnv({ NO_COLOR: "1" }, () => colored("x", "red"))).toBe("x");
    expect([padColored(red, 3), padColored("abcd", 3)]).toEqual([`${red}  `, "abcd"]);
    stdout.isTTY = false;
    expect(withEnv({ NO_COLOR: "" }, () => colored("x", "red"))).toBe("x");
  });
});
