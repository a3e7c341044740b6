// Sums of products in the reference: einsum by definition, the products that are special cases of it, and
// convolution and pooling as loops over windows.

import type { Scalar, TypeName } from "../language.ts";
import { arr, flag, num, nums, type Op, type Ops, options, text, type Value } from "./args.ts";
import { type Arr, array, cast, element, fl, flatOf, indexes, sizeOf, sumUp, Unsuitable } from "./array.ts";
import { add, mapFloat } from "./elementwise.ts";
import { reshape, unsqueeze } from "./movement.ts";
import { isFloat, promote, sumType, wrapInt } from "./types.ts";

/** The sum of terms in a type: integers wrap, floats round. */
const total = (d: TypeName, terms: readonly Scalar[]): Scalar =>
  isFloat(d)
    ? sumUp(d, terms as number[])
    : wrapInt(
        d,
        terms.reduce<bigint>((a, b) => a + BigInt(b), 0n),
      );
/**
 * A product on its way into a sum: narrow floats multiply in float32. With more than two factors, the
 * product of the first two may be stored in the type, and so be rounded where the whole would not be.
 */
const times = (d: TypeName, factors: readonly Scalar[]): Scalar =>
  isFloat(d)
    ? (factors as number[]).reduce(
        (a, b, k) => (k < 2 ? fl(d === "float64" ? d : "float32", a * b) : fl(d, a * b, 2)),
        1,
      )
    : factors.reduce<bigint>((a, b) => a * BigInt(b), 1n);

export function einsum(formula: string, xs: readonly Arr[]): Arr {
  const [left, out] = formula.split("->") as [string, string];
  const labels = left.split(",");
  const size = new Map<string, number>();
  labels.forEach((names, k) => {
    [...names].forEach((name, i) => {
      const n = xs[k]?.s[i] as number;
      if ((size.get(name) ?? n) !== n) throw new Unsuitable("einsum: sizes");
      size.set(name, n);
    });
  });
  const summed = [...size.keys()].filter((name) => !out.includes(name));
  const common = xs.map((x) => x.d).reduce(promote);
  const d = summed.length > 0 ? sumType(common) : common;
  const operands = xs.map((x) => cast(x, d));
  const s = [...out].map((name) => size.get(name) as number);
  const v: Scalar[] = [];
  for (const at of indexes(s)) {
    const terms: Scalar[] = [];
    for (const inner of indexes(summed.map((name) => size.get(name) as number))) {
      const where = (name: string): number =>
        (out.includes(name) ? at[out.indexOf(name)] : inner[summed.indexOf(name)]) as number;
      terms.push(
        times(
          d,
          operands.map((x, k) => element(x, [...(labels[k] as string)].map(where))),
        ),
      );
    }
    v.push(total(d, terms));
  }
  return array(d, s, v);
}
const LETTERS = "abcdefgh";
/** numpy.matmul: vectors, matrices, and batches that broadcast. */
export function matmul(x: Arr, y: Arr): Arr {
  const [a, b] = [x.s.length === 1 ? unsqueeze(x, 0) : x, y.s.length === 1 ? unsqueeze(y, 1) : y];
  const front = LETTERS.slice(0, Math.max(a.s.length, b.s.length) - 2);
  const batch = (t: Arr): string => front.slice(front.length - (t.s.length - 2));
  const same = [...batch(a)].every((n, i) => !batch(b).includes(n) || a.s[i] === b.s[batch(b).indexOf(n)]);
  if (!same) return spread(a, b);
  const out = einsum(`${batch(a)}ik,${batch(b)}kj->${front}ij`, [a, b]);
  const dropped = out.s.filter(
    (_, i) => !(x.s.length === 1 && i === out.s.length - 2) && !(y.s.length === 1 && i === out.s.length - 1),
  );
  return reshape(out, dropped);
}
/** Batches where a size of 1 meets another one: the 1 is left out of its formula. */
function spread(a: Arr, b: Arr): Arr {
  const ndim = Math.max(a.s.length, b.s.length);
  const front = LETTERS.slice(0, ndim - 2);
  const pick = (t: Arr): [string, Arr] => {
    const own = front.slice(front.length - (t.s.length - 2));
    const kept = [...own].filter((_, i) => t.s[i] !== 1).join("");
    return [kept, reshape(t, [...t.s.slice(0, -2).filter((n) => n !== 1), ...t.s.slice(-2)])];
  };
  const [[p, x], [q, y]] = [pick(a), pick(b)];
  const used = [...front].filter((n) => p.includes(n) || q.includes(n)).join("");
  const out = einsum(`${p}ik,${q}kj->${used}ij`, [x, y]);
  const at = (t: Arr, i: number): number => t.s[i - ndim + t.s.length] ?? 1;
  return reshape(out, [...[...front].map((_, i) => Math.max(at(a, i), at(b, i))), ...out.s.slice(-2)]);
}

