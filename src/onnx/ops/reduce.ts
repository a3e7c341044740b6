// Sums and other reductions, softmax and its relatives, running sums, products of matrices.

import { bounds, dtypes } from "../../dtype.ts";
import { range } from "../../helpers.ts";
import { sprod } from "../../shape/symbolic.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { cast, cut, dims, int64, sizeOf, sizes, widened, wideOf } from "./common.ts";
import {
  type Call,
  flag,
  float,
  int,
  ints,
  type OpTable,
  op,
  string,
  type Versions,
  versions,
} from "./op.ts";

type Reducer = (x: Tensor, axes: number[], keep: boolean) => Tensor;

/** What a reduction of nothing gives. */
type Empty = "zero" | "one" | "lowest" | "highest" | "nan";
function nothing(x: Tensor, shape: readonly number[], empty: Empty): Tensor {
  const { dtype } = x;
  const [low, high] = bounds(dtype);
  const value = { zero: 0, one: 1, lowest: low, highest: high, nan: dtype.isFloat ? Number.NaN : 0 }[empty];
  return Tensor.full([...shape], value, { dtype, device: x.device });
}

function reduceOver(call: Call, axes: readonly number[], keep: boolean, f: Reducer, empty: Empty): Tensor {
  const x = call.t(0);
  const at = call.axes(axes, x.ndim);
  if (at.some((d) => dims(x)[d] === 0)) {
    const shape = keep
      ? sizes(x).map((s, d) => (at.includes(d) ? 1 : s))
      : sizes(x).filter((_, d) => !at.includes(d));
    return nothing(x, shape, empty);
  }
  return cast(f(x, at, keep), x.dtype);
}

/** Axes were an attribute until version 13 or 18, and are an input since. */
function reduction(f: Reducer, empty: Empty, onInput = 18): Versions {
  return versions(
    op({ axes: ints(), keepdims: flag(true) }, (c) => {
      return reduceOver(c, c.attr.axes ?? range(c.t(0).ndim), c.attr.keepdims, f, empty);
    }),
    op(
      { keepdims: flag(true), noop_with_empty_axes: flag(false) },
      async (c) => {
        const given = await c.maybeInts(1);
        const isAll = given === undefined || given.length === 0;
        if (isAll && c.attr.noop_with_empty_axes) return f(c.t(0), [], true);
        return reduceOver(c, isAll ? range(c.t(0).ndim) : given, c.attr.keepdims, f, empty);
      },
      onInput,
    ),
  );
}
const sum = (x: Tensor, axes: number[], keep: boolean): Tensor =>
  axes.length === 0 ? x : x.sum(axes, keep, { dtype: wideOf(x.dtype) });
const asFloat = (x: Tensor): Tensor => (x.dtype.isFloat ? cast(x, wideOf(x.dtype)) : x.cast(dtypes.float64));

const extreme =
  (f: "max" | "min"): Reducer =>
  (x, axes, keep) => {
    if (axes.length === 0) return x;
    if (x.dtype === dtypes.bool) return x.cast(dtypes.uint8)[f](axes, keep);
    return x[f](axes, keep);
  };
const logSumExp: Reducer = (x, axes, keep) => {
  const y = asFloat(x);
  return axes.length === 0 ? y : y.logsumexp(axes, keep);
};

function argBest(method: "argmax" | "argmin"): Versions {
  return op({ axis: int(0), keepdims: flag(true), select_last_index: flag(false) }, (c) => {
    const x = c.t(0);
    const axis = c.axis(c.attr.axis, x.ndim);
    if (!c.attr.select_last_index) return int64(x[method](axis, c.attr.keepdims));
    const last = x.flip(axis)[method](axis, c.attr.keepdims);
    return int64(last.neg().add(sizeOf(x, axis) - 1));
  });
}

/** Until version 13 all dims from the axis on were one. */
function alongAxis(f: (x: Tensor, axis: number) => Tensor): Versions {
  return versions(
    op({ axis: int(1) }, (c) => {
      const x = c.t(0);
      const axis = c.attr.axis === x.ndim ? x.ndim : c.axis(c.attr.axis, x.ndim);
      const rows = sprod(dims(x).slice(0, axis));
      return f(x.reshape([rows, sprod(dims(x).slice(axis))]), 1).reshape(dims(x));
    }),
    op({ axis: int(-1) }, (c) => f(c.t(0), c.axis(c.attr.axis, c.t(0).ndim)), 13),
  );
}

