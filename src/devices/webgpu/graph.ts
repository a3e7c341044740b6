// A captured run of kernels on a GPU: pipelines and bind groups are made once, and each run encodes them into
// one command buffer, or into several where that would be very much work for one submit. A run with other
// memory looks up bind groups by its buffers, and finds those of earlier runs with the same ones. Values of
// variables are written only where they change.

import { env } from "../../env.ts";
import { InternalError } from "../../errors.ts";
import { type Step, settle } from "../../helpers.ts";
import type { GraphItem, GraphKernel, GraphRunner, GraphSlot, Handle } from "../../runtime/device.ts";
import { activeProfiler, clock } from "../../runtime/profiling.ts";
import { evaluate, type Variable } from "../../shape/symbolic.ts";
import type { GpuBlock } from "./memory.ts";
import type { ComputePipeline } from "./pipelines.ts";
import { GpuProgram } from "./program.ts";
import type { Dispatch, GpuStream, Vals } from "./stream.ts";
import { UniformSlots, uniformLayout } from "./uniforms.ts";

/** A kernel of the run, and the dispatch that it had last. */
interface Captured {
  readonly item: GraphKernel;
  readonly program: GpuProgram;
  /** its memory is the same in every run */
  readonly isFixed: boolean;
  /** its variables, and the slot of the uniform that they have */
  readonly vals: Vals | undefined;
  readonly slot: number;
  variant: ComputePipeline | undefined;
  dispatch: Dispatch | undefined;
  /** the memory that it had last */
  memory: readonly GpuBlock[];
}

export class GpuGraph implements GraphRunner {
  readonly #stream: GpuStream;
  readonly #slots: readonly GraphSlot[];
  readonly #kernels: readonly Captured[];
  readonly #uniforms: UniformSlots | undefined;
  readonly #uniformSlots: number;

  constructor(stream: GpuStream, items: readonly GraphItem[], slots: readonly GraphSlot[]) {
    this.#stream = stream;
    this.#slots = slots;
    const kernels = items.map((item) => {
      if (item.kind === "kernel" && item.program instanceof GpuProgram)
        return { item, program: item.program };
      throw new InternalError("a WEBGPU graph has kernels of WEBGPU");
    });
    const count = kernels.filter(({ program }) => program.vals === "uniform").length;
    const uniforms = count === 0 ? undefined : new UniformSlots(stream, uniformLayout(stream.gpu), count);
    this.#uniformSlots = count;
    this.#uniforms = uniforms;
    let slot = 0;
    this.#kernels = kernels.map(({ item, program }) => {
      const isFixed = item.args.every((s) => slots[s]?.handle !== undefined);
      const at = program.vals === "uniform" ? slot++ : 0;
      return { item, program, isFixed, slot: at, vals: valsOf(item, program, uniforms, at), ...NOT_YET };
    });
  }

  *run(handles: readonly Handle[], varVals: ReadonlyMap<Variable, number>): Step<void> {
    this.#stream.check();
    for (const k of this.#kernels) {
      const hasMoved = this.#hasMoved(k, handles);
      // no dispatch until there is a new one: if this run is refused, the next must not find an old one
      if (hasMoved) {
        k.dispatch = undefined;
        k.memory = this.#memory(k.item, handles);
        k.variant = yield* settle(k.program.variant(k.memory));
      }
      if (this.#revalue(k, varVals)) k.dispatch = undefined;
      k.dispatch ??= this.#dispatchOf(k, varVals);
    }
    if (this.#uniforms?.isChanged === true) {
      // what was encoded before still reads the old values
      this.#stream.flush();
      this.#uniforms.write(this.#uniformSlots);
    }
    if (env.PROFILE) yield* this.#profiled();
    else this.#stream.replay(this.#launches());
  }

  *#launches(): Generator<{ dispatch: Dispatch; work: number }, void> {
    for (const { dispatch, item } of this.#kernels)
      if (dispatch !== undefined) yield { dispatch, work: item.work };
  }
  /** Each kernel by itself, so that the trace has its time. */
  *#profiled(): Step<void> {
    for (const { program, dispatch, item } of this.#kernels) {
      if (dispatch === undefined) continue;
      const start = clock();
      const seconds = yield* settle(program.timed(() => dispatch));
      const device = item.device.name;
      const end = start + seconds * 1e6;
      const args = { FLOP: program.cost?.ops ?? 0, bytes: program.cost?.bytes ?? 0 };
      activeProfiler()?.add({
        device,
        track: "compute",
        name: program.name,
        kind: "kernel",
        start,
        end,
        args,
      });
    }
  }

  /** Whether this run gives the kernel other memory than the last one: results are often where they were. */
  #hasMoved({ item, isFixed, dispatch, memory }: Captured, handles: readonly Handle[]): boolean {
    if (dispatch === undefined) return true;
    return !isFixed && item.args.some((s, i) => (this.#slots[s]?.handle ?? handles[s]) !== memory[i]);
  }
  #memory({ args }: GraphKernel, handles: readonly Handle[]): GpuBlock[] {
    return args.map((s) => (this.#slots[s]?.handle ?? handles[s]) as GpuBlock);
  }
  /** Puts the values of this run where the kernel reads them; whether any differs. */
  #revalue({ item, vals, slot }: Captured, varVals: ReadonlyMap<Variable, number>): boolean {
    if (vals === undefined) return false;
    // a variable that the call does not give counts the steps of a loop: the value is the launch's own
    const values = item.vars.map((v) => varVals.get(v) ?? (item.varVals.get(v) as number));
    if (!("words" in vals)) return this.#uniforms?.set(slot, values) === true;
    const isNew = values.some((v, i) => vals.words[i] !== v);
    vals.words.set(values);
    return isNew;
  }
  #dispatchOf(k: Captured, varVals: ReadonlyMap<Variable, number>): Dispatch | undefined {
    if (k.variant === undefined) return undefined;
    const known = new Map([...k.item.varVals, ...varVals]);
    const size = k.item.globalSize.map((s) => evaluate(s, known));
    return k.program.dispatchOf(k.variant, k.memory, size, k.vals);
  }
}

const NOT_YET = { variant: undefined, dispatch: undefined, memory: [] };

/** Where a kernel's variables are. */
function valsOf(
  item: GraphKernel,
  program: GpuProgram,
  uniforms: UniformSlots | undefined,
  slot: number,
): Vals | undefined {
  if (program.vals === "none") return undefined;
  if (uniforms === undefined || program.vals === "immediate")
    return { words: new Int32Array(item.vars.length) };
  return { group: uniforms.group, at: uniforms.at(slot) };
}
