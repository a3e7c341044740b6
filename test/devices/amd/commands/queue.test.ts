// Seed 003 on AMD: every command and its update, on the mock GPU, which checks what it executes; and the
// packets of a fixed set of work for each family, word for word (golden/).

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parsePm4, showPm4 } from "../../../../src/devices/amd/commands/pm4.ts";
import { parseSdma, showSdma } from "../../../../src/devices/amd/commands/sdma.ts";
import type { AMDDevice } from "../../../../src/devices/amd/device.ts";
import { withEnv } from "../../../../src/env.ts";
import { profiler } from "../../../../src/runtime/profiling.ts";
import { compile, ints, read, scale, storeUops } from "../../../runtime/hcq/kernels.ts";
import { mockDevice } from "../register.ts";

const { device: dev, kfd } = mockDevice("MOCKAMD:7");
const { gpu } = kfd;
const double = scale(dev, "double", 2, 0);
const next = scale(dev, "next", 1, 1);
const store = compile(dev, "store", storeUops());

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
});

describe("updates", () => {
  test("change words, bound or not", async () => {
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
  test("of arguments that are numbers, and of copies", async () => {
    const [a, b, c] = [ints(dev, [1, 2]), ints(dev, [0, 0]), ints(dev, [5, 6])];
    const args = store.allocKernargs([a], [41]);
    const kernel = dev.computeQueue().exec(store, args, [1], [1]).bind(dev).submit(dev);
    expect(await read(a)).toEqual([41, 2]);
    args.setVal(0, 42);
    kernel.submit(dev);
    expect(await read(a)).toEqual([42, 2]);
    const queue = dev.copyQueue().copy(b, a, 8).bind(dev).submit(dev);
    expect(await read(b)).toEqual([42, 2]);
    queue.updateCopy(0, undefined, c).submit(dev);
    expect(await read(b)).toEqual([5, 6]);
    queue.updateCopy(0, a).submit(dev);
    expect(await read(a)).toEqual([5, 6]);
  });
});

test("a bound queue is one packet in the ring; a long one that is not is called, too", async () => {
  const x = ints(dev, [0]);
  const args = next.allocKernargs([x, x], []);
  const queue = dev.computeQueue();
  for (let i = 0; i < 300; i++) queue.exec(next, args, [1], [1]);
  const before = gpu.log.length;
  queue.submit(dev);
  gpu.pump();
  expect(gpu.log[before]?.words).toHaveLength(4);
  expect(await read(x)).toEqual([300]);
});
test("rings wrap around, and the copy engine's packets do not", async () => {
  const [x, y] = [ints(dev, [0]), ints(dev, [0])];
  for (let i = 0; i < 3000; i++) {
    next.run([x, x], { globalSize: [1], localSize: [1], vals: [] }, false);
    dev.allocator.transfer(y, x, 4);
    dev.allocator.transfer(y, x, 4);
  }
  expect([await read(x), await read(y)]).toEqual([[3000], [3000]]);
  const words = (kind: string) =>
    gpu.log.filter((l) => l.kind === kind).reduce((n, l) => n + l.words.length, 0);
  expect(Math.min(words("compute"), words("copy"))).toBeGreaterThan(2 ** 16);
});
test("copies go in parts of what a packet moves at most", () => {
  for (const [arch, most] of [
    ["gfx90a", 0x3fffe0],
    ["gfx1100", 2 ** 30],
  ] as const) {
    const { device } = mockDevice("MOCKAMD:8", { arch });
    const [a, b] = [ints(device, [1]), ints(device, [2])];
    const { q } = device.copyQueue().copy(a, b, 2 * most + 8);
    expect([...parseSdma(q)].map((p) => (p.words[1] as number) + 1)).toEqual([most, most, 8]);
  }
});
test("what is not a packet of ours", () => {
  expect(() => [...parsePm4([0])]).toThrow(/word 0, 0x0, is not a header that we wrote/);
  expect(() => [...parsePm4([0xc0001000 | (5 << 16), 1])]).toThrow(/ends 5 words before its last packet/);
  expect(() => [...parseSdma([0xff])]).toThrow(/word 0, 0xff, begins no packet/);
  expect(() => [...parseSdma([1, 2])]).toThrow(/ends 5 words before/);
});
test("a queue is of one device, and its text shows packets", () => {
  const { device: other } = mockDevice("MOCKAMD:9");
  const s = dev.allocSignal();
  expect(() => dev.computeQueue().signal(s, 1).submit(other)).toThrow(
    /MOCKAMD:9: the queue is of another device/,
  );
  expect(String(dev.copyQueue().wait(s, 1).signal(s, 2)).replaceAll(/0x\w+/g, "@")).toBe(
    "wait:\n  POLL_REGMEM @ @ @ @ @ @\nsignal:\n  FENCE @ @ @ @",
  );
});
test("PROFILE=1 stamps kernels and copies", async () => {
  await withEnv({ PROFILE: 1 }, async () => {
    profiler.reset();
    const x = ints(dev, [1]);
    next.run([x, x], { globalSize: [1], localSize: [1], vals: [] }, false);
    await read(x);
    const spans = profiler.spans.filter((s) => s.kind === "kernel" || s.kind === "copy");
    expect(spans.map((s) => s.name)).toEqual([`${dev.name} <- host`, "next", `host <- ${dev.name}`]);
    for (const { start, end } of spans) expect(end).toBeGreaterThanOrEqual(start);
    profiler.reset();
  });
});

// ---- goldens ----

/** A kernel alone, with scratch and shared memory; copies; signals and waits; a graph and its replay. */
async function work(device: AMDDevice, deepen: () => void): Promise<void> {
  const plain = scale(device, "plain", 3, 1);
  deepen();
  const deep = scale(device, "deep", 2, 0);
  const [x, y] = [ints(device, [1, 2, 3]), ints(device, [0, 0, 0])];
  const launch = { globalSize: [3], localSize: [1], vals: [] };
  plain.run([y, x], launch, false);
  deep.run([x, y], launch, false);
  const [s, t] = [device.allocSignal(), device.allocSignal()];
  device.copyQueue().wait(s, 0).copy(y, x, 12).timestamp(t).zero(x, 8).signal(s, 1).submit(device);
  const args = plain.allocKernargs([y, y], []);
  const graph = device.computeQueue().wait(s, 1).memoryBarrier().exec(plain, args, [3], [1]).timestamp(t);
  graph.signal(s, 2).bind(device).submit(device);
  await device.waitSignal(s, 2);
  graph.updateWait(0, s, 2).updateExec(2, [2], [1]).updateSignal(4, s, 3).submit(device);
  await device.waitSignal(s, 3);
  expect(await read(y)).toEqual([76, 130, 61]);
  expect(await read(x)).toEqual([0, 0, 20]);
}

test.each(["gfx90a", "gfx942", "gfx1100", "gfx1201"])("the packets of %s", async (arch) => {
  const { device, kfd: own } = mockDevice("MOCKAMD:1", { arch });
  await work(device, () => {
    own.facts = { scratch: 320, shared: 1000 };
  });
  const got = own.gpu.log.flatMap(({ kind, words }) =>
    (kind === "compute" ? showPm4(words) : showSdma(words)).map((line) => `${kind} ${line}`),
  );
  const file = new URL(`../golden/${arch}.txt`, import.meta.url);
  expect(`${got.join("\n")}\n`).toBe(readFileSync(file, "utf8"));
});
