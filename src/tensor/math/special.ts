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
  unary,
  where,
} from "./arithmetic.ts";
import { cos, log1p, pow, rsqrt, sin } from "./elementary.ts";
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

/** erfc of what is not below 1. */
function erfcTail(self: Tensor): Tensor {
  const w = div(sub(self, 3), add(self, 3));
  const scaled = polynomial(w, forType(self.dtype, ERFC));
  return div(mul(scaled, exp(neg(mul(self, self)))), add(mul(self, 2), 1));
}
function erfNear(self: Tensor): Tensor {
  return mul(self, polynomial(mul(self, self), forType(self.dtype, ERF)));
}
export function erf(self: Tensor): Tensor {
  return floatAlu(self, "ERF");
}
export function erfc(self: Tensor): Tensor {
  return unary(
    self,
    (x) => {
      const size = abs(x);
      const tail = erfcTail(clamp(size, 1, 40));
      const far = where(lt(x, 0), rsub(tail, 2), tail);
      return where(gt(size, 1), far, rsub(erfNear(x), 1));
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
      // gamma(x) gamma(1 - x) = pi / sin(pi x)
      const reflected = lt(x, 0.5);
      const y = where(reflected, rsub(x, 1), x);
      const logarithm = lgammaUp(y);
      const sine = sin(mul(sub(x, floor(x)), Math.PI));
      const mirror = rsub(add(log(sine), logarithm), Math.log(Math.PI));
      const pole = bitwiseAnd(le(x, 0), eq(floor(x), x));
      return where(bitwiseOr(pole, isinf(x)), Infinity, where(reflected, mirror, logarithm));
    },
    (x) => digamma(x),
  );
}
function lgammaUp(self: Tensor): Tensor {
  const low = lt(self, STIRLING_FROM);
  let product = self as Tensor;
  for (let k = 1; k < STIRLING_FROM; k++) product = mul(product, add(self, k));
  const z = where(low, add(self, STIRLING_FROM), self);
  const r = reciprocal(z);
  const series = add(mul(polynomial(mul(r, r), STIRLING), r), 0.5 * Math.log(2 * Math.PI));
  const big = add(sub(mul(sub(z, 0.5), log(z)), z), series);
  return where(low, sub(big, log(where(low, product, 1))), big);
}
export function digamma(self: Tensor): Tensor {
  return unary(
    self,
    (x) => {
      const reflected = lt(x, 0.5);
      const y = where(reflected, rsub(x, 1), x);
      const up = digammaUp(y);
      const angle = mul(sub(x, floor(x)), Math.PI);
      const mirror = sub(up, mul(div(cos(angle), sin(angle)), Math.PI));
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
