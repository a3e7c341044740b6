// Activations as layers, with torch's names: for nn.Sequential and for fields of a model. Each has torch's
// argument, by position or by name: `new nn.Softmax(1)` and `new nn.Softmax({ dim: 1 })` are the same.
// In: a tensor. Out: what the method of Tensor gives.

import { ArgumentError } from "../errors.ts";
import { sigmoid, tanh } from "../tensor/math/elementary.ts";
import { elu, gelu, hardtanh, leakyRelu, relu, silu } from "../tensor/neural/activations.ts";
import {
  celu,
  glu,
  hardshrink,
  hardsigmoid,
  hardswish,
  mish,
  relu6,
  selu,
  softshrink,
  softsign,
  tanhshrink,
  threshold,
} from "../tensor/neural/further.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { filled, type LayerOptions, positive } from "./layers.ts";
import { logSoftmax, logsigmoid, prelu, softmax, softmin, softplus } from "./operations.ts";
import { checkOptions } from "./options.ts";

/** A number, or an object with it under its name. */
type NumberOrOption<K extends string> = number | { readonly [P in K]?: number };

/** The number `name` that was given by position or by name. */
function given<K extends string>(layer: string, name: K, x: NumberOrOption<K>, usual: number): number {
  if (typeof x === "number" && !Number.isNaN(x)) return x;
  if (typeof x !== "object" || x === null || Array.isArray(x)) {
    throw new ArgumentError(`${layer}: ${name} is ${String(x)}, expected a number or { ${name} }`);
  }
  const { [name]: value } = checkOptions(layer, x, [name]);
  return value === undefined ? usual : given(layer, name, value, usual);
}

/**
 * max(x, 0).
 * @example
 * await new nn.ReLU().forward(new Tensor([-1.5, 2])).tolist() // => [0, 2]
 */
export class ReLU {
  forward(x: Tensor): Tensor {
    return relu(x);
  }
}
/**
 * min(max(x, 0), 6).
 * @example
 * await new nn.ReLU6().forward(new Tensor([-1.5, 8])).tolist() // => [0, 6]
 */
export class ReLU6 {
  forward(x: Tensor): Tensor {
    return relu6(x);
  }
}
/**
 * x where it is above 0, and a small part of it below.
 * @example
 * await new nn.LeakyReLU(0.5).forward(new Tensor([-1.5, 2])).tolist() // => [-0.75, 2]
 */
export class LeakyReLU {
  readonly negativeSlope: number;
  constructor(negativeSlope: NumberOrOption<"negativeSlope"> = 0.01) {
    this.negativeSlope = given("LeakyReLU", "negativeSlope", negativeSlope, 0.01);
  }
  forward(x: Tensor): Tensor {
    return leakyRelu(x, this.negativeSlope);
  }
}
/**
 * x above 0, and alpha (exp(x) - 1) below.
 * @example
 * await new nn.ELU().forward(new Tensor([0.5, 2])).tolist() // => [0.5, 2]
 */
export class ELU {
  readonly alpha: number;
  constructor(alpha: NumberOrOption<"alpha"> = 1) {
    this.alpha = given("ELU", "alpha", alpha, 1);
  }
  forward(x: Tensor): Tensor {
    return elu(x, this.alpha);
  }
}
/**
 * x above 0, and alpha (exp(x / alpha) - 1) below.
 * @example
 * await new nn.CELU(2).forward(new Tensor([0.5, 2])).tolist() // => [0.5, 2]
 */
export class CELU {
  readonly alpha: number;
  constructor(alpha: NumberOrOption<"alpha"> = 1) {
    this.alpha = given("CELU", "alpha", alpha, 1);
  }
  forward(x: Tensor): Tensor {
    return celu(x, this.alpha);
  }
}
/**
 * ELU with the constants that keep mean 0 and variance 1.
 * @example
 * await new nn.SELU().forward(new Tensor([0, 1.0])).tolist() // => [0, 1.0507]
 */
export class SELU {
  forward(x: Tensor): Tensor {
    return selu(x);
  }
}
/**
 * x sigmoid(x), also known as swish.
 * @example
 * await new nn.SiLU().forward(new Tensor([0, 1.0])).tolist() // => [0, 0.7311]
 */
