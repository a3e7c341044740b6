// Other sizes of the last dims: interpolate in its modes. An output is a weighted sum of a few elements
// ("taps") whose numbers and weights are computed from its own number, one dim after the other, one kernel a
// dim; taps become indexed loads. Adaptive pooling (pool.ts) uses the same taps.

import { dtypes } from "../../dtype.ts";
import { ArgumentError, ShapeError } from "../../errors.ts";
import { range } from "../../helpers.ts";
import type { Sint } from "../../shape/symbolic.ts";
import { cast, counting, sizeAt, wrap } from "../core.ts";
import {
  add,
  div,
  eq,
  floor,
  idiv,
  isNarrow,
  le,
  lt,
  maximum,
  minimum,
  mul,
  neg,
  sub,
  toFloat,
  where,
} from "../math/arithmetic.ts";
import { squeeze } from "../movement/arrange.ts";
import { expand, reduceSum, reshape } from "../movement/views.ts";
import { sum } from "../reduce/reduce.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import type { PerDim } from "./conv.ts";

export type InterpolateMode =
  | "nearest"
  | "nearest-exact"
  | "linear"
  | "bilinear"
  | "bicubic"
  | "trilinear"
  | "area";

export interface InterpolateOptions {
  /** the new sizes of the spatial dims: this or `scaleFactor` */
  readonly size?: number | readonly number[] | null;
  readonly scaleFactor?: number | readonly number[] | null;
  /** default "nearest" */
  readonly mode?: InterpolateMode;
  /** the corner elements keep their position and value (linear and cubic modes); default false */
  readonly alignCorners?: boolean | null;
  /** take the scale from the sizes, not from `scaleFactor`; default false */
  readonly recomputeScaleFactor?: boolean | null;
  /** smaller images as weighted means of all that an output covers (bilinear and bicubic); default false */
  readonly antialias?: boolean | null;
}

/** Where the taps of the outputs along one dim are: tensors of one shape in, tensors of that shape out. */
export interface Taps<T> {
  readonly count: number;
  /** the element that tap number `tap` of output number `out` reads; one that is not there counts as 0 */
  index(out: T, tap: T): T;
  /** what it is multiplied with */
  readonly weight?: (out: T, tap: T) => T;
}

export interface Spans<T> extends Taps<T> {
  /** the first element that an output covers, and the one after the last */
  start(out: T): T;
  end(out: T): T;
}

/** What an interpolation along one dim has to know. `scale` is input elements an output element. */
interface DimResize {
  readonly from: number;
  readonly to: number;
  readonly scale: number;
  readonly corners: boolean;
  readonly smooth: boolean;
}

const MODES: readonly InterpolateMode[] = [
  "nearest",
  "nearest-exact",
  "area",
  "linear",
  "bilinear",
  "bicubic",
  "trilinear",
];
const RANK: Partial<Record<InterpolateMode, number>> = { linear: 1, bilinear: 2, bicubic: 2, trilinear: 3 };

/** The number of each element along `dim`, in the shape of this tensor; computed in place. */
export function numbersOf(self: Tensor, dim: number): Tensor {
  const { shape } = self.lazydata;
  const count = counting(self, shape[dim] as Sint);
  return expand(
    reshape(
      count,
      shape.map((s, i) => (i === dim ? s : 1)),
    ),
    shape,
  );
}

/** Each output of `dim` as its taps: [..., i, ...] becomes [..., to, taps, ...]. */
export function sample(self: Tensor, dim: number, to: number, taps: Taps<Tensor>): Tensor {
  return squeeze(reduceSum(tapsOf(self, dim, to, taps), [dim + 2]), dim + 2);
}
/** Each output of `dim` as the weighted sum of its taps, in float32 at least. */
export function resample(self: Tensor, dim: number, to: number, taps: Taps<Tensor>): Tensor {
  if (isNarrow(self.dtype)) return cast(resample(cast(self, dtypes.float32), dim, to, taps), self.dtype);
  const sum = reduceSum(tapsOf(cast(self, toFloat(self.dtype)), dim, to, taps), [dim + 1, dim + 2]);
  return squeeze(squeeze(sum, dim + 2), dim + 1);
}
/**
 * [..., to, taps, i, ...]: at most one element along i is not zero. Summing over i becomes an indexed load.
 */
