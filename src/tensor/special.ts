// Inverse and special functions, each a polynomial on a short interval and the identities that lead there. The tables
// are fitted (Chebyshev, 40 digits) to the precision of float32 and float64; half-width floats compute in float32.

import type { DType } from "../dtype.ts";
import { ArgumentError } from "../errors.ts";
import type { Element } from "./base.ts";
import { ElementaryTensor } from "./elementary.ts";
import { toFloat } from "./math.ts";

/** Coefficients, the highest power first: the short table for float32, the long one for float64. */
export interface Table {
  readonly float: readonly number[];
  readonly double: readonly number[];
}
export const forType = (d: DType, t: Table): readonly number[] => (d.itemsize === 8 ? t.double : t.float);

/** (atan(t)/t - 1) / t², in powers of t², for |t| <= tan(pi/8) */
const ATAN: Table = {
  float: [
    -0.06451718869358958, 0.10743668324830098, -0.14263949753605723, 0.1999954031495797, -0.33333331760434554,
  ],
  double: [
    -0.019175404711104935, 0.03923044778479309, -0.050854078345894844, 0.05858140904866328,
    -0.06664510525508936, 0.07692183125376892, -0.0909090457530649, 0.11111111015187018, -0.14285714284665682,
    0.19999999999995516, -0.3333333333333333,
  ],
};
/** erf(x) / x, in powers of x², for |x| <= 1 */
const ERF: Table = {
  float: [
    7.875875062685488e-5, -0.000801686428716587, 0.005189087423433974, -0.026854212010626412,
    0.11283594715160218, -0.37612626666720334, 1.1283791658483509,
  ],
  double: [
    -7.795898827002142e-10, 1.3720064546777686e-8, -1.6208483801871705e-7, 1.6447424703317362e-6,
    -1.492473690741966e-5, 0.00012055294904839707, -0.0008548325975389692, 0.0052239776071164225,
    -0.02686617064323777, 0.11283791670945006, -0.37612638903183543, 1.1283791670955126,
  ],
};
/** (1 + 2x) exp(x²) erfc(x), in powers of (x - 3) / (x + 3), for x >= 1 */
const ERFC: Table = {
  float: [
    -0.0005743200396567314, 0.0016405168232373197, 0.00248686801102043, -0.02365512911575393,
    0.06830205016097596, -0.11929336715396092, 0.12964674973668613, -0.04756110620558166,
    -0.13562115777522538, 1.2530080462658038,
  ],
  double: [
    -4.5208333288285474e-8, 2.115929384975672e-7, -1.4246656445980218e-7, -7.144635045014524e-7,
    4.1123629164943177e-7, 3.4993072631789114e-6, -7.621531541204555e-7, -2.0100988544062937e-5,
    4.9572087634044365e-6, 0.00012509816480231348, -0.00010516084577817783, -0.0007798320216520182,
    0.0018886904367867551, 0.002529391793674156, -0.023770514921554377, 0.06830802734490181,
    -0.11927366341526775, 0.1296451587027457, -0.04756229435345069, -0.13562110612458111, 1.2530080582697296,
  ],
};
/** Stirling's series for log gamma, in powers of 1/x², and its derivative for digamma (Bernoulli numbers). */
const STIRLING = [-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12];
const DIGAMMA = [691 / 32760, -1 / 132, 1 / 240, -1 / 252, 1 / 120, -1 / 12];
/** From here on Stirling's series is exact enough; below, gamma(x + 1) = x gamma(x) leads here. */
const STIRLING_FROM = 8;
/** Half of the Bernoulli numbers B(2), B(4), …; what else belongs before the powers is multiplied on the way. */
const BERNOULLI = [1 / 12, -1 / 60, 1 / 84, -1 / 60, 5 / 132, -691 / 5460, 7 / 12];
const ZETA_TERMS = 9;

export abstract class SpecialTensor extends ElementaryTensor {
  protected polynomial(coefficients: readonly number[]): this {
    const [first, ...rest] = coefficients as [number, ...number[]];
    return rest.reduce<this>((sum, c) => sum.mul(this).add(c), this.wrap(this.lazydata.const(first)));
  }

