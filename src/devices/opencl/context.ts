// One OpenCL device: its context, the queue that all of its work goes through in order, what it says of
// itself, the errors of calls, and waiting. Kernels fail later than the call that enqueued them: what ran
// since the last wait is kept, to say who may have done it.

import type { ImageLimits } from "../../codegen/target.ts";
import { DeviceError } from "../../errors.ts";
import { type MaybePromise, timestamp, waitable } from "../../helpers.ts";
import {
  CL,
  type ClArray,
  type ClCall,
  type ClCallArguments,
  type ClMaker,
  type ClMakerArguments,
  explain,
  type OpenClApi,
} from "./api.ts";

const DEVICE_TYPE_ALL = 0xffffffff;
const QUEUE_PROFILING = 2;
const TYPE_CPU = 2;
/** What clGetDeviceInfo is asked for. */
export const INFO = {
  TYPE: 0x1000,
  COMPUTE_UNITS: 0x1002,
  GROUP_SIZE: 0x1004,
  ITEM_SIZES: 0x1005,
  MAX_ALLOC: 0x1010,
  IMAGE_WIDTH: 0x1011,
  IMAGE_HEIGHT: 0x1012,
  HAS_IMAGES: 0x1016,
  PARAMETER_BYTES: 0x1017,
  BASE_ALIGN_BITS: 0x1019,
  FLOAT_CONFIG: 0x101b,
  FLOAT_LANES: 0x103a,
  GLOBAL_BYTES: 0x101f,
  LOCAL_BYTES: 0x1023,
  NAME: 0x102b,
  DRIVER_VERSION: 0x102d,
  EXTENSIONS: 0x1030,
} as const;

/** How many kernels are named when one of them failed. */
const SUSPECTS = 8;
/** Most waits are shorter than starting to wait on another thread. */
const SPIN_MS = 0.1;
const EVENT_STATUS = 0x11d3;
const COMPLETE = 0;

/** A call that has its status in the last parameter. */
type WithoutStatus<T extends readonly unknown[]> = T extends [...infer R, unknown] ? R : never;

export class ClContext {
  readonly api: OpenClApi;
  /** as in DEV: OPENCL:1 */
  readonly name: string;
  readonly device: bigint;
  readonly context: bigint;
  readonly queue: bigint;
  /** bytes: where a piece of a buffer may start */
  readonly baseAlign: number;
  readonly computeUnits: number;
  readonly #status = new Int32Array(1);
  /** whether anything was enqueued since the last wait that found all done */
  #isBusy = false;
  #recent: string[] = [];

  constructor(api: OpenClApi, name: string, ordinal: number) {
    this.api = api;
    this.name = name;
    const devices = devicesOf(api, name);
    const device = devices[ordinal];
    if (device === undefined) {
      const has =
        devices.length === 1 ? "one, OPENCL" : `${devices.length}, OPENCL to OPENCL:${devices.length - 1}`;
      throw new DeviceError(`${name}: there is no such OpenCL device; this machine has ${has}`);
    }
    this.device = device;
    this.context = this.make("clCreateContext", 0n, 1, BigUint64Array.of(device), 0n, 0n);
    this.queue = this.make("clCreateCommandQueue", this.context, device, QUEUE_PROFILING);
    this.baseAlign = this.number(INFO.BASE_ALIGN_BITS) / 8;
    this.computeUnits = this.number(INFO.COMPUTE_UNITS);
  }

  // ---- calls ----

