// What the factorizations are for: norms of vectors and matrices, ranks, pseudo-inverses, least squares.

import { type DTypeLike, dtypes, toDType } from "../../dtype.ts";
import { ArgumentError, ShapeError } from "../../errors.ts";
import { range } from "../../helpers.ts";
import { cast, contiguous, detach, wrap } from "../core.ts";
import { add, gt, maximum, mul, reciprocal, square, sub, where } from "../math/arithmetic.ts";
import { movedim, squeeze } from "../movement/arrange.ts";
import { narrow } from "../movement/join.ts";
import { axesOf, reshape, transpose, unsqueeze } from "../movement/views.ts";
import type { Axes } from "../reduce/reduce.ts";
import { max, sum } from "../reduce/reduce.ts";
import { amax, amin, vectorNorm } from "../reduce/totals.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import { svd, svdvals } from "./factor.ts";
import { matmul } from "./products.ts";
import { asFloat, matrixSizes } from "./solve.ts";

export type MatrixOrd = "fro" | "nuc" | number;

/** Relative to the largest singular value: what is smaller counts as zero. */
export interface Cutoff {
  readonly atol?: number;
  readonly rtol?: number;
}

export interface LeastSquares<T> {
  readonly solution: T;
  readonly residuals: T;
  readonly rank: T;
  readonly singularValues: T;
}

// ---- norms ----

export function matrixNorm(
  self: Tensor,
  ord: MatrixOrd = "fro",
  dim: readonly [number, number] = [-2, -1],
  keepdim = false,
): Tensor {
  const [r, c] = axesOf(self, "matrixNorm", dim) as [number, number];
  const kept = self.shape.map((s, i) => (i === r || i === c ? 1 : s));
  const value = reshape(matrixNormKept(self, ord, r, c), kept);
  return keepdim
    ? value
    : reshape(
        value,
        kept.filter((_, i) => i !== r && i !== c),
      );
}
function matrixNormKept(self: Tensor, ord: MatrixOrd, r: number, c: number): Tensor {
  if (ord === "fro") return vectorNorm(self, 2, [r, c], true);
  const size = typeof ord === "number" ? Math.abs(ord) : ord;
  if (size === "nuc" || size === 2) {
    const values = svdvals(movedim(self, [r, c], [-2, -1]));
    if (size === "nuc") return sum(values, -1);
    return (ord as number) > 0 ? amax(values, -1) : amin(values, -1);
  }
  if (size !== 1 && size !== Infinity) {
    throw new ArgumentError(
      `matrixNorm: a matrix has no norm of ord ${ord}; expected "fro", "nuc", 1, -1, 2, -2, Infinity or -Infinity`,
    );
  }
  const [along, over] = size === 1 ? [r, c] : [c, r];
  const sums = vectorNorm(self, 1, along, true);
  return (ord as number) > 0 ? amax(sums, over, true) : amin(sums, over, true);
}
export function linalgNorm(
  self: Tensor,
  ord?: MatrixOrd | null,
  dim?: number | readonly number[] | null,
  keepdim = false,
  { dtype }: { readonly dtype?: DTypeLike } = {},
): Tensor {
  if (dtype !== undefined) return linalgNorm(cast(self, toDType(dtype)), ord, dim, keepdim);
  const dims = typeof dim === "number" ? [dim] : (dim ?? undefined);
  if (ord === undefined || ord === null) return vectorNorm(self, 2, dims, keepdim);
  const over = dims ?? range(self.ndim);
  if (over.length === 2) return matrixNorm(self, ord, over as readonly [number, number], keepdim);
  if (over.length === 1 && typeof ord === "number") return vectorNorm(self, ord, over, keepdim);
  throw new ShapeError(
    `linalgNorm: ord ${ord} over ${over.length} dims of shape ${showShape(self.shape)}; expected one dim (with a ` +
      "number) or two; say which in dim",
  );
}
export function norm(
  self: Tensor,
  p: number | "fro" | "nuc" = 2,
  dim?: Axes,
  keepdim = false,
  typed: { readonly dtype?: DTypeLike } = {},
): Tensor {
  if (typeof p === "string" && p !== "fro" && p !== "nuc") {
    throw new ArgumentError(
      `norm: p is "${p}", expected a number (Infinity for the largest), "fro" or "nuc"`,
    );
  }
  if (p !== "nuc") return vectorNorm(self, p === "fro" ? 2 : p, dim, keepdim, typed);
  return linalgNorm(self, "nuc", dim, keepdim, typed);
}

