// The pipeline on one screen: schedule, (lower, render, compile: compile.ts), enqueue (commandqueue.ts). Two
// calls never interleave: a realize waits for the one before it, and the sync form refuses to run in the
// middle of another.

import { loadDiagnostics, logGraph } from "#engine/ondemand";
import { env } from "../env.ts";
import { DeviceError, OutOfMemoryError } from "../errors.ts";
import { runAsync, runSync, type Step } from "../helpers.ts";
import { type LazyBuffer, nodesMade } from "../lazy/lazybuffer.ts";
import { holdsTask, nextTask, PAUSE } from "../pace.ts";
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

/** A node that is stored as it is: its bytes can be copied without a schedule, unless somebody watches those. */
function isStored(lb: LazyBuffer): boolean {
  const { realized, stale, overwritten } = lb.base;
  if (realized === undefined || stale !== undefined || overwritten || lb.onlyHolds) return false;
  return lb.isWhole && typeof lb.size === "number" && !isWatched();
}
/** Its bytes; undefined where the host does not see the memory. */
function* storedBytes(lb: LazyBuffer): Step<Uint8Array | undefined> {
  const { realized: buffer, stale } = lb.base;
  if (buffer === undefined || stale !== undefined || !buffer.isAllocated) return undefined;
  if (Device.get(lb.device).allocator.view(buffer.handle, 0) === undefined) return undefined;
  const bytes = yield* buffer.read();
  GlobalCounters.copyCount++;
  GlobalCounters.globalMem += bytes.byteLength;
  return bytes;
}
const isWatched = (): boolean =>
  env.DEBUG >= 2 || env.PROFILE > 0 || CacheCollector.graphs || CacheCollector.collecting;

/** what has been asked for last; undefined: all of it has ended */
let last: Promise<unknown> | undefined;
let running = 0;

/** Attempts: a garbage collection that has already begun may miss what was dropped just now. */
const ATTEMPTS = 4;

/** After so many nodes a task passes: until then the engine keeps whatever a WeakRef was made for alive. */
const MAX_KEPT = 500;
/** After so many milliseconds, too: a timer or a request may wait. */
const MAX_HELD = 20;
let passed = 0;
/** Lets go of the nodes of earlier steps; a program that only awaits us would never leave its task. */
function releaseNodes(): Promise<void> | undefined {
  if (nodesMade() - passed < MAX_KEPT && !holdsTask(MAX_HELD)) return undefined;
  passed = nodesMade();
  return nextTask();
}

/**
 * Runs works one after another; each starts when the one before has ended, even if that failed. `again`: the
 * work may be repeated, so where memory runs out it is tried again after a garbage collection.
 */
export function inTurn(work: () => Step<void>, again: boolean): Promise<void> {
  // who has nobody before begins now: a microtask for each layer is what a small replay costs
  const before = running++ > 0 ? last : undefined;
  const mine = afterTurn(before, work, again ? ATTEMPTS : 0);
  last = running > 0 ? mine.catch(() => {}) : undefined;
  return mine;
}
async function afterTurn(
  before: Promise<unknown> | undefined,
  work: () => Step<void>,
  attempts: number,
): Promise<void> {
  if (before !== undefined) await before;
  try {
    const relieved = relievePressure();
    if (relieved !== undefined) await relieved;
    const released = releaseNodes();
    if (released !== undefined) await released;
    for (let left = attempts; ; left--) {
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
 * What a stored node holds, in an array of its own, after whatever async call came before. Undefined at once
 * where that takes more: what an assign does to a node must not come before the caller's own reading of it.
 */
export function readStored(lb: LazyBuffer): Promise<Uint8Array | undefined> | undefined {
  if (!isStored(lb)) return undefined;
  let bytes: Uint8Array | undefined;
  const work = function* (): Step<void> {
    bytes = yield* storedBytes(lb);
  };
  return inTurn(work, true).then(() => bytes);
}
/** Runs ScheduleItems, after whatever async call came before. */
export const runSchedule = (s: readonly ScheduleItem[]): Promise<void> =>
  inTurn(() => runScheduleSteps(s), false);
/** The same at once, on devices that can be waited for. */
export const runScheduleSync = (s: readonly ScheduleItem[]): void =>
  atOnce(() => runScheduleSteps(s), "runScheduleSync");
