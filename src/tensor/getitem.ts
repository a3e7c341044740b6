// Reading by index: gather, indexSelect, take, embedding, masks, and `get`, which is x[...] of Python. An index is
// compared with 0, 1, 2 … and what it equals is summed; the compiler turns that sum into one indexed load. Indices
// beyond the end read 0, since a kernel cannot raise an error.

import { dtypes, encodeArray } from "../dtype.ts";
import { ArgumentError, DTypeError, ShapeError } from "../errors.ts";
import { arraysEqual, prod, range } from "../helpers.ts";
import { LazyBuffer } from "../lazy/lazybuffer.ts";
import { copyTo } from "../lazy/multi.ts";
import { Buffer } from "../runtime/buffer.ts";
import type { Interval } from "../shape/view.ts";
import { showShape } from "./base.ts";
import { toFloat } from "./math.ts";
import { requireTensors } from "./movement.ts";
import { operandValue } from "./promotion.ts";
import { ScanTensor } from "./scan.ts";

/** `[start, end, step]` as in Python's slices: null or nothing is the end of the dim, negative counts from the end. */
export type Slice = readonly [start?: number | null, end?: number | null, step?: number | null];
/** A place, a slice, a new dim (null), all dims that are not named ("..."), or a tensor of places or of flags. */
export type Index<T> = number | Slice | null | "..." | T;

export interface EmbeddingOptions {
  /** the row that gets no gradient */
  readonly paddingIdx?: number | undefined;
  /** rows longer than this are scaled down to it */
  readonly maxNorm?: number | undefined;
  /** the p of the norm that `maxNorm` is about: 2 */
  readonly normType?: number | undefined;
  /** gradients are divided by how often their row is named */
  readonly scaleGradByFreq?: boolean | undefined;
}

export interface SearchOptions<T> {
  /** behind equal ones instead of before them */
  readonly right?: boolean | undefined;
  /** the same as a word */
  readonly side?: "left" | "right" | undefined;
  /** the places that put this tensor in order, if it is not */
  readonly sorter?: T | undefined;
}

/** What is kept of one dim: `count` elements from `start`, `step` apart; `whole` where no dim is left. */
export interface Cut {
  readonly start: number;
  readonly count: number;
  readonly step: number;
}
/** An index taken apart: what is cut out of each dim, then the shape of that, then the tensors by dim of that shape. */
export interface IndexPlan<T> {
  readonly cuts: readonly Cut[];
  readonly shape: readonly number[];
  readonly tensors: readonly (T | undefined)[];
}

export abstract class GetTensor extends ScanTensor {
  // ---- the primitive ----

  /** Checks that a tensor can be an index. */
  protected indexed(method: string, index: this): this {
    if (index.dtype.isInt) return index;
    throw new DTypeError(`${method}: the index is ${index.dtype.name}, expected integers; cast it to int32`);
  }
  /** A tensor of nothing. */
  protected nothing(shape: readonly number[]): this {
    return this.constant(shape, this.dtype, 0);
  }
  /**
   * This tensor with the dims from `at` on, one for each of `indices`, replaced by those of the indices: what they name.
   * The indices have one shape; `map` is done to them after they are expanded, so that nothing is stored on the way.
   */
  protected pick(at: number, indices: readonly this[], map: (i: this, n: number) => this = (i) => i): this {
    const k = indices.length;
    const { shape } = this;
    const [lead, named, rest] = [shape.slice(0, at), shape.slice(at, at + k), shape.slice(at + k)];
    const [first] = indices;
    if (first === undefined) return this;
    const places = first.shape;
    const full = [...lead, ...places, ...named, ...rest];
    const ones = (n: number): number[] => range(n).map(() => 1);
    const chosen = indices.map((index, j) => {
      const n = named[j] as number;
      const i = index.reshape([...ones(at), ...places, ...ones(k + rest.length)]).expand(full);
      const count = this.counting(n).reshape([n, ...ones(k - 1 - j + rest.length)]);
      return map(i, n).eq(count.expand(full));
    });
    const axes = range(k).map((j) => at + places.length + j);
    return chosen
      .reduce((a, b) => a.bitwiseAnd(b))
      .where(this.reshape([...lead, ...ones(places.length), ...named, ...rest]).expand(full), this.nought)
      .reduceSum(axes)
      .reshape([...lead, ...places, ...rest]);
  }

  /** Negative places count from the end of a dim of `n`. */
  protected fromEnd(n: number): this {
    return this.dtype.kind === "uint" ? this : this.lt(0).where(this.add(n), this);
  }

