// Orthogonal factorizations: QR by Householder reflections, singular values and eigenvalues by Jacobi
// rotations. They are loops whose body is traced once, with the state in memory, and nothing looks at values:
// the number of sweeps is fixed. Gradients are the known formulas in terms of the factors, so they can be
// differentiated again.

import { dtypes } from "../../dtype.ts";
import { ArgumentError } from "../../errors.ts";
import type { Sint } from "../../shape/symbolic.ts";
import { cast, contiguous, wrap } from "../core.ts";
import { placesAlong } from "../creation/creation.ts";
import {
  add,
  bitwiseAnd,
  bitwiseOr,
  div,
  eq,
  ge,
  gt,
  lt,
  mul,
  neg,
  sqrt,
  square,
  sub,
  where,
} from "../math/arithmetic.ts";
import { rsqrt } from "../math/elementary.ts";
import { abs } from "../math/rounding.ts";
import { pad, tril, triu } from "../movement/arrange.ts";
import { cat, narrow } from "../movement/join.ts";
import { diagonal } from "../movement/rearrange.ts";
import { expand, flip, reshape, transpose, unsqueeze } from "../movement/views.ts";
import { max, sum } from "../reduce/reduce.ts";
import { repeated } from "../scan.ts";
import type { Tensor } from "../tensor.ts";
import { matmul } from "./products.ts";
import { asFloat, identities, matrixSizes, solveTriangular, squareSize, stacked } from "./solve.ts";

// ---- QR ----

export function qr(self: Tensor, mode: "reduced" | "complete" | "r" = "reduced"): [Q: Tensor, R: Tensor] {
  if (mode !== "reduced" && mode !== "complete" && mode !== "r") {
    throw new ArgumentError(`qr: mode "${mode}" is not known; expected "reduced", "complete" or "r"`);
  }
  const a = asFloat(self);
  const { lead, rows, columns } = matrixSizes(a, "qr");
  const inner = Math.min(rows, columns);
  if (mode === "r") {
    const [, r] = qr(a, "reduced");
    return [reshape(narrow(narrow(r, -1, 0, 0), -2, 0, 0), 0), r];
  }
  if (a.size === 0) return emptyQr(a, lead, rows, columns, mode === "complete" ? rows : inner);
  // what lies right of the square part of a wide matrix is only turned
  if (rows < columns) {
    const [q, r] = qr(narrow(a, -1, 0, rows));
    return [q, cat(r, matmul(transpose(q), narrow(a, -1, rows, columns - rows)), -1)];
  }
  const [qAll, rAll] = reflected(stacked(a));
  const size = mode === "complete" ? rows : inner;
  const q = reshape(narrow(qAll, 2, 0, size), [...lead, rows, size]);
  const r = reshape(narrow(rAll, 1, 0, size), [...lead, size, columns]);
  if (size > inner) {
    const refuse = (): never => {
      throw new ArgumentError(
        `backward: qr("complete") of a tall matrix has no gradient, the added columns of Q are not unique; use "reduced"`,
      );
    };
    return [wrap(q.lazydata, [a], refuse), wrap(r.lazydata, [a], refuse)];
  }
  const factors: Tensor[] = [];
  const backward = (gq: Tensor | undefined, gr: Tensor | undefined): Tensor => {
    const [Q, R] = factors as [Tensor, Tensor];
    const first = gr === undefined ? undefined : matmul(R, transpose(gr));
    const second = gq === undefined ? undefined : neg(matmul(transpose(gq), Q));
    const m = (first === undefined ? second : second === undefined ? first : add(first, second)) as Tensor;
    const symmetric = add(tril(m), transpose(tril(m, -1)));
    const right = gq === undefined ? matmul(Q, symmetric) : add(gq, matmul(Q, symmetric));
    return transpose(solveTriangular(R, transpose(right), { upper: true }));
  };
  factors.push(
    wrap(q.lazydata, [a], (g) => [backward(g, undefined)]),
    wrap(triu(r).lazydata, [a], (g) => [backward(undefined, g)]),
  );
  return [...factors] as [Tensor, Tensor]; // a list of its own: the user may change it
}
function emptyQr(
  self: Tensor,
  lead: readonly number[],
  rows: number,
  columns: number,
  size: number,
): [Tensor, Tensor] {
  const zero = sum(self);
  const q = eq(placesAlong(self, [...lead, rows, size], -2), placesAlong(self, [...lead, rows, size], -1));
  return [add(cast(q, self.dtype), zero), expand(zero, [...lead, size, columns])];
}
/** Householder on a list of tall matrices: all of Q, and R with rows of zeros. */
export function reflected(self: Tensor): [Tensor, Tensor] {
  const [, rows, columns] = self.shape as [number, number, number];
  const start = contiguous(cat(self, identities(self, rows), 2));
  const state = repeated(start, Math.min(columns, rows - 1), reflect);
  return [transpose(narrow(state, 2, columns, rows)), narrow(state, 2, 0, columns)];
}
/** Clears column `k` below the diagonal by a reflection of all columns. */
function reflect(self: Tensor, k: Sint): Tensor {
  const { shape } = self;
  const here = placesAlong(self, [shape[1] as number], 0);
  const at = expand(reshape(narrow(here, 0, k, 1), 1, 1, 1), shape);
  const [row, column] = [placesAlong(self, shape, 1), placesAlong(self, shape, 2)];
  const isBelow = gt(row, at);
  const x = expand(narrow(self, 2, k, 1), shape);
  const pivots = narrow(self, 1, k, 1);
  // one sum for the length of the column and for its products with all others
  const products = contiguous(sum(where(isBelow, mul(x, self), 0), 1, true));
  const rest = expand(narrow(products, 2, k, 1), shape);
  const head = expand(narrow(pivots, 2, k, 1), shape);
  const length = sqrt(add(square(head), rest));
  const beta = where(lt(head, 0), length, neg(length));
  // a column that is zero below the diagonal stays as it is, sign and all
  const idle = eq(rest, 0);
  const scale = where(idle, 1, sub(head, beta));
  const v = where(isBelow, div(x, scale), where(eq(row, at), 1, 0));
  const along = add(expand(pivots, shape), div(expand(products, shape), scale));
  const tau = where(idle, 0, div(sub(beta, head), where(idle, 1, beta)));
  const next = sub(self, mul(mul(tau, v), along));
  return contiguous(where(bitwiseAnd(isBelow, eq(column, at)), 0, next));
}

