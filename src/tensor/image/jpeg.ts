// What the markers of a JPEG file say: its size, its components and how they encode colours, and how the
// camera was held (EXIF). A decoder is the platform's or a library; this is read before it starts, so that a
// file that claims too much is refused, and turned pictures can be turned back.

import { FileError, type Refuse } from "../../errors.ts";
import type { Picture } from "./png.ts";

export interface JpegFacts {
  readonly width: number;
  readonly height: number;
  /** 1 grey, 3 colours, 4 inks */
  readonly components: number;
  /** three components are red, green and blue, not brightness and two differences */
  readonly isRgb: boolean;
  readonly hasAdobe: boolean;
  /** 1 to 8, as in EXIF; 1: upright */
  readonly orientation: number;
  /** the position of the byte that says it, if any */
  readonly orientationAt: number | undefined;
}

const FRAMES: Readonly<Record<number, string>> = {
  195: "lossless coding",
  197: "hierarchical coding",
  198: "hierarchical coding",
  199: "hierarchical coding",
  201: "arithmetic coding",
  202: "arithmetic coding",
  203: "arithmetic coding",
  205: "arithmetic coding",
  206: "arithmetic coding",
  207: "arithmetic coding",
};
/** A progressive picture has about ten scans; each costs a pass over all of it. */
const MAX_SCANS = 200;
const [SOI, SOS, APP0, APP1, APP14] = [0xd8, 0xda, 0xe0, 0xe1, 0xee];

export const isJpeg = (file: Uint8Array): boolean => file[0] === 0xff && file[1] === SOI && file[2] === 0xff;

const textAt = (file: Uint8Array, at: number, text: string): boolean =>
  Array.from(text).every((c, i) => file[at + i] === c.charCodeAt(0));

export function jpegFacts(file: Uint8Array, name: string, maxPixels: number): JpegFacts {
  const refuse = (why: string): never => {
    throw new FileError(`jpeg: ${name} is refused: ${why}`);
  };
  const v = new DataView(file.buffer, file.byteOffset, file.byteLength);
  let frame: Pick<JpegFacts, "width" | "height" | "components"> & { readonly ids: string } = {
    width: 0,
    height: 0,
    components: 0,
    ids: "",
  };
  let [hasJfif, transform, orientationAt] = [false, -1, undefined as number | undefined];
  let at = 2;
  for (;;) {
    while (file[at] === 0xff && file[at + 1] === 0xff) at++; // fill bytes
    if (at + 4 > file.byteLength) refuse("it ends before its picture begins");
    if (file[at] !== 0xff) refuse(`byte ${at} is ${file[at]}, expected a marker`);
    const marker = file[at + 1] as number;
    const n = v.getUint16(at + 2);
    const body = at + 4;
    if (n < 2 || at + 2 + n > file.byteLength) refuse(`its segment at byte ${at} is cut off`);
    if (marker === SOS) break;
    if (marker === APP0) hasJfif ||= textAt(file, body, "JFIF\0");
    if (marker === APP1) orientationAt ??= orientationIn(file.subarray(0, at + 2 + n), body);
    if (marker === APP14 && n >= 14 && textAt(file, body, "Adobe")) transform = file[body + 11] as number;
    if (FRAMES[marker] !== undefined) refuse(`it uses ${FRAMES[marker]}; save it again as an ordinary JPEG`);
    if (marker >= 0xc0 && marker <= 0xc2) {
      if (frame.components !== 0) refuse("it has two frames");
      frame = readFrame(file, v, body, n, maxPixels, refuse);
    }
    at += 2 + n;
  }
  if (frame.components === 0) refuse("it has a scan before its frame");
  checkScans(file, at, refuse);
  const { ids, ...size } = frame;
  // as in libjpeg: the markers decide, then the names of the components
  const isRgb = !hasJfif && (transform < 0 ? ids === "RGB" : transform === 0);
  const orientation = orientationAt === undefined ? 1 : (file[orientationAt] as number);
  return { ...size, isRgb, hasAdobe: transform >= 0, orientation, orientationAt };
}

