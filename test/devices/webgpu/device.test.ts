// WEBGPU on a Gpu of plain objects: what is asked for at opening, what is submitted when, what is created how
// often, and what each failure becomes. Values are the device suite's business.

import {
  ArgumentError,
  CompileError,
  Device,
  DeviceError,
  OutOfMemoryError,
  profiler,
  Tensor,
  TinyJit,
  Variable,
  withEnv,
} from "gradloom";
import { expect, test, vi } from "vitest";
import { open as openDawn } from "../../../src/devices/dawn.ts";
import { open as openPage } from "../../../src/devices/webgpu.ts";
import { fakeGpu, LIMITS } from "./fake.ts";
import { ones, opened } from "./opened.ts";

test("every feature and limit that the adapter has is asked for, and no other", async () => {
  const features = ["shader-f16", "subgroups", "timestamp-query", "texture-compression-bc"];
  const { fake, device } = await opened({ features, info: { subgroupMinSize: 32, subgroupMaxSize: 32 } });
  expect(fake.requested[0]?.features.toSorted()).toEqual(["shader-f16", "subgroups", "timestamp-query"]);
  expect(fake.requested[0]?.limits).toEqual({ ...LIMITS, maxComputeWorkgroupSizeZ: 64 });
  expect(device.renderer.gpu?.warp).toBe(32);
  expect(device.renderer.maxBuffers).toBe(8);
});
test("a lower tier can be forced", async () => {
  const features = ["shader-f16", "subgroups", "timestamp-query"];
  const info = { subgroupMinSize: 32, subgroupMaxSize: 32 };
  const tiers = { f32: ["timestamp-query"], f16: ["timestamp-query", "shader-f16"], full: undefined };
  for (const [tier, want] of Object.entries(tiers)) {
    const { fake, device } = await withEnv({ WEBGPU_TIER: tier }, () => opened({ features, info }));
    expect(fake.requested[0]?.features.toSorted(), tier).toEqual((want ?? features).toSorted());
    expect(device.renderer.gpu?.warp, tier).toBe(tier === "full" ? 32 : 1);
  }
  await expect(withEnv({ WEBGPU_TIER: "fast" }, () => opened())).rejects.toThrow(ArgumentError);
});
test("subgroups of several sizes are not used", async () => {
  const info = { subgroupMinSize: 8, subgroupMaxSize: 32 };
  const { device } = await opened({ features: ["subgroups"], info });
  expect(device.renderer.gpu?.warp).toBe(1);
});

test("what cannot be opened says why and what to do", async () => {
  await expect(opened({ isMissing: true })).rejects.toThrow(/finds no GPU; buy one/);
  await expect(opened({ refuses: "too many" })).rejects.toThrow(/cannot be opened: too many/);
  await expect(openPage("WEBGPU")).rejects.toThrow(/no WebGPU \(navigator.gpu\).*WASM runs everywhere/);
  const missing = () => Promise.reject(new Error("Cannot find package 'webgpu'"));
  await expect(openDawn("WEBGPU", missing)).rejects.toThrow(/Cannot find package.*run npm install webgpu/);
  const without = { create: () => fakeGpu({ isMissing: true }).gpu };
  await expect(openDawn("WEBGPU", async () => without)).rejects.toThrow(/finds no GPU; install its driver/);
});

