// Where the time goes: a table by kernel and, for a model, by layer. In: a function that computes something.
// Out: what ran, by the device's own clock. A kernel belongs to the layer that made its largest reduction, or
// else its result: fused kernels have work of several layers. Nodes of the graph are numbered, so a layer is
// a range of numbers.

import { env, withEnv } from "../env.ts";
import { ArgumentError } from "../errors.ts";
import { inspect } from "../helpers.ts";
import { nodesMade } from "../lazy/lazybuffer.ts";
import type { ScheduledKernel, Span } from "../runtime/profile.ts";
import { activeProfiler, profiler } from "../runtime/profiling.ts";
import { Device } from "../runtime/registry.ts";
import { Tensor } from "../tensor/tensor.ts";
import { checkOptions, requireModel } from "./options.ts";
import { layersOf, table, type WatchedLayer, watching } from "./watch.ts";

export interface ProfileOptions {
  /** a model whose layers get a table of their own */
  readonly model?: unknown;
  /** how often the function runs before it is measured, so that kernels are compiled; default: 1 */
  readonly warmup?: number;
  /** prints the tables; default: true */
  readonly print?: boolean;
}
export interface ProfileRow {
  readonly name: string;
  readonly calls: number;
  /** in all calls together */
  readonly milliseconds: number;
  readonly flop: number;
  readonly bytes: number;
}

/**
 * What nn.profile gives: rows by kernel and by layer, longest first, and what the function returned. It
 * prints as tables.
 * @example
 * (await nn.profile(() => Tensor.ones(4).add(1).realize(), { print: false })) instanceof nn.ProfileReport // => true
 */
export class ProfileReport<R = unknown> {
  readonly result: R;
  readonly kernels: readonly ProfileRow[];
  /** empty without a model */
  readonly layers: readonly ProfileRow[];
  /** from the call of the function to the end of the last kernel */
  readonly wallMilliseconds: number;

  constructor(result: R, kernels: readonly ProfileRow[], layers: readonly ProfileRow[], wall: number) {
    this.result = result;
    this.kernels = kernels;
    this.layers = layers;
    this.wallMilliseconds = wall;
  }
  /** Of all kernels together. */
  get milliseconds(): number {
    return this.kernels.reduce((sum, k) => sum + k.milliseconds, 0);
  }
  /** The tables as a text. */
  toString(): string {
    const calls = this.kernels.reduce((sum, k) => sum + k.calls, 0);
    if (calls === 0) {
      return "no kernel was seen; if a TinyJit has captured the function, call its reset(), and give { warmup: 3 }";
    }
    const parts = [tableOf("kernel", this.kernels, this.milliseconds)];
    if (this.layers.length > 0) parts.push(tableOf("layer", this.layers, this.milliseconds));
    parts.push(
      `${calls} kernels took ${this.milliseconds.toFixed(3)} ms of ${this.wallMilliseconds.toFixed(3)} ms`,
    );
    return parts.join("\n\n");
  }
  [inspect](): string {
    return this.toString();
  }
}

function tableOf(what: string, rows: readonly ProfileRow[], all: number): string {
  const rate = (n: number, ms: number): string => (ms > 0 ? (n / ms / 1e6).toFixed(2) : "");
  const lines = rows.map((r) => [
    r.name,
    String(r.calls),
    r.milliseconds.toFixed(3),
    `${all > 0 ? ((100 * r.milliseconds) / all).toFixed(1) : "0.0"}`,
    rate(r.flop, r.milliseconds),
    rate(r.bytes, r.milliseconds),
  ]);
  return table([what, "calls", "ms", "%", "GFLOPS", "GB/s"], lines);
}

// ---- by layer ----

/** Nodes with numbers from `from` up to `to` were made for a layer. */
interface LayerNodes {
  readonly from: number;
  readonly to: number;
  readonly name: string;
}

/** Notes which nodes each layer makes, in the forward and in the backward pass. */
class Layers {
  readonly #parts: LayerNodes[] = [];
  readonly #known = new WeakSet<object>();

  readonly around = (
    { path, type }: WatchedLayer,
    args: readonly unknown[],
    call: () => unknown,
  ): unknown => {
    const name = path === "" ? `(${type})` : `${path} (${type})`;
    const result = this.#note(name, call);
    const inputs = new Set(tensorsIn(args));
    for (const t of tensorsIn(result)) this.#follow(t, `${name}, backward`, inputs);
    return result;
  };
  #note<T>(name: string, call: () => T): T {
    const from = nodesMade();
    const result = call();
    // inner layers come first in the list, so that they are found first
    this.#parts.push({ from, to: nodesMade(), name });
    return result;
  }
  /** The records of gradients that a layer made note what they make. */
  #follow(root: Tensor, name: string, inputs: ReadonlySet<Tensor>): void {
    const open = [root];
    for (let t = open.pop(); t !== undefined; t = open.pop()) {
      const { context } = t;
      if (context === undefined || inputs.has(t) || this.#known.has(context)) continue;
      const noted: typeof context = {
        parents: context.parents,
        run: (...args) => this.#note(name, () => context.run(...args)),
      };
      t.context = noted;
      this.#known.add(noted);
      open.push(...context.parents);
    }
  }
  nameOf(id: number): string {
    return this.#parts.find((p) => id >= p.from && id < p.to)?.name ?? "(outside of layers)";
  }
}
const tensorsIn = (x: unknown): Tensor[] => {
  if (x instanceof Tensor) return [x];
  return typeof x === "object" && x !== null ? Object.values(x).flatMap(tensorsIn) : [];
};

