// From the trace of a call to what can be replayed. Every buffer of the captured items becomes a slot, and
// items name their arguments by slot: an input (given with each call), an output (new with each call, so that
// a result that somebody holds is never overwritten), or fixed. Fixed are the memory of tensors that were
// there before (weights), host data, and what only the items see, which is planned into one arena for each
// device. Nothing here runs anything.

import { loadPlanner } from "#engine/ondemand";
import type { DType } from "../../dtype.ts";
import { InternalError, JitError } from "../../errors.ts";
import { type Step, toposort } from "../../helpers.ts";
import type { LazyBuffer } from "../../lazy/lazybuffer.ts";
import type { Buffer } from "../../runtime/buffer.ts";
import type { Runner } from "../../runtime/runner.ts";
import { buildOn } from "../../schedule/schedule.ts";
import type { ShapeTracker } from "../../shape/shapetracker.ts";
import { isFixed, type Sint, type Variable } from "../../shape/symbolic.ts";
import { at, type Draw, type HostRead, type TensorLike, type TraceItem } from "./collector.ts";
import {
  type BufferUse,
  type Growth,
  holdsData,
  type MemoryReport,
  type OnceComputed,
  planner,
  reportOf,
  usesOf,
} from "./placement.ts";
import { stepTuning } from "./planner.ts";
import { isCaptured, type Trace } from "./trace.ts";

const NO_SIZES: ReadonlyMap<Buffer, Sint> = new Map();

export type Slot =
  | { readonly kind: "input"; readonly index: number }
  | { readonly kind: "output"; readonly device: string; readonly size: Sint; readonly dtype: DType }
  | { readonly kind: "fixed"; readonly buffer: Buffer };

/** One thing that is executed again: `args` are slots, outputs first. */
export interface JitItem {
  readonly runner: Runner;
  readonly args: readonly number[];
  readonly outputs: number;
  /** where each argument lies, and how much is written */
  readonly devices: readonly string[];
  readonly nbytes: number;
  readonly varVals: ReadonlyMap<Variable, number>;
}

/** How a node lies in its memory, and how a tensor sees it. */
interface PartView {
  readonly base: ShapeTracker;
  readonly st: ShapeTracker;
}
/** A leaf of what the function returned, and where it comes from in a replay. */
export type Result =
  /** the argument itself: which of the tensors */
  | { readonly kind: "argument"; readonly index: number }
  | {
      readonly kind: "tensor";
      readonly type: TensorClass;
      readonly assemble: (parts: readonly LazyBuffer[]) => LazyBuffer;
      readonly parts: readonly ResultPart[];
    }
  | {
      readonly kind: "host";
      readonly slot: number;
      readonly count: Sint;
      readonly decode: HostRead["decode"];
    }
  /** a tensor that was there before, and is assigned to */
  | { readonly kind: "assigned"; readonly tensor: TensorLike };

/** A node of a returned tensor: in an input, in a slot, or a constant without memory. */
export type ResultPart =
  | { readonly kind: "input"; readonly index: number; readonly view: PartView }
  | { readonly kind: "slot"; readonly slot: number; readonly view: PartView }
  | { readonly kind: "constant"; readonly value: LazyBuffer };

type TensorClass = new (lb: LazyBuffer) => TensorLike;

/** A tensor from before that the function assigns to, and its memory: one buffer for each device. */
interface AssignedMemory {
  readonly tensor: TensorLike;
  readonly buffers: readonly Buffer[];
  readonly line: string;
}

export interface CapturedFunction {
  readonly items: readonly JitItem[];
  readonly slots: readonly Slot[];
  /** memory that is read, not written, and whose it is: an assign to it may wait */
  readonly external: Map<Buffer, LazyBuffer>;
  /** what was computed once and for all */
  readonly once: OnceComputed | undefined;
  readonly assigned: readonly AssignedMemory[];
  /** what captured kernels compute values from before the call from: nobody may assign to it */
  readonly frozen: readonly LazyBuffer[];
  /** which of the tensors that are passed in the function assigns to */
  readonly writtenInputs: readonly number[];
  /** which of them only kernels read, who need not know how large the memory is */
  readonly readInputs: ReadonlySet<number>;
  /** random draws, by their place in what the function takes of the stream: `length` numbers */
  readonly random: { readonly draws: readonly Draw[]; readonly from: number; readonly length: number };
  /** of the capturing call */
  readonly memory: MemoryReport;
  /** how it gets room for larger values of variables; undefined: all has plain sizes */
  readonly growth: Growth | undefined;
}

