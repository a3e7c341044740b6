// Small PNG and JPEG files for tests, written from the standards and not by what is tested: PNG of all
// depths, colour types and filters, interlaced or not; JPEG whose blocks of 8 × 8 have one value each, so
// that every decoder gives that value exactly.

import { crc32, deflateSync } from "node:zlib";
import { openJpeg } from "../../../src/host/jpeg.ts";

/** The package that reads JPEG is optional. */
export const hasJpeg = ((): boolean => {
  try {
    return openJpeg() !== undefined;
  } catch (e) {
    console.warn(`tests of JPEG are skipped: ${(e as Error).message}`);
    return false;
  }
})();

export const u32 = (n: number): number[] => [n >>> 24, n >>> 16, n >>> 8, n].map((x) => x & 255);
const u16 = (n: number): number[] => [(n >> 8) & 255, n & 255];

// ---- PNG ----

export function chunk(kind: string, body: Iterable<number>): number[] {
  const all = Uint8Array.from([...new TextEncoder().encode(kind), ...body]);
  return [...u32(all.length - 4), ...all, ...u32(crc32(all))];
}
export interface PngSpec {
  /** the samples of each row */
  readonly rows: readonly (readonly number[])[];
  /** of a pixel in the file */
  readonly samples: number;
  readonly depth?: number;
  readonly color?: number;
  readonly isInterlaced?: boolean;
  /** row i of a pass has the filter i of these, and again from the first; default: all five */
  readonly filters?: readonly number[];
  /** between header and data */
  readonly chunks?: Readonly<Record<string, readonly number[]>>;
}
const ADAM7 = [
  [0, 0, 8, 8],
  [0, 4, 8, 8],
  [4, 0, 8, 4],
  [0, 2, 4, 4],
  [2, 0, 4, 2],
  [0, 1, 2, 2],
  [1, 0, 2, 1],
] as const; // first row, first column, row step, column step

/** Samples as the bytes of a row, most significant bits first. */
function packed(samples: readonly number[], depth: number): number[] {
  const bits = samples.flatMap((x) => Array.from({ length: depth }, (_, i) => (x >> (depth - 1 - i)) & 1));
  return Array.from({ length: Math.ceil(bits.length / 8) }, (_, i) =>
    Array.from({ length: 8 }, (_, j) => bits[8 * i + j] ?? 0).reduce((n, b) => 2 * n + b, 0),
  );
}
function filtered(lines: readonly number[][], step: number, filters: readonly number[]): number[] {
  return lines.flatMap((line, y) => {
    const filter = filters[y % filters.length] as number;
    const up = lines[y - 1] ?? line.map(() => 0);
    const rest = line.map((v, i) => {
      const [a, b, c] = [line[i - step] ?? 0, up[i] as number, i < step ? 0 : (up[i - step] as number)];
      const p = a + b - c;
      const nearest = [a, b, c].reduce((best, x) => (Math.abs(p - x) < Math.abs(p - best) ? x : best), a);
      return (v - ([0, a, b, (a + b) >> 1, nearest][filter] as number)) & 255;
    });
    return [filter, ...rest];
  });
}
export function pngFile(spec: PngSpec): Uint8Array {
  const { rows, samples, depth = 8, isInterlaced = false, filters = [0, 1, 2, 3, 4], chunks = {} } = spec;
  const color = spec.color ?? ({ 1: 0, 2: 4, 3: 2, 4: 6 }[samples] as number);
  const [width, height] = [(rows[0] as readonly number[]).length / samples, rows.length];
  const step = Math.max(1, (samples * depth) / 8);
  const passes = isInterlaced ? ADAM7 : ([[0, 0, 1, 1]] as const);
  const bytes = passes.flatMap(([y0, x0, dy, dx]) => {
    const lines = rows
      .filter((_, y) => y >= y0 && (y - y0) % dy === 0)
      .map((row) =>
        row.filter((_, i) => {
          const x = Math.floor(i / samples);
          return x >= x0 && (x - x0) % dx === 0;
        }),
      )
      .filter((row) => row.length > 0);
    return filtered(
      lines.map((row) => packed(row, depth)),
      step,
      filters,
    );
  });
  const data = deflateSync(Uint8Array.from(bytes));
  return Uint8Array.from([
    ...[0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10],
    ...chunk("IHDR", [...u32(width), ...u32(height), depth, color, 0, 0, isInterlaced ? 1 : 0]),
    ...chunk("tEXt", [1, 2]),
    ...Object.entries(chunks).flatMap(([kind, body]) => chunk(kind, body)),
    ...chunk("IDAT", data.subarray(0, 5)),
    ...chunk("IDAT", data.subarray(5)),
    ...chunk("IEND", []),
  ]);
}
/** The file with CRCs that fit, so that what is broken in it is found by other checks. */
export function withCrcs(file: Uint8Array): Uint8Array {
  const out = file.slice();
  const v = new DataView(out.buffer);
  for (let at = 8; at + 12 <= out.length; ) {
    const end = at + 8 + v.getUint32(at);
    if (end + 4 > out.length) break;
    v.setUint32(end, crc32(out.subarray(at + 4, end)));
    at = end + 4;
  }
  return out;
}

// ---- JPEG ----

