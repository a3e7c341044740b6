// CacheCollector: while a jitted function runs, everything that is executed is added here, and so is what the
// items do not show: which tensors were assigned to, which random numbers were drawn, which values were read
// on the host. A Trace (trace.ts) is the record of one call. invariants.ts and capture.ts decide what is made
// of it.

import { makeAsyncScope } from "#host";
import { env } from "../../env.ts";
import { JitError } from "../../errors.ts";
import { type Step, toposortSteps } from "../../helpers.ts";
import { type LazyBuffer, nodesMade } from "../../lazy/lazybuffer.ts";
import type { Buffer } from "../../runtime/buffer.ts";
import type { Runner } from "../../runtime/runner.ts";
import type { ScheduleItem } from "../../schedule/schedule.ts";
import type { Sint } from "../../shape/symbolic.ts";
import { callerLine } from "../caller.ts";
import { scopes } from "../scope.ts";
import type { Trace } from "./trace.ts";

const asyncScope = makeAsyncScope();

/** What the engine has to know of a Tensor. */
export interface TensorLike {
  lazydata: LazyBuffer;
  requiresGrad: boolean;
  context: unknown;
}

export interface TraceItem {
  /** undefined: only memory was wanted */
  readonly runner: Runner | undefined;
  readonly item: ScheduleItem;
  /**
   * whether the value was built by this call; what waited from before it is computed
   * once and does not belong to a capture
   */
  readonly isNew: boolean;
  /** `exec` of a runner: memory of the caller is read and written, whoever knows of it */
  readonly byHand?: true;
}

/** An assign to a tensor that was there before the call. */
export interface Assigned {
  readonly tensor: TensorLike;
  /**
   * the memory is the same as before; otherwise the tensor got other memory, which a replay cannot give it
   */
  inPlace: boolean;
  readonly line: string;
}

/**
 * A random draw: the host buffer that it is copied from, and how it gets the numbers
 * from another place of the stream.
 */
export interface Draw {
  readonly buffer: Buffer;
  readonly at: number;
  readonly redraw: (at: number) => void;
}
/** How many random numbers were drawn so far. */
interface DrawCount {
  drawn: number;
}

/** A setting as it was, and how to see what it is now. */
export interface Setting {
  readonly name: string;
  readonly value: unknown;
  readonly read: () => unknown;
}

/** Values that the function read on the host. It may return them, not look at them. */
export interface HostRead {
  readonly buffer: Buffer;
  readonly count: Sint;
  readonly decode: (bytes: Uint8Array, count: number) => ArrayBufferView;
  readonly plain: ArrayBufferView;
}

class Collector {
  /** where it cannot be told who does something: the jitted function that runs now */
  #only: Trace | undefined;
  readonly #running = new Map<unknown, Trace>();
  stream: DrawCount = { drawn: 0 };
  /**
   * how many assigns there were outside of jitted functions, and which was the
   * last one to a tensor or its memory
   */
  assigns = 0;
  readonly #changed = new WeakMap<object, number>();

  /** The jitted function that does what is being done. */
  get #trace(): Trace | undefined {
    if (this.#running.size === 0) return undefined;
    return asyncScope.exact ? this.#running.get(asyncScope.get()) : this.#only;
  }
  /** Whether this is inside a jitted function that runs or is captured. */
  get collecting(): boolean {
    return this.#trace !== undefined;
  }

