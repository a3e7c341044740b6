// Reads and writes NumPy's .npy (one array) and .npz (several in a zip archive). A header gives dtype, order
// and shape in Python's spelling; it is checked against the size of the data before anything is allocated.

import { writeBytes } from "#host/files";
import { type DType, dtypes } from "../dtype.ts";
import { ArgumentError, DTypeError, FileError } from "../errors.ts";
import { prod } from "../helpers.ts";
import { printable } from "../printable.ts";
import { Device } from "../runtime/registry.ts";
import { concat } from "../tensor/image/deflate.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { type ByteSource, bytesOf, openSource, type Readable, tensorOn } from "./bytes.ts";
import { requireTensors } from "./options.ts";
import type { StateDict } from "./state.ts";
import { readDirectory, readMember, writeZip } from "./zip.ts";

const MAGIC = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];
const MAX_HEADER = 1 << 16;
/** as in NumPy */
const MAX_DIMS = 64;

const CODES: Readonly<Record<string, DType>> = {
  b1: dtypes.bool,
  i1: dtypes.int8,
  u1: dtypes.uint8,
  i2: dtypes.int16,
  u2: dtypes.uint16,
  i4: dtypes.int32,
  u4: dtypes.uint32,
  i8: dtypes.int64,
  u8: dtypes.uint64,
  f2: dtypes.float16,
  f4: dtypes.float32,
  f8: dtypes.float64,
};
const NAMES = new Map(Object.entries(CODES).map(([code, d]) => [d, code]));

export interface NpyOptions {
  /**
   * the device of the tensors; by default the array of a .npy file stays on DISK until it is moved, others go
   * to Device.DEFAULT
   */
  readonly device?: string;
}

/**
 * The array of a .npy file, given as a path, a URL or bytes.
 * @example
 * await (await nn.npyLoad(await nn.npySave(new Tensor([[1, 2], [3, 4]])))).tolist() // => [[1, 2], [3, 4]]
 */
export async function npyLoad(source: Readable, options: NpyOptions = {}): Promise<Tensor> {
  const bytes = await openSource(source);
  try {
    return await readArray(bytes, options.device);
  } finally {
    await bytes.close();
  }
}

async function readArray(source: ByteSource, device: string | undefined): Promise<Tensor> {
  const { dtype, swapped, columns, shape, start } = await readHeader(source);
  const nbytes = prod(shape) * dtype.itemsize;
  const end = start + nbytes;
  if (!Number.isSafeInteger(end) || (source.size !== undefined && source.size !== end)) {
    const has = (source.size ?? start) - start;
    throw new FileError(
      `npy: ${source.name} is refused: shape [${shape}] of ${dtype.name} takes ${nbytes} bytes, there are ${has}`,
    );
  }
  const stored = columns ? [...shape].reverse() : shape;
  let held = await source.hold([[start, end]], end);
  let at = start;
  if (swapped) {
    const turned = await openSource(swap(await source.read(start, end), dtype.itemsize));
    held = await turned.hold([], nbytes);
    at = 0;
  }
  const array = tensorOn(held(at, prod(shape), dtype), stored);
  // a file cannot be read in another order: such an array is moved at once
  const stays = Device.storageOf(array.device) !== "array" && !columns ? undefined : Device.DEFAULT;
  const to = device ?? stays;
  const moved = to === undefined ? array : array.to(to);
  return columns ? moved.permute(shape.map((_, i) => shape.length - 1 - i)) : moved;
}

/** Converts big-endian to the machine's order. */
function swap(bytes: Uint8Array, itemsize: number): Uint8Array {
  const out = bytes.slice();
  for (let at = 0; at < out.byteLength; at += itemsize) out.subarray(at, at + itemsize).reverse();
  return out;
}

async function readHeader(source: ByteSource) {
  const refuse = (why: string): never => {
    throw new FileError(`npy: ${source.name} is refused: ${why}`);
  };
  const head = await source.read(0, 12);
  if (!MAGIC.every((b, i) => head[i] === b)) refuse("it does not begin as a .npy file");
  const version = head[6] as number;
  if (!(version >= 1 && version <= 3)) refuse(`its version is ${version}, expected 1, 2 or 3`);
  const at = version === 1 ? 10 : 12;
  if (head.byteLength < at) refuse("it is cut off");
  const v = new DataView(head.buffer, head.byteOffset);
  const n = version === 1 ? v.getUint16(8, true) : v.getUint32(8, true);
  if (n > MAX_HEADER) refuse(`its header claims ${n} bytes, the limit is ${MAX_HEADER}`);
  const raw = await source.read(at, at + n);
  if (raw.byteLength < n) refuse(`its header claims ${n} bytes, it ends after ${raw.byteLength}`);
  const text = new TextDecoder().decode(raw).trim();
  const field = (name: string, pattern: string): string => {
    const [found, again] = [...text.matchAll(new RegExp(`['"]${name}['"]\\s*:\\s*${pattern}`, "g"))];
    const isDict = text.startsWith("{") && text.endsWith("}");
    if (found === undefined || !isDict) return refuse(`its header has no ${name}: ${printable(text)}`);
    return again === undefined ? (found[1] as string) : refuse(`its header has two entries ${name}`);
  };
  const descr = field("descr", "('[^']*'|\"[^\"]*\"|\\[)");
  const [, order, code] = descr.match(/^.([<>|=])?(\w+).$/) ?? [];
  const dtype = code !== undefined && Object.hasOwn(CODES, code) ? CODES[code] : undefined;
  if (dtype === undefined) {
    return refuse(
      `its dtype is ${descr === "[" ? "a structure" : printable(descr)}; expected one of ${Object.keys(CODES).join(", ")}`,
    );
  }
  const sizes = field("shape", "\\(([\\d\\s,]*)\\)")
    .split(",")
    .map((s) => s.trim());
  const shape = sizes.filter((s) => s !== "").map(Number);
  if (shape.length > MAX_DIMS) refuse(`its shape has ${shape.length} dims, the limit is ${MAX_DIMS}`);
  const columns = field("fortran_order", "(True|False)") === "True" && shape.length > 1;
  return { dtype, swapped: order === ">" && dtype.itemsize > 1, columns, shape, start: at + n };
}

