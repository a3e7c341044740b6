// What the backward pass of a body reads of the forward pass. In: the traced gradients. Out: the placeholders
// they read, and the values that a forward loop saves for them.

import { toposort } from "../helpers.ts";
import type { LazyBuffer } from "../lazy/lazybuffer.ts";
import type { Tensor } from "./tensor.ts";

export interface SavedValues {
  /** placeholders of carries and rows that are read */
  readonly places: ReadonlySet<LazyBuffer>;
  /** values of the forward pass that are stored for each step */
  readonly values: readonly LazyBuffer[];
}

interface SavedOptions {
  /** ids of the trace start here, and those of its backward pass at `first` */
  readonly since: number;
  readonly first: number;
  /** whether to save no values: all are computed again */
  readonly checkpoint: boolean;
  readonly places: readonly Tensor[];
}

/** All nodes below these that are not computed yet, sources first. */
export const nodesBelow = (roots: readonly LazyBuffer[]): LazyBuffer[] =>
  toposort(
    roots.map((r) => r.base),
    (b) => (b.srcs ?? []).map((s) => s.base),
  );

/** Tensors from outside of the trace that these were made of; those before them do not count. */
export function boundariesOf(roots: readonly Tensor[], since: number): Tensor[] {
  // an op that changes nothing (a broadcast to the same shape) gives another tensor of the same node. A body
  // makes a new one each time it is called, so that what counts is the tensor below it
  const isSame = ({ context, lazydata }: Tensor): boolean =>
    context?.parents.length === 1 && context.parents[0]?.lazydata === lazydata;
  const isOutside = (t: Tensor): boolean => t.lazydata.id < since && !isSame(t);
  const all = toposort<Tensor>(roots, (t) => (isOutside(t) ? [] : (t.context?.parents ?? [])));
  return all.filter(isOutside);
}

/**
 * Results of reductions, and what the body asked to be stored, are saved. Elementwise values between them are
 * computed again: that takes less time than to store them. Nothing is saved that is the same in every step.
 */
export function savedFor(
  roots: readonly LazyBuffer[],
  { since, first, checkpoint, places }: SavedOptions,
): SavedValues {
  const given = new Set(places.map((p) => p.lazydata.base));
  const varying = new Set<LazyBuffer>(given);
  for (const b of nodesBelow(roots)) {
    if (b.id < since) continue;
    if (b.srcs?.some((s) => varying.has(s.base)) || b.op === "COPY") varying.add(b);
  }
  const isSaved = (b: LazyBuffer): boolean => {
    if (checkpoint || b.id < since || b.id >= first || !varying.has(b) || given.has(b)) return false;
    return b.isReduce || b.forcedRealize || b.op === "SCAN" || b.op === "CONTIGUOUS";
  };
  const read = toposort(
    roots.map((r) => r.base),
    (b) => (isSaved(b) || b.id < since ? [] : (b.srcs ?? []).map((s) => s.base)),
  );
  return { places: new Set(read.filter((b) => given.has(b))), values: read.filter(isSaved) };
}
