// When things ran on a GPU, for PROFILE=1: command buffers say it in seconds since the system started, the
// profiler wants it on the host's clock.

import type { Span } from "../../runtime/profile.ts";
import { activeProfiler, clock, profiler } from "../../runtime/profiling.ts";
import type { MetalContext } from "./context.ts";

/** Those that the profiler asks for what is done. */
const asked = new WeakSet<MetalContext>();

/** What a span is of. */
type NotedSpan = Pick<Span, "track" | "name" | "kind" | "args">;

/** Takes what a command buffer says when it is done. */
export function noting(context: MetalContext, facts: NotedSpan): (start: number, end: number) => void {
  const { objc } = context;
  if (!asked.has(context)) {
    asked.add(context);
    activeProfiler()?.onCollect(() => void context.isDone(0));
  }
  const origin = objc.pool(() => {
    const process = objc.send(objc.classOf("NSProcessInfo"), "processInfo");
    return clock() - objc.send(process, "systemUptime") * 1e6;
  });
  const { name: device } = context;
  return (start, end) =>
    profiler.add({ ...facts, device, start: origin + start * 1e6, end: origin + end * 1e6 });
}
