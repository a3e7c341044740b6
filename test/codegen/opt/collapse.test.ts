// COLLAPSE: two axes are one loop, whose index is divided. Values stay the same; what an op names afterwards
// are the axes that are left.

import type { Tensor } from "gradloom";
import { expect, test } from "vitest";
import { toKernel } from "../../../src/codegen/kernel.ts";
import { Device } from "../../../src/runtime/registry.ts";
import { check, floats, ints } from "../gpuchecks.ts";
import { gpuTarget, lastItem, opsIn, opt, trips } from "../kernels.ts";

await Device.open("JS");
/** Axes 0 to 3 are pictures, channels, rows and columns; 4 to 6 channels and taps. */
const convolution = (): Tensor => floats([2, 3, 6, 7], 1).conv2d(floats([4, 3, 3, 2], 2));

test("output axes, neighbours or not, in either order", async () => {
  const x = (): Tensor =>
    ints([4, 5, 6], 1)
      .permute(2, 0, 1)
      .add(ints([6, 4, 5], 2));
  for (const list of [
    [opt("COLLAPSE", 0, 1)],
    [opt("COLLAPSE", 1, 0), opt("LOCAL", 0, 7)],
    [opt("COLLAPSE", 0, 1), opt("UPCAST", 0, 4)],
  ])
    await check(x(), list);
});
test("the axes of a reduction, and output axes that are apart", async () => {
  const list = [opt("COLLAPSE", 3, 0), opt("COLLAPSE", 1, 2), opt("COLLAPSE", 2, 3), opt("COLLAPSE", 2, 3)];
  const kernel = await check(convolution(), [...list, opt("LOCAL", 1, 32), opt("UNROLL", 2, 2)]);
  expect(kernel.localSize).toEqual([32]);
  expect(trips(kernel), "one loop over channels and taps").toEqual([9]);
  expect(opsIn(kernel, "LOOP")).toHaveLength(1);
});
test("what it cannot join is refused, and an op that joins nothing", async () => {
  const { ast } = await lastItem(ints([4, 5, 6], 1).permute(2, 0, 1).contiguous());
  const refused = (...list: [number, number][]) =>
    expect(() =>
      toKernel(
        ast,
        list.map(([a, b]) => opt("COLLAPSE", a, b)),
        gpuTarget(32),
      ),
    );
  refused([1, 1]).toThrow(/COLLAPSE\(first=1, second=1\): axes 0 to 1 are left here/);
  refused([0, 1], [0, 1]).toThrow(/COLLAPSE\(first=0, second=1\): this kernel has the axes 0 to 0/);
  refused([0, 2]).toThrow(/COLLAPSE\(first=0, second=2\): this kernel has the axes 0 to 1/);
});
