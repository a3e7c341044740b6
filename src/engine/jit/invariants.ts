// A capture is compared with the call before it. What a replay would freeze, and what did not stay the same,
// is refused: numbers compiled into kernels, data made on the host, values carried from call to
// call outside of device memory.

import type { Value } from "../../dtype.ts";
import { JitError } from "../../errors.ts";
import { each, getOrMake, mapEach, runSync, type Step } from "../../helpers.ts";
import { PAUSE } from "../../pace.ts";
import type { Buffer } from "../../runtime/buffer.ts";
import { astFormula, astSkeleton, constantsIn } from "../../schedule/lazyop.ts";
import type { ScheduleItem } from "../../schedule/schedule.ts";
import { Device } from "../devices.ts";
import { carried } from "./collector.ts";
import type { Trace } from "./trace.ts";

/** Kernels that are written as text before the work could stop. */
const KERNELS = 4;

interface ReadFacts {
  /**
   * a capture gives each input a buffer of its own, and in the call before it may have been that of a weight
   */
  readonly formula: string;
  readonly skeleton: string;
  readonly constants: readonly Value[];
  readonly shape: string;
}

/** What is kept of a call until the capture after it; none of its memory. */
export class CallSummary {
  /** the nodes that the call made: from the first up to below the second */
  readonly nodes: readonly [number, number];
  readonly kernels: readonly ReadFacts[];
  readonly hostData: readonly Buffer[];
  /** buffers that the call made, of more than constants */
  readonly computed: WeakSet<Buffer>;

  static *of(trace: Trace): Step<CallSummary> {
    return new CallSummary(trace, yield* kernelsOf(trace));
  }
  constructor(trace: Trace, kernels: readonly ReadFacts[]) {
    this.nodes = [trace.firstNode, trace.endNode];
    this.kernels = kernels;
    this.hostData = hostData(trace).map((x) => x.buffer);
    this.computed = computedIn(trace);
  }
  /** The kernels as keys: equal where the same is computed. */
  get keys(): string[] {
    return this.kernels.map((k) => k.formula);
  }
}

/** Refuses what differs between a call and the capture after it, both with inputs of one kind. */
export function* requireInvariant(before: CallSummary, now: CallSummary, trace: Trace): Step<void> {
  yield* requireSameNumbers(before, now);
  yield PAUSE;
  requireSameHostData(before, trace);
  requireNothingCarried(before, trace);
}

function* kernelsOf(trace: Trace): Step<ReadFacts[]> {
  const kernels = trace.captured.filter(({ item }) => item.ast[0]?.op === "STORE");
  return yield* mapEach(
    kernels,
    ({ item: { ast, lazies } }) => {
      const shape = `[${lazies[0]?.shape ?? ""}]`;
      return { formula: astFormula(ast), skeleton: astSkeleton(ast), constants: constantsIn(ast), shape };
    },
    KERNELS,
  );
}

/** Whether all of `part` is in `whole`, in that order; `whole` may have more. */
export function isWithin(part: readonly string[], whole: readonly string[]): boolean {
  let i = 0;
  for (const x of whole) if (x === part[i]) i++;
  return i === part.length;
}

/**
 * Kernels that are the same but for numbers. The first call may have others
 * besides: it computes weights, too.
 */
function* requireSameNumbers(before: CallSummary, now: CallSummary): Step<void> {
  const earlier = yield* bySkeleton(before.kernels);
  for (const [skeleton, kernels] of yield* bySkeleton(now.kernels)) {
    const same = earlier.get(skeleton) ?? [];
    if (same.length !== kernels.length) continue;
    const [old, new_] = [unmatched(same, kernels), unmatched(kernels, same)];
    yield PAUSE;
    if (old === undefined || new_ === undefined) continue;
    throw new JitError(
      `TinyJit: ${whatChanged(old, new_)} A plain number is compiled into the kernel, and a replay would keep it; ` +
        "pass it as a tensor (new Tensor([x])), or as a bound Variable if it is a size or an offset",
    );
  }
}

