// Arrays of the reference: a type, a shape, the elements row by row; and the noise that tells how far
// rounding may move a result. Everything is plain loops over indexes: slow, and easy to see to be right.

import type { Scalar, TypeName } from "../language.ts";
import { castScalar, isBig, isFloat, resultType, roundFloat, TYPES, tiny, unit } from "./types.ts";

export interface Arr {
  readonly d: TypeName;
  readonly s: readonly number[];
  readonly v: readonly Scalar[];
}
/** A program that the reference does not take: the generator makes another one. */
export class Unsuitable extends Error {}

export const array = (d: TypeName, s: readonly number[], v: readonly Scalar[]): Arr => ({ d, s, v });
export const isArr = (x: unknown): x is Arr => typeof x === "object" && x !== null && "v" in x && "s" in x;
export const sizeOf = (s: readonly number[]): number => s.reduce((a, b) => a * b, 1);

// ---- noise ----

/**
 * In a noisy run every rounding moves its result by up to a unit in the last place. How far the outputs of
 * some noisy runs are from those of the exact one bounds what a device may give. `sign` turns all noise of a
 * run around: where a result hangs on a threshold, one of the two runs crosses it. `tape` is for gradients,
 * which are differences: it holds what every rounding gives at the middle point, so that not only values but
 * their changes, which is what a backward pass computes with, are moved.
 */
export const noise = {
  on: false,
  /** round every result as IEEE 754 does, for numbers so far apart that what is lost decides */
  rounds: false,
  state: 1,
  sign: 1,
  tape: undefined as { readonly mode: "record" | "replay"; readonly seen: number[]; at: number } | undefined,
};

/** Between 0.5 and 1 in size, of either sign. */
function draw(): number {
  let x = noise.state;
  x ^= x << 13;
  x ^= x >>> 17;
  x ^= x << 5;
  noise.state = x >>> 0;
  const size = 0.5 + (noise.state >>> 8) / 2 ** 25;
  return noise.state & 1 ? size * noise.sign : -size * noise.sign;
}
/** Whether arithmetic has not rounded yet, as far as one can tell: everything is a number of float64. */
const isExact = (d: TypeName, x: number): boolean =>
  d === "float64" ? Math.abs(x) < 2 ** 31 && Number.isInteger(x * 2 ** 20) : roundFloat(d, x) === x;
/** The reference rounds to float64 as well, and must not round the noise away. */
const noiseUnit = (d: TypeName): number => unit(d) * (d === "float64" ? 4 : 1);

/** A result of float type that comes from rounding: `ulps` of `scale` off at most. */
export function fl(d: TypeName, x: number, ulps = 1, scale = Math.abs(x)): number {
  if (noise.tape !== undefined) return taped(d, x, ulps, scale);
  const { most = Infinity, low = 0 } = TYPES[d];
  const small = Math.abs(x) < 2 ** low;
  if (Math.abs(x) > most || (small && !noise.on)) return roundFloat(d, x);
  if (!noise.on) return noise.rounds ? roundFloat(d, x) : x;
  const by = draw();
  if (small) return roundFloat(d, x) === x ? x : x + by * tiny(d);
  if (!Number.isFinite(x) || (ulps === 1 && isExact(d, x))) return x;
  return x + by * ulps * noiseUnit(d) * scale;
}
function taped(d: TypeName, x: number, ulps: number, scale: number): number {
  const { mode, seen } = noise.tape as NonNullable<typeof noise.tape>;
  const [inValue, inChange] = [draw(), draw()];
  const at = (noise.tape as NonNullable<typeof noise.tape>).at++;
  if (mode === "record") seen.push(x);
  const middle = seen[at] ?? x;
  const by = ulps * noiseUnit(d);
  return x + inChange * by * (x - middle) + inValue * by * (mode === "record" ? scale : Math.abs(middle));
}
/** The sum of terms that any order of adding in float32 (or wider) may give, stored as `d`. */
export function sumUp(d: TypeName, terms: readonly number[]): number {
  let total = 0;
  for (const t of terms) total += t;
  if (!noise.on || terms.length <= 1) return fl(d, total);
  const wide: TypeName = d === "float64" ? d : "float32";
  const ulps = Math.min(terms.length, 8);
  if (noise.tape !== undefined)
    return fl(
      d,
      terms.reduce((sum, t) => sum + fl(wide, t, ulps), 0),
    );
  let size = 0;
  let dyadic = true;
  for (const t of terms) {
    size += Math.abs(t);
    dyadic &&= Number.isInteger(t * 4096);
  }
  if (dyadic && size * 4096 * 2 * unit(wide) < 1) return fl(d, total);
  for (const t of terms) total += draw() * ulps * noiseUnit(wide) * Math.abs(t);
  // many equal terms round the same way
  total += draw() * (Math.sqrt(terms.length) / 8) * noiseUnit(wide) * size;
  return fl(d, total);
}

// ---- places ----

