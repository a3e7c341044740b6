// When things ran on a GPU, for PROFILE=1: command buffers say it in seconds since the system started, the
// profiler wants it on the host's clock.

import type { Span } from "../../runtime/profile.ts";
import { clock, profiler } from "../../runtime/profiling.ts";
import type { ObjC } from "./objc.ts";

/** What a span is of. */
export type SpanFacts = Pick<Span, "device" | "track" | "name" | "kind" | "args">;

/** Takes what a command buffer says when it is done. */
export function noting(objc: ObjC, facts: SpanFacts): (start: number, end: number) => void {
  const info = objc.pool(() => {
    const process = objc.send(objc.classOf("NSProcessInfo"), "processInfo");
    return clock() - objc.send(process, "systemUptime") * 1e6;
  });
  return (start, end) => profiler.add({ ...facts, start: info + start * 1e6, end: info + end * 1e6 });
}
