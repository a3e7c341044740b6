// A METAL device put together: a queue on a GPU, its memory, its programs, its graphs. The runtime comes in
// as an interface, so that tests can bring their own; metal.ts brings that of macOS.

import { isText, type Renderer, type Source } from "../../codegen/target.ts";
import { InternalError } from "../../errors.ts";
import type { MaybePromise } from "../../helpers.ts";
import { type MetalFacts, metalFor } from "../../render/metal.ts";
import type { Compiled, GraphMaker, Timeline } from "../../runtime/device.ts";
import { ordinalOf } from "../../runtime/registry.ts";
import { MetalContext, type MetalFence, type MetalGpu } from "./context.ts";
import { COPY_THREADS, copyBytesUops } from "./copybytes.ts";
import { MetalGraph, type MetalGraphDevice } from "./graph.ts";
import { MetalAllocator, type MetalBlock } from "./memory.ts";
import { MTL } from "./messages.ts";
import { MetalProgram } from "./program.ts";

export class MetalDevice implements Compiled<MetalBlock>, MetalGraphDevice {
  readonly name: string;
  readonly keepsTime = true;
  readonly compilesAside = false;
  readonly context: MetalContext;
  readonly allocator: MetalAllocator;
  readonly renderer: Renderer;
  readonly graph: GraphMaker | undefined;
  /** queues of one GPU share its memory */
  readonly space: MetalGpu;
  readonly timeline: Timeline<MetalFence>;
  readonly needsPipelines: boolean;
  #copy: MetalProgram | undefined;

  /**
   * METAL:1 is the second GPU; where there are fewer, another queue of one of them. `rendererFor`: a test
   * brings one that remembers what it has rendered.
   */
  constructor(
    name: string,
    gpus: readonly MetalGpu[],
    rendererFor: (facts: MetalFacts) => Renderer<string> = metalFor,
  ) {
    const gpu = gpus[ordinalOf(name) % gpus.length] as MetalGpu;
    const context = new MetalContext(gpu, name);
    this.name = name;
    this.context = context;
    this.space = gpu;
    this.renderer = rendererFor(factsOf(gpu));
    this.allocator = new MetalAllocator(context, (...copy) => this.#copyBytes(...copy));
    this.timeline = context;
    const isApple = gpu.supports(MTL.FAMILY_APPLE7);
    this.needsPipelines = isApple && !gpu.supports(MTL.FAMILY_APPLE9);
    const hasIndirect = isApple || gpu.supports(MTL.FAMILY_MAC2);
    this.graph = hasIndirect ? (items, slots) => new MetalGraph(items, slots, deviceOf) : undefined;
  }

  compile(name: string, source: Source): MetalProgram {
    if (!isText(source)) throw new InternalError("METAL compiles the Metal Shading Language");
    return new MetalProgram(this.context, name, source);
  }
  synchronize(): MaybePromise<void> {
    return this.context.synchronize();
  }
  #copyBytes(dest: MetalBlock, src: MetalBlock, nbytes: number): void {
    this.#copy ??= this.compile("copy_bytes", this.renderer.render("copy_bytes", copyBytesUops()));
    const globalSize = [Math.ceil(nbytes / COPY_THREADS)];
    this.#copy.run([dest, src], { globalSize, localSize: [COPY_THREADS], vals: [nbytes] }, false);
  }
}

function factsOf(gpu: MetalGpu): MetalFacts {
  const { objc, id, name } = gpu;
  const { width, height, depth } = objc.send(id, "maxThreadsPerThreadgroup");
  return {
    name,
    isApple: gpu.supports(MTL.FAMILY_APPLE7),
    threads: width,
    threadsByDimension: [width, height, depth],
    threadgroupMemory: objc.send(id, "maxThreadgroupMemoryLength"),
  };
}

function deviceOf(device: unknown): MetalGraphDevice {
  if (device instanceof MetalDevice) return device;
  throw new InternalError("a Metal graph of another kind of device");
}
