// Draws what a buffer holds on a canvas of the page: one copy on the GPU, from the buffer to the texture that
// the canvas shows next.

import { DeviceError } from "../../errors.ts";
import type { Display } from "../../runtime/device.ts";
import { type GpuCanvas, type GpuCanvasContext, TEXTURE_USAGE } from "./api.ts";
import { type GpuBlock, requireOwn } from "./memory.ts";
import type { GpuStream } from "./stream.ts";

export class GpuDisplay implements Display<GpuBlock> {
  /** where a row of a copy to a texture may start */
  readonly rowBytes = 256;
  readonly #stream: GpuStream;
  readonly #configured = new WeakSet<GpuCanvasContext>();

  constructor(stream: GpuStream) {
    this.#stream = stream;
  }

  draw(canvas: object, block: GpuBlock, width: number, height: number): boolean {
    const stream = this.#stream;
    const { maxTextureDimension2D: most = 8192 } = stream.gpu.limits;
    if (Math.max(width, height) > most) {
      throw new DeviceError(
        `${stream.name}: a picture of ${width} × ${height} pixels; this GPU draws up to ${most} × ${most}`,
      );
    }
    requireOwn(block, stream);
    // null: it has another context already
    const context = (canvas as GpuCanvas).getContext("webgpu");
    if (context === null) return false;
    this.#configure(context);
    const bytesPerRow = Math.ceil((4 * width) / this.rowBytes) * this.rowBytes;
    const from = { buffer: block.buffer, offset: block.offset, bytesPerRow };
    stream.command((encoder) =>
      encoder.copyBufferToTexture(from, { texture: context.getCurrentTexture() }, [width, height]),
    );
    stream.flush();
    return true;
  }
  /** Once: a canvas keeps its settings when its size changes. After a loss this is another display. */
  #configure(context: GpuCanvasContext): void {
    if (this.#configured.has(context)) return;
    context.configure({
      device: this.#stream.gpu,
      format: "rgba8unorm",
      usage: TEXTURE_USAGE.COPY_DST | TEXTURE_USAGE.RENDER_ATTACHMENT,
      alphaMode: "premultiplied",
    });
    this.#configured.add(context);
  }
}
