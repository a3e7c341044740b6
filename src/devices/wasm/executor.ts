// The hardware of WASM: takes submissions from rings in the shared memory and executes their commands. One
// runs in each worker and one on the host; all do the same, so work never depends on who is there. The
// class's own text is sent to the workers: it must not use anything from outside but what it is given
// and what every JavaScript has.

import type { HostKernels, Loaded, NativeCalls } from "./kernels.ts";
import type { RingLayout } from "./layout.ts";
import type { Sharer, WorkSharing } from "./worksharing.ts";

/**
 * Executes what stands at a word; gives the words it took, or 0 where it has to wait, or -1 where it failed.
 */
type Handler = (at: number) => number;

export class Executor implements Sharer {
  readonly #memory: WebAssembly.Memory;
  readonly #l: RingLayout;
  readonly #id: number;
  /** the first word of this executor's record */
  readonly #me: number;
  readonly #sharing: WorkSharing | undefined;
  readonly #handlers: readonly Handler[];
  readonly kernels: HostKernels;
  /** when this thread must be given back; a time of `performance.now()` */
  #until = Infinity;
  /** no other thread takes what is left when the time is over */
  #isAlone = true;
  /** the word in which the ring keeps how far its kernel has got */
  #part = 0;
  #w = new Int32Array(0);
  #bytes = new Uint8Array(0);
  #times = new Float64Array(0);

