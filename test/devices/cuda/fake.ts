// A CUDA driver in plain JS, for the tests of the CUDA device where there is no GPU. It keeps memory, streams
// and events, executes kernels through the JS device, and checks every handle, address and size that it is
// given: a wrong one throws and names the call. Work is done late, when somebody waits or asks again, so that
// what only works by luck fails.

import { CUDA, type CudaDriver, type HostMemory, type Out } from "../../../src/devices/cuda/driver.ts";
import { FakeGraphs } from "./fakegraphs.ts";
import type { FakeKernel, FakeKernels } from "./fakekernels.ts";

export class FakeError extends Error {}
export const demand: (ok: boolean, what: string) => asserts ok = (ok, what) => {
  if (!ok) throw new FakeError(`fake driver: ${what}`);
};

export interface FakeContext {
  readonly kind: "context";
  readonly ordinal: number;
}
export interface FakeStream {
  readonly kind: "stream";
  readonly context: FakeContext;
  readonly queue: Work[];
}
export interface FakeEvent {
  readonly kind: "event";
  readonly timed: boolean;
  /** how often it was recorded, and how often that came to pass */
  asked: number;
  done: number;
  at: number;
}
/** Something on a stream: executed when `ready`, one after the other. */
export interface Work {
  readonly what: string;
  ready?(): boolean;
  run(): void;
}
interface Module {
  readonly kind: "module";
  readonly kernel: FakeKernel;
}
export interface FakeFunction {
  readonly kind: "function";
  /** bytes of shared memory that a launch may give it */
  shared: number;
  readonly context: FakeContext;
  readonly kernel: FakeKernel;
}
interface Pool {
  readonly kind: "pool";
  readonly ordinal: number;
}
interface Allocation {
  readonly context: FakeContext | undefined;
  readonly bytes: Uint8Array;
  pooled: boolean;
  /** given back by the host, though work in flight may still use it */
  freed: boolean;
}
type Thing =
  | FakeContext
  | FakeStream
  | FakeEvent
  | Module
  | FakeFunction
  | Pool
  | { readonly kind: "graph" | "node" | "exec" };

export interface FakeOptions {
  readonly gpus?: number;
  /** bytes of each GPU */
  readonly total?: number;
  readonly pools?: boolean;
  readonly arch?: number;
  /** kernels as JS executes them fastest, where something else is tested */
  readonly plain?: boolean;
}

const ERRORS: Readonly<Record<number, readonly [string, string]>> = {
  1: ["CUDA_ERROR_INVALID_VALUE", "invalid argument"],
  2: ["CUDA_ERROR_OUT_OF_MEMORY", "out of memory"],
  200: ["CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"],
  700: ["CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"],
};
const PAGE = 512;

export class FakeState {
  readonly kernels: FakeKernels;
  readonly gpus: number;
  readonly total: number;
  readonly pools: boolean;
  readonly arch: number;
  readonly contexts: FakeContext[];
  readonly streams: FakeStream[] = [];
  current: FakeContext | undefined;
  /** every call that was made, by name */
  readonly calls: string[] = [];
  /** the status that the next call of a name gives instead of doing anything */
  readonly failing = new Map<string, number>();
  /** the failure of a kernel: every call says so from then on */
  sticky = 0;
  /** milliseconds on the GPU's clock */
  time = 0;
  /** bytes that a pool holds though nobody uses them */
  kept = 0;
  readonly things = new Map<number, Thing>();
  readonly memory = new Map<number, Allocation>();
  #next = 0x10000;
  #nextHost = 0x7f00_0000_0000;
  #nextDevice = 0x7_0000_0000;

  constructor(kernels: FakeKernels, { gpus = 1, total = 1 << 30, pools = true, arch = 90 }: FakeOptions) {
    this.kernels = kernels;
    this.gpus = gpus;
    this.total = total;
    this.pools = pools;
    this.arch = arch;
    this.contexts = Array.from({ length: gpus }, (_, ordinal) => ({ kind: "context", ordinal }));
  }

