// CommandQueue spreads a schedule over one queue for each device. Where data crosses devices, the reader's
// queue gets a WaitItem, and the source's queue the SyncItem that it waits for. Running the queues goes from
// device to device, one item each, until all is done. The order is always the same, whichever device comes
// first.

import { env } from "../env.ts";
import { ArgumentError, InternalError } from "../errors.ts";
import { getOrMake, runAsync, runSync, type Step, settle, timestamp } from "../helpers.ts";
import { PAUSE } from "../pace.ts";
import type { Buffer } from "../runtime/buffer.ts";
import type { Compiled } from "../runtime/device.ts";
import { updateStats } from "../runtime/stats.ts";
import { itemDone, type ScheduleItem } from "../schedule/schedule.ts";
import { compileAhead, runnerFor } from "./compile.ts";
import { Device } from "./devices.ts";
import { CacheCollector } from "./jit/collector.ts";
import { Progress } from "./progress.ts";

let syncs = 0;
/** A point in a device's queue that others wait for. */
export class SyncItem {
  readonly kind = "sync";
  /** in the order in which they were made */
  readonly id = syncs++;
  readonly device: string;
  /** the devices that wait for it */
  readonly waiting = new Set<string>();
  constructor(device: string) {
    this.device = device;
  }
  get waiters(): number {
    return this.waiting.size;
  }
}
/** Stops a device's queue until the sync has happened. */
export class WaitItem {
  readonly kind = "wait";
  readonly sync: SyncItem;
  constructor(sync: SyncItem) {
    this.sync = sync;
  }
}
/** A copy between devices, in the queue of the device that is written. */
export class CopyItem {
  readonly kind = "copy";
  readonly output: Buffer;
  readonly input: Buffer;
  readonly item: ScheduleItem;
  constructor(item: ScheduleItem) {
    this.item = item;
    this.output = item.outputs[0] as Buffer;
    this.input = item.inputs[0] as Buffer;
  }
}
type QueueItem = ScheduleItem | CopyItem | SyncItem | WaitItem;

const isItem = (x: QueueItem): x is ScheduleItem => !("kind" in x);
const isKernel = (x: QueueItem): boolean => isItem(x) && x.ast[0]?.op === "STORE";

/** Spreads a schedule over one queue for each device. */
function spread(schedule: readonly ScheduleItem[]): Map<string, QueueItem[]> {
  const queues = new Map<string, QueueItem[]>();
  /** source buffer -> devices whose queued copies still read it */
  const copiers = new Map<Buffer, Set<string>>();
  /** device -> what it has written since its last sync */
  const products = new Map<string, Buffer[]>();
  /** product -> the sync after which others may copy it */
  const syncs = new Map<Buffer, SyncItem>();
  /** a device that waits, and one that it waits for -> the last wait */
  const waits = new Map<string, WaitItem>();
  const queueOf = (device: string): QueueItem[] => getOrMake(queues, device, () => []);

  /** A sync at the end of the device's queue; one that is there already is used again. */
  const addSync = (device: string): SyncItem => {
    const queue = queueOf(device);
    const last = queue.at(-1);
    const sync = last instanceof SyncItem ? last : new SyncItem(device);
    if (sync !== last) queue.push(sync);
    for (const b of products.get(device) ?? []) syncs.set(b, sync);
    products.delete(device);
    return sync;
  };
  const addWait = (device: string, sync: SyncItem): void => {
    const queue = queueOf(device);
    const pair = `${device}<-${sync.device}`;
    const last = waits.get(pair);
    if (last !== undefined) {
      if (last.sync.id >= sync.id) return;
      // a wait for an earlier point of the same device is covered by this one
      if (queue.at(-1) === last) {
        queue.pop();
        last.sync.waiting.delete(device);
      }
    }
    // who needs what this device has computed so far does not wait for what it waits for
    if (products.has(device)) addSync(device);
    sync.waiting.add(device);
    const wait = new WaitItem(sync);
    waits.set(pair, wait);
    queue.push(wait);
  };
  const add = (si: ScheduleItem): void => {
    const { device } = si.outputs[0] as Buffer;
    const copy = si.ast[0]?.op === "COPY";
    const other = [...si.outputs, ...si.inputs].find((b) => b.device !== device);
    if (other !== undefined && !copy)
      throw new InternalError(`one kernel on several devices: ${device}, ${other.device}`);
    const queue = queueOf(device);
    // overwriting what another device's queue still copies from has to wait for that copy
    for (const written of si.outputs) {
      for (const copier of copiers.get(written) ?? [])
        if (copier !== device) addWait(device, addSync(copier));
      copiers.delete(written);
    }
    if (copy) {
      const src = si.inputs[0] as Buffer;
      addWait(device, syncs.get(src) ?? addSync(src.device));
      getOrMake(copiers, src, () => new Set()).add(device);
    }
    queue.push(copy ? new CopyItem(si) : si);
    for (const written of si.outputs) {
      syncs.delete(written);
      getOrMake(products, device, () => []).push(written);
    }
  };

  for (const si of schedule) add(si);
  const isAwaited = (x: QueueItem): boolean => !(x instanceof SyncItem) || x.waiters > 0;
  for (const [device, queue] of queues) queues.set(device, queue.filter(isAwaited));
  return queues;
}

/** A schedule spread over one queue for each device; `run()` executes it. */
export class CommandQueue {
  readonly q: ReadonlyMap<string, QueueItem[]>;
  /** devices whose kernels have been compiled ahead of their use */
  readonly #compiled = new Set<string>();

  constructor(schedule: readonly ScheduleItem[]) {
    this.q = spread(schedule);
    if (env.DEBUG >= 6) console.log(this.toString());
  }

