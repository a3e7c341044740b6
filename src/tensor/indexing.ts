// Writing by index: indexAdd, indexCopy, indexFill, indexPut, put, maskedScatter, and `setitem`, which is x[...] = value
// of Python; and repeatInterleave. Where several values go to one place they are summed or the last one stays.
// Gradients are indexed loads.

import { dtypes } from "../dtype.ts";
import { ArgumentError, ShapeError } from "../errors.ts";
import { range } from "../helpers.ts";
import type { Interval } from "../shape/view.ts";
import { isRecording } from "./autograd.ts";
import { type Element, showShape } from "./base.ts";
import { type Cut, type Index, shapeOfBoth, span } from "./getitem.ts";
import { requireTensors } from "./movement.ts";
import { ScatterTensor } from "./scatter.ts";

export abstract class IndexTensor extends ScatterTensor {
  // ---- index*: whole slices ----

  /**
   * A copy with the slices of `source`, times `alpha`, added to those that a vector of places names along `dim`.
   * @example
   * await new Tensor([1, 1, 1]).indexAdd(0, new Tensor([2, 2]), new Tensor([5, 6])).tolist() // => [1, 1, 12]
   */
  indexAdd(dim: number, index: this, source: this, { alpha = 1 }: { alpha?: number | boolean } = {}): this {
    requireTensors("indexAdd", { index, source });
    return this.#slices("indexAdd", dim, index, source, (self, at, i, from) => {
      const scaled = alpha === 1 || alpha === true ? from : from.mul(alpha).cast(self.dtype);
      return self.#accumulated([i], scaled.movedim(at, 0), [at]);
    });
  }
  /**
   * A copy with the slices of `source` in the places that a vector names along `dim`.
   * @example
   * await new Tensor([1, 1, 1]).indexCopy(0, new Tensor([2]), new Tensor([5])).tolist() // => [1, 1, 5]
   */
  indexCopy(dim: number, index: this, source: this): this {
    requireTensors("indexCopy", { index, source });
    return this.#slices("indexCopy", dim, index, source, (self, at, i, from) =>
      self.#replaced([i], from.movedim(at, 0), [at], true),
    );
  }
  #slices(
    method: string,
    dim: number,
    index: this,
    source: this,
    write: (self: this, at: number, index: this, source: this) => this,
  ): this {
    this.indexed(method, index);
    if (this.ndim === 0) {
      return this.reshape(1).#slices(method, dim, index.reshape(-1), source.reshape(-1), write).reshape([]);
    }
    const at = this.axis(method, dim);
    const i = index.reshape(-1);
    const wanted = this.shape.with(at, i.size);
    if (index.ndim > 1 || showShape(source.shape) !== showShape(wanted) || source.dtype !== this.dtype) {
      throw new ShapeError(
        `${method}: the source is ${showShape(source.shape)} ${source.dtype.name}, expected ${showShape(wanted)} ` +
          `${this.dtype.name} for an index of shape ${showShape(index.shape)} along dim ${dim}`,
      );
    }
    return i.size === 0 ? this : write(this, at, i, source);
  }
  /**
   * A copy with `value` in the slices that a vector of places names along `dim`.
   * @example
   * await new Tensor([1, 1, 1]).indexFill(0, new Tensor([0, -1]), 7).tolist() // => [7, 1, 7]
   */
  indexFill(dim: number, index: this, value: this | Element): this {
    requireTensors("indexFill", { index });
    this.indexed("indexFill", index);
    if (this.ndim === 0) return this.reshape(1).indexFill(dim, index.reshape(-1), value).reshape([]);
    const at = this.axis("indexFill", dim);
    if (index.size === 0) return this;
    const n = this.shape[at] as number;
    const full = [n, index.size];
    const i = index.reshape(-1).expand(full).fromEnd(n);
    const named = i.eq(this.counting(n).reshape([n, 1]).expand(full)).max(1);
    const mask = named.reshape(this.shape.map((_, d) => (d === at ? n : 1))).expand(this.shape);
    return this.maskedFill(mask, value);
  }
  /**
   * A copy with `values` at the places that index tensors name, one tensor a dim (null takes a dim whole), as in
   * `x[i, j] = values`; with `accumulate` they are added. A bool mask may stand alone.
   * @example
   * await new Tensor([1, 1, 1]).indexPut([new Tensor([0, 0])], new Tensor([5, 6]), { accumulate: true }).tolist() // => [12, 1, 1]
   */
  indexPut(indices: readonly (this | null)[], values: this | Element, { accumulate = false } = {}): this {
    const given = values instanceof IndexTensor ? (values as this) : this.filled([], values);
    if (given.dtype !== this.dtype) {
      throw new ShapeError(
        `indexPut: the values are ${given.dtype.name}, the tensor is ${this.dtype.name}; cast them first`,
      );
    }
    const [mask] = indices;
    if (indices.length === 1 && mask?.dtype.kind === "bool") return this.#masked(mask, given, accumulate);
    if (indices.length > this.ndim) {
      throw new ShapeError(
        `indexPut: ${indices.length} indices for shape ${showShape(this.shape)}; expected at most ${this.ndim}`,
      );
    }
    const tensors = range(this.ndim).map((d) => indices[d] ?? undefined);
    const dims = range(this.ndim).filter((d) => tensors[d] !== undefined);
    if (dims.length === 0) return accumulate ? this.add(given) : given.broadcastTo(this.shape);
    const [list, together] = this.alignIndices("indexPut", tensors, dims);
    const places = (list[0] as this).shape;
    const rest = this.shape.filter((_, d) => !dims.includes(d));
    const at = together ? (dims[0] as number) : 0;
    const spread = given.broadcastTo([...rest.slice(0, at), ...places, ...rest.slice(at)]);
    const count = places.reduce((a, b) => a * b, 1);
    const front = range(places.length);
    const rows = spread
      .movedim(
        front.map((j) => at + j),
        front,
      )
      .reshape([count, ...rest]);
    const flat = list.map((i) => i.reshape(count));
    if (count === 0) return this;
    return accumulate ? this.#accumulated(flat, rows, dims) : this.#replaced(flat, rows, dims);
  }
  /** [places of the dims…, sources, rest…] to start from: whether a source goes to a place. */
  #names(
    indices: readonly this[],
    dims: readonly number[],
    rest: readonly number[],
  ): [goes: this, full: number[]] {
    const sizes = dims.map((d) => this.shape[d] as number);
    const count = (indices[0] as this).size;
    const full = [...sizes, count, ...rest];
    const ones = (k: number) => range(k).map(() => 1);
    const goes = indices
      .map((index, j) => {
        const n = sizes[j] as number;
        const place = this.counting(n)
          .reshape([n, ...ones(full.length - j - 1)])
          .expand(full);
        return index
          .reshape([count, ...ones(rest.length)])
          .expand(full)
          .fromEnd(n)
          .eq(place);
      })
      .reduce((a, b) => a.bitwiseAnd(b));
    return [goes, full];
  }
  /** With the rows of `values` added where the indices say; rows are [sources, dims that are not named…]. */
  #accumulated(indices: readonly this[], values: this, dims: readonly number[]): this {
    const [goes, full] = this.#names(indices, dims, values.shape.slice(1));
    const k = dims.length;
    const sums = goes.where(values.expand(full), this.nought).reduceSum([k]).reshape(full.toSpliced(k, 1));
    return this.add(sums.movedim(range(k), dims));
  }
  /** The same with the last row instead of the sum; `all`: rows that others overwrite get a gradient too, as in torch. */
  #replaced(indices: readonly this[], values: this, dims: readonly number[], all = false): this {
    const [goes, full] = this.#names(indices, dims, []);
    const k = dims.length;
    const count = full[k] as number;
    const winner = goes.where(this.counting(count).expand(full).add(1), 0).max(k).detach();
    const value = values
      .detach()
      .pick(0, [winner], (i) => i.sub(1))
      .movedim(range(k), dims);
    const won = winner.reshape(this.shape.map((s, d) => (dims.includes(d) ? s : 1))).expand(this.shape);
    const out = won.gt(0).where(value, this.detach());
    return this.wrap(out.lazydata, [this, values], (g) => {
      const look = (t: this): this => t.pick(0, indices, (i, n) => i.fromEnd(n));
      const left = won.gt(0).where(0, g);
      const flow = look(g.movedim(dims, range(k)));
      if (all) return [left, flow];
      const rows = [count, ...values.shape.slice(1).map(() => 1)];
      const numbers = this.counting(count).reshape(rows).expand(values.shape);
      const kept = look(winner).reshape(rows).expand(values.shape).eq(numbers.add(1));
      return [left, kept.where(flow, 0)];
    });
  }
  #masked(mask: this, values: this, accumulate: boolean): this {
    const rest = this.shape.slice(mask.ndim);
    if (showShape(mask.shape) !== showShape(this.shape.slice(0, mask.ndim))) {
      throw new ShapeError(
        `indexPut: a mask of shape ${showShape(mask.shape)} does not fit ${showShape(this.shape)}; expected its first dims`,
      );
    }
    const rows = values.ndim <= rest.length ? 1 : (values.shape[values.ndim - rest.length - 1] as number);
    const value =
      rows === 1
        ? values.reshape(values.shape.slice(-rest.length || values.ndim)).broadcastTo(this.shape)
        : values.broadcastTo([rows, ...rest]).pick(0, [mask.#ranks()]);
    const here = mask.reshape([...mask.shape, ...rest.map(() => 1)]).expand(this.shape);
    return here.where(accumulate ? this.add(value) : value, this);
  }
  /** For each element of a mask, how many are true before it. */
  #ranks(): this {
    return this.ravel().cast(dtypes.int32).cumsum(0).sub(1).reshape(this.shape);
  }
  /**
   * A copy with `source` at the places that an index names in the flat tensor; with `accumulate` it is added.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).put(new Tensor([0, -1]), new Tensor([8, 9])).tolist() // => [[8, 2], [3, 9]]
   */
  put(index: this, source: this, { accumulate = false } = {}): this {
    requireTensors("put", { index, source });
    if (source.size !== index.size) {
      throw new ShapeError(
        `put: the index has shape ${showShape(index.shape)}, the source ${showShape(source.shape)}; expected as many elements`,
      );
    }
    return this.ravel().indexPut([index.ravel()], source.ravel(), { accumulate }).reshape(this.shape);
  }
  /**
   * A copy in which the elements where the mask is true are those of `source`, in order.
   * @example
   * await new Tensor([1, 2, 3]).maskedScatter(new Tensor([true, false, true]), new Tensor([8, 9])).tolist() // => [8, 2, 9]
   */
  maskedScatter(mask: this, source: this): this {
    requireTensors("maskedScatter", { mask, source });
    const shape = shapeOfBoth(this.shape, mask.shape);
    const flags = this.flags("maskedScatter", mask).expand(shape);
    return flags.where(source.ravel().pick(0, [flags.#ranks()]), this.expand(shape));
  }

  // ---- x[...] = value ----

  /**
   * Writes into this tensor: `x.setitem([0, [1, 3]], value)` is `x[0, 1:3] = value` of Python, with the indices that
   * `get` takes, and a bool mask where it stands alone. The value broadcasts.
   * @example
   * await new Tensor([1, 2, 3]).setitem([[1, null]], 0).tolist() // => [1, 0, 0]
   */
  setitem(index: readonly Index<this>[], value: this | Element): this {
    if (this.requiresGrad && this.context === undefined && isRecording()) {
      throw new ArgumentError(
        "setitem: this is a leaf with requiresGrad, and writing into it would lose its gradient; use Tensor.noGrad(() => …) or a copy: t.clone()",
      );
    }
    // what was built on the old value keeps it: the old tensor lives on under another name
    const before = this.wrap(this.lazydata);
    before.requiresGrad = this.requiresGrad;
    before.context = this.context;
    const given = value instanceof IndexTensor ? value.cast(this.dtype) : this.filled([], value);
    const made = before.#written(index, given as this);
    this.assign(made);
    this.requiresGrad = made.requiresGrad;
    this.context = made.context;
    return this;
  }
  #written(index: readonly Index<this>[], value: this): this {
    const [mask] = index;
    if (index.length === 1 && mask instanceof IndexTensor && mask.dtype.kind === "bool") {
      return this.#masked(mask as this, value, false);
    }
    const { cuts, shape, tensors } = this.plan("setitem", index);
    if (cuts.some((c) => c.count === 0)) return this;
    const region = this.cutOut(cuts).reshape(shape);
    const fill = tensors.some((t) => t !== undefined)
      ? region.indexPut(
          tensors.map((t) => t ?? null),
          value,
        )
      : value.reshape(value.shape.slice(Math.max(0, value.ndim - shape.length))).broadcastTo(shape);
    const sizes = cuts.map((c) => c.count);
    const there = this.constant(sizes, dtypes.bool, 1);
    return there.#placed(cuts, this.shape).where(fill.reshape(sizes).#placed(cuts, this.shape), this);
  }
  /** The inverse of `cutOut`: these elements where the cuts say, zeros elsewhere. */
  #placed(cuts: readonly Cut[], shape: readonly number[]): this {
    const spans = cuts.map(span) as [number, number][];
    const turned = range(cuts.length).filter((d) => (cuts[d] as Cut).step < 0);
    const steps = cuts.map((c) => Math.abs(c.step));
    const straight = turned.length === 0 ? this : this.flip(turned);
    const apart = steps.every((s) => s === 1)
      ? straight
      : straight.spread(
          steps,
          spans.map(([lo, hi]) => hi - lo),
        );
    return apart.pad(spans.map(([lo, hi], d): Interval => [lo, (shape[d] as number) - hi]));
  }

  /**
   * Each element several times in a row, along `dim` or in the flat tensor. With a tensor of counts the size of the
   * result must be given, since it is not known before they are computed.
   * @example
   * await new Tensor([1, 2]).repeatInterleave([1, 3]).tolist() // => [1, 2, 2, 2]
   */
  repeatInterleave(
    repeats: number | readonly number[] | this,
    dim?: number,
    { outputSize }: { outputSize?: number | undefined } = {},
  ): this {
    if (dim === undefined || this.ndim === 0) return this.reshape(-1).#interleaved(repeats, 0, outputSize);
    return this.#interleaved(repeats, this.axis("repeatInterleave", dim), outputSize);
  }
  #interleaved(repeats: number | readonly number[] | this, at: number, outputSize: number | undefined): this {
    const n = this.shape[at] as number;
    if (typeof repeats === "number") {
      const times = this.shape.toSpliced(at + 1, 0, repeats);
      return this.unsqueeze(at + 1)
        .expand(times)
        .flatten(at, at + 1);
    }
    const size = repeats instanceof IndexTensor ? repeats.size : repeats.length;
    if (size !== n && size !== 1) {
      throw new ShapeError(
        `repeatInterleave: got ${size} counts for ${n} elements of ${showShape(this.shape)}; expected as many`,
      );
    }
    if (!(repeats instanceof IndexTensor)) {
      const counts = repeats as readonly number[];
      const places = range(n).flatMap((i) => range(counts[size === 1 ? 0 : i] as number).map(() => i));
      return this.pick(at, [this.fromHost(places)]);
    }
    if (outputSize === undefined) {
      throw new ArgumentError(
        "repeatInterleave: with a tensor of counts the size of the result must be given: { outputSize }; or give an array",
      );
    }
    // the element for a place is the number of those whose copies end before it
    const ends = (repeats as this).reshape(-1).expand([n]).cumsum(0);
    const full = [outputSize, n];
    const place = this.counting(outputSize).reshape([outputSize, 1]).expand(full);
    return this.pick(at, [ends.expand(full).le(place).cast(dtypes.int32).sum(1)]);
  }
}
