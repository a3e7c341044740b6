// x^y as sums, products and bit tricks, for targets whose pow is missing or not exact enough. In go two
// values of a float type of any Algebra, out comes the expression: branch-free, within 1 ulp, exact where the
// power is a number of the type, and IEEE 754's for signs, zeros, infinities and NaN. The logarithm is a sum
// of two floats, of which the first is so short that its products are exact. `scripts/minimax.mjs` has the
// coefficients.

import { dtypes } from "./dtype.ts";
import { integers, type Notation, notation } from "./notation.ts";
import type { Algebra } from "./ops.ts";
import { FLOAT32, type FloatFormat, nearest } from "./transcendental.ts";
import { FLOAT64 } from "./transcendental64.ts";

/** A constant as a short float, what that leaves, and the nearest float. */
interface SplitConstant {
  readonly short: number;
  readonly rest: number;
  readonly whole: number;
}
/** What pow must know of a float format. */
interface Tables {
  /** keeps the upper half of the mantissa: the product of two such floats is exact */
  readonly upper: number | bigint;
  /** 3 atanh(s)/s = 3 + z + z^2 p(z) for z = s^2 <= 0.0295: a mantissa in [sqrt(1/2), sqrt(2)] */
  readonly log: readonly number[];
  /** e^w = 1 + w + w^2 p(w) for |w| <= ln 2 / 2 */
  readonly exp: readonly number[];
  /** 2/(3 ln 2): from there to the logarithm to base 2 */
  readonly base2: SplitConstant;
  readonly ln2: SplitConstant;
}

const POW32: Tables = {
  upper: -(2 ** 12),
  // degree 2, relative error of the logarithm 2^-36.8, 2^-36.1 with rounded coefficients
  log: [0.6000022888183594, 0.4282044470310211, 0.35134196281433105],
  // degree 4, error 2^-28.2, 2^-27.7 with rounded coefficients
  exp: [0.5, 0.16666516661643982, 0.04166620224714279, 0.008369088172912598, 0.0013950836146250367],
  base2: { short: 0.961669921875, rest: 0.0001267720509756049, whole: 0.9617966939259756 },
  ln2: { short: 0.693115234375, rest: 0.000031946184945309415, whole: Math.LN2 },
};
const POW64: Tables = {
  upper: -(2n ** 27n),
  // degree 7, relative error of the logarithm 2^-73.5, 2^-68.4 with rounded coefficients
  log: [
    0.5999999999999996, 0.42857142857168257, 0.3333333332616134, 0.2727272832305888, 0.23076834106734287,
    0.20004522288369303, 0.1751129065078254, 0.17991325414030607,
  ],
  // degree 10, error 2^-64.0, 2^-61.0 with rounded coefficients
  exp: [
    0.5, 0.16666666666666685, 0.04166666666666673, 0.008333333333316364, 0.0013888888888857873,
    0.0001984126989799973, 0.0000248015873747416, 0.000002755723328400332, 2.7557232571502306e-7,
    2.5112576048341754e-8, 2.0927172661543615e-9,
  ],
  base2: { short: 0.9617966860532761, rest: 7.872699542894897e-9, whole: 0.9617966939259756 },
  ln2: { short: 0.6931471675634384, rest: 1.2996506893889889e-8, whole: Math.LN2 },
};

/** The notation of one format, with its halves of a mantissa. */
interface FormatNotation<T> extends Notation<T> {
  readonly format: FloatFormat;
  readonly tables: Tables;
  readonly int: (x: number | bigint) => T;
  readonly upper: (x: T) => T;
}
/** A value as a sum: the first part is short, or the second is below its last bit. */
type HighLow<T> = readonly [high: T, low: T];

export function pow<T>(a: Algebra<T>, x: T, y: T): T {
  const d = a.dtypeOf(x);
  if (d.itemsize < 4) {
    const [wideX, wideY] = [a.cast(x, dtypes.float32), a.cast(y, dtypes.float32)];
    return a.cast(pow(a, wideX, wideY), d);
  }
  const [format, tables] = d.itemsize === 8 ? [FLOAT64, POW64] : [FLOAT32, POW32];
  const int = integers(a, format.int);
  const upper = (v: T): T => a.bitcast(a.alu("AND", a.bitcast(v, format.int), int(tables.upper)), d);
  const w: FormatNotation<T> = { ...notation(a, d), format, tables, int, upper };
  const isNegative = a.alu("CMPLT", a.bitcast(x, format.int), int(0));
  const size = w.where(w.less(x, 0), a.alu("NEG", x), x);
  return signed(a, w, x, y, isNegative, powerOf(a, w, size, y));
}

