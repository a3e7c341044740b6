// Lists of OptOps for a product of matrices on a GPU, the best first: blocks of the result whose operands come through shared
// memory, multiplied by tensor cores where the types fit. In goes the kernel lowered without any OptOps. Each list is a proposal:
// one that does not fit the kernel after all is refused by lowering, and the next is taken.

import type { DType } from "../../../dtype.ts";
import { prod } from "../../../helpers.ts";
import { elementOf } from "../../../uop/list.ts";
import type { TensorCore } from "../../../uop/matrix.ts";
import type { Axis } from "../../../uop/node.ts";
import { loadsOf, onlyContraction, rowsAndColumns } from "../../analysis/contraction.ts";
import type { Lowered } from "../../lower/lower.ts";
import type { Gpu } from "../../target.ts";
import { isExactEnough } from "../mma.ts";
import { type OptOp, type SplitName, splitBy } from "../opts.ts";

/** One side of a block: lanes, then items (or warps), then lanes that lie a workgroup apart. */
type Side = readonly [lanes: number, items: number, far: number];
interface Block {
  readonly m: Side;
  readonly n: Side;
  /** lanes of the sum in a turn, and turns in shared memory at once: the best first, as far as there is room */
  readonly turns: readonly (readonly [lanes: number, stages: number])[];
}
const AHEAD: Block["turns"] = [
  [4, 3],
  [4, 2],
  [2, 2],
];
/** In units of a tensor core's matrices: 128 × 256 elements first, the others for results that are smaller or little memory. */
const WARPS: readonly Block[] = [
  {
    m: [4, 2, 1],
    n: [8, 4, 1],
    turns: [
      [4, 4],
      [4, 3],
    ],
  },
  { m: [4, 2, 1], n: [8, 2, 1], turns: AHEAD },
  { m: [4, 2, 1], n: [4, 2, 1], turns: AHEAD },
  { m: [2, 2, 1], n: [4, 2, 1], turns: AHEAD },
  { m: [1, 2, 1], n: [2, 2, 1], turns: AHEAD },
  { m: [1, 1, 1], n: [1, 1, 1], turns: AHEAD },
];
/** A block that is larger is better, even if such a part of the units is idle. */
const IDLE = 0.1;
const LONG: Block["turns"] = [
  [16, 3],
  [8, 3],
];
/** In elements. Neighbours of a row in shared memory are read by neighbours in the workgroup. */
const ITEMS: readonly Block[] = [
  {
    m: [8, 16, 1],
    n: [4, 16, 2],
    turns: [
      [8, 4],
      [8, 2],
    ],
  },
  { m: [4, 16, 1], n: [4, 16, 1], turns: LONG },
  { m: [2, 16, 1], n: [2, 16, 1], turns: LONG },
];

/** The product that a kernel is: two output axes, the reduce axis, the types of the factors in memory. */
interface Product {
  readonly m: Axis;
  readonly n: Axis;
  readonly k: Axis;
  readonly types: readonly [DType, DType];
  /** results beside those along m and n */
  readonly others: number;
}

export function matrixLists(lowered: Lowered, gpu: Gpu): OptOp[][] {
  const product = productOf(lowered);
  if (product === undefined) return [];
  const number = gpu.tensorCores.findIndex((c) => fits(c, product));
  const core = gpu.tensorCores[number];
  const sizes = [product.m, product.n].map((a) => a.size as number) as [number, number];
  const lists: OptOp[][] = [];
  if (core !== undefined) {
    const step: OptOp = { op: "TC", axis: product.k.of, core: number };
    const blocks = blocksOf(WARPS, sizes, [core.m, core.n], product.others, gpu);
    // one that is smaller takes less shared memory
    for (const b of blocks.slice(0, 2)) lists.push(...listsOf(product, b, core.k).map((l) => [step, ...l]));
    for (const b of blocks.slice(0, 1)) lists.push([step, ...sidesOf(product, b)]);
  }
  const [plain] = blocksOf(ITEMS, sizes, [1, 1], product.others, gpu);
  if (plain !== undefined && gpu.copiesAhead) lists.push(...listsOf(product, plain, 1));
  return lists;
}
const listsOf = (product: Product, block: Block, unit: number): OptOp[][] =>
  block.turns.map(([most, stages]) => [...sidesOf(product, block), ...turns(product, unit, most, stages)]);

/** The sum of products that the kernel is all about; undefined where it is about something else. */
function productOf({ sink, arena, order }: Lowered): Product | undefined {
  const found = onlyContraction(sink, arena);
  const loads = found && loadsOf(found);
  const [m, n] = order.slice(-2);
  const [range, other] = found?.ranges ?? [];
  if (loads === undefined || m === undefined || n === undefined) return undefined;
  if (range === undefined || other !== undefined) return undefined;
  const k = range.axis;
  if ([m, n, k].some((a) => typeof a.size !== "number")) return undefined;
  if (rowsAndColumns(...loads, m, n) === undefined) return undefined;
  const others = prod(order.slice(0, -2).map((a) => (typeof a.size === "number" ? a.size : 1)));
  return { m, n, k, types: [elementOf(loads[0]), elementOf(loads[1])], others };
}

/** Sides that the step divides, and types that it takes as they are. */
function fits(core: TensorCore, { m, n, k, types }: Product): boolean {
  const sides = (m.size as number) % core.m === 0 && (n.size as number) % core.n === 0;
  return (
    sides && (k.size as number) % core.k === 0 && types.every((t) => t === core.from) && isExactEnough(core)
  );
}

/** Those that divide the result, from the largest on that leaves few units idle; else the smallest. */
function blocksOf(
  blocks: readonly Block[],
  sizes: readonly [number, number],
  unit: readonly [number, number],
  others: number,
  gpu: Gpu,
): Block[] {
  const extent = (b: Block): number[] => [prod(b.m) * unit[0], prod(b.n) * unit[1]];
  const whole = blocks.filter((b) => extent(b).every((e, i) => (sizes[i] as number) % e === 0));
  const count = (b: Block): number => (others * prod(sizes)) / prod(extent(b));
  const first = whole.findIndex((b) => count(b) >= gpu.units * (1 - IDLE));
  return first < 0 ? whole.slice(-1) : whole.slice(first);
}

function sidesOf({ m, n }: Product, block: Block): OptOp[] {
  const side = (a: Axis, [lanes, items, far]: Side): OptOp[] =>
    (
      [
        ["UPCAST", lanes],
        ["LOCAL", items],
        ["UPCAST", far],
      ] as [SplitName, number][]
    )
      .filter(([, factor]) => factor > 1)
      .map(([op, factor]) => splitBy(op, a.of, factor));
  return [...side(m, block.m), ...side(n, block.n)];
}

/** So many elements of the sum in a turn, as far as they divide it, and turns that are fetched ahead. */
function turns({ k }: Product, unit: number, most: number, stages: number): OptOp[] {
  let lanes = most;
  while ((k.size as number) % (unit * lanes) !== 0) lanes /= 2;
  const unroll: OptOp[] = lanes > 1 ? [{ op: "UNROLL", axis: k.of, factor: lanes }] : [];
  return [...unroll, { op: "SHARED", axis: k.of, stages }];
}
