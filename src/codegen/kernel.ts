// The whole of codegen, in order: lower, decompose, expand, linearize; then what the kernel is called and what it costs. In
// goes an AST and a list of OptOps, out comes a Kernel that a renderer can spell and a runner can launch.

import { Pointer } from "../dtype.ts";
import { env } from "../env.ts";
import { ArgumentError } from "../errors.ts";
import { toposort } from "../helpers.ts";
import { isReduceOp } from "../ops.ts";
import type { LazyOp } from "../schedule/lazyop.ts";
import { type Sint, smax, type Variable } from "../shape/symbolic.ts";
import { checkGraph, checkList } from "../uop/spec.ts";
import { largest, type UOp, type UOpGraph } from "../uop/uops.ts";
import { linearize } from "./linear/linearize.ts";
import { type Axis, type Lowered, lower } from "./lower/lower.ts";
import { chooseOpts } from "./opt/heuristics/cpu.ts";
import { chooseGpuOpts } from "./opt/heuristics/gpu.ts";
import { swapSums } from "./opt/interchange.ts";
import type { OptOp } from "./opt/opts.ts";
import { packOperands } from "./opt/pack.ts";
import { shareLoads } from "./opt/shared.ts";
import { useTensorCores } from "./opt/tensorcore.ts";
import { blockSums } from "./passes/blocksums.ts";
import { pack } from "./passes/coalesce.ts";
import { decompose } from "./passes/decompose.ts";
import { expand, isLane } from "./passes/expand.ts";
import { pickOneHot } from "./passes/onehot.ts";
import type { Target } from "./target.ts";

export interface Kernel {
  readonly name: string;
  readonly uops: UOpGraph;
  readonly opts: readonly OptOp[];
  readonly globalSize: readonly Sint[];
  readonly localSize: readonly number[];
  /** positions of the buffers it takes: folding may leave an input that nothing reads */
  readonly globals: readonly number[];
  readonly vars: readonly Variable[];
  /** some elements are computed twice (PADTO): no output may lie where an input does */
  readonly repeats: boolean;
  /** arithmetic on values, all loops counted; addresses do not count */
  readonly ops: number;
  /** each buffer's part that is touched, once */
  readonly bytes: number;
}

/** Lowers the AST of a ScheduleItem to the kernel that a renderer of this target can spell. */
export function toKernel(ast: readonly LazyOp[], opts: readonly OptOp[], target: Target): Kernel {
  return finish(ast, prepare(ast, opts, target), opts, target);
}

/** The same with the OptOps that the heuristic chooses. `inPlace`: one of its inputs is its output. */
export function toFastKernel(ast: readonly LazyOp[], target: Target, inPlace: boolean): Kernel {
  const plain = prepare(ast, [], target);
  const { gpu } = target;
  if (gpu !== undefined) return firstThatFits(ast, plain, chooseGpuOpts(plain, target, gpu), target);
  const opts = chooseOpts(plain, target, inPlace);
  // who runs a loop is for linearize to say: the graph is the same
  const isSame = opts.every((o) => o.op === "THREAD");
  return finish(ast, isSame ? plain : prepare(ast, opts, target), opts, target);
}
/** A list may ask for what the kernel does not have: shared memory, operands that are boxes. No list at all always fits. */
function firstThatFits(
  ast: readonly LazyOp[],
  plain: Lowered,
  lists: readonly OptOp[][],
  target: Target,
): Kernel {
  for (const opts of lists) {
    const kernel = fitting(ast, opts, target);
    if (kernel !== undefined) return kernel;
  }
  return finish(ast, plain, [], target);
}
/** undefined: the list does not fit the kernel. */
export function fitting(ast: readonly LazyOp[], opts: readonly OptOp[], target: Target): Kernel | undefined {
  try {
    return toKernel(ast, opts, target);
  } catch (e) {
    if (e instanceof ArgumentError) return undefined;
    throw e;
  }
}

/** The graph of the kernel with the axes that OptOps name, before anything is written out. */
export function prepare(ast: readonly LazyOp[], opts: readonly OptOp[], target: Target): Lowered {
  const lowered = lower(ast, opts, target);
  if (env.SPEC) checkGraph(lowered.sink, "lower");
  const picked = pickOneHot(lowered.sink, lowered.arena);
  if (env.SPEC) checkGraph(picked, "pickOneHot");
  const packed = packOperands({ ...lowered, sink: picked }, opts, target);
  if (env.SPEC) checkGraph(packed, "packOperands");
  const sink = swapSums({ ...lowered, sink: packed }, opts, target);
  if (env.SPEC) checkGraph(sink, "swapSums");
  return { ...lowered, sink };
}

