// Memory of one GPU through its kernel driver: blocks of the GPU's own, and of the host's with a window. An
// address is reserved in this process first, and the driver puts the memory there for both. Between two
// blocks some addresses stay empty, so that a kernel that runs past its buffer meets a fault.

import { InternalError, OutOfMemoryError } from "../../../errors.ts";
import {
  type MemoryBlock,
  type MemoryKind,
  type MemorySource,
  whereabouts,
} from "../../../runtime/hcq/pool.ts";
import type { NativeMemory } from "../../linux/syscalls.ts";
import { takeDown } from "../../linux/undo.ts";
import { MEMORY } from "../driver/ioctls.ts";
import type { Kfd } from "../driver/kfd.ts";

/** What is as large as a huge page begins at one. */
const [PAGE, HUGE] = [2 ** 12, 2 ** 21];
/** Node shows no more foreign memory than this as one array. */
const WINDOW = 2 ** 31;

const COMMON = MEMORY.WRITABLE + MEMORY.EXECUTABLE + MEMORY.NO_SUBSTITUTE;
/** Host memory is coherent and uncached by the GPU: signals, arguments, rings. */
const FLAGS: Readonly<Record<Exclude<MemoryKind, "visible">, number>> = {
  device: COMMON + MEMORY.VRAM,
  host: COMMON + MEMORY.GTT + MEMORY.COHERENT + MEMORY.UNCACHED + MEMORY.PUBLIC,
};
const WHERE = { device: "on the GPU", host: "of the host's memory" } as const;

/** What a process may address. */
export interface AddressRange {
  readonly base: number;
  readonly limit: number;
}
interface KfdBlock extends MemoryBlock {
  readonly handle: bigint;
  readonly undo: (() => void)[];
}

export class KfdMemory implements MemorySource {
  readonly #kfd: Kfd;
  readonly #gpuId: number;
  /** the file of the GPU, through which memory is mapped */
  readonly #render: number;
  readonly #range: AddressRange;
  readonly #gpus: NativeMemory;
  readonly #blocks = new Map<MemoryBlock, KfdBlock>();

  constructor(kfd: Kfd, gpuId: number, render: number, range: AddressRange) {
    this.#kfd = kfd;
    this.#gpuId = gpuId;
    this.#render = render;
    this.#range = range;
    this.#gpus = kfd.system.alloc(8);
    new DataView(this.#gpus.bytes.buffer, this.#gpus.bytes.byteOffset).setUint32(0, gpuId, true);
  }

  alloc(nbytes: number, kind: MemoryKind): MemoryBlock {
    if (kind === "visible") throw new InternalError("AMD: the host writes to no memory of the GPU");
    if (kind === "host" && nbytes > WINDOW) {
      throw new OutOfMemoryError(
        `AMD: ${nbytes} bytes that the host sees; at most ${WINDOW} in one piece, allocate several`,
      );
    }
    const undo: (() => void)[] = [];
    try {
      const block = this.#make(nbytes, kind, undo);
      this.#blocks.set(block, block);
      return block;
    } catch (e) {
      takeDown(undo);
      if (!(e instanceof OutOfMemoryError)) throw e;
      throw new OutOfMemoryError(`AMD: no room for ${nbytes} bytes ${WHERE[kind]} (${e.message})`, {
        cause: e,
      });
    }
  }
  #make(nbytes: number, kind: "device" | "host", undo: (() => void)[]): KfdBlock {
    const kfd = this.#kfd;
    // whole pages and no more: the driver compares the sizes of what a queue is made of
    const size = Math.max(1, Math.ceil(nbytes / PAGE)) * PAGE;
    const va = this.#reserve(size, size >= HUGE ? HUGE : PAGE, undo);
    const made = kfd.call(
      "ALLOC_MEMORY_OF_GPU",
      { va, size, gpu: this.#gpuId, flags: FLAGS[kind] },
      `${size} bytes ${WHERE[kind]}`,
    );
    const [handle, offset] = [made.big("handle"), made.big("offset")];
    undo.push(() => void kfd.call("FREE_MEMORY_OF_GPU", { handle }));
    const bytes = kind === "host" ? this.#window(va, size, offset) : undefined;
    const mapping = { handle, gpus: this.#gpus.address, count: 1 };
    kfd.call("MAP_MEMORY_TO_GPU", mapping, "memory at an address");
    undo.push(() => void kfd.call("UNMAP_MEMORY_FROM_GPU", mapping));
    return { va, size, kind, bytes, handle, undo };
  }
  /** With an empty page behind it at least. */
  #reserve(size: number, unit: number, undo: (() => void)[]): number {
    const { system } = this.#kfd;
    const room = size + 2 * unit;
    const start = system.reserve(room);
    if (start === undefined) throw new OutOfMemoryError("the process has no addresses left");
    undo.push(() => system.munmap(start, room));
    const va = Math.ceil(Number(start) / unit) * unit;
    const { base, limit } = this.#range;
    if (va < base || va + size - 1 > limit)
      throw new OutOfMemoryError(`the GPU reaches addresses up to 0x${limit.toString(16)} only`);
    return va;
  }
  #window(va: number, size: number, offset: bigint): Uint8Array {
    const { system } = this.#kfd;
    if (system.mapAt(BigInt(va), size, this.#render, offset) === undefined)
      throw new OutOfMemoryError("the host cannot map it");
    return system.view(BigInt(va), size).fill(0);
  }

  free(memory: MemoryBlock): void {
    const block = this.#blocks.get(memory);
    if (block === undefined) throw new InternalError(`AMD: memory at ${memory.va} is freed twice`);
    this.#blocks.delete(memory);
    for (const step of block.undo.reverse()) step();
  }
  close(): void {
    for (const memory of [...this.#blocks.keys()].reverse()) this.free(memory);
    this.#kfd.system.free(this.#gpus);
  }
  /** By which the driver knows a block. */
  handleOf(memory: MemoryBlock): bigint {
    const block = this.#blocks.get(memory);
    if (block === undefined) throw new InternalError(`AMD: no block at ${memory.va}`);
    return block.handle;
  }
  whereabouts(va: number): string {
    return whereabouts(this.#blocks.keys(), va);
  }
}
