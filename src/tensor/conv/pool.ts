// Pooling: average and maximum over windows, and their adaptive forms. Windows are views (conv.ts), so
// pooling is one kernel; where sizes do not divide, an adaptive pool gathers its windows first (resample.ts).

import { bounds, dtypes } from "../../dtype.ts";
import { ArgumentError, ShapeError } from "../../errors.ts";
import { prod, range } from "../../helpers.ts";
import type { Interval } from "../../shape/view.ts";
import { detach, sizesFrom, wrap } from "../core.ts";
import {
  add,
  div,
  eq,
  fmod,
  idiv,
  lt,
  maximum,
  minimum,
  mul,
  ne,
  neg,
  sub,
  where,
} from "../math/arithmetic.ts";
import { expand, permute } from "../movement/views.ts";
import { drop, max, sum } from "../reduce/reduce.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import { type Frame, fitWindows, type PerDim, perDim, places, reach, windows } from "./conv.ts";
import { numbersOf, resizeArea, type Spans, sample, spansOf } from "./resample.ts";

interface PoolOptions {
  /** how far the window moves; default: its size */
  readonly stride?: PerDim | null;
  /** on both sides, at most half the window; default 0 */
  readonly padding?: PerDim;
  /** windows that start inside but end outside count too; default false */
  readonly ceilMode?: boolean;
}
export interface AvgPoolOptions extends PoolOptions {
  /** whether padding counts as elements; default true */
  readonly countIncludePad?: boolean;
  /** divides the sums instead of the number of elements */
  readonly divisorOverride?: number | null;
}
export interface MaxPoolOptions extends PoolOptions {
  /** the distance between the taps of the window; default 1 */
  readonly dilation?: PerDim;
}
/** One size for all dims, or one a dim; null keeps a size. */
export type OutputSize = number | readonly (number | null)[];

interface PoolFrame extends Frame {
  readonly padding: readonly number[];
  readonly out: readonly number[];
  /** what is added around the input, or cut off its ends, so that the windows fit exactly */
  readonly amounts: readonly Interval[];
}

/** The input element along spatial dim `i` that a tap of a position is. */
type ElementOf<T> = (i: number, place: T, tap: T) => T;
interface Largest<T> {
  readonly value: T;
  readonly tap: () => T;
}
/** The indices are made only where asked for. */
interface MaxPool<T> {
  readonly value: T;
  readonly indices: () => T;
}

const at = (xs: readonly number[], i: number): number => xs[i] as number;
const lastDims = (first: number, n: number): number[] => range(n).map((i) => first + i);

function poolOf(
  self: Tensor,
  method: string,
  n: number,
  kernelSize: PerDim,
  options: MaxPoolOptions,
): PoolFrame {
  const kernel = perDim(method, "kernelSize", kernelSize, n, 1);
  const { stride, ceilMode = false } = options;
  const none = stride == null || (typeof stride !== "number" && stride.length === 0);
  const f: Frame = {
    kernel,
    stride: none ? kernel : perDim(method, "stride", stride, n, 1),
    dilation: perDim(method, "dilation", options.dilation ?? 1, n, 1),
  };
  const padding = perDim(method, "padding", options.padding ?? 0, n, 0);
  const wide = padding.findIndex((p, i) => p > Math.floor(reach(f, i) / 2));
  if (wide >= 0) {
    throw new ArgumentError(
      `${method}: padding ${padding[wide]} is more than half of the window ${kernel[wide]}; a window would hold nothing`,
    );
  }
  const sizes = sizesFrom(self, self.ndim - n);
  const out = sizes.map((size, i) => {
    const [p, s] = [at(padding, i), at(f.stride, i)];
    const o = places(size + 2 * p + (ceilMode ? s - 1 : 0), f, i);
    // the last window has to start inside the input or the padding before it
    return ceilMode && (o - 1) * s >= size + p ? o - 1 : o;
  });
  if (out.some((o) => o < 1)) {
    throw new ShapeError(
      `${method}: a window [${kernel}] does not fit into shape ${showShape(self.shape)} with padding [${padding}]`,
    );
  }
  const amounts = out.map((o, i): Interval => {
    const p = at(padding, i);
    return [p, (o - 1) * at(f.stride, i) + reach(f, i) - p - at(sizes, i)];
  });
  return { ...f, padding, out, amounts };
}
/** [..., o, k]: the taps of each position. */
function tapsOf(self: Tensor, pool: PoolFrame): Tensor {
  return windows(fitWindows(self, pool.amounts), pool);
}
function flat<T>(self: Tensor, method: string, n: number, fn: (x: Tensor) => T): T {
  if (self.ndim === n + 1 || self.ndim === n + 2) return fn(self);
  throw new ShapeError(
    `${method}: shape ${showShape(self.shape)} has ${self.ndim} dims, expected ${n + 2} (batch, channels, ${n} spatial) or ${n + 1}`,
  );
}

