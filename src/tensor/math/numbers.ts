// Functions of whole numbers (gcd, lcm), of the bits of floats (nextafter, frexp, ldexp), and the special
// functions that are sums of simpler ones: multivariate gamma and the modified Bessel functions. Half-width
// floats compute in float32.

import { bounds, type DType, dtypes } from "../../dtype.ts";
import { ArgumentError, DTypeError } from "../../errors.ts";
import { range } from "../../helpers.ts";
import type { Element } from "../core.ts";
import { bitcast, cast, detach } from "../core.ts";
import type { Tensor } from "../tensor.ts";
import {
  add,
  binary,
  bitwiseAnd,
  bitwiseOr,
  div,
  eq,
  exp,
  exp2,
  fmod,
  gt,
  idiv,
  isNarrow,
  le,
  logicalNot,
  lt,
  mul,
  neg,
  operands,
  reciprocal,
  rshift,
  sub,
  toFloat,
  unary,
  where,
  zero,
} from "./arithmetic.ts";
import { rsqrt } from "./elementary.ts";
import { abs, bitsOf, copysign, isnan } from "./rounding.ts";
import { forType, lgamma, polynomial, type Table } from "./special.ts";

/** exp(-x) I0(x) in powers of x/4 - 1, for 0 <= x <= 8 */
const I0_NEAR: Table = {
  float: [
    -0.00013152060630607088, 0.00034824109057890804, -0.00022722968338111303, 0.0004143919060489856,
    -0.0020044758245779414, 0.004166015653562654, -0.006651419484491594, 0.011557353661066808,
    -0.019745851414068618, 0.030358703692477982, -0.04296881129335962, 0.05672795589861263,
    -0.06954385402504584, 0.07928284334431146, -0.08496317214579, 0.08734281771702368, -0.08904344770455307,
    0.09451564672892827, -0.1130043268544693, 0.20700192113298854,
  ],
  double: [
    4.394426308340083e-9, -1.631130691668671e-8, 2.679771004975793e-8, -8.594601526025913e-8,
    3.659216730162776e-7, -1.1419495259048662e-6, 3.232396382443255e-6, -9.183910794736519e-6,
    2.5198651465609148e-5, -6.55678677969644e-5, 0.0001624084559061418, -0.0003828654139905961,
    0.0008563135177565376, -0.0018119029764120445, 0.0036171271654272855, -0.006792394821044967,
    0.011960077703464203, -0.019682655784004566, 0.03017791206221918, -0.04298594929673067,
    0.05677703201501785, -0.06954119563154397, 0.07927522590752974, -0.08496338091542556, 0.08734341617550884,
    -0.08904344136077733, 0.09451562853995125, -0.11300432688620536, 0.2070019212239867,
  ],
};
/** exp(-x) I1(x) / x in powers of x/4 - 1, for 0 <= x <= 8 */
const I1_NEAR: Table = {
  float: [
    -1.694785151624946e-5, 4.7479082033953785e-5, -4.317720058003002e-5, 9.375809886867844e-5,
    -0.0003636452040028463, 0.000812047943412777, -0.001522471036028631, 0.0029563628396675574,
    -0.005541908244896256, 0.009606095385955372, -0.015569320920202672, 0.023680016667049938,
    -0.03367166370472805, 0.0446755031610766, -0.05528001503648954, 0.06376733064622675, -0.06848260694070092,
    0.06805760212960305, -0.061124338025990106, 0.04468770986450251,
  ],
  double: [
    3.6696752013169966e-10, -1.4165980180332847e-9, 2.644330576999187e-9, -8.986801013193351e-9,
    3.7901404602356164e-8, -1.2424046295570417e-7, 3.7617292810159424e-7, -1.1327198008251626e-6,
    3.29361514435675e-6, -9.136529630106953e-6, 2.4233987591498262e-5, -6.142361409267038e-5,
    0.00014842110758080817, -0.0003411760229204836, 0.0007445123998749739, -0.001538874564273584,
    0.0030057624040464932, -0.005534567846988655, 0.009583962153764291, -0.015571309244077562,
    0.023686016957350876, -0.03367135552107505, 0.044674572621282986, -0.05528003922699226,
    0.06376740371340611, -0.0684826062058269, 0.06805759990951162, -0.061124338029666284,
    0.044687709875608835,
  ],
};
/** sqrt(x) exp(-x) I0(x) in powers of 16/x - 1, for x >= 8 */
const I0_FAR: Table = {
  float: [
    1.0829898259260847e-7, 3.631710305277285e-7, 1.4767921099426897e-6, 1.1111525456650673e-5,
    0.00013621684311530046, 0.003360555851925354, 0.4021765094450081,
  ],
  double: [
    1.0881994785468934e-10, 3.525321019700796e-11, -7.473844621887592e-10, -2.748111637276033e-10,
    2.3981927228949238e-9, 1.0924527246468664e-9, -4.8482509221176966e-9, -3.11851456121224e-9,
    6.789790403895736e-9, 7.323310735122893e-9, -5.162517880939013e-9, -1.331979859201994e-8,
    -6.805980075129678e-9, 7.532386417555123e-9, 2.155681110989874e-8, 3.932926571091252e-8,
    8.872154618944625e-8, 2.9735956581528157e-7, 1.4838475863096976e-6, 1.1143033802583682e-5,
    0.00013621607439187193, 0.0033605519836677235, 0.4021765094450081,
  ],
};
/** sqrt(x) exp(-x) I1(x) in powers of 16/x - 1, for x >= 8 */
const I1_FAR: Table = {
  float: [
    -1.2212498465941114e-7, -4.2155543729815765e-7, -1.8267145046635388e-6, -1.500332306614829e-5,
    -0.00021923666942859845, -0.009749581526547915, 0.38939845902587233,
  ],
  double: [
    -1.13288885034257e-10, -3.2677656089803323e-11, 7.79067217908059e-10, 2.582169443152386e-10,
    -2.5062162405593894e-9, -1.0476127785270019e-9, 5.094016301574338e-9, 3.0717395650769477e-9,
    -7.222524178953976e-9, -7.432535335623792e-9, 5.722677527454156e-9, 1.3952625102162603e-8,
    6.795073490187386e-9, -8.407326839577817e-9, -2.3382691353601083e-8, -4.31323156237458e-8,
    -1.0001220638799958e-7, -3.483853071371078e-7, -1.8349101539664522e-6, -1.503854721127423e-5,
    -0.000219235763833829, -0.009749577193235609, 0.38939845902587233,
  ],
};

