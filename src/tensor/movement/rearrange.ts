// Views and joins that fewer programs use (gradloom/movement): roll, turn, windows, diagonals, and the forms
// of cat for rows, columns and blocks.

import { ArgumentError, ShapeError } from "../../errors.ts";
import { range } from "../../helpers.ts";
import { sizeAt } from "../core.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import { movedim, pad, ravel, repeat, twice } from "./arrange.ts";
import { between, catAll, some, splitWithSizes, stackAll } from "./join.ts";
import {
  axesOf,
  axisOf,
  expand,
  flatten,
  flip,
  padConstant,
  reshape,
  shrink,
  stride,
  transpose,
  unsqueeze,
} from "./views.ts";

export function atleast1d(self: Tensor): Tensor {
  return self.ndim === 0 ? reshape(self, 1) : self;
}
export function atleast2d(self: Tensor): Tensor {
  return self.ndim < 2 ? unsqueeze(atleast1d(self), 0) : self;
}
export function atleast3d(self: Tensor): Tensor {
  return self.ndim < 3 ? unsqueeze(atleast2d(self), -1) : self;
}
export function roll(
  self: Tensor,
  shifts: number | readonly number[],
  dims?: number | readonly number[],
): Tensor {
  const by = typeof shifts === "number" ? [shifts] : shifts;
  if (dims === undefined || (typeof dims !== "number" && dims.length === 0 && by.length === 1)) {
    if (by.length !== 1) {
      throw new ArgumentError(`roll: got ${by.length} shifts and no dims; name a dim for each`);
    }
    return reshape(roll(ravel(self), by, 0), self.lazydata.shape);
  }
  const list = typeof dims === "number" ? [dims] : dims;
  if (list.length !== by.length) {
    throw new ArgumentError(
      `roll: got ${by.length} shifts (${by}) for ${list.length} dims (${list}); expected as many`,
    );
  }
  // a dim may be named twice: its shifts add up
  return list.reduce<Tensor>((t, dim, i) => rolled(t, axisOf(self, "roll", dim), by[i] as number), self);
}
function rolled(self: Tensor, at: number, shift: number): Tensor {
  const n = self.shape[at] as number;
  const s = n === 0 ? 0 : ((shift % n) + n) % n;
  return s === 0 ? self : between(twice(self, at), at, n - s, 2 * n - s);
}
export function fliplr(self: Tensor): Tensor {
  if (self.ndim < 2) throw new ShapeError(`fliplr: shape ${showShape(self.shape)} has no dim 1; use flip`);
  return flip(self, 1);
}
export function flipud(self: Tensor): Tensor {
  if (self.ndim < 1) throw new ShapeError("flipud: shape [] has no dim 0");
  return flip(self, 0);
}
export function rot90(self: Tensor, k = 1, dims: readonly [number, number] = [0, 1]): Tensor {
  const [a, b] = axesOf(self, "rot90", dims) as [number, number];
  if (a === undefined || b === undefined || dims.length !== 2) {
    throw new ArgumentError(`rot90: got dims [${dims}], expected two`);
  }
  const turns = ((k % 4) + 4) % 4;
  if (turns === 0) return self;
  if (turns === 2) return flip(self, [a, b]);
  return turns === 1 ? transpose(flip(self, b), a, b) : flip(transpose(self, a, b), b);
}

// ---- windows and diagonals ----

