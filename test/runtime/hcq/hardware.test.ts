// What every device that we drive ourselves does, on the mocks of both makers: memory, copies in parts, a
// timeline that wraps around, waits that nothing meets, a GPU that stumbles, and random work on both queues
// with a host that runs ahead.

import { Device, Tensor, TinyJit } from "gradloom";
import { describe, expect, test } from "vitest";
import { withEnv } from "../../../src/env.ts";
import { HOST_SLACK } from "../../../src/runtime/device.ts";
import type { HardwareBlock } from "../../../src/runtime/hcq/gpumemory.ts";
import type { HardwareDevice } from "../../../src/runtime/hcq/hardware.ts";
import { REFUSALS } from "../../devices/amd/mock.ts";
import * as amd from "../../devices/amd/register.ts";
import * as nv from "../../devices/nv/register.ts";
import { Random } from "../../shape/random.ts";
import { compile, ints, read, scale, scaleUops } from "./kernels.ts";
import { Stress } from "./stress.ts";

interface Options {
  readonly when?: "submit" | "poll";
  readonly totalBytes?: number;
}
interface Mocked {
  readonly device: HardwareDevice;
  /** executes what can be executed */
  pump(): void;
  /** from now on there are no new rings */
  breakDown(): void;
  /** kernels that are compiled from now on need so many bytes of local memory a thread */
  takeLocal(bytes: number): void;
  kernelsRun(): number;
}
interface Maker {
  make(options?: Options): Mocked;
  /** a registered device whose GPU is late */
  readonly late: string;
  readonly refusal: RegExp;
  /** what is told of argument 1 of the kernel bad, which is 0x1000 */
  readonly stray: string;
  readonly broken: string;
}
const MAKERS: readonly (readonly [string, Maker])[] = [
  [
    "NV",
    {
      make(options) {
        const { device, gpu } = nv.mockDevice("MOCK:1", options);
        const breakDown = () => {
          gpu.broken = true;
        };
        const takeLocal = (local: number) => {
          gpu.facts = { local };
        };
        return { device, pump: () => gpu.pump(), breakDown, takeLocal, kernelsRun: () => gpu.kernelsRun };
      },
      late: nv.LATE,
      refusal: /kernel next takes blocks of 1 to 1024 threads/,
      stray: "argument 1 of bad: 0x1000 is not mapped",
      broken: "mock: broken for good",
    },
  ],
  [
    "AMD",
    {
      make(options) {
        const { device, kfd } = amd.mockDevice("MOCK:1", options);
        const breakDown = () => {
          kfd.refuse = (call) => (call === "CREATE_QUEUE" ? REFUSALS.EINVAL : undefined);
        };
        const takeLocal = (scratch: number) => {
          kfd.facts = { scratch };
        };
        const { gpu } = kfd;
        return { device, pump: () => gpu.pump(), breakDown, takeLocal, kernelsRun: () => gpu.kernelsRun };
      },
      late: amd.MOCK,
      refusal: /kernel next takes workgroups of 1 to 1024 threads/,
      stray: "AMD: an access to 0x1000, which has no memory: before all memory",
      broken: "AMD: the driver refused a compute queue: error 22",
    },
  ],
];
const launch = (n = 1) => ({ globalSize: [n], localSize: [1], vals: [] });

