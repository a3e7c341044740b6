// MetalGraph: a captured run of kernels as one indirect command buffer, which the GPU executes by itself.
// Each kernel is a command with its pipeline, its buffers and its sizes; values of variables are in an
// argument buffer. A run changes the commands whose memory, values or sizes differ from those of the run
// before; as the GPU may still read these, the run takes another copy of the buffer or waits. Copies between
// devices, and kernels of another device, part a graph into several.

import { env } from "../../env.ts";
import { InternalError } from "../../errors.ts";
import { range, type Step, settle } from "../../helpers.ts";
import type {
  GraphCopy,
  GraphItem,
  GraphKernel,
  GraphRunner,
  GraphSlot,
  Handle,
} from "../../runtime/device.ts";
import { evaluate, type Variable } from "../../shape/symbolic.ts";
import { orderOf } from "../order.ts";
import type { MetalContext } from "./context.ts";
import { IndirectCopy, type IndirectKernel, type KernelCommand } from "./indirect.ts";
import type { MetalAllocator, MetalBlock } from "./memory.ts";
import { MetalProgram } from "./program.ts";

/** What a graph needs of the device that an item runs on. */
export interface MetalGraphDevice {
  readonly context: MetalContext;
  readonly allocator: MetalAllocator;
  /** a pipeline must be used directly, too, before indirect commands find it: M1 and M2 */
  readonly needsPipelines: boolean;
}
type KernelPart = { readonly device: MetalGraphDevice; readonly items: GraphKernel[] };
type Part = ({ readonly kind: "kernels" } & KernelPart) | { readonly kind: "copy"; readonly item: GraphCopy };
type GraphStep = { readonly context: MetalContext; run(run: GraphInputs): Step<void> };

/** Commands of an indirect command buffer: Metal allows 16384. */
const COMMANDS = 4096;

/** What a run is given. */
class GraphInputs {
  readonly #slots: readonly GraphSlot[];
  readonly #handles: readonly Handle[];
  readonly #varVals: ReadonlyMap<Variable, number>;

  constructor(
    slots: readonly GraphSlot[],
    handles: readonly Handle[],
    varVals: ReadonlyMap<Variable, number>,
  ) {
    this.#slots = slots;
    this.#handles = handles;
    this.#varVals = varVals;
  }
  block(slot: number): MetalBlock {
    return (this.#slots[slot]?.handle ?? this.#handles[slot]) as MetalBlock;
  }
  command({ args, vars, varVals, globalSize }: GraphKernel): KernelCommand {
    // a variable that the call does not give counts the steps of a loop: the value is the launch's own
    const known = vars.length === 0 ? this.#varVals : new Map([...varVals, ...this.#varVals]);
    return {
      blocks: args.map((s) => this.block(s)),
      vals: vars.map((v) => known.get(v) as number),
      groups: globalSize.map((s) => evaluate(s, known)),
    };
  }
}

export class MetalGraph implements GraphRunner {
  readonly #stages: readonly GraphStep[];
  readonly #contexts: readonly MetalContext[];
  readonly #slots: readonly GraphSlot[];

  constructor(
    items: readonly GraphItem[],
    slots: readonly GraphSlot[],
    deviceOf: (x: unknown) => MetalGraphDevice,
  ) {
    this.#slots = slots;
    this.#stages = partsOf(items, deviceOf).map((p) =>
      p.kind === "copy" ? copyStage(p.item, deviceOf) : new KernelStage(p, slots),
    );
    const all = items.flatMap((x) => (x.kind === "kernel" ? [x.device] : [x.from, x.to]));
    this.#contexts = [...new Set(all.map((d) => deviceOf(d).context))];
  }

