// The queues of a device that takes commands as hardware does. A queue is a stream of 32-bit words,
// built by chained calls and handed over by `submit`; each command has an index (its position), by which the
// update methods name it later. What the words mean, and who executes them, is the backend's business.

import { env } from "../../env.ts";
import { ArgumentError, InternalError } from "../../errors.ts";
import type { Marks } from "../profile.ts";
import { activeProfiler } from "../profiling.ts";
import type { HCQCompatAllocRes } from "./allocator.ts";
import type { HCQCompatCompiled, HCQSignal } from "./device.ts";
import type { HCQProgram, KernArgs } from "./program.ts";

/** The commands that every backend has, and what each takes. */
export interface CommandArgs {
  signal: { readonly signal: HCQSignal; readonly value: number };
  wait: { readonly signal: HCQSignal; readonly value: number };
  timestamp: { readonly signal: HCQSignal };
  memoryBarrier: object;
  exec: {
    readonly program: HCQProgram;
    readonly kernargs: KernArgs;
    readonly globalSize: readonly number[];
    readonly localSize: readonly number[];
  };
  copy: { readonly dest: HCQCompatAllocRes; readonly src: HCQCompatAllocRes; readonly nbytes: number };
}
export type CommandName = keyof CommandArgs;

/** A command of a queue: where its words lie, and for the built-in ones what they were made of. */
export interface Command {
  readonly name: string;
  readonly offset: number;
  readonly words: number;
  readonly args: CommandArgs[CommandName] | undefined;
  /** with PROFILE=1: what is stamped just before and just after its words */
  readonly marks: Marks | undefined;
}

/** A stream that lies in memory of a device. */
export interface BoundStream {
  patch(offset: number, word: number): void;
}

/** How a kind of device spells commands, and where streams go. */
export interface QueueBackend {
  encode<K extends CommandName>(name: K, args: CommandArgs[K]): readonly number[];
  /** Copies the stream into the device's memory. */
  bind(device: HCQCompatCompiled, queue: HWCommandQueue): BoundStream;
  submit(device: HCQCompatCompiled, queue: HWCommandQueue): void;
  /** Two signals for timestamps, which are 0 so far. */
  allocMarks(): Marks;
  /** One line a command. */
  show(queue: HWCommandQueue): string;
}

/**
 * Appends one command: `encode` pushes its words to `queue.q`. Every command, built in or a backend's own, is
 * made through this, so that each has an index and a place.
 */
export function hcqCommand<Q extends HWCommandQueue>(
  queue: Q,
  name: string,
  encode: (q: Q) => void,
  args?: CommandArgs[CommandName],
): Q {
  queue.requireOpen(name);
  const marks = env.PROFILE && TIMED.includes(name) ? queue.backend.allocMarks() : undefined;
  const stamp = (signal: HCQSignal) => queue.q.push(...queue.spell("timestamp", { signal }, undefined));
  if (marks !== undefined) stamp(marks.start);
  const offset = queue.q.length;
  encode(queue);
  queue.commands.push({ name, offset, words: queue.q.length - offset, args, marks });
  if (marks !== undefined) stamp(marks.end);
  return queue;
}

/** The commands that take time. */
const TIMED: readonly string[] = ["exec", "copy", "wait"] satisfies CommandName[];

/** What compute and copy queues have in common: signals, waits, timestamps. */
export abstract class HWCommandQueue {
  abstract readonly kind: "compute" | "copy";
  readonly backend: QueueBackend;
  /** the stream so far */
  readonly q: number[] = [];
  readonly commands: Command[] = [];
  /** operations and bytes in it: whether it pays to wake someone for it */
  work = 0;
  #bound: { readonly device: HCQCompatCompiled; readonly stream: BoundStream } | undefined;

  constructor(backend: QueueBackend) {
    this.backend = backend;
  }

  /** How many commands there are: the index that the next one will get. */
  get length(): number {
    return this.commands.length;
  }
  /** The device whose memory holds the stream, after `bind`. */
  get boundTo(): HCQCompatCompiled | undefined {
    return this.#bound?.device;
  }
  get stream(): BoundStream | undefined {
    return this.#bound?.stream;
  }

  /** Sets the signal to the value, once everything before it in this queue is done. */
  signal(signal: HCQSignal, value: number): this {
    return this.add("signal", { signal, value });
  }
  /** Holds this queue until the signal is at the value or above. */
  wait(signal: HCQSignal, value: number): this {
    return this.add("wait", { signal, value });
  }
  /** Writes the device's clock into the signal, once everything before it in this queue is done. */
  timestamp(signal: HCQSignal): this {
    return this.add("timestamp", { signal });
  }

