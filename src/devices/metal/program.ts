// A compiled kernel on a GPU: makes a library and a pipeline of its text, and launches it. Each launch is a
// command buffer, which says when it ran.

import type { Source } from "../../codegen/target.ts";
import { env } from "../../env.ts";
import { CompileError, DeviceError } from "../../errors.ts";
import { chain, type MaybePromise, prod } from "../../helpers.ts";
import { kernelIdentifier } from "../../names.ts";
import type { Launch, Program } from "../../runtime/device.ts";
import { type MetalContext, type NamedKernelSource, releaseWith, size3 } from "./context.ts";
import type { MetalBlock } from "./memory.ts";
import { type Id, MTL } from "./messages.ts";
import { explain, type ObjC, stringOf } from "./objc.ts";
import { noting } from "./timing.ts";

/** Entries of a function's argument table. */
export const ARGUMENTS = 31;

export class MetalProgram implements Program<MetalBlock>, NamedKernelSource {
  readonly context: MetalContext;
  readonly name: string;
  readonly source: string;
  /** it can also be part of indirect command buffers */
  readonly pipeline: Id;
  cost: { readonly ops: number; readonly bytes: number } | undefined;
  /** threads of a threadgroup that registers and threadgroup memory leave room for */
  readonly #most: number;
  readonly #val = new Int32Array(1);

  constructor(context: MetalContext, name: string, { code, buffers, vals }: Source<string>) {
    this.context = context;
    this.name = name;
    this.source = code;
    if (buffers + vals > ARGUMENTS) {
      throw new CompileError(
        `${context.name}: ${name} takes ${buffers} buffers and ${vals} variables, and Metal ${ARGUMENTS} arguments ` +
          "in all; bind some of the variables",
      );
    }
    const { objc } = context;
    this.pipeline = objc.pool(() => this.#build());
    releaseWith(this, context, [this.pipeline]);
    this.#most = objc.send(this.pipeline, "maxTotalThreadsPerThreadgroup");
  }

  #build(): Id {
    const { objc, gpu } = this.context;
    const error = new BigUint64Array(1);
    const options = objc.send(objc.classOf("MTLCompileOptions"), "new");
    // with fast math NaN and infinity are assumed away
    objc.send(options, "setFastMathEnabled:", false);
    objc.send(options, "setLanguageVersion:", MTL.LANGUAGE_3_0);
    const text = stringOf(objc, this.source);
    const library = objc.send(gpu.id, "newLibraryWithSource:options:error:", text, options, error);
    objc.send(options, "release");
    if (library === 0n) throw this.#refused("does not compile", explain(objc, error[0] as bigint));
    const fn = objc.send(library, "newFunctionWithName:", stringOf(objc, kernelIdentifier(this.name)));
    objc.send(library, "release");
    if (fn === 0n) throw this.#refused("does not find", "no function of this name in its library");
    try {
      return this.#pipelineOf(objc, fn);
    } finally {
      objc.send(fn, "release");
    }
  }
  #pipelineOf(objc: ObjC, fn: Id): Id {
    const error = new BigUint64Array(1);
    const descriptor = objc.send(objc.classOf("MTLComputePipelineDescriptor"), "new");
    objc.send(descriptor, "setComputeFunction:", fn);
    objc.send(descriptor, "setSupportIndirectCommandBuffers:", true);
    const make = "newComputePipelineStateWithDescriptor:options:reflection:error:";
    const pipeline = objc.send(this.context.gpu.id, make, descriptor, 0, 0n, error);
    objc.send(descriptor, "release");
    if (pipeline === 0n) throw this.#refused("makes no pipeline of", explain(objc, error[0] as bigint));
    return pipeline;
  }
  #refused(what: string, why: string): CompileError {
    return new CompileError(
      `${this.context.name}: Metal ${what} kernel ${this.name}: ${why}\nsource:\n${this.source}`,
    );
  }

  run(handles: readonly MetalBlock[], launch: Launch, wait: boolean): MaybePromise<number | undefined> {
    if (!wait) {
      this.#launch(handles, launch, env.PROFILE ? this.#noted(launch) : undefined);
      return undefined;
    }
    let seconds = 0;
    const number = this.#launch(handles, launch, (start, end) => {
      seconds = end - start;
    });
    return chain(this.context.settled(number), () => seconds);
  }
  room(): MaybePromise<void> {
    return this.context.room();
  }
  #noted({ globalSize }: Launch): (start: number, end: number) => void {
    const { ops = 0, bytes = 0 } = this.cost ?? {};
    const args = { FLOP: ops, bytes, global: globalSize.join(" × ") };
    return noting(this.context, { track: "compute", name: this.name, kind: "kernel", args });
  }

  #launch(
    handles: readonly MetalBlock[],
    { globalSize, localSize, vals }: Launch,
    done: ((start: number, end: number) => void) | undefined,
  ): number {
    const { context } = this;
    const { objc } = context;
    this.requireRoom(localSize);
    const work = { what: this.name, kernels: [this], ...(done === undefined ? {} : { done }) };
    return context.submit(work, (commands) =>
      context.encoding(commands, "computeCommandEncoder", (encoder) => {
        objc.send(encoder, "setComputePipelineState:", this.pipeline);
        handles.forEach(({ memory, offset }, i) => {
          memory.isTouched = true;
          objc.send(encoder, "setBuffer:offset:atIndex:", memory.buffer, offset, i);
        });
        vals.forEach((val, i) => {
          this.#val[0] = val;
          objc.send(encoder, "setBytes:length:atIndex:", this.#val, 4, handles.length + i);
        });
        const dispatch = "dispatchThreadgroups:threadsPerThreadgroup:";
        objc.send(encoder, dispatch, size3(globalSize), size3(localSize));
      }),
    );
  }
  /** Refuses a threadgroup for which the kernel takes too many registers. */
  requireRoom(localSize: readonly number[]): void {
    if (prod(localSize) <= this.#most) return;
    throw new DeviceError(
      `${this.context.name}: a threadgroup of ${this.name} has ${localSize.join(" × ")} threads, and this GPU has room ` +
        `for ${this.#most}; give smaller amounts of LOCAL and GROUP, or NOOPT=1\nsource:\n${this.source}`,
    );
  }
}
