// Where things lie at the start of the memory that all devices on the rings share, and what the words of a
// queue mean. Plain data: the executors in the workers get it as a message. Addresses are counted in words of
// 32 bits.

import { SCRATCH_BYTES } from "../../render/wasm/renderer.ts";

/** The commands, in the order of their numbers; each is followed by its arguments. */
export const COMMANDS = [
  "signal", // signal, value
  "wait", // signal, value
  "timestamp", // signal
  "memoryBarrier",
  "exec", // kernel, arguments, global size (-1: whole, by one executor)
  "copy", // destination, source, bytes
  // destination, source, bytes, where native memory takes part: 0 or 1, then low and high word of an address
  "move",
  "copyWide", // destination, source, bytes in a memory above 4 GiB: low and high word of each
] as const;
export type RingCommand = (typeof COMMANDS)[number];

/** How many words a command takes, its number included. */
export const WORDS: Readonly<Record<RingCommand, number>> = {
  signal: 3,
  wait: 3,
  timestamp: 2,
  memoryBarrier: 1,
  exec: 4,
  copy: 4,
  move: 9,
  copyWide: 7,
};

export const MAX_EXECUTORS = 64;
export const MAX_RINGS = 512;
/** Submissions that a ring holds, a power of two; each is an address and a count of words. */
export const RING_ENTRIES = 512;
/** Bytes that an executor has for the text of an error. */
const TEXT_BYTES = 512;

const HEADER = 16; // the first 64 bytes stay empty: nothing lives where a null pointer points
const EXECUTORS = HEADER + 32;
const EXECUTOR_WORDS = 32;
const RINGS = EXECUTORS + MAX_EXECUTORS * EXECUTOR_WORDS;
const RING_WORDS = 16;
const TEXTS = RINGS + MAX_RINGS * RING_WORDS;
const SCRATCH = TEXTS + (MAX_EXECUTORS * TEXT_BYTES) / 4;
const END = SCRATCH + (MAX_EXECUTORS * SCRATCH_BYTES) / 4;

export const LAYOUT = {
  commands: COMMANDS,
  /** rises when there may be something to do; idle executors watch it, then sleep on it */
  bell: HEADER,
  /** executors asleep on the bell */
  sleepers: HEADER + 1,
  /** rises when a host that awaits should look again */
  hostBell: HEADER + 2,
  /** not 0: every executor leaves its ring after the command in hand, and takes no other */
  halt: HEADER + 3,
  /** rings that stopped with an error */
  faults: HEADER + 4,
  ringCount: HEADER + 5,
  /** executors that exist, the host's included */
  executorCount: HEADER + 6,
  /** how many executors may share one kernel */
  threads: HEADER + 7,
  /** how large the memory is, in pages: whoever sees less looks again */
  size: HEADER + 8,
  // what sharing kernels has gained or lost lately (executor.ts, #settle)
  /** threads that are left out, since their parts were finished too late; 0 on a machine that is ours */
  spared: HEADER + 9,
  /** microseconds that sharing has saved, or lost where it is below 0 */
  balance: HEADER + 10,
  /** milliseconds between two tries to use one thread more */
  pause: HEADER + 11,
  /** when the next try is due, in milliseconds of the clock, modulo 2^32 */
  retryAt: HEADER + 12,
  /**
   * not 0: the host awaits, so a worker stands in for it. In a page the host always awaits, and no worker
   * stands by
   */
  hostAway: HEADER + 13,

  executors: EXECUTORS,
  executorWords: EXECUTOR_WORDS,
  /** fields of an executor */
  state: 0,
  kernel: 2,
  progress: 3,
  /**
   * The executor whose kernel it helps with, as its number + 1. The helper writes it before it looks whether
   * the job is open; the owner closes the job before it looks who is inside. So each sees the other, and who
   * dies in between is known by this word alone.
   */
  helping: 4,
  // a kernel that this executor shares with others; on a cache line of its own
  /** 1: helpers may come in; 0: closed */
  jobOpen: 16,
  jobKernel: 17,
  jobArgs: 18,
  jobSize: 19,
  jobChunk: 20,
  jobNext: 21,
  /** the executor (number + 1) on which a part of it failed */
  jobFault: 22,
  /** how many helpers may still come in */
  jobSeats: 23,
  /** rises when a helper leaves; the owner sleeps on it */
  jobLeft: 24,
  /** 1: the owner sleeps, or is about to */
  jobAwaited: 25,

  rings: RINGS,
  ringWords: RING_WORDS,
  /** fields of a ring; the lock holds the executor that is in it, as its number + 1 */
  lock: 0,
  head: 1,
  tail: 2,
  /** words already executed of the entry at the head */
  at: 3,
  entries: 4,
  /** the executor (number + 1) on which it failed */
  fault: 5,
  faultKernel: 6,
  /** how much of the kernel at `at` was executed, of its global size */
  part: 7,
  ringEntries: RING_ENTRIES,

  // fields of a signal, which starts on 16 bytes; the timestamp is a double at byte 8
  /** bit 0: a host awaits it; bit 1: a ring or a sleeper waits for it */
  wanted: 1,

  // fields of a kernel's record
  generation: 0,
  code: 1,
  codeBytes: 2,
  /** of a module: all its arguments; of native code: the variables, without the two of its range */
  args: 3,
  name: 4,
  nameBytes: 5,
  /** not 0: the code is a shared object for the processor */
  native: 6,
  /** buffers whose addresses have two words; 0 where addresses have one */
  buffers: 7,
  /** nanoseconds for each of its indexes, or for all of a kernel without indexes; 0: nobody has timed it */
  duration: 8,

  pageWords: 16384,

  texts: TEXTS,
  textBytes: TEXT_BYTES,

  /** what each executor has for the arrays of the kernel that it runs */
  scratch: SCRATCH,
  scratchBytes: SCRATCH_BYTES,

  /** parts of a shared kernel for each thread: who starts late or is held up leaves the rest to others */
  partsEach: 4,
  /** looks of an owner for helpers that are still inside before it sleeps: some 20 µs */
  looks: 1000,
  /** microseconds of the balance: what earlier gains may pay for, and the loss that leaves a thread out */
  credit: 4000,
  debt: 300,
  /** a loss of fewer milliseconds is not counted */
  noise: 0.02,
  shortestPause: 4,
  longestPause: 256,

  /** what `state` says */
  absent: 0,
  awake: 1,
  asleep: 2,
  /** it stands in for the host, and waits because the host is there */
  standby: 3,
} as const;
export type RingLayout = typeof LAYOUT;

export const PAGE = 65536;
/** The first byte that buffers may use. */
export const CONTROL_BYTES = Math.ceil((END * 4) / PAGE) * PAGE;
export const KERNEL_RECORD_BYTES = 48;
export const SIGNAL_BYTES = 16;
/** An address or a size as its low and its high word. */
export const pair = (x: number | bigint): [number, number] => [
  Number(BigInt.asIntN(32, BigInt(x))),
  Number(BigInt(x) >> 32n),
];
