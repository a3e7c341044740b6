// A list of OptOps for a scatter on a CPU: vectors along the row that is added at once, and parts for
// threads to share. No two threads may add to one result, and each result gets its terms in their order:
// threads have whole outer iterations, or parts of the row, or parts of the results. In the last two cases
// each of them goes through all indices.

import { prod } from "../../../helpers.ts";
import { smax } from "../../../shape/symbolic.ts";
import type { Axis } from "../../../uop/node.ts";
import type { KernelGraph } from "../../lower/lower.ts";
import type { ScatterLoops } from "../../passes/scatter.ts";
import type { Target } from "../../target.ts";
import { factorsOf, type OptOp } from "../opts.ts";

/** Vectors of a row that are added at once, and the parts that threads share: the first that divides. */
const VECTORS = [4, 2, 1] as const;
const PARTS = [8, 4, 6, 5, 10, 7, 3, 2] as const;
/** A part of a row is at least this many bytes: a few cache lines. */
const MIN_PART_BYTES = 256;
/** With rows of this many elements, going through the indices takes little of the time. */
const MIN_ROW = 8;

const sizeOf = (axes: readonly Axis[]): number => prod(axes.map((a) => smax(a.size)));
const divides = (n: number, { size }: Axis): boolean => typeof size === "number" && size % n === 0;

/** The list for a kernel that was lowered without OptOps. */
export function scatterList({ sink, arena }: KernelGraph, loops: ScatterLoops, target: Target): OptOp[] {
  const last = loops.row.at(-1);
  const [store] = sink.stores;
  const opts: OptOp[] = [];
  const isWhole = (a: Axis): boolean =>
    store?.gate !== undefined && !arena.nodes(store.gate).some((u) => u.op === "RANGE" && u.axis === a);
  // each element of a row may have an index of its own: then its neighbours go elsewhere
  if (last !== undefined && isWhole(last) && store && target.simd?.memory(store.buffer) === true) {
    const lanes = target.simd.widths.flatMap((w) => VECTORS.map((v) => v * w)).find((n) => divides(n, last));
    if (lanes !== undefined) opts.push({ op: "UPCAST", axis: last.of, lanes });
  }
  return [...opts, ...threads(loops, target, opts, store?.value.dtype.itemsize ?? 4)];
}

function threads(
  { outer, chosen, terms, row }: ScatterLoops,
  { hasThreads, core }: Target,
  opts: readonly OptOp[],
  itemsize: number,
): OptOp[] {
  const work = sizeOf([...outer, ...row]) * (sizeOf(chosen) + sizeOf(terms));
  if (!hasThreads || work < core.wakeOperations) return [];
  const shared = outer.toSorted((a, b) => smax(b.size) - smax(a.size))[0];
  if (shared !== undefined && smax(shared.size) > 1) return [{ op: "THREAD", axis: shared.of }];
  const parts = (axis: Axis | undefined, isWorth: (parts: number) => boolean): OptOp[] => {
    if (typeof axis?.size !== "number") return [];
    const left = axis.size / factorsOf(opts, "UPCAST", [axis.of]);
    const n = PARTS.find((p) => left % p === 0 && left > p && isWorth(p));
    if (n === undefined) return [];
    return [
      { op: "LOCAL", axis: axis.of, threads: left / n },
      { op: "THREAD", axis: axis.of },
    ];
  };
  const ofRow = parts(row.at(-1), (p) => (sizeOf(row.slice(-1)) / p) * itemsize >= MIN_PART_BYTES);
  if (ofRow.length > 0) return ofRow;
  return sizeOf(row) < MIN_ROW ? [] : parts(chosen[0], () => true);
}
