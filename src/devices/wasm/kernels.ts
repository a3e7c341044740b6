// The kernels that one executor has: compiles them on first use and calls them. In: a kernel's code and the
// words of its arguments. As with executor.ts, the class's own text is sent to the workers: it must not use
// anything from outside but what it is given and what every JavaScript has.

import type { RingLayout } from "./layout.ts";

type KernelFn = (...args: number[]) => unknown;
export interface Loaded {
  readonly generation: number;
  /** what is called, or why it could not be made */
  readonly fn: unknown;
  readonly native: boolean;
  /** milliseconds for each of its indexes where no thread helps; 0: not known */
  alone: number;
}
/** What a kernel is made of. */
export interface KernelCode {
  readonly record: number;
  readonly generation: number;
  readonly native: boolean;
  readonly code: Uint8Array<ArrayBuffer>;
  readonly name: string;
}
/** How native code is called, where there is any (host/native.ts). */
export interface NativeCalls {
  load(code: Uint8Array): unknown;
  /**
   * Buffers of two words each and variables stand at word `at`; a range is added unless `begin` is below 0.
   */
  call(
    fn: unknown,
    words: Int32Array,
    at: number,
    buffers: number,
    vals: number,
    begin: number,
    end: number,
  ): void;
  /** Native memory as bytes. */
  view(low: number, high: number, nbytes: number): Uint8Array;
}

export class Kernels {
  /** What they import. */
  readonly imports: { readonly env: { readonly memory: WebAssembly.Memory; readonly scratch: number } };
  readonly #l: RingLayout;
  readonly #loaded = new Map<number, Loaded>();
  readonly #openNative: (() => NativeCalls) | undefined;
  #native: NativeCalls | undefined;

  /** `id` is that of the executor. */
  constructor(memory: WebAssembly.Memory, layout: RingLayout, id: number, openNative?: () => NativeCalls) {
    this.#l = layout;
    this.#openNative = openNative;
    this.imports = { env: { memory, scratch: layout.scratch * 4 + id * layout.scratchBytes } };
  }

  get natives(): NativeCalls {
    this.#native ??= this.#openNative?.();
    if (this.#native === undefined) throw new Error("this thread cannot call native code");
    return this.#native;
  }
  /** Native calls that this thread has already. */
  useNative(native: NativeCalls): void {
    this.#native = native;
  }
  /** A kernel that this thread has already. */
  adopt(record: number, generation: number, native: boolean, fn: unknown): void {
    this.#loaded.set(record, { generation, fn, native, alone: 0 });
  }
  /** The kernel of a record, which may have got another one since. */
  known(record: number, generation: number): Loaded | undefined {
    const known = this.#loaded.get(record);
    return known?.generation === generation ? known : undefined;
  }
  /** Compiles a kernel on first use; the engine shares the machine code of equal bytes between threads. */
  instantiate({ record, generation, native, code, name }: KernelCode): Loaded {
    let fn: unknown;
    try {
      if (native) fn = this.natives.load(code);
      else fn = new WebAssembly.Instance(new WebAssembly.Module(code), this.imports).exports[name];
    } catch (e) {
      fn = e instanceof Error ? e : new Error(String(e)); // whoever needs the kernel says so
    }
    const loaded = { generation, fn, native, alone: 0 };
    this.#loaded.set(record, loaded);
    return loaded;
  }

  /** The arguments stand in `w` from word `at` on. `begin` below 0: the kernel takes no range. */
  call(kernel: Loaded, record: number, w: Int32Array, at: number, begin: number, end: number): unknown {
    const n = w[(record >>> 2) + this.#l.args] as number;
    if (kernel.native) {
      const buffers = w[(record >>> 2) + this.#l.buffers] as number;
      return this.natives.call(kernel.fn, w, at, buffers, n, begin, end);
    }
    const fn = kernel.fn as KernelFn;
    if (begin < 0) {
      // a call with a list of arguments costs several times as much
      if (n === 2) return fn(w[at] as number, w[at + 1] as number);
      if (n === 3) return fn(w[at] as number, w[at + 1] as number, w[at + 2] as number);
      if (n === 1) return fn(w[at] as number);
    }
    const args: number[] = [];
    const given = begin < 0 ? n : n - 2;
    for (let i = 0; i < given; i++) args.push(w[at + i] as number);
    if (begin >= 0) args.push(begin, end);
    return fn(...args);
  }
}
