// What is known while the body of a scan is traced: how deep scans are nested, and which nodes the body
// makes. The rule that a body has no side effects is checked with it.

import { ArgumentError } from "../errors.ts";
import { nodesMade } from "../lazy/lazybuffer.ts";
import type { Tensor } from "./tensor.ts";

/** Nodes from `since` on belong to the body that is traced now. */
const tracing = { depth: 0, since: 0 };

export const depth = (): number => tracing.depth;
/** Where the nodes of the body that is traced now begin; 0 outside of a body. */
export const bodyStart = (): number => tracing.since;

/** Runs `fn` as a body; nodes made before belong to what is outside of it. */
export function withinBody<T>(fn: (since: number) => T): T {
  const before = { ...tracing };
  tracing.depth++;
  tracing.since = nodesMade();
  try {
    return fn(tracing.since);
  } finally {
    Object.assign(tracing, before);
  }
}

/** A body may not change what was there before it: it runs once while it is traced, not once a step. */
export function requireOwn(op: string, t: Tensor): void {
  if (tracing.depth === 0 || t.lazydata.parts.every((p) => p.base.id >= tracing.since)) return;
  throw new ArgumentError(
    `${op}: the body of a scan changes a tensor from outside of it. The body is traced once, so that it must have no side ` +
      "effects: return the new value as a part of the carry, and assign it after the scan",
  );
}
