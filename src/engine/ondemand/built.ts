// `#engine/ondemand` in the built package for Node: the functions of node.ts, which is loaded on first use
// with the rest of the package (host/rest.ts).

import { atExit } from "#host";
import { keepCode } from "../../host/codecache.ts";
import { codes, rest } from "../../host/rest.ts";
import { Profiler } from "../../runtime/profile.ts";
import { useProfiler } from "../../runtime/profiling.ts";
import type { LazyOp } from "../../schedule/lazyop.ts";
import * as reuse from "../../schedule/reuse.ts";
import { useReuse, useTuning } from "../../schedule/schedule.ts";
import * as scheduleTuning from "../../schedule/tuning.ts";

useProfiler(Profiler);
useTuning(scheduleTuning);
useReuse(reuse);

let kernels = 0;
atExit(() => keepCode(codes(), kernels));

const engine = (): typeof import("./node.ts") => rest<{ engine: typeof import("./node.ts") }>().engine;

export const searchKernel: ReturnType<typeof engine>["searchKernel"] = (...args) =>
  engine().searchKernel(...args);
export const logGraph: ReturnType<typeof engine>["logGraph"] = (outs) => engine().logGraph(outs);
export const showSource: ReturnType<typeof engine>["showSource"] = (...args) => engine().showSource(...args);
/** They are loaded together with codegen. */
export function* loadDiagnostics(): Generator<never, void> {}
/** It is loaded together with TinyJit. */
export function* loadPlanner(_bytes: number): Generator<never, void> {}
/** It is a part of the core. */
export function* loadCompiler(_device: unknown): Generator<never, void> {}
/** Only a page keeps the code of kernels here. Devices with slow compilers keep theirs in files. */
export function* keptKernel(_device: unknown, _key: string): Generator<never, undefined> {}
export function keepKernel(_device: unknown, _key: string, _kernel: unknown, _source: unknown): void {}
/** Only a page interprets kernels. */
export function smallKernel(_item: unknown): undefined {}
export const isTuned = (): boolean => true;
/** Nothing to load. It is called for each kernel that is compiled, which says how much code V8 has made. */
export function* loadFor(_device: unknown, _ast: readonly LazyOp[]): Generator<never, boolean> {
  kernels++;
  yield* loadDiagnostics();
  return true;
}
