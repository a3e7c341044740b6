// Writing by index: indexAdd, indexCopy, indexFill, indexPut, put, maskedScatter, and `setitem`, which is
// x[...] = value of Python; and repeatInterleave. Where several values go to one element they are summed or
// the last one stays. Gradients are indexed loads.

import { dtypes } from "../../dtype.ts";
import { ArgumentError, ShapeError } from "../../errors.ts";
import { range } from "../../helpers.ts";
import type { Interval } from "../../shape/view.ts";
import { isRecording } from "../autograd.ts";
import { cast, constant, counting, detach, type Element, TensorHandle, wrap } from "../core.ts";
import { add, bitwiseAnd, broadcastTo, eq, gt, le, mul, sub, where } from "../math/arithmetic.ts";
import { movedim, nought, pad, ravel } from "../movement/arrange.ts";
import {
  axisOf,
  expand,
  flatten,
  flip,
  reduceSum,
  reshape,
  spreadOut,
  unsqueeze,
} from "../movement/views.ts";
import { max, sum } from "../reduce/reduce.ts";
import { cumsum } from "../reduce/scan.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import { assign } from "../values.ts";
import {
  alignIndices,
  type Cut,
  cutOut,
  flagsOf,
  fromEnd,
  fromHost,
  type Index,
  indexed,
  maskedFill,
  pick,
  plan,
  shapeOfBoth,
  span,
} from "./getitem.ts";
import { filled, lastNumber } from "./scatter.ts";

/** How values are put. */
export interface PutOptions {
  /** whether values are added to those that are there; default: false */
  readonly accumulate?: boolean;
}
// ---- index*: whole slices ----

