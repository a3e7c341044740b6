// Lists of OptOps for a product of matrices on a GPU, the best first: blocks of the result whose operands
// come through shared memory, multiplied by tensor cores where the types fit. The blocks are all that the
// target has registers for, ranked by the cycles that moving the operands takes. In goes the kernel lowered
// without any OptOps. Each list is a proposal: one that does not fit the kernel after all is refused by
// lowering, and the next is taken.

import { getOrMake } from "../../../helpers.ts";
import type { TensorCore } from "../../../uop/matrix.ts";
import { REGISTER_STAGES } from "../../linear/stagedcopies.ts";
import type { KernelGraph } from "../../lower/lower.ts";
import type { Gpu, Target } from "../../target.ts";
import { isExactEnough } from "../mma.ts";
import { factorOf, type OptOp, splitBy } from "../opts.ts";
import { maxStages, pays } from "../shared.ts";
import { type MatrixProduct, matrixProducts, plainProduct } from "./matrixproduct.ts";
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
  /** elements of each side that a lane of the sum has */
  readonly depth: number;
  readonly threads: number;
  /** registers that a thread has left for copies in flight */
  readonly free: number;
}

/** The terms of a sum that several threads share, where there are too few blocks of results. */
const LONG = 1024;
/** How much less a block has to move that does not divide the result: its loads and stores are gated. */
const GATED = 1.5;
/** A larger block is better, even if this part of the compute units is idle. */
const IDLE = 0.1;
/** Blocks that are proposed: where the first is refused, a smaller one may fit. */
const PROPOSED = 2;
/** The most iterations that are worth their shared memory. */
const MAX_STAGES = 4;
/** The fewest bytes that are read from memory at once: a quarter of a transaction. */
const sectorOf = (gpu: Gpu): number => gpu.transactionBytes / 4;

export function productLists(lowered: KernelGraph, target: Target, gpu: Gpu): OptOp[][] {
  const lists = matrixProducts(lowered, gpu).flatMap((p) => tensorCoreLists(p, target, gpu));
  const best = lists.toSorted((x, y) => x.score - y.score).flatMap((l) => l.lists);
  return [...best, ...threadLists(lowered, target, gpu, true)];
}
/** For single threads. `isWhole`: of blocks that divide the result; otherwise of those that do not. */
export function threadLists(lowered: KernelGraph, target: Target, gpu: Gpu, isWhole: boolean): OptOp[][] {
  const product = pays(gpu) ? plainProduct(lowered) : undefined;
  if (product === undefined) return [];
  const [block] = candidates(threadBlocks(gpu), product, gpu);
  if (block === undefined || divides(block, product) !== isWhole) return [];
  if (!isWhole && !isBusy(block, product, gpu)) return [];
  return listsOf(product, [block], 1, target, gpu);
}

/** The lists of one way to see a kernel as a product, and the cycles that the best of them takes for one. */
interface ScoredLists {
  readonly score: number;
  readonly lists: OptOp[][];
}
function tensorCoreLists(product: MatrixProduct, target: Target, gpu: Gpu): ScoredLists[] {
  const number = gpu.tensorCores.findIndex((c) => fits(c, product));
  const core = gpu.tensorCores[number];
  if (core === undefined) return [];
  const blocks = candidates(tensorCoreBlocks(gpu, core), product, gpu);
  const [first] = blocks;
  if (first === undefined) return [];
  const isNew = product.opts.length > 0 || !divides(first, product);
  if (isNew && product.k > LONG && !isBusy(first, product, gpu)) return [];
  const step: OptOp = { op: "TC", axis: product.axes.k, core: number };
  const lists = listsOf(product, blocks, core.k, target, gpu);
  lists.push(sideOpts(product, first));
  const all = lists.map((list) => [...product.opts, step, ...list]);
  return [{ score: scoreOf(first, product, gpu), lists: all }];
}

/** Types that the step takes as they are, and sides that have one of its matrices at least. */
const fits = (core: TensorCore, { m, n, k, types }: MatrixProduct): boolean =>
  m >= core.m && n >= core.n && k >= core.k && types.every((t) => t === core.from) && isExactEnough(core);

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
    depth: core.k,
    threads: m * n * gpu.warp,
    free: gpu.registersPerThread - tile.registers,
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
  const registers = registersOf(tile * tile, (tile * tile) / 2);
  return {
    m,
    n,
    moving,
    pipelines,
    laneBytes: (m.size + n.size) * itemsize,
    depth: 1,
    threads: side * side,
    free: gpu.registersPerThread - registers,
  };
}

/**
 * The blocks starting with the first that leaves few compute units idle; else the smallest. Those that divide
 * the result come first unless they move far more: they need no gates.
 */
