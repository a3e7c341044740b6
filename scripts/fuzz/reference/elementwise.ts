// Elementwise ops of the reference: arithmetic of every type, comparison, bits, choice, functions and casts.

import type { Scalar, TypeName } from "../language.ts";
import { arr, num, type Op, type Ops, options, term, text, type Value } from "./args.ts";
import {
  type Arr,
  array,
  broadcastShape,
  broadcastTo,
  cast,
  commonType,
  fl,
  noise,
  type Term,
  together,
  Unsuitable,
  zip,
} from "./array.ts";
import { elu, FUNCTIONS, leakyRelu, softplusOf } from "./functions.ts";
import { bitcastScalar, isFloat, isInt, storeFloat, TYPES, toFloat, unit, wrapInt } from "./types.ts";

// ---- arithmetic of one element ----

type Arithmetic = (d: TypeName, a: Scalar, b: Scalar) => Scalar;
const arithmetic =
  (ints: (a: bigint, b: bigint) => bigint, floats: (a: number, b: number) => number, ulps = 1): Arithmetic =>
  (d, a, b) =>
    isFloat(d) ? fl(d, floats(Number(a), Number(b)), ulps) : wrapInt(d, ints(BigInt(a), BigInt(b)));
const mod = (a: bigint, b: bigint): bigint => (b === 0n ? 0n : a % b);
const odd = (a: bigint, b: bigint): bigint => (mod(a, b) !== 0n && a % b < 0n !== b < 0n ? 1n : 0n);
const floatRemainder = (a: number, b: number): number => {
  const r = a % b;
  return r !== 0 && r < 0 !== b < 0 ? r + b : r;
};
const gcd = (a: bigint, b: bigint): bigint => (b === 0n ? (a < 0n ? -a : a) : gcd(b, a % b));
const shift = (d: TypeName, b: bigint): bigint => BigInt.asUintN(64, b) % BigInt(TYPES[d].bits);
const power = (a: bigint, n: bigint): bigint => {
  if (n < 0n) return a === 1n ? 1n : a === -1n ? (n % 2n === 0n ? 1n : -1n) : 0n;
  return a ** n;
};
/** NaN wins. */
const most = (a: number, b: number): number => (Number.isNaN(a) || Number.isNaN(b) ? NaN : Math.max(a, b));
const least = (a: number, b: number): number => (Number.isNaN(a) || Number.isNaN(b) ? NaN : Math.min(a, b));
const bigMost = (a: bigint, b: bigint): bigint => (a > b ? a : b);
const bigLeast = (a: bigint, b: bigint): bigint => (a < b ? a : b);

