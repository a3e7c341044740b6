// Movement: other views of the same elements. Nothing here computes; every method returns at once.

import { dtypes } from "../../dtype.ts";
import { ArgumentError, ShapeError } from "../../errors.ts";
import { range } from "../../helpers.ts";
import { add, idiv, mod, type Sint, sprod, sub } from "../../shape/symbolic.ts";
import type { Interval } from "../../shape/view.ts";
import { wrap } from "../core.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";

/** `(2, 3)` or `([2, 3])`. */
export type ShapeArgs = readonly Sint[] | readonly [readonly Sint[]];
export const shapeOf = (args: ShapeArgs): readonly Sint[] =>
  Array.isArray(args[0]) ? args[0] : (args as readonly Sint[]);

export function requirePairs(method: string, pairs: readonly unknown[], pair: string): void {
  const isSize = (x: unknown): boolean => typeof x === "object" || typeof x === "number";
  const isPair = (p: unknown): boolean =>
    p === null || (Array.isArray(p) && p.length === 2 && p.every(isSize));
  const bad = pairs.find((p) => !isPair(p));
  if (bad === undefined && !pairs.includes(undefined)) return;
  throw new ArgumentError(
    `${method}: got ${JSON.stringify(bad)}, expected an array with ${pair} or null for each dim`,
  );
}

/** A dim counted from the front, given one that may count from the back. */
export function axisOf(self: Tensor, method: string, dim: number, ndim = self.ndim): number {
  const at = dim < 0 ? dim + ndim : dim;
  if (Number.isInteger(dim) && at >= 0 && at < ndim) return at;
  throw new ShapeError(
    `${method}: dim ${dim} is out of range for shape ${showShape(self.shape)}; expected ${-ndim} to ${ndim - 1}`,
  );
}
export function axesOf(self: Tensor, method: string, dims: number | readonly number[] | undefined): number[] {
  if (dims === undefined) return range(self.ndim);
  // a scalar has no dims, but torch lets 0 and -1 stand for them
  if (self.ndim === 0 && [dims].flat().every((d) => d === 0 || d === -1)) return [];
  const list = (typeof dims === "number" ? [dims] : [...dims]).map((d) => axisOf(self, method, d));
  if (new Set(list).size !== list.length) {
    throw new ShapeError(`${method}: a dim is named twice in [${dims}] for shape ${showShape(self.shape)}`);
  }
  return list;
}

// ---- views ----

export function reshape(self: Tensor, ...args: ShapeArgs): Tensor {
  const wanted = [...shapeOf(args)];
  const open = wanted.indexOf(-1);
  if (open >= 0) {
    const others = wanted.filter((_, i) => i !== open);
    const known = sprod(others);
    const total = sprod(self.lazydata.shape);
    if (others.includes(-1) || known === 0 || mod(total, known) !== 0) {
      throw new ShapeError(
        `reshape: cannot infer the -1 in ${showShape(wanted)} from shape ${showShape(self.shape)} (${self.size} elements)`,
      );
    }
    wanted[open] = idiv(total, known);
  }
  const { shape } = self.lazydata;
  return wrap(self.lazydata.reshape(wanted), [self], (g) => [reshape(g, shape)]);
}
export function view(self: Tensor, ...args: ShapeArgs): Tensor {
  return reshape(self, ...args);
}
export function flatten(self: Tensor, start = 0, end = -1): Tensor {
  if (self.ndim === 0) return reshape(self, 1);
  const [a, b] = [axisOf(self, "flatten", start), axisOf(self, "flatten", end)];
  if (a > b)
    throw new ShapeError(`flatten: start ${start} comes after end ${end} in shape ${showShape(self.shape)}`);
  const { shape } = self.lazydata;
  return reshape(self, ...shape.slice(0, a), sprod(shape.slice(a, b + 1)), ...shape.slice(b + 1));
}
export function unsqueeze(self: Tensor, dim: number): Tensor {
  const at = axisOf(self, "unsqueeze", dim, self.ndim + 1);
  return reshape(self, self.lazydata.shape.toSpliced(at, 0, 1));
}

export function permute(self: Tensor, ...order: readonly number[] | readonly [readonly number[]]): Tensor {
  const list = (Array.isArray(order[0]) ? order[0] : order) as readonly number[];
  const axes = axesOf(self, "permute", list);
  if (axes.length !== self.ndim) {
    throw new ShapeError(
      `permute: got ${axes.length} dims for shape ${showShape(self.shape)}; name each of its ${self.ndim} dims once`,
    );
  }
  const back = axes.map((_, i) => axes.indexOf(i));
  return wrap(self.lazydata.permute(axes), [self], (g) => [permute(g, back)]);
}
export function transpose(self: Tensor, a = -2, b = -1): Tensor {
  if (self.ndim === 0 && axesOf(self, "transpose", [a, b]).length === 0) return self;
  const order = range(self.ndim);
  const [x, y] = [axisOf(self, "transpose", a), axisOf(self, "transpose", b)];
  [order[x], order[y]] = [y, x];
  return permute(self, order);
}
export function matrixTransposed(self: Tensor): Tensor {
  return self.ndim < 2 ? self : transpose(self);
}

