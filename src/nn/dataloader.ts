// DataLoader: data in batches. In: Tensors with a row for each sample, arrays of samples, objects with
// `length` and `get`, iterables and streams, modules that worker threads load (sampleworkers.ts). Out:
// batches of Tensors, in an order that a seed decides; while a batch is used, the next ones are made.
// collate.ts says how samples become a batch.

import { checker } from "../arguments.ts";
import type { TypedArray } from "../dtype.ts";
import { ArgumentError, ShapeError } from "../errors.ts";
import { isPlain, range } from "../helpers.ts";
import { state as stream } from "../tensor/random/threefry.ts";
import { showShape } from "../tensor/show.ts";
import { Tensor } from "../tensor/tensor.ts";
import { Collator, isTypedArray, type Types } from "./collate.ts";
import { ProgressBar } from "./progress.ts";
import { SampleWorkers } from "./sampleworkers.ts";

/** Data whose samples are read by number, as a Dataset of torch; `get` may be async. */
export interface MapDataset<S = unknown> {
  readonly length: number;
  get(index: number): S | Promise<S>;
}
/** Rows of Tensors or typed arrays: all have the same number of them. */
export type Columns = Tensor | readonly Tensor[] | { readonly [key: string]: Columns };
type Stream<S> = Iterable<S> | AsyncIterable<S>;
/**
 * A URL or a string is the address of a module that exports an array, a MapDataset, or a function that makes
 * one.
 */
export type LoaderData<S = unknown> =
  | Columns
  | readonly S[]
  | MapDataset<S>
  | Stream<S>
  | (() => Stream<S>)
  | URL
  | string;

/** Kinds of the options; sourceOf checks the data itself. */
const checkLoader = checker<[unknown, DataLoaderOptions?]>(
  "DataLoader",
  "data:z {batchSize:n,shuffle:b,seed:n,dropLast:b,transform:f,collate:f,workers:n,prefetch:n,args:z,dtype:dmr,device:s,progress:bs}?",
);

/** For samples `S`, which `transform` turns into `R`, and batches `B`. */
export interface DataLoaderOptions<S = unknown, R = S, B = unknown> {
  /** default: 1 */
  readonly batchSize?: number;
  /** a new order in every pass; default: false */
  readonly shuffle?: boolean;
  /** decides the orders; default: that of Tensor.manualSeed */
  readonly seed?: number;
  /** leave out the last samples if they do not fill a batch; default: false */
  readonly dropLast?: boolean;
  /** changes a sample before it is put into a batch; may be async */
  readonly transform?: (sample: S, index: number) => R | Promise<R>;
  /** makes a batch out of samples, instead of the usual way */
  readonly collate?: (samples: R[]) => B | Promise<B>;
  /**
   * for a module: how many threads read its samples; for samples in this thread: how many are read and
   * transformed at the same time, if that is async; default: 1
   */
  readonly workers?: number;
  /** how many batches are made ahead of the one in use; default: 2, or the number of threads if it is more */
  readonly prefetch?: number;
  /** what the function that a module exports is called with; it is copied to each thread */
  readonly args?: unknown;
  /** the type of numbers in samples: one for all, or one for each leaf */
  readonly dtype?: Types;
  /** where batches are made; default: Device.DEFAULT, or where the given Tensors are */
  readonly device?: string;
  /** a bar in the terminal, with this label if it is a text; default: false */
  readonly progress?: boolean | string;
}

// ---- where samples come from ----

type SampleSource =
  | { readonly kind: "columns"; readonly length: number; readonly data: Columns }
  | {
      readonly kind: "samples";
      readonly length: number;
      get(index: number): unknown;
      readonly list?: readonly unknown[];
    }
  | { readonly kind: "stream"; readonly length: undefined; open(): Stream<unknown> }
  | { readonly kind: "module"; length: number | undefined; readonly address: string };

const leavesOf = (x: unknown): Tensor[] => {
  if (x instanceof Tensor) return [x];
  return typeof x === "object" && x !== null && !isTypedArray(x) ? Object.values(x).flatMap(leavesOf) : [];
};
const isColumns = (x: unknown): x is Columns =>
  x instanceof Tensor ||
  (Array.isArray(x) && x.length > 0 && x.every((t) => t instanceof Tensor)) ||
  (isPlain(x) && Object.keys(x).length > 0 && Object.values(x).every(isColumns));