// ---- what singular values tell ----

/** The smallest singular value that counts, for matrices with these values. */
function cutoffOf(self: Tensor, values: Tensor, { atol, rtol }: Cutoff): Tensor {
  const { rows, columns } = matrixSizes(self, "matrixRank");
  const epsilon = values.dtype === dtypes.float64 ? 2 ** -52 : 2 ** -23;
  const relative = rtol ?? (atol === undefined || atol === 0 ? Math.max(rows, columns) * epsilon : 0);
  return maximum(mul(max(detach(values), -1, true), relative), atol ?? 0);
}
export function matrixRank(self: Tensor, cutoff: Cutoff = {}): Tensor {
  const { lead, rows, columns } = matrixSizes(self, "matrixRank");
  if (rows === 0 || columns === 0) return cast(reshape(sum(detach(self), [-2, -1]), lead), dtypes.int32);
  const values = svdvals(detach(self));
  return sum(cast(gt(values, cutoffOf(self, values, cutoff)), dtypes.int32), -1);
}
export function pinv(self: Tensor, cutoff: Cutoff = {}): Tensor {
  const a = asFloat(self);
  matrixSizes(a, "pinv");
  if (a.size === 0) return transpose(a);
  const [u, s, vh] = svd(detach(a), false);
  const counts = gt(s, cutoffOf(a, s, cutoff));
  const inverse = unsqueeze(where(counts, reciprocal(where(counts, s, 1)), 0), -2);
  const found = matmul(mul(transpose(vh), inverse), transpose(u));
  return wrap(contiguous(found).lazydata, [a], (g, p) => {
    const [gTransposed, pt] = [transpose(g), transpose(p)];
    const [left, right] = [matmul(gTransposed, p), matmul(p, gTransposed)];
    // (I - A P) gᵀ P Pᵀ + Pᵀ P gᵀ (I - P A) - Pᵀ g Pᵀ
    const first = matmul(sub(left, matmul(matmul(a, p), left)), pt);
    const second = matmul(pt, sub(right, matmul(matmul(right, p), a)));
    return [sub(add(first, second), matmul(matmul(pt, g), pt))];
  });
}
export function lstsq(self: Tensor, b: Tensor, cutoff: Cutoff = {}): LeastSquares<Tensor> {
  const { lead, rows, columns } = matrixSizes(self, "lstsq");
  const isVector = b.ndim === self.ndim - 1 && showShape(b.shape) === showShape([...lead, rows]);
  const right = isVector ? unsqueeze(b, -1) : b;
  if (right.ndim < 2 || right.shape.at(-2) !== rows) {
    throw new ShapeError(
      `lstsq: ${showShape(b.shape)} is not a right-hand side for ${showShape(self.shape)}; expected ${rows} rows`,
    );
  }
  const a = asFloat(self);
  const solution = matmul(pinv(a, cutoff), cast(right, a.dtype));
  const miss = sum(square(sub(matmul(a, solution), cast(right, a.dtype))), -2);
  return {
    solution: isVector ? squeeze(solution, -1) : solution,
    residuals: rows > columns ? miss : narrow(reshape(miss, -1), 0, 0, 0),
    rank: matrixRank(a, cutoff),
    singularValues: svdvals(a),
  };
}
