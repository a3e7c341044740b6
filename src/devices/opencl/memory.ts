// The allocator of an OpenCL device: a buffer or an image an allocation (block.ts, image.ts), and copies in
// the order of the queue.

import type { DType } from "../../dtype.ts";
import { chain, type MaybePromise } from "../../helpers.ts";
import { ImageDType } from "../../images.ts";
import { type Allocator, HOST_ALIGN, HOST_SLACK } from "../../runtime/device.ts";
import { allocated, ClBlock, megabytes, noRoom, READ_WRITE } from "./block.ts";
import { type ClContext, INFO } from "./context.ts";
import { ClImage } from "./image.ts";

/** The part of the device's memory that dropped tensors may hold. */
const SLACK = 1 / 8;

export class ClAllocator implements Allocator<ClBlock> {
  readonly recycles = true;
  readonly isSlow = false;
  readonly slack: number;
  readonly canTransfer = true;
  /** where a piece of a buffer may start, for a kernel */
  readonly offsetAlign: number;
  readonly #context: ClContext;
  readonly #most: number;

  constructor(context: ClContext) {
    this.#context = context;
    this.#most = context.number(INFO.MAX_ALLOC);
    this.offsetAlign = Math.max(HOST_ALIGN, context.baseAlign);
    const total = context.number(INFO.GLOBAL_BYTES);
    this.slack = context.isCpu ? HOST_SLACK : Math.max(HOST_SLACK, SLACK * total);
  }

  alloc(nbytes: number, zeroed: boolean, dtype?: DType): ClBlock {
    const context = this.#context;
    const size = Math.max(1, nbytes);
    if (size > this.#most)
      throw noRoom(context, size, `a buffer of this device has up to ${megabytes(this.#most)}`);
    if (dtype instanceof ImageDType && context.images !== undefined)
      return new ClImage(context, dtype, nbytes, zeroed);
    const tried = context.tryToMake("clCreateBuffer", context.context, READ_WRITE, size, 0n);
    const memory = allocated(context, size, tried);
    if (zeroed) {
      const zero = new Uint8Array(1);
      context.call("clEnqueueFillBuffer", context.queue, memory, zero, 1, 0, size, 0, 0n, null);
      context.enqueued();
    }
    return new ClBlock(context, memory, 0, nbytes, true);
  }
  isBroken({ isReusable }: ClBlock): boolean {
    return !isReusable;
  }
  /** OpenCL itself keeps it until what is enqueued is done. */
  free({ memory }: ClBlock): void {
    this.#context.api.clReleaseMemObject(memory);
  }

  copyin(dest: ClBlock, src: Uint8Array): MaybePromise<void> {
    return chain(this.#context.synchronize(), () => dest.write(src));
  }
  copyout(dest: Uint8Array, src: ClBlock): MaybePromise<void> {
    return chain(this.#context.synchronize(), () => src.read(dest));
  }
  view(): undefined {
    return undefined;
  }
  offset(block: ClBlock, nbytes: number, byteOffset: number): ClBlock {
    return block.piece(nbytes, byteOffset);
  }
  transfer(dest: ClBlock, src: ClBlock, nbytes: number): void {
    src.copyTo(dest, nbytes);
    this.#context.enqueued();
  }
}