test("the kernels of a realize are one submit", async () => {
  const { name, fake } = await opened();
  const [a, b] = [await ones(name), await ones(name)];
  await Device.get(name).synchronize();
  fake.calls.clear();
  const c = a.add(b).contiguous();
  await c.sum().add(c.max()).realize();
  expect(fake.calls.get("dispatch")).toBeGreaterThan(2);
  expect(fake.calls.get("submit")).toBe(1);
});
test("a replay makes nothing but its command buffer, and is one submit", async () => {
  const { name, fake } = await opened();
  const w = await Tensor.ones([16, 16], { device: name }).contiguous().realize();
  const step = new TinyJit(async (x: Tensor) => {
    w.assign(w.sub(x.dot(w).relu().sum(0, true).mul(0.1)));
    return [await w.realize()];
  });
  const x = await Tensor.ones([16, 16], { device: name }).contiguous().realize();
  for (let i = 0; i < 4; i++) await step(x);
  fake.calls.clear();
  for (let i = 0; i < 5; i++) {
    await step(x);
    await Device.get(name).synchronize();
  }
  expect(fake.calls.get("submit")).toBe(5);
  for (const what of ["bind group", "pipeline", "buffer", "write"])
    expect(fake.calls.get(what), what).toBeUndefined();
});
test("small replays in a row share a submit, which comes when the task is over", async () => {
  const { name, fake } = await opened();
  const step = new TinyJit(async (x: Tensor) => [await x.add(1).realize()]);
  const x = await Tensor.ones([16, 16], { device: name }).contiguous().realize();
  for (let i = 0; i < 4; i++) await step(x);
  await Device.get(name).synchronize();
  await new Promise((next) => setTimeout(next));
  fake.calls.clear();
  for (let i = 0; i < 20; i++) await step(x);
  expect(fake.calls.get("dispatch")).toBe(20);
  // a busy machine lets tasks pass in between
  expect(fake.calls.get("submit")).toBeLessThan(10);
  await new Promise((next) => setTimeout(next, 20));
  const submits = fake.calls.get("submit");
  await Device.get(name).synchronize();
  expect(fake.calls.get("submit"), "nothing was left").toBe(submits);
});
test("memory is flat over many steps", async () => {
  const { name, fake } = await opened();
  let x = await ones(name, 1024);
  const step = async (): Promise<void> => {
    const next = await x.add(1).contiguous().realize();
    x.dispose();
    x = next;
  };
  for (let i = 0; i < 10; i++) await step();
  const before = fake.bytes.alive;
  for (let i = 0; i < 200; i++) await step();
  expect(fake.bytes.alive).toBe(before);
});

test("a tensor that no buffer holds is refused by number", async () => {
  const { name } = await opened();
  const large = Tensor.ones([1 << 18], { device: name }).contiguous();
  await expect(large.realize()).rejects.toThrow(OutOfMemoryError);
  await expect(large.realize()).rejects.toThrow(/no room for 1.0 MiB in one piece: .* up to 0.5 MiB/);
});
test("a GPU without room says so to whoever waits next", async () => {
  const { name, device } = await opened({ isFull: true });
  await ones(name);
  await expect(Promise.resolve(device.synchronize())).rejects.toThrow(/no room for .*VK_ERROR/);
});
test("a kernel that is refused is shown with its text", async () => {
  const { name } = await opened({ compileError: "unresolved identifier" });
  const refused = ones(name);
  await expect(refused).rejects.toThrow(CompileError);
  await expect(ones(name)).rejects.toThrow(
    /kernel E_\w+ is refused: line 7: unresolved identifier\nsource:\n@group/,
  );
});
test("what the GPU reports is thrown by the next wait, once, with the last kernels", async () => {
  const { name, fake, device } = await opened();
  await ones(name);
  fake.fault("binding 3 is too small");
  await expect(Promise.resolve(device.synchronize())).rejects.toThrow(
    /binding 3 is too small; the last kernels were E_/,
  );
  await device.synchronize();
});
test("a synchronous read is refused with advice", async () => {
  const { name } = await opened();
  const t = await ones(name);
  expect(() => t.dataSync()).toThrow(DeviceError);
  expect(() => t.dataSync()).toThrow(/WebGPU.* asynchronously; use the async form/);
  expect(() => t.mul(3).realizeSync()).toThrow(/WebGPU compiles kernels asynchronously; use the async form/);
});
test("a wait without an answer ends", async () => {
  const { name, fake, device } = await opened();
  await ones(name);
  fake.answer = "never";
  vi.useFakeTimers();
  const waiting = Promise.resolve(device.synchronize());
  const refused = expect(waiting).rejects.toThrow(/no answer from the GPU for 30 s.*HCQ_TIMEOUT/);
  await vi.advanceTimersByTimeAsync(31_000);
  await refused;
  vi.useRealTimers();
});
test("a wait that fails says why", async () => {
  const { name, fake, device } = await opened();
  await ones(name);
  fake.answer = "error";
  await expect(Promise.resolve(device.synchronize())).rejects.toThrow(/the GPU says no/);
});

