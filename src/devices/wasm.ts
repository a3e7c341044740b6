// WASM: the default device, in Node and in a page. An HCQ device whose hardware is a pool of workers, and the calling
// thread itself, over one memory that all WASM devices share (wasm/). Kernels are modules of one function on it.

import type { Renderer, Source } from "../codegen/target.ts";
import type { DeviceError } from "../errors.ts";
import { InternalError, OutOfMemoryError } from "../errors.ts";
import type { MaybePromise } from "../helpers.ts";
import { hasRelaxedSimd, wasmRenderer } from "../render/wasm/wasm.ts";
import { AddressSpace } from "../runtime/allocator.ts";
import { GlobalCounters } from "../runtime/counters.ts";
import { HCQCompatAllocator, type HCQCompatAllocRes } from "../runtime/hcq/allocator.ts";
import { HCQCompatCompiled, type HCQSignal } from "../runtime/hcq/device.ts";
import { HWComputeQueue, HWCopyQueue } from "../runtime/hcq/queue.ts";
import { Hardware, type Ring, type Tenant } from "./wasm/hardware.ts";
import { KernelRecords, WasmProgram } from "./wasm/program.ts";
import { type StreamTarget, WasmQueueBackend } from "./wasm/queue.ts";
import { Transient } from "./wasm/transient.ts";

/** Made by the first device. */
let shared: { hardware: Hardware; backend: WasmQueueBackend; records: KernelRecords } | undefined;
function common(): NonNullable<typeof shared> {
  if (shared !== undefined) return shared;
  const hardware = new Hardware();
  shared = { hardware, backend: new WasmQueueBackend(hardware), records: new KernelRecords() };
  return shared;
}

/** A signal in the shared memory. */
interface WasmSignal extends HCQSignal {
  /** its first byte */
  readonly at: number;
}
interface Block extends HCQCompatAllocRes {
  readonly vaAddr: number;
}
/** Memory that was freed while work that may use it is in flight. */
interface Retired {
  readonly at: number;
  readonly size: number;
  readonly compute: number;
  readonly copy: number;
}

const collected = new FinalizationRegistry<() => void>((release) => release());

export class WasmDevice extends HCQCompatCompiled implements StreamTarget, Tenant {
  readonly allocator: WasmAllocator;
  readonly renderer: Renderer;
  readonly hardware: Hardware;
  readonly transient: Transient;
  readonly #rings: { readonly compute: Ring; readonly copy: Ring };
  #failure: DeviceError | undefined;

  constructor(name: string) {
    const { hardware } = common();
    const timeline = (n: number): WasmSignal => {
      const label = `${name}.timeline${n === 0 ? "" : n}`;
      return { label, at: hardware.allocSignal(0, label) };
    };
    super(name, [timeline(0), timeline(1)]);
    this.hardware = hardware;
    this.renderer = wasmRenderer({ shared: hardware.memory.shared, relaxed: hasRelaxedSimd() });
    this.allocator = new WasmAllocator(this);
    this.#rings = {
      compute: hardware.newRing(`${name} compute`, false),
      copy: hardware.newRing(`${name} copy`, false),
    };
    this.transient = new Transient({
      alloc: (nbytes) => hardware.alloc(nbytes),
      mark: () => this.#mark(),
      block: (done) => void hardware.block({ done, signal: 0, timeoutMs: hardware.timeoutMs }),
    });
    hardware.tenants.add(this);
  }

  get signalSpace(): unknown {
    return this.hardware;
  }
  get words(): Int32Array {
    return this.hardware.memory.words;
  }
  protected peers(): Iterable<HCQCompatCompiled> {
    return [...this.hardware.tenants].filter((t) => t instanceof HCQCompatCompiled);
  }

  compile(name: string, code: Source): WasmProgram {
    if (!(code instanceof Uint8Array)) throw new InternalError("WASM compiles binary modules");
    return new WasmProgram(this, name, code);
  }
  computeQueue(): HWComputeQueue {
    return new HWComputeQueue(common().backend);
  }
  copyQueue(): HWCopyQueue {
    return new HWCopyQueue(common().backend);
  }
  enqueue(kind: "compute" | "copy", at: number, nwords: number, worth: boolean): void {
    this.hardware.submit(this.#rings[kind], at, nwords, worth);
    this.#throwFailure(); // executed here and now, it may have failed already
  }

  // ---- signals

  allocSignal(value = 0, label = `${this.name}.signal`): HCQSignal {
    const signal: WasmSignal = { label, at: this.hardware.allocSignal(value, label) };
    return signal;
  }
  freeSignal(signal: HCQSignal): void {
    this.hardware.freeSignal(placed(signal));
  }
  readSignal(signal: HCQSignal): number {
    return Atomics.load(this.words, placed(signal) >>> 2);
  }
  readTimestamp(signal: HCQSignal): number {
    return this.hardware.memory.times[(placed(signal) >>> 3) + 1] as number;
  }
  setSignal(signal: HCQSignal, value: number): void {
    this.hardware.setSignal(placed(signal) >>> 2, value);
  }
  waitSignal(signal: HCQSignal, value: number, timeoutMs = this.hardware.timeoutMs): MaybePromise<void> {
    this.#throwFailure();
    return this.hardware.wait({
      done: () => this.#reached(signal, value),
      signal: placed(signal) >>> 2,
      timeoutMs,
      tenant: this,
    });
  }
  protected blockOn(signal: HCQSignal, value: number): void {
    const { hardware } = this;
    const done = () => this.#reached(signal, value);
    hardware.block({ done, signal: placed(signal) >>> 2, timeoutMs: hardware.timeoutMs, tenant: this });
  }
  #reached(signal: HCQSignal, value: number): boolean {
    this.#throwFailure();
    return this.readSignal(signal) >= value;
  }
  /** Microseconds since 1970 already. */
  gpu2cpuTime(time: number): number {
    return time;
  }

  // ---- failing

  get hasWork(): boolean {
    const { compute, copy } = this.mark();
    return !this.isIdle || !this.hasPassedMark(compute, copy);
  }
  abandon(error: DeviceError): void {
    this.#failure = error;
    this.setSignal(this.timelineSignal, this.timelineValue - 1);
  }
  forget(error: DeviceError): void {
    if (this.#failure === error) this.#failure = undefined;
  }
  #throwFailure(): void {
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
  }

  // ---- memory of its own

  /** Whether all that was submitted until now is done. */
  #mark(): () => boolean {
    const { compute, copy } = this.mark();
    return () => this.hasPassedMark(compute, copy);
  }
  mark(): { compute: number; copy: number } {
    const { compute, copy } = this.#rings;
    return { compute: this.hardware.submitted(compute), copy: this.hardware.submitted(copy) };
  }
  hasPassedMark(compute: number, copy: number): boolean {
    const { hardware } = this;
    return hardware.hasDone(this.#rings.compute, compute) && hardware.hasDone(this.#rings.copy, copy);
  }
  /** Memory that is given back when its owner is collected and what was submitted by then is done. */
  keep(owner: object, nbytes: number): number {
    const at = this.hardware.alloc(nbytes, false);
    collected.register(owner, () => this.release(at, nbytes));
    return at;
  }
  keepRecord(owner: object): number {
    const { records } = common();
    const at = records.take((nbytes) => this.hardware.alloc(nbytes));
    collected.register(owner, () => {
      this.hardware.names.kernels.delete(at);
      records.giveBack(at);
    });
    return at;
  }
  release(at: number, nbytes: number): void {
    this.allocator.retire(at, nbytes);
  }
}

