// What makes large kernels fast on WebGPU: the OptOps, the heuristic that chooses among them, and what
// linearize does for workgroups of several threads, which only OptOps make. In Node it comes with the device;
// browser.ts has it once it is loaded. `#codegen/gputuning` is one of the two.

import { GRID_OPS } from "../opt/cpuops.ts";
import type { OptRecord } from "../opt/record.ts";
import { SHARED } from "../opt/shared.ts";

export { GRID } from "../linear/workgrouplinear.ts";
export { gpuLists } from "../opt/heuristics/gpu.ts";
export const WEBGPU_OPS: readonly OptRecord[] = [...GRID_OPS, SHARED];
