// A compiled kernel of an HCQ device. `run` is the eager launch: one submission on the device's timeline.
// Graphs put the same program into queues of their own, with arguments that stay
// (`allocKernargs`) and are changed in place.

import type { MaybePromise } from "../../helpers.ts";
import type { Handle, Launch, Program } from "../device.ts";
import type { HCQCompatCompiled, HCQSignal } from "./device.ts";

/** The arguments of one launch, in memory that the device reads when the kernel starts. */
export interface KernArgs {
  /** Replaces the i-th buffer. Not while a launch that uses these arguments is in flight. */
  setBuffer(i: number, handle: Handle): void;
  /** Replaces the i-th symbolic variable, under the same condition. */
  setVal(i: number, value: number): void;
  /** Gives the memory back once what was submitted so far is done. */
  free(): void;
}

export abstract class HCQProgram<H = Handle> implements Program<H> {
  abstract readonly name: string;
  abstract readonly device: HCQCompatCompiled;
  cost: { readonly ops: number; readonly bytes: number } | undefined;

  /** Arguments that stay until freed: for queues that are submitted many times. */
  abstract allocKernargs(handles: readonly H[], vals: readonly number[]): KernArgs;
  /** Arguments for one submission that follows at once; their memory takes care of itself. */
  protected abstract transientKernargs(handles: readonly H[], vals: readonly number[]): KernArgs;

  run(handles: readonly H[], launch: Launch, wait: boolean): MaybePromise<number | undefined> {
    const { device } = this;
    const times = wait ? device.timestampPair() : undefined;
    const kernargs = this.transientKernargs(handles, launch.vals);
    device.prepareTimeline();
    const value = device.timelineValue;
    const queue = device
      .computeQueue()
      .wait(device.timelineSignal, device.valueBefore(value, "compute"))
      .memoryBarrier();
    if (times !== undefined) queue.timestamp(times.start);
    queue.work = launch.work ?? 0;
    queue.exec(this, kernargs, launch.globalSize, launch.localSize);
    if (times !== undefined) queue.timestamp(times.end);
    queue.signal(device.timelineSignal, value);
    // taken only now: a launch that was refused signals nothing, and whoever waited
    // for its value would wait forever
    device.nextTimelineValue();
    queue.submit(device);
    if (times === undefined) return undefined;
    return device.timed(times);
  }
}

/** Two signals whose timestamps enclose something. */
export interface TimestampPair {
  readonly start: HCQSignal;
  readonly end: HCQSignal;
}
