// Sine and cosine as sums, products and bit tricks, for targets that have no such instruction. In goes a
// float32 or float64 value of any Algebra, out comes the expression: branch-free, within 1.5 ulp for every
// finite value. float32 is reduced to turns, in float64 or, where there is none, in integers. float64 up to
// 2^26 is reduced by subtracting multiples of pi/2, and beyond that by multiplying with the bits of 2/pi that
// matter, in integers (Payne and Hanek). `scripts/minimax.mjs` has the coefficients.

import { dtypes } from "./dtype.ts";
import { FLOAT64_MAGIC, integers, type Notation, notation } from "./notation.ts";
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

/** pi/2 in parts of 27 bits, the last of 53: times an integer of 26 bits, all but the last are exact. */
const HALF_PI = [
  1.570796325802803, 9.920935739593517e-10, 5.721188709663575e-18, 1.6446256892965207e-26,
  4.3359050650618903e-35,
] as const;
/** Above it float64 is reduced in integers. */
const LARGE = 2 ** 26;
/** The bits of 2/pi in words of 64, after 32 zeros. */
const INVERSE_HALF_PI = [
  0xa2f9836en,
  0x4e441529fc2757d1n,
  0xf534ddc0db629599n,
  0x3c439041fe5163abn,
  0xdebbc561b7246e3an,
  0x424dd2e006492eean,
  0x9d1921cfe1deb1cn,
  0xb129a73ee88235f5n,
  0x2ebb4484e99c7026n,
  0xb45f7e413991d639n,
  0x835339f49c845f8bn,
  0xbdf9283b1ff897ffn,
  0xde05980fef2f118bn,
  0x5a0a6d1f6d367ecfn,
  0x27cb09b74f463f66n,
  0x9e5fea2d7527bac7n,
  0xebe5f17b3d0739f7n,
  0x8a5292ea6bfb5fb1n,
  0x1f8d5d0856033046n,
];
/** Words that a product takes: 2 bits of quadrant, 53 of x, 61 that may cancel, 64 and more that are left. */
const WINDOW = 4;

/** sin(r) = r + r z p(z), z = r^2, for |r| <= pi/4: degree 5, relative error 2^-58.0, 2^-56.9 rounded */
const SIN64 = [
  -0.16666666666666632, 0.008333333333322337, -0.00019841269829742666, 0.0000027557313668365693,
  -2.5050754288626455e-8, 1.5896566280380951e-10,
];
/** cos(r) = 1 - z/2 + z^2 p(z) for |r| <= pi/4: degree 5, error 2^-64.2, 2^-59.6 rounded */
const COS64 = [
  0.0416666666666666, -0.0013888888888874019, 0.000024801587289413378, -2.755731433158793e-7,
  2.087572034293189e-9, -1.1359490688944376e-11,
];

/** sin(x), through the nearest quarter of a turn; the zeros keep their sign, infinities give NaN. */
export function sin<T>(a: Algebra<T>, x: T): T {
  const d = a.dtypeOf(x);
  return a.alu("WHERE", a.alu("CMPEQ", x, a.constant(d, 0)), x, sine(a, x, 0));
}
/** cos(x): the sine a quarter of a turn further. */
export function cos<T>(a: Algebra<T>, x: T): T {
  return sine(a, x, 1);
}
function sine<T>(a: Algebra<T>, x: T, quarters: number): T {
  const d = a.dtypeOf(x);
  if (a.hasDouble === false) return a.cast(sineInWords(a, a.cast(x, float32), quarters), d);
  const wide = a.cast(x, float64);
  const n = notation(a, float64);
  return d.itemsize === 8
    ? sineOfRadians(a, n, wide, quarters)
    : a.cast(sineOfTurns(a, n, wide, quarters), d);
}

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
const WORDS = [0, ...[...INVERSE_HALF_PI].slice(0, 5).flatMap((w, i) => (i === 0 ? [w] : [w >> 32n, w]))].map(
  (w) => Number(BigInt(w) & 0xffffffffn),
);
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
  const sin = add(r, mul(mul(r, z), polynomial(z, SIN64.slice(0, 4))));
  const cos = sub(1, sub(mul(z, 0.5), mul(mul(z, z), polynomial(z, COS64.slice(0, 4)))));
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

/** An angle as quarters of a turn, of which the low two bits count, and what is left in radians. */
interface Reduced<T> {
  readonly quarters: T;
  readonly rest: T;
}

function sineOfRadians<T>(a: Algebra<T>, n: Notation<T>, x: T, further: number): T {
  const { add, sub, mul, less, where, polynomial } = n;
  const size = where(less(x, 0), a.alu("NEG", x), x);
  const isLarge = a.alu("AND", less(LARGE, size), less(size, Infinity));
  const [near, far] = [reducedNear(a, n, x), reducedFar(a, n, x)];
  const r = where(isLarge, far.rest, near.rest);
  const quarters = a.alu("WHERE", isLarge, far.quarters, near.quarters);
  const z = mul(r, r);
  const sin = add(r, mul(mul(r, z), polynomial(z, SIN64)));
  const cos = sub(1, sub(mul(z, 0.5), mul(mul(z, z), polynomial(z, COS64))));
  return quadrant(a, quarters, further, sin, cos);
}

/** Takes n pi/2 away part by part; up to n = 2^26 only the last steps round, and they round what is left. */
function reducedNear<T>(a: Algebra<T>, { add, sub, mul }: Notation<T>, x: T): Reduced<T> {
  const shifted = add(mul(x, 2 / Math.PI), FLOAT64_MAGIC);
  const count = sub(shifted, FLOAT64_MAGIC);
  const rest = HALF_PI.reduce<T>((r, part) => sub(r, mul(count, part)), x);
  return { quarters: a.bitcast(shifted, int64), rest };
}

