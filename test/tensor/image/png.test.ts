// PNG files of every kind are read to their samples, and files that lie are refused. What is written is read
// back. The files that are read come from a writer of the tests (files.ts).

import { crc32, deflateSync, inflateSync } from "node:zlib";
import { FileError } from "gradloom";
import { describe, expect, test } from "vitest";
import { decodePng } from "../../../src/tensor/image/png.ts";
import { encodePng } from "../../../src/tensor/image/pngwrite.ts";
import { chunk, type PngSpec, pngFile, u32, withCrcs } from "./files.ts";

const noise = (n: number, seed: number, depth = 8): number[] =>
  Array.from({ length: n }, (_, i) => (Math.imul(i + seed, 2654435761) >>> 7) % 2 ** depth);
const rowsOf = (width: number, height: number, samples: number, depth: number): number[][] =>
  Array.from({ length: height }, (_, y) => noise(width * samples, 100 * y, depth));

const KINDS = [
  ...[1, 2, 4, 8, 16].map((depth) => ({ color: 0, samples: 1, depth })),
  ...[8, 16].flatMap((depth) => [
    { color: 2, samples: 3, depth },
    { color: 4, samples: 2, depth },
    { color: 6, samples: 4, depth },
  ]),
];
// small sizes leave passes of an interlaced picture empty
const SIZES = [
  [1, 1],
  [2, 3],
  [5, 1],
  [7, 11],
  [9, 8],
] as const;

test.each(KINDS)("colour type $color of $depth bits, all filters, plain and interlaced", async (kind) => {
  for (const [width, height] of SIZES) {
    for (const isInterlaced of [false, true]) {
      const rows = rowsOf(width, height, kind.samples, kind.depth);
      const found = await decodePng(pngFile({ ...kind, rows, isInterlaced }));
      expect([found.width, found.height, found.channels]).toEqual([width, height, kind.samples]);
      const scale = kind.depth < 8 ? 255 / (2 ** kind.depth - 1) : 1;
      expect([...found.pixels]).toEqual(rows.flat().map((x) => x * scale));
      expect(found.pixels.BYTES_PER_ELEMENT).toBe(kind.depth === 16 ? 2 : 1);
    }
  }
});

test.each([1, 2, 4, 8])("a palette of %i bits, with and without alpha", async (depth) => {
  const colors = Math.min(2 ** depth, 200);
  const palette = noise(3 * colors, 5);
  const alpha = noise(Math.ceil(colors / 2), 9);
  const rows = rowsOf(9, 4, 1, depth).map((row) => row.map((x) => x % colors));
  const spec = { rows, samples: 1, depth, color: 3, isInterlaced: true } satisfies PngSpec;
  const plain = await decodePng(pngFile({ ...spec, chunks: { PLTE: palette } }));
  expect(plain.channels).toBe(3);
  expect([...plain.pixels]).toEqual(rows.flat().flatMap((c) => palette.slice(3 * c, 3 * c + 3)));
  const faded = await decodePng(pngFile({ ...spec, chunks: { PLTE: palette, tRNS: alpha } }));
  const expected = rows.flat().flatMap((c) => [...palette.slice(3 * c, 3 * c + 3), alpha[c] ?? 255]);
  expect([faded.channels, [...faded.pixels]]).toEqual([4, expected]);
});

test("a transparent colour becomes alpha, before samples are scaled", async () => {
  const grey = pngFile({ rows: [[0, 1, 2, 3]], samples: 1, depth: 2, chunks: { tRNS: [0, 2] } });
  const { channels, pixels } = await decodePng(grey);
  expect([channels, [...pixels]]).toEqual([2, [0, 255, 85, 255, 170, 0, 255, 255]]);
  const rows = [[1, 2, 3, 1, 2, 4]];
  const color = await decodePng(pngFile({ rows, samples: 3, chunks: { tRNS: [0, 1, 0, 2, 0, 4] } }));
  expect([...color.pixels]).toEqual([1, 2, 3, 255, 1, 2, 4, 0]);
  const wide = pngFile({
    rows: [[300, 2, 3, 301, 2, 3]],
    samples: 3,
    depth: 16,
    chunks: { tRNS: [1, 45, 0, 2, 0, 3] },
  });
  expect([...(await decodePng(wide)).pixels]).toEqual([300, 2, 3, 65535, 301, 2, 3, 0]);
});

