// The packets of the copy engine (SDMA): an operation and a sub-operation in the first word, and as many
// words after it as the operation has. Spells those that our queues write, by the numbers of the Linux
// driver's headers, and reads streams back, packet by packet: the ring takes no packet across its end.

import { InternalError } from "../../../errors.ts";
import { high, low } from "../../../runtime/hcq/words.ts";
import type { PacketGeneration } from "./generations.ts";

/** By name: the operation with its sub-operation, and words in all. */
export const SDMA = {
  NOP: [0x0, 1],
  COPY_LINEAR: [0x1, 7],
  FENCE: [0x5, 4],
  POLL_REGMEM: [0x8, 6],
  CONSTANT_FILL: [0xb, 5],
  TIMESTAMP_GET_GLOBAL: [0x20d, 3],
} as const;
export type SdmaOperation = keyof typeof SDMA;
const NAMES = new Map(Object.entries(SDMA).map(([name, [code]]) => [code as number, name as SdmaOperation]));
const OPERATION = 0xffff;

const packet = (name: SdmaOperation, fields: number, ...data: readonly number[]): number[] =>
  [SDMA[name][0] | fields, ...data].map((x) => x >>> 0);
const address = (va: number): [number, number] => [low(va), high(va)];

/** In pieces of what a packet moves at most. */
function* pieces(
  nbytes: number,
  { longestCopy }: PacketGeneration,
): Generator<readonly [at: number, size: number]> {
  for (let at = 0; at < nbytes; at += longestCopy) yield [at, Math.min(longestCopy, nbytes - at)];
}
/** Sizes are given less one. */
export const copyLinear = (g: PacketGeneration, dest: number, src: number, nbytes: number): number[] =>
  [...pieces(nbytes, g)].flatMap(([at, size]) =>
    packet("COPY_LINEAR", 0, size - 1, 0, ...address(src + at), ...address(dest + at)),
  );
export const fillZeros = (g: PacketGeneration, dest: number, nbytes: number): number[] =>
  [...pieces(nbytes, g)].flatMap(([at, size]) =>
    packet("CONSTANT_FILL", 0, ...address(dest + at), 0, size - 1),
  );

/** Sets 32 bits when all before is done. */
export const fence = ({ fenceType }: PacketGeneration, va: number, value: number): number[] =>
  packet("FENCE", fenceType, ...address(va), value);

const [EQUAL_OR_ABOVE, IN_MEMORY] = [5 << 28, 1 << 31];
/** Clocks between two looks, and without an end. */
const [POLL, FOREVER] = [4, 0xfff << 16];
export const pollMemory = (va: number, value: number): number[] =>
  packet("POLL_REGMEM", EQUAL_OR_ABOVE | IN_MEMORY, ...address(va), value, 0xffffffff, POLL | FOREVER);

/** Writes the clock, 64 bits. The engine takes addresses that are multiples of 32. */
export const timestamp = (va: number): number[] => packet("TIMESTAMP_GET_GLOBAL", 0, ...address(va));

export interface SdmaPacket {
  readonly name: SdmaOperation;
  /** its first word without the operation */
  readonly fields: number;
  readonly words: readonly number[];
}
export function* parseSdma(words: ArrayLike<number>): Generator<SdmaPacket> {
  for (let i = 0; i < words.length; ) {
    const word = (words[i] as number) >>> 0;
    const name = NAMES.get(word & OPERATION);
    if (name === undefined)
      throw new InternalError(`word ${i}, 0x${word.toString(16)}, begins no packet that we wrote`);
    const count = SDMA[name][1];
    if (i + count > words.length)
      throw new InternalError(
        `the stream ends ${i + count - words.length} words before its last packet does`,
      );
    const all = Array.from({ length: count }, (_, k) => (words[i + k] as number) >>> 0);
    yield { name, fields: (word & ~OPERATION) >>> 0, words: all };
    i += count;
  }
}
export const showSdma = (words: ArrayLike<number>): string[] =>
  [...parseSdma(words)].map(({ name, fields, words: [, ...data] }) =>
    [name, fields, ...data].map((x) => (typeof x === "number" ? `0x${x.toString(16)}` : x)).join(" "),
  );
