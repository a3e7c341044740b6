// The contract of a device: an allocator, a renderer and a compiler, and a way to run what was compiled. What
// a device can do it states in plain required fields; no code asks for its name or its class. The registry
// (registry.ts) finds and opens it by name. Who writes a device reads this file, and registers the device
// with a line in devices/node.ts or browser.ts.
//
// Every call that may have to wait returns a MaybePromise: the value itself where it is there, else a
// promise. Whoever calls goes on at once with a value, so a device that never waits costs no task. A promise
// with `waitSync` (`waitable` in helpers.ts) can also be waited for by blocking. Without it, `dataSync` and
// the other synchronous calls are refused on this device with an error that says so; nothing else changes
// (WebGPU: reading back is always asynchronous).

import type { Renderer, Source } from "../codegen/target.ts";
import type { DType } from "../dtype.ts";
import type { MaybePromise, Step } from "../helpers.ts";
import type { Sint, Variable } from "../shape/symbolic.ts";

// ---- what is known of a device before it is opened ----

/**
 * What the buffers of a device are. `memory`: kernels compute on it. The others hold data and compute
 * nothing: `array` host arrays, where data comes from and results are read; `file` files, whose path follows
 * the colon of the device's name.
 */
export type StorageKind = "memory" | "array" | "file";

/**
 * Opens a device. `name` is canonical and carries what followed the colon: CUDA:1, DISK:/path. Throws a
 * DeviceError that says what is missing and how to get it. Whoever fails to open it may try again.
 */
export type DeviceOpener = (name: string) => MaybePromise<Compiled>;
interface DeviceModule {
  readonly open: DeviceOpener;
}

/** A line of the registry. */
export interface DeviceKind {
  readonly storage: StorageKind;
  /** its place among the devices of a machine, 1 or more, the faster the higher; AUTO takes no other */
  readonly rank?: number;
  /** other names for it */
  readonly aliases?: readonly string[];
  /**
   * Loads the device's module. It comes at first use: a program does not pay for
   * devices that it does not open.
   */
  load(): MaybePromise<DeviceModule>;
}
/** By kind, the part of the name before the colon. */
export type DeviceKinds = Readonly<Record<string, DeviceKind>>;

// ---- memory ----

/** A handle of device memory: an address, an object, whatever the allocator gave out. */
export type Handle = unknown;

/** Bytes of dropped tensors that a host's memory takes before the collector is pushed. */
export const HOST_SLACK = 64 << 20;
/** What vectors of the host ask for: 64 bytes, a cache line. */
export const HOST_ALIGN = 64;

export interface Allocator<H = Handle> {
  /**
   * Throws OutOfMemoryError where there is no room. `zeroed`: it must read as zeros. Where `dtype` is an
   * image (src/images.ts), a device that has images makes one.
   */
  alloc(nbytes: number, zeroed: boolean, dtype?: DType): H;
  /**
   * Work that was enqueued before may still use the memory: the device must not hand it to anybody too early.
   */
  free(handle: H, nbytes: number): void;
  /**
   * After all work that was enqueued before. `src` may change as soon as the call
   * returns, or its promise resolves.
   */
  copyin(dest: H, src: Uint8Array): MaybePromise<void>;
  /** After all work that was enqueued before; done when it returns, or when its promise resolves. */
  copyout(dest: Uint8Array, src: H): MaybePromise<void>;
  /**
   * A window on the bytes where the host reaches them, valid until the next allocation; undefined elsewhere.
   * The caller synchronises first.
   */
  view(handle: H, nbytes: number): Uint8Array | undefined;
  /** Memory inside an allocation, for buffers that are views of others. Not freed by itself. */
  offset(handle: H, nbytes: number, byteOffset: number): H;
  /** The jit gives buffers inside an arena offsets that are multiples of this, a power of two. */
  readonly offsetAlign: number;
  /** Freed memory may be kept and handed out again for the same size (cache.ts). */
  readonly recycles: boolean;
  /**
   * New memory takes the device milliseconds: as much freed memory is kept as tensors hold, where that is
   * more than MEMCACHE.
   */
  readonly isSlow: boolean;
  /** Whether freed memory is of no use to others, or turned out not to be there. Absent: it is kept */
  isBroken?(handle: H): boolean;
  /**
   * Dropped tensors may hold this many bytes before a collection is asked for, which
   * takes milliseconds (buffer.ts).
   */
  readonly slack: number;
  /** `transfer` copies between devices of one `space` without the host, in the order of their work. */
  readonly canTransfer: boolean;
  transfer(dest: H, src: H, nbytes: number): void;
}

