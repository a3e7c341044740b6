// The memory planner: values that live at different times may share memory. In: how many bytes each value takes and from
// which step to which it lives. Out: a place for each in one arena. Knows nothing of buffers or devices.

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

/**
 * The largest first, each at the lowest place where it meets nobody that lives at the same time. No order is best for
 * all graphs; this one is close to the lower bound (the most bytes alive at one step) on training steps.
 */
export function planMemory(lives: readonly Life[]): Plan {
  const order = lives.map((_, i) => i);
  const life = (i: number): Life => lives[i] as Life;
  order.sort((a, b) => life(b).nbytes - life(a).nbytes || life(a).first - life(b).first || a - b);
  const offsets: number[] = lives.map(() => 0);
  // by address, so that one pass over those in the way finds the gaps between them
  const placed: Placed[] = [];
  for (const i of order) {
    const { nbytes, first, last } = life(i);
    const size = rounded(nbytes);
    const at = lowestGap(placed, size, first, last);
    offsets[i] = at;
    const after = placed.findIndex((p) => p.at > at);
    placed.splice(after < 0 ? placed.length : after, 0, { nbytes, first, last, at, size });
  }
  return {
    offsets,
    nbytes: placed.reduce((top, p) => Math.max(top, p.at + p.size), 0),
    apart: lives.reduce((sum, l) => sum + rounded(l.nbytes), 0),
  };
}

/** The tightest gap that is large enough, else above all that is in the way. */
function lowestGap(placed: readonly Placed[], size: number, first: number, last: number): number {
  let top = 0;
  let best = -1;
  let room = Infinity;
  for (const p of placed) {
    if (p.first > last || p.last < first) continue;
    const gap = p.at - top;
    if (gap >= size && gap < room) {
      best = top;
      room = gap;
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
