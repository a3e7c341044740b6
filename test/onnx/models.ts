// Small models that the tests of this folder share.

import { Tensor } from "gradloom";
import { type OnnxGraph, write } from "gradloom/onnx";

/** relu(x @ w + b) @ v: two layers. */
export const twoLayers: OnnxGraph = {
  inputs: { x: { type: "float", dims: ["batch", 2] } },
  outputs: { y: { type: "float", dims: ["batch", 1] } },
  weights: {
    w: new Tensor([
      [1, -1, 0.5],
      [0.5, 2, -1],
    ]),
    b: new Tensor([0.1, 0.2, 0.3]),
    v: new Tensor([[1], [2], [3]], { dtype: "float32" }),
  },
  nodes: [
    { op: "Gemm", inputs: ["x", "w", "b"], outputs: ["h"], name: "first" },
    { op: "Relu", inputs: ["h"], outputs: ["a"] },
    { op: "MatMul", inputs: ["a", "v"], outputs: ["y"], name: "second" },
  ],
};

/** Only doubles what is positive; which branch runs is decided by an input. */
export const branches: OnnxGraph = {
  inputs: { x: { type: "float", dims: ["n"] }, isDouble: { type: "bool", dims: [] } },
  outputs: { y: { type: "float", dims: ["n"] } },
  weights: { two: new Tensor([2], { dtype: "float32" }) },
  nodes: [
    {
      op: "If",
      inputs: ["isDouble"],
      outputs: ["y"],
      attributes: {
        then_branch: {
          inputs: {},
          outputs: { t: { type: "float" } },
          nodes: [{ op: "Mul", inputs: ["x", "two"], outputs: ["t"] }],
        },
        else_branch: {
          inputs: {},
          outputs: { e: { type: "float" } },
          nodes: [{ op: "Neg", inputs: ["x"], outputs: ["e"] }],
        },
      },
    },
  ],
};

/** Flattens all but the first dim, as exporters write it: with the arithmetic of shapes. */
export const flattens: OnnxGraph = {
  inputs: { x: { type: "float", dims: ["n", "a", "b"] } },
  outputs: { y: { type: "float" } },
  weights: {
    zero: new Tensor(new BigInt64Array([0n])).reshape([]),
    minus: new Tensor(new BigInt64Array([-1n])),
    axis: new Tensor(new BigInt64Array([0n])),
  },
  nodes: [
    { op: "Shape", inputs: ["x"], outputs: ["s"] },
    { op: "Gather", inputs: ["s", "zero"], outputs: ["n"], attributes: { axis: 0 } },
    { op: "Unsqueeze", inputs: ["n", "axis"], outputs: ["n1"] },
    { op: "Concat", inputs: ["n1", "minus"], outputs: ["to"], attributes: { axis: 0 } },
    { op: "Reshape", inputs: ["x", "to"], outputs: ["r"] },
    { op: "Exp", inputs: ["r"], outputs: ["y"] },
  ],
};

/** A convolution of 8-bit numbers with a scale for each channel, and pooling, as quantisers write them. */
export const quantised: OnnxGraph = {
  inputs: { x: { type: "float", dims: [1, 2, 4, 4] } },
  outputs: { y: { type: "float", dims: [1, 2, 2, 2] } },
  weights: {
    scale: new Tensor(0.1),
    zero: new Tensor(3, { dtype: "uint8" }),
    w: new Tensor(
      Array.from({ length: 4 }, (_, i) => i - 2),
      { dtype: "int8" },
    ).reshape([2, 2, 1, 1]),
    scales: new Tensor([0.5, 0.25]),
    zeros: new Tensor([0, 0], { dtype: "int8" }),
  },
  nodes: [
    { op: "QuantizeLinear", inputs: ["x", "scale", "zero"], outputs: ["q"] },
    {
      op: "QLinearConv",
      inputs: ["q", "scale", "zero", "w", "scales", "zeros", "scale", "zero"],
      outputs: ["c"],
      attributes: { strides: [1, 1], pads: [0, 0, 0, 0], group: 1 },
    },
    { op: "DequantizeLinear", inputs: ["c", "scale", "zero"], outputs: ["d"] },
    { op: "MaxPool", inputs: ["d"], outputs: ["y"], attributes: { kernel_shape: [2, 2], strides: [2, 2] } },
  ],
};

/** A recurrence, a loop over its steps, and rows picked by what is largest. */
export const steps: OnnxGraph = {
  inputs: { x: { type: "float", dims: [3, 1, 2] } },
  outputs: { y: { type: "float" }, best: { type: "int64" }, total: { type: "float" } },
  weights: {
    w: new Tensor(Array.from({ length: 16 }, (_, i) => i / 16)).reshape([1, 8, 2]),
    r: new Tensor(Array.from({ length: 16 }, (_, i) => -i / 16)).reshape([1, 8, 2]),
    count: new Tensor(3, { dtype: "int64" }),
    go: new Tensor(true),
    start: new Tensor(0, { dtype: "float32" }),
    one: new Tensor([1], { dtype: "int64" }),
  },
  nodes: [
    { op: "LSTM", inputs: ["x", "w", "r"], outputs: ["y", "", "c"], attributes: { hidden_size: 2 } },
    { op: "TopK", inputs: ["c", "one"], outputs: ["v", "best"], attributes: { axis: -1 } },
    {
      op: "Loop",
      inputs: ["count", "go", "start"],
      outputs: ["total"],
      attributes: {
        body: {
          inputs: {
            i: { type: "int64", dims: [] },
            on: { type: "bool", dims: [] },
            sum: { type: "float", dims: [] },
          },
          outputs: { still: { type: "bool" }, next: { type: "float" } },
          nodes: [
            { op: "Identity", inputs: ["on"], outputs: ["still"] },
            { op: "Gather", inputs: ["x", "i"], outputs: ["row"] },
            { op: "ReduceSum", inputs: ["row"], outputs: ["s"], attributes: { keepdims: 0 } },
            { op: "Add", inputs: ["sum", "s"], outputs: ["next"] },
          ],
        },
      },
    },
  ],
};

export const bytesOf = (graph: OnnxGraph, opset?: number): Promise<Uint8Array> =>
  write(graph, opset === undefined ? {} : { opset });
