// Small functions that every stage needs and no stage owns: products, colours, topological order, and the
// two drivers (`runAsync`, `runSync`) with which one generator serves both the async and the sync API.

import { wantsColor } from "./env.ts";
import { DeviceError } from "./errors.ts";
import { isSpent, letTasksPass, PAUSE } from "./pace.ts";

export const sum = (xs: readonly number[]): number => xs.reduce((a, b) => a + b, 0);
export const prod = (xs: readonly number[]): number => xs.reduce((a, b) => a * b, 1);
/** 0, 1, …, n - 1. A loop: Array.from takes several times as long. */
export function range(n: number): number[] {
  const numbers: number[] = [];
  for (let i = 0; i < n; i++) numbers.push(i);
  return numbers;
}
/**
 * `xs.map(make)` for arrays that stay in a graph. V8's own gives packed arrays, but holey ones once its
 * caller is optimised: then all optimised code that reads the graph is thrown away.
 */
export function mapped<T, U>(xs: readonly T[], make: (x: T, i: number) => U): U[] {
  const made: U[] = [];
  for (let i = 0; i < xs.length; i++) made.push(make(xs[i]!, i));
  return made;
}
export function arraysEqual<T>(a: readonly T[], b: readonly T[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

// ---- what a value is, also one of another realm (a frame, a vm context), where instanceof fails ----

/** The name of a built-in class: "Map", "ArrayBuffer", "Error". */
export const tagOf = (x: unknown): string => Object.prototype.toString.call(x).slice(8, -1);
/** Whether it is a plain object, as `{}` makes one. */
export function isPlain(x: unknown): x is Readonly<Record<string, unknown>> {
  if (typeof x !== "object" || x === null) return false;
  const proto = Object.getPrototypeOf(x);
  return proto === null || Object.getPrototypeOf(proto) === null;
}
/** What an object holds, by name: properties, or the elements of a Map or a Set. */
export function partsOf(x: object): [unknown, unknown][] {
  const tag = tagOf(x);
  if (tag === "Map") return [...(x as Map<unknown, unknown>)];
  return Object.entries(tag === "Set" ? [...(x as Set<unknown>)] : x);
}

/** Runs `fn`, then `restore`: when `fn` returns or throws, or when the promise it returns has settled. */
export function restoring<T>(fn: () => T, restore: () => void): T {
  let result: T;
  try {
    result = fn();
  } catch (e) {
    restore();
    throw e;
  }
  if (isPromise(result)) return Promise.resolve(result).finally(restore) as T;
  restore();
  return result;
}

/** Memoises in the map: the value for `key`, made by `make` if it is new. */
export function getOrMake<K, V>(
  map: { get(key: K): V | undefined; set(key: K, value: V): unknown },
  key: K,
  make: () => V,
): V {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = make();
  map.set(key, made);
  return made;
}

const COLORS = { red: 31, green: 32, yellow: 33, blue: 34, magenta: 35, cyan: 36, white: 37 } as const;
export type Color = keyof typeof COLORS | Uppercase<keyof typeof COLORS>;

/** Upper-case colour names are the bright ones. */
export function colored(text: string, color: Color): string {
  if (!wantsColor()) return text;
  const lower = color.toLowerCase() as keyof typeof COLORS;
  return `\u001b[${COLORS[lower] + (color === lower ? 0 : 60)}m${text}\u001b[0m`;
}

/** Pads to a width without counting colour codes; `padEnd` would count them. */
export const padColored = (text: string, width: number): string => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colour codes start with ESC
  const shown = text.replaceAll(/\u001b\[\d+m/g, "").length;
  return text + " ".repeat(Math.max(0, width - shown));
};

/** Sources before users, each once. */
export function toposort<T>(roots: readonly T[], sources: (node: T) => readonly T[]): T[] {
  const { order, goOn } = sorter(roots, sources);
  goOn(Infinity);
  return order;
}
/** The same of a graph that may be large: it could stop on the way. */
export function* toposortSteps<T>(
  roots: readonly T[],
  sources: (node: T) => readonly T[],
): Generator<PromiseLike<unknown>, T[], unknown> {
  const { order, goOn } = sorter(roots, sources);
  while (!goOn(PORTION)) yield PAUSE;
  return order;
}
/** Iterative, because a graph may be deeper than the call stack. `goOn`: for so many moves; true: done. */
function sorter<T>(roots: readonly T[], sources: (node: T) => readonly T[]) {
  const order: T[] = [];
  const seen = new Set<T>();
  // the path to the current node: each node, its sources, and how many of these are done
  const path: T[] = [];
  const srcs: (readonly T[])[] = [];
  const done: number[] = [];
  const enter = (node: T): void => {
    if (seen.has(node)) return;
    seen.add(node);
    path.push(node);
    srcs.push(sources(node));
    done.push(0);
  };
  let entered = 0;
  const goOn = (moves: number): boolean => {
    for (let left = moves; left > 0; left--) {
      const top = path.length - 1;
      if (top < 0) {
        if (entered === roots.length) return true;
        enter(roots[entered++] as T);
        continue;
      }
      const at = done[top]!;
      const next = srcs[top]![at];
      if (next !== undefined) {
        done[top] = at + 1;
        enter(next);
        continue;
      }
      order.push(path.pop()!);
      srcs.pop();
      done.pop();
    }
    return false;
  };
  return { order, goOn };
}

/** Node's console.log calls this method of an object; elsewhere the symbol is not used. */
export const inspect: unique symbol = Symbol.for("nodejs.util.inspect.custom");

/** A coroutine for work that may have to wait: it yields what it waits for and is resumed with the value. */
export type Step<T> = Generator<PromiseLike<unknown>, T, unknown>;
export type MaybePromise<T> = T | PromiseLike<T>;

export const isPromise = <T>(x: MaybePromise<T>): x is PromiseLike<T> =>
  typeof (x as PromiseLike<T> | undefined | null)?.then === "function";

/** A promise that a synchronous caller can also wait for, by blocking. */
export interface Waitable<T> extends Promise<T> {
  waitSync(): T;
}
export const waitable = <T>(promise: Promise<T>, waitSync: () => T): Waitable<T> =>
  Object.assign(promise, { waitSync });

/**
 * `f` of the value, now or when it is there. A result of a Waitable is a Waitable; who waits for it does what
 * follows, and the promise does not do it again.
 */
export function chain<T, U>(x: MaybePromise<T>, f: (value: T) => U): MaybePromise<U> {
  if (!isPromise(x)) return f(x);
  const { waitSync } = x as Partial<Waitable<T>>;
  let outcome: (() => U) | undefined;
  const once = (value: T): U => {
    if (outcome === undefined) {
      try {
        const result = f(value);
        outcome = () => result;
      } catch (e) {
        outcome = () => {
          throw e;
        };
      }
    }
    return outcome();
  };
  const then = Promise.resolve(x).then(once);
  return waitSync === undefined ? explainedBy([x], then) : waitable(then, () => once(waitSync()));
}

/** `promise` with the first `why` of those that it waits for, which a sync caller is told (`runSync`). */
function explainedBy<P extends PromiseLike<unknown>>(waited: readonly PromiseLike<unknown>[], promise: P): P {
  const why = waited.map((w) => (w as { readonly why?: string }).why).find((w) => w !== undefined);
  return why === undefined ? promise : Object.assign(promise, { why });
}

/** Waits until all have settled, fulfilled or rejected. A Waitable if each of them is one. */
export function together(xs: readonly PromiseLike<unknown>[]): PromiseLike<unknown> {
  const all = Promise.allSettled(xs);
  const waits = xs.map((x) => (x as Partial<Waitable<unknown>>).waitSync);
  if (!waits.every((w) => w !== undefined)) return explainedBy(xs, all);
  return waitable(all, () => {
    for (const wait of waits) {
      try {
        wait();
      } catch {} // reported to whoever asks for the value
    }
    return [];
  });
}

/**
 * After so many visits of nodes, or other small pieces of work, a Step could stop: a slow phone does them in
 * a few milliseconds.
 */
export const PORTION = 64;
/** Visits all; it could stop after every `portion` of them. */
export function* each<T>(
  items: Iterable<T>,
  visit: (item: T, index: number) => void,
  portion = PORTION,
): Step<void> {
  let done = 0;
  for (const item of items) {
    visit(item, done);
    if (++done % portion === 0) yield PAUSE;
  }
}
/** The results of all; it could stop after every `portion` of them. */
export function* mapEach<T, U>(
  items: Iterable<T>,
  make: (item: T, index: number) => U,
  portion = PORTION,
): Step<U[]> {
  const made: U[] = [];
  yield* each(items, (item, i) => void made.push(make(item, i)), portion);
  return made;
}

/** Inside a Step: the value of `x`, waiting only if it is a promise. */
export function* settle<T>(x: MaybePromise<T>): Step<T> {
  return isPromise(x) ? ((yield x) as T) : x;
}

/** Runs a Step. Where it could stop (PAUSE) a task passes if the page has waited long enough. */
export async function runAsync<T>(step: Step<T>): Promise<T> {
  let state = step.next();
  while (!state.done) {
    let value: unknown;
    try {
      if (state.value === PAUSE) {
        if (isSpent()) await letTasksPass();
      } else value = await state.value;
    } catch (e) {
      state = step.throw(e);
      continue;
    }
    state = step.next(value);
  }
  return state.value;
}

/**
 * Runs a Step without returning to the event loop. Throws if the Step waits for something that cannot block;
 * the message has the `why` of that promise.
 */
export function runSync<T>(step: Step<T>, what: string): T {
  let state = step.next();
  while (!state.done) {
    if (state.value === PAUSE) {
      state = step.next();
      continue;
    }
    state.value.then(undefined, () => {}); // the promise is abandoned: its failure is not a second error
    const { why: known, waitSync } = state.value as { readonly why?: string; waitSync?: () => unknown };
    const reason = known ?? "a device here can only be waited for asynchronously";
    // a reason may have advice of its own
    const link = reason.includes("; ") ? ", or" : ";";
    const refused = new DeviceError(`${what}: ${reason}${link} use the async form (await)`);
    if (waitSync === undefined) {
      const end = step.throw(refused);
      if (end.done) return end.value;
      throw refused;
    }
    state = resume(step, waitSync);
  }
  return state.value;
}
function resume<T>(step: Step<T>, wait: () => unknown): IteratorResult<PromiseLike<unknown>, T> {
  let value: unknown;
  try {
    value = wait();
  } catch (e) {
    return step.throw(e);
  }
  return step.next(value);
}

/** Node loads its `performance` when it is first used, which a start can do without. */
const { process } = globalThis as { process?: { hrtime?: () => [seconds: number, nanoseconds: number] } };
function milliseconds(): number {
  if (process?.hrtime === undefined) return performance.now();
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}
let now = milliseconds;
/** Milliseconds. Tests may replace the clock, so that printed tables are stable. */
export const timestamp = (): number => now();
export const setClock = (clock: () => number): void => {
  now = clock;
};
