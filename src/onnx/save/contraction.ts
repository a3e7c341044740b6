// Sums over products: MatMul, and Conv where an operand is seen through windows. The dims of the product are
// sorted by who has them: both operands and the result (batch), one and the result (rows, columns), both and
// the sum (inner). The product itself is never made. In: a SUM. Out: nodes, or undefined where it is no
// contraction.

import { dtypes } from "../../dtype.ts";
import { prod, range } from "../../helpers.ts";
import type { LazyBuffer } from "../../lazy/lazybuffer.ts";
import type { ExportNode, GraphBuilder } from "./graph.ts";
import type { GraphReader } from "./lower.ts";
import { placed, type ReducedSource, reduceOne } from "./reduces.ts";
import { whole } from "./views.ts";
import { convolution } from "./windows.ts";

const { float32 } = dtypes;

/** A product under a view, as the operands seen through that view. */
export function operandsUnder(
  l: GraphReader,
  src: LazyBuffer,
  op: string,
): readonly LazyBuffer[] | undefined {
  const { base } = src;
  if (base.op !== op || base.realized !== undefined) return undefined;
  if (src === base) return base.sources;
  // the value of what is padded must be that of padded operands
  if (src.st.views.some((v) => v.mask !== undefined)) return undefined;
  const seen = base.sources.map((s) => s.seen(s.st.add(src.st).simplify()));
  l.prepare(seen);
  return seen;
}

export interface ProductOperands {
  /** the sizes of the product */
  readonly shape: readonly number[];
  readonly axes: readonly number[];
  readonly left: LazyBuffer;
  readonly right: LazyBuffer;
}

export function contraction(l: GraphReader, { src, axes }: ReducedSource): ExportNode | undefined {
  const found = operandsUnder(l, src, "MUL");
  const [left, right] = found ?? [];
  if (left === undefined || right === undefined) return undefined;
  const shape = src.shape.map(whole);
  const both = { shape, axes, left, right };
  return convolution(l, both) ?? convolution(l, { ...both, left: right, right: left }) ?? product(l, both);
}

const ranked = (b: GraphBuilder, x: ExportNode, shape: readonly number[]): ExportNode =>
  x.shape.length === 0
    ? b.reshape(
        x,
        shape.map(() => 1),
      )
    : x;

/** A MatMul, where each operand has a dim that the other has not. */
function product(l: GraphReader, { shape, axes, left, right }: ProductOperands): ExportNode | undefined {
  const { b } = l;
  const [x, y] = [ranked(b, l.operand(left), shape), ranked(b, l.operand(right), shape)];
  if (x.dtype.isInt && x.dtype.bits < 32) return undefined;
  const isOf = (n: ExportNode) => (d: number) => n.shape[d] !== 1;
  const isSummed = (d: number): boolean => axes.includes(d);
  const all = range(shape.length).filter((d) => shape[d] !== 1);
  const hasRows = all.some((d) => !isSummed(d) && isOf(x)(d) && !isOf(y)(d));
  const hasColumns = all.some((d) => !isSummed(d) && isOf(y)(d) && !isOf(x)(d));
  const inner = all.filter((d) => isSummed(d) && isOf(x)(d) && isOf(y)(d));
  // without both the product is as large as an operand
  if (inner.length === 0 || !(hasRows || hasColumns)) return undefined;
  const isDouble = hasRows && hasColumns;
  const isBatched = all.some((d) => !isSummed(d) && isOf(x)(d) && isOf(y)(d));
  if (!isDouble && isBatched) return undefined;
  const { dtype } = x;
  const widened = (n: ExportNode): ExportNode => (dtype.isFloat && dtype.bits < 32 ? b.cast(n, float32) : n);
  const own = (n: ExportNode, other: ExportNode): ExportNode =>
    reduceOne(
      b,
      "SUM",
      widened(n),
      all.filter((d) => isSummed(d) && isOf(n)(d) && !isOf(other)(d)),
    );
  const made = multiplied(b, own(x, y), own(y, x), { shape, axes, inner, all });
  // a dim that neither has counts as often as it is there
  const repeats = prod(
    all.filter((d) => isSummed(d) && !isOf(x)(d) && !isOf(y)(d)).map((d) => shape[d] as number),
  );
  if (repeats === 1) return b.cast(made, dtype);
  const times = b.number(made.dtype.isBig ? BigInt(repeats) : repeats, made.dtype);
  return b.cast(b.map("Mul", [made, times], made.dtype), dtype);
}

interface ProductDims {
  readonly shape: readonly number[];
  readonly axes: readonly number[];
  readonly inner: readonly number[];
  readonly all: readonly number[];
}
function multiplied(
  b: GraphBuilder,
  x: ExportNode,
  y: ExportNode,
  { shape, axes, inner, all }: ProductDims,
): ExportNode {
  const has = (n: ExportNode, d: number): boolean => n.shape[d] !== 1 && !axes.includes(d);
  const batch = all.filter((d) => has(x, d) && has(y, d));
  const rows = all.filter((d) => has(x, d) && !has(y, d));
  const columns = all.filter((d) => has(y, d) && !has(x, d));
  // a matrix that is shared stands on the right
  if (batch.length === 0 && columns.length > rows.length)
    return multiplied(b, y, x, { shape, axes, inner, all });
  const size = (dims: readonly number[]): number => prod(dims.map((d) => shape[d] as number));
  const sizes = (dims: readonly number[]): number[] => dims.map((d) => shape[d] as number);
  const rest = (used: readonly number[]): number[] => range(shape.length).filter((d) => !used.includes(d));
  const arranged = (n: ExportNode, dims: readonly number[], to: readonly number[]): ExportNode =>
    b.reshape(b.transpose(n, [...rest(dims), ...dims]), to);
  const top = sizes(batch);
  const k = size(inner);
  // dims of rows stay apart where there is no batch: a Reshape less
  const lines = batch.length === 0 && rows.length > 0 ? sizes(rows) : [size(rows)];
  const first = arranged(x, [...batch, ...rows, ...inner], [...top, ...lines, k]);
  const second = arranged(y, [...batch, ...inner, ...columns], [...top, k, size(columns)]);
  const made = b.node("MatMul", {
    inputs: [first, second],
    shape: [...top, ...lines, size(columns)],
    dtype: x.dtype,
  });
  const dims = [...batch, ...rows, ...columns];
  return placed(b, b.reshape(made, sizes(dims)), dims, shape, axes);
}
