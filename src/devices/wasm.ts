// WASM: the default device, in Node and in a page. One WebAssembly memory holds all buffers and grows as needed; a
// kernel is a module of one function on that memory, called directly.

import { CompileError, InternalError, OutOfMemoryError } from "../errors.ts";
import { timestamp } from "../helpers.ts";
import { WASMRenderer } from "../render/wasm/wasm.ts";
import { AddressSpace } from "../runtime/allocator.ts";
import { GlobalCounters } from "../runtime/counters.ts";
import type { Allocator, Compiled, Program } from "../runtime/device.ts";

const PAGE = 65536;
const MAX_BYTES = 65536 * PAGE;

/** An address in the memory of one WASM device. */
interface Address {
  readonly heap: Heap;
  readonly at: number;
}

class Heap implements Allocator<Address> {
  readonly memory = new WebAssembly.Memory({ initial: 1, maximum: 65536 });
  readonly canTransfer = true;
  // address 0 stays empty: nothing lives where a null pointer points
  readonly #space = new AddressSpace(64);
  readonly #device: string;
  /** memory below was handed out before and is not zero any more */
  #dirty = 0;

  constructor(device: string) {
    this.#device = device;
  }

  alloc(nbytes: number, zeroed: boolean): Address {
    const size = AddressSpace.rounded(nbytes);
    if (size > MAX_BYTES) throw this.#full(nbytes);
    const { at, fresh } = this.#space.alloc(nbytes);
    try {
      this.#reach(this.#space.top);
    } catch {
      this.#space.free(at, nbytes);
      throw this.#full(nbytes);
    }
    if (zeroed && (!fresh || at < this.#dirty)) this.#bytes(at, nbytes).fill(0);
    this.#dirty = Math.max(this.#dirty, at + size);
    return { heap: this, at };
  }
  free({ at }: Address, nbytes: number): void {
    this.#space.free(at, nbytes);
  }
  copyin({ at }: Address, src: Uint8Array): void {
    this.#bytes(at, src.byteLength).set(src);
  }
  copyout(dest: Uint8Array, { at }: Address): void {
    dest.set(this.#bytes(at, dest.byteLength));
  }
  view({ at }: Address, nbytes: number): Uint8Array {
    return this.#bytes(at, nbytes);
  }
  offset({ at }: Address, _: number, byteOffset: number): Address {
    return { heap: this, at: at + byteOffset };
  }
  transfer(dest: Address, src: Address, nbytes: number): void {
    dest.heap.#bytes(dest.at, nbytes).set(src.heap.#bytes(src.at, nbytes));
  }

  /** Growing replaces the ArrayBuffer, so a window is made for each use. */
  #bytes(at: number, nbytes: number): Uint8Array {
    return new Uint8Array(this.memory.buffer, at, nbytes);
  }
  #reach(top: number): void {
    const missing = top - this.memory.buffer.byteLength;
    if (missing <= 0) return;
    // grow by at least an eighth: each growth of a large memory costs
    const wanted = Math.max(missing, Math.min(this.memory.buffer.byteLength >> 3, 64 << 20));
    try {
      this.memory.grow(Math.ceil(wanted / PAGE));
    } catch {
      this.memory.grow(Math.ceil(missing / PAGE));
    }
  }
  #full(nbytes: number): OutOfMemoryError {
    const used = GlobalCounters.memUsedOn(this.#device);
    return new OutOfMemoryError(
      `${this.#device}: no room for ${nbytes} bytes; ${used} are in use and a WebAssembly memory ends at ${MAX_BYTES}. ` +
        "Drop tensors that are no longer needed, split the tensor, or use another device",
    );
  }
}

type Kernel = (...args: number[]) => void;

function load(heap: Heap, name: string, code: Uint8Array): Program<Address> {
  let kernel: Kernel;
  try {
    const module = new WebAssembly.Module(code as Uint8Array<ArrayBuffer>);
    kernel = new WebAssembly.Instance(module, { env: { memory: heap.memory } }).exports[name] as Kernel;
  } catch (cause) {
    throw new CompileError(`internal: WebAssembly refused kernel ${name}: ${(cause as Error).message}`, {
      cause,
    });
  }
  return {
    run(handles, { vals, globalSize }, wait) {
      const start = wait ? timestamp() : 0;
      try {
        kernel(...handles.map((h) => h.at), ...vals, ...globalSize.flatMap((n) => [0, n]));
      } catch (cause) {
        throw new InternalError(`kernel ${name} failed: ${(cause as Error).message}`, { cause });
      }
      return wait ? (timestamp() - start) / 1000 : undefined;
    },
  };
}

export function open(name: string): Compiled<Address> {
  const heap = new Heap(name);
  return {
    name,
    allocator: heap,
    renderer: WASMRenderer,
    compile(kernel, code) {
      if (!(code instanceof Uint8Array)) throw new InternalError("WASM compiles binary modules");
      return load(heap, kernel, code);
    },
    synchronize() {},
  };
}
