// exp2, log2 and erf as sums, products and bit tricks, for targets that have no such instruction. In goes a
// float32 or float64 value of any Algebra, out comes the expression: branch-free, ops of the OPS table only.
// Right to 1.5 ulp. The coefficients come from `scripts/minimax.mjs` (Remez exchange on BigInt); tests
// measure the result. trigonometry.ts and power.ts have the other functions.

import { type DType, dtypes } from "./dtype.ts";
import { FLOAT64_MAGIC, integers, notation } from "./notation.ts";
import type { Algebra } from "./ops.ts";

/** What the functions must know of a float format: its bits, and the tables that reach its precision. */
export interface FloatFormat {
  readonly int: DType;
  readonly mantissa: number;
  readonly bias: number;
  /** 1.5 * 2^mantissa: adding it rounds to an integer, whose bits are then the low ones of the sum */
  readonly magic: number;
  /** where exp2 is surely 0 and surely infinite */
  readonly exp2Range: readonly [number, number];
  /** 2^(n + lift) and 2^-lift are normal numbers for all n from the lower end of that range up to 0 */
  readonly lift: number;
  /** 2^x = 1 + x p(x) for |x| <= 1/2 */
  readonly exp2: readonly number[];
  /** the smallest normal number, and the bits of sqrt(1/2) */
  readonly minNormal: number;
  readonly rootHalf: number | bigint;
  /** log2((1+s)/(1-s)) = 2s/ln 2 + s z p(z) for z = s^2 <= 0.0295: a mantissa in [sqrt(1/2), sqrt(2)] */
  readonly log2: readonly number[];
  /** erf(x) = x + x p(x^2) for |x| <= 1 */
  readonly erfNear: readonly number[];
  /** erf(x) = 1 - 2^p(x - 1) from 1 to `erfEnd`, where it rounds to 1 */
  readonly erfFar: readonly number[];
  readonly erfEnd: number;
}

const FLOAT32: FloatFormat = {
  int: dtypes.int32,
  mantissa: 23,
  bias: 127,
  magic: 1.5 * 2 ** 23,
  exp2Range: [-160, 130],
  lift: 64,
  // degree 5, relative error of 2^x 2^-28.9, 2^-25.9 with rounded coefficients
  exp2: [
    0.6931471824645996, 0.24022647738456726, 0.055503323674201965, 0.00961843691766262, 0.0013398873852565885,
    0.00015353361959569156,
  ],
  minNormal: 2 ** -126,
  rootHalf: 0x3f3504f3,
  // degree 2, relative error of the logarithm 2^-30.2, 2^-29.8 with rounded coefficients
  log2: [0.9617982506752014, 0.5767540335655212, 0.43095794320106506],
  // degree 6, relative error of erf 2^-29.6, 2^-27.7 with rounded coefficients
  erfNear: [
    0.12837916612625122, -0.3761262595653534, 0.1128358542919159, -0.026853810995817184, 0.005188327748328447,
    -0.0008010192541405559, 0.0000785385855124332,
  ],
  // degree 6, relative error of erf 2^-29.8, 2^-27.5 with rounded coefficients
  erfFar: [
    -2.668416738510132, -3.8072245121002197, -1.21636164188385, -0.05987688899040222, 0.014276129193603992,
    -0.0026392403524369, 0.0002688878739718348,
  ],
  erfEnd: 4,
};

