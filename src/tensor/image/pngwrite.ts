// Writes PNG files of 8 or 16 bits: each row with the filter that leaves the smallest differences, then
// deflate.

import { concat, crc32, deflate } from "./deflate.ts";
import { type Picture, predicted, SIGNATURE } from "./png.ts";

/** The colour type by the number of channels. */
const COLORS: Readonly<Record<number, number>> = { 1: 0, 2: 4, 3: 2, 4: 6 };

const word = (n: number): number[] => [n >>> 24, (n >>> 16) & 255, (n >>> 8) & 255, n & 255];
function chunkOf(kind: string, body: Uint8Array): Uint8Array {
  const named = concat([new TextEncoder().encode(kind), body]);
  return concat([new Uint8Array(word(body.length)), named, new Uint8Array(word(crc32(named)))]);
}

export async function encodePng({ width, height, channels, pixels }: Picture): Promise<Uint8Array> {
  const depth = pixels.BYTES_PER_ELEMENT * 8;
  const bytes = depth === 8 ? (pixels as Uint8Array) : bigEndian(pixels as Uint16Array);
  const row = (width * channels * depth) / 8;
  const step = (channels * depth) / 8;
  const lines = new Uint8Array(height * (row + 1));
  for (let y = 0; y < height; y++) {
    const line = bytes.subarray(y * row, (y + 1) * row);
    const above = y === 0 ? undefined : bytes.subarray((y - 1) * row, y * row);
    filterRow(line, above, step, lines.subarray(y * (row + 1), (y + 1) * (row + 1)));
  }
  const header = [...word(width), ...word(height), depth, COLORS[channels] as number, 0, 0, 0];
  return concat([
    new Uint8Array(SIGNATURE),
    chunkOf("IHDR", new Uint8Array(header)),
    chunkOf("IDAT", await deflate(lines, "deflate")),
    chunkOf("IEND", new Uint8Array()),
  ]);
}

function bigEndian(samples: Uint16Array): Uint8Array {
  const bytes = new Uint8Array(2 * samples.length);
  const v = new DataView(bytes.buffer);
  for (let i = 0; i < samples.length; i++) v.setUint16(2 * i, samples[i] as number);
  return bytes;
}

/** The filter's number and the row without what it predicts: small differences deflate best. */
function filterRow(line: Uint8Array, above: Uint8Array | undefined, step: number, out: Uint8Array): void {
  let [best, least] = [0, Infinity];
  const without = (filter: number, put?: Uint8Array): number => {
    let sum = 0;
    for (let i = 0; i < line.length; i++) {
      const left = i < step ? 0 : (line[i - step] as number);
      const up = above === undefined ? 0 : (above[i] as number);
      const corner = above === undefined || i < step ? 0 : (above[i - step] as number);
      const rest = ((line[i] as number) - predicted(filter, left, up, corner)) & 255;
      if (put !== undefined) put[i + 1] = rest;
      sum += rest < 128 ? rest : 256 - rest;
    }
    return sum;
  };
  for (let filter = 0; filter <= 4; filter++) {
    const sum = without(filter);
    if (sum < least) [best, least] = [filter, sum];
  }
  out[0] = best;
  without(best, out);
}
