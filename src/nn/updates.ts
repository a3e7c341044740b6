// What layers change on the way (running statistics) is lazy like everything else. They leave it here, and
// the next optimiser step computes it together with its own updates, so that no chain of past batches builds
// up.

import type { Tensor } from "../tensor/tensor.ts";

const waiting = new Set<Tensor>();

/** To be computed with the next step. */
export const leaveUpdate = (...tensors: readonly Tensor[]): void => {
  for (const t of tensors) waiting.add(t);
};
/** All that was left since the last call. */
export function takeUpdates(): Tensor[] {
  const taken = [...waiting];
  waiting.clear();
  return taken;
}
