// Runs captured items again. All that can be known is worked out once: graphs, programs, sizes, the handles
// of fixed slots. A run fills in the handles of this call's inputs and outputs and goes through the stages.

import { env } from "../../env.ts";
import { InternalError } from "../../errors.ts";
import { type Step, settle } from "../../helpers.ts";
import { PAUSE } from "../../pace.ts";
import type { Buffer } from "../../runtime/buffer.ts";
import { GlobalCounters } from "../../runtime/counters.ts";
import type { Handle } from "../../runtime/device.ts";
import { BufferXfer, CompiledRunner, type VarVals } from "../../runtime/runner.ts";
import { Device } from "../devices.ts";
import type { CapturedFunction, JitItem, Slot } from "./capture.ts";
import { condense, type GraphStage } from "./graph.ts";

export class Replay {
  readonly #captured: CapturedFunction;
  readonly stages: readonly GraphStage[];
  /** by slot; those that change are there during a run only */
  readonly #buffers: (Buffer | undefined)[];
  readonly #handles: Handle[];
  /** slots that change with every run */
  readonly #changing: readonly number[];
  /** what the graphs do: it is not counted while they run */
  readonly #counts = { kernels: 0, copies: 0, ops: 0, bytes: 0 };

  constructor(captured: CapturedFunction) {
    this.#captured = captured;
    this.#buffers = captured.slots.map((s) => (s.kind === "fixed" ? s.buffer.ensureAllocated() : undefined));
    this.#handles = this.#buffers.map((b) => b?.handle);
    this.#changing = captured.slots.flatMap((s, i) => (s.kind === "fixed" ? [] : [i]));
    this.stages = condense(captured);
    for (const stage of this.stages) if (stage.kind === "graph") for (const x of stage.items) this.#count(x);
  }
  #count({ runner, nbytes }: JitItem): void {
    const counts = this.#counts;
    if (runner instanceof CompiledRunner) {
      counts.kernels++;
      counts.ops += runner.kernel.ops;
      counts.bytes += runner.kernel.bytes;
    } else {
      counts.copies++;
      counts.bytes += nbytes;
    }
  }

  /** Executes on this call's inputs; `outputs` are by slot. */
  *run(inputs: readonly Buffer[], outputs: ReadonlyMap<number, Buffer>, varVals: VarVals): Step<void> {
    const { slots } = this.#captured;
    for (const s of this.#changing) {
      const slot = slots[s] as Slot;
      const buffer = slot.kind === "input" ? inputs[slot.index] : outputs.get(s);
      if (buffer === undefined) throw new InternalError(`slot ${s} of a replay has no buffer`);
      this.#buffers[s] = buffer;
      this.#handles[s] = buffer.handle;
    }
    try {
      if (env.DEBUG >= 2) for (const item of this.#captured.items) yield* this.#runItem(item, varVals);
      else yield* this.#runStages(varVals);
    } finally {
      // this call's buffers belong to the caller
      for (const s of this.#changing) this.#buffers[s] = this.#handles[s] = undefined;
    }
  }

  *#runStages(varVals: VarVals): Step<void> {
    for (const stage of this.stages) {
      yield PAUSE;
      if (stage.kind === "graph") yield* stage.graph.run(this.#handles, varVals);
      else yield* this.#runItem(stage.item, varVals);
    }
    const { kernels, copies, ops, bytes } = this.#counts;
    GlobalCounters.kernelCount += kernels;
    GlobalCounters.copyCount += copies;
    GlobalCounters.globalOps += ops;
    GlobalCounters.globalMem += bytes;
  }

  *#runItem({ runner, args, varVals: own }: JitItem, varVals: VarVals): Step<void> {
    const buffers = args.map((s) => this.#buffers[s] as Buffer);
    // a transfer does not ask whether the other side is ready
    if (runner instanceof BufferXfer) {
      for (const b of buffers) yield* settle(Device.get(b.device).synchronize());
    }
    const bound = own.size === 0 ? own : new Map([...own].map(([v, n]) => [v, varVals.get(v) ?? n]));
    yield* runner.run(buffers, bound, env.DEBUG >= 2);
  }
}
