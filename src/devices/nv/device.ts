// NV: an NVIDIA GPU without CUDA. What is above the kernel driver: signals and a timeline in memory of the
// host, streams and arguments in the GPU's, waiting by looking, local memory that grows with what kernels
// need, and a report that names the kernel when the GPU stumbles. The GPU itself comes in
// (gpu.ts), and so does the compiler.

import type { Renderer, Source } from "../../codegen/target.ts";
import { env } from "../../env.ts";
import { DeviceError } from "../../errors.ts";
import { chain, type MaybePromise, waitable } from "../../helpers.ts";
import { HCQCompatCompiled, type HCQSignal } from "../../runtime/hcq/device.ts";
import { type MemoryBlock, Pool, type PoolBlock, wordsOf } from "../../runtime/hcq/pool.ts";
import { type Mark, Retired } from "../../runtime/hcq/retired.ts";
import { Transient } from "../../runtime/hcq/transient.ts";
import { clock } from "../../runtime/profiling.ts";
import { COMPUTE } from "./commands/classes.ts";
import { loadCubin } from "./commands/cubin.ts";
import { high, low, method, pack } from "./commands/methods.ts";
import { NVProgram } from "./commands/program.ts";
import {
  type LaunchWords,
  NVBackend,
  NVComputeQueue,
  NVCopyQueue,
  type NVSignal,
  type NVTarget,
} from "./commands/queue.ts";
import type { NVGpu } from "./gpu.ts";
import { NVAllocator } from "./memory/allocator.ts";

/** How kernels are spelt, and how text becomes a cubin. */
export interface NVCompiler {
  readonly renderer: Renderer;
  compile(name: string, source: Source): MaybePromise<{ readonly code: Uint8Array; readonly entry: string }>;
}

interface Signal extends NVSignal {
  readonly words: Int32Array;
  readonly piece: PoolBlock;
}
/** Words of a signal: 64 bits of value, and the time of the second semaphore. */
const [TIME_LOW, TIME_HIGH] = [6, 7];

/** Local memory for all threads there can be. */
interface Local {
  readonly memory: MemoryBlock;
  readonly perThread: number;
  readonly perTpc: number;
}

/** A submission that may still run. */
interface InFlight {
  readonly value: number;
  readonly launches: readonly LaunchWords[];
}

/** How long a wait blocks before it lets other tasks run, and how long it looks without a pause. */
const [SLICE_MS, WATCH_MS, NAP_MS] = [50, 2, 0.05];
const LOOKS = 256;
const HALF = 1 << 20;
/**
 * Local memory is handed to warps of 32 threads, to pairs of SMs, and lies at addresses as round as these.
 */
const [WARP_STEP, TPC_STEP, LOCAL_STEP] = [0x200, 0x8000, 0x20000];
/** As many SMs as the field of the method can say. */
const ALL_SMS = 0x1ff;
/**
 * Instructions are prefetched past the last one of a kernel. This much behind the last kernel of a chunk
 * keeps that inside the chunk: the page after it may not be mapped.
 */
const BEHIND_CODE = 4096;

const collected = new FinalizationRegistry<() => void>((release) => release());
const nap = new Int32Array(new SharedArrayBuffer(4));

export class NVDevice extends HCQCompatCompiled implements NVTarget {
  readonly gpu: NVGpu;
  readonly renderer: Renderer;
  readonly allocator: NVAllocator;
  readonly transient: Transient;
  /** memory of the GPU that the host writes: code, streams, arguments */
  readonly constants: Pool;
  readonly #compiler: NVCompiler;
  readonly #signals: Pool;
  readonly #retired: Retired;
  readonly #marks: { readonly compute: Signal; readonly copy: Signal };
  #marked = 0;
  readonly #backends: { readonly compute: NVBackend; readonly copy: NVBackend };
  #transientMemory: { readonly va: number; readonly words: Int32Array } | undefined;
  #local: Local | undefined;
  #inFlight: InFlight[] = [];
  /** the point of the timeline at which something was last given to the copy channel */
  #copied = { value: 0, era: 0 };
  /** finished ones are looked for when there are this many */
  #look = 64;
  /** why it takes no more work */
  #failure: DeviceError | undefined;
  #restarting = false;
  /** the GPU's clock when the device was opened, and the host's in microseconds */
  readonly #epoch: { readonly gpu: bigint; readonly host: number };