  add(thing: Thing): number {
    this.#next += 16;
    this.things.set(this.#next, thing);
    return this.#next;
  }
  handleOf(thing: Thing): number {
    for (const [handle, t] of this.things) if (t === thing) return handle;
    return this.add(thing);
  }
  get<K extends Thing["kind"]>(kind: K, handle: number, call: string): Extract<Thing, { kind: K }> {
    const thing = this.things.get(handle);
    demand(thing?.kind === kind, `${call}: ${handle} is ${thing?.kind ?? "nothing"}, not a ${kind}`);
    return thing as Extract<Thing, { kind: K }>;
  }
  /** A stream of the context that is current. */
  stream(handle: number, call: string): FakeStream {
    const stream = this.get("stream", handle, call);
    demand(stream.context === this.current, `${call}: the stream belongs to another context`);
    return stream;
  }

  // ---- memory ----

  allocate(size: number, context: FakeContext | undefined, pooled = false): number {
    const room = Math.ceil(Math.max(1, size) / PAGE + 1) * PAGE;
    const at = context === undefined ? this.#nextHost : this.#nextDevice;
    if (context === undefined) this.#nextHost += room;
    else this.#nextDevice += room;
    this.memory.set(at, { context, bytes: new Uint8Array(size), pooled, freed: false });
    return at;
  }
  /** The allocation that an address lies in, and where it starts. */
  #around(address: number): readonly [number, Allocation] | undefined {
    const whole = this.memory.get(address);
    if (whole !== undefined) return [address, whole];
    return [...this.memory].find(([at, { bytes }]) => address >= at && address < at + bytes.byteLength);
  }
  /** The bytes at an address to the end of its allocation. */
  bytesAt(address: number, what: string, ended = false): Uint8Array {
    const found = this.#around(address);
    demand(found !== undefined, `${what}: nothing is at ${address.toString(16)}`);
    const [at, { bytes, freed }] = found;
    demand(!freed || ended, `${what}: ${address.toString(16)} was freed`);
    return bytes.subarray(address - at);
  }
  range(address: number, size: number, what: string, ended = false): Uint8Array {
    const bytes = this.bytesAt(address, what, ended);
    demand(size <= bytes.byteLength, `${what}: ${size} bytes where ${bytes.byteLength} are`);
    return bytes.subarray(0, size);
  }
  contextAt(address: number): FakeContext | undefined {
    return this.#around(address)?.[1].context;
  }
  used(context: FakeContext): number {
    return [...this.memory.values()]
      .filter((m) => m.context === context)
      .reduce((n, m) => n + m.bytes.byteLength, 0);
  }

  // ---- time ----

  /** Executes one thing on a stream; whether there was one that could go. */
  advance(stream: FakeStream): boolean {
    const [first] = stream.queue;
    if (first === undefined || !(first.ready?.() ?? true)) return false;
    stream.queue.shift();
    if (this.sticky === 0) first.run();
    return true;
  }
  /** Executes until `done`, on all streams, since they may wait for each other. */
  drain(done: () => boolean): void {
    while (!done()) {
      const moved = this.streams.filter((s) => this.advance(s)).length > 0;
      demand(
        moved || done(),
        `a wait that nothing ends: ${this.streams.flatMap((s) => s.queue.map((w) => w.what))}`,
      );
    }
  }
  launch(kernel: FakeKernel, params: Uint8Array, grid: readonly number[], block: readonly number[]): void {
    this.time += 1;
    if (!kernel.run(params, grid, block, (address) => this.bytesAt(address, kernel.name, true)))
      this.sticky = 700;
  }
}

const first = (out: Out, value: number): number => {
  if (out instanceof BigUint64Array) out[0] = BigInt(value);
  else out[0] = value;
  return CUDA.SUCCESS;
};

export class FakeDriver {
  readonly state: FakeState;
  readonly driver: CudaDriver;

  constructor(kernels: FakeKernels, options: FakeOptions = {}) {
    const state = new FakeState(kernels, options);
    this.state = state;
    const functions = {
      ...devices(state),
      ...memory(state),
      ...streams(state),
      ...modules(state),
      ...new FakeGraphs(state).functions,
    };
    const guarded = Object.entries(functions).map(([name, fn]) => [name, guard(state, name, fn as Call)]);
    this.driver = {
      ...(Object.fromEntries(guarded) as typeof functions),
      memory: hostMemory(state),
    } as CudaDriver;
  }
}

