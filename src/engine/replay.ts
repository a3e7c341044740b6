// Runs captured items again. All that can be known is worked out once: which program with which handles, values and
// sizes. A run writes the handles of this call's inputs and outputs, and the values of its variables, into the places
// where they are used (the sites), and goes through a flat list. What was fixed stays as it is.

import { env } from "../env.ts";
import { InternalError } from "../errors.ts";
import { type MaybePromise, type Step, settle } from "../helpers.ts";
import type { Buffer } from "../runtime/buffer.ts";
import { GlobalCounters } from "../runtime/counters.ts";
import type { Handle, Program } from "../runtime/device.ts";
import { Device } from "../runtime/registry.ts";
import { BufferXfer, CompiledRunner, type Runner, type VarVals } from "../runtime/runner.ts";
import { evaluate, type Variable } from "../shape/symbolic.ts";
import type { Captured, JitItem, Slot } from "./capture.ts";

/** A place in a list of arguments that changes from call to call. */
interface Site {
  readonly list: Handle[];
  readonly at: number;
}
/** A kernel with its arguments in place. */
interface KernelCall {
  readonly program: Program;
  readonly handles: Handle[];
  readonly launch: {
    readonly globalSize: number[];
    readonly localSize: readonly number[];
    readonly vals: number[];
  };
}
/** Anything else: copies, reads, functions of the user. */
interface RunnerCall {
  readonly program?: undefined;
  readonly runner: Runner;
  readonly item: JitItem;
}

export class Replay {
  readonly #captured: Captured;
  readonly #calls: (KernelCall | RunnerCall)[];
  /** by slot */
  readonly #sites: Site[][];
  /** the buffers of this run, by slot */
  readonly #buffers: (Buffer | undefined)[];
  /** how to bring the values of variables to their places */
  readonly #setters: ((varVals: VarVals) => void)[] = [];
  /** slots that change with every run */
  readonly #changing: readonly number[];
  readonly #kernels: number;
  readonly #ops: number;
  readonly #bytes: number;

  constructor(captured: Captured) {
    this.#captured = captured;
    this.#buffers = captured.slots.map((s) => (s.kind === "fixed" ? s.buffer.ensureAllocated() : undefined));
    this.#sites = captured.slots.map(() => []);
    this.#changing = captured.slots.flatMap((s, i) => (s.kind === "fixed" ? [] : [i]));
    this.#calls = captured.items.map((item) => this.#callOf(item));
    const kernels = captured.items.flatMap(({ runner }) =>
      runner instanceof CompiledRunner ? [runner.kernel] : [],
    );
    this.#kernels = kernels.length;
    this.#ops = kernels.reduce((n, k) => n + k.ops, 0);
    this.#bytes = kernels.reduce((n, k) => n + k.bytes, 0);
  }

  #callOf(item: JitItem): KernelCall | RunnerCall {
    const { runner } = item;
    if (!(runner instanceof CompiledRunner)) return { runner, item };
    const { kernel } = runner;
    const slots = kernel.globals.map((i) => item.args[i] as number);
    const handles = slots.map((s) => this.#buffers[s]?.handle);
    slots.forEach((s, at) => {
      if (this.#captured.slots[s]?.kind !== "fixed") this.#sites[s]?.push({ list: handles, at });
    });
    const globalSize = kernel.globalSize.map((s) => evaluate(s, item.varVals));
    const vals = kernel.vars.map((v) => item.varVals.get(v) as number);
    if (kernel.vars.length > 0) {
      this.#setters.push((varVals) => {
        kernel.vars.forEach((v, i) => {
          vals[i] = bindingOf(v, varVals);
        });
        kernel.globalSize.forEach((s, i) => {
          globalSize[i] = evaluate(s, varVals);
        });
      });
    }
    return { program: kernel.program, handles, launch: { globalSize, localSize: kernel.localSize, vals } };
  }

  /** Executes on this call's inputs; `outputs` are by slot. */
  *run(inputs: readonly Buffer[], outputs: ReadonlyMap<number, Buffer>, varVals: VarVals): Step<void> {
    const { slots } = this.#captured;
    for (const s of this.#changing) {
      const slot = slots[s] as Slot;
      const buffer = slot.kind === "input" ? inputs[slot.index] : outputs.get(s);
      if (buffer === undefined) throw new InternalError(`slot ${s} of a replay has no buffer`);
      this.#buffers[s] = buffer;
      const sites = this.#sites[s] as Site[];
      if (sites.length === 0) continue;
      const { handle } = buffer;
      for (let i = 0; i < sites.length; i++) {
        const site = sites[i] as Site;
        site.list[site.at] = handle;
      }
    }
    for (const set of this.#setters) set(varVals);
    try {
      if (env.DEBUG >= 2) yield* this.#observed(varVals);
      else yield* this.#execute(varVals);
    } finally {
      // this call's buffers belong to the caller
      for (const s of this.#changing) this.#buffers[s] = undefined;
    }
  }

  *#execute(varVals: VarVals): Step<void> {
    const calls = this.#calls;
    for (let i = 0; i < calls.length; i++) {
      const call = calls[i] as KernelCall | RunnerCall;
      if (call.program === undefined) {
        yield* this.#runOther(call, varVals);
        continue;
      }
      const done: MaybePromise<unknown> = call.program.run(call.handles, call.launch, false);
      if (done !== undefined) yield* settle(done);
    }
    GlobalCounters.kernelCount += this.#kernels;
    GlobalCounters.globalOps += this.#ops;
    GlobalCounters.globalMem += this.#bytes;
  }

  *#runOther({ runner, item }: RunnerCall, varVals: VarVals): Step<void> {
    const buffers = item.args.map((s) => this.#buffers[s] as Buffer);
    // a transfer does not ask whether the other side is ready
    if (runner instanceof BufferXfer) {
      for (const b of buffers) yield* settle(Device.get(b.device).synchronize());
    }
    yield* runner.run(buffers, bindings(item, varVals), env.DEBUG >= 2);
  }

  /** One line an item for DEBUG=2. */
  *#observed(varVals: VarVals): Step<void> {
    for (const item of this.#captured.items) yield* this.#runOther({ runner: item.runner, item }, varVals);
  }
}

function bindingOf(v: Variable, varVals: VarVals): number {
  const value = varVals.get(v);
  if (value === undefined) throw new InternalError(`a replay has no value for ${v.name}`);
  return value;
}
/** An item's variables with the values of this call. */
const bindings = ({ varVals: own }: JitItem, varVals: VarVals): VarVals =>
  own.size === 0 ? own : new Map([...own.keys()].map((v) => [v, bindingOf(v, varVals)]));
