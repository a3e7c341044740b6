// What captured items compute of nothing but memory that stays the same: weights turned round, tables, host
// data on its way to the device. It is computed once, while the function is captured, and again only when a
// tensor that it reads was assigned to. In: the items of a trace. Out: those that a replay leaves out.

import { getOrMake, type Step } from "../../helpers.ts";
import type { LazyBuffer } from "../../lazy/lazybuffer.ts";
import { Buffer, handWrites } from "../../runtime/buffer.ts";
import { BufferCopy, CompiledRunner, type Runner } from "../../runtime/runner.ts";
import { Device } from "../devices.ts";
import type { TraceItem } from "./collector.ts";
import type { BufferUse, OnceComputed } from "./placement.ts";
import type { Trace } from "./trace.ts";

/** What is kept may take more memory than what it was computed from if it is as small as this. */
const SMALL = 1 << 14;

class Once implements OnceComputed {
  readonly items: ReadonlySet<TraceItem>;
  readonly reads: ReadonlyMap<Buffer, LazyBuffer>;
  readonly kept: ReadonlySet<Buffer>;
  isOld = false;
  #written = handWrites.count;

  constructor(
    items: ReadonlySet<TraceItem>,
    reads: ReadonlyMap<Buffer, LazyBuffer>,
    kept: ReadonlySet<Buffer>,
  ) {
    this.items = items;
    this.reads = reads;
    this.kept = kept;
  }

  addTo(external: Map<Buffer, LazyBuffer>): void {
    for (const b of this.kept) external.delete(b);
    for (const [buffer, node] of this.reads) external.set(buffer, node.newest);
  }
  *renew(): Step<void> {
    if (this.items.size === 0 || (!this.isOld && this.#written === handWrites.count)) return;
    this.#written = handWrites.count;
    const temporary = new Map<Buffer, Buffer>();
    const made = new Set([...this.items].flatMap(({ item }) => item.outputs));
    const place = (b: Buffer): Buffer => {
      if (!made.has(b) || this.kept.has(b)) return b;
      return getOrMake(temporary, b, () => new Buffer(b.device, b.size, b.dtype)).ensureAllocated();
    };
    for (const { runner, item } of this.items)
      yield* (runner as Runner).run([...item.outputs, ...item.inputs].map(place), item.varVals, false);
    for (const b of temporary.values()) b.dispose();
    this.isOld = false;
  }
}

export function onceOf(
  trace: Trace,
  items: readonly TraceItem[],
  uses: ReadonlyMap<Buffer, BufferUse>,
  changing: ReadonlySet<Buffer | undefined>,
  hasInputs: boolean,
): OnceComputed {
  const drawn = new Set(trace.draws.map((d) => d.buffer));
  const writes = new Map<Buffer, number>();
  for (const { item } of items) for (const b of item.outputs) writes.set(b, (writes.get(b) ?? 0) + 1);
  /** by result: the memory from before that it was computed from */
  const origins = new Map<Buffer, ReadonlySet<Buffer>>();
  const reads = new Map<Buffer, LazyBuffer>();
  const found = new Set<TraceItem>();
  for (const x of hasInputs ? items : []) {
    if (!isPlain(x)) continue;
    const { item } = x;
    const nodes = new Map((item.reads ?? []).map((lb) => [lb.buffer, lb] as const));
    const isFixed = (b: Buffer): boolean => {
      if (origins.has(b)) return true;
      const node = nodes.get(b);
      if (node === undefined || changing.has(b) || drawn.has(b) || uses.get(b)?.written) return false;
      return (
        Device.computes(b.device) || (Device.storageOf(b.device) === "array" && node.id >= trace.firstNode)
      );
    };
    const isOwn = (b: Buffer): boolean =>
      uses.get(b)?.local === true && writes.get(b) === 1 && !changing.has(b) && Device.computes(b.device);
    if (!item.inputs.every(isFixed) || !item.outputs.every(isOwn)) continue;
    const from = new Set(item.inputs.flatMap((b) => [...(origins.get(b) ?? [b])]));
    const room = [...from].reduce((n, b) => n + b.nbytes, 0);
    if (item.outputs.reduce((n, b) => n + b.nbytes, 0) > Math.max(room, SMALL)) continue;
    found.add(x);
    for (const b of item.outputs) origins.set(b, from);
    for (const [b, lb] of nodes) if (!origins.has(b)) reads.set(b, lb);
  }
  const rest = items.filter((x) => !found.has(x));
  const kept = new Set(rest.flatMap(({ item }) => item.inputs.filter((b) => origins.has(b))));
  return new Once(found, reads, kept);
}

/** A kernel, or a copy of host data, of which all is known that it does. */
function isPlain({ runner, item, isNew, byHand }: TraceItem): boolean {
  const isKernel = runner instanceof CompiledRunner && item.ast[0]?.op === "STORE";
  const isCopy = runner?.constructor === BufferCopy && item.ast[0]?.op === "COPY";
  const isWhole = item.varVals.size === 0 && item.partOf === undefined && item.lazies.length > 0;
  return isNew && byHand === undefined && isWhole && (isKernel || isCopy);
}
