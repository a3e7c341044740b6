// The whole of codegen: PASSES in their order, between lower (AST -> graph) and linearize (graph -> list). In
// goes an AST and a list of OptOps, out comes a Kernel that a renderer can spell and a runner can launch.

import { checkGraph, checkList, showGraph } from "#codegen/diagnostics";
import { IMAGE_PASSES } from "#codegen/images";
import { BY_INDEX, expand } from "#codegen/tuning";
import { env } from "../env.ts";
import { ArgumentError } from "../errors.ts";
import { runSync, type Step } from "../helpers.ts";
import { isReduceOp } from "../ops.ts";
import { PAUSE } from "../pace.ts";
import { astNodes, type LazyOp } from "../schedule/lazyop.ts";
import type { Sint, Variable } from "../shape/symbolic.ts";
import { type Axis, isLane } from "../uop/axis.ts";
import type { UOpGraph } from "../uop/list.ts";
import { countBytes, countOps } from "./analysis/cost.ts";
import { linearize } from "./linear/linearize.ts";
import { type KernelGraph, lower } from "./lower/lower.ts";
import { chooseLists } from "./opt/heuristics/index.ts";
import type { OptOp, OptOpName } from "./opt/opts.ts";
import { recordOf } from "./opt/record.ts";
import { onSink, type Pass, type PassContext, passSteps, timed } from "./pass.ts";
import { blockSums } from "./passes/blocksums.ts";
import { decompose } from "./passes/decompose.ts";
import type { Target } from "./target.ts";
import { type FloatConstants, settleConstants, withConstants } from "./template.ts";

/** The pass for the OptOps of one name: it runs the graph transformation of their record. */
const optOp = (op: OptOpName, name: string): Pass => ({
  name,
  applies: ({ opts }) => opts.some((o) => o.op === op),
  run: (graph, { opts, target }) => {
    const record = recordOf(target, op);
    return opts
      .filter((o) => o.op === op)
      .reduce((g, o, index) => record?.transform?.(g, o, { opts, target, index }) ?? g, graph);
  },
});

/**
 * Up to the graph that the heuristics look at. A kernel goes through these twice: without OptOps, for the
 * heuristics, and then with the list that they chose.
 */
const KEPT_VALUES = optOp("KEEP", "kept values");
const beforeHeuristics = (): readonly Pass[] => [
  // this OptOp comes first because it finds values by the nodes that lower made
  KEPT_VALUES,
  // before the heuristics, so that they see a gather as a load and a scatter as a loop over its terms
  ...BY_INDEX,
];
/** The rest, with the chosen list. */
const AFTER_HEURISTICS: readonly Pass[] = [
  // OptOps that change the graph; without them there is nothing to do
  optOp("DOT", "dot products of pairs"),
  optOp("PACK", "operand packing"),
  optOp("INTERCHANGE", "loop interchange"),
  optOp("TC", "tensor cores"),
  optOp("SHARED", "shared memory"),
  // what every kernel goes through
  onSink("block sums", blockSums),
  onSink("decompose", ({ sink, arena }, { target }) => decompose(sink, target, arena)),
  onSink("expand", (graph, { target }) => expand(graph, target)),
  onSink("coalesce", ({ sink, arena }, { target: { gpu, grid } }) =>
    gpu === undefined || grid === undefined ? sink : grid.coalesce(sink, arena, gpu),
  ),
  ...IMAGE_PASSES,
];
/** From the graph that lower made to the one that linearize lists. */
export const PASSES: readonly Pass[] = [...beforeHeuristics(), ...AFTER_HEURISTICS];

export interface Kernel {
  readonly name: string;
  /** the name without the number that tells it from others of the same name */
  readonly baseName: string;
  readonly uops: UOpGraph;
  readonly opts: readonly OptOp[];
  readonly globalSize: readonly Sint[];
  readonly localSize: readonly number[];
  /** positions of the buffers it takes: folding may leave an input that nothing reads */
  readonly globals: readonly number[];
  readonly vars: readonly Variable[];
  /** an OptOp has some elements computed twice: no output may share memory with an input */
  readonly repeats: boolean;
  /** arithmetic on values, all loops counted; addresses do not count */
  readonly ops: number;
  /** the bytes of each buffer that are touched, counted once */
  readonly bytes: number;
  /** which of its constants may have other values: template.ts */
  readonly floats: FloatConstants;
}

/** Lowers the AST of a ScheduleItem to the kernel that a renderer of this target can spell. */
export const toKernel = (ast: readonly LazyOp[], opts: readonly OptOp[], target: Target): Kernel =>
  runSync(kernelSteps(ast, opts, target), "toKernel");
/** The same as a Step, which can pause between passes. */
export function* kernelSteps(ast: readonly LazyOp[], opts: readonly OptOp[], target: Target): Step<Kernel> {
  const prepared = yield* prepareSteps(ast, opts, target);
  return yield* finishSteps(ast, prepared, { opts, target });
}