export function indexAdd(
  self: Tensor,
  dim: number,
  index: Tensor,
  source: Tensor,
  { alpha = 1 }: { alpha?: number | boolean } = {},
): Tensor {
  return slices(self, "indexAdd", dim, index, source, (self, at, i, from) => {
    const scaled = alpha === 1 || alpha === true ? from : cast(mul(from, alpha), self.dtype);
    return accumulated(self, [i], movedim(scaled, at, 0), [at]);
  });
}
export function indexCopy(self: Tensor, dim: number, index: Tensor, source: Tensor): Tensor {
  return slices(self, "indexCopy", dim, index, source, (self, at, i, from) =>
    replaced(self, [i], movedim(from, at, 0), [at], true),
  );
}
function slices(
  self: Tensor,
  method: string,
  dim: number,
  index: Tensor,
  source: Tensor,
  write: (self: Tensor, at: number, index: Tensor, source: Tensor) => Tensor,
): Tensor {
  if (self.ndim === 0) {
    return reshape(slices(reshape(self, 1), method, dim, reshape(index, -1), reshape(source, -1), write), []);
  }
  const at = axisOf(self, method, dim);
  const i = reshape(indexed(method, index, self.shape[at] as number, true), -1);
  const wanted = self.shape.with(at, i.size);
  if (index.ndim > 1 || showShape(source.shape) !== showShape(wanted) || source.dtype !== self.dtype) {
    throw new ShapeError(
      `${method}: the source is ${showShape(source.shape)} ${source.dtype.name}, expected ${showShape(wanted)} ` +
        `${self.dtype.name} for an index of shape ${showShape(index.shape)} along dim ${dim}`,
    );
  }
  return i.size === 0 ? self : write(self, at, i, source);
}
export function indexFill(self: Tensor, dim: number, index: Tensor, value: Tensor | Element): Tensor {
  if (self.ndim === 0) return reshape(indexFill(reshape(self, 1), dim, reshape(index, -1), value), []);
  const at = axisOf(self, "indexFill", dim);
  const n = self.shape[at] as number;
  const checked = indexed("indexFill", index, n, true);
  if (index.size === 0) return self;
  const full = [n, index.size];
  const i = fromEnd(expand(reshape(checked, -1), full), n);
  const named = max(eq(i, expand(reshape(counting(self, n), [n, 1]), full)), 1);
  const mask = expand(
    reshape(
      named,
      self.shape.map((_, d) => (d === at ? n : 1)),
    ),
    self.shape,
  );
  const filling = value instanceof TensorHandle ? value : filled(self, [], value, "indexFill");
  return maskedFill(self, mask, filling);
}
export function indexPut(
  self: Tensor,
  indices: readonly (Tensor | readonly number[] | null)[],
  values: Tensor | Element,
  { accumulate = false }: PutOptions = {},
): Tensor {
  const tensors = indices.map((i) => {
    if (i === null || i instanceof TensorHandle) return i as Tensor | null;
    if (Array.isArray(i) && i.every(Number.isInteger)) return fromHost(self, i);
    throw new ArgumentError(
      "indexPut: an index is neither a Tensor nor null nor an array of integers; expected one for each dim",
    );
  });
  return putAt(self, "indexPut", tensors, values, accumulate);
}
function putAt(
  self: Tensor,
  method: string,
  indices: readonly (Tensor | null)[],
  values: Tensor | Element,
  accumulate: boolean,
): Tensor {
  const given =
    values instanceof TensorHandle
      ? (values as Tensor)
      : filled(self, [], values, accumulate ? "add" : method);
  if (given.dtype !== self.dtype) {
    throw new ShapeError(
      `${method}: the values are ${given.dtype.name}, the tensor is ${self.dtype.name}; cast them first`,
    );
  }
  const [mask] = indices;
  if (indices.length === 1 && mask?.dtype.kind === "bool") return masked(self, mask, given, accumulate);
  if (indices.length > self.ndim) {
    throw new ShapeError(
      `${method}: ${indices.length} indices for shape ${showShape(self.shape)}; expected at most ${self.ndim}`,
    );
  }
  const tensors = range(self.ndim).map((d) => indices[d] ?? undefined);
  const dims = range(self.ndim).filter((d) => tensors[d] !== undefined);
  if (dims.length === 0) return accumulate ? add(self, given) : broadcastTo(given, self.shape);
  const [list, together] = alignIndices(self, method, tensors, dims);
  const places = (list[0] as Tensor).shape;
  const rest = self.shape.filter((_, d) => !dims.includes(d));
  const at = together ? (dims[0] as number) : 0;
  const spread = broadcastTo(given, [...rest.slice(0, at), ...places, ...rest.slice(at)]);
  const count = places.reduce((a, b) => a * b, 1);
  const front = range(places.length);
  const rows = reshape(
    movedim(
      spread,
      front.map((j) => at + j),
      front,
    ),
    [count, ...rest],
  );
  const flat = list.map((i) => reshape(i, count));
  if (count === 0) return self;
  return accumulate ? accumulated(self, flat, rows, dims) : replaced(self, flat, rows, dims);
}
/** [indices of the dims…, sources] to start from: whether a source goes to an element. */
function names(
  self: Tensor,
  indices: readonly Tensor[],
  dims: readonly number[],
): [goes: Tensor, full: number[]] {
  const sizes = dims.map((d) => self.shape[d] as number);
  const full = [...sizes, (indices[0] as Tensor).size];
  const goes = indices
    .map((index, j) => {
      const n = sizes[j] as number;
      const place = expand(reshape(counting(self, n), [n, ...full.slice(j + 1).map(() => 1)]), full);
      return eq(fromEnd(expand(index, full), n), place);
    })
    .reduce((a, b) => bitwiseAnd(a, b));
  return [goes, full];
}
/** With the rows of `values` added where the indices say; rows are [sources, dims that are not named…]. */
function accumulated(
  self: Tensor,
  indices: readonly Tensor[],
  values: Tensor,
  dims: readonly number[],
): Tensor {
  const count = (indices[0] as Tensor).size;
  const full = [count, ...self.shape];
  /** a part of `full` with these dims */
  const facing = (x: Tensor, isThere: (d: number) => boolean, sources = 1): Tensor =>
    expand(reshape(x, [sources, ...self.shape.map((s, d) => (isThere(d) ? s : 1))]), full);
  const goes = indices
    .map((index, j) => {
      const n = self.shape[dims[j] as number] as number;
      const place = facing(counting(self, n), (d) => d === dims[j]);
      return eq(
        fromEnd(
          facing(index, () => false, count),
          n,
        ),
        place,
      );
    })
    .reduce((a, b) => bitwiseAnd(a, b));
  const rows = facing(values, (d) => !dims.includes(d), count);
  return add(self, reshape(reduceSum(where(goes, rows, nought(self)), [0]), self.shape));
}
/**
 * The same with the last row instead of the sum; `all`: rows that others overwrite
 * get a gradient too, as in torch.
 */
