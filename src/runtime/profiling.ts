// Where PROFILE=1 notes what runs. engine/ondemand says who does it, the class of profile.ts: in Node from
// the start, in a page before it runs anything with PROFILE=1. `profiler` is what a program imports: through
// it a page does not load what it may never use.

import type { Profiler, Span } from "./profile.ts";

export const clock = (): number => (performance.timeOrigin + performance.now()) * 1000;

let current: Profiler | undefined;
export function useProfiler(type: new () => Profiler): void {
  current ??= new type();
}
/** undefined: nothing is to be noted, or what notes it is not loaded. */
export const activeProfiler = (): Profiler | undefined => current;

/**
 * What PROFILE=1 has noted: `profiler.write("trace.json")` writes it before the process ends.
 *
 * @example
 * await withEnv({ PROFILE: 1 }, () => Tensor.arange(4).add(1).realize());
 * profiler.spans.some((span) => span.kind === "kernel") // => true
 */
export const profiler: Pick<Profiler, "spans" | "add" | "trace" | "write" | "reset"> = {
  get spans(): readonly Span[] {
    return current?.spans ?? [];
  },
  add: (span) => current?.add(span),
  trace: () => current?.trace() ?? JSON.stringify({ traceEvents: [] }),
  write: (path) => current?.write(path),
  reset: () => current?.reset(),
};
