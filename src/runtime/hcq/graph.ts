// HCQGraph: a captured run of kernels and copies as static queues. Each device has one of each kind. They are
// built once and bound, so that the device reads them where they lie. A replay changes the words that differ
// (arguments, sizes, values of the timelines) and submits. The queues of a graph wait for each other by
// signals; others see only the timelines.

import { InternalError } from "../../errors.ts";
import { getOrMake, type Step, settle } from "../../helpers.ts";
import { evaluate, type Variable } from "../../shape/symbolic.ts";
import type {
  Compiled,
  GraphCopy,
  GraphItem,
  GraphKernel,
  GraphRunner,
  GraphSlot,
  Handle,
} from "../device.ts";
import type { HCQCompatAllocRes } from "./allocator.ts";
import type { Fence, HCQCompatCompiled, HCQSignal } from "./device.ts";
import { HCQProgram, type KernArgs } from "./program.ts";
import type { HWCommandQueue, HWComputeQueue, HWCopyQueue } from "./queue.ts";

/** One queue of the graph, and what others have to know of it. */
interface QueueLane {
  readonly device: HCQCompatCompiled;
  readonly queue: HWCommandQueue;
  /** how many items it has */
  length: number;
  /** the places after which another lane waits for it */
  readonly awaited: Set<number>;
  /** set to such a place when it is reached */
  signal: HCQSignal | undefined;
  /** how far it has waited for others already */
  readonly waited: Map<QueueLane, number>;
  /** the devices whose memory it reads or writes */
  readonly touches: Set<HCQCompatCompiled>;
}
/** An item in its lane, after what it has to wait for. */
interface QueuedItem {
  readonly item: GraphItem;
  readonly lane: QueueLane;
  readonly place: number;
  readonly after: readonly (readonly [QueueLane, number])[];
}
interface MemoryAccess {
  readonly from: number;
  readonly to: number;
  readonly write: boolean;
  readonly lane: QueueLane;
  readonly place: number;
}

/** What a graph holds on its devices, and how far it was submitted. */
interface Holdings {
  readonly args: readonly KernArgs[];
  readonly signals: readonly (readonly [HCQCompatCompiled, HCQSignal])[];
  last: readonly Fence[];
}
/** Of graphs that were collected; a signal may be set until the last run is done. */
let retired: Holdings[] = [];
const collected = new FinalizationRegistry<Holdings>((h) => {
  for (const a of h.args) a.free();
  retired.push(h);
  sweep();
});
function sweep(): void {
  retired = retired.filter(({ signals, last }) => {
    if (last.some((fence) => !fence.device.hasPassed(fence))) return true;
    for (const [device, signal] of signals) device.freeSignal(signal);
    return false;
  });
}

/**
 * How many runs of a graph may be in flight before the host waits for one: while one runs, the next is ready.
 */
const DEPTH = 2;

export class HCQGraph implements GraphRunner {
  readonly #make: () => Instance;
  readonly #instances: Instance[];
  #next = 0;

