// The runtime of examples/runtime.ts: its queues as seed 003 has them, transfers, profiles, and the tests of
// the jit once more with TOY as the default device, whose captured steps are HCQGraphs.

import { Device, Tensor, TinyJit, withEnv } from "gradloom";
import { expect, test } from "vitest";
import type { ToyDevice } from "../../examples/runtime.ts";
import "../../examples/runtime.ts";

const toy = () => Device.get("TOY") as ToyDevice;

test("a queue is nothing but commands until the hardware is given time", () => {
  const device = toy();
  const done = device.allocSignal();
  const queue = device
    .computeQueue()
    .wait(device.timelineSignal, device.timelineValue - 1)
    .timestamp(done);
  queue.signal(done, 3).submit(device);
  expect(device.readSignal(done)).toBe(0);
  device.waitSignal(done, 3);
  expect(device.readTimestamp(done)).toBeGreaterThan(0);
  // the same queue again, with another value
  queue.updateSignal(2, done, 5).submit(device);
  device.waitSignal(done, 5);
  expect(String(queue)).toBe("wait\ntimestamp\nsignal");
});
test("a copy waits for the kernel whose result it copies", async () => {
  const device = toy();
  const [from, to] = await Promise.all(
    [Tensor.ones(64), Tensor.zeros(64)].map((t) => t.to("TOY").contiguous().realize()),
  );
  const memory = (t: Tensor | undefined) => (t as Tensor).lazydata.base.buffer?.handle as never;
  const [ready, copied] = [device.allocSignal(), device.allocSignal()];
  device.copyQueue().wait(ready, 1).copy(memory(to), memory(from), 256).signal(copied, 1).submit(device);
  expect(() => device.waitSignal(copied, 1)).toThrow("TOY: signal hangs");
  device.computeQueue().signal(ready, 1).submit(device);
  device.waitSignal(copied, 1);
  expect(await to?.tolist()).toEqual(Array(64).fill(1));
});
test("a training step, captured, timed and traced, is that of WASM", async () => {
  const losses = async (name: string): Promise<number[]> => {
    const w = await Tensor.linspace(-1, 1, 5).to(name).contiguous().realize();
    const x = await Tensor.arange(60).reshape(12, 5).sin().to(name).realize();
    w.requiresGrad = true;
    const step = new TinyJit(async () => {
      const loss = x.mul(w).sum(1).square().mean();
      loss.backward();
      await w.assign(w.detach().sub((w.grad as Tensor).mul(0.1))).realize();
      w.grad = undefined;
      return loss.realize();
    });
    const all: number[] = [];
    for (let i = 0; i < 6; i++)
      all.push(Number(await (await withEnv({ PROFILE: i === 4 ? 1 : 0 }, step)).item()));
    return all;
  };
  expect(await losses("TOY")).toEqual(await losses("WASM"));
});

Device.DEFAULT = "TOY";
await import("../engine/jit/jit.test.ts");
