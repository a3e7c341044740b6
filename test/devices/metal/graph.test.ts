// Indirect command buffers behind TinyJit, on the fake runtime, which executes kernels between two barriers
// in a random order and late: values are right whatever the order, only what changed is encoded, nothing that
// the GPU may be reading is changed, and nothing is left behind.

import { Device, Tensor, TinyJit, Variable, withEnv } from "gradloom";
import { beforeAll, describe, expect, test } from "vitest";
import type { GraphItem, GraphSlot } from "../../../src/runtime/device.ts";
import { profiler } from "../../../src/runtime/profiling.ts";
import { collect } from "../../runtime/gc.ts";
import { scaleUops } from "../../runtime/hcq/kernels.ts";
import { FakeError } from "./fake.ts";
import { fakeMetal, installFake } from "./setup.ts";

const fake = installFake();
const { runtime } = fake.metal;
beforeAll(async () => {
  await Device.open("METAL");
  await Device.open("METAL:1");
});

const on = (values: number[], device = "METAL") => new Tensor(values, { device });
const ready = (values: number[], device = "METAL") => on(values, device).realize();
/** The messages that a step sends. */
async function messagesOf(step: () => Promise<unknown>): Promise<string[]> {
  await Device.get("METAL").synchronize();
  runtime.log = [];
  await step();
  const { log } = runtime;
  runtime.log = undefined;
  return log;
}
const count = (log: readonly string[], what: string): number => log.filter((x) => x.includes(what)).length;

const chain = () =>
  new TinyJit(async (x: Tensor) => {
    let y = x;
    for (let i = 0; i < 10; i++) y = y.mul(2).sub(1).contiguous();
    return y.realize();
  });

test("a replay is one command buffer; the memory of the first and the last kernel changes", async () => {
  const step = chain();
  for (let i = 0; i < 3; i++) await step(await ready([1, 2, 3]));
  const x = await ready([5, 0, -1]);
  const log = await messagesOf(() => step(x));
  expect([count(log, "executeCommandsInBuffer"), count(log, " commit")]).toEqual([1, 1]);
  expect(count(log, "setKernelBuffer")).toBeLessThanOrEqual(2);
  expect(await (await step(x)).tolist()).toEqual([4097, -1023, -2047]);
});

test("replays that are not waited for keep what they were given", async () => {
  const step = chain();
  for (let i = 0; i < 3; i++) await step(await ready([i]));
  const inputs = await Promise.all([3, 4, 5, 6, 7, 8, 9, 10].map((i) => ready([i])));
  const outs: Tensor[] = [];
  for (const x of inputs) outs.push((await step(x)).add(0).contiguous());
  const values = await Promise.all(outs.map((y) => y.item()));
  expect(values).toEqual([3, 4, 5, 6, 7, 8, 9, 10].map((i) => (i - 1) * 1024 + 1));
});

test("branches have no barrier between them, and a random order of them is right", async () => {
  const step = new TinyJit(async (x: Tensor, w: Tensor) => {
    const branches = [1, 2, 3, 4].map((k) => x.mul(k).contiguous().add(w).contiguous());
    const total = branches.reduce((a, b) => a.mul(3).contiguous().add(b));
    return total.realize();
  });
  const want = (x: number, w: number) => [1, 2, 3, 4].map((k) => x * k + w).reduce((a, b) => a * 3 + b);
  for (let i = 0; i < 10; i++) {
    const y = await step(on([i, 2 * i]), on([7 - i, 1]));
    expect(await y.tolist()).toEqual([want(i, 7 - i), want(2 * i, 1)]);
  }
});

test("variables change values and sizes, through the argument buffer", async () => {
  const n = Variable("n", 1, 8);
  const data = await Tensor.arange(8 * 96, { device: "METAL" })
    .reshape(8, 96)
    .contiguous()
    .realize();
  const step = new TinyJit(async (x: Tensor) => x.mul(3).contiguous().sum().realize());
  for (const k of [2, 1, 3, 4, 5, 8, 1]) {
    const shrunk = data.shrink([
      [0, n.bind(k)],
      [0, 96],
    ]);
    expect(await (await step(shrunk)).item(), `n = ${k}`).toBe(3 * ((96 * k * (96 * k - 1)) / 2));
  }
});

test("a graph over two queues: kernels on both, copies and events between them", async () => {
  const step = new TinyJit(async (x: Tensor) => {
    const there = x.mul(2).contiguous().to("METAL:1").add(1).contiguous();
    return there.to("METAL").add(x).realize();
  });
  for (let i = 0; i < 6; i++) {
    const y = await step(await ready([i, 10 * i]));
    expect(await y.tolist(), `run ${i}`).toEqual([3 * i + 1, 30 * i + 1]);
  }
  const log = await messagesOf(async () => step(await ready([1, 2])));
  expect(count(log, "MTLBlitCommandEncoder")).toBeGreaterThan(0);
  expect(count(log, "encodeWaitForEvent")).toBeGreaterThan(1);
});

