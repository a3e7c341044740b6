// Parts of files and host arrays as nodes of their own: consecutive elements, which are read without the
// rest, and the same bytes as another type. Nothing is copied and nothing is computed.

import type { DType } from "../dtype.ts";
import { ShapeError } from "../errors.ts";
import { Buffer } from "../runtime/buffer.ts";
import { sprod } from "../shape/symbolic.ts";
import type { Shape } from "../shape/view.ts";
import type { LazyBuffer } from "./lazybuffer.ts";

type FromBuffer = (buffer: Buffer, shape: Shape) => LazyBuffer;

/** What a view shows of held memory; undefined where that is computed, or not in one piece. */
export function heldPart(
  x: LazyBuffer,
  fromBuffer: FromBuffer,
  dtype: DType = x.dtype,
  shape: Shape = x.shape,
): LazyBuffer | undefined {
  const { base, st } = x;
  const buffer = base.realized ?? (base.op === "EMPTY" ? base.buffer : undefined);
  const [view] = st.views;
  if (buffer === undefined || view === undefined || !st.consecutive) return undefined;
  // the part is not recorded as a reader, so no kernel may be able to overwrite this node
  if (!x.onlyHolds) return undefined;
  const size = sprod(shape);
  if (typeof view.offset !== "number" || typeof size !== "number") return undefined;
  const start = view.offset * x.dtype.itemsize;
  // a packed element may start within a byte, where no buffer can
  if (!Number.isInteger(start)) return undefined;
  const node = fromBuffer(new Buffer(buffer.device, size, dtype, buffer, start), shape);
  if (base.realized === undefined) node.srcs = []; // still an EMPTY to run, which opens the file
  return node;
}

/** The bytes of a node on a device that only holds data, as another type. */
export function heldAs(x: LazyBuffer, dtype: DType, fromBuffer: FromBuffer): LazyBuffer {
  const isSameSize = dtype.bits === x.dtype.bits;
  const last = (x.shape.at(-1) as number) * (x.dtype.bits / dtype.bits);
  const shape = isSameSize ? x.shape : [...x.shape.slice(0, -1), last];
  const part = isSameSize || Number.isInteger(last) ? heldPart(x, fromBuffer, dtype, shape) : undefined;
  if (part !== undefined) return part;
  // elements of one size may be seen in any order
  const whole = isSameSize && x !== x.base ? heldPart(x.base, fromBuffer, dtype) : undefined;
  if (whole !== undefined) return whole.viewed(x.st);
  throw new ShapeError(
    `bitcast: ${x.dtype.name} of shape [${x.shape.join(", ")}] on ${x.device} to ${dtype.name}; expected realized data whose ` +
      `last dim is in one piece and has a multiple of ${dtype.bits} bits`,
  );
}
