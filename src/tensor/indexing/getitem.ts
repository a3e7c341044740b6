// Reading by index: gather, indexSelect, embedding, masks, and `get`, which is x[...] of Python. An
// index is compared with 0, 1, 2 … and what it equals is summed; the compiler turns that sum into one indexed
// load. Indices beyond the end read 0, since a kernel cannot raise an error.

import { dtypes } from "../../dtype.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../errors.ts";
import { prod, range } from "../../helpers.ts";
import { encodeArray } from "../../hostarrays.ts";
import { LazyBuffer } from "../../lazy/lazybuffer.ts";
import { copyTo } from "../../lazy/placement.ts";
import { Buffer } from "../../runtime/buffer.ts";
import { decided } from "../../shape/guards.ts";
import { le, type Sint } from "../../shape/symbolic.ts";
import type { Interval, Shape } from "../../shape/view.ts";
import { cast, constant, counting, detach, sizeAt, TensorHandle, wrap } from "../core.ts";
import {
  add,
  bitwiseAnd,
  broadcastTo,
  div,
  eq,
  gt,
  lt,
  mul,
  ne,
  reciprocal,
  where,
} from "../math/arithmetic.ts";
import { pow } from "../math/elementary.ts";
import { operandValue } from "../math/promotion.ts";
import { abs } from "../math/rounding.ts";
import { movedim, nought, ravel, squeeze } from "../movement/arrange.ts";
import { unbind } from "../movement/join.ts";
import { axisOf, expand, reduceSum, reshape, shrink, stride, unsqueeze } from "../movement/views.ts";
import { sum } from "../reduce/reduce.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import { data } from "../values.ts";
import { requireRange } from "../wholes.ts";

/**
 * `[start, end, step]` as in Python's slices: null or nothing is the end of the
 * dim, negative counts from the end.
 */
export type Slice = readonly [start?: number | null, end?: number | null, step?: number | null];
/**
 * An index, a slice, all of a dim (":"), a new dim (null), all dims that are not named ("..."), or a tensor
 * of indices or flags.
 */
export type Index<T> = number | Slice | null | ":" | "..." | T;

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
  /** the indices that put this tensor in order, if it is not */
  readonly sorter?: T | undefined;
}

/** What is kept of one dim: `count` elements from `start`, `step` apart; `whole` where no dim is left. */
export interface Cut {
  readonly start: number;
  readonly count: number;
  readonly step: number;
}
/**
 * An index taken apart: what is cut out of each dim, then the shape of that, then
 * the tensors by dim of that shape.
 */
export interface IndexPlan<T> {
  readonly cuts: readonly Cut[];
  readonly shape: readonly number[];
  readonly tensors: readonly (T | undefined)[];
}

// ---- the primitive ----

/** Checks that a tensor can be an index, and that its numbers are in range where they are known. */
export function indexed(method: string, index: Tensor, size: number, isFromEnd = false): Tensor {
  if (index.dtype.isInt) return requireRange(method, index, { size, fromEnd: isFromEnd });
  throw new DTypeError(`${method}: the index is ${index.dtype.name}, expected integers; cast it to int32`);
}
/** A tensor of nothing. */
export function nothing(self: Tensor, shape: Shape): Tensor {
  return constant(self, shape, self.dtype, 0);
}
/**
 * This tensor with the dims from `at` on, one for each of `indices`, replaced by those of the indices: what
 * they name. The indices have one shape; `map` is done to them after they are expanded, so
 * that nothing is stored on the way.
 */
export function pick(
  self: Tensor,
  at: number,
  indices: readonly Tensor[],
  map: (i: Tensor, n: number) => Tensor = (i) => i,
): Tensor {
  const k = indices.length;
  const { shape } = self.lazydata;
  const [lead, rest] = [shape.slice(0, at), shape.slice(at + k)];
  const named = range(k).map((j) => sizeAt(self, at + j));
  const [first] = indices;
  if (first === undefined) return self;
  const places = first.lazydata.shape;
  const full = [...lead, ...places, ...named, ...rest];
  const ones = (n: number): number[] => range(n).map(() => 1);
  const chosen = indices.map((index, j) => {
    const n = named[j] as number;
    const i = expand(reshape(index, [...ones(at), ...places, ...ones(k + rest.length)]), full);
    const count = reshape(counting(self, n), [n, ...ones(k - 1 - j + rest.length)]);
    return eq(map(i, n), expand(count, full));
  });
  const axes = range(k).map((j) => at + places.length + j);
  return reshape(
    reduceSum(
      where(
        chosen.reduce((a, b) => bitwiseAnd(a, b)),
        expand(reshape(self, [...lead, ...ones(places.length), ...named, ...rest]), full),
        nought(self),
      ),
      axes,
    ),
    [...lead, ...places, ...rest],
  );
}

