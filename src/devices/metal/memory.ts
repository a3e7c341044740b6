// Memory of a GPU that the host reaches, too: a buffer an allocation. Copies between host and GPU are the
// host's own, once the work that may use the memory is done. Copies between buffers are a blit, or, where
// bytes are not in fours, a kernel.

import { env } from "../../env.ts";
import { OutOfMemoryError } from "../../errors.ts";
import { chain, type MaybePromise } from "../../helpers.ts";
import { type Allocator, HOST_ALIGN, HOST_SLACK } from "../../runtime/device.ts";
import type { MetalContext } from "./context.ts";
import { type Id, MTL } from "./messages.ts";
import { noting } from "./timing.ts";

/** An allocation. */
export interface MetalMemory {
  readonly context: MetalContext;
  readonly buffer: Id;
  /** where the host reaches it */
  readonly address: bigint;
  readonly length: number;
  /** a command had it: before that, nobody has to wait for the GPU */
  isTouched: boolean;
}
/** A piece of one. */
export interface MetalBlock {
  readonly memory: MetalMemory;
  readonly offset: number;
}
/** Copies bytes by a kernel. */
export type CopyBytes = (dest: MetalBlock, src: MetalBlock, nbytes: number) => void;

/** Node shows no more of foreign memory as one array. */
const WINDOW = 2 ** 30;
/** The part of the memory that the GPU works well with that dropped tensors may hold. */
const SLACK = 1 / 8;
/** Blits move multiples of this from multiples of this. */
const BLIT = 4;
/** Lengths are multiples of this: a blit may run over the end of what was asked for. */
const ROUND = 16;

const megabytes = (n: number): string => `${(n / 2 ** 20).toFixed(1)} MiB`;

export class MetalAllocator implements Allocator<MetalBlock> {
  readonly recycles = true;
  readonly isSlow = false;
  readonly slack: number;
  readonly canTransfer = true;
  readonly offsetAlign = HOST_ALIGN;
  readonly #context: MetalContext;
  readonly #copyBytes: CopyBytes;
  readonly #most: number;

  constructor(context: MetalContext, copyBytes: CopyBytes) {
    const { objc, gpu } = context;
    this.#context = context;
    this.#copyBytes = copyBytes;
    this.#most = objc.send(gpu.id, "maxBufferLength");
    this.slack = Math.max(HOST_SLACK, SLACK * objc.send(gpu.id, "recommendedMaxWorkingSetSize"));
  }

  /** Metal clears what it gives out. */
  alloc(nbytes: number): MetalBlock {
    const context = this.#context;
    const { objc } = context;
    const length = Math.ceil(Math.max(1, nbytes) / ROUND) * ROUND;
    if (length > this.#most)
      throw this.#full(length, `a buffer of this GPU has up to ${megabytes(this.#most)}; split this one`);
    let buffer = this.#take(length);
    if (buffer === 0n) {
      // what was freed lately may still be in use
      context.block();
      buffer = this.#take(length);
    }
    if (buffer === 0n) throw this.#full(length, "drop tensors, or split this one");
    const address = objc.send(buffer, "contents");
    return { memory: { context, buffer, address, length, isTouched: false }, offset: 0 };
  }
  #take(length: number): Id {
    const { objc, gpu } = this.#context;
    return objc.send(gpu.id, "newBufferWithLength:options:", length, MTL.STORAGE_SHARED);
  }
  #full(length: number, why: string): OutOfMemoryError {
    return new OutOfMemoryError(
      `${this.#context.name}: no room for ${megabytes(length)} in one piece: ${why}`,
    );
  }
  /** A command buffer keeps what its encoders were given, but not what indirect commands use. */
  free({ memory: { context, buffer } }: MetalBlock): void {
    context.retire(() => context.objc.send(buffer, "release"));
  }

  copyin(dest: MetalBlock, src: Uint8Array): MaybePromise<void> {
    return chain(this.#idle(dest), () => {
      for (const [at, window] of this.#windows(dest, src.byteLength))
        window.set(src.subarray(at, at + window.byteLength));
    });
  }
  copyout(dest: Uint8Array, src: MetalBlock): MaybePromise<void> {
    return chain(this.#idle(src), () => {
      for (const [at, window] of this.#windows(src, dest.byteLength)) dest.set(window, at);
    });
  }
  #idle({ memory }: MetalBlock): MaybePromise<void> {
    return memory.isTouched ? this.#context.synchronize() : undefined;
  }
  *#windows({ memory, offset }: MetalBlock, nbytes: number): Generator<[number, Uint8Array]> {
    for (let at = 0; at < nbytes; at += WINDOW) {
      const size = Math.min(WINDOW, nbytes - at);
      yield [at, memory.context.objc.view(memory.address + BigInt(offset + at), size)];
    }
  }
  view(block: MetalBlock, nbytes: number): Uint8Array | undefined {
    if (nbytes > WINDOW) return undefined;
    const [only] = this.#windows(block, Math.max(1, nbytes));
    return only?.[1].subarray(0, nbytes);
  }
  offset({ memory, offset }: MetalBlock, _: number, byteOffset: number): MetalBlock {
    return { memory, offset: offset + byteOffset };
  }

  transfer(dest: MetalBlock, src: MetalBlock, nbytes: number): void {
    const [to, from] = [dest.memory.context, src.memory.context];
    if (nbytes === 0) return;
    if (to !== from) to.waitFor(from.fence());
    dest.memory.isTouched = src.memory.isTouched = true;
    const size = blitSize(dest, src, nbytes);
    if (size === undefined) this.#copyBytes(dest, src, nbytes);
    else blit(dest, src, size);
    if (to !== from) from.waitFor(to.fence());
  }
}

/** The bytes that a blit moves for these; undefined where it cannot. */
function blitSize(dest: MetalBlock, src: MetalBlock, nbytes: number): number | undefined {
  if (dest.offset % BLIT !== 0 || src.offset % BLIT !== 0) return undefined;
  if (nbytes % BLIT === 0) return nbytes;
  // what follows belongs to nobody only where the allocation ends
  const size = Math.ceil(nbytes / BLIT) * BLIT;
  return dest.offset === 0 && dest.memory.length - size < ROUND ? size : undefined;
}
function blit(dest: MetalBlock, src: MetalBlock, size: number): void {
  const { context } = dest.memory;
  const what = `${context.name} <- ${src.memory.context.name}`;
  const span = { track: "copy", name: what, kind: "copy", args: { bytes: size } } as const;
  const done = env.PROFILE ? { done: noting(context, span) } : {};
  context.submit({ what, kernels: [], ...done }, (commands) =>
    context.encoding(commands, "blitCommandEncoder", (encoder) => {
      const [from, to] = [src.memory.buffer, dest.memory.buffer];
      const copy = "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:";
      context.objc.send(encoder, copy, from, src.offset, to, dest.offset, size);
    }),
  );
}
