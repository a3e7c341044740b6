// Movement: other views of the same elements. Nothing here computes; every method returns at once.

import { dtypes } from "../dtype.ts";
import { ArgumentError, ShapeError } from "../errors.ts";
import { range } from "../helpers.ts";
import { shard } from "../lazy/multi.ts";
import { add, idiv, mod, type Sint, sprod, sub } from "../shape/symbolic.ts";
import type { Interval } from "../shape/view.ts";
import { showShape, TensorBase } from "./base.ts";

/** `(2, 3)` or `([2, 3])`. */
export type ShapeArgs = readonly Sint[] | readonly [readonly Sint[]];
export const shapeOf = (args: ShapeArgs): readonly Sint[] =>
  Array.isArray(args[0]) ? args[0] : (args as readonly Sint[]);

/** An argument of the wrong kind, as a message names it. */
export const describe = (x: unknown): string => {
  if (Array.isArray(x)) return "an array";
  return typeof x === "string"
    ? `the string "${x}"`
    : typeof x === "object" && x !== null
      ? "an object"
      : String(x);
};
/** Complains of an argument that is no tensor, by its name. */
export function requireTensors(method: string, given: Readonly<Record<string, unknown>>): void {
  for (const [name, x] of Object.entries(given)) {
    if (x instanceof TensorBase) continue;
    throw new ArgumentError(
      `${method}: ${name} is ${describe(x)}, expected a Tensor (wrap an array or a number: new Tensor(…))`,
    );
  }
}
export function requirePairs(method: string, pairs: unknown, pair: string): void {
  const isPair = (p: unknown): boolean => p === null || (Array.isArray(p) && p.length === 2);
  if (Array.isArray(pairs) && pairs.every(isPair)) return;
  const bad = Array.isArray(pairs) ? pairs.find((p) => !isPair(p)) : pairs;
  const got = Array.isArray(bad) ? `[${bad}]` : describe(bad);
  throw new ArgumentError(`${method}: got ${got}, expected an array with ${pair} or null for each dim`);
}

export abstract class MovementTensor extends TensorBase {
  /** A dim counted from the front, given one that may count from the back. */
  protected axis(method: string, dim: number, ndim = this.ndim): number {
    if (typeof dim !== "number") {
      throw new ArgumentError(
        `${method}: dim is ${describe(dim)}, expected an integer from ${-ndim} to ${ndim - 1}`,
      );
    }
    const at = dim < 0 ? dim + ndim : dim;
    if (Number.isInteger(dim) && at >= 0 && at < ndim) return at;
    throw new ShapeError(
      `${method}: dim ${dim} is out of range for shape ${showShape(this.shape)}; expected ${-ndim} to ${ndim - 1}`,
    );
  }
  protected axes(method: string, dims: number | readonly number[] | undefined): number[] {
    if (dims === undefined) return range(this.ndim);
    if (typeof dims !== "number" && !Array.isArray(dims)) {
      throw new ArgumentError(`${method}: dim is ${describe(dims)}, expected an integer or an array of them`);
    }
    // a scalar has no dims, but torch lets 0 and -1 stand for them
    if (this.ndim === 0 && [dims].flat().every((d) => d === 0 || d === -1)) return [];
    const list = (typeof dims === "number" ? [dims] : [...dims]).map((d) => this.axis(method, d));
    if (new Set(list).size !== list.length) {
      throw new ShapeError(`${method}: a dim is named twice in [${dims}] for shape ${showShape(this.shape)}`);
    }
    return list;
  }

  // ---- over several devices ----

  /**
   * The same values spread over devices: each gets a share along `dim`, or, without one, a copy of everything. Ops then
   * run on every device with what it has. A sum along `dim` is added up between the devices, operands that are spread
   * differently are copied as needed, and what is replicated meets what is sharded for free. `t.to("WASM")` and reading
   * put the shares together again. Shares differ by at most one where the size does not come out even.
   * @example
   * const x = new Tensor([1, 2, 3, 4]).shard(["WASM:0", "WASM:1"], 0);
   * await x.mul(10).tolist() // => [10, 20, 30, 40]
   * @example
   * new Tensor([[1, 2], [3, 4]]).shard(["WASM:0", "WASM:1"], 1).sum(0).shardDim // => 0
   */
  shard(devices: readonly string[], dim?: number | null): this {
    const axis = dim === undefined || dim === null ? undefined : this.axis("shard", dim);
    return this.wrap(shard(this.lazydata, devices, axis), [this], (g) => [g.placedLike(this)]);
  }
  /**
   * `shard` in place, for the weights of a model: `for (const p of nn.getParameters(model)) p.shard_(devices)`. Make the
   * optimizer afterwards: its state lies where the parameters lie.
   * @example
   * new Tensor([1, 2]).shard_(["WASM:0", "WASM:1"]).device // => "WASM,WASM:1"
   */
  shard_(devices: readonly string[], dim?: number | null): this {
    if (this.context !== undefined) {
      throw new ArgumentError(
        `shard_: a tensor of shape ${showShape(this.shape)} was computed from others, which would lose its gradient; ` +
          "use shard, or shard_ on those",
      );
    }
    const { lazydata } = this.shard(devices, dim);
    this.grad = this.grad?.shard(devices, dim);
    this.lazydata = lazydata;
    return this;
  }

