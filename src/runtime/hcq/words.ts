// Queues whose commands are all words for a GPU's own engines. A maker's file has a table for each kind of
// queue, from command to words; here is what such tables have in common, and the copy queue that sets zeros.

import { ArgumentError, InternalError } from "../../errors.ts";
import type { Marks } from "../profile.ts";
import type { HCQCompatAllocRes } from "./allocator.ts";
import type { HCQCompatCompiled, HCQSignal } from "./device.ts";
import type { MemorySignal } from "./hardware.ts";
import {
  type BoundStream,
  type CommandArgs,
  type CommandName,
  type HWCommandQueue,
  HWCopyQueue,
  hcqCommand,
  type QueueBackend,
} from "./queue.ts";

/** The words of each command. */
export type CommandWords = { readonly [K in CommandName]: (args: CommandArgs[K]) => readonly number[] };

export const signalAddress = (signal: HCQSignal): number => {
  const { va } = signal as Partial<MemorySignal>;
  if (va !== undefined) return va;
  throw new InternalError("a queue got a signal of another kind of device");
};
export const memoryAddress = ({ vaAddr }: HCQCompatAllocRes): number => {
  if (typeof vaAddr === "number") return vaAddr;
  throw new InternalError("a queue got memory of another kind of device");
};
/** The entry of a table for a command that its kind of queue does not have. */
export const lacking = (what: string) => (): never => {
  throw new InternalError(what);
};

/** An address or a value as two words. */
export const low = (x: number): number => x >>> 0;
export const high = (x: number): number => Math.floor(x / 2 ** 32);

/** A part of a device, as its queues see it. */
interface SignalSource {
  allocSignal(value: number, label: string): HCQSignal;
}

/** Spells commands by a table. */
export abstract class WordBackend<T extends SignalSource> implements QueueBackend {
  protected readonly target: T;
  protected readonly words: CommandWords;

  constructor(target: T, words: CommandWords) {
    this.target = target;
    this.words = words;
  }
  encode<K extends CommandName>(name: K, args: CommandArgs[K]): readonly number[] {
    return this.words[name](args);
  }
  allocMarks(): Marks {
    const mark = (label: string) => this.target.allocSignal(0, label);
    return { start: mark("start"), end: mark("end") };
  }
  abstract bind(device: HCQCompatCompiled, queue: HWCommandQueue): BoundStream;
  abstract submit(device: HCQCompatCompiled, queue: HWCommandQueue): void;
  abstract show(queue: HWCommandQueue): string;

  /** Addresses in a stream are those of one device. */
  protected requireOwn(device: HCQCompatCompiled): void {
    if ((device as unknown) !== this.target)
      throw new ArgumentError(`${device.name}: the queue is of another device; build one for each`);
  }
  /** Each command and, below it, its words as `words` shows them. */
  protected lines(queue: HWCommandQueue, words: (part: readonly number[]) => readonly string[]): string[] {
    return queue.commands.flatMap(({ name, offset, words: count }) => [
      `${name}:`,
      ...words(queue.q.slice(offset, offset + count)).map((l) => `  ${l}`),
    ]);
  }
}

/** A stream in memory that the host writes. */
export class PlacedStream implements BoundStream {
  readonly va: number;
  readonly #words: Int32Array;
  constructor(va: number, words: Int32Array) {
    this.va = va;
    this.#words = words;
  }
  patch(offset: number, word: number): void {
    this.#words[offset] = word;
  }
}

export abstract class ZeroingCopyQueue extends HWCopyQueue {
  protected abstract zeroWords(va: number, nbytes: number): readonly number[];
  /** Sets memory, a multiple of 4 bytes, to zeros. */
  zero(dest: HCQCompatAllocRes, nbytes: number): this {
    return hcqCommand(this, "zero", ({ q }) => q.push(...this.zeroWords(memoryAddress(dest), nbytes)));
  }
}
