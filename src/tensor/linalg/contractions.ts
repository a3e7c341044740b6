// Products that fewer programs use (gradloom/linalg): einsum, tensordot, kron, chains of matrices, and the
// forms that add to a product. All are views, one elementwise product and one sum, as in products.ts.

import { dtypes, promote, sumDType } from "../../dtype.ts";
import { ArgumentError, ShapeError } from "../../errors.ts";
import { prod, range } from "../../helpers.ts";
import { cast } from "../core.ts";
import { add, bitwiseAnd, bitwiseOr, broadcastTo, isNarrow, mul, sub } from "../math/arithmetic.ts";
import { some } from "../movement/join.ts";
import { diagonal, roll } from "../movement/rearrange.ts";
import { axesOf, axisOf, permute, reshape, unsqueeze } from "../movement/views.ts";
import { sum } from "../reduce/reduce.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import { bmm, matmul, mm, mv, outer, requireDims, type Scales, shapes } from "./products.ts";

export function vdot(self: Tensor, other: Tensor): Tensor {
  requireDims(self, "vdot", [other], [1, 1]);
  return matmul(self, other);
}
export function inner(self: Tensor, other: Tensor): Tensor {
  if (self.ndim === 0 || other.ndim === 0) return mul(self, other);
  if (self.shape.at(-1) !== other.shape.at(-1)) {
    throw new ShapeError(`inner: the last dims of ${shapes(self, other)} differ, expected equal`);
  }
  return tensordot(self, other, [[-1], [-1]]);
}
export function ger(self: Tensor, vec2: Tensor): Tensor {
  return outer(self, vec2);
}

// ---- products on top of something ----

/** `beta * this + alpha * product`; what is scaled by 0 is not looked at, scales of integers are integers. */
function plus(self: Tensor, product: Tensor, { beta = 1, alpha = 1 }: Scales): Tensor {
  const scale = (t: Tensor, by: number): Tensor =>
    by === 1 ? t : mul(t, t.dtype.isFloat ? by : Math.trunc(by));
  if (beta === 0) return scale(product, alpha);
  return add(scale(product, alpha), broadcastTo(scale(self, beta), product.lazydata.shape));
}
export function addmm(self: Tensor, mat1: Tensor, mat2: Tensor, scales: Scales = {}): Tensor {
  return plus(self, mm(mat1, mat2), scales);
}
export function addmv(self: Tensor, mat: Tensor, vec: Tensor, scales: Scales = {}): Tensor {
  return plus(self, mv(mat, vec), scales);
}
export function addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, scales: Scales = {}): Tensor {
  return plus(self, sum(bmm(batch1, batch2), 0), scales);
}
export function baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, scales: Scales = {}): Tensor {
  return plus(self, bmm(batch1, batch2), scales);
}
export function addr(self: Tensor, vec1: Tensor, vec2: Tensor, scales: Scales = {}): Tensor {
  const product = outer(vec1, vec2);
  if (self.dtype.kind !== "bool" || product.dtype.kind !== "bool") return plus(self, product, scales);
  // of truths: "and" for the product, "or" for the sum
  const scaled = (t: Tensor, by = 1): Tensor => bitwiseAnd(t, by !== 0);
  return bitwiseOr(scaled(product, scales.alpha), scaled(self, scales.beta));
}

// ---- other products ----

