// What goes wrong with a GPU, and what a program hears of it: a typed error that says what to do, soon, and
// once; after a loss the device opens again. A row each, on a Gpu of plain objects.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import {
  ArgumentError,
  Buffer,
  BufferCopy,
  CompileError,
  Device,
  DeviceError,
  DTypeError,
  dtypes,
  GlobalCounters,
  OutOfMemoryError,
  Tensor,
  TinyJit,
  withEnv,
} from "gradloom";
import { describe, expect, test, vi } from "vitest";
import { sourceOf } from "../../../src/codegen/target.ts";
import { open as openDawn } from "../../../src/devices/dawn.ts";
import type { GpuBlock } from "../../../src/devices/webgpu/memory.ts";
import { open as openPage } from "../../../src/devices/webgpu.ts";
import { UOpGraph } from "../../../src/uop/list.ts";
import { fakeGpu } from "./fake.ts";
import { ones, opened } from "./opened.ts";

type ErrorType = abstract new (...args: never[]) => Error;
type Row = readonly [what: string, run: () => unknown, type: ErrorType, message: RegExp];

const SOON = { HCQ_TIMEOUT: 0.05 };
const soon = <T>(fn: () => Promise<T>): Promise<T> => withEnv(SOON, fn);
const dawn = (given: unknown) => openDawn("WEBGPU", async () => given);
const BINDING = {
  uops: new UOpGraph(),
  written: [true],
  types: ["float"],
  immediate: false,
  shared: () => "",
};
const KERNEL = sourceOf("fn k() {}", { buffers: 1, binding: BINDING });

/** A device with a tensor, and a wait that has not ended. */
async function waiting() {
  const made = await opened();
  const t = await ones(made.name);
  made.fake.answer = "never";
  const wait = Promise.resolve(made.device.synchronize());
  wait.catch(() => {});
  return { ...made, t, wait };
}
/** A device that was lost, with what was there before. */
async function lost() {
  const made = await opened();
  const t = await ones(made.name);
  const step = new TinyJit((x: Tensor) => x.add(1).contiguous());
  for (let i = 0; i < 3; i++) await step(t);
  made.fake.lose();
  await Promise.resolve();
  return { ...made, t, step };
}

const OPENING: readonly Row[] = [
  ["no adapter", () => opened({ isMissing: true }), DeviceError, /finds no GPU; buy one/],
  ["an adapter is refused", () => opened({ throws: "blocked" }), DeviceError, /opened: blocked; buy one/],
  [
    "no answer about an adapter",
    () => soon(() => opened({ hangs: "adapter" })),
    DeviceError,
    /adapter.*0\.05 s.*HCQ_TIMEOUT.*buy one/,
  ],
  [
    "a device is refused",
    () => opened({ refuses: "too many" }),
    DeviceError,
    /cannot be opened: too many; buy one/,
  ],
  [
    "no answer about a device",
    () => soon(() => opened({ hangs: "device" })),
    DeviceError,
    /GPU's device.*not answered.*buy one/,
  ],
  [
    "a tier that does not exist",
    () => withEnv({ WEBGPU_TIER: "fast" }, () => opened()),
    ArgumentError,
    /WEBGPU_TIER=fast: expected f32, f16, full/,
  ],
  [
    "a tier in capitals",
    () => withEnv({ WEBGPU_TIER: "F16" }, () => opened()),
    ArgumentError,
    /WEBGPU_TIER=F16: expected f32/,
  ],
  [
    "a page without WebGPU",
    () => openPage("WEBGPU"),
    DeviceError,
    /no WebGPU \(navigator\.gpu\).*WASM runs everywhere/,
  ],
  [
    "no package",
    () => openDawn("WEBGPU", () => Promise.reject(new Error("Cannot find package"))),
    DeviceError,
    /Cannot find package.*npm install webgpu/,
  ],
  ["another package of that name", () => dawn({}), DeviceError, /cannot load the package webgpu/],
  [
    "a package without a binary",
    () =>
      dawn({
        create: () => {
          throw new Error("dlopen failed");
        },
      }),
    DeviceError,
    /dlopen failed/,
  ],
  [
    "no driver",
    () => dawn({ create: () => fakeGpu({ isMissing: true }).gpu }),
    DeviceError,
    /install its driver.*VK_DRIVER_FILES/,
  ],
  [
    "a number that is a word",
    () => Device.open("WEBGPU:one"),
    DeviceError,
    /expected a number after the colon/,
  ],
  ["two devices as one", () => Device.open("WEBGPU,WEBGPU:1"), DeviceError, /names several devices/],
];

