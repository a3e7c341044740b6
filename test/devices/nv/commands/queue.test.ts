// Seed 003 on NV: every command, its words or its place in a QMD, and its update; chains of kernels; on the
// mock GPU, which checks what it executes.

import { describe, expect, test } from "vitest";
import { loadCubin } from "../../../../src/devices/nv/commands/cubin.ts";
import { NVProgram } from "../../../../src/devices/nv/commands/program.ts";
import { withEnv } from "../../../../src/env.ts";
import { profiler } from "../../../../src/runtime/profiling.ts";
import { compile, ints, read, scale, scaleUops, storeUops } from "../../../runtime/hcq/kernels.ts";
import { mockDevice } from "../register.ts";
import { buildCubin } from "./elf.ts";

const { device: dev, gpu } = mockDevice("MOCKNV:7");
const double = scale(dev, "double", 2, 0);
const next = scale(dev, "next", 1, 1);
const store = compile(dev, "store", storeUops());
/** The words of the last submission of a kind. */
const lastWords = (kind: "compute" | "copy") => gpu.log.findLast((l) => l.kind === kind)?.words ?? [];

describe("the seed's examples", () => {
  test("wait, execute, signal", async () => {
    const [out, x] = [ints(dev, [0]), ints(dev, [21])];
    const [toWait, toFire] = [dev.allocSignal(0, "gate"), dev.allocSignal(0, "done")];
    const args = double.allocKernargs([out, x], []);
    dev.computeQueue().wait(toWait, 5).exec(double, args, [1], [1]).signal(toFire, 7).submit(dev);
    gpu.pump();
    expect(dev.readSignal(toFire)).toBe(0);
    dev.setSignal(toWait, 4); // not enough
    gpu.pump();
    expect(dev.readSignal(toFire)).toBe(0);
    dev.setSignal(toWait, 6); // at the value or above
    await dev.waitSignal(toFire, 7);
    expect(await read(out)).toEqual([42]);
    for (const s of [toWait, toFire]) dev.freeSignal(s);
    args.free();
  });
  test("a signal has a value and a timestamp, which do not disturb each other", async () => {
    const signal = dev.allocSignal();
    const before = (performance.timeOrigin + performance.now()) * 1000;
    for (const queue of [dev.computeQueue(), dev.copyQueue()]) {
      dev.setSignal(signal, 1);
      queue.timestamp(signal).submit(dev);
      expect(dev.readSignal(signal)).toBe(1);
      expect(Math.abs(dev.gpu2cpuTime(dev.readTimestamp(signal)) - before)).toBeLessThan(5e6);
      queue.signal(signal, 3).submit(dev);
      await dev.waitSignal(signal, 3);
    }
    expect(dev.readTimestamp(dev.allocSignal())).toBe(0);
  });
  test("work waits for timelineValue - 1 and signals timelineValue", async () => {
    const x = ints(dev, [1]);
    const args = next.allocKernargs([x, x], []);
    for (let i = 0; i < 5; i++) {
      const value = dev.nextTimelineValue();
      dev
        .computeQueue()
        .wait(dev.timelineSignal, value - 1)
        .memoryBarrier()
        .exec(next, args, [1], [1])
        .signal(dev.timelineSignal, value)
        .submit(dev);
    }
    expect(await read(x)).toEqual([6]);
    expect(dev.isIdle).toBe(true);
  });
});

describe("chains", () => {
  test("kernels that follow each other are sent once, and signal by themselves", async () => {
    const [x, s, t] = [ints(dev, [1]), dev.allocSignal(), dev.allocSignal()];
    const args = next.allocKernargs([x, x], []);
    const queue = dev.computeQueue().memoryBarrier();
    for (let i = 0; i < 200; i++) queue.exec(next, args, [1], [1]);
    queue.timestamp(t).signal(s, 5);
    expect(queue.commands.map((c) => c.words)).toEqual([2, 6, ...new Array(201).fill(0)]);
    const ran = gpu.kernelsRun;
    for (let i = 0; i < 3; i++) queue.submit(dev);
    await dev.waitSignal(s, 5);
    expect(gpu.kernelsRun - ran).toBe(600);
    expect(await read(x)).toEqual([601]);
    expect(dev.readTimestamp(t)).not.toBe(0);
  });
  test("a wait breaks them; what does not fit into a QMD is said by the stream", async () => {
    const [x, gate] = [ints(dev, [1]), dev.allocSignal()];
    const signals = Array.from({ length: 5 }, () => dev.allocSignal());
    const args = double.allocKernargs([x, x], []);
    const queue = dev.computeQueue().exec(double, args, [1], [1]);
    for (const s of signals) queue.signal(s, 1);
    queue.exec(double, args, [1], [1]).wait(gate, 1).exec(double, args, [1], [1]).submit(dev);
    expect(queue.commands.map((c) => c.words)).toEqual([6, 0, 0, 0, 6, 6, 6, 6, 6]);
    gpu.pump();
    expect(signals.map((s) => dev.readSignal(s))).toEqual([1, 1, 1, 1, 1]);
    dev.setSignal(gate, 1);
    await dev.synchronize();
    gpu.pump();
    expect(await read(x)).toEqual([8]);
  });
});

