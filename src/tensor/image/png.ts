// Reads PNG files: all bit depths and colour types, palettes, transparent colours, interlace. A header is
// checked before memory is taken for what it claims, a chunk by its CRC, the data by its length. Colour
// profiles and gamma are not applied: values are those of the file. pngwrite.ts writes.

import { FileError, type Refuse } from "../../errors.ts";
import { concat, crc32, inflate } from "./deflate.ts";

export interface Picture {
  readonly width: number;
  readonly height: number;
  /** 1 grey, 2 grey and alpha, 3 colours, 4 colours and alpha */
  readonly channels: number;
  /** row by row, channels interleaved; a Uint16Array of 16 bits */
  readonly pixels: Uint8Array | Uint16Array;
}

export const SIGNATURE: readonly number[] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
/** What a colour type has: samples of a pixel in the file, and the bits that a sample may have. */
const TYPES: Readonly<Record<number, { readonly samples: number; readonly depths: readonly number[] }>> = {
  0: { samples: 1, depths: [1, 2, 4, 8, 16] },
  2: { samples: 3, depths: [8, 16] },
  3: { samples: 1, depths: [1, 2, 4, 8] },
  4: { samples: 2, depths: [8, 16] },
  6: { samples: 4, depths: [8, 16] },
};
const PALETTE = 3;
/** Pictures with more pixels are refused: a small file can claim any number. */
export const MAX_PIXELS = 2 ** 27;
/** Adam7: the first column and row of a pass, and the steps. */
const PASSES = [
  [0, 0, 8, 8],
  [4, 0, 8, 8],
  [0, 4, 4, 8],
  [2, 0, 4, 4],
  [0, 2, 2, 4],
  [1, 0, 2, 2],
  [0, 1, 1, 2],
] as const;

interface Header {
  readonly width: number;
  readonly height: number;
  readonly depth: number;
  readonly color: number;
  readonly samples: number;
  readonly isInterlaced: boolean;
}
interface Chunks {
  readonly header: Header;
  readonly palette: Uint8Array | undefined;
  /** the transparent colour, or the alpha of the palette */
  readonly transparent: Uint8Array | undefined;
  readonly data: Uint8Array;
}
/** A part of the picture that is stored by itself: all of it, or a pass. */
interface PngPass {
  readonly x: number;
  readonly y: number;
  readonly dx: number;
  readonly dy: number;
  readonly columns: number;
  readonly rows: number;
  readonly rowBytes: number;
}

export const isPng = (file: Uint8Array): boolean => SIGNATURE.every((b, i) => file[i] === b);

/** The values that samples stand for: palettes are looked up, fewer than 8 bits are scaled to 8. */
export async function decodePng(
  file: Uint8Array,
  name = "the picture",
  maxPixels = MAX_PIXELS,
): Promise<Picture> {
  const refuse = (why: string): never => {
    throw new FileError(`png: ${name} is refused: ${why}`);
  };
  if (!isPng(file)) refuse("it does not begin as a PNG file");
  const { header, palette, transparent, data } = readChunks(file, maxPixels, refuse);
  const passes = passesOf(header);
  const size = passes.reduce((n, { rows, rowBytes }) => n + rows * (rowBytes + 1), 0);
  const lines = await inflate(data, "deflate", size, name);
  const { width, height, depth, samples } = header;
  const raw = new (depth === 16 ? Uint16Array : Uint8Array)(width * height * samples);
  const pixelBytes = Math.max(1, (samples * depth) >> 3);
  let at = 0;
  for (const pass of passes) {
    let above: Uint8Array | undefined;
    for (let row = 0; row < pass.rows; row++) {
      const line = lines.subarray(at + 1, at + 1 + pass.rowBytes);
      const filter = lines[at] as number;
      if (filter > 4) refuse(`row ${row} has filter ${filter}, expected 0 to 4`);
      unfilter(filter, line, above, pixelBytes);
      unpack(line, raw, header, pass, row);
      above = line;
      at += 1 + pass.rowBytes;
    }
  }
  const { channels, pixels } =
    palette === undefined
      ? withAlpha(scaled(raw, header), raw, header, transparent)
      : lookedUp(raw, palette, transparent, refuse);
  return { width, height, channels, pixels };
}

// ---- chunks ----

