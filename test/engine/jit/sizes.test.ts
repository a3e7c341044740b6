// Inputs whose memory has another size in each call: where only kernels read it, a capture serves all; where
// it is copied or written as a whole, the call is refused with what to do.

import { JitError, Tensor, TinyJit, Variable } from "gradloom";
import { describe, expect, test } from "vitest";

const n = Variable("n", 1, 16);
const up = (count: number, from = 1): number[] => Array.from({ length: count }, (_, i) => from + i);

describe("a symbolic input", () => {
  test.each<[string, (k: number) => Promise<Tensor>]>([
    [
      "memory of as many elements as are used",
      async (k) => (await new Tensor(up(k)).realize()).reshape([n.bind(k)]),
    ],
    ["memory of more", async (k) => (await new Tensor(up(2 * k + 1)).realize()).shrink([[0, n.bind(k)]])],
    [
      "as many in one call, more in the next",
      async (k) => {
        const whole = k % 2 === 0;
        const t = await new Tensor(up(whole ? k : k + 3)).realize();
        return whole ? t.reshape([n.bind(k)]) : t.shrink([[0, n.bind(k)]]);
      },
    ],
  ])("%s", async (_, make) => {
    const step = new TinyJit((x: Tensor) => [x.mul(3).add(1).sum(), x.max().mul(x.sum())]);
    for (const [call, k] of [2, 3, 4, 9, 1, 16, 5].entries()) {
      const [sum, product] = (await step(await make(k))) as [Tensor, Tensor];
      const total = (k * (k + 1)) / 2;
      expect([await sum.item(), await product.item()]).toEqual([3 * total + k, k * total]);
      if (call > 0) expect(step.jitCache.length).toBeGreaterThan(0);
    }
  });
});

test("plain sizes: parts of memories of any size, and results that are views of them", async () => {
  const step = new TinyJit((x: Tensor) => [x.add(1), x.reshape(2, 1)]);
  for (const extra of [0, 0, 1, 5, 0]) {
    const x = (await new Tensor(up(2 + extra, extra)).realize()).shrink([[0, 2]]);
    const [sum, view] = (await step(x)) as [Tensor, Tensor];
    expect(await sum.tolist()).toEqual([extra + 1, extra + 2]);
    expect(await view.tolist()).toEqual([[extra], [extra + 1]]);
  }
});

test("what is copied as a whole is refused, and a clone is not", async () => {
  const make = async (extra: number) => (await new Tensor(up(2 + extra)).realize()).shrink([[0, 2]]);
  const step = new TinyJit((x: Tensor) => x.to("JS").add(1).sum());
  for (const extra of [1, 0]) await step(await make(extra));
  await expect(step(await make(4))).rejects.toThrow(JitError);
  await expect(step(await make(4))).rejects.toThrow(
    /input 0: expected shape \[2\] in memory of 2 elements, got .* of 6 elements, .*pass x\.clone\(\) in every call/,
  );
  const cloned = new TinyJit((x: Tensor) => x.to("JS").add(1).sum());
  for (const extra of [1, 0, 4, 9, 5]) {
    const sum = (await cloned((await make(extra)).clone())) as Tensor;
    expect(await sum.item()).toBe(5);
  }
  expect(cloned.jitCache.length).toBeGreaterThan(0);
});
