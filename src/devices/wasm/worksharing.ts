// How executors share a kernel that takes a range: the owner puts it up as a job in its record, helpers come
// in and take parts, and the owner returns when nobody is inside. Only threads that may block share; a page's
// own thread does not. The text of the class is sent to the workers, as that of executor.ts is.

import type { Governor } from "./governor.ts";
import type { HostKernels, KernelCode, Loaded } from "./kernels.ts";
import type { RingLayout } from "./layout.ts";

/** What sharing needs of the executor that it belongs to. */
export interface Sharer {
  /** the shared memory, all of it as far as this thread has seen it grow */
  readonly words: Int32Array;
  readonly bytes: Uint8Array;
  readonly kernels: HostKernels;
  /** its time is over */
  readonly isLate: boolean;
  /** Sees all of the memory. */
  look(): void;
  /** The kernel of a record, if this thread has it. */
  known(record: number): Loaded | undefined;
  /** Leaves the text of an error where the host finds it. */
  fail(e: unknown): -1;
  /** Wakes whoever sleeps. */
  ring(): void;
}
/** Indexes of a kernel, `begin` to `end`, and how many threads may share them. */
interface SharedRange {
  readonly record: number;
  readonly args: number;
  readonly begin: number;
  readonly end: number;
  readonly width: number;
}

export class WorkSharing {
  readonly #l: RingLayout;
  readonly #id: number;
  /** the first word of this executor's record */
  readonly #me: number;
  readonly #governor: Governor;
  /** milliseconds of the parts that this thread took of its last shared kernel */
  readonly #durations = new Float64Array(16);
  #timed = 0;
  #whileLate: (() => void) | undefined;

  constructor(layout: RingLayout, id: number, governor: Governor) {
    this.#l = layout;
    this.#id = id;
    this.#me = layout.executors + id * layout.executorWords;
    this.#governor = governor;
  }

