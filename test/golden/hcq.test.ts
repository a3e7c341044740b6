// Seed 003 on devices that take command queues: each code example as a TypeScript twin that reads like it,
// and what the text beside it states. The devices are WASM and the runtime of examples/runtime.ts. What each
// word of a queue is on WASM: test/runtime/hcq/queue.test.ts.

import {
  Buffer,
  createSchedule,
  Device,
  dtypes,
  profiler,
  type ScheduleItem,
  Tensor,
  TinyJit,
  toKernel,
  withEnv,
} from "gradloom";
import {
  HCQCompatAllocator,
  type HCQCompatAllocRes,
  HCQCompatCompiled,
  HCQGraph,
  HWCommandQueue,
  HWComputeQueue,
  HWCopyQueue,
  hcqCommand,
} from "gradloom/device";
import { describe, expect, test, vi } from "vitest";
import "../../examples/runtime.ts";

/** Three numbers in memory of a device. */
function buffer(device: string, ...values: number[]): Buffer {
  const made = new Buffer(device, values.length, dtypes.int).allocate();
  made.copyin(new Int32Array(values));
  return made;
}
const valuesOf = (b: Buffer): number[] => [...b.dataSync()].map(Number);
const memoryOf = (b: Buffer) => b.handle as HCQCompatAllocRes;

/** A kernel that stores twice what it loads, for three numbers, and its sizes. */
async function double(device: HCQCompatCompiled) {
  const x = Tensor.empty([3], { device: device.name, dtype: "int32" });
  const { ast } = createSchedule([x.mul(2).lazydata]).at(-1) as ScheduleItem;
  const { name, uops, globalSize, localSize } = toKernel(ast, [], device.renderer);
  const program = await device.compile(name, device.renderer.render(name, uops));
  return [program, globalSize.map(Number), localSize] as const;
}