  /** Changes the signal or the value (or both) of the `signal` command at this index. */
  updateSignal(index: number, signal?: HCQSignal, value?: number): this {
    return this.update(index, "signal", { signal, value });
  }
  /** Changes the signal or the value (or both) of the `wait` command at this index. */
  updateWait(index: number, signal?: HCQSignal, value?: number): this {
    return this.update(index, "wait", { signal, value });
  }

  /**
   * Moves the finished stream into memory of the device: a submission then passes its address instead of its
   * words. Afterwards commands are only updated, none is added; and only while no
   * submission of this queue is in flight.
   */
  bind(device: HCQCompatCompiled): this {
    this.requireOpen("bind");
    this.#bound = { device, stream: this.backend.bind(device, this) };
    return this;
  }
  /** Hands the stream to the device and returns at once. The same queue may be submitted again. */
  submit(device: HCQCompatCompiled): this {
    if (this.#bound !== undefined && this.#bound.device !== device) {
      throw new ArgumentError(
        `submit: the queue is bound to ${this.#bound.device.name}, not to ${device.name}; build one for each device`,
      );
    }
    const profiler = env.PROFILE ? activeProfiler() : undefined;
    if (profiler !== undefined) profiler.submitting(device, this, () => this.backend.submit(device, this));
    else this.backend.submit(device, this);
    return this;
  }

  /**
   * The words of a command that is added. A backend whose launches can do more than start a kernel puts part
   * of it there and returns what is left; `index` is what an update will name it by, if one can.
   */
  spell<K extends CommandName>(name: K, args: CommandArgs[K], _index: number | undefined): readonly number[] {
    return this.backend.encode(name, args);
  }
  /** The words of a command that is there already, with other arguments: as many as before. */
  protected respell<K extends CommandName>(_: number, name: K, args: CommandArgs[K]): readonly number[] {
    return this.backend.encode(name, args);
  }

  protected add<K extends CommandName>(name: K, args: CommandArgs[K]): this {
    return hcqCommand(this, name, ({ q }) => q.push(...this.spell(name, args, this.length)), args);
  }
  /** Encodes a command again with some of what it takes changed; words that stay the same are not touched. */
  protected update<K extends CommandName>(
    index: number,
    name: K,
    changes: { readonly [F in keyof CommandArgs[K]]?: CommandArgs[K][F] | undefined },
  ): this {
    const command = this.#command(index, name);
    const args = { ...command.args } as CommandArgs[K];
    for (const field in changes) {
      const value = changes[field];
      if (value !== undefined) args[field] = value;
    }
    const words = this.respell(index, name, args);
    if (words.length !== command.words) {
      throw new InternalError(`update of ${name} ${index}: ${words.length} words for ${command.words}`);
    }
    words.forEach((word, i) => {
      const at = command.offset + i;
      if (this.q[at] === word) return;
      this.q[at] = word;
      this.#bound?.stream.patch(at, word);
    });
    this.commands[index] = { ...command, args };
    return this;
  }
  #command(index: number, name: string): Command {
    const found = this.commands[index];
    if (found?.name === name) return found;
    const what = found === undefined ? `the queue has ${this.length} commands` : `that is ${found.name}`;
    throw new ArgumentError(
      `update of ${name} ${index}: ${what}; take the index from the queue's length before the command is added`,
    );
  }
  /** Refuses to add to a stream that the device reads already. */
  requireOpen(name: string): void {
    if (this.#bound === undefined) return;
    throw new ArgumentError(
      `${name}: the queue is bound to ${this.#bound.device.name}; it can only be updated`,
    );
  }

  toString(): string {
    return this.backend.show(this);
  }
}

/** Kernels, in order: one starts when the one before it is done. */
export class HWComputeQueue extends HWCommandQueue {
  readonly kind = "compute";

  /** What other queues and the host wrote is seen by the kernels that follow. */
  memoryBarrier(): this {
    return this.add("memoryBarrier", {});
  }
  exec(
    program: HCQProgram,
    kernargs: KernArgs,
    globalSize: readonly number[],
    localSize: readonly number[],
  ): this {
    return this.add("exec", { program, kernargs, globalSize, localSize });
  }
  /** Changes the launch sizes of the `exec` command at this index; arguments change in its KernArgs. */
  updateExec(index: number, globalSize: readonly number[], localSize: readonly number[]): this {
    return this.update(index, "exec", { globalSize, localSize });
  }
}

/** Copies between memories that the device can reach, in order, beside the compute queue. */
export class HWCopyQueue extends HWCommandQueue {
  readonly kind = "copy";

  copy(dest: HCQCompatAllocRes, src: HCQCompatAllocRes, nbytes: number): this {
    return this.add("copy", { dest, src, nbytes });
  }
  /** Changes the destination or the source (or both) of the `copy` command at this index. */
  updateCopy(index: number, dest?: HCQCompatAllocRes, src?: HCQCompatAllocRes): this {
    return this.update(index, "copy", { dest, src });
  }
}
