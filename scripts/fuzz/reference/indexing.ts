// Reading and writing by index in the reference: loops over the places that an index names.

import type { Scalar, TypeName } from "../language.ts";
import { arr, flag, list, num, type Op, type Ops, options, term, text, type Value } from "./args.ts";
import {
  type Arr,
  array,
  axisOf,
  broadcastShape,
  broadcastTo,
  element,
  fl,
  flatOf,
  gatherBy,
  indexes,
  isArr,
  sumUp,
  Unsuitable,
} from "./array.ts";
import { mul } from "./elementwise.ts";
import { castScalar, isFloat, wrapInt } from "./types.ts";

const place = (x: Scalar, n: number): number => {
  const i = Number(x) < 0 ? Number(x) + n : Number(x);
  if (i < 0 || i >= n) throw new Unsuitable("an index out of range");
  return i;
};
/** One element of a type: a number of the program, or that of a 0-d tensor. */
const filler = (d: TypeName, x: Value): Scalar => {
  const t = term(x);
  if (isArr(t)) return castScalar(d, t.v[0] as Scalar, t.d);
  return isFloat(d) ? castScalar(d, Number(t), "float64") : wrapInt(d, BigInt(t));
};
const gather = (x: Arr, dim: number, index: Arr): Arr => {
  const at = axisOf(dim, x.s.length);
  return gatherBy(x, index.s, (p) => p.with(at, place(element(index, p), x.s[at] as number)));
};
const vectorOf = (x: Arr): number[] => x.v.map(Number);

// ---- x[...] ----

/** What an index takes: for each place of the result the place in x, and the shape. */
export function plan(
  x: Arr,
  given: readonly Value[],
): { s: number[]; from: (at: readonly number[]) => number[] } {
  const named = given.filter((i) => i !== null && i !== "...").length;
  const dots = given.indexOf("...");
  const whole: Value[] = Array(x.s.length - named).fill([]);
  const index =
    dots < 0 ? [...given, ...whole] : [...given.slice(0, dots), ...whole, ...given.slice(dots + 1)];
  const tensors = index.filter(isArr);
  const joint = tensors.length > 0 ? broadcastShape(tensors.map((t) => t.s)) : [];
  const at = index.flatMap((i, k) => (isArr(i) || typeof i === "number" ? [k] : []));
  const apart = at.some((k, j) => j > 0 && k !== (at[j - 1] as number) + 1) && tensors.length > 0;
  const s: number[] = [];
  const read: ((p: readonly number[]) => number)[] = [];
  let where = -1;
  if (apart) {
    where = 0;
    s.push(...joint);
  }
  let dim = 0;
  for (const i of index) {
    if (i === null) {
      s.push(1);
      continue;
    }
    const n = x.s[dim++] as number;
    if (typeof i === "number") {
      read.push(() => place(i, n));
    } else if (isArr(i)) {
      if (where < 0) {
        where = s.length;
        s.push(...joint);
      }
      const full = broadcastTo(i, joint);
      read.push((p) => place(element(full, p.slice(where, where + joint.length)), n));
    } else {
      const [start, count, step] = cut(list(i), n);
      const mine = s.length;
      s.push(count);
      // a dim that stands before the joint ones of tensors keeps its number: `where` is fixed by then
      read.push((p) => start + step * (p[mine] as number));
    }
  }
  return { s, from: (p) => read.map((f) => f(p)) };
}
/** Python's slice: the first element, how many, and the step. */
function cut(given: readonly Value[], n: number): [number, number, number] {
  const [a, b, c] = [given[0] ?? null, given[1] ?? null, given[2] ?? 1] as [
    number | null,
    number | null,
    number,
  ];
  const limit = (x: number, low: number, high: number): number =>
    Math.min(Math.max(x < 0 ? x + n : x, low), high);
  const start = a === null ? (c > 0 ? 0 : n - 1) : limit(a, c > 0 ? 0 : -1, c > 0 ? n : n - 1);
  const end = b === null ? (c > 0 ? n : -1) : limit(b, c > 0 ? 0 : -1, c > 0 ? n : n - 1);
  return [start, Math.max(0, Math.ceil((end - start) / c)), c];
}
/** The new value of x after `x[index] = value`. */
function written(x: Arr, index: readonly Value[], value: Value): Arr {
  const v = [...x.v];
  const [mask] = index;
  if (index.length === 1 && isArr(mask) && mask.d === "bool") {
    const m = broadcastTo(mask, x.s);
    return array(
      x.d,
      x.s,
      v.map((e, i) => (m.v[i] ? filler(x.d, value) : e)),
    );
  }
  const { s, from } = plan(x, index);
  const source = isArr(value) ? broadcastTo(value, s) : undefined;
  for (const at of indexes(s)) {
    const e = source === undefined ? filler(x.d, value) : castScalar(x.d, element(source, at), source.d);
    v[flatOf(x.s, from(at))] = e;
  }
  return array(x.d, x.s, v);
}

// ---- scatter ----

type Join = (d: TypeName, here: readonly Scalar[]) => Scalar;
const added: Join = (d, v) =>
  isFloat(d)
    ? sumUp(d, v as number[])
    : wrapInt(
        d,
        v.reduce<bigint>((a, b) => a + BigInt(b), 0n),
      );
