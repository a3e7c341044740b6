// Every OptOp with its documentation, in the order of the docs. Tests and docs/reference/optops.md iterate
// over them; the compiler itself goes by the list of its target (Target.optOps).

import { COLLAPSE_DOC } from "./collapse.ts";
import { DOT_DOC } from "./dot.ts";
import { GPU_OPS } from "./gpuops.ts";
import { GROUP_DOC } from "./group.ts";
import { GROUPTOP_DOC } from "./grouptop.ts";
import { INTERCHANGE_DOC } from "./interchange.ts";
import { KEEP_DOC } from "./keep.ts";
import { LOCAL_DOC } from "./local.ts";
import { NOLOCALS_DOC } from "./nolocals.ts";
import type { OptOpName } from "./opts.ts";
import { PACK_DOC } from "./pack.ts";
import { PADTO_DOC } from "./padto.ts";
import type { OptDoc, OptRecord } from "./record.ts";
import { SHARED_DOC } from "./shared.ts";
import { SWAP_DOC } from "./swap.ts";
import { TC_DOC } from "./tensorcore.ts";
import { THREAD_DOC } from "./thread.ts";
import { UNROLL_DOC } from "./unroll.ts";
import { UPCAST_DOC } from "./upcast.ts";

const DOCS: Readonly<Record<OptOpName, OptDoc>> = {
  UPCAST: UPCAST_DOC,
  UNROLL: UNROLL_DOC,
  GROUP: GROUP_DOC,
  LOCAL: LOCAL_DOC,
  NOLOCALS: NOLOCALS_DOC,
  THREAD: THREAD_DOC,
  PADTO: PADTO_DOC,
  SWAP: SWAP_DOC,
  COLLAPSE: COLLAPSE_DOC,
  KEEP: KEEP_DOC,
  DOT: DOT_DOC,
  PACK: PACK_DOC,
  INTERCHANGE: INTERCHANGE_DOC,
  GROUPTOP: GROUPTOP_DOC,
  TC: TC_DOC,
  SHARED: SHARED_DOC,
};

export const OPT_OPS: readonly (OptRecord & OptDoc)[] = GPU_OPS.map((op) => ({ ...op, ...DOCS[op.name] }));
