// Models whose inputs have sizes that are not fixed, as exporters write them: with arithmetic of shapes.

import { Tensor } from "gradloom";
import type { OnnxGraph, OnnxNode } from "gradloom/onnx";

const ints = (...list: number[]): Tensor => new Tensor(BigInt64Array.from(list, BigInt));
const int = (n: number): Tensor => ints(n).reshape([]);
/** Weights that are the same in every run. */
export const pattern = (...shape: number[]): Tensor => {
  const n = shape.reduce((a, b) => a * b, 1);
  return new Tensor(Float32Array.from({ length: n }, (_, i) => Math.sin(i * 1.7 + n) / 2)).reshape(shape);
};
const node = (op: string, inputs: string, outputs: string, attributes = {}): OnnxNode => {
  const names = (list: string): string[] => list.split(" ").map((name) => (name === "_" ? "" : name));
  return { op, inputs: names(inputs), outputs: names(outputs), attributes };
};

const [WIDTH, HEADS, ROWS] = [32, 4, 64];
/** Layer normalisation in its parts. */
const normalized = (x: string, y: string): OnnxNode[] => [
  node("ReduceMean", `${x} last`, `${y}m`, { keepdims: true }),
  node("Sub", `${x} ${y}m`, `${y}c`),
  node("Mul", `${y}c ${y}c`, `${y}q`),
  node("ReduceMean", `${y}q last`, `${y}v`, { keepdims: true }),
  node("Add", `${y}v epsilon`, `${y}w`),
  node("Sqrt", `${y}w`, `${y}s`),
  node("Div", `${y}c ${y}s`, y),
];
/** [batch, length, width] -> [batch, heads, length, width / heads], with a shape that is put together. */
const heads = (x: string, y: string): OnnxNode[] => [
  node("Reshape", `${x} split`, `${y}r`),
  node("Transpose", `${y}r`, y, { perm: [0, 2, 1, 3] }),
];
/** A layer of BERT. */
export const bert: OnnxGraph = {
  inputs: {
    ids: { type: "int64", dims: ["batch", "length"] },
    mask: { type: "int64", dims: ["batch", "length"] },
  },
  outputs: { y: { type: "float", dims: ["batch", "length", WIDTH] }, pooled: { type: "float" } },
  weights: {
    words: pattern(50, WIDTH),
    places: pattern(ROWS, WIDTH),
    numbers: ints(...Array(ROWS).keys()).reshape([1, ROWS]),
    wq: pattern(WIDTH, WIDTH),
    wk: pattern(WIDTH, WIDTH).mul(0.7),
    wv: pattern(WIDTH, WIDTH).mul(1.3),
    zero: int(0),
    one: int(1),
    zeros: ints(0),
    ones: ints(1),
    last: ints(-1),
    second: ints(1),
    heads: ints(HEADS),
    wide: ints(WIDTH / HEADS),
    whole: ints(WIDTH),
    epsilon: new Tensor([1e-5]),
    lowest: new Tensor([-1e9], { dtype: "float32" }),
    unit: new Tensor([1], { dtype: "float32" }),
    root: new Tensor([Math.sqrt(WIDTH / HEADS)]),
  },
  nodes: [
    node("Shape", "ids", "shape"),
    node("Gather", "shape zero", "batch", { axis: 0 }),
    node("Gather", "shape one", "length", { axis: 0 }),
    node("Unsqueeze", "batch zeros", "batch1"),
    node("Unsqueeze", "length zeros", "length1"),
    node("Concat", "batch1 length1 heads wide", "split", { axis: 0 }),
    node("Concat", "batch1 length1 whole", "join", { axis: 0 }),
    node("Concat", "batch1 ones length1 length1", "square", { axis: 0 }),
    node("Slice", "numbers zeros length1 second", "at"),
    node("Gather", "words ids", "word", { axis: 0 }),
    node("Gather", "places at", "place", { axis: 0 }),
    node("Add", "word place", "embedded"),
    ...normalized("embedded", "x"),
    node("Cast", "mask", "floats", { to: 1 }),
    node("Unsqueeze", "floats zeros", "floats0"),
    node("Reshape", "floats row", "floats1"),
    node("Concat", "batch1 ones ones length1", "row", { axis: 0 }),
    node("Expand", "floats1 square", "shown"),
    node("Sub", "unit shown", "hidden"),
    node("Mul", "hidden lowest", "bias"),
    ...["q", "k", "v"].flatMap((n) => [node("MatMul", `x w${n}`, `${n}x`), ...heads(`${n}x`, n)]),
    node("Transpose", "k", "kt", { perm: [0, 1, 3, 2] }),
    node("MatMul", "q kt", "products"),
    node("Div", "products root", "scaled"),
    node("Add", "scaled bias", "scores"),
    node("Softmax", "scores", "shares", { axis: -1 }),
    node("MatMul", "shares v", "mixed"),
    node("Transpose", "mixed", "turned", { perm: [0, 2, 1, 3] }),
    node("Reshape", "turned join", "joined"),
    node("Add", "joined x", "sum"),
    ...normalized("sum", "y"),
    node("ReduceMean", "y second", "pooled", { keepdims: false }),
  ],
};

