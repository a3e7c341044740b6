// Memory of a GPU. It comes from the driver's pool, which keeps what was freed and hands it out again in the
// order of the stream, so that neither allocating nor freeing waits. Copies between host and GPU go through
// pinned memory (staging.ts), copies between GPUs without the host.

import { OutOfMemoryError } from "../../errors.ts";
import { chain, type MaybePromise } from "../../helpers.ts";
import { type Allocator, HOST_ALIGN, HOST_SLACK } from "../../runtime/device.ts";
import type { CudaContext } from "./context.ts";
import { ATTRIBUTE, CUDA } from "./driver.ts";
import { Staging } from "./staging.ts";
import type { Timing } from "./timing.ts";

/** A piece of a GPU's memory. */
export interface CudaBlock {
  readonly context: CudaContext;
  readonly address: number;
}

const POOL_RELEASE_THRESHOLD = 4;
const ACCESS_READ_WRITE = 3;
const LOCATION_DEVICE = 1;
/** The part of the GPU's memory that dropped tensors may hold. */
const SLACK = 1 / 8;

const megabytes = (n: number): string => `${(n / 2 ** 20).toFixed(1)} MiB`;

export class CudaAllocator implements Allocator<CudaBlock> {
  readonly recycles = true;
  readonly isSlow = false;
  readonly slack: number;
  readonly canTransfer = true;
  readonly offsetAlign = HOST_ALIGN;
  readonly #context: CudaContext;
  readonly #timing: Timing;
  readonly #staging: Staging;
  /** undefined: this driver has no pools */
  readonly #pool: number | undefined;
  readonly #out = new BigUint64Array(1);

  constructor(context: CudaContext, timing: Timing) {
    this.#context = context;
    this.#timing = timing;
    this.#staging = new Staging(context, timing);
    this.#pool = context.attribute(ATTRIBUTE.MEMORY_POOLS) === 0 ? undefined : this.#openPool();
    this.slack = Math.max(HOST_SLACK, SLACK * this.#room().total);
  }

  /** A pool keeps all it has until memory is short; by default it would give all back at every wait. */
  #openPool(): number {
    const { ordinal } = this.#context;
    const pool = this.#context.make("cuDeviceGetDefaultMemPool", ordinal);
    this.#context.call(
      "cuMemPoolSetAttribute",
      pool,
      POOL_RELEASE_THRESHOLD,
      BigUint64Array.of(2n ** 64n - 1n),
    );
    return pool;
  }

  alloc(nbytes: number, zeroed: boolean): CudaBlock {
    const context = this.#context;
    const size = Math.max(1, nbytes);
    const address = this.#take(size) ?? this.#takeAfterTrim(size);
    if (zeroed) context.call("cuMemsetD8Async", address, 0, size, context.stream);
    return { context, address };
  }
  /** undefined: there is no room. */
  #take(size: number): number | undefined {
    const { driver, stream } = this.#context;
    this.#context.enter();
    const pooled = this.#pool !== undefined;
    const status = pooled
      ? driver.cuMemAllocAsync(this.#out, size, stream)
      : driver.cuMemAlloc_v2(this.#out, size);
    if (status === CUDA.OUT_OF_MEMORY) return undefined;
    if (status !== CUDA.SUCCESS) throw this.#context.failure(`allocating ${megabytes(size)}`, status);
    return Number(this.#out[0]);
  }
  /**
   * What was freed lately is still in use until the stream gets there, and what the pool keeps is in pieces.
   */
  #takeAfterTrim(size: number): number {
    const context = this.#context;
    context.block();
    if (this.#pool !== undefined) context.call("cuMemPoolTrimTo", this.#pool, 0);
    const address = this.#take(size);
    if (address !== undefined) return address;
    const { free, total } = this.#room();
    throw new OutOfMemoryError(
      `${context.name}: no room for ${megabytes(size)}: ${megabytes(free)} of ` +
        `${megabytes(total)} are free on this GPU, all processes counted; drop tensors, or split this one`,
    );
  }
  #room(): { free: number; total: number } {
    const [free, total] = [new BigUint64Array(1), new BigUint64Array(1)];
    this.#context.call("cuMemGetInfo_v2", free, total);
    return { free: Number(free[0]), total: Number(total[0]) };
  }

  free({ address }: CudaBlock): void {
    const context = this.#context;
    // called by a finaliser: what failed is reported by whoever waits
    if (context.isDead) return;
    if (this.#pool !== undefined) context.call("cuMemFreeAsync", address, context.stream);
    else context.retire(() => context.call("cuMemFree_v2", address));
  }

  copyin({ address }: CudaBlock, src: Uint8Array): MaybePromise<void> {
    if (this.#staging.fits(src.byteLength)) return this.#staging.send(address, src);
    return chain(this.#context.synchronize(), () => this.#staging.send(address, src));
  }
  copyout(dest: Uint8Array, { address }: CudaBlock): MaybePromise<void> {
    return chain(this.#context.synchronize(), () => this.#staging.fetch(dest, address));
  }

  view(): undefined {
    return undefined;
  }
  offset({ context, address }: CudaBlock, _: number, byteOffset: number): CudaBlock {
    return { context, address: address + byteOffset };
  }

  transfer(dest: CudaBlock, src: CudaBlock, nbytes: number): void {
    const [to, from] = [dest.context, src.context];
    from.waitFor(to);
    if (this.#timing.isOn) {
      const name = `${to.name} <- ${from.name}`;
      const span = { track: "copy", name, kind: "copy", args: { bytes: nbytes } } as const;
      // a source's own clock would know better; the destination's sees when it may go on
      this.#timing.around(span, () => this.#enqueue(dest, src, nbytes));
    } else this.#enqueue(dest, src, nbytes);
  }
  #enqueue(dest: CudaBlock, src: CudaBlock, nbytes: number): void {
    const [to, from] = [dest.context, src.context];
    if (to === from) from.call("cuMemcpyDtoDAsync_v2", dest.address, src.address, nbytes, from.stream);
    else {
      const ends = [dest.address, to.handle, src.address, from.handle] as const;
      from.call("cuMemcpyPeerAsync", ...ends, nbytes, from.stream);
    }
    to.waitFor(from);
  }

  /**
   * Lets another GPU reach this memory over their own link; where it cannot,
   * the driver goes through the host.
   */
  allowAccess(peer: CudaContext): void {
    const context = this.#context;
    const can = new Int32Array(1);
    context.call("cuDeviceCanAccessPeer", can, peer.ordinal, context.ordinal);
    if (can[0] === 0) return;
    peer.enter();
    const status = peer.driver.cuCtxEnablePeerAccess(context.handle, 0);
    if (status !== CUDA.SUCCESS && status !== CUDA.PEER_ALREADY_ENABLED)
      throw peer.failure("cuCtxEnablePeerAccess", status);
    if (this.#pool === undefined) return;
    const access = Int32Array.of(LOCATION_DEVICE, peer.ordinal, ACCESS_READ_WRITE);
    context.call("cuMemPoolSetAccess", this.#pool, access, 1);
  }
}
