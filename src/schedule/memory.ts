// The memory planner: values that live at different times may share memory. In: how many bytes each value takes and from
// which step to which it lives. Out: a place for each in one arena. And before that: an order of the steps in which less
// lives at once. Knows nothing of buffers or devices.

export interface Life {
  readonly nbytes: number;
  /** the first and the last step that touches the value, both included */
  readonly first: number;
  readonly last: number;
}

export interface Plan {
  /** where each value lies in the arena, in bytes */
  readonly offsets: readonly number[];
  /** how long the arena is */
  readonly nbytes: number;
  /** what the values would take side by side */
  readonly apart: number;
}

/** Kernels load whole vectors: every value starts at a multiple of this. */
export const ALIGN = 64;
const rounded = (nbytes: number): number => Math.ceil(Math.max(nbytes, 1) / ALIGN) * ALIGN;

interface Placed extends Life {
  readonly at: number;
  readonly size: number;
}

/** In which order values are placed: by size, by how long they live, by both, by when they begin. */
const ORDERS: readonly ((l: Life) => number)[] = [
  (l) => -l.nbytes,
  (l) => -l.nbytes * (l.last - l.first + 1),
  (l) => l.first - l.last,
  (l) => l.first,
  (l) => -l.last,
];

/**
 * Each value in a gap between those that live at the same time. No order of placing is best for all graphs, so several are
 * tried, until one needs no more than the most bytes that are alive at one step.
 */
export function planMemory(lives: readonly Life[]): Plan {
  const least = mostAlive(lives);
  const apart = lives.reduce((sum, l) => sum + rounded(l.nbytes), 0);
  let best: Plan = { offsets: [], nbytes: Infinity, apart };
  for (const weight of ORDERS) {
    for (const tight of [true, false]) {
      if (best.nbytes === least) return best;
      const made = place(lives, weight, tight);
      if (made.nbytes < best.nbytes) best = { ...made, apart };
    }
  }
  return best;
}

function place(
  lives: readonly Life[],
  weight: (l: Life) => number,
  tight: boolean,
): { offsets: readonly number[]; nbytes: number } {
  const order = lives.map((l, i) => ({ i, l, w: weight(l) }));
  order.sort((a, b) => a.w - b.w || b.l.nbytes - a.l.nbytes || a.l.first - b.l.first || a.i - b.i);
  const offsets: number[] = lives.map(() => 0);
  // by address, so that one pass over those in the way finds the gaps between them
  const placed: Placed[] = [];
  for (const { i, l } of order) {
    const size = rounded(l.nbytes);
    const at = gapFor(placed, size, l, tight);
    offsets[i] = at;
    const after = placed.findIndex((p) => p.at > at);
    placed.splice(after < 0 ? placed.length : after, 0, { ...l, at, size });
  }
  return { offsets, nbytes: placed.reduce((top, p) => Math.max(top, p.at + p.size), 0) };
}

/** The tightest gap that is large enough, or the lowest; else above all that is in the way. */
function gapFor(placed: readonly Placed[], size: number, { first, last }: Life, tight: boolean): number {
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

/** The most bytes that are alive at one step: no plan needs less. */
export function mostAlive(lives: readonly Life[]): number {
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

/** What a step reads and writes, as numbers of values. */
export interface StepUse {
  readonly reads: readonly number[];
  readonly writes: readonly number[];
}

/**
 * An order that gives the same results, in which less is alive at once: of the steps that could be next, the one that frees
 * most. A gradient of a weight, say, is computed while what it needs is still there for something else. `bytes`: of each
 * value, 0 for what is not planned. Where the order that came needs no more it stays.
 */
export function orderForMemory(steps: readonly StepUse[], bytes: readonly number[]): number[] {
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
    order.push(best);
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
  const most = (o: readonly number[]): number => mostAlive(livesIn(o, touched, bytes));
  return most(order) < most(before) ? order : before;
}

/** Who must come after whom: readers after the writer of what they read, writers after all who touched it before. */
function dependencies(steps: readonly StepUse[]): { successors: Set<number>[]; waits: number[] } {
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
    for (const v of reads) readers.set(v, [...(readers.get(v) ?? []), i]);
  });
  return { successors, waits };
}

function livesIn(
  order: readonly number[],
  touched: readonly (readonly number[])[],
  bytes: readonly number[],
): Life[] {
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
