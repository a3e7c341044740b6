// Reductions. A sum over a product of operands that do not share all their dims is a contraction, one over a
// choice by equal numbers is a lookup, and a reduction over windows is a pool. What is left is a ReduceSum,
// ReduceMax or ReduceProd. In: a reduce node of the lazy graph. Out: nodes.

import { type DType, dtypes } from "../../dtype.ts";
import { range } from "../../helpers.ts";
import type { LazyBuffer } from "../../lazy/lazybuffer.ts";
import type { ReduceOp } from "../../ops.ts";
import { contraction } from "./contraction.ts";
import type { ExportNode, GraphBuilder } from "./graph.ts";
import { lookup } from "./lookups.ts";
import type { GraphReader } from "./lower.ts";
import { whole } from "./views.ts";
import { pooled } from "./windows.ts";

const { bool, int16, uint16, int32, uint32, int64, uint64, float32 } = dtypes;

/** What is reduced, and along which axes, where reductions of the same kind follow each other. */
export interface ReducedSource {
  readonly op: ReduceOp;
  readonly axes: readonly number[];
  readonly src: LazyBuffer;
}
function reductionOf(base: LazyBuffer, op: ReduceOp): ReducedSource {
  let axes = [...(base.arg as readonly number[])];
  let [src] = base.sources as [LazyBuffer];
  // a long reduction was split: its parts keep their dims
  while (src === src.base && src.op === op && src.realized === undefined) {
    axes = [...new Set([...axes, ...(src.arg as readonly number[])])].sort((a, b) => a - b);
    [src] = src.sources as [LazyBuffer];
  }
  return { op, axes, src };
}

export function reduced(l: GraphReader, base: LazyBuffer, op: ReduceOp): ExportNode {
  const { b } = l;
  const reduction = reductionOf(base, op);
  const found =
    (op === "SUM" ? (contraction(l, reduction) ?? lookup(l, reduction)) : undefined) ?? pooled(l, reduction);
  if (found !== undefined) return found;
  const shape = reduction.src.shape.map(whole);
  const x = l.operand(reduction.src);
  const ranked =
    x.shape.length === 0
      ? b.reshape(
          x,
          shape.map(() => 1),
        )
      : x;
  // what is repeated along an axis is reduced there, too
  const along = b.expand(
    ranked,
    shape.map((n, d) => (reduction.axes.includes(d) ? n : (ranked.shape[d] as number))),
  );
  return b.expand(
    reduceOne(b, op, along, reduction.axes),
    shape.map((n, d) => (reduction.axes.includes(d) ? 1 : n)),
  );
}

const NAMES: Readonly<Record<ReduceOp, string>> = {
  SUM: "ReduceSum",
  REDUCE_MAX: "ReduceMax",
  PROD: "ReduceProd",
};
const CARRIERS: ReadonlyMap<DType, DType> = new Map([
  [int16, int32],
  [uint16, int32],
  [uint32, int64],
  [uint64, int64],
]);
/** The largest of unsigned 64-bit numbers is that of signed ones with the first bit turned. */
function turned(b: GraphBuilder, x: ExportNode): ExportNode {
  return b.map("BitwiseXor", [x, b.number(1n << 63n, uint64)], uint64);
}
export function reduceOne(b: GraphBuilder, op: ReduceOp, x: ExportNode, axes: readonly number[]): ExportNode {
  const { dtype } = x;
  const name = NAMES[op];
  if (dtype === bool) {
    const counts = b.cast(x, int32);
    return b.cast(b.reduce(op === "PROD" ? "ReduceProd" : "ReduceMax", counts, axes), bool);
  }
  if (dtype.isFloat && dtype.bits < 32) return b.cast(b.reduce(name, b.cast(x, float32), axes), dtype);
  if (dtype === uint64 && op === "REDUCE_MAX")
    return turned(b, b.cast(b.reduce(name, b.cast(turned(b, x), int64), axes), uint64));
  const isSmall = dtype.isInt && dtype.bits < 32;
  const wide = CARRIERS.get(dtype) ?? (isSmall && op !== "REDUCE_MAX" ? int32 : dtype);
  return b.cast(b.reduce(name, b.cast(x, wide), axes), dtype);
}

/**
 * A node with one dim for each of `dims` (ascending or not) in the shape of the reduction's result:
 * all dims in order, those that are reduced with size 1, those that are missing repeated.
 */
export function placed(
  b: GraphBuilder,
  x: ExportNode,
  dims: readonly number[],
  shape: readonly number[],
  axes: readonly number[],
): ExportNode {
  const order = range(dims.length).sort((i, j) => (dims[i] as number) - (dims[j] as number));
  const ordered = b.transpose(x, order);
  const sizes = shape.map((n, d) => (axes.includes(d) || !dims.includes(d) ? 1 : n));
  return b.expand(
    b.reshape(ordered, sizes),
    shape.map((n, d) => (axes.includes(d) ? 1 : n)),
  );
}