describe("updates", () => {
  test("change words, or the QMD that a command became a part of, bound or not", async () => {
    for (const bound of [false, true]) {
      const [x, y] = [ints(dev, [1, 2, 3]), ints(dev, [0, 0, 0])];
      const [s, t] = [dev.allocSignal(0, "s"), dev.allocSignal(0, "t")];
      const args = double.allocKernargs([y, x], []);
      const queue = dev.computeQueue().wait(s, 1).exec(double, args, [1], [1]).signal(s, 2).signal(s, 3);
      if (bound) queue.bind(dev);
      queue.updateWait(0, undefined, 0).updateExec(1, [3], [1]).updateSignal(3, t, 9).submit(dev);
      await dev.waitSignal(t, 9);
      expect(dev.readSignal(s)).toBe(2);
      expect(await read(y)).toEqual([2, 4, 6]);
      queue.updateExec(1, [2], [1]).updateSignal(2, undefined, 4);
      args.setBuffer(0, x);
      queue.submit(dev);
      await dev.waitSignal(s, 4);
      expect(await read(x)).toEqual([2, 4, 3]);
    }
  });
  test("of arguments that are numbers", async () => {
    const x = ints(dev, [0]);
    const args = store.allocKernargs([x], [41]);
    const queue = dev.computeQueue().exec(store, args, [1], [1]).bind(dev);
    queue.submit(dev);
    expect(await read(x)).toEqual([41]);
    args.setVal(0, 42);
    queue.submit(dev);
    expect(await read(x)).toEqual([42]);
  });
  test("of copies", async () => {
    const [a, b, c] = [ints(dev, [1, 2]), ints(dev, [0, 0]), ints(dev, [5, 6])];
    const queue = dev.copyQueue().copy(b, a, 8).bind(dev);
    queue.submit(dev);
    expect(await read(b)).toEqual([1, 2]);
    queue.updateCopy(0, undefined, c).submit(dev);
    expect(await read(b)).toEqual([5, 6]);
    queue.updateCopy(0, a).submit(dev);
    expect(await read(a)).toEqual([5, 6]);
  });
  test("name the command", () => {
    const s = dev.allocSignal();
    const queue = dev.computeQueue().wait(s, 1).signal(s, 2);
    expect(() => queue.updateSignal(0, s)).toThrow(/update of signal 0: that is wait/);
    queue.bind(dev);
    expect(() => queue.signal(s, 1)).toThrow(/bound to MOCKNV:7/);
  });
  test("copies of 2 GiB and more go in parts", () => {
    const [a, b] = [ints(dev, [1]), ints(dev, [2])];
    const queue = dev.copyQueue().copy(a, b, 2 ** 32 + 8);
    expect(String(queue).match(/LINE_LENGTH_IN VALUE=0x\w+/g)).toEqual([
      "LINE_LENGTH_IN VALUE=0x80000000",
      "LINE_LENGTH_IN VALUE=0x80000000",
      "LINE_LENGTH_IN VALUE=0x8",
    ]);
  });
});

