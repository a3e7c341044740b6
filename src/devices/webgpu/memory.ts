// Memory of a GPU: one GpuBuffer an allocation, zeroed by the standard. Freed ones are kept by size
// (runtime/cache.ts). The host writes through the queue, and reads through buffers that it can map, of which
// a few are kept.

import { DeviceError, InternalError, OutOfMemoryError } from "../../errors.ts";
import type { MaybePromise } from "../../helpers.ts";
import { type Allocator, HOST_SLACK } from "../../runtime/device.ts";
import { type GpuBuffer, type GpuFault, MAP_READ, USAGE } from "./api.ts";
import { type GpuStream, lateOutOfMemory } from "./stream.ts";

/** A piece of a GPU's memory; pieces of one buffer have one `id`. */
export interface GpuBlock {
  /** whose memory it is: it does not outlive its GPU */
  readonly stream: GpuStream;
  readonly buffer: GpuBuffer;
  readonly id: number;
  readonly offset: number;
  readonly nbytes: number;
  /** where the allocation ends that it is in */
  readonly end: number;
  /** why the allocation is not there */
  readonly fate: { failure?: Error };
}

/** Refuses memory that is not there, or was lost with the GPU that this one took the place of. */
export function requireOwn({ stream, nbytes, fate }: GpuBlock, here: GpuStream): void {
  if (fate.failure !== undefined) throw fate.failure;
  if (stream === here) return;
  throw new DeviceError(
    `${here.name}: a tensor of ${nbytes} bytes was lost with the GPU that held it, which was opened again; ` +
      "make it anew, from data or from a saved state",
  );
}

/** Refuses a view that a kernel cannot bind. The jit's arenas and the views of tensors never have one. */
export function requireAligned({ stream, offset }: GpuBlock, kernel: string): void {
  const { minStorageBufferOffsetAlignment: step = 256 } = stream.gpu.limits;
  if (offset % step === 0) return;
  throw new DeviceError(
    `${stream.name}: ${kernel} takes a buffer that starts at byte ${offset} of another; WebGPU binds buffers at ` +
      `multiples of ${step}. Copy it into a buffer of its own first`,
  );
}

/** Copies and bindings are of whole words. */
const WORD = 4;
export const wholeWords = (nbytes: number): number => Math.ceil(nbytes / WORD) * WORD;
/** Bytes that are written at once. */
const PIECE = 16 << 20;
/** A kernel may read vectors of so many bytes, of which the last may be partly beyond the end. */
const VECTOR = 16;

const megabytes = (n: number): string => `${(n / 2 ** 20).toFixed(1)} MiB`;
let ids = 0;

export class GpuAllocator implements Allocator<GpuBlock> {
  readonly recycles = true;
  readonly isSlow = true;
  readonly slack = 4 * HOST_SLACK;
  readonly canTransfer = false;
  readonly offsetAlign: number;
  readonly #stream: GpuStream;
  readonly #readers: Readers;
  /** parts of words are written one after the other: two may be in one word */
  #parts: Promise<void> = Promise.resolve();

  constructor(stream: GpuStream) {
    this.#stream = stream;
    this.#readers = new Readers(stream);
    this.offsetAlign = stream.gpu.limits.minStorageBufferOffsetAlignment ?? 256;
  }

  alloc(nbytes: number): GpuBlock {
    const { name, gpu } = this.#stream;
    const size = Math.max(VECTOR, Math.ceil(nbytes / VECTOR) * VECTOR);
    const { maxBufferSize = Infinity, maxStorageBufferBindingSize: maxBinding = Infinity } = gpu.limits;
    const most = Math.min(maxBufferSize, maxBinding);
    if (size > most) {
      throw new OutOfMemoryError(
        `${name}: no room for ${megabytes(size)} in one piece: a buffer of this GPU has up to ` +
          `${megabytes(most)} (WebGPU's limits); split the tensor, or use another device`,
      );
    }
    // what failed before is for those who wait: the caller takes an OutOfMemoryError for this allocation's
    this.#stream.requireAlive();
    gpu.pushErrorScope("out-of-memory");
    const buffer = gpu.createBuffer({ size, usage: USAGE.STORAGE | USAGE.COPY_SRC | USAGE.COPY_DST });
    const block = { stream: this.#stream, buffer, id: ++ids, offset: 0, nbytes, end: nbytes, fate: {} };
    // the answer comes later: whoever waits next hears of it
    void gpu.popErrorScope().then(
      (fault) => {
        if (fault !== null) this.#broken(block, fault);
      },
      () => {}, // lost: the stream tells
    );
    return block;
  }
  #broken({ fate, buffer }: GpuBlock, { message }: GpuFault): void {
    const { name } = this.#stream;
    fate.failure = lateOutOfMemory(`${name}: no room for ${megabytes(buffer.size)}: ${message.trim()}`);
    this.#stream.fail(fate.failure);
  }
  isBroken({ fate }: GpuBlock): boolean {
    return fate.failure !== undefined;
  }
  free({ stream, buffer }: GpuBlock): void {
    stream.retire(buffer);
  }

