// What goes into a capture and comes out of it. Before: stand-ins for the inputs while the function is captured, and all
// that an eager call would compute first. After: tensors whose memory holds a new value are told so, and the results are
// made of this call's memory.

import { JitError } from "../errors.ts";
import { runSync, type Step } from "../helpers.ts";
import { LazyBuffer } from "../lazy/lazybuffer.ts";
import { Buffer } from "../runtime/buffer.ts";
import { markOverwritten, waitingOn } from "../schedule/schedule.ts";
import { boundValue, rebind } from "../shape/symbolic.ts";
import type { Arguments } from "./arguments.ts";
import type { Captured, Result, Returned, Sight, StandIn } from "./capture.ts";
import { at, type TensorLike } from "./collector.ts";
import { realizeSteps } from "./realize.ts";

export const like = (t: TensorLike, lazydata: LazyBuffer): TensorLike =>
  new (t.constructor as new (lb: LazyBuffer) => TensorLike)(lazydata);

// ---- inputs ----

export function standIn(tensor: TensorLike, path: string): StandIn {
  const { base, st } = tensor.lazydata;
  const { buffer } = base;
  const alias = new Buffer(buffer.device, buffer.size, buffer.dtype, buffer);
  const made = like(tensor, LazyBuffer.onMemory(alias, base.st).seen(st));
  made.requiresGrad = tensor.requiresGrad;
  return { path, tensor: made, alias, node: made.lazydata };
}

/** What the function assigned to a stand-in is in the memory of the tensor it stood for. */
export function giveBack(standIns: readonly StandIn[], tensors: readonly TensorLike[]): void {
  standIns.forEach(({ tensor, node }, i) => {
    const t = tensors[i] as TensorLike;
    if (tensor.lazydata.base !== node.base) renew(t, t.lazydata.base.buffer);
  });
}

/** The tensor's memory holds a new value: whoever looks at the old one must hear of it. */
export function renew(t: TensorLike, buffer: Buffer): void {
  const { base, st } = t.lazydata;
  const next = LazyBuffer.onMemory(buffer, base.st);
  base.successor = next;
  markOverwritten(base);
  t.lazydata = next.seen(st);
}

// ---- before a replay ----

/** Computes what an eager call would have computed first, and refuses memory that is not what it was. */
export function* prepare(captured: Captured, given: Arguments): Step<void> {
  const pending: LazyBuffer[] = given.unrealized();
  for (const [buffer, node] of captured.external) {
    const { newest } = node;
    if (newest !== node) captured.external.set(buffer, newest);
    if (newest.realized === undefined) pending.push(newest);
    if (!buffer.isAllocated) throw new JitError(`TinyJit: ${buffer}, which was captured, ${GONE}`);
  }
  const written: LazyBuffer[] = captured.writtenInputs.map(
    (i) => (given.tensors[i] as TensorLike).lazydata.base,
  );
  for (const { tensor, buffer, line } of captured.assigned) {
    const { base } = tensor.lazydata;
    if (base.buffer !== buffer) {
      throw new JitError(
        `TinyJit: the tensor of shape [${base.shape}] that the function assigns to${at(line)} has other memory by now than when ` +
          "it was captured; change it by assign() alone, or reset() the jit",
      );
    }
    if (!buffer.isAllocated) throw new JitError(`TinyJit: ${buffer}, which the function assigns to, ${GONE}`);
    if (base.realized === undefined) pending.push(base);
    written.push(base);
  }
  pending.push(...waitingOn(written));
  if (pending.length > 0) yield* realizeSteps(pending);
  requireApart(captured, given);
}
const GONE = "was disposed of; reset() the jit";

/** An input that is written must not be the memory of anything else in the call. */
function requireApart(captured: Captured, given: Arguments): void {
  for (const i of captured.writtenInputs) {
    const own = rootOf((given.tensors[i] as TensorLike).lazydata.base.buffer);
    const twin = given.tensors.findIndex((t, j) => j !== i && rootOf(t.lazydata.base.buffer) === own);
    const shared =
      twin >= 0
        ? given.paths[twin]
        : [...captured.external.keys(), ...captured.assigned.map((a) => a.buffer)].some(
              (b) => rootOf(b) === own,
            )
          ? "a tensor that the function uses besides"
          : undefined;
    if (shared === undefined) continue;
    throw new JitError(
      `TinyJit: the function assigns to ${given.paths[i]}, and ${shared} lies in the same memory; pass a copy: x.clone()`,
    );
  }
}
const rootOf = (b: Buffer): Buffer => (b.base === undefined ? b : rootOf(b.base));

// ---- results ----

/** The memory of the results of the capturing call itself. */
export function outputsOf(
  captured: Captured,
  leaves: readonly Returned[],
  results: readonly Result[],
): Map<number, Buffer> {
  const outputs = new Map<number, Buffer>();
  results.forEach((r, i) => {
    const leaf = leaves[i] as Returned;
    if ((r.kind !== "slot" && r.kind !== "host") || captured.slots[r.slot]?.kind !== "output") return;
    outputs.set(r.slot, leaf.kind === "host" ? leaf.read.buffer : leaf.tensor.lazydata.base.buffer);
  });
  return outputs;
}

/** Makes the leaves of what a call returns. Results that share memory share a node. */
export class Results {
  readonly #captured: Captured;
  readonly #given: Arguments;
  readonly #outputs: ReadonlyMap<number, Buffer>;
  readonly #nodes = new Map<number, LazyBuffer>();

  constructor(captured: Captured, given: Arguments, outputs: ReadonlyMap<number, Buffer>) {
    this.#captured = captured;
    this.#given = given;
    this.#outputs = outputs;
  }

  leaf(r: Result): unknown {
    const { bound } = this.#given;
    switch (r.kind) {
      case "input": {
        const t = this.#given.tensors[r.index] as TensorLike;
        return r.sight === undefined ? t : like(t, t.lazydata.base.seen(r.sight.st.rebind(bound)));
      }
      case "assigned":
        return r.tensor;
      case "constant":
        return new r.type(r.value.seen(r.value.st.rebind(bound)));
      case "slot":
        return new r.type(this.#node(r.slot, r.sight).seen(r.sight.st.rebind(bound)));
      case "host": {
        const buffer = this.#outputs.get(r.slot) as Buffer;
        const bytes = runSync(buffer.read(true), "TinyJit");
        const count = boundValue(rebind(r.count, bound)) as number;
        return r.decode(bytes.slice(0, count * buffer.dtype.itemsize));
      }
    }
  }

  #node(slot: number, { base }: Sight): LazyBuffer {
    const known = this.#nodes.get(slot);
    if (known !== undefined) return known;
    const { slots, assigned, external } = this.#captured;
    const place = slots[slot];
    const fixed = place?.kind === "fixed" ? place.buffer : undefined;
    const owner = assigned.find((a) => a.buffer === fixed)?.tensor.lazydata.base;
    const older = fixed === undefined ? undefined : external.get(fixed)?.newest;
    const buffer = fixed ?? (this.#outputs.get(slot) as Buffer);
    const node = owner ?? older ?? LazyBuffer.onMemory(buffer, base.rebind(this.#given.bound));
    this.#nodes.set(slot, node);
    return node;
  }
}
