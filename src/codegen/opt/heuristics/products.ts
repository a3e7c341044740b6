// Lists of OptOps for a product of matrices on a GPU, the best first: blocks of the result whose operands
// come through shared memory, multiplied by tensor cores where the types fit. The blocks are all that the
// target has registers for, ranked by the cycles that moving the operands takes. In goes the kernel lowered
// without any OptOps. Each list is a proposal: one that does not fit the kernel after all is refused by
// lowering, and the next is taken.

import type { DType } from "../../../dtype.ts";
import { getOrMake, prod } from "../../../helpers.ts";
import { elementOf } from "../../../uop/list.ts";
import type { TensorCore } from "../../../uop/matrix.ts";
import { loadsOf, onlyContraction, rowsAndColumns } from "../../analysis/contraction.ts";
import type { KernelGraph } from "../../lower/lower.ts";
import type { Gpu, Target } from "../../target.ts";
import { isExactEnough } from "../mma.ts";
import { factorOf, type OptOp, splitBy } from "../opts.ts";
import { maxStages, pays } from "../shared.ts";
import { registersOf, workgroupThreads } from "./occupancy.ts";

/**
 * One side of a block: lanes of a thread (or matrices of a warp), then threads (or warps), then lanes a
 * workgroup apart.
 */
interface Side {
  readonly lanes: number;
  readonly threads: number;
  readonly far: number;
  /** elements of the result */
  readonly size: number;
}
/** How the loop over the sum goes: lanes in an iteration, and iterations that shared memory holds at once. */
interface Pipeline {
  readonly lanes: number;
  readonly stages: number;
}
/** The part of the result that a workgroup computes. */
interface Block {
  readonly m: Side;
  readonly n: Side;
  /** cycles that it takes to move what one product of elements needs */
  readonly moving: number;
  /** the best first, each with less in shared memory than the one before */
  readonly pipelines: readonly Pipeline[];
  /** bytes in shared memory for each lane of the sum */
  readonly laneBytes: number;
}

/** A larger block is better, even if this part of the compute units is idle. */
const IDLE = 0.1;
/** Blocks that are proposed: where the first is refused, a smaller one may fit. */
const PROPOSED = 2;
/** The most iterations that are worth their shared memory. */
const MAX_STAGES = 4;
/** The fewest bytes that are read from memory at once: a quarter of a transaction. */
const sectorOf = (gpu: Gpu): number => gpu.transactionBytes / 4;

/** A product of matrices: two output axes, the reduce axis, the types of the factors in memory. */
interface MatrixProduct {
  readonly axes: Readonly<Record<"m" | "n" | "k", number>>;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly types: readonly [DType, DType];
  /** the product of the sizes of the other output axes */
  readonly others: number;
}

export function productLists(lowered: KernelGraph, target: Target, gpu: Gpu): OptOp[][] {
  const product = productOf(lowered);
  if (product === undefined) return [];
  const number = gpu.tensorCores.findIndex((c) => fits(c, product));
  const core = gpu.tensorCores[number];
  const lists: OptOp[][] = [];
  if (core !== undefined) {
    const step: OptOp = { op: "TC", axis: product.axes.k, core: number };
    const blocks = candidates(tensorCoreBlocks(gpu, core), product, gpu);
    lists.push(...listsOf(product, blocks, core.k, target, gpu).map((list) => [step, ...list]));
    for (const b of blocks.slice(0, 1)) lists.push([step, ...sideOpts(product, b)]);
  }
  const blocks = pays(gpu) ? candidates(threadBlocks(gpu), product, gpu).slice(0, 1) : [];
  return [...lists, ...listsOf(product, blocks, 1, target, gpu)];
}

/** The product that the kernel computes; undefined where it computes something else. */
function productOf({ sink, arena, order }: KernelGraph): MatrixProduct | undefined {
  const found = onlyContraction(sink, arena);
  const loads = found && loadsOf(found);
  const [m, n] = order.slice(-2);
  const [range, another] = found?.ranges ?? [];
  if (loads === undefined || m === undefined || n === undefined) return undefined;
  if (range === undefined || another !== undefined) return undefined;
  if (rowsAndColumns(...loads, m, n) === undefined) return undefined;
  const k = range.axis;
  const [rows, columns, terms] = [m.size, n.size, k.size];
  if (typeof rows !== "number" || typeof columns !== "number" || typeof terms !== "number") return undefined;
  const others = prod(order.slice(0, -2).map((a) => (typeof a.size === "number" ? a.size : 1)));
  const axes = { m: m.of, n: n.of, k: k.of };
  return { axes, m: rows, n: columns, k: terms, types: [elementOf(loads[0]), elementOf(loads[1])], others };
}

/** Sides that the step divides, and types that it takes as they are. */
const fits = (core: TensorCore, { m, n, k, types }: MatrixProduct): boolean =>
  m % core.m === 0 &&
  n % core.n === 0 &&
  k % core.k === 0 &&
  types.every((t) => t === core.from) &&
  isExactEnough(core);

