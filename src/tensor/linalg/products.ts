// Products of vectors and matrices: the matmul family and outer products. All are views, one elementwise
// product and one sum, so each is a kernel and differentiable by itself. contractions.ts has the others.

import { imageProduct } from "#tensor/images";
import { dtypes, promote, sumDType } from "../../dtype.ts";
import { ShapeError } from "../../errors.ts";
import type { Sint } from "../../shape/symbolic.ts";
import { cast } from "../core.ts";
import { isNarrow, mul } from "../math/arithmetic.ts";
import { reshape, transpose, unsqueeze } from "../movement/views.ts";
import { sum } from "../reduce/reduce.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import { requireProduct } from "../wholes.ts";

/** `beta * input + alpha * product` */
export interface Scales {
  readonly beta?: number;
  readonly alpha?: number;
}

export const shapes = (...ts: readonly Tensor[]): string => ts.map((t) => showShape(t.shape)).join(" and ");

export function dot(self: Tensor, w: Tensor): Tensor {
  return product(self, "dot", w);
}
export function product(self: Tensor, method: string, w: Tensor): Tensor {
  const [n, m] = [self.ndim, w.ndim];
  if (n === 0 || m === 0) {
    throw new ShapeError(
      `${method}: got ${showShape(self.shape)} and ${showShape(w.shape)}; both need at least one dim (mul multiplies scalars)`,
    );
  }
  const inner = -Math.min(m, 2);
  const [k, kw] = [self.lazydata.shape.at(-1), w.lazydata.shape.at(inner)];
  if (k !== kw) {
    throw new ShapeError(
      `${method}: cannot multiply ${showShape(self.shape)} by ${showShape(w.shape)}; dim -1 of the first is ${k}, dim ${inner} of the second is ${kw}, expected equal`,
    );
  }
  if (isNarrow(self.dtype) && isNarrow(w.dtype)) {
    const type = promote(self.dtype, w.dtype);
    return cast(product(cast(self, dtypes.float32), method, cast(w, dtypes.float32)), type);
  }
  // small integers and bools multiply in the type that they add up in
  const type = promote(self.dtype, w.dtype);
  if (sumDType(type) !== type) return product(cast(self, sumDType(type)), method, cast(w, sumDType(type)));
  requireProduct(method, self, w);
  const extra = Math.min(n - 1, m - 1, 1);
  const ones = Array.from({ length: extra }, () => 1);
  const { shape: a } = self.lazydata;
  const { shape: b } = w.lazydata;
  const left = reshape(self, [...a.slice(0, -1), ...ones, a.at(-1) as Sint]);
  const right = transpose(reshape(w, [...b.slice(0, -2), ...ones, ...b.slice(inner)]), -1, inner);
  return imageProduct(self, w) ?? sum(mul(left, right), -1);
}
export function matmul(self: Tensor, w: Tensor): Tensor {
  return product(self, "matmul", w);
}

export function requireDims(
  self: Tensor,
  method: string,
  others: readonly Tensor[],
  wanted: readonly number[],
): void {
  const all = [self, ...others];
  if (all.every((t, i) => t.ndim === wanted[i])) return;
  const names = ["a number", "a vector", "a matrix", "a batch of matrices"];
  throw new ShapeError(
    `${method}: takes ${wanted.map((n) => names[n]).join(" and ")}, got ${shapes(...all)}; matmul takes any dims`,
  );
}

// ---- the matmul family ----

export function mm(self: Tensor, mat2: Tensor): Tensor {
  requireDims(self, "mm", [mat2], [2, 2]);
  return matmul(self, mat2);
}
export function bmm(self: Tensor, mat2: Tensor): Tensor {
  requireDims(self, "bmm", [mat2], [3, 3]);
  if (self.shape[0] !== mat2.shape[0]) {
    throw new ShapeError(
      `bmm: batches differ: ${shapes(self, mat2)}; dim 0 must be equal (matmul broadcasts)`,
    );
  }
  return matmul(self, mat2);
}
export function mv(self: Tensor, vec: Tensor): Tensor {
  requireDims(self, "mv", [vec], [2, 1]);
  return matmul(self, vec);
}
export function outer(self: Tensor, vec2: Tensor): Tensor {
  requireDims(self, "outer", [vec2], [1, 1]);
  return mul(unsqueeze(self, 1), unsqueeze(vec2, 0));
}
