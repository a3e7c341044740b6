// A device that we drive ourselves, through the kernel driver of its maker and no other library: what is the
// same whoever made the GPU. Signals and a timeline in memory of the host, arguments in memory that the host
// writes, what was given up, waiting by looking, and a report that names the kernel when the GPU stumbles.
// The GPU itself comes in (gpu.ts), and so does the compiler; a maker's device adds queues and programs.

import type { Renderer, Source } from "../../codegen/target.ts";
import { env } from "../../env.ts";
import { DeviceError } from "../../errors.ts";
import { type MaybePromise, waitable } from "../../helpers.ts";
import { clock } from "../profiling.ts";
import { HCQCompatCompiled, type HCQSignal } from "./device.ts";
import type { HardwareGpu } from "./gpu.ts";
import { HardwareAllocator } from "./gpumemory.ts";
import { type MemoryKind, Pool, type PoolBlock, wordsOf } from "./pool.ts";
import { type Mark, Retired } from "./retired.ts";
import { Transient } from "./transient.ts";
import type { ZeroingCopyQueue } from "./words.ts";

/** How kernels are spelt, and how text becomes machine code. */
export interface KernelCompiler {
  readonly renderer: Renderer;
  compile(name: string, source: Source): MaybePromise<{ readonly code: Uint8Array; readonly entry: string }>;
}

/** A signal in memory of the host, where the GPU sees it. */
export interface MemorySignal extends HCQSignal {
  readonly va: number;
}
interface Signal extends MemorySignal {
  readonly words: Int32Array;
  readonly piece: PoolBlock;
}

/** A kernel of a submission. */
export interface Launched {
  readonly program: { readonly name: string };
}
/** A submission that may still run. */
interface InFlight {
  readonly value: number;
  readonly launches: readonly Launched[];
}

/** What differs between makers. */
interface HardwareFacts {
  /** the word of a signal at which its timestamp, of two words, lies */
  readonly stampWord: number;
  /** where code, streams and arguments lie */
  readonly constants: MemoryKind;
  /** bytes at the end of every chunk of it that are zero and belong to no block */
  readonly tail: number;
}

/** How long a wait blocks before it lets other tasks run, and how long it looks without a pause. */
const [SLICE_MS, WATCH_MS, NAP_MS] = [50, 2, 0.05];
const LOOKS = 256;
const HALF = 1 << 20;

const collected = new FinalizationRegistry<() => void>((release) => release());
const nap = new Int32Array(new SharedArrayBuffer(4));

type GpuRingKind = "compute" | "copy";
const RINGS: readonly GpuRingKind[] = ["compute", "copy"];
/** A value, and a timestamp where the GPU can write one. */
const SIGNAL_BYTES = 64;

export abstract class HardwareDevice<G extends HardwareGpu = HardwareGpu> extends HCQCompatCompiled {
  readonly gpu: G;
  readonly renderer: Renderer;
  readonly allocator: HardwareAllocator;
  readonly transient: Transient;
  /** memory that the host writes: streams, arguments, and code where the host writes it */
  readonly constants: Pool;
  protected readonly compiler: KernelCompiler;
  readonly #facts: HardwareFacts;
  readonly #signals: Pool;
  readonly #retired: Retired;
  readonly #marks: { readonly compute: Signal; readonly copy: Signal };
  #marked = 0;
  #transientMemory: { readonly va: number; readonly words: Int32Array } | undefined;
  #inFlight: InFlight[] = [];
  /** the point of the timeline at which something was last given to the copy ring */
  #copied = { value: 0, era: 0 };
  /** finished ones are looked for when there are this many */
  #look = 64;
  /** why it takes no more work */
  #failure: DeviceError | undefined;
  #restarting = false;
  /** the GPU's clock when the device was opened, and the host's in microseconds */
  readonly #epoch: { readonly gpu: bigint; readonly host: number };

