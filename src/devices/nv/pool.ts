// Small blocks cut from large ones: a new piece of memory takes the kernel driver a good part of a millisecond and whole
// pages, and most of what a device needs is a few hundred bytes. When a block may be used again is for its owner to know.

import { InternalError } from "../../errors.ts";
import { AddressSpace } from "../../runtime/allocator.ts";
import type { NVGpu, NVMemory, NVPlace } from "./gpu.ts";

/** What every block is aligned to and a multiple of: enough for a QMD, code and the widest loads. */
const ALIGN = 256;

interface Chunk {
  readonly memory: NVMemory;
  readonly space: AddressSpace;
  readonly words: Int32Array | undefined;
}

/** A block of a pool. */
export interface Piece {
  readonly va: number;
  readonly size: number;
  /** the host's window on it, where the host has one */
  readonly words: Int32Array | undefined;
  readonly chunk: unknown;
}

const rounded = (nbytes: number): number => Math.max(ALIGN, Math.ceil(nbytes / ALIGN) * ALIGN);

/** The host's view of memory in words. */
export function wordsOf({ bytes, place }: NVMemory): Int32Array {
  if (bytes === undefined) throw new InternalError(`the host has no window on memory of place ${place}`);
  return new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >>> 2);
}

export class Pool {
  readonly #gpu: NVGpu;
  readonly #place: NVPlace;
  readonly #chunkBytes: number;
  readonly #chunks: Chunk[] = [];

  constructor(gpu: NVGpu, place: NVPlace, chunkBytes: number) {
    this.#gpu = gpu;
    this.#place = place;
    this.#chunkBytes = chunkBytes;
  }

  alloc(nbytes: number): Piece {
    const size = rounded(nbytes);
    for (const chunk of this.#chunks) {
      const found = this.#cut(chunk, size);
      if (found !== undefined) return found;
    }
    const memory = this.#gpu.alloc(Math.max(this.#chunkBytes, size), this.#place);
    const words = this.#place === "device" ? undefined : wordsOf(memory);
    const chunk = { memory, space: new AddressSpace(0), words };
    this.#chunks.push(chunk);
    return this.#cut(chunk, size) as Piece;
  }
  #cut(chunk: Chunk, size: number): Piece | undefined {
    const { memory, space, words } = chunk;
    const { at } = space.alloc(size);
    if (space.top <= memory.size) {
      const window = words?.subarray(at >>> 2, (at + size) >>> 2);
      return { va: memory.va + at, size, words: window, chunk };
    }
    space.free(at, size);
    return undefined;
  }

  free({ va, size, chunk }: Piece): void {
    const { memory, space } = chunk as Chunk;
    space.free(va - memory.va, size);
  }
  /** Gives the chunks that nobody uses back to the GPU. */
  trim(): void {
    for (const chunk of this.#chunks.filter((c) => c.space.top === 0)) {
      this.#chunks.splice(this.#chunks.indexOf(chunk), 1);
      this.#gpu.free(chunk.memory);
    }
  }
}