function candidates(blocks: readonly Block[], product: MatrixProduct, gpu: Gpu): readonly Block[] {
  const whole = blocks.filter((b) => divides(b, product));
  const score = (b: Block): number => scoreOf(b, product, gpu);
  const ranked = blocks.toSorted((x, y) => score(x) - score(y));
  const isEnough = (b: Block): boolean => isBusy(b, product, gpu);
  const [first, any] = [whole.findIndex(isEnough), ranked.findIndex(isEnough)];
  const [wholeBlock, anyBlock] = [whole[first], ranked[any]];
  if (anyBlock !== undefined && (wholeBlock === undefined || score(wholeBlock) > GATED * score(anyBlock)))
    return ranked.slice(any);
  if (wholeBlock !== undefined) return whole.slice(first);
  const few = whole.length > 0 ? whole : ranked;
  const most = Math.max(...few.map((b) => count(b, product)));
  return few.filter((b) => count(b, product) === most).slice(0, 1);
}
const divides = ({ m, n }: Block, product: MatrixProduct): boolean =>
  product.m % m.size === 0 && product.n % n.size === 0;
const count = ({ m, n }: Block, product: MatrixProduct): number =>
  product.others * Math.ceil(product.m / m.size) * Math.ceil(product.n / n.size);
const isBusy = (block: Block, product: MatrixProduct, { computeUnits }: Gpu): boolean =>
  count(block, product) >= computeUnits * (1 - IDLE);

/** Cycles for one product of elements: what is moved, and what lies beyond the end is computed, too. */
function scoreOf(block: Block, { m, n, copies }: MatrixProduct, gpu: Gpu): number {
  const { cycles, schedulers, warp } = gpu;
  const area = Math.ceil(m / block.m.size) * block.m.size * Math.ceil(n / block.n.size) * block.n.size;
  const perElement = copies.map(({ isAsync, elements }) => {
    if (isAsync) return 0;
    // each is loaded by itself, with an address and a gate, and stored with the others of its word
    return (elements * (1 + cycles.copy) + cycles.copy) / elements / warp / schedulers;
  });
  const copied = (perElement[0] ?? 0) * block.m.size + (perElement[1] ?? 0) * block.n.size;
  return (block.moving + copied / (block.m.size * block.n.size)) * (area / (m * n));
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
        .map((p) => pipelineFor(p, b, product, k, gpu))
        // where the sum or the machine allows no more, two pipelines may be the same
        .filter((p, i, all) => i === all.findIndex((x) => x.lanes === p.lanes && x.stages === p.stages))
        .filter((p) => p.stages * p.lanes * b.laneBytes <= sharedMax),
    }))
    .filter(({ pipelines }) => pipelines.length > 0);
  return fitting
    .slice(0, PROPOSED)
    .flatMap(({ sides, pipelines }) => pipelines.map((p) => [...sides, ...pipelineOpts(product, p)]));
}

/** The same pipeline as far as the sum, the machine and the registers for copies in flight allow it. */
function pipelineFor(
  { lanes, stages }: Pipeline,
  block: Block,
  product: MatrixProduct,
  k: number,
  gpu: Gpu,
): Pipeline {
  const { copies } = product;
  const held = [block.m, block.n].map((side, i) => (copies[i]?.isAsync === false ? side.size : 0));
  const inFlight = (n: number): number => (held.reduce((x, y) => x + y) * block.depth * n) / block.threads;
  let fitting = dividing(product.k, k, lanes);
  while (fitting > 1 && inFlight(fitting) > block.free) fitting /= 2;
  const isAsync = copies.some((c) => c.isAsync);
  return { lanes: fitting, stages: Math.min(stages, isAsync ? maxStages(gpu) : REGISTER_STAGES) };
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

/** The part of a sum that iterations may exceed it by. */
const BEYOND = 1 / 8;
/**
 * Lanes of `k` elements of a sum of n: up to `most`, a power of two, such that few lie beyond its end. A sum
 * that lanes of one divide takes those that divide it, unless they are few.
 */
function dividing(n: number, k: number, most: number): number {
  const beyond = (lanes: number): number => Math.ceil(n / (lanes * k)) * lanes * k - n;
  let lanes = most;
  while (lanes > 1 && beyond(lanes) > BEYOND * n) lanes /= 2;
  let whole = most;
  while (whole > 1 && beyond(whole) > 0) whole /= 2;
  return beyond(whole) === 0 && 2 * whole >= lanes ? whole : lanes;
}

/** The lanes of an iteration, and the pipeline stages to prefetch. */
function pipelineOpts({ axes }: MatrixProduct, { lanes, stages }: Pipeline): OptOp[] {
  const unroll: OptOp[] = lanes > 1 ? [{ op: "UNROLL", axis: axes.k, factor: lanes }] : [];
  return [...unroll, { op: "SHARED", axis: axes.k, stages }];
}
