// `#devices/threads` in a page. It needs workers for large kernels only: what they take is loaded when the
// first one is wanted. Until then, and where it cannot be loaded, the page computes by itself.

import type { Spawn } from "./threads.ts";
import type { WorkSharing } from "./worksharing.ts";

/** A page's own thread must not wait for others. */
export const hostSharing = (): WorkSharing | undefined => undefined;

/** What is short is not known: see inline.ts. */
export const executeShort = (): boolean => false;

let spawn: Spawn | undefined;
let isLoading = false;
export function spawner(later: () => void): Spawn | undefined {
  if (spawn === undefined && !isLoading) {
    isLoading = true;
    import("./threads.ts")
      .then((threads) => {
        spawn = threads.spawner();
        later();
      })
      .catch(() => {})
      .finally(() => {
        isLoading = false;
      });
  }
  return spawn;
}
