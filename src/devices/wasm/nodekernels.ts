// What an executor has only in Node: native code and memory, the times of kernels, and a thread that stands
// by. A function makes the class, because its text is sent to the workers: it may use only what it is given
// and what every JavaScript engine has.

import {
  type KernelCode,
  type Loaded,
  type NativeCalls,
  type NodeParts,
  Kernels as PageKernels,
} from "./kernels.ts";
import type { RingLayout } from "./layout.ts";

const extended = (Base: typeof PageKernels) =>
  class NodeKernels extends Base implements NodeParts {
    readonly #layout: RingLayout;
    readonly #id: number;
    readonly #openNative: (() => NativeCalls) | undefined;
    #native: NativeCalls | undefined;
    #isTimed: boolean;
    /** what takes longer than this is left to others, in milliseconds */
    #most = Infinity;
    /** whether a kernel that nobody has timed counts as long */
    #isWary = false;
    hasLeft = false;

    constructor(memory: WebAssembly.Memory, layout: RingLayout, id: number, openNative?: () => NativeCalls) {
      super(memory, layout, id);
      this.#layout = layout;
      this.#id = id;
      this.#isTimed = id > 0;
      this.#openNative = openNative;
    }

    // ---- native code

    useNative(native: NativeCalls): void {
      this.#native = native;
    }
    get #natives(): NativeCalls {
      this.#native ??= this.#openNative?.();
      if (this.#native === undefined) throw new Error("this thread cannot call native code");
      return this.#native;
    }
    override load(code: KernelCode): unknown {
      return code.native ? this.#natives.load(code.code) : super.load(code);
    }
    override call(
      kernel: Loaded,
      record: number,
      w: Int32Array,
      at: number,
      begin: number,
      end: number,
    ): unknown {
      // parts are timed by whoever takes them
      const isTimed = begin < 0 && this.#isTimed;
      const start = isTimed ? performance.now() : 0;
      if (kernel.native) this.#callNative(kernel, record, w, at, begin, end);
      else super.call(kernel, record, w, at, begin, end);
      if (isTimed) this.time(w, record, performance.now() - start, 1);
      return undefined;
    }
    #callNative({ fn }: Loaded, record: number, w: Int32Array, at: number, begin: number, end: number): void {
      const { args, buffers } = this.#layout;
      const field = (name: number): number => w[(record >>> 2) + name] as number;
      this.#natives.call(fn, w, at, field(buffers), field(args), begin, end);
    }
    move(w: Int32Array, bytes: Uint8Array, at: number): number {
      const word = (i: number) => w[at + i] as number;
      const nbytes = this.wide(w, at + 7);
      const side = (i: number, from: number, n: number): Uint8Array => {
        if (word(i) === 0) return bytes.subarray(this.wide(w, at + i + 1) + from).subarray(0, n);
        // a native address may need more than the 53 bits of a number
        const low = (word(i + 1) >>> 0) + from;
        return this.#natives.view(low % 2 ** 32, word(i + 2) + Math.floor(low / 2 ** 32), n);
      };
      // Node shows no more than 2 GiB of native memory at once
      for (let from = 0; from < nbytes; from += 2 ** 30) {
        const n = Math.min(2 ** 30, nbytes - from);
        side(1, from, n).set(side(4, from, n));
      }
      return 9;
    }

    // ---- how long kernels take

    limit(until: number, most: number, isWary: boolean): void {
      // what the host does inside a submission is short, and Node takes a millisecond to load its clock
      this.#isTimed = until !== Infinity || this.#id > 0;
      this.#most = most;
      this.#isWary = isWary;
      this.hasLeft = false;
    }
    leaves(w: Int32Array, record: number, count: number): boolean {
      if (this.#most === Infinity) return false;
      const each = this.duration(w, record);
      if (each === 0 ? !this.#isWary : each * count <= this.#most * 1e6) return false;
      this.hasLeft = true;
      return true;
    }
    duration(w: Int32Array, record: number): number {
      return w[(record >>> 2) + this.#layout.duration] as number;
    }
    /** Other programs can only make a kernel slower, so the figure rises slowly. */
    time(w: Int32Array, record: number, milliseconds: number, count: number): void {
      const known = this.duration(w, record);
      const each = Math.min(Math.ceil((milliseconds * 1e6) / count) || 1, 2 ** 30);
      const kept = known === 0 ? each : Math.min(each, known + (known >> 2) + 1);
      w[(record >>> 2) + this.#layout.duration] = kept;
    }

    /** A host that computes counts as a thread: the last worker works only while the host awaits. */
    standBy(w: Int32Array): void {
      const { threads, hostAway, executors, executorWords, state, awake, standby } = this.#layout;
      const mine = executors + this.#id * executorWords + state;
      while (this.#id > 1 && this.#id >= (w[threads] as number) && Atomics.load(w, hostAway) === 0) {
        Atomics.store(w, mine, standby);
        Atomics.wait(w, hostAway, 0);
        Atomics.store(w, mine, awake);
      }
    }
  };

export const Kernels: typeof PageKernels = extended(PageKernels);
export const kernelsText = (): string => `(${extended})(${PageKernels})`;
