// Which values are stored because they were computed twice already. A kernel does not store what it computes
// on the way. Data that is made by lazy ops and read in every step of a loop would be computed in each of
// them. The rule: what a third run would compute again is stored then, if reading it is cheaper. consumed.ts
// counts the runs.

import { env } from "../env.ts";
import type { LazyBuffer } from "../lazy/lazybuffer.ts";
import { isAluOp, opCost } from "../ops.ts";
import { elements } from "./graph.ts";
import { isBetterStored } from "./split.ts";

/** How many more runs are expected to read the value. */
const RUNS = 100;
/** A value that takes more bytes than it is computed from must be this many times dearer to compute. */
const GROWTH = 4;
/** Larger values are never stored unasked. */
const MAX_BYTES = 1 << 28;
/** Of a value of which a run reads a smaller part, the parts are computed. */
const MIN_PART = 1 / 16;
/** How many nodes are counted to find what it costs to compute a value. */
const MAX_COUNTED = 200;

/** The values of a graph that two runs have computed already and that are better stored now. */
export function repeatedIn(nodes: readonly LazyBuffer[]): LazyBuffer[] {
  if (!env.FUSE || !nodes.some(isRepeated)) return [];
  const parts = new Map<LazyBuffer, number>();
  for (const b of nodes) {
    if (b.consumed || b.srcs === undefined) continue;
    for (const s of b.srcs) {
      const { base } = s;
      if (isRepeated(base)) parts.set(base, Math.max(parts.get(base) ?? 0, elements(s.shape)));
    }
  }
  return [...parts].filter(([b, read]) => read >= MIN_PART * elements(b.shape) && isDear(b)).map(([b]) => b);
}
const isRepeated = (b: LazyBuffer): boolean => b.repeats > 0 && b.srcs !== undefined && !b.isLoad;

/** Whether it costs more to compute all of a value again than to read it. */
function isDear(b: LazyBuffer): boolean {
  const size = elements(b.shape);
  const { itemsize } = b.dtype;
  const bytes = size * itemsize;
  if (b.onlyHolds || bytes > MAX_BYTES) return false;
  const here = new Set([b]);
  let [ops, bytesRead, counted] = [0, 0, 0];
  for (const x of here) {
    if (x.op !== undefined && isAluOp(x.op)) ops += elements(x.shape) * opCost(x.op);
    else if (x.isReduce) ops += elements((x.sources[0] as LazyBuffer).shape);
    for (const { base } of x.sources) {
      if (base.op === "ARANGE") counted += elements(base.shape) * itemsize;
      else if (base.srcs !== undefined && !base.isLoad) here.add(base);
      else bytesRead += elements(base.shape) * base.dtype.itemsize;
    }
    if (here.size > MAX_COUNTED) break;
  }
  // what is made of numbers that are counted, as random numbers are, is made of as many as there are
  const grows = bytes > bytesRead + counted;
  if (grows && bytesRead + ops / 4 < GROWTH * bytes) return false;
  return isBetterStored({ ops, bytesRead, elements: size, itemsize, evaluated: RUNS * size });
}
