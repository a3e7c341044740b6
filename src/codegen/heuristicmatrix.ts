// Lists of OptOps for a product of matrices on a GPU, the best first: blocks of the result whose operands come through shared
// memory, multiplied by tensor cores where the types fit. In goes the kernel lowered without any OptOps. Each list is a proposal:
// one that does not fit the kernel after all is refused by lowering, and the next is taken.

import { prod, toposort } from "../helpers.ts";
import type { Axis, Lowered } from "./lower.ts";
import { isExactEnough } from "./mma.ts";
import type { OptOp, OptOpName } from "./opts.ts";
import type { Gpu } from "./target.ts";
import { elementOf, type TensorCore, type UOp, type UType } from "./uops.ts";

/** One side of a block: lanes, then items (or warps), then lanes that lie a workgroup apart. */
type Side = readonly [lanes: number, items: number, far: number];
interface Block {
  readonly m: Side;
  readonly n: Side;
}
/** In units of a tensor core's matrices: 128 × 128 elements first, the others for results that are smaller. */
const WARPS: readonly Block[] = [
  { m: [4, 2, 1], n: [8, 2, 1] },
  { m: [4, 2, 1], n: [4, 2, 1] },
  { m: [2, 2, 1], n: [4, 2, 1] },
  { m: [1, 2, 1], n: [2, 2, 1] },
  { m: [1, 1, 1], n: [1, 1, 1] },
];
/** In elements. Neighbours of a row in shared memory are read by neighbours in the workgroup. */
const ITEMS: readonly Block[] = [
  { m: [8, 16, 1], n: [4, 16, 2] },
  { m: [4, 16, 1], n: [4, 16, 1] },
  { m: [2, 16, 1], n: [2, 16, 1] },
];

/** The product that a kernel is: two output axes, the reduce axis, the types of the factors in memory. */
interface Product {
  readonly m: Axis;
  readonly n: Axis;
  readonly k: Axis;
  readonly types: readonly [UType, UType];
  /** results beside those along m and n */
  readonly others: number;
}

export function matrixLists(lowered: Lowered, gpu: Gpu): OptOp[][] {
  const product = productOf(lowered);
  if (product === undefined) return [];
  const number = gpu.tensorCores.findIndex((c) => fits(c, product));
  const core = gpu.tensorCores[number];
  const sizes = [product.m, product.n].map((a) => a.size as number) as [number, number];
  const tensor =
    core === undefined ? undefined : blockOf(WARPS, sizes, [core.m, core.n], product.others, gpu);
  const lists: OptOp[][] = [];
  if (core !== undefined && tensor !== undefined) {
    const list: OptOp[] = [{ op: "TC", axis: product.k.of, amount: number }, ...sidesOf(product, tensor)];
    // many turns in much shared memory, where there is as much
    for (const [most, stages] of [
      [4, 3],
      [4, 2],
      [2, 2],
    ] as const)
      lists.push([...list, ...turns(product, core.k, most, stages)]);
    lists.push(list);
  }
  const plain = blockOf(ITEMS, sizes, [1, 1], product.others, gpu);
  if (plain !== undefined && gpu.copiesAhead) {
    for (const most of [16, 8]) lists.push([...sidesOf(product, plain), ...turns(product, 1, most, 3)]);
  }
  return lists;
}

/** The sum of products that the kernel is all about; undefined where it is about something else. */
function productOf({ sink, axes, order }: Lowered): Product | undefined {
  const reduces = toposort([sink], (x) => x.srcs).filter((u) => u.op === "REDUCE");
  const [sum] = reduces;
  const [body, ...ranges] = sum?.srcs ?? [];
  if (reduces.length !== 1 || sum?.op !== "REDUCE" || sum.arg !== "SUM") return undefined;
  if (body?.op !== "ALU" || body.arg !== "MUL" || ranges.length !== 1) return undefined;
  const loads = body.srcs.map((x) => (x.op === "CAST" ? (x.srcs[0] as UOp) : x));
  const [m, n] = order.slice(-2);
  const k = axes[ranges[0]?.arg as number];
  if (m === undefined || n === undefined || k === undefined || loads.some((l) => l.op !== "LOAD"))
    return undefined;
  if ([m, n, k].some((a) => typeof a.size !== "number")) return undefined;
  const below = loads.map(
    (l) => new Set(toposort([l], (x) => x.srcs).flatMap((x) => (x.op === "RANGE" ? [x.arg] : []))),
  );
  const meets = (a: Axis): boolean[] => below.map((b) => b.has(a.id));
  const [alongM, alongN] = [meets(m), meets(n)];
  if (alongM[0] === alongM[1] || alongN[0] === alongN[1] || alongM[0] === alongN[0]) return undefined;
  const others = prod(order.slice(0, -2).map((a) => (typeof a.size === "number" ? a.size : 1)));
  return { m, n, k, types: loads.map(elementOf) as unknown as [UType, UType], others };
}

/** Sides that the step divides, and types that it takes as they are. */
function fits(core: TensorCore, { m, n, k, types }: Product): boolean {
  const sides = (m.size as number) % core.m === 0 && (n.size as number) % core.n === 0;
  return (
    sides && (k.size as number) % core.k === 0 && types.every((t) => t === core.from) && isExactEnough(core)
  );
}

/** The largest block that divides the result and leaves no unit idle, else the smallest that divides it. */
function blockOf(
  blocks: readonly Block[],
  sizes: readonly [number, number],
  unit: readonly [number, number],
  others: number,
  gpu: Gpu,
): Block | undefined {
  const extent = (b: Block): number[] => [prod(b.m) * unit[0], prod(b.n) * unit[1]];
  const whole = blocks.filter((b) => extent(b).every((e, i) => (sizes[i] as number) % e === 0));
  const count = (b: Block): number => (others * prod(sizes)) / prod(extent(b));
  return whole.find((b) => count(b) >= gpu.units) ?? whole.at(-1);
}

function sidesOf({ m, n }: Product, block: Block): OptOp[] {
  const side = (a: Axis, [lanes, items, far]: Side): OptOp[] =>
    (
      [
        ["UPCAST", lanes],
        ["LOCAL", items],
        ["UPCAST", far],
      ] as [OptOpName, number][]
    )
      .filter(([, amount]) => amount > 1)
      .map(([op, amount]) => ({ op, axis: a.of, amount }));
  return [...side(m, block.m), ...side(n, block.n)];
}

/** So many elements of the sum in a turn, as far as they divide it, and turns that are fetched ahead. */
function turns({ k }: Product, unit: number, most: number, stages: number): OptOp[] {
  let lanes = most;
  while ((k.size as number) % (unit * lanes) !== 0) lanes /= 2;
  const unroll: OptOp[] = lanes > 1 ? [{ op: "UNROLL", axis: k.of, amount: lanes }] : [];
  return [...unroll, { op: "SHARED", axis: k.of, amount: stages }];
}
