// Horizontal fusion: which kernels become one kernel with several outputs. They run over the same elements
// and read one another, or the same large input, at the same index. Examples: the three assigns of an
// optimiser, a sum and what is stored on the way to it, small updates of tensors of one shape. In: the drafts
// of all kernels in dependency order. Out: groups in dependency order; schedule.ts builds one kernel for each
// group.

import { each, getOrMake, type Step, toposortSteps } from "../helpers.ts";
import type { LazyBuffer } from "../lazy/lazybuffer.ts";
import { isReduceOp } from "../ops.ts";
import type { Buffer } from "../runtime/buffer.ts";
import { Device } from "../runtime/registry.ts";
import { smax, sprod } from "../shape/symbolic.ts";
import { astNodes, type LazyOp, readInIteration } from "./lazyop.ts";
import type { Draft } from "./schedule.ts";

/** With fewer elements per compute unit, a reduction takes less time than a second kernel. */
const MANY = 1 << 15;
/** Whether a reduction of `elements` to `results` leaves compute units of the device idle. */
export function leavesUnitsIdle(device: string, elements: number, results: number): boolean {
  const units = Device.unitsOf(device);
  return 2 * results <= units && elements >= units * MANY;
}

/** More outputs keep too many values alive at once and gain little. Small updates may have more. */
const [MAX_OUTPUTS, MAX_UPDATES] = [8, 16];
/** An update of at most this many elements takes less time than launching a kernel. */
const SMALL = 1 << 14;
/** WebAssembly allows a thousand arguments, but compilers are faster with fewer. */
const MAX_BUFFERS = 32;
/** Drafts that are placed before the work could stop. */
const DRAFTS = 4;
/**
 * An element that a kernel loads more often than this comes from a cache. Two contractions that share such an
 * operand save nothing as one kernel, and have fewer registers each.
 */
const MAX_REUSE = 8;
/** How many groups of one shape are tried before a draft starts a new group. */
const MAX_TRIED = 4;

/** A kernel as grouping sees it. */
interface Candidate {
  readonly draft: Draft;
  /** equal for kernels that write the same shape on the same device */
  readonly shape: string;
  /** equal for kernels with the same reduction loops; empty without a reduction */
  readonly loops: string;
  /** the buffers it reads, each once */
  readonly reads: readonly Buffer[];
  /** those that it reads only at the element it writes; found on demand, because few kernels are asked */
  readonly inPlace: () => ReadonlySet<Buffer>;
  /** the buffers whose loads cost memory traffic, and the views it sees them through */
  readonly loads: ReadonlyMap<Buffer, ReadonlySet<string>>;
  /** assigns to a small tensor, as an optimiser does with each parameter */
  readonly updates: boolean;
  /** a reduction to so few results that it will be a split reduction */
  readonly isSplit: boolean;
}

interface KernelGroup {
  readonly members: Draft[];
  readonly candidates: Candidate[];
  /** the positions of the first and the last member in the given order */
  readonly first: number;
  last: number;
}

interface Wishes {
  /** the nodes that were asked for */
  readonly wanted: ReadonlySet<LazyBuffer>;
  /** those whose kernels have no other result */
  readonly alone: ReadonlySet<LazyBuffer> | undefined;
  /** nodes with a smaller id are never grouped with newer ones */
  readonly since: number;
  /** how many buffers a kernel of a device may have */
  readonly maxBuffers: (device: string) => number;
}

export function* groupDrafts(
  sorted: readonly Draft[],
  before: (d: Draft) => readonly Draft[],
  { wanted, alone, since, maxBuffers }: Wishes,
): Step<Draft[][]> {
  if (sorted.length === 1) return [[...sorted]];
  const readers = new Map<LazyBuffer, number>();
  for (const d of sorted) for (const r of d.item.reads) readers.set(r, (readers.get(r) ?? 0) + 1);
  // another device waits for what is copied; it must not wait for more than that
  const copied = new Set(sorted.flatMap((d) => (d.item.ast[0]?.op === "COPY" ? d.item.reads : [])));
  // what only the next kernel reads would be stored for nobody and be alive together with its reader
  const isShared = ({ out }: Draft): boolean =>
    !copied.has(out) && (out.op === "ASSIGN" || wanted.has(out) || (readers.get(out) ?? 0) > 1);
  const groupOf = new Map<Draft, KernelGroup>();
  const byShape = new Map<string, KernelGroup[]>();
  /** Whether `d` depends on a member of `g` through another group. */
  const detours = (d: Draft, g: KernelGroup): boolean => {
    const seen = new Set<KernelGroup>();
    const todo = before(d).map((b) => groupOf.get(b) as KernelGroup);
    for (let x = todo.pop(); x !== undefined; x = todo.pop()) {
      if (x === g || seen.has(x)) continue;
      seen.add(x);
      for (const m of x.members) {
        for (const b of before(m)) {
          const next = groupOf.get(b) as KernelGroup;
          if (next === g) return true;
          if (next.last > g.first) todo.push(next);
        }
      }
    }
    return false;
  };
  const place = (draft: Draft, i: number): void => {
    const c = alone?.has(draft.out) ? undefined : candidate(draft, since);
    const near = c === undefined ? [] : getOrMake(byShape, c.shape, () => []);
    const buffers = Math.min(MAX_BUFFERS, maxBuffers(draft.out.device));
    for (let k = near.length - 1; k >= Math.max(0, near.length - MAX_TRIED); k--) {
      const group = near[k] as KernelGroup;
      if (!fits(c as Candidate, group, isShared, buffers) || detours(draft, group)) continue;
      group.members.push(draft);
      group.candidates.push(c as Candidate);
      group.last = i;
      groupOf.set(draft, group);
      return;
    }
    const made: KernelGroup = { members: [draft], candidates: c === undefined ? [] : [c], first: i, last: i };
    groupOf.set(draft, made);
    if (c !== undefined) near.push(made);
  };
  yield* each(sorted, place, DRAFTS);
  const groups = [...new Set(sorted.map((d) => groupOf.get(d) as KernelGroup))];
  const earlier = (g: KernelGroup): KernelGroup[] =>
    g.members.flatMap((m) => before(m).map((b) => groupOf.get(b) as KernelGroup)).filter((x) => x !== g);
  return (yield* toposortSteps(groups, earlier)).map((g) => g.members);
}

