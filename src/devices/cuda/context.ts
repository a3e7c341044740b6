// One GPU as the driver sees it: its context, the stream that all of its work goes through, the errors of
// calls, and waiting. Work on a stream runs in the order in which it was enqueued, so memory changes in that
// order, too. Kernels fail later than the call that enqueued them: what ran since the last time all was well
// is kept, to say who may have done it.

import { DeviceError } from "../../errors.ts";
import { type MaybePromise, timestamp, waitable } from "../../helpers.ts";
import { ATTRIBUTE, CUDA, type CudaDriver, type DriverCall, type DriverFunctions } from "./driver.ts";

/** What a kernel is called and was made of, for messages. */
export interface Suspect {
  readonly name: string;
  readonly source: string;
}

/** What one GPU has to know of another. */
interface CudaPeer {
  readonly context: CudaContext;
  readonly allocator: { allowAccess(peer: CudaContext): void };
}

/** The driver in this process, and which context its calls go to. All CUDA devices share it. */
export class CudaSystem {
  readonly driver: CudaDriver;
  /** those that are open */
  readonly devices = new Set<CudaPeer>();
  #current = 0;

  constructor(driver: CudaDriver, device: string) {
    this.driver = driver;
    const status = driver.cuInit(0);
    if (status === CUDA.NO_DEVICE) {
      throw new DeviceError(
        `${device}: the NVIDIA driver is here, but it finds no GPU; is it visible (CUDA_VISIBLE_DEVICES)?`,
      );
    }
    if (status !== CUDA.SUCCESS) {
      const why = this.explain(status);
      throw new DeviceError(
        `${device}: the NVIDIA driver does not start: ${why}; see whether nvidia-smi works`,
      );
    }
  }

  /** The driver keeps one context a thread: calls that need one come after this. */
  enter(context: number): void {
    if (this.#current === context) return;
    const status = this.driver.cuCtxSetCurrent(context);
    if (status !== CUDA.SUCCESS) throw new DeviceError(`CUDA: cuCtxSetCurrent: ${this.explain(status)}`);
    this.#current = context;
  }

  /** A CUresult in words: `CUDA_ERROR_ILLEGAL_ADDRESS, an illegal memory access was encountered`. */
  explain(status: number): string {
    const [name, text]: [(string | null)[], (string | null)[]] = [[null], [null]];
    this.driver.cuGetErrorName(status, name);
    this.driver.cuGetErrorString(status, text);
    return `${name[0] ?? `error ${status}`}, ${text[0] ?? "which this driver does not know"}`;
  }

  /** How many GPUs there are. */
  get count(): number {
    const out = new Int32Array(1);
    const status = this.driver.cuDeviceGetCount(out);
    if (status !== CUDA.SUCCESS) throw new DeviceError(`CUDA: cuDeviceGetCount: ${this.explain(status)}`);
    return out[0] as number;
  }
}

/** How many kernels are named when one of them failed. */
const SUSPECTS = 8;
/** Most waits are shorter than a turn of the event loop. */
const SPIN_MS = 0.2;
/** A wait of this length may cost a millisecond more, and leave the processor alone. */
const PATIENCE_MS = 50;

const EVENT_ORDER_ONLY = 2;
const STREAM_NON_BLOCKING = 1;

export class CudaContext {
  readonly system: CudaSystem;
  readonly driver: CudaDriver;
  /** as in DEV: CUDA:1 */
  readonly name: string;
  readonly ordinal: number;
  readonly handle: number;
  readonly stream: number;
  /** 90 for compute capability 9.0 */
  readonly arch: number;
  /** what failed took the context, and all memory in it, along */
  #dead: DeviceError | undefined;
  #recent: Suspect[] = [];
  #launches = 0;
  #retired: (() => void)[] = [];
  #order = 0;
  readonly #out = new BigUint64Array(1);

  constructor(system: CudaSystem, name: string, ordinal: number) {
    const { driver } = system;
    this.system = system;
    this.driver = driver;
    this.name = name;
    const { count } = system;
    if (!(ordinal < count)) {
      const has = count === 1 ? "one GPU, CUDA" : `${count} GPUs, CUDA to CUDA:${count - 1}`;
      throw new DeviceError(`${name}: there is no such GPU; this machine has ${has}`);
    }
    const device = new Int32Array(1);
    this.#check("cuDeviceGet", driver.cuDeviceGet(device, ordinal));
    this.ordinal = device[0] as number;
    this.handle = this.#made("cuDevicePrimaryCtxRetain", (out) =>
      driver.cuDevicePrimaryCtxRetain(out, this.ordinal),
    );
    system.enter(this.handle);
    this.arch = this.attribute(ATTRIBUTE.MAJOR) * 10 + this.attribute(ATTRIBUTE.MINOR);
    this.stream = this.make("cuStreamCreate", STREAM_NON_BLOCKING);
  }

