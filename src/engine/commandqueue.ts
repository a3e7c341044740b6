// CommandQueue spreads a schedule over one queue for each device. Where data crosses devices, the reader's
// queue gets a WaitItem, and the source's queue the SyncItem that it waits for. Running the queues goes from
// device to device until all is done. The order is always the same, whichever device comes first.

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

/** A point in a device's queue that others wait for. */
export class SyncItem {
  readonly kind = "sync";
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

/** A schedule spread over one queue for each device; `run()` executes it. */
export class CommandQueue {
  readonly q = new Map<string, QueueItem[]>();
  /** source buffer -> devices whose queued copies still read it */
  readonly #copiers = new Map<Buffer, Set<string>>();
  /** when each item was queued, over all devices */
  readonly #order = new Map<QueueItem, number>();
  /** devices whose kernels have been compiled ahead of their use */
  readonly #compiled = new Set<string>();

  constructor(schedule: readonly ScheduleItem[]) {
    for (const si of schedule) this.#add(si);
    this.#copiers.clear();
    if (env.DEBUG >= 6) console.log(this.toString());
  }

  #queue(device: string): QueueItem[] {
    const found = this.q.get(device);
    if (found !== undefined) return found;
    const made: QueueItem[] = [];
    this.q.set(device, made);
    return made;
  }

  #push(queue: QueueItem[], item: QueueItem): void {
    this.#order.set(item, this.#order.size);
    queue.push(item);
  }

  #add(si: ScheduleItem): void {
    const out = si.outputs[0] as Buffer;
    const devices = new Set([...si.outputs, ...si.inputs].map((b) => b.device));
    const copy = si.ast[0]?.op === "COPY";
    if (devices.size !== 1 && !copy)
      throw new InternalError(`one kernel on several devices: ${[...devices].join(", ")}`);
    // overwriting what another device's queue still copies from has to wait for that copy
    for (const written of si.outputs) {
      for (const device of this.#copiers.get(written) ?? []) {
        if (device !== out.device) this.#addWait(out.device, this.#addSync(device));
      }
      this.#copiers.delete(written);
    }
    const queue = this.#queue(out.device);
    if (!copy) {
      this.#push(queue, si);
      return;
    }
    const src = si.inputs[0] as Buffer;
    this.#addWait(out.device, this.#addSync(src.device));
    this.#push(queue, new CopyItem(si));
    this.#copiers.set(src, (this.#copiers.get(src) ?? new Set()).add(out.device));
  }

  /** A sync at the end of the device's queue; one that is there already is used again. */
  #addSync(device: string): SyncItem {
    const queue = this.#queue(device);
    const last = queue.at(-1);
    if (last instanceof SyncItem) return last;
    const sync = new SyncItem(device);
    this.#push(queue, sync);
    return sync;
  }

  #addWait(device: string, sync: SyncItem): void {
    const queue = this.#queue(device);
    const last = queue.at(-1);
    // a wait for an earlier point of the same device is covered by this one
    if (last instanceof WaitItem && last.sync.device === sync.device && last.sync !== sync) {
      queue.pop();
      last.sync.waiting.delete(device);
      if (last.sync.waiters === 0) {
        const theirs = this.#queue(last.sync.device);
        theirs.splice(theirs.indexOf(last.sync), 1);
      }
    }
    if (queue.some((x) => x instanceof WaitItem && x.sync === sync)) return;
    sync.waiting.add(device);
    this.#push(queue, new WaitItem(sync));
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
    const active = new Set(start);
    const waiting = new Map<SyncItem, string[]>();
    /** what has been synchronised; a fence where the devices see to the order themselves */
    const seen = new Map<SyncItem, unknown>();
    for (let device = this.#next(active); device !== undefined; device = this.#next(active)) {
      const queue = this.#queue(device);
      const si = queue[0] as QueueItem;
      if (si instanceof SyncItem) {
        this.#drop(queue);
        const fence = yield* synchronize(si);
        for (const d of waiting.get(si) ?? []) {
          waitOn(d, fence);
          active.add(d);
        }
        seen.set(si, fence);
      } else if (si instanceof WaitItem) {
        this.#drop(queue);
        if (seen.has(si.sync)) waitOn(device, seen.get(si.sync));
        else {
          getOrMake(waiting, si.sync, () => []).push(device);
          active.delete(device);
        }
      } else {
        yield PAUSE;
        const item = isItem(si) ? si : si.item;
        yield* this.#prepare(item);
        yield* executeItem(item, progress);
        this.#drop(queue); // afterwards: what failed stays in the queue
      }
    }
    const stuck = [...this.q].filter(([, items]) => items.length > 0);
    if (stuck.length > 0) throw new InternalError(`the queue stopped with work left:\n${this}`);
  }

  /**
   * Lets go of the first item. An error keeps the queue alive, in the frames of its stack: where memory runs
   * out, what has run must be free to be collected.
   */
  #drop(queue: QueueItem[]): void {
    this.#order.delete(queue.shift() as QueueItem);
  }

  /** Opens the devices of an item; with the first kernel of a device all that follow on it are compiled. */
  *#prepare({ ast, outputs, inputs }: ScheduleItem): Step<void> {
    for (const b of [...outputs, ...inputs]) yield* Device.opened(b.device);
    const { device } = outputs[0] as Buffer;
    if (ast[0]?.op !== "STORE" || this.#compiled.has(device)) return;
    this.#compiled.add(device);
    yield* compileAhead(Device.get(device), this.#queue(device).filter(isItem));
  }

  /**
   * The active device whose first item came first in the schedule. A device that would sync is taken only if
   * all others would sync, too.
   */
  #next(active: ReadonlySet<string>): string | undefined {
    let best: { device: string; syncs: boolean; at: number } | undefined;
    for (const device of active) {
      const head = this.#queue(device)[0];
      if (head === undefined) continue;
      const syncs = head instanceof SyncItem;
      const at = this.#order.get(head) as number;
      if (best === undefined || (syncs === best.syncs ? at < best.at : best.syncs))
        best = { device, syncs, at };
    }
    return best?.device;
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
