// Loading, running and training a model; what is refused, and how.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GlobalCounters, nn, Tensor } from "gradloom";
import { load, OnnxError, onnx, write } from "gradloom/onnx";
import { expect, test, vi } from "vitest";
import { GraphRun } from "../../src/onnx/execute.ts";
import { branches, bytesOf, flattens, twoLayers } from "./models.ts";

const x = [
  [1, 2],
  [-1, 0.5],
];
const expected = [[1 * 1 + 0.5 * 2 + 0.1 + 2 * (-1 + 4 + 0.2)], [2 * (1 + 1 + 0.2)]];
const close = (got: unknown, want: readonly (readonly number[])[]): void =>
  want.flat().forEach((v, i) => {
    expect((got as number[][]).flat()[i]).toBeCloseTo(v, 5);
  });

test("a model says what it takes and gives", async () => {
  const model = await onnx.load(await bytesOf(twoLayers));
  expect(model.inputs).toEqual([{ name: "x", type: "float", dims: ["batch", 2] }]);
  expect(model.outputs).toEqual([{ name: "y", type: "float", dims: ["batch", 1] }]);
  expect(Object.keys(model.namedParameters())).toEqual(["w", "b", "v"]);
  expect(model.parameters().map((p) => p.shape)).toEqual([[2, 3], [3], [3, 1]]);
});

test("runs from arrays, typed arrays and tensors, and replays", async () => {
  const model = await load(await bytesOf(twoLayers));
  for (const given of [x, new Float32Array([1, 2, -1, 0.5]), new Tensor(x)]) {
    const { y } = (await model.run({ x: given })) as { y: Tensor };
    expect(y.shape).toEqual([2, 1]);
    close(await y.tolist(), expected);
  }
  // other values, other batches, and the first ones again
  for (const k of [2, 3, 2]) {
    const { y } = (await model.run({ x: Array.from({ length: k }, () => [k, 0]) })) as { y: Tensor };
    close(
      await y.tolist(),
      Array.from({ length: k }, () => [k + 0.1 + 3 * (0.5 * k + 0.3)]),
    );
  }
});

