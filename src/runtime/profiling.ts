// Where PROFILE=1 notes what runs: profile.ts makes itself known here when it is loaded. In Node that is from
// the start; a page loads it before it runs anything with PROFILE=1 (engine/ondemand).

import type { Profiler } from "./profile.ts";

export const clock = (): number => (performance.timeOrigin + performance.now()) * 1000;

let current: Profiler | undefined;
export function setProfiler(profiler: Profiler): void {
  current = profiler;
}
/** undefined: nothing is to be noted, or what notes it is not loaded. */
export const activeProfiler = (): Profiler | undefined => current;
