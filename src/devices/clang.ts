// CLANG: kernels as C, compiled by clang or gcc and called through koffi. Memory is plain C memory; kernels run at
// once on the calling thread.

import { InternalError, OutOfMemoryError } from "../errors.ts";
import { timestamp } from "../helpers.ts";
import { clangRenderer } from "../render/languages.ts";
import type { Allocator, Compiled } from "../runtime/device.ts";
import { compile, findCompiler, type Koffi, load, openKoffi, vectorsOf } from "./clang/compiler.ts";

/** Node cannot show more than this of foreign memory as one array. */
const WINDOW = 2 ** 31;

class CMemory implements Allocator<bigint> {
  readonly canTransfer = true;
  readonly recycles = true;
  readonly #koffi: Koffi;
  readonly #device: string;

  constructor(koffi: Koffi, device: string) {
    this.#koffi = koffi;
    this.#device = device;
  }

  /** koffi's memory is always zeroed. */
  alloc(nbytes: number): bigint {
    let address: bigint | null = null;
    try {
      address = this.#koffi.alloc("uint8_t", Math.max(1, nbytes));
    } catch (cause) {
      throw this.#full(nbytes, cause);
    }
    if (!address) throw this.#full(nbytes);
    return address;
  }
  free(address: bigint): void {
    this.#koffi.free(address);
  }
  copyin(dest: bigint, src: Uint8Array): void {
    for (const [at, window] of this.#windows(dest, src.byteLength)) {
      window.set(src.subarray(at, at + window.byteLength));
    }
  }
  copyout(dest: Uint8Array, src: bigint): void {
    for (const [at, window] of this.#windows(src, dest.byteLength)) dest.set(window, at);
  }
  view(address: bigint, nbytes: number): Uint8Array | undefined {
    return nbytes <= WINDOW ? new Uint8Array(this.#koffi.view(address, nbytes)) : undefined;
  }
  offset(address: bigint, _: number, byteOffset: number): bigint {
    return address + BigInt(byteOffset);
  }
  transfer(dest: bigint, src: bigint, nbytes: number): void {
    for (const [at, window] of this.#windows(src, nbytes)) {
      new Uint8Array(this.#koffi.view(dest + BigInt(at), window.byteLength)).set(window);
    }
  }

  *#windows(address: bigint, nbytes: number): Generator<[number, Uint8Array]> {
    for (let at = 0; at < nbytes; at += WINDOW) {
      const n = Math.min(WINDOW, nbytes - at);
      yield [at, new Uint8Array(this.#koffi.view(address + BigInt(at), n))];
    }
  }
  #full(nbytes: number, cause?: unknown): OutOfMemoryError {
    const what = `${this.#device}: the system has no room for ${nbytes} bytes; drop tensors or split this one`;
    return new OutOfMemoryError(what, { cause });
  }
}

export async function open(name: string): Promise<Compiled<bigint>> {
  const koffi = await openKoffi();
  const compiler = findCompiler();
  return {
    name,
    allocator: new CMemory(koffi, name),
    renderer: clangRenderer(vectorsOf(compiler)),
    graph: undefined,
    compile(kernel, source) {
      if (typeof source !== "string") throw new InternalError("CLANG compiles C text");
      const loaded = load(koffi, compile(compiler, kernel, source));
      return {
        run(handles, { vals, globalSize }, wait) {
          const start = wait ? timestamp() : 0;
          loaded.run(handles, [...vals, ...globalSize.flatMap((n) => [0, n])]);
          return wait ? (timestamp() - start) / 1000 : undefined;
        },
      };
    },
    synchronize() {},
  };
}