/** Negative indices count from the end of a dim of `n`. */
export function fromEnd(self: Tensor, n: number): Tensor {
  return self.dtype.kind === "uint" ? self : where(lt(self, 0), add(self, n), self);
}

// ---- along a dim ----

export function gather(self: Tensor, dim: number, index: Tensor): Tensor {
  const size = self.ndim === 0 ? 1 : sizeAt(self, axisOf(self, "gather", dim));
  return gathered(self, dim, indexed("gather", index, size), (i) => i);
}
/** The index has been checked. */
export function gathered(
  self: Tensor,
  dim: number,
  index: Tensor,
  map: (i: Tensor, n: number) => Tensor,
): Tensor {
  const [own, wanted] = [self.lazydata.shape, index.lazydata.shape];
  if (wanted.includes(0)) return nothing(self, wanted);
  if (self.ndim === 0 || index.ndim === 0) {
    if (self.ndim > 1 || index.ndim > 1) throw misfit(self, "gather", dim, index);
    return reshape(gathered(reshape(self, -1), dim, reshape(index, -1), map), wanted);
  }
  const at = axisOf(self, "gather", dim);
  const fits =
    index.ndim === self.ndim && wanted.every((s, d) => d === at || decided(le(s, own[d] as Sint)) === 1);
  if (!fits) throw misfit(self, "gather", dim, index);
  const n = sizeAt(self, at);
  const full = wanted.toSpliced(at + 1, 0, n);
  const places = reshape(counting(self, n), [n, ...full.slice(at + 2).map(() => 1)]);
  const x = shrink(
    self,
    wanted.map((s, d) => (d === at ? null : [0, s])),
  );
  return squeeze(
    reduceSum(
      where(
        eq(map(expand(unsqueeze(index, at + 1), full), n), expand(places, full)),
        expand(unsqueeze(x, at), full),
        nought(self),
      ),
      [at + 1],
    ),
    at + 1,
  );
}
export function misfit(self: Tensor, method: string, dim: number, index: Tensor): ShapeError {
  return new ShapeError(
    `${method}: an index of shape ${showShape(index.shape)} does not fit ${showShape(self.shape)}; ` +
      `it needs as many dims, and but for dim ${dim} sizes no larger`,
  );
}
export function indexSelect(self: Tensor, dim: number, index: Tensor): Tensor {
  if (index.ndim > 1) {
    throw new ShapeError(
      `indexSelect: the index has shape ${showShape(index.shape)}, expected a vector; get takes any shape`,
    );
  }
  if (self.ndim === 0) return reshape(indexSelect(reshape(self, 1), dim, reshape(index, 1)), []);
  const at = axisOf(self, "indexSelect", dim);
  return pick(self, at, [reshape(indexed("indexSelect", index, sizeAt(self, at)), -1)]);
}
export function embedding(self: Tensor, weight: Tensor, options: EmbeddingOptions = {}): Tensor {
  if (weight.ndim !== 2) {
    throw new ShapeError(
      `embedding: the weight has shape ${showShape(weight.shape)}, expected [rows, width]`,
    );
  }
  const { paddingIdx, maxNorm, normType = 2, scaleGradByFreq = false } = options;
  let rows = pick(weight, 0, [indexed("embedding", self, weight.shape[0] as number)]);
  if (maxNorm !== undefined) {
    const long = pow(sum(pow(abs(detach(rows)), normType), -1, true), 1 / normType);
    const scale = where(gt(long, maxNorm), mul(reciprocal(add(long, 1e-7)), maxNorm), 1);
    // torch scales the weight itself, beforehand: the gradient is that of the scaled rows
    rows = wrap(mul(detach(rows), scale).lazydata, [rows], (g) => [g]);
  }
  if (paddingIdx === undefined && !scaleGradByFreq) return rows;
  const row =
    paddingIdx === undefined ? -1 : paddingIdx < 0 ? paddingIdx + (weight.shape[0] as number) : paddingIdx;
  return wrap(rows.lazydata, [rows], (g) => {
    const used = where(eq(expand(unsqueeze(self, -1), g.shape), row), 0, g);
    if (!scaleGradByFreq) return [used];
    const flat = reshape(self, -1);
    const same = reshape(sum(eq(unsqueeze(flat, 1), unsqueeze(flat, 0)), 1), [...self.shape, 1]);
    return [div(used, cast(same, g.dtype))];
  });
}

