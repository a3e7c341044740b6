// Putting tensors together (cat, stack and their relatives) and taking them apart (split, chunk, unbind). Parts are
// views and cost nothing; a join is one kernel.

import { promote } from "../dtype.ts";
import { ArgumentError, ShapeError } from "../errors.ts";
import { range } from "../helpers.ts";
import { concat, startsOf } from "../lazy/concat.ts";
import { add, type Sint } from "../shape/symbolic.ts";
import { showShape } from "./base.ts";
import { FunctionTensor } from "./functions.ts";
import { describe, requireTensors } from "./movement.ts";

export abstract class JoinTensor extends FunctionTensor {
  // ---- together ----

  /**
   * This tensor and others, one after the other along `dim`; the other dims must agree.
   * @example
   * await new Tensor([1, 2]).cat(new Tensor([3])).tolist() // => [1, 2, 3]
   */
  cat(others: this | readonly this[], dim = 0): this {
    const all = [this, ...(others instanceof JoinTensor ? [others] : others)] as this[];
    if (all.some((t) => t.ndim === 0)) {
      throw new ShapeError(
        "cat: a tensor of shape [] has no dim to join along; use stack, or reshape it to [1]",
      );
    }
    // an empty vector joins anything, as in torch
    const solid = all.filter((t) => !(t.ndim === 1 && t.shape[0] === 0));
    const first = solid[0] ?? this;
    const at = first.axis("cat", dim);
    for (const t of solid) {
      const fits = t.lazydata.shape.every((s, i) => i === at || s === first.lazydata.shape[i]);
      if (t.ndim === first.ndim && fits) continue;
      throw new ShapeError(
        `cat: cannot join ${showShape(first.shape)} and ${showShape(t.shape)} along dim ${dim}; all other dims must be equal`,
      );
    }
    const type = all.map((t) => t.dtype).reduce(promote);
    const parts = (solid.length === 0 ? [this] : solid).map((t) => t.cast(type));
    return parts.length === 1 ? (parts[0] as this) : first.#joined(parts, at);
  }
  #joined(parts: readonly this[], at: number): this {
    const nodes = parts.map((p) => p.lazydata);
    const starts = startsOf(nodes, at);
    return this.wrap(concat(nodes, at), parts, (g) =>
      parts.map((_, i) =>
        g.shrink(range(g.ndim).map((d) => (d === at ? [starts[i] as Sint, starts[i + 1] as Sint] : null))),
      ),
    );
  }
  /**
   * Tensors one after the other along `dim`.
   * @example
   * await Tensor.cat([new Tensor([[1], [2]]), new Tensor([[3], [4]])], 1).tolist() // => [[1, 3], [2, 4]]
   */
  static cat<T extends JoinTensor>(tensors: readonly T[], dim = 0): T {
    const [first, ...rest] = some("cat", tensors);
    return first.cat(rest, dim);
  }
  /**
   * This tensor and others of its shape along a new dim.
   * @example
   * await new Tensor([1, 2]).stack(new Tensor([3, 4])).tolist() // => [[1, 2], [3, 4]]
   */
  stack(others: this | readonly this[], dim = 0): this {
    const all = [this, ...(others instanceof JoinTensor ? [others] : others)] as this[];
    const odd = all.find((t) => showShape(t.shape) !== showShape(this.shape));
    if (odd !== undefined) {
      throw new ShapeError(
        `stack: the tensors have shapes ${showShape(this.shape)} and ${showShape(odd.shape)}, expected equal; cat joins sizes that differ`,
      );
    }
    const at = this.axis("stack", dim, this.ndim + 1);
    const [first, ...rest] = all.map((t) => t.unsqueeze(at)) as [this, ...this[]];
    return first.cat(rest, at);
  }
  /**
   * Tensors of one shape along a new dim.
   * @example
   * await Tensor.stack([new Tensor([1, 2]), new Tensor([3, 4])], 1).tolist() // => [[1, 3], [2, 4]]
   */
  static stack<T extends JoinTensor>(tensors: readonly T[], dim = 0): T {
    const [first, ...rest] = some("stack", tensors);
    return first.stack(rest, dim);
  }
  /**
   * Side by side: vectors end to end, anything else along dim 1.
   * @example
   * await Tensor.hstack([new Tensor([1, 2]), new Tensor([3])]).tolist() // => [1, 2, 3]
   */
  static hstack<T extends JoinTensor>(tensors: readonly T[]): T {
    const parts = some("hstack", tensors).map((t) => t.atLeast(1));
    return JoinTensor.cat(parts, (parts[0] as T).ndim === 1 ? 0 : 1);
  }
  /**
   * On top of each other: vectors become rows.
   * @example
   * await Tensor.vstack([new Tensor([1, 2]), new Tensor([3, 4])]).tolist() // => [[1, 2], [3, 4]]
   */
  static vstack<T extends JoinTensor>(tensors: readonly T[]): T {
    return JoinTensor.cat(
      some("vstack", tensors).map((t) => t.atLeast(2)),
      0,
    );
  }
  /**
   * Behind each other, along dim 2.
   * @example
   * await Tensor.dstack([new Tensor([1, 2]), new Tensor([3, 4])]).tolist() // => [[[1, 3], [2, 4]]]
   */
  static dstack<T extends JoinTensor>(tensors: readonly T[]): T {
    return JoinTensor.cat(
      some("dstack", tensors).map((t) => t.atLeast(3)),
      2,
    );
  }
  /**
   * Vectors as the columns of a matrix; matrices side by side.
   * @example
   * await Tensor.columnStack([new Tensor([1, 2]), new Tensor([3, 4])]).tolist() // => [[1, 3], [2, 4]]
   */
  static columnStack<T extends JoinTensor>(tensors: readonly T[]): T {
    const columns = some("columnStack", tensors).map((t) => (t.ndim < 2 ? t.reshape(t.size, 1) : t));
    return JoinTensor.cat(columns, 1);
  }
  /**
   * The tensors as blocks along the diagonal of a matrix of zeros; vectors are rows.
   * @example
   * await Tensor.blockDiag([new Tensor([[1, 2]]), new Tensor([[3]])]).tolist() // => [[1, 2, 0], [0, 0, 3]]
   */
  static blockDiag<T extends JoinTensor>(tensors: readonly T[]): T {
    const blocks = some("blockDiag", tensors).map((t) => t.atLeast(2));
    const odd = blocks.find((b) => b.ndim > 2);
    if (odd !== undefined) {
      throw new ShapeError(
        `blockDiag: shape ${showShape(odd.shape)} is no matrix; give tensors of at most 2 dims`,
      );
    }
    const width = blocks.reduce((n, b) => n + (b.shape[1] as number), 0);
    let left = 0;
    const rows = blocks.map((b) => {
      const w = b.shape[1] as number;
      const row = b.pad([null, [left, width - left - w]]);
      left += w;
      return row;
    });
    return JoinTensor.cat(rows, 0);
  }
  /**
   * A matrix of tensors as one: rows of `blocks` are joined along the last dim, then on top of each other.
   * @example
   * await Tensor.block([[Tensor.ones(1, 1), Tensor.zeros(1, 2)]]).tolist() // => [[1, 0, 0]]
   */
  static block<T extends JoinTensor>(blocks: readonly (readonly T[])[]): T {
    const rows = blocks.map((row) => {
      const parts = some("block", row).map((t) => t.atLeast(2));
      return JoinTensor.cat(parts, -1);
    });
    return JoinTensor.cat(rows, -2);
  }
  /**
   * One tensor a vector, spread over the grid that they span; `indexing` "xy" swaps the first two dims.
   * @example
   * await Tensor.meshgrid([new Tensor([1, 2]), new Tensor([3, 4])])[0].tolist() // => [[1, 1], [2, 2]]
   */
  static meshgrid<T extends JoinTensor>(tensors: readonly T[], indexing: "ij" | "xy" = "ij"): T[] {
    const list = some("meshgrid", tensors);
    const odd = list.find((t) => t.ndim > 1);
    if (odd !== undefined) {
      throw new ShapeError(`meshgrid: shape ${showShape(odd.shape)} is no vector; flatten it first`);
    }
    if (indexing === "xy" && list.length > 1) {
      return JoinTensor.meshgrid(list).map((g) => g.transpose(0, 1));
    }
    const sizes = list.map((t) => t.size);
    return list.map((t, i) => t.reshape(sizes.map((n, d) => (d === i ? n : 1))).expand(sizes));
  }
  /**
   * All combinations of one element of each vector, one a row.
   * @example
   * await Tensor.cartesianProd([new Tensor([1, 2]), new Tensor([3, 4])]).tolist() // => [[1, 3], [1, 4], [2, 3], [2, 4]]
   */
  static cartesianProd<T extends JoinTensor>(tensors: readonly T[]): T {
    const [only, ...more] = some("cartesianProd", tensors);
    if (more.length === 0) return only;
    return JoinTensor.stack(
      JoinTensor.meshgrid(tensors).map((g) => g.flatten()),
      1,
    );
  }
  /** With dims of size 1 added until there are `n`, as the stacks want them. */
  protected atLeast(n: 1 | 2 | 3): this {
    if (this.ndim >= n) return this;
    if (this.ndim === 0) return this.reshape(range(n).map(() => 1));
    const { shape } = this.lazydata;
    if (this.ndim === 1) return n === 2 ? this.reshape([1, ...shape]) : this.reshape([1, ...shape, 1]);
    return this.reshape([...shape, 1]);
  }

  // ---- apart ----

  /**
   * Parts of `size` elements along `dim` (the last may be smaller), or of the sizes in a list.
   * @example
   * (await Promise.all(new Tensor([1, 2, 3]).split(2).map((t) => t.tolist()))) // => [[1, 2], [3]]
   */
  split(size: number | readonly number[], dim = 0): this[] {
    if (typeof size !== "number") return this.splitWithSizes(size, dim);
    const n = this.shape[this.axis("split", dim)] as number;
    if (!Number.isInteger(size) || size < 0 || (size === 0 && n > 0)) {
      throw new ArgumentError(`split: the size of a part is ${size}, expected an integer from 1 up`);
    }
    const parts = n === 0 ? 1 : Math.ceil(n / size);
    return this.splitWithSizes(
      range(parts).map((i) => Math.min(size, n - i * size)),
      dim,
    );
  }
  /**
   * Parts of the given sizes along `dim`; they add up to its size.
   * @example
   * (await Promise.all(new Tensor([1, 2, 3]).splitWithSizes([1, 2]).map((t) => t.tolist()))) // => [[1], [2, 3]]
   */
  splitWithSizes(sizes: readonly number[], dim = 0): this[] {
    const at = this.axis("splitWithSizes", dim);
    const total = sizes.reduce((a, b) => a + b, 0);
    if (total !== this.shape[at] || sizes.some((s) => !Number.isInteger(s) || s < 0)) {
      throw new ShapeError(
        `splitWithSizes: [${sizes}] adds up to ${total}, dim ${dim} of ${showShape(this.shape)} has ${this.shape[at]}; expected equal`,
      );
    }
    let start = 0;
    return sizes.map((n) => {
      start += n;
      return this.between(at, start - n, start);
    });
  }
  /**
   * At most `chunks` parts of equal size along `dim`; the last may be smaller.
   * @example
   * (await Promise.all(new Tensor([1, 2, 3]).chunk(2).map((t) => t.tolist()))) // => [[1, 2], [3]]
   */
  chunk(chunks: number, dim = 0): this[] {
    if (!Number.isInteger(chunks) || chunks < 1) {
      throw new ArgumentError(`chunk: got ${chunks} chunks, expected an integer from 1 up`);
    }
    const n = this.shape[this.axis("chunk", dim)] as number;
    if (n === 0) return range(chunks).map(() => this);
    return this.split(Math.ceil(n / chunks), dim);
  }
  /**
   * Exactly so many parts along `dim`, sizes differing by at most one; or cuts before the given indices.
   * @example
   * (await Promise.all(new Tensor([1, 2, 3]).tensorSplit([1]).map((t) => t.tolist()))) // => [[1], [2, 3]]
   */
  tensorSplit(indicesOrSections: number | readonly number[], dim = 0): this[] {
    const at = this.axis("tensorSplit", dim);
    const n = this.shape[at] as number;
    if (typeof indicesOrSections === "number") {
      const k = indicesOrSections;
      if (!Number.isInteger(k) || k < 1) {
        throw new ArgumentError(`tensorSplit: got ${k} sections, expected an integer from 1 up`);
      }
      return this.splitWithSizes(
        range(k).map((i) => Math.floor(n / k) + (i < n % k ? 1 : 0)),
        at,
      );
    }
    const inside = (i: number) => Math.min(n, Math.max(0, i < 0 ? i + n : i));
    const cuts = [0, ...indicesOrSections.map(inside), n];
    return range(cuts.length - 1).map((i) => {
      const [lo, hi] = [cuts[i] as number, cuts[i + 1] as number];
      return this.between(at, lo, Math.max(lo, hi));
    });
  }
  /**
   * The slices along `dim`, without it.
   * @example
   * (await Promise.all(new Tensor([[1, 2], [3, 4]]).unbind(1).map((t) => t.tolist()))) // => [[1, 3], [2, 4]]
   */
  unbind(dim = 0): this[] {
    const at = this.axis("unbind", dim);
    return range(this.shape[at] as number).map((i) => this.select(at, i));
  }
  /**
   * `length` elements from `start` along `dim`.
   * @example
   * await new Tensor([1, 2, 3, 4]).narrow(0, 1, 2).tolist() // => [2, 3]
   */
  narrow(dim: number, start: Sint, length: Sint): this {
    const at = this.axis("narrow", dim);
    const n = this.shape[at] as number;
    const from = typeof start === "number" && start < 0 ? start + n : start;
    const end = add(from, length);
    if (typeof from === "number" && typeof end === "number" && (from < 0 || end > n || end < from)) {
      throw new ShapeError(
        `narrow: ${length} elements from ${start} do not lie in dim ${dim} of ${showShape(this.shape)}`,
      );
    }
    return this.between(at, from, end);
  }
  /**
   * The slice number `index` along `dim`, without it; a negative one counts from the end.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).select(1, -1).tolist() // => [2, 4]
   */
  select(dim: number, index: Sint): this {
    const at = this.axis("select", dim);
    const n = this.shape[at] as number;
    const i = typeof index === "number" && index < 0 ? index + n : index;
    if (typeof i === "number" && !(Number.isInteger(i) && i >= 0 && i < n)) {
      throw new ShapeError(
        `select: index ${index} is out of range for dim ${dim} of ${showShape(this.shape)}; expected ${-n} to ${n - 1}`,
      );
    }
    const cut = this.between(at, i, add(i, 1));
    return cut.reshape(cut.lazydata.shape.filter((_, d) => d !== at));
  }
  /** `[start, end)` of the dim `at`, counted from the front. */
  protected between(at: number, start: Sint, end: Sint): this {
    if (start === 0 && end === this.lazydata.shape[at]) return this;
    return this.shrink(range(this.ndim).map((d) => (d === at ? [start, end] : null)));
  }
}

/** At least one tensor, or a complaint. */
export function some<T extends JoinTensor>(method: string, tensors: readonly T[]): readonly [T, ...T[]] {
  if (!Array.isArray(tensors)) {
    throw new ArgumentError(`${method}: got ${describe(tensors)}, expected an array of Tensors`);
  }
  requireTensors(method, { ...tensors });
  if (tensors.length > 0) return tensors as unknown as readonly [T, ...T[]];
  throw new ArgumentError(`${method}: got an empty list; give at least one tensor`);
}