function cumulative(f: (x: Tensor, dim: number) => Tensor, start: number): Versions {
  return op({ exclusive: flag(false), reverse: flag(false) }, async (c) => {
    const x = c.t(0);
    const axis = c.axis(await c.scalar(1), x.ndim);
    const turned = c.attr.reverse ? x.flip(axis) : x;
    let total = f(turned, axis);
    if (c.attr.exclusive) {
      const size = sizeOf(x, axis);
      const first = Tensor.full(sizes(x).with(axis, Math.min(1, size)), start, {
        dtype: x.dtype,
        device: x.device,
      });
      const rest = cut(
        total,
        sizes(x).map((count, d) => ({
          start: 0,
          step: 1,
          count: d === axis ? Math.max(0, size - 1) : count,
        })),
      );
      total = size > 1 ? first.cat(cast(rest, x.dtype), axis) : first;
    }
    return cast(c.attr.reverse ? total.flip(axis) : total, x.dtype);
  });
}

/** Halves are multiplied as they are and added up as float32. */
export function matmul(a: Tensor, b: Tensor): Tensor {
  const wide = wideOf(a.dtype);
  return cast(cast(a, wide).matmul(cast(b, wide)), a.dtype);
}

export interface GemmOptions {
  readonly alpha: number;
  readonly beta: number;
  readonly transA: boolean;
  readonly transB: boolean;
}
export function gemm(c: Call<GemmOptions>): Tensor {
  const { alpha, beta, transA, transB } = c.attr;
  const [a, b] = [transA ? c.t(0).transpose(0, 1) : c.t(0), transB ? c.t(1).transpose(0, 1) : c.t(1)];
  const product = matmul(a, b);
  const scaled = alpha === 1 ? product : product.mul(alpha);
  const bias = c.maybe(2);
  if (bias === undefined || beta === 0) return cast(scaled, a.dtype);
  return cast(scaled.add(beta === 1 ? bias : bias.mul(beta)), a.dtype);
}
export const GEMM = { alpha: float(1), beta: float(1), transA: flag(false), transB: flag(false) };

function einsum(c: Call<{ equation: string }>): Tensor {
  const operands = c.all();
  const { dtype } = operands[0] as Tensor;
  const wide = operands.map((x) => cast(x, wideOf(dtype)));
  return cast(Tensor.einsum(c.attr.equation.replaceAll(" ", ""), ...wide), dtype);
}

export const reduce: OpTable = {
  ReduceSum: reduction(sum, "zero", 13),
  ReduceMean: reduction((x, a, k) => (a.length === 0 ? x : asFloat(x).mean(a, k)), "nan"),
  ReduceProd: reduction((x, a, k) => (a.length === 0 ? x : x.prod(a, k, { dtype: wideOf(x.dtype) })), "one"),
  ReduceMax: reduction(extreme("max"), "lowest"),
  ReduceMin: reduction(extreme("min"), "highest"),
  ReduceL1: reduction((x, a, k) => sum(x.dtype.kind === "uint" ? x : x.abs(), a, k), "zero"),
  ReduceL2: reduction((x, a, k) => sum(asFloat(x).square(), a, k).sqrt(), "zero"),
  ReduceSumSquare: reduction((x, a, k) => sum(cast(x, wideOf(x.dtype)).square(), a, k), "zero"),
  ReduceLogSum: reduction((x, a, k) => sum(asFloat(x), a, k).log(), "lowest"),
  ReduceLogSumExp: reduction(logSumExp, "lowest"),
  ArgMax: argBest("argmax"),
  ArgMin: argBest("argmin"),

  Softmax: alongAxis((x, axis) => widened(x, (y) => y.softmax(axis))),
  LogSoftmax: alongAxis((x, axis) => widened(x, (y) => y.logSoftmax(axis))),
  Hardmax: alongAxis((x, axis) => {
    if (x.size === 0) return x;
    const best = x.argmax(axis, true);
    const places = Tensor.arange(sizeOf(x, axis), { dtype: best.dtype, device: x.device });
    return cast(places.reshape(sizes(x).map((_, d) => (d === axis ? -1 : 1))).eq(best), x.dtype);
  }),
  CumSum: cumulative((x, dim) => x.cumsum(dim, { dtype: x.dtype }), 0),
  CumProd: cumulative((x, dim) => x.cumprod(dim, { dtype: x.dtype }), 1),

  MatMul: op({}, (c) => matmul(c.t(0), c.t(1))),
  Gemm: versions(op({ ...GEMM, broadcast: flag(false) }, gemm), op(GEMM, gemm, 7)),
  Einsum: op({ equation: string.required }, einsum),
  Det: op({}, (c) => widened(c.t(0), (x) => x.det())),
};