// ---- masks ----

export function maskedFill(self: Tensor, mask: Tensor, value: Tensor | number | bigint | boolean): Tensor {
  const filler =
    value instanceof TensorHandle
      ? cast(value, self.dtype)
      : constant(self, [], self.dtype, operandValue("maskedFill", value, self.dtype));
  if (filler.ndim > 0) {
    throw new ShapeError(
      `maskedFill: the value has shape ${showShape(filler.shape)}, expected a number or shape []; use where`,
    );
  }
  return where(flagsOf("maskedFill", mask), filler as Tensor, self);
}
/** Checks that a tensor can be a mask. */
export function flagsOf(method: string, mask: Tensor): Tensor {
  if (mask.dtype.kind === "bool") return mask;
  throw new DTypeError(
    `${method}: the mask is ${mask.dtype.name}, expected bool; compare first, as in t.ne(0)`,
  );
}
export async function maskedSelect(self: Tensor, mask: Tensor): Promise<Tensor> {
  flagsOf("maskedSelect", mask);
  const shape = shapeOfBoth(self.shape, mask.shape);
  const places = await truePlaces(expand(mask, shape), "maskedSelect");
  return pick(ravel(expand(self, shape)), 0, [fromHost(self, places)]);
}
export async function nonzero(self: Tensor): Promise<Tensor> {
  const places = await truePlaces(ne(self, nought(self)), "nonzero");
  const { shape } = self;
  const rows = places.flatMap((p) => {
    let left = p;
    return shape.map((n, d) => {
      const step = prod(shape.slice(d + 1));
      const at = Math.floor(left / step) % n;
      left %= step;
      return at;
    });
  });
  return reshape(fromHost(self, rows), [places.length, shape.length]);
}
async function truePlaces(self: Tensor, method: string): Promise<number[]> {
  const values = await data(self, method);
  return range(values.length).filter((i) => values[i] !== 0);
}
/** Integers that were computed here, as a tensor beside this one. */
export function fromHost(self: Tensor, values: readonly number[]): Tensor {
  const buffer = new Buffer("EXT", values.length, dtypes.int32).allocate(encodeArray(dtypes.int32, values));
  return wrap(copyTo(LazyBuffer.fromBuffer(buffer, [values.length]), self.device));
}

// ---- x[...] ----

export function get(self: Tensor, ...index: readonly Index<Tensor>[]): Tensor {
  const { cuts, shape, tensors } = plan(self, "get", index);
  return atOf(reshape(cutOut(self, cuts), shape), tensors);
}
export async function getAsync(self: Tensor, ...index: readonly Index<Tensor>[]): Promise<Tensor> {
  return get(self, ...(await resolved(index)));
}
/** The index with the indices of its true elements for each mask. */
async function resolved(index: readonly Index<Tensor>[]): Promise<Index<Tensor>[]> {
  const parts = index.map(async (i): Promise<Index<Tensor>[]> => {
    if (!(i instanceof TensorHandle) || i.dtype.kind !== "bool") return [i];
    return unbind(await nonzero(i as Tensor), 1);
  });
  return (await Promise.all(parts)).flat();
}

