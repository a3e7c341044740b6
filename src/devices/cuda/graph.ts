// CUDA graphs: a captured run of kernels and copies, given to the driver once and launched with one call. An
// edge stands where memory demands it (order.ts), so what is independent may overlap. A run changes the
// parameters of those nodes whose memory, variables or sizes differ from the run before; runs that are in
// flight keep theirs.

import { InternalError } from "../../errors.ts";
import { getOrMake, type Step } from "../../helpers.ts";
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
import { KernelArguments } from "./arguments.ts";
import type { CudaContext } from "./context.ts";
import type { CudaBlock } from "./memory.ts";
import { CudaProgram } from "./program.ts";
import type { SpanFacts, Timing } from "./timing.ts";

/** What a graph needs of the device that an item runs on. */
export interface GraphDevice {
  readonly context: CudaContext;
  readonly timing: Timing;
}

// CUDA_KERNEL_NODE_PARAMS: a function, seven 32-bit sizes, then the lists of arguments
const KERNEL_PARAMS = 56;
const [FUNCTION, GRID, BLOCK, SHARED, EXTRA] = [0, 8, 20, 32, 48];
// CUDA_MEMCPY3D, of which a plain copy fills these
const COPY_PARAMS = 200;
const [SRC_TYPE, SRC, DST_TYPE, DST, WIDTH, HEIGHT, DEPTH] = [32, 48, 120, 136, 176, 184, 192];
const IN_DEVICE_MEMORY = 2;

/** A node whose parameters may change. */
interface CudaGraphNode {
  readonly handle: number;
  readonly item: GraphItem;
  readonly context: CudaContext;
  /** where its parameters lie on the host */
  readonly params: number;
  readonly sizes: Uint32Array;
  readonly args: KernelArguments | undefined;
  readonly copy: BigUint64Array | undefined;
}
/** What is patched when the memory of a slot changes: an argument of a kernel, or one end of a copy. */
interface Relocation {
  readonly node: CudaGraphNode;
  put(address: number): void;
}
/** A node that depends on variables, and the values it has now. */
interface Valued {
  readonly node: CudaGraphNode;
  readonly item: GraphKernel;
  readonly values: number[];
}
/** What the driver holds of a graph. */
interface DriverGraph {
  readonly context: CudaContext;
  graph: number;
  exec: number;
  memory: number;
}
const collected = new FinalizationRegistry<DriverGraph>(({ context, graph, exec, memory }) => {
  context.retire(() => {
    context.call("cuGraphExecDestroy", exec);
    context.call("cuGraphDestroy", graph);
    context.driver.memory.free(memory);
  });
});

const align = (n: number): number => Math.ceil(n / 16) * 16;

export class CudaGraph implements GraphRunner {
  readonly #items: readonly GraphItem[];
  readonly #slots: readonly GraphSlot[];
  readonly #deviceOf: (x: unknown) => GraphDevice;
  readonly #context: CudaContext;
  readonly #others: readonly CudaContext[];
  readonly #relocations = new Map<number, Relocation[]>();
  /** by slot: the address that its relocations hold */
  readonly #addresses = new Map<number, number>();
  readonly #valued: Valued[] = [];
  readonly #dirty = new Set<CudaGraphNode>();
  readonly #spans: { readonly timing: Timing; readonly facts: SpanFacts; start: number; end: number }[] = [];
  /** 0 until the first run: the driver looks at the memory of copies when it makes a graph */
  #exec = 0;

  constructor(
    items: readonly GraphItem[],
    slots: readonly GraphSlot[],
    deviceOf: (x: unknown) => GraphDevice,
  ) {
    this.#items = items;
    this.#slots = slots;
    this.#deviceOf = deviceOf;
    const all = items.flatMap((x) => (x.kind === "kernel" ? [x.device] : [x.from, x.to]));
    const contexts = new Set(all.map((d) => deviceOf(d).context));
    const [first, ...others] = [...contexts] as [CudaContext, ...CudaContext[]];
    this.#context = first;
    this.#others = others;
  }

