// Stores some nodes that fuse.ts fused into a kernel: values whose recomputation costs too much (the cost
// rule, `isBetterStored`), chains too deep to compile, inputs of kernels with more buffers than the device
// allows. In: the graph and the stored nodes, to which it adds. group.ts decides which kernels become one.

import { env } from "../env.ts";
import { each, getOrMake, type Step } from "../helpers.ts";
import type { LazyBuffer } from "../lazy/lazybuffer.ts";
import { isAluOp, opCost } from "../ops.ts";
import { Device } from "../runtime/registry.ts";
import { smax, sprod } from "../shape/symbolic.ts";
import type { Shape } from "../shape/view.ts";

/** A longer chain of ops is stored on the way: compilers are slow on huge kernels and gain nothing. */
export const MAX_FUSED_DEPTH = 400;
/** What several kernels would each compute is stored if it takes more nodes than this. */
export const MAX_REPEATED = 32;
/** A node that one kernel would compute at more indexes than this is stored: views of views multiply. */
const MAX_FUSED_VIEWS = 32;
/** How many nodes are counted to find what it costs to compute a value again. */
const MAX_COSTED = 100;
/** This many operations take as long as moving one byte: typical for CPUs with vectors; GPUs do more. */
const OPS_A_BYTE = 4;
/** The limit when a device does not say how many buffers a kernel may have, or is not open yet. */
const MANY_BUFFERS = 500;
/** Launching a kernel costs as much as moving this many bytes. */
const KERNEL_BYTES = 1 << 16;

/** One use of a node: the user, and the view through which it reads. */
export interface Use {
  readonly by: LazyBuffer;
  readonly through: LazyBuffer;
}
/** The graph as fuse.ts sees it. */
interface FusedGraph {
  /** sources before users */
  readonly all: readonly LazyBuffer[];
  readonly uses: ReadonlyMap<LazyBuffer, readonly Use[]>;
  /** reductions computed inside the kernel in which they are expanded back */
  readonly fused: ReadonlySet<LazyBuffer>;
  /** how many buffers a kernel of a device may have */
  readonly maxBuffers: (device: string) => number;
}

export const elements = (shape: Shape): number => smax(sprod(shape));

/** How many buffers a kernel of the device may have, as far as that is known. */
export const buffersOf = (device: string): number =>
  (Device.isOpen(device) ? Device.get(device).renderer?.maxBuffers : undefined) ?? MANY_BUFFERS;

/** Adds to the stored nodes. */
export function* split(stored: Set<LazyBuffer>, graph: FusedGraph): Step<void> {
  const { all, uses, maxBuffers } = graph;
  // a graph that is below the limits as a whole has no part that exceeds one
  const isSmall = all.length <= MAX_REPEATED && all.every((b) => uses.size < maxBuffers(b.device));
  if (isSmall) return yield* splitCostly(stored, graph);
  yield* splitRepeated(stored, graph);
  yield* splitCostly(stored, graph);
  yield* splitDeep(stored, graph);
  yield* splitWide(stored, graph);
}

// ---- shared by kernels ----

/**
 * Stores a value where the kernels that need it part, if each would compute more than MAX_REPEATED nodes for
 * it. This keeps all kernels together linear in the graph: the state of a recurrent network would otherwise
 * be computed from its first step in every later one.
 */
function* splitRepeated(stored: Set<LazyBuffer>, { all, uses }: FusedGraph): Step<void> {
  /** the stored node in whose kernel a node is computed; null: several kernels */
  const kernels = new Map<LazyBuffer, LazyBuffer | null>();
  yield* each(all.toReversed(), (b) => {
    if (stored.has(b) || b.isLoad) return;
    let kernel: LazyBuffer | null | undefined;
    for (const { by } of uses.get(b) ?? []) {
      const mine = stored.has(by) ? by : kernels.get(by);
      if (kernel === undefined) kernel = mine;
      else if (kernel !== mine) kernel = null;
    }
    kernels.set(b, kernel ?? null);
  });
  // a product of expanded operands is larger than both: the operands are stored instead
  const grows = (b: LazyBuffer): boolean =>
    b.sources.every((s) => s.isUnrealizedConst || elements(s.base.shape) < elements(b.shape));
  yield* each(all, (b) => {
    if (kernels.get(b) !== null || grows(b)) return;
    const users = uses.get(b) ?? [];
    const [first] = users as [Use];
    const parts = users.some((u) => u.by !== first.by) || grows(first.by);
    if (parts && fusedNodes(b, stored, MAX_REPEATED) > MAX_REPEATED) stored.add(b);
  });
}

