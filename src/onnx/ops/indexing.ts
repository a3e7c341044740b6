// Ops that pick and place elements by index, sort, and search. What an index of the host decides is done on
// the host; indices on a device may count from the end.

import { dtypes, type Value } from "../../dtype.ts";
import { prod, range } from "../../helpers.ts";
import { decided } from "../../shape/guards.ts";
import { add, and, ge, lt } from "../../shape/symbolic.ts";
import { Tensor } from "../../tensor/tensor.ts";
import type { ScatterReduce } from "../../tensor/types.ts";
import { TYPES } from "../elements.ts";
import { type HostArray, TensorValue } from "../values.ts";
import { bool, cast, cut, dimOf, dims, hostTensor, int64, positive, sizeOf, sizes, typed } from "./common.ts";
import {
  type Call,
  flag,
  int,
  type OpTable,
  type Output,
  op,
  string,
  type Versions,
  versions,
} from "./op.ts";
import { onTexts } from "./texts.ts";

const gather = op({ axis: int(0) }, (c) => {
  const x = c.t(0);
  const axis = c.axis(c.attr.axis, x.ndim);
  const index = c.value(1);
  const size = dimOf(x, axis);
  if (index.isKnown && index.sources.size === 0 && index.size === 1) {
    // one place that is known is a view
    const at = Number(index.host.data[0]);
    const start = at < 0 ? add(size, at) : at;
    if (decided(and(ge(start, 0), lt(start, size))) !== 1)
      c.fail(`index ${at} is not one of ${size} elements`);
    const one = cut(
      x,
      dims(x).map((count, d) => (d === axis ? { start, step: 1, count: 1 } : { start: 0, step: 1, count })),
    );
    return one.reshape(dims(x).toSpliced(axis, 1, ...index.dims));
  }
  const shape = dims(x).toSpliced(axis, 1, ...index.dims);
  if (shape.includes(0)) return Tensor.zeros(shape, { dtype: x.dtype, ...c.on });
  return x.indexSelect(axis, positive(index.tensor, size).reshape([-1])).reshape(shape);
});

const gatherElements = op({ axis: int(0) }, (c) => {
  const x = c.t(0);
  const axis = c.axis(c.attr.axis, x.ndim);
  return x.gather(axis, positive(c.t(1), dimOf(x, axis)));
});

/** Tuples of indices as places in the dims that they name, which are one. */
function flatten(tuples: Tensor, dims: readonly number[]): Tensor {
  const last = tuples.ndim - 1;
  return dims.reduce<Tensor>(
    (sum, size, i) => {
      const at = positive(tuples.select(last, i), size);
      return sum.mul(size).add(at);
    },
    Tensor.zeros(sizes(tuples).slice(0, last), { dtype: dtypes.int32, device: tuples.device }),
  );
}

const gatherND = op({ batch_dims: int(0) }, (c) => {
  const [x, index] = [c.t(0), c.t(1)];
  const b = c.attr.batch_dims;
  const k = sizeOf(index, -1);
  const batch = prod(sizes(x).slice(0, b));
  const dims = sizes(x).slice(b, b + k);
  const rest = sizes(x).slice(b + k);
  const tuples = index.reshape([batch, -1, k]);
  const rows = Tensor.arange(batch, { dtype: dtypes.int32, device: x.device })
    .mul(prod(dims))
    .reshape([batch, 1]);
  const at = flatten(tuples, dims).add(rows).reshape([-1]);
  const shape = [...sizes(index).slice(0, -1), ...rest];
  return x
    .reshape([batch * prod(dims), prod(rest)])
    .indexSelect(0, at)
    .reshape(shape);
});

const REDUCTIONS: Readonly<Record<string, ScatterReduce | undefined>> = {
  none: undefined,
  add: "sum",
  mul: "prod",
  min: "amin",
  max: "amax",
};
function scatterAlong(
  c: Call,
  x: Tensor,
  dim: number,
  at: Tensor,
  updates: Tensor,
  reduction: string,
): Tensor {
  if (!Object.hasOwn(REDUCTIONS, reduction))
    c.fail(`reduction is "${reduction}", expected one of ${Object.keys(REDUCTIONS).join(", ")}`);
  const how = REDUCTIONS[reduction];
  if (prod(sizes(at)) === 0) return x;
  return cast(
    how === undefined ? x.scatter(dim, at, updates) : x.scatterReduce(dim, at, updates, how),
    x.dtype,
  );
}
const scatterElements = op({ axis: int(0), reduction: string("none") }, (c) => {
  const x = c.t(0);
  const axis = c.axis(c.attr.axis, x.ndim);
  return scatterAlong(c, x, axis, positive(c.t(1), dimOf(x, axis)), c.t(2), c.attr.reduction);
});
const scatterND = op({ reduction: string("none") }, (c) => {
  const [x, index, updates] = [c.t(0), c.t(1), c.t(2)];
  const k = sizeOf(index, -1);
  const [dims, rest] = [sizes(x).slice(0, k), sizes(x).slice(k)];
  const at = flatten(index.reshape([-1, k]), dims);
  const n = sizeOf(at, 0);
  const rows = x.reshape([prod(dims), prod(rest)]);
  const index2 = at.reshape([n, 1]).expand([n, prod(rest)]);
  const given = updates.reshape([n, prod(rest)]);
  return scatterAlong(c, rows, 0, index2, given, c.attr.reduction).reshape(sizes(x));
});

