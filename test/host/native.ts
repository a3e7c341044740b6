// A compiled shared object as a function, for the tests of compilers: buffers as
// addresses, variables as numbers.

import * as fs from "node:fs";
import { tmpdir } from "node:os";
import type { Koffi } from "../../src/host/koffi.ts";
import { Native } from "../../src/host/native.ts";

export function load(koffi: Koffi, code: Uint8Array) {
  const native = new Native({ koffi, fs, folder: tmpdir() });
  const fn = native.load(code);
  return {
    run(buffers: readonly bigint[], vals: readonly number[]): void {
      const words = new Int32Array(2 * buffers.length + vals.length);
      new BigUint64Array(words.buffer, 0, buffers.length).set(buffers);
      words.set(vals, 2 * buffers.length);
      native.call(fn, words, 0, buffers.length, vals.length, -1, 0);
    },
  };
}
