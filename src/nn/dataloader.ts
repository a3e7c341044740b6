// DataLoader: data in batches. In: Tensors with a row for each sample, arrays of samples, objects with
// `length` and `get`, iterables and streams. Out: batches of Tensors, in an order that a seed decides; while
// a batch is used, the next ones are made. collate.ts says how samples become a batch.

import type { TypedArray } from "../dtype.ts";
import { ArgumentError, ShapeError } from "../errors.ts";
import { range } from "../helpers.ts";
import { state as stream } from "../tensor/random/threefry.ts";
import { showShape } from "../tensor/show.ts";
import { Tensor } from "../tensor/tensor.ts";
import { Collator, isRecord, isTypedArray, type Types } from "./collate.ts";
import { checkOptions } from "./options.ts";
import { ProgressBar } from "./progress.ts";

/** Data whose samples are read by number, as a Dataset of torch; `get` may be async. */
export interface MapDataset<S = unknown> {
  readonly length: number;
  get(index: number): S | Promise<S>;
}
/** Rows of Tensors or typed arrays: all have the same number of them. */
export type Columns = Tensor | readonly Tensor[] | { readonly [key: string]: Columns };
type Stream<S> = Iterable<S> | AsyncIterable<S>;
export type LoaderData<S = unknown> = Columns | readonly S[] | MapDataset<S> | Stream<S> | (() => Stream<S>);

export interface DataLoaderOptions<S = never, B = never> {
  /** default: 1 */
  readonly batchSize?: number;
  /** a new order in every pass; default: false */
  readonly shuffle?: boolean;
  /** decides the orders; default: that of Tensor.manualSeed */
  readonly seed?: number;
  /** leave out the last samples if they do not fill a batch; default: false */
  readonly dropLast?: boolean;
  /** changes a sample before it is put into a batch; may be async */
  readonly transform?: (sample: S, index: number) => unknown;
  /** makes a batch out of samples, instead of the usual way */
  readonly collate?: (samples: S[]) => B | Promise<B>;
  /** how many samples are read and transformed at the same time, where that is async; default: 1 */
  readonly workers?: number;
  /** how many batches are made ahead of the one in use; default: 2 */
  readonly prefetch?: number;
  /** the type of numbers in samples: one for all, or one for each leaf */
  readonly dtype?: Types;
  /** where batches are made; default: Device.DEFAULT, or where the given Tensors are */
  readonly device?: string;
  /** a bar in the terminal, with this label if it is a text; default: false */
  readonly progress?: boolean | string;
}
const KEYS = [
  "batchSize",
  "shuffle",
  "seed",
  "dropLast",
  "transform",
  "collate",
  "workers",
  "prefetch",
  "dtype",
  "device",
  "progress",
];

// ---- where samples come from ----

type Source =
  | { readonly kind: "columns"; readonly length: number; readonly data: Columns }
  | {
      readonly kind: "samples";
      readonly length: number;
      get(index: number): unknown;
      readonly list?: readonly unknown[];
    }
  | { readonly kind: "stream"; readonly length: undefined; open(): Stream<unknown> };

const leavesOf = (x: unknown): Tensor[] => {
  if (x instanceof Tensor) return [x];
  return typeof x === "object" && x !== null && !isTypedArray(x) ? Object.values(x).flatMap(leavesOf) : [];
};
const isColumns = (x: unknown): x is Columns =>
  x instanceof Tensor ||
  (Array.isArray(x) && x.length > 0 && x.every((t) => t instanceof Tensor)) ||
  (isRecord(x) && Object.keys(x).length > 0 && Object.values(x).every(isColumns));
const hasGet = (x: unknown): x is MapDataset =>
  typeof (x as Partial<MapDataset>)?.get === "function" &&
  typeof (x as Partial<MapDataset>).length === "number";
const isStream = (x: unknown): x is Stream<unknown> =>
  typeof x === "object" && x !== null && (Symbol.iterator in x || Symbol.asyncIterator in x);

