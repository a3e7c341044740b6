// Threads that read samples for a DataLoader. In: the address of a module whose default export is a dataset,
// or a function that gives one. Each thread loads the module; batches of numbers go to the thread that has
// the least to do, and samples come back, with their numbers transferred instead of copied. A thread keeps a
// process alive only while somebody waits for it.

import { moduleAddress, spawnPeer } from "#host/peers";
import type { DTypeName } from "../dtype.ts";
import { ArgumentError, DTypeError, FileError, ShapeError } from "../errors.ts";
import { isPlain, range } from "../helpers.ts";
import type { Peer } from "../host/contract.ts";
import { Tensor } from "../tensor/tensor.ts";

interface Setup {
  readonly address: string;
  readonly args: unknown;
}
interface Request {
  readonly id: number;
  readonly indexes: readonly number[];
}
interface SentError {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
}
/** The first answer has the length, or why there is none. */
type Answer =
  | { readonly length: number }
  | { readonly id: number; readonly samples: readonly unknown[] }
  | { readonly id?: number; readonly error: SentError };
/** A Tensor on its way. */
interface SentTensor {
  readonly gradloomTensor: DTypeName;
  readonly shape: readonly number[];
  readonly data: unknown;
}

/**
 * What runs in the thread. Its text is sent there, so it uses nothing from outside. It copies samples once,
 * because a dataset may hand out what it keeps.
 */
async function serve(
  { address, args }: Setup,
  receive: (hear: (message: Request) => void) => void,
  send: (answer: Answer, transfer?: ArrayBuffer[]) => void,
  load: (address: string) => Promise<{ readonly default: unknown }>,
): Promise<void> {
  const sent = (e: unknown): SentError =>
    e instanceof Error
      ? { name: e.name, message: e.message, stack: String(e.stack) }
      : { name: "Error", message: String(e), stack: String(e) };
  type Dataset = { readonly length: number; get?(i: number): unknown };
  const packed = async (x: unknown, transfer: ArrayBuffer[]): Promise<unknown> => {
    if (typeof x !== "object" || x === null) return x;
    if (ArrayBuffer.isView(x)) {
      const copy = new Uint8Array(x.byteLength);
      copy.set(new Uint8Array(x.buffer, x.byteOffset, x.byteLength));
      transfer.push(copy.buffer);
      // Node's Buffer is a Uint8Array
      const type = Object.prototype.toString.call(x).slice(8, -1);
      return new (globalThis as unknown as Record<string, new (b: ArrayBuffer) => unknown>)[type]!(
        copy.buffer,
      );
    }
    const t = x as {
      lazydata?: unknown;
      shape: number[];
      dtype: { name: DTypeName };
      data(): Promise<unknown>;
    };
    if (t.lazydata !== undefined && typeof t.data === "function") {
      const data = await packed(await t.data(), transfer);
      return { gradloomTensor: t.dtype.name, shape: t.shape, data };
    }
    if (Array.isArray(x)) {
      const list: unknown[] = [];
      for (const part of x) list.push(typeof part === "object" ? await packed(part, transfer) : part);
      return list;
    }
    const proto = Object.getPrototypeOf(x);
    if (proto !== null && Object.getPrototypeOf(proto) !== null) return x; // a Date, a Map: cloned as it is
    const record: Record<string, unknown> = {};
    for (const [key, part] of Object.entries(x)) record[key] = await packed(part, transfer);
    return record;
  };
  let dataset: Dataset;
  try {
    const { default: made } = await load(address).catch((e) => {
      const why = e instanceof Error ? e.message : String(e);
      const unloaded = new Error(`DataLoader: cannot load the module ${address}: ${why}`);
      unloaded.name = "FileError";
      if (e instanceof Error && e.stack !== undefined) unloaded.stack = e.stack;
      throw unloaded;
    });
    dataset = (typeof made === "function" ? await made(args) : made) as Dataset;
    const isDataset = Array.isArray(dataset) || typeof dataset?.get === "function";
    if (!isDataset || !Number.isInteger(dataset.length)) {
      const wrong = new TypeError(
        `DataLoader: the default export of ${address} is not a dataset; expected an object with length and get(i), an array, ` +
          "or a function that gives one of them",
      );
      wrong.name = "ArgumentError";
      throw wrong;
    }
  } catch (e) {
    return send({ error: sent(e) });
  }
  const read = async ({ id, indexes }: Request): Promise<void> => {
    try {
      const samples: unknown[] = [];
      const transfer: ArrayBuffer[] = [];
      for (const i of indexes) {
        const sample = await (dataset.get === undefined
          ? (dataset as unknown as unknown[])[i]
          : dataset.get(i));
        samples.push(await packed(sample, transfer));
      }
      send({ id, samples }, transfer);
    } catch (e) {
      send({ id, error: sent(e) });
    }
  };
  let last = Promise.resolve();
  receive((request) => {
    last = last.then(() => read(request));
  });
  send({ length: dataset.length });
}
// a TypeScript loader may wrap functions in calls that keep their names
const SOURCE = (): string => `const __name = (f) => f;\nconst serve = ${serve};\n`;

