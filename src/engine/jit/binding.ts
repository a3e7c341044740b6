// What goes into a capture and comes out of it. Before: placeholders for the inputs while the function is
// captured, and all that an eager call would compute first. After: tensors whose memory holds a new value get
// a new node, and the results are made of this call's memory.

import { JitError } from "../../errors.ts";
import { runSync, type Step } from "../../helpers.ts";
import { keepCopies } from "../../lazy/copies.ts";
import { LazyBuffer } from "../../lazy/lazybuffer.ts";
import { Buffer } from "../../runtime/buffer.ts";
import { markOverwritten, waitingOn } from "../../schedule/schedule.ts";
import { boundValue, rebind } from "../../shape/symbolic.ts";
import { realizeSteps } from "../realize.ts";
import type { Arguments } from "./arguments.ts";
import {
  buffersOf,
  type CapturedFunction,
  type Placeholder,
  type Result,
  type ResultPart,
  type Returned,
} from "./capture.ts";
import { at, type TensorLike } from "./collector.ts";
import { rangeOf } from "./placement.ts";

export const like = (t: TensorLike, lazydata: LazyBuffer): TensorLike =>
  new (t.constructor as new (lb: LazyBuffer) => TensorLike)(lazydata);

// ---- inputs ----

export function placeholderFor(tensor: TensorLike, path: string): Placeholder {
  const { parts, assembler } = tensor.lazydata;
  const aliases = parts.map(({ base: { buffer } }) => {
    return new Buffer(buffer.device, buffer.size, buffer.dtype, buffer);
  });
  const nodes = parts.map(({ base, st }, i) => LazyBuffer.onMemory(aliases[i] as Buffer, base.st).seen(st));
  const made = like(tensor, assembler(nodes));
  made.requiresGrad = tensor.requiresGrad;
  return { path, tensor: made, aliases, nodes };
}

/** What the function assigned to a placeholder is in the memory of the tensor it stood for. */
export function giveBack(placeholders: readonly Placeholder[], tensors: readonly TensorLike[]): void {
  placeholders.forEach(({ tensor, nodes }, i) => {
    const now = tensor.lazydata.parts;
    if (nodes.some((node, k) => now[k]?.base !== node.base)) renew(tensors[i] as TensorLike);
  });
}

/** The tensor's memory holds a new value: reading the old value becomes an error. */
export function renew(t: TensorLike): void {
  const { parts, assembler } = t.lazydata;
  const made = parts.map(({ base, st }) => {
    const next = LazyBuffer.onMemory(base.buffer, base.st);
    base.successor = next;
    markOverwritten(base);
    return next.seen(st);
  });
  t.lazydata = assembler(made);
}

// ---- before a replay ----

/** Computes what an eager call would have computed first, and refuses memory that is not what it was. */
export function* prepare(captured: CapturedFunction, given: Arguments): Step<void> {
  given.requireUnchanged(() => [...captured.external.keys(), ...captured.assigned.flatMap((a) => a.buffers)]);
  const pending: LazyBuffer[] = given.unrealized();
  for (const [buffer, node] of captured.external) {
    const { newest } = node;
    if (newest !== node) {
      captured.external.set(buffer, newest);
      if (captured.once?.reads.has(buffer)) captured.once.isOld = true;
    }
    if (newest.realized === undefined) pending.push(newest);
    if (!buffer.isAllocated) throw new JitError(`TinyJit: ${buffer}, which was captured, ${GONE}`);
    if (node.left || newest.left) {
      throw new JitError(
        `TinyJit: a tensor of shape [${newest.shape}] that the function uses has other memory by now than when it was captured, ` +
          "because another name of it was assigned to; reset() the jit",
      );
    }
  }
  const changed = captured.frozen.find((b) => b.overwritten);
  if (changed !== undefined) {
    throw new JitError(
      `TinyJit: the function uses a value that was built before it and not realized, of a tensor of shape [${changed.shape}] ` +
        "that was assigned to since; realize() the value first, or build it inside the function",
    );
  }
  const written = captured.writtenInputs.flatMap((i) => basesOf(given.tensors[i] as TensorLike));
  for (const { tensor, buffers, line } of captured.assigned) {
    basesOf(tensor).forEach((base, i) => {
      const buffer = buffers[i] as Buffer;
      if (base.buffer !== buffer) {
        throw new JitError(
          `TinyJit: the tensor of shape [${base.shape}] that the function assigns to${at(line)} has other memory by now than ` +
            "when it was captured; change it by assign() alone, or reset() the jit",
        );
      }
      if (!buffer.isAllocated)
        throw new JitError(`TinyJit: ${buffer}, which the function assigns to, ${GONE}`);
      if (base.realized === undefined) pending.push(base);
      written.push(base);
    });
  }
  for (const base of written) keepCopies(base);
  for (const b of yield* waitingOn(written)) pending.push(b);
  if (pending.length > 0) {
    yield* realizeSteps(pending);
    given.unrealized(); // an assign that waited may have overwritten an input
  }
  requireApart(captured, given);
}
const basesOf = (t: TensorLike): LazyBuffer[] => t.lazydata.parts.map((p) => p.base);
const GONE = "was disposed of; reset() the jit";

