// Systems of linear equations: elimination with pivots (solve, inverse, determinants), substitution, Cholesky. Each is an
// unrolled loop over the columns that keeps its state in memory from step to step, so that a step is a few small kernels
// and the graph grows with the size of the matrix, not with its square. Nothing looks at values: where torch raises for a
// singular (or not positive definite) matrix, the result here holds infinities and NaN.

import { dtypes } from "../dtype.ts";
import { ArgumentError, ShapeError } from "../errors.ts";
import { prod, range } from "../helpers.ts";
import { showShape } from "./base.ts";
import { requireTensors } from "./movement.ts";
import { ProductTensor } from "./products.ts";

export abstract class SolveTensor extends ProductTensor {
  // ---- shapes ----

  /** Sizes of the matrices in the last two dims. */
  protected matrixSizes(method: string): { lead: readonly number[]; rows: number; columns: number } {
    if (this.ndim < 2) {
      throw new ShapeError(
        `${method}: shape ${showShape(this.shape)} is no matrix; it takes at least 2 dims`,
      );
    }
    const [rows, columns] = this.shape.slice(-2) as [number, number];
    return { lead: this.shape.slice(0, -2), rows, columns };
  }
  protected squareSize(method: string): number {
    const { rows, columns } = this.matrixSizes(method);
    if (rows === columns) return rows;
    throw new ShapeError(`${method}: takes square matrices, got shape ${showShape(this.shape)}`);
  }
  /** In a type that the methods here compute in. */
  protected asFloat(): this {
    const wide = this.dtype === dtypes.float32 || this.dtype === dtypes.float64;
    return wide ? this : this.cast(dtypes.float32);
  }
  /** The matrices as one list, cut off from what they were made of. */
  protected stacked(): this {
    const [rows, columns] = this.shape.slice(-2) as [number, number];
    return this.detach().reshape([prod(this.shape.slice(0, -2)), rows, columns]);
  }
  /** Identity matrices, `n` by `m`, one for each of the list this tensor is. */
  protected identities(n: number, m = n): this {
    const shape = [this.shape[0] as number, n, m];
    return this.placesAlong(shape, 1).eq(this.placesAlong(shape, 2)).cast(this.dtype);
  }

  // ---- elimination ----

