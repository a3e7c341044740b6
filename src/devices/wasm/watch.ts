// How a host waits for the rings: it notices when there is no progress, and it sleeps, as a promise, until a
// word in the shared memory changes.

import { canBlock } from "#host";

/** What a watch looks at. */
interface Watched {
  /** differs when something was executed */
  readonly progress: number;
  /** somebody is inside a kernel */
  readonly computing: boolean;
}

/** A running kernel explains for a while why there is no progress. */
const PATIENCE = 10;

/** Notices when there is no progress. */
export class Watch {
  readonly #hardware: Watched;
  readonly #limit: number;
  #progress = -1;
  #since = 0;

  constructor(hardware: Watched, limitMs: number) {
    this.#hardware = hardware;
    this.#limit = limitMs;
  }
  /** The seconds without progress if they are too many, otherwise 0. */
  look(): number {
    const now = performance.now();
    const { progress } = this.#hardware;
    if (progress !== this.#progress) {
      this.#progress = progress;
      this.#since = now;
    }
    const still = now - this.#since;
    const limit = this.#hardware.computing ? this.#limit * PATIENCE : this.#limit;
    return still < limit ? 0 : Math.round(still / 10) / 100;
  }
}

type WaitAsync = (
  w: Int32Array,
  at: number,
  value: number,
  ms: number,
) => { value: PromiseLike<string> | string };

/** Taken at the start: a test that replaces timers must not stop us. */
const { setTimeout, clearTimeout } = globalThis;

/** Waits until the word changes, or until this many milliseconds have passed. */
export async function changed(words: Int32Array, at: number, value: number, ms: number): Promise<void> {
  const { waitAsync } = Atomics as { waitAsync?: WaitAsync };
  if (waitAsync === undefined) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    return;
  }
  // the promise alone would not keep Node's process alive; it settles before this timer
  const alive = canBlock ? setTimeout(() => {}, 100 * ms) : undefined;
  await waitAsync(words, at, value, ms).value;
  if (canBlock) clearTimeout(alive);
}