function sourceOf(data: unknown): Source {
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
    `DataLoader: the data is ${got}; expected Tensors such as { x, y }, an array of samples, an object with length and get(i), or an iterable`,
  );
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
/** The batches of a structure of Tensors are that structure. */
type BatchOf<D> = D extends Columns
  ? D
  : D extends readonly (infer S)[]
    ? Collated<S>
    : D extends { get(index: number): infer R }
      ? Collated<Awaited<R>>
      : D extends Stream<infer S> | (() => Stream<infer S>)
        ? Collated<S>
        : unknown;

/**
 * Data in batches: each pass of a loop goes through it once, in a new order if it shuffles. Data is Tensors
 * with a row for each sample (`x`, `[x, y]` or `{ x, y }`), an array of samples, an object with `length` and
 * `get(i)`, or an iterable (for several passes, a function that opens one).
 * @example
 * const data = { x: Tensor.arange(10).reshape(5, 2), y: Tensor.arange(5) };
 * const loader = new nn.DataLoader(data, { batchSize: 2, shuffle: true, seed: 1 });
 * const sizes = [];
 * for await (const { x, y } of loader) sizes.push([x.shape[0], y.shape[0]]);
 * sizes // => [[2, 2], [2, 2], [1, 1]]
 */
export class DataLoader<D = unknown, B = BatchOf<D>, S = never> implements AsyncIterable<B> {
  readonly #source: Source;
  readonly #options: DataLoaderOptions<S, B>;
  readonly #collator: Collator;
  readonly #seed: number;
  #epoch = 0;

  constructor(data: D & LoaderData, options: DataLoaderOptions<S, B> = {}) {
    this.#options = checkOptions("DataLoader", options, KEYS);
    const { batchSize = 1, workers = 1, prefetch = 2, shuffle = false, seed } = options;
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
    if (this.#source.kind === "stream" && shuffle) {
      throw new ArgumentError(
        "DataLoader: an iterable cannot be shuffled; give an array, or length and get(i)",
      );
    }
    if (this.#source.kind === "columns" && (options.transform ?? options.collate) !== undefined) {
      throw new ArgumentError("DataLoader: Tensors are taken by rows; change the batches, or give samples");
    }
    this.#collator = new Collator(options.dtype, options.device);
    this.#seed = seed ?? (stream.key[0] ^ stream.key[1]) | 0;
  }

  /** How many batches a pass has; undefined for an iterable. */
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
    if (state.seed !== this.#seed) {
      throw new ArgumentError(`DataLoader: the saved seed is ${state.seed}, this loader has ${this.#seed}`);
    }
    this.#epoch = state.epoch;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<B, void, undefined> {
    const { prefetch = 2, progress = false } = this.#options;
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
        next.catch(() => {}); // whoever awaits it hears of it
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
    return this.#sampleBatches(
      source.kind === "stream" ? this.#streamed(source.open()) : this.#numbered(source, epoch),
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
  *#numbered(source: Source & { readonly kind: "samples" }, epoch: number): Generator<Promise<unknown>> {
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
    return transform === undefined ? sample : await transform(sample as S, index);
  }
  async *#streamed(samples: Stream<unknown>): AsyncGenerator<unknown, void, undefined> {
    let i = 0;
    for await (const x of samples) yield await this.#sample(x, i++);
  }

  async *#sampleBatches(
    samples: Generator<Promise<unknown>> | AsyncGenerator<unknown>,
  ): AsyncGenerator<B, void, undefined> {
    const { batchSize = 1, dropLast = false, collate, workers = 1 } = this.#options;
    let batch: unknown[] = [];
    const made = async (): Promise<B> => {
      const list = batch;
      batch = [];
      if (collate !== undefined) return collate(list as S[]);
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
    x.catch(() => {}); // whoever awaits it hears of it
    waiting.push(x);
    if (waiting.length >= most) yield await waiting.shift();
  }
  for (const x of waiting) yield await x;
}