  // ---- along a dim ----

  /**
   * `out[i][j] = this[index[i][j]][j]` for dim 0, and so on: one element for each of the index.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).gather(1, new Tensor([[1], [0]])).tolist() // => [[2], [3]]
   */
  gather(dim: number, index: this): this {
    requireTensors("gather", { index });
    return this.#gathered(dim, index, (i) => i);
  }
  #gathered(dim: number, index: this, map: (i: this, n: number) => this): this {
    this.indexed("gather", index);
    if (index.size === 0) return this.nothing(index.shape);
    if (this.ndim === 0 || index.ndim === 0) {
      if (this.ndim > 1 || index.ndim > 1) throw this.#misfit("gather", dim, index);
      return this.reshape(-1).#gathered(dim, index.reshape(-1), map).reshape(index.shape);
    }
    const at = this.axis("gather", dim);
    const fits =
      index.ndim === this.ndim && index.shape.every((s, d) => d === at || s <= (this.shape[d] as number));
    if (!fits) throw this.#misfit("gather", dim, index);
    const n = this.shape[at] as number;
    const full = index.shape.toSpliced(at + 1, 0, n);
    const places = this.counting(n).reshape([n, ...full.slice(at + 2).map(() => 1)]);
    const x = this.shrink(index.shape.map((s, d) => (d === at ? null : [0, s])));
    return map(index.unsqueeze(at + 1).expand(full), n)
      .eq(places.expand(full))
      .where(x.unsqueeze(at).expand(full), this.nought)
      .reduceSum([at + 1])
      .squeeze(at + 1);
  }
  #misfit(method: string, dim: number, index: this): ShapeError {
    return new ShapeError(
      `${method}: an index of shape ${showShape(index.shape)} does not fit ${showShape(this.shape)}; ` +
        `it needs as many dims, and but for dim ${dim} sizes no larger`,
    );
  }
  /**
   * `gather` where the index and this tensor broadcast and negative places count from the end; without a dim both are flat.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).takeAlongDim(new Tensor([[1]]), 1).tolist() // => [[2], [4]]
   */
  takeAlongDim(index: this, dim?: number): this {
    requireTensors("takeAlongDim", { index });
    if (dim === undefined) return this.ravel().#gathered(0, index.ravel(), (i, n) => i.fromEnd(n));
    const at = this.axis("takeAlongDim", dim);
    if (index.ndim !== this.ndim) throw this.#misfit("takeAlongDim", dim, index);
    const common = this.shape.map((s, d) => (s === 1 ? (index.shape[d] as number) : s));
    const x = this.expand(common.with(at, this.shape[at] as number));
    return x.#gathered(at, index.expand(common.with(at, index.shape[at] as number)), (i, n) => i.fromEnd(n));
  }
  /**
   * The slices along `dim` that a vector of places names.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).indexSelect(0, new Tensor([1, 1])).tolist() // => [[3, 4], [3, 4]]
   */
  indexSelect(dim: number, index: this): this {
    requireTensors("indexSelect", { index });
    this.indexed("indexSelect", index);
    if (index.ndim > 1) {
      throw new ShapeError(
        `indexSelect: the index has shape ${showShape(index.shape)}, expected a vector; get takes any shape`,
      );
    }
    if (this.ndim === 0) return this.reshape(1).indexSelect(dim, index.reshape(1)).reshape([]);
    return this.pick(this.axis("indexSelect", dim), [index.reshape(-1)]);
  }
  /**
   * The elements that an index names in the flat tensor, in the shape of the index; negative ones count from the end.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).take(new Tensor([0, -1])).tolist() // => [1, 4]
   */
  take(index: this): this {
    requireTensors("take", { index });
    return this.ravel().pick(0, [this.indexed("take", index)], (i, n) => i.fromEnd(n));
  }
  /**
   * The rows of `weight` that these integers name.
   * @example
   * await new Tensor([1, 0]).embedding(new Tensor([[1, 2], [3, 4]])).tolist() // => [[3, 4], [1, 2]]
   */
  embedding(weight: this, options: EmbeddingOptions = {}): this {
    requireTensors("embedding", { weight });
    this.indexed("embedding", this);
    if (weight.ndim !== 2) {
      throw new ShapeError(
        `embedding: the weight has shape ${showShape(weight.shape)}, expected [rows, width]`,
      );
    }
    const { paddingIdx, maxNorm, normType = 2, scaleGradByFreq = false } = options;
    let rows = weight.pick(0, [this]);
    if (maxNorm !== undefined) {
      const long = rows
        .detach()
        .abs()
        .pow(normType)
        .sum(-1, true)
        .pow(1 / normType);
      const scale = long.gt(maxNorm).where(long.add(1e-7).reciprocal().mul(maxNorm), 1);
      // torch scales the weight itself, beforehand: the gradient is that of the scaled rows
      rows = rows.wrap(rows.detach().mul(scale).lazydata, [rows], (g) => [g]);
    }
    if (paddingIdx === undefined && !scaleGradByFreq) return rows;
    const row =
      paddingIdx === undefined ? -1 : paddingIdx < 0 ? paddingIdx + (weight.shape[0] as number) : paddingIdx;
    return rows.wrap(rows.lazydata, [rows], (g) => {
      const used = this.unsqueeze(-1).expand(g.shape).eq(row).where(0, g);
      if (!scaleGradByFreq) return [used];
      const flat = this.reshape(-1);
      const same = flat
        .unsqueeze(1)
        .eq(flat.unsqueeze(0))
        .sum(1)
        .reshape([...this.shape, 1]);
      return [used.div(same.cast(g.dtype))];
    });
  }

  // ---- masks ----

  /**
   * `value` where the mask is true, this tensor elsewhere.
   * @example
   * await new Tensor([1, 2]).maskedFill(new Tensor([true, false]), 9).tolist() // => [9, 2]
   */
  maskedFill(mask: this, value: this | number | bigint | boolean): this {
    requireTensors("maskedFill", { mask });
    const filler =
      value instanceof GetTensor
        ? value.cast(this.dtype)
        : this.constant([], this.dtype, operandValue("maskedFill", value, this.dtype));
    if (filler.ndim > 0) {
      throw new ShapeError(
        `maskedFill: the value has shape ${showShape(filler.shape)}, expected a number or shape []; use where`,
      );
    }
    return this.flags("maskedFill", mask).where(filler as this, this);
  }
  /** Checks that a tensor can be a mask. */
  protected flags(method: string, mask: this): this {
    if (mask.dtype.kind === "bool") return mask;
    throw new DTypeError(
      `${method}: the mask is ${mask.dtype.name}, expected bool; compare first, as in t.ne(0)`,
    );
  }
  /**
   * The elements where the mask is true, in a row. How many there are is known only when the mask has been computed, so
   * this one is async.
   * @example
   * await (await new Tensor([1, 2, 3]).maskedSelect(new Tensor([true, false, true]))).tolist() // => [1, 3]
   */
  async maskedSelect(mask: this): Promise<this> {
    requireTensors("maskedSelect", { mask });
    this.flags("maskedSelect", mask);
    const shape = shapeOfBoth(this.shape, mask.shape);
    const places = await mask.expand(shape).#truePlaces();
    return this.expand(shape)
      .ravel()
      .pick(0, [this.fromHost(places)]);
  }
  /**
   * The places of the elements that are not zero, one a row. Async, because the shape depends on the values.
   * @example
   * await (await new Tensor([[0, 1], [2, 0]]).nonzero()).tolist() // => [[0, 1], [1, 0]]
   */
  async nonzero(): Promise<this> {
    const places = await this.ne(this.nought).#truePlaces();
    const { shape } = this;
    const rows = places.flatMap((p) => {
      let left = p;
      return shape.map((n, d) => {
        const step = prod(shape.slice(d + 1));
        const at = Math.floor(left / step) % n;
        left %= step;
        return at;
      });
    });
    return this.fromHost(rows).reshape([places.length, shape.length]);
  }
  async #truePlaces(): Promise<number[]> {
    const data = await this.data();
    return range(data.length).filter((i) => data[i] !== 0);
  }
  /** Integers that were computed here, as a tensor beside this one. */
  protected fromHost(values: readonly number[]): this {
    const buffer = new Buffer("EXT", values.length, dtypes.int32).allocate(encodeArray(dtypes.int32, values));
    return this.wrap(copyTo(LazyBuffer.fromBuffer(buffer, [values.length]), this.device));
  }

  // ---- x[...] ----

  /**
   * `x[...]` of Python: numbers, `[start, end, step]`, null for a new dim, "..." for the dims in between, and integer
   * tensors, which broadcast. Without tensors it is a view and costs nothing. Masks have to be counted: `getAsync`.
   * @example
   * await new Tensor([[1, 2, 3], [4, 5, 6]]).get("...", [null, null, -2]).tolist() // => [[3, 1], [6, 4]]
   */
  get(...index: readonly Index<this>[]): this {
    const { cuts, shape, tensors } = this.plan("get", index);
    return this.cutOut(cuts).reshape(shape).#at(tensors);
  }
  /**
   * `get` that takes bool tensors too: they pick the places where they are true.
   * @example
   * await (await new Tensor([1, 2, 3]).getAsync(new Tensor([true, false, true]))).tolist() // => [1, 3]
   */
  async getAsync(...index: readonly Index<this>[]): Promise<this> {
    return this.get(...(await this.resolved(index)));
  }
  /** The index with the places of its true elements for each mask. */
  protected async resolved(index: readonly Index<this>[]): Promise<Index<this>[]> {
    const parts = index.map(async (i): Promise<Index<this>[]> => {
      if (!(i instanceof GetTensor) || i.dtype.kind !== "bool") return [i];
      return (await (i as this).nonzero()).unbind(1);
    });
    return (await Promise.all(parts)).flat();
  }

  /** What an index means for this shape. */
  protected plan(method: string, index: readonly Index<this>[]): IndexPlan<this> {
    const dims = index.filter((i) => i !== null && i !== "...").length;
    const gaps = index.filter((i) => i === "...").length;
    if (dims > this.ndim || gaps > 1) {
      throw new ArgumentError(
        `${method}: ${dims} indices${gaps > 1 ? ` and ${gaps} "..."` : ""} for shape ${showShape(this.shape)}; ` +
          `expected at most ${this.ndim} and one "..."`,
      );
    }
    const gap = range(this.ndim - dims).map((): Slice => []);
    const full = (gaps === 0 ? [...index, "..." as const] : index).flatMap((i) => (i === "..." ? gap : [i]));
    const [cuts, shape, tensors]: [Cut[], number[], (this | undefined)[]] = [[], [], []];
    for (const i of full) {
      if (i === null) {
        shape.push(1);
        tensors.push(undefined);
        continue;
      }
      const n = this.shape[cuts.length] as number;
      const tensor = i instanceof GetTensor ? (i as this) : undefined;
      if (typeof i === "number") {
        cuts.push(this.#place(method, i, cuts.length));
        continue;
      }
      const cut = tensor === undefined ? toCut(method, i as Slice, n) : { start: 0, count: n, step: 1 };
      cuts.push(cut);
      shape.push(cut.count);
      tensors.push(tensor);
    }
    return { cuts, shape, tensors };
  }
  #place(method: string, i: number, dim: number): Cut {
    const n = this.shape[dim] as number;
    const start = i < 0 ? i + n : i;
    if (Number.isInteger(i) && start >= 0 && start < n) return { start, count: 1, step: 1 };
    throw new ShapeError(
      `${method}: index ${i} is out of range for dim ${dim} of ${showShape(this.shape)}; expected ${-n} to ${n - 1}`,
    );
  }
  /** The part of each dim that is kept; a place is a dim of size 1. */
  protected cutOut(cuts: readonly Cut[]): this {
    const whole = cuts.every((c, d) => c.start === 0 && c.step === 1 && c.count === this.shape[d]);
    if (whole) return this;
    const kept = this.shrink(cuts.map(span));
    return cuts.every((c) => c.step === 1) ? kept : kept.stride(cuts.map((c) => c.step));
  }
  /** What the tensors name in their dims. Their common shape stands where they stand together, else in front. */
  #at(tensors: readonly (this | undefined)[]): this {
    const dims = range(tensors.length).filter((d) => tensors[d] !== undefined);
    if (dims.length === 0) return this;
    const [indices, together] = this.alignIndices("get", tensors, dims);
    if (together) return this.pick(dims[0] as number, indices, (i, n) => i.fromEnd(n));
    return this.movedim(dims, range(dims.length)).pick(0, indices, (i, n) => i.fromEnd(n));
  }
  /** The tensors of an index in one shape, and whether their dims are neighbours. */
  protected alignIndices(
    method: string,
    tensors: readonly (this | undefined)[],
    dims: readonly number[],
  ): [indices: this[], together: boolean] {
    const given = dims.map((d) => tensors[d] as this);
    if (given.some((t) => t.dtype.kind === "bool")) {
      throw new DTypeError(
        `${method}: how many elements a bool mask picks is not known before it is computed; use await getAsync(…), or where`,
      );
    }
    const shape = given.map((t) => this.indexed(method, t).shape).reduce(shapeOfBoth);
    const together = dims.every((d, j) => d === (dims[0] as number) + j);
    return [given.map((t) => t.broadcastTo(shape)), together];
  }

  // ---- order and classes ----

  /**
   * A new last dim with 1 at the place that each integer names and 0 elsewhere.
   * @example
   * await new Tensor([1, 0]).oneHot(3).tolist() // => [[0, 1, 0], [1, 0, 0]]
   */
  oneHot(numClasses: number): this {
    this.indexed("oneHot", this);
    const full = [...this.shape, numClasses];
    return this.unsqueeze(-1).expand(full).eq(this.counting(numClasses).expand(full)).cast(dtypes.int32);
  }
  /**
   * Where each value would be inserted to keep this sorted tensor (along its last dim) sorted: before equal elements,
   * or after them with `right`.
   * @example
   * await new Tensor([1, 3, 5]).searchsorted(new Tensor([3, 4])).tolist() // => [1, 2]
   */
  searchsorted(values: this | number, { right, side, sorter }: SearchOptions<this> = {}): this {
    if (typeof values === "number") {
      const wanted = this.wrap(LazyBuffer.constant(this.device, [], toFloat(this.dtype), values));
      return this.searchsorted(wanted, { right, side, sorter });
    }
    if (side !== undefined && side !== "left" && side !== "right") {
      throw new ArgumentError(`searchsorted: side is ${side}, expected "left" or "right"`);
    }
    if (right === true && side === "left") {
      throw new ArgumentError('searchsorted: right and side "left" contradict each other; give one of them');
    }
    if (sorter !== undefined) return this.takeAlongDim(sorter, -1).searchsorted(values, { right, side });
    if (
      this.ndim === 0 ||
      (this.ndim > 1 && !arraysEqual(this.shape.slice(0, -1), values.shape.slice(0, -1)))
    ) {
      throw new ShapeError(
        `searchsorted: values ${showShape(values.shape)} do not fit the sorted ${showShape(this.shape)}; it is a vector, or all dims but the last agree`,
      );
    }
    const full = [...values.shape, this.shape.at(-1) as number];
    const x = (this.ndim === 1 || values.ndim === 0 ? this : this.unsqueeze(-2)).expand(full);
    const v = values.unsqueeze(-1).expand(full);
    const before = right === true || side === "right" ? x.le(v) : x.lt(v);
    return before.bitwiseOr(v.isnan()).cast(dtypes.int32).sum(-1); // NaN comes last
  }
  /**
   * The number of the bucket that each element falls into, given their sorted borders.
   * @example
   * await new Tensor([1, 4]).bucketize(new Tensor([1, 3, 5])).tolist() // => [0, 2]
   */
  bucketize(boundaries: this, options: { readonly right?: boolean } = {}): this {
    requireTensors("bucketize", { boundaries });
    return boundaries.searchsorted(this, options);
  }
}