test("a file, and weights in a file beside it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "gradloom-onnx-"));
  try {
    writeFileSync(join(folder, "model.onnx"), await bytesOf(twoLayers));
    const model = await load(join(folder, "model.onnx"));
    close(await ((await model.run({ x })).y as Tensor).tolist(), expected);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("large weights of a file on disk are in memory once: on the device", async () => {
  const folder = mkdtempSync(join(tmpdir(), "gradloom-onnx-"));
  try {
    const path = join(folder, "model.onnx");
    const nbytes = 4 * 512 * 1024;
    const inputs = { x: { type: "float", dims: [512] } } as const;
    const outputs = { y: { type: "float", dims: [1024] } } as const;
    const w = Tensor.arange(512 * 1024)
      .reshape(512, 1024)
      .cast("float32");
    const nodes = [{ op: "MatMul", inputs: ["x", "w"], outputs: ["y"] }];
    writeFileSync(path, await write({ inputs, outputs, weights: { w }, nodes }));
    GlobalCounters.reset();
    const before = GlobalCounters.memUsed;
    const model = await load(path);
    expect(GlobalCounters.memUsed - before).toBeLessThan(nbytes / 8);
    const first = Float32Array.from({ length: 512 }, (_, i) => Number(i === 3));
    const { y } = (await model.run({ x: first })) as { y: Tensor };
    expect(Array.from(await y.data())).toEqual(Array.from({ length: 1024 }, (_, i) => 3 * 1024 + i));
    expect(GlobalCounters.memPeak - before).toBeLessThan(1.3 * nbytes);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("an input that decides what is computed is read on the host", async () => {
  const model = await load(await bytesOf(branches));
  for (const isDouble of [true, false, true, true, false, false]) {
    const { y } = (await model.run({ x: [1, -3], isDouble })) as { y: Tensor };
    expect(await y.tolist()).toEqual(isDouble ? [2, -6] : [-1, 3]);
  }
});

test("shapes are computed beside the graph", async () => {
  const model = await load(await bytesOf(flattens));
  for (const [a, b] of [
    [2, 3],
    [4, 1],
    [2, 3],
    [2, 3],
  ] as const) {
    const { y } = (await model.run({ x: Tensor.zeros([5, a, b]) })) as { y: Tensor };
    expect(y.shape).toEqual([5, a * b]);
    expect(await y.sum().item()).toBe(5 * a * b);
  }
});

test("a model that asks for shapes is captured: the elements of its inputs decide nothing", async () => {
  const execute = vi.spyOn(GraphRun.prototype, "execute");
  try {
    const model = await load(await bytesOf(flattens));
    const run = async (value: number): Promise<number> => {
      const { y } = (await model.run({ x: Tensor.full([5, 2, 3], value, { dtype: "float32" }) })) as {
        y: Tensor;
      };
      return y.mean().item() as Promise<number>;
    };
    for (const value of [0, 1, 2]) expect(await run(value)).toBeCloseTo(Math.exp(value), 4);
    const built = execute.mock.calls.length;
    for (const value of [3, 0, -1]) expect(await run(value)).toBeCloseTo(Math.exp(value), 4);
    expect(execute.mock.calls.length).toBe(built);
  } finally {
    execute.mockRestore();
  }
});

test("an imported model has gradients and learns", async () => {
  const model = await load(await bytesOf(twoLayers));
  const parameters = model.parameters();
  for (const p of parameters) p.requiresGrad = true;
  const target = new Tensor([[1], [-1]]);
  const optimizer = new nn.optim.SGD(parameters, { lr: 0.01 });
  const losses: number[] = [];
  for (let step = 0; step < 20; step++) {
    const { y } = (await model.run({ x })) as { y: Tensor };
    const loss = y.sub(target).square().mean();
    optimizer.zeroGrad();
    loss.backward();
    if (step === 0) {
      const grad = (await (model.namedParameters().v as Tensor).grad?.tolist()) as number[][];
      // d/dv of the mean of squares: the activations by the errors
      const errors = [(expected[0]?.[0] as number) - 1, (expected[1]?.[0] as number) + 1] as const;
      close(grad, [[2.1 * errors[0]], [3.2 * errors[0] + 2.2 * errors[1]], [0]]);
    }
    await optimizer.step();
    losses.push(await loss.item());
  }
  expect(losses.at(-1)).toBeLessThan((losses[0] as number) / 4);
  // what was learnt is what runs, in a replay too
  for (const p of parameters) p.requiresGrad = false;
  const results = [];
  for (let i = 0; i < 3; i++) results.push(await ((await model.run({ x })).y as Tensor).tolist());
  close(results[2] as number[][], results[0] as number[][]);
});

test("what does not fit is named, with what was expected", async () => {
  const model = await load(await bytesOf(twoLayers));
  const refused = (inputs: Parameters<typeof model.run>[0], words: RegExp) =>
    expect(model.run(inputs)).rejects.toThrow(words);
  await refused({}, /input "x" is missing; the model takes "x": float\[batch, 2\]/);
  await refused({ z: [1] }, /there is no input "z"; the model takes "x"/);
  await refused({ x: [1, 2, 3] }, /input "x" is float\[3\], expected "x": float\[batch, 2\]/);
  await refused({ x: new Tensor([[1, 2]]).cast("int32") }, /int32\[1, 2\]; x\.cast\("float32"\)/);
  await expect(model.run({ x: null })).rejects.toBeInstanceOf(OnnxError);
});

const graphOf = (nodes: Parameters<typeof write>[0]["nodes"], outputs = ["y"]) => ({
  inputs: { x: { type: "float", dims: [2] } },
  outputs: Object.fromEntries(outputs.map((name) => [name, { type: "float" }])),
  nodes,
});
const refusedGraph = async (nodes: Parameters<typeof write>[0]["nodes"], words: RegExp) =>
  expect(load(await write(graphOf(nodes)))).rejects.toThrow(words);

test("a graph that cannot run is refused with the node's name", async () => {
  await refusedGraph(
    [{ op: "Relu", inputs: ["lost"], outputs: ["y"], name: "r" }],
    /Relu "r" reads "lost".*missing/,
  );
  await refusedGraph(
    [
      { op: "Relu", inputs: ["b"], outputs: ["a"] },
      { op: "Relu", inputs: ["a"], outputs: ["b"] },
      { op: "Add", inputs: ["a", "b"], outputs: ["y"] },
    ],
    /cycle/,
  );
  await refusedGraph(
    [
      { op: "Relu", inputs: ["x"], outputs: ["y"] },
      { op: "Abs", inputs: ["x"], outputs: ["y"] },
    ],
    /"y" is computed twice/,
  );
  await refusedGraph(
    [{ op: "com.nobody.Frobnicate", inputs: ["x"], outputs: ["y"] }],
    /lacks: com\.nobody\.Frobnicate/,
  );
  await expect(
    write(graphOf([{ op: "Relu", inputs: ["x"], outputs: ["y"], attributes: { speed: 3 } }])),
  ).rejects.toThrow(/Relu has no attribute "speed"/);
});

test("nodes may come in any order, and an op that fails names its node", async () => {
  const unsorted = await write(
    graphOf([
      { op: "Neg", inputs: ["a"], outputs: ["y"] },
      { op: "Exp", inputs: ["x"], outputs: ["a"] },
    ]),
  );
  const { y } = (await (await load(unsorted)).run({ x: [0, 0] })) as { y: Tensor };
  expect(await y.tolist()).toEqual([-1, -1]);
  const wrong = await write(
    graphOf([{ op: "Transpose", inputs: ["x"], outputs: ["y"], attributes: { perm: [0, 0] }, name: "t" }]),
  );
  const error = await (await load(wrong)).run({ x: [1, 2] }).catch((e: unknown) => e);
  expect(error).toBeInstanceOf(OnnxError);
  expect((error as OnnxError).op).toBe("Transpose");
  expect((error as OnnxError).message).toMatch(/Transpose "t": perm/);
});

test("small weights behind ops that shapes are computed by are trained and assigned", async () => {
  for (const op of ["Identity", "Neg", "Sqrt", "Transpose", "Unsqueeze"]) {
    const weights = {
      w: new Tensor([[4, 4]], { dtype: "float32" }),
      axes: new Tensor([0], { dtype: "int64" }),
    };
    const [inputs, outputs] = [
      { x: { type: "float", dims: [1] } },
      { y: { type: "float", dims: undefined } },
    ] as const;
    const nodes = [
      { op, inputs: op === "Unsqueeze" ? ["w", "axes"] : ["w"], outputs: ["v"] },
      { op: "Mul", inputs: ["v", "x"], outputs: ["y"] },
    ];
    const model = await load(await write({ inputs, outputs, weights, nodes }));
    const of = async (): Promise<number> =>
      Number(((await model.run({ x: [1] })).y as Tensor).sum().itemSync());
    const before = await of();
    const w = model.namedParameters().w as Tensor;
    await w.assign(Tensor.full([1, 2], 16, { dtype: "float32" })).realize();
    expect(await of(), op).toBe(op === "Sqrt" ? 2 * before : 4 * before);
    w.requiresGrad = true;
    ((await model.run({ x: [1] })).y as Tensor).sum().backward();
    expect(w.grad?.shape, op).toEqual([1, 2]);
  }
});

test("overlapping runs of any sizes, of two models", async () => {
  const models = await Promise.all([1, 2].map(async () => load(await bytesOf(twoLayers))));
  const value = ([a, b]: [number, number]): number =>
    a + 0.5 * b + 0.1 + 2 * (-a + 2 * b + 0.2 > 0 ? -a + 2 * b + 0.2 : 0);
  const rows = (n: number): [number, number][] => Array.from({ length: n }, (_, i) => [1 + i, 2]);
  for (let round = 0; round < 4; round++) {
    const runs = [17, 3, 18, 1].flatMap((n) => models.map((m) => [n, m.run({ x: rows(n) })] as const));
    for (const [n, run] of runs) {
      const y = (await ((await run).y as Tensor).tolist()) as number[][];
      expect(y.length).toBe(n);
      expect(y[0]?.[0]).toBeCloseTo(value([1, 2]), 4);
    }
  }
});

test("data with dims is taken as onnxruntime has it; what cannot be a tensor is said of the input", async () => {
  const model = await load(await bytesOf(twoLayers));
  const given = { data: new Float32Array([1, 2, -1, 0.5]), dims: [2, 2] };
  close(await ((await model.run({ x: given })).y as Tensor).tolist(), expected);
  await expect(model.run({ x: [[1, 2], [3]] })).rejects.toThrow(
    /input "x" is refused: .*expected "x": float/,
  );
  await expect(model.run(null as never)).rejects.toThrow("run: got null, expected inputs by name");
});
