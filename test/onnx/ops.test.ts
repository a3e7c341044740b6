// The list of ops in the guide, and what the standard's own tests do not look at: old versions of ops,
// strings in ops that only move elements, seeds.

import { Tensor } from "gradloom";
import { load, type OnnxGraph, write } from "gradloom/onnx";
import { expect, test } from "vitest";
import { onnxPage } from "../../scripts/onnxops.ts";
import { OPS_OF_ONNX } from "../../src/onnx/ops/index.ts";
import { mersenne, normal } from "../../src/onnx/ops/mersenne.ts";

test("the guide lists the ops: npm run reference writes it", () => {
  const { now, text } = onnxPage();
  expect(now === text).toBe(true);
  expect(Object.keys(OPS_OF_ONNX).length).toBeGreaterThan(200);
});

test("versions of an op stand in order", () => {
  for (const [name, versions] of Object.entries(OPS_OF_ONNX)) {
    const since = versions.map(([v]) => v);
    expect(since, name).toEqual(since.toSorted((a, b) => a - b));
    expect(new Set(since).size, name).toBe(since.length);
  }
});

type Weights = NonNullable<OnnxGraph["weights"]>;
/** One node on weights: what it gives. */
async function run(
  op: string,
  opset: number,
  weights: Weights,
  attributes = {},
  outputs = ["y"],
): Promise<unknown[]> {
  const graph: OnnxGraph = {
    inputs: {},
    outputs: Object.fromEntries(outputs.map((name) => [name, { type: "float" }])),
    weights,
    nodes: [{ op, inputs: Object.keys(weights), outputs, attributes }],
  };
  const results = await (await load(await write(graph, { opset }))).run();
  return Promise.all(outputs.map((name) => (results[name] as Tensor).tolist()));
}
const floats = (data: number[] | number[][] | number[][][]): Tensor => new Tensor(data, { dtype: "float32" });
const ints = (data: number[]): Tensor => new Tensor(data, { dtype: "int64" });

test("old versions of ops mean what they meant", async () => {
  const x = floats([
    [1, 2],
    [3, 4],
  ]);
  // a broadcast that starts at an axis
  expect(await run("Add", 6, { x, b: floats([10, 20]) }, { broadcast: 1, axis: 0 })).toEqual([
    [
      [11, 12],
      [23, 24],
    ],
  ]);
  // all dims from the axis on are one
  expect(
    await run(
      "Softmax",
      11,
      {
        x: floats([
          [
            [0, 0],
            [0, 0],
          ],
        ]),
      },
      { axis: 1 },
    ),
  ).toEqual([
    [
      [
        [0.25, 0.25],
        [0.25, 0.25],
      ],
    ],
  ]);
  // what became an input was an attribute
  expect(await run("Unsqueeze", 11, { x }, { axes: [0] })).toEqual([
    [
      [
        [1, 2],
        [3, 4],
      ],
    ],
  ]);
  expect(await run("ReduceSum", 11, { x }, { axes: [1], keepdims: 0 })).toEqual([[3, 7]]);
  expect(await run("Slice", 9, { x }, { starts: [0], ends: [1], axes: [1] })).toEqual([[[1], [3]]]);
  expect(await run("Clip", 6, { x }, { min: 2, max: 3 })).toEqual([
    [
      [2, 2],
      [3, 3],
    ],
  ]);
  expect(await run("TopK", 9, { x }, { k: 1 }, ["y", "i"])).toEqual([
    [[2], [4]],
    [[1n], [1n]],
  ]);
  const upsampled = await run("Upsample", 9, { x: x.reshape([1, 1, 2, 2]), s: floats([1, 1, 1, 2]) });
  expect(upsampled.flat(3)).toEqual([
    [1, 1, 2, 2],
    [3, 3, 4, 4],
  ]);
});

test("an op that is newer than the file is named", async () => {
  const weights = { x: floats([1]), cos: floats([1]), sin: floats([1]) };
  await expect(run("RotaryEmbedding", 22, weights)).rejects.toThrow(/since version 23.*wants version 22/);
  await expect(run("Relu", 99, { x: floats([1]) })).rejects.toThrow(/version 99.*up to 28/);
});

test("strings move as numbers do", async () => {
  const graph: OnnxGraph = {
    inputs: { s: { type: "string", dims: [3] } },
    outputs: { y: { type: "string" }, n: { type: "int64" } },
    weights: { i: ints([2, 0]), to: ints([2, 1]) },
    nodes: [
      { op: "Gather", inputs: ["s", "i"], outputs: ["g"] },
      { op: "Reshape", inputs: ["g", "to"], outputs: ["r"] },
      { op: "Concat", inputs: ["r", "r"], outputs: ["y"], attributes: { axis: 1 } },
      { op: "Size", inputs: ["y"], outputs: ["n"] },
    ],
  };
  const model = await load(await write(graph));
  const { y, n } = await model.run({ s: { shape: [3], data: ["a", "b", "c"] } });
  expect(y).toEqual({ shape: [2, 2], data: ["c", "c", "a", "a"] });
  expect(await (n as Tensor).item()).toBe(4n);
  await expect(model.run({ s: [1, 2, 3] })).rejects.toThrow(/expected "s": string\[3\]/);
});

test("a seed means the numbers of the reference", () => {
  // numpy.random.RandomState(0)
  const uniform = mersenne(0);
  expect([uniform(), uniform()]).toEqual([0.5488135039273248, 0.7151893663724195]);
  const gauss = normal(0);
  expect(gauss()).toBeCloseTo(1.764052345967664, 12);
  expect(gauss()).toBeCloseTo(0.4001572083672233, 12);
});

test("random ops without a seed draw anew, in a replay too", async () => {
  const model = await load(
    await write({
      inputs: { x: { type: "float", dims: [64] } },
      outputs: { y: { type: "float" } },
      nodes: [
        { op: "RandomUniformLike", inputs: ["x"], outputs: ["r"] },
        { op: "Add", inputs: ["x", "r"], outputs: ["y"] },
      ],
    }),
  );
  const seen = new Set<string>();
  for (let i = 0; i < 5; i++)
    seen.add(String(await ((await model.run({ x: new Tensor(new Float32Array(64)) })).y as Tensor).tolist()));
  expect(seen.size).toBe(5);
});
