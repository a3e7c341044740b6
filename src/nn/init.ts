// Initial values of parameters, with the names and formulas of torch.nn.init: each function writes new values
// into the tensor it is given, in its dtype and on its device, and returns it. Random ones depend on
// Tensor.manualSeed. Fans are those of weights [out, in, ...window], as the layers of nn have them.

import { camel } from "../arguments.ts";
import { dtypes } from "../dtype.ts";
import { ArgumentError, DTypeError, ShapeError } from "../errors.ts";
import { prod, range } from "../helpers.ts";
import { qr } from "../tensor/linalg/factor.ts";
import { clamp } from "../tensor/math/rounding.ts";
import { erfinv } from "../tensor/math/special.ts";
import { diagonal } from "../tensor/movement/rearrange.ts";
import { argsort } from "../tensor/reduce/order.ts";
import { showShape } from "../tensor/show.ts";
import { Tensor } from "../tensor/tensor.ts";
import { checkOptions } from "./options.ts";

export type Nonlinearity =
  | "linear"
  | "conv1d"
  | "conv2d"
  | "conv3d"
  | "sigmoid"
  | "tanh"
  | "relu"
  | "leakyRelu"
  | "leaky_relu"
  | "selu";

export interface KaimingOptions {
  /** the negative slope of the leaky relu that follows; default: 0 */
  readonly a?: number;
  /** which variance is kept: that of the forward or of the backward pass; default: "fanIn" */
  readonly mode?: "fanIn" | "fanOut" | "fan_in" | "fan_out";
  /** what follows the layer; default: "leakyRelu" */
  readonly nonlinearity?: Nonlinearity;
}

/** Writes `value` into `t`, in memory of its own. */
function put(name: string, t: Tensor, value: () => Tensor): Tensor {
  if (!(t instanceof Tensor)) {
    throw new ArgumentError(`init.${name}: got ${typeof t}, expected a Tensor such as layer.weight`);
  }
  if (t.context !== undefined) {
    throw new ArgumentError(`init.${name}: the tensor was computed from others; expected a parameter`);
  }
  if (!t.dtype.isFloat) {
    throw new DTypeError(`init.${name}: the tensor is ${t.dtype.name}, expected a float dtype`);
  }
  return Tensor.noGrad(() => t.assign(value().cast(t.dtype).placedLike(t).contiguous()));
}
const shapeOf = (name: string, t: Tensor): readonly number[] => {
  if (t instanceof Tensor) return t.shape;
  throw new ArgumentError(`init.${name}: got ${typeof t}, expected a Tensor such as layer.weight`);
};
/** Draws are made in float32 where the tensor is narrower; float64 keeps its digits. */
const drawOptions = (t: Tensor) => ({
  dtype: t.dtype === dtypes.float64 ? t.dtype : dtypes.float32,
  device: t.devices[0] as string,
});
function finite(name: string, numbers: Readonly<Record<string, number>>): void {
  for (const [key, x] of Object.entries(numbers)) {
    if (typeof x !== "number" || !Number.isFinite(x)) {
      throw new ArgumentError(`init.${name}: ${key} is ${String(x)}, expected a finite number`);
    }
  }
}
function fans(name: string, t: Tensor): { fanIn: number; fanOut: number } {
  const [out, inputs, ...window] = shapeOf(name, t);
  if (out === undefined || inputs === undefined) {
    throw new ShapeError(
      `init.${name}: shape ${showShape(t.shape)} has no inputs and outputs; it takes at least 2 dims`,
    );
  }
  return { fanIn: inputs * prod(window), fanOut: out * prod(window) };
}

const GAINS: Readonly<Record<Exclude<Nonlinearity, "leakyRelu" | "leaky_relu">, number>> = {
  linear: 1,
  conv1d: 1,
  conv2d: 1,
  conv3d: 1,
  sigmoid: 1,
  tanh: 5 / 3,
  relu: Math.SQRT2,
  selu: 3 / 4,
};

