// Decides which of the nodes whose type is an image (src/images.ts) are stored in one. In go the nodes to
// compute; those that cannot be an image get the type float32 instead, before anything is scheduled. Only
// Node has images; `#schedule/images` is this file or browser.ts.

import { dtypes } from "../../dtype.ts";
import { env } from "../../env.ts";
import { toposort } from "../../helpers.ts";
import { hasImages, ImageDType, showTuple } from "../../images.ts";
import type { LazyBuffer } from "../../lazy/lazybuffer.ts";
import { Device } from "../../runtime/registry.ts";
import { type Sint, sprod } from "../../shape/symbolic.ts";

/** Values of a pixel. */
const LANES = 4;

/** The type of a node only depends on its shape and its device: asking again gives the same. */
export function settleImages(outs: readonly LazyBuffer[]): void {
  if (!hasImages()) return;
  for (const lb of toposort(outs, (b) => (b.srcs ?? []).map((s) => s.base))) {
    const { dtype } = lb;
    if (lb.srcs === undefined || lb.op === "CONST" || !(dtype instanceof ImageDType)) continue;
    if (lb.op === "COPY") retype(lb, (lb.sources[0] as LazyBuffer).base.dtype);
    else if (!fits(lb, dtype)) {
      if (env.DEBUG >= 1) console.log(`forcing image ${dtype} with shape ${showTuple(lb.shape)} to float32`);
      retype(lb, dtypes.float32);
    } else if (lb.isReduce || lb.op === "SCAN") retype(lb, dtypes.float32);
  }
}

/** Its values are float32 in any case: only where they will lie changes. */
const retype = (lb: LazyBuffer, dtype: LazyBuffer["dtype"]): void => void Object.assign(lb, { dtype });

/** Whether a thread can write whole pixels, in an image that the device can have. */
function fits({ shape, device }: LazyBuffer, { shape: [height, width, lanes] }: ImageDType): boolean {
  if (sprod(shape) !== height * width * lanes) return false;
  const inner = shape.findLast((d: Sint) => d !== 1);
  if (typeof inner !== "number" || inner % LANES !== 0) return false;
  const most = Device.isOpen(device) ? Device.get(device).renderer?.images : undefined;
  return most === undefined || (height <= most.height && width <= most.width);
}
