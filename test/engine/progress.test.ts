// The bar of compiling: after a second of it and not before, on a terminal or
// (DEBUG) as lines, gone at the end.

import { Device, Tensor, withEnv } from "gradloom";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Source } from "../../src/codegen/target.ts";
import { clearKernelCache } from "../../src/engine/compile.ts";
import { Progress } from "../../src/engine/progress.ts";
import { type MaybePromise, setClock } from "../../src/helpers.ts";
import * as browser from "../../src/host/browser.ts";
import type { Compiled, Program } from "../../src/runtime/device.ts";

let now = 0;
let written: string[] = [];
const { isTTY, columns } = process.stderr;
beforeEach(() => {
  now += 1_000_000;
  written = [];
  setClock(() => now);
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    written.push(String(text));
    return true;
  });
  process.stderr.isTTY = true;
  process.stderr.columns = 200;
});
afterEach(() => {
  vi.restoreAllMocks();
  setClock(() => performance.now());
  process.stderr.isTTY = isTTY;
  process.stderr.columns = columns;
});

/** Ten kernels of so many milliseconds. */
function tenKernels(ms: number): void {
  const progress = new Progress(10);
  progress.begin();
  for (let i = 0; i < 10; i++) {
    now += ms;
    progress.step();
  }
  progress.end();
}
const CLEAR = "\r\u001b[K";

describe("the bar", () => {
  test("is not there before a second has passed", () => {
    tenKernels(99);
    expect(written).toEqual([]);
  });
  test("grows on a terminal, and is gone at the end", () => {
    tenKernels(250);
    expect(written.length).toBe(8);
    expect(written[0]).toBe(`${CLEAR}compiling [========            ] 4 of 10 kernels, 1.0 s`);
    expect(written.at(-2)).toBe(`${CLEAR}compiling [====================] 10 of 10 kernels, 2.5 s`);
    expect(written.at(-1)).toBe(CLEAR);
  });
  test("is not drawn more often than can be seen", () => {
    const progress = new Progress(1000);
    progress.begin();
    now += 1000;
    for (let i = 0; i < 1000; i++) {
      now += 1;
      progress.step();
    }
    expect(written.length).toBe(10);
  });
  test("counts compiling only", () => {
    const progress = new Progress(2);
    progress.begin();
    now += 600;
    progress.step();
    now += 5000;
    progress.begin();
    now += 300;
    progress.step();
    expect(written).toEqual([]);
  });
  test("is cut to the width of the terminal", () => {
    process.stderr.columns = 21;
    tenKernels(1000);
    expect(written[0]).toBe(`${CLEAR}compiling [==       `);
  });
  test("is nothing without a terminal, and with DEBUG a line a second", () => {
    process.stderr.isTTY = false;
    tenKernels(250);
    expect(written).toEqual([]);
    withEnv({ DEBUG: 1 }, () => tenKernels(250));
    expect(written).toEqual([
      "compiling [========            ] 4 of 10 kernels, 1.0 s\n",
      "compiling [================    ] 8 of 10 kernels, 2.0 s\n",
    ]);
  });
  test("PROGRESS=0: nothing", () => {
    withEnv({ PROGRESS: 0 }, () => tenKernels(1000));
    expect(written).toEqual([]);
  });
  test("a page hears of it through a function of its own", () => {
    const page = globalThis as { GRADLOOM_PROGRESS?: (text: string) => void };
    browser.showProgress("nobody listens");
    const heard: string[] = [];
    page.GRADLOOM_PROGRESS = (text) => void heard.push(text);
    browser.showProgress("compiling");
    withEnv({ PROGRESS: 0 }, () => browser.showProgress("silence"));
    delete page.GRADLOOM_PROGRESS;
    expect(heard).toEqual(["compiling"]);
  });
});

describe("a schedule that takes long to compile", () => {
  type Compile = (name: string, source: Source) => MaybePromise<Program>;
  const wasm = Device.get("WASM") as Compiled & { compile: Compile; compilesAside: boolean };
  const own: Compile = wasm.compile.bind(wasm);
  const kernels = (sizes: readonly number[]): Tensor[] => sizes.map((n) => Tensor.ones([n]).contiguous());
  beforeEach(() => {
    clearKernelCache();
    vi.spyOn(wasm, "compile").mockImplementation((name, source) => {
      now += 600;
      if (name.startsWith("E_13")) throw new Error("refused");
      return own(name, source);
    });
  });
  afterEach(() => {
    wasm.compilesAside = false;
  });

  test("shows the bar, sync and async, and takes it away", async () => {
    await Tensor.realize(...kernels([3, 5, 7]));
    expect(written.map((t) => t.replace(/.*\] /s, ""))).toEqual([
      "2 of 3 kernels, 1.2 s",
      "3 of 3 kernels, 1.8 s",
      CLEAR,
    ]);
    written = [];
    const sync = kernels([3, 5, 7, 9, 11]).reduce((a, b) =>
      a
        .pad([[0, 2]])
        .add(b)
        .contiguous(),
    );
    sync.realizeSync();
    expect(written.length).toBeGreaterThan(1);
    expect(written.at(-1)).toBe(CLEAR);
  });
  test("takes it away when a kernel fails, too", async () => {
    await expect(Tensor.realize(...kernels([3, 5, 7, 13, 17]))).rejects.toThrow("refused");
    expect(written.length).toBe(3);
    expect(written.at(-1)).toBe(CLEAR);
  });
  test("shows it where kernels are compiled beside the host", async () => {
    wasm.compilesAside = true;
    vi.spyOn(wasm, "compile").mockImplementation(async (name, source) => {
      now += 600;
      await Promise.resolve();
      now += 600;
      return own(name, source);
    });
    await Tensor.realize(...kernels([3, 5, 7]));
    expect(written.length).toBeGreaterThan(1);
    expect(written[0]).toContain("of 3 kernels");
    expect(written.at(-1)).toBe(CLEAR);
  });
  test("is silent where it is quick", async () => {
    vi.spyOn(wasm, "compile").mockImplementation(own);
    await Tensor.realize(...kernels([3, 5, 7]));
    expect(written).toEqual([]);
  });
});
