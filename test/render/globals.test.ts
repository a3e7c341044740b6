// A kernel that was written by hand declares all its buffers, as seed 002 asserts; one that codegen made
// leaves out those that it has no use for.

import {
  ArgumentError,
  createSchedule,
  dtypes,
  type LazyOp,
  PtrDType,
  Tensor,
  toKernel,
  UOpGraph,
} from "gradloom";
import { ClangLanguage, ClangRenderer, MetalLanguage, uopsToCStyle, uopsToWGSL } from "gradloom/render";
import { describe, expect, test } from "vitest";

function withBuffers(...positions: number[]): UOpGraph {
  const g = new UOpGraph();
  for (const [i, at] of positions.entries())
    g.add("DEFINE_GLOBAL", PtrDType(dtypes.int), [], [at, `data${at}_${i}`, true]);
  return g;
}
const RENDERERS: Readonly<Record<string, (g: UOpGraph) => string>> = {
  uopsToCStyle: (g) => uopsToCStyle(MetalLanguage, "test", g),
  uopsToWGSL: (g) => uopsToWGSL("test", g),
};

describe.each(Object.entries(RENDERERS))("%s", (name, render) => {
  test.each([
    [[1], 1, 0],
    [[0, 2], 2, 1],
    [[0, 1, 1], 1, 2],
    [[-1], -1, 0],
  ] as const)("positions %j are refused", (positions, at, expected) => {
    const g = withBuffers(...positions);
    expect(() => render(g)).toThrow(ArgumentError);
    expect(() => render(g)).toThrow(
      new RegExp(
        `^${name}: DEFINE_GLOBAL data${at}_\\d is at position ${at}, expected ${expected}; give each`,
      ),
    );
  });
  test("any order is the same kernel", () => {
    expect(render(withBuffers(1, 0))).toMatch(/data0_1[\s\S]*data1_0/);
    expect(() => render(withBuffers(0, 1, 2))).not.toThrow();
    expect(() => render(new UOpGraph())).not.toThrow();
  });
});

test("a buffer that a compiled kernel does not read is left out", async () => {
  const [a, b] = [await new Tensor([1, 2]).realize(), await new Tensor([3, 4]).realize()];
  const [item] = createSchedule([a.mul(0).add(b).lazydata]);
  const kernel = toKernel(item?.ast as readonly LazyOp[], [], ClangRenderer);
  expect(kernel.globals).toEqual([0, 2]);
  expect(uopsToCStyle(ClangLanguage, "test", kernel.uops)).toContain("const int* data2");
});
