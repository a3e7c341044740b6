// Marks what each run computed on the way and did not store. repeat.ts stores what was computed twice.

import type { LazyBuffer } from "../lazy/lazybuffer.ts";

let runs = 1;
/** A schedule is about to run. */
export const beginRun = (): void => void runs++;

/** Marks what was computed on the way to a stored node, and what was computed by an earlier run as well. */
export function markConsumed(sources: readonly LazyBuffer[]): void {
  const todo = [...sources];
  for (let b = todo.pop()?.base; b !== undefined; b = todo.pop()?.base) {
    if (b.srcs === undefined) continue;
    if (b.consumed) {
      if (b.lastRun !== 0 && b.lastRun !== runs) b.repeats++;
      b.lastRun = runs;
      continue;
    }
    b.consumed = true;
    b.lastRun = runs;
    todo.push(...b.srcs);
  }
}
