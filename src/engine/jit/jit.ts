// TinyJit. Call 0 of a jitted function runs it. Call 1 runs it and captures what is executed. Later calls
// execute the captured items again, without the function: inputs are swapped by position, results get memory
// of their own, values of Variables and random numbers are those of the call. What a replay would get wrong
// is refused. collector.ts records a call, invariants.ts refuses, capture.ts says what is kept, replay.ts
// runs it.

import { env } from "../../env.ts";
import { JitError } from "../../errors.ts";
import { isPromise, type MaybePromise, runAsync, runSync, type Step, settle } from "../../helpers.ts";
import type { LazyBuffer } from "../../lazy/lazybuffer.ts";
import { PAUSE } from "../../pace.ts";
import { Buffer } from "../../runtime/buffer.ts";
import { evaluate, type Variable } from "../../shape/symbolic.ts";
import { atOnce, inTurn, realize, realizeSync } from "../realize.ts";
import { Arguments, type Expected, expectedOf, isTensor, mismatch } from "./arguments.ts";
import {
  giveBack,
  like,
  outputsOf,
  placeholderFor,
  prepare,
  Results,
  renew,
  requireApart,
} from "./binding.ts";
import { buffersOf, type CapturedFunction, capture, type Result, type Returned, seal } from "./capture.ts";
import { CacheCollector, type HostRead, type Setting, type TensorLike } from "./collector.ts";
import { CallSummary, isWithin, requireInvariant } from "./invariants.ts";
import type { MakeResult, MemoryReport } from "./placement.ts";
import { stepTuning } from "./planner.ts";
import { difference, flatten, isContainer, type Leaf, type TreeDef, unflatten } from "./pytree.ts";
import { Replay } from "./replay.ts";
import { Trace } from "./trace.ts";

/** How the parts of a call that may have to wait are done. */
interface Driver {
  realize(outs: readonly LazyBuffer[], within?: <T>(run: () => T) => T): Step<void>;
  /** after whatever async work came before */
  perform(work: () => Step<void>): Step<void>;
  result(x: unknown): Step<unknown>;
}
const ASYNC: Driver = {
  *realize(outs, within = (run) => run()) {
    yield within(() => realize(outs));
  },
  *perform(work) {
    yield inTurn(work, true);
  },
  result: (x) => settle(x as MaybePromise<unknown>),
};
const SYNC: Driver = {
  *realize(outs, within = (run) => run()) {
    within(() => realizeSync(outs));
  },
  // biome-ignore lint/correctness/useYield: a Step that never has to wait
  *perform(work) {
    atOnce(work, "TinyJit");
  },
  *result(x) {
    if (!isPromise(x)) return x;
    x.then(undefined, () => {});
    throw new JitError("TinyJit.sync: the function is async; call the jit itself and await it");
  },
};

/** What a call left for the next one to be compared with. */
interface Earlier {
  readonly summary: CallSummary;
  readonly expected: Expected;
  /** the tree of the result, and the values in it that are not tensors */
  readonly returned: TreeDef;
  readonly bound: ReadonlyMap<Variable, number>;
}
/** A capture that can be replayed. */
interface Ready extends Earlier {
  readonly captured: CapturedFunction;
  readonly results: readonly Result[];
  readonly replay: Replay;
  readonly memory: MakeResult | undefined;
  readonly settings: readonly Setting[];
  /** variables that were seen with two values, and the same kernels for both */
  readonly trusted: ReadonlySet<Variable>;
}

type Fn = (...args: never[]) => unknown;

/** An instance can be called like the function that it was made of. */
class Callable {
  constructor(fn: object) {
    // biome-ignore lint/correctness/noConstructorReturn: this is how an instance becomes callable
    return Object.setPrototypeOf(fn, new.target.prototype);
  }
}

class Jit extends Callable {
  static override readonly name: string = "TinyJit";
  readonly #fn: (...args: unknown[]) => unknown;
  #calls = 0;
  #earlier: Earlier | undefined;
  #ready: Ready | undefined;
  #last: Promise<unknown> = Promise.resolve();
  /** async calls that have not ended */
  #pending = 0;

  constructor(fn: Fn, ...surplus: readonly never[]) {
    if (typeof fn !== "function" || surplus.length > 0) {
      const got = surplus.length > 0 ? `${surplus.length + 1} arguments` : typeof fn;
      throw new JitError(`TinyJit: got ${got}, expected a function of tensors; write new TinyJit((x) => …)`);
    }
    super((...args: unknown[]) => this?.call(args));
    this.#fn = fn as (...args: unknown[]) => unknown;
    Object.defineProperty(this, "name", { value: fn.name || "jit" });
  }