/** Each batch's update from its place on; past the end it goes on at the start, if circular. */
const tensorScatter = op({ axis: int(-2), mode: string("linear") }, (c) => {
  const [cache, update] = [c.t(0), c.t(1)];
  const axis = c.axis(c.attr.axis, cache.ndim);
  const [size, n] = [sizeOf(cache, axis), sizeOf(update, axis)];
  const batch = sizeOf(cache, 0);
  const start = c.maybe(2) ?? Tensor.zeros([batch], { dtype: dtypes.int32, ...c.on });
  const along = (x: Tensor, d: number): Tensor => x.reshape(range(cache.ndim).map((i) => (i === d ? -1 : 1)));
  const places = along(Tensor.arange(size, { dtype: dtypes.int32, ...c.on }), axis);
  const from = places.sub(along(cast(start, dtypes.int32), 0));
  const source = c.attr.mode === "circular" ? from.remainder(size) : from;
  const isNew = source.ge(0).bitwiseAnd(source.lt(n));
  const at = source
    .maximum(0)
    .minimum(n - 1)
    .expand(sizes(cache));
  return isNew.where(update.gather(axis, at), cache);
});

// ---- what the elements decide ----

const nonZero = op({}, async (c) => {
  const { data, shape } = await c.host(0);
  const found = range(data.length).filter((i) => Number(data[i]) !== 0);
  const columns = shape.map((size, d) => {
    const inner = prod(shape.slice(d + 1));
    return found.map((i) => BigInt(Math.floor(i / inner) % size));
  });
  return c.known(TYPES.int64, [shape.length, found.length], columns.flat());
});

const compress = op({ axis: int() }, async (c) => {
  const { axis } = c.attr;
  const x = axis === undefined ? c.t(0).reshape([-1]) : c.t(0);
  const d = c.axis(axis ?? 0, x.ndim);
  const { data } = await c.host(1);
  const at = range(Math.min(data.length, sizeOf(x, d))).filter((i) => Number(data[i]) !== 0);
  if (at.length === 0) return Tensor.zeros(sizes(x).with(d, 0), { dtype: x.dtype, ...c.on });
  return x.indexSelect(d, hostTensor(c, at, [at.length], dtypes.int32));
});

/**
 * The different rows along an axis: where each is first, which one each row is, and how often each occurs.
 */
const unique = op({ axis: int(), sorted: int(1) }, async (c) => {
  const value = c.value(0);
  const host = value.isText ? { shape: value.shape, data: value.texts } : await c.host(0);
  const shape = c.attr.axis === undefined ? [prod(host.shape)] : host.shape;
  const axis = c.axis(c.attr.axis ?? 0, shape.length);
  const size = shape[axis] as number;
  const [outer, inner] = [prod(shape.slice(0, axis)), prod(shape.slice(axis + 1))];
  const row = (i: number): (Value | string)[] =>
    range(outer).flatMap((o) =>
      range(inner).map((k) => host.data[(o * size + i) * inner + k] as Value | string),
    );
  const rows = range(size).map(row);
  const byKey = new Map<string, number[]>();
  rows.forEach((r, i) => {
    const key = r.map((x) => (Object.is(x, -0) ? "0" : String(x))).join("\0");
    const list = byKey.get(key);
    if (list === undefined) byKey.set(key, [i]);
    else list.push(i);
  });
  const groups = [...byKey.values()];
  if (c.attr.sorted)
    groups.sort(([a], [b]) => compareRows(rows[a as number] as Value[], rows[b as number] as Value[]));
  const first = groups.map((g) => g[0] as number);
  const inverse = new Array<bigint>(size).fill(0n);
  groups.forEach((g, k) => {
    for (const i of g) inverse[i] = BigInt(k);
  });
  const list = (xs: readonly bigint[]): TensorValue => c.known(TYPES.int64, [xs.length], xs);
  const picked = range(outer).flatMap((o) =>
    first.flatMap((i) => rows[i]?.slice(o * inner, (o + 1) * inner) ?? []),
  );
  const newShape = shape.with(axis, first.length);
  const y = value.isText
    ? TensorValue.ofTexts({ shape: newShape, data: picked as string[] }, c.sources)
    : c.known(value.type, newShape, picked as Value[]);
  return [y, list(first.map(BigInt)), list(inverse), list(groups.map((g) => BigInt(g.length)))];
});
function compareRows(a: readonly (Value | string)[], b: readonly (Value | string)[]): number {
  const i = a.findIndex((x, k) => x !== b[k]);
  if (i < 0) return 0;
  const [x, y] = [a[i] as Value, b[i] as Value];
  // NaN comes last
  if (Number.isNaN(x)) return 1;
  if (Number.isNaN(y)) return -1;
  return x < y ? -1 : 1;
}

