// Systems of linear equations: elimination with pivots (solve, inverse, determinants), substitution,
// Cholesky. Each is an unrolled loop over the columns that keeps its state in memory from step to step, so
// that a step is a few small kernels and the graph grows with the size of the matrix, not with its square.
// Nothing looks at values: where torch raises for a singular (or not positive definite) matrix, the result
// here holds infinities and NaN.

import { dtypes } from "../../dtype.ts";
import { ArgumentError, ShapeError } from "../../errors.ts";
import { prod, range } from "../../helpers.ts";
import { cast, contiguous, detach, wrap } from "../core.ts";
import { placesAlong } from "../creation/creation.ts";
import {
  add,
  bitwiseAnd,
  bitwiseOr,
  broadcastTo,
  div,
  eq,
  fmod,
  ge,
  gt,
  idiv,
  log,
  lt,
  mul,
  neg,
  sqrt,
  sub,
  where,
} from "../math/arithmetic.ts";
import { abs } from "../math/rounding.ts";
import { pad, squeeze, tril, triu } from "../movement/arrange.ts";
import { cat, narrow } from "../movement/join.ts";
import { expand, reshape, transpose, unsqueeze } from "../movement/views.ts";
import { max, sum } from "../reduce/reduce.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import { matmul } from "./products.ts";

/** Which factor is wanted. */
export interface CholeskyOptions {
  /** whether the factor is an upper triangle; default: false */
  readonly upper?: boolean;
}
/** Where the unknown is. */
export interface SolveOptions {
  /** whether the matrix is on the left of the unknown; default: true */
  readonly left?: boolean;
}
/** What a triangular system looks like. */
export interface TriangularOptions {
  /** whether the matrix is an upper triangle; default: false */
  readonly upper?: boolean;
  /** whether the matrix is on the left of the unknown; default: true */
  readonly left?: boolean;
  /** whether the diagonal counts as ones; default: false */
  readonly unitriangular?: boolean;
}
// ---- shapes ----

/** Sizes of the matrices in the last two dims. */
export function matrixSizes(
  self: Tensor,
  method: string,
): { lead: readonly number[]; rows: number; columns: number } {
  if (self.ndim < 2) {
    throw new ShapeError(
      `${method}: shape ${showShape(self.shape)} is not a matrix; it takes at least 2 dims`,
    );
  }
  const [rows, columns] = self.shape.slice(-2) as [number, number];
  return { lead: self.shape.slice(0, -2), rows, columns };
}
export function squareSize(self: Tensor, method: string): number {
  const { rows, columns } = matrixSizes(self, method);
  if (rows === columns) return rows;
  throw new ShapeError(`${method}: takes square matrices, got shape ${showShape(self.shape)}`);
}
/** In a type that the methods here compute in. */
export function asFloat(self: Tensor): Tensor {
  const wide = self.dtype === dtypes.float32 || self.dtype === dtypes.float64;
  return wide ? self : cast(self, dtypes.float32);
}
/** The matrices as one list, cut off from what they were made of. */
export function stacked(self: Tensor): Tensor {
  const [rows, columns] = self.shape.slice(-2) as [number, number];
  return reshape(detach(self), [prod(self.shape.slice(0, -2)), rows, columns]);
}
/** Identity matrices, `n` by `m`, one for each of the list this tensor is. */
export function identities(self: Tensor, n: number, m = n): Tensor {
  const shape = [self.shape[0] as number, n, m];
  return cast(eq(placesAlong(self, shape, 1), placesAlong(self, shape, 2)), self.dtype);
}

// ---- elimination ----

/**
 * Gauss-Jordan on a list of n by w matrices that begin with n columns to eliminate: each step takes the
 * unused row with the largest element as pivot. No rows are swapped: the last column
 * remembers which step used a row.
 */
