// What the renderers ask of a list that was made by hand: its buffers are those at 0, 1, 2 and so on, as the
// launch of the kernel will pass them.

import { ArgumentError } from "../errors.ts";
import type { UOpGraph } from "../uop/list.ts";
import type { UOp } from "../uop/node.ts";

type List = UOpGraph | readonly UOp[];

/** The list, if no buffer is missing; `what` was called with it. */
export function allGlobals(what: string, uops: List): List {
  if (!("globals" in uops && uops.isByHand)) return uops;
  const globals = uops.globals().toSorted((a, b) => a.position - b.position);
  const i = globals.findIndex((u, at) => u.position !== at);
  const found = globals[i];
  if (found === undefined) return uops;
  throw new ArgumentError(
    `${what}: DEFINE_GLOBAL ${found.name} is at position ${found.position}, expected ${i}; ` +
      `give each buffer of the kernel one position, from 0 up: UOpGraph.add("DEFINE_GLOBAL", type, [], [${i}, name, written])`,
  );
}
