// A device in one file: Device.register("TOY", openToy). Its "hardware" is a WebAssembly memory and two
// rings, one for kernels and one for copies, that do their commands one by one when they are given time.
// Everything else is what docs/guide/runtimes.md says a runtime has: signals, memory, programs, queues.

import { Device, DeviceError, OutOfMemoryError, Tensor } from "gradloom";
import {
  type BoundStream,
  type CommandArgs,
  type CommandName,
  HCQCompatAllocator,
  type HCQCompatAllocRes,
  HCQCompatCompiled,
  HCQProgram,
  type HCQSignal,
  type HWCommandQueue,
  HWComputeQueue,
  HWCopyQueue,
  isText,
  type KernArgs,
  type QueueBackend,
  type Source,
} from "gradloom/device";
import { WASMRenderer } from "gradloom/render";

// ---- the hardware ----

const [PAGE, PAGES, MAX_PAGES] = [65536, 1024, 65536];
const SCRATCH_BYTES = WASMRenderer.sharedMax;
type Action = () => boolean;
/** What commands point at: a command is the number of one of these. */
const actions: Action[] = [];
const rings = { compute: [] as number[][], copy: [] as number[][] };

/** Does the next command of each ring; false: none of them could go on. */
function tick(): boolean {
  let hasMoved = false;
  for (const ring of Object.values(rings)) {
    const stream = ring[0];
    if (stream === undefined) continue;
    // a wait whose signal is not there yet stays where it is
    while (stream.length > 0 && (actions[stream[0] as number] as Action)()) {
      stream.shift();
      hasMoved = true;
    }
    if (stream.length === 0) ring.shift();
  }
  return hasMoved;
}

// ---- signals ----

interface ToySignal extends HCQSignal {
  value: number;
  time: number;
}
const signal = (label: string, value = 0): ToySignal => ({ label, value, time: 0 });

// ---- queues ----

const DO: { readonly [K in CommandName]: (args: CommandArgs[K]) => Action } = {
  signal:
    ({ signal: s, value }) =>
    () => {
      (s as ToySignal).value = value;
      return true;
    },
  wait:
    ({ signal: s, value }) =>
    () =>
      (s as ToySignal).value >= value,
  timestamp:
    ({ signal: s }) =>
    () => {
      (s as ToySignal).time = performance.now();
      return true;
    },
  memoryBarrier: () => () => true,
  exec:
    ({ program, kernargs, globalSize }) =>
    () => {
      const { fn, isPart } = program as ToyProgram;
      fn(...(kernargs as ToyArgs).words, ...(isPart ? [0, globalSize[0] ?? 1] : []));
      return true;
    },
  copy:
    ({ dest, src, nbytes }) =>
    () => {
      const { bytes } = dest.device as ToyDevice;
      bytes.copyWithin(Number(dest.vaAddr), Number(src.vaAddr), Number(src.vaAddr) + nbytes);
      return true;
    },
};
const backend: QueueBackend = {
  // one word a command: which action it is
  encode: (name, args) => [actions.push((DO[name] as (a: typeof args) => Action)(args)) - 1],
  bind: (_, queue): BoundStream => ({
    patch: (offset, word) => {
      queue.q[offset] = word;
    },
  }),
  submit: (_, queue) => void rings[queue.kind].push([...queue.q]),
  allocMarks: () => ({ start: signal("start"), end: signal("end") }),
  show: (queue: HWCommandQueue) => queue.commands.map((c) => c.name).join("\n"),
};

// ---- programs ----

