// exp2 and log2 as sums, products and bit tricks, for targets that have no such instruction. In goes a
// value of any Algebra, out comes the expression: branch-free, ops of the OPS table only. Right to 1.5 ulp.
// Here are the functions of any float format and those of float32; transcendental64.ts has those of float64,
// errorfunction.ts, trigonometry.ts and power.ts the others. The coefficients come from `scripts/minimax.mjs`
// (Remez exchange on BigInt); tests measure the result.

import { type DType, dtypes } from "./dtype.ts";
import { integers, notation } from "./notation.ts";
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
}

export const FLOAT32: FloatFormat = {
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
};

/** 1/ln 2 - 1: the whole part of the factor is added for itself, without an error. */
const LOG2E_MINUS_ONE = 0.4426950408889634;

/** A function of float32 on that type or a narrower one: it is rounded once, at the end. */
export const rounded =
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
export function exp2In<T>(format: FloatFormat, a: Algebra<T>, x: T): T {
  const d = a.dtypeOf(x);
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
}

/**
 * The same for an x that is not above 0: then the second factor of 2^n can be a constant, and
 * there is one end less to stop at.
 */
export function exp2NotPositive<T>(a: Algebra<T>, x: T, format: FloatFormat): T {
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
export function log2In<T>(format: FloatFormat, a: Algebra<T>, x: T): T {
  const d = a.dtypeOf(x);
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
}

export const exp2 = rounded((a, x) => exp2In(FLOAT32, a, x));
export const log2 = rounded((a, x) => log2In(FLOAT32, a, x));
