// Functions of one float: what each is in double precision, by how many units in the last place a device may
// miss it, and relative to what where that is not the result itself.

interface Function1 {
  readonly f: (x: number) => number;
  readonly ulps: number;
  readonly scale?: (x: number, y: number) => number;
  /** a value on its way for which a device may have 0 where it is subnormal: 1 / (1 + exp(-x)) overflows */
  readonly flushed?: (x: number) => number;
}
const of = (f: (x: number) => number, ulps = 4, scale?: Function1["scale"]): Function1 =>
  scale === undefined ? { f, ulps } : { f, ulps, scale };
/** For differences of close numbers: the error is that of the operands. */
const larger = (x: number, y: number): number => Math.max(Math.abs(x), Math.abs(y));
const atLeastOne = (x: number, y: number): number => Math.max(1, Math.abs(x), Math.abs(y));

/** The error function: its series for small x, the continued fraction of its complement beyond. */
export function erf(x: number): number {
  if (Math.abs(x) > 2) return x > 0 ? 1 - erfcBeyond(x) : erfcBeyond(-x) - 1;
  let [term, sum] = [x, x];
  for (let n = 1; n < 80; n++) {
    term *= (-x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}
function erfcBeyond(x: number): number {
  let fraction = x;
  for (let n = 120; n > 0; n--) fraction = x + n / 2 / fraction;
  return Math.exp(-x * x) / Math.sqrt(Math.PI) / fraction;
}
export const erfc = (x: number): number => (x > 2 ? erfcBeyond(x) : 1 - erf(x));
export const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));
const softplus = (x: number): number => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
const [SELU_SCALE, SELU_ALPHA] = [1.0507009873554805, 1.6732632423543772];

export const FUNCTIONS: Readonly<Record<string, Function1>> = {
  exp: of(Math.exp),
  exp2: of((x) => 2 ** x),
  expm1: of(Math.expm1),
  log: of(Math.log, 4, larger),
  log2: of(Math.log2, 4, larger),
  log10: of(Math.log10, 4, larger),
  log1p: of(Math.log1p, 8),
  sqrt: of(Math.sqrt, 1),
  rsqrt: of((x) => 1 / Math.sqrt(x), 3),
  reciprocal: of((x) => 1 / x, 1),
  sin: of(Math.sin, 4),
  cos: of(Math.cos, 4, atLeastOne),
  tan: of(Math.tan, 8, larger),
  sinh: of(Math.sinh, 8),
  cosh: of(Math.cosh, 8),
  tanh: of(Math.tanh, 8),
  asin: of(Math.asin, 8, larger),
  acos: of(Math.acos, 8, atLeastOne),
  atan: of(Math.atan, 8),
  asinh: of(Math.asinh, 8),
  acosh: of(Math.acosh, 8, atLeastOne),
  atanh: of(Math.atanh, 8),
  erf: of(erf, 8),
  erfc: of(erfc, 8, atLeastOne),
  sigmoid: { f: sigmoid, ulps: 8, flushed: sigmoid },
  silu: { f: (x) => x * sigmoid(x), ulps: 8, flushed: sigmoid },
  gelu: of((x) => 0.5 * x * (1 + erf(x / Math.SQRT2)), 8, larger),
  mish: of((x) => x * Math.tanh(softplus(x)), 16, larger),
  logsigmoid: of((x) => -softplus(-x), 8),
  softsign: of((x) => x / (1 + Math.abs(x)), 3),
  tanhshrink: of((x) => x - Math.tanh(x), 8, larger),
  selu: of((x) => SELU_SCALE * (x > 0 ? x : SELU_ALPHA * Math.expm1(x)), 8, larger),
  hardsigmoid: of(
    (x) => Math.min(Math.max(x / 6 + 0.5, 0), 1),
    4,
    () => 1,
  ),
  hardswish: of((x) => x * Math.min(Math.max(x / 6 + 0.5, 0), 1), 4, larger),
  deg2rad: of((x) => (x * Math.PI) / 180, 3),
  rad2deg: of((x) => (x * 180) / Math.PI, 3),
};

/** Functions with a parameter. */
export const leakyRelu = (x: number, slope: number): number => (x > 0 ? x : x * slope);
export const elu = (x: number, alpha: number): number => (x > 0 ? x : alpha * Math.expm1(x));
/** Above 20 it is x itself, as torch has it. */
export const softplusOf = (x: number, beta: number): number =>
  x * beta > 20 ? x : softplus(x * beta) / beta;