function readHeader(body: Uint8Array, maxPixels: number, refuse: Refuse): Header {
  if (body.byteLength !== 13) refuse(`its IHDR has ${body.byteLength} bytes, expected 13`);
  const v = new DataView(body.buffer, body.byteOffset, body.byteLength);
  const [width, height] = [v.getUint32(0), v.getUint32(4)];
  const [depth, color, compression, filter, interlace] = body.subarray(8) as unknown as number[] as [
    number,
    number,
    number,
    number,
    number,
  ];
  if (width === 0 || height === 0) refuse(`its size is ${width} × ${height}`);
  if (width * height > maxPixels) {
    refuse(
      `its header claims ${width} × ${height} = ${width * height} pixels, the limit is ${maxPixels}; ` +
        "raise maxPixels if you trust it",
    );
  }
  const type = TYPES[color];
  if (type?.depths.includes(depth) !== true || compression !== 0 || filter !== 0 || interlace > 1) {
    return refuse(
      `colour type ${color}, depth ${depth}, compression ${compression}, filter ${filter}, interlace ${interlace} ` +
        "are not allowed by the standard",
    );
  }
  return { width, height, depth, color, samples: type.samples, isInterlaced: interlace === 1 };
}

function readChunks(file: Uint8Array, maxPixels: number, refuse: Refuse): Chunks {
  const v = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const data: Uint8Array[] = [];
  let header: Header | undefined;
  let palette: Uint8Array | undefined;
  let transparent: Uint8Array | undefined;
  for (let at = 8; at + 12 <= file.byteLength; ) {
    const n = v.getUint32(at);
    const kind = String.fromCharCode(...file.subarray(at + 4, at + 8));
    if (!/^[A-Za-z]{4}$/.test(kind)) refuse(`byte ${at} begins a chunk that has no name`);
    if (at + 12 + n > file.byteLength) refuse(`its ${kind} is cut off`);
    const body = file.subarray(at + 8, at + 8 + n);
    // what is not read may be anything
    const isRead = /^[A-Z]/.test(kind) || kind === "tRNS";
    if (isRead && crc32(file.subarray(at + 4, at + 8 + n)) !== v.getUint32(at + 8 + n)) {
      refuse(`the CRC of its ${kind} is wrong`);
    }
    if (header === undefined) {
      if (kind !== "IHDR") return refuse(`it begins with ${kind}, expected IHDR`);
      header = readHeader(body, maxPixels, refuse);
    } else if (kind === "IDAT") data.push(body);
    else if (kind === "IEND") return whole(header, palette, transparent, data, refuse);
    else if (kind === "PLTE" && palette === undefined && data.length === 0) palette = body;
    else if (kind === "tRNS" && data.length === 0) transparent = body;
    else if (isRead) refuse(`it has a ${kind} where none belongs`);
    at += 12 + n;
  }
  return refuse("it ends too early");
}

function whole(
  header: Header,
  palette: Uint8Array | undefined,
  transparent: Uint8Array | undefined,
  data: readonly Uint8Array[],
  refuse: Refuse,
): Chunks {
  const { color, depth, samples } = header;
  if (data.length === 0) refuse("it has no IDAT");
  const all = { header, data: concat(data) };
  if (color !== PALETTE) {
    // a palette of other types is a suggestion; alpha beside a transparent colour is not allowed
    const isFit = (color === 0 || color === 2) && transparent !== undefined;
    if (isFit && transparent.byteLength !== 2 * samples)
      refuse(`its tRNS has ${transparent.byteLength} bytes, expected ${2 * samples}`);
    return { ...all, palette: undefined, transparent: isFit ? transparent : undefined };
  }
  const colors = (palette?.byteLength ?? 0) / 3;
  if (!Number.isInteger(colors) || colors < 1 || colors > 2 ** depth)
    refuse(`its palette has ${colors} colours, expected 1 to ${2 ** depth}`);
  if ((transparent?.byteLength ?? 0) > colors)
    refuse(`its tRNS has ${transparent?.byteLength} entries for ${colors} colours`);
  return { ...all, palette, transparent };
}

// ---- rows ----

function passesOf({ width, height, depth, samples, isInterlaced }: Header): PngPass[] {
  return (isInterlaced ? PASSES : ([[0, 0, 1, 1]] as const)).flatMap(([x, y, dx, dy]) => {
    const columns = Math.ceil((width - x) / dx);
    const rows = Math.ceil((height - y) / dy);
    if (columns <= 0 || rows <= 0) return [];
    return [{ x, y, dx, dy, columns, rows, rowBytes: Math.ceil((columns * samples * depth) / 8) }];
  });
}

