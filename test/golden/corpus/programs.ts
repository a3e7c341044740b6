// Sixty small tensor programs whose kernels are kept as texts (corpus.test.ts): each family of ops, views,
// reductions, products, casts and what is built of them. In goes a device, out comes a tensor that is not
// computed yet.

import { type DTypeName, nn, Tensor, Variable } from "gradloom";

const device = "JS";
/** An input: its values do not matter, so they are never made. */
const given = (shape: readonly number[], dtype: DTypeName = "float32"): Tensor =>
  Tensor.empty([...shape], { device, dtype });
const x = given([4, 8]);
const y = given([4, 8]);
const row = given([8]);
const square = given([6, 6]);
const image = given([1, 2, 6, 6]);
const ints = given([4, 8], "int32");
const others = given([4, 8], "int32");
const bools = given([4, 8], "bool");
const half = given([16], "float16");
const n = Variable("n", 1, 4).bind(3);

function embedding(indices: Tensor, weight: Tensor): Tensor {
  const layer = new nn.Embedding(6, 4);
  layer.weight = weight;
  return layer.forward(indices);
}
function gradient(input: Tensor, weight: Tensor): Tensor {
  weight.requiresGrad = true;
  input.matmul(weight).relu().sum().backward();
  return weight.grad as Tensor;
}

export const PROGRAMS: Readonly<Record<string, () => Tensor>> = {
  // ---- element by element ----
  "a * b + c": () => x.mul(y).add(row),
  "a / b": () => x.div(y),
  "2 - a": () => x.rsub(2),
  exp: () => x.exp(),
  log: () => x.log(),
  sin: () => x.sin(),
  cos: () => x.cos(),
  "sqrt, rsqrt": () => x.sqrt().add(y.rsqrt()),
  tanh: () => x.tanh(),
  sigmoid: () => x.sigmoid(),
  gelu: () => x.gelu(),
  relu: () => x.relu(),
  "maximum, minimum": () => x.maximum(y).minimum(row),
  clamp: () => x.clamp(-1, 1),
  "abs, sign": () => x.abs().mul(y.sign()),
  "floor, ceil, round": () => x.floor().add(y.ceil()).add(row.round()),
  "x ** 3": () => x.pow(3),
  where: () => x.lt(y).where(x, 0),
  comparisons: () => x.lt(y).add(x.eq(row)).add(x.ge(0.5)),
  "isnan, isinf": () => x.isnan().logicalOr(y.isinf()),
  // ---- integers and bools ----
  "integer quotient, remainder": () => ints.floorDivide(others).add(ints.remainder(7)),
  bits: () => ints.bitwiseAnd(others).bitwiseXor(others.lshift(3)).bitwiseOr(ints.rshift(2)),
  "uint8 wraps": () => given([16], "uint8").add(200).mul(3),
  int64: () =>
    given([16], "int64")
      .mul(3)
      .sub(2 ** 40),
  "integer maximum": () => ints.maximum(others).neg(),
  "and, or, not": () => bools.logicalAnd(ints.ne(0)).logicalNot(),
  // ---- types ----
  "int32 to float32": () => ints.cast("float32"),
  "float32 to int32": () => x.cast("int32"),
  "float32 to uint8": () => x.cast("uint8"),
  "float16 arithmetic": () => half.mul(half).add(1),
  "float16 to float32": () => half.cast("float32"),
  bfloat16: () => given([16], "bfloat16").cast("float32"),
  bitcast: () => x.bitcast("int32").add(1).bitcast("float32"),
  // ---- views ----
  transpose: () => square.permute(1, 0).add(1),
  expand: () => row.reshape([8, 1]).expand([8, 4]).add(1),
  "pad": () => square.pad([[1, 2], [0, 1]]).mul(2), // biome-ignore format: one line
  "shrink, flip": () => square.shrink([[1, 5], [0, 3]]).flip(0).add(1), // biome-ignore format: one line
  "every second": () =>
    row
      .reshape([4, 2])
      .shrink([null, [0, 1]])
      .add(1),
  cat: () => Tensor.cat([x, y], 1),
  stack: () => Tensor.stack([row, row.add(1)]),
  "lower triangle": () => square.tril(),
  "a symbolic size": () => x.shrink([[0, n], null]).mul(2),
  // ---- reductions ----
  sum: () => x.sum(),
  "sum of rows": () => x.sum(1),
  "sum of columns": () => x.sum(0),
  mean: () => x.mean(0),
  max: () => x.max(1),
  "min of integers": () => ints.min(1),
  any: () => bools.any(1),
  var: () => x.var(1),
  "sum of float16": () => half.sum(),
  argmax: () => x.argmax(1),
  cumsum: () => row.cumsum(0),
  // ---- products and what is built of them ----
  dot: () => row.dot(row.add(1)),
  matmul: () => square.matmul(square.permute(1, 0)),
  "matmul, bias, relu": () => x.linear(given([4, 8]), given([4])).relu(),
  conv2d: () => image.conv2d(given([3, 2, 3, 3])),
  "conv2d, padding, stride": () => image.conv2d(given([2, 2, 3, 3]), undefined, { stride: 2, padding: 1 }),
  maxPool2d: () => image.maxPool2d(2),
  avgPool2d: () => image.avgPool2d(2),
  // ---- networks ----
  softmax: () => x.softmax(),
  logSoftmax: () => x.logSoftmax(),
  layerNorm: () => x.layerNorm([8]),
  "cross entropy": () => x.sparseCategoricalCrossentropy(given([4], "int32")),
  embedding: () => embedding(given([3], "int32"), given([6, 4])),
  arange: () => Tensor.arange(16, { device }).mul(2),
  oneHot: () => given([4], "int32").oneHot(5),
  gather: () => x.gather(1, given([4, 2], "int32")),
  random: () => Tensor.rand([8], { device }),
  "a gradient": () => gradient(given([4, 8]), given([8, 2])),
};
