// Where bytes come from and go to: memory, a file (held by DISK, read when a tensor is moved), or a URL (in
// ranges if the server supports them, else as one stream). Loaders of all formats read headers through a
// ByteSource, check them, and only then ask it to provide the parts that become tensors.

import { hasFiles } from "#host";
import { fileSize, readBytes } from "#host/files";
import { type DType, dtypes } from "../dtype.ts";
import { realize } from "../engine/realize.ts";
import { ArgumentError, FileError } from "../errors.ts";
import { runAsync, tagOf } from "../helpers.ts";
import { addressOf, unreachable } from "../host/address.ts";
import { LazyBuffer } from "../lazy/lazybuffer.ts";
import { Buffer } from "../runtime/buffer.ts";
import { Device } from "../runtime/registry.ts";
import { concat } from "../tensor/image/deflate.ts";
import { Tensor } from "../tensor/tensor.ts";

/**
 * A path (in a page: a URL), a URL, a Blob or File, or the bytes themselves, which must not change while they
 * are in use.
 */
export type Readable = string | URL | ArrayBuffer | ArrayBufferView | BlobPart;
/** The part of a Blob that is used. */
interface BlobPart {
  readonly size: number;
  slice(start: number, end: number): { arrayBuffer(): Promise<ArrayBuffer> };
}
type ByteSpan = readonly [start: number, end: number];
/** The bytes from `start` as the memory of `size` elements. */
type Held = (start: number, size: number, dtype: DType) => Buffer;

export interface ByteSource {
  /** the name in messages */
  readonly name: string;
  /** the number of bytes, if it is known before reading them */
  readonly size: number | undefined;
  /** the device of tensors made from it */
  readonly device: string;
  /** Returns fewer bytes if the source ends before `end`. */
  read(start: number, end: number): Promise<Uint8Array>;
  /** Makes the bytes of the spans available; fails unless the source ends at `end`. */
  hold(spans: readonly ByteSpan[], end: number): Promise<Held>;
  close(): Promise<void>;
}

/** `name` is used in messages about bytes in memory. */
export async function openSource(source: Readable, name = "the array"): Promise<ByteSource> {
  if (typeof source === "string" && hasFiles && !/^(?:https?|data|blob|file):/.test(source)) {
    return new FileSource(source, await fileSize(source));
  }
  if (typeof source === "string" || tagOf(source) === "URL") return openAddress(String(source));
  if (ArrayBuffer.isView(source)) {
    return new ArraySource(new Uint8Array(source.buffer, source.byteOffset, source.byteLength), name);
  }
  if (/ArrayBuffer$/.test(tagOf(source))) return new ArraySource(new Uint8Array(source as ArrayBuffer), name);
  if (/^(?:Blob|File)$/.test(tagOf(source))) return new BlobSource(source as Blob);
  throw new ArgumentError(`load: got ${typeof source}, expected a path, a URL, a Blob or bytes`);
}

const inArray =
  (name: string, bytes: Uint8Array, at = 0): Held =>
  (start, size, dtype) => {
    const base = arrays.get(bytes) ?? new Buffer("EXT", bytes.byteLength, dtypes.uint8).allocate(bytes);
    arrays.set(bytes, base);
    if (start - at + dtype.bytesFor(size) > bytes.byteLength) throw new FileError(`${name} is truncated`);
    return new Buffer("EXT", size, dtype, base, start - at);
  };
const arrays = new WeakMap<Uint8Array, Buffer>();

class ArraySource implements ByteSource {
  readonly name: string;
  readonly device = "EXT";
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array, name: string) {
    this.name = name;
    this.#bytes = bytes;
  }
  get size(): number {
    return this.#bytes.byteLength;
  }
  async read(start: number, end: number): Promise<Uint8Array> {
    return this.#bytes.subarray(start, Math.min(end, this.size));
  }
  async hold(): Promise<Held> {
    return inArray(this.name, this.#bytes);
  }
  async close(): Promise<void> {}
}

class FileSource implements ByteSource {
  readonly name: string;
  readonly size: number;
  readonly device: string;

  constructor(path: string, size: number) {
    this.name = path;
    this.size = size;
    this.device = `DISK:${path}`;
  }
  read(start: number, end: number): Promise<Uint8Array> {
    return readBytes(this.name, start, end);
  }
  async hold(): Promise<Held> {
    await Device.open(this.device);
    const base = new Buffer(this.device, this.size, dtypes.uint8).allocate();
    return (start, size, dtype) => new Buffer(this.device, size, dtype, base, start);
  }
  async close(): Promise<void> {}
}

const FIRST = 1 << 16;

async function openAddress(url: string): Promise<ByteSource> {
  const reply = await get(url, [0, FIRST]);
  const total = reply.headers.get("Content-Range")?.match(/^bytes 0-\d+\/(\d+)$/)?.[1];
  if (reply.status === 206 && total !== undefined) {
    return new RangeSource(url, new Uint8Array(await received(url, reply.arrayBuffer())), Number(total));
  }
  if (reply.status === 206 || reply.body === null) {
    throw new FileError(`${url}: the server answered ${reply.status} without saying which part it sends`);
  }
  return new StreamSource(url, reply.body.getReader());
}