test("what the second queue does after a graph comes after it", async () => {
  const step = new TinyJit(async (x: Tensor) =>
    x.mul(2).contiguous().to("METAL:1").add(1).contiguous().realize(),
  );
  for (let i = 0; i < 6; i++) {
    const y = await step(await ready([i, 10 * i]));
    expect(await y.mul(3).tolist(), `run ${i}`).toEqual([6 * i + 3, 60 * i + 3]);
  }
});

test("with PROFILE=1 each kernel has its time", async () => {
  profiler.reset();
  await withEnv({ PROFILE: 1 }, async () => {
    const step = new TinyJit(async (x: Tensor) => x.mul(2).contiguous().add(1).realize());
    for (let i = 0; i < 2; i++) await step(on([1, 2]));
    await Device.get("METAL").synchronize();
    profiler.reset();
    for (let i = 0; i < 3; i++) await (await step(on([1, 2]))).data();
  });
  const kernels = profiler.spans.filter((s) => s.device === "METAL" && s.kind === "kernel");
  expect(kernels).toHaveLength(6);
  for (const s of kernels) expect(s.end - s.start).toBeCloseTo(1000, 0);
  profiler.reset();
});

test("a graph that is dropped is released, with its commands", async () => {
  async function useOne() {
    const step = chain();
    for (let i = 0; i < 4; i++) await step(on([i]));
  }
  await useOne();
  const before = runtime.alive.MTLIndirectComputeCommand ?? 0;
  expect(before).toBeGreaterThan(0);
  await collect();
  // what was dropped goes when the queue is seen to be idle
  await Device.get("METAL").synchronize();
  expect(runtime.alive.MTLIndirectComputeCommand ?? 0).toBeLessThan(before);
});

test("there is no room for a graph: the run fails, the next one makes it", async () => {
  const step = chain();
  const inputs = await Promise.all([1, 2, 3, 4, 5].map((k) => ready([k])));
  runtime.nil.add("newIndirectCommandBufferWithDescriptor:maxCommandCount:options:");
  let failed = 0;
  for (const [i, x] of inputs.entries()) {
    try {
      expect(await (await step(x)).item()).toBe(i * 1024 + 1);
    } catch (e) {
      expect((e as Error).message).toMatch(/no room for a graph of 10 kernels/);
      failed++;
    }
  }
  expect(failed).toBe(1);
});

