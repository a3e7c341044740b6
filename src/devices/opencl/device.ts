// An OpenCL device put together: its context, its memory, its programs, and a renderer with its limits. The
// library comes in as an interface, so that tests can bring one that fails; opencl.ts brings this machine's.

import { isText, type Renderer, type Source, sourceOf } from "../../codegen/target.ts";
import { InternalError } from "../../errors.ts";
import type { MaybePromise } from "../../helpers.ts";
import { openclFor } from "../../render/opencl.ts";
import type { OpenClGpuFacts } from "../../render/openclgpu.ts";
import type { Vectors } from "../../render/vectors.ts";
import type { Compiled } from "../../runtime/device.ts";
import { ordinalOf } from "../../runtime/registry.ts";
import type { OpenClApi } from "./api.ts";
import type { ClBlock } from "./block.ts";
import { ClContext, INFO } from "./context.ts";
import { ClAllocator } from "./memory.ts";
import { ClProgram } from "./program.ts";

/**
 * Of the bits of CL_DEVICE_SINGLE_FP_CONFIG: products are added in one instruction; quotients and roots can
 * be rounded as IEEE 754 wants.
 */
const [FUSED, ROUNDED_DIVISION] = [32, 128];

/** The vectors of the host's processor, as its driver says. */
function vectorsOf(context: ClContext): Vectors {
  const lanes = context.number(INFO.FLOAT_LANES);
  const registers = lanes >= 16 ? 32 : 16;
  return {
    widths: lanes >= 8 ? [8, 4] : [4],
    registers,
    // the rest are operands
    accumulators: registers === 32 ? 16 : 12,
    fused: (context.number(INFO.FLOAT_CONFIG) & FUSED) !== 0,
  };
}

/** What the driver of a GPU says of it. It tells how many threads run in lockstep of a kernel only. */
function gpuOf(context: ClContext): OpenClGpuFacts {
  return {
    deviceName: context.text(INFO.NAME),
    computeUnits: context.computeUnits,
    preferredMultiple: new ClProgram(context, "empty", sourceOf("__kernel void empty() {}"), "").lockstep,
    hasFma: (context.number(INFO.FLOAT_CONFIG) & FUSED) !== 0,
  };
}

export class OpenClDevice implements Compiled<ClBlock> {
  readonly name: string;
  /** a timed run waits, so what PROFILE notes is when the host had the result */
  readonly keepsTime = false;
  readonly compilesAside = false;
  readonly timeline = undefined;
  /** captured kernels are enqueued one by one */
  readonly graph = undefined;
  readonly space = this;
  readonly isSoftware: boolean;
  readonly allocator: ClAllocator;
  readonly renderer: Renderer;
  readonly #context: ClContext;
  readonly #options: string;

  constructor(api: OpenClApi, name: string) {
    const context = new ClContext(api, name, ordinalOf(name));
    this.name = name;
    this.#context = context;
    this.isSoftware = context.isCpu;
    this.allocator = new ClAllocator(context);
    const isRounded = (context.number(INFO.FLOAT_CONFIG) & ROUNDED_DIVISION) !== 0;
    // pocl prints what its compiler warns of
    this.#options = `-w${isRounded ? " -cl-fp32-correctly-rounded-divide-sqrt" : ""}`;
    this.renderer = openclFor({
      vectors: context.isCpu ? vectorsOf(context) : undefined,
      hasDoubles: context.text(INFO.EXTENSIONS).split(/\s+/).includes("cl_khr_fp64"),
      groupSize: context.number(INFO.GROUP_SIZE),
      itemSizes: context.numbers(INFO.ITEM_SIZES, 3),
      localBytes: context.number(INFO.LOCAL_BYTES),
      parameterBytes: context.number(INFO.PARAMETER_BYTES),
      images: context.images,
      gpu: context.isCpu ? undefined : gpuOf(context),
      isRounded,
    });
  }

  compile(name: string, source: Source): ClProgram {
    if (!isText(source)) throw new InternalError("OPENCL compiles OpenCL C");
    return new ClProgram(this.#context, name, source, this.#options);
  }
  synchronize(): MaybePromise<void> {
    return this.#context.synchronize();
  }
}
