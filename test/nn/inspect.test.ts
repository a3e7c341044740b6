// nn.summary and nn.profile: shapes, parameters, kernels by layer in both passes; the model stays as it was.

import { Device, env, GlobalCounters, nn, profiler, Tensor, TinyJit } from "gradloom";
import { describe, expect, test, vi } from "vitest";

class Block {
  readonly norm = new nn.LayerNorm(6);
  readonly mix = new nn.Sequential(
    new nn.Linear(6, 12),
    new nn.GELU(),
    new nn.Linear(12, 6, { bias: false }),
  );
  scale = nn.parameter(Tensor.ones(6, { dtype: "float32" }));
  forward(x: Tensor): Tensor {
    return this.mix.forward(this.norm.forward(x)).mul(this.scale).add(x);
  }
}

describe("summary", () => {
  test("layers in the order of their calls, with own parameters and shapes", () => {
    const model = { first: new nn.Linear(4, 6), block: new Block(), spare: new nn.Linear(1, 1), forward };
    function forward(x: Tensor): Tensor {
      return model.block.forward(model.block.forward(model.first.forward(x)));
    }
    const before = GlobalCounters.kernelCount;
    const found = nn.summary(model, [2, 4]);
    expect(GlobalCounters.kernelCount).toBe(before);
    expect(found).toBeInstanceOf(nn.Summary);
    expect(found.rows.map((r) => [r.name, r.type, r.parameters, r.calls, r.output[0]])).toEqual([
      ["", "Object", 0, 1, [2, 6]],
      ["first", "Linear", 30, 1, [2, 6]],
      ["block", "Block", 6, 2, [2, 6]],
      ["block.norm", "LayerNorm", 12, 2, [2, 6]],
      ["block.mix", "Sequential", 0, 2, [2, 6]],
      ["block.mix.0", "Linear", 84, 2, [2, 12]],
      ["block.mix.1", "GELU", 0, 2, [2, 12]],
      ["block.mix.2", "Linear", 72, 2, [2, 6]],
      ["spare", "Linear", 2, 0, undefined],
    ]);
    expect(found.parameters).toBe(206);
    expect(found.bytes).toBe(4 * 206);
    expect(Object.keys(model.first)).not.toContain("forward");
    expect(model.forward).toBe(forward);
    const lines = String(found).split("\n");
    expect(lines[0]).toMatch(/^layer +type +input +output +parameters$/);
    expect(lines.find((l) => l.startsWith("block.mix.0"))).toMatch(/Linear +\[2, 6\] +\[2, 12\] +84$/);
    expect(lines.at(-1)).toBe("206 parameters, 0 other elements, 0.00 MB");
    expect(lines.find((l) => l.startsWith("spare"))).toContain("not called");
  });
  test("several inputs, other types; running statistics are not touched", async () => {
    const model = {
      table: new nn.Embedding(10, 4),
      norm: new nn.BatchNorm1d(4),
      forward(ids: Tensor, more: Tensor): Tensor {
        return this.norm.forward(this.table.forward(ids).add(more));
      },
    };
    const found = nn.summary(model, [[3], Tensor.ones(4)], { dtype: "int32" });
    expect(found.rows[0]?.input).toEqual([[3], [4]]);
    expect(found.buffers).toBe(9);
    expect(await model.norm.runningMean?.tolist()).toEqual([0, 0, 0, 0]);
    const lstm = nn.summary(new nn.LSTM(3, 5), [7, 2, 3]);
    expect(lstm.rows[0]?.output[0]).toEqual([7, 2, 5]);
  });
  test("a forward that fails leaves the layers as they were", () => {
    const model = new nn.Sequential(new nn.Linear(2, 2));
    expect(() => nn.summary(model, [1, 3])).toThrow(/3/);
    expect(Object.keys(model[0] as object)).toEqual(["weight", "bias"]);
    expect(() => nn.summary({}, [1])).toThrow(/summary: the model has no forward method/);
    expect(() => nn.summary(model, "2" as never)).toThrow(
      /^summary: input is the string "2", expected .*; write summary/,
    );
  });
});

