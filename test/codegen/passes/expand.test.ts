// Expanding lanes to vectors: every node is well formed (SPEC) for every width of a row, whatever the vectors
// of the target, and a value that several axes of lanes share is broadcast to the width of each.

import { createSchedule, dtypes, type Renderer, Tensor } from "gradloom";
import { expect, test } from "vitest";
import { optimized } from "../../../src/engine/compiler.ts";
import { clangRenderer } from "../../../src/render/languages.ts";
import { WASMRenderer } from "../../../src/render/wasm/renderer.ts";
import { deviceTest, read } from "../../device/harness.ts";

const TARGETS: readonly Renderer[] = [
  WASMRenderer,
  clangRenderer({ widths: [8, 4], accumulators: 16, registers: 16, fused: true }),
];
const WIDTHS = [1, 3, 4, 7, 8, 12, 16, 18, 20, 24, 28, 36, 40];
const empty = (...shape: number[]): Tensor => Tensor.empty(shape, { device: "JS" });
const indices = (n: number): Tensor => Tensor.empty([n], { device: "JS", dtype: dtypes.int32 });

const PROGRAMS: Readonly<Record<string, (width: number) => Tensor>> = {
  layerNorm: (n) => empty(5, n).layerNorm([n]),
  logSoftmax: (n) => empty(5, n).logSoftmax(-1),
  "softmax of columns": (n) => empty(n, 5).softmax(0),
  "rows and columns": (n) => empty(6, n).sub(empty(6, n).mean(0, true)).div(empty(6, n).max(1, true)).sum(0),
  indexAdd: (n) =>
    Tensor.zeros([4 * n])
      .to("JS")
      .indexAdd(0, indices(3), empty(3))
      .reshape(4, n)
      .add(1)
      .sum(1),
  int64: (n) => empty(5, n).cast("int64").add(3).add(empty(5, 1).cast("int64")).sum(0),
};

test.for(Object.entries(PROGRAMS))("%s of many widths is well formed", ([, program]) => {
  let kernels = 0;
  for (const width of WIDTHS) {
    for (const { ast } of createSchedule([program(width).lazydata])) {
      if (ast[0]?.op !== "STORE") continue;
      for (const target of TARGETS) {
        const { name, uops } = optimized(ast, target, false);
        target.render(name, uops);
        kernels++;
      }
    }
  }
  expect(kernels).toBeGreaterThanOrEqual(WIDTHS.length * TARGETS.length);
});

deviceTest("rows whose width is 4 (mod 8)", async (device) => {
  for (const width of [20, 28]) {
    const row = Array.from({ length: width }, (_, i) => ((i * 7) % width) / 4);
    const x = new Tensor([row, row.toReversed()], { device });
    const mean = row.reduce((a, b) => a + b) / width;
    const variance = row.reduce((a, b) => a + (b - mean) ** 2, 0) / width;
    const total = Math.log(row.reduce((a, b) => a + Math.exp(b), 0));
    const normal = row.map((v) => (v - mean) / Math.sqrt(variance + 1e-5));
    const near = (got: readonly unknown[], expected: readonly number[]) =>
      expected.forEach((e, i) => void expect(Number(got[i])).toBeCloseTo(e, 5));
    near(await read(x.layerNorm([width])), [...normal, ...normal.toReversed()]);
    near(
      await read(x.logSoftmax(-1)),
      row.map((v) => v - total).concat(row.map((v) => v - total).toReversed()),
    );
  }
});

deviceTest("constants added to vectors of integers", async (device) => {
  const index = new Tensor([0, 5, 7, 7, 3, 20], { device });
  const zeros = Tensor.zeros([24], { device });
  const counts = zeros
    .indexAdd(0, index, Tensor.ones([6], { device }))
    .reshape(4, 2, 3)
    .add(1)
    .sum(1);
  expect(await read(counts)).toEqual([4, 2, 3, 2, 4, 2, 2, 2, 2, 2, 2, 3]);
});
