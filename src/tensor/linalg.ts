// What the factorizations are for: norms of vectors and matrices, ranks, pseudo-inverses, least squares.

import { type DTypeLike, dtypes, toDType } from "../dtype.ts";
import { ArgumentError, ShapeError } from "../errors.ts";
import { range } from "../helpers.ts";
import { showShape } from "./base.ts";
import { FactorTensor } from "./factor.ts";
import { requireTensors } from "./movement.ts";
import type { Axes } from "./reduce.ts";

export type MatrixOrd = "fro" | "nuc" | number;

/** Relative to the largest singular value: what is smaller counts as zero. */
interface Cutoff {
  readonly atol?: number;
  readonly rtol?: number;
}

export interface LeastSquares<T> {
  readonly solution: T;
  readonly residuals: T;
  readonly rank: T;
  readonly singularValues: T;
}

export abstract class LinalgTensor extends FactorTensor {
  // ---- norms ----

  /**
   * The norm of the matrices in two dims: "fro" (all elements as a vector), "nuc" (the sum of the singular values), ±2 (the
   * largest or smallest of them), ±1 and ±Infinity (the largest or smallest sum of a column or row).
   * @example
   * await new Tensor([[1, 2], [3, 4]]).matrixNorm(1).item() // => 6
   */
  matrixNorm(ord: MatrixOrd = "fro", dim: readonly [number, number] = [-2, -1], keepdim = false): this {
    const [r, c] = this.axes("matrixNorm", dim) as [number, number];
    const kept = this.shape.map((s, i) => (i === r || i === c ? 1 : s));
    const value = this.#matrixNormKept(ord, r, c).reshape(kept);
    return keepdim ? value : value.reshape(kept.filter((_, i) => i !== r && i !== c));
  }
  #matrixNormKept(ord: MatrixOrd, r: number, c: number): this {
    if (ord === "fro") return this.vectorNorm(2, [r, c], true);
    const size = typeof ord === "number" ? Math.abs(ord) : ord;
    if (size === "nuc" || size === 2) {
      const values = this.movedim([r, c], [-2, -1]).svdvals();
      if (size === "nuc") return values.sum(-1);
      return (ord as number) > 0 ? values.amax(-1) : values.amin(-1);
    }
    if (size !== 1 && size !== Infinity) {
      throw new ArgumentError(
        `matrixNorm: a matrix has no norm of ord ${ord}; expected "fro", "nuc", 1, -1, 2, -2, Infinity or -Infinity`,
      );
    }
    const [along, over] = size === 1 ? [r, c] : [c, r];
    const sums = this.vectorNorm(1, along, true);
    return (ord as number) > 0 ? sums.amax(over, true) : sums.amin(over, true);
  }
  /**
   * torch.linalg.norm: without `ord` the 2-norm of all elements (or along `dim`), with `ord` that of a vector or of a
   * matrix, by the number of dims. `norm` is the older one, which takes a matrix for a vector.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).linalgNorm(Infinity).item() // => 7
   */
  linalgNorm(
    ord?: MatrixOrd | null,
    dim?: number | readonly number[] | null,
    keepdim = false,
    { dtype }: { readonly dtype?: DTypeLike } = {},
  ): this {
    if (dtype !== undefined) return this.cast(toDType(dtype)).linalgNorm(ord, dim, keepdim);
    const dims = typeof dim === "number" ? [dim] : (dim ?? undefined);
    if (ord === undefined || ord === null) return this.vectorNorm(2, dims, keepdim);
    const over = dims ?? range(this.ndim);
    if (over.length === 2) return this.matrixNorm(ord, over as readonly [number, number], keepdim);
    if (over.length === 1 && typeof ord === "number") return this.vectorNorm(ord, over, keepdim);
    throw new ShapeError(
      `linalgNorm: ord ${ord} over ${over.length} dims of shape ${showShape(this.shape)}; expected one dim (with a ` +
        "number) or two; say which in dim",
    );
  }
  /**
   * torch.norm: the vector norm of order `p` of all elements or along `dim`; "fro" is 2, "nuc" the sum of the singular
   * values of matrices.
   * @example
   * await new Tensor([[3, 0], [0, 4]]).norm("nuc").item() // => 7
   */
  override norm(
    p: number | "fro" | "nuc" = 2,
    dim?: Axes,
    keepdim = false,
    typed: { readonly dtype?: DTypeLike } = {},
  ): this {
    if (p !== "nuc") return super.norm(p, dim, keepdim, typed);
    return this.linalgNorm("nuc", dim, keepdim, typed);
  }

  // ---- what singular values tell ----

  /** The smallest singular value that counts, for matrices with these values. */
  #cutoff(values: this, { atol, rtol }: Cutoff): this {
    const { rows, columns } = this.matrixSizes("matrixRank");
    const epsilon = values.dtype === dtypes.float64 ? 2 ** -52 : 2 ** -23;
    const relative = rtol ?? (atol === undefined || atol === 0 ? Math.max(rows, columns) * epsilon : 0);
    return values
      .detach()
      .max(-1, true)
      .mul(relative)
      .maximum(atol ?? 0);
  }
  /**
   * How many singular values are above the cutoff: `atol`, or `rtol` times the largest (the default is the rounding
   * error of the type).
   * @example
   * await new Tensor([[1, 2], [2, 4]]).matrixRank().item() // => 1
   */
  matrixRank(cutoff: Cutoff = {}): this {
    const { lead, rows, columns } = this.matrixSizes("matrixRank");
    if (rows === 0 || columns === 0) return this.detach().sum([-2, -1]).reshape(lead).cast(dtypes.int32);
    const values = this.detach().svdvals();
    return values.gt(this.#cutoff(values, cutoff)).cast(dtypes.int32).sum(-1);
  }
  /**
   * The pseudo-inverse of Moore and Penrose; singular values below the cutoff count as zero.
   * @example
   * await new Tensor([[2, 0], [0, 0]]).pinv().tolist() // => [[0.5, 0], [0, 0]]
   */
  pinv(cutoff: Cutoff = {}): this {
    const a = this.asFloat();
    a.matrixSizes("pinv");
    if (a.size === 0) return a.transpose();
    const [u, s, vh] = a.detach().svd(false);
    const counts = s.gt(a.#cutoff(s, cutoff));
    const inverse = counts.where(counts.where(s, 1).reciprocal(), 0).unsqueeze(-2);
    const found = vh.transpose().mul(inverse).matmul(u.transpose());
    return a.wrap(found.contiguous().lazydata, [a], (g, p) => {
      const [gt, pt] = [g.transpose(), p.transpose()];
      const [left, right] = [gt.matmul(p), p.matmul(gt)];
      // (I - A P) gᵀ P Pᵀ + Pᵀ P gᵀ (I - P A) - Pᵀ g Pᵀ
      const first = left.sub(a.matmul(p).matmul(left)).matmul(pt);
      const second = pt.matmul(right.sub(right.matmul(p).matmul(a)));
      return [first.add(second).sub(pt.matmul(g).matmul(pt))];
    });
  }
  /**
   * The X for which `this @ X` is as near to `b` as it gets, the smallest if there are several; with the squares that are
   * left (empty unless there are more rows than columns), the rank and the singular values.
   * @example
   * await new Tensor([[1, 0], [0, 2], [0, 0]]).lstsq(new Tensor([[1], [2], [3]])).solution.tolist() // => [[1], [1]]
   */
  lstsq(b: this, cutoff: Cutoff = {}): LeastSquares<this> {
    requireTensors("lstsq", { b });
    const { lead, rows, columns } = this.matrixSizes("lstsq");
    const isVector = b.ndim === this.ndim - 1 && showShape(b.shape) === showShape([...lead, rows]);
    const right = isVector ? b.unsqueeze(-1) : b;
    if (right.ndim < 2 || right.shape.at(-2) !== rows) {
      throw new ShapeError(
        `lstsq: ${showShape(b.shape)} is no right-hand side for ${showShape(this.shape)}; expected ${rows} rows`,
      );
    }
    const a = this.asFloat();
    const solution = a.pinv(cutoff).matmul(right.cast(a.dtype));
    const miss = a.matmul(solution).sub(right.cast(a.dtype)).square().sum(-2);
    return {
      solution: isVector ? solution.squeeze(-1) : solution,
      residuals: rows > columns ? miss : miss.reshape(-1).narrow(0, 0, 0),
      rank: a.matrixRank(cutoff),
      singularValues: a.svdvals(),
    };
  }
}
