// How commands are spelt for the GPU's own rings. Kernels that follow each other become a chain of QMDs: the
// first is sent by the stream, each starts the next when it is done, and what comes right after a kernel (a
// signal, a timestamp) is one of its QMD's releases. The rest of a command becomes words for the host class.

import { ArgumentError, InternalError } from "../../../errors.ts";
import { getOrMake } from "../../../helpers.ts";
import type { HCQCompatCompiled, HCQSignal } from "../../../runtime/hcq/device.ts";
import type { KernArgs } from "../../../runtime/hcq/program.ts";
import {
  type BoundStream,
  type CommandArgs,
  type CommandName,
  type HWCommandQueue,
  HWComputeQueue,
} from "../../../runtime/hcq/queue.ts";
import type { Transient } from "../../../runtime/hcq/transient.ts";
import { WordArgs } from "../../../runtime/hcq/wordargs.ts";
import {
  type CommandWords,
  high,
  lacking,
  low,
  memoryAddress,
  PlacedStream,
  signalAddress,
  WordBackend,
  ZeroingCopyQueue,
} from "../../../runtime/hcq/words.ts";
import { COMPUTE, COPY, HOST } from "./classes.ts";
import { method, pack, show } from "./methods.ts";
import { NVProgram } from "./program.ts";
import { QMD_ALIGN, type Qmd } from "./qmd.ts";

/** A signal is a semaphore with a value, and 16 bytes later a second one whose time is the timestamp. */
const STAMP = 16;

/** A kernel of a queue. */
export interface LaunchWords {
  readonly program: NVProgram;
  readonly qmd: Qmd;
  /** the word of the stream that sends it; undefined: the launch before starts it */
  readonly sentAt: number | undefined;
  next: LaunchWords | undefined;
  releases: number;
}

/** The part of a device that streams go to. */
export interface NVTarget {
  readonly transient: Transient;
  /** the host's window on a piece of transient memory, from this address on */
  transientWords(va: number, count: number): Int32Array;
  /** Memory for as long as the owner lives. */
  keep(owner: object, nbytes: number): { readonly va: number; readonly words: Int32Array };
  allocSignal(value: number, label: string): HCQSignal;
  enqueue(kind: "compute" | "copy", va: number, dwords: number, launches: readonly LaunchWords[]): void;
}

/** A copy in one command moves at most this. */
const LONGEST_COPY = 2 ** 31;

const { SEM_EXECUTE } = HOST;
const { LAUNCH_DMA, SET_REMAP_COMPONENTS } = COPY;
const ACQUIRE = pack(SEM_EXECUTE, {
  OPERATION: "ACQ_CIRC_GEQ",
  PAYLOAD_SIZE: "64BIT",
  ACQUIRE_SWITCH_TSG: "EN",
});
const RELEASE = pack(SEM_EXECUTE, {
  OPERATION: "RELEASE",
  RELEASE_WFI: "EN",
  PAYLOAD_SIZE: "64BIT",
  RELEASE_TIMESTAMP: "EN",
});
const acquire = (va: number, value: number): number[] =>
  method("HOST", HOST.SEM_ADDR_LO, low(va), high(va), low(value), high(value), ACQUIRE);
const release = (va: number, value: number): number[] =>
  method("HOST", HOST.SEM_ADDR_LO, low(va), high(va), low(value), high(value), RELEASE);

/**
 * A launch of the copy engine that moves nothing: when what was launched before is done, it sets a semaphore.
 */
const COPY_RELEASE = pack(LAUNCH_DMA, {
  DATA_TRANSFER_TYPE: "NONE",
  FLUSH_ENABLE: "TRUE",
  SEMAPHORE_TYPE: "RELEASE_FOUR_WORD_SEMAPHORE",
  SEMAPHORE_PAYLOAD_SIZE: "TWO_WORD",
});
const copyRelease = (va: number, value: number): number[] => [
  ...method("COPY", COPY.SET_SEMAPHORE_A, high(va), low(va), low(value), high(value)),
  ...method("COPY", LAUNCH_DMA, COPY_RELEASE),
];

/** Caches hold no older code, data or constants afterwards. */
const INVALIDATE = method(
  "COMPUTE",
  COMPUTE.INVALIDATE_SHADER_CACHES_NO_WFI,
  pack(COMPUTE.INVALIDATE_SHADER_CACHES_NO_WFI, {
    INSTRUCTION: "TRUE",
    GLOBAL_DATA: "TRUE",
    CONSTANT: "TRUE",
  }),
);
/**
 * Sends a QMD when what was sent before it is done; its address, which is not known yet, is the fourth word.
 */
const SEND = [
  ...method("COMPUTE", COMPUTE.WAIT_FOR_IDLE, 0),
  ...method("COMPUTE", COMPUTE.SEND_PCAS_A, 0),
  ...method(
    "COMPUTE",
    COMPUTE.SEND_SIGNALING_PCAS2_B,
    pack(COMPUTE.SEND_SIGNALING_PCAS2_B, { PCAS_ACTION: "PREFETCH_SCHEDULE" }),
  ),
];
const SENT_ADDRESS = 3;

