// Rearranging: repeat, roll, turn, move dims, windows, diagonals, triangles, padding modes. All of it is views that
// cost no kernel, but for the triangles and for padding with anything but zeros or the other end.

import { ArgumentError, ShapeError } from "../errors.ts";
import { range } from "../helpers.ts";
import { add, type Sint } from "../shape/symbolic.ts";
import type { Interval } from "../shape/view.ts";
import { type Element, showShape } from "./base.ts";
import { JoinTensor } from "./join.ts";
import { requirePairs, requireTensors, type ShapeArgs, shapeOf } from "./movement.ts";

/** What padding is made of: a value, the mirror image, the edge, or the other end. */
export type PadMode = "constant" | "reflect" | "replicate" | "circular";
/** `[before, after]` or null for each dim; or flat as in torch, the last dim first: `[left, right, top, bottom]`. */
export type PadAmounts = readonly (Interval | null)[] | readonly number[];

const MODES: readonly string[] = ["constant", "reflect", "replicate", "circular"] satisfies PadMode[];

export abstract class ArrangeTensor extends JoinTensor {
  // ---- dims ----

  /**
   * Without the dims of size 1: all of them, or those among the ones named.
   * @example
   * new Tensor([[[1], [2]]]).squeeze([0, 1]).shape // => [2, 1]
   */
  override squeeze(dim?: number | readonly number[]): this {
    const { shape } = this.lazydata;
    if (dim === undefined) return this.reshape(shape.filter((s) => s !== 1));
    const dims = typeof dim === "number" ? [dim] : dim;
    if (this.ndim === 0 && dims.every((d) => d === 0 || d === -1)) return this;
    const axes = this.axes("squeeze", dims);
    return this.reshape(shape.filter((s, i) => s !== 1 || !axes.includes(i)));
  }
  /**
   * Dims moved from the places `source` to the places `destination`; the others keep their order.
   * @example
   * new Tensor([[[1, 2]]]).movedim(2, 0).shape // => [2, 1, 1]
   */
  movedim(source: number | readonly number[], destination: number | readonly number[]): this {
    if (this.ndim === 0) return this;
    const from = this.axes("movedim", source);
    const to = this.axes("movedim", destination);
    if (from.length !== to.length) {
      throw new ArgumentError(
        `movedim: ${from.length} dims (${source}) cannot go to ${to.length} places (${destination}); expected as many`,
      );
    }
    const rest = range(this.ndim).filter((d) => !from.includes(d));
    const order = range(this.ndim).map((d) =>
      to.includes(d) ? (from[to.indexOf(d)] as number) : (rest.shift() as number),
    );
    return this.permute(order);
  }
  /**
   * Another name for `movedim`.
   * @example
   * new Tensor([[[1, 2]]]).moveaxis(2, 0).shape // => [2, 1, 1]
   */
  moveaxis(source: number | readonly number[], destination: number | readonly number[]): this {
    return this.movedim(source, destination);
  }
  /**
   * Two dims change places.
   * @example
   * await new Tensor([[1, 2]]).swapaxes(0, 1).tolist() // => [[1], [2]]
   */
  swapaxes(a: number, b: number): this {
    for (const d of [a, b]) this.axis("swapaxes", d, Math.max(1, this.ndim));
    return this.ndim === 0 ? this : this.transpose(a, b);
  }
  /**
   * Another name for `swapaxes`.
   * @example
   * await new Tensor([[1, 2]]).swapdims(0, 1).tolist() // => [[1], [2]]
   */
  swapdims(a: number, b: number): this {
    return this.swapaxes(a, b);
  }
  /**
   * The transpose of a matrix; vectors and scalars stay.
   * @example
   * await new Tensor([[1, 2]]).t().tolist() // => [[1], [2]]
   */
  t(): this {
    if (this.ndim > 2) {
      throw new ShapeError(
        `t: shape ${showShape(this.shape)} has ${this.ndim} dims, expected at most 2; use transpose`,
      );
    }
    return this.ndim < 2 ? this : this.transpose(0, 1);
  }
  /**
   * With at least one dim: a 0-d tensor becomes a vector of one.
   * @example
   * new Tensor(5).atleast1d().shape // => [1]
   */
  atleast1d(): this {
    return this.ndim === 0 ? this.reshape(1) : this;
  }
  /**
   * With at least two dims: a vector becomes a row.
   * @example
   * new Tensor([1, 2]).atleast2d().shape // => [1, 2]
   */
  atleast2d(): this {
    return this.ndim < 2 ? this.atleast1d().unsqueeze(0) : this;
  }
  /**
   * With at least three dims: a vector lies along the middle one, a matrix gets a last one of size 1.
   * @example
   * new Tensor([1, 2]).atleast3d().shape // => [1, 2, 1]
   */
  atleast3d(): this {
    return this.ndim < 3 ? this.atleast2d().unsqueeze(-1) : this;
  }
  /**
   * One dim split into several; one size may be -1.
   * @example
   * new Tensor([1, 2, 3, 4]).unflatten(0, [2, -1]).shape // => [2, 2]
   */
  unflatten(dim: number, sizes: readonly number[]): this {
    const at = this.axis("unflatten", dim);
    const n = this.shape[at] as number;
    const known = sizes.reduce((a, b) => (b === -1 ? a : a * b), 1);
    const full = sizes.map((s) => (s === -1 ? n / known : s));
    if (full.reduce((a, b) => a * b, 1) !== n || sizes.filter((s) => s === -1).length > 1) {
      throw new ShapeError(
        `unflatten: dim ${dim} of ${showShape(this.shape)} has ${n} elements and cannot become [${sizes}]`,
      );
    }
    return this.reshape(this.lazydata.shape.toSpliced(at, 1, ...full));
  }
  /**
   * Expanded to the shape of another tensor.
   * @example
   * await new Tensor([1]).expandAs(new Tensor([3, 4])).tolist() // => [1, 1]
   */
  expandAs(other: this): this {
    requireTensors("expandAs", { other });
    return this.expand(other.lazydata.shape);
  }
  /**
   * The same elements in the shape of another tensor.
   * @example
   * await new Tensor([1, 2]).reshapeAs(new Tensor([[3], [4]])).tolist() // => [[1], [2]]
   */
  reshapeAs(other: this): this {
    requireTensors("reshapeAs", { other });
    return this.reshape(other.lazydata.shape);
  }
  /**
   * Another name for `reshapeAs`.
   * @example
   * await new Tensor([1, 2]).viewAs(new Tensor([[3], [4]])).tolist() // => [[1], [2]]
   */
  viewAs(other: this): this {
    requireTensors("viewAs", { other });
    return this.reshapeAs(other);
  }
  /**
   * All elements in one dim.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).ravel().tolist() // => [1, 2, 3, 4]
   */
  ravel(): this {
    return this.reshape(this.size);
  }

