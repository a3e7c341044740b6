// One queue of the kernel driver: a ring of words in memory of the host, two pointers by which the host and
// the GPU tell each other how far they are, and a doorbell. What the words say, and when work is done, is
// for others.

import { env } from "../../../env.ts";
import { DeviceError, InternalError } from "../../../errors.ts";
import type { GpuRing } from "../../../runtime/hcq/gpu.ts";
import { type MemoryBlock, wordsOf } from "../../../runtime/hcq/pool.ts";
import type { LinuxSystem } from "../../linux/syscalls.ts";
import { parseSdma } from "../commands/sdma.ts";

/** Where the pointers lie in their page. */
export const [READ_AT, WRITE_AT] = [0x80, 0x38];

/** What a ring stands on. */
interface RingParts {
  readonly kind: GpuRing["kind"];
  readonly ring: MemoryBlock;
  readonly pointers: MemoryBlock;
  /** 64 bits */
  readonly doorbell: BigUint64Array;
  readonly system: LinuxSystem;
  readonly fault: () => string | undefined;
}
/** Pointers count words for kernels, and bytes for copies. */
const UNIT = { compute: 1, copy: 4 } as const;

export class KfdRing implements GpuRing {
  readonly kind: GpuRing["kind"];
  readonly #parts: RingParts;
  readonly #words: Int32Array;
  readonly #read: BigUint64Array;
  readonly #write: BigUint64Array;
  /** words that were ever written */
  #put = 0;

  constructor(parts: RingParts) {
    this.kind = parts.kind;
    this.#parts = parts;
    this.#words = wordsOf(parts.ring);
    const page = parts.pointers.bytes as Uint8Array;
    const pointer = (at: number) => new BigUint64Array(page.buffer, page.byteOffset + at, 1);
    [this.#read, this.#write] = [pointer(READ_AT), pointer(WRITE_AT)];
  }

  submit(words: ArrayLike<number>): void {
    if (this.kind === "compute") this.#append(words);
    else for (const part of this.#packets(words)) this.#append(part);
    this.#tell();
  }
  #tell(): void {
    const { system, doorbell } = this.#parts;
    const put = BigInt(this.#put * UNIT[this.kind]);
    // the GPU may read the ring at any time: the words must be there before it is told
    system.barrier();
    this.#write[0] = put;
    system.barrier();
    doorbell[0] = put;
    system.barrier();
  }
  /** The copy engine takes no packet across the end: what is left there is filled with NOPs, which are 0. */
  *#packets(words: ArrayLike<number>): Generator<readonly number[]> {
    for (const packet of parseSdma(words)) {
      const left = this.#words.length - (this.#put % this.#words.length);
      if (packet.words.length > left) yield new Array<number>(left).fill(0);
      yield packet.words;
    }
  }
  #append(words: ArrayLike<number>): void {
    const size = this.#words.length;
    if (words.length >= size) throw new InternalError(`AMD: ${words.length} words for a ring of ${size}`);
    if (this.#pendingWords() + words.length >= size) this.#makeRoom(words.length);
    for (let i = 0; i < words.length; i++) this.#words[(this.#put + i) % size] = words[i] as number;
    this.#put += words.length;
  }
  /** What the GPU was not told of counts, too. */
  #pendingWords(): number {
    const size = this.#words.length;
    const read = Number((this.#read[0] as bigint) / BigInt(UNIT[this.kind])) % size;
    return ((this.#put % size) - read + size) % size;
  }
  pending(): number {
    return this.#pendingWords();
  }
  /** Watches until the GPU has fetched so much. What is in the ring has to be fetched for it. */
  #makeRoom(count: number): void {
    const limit = performance.now() + env.HCQ_TIMEOUT * 1000;
    this.#tell();
    while (this.#pendingWords() + count >= this.#words.length) {
      const fault = this.fault();
      if (fault !== undefined) throw new DeviceError(fault);
      if (performance.now() > limit) {
        throw new DeviceError(
          `AMD: the ${this.kind} ring is full and the GPU took nothing from it for ${env.HCQ_TIMEOUT} s; ` +
            "what it waits for never came",
        );
      }
    }
  }
  fault(): string | undefined {
    return this.#parts.fault();
  }
}