/** What an index means for this shape. */
export function plan(self: Tensor, method: string, index: readonly Index<Tensor>[]): IndexPlan<Tensor> {
  const dims = index.filter((i) => i !== null && i !== "...").length;
  const gaps = index.filter((i) => i === "...").length;
  if (dims > self.ndim || gaps > 1) {
    throw new ArgumentError(
      `${method}: ${dims} indices${gaps > 1 ? ` and ${gaps} "..."` : ""} for shape ${showShape(self.shape)}; ` +
        `expected at most ${self.ndim} and one "..."`,
    );
  }
  const gap = range(self.ndim - dims).map((): Slice => []);
  const full = (gaps === 0 ? [...index, "..." as const] : index).flatMap((i) => (i === "..." ? gap : [i]));
  const [cuts, shape, tensors]: [Cut[], number[], (Tensor | undefined)[]] = [[], [], []];
  for (const i of full) {
    if (i === null) {
      shape.push(1);
      tensors.push(undefined);
      continue;
    }
    const n = self.shape[cuts.length] as number;
    const tensor = i instanceof TensorHandle ? (i as Tensor) : undefined;
    if (typeof i === "number") {
      cuts.push(place(self, method, i, cuts.length));
      continue;
    }
    const cut =
      tensor === undefined
        ? toCut(method, (i === ":" ? [] : i) as Slice, n)
        : { start: 0, count: n, step: 1 };
    cuts.push(cut);
    shape.push(cut.count);
    tensors.push(tensor);
  }
  return { cuts, shape, tensors };
}
function place(self: Tensor, method: string, i: number, dim: number): Cut {
  const n = self.shape[dim] as number;
  const start = i < 0 ? i + n : i;
  if (Number.isInteger(i) && start >= 0 && start < n) return { start, count: 1, step: 1 };
  throw new ShapeError(
    `${method}: index ${i} is out of range for dim ${dim} of ${showShape(self.shape)}; expected ${-n} to ${n - 1}`,
  );
}
/** The part of each dim that is kept; an index is a dim of size 1. */
export function cutOut(self: Tensor, cuts: readonly Cut[]): Tensor {
  const whole = cuts.every((c, d) => c.start === 0 && c.step === 1 && c.count === self.shape[d]);
  if (whole) return self;
  const kept = shrink(self, cuts.map(span));
  return cuts.every((c) => c.step === 1)
    ? kept
    : stride(
        kept,
        cuts.map((c) => c.step),
      );
}
/**
 * What the tensors name in their dims. Their common shape stands where they stand together, else in front.
 */
function atOf(self: Tensor, tensors: readonly (Tensor | undefined)[]): Tensor {
  const dims = range(tensors.length).filter((d) => tensors[d] !== undefined);
  if (dims.length === 0) return self;
  const [indices, together] = alignIndices(self, "get", tensors, dims);
  if (together) return pick(self, dims[0] as number, indices, (i, n) => fromEnd(i, n));
  return pick(movedim(self, dims, range(dims.length)), 0, indices, (i, n) => fromEnd(i, n));
}
/** The tensors of an index in one shape, and whether their dims are neighbours. */
export function alignIndices(
  self: Tensor,
  method: string,
  tensors: readonly (Tensor | undefined)[],
  dims: readonly number[],
): [indices: Tensor[], together: boolean] {
  const given = dims.map((d) => tensors[d] as Tensor);
  if (given.some((t) => t.dtype.kind === "bool")) {
    throw new DTypeError(
      `${method}: how many elements a bool mask picks is not known before it is computed; use await getAsync(…), or where`,
    );
  }
  const indices = given.map((t, j) => indexed(method, t, self.shape[dims[j] as number] as number, true));
  const shape = indices.map((t) => t.shape).reduce(shapeOfBoth);
  const together = dims.every((d, j) => d === (dims[0] as number) + j);
  return [indices.map((t) => broadcastTo(t, shape)), together];
}

// ---- order and classes ----

export function oneHot(self: Tensor, numClasses: number): Tensor {
  if (!Number.isInteger(numClasses) || numClasses < 1) {
    throw new ArgumentError(`oneHot: numClasses is ${numClasses}, expected an integer from 1 up`);
  }
  const full = [...self.shape, numClasses];
  const index = indexed("oneHot", self, numClasses);
  return cast(eq(expand(unsqueeze(index, -1), full), expand(counting(self, numClasses), full)), dtypes.int32);
}
/** The elements of a dim between the first and the last that are kept. */
export const span = ({ start, count, step }: Cut): Interval => {
  if (count === 0) return [0, 0];
  const last = start + (count - 1) * step;
  return [Math.min(start, last), Math.max(start, last) + 1];
};

function toCut(method: string, slice: Slice | undefined, n: number): Cut {
  if (slice === undefined)
    throw new ArgumentError(`${method}: an index is undefined; expected a number, [start, end], ":" or null`);
  const [from, to] = [slice[0] ?? null, slice[1] ?? null];
  const step = slice[2] ?? 1;
  if (!(slice.length <= 3) || step === 0 || ![from ?? 0, to ?? 0, step].every(Number.isInteger)) {
    throw new ArgumentError(
      `${method}: ${JSON.stringify(slice)} is not a slice; expected integers [start, end, step], step not 0, ":" or "..."; ` +
        "indices in a list are new Tensor([…])",
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
