// safetensors, the format of model files: a length of 8 bytes, a JSON header, then the data. The header is
// not trusted: everything in it is checked against the real size of the file before anything is allocated. A
// tensor of a file is a view of the file, read when it is moved to a device.

import { writeBytes } from "#host/files";
import { type DType, dtypes } from "../dtype.ts";
import { ArgumentError, DTypeError, FileError, type Refuse } from "../errors.ts";
import { prod } from "../helpers.ts";
import { printable } from "../printable.ts";
import { Device } from "../runtime/registry.ts";
import { concat } from "../tensor/image/deflate.ts";
import { Tensor } from "../tensor/tensor.ts";
import { type ByteSource, bytesOf, openSource, type Readable, tensorOn } from "./bytes.ts";
import { requireTensors } from "./options.ts";
import type { StateDict } from "./state.ts";

/** Longer headers are refused unread, as in the reference implementation. */
export const MAX_HEADER = 100_000_000;
/** Longer names, and shapes of more dims, are not those of tensors. */
const MAX_NAME = 4096;
const MAX_DIMS = 64;
const METADATA = "__metadata__";

const DTYPES: Readonly<Record<string, DType>> = {
  BOOL: dtypes.bool,
  U8: dtypes.uint8,
  I8: dtypes.int8,
  U16: dtypes.uint16,
  I16: dtypes.int16,
  F16: dtypes.float16,
  BF16: dtypes.bfloat16,
  F8_E4M3: dtypes.float8e4m3,
  F8_E5M2: dtypes.float8e5m2,
  U32: dtypes.uint32,
  I32: dtypes.int32,
  F32: dtypes.float32,
  U64: dtypes.uint64,
  I64: dtypes.int64,
  F64: dtypes.float64,
};
const NAMES = new Map(Object.entries(DTYPES).map(([name, d]) => [d, name]));

export interface SafeEntry {
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** where its bytes are, relative to the end of the header */
  readonly offsets: readonly [number, number];
}
export interface SafeHeader {
  readonly metadata: Readonly<Record<string, string>>;
  readonly tensors: Readonly<Record<string, SafeEntry>>;
  /** where the data starts and ends in the file */
  readonly start: number;
  readonly end: number;
}

export interface SafeLoadOptions {
  /**
   * the device of the tensors; by default those of a file stay on DISK until they are moved, others go to
   * Device.DEFAULT
   */
  readonly device?: string;
  /** only these tensors; from a URL only their bytes are fetched, if the server supports ranges */
  readonly names?: readonly string[];
}

/**
 * The tensors of a safetensors file by name, given as a path, a URL, or bytes. Only the header is read.
 * @example
 * (await nn.safeLoad(await nn.safeSave({ w: new Tensor([1.5, 2]) }))).w.tolist() // => [1.5, 2]
 */
export async function safeLoad(source: Readable, options: SafeLoadOptions = {}): Promise<StateDict> {
  const bytes = await openSource(source);
  try {
    const header = await readHeader(bytes);
    const wanted = options.names ?? Object.keys(header.tensors);
    const unknown = wanted.filter((name) => !Object.hasOwn(header.tensors, name));
    if (unknown.length > 0) {
      const there = Object.keys(header.tensors).slice(0, 20).join(", ");
      throw new ArgumentError(`safeLoad: ${bytes.name} has no tensor ${unknown.join(", ")}; it has ${there}`);
    }
    const entries = wanted.map((name) => [name, header.tensors[name] as SafeEntry] as const);
    const spans = entries.map(
      ([
        ,
        {
          offsets: [a, b],
        },
      ]) => [header.start + a, header.start + b] as const,
    );
    const held = await bytes.hold(spans, header.end);
    const device =
      options.device ?? (Device.storageOf(bytes.device) === "array" ? Device.DEFAULT : undefined);
    return Object.fromEntries(
      entries.map(([name, { dtype, shape, offsets }]) => {
        const t = tensorOn(held(header.start + offsets[0], prod(shape), dtype), shape);
        return [name, device === undefined ? t : t.to(device)];
      }),
    );
  } finally {
    await bytes.close();
  }
}

/**
 * The header of a safetensors file: names, dtypes, shapes, and its `__metadata__`.
 * @example
 * (await nn.safeHeader(await nn.safeSave({}, undefined, { format: "pt" }))).metadata // => { format: "pt" }
 */
export async function safeHeader(source: Readable): Promise<SafeHeader> {
  const bytes = await openSource(source);
  try {
    return await readHeader(bytes);
  } finally {
    await bytes.close();
  }
}

