// Updates of layers (running statistics) are lazy like everything else. Layers add them here, and the next
// optimiser step computes them together with its own updates, so that no chain of past batches grows.

import type { Tensor } from "../tensor/tensor.ts";

const waiting = new Set<Tensor>();

/** Adds tensors to compute with the next step. */
export const leaveUpdate = (...tensors: readonly Tensor[]): void => {
  for (const t of tensors) waiting.add(t);
};
/** Takes everything that was added since the last call. */
export function takeUpdates(): Tensor[] {
  const taken = [...waiting];
  waiting.clear();
  return taken;
}