function readFrame(
  file: Uint8Array,
  v: DataView,
  body: number,
  n: number,
  maxPixels: number,
  refuse: Refuse,
) {
  if (n < 8) refuse("its frame is cut off");
  const [bits, height, width, components] = [
    file[body] as number,
    v.getUint16(body + 1),
    v.getUint16(body + 3),
    file[body + 5] as number,
  ];
  if (bits !== 8) refuse(`its samples have ${bits} bits, expected 8`);
  if (width === 0 || height === 0) refuse(`its size is ${width} × ${height}`);
  if (![1, 3, 4].includes(components) || n !== 8 + 3 * components)
    refuse(`it has ${components} components, expected 1, 3 or 4`);
  if (width * height > maxPixels) {
    refuse(
      `its header claims ${width} × ${height} = ${width * height} pixels, the limit is ${maxPixels}; ` +
        "raise maxPixels if you trust it",
    );
  }
  const ids = Array.from({ length: components }, (_, i) => String.fromCharCode(file[body + 6 + 3 * i] ?? 0));
  return { width, height, components, ids: ids.join("") };
}

function checkScans(file: Uint8Array, from: number, refuse: Refuse): void {
  let scans = 0;
  for (let at = file.indexOf(0xff, from); at >= 0; at = file.indexOf(0xff, at + 1)) {
    if (file[at + 1] === SOS && ++scans > MAX_SCANS) refuse(`it has more than ${MAX_SCANS} scans`);
  }
}

/** The position of the low byte of EXIF's orientation, if there is one; `file` ends with the segment. */
function orientationIn(file: Uint8Array, body: number): number | undefined {
  const tiff = body + 6;
  if (!textAt(file, body, "Exif\0\0") || tiff + 8 > file.byteLength) return undefined;
  const isLittle = textAt(file, tiff, "II");
  if (!isLittle && !textAt(file, tiff, "MM")) return undefined;
  const v = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const list = tiff + v.getUint32(tiff + 4, isLittle);
  if (list + 2 > file.byteLength) return undefined;
  const count = v.getUint16(list, isLittle);
  for (let i = 0, at = list + 2; i < count && at + 12 <= file.byteLength; i++, at += 12) {
    if (v.getUint16(at, isLittle) !== 0x0112 || v.getUint16(at + 2, isLittle) !== 3) continue;
    const value = v.getUint16(at + 8, isLittle);
    return value >= 1 && value <= 8 ? at + (isLittle ? 8 : 9) : undefined;
  }
  return undefined;
}

/** The file without its orientation, so that a decoder does not turn the picture. */
export function asStored(file: Uint8Array, { orientation, orientationAt }: JpegFacts): Uint8Array {
  if (orientation === 1 || orientationAt === undefined) return file;
  const copy = file.slice();
  copy[orientationAt] = 1;
  return copy;
}

/** The picture as the camera saw it: mirrored, turned or both, by EXIF's number. */
export function upright({ width, height, channels, pixels }: Picture, orientation: number): Picture {
  if (orientation === 1) return { width, height, channels, pixels };
  const isTurned = orientation >= 5;
  const [w, h] = isTurned ? [height, width] : [width, height];
  const [flipsRows, flipsColumns] = [
    [3, 4, 6, 7],
    [2, 3, 7, 8],
  ].map((list) => list.includes(orientation));
  const out = pixels.slice();
  for (let y = 0, to = 0; y < h; y++) {
    for (let x = 0; x < w; x++) {
      const row = isTurned ? x : y;
      const column = isTurned ? y : x;
      const from =
        ((flipsRows ? height - 1 - row : row) * width + (flipsColumns ? width - 1 - column : column)) *
        channels;
      for (let c = 0; c < channels; c++) out[to++] = pixels[from + c] as number;
    }
  }
  return { width: w, height: h, channels, pixels: out };
}
