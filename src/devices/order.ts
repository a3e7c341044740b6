// What comes before what in a captured run of kernels and copies: an item follows an earlier one
// that touched the same bytes, where one of the two writes; and a large kernel follows the one before it. In:
// items and slots. Out: for each item the earlier ones that it follows, without those that others imply.

import { getOrMake } from "../helpers.ts";
import type { GraphItem, GraphSlot } from "../runtime/device.ts";

/**
 * Operations and bytes of a kernel that has the GPU to itself anyway. A graph starts a kernel that follows
 * one other sooner than one that several branches meet in or part from: such kernels go in a row,
 * and only small ones beside them.
 */
const LARGE = 1 << 22;

interface ItemAccess {
  readonly from: number;
  readonly to: number;
  readonly item: number;
}
/** Who reads and who writes one piece of memory, as far as later items have to know. */
interface MemorySpan {
  reads: ItemAccess[];
  writes: ItemAccess[];
}

export function orderOf(items: readonly GraphItem[], slots: readonly GraphSlot[]): number[][] {
  const memories = new Map<unknown, MemorySpan>();
  const ancestors: Uint32Array[] = [];
  const rows = new Map<unknown, number>();
  return items.map((x, item) => {
    const before = new Set<number>();
    if (x.kind === "kernel" && x.work >= LARGE) {
      const last = rows.get(x.device);
      if (last !== undefined) before.add(last);
      rows.set(x.device, item);
    }
    const touched = touchedBy(x).map(([slot, write]) => {
      const { root, from, to } = slots[slot] as GraphSlot;
      const memory = getOrMake(memories, root, (): MemorySpan => ({ reads: [], writes: [] }));
      return { memory, write, access: { from, to, item } };
    });
    for (const { memory, write, access } of touched) {
      for (const w of memory.writes) if (overlap(w, access)) before.add(w.item);
      if (write) for (const r of memory.reads) if (overlap(r, access)) before.add(r.item);
    }
    // afterwards: an item that reads and writes the same bytes does not follow itself
    for (const { memory, write, access } of touched) if (write) overwrite(memory, access);
    for (const { memory, write, access } of touched) if (!write) memory.reads.push(access);
    return reduced([...before], ancestors, item);
  });
}

function touchedBy(item: GraphItem): (readonly [slot: number, write: boolean])[] {
  if (item.kind === "copy") return [[item.src, false] as const, [item.dest, true] as const];
  return item.args.map((slot) => [slot, item.written.includes(slot)] as const);
}

const overlap = (a: ItemAccess, b: ItemAccess): boolean => a.from < b.to && b.from < a.to;

/** What lies wholly under a write is reached through it. */
function overwrite(memory: MemorySpan, access: ItemAccess): void {
  const stays = (a: ItemAccess): boolean => a.from < access.from || a.to > access.to;
  memory.reads = memory.reads.filter(stays);
  memory.writes = memory.writes.filter(stays);
  memory.writes.push(access);
}

/** Leaves out what another of them follows; keeps, a bit an item, all that come before this one. */
function reduced(before: readonly number[], ancestors: Uint32Array[], item: number): number[] {
  const all = new Uint32Array((item >> 5) + 1);
  const has = (i: number): boolean => (((all[i >> 5] as number) >>> (i & 31)) & 1) === 1;
  const kept: number[] = [];
  // later items first: they may follow earlier ones, never the other way round
  for (const b of [...before].sort((x, y) => y - x)) {
    if (has(b)) continue;
    kept.push(b);
    const theirs = ancestors[b] as Uint32Array;
    for (let i = 0; i < theirs.length; i++) all[i] = (all[i] as number) | (theirs[i] as number);
    all[b >> 5] = (all[b >> 5] as number) | (1 << (b & 31));
  }
  ancestors[item] = all;
  return kept.reverse();
}