/**
 * The factor by which weights before a nonlinearity are scaled; `param` is the slope of a leaky relu.
 * @example
 * nn.init.calculateGain("leakyRelu", 0) // => 1.41421
 */
export function calculateGain(nonlinearity: Nonlinearity, param = 0.01): number {
  if (nonlinearity === "leakyRelu" || nonlinearity === "leaky_relu")
    return Math.sqrt(2 / (1 + param * param));
  if (Object.hasOwn(GAINS, nonlinearity)) return GAINS[nonlinearity];
  throw new ArgumentError(
    `init.calculateGain: nonlinearity is ${String(nonlinearity)}, expected ${Object.keys(GAINS).join(", ")} or leakyRelu`,
  );
}

/**
 * Even between `a` and `b`.
 * @example
 * nn.init.uniform_(new nn.Linear(4, 2).weight, -0.1, 0.1).shape // => [2, 4]
 */
export function uniform_(tensor: Tensor, a = 0, b = 1): Tensor {
  finite("uniform_", { a, b });
  return put("uniform_", tensor, () => Tensor.uniform(tensor.shape, a, b, drawOptions(tensor)));
}
/**
 * Normal with the given mean and standard deviation.
 * @example
 * nn.init.normal_(new nn.Linear(4, 2).weight, 0, 0.02).shape // => [2, 4]
 */
export function normal_(tensor: Tensor, mean = 0, std = 1): Tensor {
  finite("normal_", { mean, std });
  return put("normal_", tensor, () => Tensor.normal(mean, std, tensor.shape, drawOptions(tensor)));
}
/**
 * Normal, with everything outside `a` to `b` drawn again.
 * @example
 * const w = nn.init.truncNormal_(Tensor.zeros(100).contiguous(), 0, 1, -0.5, 0.5);
 * await w.abs().max().item() <= 0.5 // => true
 */
export function truncNormal_(tensor: Tensor, mean = 0, std = 1, a = -2, b = 2): Tensor {
  finite("truncNormal_", { mean, std, a, b });
  if (!(a < b)) throw new ArgumentError(`init.truncNormal_: a ${a} is not below b ${b}`);
  // by the inverse of the distribution function, as torch does it
  const [low, high] = [a, b].map((x) => errorFunction((x - mean) / std / Math.SQRT2)) as [number, number];
  return put("truncNormal_", tensor, () => {
    const even = Tensor.uniform(tensor.shape, low, high, drawOptions(tensor));
    return clamp(
      erfinv(even)
        .mul(std * Math.SQRT2)
        .add(mean),
      a,
      b,
    );
  });
}
/** erf of a number, by its series near 0 and its continued fraction far away. */
function errorFunction(x: number): number {
  const z = Math.abs(x);
  if (z > 6) return Math.sign(x);
  if (z > 2.5) {
    const fraction = range(60).reduceRight((f, i) => z + (i + 1) / 2 / f, z);
    return Math.sign(x) * (1 - Math.exp(-z * z) / fraction / Math.sqrt(Math.PI));
  }
  let [term, total] = [z, z];
  for (let n = 1; n < 80; n++) {
    term *= (-z * z) / n;
    total += term / (2 * n + 1);
  }
  return ((Math.sign(x) * 2) / Math.sqrt(Math.PI)) * total;
}
/**
 * One value everywhere.
 * @example
 * await nn.init.constant_(new nn.Linear(1, 2).weight, 0.5).tolist() // => [[0.5], [0.5]]
 */
export function constant_(tensor: Tensor, val: number): Tensor {
  if (typeof val !== "number")
    throw new ArgumentError(`init.constant_: val is ${String(val)}, expected a number`);
  return put("constant_", tensor, () => tensor.detach().fullLike(val));
}
/**
 * Zeros.
 * @example
 * await nn.init.zeros_(new nn.Linear(1, 2).weight).tolist() // => [[0], [0]]
 */