type Call = (...args: unknown[]) => number;
const ALWAYS = ["cuGetErrorName", "cuGetErrorString"];

/** Counts the call, fails it if a test said so, and checks that its numbers are such. */
const guard =
  (state: FakeState, name: string, fn: Call): Call =>
  (...args) => {
    if (ALWAYS.includes(name)) return fn(...args);
    state.calls.push(name);
    const status = state.failing.get(name);
    if (status !== undefined) {
      state.failing.delete(name);
      return status;
    }
    for (const a of args)
      if (typeof a === "number")
        demand(Number.isSafeInteger(a) && a >= 0, `${name}: ${a} is not a size or handle`);
    if (state.sticky !== 0) return state.sticky;
    return fn(...args);
  };

function hostMemory(state: FakeState): HostMemory {
  return {
    alloc: (bytes) => state.allocate(bytes, undefined),
    free(address) {
      demand(state.memory.has(address), `free: ${address} is not memory of the host`);
      state.memory.delete(address);
    },
    view(address, bytes) {
      const found = state.range(address, bytes, "view");
      demand(found.byteOffset === 0, "view: not the start of an allocation");
      return found.buffer as ArrayBuffer;
    },
  };
}

function devices(state: FakeState) {
  const attributes: Readonly<Record<number, number>> = {
    16: 76,
    39: 1536,
    81: 102_400,
    82: 65_536,
    106: 24,
    97: 101_376,
    75: Math.floor(state.arch / 10),
    76: state.arch % 10,
    115: state.pools ? 1 : 0,
  };
  const isGpu = (n: number): boolean => n < state.gpus;
  return {
    cuInit: (flags: number) => {
      demand(flags === 0, "cuInit: flags are 0");
      return state.gpus === 0 ? CUDA.NO_DEVICE : CUDA.SUCCESS;
    },
    cuGetErrorName(status: number, out: (string | null)[]) {
      out[0] = ERRORS[status]?.[0] ?? null;
      return CUDA.SUCCESS;
    },
    cuGetErrorString(status: number, out: (string | null)[]) {
      out[0] = ERRORS[status]?.[1] ?? null;
      return CUDA.SUCCESS;
    },
    cuDeviceGetCount: (out: Out) => first(out, state.gpus),
    cuDeviceGet(out: Out, n: number) {
      demand(isGpu(n), `cuDeviceGet: there is no GPU ${n}`);
      return first(out, n);
    },
    cuDeviceGetAttribute(out: Out, which: number, n: number) {
      demand(isGpu(n) && attributes[which] !== undefined, `cuDeviceGetAttribute: ${which} of ${n}`);
      return first(out, attributes[which] as number);
    },
    cuDevicePrimaryCtxRetain: (out: Out, n: number) =>
      first(out, state.handleOf(state.contexts[n] as FakeContext)),
    cuDeviceCanAccessPeer(out: Out, a: number, b: number) {
      demand(isGpu(a) && isGpu(b) && a !== b, "cuDeviceCanAccessPeer: two GPUs");
      return first(out, 1);
    },
    cuCtxSetCurrent(context: number) {
      state.current = state.get("context", context, "cuCtxSetCurrent");
      return CUDA.SUCCESS;
    },
    cuCtxEnablePeerAccess(context: number, flags: number) {
      demand(state.get("context", context, "cuCtxEnablePeerAccess") !== state.current, "a peer of itself");
      return flags;
    },
  };
}