// ---- averages ----

function avgPool(
  self: Tensor,
  method: string,
  n: number,
  kernelSize: PerDim,
  options: AvgPoolOptions,
): Tensor {
  const { countIncludePad = true, divisorOverride } = options;
  if (divisorOverride === 0)
    throw new ArgumentError(`${method}: divisorOverride is 0, expected another number`);
  return flat(self, method, n, (x) => {
    const pool = poolOf(x, method, n, kernelSize, { ...options, dilation: 1 });
    const total = sum(tapsOf(x, pool), lastDims(x.ndim, n));
    if (divisorOverride != null) return div(total, divisorOverride);
    return div(total, counts(total, pool, sizesFrom(x, x.ndim - n), countIncludePad));
  });
}
/**
 * How many elements each window of an average holds: a number, or a tensor like this one, computed in place.
 */
function counts(self: Tensor, pool: PoolFrame, sizes: readonly number[], padding: boolean): Tensor | number {
  const around = (most: number, amount: Interval): boolean => amount.every((a) => Number(a) <= most);
  const all = pool.amounts.every((a, i) => around(padding ? at(pool.padding, i) : 0, a));
  if (all) return prod(pool.kernel);
  return pool.kernel
    .map((k, i) => {
      const p = at(pool.padding, i);
      const start = sub(mul(numbersOf(self, self.ndim - pool.kernel.length + i), at(pool.stride, i)), p);
      const [lo, hi] = padding ? [-p, at(sizes, i) + p] : [0, at(sizes, i)];
      return sub(minimum(add(start, k), hi), maximum(start, lo));
    })
    .reduce((x, y) => mul(x, y));
}
export function avgPool1d(self: Tensor, kernelSize: PerDim, options: AvgPoolOptions = {}): Tensor {
  return avgPool(self, "avgPool1d", 1, kernelSize, options);
}
export function avgPool2d(self: Tensor, kernelSize: PerDim, options: AvgPoolOptions = {}): Tensor {
  return avgPool(self, "avgPool2d", 2, kernelSize, options);
}
export function avgPool3d(self: Tensor, kernelSize: PerDim, options: AvgPoolOptions = {}): Tensor {
  return avgPool(self, "avgPool3d", 3, kernelSize, options);
}

// ---- maxima ----

/**
 * The largest of the last `n` dims, where `there` holds, and its number among them: of equal ones the first,
 * of NaNs the last, as in torch. The gradient goes to that one only.
 */
