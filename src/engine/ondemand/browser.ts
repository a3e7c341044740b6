// What few programs need, loaded on first use: the search of BEAM, the source that DEBUG=4 shows, the graph
// that GRAPH=1 writes. A sync call in a page cannot wait for it, and says so.

import type { Kernel } from "../../codegen/kernel.ts";
import type { Renderer, Source } from "../../codegen/target.ts";
import { type Step, settle } from "../../helpers.ts";
import type { LazyBuffer } from "../../lazy/lazybuffer.ts";
import type { searchKernel as search } from "../search.ts";

export function* searchKernel(...args: Parameters<typeof search>): ReturnType<typeof search> {
  const loaded = yield* settle(import("../search.ts"));
  return yield* loaded.searchKernel(...args);
}
export function* logGraph(outs: readonly LazyBuffer[]): Step<void> {
  const loaded = yield* settle(import("../../viz/log.ts"));
  loaded.logGraph(outs);
}
/** A little later than in Node; the order of the kernels stays. */
export function showSource(renderer: Renderer, source: Source, kernel: Kernel): void {
  void import("../source.ts").then(({ readable }) => console.log(readable(renderer, source, kernel)));
}