// ---- kernels ----

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
  /**
   * Enqueues: it comes after all that this device was given before, and its results need not be there when it
   * returns. With `wait` it is done, and the answer is the seconds that the kernel took, by the
   * device's clock where it has one.
   */
  run(handles: readonly H[], launch: Launch, wait: boolean): MaybePromise<number | undefined>;
  /** Waits until so little is in flight that `run` does not block. Absent where it never blocks. */
  room?(): MaybePromise<void>;
}

// ---- captured steps ----

/** A piece of memory in a captured step. Two with the same root may overlap. */
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
/** A copy between devices of one space; `dest` and `src` are slots. */
export interface GraphCopy {
  readonly kind: "copy";
  readonly dest: number;
  readonly src: number;
  readonly nbytes: number;
  readonly from: Compiled;
  readonly to: Compiled;
}
export type GraphItem = GraphKernel | GraphCopy;

/** A run of captured items as one thing: an HCQGraph, a CUDA graph, a command buffer. */
export interface GraphRunner {
  /** Enqueues all of it. `handles` are by slot; those of fixed slots are not looked at. */
  run(handles: readonly Handle[], varVals: ReadonlyMap<Variable, number>): Step<void>;
}
/** Makes a graph of items whose devices are all of one space. */
export type GraphMaker = (items: readonly GraphItem[], slots: readonly GraphSlot[]) => GraphRunner;

// ---- drawing ----

/** A device that draws on canvases of its page, without the host. */
export interface Display<H = Handle> {
  /** rows of pixels start at multiples of so many bytes */
  readonly rowBytes: number;
  /**
   * Draws pixels of four bytes: red, green and blue, times alpha, and alpha. False: the canvas is not for it.
   */
  draw(canvas: object, pixels: H, width: number, height: number): boolean;
}

// ---- the device ----

/**
 * How devices of one space wait for each other without the host. `F` is a point in the work of one of them.
 */
export interface Timeline<F = unknown> {
  /** The work that was enqueued here so far. */
  fence(): F;
  /** What is enqueued here from now on comes after a fence of a device of the same space. */
  waitFor(fence: F): void;
}

export interface Compiled<H = Handle> {
  /** canonical, as in DEV: WASM, CLANG, DISK:/path */
  readonly name: string;
  readonly allocator: Allocator<H>;
  /**
   * what kernels for it are made of and limited by; undefined where the device holds data and cannot compute
   */
  readonly renderer: Renderer | undefined;
  /**
   * devices with the same one reach each other: they transfer, share graphs and wait for
   * each other, as far as they can
   */
  readonly space: unknown;
  /** undefined: another device's work waits for this one's on the host, by `synchronize` */
  readonly timeline: Timeline | undefined;
  /** HCQ: an HCQGraph, which the jit brings along; undefined: captured items are executed one by one */
  readonly graph: GraphMaker | "HCQ" | undefined;
  /**
   * PROFILE=1: it notes when things ran by its own clock; false: what `run` enqueues is done when it returns
   */
  readonly keepsTime: boolean;
  /**
   * compiling goes on beside the host: the kernels of a schedule are started together before any of them runs
   */
  readonly compilesAside: boolean;
  /**
   * what the code of a kernel depends on besides the kernel; a page keeps such code for its next visit.
   * Undefined: it cannot be kept
   */
  readonly codeVariant?: string;
  /**
   * true: the host can compute small kernels in its place, with the same results. It reaches the memory, and
   * the arithmetic is exactly that of ops.ts (engine/interpret.ts)
   */
  readonly canInterpret?: boolean;
  /** true once its hardware is lost: the next use opens the device again. Absent: it cannot be lost */
  readonly isLost?: boolean;
  /** how its memory gets on a canvas. Absent: through the host */
  readonly display?: Display<H>;
  /** the CPU does the work of its hardware, slowly. Absent: it does not */
  readonly isSoftware?: boolean;
  /** Loads what its renderer takes, where a page has not; undefined once it is there. Absent: it always is */
  loadCompiler?(): Promise<void> | undefined;
  /** Makes a program of what its renderer gave. Throws a CompileError where the source is refused. */
  compile(name: string, source: Source): MaybePromise<Program<H>>;
  /** Until all that was enqueued is done. Throws what failed on the device meanwhile. */
  synchronize(): MaybePromise<void>;
}
