// A kernel on WASM: a module of one function. Its bytes lie in the shared memory too, where each worker that executes it
// finds them; the record that says where is what an exec command names.

import { CompileError } from "../../errors.ts";
import { HCQProgram, type KernArgs } from "../../runtime/hcq/program.ts";
import type { WasmDevice } from "../wasm.ts";
import { KERNEL_RECORD_BYTES, LAYOUT } from "./layout.ts";

/** Buffers as their handles: an address in the shared memory. */
export interface Address {
  readonly vaAddr: number;
}
type KernelFn = (...args: number[]) => void;

/** The stream of an eager launch is shorter than this. */
const STREAM_BYTES = 256;

let generations = 0;

export class WasmProgram extends HCQProgram<Address> {
  readonly name: string;
  readonly device: WasmDevice;
  /** the first byte of its record */
  readonly at: number;

  constructor(device: WasmDevice, name: string, code: Uint8Array) {
    super();
    this.name = name;
    this.device = device;
    const fn = instantiate(device, name, code);
    this.at = device.keepRecord(this);
    const label = new TextEncoder().encode(name);
    const text = device.keep(this, code.byteLength + label.byteLength);
    const { memory, names, host } = device.hardware;
    const bytes = memory.bytes(text, code.byteLength + label.byteLength);
    bytes.set(code);
    bytes.set(label, code.byteLength);
    const generation = ++generations;
    const { words } = memory;
    const record = this.at >>> 2;
    words[record + LAYOUT.generation] = generation;
    words[record + LAYOUT.code] = text;
    words[record + LAYOUT.codeBytes] = code.byteLength;
    words[record + LAYOUT.args] = fn.length;
    words[record + LAYOUT.name] = text + code.byteLength;
    words[record + LAYOUT.nameBytes] = label.byteLength;
    names.kernels.set(this.at, name);
    host.adopt(this.at, generation, fn);
  }

  allocKernargs(handles: readonly Address[], vals: readonly number[]): KernArgs {
    const nbytes = Math.max(4, (handles.length + vals.length) * 4);
    const args = new WasmKernArgs(this.device, this.device.hardware.alloc(nbytes), handles.length, nbytes);
    args.fill(handles, vals);
    return args;
  }
  protected transientKernargs(handles: readonly Address[], vals: readonly number[]): KernArgs {
    const at = this.device.transient.alloc((handles.length + vals.length) * 4, STREAM_BYTES);
    const args = new WasmKernArgs(this.device, at, handles.length, 0);
    args.fill(handles, vals);
    return args;
  }
}

class WasmKernArgs implements KernArgs {
  readonly at: number;
  readonly #device: WasmDevice;
  readonly #buffers: number;
  readonly #nbytes: number;

  constructor(device: WasmDevice, at: number, buffers: number, nbytes: number) {
    this.#device = device;
    this.at = at;
    this.#buffers = buffers;
    this.#nbytes = nbytes;
  }
  fill(handles: readonly Address[], vals: readonly number[]): void {
    const { words } = this.#device.hardware.memory;
    let i = this.at >>> 2;
    for (const { vaAddr } of handles) words[i++] = vaAddr;
    for (const val of vals) words[i++] = val;
  }
  setBuffer(i: number, handle: unknown): void {
    this.#device.hardware.memory.words[(this.at >>> 2) + i] = (handle as Address).vaAddr;
  }
  setVal(i: number, value: number): void {
    this.#device.hardware.memory.words[(this.at >>> 2) + this.#buffers + i] = value;
  }
  free(): void {
    if (this.#nbytes > 0) this.#device.release(this.at, this.#nbytes);
  }
}

function instantiate(device: WasmDevice, name: string, code: Uint8Array): KernelFn {
  try {
    const module = new WebAssembly.Module(code as Uint8Array<ArrayBuffer>);
    const { memory } = device.hardware.memory;
    return new WebAssembly.Instance(module, { env: { memory } }).exports[name] as KernelFn;
  } catch (cause) {
    throw new CompileError(`internal: WebAssembly refused kernel ${name}: ${(cause as Error).message}`, {
      cause,
    });
  }
}

/** The records of all kernels: a slot that is free is used again, so that the workers forget what was there. */
export class KernelRecords {
  readonly #free: number[] = [];
  take(alloc: (nbytes: number) => number): number {
    return this.#free.pop() ?? alloc(KERNEL_RECORD_BYTES);
  }
  giveBack(at: number): void {
    this.#free.push(at);
  }
}