/** The elements of a dim between the first and the last that are kept. */
export const span = ({ start, count, step }: Cut): Interval => {
  if (count === 0) return [0, 0];
  const last = start + (count - 1) * step;
  return [Math.min(start, last), Math.max(start, last) + 1];
};

function toCut(method: string, slice: Slice, n: number): Cut {
  const [from, to] = [slice[0] ?? null, slice[1] ?? null];
  const step = slice[2] ?? 1;
  if (step === 0 || ![from ?? 0, to ?? 0, step].every(Number.isInteger)) {
    throw new ArgumentError(
      `${method}: [${slice.map(String)}] is no slice; expected integers [start, end, step], step not 0`,
    );
  }
  const [low, high] = step > 0 ? [0, n] : [-1, n - 1];
  const clamp = (i: number) => Math.min(high, Math.max(low, i < 0 ? i + n : i));
  const start = from === null ? (step > 0 ? 0 : n - 1) : clamp(from);
  const end = to === null ? (step > 0 ? n : -1) : clamp(to);
  return { start, count: Math.max(0, Math.ceil((end - start) / step)), step };
}

/** The shape that two shapes broadcast to. */
export function shapeOfBoth(a: readonly number[], b: readonly number[]): number[] {
  const ndim = Math.max(a.length, b.length);
  return range(ndim).map((d) => {
    const [x, y] = [a[d - ndim + a.length] ?? 1, b[d - ndim + b.length] ?? 1];
    if (x === y || y === 1) return x;
    if (x === 1) return y;
    throw new ShapeError(
      `get: shapes ${showShape(a)} and ${showShape(b)} do not broadcast; sizes must be equal or 1`,
    );
  });
}
