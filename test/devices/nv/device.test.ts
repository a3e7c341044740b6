// NV above the kernel driver, on the mock GPU: memory, copies in parts, local memory that grows, waits that
// nothing meets, a GPU that stumbles, and random work on both queues with a host that runs ahead.

import { Device, Tensor, TinyJit } from "gradloom";
import { describe, expect, test } from "vitest";
import { COMPUTE } from "../../../src/devices/nv/commands/classes.ts";
import { method } from "../../../src/devices/nv/commands/methods.ts";
import type { NVDevice } from "../../../src/devices/nv/device.ts";
import { withEnv } from "../../../src/env.ts";
import { HOST_SLACK } from "../../../src/runtime/device.ts";
import type { HardwareAllocator, HardwareBlock } from "../../../src/runtime/hcq/gpumemory.ts";
import { Random } from "../../shape/random.ts";
import { compile, ints, read, scale, scaleUops } from "./kernels.ts";
import { LATE, mockDevice } from "./register.ts";

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
  test("zeros are zeros, also where something else was", async () => {
    const { device } = mockDevice("MOCKNV:1");
    for (const n of [1, 1000, 300_000, 1, 1000, 300_000]) {
      const block = device.allocator.alloc(n * 4, true);
      expect(new Set(await read(block))).toEqual(new Set([0]));
      device.allocator.copyin(block, new Uint8Array(n * 4).fill(7));
      device.allocator.free(block);
    }
  });
  test("what is freed is used again, and most of it given back when it is much", () => {
    const { device, gpu } = mockDevice("MOCKNV:1", { totalBytes: 256 << 20 });
    const cycle = (mib: number) => {
      const block = device.allocator.alloc(mib << 20, false);
      device.allocator.free(block);
      return block.vaAddr;
    };
    const first = cycle(20);
    expect([cycle(20), cycle(20)]).toEqual([first, first]);
    const free = gpu.freeBytes();
    for (let i = 0; i < 20; i++) device.allocator.free(device.allocator.alloc(1000, false));
    cycle(30);
    expect(gpu.freeBytes()).toBe(free - (32 << 20) - (30 << 20)); // a chunk of small ones
    cycle(16); // more than a quarter of the memory is kept now
    device.drain();
    expect(gpu.freeBytes()).toBe(free - (32 << 20) + (20 << 20));
  });
  test("dropped tensors may hold an eighth of it before the collector is pushed", () => {
    expect(mockDevice("MOCKNV:1", { totalBytes: 2 ** 35 }).device.allocator.slack).toBe(2 ** 32);
    expect(mockDevice("MOCKNV:1", { totalBytes: 2 ** 28 }).device.allocator.slack).toBe(HOST_SLACK);
  });
  test("where there is none, what was given up is waited for; then the error says how much", () => {
    const { device, gpu } = mockDevice("MOCKNV:1", { totalBytes: 128 << 20 });
    const alloc = (mib: number) => device.allocator.alloc(mib << 20, false);
    for (let i = 0; i < 10; i++) device.allocator.free(alloc(64 + 2 * (i % 3)));
    const held = alloc(70);
    expect(() => alloc(70)).toThrow(
      new RegExp(`MOCKNV:1: no room for ${70 << 20} bytes; .* are free on the GPU. Drop tensors`),
    );
    device.allocator.free(held);
    expect(alloc(72).size).toBe(72 << 20);
    expect(gpu.freeBytes()).toBeLessThan(56 << 20);
  });
  test("marks that are waited for give back what they lie in", async () => {
    const { device } = mockDevice("MOCKNV:1", { when: "poll" });
    device.constants.alloc(64); // so that their chunk stays
    const cycle = () => {
      const [first, second] = [device.constants.alloc(64), device.constants.alloc(64)];
      device.retire(() => device.constants.free(first));
      device.reclaim(); // sets a mark, which is not reached yet
      device.retire(() => device.constants.free(second));
      device.drain();
    };
    const lowest = () => {
      const piece = device.constants.alloc(1 << 20);
      device.constants.free(piece);
      return piece.va;
    };
    cycle();
    const va = lowest();
    for (let i = 0; i < 50; i++) cycle();
    expect(lowest()).toBe(va);
  });
  test("large copies go in parts, in and out", async () => {
    const { device } = mockDevice("MOCKNV:1", { when: "poll" });
    const { allocator } = device as { allocator: HardwareAllocator };
    for (const nbytes of [1, 5, 1 << 21, (1 << 21) + 4, (20 << 20) + 12]) {
      const bytes = Uint8Array.from({ length: nbytes }, (_, i) => (i * 7) ^ (i >>> 11));
      const block = allocator.alloc(nbytes, false);
      allocator.copyin(block, bytes);
      const back = new Uint8Array(nbytes);
      await allocator.copyout(back, block);
      expect(Buffer.compare(back, bytes), `${nbytes} bytes`).toBe(0);
      const part = new Uint8Array(Math.min(nbytes, 3));
      await allocator.copyout(part, allocator.offset(block, part.length, nbytes - part.length));
      expect([...part]).toEqual([...bytes.subarray(nbytes - part.length)]);
    }
  });
  test("a transfer on the device", async () => {
    const { device } = mockDevice("MOCKNV:1");
    const [a, b] = [ints(device, [1, 2, 3]), ints(device, [0, 0, 0])];
    device.allocator.transfer(b, a, 12);
    expect(await read(b)).toEqual([1, 2, 3]);
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

describe("the timeline", () => {
  test("changes signals when its values run out", async () => {
    const { device } = mockDevice("MOCKNV:1", { when: "poll" });
    device.timelineLimit = 50;
    const next = scale(device, "next", 1, 1);
    const x = ints(device, [0]);
    for (let i = 0; i < 500; i++) next.run([x, x], launch(), false);
    expect(await read(x)).toEqual([500]);
    expect(device.era).toBeGreaterThan(5);
  });
});

describe("what goes wrong", () => {
  test("a name without a number", async () => {
    for (const name of ["NV:first", "NV:-1"])
      await expect(Device.open(name)).rejects.toThrow(`device "${name}": expected a number after the colon`);
  });
  test("a wait that nothing meets is an error that says what is queued", async () => {
    const { device, gpu } = mockDevice("MOCKNV:1");
    const never = device.allocSignal(0, "never");
    const next = scale(device, "next", 1, 1);
    const x = ints(device, [0]);
    const args = next.allocKernargs([x, x], []);
    const value = device.nextTimelineValue();
    device
      .computeQueue()
      .wait(never, 1)
      .exec(next, args, [1], [1])
      .signal(device.timelineSignal, value)
      .submit(device);
    await withEnv({ HCQ_TIMEOUT: 0.1 }, async () => {
      await expect(async () => device.synchronize()).rejects.toThrow(
        /MOCKNV:1: nothing moved for 0\.1\d* s .* Queued: kernel next/,
      );
    });
    device.setSignal(never, 1); // late, but it works again
    gpu.pump();
    expect(await read(x)).toEqual([1]);
  });

  test("a launch that is refused leaves nothing to wait for", async () => {
    const { device } = mockDevice("MOCKNV:1", { when: "poll" });
    const next = scale(device, "next", 1, 1);
    const x = ints(device, [0]);
    const refused = () => next.run([x, x], { globalSize: [1], localSize: [2048], vals: [] }, false);
    await withEnv({ HCQ_TIMEOUT: 0.5 }, async () => {
      expect(refused).toThrow(/kernel next takes blocks of 1 to 1024 threads/);
      await device.synchronize();
      next.run([x, x], launch(), false);
      expect(refused).toThrow(/takes blocks/);
      expect(await read(x)).toEqual([1]);
      next.run([x, x], launch(), false);
      expect(await read(x)).toEqual([2]);
    });
  });
  test("a kernel that reads where nothing is: named, and it works again after it", async () => {
    const { device } = mockDevice("MOCKNV:1", { when: "poll" });
    const [good, bad] = [scale(device, "good", 1, 1), scale(device, "bad", 1, 1)];
    const x = ints(device, [0]);
    good.run([x, x], launch(), false);
    await device.synchronize();
    good.run([x, x], launch(), false);
    const nowhere = { ...x, vaAddr: 0x1000 } as HardwareBlock;
    bad.run([x, nowhere], launch(), false);
    good.run([x, x], launch(), false);
    const failure =
      /MOCKNV:1: the GPU stopped in kernel bad: argument 1 of bad: 0x1000 is not mapped; what was queued is dropped/;
    await expect(async () => device.synchronize()).rejects.toThrow(failure);
    // told once: what came before it is done, what came after is not, and it works again
    await device.synchronize();
    expect(await read(x)).toEqual([2]);
    good.run([x, x], launch(), false);
    compile(device, "another", scaleUops(10, 1)).run([x, x], launch(), false);
    expect(await read(x)).toEqual([31]);
    // others go on
    const { device: other } = mockDevice("MOCKNV:2");
    expect(await read(ints(other, [7]))).toEqual([7]);
  });
  test("local memory, copies and memory given up outlive it", async () => {
    const { device, gpu } = mockDevice("MOCKNV:1", { when: "poll" });
    gpu.facts = { local: 400 };
    const deep = scale(device, "deep", 1, 1);
    const x = ints(device, [1]);
    deep.run([x, x], launch(), false);
    for (let round = 0; round < 3; round++) {
      await device.synchronize();
      deep.run([x, { ...x, vaAddr: 0x1000 } as HardwareBlock], launch(), false);
      const [given, large] = [device.allocator.alloc(64, true), device.allocator.alloc(2 << 20, true)];
      for (const block of [given, large]) device.allocator.free(block);
      await expect(async () => device.synchronize()).rejects.toThrow(/in kernel deep/);
      deep.run([x, x], launch(), false);
      expect(await read(x)).toEqual([3 + round]);
    }
    device.drain();
  });
  test("a captured step runs again after it, also if it was what was dropped", async () => {
    const device = (await Device.open(`${LATE}:3`)) as NVDevice;
    const bad = scale(device, "bad", 1, 1);
    const x = ints(device, [0]);
    const step = new TinyJit((t: Tensor) => t.mul(2).contiguous().add(1).contiguous().sum().realize());
    const input = () => new Tensor([1, 2, 3], { device: device.name }).realize();
    for (let i = 0; i < 4; i++) expect(await (await step(await input())).item()).toBe(15);
    for (let round = 0; round < 3; round++) {
      const t = await input();
      bad.run([x, { ...x, vaAddr: 0x1000 } as HardwareBlock], launch(), false);
      await step(t);
      await expect(async () => device.synchronize()).rejects.toThrow(/in kernel bad/);
      for (let i = 0; i < 3; i++) expect(await (await step(await input())).item()).toBe(15);
    }
  });
  test("where no channel can be had any more, everything fails with the same", async () => {
    const { device, gpu } = mockDevice("MOCKNV:1");
    const bad = scale(device, "bad", 1, 1);
    const x = ints(device, [0]);
    gpu.broken = true;
    bad.run([x, { ...x, vaAddr: 0x1000 } as HardwareBlock], launch(), false);
    const failure =
      /in kernel bad: .* could not be started again \(mock: broken for good\), so MOCKNV:1 takes no more work/;
    await expect(async () => device.synchronize()).rejects.toThrow(failure);
    await expect(async () => device.synchronize()).rejects.toThrow(failure);
    expect(() => bad.run([x, x], launch(), false)).toThrow(failure);
    expect(() => compile(device, "another", scaleUops(1, 1))).toThrow(failure);
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

test("random work on both queues, with a host that runs ahead", async () => {
  const { device, gpu } = mockDevice("MOCKNV:1", { when: "poll" });
  const r = new Random(5);
  const N = 6;
  const model = Array.from({ length: N }, (_, i) => [i, i + 1, i + 2]);
  const blocks = model.map((values) => ints(device, values));
  const programs = [scale(device, "double", 2, 0), scale(device, "next", 1, 1), scale(device, "neg", -1, 3)];
  const apply = [(x: number) => (2 * x) | 0, (x: number) => (x + 1) | 0, (x: number) => (3 - x) | 0];
  for (let i = 0; i < 3000; i++) {
    const [to, from, k] = [r.int(0, N - 1), r.int(0, N - 1), r.int(0, 3)];
    const [dest, src] = [blocks[to] as HardwareBlock, blocks[from] as HardwareBlock];
    if (k < 3) {
      programs[k]?.run([dest, src], launch(3), false);
      model[to] = (model[from] as number[]).map(apply[k] as (x: number) => number);
    } else {
      device.allocator.transfer(dest, src, 12);
      model[to] = [...(model[from] as number[])];
    }
    if (r.chance(2)) expect(await read(dest), `step ${i}`).toEqual(model[to]);
    if (r.chance(5)) {
      device.allocator.free(dest);
      model[to] = [i, -i, r.int(0, 99)];
      blocks[to] = ints(device, model[to]);
    }
  }
  for (let i = 0; i < N; i++) expect(await read(blocks[i] as HardwareBlock)).toEqual(model[i]);
  expect(gpu.kernelsRun).toBeGreaterThan(1500);
});
