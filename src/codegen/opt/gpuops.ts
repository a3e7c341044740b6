// The OptOps of a GPU whose figures are known (Target.gpu): every OptOp. Renderers of such GPUs import it; a
// page that runs on WASM does not, and loads neither tensor cores nor shared memory.

import { COLLAPSE } from "./collapse.ts";
import { GRID_OPS } from "./cpuops.ts";
import type { OptRecord } from "./record.ts";
import { SHARED } from "./shared.ts";
import { TC } from "./tensorcore.ts";

export const GPU_OPS: readonly OptRecord[] = [...GRID_OPS, COLLAPSE, TC, SHARED];
