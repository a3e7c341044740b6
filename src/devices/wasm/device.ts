// What the devices on the rings have in common (WASM, CLANG): two rings, signals and a timeline in the shared
// memory, waiting, failing, memory for streams and arguments. A device adds an allocator, a
// renderer and how kernels are made.

import type { DeviceError } from "../../errors.ts";
import type { MaybePromise } from "../../helpers.ts";
import { HCQCompatCompiled, type HCQSignal } from "../../runtime/hcq/device.ts";
import { HWComputeQueue, HWCopyQueue } from "../../runtime/hcq/queue.ts";
import { Transient } from "../../runtime/hcq/transient.ts";
import { Hardware, type Ring, type Tenant } from "./hardware.ts";
import type { StreamTime } from "./inline.ts";
import { KernelRecords } from "./program.ts";
import { RingQueueBackend, type StreamTarget } from "./queue.ts";

/** Made by the first device. */
let shared: { hardware: Hardware; backend: RingQueueBackend; records: KernelRecords } | undefined;
function common(): NonNullable<typeof shared> {
  if (shared !== undefined) return shared;
  const hardware = new Hardware();
  shared = { hardware, backend: new RingQueueBackend(hardware), records: new KernelRecords() };
  return shared;
}
/** All that were opened. */
const devices = new Set<RingDevice>();

/** A signal in the shared memory. */
interface RingSignal extends HCQSignal {
  /** its first byte */
  readonly at: number;
}
/** How many submissions each ring of a device had got at some time. */
interface RingMark {
  readonly compute: number;
  readonly copy: number;
}
interface RetiredMemory extends RingMark {
  free(): void;
}

/** With this many kernels in flight a launch waits, because a full ring would block the host's thread. */
const MAX_AHEAD = 128;

const collected = new FinalizationRegistry<() => void>((release) => release());

export abstract class RingDevice extends HCQCompatCompiled implements StreamTarget, Tenant {
  abstract readonly nativeMemory: boolean;
  readonly hardware: Hardware;
  readonly transient: Transient;
  readonly #rings: { readonly compute: Ring; readonly copy: Ring };
  #failure: DeviceError | undefined;
  /** what waits to be freed, in the order it was given up */
  #retired: RetiredMemory[] = [];