const hasGet = (x: unknown): x is MapDataset =>
  typeof (x as Partial<MapDataset>)?.get === "function" &&
  Number.isInteger((x as Partial<MapDataset>).length) &&
  (x as MapDataset).length >= 0;
const isStream = (x: unknown): x is Stream<unknown> =>
  typeof x === "object" && x !== null && (Symbol.iterator in x || Symbol.asyncIterator in x);

function sourceOf(data: unknown): SampleSource {
  if (typeof data === "string" || data instanceof URL)
    return { kind: "module", length: undefined, address: String(data) };
  if (isColumns(data)) return { kind: "columns", length: rowsOf(data), data };
  if (Array.isArray(data) || isTypedArray(data)) {
    const list = data as readonly unknown[];
    return { kind: "samples", length: list.length, get: (i) => list[i], list };
  }
  if (hasGet(data)) return { kind: "samples", length: data.length, get: (i) => data.get(i) };
  if (typeof data === "function")
    return { kind: "stream", length: undefined, open: data as () => Stream<unknown> };
  if (isStream(data)) return { kind: "stream", length: undefined, open: () => data };
  const got =
    data === null
      ? "null"
      : typeof data === "object"
        ? `a ${data?.constructor?.name ?? "object"}`
        : typeof data;
  throw new ArgumentError(
    `DataLoader: the data is ${got}; expected Tensors such as { x, y }, an array of samples, an object with length and get(i), an iterable, or the URL of a module`,
  );
}
function collated<B>(batch: B): B {
  if (batch !== undefined) return batch;
  throw new ArgumentError("DataLoader: collate returned undefined, expected a batch; return it");
}
/** An option that would do nothing is refused. */
function checkWorkers(source: SampleSource, workers: number, args: unknown): void {
  if (source.kind === "module" && workers === 0)
    throw new ArgumentError(
      "DataLoader: workers is 0, and the module of a dataset is loaded by workers only",
    );
  if (source.kind !== "module" && args !== undefined)
    throw new ArgumentError("DataLoader: args are for the URL of a module, and the data is here already");
  if (workers > 1 && (source.kind === "columns" || source.kind === "stream")) {
    const what = source.kind === "columns" ? "rows of Tensors are in memory" : "an iterable is read in order";
    throw new ArgumentError(
      `DataLoader: workers is ${workers}, but ${what}; leave it out, or give the URL of a module with a dataset`,
    );
  }
}
function rowsOf(data: Columns): number {
  const leaves = leavesOf(data);
  const counts = leaves.map((t) => t.shape[0]);
  if (counts.every((n) => n !== undefined && n === counts[0])) return counts[0] as number;
  throw new ShapeError(
    `DataLoader: the tensors have shapes ${leaves.map((t) => showShape(t.shape)).join(", ")}; ` +
      "expected the same first dim in all, a row for each sample. Samples in an array? Use Tensor.stack",
  );
}
/** The same structure with other tensors. */
function mapColumns(x: Columns, f: (t: Tensor) => Tensor): unknown {
  if (x instanceof Tensor) return f(x);
  if (Array.isArray(x)) return x.map(f);
  return Object.fromEntries(Object.entries(x).map(([k, v]) => [k, mapColumns(v as Columns, f)]));
}

// ---- orders ----

/** Numbers below 2^32 that depend on the seed and the pass only (splitmix32). */
function generator(seed: number, epoch: number): () => number {
  let s = (seed ^ Math.imul(epoch + 1, 0x9e3779b9)) >>> 0;
  return () => {
    s = (s + 0x9e3779b9) >>> 0;
    let z = s;
    z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
    return (z ^ (z >>> 16)) >>> 0;
  };
}
function shuffled(n: number, seed: number, epoch: number): Int32Array {
  const order = Int32Array.from({ length: n }, (_, i) => i);
  const next = generator(seed, epoch);
  for (let i = n - 1; i > 0; i--) {
    const j = Math.floor((next() / 2 ** 32) * (i + 1));
    const x = order[i] as number;
    order[i] = order[j] as number;
    order[j] = x;
  }
  return order;
}