  // ---- views ----

  /**
   * The same elements in another shape; one size may be -1.
   * @example
   * await new Tensor([1, 2, 3, 4]).reshape(2, -1).tolist() // => [[1, 2], [3, 4]]
   */
  reshape(...args: ShapeArgs): this {
    const wanted = [...shapeOf(args)];
    const open = wanted.indexOf(-1);
    if (open >= 0) {
      const others = wanted.filter((_, i) => i !== open);
      const known = sprod(others);
      const total = sprod(this.lazydata.shape);
      if (others.includes(-1) || known === 0 || mod(total, known) !== 0) {
        throw new ShapeError(
          `reshape: cannot infer the -1 in ${showShape(wanted)} from shape ${showShape(this.shape)} (${this.size} elements)`,
        );
      }
      wanted[open] = idiv(total, known);
    }
    const { shape } = this.lazydata;
    return this.wrap(this.lazydata.reshape(wanted), [this], (g) => [g.reshape(shape)]);
  }
  /**
   * torch's name for reshape.
   * @example
   * await new Tensor([1, 2, 3, 4]).view(2, 2).tolist() // => [[1, 2], [3, 4]]
   */
  view(...args: ShapeArgs): this {
    return this.reshape(...args);
  }
  /**
   * Joins the dims from `start` to `end` into one.
   * @example
   * new Tensor([[[1, 2]], [[3, 4]]]).flatten(1).shape // => [2, 2]
   */
  flatten(start = 0, end = -1): this {
    if (this.ndim === 0) return this.reshape(1);
    const [a, b] = [this.axis("flatten", start), this.axis("flatten", end)];
    if (a > b)
      throw new ShapeError(
        `flatten: start ${start} comes after end ${end} in shape ${showShape(this.shape)}`,
      );
    const { shape } = this.lazydata;
    return this.reshape(...shape.slice(0, a), sprod(shape.slice(a, b + 1)), ...shape.slice(b + 1));
  }
  /** Drops dims of size 1: all, or the one named. */
  squeeze(dim?: number): this {
    if (dim === undefined) return this.reshape(this.lazydata.shape.filter((s) => s !== 1));
    const at = this.axis("squeeze", dim);
    return this.lazydata.shape[at] === 1
      ? this.reshape(this.lazydata.shape.filter((_, i) => i !== at))
      : this;
  }
  /**
   * Adds a dim of size 1 at `dim`.
   * @example
   * new Tensor([1, 2]).unsqueeze(-1).shape // => [2, 1]
   */
  unsqueeze(dim: number): this {
    const at = this.axis("unsqueeze", dim, this.ndim + 1);
    return this.reshape(this.lazydata.shape.toSpliced(at, 0, 1));
  }

  /**
   * Dims in another order: `permute(1, 0)` transposes.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).permute(1, 0).tolist() // => [[1, 3], [2, 4]]
   */
  permute(...order: readonly number[] | readonly [readonly number[]]): this {
    const list = (Array.isArray(order[0]) ? order[0] : order) as readonly number[];
    const axes = this.axes("permute", list);
    if (axes.length !== this.ndim) {
      throw new ShapeError(
        `permute: got ${axes.length} dims for shape ${showShape(this.shape)}; name each of its ${this.ndim} dims once`,
      );
    }
    const back = axes.map((_, i) => axes.indexOf(i));
    return this.wrap(this.lazydata.permute(axes), [this], (g) => [g.permute(back)]);
  }
  /**
   * Exchanges two dims.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).transpose(0, 1).tolist() // => [[1, 3], [2, 4]]
   */
  transpose(a = -2, b = -1): this {
    if (this.ndim === 0 && this.axes("transpose", [a, b]).length === 0) return this;
    const order = range(this.ndim);
    const [x, y] = [this.axis("transpose", a), this.axis("transpose", b)];
    [order[x], order[y]] = [y, x];
    return this.permute(order);
  }
  /**
   * The transpose of a matrix.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).T.tolist() // => [[1, 3], [2, 4]]
   */
  get T(): this {
    return this.ndim < 2 ? this : this.transpose();
  }

