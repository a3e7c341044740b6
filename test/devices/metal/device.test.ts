// The METAL device on the fake runtime, which stops at what Metal's validation would stop at: values, memory,
// transfers, errors with the names of kernels, waiting, times, and that nothing is left behind. Kernels here
// are those that an Apple GPU's figures choose.

import { Device, dtypes, Tensor } from "gradloom";
import { beforeAll, describe, expect, test } from "vitest";
import { sourceOf } from "../../../src/codegen/target.ts";
import type { MetalDevice } from "../../../src/devices/metal/device.ts";
import type { MetalBlock } from "../../../src/devices/metal/memory.ts";
import { open } from "../../../src/devices/metal.ts";
import { withEnv } from "../../../src/env.ts";
import { OutOfMemoryError } from "../../../src/errors.ts";
import { profiler } from "../../../src/runtime/profiling.ts";
import { runProgram } from "../../device/program.ts";
import { collect } from "../../runtime/gc.ts";
import { scaleUops } from "../../runtime/hcq/kernels.ts";
import { FakeError } from "./fake.ts";
import { fakeMetal, installFake } from "./setup.ts";

const compile = (device: MetalDevice, name = "scale_0") =>
  device.compile(name, device.renderer.render(name, scaleUops(3, 1)) as ReturnType<typeof sourceOf<string>>);
async function ints(device: MetalDevice, values: readonly number[]): Promise<MetalBlock> {
  const block = device.allocator.alloc(4 * values.length);
  await device.allocator.copyin(block, new Uint8Array(Int32Array.from(values).buffer));
  return block;
}
async function read(device: MetalDevice, block: MetalBlock, count: number): Promise<number[]> {
  const bytes = new Uint8Array(4 * count);
  await device.allocator.copyout(bytes, block);
  return [...new Int32Array(bytes.buffer)];
}
const four = { globalSize: [4], localSize: [], vals: [] };

test("elsewhere than on macOS the error says so, and names WEBGPU", async ({ skip }) => {
  skip(process.platform === "darwin", "this is macOS");
  await expect(open("METAL")).rejects.toThrow(
    /METAL: Metal is part of macOS, and this is \w+; WEBGPU runs on/,
  );
});

