// Long sums in two steps: which ones are cut into parts where, and that the parts add up to the sum.

import { CUDARenderer, createSchedule, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { Device } from "../../src/runtime/registry.ts";
import { registerOracle } from "../devices/oracle.ts";

const GPU = registerOracle("GPUPARTS", CUDARenderer);
await Promise.all([Device.open("JS"), Device.open(GPU)]);
const units = CUDARenderer.gpu?.units as number;

const empty = (device: string, ...shape: number[]): Tensor => Tensor.empty(shape, { device });
/** The shapes of what the kernels write. */
const written = (t: Tensor): number[] =>
  createSchedule([t.lazydata])
    .filter((i) => i.ast[0]?.op === "STORE")
    .map((i) => i.outputs[0]?.size as number);

function weightGradient(device: string, batch: number, from: number, to: number, side: number): Tensor {
  const w = empty(device, to, from, 3, 3);
  w.requiresGrad = true;
  const y = empty(device, batch, from, side, side).conv2d(w);
  y.backward(empty(device, ...(y.shape as number[])));
  return w.grad as Tensor;
}

describe("sums of products with few results", () => {
  test("are added up in parts on a GPU, at least one a unit, and nowhere else", () => {
    const results = 64 * 64 * 9;
    const [partial, total, ...more] = written(weightGradient(GPU, 512, 64, 64, 8));
    expect([total, more]).toEqual([results, []]);
    const parts = (partial as number) / results;
    expect(512 % parts).toBe(0);
    expect(parts * (results / 2 ** 14)).toBeGreaterThanOrEqual(units);
    expect(written(weightGradient("JS", 512, 64, 64, 8))).toEqual([results]);
  });
  test("but not where there is little to do, or enough to do at once", () => {
    expect(written(weightGradient(GPU, 8, 16, 16, 8))).toEqual([16 * 16 * 9]);
    expect(written(empty(GPU, 2048, 1024).dot(empty(GPU, 1024, 2048)))).toEqual([2048 * 2048]);
    // what is multiplied is read once: there is no block of results to have at once
    expect(
      written(
        empty(GPU, 4096, 2 ** 15)
          .mul(empty(GPU, 4096, 2 ** 15))
          .sum(1),
      ),
    ).toEqual([4096]);
  });
  test("a product of matrices with a long sum", () => {
    const sizes = written(empty(GPU, 64, 2 ** 17).dot(empty(GPU, 2 ** 17, 64)));
    expect(sizes).toHaveLength(2);
    expect(sizes[1]).toBe(64 * 64);
  });
});

test("parts of any axis add up to the sum", async () => {
  const n = 2 ** 17;
  for (const [shape, axis] of [
    [[2, n], 1],
    [[n, 3], 0],
    [[2, n, 2], 1],
  ] as const) {
    const x = Tensor.arange(
      shape.reduce((a, b) => a * b, 1),
      { device: "JS", dtype: "int32" },
    )
      .reshape(...shape)
      .contiguous();
    await x.realize();
    const summed = x.sum(axis);
    expect(written(summed), `${shape}`).toHaveLength(2);
    const values = (await x.data()) as Int32Array;
    const inner = axis === shape.length - 1 ? 1 : (shape.at(-1) as number);
    const want = new Array<number>(values.length / n).fill(0);
    values.forEach((v, i) => {
      const at = Math.floor(i / (n * inner)) * inner + (i % inner);
      want[at] = ((want[at] as number) + v) | 0;
    });
    expect([...((await summed.data()) as Int32Array)], `${shape}`).toEqual(want);
  }
});
