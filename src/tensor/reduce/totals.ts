// What a row of elements comes to, beyond sum and max: products, truths, positions of extremes, norms.
// statistics.ts has the rarer ones.

import { type DType, type DTypeLike, dtypes } from "../../dtype.ts";
import { range } from "../../helpers.ts";
import { isRecording } from "../autograd.ts";
import { cast, counting, detach, wrap } from "../core.ts";
import { fullLike } from "../creation/creation.ts";
import {
  add,
  bitwiseOr,
  div,
  eq,
  exp,
  isNarrow,
  log,
  logicalNot,
  mul,
  ne,
  neg,
  sub,
  toFloat,
  where,
  zero,
} from "../math/arithmetic.ts";
import { pow } from "../math/elementary.ts";
import { abs, isinf, isnan, rsub, sign } from "../math/rounding.ts";
import { expand, flatten, permute, reduceSum, reshape, shrink, unsqueeze } from "../movement/views.ts";
import type { Tensor } from "../tensor.ts";
import { requireFit } from "../wholes.ts";
import type { Axes, Typed } from "./reduce.ts";
import { countOf, dimsOf, drop, extreme, max, min, requireElements, turned } from "./reduce.ts";

export interface DiffOptions<T> {
  readonly prepend?: T | undefined;
  readonly append?: T | undefined;
}
/** What a product of this type is computed and returned in. */
export const productType = (d: DType): DType => {
  if (d.isFloat || d === dtypes.uint64) return d;
  return d.kind === "bool" ? dtypes.int32 : dtypes.int64;
};

/** The product over `axes`, which stay as dims of size 1. */
export function reduceProd(self: Tensor, axes: readonly number[]): Tensor {
  const { shape } = self.lazydata;
  return wrap(self.lazydata.r("PROD", axes), [self], (g) => {
    if (isRecording()) return [mul(expand(g, shape), othersOf(self, axes))];
    // the product of all others is out / x where no element is zero; with one zero only the zero has a
    // product of others that is not 0, with two or more no element has
    const zero = eq(self, 0);
    const rest = where(zero, 1, self);
    const product = reduceProd(rest, axes);
    const zeros = reduceSum(cast(zero, dtypes.int32), axes);
    const [p, n, flow] = [product, zeros, g].map((t) => expand(t, shape)) as [Tensor, Tensor, Tensor];
    const others = where(eq(n, cast(zero, dtypes.int32)), div(p, rest), 0);
    return [mul(flow, others)];
  });
}
/**
 * For each element the product of the others along `axes`, which can be differentiated whatever is zero. n²
 * work: only for gradients that are to be differentiated again.
 */
function othersOf(self: Tensor, axes: readonly number[]): Tensor {
  const front = range(self.ndim).filter((d) => !axes.includes(d));
  const moved = permute(self, [...front, ...axes]);
  const lead = front.map((d) => self.shape[d] as number);
  const n = countOf(self, axes);
  const full = [...lead, n, n];
  const own = eq(expand(unsqueeze(counting(self, n), -1), full), expand(counting(self, n), full));
  const others = reduceProd(where(own, 1, expand(reshape(moved, [...lead, 1, n]), full)), [full.length - 1]);
  const order = [...front, ...axes];
  return permute(
    reshape(others, moved.shape),
    range(self.ndim).map((d) => order.indexOf(d)),
  );
}
export function prod(self: Tensor, dim?: Axes, keepdim = false, { dtype }: Typed = {}): Tensor {
  if (dtype !== undefined) return cast(prod(cast(self, dtype), dim, keepdim), dtype);
  if (isNarrow(self.dtype)) return cast(prod(cast(self, dtypes.float32), dim, keepdim), self.dtype);
  const axes = dimsOf(self, "prod", dim);
  requireFit(self, "prod", axes);
  return drop(reduceProd(cast(self, productType(self.dtype)), axes), axes, keepdim);
}

// ---- truths ----

export function any(self: Tensor, dim?: Axes, keepdim = false): Tensor {
  if (typeof dim === "object" && dim.length === 0) return ne(self, 0); // here torch reduces nothing
  const axes = dimsOf(self, "any", dim);
  return drop(wrap(ne(self, 0).lazydata.r("REDUCE_MAX", axes)), axes, keepdim);
}
export function all(self: Tensor, dim?: Axes, keepdim = false): Tensor {
  dimsOf(self, "all", dim);
  return logicalNot(any(logicalNot(self), dim, keepdim));
}
// ---- extremes ----