export function unfold(self: Tensor, dim: number, size: number, step: number): Tensor {
  if (self.ndim === 0 && (dim === 0 || dim === -1))
    return reshape(unfold(reshape(self, 1), 0, size, step), size);
  const at = axisOf(self, "unfold", dim);
  const n = sizeAt(self, at);
  if (!(Number.isInteger(size) && size >= 0 && size <= n && Number.isInteger(step) && step > 0)) {
    throw new ShapeError(
      `unfold: windows of ${size}, ${step} apart, do not fit dim ${dim} of ${showShape(self.shape)}; expected a size of 0 to ${n} and a step from 1 up`,
    );
  }
  const last = movedim(self, at, -1);
  const lead = last.lazydata.shape.slice(0, -1);
  const count = Math.floor((n - size) / step) + 1;
  const none = lead.map(() => null);
  if (size === 0)
    return movedim(expand(unsqueeze(shrink(last, [...none, [0, 0]]), -2), [...lead, count, 0]), -2, at);
  // In the tensor repeated end to end, rows of n + 1 elements start one element later
  // each: row w, column t is x[w + t].
  const length = size * (n + 1);
  const rows = stride(
    shrink(
      reshape(shrink(repeat(last, [...lead.map(() => 1), Math.ceil(length / n)]), [...none, [0, length]]), [
        ...lead,
        size,
        n + 1,
      ]),
      [...none, null, [0, (count - 1) * step + 1]],
    ),
    [...lead.map(() => 1), 1, step],
  );
  return movedim(transpose(rows, -1, -2), -2, at);
}
export function diagonal(self: Tensor, offset = 0, dim1 = 0, dim2 = 1): Tensor {
  const [a, b] = axesOf(self, "diagonal", [dim1, dim2]) as [number, number];
  const m = movedim(self, [a, b], [-2, -1]);
  const lead = m.lazydata.shape.slice(0, -2);
  const [rows, cols] = m.shape.slice(-2) as [number, number];
  const [top, left] = [Math.max(0, -offset), Math.max(0, offset)];
  const d = Math.max(0, Math.min(rows - top, cols - left));
  const none = lead.map(() => null);
  if (d === 0) return reshape(shrink(m, [...none, [0, 0], null]), [...lead, 0]);
  return stride(reshape(shrink(m, [...none, [top, top + d], [left, left + d]]), [...lead, d * d]), [
    ...lead.map(() => 1),
    d + 1,
  ]);
}
export function diagEmbed(self: Tensor, offset = 0, dim1 = -2, dim2 = -1): Tensor {
  if (self.ndim === 0) throw new ShapeError("diagEmbed: shape [] has no dim to lay out; reshape it to [1]");
  const ndim = self.ndim + 1;
  const [a, b] = [axisOf(self, "diagEmbed", dim1, ndim), axisOf(self, "diagEmbed", dim2, ndim)];
  if (a === b) throw new ShapeError(`diagEmbed: dim1 (${dim1}) and dim2 (${dim2}) are the same dim`);
  const lead = self.lazydata.shape.slice(0, -1);
  const none = lead.map(() => null);
  const d = self.shape.at(-1) as number;
  // rows of d + 1 hold one element each; read as rows of d, these stand on the diagonal
  const square = reshape(
    shrink(reshape(pad(reshape(self, [...lead, d, 1]), [...none, null, [0, d]]), [...lead, d * (d + 1)]), [
      ...none,
      [0, d * d],
    ]),
    [...lead, d, d],
  );
  const [down, right] = [Math.max(0, -offset), Math.max(0, offset)];
  return movedim(pad(square, [...none, [down, right], [right, down]]), [-2, -1], [a, b]);
}
export function diag(self: Tensor, main = 0): Tensor {
  if (self.ndim === 1) return diagEmbed(self, main);
  if (self.ndim === 2) return diagonal(self, main);
  throw new ShapeError(
    `diag: shape ${showShape(self.shape)} is neither a vector nor a matrix; use diagonal or diagEmbed`,
  );
}

