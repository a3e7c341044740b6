// Sine and cosine as sums, products and bit tricks, for targets that have no such instruction. In goes a
// float of up to 32 bits of any Algebra, out comes the expression: branch-free, within 1.5 ulp for every
// finite value. The angle is reduced to turns, in float64 or, where there is none, in integers.
// trigonometry64.ts has the functions of float64; `scripts/minimax.mjs` has the coefficients.

import { dtypes } from "./dtype.ts";
import { integers, type Notation, notation } from "./notation.ts";
import type { Algebra } from "./ops.ts";

const { float32, float64, int64, uint32, uint64 } = dtypes;

// float32 counts in turns. 1/(2 pi) in parts of 28 bits, whose products with a float32 are exact in float64;
// the last part has 53, as its product is small in any case.
const INVERSE_TURN = [
  0.15915494225919247, 8.327028684640414e-10, 5.69002511952534e-19, 6.3170650472507054e-27,
  4.170716914254881e-35, 2.897178338357036e-44,
];
/** Adding it rounds to a quarter; the low two bits of the sum are the quadrant. */
const QUARTERS = 1.5 * 2 ** 50;
/** sin(2 pi r) = r p(r^2) for |r| <= 1/8: degree 3, relative error 2^-28.2 */
const SIN_TURNS = [6.283185287334506, -41.341661852969814, 81.59238911954546, -75.39370774347844];
/** cos(2 pi r) = 1 + z p(z), z = r^2, for |r| <= 1/8: degree 3, error 2^-34.1 */
const COS_TURNS = [-19.739208690859734, 64.93932517153682, -85.44357470336466, 59.2396220151341];

/** sin(r) = r + r z p(z), z = r^2, for |r| <= pi/4: degree 5, relative error 2^-58.0, 2^-56.9 rounded */
export const SIN_RADIANS = [
  -0.16666666666666632, 0.008333333333322337, -0.00019841269829742666, 0.0000027557313668365693,
  -2.5050754288626455e-8, 1.5896566280380951e-10,
];
/** cos(r) = 1 - z/2 + z^2 p(z) for |r| <= pi/4: degree 5, error 2^-64.2, 2^-59.6 rounded */
export const COS_RADIANS = [
  0.0416666666666666, -0.0013888888888874019, 0.000024801587289413378, -2.755731433158793e-7,
  2.087572034293189e-9, -1.1359490688944376e-11,
];

/** The sine of x and so many quarters of a turn more. */
type Sine = <T>(a: Algebra<T>, x: T, quarters: number) => T;
/** sin(x), through the nearest quarter of a turn; the zeros keep their sign, infinities give NaN. */
export const sinBy =
  (sine: Sine) =>
  <T>(a: Algebra<T>, x: T): T =>
    a.alu("WHERE", a.alu("CMPEQ", x, a.constant(a.dtypeOf(x), 0)), x, sine(a, x, 0));
/** cos(x): the sine a quarter of a turn further. */
export const cosBy =
  (sine: Sine) =>
  <T>(a: Algebra<T>, x: T): T =>
    sine(a, x, 1);

const sine: Sine = (a, x, quarters) => {
  const value =
    a.hasDouble === false
      ? sineInWords(a, a.cast(x, float32), quarters)
      : sineOfTurns(a, notation(a, float64), a.cast(x, float64), quarters);
  return a.cast(value, a.dtypeOf(x));
};
export const sin = sinBy(sine);
export const cos = cosBy(sine);

/**
 * A float32 times each part of 1/(2 pi) is exact, and so is dropping its whole turns. The sum of what remains
 * tells the quadrant; it is taken away before the parts are added again, so that nothing is lost near zeros
 * of the sine, for every float32 up to the largest.
 */
function sineOfTurns<T>(a: Algebra<T>, { add, sub, mul, polynomial }: Notation<T>, x: T, further: number): T {
  const fractions = INVERSE_TURN.map((part) => {
    const turns = mul(x, part);
    return sub(turns, a.alu("TRUNC", turns));
  });
  const shifted = add(
    fractions.reduce((sum, f) => add(sum, f)),
    QUARTERS,
  );
  const quarters = sub(shifted, QUARTERS);
  const [first, ...rest] = fractions as [T, ...T[]];
  const r = rest.reduce((sum, f) => add(sum, f), sub(first, quarters));
  const z = mul(r, r);
  const near = mul(r, polynomial(z, SIN_TURNS));
  const far = add(mul(z, polynomial(z, COS_TURNS)), 1);
  return quadrant(a, a.bitcast(shifted, int64), further, near, far);
}

