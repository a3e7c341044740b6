// The one memory of all WASM devices of this process: shared between threads where the host allows it, else
// an ordinary one. Hands out blocks and grows as needed. The callers know when a block may be
// used again.

import { AddressSpace } from "../../runtime/addressspace.ts";
import { CONTROL_BYTES, LAYOUT } from "./layout.ts";

const PAGE = 65536;
/** Pages at most: 4 GiB; a host that cannot reserve that much gets less. */
const LIMITS = [65536, 32768, 16384, 4096] as const;
const INITIAL = CONTROL_BYTES / PAGE + 1;

/** Threads can share memory: Node always, a page if it is cross-origin isolated. */
export const canShare = (): boolean =>
  typeof SharedArrayBuffer === "function" &&
  (globalThis as { crossOriginIsolated?: boolean }).crossOriginIsolated !== false;

export class WasmMemory {
  readonly memory: WebAssembly.Memory;
  readonly maxBytes: number;
  readonly shared: boolean;
  readonly #space = new AddressSpace(CONTROL_BYTES);
  /** memory below was handed out before and is not zero any more */
  #dirty = 0;
  #top = CONTROL_BYTES;
  #words = new Int32Array(0);
  #times = new Float64Array(0);

  constructor(shared: boolean) {
    this.shared = shared;
    const { memory, pages } = create(shared);
    this.memory = memory;
    this.maxBytes = pages * PAGE;
    this.#announce();
  }

  /** A block, or undefined when there is no room. */
  alloc(nbytes: number, zeroed: boolean): number | undefined {
    const size = AddressSpace.rounded(nbytes);
    if (size > this.maxBytes) return undefined;
    const { at, fresh } = this.#space.alloc(nbytes);
    if (!this.#reach(this.#space.top)) {
      this.#space.free(at, nbytes);
      return undefined;
    }
    if (zeroed && (!fresh || at < this.#dirty)) this.bytes(at, nbytes).fill(0);
    this.#dirty = Math.max(this.#dirty, at + size);
    return at;
  }
  free(at: number, nbytes: number): void {
    this.#space.free(at, nbytes);
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
    Atomics.store(words, LAYOUT.size, words.length);
  }
  #grow(bytes: number): boolean {
    try {
      this.memory.grow(Math.ceil(bytes / PAGE));
      this.#announce();
      return true;
    } catch {
      return false;
    }
  }
}

function create(shared: boolean): { memory: WebAssembly.Memory; pages: number } {
  let refusal: unknown;
  for (const pages of LIMITS) {
    try {
      return { memory: new WebAssembly.Memory({ initial: INITIAL, maximum: pages, shared }), pages };
    } catch (e) {
      refusal = e;
    }
  }
  throw refusal;
}
