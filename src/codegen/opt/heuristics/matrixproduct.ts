// A kernel seen as a product of two matrices: which of its axes are rows, columns and terms. Where several
// are, COLLAPSE makes one of them: the pictures and pixels of a convolution, its channels and taps, those of
// both its gradients, or an operand that is broadcast. In go a kernel lowered without OptOps, out come the
// ways to see it as a product; products.ts makes lists of them.

import type { DType } from "../../../dtype.ts";
import { prod } from "../../../helpers.ts";
import type { UOpArena } from "../../../uop/arena.ts";
import { elementOf } from "../../../uop/list.ts";
import type { Axis, Expr, Load, Range } from "../../../uop/node.ts";
import { affine } from "../../analysis/affine.ts";
import {
  axesBelow,
  type Contraction,
  loadsOf,
  onlyContraction,
  rowsAndColumns,
} from "../../analysis/contraction.ts";
import { loadingAlong } from "../../analysis/vectorsteps.ts";
import type { KernelGraph } from "../../lower/lower.ts";
import type { Gpu } from "../../target.ts";
import type { OptOp } from "../opts.ts";

/** The fewest bytes that the hardware copies by itself, and those of a bank of shared memory. */
const WORD = 4;

/** How the elements of a factor come to shared memory. */
export interface Copying {
  /** the hardware copies them; otherwise they go through registers */
  readonly isAsync: boolean;
  /** elements that are stored at once */
  readonly elements: number;
}
/** A product of matrices: two output axes, the reduce axis, the types of the factors. */
export interface MatrixProduct {
  /** what makes these axes of those of the kernel */
  readonly opts: readonly OptOp[];
  readonly axes: Readonly<Record<"m" | "n" | "k", number>>;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly types: readonly [DType, DType];
  /** the product of the sizes of the other output axes */
  readonly others: number;
  /** of the rows, and of the columns */
  readonly copies: readonly [Copying, Copying];
}

const sizeOf = ({ size }: Axis): number => (typeof size === "number" ? size : 1);
const sizesOf = (axes: readonly Axis[]): number => prod(axes.map(sizeOf));
const isStatic = ({ size }: Axis): boolean => typeof size === "number";

/** Whichever elements: the hardware copies them. */
const COPIED: Copying = { isAsync: true, elements: 1 };

/** The last two output axes and the only reduce axis, whose operands are elements of buffers. */
export function plainProduct({ sink, arena, order }: KernelGraph): MatrixProduct | undefined {
  const found = onlyContraction(sink, arena);
  const loads = found && loadsOf(found);
  if (found === undefined || loads === undefined) return undefined;
  const types = [elementOf(loads[0]), elementOf(loads[1])] as const;
  return lastTwo(found, order, types, [COPIED, COPIED]);
}
function lastTwo(
  { factors: [x, y], ranges: [range, another] }: Contraction,
  order: readonly Axis[],
  types: MatrixProduct["types"],
  copies: MatrixProduct["copies"],
): MatrixProduct | undefined {
  const [m, n] = order.slice(-2);
  if (range === undefined || another !== undefined || m === undefined || n === undefined) return undefined;
  if (rowsAndColumns(x.source, y.source, m, n) === undefined) return undefined;
  const k = range.axis;
  if (![m, n, k].every(isStatic)) return undefined;
  const axes = { m: m.of, n: n.of, k: k.of };
  const others = sizesOf(order.slice(0, -2));
  return { opts: [], axes, m: sizeOf(m), n: sizeOf(n), k: sizeOf(k), types, others, copies };
}

/** The ways to see the kernel as a product of matrices, that without COLLAPSE first. */
export function matrixProducts({ sink, arena, order }: KernelGraph, gpu: Gpu): MatrixProduct[] {
  const found = onlyContraction(sink, arena);
  const [store] = sink.stores;
  if (found === undefined || store === undefined) return [];
  const [x, y] = found.factors;
  const types = [x.source.dtype, y.source.dtype] as const;
  if (types.some((t) => t.count > 1) || ![...order, ...found.ranges.map((r) => r.axis)].every(isStatic))
    return [];
  const [belowX, belowY] = [axesBelow(x.source), axesBelow(y.source)];
  const rows = order.filter((a) => belowX.has(a.id) && !belowY.has(a.id));
  const columns = order.filter((a) => belowY.has(a.id) && !belowX.has(a.id));
  if (rows.length === 0 || columns.length === 0) return [];
  // results that are neighbours in memory are neighbours in a fragment
  const near = nearest(store.index, order);
  const [m, n, left, right] = rows.some((a) => a === near)
    ? [columns, rows, y.source, x.source]
    : [rows, columns, x.source, y.source];
  const terms = found.ranges.map((r) => r.axis);
  const copying = (value: Expr, side: readonly Axis[]): Copying =>
    copyingOf(value, [side, terms], arena, gpu);
  const copies = [copying(left, m), copying(right, n)] as const;
  const plain = lastTwo(found, order, types, copies);
  const others = sizesOf(order.filter((a) => !m.includes(a) && !n.includes(a)));
  const isPlain = plain !== undefined && m.length === 1 && n.length === 1;
  if (isPlain) return [plain];
  const { opts, axes } = collapse(order, m, n, terms.length);
  const joined = { opts, axes, m: sizesOf(m), n: sizesOf(n), k: sizesOf(terms), types, others, copies };
  return plain === undefined ? [joined] : [plain, joined];
}

