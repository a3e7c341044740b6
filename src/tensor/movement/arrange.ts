// Rearranging: repeat, move dims, triangles, padding modes. All of it is views that cost no kernel, but for
// the triangles and for padding with anything but zeros or the other end. rearrange.ts has what is rarer.

import { ArgumentError, ShapeError } from "../../errors.ts";
import { range } from "../../helpers.ts";
import { add as addSize, mul, type Sint, sprod } from "../../shape/symbolic.ts";
import type { Interval } from "../../shape/view.ts";
import { counting, type Element } from "../core.ts";
import { add, ge, le, where } from "../math/arithmetic.ts";
import { operandValue } from "../math/promotion.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import { between, cat } from "./join.ts";
import {
  axesOf,
  axisOf,
  expand,
  flip,
  padConstant,
  permute,
  requirePairs,
  reshape,
  type ShapeArgs,
  shapeOf,
  shrink,
  transpose,
} from "./views.ts";

/** What padding is made of: a value, the mirror image, the edge, or the other end. */
export type PadMode = "constant" | "reflect" | "replicate" | "circular";
/**
 * `[before, after]` or null for each dim; or flat as in torch, the last dim
 * first: `[left, right, top, bottom]`.
 */
export type PadAmounts = readonly (Interval | null)[] | readonly number[];

const MODES: readonly string[] = ["constant", "reflect", "replicate", "circular"] satisfies PadMode[];

// ---- dims ----

export function squeeze(self: Tensor, dim?: number | readonly number[]): Tensor {
  const { shape } = self.lazydata;
  if (dim === undefined)
    return reshape(
      self,
      shape.filter((s) => s !== 1),
    );
  const dims = typeof dim === "number" ? [dim] : dim;
  if (self.ndim === 0 && dims.every((d) => d === 0 || d === -1)) return self;
  const axes = axesOf(self, "squeeze", dims);
  return reshape(
    self,
    shape.filter((s, i) => s !== 1 || !axes.includes(i)),
  );
}
export function movedim(
  self: Tensor,
  source: number | readonly number[],
  destination: number | readonly number[],
): Tensor {
  if (self.ndim === 0) return self;
  const from = axesOf(self, "movedim", source);
  const to = axesOf(self, "movedim", destination);
  if (from.length !== to.length) {
    throw new ArgumentError(
      `movedim: ${from.length} dims (${source}) cannot go to ${to.length} places (${destination}); expected as many`,
    );
  }
  const rest = range(self.ndim).filter((d) => !from.includes(d));
  const order = range(self.ndim).map((d) =>
    to.includes(d) ? (from[to.indexOf(d)] as number) : (rest.shift() as number),
  );
  return permute(self, order);
}
export function moveaxis(
  self: Tensor,
  source: number | readonly number[],
  destination: number | readonly number[],
): Tensor {
  return movedim(self, source, destination);
}
export function swapaxes(self: Tensor, a: number, b: number): Tensor {
  for (const d of [a, b]) axisOf(self, "swapaxes", d, Math.max(1, self.ndim));
  return self.ndim === 0 ? self : transpose(self, a, b);
}
export function swapdims(self: Tensor, a: number, b: number): Tensor {
  return swapaxes(self, a, b);
}
export function t(self: Tensor): Tensor {
  if (self.ndim > 2) {
    throw new ShapeError(
      `t: shape ${showShape(self.shape)} has ${self.ndim} dims, expected at most 2; use transpose`,
    );
  }
  return self.ndim < 2 ? self : transpose(self, 0, 1);
}
export function unflatten(self: Tensor, dim: number, sizes: readonly number[]): Tensor {
  const at = axisOf(self, "unflatten", dim);
  const n = self.shape[at] as number;
  const known = sizes.reduce((a, b) => (b === -1 ? a : a * b), 1);
  const full = sizes.map((s) => (s === -1 ? n / known : s));
  if (full.reduce((a, b) => a * b, 1) !== n || sizes.filter((s) => s === -1).length > 1) {
    throw new ShapeError(
      `unflatten: dim ${dim} of ${showShape(self.shape)} has ${n} elements and cannot become [${sizes}]`,
    );
  }
  return reshape(self, self.lazydata.shape.toSpliced(at, 1, ...full));
}
export function expandAs(self: Tensor, other: Tensor): Tensor {
  return expand(self, other.lazydata.shape);
}
export function reshapeAs(self: Tensor, other: Tensor): Tensor {
  return reshape(self, other.lazydata.shape);
}
export function viewAs(self: Tensor, other: Tensor): Tensor {
  return reshapeAs(self, other);
}
export function ravel(self: Tensor): Tensor {
  return reshape(self, sprod(self.lazydata.shape));
}