export function argmax(self: Tensor, dim?: number | null, keepdim = false): Tensor {
  return argmaxBy(self, "argmax", dim ?? undefined, keepdim, (x) => x);
}
export function argmin(self: Tensor, dim?: number | null, keepdim = false): Tensor {
  return argmaxBy(self, "argmin", dim ?? undefined, keepdim, (x) => {
    if (x.dtype.isFloat) return neg(x);
    return x.dtype.kind === "bool" ? logicalNot(x) : turned(x);
  });
}
function argmaxBy(
  self: Tensor,
  method: string,
  dim: number | undefined,
  keepdim: boolean,
  key: (x: Tensor) => Tensor,
): Tensor {
  if (dim === undefined) {
    const at = argmaxBy(flatten(self), method, 0, true, key);
    return reshape(at, keepdim ? self.shape.map(() => 1) : []);
  }
  const axes = requireElements(self, method, dim);
  const [at] = axes;
  if (at === undefined) return fullLike(self, 0, { dtype: dtypes.int32 });
  const x = key(detach(self));
  const { shape } = self;
  const n = shape[at] as number;
  const best = expand(max(x, at, true), shape);
  const chosen = bitwiseOr(eq(x, best), isnan(x));
  // counted from the end, so that the largest is the first
  const place = rsub(
    expand(
      reshape(
        counting(self, n),
        shape.map((_, i) => (i === at ? n : 1)),
      ),
      shape,
    ),
    n,
  );
  return drop(rsub(max(where(chosen, place, 0), at, true), n), axes, keepdim);
}
export function amax(self: Tensor, dim?: Axes, keepdim = false): Tensor {
  return extreme(self, "amax", dim, keepdim, "equal");
}
export function amin(self: Tensor, dim?: Axes, keepdim = false): Tensor {
  return extreme(self, "amin", dim, keepdim, "equal");
}
export function maxWithIndices(self: Tensor, dim: number, keepdim = false): [Tensor, Tensor] {
  return [max(self, dim, keepdim), argmax(self, dim, keepdim)];
}
export function minWithIndices(self: Tensor, dim: number, keepdim = false): [Tensor, Tensor] {
  return [min(self, dim, keepdim), argmin(self, dim, keepdim)];
}

// ---- sums of another kind ----

export function logsumexp(self: Tensor, dim?: Axes, keepdim = false): Tensor {
  const axes = dimsOf(self, "logsumexp", dim);
  const x = cast(self, toFloat(self.dtype));
  if (isNarrow(x.dtype)) return cast(logsumexp(cast(x, dtypes.float32), dim, keepdim), x.dtype);
  if (countOf(self, axes) === 0) return drop(log(reduceSum(exp(x), axes)), axes, keepdim);
  const most = max(detach(x), axes.length === 0 ? undefined : axes, true);
  // an infinite maximum is its own result, and must not meet itself in a difference
  const shift = where(isinf(most), 0, most);
  const out = add(log(reduceSum(exp(sub(detach(x), shift)), axes)), shift);
  const { shape } = self.lazydata;
  return drop(
    wrap(out.lazydata, [x], (g, y) => [mul(expand(g, shape), exp(sub(x, expand(y, shape))))]),
    axes,
    keepdim,
  );
}
// ---- norms ----

export function vectorNorm(
  self: Tensor,
  ord = 2,
  dim?: Axes,
  keepdim = false,
  { dtype }: { readonly dtype?: DTypeLike } = {},
): Tensor {
  const x = cast(self, dtype ?? toFloat(self.dtype));
  if (isNarrow(x.dtype)) return cast(vectorNorm(cast(x, dtypes.float32), ord, dim, keepdim), x.dtype);
  const axes = dimsOf(self, "vectorNorm", dim);
  if (ord === 0) {
    const many = drop(reduceSum(cast(ne(x, 0), x.dtype), axes), axes, keepdim);
    return wrap(many.lazydata, [x], () => [zero(x)]);
  }
  if (ord === Infinity) return amax(abs(x), dim, keepdim);
  if (ord === -Infinity) return amin(abs(x), dim, keepdim);
  if (ord < 0) requireElements(self, "vectorNorm", dim);
  const size = abs(detach(x));
  const out = ord === 1 ? reduceSum(size, axes) : pow(reduceSum(pow(size, ord), axes), 1 / ord);
  const { shape } = self.lazydata;
  const norm = wrap(out.lazydata, [x], (g, y) => {
    const flat = bitwiseOr(eq(x, 0), eq(expand(y, shape), 0));
    if (ord === 1) return [mul(expand(g, shape), sign(x))];
    const ratio = where(flat, 1, div(abs(x), where(flat, 1, expand(y, shape))));
    return [where(flat, 0, mul(mul(expand(g, shape), sign(x)), pow(ratio, ord - 1)))];
  });
  return drop(norm, axes, keepdim);
}

// ---- neighbours ----

/** `[start, end)` of one dim; the others stay whole. */
export function part(self: Tensor, at: number, start: number, end: number): Tensor {
  return shrink(
    self,
    range(self.ndim).map((i): [number, number] | null => (i === at ? [start, end] : null)),
  );
}