  *run(handles: readonly Handle[], varVals: ReadonlyMap<Variable, number>): Step<void> {
    const inputs = new GraphInputs(this.#slots, handles, varVals);
    const [first] = this.#stages;
    if (first === undefined) return;
    for (const other of this.#contexts) if (other !== first.context) first.context.waitFor(other.fence());
    let last = first.context;
    for (const stage of this.#stages) {
      if (stage.context !== last) stage.context.waitFor(last.fence());
      yield* stage.run(inputs);
      last = stage.context;
    }
    if (this.#contexts.length === 1) return;
    const end = last.fence();
    for (const other of this.#contexts) other.waitFor(end);
  }
}

/** Neighbours that one indirect command buffer executes, and copies. */
function partsOf(items: readonly GraphItem[], deviceOf: (x: unknown) => MetalGraphDevice): Part[] {
  const parts: Part[] = [];
  for (const item of items) {
    if (item.kind === "copy") {
      parts.push({ kind: "copy", item });
      continue;
    }
    const device = deviceOf(item.device);
    const last = parts.at(-1);
    if (last?.kind === "kernels" && last.device === device && last.items.length < COMMANDS)
      last.items.push(item);
    else parts.push({ kind: "kernels", device, items: [item] });
  }
  return parts;
}

function copyStage(item: GraphCopy, deviceOf: (x: unknown) => MetalGraphDevice): GraphStep {
  const { context, allocator } = deviceOf(item.to);
  return {
    context,
    // biome-ignore lint/correctness/useYield: enqueuing never waits
    *run(inputs): Step<void> {
      allocator.transfer(inputs.block(item.dest), inputs.block(item.src), item.nbytes);
    },
  };
}

/** Copies of an indirect command buffer: what a run changes, earlier ones may still be reading. */
const COPIES = 3;

class KernelStage implements GraphStep {
  readonly context: MetalContext;
  readonly #items: readonly GraphKernel[];
  readonly #kernels: readonly IndirectKernel[];
  readonly #device: MetalGraphDevice;
  /** the one that ran last comes last */
  #copies: IndirectCopy[] = [];

  constructor({ device, items }: KernelPart, slots: readonly GraphSlot[]) {
    this.context = device.context;
    this.#device = device;
    this.#items = items;
    const barriers = barriersOf(items, slots);
    this.#kernels = items.map(({ program, localSize, args, vars }, i) => {
      if (!(program instanceof MetalProgram))
        throw new InternalError("a Metal graph of another device's kernels");
      return { program, localSize, buffers: args.length, vals: vars.length, isAfter: barriers[i] === true };
    });
  }

  *run(inputs: GraphInputs): Step<void> {
    const commands = this.#items.map((x) => inputs.command(x));
    // one by one, so that each has its time
    if (this.#kernels.length === 1 || env.PROFILE) return this.#apart(commands);
    yield* settle(this.context.room());
    const copy = yield* this.#copyFor(commands);
    copy.run(commands);
    this.#copies = [...this.#copies.filter((c) => c !== copy), copy];
  }
  #apart(commands: readonly KernelCommand[]): void {
    commands.forEach(({ blocks, vals, groups: globalSize }, i) => {
      const { program, localSize } = this.#kernels[i] as IndirectKernel;
      program.run(blocks, { globalSize, localSize, vals }, false);
    });
  }
  /** One that says the same already, or one that nobody reads; the third run in a row waits for the first. */
  *#copyFor(commands: readonly KernelCommand[]): Step<IndirectCopy> {
    const { context } = this;
    const found =
      this.#copies.findLast((c) => c.isSame(commands)) ?? this.#copies.find((c) => context.isDone(c.lastRun));
    if (found !== undefined) return found;
    const [oldest] = this.#copies;
    if (oldest === undefined || this.#copies.length < COPIES) {
      const made = new IndirectCopy(context, this.#kernels, this.#device.needsPipelines);
      this.#copies.unshift(made);
      return made;
    }
    yield* settle(context.settled(oldest.lastRun));
    return oldest;
  }
}

/** Which kernels come after all before them: those that follow one since the last such kernel. */
function barriersOf(items: readonly GraphItem[], slots: readonly GraphSlot[]): boolean[] {
  const order = orderOf(items, slots);
  let since = 0;
  return range(items.length).map((i) => {
    const isAfter = (order[i] as number[]).some((before) => before >= since);
    if (isAfter) since = i;
    return isAfter;
  });
}