  /** How often it was called since it was made or reset. */
  get cnt(): number {
    return this.#calls;
  }
  /** What the third and later calls execute: runners, in order. Empty until something was captured. */
  get jitCache(): CapturedFunction["items"] {
    return this.#ready?.captured.items ?? [];
  }
  /** What the memory planner made of the captured step. */
  get memory(): MemoryReport | undefined {
    return this.#ready?.captured.memory;
  }

  /** Forgets the capture: the next call is call 0. */
  reset(): void {
    this.#calls = 0;
    this.#earlier = undefined;
    this.#ready = undefined;
  }

  call(args: unknown[]): Promise<unknown> {
    // inside another jitted function it is an ordinary function: what it does is part of that capture
    if (CacheCollector.collecting) return (async () => this.#fn(...args))();
    const mine = this.#after(this.#last, args);
    this.#pending++;
    // not the result itself, which would be kept until the next call
    const ended = (): void => void this.#pending--;
    this.#last = mine.then(ended, ended);
    return mine;
  }
  async #after(last: Promise<unknown>, args: unknown[]): Promise<unknown> {
    const given = new Arguments(args);
    await last;
    return runAsync(this.#call(given, ASYNC));
  }
  sync(...args: unknown[]): unknown {
    if (CacheCollector.collecting) return this.#fn(...args);
    if (this.#pending > 0)
      throw new JitError("TinyJit.sync: an async call of this jit is still running; await it first");
    return runSync(this.#call(new Arguments(args), SYNC), "TinyJit.sync");
  }

  *#call(given: Arguments, driver: Driver): Step<unknown> {
    given.requireUnchanged();
    const [ready, earlier] = [this.#ready, this.#earlier];
    let value: unknown;
    if (env.JIT !== 0 && ready !== undefined && !isNews(ready, given))
      value = yield* this.#replay(yield* this.#roomy(ready, given), given, driver);
    else {
      const waiting = given.unrealized();
      if (waiting.length > 0) yield* driver.realize(waiting);
      const unchanged =
        env.JIT !== 0 && earlier !== undefined && mismatch(earlier.expected, given, () => true) === undefined;
      value = yield* unchanged ? this.#capture(earlier, given, driver) : this.#watch(given, driver);
    }
    this.#calls++;
    return value;
  }

  /** Runs the function as it is, and keeps what a capture is compared with. */
  *#watch(given: Arguments, driver: Driver): Step<unknown> {
    const trace = new Trace();
    const { tree, leaves } = yield* this.#traced(trace, given.values, given.tensors, driver);
    this.#earlier = {
      summary: yield* CallSummary.of(trace),
      expected: expectedOf(given),
      returned: tree,
      bound: given.bound,
    };
    const known = new Set<TensorLike>([...given.tensors, ...trace.assigned.keys()]);
    return unflatten(tree, (i) => {
      const r = leaves[i] as Returned;
      if (r.kind === "host") return r.read.plain;
      return known.has(r.tensor) ? r.tensor : like(r.tensor, r.tensor.lazydata);
    });
  }

  /** Runs the function under the collector, and computes all that it returned or assigned to. */
  *#traced(
    trace: Trace,
    args: readonly unknown[],
    inputs: readonly TensorLike[],
    driver: Driver,
  ): Step<{ tree: TreeDef; leaves: Returned[] }> {
    CacheCollector.start(trace);
    try {
      const value = yield* driver.result(CacheCollector.within(trace, () => this.#fn(...args)));
      const found: Leaf<Returned>[] = [];
      const tree = flatten(value, "the result", (x, path) => returnedLeaf(x, path, trace), found);
      const leaves = found.map((x) => x.leaf);
      const tensors = leaves.flatMap((r) => (r.kind === "tensor" ? [r.tensor] : []));
      const all = new Set([...tensors, ...trace.assigned.keys(), ...inputs]);
      const nodes = [...all].flatMap((t) => t.lazydata.parts);
      yield* driver.realize(nodes, (run) => CacheCollector.within(trace, run));
      return { tree, leaves };
    } finally {
      CacheCollector.finish(trace);
    }
  }

  *#capture(earlier: Earlier, given: Arguments, driver: Driver): Step<unknown> {
    const trace = new Trace(earlier.summary.nodes);
    const placeholders = given.tensors.map((t, i) => placeholderFor(t, given.paths[i] as string));
    const inputs = placeholders.map((s) => s.tensor);
    let done: { tree: TreeDef; leaves: Returned[] };
    try {
      done = yield* this.#traced(trace, given.with(inputs), inputs, driver);
    } finally {
      giveBack(placeholders, given.tensors);
    }
    requireSameResult(earlier.returned, done.tree);
    const summary = yield* CallSummary.of(trace);
    yield* requireInvariant(earlier.summary, summary, trace);
    const trusted = trust(earlier, this.#ready, summary, given.bound);
    const { captured, results } = yield* capture(trace, placeholders, done.leaves, given.bound);
    requireApart(captured, given);
    const outputs = outputsOf(captured, done.leaves, results);
    yield* seal(trace, placeholders, new Set([...outputs.values(), ...(captured.once?.kept ?? [])]));
    yield PAUSE;
    for (const { tensor } of captured.assigned) renew(tensor);
    this.#ready = {
      summary,
      expected: expectedOf(given),
      returned: done.tree,
      bound: given.bound,
      captured,
      results,
      replay: new Replay(captured),
      memory: stepTuning()?.resultMemory(),
      settings: [...trace.settings.values()],
      trusted,
    };
    this.#earlier = this.#ready;
    if (env.DEBUG >= 1) console.log(`JIT captured ${describe(captured, placeholders.length)}`);
    const made = new Results(captured, given, outputs);
    return unflatten(done.tree, (i) => made.leaf(results[i] as Result));
  }

  /** The capture with room for the values that variables have in this call. */
  *#roomy(ready: Ready, { bound }: Arguments): Step<Ready> {
    const { captured } = ready;
    if (captured.growth === undefined) return ready;
    const more = yield* captured.growth.grow(captured.slots, bound);
    if (more === undefined) return ready;
    const larger = { ...captured, ...more };
    this.#ready = { ...ready, captured: larger, replay: new Replay(larger) };
    return this.#ready;
  }