  // biome-ignore lint/correctness/useYield: enqueuing never waits
  *run(handles: readonly Handle[], varVals: ReadonlyMap<Variable, number>): Step<void> {
    const context = this.#context;
    if (this.#exec === 0) this.#exec = this.#make(handles as readonly CudaBlock[], varVals);
    else this.#update(handles as readonly CudaBlock[], varVals);
    for (const other of this.#others) context.waitFor(other);
    this.#launch();
    for (const other of this.#others) other.waitFor(context);
    for (const x of this.#items) if (x.kind === "kernel") context.launched(x.program as CudaProgram);
  }
  #launch(): void {
    const context = this.#context;
    const launch = () => context.call("cuGraphLaunch", this.#exec, context.stream);
    const [timed] = this.#spans;
    if (timed === undefined) {
      launch();
      return;
    }
    // the run records its events again: what they say of the one before is read first
    context.block();
    for (const timing of new Set(this.#spans.map((s) => s.timing))) timing.collect();
    timed.timing.enqueuing("graph", this.#items.length, launch);
    for (const { timing, facts, start, end } of this.#spans) timing.recorded(facts, start, end);
  }

  // ---- the first run ----

  #make(handles: readonly CudaBlock[], varVals: ReadonlyMap<Variable, number>): number {
    const builder = new Builder(this.#context, this.#items);
    try {
      return this.#build(builder, handles, varVals);
    } catch (e) {
      // the next run begins anew
      builder.destroy();
      this.#relocations.clear();
      this.#valued.length = this.#spans.length = 0;
      throw e;
    }
  }
  #build(builder: Builder, handles: readonly CudaBlock[], varVals: ReadonlyMap<Variable, number>): number {
    const order = orderOf(this.#items, this.#slots);
    // for those that come after an item: its last node, which is an event where times are taken
    const ends: number[] = [];
    this.#items.forEach((item, i) => {
      const before = (order[i] as number[]).map((k) => ends[k] as number);
      ends.push(this.#add(builder, item, handles, varVals, before));
    });
    const exec = this.#context.make("cuGraphInstantiateWithFlags", builder.graph, 0);
    for (const slot of this.#relocations.keys()) this.#addresses.set(slot, this.#addressOf(slot, handles));
    const { graph, memory } = builder;
    collected.register(this, { context: this.#context, graph, exec, memory });
    return exec;
  }

  #add(
    builder: Builder,
    item: GraphItem,
    handles: readonly CudaBlock[],
    varVals: ReadonlyMap<Variable, number>,
    before: readonly number[],
  ): number {
    const { context, timing } = this.#deviceOf(item.kind === "kernel" ? item.device : item.from);
    const [start, end] = timing.isOn ? [timing.event(), timing.event()] : [0, 0];
    const after = start === 0 ? before : [builder.event(context, before, start)];
    const node =
      item.kind === "kernel"
        ? this.#addKernel(builder, item, handles, varVals, after)
        : this.#addCopy(builder, item, context, handles, after);
    if (start === 0) return node.handle;
    this.#spans.push({ timing, facts: factsOf(item), start, end });
    return builder.event(context, [node.handle], end);
  }
  #addKernel(
    builder: Builder,
    item: GraphKernel,
    handles: readonly CudaBlock[],
    varVals: ReadonlyMap<Variable, number>,
    before: readonly number[],
  ): CudaGraphNode {
    const { program, args, vars } = item;
    if (!(program instanceof CudaProgram))
      throw new InternalError("a CUDA graph of another device's kernels");
    const addresses = args.map((s) => this.#addressOf(s, handles));
    // a variable that the call does not give counts the steps of a loop: the value is the launch's own
    const values = vars.map((v) => varVals.get(v) ?? (item.varVals.get(v) as number));
    const node = builder.kernel(item, program, { addresses, values, varVals }, before);
    args.forEach((slot, i) => void this.#place(slot, node, (a) => node.args?.setBuffer(i, a)));
    if (vars.length > 0) this.#valued.push({ node, item, values });
    return node;
  }
  #addCopy(
    builder: Builder,
    item: GraphCopy,
    context: CudaContext,
    handles: readonly CudaBlock[],
    before: readonly number[],
  ): CudaGraphNode {
    const [dest, src] = [item.dest, item.src].map((s) => this.#addressOf(s, handles)) as [number, number];
    const node = builder.copy(item, context, dest, src, before);
    const put = (at: number) => (address: number) => {
      if (node.copy !== undefined) node.copy[at / 8] = BigInt(address);
    };
    this.#place(item.dest, node, put(DST));
    this.#place(item.src, node, put(SRC));
    return node;
  }
  #addressOf(slot: number, handles: readonly CudaBlock[]): number {
    return ((this.#slots[slot]?.handle ?? handles[slot]) as CudaBlock).address;
  }
  /** Notes a place of a slot that is another memory with every run. */
  #place(slot: number, node: CudaGraphNode, put: (address: number) => void): void {
    if (this.#slots[slot]?.handle === undefined)
      getOrMake(this.#relocations, slot, () => []).push({ node, put });
  }

  // ---- every other run ----

  #update(handles: readonly CudaBlock[], varVals: ReadonlyMap<Variable, number>): void {
    for (const [slot, places] of this.#relocations) {
      const { address } = handles[slot] as CudaBlock;
      if (this.#addresses.get(slot) === address) continue;
      this.#addresses.set(slot, address);
      for (const { node, put } of places) {
        put(address);
        this.#dirty.add(node);
      }
    }
    for (const valued of this.#valued) if (revalue(valued, varVals)) this.#dirty.add(valued.node);
    for (const { context, handle, params, args } of this.#dirty) {
      if (args !== undefined) context.call("cuGraphExecKernelNodeSetParams", this.#exec, handle, params);
      else context.call("cuGraphExecMemcpyNodeSetParams", this.#exec, handle, params, context.handle);
    }
    this.#dirty.clear();
  }
}

/** Puts new values of variables into a node's parameters; whether any differs. */
function revalue({ node, item, values }: Valued, varVals: ReadonlyMap<Variable, number>): boolean {
  let changed = false;
  for (let i = 0; i < values.length; i++) {
    const value = varVals.get(item.vars[i] as Variable);
    if (value === undefined || values[i] === value) continue;
    values[i] = value;
    node.args?.setVal(item.args.length, i, value);
    changed = true;
  }
  if (!changed) return false;
  item.globalSize.forEach((s, k) => {
    if (typeof s !== "number") node.sizes[k] = evaluate(s, varVals);
  });
  return true;
}

function factsOf(item: GraphItem): SpanFacts {
  if (item.kind === "copy") {
    const name = `${item.to.name} <- ${item.from.name}`;
    return { track: "copy", name, kind: "copy", args: { bytes: item.nbytes } };
  }
  const { name, cost } = item.program as CudaProgram;
  return { track: "compute", name, kind: "kernel", args: { FLOP: cost?.ops ?? 0, bytes: cost?.bytes ?? 0 } };
}

interface KernelInputs {
  readonly addresses: readonly number[];
  readonly values: readonly number[];
  readonly varVals: ReadonlyMap<Variable, number>;
}

/** Adds nodes, with their parameters in one block of host memory. */
class Builder {
  readonly #context: CudaContext;
  readonly graph: number;
  /** the block */
  readonly memory: number;
  readonly #view: ArrayBuffer;
  #used = 0;

  constructor(context: CudaContext, items: readonly GraphItem[]) {
    this.#context = context;
    this.graph = context.make("cuGraphCreate", 0);
    const bytes = items.reduce((n, x) => n + bytesOf(x), 0);
    this.memory = context.driver.memory.alloc(bytes);
    this.#view = context.driver.memory.view(this.memory, bytes);
  }

  /** Undoes what was made so far. */
  destroy(): void {
    const context = this.#context;
    if (!context.isDead) context.call("cuGraphDestroy", this.graph);
    context.driver.memory.free(this.memory);
  }

  kernel(
    item: GraphKernel,
    program: CudaProgram,
    { addresses, values, varVals }: KernelInputs,
    before: readonly number[],
  ): CudaGraphNode {
    const { context } = program;
    const at = this.#take(bytesOf(item));
    const args = new KernelArguments(
      this.#view,
      this.memory,
      at + align(KERNEL_PARAMS),
      KernelArguments.bytes(addresses.length, values.length),
    );
    args.resize(addresses.length, values.length);
    addresses.forEach((a, i) => void args.setBuffer(i, a));
    values.forEach((v, i) => void args.setVal(addresses.length, i, v));
    const fields = new DataView(this.#view, at, KERNEL_PARAMS);
    fields.setBigUint64(FUNCTION, BigInt(program.handle), true);
    fields.setUint32(SHARED, program.shared, true);
    fields.setBigUint64(EXTRA, BigInt(args.extra), true);
    const grid = item.globalSize.map((s) => evaluate(s, varVals));
    for (let k = 0; k < 3; k++) {
      fields.setUint32(GRID + 4 * k, grid[k] ?? 1, true);
      fields.setUint32(BLOCK + 4 * k, item.localSize[k] ?? 1, true);
    }
    const params = this.memory + at;
    const handle = context.make("cuGraphAddKernelNode", this.graph, list(before), before.length, params);
    const sizes = new Uint32Array(this.#view, at + GRID, 3);
    return { handle, item, context, params, sizes, args, copy: undefined };
  }

  copy(
    item: GraphCopy,
    context: CudaContext,
    dest: number,
    src: number,
    before: readonly number[],
  ): CudaGraphNode {
    const at = this.#take(bytesOf(item));
    const fields = new DataView(this.#view, at, COPY_PARAMS);
    for (const [place, type, address] of [
      [SRC, SRC_TYPE, src],
      [DST, DST_TYPE, dest],
    ] as const) {
      fields.setUint32(type, IN_DEVICE_MEMORY, true);
      fields.setBigUint64(place, BigInt(address), true);
    }
    fields.setBigUint64(WIDTH, BigInt(item.nbytes), true);
    for (const one of [HEIGHT, DEPTH]) fields.setBigUint64(one, 1n, true);
    const params = this.memory + at;
    const handle = context.make(
      "cuGraphAddMemcpyNode",
      ...([this.graph, list(before), before.length, params, context.handle] as const),
    );
    const copy = new BigUint64Array(this.#view, at, COPY_PARAMS / 8);
    return { handle, item, context, params, sizes: new Uint32Array(0), args: undefined, copy };
  }

  event(context: CudaContext, before: readonly number[], event: number): number {
    return context.make("cuGraphAddEventRecordNode", this.graph, list(before), before.length, event);
  }

  #take(bytes: number): number {
    const at = this.#used;
    this.#used += bytes;
    return at;
  }
}

const list = (handles: readonly number[]): BigUint64Array => BigUint64Array.from(handles, BigInt);

const bytesOf = (x: GraphItem): number =>
  x.kind === "copy"
    ? align(COPY_PARAMS)
    : align(KERNEL_PARAMS) + align(KernelArguments.bytes(x.args.length, x.vars.length));
