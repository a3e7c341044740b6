// Inverse and special functions, each a polynomial on a short interval and the identities that lead there.
// The tables are fitted (Chebyshev, 40 digits) to the precision of float32 and float64; half-width floats
// compute in float32.

import type { DType } from "../../dtype.ts";
import { ArgumentError } from "../../errors.ts";
import type { Element } from "../core.ts";
import { wrap } from "../core.ts";
import type { Tensor } from "../tensor.ts";
import {
  add,
  binary,
  bitwiseAnd,
  bitwiseOr,
  div,
  eq,
  exp,
  floatAlu,
  floor,
  ge,
  gt,
  le,
  log,
  lt,
  mul,
  ne,
  neg,
  reciprocal,
  sqrt,
  sub,
  toFloat,
  trunc,
  unary,
  where,
} from "./arithmetic.ts";
import { log1p, pow, rsqrt, sin, tan } from "./elementary.ts";
import { abs, clamp, clampMin, copysign, isinf, isnan, rsub, signbit } from "./rounding.ts";

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
/** (1 + 2x) exp(x²) erfc(x), in powers of (x - 3) / (x + 3), for 1/2 <= x <= 40 */
const ERFC: Table = {
  float: [
    9.21826413856806e-5, -9.914401440963848e-5, -0.0007556511922870674, 0.0018861607022214036,
    0.002520361381219389, -0.023770214315005977, 0.06830971848527632, -0.11927362983576345,
    0.12964502077756435, -0.047562300609449215, -0.13562110290557086, 1.2530080583671983,
  ],
  double: [
    3.2426769617272833e-9, -7.531971210746747e-9, -1.9954967857107238e-8, 4.349785549572964e-8,
    1.1038619183923341e-7, -1.459038753541448e-7, -6.229384784441649e-7, 3.6088785632652273e-7,
    3.47537162068554e-6, -7.336613585855525e-7, -2.0101494986679123e-5, 4.950192312980331e-6,
    0.00012509954944183994, -0.00010515994586297337, -0.000779832300316483, 0.001888690377486069,
    0.002529391818681446, -0.023770514919932314, 0.06830802734383506, -0.11927366341526444,
    0.12964515870276447, -0.04756229435345132, -0.1356211061245812, 1.2530080582697296,
  ],
};
/** lgamma(x) / ((x - 1) (x - 2)), in powers of x - 7/4, for 1 <= x <= 5/2 */
const LGAMMA: Table = {
  float: [
    -0.00013137136312623703, 0.0002472649271537457, -0.00024608071143144265, 0.0004756890851138261,
    -0.001071938004853465, 0.00211673454626988, -0.004224653558921576, 0.008773498868755262,
    -0.01905403319419853, 0.044520587661721574, -0.11948158603354132, 0.45013931100646254,
  ],
  double: [
    -5.050714808661966e-8, 9.144106990609312e-8, 1.9408383672524748e-8, -3.4381662017505075e-8,
    -2.3939519853796226e-7, 4.3604880559504324e-7, -5.121813372193198e-7, 9.413402508972964e-7,
    -1.9070077391346246e-6, 3.5170259813991915e-6, -6.434712499814777e-6, 1.1945779538106305e-5,
    -2.2281936888702126e-5, 4.170629201769082e-5, -7.846166989037809e-5, 0.00014851663458538238,
    -0.0002831906300475141, 0.0005448970031583696, -0.001060566074922861, 0.002095533879203263,
    -0.00422619412592886, 0.008776370425278818, -0.019053957830247405, 0.044520447198509394,
    -0.11948158662524275, 0.4501393121092563,
  ],
};
/** Stirling's series for log gamma, in powers of 1/x², and its derivative for digamma (Bernoulli numbers). */
const STIRLING = [-3617 / 122400, 1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12];
const DIGAMMA = [3617 / 8160, -1 / 12, 691 / 32760, -1 / 132, 1 / 240, -1 / 252, 1 / 120, -1 / 12];
/** From here on Stirling's series is exact enough; below, gamma(x + 1) = x gamma(x) leads here. */
const STIRLING_FROM = 8;
/**
 * Half of the Bernoulli numbers B(2), B(4), …; what else belongs before the powers is multiplied on the way.
 */
