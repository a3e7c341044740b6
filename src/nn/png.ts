// PNG pictures: 8 bits per channel, grey or colour, not interlaced. Reading is enough for sheets of training
// images; what is written is not compressed.

import { FileError } from "../errors.ts";
import { concat } from "./bytes.ts";
import { crc32, inflate } from "./zip.ts";

const SIGNATURE = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
const CHANNELS: Readonly<Record<number, number>> = { 0: 1, 2: 3, 4: 2, 6: 4 };
/** no sheet of ours is larger; refuse a header that claims more */
const MAX_BYTES = 2 ** 30;

export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly channels: number;
  /** row by row, channels interleaved */
  readonly pixels: Uint8Array;
}

export async function decodePng(file: Uint8Array, name = "the picture"): Promise<Picture> {
  const refuse = (why: string): never => {
    throw new FileError(`png: ${name} is refused: ${why}`);
  };
  if (!SIGNATURE.every((b, i) => file[i] === b)) refuse("it does not begin as a PNG file");
  const { header, data } = chunks(file, refuse);
  const v = new DataView(header.buffer, header.byteOffset, header.byteLength);
  const [width, height] = [v.getUint32(0), v.getUint32(4)];
  const [depth, color, , , interlaced] = header.subarray(8);
  const channels = CHANNELS[color as number];
  if (channels === undefined || depth !== 8 || interlaced !== 0) {
    return refuse(
      `depth ${depth}, colour type ${color}, interlace ${interlaced}; expected 8 bits, no palette, no interlace`,
    );
  }
  const row = width * channels;
  if (height * (row + 1) > MAX_BYTES) refuse(`${width} × ${height} is too large`);
  const lines = await inflate(data, "deflate", height * (row + 1), name);
  const pixels = new Uint8Array(height * row);
  for (let y = 0; y < height; y++) {
    const filter = lines[y * (row + 1)] as number;
    if (filter > 4) refuse(`row ${y} has filter ${filter}, expected 0 to 4`);
    unfilter(filter, lines.subarray(y * (row + 1) + 1, (y + 1) * (row + 1)), pixels, y * row, row, channels);
  }
  return { width, height, channels, pixels };
}

function chunks(file: Uint8Array, refuse: (why: string) => never) {
  const v = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const data: Uint8Array[] = [];
  let header: Uint8Array | undefined;
  for (let at = 8; at + 12 <= file.byteLength; ) {
    const n = v.getUint32(at);
    const kind = String.fromCharCode(...file.subarray(at + 4, at + 8));
    const body = file.subarray(at + 8, at + 8 + n);
    if (at + 12 + n > file.byteLength) refuse(`its ${kind} is cut off`);
    if (kind === "IHDR" && n === 13) header = body;
    else if (kind === "IDAT") data.push(body);
    else if (kind === "IEND" && header !== undefined) return { header, data: concat(data) };
    at += 12 + n;
  }
  return refuse("it ends too early");
}

/** Adds to each byte what its filter predicts from the bytes to the left and above. */
function unfilter(
  filter: number,
  line: Uint8Array,
  out: Uint8Array,
  at: number,
  row: number,
  bpp: number,
): void {
  if (filter === 0 || (filter === 2 && at === 0)) {
    out.set(line, at);
    return;
  }
  for (let i = 0; i < row; i++) {
    const left = i < bpp ? 0 : (out[at + i - bpp] as number);
    const up = at === 0 ? 0 : (out[at + i - row] as number);
    const corner = at === 0 || i < bpp ? 0 : (out[at + i - row - bpp] as number);
    out[at + i] = (line[i] as number) + predicted(filter, left, up, corner);
  }
}

function predicted(filter: number, left: number, up: number, corner: number): number {
  if (filter === 1) return left;
  if (filter === 2) return up;
  if (filter === 3) return (left + up) >> 1;
  // the neighbour closest to left + up - corner; ties in this order
  const [a, b, c] = [Math.abs(up - corner), Math.abs(left - corner), Math.abs(left + up - 2 * corner)];
  if (a <= b && a <= c) return left;
  return b <= c ? up : corner;
}

// ---- writing ----

function adler32(bytes: Uint8Array): number {
  let [a, b] = [1, 0];
  for (const x of bytes) {
    a = (a + x) % 65521;
    b = (b + a) % 65521;
  }
  return ((b << 16) | a) >>> 0;
}
const word = (n: number): number[] => [n >>> 24, (n >>> 16) & 255, (n >>> 8) & 255, n & 255];
function chunkOf(kind: string, body: Uint8Array): Uint8Array {
  const named = concat([new TextEncoder().encode(kind), body]);
  return concat([new Uint8Array(word(body.length)), named, new Uint8Array(word(crc32(named)))]);
}
/** A PNG file of a picture: as it is, without compression. */
export function encodePng({ width, height, channels, pixels }: Picture): Uint8Array {
  const color = Object.keys(CHANNELS).find((c) => CHANNELS[Number(c)] === channels);
  const row = width * channels;
  const lines = new Uint8Array(height * (row + 1));
  for (let y = 0; y < height; y++) lines.set(pixels.subarray(y * row, (y + 1) * row), y * (row + 1) + 1);
  const blocks: Uint8Array[] = [new Uint8Array([0x78, 1])];
  for (let at = 0; at < lines.length; at += 65535) {
    const part = lines.subarray(at, at + 65535);
    const n = part.length;
    const isLast = at + n === lines.length ? 1 : 0;
    blocks.push(new Uint8Array([isLast, n & 255, n >> 8, ~n & 255, (~n >> 8) & 255]), part);
  }
  blocks.push(new Uint8Array(word(adler32(lines))));
  const header = new Uint8Array([...word(width), ...word(height), 8, Number(color), 0, 0, 0]);
  return concat([
    new Uint8Array(SIGNATURE),
    chunkOf("IHDR", header),
    chunkOf("IDAT", concat(blocks)),
    chunkOf("IEND", new Uint8Array()),
  ]);
}
