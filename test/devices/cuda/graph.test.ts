// CUDA graphs behind TinyJit, on the fake driver, which executes nodes in a random order that the edges
// allow: values are right whatever the order, only what changed is updated, and nothing is left behind.

import { Device, Tensor, TinyJit, Variable, withEnv } from "gradloom";
import { beforeAll, describe, expect, test } from "vitest";
import { orderOf } from "../../../src/devices/order.ts";
import type { GraphItem, GraphSlot } from "../../../src/runtime/device.ts";
import { profiler } from "../../../src/runtime/profiling.ts";
import { collect } from "../../runtime/gc.ts";
import { Random } from "../../shape/random.ts";
import { callsOf, installFake } from "./setup.ts";

const fake = installFake({ gpus: 2 });
beforeAll(async () => {
  await Device.open("CUDA");
  await Device.open("CUDA:1");
});

const on = (values: number[], device = "CUDA") => new Tensor(values, { device });

describe("order", () => {
  const slot = (root: unknown, from = 0, to = Infinity): GraphSlot => ({ handle: undefined, root, from, to });
  const kernel = (written: number[], ...read: number[]): GraphItem =>
    ({ kind: "kernel", args: [...written, ...read], written, work: 0 }) as unknown as GraphItem;
  const large = (device: string, ...slots: [number[], ...number[]]): GraphItem =>
    ({ ...kernel(...slots), device, work: 2 ** 22 }) as unknown as GraphItem;
  const copy = (dest: number, src: number): GraphItem =>
    ({ kind: "copy", dest, src }) as unknown as GraphItem;
  const slots = ["a", "b", "c", "d"].map((r) => slot(r));

  test("a reader follows the writer, a writer follows readers, readers go side by side", () => {
    const items = [kernel([0]), kernel([1], 0), kernel([2], 0), kernel([0], 3), copy(3, 1)];
    expect(orderOf(items, slots)).toEqual([[], [0], [0], [1, 2], [3]]);
  });
  test("what follows from another edge is left out", () => {
    const items = [kernel([0]), kernel([1], 0), kernel([2], 0, 1), kernel([3], 0, 1, 2)];
    expect(orderOf(items, slots)).toEqual([[], [0], [1], [2]]);
  });
  test("large kernels of a device go in a row, small ones beside them", () => {
    const items = [large("x", [0]), kernel([1]), large("x", [2]), large("x", [3], 0), kernel([1], 0)];
    expect(orderOf(items, slots)).toEqual([[], [], [0], [2], [0, 1]]);
    expect(orderOf([large("x", [0]), large("y", [1]), large("x", [2]), large("y", [3])], slots)).toEqual([
      [],
      [],
      [0],
      [1],
    ]);
  });
  test("parts of one memory that do not touch are independent", () => {
    const parts = [slot("m", 0, 16), slot("m", 16, 32), slot("m", 8, 24)];
    expect(orderOf([kernel([0]), kernel([1]), kernel([2]), kernel([0])], parts)).toEqual([
      [],
      [],
      [0, 1],
      [2],
    ]);
    expect(orderOf([kernel([1]), kernel([0])], parts)).toEqual([[], []]);
  });
  test("random programs: every pair that shares bytes with a write is ordered, and no edge is spare", () => {
    const random = new Random(11);
    for (let round = 0; round < 50; round++) {
      const parts = Array.from({ length: 6 }, () => {
        const from = random.int(0, 60);
        return slot(random.int(0, 2), from, from + random.int(1, 30));
      });
      const items = Array.from({ length: 25 }, () => {
        const slots: [number[], number, number] = [[random.int(0, 5)], random.int(0, 5), random.int(0, 5)];
        return random.chance(30) ? large("x", ...slots) : kernel(...slots);
      });
      checkOrder(items, parts, orderOf(items, parts));
    }
  });
});

