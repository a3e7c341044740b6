// Running reductions: cumsum, cumprod, cummax, cummin, logcumsumexp. A short row is one kernel, in which each element
// reduces what is before it; a long one is cut into blocks, whose totals are scanned in turn: little extra memory and n·32 work.

import { dtypes, sumDType } from "../dtype.ts";
import { range } from "../helpers.ts";
import { REDUCE, type ReduceOp } from "../ops.ts";
import { isNarrow, toFloat } from "./math.ts";
import { OrderTensor } from "./order.ts";
import type { Typed } from "./reduce.ts";
import { productType } from "./totals.ts";

/** Rows up to twice this length are scanned at once, longer ones in blocks of it. */
const BLOCK = 32;

/** One kind of scan, along the last dim: of a short row, the value before the first, how two neighbours combine. */
interface Scan<T> {
  readonly short: (x: T) => T;
  readonly identity: number;
  readonly combine: (before: T, x: T) => T;
}

export abstract class ScanTensor extends OrderTensor {
  #scan(how: Scan<this>): this {
    const n = this.shape.at(-1) as number;
    if (n <= 2 * BLOCK) return n <= 1 || this.size === 0 ? this : how.short(this);
    const front = this.shape.slice(0, -1);
    const blocks = Math.ceil(n / BLOCK);
    const added = (t: this, before: number, after: number) =>
      t.pad(
        range(t.ndim).map((i): [number, number] => (i === t.ndim - 1 ? [before, after] : [0, 0])),
        how.identity,
      );
    const rows = added(this, 0, blocks * BLOCK - n).reshape([...front, blocks, BLOCK]);
    const inner = how.short(rows).contiguous();
    const totals = inner.part(inner.ndim - 1, BLOCK - 1, BLOCK).reshape([...front, blocks]);
    const before = added(totals.part(front.length, 0, blocks - 1).#scan(how), 1, 0);
    const out = how.combine(before.unsqueeze(-1).expand(inner.shape), inner);
    return out.reshape([...front, blocks * BLOCK]).part(front.length, 0, n);
  }
  /** Each row beside itself: element j as element i sees it, `otherwise` where j comes after i. */
  #upTo(otherwise: number): this {
    const n = this.shape.at(-1) as number;
    const full = [...this.shape, n];
    const seen = this.counting(n).expand(full).le(this.counting(n).unsqueeze(-1).expand(full));
    const x = this.unsqueeze(-2).expand(full);
    return seen.where(x, x.wrap(x.lazydata.const(otherwise)));
  }
  /** Scans with a reduce op; no gradient but through `composed`. */
  #reduceScan(op: ReduceOp, reduce: (x: this, axes: readonly number[]) => this): this {
    const identity = Number(REDUCE[op].identity(this.dtype));
    return this.#scan({
      short: (x) => reduce(x.#upTo(identity), [x.ndim]).reshape(x.shape),
      identity,
      combine: (a, b) => a.alu(REDUCE[op].combine, b),
    });
  }
  #runningMax(): this {
    return this.#reduceScan("REDUCE_MAX", (x, axes) => x.wrap(x.lazydata.r("REDUCE_MAX", axes)));
  }

  /**
   * The running sum along `dim`.
   * @example
   * await new Tensor([1, 2, 3]).cumsum(0).tolist() // => [1, 3, 6]
   */
  cumsum(dim: number, { dtype }: Typed = {}): this {
    if (dtype !== undefined) return this.cast(dtype).cumsum(dim).cast(dtype);
    if (isNarrow(this.dtype)) return this.cast(dtypes.float32).cumsum(dim).cast(this.dtype);
    return this.cast(sumDType(this.dtype)).alongLast("cumsum", dim, (x) => [x.#sums()] as const)[0];
  }
  #sums(): this {
    const out = this.detach().#reduceScan("SUM", (x, axes) => x.reduceSum(axes));
    return this.wrap(out.lazydata, [this], (g) => [g.flip(-1).#sums().flip(-1)]);
  }
  /**
   * The running product along `dim`. Integers multiply in 64 bits.
   * @example
   * await new Tensor([0.5, 2, 3]).cumprod(0).tolist() // => [0.5, 1, 3]
   */
  cumprod(dim: number, { dtype }: Typed = {}): this {
    if (dtype !== undefined) return this.cast(dtype).cumprod(dim).cast(dtype);
    if (isNarrow(this.dtype)) return this.cast(dtypes.float32).cumprod(dim).cast(this.dtype);
    const running = (x: this) => x.#reduceScan("PROD", (y, axes) => y.reduceProd(axes));
    return this.cast(productType(this.dtype)).alongLast("cumprod", dim, (x) => [running(x)] as const)[0];
  }
  /**
   * `[values, indices]` of the largest element so far along `dim`; of equal ones the last. NaN stays.
   * @example
   * await new Tensor([1, 3, 2]).cummax(0)[0].tolist() // => [1, 3, 3]
   */
  cummax(dim: number): [this, this] {
    return this.#extremes("cummax", dim, (x) => x);
  }
  /**
   * `[values, indices]` of the smallest element so far along `dim`; of equal ones the last. NaN stays.
   * @example
   * await new Tensor([2, 3, 1]).cummin(0)[0].tolist() // => [2, 2, 1]
   */
  cummin(dim: number): [this, this] {
    return this.#extremes("cummin", dim, (x) => {
      if (x.dtype.isFloat) return x.neg();
      return x.dtype.kind === "bool" ? x.logicalNot() : x.turned();
    });
  }
  /** `turn` makes the smallest the largest, and back. */
  #extremes(method: string, dim: number, turn: (x: this) => this): [this, this] {
    return this.alongLast(method, dim, (x): [this, this] => {
      const key = turn(x.detach());
      const most = key.#runningMax();
      const n = x.shape.at(-1) as number;
      // a new one takes over where it reaches the maximum, and keeps it until the next does
      const takes = key.eq(most).bitwiseOr(key.isnan());
      const places = takes.where(this.counting(n).expand(x.shape), 0).#runningMax();
      return [this.wrap(turn(most).lazydata, [x], (g) => [g.placeLast(places, n)]), places];
    });
  }
  /**
   * log(cumsum(exp(x))) along `dim`, safe for large values.
   * @example
   * await new Tensor([0, 0]).logcumsumexp(0).tolist() // => [0, 0.6931471824645996]
   */
  logcumsumexp(dim: number): this {
    const x = this.cast(toFloat(this.dtype));
    if (isNarrow(x.dtype)) return x.cast(dtypes.float32).logcumsumexp(dim).cast(x.dtype);
    return x.alongLast("logcumsumexp", dim, (y) => [y.#logSums()] as const)[0];
  }
  #logSums(): this {
    const out = this.detach().#scan({
      short: (x) => {
        const upTo = x.#upTo(-Infinity);
        const most = upTo.max(-1, true);
        const shift = most.isinf().where(0, most); // an infinite one must not meet itself in a difference
        return upTo.sub(shift).exp().sum(-1, true).log().add(shift).reshape(x.shape);
      },
      identity: -Infinity,
      combine: (a, b) => a.logaddexp(b),
    });
    return this.wrap(out.lazydata, [this], (g, y) => {
      // exp(x_i) times the sum of g_j / exp(y_j) over j >= i, for the signs apart, since it is summed as logarithms
      const back = (size: this) => size.log().sub(y).flip(-1).#logSums().flip(-1).add(this).exp();
      return [back(g.maximum(0)).sub(back(g.neg().maximum(0)))];
    });
  }
}
