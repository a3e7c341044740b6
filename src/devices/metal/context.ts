// One queue of command buffers on a GPU: what is enqueued gets a command buffer of its own and runs in the
// order of the queue. Waiting, errors, what is freed when it is safe, and points in the work that other
// queues of the same GPU wait for. A command buffer fails later than the call that committed it, but says so
// itself: its kernels are named.

import { DeviceError, InternalError, OutOfMemoryError } from "../../errors.ts";
import { type MaybePromise, timestamp, waitable } from "../../helpers.ts";
import { type Id, MTL, type Size3 } from "./messages.ts";
import { explain, type ObjC, stringOf, textOf } from "./objc.ts";

/** What a kernel is called and was made of, for messages. */
export interface NamedKernelSource {
  readonly name: string;
  readonly source: string;
}
/** CommandWork in a command buffer: kernels, or something else that has a name. */
export interface CommandWork {
  readonly what: string;
  readonly kernels: readonly NamedKernelSource[];
  /** when it is done: seconds on the GPU's clock */
  readonly done?: (start: number, end: number) => void;
}
interface Flight {
  readonly commands: Id;
  readonly work: CommandWork;
}
/** A point in the work of a queue. */
export interface MetalFence {
  readonly context: MetalContext;
  readonly value: number;
}

/** Command buffers in flight: the queue itself would stop the thread at twice as many. */
const IN_FLIGHT = 256;
/** Most waits are shorter than a turn of the event loop. */
const SPIN_MS = 0.2;
/** A wait of this length may cost a millisecond more, and leave the processor alone. */
const PATIENCE_MS = 50;
/** Kernels that an error names. */
const NAMED = 8;

/** Sizes, of which those that are not given are 1. */
export const size3 = (sizes: readonly number[]): Size3 => ({
  width: sizes[0] ?? 1,
  height: sizes[1] ?? 1,
  depth: sizes[2] ?? 1,
});

/** A GPU, with what it says of itself. All of its queues share memory. */
export class MetalGpu {
  readonly objc: ObjC;
  readonly id: Id;

  constructor(objc: ObjC, id: Id) {
    this.objc = objc;
    this.id = id;
  }
  get name(): string {
    return this.objc.pool(() => textOf(this.objc, this.objc.send(this.id, "name")));
  }
  supports(family: number): boolean {
    return this.objc.send(this.id, "supportsFamily:", family);
  }
}

/** The GPUs of this machine, the default one first. `device` is who asks. */
export function gpusOf(objc: ObjC, device: string): readonly MetalGpu[] {
  const first = objc.createSystemDefaultDevice();
  if (first === 0n)
    throw new DeviceError(`${device}: this Mac has no GPU that Metal can use; use WASM, the default device`);
  return objc.pool(() => {
    const all = objc.copyAllDevices();
    const count = all === 0n ? 0 : objc.send(all, "count");
    const others = Array.from({ length: count }, (_, i) => objc.send(all, "objectAtIndex:", i));
    const ids = [first, ...others.filter((id) => id !== first).map((id) => objc.send(id, "retain"))];
    if (all !== 0n) objc.send(all, "release");
    return ids.map((id) => new MetalGpu(objc, id));
  });
}

export class MetalContext {
  readonly objc: ObjC;
  readonly gpu: MetalGpu;
  /** as in DEV: METAL:1 */
  readonly name: string;
  readonly #queue: Id;
  readonly #event: Id;
  #signalled = 0;
  #flying: Flight[] = [];
  /** command buffers that were committed, and how many of them are done */
  #committed = 0;
  #done = 0;
  #retired: { readonly at: number; readonly release: () => void }[] = [];
  #failure: DeviceError | undefined;