/**
 * What stands for an input while the function runs: memory of its own, so that each
 * place where it is used is known.
 */
export interface Placeholder {
  readonly path: string;
  readonly tensor: TensorLike;
  /** one a part */
  readonly aliases: readonly Buffer[];
  /** its nodes before the function ran */
  readonly nodes: readonly LazyBuffer[];
}

/** The buffers of tensors, part by part. */
export const buffersOf = (tensors: readonly TensorLike[]): Buffer[] =>
  tensors.flatMap((t) => t.lazydata.parts.map((p) => p.base.buffer));

/** The slots of one capture while they are given out. */
class Slots {
  readonly list: Slot[] = [];
  readonly #at = new Map<Buffer, number>();

  add(buffer: Buffer, slot: Slot): number {
    this.#at.set(buffer, this.list.length);
    return this.list.push(slot) - 1;
  }
  of(buffer: Buffer): number {
    const found = this.#at.get(buffer);
    if (found === undefined) throw new InternalError(`${buffer} has no slot`);
    return found;
  }
  has(buffer: Buffer): boolean {
    return this.#at.has(buffer);
  }
}

/** A leaf of what the function returned. */
export type Returned =
  | { readonly kind: "tensor"; readonly tensor: TensorLike }
  | { readonly kind: "host"; readonly read: HostRead };

/** The memory of a leaf that the function returned. */
const memoryOf = (r: Returned): (Buffer | undefined)[] =>
  r.kind === "host" ? [r.read.buffer] : r.tensor.lazydata.parts.map((p) => p.base.realized);

/** Turns a trace into what can be replayed, and finds where each returned leaf comes from. */
export function* capture(
  trace: Trace,
  inputs: readonly Placeholder[],
  returned: readonly Returned[],
  given: ReadonlyMap<Variable, number>,
): Step<{ captured: CapturedFunction; results: Result[] }> {
  const wanted = new Set(returned.flatMap(memoryOf));
  yield* loadPlanner(trace.items.reduce((n, { item }) => item.outputs.reduce((m, b) => m + b.nbytes, n), 0));
  const { arrange, planArenas } = planner();
  const made = trace.items.filter((x) => x.isNew);
  const aliases = inputs.flatMap((i) => i.aliases);
  const changing = new Set([...wanted, ...aliases]);
  const once = stepTuning()?.onceOf(trace, made, usesOf(made, trace.firstNode), changing, inputs.length > 0);
  const repeated = made.filter((x) => !once?.items.has(x));
  const ordered = yield* arrange(repeated, usesOf(repeated, trace.firstNode), wanted);
  const items = ordered.filter(isCaptured);
  if (items.length === 0)
    throw new JitError("TinyJit: didn't JIT anything! The function computed nothing new");
  const uses = usesOf(ordered, trace.firstNode);
  requireSeen(trace, uses, inputs);
  requireGiven(items, given);

  const sizes = stepTuning()?.sizesOf(items) ?? NO_SIZES;
  const slots = new Slots();
  for (const [index, alias] of aliases.entries()) slots.add(alias, { kind: "input", index });
  for (const { buffer, local } of uses.values()) {
    if (!local || !wanted.has(buffer)) continue;
    const { device, dtype } = buffer;
    slots.add(buffer, { kind: "output", device, size: sizes.get(buffer) ?? buffer.size, dtype });
  }
  const free = new Set([...uses.keys()].filter((b) => !slots.has(b)));
  const places = yield* planArenas(ordered, uses, free);
  for (const [buffer, place] of places.planned) slots.add(buffer, { kind: "fixed", buffer: place });
  for (const { buffer } of uses.values()) {
    if (!slots.has(buffer)) slots.add(buffer, { kind: "fixed", buffer });
  }
  const external = externalsOf(trace, uses, inputs);
  once?.addTo(external);
  const results = returned.map((r) => resultOf(r, slots, inputs, trace, external));
  requireUsed(inputs, uses, results);
  const jitItems = items.map(({ runner, item }) => ({
    runner: runner as Runner,
    args: [...item.outputs, ...item.inputs].map((b) => slots.of(b)),
    devices: [...item.outputs, ...item.inputs].map((b) => b.device),
    nbytes: item.outputs.reduce((n, b) => n + b.nbytes, 0),
    outputs: item.outputs.length,
    varVals: item.varVals,
  }));
  const moved = new Set(
    items.flatMap(({ item: { ast, inputs, outputs } }) =>
      ast[0]?.op === "STORE" ? outputs : [...inputs, ...outputs],
    ),
  );
  const captured: CapturedFunction = {
    items: jitItems,
    slots: slots.list,
    external,
    once,
    assigned: [...trace.assigned.values()]
      .filter((a) => !inputs.some((i) => i.tensor === a.tensor))
      .map(({ tensor, line }) => ({ tensor, line, buffers: buffersOf([tensor]) })),
    frozen: toposort(
      [...trace.older].filter((b) => b.srcs !== undefined),
      (b) => b.srcs?.map((s) => s.base) ?? [],
    ).filter((b) => b.realized !== undefined),
    writtenInputs: inputs.flatMap((input, i) =>
      input.aliases.some((a) => uses.get(a)?.written === true) ? [i] : [],
    ),
    readInputs: new Set(
      inputs.flatMap(({ aliases }, i) => (aliases.some((a) => !uses.has(a) || moved.has(a)) ? [] : [i])),
    ),
    random: { draws: trace.draws, from: trace.stream.from, length: trace.stream.to - trace.stream.from },
    memory: reportOf(uses, places),
    growth: stepTuning()?.growthOf(sizes, places, (b) => slots.of(b), given),
  };
  return { captured, results };
}