export const FLOAT64: FloatFormat = {
  int: dtypes.int64,
  mantissa: 52,
  bias: 1023,
  magic: FLOAT64_MAGIC,
  exp2Range: [-1100, 1030],
  lift: 512,
  // degree 10, relative error of 2^x 2^-58.0, 2^-55.0 with rounded coefficients
  exp2: [
    Math.LN2,
    0.2402265069591013,
    0.055504108664820084,
    0.00961812910759412,
    0.001333355814677461,
    0.00015403530457111864,
    0.000015252733493136672,
    0.0000013215435282432815,
    1.0178199568349251e-7,
    7.073783226266358e-9,
    4.4347717941067807e-10,
  ],
  minNormal: 2 ** -1022,
  rootHalf: 0x3fe6a09e667f3bcdn,
  // degree 6, relative error of the logarithm 2^-59.5, 2^-59.0 with rounded coefficients
  log2: [
    0.9617966939259853, 0.577078016347141, 0.4121985855775558, 0.3205985567913853, 0.26233338080841667,
    0.22093504748130702, 0.2134604358798606,
  ],
  // degree 12, relative error of erf 2^-62.7, 2^-56.3 with rounded coefficients
  erfNear: [
    0.1283791670955126, -0.3761263890318375, 0.11283791670954857, -0.026866170645072893,
    0.0052239776247808446, -0.0008548326978741059, 0.0001205533103686138, -0.000014925593506033262,
    0.0000016460972804046682, -1.635002509178194e-7, 1.4657879001110559e-8, -1.1365662846338117e-9,
    5.945256689182571e-11,
  ],
  // degree 18, relative error of erf 2^-59.5, 2^-57.0 with rounded coefficients
  erfFar: [
    -2.6684166967815997, -3.8072253458536043, -1.2163466576861373, -0.059959990039358126,
    0.014475750114669034, -0.002853510263933881, 0.0003423841254505449, 0.00003791050637774504,
    -0.000039181393460453566, 0.000013861346223610723, -0.0000029701273531403095, 2.0490617304959043e-7,
    1.414726054513025e-7, -7.54087329126592e-8, 2.162224590237458e-8, -4.157331954182455e-9,
    5.352014598602013e-10, -4.193624841493007e-11, 1.51433979669144e-12,
  ],
  erfEnd: 6,
};

/** 1/ln 2 - 1: the whole part of the factor is added for itself, without an error. */
const LOG2E_MINUS_ONE = 0.4426950408889634;

export const formatOf = (d: DType): FloatFormat => (d.itemsize === 8 ? FLOAT64 : FLOAT32);
/** A function of float32 and float64 on a narrower float: it is rounded once, at the end. */
const widened =
  (f: <T>(a: Algebra<T>, x: T) => T) =>
  <T>(a: Algebra<T>, x: T): T => {
    const d = a.dtypeOf(x);
    return d.itemsize < 4 ? a.cast(f(a, a.cast(x, dtypes.float32)), d) : f(a, x);
  };
/**
 * The integer nearest to x, as a float; and the same plus `bias`, in the low bits of an integer. Adding a
 * number whose last bit counts 1 rounds to an integer. Where a compiler may fold that sum, TRUNC is used.
 */
export function nearest<T>(a: Algebra<T>, x: T, format: FloatFormat, bias: number): { whole: T; bits: T } {
  const { add, sub, less, where } = notation(a, a.dtypeOf(x));
  if (a.ieee === false) {
    const whole = a.alu("TRUNC", add(x, where(less(x, 0), -0.5, 0.5)));
    return { whole, bits: a.alu("ADD", a.cast(whole, format.int), integers(a, format.int)(bias)) };
  }
  const magic = format.magic + bias;
  const shifted = add(x, magic);
  return { whole: sub(shifted, magic), bits: a.bitcast(shifted, format.int) };
}

/**
 * 2^x = 2^n 2^f with n the nearest integer. NaN goes through the polynomial. The power 2^n is multiplied in
 * two halves, so that neither leaves the format and a subnormal result is rounded once. Half of n + 2 bias
 * and the rest of it are the exponents; shifting drops all above.
 */
export const exp2 = widened(<T>(a: Algebra<T>, x: T): T => {
  const d = a.dtypeOf(x);
  const format = formatOf(d);
  if (a.isNotPositive?.(x)) return exp2NotPositive(a, x, format);
  const { sub, mul, mulAdd, less, where, polynomial } = notation(a, d);
  const int = integers(a, format.int);
  const [low, high] = format.exp2Range;

  const upper = where(less(high, x), high, x);
  const y = where(less(upper, low), low, upper);
  const { whole, bits: n } = nearest(a, y, format, 2 * format.bias);
  const f = sub(y, whole);
  const half = a.alu("SHR", n, int(1));
  const power = (k: T) => a.bitcast(a.alu("SHL", k, int(format.mantissa)), d);
  const root = mulAdd(f, polynomial(f, format.exp2), 1);
  return mul(mul(root, power(half)), power(a.alu("SUB", n, half)));
});

