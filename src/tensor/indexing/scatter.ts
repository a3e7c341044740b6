// Writing along a dim by an index as large as the source: scatter and its reductions. A result element asks
// which sources go to it: sums run over all of them, the last one stays where they replace each other.
// Gradients are indexed loads.

import { bounds, type DType, dtypes } from "../../dtype.ts";
import { ArgumentError, ShapeError } from "../../errors.ts";
import type { Interval } from "../../shape/view.ts";
import { cast, constant, contiguous, counting, detach, type Element, TensorHandle, wrap } from "../core.ts";
import {
  add,
  bitwiseAnd,
  div,
  eq,
  ge,
  gt,
  idiv,
  logicalNot,
  lt,
  maximum,
  minimum,
  mul,
  sub,
  where,
} from "../math/arithmetic.ts";
import { operandValue } from "../math/promotion.ts";
import { nought, pad, squeeze } from "../movement/arrange.ts";
import { axisOf, expand, reduceSum, reshape, shrink, unsqueeze } from "../movement/views.ts";
import { max, sum, upsideDown } from "../reduce/reduce.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import { gathered, indexed } from "./getitem.ts";

export type ScatterReduce = "sum" | "prod" | "mean" | "amax" | "amin";
/** What a reducing scatter starts from. */
export interface ScatterReduceOptions {
  /** whether the elements that were there take part; default: true */
  readonly includeSelf?: boolean;
}
const REDUCTIONS: readonly string[] = ["sum", "prod", "mean", "amax", "amin"] satisfies ScatterReduce[];

// ---- scatter: one index for each element of an index as large as the source ----

export function scatter(
  self: Tensor,
  dim: number,
  index: Tensor,
  src: Tensor | Element,
  { reduce }: { reduce?: "add" | "multiply" } = {},
): Tensor {
  const source =
    src instanceof TensorHandle ? src : filled(self, index.shape, src, reduce === "add" ? "add" : "scatter");
  if (reduce === "add") return scatterAdd(self, dim, index, source as Tensor);
  if (reduce === "multiply") return scatterReduce(self, dim, index, source as Tensor, "prod");
  if (reduce !== undefined) {
    throw new ArgumentError(
      `scatter: reduce "${reduce}" is not known; expected add or multiply (scatterReduce has more)`,
    );
  }
  return alongDim(self, "scatter", dim, index, source as Tensor, (self, at, i, from) =>
    overwritten(self, at, i, from),
  );
}
/** The elements that an index names along a dim. The index was checked before, or is made here. */
const picked = (self: Tensor, at: number, index: Tensor): Tensor => gathered(self, at, index, (i) => i);

