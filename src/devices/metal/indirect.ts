// An indirect command buffer and its argument buffer: kernels with the memory, values and sizes of a run.
// What the GPU executes is changed only while it does not, which graph.ts sees to.

import { OutOfMemoryError } from "../../errors.ts";
import { type MetalContext, releaseWith, size3 } from "./context.ts";
import type { MetalBlock } from "./memory.ts";
import { type Id, MTL } from "./messages.ts";
import type { MetalProgram } from "./program.ts";

/** What is the same in every run. */
export interface IndirectKernel {
  readonly program: MetalProgram;
  readonly localSize: readonly number[];
  readonly buffers: number;
  readonly vals: number;
  /** it starts when all kernels before it are done */
  readonly isAfter: boolean;
}
/** What a run says of a kernel. */
export interface KernelCommand {
  readonly blocks: readonly MetalBlock[];
  readonly vals: readonly number[];
  readonly groups: readonly number[];
}

/** A value of its own stands at a multiple of this: what any GPU wants of a constant. */
const VALUE = 256;

export class IndirectCopy {
  readonly #context: MetalContext;
  readonly #kernels: readonly IndirectKernel[];
  readonly #needsPipelines: boolean;
  readonly #indirect: Id;
  readonly #commands: readonly Id[];
  /** where the variables of all kernels are; 0n: they have none */
  readonly #arguments: Id;
  readonly #values: Int32Array;
  /** what the commands say */
  readonly #says: (KernelCommand | undefined)[];
  /** the number of the command buffer that executed it last */
  lastRun = 0;

  constructor(context: MetalContext, kernels: readonly IndirectKernel[], needsPipelines: boolean) {
    const { objc, gpu } = context;
    this.#context = context;
    this.#kernels = kernels;
    this.#needsPipelines = needsPipelines;
    this.#says = kernels.map(() => undefined);
    for (const { program, localSize } of kernels) program.requireRoom(localSize);
    const count = kernels.reduce((n, k) => n + k.vals, 0);
    const made: Id[] = [];
    // before anything can fail: an object whose making failed is collected, too
    releaseWith(this, context, made);
    const keep = (id: Id): Id => {
      if (id === 0n)
        throw new OutOfMemoryError(`${context.name}: no room for a graph of ${kernels.length} kernels`);
      made.push(id);
      return id;
    };
    const bytes = VALUE * count;
    this.#arguments =
      count === 0 ? 0n : keep(objc.send(gpu.id, "newBufferWithLength:options:", bytes, MTL.STORAGE_SHARED));
    const view = count === 0 ? undefined : objc.view(objc.send(this.#arguments, "contents"), bytes);
    this.#values =
      view === undefined ? new Int32Array(0) : new Int32Array(view.buffer, view.byteOffset, bytes / 4);
    this.#indirect = keep(this.#make());
    this.#commands = objc.pool(() =>
      kernels.map((_, i) => {
        const command = objc.send(this.#indirect, "indirectComputeCommandAtIndex:", i);
        return keep(objc.send(command, "retain"));
      }),
    );
    objc.pool(() => this.#encodeFixed());
  }

  #make(): Id {
    const { objc, gpu } = this.#context;
    const descriptor = objc.send(objc.classOf("MTLIndirectCommandBufferDescriptor"), "new");
    objc.send(descriptor, "setCommandTypes:", MTL.COMMAND_CONCURRENT_DISPATCH);
    objc.send(descriptor, "setInheritBuffers:", false);
    objc.send(descriptor, "setInheritPipelineState:", false);
    const most = Math.max(...this.#kernels.map((k) => k.buffers + k.vals));
    objc.send(descriptor, "setMaxKernelBufferBindCount:", most);
    const make = "newIndirectCommandBufferWithDescriptor:maxCommandCount:options:";
    const indirect = objc.send(gpu.id, make, descriptor, this.#kernels.length, MTL.STORAGE_SHARED);
    objc.send(descriptor, "release");
    return indirect;
  }
  /** What no run changes. */
  #encodeFixed(): void {
    const { objc } = this.#context;
    let at = 0;
    this.#kernels.forEach(({ program, buffers, vals, isAfter }, i) => {
      const command = this.#commands[i] as Id;
      objc.send(command, "setComputePipelineState:", program.pipeline);
      for (let k = 0; k < vals; k++) {
        const place = [VALUE * at++, buffers + k] as const;
        objc.send(command, "setKernelBuffer:offset:atIndex:", this.#arguments, ...place);
      }
      if (isAfter) objc.send(command, "setBarrier");
    });
  }

  /** Whether the commands say this already. */
  isSame(commands: readonly KernelCommand[]): boolean {
    return commands.every((c, i) => {
      const now = this.#says[i];
      return now !== undefined && sameMemory(c, now) && same(c.vals, now.vals) && same(c.groups, now.groups);
    });
  }

  /** Executes the kernels with what this run says of them. */
  run(commands: readonly KernelCommand[]): void {
    const context = this.#context;
    const { objc } = context;
    objc.pool(() => this.#update(commands));
    const blocks = commands.flatMap((c) => c.blocks);
    for (const { memory } of blocks) memory.isTouched = true;
    const resources = new Set(blocks.map((b) => b.memory.buffer));
    if (this.#arguments !== 0n) resources.add(this.#arguments);
    const kernels = this.#kernels.map((k) => k.program);
    this.lastRun = context.submit({ what: `graph of ${kernels.length} kernels`, kernels }, (buffer) =>
      context.encoding(buffer, "computeCommandEncoder", (encoder) => {
        const used = BigUint64Array.from(resources);
        objc.send(encoder, "useResources:count:usage:", used, used.length, MTL.USAGE_READ_WRITE);
        if (this.#needsPipelines) this.#usePipelines(encoder);
        const all = { location: 0, length: kernels.length };
        objc.send(encoder, "executeCommandsInBuffer:withRange:", this.#indirect, all);
      }),
    );
  }
  /** A dispatch of nothing makes a pipeline known. */
  #usePipelines(encoder: Id): void {
    const { objc } = this.#context;
    const nothing = { width: 0, height: 0, depth: 0 };
    for (const pipeline of new Set(this.#kernels.map((k) => k.program.pipeline))) {
      objc.send(encoder, "setComputePipelineState:", pipeline);
      objc.send(encoder, "dispatchThreadgroups:threadsPerThreadgroup:", nothing, nothing);
    }
  }
  #update(commands: readonly KernelCommand[]): void {
    const { objc } = this.#context;
    let at = 0;
    commands.forEach((c, i) => {
      const { localSize } = this.#kernels[i] as IndirectKernel;
      const [command, now] = [this.#commands[i] as Id, this.#says[i]];
      c.blocks.forEach(({ memory, offset }, k) => {
        const old = now?.blocks[k];
        if (old?.memory === memory && old.offset === offset) return;
        objc.send(command, "setKernelBuffer:offset:atIndex:", memory.buffer, offset, k);
      });
      for (const val of c.vals) this.#values[(VALUE / 4) * at++] = val;
      if (now === undefined || !same(c.groups, now.groups)) {
        const dispatch = "concurrentDispatchThreadgroups:threadsPerThreadgroup:";
        objc.send(command, dispatch, size3(c.groups), size3(localSize));
      }
      this.#says[i] = c;
    });
  }
}

const same = (a: readonly number[], b: readonly number[]): boolean => a.every((x, i) => x === b[i]);
const sameMemory = (a: KernelCommand, b: KernelCommand): boolean =>
  a.blocks.every((x, i) => x.memory === b.blocks[i]?.memory && x.offset === b.blocks[i]?.offset);