function finish(ast: readonly LazyOp[], plain: Lowered, opts: readonly OptOp[], target: Target): Kernel {
  const tensors = useTensorCores(plain, opts, target);
  const lowered = { ...tensors, sink: shareLoads(tensors, opts) };
  if (env.SPEC) checkGraph(lowered.sink, "shareLoads");
  const blocked = blockSums(lowered);
  if (env.SPEC) checkGraph(blocked, "blockSums");
  const sink = decompose(blocked, target, lowered.arena);
  if (env.SPEC) checkGraph(sink, "decompose");
  const expanded = expand({ ...lowered, sink }, target);
  if (env.SPEC) checkGraph(expanded, "expand");
  const written = target.gpu === undefined ? expanded : pack(expanded, lowered.arena, target.gpu);
  if (env.SPEC) checkGraph(written, "pack");
  const { uops, globalSize, localSize } = linearize({ ...lowered, sink: written }, opts, target);
  if (env.SPEC) checkList(uops);
  const reducing = toposort(ast, (u) => u.srcs).some((u) => isReduceOp(u.op));
  const { order, axes } = lowered;
  const reduces = axes.filter((a) => a.kind === "reduce");
  const name = kernelName(reducing ? "r" : "E", [...order, ...reduces, ...axes.filter(isLane)]);
  const ops = countOps(uops, [...globalSize, ...localSize], target.gpu?.warp ?? 1);
  const globals = uops.globals().map((u) => u.arg[0]);
  const repeats = opts.some((o) => o.op === "PADTO");
  const sizes = { globalSize, localSize };
  return { name, uops, opts, ...sizes, globals, vars: uops.vars(), repeats, ops, bytes: countBytes(ast) };
}

const used = new Map<string, number>();

/** r_4_2: a reduce with an output axis of 4 over 2 elements. The second kernel of a name is r_4_2n1. */
function kernelName(kind: "r" | "E", axes: readonly Axis[]): string {
  const sizes = axes.length === 0 ? ["1"] : axes.map((a) => String(a.size));
  const name = [kind, ...sizes].join("_").replaceAll(/[^A-Za-z0-9_]/g, "");
  const n = used.get(name) ?? 0;
  used.set(name, n + 1);
  return n === 0 ? name : `${name}n${n}`;
}

/** Starts the numbering of kernel names anew. */
export const resetKernelNames = (): void => used.clear();

/** `warp`: the items that do a WMMA together. */
function countOps(uops: UOpGraph, grid: readonly Sint[], warp: number): number {
  const addresses = new Set<UOp>();
  const mark = (roots: readonly (UOp | undefined)[]) => {
    const todo = roots.filter((u) => u !== undefined);
    for (let u = todo.pop(); u !== undefined; u = todo.pop()) {
      if (addresses.has(u) || u.op === "LOAD") continue;
      addresses.add(u);
      todo.push(...u.srcs);
    }
  };
  for (const u of uops) {
    if (u.op === "LOAD" || u.op === "LDMATRIX") mark(u.srcs.slice(1, 3));
    else if (u.op === "STORE") mark([u.srcs[1], u.srcs[3]]);
    else if (u.op === "ASYNC") mark([u.srcs[1], ...u.srcs.slice(3)]);
    else if (u.op === "LOOP") mark(u.srcs);
  }
  let times = grid.reduce<number>((n, s) => n * smax(s), 1);
  let ops = 0;
  const trips: number[] = [];
  for (const u of uops) {
    if (u.op === "LOOP") {
      const end = u.srcs[1] as UOp;
      const trip = largest(end);
      trips.push(trip);
      times *= trip;
    } else if (u.op === "ENDLOOP") times /= trips.pop() ?? 1;
    else if (u.op === "WMMA") ops += (times * 2 * u.arg.m * u.arg.n * u.arg.k) / warp;
    else if (u.op === "ALU" && !addresses.has(u) && !(u.dtype instanceof Pointer)) {
      ops += times * (u.arg === "MULACC" ? 2 : 1) * (u.dtype?.count ?? 1);
    }
  }
  return Math.round(ops);
}

function countBytes(ast: readonly LazyOp[]): number {
  const touched = new Map<number, number>();
  for (const u of toposort(ast, (x) => x.srcs)) {
    if (u.op !== "LOAD" && u.op !== "STORE") continue;
    const elements = Math.min(u.arg.st.realSize(), smax(u.arg.st.size));
    touched.set(u.arg.idx, Math.max(touched.get(u.arg.idx) ?? 0, elements * u.arg.dtype.itemsize));
  }
  return [...touched.values()].reduce((a, b) => a + b, 0);
}
