// The graph of a loop's body, copied. A body is traced on placeholders; the copy replaces them by memory of
// its own, and all that the body reads from outside by sources of the loop, which are computed before it. In:
// nodes of the trace. Out: nodes that belong to nobody else, so that they can be scheduled once and run for
// each step.

import { ArgumentError } from "../../errors.ts";
import { toposort } from "../../helpers.ts";
import { LazyBuffer } from "../../lazy/lazybuffer.ts";
import { Buffer } from "../../runtime/buffer.ts";
import type { ShapeTracker } from "../../shape/shapetracker.ts";
import type { ScanLoop } from "./loop.ts";

/** What the loop reads: nodes that are stored before it, and the buffer that stands for each in the copy. */
export class Sources {
  readonly nodes: LazyBuffer[] = [];
  readonly memory: Buffer[] = [];

  /** The position of a stored node among the sources. */
  indexOf(base: LazyBuffer): number {
    const known = this.nodes.indexOf(base);
    if (known >= 0) return known;
    // it is read from memory, whatever else is fused
    if (base.realized === undefined) base.forcedRealize = true;
    this.memory.push(new Buffer(base.device, base.buffer.size, base.dtype));
    return this.nodes.push(base) - 1;
  }
  /** A node outside of the loop, as the copied graph sees it. */
  seen(node: LazyBuffer): LazyBuffer {
    if (node.isUnrealizedConst) return node;
    const { base } = node;
    const copy = LazyBuffer.onMemory(this.memory[this.indexOf(base)] as Buffer, base.st);
    return node === base ? copy : copy.seen(node.st);
  }
}

/** A new placeholder: a node that has memory, which is bound to something else when the loop runs. */
export const placeholder = (device: string, st: ShapeTracker, dtype: LazyBuffer["dtype"]): LazyBuffer =>
  LazyBuffer.onMemory(new Buffer(device, st.size as number, dtype), st);

/** Whether a node is taken as it is: it reads no memory. */
const isFree = (b: LazyBuffer): boolean =>
  b.realized === undefined && (b.op === "CONST" || b.op === "ARANGE");

export class LoopTemplate {
  readonly sources: Sources;
  readonly #since: number;
  readonly #copies: Map<LazyBuffer, LazyBuffer>;
  /** the results of loops inside the body, by the loop they were traced with */
  readonly #loops = new Map<ScanLoop, readonly LazyBuffer[]>();

  /** `since`: nodes below this id come from outside. `places`: what stands for the placeholders. */
  constructor(since: number, sources: Sources, places: ReadonlyMap<LazyBuffer, LazyBuffer>) {
    this.#since = since;
    this.sources = sources;
    this.#copies = new Map(places);
  }

  copy(node: LazyBuffer): LazyBuffer {
    for (const b of toposort([node.base], (x) => this.#sourcesOf(x)))
      if (!this.#copies.has(b)) this.#copies.set(b, this.#one(b));
    const base = this.#copies.get(node.base) as LazyBuffer;
    return node === node.base ? base : base.seen(node.st);
  }
  #sourcesOf(b: LazyBuffer): LazyBuffer[] {
    if (this.#copies.has(b) || isFree(b) || this.#isOutside(b)) return [];
    return b.sources.map((s) => s.base);
  }
  #isOutside(b: LazyBuffer): boolean {
    if (b.id < this.#since || b.realized !== undefined) return true;
    // data that the body takes from the host is the same in every step
    const src = b.op === "COPY" ? b.sources[0]?.base : undefined;
    return (
      src !== undefined && (src.id < this.#since || src.realized !== undefined) && !this.#copies.has(src)
    );
  }
  #one(b: LazyBuffer): LazyBuffer {
    if (isFree(b)) return b;
    if (this.#isOutside(b)) return this.sources.seen(b);
    if (b.op === "ASSIGN" || b.op === "CUSTOM" || b.op === "COPY") throw new ArgumentError(REFUSED[b.op]);
    const srcs = b.sources.map((s) => {
      const base = this.#copies.get(s.base) as LazyBuffer;
      return s === s.base ? base : base.seen(s.st);
    });
    if (b.op === "SCAN") return this.#inner(b, srcs);
    const made = LazyBuffer.make(b.device, b.shape, b.dtype, b.op as never, b.arg, srcs);
    made.forcedRealize = b.forcedRealize;
    return made;
  }
  /** A loop within the loop: the same body with other sources. */
  #inner(b: LazyBuffer, srcs: readonly LazyBuffer[]): LazyBuffer {
    const loop = b.arg as unknown as ScanLoop;
    const at = loop.results.indexOf(b);
    const known = this.#loops.get(loop) ?? loop.withSources(srcs).results;
    this.#loops.set(loop, known);
    return known[at] as LazyBuffer;
  }
}

export const REFUSED = {
  ASSIGN:
    "scan: the body assigns to a tensor; a body is traced once and must have no side effects: return the new value as " +
    "a part of the carry",
  CUSTOM: "scan: the body runs a custom op, which the steps of a scan cannot repeat; unroll the loop instead",
  COPY:
    "scan: the body moves a value of the step to another device; keep init, xs and what the body closes over on one " +
    "device, and move the results afterwards",
} as const;
