// Variables of kernels where a GPU has no immediates, or not enough: one buffer of slots. A launch takes the
// next slot; what the slots of a batch hold is written right before it is submitted, so a slot may have
// another value in the next batch.

import { InternalError } from "../../errors.ts";
import {
  COMPUTE,
  type GpuBindGroup,
  type GpuBindGroupLayout,
  type GpuBuffer,
  type GpuDevice,
  USAGE,
} from "./api.ts";
import type { GpuStream } from "./stream.ts";

/** Where a uniform may start; a slot has so many bytes. */
const SLOT = 256;
const WORDS = SLOT / 4;

export const uniformLayout = (gpu: GpuDevice): GpuBindGroupLayout =>
  gpu.createBindGroupLayout({
    entries: [{ binding: 0, visibility: COMPUTE, buffer: { type: "uniform", hasDynamicOffset: true } }],
  });

/** So many slots, and what they hold. */
export class UniformSlots {
  readonly group: GpuBindGroup;
  /** a value differs from what was written last */
  isChanged = false;
  readonly #words: Int32Array;
  readonly #buffer: GpuBuffer;
  readonly #stream: GpuStream;

  constructor(stream: GpuStream, layout: GpuBindGroupLayout, slots: number) {
    this.#stream = stream;
    this.#words = new Int32Array(slots * WORDS);
    this.#buffer = stream.gpu.createBuffer({ size: slots * SLOT, usage: USAGE.UNIFORM | USAGE.COPY_DST });
    const resource = { buffer: this.#buffer, offset: 0, size: SLOT };
    this.group = stream.gpu.createBindGroup({ layout, entries: [{ binding: 0, resource }] });
  }
  /** The byte at which a slot starts. */
  at(slot: number): number {
    return slot * SLOT;
  }
  /** Whether a value changed. */
  set(slot: number, vals: readonly number[]): boolean {
    if (vals.length > WORDS) throw new InternalError(`a kernel with ${vals.length} variables`);
    let changed = false;
    vals.forEach((v, i) => {
      const at = slot * WORDS + i;
      changed ||= this.#words[at] !== v;
      this.#words[at] = v;
    });
    this.isChanged ||= changed;
    return changed;
  }
  /** Writes the first slots to the GPU. */
  write(slots: number): void {
    this.#stream.gpu.queue.writeBuffer(this.#buffer, 0, this.#words.subarray(0, slots * WORDS));
    this.isChanged = false;
  }
}

const SLOTS = 64;

/** The slots of launches that are not captured. */
export class Uniforms {
  readonly layout: GpuBindGroupLayout;
  readonly #stream: GpuStream;
  readonly #slots: UniformSlots;
  #used = 0;

  constructor(stream: GpuStream) {
    this.#stream = stream;
    this.layout = uniformLayout(stream.gpu);
    this.#slots = new UniformSlots(stream, this.layout, SLOTS);
    stream.beforeSubmit(() => {
      if (this.#used > 0) this.#slots.write(this.#used);
      this.#used = 0;
    });
  }
  place(vals: readonly number[]): { readonly group: GpuBindGroup; readonly at: number } {
    if (this.#used === SLOTS) this.#stream.flush();
    const slot = this.#used++;
    this.#slots.set(slot, vals);
    return { group: this.#slots.group, at: this.#slots.at(slot) };
  }
}