// ---- repeating and turning ----

export function repeat(self: Tensor, ...repeats: ShapeArgs): Tensor {
  const counts = shapeOf(repeats) as readonly number[];
  if (counts.length < self.ndim || counts.some((c) => !Number.isInteger(c) || c < 0)) {
    throw new ShapeError(
      `repeat: got counts [${counts}] for shape ${showShape(self.shape)}; give an integer from 0 up for each of its ${self.ndim} dims (tile fills in ones)`,
    );
  }
  const shape: Sint[] = [...range(counts.length - self.ndim).map(() => 1), ...self.lazydata.shape];
  if (counts.every((c) => c === 1)) return reshape(self, shape);
  return reshape(
    expand(
      reshape(
        self,
        shape.flatMap((n) => [1, n]),
      ),
      shape.flatMap((n, i) => [counts[i] as number, n]),
    ),
    shape.map((n, i) => mul(n, counts[i] as number)),
  );
}
export function tile(self: Tensor, ...dims: ShapeArgs): Tensor {
  const counts = shapeOf(dims);
  return repeat(self, [...range(Math.max(0, self.ndim - counts.length)).map(() => 1), ...counts]);
}
export function twice(self: Tensor, at: number, times = 2): Tensor {
  return repeat(
    self,
    range(self.ndim).map((d) => (d === at ? times : 1)),
  );
}
export function tril(self: Tensor, diagonal = 0): Tensor {
  const [row, col] = places(self, "tril", diagonal);
  return where(le(col, diagonal === 0 ? row : add(row, diagonal)), self, nought(self));
}
export function triu(self: Tensor, diagonal = 0): Tensor {
  const [row, col] = places(self, "triu", diagonal);
  return where(ge(col, diagonal === 0 ? row : add(row, diagonal)), self, nought(self));
}
/** Row and column of each element; expanded before anything is computed, so that nothing is stored. */
function places(self: Tensor, method: string, diagonal: number): [Tensor, Tensor] {
  if (!Number.isInteger(diagonal)) {
    throw new ArgumentError(`${method}: diagonal is ${diagonal}, expected an integer`);
  }
  if (self.ndim < 2) {
    throw new ShapeError(
      `${method}: shape ${showShape(self.shape)} is not a matrix; it takes at least 2 dims`,
    );
  }
  const { shape } = self.lazydata;
  const [rows, cols] = shape.slice(-2) as [Sint, Sint];
  return [expand(reshape(counting(self, rows), [rows, 1]), shape), expand(counting(self, cols), shape)];
}
/** Zero as a number that promotes nothing. */
export function nought(self: Tensor): Element {
  return self.dtype.kind === "bool" ? false : 0;
}

// ---- padding ----

