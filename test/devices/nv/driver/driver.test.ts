// Bring-up, memory and channels against a fake driver: what is asked in which order, with which arguments;
// that everything is given back, also when any step on the way is refused; and what a user reads when
// there is no GPU or another driver.

import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { openKernel } from "../../../../src/devices/linux/syscalls.ts";
import { openGpu } from "../../../../src/devices/nv/driver/driver.ts";
import { N, STRUCTS } from "../../../../src/devices/nv/driver/ioctls.ts";
import type { NVGpu } from "../../../../src/devices/nv/gpu.ts";
import { DeviceError, InternalError, OutOfMemoryError, withEnv } from "../../../../src/index.ts";
import type { MemoryBlock } from "../../../../src/runtime/hcq/pool.ts";
import { FakeKernel } from "./fakekernel.ts";

const MiB = 2 ** 20;

const bytesOf = (field: number | Uint8Array | undefined): Uint8Array => {
  if (typeof field !== "object") throw new Error(`${field} is not an array`);
  return field;
};

function open(change: (kernel: FakeKernel) => void = () => {}): { kernel: FakeKernel; gpu: NVGpu } {
  const kernel = new FakeKernel();
  change(kernel);
  return { kernel, gpu: openGpu(kernel, 0) };
}

describe("bring-up", () => {
  test("goes in the order that the hardware was tried with", () => {
    const { kernel, gpu } = open();
    const window = ["open /dev/nvidia0", "REGISTER_FD", "RM_MAP_MEMORY", "mmap"];
    const channel = (engine: string) => [
      "RM_ALLOC NV01_MEMORY_SYSTEM",
      "open /dev/nvidiactl",
      "RM_MAP_MEMORY",
      "mmap",
      "RM_ALLOC HOPPER_CHANNEL_GPFIFO_A",
      `RM_ALLOC ${engine}`,
      "RM_CONTROL NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN",
      "UVM_REGISTER_CHANNEL",
      "RM_CONTROL NVA06C_CTRL_CMD_GPFIFO_SCHEDULE",
    ];
    expect(kernel.names).toEqual([
      "open /dev/nvidiactl",
      "CHECK_VERSION",
      "open /dev/nvidia-uvm",
      "open /dev/nvidia-uvm",
      "RM_ALLOC NV01_ROOT_CLIENT",
      "UVM_INITIALIZE",
      "UVM_MM_INITIALIZE",
      "CARD_INFO",
      "open /dev/nvidia0",
      "REGISTER_FD",
      "RM_CONTROL NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2",
      "RM_ALLOC NV01_DEVICE_0",
      "RM_ALLOC NV20_SUBDEVICE_0",
      "RM_CONTROL NV2080_CTRL_CMD_GPU_GET_GID_INFO",
      "RM_CONTROL NV0080_CTRL_CMD_GPU_GET_CLASSLIST_V2",
      "RM_ALLOC HOPPER_USERMODE_A",
      ...window,
      "RM_ALLOC FERMI_VASPACE_A",
      "UVM_REGISTER_GPU",
      "UVM_REGISTER_GPU_VASPACE",
      "RM_ALLOC NV01_MEMORY_LOCAL_USER",
      ...window,
      "UVM_CREATE_EXTERNAL_RANGE",
      "UVM_MAP_EXTERNAL_ALLOCATION",
      "RM_ALLOC KEPLER_CHANNEL_GROUP_A",
      "RM_ALLOC FERMI_CONTEXT_SHARE_A",
      ...channel("HOPPER_COMPUTE_A"),
      "RM_CONTROL NV2080_CTRL_CMD_CE_GET_ALL_CAPS",
      ...Array(3).fill("RM_CONTROL NV2080_CTRL_CMD_CE_GET_CE_PCE_MASK"),
      "RM_ALLOC KEPLER_CHANNEL_GROUP_A",
      ...channel("HOPPER_DMA_COPY_A"),
      "RM_CONTROL NV2080_CTRL_CMD_GPU_GET_NAME_STRING",
      ...Array(6).fill("RM_CONTROL NV0080_CTRL_CMD_GR_GET_INFO_V2"),
      "RM_CONTROL NV2080_CTRL_CMD_FB_GET_INFO_V2",
    ]);
    gpu.close();
  });

  test("says what the GPU is", () => {
    const { gpu } = open();
    const { name, arch, classes, smCount, gpcs, tpcsPerGpc, smsPerTpc, maxWarpsPerSM } = gpu;
    expect({ name, arch, classes, smCount, gpcs, tpcsPerGpc, smsPerTpc, maxWarpsPerSM }).toEqual({
      name: "NVIDIA H200",
      arch: 90,
      classes: { channel: 0xc86f, compute: 0xcbc0, copy: 0xc8b5 },
      smCount: 132,
      gpcs: 8,
      tpcsPerGpc: 9,
      smsPerTpc: 2,
      maxWarpsPerSM: 64,
    });
    expect([gpu.totalBytes, gpu.sharedWindow % 2 ** 32, gpu.localWindow % 2 ** 32]).toEqual([
      141 * 2 ** 30,
      0,
      0,
    ]);
    gpu.close();
  });

  test("gives each channel its ring, its page behind it, and low addresses of its own", () => {
    const { kernel, gpu } = open();
    const [compute, copy] = kernel.find("RM_ALLOC HOPPER_CHANNEL_GPFIFO_A");
    const [area] = kernel.find("UVM_CREATE_EXTERNAL_RANGE");
    const ring = kernel.at(area?.base as number);
    for (const [i, channel] of [compute, copy].entries()) {
      const offset = (channel?.gpFifoOffset as number) - (area?.base as number);
      expect(offset).toBe(i * MiB);
      expect(new Uint32Array(bytesOf(channel?.hUserdMemory).buffer)[0]).toBe(ring);
      const userd = Number(new BigUint64Array(bytesOf(channel?.userdOffset).buffer)[0]);
      expect([userd, channel?.gpFifoEntries]).toEqual([
        offset + gpu.compute.entries * 8,
        gpu.compute.entries,
      ]);
      expect(userd + STRUCTS.NvA06FControl.bytes).toBeLessThanOrEqual(offset + MiB);
    }
    expect(compute?.hObjectError).not.toBe(copy?.hObjectError);
    const low = kernel.find("UVM_REGISTER_CHANNEL").map(({ base, length }) => [base, length]);
    expect(low).toEqual([
      [4096 * MiB, 64 * MiB],
      [4160 * MiB, 64 * MiB],
    ]);
    gpu.close();
  });

  test("takes the copy engine with the most units, and none of the graphics engine", () => {
    const { kernel, gpu } = open();
    const [compute, copy] = kernel.find("RM_ALLOC KEPLER_CHANNEL_GROUP_A");
    expect([compute?.engineType, copy?.engineType]).toEqual([
      N.NV2080_ENGINE_TYPE_GRAPHICS,
      N.NV2080_ENGINE_TYPE_COPY0 + 4,
    ]);
    const [object] = kernel.find("RM_ALLOC HOPPER_DMA_COPY_A");
    expect([object?.version, object?.engineType]).toEqual([1, N.NV2080_ENGINE_TYPE_COPY0 + 4]);
    gpu.close();
    kernel.copyEngines = [{ graphics: true, units: 0xff }];
    expect(() => openGpu(kernel, 0)).toThrow("gives this process no copy engine of its own");
    expect(kernel.left()).toEqual({});
  });

  test("keeps the GPU off the pages of this process", () => {
    const { kernel, gpu } = open();
    expect(kernel.find("UVM_INITIALIZE")[0]?.flags).toBe(N.UVM_INIT_FLAGS_DISABLE_HMM);
    expect(kernel.find("RM_ALLOC FERMI_VASPACE_A")[0]?.flags).toBe(0x48);
    gpu.close();
  });

  test("takes kernels that do not watch processes", () => {
    const { kernel, gpu } = open((k) => Object.assign(k, { watchesProcesses: false }));
    gpu.close();
    expect(kernel.left()).toEqual({});
  });

  test("skips GPUs of others, and names those that are not there", () => {
    const kernel = new FakeKernel();
    Object.assign(kernel, { listed: [0, 1, 2], present: [1, 2] });
    const gpu = openGpu(kernel, 1);
    expect(kernel.find("RM_ALLOC NV01_DEVICE_0")[0]?.deviceId).toBe(2);
    gpu.close();
    expect(() => openGpu(kernel, 2)).toThrow("NV:2: there is no such GPU, this process can open 2");
    kernel.present = [];
    expect(() => openGpu(kernel, 0)).toThrow("/dev/nvidia0 is not there");
    expect(kernel.left()).toEqual({});
  });

  test("takes the newest class that is known, and refuses a GPU without any", () => {
    const { kernel, gpu } = open((k) => void k.classes.push(N.AMPERE_COMPUTE_B));
    expect(gpu.classes.compute).toBe(N.HOPPER_COMPUTE_A);
    gpu.close();
    kernel.classes = [0xcd00];
    expect(() => openGpu(kernel, 0)).toThrow(/no usermode class that is known here \(HOPPER_USERMODE_A/);
    expect(kernel.left()).toEqual({});
  });
});

describe("who comes without the driver", () => {
  test.each(["575.57.08", "590.44.01", "5800.1", ""])("driver %s is refused by its number", (version) => {
    const kernel = new FakeKernel();
    kernel.version = version;
    expect(() => openGpu(kernel, 0)).toThrow(
      `NV: the kernel driver is ${version || "of no known version"} and the tables here are of 580.`,
    );
    expect(kernel.names).toEqual(["open /dev/nvidiactl", "CHECK_VERSION"]);
    expect(kernel.left()).toEqual({});
  });

  test("a machine without a GPU is told so", async ({ skip }) => {
    skip(existsSync("/dev/nvidiactl"), "this machine has the driver");
    skip(process.platform !== "linux" || process.arch !== "x64", "NV is for Linux on x64");
    const kernel = await openKernel("NV");
    expect(() => openGpu(kernel, 0)).toThrow(
      "NV: /dev/nvidiactl is not there: no NVIDIA GPU, no driver, or a container without it; " +
        "install the driver, or set DEV to another device",
    );
  });

  test("a module that is not loaded", () => {
    const kernel = new FakeKernel();
    const { open } = kernel;
    kernel.open = (path) => (path === "/dev/nvidia-uvm" ? -2 : open.call(kernel, path));
    expect(() => openGpu(kernel, 0)).toThrow(/nvidia-uvm is not there: the module nvidia-uvm is not loaded/);
    expect(kernel.left()).toEqual({});
  });

  test("a file that may not be opened", () => {
    const kernel = new FakeKernel();
    kernel.open = () => -13;
    expect(() => openGpu(kernel, 0)).toThrow(/nvidiactl may not be opened: this user lacks the right/);
  });
});

describe("teardown", () => {
  test("frees everything itself, in an order that the driver accepts", () => {
    const { kernel, gpu } = open();
    for (const kind of ["device", "visible", "host"] as const) {
      gpu.alloc(100, kind);
      gpu.alloc(9 * MiB, kind);
    }
    gpu.close();
    expect(kernel.left()).toEqual({});
    gpu.close();
  });

  test("and what a refused step left behind, whichever step it is", () => {
    const { kernel, gpu } = open();
    const steps = kernel.calls.length;
    gpu.close();
    let refused = 0;
    for (let at = 0; at < steps; at++) {
      for (const how of ["NV_ERR_INVALID_ARGUMENT", "errno"]) {
        const broken = new FakeKernel();
        let tripped = false;
        broken.refuse = () => {
          if (tripped || broken.calls.length !== at + 1) return undefined;
          tripped = true;
          return how;
        };
        try {
          openGpu(broken, 0).close();
        } catch (e) {
          refused++;
          expect(e).toBeInstanceOf(DeviceError);
          expect((e as Error).message).toMatch(/^NV/);
        }
        const { dropped: _, ...left } = broken.left();
        expect(left, `after call ${at}: ${broken.names[at]}`).toEqual({});
      }
    }
    // all but the opening of files, which has no refusal here
    expect(refused).toBe(
      2 * kernel.calls.slice(0, steps).filter(({ name }) => !name.startsWith("open")).length,
    );
  });

  test("goes on after a step that fails, and tells it", () => {
    const { kernel, gpu } = open();
    kernel.refuse = (name) => (name === "UVM_UNREGISTER_CHANNEL" ? "NV_ERR_GENERIC" : undefined);
    expect(() => gpu.close()).toThrow("NV: the driver refused UVM_UNREGISTER_CHANNEL: NV_ERR_GENERIC");
    kernel.refuse = () => undefined;
    const { registered, ...left } = kernel.left();
    expect(left).toEqual({});
    expect(registered).toBe(undefined);
  });
});

describe("memory", () => {
  test("lies below 2^40, apart from each other, in pages of 2 MiB from 8 MiB on", () => {
    const { kernel, gpu } = open();
    const all: MemoryBlock[] = [];
    for (const kind of ["device", "visible", "host"] as const) {
      for (const size of [1, 5000, 65536, 8 * MiB - 1, 8 * MiB, 8 * MiB + 1, 100 * MiB]) {
        const memory = gpu.alloc(size, kind);
        expect(memory.size).toBeGreaterThanOrEqual(size);
        expect([memory.bytes?.length, memory.va % 4096]).toEqual([
          kind === "device" ? undefined : memory.size,
          0,
        ]);
        const attr = kernel.find("RM_ALLOC NV01_MEMORY_LOCAL_USER").at(-1)?.attr as number;
        const huge = kind !== "host" && size >= 8 * MiB;
        if (kind !== "host") expect((attr & N.NVOS32_ATTR_PAGE_SIZE_HUGE) !== 0).toBe(huge);
        if (huge) expect([memory.va % (2 * MiB), memory.size % (2 * MiB)]).toEqual([0, 0]);
        all.push(memory);
      }
    }
    all.sort((a, b) => a.va - b.va);
    for (const [i, { va, size }] of all.entries()) {
      expect(va + size).toBeLessThan(gpu.sharedWindow);
      expect(va + size, "there is a gap").toBeLessThan(all[i + 1]?.va ?? Infinity);
      expect([
        kernel.at(va) !== undefined,
        kernel.at(va + size - 1) !== undefined,
        kernel.at(va + size),
      ]).toEqual([true, true, undefined]);
    }
    gpu.close();
  });

  test("of the host is the same bytes for both; a window is the GPU's memory", () => {
    const { kernel, gpu } = open();
    const host = gpu.alloc(4096, "host");
    const visible = gpu.alloc(4096, "visible");
    (visible.bytes as Uint8Array)[7] = 9;
    expect(kernel.memoryOf(kernel.at(visible.va) as number)[7]).toBe(9);
    const { pMemory, limit, fd } = kernel.find("RM_ALLOC_MEMORY")[0] ?? {};
    expect([limit, fd]).toEqual([4095, 0xffffffff]);
    kernel.view(BigInt(pMemory as number), 4096)[5] = 3;
    expect((host.bytes as Uint8Array)[5]).toBe(3);
    gpu.close();
  });

  test("is given back and used again", () => {
    const { kernel, gpu } = open();
    const before = [kernel.left(), gpu.freeBytes()];
    const places = ["device", "visible", "host"] as const;
    const take = () => places.flatMap((kind) => [gpu.alloc(4096, kind), gpu.alloc(16 * MiB, kind)]);
    const first = take();
    expect(gpu.freeBytes()).toBe((before[1] as number) - 2 * (65536 + 16 * MiB));
    for (const memory of first) gpu.free(memory);
    expect([kernel.left(), gpu.freeBytes()]).toEqual(before);
    const addresses = (all: MemoryBlock[]) => all.map(({ va }) => va).sort();
    expect(addresses(take())).toEqual(addresses(first));
    expect(() => gpu.free(first[0] as MemoryBlock)).toThrow(InternalError);
    gpu.close();
  });

  test("that is not there is an OutOfMemoryError, and nothing is held", () => {
    const { kernel, gpu } = open();
    const before = kernel.left();
    expect(() => gpu.alloc(150 * 2 ** 30, "device")).toThrow(OutOfMemoryError);
    expect(() => gpu.alloc(150 * 2 ** 30, "device")).toThrow(/no room for 161061273600 bytes on the GPU/);
    expect(() => gpu.alloc(2 ** 31 + 1, "host")).toThrow(/at most 2147483648 in one piece/);
    kernel.freeBytes = 2 ** 45;
    expect(() => gpu.alloc(2 ** 40, "device")).toThrow(/all addresses are in use/);
    expect(kernel.left()).toEqual(before);
    gpu.alloc(4096, "device");
    gpu.close();
  });

  test.each(["device", "visible", "host"] as const)(
    "on the %s leaves nothing, whichever step is refused",
    (kind) => {
      const { kernel, gpu } = open();
      const before = kernel.left();
      const start = kernel.calls.length;
      gpu.free(gpu.alloc(9 * MiB, kind));
      const steps = kernel.names.slice(start).filter((name) => !/open|RM_FREE|UNMAP|UVM_FREE/.test(name));
      for (const step of steps) {
        kernel.refuse = (name) => (name === step ? "NV_ERR_INSUFFICIENT_RESOURCES" : undefined);
        expect(() => gpu.alloc(9 * MiB, kind), step).toThrow(DeviceError);
        kernel.refuse = () => undefined;
        expect(kernel.left(), step).toEqual(before);
      }
      gpu.close();
    },
  );
});

/** The ring of a channel and what else it writes to, as the GPU sees them. */
function hardware(kernel: FakeKernel, i: number) {
  const area = kernel.memoryOf(
    kernel.at(kernel.find("UVM_CREATE_EXTERNAL_RANGE")[0]?.base as number) as number,
  );
  const ring = new Uint32Array(area.buffer, area.byteOffset + i * MiB, 2 ** 17);
  const userd = new Uint32Array(area.buffer, area.byteOffset + i * MiB + 2 ** 19, 128);
  const registers = kernel.memoryOf(kernel.handles("HOPPER_USERMODE_A")[0] as number);
  const doorbell = new Uint32Array(registers.buffer, registers.byteOffset + 0x90, 1);
  const clock = new Uint32Array(registers.buffer, registers.byteOffset + 0x80, 2);
  const notifier = kernel.memoryOf(kernel.handles("NV01_MEMORY_SYSTEM")[i] as number);
  return {
    ring,
    userd,
    doorbell,
    clock,
    notifier: new DataView(notifier.buffer, notifier.byteOffset),
  };
}
const [GPGET, GPPUT] = [0x88 / 4, 0x8c / 4];

describe("submitting", () => {
  test("writes the entry, then the end of the ring, then the doorbell, with a barrier between", () => {
    const { kernel, gpu } = open();
    const { ring, userd, doorbell } = hardware(kernel, 1);
    const seen: number[][] = [];
    kernel.barriers.push(() => seen.push([ring[0], ring[1], userd[GPPUT], doorbell[0]].map(Number)));
    gpu.submit(gpu.copy, 0x12_3456_7890, 5);
    const entry = [0x3456_7890, 0x12 | (1 << 9) | (5 << 10)];
    expect(seen).toEqual([
      [...entry, 0, 0],
      [...entry, 1, 0],
    ]);
    expect([userd[GPPUT], doorbell[0]]).toEqual([1, 0x7701]);
    gpu.submit(gpu.compute, 0x1000, 2 ** 21 - 1);
    expect([hardware(kernel, 0).ring[1], doorbell[0]]).toEqual([0x7ffffc00 + 0x200, 0x7700]);
    expect([gpu.compute.pending(), gpu.copy.pending()]).toEqual([1, 1]);
    userd[GPGET] = 1;
    expect(gpu.copy.pending()).toBe(0);
    gpu.close();
  });

  test("makes no system call", () => {
    const { kernel, gpu } = open();
    const before = kernel.calls.length;
    for (let i = 0; i < 100; i++) gpu.submit(gpu.compute, 0x1000, 1);
    gpu.compute.fault();
    gpu.time();
    expect(kernel.calls.length).toBe(before);
    gpu.close();
  });

  test("goes around the ring, and waits while it is full", () => {
    const { kernel, gpu } = open();
    const { ring, userd } = hardware(kernel, 0);
    const { entries } = gpu.compute;
    for (let i = 0; i < entries - 1; i++) gpu.submit(gpu.compute, 4 * i, 1);
    expect([userd[GPPUT], gpu.compute.pending()]).toEqual([entries - 1, entries - 1]);
    expect(() => withEnv({ HCQ_TIMEOUT: 0.01 }, () => gpu.submit(gpu.compute, 0, 1))).toThrow(
      /the compute ring is full and the GPU took nothing from it for 0.01 s/,
    );
    userd[GPGET] = 2;
    gpu.submit(gpu.compute, 0x4444, 1);
    expect([ring[2 * (entries - 1)], userd[GPPUT]]).toEqual([0x4444, 0]);
    gpu.submit(gpu.compute, 0x8888, 1);
    expect([ring[0], userd[GPPUT], gpu.compute.pending()]).toEqual([0x8888, 1, entries - 1]);
    gpu.close();
  });

  test.each([
    [0x1001, 1],
    [0x1000, 0],
    [0x1000, 2 ** 21],
  ])("refuses what an entry cannot say: %i, %i words", (va, dwords) => {
    const { gpu } = open();
    expect(() => gpu.submit(gpu.compute, va, dwords)).toThrow(InternalError);
    gpu.close();
  });

  test("the clock is read so that its halves belong together", () => {
    const { kernel, gpu } = open();
    const { clock } = hardware(kernel, 0);
    clock.set([5, 3]);
    expect(gpu.time()).toBe((3n << 32n) + 5n);
    gpu.close();
  });
});

describe("faults", () => {
  const fail = (kernel: FakeKernel, i: number, code: number) => {
    const { notifier } = hardware(kernel, i);
    notifier.setUint32(8, code, true);
    notifier.setUint16(14, 0xffff, true);
  };

  test("are read from the channel's notifier, with the address that the driver noted", () => {
    const { kernel, gpu } = open();
    expect([gpu.compute.fault(), gpu.copy.fault()]).toEqual([undefined, undefined]);
    const { va, size } = gpu.alloc(4096, "device");
    kernel.mmuFaults = [
      { faultAddress: va + size + 8192, accessType: 1, faultType: 2 },
      { faultAddress: 0x1000, accessType: 0, faultType: 0 },
    ];
    fail(kernel, 0, 31);
    const words =
      "NV: the compute channel stopped: an access to an address where no memory is, FIFO_ERROR_MMU_ERR_FLT (Xid 31); " +
      `0x${(va + size + 8192).toString(16)} was written, 8192 bytes behind the 65536 bytes at 0x${va.toString(16)}; ` +
      "0x1000 was read, before all memory";
    expect([gpu.compute.fault(), gpu.copy.fault()]).toEqual([words, undefined]);
    const calls = kernel.calls.length;
    expect([gpu.compute.fault(), kernel.calls.length]).toEqual([words, calls]);
    gpu.close();
    expect(kernel.left()).toEqual({});
  });

  test("without an address, and of an unknown kind", () => {
    const { kernel, gpu } = open();
    kernel.refuse = (name) => (name === "RM_ALLOC GT200_DEBUGGER" ? "NV_ERR_NOT_SUPPORTED" : undefined);
    fail(kernel, 0, 9999);
    expect(gpu.compute.fault()).toMatch(
      /an unknown error \(Xid 9999\); no address is known \(NV: the driver refused/,
    );
    kernel.refuse = () => undefined;
    gpu.close();
  });

  test("are over with new channels; memory stays, and nothing of the old ones is left", () => {
    const { kernel, gpu } = open();
    const block = gpu.alloc(4096, "visible");
    (block.bytes as Uint8Array)[5] = 7;
    const [before, free, old] = [kernel.left(), gpu.freeBytes(), gpu.compute];
    fail(kernel, 0, 31);
    expect(old.fault()).toMatch(/Xid 31/);
    gpu.restart();
    expect([gpu.compute === old, gpu.compute.fault(), gpu.copy.fault()]).toEqual([
      false,
      undefined,
      undefined,
    ]);
    expect([kernel.left(), gpu.freeBytes()]).toEqual([before, free]);
    gpu.submit(gpu.compute, 0x1000, 3);
    expect([gpu.compute.pending(), kernel.memoryOf(kernel.at(block.va) as number)[5]]).toEqual([1, 7]);
    gpu.close();
    expect(kernel.left()).toEqual({});
  });

  test("and a restart that is refused can be tried again, and leaves nothing after close", () => {
    const { kernel, gpu } = open();
    kernel.refuse = (name) => (name === "RM_ALLOC HOPPER_DMA_COPY_A" ? "NV_ERR_INVALID_ARGUMENT" : undefined);
    expect(() => gpu.restart()).toThrow(DeviceError);
    kernel.refuse = () => undefined;
    gpu.restart();
    gpu.submit(gpu.copy, 0x1000, 3);
    kernel.refuse = (name) => (name === "UVM_REGISTER_CHANNEL" ? "NV_ERR_INVALID_ARGUMENT" : undefined);
    expect(() => gpu.restart()).toThrow(DeviceError);
    kernel.refuse = () => undefined;
    gpu.close();
    expect(kernel.left()).toEqual({});
  });

  test("end a wait for room in the ring", () => {
    const { kernel, gpu } = open();
    fail(kernel, 1, 39);
    for (let i = 0; i < gpu.copy.entries - 1; i++) gpu.submit(gpu.copy, 0, 1);
    expect(() => gpu.submit(gpu.copy, 0, 1)).toThrow("NV: the copy channel stopped: CE0_ERROR (Xid 39)");
    gpu.close();
  });
});