  /** Whether pictures of lazy graphs are written. */
  get graphs(): boolean {
    return Number((this.#trace?.earlier && env.JITGRAPH) || env.GRAPH) > 0;
  }

  /** Nodes from this number on were made by the call that is running. */
  get firstNode(): number {
    return this.#trace?.firstNode ?? 0;
  }

  /** From here on what is done `within` this trace is recorded in it. */
  start(trace: Trace): void {
    trace.stream.from = this.stream.drawn;
    this.#running.set(trace.token, trace);
    this.#only = trace;
  }
  /** Runs something as a part of the jitted function. */
  within<T>(trace: Trace, fn: () => T): T {
    return asyncScope.run(trace.token, fn);
  }
  /** Ends the record, and returns what of it a replay would execute. */
  finish(trace: Trace): readonly TraceItem[] {
    trace.stream.to = this.stream.drawn;
    trace.endNode = nodesMade();
    this.#running.delete(trace.token);
    this.#only = undefined;
    if (this.#running.size === 0) asyncScope.rest();
    return trace.captured;
  }

  /** Called with every item that has run, before its nodes are marked. */
  add(runner: Runner | undefined, item: ScheduleItem): void {
    const trace = this.#trace;
    if (trace === undefined) return;
    const nodes = item.partOf === undefined ? item.lazies : [item.partOf];
    const isNew = nodes.length === 0 || nodes.some((lb) => lb.id >= trace.firstNode);
    this.push({ runner, item, isNew });
  }
  push(item: TraceItem): void {
    this.#trace?.items.push(item);
  }

  /** Called after an assign; `before` is what the tensor was. */
  assign(tensor: TensorLike, before: LazyBuffer): void {
    const trace = this.#trace;
    if (trace === undefined) {
      const memory = before.parts.flatMap((p) => (p.base.overwritten ? [p.base.buffer] : []));
      this.assigns++;
      for (const x of [tensor, ...memory]) this.#changed.set(x, this.assigns);
      return;
    }
    const now = tensor.lazydata.parts;
    const inPlace = before.parts.every((p, i) => p.base.successor === now[i]?.base);
    const known = trace.assigned.get(tensor);
    if (known !== undefined) known.inPlace &&= inPlace;
    // a tensor that the function made itself needs no record
    else if (before.parts.some((p) => p.base.id < trace.firstNode))
      trace.assigned.set(tensor, { tensor, inPlace, line: callerLine() });
  }

  /**
   * Whether somebody outside of jitted functions assigned to a tensor, or to memory, when
   * `assigns` had gone beyond this.
   */
  changedSince(assigns: number, x: object): boolean {
    return this.assigns > assigns && (this.#changed.get(x) ?? 0) > assigns;
  }

  draw(draw: Draw): void {
    this.#trace?.draws.push(draw);
  }

  /** What stands for an array that was read on the host: outside of a jitted function the array itself. */
  read<T extends ArrayBufferView>(
    what: string,
    buffer: Buffer,
    count: Sint,
    decode: (bytes: Uint8Array, count: number) => T,
    plain: T,
  ): T {
    const trace = this.#trace;
    if (trace === undefined) return plain;
    const guarded = guard(what, plain);
    trace.reads.set(guarded, { buffer, count, decode, plain });
    return guarded;
  }

  /** A setting that decides what the function computes: a capture holds only while it is as it was. */
  depend<T>(name: string, owner: object, read: () => T): T {
    const trace = this.#trace;
    trace?.settings.set(owner, { name, value: scopes.sync(trace.entry, read), read });
    return read();
  }

  /** For what changes state that a replay cannot change again. */
  forbid(what: string, instead: string): void {
    if (this.#trace === undefined) return;
    throw new JitError(`${what} inside a jitted function${at(callerLine())} cannot be replayed; ${instead}`);
  }

  /**
   * Checks what is about to be computed: a value that the previous call built from host reads must not be
   * used.
   */
  *look(outs: readonly LazyBuffer[]): Step<void> {
    const trace = this.#trace;
    const earlier = trace?.earlier;
    if (trace === undefined || earlier === undefined) return;
    const nodes = yield* toposortSteps(
      outs.flatMap((o) => o.parts).map((p) => p.base),
      (x) => (x.srcs ?? []).map((s) => s.base),
    );
    for (const b of nodes) {
      if (b.id >= trace.firstNode)
        for (const { base } of b.srcs ?? []) if (base.id < trace.firstNode) trace.older.add(base);
      if (b.srcs === undefined || b.id < earlier[0] || b.id >= earlier[1]) continue;
      if (b.op === "ASSIGN" || b.srcs.some((s) => s.base.realized !== undefined && !s.onlyHolds))
        throw new JitError(carried(`a tensor of shape [${b.shape}] (${b.op})`));
    }
  }
}

/**
 * Records what a jitted function does, or what somebody else does between `start` and `finish`: see
 * docs/guide/queues.md.
 */
export const CacheCollector = new Collector();

export const carried = (what: string): string =>
  `TinyJit: the function uses ${what} that an earlier call of it computed, so a replay would use that one value ` +
  "for ever. Keep such state in a tensor that exists before the first call and assign() to it, or return it and pass " +
  "it in; of gradients that add up, call zeroGrad() inside the function";

/** What may be asked of an array without learning a value; a promise asks for `then`. */
const FACTS = new Set<string | symbol>(["then", "length", "byteLength", "constructor", Symbol.toStringTag]);

/** A stand-in for an array: passing it on is allowed, reading an element throws. Node prints the array. */
function guard<T extends object>(what: string, array: T): T {
  const refuse = (): never => {
    throw new JitError(
      `${what}: a value was read on the host inside a jitted function${at(callerLine())}, where a replay would never see ` +
        "it change. Return the tensor and read it outside; or return what data() gave without looking into it",
    );
  };
  return new Proxy(array, {
    get: (target, key) => (FACTS.has(key) ? Reflect.get(target, key, target) : refuse()),
    set: refuse,
    ownKeys: refuse,
  });
}

export const at = (line: string): string => (line === "" ? "" : ` (at ${line})`);