function tapsOf(self: Tensor, dim: number, to: number, taps: Taps<Tensor>): Tensor {
  const { shape } = self.lazydata;
  const [before, size, after] = [shape.slice(0, dim), sizeAt(self, dim), shape.slice(dim + 1)];
  const full = [...before, to, taps.count, size, ...after];
  const x = expand(reshape(self, [...before, 1, 1, size, ...after]), full);
  const [out, tap] = [numbersOf(x, dim), numbersOf(x, dim + 1)];
  const value = taps.weight === undefined ? x : mul(x, cast(taps.weight(out, tap), self.dtype));
  return where(eq(taps.index(out, tap), numbersOf(x, dim + 2)), value, wrap(value.lazydata.const(0)));
}

/** The elements that output number n of `to` covers: those from floor(n i / to) to ceil((n + 1) i / to). */
export function spansOf(from: number, to: number): Spans<Tensor> {
  let count = 1;
  for (let n = 0; n < to; n++)
    count = Math.max(count, Math.ceil(((n + 1) * from) / to) - Math.floor((n * from) / to));
  // the index of an output times the size of the input may need more than 32 bits
  const isWide = from * to + to > 2 ** 31;
  const part = (n: Tensor, rest: number): Tensor =>
    cast(idiv(add(mul(isWide ? cast(n, dtypes.int64) : n, from), rest), to), n.dtype);
  const start = (out: Tensor): Tensor => part(out, 0);
  const end = (out: Tensor): Tensor => part(add(out, 1), to - 1);
  return { count, index: (out, tap) => add(start(out), tap), start, end };
}

export function interpolate(self: Tensor, options: InterpolateOptions = {}): Tensor {
  const { mode = "nearest", alignCorners } = options;
  const n = self.ndim - 2;
  const rank = RANK[mode];
  if (!MODES.includes(mode)) {
    throw new ArgumentError(`interpolate: mode is "${mode}", expected one of ${MODES.join(", ")}`);
  }
  if (n < 1 || n > 3 || (rank !== undefined && rank !== n)) {
    const want = rank === undefined ? "3 to 5" : `${rank + 2}`;
    throw new ShapeError(
      `interpolate: shape ${showShape(self.shape)} has ${self.ndim} dims; mode "${mode}" takes ${want} (batch, channels, spatial)`,
    );
  }
  if (rank === undefined && alignCorners != null) {
    throw new ArgumentError(
      `interpolate: alignCorners is for linear, bilinear, bicubic and trilinear; leave it out for "${mode}"`,
    );
  }
  if (options.antialias === true && mode !== "bilinear" && mode !== "bicubic") {
    throw new ArgumentError(
      `interpolate: antialias is for bilinear and bicubic; leave it out for "${mode}" (area takes means too)`,
    );
  }
  const all = resizes(self, n, options);
  if (mode === "area")
    return resizeArea(
      self,
      all.map((r) => r.to),
    );
  let x: Tensor = self;
  all.forEach((r, i) => {
    x = resize(x, 2 + i, mode, r);
  });
  return x;
}

