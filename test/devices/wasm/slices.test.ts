// Work that is stopped when the time is over: after a command, and within a kernel that takes a range.
// Whoever goes on finds where it stopped, so that a kernel which adds to what is there adds once.

import { Device, Tensor } from "gradloom";
import { afterEach, describe, expect, test } from "vitest";
import type { Executor } from "../../../src/devices/wasm/executor.ts";
import { LAYOUT } from "../../../src/devices/wasm/layout.ts";
import { setSlice } from "../../../src/pace.ts";
import { device, ints, launch, ramp, scale } from "./kernels.ts";

const { hardware } = device("WASM:50");
/** Submissions execute no longer than this. */
const setPace = (ms: number): void => {
  hardware.isPaced = ms < Infinity;
  setSlice(ms);
};
afterEach(() => setPace(Infinity));
const OVER = 0;

/** Until the workers sleep: then small work is executed here. */
async function atRest(name: string): Promise<void> {
  await device(name).synchronize();
  for (let i = 0; i < 1000 && device(name).hardware.workers.active; i++)
    await new Promise((resolve) => setTimeout(resolve, 5));
}
const calls = (host: Executor, done: () => boolean): number => {
  let count = 0;
  for (; !done() && count < 1000; count++) host.pump(OVER);
  return count;
};

test("a command at a time", async () => {
  const d = device("WASM:50");
  await atRest("WASM:50");
  const x = ints("WASM:50", [3]);
  const program = scale(d, "twice", 2, 1);
  setPace(OVER); // each submission executes one command
  for (let i = 0; i < 5; i++) launch(program, [x, x], { worth: false });
  expect(d.isIdle).toBe(false);
  // three commands each, of which the submissions have executed five
  expect(calls(d.hardware.host, () => d.isIdle)).toBe(10);
  expect(x.dataSync()[0]).toBe(3 * 32 + 31);
});

test("a part of a kernel at a time, each once", async () => {
  const d = device("WASM:51");
  await atRest("WASM:51");
  const n = 64;
  const x = ints("WASM:51", new Array<number>(n).fill(0));
  const program = ramp(d, "ramp");
  setPace(OVER);
  launch(program, [x], { size: n, worth: false });
  launch(program, [x], { size: n, worth: false });
  expect(calls(d.hardware.host, () => d.isIdle)).toBeGreaterThan(8);
  const want = Array.from({ length: n }, (_, i) => 2 * (i + 1));
  expect(Array.from(x.dataSync(), Number)).toEqual(want);
});

describe("a host that leaves long kernels to others", () => {
  test("leaves one that was timed as long, and whoever goes on begins where it was left", async () => {
    const d = device("WASM:53");
    await atRest("WASM:53");
    const n = 64;
    const x = ints("WASM:53", new Array<number>(n).fill(0));
    const program = ramp(d, "begun");
    setPace(OVER);
    launch(program, [x], { size: n, worth: false });
    hardware.host.pump(OVER); // a part of it
    const { words } = hardware.memory;
    words[(program.at >>> 2) + LAYOUT.duration] = 1e9;
    expect(hardware.host.pump(Infinity, 3)).toBe(false);
    expect([hardware.host.hasLeft, d.isIdle]).toEqual([true, false]);
    words[(program.at >>> 2) + LAYOUT.duration] = 1000;
    expect(hardware.host.pump(Infinity, 3)).toBe(true);
    expect([hardware.host.hasLeft, d.isIdle]).toEqual([false, true]);
    expect(Array.from(x.dataSync(), Number)).toEqual(Array.from({ length: n }, (_, i) => i + 1));
  });
  test("counts only the threads that the governor lets share it", async () => {
    const d = device("WASM:55");
    await atRest("WASM:55");
    const x = ints("WASM:55", new Array<number>(16).fill(0));
    const program = ramp(d, "narrow");
    setPace(OVER);
    launch(program, [x], { size: 16, worth: false });
    const { words } = hardware.memory;
    const before = words.slice(LAYOUT.threads, LAYOUT.hostAway);
    words[(program.at >>> 2) + LAYOUT.duration] = 3e5; // 4.8 ms for one thread, 1.6 for three
    words.set([1e6, Date.now() + 1e6], LAYOUT.pause);
    [words[LAYOUT.threads], words[LAYOUT.spared]] = [3, 2];
    hardware.host.pump(performance.now() + 100, 3);
    expect([hardware.host.hasLeft, d.isIdle]).toEqual([true, false]);
    words[(program.at >>> 2) + LAYOUT.duration] = 1e5; // 1.6 ms
    hardware.host.pump(performance.now() + 1000, 3);
    expect([hardware.host.hasLeft, d.isIdle]).toEqual([false, true]);
    words.set(before, LAYOUT.threads);
    expect(Array.from(x.dataSync(), Number)).toEqual(Array.from({ length: 16 }, (_, i) => i + 1));
  });
  test("stops in the middle of one that it shares, when the time is over", async () => {
    const d = device("WASM:56");
    await atRest("WASM:56");
    const n = 64;
    const x = ints("WASM:56", new Array<number>(n).fill(0));
    setPace(OVER);
    launch(ramp(d, "shared"), [x], { size: n, worth: false });
    const { words } = hardware.memory;
    const before = words.slice(LAYOUT.threads, LAYOUT.hostAway);
    [words[LAYOUT.threads], words[LAYOUT.executorCount], words[LAYOUT.spared]] = [2, 2, 0];
    let count = 0;
    for (; !d.isIdle && count < 100; count++) hardware.host.pump(OVER, 3);
    words.set(before, LAYOUT.threads);
    // a quarter of what is left to each of two threads at a time, each index once
    expect(count).toBeGreaterThan(4);
    expect(Array.from(x.dataSync(), Number)).toEqual(Array.from({ length: n }, (_, i) => i + 1));
  });
  test("leaves one that nobody has timed, if there may be much work", async () => {
    const d = device("WASM:54");
    await atRest("WASM:54");
    const x = ints("WASM:54", [3]);
    setPace(OVER);
    launch(scale(d, "untimed", 2, 0), [x, x], { worth: false }); // the wait before it, and no more
    expect(hardware.host.pump(Infinity, 3, true)).toBe(false);
    expect([hardware.host.hasLeft, d.isIdle]).toEqual([true, false]);
    expect(hardware.host.pump(Infinity, 3, false)).toBe(true);
    expect([hardware.host.hasLeft, d.isIdle]).toEqual([false, true]);
    expect(x.dataSync()[0]).toBe(6);
  });
});

test("a wait finishes what was left", async () => {
  const d = device("WASM:52");
  await atRest("WASM:52");
  const n = 64;
  const x = ints("WASM:52", new Array<number>(n).fill(0));
  setPace(OVER);
  for (let i = 0; i < 20; i++) launch(ramp(d, `ramp${i}`), [x], { size: n, worth: false });
  expect(d.isIdle).toBe(false);
  expect(Array.from(x.dataSync(), Number)).toEqual(Array.from({ length: n }, (_, i) => 20 * (i + 1)));
});

test("tensors come out the same", async () => {
  await Device.open("WASM");
  setPace(OVER);
  const t = await Tensor.zeros(300, 40).contiguous().realize();
  for (let i = 0; i < 10; i++) await t.assign(t.add(1)).realize();
  expect(await t.mul(Tensor.arange(40)).sum().item()).toBe(300 * 10 * 780);
});