describe("the messages of a replay", () => {
  test("two kernels, the second after the first, one of them with a variable", async () => {
    const n = Variable("n", 1, 8);
    const data = await ready([1, 2, 3, 4, 5, 6, 7, 8]);
    const step = new TinyJit(async (x: Tensor) => x.mul(3).contiguous().sum().realize());
    const run = async (k: number) => step(data.shrink([[0, n.bind(k)]]));
    for (const k of [2, 3]) await run(k);
    const numbers = new Map<string, number>();
    const named = (log: string[]): string[] =>
      log
        .filter((x) => !/^MTLDevice|Descriptor|NSString/.test(x))
        .map((x) =>
          x.replace(/\b(\w+)#(\d+)/g, (_, type: string, id: string) => {
            const all = [...numbers.keys()].filter((k) => k.startsWith(`${type}#`));
            const key = `${type}#${id}`;
            if (!numbers.has(key)) numbers.set(key, all.length + 1);
            return `${type}#${numbers.get(key)}`;
          }),
        );
    expect(named(await messagesOf(() => run(4)))).toMatchInlineSnapshot(`
      [
        "MTLBuffer#1 contents -> address",
        "MTLIndirectCommandBuffer#1 indirectComputeCommandAtIndex:0 -> MTLIndirectComputeCommand#1",
        "MTLIndirectCommandBuffer#1 indirectComputeCommandAtIndex:1 -> MTLIndirectComputeCommand#2",
        "MTLIndirectComputeCommand#1 setComputePipelineState:MTLComputePipelineState#1",
        "MTLIndirectComputeCommand#1 setKernelBuffer:MTLBuffer#1 offset:0 atIndex:2",
        "MTLIndirectComputeCommand#2 setComputePipelineState:MTLComputePipelineState#2",
        "MTLIndirectComputeCommand#2 setKernelBuffer:MTLBuffer#1 offset:256 atIndex:2",
        "MTLIndirectComputeCommand#2 setBarrier",
        "MTLIndirectComputeCommand#1 setKernelBuffer:MTLBuffer#2 offset:0 atIndex:0",
        "MTLIndirectComputeCommand#1 setKernelBuffer:MTLBuffer#3 offset:0 atIndex:1",
        "MTLIndirectComputeCommand#1 concurrentDispatchThreadgroups:(1 1 1) threadsPerThreadgroup:(8 1 1)",
        "MTLIndirectComputeCommand#2 setKernelBuffer:MTLBuffer#4 offset:0 atIndex:0",
        "MTLIndirectComputeCommand#2 setKernelBuffer:MTLBuffer#2 offset:0 atIndex:1",
        "MTLIndirectComputeCommand#2 concurrentDispatchThreadgroups:(1 1 1) threadsPerThreadgroup:(8 1 1)",
        "MTLCommandQueue#1 commandBuffer -> MTLCommandBuffer#1",
        "MTLCommandBuffer#1 setLabel:"graph of 2 kernels"",
        "MTLCommandBuffer#1 computeCommandEncoder -> MTLComputeCommandEncoder#1",
        "MTLComputeCommandEncoder#1 useResources:[MTLBuffer#2 MTLBuffer#3 MTLBuffer#4 MTLBuffer#1] count:4 usage:3",
        "MTLComputeCommandEncoder#1 setComputePipelineState:MTLComputePipelineState#1",
        "MTLComputeCommandEncoder#1 dispatchThreadgroups:(0 0 0) threadsPerThreadgroup:(0 0 0)",
        "MTLComputeCommandEncoder#1 setComputePipelineState:MTLComputePipelineState#2",
        "MTLComputeCommandEncoder#1 dispatchThreadgroups:(0 0 0) threadsPerThreadgroup:(0 0 0)",
        "MTLComputeCommandEncoder#1 executeCommandsInBuffer:MTLIndirectCommandBuffer#1 withRange:(0 2)",
        "MTLComputeCommandEncoder#1 endEncoding",
        "MTLCommandBuffer#1 commit",
      ]
    `);
    expect(named(await messagesOf(() => run(5)))).toMatchInlineSnapshot(`
      [
        "MTLIndirectComputeCommand#2 setKernelBuffer:MTLBuffer#4 offset:64 atIndex:0",
        "MTLCommandQueue#1 commandBuffer -> MTLCommandBuffer#2",
        "MTLCommandBuffer#2 setLabel:"graph of 2 kernels"",
        "MTLCommandBuffer#2 computeCommandEncoder -> MTLComputeCommandEncoder#2",
        "MTLComputeCommandEncoder#2 useResources:[MTLBuffer#2 MTLBuffer#3 MTLBuffer#4 MTLBuffer#1] count:4 usage:3",
        "MTLComputeCommandEncoder#2 setComputePipelineState:MTLComputePipelineState#1",
        "MTLComputeCommandEncoder#2 dispatchThreadgroups:(0 0 0) threadsPerThreadgroup:(0 0 0)",
        "MTLComputeCommandEncoder#2 setComputePipelineState:MTLComputePipelineState#2",
        "MTLComputeCommandEncoder#2 dispatchThreadgroups:(0 0 0) threadsPerThreadgroup:(0 0 0)",
        "MTLComputeCommandEncoder#2 executeCommandsInBuffer:MTLIndirectCommandBuffer#1 withRange:(0 2)",
        "MTLComputeCommandEncoder#2 endEncoding",
        "MTLCommandBuffer#2 commit",
      ]
    `);
  });
});

describe("the fake", () => {
  const { metal, open } = fakeMetal();
  const device = open();
  test("stops at memory that is not named, and at commands that change while they are executed", async () => {
    const program = device.compile("E_1", device.renderer.render("E_1", scaleUops(2, 1)));
    const out = device.allocator.alloc(16);
    const slots: GraphSlot[] = [{ handle: out, root: out, from: 0, to: 16 }];
    const kernel = { kind: "kernel", device, program, args: [0, 0], written: [0], work: 0 } as const;
    const item = { ...kernel, globalSize: [1], localSize: [1], vars: [], varVals: new Map() } as GraphItem;
    const graph = device.graph?.([item, item], slots);
    for (const _ of graph?.run([], new Map()) ?? []) expect("nothing").toBe("waited for");
    const send = metal.runtime.send.bind(metal.runtime);
    const indirect = metal.runtime.all("MTLIndirectComputeCommand")[0]?.id as bigint;
    expect(() => send(indirect, "setBarrier")).toThrow(FakeError);
    expect(() => send(indirect, "setBarrier")).toThrow(/changed while the GPU executes it/);
    await device.synchronize();
    send(indirect, "setBarrier");
  });
});
