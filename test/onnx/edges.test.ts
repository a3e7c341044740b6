// What a comparison with onnxruntime found, and corners that it does not look at.

import { Tensor } from "gradloom";
import { load, type OnnxGraph, write } from "gradloom/onnx";
import { expect, test } from "vitest";
import { whyClosed } from "../devices/webgpu/swiftshader.ts";

type Weights = NonNullable<OnnxGraph["weights"]>;
/** One node; the first of its inputs is given to the run if `isFed`. */
async function run(
  op: string,
  opset: number,
  weights: Weights,
  attributes = {},
  isFed = false,
): Promise<Tensor> {
  const [first = ""] = Object.keys(weights);
  const fed = weights[first] as Tensor;
  const { [first]: _, ...rest } = weights;
  const graph: OnnxGraph = {
    inputs: isFed ? { [first]: { type: "float", dims: [...(fed.shape as number[])] } } : {},
    outputs: { y: { type: "float" } },
    weights: isFed ? rest : weights,
    nodes: [{ op, inputs: Object.keys(weights), outputs: ["y"], attributes }],
  };
  const model = await load(await write(graph, { opset }));
  return (await model.run(isFed ? { [first]: fed } : {})).y as Tensor;
}
const floats = (...data: number[]): Tensor => new Tensor(data, { dtype: "float32" });
const ints = (...data: number[]): Tensor => new Tensor(data, { dtype: "int64" });

test("a slice backwards that starts before the first element starts at it", async () => {
  for (const isFed of [false, true]) {
    const y = await run(
      "Slice",
      13,
      { x: floats(1, 2, 3), s: ints(-8), e: ints(-9), a: ints(0), step: ints(-2) },
      {},
      isFed,
    );
    expect(await y.tolist()).toEqual([1]);
  }
});

test("a sum over no axes leaves the list, known on the host or not", async () => {
  for (const isFed of [false, true]) {
    const attributes = { keepdims: 0, noop_with_empty_axes: 1 };
    const y = await run("ReduceSum", 13, { x: floats(1, 2) }, attributes, isFed);
    expect(await y.tolist()).toEqual([1, 2]);
  }
});

test("softmax of nothing, and Hardmax, are nothing", async () => {
  const x = Tensor.zeros([3, 0, 4]);
  for (const op of ["Softmax", "LogSoftmax", "Hardmax"]) {
    for (const [opset, axis] of [
      [11, 1],
      [13, 1],
      [13, -1],
    ] as const)
      expect((await run(op, opset, { x }, { axis }, true)).shape).toEqual([3, 0, 4]);
  }
});

test("SAME padding of a ConvTranspose cuts nothing off where the kernel is shorter than the stride", async () => {
  const weights = { x: floats(1, 2).reshape([1, 1, 2]), w: floats(3).reshape([1, 1, 1]) };
  const y = await run("ConvTranspose", 11, weights, { auto_pad: "SAME_UPPER", strides: [2] });
  expect(await y.tolist()).toEqual([[[3, 0, 6]]]);
});

test("functions of a GRU that have an alpha take the numbers in turn", async () => {
  const weights = {
    x: floats(1).reshape([1, 1, 1]),
    w: floats(0, 0, -1).reshape([1, 3, 1]),
    r: floats(0, 0, 0).reshape([1, 3, 1]),
  };
  const attributes = { hidden_size: 1, activations: ["Sigmoid", "LeakyRelu"], activation_alpha: [0.5] };
  // the sigmoid of 0 is 1/2, and has no alpha
  expect((await (await run("GRU", 14, weights, attributes)).tolist()) as unknown).toEqual([[[[-0.25]]]]);
});

test("SimplifiedLayerNormalization goes from its axis on", async () => {
  const x = floats(1, 2, 3, 4).reshape([1, 2, 2]);
  const weights = { x, scale: Tensor.ones([2, 2]) };
  const y = await run("SimplifiedLayerNormalization", 17, weights, { axis: 1, epsilon: 0 });
  const size = Math.sqrt(30 / 4);
  ((await y.tolist()) as number[][][]).flat(2).forEach((v, i) => {
    expect(v).toBeCloseTo((i + 1) / size, 5);
  });
});

test("an op that the file's version of the standard lacks is refused", async () => {
  await expect(run("Celu", 11, { x: floats(1) })).rejects.toThrow(
    /Celu.*since version 12.*the file wants version 11/,
  );
  expect(await (await run("Celu", 12, { x: floats(1) })).tolist()).toEqual([1]);
  // optimisers wrote this one before the standard had it
  const weights = { x: floats(1, 3), scale: floats(1, 1) };
  expect((await run("LayerNormalization", 11, weights)).shape).toEqual([2]);
});

test("numbers of a seed need no doubles on the device", async ({ skip }) => {
  const why = await whyClosed();
  skip(why !== undefined, why);
  const attributes = { shape: [2], seed: 0, low: 1, high: 3 };
  const graph: OnnxGraph = {
    inputs: {},
    outputs: { y: { type: "float" } },
    nodes: [{ op: "RandomUniform", inputs: [], outputs: ["y"], attributes }],
  };
  const { y } = await (await load(await write(graph), { device: "WEBGPU" })).run();
  // numpy.random.RandomState(0)
  const wanted = [0.5488135039273248, 0.7151893663724195].map((u) => Math.fround(1 + 2 * u));
  expect(await (y as Tensor).tolist()).toEqual(wanted);
});
