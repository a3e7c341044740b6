// Bring-up, memory and queues against the mock of the kernel driver: what is asked in which order, that
// everything is given back, also when any step on the way is refused, and what a user reads when there is no
// GPU, no right to it, or another one.

import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { openGpu } from "../../../../src/devices/amd/driver/driver.ts";
import { queueArea } from "../../../../src/devices/amd/driver/topology.ts";
import { openKernel } from "../../../../src/devices/linux/syscalls.ts";
import { DeviceError, InternalError, OutOfMemoryError, withEnv } from "../../../../src/index.ts";
import { MockKfd, REFUSALS } from "../mock.ts";
import { mockDevice } from "../register.ts";

const memory = ["ALLOC_MEMORY_OF_GPU", "MAP_MEMORY_TO_GPU"];

describe("bring-up", () => {
  test("asks for what it needs, in order, and says what the GPU is", () => {
    const kfd = new MockKfd();
    const gpu = openGpu(kfd, 0);
    expect(kfd.calls).toEqual([
      "open /dev/kfd",
      "GET_VERSION",
      "open /dev/dri/renderD128",
      "ACQUIRE_VM",
      "GET_PROCESS_APERTURES_NEW",
      ...memory,
      ...Array(3).fill("CREATE_EVENT"),
      // ring, pointers, end of pipe, what is saved
      ...Array(4).fill(memory).flat(),
      "CREATE_QUEUE",
      ...memory,
      ...memory,
      "CREATE_QUEUE",
    ]);
    const { name, arch, computeUnits, wave, shaderEngines, scratchSlots, totalBytes, tick } = gpu;
    expect({ name, arch, computeUnits, wave, shaderEngines, scratchSlots, totalBytes, tick }).toEqual({
      name: "mock",
      arch: "gfx1100",
      computeUnits: 8,
      wave: 32,
      shaderEngines: 2,
      scratchSlots: 32,
      totalBytes: 2 ** 31,
      tick: 10,
    });
    expect(Number(gpu.time()) * tick).toBeCloseTo((performance.timeOrigin + performance.now()) * 1e6, -9);
    gpu.close();
    expect(kfd.left()).toEqual([]);
  });
  test("a step that is refused: everything before it is given back", () => {
    const steps = (() => {
      const kfd = new MockKfd();
      openGpu(kfd, 0);
      return kfd.calls.length;
    })();
    let refused = 0;
    for (let step = 1; step <= steps; step++) {
      const kfd = new MockKfd();
      let count = 0;
      kfd.refuse = () => (++count === step ? REFUSALS.EINVAL : undefined);
      try {
        openGpu(kfd, 0).close();
      } catch (e) {
        expect(e).toBeInstanceOf(DeviceError);
        refused++;
        expect(kfd.left(), `step ${step}`).toEqual([]);
      }
    }
    expect(refused).toBeGreaterThan(20);
  });
  test("no driver, no right, no such GPU, another GPU", () => {
    const withRefusal = (call: string, code: number) => () => {
      const kfd = new MockKfd();
      kfd.refuse = (c) => (c === call ? code : undefined);
      openGpu(kfd, 0);
    };
    expect(withRefusal("open /dev/kfd", REFUSALS.ENOENT)).toThrow(
      /AMD: \/dev\/kfd is not there: no AMD GPU, no driver amdgpu, .* or set DEV to another device/,
    );
    expect(withRefusal("open /dev/kfd", -13)).toThrow(/may not be opened: add this user to the group render/);
    expect(withRefusal("open /dev/dri/renderD128", REFUSALS.EPERM)).toThrow(/renderD128 may not be opened/);
    expect(withRefusal("ACQUIRE_VM", REFUSALS.EINVAL)).toThrow(
      "AMD: the driver refused an address space on the GPU: error 22",
    );
    expect(() => openGpu(new MockKfd(), 1)).toThrow("AMD:1: there is no such GPU, this process can open 1");
    class Old extends MockKfd {
      override read(path: string) {
        return super.read(path)?.replace("110000", "100300");
      }
    }
    expect(() => openGpu(new Old(), 0)).toThrow(
      /the GPU is gfx1030, and known here are gfx90a.*OPENCL or WEBGPU/,
    );
  });
  test("on a machine without such a GPU", async ({ skip }) => {
    if (existsSync("/dev/kfd") || process.platform !== "linux" || process.arch !== "x64")
      return skip("it may have one");
    const system = await openKernel("AMD");
    expect(() => openGpu(system, 0)).toThrow(/\/dev\/kfd is not there/);
  });
});

