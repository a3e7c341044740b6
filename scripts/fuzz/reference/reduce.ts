// Reductions, running reductions and order in the reference.

import type { Scalar, TypeName } from "../language.ts";
import { arr, flag, num, nums, type Op, type Ops, options, type Value } from "./args.ts";
import {
  type Arr,
  array,
  axisOf,
  cast,
  element,
  fl,
  flatOf,
  gatherBy,
  indexes,
  sizeOf,
  sumUp,
  Unsuitable,
} from "./array.ts";
import { add, div, fn, mapFloat, mul, sub } from "./elementwise.ts";
import { isFloat, productType, sumType, TYPES, toFloat, wrapInt } from "./types.ts";

export function dimsOf(x: Arr, dim: Value): number[] {
  if (dim === undefined || dim === null || (Array.isArray(dim) && dim.length === 0))
    return x.s.map((_, i) => i);
  return nums(dim)
    .map((d) => axisOf(d, x.s.length))
    .filter((d) => d < x.s.length);
}
/** `f` of the elements along `dims`, in row-major order. */
export function reduce(
  x: Arr,
  dims: readonly number[],
  keep: boolean,
  d: TypeName,
  f: (v: Scalar[]) => Scalar,
): Arr {
  const kept = x.s.map((n, i) => (dims.includes(i) ? 1 : n));
  const groups: Scalar[][] = Array.from({ length: sizeOf(kept) }, () => []);
  for (const at of indexes(x.s)) {
    const to = flatOf(
      kept,
      at.map((a, i) => (dims.includes(i) ? 0 : a)),
    );
    (groups[to] as Scalar[]).push(element(x, at));
  }
  return array(d, keep ? kept : x.s.filter((_, i) => !dims.includes(i)), groups.map(f));
}
const total = (d: TypeName, v: readonly Scalar[]): Scalar =>
  isFloat(d)
    ? sumUp(d, v as number[])
    : wrapInt(
        d,
        v.reduce<bigint>((a, b) => a + BigInt(b), 0n),
      );
const product = (d: TypeName, v: readonly Scalar[]): Scalar =>
  isFloat(d)
    ? fl(
        d,
        (v as number[]).reduce((a, b) => fl(d === "float64" ? d : "float32", a * b), 1),
      )
    : wrapInt(
        d,
        v.reduce<bigint>((a, b) => a * BigInt(b), 1n),
      );
/** The larger of two, NaN before all. */
const beats = (a: Scalar, b: Scalar): boolean => (Number.isNaN(a) ? !Number.isNaN(b) : a > b);
const best = (v: readonly Scalar[], better: (a: Scalar, b: Scalar) => boolean): number => {
  if (v.length === 0) throw new Unsuitable("no elements");
  return v.reduce<number>((at, e, i) => (better(e, v[at] as Scalar) ? i : at), 0);
};
const worse = (a: Scalar, b: Scalar): boolean => (Number.isNaN(a) ? !Number.isNaN(b) : a < b);

export const sum = (x: Arr, dim?: Value, keep = false): Arr => {
  const d = sumType(x.d);
  return reduce(cast(x, d), dimsOf(x, dim), keep, d, (v) => total(d, v));
};
const countOf = (x: Arr, dim: Value): number => dimsOf(x, dim).reduce((n, a) => n * (x.s[a] as number), 1);
export function mean(x: Arr, dim?: Value, keep = false): Arr {
  const n = countOf(x, dim);
  if (n === 0) throw new Unsuitable("no elements");
  // a mean of integers does not wrap: sums that could are those of floats
  const { kind, bits } = TYPES[x.d];
  const wraps = !isFloat(x.d) && bits < 64 && n * 2 ** (kind === "int" ? bits - 1 : bits) > 2 ** 31 - 1;
  const s = sum(wraps ? cast(x, toFloat(x.d)) : x, dim, keep);
  return mapFloat(s, (e) => e / n, 2);
}
export function variance(x: Arr, dim: Value, keep: boolean, correction = 1): Arr {
  const n = countOf(x, dim) - correction;
  if (n <= 0) throw new Unsuitable("too few elements");
  const wide = cast(x, toFloat(x.d));
  const apart = sub(wide, mean(x, dim, true));
  return mapFloat(sum(mul(apart, apart), dim, keep), (e) => e / n, 2);
}
export const amax = (x: Arr, dim: Value, keep = false): Arr =>
  reduce(x, dimsOf(x, dim), keep, x.d, (v) => v[best(v, beats)] as Scalar);
const amin = (x: Arr, dim: Value, keep = false): Arr =>
  reduce(x, dimsOf(x, dim), keep, x.d, (v) => v[best(v, worse)] as Scalar);