describe("a kernel", () => {
  test("its messages", async () => {
    const { metal, open: openFake } = fakeMetal();
    const device = openFake();
    const [a, b] = [await ints(device, [1, 2, 3, 4]), device.allocator.alloc(16)];
    metal.runtime.log = [];
    const program = compile(device);
    program.run([b, a], four, false);
    expect(metal.runtime.log.map((x) => x.replace(/"#include.*"/, '"…"'))).toMatchInlineSnapshot(`
      [
        "MTLCompileOptions class#1 new -> MTLCompileOptions#1",
        "MTLCompileOptions#1 setFastMathEnabled:false",
        "MTLCompileOptions#1 setLanguageVersion:196608",
        "MTLDevice#1 newLibraryWithSource:"…" options:MTLCompileOptions#1 error:[nil] -> MTLLibrary#1",
        "MTLLibrary#1 newFunctionWithName:"scale_0" -> MTLFunction#1",
        "MTLComputePipelineDescriptor class#1 new -> MTLComputePipelineDescriptor#1",
        "MTLComputePipelineDescriptor#1 setComputeFunction:MTLFunction#1",
        "MTLComputePipelineDescriptor#1 setSupportIndirectCommandBuffers:true",
        "MTLDevice#1 newComputePipelineStateWithDescriptor:MTLComputePipelineDescriptor#1 options:0 reflection:nil error:[nil] -> MTLComputePipelineState#1",
        "MTLComputePipelineState#1 maxTotalThreadsPerThreadgroup",
        "MTLCommandQueue#1 commandBuffer -> MTLCommandBuffer#1",
        "MTLCommandBuffer#1 setLabel:"scale_0"",
        "MTLCommandBuffer#1 computeCommandEncoder -> MTLComputeCommandEncoder#1",
        "MTLComputeCommandEncoder#1 setComputePipelineState:MTLComputePipelineState#1",
        "MTLComputeCommandEncoder#1 setBuffer:MTLBuffer#2 offset:0 atIndex:0",
        "MTLComputeCommandEncoder#1 setBuffer:MTLBuffer#1 offset:0 atIndex:1",
        "MTLComputeCommandEncoder#1 dispatchThreadgroups:(4 1 1) threadsPerThreadgroup:(1 1 1)",
        "MTLComputeCommandEncoder#1 endEncoding",
        "MTLCommandBuffer#1 commit",
      ]
    `);
    expect(await read(device, b, 4)).toEqual([4, 7, 10, 13]);
  });
  test("waiting for one gives the seconds that it took, by the GPU's clock", async () => {
    const device = fakeMetal().open();
    const [a, b] = [await ints(device, [1, 2, 3, 4]), device.allocator.alloc(16)];
    expect(await compile(device).run([b, a], four, true)).toBeCloseTo(0.001, 9);
  });
  test("one that fails is named, with its source; the device goes on", async () => {
    const { metal, open: openFake } = fakeMetal();
    const device = openFake();
    const bad = device.compile("E_9", metal.kernels.failing("E_9"));
    const [a, b] = [await ints(device, [1, 2, 3, 4]), device.allocator.alloc(16)];
    bad.run([a], four, false);
    await expect(async () => device.synchronize()).rejects.toThrow(
      /METAL: the GPU failed in kernel E_9: Caused GPU Address Fault Error.*source:\nkernel void E_9/s,
    );
    compile(device).run([b, a], four, false);
    expect(await read(device, b, 4)).toEqual([4, 7, 10, 13]);
  });
  test("a text that is refused, a threadgroup that is too large, too many arguments", () => {
    const device = fakeMetal({ threads: 64 }).open();
    expect(() => device.compile("E_1", sourceOf("kernel void E_1() { nonsense }"))).toThrow(
      /METAL: Metal does not compile kernel E_1: program_source:1: error: nobody rendered this\nsource:\nkernel/,
    );
    const program = compile(device);
    const blocks = [device.allocator.alloc(16), device.allocator.alloc(16)];
    expect(() => program.run(blocks, { globalSize: [1], localSize: [32, 4], vals: [] }, false)).toThrow(
      /a threadgroup of scale_0 has 32 × 4 threads, and this GPU has room for 64/,
    );
    expect(() => device.compile("E_2", sourceOf("", { buffers: 30, vals: 2 }))).toThrow(
      /E_2 takes 30 buffers and 2 variables, and Metal 31 arguments/,
    );
  });
  test("the host never stops at a full queue: it waits for the oldest", async () => {
    const device = fakeMetal().open();
    const [a, b] = [await ints(device, [1, 2, 3, 4]), device.allocator.alloc(16)];
    const program = compile(device);
    for (let i = 0; i < 700; i++) program.run(i % 2 === 0 ? [b, a] : [a, b], four, false);
    expect(program.room()).toBeUndefined();
    device.context.block();
    expect(device.context.isDone(700)).toBe(true);
  });
});

