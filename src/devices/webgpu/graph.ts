// A captured run of kernels on a GPU: pipelines and bind groups are made once, and each run encodes them
// into one command buffer, or into several where that would be very much work for one submit. Small kernels
// in a row are one dispatch (sequence.ts), once that is compiled, beside the first runs. A run with other
// memory looks up bind groups by its buffers, and finds those of earlier runs with the same ones. Values of
// variables are written only where they change.

import { env } from "../../env.ts";
import { InternalError } from "../../errors.ts";
import { type Step, settle, sum } from "../../helpers.ts";
import type { GraphItem, GraphKernel, GraphRunner, GraphSlot, Handle } from "../../runtime/device.ts";
import { activeProfiler, clock } from "../../runtime/profiling.ts";
import { evaluate, type Variable } from "../../shape/symbolic.ts";
import type { GpuBlock } from "./memory.ts";
import type { ComputePipeline, Pipelines } from "./pipelines.ts";
import { GpuProgram, type ProgramContext } from "./program.ts";
import type { Sequence, SequenceLimits, SmallKernel } from "./sequence.ts";
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
  /** the memory that it had last, and how often it had other memory than before */
  memory: readonly GpuBlock[] | undefined;
  moves: number;
}
/** Neighbours that one dispatch does, unless the memory of this run is such that it cannot. */
interface KernelRun {
  readonly kernels: readonly Captured[];
  /** undefined: it is being compiled, or was refused */
  readonly variants: Map<string, ComputePipeline | undefined>;
  readonly work: number;
  /** of them all; undefined: each runs by itself */
  dispatch: Dispatch | undefined;
  /** the moves of all kernels that this is decided for; undefined: it is to be decided again */
  moves: number | undefined;
}

/** What joins kernels: a page loads it with its first captured step, and goes on without until then. */
type Sequences = typeof import("./sequence.ts");

export class GpuGraph implements GraphRunner {
  readonly #stream: GpuStream;
  readonly #pipelines: Pipelines;
  readonly #limits: SequenceLimits;
  readonly #slots: readonly GraphSlot[];
  readonly #kernels: readonly Captured[];
  readonly #uniforms: UniformSlots | undefined;
  readonly #uniformSlots: number;
  /** by themselves, to be timed; and as they run together, which the memory of the first run decides */
  readonly #apart: readonly KernelRun[];
  #together: readonly KernelRun[] | undefined;
  #sequences: Sequences | undefined;

