// The packets of the compute ring, which AMD calls PM4: a header (type 3, operation, count) and its data.
// Spells those that our queues write, by the numbers of the Linux driver's headers, and reads streams back
// for people. What a launch needs in which register is for program.ts.

import { InternalError } from "../../../errors.ts";
import { high, low } from "../../../runtime/hcq/words.ts";
import type { PacketGeneration } from "./generations.ts";

export const PM4 = {
  NOP: 0x10,
  DISPATCH_DIRECT: 0x15,
  WAIT_REG_MEM: 0x3c,
  INDIRECT_BUFFER: 0x3f,
  EVENT_WRITE: 0x46,
  RELEASE_MEM: 0x49,
  ACQUIRE_MEM: 0x58,
  SET_SH_REG: 0x76,
} as const;
type Operation = keyof typeof PM4;
const NAMES = new Map(Object.entries(PM4).map(([name, code]) => [code as number, name as Operation]));

/** Registers of a launch, by the addresses of the shader block. Those of two or three follow each other. */
export const REGISTERS = {
  /** x, y, z; then NUM_THREAD, and two for counting that stay 0 */
  START_X: 0x2e04,
  PGM_LO: 0x2e0c,
  SCRATCH_BASE_LO: 0x2e10,
  PGM_RSRC1: 0x2e12,
  RESOURCE_LIMITS: 0x2e15,
  TMPRING_SIZE: 0x2e18,
  RESTART_X: 0x2e1b,
  USER_DATA_0: 0x2e40,
} as const;
export const SH_REGISTERS = 0x2c00;

const TYPE3 = 3;
const header = (operation: Operation, count: number): number =>
  ((TYPE3 << 30) | ((count - 1) << 16) | (PM4[operation] << 8)) >>> 0;
const packet = (operation: Operation, ...data: readonly number[]): number[] => [
  header(operation, data.length),
  ...data.map((x) => x >>> 0),
];
const address = (va: number): [number, number] => [low(va), high(va)];

export const setRegisters = (first: number, ...values: readonly number[]): number[] =>
  packet("SET_SH_REG", first - SH_REGISTERS, ...values);

const [EQUAL_OR_ABOVE, IN_MEMORY] = [5, 1 << 4];
/** Clocks between two looks. */
const POLL = 4;
export const waitMemory = (va: number, value: number): number[] =>
  packet("WAIT_REG_MEM", EQUAL_OR_ABOVE | IN_MEMORY, ...address(va), value, 0xffffffff, POLL);

const VALID = 1 << 23;
/** A packet has 20 bits for the length. */
export const LONGEST_STREAM = 2 ** 20 - 1;
export function indirectBuffer(va: number, dwords: number): number[] {
  if (dwords < 1 || dwords > LONGEST_STREAM || va % 4 !== 0)
    throw new InternalError(
      `AMD: ${dwords} words at ${va}: a stream has 1 to ${LONGEST_STREAM}, at a multiple of 4`,
    );
  return packet("INDIRECT_BUFFER", ...address(va), dwords | VALID);
}

/** The group that the dispatch begins with is counted from 0; wavefronts have 32 threads or 64. */
const [SHADER, FROM_ZERO, WAVE32] = [1 << 0, 1 << 2, 1 << 15];
export const dispatch = ([x, y, z]: readonly [number, number, number], isWave32: boolean): number[] =>
  packet("DISPATCH_DIRECT", x, y, z, SHADER | FROM_ZERO | (isWave32 ? WAVE32 : 0));

/** Until all kernels before are done. */
const CS_PARTIAL_FLUSH = 7 | (4 << 8);
export const waitIdle = (): number[] => packet("EVENT_WRITE", CS_PARTIAL_FLUSH);

/** Which caches: those next to a compute unit, or also instructions and what all units share. */
export type CacheReach = "near" | "all";
/** Bits of ACQUIRE_MEM on GFX9: scalar data, vector data; instructions, L2 and its writing back. */
const COHER = {
  near: (1 << 27) | (1 << 22),
  all: (1 << 29) | (1 << 27) | (1 << 23) | (1 << 22) | (1 << 18),
} as const;
/**
 * On RDNA: metadata (GLM), scalar (GLK), vector (GLV) and its next level (GL1); then instructions (GLI) and
 * L2, written back and forgotten.
 */
const GCR_NEAR = (1 << 4) | (1 << 5) | (1 << 6) | (1 << 7) | (1 << 8) | (1 << 9);
const GCR = { near: GCR_NEAR, all: GCR_NEAR | 1 | (1 << 14) | (1 << 15) } as const;
const GFX9_POLL = 10;

/** What others wrote is read afterwards, and not what a cache has of it. */
export function acquireMemory({ caches }: PacketGeneration, reach: CacheReach): number[] {
  const everything = [0xffffffff, 0xffffffff, 0, 0];
  return caches === "gfx9"
    ? packet("ACQUIRE_MEM", COHER[reach], ...everything, GFX9_POLL)
    : packet("ACQUIRE_MEM", 0, ...everything, 0, GCR[reach]);
}

/** At the end of all kernels before, when caches are flushed. */
const END_OF_PIPE = 0x14 | (5 << 8);
/** GFX9: what L2 holds is written back. */
const EOP_WRITE_BACK = (1 << 15) | (1 << 19);
/** RDNA: metadata, vector caches and L2, written back and forgotten, one after the other. */
const EOP_GCR = (1 << 12) | (1 << 13) | (1 << 14) | (1 << 15) | (1 << 20) | (1 << 21) | (1 << 22);
const [DATA_32, DATA_CLOCK] = [1 << 29, 3 << 29];

/** Sets 32 bits when all before is done and seen. */
export const releaseValue = ({ caches }: PacketGeneration, va: number, value: number): number[] =>
  packet(
    "RELEASE_MEM",
    END_OF_PIPE | (caches === "gfx9" ? EOP_WRITE_BACK : EOP_GCR),
    DATA_32,
    ...address(va),
    value,
    0,
    0,
  );
/** Writes the clock, 64 bits, when all before is done. */
export const releaseClock = (va: number): number[] =>
  packet("RELEASE_MEM", END_OF_PIPE, DATA_CLOCK, ...address(va), 0, 0, 0);

/** A packet that was read. */
export interface Packet {
  readonly name: Operation;
  readonly data: readonly number[];
}
/** What a stream says. A word that is not a header of ours is an error. */
export function* parsePm4(words: ArrayLike<number>): Generator<Packet> {
  for (let i = 0; i < words.length; ) {
    const word = (words[i] as number) >>> 0;
    const name = NAMES.get((word >>> 8) & 0xff);
    const count = ((word >>> 16) & 0x3fff) + 1;
    if (name === undefined || word >>> 30 !== TYPE3 || (word & 0xff) !== 0)
      throw new InternalError(`word ${i}, 0x${word.toString(16)}, is not a header that we wrote`);
    if (i + 1 + count > words.length)
      throw new InternalError(
        `the stream ends ${i + 1 + count - words.length} words before its last packet does`,
      );
    yield { name, data: Array.from({ length: count }, (_, k) => (words[i + 1 + k] as number) >>> 0) };
    i += 1 + count;
  }
}
/** One line a packet. */
export const showPm4 = (words: ArrayLike<number>): string[] =>
  [...parsePm4(words)].map(({ name, data }) => [name, ...data.map((x) => `0x${x.toString(16)}`)].join(" "));