  *#replay(
    { captured, replay, memory, results, returned }: Ready,
    given: Arguments,
    driver: Driver,
  ): Step<unknown> {
    const outputs = new Map<number, Buffer>();
    const room: (of: Parameters<MakeResult>[0]) => Buffer = (of) =>
      memory?.(of) ?? new Buffer(of.device, of.size, of.dtype).ensureAllocated();
    // what has begun must not begin again where memory runs out: assigns would be made twice
    let failed: unknown;
    yield* driver.perform(function* () {
      if (failed !== undefined) throw failed;
      yield* prepare(captured, given);
      yield* captured.once?.renew() ?? [];
      captured.slots.forEach((slot, i) => {
        if (slot.kind === "output" && !outputs.has(i))
          outputs.set(i, room({ ...slot, size: evaluate(slot.size, given.bound) }));
      });
      const { draws, from, length } = captured.random;
      const { stream } = CacheCollector;
      for (const d of draws) d.redraw(stream.drawn + d.at - from);
      stream.drawn += length;
      try {
        yield* replay.run(buffersOf(given.tensors), outputs, given.bound);
      } catch (e) {
        failed = e;
        throw e;
      }
      for (const { tensor } of captured.assigned) renew(tensor);
      for (const i of captured.writtenInputs) renew(given.tensors[i] as TensorLike);
    });
    const made = new Results(captured, given, outputs);
    return unflatten(returned, (i) => made.leaf(results[i] as Result));
  }
}

const describe = ({ items, memory: m }: CapturedFunction, inputs: number): string =>
  `${items.length} kernels with ${inputs} inputs; ${m.buffers} buffers of ${m.apart} bytes share ${m.planned}`;

// ---- the public face ----

/** A function that is captured at its second call and replayed from the third on. */
export interface TinyJit<A extends unknown[], R> {
  (...args: A): Promise<Awaited<R>>;
  /** The same at once, for functions that are not async, on devices that can be waited for. */
  sync(...args: A): R;
  /** Forgets what was captured: the next call is call 0. */
  reset(): void;
  /** How often it was called since it was made or reset. */
  readonly cnt: number;
  /** What a replay executes, in order; empty until something was captured. */
  readonly jitCache: CapturedFunction["items"];
  /** Bytes with and without the memory planner. */
  readonly memory: MemoryReport | undefined;
}

interface TinyJitMaker {
  new <A extends unknown[], R>(fn: (...args: A) => R): TinyJit<A, R>;
  /** The decorator of an async method: every object gets a jit of its own. */
  <T extends object, A extends unknown[], R>(
    method: (this: T, ...args: A) => Promise<R>,
    context: ClassMethodDecoratorContext<T>,
  ): (this: T, ...args: A) => Promise<R>;
  <A extends unknown[], R>(fn: (...args: A) => R): TinyJit<A, R>;
}

type AnyMethod = (this: object, ...args: unknown[]) => unknown;

