// Zip archives, as far as .npz needs them: stored and deflated members, sizes beyond 4 GiB when reading. The
// directory at the end is used only after it was checked against the file, a member only if its size and
// checksum match the directory.

import { ArgumentError, FileError } from "../errors.ts";
import { printable } from "../printable.ts";
import { concat, crc32, deflate, inflate, MAX_RATIO } from "../tensor/image/deflate.ts";
import type { ByteSource } from "./bytes.ts";

const LOCAL = 0x04034b50;
const CENTRAL = 0x02014b50;
const END = 0x06054b50;
const END64 = 0x06064b50;
const LOCATOR64 = 0x07064b50;
const FULL = 0xffffffff;
/** Archives that hold more than this, and more than so many times their own size, are refused. */
const LEAST_LIMIT = 2 ** 30;
const USUAL_RATIO = 100;
/** the longest comment after the end record has 65,535 bytes */
const MAX_TAIL = 22 + 0xffff;

interface ZipEntry {
  readonly name: string;
  readonly method: number;
  readonly crc: number;
  readonly packed: number;
  readonly size: number;
  /** where its local header is */
  readonly at: number;
  /** where the next member, or the directory, begins */
  readonly end: number;
}

const viewOf = (b: Uint8Array): DataView => new DataView(b.buffer, b.byteOffset, b.byteLength);
const big = (v: DataView, at: number): number => Number(v.getBigUint64(at, true));

function refuse(source: ByteSource, why: string): never {
  throw new FileError(`zip: ${source.name} is refused: ${why}`);
}

/**
 * The members that the directory lists. Each has bytes of its own: an archive whose members overlap can hold
 * any amount of data in few bytes, and so can one of members that are nearly empty.
 */
export async function readDirectory(source: ByteSource, maxBytes?: number): Promise<ZipEntry[]> {
  const { count, size, start } = await findDirectory(source, source.size ?? 0);
  const bytes = await source.read(start, start + size);
  const v = viewOf(bytes);
  const entries: ZipEntry[] = [];
  for (let at = 0; entries.length < count; ) {
    if (at + 46 > bytes.byteLength || v.getUint32(at, true) !== CENTRAL)
      refuse(source, "its directory is broken");
    const [n, extra, comment] = [28, 30, 32].map((i) => v.getUint16(at + i, true)) as [
      number,
      number,
      number,
    ];
    const next = at + 46 + n + extra + comment;
    if (next > bytes.byteLength) refuse(source, "its directory is cut off");
    const name = new TextDecoder().decode(bytes.subarray(at + 46, at + 46 + n));
    const encrypted = v.getUint16(at + 8, true) & 1;
    if (encrypted) refuse(source, `${shown(name)} is encrypted`);
    const wide = wideSizes(v, at, bytes.subarray(at + 46 + n, at + 46 + n + extra));
    const [method, crc] = [v.getUint16(at + 10, true), v.getUint32(at + 16, true)];
    entries.push({ name, method, crc, ...wide, end: start });
    at = next;
  }
  return checkMembers(source, entries, maxBytes);
}

/** A name for messages: members may be called anything. */
const shown = (name: string): string => printable(name);

/** What a member says of itself can be true. */
function checkClaims(source: ByteSource, { name: raw, method, packed, size, at }: ZipEntry): void {
  const name = shown(raw);
  const total = source.size ?? 0;
  if (at + 30 + packed > total) refuse(source, `${name} claims ${packed} bytes, beyond the end of the file`);
  if (method !== 0 && method !== 8)
    refuse(source, `${name} is compressed by method ${method}, expected 0 or 8`);
  if (method === 0 ? size !== packed : size > packed * MAX_RATIO) {
    refuse(source, `${name} claims ${size} bytes out of ${packed}`);
  }
}

function checkMembers(source: ByteSource, entries: readonly ZipEntry[], maxBytes?: number): ZipEntry[] {
  const byPlace = entries.toSorted((a, b) => a.at - b.at);
  const ends = new Map(byPlace.map((entry, i) => [entry, byPlace[i + 1]?.at ?? entry.end]));
  const names = new Set<string>();
  const most = maxBytes ?? Math.max(LEAST_LIMIT, USUAL_RATIO * (source.size ?? 0));
  let total = 0;
  return entries.map((entry) => {
    const { name, at, packed, size } = entry;
    const end = ends.get(entry) as number;
    checkClaims(source, entry);
    if (names.has(name)) refuse(source, `it has two members ${shown(name)}`);
    names.add(name);
    if (!(at + 30 + packed <= end)) {
      refuse(source, `${shown(name)} of ${packed} bytes at ${at} overlaps what begins at ${end}`);
    }
    total += size;
    if (!(total <= most)) {
      refuse(
        source,
        `with ${shown(name)} it would take ${total} bytes of memory, the limit is ${most}; raise maxBytes if you trust it`,
      );
    }
    return { ...entry, end };
  });
}

