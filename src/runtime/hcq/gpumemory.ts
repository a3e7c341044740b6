// Memory of a device that we drive ourselves. Buffers lie where only the GPU reaches, small ones in shared
// blocks. Copies in and out go through memory of the host that the GPU reaches, in parts, so that one part
// is filled or emptied while another moves.

import { OutOfMemoryError } from "../../errors.ts";
import { chain, getOrMake, type MaybePromise } from "../../helpers.ts";
import { GlobalCounters } from "../counters.ts";
import { HOST_SLACK } from "../device.ts";
import { HCQCompatAllocator, type HCQCompatAllocRes } from "./allocator.ts";
import type { Fence } from "./device.ts";
import type { HardwareDevice } from "./hardware.ts";
import { type MemoryBlock, Pool, type PoolBlock } from "./pool.ts";
import { Transient } from "./transient.ts";

export interface HardwareBlock extends HCQCompatAllocRes {
  readonly vaAddr: number;
  /** what it was cut from, or what it is; a part of another block has neither */
  readonly piece: PoolBlock | undefined;
  readonly memory: MemoryBlock | undefined;
}

/** From here on a buffer has memory of its own, a multiple of a large page. */
const LARGE = 1 << 20;
const LARGE_STEP = 1 << 21;
/**
 * The part of the GPU's memory that is kept for later at most: to have it mapped
 * anew takes up to a millisecond.
 */
const KEPT = 1 / 4;
/** The part of it that dropped tensors may hold. */
const SLACK = 1 / 8;
const CHUNK = 1 << 25;
/** The bytes of a copy that are staged at once; there is room for some of them. */
const [PART, STAGED] = [1 << 21, 1 << 23];

export class HardwareAllocator extends HCQCompatAllocator<HardwareBlock> {
  declare readonly device: HardwareDevice;
  override readonly slack: number;
  readonly #small: Pool;
  /** large memory that was given up, by what was asked for */
  readonly #kept = new Map<number, MemoryBlock[]>();
  #keptBytes = 0;
  readonly #staging: Transient;
  #staged: MemoryBlock | undefined;

