// The way between arrays of the host and a GPU: a ring of pinned memory, which the GPU's copy engine reads
// and writes by itself. A copy goes in chunks; while the engine moves one, the host fills or empties the
// next. An event after each chunk says when its place in the ring may be used again.

import type { CudaContext } from "./context.ts";
import { CUDA } from "./driver.ts";
import type { Timing } from "./timing.ts";

const RING = 16 << 20;
export const CHUNK = 2 << 20;
/** How far reading runs ahead: less than the ring, so that no chunk is overwritten before it was read. */
const AHEAD = 4;
const ALIGN = 256;

interface StagedChunk {
  readonly from: number;
  readonly to: number;
  readonly event: number;
}

export class Staging {
  readonly #context: CudaContext;
  readonly #timing: Timing;
  #address = 0;
  #bytes = new Uint8Array(0);
  /** where the next chunk goes */
  #head = 0;
  /** in the order in which they were enqueued */
  readonly #flying: StagedChunk[] = [];
  readonly #events: number[] = [];

  constructor(context: CudaContext, timing: Timing) {
    this.#context = context;
    this.#timing = timing;
  }

  /** A copy of this size waits for nothing. */
  fits(nbytes: number): boolean {
    if (nbytes > RING / 2) return false;
    while (this.#flying[0] !== undefined && this.#isDone(this.#flying[0])) this.#land();
    const used = this.#flying.reduce((n, c) => n + c.to - c.from, 0);
    return used + nbytes + CHUNK <= RING;
  }

  send(address: number, src: Uint8Array): void {
    const context = this.#context;
    for (let at = 0; at < src.byteLength; at += CHUNK) {
      const part = src.subarray(at, at + CHUNK);
      const from = this.#room(part.byteLength);
      this.#bytes.set(part, from);
      const move = [address + at, this.#address + from, part.byteLength, context.stream] as const;
      this.#enqueue(`${context.name} <- host`, part.byteLength, () =>
        context.call("cuMemcpyHtoDAsync_v2", ...move),
      );
      this.#launch(from, part.byteLength);
    }
  }

  /** Returns when all bytes are there. */
  fetch(dest: Uint8Array, address: number): void {
    const context = this.#context;
    const asked: { chunk: StagedChunk; at: number; nbytes: number }[] = [];
    const take = (): void => {
      const next = asked.shift();
      if (next === undefined) return;
      context.call("cuEventSynchronize", next.chunk.event);
      const { from } = next.chunk;
      dest.set(this.#bytes.subarray(from, from + next.nbytes), next.at);
    };
    for (let at = 0; at < dest.byteLength; at += CHUNK) {
      if (asked.length === AHEAD) take();
      const nbytes = Math.min(CHUNK, dest.byteLength - at);
      const from = this.#room(nbytes);
      const move = [this.#address + from, address + at, nbytes, context.stream] as const;
      this.#enqueue(`host <- ${context.name}`, nbytes, () => context.call("cuMemcpyDtoHAsync_v2", ...move));
      asked.push({ chunk: this.#launch(from, nbytes), at, nbytes });
    }
    while (asked.length > 0) take();
  }

  #enqueue(name: string, bytes: number, copy: () => void): void {
    if (this.#timing.isOn) this.#timing.around({ track: "copy", name, kind: "copy", args: { bytes } }, copy);
    else copy();
  }
  /** A place in the ring that nothing in flight uses. */
  #room(nbytes: number): number {
    if (this.#address === 0) this.#open();
    if (this.#head + nbytes > RING) this.#head = 0;
    const [from, to] = [this.#head, this.#head + nbytes];
    while (this.#flying.some((c) => c.from < to && from < c.to)) {
      this.#context.call("cuEventSynchronize", (this.#flying[0] as StagedChunk).event);
      this.#land();
    }
    return from;
  }
  #open(): void {
    this.#address = this.#context.make("cuMemHostAlloc", RING, 0);
    this.#bytes = new Uint8Array(this.#context.driver.memory.view(this.#address, RING));
  }
  #launch(from: number, nbytes: number): StagedChunk {
    const context = this.#context;
    const event = this.#events.pop() ?? context.newEvent();
    context.call("cuEventRecord", event, context.stream);
    const to = from + Math.ceil(nbytes / ALIGN) * ALIGN;
    const chunk = { from, to, event };
    this.#flying.push(chunk);
    this.#head = to;
    return chunk;
  }
  #isDone({ event }: StagedChunk): boolean {
    this.#context.enter();
    const status = this.#context.driver.cuEventQuery(event);
    if (status === CUDA.NOT_READY) return false;
    if (status !== CUDA.SUCCESS) throw this.#context.failure("cuEventQuery", status);
    return true;
  }
  #land(): void {
    const chunk = this.#flying.shift();
    if (chunk !== undefined) this.#events.push(chunk.event);
  }
}
