// A Buffer is room for `size` elements on a device: described first, allocated later, freed when the last
// user is collected (or earlier by `dispose`). Copies between buffers are the runners' business (runner.ts).

import { type DType, type DTypeLike, type NumberArray, type TypedArray, toDType } from "../dtype.ts";
import { ArgumentError, DeviceError } from "../errors.ts";
import { getOrMake, type MaybePromise, runAsync, runSync, type Step, settle } from "../helpers.ts";
import { canonicalBytes, decodeArray } from "../hostarrays.ts";
import { allocOn, freeOn } from "./cache.ts";
import { GlobalCounters } from "./counters.ts";
import type { Compiled, Handle } from "./device.ts";
import { canonicalize, Device } from "./registry.ts";

interface Allocation {
  readonly device: Compiled;
  readonly handle: Handle;
  readonly nbytes: number;
  /** bytes of memory that it takes: a file takes none */
  readonly memory: number;
  /** the memory was there already */
  readonly adopted: boolean;
}

function release({ device, handle, nbytes, memory, adopted }: Allocation): void {
  if (adopted) device.allocator.free(handle, nbytes);
  else freeOn(device, handle, nbytes);
  GlobalCounters.allocated(device.name, memory, -1);
  const pressure = pressureOn(device);
  pressure.bytes = Math.max(0, pressure.bytes - memory);
  many.buffers = Math.max(0, many.buffers - 1);
}
const finaliser = new FinalizationRegistry<Allocation>(release);

/**
 * By device: what was allocated since the collector was last pushed and is not freed
 * again, and what was held then.
 */
const pressures = new Map<Compiled, { bytes: number; floor: number }>();
const pressureOn = (device: Compiled) => getOrMake(pressures, device, () => ({ bytes: 0, floor: 0 }));
/** The same on all devices, in number. */
const FEW = 1000;
const many = { buffers: 0, floor: FEW };

/** Bytes by which memory seems to grow in each task while the collector is pushed, and in all. */
const BALLAST = 128 << 20;
const MAX_BALLAST = 4 * 2 ** 30;

/** How often memory was written by hand, which no graph shows. */
export const handWrites = { count: 0 };

/** Room for `size` elements on a device. */
export class Buffer {
  static readonly name: string = "Buffer";
  readonly device: string;
  readonly size: number;
  readonly dtype: DType;
  /** the buffer whose memory this one lies in, and where */
  readonly base: Buffer | undefined;
  readonly offset: number;
  #allocation: Allocation | undefined;
  #disposed = false;

  constructor(device: string, size: number, dtype: DTypeLike, base?: Buffer, offset = 0) {
    if (!Number.isSafeInteger(size) || size < 0) {
      throw new ArgumentError(`Buffer: size is ${size}, expected a count of elements: an integer from 0 up`);
    }
    this.device = canonicalize(device);
    this.size = size;
    this.dtype = toDType(dtype);
    this.base = base;
    this.offset = offset;
    if (base !== undefined && !(offset >= 0 && offset + this.nbytes <= base.nbytes)) {
      throw new ArgumentError(`Buffer: ${this.nbytes} bytes from ${offset} on do not fit into ${base}`);
    }
  }

  get nbytes(): number {
    return this.dtype.bytesFor(this.size);
  }
  get isAllocated(): boolean {
    return !this.#disposed && (this.base?.isAllocated ?? this.#allocation !== undefined);
  }

  /**
   * Makes room on the device, filled with zeros. A device whose memory is host arrays, such as EXT, takes
   * `data` as the memory itself: a typed array or another view of as many bytes.
   */
  allocate(data?: ArrayBufferView): this {
    return this.#allocate(data, true);
  }
  /** Room for a result: what was there before is about to be overwritten. */
  ensureAllocated(): this {
    return this.isAllocated ? this : this.#allocate(undefined, false);
  }
  #allocate(data: ArrayBufferView | undefined, zeroed: boolean): this {
    if (this.isAllocated) {
      throw new ArgumentError(`allocate: ${this} is allocated already; fill it with copyin()`);
    }
    // new memory would have other contents: a program that still counts on the old ones must hear of it
    if (this.#disposed) throw new DeviceError(`${this} was disposed of; make a new tensor instead`);
    if (this.base !== undefined) {
      this.base.#allocate(data, zeroed);
      return this;
    }
    const device = Device.get(this.device);
    const { nbytes, dtype } = this;
    const adopted = data !== undefined;
    const handle = adopted ? this.#adopt(device, data) : allocOn(device, nbytes, zeroed, dtype);
    const memory = Device.storageOf(device.name) === "file" ? 0 : nbytes;
    const allocation = { device, handle, nbytes, memory, adopted };
    this.#allocation = allocation;
    finaliser.register(this, allocation, allocation);
    GlobalCounters.allocated(device.name, memory, 1);
    pressureOn(device).bytes += memory;
    many.buffers++;
    return this;
  }

