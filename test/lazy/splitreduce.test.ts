// Long reductions are split on every device: the partial results add up to the sum.

import { createSchedule, Tensor } from "gradloom";
import { expect, test } from "vitest";

/** The shapes of what the kernels write. */
const written = (t: Tensor): number[] =>
  createSchedule([t.lazydata])
    .filter((i) => i.ast[0]?.op === "STORE")
    .map((i) => i.outputs[0]?.size as number);

test("the partial sums along any axis add up to the sum", async () => {
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
      .remainder(1000) // sums of large numbers that are known would be refused
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
