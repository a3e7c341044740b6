// CLANG: kernels as C, compiled by clang or gcc and called through koffi. Memory is plain C memory. It has
// rings like WASM (wasm/), and the same executors, on the caller's thread and on workers, take its commands.

import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { isText, type Renderer, type Source } from "../codegen/target.ts";
import { InternalError, OutOfMemoryError } from "../errors.ts";
import { chain, type MaybePromise } from "../helpers.ts";
import { type Koffi, openKoffi } from "../host/koffi.ts";
import { Native } from "../host/native.ts";
import { clangRenderer } from "../render/languages.ts";
import { HCQCompatAllocator, type HCQCompatAllocRes } from "../runtime/hcq/allocator.ts";
import { compileTogether } from "./clang/batch.ts";
import { type CCompiler, findCompiler, vectorsOf } from "./clang/compiler.ts";
import { hasWideUnits } from "./clang/wide.ts";
import { RingDevice } from "./wasm/device.ts";
import { RingProgram } from "./wasm/program.ts";

/** Node cannot show more than this of foreign memory as one array. */
const WINDOW = 2 ** 31;

/**
 * Memory of this size and more is asked to be in huge pages: a sum of 64 MiB takes two thirds of the time.
 */
const HUGE_FROM = 4 << 20;
const PAGE = 4096n;
const MADV_HUGEPAGE = 14;
type Advise = (address: bigint, nbytes: number, advice: number) => number;

/** How Linux is asked; elsewhere, and with a libc of another name, pages stay as they are. */
function findAdvise(koffi: Koffi): Advise | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    return koffi.load("libc.so.6").func<Advise>("madvise", "int", ["void*", "size_t", "int"]);
  } catch {
    return undefined;
  }
}

interface NativeBlock extends HCQCompatAllocRes {
  readonly vaAddr: bigint;
}

class CMemory extends HCQCompatAllocator<NativeBlock> {
  declare readonly device: ClangDevice;
  readonly #koffi: Koffi;
  readonly #advise: Advise | undefined;

  constructor(device: ClangDevice, koffi: Koffi) {
    super(device);
    this.#koffi = koffi;
    this.#advise = findAdvise(koffi);
  }

  /** koffi's memory is always zeroed. */
  alloc(nbytes: number): NativeBlock {
    const { device } = this;
    device.reclaim();
    // without a first value: Next's tracer of files evaluates what looks constant, and fails on null + PAGE
    let vaAddr: bigint;
    try {
      vaAddr = this.#koffi.alloc("uint8_t", Math.max(1, nbytes));
    } catch (cause) {
      throw this.#full(nbytes, cause);
    }
    if (!vaAddr) throw this.#full(nbytes);
    if (nbytes >= HUGE_FROM) {
      const first = (vaAddr + PAGE - 1n) & -PAGE;
      this.#advise?.(first, Number(vaAddr + BigInt(nbytes) - first), MADV_HUGEPAGE);
    }
    return { device, vaAddr, size: nbytes };
  }
  free({ vaAddr }: NativeBlock): void {
    this.device.retire(() => this.#koffi.free(vaAddr));
  }
  view({ vaAddr }: NativeBlock, nbytes: number): Uint8Array | undefined {
    return nbytes <= WINDOW
      ? new Uint8Array(this.#koffi.view(vaAddr, Math.max(1, nbytes)), 0, nbytes)
      : undefined;
  }
  offset({ device, vaAddr }: NativeBlock, size: number, byteOffset: number): NativeBlock {
    return { device, vaAddr: vaAddr + BigInt(byteOffset), size };
  }
  protected allocHost(nbytes: number): { res: NativeBlock; bytes: Uint8Array } {
    const res = this.alloc(nbytes);
    return { res, bytes: this.view(res, nbytes) as Uint8Array };
  }

  /** What cannot be seen at once goes in parts, when the device is idle. */
  override copyin(dest: NativeBlock, src: Uint8Array): MaybePromise<void> {
    if (src.byteLength <= WINDOW) return super.copyin(dest, src);
    return chain(this.device.synchronize(), () => {
      for (const [at, window] of this.#windows(dest, src.byteLength))
        window.set(src.subarray(at, at + window.byteLength));
    });
  }
  override copyout(dest: Uint8Array, src: NativeBlock): MaybePromise<void> {
    if (dest.byteLength <= WINDOW) return super.copyout(dest, src);
    return chain(this.device.synchronize(), () => {
      for (const [at, window] of this.#windows(src, dest.byteLength)) dest.set(window, at);
    });
  }
  *#windows({ vaAddr }: NativeBlock, nbytes: number): Generator<[number, Uint8Array]> {
    for (let at = 0; at < nbytes; at += WINDOW) {
      const n = Math.min(WINDOW, nbytes - at);
      yield [at, new Uint8Array(this.#koffi.view(vaAddr + BigInt(at), n))];
    }
  }
  #full(nbytes: number, cause?: unknown): OutOfMemoryError {
    const what = `${this.device.name}: the system has no room for ${nbytes} bytes; drop tensors or split this one`;
    return new OutOfMemoryError(what, { cause });
  }
}

/** One for the host's thread; each worker makes its own. */
let native: Native | undefined;

class ClangDevice extends RingDevice {
  readonly nativeMemory = true;
  override readonly compilesAside = true;
  readonly allocator: CMemory;
  readonly renderer: Renderer;
  readonly #compiler: CCompiler;
  readonly #native: Native;

  constructor(name: string, koffi: Koffi, compiler: CCompiler) {
    super(name);
    this.#compiler = compiler;
    this.allocator = new CMemory(this, koffi);
    native ??= new Native({ koffi, fs, folder: tmpdir() });
    this.#native = native;
    this.renderer = clangRenderer(vectorsOf(compiler, hasWideUnits(compiler, koffi, native)));
    this.hardware.host.useNative(native);
  }

  compile(name: string, source: Source): MaybePromise<RingProgram> {
    if (!isText(source)) throw new InternalError("CLANG compiles C text");
    return chain(
      compileTogether(this.#compiler, name, source),
      (code) => new RingProgram(this, name, code, { fn: this.#native.load(code), native: true, words: 0 }),
    );
  }
}

export async function open(name: string): Promise<ClangDevice> {
  const koffi = await openKoffi("CLANG");
  return new ClangDevice(name, koffi, findCompiler());
}
