// Indirect command buffers of the fake runtime: commands that are written once and executed often. Changing
// one while a command buffer that executes it is not done is a fault.

import type { Id, Size3 } from "../../../src/devices/metal/messages.ts";
import { demand, type FakeObject } from "./fake.ts";
import type { Argument, FakeBuffer, FakeMetal, FakePipeline } from "./fakegpu.ts";

export class IndirectCommand {
  readonly #metal: FakeMetal;
  readonly #args: (Argument | undefined)[] = [];
  readonly object: FakeObject;
  #pipeline: FakePipeline | undefined;
  #sizes: readonly [groups: Size3, local: Size3] | undefined;
  isAfter = false;

  constructor(metal: FakeMetal, indirect: FakeIndirect, binds: number) {
    this.#metal = metal;
    const change = (): void =>
      demand(indirect.flights === 0, "a command is changed while the GPU executes it");
    this.object = metal.runtime.add("MTLIndirectComputeCommand", {
      "setComputePipelineState:": (id: Id) => {
        change();
        this.#pipeline = metal.pipelineAt(id);
        demand(this.#pipeline.isIndirect, `${this.name}: its pipeline is not for indirect commands`);
      },
      "setKernelBuffer:offset:atIndex:": (id: Id, offset: number, i: number) => {
        change();
        demand(i < binds, `${this.name}: buffer ${i} of ${binds}`);
        this.#args[i] = { buffer: metal.bufferAt(id, offset, "setKernelBuffer"), offset };
      },
      "concurrentDispatchThreadgroups:threadsPerThreadgroup:": (groups: Size3, local: Size3) => {
        change();
        this.#sizes = [groups, local];
      },
      setBarrier: () => {
        change();
        this.isAfter = true;
      },
    });
  }
  get name(): string {
    return this.#pipeline?.kernel.name ?? "a command without a pipeline";
  }
  memory(): FakeBuffer[] {
    return this.#args.flatMap((x) => (x !== undefined && "buffer" in x ? [x.buffer] : []));
  }
  launch(): boolean {
    demand(this.#pipeline !== undefined && this.#sizes !== undefined, `${this.name}: it is not complete`);
    return this.#metal.launch(this.#pipeline, this.#args, ...this.#sizes);
  }
}

export class FakeIndirect {
  readonly object: FakeObject;
  readonly #commands: readonly IndirectCommand[];
  /** command buffers that execute it and are not done */
  flights = 0;

  constructor(metal: FakeMetal, count: number, binds: number) {
    const { runtime } = metal;
    this.object = runtime.add(
      "MTLIndirectCommandBuffer",
      {
        "indirectComputeCommandAtIndex:": (i) => {
          demand(i < count, `indirect command ${i} of ${count}`);
          const { object } = this.#commands[i] as IndirectCommand;
          runtime.retain(object.id);
          return runtime.autoreleased(object);
        },
      },
      () => {
        for (const { object } of this.#commands) runtime.release(object.id);
      },
    );
    this.#commands = Array.from({ length: count }, () => new IndirectCommand(metal, this, binds));
  }
  range(location: number, length: number): readonly IndirectCommand[] {
    demand(location + length <= this.#commands.length, `commands ${location} to ${location + length}`);
    return this.#commands.slice(location, location + length);
  }
}