  constructor(
    { stream, pipelines }: ProgramContext,
    limits: SequenceLimits,
    items: readonly GraphItem[],
    slots: readonly GraphSlot[],
  ) {
    this.#stream = stream;
    this.#pipelines = pipelines;
    this.#limits = limits;
    this.#slots = slots;
    const kernels = items.map((item) => {
      if (item.kind === "kernel" && item.program instanceof GpuProgram)
        return { item, program: item.program };
      throw new InternalError("not a kernel of WEBGPU");
    });
    const count = kernels.filter(({ program }) => program.vals === "uniform").length;
    const uniforms = count === 0 ? undefined : new UniformSlots(stream, uniformLayout(stream.gpu), count);
    this.#uniformSlots = count;
    this.#uniforms = uniforms;
    let slot = 0;
    this.#kernels = kernels.map(({ item, program }) => ({
      item,
      program,
      isFixed: item.args.every((s) => slots[s]?.handle !== undefined),
      vals: valsOf(item, program, uniforms, slot),
      slot: program.vals === "uniform" ? slot++ : 0,
      variant: undefined,
      dispatch: undefined,
      memory: undefined,
      moves: 0,
    }));
    this.#apart = this.#kernels.map((k) => together([k]));
    if (kernels.length < 2) return;
    import("./sequence.ts").then(
      (code) => {
        this.#sequences = code;
      },
      () => {}, // a page that is offline
    );
  }

  *run(handles: readonly Handle[], varVals: ReadonlyMap<Variable, number>): Step<void> {
    this.#stream.check();
    this.#together ??= this.#divided(handles);
    const all = env.PROFILE ? this.#apart : (this.#together ?? this.#apart);
    for (const t of all) {
      if (this.#join(t, handles)) continue;
      for (const k of t.kernels) yield* this.#prepare(k, handles, varVals);
    }
    if (this.#uniforms?.isChanged === true) {
      // what was encoded before still reads the old values
      this.#stream.flush();
      this.#uniforms.write(this.#uniformSlots);
    }
    if (env.PROFILE) yield* this.#profiled();
    else this.#stream.replay(launches(all));
  }

  #divided(handles: readonly Handle[]): readonly KernelRun[] | undefined {
    if (this.#sequences === undefined) return undefined;
    const runs = this.#sequences.divided(this.#kernels, this.#limits, (k) =>
      smallKernel(k, this.#memory(k.item, handles)),
    );
    return runs.map(together);
  }
  /** Whether one dispatch does all of these kernels in this run. */
  #join(t: KernelRun, handles: readonly Handle[]): boolean {
    if (t.kernels.length === 1) return false;
    let moves = 0;
    for (const k of t.kernels) {
      this.#move(k, handles);
      moves += k.moves;
    }
    if (t.moves !== moves) {
      t.moves = undefined; // if this is refused, the next run decides again
      t.dispatch = this.#joined(t);
      t.moves = moves;
    }
    return t.dispatch !== undefined;
  }
  #joined(t: KernelRun): Dispatch | undefined {
    if (this.#sequences === undefined) return undefined;
    const sequence = new this.#sequences.Sequence(this.#limits);
    if (!t.kernels.every((k) => sequence.add(smallKernel(k, k.memory ?? [])))) return undefined;
    const { key, memory } = sequence;
    const variant = t.variants.get(key);
    if (variant !== undefined) {
      const { kernel, pipeline } = variant;
      return { kernel, pipeline, buffers: variant.bind(memory), vals: undefined, x: 1, y: 1, z: 1 };
    }
    if (!t.variants.has(key)) this.#compile(t, sequence);
    return undefined;
  }
  /** Beside the runs that follow: a driver may take seconds, and what it refuses goes on as it was. */
  #compile(t: KernelRun, sequence: Sequence): void {
    const { key } = sequence;
    t.variants.set(key, undefined);
    this.#pipelines.get(sequence.pipelineOf()).then(
      (variant) => {
        t.variants.set(key, variant);
        t.moves = undefined;
      },
      () => {},
    );
  }
  /** Makes the dispatch of a kernel for itself. */
  *#prepare(k: Captured, handles: readonly Handle[], varVals: ReadonlyMap<Variable, number>): Step<void> {
    this.#move(k, handles);
    k.variant ??= yield* settle(k.program.variant(k.memory ?? []));
    if (this.#revalue(k, varVals)) k.dispatch = undefined;
    k.dispatch ??= this.#dispatchOf(k, k.variant, varVals);
  }
  /**
   * Notes the memory of this run. Where it differs from that of the last, there is no dispatch until there is
   * a new one: if this run is refused, the next must not find an old one.
   */
  #move(k: Captured, handles: readonly Handle[]): void {
    const { item, isFixed, memory } = k;
    // results are often where they were
    if (memory !== undefined && (isFixed || item.args.every((s, i) => this.#block(s, handles) === memory[i])))
      return;
    k.dispatch = k.variant = undefined;
    k.memory = this.#memory(item, handles);
    k.moves++;
  }
  #block(slot: number, handles: readonly Handle[]): GpuBlock {
    return (this.#slots[slot]?.handle ?? handles[slot]) as GpuBlock;
  }
  #memory({ args }: GraphKernel, handles: readonly Handle[]): GpuBlock[] {
    return args.map((s) => this.#block(s, handles));
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
  #dispatchOf(
    { item, program, memory, vals }: Captured,
    variant: ComputePipeline,
    varVals: ReadonlyMap<Variable, number>,
  ): Dispatch {
    const known = new Map([...item.varVals, ...varVals]);
    const size = item.globalSize.map((s) => evaluate(s, known));
    return program.dispatchOf(variant, memory ?? [], size, vals);
  }
}

const together = (kernels: readonly Captured[]): KernelRun => ({
  kernels,
  variants: new Map(),
  work: sum(kernels.map(({ item }) => item.work)),
  dispatch: undefined,
  moves: undefined,
});
const smallKernel = ({ program, item }: Captured, memory: readonly GpuBlock[]): SmallKernel => ({
  program,
  grid: item.globalSize,
  local: item.localSize,
  work: item.work,
  memory,
});

function* launches(all: readonly KernelRun[]): Generator<{ dispatch: Dispatch; work: number }, void> {
  for (const { kernels, dispatch, work } of all) {
    if (dispatch !== undefined) yield { dispatch, work };
    else
      for (const k of kernels)
        if (k.dispatch !== undefined) yield { dispatch: k.dispatch, work: k.item.work };
  }
}

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