  constructor(
    memory: WebAssembly.Memory,
    layout: RingLayout,
    id: number,
    kernels: HostKernels,
    sharing?: WorkSharing,
  ) {
    this.kernels = kernels;
    this.#sharing = sharing;
    this.#memory = memory;
    this.#l = layout;
    this.#id = id;
    this.#me = layout.executors + id * layout.executorWords;
    const table: Record<RingLayout["commands"][number], Handler> = {
      signal: (at) => this.#signal(at),
      wait: (at) => this.#wait(at),
      timestamp: (at) => this.#timestamp(at),
      memoryBarrier: () => 1, // signals and waits are sequentially consistent, and kernels run in order
      exec: (at) => this.#exec(at),
      copy: (at) => this.kernels.copy(this.#w, this.#bytes, at),
      move: (at) => this.kernels.move?.(this.#w, this.#bytes, at) ?? -1,
      copyWide: (at) => this.kernels.copyWide(this.#w, this.#bytes, at),
    };
    this.#handlers = layout.commands.map((name) => table[name]);
    this.#seeAll();
  }

  /** What kernels import that this thread runs. */
  get imports(): HostKernels["imports"] {
    return this.kernels.imports;
  }
  /** Something was left to others since the last pump began. */
  get hasLeft(): boolean {
    return this.kernels.hasLeft === true;
  }
  /** Native calls that this thread has already. */
  useNative(native: NativeCalls): void {
    this.kernels.useNative?.(native);
  }

  /** A worker's life: work, watch the bell for a while, sleep on it. */
  loop(spins: number): never {
    const { bell, state, awake } = this.#l;
    Atomics.store(this.#w, this.#me + state, awake);
    for (;;) {
      this.kernels.standBy?.(this.#w);
      const heard = Atomics.load(this.#w, bell);
      if (this.pump()) continue;
      let left = spins;
      while (left > 0 && Atomics.load(this.#w, bell) === heard) left--;
      if (left === 0) this.sleep(heard, Infinity);
    }
  }
  /** Sleeps until the bell is not what it was. Only where a thread may block. */
  sleep(heard: number, milliseconds: number): void {
    const { bell, sleepers, state, awake, asleep } = this.#l;
    Atomics.store(this.#w, this.#me + state, asleep);
    Atomics.add(this.#w, sleepers, 1);
    Atomics.wait(this.#w, bell, heard, milliseconds);
    Atomics.sub(this.#w, sleepers, 1);
    Atomics.store(this.#w, this.#me + state, awake);
  }

  /**
   * Executes what can be executed now, anywhere, and stops after the command or part of a kernel in which
   * `until` comes; says whether there was anything. A kernel that would hold this thread for more than `most`
   * milliseconds is left to others. With `isWary`, so is a kernel that nobody has timed.
   */
  pump(until = Infinity, most = Infinity, isWary = false): boolean {
    this.#until = until;
    this.#isAlone = most === Infinity;
    this.kernels.limit?.(until, most, isWary);
    // a memory of one thread moves when it grows
    if (this.#w.length === 0) this.#seeAll();
    const w = this.#w;
    const { ringCount, rings, ringWords, halt } = this.#l;
    let busy = this.#sharing?.help(this) === true;
    const count = Atomics.load(w, ringCount);
    for (let i = 0; i < count && Atomics.load(w, halt) === 0; i++) {
      // neighbours start at different rings, so that they do not all try the same one
      const n = (i + this.#id) % count;
      if (this.#runRing(rings + n * ringWords)) busy = true;
    }
    return busy;
  }

  get words(): Int32Array {
    return this.#w;
  }
  get bytes(): Uint8Array {
    return this.#bytes;
  }
  look(): void {
    if (!this.#seesAll(this.#w)) this.#seeAll();
  }
  /** Sees all of the memory; the growing of a shared one is heard of late, but it is. */
  #seeAll(): void {
    do {
      const { buffer } = this.#memory;
      this.#w = new Int32Array(buffer);
      this.#bytes = new Uint8Array(buffer);
      this.#times = new Float64Array(buffer);
    } while (!this.#seesAll(this.#w));
  }
  #seesAll(w: Int32Array): boolean {
    return w.length >= (w[this.#l.size] as number) * this.#l.pageWords;
  }

  #runRing(ring: number): boolean {
    let w = this.#w;
    const { lock, head, tail, at, entries, ringEntries, fault } = this.#l;
    if (Atomics.load(w, ring + head) === Atomics.load(w, ring + tail)) return false;
    if (w[ring + fault] !== 0) return false;
    if (Atomics.compareExchange(w, ring + lock, 0, this.#id + 1) !== 0) return false;
    this.#part = ring + this.#l.part;
    let busy = false;
    for (;;) {
      const first = Atomics.load(w, ring + head);
      if (first === Atomics.load(w, ring + tail) || (busy && this.isLate)) break;
      // what was submitted may lie, or point, where the memory has grown since
      if (!this.#seesAll(w)) {
        this.#seeAll();
        w = this.#w;
      }
      const entry = (w[ring + entries] as number) + (first & (ringEntries - 1)) * 2;
      const start = (w[entry] as number) >>> 2;
      const words = w[entry + 1] as number;
      const from = w[ring + at] as number;
      const done = this.#runEntry(ring, start, from, words);
      if (done > from) busy = true;
      w[ring + at] = done < words ? done : 0;
      if (done < words) break;
      Atomics.store(w, ring + head, (first + 1) | 0);
    }
    Atomics.store(w, ring + lock, 0);
    return busy;
  }

  get isLate(): boolean {
    return this.#until !== Infinity && performance.now() >= this.#until;
  }

  /** Executes words `from` to `words` of a stream; gives how far it came. */
  #runEntry(ring: number, start: number, from: number, words: number): number {
    const { progress, fault, faultKernel, faults, kernel, halt } = this.#l;
    let at = from;
    while (at < words) {
      const w = this.#w;
      if (Atomics.load(w, halt) !== 0) return at;
      const took = this.#run(start + at);
      if (took === 0) return at;
      if (took < 0) {
        w[ring + faultKernel] = w[this.#me + kernel] as number;
        w[this.#me + kernel] = 0;
        w[ring + fault] = this.#id + 1;
        Atomics.add(w, faults, 1);
        this.ring();
        this.#ringHost();
        return at;
      }
      at += took;
      w[this.#me + progress] = ((w[this.#me + progress] as number) + 1) | 0;
      if (this.isLate) return at;
    }
    return at;
  }

  #run(at: number): number {
    const code = this.#w[at] as number;
    try {
      return this.#handlers[code]?.(at) ?? this.fail(`no command has number ${code}`);
    } catch (e) {
      return this.fail(e);
    }
  }

  #signal(at: number): number {
    const w = this.#w;
    const signal = (w[at + 1] as number) >>> 2;
    Atomics.store(w, signal, w[at + 2] as number);
    const wanted = Atomics.exchange(w, signal + this.#l.wanted, 0);
    if ((wanted & 2) !== 0) this.ring();
    if ((wanted & 1) !== 0) this.#ringHost();
    return 3;
  }
  #wait(at: number): number {
    const w = this.#w;
    const signal = (w[at + 1] as number) >>> 2;
    const value = w[at + 2] as number;
    if (Atomics.load(w, signal) >= value) return 3;
    // leave word that someone waits; the signal may have come in between
    Atomics.or(w, signal + this.#l.wanted, 2);
    return Atomics.load(w, signal) >= value ? 3 : 0;
  }
  #timestamp(at: number): number {
    const signal = (this.#w[at + 1] as number) >>> 3;
    this.#times[signal + 1] = (performance.timeOrigin + performance.now()) * 1000;
    return 2;
  }
  #exec(at: number): number {
    const w = this.#w;
    const record = w[at + 1] as number;
    const args = (w[at + 2] as number) >>> 2;
    const size = w[at + 3] as number;
    const begin = w[this.#part] as number;
    const width = size < 0 ? 1 : Math.max(1, this.#sharing?.width(w, size - begin) ?? 1);
    if (this.kernels.leaves?.(w, record, size < 0 ? 1 : Math.ceil(size / width))) return 0;
    w[this.#me + this.#l.kernel] = record;
    const kernel = this.#load(record);
    if (size < 0) this.kernels.call(kernel, record, w, args, -1, 0);
    else if (this.#until !== Infinity && (this.#isAlone || width <= 1)) {
      if (!this.#slice(kernel, record, args, size)) return 0;
    } else if (width <= 1) this.#whole(kernel, record, args, size);
    else {
      w[this.#part] = 0;
      const job = { record, args, begin, end: size, width };
      const next = (this.#sharing as WorkSharing).share(this, kernel, job);
      if (next < size) {
        if (next < 0) return -1;
        w[this.#part] = next;
        w[this.#me + this.#l.kernel] = 0;
        return 0;
      }
    }
    w[this.#me + this.#l.kernel] = 0;
    return 4;
  }
  /** Wakes whoever sleeps. */
  ring(): void {
    const { bell, sleepers } = this.#l;
    Atomics.add(this.#w, bell, 1);
    if (Atomics.load(this.#w, sleepers) > 0) Atomics.notify(this.#w, bell);
  }
  #ringHost(): void {
    Atomics.add(this.#w, this.#l.hostBell, 1);
    Atomics.notify(this.#w, this.#l.hostBell);
  }

  /** Leaves the text of an error where the host finds it. */
  fail(e: unknown): -1 {
    const text = e instanceof Error ? `${e.name}: ${e.message}` : String(e);
    const start = this.#l.texts * 4 + this.#id * this.#l.textBytes;
    const bytes = new TextEncoder().encode(text).subarray(0, this.#l.textBytes - 1);
    this.#bytes.fill(0, start, start + this.#l.textBytes);
    this.#bytes.set(bytes, start);
    return -1;
  }

  /** A kernel that this thread has already. */
  adopt(record: number, generation: number, fn: unknown): void {
    this.kernels.adopt(record, generation, this.#field(record, this.#l.native) !== 0, fn);
  }
  #field(record: number, field: number): number {
    if (this.#w.length <= record >>> 2) this.#seeAll();
    return this.#w[(record >>> 2) + field] as number;
  }

  known(record: number): Loaded | undefined {
    return this.kernels.known(record, this.#field(record, this.#l.generation));
  }
  #load(record: number): Loaded {
    const loaded =
      this.known(record) ?? this.kernels.instantiate(this.kernels.codeOf(this.#w, this.#bytes, record));
    if (loaded.fn instanceof Error) throw loaded.fn;
    return loaded;
  }
  /**
   * Alone, a part at a time, until the time is over: the ring keeps how far it came, for whoever goes on.
   * Says whether all of it is done.
   */
  #slice(kernel: Loaded, record: number, args: number, size: number): boolean {
    const w = this.#w;
    const each = this.kernels.duration?.(w, record) ?? 0;
    let count = Math.ceil(each === 0 ? size / 512 : Math.min(size / 32, 2e6 / each));
    let last = performance.now();
    for (let begin = w[this.#part] as number; begin < size; ) {
      const end = Math.min(size, begin + count);
      this.kernels.call(kernel, record, this.#w, args, begin, end);
      const now = performance.now();
      this.kernels.time?.(w, record, now - last, end - begin);
      begin = end;
      w[this.#part] = begin < size ? begin : 0;
      w[this.#me + this.#l.progress] = ((w[this.#me + this.#l.progress] as number) + 1) | 0;
      if (begin < size && now >= this.#until) {
        w[this.#me + this.#l.kernel] = 0;
        return false;
      }
      // long enough to be worth a call, short enough to stop in time
      if (now - last > 4) count = Math.max(1, count >> 1);
      else if (now - last < 1) count *= 2;
      last = now;
    }
    return true;
  } /** The rest of a kernel at once. */
  #whole(kernel: Loaded, record: number, args: number, end: number): void {
    const begin = this.#w[this.#part] as number;
    this.#w[this.#part] = 0;
    const before = performance.now();
    this.kernels.call(kernel, record, this.#w, args, begin, end);
    const took = performance.now() - before;
    this.kernels.time?.(this.#w, record, took, end - begin);
    const each = took / (end - begin);
    // the least counts, which nothing disturbed; it may be of another time, so it rises slowly
    kernel.alone = kernel.alone === 0 ? each : Math.min(each, kernel.alone * 1.01);
  }
}
