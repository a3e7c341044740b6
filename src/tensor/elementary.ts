// Powers, exponentials, logarithms, sine and cosine and their hyperbolic kin. The inverse and the special functions are
// in special.ts, activations in functions.ts.

import { type DType, dtypes } from "../dtype.ts";
import { ArgumentError } from "../errors.ts";
import { range } from "../helpers.ts";
import type { Element } from "./base.ts";
import { toFloat } from "./math.ts";
import { RoundingTensor } from "./rounding.ts";

/** pi in three parts; multiples of the first two up to 2^12 are exact in float32. */
const PI_PARTS = (() => {
  const first = 201 / 64;
  const second = Math.floor((Math.PI - first) * 2 ** 22) / 2 ** 22;
  return [first, second, Math.PI - first - second + 1.2246467991473532e-16] as const;
})();

export abstract class ElementaryTensor extends RoundingTensor {
  // ---- powers ----

  /**
   * This to the power of `x`. Integers stay integers (and wrap); an integer to a negative power is 0 unless it is ±1.
   * @example
   * await new Tensor([2, 3]).pow(3).tolist() // => [8, 27]
   */
  pow(x: this | Element): this {
    if (typeof x === "number" || typeof x === "bigint") {
      const n = Number(x);
      if (this.dtype.isInt && Number.isInteger(n) && n < 0) {
        throw new ArgumentError(
          `pow: ${this.dtype.name} to the power of ${n} is no integer; cast to float32 first`,
        );
      }
      const type = this.operands("pow", [x])[0]?.dtype as DType;
      const fixed = type.isFloat ? this.cast(type).#powFloat(n) : type.isInt ? this.#powTimes(n) : undefined;
      if (fixed !== undefined) return fixed;
    }
    return this.binary(
      "pow",
      x,
      (a, b) => (a.dtype.isFloat ? a.#power(b) : a.#powInt(b)),
      (g, out, a, b) => {
        const flat = a.eq(0).bitwiseAnd(b.ge(0));
        return [
          b.eq(0).where(0, g.mul(b.mul(a.pow(b.sub(1))))),
          // the logarithm of 0 must not reach the product
          flat.where(0, g.mul(out.mul(flat.where(1, a).log()))),
        ];
      },
    );
  }
  /** Exponents with a shorter way than through the logarithm; their gradients are exact as well. */
  #powFloat(n: number): this | undefined {
    if (n === 0.5) return this.sqrt();
    if (n === -0.5) return this.rsqrt();
    if (!Number.isInteger(n) || Math.abs(n) > 8) return undefined;
    const value = (x: this) => (n < 0 ? x.#powTimes(-n).reciprocal() : x.#powTimes(n));
    if (n === 0) return this.wrap(this.lazydata.const(1), [this], (g) => [g.zero()]);
    return this.unary(value, (x) => x.pow(n - 1).mul(n));
  }
  /** By squaring; a constant exponent costs two multiplications a bit. */
  #powTimes(n: number): this {
    let out: this | undefined;
    let square: this = this;
    for (let left = n; left > 0; left = Math.floor(left / 2)) {
      if (left % 2 === 1) out = out === undefined ? square : out.mul(square);
      if (left > 1) square = square.mul(square);
    }
    return out ?? this.wrap(this.lazydata.const(1));
  }
  #powInt(exponent: this): this {
    const one = this.wrap(this.lazydata.const(1));
    if (this.dtype.kind === "bool") return this.bitwiseOr(exponent.logicalNot());
    let [out, square] = [one, this as this];
    for (const bit of range(this.dtype.bits - (this.dtype.kind === "int" ? 1 : 0))) {
      const set = exponent.bitwiseAnd(2n ** BigInt(bit)).ne(0);
      out = set.where(out.mul(square), out);
      square = square.mul(square);
    }
    if (this.dtype.kind === "uint") return out;
    // 1 / this, cut towards zero: ±1 for ±1, and -1 has the sign that the lowest bit says
    const odd = exponent.bitwiseAnd(1).ne(0);
    const minus = odd.where(one.neg(), one);
    const below = this.eq(1).where(one, this.eq(-1).where(minus, 0));
    return exponent.lt(0).where(below, out);
  }
  /** |x|^y = 2^(y log2|x|), then the rules of IEEE 754 for signs, zeros, infinities and NaN. */
  #power(y: this): this {
    const log = this.abs().log2();
    const size = log.eq(0).where(0, log.mul(y)).exp2();
    const half = y.mul(0.5);
    const whole = y.trunc().eq(y);
    const odd = whole.bitwiseAnd(half.trunc().ne(half));
    const signed = odd.bitwiseAnd(this.signbit()).where(size.neg(), size);
    const root = this.lt(0).bitwiseAnd(this.ne(-Infinity)).bitwiseAnd(whole.logicalNot());
    return y.eq(0).where(1, root.where(NaN, signed));
  }
  /**
   * The power in float64, whatever the operands are.
   * @example
   * await new Tensor([2, 3]).floatPower(-1).tolist() // => [0.5, 0.3333333333333333]
   */
  floatPower(x: this | Element): this {
    const exponent = x instanceof RoundingTensor ? x.cast(dtypes.float64) : x;
    return this.cast(dtypes.float64).pow(exponent);
  }
  /**
   * `1 / sqrt(this)`
   * @example
   * await new Tensor([4, 16]).rsqrt().tolist() // => [0.5, 0.25]
   */
  rsqrt(): this {
    return this.unary(
      (x) => x.sqrt().reciprocal(),
      (x, out) => out.mul(x.reciprocal()).mul(-0.5),
    );
  }
  /**
   * sqrt(this² + x²), without overflow on the way.
   * @example
   * await new Tensor([3]).hypot(new Tensor([4])).tolist() // => [5]
   */
  hypot(x: this | Element): this {
    return this.binary(
      "hypot",
      x,
      (a, b) => {
        const [big, small] = [a.abs().maximum(b.abs()), a.abs().minimum(b.abs())];
        const ratio = big.eq(0).where(0, small.div(big));
        const long = big.mul(ratio.mul(ratio).add(1).sqrt());
        const infinite = a.isinf().bitwiseOr(b.isinf());
        return infinite.where(Infinity, long);
      },
      (g, out, a, b) => [g.mul(a.div(out)), g.mul(b.div(out))],
      toFloat,
    );
  }

  // ---- exponentials and logarithms ----

  /**
   * exp(x) - 1, exact for small x.
   * @example
   * await new Tensor([0, 1e-10]).expm1().tolist() // => [0, 1.000000013351432e-10]
   */
  expm1(): this {
    return this.unary(
      (x) => {
        const n = x.dtype.itemsize === 8 ? 17 : 9;
        // x (1 + x/2 (1 + x/3 (…)))
        const near = range(n).reduceRight<this>(
          (sum, k) => (k === 0 ? sum.mul(x) : sum.mul(x.mul(1 / (k + 1))).add(1)),
          this.wrap(x.lazydata.const(1)),
        );
        return x.abs().lt(0.5).where(near, x.exp().sub(1));
      },
      (_, out) => out.add(1),
    );
  }
  /**
   * log(1 + x), exact for small x.
   * @example
   * await new Tensor([0, 1e-10]).log1p().tolist() // => [0, 1.000000013351432e-10]
   */
  log1p(): this {
    return this.unary(
      (x) => {
        // what rounding 1 + x lost is the same in the logarithm and in the difference
        const sum = x.add(1);
        const fixed = sum.log().mul(x.div(sum.sub(1)));
        return sum.eq(1).where(x, sum.eq(Infinity).where(sum, fixed));
      },
      (x) => x.add(1).reciprocal(),
    );
  }
  /**
   * The logarithm to base 10.
   * @example
   * await new Tensor([1, 100]).log10().tolist() // => [0, 2]
   */
  log10(): this {
    return this.unary(
      (x) => x.log2().mul(Math.LOG10E * Math.LN2),
      (x) => x.mul(Math.LN10).reciprocal(),
    );
  }
  /**
   * log(exp(this) + exp(x)), safe for large values.
   * @example
   * await new Tensor([1000]).logaddexp(0).tolist() // => [1000]
   */
  logaddexp(x: this | Element): this {
    return this.binary(
      "logaddexp",
      x,
      (a, b) => a.#logadd(b, (gap) => gap.exp().log1p()),
      (g, _, a, b) => [g.mul(a.sub(b).sigmoid()), g.mul(b.sub(a).sigmoid())],
      toFloat,
    );
  }
  /**
   * log2(2^this + 2^x), safe for large values.
   * @example
   * await new Tensor([1000]).logaddexp2(1000).tolist() // => [1001]
   */
  logaddexp2(x: this | Element): this {
    return this.binary(
      "logaddexp2",
      x,
      (a, b) => a.#logadd(b, (gap) => gap.exp2().log1p().mul(Math.LOG2E)),
      (g, _, a, b) => {
        const share = a.sub(b).mul(Math.LN2).sigmoid();
        return [g.mul(share), g.mul(share.rsub(1))];
      },
      toFloat,
    );
  }
  #logadd(b: this, extra: (gap: this) => this): this {
    const most = this.maximum(b);
    const gap = this.sub(b).abs().neg();
    // equal infinities have no difference
    return most.add(this.eq(b).where(extra(most.sub(most).nanToNum()), extra(gap)));
  }
  /**
   * this * log(x), and 0 where this is 0, whatever x is (but NaN).
   * @example
   * await new Tensor([0, 2]).xlogy(new Tensor([0, 1])).tolist() // => [0, 0]
   */
  xlogy(x: this | Element): this {
    return this.binary(
      "xlogy",
      x,
      (a, b) => a.eq(0).bitwiseAnd(b.isnan().logicalNot()).where(0, a.mul(b.log())),
      (g, _, a, b) => {
        const none = a.eq(0).bitwiseAnd(b.le(0));
        return [none.where(0, g.xlogy(none.where(1, b))), g.mul(a.div(b))];
      },
      toFloat,
    );
  }
  /**
   * 1 / (1 + exp(-x))
   * @example
   * await new Tensor([0, Infinity]).sigmoid().tolist() // => [0.5, 1]
   */
  sigmoid(): this {
    return this.unary(
      (x) => x.neg().exp().add(1).reciprocal(),
      (_, out) => out.mul(out.rsub(1)),
    );
  }

  // ---- sine and cosine, and their hyperbolic kin ----

  /**
   * The sine, of radians.
   * @example
   * await new Tensor([0, 0.5]).sin().tolist() // => [0, 0.4794255495071411]
   */
  sin(): this {
    return this.unary(
      (x) => x.alu("SIN"),
      (x) => x.cos(),
    );
  }
  /**
   * The cosine, of radians.
   * @example
   * await new Tensor([0]).cos().tolist() // => [1]
   */
  cos(): this {
    return this.unary(
      (x) => {
        // around the nearest zero it is a sine, up to the sign; where pi times the number of zeros is no longer exact,
        // half of x still is, and cos x = 1 - 2 sin²(x/2)
        const size = x.abs();
        const near = size.lt(1e4);
        const whole = size.mul(1 / Math.PI).trunc();
        const rest = PI_PARTS.reduce<this>((r, part) => r.sub(whole.add(0.5).mul(part)), size);
        const s = near.where(rest, size.mul(0.5)).alu("SIN");
        const even = whole.mul(0.5).trunc().eq(whole.mul(0.5));
        return near.where(even.where(s.neg(), s), s.mul(s).mul(-2).add(1));
      },
      (x) => x.sin().neg(),
    );
  }
  /**
   * The tangent, of radians.
   * @example
   * await new Tensor([0, 1]).tan().tolist() // => [0, 1.5574077367782593]
   */
  tan(): this {
    return this.unary(
      (x) => x.sin().div(x.cos()),
      (_, out) => out.mul(out).add(1),
    );
  }
  /**
   * sin(pi x) / (pi x), and 1 at 0.
   * @example
   * await new Tensor([0, 0.5]).sinc().tolist() // => [1, 0.6366197466850281]
   */
  sinc(): this {
    return this.unary(
      (x) => {
        const angle = x.mul(Math.PI);
        return x.eq(0).where(1, angle.sin().div(x.eq(0).where(1, angle)));
      },
      (x, out) => x.eq(0).where(0, x.mul(Math.PI).cos().sub(out).div(x.eq(0).where(1, x))),
    );
  }
  /**
   * (exp(x) - exp(-x)) / 2
   * @example
   * await new Tensor([0, 1]).sinh().tolist() // => [0, 1.175201177597046]
   */
  sinh(): this {
    return this.unary(
      (x) => {
        const size = x.abs();
        const e = size.sub(Math.LN2).exp(); // half of exp(|x|), which may itself be too large
        const t = size.minimum(1).expm1();
        const far = e.sub(e.reciprocal().mul(0.25));
        return size
          .lt(1)
          .where(t.add(t.div(t.add(1))).mul(0.5), far)
          .copysign(x);
      },
      (x) => x.cosh(),
    );
  }
  /**
   * (exp(x) + exp(-x)) / 2
   * @example
   * await new Tensor([0]).cosh().tolist() // => [1]
   */
  cosh(): this {
    return this.unary(
      (x) => {
        const e = x.abs().sub(Math.LN2).exp();
        return e.add(e.reciprocal().mul(0.25));
      },
      (x) => x.sinh(),
    );
  }
  /**
   * The hyperbolic tangent.
   * @example
   * await new Tensor([0, Infinity]).tanh().tolist() // => [0, 1]
   */
  tanh(): this {
    return this.unary(
      (x) => {
        const t = x.abs().mul(-2).expm1();
        return t.neg().div(t.add(2)).copysign(x);
      },
      (_, out) => out.mul(out).rsub(1),
    );
  }
  /**
   * Degrees to radians.
   * @example
   * await new Tensor([180]).deg2rad().tolist() // => [3.1415927410125732]
   */
  deg2rad(): this {
    return this.cast(toFloat(this.dtype)).mul(Math.PI / 180);
  }
  /**
   * Radians to degrees.
   * @example
   * await new Tensor([Math.PI]).rad2deg().tolist() // => [180]
   */
  rad2deg(): this {
    return this.cast(toFloat(this.dtype)).mul(180 / Math.PI);
  }
}
