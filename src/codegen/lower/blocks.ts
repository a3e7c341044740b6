// Axes of joined tensors. A join along a dim adds up padded parts, each of which is masked along that dim.
// Where all of them begin and end at multiples of one number, the dim becomes two: the number of such a
// block, and the position in it. Then masks depend on the block alone, and whole vectors are loaded within
// it. In: the AST of a kernel without reductions. Out: the same kernel over more dims, or the AST as it came.

import { getOrMake } from "../../helpers.ts";
import { isReduceOp } from "../../ops.ts";
import { astNodes, ConstBuffer, type LazyOp, lazyOp, MemBuffer } from "../../schedule/lazyop.ts";
import type { ShapeTracker } from "../../shape/shapetracker.ts";
import type { Shape } from "../../shape/view.ts";

const known = new WeakMap<readonly LazyOp[], Map<number, readonly LazyOp[]>>();

/** `lanes`: those of a vector; blocks that it does not divide would not help. */
export const inBlocks = (ast: readonly LazyOp[], lanes: number): readonly LazyOp[] =>
  getOrMake(
    getOrMake(known, ast, () => new Map<number, readonly LazyOp[]>()),
    lanes,
    () => split(ast, lanes),
  );

function split(ast: readonly LazyOp[], lanes: number): readonly LazyOp[] {
  const nodes = astNodes(ast);
  const shape = ast[0]?.shape ?? [];
  if (nodes.some((u) => isReduceOp(u.op) || u.op === "VIEW")) return ast;
  const sts = nodes.flatMap((u) => viewOf(u) ?? []);
  const blocks = shape.map((n, d) =>
    blockOf(
      n,
      sts.map((st) => st.views.at(-1)?.mask?.[d]),
      lanes,
    ),
  );
  if (blocks.every((b) => b === undefined)) return ast;
  const to: Shape = shape.flatMap((n, d) => {
    const b = blocks[d];
    return b === undefined || typeof n !== "number" ? [n] : [n / b, b];
  });
  // a view that cannot be cut there would need divisions in its index
  if (sts.some((st) => st.reshape(to).views.length > st.views.length)) return ast;
  const done = new Map<LazyOp, LazyOp>();
  const made = (u: LazyOp): LazyOp => getOrMake(done, u, () => reshaped(u, to, u.srcs.map(made)));
  // sources first: no deep recursion
  for (const u of nodes) made(u);
  return ast.map(made);
}

const viewOf = (u: LazyOp): ShapeTracker | undefined =>
  u.op === "ARANGE" ? u.arg : u.op === "LOAD" || u.op === "STORE" || u.op === "CONST" ? u.arg.st : undefined;

/** The largest block at whose multiples all masks of a dim begin and end; undefined: no mask asks for one. */
function blockOf(size: unknown, masks: readonly (readonly [unknown, unknown] | undefined)[], lanes: number) {
  if (typeof size !== "number") return undefined;
  let block = size;
  for (const mask of masks)
    for (const edge of mask ?? []) {
      if (typeof edge !== "number") return undefined;
      block = gcd(block, edge);
    }
  return block === size || block % lanes !== 0 ? undefined : block;
}
const gcd = (a: number, b: number): number => (b === 0 ? a : gcd(b, a % b));

function reshaped(u: LazyOp, shape: Shape, srcs: readonly LazyOp[]): LazyOp {
  const { op, dtype } = u;
  if (u.op === "LOAD" || u.op === "STORE") {
    const { idx, dtype: element, st } = u.arg;
    return lazyOp(op, srcs, new MemBuffer(idx, element, st.reshape(shape)), dtype, shape);
  }
  if (u.op === "CONST") {
    const { val, dtype: element, st } = u.arg;
    return lazyOp(op, srcs, new ConstBuffer(val, element, st.reshape(shape)), dtype, shape);
  }
  return lazyOp(op, srcs, u.op === "ARANGE" ? u.arg.reshape(shape) : u.arg, dtype, shape);
}