describe.each(MAKERS)("%s", (_, { make, late, refusal, stray, broken }) => {
  test("zeros are zeros, also where something else was", async () => {
    const { device } = make();
    for (const n of [1, 1000, 300_000, 1, 1000, 300_000]) {
      const block = device.allocator.alloc(n * 4, true);
      expect(new Set(await read(block))).toEqual(new Set([0]));
      device.allocator.copyin(block, new Uint8Array(n * 4).fill(7));
      device.allocator.free(block);
    }
  });
  test("what is freed is used again, and most of it given back when it is much", () => {
    const { device } = make({ totalBytes: 256 << 20 });
    const cycle = (mib: number) => {
      const block = device.allocator.alloc(mib << 20, false);
      device.allocator.free(block);
      return block.vaAddr;
    };
    const first = cycle(20);
    expect([cycle(20), cycle(20)]).toEqual([first, first]);
    const free = device.gpu.freeBytes();
    for (let i = 0; i < 20; i++) device.allocator.free(device.allocator.alloc(1000, false));
    cycle(30);
    expect(device.gpu.freeBytes()).toBe(free - (32 << 20) - (30 << 20)); // a chunk of small ones
    cycle(16); // more than a quarter of the memory is kept now
    device.drain();
    expect(device.gpu.freeBytes()).toBe(free - (32 << 20) + (20 << 20));
  });
  test("dropped tensors may hold an eighth of it before the collector is pushed", () => {
    expect(make({ totalBytes: 2 ** 35 }).device.allocator.slack).toBe(2 ** 32);
    expect(make({ totalBytes: 2 ** 28 }).device.allocator.slack).toBe(HOST_SLACK);
  });
  test("where there is none, what was given up is waited for; then the error says how much", () => {
    const { device } = make({ totalBytes: 128 << 20 });
    const alloc = (mib: number) => device.allocator.alloc(mib << 20, false);
    for (let i = 0; i < 10; i++) device.allocator.free(alloc(64 + 2 * (i % 3)));
    const held = alloc(70);
    expect(() => alloc(70)).toThrow(
      new RegExp(`MOCK:1: no room for ${70 << 20} bytes; .* are free on the GPU. Drop tensors`),
    );
    device.allocator.free(held);
    expect(alloc(72).size).toBe(72 << 20);
    expect(device.gpu.freeBytes()).toBeLessThan(56 << 20);
  });
  test("marks that are waited for give back what they lie in", async () => {
    const { device } = make({ when: "poll" });
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
    const { device } = make({ when: "poll" });
    const { allocator } = device;
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
    const { device } = make();
    const [a, b] = [ints(device, [1, 2, 3]), ints(device, [0, 0, 0])];
    device.allocator.transfer(b, a, 12);
    expect(await read(b)).toEqual([1, 2, 3]);
  });
  test("changes signals when its values run out", async () => {
    const { device } = make({ when: "poll" });
    device.timelineLimit = 50;
    const next = scale(device, "next", 1, 1);
    const x = ints(device, [0]);
    for (let i = 0; i < 500; i++) next.run([x, x], launch(), false);
    expect(await read(x)).toEqual([500]);
    expect(device.era).toBeGreaterThan(5);
  });

  test("a wait that nothing meets is an error that says what is queued", async () => {
    const { device, ...mock } = make();
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
        /MOCK:1: nothing moved for 0\.1\d* s .* Queued: kernel next/,
      );
    });
    device.setSignal(never, 1); // late, but it works again
    mock.pump();
    expect(await read(x)).toEqual([1]);
  });

  test("a launch that is refused leaves nothing to wait for", async () => {
    const { device } = make({ when: "poll" });
    const next = scale(device, "next", 1, 1);
    const x = ints(device, [0]);
    const refused = () => next.run([x, x], { globalSize: [1], localSize: [2048], vals: [] }, false);
    await withEnv({ HCQ_TIMEOUT: 0.5 }, async () => {
      expect(refused).toThrow(refusal);
      await device.synchronize();
      next.run([x, x], launch(), false);
      expect(refused).toThrow(refusal);
      expect(await read(x)).toEqual([1]);
      next.run([x, x], launch(), false);
      expect(await read(x)).toEqual([2]);
    });
  });
  test("a kernel that reads where nothing is: named, and it works again after it", async () => {
    const { device } = make({ when: "poll" });
    const [good, bad] = [scale(device, "good", 1, 1), scale(device, "bad", 1, 1)];
    const x = ints(device, [0]);
    good.run([x, x], launch(), false);
    await device.synchronize();
    good.run([x, x], launch(), false);
    const nowhere = { ...x, vaAddr: 0x1000 } as HardwareBlock;
    bad.run([x, nowhere], launch(), false);
    good.run([x, x], launch(), false);
    const failure = `MOCK:1: the GPU stopped in kernel bad: ${stray}; what was queued is dropped`;
    await expect(async () => device.synchronize()).rejects.toThrow(failure);
    // told once: what came before it is done, what came after is not, and it works again
    await device.synchronize();
    expect(await read(x)).toEqual([2]);
    good.run([x, x], launch(), false);
    compile(device, "another", scaleUops(10, 1)).run([x, x], launch(), false);
    expect(await read(x)).toEqual([31]);
    // others go on
    const { device: other } = make();
    expect(await read(ints(other, [7]))).toEqual([7]);
  });
  test("local memory, copies and memory given up outlive it", async () => {
    const { device, ...mock } = make({ when: "poll" });
    mock.takeLocal(400);
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
    const device = (await Device.open(`${late}:3`)) as HardwareDevice;
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
    const { device, ...mock } = make();
    const bad = scale(device, "bad", 1, 1);
    const x = ints(device, [0]);
    mock.breakDown();
    bad.run([x, { ...x, vaAddr: 0x1000 } as HardwareBlock], launch(), false);
    const failure = `could not be started again (${broken}), so MOCK:1 takes no more work`;
    await expect(async () => device.synchronize()).rejects.toThrow(failure);
    await expect(async () => device.synchronize()).rejects.toThrow(failure);
    expect(() => bad.run([x, x], launch(), false)).toThrow(failure);
    expect(() => compile(device, "another", scaleUops(1, 1))).toThrow(failure);
  });
  test("random work on both queues, with a host that runs ahead", async () => {
    const { device, ...mock } = make({ when: "poll" });
    const r = new Random(5);
    const N = 6;
    const model = Array.from({ length: N }, (_, i) => [i, i + 1, i + 2]);
    const blocks = model.map((values) => ints(device, values));
    const programs = [
      scale(device, "double", 2, 0),
      scale(device, "next", 1, 1),
      scale(device, "neg", -1, 3),
    ];
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
    expect(mock.kernelsRun()).toBeGreaterThan(1500);
  });
  test.each([1, 2, 3])("1,000 submissions, seed %i, and nothing is lost", async (seed) => {
    const { device } = make({ when: "poll" });
    const stress = new Stress(device, seed);
    await stress.run(1000);
    expect(stress.checks).toBeGreaterThan(12);
    await stress.end();
    const before = device.gpu.freeBytes();
    const again = new Stress(device, seed + 100);
    await again.run(300);
    await again.end();
    expect(device.gpu.freeBytes()).toBe(before);
  });
});
