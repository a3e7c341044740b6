// What makes large kernels fast on WebGPU: the OptOps and the heuristic that chooses among them. In Node it
// comes with the device; browser.ts has it once it is loaded. `#codegen/gputuning` is one of the two.

import { GRID_OPS } from "../opt/cpuops.ts";
import type { OptRecord } from "../opt/record.ts";
import { SHARED } from "../opt/shared.ts";

export { gpuLists } from "../opt/heuristics/gpu.ts";
export const WEBGPU_OPS: readonly OptRecord[] = [...GRID_OPS, SHARED];