  constructor(device: HardwareDevice) {
    super(device);
    this.slack = Math.max(HOST_SLACK, SLACK * device.gpu.totalBytes);
    this.#small = new Pool(device.gpu, "device", CHUNK);
    this.#staging = new Transient({
      half: STAGED / 2,
      align: 256,
      alloc: (nbytes) => {
        this.#staged = device.gpu.alloc(nbytes, "host");
        return this.#staged.va;
      },
      mark: () => device.mark(),
      block: (done) => device.block(done),
    });
  }

  alloc(nbytes: number, zeroed: boolean): HardwareBlock {
    const { device } = this;
    device.reclaim();
    const block = nbytes < LARGE ? this.#smallBlock(nbytes) : this.#largeBlock(nbytes);
    if (zeroed) this.#zero(block, nbytes);
    return block;
  }
  #smallBlock(size: number): HardwareBlock {
    const piece = this.#orMakeRoom(size, () => this.#small.alloc(size));
    return { device: this.device, vaAddr: piece.va, size, piece, memory: undefined };
  }
  #largeBlock(size: number): HardwareBlock {
    const rounded = Math.ceil(size / LARGE_STEP) * LARGE_STEP;
    const kept = this.#kept.get(rounded)?.pop();
    if (kept !== undefined) this.#keptBytes -= rounded;
    const memory = kept ?? this.allocDevice(rounded);
    return { device: this.device, vaAddr: memory.va, size, piece: undefined, memory };
  }
  /** What this device does with it later comes later, so it can be had again at once. */
  #keep(memory: MemoryBlock, size: number): void {
    const rounded = Math.ceil(size / LARGE_STEP) * LARGE_STEP;
    getOrMake(this.#kept, rounded, () => []).push(memory);
    this.#keptBytes += rounded;
    if (this.#keptBytes > KEPT * this.device.gpu.totalBytes) this.#release();
  }
  /** Gives back what is kept, when the work that may use it is done. */
  #release(): void {
    const { gpu } = this.device;
    const all = [...this.#kept.values()].flat();
    this.#kept.clear();
    this.#keptBytes = 0;
    if (all.length > 0) this.device.retire(() => all.forEach((memory) => void gpu.free(memory)));
  }
  /** Memory of the GPU for the device's own use. */
  allocDevice(size: number): MemoryBlock {
    return this.#orMakeRoom(size, () => this.device.gpu.alloc(size, "device"));
  }
  /** Where there is no room, there may be some when all that was given up is free. */
  #orMakeRoom<T>(nbytes: number, alloc: () => T): T {
    try {
      return alloc();
    } catch (e) {
      if (!(e instanceof OutOfMemoryError)) throw e;
    }
    const { device } = this;
    this.#release();
    device.drain();
    this.#small.trim();
    try {
      return alloc();
    } catch (cause) {
      if (!(cause instanceof OutOfMemoryError)) throw cause;
      const { gpu, name } = device;
      throw new OutOfMemoryError(
        `${name}: no room for ${nbytes} bytes; ${GlobalCounters.memUsedOn(name)} are in use here and ${gpu.freeBytes()} of ` +
          `${gpu.totalBytes} are free on the GPU. Drop tensors that are no longer needed, or split this one`,
        { cause },
      );
    }
  }
  #zero(block: HardwareBlock, nbytes: number): void {
    const { device } = this;
    const value = device.nextTimelineValue();
    device
      .copyQueue()
      .wait(device.timelineSignal, value - 1)
      .zero(block, Math.ceil(nbytes / 4) * 4)
      .signal(device.timelineSignal, value)
      .submit(device);
  }

  free({ piece, memory, size }: HardwareBlock): void {
    if (piece !== undefined) this.#small.free(piece);
    if (memory !== undefined) this.#keep(memory, size);
  }
  view(): undefined {
    return undefined;
  }
  offset({ device, vaAddr }: HardwareBlock, size: number, byteOffset: number): HardwareBlock {
    return { device, vaAddr: vaAddr + byteOffset, size, piece: undefined, memory: undefined };
  }

  protected allocHost(nbytes: number): { res: HardwareBlock; bytes: Uint8Array } {
    const vaAddr = this.#staging.alloc(nbytes);
    const { va, bytes } = this.#staged as MemoryBlock;
    const at = vaAddr - va;
    const res = {
      device: this.device,
      vaAddr,
      size: nbytes,
      piece: undefined,
      memory: undefined,
      isHost: true,
    };
    return { res, bytes: (bytes as Uint8Array).subarray(at, at + nbytes) };
  }

  override copyin(dest: HardwareBlock, src: Uint8Array): void {
    for (let at = 0; at < src.byteLength; at += PART) {
      const part = src.subarray(at, at + PART);
      const { res, bytes } = this.allocHost(part.byteLength);
      bytes.set(part);
      this.#copy(this.offset(dest, part.byteLength, at), res, part.byteLength);
    }
  }
  /**
   * Waits for what is queued, then the parts follow each other quickly: one is read while the next one comes.
   */
  override copyout(dest: Uint8Array, src: HardwareBlock): MaybePromise<void> {
    return chain(this.device.synchronize(), () => this.#copyParts(dest, src));
  }
  #copyParts(dest: Uint8Array, src: HardwareBlock): void {
    let pending: (() => void) | undefined;
    for (let at = 0; at < dest.byteLength; at += PART) {
      const part = dest.subarray(at, at + PART);
      const { res, bytes } = this.allocHost(part.byteLength);
      const done = this.#copy(res, this.offset(src, part.byteLength, at), part.byteLength);
      pending?.();
      pending = () => {
        this.device.block(() => this.device.hasPassed(done));
        part.set(bytes);
      };
    }
    pending?.();
  }
  /** The point of the timeline at which it is done. */
  #copy(dest: HardwareBlock, src: HardwareBlock, nbytes: number): Fence {
    const { device } = this;
    const value = device.nextTimelineValue();
    device
      .copyQueue()
      .wait(device.timelineSignal, value - 1)
      .copy(dest, src, nbytes)
      .signal(device.timelineSignal, value)
      .submit(device);
    return device.fence();
  }
}
