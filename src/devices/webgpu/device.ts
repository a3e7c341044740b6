// A WEBGPU device put together: one GPU's stream of work, its memory, its programs, its graphs. The GPU comes
// in as an interface (api.ts), so that tests can bring one that counts or fails.

import { isText, type Renderer, type Source } from "../../codegen/target.ts";
import { InternalError } from "../../errors.ts";
import type { MaybePromise } from "../../helpers.ts";
import { type WebGpuFacts, webgpuFor } from "../../render/webgpu.ts";
import type { SubgroupMatrices } from "../../render/wgslmatrix.ts";
import type { Compiled, GraphMaker } from "../../runtime/device.ts";
import type { GpuLimits } from "./api.ts";
import { GpuDisplay } from "./display.ts";
import { GpuGraph } from "./graph.ts";
import { GpuAllocator, type GpuBlock } from "./memory.ts";
import type { OpenGpu } from "./open.ts";
import { Pipelines } from "./pipelines.ts";
import { GpuProgram, type ProgramContext } from "./program.ts";
import { GpuStream } from "./stream.ts";
import type { GpuTimer } from "./timer.ts";
import { Uniforms } from "./uniforms.ts";

export class WebGpuDevice implements Compiled<GpuBlock> {
  readonly name: string;
  /** a timed run waits, so what PROFILE notes is when the host had the result */
  readonly keepsTime = false;
  readonly compilesAside = true;
  readonly timeline = undefined;
  readonly space = this;
  readonly allocator: GpuAllocator;
  readonly renderer: Renderer;
  readonly graph: GraphMaker;
  readonly stream: GpuStream;
  readonly isSoftware: boolean;
  readonly display: GpuDisplay;
  readonly #context: ProgramContext;

  /** `matrices`: what subgroup matrices need, where the GPU may have them. */
  constructor(name: string, opened: OpenGpu, matrices?: SubgroupMatrices) {
    this.name = name;
    this.stream = new GpuStream(name, opened.device);
    this.display = new GpuDisplay(this.stream);
    this.allocator = new GpuAllocator(this.stream);
    this.renderer = webgpuFor(factsOf(opened, matrices), matrices);
    const pipelines = new Pipelines(this.stream);
    const timer = opened.hasTimestamps ? timerOf(this.stream) : undefined;
    this.#context = { stream: this.stream, pipelines, uniforms: new Uniforms(this.stream), timer };
    this.isSoftware = opened.isSoftware;
    const { localMax, maxBuffers, sharedMax } = this.renderer;
    const limits = { threads: localMax[0] ?? 1, buffers: maxBuffers, sharedBytes: sharedMax };
    this.graph = (items, slots) => new GpuGraph(this.#context, limits, items, slots);
  }

  get isLost(): boolean {
    return this.stream.isLost;
  }
  compile(name: string, source: Source): MaybePromise<GpuProgram> {
    if (!isText(source)) throw new InternalError("WEBGPU compiles WGSL");
    // other failures are for those who wait: they must not get lost where a kernel is only prepared
    this.stream.requireAlive();
    const made = new GpuProgram(this.#context, name, source).prepare();
    return Object.assign(made, { why: "WebGPU compiles kernels asynchronously" });
  }
  synchronize(): Promise<void> {
    return Object.assign(this.stream.synchronize(), { why: "WebGPU can only be waited for asynchronously" });
  }
}

/** Pages load it with the first kernel that is timed. */
function timerOf(stream: GpuStream): () => Promise<GpuTimer> {
  let timer: GpuTimer | undefined;
  return async () => {
    const { GpuTimer } = await import("./timer.ts");
    timer ??= new GpuTimer(stream);
    return timer;
  };
}

function factsOf(
  { device, info, configs, ...known }: OpenGpu,
  matrices: SubgroupMatrices | undefined,
): WebGpuFacts {
  const limit = (name: string, least: number): number => (device.limits as GpuLimits)[name] ?? least;
  return {
    ...known,
    matrices: matrices?.sidesOf(configs) ?? [],
    workgroupsPerDimension: limit("maxComputeWorkgroupsPerDimension", 65535),
    threads: limit("maxComputeInvocationsPerWorkgroup", 256),
    threadsByDimension: [
      limit("maxComputeWorkgroupSizeX", 256),
      limit("maxComputeWorkgroupSizeY", 256),
      limit("maxComputeWorkgroupSizeZ", 64),
    ],
    workgroupMemory: limit("maxComputeWorkgroupStorageSize", 16384),
    buffers: limit("maxStorageBuffersPerShaderStage", 8),
    architecture: [info.vendor, info.architecture, info.device].filter(Boolean).join(" ") || "unknown",
  };
}
