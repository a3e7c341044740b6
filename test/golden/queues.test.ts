// Queue streams: what is submitted to the rings of WASM for the dot product, for a copy between two devices,
// and for a kernel that is shared. Text as `disassemble` gives it; addresses are numbered as they appear.

import { Device, resetKernelNames, Tensor } from "gradloom";
import { expect, test } from "vitest";
import { device } from "../devices/wasm/kernels.ts";
import { recorded } from "../devices/wasm/record.ts";

test("the dot product", async () => {
  const name = "WASM:20";
  resetKernelNames();
  const lines = await recorded(device(name), async () => {
    const c = new Tensor([1, 2], { device: name }).dot(new Tensor([3, 4], { device: name }));
    expect(await c.item()).toBe(11);
  });
  // the device is idle, so the two copies in and the copy out need no command: the memory is the host's own
  expect(lines).toEqual([
    "WASM:20 compute:",
    "  wait WASM:20.timeline >= 0",
    "  memoryBarrier",
    "  exec r_2 args @0",
    "  signal WASM:20.timeline = 1",
  ]);
});

test("a copy between two devices, and a kernel on each side of it", async () => {
  const [from, to] = ["WASM:21", "WASM:22"];
  resetKernelNames();
  const x = await new Tensor([1, 2, 3, 4], { device: from }).realize();
  const lines = await recorded(device(from), async () => {
    expect(await x.add(1).to(to).mul(2).tolist()).toEqual([4, 6, 8, 10]);
  });
  // the source's copy queue waits for both timelines and moves both: the reader's by a wait for the source's
  expect(lines).toEqual([
    "WASM:21 compute:",
    "  wait WASM:21.timeline >= 0",
    "  memoryBarrier",
    "  exec E_4 args @0",
    "  signal WASM:21.timeline = 1",
    "WASM:21 copy:",
    "  wait WASM:21.timeline >= 1",
    "  wait WASM:22.timeline >= 0",
    "  copy @1 <- @2, 16 bytes",
    "  signal WASM:21.timeline = 2",
    "WASM:22 compute:",
    "  wait WASM:22.timeline >= 0",
    "  memoryBarrier",
    "  exec E_4n1 args @3",
    "  signal WASM:22.timeline = 1",
  ]);
});

test("a busy device: copies in are staged, and what crosses devices waits for signals", async () => {
  const [from, to] = ["WASM:23", "WASM:24"];
  const d = device(from);
  const gate = d.allocSignal(0, "gate");
  resetKernelNames();
  const x = await new Tensor([1, 2, 3, 4], { device: from }).realize();
  const value = d.nextTimelineValue();
  d.computeQueue().wait(gate, 1).signal(d.timelineSignal, value).submit(d);
  let t = x;
  const lines = await recorded(d, async () => {
    const y = new Tensor([10, 20, 30, 40], { device: from });
    t = await x.add(y).to(to).mul(2).realize();
  });
  expect(lines).toEqual([
    "WASM:23 copy:",
    "  wait WASM:23.timeline >= 1",
    "  copy @0 <- @1, 16 bytes",
    "  signal WASM:23.timeline = 2",
    "WASM:23 compute:",
    "  wait WASM:23.timeline >= 2",
    "  memoryBarrier",
    "  exec E_4 args @2",
    "  signal WASM:23.timeline = 3",
    // the WaitItem of the copy, then the copy, then the wait that moves the reader's timeline past it
    "WASM:24 compute:",
    "  wait WASM:24.timeline >= 0",
    "  wait WASM:23.timeline >= 3",
    "  signal WASM:24.timeline = 1",
    "WASM:23 copy:",
    "  wait WASM:23.timeline >= 3",
    "  wait WASM:24.timeline >= 1",
    "  copy @3 <- @4, 16 bytes",
    "  signal WASM:23.timeline = 4",
    "WASM:24 compute:",
    "  wait WASM:24.timeline >= 1",
    "  wait WASM:23.timeline >= 4",
    "  signal WASM:24.timeline = 2",
    "WASM:24 compute:",
    "  wait WASM:24.timeline >= 2",
    "  memoryBarrier",
    "  exec E_4n1 args @5",
    "  signal WASM:24.timeline = 3",
  ]);
  d.setSignal(gate, 1);
  expect(await t.tolist()).toEqual([22, 44, 66, 88]);
});

test("from WASM to CLANG: memories of two kinds, signals of one", async ({ skip }) => {
  const [from, to] = ["WASM:25", "CLANG:25"];
  const why = await Device.open(to).then(
    () => "",
    (e: Error) => e.message,
  );
  skip(why !== "", why);
  resetKernelNames();
  const x = await new Tensor([1, 2, 3, 4], { device: from }).realize();
  const lines = await recorded(device(from), async () => {
    expect(await x.to(to).add(1).tolist()).toEqual([2, 3, 4, 5]);
  });
  expect(lines).toEqual([
    "WASM:25 copy:",
    "  wait WASM:25.timeline >= 0",
    "  wait CLANG:25.timeline >= 0",
    "  move native @0 <- @1, 16 bytes",
    "  signal WASM:25.timeline = 1",
    "CLANG:25 compute:",
    "  wait CLANG:25.timeline >= 0",
    "  memoryBarrier",
    "  exec E_4 args @2",
    "  signal CLANG:25.timeline = 1",
  ]);
});
