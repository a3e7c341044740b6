// Sine and cosine of float64, as trigonometry.ts has them for narrower floats. Angles up to 2^26 are reduced
// by subtracting multiples of pi/2, larger ones by multiplying with the bits of 2/pi that matter, in integers
// (Payne and Hanek). A page loads these with the first kernel that needs them.

import { dtypes } from "./dtype.ts";
import { FLOAT64_MAGIC, integers, type Notation, notation } from "./notation.ts";
import type { Algebra } from "./ops.ts";
import { COS_RADIANS, cosBy, quadrant, SIN_RADIANS, sinBy } from "./trigonometry.ts";

const { float64, int64, uint64 } = dtypes;

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

/** An angle as quarters of a turn, of which the low two bits count, and what is left in radians. */
interface Reduced<T> {
  readonly quarters: T;
  readonly rest: T;
}

function sineOfRadians<T>(a: Algebra<T>, x: T, further: number): T {
  const n = notation(a, float64);
  const { add, sub, mul, less, where, polynomial } = n;
  const size = where(less(x, 0), a.alu("NEG", x), x);
  const isLarge = a.alu("AND", less(LARGE, size), less(size, Infinity));
  const [near, far] = [reducedNear(a, n, x), reducedFar(a, n, x)];
  const r = where(isLarge, far.rest, near.rest);
  const quarters = a.alu("WHERE", isLarge, far.quarters, near.quarters);
  const z = mul(r, r);
  const sin = add(r, mul(mul(r, z), polynomial(z, SIN_RADIANS)));
  const cos = sub(1, sub(mul(z, 0.5), mul(mul(z, z), polynomial(z, COS_RADIANS))));
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

export const sin = sinBy(sineOfRadians);
export const cos = cosBy(sineOfRadians);
