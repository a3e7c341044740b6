// When things ran on a GPU: pairs of events around them. One pair serves whoever waits for a single kernel (DEBUG=2, BEAM);
// with PROFILE=1 each launch has a pair of its own, read when it is done and handed to the profiler on the host's clock.

import { env } from "../../env.ts";
import { clock, profiler, type Span } from "../../runtime/profile.ts";
import type { CudaContext } from "./context.ts";
import { CUDA } from "./driver.ts";

export type SpanFacts = Pick<Span, "track" | "name" | "kind" | "args">;
interface Pending {
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

export class Timing {
  readonly #context: CudaContext;
  #pair: readonly [number, number] | undefined;
  readonly #free: number[] = [];
  #pending: Pending[] = [];
  /** an event, and when it was on the host's clock */
  #origin: { readonly event: number; at: number } | undefined;
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
    const began = clock();
    enqueue();
    const args = { commands: 1 };
    const name = `${context.name} ${facts.name}`;
    profiler.add({
      device: "host",
      track: "enqueue",
      name,
      kind: "enqueue",
      start: began,
      end: clock(),
      args,
    });
    context.call("cuEventRecord", end, context.stream);
    this.#pending.push({ facts, start, end, once: true });
  }
  /** The same for events that a graph records in every run of it. */
  recorded(facts: SpanFacts, start: number, end: number): void {
    this.#setOrigin();
    this.#pending.push({ facts, start, end, once: false });
  }

  /** Reads what is done. */
  collect(): void {
    if (this.#context.isDead) return;
    this.#pending = this.#pending.filter((p) => !this.#read(p));
  }
  #read({ facts, start, end, once }: Pending): boolean {
    const context = this.#context;
    context.enter();
    if (context.driver.cuEventQuery(end) === CUDA.NOT_READY) return false;
    const { event, at } = this.#origin as { event: number; at: number };
    const time = (e: number): number => at + this.seconds(event, e) * 1e6;
    profiler.add({ ...facts, device: context.name, start: time(start), end: time(end) });
    if (once) this.#free.push(start, end);
    return true;
  }

  /** The origin is recorded on a stream of its own, which is idle: so the two clocks meet at once. */
  #setOrigin(): void {
    if (this.#pending.length >= 256) this.collect();
    const fresh = this.#origin !== undefined && clock() - this.#origin.at < ORIGIN_MS * 1000;
    if (fresh || this.#pending.length > 0) return;
    if (this.#origin === undefined) {
      this.#aside = this.#context.make("cuStreamCreate", NON_BLOCKING);
      this.#origin = { event: this.event(), at: 0 };
      profiler.onCollect(() => this.collect());
    }
    this.#context.call("cuEventRecord", this.#origin.event, this.#aside);
    this.#context.call("cuEventSynchronize", this.#origin.event);
    this.#origin.at = clock();
  }
}
