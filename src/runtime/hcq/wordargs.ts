// Programs whose arguments are words in memory that the GPU reads: buffers are addresses, variables are
// values, and each lies where the compiled code says. Words that no argument fills keep what the program has
// there.

import { InternalError } from "../../errors.ts";
import type { HCQCompatAllocRes } from "./allocator.ts";
import type { HardwareDevice } from "./hardware.ts";
import type { PoolBlock } from "./pool.ts";
import { HCQProgram, type KernArgs } from "./program.ts";
import { high } from "./words.ts";

/** Bytes that the launch itself may take after its arguments, from the same half of transient memory. */
const LAUNCH_BYTES = 2048;

export abstract class WordProgram extends HCQProgram<HCQCompatAllocRes> {
  abstract override readonly device: HardwareDevice;
  /** the words before the arguments are in them */
  abstract readonly blank: Int32Array;
  /** where each argument lies, in bytes: buffers first, then variables */
  protected abstract readonly offsets: readonly number[];

  allocKernargs(handles: readonly HCQCompatAllocRes[], vals: readonly number[]): WordArgs {
    const piece = this.device.constants.alloc(this.blank.byteLength);
    return this.#fill(piece.va, piece.words as Int32Array, piece, handles, vals);
  }
  protected transientKernargs(handles: readonly HCQCompatAllocRes[], vals: readonly number[]): WordArgs {
    const { device, blank } = this;
    const va = device.transient.alloc(blank.byteLength, LAUNCH_BYTES);
    return this.#fill(va, device.transientWords(va, blank.length), undefined, handles, vals);
  }
  #fill(
    va: number,
    words: Int32Array,
    piece: PoolBlock | undefined,
    handles: readonly HCQCompatAllocRes[],
    vals: readonly number[],
  ): WordArgs {
    const { device, offsets, blank, name } = this;
    if (handles.length + vals.length !== offsets.length) {
      throw new InternalError(
        `kernel ${name} takes ${offsets.length} arguments, not ${handles.length} buffers and ${vals.length} values`,
      );
    }
    words.set(blank);
    const free = () => {
      if (piece !== undefined) device.retire(() => device.constants.free(piece));
    };
    const args = new WordArgs(va, words, { offsets, buffers: handles.length, free });
    handles.forEach((h, i) => void args.setBuffer(i, h));
    vals.forEach((v, i) => void args.setVal(i, v));
    return args;
  }
}

interface ArgumentLayout {
  readonly offsets: readonly number[];
  readonly buffers: number;
  readonly free: () => void;
}

/** The arguments of one launch. */
export class WordArgs implements KernArgs {
  readonly va: number;
  readonly #words: Int32Array;
  readonly #layout: ArgumentLayout;

  constructor(va: number, words: Int32Array, layout: ArgumentLayout) {
    this.va = va;
    this.#words = words;
    this.#layout = layout;
  }
  set(at: number, words: readonly number[]): void {
    this.#words.set(words, at);
  }
  setBuffer(i: number, handle: unknown): void {
    const vaAddr = Number((handle as HCQCompatAllocRes).vaAddr);
    const at = this.#at(i);
    this.#words[at] = vaAddr | 0;
    this.#words[at + 1] = high(vaAddr);
  }
  setVal(i: number, value: number): void {
    this.#words[this.#at(this.#layout.buffers + i)] = value;
  }
  #at(argument: number): number {
    return (this.#layout.offsets[argument] as number) >>> 2;
  }
  free(): void {
    this.#layout.free();
  }
}