async function readHeader(source: ByteSource): Promise<SafeHeader> {
  const refuse = (why: string): never => {
    throw new FileError(`safetensors: ${source.name} is refused: ${why}`);
  };
  const head = await source.read(0, 8);
  if (head.byteLength < 8) refuse(`it has ${head.byteLength} bytes, a header length alone takes 8`);
  const claimed = new DataView(head.buffer, head.byteOffset, 8).getBigUint64(0, true);
  if (claimed > BigInt(MAX_HEADER)) refuse(`its header claims ${claimed} bytes, the limit is ${MAX_HEADER}`);
  const n = Number(claimed);
  if (source.size !== undefined && 8 + n > source.size) {
    refuse(`its header claims ${n} bytes, the file has ${source.size} in all (truncated?)`);
  }
  const text = await source.read(8, 8 + n);
  if (text.byteLength < n)
    refuse(`its header claims ${n} bytes, it ends after ${text.byteLength} (truncated?)`);
  const { metadata, tensors, end } = parseHeader(text, refuse);
  if (source.size !== undefined && 8 + n + end !== source.size) {
    const has = source.size - 8 - n;
    refuse(`its header describes ${end} bytes of data, there are ${has}${has < end ? " (truncated?)" : ""}`);
  }
  return { metadata, tensors, start: 8 + n, end: 8 + n + end };
}

function parseHeader(bytes: Uint8Array, refuse: Refuse) {
  let text = "";
  let parsed: unknown;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    parsed = JSON.parse(text);
  } catch (e) {
    refuse(`its header is not JSON: ${printable((e as Error).message)}`);
  }
  if (!text.startsWith("{") || !isRecord(parsed)) return refuse("its header is not a JSON object");
  const twice = duplicateKey(text);
  if (twice !== undefined) refuse(`its header names ${quoted(twice)} twice`);
  const { [METADATA]: metadata = {}, ...rest } = parsed;
  if (!isRecord(metadata) || Object.values(metadata).some((v) => typeof v !== "string")) {
    refuse(`${METADATA} is not a map of strings`);
  }
  const entries = Object.entries(rest).map(([name, e]) => [name, checkEntry(name, e, refuse)] as const);
  // every byte belongs to exactly one tensor: a hole could hide something, an overlap would couple two
  // tensors
  let end = 0;
  for (const [name, { offsets }] of [...entries].sort(([, a], [, b]) => order(a, b))) {
    if (offsets[0] !== end) {
      const what = offsets[0] < end ? "overlaps the tensor before it" : "leaves a hole before it";
      refuse(`${quoted(name)} at [${offsets}] ${what}, which ends at ${end}`);
    }
    end = offsets[1];
  }
  const tensors = Object.fromEntries(entries);
  return { metadata: metadata as Record<string, string>, tensors, end };
}

/** A value of the header for messages, cut short. */
const quoted = (x: unknown): string =>
  typeof x === "string" ? JSON.stringify(printable(x)) : printable(JSON.stringify(x) ?? "undefined");
const order = (a: SafeEntry, b: SafeEntry): number =>
  a.offsets[0] - b.offsets[0] || a.offsets[1] - b.offsets[1];
const isRecord = (x: unknown): x is Record<string, unknown> =>
  typeof x === "object" && x !== null && !Array.isArray(x);
const isSize = (x: unknown): x is number => Number.isSafeInteger(x) && (x as number) >= 0;

function checkEntry(name: string, entry: unknown, refuse: Refuse): SafeEntry {
  const who = quoted(name);
  if (name.length > MAX_NAME)
    return refuse(`a name has ${name.length} characters, the limit is ${MAX_NAME}: ${who}`);
  if (!isRecord(entry)) return refuse(`${who} is not an object`);
  const { dtype: type, shape, data_offsets: offsets } = entry;
  const dtype = typeof type === "string" && Object.hasOwn(DTYPES, type) ? DTYPES[type] : undefined;
  if (dtype === undefined) {
    return refuse(`${who} has dtype ${quoted(type)}, expected one of ${Object.keys(DTYPES).join(", ")}`);
  }
  if (!Array.isArray(shape) || !shape.every(isSize))
    return refuse(`${who} has a shape that is not a list of integers >= 0`);
  if (shape.length > MAX_DIMS)
    return refuse(`${who} has a shape of ${shape.length} dims, the limit is ${MAX_DIMS}`);
  const [start, end] = Array.isArray(offsets) && offsets.length === 2 ? (offsets as unknown[]) : [];
  if (!isSize(start) || !isSize(end) || start > end) {
    return refuse(`${who} has data_offsets ${quoted(offsets)}, expected [start, end]`);
  }
  // sizes whose product is not a safe integer are invalid, even if another size is zero
  const elements = shape.reduce((n, s) => n * Math.max(s, 1), 1);
  if (!Number.isSafeInteger(elements * dtype.itemsize))
    return refuse(`${who} of shape [${shape}] and dtype ${type} has sizes beyond what a file can hold`);
  const nbytes = shape.includes(0) ? 0 : elements * dtype.itemsize;
  if (nbytes !== end - start) {
    refuse(
      `${who} of shape [${shape}] and dtype ${type} takes ${nbytes} bytes, data_offsets are [${start}, ${end}]`,
    );
  }
  return { dtype, shape, offsets: [start, end] };
}

