// What makes large kernels fast on WebGPU, in a page: engine/ondemand loads it with `#codegen/tuning`. Until
// then kernels have no OptOps.

import { withTuning } from "../../deferred.ts";
import type { Heuristic } from "../opt/heuristics/index.ts";
import type { OptRecord } from "../opt/record.ts";

type GpuTuning = typeof import("./node.ts");
let loaded: GpuTuning | undefined;

/** Empty until it is loaded. */
export const WEBGPU_OPS: OptRecord[] = [];
export const gpuLists: Heuristic = (...args) => loaded?.gpuLists(...args) ?? [];

withTuning.add(async () => {
  const tuning = await import("./node.ts");
  if (loaded === undefined) WEBGPU_OPS.push(...tuning.WEBGPU_OPS);
  loaded = tuning;
});
