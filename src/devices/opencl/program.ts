// A compiled kernel on an OpenCL device: builds its text, launches it, and times it by the queue's events. A
// kernel object keeps its arguments, so only those that differ from the last launch are set.

import type { Source } from "../../codegen/target.ts";
import { env } from "../../env.ts";
import { CompileError, type DeviceError } from "../../errors.ts";
import { chain, type MaybePromise } from "../../helpers.ts";
import { kernelIdentifier } from "../../names.ts";
import type { Launch, Program } from "../../runtime/device.ts";
import { CL, explain } from "./api.ts";
import type { ClBlock } from "./block.ts";
import { type ClContext, textOf } from "./context.ts";

const BUILD_LOG = 0x1183;
const [STARTED, ENDED] = [0x1282, 0x1283];
const [KERNEL_GROUP_SIZE, PREFERRED_MULTIPLE] = [0x11b0, 0x11b3];
/** Of a loop for each core: one that is late holds the others up by less. */
const PARTS = 4;

/** Kernels and programs of those that were collected. */
const releasing = new FinalizationRegistry<{ context: ClContext; program: bigint; kernel: bigint }>(
  ({ context, program, kernel }) => {
    context.api.clReleaseKernel(kernel);
    context.api.clReleaseProgram(program);
  },
);

export class ClProgram implements Program<ClBlock> {
  readonly name: string;
  cost: { readonly ops: number; readonly bytes: number } | undefined;
  readonly #context: ClContext;
  readonly #source: string;
  readonly #kernel: bigint;
  /** it is a loop that threads divide */
  readonly #isPart: boolean;
  /** what the kernel object has as arguments */
  readonly #given: (ClBlock | number | undefined)[] = [];
  readonly #handle = new BigUint64Array(1);
  readonly #val = new Int32Array(1);
  readonly #global = new BigUint64Array(3);
  readonly #local = new BigUint64Array(3);

  constructor(context: ClContext, name: string, { code, isPart }: Source<string>, options: string) {
    this.#context = context;
    this.name = name;
    this.#source = code;
    this.#isPart = isPart;
    const program = context.make("clCreateProgramWithSource", context.context, 1, [code], 0n);
    const status = context.api.clBuildProgram(program, 1, BigUint64Array.of(context.device), options, 0n, 0n);
    if (status !== CL.SUCCESS) throw this.#refused(program, status);
    const [kernel, made] = context.tryToMake("clCreateKernel", program, kernelIdentifier(name));
    if (made !== CL.SUCCESS) throw this.#refused(program, made);
    this.#kernel = kernel;
    releasing.register(this, { context, program, kernel });
  }
  #refused(program: bigint, status: number): CompileError {
    const { api, device, name } = this.#context;
    const log = textOf((bytes, out, size) => {
      api.clGetProgramBuildInfo(program, device, BUILD_LOG, bytes, out, size);
    });
    api.clReleaseProgram(program);
    return new CompileError(
      `${name}: the driver does not build kernel ${this.name}: ${explain(status)}\n${log}\nsource:\n${this.#source}`,
    );
  }

  run(handles: readonly ClBlock[], launch: Launch, wait: boolean): MaybePromise<number | undefined> {
    this.#setArguments(handles, launch.vals);
    if (wait || env.PROFILE) return this.#timed(launch);
    this.#enqueue(launch, null);
  }
  #setArguments(handles: readonly ClBlock[], vals: readonly number[]): void {
    let i = 0;
    for (const given of handles) {
      // outputs come first: what is there again is read
      const block = handles.indexOf(given) < i ? given.readCopy() : given;
      this.#handle[0] = block.boundTo(this.name);
      this.#set(i++, block, 8, this.#handle);
    }
    for (const val of vals) {
      this.#val[0] = val;
      this.#set(i++, val, 4, this.#val);
    }
  }
  #set(i: number, value: ClBlock | number, bytes: number, from: BigUint64Array | Int32Array): void {
    if (this.#given[i] === value) return;
    this.#context.call("clSetKernelArg", this.#kernel, i, bytes, from);
    this.#given[i] = value;
  }
  #enqueue({ globalSize, localSize }: Launch, event: BigUint64Array | null): undefined {
    const { api, queue, computeUnits } = this.#context;
    for (let d = 0; d < 3; d++) {
      this.#local[d] = BigInt(localSize[d] ?? 1);
      this.#global[d] = BigInt((globalSize[d] ?? 1) * (localSize[d] ?? 1));
    }
    if (this.#isPart) this.#global[0] = BigInt(Math.min(globalSize[0] ?? 1, PARTS * computeUnits));
    const sizes = [null, this.#global, this.#local] as const;
    const status = api.clEnqueueNDRangeKernel(queue, this.#kernel, 3, ...sizes, 0, 0n, event);
    if (status !== CL.SUCCESS) throw this.#notLaunched(status);
    this.#context.enqueued(this.name);
  }
  #groupInfo(which: number): number {
    const out = new BigUint64Array(1);
    const { api, device } = this.#context;
    api.clGetKernelWorkGroupInfo(this.#kernel, device, which, 8, out, null);
    return Number(out[0]);
  }
  /** Threads that run in lockstep, as the driver says of this kernel. */
  get lockstep(): number {
    return Math.max(1, this.#groupInfo(PREFERRED_MULTIPLE));
  }
  #notLaunched(status: number): DeviceError {
    const most = this.#groupInfo(KERNEL_GROUP_SIZE);
    const sizes = `${this.#global.join(" × ")} threads in groups of ${this.#local.join(" × ")}, at most ${most}`;
    return this.#context.failure(`launching ${this.name} (${sizes})\nsource:\n${this.#source}\n`, status);
  }
  /** Runs it; the seconds that it took, by the device's clock. */
  #timed(launch: Launch): MaybePromise<number> {
    const context = this.#context;
    const event = new BigUint64Array(1);
    this.#enqueue(launch, event);
    return chain(context.synchronize(), () => {
      const made = event[0] as bigint;
      const [start, end] = [STARTED, ENDED].map((which) => {
        const at = new BigUint64Array(1);
        context.call("clGetEventProfilingInfo", made, which, 8, at, null);
        return at[0] as bigint;
      }) as [bigint, bigint];
      context.call("clReleaseEvent", made);
      return Number(end - start) / 1e9;
    });
  }
}