/** Of operands in their common type. */
const SAME: Readonly<Record<string, Arithmetic>> = {
  add: arithmetic(
    (a, b) => a + b,
    (a, b) => a + b,
  ),
  sub: arithmetic(
    (a, b) => a - b,
    (a, b) => a - b,
  ),
  mul: arithmetic(
    (a, b) => a * b,
    (a, b) => a * b,
  ),
  rsub: arithmetic(
    (a, b) => b - a,
    (a, b) => b - a,
  ),
  maximum: arithmetic(bigMost, most),
  minimum: arithmetic(bigLeast, least),
  fmod: arithmetic(mod, (a, b) => a % b),
  remainder: arithmetic((a, b) => mod(a, b) + odd(a, b) * b, floatRemainder),
  floorDivide: arithmetic(
    (a, b) => (b === 0n ? 0n : a / b - odd(a, b)),
    (a, b) => Math.round((a - floatRemainder(a, b)) / b),
  ),
  pow: arithmetic(power, (a, b) => a ** b, 32),
};
/** Of operands as floats. */
const FLOAT: Readonly<Record<string, Arithmetic>> = {
  div: (d, a, b) => fl(d, Number(a) / Number(b)),
  atan2: (d, a, b) => fl(d, Math.atan2(Number(a), Number(b)), 8),
  hypot: (d, a, b) => fl(d, Math.hypot(Number(a), Number(b)), 4),
  copysign: (_, a, b) => Math.abs(Number(a)) * (Number(b) < 0 || Object.is(b, -0) ? -1 : 1),
};
/** Of integers. */
const INTEGER: Readonly<Record<string, Arithmetic>> = {
  idiv: (d, a, b) => wrapInt(d, BigInt(b) === 0n ? 0n : BigInt(a) / BigInt(b)),
  bitwiseAnd: (d, a, b) => wrapInt(d, BigInt(a) & BigInt(b)),
  bitwiseOr: (d, a, b) => wrapInt(d, BigInt(a) | BigInt(b)),
  bitwiseXor: (d, a, b) => wrapInt(d, BigInt(a) ^ BigInt(b)),
  lshift: (d, a, b) => wrapInt(d, BigInt(a) << shift(d, BigInt(b))),
  rshift: (d, a, b) => wrapInt(d, BigInt(a) >> shift(d, BigInt(b))),
  gcd: (d, a, b) => wrapInt(d, gcd(BigInt(a), BigInt(b))),
};
const TEST: Readonly<Record<string, (a: Scalar, b: Scalar) => boolean>> = {
  lt: (a, b) => a < b,
  gt: (a, b) => a > b,
  le: (a, b) => a <= b,
  ge: (a, b) => a >= b,
  eq: (a, b) => a === b,
  ne: (a, b) => a !== b,
  logicalAnd: (a, b) => Boolean(a) && Boolean(b),
  logicalOr: (a, b) => Boolean(a) || Boolean(b),
  logicalXor: (a, b) => Boolean(a) !== Boolean(b),
};
const isNear = (d: TypeName, a: number, b: number): boolean =>
  a !== b && Math.abs(a - b) <= 4 * unit(d) * Math.max(Math.abs(a), Math.abs(b));
/** NaN is true, unlike in JavaScript. */
const truthOf = (x: Scalar): Scalar => (Number.isNaN(x) ? 1 : x);

// ---- ops ----

const record = <T>(table: Readonly<Record<string, T>>, op: (entry: T, name: string) => Op): Ops =>
  Object.fromEntries(Object.entries(table).map(([name, entry]) => [name, op(entry, name)]));

export const binary = (x: Term, y: Term, f: Arithmetic, d = commonType([x, y])): Arr => {
  const [a, b] = together([x, y], d) as [Arr, Arr];
  return zip(d, [a, b], (p, q) => f(d, p, q));
};
export const add = (x: Term, y: Term): Arr => binary(x, y, SAME.add as Arithmetic);
export const sub = (x: Term, y: Term): Arr => binary(x, y, SAME.sub as Arithmetic);
export const mul = (x: Term, y: Term): Arr => binary(x, y, SAME.mul as Arithmetic);
export const maximum = (x: Term, y: Term): Arr => binary(x, y, SAME.maximum as Arithmetic);
export const div = (x: Term, y: Term): Arr =>
  binary(x, y, FLOAT.div as Arithmetic, toFloat(commonType([x, y])));

/** A function of each element as a float; narrow floats compute in float32 and round once. */
export function mapFloat(
  x: Arr,
  f: (e: number) => number,
  ulps = 1,
  scale?: (e: number, y: number) => number,
): Arr {
  const d = toFloat(x.d);
  const fewer = TYPES[d].bits < 32 ? Math.min(ulps, 2) : ulps;
  return zip(d, [cast(x, d)], (e) => {
    const y = f(Number(e));
    return fl(d, y, fewer, scale === undefined ? Math.abs(y) : scale(Number(e), y));
  });
}
export const fn = (name: string, x: Arr): Arr => {
  const { f, ulps, scale, flushed } = FUNCTIONS[name] as (typeof FUNCTIONS)[string];
  const y = mapFloat(x, f, ulps, scale);
  const normal = 2 ** (TYPES[y.d].low ?? 0);
  // asked only where bounds are made: the value itself is known
  const inner = flushed === undefined || !noise.on ? [] : x.v.map((e) => Math.abs(flushed(Number(e))));
  if (inner.some((e) => e > 0 && e < normal)) throw new Unsuitable(`${name}: a subnormal number on its way`);
  return y;
};
/** A whole number from each float; integers stay. */
const steps =
  (f: (x: number) => number): Op =>
  (x) =>
    isFloat(x.d) ? zip(x.d, [x], (e) => f(e as number)) : x;