describe("profile", () => {
  test.each(["WASM", "JS"])("by kernel and by layer, in both passes, on %s", async (device) => {
    const model = new nn.Sequential(
      new nn.Linear(8, 16, { device }),
      new nn.ReLU(),
      new nn.Linear(16, 4, { device }),
    );
    const x = await Tensor.rand(4, 8, { device }).realize();
    const params = nn.getParameters(model);
    const runs: number[] = [];
    const step = async () => {
      const before = GlobalCounters.kernelCount;
      for (const p of params) p.grad = undefined;
      const loss = model.forward(x).square().mean();
      loss.backward();
      await Tensor.realize(loss, ...params.map((p) => p.grad as Tensor));
      runs.push(GlobalCounters.kernelCount - before);
      return loss;
    };
    const log = vi.spyOn(console, "log").mockImplementation(() => {});
    const report = await nn.profile(step, { model });
    expect(log).toHaveBeenCalledWith(report.toString());
    log.mockRestore();
    expect(report).toBeInstanceOf(nn.ProfileReport);
    expect([runs.length, await report.result.item()]).toEqual([2, expect.any(Number)]);
    const calls = (rows: readonly nn.ProfileRow[]) => rows.reduce((n, r) => n + r.calls, 0);
    expect(calls(report.kernels)).toBeGreaterThan(3);
    expect(calls(report.layers)).toBe(calls(report.kernels));
    expect(calls(report.kernels)).toBe(runs[1]);
    const names = report.layers.map((l) => l.name);
    for (const name of ["2 (Linear)", "0 (Linear), backward", "2 (Linear), backward"]) {
      expect(names).toContain(name);
    }
    expect(names).toContain("(outside of layers)");
    expect(report.milliseconds).toBeGreaterThan(0);
    expect(report.kernels.every((k) => k.flop >= 0 && k.bytes > 0)).toBe(true);
    expect(String(report)).toMatch(/^kernel +calls +ms +% +GFLOPS +GB\/s\n/);
    expect(String(report)).toMatch(/\n\d+ kernels took [\d.]+ ms of [\d.]+ ms$/);
    // nothing is left behind
    expect(env.PROFILE).toBe(0);
    expect(profiler.spans.length).toBe(0);
    expect(Object.keys(model[0] as object)).toEqual(["weight", "bias"]);
  });
  test("a captured step has kernels, and says that layers are not known", async () => {
    const model = new nn.Linear(4, 4);
    const x = await Tensor.rand(2, 4).realize();
    const step = new TinyJit((t: Tensor) => model.forward(t).realize());
    const { kernels, layers } = await nn.profile(() => step(x), { model, warmup: 3, print: false });
    expect(kernels.length).toBeGreaterThan(0);
    expect(layers.map((l) => l.name)).toEqual(["(replayed or in a loop)"]);
    const early = new TinyJit((t: Tensor) => t.mul(3).realize());
    for (let i = 0; i < 3; i++) await early(x);
    const missed = await nn.profile(() => early(x), { print: false });
    expect(String(missed)).toMatch(
      /no kernel was seen; if a TinyJit has captured the function, call its reset/,
    );
  });
  test("refused", async () => {
    await expect(nn.profile(Tensor.ones(1) as never)).rejects.toThrow(
      /fn is of type Tensor, expected a function/,
    );
    await expect(nn.profile(() => 1, { warmup: -1 })).rejects.toThrow(/warmup is -1/);
  });
});

test("Device.memory: what tensors hold, by device", async () => {
  const before = Device.memory();
  const t = await Tensor.full([1000], 1.5, { device: "JS" }).contiguous().realize();
  const now = Device.memory();
  expect(now.used - before.used).toBe(4000);
  expect(now.peak).toBeGreaterThanOrEqual(now.used);
  expect(now.buffers - before.buffers).toBe(1);
  expect(Device.memory("js").used).toBe(now.devices.JS);
  t.dispose();
  expect(Device.memory("JS").used).toBe((now.devices.JS as number) - 4000);
  expect(Device.memory("NULL").used).toBe(0);
  expect(Device.unitsOf("JS")).toBe(0);
});
