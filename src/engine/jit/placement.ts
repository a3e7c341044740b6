// What the items of a captured step do with buffers, and where its values lie. The planner (memoryplan.ts)
// lets values share memory. A page loads it for steps that are large enough; without it each value has memory
// of its own, and the items stay in their order.

import type { DType } from "../../dtype.ts";
import { getOrMake, type Step } from "../../helpers.ts";
import type { LazyBuffer } from "../../lazy/lazybuffer.ts";
import { Buffer } from "../../runtime/buffer.ts";
import type { Sint, Variable } from "../../shape/symbolic.ts";
import { Device } from "../devices.ts";
import type { Slot } from "./capture.ts";
import type { TraceItem } from "./collector.ts";
import { loadedPlanner } from "./planner.ts";
import type { Trace } from "./trace.ts";

export interface MemoryReport {
  /** bytes of what only the items see, side by side and as planned */
  readonly apart: number;
  readonly planned: number;
  /** how many buffers share how many arenas */
  readonly buffers: number;
  readonly arenas: number;
  /** bytes of all buffers of the step, weights, inputs and outputs too, without and with the plan */
  readonly totalApart: number;
  readonly totalPlanned: number;
}

/** What a value needs. */
export interface Room {
  readonly device: string;
  readonly dtype: DType;
  readonly size: number;
}
/** Values that are in one place, one after the other, and from which item to which. */
export interface Life<R extends Room = Room> {
  readonly values: readonly R[];
  readonly first: number;
  readonly last: number;
}
/** Memory for each value of each life. */
export interface Places {
  readonly buffers: readonly (readonly Buffer[])[];
  readonly bytes: number;
}
/** The memory of values that only the items see. */
export interface Placement {
  readonly planned: ReadonlyMap<Buffer, Buffer>;
  /** which of them share a place */
  readonly lives: readonly Life<Buffer>[];
  /** what all of it takes */
  readonly bytes: number;
  readonly arenas: number;
}

/** Host arrays and files are not memory that a plan could share. */
export const holdsData = (b: Buffer): boolean => !Device.computes(b.device);

/** The bytes of a buffer within the memory that it lies in. */
export function rangeOf(buffer: Buffer): {
  readonly root: Buffer;
  readonly from: number;
  readonly to: number;
} {
  let [root, from] = [buffer, 0];
  for (let b = buffer; b.base !== undefined; b = b.base) {
    root = b.base;
    from += b.offset;
  }
  return { root, from, to: from + buffer.nbytes };
}

/** Where a buffer comes from, seen from the items alone. */
export interface BufferUse {
  readonly buffer: Buffer;
  /** made by the items, not there before */
  readonly local: boolean;
  first: number;
  last: number;
  written: boolean;
}

/** Every buffer of the trace in order of its first use. */
export function usesOf(items: readonly TraceItem[], firstNode: number): Map<Buffer, BufferUse> {
  const uses = new Map<Buffer, BufferUse>();
  items.forEach(({ item, isNew, byHand }, i) => {
    if (!isNew) return;
    const touch = (buffer: Buffer, local: boolean): BufferUse => {
      const use = getOrMake(uses, buffer, () => ({ buffer, local, first: i, last: i, written: false }));
      use.last = i;
      return use;
    };
    for (const b of item.inputs) touch(b, false);
    item.outputs.forEach((b, k) => {
      const node = item.lazies[k];
      const made = node === undefined || (node.op !== "ASSIGN" && node.id >= firstNode);
      touch(b, made && byHand === undefined).written = true;
    });
  });
  return uses;
}

/** What is computed once, while the function is captured (once.ts). */
export interface OnceComputed {
  readonly items: ReadonlySet<TraceItem>;
  /** the tensors from before that the items read, by their memory */
  readonly reads: ReadonlyMap<Buffer, LazyBuffer>;
  /** memory of results that a replay reads */
  readonly kept: ReadonlySet<Buffer>;
  /** something that the items read has another value now */
  isOld: boolean;
  /** Adds what it reads to the memory that a replay depends on, and takes away what it has computed. */
  addTo(external: Map<Buffer, LazyBuffer>): void;
  /** Computes all of it again, if that may give something else. */
  renew(): Step<void>;
}

