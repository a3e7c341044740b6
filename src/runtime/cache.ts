// Freed memory is kept for the next buffer of its size: programs ask for the same sizes over and over. For
// each device at most MEMCACHE megabytes are kept, or as much as its tensors hold if new memory takes it
// long. What was unused longest goes first, and all of it goes before a device says that it is full.
// Allocators whose memory is the engine's own (host arrays) and files take no part.

import type { DType } from "../dtype.ts";
import { env } from "../env.ts";
import { OutOfMemoryError } from "../errors.ts";
import { getOrMake } from "../helpers.ts";
import { GlobalCounters } from "./counters.ts";
import type { Compiled, Handle } from "./device.ts";

interface FreedMemory {
  readonly handle: Handle;
  readonly nbytes: number;
}

/** The freed memory of one device. */
class FreeList {
  readonly #device: Compiled;
  readonly #bySize = new Map<number, FreedMemory[]>();
  /** in the order in which they were freed */
  readonly #all = new Set<FreedMemory>();
  #bytes = 0;

  constructor(device: Compiled) {
    this.#device = device;
  }

  take(nbytes: number): Handle | undefined {
    const kept = this.#bySize.get(nbytes)?.pop();
    if (kept === undefined) return undefined;
    this.#all.delete(kept);
    this.#count(-nbytes);
    return kept.handle;
  }
  put(handle: Handle, nbytes: number): void {
    const { allocator, name } = this.#device;
    const used = allocator.isSlow ? GlobalCounters.memUsedOn(name) : 0;
    const cap = Math.max(env.MEMCACHE * 2 ** 20, used);
    if (nbytes > cap || allocator.isBroken?.(handle)) {
      allocator.free(handle, nbytes);
      return;
    }
    const kept = { handle, nbytes };
    getOrMake(this.#bySize, nbytes, () => []).push(kept);
    this.#all.add(kept);
    this.#count(nbytes);
    while (this.#bytes > cap) this.#drop(this.#all.values().next().value as FreedMemory);
  }
  flush(): void {
    for (const kept of this.#all) this.#drop(kept);
  }

  /** The oldest of a size is the first in its list. */
  #drop(kept: FreedMemory): void {
    const list = this.#bySize.get(kept.nbytes) as FreedMemory[];
    list.splice(list.indexOf(kept), 1);
    if (list.length === 0) this.#bySize.delete(kept.nbytes);
    this.#all.delete(kept);
    this.#count(-kept.nbytes);
    this.#device.allocator.free(kept.handle, kept.nbytes);
  }
  #count(nbytes: number): void {
    this.#bytes += nbytes;
    GlobalCounters.memCached += nbytes;
  }
}

const lists = new Map<Compiled, FreeList>();
const listOf = (device: Compiled): FreeList => getOrMake(lists, device, () => new FreeList(device));

/**
 * Memory of a device: what was freed before, else new. `zeroed` memory and images are always the device's own
 * business.
 */
export function allocOn(device: Compiled, nbytes: number, zeroed: boolean, dtype: DType): Handle {
  const { allocator } = device;
  if (!allocator.recycles || dtype.image) return allocator.alloc(nbytes, zeroed, dtype);
  const list = listOf(device);
  const kept = list.take(nbytes);
  if (kept !== undefined) {
    if (!zeroed) return kept;
    allocator.free(kept, nbytes);
  }
  try {
    return allocator.alloc(nbytes, zeroed);
  } catch (e) {
    if (!(e instanceof OutOfMemoryError) || GlobalCounters.memCached === 0) throw e;
    // devices may share one memory, so what the others keep goes, too
    for (const each of lists.values()) each.flush();
    return allocator.alloc(nbytes, zeroed);
  }
}

export function freeOn(device: Compiled, handle: Handle, nbytes: number): void {
  const isKept = device.allocator.recycles && device.isLost !== true;
  if (isKept) listOf(device).put(handle, nbytes);
  else device.allocator.free(handle, nbytes);
}

/** Gives all freed memory of a device back to it; nothing of the device is held on to. */
export function flushFreed(device: Compiled): void {
  lists.get(device)?.flush();
  lists.delete(device);
}
