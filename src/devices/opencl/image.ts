// 2-D images of an OpenCL device (src/images.ts): pixels of four floats, of 16 bits or of 32. Kernels read
// and write them by pixel. For the host, and for copies, they are rows of pixels without gaps.

import { DeviceError, InternalError } from "../../errors.ts";
import type { ImageDType } from "../../images.ts";
import { allocated, ClBlock, READ_WRITE } from "./block.ts";
import type { ClContext } from "./context.ts";

/** Four channels, and what each of them is. */
const [RGBA, HALF_FLOAT, FLOAT] = [0x10b5, 0x10dd, 0x10de];
const TYPE_IMAGE2D = 0x10f1;
/** Bytes of an image's description, of which all but the first three fields are 0. */
const DESCRIPTION = { bytes: 72, width: 8, height: 16 };

function create(
  context: ClContext,
  { image: [height, width], name, memory }: ImageDType,
  nbytes: number,
): bigint {
  const most = context.images ?? { width: 0, height: 0 };
  if (width > most.width || height > most.height) {
    throw new DeviceError(
      `${context.name}: ${name}: the image is ${width} × ${height} pixels; those of this device have at most ` +
        `${most.width} × ${most.height}. Split it, or use float32`,
    );
  }
  const wanted = memory.bytesFor(height * width * 4);
  if (nbytes !== wanted) {
    throw new DeviceError(
      `${context.name}: ${name} has ${wanted} bytes, the buffer ${nbytes}; expected as many elements as the image has`,
    );
  }
  const format = Uint32Array.of(RGBA, memory.bits === 16 ? HALF_FLOAT : FLOAT);
  const description = new Uint8Array(DESCRIPTION.bytes);
  const fields = new DataView(description.buffer);
  fields.setUint32(0, TYPE_IMAGE2D, true);
  fields.setBigUint64(DESCRIPTION.width, BigInt(width), true);
  fields.setBigUint64(DESCRIPTION.height, BigInt(height), true);
  const tried = context.tryToMake("clCreateImage", context.context, READ_WRITE, format, description, 0n);
  return allocated(context, nbytes, tried);
}

export class ClImage extends ClBlock {
  readonly dtype: ImageDType;
  /** as OpenCL names the whole of it */
  readonly origin = new BigUint64Array(3);
  readonly region: BigUint64Array;

  constructor(context: ClContext, dtype: ImageDType, nbytes: number, zeroed: boolean) {
    super(context, create(context, dtype, nbytes), 0, nbytes, true);
    this.dtype = dtype;
    const [height, width] = dtype.image;
    this.region = BigUint64Array.of(BigInt(width), BigInt(height), 1n);
    if (!zeroed) return;
    const places = [new Float32Array(4), this.origin, this.region] as const;
    context.call("clEnqueueFillImage", context.queue, this.memory, ...places, 0, 0n, null);
    context.enqueued();
  }
  override get isReusable(): boolean {
    return false;
  }
  override piece(nbytes: number, byteOffset: number): ClBlock {
    if (byteOffset === 0 && nbytes === this.nbytes) return this;
    throw new InternalError(`${nbytes} bytes from ${byteOffset} on of ${this.dtype}: an image has no pieces`);
  }
  /** A kernel may not read an image that it writes. */
  override readCopy(): ClBlock {
    const copy = new ClImage(this.context, this.dtype, this.nbytes, false);
    copy.takeImage(this);
    copies.register(copy, { context: this.context, memory: copy.memory });
    return copy;
  }

  override write(src: Uint8Array): void {
    const { context, memory, origin, region } = this;
    const places = [1, origin, region, 0, 0, src] as const;
    context.call("clEnqueueWriteImage", context.queue, memory, ...places, 0, 0n, null);
  }
  override read(dest: Uint8Array): void {
    const { context, memory, origin, region } = this;
    const places = [1, origin, region, 0, 0, dest] as const;
    context.call("clEnqueueReadImage", context.queue, memory, ...places, 0, 0n, null);
  }

  override copyTo(dest: ClBlock): void {
    dest.takeImage(this);
  }
  override takeBuffer(src: ClBlock): void {
    const { context, memory, origin, region } = this;
    const places = [src.memory, memory, src.offset, origin, region] as const;
    context.call("clEnqueueCopyBufferToImage", context.queue, ...places, 0, 0n, null);
  }
  override takeImage(src: ClImage): void {
    const { context, memory, origin, region } = this;
    const places = [src.memory, memory, origin, origin, region] as const;
    context.call("clEnqueueCopyImage", context.queue, ...places, 0, 0n, null);
  }
}
/** Copies that were collected: OpenCL keeps them until what was enqueued is done. */
const copies = new FinalizationRegistry<{ context: ClContext; memory: bigint }>(({ context, memory }) => {
  context.api.clReleaseMemObject(memory);
});