function largest(self: Tensor, n: number, there: Tensor | undefined): Largest<Tensor> {
  const { shape } = self.lazydata;
  const axes = lastDims(self.ndim - n, n);
  const kernel = sizesFrom(self, self.ndim - n);
  const k = prod(kernel);
  const lowest = wrap(self.lazydata.const(bounds(self.dtype)[0]));
  const seen = there === undefined ? self : where(there, self, lowest);
  const best = max(detach(seen), axes, true);
  const number = axes
    .map((axis, i) => mul(numbersOf(self, axis), prod(kernel.slice(i + 1))))
    .reduce((x, y) => add(x, y));
  const tap = (): Tensor => {
    const x = detach(self);
    const equal = where(eq(x, expand(best, shape)), add(neg(number), k - 1), -1);
    const rank = where(ne(x, x), add(number, k), equal);
    const first = max(there === undefined ? rank : where(there, rank, -1), axes, true);
    return where(lt(first, k), add(neg(first), k - 1), sub(first, k));
  };
  const value = wrap(best.lazydata, [seen], (g) => [
    where(eq(expand(tap(), shape), number), expand(g, shape), 0),
  ]);
  return { value: drop(value, axes, false), tap: () => drop(tap(), axes, false) };
}

/** Maxima over the taps `seen` of this tensor, and where they are in its flattened spatial dims. */
function maxima(
  self: Tensor,
  seen: Tensor,
  there: Tensor | undefined,
  kernel: readonly number[],
  element: ElementOf<Tensor>,
): MaxPool<Tensor> {
  const n = kernel.length;
  const { value, tap } = largest(seen, n, there);
  const sizes = sizesFrom(self, self.ndim - n);
  const indices = (): Tensor => {
    const best = tap();
    return kernel
      .map((k, i) => {
        const within = fmod(idiv(best, prod(kernel.slice(i + 1))), k);
        return mul(element(i, numbersOf(best, best.ndim - n + i), within), prod(sizes.slice(i + 1)));
      })
      .reduce((x, y) => add(x, y));
  };
  return { value, indices };
}

function maxPool(
  self: Tensor,
  method: string,
  n: number,
  kernelSize: PerDim,
  options: MaxPoolOptions,
): MaxPool<Tensor> {
  return flat(self, method, n, (x) => {
    const pool = poolOf(x, method, n, kernelSize, options);
    const padded = pool.amounts.some(([a, b]) => Number(a) > 0 || Number(b) > 0);
    const there = padded ? tapsOf(wrap(x.lazydata.const(1, dtypes.bool)), pool) : undefined;
    const element = (i: number, place: Tensor, tap: Tensor): Tensor =>
      add(sub(mul(place, at(pool.stride, i)), at(pool.padding, i)), mul(tap, at(pool.dilation, i)));
    return maxima(x, tapsOf(x, pool), there, pool.kernel, element);
  });
}
export function maxPool1d(self: Tensor, kernelSize: PerDim, options: MaxPoolOptions = {}): Tensor {
  return maxPool(self, "maxPool1d", 1, kernelSize, options).value;
}
export function maxPool2d(self: Tensor, kernelSize: PerDim, options: MaxPoolOptions = {}): Tensor {
  return maxPool(self, "maxPool2d", 2, kernelSize, options).value;
}
export function maxPool3d(self: Tensor, kernelSize: PerDim, options: MaxPoolOptions = {}): Tensor {
  return maxPool(self, "maxPool3d", 3, kernelSize, options).value;
}
function both({ value, indices }: MaxPool<Tensor>): [Tensor, Tensor] {
  return [value, indices()];
}
export function maxPool1dWithIndices(
  self: Tensor,
  kernelSize: PerDim,
  options: MaxPoolOptions = {},
): [Tensor, Tensor] {
  return both(maxPool(self, "maxPool1dWithIndices", 1, kernelSize, options));
}
export function maxPool2dWithIndices(
  self: Tensor,
  kernelSize: PerDim,
  options: MaxPoolOptions = {},
): [Tensor, Tensor] {
  return both(maxPool(self, "maxPool2dWithIndices", 2, kernelSize, options));
}
export function maxPool3dWithIndices(
  self: Tensor,
  kernelSize: PerDim,
  options: MaxPoolOptions = {},
): [Tensor, Tensor] {
  return both(maxPool(self, "maxPool3dWithIndices", 3, kernelSize, options));
}

// ---- adaptive: the windows follow from the output size ----