export interface JpegSpec {
  /** of each component: rows of the values of blocks */
  readonly blocks: readonly (readonly (readonly number[])[])[];
  readonly isProgressive?: boolean;
  /** the transform of an Adobe segment; default: none */
  readonly adobe?: number;
  readonly hasJfif?: boolean;
  /** EXIF's, big or little endian */
  readonly orientation?: number;
  readonly isLittle?: boolean;
  /** the names of the components; default: 1, 2, ... */
  readonly ids?: readonly number[];
  /** the size in pixels, if it does not end with a block */
  readonly size?: readonly [width: number, height: number];
}
const segment = (marker: number, body: readonly number[]): number[] => [
  0xff,
  marker,
  ...u16(body.length + 2),
  ...body,
];
const ascii = (text: string): number[] => Array.from(text, (c) => c.charCodeAt(0));

class Bits {
  readonly #bits: number[] = [];
  put(value: number, count: number): void {
    for (let i = count - 1; i >= 0; i--) this.#bits.push((value >> i) & 1);
  }
  /** The code of the size of a difference has four bits; then its bits follow. */
  difference(d: number): void {
    const size = d === 0 ? 0 : Math.floor(Math.log2(Math.abs(d))) + 1;
    this.put(size, 4);
    this.put(d < 0 ? d + 2 ** size - 1 : d, size);
  }
  bytes(): number[] {
    while (this.#bits.length % 8 !== 0) this.#bits.push(1);
    return Array.from({ length: this.#bits.length / 8 }, (_, i) =>
      this.#bits.slice(8 * i, 8 * i + 8).reduce((n, b) => 2 * n + b, 0),
    ).flatMap((b) => (b === 255 ? [255, 0] : [b]));
  }
}

/** With this table the first coefficient of a block is its value less 128, in decoders that scale by 8. */
const QUANTISER = 8;
const exif = (orientation: number, isLittle: boolean): number[] => {
  const put = (n: number, size: number): number[] => {
    const bytes = Array.from({ length: size }, (_, i) => (n >> (8 * i)) & 255);
    return isLittle ? bytes : bytes.reverse();
  };
  const other = [...put(0x010f, 2), ...put(2, 2), ...put(1, 4), ...put(0, 4)];
  const entry = [...put(0x0112, 2), ...put(3, 2), ...put(1, 4), ...put(orientation, 2), 0, 0];
  const list = [...put(2, 2), ...other, ...entry, ...put(0, 4)];
  return [...ascii("Exif"), 0, 0, ...ascii(isLittle ? "II" : "MM"), ...put(42, 2), ...put(8, 4), ...list];
};

export function jpegFile(spec: JpegSpec): Uint8Array {
  const { blocks, isProgressive = false, adobe, hasJfif = false, orientation, isLittle = false } = spec;
  const ids = spec.ids ?? blocks.map((_, i) => i + 1);
  const [first = []] = blocks;
  const [width, height] = spec.size ?? [(first[0]?.length ?? 0) * 8, first.length * 8];
  const values = blocks.map((rows) => rows.flat().map((v) => v - 128));
  const scan = (which: readonly number[], spectrum: readonly number[], write: (bits: Bits) => void) => {
    const bits = new Bits();
    write(bits);
    const components = which.flatMap((c) => [ids[c] as number, 0]);
    return [...segment(0xda, [which.length, ...components, ...spectrum]), ...bits.bytes()];
  };
  const all = blocks.map((_, i) => i);
  const interleaved = (write: (c: number, i: number) => void): void =>
    (values[0] as number[]).forEach((_, i) => {
      for (const c of all) write(c, i);
    });
  const differences = (shift: number, bits: Bits, end: () => void): void =>
    interleaved((c, i) => {
      const list = values[c] as number[];
      bits.difference(((list[i] as number) >> shift) - ((list[i - 1] ?? 0) >> shift));
      end();
    });
  const scans = isProgressive
    ? [
        ...scan(all, [0, 0, 0x01], (bits) => differences(1, bits, () => {})),
        ...all.flatMap((c) =>
          scan([c], [1, 63, 0], (bits) => (values[c] as number[]).map(() => bits.put(0, 1))),
        ),
        ...scan(all, [0, 0, 0x10], (bits) =>
          interleaved((c, i) => bits.put((values[c]?.[i] as number) & 1, 1)),
        ),
      ]
    : scan(all, [0, 63, 0], (bits) => differences(0, bits, () => bits.put(0, 1)));
  const components = ids.flatMap((id) => [id, 0x11, 0]);
  return Uint8Array.from([
    ...[0xff, 0xd8],
    ...(hasJfif ? segment(0xe0, [...ascii("JFIF"), 0, 1, 1, 0, 0, 1, 0, 1, 0, 0]) : []),
    ...(orientation === undefined ? [] : segment(0xe1, exif(orientation, isLittle))),
    ...(adobe === undefined ? [] : segment(0xee, [...ascii("Adobe"), 0, 100, 0, 0, 0, 0, adobe])),
    ...segment(0xdb, [0, ...new Array<number>(64).fill(QUANTISER)]),
    ...segment(isProgressive ? 0xc2 : 0xc0, [8, ...u16(height), ...u16(width), ids.length, ...components]),
    // 12 codes of four bits; one code of one bit: the end of the block
    ...segment(0xc4, [
      0,
      0,
      0,
      0,
      12,
      ...new Array<number>(12).fill(0),
      ...Array.from({ length: 12 }, (_, i) => i),
    ]),
    ...segment(0xc4, [0x10, 1, ...new Array<number>(15).fill(0), 0]),
    ...scans,
    ...[0xff, 0xd9],
  ]);
}