/** Bits of the fraction of a float that stands on its own in a kernel. */
const fractionBits = (d: DType): number => (d.itemsize === 8 ? 52 : 23);

// ---- whole numbers ----

function whole(self: Tensor, method: string, x: Tensor | Element): [Tensor, Tensor] {
  const [a, b] = operands(self, method, [x]) as [Tensor, Tensor];
  if (a.dtype.isInt) return [detach(a), detach(b)];
  throw new DTypeError(`${method}: takes integers, got ${a.dtype.name}; cast first`);
}
export function gcd(self: Tensor, x: Tensor | Element): Tensor {
  return gcdOf(self, "gcd", x)[0];
}
function gcdOf(self: Tensor, method: string, x: Tensor | Element): [divisor: Tensor, a: Tensor, b: Tensor] {
  const [one, two] = whole(self, method, x);
  let [a, b] = [abs(one), abs(two)];
  // Euclid needs the most steps for two Fibonacci numbers: 1.44 a bit
  for (let i = 0; i < Math.ceil(one.dtype.bits * 1.45); i++) {
    const done = eq(b, 0);
    [a, b] = [where(done, a, b), where(done, b, fmod(a, b))];
  }
  // the smallest integer has no positive one beside it, and passes its sign on
  return [abs(a), one, two];
}
export function lcm(self: Tensor, x: Tensor | Element): Tensor {
  const [divisor, a, b] = gcdOf(self, "lcm", x);
  return abs(mul(idiv(a, divisor), b)); // an integer divided by 0 is 0
}

// ---- the bits of floats ----

