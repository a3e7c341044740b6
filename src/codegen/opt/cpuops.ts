// The OptOps of targets without tensor cores: those of loops, vectors and threads for a CPU, and also
// GROUPTOP for a grid of workgroups without known figures.

import { DOT } from "./dot.ts";
import { GROUP } from "./group.ts";
import { GROUPTOP } from "./grouptop.ts";
import { INTERCHANGE } from "./interchange.ts";
import { KEEP } from "./keep.ts";
import { LOCAL } from "./local.ts";
import { NOLOCALS } from "./nolocals.ts";
import { PACK } from "./pack.ts";
import { PADTO } from "./padto.ts";
import type { OptRecord } from "./record.ts";
import { SWAP } from "./swap.ts";
import { THREAD } from "./thread.ts";
import { UNROLL } from "./unroll.ts";
import { UPCAST } from "./upcast.ts";

export const CPU_OPS: readonly OptRecord[] = [
  UPCAST,
  UNROLL,
  GROUP,
  LOCAL,
  NOLOCALS,
  THREAD,
  PADTO,
  SWAP,
  KEEP,
  DOT,
  PACK,
  INTERCHANGE,
];
export const GRID_OPS: readonly OptRecord[] = [...CPU_OPS, GROUPTOP];