class ToyArgs implements KernArgs {
  readonly words: number[];
  readonly #buffers: number;
  constructor(handles: readonly HCQCompatAllocRes[], vals: readonly number[]) {
    this.words = [...handles.map((h) => Number(h.vaAddr)), ...vals];
    this.#buffers = handles.length;
  }
  setBuffer(i: number, handle: unknown): void {
    this.words[i] = Number((handle as HCQCompatAllocRes).vaAddr);
  }
  setVal(i: number, value: number): void {
    this.words[this.#buffers + i] = value;
  }
  free(): void {}
}
class ToyProgram extends HCQProgram<HCQCompatAllocRes> {
  readonly name: string;
  readonly device: ToyDevice;
  readonly fn: (...words: number[]) => void;
  readonly isPart: boolean;
  constructor(device: ToyDevice, name: string, code: Uint8Array<ArrayBuffer>, isPart: boolean) {
    super();
    this.name = name;
    this.device = device;
    this.isPart = isPart;
    const imports = { env: { memory: device.memory, scratch: PAGE } };
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(code), imports);
    this.fn = exports[name] as (...words: number[]) => void;
  }
  allocKernargs(handles: readonly HCQCompatAllocRes[], vals: readonly number[]): KernArgs {
    return new ToyArgs(handles, vals);
  }
  protected transientKernargs = this.allocKernargs;
}

// ---- memory ----

class ToyAllocator extends HCQCompatAllocator {
  declare readonly device: ToyDevice;
  #next = PAGE + SCRATCH_BYTES;
  alloc(nbytes: number): HCQCompatAllocRes {
    const size = Math.ceil((nbytes + 1) / this.offsetAlign) * this.offsetAlign;
    if (this.#next + size > PAGES * PAGE) throw new OutOfMemoryError(`TOY: no room for ${nbytes} bytes`);
    this.#next += size;
    return { device: this.device, vaAddr: this.#next - size, size: nbytes };
  }
  /** What was freed is kept by size for the next tensor (`recycles`); the rest is left to rest. */
  free(): void {}
  view({ vaAddr }: HCQCompatAllocRes, nbytes: number): Uint8Array {
    return this.device.bytes.subarray(Number(vaAddr), Number(vaAddr) + nbytes);
  }
  offset({ device, vaAddr }: HCQCompatAllocRes, size: number, byteOffset: number): HCQCompatAllocRes {
    return { device, vaAddr: Number(vaAddr) + byteOffset, size };
  }
  protected allocHost(nbytes: number) {
    const res = this.alloc(nbytes);
    return { res, bytes: this.view(res, nbytes) };
  }
}

// ---- the device ----

export class ToyDevice extends HCQCompatCompiled {
  readonly memory = new WebAssembly.Memory({ initial: PAGES, maximum: MAX_PAGES });
  readonly bytes = new Uint8Array(this.memory.buffer);
  readonly allocator = new ToyAllocator(this);
  readonly renderer = WASMRenderer;
  readonly space = rings;
  constructor(name: string) {
    super(name, [signal(`${name}.timeline`), signal(`${name}.shadow`)]);
  }
  compile(name: string, source: Source): ToyProgram {
    if (isText(source) || !(source.code instanceof Uint8Array)) throw new DeviceError("TOY runs WebAssembly");
    return new ToyProgram(this, name, source.code as Uint8Array<ArrayBuffer>, source.isPart);
  }
  computeQueue = (): HWComputeQueue => new HWComputeQueue(backend);
  copyQueue = (): HWCopyQueue => new HWCopyQueue(backend);
  allocSignal = (value = 0, label = "signal"): ToySignal => signal(label, value);
  freeSignal(): void {}
  readSignal = (s: HCQSignal): number => (s as ToySignal).value;
  readTimestamp = (s: HCQSignal): number => (s as ToySignal).time;
  setSignal(s: HCQSignal, value: number): void {
    (s as ToySignal).value = value;
  }
  waitSignal(s: HCQSignal, value: number): void {
    while ((s as ToySignal).value < value)
      if (!tick()) throw new DeviceError(`${this.name}: ${s.label} hangs`);
  }
  protected blockOn = this.waitSignal;
  gpu2cpuTime = (time: number): number => (performance.timeOrigin + time) * 1000;
  protected *peers(): Iterable<HCQCompatCompiled> {
    yield this;
  }
}

Device.register("TOY", (name) => new ToyDevice(name));

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const x = Tensor.arange(6, { device: "TOY" }).reshape(2, 3);
  console.log(await x.matmul(x.permute(1, 0)).tolist());
}