function resizes(self: Tensor, n: number, options: InterpolateOptions): DimResize[] {
  const { size, scaleFactor, alignCorners, recomputeScaleFactor } = options;
  if ((size == null) === (scaleFactor == null)) {
    throw new ArgumentError("interpolate: give either size or scaleFactor, and not both");
  }
  if (size != null && recomputeScaleFactor === true) {
    throw new ArgumentError(
      "interpolate: recomputeScaleFactor needs scaleFactor; with size there is nothing to recompute",
    );
  }
  const list = (value: PerDim): number[] => {
    const given = typeof value === "number" ? range(n).map(() => value) : [...value];
    if (given.length === n && given.every((v) => v > 0)) return given;
    throw new ArgumentError(`interpolate: got [${given}], expected a number, or ${n} of them, above 0`);
  };
  const factors = scaleFactor == null ? undefined : list(scaleFactor);
  const sizes = size == null ? undefined : list(size);
  return range(n).map((i) => {
    const from = sizeAt(self, 2 + i);
    const factor = factors?.[i] ?? 1;
    const to = sizes?.[i] ?? Math.floor(from * factor);
    if (!Number.isInteger(to) || to < 1 || from < 1) {
      throw new ArgumentError(
        `interpolate: spatial dim ${i} would go from ${from} to ${to}; sizes are integers from 1 up`,
      );
    }
    const given = factors !== undefined && recomputeScaleFactor !== true;
    const scale = given ? 1 / factor : from / to;
    return { from, to, scale, corners: alignCorners === true, smooth: options.antialias === true };
  });
}

function resize(self: Tensor, dim: number, mode: InterpolateMode, r: DimResize): Tensor {
  const { from, to, scale } = r;
  if (mode === "nearest" || mode === "nearest-exact") {
    if (from === to && scale === 1) return self;
    // a whole number of copies is a view
    if (to % from === 0 && scale === from / to) return copies(self, dim, to / from);
    const middle = mode === "nearest" ? 0 : 0.5;
    const index = (out: Tensor): Tensor =>
      minimum(cast(mul(add(cast(out, dtypes.float32), middle), scale), dtypes.int32), from - 1);
    return squeeze(sample(self, dim, to, { count: 1, index }), dim + 1);
  }
  if (r.smooth) return resample(self, dim, to, smooth(self, dim, mode === "bicubic", r));
  return resample(self, dim, to, mode === "bicubic" ? cubicOf(self, r) : linearSample(self, r));
}

function copies(self: Tensor, dim: number, times: number): Tensor {
  const { shape } = self.lazydata;
  const [before, size, after] = [shape.slice(0, dim), sizeAt(self, dim), shape.slice(dim + 1)];
  return reshape(expand(reshape(self, [...before, size, 1, ...after]), [...before, size, times, ...after]), [
    ...before,
    size * times,
    ...after,
  ]);
}

/**
 * Means over spans of the last dims, as adaptive average pooling. All sums come first: where their terms
 * cancel, the mean is 0.
 */
export function resizeArea(self: Tensor, sizes: readonly number[]): Tensor {
  const lead = self.ndim - sizes.length;
  // half-width floats would round after each dim
  let x = cast(self, isNarrow(self.dtype) ? dtypes.float32 : toFloat(self.dtype));
  for (const [i, to] of sizes.entries()) x = spanSums(x, lead + i, to);
  for (const [i, to] of sizes.entries()) x = div(x, spanLengths(x, lead + i, sizeAt(self, lead + i), to));
  return self.dtype.isFloat ? cast(x, self.dtype) : x;
}
function spanSums(self: Tensor, dim: number, to: number): Tensor {
  const from = sizeAt(self, dim);
  if (from === to) return self;
  const { shape } = self.lazydata;
  if (from % to === 0)
    return sum(reshape(self, [...shape.slice(0, dim), to, from / to, ...shape.slice(dim + 1)]), dim + 1);
  const { count, index, end } = spansOf(from, to);
  const inside = (out: Tensor, tap: Tensor): Tensor => {
    const i = index(out, tap);
    return where(lt(i, end(out)), i, -1);
  };
  return resample(self, dim, to, { count, index: inside });
}
function spanLengths(self: Tensor, dim: number, from: number, to: number): Tensor | number {
  if (from % to === 0) return from / to;
  const { start, end } = spansOf(from, to);
  const out = numbersOf(self, dim);
  return real(self, sub(end(out), start(out)));
}

/**
 * Integers in the type that positions and weights are computed in: float32, as in
 * torch, also for narrower inputs.
 */
