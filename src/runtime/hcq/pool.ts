// Small blocks cut from large ones: a new piece of memory takes a kernel driver a good part of a millisecond
// and whole pages, and most of what a device needs is a few hundred bytes. Its owner knows when a block may
// be used again (retired.ts).

import { InternalError } from "../../errors.ts";
import { AddressSpace } from "../addressspace.ts";

/**
 * Where memory lies. `device`: only the device reaches it. `visible`: the device's memory with a window for
 * the host, which is write-combined: made for writing whole words in order, a read of it takes about a
 * microsecond. `host`: the host's own memory, cached, which the device reads and writes
 * across the bus: signals, staging.
 */
export type MemoryKind = "device" | "visible" | "host";

export interface MemoryBlock {
  /** the address as the device sees it, a multiple of the page size */
  readonly va: number;
  /** what was asked for, rounded up to whole pages */
  readonly size: number;
  readonly kind: MemoryKind;
  /** the host's window on all of it; undefined for `device`. Not valid after `free`. */
  readonly bytes: Uint8Array | undefined;
}

/** What gives out memory in pages: a GPU behind its kernel driver. */
export interface MemorySource {
  /** New memory, all zeros for `host`. Throws OutOfMemoryError where there is no room. */
  alloc(nbytes: number, kind: MemoryKind): MemoryBlock;
  /** At once: the caller knows that nothing in flight uses it. */
  free(memory: MemoryBlock): void;
}

/** In words: what lies at an address, or what it comes after. */
export function whereabouts(blocks: Iterable<MemoryBlock>, va: number): string {
  let before: MemoryBlock | undefined;
  for (const block of blocks) {
    if (block.va <= va && block.va > (before?.va ?? -1)) before = block;
  }
  if (before === undefined) return "before all memory";
  const behind = va - before.va - before.size;
  const block = `the ${before.size} bytes at 0x${before.va.toString(16)}`;
  return behind < 0 ? `inside ${block}` : `${behind} bytes behind ${block}`;
}

/** What every block is aligned to and a multiple of: enough for descriptors, code and the widest loads. */
const ALIGN = 256;

interface PoolChunk {
  readonly memory: MemoryBlock;
  readonly space: AddressSpace;
  readonly words: Int32Array | undefined;
}

/** A block of a pool. */
export interface PoolBlock {
  readonly va: number;
  readonly size: number;
  /** the host's window on it, where the host has one */
  readonly words: Int32Array | undefined;
  readonly chunk: unknown;
}

const rounded = (nbytes: number): number => Math.max(ALIGN, Math.ceil(nbytes / ALIGN) * ALIGN);

/** The host's view of memory in words. */
export function wordsOf({ bytes, kind }: MemoryBlock): Int32Array {
  if (bytes === undefined) throw new InternalError(`the host has no window on memory of kind ${kind}`);
  return new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >>> 2);
}

export class Pool {
  readonly #source: MemorySource;
  readonly #kind: MemoryKind;
  readonly #chunkBytes: number;
  readonly #tail: number;
  readonly #chunks: PoolChunk[] = [];

  /** `tail`: bytes at the end of every chunk that are zero and belong to no block */
  constructor(source: MemorySource, kind: MemoryKind, chunkBytes: number, tail = 0) {
    this.#source = source;
    this.#kind = kind;
    this.#chunkBytes = chunkBytes;
    this.#tail = tail;
  }

  alloc(nbytes: number): PoolBlock {
    const size = rounded(nbytes);
    for (const chunk of this.#chunks) {
      const found = this.#take(chunk, size);
      if (found !== undefined) return found;
    }
    const memory = this.#source.alloc(Math.max(this.#chunkBytes, size + this.#tail), this.#kind);
    const words = this.#kind === "device" ? undefined : wordsOf(memory);
    words?.fill(0, (memory.size - this.#tail) >>> 2);
    const chunk = { memory, space: new AddressSpace(0), words };
    this.#chunks.push(chunk);
    return this.#take(chunk, size) as PoolBlock;
  }
  #take(chunk: PoolChunk, size: number): PoolBlock | undefined {
    const { memory, space, words } = chunk;
    const { at } = space.alloc(size);
    if (space.top <= memory.size - this.#tail) {
      const window = words?.subarray(at >>> 2, (at + size) >>> 2);
      return { va: memory.va + at, size, words: window, chunk };
    }
    space.free(at, size);
    return undefined;
  }

  free({ va, size, chunk }: PoolBlock): void {
    const { memory, space } = chunk as PoolChunk;
    space.free(va - memory.va, size);
  }
  /** Gives the chunks that nobody uses back to the source. */
  trim(): void {
    for (const chunk of this.#chunks.filter((c) => c.space.top === 0)) {
      this.#chunks.splice(this.#chunks.indexOf(chunk), 1);
      this.#source.free(chunk.memory);
    }
  }
}