export function tensordot(
  self: Tensor,
  other: Tensor,
  dims: number | readonly [readonly number[], readonly number[]] = 2,
): Tensor {
  if (typeof dims === "number" && !(dims >= 0 && dims <= Math.min(self.ndim, other.ndim) && dims % 1 === 0)) {
    throw new ArgumentError(
      `tensordot: dims is ${dims}, expected an integer from 0 to ${Math.min(self.ndim, other.ndim)}, or a list of dims for each`,
    );
  }
  const pairs =
    typeof dims === "number" ? [range(dims).map((i) => self.ndim - dims + i), range(dims)] : [...dims];
  const [mine, theirs] = [axesOf(self, "tensordot", pairs[0]), axesOf(other, "tensordot", pairs[1])];
  if (mine.length !== theirs.length) {
    throw new ShapeError(
      `tensordot: ${mine.length} dims of the first and ${theirs.length} of the second do not pair up`,
    );
  }
  // a dim of size 1 stands for as many as the other has
  const [a, b] = [summed(self, mine, other, theirs), summed(other, theirs, self, mine)];
  const free = (t: Tensor, taken: readonly number[]) => range(t.ndim).filter((i) => !taken.includes(i));
  const [rows, columns] = [free(a, mine), free(b, theirs)];
  const sizes = (t: Tensor, axes: readonly number[]) => axes.map((i) => t.shape[i] as number);
  const inner = prod(sizes(a, mine));
  const left = reshape(permute(a, [...rows, ...mine]), prod(sizes(a, rows)), inner);
  const right = reshape(permute(b, [...theirs, ...columns]), inner, prod(sizes(b, columns)));
  return reshape(matmul(left, right), [...sizes(a, rows), ...sizes(b, columns)]);
}
function summed(self: Tensor, mine: readonly number[], other: Tensor, theirs: readonly number[]): Tensor {
  const wide = mine.filter((d, i) => {
    const [n, m] = [self.shape[d], other.shape[theirs[i] as number]];
    if (n !== m && n !== 1 && m !== 1) {
      throw new ShapeError(
        `tensordot: dims of ${shapes(self, other)} that are summed together have sizes ${n} and ${m}`,
      );
    }
    return n !== m && m === 1;
  });
  return wide.length === 0 ? self : cast(sum(self, wide, true), self.dtype);
}
export function kron(self: Tensor, other: Tensor): Tensor {
  const n = Math.max(self.ndim, other.ndim);
  const full = (t: Tensor) => [...range(n - t.ndim).map(() => 1), ...t.shape];
  const [a, b] = [full(self), full(other)];
  return reshape(
    mul(
      reshape(
        self,
        a.flatMap((s) => [s, 1]),
      ),
      reshape(
        other,
        b.flatMap((s) => [1, s]),
      ),
    ),
    a.map((s, i) => s * (b[i] as number)),
  );
}
export function cross(self: Tensor, other: Tensor, dim = -1): Tensor {
  const at = axisOf(self, "cross", dim);
  if (self.ndim !== other.ndim || self.shape[at] !== 3 || other.shape[at] !== 3) {
    throw new ShapeError(
      `cross: dim ${dim} of ${shapes(self, other)} must be 3 in both, with equally many dims`,
    );
  }
  return sub(mul(roll(self, -1, at), roll(other, -2, at)), mul(roll(self, -2, at), roll(other, -1, at)));
}
export function trace(self: Tensor): Tensor {
  if (self.ndim !== 2) throw new ShapeError(`trace: takes a matrix, got shape ${showShape(self.shape)}`);
  return sum(diagonal(self));
}
export function chainMatmul(self: Tensor, ...others: readonly Tensor[]): Tensor {
  const all = [self, ...others];
  const [first, last] = [self, all.at(-1) as Tensor];
  const matrices = all.map((t, i) => {
    if (t.ndim === 1 && i === 0) return unsqueeze(t, 0);
    if (t.ndim === 1 && i === all.length - 1) return unsqueeze(t, 1);
    if (t.ndim === 2) return t;
    throw new ShapeError(`chainMatmul: tensor ${i} has shape ${showShape(t.shape)}, expected a matrix`);
  });
  const sizes = [
    ...matrices.map((t) => t.shape[0] as number),
    (matrices.at(-1) as Tensor).shape[1] as number,
  ];
  const splits = bestSplits(sizes);
  const multiply = (i: number, j: number): Tensor => {
    if (i === j) return matrices[i] as Tensor;
    const k = splits[i]?.[j] as number;
    return mm(multiply(i, k), multiply(k + 1, j));
  };
  const product = multiply(0, all.length - 1);
  const ends = all.length < 2 ? [] : [first.ndim === 1, last.ndim === 1];
  return reshape(
    product,
    product.shape.filter((_, i) => ends[i] !== true),
  );
}
export function multiDot(tensors: readonly Tensor[]): Tensor {
  const [first, ...rest] = some("multiDot", tensors);
  if (rest.length === 0) throw new ArgumentError("multiDot: got 1 tensor, expected two or more");
  return chainMatmul(first, ...rest);
}

// ---- einsum ----

