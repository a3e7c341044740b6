// What makes large kernels fast on WebGPU, in a page: engine/ondemand loads it with `#codegen/tuning`. Until
// then kernels have no OptOps.

import { withTuning } from "../../deferred.ts";
import { linearizeGrid } from "../linear/gridlinear.ts";
import type { Heuristic } from "../opt/heuristics/index.ts";
import type { OptRecord } from "../opt/record.ts";
import type { Grid } from "../target.ts";

type GpuTuning = typeof import("./node.ts");
let loaded: GpuTuning | undefined;

/** Empty until it is loaded. */
export const WEBGPU_OPS: OptRecord[] = [];
export const gpuLists: Heuristic = (...args) => loaded?.gpuLists(...args) ?? [];
/** Without OptOps a workgroup is one thread, and no thread moves several neighbours. */
export const GRID: Grid = {
  linearize: (...args) => (loaded?.GRID.linearize ?? linearizeGrid)(...args),
  coalesce: (sink, ...args) => loaded?.GRID.coalesce(sink, ...args) ?? sink,
};

withTuning.add(async () => {
  const tuning = await import("./node.ts");
  if (loaded === undefined) WEBGPU_OPS.push(...tuning.WEBGPU_OPS);
  loaded = tuning;
});
