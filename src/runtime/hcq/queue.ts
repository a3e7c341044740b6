// Seed 003: the queues of a device that takes commands as hardware does. A queue is a stream of 32-bit words, built by
// chained calls and handed over by `submit`; each command has an index (its position), by which the update methods
// name it later. What the words mean, and who executes them, is the backend's business.

import { ArgumentError } from "../../errors.ts";
import type { HCQCompatAllocRes } from "./allocator.ts";
import type { HCQCompatCompiled, HCQSignal } from "./device.ts";
import type { HCQProgram, KernArgs } from "./program.ts";

/** Where a command lies in the stream. */
export interface CommandSpan {
  readonly name: string;
  readonly offset: number;
  readonly words: number;
}

/**
 * Appends one command: `encode` pushes its words to `queue.q`. Every command, built in or a backend's own, is made
 * through this, so that each has an index and can be updated and shown.
 */
export function hcqCommand<Q extends HWCommandQueue>(queue: Q, name: string, encode: (q: Q) => void): Q {
  const offset = queue.q.length;
  queue.requireOpen(name);
  encode(queue);
  queue.commands.push({ name, offset, words: queue.q.length - offset });
  return queue;
}

/** What compute and copy queues have in common: signals, waits, timestamps. */
export abstract class HWCommandQueue {
  /** the stream so far */
  readonly q: number[] = [];
  readonly commands: CommandSpan[] = [];
  #boundTo: HCQCompatCompiled | undefined;

  /** How many commands there are: the index that the next one will get. */
  get length(): number {
    return this.commands.length;
  }
  /** The device whose memory holds the stream, after `bind`. */
  get boundTo(): HCQCompatCompiled | undefined {
    return this.#boundTo;
  }

  /** Sets the signal to the value, once everything before it in this queue is done. */
  signal(signal: HCQSignal, value: number): this {
    return hcqCommand(this, "signal", () => this.encodeSignal(signal, value));
  }
  /** Holds this queue until the signal is at the value or above. */
  wait(signal: HCQSignal, value: number): this {
    return hcqCommand(this, "wait", () => this.encodeWait(signal, value));
  }
  /** Writes the device's clock into the signal, once everything before it in this queue is done. */
  timestamp(signal: HCQSignal): this {
    return hcqCommand(this, "timestamp", () => this.encodeTimestamp(signal));
  }

  /** Changes the signal or the value (or both) of the `signal` command at this index. */
  updateSignal(index: number, signal?: HCQSignal, value?: number): this {
    this.rewriteSignal(this.span(index, "signal").offset, signal, value);
    return this;
  }
  /** Changes the signal or the value (or both) of the `wait` command at this index. */
  updateWait(index: number, signal?: HCQSignal, value?: number): this {
    this.rewriteWait(this.span(index, "wait").offset, signal, value);
    return this;
  }

  /**
   * Moves the finished stream into memory of the device: a submission then passes its address instead of its words.
   * Afterwards commands are only updated, none is added; and only while no submission of this queue is in flight.
   */
  bind(device: HCQCompatCompiled): this {
    this.requireOpen("bind");
    this.store(device);
    this.#boundTo = device;
    return this;
  }
  /** Hands the stream to the device and returns at once. The same queue may be submitted again. */
  submit(device: HCQCompatCompiled): this {
    if (this.#boundTo !== undefined && this.#boundTo !== device) {
      throw new ArgumentError(
        `submit: the queue is bound to ${this.#boundTo.name}, not to ${device.name}; build one for each device`,
      );
    }
    this.launch(device);
    return this;
  }

  /** The command at this index; refused when it is of another kind. */
  protected span(index: number, name: string): CommandSpan {
    const found = this.commands[index];
    if (found?.name === name) return found;
    throw new ArgumentError(
      `update of ${name} ${index}: ${found === undefined ? `the queue has ${this.length} commands` : `that is ${found.name}`}; ` +
        "take the index from the queue's length before the command is added",
    );
  }
  /** Refuses to add to a stream that the device reads already. */
  requireOpen(name: string): void {
    if (this.#boundTo === undefined) return;
    throw new ArgumentError(`${name}: the queue is bound to ${this.#boundTo.name}; it can only be updated`);
  }
  /** Changes one word of the stream, also where the device has a copy of its own. */
  protected abstract patch(offset: number, word: number): void;

  protected abstract encodeSignal(signal: HCQSignal, value: number): void;
  protected abstract encodeWait(signal: HCQSignal, value: number): void;
  protected abstract encodeTimestamp(signal: HCQSignal): void;
  protected abstract rewriteSignal(offset: number, signal?: HCQSignal, value?: number): void;
  protected abstract rewriteWait(offset: number, signal?: HCQSignal, value?: number): void;
  /** Copies the stream into the device's memory. */
  protected abstract store(device: HCQCompatCompiled): void;
  protected abstract launch(device: HCQCompatCompiled): void;
  /** One line a command. */
  abstract toString(): string;
}

/** Kernels, in order: one starts when the one before it is done. */
export abstract class HWComputeQueue extends HWCommandQueue {
  /** What other queues and the host wrote is seen by the kernels that follow. */
  memoryBarrier(): this {
    return hcqCommand(this, "memoryBarrier", () => this.encodeMemoryBarrier());
  }
  exec(
    program: HCQProgram,
    kernargs: KernArgs,
    globalSize: readonly number[],
    localSize: readonly number[],
  ): this {
    return hcqCommand(this, "exec", () => this.encodeExec(program, kernargs, globalSize, localSize));
  }
  /** Changes the launch sizes of the `exec` command at this index; arguments change in its KernArgs. */
  updateExec(index: number, globalSize: readonly number[], localSize: readonly number[]): this {
    this.rewriteExec(this.span(index, "exec").offset, globalSize, localSize);
    return this;
  }

  protected abstract encodeMemoryBarrier(): void;
  protected abstract encodeExec(
    program: HCQProgram,
    kernargs: KernArgs,
    globalSize: readonly number[],
    localSize: readonly number[],
  ): void;
  protected abstract rewriteExec(
    offset: number,
    globalSize: readonly number[],
    localSize: readonly number[],
  ): void;
}

/** Copies between memories that the device can reach, in order, beside the compute queue. */
export abstract class HWCopyQueue extends HWCommandQueue {
  copy(dest: HCQCompatAllocRes, src: HCQCompatAllocRes, nbytes: number): this {
    return hcqCommand(this, "copy", () => this.encodeCopy(dest, src, nbytes));
  }
  /** Changes the destination or the source (or both) of the `copy` command at this index. */
  updateCopy(index: number, dest?: HCQCompatAllocRes, src?: HCQCompatAllocRes): this {
    this.rewriteCopy(this.span(index, "copy").offset, dest, src);
    return this;
  }

  protected abstract encodeCopy(dest: HCQCompatAllocRes, src: HCQCompatAllocRes, nbytes: number): void;
  protected abstract rewriteCopy(offset: number, dest?: HCQCompatAllocRes, src?: HCQCompatAllocRes): void;
}
