// The kernels of one executor: compiles each on first use and calls it; also copies memory. In: a kernel's
// code, and the words of a command. As in executor.ts, the text of the class is sent to the workers, so it
// may use only what it is given and what every JavaScript engine has. Node has more (nodekernels.ts).

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

/** What only Node has. */
export interface NodeParts {
  useNative(native: NativeCalls): void;
  /** Sets how far the executor goes from now on; see `pump` of the executor. */
  limit(until: number, most: number, isWary: boolean): void;
  /** Whether this many indexes of a kernel would block the thread for too long. Others then take them. */
  leaves(w: Int32Array, record: number, count: number): boolean;
  /** something was left since the limit was set */
  readonly hasLeft: boolean;
  /** Nanoseconds for each index of a kernel; 0: nobody has timed it. */
  duration(w: Int32Array, record: number): number;
  /** Notes how long this many indexes took. */
  time(w: Int32Array, record: number, milliseconds: number, count: number): void;
  /** Executes a `move` command, as `copy` executes a copy. */
  move(w: Int32Array, bytes: Uint8Array, at: number): number;
  /** Sleeps while this executor should not work. */
  standBy(w: Int32Array): void;
}
export type HostKernels = Kernels & Partial<NodeParts>;

/** An expression whose value is the class. */
export const kernelsText = (): string => String(Kernels);

export class Kernels {
  /** What they import. */
  readonly imports: { readonly env: { readonly memory: WebAssembly.Memory; readonly scratch: number } };
  readonly #l: RingLayout;
  readonly #loaded = new Map<number, Loaded>();

  /** `id` is that of the executor. */
  constructor(memory: WebAssembly.Memory, layout: RingLayout, id: number) {
    this.#l = layout;
    this.imports = { env: { memory, scratch: layout.scratch * 4 + id * layout.scratchBytes } };
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
  /**
   * The code of a record, as a copy: the record may get another kernel. `w` and `bytes` are all of the shared
   * memory.
   */
  codeOf(w: Int32Array, bytes: Uint8Array, record: number): KernelCode {
    const { generation, native, code, codeBytes, name, nameBytes } = this.#l;
    const field = (at: number): number => w[(record >>> 2) + at] as number;
    const slice = (at: number, n: number): Uint8Array<ArrayBuffer> => {
      const start = field(at) >>> 0;
      return bytes.slice(start, start + field(n)) as Uint8Array<ArrayBuffer>;
    };
    return {
      record,
      generation: field(generation),
      native: field(native) !== 0,
      code: slice(code, codeBytes),
      name: new TextDecoder().decode(slice(name, nameBytes)),
    };
  }
  /** Compiles a kernel on first use; the engine shares the machine code of equal bytes between threads. */
  instantiate(code: KernelCode): Loaded {
    const { record, generation, native } = code;
    let fn: unknown;
    try {
      fn = this.load(code);
    } catch (e) {
      fn = e instanceof Error ? e : new Error(String(e)); // whoever needs the kernel says so
    }
    const loaded = { generation, fn, native, alone: 0 };
    this.#loaded.set(record, loaded);
    return loaded;
  }

  load({ code, name }: KernelCode): unknown {
    return new WebAssembly.Instance(new WebAssembly.Module(code), this.imports).exports[name];
  }

  /** The arguments stand in `w` from word `at` on. `begin` below 0: the kernel takes no range. */
  call(kernel: Loaded, record: number, w: Int32Array, at: number, begin: number, end: number): unknown {
    const n = w[(record >>> 2) + this.#l.args] as number;
    const wide = w[(record >>> 2) + this.#l.buffers] as number;
    const fn = kernel.fn as KernelFn;
    if (begin < 0 && wide === 0) {
      // a call with a list of arguments costs several times as much
      if (n === 2) return fn(w[at] as number, w[at + 1] as number);
      if (n === 3) return fn(w[at] as number, w[at + 1] as number, w[at + 2] as number);
      if (n === 1) return fn(w[at] as number);
    }
    const args: number[] = [];
    for (let i = 0; i < wide; i++) args.push(this.wide(w, at + 2 * i));
    const given = begin < 0 ? n : n - 2;
    for (let i = wide; i < given; i++) args.push(w[at + wide + i] as number);
    if (begin >= 0) args.push(begin, end);
    return fn(...args);
  }

  /** Executes the `copy` command at word `at`: `w` and `bytes` are all of the shared memory. */
  copy(w: Int32Array, bytes: Uint8Array, at: number): number {
    const [dest, src, nbytes] = [
      (w[at + 1] as number) >>> 0,
      (w[at + 2] as number) >>> 0,
      (w[at + 3] as number) >>> 0,
    ];
    bytes.copyWithin(dest, src, src + nbytes);
    return 4;
  }
  /** The same in a memory above 4 GiB. */
  copyWide(w: Int32Array, bytes: Uint8Array, at: number): number {
    const src = this.wide(w, at + 3);
    bytes.copyWithin(this.wide(w, at + 1), src, src + this.wide(w, at + 5));
    return 7;
  }
  /** A number of two words. */
  wide(w: Int32Array, at: number): number {
    return ((w[at] as number) >>> 0) + (w[at + 1] as number) * 2 ** 32;
  }
}