// ---- singular values ----

export function svd(self: Tensor, fullMatrices = true): [U: Tensor, S: Tensor, Vh: Tensor] {
  const a = asFloat(self);
  const { lead, rows, columns } = matrixSizes(a, "svd");
  if (rows < columns) {
    const [u, s, vh] = svd(transpose(a), fullMatrices);
    return [transpose(vh), s, transpose(u)];
  }
  if (a.size === 0) return emptySvd(a, lead, rows, columns, fullMatrices);
  const list = stacked(a);
  const [u, s, v] = jacobi(list);
  const wide = fullMatrices ? rows : columns;
  const values = [
    reshape(narrow(u, 2, 0, wide), [...lead, rows, wide]),
    reshape(s, [...lead, columns]),
    reshape(transpose(v), [...lead, columns, columns]),
  ];
  const out: Tensor[] = [];
  const parts = (): [Tensor, Tensor, Tensor] => {
    const [U, S, Vh] = out as [Tensor, Tensor, Tensor];
    return [narrow(U, -1, 0, columns), S, Vh];
  };
  out.push(
    wrap((values[0] as Tensor).lazydata, [a], (g) => [backU(a, parts(), narrow(g, -1, 0, columns))]),
    wrap((values[1] as Tensor).lazydata, [a], (g) => {
      const [U, , Vh] = parts();
      return [matmul(mul(U, unsqueeze(g, -2)), Vh)];
    }),
    wrap((values[2] as Tensor).lazydata, [a], (g) => [backV(a, parts(), g)]),
  );
  return [...out] as [Tensor, Tensor, Tensor];
}
/** skew(Uᵀ gU) / E, with E[i, j] = s[j]² - s[i]². */
function rotation(self: Tensor, s: Tensor, product: Tensor): Tensor {
  const squared = square(s);
  const gaps = sub(unsqueeze(squared, -2), unsqueeze(squared, -1));
  const n = eq(placesAlong(self, gaps.shape, -1), placesAlong(self, gaps.shape, -2));
  return where(n, 0, div(sub(product, transpose(product)), where(n, 1, gaps)));
}
function backU(self: Tensor, [u, s, vh]: readonly [Tensor, Tensor, Tensor], g: Tensor): Tensor {
  const turned = mul(rotation(self, s, matmul(transpose(u), g)), unsqueeze(s, -2));
  const inside = matmul(u, turned);
  if (u.shape.at(-2) === u.shape.at(-1)) return matmul(inside, vh);
  const outside = div(sub(g, matmul(u, matmul(transpose(u), g))), unsqueeze(s, -2));
  return matmul(add(inside, outside), vh);
}
function backV(self: Tensor, [u, s, vh]: readonly [Tensor, Tensor, Tensor], g: Tensor): Tensor {
  return matmul(matmul(u, mul(unsqueeze(s, -1), rotation(self, s, matmul(vh, transpose(g))))), vh);
}
function emptySvd(
  self: Tensor,
  lead: readonly number[],
  rows: number,
  columns: number,
  full: boolean,
): [Tensor, Tensor, Tensor] {
  const zero = sum(self);
  const [u] = emptyQr(self, lead, rows, columns, full ? rows : columns);
  return [u, expand(zero, [...lead, columns]), expand(zero, [...lead, columns, columns])];
}

