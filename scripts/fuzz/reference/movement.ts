// Movement in the reference: every op says for each place of its result where the element comes from.

import type { Scalar } from "../language.ts";
import { arr, list, num, nums, type Op, type Ops, sizes, text, type Value } from "./args.ts";
import {
  type Arr,
  array,
  axisOf,
  broadcastTo,
  cast,
  element,
  gatherBy,
  indexes,
  sizeOf,
  Unsuitable,
  zeroOf,
} from "./array.ts";
import { castScalar, isFloat, promote } from "./types.ts";

export function reshape(x: Arr, wanted: readonly number[]): Arr {
  const known = wanted.filter((n) => n !== -1).reduce((a, b) => a * b, 1);
  const s = wanted.map((n) => (n === -1 ? sizeOf(x.s) / known : n));
  if (sizeOf(s) !== sizeOf(x.s)) throw new Unsuitable("reshape");
  return array(x.d, s, x.v);
}
export const permute = (x: Arr, order: readonly number[]): Arr =>
  gatherBy(
    x,
    order.map((k) => x.s[k] as number),
    (at) => x.s.map((_, i) => at[order.indexOf(i)] as number),
  );
const swap = (x: Arr, a: number, b: number): Arr => {
  const [i, j] = [axisOf(a, x.s.length), axisOf(b, x.s.length)];
  return permute(
    x,
    x.s.map((_, k) => (k === i ? j : k === j ? i : k)),
  );
};
/** Elements `start`, `start + step`, … along one dim. */
export function slice(x: Arr, at: number, start: number, step: number, count: number): Arr {
  return gatherBy(x, x.s.with(at, count), (p) => p.with(at, start + step * (p[at] as number)));
}
export function movedim(x: Arr, from: readonly number[], to: readonly number[]): Arr {
  const [a, b] = [from, to].map((dims) => dims.map((d) => axisOf(d, x.s.length))) as [number[], number[]];
  const rest = x.s.map((_, i) => i).filter((i) => !a.includes(i));
  return permute(
    x,
    x.s.map((_, i) => (b.includes(i) ? (a[b.indexOf(i)] as number) : (rest.shift() as number))),
  );
}
const mirrored = (i: number, n: number): number => (i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i);
const OUTSIDE: Readonly<Record<string, (i: number, n: number) => number>> = {
  reflect: mirrored,
  replicate: (i, n) => Math.min(Math.max(i, 0), n - 1),
  circular: (i, n) => ((i % n) + n) % n,
};
/** Pairs `[before, after]` for each dim. */
export function pad(x: Arr, amounts: readonly (readonly number[])[], mode = "constant", value = 0): Arr {
  const before = x.s.map((_, i) => amounts[i]?.[0] ?? 0);
  const s = x.s.map((n, i) => n + (before[i] as number) + (amounts[i]?.[1] ?? 0));
  if (s.some((n) => n < 0)) throw new Unsuitable("pad");
  const fill = isFloat(x.d)
    ? castScalar(x.d, value, "float64")
    : castScalar(x.d, BigInt(Math.trunc(value)), "int64");
  const place = OUTSIDE[mode];
  if (
    mode !== "constant" &&
    x.s.some(
      (n, i) => Math.max(before[i] as number, amounts[i]?.[1] ?? 0) >= n + (mode === "reflect" ? 0 : 1),
    )
  )
    throw new Unsuitable("pad: too much");
  return gatherBy(
    x,
    s,
    (at) => {
      const from = at.map((a, i) => a - (before[i] as number));
      if (place !== undefined) return from.map((a, i) => place(a, x.s[i] as number));
      return from.every((a, i) => a >= 0 && a < (x.s[i] as number)) ? from : undefined;
    },
    fill,
  );
}
export function cat(xs: readonly Arr[], dim: number): Arr {
  const d = xs.map((x) => x.d).reduce(promote);
  const [first] = xs as [Arr];
  const at = axisOf(dim, first.s.length);
  if (xs.some((x) => x.s.length !== first.s.length || x.s.some((n, i) => i !== at && n !== first.s[i])))
    throw new Unsuitable("cat");
  const parts = xs.map((x) => cast(x, d));
  const s = first.s.with(
    at,
    parts.reduce((n, x) => n + (x.s[at] as number), 0),
  );
  const v: Scalar[] = [];
  for (const place of indexes(s)) {
    let i = place[at] as number;
    let k = 0;
    while (i >= (parts[k]?.s[at] as number)) i -= parts[k++]?.s[at] as number;
    v.push(element(parts[k] as Arr, place.with(at, i)));
  }
  return array(d, s, v);
}
export const unsqueeze = (x: Arr, dim: number): Arr =>
  reshape(x, x.s.toSpliced(dim < 0 ? dim + x.s.length + 1 : dim, 0, 1));
