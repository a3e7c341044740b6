// Products of vectors and matrices: the matmul family, einsum, tensordot, outer products. All are views, one
// elementwise product and one sum, so each is a kernel and differentiable by itself.

import { dtypes } from "../dtype.ts";
import { ArgumentError, ShapeError } from "../errors.ts";
import { prod, range } from "../helpers.ts";
import { showShape } from "./base.ts";
import { some } from "./join.ts";
import { requireTensors } from "./movement.ts";
import { isNarrow } from "./promotion.ts";
import { RandomTensor } from "./random.ts";

/** `beta * input + alpha * product` */
export interface Scales {
  readonly beta?: number;
  readonly alpha?: number;
}

const shapes = (...ts: readonly ProductTensor[]): string => ts.map((t) => showShape(t.shape)).join(" and ");

export abstract class ProductTensor extends RandomTensor {
  #requireDims(method: string, others: readonly this[], wanted: readonly number[]): void {
    const all = [this, ...others];
    if (all.every((t, i) => t.ndim === wanted[i])) return;
    const names = ["a number", "a vector", "a matrix", "a batch of matrices"];
    throw new ShapeError(
      `${method}: takes ${wanted.map((n) => names[n]).join(" and ")}, got ${shapes(...all)}; matmul takes any dims`,
    );
  }

  // ---- the matmul family ----

  /**
   * The product of two matrices; nothing broadcasts.
   * @example
   * await new Tensor([[1, 2]]).mm(new Tensor([[3], [4]])).tolist() // => [[11]]
   */
  mm(mat2: this): this {
    requireTensors("mm", { mat2 });
    this.#requireDims("mm", [mat2], [2, 2]);
    return this.matmul(mat2);
  }
  /**
   * The products of two batches of matrices of one size.
   * @example
   * await Tensor.ones(2, 1, 3).bmm(Tensor.ones(2, 3, 1)).tolist() // => [[[3]], [[3]]]
   */
  bmm(mat2: this): this {
    requireTensors("bmm", { mat2 });
    this.#requireDims("bmm", [mat2], [3, 3]);
    if (this.shape[0] !== mat2.shape[0]) {
      throw new ShapeError(
        `bmm: batches differ: ${shapes(this, mat2)}; dim 0 must be equal (matmul broadcasts)`,
      );
    }
    return this.matmul(mat2);
  }
  /**
   * Matrix times vector.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).mv(new Tensor([1, 1])).tolist() // => [3, 7]
   */
  mv(vec: this): this {
    requireTensors("mv", { vec });
    this.#requireDims("mv", [vec], [2, 1]);
    return this.matmul(vec);
  }
  /**
   * The dot product of two vectors.
   * @example
   * await new Tensor([1, 2]).vdot(new Tensor([3, 4])).item() // => 11
   */
  vdot(other: this): this {
    requireTensors("vdot", { other });
    this.#requireDims("vdot", [other], [1, 1]);
    return this.matmul(other);
  }
  /**
   * Products summed over the last dims of both; a number multiplies.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).inner(new Tensor([1, 1])).tolist() // => [3, 7]
   */
  inner(other: this): this {
    requireTensors("inner", { other });
    if (this.ndim === 0 || other.ndim === 0) return this.mul(other);
    if (this.shape.at(-1) !== other.shape.at(-1)) {
      throw new ShapeError(`inner: the last dims of ${shapes(this, other)} differ, expected equal`);
    }
    return this.tensordot(other, [[-1], [-1]]);
  }
  /**
   * Every element of one vector times every element of the other.
   * @example
   * await new Tensor([1, 2]).outer(new Tensor([3, 4])).tolist() // => [[3, 4], [6, 8]]
   */
  outer(vec2: this): this {
    requireTensors("outer", { vec2 });
    this.#requireDims("outer", [vec2], [1, 1]);
    return this.unsqueeze(1).mul(vec2.unsqueeze(0));
  }
  /**
   * The BLAS name of `outer`.
   * @example
   * await new Tensor([1, 2]).ger(new Tensor([3, 4])).tolist() // => [[3, 4], [6, 8]]
   */
  ger(vec2: this): this {
    requireTensors("ger", { vec2 });
    return this.outer(vec2);
  }

  // ---- products on top of something ----

  /** `beta * this + alpha * product`; what is scaled by 0 is not looked at, scales of integers are integers. */
  #plus(product: this, { beta = 1, alpha = 1 }: Scales): this {
    const scale = (t: this, by: number): this =>
      by === 1 ? t : t.mul(t.dtype.isFloat ? by : Math.trunc(by));
    if (beta === 0) return scale(product, alpha);
    return scale(product, alpha).add(scale(this, beta).broadcastTo(product.lazydata.shape));
  }
  /**
   * `beta * this + alpha * mat1 @ mat2`
   * @example
   * await new Tensor([1]).addmm(new Tensor([[1, 2]]), new Tensor([[3], [4]]), { alpha: 2 }).tolist() // => [[23]]
   */
  addmm(mat1: this, mat2: this, scales: Scales = {}): this {
    requireTensors("addmm", { mat1, mat2 });
    return this.#plus(mat1.mm(mat2), scales);
  }
  /**
   * `beta * this + alpha * mat @ vec`
   * @example
   * await new Tensor([1, 1]).addmv(new Tensor([[1, 2], [3, 4]]), new Tensor([1, 1])).tolist() // => [4, 8]
   */
  addmv(mat: this, vec: this, scales: Scales = {}): this {
    requireTensors("addmv", { mat, vec });
    return this.#plus(mat.mv(vec), scales);
  }
  /**
   * `beta * this + alpha * (the sum of the products of two batches)`
   * @example
   * await new Tensor([[1]]).addbmm(Tensor.ones(2, 1, 3), Tensor.ones(2, 3, 1)).tolist() // => [[7]]
   */
  addbmm(batch1: this, batch2: this, scales: Scales = {}): this {
    requireTensors("addbmm", { batch1, batch2 });
    return this.#plus(batch1.bmm(batch2).sum(0), scales);
  }
  /**
   * `beta * this + alpha * (the products of two batches)`
   * @example
   * await new Tensor([1]).baddbmm(Tensor.ones(2, 1, 3), Tensor.ones(2, 3, 1)).tolist() // => [[[4]], [[4]]]
   */
  baddbmm(batch1: this, batch2: this, scales: Scales = {}): this {
    requireTensors("baddbmm", { batch1, batch2 });
    return this.#plus(batch1.bmm(batch2), scales);
  }
  /**
   * `beta * this + alpha * vec1 ⊗ vec2`
   * @example
   * await new Tensor([1]).addr(new Tensor([1, 2]), new Tensor([3, 4])).tolist() // => [[4, 5], [7, 9]]
   */
  addr(vec1: this, vec2: this, scales: Scales = {}): this {
    requireTensors("addr", { vec1, vec2 });
    const product = vec1.outer(vec2);
    if (this.dtype.kind !== "bool" || product.dtype.kind !== "bool") return this.#plus(product, scales);
    // of truths: "and" for the product, "or" for the sum
    const scaled = (t: this, by = 1): this => t.bitwiseAnd(by !== 0);
    return scaled(product, scales.alpha).bitwiseOr(scaled(this, scales.beta));
  }

  // ---- other products ----

  /**
   * Products summed over pairs of dims: the last `dims` of this with the first of the other, or `[dimsOfThis, dimsOfOther]`.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).tensordot(new Tensor([[1, 0], [0, 1]]), 2).item() // => 5
   */
  tensordot(other: this, dims: number | readonly [readonly number[], readonly number[]] = 2): this {
    requireTensors("tensordot", { other });
    const pairs =
      typeof dims === "number" ? [range(dims).map((i) => this.ndim - dims + i), range(dims)] : [...dims];
    const [mine, theirs] = [this.axes("tensordot", pairs[0]), other.axes("tensordot", pairs[1])];
    if (mine.length !== theirs.length) {
      throw new ShapeError(
        `tensordot: ${mine.length} dims of the first and ${theirs.length} of the second do not pair up`,
      );
    }
    // a dim of size 1 stands for as many as the other has
    const [a, b] = [this.#summed(mine, other, theirs), other.#summed(theirs, this, mine)];
    const free = (t: this, taken: readonly number[]) => range(t.ndim).filter((i) => !taken.includes(i));
    const [rows, columns] = [free(a, mine), free(b, theirs)];
    const sizes = (t: this, axes: readonly number[]) => axes.map((i) => t.shape[i] as number);
    const inner = prod(sizes(a, mine));
    const left = a.permute([...rows, ...mine]).reshape(prod(sizes(a, rows)), inner);
    const right = b.permute([...theirs, ...columns]).reshape(inner, prod(sizes(b, columns)));
    return left.matmul(right).reshape([...sizes(a, rows), ...sizes(b, columns)]);
  }
  #summed(mine: readonly number[], other: this, theirs: readonly number[]): this {
    const wide = mine.filter((d, i) => {
      const [n, m] = [this.shape[d], other.shape[theirs[i] as number]];
      if (n !== m && n !== 1 && m !== 1) {
        throw new ShapeError(
          `tensordot: dims of ${shapes(this, other)} that are summed together have sizes ${n} and ${m}`,
        );
      }
      return n !== m && m === 1;
    });
    return wide.length === 0 ? this : this.sum(wide, true).cast(this.dtype);
  }
  /**
   * The Kronecker product: every element of this times the whole of the other.
   * @example
   * await new Tensor([[1, 2]]).kron(new Tensor([[1, 1]])).tolist() // => [[1, 1, 2, 2]]
   */
  kron(other: this): this {
    requireTensors("kron", { other });
    const n = Math.max(this.ndim, other.ndim);
    const full = (t: this) => [...range(n - t.ndim).map(() => 1), ...t.shape];
    const [a, b] = [full(this), full(other)];
    return this.reshape(a.flatMap((s) => [s, 1]))
      .mul(other.reshape(b.flatMap((s) => [1, s])))
      .reshape(a.map((s, i) => s * (b[i] as number)));
  }
  /**
   * The cross product of vectors of three along `dim`.
   * @example
   * await new Tensor([1, 0, 0]).cross(new Tensor([0, 1, 0])).tolist() // => [0, 0, 1]
   */
  cross(other: this, dim = -1): this {
    requireTensors("cross", { other });
    const at = this.axis("cross", dim);
    if (this.ndim !== other.ndim || this.shape[at] !== 3 || other.shape[at] !== 3) {
      throw new ShapeError(
        `cross: dim ${dim} of ${shapes(this, other)} must be 3 in both, with equally many dims`,
      );
    }
    return this.roll(-1, at)
      .mul(other.roll(-2, at))
      .sub(this.roll(-2, at).mul(other.roll(-1, at)));
  }
  /**
   * The sum of the diagonal of a matrix.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).trace().item() // => 5
   */
  trace(): this {
    if (this.ndim !== 2) throw new ShapeError(`trace: takes a matrix, got shape ${showShape(this.shape)}`);
    return this.diagonal().sum();
  }
  /**
   * This matrix and others multiplied in the order that takes the fewest steps; the first and last may be vectors.
   * @example
   * await new Tensor([[1, 2]]).chainMatmul(new Tensor([[1], [1]]), new Tensor([[5]])).tolist() // => [[15]]
   */
  chainMatmul(...others: readonly this[]): this {
    const all = [this, ...others];
    const [first, last] = [this, all.at(-1) as this];
    const matrices = all.map((t, i) => {
      if (t.ndim === 1 && i === 0) return t.unsqueeze(0);
      if (t.ndim === 1 && i === all.length - 1) return t.unsqueeze(1);
      if (t.ndim === 2) return t;
      throw new ShapeError(`chainMatmul: tensor ${i} has shape ${showShape(t.shape)}, expected a matrix`);
    });
    const sizes = [
      ...matrices.map((t) => t.shape[0] as number),
      (matrices.at(-1) as this).shape[1] as number,
    ];
    const splits = bestSplits(sizes);
    const multiply = (i: number, j: number): this => {
      if (i === j) return matrices[i] as this;
      const k = splits[i]?.[j] as number;
      return multiply(i, k).mm(multiply(k + 1, j));
    };
    const product = multiply(0, all.length - 1);
    const ends = all.length < 2 ? [] : [first.ndim === 1, last.ndim === 1];
    return product.reshape(product.shape.filter((_, i) => ends[i] !== true));
  }
  /**
   * torch's name for `chainMatmul`, with the tensors in a list.
   * @example
   * await Tensor.multiDot([new Tensor([1, 2]), new Tensor([[1], [1]]), new Tensor([5])]).item() // => 15
   */
  static multiDot<T extends ProductTensor>(tensors: readonly T[]): T {
    const [first, ...rest] = some("multiDot", tensors);
    if (rest.length === 0) throw new ArgumentError("multiDot: got 1 tensor, expected two or more");
    return first.chainMatmul(...rest);
  }

  // ---- einsum ----

  /**
   * Sums of products by Einstein's rule: letters name dims, equal letters go together, what is not behind `->` is
   * summed; `...` stands for dims without a name, which broadcast.
   * @example
   * await Tensor.einsum("ij,j->i", new Tensor([[1, 2], [3, 4]]), new Tensor([1, 1])).tolist() // => [3, 7]
   */
  static einsum<T extends ProductTensor>(
    formula: string,
    ...operands: readonly T[] | readonly [readonly T[]]
  ): T {
    const list = (Array.isArray(operands[0]) ? operands[0] : operands) as readonly T[];
    const { inputs, output } = parseEinsum(formula, list);
    let [at, labels] = (list[0] as T).#traced(inputs[0] as string[]);
    for (const i of range(list.length)) {
      // as soon as no later operand needs a dim it is summed
      const later = new Set([...inputs.slice(i + 1).flat(), ...output]);
      if (i > 0) [at, labels] = at.#joined(labels, ...(list[i] as T).#traced(inputs[i] as string[]), later);
      else [at, labels] = at.#withoutLabels(labels, later);
    }
    const missing = output.find((l) => !labels.includes(l));
    if (missing !== undefined)
      throw new ArgumentError(`einsum: "${missing}" is in the result but in no operand`);
    return at.permute(output.map((l) => labels.indexOf(l)));
  }
  /** Each label once: dims with equal labels become their diagonal. */
  #traced(labels: readonly string[]): [this, string[]] {
    const twice = labels.findIndex((l, i) => labels.indexOf(l) !== i);
    if (twice < 0) return [this, [...labels]];
    const first = labels.indexOf(labels[twice] as string);
    if (this.shape[first] !== this.shape[twice]) {
      throw new ShapeError(
        `einsum: "${labels[twice]}" names dims of sizes ${this.shape[first]} and ${this.shape[twice]} in shape ${showShape(this.shape)}`,
      );
    }
    const rest = labels.filter((_, i) => i !== first && i !== twice);
    return this.diagonal(0, first, twice).#traced([...rest, labels[twice] as string]);
  }
  #withoutLabels(labels: readonly string[], kept: ReadonlySet<string>): [this, string[]] {
    const gone = range(labels.length).filter((i) => !kept.has(labels[i] as string));
    return [gone.length === 0 ? this : this.sum(gone), labels.filter((l) => kept.has(l))];
  }
  /** The product with another operand over all labels of both, summed over those that are not kept. */
  #joined(
    mine: readonly string[],
    other: this,
    theirs: readonly string[],
    kept: ReadonlySet<string>,
  ): [this, string[]] {
    const all = [...new Set([...mine, ...theirs])];
    const spread = (t: this, labels: readonly string[]): this => {
      const present = all.filter((l) => labels.includes(l));
      const sizes = all.map((l) => (labels.includes(l) ? (t.shape[labels.indexOf(l)] as number) : 1));
      return t.permute(present.map((l) => labels.indexOf(l))).reshape(sizes);
    };
    const [a, b] = [spread(this, mine), spread(other, theirs)];
    const bad = all.findIndex((_, i) => a.shape[i] !== b.shape[i] && a.shape[i] !== 1 && b.shape[i] !== 1);
    if (bad >= 0) {
      throw new ShapeError(
        `einsum: "${all[bad]}" names dims of sizes ${a.shape[bad]} and ${b.shape[bad]}, expected equal or 1`,
      );
    }
    const narrow = isNarrow(a.dtype);
    const product = narrow ? a.cast(dtypes.float32).mul(b.cast(dtypes.float32)) : a.mul(b);
    const [sum, labels] = product.#withoutLabels(all, kept);
    return [narrow ? sum.cast(a.dtype) : sum, labels];
  }
}