export function hstack(tensors: readonly Tensor[]): Tensor {
  const parts = some("hstack", tensors).map((t) => atLeast(t, 1));
  return catAll(parts, (parts[0] as Tensor).ndim === 1 ? 0 : 1);
}
export function vstack(tensors: readonly Tensor[]): Tensor {
  return catAll(
    some("vstack", tensors).map((t) => atLeast(t, 2)),
    0,
  );
}
export function dstack(tensors: readonly Tensor[]): Tensor {
  return catAll(
    some("dstack", tensors).map((t) => atLeast(t, 3)),
    2,
  );
}
export function columnStack(tensors: readonly Tensor[]): Tensor {
  const columns = some("columnStack", tensors).map((t) => (t.ndim < 2 ? reshape(t, t.size, 1) : t));
  return catAll(columns, 1);
}
export function blockDiag(tensors: readonly Tensor[]): Tensor {
  const blocks = some("blockDiag", tensors).map((t) => atLeast(t, 2));
  const odd = blocks.find((b) => b.ndim > 2);
  if (odd !== undefined) {
    throw new ShapeError(
      `blockDiag: shape ${showShape(odd.shape)} is not a matrix; give tensors of at most 2 dims`,
    );
  }
  const width = blocks.reduce((n, b) => n + (b.shape[1] as number), 0);
  let left = 0;
  const rows = blocks.map((b) => {
    const w = b.shape[1] as number;
    const row = padConstant(b, [null, [left, width - left - w]]);
    left += w;
    return row;
  });
  return catAll(rows, 0);
}
export function block(blocks: readonly (readonly Tensor[])[]): Tensor {
  const rows = blocks.map((row) => {
    const parts = some("block", row).map((t) => atLeast(t, 2));
    return catAll(parts, -1);
  });
  return catAll(rows, -2);
}
export function meshgrid(tensors: readonly Tensor[], indexing: "ij" | "xy" = "ij"): Tensor[] {
  const list = some("meshgrid", tensors);
  const odd = list.find((t) => t.ndim > 1);
  if (odd !== undefined) {
    throw new ShapeError(`meshgrid: shape ${showShape(odd.shape)} is not a vector; flatten it first`);
  }
  if (indexing !== "ij" && indexing !== "xy") {
    throw new ArgumentError(`meshgrid: indexing is "${indexing}", expected "ij" or "xy"`);
  }
  if (indexing === "xy" && list.length > 1) {
    return meshgrid(list).map((g) => transpose(g, 0, 1));
  }
  const sizes = list.map((t) => t.size);
  return list.map((t, i) =>
    expand(
      reshape(
        t,
        sizes.map((n, d) => (d === i ? n : 1)),
      ),
      sizes,
    ),
  );
}
export function cartesianProd(tensors: readonly Tensor[]): Tensor {
  const [only, ...more] = some("cartesianProd", tensors);
  if (more.length === 0) return only;
  return stackAll(
    meshgrid(tensors).map((g) => flatten(g)),
    1,
  );
}
/** With dims of size 1 added until there are `n`, as the stacks want them. */
export function atLeast(self: Tensor, n: 1 | 2 | 3): Tensor {
  if (self.ndim >= n) return self;
  if (self.ndim === 0)
    return reshape(
      self,
      range(n).map(() => 1),
    );
  const { shape } = self.lazydata;
  if (self.ndim === 1) return n === 2 ? reshape(self, [1, ...shape]) : reshape(self, [1, ...shape, 1]);
  return reshape(self, [...shape, 1]);
}

export function tensorSplit(self: Tensor, indicesOrSections: number | readonly number[], dim = 0): Tensor[] {
  const at = axisOf(self, "tensorSplit", dim);
  const n = self.shape[at] as number;
  if (typeof indicesOrSections === "number") {
    const k = indicesOrSections;
    if (!Number.isInteger(k) || k < 1) {
      throw new ArgumentError(`tensorSplit: got ${k} sections, expected an integer from 1 up`);
    }
    return splitWithSizes(
      self,
      range(k).map((i) => Math.floor(n / k) + (i < n % k ? 1 : 0)),
      at,
    );
  }
  const inside = (i: number) => Math.min(n, Math.max(0, i < 0 ? i + n : i));
  const cuts = [0, ...indicesOrSections.map(inside), n];
  return range(cuts.length - 1).map((i) => {
    const [lo, hi] = [cuts[i] as number, cuts[i + 1] as number];
    return between(self, at, lo, Math.max(lo, hi));
  });
}
