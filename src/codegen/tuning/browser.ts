// What makes large kernels fast, in a page: engine/ondemand loads it before the first kernel of more than a
// few thousand elements, and puts it here. Smaller kernels finish before it would pay off. They have no
// OptOps; nor has a kernel that a sync call compiles before this is loaded.

import { SYNC, withTuning } from "../../deferred.ts";
import { ArgumentError } from "../../errors.ts";
import { mapped, range } from "../../helpers.ts";
import type { Heuristic } from "../opt/heuristics/index.ts";
import type { OptRecord } from "../opt/record.ts";
import type { Pass } from "../pass.ts";

type Tuning = typeof import("./node.ts");
let loaded: Tuning | undefined;

/** Empty until it is loaded. Without passes a gather or a scatter is a sum over all that could be chosen. */
export const CPU_OPS: OptRecord[] = [];
export const BY_INDEX: Pass[] = [];

export function setTuning(tuning: Tuning): void {
  if (loaded === undefined) {
    CPU_OPS.push(...tuning.CPU_OPS);
    BY_INDEX.push(...tuning.BY_INDEX);
  }
  loaded = tuning;
}
export const hasTuning = (): boolean => loaded !== undefined && withTuning.size === 0;

export const cpuLists: Heuristic = (...args) => loaded?.cpuLists(...args) ?? [];
export const findKeepable: Tuning["findKeepable"] = (...args) => loaded?.findKeepable(...args) ?? [];
/** Lanes come from OptOps. */
export const expand: Tuning["expand"] = (graph, target) => loaded?.expand(graph, target) ?? graph.sink;
/** Each dim is a loop of its own. */
export const mergeDims: Tuning["mergeDims"] = (roots, axes) =>
  loaded?.mergeDims(roots, axes) ?? mapped(axes ?? range(roots[0]?.shape.length ?? 0), (d) => [d]);
export const inBlocks: Tuning["inBlocks"] = (ast, lanes) => loaded?.inBlocks(ast, lanes) ?? ast;
export const requireValid: Tuning["requireValid"] = (opts, target) => {
  if (loaded === undefined && opts.length > 0)
    throw new ArgumentError(
      `OptOps: a page loads them with the first large kernel that is awaited; await one first, or ${SYNC}`,
    );
  loaded?.requireValid(opts, target);
};
export const collapsed: Tuning["collapsed"] = (groups, context) =>
  loaded?.collapsed(groups, context) ?? groups;
export const axisOrder: Tuning["axisOrder"] = (opts, n) => loaded?.axisOrder(opts, n) ?? range(n);
