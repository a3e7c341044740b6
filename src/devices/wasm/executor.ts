// The hardware of WASM: takes submissions from rings in the shared memory and executes their commands. One
// runs in each worker and one on the host; all do the same, so work never depends on who is there. The
// class's own text is sent to the workers: it must not use anything from outside but what it is given
// and what every JavaScript has.

import type { Governor } from "./governor.ts";
import type { HostKernels, KernelCode, Loaded, NativeCalls } from "./kernels.ts";
import type { RingLayout } from "./layout.ts";

/**
 * Executes what stands at a word; gives the words it took, or 0 where it has to wait, or -1 where it failed.
 */
type Handler = (at: number) => number;

export class Executor {
  readonly #memory: WebAssembly.Memory;
  readonly #l: RingLayout;
  readonly #id: number;
  /** the first word of this executor's record */
  readonly #me: number;
  readonly #canBlock: boolean;
  readonly #governor: Governor;
  readonly #handlers: readonly Handler[];
  readonly #kernels: HostKernels;
  /** when this thread must be given back; a time of `performance.now()` */
  #until = Infinity;
  /** no other thread takes what is left when the time is over */
  #isAlone = true;
  /** the word in which the ring keeps how far its kernel has got */
  #part = 0;
  #whileLate: (() => void) | undefined;
  /** milliseconds of the parts that this thread took of its last shared kernel */
  readonly #durations = new Float64Array(16);
  #timed = 0;
  #w = new Int32Array(0);
  #bytes = new Uint8Array(0);
  #times = new Float64Array(0);

  constructor(
    memory: WebAssembly.Memory,
    layout: RingLayout,
    id: number,
    canBlock: boolean,
    governor: Governor,
    kernels: HostKernels,
  ) {
    this.#governor = governor;
    this.#kernels = kernels;
    this.#memory = memory;
    this.#l = layout;
    this.#id = id;
    this.#me = layout.executors + id * layout.executorWords;
    this.#canBlock = canBlock;
    const table: Record<RingLayout["commands"][number], Handler> = {
      signal: (at) => this.#signal(at),
      wait: (at) => this.#wait(at),
      timestamp: (at) => this.#timestamp(at),
      memoryBarrier: () => 1, // signals and waits are sequentially consistent, and kernels run in order
      exec: (at) => this.#exec(at),
      copy: (at) => this.#kernels.copy(this.#w, this.#bytes, at),
      move: (at) => this.#kernels.move?.(this.#w, this.#bytes, at) ?? -1,
      copyWide: (at) => this.#kernels.copyWide(this.#w, this.#bytes, at),
    };
    this.#handlers = layout.commands.map((name) => table[name]);
    this.#seeAll();
  }

  /** What kernels import that this thread runs. */
  get imports(): HostKernels["imports"] {
    return this.#kernels.imports;
  }
  /** Something was left to others since the last pump began. */
  get hasLeft(): boolean {
    return this.#kernels.hasLeft === true;
  }
  /** Native calls that this thread has already. */
  useNative(native: NativeCalls): void {
    this.#kernels.useNative?.(native);
  }

