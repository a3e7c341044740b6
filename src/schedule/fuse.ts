// Decides which LazyBuffers are stored in memory (`realizes`); all others are fused into the kernels that use
// them. The classic rules come first: at most one reduction in a kernel. FUSE=1 adds one: a reduction that is
// expanded back over its own input stays in the kernel. Where this fuses too much, split.ts stores more
// nodes. Nothing is built here; schedule.ts does that.

import { env } from "../env.ts";
import { InternalError } from "../errors.ts";
import { arraysEqual, each, PORTION, runSync, type Step } from "../helpers.ts";
import type { LazyBuffer } from "../lazy/lazybuffer.ts";
import { isAluOp, opRecord } from "../ops.ts";
import { PAUSE } from "../pace.ts";
import { Device } from "../runtime/registry.ts";
import { type Sint, sub } from "../shape/symbolic.ts";
import { type Shape, stridesFor } from "../shape/view.ts";
import { elements, type Graph, type GraphNode, graphSteps, newSearch, type Use } from "./graph.ts";
import { buffersOf, split } from "./split.ts";

/** How many fused reductions may depend on one another in a kernel: softmax needs two, its gradient three. */
const MAX_STACKED = 3;
/** At this many elements and more, a GPU needs enough rows to keep all its compute units busy. */
const MANY_ELEMENTS = 2 ** 18;
/**
 * How many nodes are visited to decide one question: whether a reduction can be fused back, where its
 * epilogue ends. Where more would have to be visited, the answer is to store, so that all questions together
 * take time linear in the graph.
 */
const MAX_FOLLOWED = 1000;
const MAX_EPILOGUE = 200;
/** The same for how many reductions are found below a node that is expanded. */
const MAX_BELOW = 8;
/** After every question of this kind the work could stop. */
const FOLLOWED = 1;
/** How often the reductions that can be fused back are tried together; then the doubtful ones are stored. */
const MAX_ROUNDS = 8;

export interface Fusion {
  /** the nodes that get memory */
  readonly realizes: ReadonlySet<LazyBuffer>;
  /** those of them that have a kernel to themselves */
  readonly alone: ReadonlySet<LazyBuffer> | undefined;
  /** every concrete node that is not computed yet, sources before users */
  readonly all: readonly LazyBuffer[];
}
/** Stores the nodes where kernels end that must not compute anything else (scatter.ts). */
type StoreAlone = (all: readonly GraphNode[]) => Step<ReadonlySet<LazyBuffer>>;

const sameShape = (a: Shape, b: Shape): boolean => arraysEqual<Sint>(a, b);

/** `maxBuffers`: how many buffers a kernel of a device may have. */
export const fuse = (...args: Parameters<typeof fuseSteps>): Fusion => runSync(fuseSteps(...args), "fuse");
/** The same, and it could stop after every few nodes. */
export function* fuseSteps(
  outs: readonly LazyBuffer[],
  maxBuffers: (device: string) => number = buffersOf,
  storeAlone?: StoreAlone,
): Step<Fusion> {
  const bases = outs.map((x) => x.base).filter((b) => b.realized === undefined);
  const graph = yield* graphSteps(bases);
  const fusing = new Fusing(graph);
  const alone = storeAlone && (yield* storeAlone(graph.all));
  yield* fusing.look(new Set(bases));
  yield* fusing.storeUnsafePads();
  // Try to fuse all candidates back at once. A reduction that ends up in two kernels, or is seen through
  // another view, is stored after all; then try the remaining ones again.
  let fused = fusing.fuseBackCandidates();
  for (let round = 0; ; round++) {
    yield* fusing.groupReduces(yield* fusing.stacked());
    const kept: GraphNode[] = [];
    yield* each(fused, (r) => fusing.fusesBack(r) && kept.push(r), FOLLOWED);
    if (kept.length === fused.length) break;
    for (const r of fused) r.fused = false;
    fused = round < MAX_ROUNDS ? kept : [];
    for (const r of fused) r.fused = true;
  }
  yield* split(graph, maxBuffers);
  yield* fusing.protectTargets();
  const realizes = new Set(bases);
  const all = graph.all.map(({ lb, stored }) => {
    if (stored) realizes.add(lb);
    return lb;
  });
  return { realizes, alone, all };
}

