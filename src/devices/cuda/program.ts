// A compiled kernel on a GPU: loads its code into the driver, launches it, and times it with events when
// asked to. Launching is the hot path: arguments are written into one block that is always the same, since
// the driver copies them in its call.

import type { Source } from "../../codegen/target.ts";
import { CompileError, DeviceError } from "../../errors.ts";
import { chain, type MaybePromise } from "../../helpers.ts";
import type { Launch, Program } from "../../runtime/device.ts";
import { KernelArguments } from "./arguments.ts";
import type { CudaContext, Suspect } from "./context.ts";
import { CUDA } from "./driver.ts";
import type { CudaBlock } from "./memory.ts";
import type { CudaCode } from "./nvrtc.ts";
import type { Timing } from "./timing.ts";

/** The block that eager launches write their arguments into; it grows with the longest list. */
export class LaunchArguments {
  readonly #context: CudaContext;
  #at = 0;
  #room = 0;
  #args: KernelArguments | undefined;

  constructor(context: CudaContext) {
    this.#context = context;
  }

  fill(handles: readonly CudaBlock[], vals: readonly number[]): KernelArguments {
    const bytes = KernelArguments.bytes(handles.length, vals.length);
    if (this.#args === undefined || bytes > this.#room) this.#args = this.#grow(Math.max(4096, 2 * bytes));
    const args = this.#args;
    args.resize(handles.length, vals.length);
    for (let i = 0; i < handles.length; i++) args.setBuffer(i, (handles[i] as CudaBlock).address);
    for (let i = 0; i < vals.length; i++) args.setVal(handles.length, i, vals[i] as number);
    return args;
  }
  #grow(bytes: number): KernelArguments {
    const { memory } = this.#context.driver;
    if (this.#at !== 0) memory.free(this.#at);
    this.#room = bytes;
    this.#at = memory.alloc(bytes);
    return new KernelArguments(memory.view(this.#at, bytes), this.#at, 0, bytes);
  }
}

/** Modules of programs that were collected; their kernels may still run. */
const unloading = new FinalizationRegistry<{ context: CudaContext; module: number }>(
  ({ context, module }) => {
    context.retire(() => context.call("cuModuleUnload", module));
  },
);

const [MAX_THREADS_PER_BLOCK, MAX_DYNAMIC_SHARED] = [0, 8];

export class CudaProgram implements Program<CudaBlock>, Suspect {
  readonly context: CudaContext;
  readonly name: string;
  readonly source: string;
  /** a CUfunction */
  readonly handle: number;
  /** bytes of shared memory that a launch gives it */
  readonly shared: number;
  /** operations and bytes of a launch, for those who measure */
  cost: { readonly ops: number; readonly bytes: number } | undefined;
  readonly #args: LaunchArguments;
  readonly #timing: Timing;

  constructor(
    context: CudaContext,
    { args, timing }: { readonly args: LaunchArguments; readonly timing: Timing },
    {
      name,
      source,
      code,
    }: { readonly name: string; readonly source: Source<string>; readonly code: CudaCode },
  ) {
    this.context = context;
    this.name = name;
    this.source = source.code;
    this.#args = args;
    this.#timing = timing;
    let module: number;
    try {
      module = context.make("cuModuleLoadData", code.code);
    } catch (cause) {
      const what = `${context.name}: the driver does not load the ${code.kind} of kernel ${name}`;
      const hint =
        "An NVRTC that is newer than the driver makes such code: CUDA_PATH can name one of its version";
      throw new CompileError(`${what}: ${(cause as Error).message}. ${hint}\nsource:\n${source.code}`, {
        cause,
      });
    }
    // before anything else can fail: an object whose making failed is collected, too
    unloading.register(this, { context, module });
    this.handle = context.make("cuModuleGetFunction", module, code.entry);
    this.shared = source.dynamicShared;
    if (this.shared > 0) context.call("cuFuncSetAttribute", this.handle, MAX_DYNAMIC_SHARED, this.shared);
  }

  run(handles: readonly CudaBlock[], launch: Launch, wait: boolean): MaybePromise<number | undefined> {
    if (wait) return this.#timed(handles, launch);
    const timing = this.#timing;
    if (!timing.isOn) return this.#launch(handles, launch);
    const { ops = 0, bytes = 0 } = this.cost ?? {};
    const global = launch.globalSize.join(" × ");
    const span = {
      track: "compute",
      name: this.name,
      kind: "kernel",
      args: { FLOP: ops, bytes, global },
    } as const;
    timing.around(span, () => this.#launch(handles, launch));
  }

  #timed(handles: readonly CudaBlock[], launch: Launch): MaybePromise<number> {
    const { context } = this;
    const [start, end] = this.#timing.pair();
    context.call("cuEventRecord", start, context.stream);
    this.#launch(handles, launch);
    context.call("cuEventRecord", end, context.stream);
    return chain(context.synchronize(), () => this.#timing.seconds(start, end));
  }

  #launch(handles: readonly CudaBlock[], { globalSize: g, localSize: l, vals }: Launch): undefined {
    const { context } = this;
    const { extra } = this.#args.fill(handles, vals);
    context.enter();
    const status = context.driver.cuLaunchKernel(
      this.handle,
      g[0] ?? 1,
      g[1] ?? 1,
      g[2] ?? 1,
      l[0] ?? 1,
      l[1] ?? 1,
      l[2] ?? 1,
      this.shared,
      context.stream,
      0,
      extra,
    );
    if (status !== CUDA.SUCCESS) throw this.#refused(status, g, l);
    context.launched(this);
  }
  #refused(status: number, global: readonly number[], local: readonly number[]): DeviceError {
    const failure = this.context.failure(`launching ${this.name}`, status);
    if (this.context.isDead) return failure;
    const most = new Int32Array(1);
    this.context.call("cuFuncGetAttribute", most, MAX_THREADS_PER_BLOCK, this.handle);
    const block = `block ${local.join(" × ") || 1} (at most ${most[0]} threads)`;
    const sizes = `grid ${global.join(" × ") || 1}, ${block}, ${this.shared} bytes of shared memory`;
    return new DeviceError(`${failure.message}; ${sizes}\nsource:\n${this.source}`);
  }
}