  constructor(name: string, gpu: NVGpu, compiler: NVCompiler) {
    const signals = new Pool(gpu, "host", 1 << 16);
    super(name, [newSignal(signals, 0, `${name}.timeline`), newSignal(signals, 0, `${name}.timeline1`)]);
    this.gpu = gpu;
    this.renderer = compiler.renderer;
    this.#compiler = compiler;
    this.#signals = signals;
    this.constants = new Pool(gpu, "visible", 1 << 21, BEHIND_CODE);
    this.#backends = { compute: new NVBackend(this, "compute"), copy: new NVBackend(this, "copy") };
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
    this.allocator = new NVAllocator(this);
    this.#epoch = calibrate(gpu);
    this.#setUp();
  }

  get space(): unknown {
    return this;
  }
  protected peers(): Iterable<HCQCompatCompiled> {
    return [this];
  }

  compile(name: string, source: Source): MaybePromise<NVProgram> {
    return chain(this.#compiler.compile(name, source), ({ code, entry }) => {
      this.#throwFailure();
      return new NVProgram(this, name, loadCubin(code, entry, this.gpu.arch), source.dynamicShared);
    });
  }
  computeQueue(): NVComputeQueue {
    return new NVComputeQueue(this.#backends.compute);
  }
  copyQueue(): NVCopyQueue {
    return new NVCopyQueue(this.#backends.copy);
  }

  // ---- setting up

  /** Each channel learns its class, and the compute class where kernels see shared and local memory. */
  #setUp(): void {
    const { classes, sharedWindow, localWindow } = this.gpu;
    const object = (id: number) => pack(COMPUTE.SET_OBJECT, { CLASS_ID: id });
    this.#submitWords("copy", method("COPY", COMPUTE.SET_OBJECT, object(classes.copy)));
    this.#submitWords("compute", [
      ...method("COMPUTE", COMPUTE.SET_OBJECT, object(classes.compute)),
      ...pair(COMPUTE.SET_SHADER_SHARED_MEMORY_WINDOW_A, sharedWindow),
      ...pair(COMPUTE.SET_SHADER_LOCAL_MEMORY_WINDOW_A, localWindow),
    ]);
  }

  /** Makes sure that every thread there can be has this much local memory. */
  growLocal(perThread: number): void {
    if (perThread <= (this.#local?.perThread ?? 0)) return;
    const { gpcs, tpcsPerGpc, smsPerTpc, maxWarpsPerSM } = this.gpu;
    const round = (x: number, step: number) => Math.ceil(x / step) * step;
    const perWarp = round(perThread * 32, WARP_STEP);
    const perTpc = round(perWarp * maxWarpsPerSM * smsPerTpc, TPC_STEP);
    const memory = this.allocator.allocDevice(round(perTpc * tpcsPerGpc * gpcs, LOCAL_STEP));
    const old = this.#local?.memory;
    this.#local = { memory, perThread, perTpc };
    this.#submitLocal(this.#local);
    if (old !== undefined) this.retire(() => this.gpu.free(old));
  }
  #submitLocal({ memory, perTpc }: Local): void {
    const sizes = pack(COMPUTE.SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_C, { MAX_SM_COUNT: ALL_SMS });
    // kernels that are queued use the old one until they are done
    this.#submitWords("compute", [
      ...method("COMPUTE", COMPUTE.WAIT_FOR_IDLE, 0),
      ...pair(COMPUTE.SET_SHADER_LOCAL_MEMORY_A, memory.va),
      ...method("COMPUTE", COMPUTE.SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A, high(perTpc), low(perTpc), sizes),
    ]);
  }

  // ---- submitting

  #allocTransient(nbytes: number): number {
    const memory = this.gpu.alloc(nbytes, "visible");
    this.#transientMemory = { va: memory.va, words: wordsOf(memory) };
    return memory.va;
  }
  transientWords(va: number, count: number): Int32Array {
    const { va: start, words } = this.#transientMemory as { va: number; words: Int32Array };
    const first = (va - start) >>> 2;
    return words.subarray(first, first + count);
  }
  #submitWords(kind: "compute" | "copy", words: readonly number[]): void {
    const va = this.transient.alloc(words.length * 4);
    this.transientWords(va, words.length).set(words);
    this.enqueue(kind, va, words.length, []);
  }
  /**
   * A point that all submissions so far come before: both channels say when they are there. The words lie
   * outside of the memory that a mark is for.
   */
  mark(): Mark {
    const value = ++this.#marked;
    const pieces = (["compute", "copy"] as const).map((kind) => {
      const words = this.#backends[kind].encode("signal", { signal: this.#marks[kind], value });
      const piece = this.constants.alloc(words.length * 4);
      (piece.words as Int32Array).set(words);
      this.enqueue(kind, piece.va, words.length, []);
      return piece;
    });
    const { compute, copy } = this.#marks;
    return () => {
      if (this.readSignal(compute) < value || this.readSignal(copy) < value) return false;
      for (const piece of pieces.splice(0)) this.constants.free(piece);
      return true;
    };
  }
  enqueue(kind: "compute" | "copy", va: number, dwords: number, launches: readonly LaunchWords[]): void {
    this.#throwFailure();
    if (kind === "copy") this.#copied = { value: this.timelineValue - 1, era: this.era };
    if (launches.length > 0) this.#note(launches);
    try {
      this.gpu.submit(this.gpu[kind], va, dwords);
    } catch (e) {
      throw this.#fail((e as Error).message, e);
    }
  }
  #note(launches: readonly LaunchWords[]): void {
    const value = this.timelineValue - 1;
    this.#inFlight.push({ value, launches });
    if (this.#inFlight.length < this.#look) return;
    const done = this.readSignal(this.timelineSignal);
    // values above the last one are of the timeline before this one
    this.#inFlight = this.#inFlight.filter((f) => f.value > done && f.value <= value);
    this.#look = 2 * this.#inFlight.length + 64;
  }

  /** The first kernel of a stream waits for those before it (WAIT_FOR_IDLE); only copies run beside. */
  override valueBefore(value: number, kind: "compute" | "copy"): number {
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
    const [lo, hi] = [Atomics.load(words, TIME_LOW) >>> 0, Atomics.load(words, TIME_HIGH) >>> 0];
    return lo === 0 && hi === 0 ? 0 : Number(((BigInt(hi) << 32n) | BigInt(lo)) - this.#epoch.gpu);
  }
  gpu2cpuTime(time: number): number {
    return this.#epoch.host + time / 1000;
  }

  // ---- waiting

  waitSignal(signal: HCQSignal, value: number, timeoutMs = env.HCQ_TIMEOUT * 1000): MaybePromise<void> {
    this.#throwFailure();
    const done = () => this.readSignal(signal) >= value;
    if (done()) return;
    const watch = new ChannelWatch(this, timeoutMs);
    if (this.#block(done, watch, SLICE_MS)) return;
    return waitable(this.#await(done, watch), () => void this.#block(done, watch, Infinity));
  }
  protected blockOn(signal: HCQSignal, value: number): void {
    this.block(() => this.readSignal(signal) >= value);
  }
  block(done: () => boolean): void {
    this.#throwFailure();
    this.#block(done, new ChannelWatch(this, env.HCQ_TIMEOUT * 1000), Infinity);
  }
  /** Looks until it is done, or says false after `limitMs`. */
  #block(done: () => boolean, watch: ChannelWatch, limitMs: number): boolean {
    const start = performance.now();
    for (;;) {
      for (let i = 0; i < LOOKS; i++) if (done()) return true;
      this.#throwFaults();
      const waited = performance.now() - start;
      if (waited <= WATCH_MS) continue;
      // asking the channels how far they are takes microseconds
      const still = watch.look();
      if (still > 0) throw this.#stuck(still);
      if (waited > limitMs) return false;
      Atomics.wait(nap, 0, 0, NAP_MS);
    }
  }
  async #await(done: () => boolean, watch: ChannelWatch): Promise<void> {
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

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }
  #throwFaults(): void {
    this.#throwFailure();
    const fault = this.gpu.compute.fault() ?? this.gpu.copy.fault();
    if (fault !== undefined) throw this.#fail(fault);
  }
  /**
   * A channel does not recover, so there are new ones, and all that was in flight is dropped: this error is
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
      this.#setUp();
      if (this.#local !== undefined) this.#submitLocal(this.#local);
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
  const piece = pool.alloc(32);
  const words = piece.words as Int32Array;
  words.fill(0);
  words[0] = value;
  return { label, va: piece.va, words, piece };
}

const pair = (to: Parameters<typeof method>[1], va: number): number[] =>
  method("COMPUTE", to, high(va), low(va));

/** Both clocks at the same moment: of several tries the one that took the least time. */
function calibrate(gpu: NVGpu): { gpu: bigint; host: number } {
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
class ChannelWatch {
  readonly #device: NVDevice;
  readonly #limitMs: number;
  #progress = Number.NaN;
  #since = 0;

  constructor(device: NVDevice, limitMs: number) {
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
