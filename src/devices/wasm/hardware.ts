// What all devices on the rings share: the memory, the rings in it, the host's executor and the workers.
// Decides who executes a submission, waits for signals, and cleans up after a failure. One instance a
// process.

import { disassemble } from "#devices/disassemble";
import { Kernels } from "#devices/kernels";
import { executeShort, hostSharing } from "#devices/threads";
import { canBlock } from "#host";
import { env } from "../../env.ts";
import { DeviceError, OutOfMemoryError } from "../../errors.ts";
import { type MaybePromise, waitable } from "../../helpers.ts";
import { addLeftover, beginSlice, nextTask, sliceLeft } from "../../pace.ts";
import type { AddressNames } from "./disassemble.ts";
import { Executor } from "./executor.ts";
import type { StreamTime } from "./inline.ts";
import { LAYOUT, MAX_RINGS, RING_ENTRIES, SIGNAL_BYTES } from "./layout.ts";
import { canShare, openMemory, type WasmMemory } from "./memory.ts";
import { changed, Watch } from "./watch.ts";
import { Workers } from "./workers.ts";
import type { WorkSharing } from "./worksharing.ts";

/** A queue of submissions in the shared memory. */
export interface Ring {
  readonly label: string;
  /** its first word */
  readonly at: number;
}
/** What the hardware must know of a device. */
export interface Tenant {
  readonly name: string;
  /** something was submitted and is not done */
  readonly hasWork: boolean;
  /** What was submitted is given up: the next wait throws this, later work goes on. */
  abandon(error: DeviceError): void;
  /** Frees the memory that it gave up, which takes as long as the work that uses it. */
  drain(): void;
}
/** What a wait is for. */
interface WaitTarget {
  readonly done: () => boolean;
  /** the first word of the signal, to be told when it is set */
  readonly signal: number;
  readonly timeoutMs: number;
  /** the device on whose behalf; it hears of a failure from the wait itself */
  readonly tenant?: Tenant & { forget(error: DeviceError): void };
}

/** Work that takes longer than waking a thread: some 100 µs. */
const WORTH = 2 ** 18;
/** Work that takes a millisecond at most, as estimated for kernels that nobody has timed. */
const SHORT = 2 ** 20;
/**
 * How long a host that may block does so before it lets other tasks run, and how long a kernel may take that
 * it executes itself.
 */
const BLOCK_MS = 5;
const KERNEL_MS = 3;
/** A wait that is longer than this is worth another worker, which stands in for the host. */
const STAND_IN_MS = 20;
/** How long a page waits for workers that it has started before it computes meanwhile. */
const COME_UP_MS = 250;
/** A host that waits looks again after this long even if nobody rang. */
const SLEEP_MS = 50;
const LOOK_MS = 250;
/** How long an executor may take to come out of its kernel when all work is given up; a page cannot wait. */
const LEAVE_MS = canBlock ? 10_000 : 50;

export class Hardware {
  readonly memory: WasmMemory;
  readonly host: Executor;
  /** the host shares kernels, since it may block */
  readonly sharing: WorkSharing | undefined;
  readonly workers: Workers;
  readonly tenants = new Set<Tenant>();
  readonly #rings: Ring[] = [];
  readonly names: AddressNames = { signals: new Map(), kernels: new Map() };
  /** operations and bytes that were submitted since the rings were empty */
  #work = 0;
  /** what the host executes during a submission ends with the slice */
  isPaced = !canBlock;

