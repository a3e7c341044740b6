// Whether the caller executes a kept stream (a captured step) itself, inside the submission: waking a thread
// and hearing from it costs more than a short stream takes. How long one takes is measured, not guessed.
// Pages leave it out: they start workers for large kernels only.

import { wantedThreads } from "./workers.ts";

/** How long a stream that is kept took when the caller executed it; 0: it never did. */
export interface StreamTime {
  milliseconds: number;
}

/** As long as this it may take, with threads to share its kernels and alone. */
const SHARED_MS = 0.5;
const ALONE_MS = 2;
/** Operations and bytes of one that was never timed. */
const UNTIMED = 2 ** 23;

/**
 * Executes what is queued if a kept stream is short, so that no worker hears of it; false: it is not done.
 * `pump` says whether all of it is.
 */
export function executeShort(work: number, timed: StreamTime | undefined, pump: () => boolean): boolean {
  if (timed === undefined || !isShort(work, timed)) return false;
  const before = performance.now();
  if (!pump()) return false;
  noteTime(timed, performance.now() - before);
  return true;
}
function isShort(work: number, timed: StreamTime): boolean {
  if (timed.milliseconds === 0) return work <= UNTIMED;
  if (timed.milliseconds <= (wantedThreads() > 1 ? SHARED_MS : ALONE_MS)) return true;
  // other programs may have made it slow: it is tried again some time
  timed.milliseconds *= 0.9;
  return false;
}

/** The least counts, which nothing disturbed; it may be of another time, so it rises slowly. */
function noteTime(timed: StreamTime, milliseconds: number): void {
  const took = Math.max(milliseconds, 1e-3);
  timed.milliseconds = timed.milliseconds === 0 ? took : Math.min(took, timed.milliseconds * 1.02);
}