// ---- the loader ----

type Numeric = Tensor | number | bigint | boolean | TypedArray;
type NestedNumbers = number | readonly NestedNumbers[];
/** What samples of a type become in a batch. */
export type Collated<S> = unknown extends S
  ? S
  : S extends Numeric
    ? Tensor
    : S extends string
      ? string[]
      : S extends readonly NestedNumbers[]
        ? number extends S["length"]
          ? Tensor
          : { -readonly [K in keyof S]: Collated<S[K]> }
        : S extends object
          ? { -readonly [K in keyof S]: Collated<S[K]> }
          : S[];
/** The type of a sample of the data. */
type SampleOf<D> = D extends string | URL
  ? unknown
  : D extends readonly (infer S)[]
    ? S
    : D extends { get(index: number): infer R }
      ? Awaited<R>
      : D extends Stream<infer S> | (() => Stream<infer S>)
        ? S
        : unknown;
/** A batch of a structure of Tensors has the same structure. */
type BatchOf<D, R> = D extends Columns ? D : Collated<R>;
/** The options of a loader of any samples: a loader is used by its batches alone. */
type KeptOptions<B> = Omit<DataLoaderOptions, "transform" | "collate"> & {
  readonly transform?: (sample: never, index: number) => unknown;
  readonly collate?: (samples: never[]) => B | Promise<B>;
};

/**
 * Data in batches: each pass of a loop goes through it once, in a new order if it shuffles. Data is Tensors
 * with a row for each sample (`x`, `[x, y]` or `{ x, y }`), an array of samples, an object with `length` and
 * `get(i)`, an iterable (for several passes, a function that opens one), or the URL of a module that exports
 * a dataset, which worker threads load.
 * @example
 * const data = { x: Tensor.arange(10).reshape(5, 2), y: Tensor.arange(5) };
 * const loader = new nn.DataLoader(data, { batchSize: 2, shuffle: true, seed: 1 });
 * const sizes = [];
 * for await (const { x, y } of loader) sizes.push([x.shape[0], y.shape[0]]);
 * sizes // => [[2, 2], [2, 2], [1, 1]]
 */
export class DataLoader<D = unknown, R = SampleOf<D>, B = BatchOf<D, R>> implements AsyncIterable<B> {
  readonly #source: SampleSource;
  readonly #options: KeptOptions<B>;
  readonly #collator: Collator;
  readonly #seed: number;
  #epoch = 0;

