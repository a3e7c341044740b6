// When a thread must go back to its event loop: a page draws and scrolls, and a server answers, only between
// two tasks. Work that takes long says at short intervals that it could stop (`PAUSE` in a Step, `isSpent()`
// elsewhere); what drives it lets a task pass once the time of a slice is spent. The host sets the slice.

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
/** Milliseconds until the current slice must end; below 0 if it should have ended already. */
export const sliceLeft = (): number => (end === Infinity ? Infinity : end - now());
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

const waiting: (() => void)[] = [];
let port: MessagePort | undefined;
/** Taken at the start: a test that replaces timers must not stop us. */
const { setImmediate } = globalThis as { setImmediate?: (task: () => void) => unknown };

/**
 * Lets one task run, then begins a slice. Outside of Node it waits for a message, which comes at once;
 * browsers delay the fifth timer in a row by 4 ms.
 */
export function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (setImmediate !== undefined) setImmediate(taskPassed);
    else {
      port ??= openPort();
      port.postMessage(0);
    }
  });
}
function taskPassed(): void {
  beginSlice();
  waiting.shift()?.();
}
function openPort(): MessagePort {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = taskPassed;
  return port2;
}