function replaced(
  self: Tensor,
  indices: readonly Tensor[],
  values: Tensor,
  dims: readonly number[],
  all = false,
): Tensor {
  const [goes, full] = names(self, indices, dims);
  const k = dims.length;
  const count = full[k] as number;
  const winner = detach(lastNumber(goes, add(expand(counting(self, count), full), 1), k, 0));
  const value = movedim(
    pick(detach(values), 0, [winner], (i) => sub(i, 1)),
    range(k),
    dims,
  );
  const won = expand(
    reshape(
      winner,
      self.shape.map((s, d) => (dims.includes(d) ? s : 1)),
    ),
    self.shape,
  );
  const out = where(gt(won, 0), value, detach(self));
  return wrap(out.lazydata, [self, values], (g) => {
    const look = (t: Tensor): Tensor => pick(t, 0, indices, (i, n) => fromEnd(i, n));
    const left = where(gt(won, 0), 0, g);
    const flow = look(movedim(g, dims, range(k)));
    if (all) return [left, flow];
    const rows = [count, ...values.shape.slice(1).map(() => 1)];
    const numbers = expand(reshape(counting(self, count), rows), values.shape);
    const kept = eq(expand(reshape(look(winner), rows), values.shape), add(numbers, 1));
    return [left, where(kept, flow, 0)];
  });
}
function masked(self: Tensor, mask: Tensor, values: Tensor, accumulate: boolean): Tensor {
  const rest = self.shape.slice(mask.ndim);
  if (showShape(mask.shape) !== showShape(self.shape.slice(0, mask.ndim))) {
    throw new ShapeError(
      `indexPut: a mask of shape ${showShape(mask.shape)} does not fit ${showShape(self.shape)}; expected its first dims`,
    );
  }
  const rows = values.ndim <= rest.length ? 1 : (values.shape[values.ndim - rest.length - 1] as number);
  const value =
    rows === 1
      ? broadcastTo(reshape(values, values.shape.slice(-rest.length || values.ndim)), self.shape)
      : pick(broadcastTo(values, [rows, ...rest]), 0, [ranks(mask)]);
  const here = expand(reshape(mask, [...mask.shape, ...rest.map(() => 1)]), self.shape);
  return where(here, accumulate ? add(self, value) : value, self);
}
/** For each element of a mask, how many are true before it. */
function ranks(self: Tensor): Tensor {
  return reshape(sub(cumsum(cast(ravel(self), dtypes.int32), 0), 1), self.shape);
}
export function put(
  self: Tensor,
  index: Tensor,
  source: Tensor,
  { accumulate = false }: PutOptions = {},
): Tensor {
  if (source.size !== index.size) {
    throw new ShapeError(
      `put: the index has shape ${showShape(index.shape)}, the source ${showShape(source.shape)}; expected as many elements`,
    );
  }
  return reshape(putAt(ravel(self), "put", [ravel(index)], ravel(source), accumulate), self.shape);
}
export function maskedScatter(self: Tensor, mask: Tensor, source: Tensor): Tensor {
  const shape = shapeOfBoth(self.shape, mask.shape);
  const flags = expand(flagsOf("maskedScatter", mask), shape);
  return where(flags, pick(ravel(source), 0, [ranks(flags)]), expand(self, shape));
}

// ---- x[...] = value ----