function memory(state: FakeState) {
  const here = (call: string): FakeContext => {
    demand(state.current !== undefined, `${call}: no context is current`);
    return state.current;
  };
  const take = (out: Out, size: number, pooled: boolean): number => {
    const context = here("an allocation");
    demand(size > 0, "an allocation of nothing");
    const used = state.used(context);
    if (used + state.kept + size > state.total) return CUDA.OUT_OF_MEMORY;
    return first(out, state.allocate(size, context, pooled));
  };
  const release = (address: number, call: string, pooled: boolean) => {
    const found = state.memory.get(address);
    demand(found?.context !== undefined && !found.freed, `${call}: ${address} is not memory in use`);
    demand(found.pooled === pooled, `${call}: the memory came another way`);
    return found;
  };
  return {
    cuMemGetInfo_v2(free: Out, total: Out) {
      first(total, state.total);
      return first(free, state.total - state.used(here("cuMemGetInfo")) - state.kept);
    },
    cuMemAlloc_v2: (out: Out, size: number) => take(out, size, false),
    cuMemFree_v2(address: number) {
      release(address, "cuMemFree", false);
      demand(
        state.streams.every((s) => s.queue.length === 0),
        "cuMemFree: work is in flight",
      );
      state.memory.delete(address);
      return CUDA.SUCCESS;
    },
    cuMemAllocAsync(out: Out, size: number, stream: number) {
      demand(state.pools, "cuMemAllocAsync without pools");
      state.stream(stream, "cuMemAllocAsync");
      return take(out, size, true);
    },
    cuMemFreeAsync(address: number, stream: number) {
      const found = release(address, "cuMemFreeAsync", true);
      found.freed = true;
      const s = state.stream(stream, "cuMemFreeAsync");
      demand(s.context === found.context, "cuMemFreeAsync: another GPU's memory");
      const run = () => {
        state.memory.delete(address);
        state.kept += found.bytes.byteLength;
      };
      s.queue.push({ what: "free", run });
      return CUDA.SUCCESS;
    },
    cuDeviceGetDefaultMemPool: (out: Out, ordinal: number) =>
      first(out, state.add({ kind: "pool", ordinal })),
    cuMemPoolSetAttribute(pool: number, attribute: number, value: Out) {
      state.get("pool", pool, "cuMemPoolSetAttribute");
      demand(attribute === 4 && value[0] === 2n ** 64n - 1n, "cuMemPoolSetAttribute: the threshold");
      return CUDA.SUCCESS;
    },
    cuMemPoolSetAccess(pool: number, access: Out, count: number) {
      const { ordinal } = state.get("pool", pool, "cuMemPoolSetAccess");
      demand(
        count === 1 && access[0] === 1 && access[2] === 3,
        "cuMemPoolSetAccess: one GPU, to read and write",
      );
      demand(access[1] !== ordinal && Number(access[1]) < state.gpus, "cuMemPoolSetAccess: another GPU");
      return CUDA.SUCCESS;
    },
    cuMemPoolTrimTo(pool: number, keep: number) {
      state.get("pool", pool, "cuMemPoolTrimTo");
      state.kept = Math.min(state.kept, keep);
      return CUDA.SUCCESS;
    },
    cuMemHostAlloc: (out: Out, size: number) => first(out, state.allocate(size, undefined)),
    ...copies(state, here),
  };
}