// ---- windows ----

const perDim = (x: Value, dims: number, otherwise: number): number[] => {
  if (x === undefined || x === null) return Array(dims).fill(otherwise);
  return typeof x === "number" ? Array(dims).fill(x) : nums(x);
};
interface Frame {
  readonly kernel: readonly number[];
  readonly stride: readonly number[];
  readonly padding: readonly number[];
  readonly dilation: readonly number[];
}
const frameOf = (kernel: readonly number[], o: Readonly<Record<string, Value>>, stride: Value): Frame => ({
  kernel,
  stride: perDim(stride ?? undefined, kernel.length, 1),
  padding: perDim(o.padding, kernel.length, 0),
  dilation: perDim(o.dilation, kernel.length, 1),
});
/**
 * How many places the window has along each dim. With `up` a window may start inside and hang over the end.
 */
function placesOf(spatial: readonly number[], f: Frame, up = false): number[] {
  return spatial.map((n, i) => {
    const [k, s, p, d] = [f.kernel, f.stride, f.padding, f.dilation].map((l) => l[i] as number) as [
      number,
      number,
      number,
      number,
    ];
    const room = n + 2 * p - d * (k - 1) - 1;
    if (room < 0) throw new Unsuitable("the window does not fit");
    const count = (up ? Math.ceil(room / s) : Math.floor(room / s)) + 1;
    return up && (count - 1) * s >= n + p ? count - 1 : count;
  });
}
/** The place in the input of tap `tap` of the window at `at`. */
const tapAt = (f: Frame, at: readonly number[], tap: readonly number[]): number[] =>
  at.map(
    (a, i) =>
      a * (f.stride[i] as number) - (f.padding[i] as number) + (tap[i] as number) * (f.dilation[i] as number),
  );
const inside = (spatial: readonly number[], at: readonly number[]): boolean =>
  at.every((a, i) => a >= 0 && a < (spatial[i] as number));

/** x [n, in, ...], w [out, in / groups, ...kernel] */
function conv(x: Arr, w: Arr, bias: Value, o: Readonly<Record<string, Value>>): Arr {
  const d = promote(x.d, w.d);
  const [n, , ...spatial] = x.s as [number, number, ...number[]];
  const [out, per, ...kernel] = w.s as [number, number, ...number[]];
  const groups = num(o.groups, 1);
  if (per * groups !== x.s[1] || out % groups !== 0) throw new Unsuitable("conv: channels");
  const f = frameOf(kernel, o, o.stride);
  const s = [n, out, ...placesOf(spatial, f)];
  const v: Scalar[] = [];
  for (const [b, c, ...at] of indexes(s) as Iterable<[number, number, ...number[]]>) {
    const terms: Scalar[] = [];
    for (const [i, ...tap] of indexes([per, ...kernel]) as Iterable<[number, ...number[]]>) {
      const place = tapAt(f, at, tap);
      if (!inside(spatial, place)) continue;
      const from = Math.floor(c / (out / groups)) * per + i;
      terms.push(times(d, [element(x, [b, from, ...place]), element(w, [c, i, ...tap])]));
    }
    v.push(total(d, terms));
  }
  return withBias(array(d, s, v), bias);
}
const withBias = (x: Arr, bias: Value): Arr =>
  bias === undefined || bias === null ? x : add(x, reshape(arr(bias), [-1, ...x.s.slice(2).map(() => 1)]));
