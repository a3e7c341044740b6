// WASM: the default device, in Node and in a page. Its kernels are modules of one function on the memory that
// holds the rings too (wasm/), executed by workers and by the calling thread.

import { enableRelaxedSimd } from "#host";
import { loadEmitter } from "#render/wasm";
import type { Renderer, Source } from "../codegen/target.ts";
import { CompileError, DeviceError, InternalError, OutOfMemoryError } from "../errors.ts";
import { hasRelaxedSimd } from "../render/wasm/relaxed.ts";
import { wasmRenderer } from "../render/wasm/renderer.ts";
import { GlobalCounters } from "../runtime/counters.ts";
import { HCQCompatAllocator, type HCQCompatAllocRes } from "../runtime/hcq/allocator.ts";
import { RingDevice } from "./wasm/device.ts";
import { RingProgram } from "./wasm/program.ts";

interface WasmBlock extends HCQCompatAllocRes {
  readonly vaAddr: number;
}

let relaxed: boolean | undefined;
/** Whether the engine has it; a program without vectors of floats never asks, so that it starts sooner. */
function relaxedSimd(): boolean {
  if (relaxed === undefined) {
    enableRelaxedSimd();
    relaxed = hasRelaxedSimd();
  }
  return relaxed;
}

export class WasmDevice extends RingDevice {
  readonly nativeMemory = false;
  readonly canInterpret = true;
  readonly allocator: WasmAllocator;
  readonly renderer: Renderer;

  constructor(name: string) {
    super(name);
    this.allocator = new WasmAllocator(this);
    const { shared, isWide: wide } = this.hardware.memory;
    this.renderer = wasmRenderer({
      shared,
      wide,
      get relaxed() {
        return relaxedSimd();
      },
    });
  }

  loadCompiler(): Promise<void> | undefined {
    return loadEmitter();
  }
  get codeVariant(): string {
    const { shared, isWide } = this.hardware.memory;
    return `${shared ? "shared" : "own"}${isWide ? ",wide" : ""},${relaxedSimd() ? "relaxed" : "strict"}|`;
  }

  compile(name: string, { code }: Source): RingProgram {
    if (!(code instanceof Uint8Array)) throw new InternalError("WASM compiles binary modules");
    try {
      const module = new WebAssembly.Module(code as Uint8Array<ArrayBuffer>);
      const { imports } = this.hardware.host;
      const fn = new WebAssembly.Instance(module, imports).exports[name] as () => void;
      return new RingProgram(this, name, code, { fn, native: false, words: fn.length });
    } catch (cause) {
      if (!(cause instanceof WebAssembly.CompileError || cause instanceof WebAssembly.LinkError)) throw cause;
      requireWebAssembly(this.name);
      const what = `internal: WebAssembly refused kernel ${name}: ${cause.message}`;
      throw new CompileError(what, { cause });
    }
  }
}

class WasmAllocator extends HCQCompatAllocator<WasmBlock> {
  declare readonly device: WasmDevice;

  /** for those who look at how much there is */
  get memory(): WebAssembly.Memory {
    return this.device.hardware.memory.memory;
  }

  alloc(nbytes: number, zeroed: boolean): WasmBlock {
    const { device } = this;
    device.reclaim();
    const vaAddr = device.hardware.memory.alloc(nbytes, zeroed) ?? this.#afterAll(nbytes, zeroed);
    return { device, vaAddr, size: nbytes };
  }
  free({ vaAddr }: WasmBlock, nbytes: number): void {
    this.device.release(vaAddr, nbytes);
  }
  /** There is no room while work is in flight: afterwards there may be. */
  #afterAll(nbytes: number, zeroed: boolean): number {
    const { hardware, name } = this.device;
    for (const tenant of hardware.tenants) tenant.drain();
    const at = hardware.memory.alloc(nbytes, zeroed);
    if (at !== undefined) return at;
    throw new OutOfMemoryError(
      `${name}: no room for ${nbytes} bytes; ${GlobalCounters.memUsedOn(name)} are in use and a WebAssembly memory ends at ${hardware.memory.maxBytes}. ` +
        "Drop tensors that are no longer needed, split the tensor, raise WASM_MEMORY, or use another device",
    );
  }

  view({ vaAddr }: WasmBlock, nbytes: number): Uint8Array {
    return this.device.hardware.memory.bytes(vaAddr, nbytes);
  }
  offset({ device, vaAddr }: WasmBlock, size: number, byteOffset: number): WasmBlock {
    return { device, vaAddr: vaAddr + byteOffset, size };
  }
  protected allocHost(nbytes: number): { res: WasmBlock; bytes: Uint8Array } {
    const res = this.alloc(nbytes, false);
    return { res, bytes: this.view(res, nbytes) };
  }
}

/** A module without contents. */
const EMPTY_MODULE = [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0];

/** Throws if this page may compile nothing at all, and says what it lacks. */
function requireWebAssembly(name: string): void {
  if (typeof WebAssembly === "undefined") {
    throw new DeviceError(`${name}: there is no WebAssembly here; use another device, such as JS`);
  }
  try {
    new WebAssembly.Module(Uint8Array.from(EMPTY_MODULE));
  } catch (cause) {
    throw new DeviceError(
      `${name}: the Content-Security-Policy of this page forbids WebAssembly (${(cause as Error).message}); ` +
        "add 'wasm-unsafe-eval' to its script-src directive",
      { cause },
    );
  }
}

export function open(name: string): WasmDevice {
  if (typeof WebAssembly === "undefined") requireWebAssembly(name);
  return new WasmDevice(name);
}