describe.each(["WASM:40", "TOY:1"])("seed 003 on %s", (name) => {
  const yourDevice = Device.get(name) as HCQCompatCompiled;

  test("command queues: a wait, execute, and signal command", async () => {
    const [program, globalDims, localDims] = await double(yourDevice);
    const [out, x] = [buffer(name, 0, 0, 0), buffer(name, 1, 2, 21)];
    const kernargsPtr = program.allocKernargs([out.handle, x.handle], []);
    const [signalToWait, valueToWait] = [yourDevice.allocSignal(), 5];
    const [signalToFire, valueToFire] = [yourDevice.allocSignal(), 7];

    new HWComputeQueue()
      .wait(signalToWait, valueToWait)
      .exec(program, kernargsPtr, globalDims, localDims)
      .signal(signalToFire, valueToFire)
      .submit(yourDevice);

    expect(yourDevice.readSignal(signalToFire)).toBe(0);
    yourDevice.setSignal(signalToWait, valueToWait);
    await yourDevice.waitSignal(signalToFire, valueToFire);
    expect(valuesOf(out)).toEqual([2, 4, 42]);
    kernargsPtr.free();
    for (const s of [signalToWait, signalToFire]) yourDevice.freeSignal(s);
  });

  test("signals: a value and a timestamp within the same signal", async () => {
    const signal = yourDevice.allocSignal();
    const valueToFire = 3;

    new HWComputeQueue().timestamp(signal).signal(signal, valueToFire).submit(yourDevice);

    await yourDevice.waitSignal(signal, valueToFire);
    const timestamp = yourDevice.readTimestamp(signal);
    expect(yourDevice.readSignal(signal)).toBe(valueToFire);
    const now = (performance.timeOrigin + performance.now()) * 1000;
    expect(Math.abs(yourDevice.gpu2cpuTime(timestamp) - now)).toBeLessThan(60e6);
    yourDevice.freeSignal(signal);
  });

  test("synchronization: wait for timelineValue - 1, signal timelineValue", async () => {
    const [program, globalDims, localDims] = await double(yourDevice);
    const x = buffer(name, 1, 2, 3);
    const kernargs = program.allocKernargs([x.handle, x.handle], []);
    for (let i = 0; i < 4; i++) {
      new HWComputeQueue()
        .wait(yourDevice.timelineSignal, yourDevice.timelineValue - 1)
        .exec(program, kernargs, globalDims, localDims)
        .signal(yourDevice.timelineSignal, yourDevice.timelineValue)
        .submit(yourDevice);
      yourDevice.timelineValue += 1;
    }

    // Optionally wait for execution
    await yourDevice.waitSignal(yourDevice.timelineSignal, yourDevice.timelineValue - 1);
    expect(valuesOf(x)).toEqual([16, 32, 48]);
    // what the device does by itself goes on after it
    expect(await new Tensor([1, 2], { device: name }).add(1).tolist()).toEqual([2, 3]);
  });

  test("two signals for global synchronization: the shadow takes over when values run out", async () => {
    const [timeline, shadow] = [yourDevice.timelineSignal, yourDevice.shadowTimelineSignal];
    expect(timeline).not.toBe(shadow);
    const limit = yourDevice.timelineLimit;
    yourDevice.timelineLimit = yourDevice.timelineValue;
    try {
      for (let i = 0; i < 2; i++)
        expect(await new Tensor([i], { device: name }).mul(3).tolist()).toEqual([3 * i]);
    } finally {
      yourDevice.timelineLimit = limit;
    }
    expect([yourDevice.timelineSignal, yourDevice.shadowTimelineSignal]).toEqual([shadow, timeline]);
  });

  test("the methods of HWCommandQueue, HWComputeQueue and HWCopyQueue, with and without a device", async () => {
    const done = yourDevice.allocSignal();
    const [program, globalDims, localDims] = await double(yourDevice);
    const [a, b, c] = [buffer(name, 1, 2, 3), buffer(name, 0, 0, 0), buffer(name, 0, 0, 0)];
    const kernargs = program.allocKernargs([b.handle, a.handle], []);
    let value = 0;
    for (const [compute, copy] of [
      [yourDevice.computeQueue(), yourDevice.copyQueue()],
      [new HWComputeQueue(), new HWCopyQueue()],
    ] as const) {
      expect([compute, copy].every((q) => q instanceof HWCommandQueue)).toBe(true);
      // what is added has an index, by which it is changed
      compute
        .wait(done, 1000)
        .memoryBarrier()
        .exec(program, kernargs, [], [])
        .timestamp(done)
        .signal(done, 1000);
      expect(compute.commands.map((x) => x.name).join(" ")).toBe("wait memoryBarrier exec timestamp signal");
      compute.updateWait(0, done, value).updateExec(2, globalDims, localDims);
      compute.updateSignal(4, undefined, value + 1).submit(yourDevice);
      copy
        .wait(done, value + 1)
        .copy(memoryOf(a), memoryOf(b), 12)
        .signal(done, value + 2);
      copy.updateCopy(1, memoryOf(c)).submit(yourDevice);
      await yourDevice.waitSignal(done, value + 2);
      expect([a, b, c].map(valuesOf)).toEqual([
        [1, 2, 3],
        [2, 4, 6],
        [2, 4, 6],
      ]);
      for (const x of [b, c]) x.copyin(new Int32Array(3));
      // the same queues once more
      compute
        .updateWait(0, done, value + 2)
        .updateSignal(4, done, value + 3)
        .submit(yourDevice);
      copy
        .updateWait(0, undefined, value + 3)
        .updateSignal(2, done, value + 4)
        .submit(yourDevice);
      await yourDevice.waitSignal(done, value + 4);
      expect([b, c].map(valuesOf)).toEqual([
        [2, 4, 6],
        [2, 4, 6],
      ]);
      value += 4;
    }
    kernargs.free();
  });

  test("custom commands: hcqCommand", async () => {
    const [a, b, done] = [yourDevice.allocSignal(), yourDevice.allocSignal(), yourDevice.allocSignal()];
    const both = (queue: HWComputeQueue) =>
      hcqCommand(queue, "both", ({ q, backend }) => {
        for (const signal of [a, b]) q.push(...backend.encode("signal", { signal, value: 2 }));
      });
    both(yourDevice.computeQueue()).signal(done, 1).submit(yourDevice);
    await yourDevice.waitSignal(done, 1);
    expect([a, b].map((s) => yourDevice.readSignal(s))).toEqual([2, 2]);
    // what only one kind of device can spell needs a queue of that device
    expect(() => both(new HWComputeQueue()).submit(yourDevice)).toThrow(
      "both: the queue was built without a device; begin with device.computeQueue()",
    );
    expect(() => new HWComputeQueue().bind(yourDevice)).toThrow("bind: the queue was built without a device");
  });

  test("the device, the allocator and what it gives out", () => {
    expect(yourDevice).toBeInstanceOf(HCQCompatCompiled);
    const { allocator } = yourDevice;
    expect(allocator).toBeInstanceOf(HCQCompatAllocator);
    const res = allocator.alloc(16, false);
    expect([res.device, res.size, Number(res.vaAddr) > 0]).toEqual([yourDevice, 16, true]);
    allocator.copyin(res, new Uint8Array(16).fill(9));
    const back = new Uint8Array(16);
    allocator.copyout(back, res);
    expect([...back]).toEqual(Array(16).fill(9));
    allocator.free(res, 16);
  });

  test("HCQGraph: static queues, of which only what differs is updated for each run", async () => {
    const step = new TinyJit((x: Tensor) => x.mul(2).sum().add(x));
    const inputs = await Promise.all(
      [1, 2, 3, 4].map((i) => new Tensor([i, 10 * i], { device: name }).realize()),
    );
    const run = vi.spyOn(HCQGraph.prototype, "run");
    const [compute, submit] = [
      vi.spyOn(yourDevice, "computeQueue"),
      vi.spyOn(HWCommandQueue.prototype, "submit"),
    ];
    const results: number[][] = [];
    let built = 0;
    for (const [i, x] of inputs.entries()) {
      const result = await step(x);
      if (i >= 2) expect(compute.mock.calls.length, "a replay builds no queue").toBe(built);
      built = compute.mock.calls.length;
      results.push((await result.tolist()) as number[]);
      built = compute.mock.calls.length;
    }
    expect(results).toEqual([1, 2, 3, 4].map((i) => [23 * i, 32 * i]));
    expect(run).toHaveBeenCalledTimes(2);
    const bound = (submit.mock.contexts as HWCommandQueue[]).filter((q) => q.boundTo === yourDevice);
    expect(bound.length).toBeGreaterThanOrEqual(2);
    vi.restoreAllMocks();
  });

  test("built-in profiling: the times of kernels come from the device's signals", async () => {
    profiler.reset();
    await withEnv({ PROFILE: 1 }, async () => {
      const done = yourDevice.allocSignal();
      new HWComputeQueue().wait(done, 0).signal(done, 1).submit(yourDevice);
      await yourDevice.waitSignal(done, 1);
      expect(await new Tensor([1, 2], { device: name }).add(1).tolist()).toEqual([2, 3]);
    });
    const kernels = profiler.spans.filter((x) => x.device === name && x.kind === "kernel");
    expect(kernels.map((x) => x.name.slice(0, 3))).toEqual(["E_2"]);
    expect(kernels[0]?.end).toBeGreaterThanOrEqual(kernels[0]?.start as number);
  });
});