/** The same with the OptOps that the heuristic chooses. `inPlace`: one of its inputs is its output. */
export const toFastKernel = (ast: readonly LazyOp[], target: Target, inPlace: boolean): Kernel =>
  runSync(fastKernelSteps(ast, target, inPlace), "toFastKernel");
/** The same as a Step, which can pause between passes. */
export function* fastKernelSteps(ast: readonly LazyOp[], target: Target, inPlace: boolean): Step<Kernel> {
  const plain = yield* prepareSteps(ast, [], target);
  for (const opts of chooseLists(plain, target, inPlace)) {
    yield PAUSE;
    if (opts.every((o) => recordOf(target, o.op)?.onlyLinearize))
      return yield* finishSteps(ast, plain, { opts, target });
    const kernel = yield* fittingSteps(ast, opts, target);
    if (kernel !== undefined) return kernel;
  }
  return yield* finishSteps(ast, plain, { opts: [], target });
}

/** A lowered kernel, and the ordinary constants of its AST in the order of `astStructure`. */
export interface KernelTemplate {
  readonly kernel: Kernel;
  readonly constants: readonly number[];
}
/** The kernel of the same structure with these constants; undefined: it has to be lowered. */
export function similarKernel(
  { kernel, constants }: KernelTemplate,
  now: readonly number[],
): Kernel | undefined {
  const made = withConstants(kernel, constants, now);
  if (made === undefined) return undefined;
  if (env.SPEC) checkList(made.uops);
  return { ...kernel, ...made, name: uniqueName(kernel.baseName) };
}

/** undefined: the list asks for what the kernel or the target does not have. The empty list always fits. */
export const fitting = (ast: readonly LazyOp[], opts: readonly OptOp[], target: Target): Kernel | undefined =>
  runSync(fittingSteps(ast, opts, target), "fitting");
/** The same as a Step, which can pause between passes. */
export function* fittingSteps(
  ast: readonly LazyOp[],
  opts: readonly OptOp[],
  target: Target,
): Step<Kernel | undefined> {
  try {
    return yield* kernelSteps(ast, opts, target);
  } catch (e) {
    if (e instanceof ArgumentError) return undefined;
    throw e;
  }
}

/** The graph of the kernel with the axes that OptOps name, before anything is written out. */
export const prepare = (ast: readonly LazyOp[], opts: readonly OptOp[], target: Target): KernelGraph =>
  runSync(prepareSteps(ast, opts, target), "prepare");
function* prepareSteps(ast: readonly LazyOp[], opts: readonly OptOp[], target: Target): Step<KernelGraph> {
  const lowered = timed(
    "lower",
    () => lower(ast, opts, target),
    ({ sink }) => showGraph(sink),
  );
  if (env.SPEC) checkGraph(lowered.sink, "lower");
  yield PAUSE;
  return yield* passSteps(lowered, beforeHeuristics(), { opts, target });
}

function* finishSteps(ast: readonly LazyOp[], prepared: KernelGraph, context: PassContext): Step<Kernel> {
  const { opts, target } = context;
  const graph = yield* passSteps(prepared, AFTER_HEURISTICS, context);
  const list = timed(
    "linearize",
    () => linearize(graph, opts, target),
    ({ uops }) => String(uops),
  );
  const { uops, globalSize, localSize } = list;
  const floats = settleConstants(graph.arena);
  if (env.SPEC) checkList(uops);
  const baseName = kernelName(ast, graph);
  return {
    name: uniqueName(baseName),
    baseName,
    uops,
    opts,
    globalSize,
    localSize,
    globals: uops.globals().map((u) => u.position),
    vars: uops.vars(),
    repeats: opts.some((o) => recordOf(target, o.op)?.repeats),
    ops: countOps(uops, [...globalSize, ...localSize], target.gpu?.warp ?? 1),
    bytes: countBytes(ast),
    floats,
  };
}

const used = new Map<string, number>();
const LONGEST_NAME = 200;

/** r_4_2: a reduction with an output axis of 4 over 2 elements. */
function kernelName(ast: readonly LazyOp[], { order, axes }: KernelGraph): string {
  const kind = astNodes(ast).some((u) => isReduceOp(u.op)) ? "r" : "E";
  const all: readonly Axis[] = [...order, ...axes.filter((a) => a.kind === "reduce"), ...axes.filter(isLane)];
  const sizes = all.length === 0 ? ["1"] : all.map((a) => String(a.size));
  // kernels of different sizes may get one name: the number that follows tells them apart
  return [kind, ...sizes]
    .join("_")
    .replaceAll(/[^A-Za-z0-9_]/g, "")
    .slice(0, LONGEST_NAME);
}
/** The second kernel of a name is r_4_2n1. */
export function uniqueName(name: string): string {
  const n = used.get(name) ?? 0;
  used.set(name, n + 1);
  return n === 0 ? name : `${name}n${n}`;
}

/** Restarts the numbering of kernel names. */
export const resetKernelNames = (): void => used.clear();
