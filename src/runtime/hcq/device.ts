// A device that takes command queues (HCQ). It has one timeline: a signal whose value says how much of
// the submitted work is done. Work waits for `timelineValue - 1` and signals `timelineValue`, so that every
// submission comes after the one before it. A second, shadow signal takes over when the values run out.

import type { Renderer, Source } from "../../codegen/target.ts";
import { chain, type MaybePromise } from "../../helpers.ts";
import type { Compiled, Handle, Timeline } from "../device.ts";
import type { HCQCompatAllocator } from "./allocator.ts";
import type { HCQProgram, TimestampPair } from "./program.ts";
import type { HWCommandQueue, HWComputeQueue, HWCopyQueue } from "./queue.ts";

/**
 * A value that queues and the host set and wait for, and the time of the last
 * `timestamp`. Else device dependent.
 */
export interface HCQSignal {
  /** for people: `WASM.timeline` */
  readonly label: string;
}

/** A point on a device's timeline. */
export interface Fence {
  readonly device: HCQCompatCompiled;
  readonly signal: HCQSignal;
  readonly value: number;
  readonly era: number;
}

/** Values are signed words, and one is always left to wait for. */
const LAST_VALUE = 2 ** 31 - 2;

export abstract class HCQCompatCompiled implements Compiled {
  readonly name: string;
  abstract readonly allocator: HCQCompatAllocator;
  abstract readonly renderer: Renderer;
  readonly compilesAside: boolean = false;
  /** devices with the same one can wait for each other's signals */
  abstract readonly space: unknown;

  /** what the submissions of this device signal; becomes the shadow when the values run out */
  timelineSignal: HCQSignal;
  shadowTimelineSignal: HCQSignal;
  /** the next value to signal: all work so far is done when the signal is at `timelineValue - 1` */
  timelineValue = 1;
  /** the last value before the signals change places; tests lower it */
  timelineLimit = LAST_VALUE;
  /** how often they did */
  era = 0;
  #times: TimestampPair | undefined;

  constructor(name: string, timeline: readonly [HCQSignal, HCQSignal]) {
    this.name = name;
    [this.timelineSignal, this.shadowTimelineSignal] = timeline;
  }

  abstract compile(name: string, source: Source): MaybePromise<HCQProgram<Handle>>;
  /** A new, empty queue for this kind of device. */
  abstract computeQueue(): HWComputeQueue;
  abstract copyQueue(): HWCopyQueue;

  abstract allocSignal(value?: number, label?: string): HCQSignal;
  abstract freeSignal(signal: HCQSignal): void;
  abstract readSignal(signal: HCQSignal): number;
  /** The device's clock when the signal was last stamped; `gpu2cpuTime` makes it comparable with others. */
  abstract readTimestamp(signal: HCQSignal): number;
  abstract setSignal(signal: HCQSignal, value: number): void;
  /**
   * Until the signal is at the value or above. Returns at once where it is or where this thread may block;
   * else a promise. Throws what failed on the device, or after `timeoutMs` without any
   * progress, naming what is queued.
   */
  abstract waitSignal(signal: HCQSignal, value: number, timeoutMs?: number): MaybePromise<void>;
  /** The same by blocking, wherever this thread is: for the few places that cannot await. */
  protected abstract blockOn(signal: HCQSignal, value: number): void;
  /** Device clock to microseconds since 1970, the unit of every trace. */
  abstract gpu2cpuTime(gpuTime: number): number;
  /** The devices that share `space`, this one among them. */
  protected abstract peers(): Iterable<HCQCompatCompiled>;

  readonly keepsTime = true;
  readonly graph = "HCQ";
  get timeline(): Timeline<Fence> {
    return this;
  }

  /** Everything that was submitted is done. */
  get isIdle(): boolean {
    return this.readSignal(this.timelineSignal) >= this.timelineValue - 1;
  }

  synchronize(): MaybePromise<void> {
    return this.waitSignal(this.timelineSignal, this.timelineValue - 1);
  }

  /**
   * The value that the next submission signals; it is the caller's from here on and must be signalled. Read
   * `timelineSignal` only afterwards: the signals may just have changed places.
   */
  nextTimelineValue(): number {
    this.prepareTimeline();
    return this.timelineValue++;
  }
  /**
   * Changes timelines where the next value would be past the limit, which drains all peers. Who takes values
   * of several devices before submitting to any prepares all of them first.
   */
  prepareTimeline(): void {
    if (this.timelineValue > this.timelineLimit) this.#swapTimelines();
  }

  /**
   * What a queue that signals `value` has to wait for to come after all that was submitted before. It is less
   * than `value - 1` where the hardware runs what one kind of queue was given in order by itself.
   */
  valueBefore(value: number, _kind: HWCommandQueue["kind"]): number {
    return value - 1;
  }

  /** The work submitted so far. */
  fence(): Fence {
    const { timelineSignal: signal, timelineValue, era } = this;
    return { device: this, signal, value: timelineValue - 1, era };
  }
  /** Signals change places only after all work of the era is done. */
  hasPassed({ device, signal, value, era }: Fence): boolean {
    return era < device.era || device.readSignal(signal) >= value;
  }
  /** What is submitted here from now on comes after the fence, without the host waiting for it. */
  waitFor(fence: Fence): void {
    if (fence.device === this || this.hasPassed(fence)) return;
    const value = this.nextTimelineValue();
    this.computeQueue()
      .wait(this.timelineSignal, value - 1)
      .wait(fence.signal, fence.value)
      .signal(this.timelineSignal, value)
      .submit(this);
  }

  /**
   * Every 2^31 submissions the shadow, at 0 again, becomes the timeline. Nobody may still wait for a value of
   * the past era then, here or on a peer, so all of them are drained; this is the
   * only place where submitting waits.
   */
  #swapTimelines(): void {
    for (const peer of this.peers()) peer.blockOn(peer.timelineSignal, peer.timelineValue - 1);
    this.setSignal(this.shadowTimelineSignal, 0);
    [this.timelineSignal, this.shadowTimelineSignal] = [this.shadowTimelineSignal, this.timelineSignal];
    this.timelineValue = 1;
    this.era++;
  }

  /** Signals for timing one thing at a time. */
  timestampPair(): TimestampPair {
    this.#times ??= {
      start: this.allocSignal(0, `${this.name}.start`),
      end: this.allocSignal(0, `${this.name}.end`),
    };
    return this.#times;
  }
  /** Seconds between the two, when all that was submitted is done. */
  timed({ start, end }: TimestampPair): MaybePromise<number> {
    const time = (signal: HCQSignal) => this.gpu2cpuTime(this.readTimestamp(signal));
    return chain(this.synchronize(), () => (time(end) - time(start)) / 1e6);
  }
}
