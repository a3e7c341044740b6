// DOT (dot products of pairs): a sum of products of integers that fit 16 bits takes two terms in each step.
// The two neighbours of a factor become one word of 32 bits, and DOT2 multiplies word by word. A word is an
// int32 like any other: vectors, tiles and packing work on it as on other operands. In goes a graph whose
// reduce axis lowering has split into pairs; out comes the graph with words.

import { dtypes } from "../../dtype.ts";
import { toposort } from "../../helpers.ts";
import type { UOpArena } from "../../uop/arena.ts";
import type { Alu, Expr, Load, Range, Reduce, UOp } from "../../uop/node.ts";
import { substitute } from "../../uop/substitute.ts";
import { contractionOf } from "../analysis/contraction.ts";
import { constantSize } from "../analysis/loops.ts";
import { rangesOf } from "../analysis/ranges.ts";
import { strideOf } from "../analysis/strides.ts";
import type { KernelGraph } from "../lower/lower.ts";
import type { Target } from "../target.ts";
import type { OptOp } from "./opts.ts";
import { constantAxes, type OptDoc, type OptRecord, refuse } from "./record.ts";

const { int32 } = dtypes;
const PAIR = 2;

export const DOT_DOC: OptDoc = {
  textbook: "packed dot products (SIMD within a word)",
  summary:
    "A sum of products of integers that fit 16 bits takes two terms a step: one instruction multiplies both and adds " +
    "the products. For a reduce axis of even size.",
  picture: `
for k in 0..8:
  s += int32(a[k]) * int32(b[k])            DOT(0)
for k in 0..4:
  s += dot2(a[2k] a[2k+1], b[2k] b[2k+1])`,
};

export const DOT: OptRecord<"DOT"> = {
  name: "DOT",
  params: { axis: { meaning: "the reduce axis of a sum of products of small integers", least: 0 } },
  takes: "reduce",
  expected: "an even size, before any other op on it",
  once: true,
  refusal: ({ size, isWhole, number, isOutput }, _, target) => {
    if (!target.has("DOT2", int32)) return `${target.name} has no instruction for it`;
    if (isWhole && typeof size === "number" && size % PAIR === 0) return undefined;
    return `axis ${number} is ${isOutput ? "an output axis" : "a reduce axis"} of size ${String(size)}`;
  },
  candidates: (kernel, { target }) => {
    const loops = new Set(pairedLoops(kernel, target).map((r) => r.axis.of));
    return constantAxes(kernel, "reduce")
      .filter(({ axis }) => loops.has(axis))
      .map(({ axis }) => ({ op: "DOT", axis }));
  },
  tiles: (_, { axis }) => new Map([[axis, PAIR]]),
  transform(graph, opt) {
    const pair = graph.arena
      .nodes(graph.sink)
      .find((u) => u.op === "RANGE" && u.axis.kind === "tile" && u.axis.of === opt.axis);
    const made = pair?.op === "RANGE" ? withWords(graph, pair) : undefined;
    return (
      made ??
      refuse(opt, "no sum of products of integers of 16 bits goes over its axis", "DOT takes such a sum")
    );
  },
};

/** Sums of products in int32 whose factors fit 16 bits, and so do not change if they are cut to them. */
function narrowSums({ sink, arena }: KernelGraph): Reduce[] {
  const nodes = arena.nodes(sink);
  const sums = nodes.filter((u) => u.op === "REDUCE").filter((u) => u.dtype === int32 && contractionOf(u));
  if (sums.length === 0) return [];
  const known = rangesOf(nodes);
  const fits = (u: UOp): boolean => {
    const [least, greatest] = known.get(u) ?? [-Infinity, Infinity];
    return least >= -(2 ** 15) && greatest < 2 ** 15;
  };
  return sums.filter((sum) => contractionOf(sum)?.factors.every((f) => fits(f.value)));
}