/**
 * The same for an x that is not above 0: then the second factor of 2^n can be a constant, and
 * there is one end less to stop at.
 */
function exp2NotPositive<T>(a: Algebra<T>, x: T, format: FloatFormat): T {
  const d = a.dtypeOf(x);
  const { sub, mul, mulAdd, less, where, polynomial } = notation(a, d);
  const [low] = format.exp2Range;

  const y = where(less(x, low), low, x);
  const { whole, bits } = nearest(a, y, format, format.bias + format.lift);
  const f = sub(y, whole);
  const exponent = a.alu("SHL", bits, integers(a, format.int)(format.mantissa));
  const root = mulAdd(f, polynomial(f, format.exp2), 1);
  return mul(mul(root, a.bitcast(exponent, d)), 2 ** -format.lift);
}

/**
 * log2(x) = e + log2(1 + f) with 1 + f in [sqrt(1/2), sqrt(2)]. With s = f / (2 + f), z = s^2 and c = 1/ln 2,
 * log2(1 + f) = c f - s (c f - z p(z)); written as f + ((c-1) f - …), the largest term has no error.
 */
export const log2 = widened(<T>(a: Algebra<T>, x: T): T => {
  const d = a.dtypeOf(x);
  const format = formatOf(d);
  const { add, sub, mul, div, less, where, polynomial } = notation(a, d);
  const int = integers(a, format.int);
  const mantissa = int(format.mantissa);

  const subnormal = less(x, format.minNormal);
  const bits = a.bitcast(where(subnormal, mul(x, 2 ** (format.mantissa + 1)), x), format.int);
  const e = a.alu("SHR", a.alu("SUB", bits, int(format.rootHalf)), mantissa);
  const f = sub(a.bitcast(a.alu("SUB", bits, a.alu("SHL", e, mantissa)), d), 1);
  const exponent = sub(a.cast(e, d), where(subnormal, format.mantissa + 1, 0));

  const s = div(f, add(f, 2));
  const z = mul(s, s);
  const v = mul(f, LOG2E_MINUS_ONE);
  const tail = sub(v, mul(s, sub(add(v, f), mul(z, polynomial(z, format.log2)))));
  const result = add(exponent, add(f, tail));
  const finite = where(less(x, Infinity), result, x);
  const zero = a.alu("CMPEQ", x, a.constant(d, 0));
  return where(less(0, x), finite, where(zero, -Infinity, NaN));
});

/**
 * erf(x) = x + x p(x^2) near 0. Far from it the complement is 2^q(|x| - 1): it is small there, so that its
 * error counts little. NaN goes through the second one.
 */
export const erf = widened(<T>(a: Algebra<T>, x: T): T => {
  const d = a.dtypeOf(x);
  const format = formatOf(d);
  const { sub, mul, mulAdd, less, where, polynomial } = notation(a, d);
  const negated = a.alu("NEG", x);
  const isNegative = less(x, 0);
  const size = where(isNegative, negated, x);
  const near = mulAdd(x, polynomial(mul(x, x), format.erfNear), x);
  const end = where(less(format.erfEnd, size), format.erfEnd, size);
  const complement = exp2NotPositive(a, polynomial(sub(end, 1), format.erfFar), format);
  const far = sub(1, complement);
  return where(less(size, 1), near, where(isNegative, a.alu("NEG", far), far));
});
/** The same on a number of JavaScript, which has no erf. */
export function erfOfNumber(x: number): number {
  const { erfNear, erfFar, erfEnd } = FLOAT64;
  const horner = (at: number, c: readonly number[]): number => c.reduceRight((sum, k) => sum * at + k, 0);
  const size = Math.abs(x);
  if (size < 1) return x + x * horner(x * x, erfNear);
  return Math.sign(x) * (1 - 2 ** horner(Math.min(size, erfEnd) - 1, erfFar));
}
