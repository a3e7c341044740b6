// The platform of Node: files, worker threads, a cache on disk, hooks at the end of the process. The contract
// is in contract.ts. Node's own modules are loaded when they are first used (builtin.ts).

import type { AsyncLocalStorage } from "node:async_hooks";
import { env } from "../env.ts";
import { timestamp } from "../helpers.ts";
import { setSlice } from "../pace.ts";
import { builtin } from "./builtin.ts";
import type { AsyncScope } from "./contract.ts";
import { keep, kept, keyOf } from "./diskcache.ts";

export { enableRelaxedSimd } from "./v8flags.ts";

/** Files are on this host: a path names one, and DISK can hold it. */
export const hasFiles = true;

// ---- what a search found, for the next process: a file each ----

export const recall = (key: string): string | undefined => {
  const bytes = kept("opts", keyOf(key));
  return bytes === undefined ? undefined : new TextDecoder().decode(bytes);
};
export const remember = (key: string, text: string): void =>
  keep("opts", keyOf(key), new TextEncoder().encode(text));

// ---- threads ----

/** A wait may block the thread for a few milliseconds; nobody notices. */
export const canBlock = true;

/**
 * How long timers and requests may wait while a graph is scheduled and compiled. A wait that blocks for as
 * long may follow, and some places to stop are milliseconds apart: together they mostly stay below 20 ms.
 */
const SLICE_MS = 5;
setSlice(SLICE_MS, timestamp);

export const availableThreads = (): number => builtin.os.availableParallelism();

// ---- hooks ----

export function makeAsyncScope(): AsyncScope {
  let storage: AsyncLocalStorage<unknown> | undefined;
  return {
    exact: true,
    run(value, fn) {
      storage ??= new builtin.asyncHooks.AsyncLocalStorage<unknown>();
      return storage.run(value, fn);
    },
    get: () => storage?.getStore(),
    // promises are slower while it is in use
    rest: () => storage?.disable(),
  };
}

/** Calls `fn` when the process ends, well or badly. */
export const atExit = (fn: () => void): void => void process.once("exit", fn);

/** Between two lines where no terminal is, in milliseconds. */
const LINE_PAUSE = 1000;
let lastLine = -Infinity;

/**
 * Shows how far something is to a person who waits at a terminal; an empty text takes it away. Elsewhere it
 * is a line now and then, with DEBUG only: a log is not for this.
 */
export function showProgress(text: string): void {
  if (!env.PROGRESS) return;
  const { isTTY, columns = 80 } = process.stderr;
  if (isTTY) process.stderr.write(`\r\x1b[K${text.slice(0, columns - 1)}`);
  else if (env.DEBUG >= 1 && text !== "" && timestamp() - lastLine >= LINE_PAUSE) {
    lastLine = timestamp();
    process.stderr.write(`${text}\n`);
  }
}