// ---- blocks ----

const known = new WeakMap<Gpu, Map<TensorCore | undefined, readonly Block[]>>();
const blocksFor = (gpu: Gpu, core: TensorCore | undefined, make: () => readonly Block[]) =>
  getOrMake(
    getOrMake(known, gpu, () => new Map()),
    core,
    make,
  );

const powers = (most: number): number[] => {
  const all: number[] = [];
  for (let n = 1; n <= most; n *= 2) all.push(n);
  return all;
};
/** Those that move least first. */
const ranked = (blocks: readonly Block[]): readonly Block[] => {
  const order = blocks.toSorted((a, b) => a.moving - b.moving || skew(a) - skew(b) || b.n.size - a.n.size);
  const isFirst = (b: Block): boolean =>
    order.find((x) => x.m.size === b.m.size && x.n.size === b.n.size) === b;
  return order.filter(isFirst);
};
/** How far the threads or warps of a block are from a square, which reads the fewest operands. */
const skew = ({ m, n }: Block): number => Math.max(m.threads / n.threads, n.threads / m.threads);

/**
 * For tensor cores: each warp has several of their matrices. As every scheduler has a tensor core of its own,
 * there is a warp for each at least, but for the smallest block of all.
 */
function tensorCoreBlocks(gpu: Gpu, core: TensorCore): readonly Block[] {
  return blocksFor(gpu, core, () => {
    const tiles = matricesOf(gpu, core);
    const most = workgroupThreads(gpu) / gpu.warp;
    const grids = powers(most).flatMap((m) => powers(most / m).map((n) => [m, n] as const));
    const blocks = tiles.flatMap((tile) =>
      grids
        .filter(
          ([m, n]) => m * n >= gpu.schedulers && m * n * gpu.warp * tile.registers <= gpu.registersPerUnit,
        )
        .map(([m, n]) => tensorCoreBlock(gpu, core, tile, m, n)),
    );
    const smallest = tiles.at(-1);
    return ranked(smallest === undefined ? blocks : [...blocks, tensorCoreBlock(gpu, core, smallest, 1, 1)]);
  });
}
/** Matrices of a warp, and the registers that a thread needs for them. */
interface WarpTile {
  readonly m: number;
  readonly n: number;
  readonly registers: number;
}
/** From the most that the registers of a thread hold down to one: the longer side is halved each time. */
function matricesOf(gpu: Gpu, core: TensorCore): WarpTile[] {
  const registers = (m: number, n: number): number => {
    const words = (elements: number): number => (elements * core.from.itemsize) / 4;
    // operands of the next iteration are read while those of this one are multiplied
    const operands = 2 * (m * words(core.a.elements) + n * words(core.b.elements));
    return registersOf(m * n * core.c.elements, operands);
  };
  const tiles: WarpTile[] = [];
  let [m, n] = [1, 1];
  while (registers(m, n) <= gpu.registersPerThread) {
    tiles.unshift({ m, n, registers: registers(m, n) });
    if (m * core.m > n * core.n) n *= 2;
    else m *= 2;
  }
  return tiles;
}
function tensorCoreBlock(gpu: Gpu, core: TensorCore, tile: WarpTile, m: number, n: number): Block {
  const { itemsize } = core.from;
  const rows: Side = { lanes: tile.m, threads: m, far: 1, size: tile.m * m * core.m };
  const columns: Side = { lanes: tile.n, threads: n, far: 1, size: tile.n * n * core.n };
  const read = ((tile.m * core.m + tile.n * core.n) * itemsize) / (tile.m * core.m * tile.n * core.n);
  const moving = read / gpu.sharedRate + fetching(rows, columns, itemsize) / gpu.fetchRate;
  const line = gpu.transactionBytes / (core.k * itemsize);
  const isAlone = 2 * m * n * gpu.warp * tile.registers > gpu.registersPerUnit;
  // a workgroup that is alone on its compute unit has nothing to run while it waits: it prefetches more
  // stages
  const pipelines =
    core.isOpaque || !gpu.hasAsyncCopy
      ? // operands leave no registers for copies in flight
        [Math.max(1, line / 2), 1].map((lanes) => ({ lanes, stages: 1 }))
      : isAlone
        ? [MAX_STAGES, MAX_STAGES - 1].map((stages) => ({ lanes: line, stages }))
        : [
            ...[MAX_STAGES - 1, MAX_STAGES - 2].map((stages) => ({ lanes: line, stages })),
            { lanes: Math.max(1, line / 2), stages: MAX_STAGES - 2 },
          ];
  return {
    m: rows,
    n: columns,
    moving,
    pipelines,
    laneBytes: (rows.size + columns.size) * core.k * itemsize,
  };
}
/** Bytes that a block fetches for each of its products. */
const fetching = (m: Side, n: Side, itemsize: number): number =>
  ((m.size + n.size) * itemsize) / (m.size * n.size);

