// What a device is made of: an allocator, a renderer and compiler, and a way to run what was compiled. A device
// states what it can do as plain required fields; the registry (registry.ts) finds and opens it by name.

import type { Renderer, Source } from "../codegen/target.ts";
import type { MaybePromise, Step } from "../helpers.ts";
import type { Sint, Variable } from "../shape/symbolic.ts";

/** A handle of device memory: an address, an object, whatever the allocator gave out. */
export type Handle = unknown;

/** Bytes of dropped tensors that a host's memory takes before the collector is pushed. */
export const HOST_SLACK = 64 << 20;

export interface Allocator<H = Handle> {
  /** Throws OutOfMemoryError when there is no room. `zeroed`: it must read as zeros. */
  alloc(nbytes: number, zeroed: boolean): H;
  free(handle: H, nbytes: number): void;
  copyin(dest: H, src: Uint8Array): MaybePromise<void>;
  copyout(dest: Uint8Array, src: H): MaybePromise<void>;
  /** A window on the bytes for devices in host memory, valid until the next allocation; undefined elsewhere. */
  view(handle: H, nbytes: number): Uint8Array | undefined;
  /** Memory inside an allocation, for buffers that are views of others. */
  offset(handle: H, nbytes: number, byteOffset: number): H;
  /** Freed memory may be kept and handed out again for the same size (cache.ts). */
  readonly recycles: boolean;
  /** Dropped tensors may hold so many bytes before the collector is pushed, which takes milliseconds (buffer.ts). */
  readonly slack: number;
  /** `transfer` copies between two devices of this kind without the host. */
  readonly canTransfer: boolean;
  transfer(dest: H, src: H, nbytes: number): void;
}

export interface Launch {
  readonly globalSize: readonly number[];
  readonly localSize: readonly number[];
  /** values of the kernel's symbolic variables, in its order */
  readonly vals: readonly number[];
  /** operations and bytes: how long it takes, roughly */
  readonly work?: number;
}

/** A compiled kernel. */
export interface Program<H = Handle> {
  /** operations and bytes of a launch, for those who measure; set by whoever compiled it */
  cost?: { readonly ops: number; readonly bytes: number } | undefined;
  /** Enqueues; with `wait` it returns the seconds that the kernel took. */
  run(handles: readonly H[], launch: Launch, wait: boolean): MaybePromise<number | undefined>;
}

/** A place of memory in a captured step. Two with the same root may overlap. */
export interface GraphSlot {
  /** undefined: another with every run */
  readonly handle: Handle | undefined;
  readonly root: unknown;
  /** which bytes of the root */
  readonly from: number;
  readonly to: number;
}
/** A kernel of a captured step; `args` and `written` are slots. */
export interface GraphKernel {
  readonly kind: "kernel";
  readonly device: Compiled;
  readonly program: Program;
  readonly args: readonly number[];
  readonly written: readonly number[];
  readonly globalSize: readonly Sint[];
  readonly localSize: readonly number[];
  readonly vars: readonly Variable[];
  /** the values when it was captured */
  readonly varVals: ReadonlyMap<Variable, number>;
  readonly work: number;
}
/** A copy between devices of one kind; `dest` and `src` are slots. */
export interface GraphCopy {
  readonly kind: "copy";
  readonly dest: number;
  readonly src: number;
  readonly nbytes: number;
  readonly from: Compiled;
  readonly to: Compiled;
}
export type GraphItem = GraphKernel | GraphCopy;

/** A run of items that were made one thing. */
export interface GraphRunner {
  /** `handles` are by slot; of those that are fixed none is looked at. */
  run(handles: readonly Handle[], varVals: ReadonlyMap<Variable, number>): Step<void>;
}
/** How a device condenses runs of captured items. */
export interface GraphSupport {
  /** items of devices with the same one may be condensed together */
  readonly space: unknown;
  make(items: readonly GraphItem[], slots: readonly GraphSlot[]): GraphRunner;
}

export interface Compiled<H = Handle> {
  /** canonical, as in DEV: WASM, CLANG, DISK:/path */
  readonly name: string;
  readonly allocator: Allocator<H>;
  /** undefined: the device holds data and cannot compute */
  readonly renderer: Renderer | undefined;
  /** PROFILE=1: it notes when things ran by its own clock; false: what `run` enqueues is done when it returns */
  readonly keepsTime: boolean;
  /** undefined: captured items are executed one by one */
  readonly graph: GraphSupport | undefined;
  /** compiling goes on beside the host: the kernels of a schedule are started together before any of them runs */
  readonly compilesAside: boolean;
  compile(name: string, source: Source): MaybePromise<Program<H>>;
  synchronize(): MaybePromise<void>;
}
