// Freed memory is handed out again to buffers of its size, up to a cap, the oldest goes first, and none of it
// is kept when a device would otherwise say that it is full.

import { Buffer, Device, dtypes, GlobalCounters, OutOfMemoryError, Tensor, withEnv } from "gradloom";
import { beforeAll, beforeEach, expect, test, vi } from "vitest";
import { flushFreed } from "../../src/runtime/cache.ts";
import type { Compiled } from "../../src/runtime/device.ts";

const NAME = "WASM:30";
const MIB = 2 ** 20;
let device: Compiled;
beforeAll(async () => {
  device = await Device.open(NAME);
});
beforeEach(() => {
  vi.restoreAllMocks();
  flushFreed(device);
});
const room = (nbytes: number): Buffer => new Buffer(NAME, nbytes, dtypes.uint8).ensureAllocated();

test("a freed buffer's memory is the next one's of that size, and of no other", () => {
  const [free, alloc] = [vi.spyOn(device.allocator, "free"), vi.spyOn(device.allocator, "alloc")];
  const a = room(1000);
  const { handle } = a;
  a.dispose();
  expect(free).not.toHaveBeenCalled();
  expect(room(1001).handle).not.toBe(handle);
  expect(room(1000).handle).toBe(handle);
  expect(alloc).toHaveBeenCalledTimes(2);
  expect(room(1000).handle).not.toBe(handle); // handed out once
});
test("kept memory is counted apart from what is in use", () => {
  const [used, kept] = [GlobalCounters.memUsedOn(NAME), GlobalCounters.memCached];
  const a = room(5000);
  expect([GlobalCounters.memUsedOn(NAME) - used, GlobalCounters.memCached - kept]).toEqual([5000, 0]);
  a.dispose();
  expect([GlobalCounters.memUsedOn(NAME) - used, GlobalCounters.memCached - kept]).toEqual([0, 5000]);
  flushFreed(device);
  expect([GlobalCounters.memUsedOn(NAME) - used, GlobalCounters.memCached - kept]).toEqual([0, 0]);
});
test("over the cap the oldest goes first; what is larger than the cap is not kept at all", () => {
  withEnv({ MEMCACHE: 2 }, () => {
    const buffers = [1, 2, 3].map(() => room(0.75 * MIB));
    const handles = buffers.map((b) => b.handle);
    const free = vi.spyOn(device.allocator, "free");
    for (const b of buffers) b.dispose();
    expect(free.mock.calls.map(([h]) => h)).toEqual([handles[0]]);
    expect(room(0.75 * MIB).handle).toBe(handles[2]);
    free.mockClear();
    room(3 * MIB).dispose();
    expect(free).toHaveBeenCalledTimes(1);
  });
});
test("where new memory takes long, as much is kept as is in use", () => {
  const allocator = device.allocator as { isSlow: boolean };
  const before = allocator.isSlow;
  withEnv({ MEMCACHE: 1 }, () => {
    const held = room(4 * MIB);
    for (const [isSlow, kept] of [
      [false, 0],
      [true, 3 * MIB],
    ] as const) {
      allocator.isSlow = isSlow;
      const cached = GlobalCounters.memCached;
      room(3 * MIB).dispose();
      expect(GlobalCounters.memCached - cached).toBe(kept);
    }
    // what is kept goes with what was in use
    held.dispose();
    room(64).dispose();
    expect(GlobalCounters.memCached).toBeLessThan(MIB);
    allocator.isSlow = before;
  });
});
test("MEMCACHE=0 keeps nothing", () => {
  withEnv({ MEMCACHE: 0 }, () => {
    const free = vi.spyOn(device.allocator, "free");
    room(64).dispose();
    expect(free).toHaveBeenCalledTimes(1);
  });
});
test("memory that must be zero is zero, whatever was kept", () => {
  const dirty = room(256);
  dirty.copyin(new Uint8Array(256).fill(7));
  dirty.dispose();
  const clean = new Buffer(NAME, 256, dtypes.uint8).allocate();
  expect([...clean.dataSync()].every((x) => x === 0)).toBe(true);
});
test("a full device flushes before it complains", async () => {
  const name = "WASM:31";
  await Device.open(name);
  const gib = 2 ** 30;
  await withEnv({ MEMCACHE: 4096 }, async () => {
    const big = (n: number) => Tensor.empty([n], { dtype: "uint8", device: name });
    const held = [await big(gib).realize(), await big(gib).realize(), await big(gib).realize()];
    for (const t of held) t.dispose();
    expect(GlobalCounters.memCached).toBeGreaterThanOrEqual(3 * gib);
    // no gap of this size while the three are kept
    const large = await big(3.5 * gib).realize();
    expect(GlobalCounters.memCached).toBeLessThan(gib);
    expect(() => big(gib).realizeSync()).toThrow(OutOfMemoryError);
    large.dispose();
    expect((await big(gib).realize()).size).toBe(gib);
  });
  flushFreed(await Device.open(name));
});
test("host arrays and files are not kept", async () => {
  for (const d of ["EXT", "JS"]) {
    await Device.open(d);
    const kept = GlobalCounters.memCached;
    new Buffer(d, 1000, dtypes.uint8).allocate().dispose();
    expect(GlobalCounters.memCached).toBe(kept);
  }
});
