// What tensors of an OpenCL device lie in: a buffer or a piece of one. The host reaches it mapped: on a CPU
// or a GPU that shares memory nothing is copied twice, elsewhere the driver brings pinned memory. image.ts
// has the other kind.

import { DeviceError, OutOfMemoryError } from "../../errors.ts";
import { CL } from "./api.ts";
import type { ClContext } from "./context.ts";
import type { ClImage } from "./image.ts";

export const READ_WRITE = 1;
const [MAP_READ, MAP_INVALIDATE] = [1, 4];
const BUFFER_REGION = 0x1220;
/** What is mapped at once: Node shows no more of foreign memory as one array. */
const WINDOW = 2 ** 30;

export const megabytes = (n: number): string => `${(n / 2 ** 20).toFixed(1)} MiB`;
const NO_ROOM: ReadonlySet<number> = new Set([
  CL.MEM_OBJECT_ALLOCATION_FAILURE,
  CL.OUT_OF_RESOURCES,
  CL.OUT_OF_HOST_MEMORY,
  CL.INVALID_BUFFER_SIZE,
]);
export const noRoom = ({ name }: ClContext, size: number, why: string): OutOfMemoryError =>
  new OutOfMemoryError(`${name}: no room for ${megabytes(size)} in one piece: ${why}, or split this one`);
/** New memory of this size, or why there is none. */
export function allocated(context: ClContext, size: number, [memory, status]: [bigint, number]): bigint {
  if (NO_ROOM.has(status)) throw noRoom(context, size, "drop tensors first");
  if (status !== CL.SUCCESS) throw context.failure(`allocating ${megabytes(size)}`, status);
  return memory;
}

/** A buffer, or a piece of one. */
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

  /** The memory object for a kernel, which its errors name. */
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
  /** a freed one can be another's memory */
  get isReusable(): boolean {
    return true;
  }
  /** The same contents for a kernel that also writes here; a buffer may be read meanwhile. */
  readCopy(): ClBlock {
    return this;
  }
  piece(nbytes: number, byteOffset: number): ClBlock {
    return new ClBlock(this.context, this.memory, this.offset + byteOffset, nbytes, false);
  }

  // ---- contents; what was enqueued before is done ----

  write(src: Uint8Array): void {
    this.#mapped(MAP_INVALIDATE, src.byteLength, (bytes, at) =>
      bytes.set(src.subarray(at, at + bytes.length)),
    );
  }
  read(dest: Uint8Array): void {
    this.#mapped(MAP_READ, dest.byteLength, (bytes, at) => dest.set(bytes, at));
  }
  /** Maps the memory piece by piece, which waits for all that was enqueued. */
  #mapped(flags: number, nbytes: number, use: (bytes: Uint8Array, at: number) => void): void {
    const { context, memory, offset } = this;
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

  // ---- copies on the device ----

  copyTo(dest: ClBlock, nbytes: number): void {
    dest.takeBuffer(this, nbytes);
  }
  takeBuffer(src: ClBlock, nbytes: number): void {
    const { context } = this;
    const places = [src.memory, this.memory, src.offset, this.offset] as const;
    if (nbytes > 0) context.call("clEnqueueCopyBuffer", context.queue, ...places, nbytes, 0, 0n, null);
  }
  takeImage(src: ClImage): void {
    const { context, memory, offset } = this;
    const { origin, region } = src;
    context.call(
      "clEnqueueCopyImageToBuffer",
      ...([context.queue, src.memory, memory, origin, region, offset, 0, 0n, null] as const),
    );
  }
}
/** Sub-buffers of pieces that were collected. */
const pieces = new FinalizationRegistry<{ context: ClContext; made: bigint }>(({ context, made }) => {
  context.api.clReleaseMemObject(made);
});