const BERNOULLI = [1 / 12, -1 / 60, 1 / 84, -1 / 60, 5 / 132, -691 / 5460, 7 / 12];
const ZETA_TERMS = 9;

export function polynomial(self: Tensor, coefficients: readonly number[]): Tensor {
  const [first, ...rest] = coefficients as [number, ...number[]];
  return rest.reduce<Tensor>((sum, c) => add(mul(sum, self), c), wrap(self.lazydata.const(first)));
}

// ---- inverse trigonometric and hyperbolic functions ----

/** The arctangent of what is not negative; a pole is at pi/2. */
function atanOf(self: Tensor): Tensor {
  const eighth = Math.tan(Math.PI / 8);
  const far = gt(self, 1);
  const x = where(far, reciprocal(self), self);
  const upper = gt(x, eighth);
  const t = where(upper, div(sub(x, 1), add(x, 1)), x);
  const z = mul(t, t);
  const near = add(t, mul(mul(t, z), polynomial(z, forType(self.dtype, ATAN))));
  const angle = where(upper, add(near, Math.PI / 4), near);
  return where(far, rsub(angle, Math.PI / 2), angle);
}
export function atan(self: Tensor): Tensor {
  return unary(
    self,
    (x) => copysign(atanOf(abs(x)), x),
    (x) => reciprocal(add(mul(x, x), 1)),
  );
}
export function atan2(self: Tensor, x: Tensor | Element): Tensor {
  return binary(
    self,
    "atan2",
    x,
    (b, a) => {
      const ratio = div(abs(b), abs(a));
      const same = bitwiseAnd(eq(abs(b), abs(a)), ne(a, 0)); // two infinities have no ratio
      const angle = atanOf(where(eq(b, 0), 0, where(same, 1, ratio)));
      return where(isnan(a), NaN, copysign(where(signbit(a), rsub(angle, Math.PI), angle), b));
    },
    (g, _, b, a) => {
      const square = add(mul(b, b), mul(a, a));
      const scale = where(eq(square, 0), 0, div(g, square)); // torch's choice where the angle has no slope
      return [mul(scale, a), neg(mul(scale, b))];
    },
    toFloat,
  );
}
export function asin(self: Tensor): Tensor {
  return unary(
    self,
    (x) => {
      const size = abs(x);
      return copysign(atanOf(div(size, sqrt(mul(rsub(size, 1), add(size, 1))))), x);
    },
    (x) => rsqrt(mul(rsub(x, 1), add(x, 1))),
  );
}
export function acos(self: Tensor): Tensor {
  return unary(
    self,
    (x) => mul(atanOf(sqrt(div(rsub(x, 1), add(x, 1)))), 2),
    (x) => neg(rsqrt(mul(rsub(x, 1), add(x, 1)))),
  );
}
export function asinh(self: Tensor): Tensor {
  return unary(
    self,
    (x) => {
      const size = abs(x);
      const root = sqrt(add(mul(size, size), 1));
      const near = log1p(add(size, mul(size, div(size, add(root, 1)))));
      return copysign(where(gt(size, 1e10), add(log(size), Math.LN2), near), x);
    },
    (x) => rsqrt(add(mul(x, x), 1)),
  );
}
export function acosh(self: Tensor): Tensor {
  return unary(
    self,
    (x) => {
      const t = sub(x, 1);
      const near = log1p(add(t, sqrt(mul(t, add(t, 2)))));
      return where(lt(x, 1), NaN, where(gt(x, 1e10), add(log(x), Math.LN2), near));
    },
    (x) => rsqrt(mul(sub(x, 1), add(x, 1))),
  );
}
export function atanh(self: Tensor): Tensor {
  return unary(
    self,
    (x) => {
      const size = abs(x);
      return copysign(mul(log1p(div(mul(size, 2), rsub(size, 1))), 0.5), x);
    },
    (x) => reciprocal(mul(rsub(x, 1), add(x, 1))),
  );
}

// ---- the error function ----

/**
 * exp(-x²) for x up to 40. The square of x cut to a few bits is exact; what is left of x² is small, and
 * its exponential a short series.
 */