  /** Called now and then while a helper keeps this thread waiting. */
  whileLate(look: () => void): void {
    this.#whileLate = look;
  }
  /** How many threads may share this many indexes now. */
  width(w: Int32Array, size: number): number {
    const { threads, executorCount } = this.#l;
    const most = Math.min(Atomics.load(w, threads), Atomics.load(w, executorCount));
    return Math.min(this.#governor.width(w, most), size);
  }

  /**
   * Shares a job with all executors and works on it too. Gives the index up to which it is done: its end, or
   * less where the time was over before; -1 where it failed.
   */
  share(x: Sharer, kernel: Loaded, { record, args, begin, end, width }: SharedRange): number {
    const w = x.words;
    const { jobOpen, jobKernel, jobArgs, jobSize, jobChunk, jobNext, jobFault, jobSeats } = this.#l;
    const me = this.#me;
    this.#awaitHelpers(w); // those of a job whose owner died, and which this executor replaces
    const chunk = Math.ceil((end - begin) / (width * this.#l.partsEach));
    w[me + jobKernel] = record;
    w[me + jobArgs] = args;
    w[me + jobSize] = end;
    w[me + jobChunk] = chunk;
    w[me + jobFault] = 0;
    Atomics.store(w, me + jobNext, begin);
    Atomics.store(w, me + jobSeats, width - 1);
    Atomics.store(w, me + jobOpen, 1);
    x.ring();
    const start = performance.now();
    let mine = 0;
    try {
      mine = this.#parts(x, me, kernel);
    } catch (e) {
      x.fail(e);
      Atomics.store(w, me + jobFault, this.#id + 1);
    }
    const closed = performance.now();
    Atomics.store(w, me + jobOpen, 0);
    this.#awaitHelpers(w);
    const failed = Atomics.load(w, me + jobFault);
    if (failed !== 0 && failed !== this.#id + 1) this.#copyText(x.bytes, failed - 1);
    const helpers = width - 1 - Math.max(0, Atomics.load(w, me + jobSeats));
    // two threads that share a memory may each take longer for a part than one alone
    const alone = helpers === 1 && kernel.alone > 0 ? kernel.alone * chunk : Infinity;
    const part = Math.min(this.#governor.usual(this.#durations.subarray(0, this.#timed)), alone);
    const times = { part, own: closed - start, waited: performance.now() - closed };
    const next = Math.min(Atomics.load(w, me + jobNext), end);
    this.#governor.count(w, { helpers, parts: Math.ceil((next - begin) / chunk), mine, ...times });
    return failed !== 0 ? -1 : next;
  }

  /** Until no helper is inside the job of this executor: looks for a while, then sleeps. */
  #awaitHelpers(w: Int32Array): void {
    const { jobLeft, jobAwaited } = this.#l;
    for (let looks = 0; this.#hasHelpers(w); looks++) {
      if (looks < this.#l.looks) continue;
      const left = Atomics.load(w, this.#me + jobLeft);
      Atomics.store(w, this.#me + jobAwaited, 1);
      if (this.#hasHelpers(w) && Atomics.wait(w, this.#me + jobLeft, left, 50) === "timed-out") {
        this.#whileLate?.();
      }
      Atomics.store(w, this.#me + jobAwaited, 0);
    }
  }
  #hasHelpers(w: Int32Array): boolean {
    const { executors, executorWords, executorCount, helping } = this.#l;
    const count = Atomics.load(w, executorCount);
    for (let e = 0; e < count; e++) {
      if (Atomics.load(w, executors + e * executorWords + helping) === this.#id + 1) return true;
    }
    return false;
  }
  /** What went wrong at a helper is reported by the one who asked for help. */
  #copyText(bytes: Uint8Array, from: number): void {
    const { texts, textBytes } = this.#l;
    const start = texts * 4 + from * textBytes;
    bytes.copyWithin(texts * 4 + this.#id * textBytes, start, start + textBytes);
  }

  /** Takes parts until there are none or the time is over; says how many. */
  #parts(x: Sharer, job: number, kernel: Loaded): number {
    const w = x.words;
    const { jobOpen, jobKernel, jobArgs, jobSize, jobChunk, jobNext, progress } = this.#l;
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
      if (taken > 0 && (x.isLate || Atomics.load(w, job + jobOpen) === 0)) return taken;
      const begin = Atomics.add(w, job + jobNext, chunk);
      if (begin >= size) return taken;
      const end = Math.min(size, begin + chunk);
      x.kernels.call(kernel, record, x.words, args, begin, end);
      const now = performance.now();
      x.kernels.time?.(x.words, record, now - last, end - begin);
      if (this.#timed < this.#durations.length) this.#durations[this.#timed++] = now - last;
      last = now;
      w[this.#me + progress] = ((w[this.#me + progress] as number) + 1) | 0;
    }
  }

  /** Takes parts of the kernels that other executors put up; says whether there were any. */
  help(x: Sharer): boolean {
    let helped = false;
    const executors = Atomics.load(x.words, this.#l.executorCount);
    for (let e = 0; e < executors; e++) if (e !== this.#id && this.#helpOne(x, e)) helped = true;
    return helped;
  }
  #helpOne(x: Sharer, other: number): boolean {
    const w = x.words;
    const { executors, executorWords, jobOpen, jobKernel, jobFault, jobNext, jobSize, jobSeats } = this.#l;
    const { helping, jobLeft, jobAwaited, jobChunk, kernel: current } = this.#l;
    const job = executors + other * executorWords;
    if (Atomics.load(w, job + jobOpen) === 0 || Atomics.load(w, job + jobSeats) <= 0) return false;
    if (Atomics.load(w, job + jobNext) >= (w[job + jobSize] as number)) return false;
    Atomics.store(w, this.#me + helping, other + 1);
    let helped = false;
    let copied: KernelCode | undefined;
    try {
      if (Atomics.load(w, job + jobOpen) !== 0) {
        x.look();
        const record = w[job + jobKernel] as number;
        const kernel = x.known(record);
        if (kernel?.fn instanceof Error) throw kernel.fn;
        if (kernel === undefined) copied = x.kernels.codeOf(x.words, x.bytes, record);
        else if (x.kernels.leaves?.(w, record, w[job + jobChunk] as number)) helped = false;
        else if (Atomics.sub(w, job + jobSeats, 1) > 0) {
          w[this.#me + current] = record;
          helped = this.#parts(x, job, kernel) > 0;
        }
      }
    } catch (e) {
      x.fail(e);
      Atomics.store(w, job + jobFault, this.#id + 1);
    }
    w[this.#me + current] = 0;
    Atomics.store(w, this.#me + helping, 0);
    Atomics.add(w, job + jobLeft, 1);
    if (Atomics.load(w, job + jobAwaited) !== 0) Atomics.notify(w, job + jobLeft);
    if (copied === undefined) return helped;
    // nobody waits while this thread compiles; it comes back when it has the kernel
    x.kernels.instantiate(copied);
    return true;
  }
}