/**
 * Writes a tensor as a .npy file; without a path, returns its bytes.
 * @example
 * (await nn.npySave(new Tensor([1, 2]))).byteLength // => 136
 */
export function npySave(t: Tensor, path?: undefined): Promise<Uint8Array>;
export function npySave(t: Tensor, path: string): Promise<void>;
export async function npySave(t: Tensor, path?: string): Promise<unknown> {
  const bytes = await arrayBytes("npySave", t);
  if (path === undefined) return bytes;
  return writeBytes(path, one(bytes));
}

async function* one<T>(x: T): AsyncGenerator<T> {
  yield x;
}

async function arrayBytes(method: string, t: Tensor): Promise<Uint8Array> {
  const code = NAMES.get(t.dtype);
  if (code === undefined) {
    throw new DTypeError(`${method}: NumPy has no ${t.dtype.name}; cast first, as in t.cast("float32")`);
  }
  const order = t.dtype.itemsize === 1 ? "|" : "<";
  const shape = `(${t.shape.join(", ")}${t.ndim === 1 ? "," : ""})`;
  const dict = `{'descr': '${order}${code}', 'fortran_order': False, 'shape': ${shape}, }`;
  // the data starts at a multiple of 64
  const n = Math.ceil((10 + dict.length + 1) / 64) * 64 - 10;
  if (n > 0xffff)
    throw new ArgumentError(`${method}: shape [${t.shape}] has too many dims for a .npy header`);
  const head = new Uint8Array([...MAGIC, 1, 0, n & 0xff, n >> 8]);
  const text = new TextEncoder().encode(`${dict.padEnd(n - 1)}\n`);
  return concat([head, text, await bytesOf(t)]);
}

export interface NpzLoadOptions extends NpyOptions {
  /** archives that hold more are refused; default: 1 GiB, or 100 times the file's size if that is more */
  readonly maxBytes?: number;
}

/**
 * The arrays of a .npz archive by name, given as a path, a URL or bytes. All are read and checked now.
 * @example
 * await (await nn.npzLoad(await nn.npzSave({ x: new Tensor([1, 2]) }))).x.tolist() // => [1, 2]
 */
export async function npzLoad(source: Readable, options: NpzLoadOptions = {}): Promise<StateDict> {
  const opened = await openSource(source);
  // the directory is at the end, so a stream is read completely first
  const archive =
    opened.size === undefined ? await openSource(await opened.read(0, Infinity), opened.name) : opened;
  try {
    const found: [string, Tensor][] = [];
    for (const entry of await readDirectory(archive, options.maxBytes)) {
      if (entry.name.endsWith("/")) continue;
      const name = `${archive.name}: ${printable(entry.name)}`;
      const array = await openSource(await readMember(archive, entry), name);
      found.push([entry.name.replace(/\.npy$/, ""), await readArray(array, options.device)]);
    }
    return Object.fromEntries(found);
  } finally {
    await opened.close();
  }
}

export interface NpzOptions {
  /** deflate the arrays; default: false */
  readonly compress?: boolean;
}

/**
 * Writes tensors by name as a .npz archive; without a path, returns its bytes.
 * @example
 * Object.keys(await nn.npzLoad(await nn.npzSave({ a: Tensor.ones(2), b: Tensor.ones(3) }))) // => ["a", "b"]
 */
export function npzSave(dict: StateDict, path?: undefined, options?: NpzOptions): Promise<Uint8Array>;
export function npzSave(dict: StateDict, path: string, options?: NpzOptions): Promise<void>;
export async function npzSave(dict: StateDict, path?: string, options: NpzOptions = {}): Promise<unknown> {
  requireTensors("npzSave", dict);
  const members = async function* () {
    for (const [name, t] of Object.entries(dict))
      yield [`${name}.npy`, await arrayBytes("npzSave", t)] as const;
  };
  const parts = writeZip(members(), options.compress ?? false);
  if (path !== undefined) return writeBytes(path, parts);
  const all: Uint8Array[] = [];
  for await (const part of parts) all.push(part);
  return concat(all);
}