  constructor(shared = canShare()) {
    this.memory = openMemory(shared);
    this.sharing = shared ? hostSharing() : undefined;
    const kernels = new Kernels(this.memory.memory, LAYOUT, 0);
    this.host = new Executor(this.memory.memory, LAYOUT, 0, kernels, this.sharing);
    this.workers = new Workers(this.memory, (id, why) => this.#lost(id, why));
    this.sharing?.whileLate(() => this.workers.reap());
    const { words } = this.memory;
    words[LAYOUT.executorCount] = 1;
    words[LAYOUT.threads] = 1;
    if (!canBlock) addLeftover(() => this.#goOn());
  }

  // ---- memory

  /** A block for the runtime's own use, or an error. */
  alloc(nbytes: number, zeroed = true): number {
    const at = this.memory.allocOwn(nbytes, zeroed);
    if (at !== undefined) return at;
    throw new OutOfMemoryError(
      `WASM: no room for ${nbytes} bytes of its own; drop tensors that are no longer needed`,
    );
  }
  /** The first byte of a new signal. */
  allocSignal(value: number, label: string): number {
    const at = this.alloc(SIGNAL_BYTES);
    this.memory.words[at >>> 2] = value;
    this.names.signals.set(at, label);
    return at;
  }
  freeSignal(at: number): void {
    this.names.signals.delete(at);
    this.memory.free(at, SIGNAL_BYTES);
  }

  /** What an executor does for a signal command, from the host. */
  setSignal(at: number, value: number): void {
    const { words } = this.memory;
    Atomics.store(words, at, value);
    if (Atomics.exchange(words, at + LAYOUT.wanted, 0) === 0) return;
    Atomics.add(words, LAYOUT.bell, 1);
    Atomics.notify(words, LAYOUT.bell);
    Atomics.add(words, LAYOUT.hostBell, 1);
    Atomics.notify(words, LAYOUT.hostBell);
    if (!this.workers.active) this.pump();
  }

  // ---- submitting

  newRing(label: string): Ring {
    if (this.#rings.length === MAX_RINGS) {
      throw new DeviceError(`${label}: there are ${MAX_RINGS / 2} devices already; use one of them`);
    }
    const at = LAYOUT.rings + this.#rings.length * LAYOUT.ringWords;
    const entries = this.alloc(RING_ENTRIES * 8);
    const { words } = this.memory;
    words[at + LAYOUT.entries] = entries >>> 2;
    const ring = { label, at };
    this.#rings.push(ring);
    Atomics.store(words, LAYOUT.ringCount, this.#rings.length);
    return ring;
  }
  /** How many submissions a ring has got, and how many of them are done; both wrap around. */
  submitted(ring: Ring): number {
    return Atomics.load(this.memory.words, ring.at + LAYOUT.tail);
  }
  hasDone(ring: Ring, submission: number): boolean {
    return ((Atomics.load(this.memory.words, ring.at + LAYOUT.head) - submission) | 0) >= 0;
  }

  /** Puts a stream into a ring; `work`: its operations and bytes, `timed`: how long it took before. */
  submit(ring: Ring, address: number, nwords: number, work: number, timed?: StreamTime): void {
    if (canBlock) this.#work = (this.#isBehind ? this.#work : 0) + work;
    const tail = this.submitted(ring);
    if (!this.hasDone(ring, (tail - RING_ENTRIES + 1) | 0)) this.#makeRoom(ring, tail);
    const { words } = this.memory;
    const entry = (words[ring.at + LAYOUT.entries] as number) + (tail & (RING_ENTRIES - 1)) * 2;
    words[entry] = address;
    words[entry + 1] = nwords;
    Atomics.store(words, ring.at + LAYOUT.tail, (tail + 1) | 0);
    const pump = (): boolean => {
      this.pump();
      return !this.#isBehind;
    };
    if (executeShort(work, timed, pump)) this.#settleFaults();
    else {
      Atomics.add(words, LAYOUT.bell, 1);
      this.#dispatch(work >= WORTH);
    }
  }
  #makeRoom(ring: Ring, tail: number): void {
    this.block({
      done: () => this.hasDone(ring, (tail - RING_ENTRIES / 2) | 0),
      signal: 0,
      timeoutMs: this.timeoutMs,
    });
  }

  /**
   * Who executes: a worker that is awake finds it by itself; sleeping ones are woken, and missing ones
   * started, for what is worth it; anything else the caller does at once, which
   * costs less than to have it done.
   */
  #dispatch(worth: boolean): void {
    const { workers } = this;
    if (workers.usable) {
      if (worth && workers.areShort) workers.start();
      if (workers.active) return;
      if (worth) {
        workers.start();
        if (workers.usable) {
          workers.wake();
          return;
        }
      }
    }
    this.pump();
    if (workers.started && this.#isBehind) workers.wake();
    this.#settleFaults();
  }

  /** The host executes what can be executed now; in a page until its time is over. */
  pump(): void {
    const until = this.isPaced ? performance.now() + sliceLeft() : Infinity;
    let heard: number;
    do heard = Atomics.load(this.memory.words, LAYOUT.bell);
    while (
      (this.host.pump(until) || Atomics.load(this.memory.words, LAYOUT.bell) !== heard) &&
      (until === Infinity || performance.now() < until)
    );
  }
  /** Does what was left when the time was over, where nobody else takes it; true: there is still more. */
  #goOn(): boolean {
    const isTaken = () => this.workers.usable && this.workers.active;
    if (!this.#isBehind || isTaken()) return false;
    const before = this.progress;
    this.pump();
    // what waits for a signal that has not come is not kept up
    return this.#isBehind && !isTaken() && this.progress !== before;
  }
  get #isBehind(): boolean {
    return this.#rings.some((ring) => !this.hasDone(ring, this.submitted(ring)));
  }

  // ---- waiting

  get timeoutMs(): number {
    return env.HCQ_TIMEOUT * 1000;
  }

  /** Blocks for a moment if this thread may block, then awaits. `done` throws if the device failed. */
  wait(wait: WaitTarget): MaybePromise<void> {
    this.#settleFaults();
    if (wait.done()) return;
    const watch = new Watch(this, wait.timeoutMs);
    if (canBlock && this.block(wait, watch, performance.now() + BLOCK_MS)) return;
    // who waits in the sync way hears of a failure; the promise must not hear of it first
    const sync = { isTaken: false };
    return waitable(this.#await(wait, watch, sync), () => {
      sync.isTaken = true;
      this.block(wait, watch);
    });
  }