export function pad(
  self: Tensor,
  amounts: PadAmounts,
  mode: PadMode | number = "constant",
  value = 0,
): Tensor {
  if (typeof mode === "number") return pad(self, amounts, "constant", mode);
  if (!MODES.includes(mode)) {
    throw new ArgumentError(`pad: mode "${mode}" is not known; expected ${MODES.join(", ")}`);
  }
  const { dtype } = self;
  operandValue("pad", value, dtype);
  const pairs = pairsOf(self, amounts);
  const cuts = pairs.some((p) => p.some((x) => typeof x === "number" && x < 0));
  if (mode === "constant") {
    return cuts
      ? pad(cropped(self, pairs), positive(pairs), "constant", value)
      : padConstant(self, pairs, value);
  }
  // the other end is that of what is left after cutting; mirrors and edges are those of the whole
  const base = mode === "circular" && cuts ? cropped(self, pairs) : self;
  const padded = around(base, positive(pairs) as [number, number][], mode);
  return mode === "circular" || !cuts ? padded : cropped(padded, pairs);
}
function pairsOf(self: Tensor, amounts: PadAmounts): Interval[] {
  const flat = Array.isArray(amounts) && amounts.every((a): a is number => typeof a === "number");
  if (!flat || (amounts.length === 0 && self.ndim === 0)) {
    requirePairs("pad", amounts, "[before, after]");
    const given = amounts as readonly (Interval | null)[];
    if (given.length === self.ndim) return given.map((a) => a ?? [0, 0]);
    throw new ShapeError(
      `pad: got ${given.length} pairs for shape ${showShape(self.shape)}; give [before, after] or null for each of its ${self.ndim} dims`,
    );
  }
  const list = amounts as readonly number[];
  if (list.length % 2 !== 0 || list.length > 2 * self.ndim) {
    throw new ShapeError(
      `pad: got ${list.length} amounts for shape ${showShape(self.shape)}; give two for each of the last dims, ${2 * self.ndim} at most`,
    );
  }
  const front = self.ndim - list.length / 2;
  return range(self.ndim).map((d) => {
    const i = 2 * (self.ndim - 1 - d);
    return d < front ? [0, 0] : [list[i] as number, list[i + 1] as number];
  });
}
/** Without what the negative amounts cut off. */
function cropped(self: Tensor, pairs: readonly Interval[]): Tensor {
  const cuts = pairs.map(([before, after], d): Interval => {
    const n = self.lazydata.shape[d] as Sint;
    const start = Math.max(0, -Number(before));
    const end = addSize(n, Math.min(0, Number(after)));
    if (typeof end === "number" && end < start) {
      throw new ShapeError(
        `pad: [${before}, ${after}] cuts more than the ${n} elements of dim ${d} of ${showShape(self.shape)}`,
      );
    }
    return [start, end];
  });
  return shrink(self, cuts);
}
function around(
  self: Tensor,
  pairs: readonly (readonly [number, number])[],
  mode: Exclude<PadMode, "constant">,
): Tensor {
  return pairs.reduce<Tensor>((t, [before, after], at) => {
    if (before === 0 && after === 0) return t;
    const n = t.shape[at] as number;
    const most = mode === "reflect" ? n - 1 : mode === "circular" ? n : n === 0 ? 0 : Infinity;
    if (before > most || after > most) {
      throw new ShapeError(
        `pad: mode ${mode} cannot add ${Math.max(before, after)} elements to dim ${at} of ${showShape(self.shape)}, which has ${n}; at most ${Math.max(0, most)}`,
      );
    }
    if (mode === "circular") return between(twice(t, at, 3), at, n - before, 2 * n + after);
    const part = (lo: number, hi: number) => between(t, at, lo, hi);
    const edge = (i: number, k: number) => expand(part(i, i + 1), t.shape.with(at, k));
    const parts =
      mode === "reflect"
        ? [flip(part(1, before + 1), at), t, flip(part(n - 1 - after, n - 1), at)]
        : [edge(0, before), t, edge(n - 1, after)];
    const [first, ...rest] = parts.filter((p) => p.shape[at] !== 0) as [Tensor, ...Tensor[]];
    return cat(first, rest, at);
  }, self);
}

const positive = (pairs: readonly Interval[]): Interval[] =>
  pairs.map(([a, b]) => [
    typeof a === "number" ? Math.max(0, a) : a,
    typeof b === "number" ? Math.max(0, b) : b,
  ]);
