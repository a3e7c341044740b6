// `Tensor.fromImage` and `toImage`: between pictures and tensors. In: paths, addresses, bytes of files,
// Blobs, whatever a page can draw. Out: tensors; or files as bytes. Loaded with the first picture.

import { hasFiles } from "#host";
import { readBytes, writeBytes } from "#host/files";
import { decodeOther, encodeJpeg } from "#tensor/image";
import { type DType, type DTypeLike, dtypes, toDType } from "../../dtype.ts";
import { ArgumentError, DTypeError, FileError, ShapeError } from "../../errors.ts";
import { addressOf, unreachable } from "../../host/address.ts";
import type { LazyBuffer } from "../../lazy/lazybuffer.ts";
import { cast, detach, make } from "../core.ts";
import type { TensorOptions } from "../creation/creation.ts";
import { fromData, type ImagePixels } from "../creation/hostdata.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import { data } from "../values.ts";
import { asBytes, converted, elementsOf, type PixelLayout, pictureOf } from "./convert.ts";
import { isJpeg, jpegFacts } from "./jpeg.ts";
import { type AsyncBytes, pixelsOf, type TensorSource } from "./pixels.ts";
import { decodePng, isPng, MAX_PIXELS, type Picture } from "./png.ts";
import { encodePng } from "./pngwrite.ts";

/**
 * A path (in a page: an address), a URL, the bytes of a file, a Blob, File or Response, ImageData, or what a
 * page can draw.
 */
export type ImageSource = string | URL | ArrayBuffer | ArrayBufferView | ImagePixels | TensorSource;

export interface ImageOptions {
  /**
   * the channels: 3, 1, 4, or those of the file. Alpha that is not wanted is dropped, missing alpha is
   * opaque; default: "rgb"
   */
  readonly mode?: "rgb" | "grey" | "gray" | "rgba" | "unchanged";
  /**
   * uint8 has 0 to 255, uint16 0 to 65535, floats 0 to 1; default: uint8, or uint16 for 16-bit files in mode
   * "unchanged"
   */
  readonly dtype?: DTypeLike;
  /** [channels, height, width] or [height, width, channels]; default: "CHW" */
  readonly layout?: "CHW" | "HWC";
  /** turn a photograph upright that was taken with a turned camera; default: true */
  readonly applyExifOrientation?: boolean;
  /** files that claim more pixels are refused; default: 2 ** 27 */
  readonly maxPixels?: number;
  /** default: Device.DEFAULT */
  readonly device?: string;
}
export interface ImageFileOptions {
  /** the order of the dims; default: "CHW" */
  readonly layout?: "CHW" | "HWC";
  /** of JPEG, 1 to 100; default: 75 */
  readonly quality?: number;
}
/** ImageData, where the platform has it. */
export type ImagePicture = typeof globalThis extends { ImageData: { prototype: infer T } } ? T : ImagePixels;

/** What `toImage` gives: bytes of a file, or ImageData if that was asked for. */
export type ImageFile<F extends string> = F extends "imagedata" ? ImagePicture : Uint8Array;

const MODES: Readonly<Record<string, number>> = { rgb: 3, grey: 1, gray: 1, rgba: 4, unchanged: 0 };

// ---- reading ----

const nameOf = (source: object): string => (source as { readonly name?: string }).name ?? "the picture";
const isBytes = (x: unknown): x is AsyncBytes =>
  typeof (x as Partial<AsyncBytes> | undefined)?.arrayBuffer === "function";
const isPixels = (x: unknown): x is ImagePixels =>
  ArrayBuffer.isView((x as Partial<ImagePixels> | undefined)?.data);

export function fromImage(source: ImageSource, options: ImageOptions = {}): Promise<Tensor> {
  return readImage(source, options);
}
async function readImage(source: ImageSource, options: ImageOptions): Promise<Tensor> {
  const { mode = "rgb", layout = "CHW", applyExifOrientation = true, maxPixels = MAX_PIXELS } = options;
  const channels = Object.hasOwn(MODES, mode) ? (MODES[mode] as number) : -1;
  if (channels < 0) {
    throw new ArgumentError(
      `fromImage: mode is ${mode}, expected one of ${Object.keys(MODES)
        .map((m) => `"${m}"`)
        .join(", ")}`,
    );
  }
  checkLayout("fromImage", layout);
  if (!(maxPixels >= 1))
    throw new ArgumentError(`fromImage: maxPixels is ${maxPixels}, expected a number >= 1`);
  const asked = options.dtype === undefined ? undefined : toDType(options.dtype);
  if (asked !== undefined && !isSampleType(asked)) {
    throw new DTypeError(
      `fromImage: dtype is ${asked.name}, expected uint8 (0 to 255), uint16 (0 to 65535) or a float (0 to 1); ` +
        `cast the result, as in t.cast("${asked.name}")`,
    );
  }
  const read = await pictureFrom("fromImage", source, applyExifOrientation, maxPixels);
  const picture = converted(read, channels === 0 ? read.channels : channels);
  const isWide = channels === 0 && picture.pixels.BYTES_PER_ELEMENT === 2;
  const dtype = asked ?? (isWide ? dtypes.uint16 : dtypes.uint8);
  const { width, height, channels: c } = picture;
  const { device } = options;
  const flat = fromData(elementsOf(picture, dtype, layout), {
    dtype,
    ...(device !== undefined && { device }),
  });
  return make(flat.reshape(layout === "CHW" ? [c, height, width] : [height, width, c]));
}
const isSampleType = (d: DType): boolean => d === dtypes.uint8 || d === dtypes.uint16 || d.isFloat;
function checkLayout(method: string, layout: PixelLayout): void {
  if (layout !== "CHW" && layout !== "HWC")
    throw new ArgumentError(`${method}: layout is ${String(layout)}, expected "CHW" or "HWC"`);
}