  // ---- repeating and turning ----

  /**
   * The tensor side by side with itself, so many times along each dim; more counts than dims add dims in front.
   * @example
   * await new Tensor([1, 2]).repeat(2, 2).tolist() // => [[1, 2, 1, 2], [1, 2, 1, 2]]
   */
  repeat(...repeats: ShapeArgs): this {
    const counts = shapeOf(repeats) as readonly number[];
    if (counts.length < this.ndim || counts.some((c) => !Number.isInteger(c) || c < 0)) {
      throw new ShapeError(
        `repeat: got counts [${counts}] for shape ${showShape(this.shape)}; give an integer from 0 up for each of its ${this.ndim} dims (tile fills in ones)`,
      );
    }
    const shape: Sint[] = [...range(counts.length - this.ndim).map(() => 1), ...this.lazydata.shape];
    if (counts.every((c) => c === 1)) return this.reshape(shape);
    return this.reshape(shape.flatMap((n) => [1, n]))
      .expand(shape.flatMap((n, i) => [counts[i] as number, n]))
      .reshape(shape.map((n, i) => Number(n) * (counts[i] as number)));
  }
  /**
   * `repeat` where missing counts are 1.
   * @example
   * await new Tensor([[1], [2]]).tile(2).tolist() // => [[1, 1], [2, 2]]
   */
  tile(...dims: ShapeArgs): this {
    const counts = shapeOf(dims);
    return this.repeat([...range(Math.max(0, this.ndim - counts.length)).map(() => 1), ...counts]);
  }
  /**
   * Shifts elements along dims; what leaves one end enters at the other. Without dims it shifts the flat tensor.
   * @example
   * await new Tensor([1, 2, 3]).roll(1).tolist() // => [3, 1, 2]
   */
  roll(shifts: number | readonly number[], dims?: number | readonly number[]): this {
    const by = typeof shifts === "number" ? [shifts] : shifts;
    if (dims === undefined || (typeof dims !== "number" && dims.length === 0 && by.length === 1)) {
      if (by.length !== 1) {
        throw new ArgumentError(`roll: got ${by.length} shifts and no dims; name a dim for each`);
      }
      return this.ravel().roll(by, 0).reshape(this.lazydata.shape);
    }
    const list = typeof dims === "number" ? [dims] : dims;
    if (list.length !== by.length) {
      throw new ArgumentError(
        `roll: got ${by.length} shifts (${by}) for ${list.length} dims (${list}); expected as many`,
      );
    }
    // a dim may be named twice: its shifts add up
    return list.reduce<this>((t, dim, i) => t.#rolled(this.axis("roll", dim), by[i] as number), this);
  }
  #rolled(at: number, shift: number): this {
    const n = this.shape[at] as number;
    const s = n === 0 ? 0 : ((shift % n) + n) % n;
    return s === 0 ? this : this.#twice(at).between(at, n - s, 2 * n - s);
  }
  #twice(at: number, times = 2): this {
    return this.repeat(range(this.ndim).map((d) => (d === at ? times : 1)));
  }
  /**
   * Columns in reverse order.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).fliplr().tolist() // => [[2, 1], [4, 3]]
   */
  fliplr(): this {
    if (this.ndim < 2) throw new ShapeError(`fliplr: shape ${showShape(this.shape)} has no dim 1; use flip`);
    return this.flip(1);
  }
  /**
   * Rows in reverse order.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).flipud().tolist() // => [[3, 4], [1, 2]]
   */
  flipud(): this {
    if (this.ndim < 1) throw new ShapeError("flipud: shape [] has no dim 0");
    return this.flip(0);
  }
  /**
   * Turned by 90 degrees `k` times, in the plane of two dims, from the first towards the second.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).rot90().tolist() // => [[2, 4], [1, 3]]
   */
  rot90(k = 1, dims: readonly [number, number] = [0, 1]): this {
    const [a, b] = this.axes("rot90", dims) as [number, number];
    if (a === undefined || b === undefined || dims.length !== 2) {
      throw new ArgumentError(`rot90: got dims [${dims}], expected two`);
    }
    const turns = ((k % 4) + 4) % 4;
    if (turns === 0) return this;
    if (turns === 2) return this.flip([a, b]);
    return turns === 1 ? this.flip(b).transpose(a, b) : this.transpose(a, b).flip(b);
  }

  // ---- windows and diagonals ----

  /**
   * All windows of `size` elements along `dim`, `step` apart; the elements of a window are in a new last dim.
   * @example
   * await new Tensor([1, 2, 3, 4]).unfold(0, 2, 1).tolist() // => [[1, 2], [2, 3], [3, 4]]
   */
  unfold(dim: number, size: number, step: number): this {
    if (this.ndim === 0 && (dim === 0 || dim === -1))
      return this.reshape(1).unfold(0, size, step).reshape(size);
    const at = this.axis("unfold", dim);
    const n = this.shape[at] as number;
    if (!(Number.isInteger(size) && size >= 0 && size <= n && Number.isInteger(step) && step > 0)) {
      throw new ShapeError(
        `unfold: windows of ${size}, ${step} apart, do not fit dim ${dim} of ${showShape(this.shape)}; expected a size of 0 to ${n} and a step from 1 up`,
      );
    }
    const last = this.movedim(at, -1);
    const lead = last.lazydata.shape.slice(0, -1);
    const count = Math.floor((n - size) / step) + 1;
    const none = lead.map(() => null);
    if (size === 0)
      return last
        .shrink([...none, [0, 0]])
        .unsqueeze(-2)
        .expand([...lead, count, 0])
        .movedim(-2, at);
    // In the tensor repeated end to end, rows of n + 1 elements start one element later each: row w, place t is x[w + t].
    const length = size * (n + 1);
    const rows = last
      .repeat([...lead.map(() => 1), Math.ceil(length / n)])
      .shrink([...none, [0, length]])
      .reshape([...lead, size, n + 1])
      .shrink([...none, null, [0, (count - 1) * step + 1]])
      .stride([...lead.map(() => 1), 1, step]);
    return rows.transpose(-1, -2).movedim(-2, at);
  }
  /**
   * The elements with equal places in two dims, as the last dim; `offset` picks a diagonal above (or below: negative).
   * @example
   * await new Tensor([[1, 2], [3, 4]]).diagonal().tolist() // => [1, 4]
   */
  diagonal(offset = 0, dim1 = 0, dim2 = 1): this {
    const [a, b] = this.axes("diagonal", [dim1, dim2]) as [number, number];
    const m = this.movedim([a, b], [-2, -1]);
    const lead = m.lazydata.shape.slice(0, -2);
    const [rows, cols] = m.shape.slice(-2) as [number, number];
    const [top, left] = [Math.max(0, -offset), Math.max(0, offset)];
    const d = Math.max(0, Math.min(rows - top, cols - left));
    const none = lead.map(() => null);
    if (d === 0) return m.shrink([...none, [0, 0], null]).reshape([...lead, 0]);
    return m
      .shrink([...none, [top, top + d], [left, left + d]])
      .reshape([...lead, d * d])
      .stride([...lead.map(() => 1), d + 1]);
  }
  /**
   * The last dim as a diagonal of zero matrices, which lie in the dims `dim1` and `dim2` of the result.
   * @example
   * await new Tensor([1, 2]).diagEmbed().tolist() // => [[1, 0], [0, 2]]
   */
  diagEmbed(offset = 0, dim1 = -2, dim2 = -1): this {
    if (this.ndim === 0) throw new ShapeError("diagEmbed: shape [] has no dim to lay out; reshape it to [1]");
    const ndim = this.ndim + 1;
    const [a, b] = [this.axis("diagEmbed", dim1, ndim), this.axis("diagEmbed", dim2, ndim)];
    if (a === b) throw new ShapeError(`diagEmbed: dim1 (${dim1}) and dim2 (${dim2}) are the same dim`);
    const lead = this.lazydata.shape.slice(0, -1);
    const none = lead.map(() => null);
    const d = this.shape.at(-1) as number;
    // rows of d + 1 hold one element each; read as rows of d, these stand on the diagonal
    const square = this.reshape([...lead, d, 1])
      .pad([...none, null, [0, d]])
      .reshape([...lead, d * (d + 1)])
      .shrink([...none, [0, d * d]])
      .reshape([...lead, d, d]);
    const [down, right] = [Math.max(0, -offset), Math.max(0, offset)];
    return square.pad([...none, [down, right], [right, down]]).movedim([-2, -1], [a, b]);
  }
  /**
   * A matrix with this vector on its diagonal, or the diagonal of this matrix.
   * @example
   * await new Tensor([1, 2]).diag().tolist() // => [[1, 0], [0, 2]]
   */
  diag(diagonal = 0): this {
    if (this.ndim === 1) return this.diagEmbed(diagonal);
    if (this.ndim === 2) return this.diagonal(diagonal);
    throw new ShapeError(
      `diag: shape ${showShape(this.shape)} is neither a vector nor a matrix; use diagonal or diagEmbed`,
    );
  }
  /**
   * The lower triangle of each matrix, zeros above; `diagonal` moves the border up.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).tril().tolist() // => [[1, 0], [3, 4]]
   */
  tril(diagonal = 0): this {
    const [row, col] = this.#places("tril");
    return col.le(diagonal === 0 ? row : row.add(diagonal)).where(this, this.nought);
  }
  /**
   * The upper triangle of each matrix, zeros below; `diagonal` moves the border up.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).triu().tolist() // => [[1, 2], [0, 4]]
   */
  triu(diagonal = 0): this {
    const [row, col] = this.#places("triu");
    return col.ge(diagonal === 0 ? row : row.add(diagonal)).where(this, this.nought);
  }
  /** Row and column of each element; expanded before anything is computed, so that nothing is stored. */
  #places(method: string): [this, this] {
    if (this.ndim < 2) {
      throw new ShapeError(
        `${method}: shape ${showShape(this.shape)} is no matrix; it takes at least 2 dims`,
      );
    }
    const { shape } = this.lazydata;
    const [rows, cols] = shape.slice(-2) as [Sint, Sint];
    return [this.counting(rows).reshape([rows, 1]).expand(shape), this.counting(cols).expand(shape)];
  }
  /** Zero as a number that promotes nothing. */
  protected get nought(): Element {
    return this.dtype.kind === "bool" ? false : 0;
  }

  // ---- padding ----

  /**
   * Elements before and after each dim: `value`, or by `mode` the mirror image, the edge, or the other end. Amounts are
   * a pair (or null) for each dim, or flat as in torch, last dim first; negative ones cut off.
   * @example
   * await new Tensor([1, 2, 3]).pad([1, 1], "reflect").tolist() // => [2, 1, 2, 3, 2]
   */
  override pad(amounts: PadAmounts, mode: PadMode | number = "constant", value = 0): this {
    if (typeof mode === "number") return this.pad(amounts, "constant", mode);
    if (!MODES.includes(mode)) {
      throw new ArgumentError(`pad: mode "${mode}" is not known; expected ${MODES.join(", ")}`);
    }
    const pairs = this.#pairs(amounts);
    const cuts = pairs.some((p) => p.some((x) => typeof x === "number" && x < 0));
    if (mode === "constant") {
      return cuts ? this.#cropped(pairs).pad(positive(pairs), "constant", value) : super.pad(pairs, value);
    }
    // the other end is that of what is left after cutting; mirrors and edges are those of the whole
    const base = mode === "circular" && cuts ? this.#cropped(pairs) : this;
    const padded = base.#around(positive(pairs) as [number, number][], mode);
    return mode === "circular" || !cuts ? padded : padded.#cropped(pairs);
  }
  #pairs(amounts: PadAmounts): Interval[] {
    const flat = Array.isArray(amounts) && amounts.every((a): a is number => typeof a === "number");
    if (!flat || (amounts.length === 0 && this.ndim === 0)) {
      requirePairs("pad", amounts, "[before, after]");
      const given = amounts as readonly (Interval | null)[];
      if (given.length === this.ndim) return given.map((a) => a ?? [0, 0]);
      throw new ShapeError(
        `pad: got ${given.length} pairs for shape ${showShape(this.shape)}; give [before, after] or null for each of its ${this.ndim} dims`,
      );
    }
    const list = amounts as readonly number[];
    if (list.length % 2 !== 0 || list.length > 2 * this.ndim) {
      throw new ShapeError(
        `pad: got ${list.length} amounts for shape ${showShape(this.shape)}; give two for each of the last dims, ${2 * this.ndim} at most`,
      );
    }
    const front = this.ndim - list.length / 2;
    return range(this.ndim).map((d) => {
      const i = 2 * (this.ndim - 1 - d);
      return d < front ? [0, 0] : [list[i] as number, list[i + 1] as number];
    });
  }
  /** Without what the negative amounts cut off. */
  #cropped(pairs: readonly Interval[]): this {
    const cuts = pairs.map(([before, after], d): Interval => {
      const n = this.lazydata.shape[d] as Sint;
      const start = Math.max(0, -Number(before));
      const end = add(n, Math.min(0, Number(after)));
      if (typeof end === "number" && end < start) {
        throw new ShapeError(
          `pad: [${before}, ${after}] cuts more than the ${n} elements of dim ${d} of ${showShape(this.shape)}`,
        );
      }
      return [start, end];
    });
    return this.shrink(cuts);
  }
  #around(pairs: readonly (readonly [number, number])[], mode: Exclude<PadMode, "constant">): this {
    return pairs.reduce<this>((t, [before, after], at) => {
      if (before === 0 && after === 0) return t;
      const n = t.shape[at] as number;
      const most = mode === "reflect" ? n - 1 : mode === "circular" ? n : n === 0 ? 0 : Infinity;
      if (before > most || after > most) {
        throw new ShapeError(
          `pad: mode ${mode} cannot add ${Math.max(before, after)} elements to dim ${at} of ${showShape(this.shape)}, which has ${n}; at most ${Math.max(0, most)}`,
        );
      }
      if (mode === "circular") return t.#twice(at, 3).between(at, n - before, 2 * n + after);
      const part = (lo: number, hi: number) => t.between(at, lo, hi);
      const edge = (i: number, k: number) => part(i, i + 1).expand(t.shape.with(at, k));
      const parts =
        mode === "reflect"
          ? [part(1, before + 1).flip(at), t, part(n - 1 - after, n - 1).flip(at)]
          : [edge(0, before), t, edge(n - 1, after)];
      const [first, ...rest] = parts.filter((p) => p.shape[at] !== 0) as [this, ...this[]];
      return first.cat(rest, at);
    }, this);
  }
}

const positive = (pairs: readonly Interval[]): Interval[] =>
  pairs.map(([a, b]) => [
    typeof a === "number" ? Math.max(0, a) : a,
    typeof b === "number" ? Math.max(0, b) : b,
  ]);
