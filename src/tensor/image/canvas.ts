// `toCanvas`: a tensor as the picture of a canvas. Where the device can draw, nothing passes through the
// host: kernels make pixels of the elements, and the device copies them to the canvas. Elsewhere the pixels
// are ImageData.

import { dtypes } from "../../dtype.ts";
import { CacheCollector } from "../../engine/jit/collector.ts";
import { ArgumentError } from "../../errors.ts";
import type { Display } from "../../runtime/device.ts";
import { Device } from "../../runtime/registry.ts";
import { cast, detach } from "../core.ts";
import type { Tensor } from "../tensor.ts";
import type { PixelLayout } from "./convert.ts";
import { type ImageOf, imageOf, toImage } from "./image.ts";

/** A canvas of a page, or an OffscreenCanvas. */
export interface CanvasLike {
  width: number;
  height: number;
  getContext(kind: "2d"): unknown;
}
export interface CanvasOptions {
  /** the order of the dims; default: "CHW" */
  readonly layout?: "CHW" | "HWC";
}
interface Context2d {
  putImageData(image: object, x: number, y: number): void;
}

export function toCanvas(self: Tensor, canvas: CanvasLike, options: CanvasOptions = {}): Promise<void> {
  return draw(self, canvas, options.layout ?? "CHW");
}
async function draw(self: Tensor, canvas: CanvasLike, layout: PixelLayout): Promise<void> {
  const isCanvas = typeof canvas?.getContext === "function" && typeof canvas.width === "number";
  if (!isCanvas) {
    throw new ArgumentError(
      "toCanvas: expected a canvas or an OffscreenCanvas; elsewhere write a file, with toImage",
    );
  }
  const image = imageOf("toCanvas", self, layout);
  CacheCollector.forbid("toCanvas", "draw what the jitted function returns");
  const [device, ...others] = self.devices;
  const { display } = await Device.open(device);
  if (display !== undefined && others.length === 0 && (await drawn(self, canvas, image, display))) return;
  const picture = await toImage(self, "imagedata", { layout });
  const context = canvas.getContext("2d") as Context2d | null;
  if (context === null) {
    throw new ArgumentError(
      `toCanvas: this canvas has another context than "2d", such as that of WEBGPU, on which ${device} cannot ` +
        "draw; take another canvas",
    );
  }
  resize(canvas, image);
  context.putImageData(picture, 0, 0);
}
function resize(canvas: CanvasLike, { width, height }: ImageOf): void {
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
}

/** Whether the device could draw it. */
async function drawn(self: Tensor, canvas: CanvasLike, image: ImageOf, display: Display): Promise<boolean> {
  const pixels = await pixelsFor(self, image, display.rowBytes / 4).realize();
  try {
    resize(canvas, image);
    return display.draw(canvas, pixels.lazydata.base.buffer.handle, image.width, image.height);
  } finally {
    pixels.dispose();
  }
}
/** Four bytes a pixel, colours times alpha; rows are filled up to a multiple of `step` pixels. */
function pixelsFor(self: Tensor, { channels, width, height, layout }: ImageOf, step: number): Tensor {
  const rows =
    self.ndim === 2 ? self.reshape(height, width, 1) : layout === "CHW" ? self.permute(1, 2, 0) : self;
  const bytes = cast(asBytes(detach(rows)), dtypes.int32);
  const hasAlpha = channels % 2 === 0;
  const colours = bytes
    .shrink([null, null, [0, hasAlpha ? channels - 1 : channels]])
    .expand(height, width, 3);
  const alpha = hasAlpha ? bytes.shrink([null, null, [channels - 1, channels]]) : undefined;
  const shown = alpha === undefined ? colours : colours.mul(alpha).add(127).idiv(255);
  const opaque = shown
    .shrink([null, null, [0, 1]])
    .zerosLike()
    .add(255);
  const rest = (step - (width % step)) % step;
  return cast(shown.cat([alpha ?? opaque], 2).pad([null, [0, rest], null]), dtypes.uint8).contiguous();
}
/** As `toImage` has them: floats from 0 to 1, the nearest byte, NaN as 0. */
function asBytes(x: Tensor): Tensor {
  if (x.dtype === dtypes.uint8) return x;
  const one = cast(x, dtypes.float32);
  const known = one.isnan().where(0, one);
  return known.clamp(0, 1).mul(255).add(0.5).floor();
}