function expOfMinusSquare(self: Tensor): Tensor {
  const scale = self.dtype.itemsize === 8 ? 2 ** 20 : 2 ** 6;
  const short = mul(trunc(mul(self, scale)), 1 / scale);
  const rest = mul(sub(short, self), add(short, self));
  // rest (1 + rest/2 (1 + …))
  let series = add(mul(rest, 1 / 8), 1);
  for (let k = 7; k > 1; k--) series = add(mul(series, mul(rest, 1 / k)), 1);
  const near = exp(neg(mul(short, short)));
  return add(near, mul(near, mul(rest, series)));
}
/** erfc from 1/2 to 40. */
function erfcTail(self: Tensor): Tensor {
  const w = div(sub(self, 3), add(self, 3));
  const scaled = polynomial(w, forType(self.dtype, ERFC));
  return div(mul(scaled, expOfMinusSquare(self)), add(mul(self, 2), 1));
}
export function erf(self: Tensor): Tensor {
  return floatAlu(self, "ERF");
}
export function erfc(self: Tensor): Tensor {
  return unary(
    self,
    (x) => {
      const size = abs(x);
      const tail = erfcTail(clamp(size, 0.5, 40));
      const far = where(lt(x, 0), rsub(tail, 2), tail);
      // nearer to 0 the difference keeps its digits
      return where(gt(size, 0.5), far, rsub(erf(x), 1));
    },
    (x) => mul(exp(neg(mul(x, x))), -2 / Math.sqrt(Math.PI)),
  );
}
export function erfinv(self: Tensor): Tensor {
  return unary(
    self,
    (x) => {
      const size = abs(x);
      // log(1 - x²) and two square roots come near; Newton's method does the rest
      const logarithm = log(mul(rsub(size, 1), add(size, 1)));
      const half = add(mul(logarithm, 0.5), 2 / (Math.PI * 0.147));
      const start = sqrt(clampMin(sub(sqrt(sub(mul(half, half), div(logarithm, 0.147))), half), 0));
      // erf near 0 and erfc far from it keep the digits of the difference
      const near = lt(size, 0.5);
      const step = (y: Tensor) => {
        const slope = mul(exp(neg(mul(y, y))), 2 / Math.sqrt(Math.PI));
        const off = where(near, sub(erf(y), size), sub(rsub(size, 1), erfc(y)));
        return sub(y, div(off, slope));
      };
      let y = start;
      for (let i = 0; i < (x.dtype.itemsize === 8 ? 4 : 2); i++) y = step(y);
      const inside = where(eq(size, 0), 0, y);
      return copysign(where(eq(size, 1), Infinity, inside), x);
    },
    (_, out) => mul(exp(mul(out, out)), Math.sqrt(Math.PI) / 2),
  );
}

// ---- gamma ----

export function lgamma(self: Tensor): Tensor {
  return unary(
    self,
    (x) => {
      // gamma(x) gamma(-x) = -pi / (x sin(pi x))
      const size = abs(x);
      const above = lgammaUp(size);
      const sine = sin(mul(abs(sub(x, nearest(x))), Math.PI));
      const mirror = sub(rsub(log(mul(size, sine)), Math.log(Math.PI)), above);
      // so near to 0 that only the pole counts, and the product above may underflow
      const tiny = lt(size, x.dtype.itemsize === 8 ? 1e-17 : 1e-9);
      const pole = bitwiseAnd(le(x, 0), eq(floor(x), x));
      const value = where(tiny, neg(log(size)), where(lt(x, 0), mirror, above));
      return where(bitwiseOr(pole, isinf(x)), Infinity, value);
    },
    (x) => digamma(x),
  );
}
/** The nearest integer, or one of the two. */
function nearest(self: Tensor): Tensor {
  return floor(add(self, 0.5));
}
/**
 * lgamma of what is above 0. Its zeros are factors of the polynomial, so that digits are kept around them;
 * gamma(x + 1) = x gamma(x) leads there from both sides, and Stirling's series counts far away.
 */