const LINEAR = {
  DATA_TRANSFER_TYPE: "NON_PIPELINED",
  SRC_MEMORY_LAYOUT: "PITCH",
  DST_MEMORY_LAYOUT: "PITCH",
} as const;
const MOVE = pack(LAUNCH_DMA, LINEAR);
const FILL = pack(LAUNCH_DMA, { ...LINEAR, REMAP_ENABLE: "TRUE" });
/** What is written are words, all of them constant A. */
const CONSTANT_WORDS = pack(SET_REMAP_COMPONENTS, {
  DST_X: "CONST_A",
  DST_Y: "NO_WRITE",
  DST_Z: "NO_WRITE",
  DST_W: "NO_WRITE",
  COMPONENT_SIZE: "FOUR",
  NUM_SRC_COMPONENTS: "ONE",
  NUM_DST_COMPONENTS: "ONE",
});

function copy(dest: number, src: number, nbytes: number): number[] {
  const words: number[] = [];
  for (let at = 0; at < nbytes; at += LONGEST_COPY) {
    const [to, from] = [dest + at, src + at];
    words.push(
      ...method("COPY", COPY.OFFSET_IN_UPPER, high(from), low(from), high(to), low(to)),
      ...method("COPY", COPY.LINE_LENGTH_IN, Math.min(LONGEST_COPY, nbytes - at)),
      ...method("COPY", LAUNCH_DMA, MOVE),
    );
  }
  return words;
}

/** Words of four bytes, all of the same value. */
function fill(dest: number, count: number, value: number): number[] {
  const words = [
    ...method("COPY", COPY.SET_REMAP_CONST_A, value),
    ...method("COPY", SET_REMAP_COMPONENTS, CONSTANT_WORDS),
  ];
  const longest = LONGEST_COPY / 4;
  for (let at = 0; at < count; at += longest) {
    const to = dest + at * 4;
    words.push(
      ...method("COPY", COPY.OFFSET_OUT_UPPER, high(to), low(to)),
      ...method("COPY", COPY.LINE_LENGTH_IN, Math.min(longest, count - at)),
      ...method("COPY", LAUNCH_DMA, FILL),
    );
  }
  return words;
}

const WAITS: Pick<CommandWords, "wait"> = {
  wait: ({ signal, value }) => acquire(signalAddress(signal), value),
};
const COMPUTE_WORDS: CommandWords = {
  ...WAITS,
  signal: ({ signal, value }) => release(signalAddress(signal), value),
  timestamp: ({ signal }) => release(signalAddress(signal) + STAMP, 0),
  memoryBarrier: () => INVALIDATE,
  exec: () => SEND,
  copy: lacking("a compute queue does not copy"),
};
const COPY_WORDS: CommandWords = {
  ...WAITS,
  signal: ({ signal, value }) => copyRelease(signalAddress(signal), value),
  timestamp: ({ signal }) => copyRelease(signalAddress(signal) + STAMP, 0),
  memoryBarrier: () => [],
  exec: lacking("a copy queue starts no kernels"),
  copy: ({ dest, src, nbytes }) => copy(memoryAddress(dest), memoryAddress(src), nbytes),
};

/** Spells the commands of one kind of queue and hands streams to a device. */
export class NVBackend extends WordBackend<NVTarget> {
  constructor(target: NVTarget, kind: "compute" | "copy") {
    super(target, kind === "compute" ? COMPUTE_WORDS : COPY_WORDS);
  }

  bind(device: HCQCompatCompiled, queue: HWCommandQueue): BoundStream {
    this.requireOwn(device);
    const { qmds, nbytes } = sizesOf(queue);
    const kept = this.target.keep(queue, nbytes);
    const { words } = kept;
    place(queue, kept.va, words, true);
    return new PlacedStream(kept.va + qmds, words.subarray(qmds >>> 2));
  }
  submit(device: HCQCompatCompiled, queue: HWCommandQueue): void {
    this.requireOwn(device);
    const { q, kind, stream } = queue;
    if (q.length === 0) return;
    const at = stream instanceof PlacedStream ? stream.va : this.#placeOnce(queue);
    this.target.enqueue(kind, at, q.length, launchesOf(queue));
  }
  /** Where the stream lies for one submission. */
  #placeOnce(queue: HWCommandQueue): number {
    const target = this.target;
    const { qmds, nbytes } = sizesOf(queue);
    if (nbytes > target.transient.half) {
      const kept = target.keep(queue, nbytes);
      place(queue, kept.va, kept.words, false);
      return kept.va + qmds;
    }
    const at = target.transient.alloc(nbytes);
    place(queue, at, target.transientWords(at, nbytes >>> 2), false);
    return at + qmds;
  }
  show(queue: HWCommandQueue): string {
    const lines = this.lines(queue, show);
    const qmds = launchesOf(queue).map(({ program, qmd }, i) => `QMD ${i} ${program.name}: ${qmd}`);
    return [...lines, ...qmds].join("\n");
  }
}

const launchesOf = (queue: HWCommandQueue): readonly LaunchWords[] =>
  queue instanceof NVComputeQueue ? queue.launches : [];

