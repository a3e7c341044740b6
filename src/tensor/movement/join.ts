// Putting tensors together (cat, stack; rearrange.ts has their relatives) and taking them apart (split,
// chunk, unbind). Parts are views and cost nothing; a join is one kernel.

import { promote } from "../../dtype.ts";
import { ArgumentError, ShapeError } from "../../errors.ts";
import { range } from "../../helpers.ts";
import { concat, startsOf } from "../../lazy/concat.ts";
import { add, type Sint } from "../../shape/symbolic.ts";
import { cast, sizeAt, TensorHandle, wrap } from "../core.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import { axisOf, reshape, shrink, unsqueeze } from "./views.ts";

// ---- together ----

export function cat(self: Tensor, others: Tensor | readonly Tensor[], dim = 0): Tensor {
  const all = [self, ...(others instanceof TensorHandle ? [others] : others)] as Tensor[];
  if (all.some((t) => t.ndim === 0)) {
    throw new ShapeError(
      "cat: a tensor of shape [] has no dim to join along; use stack, or reshape it to [1]",
    );
  }
  // an empty vector joins anything, as in torch
  const solid = all.filter((t) => !(t.ndim === 1 && t.shape[0] === 0));
  const first = solid[0] ?? self;
  const at = axisOf(first, "cat", dim);
  for (const t of solid) {
    const fits = t.lazydata.shape.every((s, i) => i === at || s === first.lazydata.shape[i]);
    if (t.ndim === first.ndim && fits) continue;
    throw new ShapeError(
      `cat: cannot join ${showShape(first.shape)} and ${showShape(t.shape)} along dim ${dim}; all other dims must be equal`,
    );
  }
  const type = all.map((t) => t.dtype).reduce(promote);
  const parts = (solid.length === 0 ? [self] : solid).map((t) => cast(t, type));
  return parts.length === 1 ? (parts[0] as Tensor) : joined(parts, at);
}
function joined(parts: readonly Tensor[], at: number): Tensor {
  const nodes = parts.map((p) => p.lazydata);
  const starts = startsOf(nodes, at);
  return wrap(concat(nodes, at), parts, (g) =>
    parts.map((_, i) =>
      shrink(
        g,
        range(g.ndim).map((d) => (d === at ? [starts[i] as Sint, starts[i + 1] as Sint] : null)),
      ),
    ),
  );
}
export function catAll(tensors: readonly Tensor[], dim = 0): Tensor {
  const [first, ...rest] = some("cat", tensors);
  return cat(first, rest, dim);
}
export function stack(self: Tensor, others: Tensor | readonly Tensor[], dim = 0): Tensor {
  const all = [self, ...(others instanceof TensorHandle ? [others] : others)] as Tensor[];
  const odd = all.find((t) => showShape(t.shape) !== showShape(self.shape));
  if (odd !== undefined) {
    throw new ShapeError(
      `stack: the tensors have shapes ${showShape(self.shape)} and ${showShape(odd.shape)}, expected equal; cat joins sizes that differ`,
    );
  }
  const at = axisOf(self, "stack", dim, self.ndim + 1);
  const [first, ...rest] = all.map((t) => unsqueeze(t, at)) as [Tensor, ...Tensor[]];
  return cat(first, rest, at);
}
export function stackAll(tensors: readonly Tensor[], dim = 0): Tensor {
  const [first, ...rest] = some("stack", tensors);
  return stack(first, rest, dim);
}
// ---- apart ----

export function split(self: Tensor, size: number | readonly number[], dim = 0): Tensor[] {
  if (typeof size !== "number") return splitWithSizes(self, size, dim);
  const n = sizeAt(self, axisOf(self, "split", dim));
  if (!Number.isInteger(size) || size < 0 || (size === 0 && n > 0)) {
    throw new ArgumentError(`split: the size of a part is ${size}, expected an integer from 1 up`);
  }
  const parts = n === 0 ? 1 : Math.ceil(n / size);
  return splitWithSizes(
    self,
    range(parts).map((i) => Math.min(size, n - i * size)),
    dim,
  );
}
export function splitWithSizes(self: Tensor, sizes: readonly number[], dim = 0): Tensor[] {
  const at = axisOf(self, "splitWithSizes", dim);
  const total = sizes.reduce((a, b) => a + b, 0);
  if (total !== self.shape[at] || sizes.some((s) => !Number.isInteger(s) || s < 0)) {
    throw new ShapeError(
      `splitWithSizes: [${sizes}] adds up to ${total}, dim ${dim} of ${showShape(self.shape)} has ${self.shape[at]}; expected equal`,
    );
  }
  let start = 0;
  return sizes.map((n) => {
    start += n;
    return between(self, at, start - n, start);
  });
}
export function chunk(self: Tensor, chunks: number, dim = 0): Tensor[] {
  if (!Number.isInteger(chunks) || chunks < 1) {
    throw new ArgumentError(`chunk: got ${chunks} chunks, expected an integer from 1 up`);
  }
  const n = sizeAt(self, axisOf(self, "chunk", dim));
  if (n === 0) return range(chunks).map(() => self);
  return split(self, Math.ceil(n / chunks), dim);
}
export function unbind(self: Tensor, dim = 0): Tensor[] {
  const at = axisOf(self, "unbind", dim);
  return range(sizeAt(self, at)).map((i) => select(self, at, i));
}
export function narrow(self: Tensor, dim: number, start: Sint, length: Sint): Tensor {
  const at = axisOf(self, "narrow", dim);
  const n = sizeAt(self, at);
  const from = typeof start === "number" && start < 0 ? start + n : start;
  const end = add(from, length);
  if (typeof from === "number" && typeof end === "number" && (from < 0 || end > n || end < from)) {
    throw new ShapeError(
      `narrow: ${length} elements from ${start} do not lie in dim ${dim} of ${showShape(self.shape)}`,
    );
  }
  return between(self, at, from, end);
}
export function select(self: Tensor, dim: number, index: Sint): Tensor {
  const at = axisOf(self, "select", dim);
  const n = sizeAt(self, at);
  const i = typeof index === "number" && index < 0 ? index + n : index;
  if (typeof i === "number" && !(Number.isInteger(i) && i >= 0 && i < n)) {
    throw new ShapeError(
      `select: index ${index} is out of range for dim ${dim} of ${showShape(self.shape)}; expected ${-n} to ${n - 1}`,
    );
  }
  const cut = between(self, at, i, add(i, 1));
  return reshape(
    cut,
    cut.lazydata.shape.filter((_, d) => d !== at),
  );
}
/** `[start, end)` of the dim `at`, counted from the front. */
export function between(self: Tensor, at: number, start: Sint, end: Sint): Tensor {
  if (start === 0 && end === self.lazydata.shape[at]) return self;
  return shrink(
    self,
    range(self.ndim).map((d) => (d === at ? [start, end] : null)),
  );
}

/** At least one tensor, or a complaint. */
export function some(method: string, tensors: readonly Tensor[]): readonly [Tensor, ...Tensor[]] {
  if (tensors.length > 0) return tensors as unknown as readonly [Tensor, ...Tensor[]];
  throw new ArgumentError(`${method}: got an empty list; give at least one tensor`);
}