  copyin(block: GpuBlock, src: Uint8Array): MaybePromise<void> {
    requireOwn(block, this.#stream);
    const { buffer, offset } = block;
    const [start, end] = [offset % WORD, (offset + src.byteLength) % WORD];
    // beyond the end of an allocation there is nothing to keep
    const isOwn = end === 0 || block.end - (offset + src.byteLength) < WORD - end;
    if (start === 0 && isOwn) return this.#write(buffer, offset, src);
    const words = new Uint8Array(wholeWords(start + src.byteLength));
    const written = this.#parts.then(async () => {
      await this.#readers.read(words, buffer, offset - start);
      words.set(src, start);
      this.#write(buffer, offset - start, words);
    });
    this.#parts = written.catch(() => {});
    return Object.assign(written, { why: "a part of a word of WEBGPU's memory is written after it is read" });
  }
  /** A few megabytes at a time: a browser allocates as much again to send them to its GPU process. */
  #write(buffer: GpuBuffer, offset: number, src: Uint8Array): void {
    for (let done = 0; done < src.byteLength; done += PIECE) {
      const part = src.subarray(done, done + PIECE);
      const whole = wholeWords(part.byteLength);
      // Dawn takes no memory that threads share
      const isReady = whole === part.byteLength && part.buffer instanceof ArrayBuffer;
      const words = isReady ? part : new Uint8Array(whole);
      if (!isReady) words.set(part);
      this.#stream.write(buffer, offset + done, words);
    }
  }
  copyout(dest: Uint8Array, block: GpuBlock): Promise<void> {
    requireOwn(block, this.#stream);
    const { buffer, offset } = block;
    const why = "WebGPU gives results asynchronously";
    return Object.assign(this.#readers.read(dest, buffer, offset), { why });
  }

  view(): undefined {
    return undefined;
  }
  offset(block: GpuBlock, nbytes: number, byteOffset: number): GpuBlock {
    return { ...block, offset: block.offset + byteOffset, nbytes };
  }
  transfer(): never {
    throw new InternalError("WEBGPU cannot transfer");
  }
}

/** Bytes of one reader, and readers that are kept. */
const [SMALLEST, LARGEST, KEPT] = [4096, 64 << 20, 4];

/** Buffers that the host can map, for what it reads. */
class Readers {
  readonly #stream: GpuStream;
  readonly #free: GpuBuffer[] = [];

  constructor(stream: GpuStream) {
    this.#stream = stream;
  }

  async read(dest: Uint8Array, src: GpuBuffer, offset: number): Promise<void> {
    for (let done = 0; done < dest.byteLength; done += LARGEST) {
      await this.#part(dest.subarray(done, done + LARGEST), src, offset + done);
    }
  }
  async #part(dest: Uint8Array, src: GpuBuffer, offset: number): Promise<void> {
    const stream = this.#stream;
    const start = offset % WORD;
    const size = wholeWords(start + dest.byteLength);
    const reader = this.#take(size);
    try {
      stream.command((encoder) => encoder.copyBufferToBuffer(src, offset - start, reader, 0, size));
      stream.flush();
      await stream.until(reader.mapAsync(MAP_READ, 0, size));
      dest.set(new Uint8Array(reader.getMappedRange(0, size)).subarray(start, start + dest.byteLength));
      reader.unmap();
      this.#give(reader);
    } catch (e) {
      reader.destroy();
      throw e;
    }
  }
  #take(size: number): GpuBuffer {
    const at = this.#free.findIndex((b) => b.size >= size && b.size <= Math.max(SMALLEST, 4 * size));
    if (at >= 0) return this.#free.splice(at, 1)[0] as GpuBuffer;
    const room = Math.max(SMALLEST, 2 ** Math.ceil(Math.log2(size)));
    return this.#stream.gpu.createBuffer({ size: room, usage: USAGE.MAP_READ | USAGE.COPY_DST });
  }
  #give(reader: GpuBuffer): void {
    this.#free.push(reader);
    if (this.#free.length > KEPT) this.#free.shift()?.destroy();
  }
}