export class SiLU {
  forward(x: Tensor): Tensor {
    return silu(x);
  }
}
/**
 * x tanh(softplus(x)).
 * @example
 * await new nn.Mish().forward(new Tensor([0, 1.0])).tolist() // => [0, 0.8651]
 */
export class Mish {
  forward(x: Tensor): Tensor {
    return mish(x);
  }
}
/**
 * 1 / (1 + exp(-x)).
 * @example
 * await new nn.Sigmoid().forward(new Tensor([0.0])).tolist() // => [0.5]
 */
export class Sigmoid {
  forward(x: Tensor): Tensor {
    return sigmoid(x);
  }
}
/**
 * The logarithm of the sigmoid.
 * @example
 * await new nn.LogSigmoid().forward(new Tensor([0.0])).tolist() // => [-0.6931]
 */
export class LogSigmoid {
  forward(x: Tensor): Tensor {
    return logsigmoid(x);
  }
}
/**
 * The hyperbolic tangent.
 * @example
 * await new nn.Tanh().forward(new Tensor([0, 1.0])).tolist() // => [0, 0.7616]
 */
export class Tanh {
  forward(x: Tensor): Tensor {
    return tanh(x);
  }
}
/**
 * x / (1 + |x|).
 * @example
 * await new nn.Softsign().forward(new Tensor([-1.0, 3])).tolist() // => [-0.5, 0.75]
 */
export class Softsign {
  forward(x: Tensor): Tensor {
    return softsign(x);
  }
}
/**
 * A sigmoid of straight lines.
 * @example
 * await new nn.Hardsigmoid().forward(new Tensor([-4.0, 0, 4])).tolist() // => [0, 0.5, 1]
 */
export class Hardsigmoid {
  forward(x: Tensor): Tensor {
    return hardsigmoid(x);
  }
}
/**
 * x times the hard sigmoid.
 * @example
 * await new nn.Hardswish().forward(new Tensor([-4.0, 0, 4])).tolist() // => [0, 0, 4]
 */
export class Hardswish {
  forward(x: Tensor): Tensor {
    return hardswish(x);
  }
}
/**
 * x - tanh(x).
 * @example
 * await new nn.Tanhshrink().forward(new Tensor([1.0])).tolist() // => [0.2384]
 */
export class Tanhshrink {
  forward(x: Tensor): Tensor {
    return tanhshrink(x);
  }
}
/**
 * Moves towards 0 by lambd, and not past it.
 * @example
 * await new nn.Softshrink().forward(new Tensor([-2.5, 0.25])).tolist() // => [-2, 0]
 */
export class Softshrink {
  readonly lambd: number;
  constructor(lambd: NumberOrOption<"lambd"> = 0.5) {
    this.lambd = given("Softshrink", "lambd", lambd, 0.5);
  }
  forward(x: Tensor): Tensor {
    return softshrink(x, this.lambd);
  }
}
/**
 * 0 between -lambd and lambd, x elsewhere.
 * @example
 * await new nn.Hardshrink().forward(new Tensor([-2.5, 0.25])).tolist() // => [-2.5, 0]
 */
export class Hardshrink {
  readonly lambd: number;
  constructor(lambd: NumberOrOption<"lambd"> = 0.5) {
    this.lambd = given("Hardshrink", "lambd", lambd, 0.5);
  }
  forward(x: Tensor): Tensor {
    return hardshrink(x, this.lambd);
  }
}
/**
 * The first half of a dim times the sigmoid of the second.
 * @example
 * await new nn.GLU().forward(new Tensor([3.0, 0])).tolist() // => [1.5]
 */
export class GLU {
  readonly dim: number;
  constructor(dim: NumberOrOption<"dim"> = -1) {
    this.dim = given("GLU", "dim", dim, -1);
  }
  forward(x: Tensor): Tensor {
    return glu(x, this.dim);
  }
}
/**
 * Softmax of -x.
 * @example
 * await new nn.Softmin().forward(new Tensor([2.0, 2])).tolist() // => [0.5, 0.5]
 */
export class Softmin {
  readonly dim: number;
  constructor(dim: NumberOrOption<"dim"> = -1) {
    this.dim = given("Softmin", "dim", dim, -1);
  }
  forward(x: Tensor): Tensor {
    return softmin(x, this.dim);
  }
}
/**
 * Positive numbers of sum 1 along a dim.
 * @example
 * await new nn.Softmax(1).forward(new Tensor([[2.0, 2]])).tolist() // => [[0.5, 0.5]]
 */