/** Gives out memory for small results; undefined: it is to have memory of its own. */
export type MakeResult = (result: Pick<Buffer, "device" | "size" | "dtype">) => Buffer | undefined;

/** Memory of values whose sizes have Variables. */
export interface Growth {
  /** Slots with room for these values; undefined: they have it. */
  grow(
    slots: readonly Slot[],
    bound: ReadonlyMap<Variable, number>,
  ): Step<{ slots: readonly Slot[]; growth: Growth } | undefined>;
}

/** What makes short steps faster, and steps of several sizes one capture. */
export interface StepTuning {
  resultMemory(): MakeResult;
  /** The sizes in variables of the buffers that were made as large as their values need. */
  sizesOf(items: readonly TraceItem[]): ReadonlyMap<Buffer, Sint>;
  /** How the memory of a capture grows; undefined: all of it has plain sizes. */
  growthOf(
    sizes: ReadonlyMap<Buffer, Sint>,
    places: Placement,
    slotOf: (buffer: Buffer) => number,
    bound: ReadonlyMap<Variable, number>,
  ): Growth | undefined;
  /**
   * `changing`: memory that is another one in each call, or belongs to a result. A function without inputs is
   * called to compute all of it again.
   */
  onceOf(
    trace: Trace,
    items: readonly TraceItem[],
    uses: ReadonlyMap<Buffer, BufferUse>,
    changing: ReadonlySet<Buffer | undefined>,
    hasInputs: boolean,
  ): OnceComputed;
}
/** The planner: the order of a replay, and the memory of what is in `free`. */
export interface Planner {
  arrange(
    items: readonly TraceItem[],
    uses: ReadonlyMap<Buffer, BufferUse>,
    kept: ReadonlySet<Buffer | undefined>,
  ): Step<readonly TraceItem[]>;
  planArenas(
    items: readonly TraceItem[],
    uses: ReadonlyMap<Buffer, BufferUse>,
    free: ReadonlySet<Buffer>,
  ): Step<Placement>;
  place(lives: readonly Life[]): Step<Places>;
}

const APART: Planner = {
  // biome-ignore lint/correctness/useYield: the planner could stop on the way
  *arrange(items) {
    return items;
  },
  // biome-ignore lint/correctness/useYield: the planner could stop on the way
  *planArenas(_, uses, free) {
    const planned = new Map<Buffer, Buffer>();
    const lives: Life<Buffer>[] = [];
    let bytes = 0;
    for (const { buffer, local, first, last } of uses.values()) {
      if (!local || !free.has(buffer) || holdsData(buffer)) continue;
      planned.set(buffer, new Buffer(buffer.device, buffer.size, buffer.dtype));
      lives.push({ values: [buffer], first, last });
      bytes += buffer.nbytes;
    }
    return { planned, lives, bytes, arenas: planned.size };
  },
  *place(lives) {
    const buffers = lives.map((l) => l.values.map((v) => new Buffer(v.device, v.size, v.dtype)));
    return { buffers, bytes: buffers.flat().reduce((n, b) => n + b.nbytes, 0) };
  },
};
export const planner = (): Planner => loadedPlanner() ?? APART;

export function reportOf(
  uses: ReadonlyMap<Buffer, BufferUse>,
  { planned, bytes, arenas }: Placement,
): MemoryReport {
  let [apart, others] = [0, 0];
  for (const { buffer } of uses.values()) {
    if (planned.has(buffer)) apart += buffer.nbytes;
    else if (!holdsData(buffer)) others += buffer.nbytes;
  }
  return {
    apart,
    planned: bytes,
    buffers: planned.size,
    arenas,
    totalApart: others + apart,
    totalPlanned: others + bytes,
  };
}
