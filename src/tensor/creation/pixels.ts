// What `Tensor.from` takes besides data: whatever a page can draw (a canvas, an ImageBitmap, an element with
// an image or a video, a VideoFrame), and Blobs and Files. Out: pixels, rows of red, green, blue and alpha,
// or bytes; or in words why there are none. Loaded on first use, so it imports nothing.

/** A canvas, an ImageBitmap, an element with an image or a video. */
interface Drawable {
  readonly width: number;
  readonly height: number;
}
interface Frame {
  readonly displayWidth: number;
  readonly displayHeight: number;
}
/** Bytes that are read asynchronously: a Blob, a File, the answer to a fetch. */
interface Bytes {
  arrayBuffer(): Promise<ArrayBuffer>;
}
/** ImageData, a canvas, an ImageBitmap, an element with an image or a video, a VideoFrame, a Blob, a File. */
export type TensorSource = Drawable | Frame | Bytes;

/** Elements with their shape, or bytes without one. */
type Found = { readonly shape: readonly number[]; readonly data: ArrayBufferView } | ArrayBuffer;

/** All sizes that the kinds of pictures have: the natural ones count. */
interface Sizes extends Partial<Drawable>, Partial<Frame> {
  readonly naturalWidth?: number;
  readonly naturalHeight?: number;
  readonly videoWidth?: number;
  readonly videoHeight?: number;
}
const kindOf = (x: unknown): string =>
  typeof x === "object" && x !== null ? Object.prototype.toString.call(x).slice(8, -1) : typeof x;

/** A text says why it cannot be read. */
export async function read(source: unknown): Promise<Found | string> {
  const { arrayBuffer, type = "" } = (source ?? {}) as Partial<Bytes & { readonly type: string }>;
  if (typeof arrayBuffer !== "function") return pixels(source);
  if (!type.startsWith("image/")) return (source as Bytes).arrayBuffer();
  if (typeof createImageBitmap === "undefined") {
    return `${type} can be decoded in a page only; give its pixels, or the bytes as they are (arrayBuffer())`;
  }
  try {
    // the values as they are in the file
    const plain = { premultiplyAlpha: "none", colorSpaceConversion: "none" } as const;
    const bitmap = await createImageBitmap(source as unknown as Blob, plain);
    const found = pixels(bitmap);
    bitmap.close();
    return found;
  } catch (cause) {
    return `this ${type} cannot be decoded: ${(cause as Error).message}`;
  }
}

function pixels(source: unknown): Found | string {
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
    return { shape: [height, width, 4], data: context.getImageData(0, 0, width, height).data };
  } catch (cause) {
    // closed, or of another site that does not let this page read it
    return `${kindOf(source)} cannot be read: ${(cause as Error).message}`;
  }
}
