// Order: sort, argsort, topk, kthvalue, median, quantile. NaN counts as the largest; equal elements keep
// their order. Elements become integers that compare alike; short rows are ranked by counting smaller ones,
// long rows go through a bitonic network. For the first few of a row, selection.ts looks only at the blocks
// that can have one. The indices are found first, without a gradient; the values are then loaded from there,
// and that is differentiable.

import { bounds, dtypes } from "../../dtype.ts";
import { ArgumentError, ShapeError } from "../../errors.ts";
import { range } from "../../helpers.ts";
import { LazyBuffer } from "../../lazy/lazybuffer.ts";
import { bitcast, cast, contiguous, counting, detach, TensorHandle, wrap } from "../core.ts";
import { fullLike } from "../creation/creation.ts";
import {
  add,
  bitwiseAnd,
  bitwiseOr,
  bitwiseXor,
  ceil,
  div,
  eq,
  floor,
  gt,
  idiv,
  isNarrow,
  lt,
  maximum,
  mul,
  rshift,
  sub,
  toFloat,
  where,
  zero,
} from "../math/arithmetic.ts";
import { lerp } from "../math/further.ts";
import { bitsOf, isnan, round, rsub } from "../math/rounding.ts";
import { movedim } from "../movement/arrange.ts";
import { cat } from "../movement/join.ts";
import {
  axisOf,
  expand,
  flatten,
  flip,
  reduceSum,
  reshape,
  shrink,
  transpose,
  unsqueeze,
} from "../movement/views.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import { drop, max, min, requireElements, sum, turned } from "./reduce.ts";
import { atRanks, firstPlaces, lengthened, ranks, selectsCheaply, takeLast } from "./selection.ts";
import { part } from "./totals.ts";

/** Rows of this many elements, or this many comparisons in all, are ranked by counting: three kernels. */
const COUNT_ROW = 256;
const COUNT_ALL = 2 ** 25;

export type Interpolation = "linear" | "lower" | "higher" | "midpoint" | "nearest";
export interface QuantileOptions {
  readonly interpolation?: Interpolation;
}

// ---- indices ----

/** The inverse of `takeLast`: the elements added up at the indices of the last dim, which gets size `n`. */
export function placeLast(self: Tensor, index: Tensor, n: number): Tensor {
  const full = [...self.shape.slice(0, -1), n, self.shape.at(-1) as number];
  const there = expand(unsqueeze(counting(self, n), -1), full);
  const values = expand(unsqueeze(self, -2), full);
  const chosen = eq(expand(unsqueeze(index, -2), full), there);
  return reshape(reduceSum(where(chosen, values, zero(values)), [full.length - 1]), full.slice(0, -1));
}

