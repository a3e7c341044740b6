// JPEG where the platform has none: the optional package jpeg-js decodes and encodes. Other formats are
// refused by name. browser.ts is its twin.

import { FileError } from "../../errors.ts";
import { openJpeg } from "../../host/jpeg.ts";
import { converted } from "./convert.ts";
import { type JpegFacts, upright } from "./jpeg.ts";
import type { Picture } from "./png.ts";

/** How files of other formats begin, and at which byte. */
const OTHERS: readonly (readonly [name: string, at: number, text: string])[] = [
  ["GIF", 0, "GIF8"],
  ["WebP", 8, "WEBP"],
  ["AVIF or HEIC", 4, "ftyp"],
  ["BMP", 0, "BM"],
  ["TIFF", 0, "II*"],
  ["TIFF", 0, "MM"],
  ["SVG", 0, "<"],
];

/** The memory of a decoder: its coefficients and samples, for each pixel of a component. */
const BYTES_PER_SAMPLE = 16;
const MIB = 2 ** 20;
/** An Adobe segment: four components without one are read as if it were there, as other decoders do. */
const ADOBE = [0xff, 0xee, 0, 14, 65, 100, 111, 98, 101, 0, 100, 0, 0, 0, 0, 0];

/** `facts` are those of a JPEG. The picture is turned upright unless it is wanted as stored. */
export async function decodeOther(
  file: Uint8Array,
  name: string,
  facts: JpegFacts | undefined,
  isUpright: boolean,
): Promise<Picture> {
  if (facts === undefined) {
    const text = String.fromCharCode(...file.subarray(0, 16));
    const kind = OTHERS.find(([, at, start]) => text.startsWith(start, at))?.[0];
    const what = kind === undefined ? "neither a PNG nor a JPEG file" : `a ${kind} file`;
    throw new FileError(
      `${name} is ${what}; Node reads PNG and JPEG. If these are pixels, use new Tensor(…).reshape(…)`,
    );
  }
  const { decode } = openJpeg();
  const { width, height, components } = facts;
  const marked =
    components === 4 && !facts.hasAdobe ? [...file.subarray(0, 2), ...ADOBE, ...file.subarray(2)] : file;
  const samples = (width + 64) * (height + 64) * components;
  try {
    const { data } = decode(Uint8Array.from(marked), {
      useTArray: true,
      formatAsRGBA: false,
      tolerantDecoding: false,
      maxResolutionInMP: (width * height + 0.5) / 1e6, // it is multiplied by 1e6 again, which rounds
      maxMemoryUsageInMB: 16 + (samples * BYTES_PER_SAMPLE) / MIB,
      ...(components === 3 && { colorTransform: !facts.isRgb }),
    });
    const found = converted({ width, height, channels: 3, pixels: data }, components === 1 ? 1 : 3);
    return upright(found, isUpright ? facts.orientation : 1);
  } catch (cause) {
    throw new FileError(`jpeg: ${name} cannot be decoded: ${(cause as Error).message}`, { cause });
  }
}

/** `quality` from 1 to 100. */
export async function encodeJpeg(picture: Picture, quality: number): Promise<Uint8Array> {
  const { encode } = openJpeg();
  const { width, height, pixels } = converted(picture, 4);
  return Uint8Array.from(encode({ width, height, data: pixels as Uint8Array }, quality).data);
}