/** Convolutions, pooling, and a layer behind a Reshape of the batch and the rest. */
export const pictures: OnnxGraph = {
  inputs: { x: { type: "float", dims: ["n", 3, 8, 8] } },
  outputs: { y: { type: "float", dims: ["n", 5] } },
  weights: {
    w: pattern(4, 3, 3, 3),
    b: pattern(4),
    v: pattern(6, 4, 3, 3),
    u: pattern(54, 5),
    zero: int(0),
    zeros: ints(0),
    rest: ints(-1),
    scale: pattern(4),
    mean: pattern(4),
    spread: new Tensor([1, 2, 3, 4], { dtype: "float32" }),
  },
  nodes: [
    node("Conv", "x w b", "a", { pads: [1, 1, 1, 1] }),
    node("BatchNormalization", "a scale b mean spread", "normal"),
    node("Relu", "normal", "r"),
    node("MaxPool", "r", "p", { kernel_shape: [2, 2], strides: [2, 2] }),
    node("Conv", "p v", "c", { pads: [1, 1, 0, 0] }),
    node("AveragePool", "c", "d", {
      kernel_shape: [2, 2],
      pads: [1, 1, 1, 1],
      strides: [1, 1],
      count_include_pad: false,
    }),
    node("Slice", "d from to axes", "e"),
    node("Shape", "e", "s"),
    node("Gather", "s zero", "n", { axis: 0 }),
    node("Unsqueeze", "n zeros", "n1"),
    node("Concat", "n1 rest", "to2", { axis: 0 }),
    node("Reshape", "e to2", "flat"),
    node("Gemm", "flat u", "y"),
  ],
};
Object.assign(pictures.weights ?? {}, { from: ints(0, 0), to: ints(3, 3), axes: ints(2, 3) });

/** A causal mask from a Range, what is before the present one in a cache, and other uses of a length. */
export const cached: OnnxGraph = {
  inputs: {
    x: { type: "float", dims: ["batch", "now", 8] },
    past: { type: "float", dims: ["batch", "before", 8] },
  },
  outputs: {
    y: { type: "float", dims: ["batch", "now", 8] },
    present: { type: "float" },
    n: { type: "int64" },
  },
  weights: {
    zero: int(0),
    one: int(1),
    oneOf: ints(1),
    zeroOf: ints(0),
    lowest: new Tensor([-1e9], { dtype: "float32" }),
    none: new Tensor([0], { dtype: "float32" }),
  },
  nodes: [
    node("Concat", "past x", "present", { axis: 1 }),
    node("Shape", "present", "ps"),
    node("Shape", "x", "xs"),
    node("Gather", "ps one", "total", { axis: 0 }),
    node("Gather", "xs one", "now", { axis: 0 }),
    node("Sub", "total now", "before"),
    node("Range", "before total one", "rows"),
    node("Range", "zero total one", "columns"),
    node("Unsqueeze", "rows oneOf", "rows1"),
    node("Greater", "columns rows1", "isLater"),
    node("Where", "isLater lowest none", "bias"),
    node("Transpose", "present", "turned", { perm: [0, 2, 1] }),
    node("MatMul", "x turned", "products"),
    node("Add", "products bias", "scores"),
    node("Softmax", "scores", "shares", { axis: -1 }),
    node("MatMul", "shares present", "y0"),
    node("ConstantOfShape", "xs", "zeros"),
    node("Add", "y0 zeros", "y"),
    node("Size", "present", "n0"),
    node("Mul", "n0 one", "n"),
  ],
};

/** What is not zero: how much it is depends on the elements. */
export const found: OnnxGraph = {
  inputs: { x: { type: "float", dims: ["n"] } },
  outputs: { at: { type: "int64" } },
  nodes: [node("NonZero", "x", "at")],
};
/** At most four of the elements, and as many of each row. */
export const firsts: OnnxGraph = {
  inputs: { x: { type: "float", dims: ["n"] }, w: { type: "float", dims: ["m"] } },
  outputs: { y: { type: "float" }, sum: { type: "float" } },
  weights: { zero: ints(0), four: ints(4) },
  nodes: [node("Slice", "x zero four", "y"), node("Add", "x w", "sum")],
};