describe("memory", () => {
  test("what no command had is written at once; what one had, after it", async () => {
    const { metal, open: openFake } = fakeMetal();
    const device = openFake();
    const [a, b] = [await ints(device, [1, 2, 3, 4]), device.allocator.alloc(16)];
    compile(device).run([b, a], four, false);
    const c = device.allocator.alloc(16);
    expect(device.allocator.copyin(c, new Uint8Array(16))).toBeUndefined();
    expect(metal.ran).toEqual([]);
    device.allocator.copyin(a, new Uint8Array(16));
    expect(metal.ran).toEqual(["scale_0"]);
    expect(device.allocator.view(b, 4)?.[0]).toBe(4);
    expect(device.allocator.view(device.allocator.offset(b, 4, 4), 1)?.[0]).toBe(7);
  });
  test("no room: freed memory that was still in use is given back first", () => {
    const device = fakeMetal({ total: 4096, maxBufferLength: 8192 }).open();
    const [a, b] = [device.allocator.alloc(2048), device.allocator.alloc(1024)];
    compile(device).run([b, a], { ...four, globalSize: [1] }, false);
    device.allocator.free(a);
    device.allocator.alloc(3072);
    expect(() => device.allocator.alloc(64)).toThrow(OutOfMemoryError);
    expect(() => device.allocator.alloc(64)).toThrow(/no room for 0\.0 MiB in one piece: drop tensors/);
    expect(() => device.allocator.alloc(10_000)).toThrow(/a buffer of this GPU has up to 0\.0 MiB/);
  });
  test("copies between queues: blits in fours, and a kernel for other bytes", async () => {
    const { metal, open: openFake } = fakeMetal();
    const [one, two] = [openFake("METAL"), openFake("METAL:1")];
    expect(one.space).toBe(two.space);
    const from = await ints(one, [1, 2, 3, 4]);
    const to = two.allocator.alloc(16);
    metal.runtime.log = [];
    two.allocator.transfer(to, from, 16);
    expect(metal.runtime.log).toMatchInlineSnapshot(`
      [
        "MTLCommandQueue#1 commandBuffer -> MTLCommandBuffer#1",
        "MTLCommandBuffer#1 setLabel:"signal"",
        "MTLCommandBuffer#1 encodeSignalEvent:MTLSharedEvent#1 value:1",
        "MTLCommandBuffer#1 commit",
        "MTLCommandQueue#2 commandBuffer -> MTLCommandBuffer#2",
        "MTLCommandBuffer#2 setLabel:"wait for METAL"",
        "MTLCommandBuffer#2 encodeWaitForEvent:MTLSharedEvent#1 value:1",
        "MTLCommandBuffer#2 commit",
        "MTLCommandQueue#2 commandBuffer -> MTLCommandBuffer#3",
        "MTLCommandBuffer#3 setLabel:"METAL:1 <- METAL"",
        "MTLCommandBuffer#3 blitCommandEncoder -> MTLBlitCommandEncoder#1",
        "MTLBlitCommandEncoder#1 copyFromBuffer:MTLBuffer#1 sourceOffset:0 toBuffer:MTLBuffer#2 destinationOffset:0 size:16",
        "MTLBlitCommandEncoder#1 endEncoding",
        "MTLCommandBuffer#3 commit",
        "MTLCommandQueue#2 commandBuffer -> MTLCommandBuffer#4",
        "MTLCommandBuffer#4 setLabel:"signal"",
        "MTLCommandBuffer#4 encodeSignalEvent:MTLSharedEvent#2 value:1",
        "MTLCommandBuffer#4 commit",
        "MTLCommandQueue#1 commandBuffer -> MTLCommandBuffer#5",
        "MTLCommandBuffer#5 setLabel:"wait for METAL:1"",
        "MTLCommandBuffer#5 encodeWaitForEvent:MTLSharedEvent#2 value:1",
        "MTLCommandBuffer#5 commit",
      ]
    `);
    metal.runtime.log = undefined;
    expect(await read(two, to, 4)).toEqual([1, 2, 3, 4]);
    two.allocator.transfer(two.allocator.offset(to, 3, 5), one.allocator.offset(from, 3, 4), 3);
    expect(await read(two, to, 4)).toEqual([1, 2 + 2 * 256, 3, 4]);
    expect(metal.ran).toEqual(["copy_bytes"]);
    // three bytes of a whole buffer: what follows them is nobody's
    const [small, other] = [one.allocator.alloc(3), two.allocator.alloc(3)];
    await one.allocator.copyin(small, Uint8Array.of(7, 8, 9));
    two.allocator.transfer(other, small, 3);
    const bytes = new Uint8Array(3);
    await two.allocator.copyout(bytes, other);
    expect([...bytes]).toEqual([7, 8, 9]);
    expect(metal.ran).toEqual(["copy_bytes"]);
  });
});

test("GPUs: METAL:1 is the second, and where there is one, another queue of it", () => {
  const two = fakeMetal({ gpus: 2 });
  expect(two.open("METAL").space).not.toBe(two.open("METAL:1").space);
  expect(() => two.open("METAL:x")).toThrow(/expected the number of a GPU after the colon/);
  const none = fakeMetal({ gpus: 0 });
  expect(() => none.open()).toThrow(/METAL: this Mac has no GPU that Metal can use/);
});
test("what a GPU says decides: shuffles, tensor cores, graphs", () => {
  const of = (families: number[]) => {
    const { renderer, graph, needsPipelines } = fakeMetal({ families }).open();
    return [renderer.gpu?.warp, renderer.gpu?.tensorCores.length, graph !== undefined, needsPipelines];
  };
  expect(of([1007])).toEqual([32, 2, true, true]);
  expect(of([1007, 1008, 1009])).toEqual([32, 2, true, false]);
  expect(of([2002])).toEqual([1, 0, true, false]);
  expect(of([])).toEqual([1, 0, false, false]);
});

test("nothing is left behind: programs, command buffers, encoders, strings, memory", async () => {
  const { metal, open: openFake } = fakeMetal();
  const device = openFake();
  const before = metal.runtime.alive;
  async function use() {
    const program = compile(device);
    const [a, b] = [await ints(device, [1, 2, 3, 4]), device.allocator.alloc(16)];
    for (let i = 0; i < 20; i++) program.run([b, a], four, false);
    await program.run([b, a], four, true);
    expect(() => device.compile("E_1", sourceOf("nonsense"))).toThrow();
    await read(device, b, 4);
    for (const x of [a, b]) device.allocator.free(x);
  }
  await use();
  await collect();
  await device.synchronize();
  expect(metal.runtime.alive).toEqual(before);
});