const WORKING: readonly Row[] = [
  [
    "a result over the limit",
    async () =>
      Tensor.ones([1 << 18], { device: (await opened()).name })
        .contiguous()
        .realize(),
    OutOfMemoryError,
    /1\.0 MiB in one piece: .* up to 0\.5 MiB/,
  ],
  [
    "data over the limit",
    async () => new Tensor(new Uint8Array(1 << 20), { device: (await opened()).name }).realize(),
    OutOfMemoryError,
    /1\.0 MiB in one piece/,
  ],
  [
    "a GPU without room",
    async () => {
      const { name, device } = await opened({ isFull: true });
      await ones(name);
      await device.synchronize();
    },
    OutOfMemoryError,
    /no room for .*VK_ERROR/,
  ],
  [
    "a GPU that runs out of room later",
    async () => {
      const { name, fake } = await opened();
      const t = await ones(name);
      fake.fault("the heap is full", "GPUOutOfMemoryError");
      await t.data();
    },
    OutOfMemoryError,
    /the heap is full/,
  ],
  [
    "float64",
    async () =>
      Tensor.ones([4], { device: (await opened()).name, dtype: "float64" })
        .contiguous()
        .realize(),
    DTypeError,
    /WEBGPU has no float64/,
  ],
  [
    "a view that cannot be bound",
    async () => {
      const { device } = await opened();
      const block = device.allocator.offset(device.allocator.alloc(1024), 64, 100) as GpuBlock;
      await (await device.compile("k", KERNEL)).run(
        [block],
        { globalSize: [1], localSize: [1], vals: [] },
        false,
      );
    },
    DeviceError,
    /k takes a buffer that starts at byte 100 of another.*multiples of 256/,
  ],
  [
    "too many workgroups",
    async () => {
      const { device } = await opened();
      await (await device.compile("k", KERNEL)).run(
        [device.allocator.alloc(64)],
        { globalSize: [70000], localSize: [1], vals: [] },
        false,
      );
    },
    DeviceError,
    /k has 70000 × 1 × 1 workgroups; this GPU takes 65535[\s\S]*fn k/,
  ],
  [
    "a kernel that is refused",
    async () => ones((await opened({ compileError: "unresolved" })).name),
    CompileError,
    /kernel E_\w+ is refused: line 7: unresolved\nsource:\n@group/,
  ],
  [
    "a compiler that hangs",
    async () => {
      const { name } = await opened({ hangs: "compile" });
      await soon(() => ones(name));
    },
    DeviceError,
    /no answer from the GPU for 0\.05 s; E_\w+ is being compiled/,
  ],
  [
    "a compiler that does not say why",
    async () => {
      const { name } = await opened({ compileError: "x", hangs: "compile info" });
      await soon(() => ones(name));
    },
    DeviceError,
    /no answer.*was refused/,
  ],
  [
    "a launch that the GPU refuses",
    async () => {
      const { name, fake, device } = await opened();
      await ones(name);
      fake.fault('in [ComputePipeline "E_16_4"]: binding 0 is too small');
      await device.synchronize();
    },
    DeviceError,
    /binding 0 is too small; the last kernels were E_\w+\nsource of E_\w+:\n@group/,
  ],
  [
    "a fault that is reported before a kernel is compiled",
    async () => {
      const { name, fake } = await opened();
      const t = await ones(name);
      fake.fault("it went wrong");
      await t.mul(3).add(t).contiguous().data();
    },
    DeviceError,
    /it went wrong/,
  ],
  [
    "several faults",
    async () => {
      const { name, fake, device } = await opened();
      await ones(name);
      fake.fault("the first");
      fake.fault("the second");
      await device.synchronize();
    },
    DeviceError,
    /the first/,
  ],
  [
    "dataSync",
    async () => (await ones((await opened()).name)).dataSync(),
    DeviceError,
    /asynchronously.*use the async form/,
  ],
  ["itemSync", async () => (await ones((await opened()).name, 1)).itemSync(), DeviceError, /asynchronously/],
  [
    "realizeSync",
    async () =>
      Tensor.ones([3], { device: (await opened()).name })
        .contiguous()
        .realizeSync(),
    DeviceError,
    /asynchronously/,
  ],
  [
    "a copy without waiting",
    async () => {
      const { name } = await opened();
      const from = new Buffer(name, 4, dtypes.uint8).allocate();
      new BufferCopy().exec([new Buffer("EXT", 4, dtypes.uint8).allocate(), from]);
    },
    DeviceError,
    /asynchronously/,
  ],
  [
    "what was disposed of",
    async () => {
      const t = await ones((await opened()).name);
      t.dispose();
      t.dispose();
      await t.data();
    },
    DeviceError,
    /disposed of/,
  ],
  [
    "a wait without an answer",
    async () => {
      const { name, fake, device } = await opened();
      await ones(name);
      fake.answer = "never";
      await soon(async () => device.synchronize());
    },
    DeviceError,
    /no answer from the GPU for 0\.05 s; a kernel may hang.*last kernels were E_/,
  ],
  [
    "memory that cannot be mapped",
    async () => {
      const { name, fake } = await opened();
      const t = await ones(name);
      fake.answer = "error";
      await t.data();
    },
    DeviceError,
    /the GPU says no/,
  ],
];

