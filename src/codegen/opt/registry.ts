// All OptOps that there are, in the order of the docs. Tests and docs/reference/optops.md iterate over them; the
// compiler itself goes by the list of its target (Target.optOps).

import { GPU_OPS } from "./gpuops.ts";
import type { OptRecord } from "./record.ts";

export const OPT_OPS: readonly OptRecord[] = GPU_OPS;