/** The axis along which the index moves the least. */
function nearest(index: Expr, order: readonly Axis[]): Axis | undefined {
  let [best, least] = [order.at(-1), Infinity];
  for (const [term, stride] of affine(index).terms) {
    if (term.op !== "RANGE" || !order.includes(term.axis) || Math.abs(stride) >= least) continue;
    [best, least] = [term.axis, Math.abs(stride)];
  }
  return best;
}

/** The ops that make one axis each of rows, columns and terms, with the columns last. */
function collapse(
  order: readonly Axis[],
  m: readonly Axis[],
  n: readonly Axis[],
  terms: number,
): Pick<MatrixProduct, "opts" | "axes"> {
  const opts: OptOp[] = [];
  let left: (readonly Axis[])[] = order.map((a) => [a]);
  for (const group of [m, n]) {
    const last = group.at(-1);
    for (const a of group.slice(0, -1)) {
      const at = (x: Axis | undefined): number => left.findIndex((g) => x !== undefined && g.includes(x));
      const [first, second] = [at(last), at(a)];
      const [kept, gone] = [left[first] ?? [], left[second] ?? []];
      opts.push({ op: "COLLAPSE", first, second });
      left = left.filter((g) => g !== gone).map((g) => (g === kept ? [...gone, ...kept] : g));
    }
  }
  const numberOf = (group: readonly Axis[]): number =>
    left.findIndex((g) => group.some((a) => g.includes(a)));
  const loops = left.map((_, i) => i);
  for (const [group, place] of [
    [n, loops.length - 1],
    [m, loops.length - 2],
  ] as const) {
    const [axis, other] = [numberOf(group), loops[place] ?? 0];
    if (axis === other) continue;
    opts.push({ op: "SWAP", axis, with: other });
    [loops[loops.indexOf(axis)], loops[place]] = [other, axis];
  }
  const k = left.length;
  for (let i = 1; i < terms; i++) opts.push({ op: "COLLAPSE", first: k, second: k + 1 });
  return { opts, axes: { m: numberOf(m), n: numberOf(n), k } };
}

// ---- how operands are copied ----

/** `sides`: the axes of the rows or columns, and those of the terms. */
function copyingOf(
  value: Expr,
  sides: readonly (readonly Axis[])[],
  arena: UOpArena,
  { vectorBytes, hasAsyncCopy }: Gpu,
): Copying {
  const { itemsize } = value.dtype;
  const most = vectorBytes / itemsize;
  const word = Math.max(1, WORD / itemsize);
  if (value.op !== "LOAD") return { isAsync: false, elements: word };
  const widths = sides.map((axes) => widthAlong(value, axes, most, arena));
  const width = Math.max(...widths);
  return { isAsync: hasAsyncCopy && width * itemsize >= WORD, elements: Math.max(width, word) };
}
/** Elements that one load moves along these axes as one. */
function widthAlong(load: Load, axes: readonly Axis[], most: number, arena: UOpArena): number {
  const { terms, k } = affine(load.index);
  let run = 1;
  const within = new Set<Expr>();
  for (const a of axes.toReversed()) {
    const found = [...terms].find(([t]) => t.op === "RANGE" && t.axis === a);
    if (found === undefined || found[1] !== run) break;
    within.add(found[0]);
    run *= sizeOf(a);
  }
  if (within.size === 0) return 1;
  const rest = [...terms].filter(([t]) => !within.has(t)).map(([, stride]) => stride);
  const isWhole = within.size === axes.length;
  let width = most;
  while (width > 1 && ([...rest, k].some((s) => s % width !== 0) || (!isWhole && run % width !== 0)))
    width /= 2;
  const [last] = [...within].filter((t): t is Range => t.op === "RANGE");
  return load.gate === undefined || last === undefined
    ? width
    : Math.min(width, loadingAlong(load, last, most, arena).width);
}