  /**
   * Gauss-Jordan on a list of n by w matrices that begin with n columns to eliminate: each step takes the unused row with
   * the largest element as pivot. No rows are swapped: the last column remembers which step used a row.
   */
  #eliminated(n: number): this {
    const [batch, , wide] = this.shape as [number, number, number];
    const shape = [batch, n, wide + 1];
    const row = this.placesAlong(shape, 1);
    const isOrder = this.placesAlong(shape, 2).eq(wide);
    let state = this.pad([null, null, [0, 1]], "constant", -1).contiguous();
    for (const k of range(n)) {
      const column = state.narrow(2, k, 1);
      const free = state.narrow(2, wide, 1).lt(0);
      const pivot = free.where(column.abs(), -1).#firstLargest([1]).expand(shape);
      const chosen = pivot.eq(row);
      const top = chosen.where(state, 0).sum(1, true).contiguous();
      const scaled = top.div(top.narrow(2, k, 1)).expand(shape);
      const next = chosen.where(scaled, state.sub(column.expand(shape).mul(scaled)));
      state = isOrder.where(chosen.where(k, state), next).contiguous();
    }
    // row k of the result is the one that step k used
    const order = state.narrow(2, wide, 1);
    const full = [batch, n, n, wide];
    const used = order.reshape(batch, 1, n, 1).expand(full).eq(this.placesAlong(full, 1));
    return used.where(state.narrow(2, 0, wide).reshape(batch, 1, n, wide).expand(full), 0).sum(2);
  }
  /** The place of the largest element along `axes`, the first of equals, counted row by row, stored. */
  #firstLargest(axes: readonly number[]): this {
    const count = prod(axes.map((a) => this.shape[a] as number));
    const best = this.max(axes, true).expand(this.shape);
    const places = axes.reduce<this | undefined>((at, a) => {
      const here = this.placesAlong(this.shape, a);
      return at === undefined ? here : at.mul(this.shape[a] as number).add(here);
    }, undefined) as this;
    // written so that NaN counts as large; negative marks what may not be chosen
    const not = this.lt(best).bitwiseOr(this.lt(0));
    return not.where(0, places.neg().add(count)).max(axes, true).neg().add(count).contiguous();
  }

  /**
   * X with `this @ X = b` (or `X @ this = b`, with `left: false`); `b` is a vector or a matrix, or a batch of either. A
   * singular matrix gives infinities and NaN.
   * @example
   * await new Tensor([[2, 0], [0, 4]]).solve(new Tensor([2, 8])).tolist() // => [1, 2]
   */
  solve(b: this, { left = true } = {}): this {
    requireTensors("solve", { b });
    const n = this.squareSize("solve");
    const a = this.asFloat();
    const lead = this.shape.slice(0, -1);
    const isVector = b.ndim === 1 || (b.ndim === this.ndim - 1 && showShape(b.shape) === showShape(lead));
    if (isVector) {
      if (b.ndim === 1 && b.shape[0] !== n) throw mismatch("solve", this, b, n);
      const side = left ? -1 : -2;
      return a.solve(b.unsqueeze(side), { left }).squeeze(side);
    }
    if (b.ndim < 2 || b.shape.at(left ? -2 : -1) !== n) throw mismatch("solve", this, b, n);
    if (!left) return a.transpose().solve(b.transpose()).transpose();
    const [x, y] = a.#sameBatch("solve", b.cast(a.dtype));
    return x.#solved(y);
  }
  /** Both with the same leading dims. */
  #sameBatch(method: string, other: this): [this, this] {
    const n = Math.max(this.ndim, other.ndim);
    const at = (t: this, i: number): number => t.shape[t.ndim - n + i] ?? 1;
    const lead = range(n - 2).map((i) => {
      const [x, y] = [at(this, i), at(other, i)];
      if (x === y || x === 1 || y === 1) return x === 1 ? y : x;
      throw new ShapeError(
        `${method}: the batches of ${showShape(this.shape)} and ${showShape(other.shape)} do not broadcast`,
      );
    });
    const full = (t: this): this => t.broadcastTo([...lead, ...t.lazydata.shape.slice(-2)]);
    return [full(this), full(other)];
  }
  #solved(b: this): this {
    if (b.size === 0 || this.size === 0) return this.matmul(b); // of the right shape, and nothing in it
    const n = this.shape.at(-1) as number;
    const wide = b.shape.at(-1) as number;
    const found = this.stacked().cat(b.stacked(), 2).#eliminated(n).narrow(2, n, wide).reshape(b.shape);
    return this.wrap(found.lazydata, [this, b], (g, out) => {
      const gb = this.transpose().#solved(g);
      return [gb.matmul(out.transpose()).neg(), gb];
    });
  }
  /**
   * The inverse of each matrix; that of a singular one holds infinities and NaN.
   * @example
   * await new Tensor([[2, 0], [0, 4]]).inverse().tolist() // => [[0.5, 0], [0, 0.25]]
   */
  inverse(): this {
    const n = this.squareSize("inverse");
    const a = this.asFloat();
    if (a.size === 0) return a.mul(1);
    const list = a.stacked();
    const found = list.cat(list.identities(n), 2).#eliminated(n).narrow(2, n, n).reshape(a.shape);
    return a.wrap(found.lazydata, [a], (g, out) => {
      const t = out.transpose();
      return [t.matmul(g).matmul(t).neg()];
    });
  }
  /**
   * torch.linalg's name for `inverse`.
   * @example
   * await new Tensor([[2, 0], [0, 4]]).inv().tolist() // => [[0.5, 0], [0, 0.25]]
   */
  inv(): this {
    this.squareSize("inv");
    return this.inverse();
  }
  /**
   * The matrix multiplied with itself `n` times; a negative power is one of the inverse.
   * @example
   * await new Tensor([[1, 1], [0, 1]]).matrixPower(5).tolist() // => [[1, 5], [0, 1]]
   */
  matrixPower(n: number): this {
    const size = this.squareSize("matrixPower");
    if (!Number.isInteger(n)) throw new ArgumentError(`matrixPower: the power is ${n}, expected an integer`);
    if (n < 0) return this.inverse().matrixPower(-n);
    if (n === 0) {
      const { shape } = this;
      const [row, column] = [this.placesAlong(shape, -2), this.placesAlong(shape, -1)];
      return size === 0 ? this : row.eq(column).cast(this.dtype);
    }
    const half = n > 1 ? this.matrixPower(n >> 1) : this;
    if (n === 1) return this;
    const square = half.matmul(half);
    return n % 2 === 0 ? square : square.matmul(this);
  }

  // ---- determinants ----

  /**
   * Elimination with the largest of all remaining elements as pivot, differentiable as it is: the last pivot is never
   * divided by, so the gradient of a determinant is right for singular matrices too.
   */
  #pivots(n: number): [pivots: this[], sign: this] {
    const lead = this.lazydata.shape.slice(0, -2);
    const shape = [prod(this.shape.slice(0, -2)), n, n];
    const [row, column] = [this.placesAlong(shape, 1), this.placesAlong(shape, 2)];
    let a = this.reshape(shape).contiguous();
    let left = row.ge(0).contiguous();
    let passed = row.narrow(1, 0, 1).narrow(2, 0, 1).mul(0);
    const pivots: this[] = [];
    for (const k of range(n)) {
      const place = left.where(a.detach().abs(), -1).#firstLargest([1, 2]).expand(shape);
      const [r, c] = [place.idiv(n), place.fmod(n)];
      const [here, there] = [r.eq(row), c.eq(column)];
      const pivot = here.bitwiseAnd(there).where(a, 0).sum([1, 2], true).contiguous();
      pivots.push(pivot.reshape(lead));
      // the sign turns with each remaining row above and each remaining column before
      const above = row.lt(r).bitwiseAnd(there).bitwiseOr(column.lt(c).bitwiseAnd(here));
      passed = passed.add(above.bitwiseAnd(left).cast(dtypes.int32).sum([1, 2], true)).contiguous();
      if (k === n - 1) break;
      const top = here.where(a, 0).sum(1, true).contiguous();
      const side = there.where(a, 0).sum(2, true).contiguous();
      left = here.bitwiseOr(there).where(false, left).contiguous();
      const divisor = pivot.expand(shape);
      const rest = a.sub(side.expand(shape).mul(top.expand(shape)).div(divisor.eq(0).where(1, divisor)));
      a = left.where(rest, 0).contiguous();
    }
    const sign = passed.bitwiseAnd(1).mul(-2).add(1).cast(this.dtype).reshape(lead);
    return [pivots, sign];
  }
  /**
   * The determinant of each matrix.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).det().item() // => -2
   */
  det(): this {
    const n = this.squareSize("det");
    const a = this.asFloat();
    if (a.size === 0) return a.#ones();
    const [pivots, sign] = a.#pivots(n);
    return pivots.reduce((x, y) => x.mul(y)).mul(sign);
  }
  /**
   * The sign of the determinant of each matrix, and the logarithm of its absolute value: for determinants that a float
   * cannot hold. That of a singular matrix is 0 and -Infinity.
   * @example
   * await new Tensor([[-1, 0], [0, 1]]).slogdet()[0].item() // => -1
   */
  slogdet(): [sign: this, logabsdet: this] {
    const n = this.squareSize("slogdet");
    const a = this.asFloat();
    if (a.size === 0) return [a.#ones(), a.#ones().sub(1)];
    const [pivots, sign] = a.#pivots(n);
    const signs = pivots.map((p) => p.detach()).map((p) => p.gt(0).cast(a.dtype).sub(p.lt(0).cast(a.dtype)));
    const logs = pivots.map((p) => p.lt(0).where(p.neg(), p).log());
    return [signs.reduce((x, y) => x.mul(y)).mul(sign), logs.reduce((x, y) => x.add(y))];
  }
  /**
   * The logarithm of the determinant of each matrix; NaN where it is negative.
   * @example
   * await new Tensor([[1, 0], [0, 1]]).logdet().item() // => 0
   */
  logdet(): this {
    this.squareSize("logdet");
    const [sign, log] = this.slogdet();
    return sign.lt(0).where(NaN, log);
  }
  /** The determinants of matrices without elements. */
  #ones(): this {
    return this.sum([-2, -1]).mul(0).add(1);
  }

  // ---- triangles ----

  /**
   * X with `this @ X = b` (or `X @ this = b`, with `left: false`), where only the upper (or lower) triangle of this
   * matrix is looked at; with `unitriangular` its diagonal counts as ones.
   * @example
   * await new Tensor([[1, 0], [1, 2]]).solveTriangular(new Tensor([[1], [5]]), { upper: false }).tolist() // => [[1], [2]]
   */
  solveTriangular(b: this, { upper = false, left = true, unitriangular = false } = {}): this {
    requireTensors("solveTriangular", { b });
    const n = this.squareSize("solveTriangular");
    if (b.ndim < 2 || b.shape.at(left ? -2 : -1) !== n) throw mismatch("solveTriangular", this, b, n);
    if (!left) {
      const turned = { upper: !upper, unitriangular };
      return this.transpose().solveTriangular(b.transpose(), turned).transpose();
    }
    const a = this.asFloat();
    const [x, y] = a.#sameBatch("solveTriangular", b.cast(a.dtype));
    return x.#substituted(y, upper, unitriangular);
  }
  #substituted(b: this, upper: boolean, unit: boolean): this {
    if (b.size === 0) return this.matmul(b);
    const n = this.shape.at(-1) as number;
    const list = this.stacked().contiguous();
    let state = b.stacked().contiguous();
    const { shape } = state;
    const row = this.placesAlong(shape, 1);
    for (const k of upper ? range(n).reverse() : range(n)) {
      // row k is found, and taken out of those that come after it
      const found = state.narrow(1, k, 1).expand(shape);
      const value = unit ? found : found.div(list.narrow(1, k, 1).narrow(2, k, 1).expand(shape));
      const rest = state.sub(list.narrow(2, k, 1).expand(shape).mul(value));
      state = row
        .eq(k)
        .where(value, (upper ? row.lt(k) : row.gt(k)).where(rest, state))
        .contiguous();
    }
    return this.wrap(state.reshape(b.shape).lazydata, [this, b], (g, out) => {
      const gb = this.transpose().#substituted(g, !upper, unit);
      const ga = gb.matmul(out.transpose()).neg();
      const border = unit ? 1 : 0;
      return [upper ? ga.triu(border) : ga.tril(-border), gb];
    });
  }
  /**
   * The lower triangle L with L @ Lᵀ = this, or with `upper` its transpose; the matrix must be symmetric and positive
   * definite, and only one triangle of it is looked at. If it is not positive definite there are NaN in the result.
   * @example
   * await new Tensor([[4, 2], [2, 5]]).cholesky().tolist() // => [[2, 0], [1, 2]]
   */
  cholesky({ upper = false } = {}): this {
    if (upper) return this.transpose().cholesky().transpose();
    const n = this.squareSize("cholesky");
    const a = this.asFloat();
    if (a.size === 0) return a.mul(1);
    let state = a.stacked().contiguous();
    const { shape } = state;
    const [row, column] = [this.placesAlong(shape, 1), this.placesAlong(shape, 2)];
    for (const k of range(n)) {
      const below = state.narrow(2, k, 1);
      const pivot = below.narrow(1, k, 1).expand(shape);
      const rest = state.sub(below.expand(shape).mul(below.transpose().expand(shape)).div(pivot));
      const inside = row.gt(k).bitwiseAnd(column.gt(k));
      const next = inside.where(rest, state);
      state = column.eq(k).where(state.div(pivot.sqrt()), next).contiguous();
    }
    const found = state.tril().reshape(a.shape);
    return a.wrap(found.lazydata, [a], (g, out) => {
      // half of the symmetric matrix whose lower triangle is that of outᵀ @ g, between two inverses
      const product = out.transpose().matmul(g).tril();
      const middle = product.add(product.tril(-1).transpose()).mul(0.5);
      const right = out.solveTriangular(middle, { left: false });
      return [out.transpose().solveTriangular(right, { upper: true })];
    });
  }
}

const mismatch = (method: string, a: SolveTensor, b: SolveTensor, n: number): ShapeError =>
  new ShapeError(
    `${method}: ${showShape(b.shape)} is no right-hand side for ${showShape(a.shape)}; expected a vector of ${n} or ` +
      `matrices with ${n} rows (columns with left: false)`,
  );
