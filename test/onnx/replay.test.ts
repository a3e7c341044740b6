// Replays of small models: what a call costs (kernels, nodes, memory), which inputs they take, and that they
// give what running the graph gives.

import { GlobalCounters, Tensor, withEnv } from "gradloom";
import { load, type OnnxGraph, type OnnxModel } from "gradloom/onnx";
import { expect, test } from "vitest";
import { nodesMade } from "../../src/lazy/lazybuffer.ts";
import { collect } from "../runtime/gc.ts";
import { branches, bytesOf, twoLayers } from "./models.ts";

const wave = (n: number, at: number): Float32Array =>
  Float32Array.from({ length: n }, (_, i) => Math.sin(0.7 * i + at));
const int64 = (...xs: bigint[]): Tensor => new Tensor(new BigInt64Array(xs));

/** A frame and a state in, a number and the next state out; a rate and a shape decide which branch runs. */
const HIDDEN = 16;
const frames: OnnxGraph = {
  inputs: {
    x: { type: "float", dims: ["n", 80] },
    rate: { type: "int64", dims: [] },
    h: { type: "float", dims: [1, "n", HIDDEN] },
    c: { type: "float", dims: [1, "n", HIDDEN] },
  },
  outputs: { y: { type: "float" }, hn: { type: "float" }, cn: { type: "float" } },
  weights: {
    wide: int64(80n),
    high: int64(16000n),
    rows: int64(1n, -1n, 80n),
    axis: int64(1n),
    w: new Tensor(wave(4 * HIDDEN * 80, 1)).mul(0.2).reshape([1, 4 * HIDDEN, 80]),
    r: new Tensor(wave(4 * HIDDEN * HIDDEN, 2)).mul(0.2).reshape([1, 4 * HIDDEN, HIDDEN]),
    scale: new Tensor(wave(4 * HIDDEN * 80, 3)).reshape([1, 4 * HIDDEN, 80]),
  },
  nodes: [
    // weights that are computed from weights
    { op: "Softmax", inputs: ["scale"], outputs: ["scales"], attributes: { axis: 2 } },
    { op: "Mul", inputs: ["w", "scales"], outputs: ["ws"] },
    { op: "Shape", inputs: ["x"], outputs: ["s"] },
    { op: "Gather", inputs: ["s", "axis"], outputs: ["width"], attributes: { axis: 0 } },
    { op: "Equal", inputs: ["width", "wide"], outputs: ["isWide"] },
    { op: "Equal", inputs: ["rate", "high"], outputs: ["isHigh"] },
    {
      op: "If",
      inputs: ["isWide"],
      outputs: ["a"],
      attributes: {
        then_branch: {
          inputs: {},
          outputs: { t: { type: "float" } },
          nodes: [{ op: "Tanh", inputs: ["x"], outputs: ["t"] }],
        },
        else_branch: {
          inputs: {},
          outputs: { e: { type: "float" } },
          nodes: [{ op: "Neg", inputs: ["x"], outputs: ["e"] }],
        },
      },
    },
    {
      op: "If",
      inputs: ["isHigh"],
      outputs: ["b"],
      attributes: {
        then_branch: {
          inputs: {},
          outputs: { t: { type: "float" } },
          nodes: [{ op: "Identity", inputs: ["a"], outputs: ["t"] }],
        },
        else_branch: {
          inputs: {},
          outputs: { e: { type: "float" } },
          nodes: [{ op: "Neg", inputs: ["a"], outputs: ["e"] }],
        },
      },
    },
    { op: "Reshape", inputs: ["b", "rows"], outputs: ["rows3"] },
    {
      op: "LSTM",
      inputs: ["rows3", "ws", "r", "", "", "h", "c"],
      outputs: ["all", "hn", "cn"],
      attributes: { hidden_size: HIDDEN },
    },
    { op: "ReduceMean", inputs: ["hn"], outputs: ["y"], attributes: { axes: [2], keepdims: 0 } },
  ],
};
const loaded = async (graph: OnnxGraph): Promise<OnnxModel> => load(await bytesOf(graph, 13));
const zeros = (): Tensor => Tensor.zeros([1, 1, HIDDEN]).contiguous();

/** What a model gives for frames whose state goes from one to the next. */
async function stream(model: OnnxModel, count: number, rate: () => bigint, data: (x: Float32Array) => never) {
  let [h, c] = [zeros(), zeros()];
  const all: number[] = [];
  for (let i = 0; i < count; i++) {
    const given = { x: data(wave(80, i)), rate: new BigInt64Array([rate()]), h, c };
    const { y, hn, cn } = await model.run<{ y: Tensor; hn: Tensor; cn: Tensor }>(given);
    all.push((await y.item()) as number);
    [h, c] = [hn, cn];
  }
  return all;
}

test("frames with a state give what the graph gives, however the input comes", async () => {
  const rates = [16000n, 8000n];
  let turn = 0;
  const rate = (): bigint => rates[(turn++ >> 2) % 2] as bigint;
  const want = await withEnv({ JIT: 0 }, async () =>
    stream(await loaded(frames), 50, rate, (x) => new Tensor(x).reshape([1, 80]).add(0) as never),
  );
  expect(new Set(want.map((x) => x.toFixed(6))).size).toBeGreaterThan(45);
  const ways = [
    (x: Float32Array) => x as never,
    (x: Float32Array) => new Tensor(x).reshape([1, 80]) as never,
    (x: Float32Array) => [Array.from(x)] as never,
    (x: Float32Array) => new Tensor(x).reshape([1, 80]).add(0) as never,
  ];
  for (const way of ways) {
    turn = 0;
    const got = await stream(await loaded(frames), 50, rate, way);
    got.forEach((y, i) => void expect(y).toBeCloseTo(want[i] as number, 5));
  }
});