  /**
   * Repeats dims of size 1 without copying; -1 keeps a size; new dims come in front.
   * @example
   * await new Tensor([[1], [2]]).expand(-1, 2).tolist() // => [[1, 1], [2, 2]]
   */
  expand(...args: ShapeArgs): this {
    const wanted = shapeOf(args);
    const { shape } = this.lazydata;
    const front = wanted.length - shape.length;
    if (front < 0) {
      throw new ShapeError(`expand: shape ${showShape(shape)} has more dims than ${showShape(wanted)}`);
    }
    const padded: Sint[] = [...range(front).map(() => 1), ...shape];
    const target = wanted.map((s, i) => (s === -1 ? (padded[i] as Sint) : s));
    const bad = target.findIndex((s, i) => s !== padded[i] && padded[i] !== 1);
    if (bad >= 0) {
      throw new ShapeError(
        `expand: dim ${bad - front} of shape ${showShape(shape)} has size ${padded[bad]} and cannot become ${target[bad]}; only size 1 expands`,
      );
    }
    const repeated = range(target.length).filter((i) => target[i] !== padded[i]);
    return this.wrap(this.lazydata.reshape(padded).expand(target), [this], (g) => [
      g.reduceSum(repeated).reshape(shape),
    ]);
  }

  /** Adds `[before, after]` elements of `value` to each dim; null leaves a dim alone. */
  pad(amounts: readonly (Interval | null)[], value = 0): this {
    if (amounts.length !== this.ndim) {
      throw new ShapeError(
        `pad: got ${amounts.length} pairs for shape ${showShape(this.shape)}; give [before, after] or null for each of its ${this.ndim} dims`,
      );
    }
    const pairs = amounts.map((a): Interval => a ?? [0, 0]);
    const negative = pairs.find(([a, b]) => (a as number) < 0 || (b as number) < 0);
    if (negative !== undefined)
      throw new ShapeError(`pad: [${negative}] is negative; to cut elements off use shrink`);
    const { shape } = this.lazydata;
    const back = pairs.map(([before], i): Interval => [before, add(before, shape[i] as Sint)]);
    const padded = this.wrap(this.lazydata.pad(pairs), [this], (g) => [g.shrink(back)]);
    if (value === 0) return padded;
    const there = this.lazydata.const(1, dtypes.bool).pad(pairs);
    const filled = there.e("WHERE", padded.lazydata, padded.lazydata.const(value));
    return this.wrap(filled, [padded], (g) => [g]);
  }

  /**
   * Keeps `[start, end)` of each dim; null keeps it whole.
   * @example
   * await new Tensor([[1, 2, 3], [4, 5, 6]]).shrink([null, [1, 3]]).tolist() // => [[2, 3], [5, 6]]
   */
  shrink(cuts: readonly (Interval | null)[]): this {
    requirePairs("shrink", cuts, "[start, end]");
    if (cuts.length !== this.ndim) {
      throw new ShapeError(
        `shrink: got ${cuts.length} ranges for shape ${showShape(this.shape)}; give [start, end] or null for each of its ${this.ndim} dims`,
      );
    }
    const { shape } = this.lazydata;
    const kept = cuts.map((c, i): Interval => c ?? [0, shape[i] as Sint]);
    const back = kept.map(([start, end], i): Interval => [start, sub(shape[i] as Sint, end)]);
    return this.wrap(this.lazydata.shrink(kept), [this], (g) => [g.pad(back)]);
  }
  /**
   * Turns dims around.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).flip(1).tolist() // => [[2, 1], [4, 3]]
   */
  flip(dims: number | readonly number[]): this {
    const axes = this.axes("flip", dims);
    const steps = range(this.ndim).map((i) => (axes.includes(i) ? -1 : 1));
    return this.wrap(this.lazydata.stride(steps), [this], (g) => [g.flip(axes)]);
  }
  /**
   * Every n-th element of each dim; a negative step counts from the end.
   * @example
   * await new Tensor([1, 2, 3, 4, 5]).stride([2]).tolist() // => [1, 3, 5]
   */
  stride(...steps: readonly number[] | readonly [readonly number[]]): this {
    const list = (Array.isArray(steps[0]) ? steps[0] : steps) as readonly number[];
    const turned = range(list.length).filter((i) => (list[i] as number) < 0);
    if (turned.length > 0 && list.length === this.ndim) return this.flip(turned).stride(list.map(Math.abs));
    const { shape } = this;
    return this.wrap(this.lazydata.stride(list), [this], (g) => [g.spread(list, shape)]);
  }
  /** The inverse of `stride`: elements `steps` apart in a tensor of zeros of the given shape. */
  protected spread(steps: readonly number[], shape: readonly number[]): this {
    const apart = this.reshape(this.shape.flatMap((n) => [n, 1]))
      .pad(steps.flatMap((s): [null, Interval] => [null, [0, s - 1]]))
      .reshape(this.shape.map((n, i) => n * (steps[i] as number)));
    // the last element has zeros after it that may reach beyond the shape, or not as far
    const cut = apart.shrink(apart.shape.map((n, i): Interval => [0, Math.min(n, shape[i] as number)]));
    return cut.pad(cut.shape.map((n, i): Interval => [0, (shape[i] as number) - n]));
  }

  /** The sum over `axes`, which stay as dims of size 1; the type stays too. */
  protected reduceSum(axes: readonly number[]): this {
    const { shape } = this.lazydata;
    return this.wrap(this.lazydata.r("SUM", axes), [this], (g) => [g.expand(shape)]);
  }
}