class Fusing {
  readonly #all: readonly GraphNode[];
  readonly #simplePads = new Set<GraphNode>();
  /**
   * an expanded node -> the reductions whose result it continues; it is stored, unless all of them stay in
   * the kernel of their input
   */
  readonly #expanded = new Map<GraphNode, readonly GraphNode[]>();

  constructor({ all }: Graph) {
    this.#all = all;
  }

  /** Applies the rules for what was asked for, loads, forced nodes and copies, then those for views. */
  *look(wanted: ReadonlySet<LazyBuffer>): Step<void> {
    yield* each(this.#all, (b) => {
      const { lb } = b;
      // counting is cheaper than reading: an ARANGE is computed wherever it is needed
      if (wanted.has(lb) || lb.forcedRealize || (lb.isLoad && lb.op !== "ARANGE")) b.mustStore = true;
      if (lb.op !== "COPY") return;
      if (lb.srcs?.[0]?.isWhole !== true) throw new InternalError("COPY reads a part");
      for (const s of b.srcs) s.mustStore = true;
    });
    yield* each(this.#all, (b) => {
      for (let i = 0; i < b.srcs.length; i++)
        this.#lookThrough(b.lb.srcs?.[i] as LazyBuffer, b.srcs[i] as GraphNode);
    });
  }

  /** A view with more elements than its base: an expanded base is stored, a padded one only if necessary. */
  #lookThrough(view: LazyBuffer, seen: GraphNode): void {
    if (view === seen.lb || seen.isRealized || seen.lb.op === "ARANGE") return;
    if (seen.elements >= elements(view.shape)) return;
    const base = (env.FUSE && this.#narrowOf(seen)) || seen;
    const below = env.FUSE && !base.mustStore ? this.#reducesBelow(base) : undefined;
    const mask = view.st.views.length === 1 ? view.st.views[0]?.mask : undefined;
    const shown = mask === undefined ? Infinity : elements(mask.map(([lo, hi]) => sub(hi, lo)));
    if (seen.elements >= shown && (base === seen || below?.length)) this.#simplePads.add(seen);
    // a base larger than a reduction below it is expanded already: softmax(x) before a matmul is stored
    else if (below?.every((r) => r.elements === base.elements)) this.#expanded.set(base, below);
    else base.mustStore = true;
  }

  /**
   * The source of a cast to a wider float or integer, on a device that converts for free. It is stored in the
   * place of the cast, which takes fewer bytes: the operands of a matmul reach its kernel in their narrow
   * type.
   */
  #narrowOf(b: GraphNode): GraphNode | undefined {
    const { lb } = b;
    const src = lb.op === "CAST" ? lb.srcs?.[0] : undefined;
    const isAlike =
      src !== undefined && (src.dtype.isFloat ? lb.dtype.isFloat : src.dtype.isInt && lb.dtype.isInt);
    if (!isAlike || src.dtype.itemsize >= lb.dtype.itemsize) return undefined;
    const target = Device.isOpen(lb.device) ? Device.get(lb.device).renderer : undefined;
    if (target?.gpu === undefined && target?.support(src.dtype) !== "native") return undefined;
    return b.mustStore ? undefined : b.srcs[0];
  }

  /**
   * The reductions whose elementwise epilogue ends in `node`, which has their reduced shape; undefined if too
   * many nodes lie between.
   */
  #reducesBelow(node: GraphNode): GraphNode[] | undefined {
    const found: GraphNode[] = [];
    const search = newSearch();
    let visited = 0;
    const todo = [node];
    for (let b = todo.pop(); b !== undefined; b = todo.pop()) {
      if (b.search === search || b.isRealized || b.mustStore) continue;
      b.search = search;
      if (++visited > MAX_EPILOGUE || found.length > MAX_BELOW) return undefined;
      if (b.lb.isReduce) found.push(b);
      else for (const s of b.srcs) todo.push(s);
    }
    return found;
  }

  /**
   * A kernel may read the buffer it assigns to only where it writes; otherwise the value is stored first. All
   * that such a kernel computes goes through the value, so this comes last and splits nothing else.
   */
  *protectTargets(): Step<void> {
    yield* each(
      this.#all.filter((b) => b.lb.op === "ASSIGN"),
      (b) => this.#protect(b),
      FOLLOWED,
    );
  }
  #protect(assign: GraphNode): void {
    const [first, target] = assign.lb.srcs as readonly [LazyBuffer, LazyBuffer];
    const value = assign.srcs[0] as GraphNode;
    const visited = [new Set<GraphNode>(), new Set<GraphNode>()];
    const todo = [{ node: value, x: first, moved: false }];
    for (let at = todo.pop(); at !== undefined; at = todo.pop()) {
      const { node, x } = at;
      const moved = at.moved || !(x.st.contiguous && sameShape(x.st.shape, target.shape));
      if (node.isRead) {
        if (!moved || node.lb.buffer !== target.base.buffer) continue;
        if (!value.isRealized) value.stored = true;
        return;
      }
      const seen = visited[moved ? 1 : 0] as Set<GraphNode>;
      if (seen.has(node)) continue;
      seen.add(node);
      node.srcs.forEach((s, i) => {
        todo.push({ node: s, x: node.lb.srcs?.[i] as LazyBuffer, moved: moved || node.lb.isReduce });
      });
    }
  }

  /** Padding adds zeros: it may move below ops only if op(0) is 0 for all of them. */
  *storeUnsafePads(): Step<void> {
    if (this.#simplePads.size === 0) return;
    const unsafe = new Set<GraphNode>();
    yield* each(this.#all, (b) => {
      const { op } = b.lb;
      const own = op !== undefined && isAluOp(op) && !opRecord(op).padSafe;
      if (!own && !b.srcs.some((s) => unsafe.has(s))) return;
      if (this.#simplePads.has(b)) b.mustStore = true;
      if (!b.mustStore) unsafe.add(b);
    });
  }

  fuseBackCandidates(): GraphNode[] {
    const found = new Set([...this.#expanded.values()].flat());
    for (const r of found) r.fused = true;
    return [...found];
  }

  /**
   * The nodes to store so that no stack of fused reductions is higher than MAX_STACKED: one more reduction
   * would compute the whole stack again. A softmax of a softmax is two kernels.
   */
  *stacked(): Step<ReadonlySet<GraphNode>> {
    const found = new Set<GraphNode>();
    for (const b of this.#all) b.height = 0;
    for (let i = 0; i < this.#all.length; i++) {
      if (i % PORTION === PORTION - 1) yield PAUSE;
      const b = this.#all[i] as GraphNode;
      const { isReduce } = b.lb;
      if (b.mustStore || found.has(b) || (isReduce && !b.fused)) continue;
      let height = 0;
      for (const s of b.srcs) height = Math.max(height, s.height);
      b.height = isReduce ? height + 1 : height;
      if (!isReduce || height < MAX_STACKED) continue;
      const tall = this.#tallest(b, height);
      found.add(tall);
      tall.height = 0;
      // only nodes after it can change their heights
      i = tall.at - 1;
    }
    return found;
  }
  /** In the stack of this height below `b`: what the topmost reduction reads. */
  #tallest(b: GraphNode, height: number): GraphNode {
    let top = b.srcs[0] as GraphNode;
    while (!top.lb.isReduce) top = top.srcs.find((s) => s.height === height) as GraphNode;
    const reduced = top.srcs[0] as GraphNode;
    // operands that were expanded to meet, as in a matmul: never store the product, it is larger than both
    const grown = reduced.srcs.every((s) => s.elements < reduced.elements);
    return grown ? top : reduced;
  }

  /**
   * Says which nodes are stored, given the reductions that are fused back and the nodes from `stacked`. Every
   * other reduction gets a kernel together with its epilogue.
   */
  *groupReduces(stacked: ReadonlySet<GraphNode>): Step<void> {
    for (const b of this.#all) b.stored = b.mustStore;
    for (const b of stacked) b.stored = true;
    for (const [b, below] of this.#expanded) {
      if (below.length === 0 || !below.every((r) => r.fused)) b.stored = true;
    }
    const taken = new Set<GraphNode>();
    const reduces = this.#all.filter((r) => r.lb.isReduce && !r.fused);
    yield* each(
      reduces,
      (r) => {
        const root = r.stored ? r : (this.#soleRoot(r, taken) ?? this.#chase(r));
        taken.add(root);
        root.stored = true;
      },
      FOLLOWED,
    );
  }

  #follows({ by, through }: Use, r: GraphNode): boolean {
    return through.st.contiguous && elements(through.shape) === r.elements && !by.lb.isReduce;
  }

  /** The one stored node to which all elementwise paths from `r` lead, if no reduction has taken it yet. */
  #soleRoot(r: GraphNode, taken: ReadonlySet<GraphNode>): GraphNode | undefined {
    let root: GraphNode | undefined;
    const search = newSearch();
    let visited = 0;
    const todo = [r];
    for (let b = todo.pop(); b !== undefined; b = todo.pop()) {
      for (const use of b.uses) {
        const { by } = use;
        if (!this.#follows(use, r)) return undefined;
        if (by.stored) {
          if (root !== undefined && root !== by) return undefined;
          root = by;
        } else if (by.search !== search) {
          by.search = search;
          visited++;
          todo.push(by);
        }
      }
      if (visited > MAX_EPILOGUE) return undefined;
    }
    return root === undefined || taken.has(root) ? undefined : root;
  }

  /** The end of the chain of single elementwise users after `r`. It ends where another reduction joins. */
  #chase(r: GraphNode): GraphNode {
    let at = r;
    const budget = { left: MAX_EPILOGUE };
    while (!at.stored) {
      const { uses } = at;
      const next = uses[0]?.by;
      if (next === undefined || next.lb.isLoad || !uses.every((u) => u.by === next && this.#follows(u, r)))
        break;
      if (meetsReduce(next, at, budget)) break;
      at = next;
    }
    return at;
  }

  /**
   * Whether reduction `r` can stay inside a kernel: all its users end in one kernel, which runs over the
   * elements that `r` reduces. The loop of `r` then runs once per row and never once per element.
   */
  fusesBack(r: GraphNode): boolean {
    if (r.stored) return false;
    const full = (r.lb.sources[0] as LazyBuffer).shape;
    const axes = r.lb.arg as readonly number[];
    const few = r.elements;
    // one compute unit of a GPU works on a whole row
    if (elements(full) >= MANY_ELEMENTS && few < Device.unitsOf(r.lb.device)) return false;
    let root: GraphNode | undefined;
    const search = newSearch();
    let visited = 0;
    const todo = [r];
    for (let b = todo.pop(); b !== undefined; b = todo.pop()) {
      const reduced = b.elements === few;
      for (const { by, through } of b.uses) {
        const stays = through === b.lb || (through.st.contiguous && elements(through.shape) === b.elements);
        const fits = stays
          ? reduced || sameShape(through.shape, full)
          : reduced && expandsBack(through, full, axes);
        if (!fits) return false;
        if (by.lb.isReduce) {
          const over = by.lb.arg as readonly number[];
          if (!sameShape(through.shape, full) || !arraysEqual(over, axes)) return false;
        }
        if (by.stored) {
          if (root !== undefined && root !== by) return false;
          root = by;
        } else if (by.search !== search) {
          by.search = search;
          visited++;
          todo.push(by);
        }
      }
      if (visited > MAX_FOLLOWED) return false;
    }
    return root !== undefined;
  }
}

/** `budget`: how many nodes may still be visited; beyond that a reduction is assumed. */
function meetsReduce(node: GraphNode, except: GraphNode, budget: { left: number }): boolean {
  const search = newSearch();
  except.search = search;
  const todo = [...node.srcs];
  for (let b = todo.pop(); b !== undefined; b = todo.pop()) {
    if (b.search === search || b.isRead) continue;
    b.search = search;
    if ((b.lb.isReduce && !b.fused) || budget.left-- <= 0) return true;
    todo.push(...b.srcs);
  }
  return false;
}

/**
 * Whether a view shows a reduction's result at shape `full`: repeated along the reduced axes, otherwise in
 * place.
 */
function expandsBack(view: LazyBuffer, full: Shape, axes: readonly number[]): boolean {
  const { views } = view.st;
  const [v] = views;
  if (v === undefined || views.length !== 1 || !sameShape(view.shape, full)) return false;
  const kept = stridesFor(full.map((d, i) => (axes.includes(i) ? 1 : d)));
  return v.mask === undefined && v.offset === 0 && arraysEqual(v.strides, kept);
}
