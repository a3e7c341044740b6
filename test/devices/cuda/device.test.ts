// The CUDA device on the fake driver: opening, memory, copies through the pinned ring, launches, waiting,
// what it says when something fails. Values are computed by the JS device from the uops of the same kernels.

import { Device, DeviceError, dtypes, OutOfMemoryError, Tensor, withEnv } from "gradloom";
import { beforeAll, describe, expect, test } from "vitest";
import type { Source } from "../../../src/codegen/target.ts";
import type { CudaDevice } from "../../../src/devices/cuda/device.ts";
import { openDriver } from "../../../src/devices/cuda/driver.ts";
import type { CudaBlock } from "../../../src/devices/cuda/memory.ts";
import { LaunchArguments } from "../../../src/devices/cuda/program.ts";
import { CHUNK } from "../../../src/devices/cuda/staging.ts";
import { runSync } from "../../../src/helpers.ts";
import { openKoffi } from "../../../src/host/koffi.ts";
import { type GraphItem, HOST_SLACK } from "../../../src/runtime/device.ts";
import { profiler } from "../../../src/runtime/profiling.ts";
import { runProgram } from "../../device/program.ts";
import { collect } from "../../runtime/gc.ts";
import { callsOf, fakeCuda, installFake } from "./setup.ts";

const MIB = 2 ** 20;
function bytesOf(n: number, seed: number): Uint8Array {
  const bytes = new Uint8Array(n);
  for (let i = 0; i < n; i++) bytes[i] = i * 31 + seed + (i >> 13);
  return bytes;
}

describe("opening", () => {
  test("without a driver the error says what to install", async () => {
    const koffi = await openKoffi("CUDA");
    const open = () => openDriver(koffi, "CUDA:1", ["libcuda-that-is-not-here.so.1"]);
    expect(open).toThrow(DeviceError);
    expect(open).toThrow(
      /^CUDA:1: cannot load libcuda-that-is-not-here\.so\.1.*install the driver.*--gpus all/s,
    );
  });
  test("a library that lacks a function is a driver that is too old", async () => {
    const koffi = await openKoffi("CUDA");
    expect(() => openDriver(koffi, "CUDA", ["libc.so.6"])).toThrow(/lacks a function.*470 or later/);
  });
  test("no GPU, and a number that is too high", () => {
    expect(() => fakeCuda({ gpus: 0 }).open()).toThrow(/finds no GPU; is it visible/);
    expect(() => fakeCuda().open("CUDA:3")).toThrow(
      "CUDA:3: there is no such GPU; this machine has one GPU, CUDA",
    );
    expect(() => fakeCuda({ gpus: 2 }).open("CUDA:2")).toThrow(/has 2 GPUs, CUDA to CUDA:1/);
    expect(() => fakeCuda().open("CUDA:first")).toThrow(/expected the number of a GPU/);
  });
  test("a driver that does not start is quoted", () => {
    const fake = fakeCuda();
    fake.state.failing.set("cuInit", 1);
    expect(() => fake.open()).toThrow(/does not start: CUDA_ERROR_INVALID_VALUE, invalid argument/);
  });
  test("the architecture and the number of its units come from the GPU", () => {
    const device = fakeCuda({ arch: 89 }).open();
    expect([device.context.arch, device.renderer.gpu?.computeUnits, device.renderer.sharedMax]).toEqual([
      89, 76, 101_376,
    ]);
    // the compiler knows 80 and 90: what is PTX of 80 for it has no products of 8 bits
    const types = (d: CudaDevice) => d.renderer.gpu?.tensorCores.map((c) => c.from.itemsize);
    expect(types(device)).not.toContain(1);
    expect(types(fakeCuda().open())).toContain(1);
  });
});

