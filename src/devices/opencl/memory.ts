// Memory of an OpenCL device: a buffer an allocation, and sub-buffers for pieces of one. The host reaches it
// mapped: on a CPU or a GPU that shares memory nothing is copied twice, elsewhere the driver brings pinned
// memory.

import { DeviceError, OutOfMemoryError } from "../../errors.ts";
import { chain, type MaybePromise } from "../../helpers.ts";
import { type Allocator, HOST_ALIGN, HOST_SLACK } from "../../runtime/device.ts";
import { CL } from "./api.ts";
import { type ClContext, INFO } from "./context.ts";

const [READ_WRITE, MAP_READ, MAP_INVALIDATE] = [1, 1, 4];
const BUFFER_REGION = 0x1220;
/** What is mapped at once: Node shows no more of foreign memory as one array. */
const WINDOW = 2 ** 30;
/** The part of the device's memory that dropped tensors may hold. */
const SLACK = 1 / 8;

const megabytes = (n: number): string => `${(n / 2 ** 20).toFixed(1)} MiB`;

/** A piece of a buffer. */
export class ClBlock {
  readonly context: ClContext;
  /** the whole allocation */
  readonly memory: bigint;
  readonly offset: number;
  readonly nbytes: number;
  /** what a kernel is given; that of a piece is made when the first one takes it */
  #bound: bigint | undefined;

  constructor(context: ClContext, memory: bigint, offset: number, nbytes: number, isWhole: boolean) {
    this.context = context;
    this.memory = memory;
    this.offset = offset;
    this.nbytes = nbytes;
    if (isWhole) this.#bound = memory;
  }

  /** The memory object for a kernel. */
  boundTo(kernel: string): bigint {
    this.#bound ??= this.#piece(kernel);
    return this.#bound;
  }
  #piece(kernel: string): bigint {
    const { context, offset, nbytes } = this;
    const align = context.baseAlign;
    if (offset % align !== 0) {
      throw new DeviceError(
        `${context.name}: ${kernel} takes a buffer that starts at byte ${offset} of another; this device takes ` +
          `multiples of ${align}. Copy it into a buffer of its own first`,
      );
    }
    const region = BigUint64Array.of(BigInt(offset), BigInt(Math.max(1, nbytes)));
    const made = context.make("clCreateSubBuffer", this.memory, READ_WRITE, BUFFER_REGION, region);
    pieces.register(this, { context, made });
    return made;
  }
}
/** Sub-buffers of pieces that were collected. */
const pieces = new FinalizationRegistry<{ context: ClContext; made: bigint }>(({ context, made }) => {
  context.api.clReleaseMemObject(made);
});

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

  alloc(nbytes: number, zeroed: boolean): ClBlock {
    const context = this.#context;
    const size = Math.max(1, nbytes);
    if (size > this.#most)
      throw this.#full(size, `a buffer of this device has up to ${megabytes(this.#most)}`);
    const [memory, status] = context.tryToMake("clCreateBuffer", context.context, READ_WRITE, size, 0n);
    if (NO_ROOM.has(status)) throw this.#full(size, "drop tensors first");
    if (status !== CL.SUCCESS) throw context.failure(`allocating ${megabytes(size)}`, status);
    if (zeroed) {
      const zero = new Uint8Array(1);
      context.call("clEnqueueFillBuffer", context.queue, memory, zero, 1, 0, size, 0, 0n, null);
      context.enqueued();
    }
    return new ClBlock(context, memory, 0, nbytes, true);
  }
  #full(size: number, why: string): OutOfMemoryError {
    const { name } = this.#context;
    return new OutOfMemoryError(
      `${name}: no room for ${megabytes(size)} in one piece: ${why}, or split this one`,
    );
  }
  /** OpenCL itself keeps it until what is enqueued is done. */
  free({ memory }: ClBlock): void {
    this.#context.api.clReleaseMemObject(memory);
  }

  copyin(dest: ClBlock, src: Uint8Array): MaybePromise<void> {
    return chain(this.#context.synchronize(), () =>
      this.#mapped(dest, MAP_INVALIDATE, src.byteLength, (bytes, at) =>
        bytes.set(src.subarray(at, at + bytes.length)),
      ),
    );
  }
  copyout(dest: Uint8Array, src: ClBlock): MaybePromise<void> {
    return chain(this.#context.synchronize(), () =>
      this.#mapped(src, MAP_READ, dest.byteLength, (bytes, at) => dest.set(bytes, at)),
    );
  }
  /** Maps the memory piece by piece, which waits for all that was enqueued. */
  #mapped(
    { memory, offset }: ClBlock,
    flags: number,
    nbytes: number,
    use: (bytes: Uint8Array, at: number) => void,
  ): void {
    const context = this.#context;
    const { queue } = context;
    for (let at = 0; at < nbytes; at += WINDOW) {
      const size = Math.min(WINDOW, nbytes - at);
      const place = [offset + at, size, 0, 0n, null] as const;
      const address = context.make("clEnqueueMapBuffer", queue, memory, 1, flags, ...place);
      use(new Uint8Array(context.api.view(address, size)), at);
      context.call("clEnqueueUnmapMemObject", queue, memory, address, 0, 0n, null);
      context.enqueued();
    }
  }

  view(): undefined {
    return undefined;
  }
  offset({ context, memory, offset }: ClBlock, nbytes: number, byteOffset: number): ClBlock {
    return new ClBlock(context, memory, offset + byteOffset, nbytes, false);
  }
  transfer(dest: ClBlock, src: ClBlock, nbytes: number): void {
    const context = this.#context;
    const places = [src.memory, dest.memory, src.offset, dest.offset] as const;
    if (nbytes > 0) context.call("clEnqueueCopyBuffer", context.queue, ...places, nbytes, 0, 0n, null);
    context.enqueued();
  }
}
const NO_ROOM: ReadonlySet<number> = new Set([
  CL.MEM_OBJECT_ALLOCATION_FAILURE,
  CL.OUT_OF_RESOURCES,
  CL.OUT_OF_HOST_MEMORY,
  CL.INVALID_BUFFER_SIZE,
]);