  /**
   * Executes and sleeps until it is done. A caller that can await passes a time, `until`. It gets false at
   * that time, or earlier if the next kernel takes long, which is then left to workers.
   */
  block(wait: WaitTarget, watch = new Watch(this, wait.timeoutMs), until = Infinity): boolean {
    const most =
      canBlock && until < Infinity && this.workers.usable && this.workers.present ? KERNEL_MS : Infinity;
    for (;;) {
      this.#settleFaults();
      if (wait.done()) return true;
      const { words } = this.memory;
      const heard = Atomics.load(words, LAYOUT.bell);
      const isBusy = this.host.pump(until, most, this.#work > SHORT);
      if (isBusy && until === Infinity) continue;
      if (canBlock && (this.host.hasLeft || performance.now() >= until)) return this.#handOver(wait);
      if (isBusy) continue;
      if (wait.signal !== 0) Atomics.or(words, wait.signal + LAYOUT.wanted, 2);
      for (let i = 0; i < 2000 && Atomics.load(words, LAYOUT.bell) === heard; i++);
      if (wait.done()) return true;
      const limit = Math.min(wait.signal === 0 ? 1 : SLEEP_MS, until - performance.now());
      if (canBlock && this.memory.shared && limit > 0) this.host.sleep(heard, limit);
      if (Atomics.load(words, LAYOUT.bell) === heard) this.workers.reap();
      this.#look(wait, watch);
    }
  }
  /** Lets others go on with what the host has not finished. Returns whether all of it is done. */
  #handOver(wait: WaitTarget): boolean {
    if (!canBlock) return false;
    this.#settleFaults();
    if (wait.done()) return true;
    if (this.workers.started) this.workers.wake();
    return false;
  }