function copies(state: FakeState, here: (call: string) => FakeContext) {
  /** Both ends are looked up at once, as the driver does, and read when it is their turn. */
  const copy = (call: string, dest: number, src: number, size: number, stream: number): number => {
    const s = state.stream(stream, call);
    const [to, from] = [state.range(dest, size, call), state.range(src, size, call)];
    s.queue.push({ what: call, run: () => void to.set(from) });
    return CUDA.SUCCESS;
  };
  const isOn = (address: number, context: FakeContext | undefined, call: string): void =>
    demand(state.contextAt(address) === context, `${call}: ${address.toString(16)} is on another side`);
  return {
    cuMemcpyHtoDAsync_v2(dest: number, src: number, size: number, stream: number) {
      isOn(dest, here("cuMemcpyHtoD"), "cuMemcpyHtoD");
      isOn(src, undefined, "cuMemcpyHtoD");
      return copy("cuMemcpyHtoD", dest, src, size, stream);
    },
    cuMemcpyDtoHAsync_v2(dest: number, src: number, size: number, stream: number) {
      isOn(src, here("cuMemcpyDtoH"), "cuMemcpyDtoH");
      isOn(dest, undefined, "cuMemcpyDtoH");
      return copy("cuMemcpyDtoH", dest, src, size, stream);
    },
    cuMemcpyDtoDAsync_v2(dest: number, src: number, size: number, stream: number) {
      for (const end of [dest, src]) isOn(end, here("cuMemcpyDtoD"), "cuMemcpyDtoD");
      return copy("cuMemcpyDtoD", dest, src, size, stream);
    },
    cuMemcpyPeerAsync(dest: number, to: number, src: number, from: number, size: number, stream: number) {
      isOn(dest, state.get("context", to, "cuMemcpyPeer"), "cuMemcpyPeer");
      isOn(src, state.get("context", from, "cuMemcpyPeer"), "cuMemcpyPeer");
      return copy("cuMemcpyPeer", dest, src, size, stream);
    },
    cuMemsetD8Async(dest: number, byte: number, size: number, stream: number) {
      isOn(dest, here("cuMemsetD8"), "cuMemsetD8");
      const to = state.range(dest, size, "cuMemsetD8");
      state.stream(stream, "cuMemsetD8").queue.push({ what: "memset", run: () => void to.fill(byte) });
      return CUDA.SUCCESS;
    },
  };
}

function streams(state: FakeState) {
  const record = (e: FakeEvent, s: FakeStream): void => {
    const turn = ++e.asked;
    const run = () => {
      e.done = turn;
      e.at = state.time;
    };
    s.queue.push({ what: "record", run });
  };
  const isDone = (e: FakeEvent): boolean => e.done === e.asked;
  const event = (handle: number, call: string): FakeEvent => state.get("event", handle, call);
  return {
    cuStreamCreate(out: Out) {
      demand(state.current !== undefined, "cuStreamCreate: no context is current");
      const stream: FakeStream = { kind: "stream", context: state.current, queue: [] };
      state.streams.push(stream);
      return first(out, state.add(stream));
    },
    /** Asking lets one thing happen, so that whoever asks in a loop gets there. */
    cuStreamQuery(handle: number) {
      const stream = state.stream(handle, "cuStreamQuery");
      for (const s of state.streams) state.advance(s);
      if (state.sticky !== 0) return state.sticky;
      return stream.queue.length === 0 ? CUDA.SUCCESS : CUDA.NOT_READY;
    },
    cuStreamSynchronize(handle: number) {
      const stream = state.stream(handle, "cuStreamSynchronize");
      state.drain(() => stream.queue.length === 0);
      return state.sticky;
    },
    cuStreamWaitEvent(handle: number, e: number, flags: number) {
      demand(flags === 0, "cuStreamWaitEvent: flags");
      const it = event(e, "cuStreamWaitEvent");
      const turn = it.asked;
      demand(turn > 0, "cuStreamWaitEvent: an event that was never recorded");
      const ready = () => it.done >= turn;
      state.stream(handle, "cuStreamWaitEvent").queue.push({ what: "wait", ready, run() {} });
      return CUDA.SUCCESS;
    },
    cuEventCreate(out: Out, flags: number) {
      demand(flags === 0 || flags === 2, "cuEventCreate: flags");
      return first(out, state.add({ kind: "event", timed: flags === 0, asked: 0, done: 0, at: 0 }));
    },
    cuEventRecord(e: number, s: number) {
      record(event(e, "cuEventRecord"), state.stream(s, "cuEventRecord"));
      return CUDA.SUCCESS;
    },
    cuEventQuery: (e: number) => (isDone(event(e, "cuEventQuery")) ? CUDA.SUCCESS : CUDA.NOT_READY),
    cuEventSynchronize(e: number) {
      const it = event(e, "cuEventSynchronize");
      state.drain(() => isDone(it) || state.sticky !== 0);
      return state.sticky;
    },
    cuEventElapsedTime(out: Out, a: number, b: number) {
      const [start, end] = [event(a, "cuEventElapsedTime"), event(b, "cuEventElapsedTime")];
      for (const e of [start, end])
        demand(e.timed && e.asked > 0 && isDone(e), "cuEventElapsedTime: an event without a time");
      return first(out, end.at - start.at);
    },
  };
}