describe("memory", () => {
  test("is zeroed when asked, freed in the order of the stream, and nothing stays", async () => {
    for (const pools of [true, false]) {
      const { state, open } = fakeCuda({ pools });
      const device = open();
      const before = state.memory.size;
      const block = device.allocator.alloc(1000, true);
      state.bytesAt(block.address, "test").fill(7);
      await device.synchronize();
      const read = new Uint8Array(1000).fill(1);
      await device.allocator.copyout(read, block);
      expect(read.every((x) => x === 0)).toBe(true);
      device.allocator.free(block);
      await device.synchronize();
      // the pinned ring stays
      expect(state.memory.size).toBe(before + 1);
    }
  });
  test("dropped tensors may hold an eighth of it before the collector is pushed", () => {
    expect(fakeCuda({ total: 2 ** 35 }).open().allocator.slack).toBe(2 ** 32);
    expect(fakeCuda({ total: 2 ** 28 }).open().allocator.slack).toBe(HOST_SLACK);
  });
  test("when it is full, what the pool keeps is given up; then the error has figures", async () => {
    const { state, open } = fakeCuda({ total: 8 * MIB });
    const device = open();
    const first = device.allocator.alloc(5 * MIB, false);
    device.allocator.free(first);
    await device.synchronize();
    expect(state.kept).toBe(5 * MIB);
    const second = device.allocator.alloc(6 * MIB, false);
    expect(state.kept).toBe(0);
    const more = () => device.allocator.alloc(3 * MIB, false);
    expect(more).toThrow(OutOfMemoryError);
    expect(more).toThrow("CUDA: no room for 3.0 MiB: 2.0 MiB of 8.0 MiB are free on this GPU");
    device.allocator.free(second);
    expect(more).not.toThrow();
  });
  test("another failure of the driver is not taken for a lack of memory", () => {
    const { state, open } = fakeCuda();
    const device = open();
    state.failing.set("cuMemAllocAsync", 1);
    const alloc = () => device.allocator.alloc(MIB, false);
    expect(alloc).toThrow("CUDA: allocating 1.0 MiB: CUDA_ERROR_INVALID_VALUE, invalid argument");
    expect(alloc).not.toThrow();
  });
});