function outputSizeOf(self: Tensor, method: string, n: number, size: OutputSize): number[] {
  const sizes = sizesFrom(self, self.ndim - n);
  const given = typeof size === "number" ? [size] : size;
  const list = range(n).map((i) => (given.length === 1 ? given[0] : given[i]) ?? at(sizes, i));
  const fits = given.length === 1 || given.length === n;
  if (fits && list.every((s) => Number.isInteger(s) && s >= 1)) return list;
  throw new ArgumentError(
    `${method}: outputSize is [${given}], expected one size or ${n} of them, integers from 1 up or null`,
  );
}
function adaptiveAvgPool(self: Tensor, method: string, n: number, outputSize: OutputSize): Tensor {
  return flat(self, method, n, (x) => resizeArea(x, outputSizeOf(x, method, n, outputSize)));
}
export function adaptiveAvgPool1d(self: Tensor, outputSize: OutputSize): Tensor {
  return adaptiveAvgPool(self, "adaptiveAvgPool1d", 1, outputSize);
}
export function adaptiveAvgPool2d(self: Tensor, outputSize: OutputSize): Tensor {
  return adaptiveAvgPool(self, "adaptiveAvgPool2d", 2, outputSize);
}
export function adaptiveAvgPool3d(self: Tensor, outputSize: OutputSize): Tensor {
  return adaptiveAvgPool(self, "adaptiveAvgPool3d", 3, outputSize);
}

function adaptiveMaxPool(self: Tensor, method: string, n: number, outputSize: OutputSize): MaxPool<Tensor> {
  return flat(self, method, n, (x) => {
    const out = outputSizeOf(x, method, n, outputSize);
    const lead = x.ndim - n;
    const sizes = sizesFrom(x, lead);
    const whole = sizes.map((s, i) => s / at(out, i));
    if (whole.every(Number.isInteger)) return maxPool(x, method, n, whole, {});
    const spans = sizes.map((s, i) => spansOf(s, at(out, i)));
    const kernel = spans.map((s) => s.count);
    let seen = x;
    spans.forEach(({ count, index, end }, i) => {
      const inside = (place: Tensor, tap: Tensor): Tensor => minimum(index(place, tap), sub(end(place), 1));
      seen = sample(seen, lead + 2 * i, at(out, i), { count, index: inside });
    });
    const order = [...range(n).map((i) => lead + 2 * i), ...range(n).map((i) => lead + 2 * i + 1)];
    const taps = permute(seen, [...range(lead), ...order]);
    const element = (i: number, place: Tensor, tap: Tensor): Tensor =>
      add((spans[i] as Spans<Tensor>).start(place), tap);
    return maxima(x, taps, undefined, kernel, element);
  });
}
export function adaptiveMaxPool1d(self: Tensor, outputSize: OutputSize): Tensor {
  return adaptiveMaxPool(self, "adaptiveMaxPool1d", 1, outputSize).value;
}
export function adaptiveMaxPool2d(self: Tensor, outputSize: OutputSize): Tensor {
  return adaptiveMaxPool(self, "adaptiveMaxPool2d", 2, outputSize).value;
}
export function adaptiveMaxPool3d(self: Tensor, outputSize: OutputSize): Tensor {
  return adaptiveMaxPool(self, "adaptiveMaxPool3d", 3, outputSize).value;
}
export function adaptiveMaxPool1dWithIndices(self: Tensor, outputSize: OutputSize): [Tensor, Tensor] {
  return both(adaptiveMaxPool(self, "adaptiveMaxPool1dWithIndices", 1, outputSize));
}
export function adaptiveMaxPool2dWithIndices(self: Tensor, outputSize: OutputSize): [Tensor, Tensor] {
  return both(adaptiveMaxPool(self, "adaptiveMaxPool2dWithIndices", 2, outputSize));
}
export function adaptiveMaxPool3dWithIndices(self: Tensor, outputSize: OutputSize): [Tensor, Tensor] {
  return both(adaptiveMaxPool(self, "adaptiveMaxPool3dWithIndices", 3, outputSize));
}
