// Pooling: average and maximum over windows, and their adaptive forms. Windows are views (conv.ts), so pooling is one
// kernel; where sizes do not divide, an adaptive pool gathers its windows first (resample.ts).

import { bounds, dtypes } from "../dtype.ts";
import { ArgumentError, ShapeError } from "../errors.ts";
import { prod, range } from "../helpers.ts";
import type { Interval } from "../shape/view.ts";
import { showShape } from "./base.ts";
import { type Frame, type PerDim, perDim, places, reach } from "./conv.ts";
import { ResampleTensor, type Spans } from "./resample.ts";

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

interface Pool extends Frame {
  readonly padding: readonly number[];
  readonly out: readonly number[];
  /** what is added around the input, or cut off its ends, so that the windows fit exactly */
  readonly amounts: readonly Interval[];
}

/** The input element along spatial dim `i` that a tap of a place is. */
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

export abstract class PoolTensor extends ResampleTensor {
  #pool(method: string, n: number, kernelSize: PerDim, options: MaxPoolOptions): Pool {
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
    const sizes = this.shape.slice(this.ndim - n);
    const out = sizes.map((size, i) => {
      const [p, s] = [at(padding, i), at(f.stride, i)];
      const o = places(size + 2 * p + (ceilMode ? s - 1 : 0), f, i);
      // the last window has to start inside the input or the padding before it
      return ceilMode && (o - 1) * s >= size + p ? o - 1 : o;
    });
    if (out.some((o) => o < 1)) {
      throw new ShapeError(
        `${method}: a window [${kernel}] does not fit into shape ${showShape(this.shape)} with padding [${padding}]`,
      );
    }
    const amounts = out.map((o, i): Interval => {
      const p = at(padding, i);
      return [p, (o - 1) * at(f.stride, i) + reach(f, i) - p - at(sizes, i)];
    });
    return { ...f, padding, out, amounts };
  }
  /** [..., o, k]: the taps of each place. */
  #taps(pool: Pool): this {
    return this.fit(pool.amounts).windows(pool);
  }
  #flat<T>(method: string, n: number, fn: (x: this) => T): T {
    if (this.ndim === n + 1 || this.ndim === n + 2) return fn(this);
    throw new ShapeError(
      `${method}: shape ${showShape(this.shape)} has ${this.ndim} dims, expected ${n + 2} (batch, channels, ${n} spatial) or ${n + 1}`,
    );
  }

  // ---- averages ----

  #avgPool(method: string, n: number, kernelSize: PerDim, options: AvgPoolOptions): this {
    const { countIncludePad = true, divisorOverride } = options;
    if (divisorOverride === 0)
      throw new ArgumentError(`${method}: divisorOverride is 0, expected another number`);
    return this.#flat(method, n, (x) => {
      const pool = x.#pool(method, n, kernelSize, { ...options, dilation: 1 });
      const sum = x.#taps(pool).sum(lastDims(x.ndim, n));
      if (divisorOverride != null) return sum.div(divisorOverride);
      return sum.div(sum.#counts(pool, x.shape.slice(x.ndim - n), countIncludePad));
    });
  }
  /** How many elements each window of an average holds: a number, or a tensor like this one, computed in place. */
  #counts(pool: Pool, sizes: readonly number[], padding: boolean): this | number {
    const around = (most: number, amount: Interval): boolean => amount.every((a) => Number(a) <= most);
    const all = pool.amounts.every((a, i) => around(padding ? at(pool.padding, i) : 0, a));
    if (all) return prod(pool.kernel);
    return pool.kernel
      .map((k, i) => {
        const p = at(pool.padding, i);
        const start = this.numbers(this.ndim - pool.kernel.length + i)
          .mul(at(pool.stride, i))
          .sub(p);
        const [lo, hi] = padding ? [-p, at(sizes, i) + p] : [0, at(sizes, i)];
        return start.add(k).minimum(hi).sub(start.maximum(lo));
      })
      .reduce((x, y) => x.mul(y));
  }
  /**
   * Means of windows along the last dim.
   *
   * @example
   * await new Tensor([[1, 3, 5, 7]]).avgPool1d(2).tolist() // => [[2, 6]]
   */
  avgPool1d(kernelSize: PerDim, options: AvgPoolOptions = {}): this {
    return this.#avgPool("avgPool1d", 1, kernelSize, options);
  }
  /**
   * Means of windows over the last two dims.
   *
   * @example
   * await new Tensor([[[1, 2], [3, 6]]]).avgPool2d(2).tolist() // => [[[3]]]
   */
  avgPool2d(kernelSize: PerDim, options: AvgPoolOptions = {}): this {
    return this.#avgPool("avgPool2d", 2, kernelSize, options);
  }
  /**
   * Means of windows over the last three dims.
   *
   * @example
   * await new Tensor([[[[1, 2], [3, 6]]]]).avgPool3d([1, 2, 2]).tolist() // => [[[[3]]]]
   */
  avgPool3d(kernelSize: PerDim, options: AvgPoolOptions = {}): this {
    return this.#avgPool("avgPool3d", 3, kernelSize, options);
  }

  // ---- maxima ----

  /**
   * The largest of the last `n` dims, where `there` holds, and its number among them: of equal ones the first, of NaNs
   * the last, as in torch. The gradient goes to that one only.
   */
  #largest(n: number, there: this | undefined): Largest<this> {
    const { shape } = this.lazydata;
    const axes = lastDims(this.ndim - n, n);
    const kernel = this.shape.slice(this.ndim - n);
    const k = prod(kernel);
    const lowest = this.wrap(this.lazydata.const(bounds(this.dtype)[0]));
    const seen = there === undefined ? this : there.where(this, lowest);
    const best = seen.detach().max(axes, true);
    const number = axes
      .map((axis, i) => this.numbers(axis).mul(prod(kernel.slice(i + 1))))
      .reduce((x, y) => x.add(y));
    const tap = (): this => {
      const x = this.detach();
      const equal = x.eq(best.expand(shape)).where(number.neg().add(k - 1), -1);
      const rank = x.ne(x).where(number.add(k), equal);
      const first = (there === undefined ? rank : there.where(rank, -1)).max(axes, true);
      return first.lt(k).where(first.neg().add(k - 1), first.sub(k));
    };
    const value = this.wrap(best.lazydata, [seen], (g) => [
      tap().expand(shape).eq(number).where(g.expand(shape), 0),
    ]);
    return { value: value.drop(axes, false), tap: () => tap().drop(axes, false) };
  }

  /** Maxima over the taps `seen` of this tensor, and where they are in its flattened spatial dims. */
  #maxima(
    seen: this,
    there: this | undefined,
    kernel: readonly number[],
    element: ElementOf<this>,
  ): MaxPool<this> {
    const n = kernel.length;
    const { value, tap } = seen.#largest(n, there);
    const sizes = this.shape.slice(this.ndim - n);
    const indices = (): this => {
      const best = tap();
      return kernel
        .map((k, i) => {
          const within = best.idiv(prod(kernel.slice(i + 1))).fmod(k);
          return element(i, best.numbers(best.ndim - n + i), within).mul(prod(sizes.slice(i + 1)));
        })
        .reduce((x, y) => x.add(y));
    };
    return { value, indices };
  }

  #maxPool(method: string, n: number, kernelSize: PerDim, options: MaxPoolOptions): MaxPool<this> {
    return this.#flat(method, n, (x) => {
      const pool = x.#pool(method, n, kernelSize, options);
      const padded = pool.amounts.some(([a, b]) => Number(a) > 0 || Number(b) > 0);
      const there = padded ? x.wrap(x.lazydata.const(1, dtypes.bool)).#taps(pool) : undefined;
      const element = (i: number, place: this, tap: this): this =>
        place
          .mul(at(pool.stride, i))
          .sub(at(pool.padding, i))
          .add(tap.mul(at(pool.dilation, i)));
      return x.#maxima(x.#taps(pool), there, pool.kernel, element);
    });
  }
  /**
   * Maxima of windows along the last dim.
   *
   * @example
   * await new Tensor([[1, 3, 7, 5]]).maxPool1d(2).tolist() // => [[3, 7]]
   */
  maxPool1d(kernelSize: PerDim, options: MaxPoolOptions = {}): this {
    return this.#maxPool("maxPool1d", 1, kernelSize, options).value;
  }
  /**
   * Maxima of windows over the last two dims.
   *
   * @example
   * await new Tensor([[[1, 2], [3, 6]]]).maxPool2d(2).tolist() // => [[[6]]]
   */
  maxPool2d(kernelSize: PerDim, options: MaxPoolOptions = {}): this {
    return this.#maxPool("maxPool2d", 2, kernelSize, options).value;
  }
  /**
   * Maxima of windows over the last three dims.
   *
   * @example
   * await new Tensor([[[[1, 2], [3, 6]]]]).maxPool3d([1, 2, 1]).tolist() // => [[[[3, 6]]]]
   */
  maxPool3d(kernelSize: PerDim, options: MaxPoolOptions = {}): this {
    return this.#maxPool("maxPool3d", 3, kernelSize, options).value;
  }
  #both({ value, indices }: MaxPool<this>): [this, this] {
    return [value, indices()];
  }
  /**
   * The maxima and their numbers in the flattened spatial dims.
   *
   * @example
   * await new Tensor([[1, 3, 7, 5]]).maxPool1dWithIndices(2)[1].tolist() // => [[1, 2]]
   */
  maxPool1dWithIndices(kernelSize: PerDim, options: MaxPoolOptions = {}): [this, this] {
    return this.#both(this.#maxPool("maxPool1dWithIndices", 1, kernelSize, options));
  }
  /**
   * The maxima and their numbers in the flattened spatial dims.
   *
   * @example
   * await new Tensor([[[1, 2], [3, 6]]]).maxPool2dWithIndices(2)[1].tolist() // => [[[3]]]
   */
  maxPool2dWithIndices(kernelSize: PerDim, options: MaxPoolOptions = {}): [this, this] {
    return this.#both(this.#maxPool("maxPool2dWithIndices", 2, kernelSize, options));
  }
  /**
   * The maxima and their numbers in the flattened spatial dims.
   *
   * @example
   * await new Tensor([[[[1, 2], [3, 6]]]]).maxPool3dWithIndices([1, 2, 1])[1].tolist() // => [[[[2, 3]]]]
   */
  maxPool3dWithIndices(kernelSize: PerDim, options: MaxPoolOptions = {}): [this, this] {
    return this.#both(this.#maxPool("maxPool3dWithIndices", 3, kernelSize, options));
  }

  // ---- adaptive: the windows follow from the output size ----

  #outputSize(method: string, n: number, size: OutputSize): number[] {
    const sizes = this.shape.slice(this.ndim - n);
    const given = typeof size === "number" ? [size] : size;
    const list = range(n).map((i) => (given.length === 1 ? given[0] : given[i]) ?? at(sizes, i));
    const fits = given.length === 1 || given.length === n;
    if (fits && list.every((s) => Number.isInteger(s) && s >= 1)) return list;
    throw new ArgumentError(
      `${method}: outputSize is [${given}], expected one size or ${n} of them, integers from 1 up or null`,
    );
  }
  #adaptiveAvgPool(method: string, n: number, outputSize: OutputSize): this {
    return this.#flat(method, n, (x) => {
      let y = x;
      x.#outputSize(method, n, outputSize).forEach((to, i) => {
        y = y.resizeArea(x.ndim - n + i, to);
      });
      return y;
    });
  }
  /**
   * Means over as many windows as asked for; they may overlap by an element.
   *
   * @example
   * await new Tensor([[1, 2, 3]]).adaptiveAvgPool1d(2).tolist() // => [[1.5, 2.5]]
   */
  adaptiveAvgPool1d(outputSize: OutputSize): this {
    return this.#adaptiveAvgPool("adaptiveAvgPool1d", 1, outputSize);
  }
  /**
   * Means over as many windows as asked for; null keeps a size.
   *
   * @example
   * await new Tensor([[[1, 2], [3, 6]]]).adaptiveAvgPool2d([1, null]).tolist() // => [[[2, 4]]]
   */
  adaptiveAvgPool2d(outputSize: OutputSize): this {
    return this.#adaptiveAvgPool("adaptiveAvgPool2d", 2, outputSize);
  }
  /**
   * Means over as many windows as asked for; null keeps a size.
   *
   * @example
   * await new Tensor([[[[1, 2], [3, 6]]]]).adaptiveAvgPool3d(1).tolist() // => [[[[3]]]]
   */
  adaptiveAvgPool3d(outputSize: OutputSize): this {
    return this.#adaptiveAvgPool("adaptiveAvgPool3d", 3, outputSize);
  }

  #adaptiveMaxPool(method: string, n: number, outputSize: OutputSize): MaxPool<this> {
    return this.#flat(method, n, (x) => {
      const out = x.#outputSize(method, n, outputSize);
      const lead = x.ndim - n;
      const sizes = x.shape.slice(lead);
      const whole = sizes.map((s, i) => s / at(out, i));
      if (whole.every(Number.isInteger)) return x.#maxPool(method, n, whole, {});
      const spans = sizes.map((s, i) => x.spans(s, at(out, i)));
      const kernel = spans.map((s) => s.count);
      let seen = x;
      spans.forEach(({ count, index, end }, i) => {
        const inside = (place: this, tap: this): this => index(place, tap).minimum(end(place).sub(1));
        seen = seen.sample(lead + 2 * i, at(out, i), { count, index: inside });
      });
      const order = [...range(n).map((i) => lead + 2 * i), ...range(n).map((i) => lead + 2 * i + 1)];
      const taps = seen.permute([...range(lead), ...order]);
      const element = (i: number, place: this, tap: this): this =>
        (spans[i] as Spans<this>).start(place).add(tap);
      return x.#maxima(taps, undefined, kernel, element);
    });
  }
  /**
   * Maxima over as many windows as asked for.
   *
   * @example
   * await new Tensor([[1, 3, 2]]).adaptiveMaxPool1d(2).tolist() // => [[3, 3]]
   */
  adaptiveMaxPool1d(outputSize: OutputSize): this {
    return this.#adaptiveMaxPool("adaptiveMaxPool1d", 1, outputSize).value;
  }
  /**
   * Maxima over as many windows as asked for; null keeps a size.
   *
   * @example
   * await new Tensor([[[1, 2], [3, 6]]]).adaptiveMaxPool2d([1, null]).tolist() // => [[[3, 6]]]
   */
  adaptiveMaxPool2d(outputSize: OutputSize): this {
    return this.#adaptiveMaxPool("adaptiveMaxPool2d", 2, outputSize).value;
  }
  /**
   * Maxima over as many windows as asked for; null keeps a size.
   *
   * @example
   * await new Tensor([[[[1, 2], [3, 6]]]]).adaptiveMaxPool3d(1).tolist() // => [[[[6]]]]
   */
  adaptiveMaxPool3d(outputSize: OutputSize): this {
    return this.#adaptiveMaxPool("adaptiveMaxPool3d", 3, outputSize).value;
  }
  /**
   * The maxima and their numbers in the last dim.
   *
   * @example
   * await new Tensor([[1, 3, 2]]).adaptiveMaxPool1dWithIndices(2)[1].tolist() // => [[1, 1]]
   */
  adaptiveMaxPool1dWithIndices(outputSize: OutputSize): [this, this] {
    return this.#both(this.#adaptiveMaxPool("adaptiveMaxPool1dWithIndices", 1, outputSize));
  }
  /**
   * The maxima and their numbers in the flattened spatial dims.
   *
   * @example
   * await new Tensor([[[1, 2], [3, 6]]]).adaptiveMaxPool2dWithIndices(1)[1].tolist() // => [[[3]]]
   */
  adaptiveMaxPool2dWithIndices(outputSize: OutputSize): [this, this] {
    return this.#both(this.#adaptiveMaxPool("adaptiveMaxPool2dWithIndices", 2, outputSize));
  }
  /**
   * The maxima and their numbers in the flattened spatial dims.
   *
   * @example
   * await new Tensor([[[[1, 2], [3, 6]]]]).adaptiveMaxPool3dWithIndices(1)[1].tolist() // => [[[[3]]]]
   */
  adaptiveMaxPool3dWithIndices(outputSize: OutputSize): [this, this] {
    return this.#both(this.#adaptiveMaxPool("adaptiveMaxPool3dWithIndices", 3, outputSize));
  }
}