const roundEven = (x: number): number => {
  const r = Math.round(x);
  return Math.abs(x % 1) === 0.5 && r % 2 !== 0 ? r - 1 : r;
};
export function where(c: Arr, x: Term, y: Term): Arr {
  if (c.d !== "bool") throw new Unsuitable("a condition is bool");
  const [a, b] = together([x, y]) as [Arr, Arr];
  const s = broadcastShape([c.s, a.s]);
  const [flags, p, q] = [c, a, b].map((t) => broadcastTo(t, s)) as [Arr, Arr, Arr];
  return zip(a.d, [flags, p, q], (f, u, v) => (f ? u : v));
}
function clamp(x: Arr, low: Value, high: Value): Arr {
  const given = [low, high].flatMap((b) => (b === undefined || b === null ? [] : [term(b)]));
  const d = commonType([x, ...given]);
  let out: Arr = cast(x, d);
  if (low !== undefined && low !== null) out = binary(out, term(low), SAME.maximum as Arithmetic, d);
  if (high !== undefined && high !== null) out = binary(out, term(high), SAME.minimum as Arithmetic, d);
  return out;
}
/** x + w (y - x) in the common float type. */
function lerp(x: Arr, y: Term, w: Term): Arr {
  const d = toFloat(commonType([x, y, w]));
  const [a, b, c] = together([x, y, w], d) as [Arr, Arr, Arr];
  return zip(d, [a, b, c], (p, q, r) => {
    const [u, v, t] = [Number(p), Number(q), Number(r)];
    return fl(d, u + t * (v - u), 4, Math.max(Math.abs(u), Math.abs(v)) * (1 + Math.abs(t)));
  });
}
const notBool = (x: Arr): Arr => {
  if (x.d === "bool") throw new Unsuitable("not of bool");
  return x;
};
const alpha = (y: Value, o: Value): Term => {
  const by = options(o).alpha;
  return by === undefined ? term(y) : mul(arr(y), term(by));
};