function squeeze(x: Arr, dim: Value): Arr {
  const dims = dim === undefined ? x.s.map((_, i) => i) : nums(dim).map((d) => axisOf(d, x.s.length));
  return reshape(
    x,
    x.s.filter((n, i) => !(n === 1 && dims.includes(i))),
  );
}
const triangle =
  (keep: (i: number, j: number, k: number) => boolean): Op =>
  (x, k) => {
    if (x.s.length < 2) throw new Unsuitable("a matrix");
    return gatherBy(x, x.s, (at) =>
      keep(at.at(-2) as number, at.at(-1) as number, num(k, 0)) ? at : undefined,
    );
  };
function diagonal(x: Arr, offset: number): Arr {
  const [rows, columns] = x.s as [number, number];
  if (x.s.length < 2) throw new Unsuitable("a matrix");
  const n = Math.max(0, Math.min(rows - Math.max(-offset, 0), columns - Math.max(offset, 0)));
  return gatherBy(x, [...x.s.slice(2), n], (at) => {
    const i = at.at(-1) as number;
    return [i + Math.max(-offset, 0), i + Math.max(offset, 0), ...at.slice(0, -1)];
  });
}
function roll(x: Arr, shifts: readonly number[], dims: Value): Arr {
  if (dims === undefined) return reshape(roll(reshape(x, [-1]), shifts, [0]), x.s);
  return nums(dims).reduce((out, dim, k) => {
    const at = axisOf(dim, x.s.length);
    const n = x.s[at] as number;
    return gatherBy(out, out.s, (p) =>
      p.with(at, ((((p[at] as number) - (shifts[k] as number)) % n) + n) % n),
    );
  }, x);
}
function repeat(x: Arr, times: readonly number[]): Arr {
  const s = [...Array(times.length - x.s.length).fill(1), ...x.s];
  const full = reshape(x, s);
  return gatherBy(
    full,
    s.map((n, i) => n * (times[i] as number)),
    (at) => at.map((a, i) => a % (s[i] as number)),
  );
}
/** Parts of these sizes along a dim. */
function split(x: Arr, parts: readonly number[], dim: number): Arr[] {
  const at = axisOf(dim, x.s.length);
  let start = 0;
  return parts.map((n) => {
    start += n;
    return slice(x, at, start - n, 1, n);
  });
}
const flip = (x: Arr, dims: readonly number[]): Arr => {
  const at = dims.map((d) => axisOf(d, x.s.length));
  return gatherBy(x, x.s, (p) => p.map((a, i) => (at.includes(i) ? (x.s[i] as number) - 1 - a : a)));
};
function unfold(x: Arr, dim: number, size: number, step: number): Arr {
  const at = axisOf(dim, x.s.length);
  const n = Math.floor(((x.s[at] as number) - size) / step) + 1;
  if (n < 1) throw new Unsuitable("unfold");
  return gatherBy(x, [...x.s.with(at, n), size], (p) =>
    p.slice(0, -1).with(at, (p[at] as number) * step + (p.at(-1) as number)),
  );
}