describe("refused", () => {
  const rows = [noise(6, 1), noise(6, 2)];
  const good = pngFile({ rows, samples: 3 });
  /** The file with bytes of its header changed, CRCs in order. */
  const header = (at: number, bytes: readonly number[]): Uint8Array => {
    const file = good.slice();
    file.set(bytes, 16 + at);
    return withCrcs(file);
  };
  const flipped = (text: string): Uint8Array => {
    const file = good.slice();
    const at = Buffer.from(file).indexOf(text) + 5;
    file[at] = (file[at] as number) ^ 1;
    return file;
  };
  const indexed = { rows: [[0, 1, 2]], samples: 1, color: 3 } satisfies PngSpec;
  const moved = (kind: string) =>
    Uint8Array.from([...good.subarray(0, good.length - 12), ...chunk(kind, [1, 2, 3]), ...chunk("IEND", [])]);
  const bomb = Uint8Array.from([
    ...good.subarray(0, 8),
    ...chunk("IHDR", [...u32(60_000), ...u32(60_000), 8, 6, 0, 0, 0]),
    ...chunk("IDAT", deflateSync(new Uint8Array(1000))),
    ...chunk("IEND", []),
  ]);
  test.each<[string, Uint8Array, RegExp]>([
    ["not a picture", new Uint8Array(50), /does not begin/],
    ["cut off", good.subarray(0, good.length - 20), /cut off|ends too early/],
    ["without its end", good.subarray(0, good.length - 12), /ends too early/],
    ["a wrong CRC of the data", flipped("IDAT"), /the CRC of its IDAT is wrong/],
    ["a wrong CRC of the header", flipped("IHDR"), /the CRC of its IHDR is wrong/],
    ["sizes that lie", header(4, u32(3)), /holds 14 bytes and claims 21/],
    ["no width", header(0, u32(0)), /its size is 0 × 2/],
    ["a bomb", bomb, /60000 × 60000 = 3600000000 pixels, the limit is 134217728; raise maxPixels/],
    ["depth 4 of colours", header(8, [4]), /colour type 2, depth 4, .*not allowed by the standard/],
    ["colour type 5", header(9, [5]), /colour type 5/],
    ["interlace 2", header(12, [2]), /interlace 2/],
    ["compression 1", header(10, [1]), /compression 1/],
    ["a palette that is not there", pngFile(indexed), /its palette has 0 colours, expected 1 to 256/],
    [
      "a palette of 2/3 colours",
      pngFile({ ...indexed, chunks: { PLTE: [1, 2] } }),
      /palette has 0.66\d+ colours/,
    ],
    [
      "a colour beyond the palette",
      pngFile({ ...indexed, chunks: { PLTE: [1, 2, 3, 4, 5, 6] } }),
      /a pixel has colour 2 of a palette of 2/,
    ],
    [
      "more alpha than colours",
      pngFile({ ...indexed, chunks: { PLTE: noise(9, 1), tRNS: [1, 2, 3, 4] } }),
      /its tRNS has 4 entries for 3 colours/,
    ],
    [
      "half a transparent colour",
      pngFile({ rows, samples: 3, chunks: { tRNS: [1, 2] } }),
      /its tRNS has 2 bytes, expected 6/,
    ],
    ["a palette after the data", moved("PLTE"), /it has a PLTE where none belongs/],
    ["an unknown part that matters", moved("ABCD"), /it has a ABCD where none belongs/],
    ["filter 5", pngFile({ rows, samples: 3, filters: [0, 5] }), /row 1 has filter 5/],
    ["no data", Uint8Array.from([...good.subarray(0, 33), ...chunk("IEND", [])]), /it has no IDAT/],
  ])("%s", async (_, file, message) => {
    await expect(decodePng(file)).rejects.toThrow(FileError);
    await expect(decodePng(file)).rejects.toThrow(message);
  });
  test("unknown parts that do not matter are passed over", async () => {
    expect((await decodePng(moved("abcd"))).width).toBe(2);
    expect((await decodePng(good, "it", 4)).height).toBe(2);
    await expect(decodePng(good, "it", 3)).rejects.toThrow(/2 × 2 = 4 pixels, the limit is 3/);
  });
});

test.each([1, 2, 3, 4])("what is written is read back: %i channels, 8 and 16 bits", async (channels) => {
  for (const depth of [8, 16]) {
    const all = noise(13 * 9 * channels, 3, depth);
    const pixels = depth === 8 ? Uint8Array.from(all) : Uint16Array.from(all);
    const found = await decodePng(await encodePng({ width: 13, height: 9, channels, pixels }));
    expect(found).toEqual({ width: 13, height: 9, channels, pixels });
  }
});
test("a smooth picture takes a part of its bytes, and its parts are right", async () => {
  const pixels = Uint8Array.from({ length: 64 * 64 }, (_, i) => (i % 64) + 2 * Math.floor(i / 64));
  const file = await encodePng({ width: 64, height: 64, channels: 1, pixels });
  expect(file.length).toBeLessThan(pixels.length / 10);
  const data = file.subarray(41, file.length - 16);
  expect(inflateSync(data).length).toBe(64 * 65);
  expect(crc32(file.subarray(37, file.length - 16))).toBe(
    new DataView(file.buffer).getUint32(file.length - 16),
  );
});