  #adopt({ allocator }: Compiled, data: ArrayBufferView): Handle {
    const bytes = this.#bytesOf("allocate", data);
    if (allocator.view(bytes, this.nbytes) === bytes) return bytes;
    throw new ArgumentError(`allocate: ${this.device} takes no array; call allocate(), then copyin()`);
  }
  /** The bytes of an array that is to fill the buffer. */
  #bytesOf(what: string, data: ArrayBufferView): Uint8Array {
    const isView = ArrayBuffer.isView(data);
    if (isView && data.byteLength === this.nbytes)
      return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    const got = isView ? `${data.byteLength} bytes` : typeof data;
    throw new ArgumentError(
      `${what}: got ${got}, expected a typed array of the ${this.nbytes} bytes of ${this}`,
    );
  }

  /** Frees now instead of when collected. A buffer that something still reads must not be disposed of. */
  dispose(): void {
    // a part of other memory is given back with it
    if (this.base !== undefined) this.#disposed = true;
    const allocation = this.#allocation;
    if (allocation === undefined) return;
    this.#allocation = undefined;
    this.#disposed = true;
    finaliser.unregister(allocation);
    release(allocation);
  }

  /** What the device's programs take. */
  get handle(): Handle {
    if (this.base !== undefined && !this.#disposed)
      return Device.get(this.device).allocator.offset(this.base.handle, this.nbytes, this.offset);
    if (this.#allocation === undefined) {
      throw new DeviceError(`${this} has no memory: it was never allocated, or it was disposed of`);
    }
    return this.#allocation.handle;
  }

  copyin(src: ArrayBufferView): MaybePromise<void> {
    handWrites.count++;
    return this.fill(src);
  }
  /** The same for the engine, whose writes all follow from a graph. */
  fill(src: ArrayBufferView): MaybePromise<void> {
    const bytes = this.#bytesOf("copyin", src);
    return Device.get(this.device).allocator.copyin(this.handle, canonicalBytes(this.dtype, bytes));
  }

  /**
   * The bytes, without a copy where the device lives in host memory. Valid until the next allocation there.
   */
  *read(zeroCopy = false): Step<Uint8Array> {
    if (this.nbytes === 0) return new Uint8Array(0);
    const device = Device.get(this.device);
    yield* settle(device.synchronize());
    const window = device.allocator.view(this.handle, this.nbytes);
    if (window !== undefined) return this.#canonical(zeroCopy ? window : window.slice());
    const bytes = new Uint8Array(this.nbytes);
    yield* settle(device.allocator.copyout(bytes, this.handle));
    return this.#canonical(bytes);
  }
  /** What a kernel wrote is canonical; a file or an array of the user may hold any bytes. */
  #canonical(bytes: Uint8Array): Uint8Array {
    return Device.computes(this.device) ? bytes : canonicalBytes(this.dtype, bytes);
  }

  /** A copy of the contents as a typed array. */
  async data<T extends TypedArray = NumberArray>(): Promise<T> {
    return decodeArray(this.dtype, await runAsync(this.read()), this.size) as T;
  }
  dataSync<T extends TypedArray = NumberArray>(): T {
    return decodeArray(this.dtype, runSync(this.read(), "dataSync"), this.size) as T;
  }
  /** The raw bytes, copied to the host. */
  asBuffer(): Uint8Array {
    return runSync(this.read(), "asBuffer");
  }

  toString(): string {
    return `<buf ${this.device} size:${this.size} dtype:${this.dtype}>`;
  }
}

/**
 * The engine hears little of device memory: a Buffer object is small whatever it holds. So when much more was
 * allocated than freed since the last look, the collector is pushed, and collected Buffers reach their
 * finaliser in the tasks that pass meanwhile. In a synchronous loop no finaliser can run.
 */
export const relievePressure = (): Promise<void> | undefined => (isPressed() ? relieve() : undefined);
async function relieve(): Promise<void> {
  let bytes = 0;
  for (const pressure of pressures.values()) {
    bytes += pressure.bytes;
    pressure.bytes = 0;
  }
  // most of it: a few small ones that are freed are not enough
  const { memUsed, buffers } = GlobalCounters;
  const goal = { memUsed: memUsed - bytes / 2, buffers: buffers - many.buffers / 2 };
  many.buffers = 0;
  await pushCollector(() => GlobalCounters.memUsed <= goal.memUsed && GlobalCounters.buffers <= goal.buffers);
  for (const [device, pressure] of pressures) pressure.floor = GlobalCounters.memUsedOn(device.name);
  many.floor = Math.max(FEW, GlobalCounters.buffers);
}
function isPressed(): boolean {
  if (many.buffers >= many.floor) return true;
  for (const [device, { bytes, floor }] of pressures) {
    if (bytes >= Math.max(device.allocator.slack, floor)) return true;
  }
  return false;
}

const nextTask = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

/** Tells when a collection is through. */
const canaries = new FinalizationRegistry<{ isGone: boolean }>((canary) => {
  canary.isGone = true;
});
/**
 * Something that nobody holds. A new object would not do: V8 frees young ones in small collections, which
 * leave the old ones alone. Its symbols are old from the start; where a registry takes none, the patience
 * ends the wait.
 */
function dropCanary(): { readonly isGone: boolean } {
  const canary = { isGone: false };
  try {
    canaries.register(Symbol() as unknown as object, canary);
  } catch {}
  return canary;
}
/** Untouched memory, which costs nothing but counts; fewer bytes where there is no room for as many. */
function ballast(bytes: number): ArrayBuffer | undefined {
  try {
    return new ArrayBuffer(bytes);
  } catch {
    return undefined;
  }
}

/**
 * Until it is enough, or there is nothing left. What counts is memory that is held: the engine frees what was
 * dropped at once in a small collection. It begins a full one when that has grown by enough, the more the
 * more there is already, and ends it over several tasks.
 */
async function pushCollector(isEnough: () => boolean, patience = 16): Promise<void> {
  // one that has begun already may miss what was dropped meanwhile
  for (let round = 0; round < 2 && !isEnough(); round++) {
    const canary = dropCanary();
    const held: unknown[] = [];
    for (let i = 0; i < patience && !isEnough() && !canary.isGone; i++) {
      if (held.length < MAX_BALLAST / BALLAST) held.push(ballast(BALLAST));
      await nextTask();
    }
  }
}

/** Whether it freed anything. */
export async function collectGarbage(): Promise<boolean> {
  const before = GlobalCounters.buffers;
  await pushCollector(() => GlobalCounters.buffers < before, 50);
  return GlobalCounters.buffers < before;
}
