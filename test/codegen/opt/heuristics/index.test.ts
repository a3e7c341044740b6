// The lists of a target are tried in their order, on every kind of device: one that lowering refuses is not
// the end.

import { createSchedule, Tensor } from "gradloom";
import { CUDARenderer } from "gradloom/render";
import { expect, test } from "vitest";
import { prepare, toFastKernel } from "../../../../src/codegen/kernel.ts";
import { chooseLists, type Heuristic } from "../../../../src/codegen/opt/heuristics/index.ts";
import type { OptOp } from "../../../../src/codegen/opt/opts.ts";
import { clangRenderer } from "../../../../src/render/languages.ts";
import { WASMRenderer } from "../../../../src/render/wasm/renderer.ts";
import { Device } from "../../../../src/runtime/registry.ts";
import { rendererOf } from "../../kernels.ts";

await Device.open("JS");
const { ast = [] } =
  createSchedule([Tensor.empty([64, 8], { device: "JS" }).add(1).sum(1).lazydata]).at(-1) ?? {};
const refused: OptOp = { op: "UPCAST", axis: 0, lanes: 7 };
const good: OptOp = { op: "UPCAST", axis: 0, lanes: 4 };
const TARGETS = [
  rendererOf("JS"),
  WASMRenderer,
  clangRenderer({ widths: [4], accumulators: 12, registers: 16, fused: true }),
  CUDARenderer,
];

test("a list that lowering refuses falls back to the next one, on every device", () => {
  const heuristic: Heuristic = () => [[refused], [good], [{ ...good, lanes: 2 }]];
  for (const target of TARGETS) {
    expect(toFastKernel(ast, { ...target, heuristic }, false).opts, target.name).toEqual([good]);
  }
});
test("a list is only made if those before it were refused", () => {
  const made: number[] = [];
  const heuristic: Heuristic = function* () {
    for (const lanes of [7, 4, 2]) {
      made.push(lanes);
      yield [{ ...good, lanes }];
    }
  };
  toFastKernel(ast, { ...CUDARenderer, heuristic }, false);
  expect(made).toEqual([7, 4]);
});
test("where all are refused, there is the kernel without any", () => {
  for (const target of TARGETS) {
    expect(toFastKernel(ast, { ...target, heuristic: () => [[refused]] }, false).opts, target.name).toEqual(
      [],
    );
  }
});
test("on a CPU, threads share a kernel even where the rest of its list is refused", () => {
  const large = createSchedule([Tensor.empty([1 << 20], { device: "JS" }).add(1).lazydata]).at(-1)?.ast ?? [];
  const lists = [...chooseLists(prepare(large, [], WASMRenderer), WASMRenderer, false)];
  expect(lists.map((l) => l.map((o) => o.op))).toEqual([["UPCAST", "THREAD"], ["THREAD"]]);
});
