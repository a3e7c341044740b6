// NV above the kernel driver, on the mock GPU: memory, copies in parts, local memory that grows, waits that
// nothing meets, a GPU that stumbles, and random work on both queues with a host that runs ahead.

import { Device } from "gradloom";
import { describe, expect, test } from "vitest";
import { COMPUTE } from "../../../src/devices/nv/commands/classes.ts";
import { method } from "../../../src/devices/nv/commands/methods.ts";
import type { NVDevice } from "../../../src/devices/nv/device.ts";
import type { HardwareBlock } from "../../../src/runtime/hcq/gpumemory.ts";
import { ints, read, scale } from "../../runtime/hcq/kernels.ts";
import { mockDevice } from "./register.ts";

const launch = (n = 1) => ({ globalSize: [n], localSize: [1], vals: [] });

describe("memory", () => {
  test("4 KiB that are mapped lie behind every kernel: instructions are prefetched past its end", () => {
    const { device, gpu } = mockDevice("MOCKNV:1");
    const behind = 4096;
    // what fills a chunk to its end, and what is larger than a chunk
    const ends = [2 ** 20, 2 ** 20 - behind, 2 ** 19, 2 ** 20, 2 ** 20, 3 * 2 ** 20].map((size) => {
      const kept = device.keep(device, size);
      kept.words.fill(-1);
      return kept.va + size;
    });
    const tails = ends.map((end) => gpu.bytes(end, behind, "the prefetch").subarray(0, behind));
    // the last of its chunk has zeros behind it
    expect(tails.filter((t) => t.every((x) => x === 0)).length).toBeGreaterThanOrEqual(2);
  });
});

describe("local memory", () => {
  test("grows with what kernels need, and what runs keeps what it had", async () => {
    const { device, gpu } = mockDevice("MOCKNV:1", { when: "poll" });
    const x = ints(device, [1]);
    const programs = [0, 16, 400, 100, 5000].map((local) => {
      gpu.facts = { local };
      const p = scale(device, `local${local}`, 1, 1);
      p.run([x, x], launch(), false);
      return p;
    });
    for (const p of programs) p.run([x, x], launch(), false);
    expect(await read(x)).toEqual([11]);
    const before = gpu.freeBytes();
    device.drain(); // the smaller ones
    expect(gpu.freeBytes()).toBeGreaterThan(before);
    expect(await read(x)).toEqual([11]);
  });
});

describe("what goes wrong", () => {
  test("a name without a number", async () => {
    for (const name of ["NV:first", "NV:-1"])
      await expect(Device.open(name)).rejects.toThrow(`device "${name}": expected a number after the colon`);
  });
  test("of a chain all that may have been it are named", async () => {
    const { device } = mockDevice("MOCKNV:1");
    const [a, b] = [scale(device, "a", 1, 1), scale(device, "b", 1, 1)];
    const x = ints(device, [0]);
    const nowhere = { ...x, vaAddr: 0x1000 } as HardwareBlock;
    const value = device.nextTimelineValue();
    device
      .computeQueue()
      .exec(a, a.allocKernargs([x, x], []), [1], [1])
      .exec(b, b.allocKernargs([x, nowhere], []), [1], [1])
      .signal(device.timelineSignal, value)
      .submit(device);
    await expect(async () => device.synchronize()).rejects.toThrow(
      /in one of the kernels a, b \(JIT=0 and DEBUG=2 show which\): argument 1 of b/,
    );
  });
  test("the mock believes nothing", async () => {
    const stumbles = async (prepare: (d: NVDevice) => void, why: RegExp) => {
      const { device } = mockDevice("MOCKNV:1");
      const run = async () => {
        prepare(device);
        device.nextTimelineValue(); // which nobody signals
        await device.synchronize();
      };
      await expect(run).rejects.toThrow(why);
    };
    const submit = (device: NVDevice, words: number[]) => {
      const at = device.transient.alloc(words.length * 4);
      device.transientWords(at, words.length).set(words);
      device.enqueue("compute", at, words.length, []);
    };
    await stumbles((d) => submit(d, [0]), /is not a header that we wrote/);
    await stumbles(
      (d) => submit(d, method("COPY", COMPUTE.SET_OBJECT, 0xc8b5)),
      /COPY.SET_OBJECT on a compute channel/,
    );
    await stumbles((d) => submit(d, method("COMPUTE", COMPUTE.SET_OBJECT, 0xc6c0)), /class 0xc6c0/);
    await stumbles(
      (d) =>
        submit(d, [
          ...method("COMPUTE", COMPUTE.SEND_PCAS_A, 0x10),
          ...method("COMPUTE", COMPUTE.SEND_SIGNALING_PCAS2_B, 9),
        ]),
      /QMD: 0x1000 is not mapped/,
    );
    await stumbles((d) => {
      const p = scale(d, "k", 1, 1);
      const x = ints(d, [0]);
      const q = d.computeQueue().exec(p, p.allocKernargs([x, x], []), [1], [1]);
      (q.launches[0]?.qmd.words as Uint32Array)[40] = 1; // the occupancy, which nobody set
      q.submit(d);
    }, /QMD: bits 0x1 of word 40 belong to no field that is used/);
    await stumbles((d) => {
      const p = scale(d, "k", 1, 1);
      const x = ints(d, [0]);
      d.copyQueue()
        .copy({ ...x, vaAddr: x.vaAddr + 2 ** 25 - 4 } as HardwareBlock, x, 8)
        .submit(d);
      p.run([x, x], launch(), false);
    }, /copy to: 8 bytes at 0x\w+ run over the end/);
  });
});
