// The arrays that KEEP, PACK and INTERCHANGE put between loops: how many bytes they take, and whether the
// target has room for them. In go arrays as they are made; one that does not fit is refused.

import type { DefineLocal, UOp } from "../../uop/node.ts";
import type { Target } from "../target.ts";

/** Each array starts on a cache line of this many bytes. */
const CACHE_LINE = 64;

/** The bytes of an array up to the start of the next. */
export const lineBytes = (bytes: number): number => Math.ceil(bytes / CACHE_LINE) * CACHE_LINE;

/** The room for arrays that the target has for one kernel. */
export class ArrayRoom {
  readonly #target: Target;
  #left: number;

  /** `nodes`: the graph so far, whose arrays have taken their part. */
  constructor(target: Target, nodes: readonly UOp[] = []) {
    this.#target = target;
    this.#left = target.sharedMax;
    for (const u of nodes) if (u.op === "DEFINE_LOCAL") this.#left -= bytesOf(u);
  }
  /** Gives the array its room; `refuse` throws where there is not enough left. */
  take(array: DefineLocal, refuse: (why: string) => never): void {
    this.#left -= bytesOf(array);
    if (this.#left < 0) refuse(`${this.#target.name} has room for ${this.#target.sharedMax} bytes`);
  }
}

const bytesOf = ({ dtype, elements }: DefineLocal): number => lineBytes(elements * dtype.base.itemsize);