function checkOrder(
  items: readonly GraphItem[],
  parts: readonly GraphSlot[],
  edges: readonly number[][],
): void {
  const reach = edges.map(() => new Set<number>());
  edges.forEach((before, i) => {
    for (const b of before) {
      const others = before.filter((x) => x !== b);
      expect(
        others.some((x) => reach[x]?.has(b)),
        `the edge ${b} to ${i} is spare`,
      ).toBe(false);
      for (const a of [b, ...(reach[b] as Set<number>)]) reach[i]?.add(a);
    }
  });
  const touches = (x: GraphItem) =>
    x.kind === "kernel"
      ? x.args.map((s) => ({ ...(parts[s] as GraphSlot), write: x.written.includes(s) }))
      : [];
  items.forEach((x, i) => {
    items.slice(0, i).forEach((y, k) => {
      const conflict = touches(x).some((a) =>
        touches(y).some((b) => a.root === b.root && a.from < b.to && b.from < a.to && (a.write || b.write)),
      );
      if (conflict) expect(reach[i]?.has(k), `${i} comes after ${k}`).toBe(true);
    });
  });
}

describe("TinyJit", () => {
  test("kernels become one graph, launched with one call", async () => {
    const step = new TinyJit(async (x: Tensor) => {
      let y = x;
      for (let i = 0; i < 10; i++) y = y.mul(2).sub(1).contiguous();
      return y.realize();
    });
    for (let i = 0; i < 3; i++) await step(on([1, 2, 3]));
    const x = await on([5, 0, -1]).realize();
    callsOf(fake.state);
    const y = await step(x);
    const calls = callsOf(fake.state);
    expect([calls.cuGraphLaunch, calls.cuLaunchKernel]).toEqual([1, undefined]);
    // the input goes into the first kernel, the output into the last
    expect(calls.cuGraphExecKernelNodeSetParams).toBe(2);
    expect(await y.tolist()).toEqual([4097, -1023, -2047]);
  });
  test("branches are independent nodes, and a random order of them is right", async () => {
    const step = new TinyJit(async (x: Tensor, w: Tensor) => {
      const branches = [1, 2, 3, 4].map((k) => x.mul(k).contiguous().add(w).contiguous());
      const total = branches.reduce((a, b) => a.mul(3).contiguous().add(b));
      return total.realize();
    });
    const want = (x: number, w: number) => [1, 2, 3, 4].map((k) => x * k + w).reduce((a, b) => a * 3 + b);
    for (let i = 0; i < 12; i++) {
      const y = await step(on([i, 2 * i]), on([7 - i, 1]));
      expect(await y.tolist()).toEqual([want(i, 7 - i), want(2 * i, 1)]);
    }
  });
  test("nothing is updated where nothing changed", async () => {
    const weight = await on([1, 1, 1]).realize();
    const step = new TinyJit(async (x: Tensor) => {
      weight.assign(weight.add(x).contiguous().mul(2));
      await weight.realize();
    });
    const x = await on([1, 2, 3]).realize();
    for (let i = 0; i < 3; i++) await step(x);
    callsOf(fake.state);
    await step(x);
    const { cuGraphLaunch, cuGraphExecKernelNodeSetParams } = callsOf(fake.state);
    expect([cuGraphLaunch, cuGraphExecKernelNodeSetParams]).toEqual([1, undefined]);
    expect(await weight.tolist()).toEqual([46, 76, 106]);
  });
  test("variables change arguments and sizes", async () => {
    const n = Variable("n", 1, 8);
    const data = await Tensor.arange(8, { device: "CUDA" }).contiguous().realize();
    const step = new TinyJit(async (x: Tensor) => x.mul(3).contiguous().sum().realize());
    for (const k of [2, 3, 4, 5, 8, 1]) {
      const b = n.bind(k);
      const y = await step(data.shrink([[0, b]]));
      expect(await y.item(), `n = ${k}`).toBe(3 * ((k * (k - 1)) / 2));
    }
  });
  test("a graph over two GPUs: kernels on both, copies between them as nodes", async () => {
    const step = new TinyJit(async (x: Tensor) => {
      const there = x.mul(2).contiguous().to("CUDA:1").add(1).contiguous();
      return there.to("CUDA").add(x).realize();
    });
    for (let i = 0; i < 3; i++) await step(on([1, 2]));
    for (let i = 0; i < 5; i++) {
      const x = await on([i, 10 * i]).realize();
      callsOf(fake.state);
      const y = await step(x);
      const calls = callsOf(fake.state);
      expect([calls.cuGraphLaunch, calls.cuMemcpyPeerAsync]).toEqual([1, undefined]);
      expect(await y.tolist()).toEqual([3 * i + 1, 30 * i + 1]);
    }
  });
  test("what the second GPU does after a graph over both comes after it", async () => {
    const step = new TinyJit(async (x: Tensor) =>
      x.mul(2).contiguous().to("CUDA:1").add(1).contiguous().realize(),
    );
    for (let i = 0; i < 6; i++) {
      const y = await step(await on([i, 10 * i]).realize());
      expect(await y.mul(3).tolist(), `run ${i}`).toEqual([6 * i + 3, 60 * i + 3]);
    }
  });
  test("variables change the number of workgroups", async () => {
    const n = Variable("n", 1, 8);
    const data = await Tensor.arange(8 * 96, { device: "CUDA" })
      .reshape(8, 96)
      .contiguous()
      .realize();
    const step = new TinyJit(async (x: Tensor) => x.mul(3).contiguous().sum().realize());
    for (const k of [2, 1, 3, 4, 5, 8, 1]) {
      const y = await step(
        data.shrink([
          [0, n.bind(k)],
          [0, 96],
        ]),
      );
      expect(await y.item(), `n = ${k}`).toBe(3 * ((96 * k * (96 * k - 1)) / 2));
    }
  });
  test("with PROFILE=1 each node has its time", async () => {
    profiler.reset();
    await withEnv({ PROFILE: 1 }, async () => {
      const step = new TinyJit(async (x: Tensor) => x.mul(2).contiguous().add(1).realize());
      for (let i = 0; i < 2; i++) await step(on([1, 2]));
      await Device.get("CUDA").synchronize();
      profiler.reset();
      for (let i = 0; i < 3; i++) await (await step(on([1, 2]))).data();
    });
    const kernels = profiler.spans.filter((s) => s.device === "CUDA" && s.kind === "kernel");
    expect(kernels).toHaveLength(6);
    for (const s of kernels) expect(s.end - s.start).toBeCloseTo(1000, 0);
    const handed = profiler.spans.filter((s) => s.kind === "enqueue" && s.name === "CUDA graph");
    expect(handed.map((s) => s.args)).toEqual([{ commands: 2 }, { commands: 2 }, { commands: 2 }]);
    profiler.reset();
  });
  test("a graph that could not be made leaves nothing, and the next run makes it", async () => {
    const count = (kind: string) => [...fake.state.things.values()].filter((t) => t.kind === kind).length;
    const step = new TinyJit(async (x: Tensor) => x.mul(5).contiguous().add(3).realize());
    const inputs = await Promise.all([1, 2, 3, 4, 5, 6].map((k) => on([k, 2 * k]).realize()));
    fake.state.failing.set("cuGraphInstantiateWithFlags", 2);
    let failed = 0;
    for (const [i, x] of inputs.entries()) {
      const [graphs, execs] = [count("graph"), count("exec")];
      try {
        expect(await (await step(x)).tolist()).toEqual([5 * (i + 1) + 3, 10 * (i + 1) + 3]);
      } catch (e) {
        expect((e as Error).message).toMatch(/cuGraphInstantiateWithFlags: CUDA_ERROR_OUT_OF_MEMORY/);
        expect([count("graph"), count("exec")]).toEqual([graphs, execs]);
        failed++;
      }
    }
    expect(failed).toBe(1);
  });
  test("a graph that is dropped is destroyed, with its memory", async () => {
    const count = (kind: string) => [...fake.state.things.values()].filter((t) => t.kind === kind).length;
    async function useOne() {
      const step = new TinyJit(async (x: Tensor) => x.add(41).contiguous().mul(2).realize());
      for (let i = 0; i < 4; i++) await step(on([1]));
    }
    await useOne();
    const before = count("exec");
    expect(before).toBeGreaterThan(0);
    await collect();
    // what was dropped goes when the stream is seen to be idle
    await Device.get("CUDA").synchronize();
    expect(count("exec")).toBeLessThan(before);
    expect(count("graph")).toBe(count("exec"));
  });
});
