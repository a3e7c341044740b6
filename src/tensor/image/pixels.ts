// The pixels of whatever a page can draw: a canvas, an ImageBitmap, an element with an image or a video, a
// VideoFrame. Out: rows of red, green, blue and alpha, or in words why there are none.

import type { Picture } from "./png.ts";

/** A canvas, an ImageBitmap, an element with an image or a video. */
interface Drawable {
  readonly width: number;
  readonly height: number;
}
interface VideoSize {
  readonly displayWidth: number;
  readonly displayHeight: number;
}
/** Bytes that are read asynchronously: a Blob, a File, the answer to a fetch. */
export interface AsyncBytes {
  arrayBuffer(): Promise<ArrayBuffer>;
}
/** ImageData, a canvas, an ImageBitmap, an element with an image or a video, a VideoFrame, a Blob, a File. */
export type TensorSource = Drawable | VideoSize | AsyncBytes;

/** All sizes that the kinds of pictures have: the natural ones count. */
interface Sizes extends Partial<Drawable>, Partial<VideoSize> {
  readonly naturalWidth?: number;
  readonly naturalHeight?: number;
  readonly videoWidth?: number;
  readonly videoHeight?: number;
}
const kindOf = (x: unknown): string =>
  typeof x === "object" && x !== null ? Object.prototype.toString.call(x).slice(8, -1) : typeof x;

/** A text says why it cannot be read. */
export function pixelsOf(source: unknown): Picture | string {
  const s = (source ?? {}) as Sizes;
  const width = s.videoWidth ?? s.naturalWidth ?? s.displayWidth ?? s.width;
  const height = s.videoHeight ?? s.naturalHeight ?? s.displayHeight ?? s.height;
  if (typeof width !== "number" || typeof height !== "number") {
    return `got ${kindOf(source)}, expected data, a picture, a canvas, a video, a Blob or a File`;
  }
  if (!(width > 0 && height > 0)) {
    return (
      `${kindOf(source)} is ${width} wide and ${height} high; wait until it is loaded (await image.decode(), or ` +
      "the event loadeddata of a video)"
    );
  }
  if (typeof OffscreenCanvas === "undefined") {
    return `nothing can be drawn here, so ${kindOf(source)} cannot be read; give ImageData`;
  }
  try {
    const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
    if (context === null) return `there is no canvas of ${width} x ${height} here; make the picture smaller`;
    context.drawImage(source as CanvasImageSource, 0, 0, width, height);
    const { data } = context.getImageData(0, 0, width, height);
    return { width, height, channels: 4, pixels: new Uint8Array(data.buffer) };
  } catch (cause) {
    // closed, or of another site that does not let this page read it
    return `${kindOf(source)} cannot be read: ${(cause as Error).message}`;
  }
}
