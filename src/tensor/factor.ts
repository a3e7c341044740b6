// Orthogonal factorizations: QR by Householder reflections, singular values and eigenvalues by Jacobi rotations. As in
// solve.ts they are unrolled loops with the state in memory and nothing looks at values: the number of sweeps is fixed.
// Gradients are the known formulas in terms of the factors, so they can be differentiated again.

import { dtypes } from "../dtype.ts";
import { ArgumentError } from "../errors.ts";
import { range } from "../helpers.ts";
import { SolveTensor } from "./solve.ts";

export abstract class FactorTensor extends SolveTensor {
  // ---- QR ----

  /**
   * Orthogonal Q and upper triangular R with Q @ R = this. "reduced" gives min(m, n) columns of Q, "complete" all m
   * (without a gradient where m > n), "r" an empty Q. The signs are LAPACK's.
   * @example
   * await new Tensor([[0, 2], [1, 0]]).qr()[1].tolist() // => [[-1, 0], [0, -2]]
   */
  qr(mode: "reduced" | "complete" | "r" = "reduced"): [Q: this, R: this] {
    if (mode !== "reduced" && mode !== "complete" && mode !== "r") {
      throw new ArgumentError(`qr: mode "${mode}" is not known; expected "reduced", "complete" or "r"`);
    }
    const a = this.asFloat();
    const { lead, rows, columns } = a.matrixSizes("qr");
    const inner = Math.min(rows, columns);
    if (mode === "r") {
      const [, r] = a.qr("reduced");
      return [r.narrow(-1, 0, 0).narrow(-2, 0, 0).reshape(0), r];
    }
    if (a.size === 0) return a.#emptyQr(lead, rows, columns, mode === "complete" ? rows : inner);
    // what lies right of the square part of a wide matrix is only turned
    if (rows < columns) {
      const [q, r] = a.narrow(-1, 0, rows).qr();
      return [q, r.cat(q.transpose().matmul(a.narrow(-1, rows, columns - rows)), -1)];
    }
    const [qAll, rAll] = a.stacked().reflected();
    const size = mode === "complete" ? rows : inner;
    const q = qAll.narrow(2, 0, size).reshape([...lead, rows, size]);
    const r = rAll.narrow(1, 0, size).reshape([...lead, size, columns]);
    if (size > inner) {
      const refuse = (): never => {
        throw new ArgumentError(
          `backward: qr("complete") of a tall matrix has no gradient, the added columns of Q are not unique; use "reduced"`,
        );
      };
      return [a.wrap(q.lazydata, [a], refuse), a.wrap(r.lazydata, [a], refuse)];
    }
    const factors: this[] = [];
    const backward = (gq: this | undefined, gr: this | undefined): this => {
      const [Q, R] = factors as [this, this];
      const first = gr === undefined ? undefined : R.matmul(gr.transpose());
      const second = gq?.transpose().matmul(Q).neg();
      const m = (first === undefined ? second : second === undefined ? first : first.add(second)) as this;
      const symmetric = m.tril().add(m.tril(-1).transpose());
      const right = gq === undefined ? Q.matmul(symmetric) : gq.add(Q.matmul(symmetric));
      return R.solveTriangular(right.transpose(), { upper: true }).transpose();
    };
    factors.push(
      a.wrap(q.lazydata, [a], (g) => [backward(g, undefined)]),
      a.wrap(r.triu().lazydata, [a], (g) => [backward(undefined, g)]),
    );
    return [...factors] as [this, this]; // a list of its own: the user may change it
  }
  #emptyQr(lead: readonly number[], rows: number, columns: number, size: number): [this, this] {
    const zero = this.sum();
    const q = this.placesAlong([...lead, rows, size], -2).eq(this.placesAlong([...lead, rows, size], -1));
    return [q.cast(this.dtype).add(zero), zero.expand([...lead, size, columns])];
  }
  /** Householder on a list of tall matrices: all of Q, and R with rows of zeros; each step reflects one column. */
  protected reflected(): [this, this] {
    const [, rows, columns] = this.shape as [number, number, number];
    let state = this.cat(this.identities(rows), 2).contiguous();
    const { shape } = state;
    const [row, column] = [this.placesAlong(shape, 1), this.placesAlong(shape, 2)];
    for (const k of range(Math.min(columns, rows - 1))) {
      const x = state.narrow(2, k, 1);
      const below = this.placesAlong(x.shape, 1).gt(k).where(x.square(), 0).sum(1, true).contiguous();
      const rest = below.expand(shape);
      const head = state.narrow(1, k, 1).narrow(2, k, 1).expand(shape);
      const length = head.square().add(rest).sqrt();
      const beta = head.lt(0).where(length, length.neg());
      // a column that is zero below the diagonal stays as it is, sign and all
      const idle = rest.eq(0);
      const entry = x.expand(shape).div(idle.where(1, head.sub(beta)));
      const v = row.lt(k).where(0, row.eq(k).where(1, entry));
      const along = v.mul(state).sum(1, true).contiguous();
      const tau = idle.where(0, beta.sub(head).div(idle.where(1, beta)));
      const next = state.sub(tau.mul(v).mul(along.expand(shape)));
      const cleared = row.gt(k).bitwiseAnd(column.eq(k));
      state = cleared.where(0, next).contiguous();
    }
    return [state.narrow(2, columns, rows).transpose(), state.narrow(2, 0, columns)];
  }

  // ---- singular values ----

  /**
   * U, S and Vᵀ with U @ diag(S) @ Vᵀ = this: orthogonal factors and singular values, largest first. With `fullMatrices`
   * U and V are square; their gradient is that of the first min(m, n) columns. Columns of U and V are unique up to a
   * common sign only.
   * @example
   * await new Tensor([[3, 0], [0, -4]]).svd()[1].tolist() // => [4, 3]
   */
  svd(fullMatrices = true): [U: this, S: this, Vh: this] {
    const a = this.asFloat();
    const { lead, rows, columns } = a.matrixSizes("svd");
    if (rows < columns) {
      const [u, s, vh] = a.transpose().svd(fullMatrices);
      return [vh.transpose(), s, u.transpose()];
    }
    if (a.size === 0) return a.#emptySvd(lead, rows, columns, fullMatrices);
    const list = a.stacked();
    const [u, s, v] = list.#jacobi();
    const wide = fullMatrices ? rows : columns;
    const values = [
      u.narrow(2, 0, wide).reshape([...lead, rows, wide]),
      s.reshape([...lead, columns]),
      v.transpose().reshape([...lead, columns, columns]),
    ];
    const out: this[] = [];
    const parts = (): [this, this, this] => {
      const [U, S, Vh] = out as [this, this, this];
      return [U.narrow(-1, 0, columns), S, Vh];
    };
    out.push(
      a.wrap((values[0] as this).lazydata, [a], (g) => [a.#backU(parts(), g.narrow(-1, 0, columns))]),
      a.wrap((values[1] as this).lazydata, [a], (g) => {
        const [U, , Vh] = parts();
        return [U.mul(g.unsqueeze(-2)).matmul(Vh)];
      }),
      a.wrap((values[2] as this).lazydata, [a], (g) => [a.#backV(parts(), g)]),
    );
    return [...out] as [this, this, this];
  }
  /** skew(Uᵀ gU) / E, with E[i, j] = s[j]² - s[i]². */
  #rotation(s: this, product: this): this {
    const square = s.square();
    const gaps = square.unsqueeze(-2).sub(square.unsqueeze(-1));
    const n = this.placesAlong(gaps.shape, -1).eq(this.placesAlong(gaps.shape, -2));
    return n.where(0, product.sub(product.transpose()).div(n.where(1, gaps)));
  }
  #backU([u, s, vh]: readonly [this, this, this], g: this): this {
    const turned = this.#rotation(s, u.transpose().matmul(g)).mul(s.unsqueeze(-2));
    const inside = u.matmul(turned);
    if (u.shape.at(-2) === u.shape.at(-1)) return inside.matmul(vh);
    const outside = g.sub(u.matmul(u.transpose().matmul(g))).div(s.unsqueeze(-2));
    return inside.add(outside).matmul(vh);
  }
  #backV([u, s, vh]: readonly [this, this, this], g: this): this {
    return u.matmul(s.unsqueeze(-1).mul(this.#rotation(s, vh.matmul(g.transpose())))).matmul(vh);
  }
  #emptySvd(lead: readonly number[], rows: number, columns: number, full: boolean): [this, this, this] {
    const zero = this.sum();
    const [u] = this.#emptyQr(lead, rows, columns, full ? rows : columns);
    return [u, zero.expand([...lead, columns]), zero.expand([...lead, columns, columns])];
  }

  /**
   * One-sided Jacobi on a list of tall matrices: turns pairs of columns until all are orthogonal; V turns along below
   * them. A round turns neighbours and swaps them, beginning at column 0 and 1 in turn, so that after n rounds every
   * column has met every other and all rounds are the same few kernels. Gives all of U, S and V.
   */
  #jacobi(): [this, this, this] {
    const [batch, rows, n] = this.shape as [number, number, number];
    const largest = this.abs().max([1, 2], true).contiguous();
    const scale = largest.eq(0).where(1, largest).contiguous();
    let state = this.div(scale.expand(this.shape)).cat(this.identities(n), 1).contiguous();
    // convergence is quadratic: each sweep of the last ones doubles the digits
    const sweeps = n < 2 ? 0 : 2 * Math.ceil(((this.dtype === dtypes.float64 ? 8 : 6) + Math.log2(n)) / 2);
    for (const round of range(sweeps * n)) state = state.#turned(rows, round % 2);
    const upper = state.narrow(1, 0, rows);
    const lengths = upper.square().sum(1, true).sqrt().contiguous();
    const shape = [batch, n, n];
    const [mine, theirs] = [lengths.transpose().expand(shape), lengths.expand(shape)];
    const [at, other] = [this.placesAlong(shape, 1), this.placesAlong(shape, 2)];
    const ahead = theirs.gt(mine).bitwiseOr(theirs.eq(mine).bitwiseAnd(other.lt(at)));
    const rank = ahead.cast(dtypes.int32).sum(2).contiguous();
    const sorted = (t: this): this => {
      const full = [batch, t.shape[1] as number, n, n];
      const chosen = rank.reshape(batch, 1, 1, n).expand(full).eq(this.placesAlong(full, 2));
      return chosen.where(t.unsqueeze(2).expand(full), 0).sum(3).contiguous();
    };
    // reflections complete the columns of U, also where singular values are zero
    const [q, r] = sorted(upper).reflected();
    const diagonal = r
      .diagonal(0, 1, 2)
      .unsqueeze(1)
      .pad([null, null, [0, rows - n]])
      .expand([batch, rows, rows]);
    const u = diagonal.lt(0).where(q.neg(), q).contiguous();
    const s = sorted(lengths).mul(scale).reshape(batch, n).contiguous();
    return [u, s, sorted(state.narrow(1, rows, n))];
  }
  /** One round: columns first, first + 1; first + 2, first + 3; … become orthogonal in their upper rows and swap. */
  #turned(rows: number, first: number): this {
    const [batch, height, n] = this.shape as [number, number, number];
    const pairs = Math.floor((n - first) / 2);
    if (pairs === 0) return this;
    const partner = this.narrow(2, first, 2 * pairs)
      .reshape(batch, height, pairs, 2)
      .flip(3)
      .reshape(batch, height, 2 * pairs)
      .pad([null, null, [first, n - first - 2 * pairs]]);
    const [x, y] = [this.narrow(1, 0, rows), partner.narrow(1, 0, rows)];
    // written so that both columns of a pair get the same numbers, but for the sign
    const gap = y.sub(x).mul(y.add(x)).sum(1, true).contiguous();
    const twice = x.mul(y).sum(1, true).mul(2);
    const column = this.placesAlong(twice.shape, 2);
    const isLeft = column.sub(first).bitwiseAnd(1).eq(0);
    const size = gap.abs().add(gap.square().add(twice.square()).sqrt());
    const flat = gap.lt(0).bitwiseOr(gap.eq(0).bitwiseAnd(isLeft));
    const ratio = twice.div(size.eq(0).where(1, size));
    const tangent = flat.where(ratio.neg(), ratio).contiguous().expand(this.shape);
    const cosine = tangent.square().add(1).rsqrt();
    const turned = partner.add(tangent.mul(this)).mul(cosine);
    const place = this.placesAlong(this.shape, 2);
    const alone = place.lt(first).bitwiseOr(place.ge(first + 2 * pairs));
    return alone.where(this, turned).contiguous();
  }

  /**
   * The singular values, largest first; their gradient is stable where that of the vectors is not.
   * @example
   * await new Tensor([[3, 0], [0, -4]]).svdvals().tolist() // => [4, 3]
   */
  svdvals(): this {
    return this.svd(false)[1];
  }

  // ---- eigenvalues ----

  /**
   * Eigenvalues, smallest first, and eigenvectors (as columns) of symmetric matrices, of which only one triangle is looked
   * at. Vectors are unique up to a sign only.
   * @example
   * await new Tensor([[2, 0], [0, 1]]).eigh()[0].tolist() // => [1, 2]
   */
  eigh(UPLO: "L" | "U" = "L"): [eigenvalues: this, eigenvectors: this] {
    const n = this.squareSize("eigh");
    const a = this.asFloat();
    const lead = this.shape.slice(0, -2);
    if (a.size === 0) return [a.sum().expand([...lead, n]), a.mul(1)];
    const list = a.stacked();
    const half = UPLO === "L" ? list : list.transpose();
    const whole = half.tril().add(half.tril(-1).transpose()).contiguous();
    // made positive definite, so that singular vectors are eigenvectors
    const shift = whole.abs().sum(2, true).max(1, true).contiguous();
    const [, , v] = whole
      .add(whole.identities(n).mul(shift.expand(whole.shape)))
      .contiguous()
      .#jacobi();
    const vectors = v.flip(2).contiguous();
    const values = whole.matmul(vectors).mul(vectors).sum(1);
    const out: this[] = [];
    out.push(
      a.wrap(values.reshape([...lead, n]).lazydata, [a], (g) => {
        const V = out[1] as this;
        return [V.mul(g.unsqueeze(-2)).matmul(V.transpose())];
      }),
      a.wrap(vectors.reshape([...lead, n, n]).lazydata, [a], (g) => {
        const [L, V] = out as [this, this];
        const gaps = L.unsqueeze(-2).sub(L.unsqueeze(-1));
        const same = this.placesAlong(gaps.shape, -1).eq(this.placesAlong(gaps.shape, -2));
        const inside = same.where(0, V.transpose().matmul(g).div(same.where(1, gaps)));
        return [V.matmul(inside).matmul(V.transpose())];
      }),
    );
    return [...out] as [this, this];
  }
  /**
   * The eigenvalues of symmetric matrices, smallest first.
   * @example
   * await new Tensor([[2, 0], [0, 1]]).eigvalsh().tolist() // => [1, 2]
   */
  eigvalsh(UPLO: "L" | "U" = "L"): this {
    return this.eigh(UPLO)[0];
  }
}
