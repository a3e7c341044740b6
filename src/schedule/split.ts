// Stores some nodes that fuse.ts fused into a kernel: values whose recomputation costs too much (the cost
// rule, `isBetterStored`), chains too deep to compile, inputs of kernels with more buffers than the device
// allows. In: the graph and the stored nodes, to which it adds. group.ts decides which kernels become one.

import { env } from "../env.ts";
import { each, getOrMake, type Step } from "../helpers.ts";
import { isAluOp, opCost } from "../ops.ts";
import { Device } from "../runtime/registry.ts";
import { type Evaluations, elements, type Graph, type GraphNode, newSearch, type Use } from "./graph.ts";

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

/** How many buffers a kernel of the device may have, as far as that is known. */
export const buffersOf = (device: string): number =>
  (Device.isOpen(device) ? Device.get(device).renderer?.maxBuffers : undefined) ?? MANY_BUFFERS;

/** Marks more nodes as stored. `maxBuffers`: how many buffers a kernel of a device may have. */
export function* split(graph: Graph, maxBuffers: (device: string) => number): Step<void> {
  const { all, used } = graph;
  // a graph that is below the limits as a whole has no part that exceeds one
  const isSmall = all.length <= MAX_REPEATED && all.every((b) => used < maxBuffers(b.lb.device));
  if (isSmall) return yield* splitCostly(all);
  yield* splitRepeated(all);
  yield* splitCostly(all);
  yield* splitDeep(all);
  yield* splitWide(all, maxBuffers);
}

// ---- shared by kernels ----

/**
 * Stores a value where the kernels that need it part, if each would compute more than MAX_REPEATED nodes for
 * it. This keeps all kernels together linear in the graph: the state of a recurrent network would otherwise
 * be computed from its first step in every later one.
 */
function* splitRepeated(all: readonly GraphNode[]): Step<void> {
  yield* each(all.toReversed(), (b) => {
    if (b.stored || b.lb.isLoad) return;
    let kernel: GraphNode | null | undefined;
    for (const { by } of b.uses) {
      const mine = by.stored ? by : by.kernel;
      if (kernel === undefined) kernel = mine;
      else if (kernel !== mine) kernel = null;
    }
    b.kernel = kernel ?? null;
  });
  // a product of expanded operands is larger than both: the operands are stored instead
  const grows = (b: GraphNode): boolean =>
    b.srcs.every((s) => (s.lb.op === "CONST" && !s.isRealized) || s.elements < b.elements);
  yield* each(all, (b) => {
    if (b.kernel !== null || grows(b)) return;
    const [first] = b.uses as [Use];
    const parts = b.uses.some((u) => u.by !== first.by) || grows(first.by);
    if (parts && isLarge(b)) b.stored = true;
  });
}

