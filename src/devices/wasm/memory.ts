// The one memory of all WASM devices of this process: shared between threads where the host allows it, else
// an ordinary one. Hands out blocks and grows as needed. The callers know when a block may be
// used again. It has 4 GiB; WASM_MEMORY makes it another size (sized.ts).

import { AddressSpace } from "../../runtime/addressspace.ts";
import { CONTROL_BYTES, LAYOUT, PAGE } from "./layout.ts";

/** The usual one has 4 GiB; a host that cannot reserve that much gives less. */
const SIZES = [65536, 32768, 16384, 4096] as const;
export const INITIAL = CONTROL_BYTES / PAGE + 1;

/** Threads can share memory: Node always, a page if it is cross-origin isolated. */
export const canShare = (): boolean =>
  typeof SharedArrayBuffer === "function" &&
  (globalThis as { crossOriginIsolated?: boolean }).crossOriginIsolated !== false;

export class WasmMemory {
  readonly memory: WebAssembly.Memory;
  readonly maxBytes: number;
  readonly shared: boolean;
  /** addresses have 64 bits */
  readonly isWide: boolean = false;
  protected readonly space: AddressSpace;
  /** memory below was handed out before and is not zero any more */
  #dirty = 0;
  #top = CONTROL_BYTES;
  #words = new Int32Array(0);
  #times = new Float64Array(0);

  /** Blocks lie from byte `start` on. */
  constructor(shared: boolean, memory: WebAssembly.Memory, pages: number, start: number = CONTROL_BYTES) {
    this.shared = shared;
    this.memory = memory;
    this.maxBytes = pages * PAGE;
    this.space = new AddressSpace(start);
    this.#announce();
  }

  /** A block, or undefined when there is no room. */
  alloc(nbytes: number, zeroed: boolean): number | undefined {
    return this.allocIn(this.space, nbytes, zeroed, this.maxBytes);
  }
  /** A block for the runtime's own use, whose address fits in 32 bits. */
  allocOwn(nbytes: number, zeroed: boolean): number | undefined {
    return this.alloc(nbytes, zeroed);
  }
  /** A block that ends before byte `end`. */
  protected allocIn(space: AddressSpace, nbytes: number, zeroed: boolean, end: number): number | undefined {
    const size = AddressSpace.rounded(nbytes);
    if (size > end) return undefined;
    const { at, fresh } = space.alloc(nbytes);
    if (at + size > end || !this.#reach(space.top)) {
      space.free(at, nbytes);
      return undefined;
    }
    if (zeroed && (!fresh || at < this.#dirty)) this.bytes(at, nbytes).fill(0);
    this.#dirty = Math.max(this.#dirty, at + size);
    return at;
  }
  free(at: number, nbytes: number): void {
    this.space.free(at, nbytes);
  }

  /** Growing replaces the buffer, so a window is made for each use. */
  bytes(at: number, nbytes: number): Uint8Array {
    return new Uint8Array(this.memory.buffer, at, nbytes);
  }
  /** All of it in words of 32 bits, as it is now: after an allocation this is another array. */
  get words(): Int32Array {
    // a shared memory that grew leaves the old view valid but short, an unshared one leaves it empty
    if (this.#words.byteLength < this.#top) this.#words = new Int32Array(this.memory.buffer);
    return this.#words;
  }
  get times(): Float64Array {
    if (this.#times.byteLength < this.#top) this.#times = new Float64Array(this.memory.buffer);
    return this.#times;
  }

  #reach(top: number): boolean {
    const has = this.memory.buffer.byteLength;
    if (top > has) {
      // by at least an eighth: each growth of a large memory costs
      const wanted = Math.max(top - has, Math.min(has >> 3, 64 << 20));
      if (!this.#grow(wanted) && !this.#grow(top - has)) return false;
    }
    this.#top = Math.max(this.#top, top);
    return true;
  }
  /** Before anything that lies in the new part can be named in a queue. */
  #announce(): void {
    const words = new Int32Array(this.memory.buffer);
    Atomics.store(words, LAYOUT.size, words.byteLength / PAGE);
  }
  protected addPages(count: number): void {
    this.memory.grow(count);
  }
  #grow(bytes: number): boolean {
    try {
      this.addPages(Math.ceil(bytes / PAGE));
      this.#announce();
      return true;
    } catch {
      return false;
    }
  }
}

/** The first of these sizes, in pages, that can be reserved. */
export function reserve(
  sizes: readonly number[],
  shared: boolean,
  make: (maximum: number) => WebAssembly.Memory = (maximum) =>
    new WebAssembly.Memory({ initial: INITIAL, maximum, shared }),
): readonly [WebAssembly.Memory, pages: number] {
  let refusal: unknown;
  for (const pages of sizes) {
    try {
      return [make(pages), pages];
    } catch (e) {
      refusal = e;
    }
  }
  throw refusal;
}

/** Makes the memory that WASM_MEMORY asks for. A page has no other than the usual until it loads sized.ts. */
let make = (shared: boolean): WasmMemory => new WasmMemory(shared, ...reserve(SIZES, shared));
export const openMemory = (shared: boolean): WasmMemory => make(shared);
export function useSized(sized: typeof make): void {
  make = sized;
}