/** What grouping asks of a kernel whatever its buffers are. Equal kernels have one AST: it is found once. */
interface KernelFacts {
  /** the elements that it writes, and those of its largest loop nest */
  readonly iterations: number;
  readonly elements: number;
  /** the shape that it writes, and whether elements are packed */
  readonly shape: string;
  readonly loops: string;
  /** the views through which it loads each input */
  readonly views: readonly ReadonlySet<string>[];
  inPlace?: readonly number[];
}
const known = new WeakMap<readonly LazyOp[], KernelFacts>();

function factsOf(ast: readonly LazyOp[]): KernelFacts {
  const [store] = ast as [LazyOp];
  const iterations = smax(sprod(store.shape));
  let elements = iterations;
  const loops = new Set<string>();
  const views: Set<string>[] = [];
  for (const u of astNodes(ast)) {
    if (isReduceOp(u.op)) {
      const { shape } = u.srcs[0] as LazyOp;
      loops.add(`${shape}/${u.arg}`);
      elements = Math.max(elements, smax(sprod(shape)));
    } else if (u.op === "LOAD") {
      views[u.arg.idx - 1] ??= new Set();
      views[u.arg.idx - 1]?.add(u.arg.st.key);
    }
  }
  // a kernel that stores packed elements runs over words of them (codegen/lower/unpack.ts)
  const shape = `${store.shape}|${store.dtype.isPacked}`;
  return { iterations, elements, shape, loops: [...loops].sort().join("|"), views };
}

function candidate(draft: Draft, since: number): Candidate | undefined {
  const { item, out } = draft;
  const { ast, inputs, outputs } = item;
  if (ast[0]?.op !== "STORE") return undefined;
  const facts = getOrMake(known, ast, () => factsOf(ast));
  const { iterations, elements, loops, views } = facts;
  const loads = new Map<Buffer, ReadonlySet<string>>();
  for (let i = 0; i < inputs.length; i++) {
    const buffer = inputs[i] as Buffer;
    if (buffer.size < iterations || buffer.size * MAX_REUSE < elements) continue;
    loads.set(buffer, views[i] as ReadonlySet<string>);
  }
  const shape = `${outputs[0]?.device}|${out.id < since ? "old" : "new"}|${facts.shape}`;
  const updates = out.op === "ASSIGN" && loops === "" && iterations <= SMALL;
  const isSplit = leavesUnitsIdle(out.device, elements, iterations);
  let found: ReadonlySet<Buffer> | undefined;
  const inPlace = (): ReadonlySet<Buffer> => {
    facts.inPlace ??= readInIteration(ast);
    found ??= new Set(facts.inPlace.map((idx) => inputs[idx - 1] as Buffer));
    return found;
  };
  return { draft, shape, loops, reads: inputs, inPlace, loads, updates, isSplit };
}

/** Whether the kernel can join the group, apart from dependencies through other groups. */
function fits(c: Candidate, g: KernelGroup, isShared: (d: Draft) => boolean, buffers: number): boolean {
  const updates = c.updates && g.candidates.every((x) => x.updates);
  if (g.members.length >= (updates ? MAX_UPDATES : MAX_OUTPUTS)) return false;
  if (!gains(c, g, isShared, updates)) return false;
  const all = [...g.candidates, c];
  const outputs = new Set(all.map((x) => x.draft.item.outputs[0] as Buffer));
  const inputs = new Set(all.flatMap((x) => x.reads));
  if (outputs.size !== all.length || outputs.size + inputs.size > buffers) return false;
  // a buffer that one of them writes may be read by the others only at the element being written
  return all.every((x) => x.reads.every((b) => !outputs.has(b) || x.inPlace().has(b)));
}

/** Whether one kernel is better than two: the second reads a result of the first, or the same input. */
function gains(c: Candidate, g: KernelGroup, isShared: (d: Draft) => boolean, updates: boolean): boolean {
  const sameLoops = g.candidates.every((x) => x.loops === c.loops);
  const before = g.members.filter((m) => c.draft.item.reads.includes(m.out));
  // a split reduction must not depend on another member of its kernel
  if (before.length > 0 && c.loops !== "" && c.isSplit) return false;
  if (before.some(isShared)) return c.loops === "" || sameLoops;
  return updates || (sameLoops && g.candidates.some((x) => sharesLoads(x, c)));
}

/** Whether both load an element of one buffer through the same view. */
function sharesLoads(a: Candidate, b: Candidate): boolean {
  for (const [buffer, views] of a.loads)
    for (const v of b.loads.get(buffer) ?? []) if (views.has(v)) return true;
  return false;
}
