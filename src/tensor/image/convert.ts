// Pictures with other channels, and between pictures and the elements of a tensor: integers over their whole
// range, floats from 0 to 1, channels first or last.

import { type DType, dtypes } from "../../dtype.ts";
import type { Picture } from "./png.ts";

export type PixelLayout = "CHW" | "HWC";

/** The largest value of a sample. */
const topOf = ({ pixels }: Picture): number => (pixels.BYTES_PER_ELEMENT === 2 ? 65535 : 255);

/** Brightness out of the colours, in the shares of ITU-R 601. */
const grey = (red: number, green: number, blue: number): number =>
  Math.round((299 * red + 587 * green + 114 * blue) / 1000);

/**
 * The picture with 1 (grey), 2 (grey, alpha), 3 (colours) or 4 (colours, alpha) channels. Alpha that is not
 * wanted is dropped, alpha that is missing is opaque.
 */
export function converted(picture: Picture, channels: number): Picture {
  if (picture.channels === channels) return picture;
  const { width, height, pixels, channels: from } = picture;
  const count = width * height;
  const out = new (pixels.constructor as Uint8ArrayConstructor | Uint16ArrayConstructor)(count * channels);
  const top = topOf(picture);
  const [wasGrey, isGrey] = [from <= 2, channels <= 2];
  for (let i = 0; i < count; i++) {
    const [at, to] = [i * from, i * channels];
    const red = pixels[at] as number;
    const green = wasGrey ? red : (pixels[at + 1] as number);
    const blue = wasGrey ? red : (pixels[at + 2] as number);
    if (isGrey) out[to] = wasGrey ? red : grey(red, green, blue);
    else {
      out[to] = red;
      out[to + 1] = green;
      out[to + 2] = blue;
    }
    if (channels % 2 === 0) out[to + channels - 1] = from % 2 === 0 ? (pixels[at + from - 1] as number) : top;
  }
  return { width, height, channels, pixels: out };
}

/** Where sample `c` of pixel `i` is. */
const placer = (layout: PixelLayout, count: number, channels: number): ((i: number, c: number) => number) =>
  layout === "CHW" ? (i, c) => c * count + i : (i, c) => i * channels + c;

/** The samples as elements of a type, in the order of the layout. */
export function elementsOf(
  picture: Picture,
  dtype: DType,
  layout: PixelLayout,
): Uint8Array | Uint16Array | Float32Array | Float64Array {
  const { width, height, channels, pixels } = picture;
  const count = width * height;
  const out =
    dtype === dtypes.uint8
      ? new Uint8Array(pixels.length)
      : dtype === dtypes.uint16
        ? new Uint16Array(pixels.length)
        : dtype === dtypes.float64
          ? new Float64Array(pixels.length)
          : new Float32Array(pixels.length);
  const own = topOf(picture);
  const top = out instanceof Uint8Array ? 255 : out instanceof Uint16Array ? 65535 : 1;
  const place = placer(layout, count, channels);
  for (let i = 0, at = 0; i < count; i++) {
    for (let c = 0; c < channels; c++) {
      const x = pixels[at++] as number;
      out[place(i, c)] = own === top ? x : top === 1 ? x / own : Math.round((x * top) / own);
    }
  }
  return out;
}

/** A picture of elements: bytes and 16-bit integers as they are, floats from 0 to 1 as bytes. */
export function pictureOf(
  data: Uint8Array | Uint16Array | Float32Array,
  width: number,
  height: number,
  channels: number,
  layout: PixelLayout,
): Picture {
  const count = width * height;
  const pixels = data instanceof Uint16Array ? new Uint16Array(data.length) : new Uint8Array(data.length);
  const isFloat = data instanceof Float32Array;
  const place = placer(layout, count, channels);
  for (let i = 0, at = 0; i < count; i++) {
    for (let c = 0; c < channels; c++) {
      const x = data[place(i, c)] as number;
      // NaN becomes 0
      pixels[at++] = isFloat ? Math.floor(Math.min(Math.max(x, 0), 1) * 255 + 0.5) : x;
    }
  }
  return { width, height, channels, pixels };
}

/** Sixteen bits become eight. */
export const asBytes = (picture: Picture): Picture =>
  topOf(picture) === 255
    ? picture
    : { ...picture, pixels: Uint8Array.from(picture.pixels, (x) => Math.round(x / 257)) };