export function zeros_(tensor: Tensor): Tensor {
  return put("zeros_", tensor, () => tensor.detach().fullLike(0));
}
/**
 * Ones.
 * @example
 * await nn.init.ones_(new nn.Linear(1, 2).weight).tolist() // => [[1], [1]]
 */
export function ones_(tensor: Tensor): Tensor {
  return put("ones_", tensor, () => tensor.detach().fullLike(1));
}
/**
 * Ones on the diagonal of a matrix, zeros elsewhere: a layer that keeps its inputs.
 * @example
 * await nn.init.eye_(new nn.Linear(3, 2).weight).tolist() // => [[1, 0, 0], [0, 1, 0]]
 */
export function eye_(tensor: Tensor): Tensor {
  const [rows, columns, ...rest] = shapeOf("eye_", tensor);
  if (rows === undefined || columns === undefined || rest.length > 0) {
    throw new ShapeError(`init.eye_: shape ${showShape(tensor.shape)}, expected 2 dims`);
  }
  return put("eye_", tensor, () => Tensor.eye(rows, columns, drawOptions(tensor)));
}
/**
 * A convolution that keeps its input channels, as many as fit, in each of its groups.
 * @example
 * const conv = new nn.Conv1d(1, 1, 3, { padding: 1, bias: false });
 * nn.init.dirac_(conv.weight);
 * await conv.forward(new Tensor([[[1.5, 2, 3]]])).tolist() // => [[[1.5, 2, 3]]]
 */
export function dirac_(tensor: Tensor, groups = 1): Tensor {
  const [out, inputs, ...window] = shapeOf("dirac_", tensor) as readonly [number, number, ...number[]];
  if (window.length < 1 || window.length > 3) {
    throw new ShapeError(`init.dirac_: shape ${showShape(tensor.shape)}, expected 3, 4 or 5 dims`);
  }
  if (!Number.isInteger(groups) || groups < 1 || out % groups !== 0) {
    throw new ArgumentError(`init.dirac_: groups ${groups} do not divide ${out} output channels`);
  }
  const values = new Float32Array(tensor.size);
  const each = out / groups;
  const middle = window.reduce((at, size) => at * size + Math.floor(size / 2), 0);
  for (const g of range(groups)) {
    for (const i of range(Math.min(each, inputs))) {
      values[((g * each + i) * inputs + i) * prod(window) + middle] = 1;
    }
  }
  const { device } = drawOptions(tensor);
  return put("dirac_", tensor, () => new Tensor(values, { device }).reshape(tensor.shape));
}
/**
 * Even, so that variances keep their size forwards and backwards (Glorot and Bengio 2010).
 * @example
 * nn.init.xavierUniform_(new nn.Linear(4, 2).weight, nn.init.calculateGain("tanh")).shape // => [2, 4]
 */
export function xavierUniform_(tensor: Tensor, gain = 1): Tensor {
  finite("xavierUniform_", { gain });
  const { fanIn, fanOut } = fans("xavierUniform_", tensor);
  const bound = gain * Math.sqrt(6 / (fanIn + fanOut));
  return put("xavierUniform_", tensor, () =>
    Tensor.uniform(tensor.shape, -bound, bound, drawOptions(tensor)),
  );
}
/**
 * As xavierUniform_, normal.
 * @example
 * nn.init.xavierNormal_(new nn.Linear(4, 2).weight).shape // => [2, 4]
 */
