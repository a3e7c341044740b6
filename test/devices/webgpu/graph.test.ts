// A training step on a real implementation, Dawn on SwiftShader, through a Gpu that counts: what a replay
// creates and submits, what memory does over many steps, and values of variables in every way that a kernel
// gets them.

import { Device, Tensor, TinyJit, Variable } from "gradloom";
import * as nn from "gradloom/nn";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { collect } from "../../runtime/gc.ts";
import type { Counted } from "./counted.ts";
import { openCounted } from "./opencounted.ts";
import { whyClosed } from "./swiftshader.ts";

const closed = await whyClosed();
/** A small network on pictures of 28 x 28, and one step of its training. */
function training(): (x: Tensor, y: Tensor) => Promise<Tensor> {
  const model = new nn.Sequential(
    new nn.Conv2d(1, 2, 5, { stride: 4 }),
    new nn.ReLU(),
    new nn.Flatten(),
    new nn.Linear(2 * 6 * 6, 10),
  );
  const optimizer = new nn.optim.Adam(nn.getParameters(model));
  return async (x, y) => {
    const loss = model.forward(x).crossEntropy(y);
    optimizer.zeroGrad();
    loss.backward();
    await optimizer.step(loss);
    return loss;
  };
}

describe("captured steps", () => {
  let name: string;
  let count: Counted;
  const before = Device.DEFAULT;
  beforeAll(async () => {
    if (closed !== undefined) return;
    ({ name, count } = await openCounted());
    Device.DEFAULT = name;
  });
  afterAll(() => {
    Device.DEFAULT = before;
  });
  const batch = async (): Promise<[Tensor, Tensor]> => [
    await Tensor.rand(4, 1, 28, 28).realize(),
    await Tensor.arange(4).contiguous().realize(),
  ];

  test("a replay of a training step is one submit and creates nothing but its command buffer", async ({
    skip,
  }) => {
    skip(closed !== undefined, closed);
    const jitted = new TinyJit(training());
    const [x, y] = await batch();
    const first = Number(await (await jitted(x, y)).item());
    // a result has memory of its own: what is disposed of is there for the next one
    const step = async (times: number): Promise<void> => {
      for (let i = 0; i < times; i++) (await jitted(x, y)).dispose();
    };
    // small kernels are joined beside the first replays
    for (let i = 0; i < 5; i++) {
      await step(1);
      await count.compiled();
    }
    await Device.get(name).synchronize();
    count.calls.clear();
    const held = { ...count.alive };
    for (let i = 0; i < 10; i++) {
      await step(1);
      // steps of few kernels that nobody waits for share a submit
      await Device.get(name).synchronize();
    }
    const { dispatchWorkgroups, ...calls } = Object.fromEntries(count.calls);
    expect(calls).toEqual({ createCommandEncoder: 10, submit: 10, onSubmittedWorkDone: 10 });
    // small kernels in a row are one dispatch
    expect(dispatchWorkgroups).toBeLessThan((10 * jitted.jitCache.length) / 2);
    await step(1000);
    expect(count.alive).toEqual(held);
    expect(Number(await (await jitted(x, y)).item())).toBeLessThan(first / 10);
  });
  test("memory is flat over many steps without the jit", async ({ skip }) => {
    skip(closed !== undefined, closed);
    const w = await Tensor.rand(8, 8).realize();
    const x = await Tensor.rand(4, 8).realize();
    const step = async (): Promise<void> => {
      await w.assign(w.sub(x.permute(1, 0).dot(x.dot(w)).mul(0.001))).realize();
    };
    // a collection every hundred steps: what was dropped by then is memory for the next hundred
    const run = async (): Promise<number> => {
      for (let i = 0; i < 100; i++) await step();
      await collect();
      return count.alive.buffers;
    };
    await run();
    const held = await run();
    for (let i = 0; i < 8; i++) expect(await run()).toBeLessThanOrEqual(held);
  });
  test.for(["full", "f32"])("values of variables reach kernels and graphs (%s)", async (tier, { skip }) => {
    skip(closed !== undefined, closed);
    const own = await openCounted(tier);
    const n = Variable("n", 1, 64);
    const x = await Tensor.arange(64).to(own.name).contiguous().realize();
    const sum = async (k: number): Promise<number> =>
      Number(
        await x
          .shrink([[0, n.bind(k)]])
          .sum()
          .item(),
      );
    expect([await sum(3), await sum(10), await sum(64)]).toEqual([3, 45, 2016]);
    const jitted = new TinyJit((t: Tensor) => t.sum().add(1).contiguous());
    const results: number[] = [];
    for (const k of [2, 3, 4, 5, 5, 9])
      results.push(Number(await (await jitted(x.shrink([[0, n.bind(k)]]))).item()));
    expect(results).toEqual([2, 4, 7, 11, 11, 37]);
    const { calls } = own.count;
    expect([(calls.get("writeBuffer") ?? 0) > 1]).toEqual([tier === "f32"]);
  });
});
