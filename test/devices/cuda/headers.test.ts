// Our own headers of CUDA: they have every function that rendered kernels call on their types. Where nvcc is
// installed, it compiles reductions with them; the list of functions is checked anywhere.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSchedule, type DType, dtypes, Tensor } from "gradloom";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HEADERS } from "../../../src/devices/cuda/headers.ts";
import { optimized } from "../../../src/engine/compiler.ts";
import { CUDALanguage, CUDARenderer } from "../../../src/render/languages.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gradloom-test-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const REDUCES: readonly ((t: Tensor) => Tensor)[] = [
  (t) => t.sum(1),
  (t) => t.max(1),
  (t) => t.min(1),
  (t) => t.prod(1),
];
/** Kernels that reduce rows of this type within warps. */
function kernels(dtype: DType): string[] {
  const outs = REDUCES.map((f) => f(Tensor.empty([8, 4096], { device: "JS", dtype })));
  outs.push(Tensor.full([8, 4096], 2, { device: "JS", dtype }).max(1));
  return createSchedule(outs.map((t) => t.lazydata)).flatMap(({ ast }) => {
    if (ast[0]?.op !== "STORE") return [];
    const { name, uops } = optimized(ast, CUDARenderer, false);
    const code = CUDARenderer.render(name, uops);
    return [typeof code === "string" ? code : code.code];
  });
}
/** Names of types for which CUDA has a shuffle, or an integer type that C widens to one. */
const SHUFFLED = new Set(
  "half|float|double|bool|char|signed char|unsigned char|short|unsigned short|int|unsigned int|long long|unsigned long long".split(
    "|",
  ),
);

describe("shuffles", () => {
  test.for(dtypes.all)("%s: the type that is declared is the type that is shuffled", (dtype) => {
    const shuffles = kernels(dtype).flatMap((text) =>
      [...text.matchAll(/^ *(.+) \w+ = __shfl_xor_sync\(0xffffffffu,(.+),\d+\);$/gm)].map((m) => {
        const [, type = "", value = ""] = m;
        const declared = text.match(new RegExp(`^ *(.+) ${value.replace(/\W/g, "\\$&")} = `, "m"))?.[1];
        return { type, of: declared ?? value.match(/^\((.+)\)\(/)?.[1] ?? type };
      }),
    );
    expect(shuffles.length).toBeGreaterThan(0);
    expect(shuffles.filter((s) => s.type !== s.of || !SHUFFLED.has(s.type))).toEqual([]);
  });
  test("our half has one of its own: that of float would not give a half back", () => {
    expect(HEADERS["cuda_fp16.h"]).toContain("half __shfl_xor_sync(unsigned mask, half x, int lane)");
  });
  test("nvcc compiles them with our headers", { timeout: 120_000 }, ({ skip }) => {
    skip(spawnSync("nvcc", ["--version"]).status !== 0, "nvcc is not installed");
    for (const [name, text] of Object.entries(HEADERS)) writeFileSync(join(folder, name), text);
    const texts = [dtypes.float16, dtypes.bfloat16, dtypes.int64].flatMap(kernels);
    const wrapped = texts.map((text, i) => {
      const [heads, body] = [/^#.*$/gm, text.replace(/^#.*$/gm, "").replaceAll('extern "C" ', "")];
      return { heads: text.match(heads) ?? [], body: `namespace n${i} {\n${body}\n}` };
    });
    const heads = [...new Set(wrapped.flatMap((w) => w.heads))];
    writeFileSync(join(folder, "all.cu"), [...heads, ...wrapped.map((w) => w.body)].join("\n"));
    const args = ["-ptx", "-arch=sm_90", `-I${folder}`, ...CUDALanguage.flags, "-o", "all.ptx", "all.cu"];
    const run = spawnSync("nvcc", args, { encoding: "utf8", cwd: folder });
    expect(run.status === 0 ? "" : run.stderr + run.stdout).toBe("");
  });
});
