// The worker threads that run executors: started when there is work for them, never keeping a process alive,
// shared by all WASM devices. Where none can be started the host executes everything itself.

import { spawner } from "#devices/threads";
import { availableThreads, canBlock } from "#host";
import { env } from "../../env.ts";
import type { WorkerHandle } from "../../host/contract.ts";
import { LAYOUT, MAX_EXECUTORS } from "./layout.ts";
import type { WasmMemory } from "./memory.ts";
import type { Spawn } from "./threads.ts";

/** Iterations of watching the bell before an idle worker sleeps: some 50 µs, the price of being woken. */
const SPINS = 10_000;
/** Milliseconds after which a worker that has not come up is not counted on. */
const START_MS = 10_000;
/** Workers that may die before no more are started. */
const MAX_LOSSES = 16;

/** How many threads compute: the setting, or what the machine has. */
export const wantedThreads = (): number =>
  Math.max(1, Math.min(env.THREADS > 0 ? Math.floor(env.THREADS) : availableThreads(), MAX_EXECUTORS - 1));

export class Workers {
  readonly #memory: WasmMemory;
  readonly #handles = new Map<number, WorkerHandle>();
  readonly #onLoss: (id: number, why: string) => void;
  /** when each was started that has not come up yet, by its number */
  readonly #startedAt = new Map<number, number>();
  #losses = 0;
  /** how many the last start was to bring */
  #wanted = 0;
  /** one came up: workers can be had here */
  #cameUp = false;

  constructor(memory: WasmMemory, onLoss: (id: number, why: string) => void) {
    this.#memory = memory;
    this.#onLoss = onLoss;
  }

  /** Workers can be had here, or are there. */
  get usable(): boolean {
    return this.#memory.shared && this.#losses < MAX_LOSSES;
  }
  get started(): boolean {
    return this.#handles.size > 0;
  }
  /** Some were lost since the last start. */
  get areShort(): boolean {
    return this.#handles.size < this.#wanted;
  }
  /** One of them is at work or about to look for work; or none has come up yet, and one is on its way. */
  get active(): boolean {
    const { words } = this.#memory;
    let [isThere, isOnItsWay] = [false, false];
    for (const id of this.#handles.keys()) {
      const state = Atomics.load(words, stateOf(id));
      if (state === LAYOUT.awake) return true;
      if (state !== LAYOUT.absent) isThere = true;
      else if (!this.#isLate(id)) isOnItsWay = true;
    }
    return isOnItsWay && !isThere;
  }
  /** It should have come up by now. */
  #isLate(id: number): boolean {
    return performance.now() - (this.#startedAt.get(id) ?? 0) > START_MS;
  }
  /** One of them has come up. */
  get present(): boolean {
    const { words } = this.#memory;
    const isThere = this.ids.some((id) => Atomics.load(words, stateOf(id)) !== LAYOUT.absent);
    this.#cameUp ||= isThere;
    return isThere;
  }
  /** No worker has ever started, although each should have by now. */
  get areMissing(): boolean {
    return !this.present && !this.#cameUp && this.ids.every((id) => this.#isLate(id));
  }
  get ids(): readonly number[] {
    return [...this.#handles.keys()];
  }

  /**
   * Starts those that are missing. A host that may block computes too while it waits, so it counts as one; if
   * it `isAway`, another worker stands in for it.
   */
  start(isAway = false): void {
    const { words } = this.#memory;
    const threads = wantedThreads();
    Atomics.store(words, LAYOUT.threads, threads);
    const spawn = spawner(() => this.start());
    if (spawn === undefined) return;
    const wanted = canBlock && !isAway ? Math.max(1, threads - 1) : threads;
    this.#wanted = wanted;
    for (let id = 1; id <= wanted && this.usable; id++) if (!this.#handles.has(id)) this.#start(id, spawn);
    Atomics.notify(words, LAYOUT.hostAway); // with more threads, another one stands in
  }
  /**
   * They count as awake from here on, not only when they get to run. The bell rings after that, so that one
   * which is about to sleep does not.
   */
  wake(): void {
    const { words } = this.#memory;
    const { asleep, awake, bell } = LAYOUT;
    for (const id of this.#handles.keys()) Atomics.compareExchange(words, stateOf(id), asleep, awake);
    Atomics.add(words, bell, 1);
    Atomics.notify(words, bell);
  }
  #start(id: number, spawn: Spawn): void {
    try {
      const data = { memory: this.#memory.memory, layout: LAYOUT, id, spins: SPINS };
      // the end of one may be heard of when another has its number
      const handle = spawn(data, (why) => {
        if (this.#handles.get(id) === handle) this.#lost(id, why);
      });
      this.#handles.set(id, handle);
      this.#startedAt.set(id, performance.now());
      const { words } = this.#memory;
      Atomics.store(words, LAYOUT.executorCount, Math.max(id + 1, Atomics.load(words, LAYOUT.executorCount)));
    } catch (e) {
      this.#losses = MAX_LOSSES;
      this.#onLoss(id, String(e));
    }
  }

  /** Ends one, as if it had died. */
  terminate(id: number): void {
    this.#handles.get(id)?.terminate();
  }
  /** Looks for those that are gone: a thread that blocks hears of nothing. */
  reap(): void {
    for (const id of this.ids) if (this.isGone(id)) this.#lost(id, "it was ended");
  }
  /** The same for a page: events may be missed, and one that was ended on its way is never heard of. */
  look(): void {
    const { words } = this.#memory;
    for (const [id, handle] of [...this.#handles]) {
      if (Atomics.load(words, stateOf(id)) !== LAYOUT.absent) handle.probe?.();
      else if (this.#isLate(id) && (this.present || this.#cameUp)) handle.terminate();
    }
  }
  /** Its thread is there no more, whether or not that was noticed. */
  isGone(id: number): boolean {
    return this.#handles.get(id)?.isGone() ?? true;
  }
  #lost(id: number, why: string): void {
    const hasComeUp = this.present || this.#cameUp;
    this.#handles.delete(id);
    // where none has ever come up none will: a page's policy forbids it, or its text does not run here
    this.#losses = hasComeUp ? this.#losses + 1 : MAX_LOSSES;
    this.#onLoss(id, why);
  }
  /** The workers did not come up in time: go on without them. */
  giveUp(): void {
    this.#losses = MAX_LOSSES;
    for (const handle of [...this.#handles.values()]) handle.terminate();
  }
}

const stateOf = (id: number): number => LAYOUT.executors + id * LAYOUT.executorWords + LAYOUT.state;