  constructor(gpu: MetalGpu, name: string) {
    const { objc, id } = gpu;
    this.objc = objc;
    this.gpu = gpu;
    this.name = name;
    this.#queue = this.made(
      objc.send(id, "newCommandQueueWithMaxCommandBufferCount:", 2 * IN_FLIGHT),
      "queue",
    );
    this.#event = this.made(objc.send(id, "newSharedEvent"), "shared event");
  }
  /** An object that Metal must have given. */
  made(id: Id, what: string): Id {
    if (id === 0n) throw new DeviceError(`${this.name}: Metal gives no ${what}`);
    return id;
  }

  // ---- enqueuing ----

  /**
   * Encodes something into a command buffer and commits it; the number of the command buffer. `encode` must
   * not throw once it has begun an encoder: `encoding` sees to that.
   */
  submit(work: CommandWork, encode: (commands: Id) => void): number {
    this.check();
    if (this.#flying.length >= IN_FLIGHT && this.#reap() >= IN_FLIGHT) this.#blockFor(this.#done + 1);
    const { objc } = this;
    objc.pool(() => {
      const commands = this.made(objc.send(this.#queue, "commandBuffer"), "command buffer");
      objc.send(commands, "setLabel:", stringOf(objc, work.what));
      encode(commands);
      objc.send(commands, "retain");
      this.#flying.push({ commands, work });
      objc.send(commands, "commit");
    });
    return ++this.#committed;
  }
  /** Encodes with an encoder that is ended whatever happens. */
  encoding(
    commands: Id,
    kind: "computeCommandEncoder" | "blitCommandEncoder",
    body: (encoder: Id) => void,
  ): void {
    const { objc } = this;
    const encoder = this.made(objc.send(commands, kind), kind);
    try {
      body(encoder);
    } finally {
      objc.send(encoder, "endEncoding");
    }
  }

  // ---- other queues ----

  fence(): MetalFence {
    const value = ++this.#signalled;
    this.submit({ what: "signal", kernels: [] }, (commands) => {
      this.objc.send(commands, "encodeSignalEvent:value:", this.#event, value);
    });
    return { context: this, value };
  }
  waitFor({ context, value }: MetalFence): void {
    if (context === this) return;
    if (context.gpu !== this.gpu) throw new InternalError(`${this.name} cannot wait for ${context.name}`);
    this.submit({ what: `wait for ${context.name}`, kernels: [] }, (commands) => {
      this.objc.send(commands, "encodeWaitForEvent:value:", context.#event, value);
    });
  }

  // ---- errors ----

  /** A failure that nobody has heard of yet. */
  check(): void {
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
  }
  #failed({ commands, work }: Flight): DeviceError {
    const { objc } = this;
    const error = objc.send(commands, "error");
    const why = explain(objc, error);
    const { kernels, what } = work;
    const names = kernels.slice(0, NAMED).map((k) => k.name);
    if (kernels.length > NAMED) names.push(`${kernels.length - NAMED} more`);
    const [only] = kernels;
    const who =
      kernels.length === 0 ? what : kernels.length === 1 ? `kernel ${only?.name}` : names.join(", ");
    const source = kernels.length === 1 ? `\nsource:\n${only?.source}` : "";
    const text = `${this.name}: the GPU failed in ${who}: ${why}; what it should have written is not there${source}`;
    const isFull = error !== 0n && objc.send(error, "code") === MTL.ERROR_OUT_OF_MEMORY;
    return isFull
      ? Object.assign(new OutOfMemoryError(text), { isLate: true as const })
      : new DeviceError(text);
  }

  // ---- waiting ----

  /** Something to do when all that is enqueued now is done. */
  retire(release: () => void): void {
    if (this.#reap() === 0) release();
    else this.#retired.push({ at: this.#committed, release });
  }
  /** Lets go of what is done; how many are in flight. */
  #reap(): number {
    const { objc } = this;
    for (let first = this.#flying[0]; first !== undefined; first = this.#flying[0]) {
      if (objc.send(first.commands, "status") < MTL.STATUS_COMPLETED) break;
      this.#flying.shift();
      this.#land(first);
    }
    while (this.#retired[0] !== undefined && this.#retired[0].at <= this.#done)
      this.#retired.shift()?.release();
    return this.#flying.length;
  }
  #land(flight: Flight): void {
    const { objc } = this;
    const { commands, work } = flight;
    this.#done++;
    objc.pool(() => {
      if (objc.send(commands, "status") === MTL.STATUS_ERROR) this.#failure ??= this.#failed(flight);
      work.done?.(objc.send(commands, "GPUStartTime"), objc.send(commands, "GPUEndTime"));
      objc.send(commands, "release");
    });
  }
  isDone(number: number): boolean {
    this.#reap();
    return this.#done >= number;
  }

  /** Until all that was enqueued is done. Throws what failed. */
  synchronize(): MaybePromise<void> {
    return this.settled(this.#committed);
  }
  /** Until there is room for a command buffer without stopping the thread. */
  room(): MaybePromise<void> {
    if (this.#flying.length < IN_FLIGHT || this.#reap() < IN_FLIGHT) return undefined;
    return this.settled(this.#committed - IN_FLIGHT / 2);
  }
  /**
   * Until this command buffer is done. The host asks for its status now and then: a handler would be called
   * on a thread of Metal's, where no JavaScript can run.
   */
  settled(number: number): MaybePromise<void> {
    const start = timestamp();
    do {
      if (this.isDone(number)) return this.check();
    } while (timestamp() - start < SPIN_MS);
    return waitable(this.#poll(number, start), () => {
      this.#blockFor(number);
      this.check();
    });
  }
  async #poll(number: number, start: number): Promise<void> {
    while (!this.isDone(number)) {
      const late = timestamp() - start > PATIENCE_MS;
      await new Promise<void>((next) => (late ? void setTimeout(next, 1) : void setImmediate(next)));
    }
    this.check();
  }
  /** Stops the thread until this command buffer is done. */
  #blockFor(number: number): void {
    const flight = this.#flying[number - this.#done - 1];
    if (flight !== undefined) this.objc.send(flight.commands, "waitUntilCompleted");
    this.#reap();
  }
  block(): void {
    this.#blockFor(this.#committed);
  }
}

/** No closure of the owner's: it would keep the owner. */
const collected = new FinalizationRegistry<{ readonly context: MetalContext; readonly ids: readonly Id[] }>(
  ({ context, ids }) =>
    context.retire(() => {
      for (const id of ids) context.objc.send(id, "release");
    }),
);
/** Releases objects after their owner was collected, when the GPU is done with what it had till then. */
export const releaseWith = (owner: object, context: MetalContext, ids: readonly Id[]): void =>
  collected.register(owner, { context, ids });