export function setitem(self: Tensor, index: readonly Index<Tensor>[], value: Tensor | Element): Tensor {
  if (self.requiresGrad && self.context === undefined && isRecording()) {
    throw new ArgumentError(
      "setitem: this is a leaf with requiresGrad, and writing into it would lose its gradient; use Tensor.noGrad(() => …) or a copy: t.clone()",
    );
  }
  // what was built on the old value keeps it: the old tensor lives on under another name
  const before = wrap(self.lazydata);
  before.requiresGrad = self.requiresGrad;
  before.context = self.context;
  const given = value instanceof TensorHandle ? cast(value, self.dtype) : filled(self, [], value, "setitem");
  const made = written(before, index, given as Tensor);
  assign(self, made);
  self.requiresGrad = made.requiresGrad;
  self.context = made.context;
  return self;
}
function written(self: Tensor, index: readonly Index<Tensor>[], value: Tensor): Tensor {
  const [mask] = index;
  if (index.length === 1 && mask instanceof TensorHandle && mask.dtype.kind === "bool") {
    return masked(self, mask as Tensor, value, false);
  }
  const { cuts, shape, tensors } = plan(self, "setitem", index);
  if (cuts.some((c) => c.count === 0)) return self;
  const region = reshape(cutOut(self, cuts), shape);
  const fill = tensors.some((t) => t !== undefined)
    ? putAt(
        region,
        "setitem",
        tensors.map((t) => t ?? null),
        value,
        false,
      )
    : broadcastTo(reshape(value, value.shape.slice(Math.max(0, value.ndim - shape.length))), shape);
  const sizes = cuts.map((c) => c.count);
  const there = constant(self, sizes, dtypes.bool, 1);
  return where(placed(there, cuts, self.shape), placed(reshape(fill, sizes), cuts, self.shape), self);
}
/** The inverse of `cutOut`: these elements where the cuts say, zeros elsewhere. */
function placed(self: Tensor, cuts: readonly Cut[], shape: readonly number[]): Tensor {
  const spans = cuts.map(span) as [number, number][];
  const turned = range(cuts.length).filter((d) => (cuts[d] as Cut).step < 0);
  const steps = cuts.map((c) => Math.abs(c.step));
  const straight = turned.length === 0 ? self : flip(self, turned);
  const apart = steps.every((s) => s === 1)
    ? straight
    : spreadOut(
        straight,
        steps,
        spans.map(([lo, hi]) => hi - lo),
      );
  return pad(
    apart,
    spans.map(([lo, hi], d): Interval => [lo, (shape[d] as number) - hi]),
  );
}

export function repeatInterleave(
  self: Tensor,
  repeats: number | readonly number[] | Tensor,
  dim?: number,
  { outputSize }: { outputSize?: number | undefined } = {},
): Tensor {
  if (dim === undefined || self.ndim === 0) return interleaved(reshape(self, -1), repeats, 0, outputSize);
  return interleaved(self, repeats, axisOf(self, "repeatInterleave", dim), outputSize);
}
function interleaved(
  self: Tensor,
  repeats: number | readonly number[] | Tensor,
  at: number,
  outputSize: number | undefined,
): Tensor {
  const n = self.shape[at] as number;
  const odd =
    repeats instanceof TensorHandle ? undefined : [repeats].flat().find((r) => !Number.isInteger(r) || r < 0);
  if (odd !== undefined)
    throw new ArgumentError(`repeatInterleave: a count is ${odd}, expected an integer from 0 up`);
  if (typeof repeats === "number") {
    const times = self.shape.toSpliced(at + 1, 0, repeats);
    return flatten(expand(unsqueeze(self, at + 1), times), at, at + 1);
  }
  const size = repeats instanceof TensorHandle ? repeats.size : repeats.length;
  if (size !== n && size !== 1) {
    throw new ShapeError(
      `repeatInterleave: got ${size} counts for ${n} elements of ${showShape(self.shape)}; expected as many`,
    );
  }
  if (!(repeats instanceof TensorHandle)) {
    const counts = repeats as readonly number[];
    const places = range(n).flatMap((i) => range(counts[size === 1 ? 0 : i] as number).map(() => i));
    return pick(self, at, [fromHost(self, places)]);
  }
  if (outputSize === undefined) {
    throw new ArgumentError(
      "repeatInterleave: with a tensor of counts the size of the result must be given: { outputSize }; or give an array",
    );
  }
  // the source of an element is the number of those whose copies end before it
  const ends = cumsum(expand(reshape(repeats as Tensor, -1), [n]), 0);
  const full = [outputSize, n];
  const place = expand(reshape(counting(self, outputSize), [outputSize, 1]), full);
  return pick(self, at, [sum(cast(le(expand(ends, full), place), dtypes.int32), 1)]);
}