function modules(state: FakeState) {
  return {
    cuModuleLoadData(out: Out, image: Uint8Array) {
      const kernel = state.kernels.ofImage(image);
      return kernel === undefined ? 200 : first(out, state.add({ kind: "module", kernel }));
    },
    cuModuleUnload(module: number) {
      state.get("module", module, "cuModuleUnload");
      state.things.delete(module);
      return CUDA.SUCCESS;
    },
    cuModuleGetFunction(out: Out, module: number, name: string) {
      const { kernel } = state.get("module", module, "cuModuleGetFunction");
      demand(kernel.name === name, `cuModuleGetFunction: it has ${kernel.name}, not ${name}`);
      const context = state.current as FakeContext;
      return first(out, state.add({ kind: "function", shared: 49_152, context, kernel }));
    },
    cuFuncGetAttribute(out: Out, which: number, f: number) {
      state.get("function", f, "cuFuncGetAttribute");
      demand(which === 0, "cuFuncGetAttribute: the most threads");
      return first(out, 1024);
    },
    cuFuncSetAttribute(f: number, which: number, value: number) {
      demand(which === 8 && value <= 101_376, "cuFuncSetAttribute: shared memory that there is");
      state.get("function", f, "cuFuncSetAttribute").shared = value;
      return CUDA.SUCCESS;
    },
    cuLaunchKernel(
      f: number,
      gx: number,
      gy: number,
      gz: number,
      lx: number,
      ly: number,
      lz: number,
      shared: number,
      stream: number,
      params: number,
      extra: number,
    ) {
      const fn = state.get("function", f, "cuLaunchKernel");
      const { kernel, context } = fn;
      demand(context === state.current, "cuLaunchKernel: a function of another context");
      demand(params === 0, "cuLaunchKernel: arguments come as one block");
      checkShared(fn, shared);
      const [grid, block] = [
        [gx, gy, gz],
        [lx, ly, lz],
      ];
      const status = checkSizes(grid, block);
      if (status !== CUDA.SUCCESS) return status;
      const args = readExtra(state, extra).slice();
      const run = () => state.launch(kernel, args, grid, block);
      state.stream(stream, "cuLaunchKernel").queue.push({ what: kernel.name, run });
      return CUDA.SUCCESS;
    },
  };
}

/** A kernel gets what its text asks for, if it was allowed to. */
export function checkShared({ kernel, shared: most }: FakeFunction, given: number): void {
  demand(
    given === kernel.shared,
    `${kernel.name}: ${given} bytes of shared memory, it takes ${kernel.shared}`,
  );
  demand(given <= most, `${kernel.name}: ${given} bytes of shared memory, it may have ${most}`);
}

/** What the driver refuses: empty grids, more than 1024 threads, more than 65535 in y and z. */
export function checkSizes(grid: readonly number[], block: readonly number[]): number {
  const [gx = 0, gy = 0, gz = 0] = grid;
  const isGrid = gx > 0 && gy > 0 && gz > 0 && gx < 2 ** 31 && gy <= 65535 && gz <= 65535;
  const threads = block.reduce((a, b) => a * b, 1);
  return isGrid && threads > 0 && threads <= 1024 && (block[2] ?? 1) <= 64 ? CUDA.SUCCESS : 1;
}

/** The block of arguments that a list names. */
export function readExtra(state: FakeState, extra: number): Uint8Array {
  const list = state.range(extra, 40, "extra");
  const words = new BigUint64Array(list.buffer, list.byteOffset, 5);
  demand(words[0] === 1n && words[2] === 2n && words[4] === 0n, "extra: pointer, size, end");
  const at = state.range(Number(words[3]), 8, "extra: the size");
  const size = Number(new BigUint64Array(at.buffer, at.byteOffset, 1)[0]);
  demand(size <= 4096, `extra: ${size} bytes of arguments`);
  return size === 0 ? new Uint8Array(0) : state.range(Number(words[1]), size, "extra: the arguments");
}