/** Memory that was there before may be written only by an assign to a tensor that is known. */
function requireSeen(
  trace: Trace,
  uses: ReadonlyMap<Buffer, BufferUse>,
  inputs: readonly Placeholder[],
): void {
  for (const { inPlace, tensor, line } of trace.assigned.values()) {
    if (inPlace) continue;
    throw new JitError(
      `TinyJit: assign to a tensor of shape [${tensor.lazydata.shape}]${at(line)}, which has no memory of its own to write ` +
        "to, so that a replay could not reach it; make it with contiguous() and realize() it before the first call",
    );
  }
  const byHand = trace.items.flatMap((x) => (x.byHand ? x.item.outputs : []));
  const seen = new Set([...buffersOf([...trace.assigned.keys()]), ...byHand]);
  for (const { buffer, local, written } of uses.values()) {
    if (local || !written || seen.has(buffer) || inputs.some((i) => i.aliases.includes(buffer))) continue;
    throw new JitError(
      `TinyJit: the function writes to ${buffer}, which belongs to no tensor that the jit has seen; assign to the tensor ` +
        "itself (t.assign(x)), not to its graph node",
    );
  }
}

function requireGiven(items: readonly TraceItem[], given: ReadonlyMap<Variable, number>): void {
  const variables = new Set(items.flatMap(({ item }) => [...item.varVals.keys()]));
  for (const v of variables) {
    if (given.has(v) || isFixed(v)) continue;
    throw new JitError(
      `TinyJit: variable ${v.name} is bound inside the function, and a replay would keep its value; pass it bound, as an ` +
        `argument: step(x, ${v.name}.bind(${v.min}))`,
    );
  }
  for (const v of given.keys()) {
    if (variables.has(v)) continue;
    throw new JitError(
      `TinyJit: variable ${v.name} is passed, but no captured kernel takes it: its value was turned into a plain number ` +
        "(t.shape gives numbers; use the Variable itself), or it is not needed, then leave it out",
    );
  }
}