/** |x|^y; zero, infinite and NaN are put right behind the formula. */
function powerOf<T>(a: Algebra<T>, w: FormatNotation<T>, size: T, y: T): T {
  const { sub, mul, add, less, where, format } = w;
  const [low, high] = format.exp2Range;
  const [log, logRest] = logarithm(a, w, size);
  const product = mul(y, log);
  const isInside = a.alu("AND", less(low, product), less(product, high));
  const isBeyond = a.alu("OR", less(high, product), less(product, low));
  const short = w.upper(y);
  // beyond the range what is left of y has no meaning
  const first = where(isBeyond, where(less(product, low), low, high), mul(short, log));
  const second = where(isInside, add(mul(sub(y, short), log), mul(y, logRest)), 0);
  const value = exponential(a, w, [first, second]);
  const grows = less(0, y);
  const atZero = where(grows, 0, Infinity);
  const atInfinity = where(grows, Infinity, 0);
  const isZero = a.alu("CMPEQ", size, a.constant(a.dtypeOf(size), 0));
  const isInfinite = a.alu("CMPEQ", size, a.constant(a.dtypeOf(size), Infinity));
  const sum = add(size, y);
  const isUnknown = a.alu("OR", a.alu("CMPNE", size, size), a.alu("CMPNE", y, y));
  const finite = where(isZero, atZero, where(isInfinite, atInfinity, value));
  return where(isUnknown, sum, finite);
}

/** The rules of IEEE 754 for the sign, for roots of negative numbers, and for 1 and y = 0. */
function signed<T>(a: Algebra<T>, w: FormatNotation<T>, x: T, y: T, isNegative: T, size: T): T {
  const { mul, less, where } = w;
  const same = (u: T, v: T): T => a.alu("CMPEQ", u, v);
  const constant = (v: number): T => a.constant(a.dtypeOf(x), v);
  const half = mul(y, 0.5);
  const isWhole = same(a.alu("TRUNC", y), y);
  const isOdd = a.alu("AND", isWhole, a.alu("CMPNE", a.alu("TRUNC", half), half));
  const one = where(less(x, 0), a.alu("NEG", x), x);
  const value = where(same(one, constant(1)), 1, size);
  const turned = where(a.alu("AND", isOdd, isNegative), a.alu("NEG", value), value);
  // -infinity has roots, as 754 says
  const isRoot = a.alu(
    "AND",
    a.alu("AND", less(x, 0), less(-Infinity, x)),
    a.alu("CMPNE", a.alu("TRUNC", y), y),
  );
  const always = a.alu("OR", same(y, constant(0)), same(x, constant(1)));
  return where(always, 1, where(isRoot, NaN, turned));
}

/**
 * log2(x) = e + log2(m), and log2(m) = 2/(3 ln 2) s (3 + s^2 + …) with s = (m - 1)/(m + 1). The division is
 * done to the upper half of the mantissa; what that leaves is exact, and divided again.
 */
function logarithm<T>(a: Algebra<T>, w: FormatNotation<T>, x: T): HighLow<T> {
  const { add, sub, mul, div, less, where, polynomial, upper, int, format, tables } = w;
  const d = a.dtypeOf(x);
  const mantissa = int(format.mantissa);
  const subnormal = less(x, format.minNormal);
  const bits = a.bitcast(where(subnormal, mul(x, 2 ** (format.mantissa + 1)), x), format.int);
  const power = a.alu("SHR", a.alu("SUB", bits, int(format.rootHalf)), mantissa);
  const m = a.bitcast(a.alu("SUB", bits, a.alu("SHL", power, mantissa)), d);
  const e = sub(a.cast(power, d), where(subnormal, format.mantissa + 1, 0));

  const [over, under] = [sub(m, 1), add(m, 1)];
  const s = div(over, under);
  const sHigh = upper(s);
  const underHigh = upper(under);
  const underLow = sub(m, sub(underHigh, 1));
  const sLow = div(sub(sub(over, mul(sHigh, underHigh)), mul(sHigh, underLow)), under);

  const z = mul(s, s);
  const zHigh = mul(sHigh, sHigh);
  const tail = add(mul(mul(z, z), polynomial(z, tables.log)), mul(sLow, add(sHigh, s)));
  const series = upper(add(add(zHigh, 3), tail));
  const seriesLow = sub(tail, sub(sub(series, 3), zHigh));

  const product = mul(sHigh, series);
  const productLow = add(mul(sLow, series), mul(seriesLow, s));
  const p = upper(add(product, productLow));
  const pLow = sub(productLow, sub(p, product));

  const { short, rest, whole } = tables.base2;
  const log = mul(p, short);
  const logLow = add(mul(p, rest), mul(pLow, whole));
  const high = upper(add(add(e, log), logLow));
  return [high, sub(logLow, sub(sub(high, e), log))];
}

/** 2^(high + low): the first terms are kept in two parts, so that only the last sum rounds. */
function exponential<T>(a: Algebra<T>, w: FormatNotation<T>, [high, low]: HighLow<T>): T {
  const { add, sub, mul, polynomial, upper, int, format, tables } = w;
  const d = a.dtypeOf(high);
  const { whole: integer, bits: n } = nearest(a, add(high, low), format, 2 * format.bias);
  const fraction = sub(high, integer);
  const short = upper(add(fraction, low));
  const { short: ln2, rest, whole } = tables.ln2;
  const u = mul(short, ln2);
  const v = add(mul(sub(low, sub(short, fraction)), whole), mul(short, rest));
  const x = add(u, v);
  const xLow = sub(v, sub(x, u));
  const sum = add(x, 1);
  const sumLow = sub(x, sub(sum, 1));
  const root = add(sum, add(sumLow, add(xLow, mul(mul(x, x), polynomial(x, tables.exp)))));

  const half = a.alu("SHR", n, int(1));
  const power = (k: T) => a.bitcast(a.alu("SHL", k, int(format.mantissa)), d);
  return mul(mul(root, power(half)), power(a.alu("SUB", n, half)));
}