/** The graph in which sums over the pairs of this range are sums of dot products. */
function withWords(graph: KernelGraph, pair: Range): KernelGraph | undefined {
  const a = graph.arena;
  const over = a
    .nodes(graph.sink)
    .filter((u) => u.op === "REDUCE")
    .filter((u) => u.ranges.includes(pair));
  const narrow = narrowSums(graph);
  if (over.length === 0 || !over.every((sum) => narrow.includes(sum))) return undefined;
  const by = new Map<UOp, UOp>();
  for (const sum of over) {
    const [x, y] = contractionOf(sum)?.factors ?? [];
    if (x === undefined || y === undefined) return undefined;
    const product = a.alu("DOT2", wordOf(x.value, pair, a), wordOf(y.value, pair, a));
    by.set(
      sum,
      a.reduce(
        "SUM",
        product,
        sum.ranges.filter((r) => r !== pair),
      ),
    );
  }
  return { ...graph, sink: substitute(graph.sink, by, a) };
}
/** Two neighbours of a factor in one word, the first at its low end. */
function wordOf(value: Expr, pair: Range, a: UOpArena): Expr {
  const at = (i: number): Expr => substitute(value, new Map<UOp, UOp>([[pair, a.int(i)]]), a);
  const low = a.alu("AND", at(0), a.constant(int32, 0xffff));
  return a.alu("OR", low, a.alu("SHL", at(1), a.constant(int32, 16)));
}

// ---- for the heuristics ----

/** An operation that makes words of loads, in the body of a sum of dot products. */
export interface WordStep {
  readonly step: Alu;
  /** what it makes them of */
  readonly loads: readonly Load[];
}
/** The operations that the words of a sum of dot products take; of another sum there are none. */
export function wordSteps(body: Expr): WordStep[] {
  if (body.op !== "ALU" || body.fn !== "DOT2") return [];
  const below = (roots: readonly UOp[], through: (u: UOp) => boolean): UOp[] =>
    toposort<UOp>([...roots], (u) => (through(u) ? u.srcs : []));
  const isValue = (u: UOp): boolean => u.op !== "LOAD" && u.op !== "REDUCE";
  return below(body.operands, isValue)
    .filter((u) => u.op === "ALU")
    .map((step) => ({ step, loads: below([step], isValue).filter((u) => u.op === "LOAD") }));
}

/** The loops that DOT can take, the best first: pairs that are neighbours in memory are one load. */
function pairedLoops(kernel: KernelGraph, target: Target): Range[] {
  if (!target.has("DOT2", int32)) return [];
  const [sum, ...others] = narrowSums(kernel);
  if (sum === undefined || others.length > 0) return [];
  const loads = toposort<UOp>([sum.body], (x) => x.srcs).filter((u) => u.op === "LOAD");
  const neighbours = (r: Range): number => loads.filter((u) => strideOf(u.index, r) === 1).length;
  return sum.ranges
    .filter((r) => r.axis.kind === "reduce" && (constantSize(r) ?? 1) % PAIR === 0)
    .sort((x, y) => neighbours(y) - neighbours(x));
}

/** The kernel as the heuristics see it after DOT on its best axis; undefined: it has no such sum. */
export function dotted(
  kernel: KernelGraph,
  target: Target,
): { readonly opt: OptOp<"DOT">; readonly kernel: KernelGraph } | undefined {
  const [loop] = target.simd === undefined ? [] : pairedLoops(kernel, target);
  const size = loop && constantSize(loop);
  if (loop === undefined || size === undefined) return undefined;
  const a = kernel.arena;
  const { of } = loop.axis;
  const steps = a.range({ size: size / PAIR, kind: "reduce", of });
  const pair = a.range({ size: PAIR, kind: "tile", of });
  const axes = [...kernel.axes];
  for (const r of [steps, pair]) axes[r.axis.id] = r.axis;
  const index = a.alu("ADD", a.alu("MUL", steps, a.int(PAIR)), pair);
  const by = new Map<UOp, UOp>();
  for (const sum of a.nodes(kernel.sink)) {
    if (sum.op !== "REDUCE" || !sum.ranges.includes(loop)) continue;
    const ranges = sum.ranges.flatMap((r) => (r === loop ? [steps, pair] : [r]));
    by.set(sum, a.reduce(sum.fn, substitute(sum.body, new Map<UOp, UOp>([[loop, index]]), a), ranges));
  }
  const split = { ...kernel, axes, sink: substitute(kernel.sink, by, a) };
  const made = withWords(split, pair);
  return made && { opt: { op: "DOT", axis: of }, kernel: made };
}
