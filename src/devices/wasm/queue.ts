// How commands for the rings are spelt: the words of layout.ts. A bound stream lies in the shared memory
// until its queue is collected; another is copied into transient memory of the device at each submission.

import { disassemble } from "#devices/disassemble";
import { InternalError } from "../../errors.ts";
import type { HCQCompatAllocRes } from "../../runtime/hcq/allocator.ts";
import type { HCQCompatCompiled, HCQSignal } from "../../runtime/hcq/device.ts";
import type { HCQProgram, KernArgs } from "../../runtime/hcq/program.ts";
import type {
  BoundStream,
  CommandArgs,
  CommandName,
  HWCommandQueue,
  QueueBackend,
} from "../../runtime/hcq/queue.ts";
import type { Transient } from "../../runtime/hcq/transient.ts";
import type { AddressNames } from "./disassemble.ts";
import type { StreamTime } from "./inline.ts";
import { COMMANDS, pair, type RingCommand } from "./layout.ts";

/** A signal, a kernel or arguments in the shared memory: what a command names by the first byte. */
interface Addressed {
  readonly at: number;
}
/** The part of a device that streams go to. */
export interface StreamTarget {
  /** Memory for one submission. */
  readonly transient: Transient;
  /** Memory for as long as the owner lives. */
  keep(owner: object, nbytes: number): number;
  readonly words: Int32Array;
  /** its buffers lie outside of the shared memory */
  readonly nativeMemory: boolean;
  /** the shared memory may be larger than 4 GiB */
  readonly isWide: boolean;
  /** `timed`: of a stream that is kept, how long it took before */
  enqueue(kind: "compute" | "copy", at: number, nwords: number, work: number, timed?: StreamTime): void;
}

const CODE = Object.fromEntries(COMMANDS.map((name, i) => [name, i])) as Record<RingCommand, number>;
const WHOLE = -1;

/** Addresses above 2 GiB are negative as words. */
const at = (x: HCQSignal | HCQProgram | KernArgs): number => {
  const { at: address } = x as Partial<Addressed>;
  if (address !== undefined) return address | 0;
  throw new InternalError(
    "a queue of the rings got a signal, a program or arguments of another kind of device",
  );
};
/** 0 for the shared memory, 1 for native memory. */
const space = ({ device }: HCQCompatAllocRes): number => (targetOf(device).nativeMemory ? 1 : 0);

const ENCODE: { readonly [K in CommandName]: (args: CommandArgs[K]) => readonly number[] } = {
  signal: ({ signal, value }) => [CODE.signal, at(signal), value],
  wait: ({ signal, value }) => [CODE.wait, at(signal), value],
  timestamp: ({ signal }) => [CODE.timestamp, at(signal)],
  memoryBarrier: () => [CODE.memoryBarrier],
  exec: ({ program, kernargs, globalSize }) => [CODE.exec, at(program), at(kernargs), globalSize[0] ?? WHOLE],
  copy: ({ dest, src, nbytes }) => {
    const isNative = space(dest) + space(src) > 0;
    if (!isNative && !targetOf(dest.device).isWide)
      return [CODE.copy, Number(dest.vaAddr) | 0, Number(src.vaAddr) | 0, nbytes | 0];
    const [to, from, n] = [pair(dest.vaAddr), pair(src.vaAddr), pair(nbytes)];
    if (isNative) return [CODE.move, space(dest), ...to, space(src), ...from, ...n];
    return [CODE.copyWide, ...to, ...from, ...n];
  },
};

/** The part of the hardware that marks and names come from. */
interface SignalWords {
  readonly names: AddressNames;
  allocSignal(value: number, label: string): number;
}

export class RingQueueBackend implements QueueBackend {
  readonly #signals: SignalWords;
  constructor(signals: SignalWords) {
    this.#signals = signals;
  }

  allocMarks(): { start: HCQSignal & Addressed; end: HCQSignal & Addressed } {
    const mark = (label: string) => ({ label, at: this.#signals.allocSignal(0, label) });
    return { start: mark("start"), end: mark("end") };
  }

  encode<K extends CommandName>(name: K, args: CommandArgs[K]): readonly number[] {
    return ENCODE[name](args);
  }
  bind(device: HCQCompatCompiled, queue: HWCommandQueue): RingStream {
    const target = targetOf(device);
    const stream = new RingStream(target, target.keep(queue, queue.q.length * 4));
    queue.q.forEach((word, i) => {
      stream.patch(i, word);
    });
    return stream;
  }
  submit(device: HCQCompatCompiled, queue: HWCommandQueue): void {
    const target = targetOf(device);
    const { stream, q, kind } = queue;
    if (stream instanceof RingStream) {
      target.enqueue(kind, stream.at, q.length, queue.work, stream);
      return;
    }
    const nbytes = q.length * 4;
    const start =
      nbytes > target.transient.half ? target.keep(queue, nbytes) : target.transient.alloc(nbytes);
    target.words.set(q, start >>> 2);
    target.enqueue(kind, start, q.length, queue.work);
  }
  show(queue: HWCommandQueue): string {
    return disassemble(queue.q, this.#signals.names).join("\n");
  }
}

class RingStream implements BoundStream, StreamTime {
  readonly #target: StreamTarget;
  readonly at: number;
  milliseconds = 0;
  constructor(target: StreamTarget, at: number) {
    this.#target = target;
    this.at = at;
  }
  patch(offset: number, word: number): void {
    this.#target.words[(this.at >>> 2) + offset] = word;
  }
}

/** Queues go to devices of their own kind only. */
function targetOf(device: HCQCompatCompiled): StreamTarget {
  const target = device as Partial<StreamTarget>;
  if (target.enqueue !== undefined) return target as StreamTarget;
  throw new InternalError(`a queue of the rings was submitted to ${device.name}`);
}