function real(self: Tensor, x: Tensor): Tensor {
  return cast(x, self.dtype === dtypes.float64 ? dtypes.float64 : dtypes.float32);
}
/** The position of an output among the inputs. */
function sourceOf(self: Tensor, out: Tensor, { from, to, scale, corners }: DimResize): Tensor {
  const at = real(self, out);
  if (corners) return mul(at, to > 1 ? (from - 1) / (to - 1) : 0);
  return sub(mul(add(at, 0.5), scale), 0.5);
}
function linearSample(self: Tensor, r: DimResize): Taps<Tensor> {
  const source = (out: Tensor): Tensor => maximum(sourceOf(self, out, r), 0);
  const first = (out: Tensor): Tensor => minimum(cast(source(out), dtypes.int32), r.from - 1);
  return {
    count: 2,
    index: (out, tap) => minimum(add(first(out), tap), r.from - 1),
    weight: (out, tap) => {
      const part = sub(source(out), real(self, first(out)));
      return where(eq(tap, 0), add(neg(part), 1), part);
    },
  };
}
/** Keys' cubic with a = -0.75: four taps, those beyond the ends are the ends. */
function cubicOf(self: Tensor, r: DimResize): Taps<Tensor> {
  const a = -0.75;
  const low = (out: Tensor): Tensor => floor(sourceOf(self, out, r));
  return {
    count: 4,
    index: (out, tap) => minimum(maximum(sub(add(cast(low(out), dtypes.int32), tap), 1), 0), r.from - 1),
    weight: (out, tap) => {
      const away = sub(add(sub(sourceOf(self, out, r), low(out)), 1), real(self, tap));
      return keys(maximum(away, neg(away)), a);
    },
  };
}
/** Keys' cubic at a distance of up to 2. */
function keys(self: Tensor, a: number): Tensor {
  const near = add(mul(mul(sub(mul(self, a + 2), a + 3), self), self), 1);
  const far = sub(mul(add(mul(sub(mul(self, a), 5 * a), self), 8 * a), self), 4 * a);
  return where(le(self, 1), near, far);
}
/** A triangle or Keys' cubic (a = -0.5), as wide as what the output covers; its weights come to 1. */
function smooth(self: Tensor, dim: number, cubic: boolean, r: DimResize): Taps<Tensor> {
  const { from, to } = r;
  const scale = r.corners ? (to > 1 ? (from - 1) / (to - 1) : 0) : r.scale;
  const support = (cubic ? 2 : 1) * Math.max(1, scale);
  const count = Math.ceil(support) * 2 + 1;
  const center = (out: Tensor): Tensor => mul(add(real(self, out), 0.5), scale);
  const low = (out: Tensor): Tensor => maximum(cast(sub(center(out), support - 0.5), dtypes.int32), 0);
  const high = (out: Tensor): Tensor => minimum(cast(add(center(out), support + 0.5), dtypes.int32), from);
  const index = (out: Tensor, tap: Tensor): Tensor => add(low(out), tap);
  const raw = (out: Tensor, tap: Tensor): Tensor => {
    const away = sub(add(real(self, index(out, tap)), 0.5), center(out));
    const d = mul(maximum(away, neg(away)), 1 / Math.max(1, scale));
    const shape = cubic ? where(lt(d, 2), keys(d, -0.5), 0) : where(lt(d, 1), add(neg(d), 1), 0);
    return where(lt(index(out, tap), high(out)), shape, 0);
  };
  const all = [to, count];
  const outs = expand(reshape(counting(self, to), to, 1), all);
  const total = sum(raw(outs, expand(counting(self, count), all)), 1);
  const aligned = reshape(total, [to, ...range(self.ndim - dim + 1).map(() => 1)]);
  return { count, index, weight: (out, tap) => div(raw(out, tap), expand(aligned, out.shape)) };
}

export function upsample(self: Tensor, options: InterpolateOptions = {}): Tensor {
  return interpolate(self, options);
}
export function upsampleNearest(self: Tensor, options: InterpolateOptions = {}): Tensor {
  return interpolate(self, { ...options, mode: "nearest" });
}
export function upsampleBilinear(self: Tensor, options: InterpolateOptions = {}): Tensor {
  return interpolate(self, { ...options, mode: "bilinear", alignCorners: true });
}
