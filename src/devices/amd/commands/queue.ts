// How commands are spelt for the GPU's own rings: PM4 for kernels, SDMA packets for copies. A kernel of a
// queue starts when the one before it is done. What a queue was built of goes into the ring as it is; a
// compute queue that is bound stays in memory, and the ring gets one packet that calls it.

import { InternalError } from "../../../errors.ts";
import type { HCQCompatCompiled } from "../../../runtime/hcq/device.ts";
import type { Launched } from "../../../runtime/hcq/hardware.ts";
import type { BoundStream, HWCommandQueue } from "../../../runtime/hcq/queue.ts";
import { WordArgs } from "../../../runtime/hcq/wordargs.ts";
import {
  type CommandWords,
  lacking,
  memoryAddress,
  PlacedStream,
  signalAddress,
  WordBackend,
  ZeroingCopyQueue,
} from "../../../runtime/hcq/words.ts";
import type { AMDDevice } from "../device.ts";
import type { PacketGeneration } from "./generations.ts";
import {
  acquireMemory,
  indirectBuffer,
  LONGEST_STREAM,
  releaseClock,
  releaseValue,
  showPm4,
  waitMemory,
} from "./pm4.ts";
import { AMDProgram } from "./program.ts";
import { copyLinear, fence, fillZeros, pollMemory, showSdma, timestamp } from "./sdma.ts";

/** A signal is a value, and 32 bytes later, as the copy engine wants it, a time. */
const STAMP = 32;
/** The first word of the time. */
export const STAMP_WORD = STAMP / 4;

/** What a wait was for may be in memory that caches know: the kernels after it must not read them. */
const computeWords = (g: PacketGeneration): CommandWords => ({
  wait: ({ signal, value }) => [...waitMemory(signalAddress(signal), value), ...acquireMemory(g, "all")],
  signal: ({ signal, value }) => releaseValue(g, signalAddress(signal), value),
  timestamp: ({ signal }) => releaseClock(signalAddress(signal) + STAMP),
  memoryBarrier: () => acquireMemory(g, "all"),
  exec({ program, kernargs, globalSize, localSize }) {
    if (program instanceof AMDProgram && kernargs instanceof WordArgs)
      return program.launch(kernargs.va, globalSize, localSize);
    throw new InternalError("an AMD queue got a program or arguments of another kind of device");
  },
  copy: lacking("a compute queue does not copy"),
});
const copyWords = (g: PacketGeneration): CommandWords => ({
  wait: ({ signal, value }) => pollMemory(signalAddress(signal), value),
  signal: ({ signal, value }) => fence(g, signalAddress(signal), value),
  timestamp: ({ signal }) => timestamp(signalAddress(signal) + STAMP),
  memoryBarrier: () => [],
  exec: lacking("a copy queue starts no kernels"),
  copy: ({ dest, src, nbytes }) => copyLinear(g, memoryAddress(dest), memoryAddress(src), nbytes),
});

/** Spells the commands of one kind of queue and hands streams to a device. */
export class AMDBackend extends WordBackend<AMDDevice> {
  constructor(device: AMDDevice, kind: "compute" | "copy") {
    const { generation } = device.gpu;
    super(device, kind === "compute" ? computeWords(generation) : copyWords(generation));
  }

  /** The words of a copy queue are copied into the ring with each submission: `q` is all there is of it. */
  bind(device: HCQCompatCompiled, queue: HWCommandQueue): BoundStream {
    this.requireOwn(device);
    if (queue.kind === "copy") return { patch() {} };
    return this.#place(queue);
  }
  #place(queue: HWCommandQueue): PlacedStream {
    const { q } = queue;
    if (q.length > LONGEST_STREAM)
      throw new InternalError(`a queue of ${q.length} words, of ${LONGEST_STREAM} at most`);
    const { va, words } = this.target.keep(queue, Math.max(1, q.length) * 4);
    words.set(q);
    return new PlacedStream(va, words);
  }
  submit(device: HCQCompatCompiled, queue: HWCommandQueue): void {
    this.requireOwn(device);
    const { q, kind, stream } = queue;
    if (q.length === 0) return;
    const launches = launchesOf(queue);
    const isCalled = kind === "compute" && (stream !== undefined || q.length > DIRECT);
    const placed = !isCalled ? undefined : stream instanceof PlacedStream ? stream : this.#place(queue);
    this.target.enqueue(kind, placed === undefined ? q : indirectBuffer(placed.va, q.length), launches);
  }
  show(queue: HWCommandQueue): string {
    return this.lines(queue, queue.kind === "compute" ? showPm4 : showSdma).join("\n");
  }
}
/** Longer queues are called. */
const DIRECT = 4096;

function launchesOf({ commands }: HWCommandQueue): Launched[] {
  return commands.flatMap(({ args }) =>
    args !== undefined && "program" in args ? [{ program: args.program }] : [],
  );
}

export class AMDCopyQueue extends ZeroingCopyQueue {
  readonly #generation: PacketGeneration;
  constructor(backend: AMDBackend, generation: PacketGeneration) {
    super(backend);
    this.#generation = generation;
  }
  protected zeroWords(va: number, nbytes: number): number[] {
    return fillZeros(this.#generation, va, nbytes);
  }
}