function eliminated(self: Tensor, n: number): Tensor {
  const [batch, , wide] = self.shape as [number, number, number];
  const shape = [batch, n, wide + 1];
  const row = placesAlong(self, shape, 1);
  const isOrder = eq(placesAlong(self, shape, 2), wide);
  let state = contiguous(pad(self, [null, null, [0, 1]], "constant", -1));
  for (const k of range(n)) {
    const column = narrow(state, 2, k, 1);
    const free = lt(narrow(state, 2, wide, 1), 0);
    const pivot = expand(firstLargest(where(free, abs(column), -1), [1]), shape);
    const chosen = eq(pivot, row);
    const top = contiguous(sum(where(chosen, state, 0), 1, true));
    const scaled = expand(div(top, narrow(top, 2, k, 1)), shape);
    const next = where(chosen, scaled, sub(state, mul(expand(column, shape), scaled)));
    state = contiguous(where(isOrder, where(chosen, k, state), next));
  }
  // row k of the result is the one that step k used
  const order = narrow(state, 2, wide, 1);
  const full = [batch, n, n, wide];
  const used = eq(expand(reshape(order, batch, 1, n, 1), full), placesAlong(self, full, 1));
  return sum(where(used, expand(reshape(narrow(state, 2, 0, wide), batch, 1, n, wide), full), 0), 2);
}
/** The index of the largest element along `axes`, the first of equals, counted row by row, stored. */
function firstLargest(self: Tensor, axes: readonly number[]): Tensor {
  const count = prod(axes.map((a) => self.shape[a] as number));
  const best = expand(max(self, axes, true), self.shape);
  const places = axes.reduce<Tensor | undefined>((at, a) => {
    const here = placesAlong(self, self.shape, a);
    return at === undefined ? here : add(mul(at, self.shape[a] as number), here);
  }, undefined) as Tensor;
  // written so that NaN counts as large; negative marks what may not be chosen
  const not = bitwiseOr(lt(self, best), lt(self, 0));
  return contiguous(add(neg(max(where(not, 0, add(neg(places), count)), axes, true)), count));
}

export function solve(self: Tensor, b: Tensor, { left = true }: SolveOptions = {}): Tensor {
  const n = squareSize(self, "solve");
  const a = asFloat(self);
  const lead = self.shape.slice(0, -1);
  const isVector = b.ndim === 1 || (b.ndim === self.ndim - 1 && showShape(b.shape) === showShape(lead));
  if (isVector) {
    if (b.ndim === 1 && b.shape[0] !== n) throw mismatch("solve", self, b, n);
    const side = left ? -1 : -2;
    return squeeze(solve(a, unsqueeze(b, side), { left }), side);
  }
  if (b.ndim < 2 || b.shape.at(left ? -2 : -1) !== n) throw mismatch("solve", self, b, n);
  if (!left) return transpose(solve(transpose(a), transpose(b)));
  const [x, y] = sameBatch(a, "solve", cast(b, a.dtype));
  return solved(x, y);
}
/** Both with the same leading dims. */
function sameBatch(self: Tensor, method: string, other: Tensor): [Tensor, Tensor] {
  const n = Math.max(self.ndim, other.ndim);
  const at = (t: Tensor, i: number): number => t.shape[t.ndim - n + i] ?? 1;
  const lead = range(n - 2).map((i) => {
    const [x, y] = [at(self, i), at(other, i)];
    if (x === y || x === 1 || y === 1) return x === 1 ? y : x;
    throw new ShapeError(
      `${method}: the batches of ${showShape(self.shape)} and ${showShape(other.shape)} do not broadcast`,
    );
  });
  const full = (t: Tensor): Tensor => broadcastTo(t, [...lead, ...t.lazydata.shape.slice(-2)]);
  return [full(self), full(other)];
}
function solved(self: Tensor, b: Tensor): Tensor {
  if (b.size === 0 || self.size === 0) return matmul(self, b); // of the right shape, and nothing in it
  const n = self.shape.at(-1) as number;
  const wide = b.shape.at(-1) as number;
  const found = reshape(narrow(eliminated(cat(stacked(self), stacked(b), 2), n), 2, n, wide), b.shape);
  return wrap(found.lazydata, [self, b], (g, out) => {
    const gb = solved(transpose(self), g);
    return [neg(matmul(gb, transpose(out))), gb];
  });
}
export function inverse(self: Tensor): Tensor {
  const n = squareSize(self, "inverse");
  const a = asFloat(self);
  if (a.size === 0) return mul(a, 1);
  const list = stacked(a);
  const found = reshape(narrow(eliminated(cat(list, identities(list, n), 2), n), 2, n, n), a.shape);
  return wrap(found.lazydata, [a], (g, out) => {
    const t = transpose(out);
    return [neg(matmul(matmul(t, g), t))];
  });
}
export function inv(self: Tensor): Tensor {
  squareSize(self, "inv");
  return inverse(self);
}
export function matrixPower(self: Tensor, n: number): Tensor {
  const size = squareSize(self, "matrixPower");
  if (!Number.isInteger(n)) throw new ArgumentError(`matrixPower: the power is ${n}, expected an integer`);
  if (n < 0) return matrixPower(inverse(self), -n);
  if (n === 0) {
    const { shape } = self;
    const [row, column] = [placesAlong(self, shape, -2), placesAlong(self, shape, -1)];
    return size === 0 ? self : cast(eq(row, column), self.dtype);
  }
  const half = n > 1 ? matrixPower(self, n >> 1) : self;
  if (n === 1) return self;
  const square = matmul(half, half);
  return n % 2 === 0 ? square : matmul(square, self);
}

