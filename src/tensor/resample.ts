// Other sizes of the last dims: interpolate in its modes. An output is a weighted sum of a few elements ("taps") whose
// numbers and weights are computed from its own number, one dim after the other, one kernel a dim; taps become indexed
// loads. Adaptive pooling (pool.ts) uses the same taps.

import { dtypes } from "../dtype.ts";
import { ArgumentError, ShapeError } from "../errors.ts";
import { range } from "../helpers.ts";
import type { Sint } from "../shape/symbolic.ts";
import { showShape } from "./base.ts";
import { ConvTensor, type PerDim } from "./conv.ts";
import { isNarrow, toFloat } from "./math.ts";

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
  /** the corner elements keep their place and value (linear and cubic modes); default false */
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
interface Resize {
  readonly from: number;
  readonly to: number;
  readonly scale: number;
  readonly corners: boolean;
  readonly smooth: boolean;
}

const RANK: Partial<Record<InterpolateMode, number>> = { linear: 1, bilinear: 2, bicubic: 2, trilinear: 3 };

export abstract class ResampleTensor extends ConvTensor {
  /** The number of each element along `dim`, in the shape of this tensor; computed in place. */
  protected numbers(dim: number): this {
    const { shape } = this.lazydata;
    const count = this.counting(shape[dim] as Sint);
    return count.reshape(shape.map((s, i) => (i === dim ? s : 1))).expand(shape);
  }

