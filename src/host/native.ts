// Native code and memory for an executor: loads shared objects with koffi and calls their one entry. The
// class's own text is sent to the workers too, so it uses nothing from outside but the modules it is given.
//
// A worker loads the code itself: an address that another thread looked up cannot be called through koffi
// there (3.3 crashes). The entry takes a table of addresses and a table of variables: 37 ns a
// call, and no limit of parameters.

import type { Koffi, KoffiFunction } from "./koffi.ts";

/** What of Node it needs. */
export interface NativeModules {
  readonly koffi: Koffi;
  readonly fs: Pick<typeof import("node:fs"), "mkdtempSync" | "rmSync" | "writeFileSync">;
  readonly folder: string;
}

export class Native {
  readonly #modules: NativeModules;
  #entries = 0;
  #address = 0n;
  #valsAddress = 0n;
  #buffers = new Uint32Array(0);
  #vals = new Int32Array(0);

  constructor(modules: NativeModules) {
    this.#modules = modules;
    this.#grow(64);
  }

  /** Half of the table for the addresses, half for the variables. */
  #grow(entries: number): void {
    const { koffi } = this.#modules;
    if (this.#address !== 0n) koffi.free(this.#address);
    this.#entries = entries;
    this.#address = koffi.alloc("uint8_t", entries * 16);
    this.#valsAddress = this.#address + BigInt(entries * 8);
    const memory = koffi.view(this.#address, entries * 16);
    this.#buffers = new Uint32Array(memory, 0, entries * 2);
    this.#vals = new Int32Array(memory, entries * 8, entries);
  }

  /** Makes a shared object callable. The file may go at once: the mapping keeps its contents. */
  load(code: Uint8Array): KoffiFunction {
    const { koffi, fs, folder } = this.#modules;
    const mine = fs.mkdtempSync(`${folder}/gradloom-`);
    try {
      fs.writeFileSync(`${mine}/kernel.so`, code);
      return koffi.load(`${mine}/kernel.so`).func("kernel_entry", "void", ["void*", "void*"]);
    } finally {
      fs.rmSync(mine, { recursive: true, force: true });
    }
  }

  /**
   * Addresses of two words each and variables stand at word `at`; a range is added unless `begin` is below 0.
   */
  call(
    fn: unknown,
    words: Int32Array,
    at: number,
    buffers: number,
    vals: number,
    begin: number,
    end: number,
  ): void {
    if (Math.max(buffers, vals + 2) > this.#entries) this.#grow(2 * Math.max(buffers, vals + 2));
    for (let i = 0; i < 2 * buffers; i++) this.#buffers[i] = words[at + i] as number;
    for (let i = 0; i < vals; i++) this.#vals[i] = words[at + 2 * buffers + i] as number;
    if (begin >= 0) {
      this.#vals[vals] = begin;
      this.#vals[vals + 1] = end;
    }
    (fn as KoffiFunction)(this.#address, this.#valsAddress);
  }

  view(low: number, high: number, nbytes: number): Uint8Array {
    const address = (BigInt(high) << 32n) | BigInt(low >>> 0);
    return new Uint8Array(this.#modules.koffi.view(address, nbytes));
  }
}