/** `Tensor.from` for what is not data: pictures with four channels, other bytes as they are. */
export async function fromSource(source: TensorSource, options: TensorOptions): Promise<LazyBuffer> {
  const { type = "" } = source as { readonly type?: string };
  if (isBytes(source) && !type.startsWith("image/")) return fromData(await source.arrayBuffer(), options);
  try {
    const { width, height, pixels } = converted(
      asBytes(await pictureFrom("Tensor.from", source, true, MAX_PIXELS)),
      4,
    );
    return fromData(pixels, options).reshape([height, width, 4]);
  } catch (cause) {
    if (!(cause instanceof FileError)) throw cause;
    throw new ArgumentError(`Tensor.from: this ${type} cannot be decoded: ${cause.message}`, { cause });
  }
}

async function pictureFrom(
  method: string,
  source: ImageSource,
  isUpright: boolean,
  maxPixels: number,
): Promise<Picture> {
  if (typeof source === "string" || source instanceof URL) {
    return decoded(await bytesAt(String(source)), String(source).slice(0, 200), isUpright, maxPixels);
  }
  if (ArrayBuffer.isView(source)) {
    const bytes = new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
    return decoded(bytes, "the array", isUpright, maxPixels);
  }
  if (isPixels(source)) return fromPixels(source);
  if (isBytes(source)) {
    if ((source as { readonly ok?: boolean }).ok === false)
      throw new FileError(`${method}: the server answered ${(source as { status?: number }).status}`);
    return decoded(new Uint8Array(await source.arrayBuffer()), nameOf(source), isUpright, maxPixels);
  }
  if (Object.prototype.toString.call(source).endsWith("ArrayBuffer]"))
    return decoded(new Uint8Array(source as ArrayBuffer), "the array", isUpright, maxPixels);
  const found = pixelsOf(source);
  if (typeof found === "string") throw new ArgumentError(`${method}: ${found}`);
  return found;
}

function fromPixels({ width, height, data }: ImagePixels): Picture {
  if (data.byteLength !== width * height * 4) {
    throw new ArgumentError(
      `fromImage: ${width} × ${height} pixels of four bytes are ${width * height * 4}, data has ${data.byteLength}`,
    );
  }
  return {
    width,
    height,
    channels: 4,
    pixels: new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
  };
}

function decoded(file: Uint8Array, name: string, isUpright: boolean, maxPixels: number): Promise<Picture> {
  if (isPng(file)) return decodePng(file, name, maxPixels);
  return decodeOther(file, name, isJpeg(file) ? jpegFacts(file, name, maxPixels) : undefined, isUpright);
}

async function bytesAt(address: string): Promise<Uint8Array> {
  const scheme = /^(https?|data|blob|file):/.exec(address)?.[1];
  if (hasFiles && scheme === "file") return readBytes(filePath(new URL(address)));
  if (hasFiles && scheme === undefined) return readBytes(address);
  try {
    const reply = await fetch(address);
    if (reply.ok) return new Uint8Array(await reply.arrayBuffer());
    throw new FileError(`cannot fetch ${addressOf(address)}: the server answered ${reply.status}`);
  } catch (cause) {
    throw cause instanceof FileError ? cause : unreachable(address, cause);
  }
}
const filePath = ({ pathname }: URL): string => decodeURIComponent(pathname).replace(/^\/(?=[A-Za-z]:)/, "");

// ---- writing ----

type ImageFormat = "png" | "jpeg" | "imagedata";
const FORMATS: Readonly<Record<string, ImageFormat>> = {
  png: "png",
  jpeg: "jpeg",
  jpg: "jpeg",
  imagedata: "imagedata",
};