const LOSS: readonly Row[] = [
  [
    "in the middle of a step",
    async () => {
      const { fake, wait } = await waiting();
      fake.lose();
      await wait;
    },
    DeviceError,
    /the GPU was lost.*last kernels were E_.*opens it again/,
  ],
  [
    "while memory is mapped",
    async () => {
      const { name, fake } = await opened();
      const t = await ones(name);
      fake.answer = "never maps";
      const read = t.data();
      read.catch(() => {});
      await vi.waitFor(() => expect(fake.calls.get("map")).toBe(1));
      fake.lose();
      await read;
    },
    DeviceError,
    /the GPU was lost/,
  ],
  [
    "because somebody closed it",
    async () => {
      const { fake, wait } = await waiting();
      fake.lose("destroyed", "");
      await wait;
    },
    DeviceError,
    /was lost, because it was closed/,
  ],
  ["and then a read", async () => (await lost()).t.data(), DeviceError, /lost with what its memory held/],
  [
    "and then a kernel on what was lost",
    async () => {
      const { name, t } = await lost();
      await Device.open(name);
      await t.add(1).realize();
    },
    DeviceError,
    /256 bytes was lost with the GPU that held it.*make it anew/,
  ],
  [
    "and then a replay",
    async () => {
      const { name, step } = await lost();
      await step(await ones(name));
    },
    DeviceError,
    /lost/,
  ],
  [
    "and then no adapter",
    async () => {
      const { name, fake } = await lost();
      vi.spyOn(fake.gpu, "requestAdapter").mockResolvedValue(null);
      await ones(name);
    },
    DeviceError,
    /finds no GPU/,
  ],
];

const TABLES = { opening: OPENING, working: WORKING, loss: LOSS };
describe.each(Object.entries(TABLES))("%s", (_, rows) => {
  test.each(rows)("%s", async (_, run, type, message) => {
    const failed = Promise.resolve()
      .then(run)
      .then(
        () => expect.fail("nothing was refused"),
        (e: unknown) => e as Error,
      );
    const error = await failed;
    expect(error.message).toMatch(message);
    expect(error).toBeInstanceOf(type);
  });
});