export class Softmax {
  readonly dim: number;
  constructor(dim: NumberOrOption<"dim"> = -1) {
    this.dim = given("Softmax", "dim", dim, -1);
  }
  forward(x: Tensor): Tensor {
    return softmax(x, this.dim);
  }
}
/**
 * The logarithm of softmax.
 * @example
 * await new nn.LogSoftmax(1).forward(new Tensor([[2.0, 2]])).tolist() // => [[-0.6931, -0.6931]]
 */
export class LogSoftmax {
  readonly dim: number;
  constructor(dim: NumberOrOption<"dim"> = -1) {
    this.dim = given("LogSoftmax", "dim", dim, -1);
  }
  forward(x: Tensor): Tensor {
    return logSoftmax(x, this.dim);
  }
}

/**
 * x times the normal distribution function of x; `approximate: "tanh"` is the older formula of BERT and
 * GPT-2.
 * @example
 * await new nn.GELU().forward(new Tensor([0, 1.0])).tolist() // => [0, 0.8413]
 */
export class GELU {
  readonly approximate: "none" | "tanh";
  constructor(approximate: "none" | "tanh" | { readonly approximate?: "none" | "tanh" } = "none") {
    const way = typeof approximate === "object" ? (approximate?.approximate ?? "none") : approximate;
    if (way !== "none" && way !== "tanh") {
      throw new ArgumentError(`GELU: approximate is ${String(way)}, expected "none" or "tanh"`);
    }
    this.approximate = way;
  }
  forward(x: Tensor): Tensor {
    return gelu(x, this.approximate);
  }
}
/**
 * log(1 + exp(beta x)) / beta: a smooth ReLU; x itself where beta x is above the threshold.
 * @example
 * await new nn.Softplus().forward(new Tensor([0, 30.0])).tolist() // => [0.6931, 30]
 */
export class Softplus {
  readonly beta: number;
  readonly threshold: number;
  constructor(beta = 1, threshold = 20) {
    this.beta = given("Softplus", "beta", beta, 1);
    this.threshold = given("Softplus", "threshold", threshold, 20);
  }
  forward(x: Tensor): Tensor {
    return softplus(x, this.beta, this.threshold);
  }
}
/**
 * x between two limits, the limits elsewhere.
 * @example
 * await new nn.Hardtanh(-2, 2).forward(new Tensor([-3, 0.5, 3])).tolist() // => [-2, 0.5, 2]
 */
export class Hardtanh {
  readonly minVal: number;
  readonly maxVal: number;
  constructor(minVal = -1, maxVal = 1) {
    this.minVal = given("Hardtanh", "minVal", minVal, -1);
    this.maxVal = given("Hardtanh", "maxVal", maxVal, 1);
    if (minVal < maxVal) return;
    throw new ArgumentError(`Hardtanh: minVal ${minVal} is not below maxVal ${maxVal}`);
  }
  forward(x: Tensor): Tensor {
    return hardtanh(x, this.minVal, this.maxVal);
  }
}
/**
 * x where it is above the threshold, `value` elsewhere.
 * @example
 * await new nn.Threshold(1, 9).forward(new Tensor([0.5, 2])).tolist() // => [9, 2]
 */
export class Threshold {
  readonly threshold: number;
  readonly value: number;
  constructor(threshold: number, value: number) {
    this.threshold = given("Threshold", "threshold", threshold, 0);
    this.value = given("Threshold", "value", value, 0);
  }
  forward(x: Tensor): Tensor {
    return threshold(x, this.threshold, this.value);
  }
}

export interface PReLUOptions extends LayerOptions {
  /** the initial slope; default: 0.25 */
  readonly init?: number;
}

/**
 * LeakyReLU whose slope is learned: one for all channels (dim 1), or one for each.
 * @example
 * await new nn.PReLU().forward(new Tensor([-2.0, 3])).tolist() // => [-0.5, 3]
 */
export class PReLU {
  weight: Tensor;
  constructor(numParameters = 1, options: PReLUOptions = {}) {
    positive("PReLU", { numParameters });
    this.weight = filled([numParameters], options.init ?? 0.25, options);
  }
  forward(x: Tensor): Tensor {
    return prelu(x, this.weight);
  }
}