/** Every index of a shape, row by row. */
export function* indexes(s: readonly number[]): Generator<number[]> {
  const n = sizeOf(s);
  const at = s.map(() => 0);
  for (let i = 0; i < n; i++) {
    yield [...at];
    for (let k = s.length - 1; k >= 0; k--) {
      at[k] = (at[k] as number) + 1;
      if ((at[k] as number) < (s[k] as number)) break;
      at[k] = 0;
    }
  }
}
export function flatOf(s: readonly number[], at: readonly number[]): number {
  let flat = 0;
  for (let i = 0; i < s.length; i++) flat = flat * (s[i] as number) + (at[i] as number);
  return flat;
}
export function element(x: Arr, at: readonly number[]): Scalar {
  const e = x.v[flatOf(x.s, at)];
  if (e === undefined) throw new Unsuitable(`no element at [${at}] of [${x.s}]`);
  return e;
}
export const zeroOf = (d: TypeName): Scalar => (isBig(d) ? 0n : 0);

/** A new array of shape `s`, each element taken from where `from` says, or `otherwise`. */
export function gatherBy(
  x: Arr,
  s: readonly number[],
  from: (at: readonly number[]) => readonly number[] | undefined,
  otherwise: Scalar = zeroOf(x.d),
): Arr {
  const v: Scalar[] = [];
  for (const at of indexes(s)) {
    const place = from(at);
    v.push(place === undefined ? otherwise : element(x, place));
  }
  return array(x.d, s, v);
}
export const axisOf = (dim: number, ndim: number): number => {
  if (dim < -Math.max(ndim, 1) || dim >= Math.max(ndim, 1)) throw new Unsuitable(`no dim ${dim}`);
  return dim < 0 ? dim + ndim : dim;
};

// ---- broadcasting and promotion ----

export function broadcastShape(shapes: readonly (readonly number[])[]): number[] {
  const ndim = Math.max(...shapes.map((s) => s.length));
  return Array.from({ length: ndim }, (_, k) => {
    const sizes = shapes.map((s) => s[s.length - ndim + k] ?? 1);
    const size = sizes.find((n) => n !== 1) ?? 1;
    if (sizes.some((n) => n !== 1 && n !== size)) throw new Unsuitable("shapes do not broadcast");
    return size;
  });
}
export const broadcastTo = (x: Arr, s: readonly number[]): Arr => {
  const pad = s.length - x.s.length;
  if (pad < 0 || x.s.some((n, i) => n !== 1 && n !== s[i + pad])) throw new Unsuitable("cannot expand");
  return gatherBy(x, s, (at) => x.s.map((n, i) => (n === 1 ? 0 : (at[i + pad] as number))));
};
export function cast(x: Arr, d: TypeName): Arr {
  if (x.d === d) return x;
  if (!isFloat(d) || !isFloat(x.d) || !noise.on)
    return array(
      d,
      x.s,
      x.v.map((e) => castScalar(d, e, x.d)),
    );
  // what is not a number of its own type was rounded on the device: on which side of a step it falls is open
  const inexact = (e: number): boolean => noise.tape !== undefined || roundFloat(x.d, e) !== e;
  return array(
    d,
    x.s,
    x.v.map((e) => (inexact(e as number) ? fl(d, e as number) : castScalar(d, e, x.d))),
  );
}

/** A tensor or a plain number as an operand. */
export type Term = Arr | number | bigint | boolean;
const typeOfTerm = (x: Term): TypeName => {
  if (isArr(x)) return x.d;
  if (typeof x === "boolean") return "bool";
  if (typeof x === "bigint") return "int64";
  return Number.isInteger(x) ? "int32" : "float32";
};
export const commonType = (xs: readonly Term[]): TypeName =>
  resultType(
    xs.map((x) => ({ d: typeOfTerm(x), rank: !isArr(x) ? "number" : x.s.length === 0 ? "zerodim" : "dims" })),
  );
/** All operands in one shape and one type. */
export function together(xs: readonly Term[], d = commonType(xs)): Arr[] {
  const s = broadcastShape(xs.map((x) => (isArr(x) ? x.s : [])));
  return xs.map((x) => {
    if (isArr(x)) return broadcastTo(cast(x, d), s);
    const value = typeof x === "boolean" ? Number(x) : x;
    const from =
      typeof value === "bigint" ? "int64" : isFloat(d) || !Number.isInteger(value) ? "float64" : "int64";
    return array(d, s, Array(sizeOf(s)).fill(castScalar(d, from === "int64" ? BigInt(value) : value, from)));
  });
}
/** The elements of one shape and type, combined. */
export const zip = (d: TypeName, xs: readonly Arr[], f: (...e: Scalar[]) => Scalar): Arr => {
  const [first] = xs as [Arr];
  return array(
    d,
    first.s,
    first.v.map((_, i) => f(...xs.map((x) => x.v[i] as Scalar))),
  );
};