  // ---- inverse trigonometric and hyperbolic functions ----

  /** The arctangent of what is not negative; a pole is at pi/2. */
  #atan(): this {
    const eighth = Math.tan(Math.PI / 8);
    const far = this.gt(1);
    const x = far.where(this.reciprocal(), this);
    const upper = x.gt(eighth);
    const t = upper.where(x.sub(1).div(x.add(1)), x);
    const z = t.mul(t);
    const near = t.add(t.mul(z).mul(z.polynomial(forType(this.dtype, ATAN))));
    const angle = upper.where(near.add(Math.PI / 4), near);
    return far.where(angle.rsub(Math.PI / 2), angle);
  }
  /**
   * The angle whose tangent this is, from -pi/2 to pi/2.
   * @example
   * await new Tensor([0, 1]).atan().tolist() // => [0, 0.7853981852531433]
   */
  atan(): this {
    return this.unary(
      (x) => x.abs().#atan().copysign(x),
      (x) => x.mul(x).add(1).reciprocal(),
    );
  }
  /**
   * The angle of the point (x, this), from -pi to pi.
   * @example
   * await new Tensor([1, -1]).atan2(new Tensor([0, 0])).tolist() // => [1.5707963705062866, -1.5707963705062866]
   */
  atan2(x: this | Element): this {
    return this.binary(
      "atan2",
      x,
      (b, a) => {
        const ratio = b.abs().div(a.abs());
        const same = b.abs().eq(a.abs()).bitwiseAnd(a.ne(0)); // two infinities have no ratio
        const angle = b.eq(0).where(0, same.where(1, ratio)).#atan();
        return a.isnan().where(NaN, a.signbit().where(angle.rsub(Math.PI), angle).copysign(b));
      },
      (g, _, b, a) => {
        const square = b.mul(b).add(a.mul(a));
        const scale = square.eq(0).where(0, g.div(square)); // torch's choice where the angle has no slope
        return [scale.mul(a), scale.mul(b).neg()];
      },
      toFloat,
    );
  }
  /**
   * The angle whose sine this is, from -pi/2 to pi/2.
   * @example
   * await new Tensor([0, 1]).asin().tolist() // => [0, 1.5707963705062866]
   */
  asin(): this {
    return this.unary(
      (x) => {
        const size = x.abs();
        return size
          .div(size.rsub(1).mul(size.add(1)).sqrt())
          .#atan()
          .copysign(x);
      },
      (x) => x.rsub(1).mul(x.add(1)).rsqrt(),
    );
  }
  /**
   * The angle whose cosine this is, from 0 to pi.
   * @example
   * await new Tensor([1, 0]).acos().tolist() // => [0, 1.5707963705062866]
   */
  acos(): this {
    return this.unary(
      (x) => x.rsub(1).div(x.add(1)).sqrt().#atan().mul(2),
      (x) => x.rsub(1).mul(x.add(1)).rsqrt().neg(),
    );
  }
  /**
   * The number whose sinh this is.
   * @example
   * await new Tensor([0, 1]).asinh().tolist() // => [0, 0.8813735842704773]
   */
  asinh(): this {
    return this.unary(
      (x) => {
        const size = x.abs();
        const root = size.mul(size).add(1).sqrt();
        const near = size.add(size.mul(size.div(root.add(1)))).log1p();
        return size.gt(1e10).where(size.log().add(Math.LN2), near).copysign(x);
      },
      (x) => x.mul(x).add(1).rsqrt(),
    );
  }
  /**
   * The number, not negative, whose cosh this is.
   * @example
   * await new Tensor([1, 2]).acosh().tolist() // => [0, 1.316957950592041]
   */
  acosh(): this {
    return this.unary(
      (x) => {
        const t = x.sub(1);
        const near = t.add(t.mul(t.add(2)).sqrt()).log1p();
        return x.lt(1).where(NaN, x.gt(1e10).where(x.log().add(Math.LN2), near));
      },
      (x) => x.sub(1).mul(x.add(1)).rsqrt(),
    );
  }
  /**
   * The number whose tanh this is.
   * @example
   * await new Tensor([0, 0.5]).atanh().tolist() // => [0, 0.5493061542510986]
   */
  atanh(): this {
    return this.unary(
      (x) => {
        const size = x.abs();
        return size.mul(2).div(size.rsub(1)).log1p().mul(0.5).copysign(x);
      },
      (x) => x.rsub(1).mul(x.add(1)).reciprocal(),
    );
  }

  // ---- the error function ----

  /** erfc of what is not below 1. */
  #erfcTail(): this {
    const w = this.sub(3).div(this.add(3));
    const scaled = w.polynomial(forType(this.dtype, ERFC));
    return scaled.mul(this.mul(this).neg().exp()).div(this.mul(2).add(1));
  }
  #erfNear(): this {
    return this.mul(this.mul(this).polynomial(forType(this.dtype, ERF)));
  }
  /**
   * The error function.
   * @example
   * await new Tensor([0, 10]).erf().tolist() // => [0, 1]
   */
  erf(): this {
    return this.unary(
      (x) => {
        const size = x.abs();
        const far = size.clamp(1, 10).#erfcTail().rsub(1).copysign(x);
        return size.gt(1).where(far, x.#erfNear());
      },
      (x) =>
        x
          .mul(x)
          .neg()
          .exp()
          .mul(2 / Math.sqrt(Math.PI)),
    );
  }
  /**
   * 1 - erf, exact where erf is nearly 1.
   * @example
   * await new Tensor([0, -Infinity]).erfc().tolist() // => [1, 2]
   */
  erfc(): this {
    return this.unary(
      (x) => {
        const size = x.abs();
        const tail = size.clamp(1, 40).#erfcTail();
        const far = x.lt(0).where(tail.rsub(2), tail);
        return size.gt(1).where(far, x.#erfNear().rsub(1));
      },
      (x) =>
        x
          .mul(x)
          .neg()
          .exp()
          .mul(-2 / Math.sqrt(Math.PI)),
    );
  }
  /**
   * The number whose erf this is.
   * @example
   * await new Tensor([0, 1]).erfinv().tolist() // => [0, Infinity]
   */
  erfinv(): this {
    return this.unary(
      (x) => {
        const size = x.abs();
        // log(1 - x²) and two square roots come near; Newton's method does the rest
        const log = size.rsub(1).mul(size.add(1)).log();
        const half = log.mul(0.5).add(2 / (Math.PI * 0.147));
        const start = half.mul(half).sub(log.div(0.147)).sqrt().sub(half).clampMin(0).sqrt();
        // erf near 0 and erfc far from it keep the digits of the difference
        const near = size.lt(0.5);
        const step = (y: this) => {
          const slope = y
            .mul(y)
            .neg()
            .exp()
            .mul(2 / Math.sqrt(Math.PI));
          const off = near.where(y.erf().sub(size), size.rsub(1).sub(y.erfc()));
          return y.sub(off.div(slope));
        };
        let y = start;
        for (let i = 0; i < (x.dtype.itemsize === 8 ? 4 : 2); i++) y = step(y);
        const inside = size.eq(0).where(0, y);
        return size.eq(1).where(Infinity, inside).copysign(x);
      },
      (_, out) =>
        out
          .mul(out)
          .exp()
          .mul(Math.sqrt(Math.PI) / 2),
    );
  }

  // ---- gamma ----

  /**
   * The logarithm of |gamma(x)|.
   * @example
   * await new Tensor([3, 5]).lgamma().exp().round().tolist() // => [2, 24]
   */
  lgamma(): this {
    return this.unary(
      (x) => {
        // gamma(x) gamma(1 - x) = pi / sin(pi x)
        const reflected = x.lt(0.5);
        const y = reflected.where(x.rsub(1), x);
        const log = y.#lgammaUp();
        const sine = x.sub(x.floor()).mul(Math.PI).sin();
        const mirror = sine.log().add(log).rsub(Math.log(Math.PI));
        const pole = x.le(0).bitwiseAnd(x.floor().eq(x));
        return pole.bitwiseOr(x.isinf()).where(Infinity, reflected.where(mirror, log));
      },
      (x) => x.digamma(),
    );
  }
  #lgammaUp(): this {
    const low = this.lt(STIRLING_FROM);
    let product = this as this;
    for (let k = 1; k < STIRLING_FROM; k++) product = product.mul(this.add(k));
    const z = low.where(this.add(STIRLING_FROM), this);
    const r = z.reciprocal();
    const series = r
      .mul(r)
      .polynomial(STIRLING)
      .mul(r)
      .add(0.5 * Math.log(2 * Math.PI));
    const big = z.sub(0.5).mul(z.log()).sub(z).add(series);
    return low.where(big.sub(low.where(product, 1).log()), big);
  }
  /**
   * The derivative of lgamma.
   * @example
   * await new Tensor([-3]).digamma().isnan().tolist() // => [true]
   */
  digamma(): this {
    return this.unary(
      (x) => {
        const reflected = x.lt(0.5);
        const y = reflected.where(x.rsub(1), x);
        const up = y.#digammaUp();
        const angle = x.sub(x.floor()).mul(Math.PI);
        const mirror = up.sub(angle.cos().div(angle.sin()).mul(Math.PI));
        const pole = x.lt(0).bitwiseAnd(x.floor().eq(x));
        const value = pole.where(NaN, reflected.where(mirror, up));
        return x.eq(0).where(x.reciprocal().neg(), value);
      },
      (x) => x.polygamma(1),
    );
  }
  #digammaUp(): this {
    const low = this.lt(STIRLING_FROM);
    let sum = this.reciprocal();
    for (let k = 1; k < STIRLING_FROM; k++) sum = sum.add(this.add(k).reciprocal());
    const z = low.where(this.add(STIRLING_FROM), this);
    const r = z.reciprocal();
    const s = r.mul(r);
    const big = z
      .log()
      .sub(r.mul(0.5))
      .add(s.mul(s.polynomial(DIGAMMA)));
    return low.where(big.sub(sum), big);
  }
  /**
   * The derivative of order `n` of digamma; polygamma(0) is digamma.
   * @example
   * await new Tensor([1]).polygamma(1).tolist() // => [1.6449340581893921]
   */
  polygamma(n: number): this {
    if (!Number.isInteger(n) || n < 0) {
      throw new ArgumentError(`polygamma: n is ${n}, expected an integer from 0 up`);
    }
    if (n === 0) return this.digamma();
    let factor = n % 2 === 0 ? -1 : 1;
    for (let k = 2; k <= n; k++) factor *= k;
    return this.unary(
      (x) => x.#zeta(n + 1).mul(factor),
      (x) => x.polygamma(n + 1),
    );
  }
  /** The sum of (x + k)^-s for k = 0, 1, …: Hurwitz's zeta function, for a whole s from 2 up. */
  #zeta(s: number): this {
    const below = this.lt(0);
    const part = below.where(this.sub(this.floor()), this);
    const up = part.#zetaUp(s);
    // the terms below 0 are those of a sum above 0 that ends
    const turned = part.rsub(1).#zetaUp(s).sub(this.rsub(1).#zetaUp(s));
    const whole = s % 2 === 0 ? up.add(turned) : up.sub(turned);
    const pole = this.le(0).bitwiseAnd(this.floor().eq(this));
    return pole.where(Infinity, below.where(whole, up));
  }
  /** The same where x is not negative: some terms, and Euler's and Maclaurin's formula for the rest. */
  #zetaUp(s: number): this {
    let sum = this.reciprocal().pow(s);
    for (let k = 1; k < ZETA_TERMS; k++) sum = sum.add(this.add(k).reciprocal().pow(s));
    const a = this.add(ZETA_TERMS);
    const r = a.reciprocal();
    let factor = s;
    const series = BERNOULLI.map((b, j) => {
      const c = b * factor;
      factor *= ((s + 2 * j + 1) * (s + 2 * j + 2)) / ((2 * j + 3) * (2 * j + 4));
      return c;
    });
    const tail = r
      .mul(r)
      .polynomial(series.reverse())
      .mul(r)
      .add(0.5)
      .mul(r)
      .add(1 / (s - 1));
    return sum.add(r.pow(s - 1).mul(tail));
  }
}