function received({ name, message, stack }: SentError): Error {
  const type = Object.hasOwn(OURS, name) ? OURS[name as keyof typeof OURS] : Error;
  const error = new type(message);
  error.name = name;
  error.stack = `${stack}\n    in a worker of DataLoader`;
  return error;
}
/** Errors that are ours in the thread, too. */
const OURS = { ArgumentError, DTypeError, FileError, ShapeError };
/** Tensors out of what was sent instead of them. */
function unpacked(x: unknown, device: string | undefined): unknown {
  if (Array.isArray(x)) return typeof x[0] === "number" ? x : x.map((part) => unpacked(part, device));
  if (!isPlain(x)) return x;
  const { gradloomTensor: dtype, shape, data } = x as Partial<SentTensor>;
  if (dtype === undefined || shape === undefined) {
    return Object.fromEntries(Object.entries(x as object).map(([k, v]) => [k, unpacked(v, device)]));
  }
  return new Tensor(data as Float32Array, { dtype, ...(device !== undefined && { device }) }).reshape(shape);
}

class Worker {
  readonly #peer: Peer;
  readonly #waiting = new Map<number, { done(samples: unknown[]): void; failed(e: Error): void }>();
  readonly length: Promise<number>;
  #ended: Error | undefined;
  #counts = 1; // it is asked for its length

  constructor(setup: Setup) {
    let ready: (n: number) => void;
    let failed: (e: Error) => void;
    this.length = new Promise<number>((done, fail) => {
      ready = done;
      failed = fail;
    });
    this.length.catch(() => {}); // whoever awaits it gets the error
    const hear = (answer: Answer): void => {
      const asked = "id" in answer ? this.#waiting.get(answer.id as number) : undefined;
      if ("id" in answer) this.#waiting.delete(answer.id as number);
      this.#count(-1);
      if ("error" in answer) (asked?.failed ?? failed)(received(answer.error));
      else if ("samples" in answer) asked?.done(answer.samples as unknown[]);
      else ready(answer.length);
    };
    this.#peer = spawnPeer(SOURCE(), setup, {
      message: (m) => hear(m as Answer),
      end: (why) => {
        this.#ended ??= why;
        failed(why);
        for (const { failed: fail } of this.#waiting.values()) fail(why);
        this.#waiting.clear();
      },
    });
    this.#peer.keepsAlive(true);
  }
  get load(): number {
    return this.#waiting.size;
  }
  #count(by: number): void {
    this.#counts += by;
    this.#peer.keepsAlive(this.#counts > 0);
  }
  read(id: number, indexes: readonly number[]): Promise<unknown[]> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    this.#count(1);
    return new Promise((done, failed) => {
      this.#waiting.set(id, { done, failed });
      this.#peer.post({ id, indexes } satisfies Request);
    });
  }
  end(): void {
    this.#peer.terminate();
  }
}

export class SampleWorkers {
  readonly #workers: readonly Worker[];
  readonly #device: string | undefined;
  #asked = 0;

  constructor(module: string | URL, args: unknown, count: number, device: string | undefined) {
    const setup = { address: moduleAddress(String(module)), args };
    this.#device = device;
    try {
      this.#workers = range(count).map(() => new Worker(setup));
    } catch (cause) {
      throw new ArgumentError(`DataLoader: args cannot be sent to a worker: ${(cause as Error).message}`, {
        cause,
      });
    }
  }
  /** The number of samples: all of them must say the same. */
  async length(): Promise<number> {
    const [first = 0, ...rest] = await Promise.all(this.#workers.map((w) => w.length));
    const other = rest.find((n) => n !== first);
    if (other === undefined) return first;
    throw new ArgumentError(`DataLoader: the workers found ${first} and ${other} samples, expected the same`);
  }
  async samples(indexes: readonly number[]): Promise<unknown[]> {
    const free = this.#workers.reduce((a, b) => (b.load < a.load ? b : a));
    return (await free.read(this.#asked++, indexes)).map((x) => unpacked(x, this.#device));
  }
  end(): void {
    for (const w of this.#workers) w.end();
  }
}
