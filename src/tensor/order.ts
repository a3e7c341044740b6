// Order: sort, argsort, topk, kthvalue, median, quantile. NaN counts as the largest; equal elements keep their order. Elements become
// integers that compare alike; short rows are ranked by counting smaller ones, long rows go through a bitonic network.
// The places are found first, without a gradient; the values are then loaded from there, and that is differentiable.

import { bounds, dtypes } from "../dtype.ts";
import { ArgumentError, ShapeError } from "../errors.ts";
import { range } from "../helpers.ts";
import { LazyBuffer } from "../lazy/lazybuffer.ts";
import { showShape } from "./base.ts";
import { isNarrow, toFloat } from "./math.ts";
import { bitsOf } from "./rounding.ts";
import { TotalTensor } from "./totals.ts";

/** Rows of this many elements, or this many comparisons in all, are ranked by counting: three kernels. */
const COUNT_ROW = 256;
const COUNT_ALL = 2 ** 25;

export type Interpolation = "linear" | "lower" | "higher" | "midpoint" | "nearest";
export interface QuantileOptions {
  readonly interpolation?: Interpolation;
}

export abstract class OrderTensor extends TotalTensor {
  // ---- places ----

  /** The elements of the last dim that `index` names, along its last dim: an indexed load. */
  protected takeLast(index: this): this {
    const [n, m] = [this.shape.at(-1) as number, index.shape.at(-1) as number];
    const full = [...this.shape.slice(0, -1), m, n];
    const chosen = index.unsqueeze(-1).expand(full).eq(this.counting(n).expand(full));
    const values = this.unsqueeze(-2).expand(full);
    return chosen
      .where(values, values.zero())
      .reduceSum([full.length - 1])
      .reshape(full.slice(0, -1));
  }
  /** The inverse of `takeLast`: the elements added up at the places of the last dim, which gets size `n`. */
  protected placeLast(index: this, n: number): this {
    const full = [...this.shape.slice(0, -1), n, this.shape.at(-1) as number];
    const there = this.counting(n).unsqueeze(-1).expand(full);
    const values = this.unsqueeze(-2).expand(full);
    const chosen = index.unsqueeze(-2).expand(full).eq(there);
    return chosen
      .where(values, values.zero())
      .reduceSum([full.length - 1])
      .reshape(full.slice(0, -1));
  }