/** Integers that compare as the elements do, NaN as the largest. */
function keysOf(self: Tensor, descending: boolean): Tensor {
  const x = isNarrow(self.dtype) ? detach(cast(self, dtypes.float32)) : detach(self);
  if (!x.dtype.isFloat) {
    const keys = x.dtype.kind === "bool" ? cast(x, dtypes.int32) : x;
    return descending ? turned(keys) : keys;
  }
  const bits = bitcast(where(eq(x, 0), 0, x), bitsOf(x.dtype)); // both zeros are one
  const [, most] = bounds(bits.dtype);
  const ordered = bitwiseXor(bits, bitwiseAnd(rshift(bits, bits.dtype.bits - 1), most));
  const keys = where(isnan(x), most, ordered);
  return descending ? turned(keys) : keys;
}
/** Where in the last dim the elements are that come at `positions` of the sorted row. */
function placesOf(self: Tensor, descending: boolean, positions: Tensor): Tensor {
  const n = self.shape.at(-1) as number;
  const keys = keysOf(self, descending);
  if (n > COUNT_ROW && self.size * n > COUNT_ALL) return takeLast(network(keys), positions);
  return atRanks(ranks(keys), positions, counting(self, n));
}
/** The indices of all elements in order, by log²n/2 rounds in which each element meets one other. */
function network(self: Tensor): Tensor {
  const n = self.shape.at(-1) as number;
  const size = 2 ** Math.ceil(Math.log2(n));
  const front = self.shape.slice(0, -1);
  const whole = [...front, size];
  let keys = contiguous(lengthened(self, size));
  let places = contiguous(expand(counting(self, size), whole));
  const meet = (shape: readonly number[], turn: number) => {
    const full = [...front, ...shape];
    const [k, p] = [reshape(keys, full), reshape(places, full)];
    const [k2, p2] = [flip(k, turn), flip(p, turn)];
    const later = bitwiseOr(lt(k2, k), bitwiseAnd(eq(k2, k), lt(p2, p)));
    const at = full.length + turn;
    const half = (full[at] as number) / 2;
    const first = lt(
      expand(
        reshape(
          counting(self, half * 2),
          full.map((_, i) => (i === at ? half * 2 : 1)),
        ),
        full,
      ),
      half,
    );
    // the first of two takes the smaller one
    const swap = eq(later, first);
    keys = contiguous(reshape(where(swap, k2, k), whole));
    places = contiguous(reshape(where(swap, p2, p), whole));
  };
  for (let run = 2; run <= size; run *= 2) {
    meet([size / run, run], -1); // two sorted halves, the second one turned around
    for (let step = run / 4; step >= 1; step /= 2) meet([size / (2 * step), 2, step], -2);
  }
  return shrink(
    places,
    range(self.ndim).map((i) => (i === self.ndim - 1 ? [0, n] : null)),
  );
}

/**
 * `f` of the tensor with `dim` as the last one, where the results are put
 * back. A 0-d tensor is a row of one.
 */
export function alongLast<R extends readonly Tensor[]>(
  self: Tensor,
  method: string,
  dim: number,
  f: (x: Tensor) => R,
): { [K in keyof R]: Tensor } {
  if (self.ndim === 0) {
    axisOf(self, method, dim, 1);
    return f(reshape(self, 1)).map((t) => reshape(t, [])) as { [K in keyof R]: Tensor };
  }
  const at = axisOf(self, method, dim);
  const last = at === self.ndim - 1;
  const results = f(last ? self : transpose(self, at, -1));
  return (last ? results : results.map((t) => transpose(t, at, -1))) as { [K in keyof R]: Tensor };
}
/** The indices of the first `count` elements of each row in order. */
function firstOf(self: Tensor, descending: boolean, count: number): Tensor {
  const n = self.shape.at(-1) as number;
  const front = self.shape.slice(0, -1);
  if (selectsCheaply(self.size / n, n, count)) return firstPlaces(keysOf(self, descending), count);
  return placesOf(self, descending, expand(counting(self, count), [...front, count]));
}
/** Values and indices of the first `count` elements in order. */
function orderedOf(
  self: Tensor,
  method: string,
  dim: number,
  descending: boolean,
  count?: number,
): [Tensor, Tensor] {
  return alongLast(self, method, dim, (x): [Tensor, Tensor] => {
    const shape = [...x.shape.slice(0, -1), count ?? (x.shape.at(-1) as number)];
    if (shape.includes(0)) {
      const none = shrink(
        x,
        shape.map((n): [number, number] => [0, n]),
      );
      return [none, fullLike(none, 0, { dtype: dtypes.int32 })];
    }
    const places = firstOf(x, descending, shape.at(-1) as number);
    return [takeLast(x, places), places];
  });
}

// ---- what the user calls ----

