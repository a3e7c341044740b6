// Sums of a choice by equal numbers. Where the number that is compared with is summed over, one element of
// the operand is chosen: a Gather. Where it is a dim of the result, elements go to places: a scatter. An
// index outside of the dim chooses nothing, or goes nowhere. In: a SUM. Out: nodes, or undefined.

import { dtypes } from "../../dtype.ts";
import { prod, range } from "../../helpers.ts";
import type { LazyBuffer } from "../../lazy/lazybuffer.ts";
import { operandsUnder } from "./contraction.ts";
import { alu } from "./elementwise.ts";
import type { ExportNode, GraphBuilder } from "./graph.ts";
import type { GraphReader } from "./lower.ts";
import { placed, type ReducedSource } from "./reduces.ts";
import { whole } from "./views.ts";

const { bool, int64 } = dtypes;

/** `index` equals the number of the place along `dim`. */
interface Match {
  readonly dim: number;
  readonly index: ExportNode;
}
interface LookupFacts {
  readonly matches: readonly Match[];
  readonly x: ExportNode;
  readonly shape: readonly number[];
  readonly axes: readonly number[];
}

export function lookup(l: GraphReader, { src, axes }: ReducedSource): ExportNode | undefined {
  const { b } = l;
  const [condition, yes, no] = operandsUnder(l, src, "WHERE") ?? [];
  if (condition === undefined || yes === undefined || no === undefined) return undefined;
  const otherwise = l.operand(no);
  if (otherwise.op !== "Number" || Number(otherwise.values[0]) !== 0) return undefined;
  const matches = matchesOf(l, condition);
  if (matches === undefined) return undefined;
  const shape = src.shape.map(whole);
  const found = l.operand(yes);
  const x =
    found.shape.length === 0
      ? b.reshape(
          found,
          shape.map(() => 1),
        )
      : found;
  const choice = { matches, x, shape, axes };
  const dims = matches.map((m) => m.dim);
  if (new Set(dims).size !== dims.length) return undefined;
  if (dims.every((d) => axes.includes(d) && x.shape[d] === shape[d])) return gathered(b, choice);
  if (dims.every((d) => !axes.includes(d) && x.shape[d] === 1)) return scattered(b, choice);
  return undefined;
}

/** The comparisons that a condition is made of; undefined where there is anything else. */
function matchesOf(l: GraphReader, condition: LazyBuffer): Match[] | undefined {
  const { dtype, base } = condition;
  if (dtype !== bool || base.realized !== undefined) return undefined;
  const both = operandsUnder(l, condition, "AND");
  if (both !== undefined) {
    const [first, second] = both.map((x) => matchesOf(l, x));
    return first === undefined || second === undefined ? undefined : [...first, ...second];
  }
  const [left, right] = operandsUnder(l, condition, "CMPEQ") ?? [];
  if (left === undefined || right === undefined) return undefined;
  const match = matchOf(l, left, right) ?? matchOf(l, right, left);
  return match === undefined ? undefined : [match];
}
function matchOf(l: GraphReader, numbers: LazyBuffer, index: LazyBuffer): Match | undefined {
  const source = numbers.base.op === "CAST" ? (numbers.base.sources[0] as LazyBuffer) : numbers;
  const { views } = numbers.st.simplify();
  const [view] = views;
  if (source.base.op !== "ARANGE" || view === undefined || views.length > 1 || !index.dtype.isInt)
    return undefined;
  if (source !== numbers && source !== source.base) return undefined;
  const moving = range(view.shape.length).filter((d) => view.strides[d] !== 0);
  const [dim] = moving;
  const isAll = view.mask === undefined && view.offset === 0 && dim !== undefined && view.strides[dim] === 1;
  if (!isAll || moving.length > 1) return undefined;
  const found = l.operand(index);
  const ones = view.shape.map(() => 1);
  const node = found.shape.length === 0 ? l.b.reshape(found, ones) : found;
  return node.shape[dim] === 1 ? { dim, index: node } : undefined;
}

/** Whether all indexes are numbers of their dims, and they as one number. */
function flatIndex(
  b: GraphBuilder,
  { matches, shape }: LookupFacts,
): { isThere: ExportNode; flat: ExportNode } {
  let isThere: ExportNode | undefined;
  let flat: ExportNode | undefined;
  for (const { dim, index } of matches) {
    const at = b.cast(index, int64);
    const n = shape[dim] as number;
    const number = (x: number): ExportNode => b.number(BigInt(x), int64);
    const fits = alu(b, "AND", [
      b.map("LessOrEqual", [number(0), at], bool),
      b.map("Less", [at, number(n)], bool),
    ]);
    isThere = isThere === undefined ? fits : alu(b, "AND", [isThere, fits]);
    flat = flat === undefined ? at : alu(b, "ADD", [alu(b, "MUL", [flat, number(n)]), at]);
  }
  return { isThere: isThere as ExportNode, flat: flat as ExportNode };
}