function requireUsed(
  inputs: readonly Placeholder[],
  uses: ReadonlyMap<Buffer, BufferUse>,
  results: readonly Result[],
): void {
  const passed = new Set(
    results.flatMap((r) =>
      r.kind === "tensor" ? r.parts.flatMap((p) => (p.kind === "input" ? [p.index] : [])) : [],
    ),
  );
  let next = 0;
  inputs.forEach(({ aliases, path }, i) => {
    const places = aliases.map(() => next++);
    const used = aliases.some((a, k) => uses.has(a) || passed.has(places[k] as number));
    if (used || results.some((r) => r.kind === "argument" && r.index === i)) return;
    throw new JitError(
      `TinyJit: ${path} is never used by what was captured, so a replay could not follow it. It was read on the host, ` +
        "cached from an earlier call, or is not needed: use it, or leave it out",
    );
  });
}

function resultOf(
  r: Returned,
  slots: Slots,
  inputs: readonly Placeholder[],
  trace: Trace,
  external: Map<Buffer, LazyBuffer>,
): Result {
  if (r.kind === "host") {
    const { buffer, count, decode } = r.read;
    return { kind: "host", slot: slots.of(buffer), count, decode };
  }
  const { tensor } = r;
  const index = inputs.findIndex((i) => i.tensor === tensor);
  if (index >= 0) return { kind: "argument", index };
  if (trace.assigned.has(tensor)) return { kind: "assigned", tensor };
  const { parts, assembler: assemble } = tensor.lazydata;
  return {
    kind: "tensor",
    type: tensor.constructor as TensorClass,
    assemble,
    parts: parts.map((p) => partOf(p, slots, inputs, trace, external)),
  };
}

function partOf(
  part: LazyBuffer,
  slots: Slots,
  inputs: readonly Placeholder[],
  trace: Trace,
  external: Map<Buffer, LazyBuffer>,
): ResultPart {
  const { base, st } = part;
  const buffer = base.realized;
  if (buffer === undefined) return { kind: "constant", value: part };
  if (base.newest !== base) {
    throw new JitError(
      `TinyJit: a result of shape [${part.shape}] is a view of memory that the function assigns to after making it: ` +
        "it would show the new values; return .clone() of it, made before the assign",
    );
  }
  const view = { base: base.st, st };
  const index = inputs.flatMap((i) => i.aliases).indexOf(buffer);
  if (index >= 0) return { kind: "input", index, view };
  // not touched by any item: a tensor from before
  if (!slots.has(buffer)) slots.add(buffer, { kind: "fixed", buffer });
  if (base.id < trace.firstNode) external.set(buffer, base.newest);
  return { kind: "slot", slot: slots.of(buffer), view };
}

function externalsOf(
  trace: Trace,
  uses: ReadonlyMap<Buffer, BufferUse>,
  inputs: readonly Placeholder[],
): Map<Buffer, LazyBuffer> {
  const external = new Map<Buffer, LazyBuffer>();
  const own = new Set(inputs.flatMap((i) => i.aliases));
  for (const { item } of trace.captured) {
    for (const lb of item.reads ?? []) {
      const use = uses.get(lb.buffer);
      if (use === undefined || use.local || use.written || own.has(lb.buffer)) continue;
      external.set(lb.buffer, lb.newest);
    }
  }
  return external;
}

const STALE =
  "was made inside a jitted function and not returned by it, so its value is gone, and a replay would not make it anew; " +
  "return it from the function";

/**
 * Tensors that the function left in variables and fields are not what an eager call would have left: reading
 * them is an error. The memory of values that only the items see is given back; they live in the arenas now.
 */
export function* seal(trace: Trace, inputs: readonly Placeholder[], kept: ReadonlySet<Buffer>): Step<void> {
  const made = trace.items.flatMap(({ item }) => item.lazies.filter((lb) => lb.id >= trace.firstNode));
  const aliases = inputs.flatMap((i) => [...i.nodes, ...i.tensor.lazydata.parts]).map((lb) => lb.base);
  const read = trace.items.flatMap(({ item }) => item.reads ?? []);
  const built = yield* buildOn([...made, ...aliases, ...read].flatMap((lb) => lb.pendingReaders()));
  for (const lb of [...made, ...aliases, ...built]) {
    if (lb.id >= trace.firstNode) lb.stale ??= `a tensor of shape [${lb.shape}] (${lb.op}) ${STALE}`;
  }
  const local = [...usesOf(trace.items, trace.firstNode).values()].filter(
    (u) => u.local && !kept.has(u.buffer),
  );
  for (const { buffer } of local) if (!holdsData(buffer)) buffer.dispose();
}
