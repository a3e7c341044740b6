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

export const bytesOf = (graph: OnnxGraph, opset?: number): Promise<Uint8Array> =>
  write(graph, opset === undefined ? {} : { opset });
