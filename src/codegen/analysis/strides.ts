// How an index moves with a loop: by the same number of elements in every iteration (its stride), or not.
// Vectors, operand packing, the order of the grid and the heuristics ask. In go an index and the range of a
// loop; nothing is changed.

import { prod } from "../../helpers.ts";
import type { Expr, Load, Range, Store, UOp } from "../../uop/node.ts";
import type { Simd } from "../target.ts";

/** Strides along one loop found so far, by index. */
export type Strides = Map<UOp, number | undefined>;

/** How far an index moves from one iteration of the loop to the next; undefined where that varies. */
export function strideOf(index: UOp, loop: Range, known: Strides = new Map()): number | undefined {
  if (known.has(index)) return known.get(index);
  let stride: number | undefined;
  if (index === loop) stride = 1;
  else if (index.op === "ALU" && (index.fn === "ADD" || index.fn === "MUL")) {
    const b = index.operands[1];
    const x = strideOf(index.operands[0], loop, known);
    const y = strideOf(b, loop, known);
    if (x !== undefined && y !== undefined) {
      if (index.fn === "ADD") stride = x + y;
      else if (x === 0 && y === 0) stride = 0;
      else if (b.op === "CONST") stride = x * Number(b.value);
    }
  } else if (index.srcs.every((s) => strideOf(s, loop, known) === 0)) stride = 0;
  known.set(index, stride);
  return stride;
}

/**
 * Whether an access goes to neighbours in memory along the loop and its gate is invariant, so that it can be
 * one vector.
 */
export function hasUnitStride(
  access: Load | Store,
  loop: Range,
  simd: Simd | undefined,
  known?: Strides,
): boolean {
  const strides = known ?? new Map();
  const { buffer, index, gate } = access;
  const isInvariant = gate === undefined || strideOf(gate, loop, strides) === 0;
  return isInvariant && simd?.memory(buffer) === true && strideOf(index, loop, strides) === 1;
}

/**
 * Whether loops of these sizes, the outermost first, could be collapsed into one: the index has one stride
 * through all of them.
 */
export function isCollapsible(index: Expr, loops: readonly Range[], sizes: readonly number[]): boolean {
  const strides = loops.map((r) => strideOf(index, r));
  const step = strides.at(-1);
  return step !== undefined && strides.every((s, i) => s === step * prod(sizes.slice(i + 1)));
}
