// The elementwise functions of one tensor, each beside the same function of one number in double, and how
// near the two must be.

import type { Tensor } from "gradloom";

const erf = (x: number): number => {
  const a = Math.abs(x);
  if (a > 2.5) return Math.sign(x) * (1 - erfc(a));
  let [sum, term] = [x, x];
  for (let k = 1; k < 80; k++) {
    term *= (-x * x) / k;
    sum += term / (2 * k + 1);
  }
  return (sum * 2) / Math.sqrt(Math.PI);
};
const erfc = (x: number): number => {
  if (x < 0) return 2 - erfc(-x);
  if (x < 2.5) return 1 - erf(x);
  let fraction = 0;
  for (let k = 100; k >= 1; k--) fraction = k / 2 / (x + fraction);
  return Math.exp(-x * x) / Math.sqrt(Math.PI) / (x + fraction);
};
export const lgamma = (x: number): number => {
  if (x < 0.5) return Math.log(Math.PI / Math.abs(Math.sin(Math.PI * x))) - lgamma(1 - x);
  let [y, product] = [x, 1];
  while (y < 20) product *= y++;
  return (
    (y - 0.5) * Math.log(y) -
    y +
    0.5 * Math.log(2 * Math.PI) +
    1 / (12 * y) -
    1 / (360 * y ** 3) -
    Math.log(product)
  );
};
export const digamma = (x: number): number => {
  if (x < 0.5) return digamma(1 - x) - Math.PI / Math.tan(Math.PI * x);
  let [y, sum] = [x, 0];
  while (y < 20) sum += 1 / y++;
  return Math.log(y) - 1 / (2 * y) - 1 / (12 * y ** 2) + 1 / (120 * y ** 4) - sum;
};
export const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));
const softplus = (x: number): number => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
const clip = (x: number, lo: number, hi: number): number => Math.min(Math.max(x, lo), hi);
const halfEven = (x: number): number => {
  const low = Math.floor(x);
  const rest = x - low;
  if (!Number.isFinite(x) || Object.is(x, -0)) return x;
  const rounded = rest > 0.5 || (rest === 0.5 && low % 2 !== 0) ? low + 1 : low;
  return rounded === 0 && x < 0 ? -0 : rounded;
};
const elu = (x: number, alpha = 1): number => (x > 0 ? x : alpha * Math.expm1(x));

export interface Case {
  readonly of: (t: Tensor) => Tensor;
  readonly math: (x: number) => number;
  /** the relative error that is allowed in float32, in units of 1e-7 (default 4), and the absolute one */
  readonly ulps?: number;
  readonly abs?: number;
  /** outside, results are not compared */
  readonly within?: number;
}
export const CASES: Record<string, Case> = {
  abs: { of: (t) => t.abs(), math: Math.abs },
  sign: { of: (t) => t.sign(), math: (x) => Math.sign(x) || 0 },
  floor: { of: (t) => t.floor(), math: Math.floor },
  ceil: { of: (t) => t.ceil(), math: Math.ceil },
  trunc: { of: (t) => t.trunc(), math: Math.trunc },
  round: { of: (t) => t.round(), math: halfEven },
  sqrt: { of: (t) => t.sqrt(), math: Math.sqrt },
  rsqrt: { of: (t) => t.rsqrt(), math: (x) => 1 / Math.sqrt(x) },
  reciprocal: { of: (t) => t.reciprocal(), math: (x) => 1 / x },
  square: { of: (t) => t.square(), math: (x) => x * x },
  cube: { of: (t) => t.pow(3), math: (x) => x ** 3 },
  pow2_5: { of: (t) => t.pow(2.5), math: (x) => x ** 2.5, ulps: 60 },
  exp: { of: (t) => t.exp(), math: Math.exp },
  exp2: { of: (t) => t.exp2(), math: (x) => 2 ** x },
  expm1: { of: (t) => t.expm1(), math: Math.expm1 },
  log: { of: (t) => t.log(), math: Math.log },
  log2: { of: (t) => t.log2(), math: Math.log2 },
  log10: { of: (t) => t.log10(), math: Math.log10 },
  log1p: { of: (t) => t.log1p(), math: Math.log1p },
  sin: { of: (t) => t.sin(), math: Math.sin, within: 2 ** 26 },
  cos: { of: (t) => t.cos(), math: Math.cos, abs: 2e-7, within: 2 ** 26 },
  tan: { of: (t) => t.tan(), math: Math.tan, ulps: 10, within: 9000 },
  asin: { of: (t) => t.asin(), math: Math.asin },
  acos: { of: (t) => t.acos(), math: Math.acos },
  atan: { of: (t) => t.atan(), math: Math.atan },
  sinh: { of: (t) => t.sinh(), math: Math.sinh, ulps: 60 },
  cosh: { of: (t) => t.cosh(), math: Math.cosh, ulps: 60 },
  tanh: { of: (t) => t.tanh(), math: Math.tanh },
  asinh: { of: (t) => t.asinh(), math: Math.asinh },
  acosh: { of: (t) => t.acosh(), math: Math.acosh },
  atanh: { of: (t) => t.atanh(), math: Math.atanh },
  erf: { of: (t) => t.erf(), math: erf },
  erfc: { of: (t) => t.erfc(), math: erfc, ulps: 80 },
  sigmoid: { of: (t) => t.sigmoid(), math: sigmoid },
  logsigmoid: { of: (t) => t.logsigmoid(), math: (x) => -softplus(-x), abs: 1e-7 },
  softplus: { of: (t) => t.softplus(), math: softplus, ulps: 10 },
  softsign: { of: (t) => t.softsign(), math: (x) => x / (1 + Math.abs(x)) },
  relu: { of: (t) => t.relu(), math: (x) => (x < 0 ? 0 : x) },
  relu6: { of: (t) => t.relu6(), math: (x) => clip(x, 0, 6) },
  leakyRelu: { of: (t) => t.leakyRelu(), math: (x) => (x > 0 ? x : 0.01 * x) },
  elu: { of: (t) => t.elu(2), math: (x) => elu(x, 2) },
  celu: { of: (t) => t.celu(2), math: (x) => (x > 0 ? x : 2 * Math.expm1(x / 2)) },
  selu: { of: (t) => t.selu(), math: (x) => 1.0507009873554805 * elu(x, 1.6732632423543772) },
  silu: { of: (t) => t.silu(), math: (x) => x * sigmoid(x) },
  mish: { of: (t) => t.mish(), math: (x) => x * Math.tanh(softplus(x)), ulps: 10 },
  gelu: { of: (t) => t.gelu(), math: (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)), abs: 1e-6 },
  hardtanh: { of: (t) => t.hardtanh(), math: (x) => clip(x, -1, 1) },
  hardsigmoid: { of: (t) => t.hardsigmoid(), math: (x) => clip(x + 3, 0, 6) / 6, abs: 1e-7 },
  hardshrink: { of: (t) => t.hardshrink(), math: (x) => (Math.abs(x) <= 0.5 ? 0 : x) },
  softshrink: {
    of: (t) => t.softshrink(),
    math: (x) => (x > 0.5 ? x - 0.5 : x < -0.5 ? x + 0.5 : Number.isNaN(x) ? x : 0),
  },
  tanhshrink: { of: (t) => t.tanhshrink(), math: (x) => x - Math.tanh(x), abs: 2e-7 },
};