describe("copies", () => {
  const sizes = [1, 255, 4096, CHUNK - 1, CHUNK, CHUNK + 1, 5 * CHUNK + 77, 20 * CHUNK + 3];

  test("arrive whole, whatever their size, in and out", async () => {
    const { open } = fakeCuda();
    const device = open();
    for (const n of sizes) {
      const src = bytesOf(n, n);
      const block = device.allocator.alloc(n, false);
      await device.allocator.copyin(block, src);
      const dest = new Uint8Array(n);
      await device.allocator.copyout(dest, block);
      expect(Buffer.compare(dest, src), `${n} bytes`).toBe(0);
      device.allocator.free(block);
    }
  });
  test("a small one does not wait, and the source may change at once", async () => {
    const { state, open } = fakeCuda();
    const device = open();
    const src = bytesOf(1000, 1);
    const block = device.allocator.alloc(1000, false);
    callsOf(state);
    expect(device.allocator.copyin(block, src)).toBeUndefined();
    const { cuStreamQuery, cuStreamSynchronize, cuEventSynchronize } = callsOf(state);
    expect([cuStreamQuery, cuStreamSynchronize, cuEventSynchronize]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    src.fill(0);
    const dest = new Uint8Array(1000);
    await device.allocator.copyout(dest, block);
    expect([...dest]).toEqual([...bytesOf(1000, 1)]);
  });
  test("many small ones in a row reuse the ring without a mistake", async () => {
    const { open } = fakeCuda();
    const device = open();
    const n = 300_000;
    const blocks = Array.from({ length: 100 }, (_, i) => {
      const block = device.allocator.alloc(n, false);
      return { block, src: bytesOf(n, i) };
    });
    for (const { block, src } of blocks) await device.allocator.copyin(block, src);
    for (const { block, src } of blocks) {
      const dest = new Uint8Array(n);
      await device.allocator.copyout(dest, block);
      expect(Buffer.compare(dest, src)).toBe(0);
    }
  });
  test("a large one overlaps: chunks are asked for before the first has come", async () => {
    const { state, open } = fakeCuda();
    const device = open();
    const block = device.allocator.alloc(8 * CHUNK, true);
    await device.synchronize();
    callsOf(state);
    await device.allocator.copyout(new Uint8Array(8 * CHUNK), block);
    const asked = state.calls.filter((c) => ["cuMemcpyDtoHAsync_v2", "cuEventSynchronize"].includes(c));
    expect(asked.slice(0, 5)).toEqual([...Array(4).fill("cuMemcpyDtoHAsync_v2"), "cuEventSynchronize"]);
  });
  test("between two GPUs, both streams in order", async () => {
    const { open } = fakeCuda({ gpus: 2 });
    const [a, b] = [open("CUDA"), open("CUDA:1")];
    const src = bytesOf(5000, 3);
    const from = a.allocator.alloc(5000, false);
    const to = b.allocator.alloc(5000, true);
    await a.allocator.copyin(from, src);
    b.allocator.transfer(to, from, 5000);
    a.allocator.free(from);
    const dest = new Uint8Array(5000);
    await b.allocator.copyout(dest, to);
    expect(Buffer.compare(dest, src)).toBe(0);
    const inside = b.allocator.alloc(1000, false);
    b.allocator.transfer(inside, b.allocator.offset(to, 1000, 2000), 1000);
    await b.allocator.copyout(dest.subarray(0, 1000), inside);
    expect(Buffer.compare(dest.subarray(0, 1000), src.subarray(2000, 3000))).toBe(0);
  });
});

describe("shared memory", () => {
  test("a kernel that takes more than it can declare gets it with each launch, and in a graph", async () => {
    const { kernels, open } = fakeCuda();
    const device = open();
    const block = device.allocator.alloc(64, false);
    const program = withEnv({ CACHE: "0" }, () => device.compile("E_6", kernels.idle("E_6", 90_000)));
    expect(program.shared).toBe(90_000);
    program.run([block], { globalSize: [1], localSize: [32], vals: [] }, false);
    const kernel = {
      kind: "kernel",
      device,
      program,
      args: [0],
      written: [0],
      globalSize: [1],
      localSize: [32],
    };
    const item = { ...kernel, vars: [], varVals: new Map(), work: 0 } as GraphItem;
    const graph = device.graph([item], [{ handle: block, root: block, from: 0, to: 64 }]);
    runSync(graph.run([], new Map()), "the graph");
    await device.synchronize();
    const small = withEnv({ CACHE: "0" }, () => device.compile("E_7", kernels.failing("E_7")));
    expect(small.shared).toBe(0);
  });
  test("more than the GPU has is refused, and the module goes", async () => {
    const { kernels, state, open } = fakeCuda();
    const device = open();
    state.failing.set("cuFuncSetAttribute", 1);
    const compile = () => withEnv({ CACHE: "0" }, () => device.compile("E_6", kernels.idle("E_6", 90_000)));
    expect(compile).toThrow(/cuFuncSetAttribute: CUDA_ERROR_INVALID_VALUE/);
    const modules = () => [...state.things.values()].filter((t) => t.kind === "module").length;
    expect(modules()).toBe(1);
    await collect();
    await device.synchronize();
    expect(modules()).toBe(0);
  });
});

test("arguments: more than there was room for, all of them arrive", () => {
  const { context } = fakeCuda().open();
  const args = new LaunchArguments(context);
  for (const n of [1, 700, 5, 2000]) {
    const handles = Array.from({ length: n }, (_, i) => ({ context, address: 2 ** 40 + i }));
    const { extra } = args.fill(handles, [7]);
    const block = new DataView(context.driver.memory.view(extra, 48 + 8 * n + 4), 48);
    for (let i = 0; i < n; i++) expect(block.getBigUint64(8 * i, true)).toBe(2n ** 40n + BigInt(i));
    expect(block.getInt32(8 * n, true)).toBe(7);
  }
});

describe("failures", () => {
  const launch = { globalSize: [1], localSize: [1], vals: [] };
  const compile = (device: CudaDevice, source: Source<string>, name: string) =>
    withEnv({ CACHE: "0" }, async () => device.compile(name, source));
  const run = async (device: CudaDevice, source: Source<string>, name: string, block: CudaBlock) =>
    (await compile(device, source, name)).run([block], launch, false);

  test("a kernel that fails is named when somebody waits, with its source; nothing goes on after it", async () => {
    const { kernels, open } = fakeCuda();
    const device = open();
    const block = device.allocator.alloc(64, false);
    await device.synchronize();
    await run(device, kernels.failing("E_9"), "E_9", block);
    const waiting = async () => device.synchronize();
    await expect(waiting()).rejects.toThrow(
      /^CUDA: a kernel failed: CUDA_ERROR_ILLEGAL_ADDRESS, an illegal memory access was encountered\. It was E_9\. .*start it again\.\nsource:\nextern "C" __global__ void E_9/s,
    );
    expect(() => device.allocator.alloc(64, false)).toThrow(/It was E_9/);
    expect(() => device.context.block()).toThrow(/It was E_9/);
    // finalisers call this
    expect(() => device.allocator.free(block)).not.toThrow();
  });
  test("of several that ran, the last are named", async () => {
    const { kernels, open } = fakeCuda();
    const device = open();
    const block = device.allocator.alloc(64, false);
    for (const name of ["E_1", "E_2", "E_3"]) await run(device, kernels.failing(name), name, block);
    expect(() => device.context.block()).toThrow(
      /one of these kernels: E_1, E_2, E_3; DEBUG=2 waits for each/,
    );
    const other = fakeCuda();
    const second = other.open();
    const memory = second.allocator.alloc(64, false);
    for (let i = 0; i < 20; i++) await run(second, other.kernels.failing(`E_${i}`), `E_${i}`, memory);
    expect(() => second.context.block()).toThrow(/the last 8 of 20 kernels: E_12, .*E_19;/);
  });
  test("a launch that is refused says its sizes", async () => {
    const { kernels, open } = fakeCuda();
    const device = open();
    const program = await compile(device, kernels.failing("E_7"), "E_7");
    const block = device.allocator.alloc(64, false);
    const big = { globalSize: [2, 70000], localSize: [1024, 2], vals: [] };
    expect(() => program.run([block], big, false)).toThrow(
      /launching E_7: CUDA_ERROR_INVALID_VALUE.*grid 2 × 70000, block 1024 × 2 \(at most 1024 threads\), 0 bytes of shared memory\nsource:/s,
    );
  });
  test("code that the driver does not take is a CompileError with the source", async () => {
    const { kernels, state, open } = fakeCuda();
    const device = open();
    state.failing.set("cuModuleLoadData", 200);
    await expect(compile(device, kernels.failing("E_8"), "E_8")).rejects.toThrow(
      /does not load the cubin of kernel E_8.*INVALID_IMAGE.*source:/s,
    );
  });
});

describe("as a device of this process", () => {
  const fake = installFake({ gpus: 2 });
  beforeAll(() => Device.open("CUDA"));

  test("tensors compute", async () => {
    const a = new Tensor(
      [
        [1, 2],
        [3, 4],
      ],
      { device: "CUDA" },
    );
    expect(await a.matmul(a).add(1).tolist()).toEqual([
      [8, 11],
      [16, 23],
    ]);
    expect(await a.cast(dtypes.float32).softmax(-1).sum().item()).toBeCloseTo(2, 6);
    expect(a.device).toBe("CUDA");
    expect(a.sum().dataSync()[0]).toBe(10);
  });
  test("random programs give what plain arrays give", async () => {
    for (let seed = 1; seed <= 12; seed++) await runProgram(seed, "CUDA", 6 + seed);
  });
  test("reduces whose items have one index in the workgroup: what JS gives, one loop after the other", async () => {
    const values = Array.from({ length: 250 }, (_, i) => ((i * 37) % 251) - 100);
    const pool = async (device: string) => {
      const t = new Tensor(values, { device, dtype: "float32" }).reshape(2, 1, 5, 5, 5);
      t.requiresGrad = true;
      const pooled = t.maxPool3d(3, { stride: 2 });
      pooled
        .mul(Tensor.arange(16, { device }).reshape(2, 1, 2, 2, 2))
        .sum()
        .backward();
      return [await pooled.tolist(), await (t.grad as Tensor).tolist()];
    };
    expect(await pool("CUDA")).toEqual(await withEnv({ NOOPT: 1 }, () => pool("JS")));
  });
  test("tensors move between GPUs", async () => {
    const a = Tensor.arange(100, { device: "CUDA" }).mul(3);
    const b = a.to("CUDA:1").add(1);
    expect(await b.to("CUDA").sub(a).sum().item()).toBe(100);
  });
  test("a kernel is timed by events: a millisecond on this driver's clock", async () => {
    const device = Device.get("CUDA") as CudaDevice;
    const lines: string[] = [];
    const log = console.log;
    console.log = (line: string) => void lines.push(line);
    try {
      await withEnv({ DEBUG: 2 }, () => new Tensor([1, 2, 3], { device: "CUDA" }).mul(2).realize());
    } finally {
      console.log = log;
    }
    expect(lines.find((l) => l.includes("E_3"))).toMatch(/tm +1000\.00us/);
    expect(device.keepsTime).toBe(true);
  });
  test("PROFILE=1 notes each kernel and transfer once, on the GPU's clock", async () => {
    profiler.reset();
    await withEnv({ PROFILE: 1 }, async () => {
      const a = new Tensor([1, 2, 3, 4, 5], { device: "CUDA" });
      await a.mul(2).contiguous().add(1).to("CUDA:1").mul(7).data();
    });
    const spans = profiler.spans.filter((s) => s.device.startsWith("CUDA"));
    expect(spans.filter((s) => s.kind === "kernel").map((s) => s.device)).toEqual(["CUDA", "CUDA", "CUDA:1"]);
    for (const s of spans.filter((x) => x.kind === "kernel")) expect(s.end - s.start).toBeCloseTo(1000, 0);
    const copies = spans.filter((s) => s.kind === "copy");
    expect(copies.map((s) => `${s.device} ${s.track}: ${s.name}`)).toEqual([
      "CUDA copy: CUDA <- host",
      "CUDA:1 copy: CUDA:1 <- CUDA",
      "CUDA:1 copy: host <- CUDA:1",
    ]);
    expect(fake.state.sticky).toBe(0);
    profiler.reset();
  });
});
