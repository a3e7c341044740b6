// erf as sums, products and bit tricks, for targets that have no such instruction. In goes a float value of
// any Algebra, out comes the expression: branch-free, right to 1.5 ulp. `scripts/minimax.mjs` has the
// coefficients.

import { notation } from "./notation.ts";
import type { Algebra } from "./ops.ts";
import { exp2NotPositive, FLOAT32, type FloatFormat, rounded } from "./transcendental.ts";
import { FLOAT64 } from "./transcendental64.ts";

/** The tables that reach the precision of a float format. */
interface ErfTables {
  readonly format: FloatFormat;
  /** erf(x) = x + x p(x^2) for |x| <= 1 */
  readonly near: readonly number[];
  /** erf(x) = 1 - 2^p(x - 1) from 1 to `end`, where it rounds to 1 */
  readonly far: readonly number[];
  readonly end: number;
}
const ERF32: ErfTables = {
  format: FLOAT32,
  // degree 6, relative error of erf 2^-29.6, 2^-27.7 with rounded coefficients
  near: [
    0.12837916612625122, -0.3761262595653534, 0.1128358542919159, -0.026853810995817184, 0.005188327748328447,
    -0.0008010192541405559, 0.0000785385855124332,
  ],
  // degree 6, relative error of erf 2^-29.8, 2^-27.5 with rounded coefficients
  far: [
    -2.668416738510132, -3.8072245121002197, -1.21636164188385, -0.05987688899040222, 0.014276129193603992,
    -0.0026392403524369, 0.0002688878739718348,
  ],
  end: 4,
};
const ERF64: ErfTables = {
  format: FLOAT64,
  // degree 12, relative error of erf 2^-62.7, 2^-56.3 with rounded coefficients
  near: [
    0.1283791670955126, -0.3761263890318375, 0.11283791670954857, -0.026866170645072893,
    0.0052239776247808446, -0.0008548326978741059, 0.0001205533103686138, -0.000014925593506033262,
    0.0000016460972804046682, -1.635002509178194e-7, 1.4657879001110559e-8, -1.1365662846338117e-9,
    5.945256689182571e-11,
  ],
  // degree 18, relative error of erf 2^-59.5, 2^-57.0 with rounded coefficients
  far: [
    -2.6684166967815997, -3.8072253458536043, -1.2163466576861373, -0.059959990039358126,
    0.014475750114669034, -0.002853510263933881, 0.0003423841254505449, 0.00003791050637774504,
    -0.000039181393460453566, 0.000013861346223610723, -0.0000029701273531403095, 2.0490617304959043e-7,
    1.414726054513025e-7, -7.54087329126592e-8, 2.162224590237458e-8, -4.157331954182455e-9,
    5.352014598602013e-10, -4.193624841493007e-11, 1.51433979669144e-12,
  ],
  end: 6,
};

/**
 * erf(x) = x + x p(x^2) near 0. Far from it the complement is 2^q(|x| - 1): it is small there, so that its
 * error counts little. NaN goes through the second one.
 */
export const erf = rounded(<T>(a: Algebra<T>, x: T): T => {
  const d = a.dtypeOf(x);
  const tables = d.itemsize === 8 ? ERF64 : ERF32;
  const { sub, mul, mulAdd, less, where, polynomial } = notation(a, d);
  const negated = a.alu("NEG", x);
  const isNegative = less(x, 0);
  const size = where(isNegative, negated, x);
  const near = mulAdd(x, polynomial(mul(x, x), tables.near), x);
  const end = where(less(tables.end, size), tables.end, size);
  const complement = exp2NotPositive(a, polynomial(sub(end, 1), tables.far), tables.format);
  const far = sub(1, complement);
  return where(less(size, 1), near, where(isNegative, a.alu("NEG", far), far));
});
/** The same on a number of JavaScript, which has no erf. */
export function erfOfNumber(x: number): number {
  const { near, far, end } = ERF64;
  const horner = (at: number, c: readonly number[]): number => c.reduceRight((sum, k) => sum * at + k, 0);
  const size = Math.abs(x);
  if (size < 1) return x + x * horner(x * x, near);
  return Math.sign(x) * (1 - 2 ** horner(Math.min(size, end) - 1, far));
}