class WasmAllocator extends HCQCompatAllocator<Block> {
  declare readonly device: WasmDevice;
  /** in the order they were freed */
  #retired: Retired[] = [];

  /** for those who look at how much there is */
  get memory(): WebAssembly.Memory {
    return this.device.hardware.memory.memory;
  }

  alloc(nbytes: number, zeroed: boolean): Block {
    if (zeroed) return this.#unused(nbytes, true);
    const size = AddressSpace.rounded(nbytes);
    this.#reclaim();
    const at = this.#retired.findLastIndex((r) => r.size === size);
    const [again] = at < 0 ? [] : this.#retired.splice(at, 1);
    return again === undefined
      ? this.#unused(nbytes, false)
      : { device: this.device, vaAddr: again.at, size: nbytes };
  }
  /** Memory that nothing in flight uses: the host may write to it now. */
  #unused(nbytes: number, zeroed: boolean): Block {
    const { device } = this;
    this.#reclaim();
    const vaAddr = device.hardware.memory.alloc(nbytes, zeroed) ?? this.#afterAll(nbytes, zeroed);
    return { device, vaAddr, size: nbytes };
  }
  free({ vaAddr }: Block, nbytes: number): void {
    this.retire(vaAddr, nbytes);
  }
  /** Frees now, or when what was submitted so far is done. */
  retire(at: number, nbytes: number): void {
    const mark = this.device.mark();
    if (this.device.hasPassedMark(mark.compute, mark.copy)) this.device.hardware.memory.free(at, nbytes);
    else this.#retired.push({ at, size: AddressSpace.rounded(nbytes), ...mark });
  }
  #reclaim(): void {
    const { device } = this;
    const pending = this.#retired.findIndex((r) => !device.hasPassedMark(r.compute, r.copy));
    const done = pending < 0 ? this.#retired.length : pending;
    if (done === 0) return;
    for (const { at, size } of this.#retired.splice(0, done)) device.hardware.memory.free(at, size);
  }
  /** There is no room while work is in flight: afterwards there may be. */
  #afterAll(nbytes: number, zeroed: boolean): number {
    const { hardware } = this.device;
    for (const tenant of hardware.tenants) if (tenant instanceof WasmDevice) tenant.allocator.#drain();
    const at = hardware.memory.alloc(nbytes, zeroed);
    if (at !== undefined) return at;
    const used = GlobalCounters.memUsedOn(this.device.name);
    throw new OutOfMemoryError(
      `${this.device.name}: no room for ${nbytes} bytes; ${used} are in use and a WebAssembly memory ends at ${hardware.memory.maxBytes}. ` +
        "Drop tensors that are no longer needed, split the tensor, or use another device",
    );
  }
  #drain(): void {
    if (this.#retired.length === 0) return;
    const { hardware } = this.device;
    const { compute, copy } = this.#retired.at(-1) as Retired;
    const done = () => this.device.hasPassedMark(compute, copy);
    hardware.block({ done, signal: 0, timeoutMs: hardware.timeoutMs });
    this.#reclaim();
  }

  view({ vaAddr }: Block, nbytes: number): Uint8Array {
    return this.device.hardware.memory.bytes(vaAddr, nbytes);
  }
  offset({ device, vaAddr }: Block, size: number, byteOffset: number): Block {
    return { device, vaAddr: vaAddr + byteOffset, size };
  }
  protected allocHost(nbytes: number): { res: Block; bytes: Uint8Array } {
    const res = this.#unused(nbytes, false);
    return { res, bytes: this.view(res, nbytes) };
  }
}

const placed = (signal: HCQSignal): number => (signal as WasmSignal).at;

export const open = (name: string): WasmDevice => new WasmDevice(name);