/** The QMDs come first, each where QMDs can lie, the stream after them. */
function sizesOf(queue: HWCommandQueue): { qmds: number; nbytes: number } {
  const qmds = launchesOf(queue).reduce((n, { qmd }) => n + strideOf(qmd), 0);
  return { qmds, nbytes: qmds + queue.q.length * 4 };
}
const strideOf = ({ words }: Qmd): number => Math.ceil(words.byteLength / QMD_ALIGN) * QMD_ALIGN;

/** Writes QMDs and stream to where they lie from now on, each knowing where the others are. */
function place(queue: HWCommandQueue, start: number, words: Int32Array, stays: boolean): void {
  const launches = launchesOf(queue);
  const places = new Map<LaunchWords, number>();
  let at = start;
  for (const launch of launches) {
    places.set(launch, at);
    at += strideOf(launch.qmd);
  }
  for (const [launch, own] of places) {
    const { qmd, next, sentAt } = launch;
    if (next !== undefined) qmd.chain(places.get(next) as number);
    if (sentAt !== undefined) queue.q[sentAt] = low(own / QMD_ALIGN);
    const first = (own - start) >>> 2;
    words.set(qmd.words, first);
    if (stays) qmd.home = words.subarray(first, first + qmd.words.length);
  }
  words.set(queue.q, (at - start) >>> 2);
}

/** Where a command went that is not, or not only, words of the stream. */
interface Home {
  readonly launch: LaunchWords;
  /** undefined: the launch itself */
  readonly slot: number | undefined;
}

export class NVComputeQueue extends HWComputeQueue {
  readonly launches: LaunchWords[] = [];
  /** the launch that the next command can be made a part of */
  #open: LaunchWords | undefined;
  readonly #homes = new Map<number, Home>();
  /** by arguments: the launches that have them, and their sizes */
  readonly #sizes = new Map<KernArgs, Map<LaunchWords, string>>();

  override spell<K extends CommandName>(
    name: K,
    args: CommandArgs[K],
    index: number | undefined,
  ): readonly number[] {
    if (name === "exec") return this.#launch(args as CommandArgs["exec"], index);
    const open = this.#open;
    if (
      open !== undefined &&
      (name === "signal" || name === "timestamp") &&
      open.releases < open.qmd.releases
    ) {
      const slot = open.releases++;
      if (index !== undefined) this.#homes.set(index, { launch: open, slot });
      setRelease(open, slot, name, args as CommandArgs["signal"]);
      return [];
    }
    this.#open = undefined;
    return super.spell(name, args, index);
  }
  #launch(args: CommandArgs["exec"], index: number | undefined): readonly number[] {
    const { program, kernargs } = args;
    if (!(program instanceof NVProgram) || !(kernargs instanceof WordArgs))
      throw new InternalError("an NV queue got a program or arguments of another kind of device");
    const before = this.#open;
    const words = before === undefined ? super.spell("exec", args, index) : [];
    const sentAt = before === undefined ? this.q.length + SENT_ADDRESS : undefined;
    const launch: LaunchWords = { program, qmd: program.qmd(kernargs), sentAt, next: undefined, releases: 0 };
    this.#setSize(launch, args);
    if (before !== undefined) before.next = launch;
    this.#open = launch;
    this.launches.push(launch);
    if (index !== undefined) this.#homes.set(index, { launch, slot: undefined });
    return words;
  }

  /** Kernels find their sizes among their arguments, so launches that share arguments have to share sizes. */
  #setSize(launch: LaunchWords, { kernargs, globalSize, localSize }: CommandArgs["exec"]): void {
    const { program, qmd } = launch;
    const size = `${globalSize.join()}|${localSize.join()}`;
    const sharers = getOrMake(this.#sizes, kernargs, () => new Map<LaunchWords, string>()).set(launch, size);
    for (const other of sharers.values()) {
      if (other === size) continue;
      throw new ArgumentError(
        `exec of ${program.name}: its arguments are those of another exec of this queue, with another size; ` +
          "allocate arguments for each",
      );
    }
    program.setSize(qmd, kernargs as WordArgs, globalSize, localSize);
  }

  protected override respell<K extends CommandName>(
    index: number,
    name: K,
    args: CommandArgs[K],
  ): readonly number[] {
    const home = this.#homes.get(index);
    if (home === undefined) return super.respell(index, name, args);
    const { launch, slot } = home;
    if (slot === undefined) this.#setSize(launch, args as CommandArgs["exec"]);
    else setRelease(launch, slot, name, args as CommandArgs["signal"]);
    const { offset, words } = this.commands[index] as { offset: number; words: number };
    return this.q.slice(offset, offset + words);
  }
}

function setRelease(
  { qmd }: LaunchWords,
  slot: number,
  name: CommandName,
  args: CommandArgs["signal"],
): void {
  if (name === "timestamp") qmd.release(slot, signalAddress(args.signal) + STAMP, 0);
  else qmd.release(slot, signalAddress(args.signal), args.value);
}

export class NVCopyQueue extends ZeroingCopyQueue {
  protected zeroWords(va: number, nbytes: number): number[] {
    return fill(va, nbytes / 4, 0);
  }
}
