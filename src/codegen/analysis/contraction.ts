// A contraction is a sum of products: C[i, j] += A[i, k] * B[k, j], along any number of axes. Products of
// matrices, convolutions and their gradients are contractions. The heuristics, tensor cores and linearize
// recognise them here, and nowhere else.

import { toposort } from "../../helpers.ts";
import type { UOpArena } from "../../uop/arena.ts";
import {
  type Axis,
  type Expr,
  isProduct,
  type Load,
  type Range,
  type Reduce,
  type Sink,
  type UOp,
} from "../../uop/node.ts";

/** One of the two values that are multiplied. */
export interface Factor {
  /** as it is multiplied */
  readonly value: Expr;
  /** before it was cast to the type of the sum; the value itself where it was not cast */
  readonly source: Expr;
}

export interface Contraction {
  readonly sum: Reduce;
  readonly factors: readonly [Factor, Factor];
  /** the loops that are summed over, the outermost first */
  readonly ranges: readonly Range[];
}

const asFactor = (value: Expr): Factor => ({ value, source: value.op === "CAST" ? value.operand : value });

/** undefined: the node is something else. */
export function contractionOf(u: UOp): Contraction | undefined {
  return u.op === "REDUCE" && u.fn === "SUM" ? productsOf(u, u.body) : undefined;
}
function productsOf(sum: Reduce, body: Expr): Contraction | undefined {
  if (!isProduct(body)) return undefined;
  const [x, y] = body.operands;
  return { sum, factors: [asFactor(x), asFactor(y)], ranges: sum.ranges };
}

/** A contraction whose last iterations are beyond the end of an axis: they add 0 where the gate is closed. */
export interface GatedContraction extends Contraction {
  readonly gate: Expr | undefined;
}
export function gatedContractionOf(sum: Reduce): GatedContraction | undefined {
  const { fn, body } = sum;
  if (fn !== "SUM") return undefined;
  const isGated = body.op === "ALU" && body.fn === "WHERE" && isZero(body.operands[2]);
  const products = productsOf(sum, isGated ? body.operands[1] : body);
  return products && { ...products, gate: isGated ? body.operands[0] : undefined };
}
const isZero = (u: Expr): boolean => u.op === "CONST" && u.is(0);

/** The contraction that is the only reduction of a kernel; undefined where there is another, or none. */
export function onlyContraction(sink: Sink, arena: UOpArena): Contraction | undefined {
  const reduces = arena.nodes(sink).filter((u) => u.op === "REDUCE");
  const [sum] = reduces;
  return sum === undefined || reduces.length > 1 ? undefined : contractionOf(sum);
}

/** What both factors read, where each of them is an element of a buffer. */
export function loadsOf({ factors: [x, y] }: Contraction): readonly [Load, Load] | undefined {
  return x.source.op === "LOAD" && y.source.op === "LOAD" ? [x.source, y.source] : undefined;
}

/** The axes of all ranges below an expression: the loops it depends on. */
export function axesBelow(u: Expr): ReadonlySet<number> {
  return new Set(toposort<UOp>([u], (x) => x.srcs).flatMap((x) => (x.op === "RANGE" ? [x.axis.id] : [])));
}

/**
 * Which factor has the rows of the result and which the columns: [rows, columns] where one factor moves along
 * m and not along n, and the other along n and not along m; undefined where that is not so.
 */
export function rowsAndColumns<T extends Expr>(
  x: T,
  y: T,
  m: Axis,
  n: Axis,
): readonly [rows: T, columns: T] | undefined {
  const [belowX, belowY] = [axesBelow(x), axesBelow(y)];
  const isRows = (a: ReadonlySet<number>): boolean => a.has(m.id) && !a.has(n.id);
  const isColumns = (a: ReadonlySet<number>): boolean => a.has(n.id) && !a.has(m.id);
  if (isRows(belowX) && isColumns(belowY)) return [x, y];
  return isRows(belowY) && isColumns(belowX) ? [y, x] : undefined;
}