export function einsum(
  formula: string,
  ...operands: readonly Tensor[] | readonly [readonly Tensor[]]
): Tensor {
  const given = (Array.isArray(operands[0]) ? operands[0] : operands) as readonly Tensor[];
  const { inputs, output } = parseEinsum(formula, given);
  // one type for all; small integers and bools multiply in the type that they add up in, as in matmul
  const common = given.map((t) => t.dtype).reduce(promote);
  const type = inputs.flat().some((l) => !output.includes(l)) ? sumDType(common) : common;
  const list = given.map((t) => cast(t, type));
  let [at, labels] = traced(list[0] as Tensor, inputs[0] as string[]);
  for (const i of range(list.length)) {
    // as soon as no later operand needs a dim it is summed
    const later = new Set([...inputs.slice(i + 1).flat(), ...output]);
    if (i > 0) [at, labels] = joined(at, labels, ...traced(list[i] as Tensor, inputs[i] as string[]), later);
    else [at, labels] = withoutLabels(at, labels, later);
  }
  const missing = output.find((l) => !labels.includes(l));
  if (missing !== undefined)
    throw new ArgumentError(`einsum: "${missing}" is in the result but in no operand`);
  return permute(
    at,
    output.map((l) => labels.indexOf(l)),
  );
}
/** Each label once: dims with equal labels become their diagonal. */
function traced(self: Tensor, labels: readonly string[]): [Tensor, string[]] {
  const twice = labels.findIndex((l, i) => labels.indexOf(l) !== i);
  if (twice < 0) return [self, [...labels]];
  const first = labels.indexOf(labels[twice] as string);
  if (self.shape[first] !== self.shape[twice]) {
    throw new ShapeError(
      `einsum: "${labels[twice]}" names dims of sizes ${self.shape[first]} and ${self.shape[twice]} in shape ${showShape(self.shape)}`,
    );
  }
  const rest = labels.filter((_, i) => i !== first && i !== twice);
  return traced(diagonal(self, 0, first, twice), [...rest, labels[twice] as string]);
}
function withoutLabels(
  self: Tensor,
  labels: readonly string[],
  kept: ReadonlySet<string>,
): [Tensor, string[]] {
  const gone = range(labels.length).filter((i) => !kept.has(labels[i] as string));
  return [gone.length === 0 ? self : sum(self, gone), labels.filter((l) => kept.has(l))];
}
/** The product with another operand over all labels of both, summed over those that are not kept. */
function joined(
  self: Tensor,
  mine: readonly string[],
  other: Tensor,
  theirs: readonly string[],
  kept: ReadonlySet<string>,
): [Tensor, string[]] {
  const all = [...new Set([...mine, ...theirs])];
  const spread = (t: Tensor, labels: readonly string[]): Tensor => {
    const present = all.filter((l) => labels.includes(l));
    const sizes = all.map((l) => (labels.includes(l) ? (t.shape[labels.indexOf(l)] as number) : 1));
    return reshape(
      permute(
        t,
        present.map((l) => labels.indexOf(l)),
      ),
      sizes,
    );
  };
  const [a, b] = [spread(self, mine), spread(other, theirs)];
  const bad = all.findIndex((_, i) => a.shape[i] !== b.shape[i] && a.shape[i] !== 1 && b.shape[i] !== 1);
  if (bad >= 0) {
    throw new ShapeError(
      `einsum: "${all[bad]}" names dims of sizes ${a.shape[bad]} and ${b.shape[bad]}, expected equal or 1`,
    );
  }
  const narrow = isNarrow(a.dtype);
  const product = narrow ? mul(cast(a, dtypes.float32), cast(b, dtypes.float32)) : mul(a, b);
  const [sum, labels] = withoutLabels(product, all, kept);
  return [narrow ? cast(sum, a.dtype) : sum, labels];
}

/** Which product comes last in the cheapest order of a chain of matrices of these sizes. */
function bestSplits(sizes: readonly number[]): number[][] {
  const n = sizes.length - 1;
  const cost = range(n).map(() => range(n).map(() => 0));
  const split = range(n).map(() => range(n).map(() => 0));
  for (let length = 1; length < n; length++) {
    for (let i = 0; i + length < n; i++) {
      const j = i + length;
      let best = Infinity;
      for (let k = i; k < j; k++) {
        const outer = (sizes[i] as number) * (sizes[k + 1] as number) * (sizes[j + 1] as number);
        const total = (cost[i]?.[k] as number) + (cost[k + 1]?.[j] as number) + outer;
        if (total >= best) continue;
        best = total;
        (split[i] as number[])[j] = k;
      }
      (cost[i] as number[])[j] = best;
    }
  }
  return split;
}

/**
 * The labels of every operand and of the result; the dims of an ellipsis are called
 * 0, 1, … counted from the back.
 */
function parseEinsum(formula: string, operands: readonly Tensor[]): { inputs: string[][]; output: string[] } {
  const fail = (why: string) => new ArgumentError(`einsum: "${formula}" ${why}`);
  const [left = "", right, more] = formula.replaceAll(/\s/g, "").split("->");
  const terms = left.split(",");
  if (more !== undefined) throw fail("has more than one ->");
  if (terms.length !== operands.length || operands.length === 0) {
    throw fail(`names ${terms.length} operands, got ${operands.length}`);
  }
  const odd = [...terms, right ?? ""].find((t) => !/^[a-zA-Z]*(\.\.\.)?[a-zA-Z]*$/.test(t));
  if (odd !== undefined) throw fail(`has the term "${odd}"; expected letters and at most one ...`);
  const labelsOf = (term: string, unnamed: number): string[] => {
    const [before = "", after] = term.split("...");
    const dots = after === undefined ? [] : range(unnamed).map((i) => `${unnamed - 1 - i}`);
    return [...before, ...dots, ...(after ?? "")];
  };
  let widest = 0;
  const inputs = operands.map((t, i) => {
    const term = terms[i] as string;
    const named = term.replace("...", "").length;
    const unnamed = t.ndim - named;
    if (term.includes("...") ? unnamed < 0 : unnamed !== 0) {
      throw fail(`gives operand ${i} the dims "${term}", its shape is ${showShape(t.shape)}`);
    }
    widest = Math.max(widest, unnamed);
    return labelsOf(term, unnamed);
  });
  if (right !== undefined) {
    const output = labelsOf(right, widest);
    if (new Set(output).size !== output.length) throw fail("repeats a dim in the result");
    return { inputs, output };
  }
  const all = inputs.flat();
  const once = [...new Set(all)]
    .filter((l) => /[a-zA-Z]/.test(l) && all.indexOf(l) === all.lastIndexOf(l))
    .sort();
  return {
    inputs,
    output: [...labelsOf(terms.some((t) => t.includes("...")) ? "..." : "", widest), ...once],
  };
}
