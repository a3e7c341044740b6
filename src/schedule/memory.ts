// The memory planner: values that are live at different times may share memory. In: the bytes and the live
// range of each value. Out: an offset for each in one arena. Before that, it can reorder the steps so that
// fewer bytes are live at once. Knows nothing about buffers or devices.

import { each, getOrMake, PORTION, runSync, type Step } from "../helpers.ts";
import { PAUSE } from "../pace.ts";

export interface LiveRange {
  readonly nbytes: number;
  /** the first and the last step that touches the value, both included */
  readonly first: number;
  readonly last: number;
}

interface MemoryPlan {
  /** the offset of each value in the arena, in bytes */
  readonly offsets: readonly number[];
  /** the size of the arena */
  readonly nbytes: number;
  /** what the values would take without sharing */
  readonly unshared: number;
}

/** Kernels load whole vectors: every value starts at a multiple of this. */
export const ALIGN = 64;
const rounded = (nbytes: number): number => Math.ceil(Math.max(nbytes, 1) / ALIGN) * ALIGN;

interface PlacedRange extends LiveRange {
  readonly at: number;
  readonly size: number;
}

/** The orders in which values are placed: by size, by size times lifetime, by lifetime, by start, by end. */
const ORDERS: readonly ((l: LiveRange) => number)[] = [
  (l) => -l.nbytes,
  (l) => -l.nbytes * (l.last - l.first + 1),
  (l) => l.first - l.last,
  (l) => l.first,
  (l) => -l.last,
];

/**
 * Places each value in a gap between those that are live at the same time. No order of placing is best for
 * all graphs, so several are tried, until one reaches the lower bound: the peak of live bytes.
 */
export const planMemory = (lives: readonly LiveRange[]): MemoryPlan =>
  runSync(planSteps(lives), "planMemory");
/** The same, and it could stop after every few values. */
export function* planSteps(lives: readonly LiveRange[]): Step<MemoryPlan> {
  const least = peakBytes(lives);
  const unshared = lives.reduce((sum, l) => sum + rounded(l.nbytes), 0);
  let best: MemoryPlan = { offsets: [], nbytes: Infinity, unshared };
  for (const weight of ORDERS) {
    for (const tight of [true, false]) {
      if (best.nbytes === least) return best;
      const made = yield* place(lives, weight, tight);
      if (made.nbytes < best.nbytes) best = { ...made, unshared };
    }
  }
  return best;
}

function* place(
  lives: readonly LiveRange[],
  weight: (l: LiveRange) => number,
  tight: boolean,
): Step<{ offsets: readonly number[]; nbytes: number }> {
  const order = lives.map((l, i) => ({ i, l, w: weight(l) }));
  order.sort((a, b) => a.w - b.w || b.l.nbytes - a.l.nbytes || a.l.first - b.l.first || a.i - b.i);
  const offsets: number[] = lives.map(() => 0);
  // sorted by address, so that one pass over the conflicting values finds the gaps between them
  const placed: PlacedRange[] = [];
  yield* each(order, ({ i, l }) => {
    const size = rounded(l.nbytes);
    const at = gapFor(placed, size, l, tight);
    offsets[i] = at;
    const after = placed.findIndex((p) => p.at > at);
    placed.splice(after < 0 ? placed.length : after, 0, { ...l, at, size });
  });
  return { offsets, nbytes: placed.reduce((top, p) => Math.max(top, p.at + p.size), 0) };
}

/**
 * The tightest gap that is large enough, or the lowest; without one, the address above all conflicting
 * values.
 */
function gapFor(
  placed: readonly PlacedRange[],
  size: number,
  { first, last }: LiveRange,
  tight: boolean,
): number {
  let top = 0;
  let best = -1;
  let room = Infinity;
  for (const p of placed) {
    if (p.first > last || p.last < first) continue;
    const gap = p.at - top;
    if (gap >= size && gap < room) {
      best = top;
      room = tight ? gap : 0;
    }
    top = Math.max(top, p.at + p.size);
  }
  return best >= 0 ? best : top;
}