/**
 * One-sided Jacobi on a list of tall matrices: turns pairs of columns until all are orthogonal; V turns along
 * below them. A round turns neighbours and swaps them, beginning at column 0 and 1 in turn, so that after n
 * rounds every column has met every other and all rounds are the same few kernels. Gives all of U, S and V.
 */
function jacobi(self: Tensor): [Tensor, Tensor, Tensor] {
  const [batch, rows, n] = self.shape as [number, number, number];
  const largest = contiguous(max(abs(self), [1, 2], true));
  const scale = contiguous(where(eq(largest, 0), 1, largest));
  const start = contiguous(cat(div(self, expand(scale, self.shape)), identities(self, n), 1));
  // convergence is quadratic: each sweep of the last ones doubles the digits
  const sweeps = n < 2 ? 0 : 2 * Math.ceil(((self.dtype === dtypes.float64 ? 8 : 6) + Math.log2(n)) / 2);
  const state = repeated(start, (sweeps * n) / 2, (x) => rotated(rotated(x, rows, 0), rows, 1));
  const upper = narrow(state, 1, 0, rows);
  const lengths = contiguous(sqrt(sum(square(upper), 1, true)));
  const shape = [batch, n, n];
  const [mine, theirs] = [expand(transpose(lengths), shape), expand(lengths, shape)];
  const [at, other] = [placesAlong(self, shape, 1), placesAlong(self, shape, 2)];
  const ahead = bitwiseOr(gt(theirs, mine), bitwiseAnd(eq(theirs, mine), lt(other, at)));
  const rank = contiguous(sum(cast(ahead, dtypes.int32), 2));
  const sorted = (t: Tensor): Tensor => {
    const full = [batch, t.shape[1] as number, n, n];
    const chosen = eq(expand(reshape(rank, batch, 1, 1, n), full), placesAlong(self, full, 2));
    return contiguous(sum(where(chosen, expand(unsqueeze(t, 2), full), 0), 3));
  };
  // reflections complete the columns of U, also where singular values are zero
  const [q, r] = reflected(sorted(upper));
  const main = expand(pad(unsqueeze(diagonal(r, 0, 1, 2), 1), [null, null, [0, rows - n]]), [
    batch,
    rows,
    rows,
  ]);
  const u = contiguous(where(lt(main, 0), neg(q), q));
  const s = contiguous(reshape(mul(sorted(lengths), scale), batch, n));
  return [u, s, sorted(narrow(state, 1, rows, n))];
}
/**
 * One round: columns first, first + 1; first + 2, first + 3; … become
 * orthogonal in their upper rows and swap.
 */
