// Activations: the elementwise functions of networks. The functions they are made of are in elementary.ts and
// special.ts; those that reduce (softmax) in reduce.ts.

import { dtypes } from "../dtype.ts";
import { ArgumentError, ShapeError } from "../errors.ts";
import { type Element, showShape } from "./base.ts";
import { isNarrow, toFloat } from "./math.ts";
import { requireTensors } from "./movement.ts";
import { NumberTensor } from "./numbers.ts";
import type { Typed } from "./reduce.ts";

/** What makes the mean 0 and the variance 1 a fixed point of a deep network of these. */
const SELU_ALPHA = 1.6732632423543772;
const SELU_SCALE = 1.0507009873554805;

export abstract class FunctionTensor extends NumberTensor {
  /** `f` of floats; a formula of several steps keeps its digits in float32 at least. */
  #float(f: (x: this) => this): this {
    const x = this.cast(toFloat(this.dtype));
    return isNarrow(x.dtype) ? f(x.cast(dtypes.float32)).cast(x.dtype) : f(x);
  }
  /**
   * What is negative becomes 0.
   * @example
   * await new Tensor([-1, 2]).relu().tolist() // => [0, 2]
   */
  relu(): this {
    const value = this.detach().maximum(0);
    return this.wrap(value.lazydata, [this], (g, out) => [out.eq(0).where(0, g)]);
  }
  /**
   * relu, not above 6.
   * @example
   * await new Tensor([-1, 2, 9]).relu6().tolist() // => [0, 2, 6]
   */
  relu6(): this {
    return this.hardtanh(0, 6);
  }
  /**
   * relu with a slope for what is negative.
   * @example
   * await new Tensor([-100, 2]).leakyRelu(0.5).tolist() // => [-50, 2]
   */
  leakyRelu(negativeSlope = 0.01): this {
    return this.gt(0).where(this, this.mul(negativeSlope));
  }
  /**
   * leakyRelu with a learned slope: one for all, or one for each channel (dim 1).
   * @example
   * await new Tensor([-4.0, 2.5]).prelu(new Tensor([0.25])).tolist() // => [-1, 2.5]
   */
  prelu(weight: this): this {
    requireTensors("prelu", { weight });
    const channels = this.ndim < 2 ? 1 : (this.shape[1] as number);
    if (weight.ndim > 1 || (weight.size !== 1 && weight.size !== channels)) {
      throw new ShapeError(
        `prelu: the weight has shape ${showShape(weight.shape)} for an input of shape ${showShape(this.shape)}; ` +
          `expected one element or ${channels}, one a channel (dim 1)`,
      );
    }
    const each = weight.size === 1 ? [] : [channels, ...this.shape.slice(2).map(() => 1)];
    return this.gt(0).where(this, this.mul(weight.reshape(each)));
  }
  /**
   * x below 0 becomes alpha (exp(x) - 1), the rest stays.
   * @example
   * await new Tensor([-Infinity, 2]).elu().tolist() // => [-1, 2]
   */
  elu(alpha = 1): this {
    return this.#float((x) => x.le(0).where(x.clampMax(0).expm1().mul(alpha), x));
  }
  /**
   * elu whose slope is continuous for every alpha.
   * @example
   * await new Tensor([-Infinity, 2]).celu(2).tolist() // => [-2, 2]
   */
  celu(alpha = 1): this {
    if (alpha === 0)
      throw new ArgumentError("celu: alpha is 0, expected another number; 0 would divide by zero");
    return this.#float((x) => x.le(0).where(x.clampMax(0).div(alpha).expm1().mul(alpha), x));
  }
  /**
   * The elu that keeps mean 0 and variance 1 from layer to layer.
   * @example
   * await new Tensor([0, 1]).selu().tolist() // => [0, 1.0507010221481323]
   */
  selu(): this {
    return this.#float((x) => x.elu(SELU_ALPHA).mul(SELU_SCALE));
  }
  /**
   * x sigmoid(x), also called swish.
   * @example
   * await new Tensor([0, 20]).silu().tolist() // => [0, 20]
   */
  silu(): this {
    return this.#float((x) => x.mul(x.sigmoid()));
  }
  /**
   * x tanh(softplus(x))
   * @example
   * await new Tensor([0, 20]).mish().tolist() // => [0, 20]
   */
  mish(): this {
    return this.#float((x) => x.mul(x.softplus().tanh()));
  }
  /**
   * x times the share of the normal distribution below it; "tanh" is the approximation of the first transformers.
   * @example
   * await new Tensor([0, 10]).gelu().tolist() // => [0, 10]
   */
  gelu(approximate: "none" | "tanh" = "none"): this {
    if (approximate === "none") return this.#float((x) => x.mul(0.5).mul(x.mul(Math.SQRT1_2).erf().add(1)));
    if (approximate !== "tanh") {
      throw new ArgumentError(`gelu: approximate is ${approximate}, expected "none" or "tanh"`);
    }
    return this.#float((x) => {
      const inner = x
        .mul(x)
        .mul(0.044715)
        .add(1)
        .mul(x)
        .mul(Math.sqrt(2 / Math.PI));
      return x.mul(0.5).mul(inner.tanh().add(1));
    });
  }
  /**
   * log(1 + exp(beta x)) / beta, a smooth relu; x itself where beta x is above `threshold`.
   * @example
   * await new Tensor([0, 30]).softplus().tolist() // => [0.6931471824645996, 30]
   */
  softplus(beta = 1, threshold = 20): this {
    return this.unary(
      (x) => {
        const y = x.mul(beta);
        const soft = y.abs().neg().exp().log1p().add(y.maximum(0)).div(beta);
        return y.gt(threshold).where(x, soft);
      },
      (x) => x.mul(beta).gt(threshold).where(1, x.mul(beta).sigmoid()),
    );
  }
  /**
   * The logarithm of sigmoid.
   * @example
   * await new Tensor([0, -100]).logsigmoid().tolist() // => [-0.6931471824645996, -100]
   */
  logsigmoid(): this {
    return this.unary(
      (x) => x.minimum(0).sub(x.abs().neg().exp().log1p()),
      (x) => x.neg().sigmoid(),
    );
  }
  /**
   * The logarithm of x / (1 - x), the inverse of sigmoid; with `eps`, x is kept that far from 0 and 1.
   * @example
   * await new Tensor([0.5, 1.0]).logit().tolist() // => [0, Infinity]
   */
  logit(eps?: number | null): this {
    return this.#float((x) => {
      const inside = eps === undefined || eps === null ? x : x.clamp(eps, 1 - eps);
      return inside.div(inside.rsub(1)).log();
    });
  }
  /**
   * x / (1 + |x|)
   * @example
   * await new Tensor([1, -3]).softsign().tolist() // => [0.5, -0.75]
   */
  softsign(): this {
    return this.#float((x) => x.div(x.abs().add(1)));
  }
  /**
   * x - tanh(x)
   * @example
   * await new Tensor([0, 20]).tanhshrink().tolist() // => [0, 19]
   */
  tanhshrink(): this {
    return this.#float((x) => x.sub(x.tanh()));
  }
  /**
   * What is within [-lambd, lambd] becomes 0.
   * @example
   * await new Tensor([0.25, -2.5]).hardshrink().tolist() // => [0, -2.5]
   */
  hardshrink(lambd = 0.5): this {
    return this.ge(-lambd).bitwiseAnd(this.le(lambd)).where(0, this);
  }
  /**
   * Everything moves towards 0 by `lambd`, and no further.
   * @example
   * await new Tensor([0.25, -2.5]).softshrink().tolist() // => [0, -2]
   */
  softshrink(lambd = 0.5): this {
    if (lambd < 0) throw new ArgumentError(`softshrink: lambd is ${lambd}, expected a number from 0 up`);
    const x = this.cast(toFloat(this.dtype));
    return x.gt(lambd).where(x.sub(lambd), x.lt(-lambd).where(x.add(lambd), x.isnan().where(x, 0)));
  }
  /**
   * Not below `minVal` and not above `maxVal`; no gradient flows at the bounds.
   * @example
   * await new Tensor([-3, 0.5, 3]).hardtanh().tolist() // => [-1, 0.5, 1]
   */
  hardtanh(minVal = -1, maxVal = 1): this {
    if (minVal > maxVal) {
      throw new ArgumentError(
        `hardtanh: minVal ${minVal} is above maxVal ${maxVal}; expected it below or equal`,
      );
    }
    const value = this.detach().clamp(this.fullLike(minVal), this.fullLike(maxVal));
    return this.wrap(value.lazydata, [this], (g) => [this.le(minVal).bitwiseOr(this.ge(maxVal)).where(0, g)]);
  }
  /**
   * A straight line from (-3, 0) to (3, 1) in place of sigmoid.
   * @example
   * await new Tensor([-4, 0, 4]).hardsigmoid().tolist() // => [0, 0.5, 1]
   */
  hardsigmoid(): this {
    return this.unary(
      (x) => x.add(3).clamp(0, 6).div(6),
      (x) =>
        x
          .abs()
          .lt(3)
          .where(1 / 6, x.zero()),
    );
  }
  /**
   * x hardsigmoid(x)
   * @example
   * await new Tensor([-4, 0, 4]).hardswish().tolist() // => [0, 0, 4]
   */
  hardswish(): this {
    return this.unary(
      (x) => x.mul(x.add(3).clamp(0, 6)).div(6),
      (x) => x.le(-3).where(0, x.lt(3).where(x.div(3).add(0.5), 1)),
    );
  }
  /**
   * What is not above `threshold` becomes `value`.
   * @example
   * await new Tensor([1, 5]).threshold(3, -1).tolist() // => [-1, 5]
   */
  threshold(threshold: number, value: number): this {
    return this.le(threshold).where(this.fullLike(value), this);
  }
  /**
   * Half of `dim`, times the sigmoid of the other half.
   * @example
   * await new Tensor([3.0, 0.0]).glu().tolist() // => [1.5]
   */
  glu(dim = -1): this {
    if (this.ndim === 0) {
      throw new ShapeError("glu: a 0-d tensor has no dim to halve; expected at least one dim of even size");
    }
    const at = this.axis("glu", dim);
    const n = this.shape[at] as number;
    if (n % 2 !== 0) {
      throw new ShapeError(
        `glu: dim ${dim} of shape ${showShape(this.shape)} has size ${n}, expected an even one`,
      );
    }
    const half = (from: number, to: number) =>
      this.shrink(this.shape.map((_, i): [number, number] | null => (i === at ? [from, to] : null)));
    return half(0, n / 2).mul(half(n / 2, n).sigmoid());
  }
  /**
   * softmax of -x
   * @example
   * await new Tensor([3, 3]).softmin().tolist() // => [0.5, 0.5]
   */
  softmin(dim = -1, { dtype }: Typed = {}): this {
    return (dtype === undefined ? this : this.cast(dtype)).neg().softmax(dim);
  }
  /**
   * 0 below zero, 1 above it, and `values` at zero.
   * @example
   * await new Tensor([-1.5, 0, 2]).heaviside(0.5).tolist() // => [0, 0.5, 1]
   */
  heaviside(values: this | Element): this {
    const [x, v] = this.operands("heaviside", [values]) as [this, this];
    return x.eq(0).where(v, x.gt(0).cast(x.dtype));
  }
  /**
   * this + value * a * b
   * @example
   * await new Tensor([1, 1]).addcmul(new Tensor([2, 3]), new Tensor([4, 5]), { value: 2 }).tolist() // => [17, 31]
   */
  addcmul(a: this, b: this, { value = 1 }: { readonly value?: Element } = {}): this {
    requireTensors("addcmul", { a, b });
    return this.add(a.mul(b), { alpha: value });
  }
  /**
   * this + value * a / b
   * @example
   * await new Tensor([1, 1]).addcdiv(new Tensor([8, 9]), new Tensor([4, 3])).tolist() // => [3, 4]
   */
  addcdiv(a: this, b: this, { value = 1 }: { readonly value?: Element } = {}): this {
    requireTensors("addcdiv", { a, b });
    return this.add(a.div(b), { alpha: value });
  }
}
