// A CUDA device put together: one GPU's context, its memory, its compiler, its graphs. The driver and NVRTC
// come in as interfaces, so that tests can bring their own; cuda.ts brings NVIDIA's.

import { isText, type Renderer, type Source } from "../../codegen/target.ts";
import { InternalError } from "../../errors.ts";
import type { MaybePromise } from "../../helpers.ts";
import { cudaFor } from "../../render/languages.ts";
import type { Compiled, GraphMaker } from "../../runtime/device.ts";
import { ordinalOf } from "../../runtime/registry.ts";
import { CudaContext, type CudaSystem } from "./context.ts";
import { ATTRIBUTE } from "./driver.ts";
import { CudaGraph, type GraphDevice } from "./graph.ts";
import { CudaAllocator, type CudaBlock } from "./memory.ts";
import { CudaCompiler, type Nvrtc } from "./nvrtc.ts";
import { CudaProgram, LaunchArguments } from "./program.ts";
import { Timing } from "./timing.ts";

export class CudaDevice implements Compiled<CudaBlock>, GraphDevice {
  readonly name: string;
  readonly keepsTime = true;
  readonly compilesAside = false;
  readonly context: CudaContext;
  readonly timing: Timing;
  readonly allocator: CudaAllocator;
  readonly renderer: Renderer;
  readonly graph: GraphMaker;
  readonly space: CudaSystem;
  /** a stream waits for events of its own context only: the host is between two GPUs */
  readonly timeline = undefined;
  readonly #compiler: CudaCompiler;
  readonly #args: LaunchArguments;

  constructor(name: string, system: CudaSystem, nvrtc: Nvrtc, renderer: Renderer<string>) {
    this.name = name;
    this.context = new CudaContext(system, name, ordinalOf(name));
    this.timing = new Timing(this.context);
    this.allocator = new CudaAllocator(this.context, this.timing);
    this.#compiler = new CudaCompiler(nvrtc, this.context.arch, name);
    this.renderer = fitted(renderer, this.context, this.#compiler.arch);
    this.#args = new LaunchArguments(this.context);
    this.space = system;
    this.graph = (items, slots) => new CudaGraph(items, slots, deviceOf);
    for (const peer of system.devices) {
      peer.allocator.allowAccess(this.context);
      this.allocator.allowAccess(peer.context);
    }
    system.devices.add(this);
  }

  compile(name: string, source: Source): CudaProgram {
    if (!isText(source)) throw new InternalError("CUDA compiles CUDA C++");
    const code = this.#compiler.compile(name, source.code);
    const { context, timing } = this;
    return new CudaProgram(context, { args: this.#args, timing }, { name, source, code });
  }
  synchronize(): MaybePromise<void> {
    return this.context.synchronize();
  }
}

/** The renderer with the limits of this GPU and of what is compiled for it. */
function fitted(renderer: Renderer<string>, context: CudaContext, arch: number): Renderer {
  const sharedMax = context.attribute(ATTRIBUTE.SHARED_OPTIN);
  const gpu = cudaFor(renderer, arch, {
    computeUnits: context.attribute(ATTRIBUTE.MULTIPROCESSORS),
    threadsPerUnit: context.attribute(ATTRIBUTE.SM_THREADS),
    registersPerUnit: context.attribute(ATTRIBUTE.SM_REGISTERS),
    sharedPerUnit: context.attribute(ATTRIBUTE.SM_SHARED),
    workgroupsPerUnit: context.attribute(ATTRIBUTE.SM_BLOCKS),
  });
  return { ...gpu, sharedMax };
}

function deviceOf(device: unknown): GraphDevice {
  if (device instanceof CudaDevice) return device;
  throw new InternalError("a CUDA graph of another kind of device");
}
