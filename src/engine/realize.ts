// The pipeline on one screen: schedule, (lower, render, compile: compile.ts), enqueue (commandqueue.ts). Two calls never
// interleave: a realize waits for the one before it, and the sync form refuses to run in the middle of another.

import { env } from "../env.ts";
import { DeviceError } from "../errors.ts";
import { runAsync, runSync, type Step } from "../helpers.ts";
import type { LazyBuffer } from "../lazy/lazybuffer.ts";
import { relievePressure } from "../runtime/buffer.ts";
import { showAst } from "../schedule/lazyop.ts";
import { createSchedule, type ScheduleItem } from "../schedule/schedule.ts";
import { logGraph } from "../viz/log.ts";
import { CommandQueue } from "./commandqueue.ts";

/** Computes what the graph needs. What is realised already costs nothing. */
function* realizeSteps(outs: readonly LazyBuffer[]): Step<void> {
  if (env.GRAPH) logGraph(outs);
  const schedule = createSchedule(outs);
  if (schedule.length > 0) yield* runScheduleSteps(schedule);
}

function* runScheduleSteps(schedule: readonly ScheduleItem[]): Step<void> {
  if (env.DEBUG >= 3) for (const si of schedule) for (const ast of si.ast) console.log(showAst(ast));
  yield* new CommandQueue(schedule).execute();
}

let last: Promise<unknown> = Promise.resolve();
let running = 0;

/** One after another, each starting only when the one before has ended, well or badly. */
function inTurn(work: () => Step<void>): Promise<void> {
  running++;
  const mine = last.then(async () => {
    await relievePressure();
    await runAsync(work());
  });
  last = mine.catch(() => {}).then(() => void running--);
  return mine;
}

function atOnce(work: () => Step<void>, what: string): void {
  if (running > 0) {
    throw new DeviceError(
      `${what}: an async realize is still running; await it first, or use the async form here too`,
    );
  }
  runSync(work(), what);
}

export const realize = (outs: readonly LazyBuffer[]): Promise<void> => inTurn(() => realizeSteps(outs));
export const realizeSync = (outs: readonly LazyBuffer[]): void =>
  atOnce(() => realizeSteps(outs), "realizeSync");
export const runSchedule = (s: readonly ScheduleItem[]): Promise<void> => inTurn(() => runScheduleSteps(s));
export const runScheduleSync = (s: readonly ScheduleItem[]): void =>
  atOnce(() => runScheduleSteps(s), "runScheduleSync");