/** How many nodes a kernel computes for `b`, itself included; counting ends beyond `most`. */
function fusedNodes(b: LazyBuffer, stored: ReadonlySet<LazyBuffer>, most: number): number {
  const seen = new Set([b]);
  for (const x of seen) {
    for (const { base } of x.srcs ?? []) {
      if (base.realized === undefined && !base.isLoad && !stored.has(base)) seen.add(base);
    }
    if (seen.size > most) break;
  }
  return seen.size;
}

// ---- the cost rule ----

/** What it takes to compute all of a value once from what is stored. */
interface Work {
  readonly ops: number;
  readonly bytesRead: number;
  /** elements of the value itself */
  readonly elements: number;
  readonly itemsize: number;
  /** how many elements all kernels compute together if the value is not stored */
  readonly evaluated: number;
}

/**
 * The cost rule of fusion: recomputation against memory traffic. A fused value is computed wherever it is
 * needed, and its inputs are read there. A stored value is computed once, written, and read at each place; it
 * costs one more kernel. All costs are in bytes moved in the same time. Loops of one kernel over the same
 * elements count as one place, because an expensive value is memoised between them.
 */
export function isBetterStored({ ops, bytesRead, elements: n, itemsize, evaluated }: Work): boolean {
  const once = bytesRead + ops / OPS_A_BYTE;
  const fused = (evaluated / n) * once;
  const stored = once + (n + evaluated) * itemsize + KERNEL_BYTES;
  return fused > stored;
}

/**
 * Where a node is computed and how many of its elements. A key names the kernel (shape and loops) and the
 * view.
 */
type Evaluations = ReadonlyMap<string, number>;

/**
 * Stores what is cheaper to keep than to recompute, and what is seen through too many views. Users come
 * first.
 */
function* splitCostly(stored: Set<LazyBuffer>, graph: FusedGraph): Step<void> {
  const evaluations = new Map<LazyBuffer, Evaluations>();
  const kernels = new Map<LazyBuffer, Evaluations>();
  yield* each(graph.all.toReversed(), (b) => {
    if (stored.has(b) || b.isLoad) return;
    const mine = evaluationsOf(b, stored, { evaluations, kernels }, graph);
    let evaluated = 0;
    for (const n of mine.values()) evaluated += n;
    const again = env.FUSE !== 0 && evaluated > elements(b.shape);
    if (mine.size > MAX_FUSED_VIEWS || (again && isCostly(b, stored, evaluated))) stored.add(b);
    else evaluations.set(b, mine);
  });
}

/** What is known of the users of a node: where fused ones are computed, and the kernels of stored ones. */
interface Known {
  readonly evaluations: ReadonlyMap<LazyBuffer, Evaluations>;
  readonly kernels: Map<LazyBuffer, Evaluations>;
}

function evaluationsOf(
  b: LazyBuffer,
  stored: ReadonlySet<LazyBuffer>,
  { evaluations, kernels }: Known,
  { uses, fused }: FusedGraph,
): Evaluations {
  const size = elements(b.shape);
  const all = uses.get(b) ?? [];
  const above = (by: LazyBuffer): Evaluations =>
    (stored.has(by) ? undefined : evaluations.get(by)) ??
    getOrMake(kernels, by, () => new Map([[`${by.device}|${by.shape}`, elements(by.shape)]]));
  const same = (u: Use): boolean => u.through === b && !u.by.isReduce;
  // most nodes have a single user, which reads them without a view
  const [only] = all;
  if (only !== undefined && all.length === 1 && same(only)) return above(only.by);
  const found = new Map<string, number>();
  for (const u of all) {
    const { st } = u.through;
    const shown = elements(u.through.shape);
    // an expand shows the same values several times; they are computed before its loop
    const still =
      u.through === b || st.contiguous || (shown > size && st.views.every((v) => v.mask === undefined));
    for (const [place, n] of above(u.by)) {
      const loop = u.by.isReduce && !fused.has(u.by) ? `${place}/${u.by.arg}` : place;
      const at = still ? loop : `${loop}>${st.key}`;
      const here = still ? (same(u) ? Math.min(n, size) : size) : Math.min(shown, size);
      found.set(at, Math.max(found.get(at) ?? 0, here));
      if (found.size > MAX_FUSED_VIEWS) return found;
    }
  }
  return found;
}