export function logsumexp(x: Arr, dim: Value, keep = false): Arr {
  const top = amax(cast(x, toFloat(x.d)), dim, true);
  const rest = mapFloat(sum(fn("exp", sub(x, top)), dim, true), Math.log, 4, (e) =>
    Math.max(1, Math.abs(Math.log(e))),
  );
  const out = add(rest, top);
  return keep
    ? out
    : array(
        out.d,
        x.s.filter((_, i) => !dimsOf(x, dim).includes(i)),
        out.v,
      );
}
const oneDim = (x: Arr, dim: Value): Value =>
  dim === undefined || dim === null ? undefined : axisOf(num(dim), x.s.length);
const places =
  (better: typeof beats): Op =>
  (x, dim, keep) =>
    reduce(x, dimsOf(x, oneDim(x, dim)), flag(keep), "int32", (v) => best(v, better));
const both =
  (better: typeof beats): Op =>
  (x, dim, keep) => {
    const dims = dimsOf(x, num(dim));
    return [
      reduce(x, dims, flag(keep), x.d, (v) => v[best(v, better)] as Scalar),
      reduce(x, dims, flag(keep), "int32", (v) => best(v, better)),
    ];
  };
const truth = (e: Scalar): boolean => Number.isNaN(e) || Boolean(e);
function vectorNorm(x: Arr, ord: number, dim: Value, keep: boolean): Arr {
  const size = mapFloat(x, Math.abs);
  if (ord === 1) return sum(size, dim, keep);
  if (ord === Infinity) return amax(size, dim, keep);
  if (ord === -Infinity) return amin(size, dim, keep);
  if (ord !== 2) throw new Unsuitable("this norm");
  return mapFloat(sum(mul(size, size), dim, keep), Math.sqrt);
}

// ---- along one dim ----

/** Rows along a dim go through `f`, which gives rows of any one length, one list for each result. */
export function alongDim(
  x: Arr,
  dim: number,
  types: readonly TypeName[],
  f: (row: Scalar[]) => Scalar[][],
): Arr[] {
  if (x.s.length === 0) return f([...x.v]).map((row, k) => array(types[k] as TypeName, [], row));
  const at = axisOf(dim, x.s.length);
  const outer = x.s.map((n, i) => (i === at ? 1 : n));
  const rows = [...indexes(outer)].map((place) => ({
    place,
    made: f(Array.from({ length: x.s[at] as number }, (_, i) => element(x, place.with(at, i)))),
  }));
  return types.map((d, k) => {
    const n = rows[0]?.made[k]?.length ?? 0;
    const s = x.s.map((m, i) => (i === at ? n : m));
    const v: Scalar[] = Array(sizeOf(s)).fill(0);
    for (const { place, made } of rows)
      made[k]?.forEach((e, i) => {
        v[flatOf(s, place.with(at, i))] = e;
      });
    return array(d, s, v);
  });
}
const scan = (d: TypeName, x: Arr, dim: Value, f: (seen: Scalar[]) => Scalar): Arr =>
  alongDim(cast(x, d), num(dim), [d], (row) => [row.map((_, i) => f(row.slice(0, i + 1)))])[0] as Arr;
/** The places of a row in order; equal elements stay in theirs, NaN is the largest. */
const order = (row: readonly Scalar[], descending: boolean): number[] =>
  row
    .map((_, i) => i)
    .sort((i, j) => {
      const [a, b] = [row[i] as Scalar, row[j] as Scalar];
      const way = beats(a, b) ? 1 : beats(b, a) ? -1 : 0;
      return (descending ? -way : way) || i - j;
    });
function sorted(x: Arr, dim: number, descending: boolean, n?: number): Arr[] {
  return alongDim(x, dim, [x.d, "int32"], (row) => {
    const at = order(row, descending).slice(0, n);
    return [at.map((i) => row[i] as Scalar), at];
  });
}
const running =
  (better: typeof beats): Op =>
  (x, dim) =>
    alongDim(x, num(dim), [x.d, "int32"], (row) => {
      const at: number[] = [];
      row.forEach((e, i) => {
        const before = at[i - 1] ?? 0;
        at.push(better(row[before] as Scalar, e) ? before : i);
      });
      return [at.map((i) => row[i] as Scalar), at];
    });
function nth(x: Arr, k: (n: number) => number, dim: number, keep: boolean): Arr[] {
  return alongDim(x, dim, [x.d, "int32"], (row) => {
    const at = order(row, false)[k(row.length)] as number;
    return [[row[at] as Scalar], [at]];
  }).map((r) =>
    keep
      ? r
      : array(
          r.d,
          r.s.filter((_, i) => i !== axisOf(dim, x.s.length)),
          r.v,
        ),
  );
}
function searchsorted(x: Arr, values: Arr, right: boolean): Arr {
  const at = (e: Scalar): number => x.v.filter((b) => (right ? b <= e : b < e)).length;
  return array("int32", values.s, values.v.map(at));
}

