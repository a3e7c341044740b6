// The order of work on a real implementation, Dawn on SwiftShader: captured and other kernels, copies, values
// of variables and disposals in between, results that are read late, two devices, and a loss.

import { CompileError, Device, DeviceError, Tensor, TinyJit, Variable, withEnv } from "gradloom";
import { describe, expect, test } from "vitest";
import { sourceOf } from "../../../src/codegen/target.ts";
import type { WebGpuDevice } from "../../../src/devices/webgpu/device.ts";
import { UOpGraph } from "../../../src/uop/list.ts";
import { whyClosed } from "./swiftshader.ts";

const closed = await whyClosed();
const PAIR = ["WEBGPU:1", "WEBGPU:2"] as const;
const open = (name: string): Promise<WebGpuDevice> => Device.open(name) as Promise<unknown> as Promise<never>;
const on = (device: string, ...values: number[]): Promise<Tensor> => new Tensor(values, { device }).realize();
const numbers = (results: readonly Tensor[]): Promise<number[]> =>
  Promise.all(results.map(async (t) => Number(await t.item())));

describe("work in order", () => {
  test("replays, other kernels, copies and disposals between them, read late", async ({ skip }) => {
    skip(closed !== undefined, closed);
    await open("WEBGPU");
    const step = new TinyJit((x: Tensor) => x.mul(2).add(1).contiguous());
    const [results, want]: [Tensor[], number[]] = [[], []];
    let [x, value] = [await on("WEBGPU", 1), 1];
    for (let i = 0; i < 30; i++) {
      results.push(await step(x));
      want.push(2 * value + 1);
      if (i % 3 === 0) {
        await x.assign(new Tensor([i], { device: "WEBGPU" })).realize();
        value = i;
      } else if (i % 3 === 1) {
        x = await x.add(1).contiguous().realize();
        value++;
      } else {
        x.dispose();
        value = 5 * i;
        x = await on("WEBGPU", value);
      }
    }
    expect(await numbers(results)).toEqual(want);
  });
  test("a result is the next input, and its memory is that of a result to come", async ({ skip }) => {
    skip(closed !== undefined, closed);
    await open("WEBGPU");
    const step = new TinyJit((x: Tensor) => x.add(1).contiguous());
    let x = await on("WEBGPU", 0, 10);
    for (let i = 0; i < 100; i++) {
      const next = await step(x);
      x.dispose();
      x = next;
      // takes what was freed, and is written at once
      if (i % 7 === 0) (await on("WEBGPU", i, i)).dispose();
    }
    expect(await x.tolist()).toEqual([100, 110]);
  });
  test.for(["full", "f32"])("a variable has each launch's own value (%s)", async (tier, { skip }) => {
    skip(closed !== undefined, closed);
    const name = tier === "full" ? "WEBGPU:3" : "WEBGPU:4";
    await withEnv({ WEBGPU_TIER: tier }, () => open(name));
    const n = Variable("n", 1, 64);
    const all = await Tensor.arange(64).to(name).contiguous().realize();
    const step = new TinyJit((t: Tensor) => t.sum().add(1).contiguous());
    const [results, want]: [Tensor[], number[]] = [[], []];
    // more launches than a batch has, and than there are places for values
    for (let i = 0; i < 100; i++) {
      const k = 1 + ((i * 7) % 64);
      const t = all.shrink([[0, n.bind(k)]]);
      results.push(await step(t), await t.sum().mul(2).realize());
      want.push((k * (k - 1)) / 2 + 1, k * (k - 1));
    }
    expect(await numbers(results)).toEqual(want);
  });
  test("two devices work on each other's results, in one step and in two", async ({ skip }) => {
    skip(closed !== undefined, closed);
    const [first, second] = PAIR;
    await Promise.all(PAIR.map(open));
    const plus = new TinyJit((x: Tensor) => x.add(1).contiguous());
    const twice = new TinyJit((x: Tensor) => x.mul(2).contiguous());
    const both = new TinyJit((x: Tensor) =>
      x.add(1).contiguous().to(second).mul(2).contiguous().to(first).contiguous(),
    );
    let [x, y, value] = [await on(first, 1), await on(first, 1), 1];
    for (let i = 0; i < 8; i++) {
      const there = await (await plus(x)).to(second).realize();
      x = await (await twice(there)).to(first).realize();
      y = await both(y);
      value = 2 * (value + 1);
    }
    expect(await numbers([x, y])).toEqual([value, value]);
  });
});

describe("failures", () => {
  test("a kernel that is refused fails its caller, and not the next wait", async ({ skip }) => {
    skip(closed !== undefined, closed);
    const device = await open("WEBGPU");
    const binding = {
      uops: new UOpGraph(),
      written: [true],
      types: ["float"],
      immediate: false,
      shared: () => "",
    };
    const refused = (async () => device.compile("k", sourceOf("fn k( {}", { buffers: 1, binding })))();
    await expect(refused).rejects.toThrow(CompileError);
    expect(await (await on("WEBGPU", 1)).add(1).tolist()).toEqual([2]);
  });
  test("a loss between two replays of one submit fails whoever reads; a new capture works", async ({
    skip,
  }) => {
    skip(closed !== undefined, closed);
    const name = "WEBGPU:5";
    const device = await open(name);
    const capture = () => new TinyJit((x: Tensor) => x.add(1).contiguous());
    const step = capture();
    const x = await on(name, 1);
    for (let i = 0; i < 4; i++) await step(x);
    const before = await step(x);
    device.stream.gpu.destroy();
    // the GPU says that it is lost only later
    const after = await step(x).catch((error: unknown) => error);
    if (after instanceof Tensor) await expect(after.tolist()).rejects.toThrow(DeviceError);
    else expect(after).toBeInstanceOf(DeviceError);
    await expect(before.tolist()).rejects.toThrow(/lost/);
    await expect(step(x)).rejects.toThrow(/lost/);
    const again = capture();
    for (let i = 0; i < 4; i++) expect(await (await again(await on(name, i))).tolist()).toEqual([i + 1]);
  });
});
