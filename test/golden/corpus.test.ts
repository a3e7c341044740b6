// The kernels of sixty small programs (corpus/programs.ts) in the languages of the seeds, one file each,
// under FUSE=0 and NOOPT=1: as the seeds cut and render them. corpus/README.md says where and why they
// differ from what the original prints. Compilers take all of them. After a change on purpose: `npx vitest
// run test/golden -u`, and read the difference.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  createSchedule,
  Device,
  type Renderer,
  resetKernelNames,
  type Tensor,
  toKernel,
  withEnv,
} from "gradloom";
import {
  type CStyleLanguage,
  CUDALanguage,
  CUDARenderer,
  HIPLanguage,
  HIPRenderer,
  MetalLanguage,
  MetalRenderer,
  OpenCLLanguage,
  OpenCLRenderer,
  uopsToCStyle,
} from "gradloom/render";
import { expect, test } from "vitest";
import { METAL_STDLIB } from "../render/metalstub.ts";
import { PROGRAMS } from "./corpus/programs.ts";

await Device.open("JS");

/** The kernels of a program, in order. */
function kernelsOf(make: () => Tensor, renderer: Renderer): string[] {
  const schedule = withEnv({ FUSE: 0, NOOPT: 1 }, () => createSchedule([make().lazydata]));
  return schedule
    .filter((si) => si.ast[0]?.op === "STORE")
    .map((si) => {
      const { name, uops } = toKernel(si.ast, [], renderer);
      return renderer.render(name, uops).code as string;
    });
}

/** A kernel without what all kernels of the language have: the file says it once. */
function short(language: CStyleLanguage, text: string): string {
  const [start, args] = [language.kernelPrefix, language.extraArgs];
  const head = uopsToCStyle(language, "f", []).split(start)[0] as string;
  return [head, start, args.map((a) => `, ${a}`).join("")].reduce((s, part) => s.replace(part, ""), text);
}

interface Row {
  readonly language: CStyleLanguage;
  readonly renderer: Renderer;
  /** a compiler that checks a file, and its arguments */
  readonly compiler: readonly [string, ...string[]];
}
const HALF_ARGS = ["-Xclang", "-fallow-half-arguments-and-returns", "-Xclang", "-fnative-half-type"];
const ROWS: Readonly<Record<string, Row>> = {
  metal: {
    language: MetalLanguage,
    renderer: MetalRenderer,
    compiler: ["clang++", "-std=c++14", "-fsyntax-only", "-w", ...HALF_ARGS, "-I.", "-x", "c++"],
  },
  cuda: {
    language: CUDALanguage,
    renderer: CUDARenderer,
    compiler: ["nvcc", "-x", "cu", "-ptx", "-arch=sm_90", ...CUDALanguage.flags, "-o", "out.ptx"],
  },
  hip: {
    language: HIPLanguage,
    renderer: HIPRenderer,
    compiler: [
      ...(["clang-19", "-x", "hip", "--offload-arch=gfx1100", "--offload-device-only"] as const),
      ...["-nogpulib", "-nogpuinc", "-fsyntax-only", ...HIPLanguage.flags],
    ],
  },
  opencl: {
    language: OpenCLLanguage,
    renderer: OpenCLRenderer,
    compiler: ["clang", "-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header", "-fsyntax-only"],
  },
};

test("there are sixty programs and more", () => {
  expect(Object.keys(PROGRAMS).length).toBeGreaterThanOrEqual(60);
});

test.each(Object.entries(ROWS))("the texts for %s", async (name, { language, renderer }) => {
  const all = Object.entries(PROGRAMS).map(([title, make]) => {
    resetKernelNames(); // as in a fresh process
    const kernels = kernelsOf(make, renderer);
    expect(kernels.length, title).toBeGreaterThan(0);
    for (const text of kernels) expect(text, title).toContain(language.kernelPrefix);
    return [`// ${title}`, ...kernels.map((text) => short(language, text))].join("\n");
  });
  const empty = uopsToCStyle(language, "kernel_of_nothing", []);
  const file = [`// what every kernel has, and which is left out below:\n${empty}`, ...all].join("\n\n");
  await expect(`${file}\n`).toMatchFileSnapshot(`corpus/${name}.txt`);
});

test.for(Object.entries(ROWS))(
  "a compiler takes the texts for %s",
  { timeout: 120_000 },
  (
    [
      name,
      {
        renderer,
        compiler: [command, ...args],
      },
    ],
    { skip },
  ) => {
    skip(spawnSync(command, ["--version"]).status !== 0, `${command} is not installed`);
    const folder = mkdtempSync(join(tmpdir(), "gradloom-corpus-"));
    try {
      resetKernelNames(); // once: all in one file
      const texts = Object.values(PROGRAMS).flatMap((make) => kernelsOf(make, renderer));
      // a block begins where a line does: helpers that several kernels bring are there once
      const blocks = texts.flatMap((text) => text.split(/\n(?=[^\s}])/));
      writeFileSync(join(folder, "metal_stdlib"), METAL_STDLIB);
      writeFileSync(join(folder, name), `${[...new Set(blocks)].join("\n")}\n`);
      const { status, stderr } = spawnSync(command, [...args, name], { encoding: "utf8", cwd: folder });
      expect([status, status === 0 ? "" : stderr]).toEqual([0, ""]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);

test("what README.md says is here is in the files", () => {
  const read = (file: string): string => readFileSync(join(import.meta.dirname, "corpus", file), "utf8");
  const files = Object.keys(ROWS).map((name) => read(`${name}.txt`));
  const rows = read("README.md")
    .split("\n")
    .filter((line) => line.startsWith("| ") && !/^\| (?:---|what )/.test(line))
    .map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|")));
  expect(rows.length).toBeGreaterThan(35);
  for (const [, what, , here = "", why] of rows) {
    expect(why, what).not.toBe("");
    for (const [, code = ""] of here.matchAll(/`([^`]+)`/g))
      expect(
        files.some((text) => text.includes(code)),
        `${what}: ${code}`,
      ).toBe(true);
  }
});