function rotated(self: Tensor, rows: number, first: number): Tensor {
  const [batch, height, n] = self.shape as [number, number, number];
  const pairs = Math.floor((n - first) / 2);
  if (pairs === 0) return self;
  const partner = pad(
    reshape(
      flip(reshape(narrow(self, 2, first, 2 * pairs), batch, height, pairs, 2), 3),
      batch,
      height,
      2 * pairs,
    ),
    [null, null, [first, n - first - 2 * pairs]],
  );
  const [x, y] = [narrow(self, 1, 0, rows), narrow(partner, 1, 0, rows)];
  // written so that both columns of a pair get the same numbers, but for the sign
  const gap = contiguous(sum(mul(sub(y, x), add(y, x)), 1, true));
  const twice = mul(sum(mul(x, y), 1, true), 2);
  const column = placesAlong(self, twice.shape, 2);
  const isLeft = eq(bitwiseAnd(sub(column, first), 1), 0);
  const size = add(abs(gap), sqrt(add(square(gap), square(twice))));
  const flat = bitwiseOr(lt(gap, 0), bitwiseAnd(eq(gap, 0), isLeft));
  const ratio = div(twice, where(eq(size, 0), 1, size));
  const tangent = expand(contiguous(where(flat, neg(ratio), ratio)), self.shape);
  const cosine = rsqrt(add(square(tangent), 1));
  const turned = mul(add(partner, mul(tangent, self)), cosine);
  const place = placesAlong(self, self.shape, 2);
  const alone = bitwiseOr(lt(place, first), ge(place, first + 2 * pairs));
  return contiguous(where(alone, self, turned));
}

export function svdvals(self: Tensor): Tensor {
  return svd(self, false)[1];
}

// ---- eigenvalues ----

export function eigh(self: Tensor, UPLO: "L" | "U" = "L"): [eigenvalues: Tensor, eigenvectors: Tensor] {
  const n = squareSize(self, "eigh");
  const a = asFloat(self);
  const lead = self.shape.slice(0, -2);
  if (a.size === 0) return [expand(sum(a), [...lead, n]), mul(a, 1)];
  const list = stacked(a);
  const half = UPLO === "L" ? list : transpose(list);
  const whole = contiguous(add(tril(half), transpose(tril(half, -1))));
  // made positive definite, so that singular vectors are eigenvectors
  const shift = contiguous(max(sum(abs(whole), 2, true), 1, true));
  const [, , v] = jacobi(contiguous(add(whole, mul(identities(whole, n), expand(shift, whole.shape)))));
  const vectors = contiguous(flip(v, 2));
  const values = sum(mul(matmul(whole, vectors), vectors), 1);
  const out: Tensor[] = [];
  out.push(
    wrap(reshape(values, [...lead, n]).lazydata, [a], (g) => {
      const V = out[1] as Tensor;
      return [matmul(mul(V, unsqueeze(g, -2)), transpose(V))];
    }),
    wrap(reshape(vectors, [...lead, n, n]).lazydata, [a], (g) => {
      const [L, V] = out as [Tensor, Tensor];
      const gaps = sub(unsqueeze(L, -2), unsqueeze(L, -1));
      const same = eq(placesAlong(self, gaps.shape, -1), placesAlong(self, gaps.shape, -2));
      const inside = where(same, 0, div(matmul(transpose(V), g), where(same, 1, gaps)));
      return [matmul(matmul(V, inside), transpose(V))];
    }),
  );
  return [...out] as [Tensor, Tensor];
}
export function eigvalsh(self: Tensor, UPLO: "L" | "U" = "L"): Tensor {
  return eigh(self, UPLO)[0];
}
