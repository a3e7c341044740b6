// The driver of the passes: runs them in order, and after each checks the graph (SPEC=1), notes how long it
// took, prints it (DEBUG=7) and hands it to the recorder, if there is one.

import { checkGraph, showGraph } from "#codegen/diagnostics";
import { env } from "../env.ts";
import { restoring, type Step, timestamp } from "../helpers.ts";
import { PAUSE } from "../pace.ts";
import type { KernelGraph } from "./lower/lower.ts";
import type { OptOp } from "./opt/opts.ts";
import type { Target } from "./target.ts";

/** What a kernel is compiled for and with; the same for all passes. */
export interface PassContext {
  readonly opts: readonly OptOp[];
  readonly target: Target;
}

/** From graph to graph. */
export interface Pass {
  readonly name: string;
  /** Whether it has anything to do for such kernels. A pass without this has something to do for all. */
  readonly applies?: (context: PassContext) => boolean;
  /** May return the same graph: most passes leave most kernels unchanged. */
  readonly run: (graph: KernelGraph, context: PassContext) => KernelGraph;
}

/** A pass that gives the new sink; the rest of the kernel stays. */
export const onSink = (
  name: string,
  run: (graph: KernelGraph, context: PassContext) => KernelGraph["sink"],
): Pass => ({
  name,
  run: (graph, context) => {
    const sink = run(graph, context);
    return sink === graph.sink ? graph : { ...graph, sink };
  },
});

/** What a pass left behind. */
export interface PassRecord {
  readonly pass: string;
  readonly milliseconds: number;
  /** false: the pass had nothing to do */
  readonly isChanged: boolean;
  /** the graph, or after linearize the list, as text; made on demand */
  readonly text: () => string;
}
export type PassRecorder = (record: PassRecord) => void;

let recorder: PassRecorder | undefined;
/** Runs `fn` with a recorder that gets every pass of every kernel that is lowered in it. */
export function withPassRecorder<T>(record: PassRecorder, fn: () => T): T {
  const before = recorder;
  recorder = record;
  return restoring(fn, () => {
    recorder = before;
  });
}

/** Whether someone watches the passes: then every kernel goes through them. */
export const isObserved = (): boolean => recorder !== undefined || env.DEBUG >= 7;

const spent = new Map<string, number>();
/** Milliseconds that each pass has taken in this process, in the order of the pipeline. */
export const passTimes = (): ReadonlyMap<string, number> => spent;

/** Runs one step of the pipeline; `textOf` prints what it made, `isChanged` says whether that is new. */
export function timed<T>(
  name: string,
  run: () => T,
  textOf: (made: T) => string,
  isChanged: (made: T) => boolean = () => true,
): T {
  const start = timestamp();
  const made = run();
  const milliseconds = timestamp() - start;
  spent.set(name, (spent.get(name) ?? 0) + milliseconds);
  if (!isObserved()) return made;
  const record = { pass: name, milliseconds, isChanged: isChanged(made), text: () => textOf(made) };
  recorder?.(record);
  if (env.DEBUG >= 7) print(record);
  return made;
}
function print({ pass, milliseconds, isChanged, text }: PassRecord): void {
  const took = `${milliseconds.toFixed(2)} ms`;
  console.log(isChanged ? `---- ${pass}, ${took}\n${text()}` : `---- ${pass}, ${took}: nothing to do`);
}

/** The graph after these passes; a Step, which can pause after each of them. */
export function* passSteps(
  graph: KernelGraph,
  passes: readonly Pass[],
  context: PassContext,
): Step<KernelGraph> {
  let before = graph;
  for (const { name, applies, run } of passes) {
    const isIdle = applies?.(context) === false;
    if (isIdle && !isObserved()) continue;
    const after = timed(
      name,
      () => (isIdle ? before : run(before, context)),
      (made) => showGraph(made.sink),
      (made) => made.sink !== before.sink,
    );
    if (env.SPEC && after.sink !== before.sink) checkGraph(after.sink, name);
    before = after;
    yield PAUSE;
  }
  return before;
}
