// When things ran on a GPU: pairs of events around them. One pair serves whoever waits for a single kernel
// (DEBUG=2, BEAM); with PROFILE=1 each launch has a pair of its own, read when it is done and handed to
// the profiler on the host's clock.

import { env } from "../../env.ts";
import type { Span } from "../../runtime/profile.ts";
import { activeProfiler, clock, profiler } from "../../runtime/profiling.ts";
import type { CudaContext } from "./context.ts";
import { CUDA } from "./driver.ts";

export type SpanFacts = Pick<Span, "track" | "name" | "kind" | "args">;
interface PendingSpan {
  readonly facts: SpanFacts;
  readonly start: number;
  readonly end: number;
  /** the events are used by others after this */
  readonly once: boolean;
}

const WITH_TIME = 0;
const NON_BLOCKING = 1;
/** Times are single floats of milliseconds since the origin: it moves before they lose the microseconds. */
const ORIGIN_MS = 10_000;
/** The clocks met somewhere in the time that a try took: the shortest says it best. */
const TRIES = 8;

export class Timing {
  readonly #context: CudaContext;
  #pair: readonly [number, number] | undefined;
  readonly #free: number[] = [];
  #pending: PendingSpan[] = [];
  /** an event, and when it was on the host's clock */
  #origin: { readonly event: number; readonly at: number } | undefined;
  #aside = 0;
  readonly #ms = new Float32Array(1);

  constructor(context: CudaContext) {
    this.#context = context;
  }

  get isOn(): boolean {
    return env.PROFILE !== 0;
  }

  event(): number {
    return this.#free.pop() ?? this.#context.make("cuEventCreate", WITH_TIME);
  }
  /** Events for timing one thing at a time. */
  pair(): readonly [number, number] {
    this.#pair ??= [this.event(), this.event()];
    return this.#pair;
  }
  seconds(start: number, end: number): number {
    this.#context.call("cuEventElapsedTime", this.#ms, start, end);
    return (this.#ms[0] as number) / 1000;
  }

  /** Runs what enqueues something, and notes when that something runs. */
  around(facts: SpanFacts, enqueue: () => void): void {
    const context = this.#context;
    this.#setOrigin();
    const [start, end] = [this.event(), this.event()];
    context.call("cuEventRecord", start, context.stream);
    this.enqueuing(facts.name, 1, enqueue);
    context.call("cuEventRecord", end, context.stream);
    this.#pending.push({ facts, start, end, once: true });
  }
  /** Notes what handing it over takes the host. */
  enqueuing(what: string, commands: number, enqueue: () => void): void {
    this.#setOrigin();
    const start = clock();
    enqueue();
    const name = `${this.#context.name} ${what}`;
    const span = { device: "host", track: "enqueue", kind: "enqueue" } as const;
    profiler.add({ ...span, name, start, end: clock(), args: { commands } });
  }
  /** For events that a graph records in every run of it. */
  recorded(facts: SpanFacts, start: number, end: number): void {
    this.#setOrigin();
    this.#pending.push({ facts, start, end, once: false });
  }

  /** Reads what is done. */
  collect(): void {
    if (this.#context.isDead) return;
    this.#pending = this.#pending.filter((p) => !this.#read(p));
  }
  #read({ facts, start, end, once }: PendingSpan): boolean {
    const context = this.#context;
    context.enter();
    if (context.driver.cuEventQuery(end) === CUDA.NOT_READY) return false;
    const { event, at } = this.#origin as { event: number; at: number };
    const time = (e: number): number => at + this.seconds(event, e) * 1e6;
    profiler.add({ ...facts, device: context.name, start: time(start), end: time(end) });
    if (once) this.#free.push(start, end);
    return true;
  }

  /** The origin is recorded on a stream of its own, which is idle: so the two clocks meet. */
  #setOrigin(): void {
    if (this.#pending.length >= 256) this.collect();
    const fresh = this.#origin !== undefined && clock() - this.#origin.at < ORIGIN_MS * 1000;
    if (fresh || this.#pending.length > 0) return;
    if (this.#origin === undefined) {
      this.#aside = this.#context.make("cuStreamCreate", NON_BLOCKING);
      activeProfiler()?.onCollect(() => this.collect());
    } else this.#free.push(this.#origin.event);
    let best = Infinity;
    for (let i = 0; i < TRIES; i++) {
      const event = this.event();
      const before = clock();
      this.#context.call("cuEventRecord", event, this.#aside);
      this.#context.call("cuEventSynchronize", event);
      const took = clock() - before;
      if (took >= best) {
        this.#free.push(event);
        continue;
      }
      if (i > 0) this.#free.push((this.#origin as { event: number }).event);
      this.#origin = { event, at: before + took / 2 };
      best = took;
    }
  }
}
