// Running reductions: cumsum, cumprod, cummax, cummin, logcumsumexp. A short row is one kernel, in which each
// element reduces what is before it; a long one is cut into blocks, whose totals are scanned in turn:
// little extra memory and n·32 work.

import { dtypes, sumDType } from "../../dtype.ts";
import { range } from "../../helpers.ts";
import { REDUCE, type ReduceOp } from "../../ops.ts";
import { cast, contiguous, counting, detach, wrap } from "../core.ts";
import {
  add,
  alu,
  bitwiseOr,
  eq,
  exp,
  isNarrow,
  le,
  log,
  maximum,
  neg,
  sub,
  toFloat,
  where,
} from "../math/arithmetic.ts";
import { logaddexp } from "../math/further.ts";
import { isinf, isnan } from "../math/rounding.ts";
import { pad } from "../movement/arrange.ts";
import { expand, flip, reduceSum, reshape, unsqueeze } from "../movement/views.ts";
import type { Tensor } from "../tensor.ts";
import { requireFit } from "../wholes.ts";
import { alongLast, placeLast } from "./order.ts";
import type { Typed } from "./reduce.ts";
import { dimsOf, max, sum, upsideDown } from "./reduce.ts";
import { part, productType, reduceProd } from "./totals.ts";

/** Rows up to twice this length are scanned at once, longer ones in blocks of it. */
const BLOCK = 32;

/**
 * One kind of scan, along the last dim: of a short row, the value before the
 * first, how two neighbours combine.
 */
interface PrefixScan<T> {
  readonly short: (x: T) => T;
  readonly identity: number;
  readonly combine: (before: T, x: T) => T;
}

function scan(self: Tensor, how: PrefixScan<Tensor>): Tensor {
  const n = self.shape.at(-1) as number;
  if (n <= 2 * BLOCK) return n <= 1 || self.size === 0 ? self : how.short(self);
  const front = self.shape.slice(0, -1);
  const blocks = Math.ceil(n / BLOCK);
  const added = (t: Tensor, before: number, after: number) =>
    pad(
      t,
      range(t.ndim).map((i): [number, number] => (i === t.ndim - 1 ? [before, after] : [0, 0])),
      how.identity,
    );
  const rows = reshape(added(self, 0, blocks * BLOCK - n), [...front, blocks, BLOCK]);
  const inner = contiguous(how.short(rows));
  const totals = reshape(part(inner, inner.ndim - 1, BLOCK - 1, BLOCK), [...front, blocks]);
  const before = added(scan(part(totals, front.length, 0, blocks - 1), how), 1, 0);
  const out = how.combine(expand(unsqueeze(before, -1), inner.shape), inner);
  return part(reshape(out, [...front, blocks * BLOCK]), front.length, 0, n);
}
/** Each row beside itself: element j as element i sees it, `otherwise` where j comes after i. */
function upToOf(self: Tensor, otherwise: number): Tensor {
  const n = self.shape.at(-1) as number;
  const full = [...self.shape, n];
  const seen = le(expand(counting(self, n), full), expand(unsqueeze(counting(self, n), -1), full));
  const x = expand(unsqueeze(self, -2), full);
  return where(seen, x, wrap(x.lazydata.const(otherwise)));
}
/** Scans with a reduce op. A gradient flows where `reduce` records one. */
function reduceScan(
  self: Tensor,
  op: ReduceOp,
  reduce: (x: Tensor, axes: readonly number[]) => Tensor,
): Tensor {
  const identity = Number(REDUCE[op].identity(self.dtype));
  return scan(self, {
    short: (x) => reshape(reduce(upToOf(x, identity), [x.ndim]), x.shape),
    identity,
    combine: (a, b) => alu(a, REDUCE[op].combine, b),
  });
}
function runningMax(self: Tensor): Tensor {
  return reduceScan(self, "REDUCE_MAX", (x, axes) => wrap(x.lazydata.r("REDUCE_MAX", axes)));
}

export function cumsum(self: Tensor, dim: number, { dtype }: Typed = {}): Tensor {
  if (dtype !== undefined) return cast(cumsum(cast(self, dtype), dim), dtype);
  if (isNarrow(self.dtype)) return cast(cumsum(cast(self, dtypes.float32), dim), self.dtype);
  requireFit(self, "cumsum", dimsOf(self, "cumsum", dim));
  return alongLast(cast(self, sumDType(self.dtype)), "cumsum", dim, (x) => [sums(x)] as const)[0];
}
function sums(self: Tensor): Tensor {
  const out = reduceScan(detach(self), "SUM", (x, axes) => reduceSum(x, axes));
  return wrap(out.lazydata, [self], (g) => [flip(sums(flip(g, -1)), -1)]);
}
export function cumprod(self: Tensor, dim: number, { dtype }: Typed = {}): Tensor {
  if (dtype !== undefined) return cast(cumprod(cast(self, dtype), dim), dtype);
  if (isNarrow(self.dtype)) return cast(cumprod(cast(self, dtypes.float32), dim), self.dtype);
  requireFit(self, "cumprod", dimsOf(self, "cumprod", dim));
  const running = (x: Tensor) => reduceScan(x, "PROD", (y, axes) => reduceProd(y, axes));
  return alongLast(cast(self, productType(self.dtype)), "cumprod", dim, (x) => [running(x)] as const)[0];
}
export function cummax(self: Tensor, dim: number): [Tensor, Tensor] {
  return extremes(self, "cummax", dim, (x) => x);
}
export function cummin(self: Tensor, dim: number): [Tensor, Tensor] {
  return extremes(self, "cummin", dim, upsideDown);
}
/** `turn` makes the smallest the largest, and back. */
function extremes(self: Tensor, method: string, dim: number, turn: (x: Tensor) => Tensor): [Tensor, Tensor] {
  return alongLast(self, method, dim, (x): [Tensor, Tensor] => {
    const key = turn(detach(x));
    const most = runningMax(key);
    const n = x.shape.at(-1) as number;
    // a new one takes over where it reaches the maximum, and keeps it until the next does
    const takes = bitwiseOr(eq(key, most), isnan(key));
    const places = runningMax(where(takes, expand(counting(self, n), x.shape), 0));
    return [wrap(turn(most).lazydata, [x], (g) => [placeLast(g, places, n)]), places];
  });
}
export function logcumsumexp(self: Tensor, dim: number): Tensor {
  const x = cast(self, toFloat(self.dtype));
  if (isNarrow(x.dtype)) return cast(logcumsumexp(cast(x, dtypes.float32), dim), x.dtype);
  return alongLast(x, "logcumsumexp", dim, (y) => [logSums(y)] as const)[0];
}
function logSums(self: Tensor): Tensor {
  const out = scan(detach(self), {
    short: (x) => {
      const upTo = upToOf(x, -Infinity);
      const most = max(upTo, -1, true);
      const shift = where(isinf(most), 0, most); // an infinite one must not meet itself in a difference
      return reshape(add(log(sum(exp(sub(upTo, shift)), -1, true)), shift), x.shape);
    },
    identity: -Infinity,
    combine: (a, b) => logaddexp(a, b),
  });
  return wrap(out.lazydata, [self], (g, y) => {
    // exp(x_i) times the sum of g_j / exp(y_j) over j >= i, for the signs apart,
    // since it is summed as logarithms
    const back = (size: Tensor) => exp(add(flip(logSums(flip(sub(log(size), y), -1)), -1), self));
    return [sub(back(maximum(g, 0)), back(maximum(neg(g), 0)))];
  });
}