/** The most bytes that are live at one step: no plan needs less. */
export function peakBytes(lives: readonly LiveRange[]): number {
  const changes = new Map<number, number>();
  for (const { nbytes, first, last } of lives) {
    changes.set(first, (changes.get(first) ?? 0) + rounded(nbytes));
    changes.set(last + 1, (changes.get(last + 1) ?? 0) - rounded(nbytes));
  }
  let [now, most] = [0, 0];
  for (const step of [...changes.keys()].sort((a, b) => a - b)) {
    now += changes.get(step) as number;
    most = Math.max(most, now);
  }
  return most;
}

/** What a step reads and writes, as indexes of values. */
export interface StepAccess {
  readonly reads: readonly number[];
  readonly writes: readonly number[];
}

/**
 * A valid order of the steps in which fewer bytes are live at once: of the steps that could run next, it
 * takes the one that frees most. For example, a weight's gradient is computed while its inputs are still live
 * for another step. `bytes`: the size of each value, 0 if it is not planned. The given order stays unless the
 * new one has a lower peak.
 */
export const orderForMemory = (steps: readonly StepAccess[], bytes: readonly number[]): number[] =>
  runSync(orderSteps(steps, bytes), "orderForMemory");
/** The same, and it could stop after every few steps. */
export function* orderSteps(steps: readonly StepAccess[], bytes: readonly number[]): Step<number[]> {
  const { successors, waits } = dependencies(steps);
  const left = bytes.map(() => 0);
  const touched = steps.map(({ reads, writes }) => [...new Set([...reads, ...writes])]);
  for (const values of touched) for (const v of values) left[v] = (left[v] ?? 0) + 1;
  const alive = new Set<number>();
  const growth = (step: number): number => {
    let total = 0;
    for (const v of touched[step] as number[]) {
      if (!alive.has(v)) total += bytes[v] as number;
      if (left[v] === 1) total -= bytes[v] as number;
    }
    return total;
  };
  const ready = new Set(waits.flatMap((n, i) => (n === 0 ? [i] : [])));
  const order: number[] = [];
  while (ready.size > 0) {
    let [best, least] = [-1, Infinity];
    for (const i of ready) {
      const g = growth(i);
      if (g < least || (g === least && i < best)) [best, least] = [i, g];
    }
    ready.delete(best);
    if (order.push(best) % PORTION === 0) yield PAUSE;
    for (const v of touched[best] as number[]) {
      left[v] = (left[v] as number) - 1;
      if (left[v] === 0) alive.delete(v);
      else alive.add(v);
    }
    for (const next of successors[best] as Set<number>) {
      waits[next] = (waits[next] as number) - 1;
      if (waits[next] === 0) ready.add(next);
    }
  }
  const before = steps.map((_, i) => i);
  const most = (o: readonly number[]): number => peakBytes(liveRanges(o, touched, bytes));
  return most(order) < most(before) ? order : before;
}

/** The order that must hold: readers after the writer, writers after all earlier readers and writers. */
function dependencies(steps: readonly StepAccess[]): { successors: Set<number>[]; waits: number[] } {
  const successors = steps.map(() => new Set<number>());
  const waits = steps.map(() => 0);
  const writer = new Map<number, number>();
  const readers = new Map<number, number[]>();
  const after = (later: number, sooner: number | undefined): void => {
    const list = sooner === undefined || sooner === later ? undefined : successors[sooner];
    if (list === undefined || list.has(later)) return;
    list.add(later);
    waits[later] = (waits[later] as number) + 1;
  };
  steps.forEach(({ reads, writes }, i) => {
    for (const v of reads) after(i, writer.get(v));
    for (const v of writes) for (const sooner of [writer.get(v), ...(readers.get(v) ?? [])]) after(i, sooner);
    for (const v of writes) {
      writer.set(v, i);
      readers.delete(v);
    }
    for (const v of reads) getOrMake(readers, v, () => []).push(i);
  });
  return { successors, waits };
}

function liveRanges(
  order: readonly number[],
  touched: readonly (readonly number[])[],
  bytes: readonly number[],
): LiveRange[] {
  const lives = new Map<number, { nbytes: number; first: number; last: number }>();
  order.forEach((step, at) => {
    for (const v of touched[step] as number[]) {
      const life = lives.get(v) ?? { nbytes: bytes[v] as number, first: at, last: at };
      life.last = at;
      lives.set(v, life);
    }
  });
  return [...lives.values()].filter((l) => l.nbytes > 0);
}