export const REDUCE: Ops = {
  sum: (x, dim, keep, o) => {
    const d = options(o).dtype as TypeName | undefined;
    return d === undefined ? sum(x, dim, flag(keep)) : cast(sum(cast(x, d), dim, flag(keep)), d);
  },
  mean: (x, dim, keep) => mean(x, dim, flag(keep)),
  prod: (x, dim, keep) => {
    const d = productType(x.d);
    return reduce(cast(x, d), dimsOf(x, dim), flag(keep), d, (v) =>
      isFloat(d) ? fl(d, product(d, v) as number) : product(d, v),
    );
  },
  max: (x, dim, keep) => amax(x, dim, flag(keep)),
  min: (x, dim, keep) => amin(x, dim, flag(keep)),
  amax: (x, dim, keep) => amax(x, dim, flag(keep)),
  amin: (x, dim, keep) => amin(x, dim, flag(keep)),
  any: (x, dim, keep) => reduce(x, dimsOf(x, dim), flag(keep), "bool", (v) => Number(v.some(truth))),
  all: (x, dim, keep) => reduce(x, dimsOf(x, dim), flag(keep), "bool", (v) => Number(v.every(truth))),
  countNonzero: (x, dim) => reduce(x, dimsOf(x, dim), false, "int32", (v) => v.filter(truth).length),
  var: (x, dim, keep, correction) => variance(x, dim, flag(keep), num(correction, 1)),
  std: (x, dim, keep, correction) => mapFloat(variance(x, dim, flag(keep), num(correction, 1)), Math.sqrt),
  varMean: (x, dim, keep) => [variance(x, dim, flag(keep)), mean(x, dim, flag(keep))],
  logsumexp: (x, dim, keep) => logsumexp(x, dim, flag(keep)),
  vectorNorm: (x, ord, dim, keep) => vectorNorm(x, num(ord, 2), dim, flag(keep)),
  argmax: places(beats),
  argmin: places(worse),
  maxWithIndices: both(beats),
  minWithIndices: both(worse),
  cumsum: (x, dim) => scan(sumType(x.d), x, dim, (v) => total(sumType(x.d), v)),
  cumprod: (x, dim) => scan(productType(x.d), x, dim, (v) => product(productType(x.d), v)),
  cummax: running(beats),
  cummin: running(worse),
  logcumsumexp: (x, dim) =>
    scan(toFloat(x.d), x, dim, (v) => logsumexp(array(toFloat(x.d), [v.length], v), 0).v[0] as Scalar),
  sort: (x, dim, descending) => sorted(x, num(dim, -1), flag(descending)),
  argsort: (x, dim, descending) => sorted(x, num(dim, -1), flag(descending))[1] as Arr,
  msort: (x) => sorted(x, 0, false)[0] as Arr,
  topk: (x, k, dim, largest) => sorted(x, num(dim, -1), largest !== false, num(k)),
  kthvalue: (x, k, dim, keep) => nth(x, () => num(k) - 1, num(dim, -1), flag(keep)),
  median: (x, dim, keep) =>
    dim === undefined
      ? array(x.d, [], [order(x.v, false).map((i) => x.v[i])[Math.floor((x.v.length - 1) / 2)] as Scalar])
      : nth(x, (n) => Math.floor((n - 1) / 2), num(dim), flag(keep)),
  searchsorted: (x, values, o) => searchsorted(x, arr(values), flag(options(o).right)),
  bucketize: (x, borders, o) => searchsorted(arr(borders), x, flag(options(o).right)),
  diff: (x, n, dim) => {
    if (num(n, 1) !== 1) throw new Unsuitable("one difference at a time");
    const at = axisOf(num(dim, -1), x.s.length);
    const s = x.s.with(at, Math.max(0, (x.s[at] as number) - 1));
    return sub(
      gatherBy(x, s, (p) => p.with(at, (p[at] as number) + 1)),
      gatherBy(x, s, (p) => p),
    );
  },
  softmax: (x, dim) => softmax(x, num(dim, -1)),
  softmin: (x, dim) => softmax(sub(0, x), num(dim, -1)),
  logSoftmax: (x, dim) => sub(x, logsumexp(x, num(dim, -1), true)),
};
export function softmax(x: Arr, dim: number): Arr {
  const e = fn("exp", sub(x, amax(cast(x, toFloat(x.d)), dim, true)));
  return div(e, sum(e, dim, true));
}