// ---- determinants ----

/**
 * Elimination with the largest of all remaining elements as pivot, differentiable as it is: the last pivot is
 * never divided by, so the gradient of a determinant is right for singular matrices too.
 */
function pivotsOf(self: Tensor, n: number): [pivots: Tensor[], sign: Tensor] {
  const lead = self.lazydata.shape.slice(0, -2);
  const shape = [prod(self.shape.slice(0, -2)), n, n];
  const [row, column] = [placesAlong(self, shape, 1), placesAlong(self, shape, 2)];
  let a = contiguous(reshape(self, shape));
  let left = contiguous(ge(row, 0));
  let passed = mul(narrow(narrow(row, 1, 0, 1), 2, 0, 1), 0);
  const pivots: Tensor[] = [];
  for (const k of range(n)) {
    const place = expand(firstLargest(where(left, abs(detach(a)), -1), [1, 2]), shape);
    const [r, c] = [idiv(place, n), fmod(place, n)];
    const [here, there] = [eq(r, row), eq(c, column)];
    const pivot = contiguous(sum(where(bitwiseAnd(here, there), a, 0), [1, 2], true));
    pivots.push(reshape(pivot, lead));
    // the sign turns with each remaining row above and each remaining column before
    const above = bitwiseOr(bitwiseAnd(lt(row, r), there), bitwiseAnd(lt(column, c), here));
    passed = contiguous(add(passed, sum(cast(bitwiseAnd(above, left), dtypes.int32), [1, 2], true)));
    if (k === n - 1) break;
    const top = contiguous(sum(where(here, a, 0), 1, true));
    const side = contiguous(sum(where(there, a, 0), 2, true));
    left = contiguous(where(bitwiseOr(here, there), false, left));
    const divisor = expand(pivot, shape);
    const rest = sub(a, div(mul(expand(side, shape), expand(top, shape)), where(eq(divisor, 0), 1, divisor)));
    a = contiguous(where(left, rest, 0));
  }
  const sign = reshape(cast(add(mul(bitwiseAnd(passed, 1), -2), 1), self.dtype), lead);
  return [pivots, sign];
}
export function det(self: Tensor): Tensor {
  const n = squareSize(self, "det");
  const a = asFloat(self);
  if (a.size === 0) return onesOf(a);
  const [pivots, sign] = pivotsOf(a, n);
  return mul(
    pivots.reduce((x, y) => mul(x, y)),
    sign,
  );
}
export function slogdet(self: Tensor): [sign: Tensor, logabsdet: Tensor] {
  const n = squareSize(self, "slogdet");
  const a = asFloat(self);
  if (a.size === 0) return [onesOf(a), sub(onesOf(a), 1)];
  const [pivots, sign] = pivotsOf(a, n);
  const signs = pivots
    .map((p) => detach(p))
    .map((p) => sub(cast(gt(p, 0), a.dtype), cast(lt(p, 0), a.dtype)));
  const logs = pivots.map((p) => log(where(lt(p, 0), neg(p), p)));
  return [
    mul(
      signs.reduce((x, y) => mul(x, y)),
      sign,
    ),
    logs.reduce((x, y) => add(x, y)),
  ];
}
export function logdet(self: Tensor): Tensor {
  squareSize(self, "logdet");
  const [sign, log] = slogdet(self);
  return where(lt(sign, 0), NaN, log);
}
/** The determinants of matrices without elements. */
function onesOf(self: Tensor): Tensor {
  return add(mul(sum(self, [-2, -1]), 0), 1);
}