/**
 * Whether `b`, computed at several places, is better stored. What includes a reduction stays in its own
 * kernel. Of a value that takes many nodes, the first MAX_COSTED are counted.
 */
function isCostly(b: LazyBuffer, stored: ReadonlySet<LazyBuffer>, evaluated: number): boolean {
  const here = new Set([b]);
  const size = elements(b.shape);
  const read = new Set<LazyBuffer>();
  let ops = 0;
  let bytesRead = 0;
  for (const x of here) {
    if (x.isReduce) return false;
    if (x.op !== undefined && isAluOp(x.op)) ops += Math.min(elements(x.shape), size) * opCost(x.op);
    for (const { base } of x.sources) {
      if (base.realized === undefined && !stored.has(base)) here.add(base);
      else if (!read.has(base)) {
        read.add(base);
        bytesRead += Math.min(elements(base.shape), size) * base.dtype.itemsize;
      }
    }
    if (here.size > MAX_COSTED) break;
  }
  return isBetterStored({ ops, bytesRead, elements: size, itemsize: b.dtype.itemsize, evaluated });
}

// ---- limits ----

/** Stores a node on every path of fused nodes that is longer than MAX_FUSED_DEPTH. */
function* splitDeep(stored: Set<LazyBuffer>, { all }: FusedGraph): Step<void> {
  const depth = new Map<LazyBuffer, number>();
  yield* each(all, (b) => {
    let d = 0;
    for (const s of b.srcs ?? []) if (!stored.has(s.base)) d = Math.max(d, depth.get(s.base) ?? 0);
    if (d >= MAX_FUSED_DEPTH) stored.add(b);
    depth.set(b, d + 1);
  });
}

/** Stores sources of a node whose kernel would have more buffers, with its result, than the device allows. */
function* splitWide(stored: Set<LazyBuffer>, { all, uses, maxBuffers }: FusedGraph): Step<void> {
  const limits = new Map<string, number>();
  const inputs = new Map<LazyBuffer, Set<LazyBuffer>>();
  /** how many inputs a node had before its user added to the set */
  const counts = new Map<LazyBuffer, number>();
  // the only user of a node may add to the node's set instead of copying it: a sum of many parts stays linear
  const isOwn = (b: LazyBuffer): boolean => uses.get(b)?.length === 1;
  yield* each(all, (b) => {
    let union: Set<LazyBuffer> | undefined;
    let mayAdd = false;
    for (const { base } of b.srcs ?? []) {
      if (base.op === "CONST" || base.op === "ARANGE") continue;
      const known = stored.has(base) ? undefined : inputs.get(base);
      const reads = known ?? new Set([base]);
      const mayAddToReads = known === undefined || isOwn(base);
      if (union === undefined) [union, mayAdd] = [reads, mayAddToReads];
      else if (reads.size > union.size && mayAddToReads) [union, mayAdd] = [addAll(reads, union), true];
      else if ([...reads].some((x) => !union?.has(x)))
        [union, mayAdd] = [addAll(mayAdd ? union : new Set(union), reads), true];
    }
    if ((union?.size ?? 0) >= getOrMake(limits, b.device, () => maxBuffers(b.device))) {
      const bases = (b.srcs ?? []).map((s) => s.base).filter((s) => s.op !== "CONST");
      for (const s of bases) if ((counts.get(s) ?? 0) > 1) stored.add(s);
      union = new Set(bases);
    }
    inputs.set(b, union ?? new Set());
    counts.set(b, union?.size ?? 0);
  });
}
function addAll<T>(to: Set<T>, from: ReadonlySet<T>): Set<T> {
  for (const x of from) to.add(x);
  return to;
}