test("what is saved of a queue, as the driver computes it for an MI300X and an RX 7900 XTX", () => {
  const common = { gpuId: 1, name: "", arch: "", renderMinor: 0, wave: 64, scratchSlots: 32, memoryBytes: 0 };
  const mi300x = {
    ...common,
    version: 90402,
    computeUnits: 38,
    shaderEngines: 4,
    xccs: 8,
    arrays: 32,
    arraysPerEngine: 1,
  };
  const navi31 = {
    ...common,
    version: 110000,
    computeUnits: 96,
    shaderEngines: 6,
    xccs: 1,
    arrays: 12,
    arraysPerEngine: 2,
  };
  expect(queueArea(mi300x)).toEqual({
    stack: 0x3000,
    saved: 0x3000 + 38 * 0x95000,
    bytes: 8 * (0x3000 + 38 * 0x95000 + 1520 * 32),
  });
  expect(queueArea(navi31)).toEqual({
    stack: 0xa000,
    saved: 0xa000 + 96 * 0x75000,
    bytes: 0xa000 + 96 * 0x75000 + 3072 * 32,
  });
});

describe("memory", () => {
  test("of the GPU and of the host, given back once", () => {
    const kfd = new MockKfd();
    const gpu = openGpu(kfd, 0);
    const [a, b] = [gpu.alloc(5000, "device"), gpu.alloc(3 << 20, "host")];
    expect([a.size, a.bytes, b.size, b.va % 2 ** 21]).toEqual([8192, undefined, 3 << 20, 0]);
    expect(new Set(b.bytes)).toEqual(new Set([0]));
    expect(() => gpu.alloc(1, "visible")).toThrow(InternalError);
    gpu.free(a);
    expect(() => gpu.free(a)).toThrow(/freed twice/);
    gpu.close();
    expect(kfd.left()).toEqual([]);
  });
  test("there is no room", () => {
    const kfd = new MockKfd({ totalBytes: 64 << 20 });
    const gpu = openGpu(kfd, 0);
    const before = gpu.freeBytes();
    expect(() => gpu.alloc(80 << 20, "device")).toThrow(OutOfMemoryError);
    expect(() => gpu.alloc(80 << 20, "device")).toThrow(/no room for 83886080 bytes on the GPU/);
    kfd.refuse = (call) => (call === "mmap" ? -12 : undefined);
    expect(() => gpu.alloc(4096, "host")).toThrow(/of the host's memory \(the host cannot map it\)/);
    expect(gpu.freeBytes()).toBe(before);
    gpu.close();
    expect(kfd.left()).toEqual([]);
  });
});

test("a ring that stays full is an error that says so", async () => {
  const { device, kfd } = mockDevice("MOCKAMD:1", { when: "poll" });
  const never = device.allocSignal(0, "never");
  device.copyQueue().wait(never, 1).submit(device);
  const fill = () => {
    for (let i = 0; i < 20_000; i++) device.copyQueue().signal(never, 0).submit(device);
  };
  await withEnv({ HCQ_TIMEOUT: 0.05 }, async () => {
    expect(fill).toThrow(/the copy ring is full and the GPU took nothing from it for 0\.05 s/);
  });
  kfd.gpu.pump();
});
