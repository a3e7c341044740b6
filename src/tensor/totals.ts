// What a row of elements comes to, beyond sum and max: products, truths, positions of extremes, norms, moments, areas.

import { type DType, type DTypeLike, dtypes } from "../dtype.ts";
import { ArgumentError, ShapeError } from "../errors.ts";
import { range } from "../helpers.ts";
import { ArrangeTensor } from "./arrange.ts";
import { isRecording } from "./autograd.ts";
import { showShape } from "./base.ts";
import { isNarrow, toFloat } from "./math.ts";
import { requireTensors } from "./movement.ts";
import type { Axes, Typed } from "./reduce.ts";

export interface DiffOptions<T> {
  readonly prepend?: T | undefined;
  readonly append?: T | undefined;
}
/** What a product of this type is computed and returned in. */
export const productType = (d: DType): DType => {
  if (d.isFloat || d === dtypes.uint64) return d;
  return d.kind === "bool" ? dtypes.int32 : dtypes.int64;
};

export abstract class TotalTensor extends ArrangeTensor {
  /** The product over `axes`, which stay as dims of size 1. */
  protected reduceProd(axes: readonly number[]): this {
    const { shape } = this.lazydata;
    return this.wrap(this.lazydata.r("PROD", axes), [this], (g) => {
      if (isRecording()) return [g.expand(shape).mul(this.#othersOf(axes))];
      // the product of the others: without zeros out / x; beside one zero only that one has any; beside two none has
      const zero = this.eq(0);
      const rest = zero.where(1, this);
      const product = rest.reduceProd(axes);
      const zeros = zero.cast(dtypes.int32).reduceSum(axes);
      const [p, n, flow] = [product, zeros, g].map((t) => t.expand(shape)) as [this, this, this];
      const others = n.eq(zero.cast(dtypes.int32)).where(p.div(rest), 0);
      return [flow.mul(others)];
    });
  }
  /**
   * For each element the product of the others along `axes`, which can be differentiated whatever is zero. n² work: only
   * for gradients that are to be differentiated again.
   */
  #othersOf(axes: readonly number[]): this {
    const front = range(this.ndim).filter((d) => !axes.includes(d));
    const moved = this.permute([...front, ...axes]);
    const lead = front.map((d) => this.shape[d] as number);
    const n = this.count(axes);
    const full = [...lead, n, n];
    const own = this.counting(n).unsqueeze(-1).expand(full).eq(this.counting(n).expand(full));
    const others = own.where(1, moved.reshape([...lead, 1, n]).expand(full)).reduceProd([full.length - 1]);
    const order = [...front, ...axes];
    return others.reshape(moved.shape).permute(range(this.ndim).map((d) => order.indexOf(d)));
  }
  /**
   * The product over `dim` (all of them by default). Integers multiply in 64 bits: 13 factors overflow 32.
   * @example
   * await new Tensor([2, 3, 0.5]).prod().item() // => 3
   */
  prod(dim?: Axes, keepdim = false, { dtype }: Typed = {}): this {
    if (dtype !== undefined) return this.cast(dtype).prod(dim, keepdim).cast(dtype);
    if (isNarrow(this.dtype)) return this.cast(dtypes.float32).prod(dim, keepdim).cast(this.dtype);
    const axes = this.dims("prod", dim);
    return this.cast(productType(this.dtype)).reduceProd(axes).drop(axes, keepdim);
  }

  // ---- truths ----

  /**
   * Whether an element along `dim` is true (not 0); false where there is none.
   * @example
   * await new Tensor([[0, 0], [0, 2]]).any(1).tolist() // => [false, true]
   */
  any(dim?: Axes, keepdim = false): this {
    if (typeof dim === "object" && dim.length === 0) return this.ne(0); // here torch reduces nothing
    const axes = this.dims("any", dim);
    return this.wrap(this.ne(0).lazydata.r("REDUCE_MAX", axes)).drop(axes, keepdim);
  }
  /**
   * Whether all elements along `dim` are true (not 0); true where there are none.
   * @example
   * await new Tensor([[1, 0], [3, 2]]).all(1).tolist() // => [false, true]
   */
  all(dim?: Axes, keepdim = false): this {
    this.dims("all", dim);
    return this.logicalNot().any(dim, keepdim).logicalNot();
  }
  /**
   * How many elements are not 0.
   * @example
   * await new Tensor([0, 5, 7]).countNonzero().item() // => 2
   */
  countNonzero(dim?: Axes): this {
    this.dims("countNonzero", dim);
    return this.ne(0).sum(dim);
  }

  // ---- extremes ----

  /**
   * Where the largest element along `dim` is: the first of equal ones, NaN before all. Without `dim` the place in the
   * flattened tensor.
   * @example
   * await new Tensor([[1, 5], [7, 3]]).argmax(1).tolist() // => [1, 0]
   */
  argmax(dim?: number | null, keepdim = false): this {
    return this.#argmax("argmax", dim ?? undefined, keepdim, (x) => x);
  }
  /**
   * Where the smallest element along `dim` is: the first of equal ones, NaN before all.
   * @example
   * await new Tensor([[1, 5], [7, 3]]).argmin(1).tolist() // => [0, 1]
   */
  argmin(dim?: number | null, keepdim = false): this {
    return this.#argmax("argmin", dim ?? undefined, keepdim, (x) => {
      if (x.dtype.isFloat) return x.neg();
      return x.dtype.kind === "bool" ? x.logicalNot() : x.turned();
    });
  }
  #argmax(method: string, dim: number | undefined, keepdim: boolean, key: (x: this) => this): this {
    if (dim === undefined) {
      const at = this.flatten().#argmax(method, 0, true, key);
      return at.reshape(keepdim ? this.shape.map(() => 1) : []);
    }
    const axes = this.requireElements(method, dim);
    const [at] = axes;
    if (at === undefined) return this.fullLike(0, { dtype: dtypes.int32 });
    const x = key(this.detach());
    const { shape } = this;
    const n = shape[at] as number;
    const best = x.max(at, true).expand(shape);
    const chosen = x.eq(best).bitwiseOr(x.isnan());
    // counted from the end, so that the largest is the first
    const place = this.counting(n)
      .reshape(shape.map((_, i) => (i === at ? n : 1)))
      .expand(shape)
      .rsub(n);
    return chosen.where(place, 0).max(at, true).rsub(n).drop(axes, keepdim);
  }
  /**
   * The largest element over one or more dims; equal ones share the gradient.
   * @example
   * await new Tensor([[1, 5], [7, 3]]).amax([0, 1]).item() // => 7
   */
  amax(dim?: Axes, keepdim = false): this {
    return this.extreme("amax", dim, keepdim, "equal");
  }
  /**
   * The smallest element over one or more dims; equal ones share the gradient.
   * @example
   * await new Tensor([[1, 5], [7, 3]]).amin([0, 1]).item() // => 1
   */
  amin(dim?: Axes, keepdim = false): this {
    return this.extreme("amin", dim, keepdim, "equal");
  }
  /**
   * The smallest and the largest element: `[min, max]`.
   * @example
   * await new Tensor([3, 1, 2]).aminmax()[1].item() // => 3
   */
  aminmax(dim?: number, keepdim = false): [this, this] {
    return [this.amin(dim, keepdim), this.amax(dim, keepdim)];
  }
  /**
   * `[values, indices]` of the largest elements along `dim`: torch's max with a dim. The first of equal ones is named,
   * and gets the gradient.
   * @example
   * await Promise.all(new Tensor([[1, 5], [7, 3]]).maxWithIndices(1).map((t) => t.tolist())) // => [[5, 7], [1, 0]]
   */
  maxWithIndices(dim: number, keepdim = false): [this, this] {
    return [this.max(dim, keepdim), this.argmax(dim, keepdim)];
  }
  /**
   * `[values, indices]` of the smallest elements along `dim`: torch's min with a dim. The first of equal ones is named,
   * and gets the gradient.
   * @example
   * await Promise.all(new Tensor([[1, 5], [7, 3]]).minWithIndices(1).map((t) => t.tolist())) // => [[1, 3], [0, 1]]
   */
  minWithIndices(dim: number, keepdim = false): [this, this] {
    return [this.min(dim, keepdim), this.argmin(dim, keepdim)];
  }

  // ---- sums of another kind ----

  /**
   * log(sum(exp(x))) over `dim`, safe for large values.
   * @example
   * await new Tensor([1000, 0]).logsumexp(0).item() // => 1000
   */
  logsumexp(dim?: Axes, keepdim = false): this {
    const axes = this.dims("logsumexp", dim);
    const x = this.cast(toFloat(this.dtype));
    if (isNarrow(x.dtype)) return x.cast(dtypes.float32).logsumexp(dim, keepdim).cast(x.dtype);
    if (this.count(axes) === 0) return x.exp().reduceSum(axes).log().drop(axes, keepdim);
    const most = x.detach().max(axes.length === 0 ? undefined : axes, true);
    // an infinite maximum is its own result, and must not meet itself in a difference
    const shift = most.isinf().where(0, most);
    const out = x.detach().sub(shift).exp().reduceSum(axes).log().add(shift);
    const { shape } = this.lazydata;
    return this.wrap(out.lazydata, [x], (g, y) => [g.expand(shape).mul(x.sub(y.expand(shape)).exp())]).drop(
      axes,
      keepdim,
    );
  }
  /**
   * The sum of what is not NaN.
   * @example
   * await new Tensor([1, NaN, 2]).nansum().item() // => 3
   */
  nansum(dim?: Axes, keepdim = false, typed: Typed = {}): this {
    return this.isnan().where(0, this).sum(dim, keepdim, typed);
  }
  /**
   * The mean of what is not NaN.
   * @example
   * await new Tensor([1, NaN, 2]).nanmean().item() // => 1.5
   */
  nanmean(dim?: Axes, keepdim = false, typed: Typed = {}): this {
    return this.nansum(dim, keepdim, typed).div(this.isnan().logicalNot().sum(dim, keepdim));
  }
  /**
   * `[variance, mean]`
   * @example
   * await new Tensor([1, 2, 3]).varMean()[0].item() // => 1
   */
  varMean(dim?: Axes, keepdim = false, correction = 1): [this, this] {
    return [this.var(dim, keepdim, correction), this.mean(dim, keepdim)];
  }
  /**
   * `[standard deviation, mean]`
   * @example
   * await new Tensor([1, 2, 3]).stdMean()[1].item() // => 2
   */
  stdMean(dim?: Axes, keepdim = false, correction = 1): [this, this] {
    return [this.std(dim, keepdim, correction), this.mean(dim, keepdim)];
  }

  // ---- norms ----

  /**
   * (sum of |x|^ord)^(1/ord) over `dim`; 0 counts what is not 0, ±Infinity takes the largest or smallest size.
   * @example
   * await new Tensor([3, -4]).vectorNorm().item() // => 5
   */
  vectorNorm(ord = 2, dim?: Axes, keepdim = false, { dtype }: { readonly dtype?: DTypeLike } = {}): this {
    const x = this.cast(dtype ?? toFloat(this.dtype));
    if (isNarrow(x.dtype)) return x.cast(dtypes.float32).vectorNorm(ord, dim, keepdim).cast(x.dtype);
    const axes = this.dims("vectorNorm", dim);
    if (ord === 0) {
      const many = x.ne(0).cast(x.dtype).reduceSum(axes).drop(axes, keepdim);
      return this.wrap(many.lazydata, [x], () => [x.zero()]);
    }
    if (ord === Infinity) return x.abs().amax(dim, keepdim);
    if (ord === -Infinity) return x.abs().amin(dim, keepdim);
    if (ord < 0) this.requireElements("vectorNorm", dim);
    const size = x.detach().abs();
    const out =
      ord === 1
        ? size.reduceSum(axes)
        : size
            .pow(ord)
            .reduceSum(axes)
            .pow(1 / ord);
    const { shape } = this.lazydata;
    const norm = this.wrap(out.lazydata, [x], (g, y) => {
      const flat = x.eq(0).bitwiseOr(y.expand(shape).eq(0));
      if (ord === 1) return [g.expand(shape).mul(x.sign())];
      const ratio = flat.where(1, x.abs().div(flat.where(1, y.expand(shape))));
      return [
        flat.where(
          0,
          g
            .expand(shape)
            .mul(x.sign())
            .mul(ratio.pow(ord - 1)),
        ),
      ];
    });
    return norm.drop(axes, keepdim);
  }
  /**
   * torch's older name for vectorNorm; "fro" is 2.
   * @example
   * await new Tensor([[3, 0], [0, 4]]).norm().item() // => 5
   */
  norm(p: number | "fro" = 2, dim?: Axes, keepdim = false, typed: Typed = {}): this {
    return this.vectorNorm(p === "fro" ? 2 : p, dim, keepdim, typed);
  }
  /**
   * The norm of the difference.
   * @example
   * await new Tensor([1, 1]).dist(new Tensor([4, 5])).item() // => 5
   */
  dist(x: this, p = 2): this {
    requireTensors("dist", { x });
    return this.sub(x).vectorNorm(p);
  }

  // ---- neighbours ----

  /** `[start, end)` of one dim; the others stay whole. */
  protected part(at: number, start: number, end: number): this {
    return this.shrink(
      range(this.ndim).map((i): [number, number] | null => (i === at ? [start, end] : null)),
    );
  }
  /**
   * The differences between neighbours along `dim`, `n` times over; `prepend` and `append` are put at the ends first.
   * @example
   * await new Tensor([1, 4, 9]).diff().tolist() // => [3, 5]
   */
  diff(n = 1, dim = -1, { prepend, append }: DiffOptions<this> = {}): this {
    if (this.ndim === 0)
      throw new ShapeError("diff: a 0-d tensor has no neighbours; expected at least one dim");
    if (!Number.isInteger(n) || n < 0)
      throw new ArgumentError(`diff: n is ${n}, expected an integer from 0 up`);
    const at = this.axis("diff", dim);
    const ends = [this, append].filter((t) => t !== undefined);
    const joined = prepend === undefined ? this.cat(ends.slice(1), at) : prepend.cat(ends, at);
    let out: this = n === 0 ? this : joined;
    for (let i = 0; i < n; i++) {
      const size = out.shape[at] as number;
      const [after, before] = [out.part(at, Math.min(1, size), size), out.part(at, 0, Math.max(0, size - 1))];
      out = out.dtype.kind === "bool" ? after.ne(before) : after.sub(before);
    }
    return out;
  }
  /**
   * The area below the samples along `dim`, `dx` apart or at `x`.
   * @example
   * await new Tensor([1, 2, 3]).trapezoid().item() // => 4
   */
  trapezoid({
    x,
    dx = 1,
    dim = -1,
  }: {
    readonly x?: TotalTensor;
    readonly dx?: number;
    readonly dim?: number;
  } = {}): this {
    const at = this.axis("trapezoid", dim);
    const n = this.shape[at] as number;
    if (n === 0) return this.sum(at).cast(toFloat(this.dtype));
    const mean = this.part(at, 1, n)
      .add(this.part(at, 0, n - 1))
      .mul(0.5);
    if (x === undefined) return mean.sum(at).mul(dx);
    const places = x as this;
    if (places.shape.at(places.ndim === 1 ? 0 : at) !== n) {
      throw new ShapeError(
        `trapezoid: x has shape ${showShape(places.shape)} for samples of shape ${showShape(this.shape)}; expected ${n} places along dim ${dim}`,
      );
    }
    const gaps = places.diff(1, places.ndim === 1 ? 0 : at);
    const aligned = places.ndim === 1 ? gaps.reshape(this.shape.map((_, i) => (i === at ? n - 1 : 1))) : gaps;
    return mean.mul(aligned).sum(at);
  }
}