describe("the fake", () => {
  const { metal, open: openFake } = fakeMetal();
  const device = openFake();
  const { runtime } = metal;
  const fault = (body: () => unknown): void => expect(body).toThrow(FakeError);
  const { id } = device.context.gpu;
  const inPool = (body: (commands: bigint) => void): void =>
    runtime.pool(() => {
      const queue = runtime.send(id, "newCommandQueueWithMaxCommandBufferCount:", 4);
      body(runtime.send(queue, "commandBuffer"));
    });
  const buffer = runtime.send(id, "newBufferWithLength:options:", 64, 0);

  test("stops at messages to nobody and with other arguments", () => {
    fault(() => runtime.send(0n, "retain"));
    fault(() => runtime.send(12n, "retain"));
    fault(() => runtime.send(buffer, "commit"));
    fault(() => runtime.send(id, "newBufferWithLength:options:", 64, undefined as never));
    fault(() => runtime.send(id, "newBufferWithLength:options:", 64.5, 0));
    fault(() => runtime.string("outside of a pool"));
    const gone = runtime.send(id, "newSharedEvent");
    runtime.send(gone, "release");
    fault(() => runtime.send(gone, "release"));
  });
  test("stops at encoders that are open or ended, at a second commit, at ranges", () => {
    inPool((commands) => {
      const blit = runtime.send(commands, "blitCommandEncoder");
      fault(() => runtime.send(commands, "commit"));
      fault(() => runtime.send(commands, "computeCommandEncoder"));
      const copy = "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:";
      fault(() => runtime.send(blit, copy, buffer, 0, buffer, 32, 64));
      fault(() => runtime.send(blit, copy, buffer, 0, buffer, 2, 4));
      runtime.send(blit, "endEncoding");
      fault(() => runtime.send(blit, "endEncoding"));
      fault(() => runtime.send(blit, copy, buffer, 0, buffer, 32, 16));
      const compute = runtime.send(commands, "computeCommandEncoder");
      fault(() => runtime.send(compute, "setBuffer:offset:atIndex:", buffer, 64, 0));
      const one = { width: 1, height: 1, depth: 1 };
      fault(() => runtime.send(compute, "dispatchThreadgroups:threadsPerThreadgroup:", one, one));
      runtime.send(compute, "endEncoding");
      runtime.send(commands, "commit");
      fault(() => runtime.send(commands, "commit"));
    });
    fault(() => inPool((commands) => runtime.send(commands, "blitCommandEncoder")));
  });
});

describe("as a device of this process", () => {
  const fake = installFake();
  beforeAll(async () => {
    await Device.open("METAL");
    await Device.open("METAL:1");
  });

  test("tensors compute", async () => {
    const a = Tensor.arange(256, { device: "METAL" }).reshape(16, 16).cast(dtypes.float32);
    const at = (i: number, k: number) => 16 * i + k;
    const row = Array.from({ length: 16 }, (_, j) =>
      Array.from({ length: 16 }, (_, k) => at(1, k) * at(k, j)).reduce((x, y) => x + y),
    );
    expect(((await a.matmul(a).tolist()) as number[][])[1]).toEqual(row);
  });
  test("random programs give what plain arrays give", async () => {
    for (let seed = 1; seed <= 12; seed++) await runProgram(seed, "METAL", 6 + seed);
  });
  test("tensors move between queues, and each waits for the other", async () => {
    const a = Tensor.arange(100, { device: "METAL" }).mul(3);
    const b = a.to("METAL:1").add(1);
    expect(await b.to("METAL").sub(a).sum().item()).toBe(100);
  });
  test("reading blocks where the caller cannot wait", () => {
    expect(new Tensor([1, 2, 3], { device: "METAL" }).mul(2).sum().dataSync()[0]).toBe(12);
  });
  test("PROFILE=1 notes each kernel once, on the GPU's clock", async () => {
    profiler.reset();
    await withEnv({ PROFILE: 1 }, async () => {
      const a = new Tensor([1, 2, 3, 4, 5], { device: "METAL" });
      await a.mul(2).contiguous().add(1).to("METAL:1").mul(7).data();
    });
    const kernels = profiler.spans.filter((s) => s.kind === "kernel");
    expect(kernels.map((s) => s.device).sort()).toEqual(["METAL", "METAL", "METAL:1"]);
    for (const s of kernels) expect(s.end - s.start).toBeCloseTo(1000, 0);
    const copies = profiler.spans.filter((s) => s.kind === "copy" && s.device !== "host");
    expect(copies.map((s) => `${s.device} ${s.track}: ${s.name}`)).toEqual([
      "METAL:1 copy: METAL:1 <- METAL",
    ]);
    expect(fake.metal.ran.length).toBeGreaterThan(3);
    profiler.reset();
  });
});