/**
 * x = m 2^k with an integer m of 53 bits. Bits of 2/pi above 2^(2-k) give whole turns; m times the 192 bits
 * from there on, modulo 2^192, has the quadrant in its upper two bits and the fraction below.
 */
function reducedFar<T>(a: Algebra<T>, n: Notation<T>, x: T): Reduced<T> {
  const { where, less } = n;
  const word = integers(a, uint64);
  const op = (name: "ADD" | "SUB" | "MUL" | "AND" | "OR" | "SHL" | "SHR") => (u: T, v: T) =>
    a.alu(name, u, v);
  const [add, sub, and, or, shl, shr] = [op("ADD"), op("SUB"), op("AND"), op("OR"), op("SHL"), op("SHR")];
  const bits = a.bitcast(x, uint64);
  const exponent = and(shr(bits, word(52)), word(0x7ff));
  const m = or(and(bits, word(2n ** 52n - 1n)), word(2n ** 52n));
  // the first bit that counts: 2^(2-k), behind the 32 zeros
  const at = sub(exponent, word(1045));
  const words = wordsFrom(a, shr(at, word(6)));
  const offset = and(at, word(63));
  const back = sub(word(63), offset);
  const window = words.slice(1).map((next, i) => {
    return or(shl(words[i] as T, offset), shr(shr(next, word(1)), back));
  });
  const [upper, fraction] = product(a, m, window);

  const quarters = shr(add(upper, word(2n ** 61n)), word(62));
  const signed = a.bitcast(sub(upper, shl(quarters, word(62))), int64);
  const angle = radians(a, n, signed, fraction);
  const isNegative = less(x, 0);
  const turned = a.alu("WHERE", isNegative, sub(word(4), quarters), quarters);
  return { quarters: a.bitcast(turned, int64), rest: where(isNegative, a.alu("NEG", angle), angle) };
}

/** WINDOW words of 2/pi from this one on (0 to 15): each bit of the index moves all of them. */
function wordsFrom<T>(a: Algebra<T>, index: T): T[] {
  const word = integers(a, uint64);
  let words = INVERSE_HALF_PI.map(word);
  for (const step of [8, 4, 2, 1]) {
    const moves = a.alu("CMPNE", a.alu("AND", index, word(step)), word(0));
    const left = step - 1 + WINDOW;
    words = words.slice(0, left).map((w, i) => a.alu("WHERE", moves, words[i + step] as T, w));
  }
  return words;
}

/**
 * The upper 128 bits of m (53 bits) times three words, modulo 2^192, as two words. Of the last product only
 * what carries over counts; a few units of 2^-126 are left out.
 */
function product<T>(a: Algebra<T>, m: T, window: readonly T[]): readonly [T, T] {
  const word = integers(a, uint64);
  const low = (u: T): T => a.alu("AND", u, word(0xffffffff));
  const high = (u: T): T => a.alu("SHR", u, word(32));
  const sum = (...us: T[]): T => us.reduce((u, v) => a.alu("ADD", u, v));
  const mul = (u: T, v: T): T => a.alu("MUL", u, v);
  const [first, second, third] = window as [T, T, T];
  const [m0, m1] = [low(m), high(m)];
  const [s0, s1] = [low(second), high(second)];
  const [crossed, other] = [mul(m0, s1), mul(m1, s0)];
  const middle = sum(high(mul(m0, s0)), low(crossed), low(other));
  const over = sum(mul(m1, s1), high(crossed), high(other), high(middle));
  const lowest = mul(m, second);
  const [t0, t1] = [low(third), high(third)];
  const carried = sum(mul(m1, t1), high(mul(m0, t1)), high(mul(m1, t0)));
  const fraction = sum(lowest, carried);
  const carry = a.alu("WHERE", a.alu("CMPLT", fraction, lowest), word(1), word(0));
  return [sum(mul(m, first), over, carry), fraction];
}

/** The fraction of a quarter of a turn, in units of 2^-62 and, below it, 2^-126, times pi/2. */
function radians<T>(a: Algebra<T>, { add, sub, mul }: Notation<T>, units: T, below: T): T {
  const [int, word] = [integers(a, int64), integers(a, uint64)];
  const part = (u: T, scale: number): T => mul(a.cast(u, float64), scale);
  const top = part(a.alu("SHR", units, int(32)), 2 ** -30);
  const next = part(a.alu("AND", units, int(0xffffffff)), 2 ** -62);
  const third = part(a.alu("SHR", below, word(32)), 2 ** -94);
  const last = part(a.alu("AND", below, word(0xffffffff)), 2 ** -126);
  const sum = add(top, next);
  const lost = add(sub(next, sub(sum, top)), add(third, last));
  const r = add(sum, lost);
  const rLow = sub(lost, sub(r, sum));
  // the upper half of r times the first part of pi/2 is exact: the last sum alone rounds
  const short = a.bitcast(a.alu("AND", a.bitcast(r, int64), int(-(2n ** 27n))), float64);
  const [first, second] = HALF_PI;
  const rest = add(mul(short, second), mul(add(sub(r, short), rLow), Math.PI / 2));
  return add(mul(short, first), rest);
}

/** The low two bits of `quarters`, with those `further`, say which of sin, cos, -sin, -cos it is. */
function quadrant<T>(a: Algebra<T>, quarters: T, further: number, sin: T, cos: T): T {
  const int = integers(a, int64);
  const bits = further === 0 ? quarters : a.alu("ADD", quarters, int(further));
  const bit = (k: number) => a.alu("CMPNE", a.alu("AND", bits, int(k)), int(0));
  const value = a.alu("WHERE", bit(1), cos, sin);
  return a.alu("WHERE", bit(2), a.alu("NEG", value), value);
}