function topK(c: Call<{ axis: number; largest?: boolean }>, k: number): readonly Output[] {
  const x = c.t(0);
  const axis = c.axis(c.attr.axis, x.ndim);
  if (k < 0 || k > sizeOf(x, axis)) c.fail(`k is ${k}, dim ${axis} has ${x.shape[axis]} elements`);
  if (k === 0) {
    const shape = sizes(x).with(axis, 0);
    const none = (dtype: typeof x.dtype): Tensor => Tensor.zeros(shape, { dtype, ...c.on });
    return [none(x.dtype), none(dtypes.int64)];
  }
  const [values, indices] = x.topk(k, axis, c.attr.largest ?? true);
  return [values, typed(int64(indices), TYPES.int64)];
}

const reverseSequence = op({ batch_axis: int(1), time_axis: int(0) }, (c) => {
  const x = c.t(0);
  const [batch, time] = [c.axis(c.attr.batch_axis, x.ndim), c.axis(c.attr.time_axis, x.ndim)];
  return reversed(x, c.t(1), batch, time);
});
/** The first `lengths` elements of each sequence in turn, the rest as it was. */
export function reversed(x: Tensor, lengths: Tensor, batch: number, time: number): Tensor {
  const along = (t: Tensor, d: number): Tensor => t.reshape(range(x.ndim).map((i) => (i === d ? -1 : 1)));
  const at = along(Tensor.arange(sizeOf(x, time), { dtype: dtypes.int32, device: x.device }), time);
  const n = along(cast(lengths, dtypes.int32), batch);
  const from = at.lt(n).where(n.sub(1).sub(at), at);
  return x.gather(time, from.expand(sizes(x)));
}

const selected = (host: HostArray): readonly number[] => Array.from(host.data, Number);

/** Boxes that overlap a better one of their class too much are left out. */
const nonMaxSuppression = op({ center_point_box: flag(false) }, async (c) => {
  const boxes = await c.host(0);
  const scores = await c.host(1);
  const most = c.has(2) ? await c.scalar(2) : 0;
  const overlap = c.has(3) ? await c.scalar(3) : 0;
  const least = c.has(4) ? await c.scalar(4) : -Infinity;
  const [batches, classes, n] = scores.shape as [number, number, number];
  const corners = corner(selected(boxes), c.attr.center_point_box);
  const out: bigint[] = [];
  for (let b = 0; b < batches; b++) {
    for (let k = 0; k < classes; k++) {
      const score = (i: number): number => Number(scores.data[(b * classes + k) * n + i]);
      const order = range(n)
        .filter((i) => score(i) > least)
        .sort((i, j) => score(j) - score(i) || i - j);
      const kept: number[] = [];
      for (const i of order) {
        if (kept.length >= most) break;
        if (kept.every((j) => intersection(corners, b * n + i, b * n + j) <= overlap)) kept.push(i);
      }
      for (const i of kept) out.push(BigInt(b), BigInt(k), BigInt(i));
    }
  }
  return c.known(TYPES.int64, [out.length / 3, 3], out);
});
type Corners = readonly (readonly [y1: number, x1: number, y2: number, x2: number])[];
function corner(flat: readonly number[], isCenter: boolean): Corners {
  return range(flat.length / 4).map((i) => {
    const [a, b, p, q] = flat.slice(4 * i, 4 * i + 4) as [number, number, number, number];
    if (isCenter) return [b - q / 2, a - p / 2, b + q / 2, a + p / 2];
    return [Math.min(a, p), Math.min(b, q), Math.max(a, p), Math.max(b, q)];
  });
}
/** Of the area of both, the part that is shared. */
function intersection(corners: Corners, i: number, j: number): number {
  const [a, b] = [corners[i] as Corners[number], corners[j] as Corners[number]];
  const h = Math.min(a[2], b[2]) - Math.max(a[0], b[0]);
  const w = Math.min(a[3], b[3]) - Math.max(a[1], b[1]);
  if (h <= 0 || w <= 0) return 0;
  const area = ([y1, x1, y2, x2]: Corners[number]): number => (y2 - y1) * (x2 - x1);
  return (h * w) / (area(a) + area(b) - h * w);
}

const texts = (table: Readonly<Record<string, Versions>>): OpTable =>
  Object.fromEntries(Object.entries(table).map(([name, list]) => [name, onTexts(list)]));

export const indexing: OpTable = {
  ...texts({
    Gather: gather,
    GatherElements: gatherElements,
    GatherND: gatherND,
    Scatter: scatterElements,
    ScatterElements: scatterElements,
    ScatterND: scatterND,
    TensorScatter: tensorScatter,
    Compress: compress,
    ReverseSequence: reverseSequence,
    Where: op({}, (c) => bool(c.t(0)).where(c.t(1), c.t(2))),
  }),
  NonZero: nonZero,
  Unique: unique,
  TopK: versions(
    op({ axis: int(-1), k: int.required }, (c) => topK(c, c.attr.k)),
    op(
      { axis: int(-1), largest: flag(true), sorted: flag(true) },
      async (c) => topK(c, await c.scalar(1)),
      10,
    ),
  ),
  NonMaxSuppression: nonMaxSuppression,
};