// ---- triangles ----

export function solveTriangular(
  self: Tensor,
  b: Tensor,
  { upper = false, left = true, unitriangular = false }: TriangularOptions = {},
): Tensor {
  const n = squareSize(self, "solveTriangular");
  if (b.ndim < 2 || b.shape.at(left ? -2 : -1) !== n) throw mismatch("solveTriangular", self, b, n);
  if (!left) {
    const turned = { upper: !upper, unitriangular };
    return transpose(solveTriangular(transpose(self), transpose(b), turned));
  }
  const a = asFloat(self);
  const [x, y] = sameBatch(a, "solveTriangular", cast(b, a.dtype));
  return substituted(x, y, upper, unitriangular);
}
function substituted(self: Tensor, b: Tensor, upper: boolean, unit: boolean): Tensor {
  if (b.size === 0) return matmul(self, b);
  const n = self.shape.at(-1) as number;
  const list = contiguous(stacked(self));
  let state = contiguous(stacked(b));
  const { shape } = state;
  const row = placesAlong(self, shape, 1);
  for (const k of upper ? range(n).reverse() : range(n)) {
    // row k is found, and taken out of those that come after it
    const found = expand(narrow(state, 1, k, 1), shape);
    const value = unit ? found : div(found, expand(narrow(narrow(list, 1, k, 1), 2, k, 1), shape));
    const rest = sub(state, mul(expand(narrow(list, 2, k, 1), shape), value));
    state = contiguous(where(eq(row, k), value, where(upper ? lt(row, k) : gt(row, k), rest, state)));
  }
  return wrap(reshape(state, b.shape).lazydata, [self, b], (g, out) => {
    const gb = substituted(transpose(self), g, !upper, unit);
    const ga = neg(matmul(gb, transpose(out)));
    const border = unit ? 1 : 0;
    return [upper ? triu(ga, border) : tril(ga, -border), gb];
  });
}
export function cholesky(self: Tensor, { upper = false }: CholeskyOptions = {}): Tensor {
  if (upper) return transpose(cholesky(transpose(self)));
  const n = squareSize(self, "cholesky");
  const a = asFloat(self);
  if (a.size === 0) return mul(a, 1);
  let state = contiguous(stacked(a));
  const { shape } = state;
  const [row, column] = [placesAlong(self, shape, 1), placesAlong(self, shape, 2)];
  for (const k of range(n)) {
    const below = narrow(state, 2, k, 1);
    const pivot = expand(narrow(below, 1, k, 1), shape);
    const rest = sub(state, div(mul(expand(below, shape), expand(transpose(below), shape)), pivot));
    const inside = bitwiseAnd(gt(row, k), gt(column, k));
    const next = where(inside, rest, state);
    state = contiguous(where(eq(column, k), div(state, sqrt(pivot)), next));
  }
  const found = reshape(tril(state), a.shape);
  return wrap(found.lazydata, [a], (g, out) => {
    // half of the symmetric matrix whose lower triangle is that of outᵀ @ g, between two inverses
    const product = tril(matmul(transpose(out), g));
    const middle = mul(add(product, transpose(tril(product, -1))), 0.5);
    const right = solveTriangular(out, middle, { left: false });
    return [solveTriangular(transpose(out), right, { upper: true })];
  });
}

const mismatch = (method: string, a: Tensor, b: Tensor, n: number): ShapeError =>
  new ShapeError(
    `${method}: ${showShape(b.shape)} is not a right-hand side for ${showShape(a.shape)}; expected a vector of ${n} or ` +
      `matrices with ${n} rows (columns with left: false)`,
  );
