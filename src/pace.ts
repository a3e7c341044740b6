// When a page's thread must go back to the page: it may draw, scroll and answer only between two tasks. Work
// that takes long says at short intervals that it could stop (`PAUSE` in a Step, `isSpent()` elsewhere); what
// drives it lets a task pass once the time of a slice is spent. Elsewhere than in a page a slice has no end.

/** What a Step yields where it could stop; a sync caller goes on at once. */
export const PAUSE: PromiseLike<undefined> = Object.assign(Promise.resolve(undefined), {
  waitSync: (): undefined => undefined,
});

let milliseconds = Infinity;
let end = Infinity;
let now: () => number = () => performance.now();

/** Sets how long a slice may take, and for tests the clock. */
export function setSlice(ms: number, clock = now): void {
  milliseconds = ms;
  now = clock;
  end = now() + ms;
}
/** When the slice that goes on must end; a time of `performance.now()`. */
export const sliceEnd = (): number => end;
/** The time of this slice is spent. */
export const isSpent = (): boolean => end !== Infinity && now() >= end;
/** A task has passed, or has just begun: a new slice. */
export function beginSlice(): void {
  end = now() + milliseconds;
}

/** What devices left undone when a slice ended: each goes on for a slice, and says whether more is left. */
const leftovers = new Set<() => boolean>();
export const addLeftover = (work: () => boolean): void => void leftovers.add(work);

/** Lets a task pass, and more of them until what was left is done. */
export async function letTasksPass(): Promise<void> {
  let isLeft: boolean;
  do {
    await nextTask();
    isLeft = false;
    for (const work of leftovers) if (work()) isLeft = true;
  } while (isLeft);
}

/** Lets a task pass, as cheaply as the host can. */
export const nextTurn = (): Promise<void> =>
  typeof setImmediate === "undefined" ? nextTask() : new Promise((resolve) => void setImmediate(resolve));

let channel: MessageChannel | undefined;
const waiting: (() => void)[] = [];
/** Ports of Node keep its process alive: as long as someone waits, and no longer. */
interface NodePort {
  ref?(): void;
  unref?(): void;
}

/**
 * Lets one task pass, and begins a slice. A message comes at once; a timer would come 4 ms late, the fifth
 * time in a row.
 */
export function nextTask(): Promise<void> {
  channel ??= openChannel();
  const { port1, port2 } = channel;
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) (port1 as NodePort).ref?.();
    port2.postMessage(0);
  });
}
function openChannel(): MessageChannel {
  const made = new MessageChannel();
  made.port1.onmessage = () => {
    beginSlice();
    const resolve = waiting.shift();
    if (waiting.length === 0) (made.port1 as NodePort).unref?.();
    resolve?.();
  };
  return made;
}