/** Which product comes last in the cheapest order of a chain of matrices of these sizes. */
function bestSplits(sizes: readonly number[]): number[][] {
  const n = sizes.length - 1;
  const cost = range(n).map(() => range(n).map(() => 0));
  const split = range(n).map(() => range(n).map(() => 0));
  for (let length = 1; length < n; length++) {
    for (let i = 0; i + length < n; i++) {
      const j = i + length;
      let best = Infinity;
      for (let k = i; k < j; k++) {
        const outer = (sizes[i] as number) * (sizes[k + 1] as number) * (sizes[j + 1] as number);
        const total = (cost[i]?.[k] as number) + (cost[k + 1]?.[j] as number) + outer;
        if (total >= best) continue;
        best = total;
        (split[i] as number[])[j] = k;
      }
      (cost[i] as number[])[j] = best;
    }
  }
  return split;
}

/** The labels of every operand and of the result; the dims of an ellipsis are called 0, 1, … counted from the back. */
function parseEinsum(
  formula: string,
  operands: readonly ProductTensor[],
): { inputs: string[][]; output: string[] } {
  const fail = (why: string) => new ArgumentError(`einsum: "${formula}" ${why}`);
  const [left = "", right, more] = formula.replaceAll(/\s/g, "").split("->");
  const terms = left.split(",");
  if (more !== undefined) throw fail("has more than one ->");
  if (terms.length !== operands.length || operands.length === 0) {
    throw fail(`names ${terms.length} operands, got ${operands.length}`);
  }
  const odd = [...terms, right ?? ""].find((t) => !/^[a-zA-Z]*(\.\.\.)?[a-zA-Z]*$/.test(t));
  if (odd !== undefined) throw fail(`has the term "${odd}"; expected letters and at most one ...`);
  const labelsOf = (term: string, unnamed: number): string[] => {
    const [before = "", after] = term.split("...");
    const dots = after === undefined ? [] : range(unnamed).map((i) => `${unnamed - 1 - i}`);
    return [...before, ...dots, ...(after ?? "")];
  };
  let widest = 0;
  const inputs = operands.map((t, i) => {
    const term = terms[i] as string;
    const named = term.replace("...", "").length;
    const unnamed = t.ndim - named;
    if (term.includes("...") ? unnamed < 0 : unnamed !== 0) {
      throw fail(`gives operand ${i} the dims "${term}", its shape is ${showShape(t.shape)}`);
    }
    widest = Math.max(widest, unnamed);
    return labelsOf(term, unnamed);
  });
  if (right !== undefined) {
    const output = labelsOf(right, widest);
    if (new Set(output).size !== output.length) throw fail("repeats a dim in the result");
    return { inputs, output };
  }
  const all = inputs.flat();
  const once = [...new Set(all)]
    .filter((l) => /[a-zA-Z]/.test(l) && all.indexOf(l) === all.lastIndexOf(l))
    .sort();
  return {
    inputs,
    output: [...labelsOf(terms.some((t) => t.includes("...")) ? "..." : "", widest), ...once],
  };
}