/**
 * A key that occurs twice in an object of this (valid) JSON text: JSON.parse would silently keep the last
 * one.
 */
function duplicateKey(text: string): string | undefined {
  const open: (Set<string> | undefined)[] = [];
  for (let at = 0; at < text.length; at++) {
    const c = text[at];
    if (c === "{") open.push(new Set());
    else if (c === "[") open.push(undefined);
    else if (c === "}" || c === "]") open.pop();
    if (c !== '"') continue;
    const end = endOfString(text, at);
    let next = end + 1;
    while (/\s/.test(text[next] ?? "")) next++;
    const keys = text[next] === ":" ? open.at(-1) : undefined;
    if (keys !== undefined) {
      const key = JSON.parse(text.slice(at, end + 1)) as string;
      if (keys.has(key)) return key;
      keys.add(key);
    }
    at = end;
  }
  return undefined;
}
/** Where the string that begins at `at` has its last quote; a pattern runs out of stack on a long one. */
function endOfString(text: string, at: number): number {
  for (let end = text.indexOf('"', at + 1); ; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text[end - 1 - slashes] === "\\") slashes++;
    if (slashes % 2 === 0) return end;
  }
}

/**
 * Writes tensors by name to a safetensors file; without a path, returns its bytes. An existing file is
 * replaced only when the new one is complete.
 * @example
 * (await nn.safeSave({ w: new Tensor([1, 2]) })).byteLength // => 72
 */
export function safeSave(
  dict: StateDict,
  path?: undefined,
  metadata?: Record<string, string>,
): Promise<Uint8Array>;
export function safeSave(dict: StateDict, path: string, metadata?: Record<string, string>): Promise<void>;
export async function safeSave(
  dict: StateDict,
  path?: string,
  metadata?: Record<string, string>,
): Promise<unknown> {
  requireTensors("safeSave", dict);
  for (const [key, x] of Object.entries(metadata ?? {})) {
    if (typeof x !== "string")
      throw new ArgumentError(
        `safeSave: metadata.${key} is ${typeof x}, expected a string; nn.save takes any values`,
      );
  }
  // wide types first, so that every tensor is aligned to its element size
  const entries = Object.entries(dict).sort(
    ([a, x], [b, y]) => y.dtype.itemsize - x.dtype.itemsize || (a < b ? -1 : 1),
  );
  const head = headerBytes(entries, metadata);
  const live = entries.map(([, t]) => t).filter((t) => !/^(?:DISK|EXT)/.test(t.device));
  await Tensor.realize(...live);
  const parts = async function* () {
    yield head;
    for (const [, t] of entries) yield await bytesOf(t);
  };
  if (path !== undefined) return writeBytes(path, parts());
  const all: Uint8Array[] = [];
  for await (const part of parts()) all.push(part);
  return concat(all);
}

function headerBytes(entries: readonly (readonly [string, Tensor])[], metadata?: Record<string, string>) {
  const header: [string, unknown][] = metadata === undefined ? [] : [[METADATA, metadata]];
  let at = 0;
  for (const [name, t] of entries) {
    const dtype = NAMES.get(t.dtype);
    if (dtype === undefined)
      throw new DTypeError(
        `safeSave: ${name} is ${t.dtype.name}, which the format does not have; cast it first`,
      );
    if (name === METADATA)
      throw new ArgumentError(`safeSave: ${METADATA} is reserved, give the tensor another name`);
    const end = at + t.size * t.dtype.itemsize;
    header.push([name, { dtype, shape: t.shape, data_offsets: [at, end] }]);
    at = end;
  }
  const text = new TextEncoder().encode(JSON.stringify(Object.fromEntries(header)));
  const padded = Math.ceil(text.byteLength / 8) * 8;
  if (padded > MAX_HEADER)
    throw new ArgumentError(`safeSave: the header takes ${padded} bytes, the limit is ${MAX_HEADER}`);
  const bytes = new Uint8Array(8 + padded).fill(0x20);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(padded), true);
  bytes.set(text, 8);
  return bytes;
}