const multiplied: Join = (d, v) =>
  isFloat(d)
    ? (v as number[]).reduce((a, b) => fl(d, a * b), 1)
    : wrapInt(
        d,
        v.reduce<bigint>((a, b) => a * BigInt(b), 1n),
      );
const JOINS: Readonly<Record<string, Join>> = {
  sum: added,
  add: added,
  prod: multiplied,
  multiply: multiplied,
  amax: (_, v) => v.reduce((a, b) => (b > a ? b : a)),
  amin: (_, v) => v.reduce((a, b) => (b < a ? b : a)),
  mean: (d, v) => {
    if (!isFloat(d)) throw new Unsuitable("a mean of integers");
    return fl(d, (added(d, v) as number) / v.length, 2);
  },
  last: (_, v) => v.at(-1) as Scalar,
};
/** The sources that go to each place, after what was there, combined. */
function scatterAll(x: Arr, to: readonly (readonly [number, Scalar])[], join: string, self = true): Arr {
  const here: Scalar[][] = x.v.map((e) => [e]);
  for (const [i, e] of to) (here[i] as Scalar[]).push(e);
  const f = JOINS[join];
  if (f === undefined) throw new Unsuitable(join);
  return array(
    x.d,
    x.s,
    here.map((v) => (v.length === 1 ? (v[0] as Scalar) : f(x.d, self ? v : v.slice(1)))),
  );
}
function scatter(x: Arr, dim: number, index: Arr, src: Value, join: string, self = true): Arr {
  const at = axisOf(dim, x.s.length);
  const to = [...indexes(index.s)].map((p): [number, Scalar] => {
    const i = place(element(index, p), x.s[at] as number);
    return [flatOf(x.s, p.with(at, i)), isArr(src) ? element(src, p) : filler(x.d, src)];
  });
  return scatterAll(x, to, join, self);
}
/** Slices along a dim go to the places that a vector names. */
function indexed(x: Arr, dim: number, index: Arr, source: Arr, join: string): Arr {
  const at = axisOf(dim, x.s.length);
  const list = vectorOf(index);
  const to = [...indexes(source.s)].map((p): [number, Scalar] => [
    flatOf(x.s, p.with(at, place(list[p[at] as number] as number, x.s[at] as number))),
    element(source, p),
  ]);
  return scatterAll(x, to, join);
}
const take: Op = (x, index) =>
  array(
    x.d,
    arr(index).s,
    arr(index).v.map((i) => x.v[place(i, x.v.length)] as Scalar),
  );
function oneHot(x: Arr, n: number): Arr {
  return array(
    "int32",
    [...x.s, n],
    x.v.flatMap((e) => Array.from({ length: n }, (_, k) => Number(Number(e) === k))),
  );
}

export const INDEXING: Ops = {
  gather: (x, dim, index) => gather(x, num(dim), arr(index)),
  takeAlongDim: (x, index, dim) => gather(x, num(dim), arr(index)),
  indexSelect: (x, dim, index) => {
    const at = axisOf(num(dim), x.s.length);
    const i = vectorOf(arr(index));
    return gatherBy(x, x.s.with(at, i.length), (p) =>
      p.with(at, place(i[p[at] as number] as number, x.s[at] as number)),
    );
  },
  take,
  embedding: (x, weight) => {
    const w = arr(weight);
    return gatherBy(w, [...x.s, w.s[1] as number], (p) => [
      Number(element(x, p.slice(0, -1))),
      p.at(-1) as number,
    ]);
  },
  get: (x, ...index) => {
    const { s, from } = plan(x, index);
    return gatherBy(x, s, from);
  },
  setitem: (x, index, value) => written(x, list(index), value),
  oneHot: (x, n) => oneHot(x, num(n)),
  scatter: (x, dim, index, src, o) => scatter(x, num(dim), arr(index), src, text(options(o).reduce, "last")),
  scatterAdd: (x, dim, index, src) => scatter(x, num(dim), arr(index), src, "add"),
  scatterReduce: (x, dim, index, src, how, o) =>
    scatter(x, num(dim), arr(index), src, text(how), options(o).includeSelf !== false),
  indexAdd: (x, dim, index, source, o) => {
    const by = options(o).alpha;
    return indexed(
      x,
      num(dim),
      arr(index),
      by === undefined ? arr(source) : mul(arr(source), num(by)),
      "add",
    );
  },
  indexCopy: (x, dim, index, source) => indexed(x, num(dim), arr(index), arr(source), "last"),
  indexFill: (x, dim, index, value) => {
    const at = axisOf(num(dim), x.s.length);
    const named = vectorOf(arr(index)).map((i) => place(i, x.s[at] as number));
    const v = [...indexes(x.s)].map((p) =>
      named.includes(p[at] as number) ? filler(x.d, value) : element(x, p),
    );
    return array(x.d, x.s, v);
  },
  put: (x, index, source, o) => {
    const to = arr(index).v.map((i, k): [number, Scalar] => [
      place(i, x.v.length),
      arr(source).v[k] as Scalar,
    ]);
    return scatterAll(x, to, flag(options(o).accumulate) ? "add" : "last");
  },
};