  #queue(device: string): QueueItem[] {
    return this.q.get(device) ?? [];
  }

  /** Runs everything; `start` is the order in which devices are looked at, which changes nothing. */
  async run(start?: readonly string[]): Promise<void> {
    await runAsync(this.execute(start));
  }
  runSync(start?: readonly string[]): void {
    runSync(this.execute(start), "run");
  }

  *execute(start: readonly string[] = [...this.q.keys()]): Step<void> {
    const progress = new Progress([...this.q.values()].flat().filter(isKernel).length);
    try {
      yield* this.#execute(start, progress);
    } finally {
      progress.end();
    }
  }
  *#execute(start: readonly string[], progress: Progress): Step<void> {
    // an item of each in turn, so that no device gets all of its work before another gets any
    const active = [...this.q.keys()].filter((d) => start.includes(d));
    const syncsNext = (d: string): boolean => {
      const [head] = this.#queue(d);
      return head === undefined || head instanceof SyncItem;
    };
    const waiting = new Map<SyncItem, string[]>();
    /** what has been synchronised; a fence where the devices see to the order themselves */
    const seen = new Map<SyncItem, unknown>();
    for (let device = active.shift(); device !== undefined; device = active.shift()) {
      const queue = this.#queue(device);
      const [si] = queue;
      if (si === undefined) continue;
      if (si instanceof SyncItem) {
        // not while another device has something else to do
        if (!active.every(syncsNext)) {
          active.push(device);
          continue;
        }
        queue.shift();
        const fence = yield* synchronize(si);
        for (const d of waiting.get(si) ?? []) {
          waitOn(d, fence);
          active.push(d);
        }
        seen.set(si, fence);
      } else if (si instanceof WaitItem) {
        queue.shift();
        if (seen.has(si.sync)) {
          waitOn(device, seen.get(si.sync));
          active.unshift(device);
        } else getOrMake(waiting, si.sync, () => []).push(device);
        continue;
      } else {
        yield PAUSE;
        const item = isItem(si) ? si : si.item;
        yield* this.#prepare(item);
        yield* executeItem(item, progress);
        // afterwards: what failed stays in the queue. An error keeps the queue alive, in the frames of its
        // stack: where memory runs out, what has run must be free to be collected
        queue.shift();
      }
      active.push(device);
    }
    const stuck = [...this.q].filter(([, items]) => items.length > 0);
    if (stuck.length > 0) throw new InternalError(`the queue stopped with work left:\n${this}`);
  }

  /** Opens the devices of an item; with the first kernel of a device all that follow on it are compiled. */
  *#prepare({ ast, outputs, inputs }: ScheduleItem): Step<void> {
    for (const b of [...outputs, ...inputs]) yield* Device.opened(b.device);
    const { device } = outputs[0] as Buffer;
    if (ast[0]?.op !== "STORE" || this.#compiled.has(device)) return;
    this.#compiled.add(device);
    yield* compileAhead(Device.get(device), this.#queue(device).filter(isItem));
  }

  /** One line for each device: what waits in its queue. */
  toString(): string {
    return [...this.q].map(([device, items]) => `${device}: ${items.map(showItem).join(" ")}`).join("\n");
  }
}

/** One item of a queue in a word: `COPY(WASM <- EXT)`. */
export function showItem(x: QueueItem): string {
  if (x instanceof SyncItem) return `SYNC(${x.device})`;
  if (x instanceof WaitItem) return `WAIT(${x.sync.device})`;
  if (x instanceof CopyItem) return `COPY(${x.output.device} <- ${x.input.device})`;
  return `${x.ast[0]?.op}(${x.outputs.length} out, ${x.inputs.length} in)`;
}

/**
 * The devices that wait for the sync continue after everything that is queued here. Where all of them can
 * wait for this device's signals, a point on its timeline is enough and the host continues; otherwise the
 * host waits.
 */
function* synchronize({ device, waiting }: SyncItem): Step<unknown> {
  const start = timestamp();
  const source = yield* Device.opened(device);
  const fence = yield* fenceFor(source, waiting);
  if (fence === undefined) yield* settle(source.synchronize());
  if (env.DEBUG >= 2) {
    const seconds = (timestamp() - start) / 1000;
    const name = fence === undefined ? "synchronize" : "signal";
    updateStats({ kind: "sync", device, name, args: 1, ops: 0, bytes: 0, seconds });
  }
  return fence;
}

/** undefined: some device that waits cannot do so without the host. */
function* fenceFor(source: Compiled, waiting: Iterable<string>): Step<unknown> {
  for (const name of waiting) {
    const reader = yield* Device.opened(name);
    if (reader.timeline === undefined || reader.space !== source.space) return undefined;
  }
  return source.timeline?.fence();
}

function waitOn(device: string, fence: unknown): void {
  if (fence !== undefined) Device.get(device).timeline?.waitFor(fence);
}

/** Allocates the outputs, runs, and marks the nodes: a failure leaves the graph as it was. */
function* executeItem(si: ScheduleItem, progress: Progress): Step<void> {
  const done = si.lazies.find((lb) => lb.srcs === undefined);
  if (done !== undefined)
    throw new ArgumentError(`runSchedule: ${done} was computed before; call createSchedule() again`);
  const buffers = [...si.outputs, ...si.inputs];
  progress.begin();
  const runner = si.outputs.every((b) => b.size > 0) ? yield* runnerFor(si) : undefined;
  if (isKernel(si)) progress.step();
  yield PAUSE;
  for (const out of si.outputs) out.ensureAllocated();
  if (runner !== undefined) yield* runner.run(buffers, si.varVals, env.DEBUG >= 2);
  CacheCollector.add(runner, si);
  itemDone(si);
}
