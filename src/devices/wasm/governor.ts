// How many threads share a kernel. A thread that the system does not run, since other programs want its core,
// keeps all others waiting for its part. So what sharing saves or loses is counted, and where it loses, a
// thread is left out and tried again after a pause. The state lies in the shared memory, since any executor
// may own a kernel; the class's own text is sent to the workers, so it uses nothing from outside.

import type { RingLayout } from "./layout.ts";

/** What the owner of a kernel knows when all of it is done. */
interface SharedJob {
  readonly helpers: number;
  readonly parts: number;
  readonly mine: number;
  readonly part: number;
  readonly own: number;
  readonly waited: number;
}

export class Governor {
  readonly #l: RingLayout;
  constructor(layout: RingLayout) {
    this.#l = layout;
  }

  /** Of at most this many threads, those that may share a kernel now. */
  width(w: Int32Array, most: number): number {
    const { spared, pause, retryAt } = this.#l;
    if (most <= 1 || Atomics.load(w, pause) === 0) return most;
    const now = Date.now() | 0;
    if (((now - Atomics.load(w, retryAt)) | 0) >= 0) {
      // a try with half of those that are left out; or all are in use, and nothing was lost for long
      const left = Atomics.load(w, spared);
      if (left > 0) Atomics.store(w, spared, left >> 1);
      else Atomics.store(w, pause, Atomics.load(w, pause) >> 1);
      // losses that come now and then are not forgotten in between
      const next = Atomics.load(w, pause) * (Atomics.load(w, spared) > 0 ? 1 : 8);
      Atomics.store(w, retryAt, (now + next) | 0);
    }
    return Math.max(1, most - Atomics.load(w, spared));
  }

  /**
   * Counts a shared kernel, all times in milliseconds: its owner did `mine` of the `parts` in `own`, where a
   * part that nothing disturbs takes it `part`, and then waited for the last of `helpers`. With one helper
   * less, the others would have done its parts; several helpers never end at the same time, so that up to one
   * part of waiting is not its fault. What the owner took longer than its parts need is lost, too: alone it
   * would have had the core to which its helper moved the other program.
   */
  count(w: Int32Array, job: SharedJob): void {
    const { helpers, parts, mine, part, own, waited } = job;
    if (helpers <= 0 || mine === 0) return;
    const gain = part * ((parts - mine) / helpers ** 2 + 1 - 1 / helpers);
    this.#settle(w, gain - waited - (own - mine * part));
  }

  /** The time of a part that was not interrupted: the lower median. */
  usual(durations: Float64Array): number {
    return durations.slice().sort()[(durations.length - 1) >> 1] ?? 0;
  }

  /** The pause doubles with each failure. */
  #settle(w: Int32Array, saved: number): void {
    const { spared, balance, pause, retryAt, noise, credit, debt, shortestPause, longestPause } = this.#l;
    if (saved < 0 && saved > -noise) return;
    const total = Math.min(Atomics.load(w, balance) + Math.round(saved * 1000), credit);
    if (total > -debt) {
      Atomics.store(w, balance, total);
      return;
    }
    const longer = Math.min(Math.max(shortestPause, Atomics.load(w, pause) * 2), longestPause);
    Atomics.store(w, balance, 0);
    Atomics.add(w, spared, 1);
    Atomics.store(w, retryAt, ((Date.now() | 0) + longer) | 0);
    Atomics.store(w, pause, longer);
  }
}