/** The bits of 2/pi in words of 32, after 32 zeros, as many as the largest float32 needs. */
const WORDS = [
  0, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561,
  0xb7246e3a,
];
/** Larger angles are reduced. */
const QUARTER_PI = Math.PI / 4;
/** pi/2 in a part of 12 bits, whose product with 12 others is exact in float32, and the rest. */
const HALF_PI_HIGH = Math.round((Math.PI / 2) * 2 ** 11) / 2 ** 11;
const HALF_PI_LOW = Math.PI / 2 - HALF_PI_HIGH;

/**
 * Without float64 (Payne and Hanek): x = m 2^k with an integer m of 24 bits. m times the 96 bits of 2/pi that
 * matter, modulo 2^64, has the quadrant in its upper two bits and the fraction of a quarter turn below.
 */
function sineInWords<T>(a: Algebra<T>, x: T, further: number): T {
  const { add, sub, mul, less, where, polynomial } = notation(a, float32);
  const word = integers(a, uint32);
  const bits = a.bitcast(x, uint32);
  const exponent = a.alu("AND", a.alu("SHR", bits, word(23)), word(0xff));
  const isNegative = a.alu("CMPNE", a.alu("SHR", bits, word(31)), word(0));
  const size = a.bitcast(a.alu("AND", bits, word(0x7fffffff)), float32);
  const isNear = less(size, QUARTER_PI);
  const far = fractionOf(a, a.alu("OR", a.alu("AND", bits, word(0x7fffff)), word(0x800000)), exponent);

  // in radians: the upper 12 bits by themselves, so that the sum rounds once
  const kept = a.constant(int64, 49n);
  const upper = a.alu("SHL", a.alu("SHR", far.fraction, kept), kept);
  const [high, low] = [upper, a.alu("SUB", far.fraction, upper)].map((part) =>
    mul(a.cast(part, float32), 2 ** -62),
  ) as [T, T];
  const small = add(mul(high, HALF_PI_LOW), mul(low, Math.PI / 2));
  const r = where(isNear, size, add(mul(high, HALF_PI_HIGH), small));
  const quarters = a.alu("WHERE", isNear, a.constant(int64, 0n), far.quarters);
  const z = mul(r, r);
  const sin = add(r, mul(mul(r, z), polynomial(z, SIN_RADIANS.slice(0, 4))));
  const cos = sub(1, sub(mul(z, 0.5), mul(mul(z, z), polynomial(z, COS_RADIANS.slice(0, 4)))));
  const value = quadrant(a, quarters, further, sin, cos);
  const signed = further === 0 ? where(isNegative, a.alu("NEG", value), value) : value;
  return where(a.alu("CMPLT", exponent, word(0xff)), signed, NaN);
}
/** m 2^(exponent - 150) in quarters of a turn: their number, and 2^62 times what is left, both as int64. */
function fractionOf<T>(a: Algebra<T>, m: T, exponent: T): { readonly quarters: T; readonly fraction: T } {
  const word = integers(a, uint32);
  const wide = integers(a, uint64);
  const at = a.alu("SUB", exponent, word(120));
  const [index, offset] = [a.alu("SHR", at, word(5)), a.alu("AND", at, word(31))];
  const from = (k: number): T =>
    WORDS.slice(k, k + 5)
      .map((w) => word(w))
      .reduceRight((rest, w, i) => a.alu("WHERE", a.alu("CMPEQ", index, word(i)), w, rest));
  const words = [0, 1, 2, 3].map(from) as [T, T, T, T];
  const [high, middle, low] = words.slice(0, 3).map((w, i) => {
    const next = a.alu("SHR", a.alu("SHR", words[i + 1] as T, word(1)), a.alu("SUB", word(31), offset));
    return a.alu("OR", a.alu("SHL", w, offset), next);
  }) as [T, T, T];
  const big = a.cast(m, uint64);
  const product = (w: T): T => a.alu("MUL", big, a.cast(w, uint64));
  const top = a.alu("SHL", a.cast(a.alu("MUL", m, high), uint64), wide(32));
  const all = a.alu("ADD", a.alu("ADD", top, product(middle)), a.alu("SHR", product(low), wide(32)));
  const quarters = a.alu("SHR", a.alu("ADD", all, wide(2n ** 61n)), wide(62));
  const fraction = a.alu("SUB", all, a.alu("SHL", quarters, wide(62)));
  return { quarters: a.bitcast(quarters, int64), fraction: a.bitcast(fraction, int64) };
}

/** The low two bits of `quarters`, with those `further`, say which of sin, cos, -sin, -cos it is. */
export function quadrant<T>(a: Algebra<T>, quarters: T, further: number, sin: T, cos: T): T {
  const int = integers(a, int64);
  const bits = further === 0 ? quarters : a.alu("ADD", quarters, int(further));
  const bit = (k: number) => a.alu("CMPNE", a.alu("AND", bits, int(k)), int(0));
  const value = a.alu("WHERE", bit(1), cos, sin);
  return a.alu("WHERE", bit(2), a.alu("NEG", value), value);
}
