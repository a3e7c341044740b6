// Memory of small results. Each call of a replay returns new memory, and a finaliser for each small piece
// would cost more than the call. So small results of one device are cut from a larger block, which is freed
// when the last of them is collected.

import { dtypes } from "../../dtype.ts";
import { Buffer } from "../../runtime/buffer.ts";
import { Device } from "../devices.ts";
import type { MakeResult } from "./placement.ts";

/** Bytes of a block, which one result may hold on to; larger results have memory of their own. */
const BLOCK = 1 << 14;
const SMALL = 1 << 10;

class ResultMemory {
  /** only results hold a block */
  readonly #blocks = new Map<string, { block: WeakRef<Buffer>; used: number }>();
  /** devices whose memory the host does not see: there a place in a block costs more than memory alone */
  readonly #apart = new Set<string>();
  /** bytes of the first block: a jit that is called a few times needs little */
  #next = SMALL;

  take({ device, size, dtype }: Parameters<MakeResult>[0]): Buffer | undefined {
    const nbytes = dtype.bytesFor(size);
    const align = Device.get(device).allocator.offsetAlign;
    const room = Math.ceil(nbytes / align) * align;
    if (room > SMALL || nbytes === 0 || dtype.image || this.#apart.has(device)) return undefined;
    const current = this.#blocks.get(device);
    const block = current?.block.deref();
    if (block !== undefined && current !== undefined && current.used + room <= block.nbytes) {
      const made = new Buffer(device, size, dtype, block, current.used);
      current.used += room;
      return made;
    }
    const next = new Buffer(device, this.#next, dtypes.uint8).ensureAllocated();
    if (Device.get(device).allocator.view(next.handle, 0) === undefined) {
      this.#apart.add(device);
      return undefined;
    }
    this.#next = Math.min(2 * this.#next, BLOCK);
    this.#blocks.set(device, { block: new WeakRef(next), used: room });
    return new Buffer(device, size, dtype, next, 0);
  }
}

export function resultMemory(): MakeResult {
  const memory = new ResultMemory();
  return (result) => memory.take(result);
}