  /** A worker's life: work, watch the bell for a while, sleep on it. */
  loop(spins: number): never {
    const { bell, state, awake } = this.#l;
    Atomics.store(this.#w, this.#me + state, awake);
    for (;;) {
      this.#kernels.standBy?.(this.#w);
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
    this.#kernels.limit?.(until, most, isWary);
    // a memory of one thread moves when it grows
    if (this.#w.length === 0) this.#seeAll();
    const w = this.#w;
    const { ringCount, rings, ringWords, executorCount, halt } = this.#l;
    let busy = false;
    const executors = Atomics.load(w, executorCount);
    for (let e = 0; e < executors; e++) if (e !== this.#id && this.#help(e)) busy = true;
    const count = Atomics.load(w, ringCount);
    for (let i = 0; i < count && Atomics.load(w, halt) === 0; i++) {
      // neighbours start at different rings, so that they do not all try the same one
      const n = (i + this.#id) % count;
      if (this.#runRing(rings + n * ringWords)) busy = true;
    }
    return busy;
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
      if (first === Atomics.load(w, ring + tail) || (busy && this.#isLate())) break;
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

  #isLate(): boolean {
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
        this.#ring();
        this.#ringHost();
        return at;
      }
      at += took;
      w[this.#me + progress] = ((w[this.#me + progress] as number) + 1) | 0;
      if (this.#isLate()) return at;
    }
    return at;
  }

  #run(at: number): number {
    const code = this.#w[at] as number;
    try {
      return this.#handlers[code]?.(at) ?? this.#fail(`no command has number ${code}`);
    } catch (e) {
      return this.#fail(e);
    }
  }

  #signal(at: number): number {
    const w = this.#w;
    const signal = (w[at + 1] as number) >>> 2;
    Atomics.store(w, signal, w[at + 2] as number);
    const wanted = Atomics.exchange(w, signal + this.#l.wanted, 0);
    if ((wanted & 2) !== 0) this.#ring();
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
    const width = size < 0 ? 1 : this.#width(size - (w[this.#part] as number));
    if (this.#kernels.leaves?.(w, record, size < 0 ? 1 : Math.ceil(size / width))) return 0;
    w[this.#me + this.#l.kernel] = record;
    const kernel = this.#load(record);
    if (size < 0) this.#kernels.call(kernel, record, w, args, -1, 0);
    else if (this.#until !== Infinity && (this.#isAlone || width <= 1)) {
      if (!this.#slice(kernel, record, args, size)) return 0;
    } else {
      const took = this.#share(kernel, record, args, size, width);
      if (took <= 0) return took;
    }
    w[this.#me + this.#l.kernel] = 0;
    return 4;
  }
  /** How many threads may share this many indexes of a kernel now. */
  #width(size: number): number {
    const { threads, executorCount } = this.#l;
    const w = this.#w;
    // a page's thread must not wait for others
    const most = this.#canBlock ? Math.min(Atomics.load(w, threads), Atomics.load(w, executorCount)) : 1;
    return Math.max(1, Math.min(this.#governor.width(w, most), size));
  }
  /** Wakes whoever sleeps. */
  #ring(): void {
    const { bell, sleepers } = this.#l;
    Atomics.add(this.#w, bell, 1);
    if (Atomics.load(this.#w, sleepers) > 0) Atomics.notify(this.#w, bell);
  }
  #ringHost(): void {
    Atomics.add(this.#w, this.#l.hostBell, 1);
    Atomics.notify(this.#w, this.#l.hostBell);
  }

  /** Leaves the text of an error where the host finds it. */
  #fail(e: unknown): -1 {
    const text = e instanceof Error ? `${e.name}: ${e.message}` : String(e);
    const start = this.#l.texts * 4 + this.#id * this.#l.textBytes;
    const bytes = new TextEncoder().encode(text).subarray(0, this.#l.textBytes - 1);
    this.#bytes.fill(0, start, start + this.#l.textBytes);
    this.#bytes.set(bytes, start);
    return -1;
  }

  /** Called now and then while a helper keeps this thread waiting. */
  whileLate(look: () => void): void {
    this.#whileLate = look;
  }
  /** A kernel that this thread has already. */
  adopt(record: number, generation: number, fn: unknown): void {
    this.#kernels.adopt(record, generation, this.#field(record, this.#l.native) !== 0, fn);
  }
  #field(record: number, field: number): number {
    if (this.#w.length <= record >>> 2) this.#seeAll();
    return this.#w[(record >>> 2) + field] as number;
  }

  #known(record: number): Loaded | undefined {
    return this.#kernels.known(record, this.#field(record, this.#l.generation));
  }
  #load(record: number): Loaded {
    const loaded =
      this.#known(record) ?? this.#kernels.instantiate(this.#kernels.codeOf(this.#w, this.#bytes, record));
    if (loaded.fn instanceof Error) throw loaded.fn;
    return loaded;
  }
  /**
   * Alone, a part at a time, until the time is over: the ring keeps how far it came, for whoever goes on.
   * Says whether all of it is done.
   */
  #slice(kernel: Loaded, record: number, args: number, size: number): boolean {
    const w = this.#w;
    const each = this.#kernels.duration?.(w, record) ?? 0;
    let count = Math.ceil(each === 0 ? size / 512 : Math.min(size / 32, 2e6 / each));
    let last = performance.now();
    for (let begin = w[this.#part] as number; begin < size; ) {
      const end = Math.min(size, begin + count);
      this.#kernels.call(kernel, record, this.#w, args, begin, end);
      const now = performance.now();
      this.#kernels.time?.(w, record, now - last, end - begin);
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
  }

  /**
   * Shares the rest of a kernel with all executors and works on it too. Gives the words of the command when
   * all of it is done, 0 where the time was over before (the ring keeps how far it came), -1 where it failed.
   */
  #share(kernel: Loaded, record: number, args: number, end: number, width: number): number {
    const w = this.#w;
    const begin = w[this.#part] as number;
    const size = end - begin;
    w[this.#part] = 0;
    const { jobOpen, jobKernel, jobArgs, jobSize, jobChunk, jobNext, jobFault, jobSeats } = this.#l;
    if (width <= 1) {
      const before = performance.now();
      this.#kernels.call(kernel, record, this.#w, args, begin, end);
      const took = performance.now() - before;
      this.#kernels.time?.(this.#w, record, took, size);
      const each = took / size;
      // the least counts, which nothing disturbed; it may be of another time, so it rises slowly
      kernel.alone = kernel.alone === 0 ? each : Math.min(each, kernel.alone * 1.01);
      return 4;
    }
    const me = this.#me;
    this.#awaitHelpers(); // those of a job whose owner died, and which this executor replaces
    const chunk = Math.ceil(size / (width * this.#l.partsEach));
    w[me + jobKernel] = record;
    w[me + jobArgs] = args;
    w[me + jobSize] = end;
    w[me + jobChunk] = chunk;
    w[me + jobFault] = 0;
    Atomics.store(w, me + jobNext, begin);
    Atomics.store(w, me + jobSeats, width - 1);
    Atomics.store(w, me + jobOpen, 1);
    this.#ring();
    const start = performance.now();
    let mine = 0;
    try {
      mine = this.#parts(me, kernel);
    } catch (e) {
      this.#fail(e);
      Atomics.store(w, me + jobFault, this.#id + 1);
    }
    const closed = performance.now();
    Atomics.store(w, me + jobOpen, 0);
    this.#awaitHelpers();
    const failed = Atomics.load(w, me + jobFault);
    if (failed !== 0 && failed !== this.#id + 1) this.#copyText(failed - 1);
    const helpers = width - 1 - Math.max(0, Atomics.load(w, me + jobSeats));
    // two threads that share a memory may each take longer for a part than one alone
    const alone = helpers === 1 && kernel.alone > 0 ? kernel.alone * chunk : Infinity;
    const part = Math.min(this.#governor.usual(this.#durations.subarray(0, this.#timed)), alone);
    const times = { part, own: closed - start, waited: performance.now() - closed };
    const next = Math.min(Atomics.load(w, me + jobNext), end);
    this.#governor.count(w, { helpers, parts: Math.ceil((next - begin) / chunk), mine, ...times });
    if (failed !== 0) return -1;
    if (next === end) return 4;
    w[this.#part] = next;
    w[me + this.#l.kernel] = 0;
    return 0;
  }

  /** Until no helper is inside the job of this executor: looks for a while, then sleeps. */
  #awaitHelpers(): void {
    const w = this.#w;
    const { jobLeft, jobAwaited } = this.#l;
    for (let looks = 0; this.#hasHelpers(); looks++) {
      if (looks < this.#l.looks) continue;
      const left = Atomics.load(w, this.#me + jobLeft);
      Atomics.store(w, this.#me + jobAwaited, 1);
      if (this.#hasHelpers() && Atomics.wait(w, this.#me + jobLeft, left, 50) === "timed-out") {
        this.#whileLate?.();
      }
      Atomics.store(w, this.#me + jobAwaited, 0);
    }
  }
  #hasHelpers(): boolean {
    const w = this.#w;
    const { executors, executorWords, executorCount, helping } = this.#l;
    const count = Atomics.load(w, executorCount);
    for (let e = 0; e < count; e++) {
      if (Atomics.load(w, executors + e * executorWords + helping) === this.#id + 1) return true;
    }
    return false;
  }
  /** What went wrong at a helper is reported by the one who asked for help. */
  #copyText(from: number): void {
    const { texts, textBytes } = this.#l;
    const start = texts * 4 + from * textBytes;
    this.#bytes.copyWithin(texts * 4 + this.#id * textBytes, start, start + textBytes);
  }

  /** Takes parts until there are none or the time is over; says how many. */
  #parts(job: number, kernel: Loaded): number {
    const w = this.#w;
    const { jobOpen, jobKernel, jobArgs, jobSize, jobChunk, jobNext } = this.#l;
    const record = w[job + jobKernel] as number;
    const [args, size, chunk] = [
      w[job + jobArgs] as number,
      w[job + jobSize] as number,
      w[job + jobChunk] as number,
    ];
    this.#timed = 0;
    let last = performance.now();
    for (let taken = 0; ; taken++) {
      // an owner whose time is over closes the job: who helped leaves the rest, too
      if (taken > 0 && (this.#isLate() || Atomics.load(w, job + jobOpen) === 0)) return taken;
      const begin = Atomics.add(w, job + jobNext, chunk);
      if (begin >= size) return taken;
      const end = Math.min(size, begin + chunk);
      this.#kernels.call(kernel, record, this.#w, args, begin, end);
      const now = performance.now();
      this.#kernels.time?.(this.#w, record, now - last, end - begin);
      if (this.#timed < this.#durations.length) this.#durations[this.#timed++] = now - last;
      last = now;
      w[this.#me + this.#l.progress] = ((w[this.#me + this.#l.progress] as number) + 1) | 0;
    }
  }

  /** Takes parts of a kernel that another executor put up. */
  #help(other: number): boolean {
    const w = this.#w;
    const { executors, executorWords, jobOpen, jobKernel, jobFault, jobNext, jobSize, jobSeats } = this.#l;
    const { helping, jobLeft, jobAwaited, jobChunk } = this.#l;
    const job = executors + other * executorWords;
    if (Atomics.load(w, job + jobOpen) === 0 || Atomics.load(w, job + jobSeats) <= 0) return false;
    if (Atomics.load(w, job + jobNext) >= (w[job + jobSize] as number)) return false;
    Atomics.store(w, this.#me + helping, other + 1);
    let helped = false;
    let copied: KernelCode | undefined;
    try {
      if (Atomics.load(w, job + jobOpen) !== 0) {
        if (!this.#seesAll(w)) this.#seeAll();
        const record = w[job + jobKernel] as number;
        const kernel = this.#known(record);
        if (kernel?.fn instanceof Error) throw kernel.fn;
        if (kernel === undefined) copied = this.#kernels.codeOf(this.#w, this.#bytes, record);
        else if (this.#kernels.leaves?.(w, record, w[job + jobChunk] as number)) helped = false;
        else if (Atomics.sub(w, job + jobSeats, 1) > 0) {
          w[this.#me + this.#l.kernel] = record;
          helped = this.#parts(job, kernel) > 0;
        }
      }
    } catch (e) {
      this.#fail(e);
      Atomics.store(w, job + jobFault, this.#id + 1);
    }
    w[this.#me + this.#l.kernel] = 0;
    Atomics.store(w, this.#me + helping, 0);
    Atomics.add(w, job + jobLeft, 1);
    if (Atomics.load(w, job + jobAwaited) !== 0) Atomics.notify(w, job + jobLeft);
    if (copied === undefined) return helped;
    // nobody waits while this thread compiles; it comes back when it has the kernel
    this.#kernels.instantiate(copied);
    return true;
  }
}
