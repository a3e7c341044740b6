// `#engine/ondemand` in Node, run from source: what few programs need. The search of BEAM, the source that
// DEBUG=4 shows, the graph that GRAPH=1 writes, the checks of SPEC=1, the trace of PROFILE=1. Here all of it
// is loaded at the start, because a sync call cannot wait for an import; browser.ts loads this file on first
// use.

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
import { type ScheduleItem, useReuse, useTuning } from "../../schedule/schedule.ts";
import * as scheduleTuning from "../../schedule/tuning.ts";
import * as log from "../../viz/log.ts";
import * as memoryplan from "../jit/memoryplan.ts";
import { usePlanner, useStepTuning } from "../jit/planner.ts";
import * as stepTuning from "../jit/steptuning.ts";
import { readable } from "../source.ts";

export * as diagnostics from "../../codegen/diagnostics/node.ts";
export { searchKernel } from "../search.ts";

useProfiler(Profiler);
useTuning(scheduleTuning);
useReuse(reuse);
usePlanner(memoryplan);
useStepTuning(stepTuning);

// biome-ignore lint/correctness/useYield: the page's form waits for an import
export function* logGraph(outs: readonly LazyBuffer[]): Step<void> {
  log.logGraph(outs);
}
/** They came with this file. */
export function* loadDiagnostics(): Step<void> {}
/** Only a page keeps the code of kernels here. Devices with slow compilers keep theirs in files. */
// biome-ignore lint/correctness/useYield: the page's form waits for its storage
export function* keptKernel(_device: Compiled, _key: string): Step<KeptKernel | undefined> {
  return undefined;
}
export function keepKernel(_device: Compiled, _key: string, _kernel: Kernel, _source: Source): void {}
/** Only a page loads these when it needs them. */
export function* loadCompiler(_device: Compiled): Step<void> {}
export function* loadPlanner(_bytes: number): Step<void> {}
/** Only a page interprets kernels. */
export function smallKernel(_item: ScheduleItem): undefined {}
export const isTuned = (): boolean => true;
// biome-ignore lint/correctness/useYield: a page waits for what it loads
export function* loadFor(_device: Compiled, _ast: readonly LazyOp[]): Step<boolean> {
  return true;
}
export function showSource(renderer: Renderer, source: Source, kernel: Kernel): void {
  console.log(readable(renderer, source, kernel));
}