describe("what goes on", () => {
  test("memory that is not there after all is refused, and not used again", async () => {
    const options: { isFull?: boolean } = { isFull: true };
    const { name, fake, device } = await opened(options);
    const t = await ones(name, 5);
    await expect(Promise.resolve(device.synchronize())).rejects.toThrow(OutOfMemoryError);
    await expect(t.data()).rejects.toThrow(/no room for/);
    await expect(t.add(1).realize()).rejects.toThrow(OutOfMemoryError);
    // the sum had no room, either
    await expect(Promise.resolve(device.synchronize())).rejects.toThrow(OutOfMemoryError);
    delete options.isFull;
    t.dispose();
    fake.calls.clear();
    await (await ones(name, 5)).data();
    expect(fake.calls.get("buffer")).toBeGreaterThan(0);
  });
  test("more inputs than a stage has buffers are split over kernels", async () => {
    const { name, fake } = await opened();
    const parts = await Promise.all(Array.from({ length: 20 }, () => ones(name)));
    await parts.reduce((a, b) => a.add(b)).realize();
    expect(fake.bound.most).toBeGreaterThan(4);
    expect(fake.bound.most).toBeLessThanOrEqual(8);
  });
  test("what a GPU compiles while it is lost is compiled on the next one", async () => {
    const options: { hangs?: "compile" } = { hangs: "compile" };
    const { name, fake } = await opened(options);
    const made = ones(name);
    setTimeout(() => {
      delete options.hangs;
      fake.lose();
    }, 20);
    await (await made).data();
    expect(fake.requested).toHaveLength(2);
  });
  test("a slow answer is waited for", async () => {
    const { fake, device } = await opened();
    vi.useFakeTimers();
    let answer: (x?: unknown) => void = () => {};
    vi.spyOn(device.stream.gpu.queue, "onSubmittedWorkDone").mockReturnValue(
      new Promise((r) => {
        answer = r;
      }),
    );
    const wait = Promise.resolve(device.synchronize());
    await vi.advanceTimersByTimeAsync(29_000);
    answer();
    await wait;
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
    expect(fake.calls.get("submit")).toBeUndefined();
  });
  test("all who wait hear of a loss, and a loss of one device leaves the other", async () => {
    const [first, second] = [await waiting(), await opened()];
    const other = await ones(second.name);
    const waits = [first.wait, first.device.synchronize(), first.t.data()];
    first.fake.lose();
    for (const result of await Promise.allSettled(waits)) expect(result.status).toBe("rejected");
    expect(await other.tolist()).toHaveLength(64);
    expect([first.device.isLost, second.device.isLost]).toEqual([true, false]);
  });
  test("after a loss, data, recomputation, a new capture and what is freed work", async () => {
    const { name, fake, t } = await lost();
    const host = new Float32Array(64);
    const lazy = Tensor.ones([64], { device: name }).add(2);
    await new Tensor(host, { device: name }).realize();
    await lazy.realize();
    const step = new TinyJit((x: Tensor) => x.add(1).contiguous());
    const x = await ones(name);
    for (let i = 0; i < 4; i++) await step(x);
    const kept = GlobalCounters.memCached;
    t.dispose();
    expect(GlobalCounters.memCached, "lost memory is not kept").toBe(kept);
    expect(fake.requested).toHaveLength(2);
  });
  test("a failed opening is tried again", async () => {
    const { name, fake } = await lost();
    const missing = vi.spyOn(fake.gpu, "requestAdapter").mockResolvedValue(null);
    await expect(ones(name)).rejects.toThrow(/finds no GPU/);
    missing.mockRestore();
    await ones(name);
  });
  test("programs of equal text share a pipeline", async () => {
    const { device, fake } = await opened();
    const [a, b] = [await device.compile("k", KERNEL), await device.compile("k", KERNEL)];
    const launch = { globalSize: [1], localSize: [1], vals: [] };
    const block = device.allocator.alloc(64);
    for (const program of [a, b]) await program.run([block], launch, false);
    expect([a === b, fake.calls.get("pipeline"), fake.calls.get("bind group")]).toEqual([false, 1, 1]);
  });
  test("a file of a driver that does not exist leaves no adapter", async () => {
    const script =
      'import { create } from "webgpu"; console.log((await create([]).requestAdapter()) === null);process.exit()';
    const env = { ...process.env, VK_DRIVER_FILES: "/nonexistent.json" };
    const ran = promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], { env });
    const { stdout } = await ran.catch(() => ({ stdout: "true (no package)" }));
    expect(stdout).toMatch(/^true/);
  });
});
