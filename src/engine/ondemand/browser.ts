// What few programs need, loaded on first use, in one piece: the search of BEAM, the source that DEBUG=4
// shows, the graph that GRAPH=1 writes, the checks of SPEC=1, the trace of PROFILE=1. A sync call in a page
// cannot wait for it, and says so.

import { setDiagnostics } from "../../codegen/diagnostics/browser.ts";
import type { Kernel } from "../../codegen/kernel.ts";
import type { Renderer, Source } from "../../codegen/target.ts";
import { type Step, settle } from "../../helpers.ts";
import type { LazyBuffer } from "../../lazy/lazybuffer.ts";
import type * as all from "./node.ts";

const load = (): Promise<typeof all> => import("./node.ts");

export function* searchKernel(
  ...args: Parameters<typeof all.searchKernel>
): ReturnType<typeof all.searchKernel> {
  const loaded = yield* settle(load());
  return yield* loaded.searchKernel(...args);
}
export function* logGraph(outs: readonly LazyBuffer[]): Step<void> {
  const loaded = yield* settle(load());
  yield* loaded.logGraph(outs);
}
/** A little later than in Node; the order of the kernels stays. */
export function showSource(renderer: Renderer, source: Source, kernel: Kernel): void {
  void load().then((loaded) => loaded.showSource(renderer, source, kernel));
}
/** For SPEC, DEBUG=7 and PROFILE. */
export function* loadDiagnostics(): Step<void> {
  const loaded = yield* settle(load());
  setDiagnostics(loaded.diagnostics);
}