export const MOVEMENT: Ops = {
  reshape: (x, ...s) => reshape(x, sizes(s)),
  permute: (x, ...order) =>
    permute(
      x,
      sizes(order).map((d) => axisOf(d, x.s.length)),
    ),
  transpose: (x, a, b) => swap(x, num(a, -2), num(b, -1)),
  swapaxes: (x, a, b) => swap(x, num(a), num(b)),
  movedim: (x, from, to) => movedim(x, nums(from), nums(to)),
  expand: (x, ...s) => {
    const wanted = sizes(s);
    return broadcastTo(
      x,
      wanted.map((n, i) => (n === -1 ? (x.s[i - wanted.length + x.s.length] as number) : n)),
    );
  },
  flatten: (x, a, b) => {
    const [i, j] = [axisOf(num(a, 0), x.s.length), axisOf(num(b, -1), x.s.length)];
    return reshape(x, [...x.s.slice(0, i), -1, ...x.s.slice(j + 1)]);
  },
  unflatten: (x, dim, s) => reshape(x, x.s.toSpliced(axisOf(num(dim), x.s.length), 1, ...nums(s))),
  unsqueeze: (x, dim) => unsqueeze(x, num(dim)),
  squeeze,
  shrink: (x, cuts) =>
    list(cuts).reduce<Arr>((out, cut, i) => {
      if (cut === null) return out;
      const [a, b] = nums(cut) as [number, number];
      return slice(out, i, a, 1, b - a);
    }, x),
  pad: (x, amounts, mode, value) =>
    pad(
      x,
      list(amounts).map((p) => nums(p)),
      text(mode, "constant"),
      num(value, 0),
    ),
  flip: (x, dims) => flip(x, nums(dims)),
  stride: (x, ...steps) =>
    sizes(steps).reduce((out, by, i) => {
      const n = x.s[i] as number;
      return slice(out, i, by > 0 ? 0 : n - 1, by, Math.ceil(n / Math.abs(by)));
    }, x),
  cat: (x, others, dim) => cat([x, ...list(others).map(arr)], num(dim, 0)),
  stack: (x, others, dim) => {
    const at = num(dim, 0) < 0 ? num(dim) + x.s.length + 1 : num(dim, 0);
    return cat(
      [x, ...list(others).map(arr)].map((t) => unsqueeze(t, at)),
      at,
    );
  },
  repeat: (x, ...times) => repeat(x, sizes(times)),
  roll: (x, shifts, dims) => roll(x, nums(shifts), dims),
  tril: triangle((i, j, k) => j - i <= k),
  triu: triangle((i, j, k) => j - i >= k),
  diagonal: (x, offset) => diagonal(x, num(offset, 0)),
  unfold: (x, dim, size, step) => unfold(x, num(dim), num(size), num(step)),
  narrow: (x, dim, start, length) => slice(x, axisOf(num(dim), x.s.length), num(start), 1, num(length)),
  select: (x, dim, index) => {
    const at = axisOf(num(dim), x.s.length);
    const i = num(index) < 0 ? num(index) + (x.s[at] as number) : num(index);
    const out = slice(x, at, i, 1, 1);
    return reshape(out, x.s.toSpliced(at, 1));
  },
  split: (x, parts, dim) => split(x, nums(parts), num(dim, 0)),
  rot90: (x, k) => {
    const turns = ((num(k, 1) % 4) + 4) % 4;
    return Array.from({ length: turns }).reduce<Arr>((out) => flip(swap(out, 0, 1), [0]), x);
  },
  repeatInterleave: (x, n, dim) => {
    const at = axisOf(num(dim), x.s.length);
    return gatherBy(x, x.s.with(at, (x.s[at] as number) * num(n)), (p) =>
      p.with(at, Math.floor((p[at] as number) / num(n))),
    );
  },
  contiguous: (x) => x,
  clone: (x) => x,
  detach: (x) => x,
  maskedFill: (x, mask, value) => {
    const m = broadcastTo(arr(mask), x.s);
    const filler = castScalar(
      x.d,
      isFloat(x.d) ? num(value) : BigInt(num(value)),
      isFloat(x.d) ? "float64" : "int64",
    );
    return array(
      x.d,
      x.s,
      x.v.map((e, i) => (m.v[i] ? filler : e)),
    );
  },
  zerosLike: (x) =>
    array(
      x.d,
      x.s,
      x.v.map(() => zeroOf(x.d)),
    ),
};