export const ELEMENTWISE: Ops = {
  ...record(SAME, (f, name) => (x, y, o) => {
    const other = name === "add" || name === "sub" ? alpha(y, o) : term(y);
    const d = commonType([x, other]);
    if (d === "bool" && !["add", "mul", "maximum", "minimum", "pow"].includes(name))
      throw new Unsuitable("not of bool");
    return binary(x, other, f, d);
  }),
  ...record(FLOAT, (f) => (x, y) => binary(x, term(y), f, toFloat(commonType([x, term(y)])))),
  ...record(INTEGER, (f, name) => (x, y) => {
    const d = commonType([x, term(y)]);
    if (!isInt(d) && !(d === "bool" && name.startsWith("bitwise"))) throw new Unsuitable("of integers");
    return binary(x, term(y), f, d);
  }),
  ...record(TEST, (f, name) => (x, y) => {
    const both = together([x, term(y)]) as [Arr, Arr];
    const [{ d }] = both;
    if (name.startsWith("logical")) return zip("bool", both, (a, b) => Number(f(truthOf(a), truthOf(b))));
    // rounding may make equal what is near: then one of two noisy runs says so
    const open = (a: Scalar, b: Scalar): boolean =>
      noise.on && isFloat(d) && (name === "eq" || name === "ne") && isNear(d, Number(a), Number(b));
    return zip("bool", both, (a, b) => Number(open(a, b) ? noise.sign > 0 === (name === "eq") : f(a, b)));
  }),
  ...record(FUNCTIONS, (_, name) => (x) => fn(name, x)),
  neg: (x) => zip(notBool(x).d, [x], (e) => (isFloat(x.d) ? -e : wrapInt(x.d, -BigInt(e)))),
  abs: (x) =>
    zip(x.d, [x], (e) => (isFloat(x.d) ? Math.abs(e as number) : e < 0 ? wrapInt(x.d, -BigInt(e)) : e)),
  sign: (x) => zip(x.d, [x], (e) => (Number.isNaN(e) ? 0 : wrapAs(x.d, e > 0 ? 1 : e < 0 ? -1 : 0))),
  square: (x) => mul(cast(x, x.d === "bool" ? "int32" : x.d), cast(x, x.d === "bool" ? "int32" : x.d)),
  floor: steps(Math.floor),
  ceil: steps(Math.ceil),
  trunc: steps(Math.trunc),
  round: steps(roundEven),
  frac: (x) => zip(x.d, [x], (e) => Number(e) % 1),
  relu: (x) => maximum(x.d === "bool" ? cast(x, "int32") : x, 0),
  relu6: (x) => clamp(x, 0, 6),
  hardtanh: (x) => clamp(x, -1, 1),
  leakyRelu: (x, slope) => mapFloat(x, (e) => leakyRelu(e, num(slope, 0.01)), 2),
  elu: (x, a) =>
    mapFloat(
      x,
      (e) => elu(e, num(a, 1)),
      8,
      (e, y) => Math.max(Math.abs(e), Math.abs(y)),
    ),
  softplus: (x, beta) =>
    mapFloat(
      x,
      (e) => softplusOf(e, num(beta, 1)),
      8,
      (e, y) => Math.max(Math.abs(e), y),
    ),
  hardshrink: (x, by) => zip(x.d, [x], (e) => (Math.abs(Number(e)) > num(by, 0.5) ? e : 0)),
  softshrink: (x, by) =>
    mapFloat(
      x,
      (e) => Math.sign(e) * Math.max(Math.abs(e) - num(by, 0.5), 0),
      1,
      (e) => Math.abs(e),
    ),
  isnan: (x) => zip("bool", [x], (e) => Number(Number.isNaN(e))),
  isinf: (x) => zip("bool", [x], (e) => Number(e === Infinity || e === -Infinity)),
  isfinite: (x) => zip("bool", [x], (e) => Number(typeof e === "bigint" || Number.isFinite(e))),
  signbit: (x) => zip("bool", [x], (e) => Number(e < 0 || Object.is(e, -0))),
  logicalNot: (x) => zip("bool", [x], (e) => Number(!truthOf(e))),
  bitwiseNot: (x) => zip(x.d, [x], (e) => (x.d === "bool" ? Number(!e) : wrapInt(x.d, ~BigInt(e)))),
  where: (c, x, y) => where(c, term(x), term(y)),
  clamp: (x, low, high) => clamp(x, low, high),
  lerp: (x, y, w) => lerp(x, term(y), term(w)),
  addcmul: (x, a, b) => add(x, mul(arr(a), arr(b))),
  cast: (x, d) => cast(x, text(d) as TypeName),
  bitcast: (x, d) => zip(text(d) as TypeName, [x], (e) => bitcastScalar(text(d) as TypeName, e, x.d)),
  nanToNum: (x) => zip(x.d, [x], (e) => (isFloat(x.d) ? nanToNum(x.d, Number(e)) : e)),
};
const wrapAs = (d: TypeName, x: number): Scalar => (isFloat(d) ? x : wrapInt(d, BigInt(x)));
function nanToNum(d: TypeName, x: number): number {
  if (Number.isNaN(x)) return 0;
  const { most: limit = Infinity } = TYPES[d];
  return Number.isFinite(x) ? x : storeFloat(d, x > 0 ? limit : -limit);
}
/** A number in every place. */
export const full = (d: TypeName, s: readonly number[], value: number): Arr =>
  array(d, s, Array(s.reduce((a, b) => a * b, 1)).fill(isFloat(d) ? value : wrapInt(d, BigInt(value))));
