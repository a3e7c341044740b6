// A kernel on the rings: its bytes lie in the shared memory, where each worker that executes it finds them.
// An exec command names the record that says where they are. A kernel is a WebAssembly module, or native code
// in a shared object.

import type { MaybePromise } from "../../helpers.ts";
import type { HCQCompatAllocRes } from "../../runtime/hcq/allocator.ts";
import { HCQProgram, type KernArgs } from "../../runtime/hcq/program.ts";
import type { RingDevice } from "./device.ts";
import { KERNEL_RECORD_BYTES, LAYOUT, pair } from "./layout.ts";

/** The stream of an eager launch is shorter than this. */
const STREAM_BYTES = 256;

const utf8 = new TextEncoder();
let generations = 0;

/** A kernel as the host's own executor calls it. */
interface HostKernel {
  /** a function of WebAssembly, or what loading native code gave */
  readonly fn: unknown;
  readonly native: boolean;
  /** its arguments in words, with the two of its range; 0: not known before the first launch */
  readonly words: number;
}

export class RingProgram extends HCQProgram<HCQCompatAllocRes> {
  readonly name: string;
  readonly device: RingDevice;
  /** the first byte of its record */
  readonly at: number;
  readonly #native: boolean;

  constructor(device: RingDevice, name: string, code: Uint8Array, { fn, native, words }: HostKernel) {
    super();
    this.name = name;
    this.device = device;
    this.#native = native;
    this.at = device.keepRecord(this);
    const label = utf8.encode(name);
    const text = device.keep(this, code.byteLength + label.byteLength);
    const { memory, names, host } = device.hardware;
    const bytes = memory.bytes(text, code.byteLength + label.byteLength);
    bytes.set(code);
    bytes.set(label, code.byteLength);
    const generation = ++generations;
    const record = this.at >>> 2;
    const all = memory.words;
    all[record + LAYOUT.generation] = generation;
    all[record + LAYOUT.code] = text;
    all[record + LAYOUT.codeBytes] = code.byteLength;
    all[record + LAYOUT.name] = text + code.byteLength;
    all[record + LAYOUT.nameBytes] = label.byteLength;
    all[record + LAYOUT.args] = words;
    all[record + LAYOUT.buffers] = 0;
    all[record + LAYOUT.native] = native ? 1 : 0;
    all[record + LAYOUT.duration] = 0;
    names.kernels.set(this.at, name);
    host.adopt(this.at, generation, fn);
  }

  room(): MaybePromise<void> {
    return this.device.room();
  }
  allocKernargs(handles: readonly HCQCompatAllocRes[], vals: readonly number[]): KernArgs {
    const nbytes = Math.max(4, this.#words(handles, vals) * 4);
    const at = this.device.hardware.alloc(nbytes);
    return new RingKernArgs(this.device, this.#isWide, at, nbytes).fill(handles, vals);
  }
  protected transientKernargs(handles: readonly HCQCompatAllocRes[], vals: readonly number[]): KernArgs {
    const at = this.device.transient.alloc(this.#words(handles, vals) * 4, STREAM_BYTES);
    return new RingKernArgs(this.device, this.#isWide, at, 0).fill(handles, vals);
  }
  /** Its addresses take two words. */
  get #isWide(): boolean {
    return this.#native || this.device.isWide;
  }
  /** Where addresses take two words, how many there are is known from here on. */
  #words(handles: readonly unknown[], vals: readonly unknown[]): number {
    if (!this.#isWide) return handles.length + vals.length;
    const { words } = this.device.hardware.memory;
    words[(this.at >>> 2) + LAYOUT.buffers] = handles.length;
    // native code takes a table of the addresses and one of the variables
    if (this.#native) words[(this.at >>> 2) + LAYOUT.args] = vals.length;
    return handles.length * 2 + vals.length;
  }
}

class RingKernArgs implements KernArgs {
  readonly at: number;
  readonly #device: RingDevice;
  readonly #isWide: boolean;
  readonly #nbytes: number;
  #vals = 0;

  constructor(device: RingDevice, isWide: boolean, at: number, nbytes: number) {
    this.#device = device;
    this.#isWide = isWide;
    this.at = at;
    this.#nbytes = nbytes;
  }
  fill(handles: readonly HCQCompatAllocRes[], vals: readonly number[]): this {
    this.#vals = handles.length * (this.#isWide ? 2 : 1);
    for (let i = 0; i < handles.length; i++) this.setBuffer(i, handles[i]);
    for (let i = 0; i < vals.length; i++) this.setVal(i, vals[i] as number);
    return this;
  }
  setBuffer(i: number, handle: unknown): void {
    const { vaAddr } = handle as HCQCompatAllocRes;
    const { words } = this.#device.hardware.memory;
    const at = this.at >>> 2;
    if (this.#isWide) words.set(pair(vaAddr), at + i * 2);
    else words[at + i] = Number(vaAddr);
  }
  setVal(i: number, value: number): void {
    this.#device.hardware.memory.words[(this.at >>> 2) + this.#vals + i] = value;
  }
  free(): void {
    if (this.#nbytes > 0) this.#device.release(this.at, this.#nbytes);
  }
}

/**
 * The records of all kernels: a slot that is free is used again, so that the workers forget what was there.
 */
export class KernelRecords {
  readonly #free: number[] = [];
  take(alloc: (nbytes: number) => number): number {
    return this.#free.pop() ?? alloc(KERNEL_RECORD_BYTES);
  }
  giveBack(at: number): void {
    this.#free.push(at);
  }
}