export function expand(self: Tensor, ...args: ShapeArgs): Tensor {
  const wanted = shapeOf(args);
  const { shape } = self.lazydata;
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
  return wrap(self.lazydata.reshape(padded).expand(target), [self], (g) => [
    reshape(reduceSum(g, repeated), shape),
  ]);
}

/** Adds `[before, after]` elements of `value` to each dim; null leaves a dim alone. */
export function padConstant(self: Tensor, amounts: readonly (Interval | null)[], value = 0): Tensor {
  if (amounts.length !== self.ndim) {
    throw new ShapeError(
      `pad: got ${amounts.length} pairs for shape ${showShape(self.shape)}; give [before, after] or null for each of its ${self.ndim} dims`,
    );
  }
  const pairs = amounts.map((a): Interval => a ?? [0, 0]);
  const negative = pairs.find(([a, b]) => (a as number) < 0 || (b as number) < 0);
  if (negative !== undefined)
    throw new ShapeError(`pad: [${negative}] is negative; to cut elements off use shrink`);
  const { shape } = self.lazydata;
  const back = pairs.map(([before], i): Interval => [before, add(before, shape[i] as Sint)]);
  const padded = wrap(self.lazydata.pad(pairs), [self], (g) => [shrink(g, back)]);
  if (value === 0) return padded;
  const there = self.lazydata.const(1, dtypes.bool).pad(pairs);
  const filled = there.e("WHERE", padded.lazydata, padded.lazydata.const(value));
  return wrap(filled, [padded], (g) => [g]);
}

export function shrink(self: Tensor, cuts: readonly (Interval | null)[]): Tensor {
  requirePairs("shrink", cuts, "[start, end]");
  if (cuts.length !== self.ndim) {
    throw new ShapeError(
      `shrink: got ${cuts.length} ranges for shape ${showShape(self.shape)}; give [start, end] or null for each of its ${self.ndim} dims`,
    );
  }
  const { shape } = self.lazydata;
  const kept = cuts.map((c, i): Interval => c ?? [0, shape[i] as Sint]);
  const back = kept.map(([start, end], i): Interval => [start, sub(shape[i] as Sint, end)]);
  return wrap(self.lazydata.shrink(kept), [self], (g) => [padConstant(g, back)]);
}
export function flip(self: Tensor, dims: number | readonly number[]): Tensor {
  const axes = axesOf(self, "flip", dims);
  const steps = range(self.ndim).map((i) => (axes.includes(i) ? -1 : 1));
  return wrap(self.lazydata.stride(steps), [self], (g) => [flip(g, axes)]);
}
export function stride(self: Tensor, ...steps: readonly number[] | readonly [readonly number[]]): Tensor {
  const list = (Array.isArray(steps[0]) ? steps[0] : steps) as readonly number[];
  const turned = range(list.length).filter((i) => (list[i] as number) < 0);
  if (turned.length > 0 && list.length === self.ndim) return stride(flip(self, turned), list.map(Math.abs));
  return wrap(self.lazydata.stride(list), [self], (g) => [spreadOut(g, list, self.shape)]);
}
/** The inverse of `stride`: elements `steps` apart in a tensor of zeros of the given shape. */
export function spreadOut(self: Tensor, steps: readonly number[], shape: readonly number[]): Tensor {
  const apart = reshape(
    padConstant(
      reshape(
        self,
        self.shape.flatMap((n) => [n, 1]),
      ),
      steps.flatMap((s): [null, Interval] => [null, [0, s - 1]]),
    ),
    self.shape.map((n, i) => n * (steps[i] as number)),
  );
  // the last element has zeros after it that may reach beyond the shape, or not as far
  const cut = shrink(
    apart,
    apart.shape.map((n, i): Interval => [0, Math.min(n, shape[i] as number)]),
  );
  return padConstant(
    cut,
    cut.shape.map((n, i): Interval => [0, (shape[i] as number) - n]),
  );
}

/** The sum over `axes`, which stay as dims of size 1; the type stays too. */
export function reduceSum(self: Tensor, axes: readonly number[]): Tensor {
  const { shape } = self.lazydata;
  return wrap(self.lazydata.r("SUM", axes), [self], (g) => [expand(g, shape)]);
}