describe("a launch", () => {
  test("has its arguments until it has run, though they were freed", async () => {
    const { device } = mockDevice("MOCKNV:9", { when: "poll" });
    const one = scale(device, "one", 1, 1);
    const [x, y] = [ints(device, [1]), ints(device, [50])];
    const args = one.allocKernargs([x, x], []);
    const value = device.nextTimelineValue();
    device
      .computeQueue()
      .wait(device.timelineSignal, value - 1)
      .exec(one, args, [1], [1])
      .signal(device.timelineSignal, value)
      .submit(device);
    args.free();
    one.allocKernargs([y, y], []);
    expect([await read(x), await read(y)]).toEqual([[2], [50]]);
  });
  test("refuses blocks that the GPU does not have, by name", () => {
    const x = ints(dev, [1]);
    const args = double.allocKernargs([x, x], []);
    expect(() => dev.computeQueue().exec(double, args, [1], [32, 33])).toThrow(
      /kernel double takes blocks of 1 to 1024 threads \(16 registers each\), not of 32 × 33 × 1/,
    );
    expect(() => double.allocKernargs([x], [])).toThrow(
      /double takes 2 arguments, not 1 buffers and 0 values/,
    );
  });
  test("refuses arguments that two launches of different sizes share", () => {
    const x = ints(dev, [1]);
    const args = double.allocKernargs([x, x], []);
    const queue = dev.computeQueue().exec(double, args, [1], [1]).exec(double, args, [1], [1]);
    expect(() => queue.updateExec(1, [2], [1])).toThrow(
      /exec of double: its arguments are those of another exec/,
    );
    expect(() => dev.computeQueue().exec(double, args, [1], [1]).exec(double, args, [2], [1])).toThrow(
      /with another size; allocate arguments for each/,
    );
  });
  test("a queue is of one device", () => {
    const { device: other } = mockDevice("MOCKNV:8");
    const s = dev.allocSignal();
    expect(() => dev.computeQueue().signal(s, 1).submit(other)).toThrow(
      /MOCKNV:8: the queue is of another device/,
    );
  });
  test("the text of a queue shows words and QMDs", () => {
    const x = ints(dev, [1]);
    const args = double.allocKernargs([x, x], []);
    const text = String(
      dev.computeQueue().memoryBarrier().exec(double, args, [3], [1]).exec(double, args, [3], [1]),
    );
    expect(text.replaceAll(/0x\w+/g, "@").split("\n").slice(0, 8)).toEqual([
      "memoryBarrier:",
      "  COMPUTE.INVALIDATE_SHADER_CACHES_NO_WFI INSTRUCTION=TRUE GLOBAL_DATA=TRUE CONSTANT=TRUE",
      "exec:",
      "  COMPUTE.WAIT_FOR_IDLE V=@",
      "  COMPUTE.SEND_PCAS_A QMD_ADDRESS_SHIFTED8=@",
      "  COMPUTE.SEND_SIGNALING_PCAS2_B PCAS_ACTION=PREFETCH_SCHEDULE",
      "exec:",
      expect.stringMatching(/^QMD 0 double: QMD_GROUP_ID=@ /),
    ]);
  });
  test("PROFILE=1 stamps kernels without breaking their chain", async () => {
    await withEnv({ PROFILE: 1 }, async () => {
      profiler.reset();
      const [x, s] = [ints(dev, [1]), dev.allocSignal()];
      const args = next.allocKernargs([x, x], []);
      const queue = dev.computeQueue();
      for (let i = 0; i < 4; i++) queue.exec(next, args, [1], [1]);
      queue.signal(s, 1).submit(dev);
      // the stamp before the first kernel, and the one launch
      expect(queue.q.length).toBe(6 + 6);
      expect(lastWords("compute").length).toBe(12);
      await dev.waitSignal(s, 1);
      const spans = profiler.spans.filter((x) => x.kind === "kernel");
      expect(spans.map((x) => x.name)).toEqual(["next", "next", "next", "next"]);
      for (const { start, end } of spans) expect(end).toBeGreaterThanOrEqual(start);
      dev.allocator.transfer(ints(dev, [0]), x, 4);
      await read(x);
      const copies = profiler.spans.filter((x) => x.kind === "copy").map((x) => x.name);
      const { name } = dev;
      expect(copies).toEqual([`${name} <- host`, `${name} <- host`, `${name} <- ${name}`, `host <- ${name}`]);
      profiler.reset();
    });
  });
  test("of 300 MB of streams uses memory again", async () => {
    const x = ints(dev, [0]);
    const free = gpu.freeBytes();
    for (let i = 0; i < 5000; i++) next.run([x, x], { globalSize: [1], localSize: [1], vals: [] }, false);
    expect(await read(x)).toEqual([5000]);
    expect(gpu.freeBytes()).toBe(free);
  });
  test("a stream that is longer than transient memory is kept as long as its queue", async () => {
    const x = ints(dev, [0]);
    const args = next.allocKernargs([x, x], []);
    const queue = dev.computeQueue();
    for (let i = 0; i < 2500; i++) queue.exec(next, args, [1], [1]);
    queue.submit(dev);
    gpu.pump();
    expect(await read(x)).toEqual([2500]);
  });
});

test("shared memory is what the cubin says, what the system keeps, and what the launch adds", () => {
  const sized = (shared: number, dynamic: number) => {
    const bytes = buildCubin({ name: "k", code: new Uint8Array(16), parameters: [], shared });
    const program = new NVProgram(dev, "k", loadCubin(bytes, "k", 90), dynamic);
    return String(program.qmd(program.allocKernargs([], []))).match(/SHARED_MEMORY_SIZE=0x(\w+)/)?.[1];
  };
  expect([sized(0, 0), sized(2048, 0), sized(0, 200_000), sized(2000, 1000)]).toEqual([
    "400",
    "800",
    (201_088).toString(16),
    "c00",
  ]);
});

test("the compiler's facts reach the QMD", () => {
  const program = compile(dev, "facts", scaleUops(3, 1));
  const x = ints(dev, [1]);
  const text = String((program as NVProgram).qmd((program as NVProgram).allocKernargs([x, x], [])));
  expect(text).toMatch(/REGISTER_COUNT=0x10 /);
  expect(text).toMatch(/SHARED_MEMORY_SIZE=0x400 /);
  expect(text).toMatch(/CONSTANT_BUFFER_VALID\(0\)=0x1/);
});