  constructor(items: readonly GraphItem[], slots: readonly GraphSlot[]) {
    this.#make = () => new Instance(items, slots);
    this.#instances = [this.#make()];
  }
  /** The queues, for people. */
  toString(): string {
    return String(this.#instances[0]);
  }

  /**
   * What a device may still read is not changed: a run that comes while the one before
   * is in flight has its own words.
   */
  *run(handles: readonly Handle[], varVals: ReadonlyMap<Variable, number>): Step<void> {
    const instances = this.#instances;
    if (instances.length < DEPTH && instances[this.#next]?.isInFlight) {
      this.#next = instances.length;
      instances.push(this.#make());
    }
    const instance = instances[this.#next] as Instance;
    this.#next = (this.#next + 1) % instances.length;
    yield* instance.run(handles, varVals);
  }
}

/** The queues of a graph, for one run at a time. */
class Instance {
  readonly #slots: readonly GraphSlot[];
  readonly #devices: readonly HCQCompatCompiled[];
  readonly #lanes: readonly QueueLane[];
  /** by slot: how to put a new handle in its places */
  readonly #places = new Map<number, ((handle: Handle) => void)[]>();
  /** how to put new values of variables in their places */
  readonly #values: ((varVals: ReadonlyMap<Variable, number>) => void)[] = [];
  /** indexes of the commands that wait for and signal the timelines */
  readonly #starts = new Map<QueueLane, (readonly [HCQCompatCompiled, number])[]>();
  readonly #ends = new Map<QueueLane, number>();
  readonly #holdings: Holdings;

  constructor(items: readonly GraphItem[], slots: readonly GraphSlot[]) {
    sweep();
    this.#slots = slots;
    const { queued, lanes } = arrange(items, slots);
    this.#lanes = lanes;
    this.#devices = [...new Set(lanes.flatMap((l) => [...l.touches]))];
    const signals: [HCQCompatCompiled, HCQSignal][] = [];
    for (const lane of lanes) this.#begin(lane);
    const ends = lanes.filter((l) => isTimelined(l)).map((l) => [l, this.#partnersOf(l)] as const);
    lanes.forEach((lane, i) => {
      if (lane.awaited.size === 0) return;
      lane.signal = lane.device.allocSignal(0, `${lane.device.name}.graph${i}`);
      signals.push([lane.device, lane.signal]);
    });
    const args = queued.flatMap((p) => this.#add(p));
    for (const [lane, partners] of ends) this.#end(lane, partners);
    for (const lane of lanes) lane.queue.bind(lane.device);
    this.#holdings = { args, signals, last: [] };
    collected.register(this, this.#holdings);
  }

  get isInFlight(): boolean {
    return this.#holdings.last.some((fence) => !fence.device.hasPassed(fence));
  }
  toString(): string {
    return this.#lanes.map((l) => `${l.device.name} ${l.queue.kind}:\n${l.queue}`).join("\n");
  }

  /** Nothing in a lane comes before what was submitted to the devices that it touches. */
  #begin(lane: QueueLane): void {
    const { queue, touches } = lane;
    this.#starts.set(
      lane,
      [...touches].map((device) => {
        const index = queue.length;
        queue.wait(device.timelineSignal, 0);
        return [device, index] as const;
      }),
    );
    if (isCompute(queue)) queue.memoryBarrier();
  }
  /** Lanes that have to be done before this lane's device says that it is. */
  #partnersOf(lane: QueueLane): QueueLane[] {
    const partners = this.#lanes.filter((l) => l !== lane && l.length > 0 && l.touches.has(lane.device));
    return partners.filter((p) => {
      if ((lane.waited.get(p) ?? 0) >= p.length) return false;
      p.awaited.add(p.length);
      return true;
    });
  }
  #end(lane: QueueLane, partners: readonly QueueLane[]): void {
    const { queue, device } = lane;
    for (const p of partners) queue.wait(p.signal as HCQSignal, p.length);
    this.#ends.set(lane, queue.length);
    queue.signal(device.timelineSignal, 0);
  }

  #add({ item, lane, place, after }: QueuedItem): KernArgs[] {
    for (const [other, at] of after) lane.queue.wait(other.signal as HCQSignal, at);
    const args = item.kind === "kernel" ? [this.#addKernel(item, lane)] : [];
    if (item.kind === "copy") this.#addCopy(item, lane.queue as HWCopyQueue);
    if (lane.awaited.has(place)) lane.queue.signal(lane.signal as HCQSignal, place);
    return args;
  }
  #addKernel({ program, args, vars, varVals, ...kernel }: GraphKernel, { queue: q }: QueueLane): KernArgs {
    if (!(program instanceof HCQProgram) || !isCompute(q)) throw new InternalError("a graph of another kind");
    const fixed = args.map((s) => this.#slots[s]?.handle);
    const standIn = fixed.find((h) => h !== undefined) ?? { device: program.device, vaAddr: 0, size: 0 };
    const vals = vars.map((v) => varVals.get(v) as number);
    const kernargs = program.allocKernargs(
      fixed.map((h) => h ?? standIn),
      vals,
    );
    fixed.forEach((h, i) => {
      if (h === undefined) this.#place(args[i] as number, (handle) => kernargs.setBuffer(i, handle));
    });
    const index = q.length;
    const sizes = (values: ReadonlyMap<Variable, number>): number[] =>
      kernel.globalSize.map((s) => evaluate(s, values));
    q.exec(program, kernargs, sizes(varVals), kernel.localSize);
    q.work += kernel.work;
    const sized = kernel.globalSize.some((s) => typeof s !== "number");
    if (vars.length > 0) {
      this.#values.push((values) => {
        // a variable that the call does not give counts the steps of a loop: the value is the launch's own
        for (let i = 0; i < vars.length; i++)
          kernargs.setVal(i, values.get(vars[i] as Variable) ?? (vals[i] as number));
        if (sized) q.updateExec(index, sizes(values), kernel.localSize);
      });
    }
    return kernargs;
  }
  #addCopy({ dest, src, nbytes, from, to }: GraphCopy, queue: HWCopyQueue): void {
    const index = queue.length;
    const handleOf = (s: number, device: unknown): HCQCompatAllocRes =>
      (this.#slots[s]?.handle ?? { device, vaAddr: 0, size: nbytes }) as HCQCompatAllocRes;
    queue.copy(handleOf(dest, to), handleOf(src, from), nbytes);
    queue.work += nbytes;
    if (this.#slots[dest]?.handle === undefined)
      this.#place(dest, (h) => queue.updateCopy(index, h as HCQCompatAllocRes));
    if (this.#slots[src]?.handle === undefined)
      this.#place(src, (h) => queue.updateCopy(index, undefined, h as HCQCompatAllocRes));
  }
  #place(slot: number, put: (handle: Handle) => void): void {
    getOrMake(this.#places, slot, () => []).push(put);
  }

  *run(handles: readonly Handle[], varVals: ReadonlyMap<Variable, number>): Step<void> {
    // words that the device may still read must not change
    for (const fence of this.#holdings.last) {
      if (!fence.device.hasPassed(fence)) yield* settle(fence.device.waitSignal(fence.signal, fence.value));
    }
    for (const [slot, places] of this.#places) {
      const handle = handles[slot];
      for (let i = 0; i < places.length; i++) places[i]?.(handle);
    }
    for (const set of this.#values) set(varVals);
    for (const { device, signal } of this.#lanes) if (signal !== undefined) device.setSignal(signal, 0);
    for (const device of this.#devices) device.prepareTimeline();
    const values = new Map(this.#devices.map((d) => [d, d.nextTimelineValue()]));
    for (const lane of this.#lanes) {
      for (const [device, index] of this.#starts.get(lane) ?? []) {
        const value = values.get(device) as number;
        const before = device === lane.device ? device.valueBefore(value, lane.queue.kind) : value - 1;
        lane.queue.updateWait(index, device.timelineSignal, before);
      }
      const end = this.#ends.get(lane);
      if (end !== undefined)
        lane.queue.updateSignal(end, lane.device.timelineSignal, values.get(lane.device) as number);
    }
    this.#holdings.last = this.#devices.map((d) => d.fence());
    this.#submit();
  }
  /** What is executed at once may fail at once; the other queues still have values to signal. */
  #submit(): void {
    const failures: unknown[] = [];
    for (const { queue, device } of this.#lanes) {
      try {
        queue.submit(device);
      } catch (e) {
        failures.push(e);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}

const isCompute = (q: HWCommandQueue): q is HWComputeQueue => q.kind === "compute";
/** The compute queue of a device speaks for it. */
const isTimelined = (lane: QueueLane): boolean => isCompute(lane.queue);

function hcq(device: Compiled): HCQCompatCompiled {
  if ("computeQueue" in device) return device as HCQCompatCompiled;
  throw new InternalError("a graph of queues on a device without queues");
}

/**
 * Puts every item into a lane and finds what it has to wait for in others: whoever
 * touched the same bytes before.
 */
function arrange(
  items: readonly GraphItem[],
  slots: readonly GraphSlot[],
): { queued: QueuedItem[]; lanes: QueueLane[] } {
  const lanes = new Map<string, QueueLane>();
  const laneOf = (device: HCQCompatCompiled, kind: HWCommandQueue["kind"]): QueueLane =>
    getOrMake(lanes, `${device.name} ${kind}`, () => ({
      device,
      queue: kind === "compute" ? device.computeQueue() : device.copyQueue(),
      length: 0,
      awaited: new Set(),
      signal: undefined,
      waited: new Map(),
      touches: new Set([device]),
    }));
  /** by memory and lane: what a lane did itself is in order already, and a graph mostly has one lane */
  const seen = new Map<unknown, Map<QueueLane, MemoryAccess[]>>();
  const queued = items.map((item): QueuedItem => {
    const lane = laneOf(
      hcq(item.kind === "kernel" ? item.device : item.from),
      item.kind === "kernel" ? "compute" : "copy",
    );
    if (item.kind === "copy") {
      lane.touches.add(hcq(item.to));
      // whoever's memory is touched has a compute queue, which says when its device is done
      for (const device of [item.from, item.to]) laneOf(hcq(device), "compute");
    }
    const place = ++lane.length;
    const touched = touchedBy(item).map(([slot, write]): [unknown, MemoryAccess] => {
      const { root, from, to } = slots[slot] as GraphSlot;
      return [root, { from, to, write, lane, place }];
    });
    const after = touched.flatMap(([root, a]) => conflicts(seen.get(root), a));
    for (const [root, a] of touched) {
      const byLane = getOrMake(seen, root, () => new Map<QueueLane, MemoryAccess[]>());
      getOrMake(byLane, lane, () => []).push(a);
    }
    return { item, lane, place, after: needed(lane, after) };
  });
  return { queued, lanes: [...lanes.values()] };
}

function touchedBy(item: GraphItem): (readonly [slot: number, write: boolean])[] {
  if (item.kind === "copy") return [[item.src, false] as const, [item.dest, true] as const];
  return item.args.map((slot) => [slot, item.written.includes(slot)] as const);
}

/** What other lanes did before with the same bytes, where one of the two writes. */
function conflicts(
  before: ReadonlyMap<QueueLane, readonly MemoryAccess[]> | undefined,
  a: MemoryAccess,
): MemoryAccess[] {
  const found: MemoryAccess[] = [];
  for (const [lane, accesses] of before ?? []) {
    if (lane === a.lane) continue;
    for (const b of accesses) if ((a.write || b.write) && a.from < b.to && b.from < a.to) found.push(b);
  }
  return found;
}

/** The furthest place in each other lane, where this one has not waited for it already. */
function needed(lane: QueueLane, after: readonly MemoryAccess[]): (readonly [QueueLane, number])[] {
  const furthest = new Map<QueueLane, number>();
  for (const { lane: other, place } of after) furthest.set(other, Math.max(place, furthest.get(other) ?? 0));
  return [...furthest].filter(([other, place]) => {
    if ((lane.waited.get(other) ?? 0) >= place) return false;
    lane.waited.set(other, place);
    other.awaited.add(place);
    return true;
  });
}
