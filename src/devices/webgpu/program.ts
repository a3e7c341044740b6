// Kernels on a GPU. A program is WGSL; a pipeline of it is made for each way in which the buffers of a launch
// share memory (Sharing in codegen/target.ts), in most cases one.

import type { Binding, Sharing, Source } from "../../codegen/target.ts";
import { env } from "../../env.ts";
import { DeviceError, InternalError } from "../../errors.ts";
import { chain, getOrMake, isPromise, type MaybePromise, timestamp } from "../../helpers.ts";
import type { Launch, Program } from "../../runtime/device.ts";
import type { GpuBlock } from "./memory.ts";
import type { ComputePipeline, Pipelines } from "./pipelines.ts";
import type { Dispatch, GpuStream, Vals } from "./stream.ts";
import type { GpuTimer } from "./timer.ts";
import type { Uniforms } from "./uniforms.ts";

/** What all programs of a device share. */
export interface ProgramContext {
  readonly stream: GpuStream;
  readonly pipelines: Pipelines;
  readonly uniforms: Uniforms;
  readonly timer: (() => Promise<GpuTimer>) | undefined;
}

export class GpuProgram implements Program<GpuBlock> {
  readonly name: string;
  readonly context: ProgramContext;
  /** how its variables come */
  readonly vals: "none" | "immediate" | "uniform";
  cost: { readonly ops: number; readonly bytes: number } | undefined;
  readonly #source: Source<string>;
  readonly binding: Binding;
  readonly #variants = new Map<string, MaybePromise<ComputePipeline>>();

  constructor(context: ProgramContext, name: string, source: Source<string>) {
    const { vals, binding } = source;
    if (binding === undefined) throw new InternalError("WEBGPU needs to know what a kernel binds");
    this.name = name;
    this.context = context;
    this.vals = vals === 0 ? "none" : binding.immediate ? "immediate" : "uniform";
    this.#source = source;
    this.binding = binding;
  }

  /** Compiles for buffers that are all apart, which nearly all launches have. */
  prepare(): MaybePromise<this> {
    const { written } = this.binding;
    return chain(this.#variantFor({ sameAs: written.map((_, i) => i), written }), () => this);
  }

  run(handles: readonly GpuBlock[], launch: Launch, wait: boolean): MaybePromise<number | undefined> {
    const variant = this.variant(handles);
    if (isPromise(variant)) {
      const done = Promise.resolve(variant).then(() => this.run(handles, launch, wait));
      return Object.assign(done, { why: `${this.name} is compiled asynchronously` });
    }
    const dispatch = (): Dispatch =>
      this.dispatchOf(variant, handles, launch.globalSize, this.#place(launch.vals));
    if (wait || env.PROFILE) return this.timed(dispatch);
    this.context.stream.dispatch(dispatch(), launch.work ?? 0);
  }
  #place(vals: readonly number[]): Vals | undefined {
    if (this.vals === "none") return undefined;
    return this.vals === "immediate" ? { words: Int32Array.from(vals) } : this.context.uniforms.place(vals);
  }
  /** Runs it alone; the seconds that it took. */
  async timed(dispatch: () => Dispatch): Promise<number> {
    const { stream, timer } = this.context;
    if (timer !== undefined) return (await timer()).seconds(dispatch);
    await stream.synchronize();
    const start = timestamp();
    stream.dispatch(dispatch(), 0);
    await stream.synchronize();
    return (timestamp() - start) / 1000;
  }

  dispatchOf(
    variant: ComputePipeline,
    handles: readonly GpuBlock[],
    size: readonly number[],
    vals: Vals | undefined,
  ): Dispatch {
    const [x = 1, y = 1, z = 1] = size;
    const { gpu, name } = this.context.stream;
    const most = gpu.limits.maxComputeWorkgroupsPerDimension ?? 65535;
    if (Math.max(x, y, z) > most) {
      throw new DeviceError(
        `${name}: ${this.name} has ${x} × ${y} × ${z} workgroups; this GPU takes ${most} in one dimension. ` +
          `Use smaller bounds of its variables\nsource:\n${variant.kernel.code}`,
      );
    }
    const { kernel, pipeline } = variant;
    return { kernel, pipeline, buffers: variant.bind(handles), vals, x, y, z };
  }

  /** The pipeline for buffers that share memory as these do. */
  variant(handles: readonly GpuBlock[]): MaybePromise<ComputePipeline> {
    return this.#variantFor(sharingOf(this.binding, handles, this.name));
  }
  #areApart({ sameAs, written }: Sharing): boolean {
    return sameAs.every((s, i) => s === i && written[i] === this.binding.written[i]);
  }
  #variantFor(sharing: Sharing): MaybePromise<ComputePipeline> {
    const key = sharing.sameAs.map((s, i) => (sharing.written[i] ? -1 - s : s)).join();
    return getOrMake(this.#variants, key, () => {
      const { vals } = this.#source;
      const { pipelines, uniforms } = this.context;
      const made = pipelines.get({
        name: this.name,
        code: this.#areApart(sharing) ? this.#source.code : this.binding.shared(sharing),
        sharing,
        vals: { none: undefined, immediate: 4 * vals, uniform: uniforms.layout }[this.vals],
      });
      made.then(
        (variant) => void this.#variants.set(key, variant),
        () => void this.#variants.delete(key),
      );
      return made;
    });
  }
}

/** How the buffers of a launch share memory. */
function sharingOf({ written, types }: Binding, handles: readonly GpuBlock[], name: string): Sharing {
  const sameAs = handles.map((h, i) => {
    const first = handles.findIndex((o) => o.id === h.id && o.offset === h.offset);
    if (first < i && types[first] !== types[i]) {
      throw new InternalError(`${name}: one memory is bound as ${types[i]} and as ${types[first]}`);
    }
    return first;
  });
  const writtenIds = new Set(handles.filter((_, i) => written[i]).map((h) => h.id));
  return { sameAs, written: handles.map((h) => writtenIds.has(h.id)) };
}