/**
 * Memory that is written must not belong to anything else in the call: neither to an input nor to a tensor
 * from before.
 */
export function requireApart(captured: CapturedFunction, given: Arguments): void {
  if (captured.assigned.length === 0 && captured.writtenInputs.length === 0) return;
  const refuse = (writes: string, shared: string | undefined): never => {
    throw new JitError(
      `TinyJit: the function assigns to ${writes}, and ${shared} lies in the same memory; pass a copy: x.clone()`,
    );
  };
  const meets = (i: number, b: Buffer): boolean => {
    const { root, from, to } = rangeOf(b);
    const own = buffersOf([given.tensors[i] as TensorLike]).map(rangeOf);
    return own.some((r) => r.root === root && from < r.to && r.from < to);
  };
  for (const { tensor, buffers, line } of captured.assigned) {
    const i = given.tensors.findIndex((_, at) => buffers.some((b) => meets(at, b)));
    if (i >= 0) refuse(`a tensor of shape [${tensor.lazydata.shape}]${at(line)}`, given.paths[i]);
  }
  for (const i of captured.writtenInputs) {
    const twin = given.tensors.findIndex((t, j) => j !== i && buffersOf([t]).some((b) => meets(i, b)));
    if (twin >= 0) refuse(given.paths[i] as string, given.paths[twin]);
    if ([...captured.external.keys()].some((b) => meets(i, b)))
      refuse(given.paths[i] as string, "a tensor that the function uses besides");
  }
}

// ---- results ----

/** The memory of the results of the capturing call itself. */
export function outputsOf(
  captured: CapturedFunction,
  leaves: readonly Returned[],
  results: readonly Result[],
): Map<number, Buffer> {
  const outputs = new Map<number, Buffer>();
  const isOutput = (slot: number): boolean => captured.slots[slot]?.kind === "output";
  results.forEach((r, i) => {
    const leaf = leaves[i] as Returned;
    if (leaf.kind === "host") {
      if (r.kind === "host") outputs.set(r.slot, leaf.read.buffer);
    } else if (r.kind === "tensor") {
      const buffers = buffersOf([leaf.tensor]);
      r.parts.forEach((p, k) => {
        if (p.kind === "slot" && isOutput(p.slot)) outputs.set(p.slot, buffers[k] as Buffer);
      });
    }
  });
  return outputs;
}

/** Makes the leaves of what a call returns. Results that share memory share a node. */
export class Results {
  readonly #captured: CapturedFunction;
  readonly #given: Arguments;
  readonly #outputs: ReadonlyMap<number, Buffer>;
  readonly #nodes = new Map<number, LazyBuffer>();

  constructor(captured: CapturedFunction, given: Arguments, outputs: ReadonlyMap<number, Buffer>) {
    this.#captured = captured;
    this.#given = given;
    this.#outputs = outputs;
  }

  leaf(r: Result): unknown {
    switch (r.kind) {
      case "argument":
        return this.#given.tensors[r.index];
      case "assigned":
        return r.tensor;
      case "tensor":
        return new r.type(r.assemble(r.parts.map((p) => this.#part(p))));
      case "host": {
        const buffer = this.#outputs.get(r.slot) as Buffer;
        const bytes = runSync(buffer.read(true), "TinyJit");
        const count = boundValue(rebind(r.count, this.#given.bound)) as number;
        return r.decode(bytes.slice(0, buffer.dtype.bytesFor(count)), count);
      }
    }
  }

  #part(part: ResultPart): LazyBuffer {
    const { bound } = this.#given;
    if (part.kind === "constant") return part.value.seen(part.value.st.rebind(bound));
    const node = part.kind === "slot" ? this.#node(part) : (this.#inputs[part.index] as LazyBuffer);
    return node.seen(part.view.st.rebind(bound));
  }

  #node({ slot, view }: Extract<ResultPart, { kind: "slot" }>): LazyBuffer {
    const known = this.#nodes.get(slot);
    if (known !== undefined) return known;
    const { slots, assigned, external } = this.#captured;
    const place = slots[slot];
    const fixed = place?.kind === "fixed" ? place.buffer : undefined;
    const owner = assigned.flatMap((a) => basesOf(a.tensor)).find((lb) => lb.buffer === fixed);
    const older = fixed === undefined ? undefined : external.get(fixed)?.newest;
    const buffer = fixed ?? (this.#outputs.get(slot) as Buffer);
    const node = owner ?? older ?? LazyBuffer.onMemory(buffer, view.base.rebind(this.#given.bound));
    this.#nodes.set(slot, node);
    return node;
  }
  get #inputs(): readonly LazyBuffer[] {
    return this.#given.tensors.flatMap(basesOf);
  }
}