/** One value, in this tensor's type unless another is named. */
export function filled(
  self: Tensor,
  shape: readonly number[],
  value: Element,
  method: string,
  dtype: DType = self.dtype,
): Tensor {
  return constant(self, shape, dtype, operandValue(method, value, dtype));
}
/** Checks the arguments of a scatter; scalars become vectors; the source gets the shape of the index. */
function alongDim(
  self: Tensor,
  method: string,
  dim: number,
  index: Tensor,
  src: Tensor,
  write: (self: Tensor, at: number, index: Tensor, src: Tensor) => Tensor,
): Tensor {
  if (index.size === 0) return self;
  if (self.ndim === 0) {
    return reshape(alongDim(reshape(self, 1), method, dim, reshape(index, -1), reshape(src, -1), write), []);
  }
  const at = axisOf(self, method, dim);
  const checked = indexed(method, index, self.shape[at] as number);
  const i = index.ndim === 0 ? reshape(checked, 1) : checked;
  const from = src.ndim === 0 ? reshape(src, 1) : src;
  const fits =
    i.ndim === self.ndim &&
    from.ndim === self.ndim &&
    i.shape.every((s, d) => s <= (from.shape[d] as number) && (d === at || s <= (self.shape[d] as number)));
  if (!fits || src.dtype !== self.dtype) {
    throw new ShapeError(
      `${method}: cannot write ${showShape(src.shape)} ${src.dtype.name} by an index of shape ${showShape(index.shape)} ` +
        `along dim ${dim} of ${showShape(self.shape)} ${self.dtype.name}; the index must be no larger than the source and, ` +
        "but for that dim, than the tensor, and the types equal",
    );
  }
  return write(
    self,
    at,
    i,
    shrink(
      from,
      i.shape.map((s): Interval => [0, s]),
    ),
  );
}
/** Whether a source goes to an element: the index with its dim `at` as two, elements and sources. */
function goesOf(self: Tensor, at: number, index: Tensor): [goes: Tensor, full: number[]] {
  const n = self.shape[at] as number;
  const full = index.shape.toSpliced(at, 0, n);
  const places = reshape(counting(self, n), [n, ...full.slice(at + 1).map(() => 1)]);
  return [eq(expand(unsqueeze(index, at), full), expand(places, full)), full];
}
/** The sources as `goes` has them. */
function facing(at: number, src: Tensor, full: readonly number[]): Tensor {
  return expand(unsqueeze(src, at), full);
}
/** What was computed where the index reaches, in this tensor's shape; zeros beyond. */
function grown(self: Tensor, part: Tensor): Tensor {
  return pad(
    part,
    self.shape.map((s, d): Interval => [0, s - (part.shape[d] as number)]),
  );
}
/** The part of this tensor that an index of other sizes reaches. */
function reached(self: Tensor, shape: readonly number[]): Tensor {
  return shrink(
    self,
    shape.map((s): Interval => [0, s]),
  );
}
/** `part`, where the index reaches, laid over `under`. */
function pasted(self: Tensor, part: Tensor, under: Tensor): Tensor {
  if (showShape(part.shape) === showShape(under.shape)) return part;
  const there = filled(self, part.shape, true, "scatter", dtypes.bool);
  return where(grown(self, there), grown(self, part), under);
}
/** The number of the last source that goes to each element the index reaches; -1 where none does. */
function lastOf(self: Tensor, at: number, index: Tensor): Tensor {
  const [goes, full] = goesOf(self, at, index);
  const k = index.shape[at] as number;
  const numbers = reshape(counting(self, k), [k, ...full.slice(at + 2).map(() => 1)]);
  // stored, so that whoever looks a source up by it does one indexed load
  return contiguous(lastNumber(goes, expand(numbers, full), at + 1, -1));
}
/** The largest of the numbers along a dim whose flag is set; `none` where there is none. */
export function lastNumber(flags: Tensor, numbers: Tensor, dim: number, none: number): Tensor {
  return maximum(max(where(flags, numbers, bounds(numbers.dtype)[0]), dim), none);
}
/** How many sources go to each element. */
function counts(self: Tensor, at: number, index: Tensor): Tensor {
  return grown(self, sum(cast(goesOf(self, at, index)[0], dtypes.int32), at + 1));
}
/** The sum of the sources that go to each element. */
function sumsOf(self: Tensor, at: number, index: Tensor, src: Tensor): Tensor {
  const [goes, full] = goesOf(self, at, index);
  const terms = where(goes, facing(at, src, full), nought(src));
  return grown(self, squeeze(reduceSum(terms, [at + 1]), at + 1));
}
function overwritten(self: Tensor, at: number, index: Tensor, src: Tensor): Tensor {
  const last = lastOf(self, at, index);
  const before = detach(self);
  const value = where(ge(last, 0), picked(detach(src), at, last), reached(before, last.shape));
  return wrap(pasted(self, value, before).lazydata, [self, src], (g) => {
    const k = index.shape[at] as number;
    const numbers = reshape(counting(self, k), [k, ...index.shape.slice(at + 1).map(() => 1)]);
    const stays = eq(picked(last, at, index), expand(numbers, index.shape));
    return [where(grown(self, ge(last, 0)), 0, g), where(stays, picked(g, at, index), 0)];
  });
}
export function scatterAdd(self: Tensor, dim: number, index: Tensor, src: Tensor): Tensor {
  return alongDim(self, "scatterAdd", dim, index, src, (self, at, i, from) =>
    add(self, sumsOf(self, at, i, from)),
  );
}
export function scatterReduce(
  self: Tensor,
  dim: number,
  index: Tensor,
  src: Tensor,
  reduce: ScatterReduce,
  { includeSelf = true }: ScatterReduceOptions = {},
): Tensor {
  if (!REDUCTIONS.includes(reduce)) {
    throw new ArgumentError(`scatterReduce: "${reduce}" is not known; expected ${REDUCTIONS.join(", ")}`);
  }
  return alongDim(self, "scatterReduce", dim, index, src, (self, at, i, from) => {
    if (reduce === "prod") return scatterProd(self, at, i, from, includeSelf);
    if (reduce === "amax" || reduce === "amin") return scatterBest(self, at, i, from, includeSelf, reduce);
    const sums = sumsOf(self, at, i, from);
    const written = () => counts(self, at, i);
    const total = includeSelf ? add(self, sums) : where(gt(written(), 0), sums, self);
    if (reduce === "sum") return total;
    const count = includeSelf ? add(written(), 1) : maximum(written(), 1);
    if (self.dtype.isFloat) return div(total, cast(count, self.dtype));
    const by = cast(count, self.dtype);
    const quotient = idiv(total, by);
    return where(lt(total, mul(quotient, by)), sub(quotient, 1), quotient); // torch rounds down
  });
}
function scatterProd(self: Tensor, at: number, index: Tensor, src: Tensor, includeSelf: boolean): Tensor {
  /** the product of `x` over the sources of each element, times `into` */
  const product = (x: Tensor, into: Tensor): Tensor => {
    const [goes, full] = goesOf(self, at, index);
    const terms = where(goes, facing(at, x, full), self.dtype.kind === "bool" ? true : 1);
    const places = squeeze(wrap(terms.lazydata.r("PROD", [at + 1])), at + 1);
    return pasted(self, mul(reached(into, places.shape), places), into);
  };
  const written = gt(counts(self, at, index), 0);
  const ones = filled(self, self.shape, 1, "scatter");
  const [x, s] = [detach(src), detach(self)];
  const out = includeSelf ? product(x, s) : where(written, product(x, ones), s);
  return wrap(out.lazydata, [self, src], (g) => {
    // an element's derivative is the product of the others: all, or where a zero is
    // among them all that are not zero
    const isZero = (t: Tensor): Tensor => cast(eq(t, 0), dtypes.int32);
    const solid = (t: Tensor): Tensor => where(eq(t, 0), 1, t);
    const zeros = add(sumsOf(self, at, index, isZero(src)), includeSelf ? isZero(self) : 0);
    const rest = product(solid(src), includeSelf ? solid(self) : ones);
    const others = (t: Tensor, z: Tensor, p: Tensor): Tensor =>
      where(eq(sub(z, isZero(t)), 0), div(p, solid(t)), 0);
    const own = includeSelf ? mul(g, others(self, zeros, rest)) : where(written, 0, g);
    const look = (t: Tensor): Tensor => picked(t, at, index);
    return [own, mul(look(g), others(src, look(zeros), look(rest)))];
  });
}
function scatterBest(
  self: Tensor,
  at: number,
  index: Tensor,
  src: Tensor,
  includeSelf: boolean,
  reduce: "amax" | "amin",
): Tensor {
  const [goes, full] = goesOf(self, at, index);
  const turn = (x: Tensor): Tensor => (reduce === "amax" ? x : upsideDown(x));
  const worst = bounds(self.dtype)[0];
  const terms = where(
    goes,
    facing(at, turn(detach(src)), full),
    self.dtype.kind === "bool" ? worst !== 0 : worst,
  );
  const best = turn(max(terms, at + 1));
  const s = detach(self);
  const inside = reached(s, best.shape);
  const written = gt(counts(self, at, index), 0);
  const both = reduce === "amax" ? maximum(best, inside) : minimum(best, inside);
  const out = includeSelf ? pasted(self, both, s) : where(written, pasted(self, best, s), s);
  return wrap(out.lazydata, [self, src], (g, made) => {
    const result = detach(made);
    const look = (t: Tensor): Tensor => picked(t, at, index);
    // all that equal the result share its gradient; what was there before counts where it took part
    const own = eq(detach(self), result);
    const mine = cast(includeSelf ? own : bitwiseAnd(own, logicalNot(written)), g.dtype);
    const theirs = cast(eq(detach(src), look(result)), g.dtype);
    const share = div(g, add(mine, sumsOf(self, at, index, theirs)));
    return [mul(mine, share), mul(theirs, look(share))];
  });
}
