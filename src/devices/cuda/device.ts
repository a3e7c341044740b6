// A CUDA device put together: one GPU's context, its memory, its compiler, its graphs. The driver and NVRTC come in as
// interfaces, so that tests can bring their own; cuda.ts brings NVIDIA's.

import type { Renderer, Source } from "../../codegen/target.ts";
import { DeviceError, InternalError } from "../../errors.ts";
import { chain, type MaybePromise } from "../../helpers.ts";
import type { Compiled, GraphSupport } from "../../runtime/device.ts";
import { CudaContext, type CudaSystem } from "./context.ts";
import { CudaGraph, type GraphDevice } from "./graph.ts";
import { CudaAllocator, type CudaBlock } from "./memory.ts";
import { CudaCompiler, type Nvrtc } from "./nvrtc.ts";
import { CudaProgram, LaunchArguments } from "./program.ts";
import { Timing } from "./timing.ts";

export class CudaDevice implements Compiled<CudaBlock>, GraphDevice {
  readonly name: string;
  readonly keepsTime = true;
  readonly compilesAside = true;
  readonly context: CudaContext;
  readonly timing: Timing;
  readonly allocator: CudaAllocator;
  readonly renderer: Renderer;
  readonly graph: GraphSupport;
  readonly #compiler: CudaCompiler;
  readonly #args: LaunchArguments;

  constructor(name: string, system: CudaSystem, nvrtc: Nvrtc, renderer: Renderer) {
    this.name = name;
    this.context = new CudaContext(system, name, ordinalOf(name));
    this.timing = new Timing(this.context);
    this.allocator = new CudaAllocator(this.context, this.timing);
    this.renderer = renderer;
    this.#compiler = new CudaCompiler(nvrtc, this.context.arch, name);
    this.#args = new LaunchArguments(this.context);
    this.graph = { space: system, make: (items, slots) => new CudaGraph(items, slots, deviceOf) };
    for (const peer of system.devices) {
      peer.allocator.allowAccess(this.context);
      this.allocator.allowAccess(peer.context);
    }
    system.devices.add(this);
  }

  compile(name: string, source: Source): MaybePromise<CudaProgram> {
    if (typeof source !== "string") throw new InternalError("CUDA compiles CUDA C++");
    const tools = { args: this.#args, timing: this.timing };
    // asked for twice where somebody waits at once: the promise comes true all the same
    let program: CudaProgram | undefined;
    return chain(this.#compiler.compile(name, source), (code) => {
      program ??= new CudaProgram(this.context, tools, { name, source, code });
      return program;
    });
  }
  synchronize(): MaybePromise<void> {
    return this.context.synchronize();
  }
}

/** CUDA is the first GPU, CUDA:1 the second. */
function ordinalOf(name: string): number {
  const rest = name.split(":")[1] ?? "0";
  if (/^\d+$/.test(rest)) return Number(rest);
  throw new DeviceError(`${name}: expected the number of a GPU after the colon, as in CUDA:1`);
}

function deviceOf(device: unknown): GraphDevice {
  if (device instanceof CudaDevice) return device;
  throw new InternalError("a CUDA graph of another kind of device");
}
