// ImageDecoder: PNG and JPEG by gradloom's own reader, BMP and PNM here. Other formats are named in the
// error.

import { dtypes } from "../../dtype.ts";
import { range } from "../../helpers.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { type Call, type OpTable, op, string } from "./op.ts";

/** Rows of red, green and blue. */
interface DecodedFile {
  readonly width: number;
  readonly height: number;
  readonly rgb: Uint8Array;
}
const MAX_PIXELS = 2 ** 27;

function sized(c: Call, width: number, height: number): Uint8Array {
  if (!(width > 0 && height > 0 && width * height <= MAX_PIXELS)) c.fail(`a picture of ${width} x ${height}`);
  return new Uint8Array(3 * width * height);
}

/**
 * Uncompressed, with 24 or 32 bits a pixel, or 8 and a palette; from the bottom up unless the height says
 * not.
 */
function decodeBmp(c: Call, file: Uint8Array): DecodedFile {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  if (file.byteLength < 54) c.fail("the BMP file is truncated");
  const [start, header] = [view.getUint32(10, true), view.getUint32(14, true)];
  const [width, signed] = [view.getInt32(18, true), view.getInt32(22, true)];
  const height = Math.abs(signed);
  const [bits, compression] = [view.getUint16(28, true), view.getUint32(30, true)];
  if (![8, 24, 32].includes(bits) || (compression !== 0 && compression !== 3))
    c.unsupported(`a BMP file of ${bits} bits with compression ${compression}`);
  const rgb = sized(c, width, height);
  const stride = Math.ceil((width * bits) / 32) * 4;
  if (start + stride * height > file.byteLength) c.fail("the BMP file is truncated");
  const size = bits / 8;
  for (let y = 0; y < height; y++) {
    const row = start + (signed > 0 ? height - 1 - y : y) * stride;
    for (let x = 0; x < width; x++) {
      const at = bits === 8 ? 14 + header + 4 * (file[row + x] as number) : row + x * size;
      for (let k = 0; k < 3; k++) rgb[3 * (y * width + x) + k] = file[at + 2 - k] as number;
    }
  }
  return { width, height, rgb };
}

/** P5 and P6: one or three bytes a pixel behind a header in words. */
function decodePnm(c: Call, file: Uint8Array): DecodedFile {
  let at = 0;
  const word = (): string => {
    const isSpace = (b: number | undefined): boolean => b === 32 || (b !== undefined && b >= 9 && b <= 13);
    for (;;) {
      while (isSpace(file[at])) at++;
      if (file[at] !== 35) break;
      while (at < file.byteLength && file[at] !== 10) at++;
    }
    let text = "";
    while (at < file.byteLength && !isSpace(file[at])) text += String.fromCharCode(file[at++] as number);
    return text;
  };
  const [kind, width, height, most] = [word(), Number(word()), Number(word()), Number(word())];
  if ((kind !== "P5" && kind !== "P6") || most !== 255)
    c.unsupported(`a PNM file of kind ${kind} up to ${most}`);
  const rgb = sized(c, width, height);
  const channels = kind === "P6" ? 3 : 1;
  const start = at + 1;
  if (start + width * height * channels > file.byteLength) c.fail("the PNM file is truncated");
  for (let i = 0; i < rgb.length; i++)
    rgb[i] = file[start + (channels === 3 ? i : Math.floor(i / 3))] as number;
  return { width, height, rgb };
}

const grey = (rgb: Uint8Array): Uint8Array =>
  Uint8Array.from(range(rgb.length / 3), (i) => {
    const [r, g, b] = rgb.subarray(3 * i) as unknown as [number, number, number];
    // as the usual libraries do, in integers
    return (r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16;
  });

async function decode(c: Call<{ pixel_format: string }>): Promise<Tensor> {
  const { pixel_format } = c.attr;
  if (!["RGB", "BGR", "Grayscale"].includes(pixel_format)) c.fail(`pixel_format is "${pixel_format}"`);
  const file = Uint8Array.from((await c.host(0)).data, Number);
  const starts = (...bytes: readonly number[]): boolean => bytes.every((b, i) => file[i] === b);
  const isGrey = pixel_format === "Grayscale";
  if (starts(0x89, 0x50, 0x4e, 0x47) || starts(0xff, 0xd8)) {
    const mode = isGrey ? "grey" : "rgb";
    const x = await Tensor.fromImage(file, { mode, layout: "HWC", maxPixels: MAX_PIXELS, ...c.on });
    return pixel_format === "BGR" ? x.flip(2) : x;
  }
  const pixels = starts(0x42, 0x4d) ? decodeBmp(c, file) : starts(0x50) ? decodePnm(c, file) : undefined;
  if (pixels === undefined)
    return c.unsupported("the format of the picture; PNG, JPEG, BMP and PNM are read");
  const { width, height, rgb } = pixels;
  const values = isGrey ? grey(rgb) : rgb;
  const x = new Tensor(values, { dtype: dtypes.uint8, ...c.on }).reshape([height, width, isGrey ? 1 : 3]);
  return pixel_format === "BGR" ? x.flip(2) : x;
}

export const picture: OpTable = { ImageDecoder: op({ pixel_format: string("RGB") }, decode, 20) };