// ---- measuring ----

function rowsOf(spans: readonly Span[], nameOf: (span: Span, i: number) => string): ProfileRow[] {
  const rows = new Map<string, ProfileRow>();
  spans.forEach((span, i) => {
    const name = nameOf(span, i);
    const old = rows.get(name) ?? { name, calls: 0, milliseconds: 0, flop: 0, bytes: 0 };
    rows.set(name, {
      name,
      calls: old.calls + 1,
      milliseconds: old.milliseconds + (span.end - span.start) / 1000,
      flop: old.flop + Number(span.args.FLOP ?? 0),
      bytes: old.bytes + Number(span.args.bytes ?? 0),
    });
  });
  return [...rows.values()].sort((a, b) => b.milliseconds - a.milliseconds);
}

/** The kernels of each device run in the order of the schedule; where the numbers differ, a jit replayed. */
function layerNames(spans: readonly Span[], items: readonly ScheduledKernel[], layers: Layers): string[] {
  const names = new Map<Span, string>();
  for (const device of new Set(spans.map((s) => s.device))) {
    const own = spans.filter((s) => s.device === device);
    const made = items.filter((i) => i.device === device);
    own.forEach((s, i) => {
      const item = own.length === made.length ? made[i] : undefined;
      names.set(s, item === undefined ? "(replayed or in a loop)" : layers.nameOf(item.node));
    });
  }
  return spans.map((s) => names.get(s) as string);
}

/**
 * Runs a function and prints where the time went: by kernel and, with `model`, by layer. What the function
 * returns is realised, so that it counts. It runs once before, unmeasured, so that kernels are compiled.
 * @example
 * const model = new nn.Linear(8, 4);
 * const { layers } = await nn.profile(() => model.forward(Tensor.ones(2, 8)), { model, print: false });
 * layers.map((l) => l.name) // => ["(Linear)"]
 */
export async function profile<R>(
  fn: () => R,
  options: ProfileOptions = {},
): Promise<ProfileReport<Awaited<R>>> {
  const { model, warmup = 1, print = true } = checkOptions("profile", options, ["model", "warmup", "print"]);
  if (typeof fn !== "function") {
    throw new ArgumentError(
      `profile: got ${typeof fn}, expected a function: nn.profile(() => model.forward(x))`,
    );
  }
  if (model !== undefined) requireModel("profile", model);
  if (!Number.isInteger(warmup) || warmup < 0) {
    throw new ArgumentError(`profile: warmup is ${String(warmup)}, expected a number of runs`);
  }
  const whole = async (): Promise<Awaited<R>> => {
    const result = await fn();
    await Tensor.realize(...tensorsIn(result));
    await Promise.all(openDevices().map((name) => Device.get(name).synchronize()));
    return result;
  };
  const layers = new Layers();
  const items: ScheduledKernel[] = [];
  const wasOn = env.PROFILE;
  return withEnv({ PROFILE: 1 }, async () => {
    // a page loads what notes spans with the first kernel that runs; a jit captures how it is timed, too
    await Tensor.full([1], warmup).contiguous().realize();
    for (let i = 0; i < warmup; i++) await whole();
    const before = profiler.spans.length;
    const stop = activeProfiler()?.onSchedule((list) => void items.push(...list));
    const start = performance.now();
    const result = await watching(model === undefined ? [] : layersOf(model), layers.around, whole);
    const wall = performance.now() - start;
    stop?.();
    const spans = profiler.spans
      .slice(before)
      .filter((s) => s.kind === "kernel")
      .sort((a, b) => a.start - b.start);
    if (!wasOn) profiler.reset();
    const names = model === undefined ? [] : layerNames(spans, items, layers);
    const byLayer = model === undefined ? [] : rowsOf(spans, (_, i) => names[i] as string);
    const report = new ProfileReport(
      result,
      rowsOf(spans, (s) => s.name),
      byLayer,
      wall,
    );
    if (print) console.log(report.toString());
    return report;
  });
}
const openDevices = (): readonly string[] =>
  Device.kinds.filter((kind) => Device.isOpen(kind) && Device.computes(kind));
