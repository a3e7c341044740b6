// The pipeline on one screen: schedule, (lower, render, compile: compile.ts), enqueue (commandqueue.ts). Two
// calls never interleave: a realize waits for the one before it, and the sync form refuses to run in the
// middle of another.

import { loadDiagnostics, logGraph } from "#engine/ondemand";
import { env } from "../env.ts";
import { DeviceError, OutOfMemoryError } from "../errors.ts";
import { runAsync, runSync, type Step } from "../helpers.ts";
import { type LazyBuffer, nodesMade } from "../lazy/lazybuffer.ts";
import { nextTask, PAUSE } from "../pace.ts";
import { collectGarbage, relievePressure } from "../runtime/buffer.ts";
import { GlobalCounters } from "../runtime/counters.ts";
import { activeProfiler } from "../runtime/profiling.ts";
import { beginRun } from "../schedule/consumed.ts";
import { showAst } from "../schedule/lazyop.ts";
import { type ScheduleItem, scheduleSteps } from "../schedule/schedule.ts";
import { CommandQueue } from "./commandqueue.ts";
import { Device } from "./devices.ts";
import { CacheCollector } from "./jit/collector.ts";

/** Computes what the graph needs. What is realised already costs nothing. */
export function* realizeSteps(outs: readonly LazyBuffer[]): Step<void> {
  yield PAUSE;
  yield* CacheCollector.look(outs);
  if (CacheCollector.graphs) yield* logGraph(outs);
  // how kernels are cut depends on what the device can do
  for (const name of new Set(outs.flatMap((o) => o.parts.map((p) => p.device)))) yield* Device.opened(name);
  const schedule = yield* scheduleSteps(outs, CacheCollector.firstNode);
  yield PAUSE;
  if (schedule.length > 0) yield* runScheduleSteps(schedule);
}

function* runScheduleSteps(schedule: readonly ScheduleItem[]): Step<void> {
  if (env.PROFILE) {
    yield* loadDiagnostics();
    activeProfiler()?.scheduled(schedule);
  }
  if (env.DEBUG >= 3) for (const si of schedule) for (const ast of si.ast) console.log(showAst(ast));
  beginRun();
  yield* new CommandQueue(schedule).execute();
}

let last: Promise<unknown> | undefined;
let running = 0;

/** Attempts: a garbage collection that has already begun may miss what was dropped just now. */
const ATTEMPTS = 4;

/** After so many nodes a task passes: until then the engine keeps whatever a WeakRef was made for alive. */
const MAX_KEPT = 500;
let passed = 0;
/** Lets go of the nodes of earlier steps; a program that only awaits us would never leave its task. */
function releaseNodes(): Promise<void> | undefined {
  if (nodesMade() - passed < MAX_KEPT) return undefined;
  passed = nodesMade();
  return nextTask();
}

/**
 * Runs works one after another; each starts when the one before has ended, even if that failed. `again`: the
 * work may be repeated, so where memory runs out it is tried again after a garbage collection.
 */
export function inTurn(work: () => Step<void>, again: boolean): Promise<void> {
  const mine = afterTurn(work, again);
  last = mine.catch(() => {});
  return mine;
}
async function afterTurn(work: () => Step<void>, again: boolean): Promise<void> {
  // who has nobody before begins now: microtasks are what a small replay costs
  if (running++ > 0) await last;
  try {
    const released = relievePressure() ?? releaseNodes();
    if (released) await released;
    for (let left = again ? ATTEMPTS : 0; ; left--) {
      try {
        await runAsync(work());
        return;
      } catch (e) {
        const isFull = e instanceof OutOfMemoryError && !e.isLate;
        if (left === 0 || !isFull || !(await collectGarbage())) throw e;
      }
    }
  } finally {
    running--;
  }
}

export function atOnce(work: () => Step<void>, what: string): void {
  if (running > 0) {
    throw new DeviceError(
      `${what}: an async realize is still running; await it first, or use the async form here too`,
    );
  }
  runSync(work(), what);
}

export const realize = (outs: readonly LazyBuffer[]): Promise<void> => inTurn(() => realizeSteps(outs), true);
export const realizeSync = (outs: readonly LazyBuffer[]): void =>
  atOnce(() => realizeSteps(outs), "realizeSync");
/**
 * The bytes of a node that is stored as it is, where the host sees the memory: a copy that needs no schedule,
 * after whatever async call came before. Undefined, and at once, where it takes more or somebody watches what
 * is scheduled: the caller must have a copy of the node made before an assign can change it.
 */
export function readStored(lb: LazyBuffer): Promise<Uint8Array | undefined> | undefined {
  const { realized: buffer, stale, overwritten } = lb.base;
  if (buffer === undefined || stale || overwritten || !lb.isWhole || typeof lb.size !== "number") return;
  if (env.DEBUG >= 2 || env.PROFILE || CacheCollector.graphs || CacheCollector.collecting) return;
  let bytes: Uint8Array | undefined;
  const work = function* (): Step<void> {
    if (lb.base.stale || !Device.get(lb.device).allocator.view(buffer.handle, 0)) return;
    GlobalCounters.copyCount++;
    bytes = yield* buffer.read();
  };
  return inTurn(work, true).then(() => bytes);
}
/** Runs ScheduleItems, after whatever async call came before. */
export const runSchedule = (s: readonly ScheduleItem[]): Promise<void> =>
  inTurn(() => runScheduleSteps(s), false);
/** The same at once, on devices that can be waited for. */
export const runScheduleSync = (s: readonly ScheduleItem[]): void =>
  atOnce(() => runScheduleSteps(s), "runScheduleSync");