async function findDirectory(source: ByteSource, size: number) {
  const from = Math.max(0, size - MAX_TAIL);
  const tail = await source.read(from, size);
  const v = viewOf(tail);
  let at = tail.byteLength - 22;
  while (at >= 0 && v.getUint32(at, true) !== END) at--;
  if (at < 0) refuse(source, "it is not a zip archive, or its end is missing");
  let [count, length, start] = [
    v.getUint16(at + 10, true),
    v.getUint32(at + 12, true),
    v.getUint32(at + 16, true),
  ];
  if (at >= 20 && v.getUint32(at - 20, true) === LOCATOR64) {
    const where = big(v, at - 12);
    const end = where + 56 <= size ? viewOf(await source.read(where, where + 56)) : undefined;
    if (end?.byteLength !== 56 || end.getUint32(0, true) !== END64)
      return refuse(source, "its 64-bit end is missing");
    [count, length, start] = [big(end, 32), big(end, 40), big(end, 48)];
  }
  if (start + length > from + at) refuse(source, "its directory is outside the file");
  // 46 bytes are the least that an entry takes
  if (count * 46 > length) refuse(source, `its directory of ${length} bytes claims ${count} members`);
  return { count, size: length, start };
}

/**
 * Sizes and offset of a member; 32-bit fields that are full are continued in order in the extra field 1.
 */
function wideSizes(v: DataView, at: number, extra: Uint8Array) {
  const wide: number[] = [];
  const e = viewOf(extra);
  for (let i = 0; i + 4 <= extra.byteLength; i += 4 + e.getUint16(i + 2, true)) {
    if (e.getUint16(i, true) !== 1) continue;
    const end = Math.min(i + 4 + e.getUint16(i + 2, true), extra.byteLength);
    for (let j = i + 4; j + 8 <= end; j += 8) wide.push(big(e, j));
  }
  const field = (i: number): number => {
    const x = v.getUint32(at + i, true);
    return x === FULL ? (wide.shift() ?? x) : x;
  };
  const size = field(24);
  const packed = field(20);
  return { size, packed, at: field(42) };
}

/** The bytes of one member. */
export async function readMember(source: ByteSource, entry: ZipEntry): Promise<Uint8Array> {
  const { method, packed, size, at, end } = entry;
  const name = shown(entry.name);
  const v = viewOf(await source.read(at, at + 30));
  if (v.getUint32(0, true) !== LOCAL) refuse(source, `${name} is not where the directory says`);
  const start = at + 30 + v.getUint16(26, true) + v.getUint16(28, true);
  if (start + packed > end)
    refuse(source, `${name} of ${packed} bytes at ${start} overlaps what begins at ${end}`);
  const raw = await source.read(start, start + packed);
  if (raw.byteLength < packed) refuse(source, `${name} is cut off`);
  const bytes = method === 0 ? raw : await inflate(raw, "deflate-raw", size, `${source.name}: ${name}`);
  if (crc32(bytes) !== entry.crc) refuse(source, `the checksum of ${name} is wrong`);
  return bytes;
}

/** An archive, written part by part. */
export async function* writeZip(
  members: AsyncIterable<readonly [name: string, bytes: Uint8Array]>,
  compress: boolean,
): AsyncGenerator<Uint8Array> {
  const directory: Uint8Array[] = [];
  let at = 0;
  for await (const [name, bytes] of members) {
    const packed = compress ? await deflate(bytes, "deflate-raw") : bytes;
    const label = new TextEncoder().encode(name);
    const end = at + 30 + label.byteLength + packed.byteLength;
    if (end >= FULL || bytes.byteLength >= FULL) {
      throw new ArgumentError(
        `zip: with ${name} the archive would pass 4 GiB; save it as safetensors instead`,
      );
    }
    // version 2.0, UTF-8 names, 1 January 1980
    const common = [20, 0x0800, compress ? 8 : 0, 0, 0x21];
    const sizes = [crc32(bytes), packed.byteLength, bytes.byteLength];
    const local = record(
      [4, LOCAL],
      ...common.map((x) => [2, x] as const),
      ...sizes.map((x) => [4, x] as const),
    );
    const entry = record(
      [4, CENTRAL],
      [2, 20],
      ...common.map((x) => [2, x] as const),
      ...sizes.map((x) => [4, x] as const),
    );
    yield concat([local, record([2, label.byteLength], [2, 0]), label]);
    yield packed;
    const rest = record([2, label.byteLength], [2, 0], [2, 0], [2, 0], [2, 0], [4, 0], [4, at]);
    directory.push(concat([entry, rest, label]));
    at = end;
  }
  const list = concat(directory);
  yield list;
  const n = directory.length;
  yield record([4, END], [2, 0], [2, 0], [2, n], [2, n], [4, list.byteLength], [4, at], [2, 0]);
}

/** Little-endian numbers of 2 or 4 bytes in a row. */
function record(...fields: readonly (readonly [2 | 4, number])[]): Uint8Array {
  const bytes = new Uint8Array(fields.reduce((n, [size]) => n + size, 0));
  const v = viewOf(bytes);
  let at = 0;
  for (const [size, value] of fields) {
    if (size === 2) v.setUint16(at, value, true);
    else v.setUint32(at, value, true);
    at += size;
  }
  return bytes;
}