  /** Integers that compare as the elements do, NaN as the largest. */
  #keys(descending: boolean): this {
    const x = isNarrow(this.dtype) ? this.cast(dtypes.float32).detach() : this.detach();
    if (!x.dtype.isFloat) {
      const keys = x.dtype.kind === "bool" ? x.cast(dtypes.int32) : x;
      return descending ? keys.turned() : keys;
    }
    const bits = x.eq(0).where(0, x).bitcast(bitsOf(x.dtype)); // both zeros are one
    const [, most] = bounds(bits.dtype);
    const ordered = bits.bitwiseXor(bits.rshift(bits.dtype.bits - 1).bitwiseAnd(most));
    const keys = x.isnan().where(most, ordered);
    return descending ? keys.turned() : keys;
  }
  /** Where in the last dim the elements are that come at `positions` of the sorted row. */
  #places(descending: boolean, positions: this): this {
    const n = this.shape.at(-1) as number;
    const keys = this.#keys(descending);
    if (n > COUNT_ROW && this.size * n > COUNT_ALL) return keys.#network().takeLast(positions);
    const rank = keys.#ranks();
    const full = [...this.shape.slice(0, -1), positions.shape.at(-1) as number, n];
    const here = rank.unsqueeze(-2).expand(full).eq(positions.unsqueeze(-1).expand(full));
    return here
      .where(this.counting(n).expand(full), 0)
      .reduceSum([full.length - 1])
      .reshape(full.slice(0, -1));
  }
  /** How many elements of the row come before each one. */
  #ranks(): this {
    const n = this.shape.at(-1) as number;
    const full = [...this.shape, n];
    const [own, other] = [this.unsqueeze(-1).expand(full), this.unsqueeze(-2).expand(full)];
    const [i, j] = [this.counting(n).unsqueeze(-1).expand(full), this.counting(n).expand(full)];
    const before = other.lt(own).bitwiseOr(other.eq(own).bitwiseAnd(j.lt(i)));
    return before
      .cast(dtypes.int32)
      .reduceSum([full.length - 1])
      .reshape(this.shape);
  }
  /** The places of all elements in order, by log²n/2 rounds in which each element meets one other. */
  #network(): this {
    const n = this.shape.at(-1) as number;
    const size = 2 ** Math.ceil(Math.log2(n));
    const front = this.shape.slice(0, -1);
    const whole = [...front, size];
    const added = range(this.ndim).map((i): [number, number] => [0, i === this.ndim - 1 ? size - n : 0]);
    let keys = this.pad(added, Number(bounds(this.dtype)[1])).contiguous();
    let places = this.counting(size).expand(whole).contiguous();
    const meet = (shape: readonly number[], turn: number) => {
      const full = [...front, ...shape];
      const [k, p] = [keys.reshape(full), places.reshape(full)];
      const [k2, p2] = [k.flip(turn), p.flip(turn)];
      const later = k2.lt(k).bitwiseOr(k2.eq(k).bitwiseAnd(p2.lt(p)));
      const at = full.length + turn;
      const half = (full[at] as number) / 2;
      const first = this.counting(half * 2)
        .reshape(full.map((_, i) => (i === at ? half * 2 : 1)))
        .expand(full)
        .lt(half);
      // the first of two takes the smaller one
      const swap = later.eq(first);
      keys = swap.where(k2, k).reshape(whole).contiguous();
      places = swap.where(p2, p).reshape(whole).contiguous();
    };
    for (let run = 2; run <= size; run *= 2) {
      meet([size / run, run], -1); // two sorted halves, the second one turned around
      for (let step = run / 4; step >= 1; step /= 2) meet([size / (2 * step), 2, step], -2);
    }
    return places.shrink(range(this.ndim).map((i) => (i === this.ndim - 1 ? [0, n] : null)));
  }

  /** `f` of the tensor with `dim` in the last place, where the results are put back. A 0-d tensor is a row of one. */
  protected alongLast<R extends readonly this[]>(
    method: string,
    dim: number,
    f: (x: this) => R,
  ): { [K in keyof R]: this } {
    if (this.ndim === 0) {
      this.axis(method, dim, 1);
      return f(this.reshape(1)).map((t) => t.reshape([])) as { [K in keyof R]: this };
    }
    const at = this.axis(method, dim);
    const last = at === this.ndim - 1;
    const results = f(last ? this : this.transpose(at, -1));
    return (last ? results : results.map((t) => t.transpose(at, -1))) as { [K in keyof R]: this };
  }
  /** Values and places of the first `count` elements in order. */
  #ordered(method: string, dim: number, descending: boolean, count?: number): [this, this] {
    return this.alongLast(method, dim, (x): [this, this] => {
      const shape = [...x.shape.slice(0, -1), count ?? (x.shape.at(-1) as number)];
      if (shape.includes(0)) {
        const none = x.shrink(shape.map((n): [number, number] => [0, n]));
        return [none, none.fullLike(0, { dtype: dtypes.int32 })];
      }
      const places = x.#places(descending, this.counting(shape.at(-1) as number).expand(shape));
      return [x.takeLast(places), places];
    });
  }

  // ---- what the user calls ----

  /**
   * `[values, indices]` in order along `dim`. Always stable; NaN counts as the largest.
   * @example
   * await new Tensor([3, 1, 2]).sort()[0].tolist() // => [1, 2, 3]
   */
  sort(dim = -1, descending = false, _stable = true): [this, this] {
    return this.#ordered("sort", dim, descending);
  }
  /**
   * The values in order along dim 0.
   * @example
   * await new Tensor([3, 1, 2]).msort().tolist() // => [1, 2, 3]
   */
  msort(): this {
    return this.#ordered("msort", 0, false)[0];
  }
  /**
   * `[values, indices]` of the most frequent element along `dim`: the smallest of several, at the last place it has.
   * @example
   * await new Tensor([3, 1, 3, 1, 2]).mode()[0].item() // => 1
   */
  mode(dim = -1, keepdim = false): [this, this] {
    const axes = this.requireElements("mode", dim);
    const both = this.alongLast("mode", dim, (x): [this, this] => {
      const n = x.shape.at(-1) as number;
      const keys = x.#keys(false);
      const full = [...x.shape, n];
      const often = keys
        .unsqueeze(-1)
        .expand(full)
        .eq(keys.unsqueeze(-2).expand(full))
        .cast(dtypes.int32)
        .sum(-1);
      const candidates = often.eq(often.max(-1, true)).where(keys, bounds(keys.dtype)[1]);
      const places = keys
        .eq(candidates.min(-1, true))
        .where(this.counting(n).expand(x.shape), -1)
        .max(-1, true);
      return [x.takeLast(places), places];
    });
    return [both[0].drop(axes, keepdim), both[1].drop(axes, keepdim)];
  }
  /**
   * The indices that put `dim` in order. Always stable; NaN counts as the largest.
   * @example
   * await new Tensor([3, 1, 2]).argsort().tolist() // => [1, 2, 0]
   */
  argsort(dim = -1, descending = false, _stable = true): this {
    return this.#ordered("argsort", dim, descending)[1];
  }
  /**
   * `[values, indices]` of the `k` largest (or smallest) along `dim`, in order.
   * @example
   * await new Tensor([3, 1, 2]).topk(2)[0].tolist() // => [3, 2]
   */
  topk(k: number, dim = -1, largest = true, _sorted = true): [this, this] {
    const n = this.ndim === 0 ? 1 : (this.shape[this.axis("topk", dim)] as number);
    if (!Number.isInteger(k) || k < 0 || k > n) {
      throw new ArgumentError(
        `topk: k is ${k} for dim ${dim} of shape ${showShape(this.shape)}, expected 0 to ${n}`,
      );
    }
    return this.#ordered("topk", dim, largest, k);
  }
  /**
   * `[values, indices]` of the k-th smallest element along `dim`, counted from 1.
   * @example
   * await new Tensor([3, 1, 2]).kthvalue(2)[0].item() // => 2
   */
  kthvalue(k: number, dim = -1, keepdim = false): [this, this] {
    const n = this.ndim === 0 ? 1 : (this.shape[this.axis("kthvalue", dim)] as number);
    if (!Number.isInteger(k) || k < 1 || k > n) {
      throw new ArgumentError(
        `kthvalue: k is ${k} for dim ${dim} of shape ${showShape(this.shape)}, expected 1 to ${n}`,
      );
    }
    return this.#chosen("kthvalue", dim, keepdim, (x) =>
      x.part(x.ndim - 1, 0, 1).fullLike(k - 1, { dtype: dtypes.int32 }),
    );
  }
  /** The element of each row that stands at one position of its order. */
  #chosen(method: string, dim: number, keepdim: boolean, position: (x: this) => this): [this, this] {
    const axes = this.requireElements(method, dim);
    const both = this.alongLast(method, dim, (x): [this, this] => {
      const places = x.#places(false, position(x.detach()));
      return [x.takeLast(places), places];
    });
    return [both[0].drop(axes, keepdim), both[1].drop(axes, keepdim)];
  }
  /**
   * The median: the lower one of two. NaN where there is a NaN. Without `dim` that of all elements; with `dim`
   * `[values, indices]`.
   * @example
   * await new Tensor([3, 1, 2, 4]).median().item() // => 2
   */
  median(): this;
  median(dim: number, keepdim?: boolean): [this, this];
  median(dim?: number, keepdim = false): this | [this, this] {
    return this.#median("median", dim, keepdim, (n, nans) =>
      nans.gt(0).where(nans.rsub(n), Math.floor((n - 1) / 2)),
    );
  }
  /**
   * The median of what is not NaN.
   * @example
   * await new Tensor([3, NaN, 2]).nanmedian().item() // => 2
   */
  nanmedian(): this;
  nanmedian(dim: number, keepdim?: boolean): [this, this];
  nanmedian(dim?: number, keepdim = false): this | [this, this] {
    return this.#median("nanmedian", dim, keepdim, (n, nans) =>
      nans
        .rsub(n - 1)
        .maximum(0)
        .idiv(2),
    );
  }
  #median(
    method: string,
    dim: number | undefined,
    keepdim: boolean,
    position: (n: number, nans: this) => this,
  ): this | [this, this] {
    if (dim === undefined) {
      if (this.size === 0) return this.wrap(this.lazydata.const(NaN)).sum();
      const flat = this.detach().flatten();
      const value = flat.#chosen(method, 0, false, (x) => position(x.size, x.isnan().sum(-1, true)))[0];
      // without a dim no place is named: equal ones share the gradient
      return this.wrap(value.lazydata, [this], (g, out) => {
        const here = this.eq(out).bitwiseOr(this.isnan().bitwiseAnd(out.isnan())).cast(g.dtype);
        return [here.mul(g.div(here.sum()))];
      });
    }
    return this.#chosen(method, dim, keepdim, (x) =>
      position(x.shape.at(-1) as number, x.isnan().sum(-1, true)),
    );
  }
  /**
   * The value below which the share `q` (0 to 1) of the elements along `dim` lies, between neighbours by
   * `interpolation`. Several shares (an array or a vector) come as the first dim. NaN where there is a NaN.
   * @example
   * await new Tensor([4, 1, 3, 2]).quantile(0.5).item() // => 2.5
   */
  quantile(
    q: number | readonly number[] | this,
    dim?: number,
    keepdim = false,
    { interpolation = "linear" }: QuantileOptions = {},
  ): this {
    return this.#quantile("quantile", q, dim, keepdim, interpolation);
  }
  /**
   * `quantile` of what is not NaN.
   * @example
   * await new Tensor([4, NaN, 2]).nanquantile(0.5).item() // => 3
   */
  nanquantile(
    q: number | readonly number[] | this,
    dim?: number,
    keepdim = false,
    { interpolation = "linear" }: QuantileOptions = {},
  ): this {
    return this.#quantile("nanquantile", q, dim, keepdim, interpolation);
  }
  #quantile(
    method: "quantile" | "nanquantile",
    q: number | readonly number[] | this,
    dim: number | undefined,
    keepdim: boolean,
    how: Interpolation,
  ): this {
    const x = this.cast(toFloat(this.dtype));
    const shares = x.#shares(method, q);
    const flat = dim === undefined || this.ndim === 0;
    const at = dim === undefined ? 0 : this.ndim === 0 ? this.axis(method, dim, 1) : this.axis(method, dim);
    const row = flat ? x.flatten() : x.movedim(at, -1);
    if (row.size === 0) throw new ShapeError(`${method}: shape ${showShape(this.shape)} has no elements`);
    const [lead, n, k] = [row.shape.slice(0, -1), row.shape.at(-1) as number, shares.size];
    const nans = row.detach().isnan().sum(-1, true);
    const last = method === "quantile" ? nans.zero().add(n - 1) : nans.rsub(n - 1).maximum(0);
    const rank = shares
      .reshape(-1)
      .expand([...lead, k])
      .mul(last.cast(x.dtype).expand([...lead, k]));
    // NaN is sorted to the end, and a row that has one has no other quantile
    const position =
      method === "quantile"
        ? nans
            .gt(0)
            .expand(rank.shape)
            .where(n - 1, rank)
        : rank;
    const value = row.sort(-1)[0].#between(method, position, how);
    const sizes = keepdim ? (flat ? this.shape.map(() => 1) : this.shape.with(at, 1)) : lead;
    return value.movedim(-1, 0).reshape([...shares.shape, ...sizes]);
  }
  /** The shares as a tensor of this type: 0-d for a number. */
  #shares(method: string, q: number | readonly number[] | this): this {
    if (q instanceof OrderTensor) {
      if (q.ndim < 2) return q.cast(this.dtype) as this;
      throw new ShapeError(`${method}: q has shape ${showShape(q.shape)}, expected a number or a vector`);
    }
    const list = typeof q === "number" ? [q] : q;
    const bad = list.find((s) => !(s >= 0 && s <= 1));
    if (bad !== undefined) throw new ArgumentError(`${method}: q is ${bad}, expected a number from 0 to 1`);
    const constants = list.map((s) => this.wrap(LazyBuffer.constant(this.device, [1], this.dtype, s)));
    if (typeof q === "number") return (constants[0] as this).reshape([]);
    return constants.length === 0
      ? this.wrap(LazyBuffer.constant(this.device, [0], this.dtype, 0))
      : (constants[0] as this).cat(constants.slice(1));
  }
  /** The values of the sorted last dim at positions between its places. */
  #between(method: string, position: this, how: Interpolation): this {
    const low = position.detach().floor();
    const at = (places: this) => this.takeLast(places.cast(dtypes.int32));
    const rest = position.sub(low);
    if (how === "lower") return at(low);
    if (how === "higher") return at(position.detach().ceil());
    if (how === "nearest") return at(position.detach().round());
    const high = at(position.detach().ceil());
    if (how === "midpoint") return at(low).lerp(high, 0.5);
    if (how === "linear") return at(low).lerp(high, rest);
    throw new ArgumentError(
      `${method}: interpolation is ${how}, expected "linear", "lower", "higher", "midpoint" or "nearest"`,
    );
  }
}