  /** A driver's call on this GPU; an error says which. */
  call<K extends DriverCall>(name: K, ...args: globalThis.Parameters<DriverFunctions[K]>): void {
    this.enter();
    this.#check(name, (this.driver[name] as (...xs: unknown[]) => number)(...args));
  }
  /** The handle or address that a call makes: it leaves it in its first parameter. */
  make<K extends Makes>(name: K, ...args: Rest<globalThis.Parameters<DriverFunctions[K]>>): number {
    this.enter();
    return this.#made(name, (out) => (this.driver[name] as (...xs: unknown[]) => number)(out, ...args));
  }
  #made(name: DriverCall, call: (out: BigUint64Array) => number): number {
    this.#out[0] = 0n;
    this.#check(name, call(this.#out));
    return Number(this.#out[0]);
  }
  attribute(which: number): number {
    const out = new Int32Array(1);
    this.call("cuDeviceGetAttribute", out, which, this.ordinal);
    return out[0] as number;
  }

  /** Makes this GPU the one that calls go to; refuses where an earlier failure has ended its context. */
  enter(): void {
    if (this.#dead !== undefined) throw this.#dead;
    this.system.enter(this.handle);
  }
  get isDead(): boolean {
    return this.#dead !== undefined;
  }
  #check(name: DriverCall, status: number): void {
    if (status !== CUDA.SUCCESS) throw this.failure(name, status);
  }

  // ---- errors ----

  /** The kernel was enqueued: should something fail later, it may have been this one. */
  launched(suspect: Suspect): void {
    this.#recent[this.#launches++ % SUSPECTS] = suspect;
  }

  /** The error for a call that failed. Failures of kernels end the context; others leave it as it was. */
  failure(what: string, status: number): DeviceError {
    const why = this.system.explain(status);
    if (!isFatal(status)) return new DeviceError(`${this.name}: ${what}: ${why}`);
    this.#dead ??= new DeviceError(`${this.name}: a kernel failed: ${why}. ${this.#blame()}`);
    return this.#dead;
  }
  #blame(): string {
    const lost = "All memory of this GPU is lost to this process: start it again.";
    const last = this.#launches;
    const first = Math.max(0, last - SUSPECTS);
    const names = Array.from(
      { length: last - first },
      (_, i) => this.#recent[(first + i) % SUSPECTS] as Suspect,
    );
    const [only] = names;
    if (only === undefined) return `No kernel of ours ran since the last wait. ${lost}`;
    if (names.length === 1) return `It was ${only.name}. ${lost}\nsource:\n${only.source}`;
    const more = first > 0 ? `the last ${SUSPECTS} of ${last} kernels` : "one of these kernels";
    return `It was ${more}: ${names.map((s) => s.name).join(", ")}; DEBUG=2 waits for each and names it. ${lost}`;
  }

  // ---- waiting ----

  /** Something to do when all that is enqueued now is done, at the latest with the next wait. */
  retire(release: () => void): void {
    this.#retired.push(release);
  }

  #isDone(): boolean {
    this.enter();
    const status = this.driver.cuStreamQuery(this.stream);
    if (status === CUDA.NOT_READY) return false;
    this.#check("cuStreamQuery", status);
    this.#settled();
    return true;
  }
  #settled(): void {
    this.#recent = [];
    this.#launches = 0;
    const retired = this.#retired;
    this.#retired = [];
    for (const release of retired) release();
  }

  synchronize(): MaybePromise<void> {
    const start = timestamp();
    do {
      if (this.#isDone()) return undefined;
    } while (timestamp() - start < SPIN_MS);
    return waitable(this.#poll(start), () => this.block());
  }
  async #poll(start: number): Promise<void> {
    while (!this.#isDone()) {
      const late = timestamp() - start > PATIENCE_MS;
      await new Promise<void>((next) => (late ? void setTimeout(next, 1) : void setImmediate(next)));
    }
  }
  /** Stops the thread until all is done. */
  block(): void {
    this.call("cuStreamSynchronize", this.stream);
    this.#settled();
  }

  /** An event without a time, which tells other streams how far this one is. */
  newEvent(): number {
    return this.make("cuEventCreate", EVENT_ORDER_ONLY);
  }
  /** What this GPU does from now on comes after what the other was given so far. */
  waitFor(other: CudaContext): void {
    if (other === this) return;
    if (other.#order === 0) other.#order = other.newEvent();
    other.call("cuEventRecord", other.#order, other.stream);
    this.call("cuStreamWaitEvent", this.stream, other.#order, 0);
  }
}

type Rest<T extends readonly unknown[]> = T extends [unknown, ...infer R] ? R : never;
type Makes =
  | "cuMemAlloc_v2"
  | "cuMemAllocAsync"
  | "cuMemHostAlloc"
  | "cuStreamCreate"
  | "cuEventCreate"
  | "cuModuleLoadData"
  | "cuModuleGetFunction"
  | "cuGraphCreate"
  | "cuGraphAddKernelNode"
  | "cuGraphAddMemcpyNode"
  | "cuGraphAddEventRecordNode"
  | "cuGraphInstantiateWithFlags"
  | "cuDeviceGetDefaultMemPool";

/** Failures of running kernels (illegal address, timeout, assert, bad instruction …) and of the hardware. */
const FATAL = new Set([214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721]);
const isFatal = (status: number): boolean => FATAL.has(status);