export function toImage<F extends string = "png">(
  self: Tensor,
  target?: F,
  options: ImageFileOptions = {},
): Promise<ImageFile<F>> {
  return pictureFile(self, target ?? "png", options) as Promise<ImageFile<F>>;
}
async function pictureFile(
  self: Tensor,
  target: string,
  options: ImageFileOptions,
): Promise<Uint8Array | ImagePicture> {
  const { layout = "CHW", quality = 75 } = options;
  checkLayout("toImage", layout);
  if (!Number.isInteger(quality) || quality < 1 || quality > 100)
    throw new ArgumentError(`toImage: quality is ${quality}, expected an integer from 1 to 100`);
  const format = Object.hasOwn(FORMATS, target)
    ? FORMATS[target]
    : FORMATS[/[^/\\]\.(png|jpe?g)$/i.exec(target)?.[1]?.toLowerCase() ?? ""];
  if (format === undefined) {
    throw new ArgumentError(
      `toImage: got "${target}", expected "png", "jpeg", "imagedata", or a path that ends with .png, .jpg or .jpeg`,
    );
  }
  if (format !== "jpeg" && options.quality !== undefined)
    throw new ArgumentError(`toImage: quality is for "jpeg", and ${format} loses nothing; give no quality`);
  const picture = await readPicture(self, layout, format);
  if (format === "imagedata") return imageData(picture);
  const file = format === "png" ? await encodePng(picture) : await encodeJpeg(picture, quality);
  if (!Object.hasOwn(FORMATS, target)) await writeBytes(target, one(file));
  return file;
}
async function* one<T>(x: T): AsyncGenerator<T> {
  yield x;
}

/** What a tensor is as a picture. */
export interface ImageOf {
  readonly channels: number;
  readonly width: number;
  readonly height: number;
  readonly layout: PixelLayout;
}
/** Refuses what is not one. `isPng`: 16 bits are welcome. */
export function imageOf(method: string, self: Tensor, layout: PixelLayout, isPng = false): ImageOf {
  checkLayout(method, layout);
  const { shape, dtype } = self;
  const sizes =
    shape.length === 2 ? [1, ...shape] : layout === "CHW" ? shape : [shape[2], shape[0], shape[1]];
  const [channels = 0, height = 0, width = 0] = sizes as number[];
  const isPicture = (shape.length === 2 || shape.length === 3) && channels >= 1 && channels <= 4;
  if (!isPicture || height < 1 || width < 1) throw wrongShape(method, shape as number[], layout);
  const isWide = dtype === dtypes.uint16 && isPng;
  if (dtype !== dtypes.uint8 && dtype !== dtypes.bool && !dtype.isFloat && !isWide) {
    throw new DTypeError(
      `${method}: the type is ${dtype.name}, expected uint8 (0 to 255), a float (0 to 1), bool, or uint16 for PNG; ` +
        'cast first, as in t.cast("uint8")',
    );
  }
  return { channels, width, height, layout };
}

async function readPicture(self: Tensor, layout: PixelLayout, format: ImageFormat): Promise<Picture> {
  const { channels, width, height } = imageOf("toImage", self, layout, format === "png");
  const { shape, dtype } = self;
  if (format === "jpeg" && channels % 2 === 0) {
    throw new ShapeError(
      `toImage: JPEG has no alpha, and shape ${showShape(shape)} has ${channels} channels; write "png", or drop it: ` +
        `t.narrow(${layout === "CHW" ? 0 : 2}, 0, ${channels - 1})`,
    );
  }
  const plain = detach(self);
  const values = dtype.isFloat ? cast(plain, dtypes.float32) : plain;
  const read = (await data(dtype === dtypes.bool ? cast(values, dtypes.float32) : values)) as Uint8Array;
  return pictureOf(read, width, height, channels, layout);
}

function wrongShape(method: string, shape: readonly number[], layout: PixelLayout): ShapeError {
  const expected = layout === "CHW" ? "[channels, height, width]" : "[height, width, channels]";
  const other = layout === "CHW" ? shape[2] : shape[0];
  const hint =
    shape.length === 4
      ? "; take one picture of the batch, as in t.get(0), or draw them all with nn.plot.images(t)"
      : shape.length === 3 && other !== undefined && other <= 4
        ? `; channels in the other place? { layout: "${layout === "CHW" ? "HWC" : "CHW"}" }`
        : "";
  return new ShapeError(
    `${method}: shape ${showShape(shape)}, expected ${expected} with 1 to 4 channels, or [height, width]${hint}`,
  );
}

function imageData(picture: Picture): ImagePicture {
  const { width, height, pixels } = converted(asBytes(picture), 4);
  if (typeof ImageData === "undefined")
    throw new ArgumentError('toImage: ImageData exists in a page only; here use "png" or the tensor itself');
  return new ImageData(new Uint8ClampedArray(pixels), width, height) as ImagePicture;
}