export function sort(self: Tensor, dim = -1, descending = false, _stable = true): [Tensor, Tensor] {
  return orderedOf(self, "sort", dim, descending);
}
export function msort(self: Tensor): Tensor {
  return orderedOf(self, "msort", 0, false)[0];
}
export function mode(self: Tensor, dim = -1, keepdim = false): [Tensor, Tensor] {
  const axes = requireElements(self, "mode", dim);
  const both = alongLast(self, "mode", dim, (x): [Tensor, Tensor] => {
    const n = x.shape.at(-1) as number;
    const keys = keysOf(x, false);
    const full = [...x.shape, n];
    const often = sum(
      cast(eq(expand(unsqueeze(keys, -1), full), expand(unsqueeze(keys, -2), full)), dtypes.int32),
      -1,
    );
    const candidates = where(eq(often, max(often, -1, true)), keys, bounds(keys.dtype)[1]);
    const places = max(
      where(eq(keys, min(candidates, -1, true)), expand(counting(self, n), x.shape), -1),
      -1,
      true,
    );
    return [takeLast(x, places), places];
  });
  return [drop(both[0], axes, keepdim), drop(both[1], axes, keepdim)];
}
export function argsort(self: Tensor, dim = -1, descending = false, _stable = true): Tensor {
  return orderedOf(self, "argsort", dim, descending)[1];
}
export function topk(self: Tensor, k: number, dim = -1, largest = true, _sorted = true): [Tensor, Tensor] {
  const n = self.ndim === 0 ? 1 : (self.shape[axisOf(self, "topk", dim)] as number);
  if (!Number.isInteger(k) || k < 0 || k > n) {
    throw new ArgumentError(
      `topk: k is ${k} for dim ${dim} of shape ${showShape(self.shape)}, expected 0 to ${n}`,
    );
  }
  return orderedOf(self, "topk", dim, largest, k);
}
export function kthvalue(self: Tensor, k: number, dim = -1, keepdim = false): [Tensor, Tensor] {
  const n = self.ndim === 0 ? 1 : (self.shape[axisOf(self, "kthvalue", dim)] as number);
  if (!Number.isInteger(k) || k < 1 || k > n) {
    throw new ArgumentError(
      `kthvalue: k is ${k} for dim ${dim} of shape ${showShape(self.shape)}, expected 1 to ${n}`,
    );
  }
  return chosenOf(self, "kthvalue", dim, keepdim, (x) =>
    fullLike(part(x, x.ndim - 1, 0, 1), k - 1, { dtype: dtypes.int32 }),
  );
}
/** The element of each row that stands at one position of its order. */
function chosenOf(
  self: Tensor,
  method: string,
  dim: number,
  keepdim: boolean,
  position: (x: Tensor) => Tensor,
): [Tensor, Tensor] {
  const axes = requireElements(self, method, dim);
  const both = alongLast(self, method, dim, (x): [Tensor, Tensor] => {
    const places = placesOf(x, false, position(detach(x)));
    return [takeLast(x, places), places];
  });
  return [drop(both[0], axes, keepdim), drop(both[1], axes, keepdim)];
}
export function median(self: Tensor, dim?: number, keepdim = false): Tensor | [Tensor, Tensor] {
  return medianOf(self, "median", dim, keepdim, (n, nans) =>
    where(gt(nans, 0), rsub(nans, n), Math.floor((n - 1) / 2)),
  );
}
export function nanmedian(self: Tensor, dim?: number, keepdim = false): Tensor | [Tensor, Tensor] {
  return medianOf(self, "nanmedian", dim, keepdim, (n, nans) => idiv(maximum(rsub(nans, n - 1), 0), 2));
}
function medianOf(
  self: Tensor,
  method: string,
  dim: number | undefined,
  keepdim: boolean,
  position: (n: number, nans: Tensor) => Tensor,
): Tensor | [Tensor, Tensor] {
  if (dim === undefined) {
    if (self.size === 0) return sum(wrap(self.lazydata.const(NaN)));
    const flat = flatten(detach(self));
    const value = chosenOf(flat, method, 0, false, (x) => position(x.size, sum(isnan(x), -1, true)))[0];
    // without a dim no index is named: equal ones share the gradient
    return wrap(value.lazydata, [self], (g, out) => {
      const here = cast(bitwiseOr(eq(self, out), bitwiseAnd(isnan(self), isnan(out))), g.dtype);
      return [mul(here, div(g, sum(here)))];
    });
  }
  return chosenOf(self, method, dim, keepdim, (x) =>
    position(x.shape.at(-1) as number, sum(isnan(x), -1, true)),
  );
}
export function quantile(
  self: Tensor,
  q: number | readonly number[] | Tensor,
  dim?: number,
  keepdim = false,
  { interpolation = "linear" }: QuantileOptions = {},
): Tensor {
  return quantileOf(self, "quantile", q, dim, keepdim, interpolation);
}
export function nanquantile(
  self: Tensor,
  q: number | readonly number[] | Tensor,
  dim?: number,
  keepdim = false,
  { interpolation = "linear" }: QuantileOptions = {},
): Tensor {
  return quantileOf(self, "nanquantile", q, dim, keepdim, interpolation);
}
function quantileOf(
  self: Tensor,
  method: "quantile" | "nanquantile",
  q: number | readonly number[] | Tensor,
  dim: number | undefined,
  keepdim: boolean,
  how: Interpolation,
): Tensor {
  const x = cast(self, toFloat(self.dtype));
  const shares = sharesOf(x, method, q);
  const flat = dim === undefined || self.ndim === 0;
  const at =
    dim === undefined ? 0 : self.ndim === 0 ? axisOf(self, method, dim, 1) : axisOf(self, method, dim);
  const row = flat ? flatten(x) : movedim(x, at, -1);
  if (row.size === 0) throw new ShapeError(`${method}: shape ${showShape(self.shape)} has no elements`);
  const [lead, n, k] = [row.shape.slice(0, -1), row.shape.at(-1) as number, shares.size];
  const nans = sum(isnan(detach(row)), -1, true);
  const last = method === "quantile" ? add(zero(nans), n - 1) : maximum(rsub(nans, n - 1), 0);
  const rank = mul(expand(reshape(shares, -1), [...lead, k]), expand(cast(last, x.dtype), [...lead, k]));
  // NaN is sorted to the end, and a row that has one has no other quantile
  const position = method === "quantile" ? where(expand(gt(nans, 0), rank.shape), n - 1, rank) : rank;
  const value = betweenRanks(sort(row, -1)[0], method, position, how);
  const sizes = keepdim ? (flat ? self.shape.map(() => 1) : self.shape.with(at, 1)) : lead;
  return reshape(movedim(value, -1, 0), [...shares.shape, ...sizes]);
}
/** The shares as a tensor of this type: 0-d for a number. */
function sharesOf(self: Tensor, method: string, q: number | readonly number[] | Tensor): Tensor {
  if (q instanceof TensorHandle) {
    if (q.ndim < 2) return cast(q, self.dtype) as Tensor;
    throw new ShapeError(`${method}: q has shape ${showShape(q.shape)}, expected a number or a vector`);
  }
  const list = typeof q === "number" ? [q] : q;
  const bad = list.find((s) => !(s >= 0 && s <= 1));
  if (bad !== undefined) throw new ArgumentError(`${method}: q is ${bad}, expected a number from 0 to 1`);
  const constants = list.map((s) => wrap(LazyBuffer.constant(self.device, [1], self.dtype, s)));
  if (typeof q === "number") return reshape(constants[0] as Tensor, []);
  return constants.length === 0
    ? wrap(LazyBuffer.constant(self.device, [0], self.dtype, 0))
    : cat(constants[0] as Tensor, constants.slice(1));
}
/** The values of the sorted last dim at positions between its indices. */
function betweenRanks(self: Tensor, method: string, position: Tensor, how: Interpolation): Tensor {
  const low = floor(detach(position));
  const at = (places: Tensor) => takeLast(self, cast(places, dtypes.int32));
  const rest = sub(position, low);
  if (how === "lower") return at(low);
  if (how === "higher") return at(ceil(detach(position)));
  if (how === "nearest") return at(round(detach(position)));
  const high = at(ceil(detach(position)));
  if (how === "midpoint") return lerp(at(low), high, 0.5);
  if (how === "linear") return lerp(at(low), high, rest);
  throw new ArgumentError(
    `${method}: interpolation is ${how}, expected "linear", "lower", "higher", "midpoint" or "nearest"`,
  );
}
