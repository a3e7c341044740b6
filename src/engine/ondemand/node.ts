// What few programs need: the search of BEAM, the source that DEBUG=4 shows, the graph that GRAPH=1 writes,
// the checks of SPEC=1, the trace of PROFILE=1. In Node all of it comes with the package, since a sync call
// cannot wait for an import; browser.ts loads this file on first use.

import type { Kernel } from "../../codegen/kernel.ts";
import type { Renderer, Source } from "../../codegen/target.ts";
import type { Step } from "../../helpers.ts";
import type { KeptKernel } from "../../host/kernelstore.ts";
import type { LazyBuffer } from "../../lazy/lazybuffer.ts";
import type { Compiled } from "../../runtime/device.ts";
import { Profiler } from "../../runtime/profile.ts";
import { useProfiler } from "../../runtime/profiling.ts";
import type { LazyOp } from "../../schedule/lazyop.ts";
import * as reuse from "../../schedule/reuse.ts";
import { useReuse, useTuning } from "../../schedule/schedule.ts";
import * as scheduleTuning from "../../schedule/tuning.ts";
import * as log from "../../viz/log.ts";
import { readable } from "../source.ts";

export * as diagnostics from "../../codegen/diagnostics/node.ts";
export { searchKernel } from "../search.ts";

useProfiler(Profiler);
useTuning(scheduleTuning);
useReuse(reuse);

// biome-ignore lint/correctness/useYield: the page's form waits for an import
export function* logGraph(outs: readonly LazyBuffer[]): Step<void> {
  log.logGraph(outs);
}
/** They are there. */
export function* loadDiagnostics(): Step<void> {}
/** A process compiles again: devices whose compilers are slow keep what they made in files. */
// biome-ignore lint/correctness/useYield: the page's form waits for its storage
export function* keptKernel(_device: Compiled, _key: string): Step<KeptKernel | undefined> {
  return undefined;
}
export function keepKernel(_device: Compiled, _key: string, _kernel: Kernel, _source: Source): void {}
export const isTuned = (): boolean => true;
export function* loadFor(_ast: readonly LazyOp[]): Step<void> {}
export function showSource(renderer: Renderer, source: Source, kernel: Kernel): void {
  console.log(readable(renderer, source, kernel));
}