  /** Each output of `dim` as its taps: [..., i, ...] becomes [..., to, taps, ...]. */
  protected sample(dim: number, to: number, taps: Taps<this>): this {
    return this.#taps(dim, to, taps)
      .reduceSum([dim + 2])
      .squeeze(dim + 2);
  }
  /** Each output of `dim` as the weighted sum of its taps, in float32 at least. */
  protected resample(dim: number, to: number, taps: Taps<this>): this {
    if (isNarrow(this.dtype)) return this.cast(dtypes.float32).resample(dim, to, taps).cast(this.dtype);
    const sum = this.cast(toFloat(this.dtype))
      .#taps(dim, to, taps)
      .reduceSum([dim + 1, dim + 2]);
    return sum.squeeze(dim + 2).squeeze(dim + 1);
  }
  /** [..., to, taps, i, ...]: at most one element along i is not zero. Summing over i becomes an indexed load. */
  #taps(dim: number, to: number, taps: Taps<this>): this {
    const { shape } = this.lazydata;
    const [before, size, after] = [shape.slice(0, dim), this.shape[dim] as number, shape.slice(dim + 1)];
    const full = [...before, to, taps.count, size, ...after];
    const x = this.reshape([...before, 1, 1, size, ...after]).expand(full);
    const [out, tap] = [x.numbers(dim), x.numbers(dim + 1)];
    const value = taps.weight === undefined ? x : x.mul(taps.weight(out, tap).cast(this.dtype));
    return taps
      .index(out, tap)
      .eq(x.numbers(dim + 2))
      .where(value, this.wrap(value.lazydata.const(0)));
  }

  /** The elements that output number n of `to` covers: those from floor(n i / to) to ceil((n + 1) i / to). */
  protected spans(from: number, to: number): Spans<this> {
    const lengths = range(to).map((n) => Math.ceil(((n + 1) * from) / to) - Math.floor((n * from) / to));
    const start = (out: this): this => out.mul(from).idiv(to);
    const end = (out: this): this =>
      out
        .add(1)
        .mul(from)
        .add(to - 1)
        .idiv(to);
    return {
      count: Math.max(1, ...lengths),
      index: (out, tap) => start(out).add(tap),
      start,
      end,
      weight: (out, tap) => {
        const length = end(out).sub(start(out));
        return tap.lt(length).where(this.#real(length).reciprocal(), 0);
      },
    };
  }

  /**
   * The last dims (all but batch and channels) in another size: `size`, or `scaleFactor` times the old one.
   *
   * @example
   * await new Tensor([[[1, 2]]]).interpolate({ scaleFactor: 2 }).tolist() // => [[[1, 1, 2, 2]]]
   */
  interpolate(options: InterpolateOptions = {}): this {
    const { mode = "nearest", alignCorners } = options;
    const n = this.ndim - 2;
    const rank = RANK[mode];
    if (n < 1 || n > 3 || (rank !== undefined && rank !== n)) {
      const want = rank === undefined ? "3 to 5" : `${rank + 2}`;
      throw new ShapeError(
        `interpolate: shape ${showShape(this.shape)} has ${this.ndim} dims; mode "${mode}" takes ${want} (batch, channels, spatial)`,
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
    let x: this = this;
    this.#resizes(n, options).forEach((r, i) => {
      x = x.#resize(2 + i, mode, r);
    });
    return x;
  }

  #resizes(n: number, options: InterpolateOptions): Resize[] {
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
      const from = this.shape[2 + i] as number;
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

  #resize(dim: number, mode: InterpolateMode, r: Resize): this {
    const { from, to, scale } = r;
    if (mode === "area") return this.resizeArea(dim, to);
    if (mode === "nearest" || mode === "nearest-exact") {
      if (from === to && scale === 1) return this;
      // a whole number of copies is a view
      if (to % from === 0 && scale === from / to) return this.#copies(dim, to / from);
      const middle = mode === "nearest" ? 0 : 0.5;
      const index = (out: this): this =>
        out
          .cast(dtypes.float32)
          .add(middle)
          .mul(scale)
          .cast(dtypes.int32)
          .minimum(from - 1);
      return this.sample(dim, to, { count: 1, index }).squeeze(dim + 1);
    }
    if (r.smooth) return this.resample(dim, to, this.#smooth(dim, mode === "bicubic", r));
    return this.resample(dim, to, mode === "bicubic" ? this.#cubic(r) : this.#linear(r));
  }

  #copies(dim: number, times: number): this {
    const { shape } = this.lazydata;
    const [before, size, after] = [shape.slice(0, dim), this.shape[dim] as number, shape.slice(dim + 1)];
    return this.reshape([...before, size, 1, ...after])
      .expand([...before, size, times, ...after])
      .reshape([...before, size * times, ...after]);
  }

  /** Means over spans, as adaptive average pooling. */
  protected resizeArea(dim: number, to: number): this {
    const from = this.shape[dim] as number;
    if (from === to) return this;
    if (from % to !== 0) return this.resample(dim, to, this.spans(from, to));
    const { shape } = this.lazydata;
    return this.reshape([...shape.slice(0, dim), to, from / to, ...shape.slice(dim + 1)]).mean(dim + 1);
  }

  /** Integers in the type that places and weights are computed in: float32, as in torch, also for narrower inputs. */
  #real(x: this): this {
    return x.cast(this.dtype === dtypes.float64 ? dtypes.float64 : dtypes.float32);
  }
  /** The place of an output among the inputs. */
  #source(out: this, { from, to, scale, corners }: Resize): this {
    const at = this.#real(out);
    if (corners) return at.mul(to > 1 ? (from - 1) / (to - 1) : 0);
    return at.add(0.5).mul(scale).sub(0.5);
  }
  #linear(r: Resize): Taps<this> {
    const source = (out: this): this => this.#source(out, r).maximum(0);
    const first = (out: this): this =>
      source(out)
        .cast(dtypes.int32)
        .minimum(r.from - 1);
    return {
      count: 2,
      index: (out, tap) =>
        first(out)
          .add(tap)
          .minimum(r.from - 1),
      weight: (out, tap) => {
        const part = source(out).sub(this.#real(first(out)));
        return tap.eq(0).where(part.neg().add(1), part);
      },
    };
  }
  /** Keys' cubic with a = -0.75: four taps, those beyond the ends are the ends. */
  #cubic(r: Resize): Taps<this> {
    const a = -0.75;
    const floor = (out: this): this => this.#source(out, r).floor();
    return {
      count: 4,
      index: (out, tap) =>
        floor(out)
          .cast(dtypes.int32)
          .add(tap)
          .sub(1)
          .maximum(0)
          .minimum(r.from - 1),
      weight: (out, tap) => {
        const away = this.#source(out, r).sub(floor(out)).add(1).sub(this.#real(tap));
        return away.maximum(away.neg()).#keys(a);
      },
    };
  }
  /** Keys' cubic at a distance of up to 2. */
  #keys(a: number): this {
    const near = this.mul(a + 2)
      .sub(a + 3)
      .mul(this)
      .mul(this)
      .add(1);
    const far = this.mul(a)
      .sub(5 * a)
      .mul(this)
      .add(8 * a)
      .mul(this)
      .sub(4 * a);
    return this.le(1).where(near, far);
  }
  /** A triangle or Keys' cubic (a = -0.5), as wide as what the output covers; its weights come to 1. */
  #smooth(dim: number, cubic: boolean, r: Resize): Taps<this> {
    const { from, to } = r;
    const scale = r.corners ? (to > 1 ? (from - 1) / (to - 1) : 0) : r.scale;
    const support = (cubic ? 2 : 1) * Math.max(1, scale);
    const count = Math.ceil(support) * 2 + 1;
    const center = (out: this): this => this.#real(out).add(0.5).mul(scale);
    const low = (out: this): this =>
      center(out)
        .sub(support - 0.5)
        .cast(dtypes.int32)
        .maximum(0);
    const high = (out: this): this =>
      center(out)
        .add(support + 0.5)
        .cast(dtypes.int32)
        .minimum(from);
    const index = (out: this, tap: this): this => low(out).add(tap);
    const raw = (out: this, tap: this): this => {
      const away = this.#real(index(out, tap)).add(0.5).sub(center(out));
      const d = away.maximum(away.neg()).mul(1 / Math.max(1, scale));
      const shape = cubic ? d.lt(2).where(d.#keys(-0.5), 0) : d.lt(1).where(d.neg().add(1), 0);
      return index(out, tap).lt(high(out)).where(shape, 0);
    };
    const all = [to, count];
    const outs = this.counting(to).reshape(to, 1).expand(all);
    const total = raw(outs, this.counting(count).expand(all)).sum(1);
    const aligned = total.reshape([to, ...range(this.ndim - dim + 1).map(() => 1)]);
    return { count, index, weight: (out, tap) => raw(out, tap).div(aligned.expand(out.shape)) };
  }

  /**
   * `interpolate` under torch's older name.
   *
   * @example
   * await new Tensor([[[1, 3]]]).upsample({ size: 3, mode: "linear", alignCorners: true }).tolist() // => [[[1, 2, 3]]]
   */
  upsample(options: InterpolateOptions = {}): this {
    return this.interpolate(options);
  }
  /**
   * Repeats elements to reach `size` or `scaleFactor` times the size.
   *
   * @example
   * await new Tensor([[[1, 2]]]).upsampleNearest({ size: 4 }).tolist() // => [[[1, 1, 2, 2]]]
   */
  upsampleNearest(options: InterpolateOptions = {}): this {
    return this.interpolate({ ...options, mode: "nearest" });
  }
  /**
   * Bilinear interpolation of images with their corners aligned.
   *
   * @example
   * await new Tensor([[[[1, 3]]]]).upsampleBilinear({ size: [1, 3] }).tolist() // => [[[[1, 2, 3]]]]
   */
  upsampleBilinear(options: InterpolateOptions = {}): this {
    return this.interpolate({ ...options, mode: "bilinear", alignCorners: true });
  }
}