/** Adds to each byte what its filter predicts from the bytes to the left and above. */
function unfilter(filter: number, line: Uint8Array, above: Uint8Array | undefined, step: number): void {
  if (filter === 0) return;
  for (let i = 0; i < line.length; i++) {
    const left = i < step ? 0 : (line[i - step] as number);
    const up = above === undefined ? 0 : (above[i] as number);
    const corner = above === undefined || i < step ? 0 : (above[i - step] as number);
    line[i] = (line[i] as number) + predicted(filter, left, up, corner);
  }
}

export function predicted(filter: number, left: number, up: number, corner: number): number {
  if (filter === 0) return 0;
  if (filter === 1) return left;
  if (filter === 2) return up;
  if (filter === 3) return (left + up) >> 1;
  // the neighbour closest to left + up - corner; ties in this order
  const a = Math.abs(up - corner);
  const b = Math.abs(left - corner);
  const c = Math.abs(left + up - 2 * corner);
  if (a <= b && a <= c) return left;
  return b <= c ? up : corner;
}

/** Writes the samples of a row to their places in the picture. */
function unpack(
  line: Uint8Array,
  out: Uint8Array | Uint16Array,
  { width, depth, samples }: Header,
  { x, y, dx, dy, columns }: PngPass,
  row: number,
): void {
  const start = ((y + row * dy) * width + x) * samples;
  if (depth === 8 && dx === 1) {
    out.set(line, start);
    return;
  }
  const mask = 2 ** depth - 1;
  for (let column = 0; column < columns; column++) {
    for (let s = 0; s < samples; s++) {
      const i = column * samples + s;
      const bit = i * depth;
      const byte = line[bit >> 3] as number;
      out[start + column * dx * samples + s] =
        depth === 16
          ? ((line[2 * i] as number) << 8) | (line[2 * i + 1] as number)
          : (byte >> (8 - depth - (bit & 7))) & mask;
    }
  }
}

// ---- what samples mean ----

type Samples = Uint8Array | Uint16Array;
type Meaning = Pick<Picture, "channels" | "pixels">;

/** Fewer than 8 bits fill the range of 8. */
const scaled = (raw: Samples, { depth }: Header): Samples =>
  depth >= 8 ? raw : raw.map((x) => (x * 255) / (2 ** depth - 1));

/** One colour may be transparent: all others are opaque. */
function withAlpha(pixels: Samples, raw: Samples, header: Header, transparent?: Uint8Array): Meaning {
  const { samples, depth } = header;
  if (transparent === undefined) return { channels: samples, pixels };
  const mask = 2 ** depth - 1;
  const color = Array.from(
    { length: samples },
    (_, s) => (((transparent[2 * s] as number) << 8) | (transparent[2 * s + 1] as number)) & mask,
  );
  const count = raw.length / samples;
  const channels = samples + 1;
  const out = new (pixels.constructor as Uint8ArrayConstructor | Uint16ArrayConstructor)(count * channels);
  const opaque = depth === 16 ? 65535 : 255;
  for (let i = 0; i < count; i++) {
    let isSame = true;
    for (let s = 0; s < samples; s++) {
      out[i * channels + s] = pixels[i * samples + s] as number;
      isSame &&= raw[i * samples + s] === color[s];
    }
    out[i * channels + samples] = isSame ? 0 : opaque;
  }
  return { channels, pixels: out };
}

function lookedUp(raw: Samples, palette: Uint8Array, alpha: Uint8Array | undefined, refuse: Refuse): Meaning {
  const colors = palette.byteLength / 3;
  const channels = alpha === undefined ? 3 : 4;
  const pixels = new Uint8Array(raw.length * channels);
  for (let i = 0; i < raw.length; i++) {
    const color = raw[i] as number;
    if (color >= colors) refuse(`a pixel has colour ${color} of a palette of ${colors}`);
    for (let s = 0; s < 3; s++) pixels[i * channels + s] = palette[3 * color + s] as number;
    if (alpha !== undefined) pixels[i * channels + 3] = alpha[color] ?? 255;
  }
  return { channels, pixels };
}