async function get(url: string, span: ByteSpan): Promise<Response> {
  // "identity": ranges count the bytes as they are stored
  const headers = { Range: `bytes=${span[0]}-${span[1] - 1}`, "Accept-Encoding": "identity" };
  const reply = await received(url, fetch(url, { headers }));
  if (reply.ok) return reply;
  const answer = `${reply.status} ${reply.statusText}`.trim();
  throw new FileError(`cannot fetch ${addressOf(url)}: the server answered ${answer}`);
}
/** What comes over the network; where it breaks off the error names the address. */
const received = <T>(url: string, coming: Promise<T>): Promise<T> =>
  coming.catch((cause: unknown) => {
    throw unreachable(url, cause);
  });

/** A source of which any part can be read. */
abstract class PartialSource implements ByteSource {
  abstract readonly name: string;
  abstract readonly size: number;
  readonly device = "EXT";
  abstract read(start: number, end: number): Promise<Uint8Array>;
  async hold(spans: readonly ByteSpan[]): Promise<Held> {
    const parts: { start: number; end: number; held: Held }[] = [];
    for (const [start, end] of joined(spans)) {
      const bytes = await this.read(start, end);
      if (bytes.byteLength < end - start) throw new FileError(`${this.name} is truncated`);
      parts.push({ start, end, held: inArray(this.name, bytes, start) });
    }
    return (start, size, dtype) => {
      const part = parts.find((p) => p.start <= start && start + dtype.bytesFor(size) <= p.end);
      if (part === undefined) throw new FileError(`${this.name}: the bytes from ${start} were not requested`);
      return part.held(start, size, dtype);
    };
  }
  async close(): Promise<void> {}
}

class RangeSource extends PartialSource {
  readonly name: string;
  readonly size: number;
  readonly #first: Uint8Array;

  constructor(url: string, first: Uint8Array, size: number) {
    super();
    this.name = url;
    this.size = size;
    this.#first = first;
  }
  async read(start: number, end: number): Promise<Uint8Array> {
    const stop = Math.min(end, this.size);
    if (stop <= this.#first.byteLength) return this.#first.subarray(start, stop);
    const reply = await get(this.name, [start, stop]);
    const bytes = new Uint8Array(await received(this.name, reply.arrayBuffer()));
    if (reply.status === 206) return bytes.subarray(0, stop - start);
    throw new FileError(`${this.name}: the server sent a range before and the whole file now`);
  }
}

class BlobSource extends PartialSource {
  readonly name: string;
  readonly size: number;
  readonly #blob: BlobPart;

  constructor(blob: BlobPart) {
    super();
    this.name = (blob as { readonly name?: string }).name ?? "the Blob";
    this.size = blob.size;
    this.#blob = blob;
  }
  async read(start: number, end: number): Promise<Uint8Array> {
    try {
      return new Uint8Array(await this.#blob.slice(start, Math.min(end, this.size)).arrayBuffer());
    } catch (cause) {
      throw new FileError(`cannot read ${this.name}: ${(cause as Error).message}`, { cause });
    }
  }
}

/** Spans that touch are fetched together. */
function joined(spans: readonly ByteSpan[]): ByteSpan[] {
  const out: [number, number][] = [];
  for (const [start, end] of [...spans].sort((a, b) => a[0] - b[0] || a[1] - b[1])) {
    const last = out.at(-1);
    if (last !== undefined && start <= last[1]) last[1] = Math.max(last[1], end);
    else out.push([start, end]);
  }
  return out;
}

/**
 * A server that sends everything: read as far as needed, keeping no byte beyond what the header describes.
 */
class StreamSource implements ByteSource {
  readonly name: string;
  readonly size = undefined;
  readonly device = "EXT";
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #chunks: Uint8Array[] = [];
  #length = 0;
  #ended = false;

  constructor(url: string, reader: ReadableStreamDefaultReader<Uint8Array>) {
    this.name = url;
    this.#reader = reader;
  }
  async #fill(end: number): Promise<Uint8Array> {
    while (this.#length < end && !this.#ended) {
      const { value, done } = await received(this.name, this.#reader.read());
      this.#ended = done;
      if (value !== undefined) this.#length += this.#chunks.push(value) && value.byteLength;
    }
    if (this.#chunks.length !== 1) this.#chunks = [concat(this.#chunks)];
    return this.#chunks[0] as Uint8Array;
  }
  async read(start: number, end: number): Promise<Uint8Array> {
    return (await this.#fill(end)).subarray(start, end);
  }
  async hold(_: readonly ByteSpan[], end: number): Promise<Held> {
    const bytes = await this.#fill(end + 1);
    if (bytes.byteLength === end) return inArray(this.name, bytes);
    const what = bytes.byteLength < end ? `ends after ${bytes.byteLength} bytes` : "goes on";
    throw new FileError(`${this.name} ${what}, its header describes ${end} bytes`);
  }
  async close(): Promise<void> {
    await this.#reader.cancel().catch(() => {});
  }
}

/** A tensor on memory that exists already. */
export const tensorOn = (buffer: Buffer, shape: readonly number[]): Tensor =>
  new Tensor(LazyBuffer.fromBuffer(buffer, shape));

/** The elements as they are in memory, in row-major order: float16 stays float16. */
export async function bytesOf(t: Tensor): Promise<Uint8Array> {
  const lb = t.lazydata.gathered;
  const whole = Device.storageOf(lb.device) === "file" ? lb : lb.contiguous();
  const host = Device.storageOf(lb.device) === "array" ? whole : whole.copyToDevice("EXT");
  await realize([host]);
  return (await runAsync(host.buffer.read())).subarray(0, t.dtype.bytesFor(t.size));
}