test("a GPU that is lost in mid-step fails the step; the next use opens it again", async () => {
  const { name, fake, device } = await opened();
  const [old, fresh] = [await ones(name), Tensor.ones([64], { device: name })];
  fake.answer = "never";
  const waiting = Promise.resolve(device.synchronize());
  fake.lose();
  await expect(waiting).rejects.toThrow(/the GPU was lost \(the driver was reset\).*opens it again/);
  fake.answer = "at once";
  expect(device.isLost).toBe(true);
  await expect(old.data()).rejects.toThrow(/since it was lost with what its memory held/);
  await fresh.add(1).realize();
  expect(await Device.open(name)).not.toBe(device);
  expect(fake.requested).toHaveLength(2);
  expect(Device.timesLost(name)).toBe(1);
  await expect(old.add(1).realize()).rejects.toThrow(/256 bytes was lost with the GPU that held it/);
  expect(await fresh.add(2).tolist()).toHaveLength(64);
});

test("variables are immediates where the GPU has them, and fit", async () => {
  const language = ["immediate_address_space"];
  const limits = { maxImmediateSize: 64 };
  const n = Variable("n", 1, 64);
  const sums = async (name: string): Promise<void> => {
    const x = await ones(name);
    const step = new TinyJit((t: Tensor) => t.sum().contiguous());
    for (const k of [2, 3, 4, 5]) await step(x.shrink([[0, n.bind(k)]]));
  };
  const full = await opened({ language, limits });
  await sums(full.name);
  expect(full.fake.bound.immediates.map(([v]) => v)).toEqual([2, 3, 4, 5]);
  expect(full.fake.requested[0]?.limits.maxImmediateSize).toBe(64);
  expect(full.fake.calls.get("write")).toBeUndefined();
  const others = [
    await withEnv({ WEBGPU_TIER: "f16" }, () => opened({ language, limits })),
    await opened({ limits }),
    await opened({ language, limits: { maxImmediateSize: 0 } }),
  ];
  for (const { name, fake } of others) {
    await sums(name);
    expect(fake.bound.immediates).toEqual([]);
    expect(fake.calls.get("write")).toBeGreaterThan(2);
  }
});
test("a replay that is refused is refused again, and the next one is right", async () => {
  const options: { isFull?: boolean } = {};
  const { name, fake, device } = await opened(options);
  const [x, w] = [await ones(name, 5), await ones(name, 5)];
  // all memory but that of its input is the same in each run
  const step = new TinyJit(async (y: Tensor) => [await w.assign(w.add(y)).realize()]);
  for (let i = 0; i < 4; i++) await step(x);
  options.isFull = true;
  const missing = await ones(name, 5);
  delete options.isFull;
  await expect(Promise.resolve(device.synchronize())).rejects.toThrow(OutOfMemoryError);
  for (const again of [1, 2]) await expect(step(missing), `try ${again}`).rejects.toThrow(/no room for/);
  fake.calls.clear();
  await step(x);
  expect(fake.calls.get("dispatch")).toBe(1);
});
test("a captured step with very much work is several submits", async () => {
  const { name, fake } = await opened({
    limits: { maxBufferSize: 2 ** 30, maxStorageBufferBindingSize: 2 ** 30 },
  });
  const a = Tensor.empty([2048, 2048], { device: name });
  const b = await Tensor.empty([2048, 2048], { device: name }).contiguous().realize();
  await a.realize();
  // 2^34 operations a product: four of them are as much as a submit may be
  const step = new TinyJit((x: Tensor) => {
    let y = x;
    for (let i = 0; i < 6; i++) y = y.dot(b).contiguous();
    return y;
  });
  for (let i = 0; i < 3; i++) await step(a);
  fake.calls.clear();
  await step(a);
  expect([fake.calls.get("submit"), fake.calls.get("dispatch")]).toEqual([2, 6]);
});
test("DEBUG=2 says where the GPU's clock is rounded, and PROFILE=1 has the kernels of a graph", async () => {
  const { name, fake } = await opened({ features: ["timestamp-query"] });
  const t = await ones(name);
  const step = new TinyJit((x: Tensor) => x.add(1).contiguous());
  for (let i = 0; i < 3; i++) await step(t);
  fake.times = [10n << 16n, 12n << 16n];
  const log = vi.spyOn(console, "log").mockImplementation(() => {});
  profiler.reset();
  try {
    await withEnv({ PROFILE: 1 }, async () => {
      await step(t);
      await step(t);
    });
    expect(log.mock.calls).toEqual([[`${name}: times are rounded to 65.536 us here; short kernels take 0`]]);
  } finally {
    log.mockRestore();
  }
  const spans = profiler.spans.filter((s) => s.device === name);
  expect(spans.map((s) => Math.round(s.end - s.start))).toEqual([131, 131]);
});