test("a replay computes nothing again that depends on weights alone, until one is assigned to", async () => {
  const model = await loaded(frames);
  const [h, c] = [await zeros().realize(), await zeros().realize()];
  const run = () => model.run({ x: wave(80, 0), rate: new BigInt64Array([16000n]), h, c });
  const kernels: number[] = [];
  for (let i = 0; i < 5; i++) {
    const before = GlobalCounters.kernelCount;
    await run();
    kernels.push(GlobalCounters.kernelCount - before);
  }
  const [first = 0, , replay = 0] = kernels;
  // the softmax of the weights times others, which is one kernel, is left out
  expect(first - replay).toBeGreaterThanOrEqual(1);
  expect(kernels.slice(2)).toEqual([replay, replay, replay]);
  const before = await ((await run()).y as Tensor).item();
  const { scale } = model.namedParameters();
  scale?.assign(new Tensor(wave(4 * HIDDEN * 80, 9)).mul(3).reshape([1, 4 * HIDDEN, 80]));
  const after = await ((await run()).y as Tensor).item();
  expect(after).not.toBeCloseTo(before as number, 4);
  const want = await withEnv({ JIT: 0 }, async () => ((await run()).y as Tensor).item());
  expect(after).toBeCloseTo(want as number, 5);
});

test("a replay from typed arrays makes memory and a view of it for each output, and no more", async () => {
  const model = await loaded(twoLayers);
  const run = (k: number) => model.run({ x: new Float32Array([k, 2, -1, 0.5]) });
  for (let i = 0; i < 4; i++) await run(i);
  const before = nodesMade();
  for (let i = 0; i < 10; i++) await run(i);
  expect(nodesMade() - before).toBe(20);
});

test("calls that are not awaited each have their own input", async () => {
  const model = await loaded(twoLayers);
  const run = async (k: number) => ((await model.run({ x: new Float32Array([k, 0]) })).y as Tensor).item();
  for (let i = 0; i < 4; i++) await run(1);
  const got = await Promise.all([1, 2, 3, 4, 5, 6].map(run));
  got.forEach((y, i) => void expect(y).toBeCloseTo(i + 1 + 0.1 + 3 * (0.5 * (i + 1) + 0.3), 5));
});

test("a value that decides may come as a tensor", async () => {
  const model = await loaded(branches);
  const kernels = new Set<number>();
  for (const isDouble of [true, true, true, false, false, false, true, false]) {
    const before = GlobalCounters.kernelCount;
    const given = await new Tensor([isDouble], { dtype: "bool" }).reshape([]).realize();
    const { y } = await model.run({ x: new Float32Array([1, -3]), isDouble: given });
    kernels.add(GlobalCounters.kernelCount - before);
    expect(await y?.tolist()).toEqual(isDouble ? [2, -6] : [-1, 3]);
  }
  expect([...kernels]).toEqual([1]);
});

test("an input that is also an output keeps its values", async () => {
  const model = await loaded({
    inputs: { x: { type: "float", dims: ["n"] } },
    outputs: { same: { type: "float" }, y: { type: "float" } },
    nodes: [
      { op: "Identity", inputs: ["x"], outputs: ["same"] },
      { op: "Neg", inputs: ["x"], outputs: ["y"] },
    ],
  });
  const kept: Tensor[] = [];
  for (let i = 0; i < 6; i++) kept.push((await model.run({ x: new Float32Array([i]) })).same as Tensor);
  expect(await Promise.all(kept.map((t) => t.item()))).toEqual([0, 1, 2, 3, 4, 5]);
});

test("memory is flat over 10,000 frames, and other tasks get their turn", async () => {
  const model = await loaded(frames);
  let [h, c] = [zeros(), zeros()];
  const step = async (i: number): Promise<number> => {
    const given = { x: wave(80, i), rate: new BigInt64Array([16000n]), h, c };
    const { y, hn, cn } = await model.run<{ y: Tensor; hn: Tensor; cn: Tensor }>(given);
    [h, c] = [hn, cn];
    return (await y.item()) as number;
  };
  for (let i = 0; i < 20; i++) await step(i);
  await collect();
  const start = [GlobalCounters.memUsed, GlobalCounters.buffers] as const;
  let peak = 0;
  let tasks = 0;
  const timer = setInterval(() => tasks++, 1);
  for (let i = 0; i < 10_000; i++) {
    await step(i);
    peak = Math.max(peak, GlobalCounters.memUsed - start[0]);
  }
  clearInterval(timer);
  await collect();
  expect(tasks).toBeGreaterThan(10);
  expect(peak).toBeLessThan(8 * 2 ** 20);
  expect(GlobalCounters.memUsed - start[0]).toBeLessThan(64 << 10);
  expect(GlobalCounters.buffers - start[1]).toBeLessThan(20);
});