/**
 * For single threads, in float32: a square workgroup whose threads have square tiles, as large as leaves
 * registers for a second workgroup. Neighbours of a row in shared memory are read by neighbours in the
 * workgroup, a vector each.
 */
function threadBlocks(gpu: Gpu): readonly Block[] {
  return blocksFor(gpu, undefined, () => {
    const side = 2 ** Math.floor(Math.log2(workgroupThreads(gpu)) / 2);
    const sides = powers(gpu.registersPerThread).filter((t) => {
      const registers = registersOf(t * t, (t * t) / 2);
      return (
        t > 1 && registers <= gpu.registersPerThread && 2 * side * side * registers <= gpu.registersPerUnit
      );
    });
    return ranked(sides.map((t) => threadBlock(gpu, side, t)));
  });
}
function threadBlock(gpu: Gpu, side: number, tile: number): Block {
  const itemsize = 4;
  const vector = Math.min(tile, gpu.vectorBytes / itemsize);
  const m: Side = { lanes: tile, threads: side, far: 1, size: tile * side };
  const n: Side = { lanes: vector, threads: side, far: tile / vector, size: tile * side };
  const moving =
    (2 * tile * itemsize) / (tile * tile) / gpu.sharedRate + fetching(m, n, itemsize) / gpu.fetchRate;
  const sector = sectorOf(gpu) / itemsize;
  // two sectors in an iteration, if the unrolled loop fits the instruction cache
  const isLong = 2 * sector * tile * tile <= gpu.loopInstructions;
  const pipelines = isLong
    ? [2 * sector, sector].map((lanes) => ({ lanes, stages: MAX_STAGES - 1 }))
    : [MAX_STAGES, MAX_STAGES / 2].map((stages) => ({ lanes: sector, stages }));
  return { m, n, moving, pipelines, laneBytes: (m.size + n.size) * itemsize };
}

/**
 * The blocks that divide the result, starting with the first that leaves few compute units idle; else the
 * smallest.
 */
function candidates(blocks: readonly Block[], { m, n, others }: MatrixProduct, gpu: Gpu): readonly Block[] {
  const whole = blocks.filter((b) => m % b.m.size === 0 && n % b.n.size === 0);
  const count = (b: Block): number => (others * m * n) / (b.m.size * b.n.size);
  const first = whole.findIndex((b) => count(b) >= gpu.computeUnits * (1 - IDLE));
  if (first >= 0) return whole.slice(first);
  const most = Math.max(...whole.map(count));
  return whole.filter((b) => count(b) === most).slice(0, 1);
}

// ---- lists ----

/**
 * Of the first blocks that fit in shared memory, with all their pipelines. `k`: elements of the sum in a
 * lane.
 */
function listsOf(
  product: MatrixProduct,
  blocks: readonly Block[],
  k: number,
  { sharedMax }: Target,
  gpu: Gpu,
): OptOp[][] {
  const fitting = blocks
    .map((b) => ({
      sides: sideOpts(product, b),
      pipelines: b.pipelines
        .map(({ lanes, stages }) => ({
          lanes: dividing(product.k / k, lanes),
          stages: Math.min(stages, maxStages(gpu)),
        }))
        // where the sum or the machine allows no more, two pipelines may be the same
        .filter((p, i, all) => i === all.findIndex((x) => x.lanes === p.lanes && x.stages === p.stages))
        .filter((p) => p.stages * p.lanes * b.laneBytes <= sharedMax),
    }))
    .filter(({ pipelines }) => pipelines.length > 0);
  return fitting
    .slice(0, PROPOSED)
    .flatMap(({ sides, pipelines }) => pipelines.map((p) => [...sides, ...pipelineOpts(product, p)]));
}

function sideOpts({ axes }: MatrixProduct, block: Block): OptOp[] {
  const side = (axis: number, { lanes, threads, far }: Side): OptOp[] => {
    const opts = [
      splitBy("UPCAST", axis, lanes),
      splitBy("LOCAL", axis, threads),
      splitBy("UPCAST", axis, far),
    ];
    return opts.filter((o) => factorOf(o) > 1);
  };
  return [...side(axes.m, block.m), ...side(axes.n, block.n)];
}

/** The largest power of two up to `most`, itself one, that divides n. */
const dividing = (n: number, most: number): number => (n % most === 0 ? most : dividing(n, most / 2));

/** The lanes of an iteration, and the pipeline stages to prefetch. */
function pipelineOpts({ axes }: MatrixProduct, { lanes, stages }: Pipeline): OptOp[] {
  const unroll: OptOp[] = lanes > 1 ? [{ op: "UNROLL", axis: axes.k, factor: lanes }] : [];
  return [...unroll, { op: "SHARED", axis: axes.k, stages }];
}
