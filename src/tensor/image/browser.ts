// Pictures that the platform of a page decodes and encodes: JPEG, and whatever else the browser knows (WebP,
// AVIF, GIF). PNG is read by png.ts, so that a file has the same values everywhere. node.ts is its twin.

import { FileError } from "../../errors.ts";
import { converted } from "./convert.ts";
import { asStored, type JpegFacts } from "./jpeg.ts";
import { pixelsOf } from "./pixels.ts";
import type { Picture } from "./png.ts";

/** `facts` are those of a JPEG. The picture is turned upright unless it is wanted as stored. */
export async function decodeOther(
  file: Uint8Array,
  name: string,
  facts: JpegFacts | undefined,
  isUpright: boolean,
): Promise<Picture> {
  const refuse = (why: string): never => {
    throw new FileError(`${name} cannot be decoded: ${why}`);
  };
  const bytes = facts === undefined || isUpright ? file : asStored(file, facts);
  // the values as they are in the file
  const plain = { premultiplyAlpha: "none", colorSpaceConversion: "none" } as const;
  const bitmap = await createImageBitmap(new Blob([bytes as Uint8Array<ArrayBuffer>]), plain).catch(
    (cause: Error) => refuse(cause.message),
  );
  const found = pixelsOf(bitmap);
  bitmap.close();
  if (typeof found === "string") return refuse(found);
  if (facts === undefined) return found;
  return converted(found, facts.components === 1 ? 1 : 3);
}

/** `quality` from 1 to 100. */
export async function encodeJpeg(picture: Picture, quality: number): Promise<Uint8Array> {
  const { width, height, pixels } = converted(picture, 4);
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d");
  if (context === null) throw new FileError(`toImage: there is no canvas of ${width} x ${height} here`);
  context.putImageData(new ImageData(new Uint8ClampedArray(pixels), width, height), 0, 0);
  const blob = await canvas.convertToBlob({ type: "image/jpeg", quality: quality / 100 });
  return new Uint8Array(await blob.arrayBuffer());
}
