// A host that awaits leaves long kernels to the workers, one of which stands in for it, and lets other tasks
// run, also where more was enqueued than rings hold. A worker that is lost meanwhile rejects the await.

import { DeviceError, Tensor, withEnv } from "gradloom";
import { beforeAll, describe, expect, test } from "vitest";
import { LAYOUT } from "../../../src/devices/wasm/layout.ts";
import type { RingProgram } from "../../../src/devices/wasm/program.ts";
import { awaiting, device, forever, ints, launch, pause, spin } from "./kernels.ts";

const NAME = "WASM:30";
const d = device(NAME);
const { hardware } = d;
/** All of the memory, which grows. */
const words = (): Int32Array => hardware.memory.words;
const field = (program: RingProgram, name: "generation" | "duration"): number =>
  (program.at >>> 2) + LAYOUT[name];
/** Counts how often this thread executes a kernel, or a part of it. */
function countHost(program: RingProgram): { readonly calls: number } {
  const counted = { calls: 0 };
  const generation = words()[field(program, "generation")] as number;
  hardware.host.adopt(program.at, generation, () => void counted.calls++);
  return counted;
}
/** Until a worker has come up; what the host computes meanwhile it computes alone. */
async function present(): Promise<void> {
  const warm = spin(d, "warm", 1000);
  for (let i = 0; i < 1000 && !hardware.workers.present; i++) {
    launch(warm, [ints(NAME, [0])]);
    await d.synchronize();
    await pause(10);
  }
  expect(hardware.workers.present).toBe(true);
}
beforeAll(present);

describe("a long kernel", () => {
  test.each([1, 2, 3])(
    "with %d threads is computed by workers, and timers fire meanwhile",
    async (threads) => {
      const parts = 16;
      const x = ints(NAME, new Array<number>(1 + parts).fill(0));
      const at = (x.handle as { vaAddr: number }).vaAddr >>> 2;
      const program = awaiting(d, `awaiting${threads}`);
      const host = countHost(program);
      await withEnv({ THREADS: threads }, async () => {
        launch(program, [x], { size: parts });
        const waiting = d.synchronize();
        // no part of it ends before this runs
        setTimeout(() => words().fill(1, at, at + 1), 1);
        await waiting;
      });
      expect([...x.dataSync()]).toEqual(new Array<number>(1 + parts).fill(1));
      expect(host.calls).toBe(0);
    },
  );

  test("is timed by whoever executes it", async () => {
    const program = spin(d, "timed", 5_000_000);
    launch(program, [ints(NAME, [0])]);
    await d.synchronize();
    // 5 million additions take more than 0.1 ms on any machine
    expect(words()[field(program, "duration")]).toBeGreaterThan(1e5);
  });
});

test("more kernels than a ring holds are enqueued without blocking this thread", async () => {
  const x = await Tensor.zeros(4, { device: NAME }).contiguous().realize();
  const gate = d.allocSignal(0, "gate");
  const value = d.nextTimelineValue();
  d.computeQueue().wait(gate, 1).signal(d.timelineSignal, value).submit(d);
  setTimeout(() => d.setSignal(gate, 1), 1); // nothing is executed before this runs
  let most = 0;
  for (let i = 0; i < 1000; i++) {
    await x.assign(x.add(1)).realize();
    most = Math.max(most, d.timelineValue - 1 - d.readSignal(d.timelineSignal));
  }
  expect(await x.tolist()).toEqual([1000, 1000, 1000, 1000]);
  expect(most).toBeLessThanOrEqual(129);
  d.freeSignal(gate);
});

describe("a worker that is lost while the host awaits", () => {
  test.each(["at once", "when it has stood in for the host"])("%s: the await is rejected", async (when) => {
    await present();
    const x = ints(NAME, [0]);
    launch(forever(d, "endless"), [x]);
    const waiting = Promise.resolve(d.synchronize()).catch((e: unknown) => e);
    for (let i = 0; i < 1000 && !hardware.computing; i++) await pause(2);
    if (when !== "at once") for (let i = 0; i < 1000 && hardware.workers.ids.length < 2; i++) await pause(2);
    for (const id of hardware.workers.ids) hardware.workers.terminate(id);
    const error = await waiting;
    expect(error).toBeInstanceOf(DeviceError);
    expect(String(error)).toMatch(/kernel endless failed on worker \d+: the worker is gone/);
    expect(await new Tensor([1, 2, 3], { device: NAME }).add(1).tolist()).toEqual([2, 3, 4]);
  });
});