  constructor(name: string) {
    const { hardware } = common();
    const timeline = (n: number): RingSignal => {
      const label = `${name}.timeline${n === 0 ? "" : n}`;
      return { label, at: hardware.allocSignal(0, label) };
    };
    super(name, [timeline(0), timeline(1)]);
    this.hardware = hardware;
    this.#rings = {
      compute: hardware.newRing(`${name} compute`),
      copy: hardware.newRing(`${name} copy`),
    };
    this.transient = new Transient({
      half: 1 << 16,
      align: 8,
      alloc: (nbytes) => hardware.alloc(nbytes),
      mark: () => {
        const mark = this.#mark();
        return () => this.#hasPassedMark(mark);
      },
      block: (done) => void hardware.block({ done, signal: 0, timeoutMs: hardware.timeoutMs }),
    });
    hardware.tenants.add(this);
    devices.add(this);
  }

  get space(): unknown {
    return this.hardware;
  }
  get words(): Int32Array {
    return this.hardware.memory.words;
  }
  get isWide(): boolean {
    return this.hardware.memory.isWide;
  }
  protected peers(): Iterable<RingDevice> {
    return devices;
  }

  computeQueue(): HWComputeQueue {
    return new HWComputeQueue(common().backend);
  }
  copyQueue(): HWCopyQueue {
    return new HWCopyQueue(common().backend);
  }
  enqueue(kind: "compute" | "copy", at: number, nwords: number, work: number, timed?: StreamTime): void {
    this.hardware.submit(this.#rings[kind], at, nwords, work, timed);
    this.#throwFailure(); // executed here and now, it may have failed already
  }

  // ---- signals

  allocSignal(value = 0, label = `${this.name}.signal`): HCQSignal {
    const signal: RingSignal = { label, at: this.hardware.allocSignal(value, label) };
    return signal;
  }
  freeSignal(signal: HCQSignal): void {
    this.hardware.freeSignal(placed(signal));
  }
  readSignal(signal: HCQSignal): number {
    return Atomics.load(this.words, placed(signal) >>> 2);
  }
  readTimestamp(signal: HCQSignal): number {
    return this.hardware.memory.times[(placed(signal) >>> 3) + 1] as number;
  }
  setSignal(signal: HCQSignal, value: number): void {
    this.hardware.setSignal(placed(signal) >>> 2, value);
  }
  waitSignal(signal: HCQSignal, value: number, timeoutMs = this.hardware.timeoutMs): MaybePromise<void> {
    this.#throwFailure();
    return this.hardware.wait({
      done: () => this.#reached(signal, value),
      signal: placed(signal) >>> 2,
      timeoutMs,
      tenant: this,
    });
  }
  protected blockOn(signal: HCQSignal, value: number): void {
    const { hardware } = this;
    const done = () => this.#reached(signal, value);
    hardware.block({ done, signal: placed(signal) >>> 2, timeoutMs: hardware.timeoutMs, tenant: this });
  }
  #reached(signal: HCQSignal, value: number): boolean {
    this.#throwFailure();
    return this.readSignal(signal) >= value;
  }
  /** If much is in flight, waits until half of it is done. */
  room(): MaybePromise<void> {
    const last = this.timelineValue - 1;
    if (last - this.readSignal(this.timelineSignal) >= MAX_AHEAD)
      return this.waitSignal(this.timelineSignal, last - MAX_AHEAD / 2);
  }
  /** Microseconds since 1970 already. */
  gpu2cpuTime(time: number): number {
    return time;
  }

  // ---- failing

  get hasWork(): boolean {
    return !this.isIdle || !this.#hasPassedMark(this.#mark());
  }
  abandon(error: DeviceError): void {
    this.#failure = error;
    this.setSignal(this.timelineSignal, this.timelineValue - 1);
  }
  forget(error: DeviceError): void {
    if (this.#failure === error) this.#failure = undefined;
  }
  #throwFailure(): void {
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
  }

  // ---- memory of its own

  #mark(): RingMark {
    const { compute, copy } = this.#rings;
    return { compute: this.hardware.submitted(compute), copy: this.hardware.submitted(copy) };
  }
  #hasPassedMark({ compute, copy }: RingMark): boolean {
    const { hardware } = this;
    return hardware.hasDone(this.#rings.compute, compute) && hardware.hasDone(this.#rings.copy, copy);
  }

  /** Calls `free` now, or when what was submitted so far is done and somebody asks for memory. */
  retire(free: () => void): void {
    const mark = this.#mark();
    if (this.#hasPassedMark(mark)) free();
    else this.#retired.push({ ...mark, free });
  }
  reclaim(): void {
    const pending = this.#retired.findIndex((r) => !this.#hasPassedMark(r));
    for (const { free } of this.#retired.splice(0, pending < 0 ? this.#retired.length : pending)) free();
  }
  drain(): void {
    const last = this.#retired.at(-1);
    if (last === undefined) return;
    const { hardware } = this;
    const done = () => this.#hasPassedMark(last);
    hardware.block({ done, signal: 0, timeoutMs: hardware.timeoutMs });
    this.reclaim();
  }

  /** Memory that is given back when its owner is collected and what was submitted by then is done. */
  keep(owner: object, nbytes: number): number {
    const at = this.hardware.alloc(nbytes, false);
    collected.register(owner, () => this.release(at, nbytes));
    return at;
  }
  keepRecord(owner: object): number {
    const { records } = common();
    const at = records.take((nbytes) => this.hardware.alloc(nbytes));
    collected.register(owner, () =>
      this.retire(() => {
        this.hardware.names.kernels.delete(at);
        records.giveBack(at);
      }),
    );
    return at;
  }
  release(at: number, nbytes: number): void {
    this.retire(() => this.hardware.memory.free(at, nbytes));
  }
}

const placed = (signal: HCQSignal): number => (signal as RingSignal).at;
