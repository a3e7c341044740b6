// The OpenCL device on a real driver: its names, memory in pieces, times, waiting, and what it says when
// something fails.

import {
  Buffer,
  BufferCopy,
  CompileError,
  Device,
  DeviceError,
  dtypes,
  Tensor,
  TinyJit,
  withEnv,
} from "gradloom";
import { describe, expect, test } from "vitest";
import { sourceOf } from "../../../src/codegen/target.ts";
import { openApi } from "../../../src/devices/opencl/api.ts";
import type { OpenClDevice } from "../../../src/devices/opencl/device.ts";
import { openKoffi } from "../../../src/host/koffi.ts";
import { openWith, whyClosed } from "./open.ts";

const closed = await whyClosed();
const on = { device: "OPENCL" };
const device = () => Device.get("OPENCL") as unknown as OpenClDevice;

test("a machine without OpenCL says what to install", async () => {
  const koffi = await openKoffi("OPENCL");
  expect(() => openApi(koffi, "OPENCL", ["libNoSuchOpenCL.so.1"])).toThrow(
    /^OPENCL: cannot load libNoSuchOpenCL.so.1 \(.*\); install the loader and a driver: on Debian ocl-icd/,
  );
});

describe("a device", () => {
  test("is GPU by its old name, and the next one has a number", async ({ skip }) => {
    skip(closed !== undefined, closed);
    expect((await Tensor.ones(3, { device: "gpu" }).realize()).device).toBe("OPENCL");
    await expect(Device.open("OPENCL:7")).rejects.toThrow(
      /^OPENCL:7: there is no such OpenCL device; this machine has (one, OPENCL|\d+, OPENCL to OPENCL:\d)$/,
    );
  });
  test("computes a training step as WASM does", async ({ skip }) => {
    skip(closed !== undefined, closed);
    const losses = async (name: string): Promise<number[]> => {
      const [x, y] = [Tensor.arange(60).reshape(12, 5).sin(), Tensor.arange(12).cos()];
      const w = await Tensor.linspace(-1, 1, 5).to(name).contiguous().realize();
      w.requiresGrad = true;
      const [xs, ys] = [await x.to(name).realize(), await y.to(name).realize()];
      const step = new TinyJit(async () => {
        const loss = xs.mul(w).sum(1).sub(ys).square().mean();
        loss.backward();
        await w.assign(w.detach().sub((w.grad as Tensor).mul(0.1))).realize();
        w.grad = undefined;
        return loss.realize();
      });
      const all: number[] = [];
      for (let i = 0; i < 6; i++) all.push(Number(await (await step()).item()));
      return all;
    };
    const [ours, expected] = [await losses("OPENCL"), await losses("WASM")];
    for (const [i, v] of ours.entries()) expect(v).toBeCloseTo(expected[i] as number, 5);
    expect(ours[5]).toBeLessThan((ours[0] as number) / 2);
  });
  test("the event loop goes on while it computes, and a sync read waits", async ({ skip }) => {
    skip(closed !== undefined, closed);
    const a = await Tensor.ones(1024, 1024, on).realize();
    await a.matmul(a).realize();
    let ticks = 0;
    const timer = setInterval(() => ticks++, 1);
    const products = Array.from({ length: 12 }, () => a.matmul(a));
    await Promise.all(products.map((p) => p.sum().item()));
    clearInterval(timer);
    expect(ticks).toBeGreaterThan(3);
    expect(a.matmul(a).mean().dataSync()[0]).toBe(1024);
  });
  test("kernels are timed by the queue's clock", async ({ skip }) => {
    skip(closed !== undefined, closed);
    const a = await Tensor.ones(512, 512, on).realize();
    const lines: string[] = [];
    const { log } = console;
    console.log = (line: string) => lines.push(line);
    try {
      await withEnv({ DEBUG: 2 }, () => a.matmul(a).realize());
    } finally {
      console.log = log;
    }
    const micros = Number(/OPENCL.*tm +([\d.]+)us/.exec(lines.join("\n"))?.[1]);
    expect(micros).toBeGreaterThan(20);
    expect(await (await withEnv({ PROFILE: 1 }, () => a.add(1).realize())).mean().item()).toBe(2);
  });
});