function lgammaUp(self: Tensor): Tensor {
  const below = lt(self, 1);
  let part = self;
  let product: Tensor = wrap(self.lazydata.const(1));
  for (let k = 2.5; k < STIRLING_FROM; k++) {
    const down = ge(part, 2.5);
    part = where(down, sub(part, 1), part);
    product = where(down, mul(product, part), product);
  }
  const first = where(below, self, sub(part, 1));
  const table = polynomial(sub(first, 0.75), forType(self.dtype, LGAMMA));
  const near = mul(mul(first, sub(first, 1)), table);
  const factor = log(where(below, self, product));
  const low = where(below, sub(near, factor), add(near, factor));

  const high = lt(self, STIRLING_FROM);
  const z = where(high, STIRLING_FROM, self);
  const r = reciprocal(z);
  const series = add(mul(polynomial(mul(r, r), STIRLING), r), 0.5 * Math.log(2 * Math.PI));
  // (z - 1/2) log z - z, with the larger terms together
  const big = add(mul(z, sub(log(z), 1)), sub(series, mul(log(z), 0.5)));
  return where(high, low, big);
}
export function digamma(self: Tensor): Tensor {
  return unary(
    self,
    (x) => {
      const reflected = lt(x, 0.5);
      const y = where(reflected, rsub(x, 1), x);
      const up = digammaUp(y);
      const angle = mul(sub(x, nearest(x)), Math.PI);
      const mirror = sub(up, mul(reciprocal(tan(angle)), Math.PI));
      const pole = bitwiseAnd(lt(x, 0), eq(floor(x), x));
      const value = where(pole, NaN, where(reflected, mirror, up));
      return where(eq(x, 0), neg(reciprocal(x)), value);
    },
    (x) => polygamma(x, 1),
  );
}
function digammaUp(self: Tensor): Tensor {
  const low = lt(self, STIRLING_FROM);
  let sum = reciprocal(self);
  for (let k = 1; k < STIRLING_FROM; k++) sum = add(sum, reciprocal(add(self, k)));
  const z = where(low, add(self, STIRLING_FROM), self);
  const r = reciprocal(z);
  const s = mul(r, r);
  const big = add(sub(log(z), mul(r, 0.5)), mul(s, polynomial(s, DIGAMMA)));
  return where(low, sub(big, sum), big);
}
export function polygamma(self: Tensor, n: number): Tensor {
  if (!Number.isInteger(n) || n < 0) {
    throw new ArgumentError(`polygamma: n is ${n}, expected an integer from 0 up`);
  }
  if (n === 0) return digamma(self);
  let factor = n % 2 === 0 ? -1 : 1;
  for (let k = 2; k <= n; k++) factor *= k;
  return unary(
    self,
    (x) => mul(zeta(x, n + 1), factor),
    (x) => polygamma(x, n + 1),
  );
}
/** The sum of (x + k)^-s for k = 0, 1, …: Hurwitz's zeta function, for a whole s from 2 up. */
function zeta(self: Tensor, s: number): Tensor {
  const below = lt(self, 0);
  const part = where(below, sub(self, floor(self)), self);
  const up = zetaUp(part, s);
  // the terms below 0 are those of a sum above 0 that ends
  const turned = sub(zetaUp(rsub(part, 1), s), zetaUp(rsub(self, 1), s));
  const whole = s % 2 === 0 ? add(up, turned) : sub(up, turned);
  const pole = bitwiseAnd(le(self, 0), eq(floor(self), self));
  return where(pole, Infinity, where(below, whole, up));
}
/** The same where x is not negative: some terms, and Euler's and Maclaurin's formula for the rest. */
function zetaUp(self: Tensor, s: number): Tensor {
  let sum = pow(reciprocal(self), s);
  for (let k = 1; k < ZETA_TERMS; k++) sum = add(sum, pow(reciprocal(add(self, k)), s));
  const a = add(self, ZETA_TERMS);
  const r = reciprocal(a);
  let factor = s;
  const series = BERNOULLI.map((b, j) => {
    const c = b * factor;
    factor *= ((s + 2 * j + 1) * (s + 2 * j + 2)) / ((2 * j + 3) * (2 * j + 4));
    return c;
  });
  const tail = add(mul(add(mul(polynomial(mul(r, r), series.reverse()), r), 0.5), r), 1 / (s - 1));
  return add(sum, mul(pow(r, s - 1), tail));
}
