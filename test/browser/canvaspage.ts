// The page of canvas.test.ts: tensors on canvases, pictures as tensors on WEBGPU.

import "gradloom/image";
import { type CanvasLike, type CanvasOptions, Device, Tensor, TinyJit, Variable } from "gradloom";

const pixelsOn = (canvas: OffscreenCanvas | HTMLCanvasElement): number[] => {
  const { width, height } = canvas;
  const context = new OffscreenCanvas(width, height).getContext("2d") as OffscreenCanvasRenderingContext2D;
  context.drawImage(canvas, 0, 0);
  return [...context.getImageData(0, 0, width, height).data];
};
const contextOf = (canvas: OffscreenCanvas | HTMLCanvasElement): string =>
  canvas.getContext("webgpu") !== null ? "webgpu" : canvas.getContext("2d") !== null ? "2d" : "none";

const page = {
  /** Why WEBGPU does not open; undefined: it does. */
  closed: () =>
    Device.open("WEBGPU").then(
      () => undefined,
      (e: Error) => e.message,
    ),
  best: () => Device.best(),
  /** What a canvas shows of a tensor, and how it was drawn. */
  async draw(
    device: string,
    shape: number[],
    values: number[],
    dtype: "float32" | "uint8",
    options?: CanvasOptions,
  ) {
    const t = new Tensor(values, { device, dtype }).reshape(...shape);
    const canvas = document.createElement("canvas");
    for (let i = 0; i < 2; i++) await t.toCanvas(canvas, options);
    const shown = pixelsOn(canvas);
    return { shown, size: [canvas.width, canvas.height], by: contextOf(canvas) };
  },
  async contexts() {
    const t = await Tensor.full([2, 2], 1.0, { dtype: "float32", device: "WEBGPU" }).contiguous().realize();
    const flat = new OffscreenCanvas(1, 1);
    flat.getContext("2d");
    await t.toCanvas(flat);
    const own = new OffscreenCanvas(1, 1);
    await t.toCanvas(own);
    const said = (e: Error): string => `${e.name}: ${e.message}`;
    const jitted = new TinyJit(async (x: Tensor) => {
      await x.add(1).toCanvas(own);
      return x.add(1);
    });
    return {
      flat: [contextOf(flat), ...pixelsOn(flat).slice(0, 4)],
      refused: await t.to("WASM").toCanvas(own).catch(said),
      none: await t.toCanvas({} as CanvasLike).catch(said),
      inJit: await jitted(t).then(() => "captured", said),
      large: await Tensor.zeros([1, 9000], { device: "WEBGPU" }).toCanvas(own).catch(said),
    };
  },
  /** Every kind of picture as a tensor on the GPU. */
  async pictures() {
    const image = (): ImageData =>
      new ImageData(Uint8ClampedArray.of(10, 20, 30, 255, 40, 50, 60, 255), 2, 1);
    const canvas = new OffscreenCanvas(2, 1);
    (canvas.getContext("2d") as OffscreenCanvasRenderingContext2D).putImageData(image(), 0, 0);
    const forms = {
      ImageData: image(),
      canvas,
      ImageBitmap: await createImageBitmap(image()),
      VideoFrame: new VideoFrame(canvas, { timestamp: 0 }),
    };
    const got: Record<string, unknown> = {};
    for (const [form, source] of Object.entries(forms))
      got[form] = await (await Tensor.from(source, { device: "WEBGPU" })).add(1).tolist();
    return got;
  },
  /** Variables, which this browser takes as immediates. */
  async variables() {
    const n = Variable("n", 1, 8);
    const x = await Tensor.arange(8).to("WEBGPU").contiguous().realize();
    const step = new TinyJit((t: Tensor) => t.sum().add(1).contiguous());
    const sums: number[] = [];
    for (const k of [2, 3, 4, 5]) sums.push(Number(await (await step(x.shrink([[0, n.bind(k)]]))).item()));
    return sums;
  },
};
export type CanvasPage = typeof page;
Object.assign(globalThis, { gradloomCanvas: page });