/** The first kernel that has no partner of its own formula among the others. */
function unmatched(kernels: readonly ReadFacts[], others: readonly ReadFacts[]): ReadFacts | undefined {
  const left = new Map<string, number>();
  for (const { formula } of others) left.set(formula, (left.get(formula) ?? 0) + 1);
  return kernels.find(({ formula }) => {
    const n = left.get(formula) ?? 0;
    left.set(formula, n - 1);
    return n <= 0;
  });
}

function* bySkeleton(kernels: readonly ReadFacts[]): Step<Map<string, ReadFacts[]>> {
  const groups = new Map<string, ReadFacts[]>();
  yield* each(kernels, (k) => void getOrMake(groups, k.skeleton, () => []).push(k), KERNELS);
  return groups;
}

function whatChanged(old: ReadFacts, now: ReadFacts): string {
  const what = `the kernel of a tensor of shape ${now.shape}`;
  const i = old.constants.findIndex((x, at) => !Object.is(x, now.constants[at]));
  if (i < 0) return `${what} reads other places of its inputs than in the call before.`;
  return `${what} has the number ${now.constants[i]} where the call before had ${old.constants[i]}.`;
}

/** Data that the function itself copies from the host must be what the call before copied. */
function requireSameHostData(before: CallSummary, now: Trace): void {
  let i = 0;
  for (const { item, buffer } of hostData(now)) {
    const found = before.hostData.findIndex((old, at) => at >= i && sameBytes(old, buffer));
    if (found < 0) {
      throw new JitError(
        `TinyJit: a tensor of shape [${item.lazies[0]?.shape ?? ""}] ${buffer.dtype.name} is made of host data inside the ` +
          "function, and the data is not that of the call before; a replay would keep it. Make the tensor " +
          "outside and pass it in",
      );
    }
    i = found + 1;
  }
}

function sameBytes(a: Buffer, b: Buffer): boolean {
  if (a.dtype !== b.dtype || a.nbytes !== b.nbytes) return false;
  const [x, y] = [a, b].map((buffer) => runSync(buffer.read(true), "TinyJit")) as [Uint8Array, Uint8Array];
  for (let i = 0; i < x.length; i++) if (x[i] !== y[i]) return false;
  return true;
}

/** Copies of host arrays that were made in the call itself; random draws are not among them. */
function hostData(trace: Trace): { item: ScheduleItem; buffer: Buffer }[] {
  const draws = new Set(trace.draws.map((d) => d.buffer));
  return trace.captured.flatMap(({ item }) => {
    const buffer = item.inputs[0];
    if (item.ast[0]?.op !== "COPY" || buffer === undefined || Device.storageOf(buffer.device) !== "array")
      return [];
    const made = item.reads?.some((lb) => lb.id >= trace.firstNode && lb.op === "EMPTY") ?? false;
    return made && buffer.base === undefined && !draws.has(buffer) ? [{ item, buffer }] : [];
  });
}

/** What the capture reads, does not write, and the call before computed of things that may change. */
function requireNothingCarried(before: CallSummary, now: Trace): void {
  const written = new Set(now.items.flatMap((x) => x.item.outputs));
  for (const { item } of now.captured) {
    for (const b of item.inputs) {
      if (!before.computed.has(b) || written.has(b)) continue;
      const shape = item.reads?.find((lb) => lb.buffer === b)?.shape ?? [b.size];
      throw new JitError(carried(`a tensor of shape [${shape}]`));
    }
  }
}

/** Buffers that a call made, of more than constants. */
function computedIn(trace: Trace): WeakSet<Buffer> {
  const draws = new Set(trace.draws.map((d) => d.buffer));
  const [written, made, computed] = [new Set<Buffer>(), new Set<Buffer>(), new Set<Buffer>()];
  for (const { item, isNew, byHand } of trace.items) {
    const varies = item.inputs.some(
      (b) => computed.has(b) || draws.has(b) || (!written.has(b) && Device.computes(b.device)),
    );
    item.outputs.forEach((out, k) => {
      if (isNew && !byHand && !written.has(out) && item.lazies[k]?.op !== "ASSIGN") made.add(out);
      written.add(out);
      if (made.has(out) && varies) computed.add(out);
    });
  }
  return new WeakSet(computed);
}