  constructor(data: D & LoaderData, options: DataLoaderOptions<SampleOf<D>, R, B> = {}) {
    const [, checked = {}] = checkLoader([data, options]);
    this.#options = checked as KeptOptions<B>;
    const { batchSize = 1, workers = 1, prefetch = 2, shuffle = false, seed } = checked;
    for (const [name, n, least] of [
      ["batchSize", batchSize, 1],
      ["workers", workers, 0],
      ["prefetch", prefetch, 0],
    ] as const) {
      if (!Number.isInteger(n) || n < least) {
        throw new ArgumentError(`DataLoader: ${name} is ${String(n)}, expected an integer >= ${least}`);
      }
    }
    if (seed !== undefined && !Number.isInteger(seed)) {
      throw new ArgumentError(`DataLoader: seed is ${String(seed)}, expected an integer`);
    }
    this.#source = sourceOf(data);
    checkWorkers(this.#source, workers, checked.args);
    if (this.#source.kind === "stream" && shuffle) {
      throw new ArgumentError(
        "DataLoader: an iterable cannot be shuffled; give an array, or length and get(i)",
      );
    }
    if (this.#source.kind === "columns" && (checked.transform ?? checked.collate) !== undefined) {
      throw new ArgumentError("DataLoader: Tensors are taken by rows; change the batches, or give samples");
    }
    if (this.#source.kind === "columns" && checked.dtype !== undefined) {
      throw new ArgumentError(
        "DataLoader: dtype is for numbers in samples; give Tensors of the type that you want",
      );
    }
    this.#collator = new Collator(checked.dtype, checked.device);
    this.#seed = seed ?? (stream.key[0] ^ stream.key[1]) | 0;
  }

  /** How many batches a pass has; undefined for an iterable, and for a module before its first batch. */
  get length(): number | undefined {
    const n = this.#source.length;
    const { batchSize = 1, dropLast = false } = this.#options;
    return n === undefined ? undefined : dropLast ? Math.floor(n / batchSize) : Math.ceil(n / batchSize);
  }
  /** How many passes have begun; it decides the order of the next one. */
  get epoch(): number {
    return this.#epoch;
  }
  /** What `nn.save` keeps: a resumed training goes on with the order of the next pass. */
  stateDict(): { readonly epoch: number; readonly seed: number } {
    return { epoch: this.#epoch, seed: this.#seed };
  }
  /** Goes on with the pass after the saved ones. The seed must be the same. */
  loadStateDict(state: { readonly epoch: number; readonly seed: number }): void {
    if (!Number.isSafeInteger(state?.epoch) || state.epoch < 0) {
      throw new ArgumentError("DataLoader: the state is not one of stateDict(): { epoch, seed }");
    }
    if (state.seed !== this.#seed) {
      throw new ArgumentError(`DataLoader: the saved seed is ${state.seed}, this loader has ${this.#seed}`);
    }
    this.#epoch = state.epoch;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<B, void, undefined> {
    const { progress = false } = this.#options;
    // threads work ahead themselves
    const prefetch = this.#source.kind === "module" ? 0 : (this.#options.prefetch ?? 2);
    const total = this.length;
    const bar =
      progress === false
        ? undefined
        : new ProgressBar({
            ...(total !== undefined && { total }),
            ...(typeof progress === "string" && { label: progress }),
          });
    const made = this.#batches(this.#epoch++);
    const queue: Promise<IteratorResult<B>>[] = [];
    const fill = (): void => {
      while (queue.length <= prefetch) {
        const next = made.next();
        next.catch(() => {}); // whoever awaits it gets the error
        queue.push(next);
      }
    };
    try {
      for (;;) {
        fill();
        const { value, done } = await (queue.shift() as Promise<IteratorResult<B>>);
        if (done === true) return;
        yield value;
        bar?.step();
      }
    } finally {
      bar?.end();
      // not awaited: a loop that is left must not wait for a slow source
      made.return(undefined).catch(() => {});
    }
  }

  #batches(epoch: number): AsyncGenerator<B, void, undefined> {
    const source = this.#source;
    if (source.kind === "columns") return this.#columnBatches(source.data, source.length, epoch);
    if (source.kind === "samples") return this.#sampleBatches(this.#numbered(source, epoch));
    if (source.kind === "module") return this.#sampleBatches(this.#fromWorkers(source, epoch));
    const samples = source.open();
    if (isStream(samples)) return this.#sampleBatches(this.#streamed(samples));
    throw new ArgumentError(
      `DataLoader: the function returned ${typeof samples}, expected an iterable of samples; write function* () { yield sample; }`,
    );
  }
  async *#columnBatches(data: Columns, n: number, epoch: number): AsyncGenerator<B, void, undefined> {
    const { batchSize = 1, shuffle = false, dropLast = false, device } = this.#options;
    const order = shuffle ? shuffled(n, this.#seed, epoch) : undefined;
    for (let start = 0; start < n; start += batchSize) {
      const size = Math.min(batchSize, n - start);
      if (size < batchSize && dropLast) return;
      const rows = order?.slice(start, start + size);
      const pick = (t: Tensor): Tensor => {
        const part =
          rows === undefined
            ? t.detach().narrow(0, start, size)
            : t.detach().indexSelect(0, new Tensor(rows, { device: t.device }));
        return (device === undefined ? part : part.to(device)).contiguous();
      };
      const batch = mapColumns(data, pick);
      await Tensor.realize(...leavesOf(batch));
      yield batch as B;
    }
  }

  /** Samples one by one, as promises: several may be on their way. */
  *#numbered(
    source: SampleSource & { readonly kind: "samples" },
    epoch: number,
  ): Generator<Promise<unknown>> {
    const { shuffle = false, transform, collate, dtype } = this.#options;
    const n = source.length;
    // all of them are here: the type of a leaf is that of all its values
    if (
      epoch === 0 &&
      source.list !== undefined &&
      transform === undefined &&
      (collate ?? dtype) === undefined
    ) {
      this.#collator.learn(source.list);
    }
    const order = shuffle ? shuffled(n, this.#seed, epoch) : range(n);
    for (const i of order) yield this.#sample(source.get(i), i);
  }
  async #sample(x: unknown, index: number): Promise<unknown> {
    const { transform } = this.#options;
    const sample = await x;
    const changed = transform === undefined ? sample : await transform(sample as never, index);
    if (changed !== undefined) return changed;
    const who = sample === undefined ? "the data has" : "transform returned";
    throw new ArgumentError(
      `DataLoader: ${who} undefined for sample ${index}, expected a value; return the sample`,
    );
  }
  async *#streamed(samples: Stream<unknown>): AsyncGenerator<unknown, void, undefined> {
    let i = 0;
    for await (const x of samples) yield await this.#sample(x, i++);
  }

  /** Samples in their order. At most this many batches of them are asked for at once. */
  async *#fromWorkers(
    source: SampleSource & { readonly kind: "module" },
    epoch: number,
  ): AsyncGenerator<unknown, void, undefined> {
    const { batchSize = 1, shuffle = false, dropLast = false, workers = 1, device, args } = this.#options;
    const { prefetch = Math.max(2, workers) } = this.#options;
    const pool = new SampleWorkers(source.address, args, workers, device);
    try {
      const n = await pool.length();
      source.length = n;
      const order = shuffle ? shuffled(n, this.#seed, epoch) : range(n);
      const end = dropLast ? n - (n % batchSize) : n;
      const waiting: { readonly indexes: readonly number[]; readonly samples: Promise<unknown[]> }[] = [];
      for (let asked = 0; ; ) {
        for (; asked < end && waiting.length <= prefetch; asked += batchSize) {
          const indexes = [...order.slice(asked, Math.min(end, asked + batchSize))];
          const samples = pool.samples(indexes);
          samples.catch(() => {}); // whoever awaits it gets the error
          waiting.push({ indexes, samples });
        }
        const next = waiting.shift();
        if (next === undefined) return;
        const samples = await next.samples;
        for (const [at, x] of samples.entries()) yield await this.#sample(x, next.indexes[at] as number);
      }
    } finally {
      pool.end();
    }
  }

  async *#sampleBatches(
    samples: Generator<Promise<unknown>> | AsyncGenerator<unknown>,
  ): AsyncGenerator<B, void, undefined> {
    const { batchSize = 1, dropLast = false, collate, workers = 1 } = this.#options;
    let batch: unknown[] = [];
    const made = async (): Promise<B> => {
      const list = batch;
      batch = [];
      if (collate !== undefined) return collated(await collate(list as never[]));
      const all = this.#collator.batch(list);
      await Tensor.realize(...leavesOf(all));
      return all as B;
    };
    for await (const x of ahead(samples, Math.max(1, workers))) {
      batch.push(x);
      if (batch.length === batchSize) yield await made();
    }
    if (batch.length > 0 && !dropLast) yield await made();
  }
}

// not in the types: `for (… of loader)` is an error of TypeScript, and here one that says what to write
Object.defineProperty(DataLoader.prototype, Symbol.iterator, {
  value(): never {
    throw new ArgumentError(
      "DataLoader: batches are made asynchronously; write for await (const batch of loader)",
    );
  },
});

/** The samples in their order, with up to `most` of them on their way at once. */
async function* ahead(
  samples: Generator<Promise<unknown>> | AsyncGenerator<unknown>,
  most: number,
): AsyncGenerator<unknown, void, undefined> {
  if (Symbol.asyncIterator in samples) {
    yield* samples;
    return;
  }
  const waiting: Promise<unknown>[] = [];
  for (const x of samples) {
    x.catch(() => {}); // whoever awaits it gets the error
    waiting.push(x);
    if (waiting.length >= most) yield await waiting.shift();
  }
  for (const x of waiting) yield await x;
}