function decorate(method: AnyMethod, context: DecoratorContext): AnyMethod {
  if (context.kind !== "method" || context.static) {
    throw new JitError(
      `@TinyJit: ${String(context.name)} is a ${context.kind === "method" ? "static method" : context.kind}, expected a ` +
        "method of objects; for anything else write new TinyJit((x) => …)",
    );
  }
  const jits = new WeakMap<object, Jit>();
  return function (this: object, ...args: unknown[]): unknown {
    let jit = jits.get(this);
    if (jit === undefined) {
      jit = new Jit(method.bind(this) as Fn);
      jits.set(this, jit);
    }
    return jit.call(args);
  };
}

/**
 * Makes a function of tensors fast: its first call runs it, the second runs it and captures which kernels and
 * copies it executes, and from the third on these are executed again without the function, in one go. The
 * result is a promise; `sync` gives it at once.
 *
 * What is passed in may change from call to call: the values of tensors (not their shapes, types and
 * layouts), and the values of bound Variables. Whatever else the function sees is as it was when captured:
 * other arguments, plain numbers, closures. Memory is looked at anew: weights change by `assign`, inside or
 * outside. Random numbers go on.
 *
 * Results are new tensors at every call: nothing that you hold is overwritten. They carry no gradient. A
 * tensor that the function makes and does not return cannot be read afterwards. Values may be read on the
 * host inside only to return them: `return t.dot(u).data()` captures the copy, too; `item()` or a look into
 * the array is refused, as is all else that a replay would get wrong. In a page nothing else may compute
 * while an async function is captured.
 *
 * @example
 * const step = new TinyJit((x) => x.mul(2).sum());
 * for (const x of [[1, 2], [3, 4], [5, 6]]) {
 *   console.log(await (await step(new Tensor(x))).item()); // 6, 14, 22
 * }
 */
export const TinyJit = new Proxy(Jit, {
  apply: (_, __, [fn, context]: [Fn, DecoratorContext | undefined]) =>
    context === undefined ? new Jit(fn) : decorate(fn as unknown as AnyMethod, context),
}) as unknown as TinyJitMaker;

// ---- what is the same in every call ----

/** Whether the function has to run once more, to see that a value never seen before changes no kernel. */
function isNews(ready: Ready, given: Arguments): boolean {
  const problem = mismatch(ready.expected, given, (i) => ready.captured.readInputs.has(i));
  if (problem !== undefined) throw new JitError(`TinyJit: mismatch of inputs: ${problem}`);
  for (const { name, value, read } of ready.settings) {
    const now = read();
    if (Object.is(now, value)) continue;
    throw new JitError(
      `TinyJit: ${name} is ${now}, and was ${value} when the function was captured; use a jit for each, or reset() it`,
    );
  }
  for (const [v, n] of given.bound) if (ready.bound.get(v) !== n && !ready.trusted.has(v)) return true;
  return false;
}

/** Variables whose value may change: with another one before, the kernels were the same. */
function trust(
  earlier: Earlier,
  ready: Ready | undefined,
  summary: CallSummary,
  bound: ReadonlyMap<Variable, number>,
): Set<Variable> {
  const changed = [...bound.keys()].filter((v) => earlier.bound.get(v) !== bound.get(v));
  const same = isWithin(summary.keys, earlier.summary.keys);
  if (ready !== undefined && !same) {
    const names = changed.map((v) => `${v.name}=${earlier.bound.get(v)} and ${bound.get(v)}`).join(", ");
    throw new JitError(
      `TinyJit: the function computes other kernels for ${names}: it turns a symbolic size into a plain number ` +
        "(t.shape gives numbers), so that one capture cannot serve both; use the Variable itself",
    );
  }
  return new Set([...(ready?.trusted ?? []), ...(same ? changed : [])]);
}

function requireSameResult(before: TreeDef, now: TreeDef): void {
  const found = difference(before, now);
  if (found === undefined) return;
  throw new JitError(
    `TinyJit: ${found.path} was ${found.expected} in the call before and is ${found.got} now; a replay would keep it. ` +
      "Return tensors, and values that never change",
  );
}

function returnedLeaf(x: unknown, path: string, trace: Trace): { what: string; leaf: Returned } | undefined {
  const isObject = typeof x === "function" || (typeof x === "object" && x !== null);
  const read: HostRead | undefined = isObject ? trace.reads.get(x) : undefined;
  if (read !== undefined) return { what: "an array that was read", leaf: { kind: "host", read } };
  if (isTensor(x)) return { what: "a tensor", leaf: { kind: "tensor", tensor: x } };
  if (!isObject || isContainer(x)) return undefined;
  throw new JitError(
    `TinyJit: ${path} is ${typeof x === "function" ? "a function" : `a ${x.constructor?.name ?? "special object"}`}, ` +
      "which a replay cannot make anew; return tensors, in arrays and plain objects",
  );
}