export function xavierNormal_(tensor: Tensor, gain = 1): Tensor {
  finite("xavierNormal_", { gain });
  const { fanIn, fanOut } = fans("xavierNormal_", tensor);
  const std = gain * Math.sqrt(2 / (fanIn + fanOut));
  return put("xavierNormal_", tensor, () => Tensor.normal(0, std, tensor.shape, drawOptions(tensor)));
}
function kaimingStd(name: string, tensor: Tensor, options: KaimingOptions): number {
  const {
    a = 0,
    mode = "fanIn",
    nonlinearity = "leakyRelu",
  } = checkOptions(`init.${name}`, options, ["a", "mode", "nonlinearity"]);
  const kept = camel(mode);
  if (kept !== "fanIn" && kept !== "fanOut") {
    throw new ArgumentError(`init.${name}: mode is ${String(mode)}, expected "fanIn" or "fanOut"`);
  }
  return calculateGain(nonlinearity, a) / Math.sqrt(fans(name, tensor)[kept]);
}
/**
 * Even, so that variances keep their size in layers with relu (He et al. 2015).
 * @example
 * nn.init.kaimingUniform_(new nn.Linear(4, 2).weight, { nonlinearity: "relu" }).shape // => [2, 4]
 */
export function kaimingUniform_(tensor: Tensor, options: KaimingOptions = {}): Tensor {
  const bound = Math.sqrt(3) * kaimingStd("kaimingUniform_", tensor, options);
  return put("kaimingUniform_", tensor, () =>
    Tensor.uniform(tensor.shape, -bound, bound, drawOptions(tensor)),
  );
}
/**
 * As kaimingUniform_, normal.
 * @example
 * nn.init.kaimingNormal_(new nn.Linear(4, 2).weight, { mode: "fanOut" }).shape // => [2, 4]
 */
export function kaimingNormal_(tensor: Tensor, options: KaimingOptions = {}): Tensor {
  const std = kaimingStd("kaimingNormal_", tensor, options);
  return put("kaimingNormal_", tensor, () => Tensor.normal(0, std, tensor.shape, drawOptions(tensor)));
}
/**
 * A random matrix [first dim, rest] with orthogonal rows or columns (Saxe et al. 2013).
 * @example
 * const w = nn.init.orthogonal_(new nn.Linear(3, 2).weight);
 * (await w.matmul(w.T).round().tolist()).map((row) => row.map(Math.abs)) // => [[1, 0], [0, 1]]
 */
export function orthogonal_(tensor: Tensor, gain = 1): Tensor {
  finite("orthogonal_", { gain });
  const [rows, ...rest] = shapeOf("orthogonal_", tensor);
  if (rows === undefined || rest.length === 0) {
    throw new ShapeError(`init.orthogonal_: shape ${showShape(tensor.shape)}, expected at least 2 dims`);
  }
  const columns = prod(rest);
  return put("orthogonal_", tensor, () => {
    const [tall, wide] = [Math.max(rows, columns), Math.min(rows, columns)];
    const [q, r] = qr(Tensor.normal(0, 1, [tall, wide], drawOptions(tensor)));
    // the signs of the diagonal make every orthogonal matrix equally likely
    const even = q.mul(diagonal(r).ge(0).where(1, -1));
    return (rows < columns ? even.T : even).mul(gain).reshape(tensor.shape);
  });
}
/**
 * Normal, with a part of the inputs of each output at zero: `sparsity` is that part.
 * @example
 * const w = nn.init.sparse_(new nn.Linear(2, 4).weight, 0.5);
 * (await w.eq(0).sum(0).tolist()) // => [2, 2]
 */
export function sparse_(tensor: Tensor, sparsity: number, std = 0.01): Tensor {
  finite("sparse_", { sparsity, std });
  if (sparsity < 0 || sparsity > 1) {
    throw new ArgumentError(`init.sparse_: sparsity is ${sparsity}, expected a part from 0 to 1`);
  }
  const [rows, columns, ...more] = shapeOf("sparse_", tensor);
  if (rows === undefined || columns === undefined || more.length > 0) {
    throw new ShapeError(`init.sparse_: shape ${showShape(tensor.shape)}, expected 2 dims`);
  }
  return put("sparse_", tensor, () => {
    const options = drawOptions(tensor);
    const order = argsort(Tensor.uniform([rows, columns], 0, 1, options), 0);
    const values = Tensor.normal(0, std, [rows, columns], options);
    return order.lt(Math.ceil(sparsity * rows)).where(0, values);
  });
}