const sizesOf = (dims: readonly number[], shape: readonly number[]): number[] =>
  dims.map((d) => shape[d] as number);
/** The node with these dims alone, in this order; the others have size 1. */
function only(b: GraphBuilder, x: ExportNode, dims: readonly number[], shape: readonly number[]): ExportNode {
  const rest = range(shape.length).filter((d) => !dims.includes(d));
  return b.reshape(
    b.transpose(x, [...rest, ...dims]),
    dims.map((d) => x.shape[d] as number),
  );
}

function gathered(b: GraphBuilder, choice: LookupFacts): ExportNode | undefined {
  const { matches, x, shape, axes } = choice;
  const named = matches.map((m) => m.dim);
  const { isThere, flat } = flatIndex(b, choice);
  const zero = b.number(0n, int64);
  const safe = alu(b, "WHERE", [isThere, flat, zero]);
  const all = range(shape.length).filter((d) => shape[d] !== 1 || named.includes(d));
  const isOf = (n: ExportNode, d: number): boolean => n.shape[d] !== 1;
  const shared = all.filter((d) => isOf(x, d) && isOf(safe, d) && !named.includes(d));
  const places = all.filter((d) => isOf(safe, d) && !isOf(x, d));
  const rest = all.filter((d) => isOf(x, d) && !isOf(safe, d) && !named.includes(d));
  // what is repeated and summed over would have to be counted
  if (axes.some((d) => shape[d] !== 1 && !named.includes(d))) return undefined;
  const n = prod(sizesOf(named, shape));
  const dims = [...shared, ...places, ...rest];
  const rows = b.reshape(only(b, x, [...shared, ...named, ...rest], shape), [
    ...sizesOf(shared, shape),
    n,
    ...sizesOf(rest, shape),
  ]);
  const at = only(b, safe, [...shared, ...places], shape);
  const size = sizesOf(dims, shape);
  const chosen =
    shared.length === 0
      ? b.node("Gather", { inputs: [rows, at], attributes: { axis: 0 }, shape: size, dtype: x.dtype })
      : b.node("GatherND", {
          inputs: [rows, b.reshape(at, [...at.shape, 1])],
          attributes: { batch_dims: shared.length },
          shape: size,
          dtype: x.dtype,
        });
  const there = b.reshape(only(b, isThere, [...shared, ...places], shape), [
    ...at.shape,
    ...rest.map(() => 1),
  ]);
  const none = b.number(x.dtype.isBig ? 0n : 0, x.dtype);
  return placed(b, alu(b, "WHERE", [there, chosen, none]), dims, shape, axes);
}

function scattered(b: GraphBuilder, choice: LookupFacts): ExportNode | undefined {
  const { matches, x, shape, axes } = choice;
  const named = matches.map((m) => m.dim);
  const { isThere, flat } = flatIndex(b, choice);
  const n = prod(sizesOf(named, shape));
  // what goes nowhere goes to one more element, which is cut off
  const at = alu(b, "WHERE", [isThere, flat, b.number(BigInt(n), int64)]);
  const isOf = (d: number): boolean => x.shape[d] !== 1 || at.shape[d] !== 1;
  const all = range(shape.length).filter((d) => shape[d] !== 1 && !named.includes(d));
  const kept = all.filter((d) => !axes.includes(d) && isOf(d));
  const sources = all.filter((d) => axes.includes(d));
  if (x.dtype === bool || (x.dtype.isInt && x.dtype.bits < 32)) return undefined;
  const count = prod(sizesOf(sources, shape));
  const full = [...sizesOf(kept, shape), ...sizesOf(sources, shape)];
  const flatten = (v: ExportNode): ExportNode =>
    b.reshape(b.expand(only(b, v, [...kept, ...sources], shape), full), [...sizesOf(kept, shape), count]);
  const size = [...sizesOf(kept, shape), n + 1];
  const wide = x.dtype.isFloat && x.dtype.bits < 32 ? dtypes.float32 : x.dtype;
  const zeros = b.expand(b.number(wide.isBig ? 0n : 0, wide), size);
  const sum = b.node("ScatterElements", {
    inputs: [zeros, flatten(at), flatten(b.cast(x, wide))],
    attributes: { axis: kept.length, reduction: "add" },
    shape: size,
    dtype: wide,
  });
  const cut = b.slice(sum, kept.length, 0, n);
  const parts = b.reshape(cut, [...sizesOf(kept, shape), ...sizesOf(named, shape)]);
  return b.cast(placed(b, parts, [...kept, ...named], shape, axes), x.dtype);
}