/** x [n, in, ...], w [in, out / groups, ...kernel]: each element adds a window to the result. */
function convTranspose(x: Arr, w: Arr, bias: Value, o: Readonly<Record<string, Value>>): Arr {
  const d = promote(x.d, w.d);
  const [n, inner, ...spatial] = x.s as [number, number, ...number[]];
  const [, per, ...kernel] = w.s as [number, number, ...number[]];
  const groups = num(o.groups, 1);
  if (w.s[0] !== inner || inner % groups !== 0) throw new Unsuitable("convTranspose: channels");
  const f = frameOf(kernel, o, o.stride);
  const more = perDim(o.outputPadding, kernel.length, 0);
  const size = spatial.map((m, i) => {
    const [k, s, p, e] = [f.kernel, f.stride, f.padding, f.dilation].map((l) => l[i] as number) as [
      number,
      number,
      number,
      number,
    ];
    return (m - 1) * s - 2 * p + e * (k - 1) + (more[i] as number) + 1;
  });
  if (size.some((m) => m < 1)) throw new Unsuitable("convTranspose: nothing left");
  const s = [n, per * groups, ...size];
  const terms: Scalar[][] = Array.from({ length: sizeOf(s) }, () => []);
  for (const [b, i, ...at] of indexes(x.s) as Iterable<[number, number, ...number[]]>) {
    for (const [c, ...tap] of indexes([per, ...kernel]) as Iterable<[number, ...number[]]>) {
      const place = tapAt(f, at, tap);
      if (!inside(size, place)) continue;
      const to = Math.floor(i / (inner / groups)) * per + c;
      const product = times(d, [element(x, [b, i, ...at]), element(w, [i, c, ...tap])]);
      (terms[flatOf(s, [b, to, ...place])] as Scalar[]).push(product);
    }
  }
  return withBias(
    array(
      d,
      s,
      terms.map((t) => total(d, t)),
    ),
    bias,
  );
}
/**
 * The elements of each window over the last `dims` dims, with their numbers in the flattened spatial dims.
 */
function windows(
  x: Arr,
  dims: number,
  f: Frame,
  up: boolean,
): { s: number[]; rows: { v: Scalar[]; at: number[]; all: number }[] } {
  const front = x.s.slice(0, -dims);
  const spatial = x.s.slice(-dims);
  const places = placesOf(spatial, f, up);
  const s = [...front, ...places];
  const rows = [...indexes(s)].map((place) => {
    const [v, at]: [Scalar[], number[]] = [[], []];
    let all = 0;
    for (const tap of indexes(f.kernel)) {
      const p = tapAt(f, place.slice(-dims), tap);
      // with ceilMode, what hangs over the padding does not count
      if (p.every((a, i) => a < (spatial[i] as number) + (f.padding[i] as number))) all++;
      if (!inside(spatial, p)) continue;
      v.push(element(x, [...place.slice(0, -dims), ...p]));
      at.push(flatOf(spatial, p));
    }
    if (v.length === 0) throw new Unsuitable("an empty window");
    return { v, at, all };
  });
  return { s, rows };
}
const poolFrame = (dims: number, kernel: Value, o: Readonly<Record<string, Value>>): Frame => {
  const k = perDim(kernel, dims, 1);
  return frameOf(k, o, o.stride ?? k);
};
const avgPool =
  (dims: number): Op =>
  (x, kernel, given) => {
    const o = options(given);
    const { s, rows } = windows(x, dims, poolFrame(dims, kernel, o), flag(o.ceilMode));
    const d = isFloat(x.d) ? x.d : "float32";
    return array(
      d,
      s,
      rows.map(({ v, all }) => average(d, v, o.countIncludePad === false ? v.length : all)),
    );
  };