  constructor(name: string, gpu: G, compiler: KernelCompiler, facts: HardwareFacts) {
    const signals = new Pool(gpu, "host", 1 << 16);
    super(name, [newSignal(signals, 0, `${name}.timeline`), newSignal(signals, 0, `${name}.timeline1`)]);
    this.gpu = gpu;
    this.renderer = compiler.renderer;
    this.compiler = compiler;
    this.#facts = facts;
    this.#signals = signals;
    this.constants = new Pool(gpu, facts.constants, 1 << 21, facts.tail);
    this.#marks = {
      compute: newSignal(signals, 0, `${name}.mark`),
      copy: newSignal(signals, 0, `${name}.mark1`),
    };
    this.#retired = new Retired(() => this.mark());
    this.transient = new Transient({
      half: HALF,
      align: 256,
      alloc: (nbytes) => this.#allocTransient(nbytes),
      mark: () => this.mark(),
      block: (done) => this.block(done),
    });
    this.allocator = new HardwareAllocator(this);
    this.#epoch = calibrate(gpu);
  }

  abstract override copyQueue(): ZeroingCopyQueue;
  /** Tells new rings what they have to know; also after a restart. */
  protected abstract setUp(): void;
  /** Has a ring set the signal when all before it is done; what it gives is called when that was seen. */
  protected abstract sendMark(kind: GpuRingKind, signal: MemorySignal, value: number): () => void;

  get space(): unknown {
    return this;
  }
  protected peers(): Iterable<HCQCompatCompiled> {
    return [this];
  }

  // ---- submitting

  #allocTransient(nbytes: number): number {
    const memory = this.gpu.alloc(nbytes, this.#facts.constants);
    this.#transientMemory = { va: memory.va, words: wordsOf(memory) };
    return memory.va;
  }
  /** The host's window on a piece of transient memory, from this address on. */
  transientWords(va: number, count: number): Int32Array {
    const { va: start, words } = this.#transientMemory as { va: number; words: Int32Array };
    const first = (va - start) >>> 2;
    return words.subarray(first, first + count);
  }
  /**
   * A point that all submissions so far come before: both rings say when they are there. The words lie
   * outside of the memory that a mark is for.
   */
  mark(): Mark {
    const value = ++this.#marked;
    const ends = RINGS.map((kind) => this.sendMark(kind, this.#marks[kind], value));
    const { compute, copy } = this.#marks;
    return () => {
      if (this.readSignal(compute) < value || this.readSignal(copy) < value) return false;
      for (const end of ends.splice(0)) end();
      return true;
    };
  }
  /** Hands something to a ring, and remembers which kernels it has. */
  protected hand(kind: GpuRingKind, launches: readonly Launched[], submit: () => void): void {
    this.throwFailure();
    if (kind === "copy") this.#copied = { value: this.timelineValue - 1, era: this.era };
    if (launches.length > 0) this.#note(launches);
    try {
      submit();
    } catch (e) {
      throw this.#fail((e as Error).message, e);
    }
  }
  #note(launches: readonly Launched[]): void {
    const value = this.timelineValue - 1;
    this.#inFlight.push({ value, launches });
    if (this.#inFlight.length < this.#look) return;
    const done = this.readSignal(this.timelineSignal);
    // values above the last one are of the timeline before this one
    this.#inFlight = this.#inFlight.filter((f) => f.value > done && f.value <= value);
    this.#look = 2 * this.#inFlight.length + 64;
  }

  /** The kernels of a stream wait for those before them; only copies run beside. */
  override valueBefore(value: number, kind: GpuRingKind): number {
    if (kind === "copy") return value - 1;
    return this.#copied.era === this.era ? Math.min(value - 1, this.#copied.value) : 0;
  }

  // ---- signals

  allocSignal(value = 0, label = `${this.name}.signal`): HCQSignal {
    return newSignal(this.#signals, value, label);
  }
  freeSignal(signal: HCQSignal): void {
    this.#signals.free((signal as Signal).piece);
  }
  readSignal(signal: HCQSignal): number {
    return Atomics.load((signal as Signal).words, 0);
  }
  setSignal(signal: HCQSignal, value: number): void {
    Atomics.store((signal as Signal).words, 0, value);
  }
  /** Nanoseconds since the device was opened; 0: it was never stamped. */
  readTimestamp(signal: HCQSignal): number {
    const { words } = signal as Signal;
    const at = this.#facts.stampWord;
    const [lo, hi] = [Atomics.load(words, at) >>> 0, Atomics.load(words, at + 1) >>> 0];
    if (lo === 0 && hi === 0) return 0;
    return Number(((BigInt(hi) << 32n) | BigInt(lo)) - this.#epoch.gpu) * this.gpu.tick;
  }
  gpu2cpuTime(time: number): number {
    return this.#epoch.host + time / 1000;
  }

  // ---- waiting

  waitSignal(signal: HCQSignal, value: number, timeoutMs = env.HCQ_TIMEOUT * 1000): MaybePromise<void> {
    this.throwFailure();
    const done = () => this.readSignal(signal) >= value;
    if (done()) return;
    const watch = new RingWatch(this, timeoutMs);
    if (this.#block(done, watch, SLICE_MS)) return;
    return waitable(this.#await(done, watch), () => void this.#block(done, watch, Infinity));
  }
  protected blockOn(signal: HCQSignal, value: number): void {
    this.block(() => this.readSignal(signal) >= value);
  }
  block(done: () => boolean): void {
    this.throwFailure();
    this.#block(done, new RingWatch(this, env.HCQ_TIMEOUT * 1000), Infinity);
  }
  /** Looks until it is done, or says false after `limitMs`. */
  #block(done: () => boolean, watch: RingWatch, limitMs: number): boolean {
    const start = performance.now();
    for (;;) {
      for (let i = 0; i < LOOKS; i++) if (done()) return true;
      this.#throwFaults();
      const waited = performance.now() - start;
      if (waited <= WATCH_MS) continue;
      // asking the rings how far they are takes microseconds
      const still = watch.look();
      if (still > 0) throw this.#stuck(still);
      if (waited > limitMs) return false;
      Atomics.wait(nap, 0, 0, NAP_MS);
    }
  }
  async #await(done: () => boolean, watch: RingWatch): Promise<void> {
    while (!this.#block(done, watch, SLICE_MS)) await new Promise((resolve) => setTimeout(resolve, 0));
  }
  /** It only has to differ when something was done. */
  get progress(): number {
    return (
      this.readSignal(this.timelineSignal) * 2 ** 20 - this.gpu.compute.pending() - this.gpu.copy.pending()
    );
  }
  #stuck(seconds: number): DeviceError {
    return new DeviceError(
      `${this.name}: nothing moved for ${seconds} s while a signal was waited for. A wait that no queue will meet, or ` +
        `very long kernels (then raise HCQ_TIMEOUT). Queued: ${this.#suspects()}`,
    );
  }

  // ---- failing

  protected throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }
  #throwFaults(): void {
    this.throwFailure();
    const fault = this.gpu.compute.fault() ?? this.gpu.copy.fault();
    if (fault !== undefined) throw this.#fail(fault);
  }
  /**
   * A ring does not recover, so there are new ones, and all that was in flight is dropped: this error is
   * told once, and who asks next finds a device that works. If that fails too, the device is done for.
   */
  #fail(what: string, cause?: unknown): DeviceError {
    const said = `${this.name}: the GPU stopped in ${this.#suspects()}: ${what}`;
    if (this.#restarting) return new DeviceError(said, { cause });
    try {
      this.#restart();
    } catch (e) {
      this.#failure = new DeviceError(
        `${said}; it could not be started again (${(e as Error).message}), so ${this.name} takes no more work in this process`,
        { cause: e },
      );
      return this.#failure;
    }
    return new DeviceError(`${said}; what was queued is dropped`, { cause });
  }
  #restart(): void {
    this.#restarting = true;
    try {
      this.gpu.restart();
      this.#inFlight = [];
      // signals that will not come any more
      this.setSignal(this.timelineSignal, this.timelineValue - 1);
      for (const mark of Object.values(this.#marks)) this.setSignal(mark, this.#marked);
      this.setUp();
    } finally {
      this.#restarting = false;
    }
  }
  /** The kernels of the first submission that is not done; of the last one if none is known to be that. */
  #suspects(): string {
    const done = this.readSignal(this.timelineSignal);
    const first = (this.#inFlight.find((f) => f.value > done) ?? this.#inFlight.at(-1))?.launches ?? [];
    const names = [...new Set(first.map((l) => l.program.name))];
    if (names.length === 0) return "a copy or a wait";
    if (names.length === 1) return `kernel ${names[0]}`;
    const more = names.length > 8 ? ` and ${names.length - 8} more` : "";
    return `one of the kernels ${names.slice(0, 8).join(", ")}${more} (JIT=0 and DEBUG=2 show which)`;
  }

  // ---- memory of its own

  /** Calls `free` when what was submitted so far is done and somebody asks for memory. */
  retire(free: () => void): void {
    this.#retired.add(free);
  }
  reclaim(): void {
    this.#retired.reclaim();
  }
  /** Frees all that was given up, which takes as long as the work that uses it. */
  drain(): void {
    this.#retired.drain((passed) => this.block(passed));
    this.constants.trim();
  }
  keep(owner: object, nbytes: number): { readonly va: number; readonly words: Int32Array } {
    this.reclaim();
    const piece = this.constants.alloc(nbytes);
    collected.register(owner, () => this.retire(() => this.constants.free(piece)));
    return { va: piece.va, words: piece.words as Int32Array };
  }
}

function newSignal(pool: Pool, value: number, label: string): Signal {
  const piece = pool.alloc(SIGNAL_BYTES);
  const words = piece.words as Int32Array;
  words.fill(0);
  words[0] = value;
  return { label, va: piece.va, words, piece };
}

/** Both clocks at the same moment: of several tries the one that took the least time. */
function calibrate(gpu: HardwareGpu): { gpu: bigint; host: number } {
  let best: { gpu: bigint; host: number; took: number } | undefined;
  for (let i = 0; i < 8; i++) {
    const before = clock();
    const time = gpu.time();
    const took = clock() - before;
    if (best === undefined || took < best.took) best = { gpu: time, host: before + took / 2, took };
  }
  return best as { gpu: bigint; host: number };
}

/** Notices when nothing moves. */
class RingWatch {
  readonly #device: HardwareDevice;
  readonly #limitMs: number;
  #progress = Number.NaN;
  #since = 0;

  constructor(device: HardwareDevice, limitMs: number) {
    this.#device = device;
    this.#limitMs = limitMs;
  }
  /** 0, or the seconds that nothing has moved for if they are too many. */
  look(): number {
    const now = performance.now();
    const { progress } = this.#device;
    if (progress !== this.#progress) {
      this.#progress = progress;
      this.#since = now;
    }
    const still = now - this.#since;
    return still < this.#limitMs ? 0 : Math.max(0.001, Math.round(still) / 1000);
  }
}