  call<K extends ClCall>(name: K, ...args: ClCallArguments<K>): void {
    const status = (this.api[name] as (...xs: unknown[]) => number)(...args);
    if (status !== CL.SUCCESS) throw this.failure(name, status);
  }
  make<K extends ClMaker>(name: K, ...args: WithoutStatus<ClMakerArguments<K>>): bigint {
    const [made, status] = this.tryToMake(name, ...args);
    if (status !== CL.SUCCESS) throw this.failure(name, status);
    return made;
  }
  tryToMake<K extends ClMaker>(
    name: K,
    ...args: WithoutStatus<ClMakerArguments<K>>
  ): [made: bigint, status: number] {
    this.#status[0] = CL.SUCCESS;
    const made = (this.api[name] as (...xs: unknown[]) => bigint)(...args, this.#status);
    return [made, this.#status[0] as number];
  }
  failure(what: string, status: number): DeviceError {
    const kernels = this.#recent.length === 0 ? "" : `; the last kernels were ${this.#recent.join(", ")}`;
    return new DeviceError(`${this.name}: ${what}: ${explain(status)}${kernels}`);
  }

  // ---- what the device says of itself ----

  number(which: number): number {
    const out = new BigUint64Array(1);
    this.call("clGetDeviceInfo", this.device, which, 8, out, null);
    return Number(out[0]);
  }
  numbers(which: number, count: number): number[] {
    const out = new BigUint64Array(count);
    this.call("clGetDeviceInfo", this.device, which, 8 * count, out, null);
    return Array.from(out, Number);
  }
  text(which: number): string {
    return textOf((bytes, out, size) => this.call("clGetDeviceInfo", this.device, which, bytes, out, size));
  }
  /** the largest 2-D image in pixels; undefined: it has no images */
  get images(): ImageLimits | undefined {
    if (this.number(INFO.HAS_IMAGES) === 0) return undefined;
    return { width: this.number(INFO.IMAGE_WIDTH), height: this.number(INFO.IMAGE_HEIGHT) };
  }
  get isCpu(): boolean {
    return (this.number(INFO.TYPE) & TYPE_CPU) !== 0;
  }

  // ---- waiting ----

  /** Something was enqueued; a kernel has a name. */
  enqueued(kernel?: string): void {
    this.#isBusy = true;
    if (kernel === undefined || this.#recent.at(-1) === kernel) return;
    if (this.#recent.length >= SUSPECTS) this.#recent.shift();
    this.#recent.push(kernel);
  }
  synchronize(): MaybePromise<void> {
    if (!this.#isBusy) return undefined;
    const event = this.marker();
    try {
      const start = timestamp();
      while (timestamp() - start < SPIN_MS) {
        if (this.#isComplete(event)) return this.#settled();
      }
    } finally {
      this.call("clReleaseEvent", event);
    }
    return waitable(this.#finish(), () => this.block());
  }
  async #finish(): Promise<void> {
    const status = await this.api.finishAside(this.queue);
    if (status !== CL.SUCCESS) throw this.failure("clFinish", status);
    // what was enqueued meanwhile may not be done: the next wait asks
    if (this.#isDoneNow()) this.#settled();
  }
  /** Stops the thread until all is done. */
  block(): void {
    if (!this.#isBusy) return;
    this.call("clFinish", this.queue);
    this.#settled();
  }
  #settled(): void {
    this.#isBusy = false;
    this.#recent = [];
  }
  /** An event of the queue's end, as it is now; the caller releases it. */
  marker(): bigint {
    const out = new BigUint64Array(1);
    this.call("clEnqueueMarkerWithWaitList", this.queue, 0, 0n, out);
    this.call("clFlush", this.queue);
    return out[0] as bigint;
  }
  #isDoneNow(): boolean {
    const event = this.marker();
    try {
      return this.#isComplete(event);
    } finally {
      this.call("clReleaseEvent", event);
    }
  }
  #isComplete(event: bigint): boolean {
    const out = new Int32Array(1);
    this.call("clGetEventInfo", event, EVENT_STATUS, 4, out, null);
    const status = out[0] as number;
    if (status < 0) throw this.failure("a kernel failed", status);
    return status === COMPLETE;
  }
}

/** A text of a device or program, which comes with a zero behind it. */
export function textOf(get: (bytes: number, out: ClArray | null, size: ClArray | null) => void): string {
  const size = new BigUint64Array(1);
  get(0, null, size);
  const bytes = new Uint8Array(Number(size[0]));
  if (bytes.length > 0) get(bytes.length, bytes, null);
  const end = bytes.indexOf(0);
  return new TextDecoder().decode(end < 0 ? bytes : bytes.subarray(0, end)).trim();
}

/** The devices of all platforms, GPUs before CPUs. */
function devicesOf(api: OpenClApi, name: string): readonly bigint[] {
  const count = new Uint32Array(1);
  const status = api.clGetPlatformIDs(0, null, count);
  const platforms = new BigUint64Array(count[0] as number);
  if (platforms.length > 0) api.clGetPlatformIDs(platforms.length, platforms, null);
  const devices = [...platforms].flatMap((platform) => {
    if (api.clGetDeviceIDs(platform, DEVICE_TYPE_ALL, 0, null, count) !== CL.SUCCESS) return [];
    const found = new BigUint64Array(count[0] as number);
    api.clGetDeviceIDs(platform, DEVICE_TYPE_ALL, found.length, found, null);
    return [...found];
  });
  if (devices.length === 0) {
    throw new DeviceError(
      `${name}: OpenCL is here, but it finds no device${status < 0 ? ` (${explain(status)})` : ""}; install a driver: ` +
        "the GPU's own, or pocl-opencl-icd, which runs on the CPU (clinfo lists them)",
    );
  }
  const isCpu = (device: bigint): number => {
    const type = new BigUint64Array(1);
    api.clGetDeviceInfo(device, INFO.TYPE, 8, type, null);
    return Number((type[0] as bigint) & BigInt(TYPE_CPU));
  };
  return devices.sort((a, b) => isCpu(a) - isCpu(b));
}