const maxPool =
  (dims: number, both: boolean): Op =>
  (x, kernel, given) => {
    const o = options(given);
    const { s, rows } = windows(x, dims, poolFrame(dims, kernel, o), flag(o.ceilMode));
    const best = rows.map(({ v }) => v.reduce<number>((b, e, i) => (e > (v[b] as Scalar) ? i : b), 0));
    const values = array(
      x.d,
      s,
      rows.map(({ v }, i) => v[best[i] as number] as Scalar),
    );
    return both
      ? [
          values,
          array(
            "int32",
            s,
            rows.map(({ at }, i) => at[best[i] as number] as number),
          ),
        ]
      : values;
  };
/** The sum over n. A device may divide before it adds. */
const average = (d: TypeName, v: readonly Scalar[], n: number): number =>
  fl(d, sumUp(d === "float64" ? d : "float32", v.map(Number)) / n, 2);
const adaptiveAvg =
  (dims: number): Op =>
  (x, size) => {
    const spatial = x.s.slice(-dims);
    const wanted = perDim(size, dims, 1);
    const s = [...x.s.slice(0, -dims), ...wanted];
    const v = [...indexes(s)].map((place) => {
      const from = place
        .slice(-dims)
        .map((a, i) => Math.floor((a * (spatial[i] as number)) / (wanted[i] as number)));
      const to = place
        .slice(-dims)
        .map((a, i) => Math.ceil(((a + 1) * (spatial[i] as number)) / (wanted[i] as number)));
      const box = from.map((a, i) => (to[i] as number) - a);
      const seen = [...indexes(box)].map((p) =>
        Number(element(x, [...place.slice(0, -dims), ...p.map((a, i) => a + (from[i] as number))])),
      );
      return average(x.d, seen, seen.length);
    });
    return array(x.d, s, v);
  };
const scales = (o: Value): { alpha: number; beta: number } => ({
  alpha: num(options(o).alpha, 1),
  beta: num(options(o).beta, 1),
});
const scaled = (x: Arr, by: number): Arr => (by === 1 ? x : mapFloat(x, (e) => e * by));

export const PRODUCTS: Ops = {
  einsum: (first, formula, ...rest) => einsum(text(formula), [first, ...rest.map(arr)]),
  matmul: (x, y) => matmul(x, arr(y)),
  dot: (x, y) => matmul(x, arr(y)),
  mm: (x, y) => einsum("ik,kj->ij", [x, arr(y)]),
  bmm: (x, y) => einsum("bik,bkj->bij", [x, arr(y)]),
  mv: (x, y) => einsum("ik,k->i", [x, arr(y)]),
  outer: (x, y) => einsum("i,j->ij", [x, arr(y)]),
  inner: (x, y) => einsum("ik,jk->ij", [x, arr(y)]),
  linear: (x, w, bias) => {
    const out = matmul(x, array(arr(w).d, [...arr(w).s].reverse(), transposed(arr(w))));
    return bias === undefined || bias === null ? out : add(out, arr(bias));
  },
  addmm: (x, a, b, o) => add(scaled(x, scales(o).beta), scaled(matmul(arr(a), arr(b)), scales(o).alpha)),
  baddbmm: (x, a, b, o) => add(scaled(x, scales(o).beta), scaled(matmul(arr(a), arr(b)), scales(o).alpha)),
  conv1d: (x, w, bias, o) => conv(x, arr(w), bias, options(o)),
  conv2d: (x, w, bias, o) => conv(x, arr(w), bias, options(o)),
  convTranspose1d: (x, w, bias, o) => convTranspose(x, arr(w), bias, options(o)),
  convTranspose2d: (x, w, bias, o) => convTranspose(x, arr(w), bias, options(o)),
  avgPool1d: avgPool(1),
  avgPool2d: avgPool(2),
  maxPool1d: maxPool(1, false),
  maxPool2d: maxPool(2, false),
  maxPool1dWithIndices: maxPool(1, true),
  maxPool2dWithIndices: maxPool(2, true),
  adaptiveAvgPool1d: adaptiveAvg(1),
  adaptiveAvgPool2d: adaptiveAvg(2),
};
const transposed = (x: Arr): Scalar[] =>
  [...indexes([x.s[1] as number, x.s[0] as number])].map(([j, i]) => element(x, [i as number, j as number]));
