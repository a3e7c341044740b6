// The page of pictures.test.ts: one picture of 3 x 2 pixels in every form that a page has.

import "gradloom/image";
import { Tensor, type TensorSource } from "gradloom";

declare global {
  var JPEG_FILE: number[];
}
const BYTES = Uint8ClampedArray.from({ length: 24 }, (_, i) => (i % 4 === 3 ? 255 : i * 10));
const image = (): ImageData => new ImageData(BYTES.slice(), 3, 2);

function drawn<T extends HTMLCanvasElement | OffscreenCanvas>(canvas: T): T {
  Object.assign(canvas, { width: 3, height: 2 });
  (canvas.getContext("2d") as CanvasRenderingContext2D).putImageData(image(), 0, 0);
  return canvas;
}
const offscreen = (): OffscreenCanvas => drawn(new OffscreenCanvas(3, 2));
const png = (): Promise<Blob> => offscreen().convertToBlob({ type: "image/png" });
async function element(): Promise<HTMLImageElement> {
  const made = new Image();
  made.src = URL.createObjectURL(await png());
  await made.decode();
  return made;
}

const FORMS: Readonly<Record<string, () => TensorSource | Promise<TensorSource>>> = {
  ImageData: image,
  canvas: () => drawn(document.createElement("canvas")),
  OffscreenCanvas: offscreen,
  ImageBitmap: () => createImageBitmap(image()),
  "img element": element,
  VideoFrame: async () => new VideoFrame(offscreen(), { timestamp: 0 }),
  "Blob of a picture": png,
  "File of a picture": async () => new File([await png()], "x.png", { type: "image/png" }),
};

const page = {
  forms: Object.keys(FORMS),
  expected: [...BYTES],
  async read(form: string) {
    const t = await Tensor.from(await (FORMS[form] as () => Promise<TensorSource>)());
    return { shape: t.shape, dtype: t.dtype.name, values: Array.from(await t.data(), Number) };
  },
  /** Pictures as files: read, written, drawn. */
  async files() {
    const file = new Blob([new Uint8Array(globalThis.JPEG_FILE)]);
    const grey = await Tensor.fromImage(file, { mode: "unchanged" });
    const stored = await Tensor.fromImage(file, { mode: "unchanged", applyExifOrientation: false });
    const clear = new Tensor(new Uint8Array([10, 200, 90, 3])).reshape(4, 1, 1);
    const png = await Tensor.fromImage(await clear.toImage("png"), { mode: "unchanged" });
    const flat = await Tensor.full([3, 8, 16], 0.5).toImage("jpeg", { quality: 90 });
    const back = await Tensor.fromImage(flat);
    const canvas = new OffscreenCanvas(3, 2);
    const context = canvas.getContext("2d") as OffscreenCanvasRenderingContext2D;
    context.putImageData(await (await Tensor.fromImage(image())).toImage("imagedata"), 0, 0);
    const webp = await (await offscreen()).convertToBlob({ type: "image/webp", quality: 1 });
    return {
      grey: [grey.shape, await grey.get(0, 0, 0).item(), await grey.get(0, -1, 0).item()],
      stored: stored.shape,
      png: await png.tolist(),
      jpeg: [back.shape, await back.get(0, 3, 3).item()],
      drawn: [...context.getImageData(0, 0, 3, 2).data],
      webp: (await Tensor.fromImage(URL.createObjectURL(webp))).shape,
      bomb: await Tensor.fromImage(file, { maxPixels: 3 }).catch((e: Error) => e.message),
    };
  },
  async half() {
    const { Float16Array: Half } = globalThis as { Float16Array?: new (x: number[]) => ArrayBufferView };
    return Half === undefined ? undefined : await new Tensor(new Half([1.5, -2])).mul(2).tolist();
  },
  async problems() {
    const closed = await createImageBitmap(image());
    closed.close();
    const wrong = [closed, document.createElement("video"), new Blob(["no"], { type: "image/png" })];
    const said = (e: Error): string => `${e.name}: ${e.message}`;
    return Promise.all(wrong.map((x) => Tensor.from(x).then(() => "read", said)));
  },
};
export type PicturesPage = typeof page;
Object.assign(globalThis, { gradloomPictures: page });
