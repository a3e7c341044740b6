// Pipelines of a GPU, kept by the text of the kernel: programs of equal text share one, and with it the bind
// groups that were made for it. They are made asynchronously; what the compiler refuses is shown with the
// text.

import type { Sharing } from "../../codegen/target.ts";
import { CompileError, GradloomError } from "../../errors.ts";
import { kernelIdentifier } from "../../names.ts";
import {
  COMPUTE,
  type GpuBindGroup,
  type GpuBindGroupLayout,
  type GpuPipeline,
  type GpuShaderModule,
} from "./api.ts";
import { type GpuBlock, requireAligned, requireOwn, wholeWords } from "./memory.ts";
import type { GpuStream } from "./stream.ts";

/** The text of a kernel, and what its layout depends on. */
export interface PipelineOf {
  readonly name: string;
  readonly code: string;
  readonly sharing: Sharing;
  /** how its variables come: bytes without a buffer, a group of a buffer; undefined: it has none */
  readonly vals: number | GpuBindGroupLayout | undefined;
}

/** Bind groups of a pipeline that are kept: a program that always makes new buffers must not fill up. */
const MAX_GROUPS = 256;

/** A kernel that can be launched, for buffers that share memory in one way. */
export class ComputePipeline {
  readonly kernel: { readonly name: string; readonly code: string };
  readonly pipeline: GpuPipeline;
  readonly #layout: GpuBindGroupLayout;
  readonly #sharing: Sharing;
  readonly #stream: GpuStream;
  readonly #groups = new Map<string, GpuBindGroup>();

  constructor(
    stream: GpuStream,
    { name, code, sharing }: PipelineOf,
    layout: GpuBindGroupLayout,
    pipeline: GpuPipeline,
  ) {
    this.kernel = { name, code };
    this.pipeline = pipeline;
    this.#layout = layout;
    this.#sharing = sharing;
    this.#stream = stream;
  }

  /** The bind group of these buffers, made the first time. */
  bind(handles: readonly GpuBlock[]): GpuBindGroup {
    const key = handles.map((h) => `${h.id}+${h.offset}:${h.nbytes}`).join();
    const known = this.#groups.get(key);
    if (known !== undefined) return known;
    for (const h of handles) {
      requireOwn(h, this.#stream);
      requireAligned(h, this.kernel.name);
    }
    const made = this.#stream.gpu.createBindGroup({
      label: this.kernel.name,
      layout: this.#layout,
      entries: handles.flatMap(({ buffer, offset, nbytes }, binding) => {
        if (this.#sharing.sameAs[binding] !== binding) return [];
        const size = Math.min(Math.max(16, wholeWords(nbytes)), buffer.size - offset);
        return [{ binding, resource: { buffer, offset, size } }];
      }),
    });
    if (this.#groups.size >= MAX_GROUPS) this.#groups.delete(this.#groups.keys().next().value as string);
    this.#groups.set(key, made);
    return made;
  }
}

/** Pipelines that are kept for programs of equal text; a program holds its own besides. */
const MAX_PIPELINES = 1024;

export class Pipelines {
  readonly #stream: GpuStream;
  readonly #byText = new Map<string, Promise<ComputePipeline>>();

  constructor(stream: GpuStream) {
    this.#stream = stream;
  }

  get(of: PipelineOf): Promise<ComputePipeline> {
    const known = this.#byText.get(of.code);
    if (known !== undefined) return known;
    const made = this.#make(of);
    if (this.#byText.size >= MAX_PIPELINES) this.#byText.delete(this.#byText.keys().next().value as string);
    this.#byText.set(of.code, made);
    made.catch(() => this.#byText.delete(of.code));
    return made;
  }

  async #make(of: PipelineOf): Promise<ComputePipeline> {
    const { name, code, vals } = of;
    const stream = this.#stream;
    const { gpu } = stream;
    stream.requireAlive();
    const layout = this.#layoutOf(of.sharing);
    const bindGroupLayouts = typeof vals === "object" ? [layout, vals] : [layout];
    const immediate = typeof vals === "number" ? { immediateSize: vals } : {};
    // the pipeline says what is refused: the next wait, for something else, must not hear of it as well
    gpu.pushErrorScope("validation");
    const module = gpu.createShaderModule({ label: name, code });
    const asked = gpu.createComputePipelineAsync({
      label: name,
      layout: gpu.createPipelineLayout({ bindGroupLayouts, ...immediate }),
      compute: { module, entryPoint: kernelIdentifier(name) },
    });
    gpu.popErrorScope().catch(() => {}); // lost: the stream tells
    try {
      const made = await stream.answer(asked, `${name} is being compiled; its driver may hang`);
      return new ComputePipeline(stream, of, layout, made);
    } catch (cause) {
      stream.requireAlive();
      if (cause instanceof GradloomError) throw cause;
      throw await this.#refusal(of, module, cause);
    }
  }
  #layoutOf({ written, sameAs }: Sharing): GpuBindGroupLayout {
    return this.#stream.gpu.createBindGroupLayout({
      entries: written.flatMap((isWritten, binding) => {
        if (sameAs[binding] !== binding) return [];
        const type = isWritten ? "storage" : "read-only-storage";
        return [{ binding, visibility: COMPUTE, buffer: { type } } as const];
      }),
    });
  }
  async #refusal({ name, code }: PipelineOf, module: GpuShaderModule, cause: unknown): Promise<Error> {
    const stream = this.#stream;
    const { messages } = await stream.answer(module.getCompilationInfo(), `${name} was refused`);
    const faults = messages.filter((m) => m.type === "error").map((m) => `line ${m.lineNum}: ${m.message}`);
    const said = cause instanceof Error ? cause.message.trim() : String(cause);
    const why = faults.length > 0 ? faults.join("; ") : said;
    return new CompileError(`${stream.name}: kernel ${name} is refused: ${why}\nsource:\n${code}`, { cause });
  }
}