/** Whether a kernel computes more than MAX_REPEATED nodes for `b`, itself included. */
function isLarge(b: GraphNode): boolean {
  const search = newSearch();
  b.search = search;
  const found = [b];
  for (let i = 0; i < found.length && found.length <= MAX_REPEATED; i++) {
    for (const s of (found[i] as GraphNode).srcs) {
      if (s.search === search || s.isRead || s.lb.isLoad) continue;
      s.search = search;
      found.push(s);
    }
  }
  return found.length > MAX_REPEATED;
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
 * Stores what is cheaper to keep than to recompute, and what is seen through too many views. Users come
 * first.
 */
function* splitCostly(all: readonly GraphNode[]): Step<void> {
  const kernels = new Map<GraphNode, Evaluations>();
  yield* each(all.toReversed(), (b) => {
    if (b.stored || b.lb.isLoad) return;
    const mine = evaluationsOf(b, kernels);
    let evaluated = 0;
    for (const n of mine.values()) evaluated += n;
    const again = env.FUSE !== 0 && evaluated > b.elements;
    if (mine.size > MAX_FUSED_VIEWS || (again && isCostly(b, evaluated))) b.stored = true;
    else b.evaluations = mine;
  });
}

/** `kernels`: those of stored nodes. */
function evaluationsOf(b: GraphNode, kernels: Map<GraphNode, Evaluations>): Evaluations {
  const size = b.elements;
  const above = (by: GraphNode): Evaluations =>
    (by.stored ? undefined : by.evaluations) ??
    getOrMake(kernels, by, () => new Map([[`${by.lb.device}|${by.lb.shape}`, by.elements]]));
  const same = (u: Use): boolean => u.through === b.lb && !u.by.lb.isReduce;
  // most nodes have a single user, which reads them without a view
  const [only] = b.uses;
  if (only !== undefined && b.uses.length === 1 && same(only)) return above(only.by);
  const found = new Map<string, number>();
  for (const u of b.uses) {
    const { st } = u.through;
    const shown = elements(u.through.shape);
    // an expand shows the same values several times; they are computed before its loop
    const still =
      u.through === b.lb || st.contiguous || (shown > size && st.views.every((v) => v.mask === undefined));
    for (const [place, n] of above(u.by)) {
      const loop = u.by.lb.isReduce && !u.by.fused ? `${place}/${u.by.lb.arg}` : place;
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
function isCostly(b: GraphNode, evaluated: number): boolean {
  const size = b.elements;
  const search = newSearch();
  b.search = search;
  const here = [b];
  let ops = 0;
  let bytesRead = 0;
  for (let i = 0; i < here.length; i++) {
    const { lb, srcs, elements: own } = here[i] as GraphNode;
    if (lb.isReduce) return false;
    if (lb.op !== undefined && isAluOp(lb.op)) ops += Math.min(own, size) * opCost(lb.op);
    for (const s of srcs) {
      if (s.search === search) continue;
      s.search = search;
      if (!s.isRead) here.push(s);
      else bytesRead += Math.min(s.elements, size) * s.lb.dtype.itemsize;
    }
    if (here.length > MAX_COSTED) break;
  }
  return isBetterStored({ ops, bytesRead, elements: size, itemsize: b.lb.dtype.itemsize, evaluated });
}

// ---- limits ----

/** Stores a node on every path of fused nodes that is longer than MAX_FUSED_DEPTH. */
function* splitDeep(all: readonly GraphNode[]): Step<void> {
  yield* each(all, (b) => {
    let d = 0;
    for (const s of b.srcs) if (!s.stored) d = Math.max(d, s.depth);
    if (d >= MAX_FUSED_DEPTH) b.stored = true;
    b.depth = d + 1;
  });
}

const isBuffer = ({ lb }: GraphNode): boolean => lb.op !== "CONST" && lb.op !== "ARANGE";

/** Whether a kernel may reach its limit. A buffer to which several paths lead counts several times. */
function mayBeWide(all: readonly GraphNode[], limitOf: (b: GraphNode) => number): boolean {
  const counts: number[] = [];
  return all.some((b) => {
    let count = 0;
    for (const s of b.srcs) if (isBuffer(s)) count += s.isRead ? 1 : (counts[s.at] as number);
    return counts.push(count) > 0 && count >= limitOf(b);
  });
}

/** Stores sources of a node whose kernel would have more buffers, with its result, than the device allows. */
function* splitWide(all: readonly GraphNode[], maxBuffers: (device: string) => number): Step<void> {
  const limits = new Map<string, number>();
  const limitOf = ({ lb }: GraphNode): number => getOrMake(limits, lb.device, () => maxBuffers(lb.device));
  if (!mayBeWide(all, limitOf)) return;
  const inputs = new Map<GraphNode, Set<GraphNode>>();
  /** how many inputs a node had before its user added to the set */
  const counts = new Map<GraphNode, number>();
  yield* each(all, (b) => {
    let union: Set<GraphNode> | undefined;
    let mayAdd = false;
    for (const s of b.srcs) {
      if (!isBuffer(s)) continue;
      const known = s.stored ? undefined : inputs.get(s);
      const reads = known ?? new Set([s]);
      // the only user of a node may add to the node's set instead of copying it: a sum of many parts stays
      // linear
      const mayAddToReads = known === undefined || s.uses.length === 1;
      if (union === undefined) [union, mayAdd] = [reads, mayAddToReads];
      else if (reads.size > union.size && mayAddToReads) [union, mayAdd] = [addAll(reads, union), true];
      else if ([...reads].some((x) => !union?.has(x)))
        [union, mayAdd] = [addAll(mayAdd ? union : new Set(union), reads), true];
    }
    if ((union?.size ?? 0) >= limitOf(b)) {
      const bases = b.srcs.filter((s) => s.lb.op !== "CONST");
      for (const s of bases) if ((counts.get(s) ?? 0) > 1) s.stored = true;
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