  async #await(wait: WaitTarget, watch: Watch, sync: { readonly isTaken: boolean }): Promise<void> {
    await undefined;
    const start = performance.now();
    while (!sync.isTaken) {
      if (this.#hasFaults) await this.#emptied();
      this.#settleFaults();
      if (wait.done()) return;
      const { workers } = this;
      const waited = performance.now() - start;
      // a page gives workers on their way a moment to take what it would have to do itself
      const isTaken = workers.present || (!canBlock && workers.started && waited < COME_UP_MS);
      if (!workers.usable || !isTaken) {
        if (canBlock && this.block(wait, watch, performance.now() + BLOCK_MS)) return;
        if (!canBlock) this.pump();
        this.#settleFaults();
        if (wait.done()) return;
        await nextTask();
        workers.look();
      } else {
        if (canBlock && waited >= STAND_IN_MS) workers.start(true);
        await this.#rung(wait, waited < STAND_IN_MS ? STAND_IN_MS - waited : LOOK_MS);
        workers.look();
        if (workers.areMissing) workers.giveUp();
        // the executor that was to do it may be gone
        if (workers.usable && this.#isBehind && !workers.active) workers.wake();
      }
      if (watch.look() !== 0) {
        await this.#emptied();
        this.#look(wait, watch);
      }
    }
  }
  /** Waits until somebody rings for the host, or until it is time to look. */
  async #rung({ done, signal }: WaitTarget, milliseconds: number): Promise<void> {
    const { words } = this.memory;
    const heard = Atomics.load(words, LAYOUT.hostBell);
    Atomics.or(words, signal + LAYOUT.wanted, 1);
    if (done()) return;
    if (canBlock) {
      Atomics.add(words, LAYOUT.hostAway, 1);
      Atomics.notify(words, LAYOUT.hostAway);
    }
    await changed(words, LAYOUT.hostBell, heard, milliseconds);
    if (canBlock) Atomics.sub(words, LAYOUT.hostAway, 1);
    beginSlice();
    // an event says so, too, but it may come late or have been missed
    if (canBlock && Atomics.load(words, LAYOUT.hostBell) === heard) this.workers.reap();
  }
  #look(wait: WaitTarget, watch: Watch): void {
    const still = watch.look();
    if (still === 0) return;
    const { name } = wait.tenant ?? [...this.tenants].find((t) => t.hasWork) ?? { name: "WASM" };
    const error = this.#giveUp(
      `${name}: nothing moved for ${still} s while a signal was waited for; what was queued is dropped. ` +
        `A wait that no queue will meet, or a very long kernel (then raise HCQ_TIMEOUT). Queued:\n${this.show()}`,
    );
    wait.tenant?.forget(error);
    throw error;
  }

  // ---- failing

  /** Where a ring has failed, everything in flight is given up. */
  #settleFaults(): void {
    if (this.#hasFaults) this.#giveUp();
  }
  get #hasFaults(): boolean {
    return Atomics.load(this.memory.words, LAYOUT.faults) !== 0;
  }

  /**
   * A kernel that failed leaves memory that later work would build on. So all that is in flight is dropped,
   * on every device that has any; each of them says so once, at its next wait, and works again.
   */
  #giveUp(reason?: string): DeviceError {
    const { words } = this.memory;
    Atomics.store(words, LAYOUT.halt, 1);
    this.#awaitRings();
    const failed = this.#rings.filter((r) => words[r.at + LAYOUT.fault] !== 0).map((r) => this.#faultOf(r));
    const error = new DeviceError(reason ?? failed.join("; "));
    const affected = [...this.tenants].filter((t) => t.hasWork);
    for (const ring of this.#rings) {
      words[ring.at + LAYOUT.fault] = 0;
      words[ring.at + LAYOUT.at] = 0;
      words[ring.at + LAYOUT.part] = 0;
      Atomics.store(words, ring.at + LAYOUT.head, this.submitted(ring));
    }
    Atomics.store(words, LAYOUT.faults, 0);
    for (const tenant of affected) tenant.abandon(error);
    Atomics.store(words, LAYOUT.halt, 0);
    Atomics.add(words, LAYOUT.bell, 1);
    return error;
  }
  /** The executors that work on a ring or help with a kernel. */
  get #inside(): Set<number> {
    const { words } = this.memory;
    const inside = new Set(this.#rings.map((r) => Atomics.load(words, r.at + LAYOUT.lock) - 1));
    for (const id of this.workers.ids) {
      const at = LAYOUT.executors + id * LAYOUT.executorWords + LAYOUT.helping;
      if (Atomics.load(words, at) !== 0) inside.add(id);
    }
    inside.delete(-1);
    return inside;
  }
  /**
   * Called before work in flight is given up: lets tasks run until no executor is inside, or for a long time.
   */
  async #emptied(): Promise<void> {
    if (!canBlock) return;
    const { words } = this.memory;
    Atomics.store(words, LAYOUT.halt, 1);
    const until = performance.now() + LEAVE_MS;
    while (Atomics.load(words, LAYOUT.halt) !== 0 && this.#inside.size > 0 && performance.now() < until)
      await new Promise((resolve) => setTimeout(resolve, 1));
  }
  /** Waits until no executor is inside. One that does not leave its kernel in time is terminated. */
  #awaitRings(): void {
    const { words } = this.memory;
    const until = performance.now() + LEAVE_MS;
    for (;;) {
      const inside = this.#inside;
      if (inside.size === 0) return;
      const isLate = performance.now() > until;
      for (const id of inside) if (isLate) this.workers.terminate(id);
      this.workers.reap();
      if (canBlock && this.memory.shared) Atomics.wait(words, LAYOUT.halt, 1, 1);
    }
  }
  #faultOf(ring: Ring): string {
    const { words } = this.memory;
    const executor = (words[ring.at + LAYOUT.fault] as number) - 1;
    const kernel = words[ring.at + LAYOUT.faultKernel] as number;
    const what = kernel === 0 ? "a command" : `kernel ${this.names.kernels.get(kernel) ?? "?"}`;
    const bytes = this.memory.bytes(LAYOUT.texts * 4 + executor * LAYOUT.textBytes, LAYOUT.textBytes).slice();
    const text = new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
    const where = executor === 0 ? "the host's thread" : `worker ${executor}`;
    return `${ring.label}: ${what} failed on ${where}: ${text}; what was queued is dropped`;
  }

  /** A worker is gone: what it was in the middle of has failed, and nobody may wait for it. */
  #lost(id: number, why: string): void {
    const { words } = this.memory;
    const me = LAYOUT.executors + id * LAYOUT.executorWords;
    const text = new TextEncoder().encode(`the worker is gone (${why})`).subarray(0, LAYOUT.textBytes - 1);
    this.memory
      .bytes(LAYOUT.texts * 4 + id * LAYOUT.textBytes, LAYOUT.textBytes)
      .fill(0)
      .set(text);
    const helping = Atomics.exchange(words, me + LAYOUT.helping, 0);
    if (helping !== 0) {
      const job = LAYOUT.executors + (helping - 1) * LAYOUT.executorWords;
      Atomics.store(words, job + LAYOUT.jobFault, id + 1);
      Atomics.add(words, job + LAYOUT.jobLeft, 1);
      Atomics.notify(words, job + LAYOUT.jobLeft);
    }
    Atomics.store(words, me + LAYOUT.jobOpen, 0);
    for (const ring of this.#rings) {
      if (Atomics.load(words, ring.at + LAYOUT.lock) !== id + 1) continue;
      words[ring.at + LAYOUT.faultKernel] = words[me + LAYOUT.kernel] as number;
      words[ring.at + LAYOUT.fault] = id + 1;
      Atomics.add(words, LAYOUT.faults, 1);
      Atomics.store(words, ring.at + LAYOUT.lock, 0);
    }
    for (const field of ["state", "kernel"] as const) words[me + LAYOUT[field]] = 0;
    for (const bell of [LAYOUT.bell, LAYOUT.hostBell]) {
      Atomics.add(words, bell, 1);
      Atomics.notify(words, bell);
    }
    if (!this.workers.usable) this.pump();
  }

  /** How much was executed so far, by all; it only has to differ when something was. */
  get progress(): number {
    return this.#sum(LAYOUT.progress);
  }
  /** Somebody is inside a kernel. */
  get computing(): boolean {
    return this.#sum(LAYOUT.kernel) !== 0;
  }
  #sum(field: number): number {
    const { words } = this.memory;
    let sum = 0;
    for (let e = 0; e < (words[LAYOUT.executorCount] as number); e++)
      sum += words[LAYOUT.executors + e * LAYOUT.executorWords + field] as number;
    return sum;
  }

  /** What is in the rings, a line a command; `>` is the one to be executed next. */
  show(): string {
    const { words } = this.memory;
    return this.#rings
      .flatMap(({ label, at }) => {
        const lines: string[] = [];
        const tail = words[at + LAYOUT.tail] as number;
        for (let n = words[at + LAYOUT.head] as number; n !== tail; n = (n + 1) | 0) {
          const entry = (words[at + LAYOUT.entries] as number) + (n & (RING_ENTRIES - 1)) * 2;
          const start = (words[entry] as number) >>> 2;
          const stream = words.subarray(start, start + (words[entry + 1] as number));
          lines.push(
            ...disassemble(
              stream,
              this.names,
              n === words[at + LAYOUT.head] ? (words[at + LAYOUT.at] as number) : -1,
              words,
            ),
          );
        }
        return lines.length === 0 ? [] : [`${label}:`, ...lines.map((l) => `  ${l}`)];
      })
      .join("\n");
  }
}