describe("memory", () => {
  test("a piece of a buffer is an operand where the device lets it start", async ({ skip }) => {
    skip(closed !== undefined, closed);
    const { offsetAlign } = device().allocator;
    const base = new Buffer("OPENCL", 1024, dtypes.float32).allocate();
    await base.copyin(new Uint8Array(Float32Array.from({ length: 1024 }, (_, i) => i).buffer));
    const read = async (b: Buffer) => [...new Float32Array((await b.data()).buffer)].slice(0, 2);
    const at = (offset: number) => new Buffer("OPENCL", 2, dtypes.float32, base, offset);
    expect(await read(at(offsetAlign))).toEqual([offsetAlign / 4, offsetAlign / 4 + 1]);
    expect(await read(at(12))).toEqual([3, 4]);
    const whole = new Buffer("OPENCL", 2, dtypes.float32).allocate();
    new BufferCopy().exec([whole, at(20)]);
    expect(await read(whole)).toEqual([5, 6]);
    const program = device().compile(
      "twice",
      sourceOf("__kernel void twice(__global float* a) { for (int i = 0; i < 2; i++) a[i] *= 2; }", {
        buffers: 1,
      }),
    );
    const launch = { globalSize: [1], localSize: [1], vals: [] };
    await program.run([at(offsetAlign).handle as never], launch, false);
    expect(await read(at(offsetAlign))).toEqual([offsetAlign / 2, offsetAlign / 2 + 2]);
    expect(() => program.run([at(12).handle as never], launch, false)).toThrow(
      /twice takes a buffer that starts at byte 12 of another; this device takes multiples of \d+\. Copy it/,
    );
  });
  test("what has no room is refused by number", async ({ skip }) => {
    skip(closed !== undefined, closed);
    expect(() => new Buffer("OPENCL", 2 ** 40, dtypes.uint8).allocate()).toThrow(
      /^OPENCL: no room for 1048576\.0 MiB in one piece: a buffer of this device has up to [\d.]+ MiB/,
    );
  });
  test("a driver without memory is named, and the next allocation may have some", async ({ skip }) => {
    skip(closed !== undefined, closed);
    let isFull = false;
    const name = await openWith("FULLCL", (api) => ({
      clCreateBuffer: (...args) => {
        if (!isFull) return api.clCreateBuffer(...args);
        (args[4] as Int32Array)[0] = -4;
        return 0n;
      },
    }));
    const a = await Tensor.ones(8, { device: name }).realize();
    isFull = true;
    await expect(Tensor.zeros(999, { device: name }).contiguous().realize()).rejects.toThrow(
      /^FULLCL: no room for .* drop tensors first, or split this one/,
    );
    isFull = false;
    expect(await a.add(1).contiguous().sum().item()).toBe(16);
  });
});

test("a sync upload is done once, although the queue was busy", async ({ skip }) => {
  skip(closed !== undefined, closed);
  const a = await Tensor.ones(1024, 1024, on).realize();
  await a.matmul(a).realize();
  await a.matmul(a).realize();
  const u = new Tensor([5, 5, 5, 5], { ...on, dtype: "float32" });
  u.realizeSync();
  u.assign(Tensor.full([4], 9, { ...on, dtype: "float32" })).realizeSync();
  expect([...u.dataSync()]).toEqual([9, 9, 9, 9]);
  await new Promise((next) => setTimeout(next, 100));
  expect(await u.tolist()).toEqual([9, 9, 9, 9]);
});

describe("failures", () => {
  test("a text that is refused comes with the driver's reasons", async ({ skip }) => {
    skip(closed !== undefined, closed);
    const compile = () => device().compile("k", sourceOf("__kernel void k() { nonsense; }", { buffers: 0 }));
    expect(compile).toThrow(CompileError);
    expect(compile).toThrow(/does not build kernel k: CL_BUILD_PROGRAM_FAILURE[\s\S]*nonsense[\s\S]*source:/);
  });
  test("a launch that is refused names the kernel and the sizes", async ({ skip }) => {
    skip(closed !== undefined, closed);
    const program = device().compile("k", sourceOf("__kernel void k() {}", { buffers: 0 }));
    const launch = { globalSize: [1], localSize: [1 << 20], vals: [] };
    const run = () => program.run([], launch, false);
    expect(run).toThrow(DeviceError);
    expect(run).toThrow(/launching k \(1048576 × 1 × 1 threads in groups of 1048576 × 1 × 1, at most \d+\)/);
  });
  test("a wait that fails names the last kernels", async ({ skip }) => {
    skip(closed !== undefined, closed);
    let fails = false;
    const name = await openWith("FAILCL", (api) => ({
      clGetEventInfo: (...args) => {
        const status = api.clGetEventInfo(...args);
        if (fails) (args[3] as Int32Array)[0] = -5;
        return status;
      },
    }));
    const a = await Tensor.ones(64, { device: name }).realize();
    fails = true;
    await expect(a.add(1).data()).rejects.toThrow(
      /^FAILCL: a kernel failed: CL_OUT_OF_RESOURCES; the last kernels were E_/,
    );
  });
});