export function ldexp(self: Tensor, x: Tensor | Element): Tensor {
  const [a, b] = operands(self, "ldexp", [x], toFloat) as [Tensor, Tensor];
  return mul(a, exp2(b));
}
export function frexp(self: Tensor): [Tensor, Tensor] {
  const x = cast(self, toFloat(self.dtype));
  if (isNarrow(x.dtype)) {
    const [mantissa, exponent] = frexp(cast(x, dtypes.float32));
    return [cast(mantissa, x.dtype), exponent];
  }
  const [bits, type] = [fractionBits(x.dtype), bitsOf(x.dtype)];
  const most = 2 ** (x.dtype.itemsize === 8 ? 11 : 8) - 1;
  const plain = abs(detach(x));
  // numbers too small for an exponent of their own are made larger first
  const tiny = lt(plain, 2 ** -(most >> 1));
  const scaled = where(tiny, mul(plain, 2 ** (bits + 2)), plain);
  const power = sub(cast(rshift(bitcast(scaled, type), bits), dtypes.int32), (most >> 1) - 1);
  const none = bitwiseOr(eq(plain, 0), logicalNot(lt(plain, Infinity)));
  const exponent = where(none, 0, where(tiny, sub(power, bits + 2), power));
  // in two steps: 2^-exponent alone may be too large
  const half = idiv(exponent, 2);
  const shrink = (t: Tensor, by: Tensor) => mul(t, exp2(cast(neg(by), x.dtype)));
  return [shrink(shrink(x, half), sub(exponent, half)), exponent];
}
export function nextafter(self: Tensor, x: Tensor | Element): Tensor {
  return binary(
    self,
    "nextafter",
    x,
    (a, b) => {
      const type = bitsOf(a.dtype);
      const bits = bitcast(a, type);
      const away = eq(lt(a, b), gt(a, 0)); // the bits of floats are ordered by size
      const step = bitcast(where(away, add(bits, 1), sub(bits, 1)), a.dtype);
      const least = bitcast(bitwiseOr(bitwiseAnd(bitcast(b, type), bounds(type)[0]), 1), a.dtype);
      const moved = where(eq(a, b), b, where(eq(a, 0), least, step));
      return where(bitwiseOr(isnan(a), isnan(b)), NaN, moved);
    },
    (g, _, a, b) => [where(eq(a, b), 0, g), zero(g)],
    (d) => {
      if (d.isFloat) return d;
      throw new DTypeError(`nextafter: takes floats, got ${d.name}; cast first`);
    },
  );
}

// ---- gamma and Bessel functions ----

export function mvlgamma(self: Tensor, p: number): Tensor {
  if (!Number.isInteger(p) || p < 1) {
    throw new ArgumentError(`mvlgamma: p is ${p}, expected an integer from 1 up`);
  }
  const x = cast(self, toFloat(self.dtype));
  const logs = range(p).map((j) => lgamma(j === 0 ? x : sub(x, j / 2)));
  const sum = logs.reduce((a, b) => add(a, b));
  return p === 1 ? sum : add(sum, ((p * (p - 1)) / 4) * Math.log(Math.PI));
}
export function i0(self: Tensor): Tensor {
  return unary(
    self,
    (x) => bessel(x, I0_NEAR, I0_FAR, false),
    (x) => i1(x),
  );
}
export function i1(self: Tensor): Tensor {
  return unary(
    self,
    (x) => bessel(x, I1_NEAR, I1_FAR, true),
    (x, out) => where(eq(x, 0), 0.5, sub(i0(x), div(out, where(eq(x, 0), 1, x)))),
  );
}
function bessel(self: Tensor, near: Table, far: Table, odd: boolean): Tensor {
  const size = abs(self);
  const small = le(size, 8);
  const t = sub(where(small, mul(size, 0.25), mul(reciprocal(size), 16)), 1);
  const close = polynomial(t, forType(self.dtype, near));
  const away = mul(polynomial(t, forType(self.dtype, far)), rsqrt(size));
  // exp twice: the product may be finite where exp alone is not
  const grow = exp(mul(size, 0.5));
  const value = mul(mul(where(small, odd ? mul(close, size) : close, away), grow), grow);
  return odd ? copysign(value, self) : value;
}
