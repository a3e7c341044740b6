// Decides which LazyBuffers are stored in memory (`realizes`); all others are fused into the kernels that use
// them. The classic rules come first: at most one reduction in a kernel. FUSE=1 adds one: a reduction that is
// expanded back over its own input stays in the kernel. Where this fuses too much, split.ts stores more
// nodes. Nothing is built here; schedule.ts does that.

import { env } from "../env.ts";
import { InternalError } from "../errors.ts";
import { arraysEqual, each, PORTION, runSync, type Step, toposortSteps } from "../helpers.ts";
import type { LazyBuffer } from "../lazy/lazybuffer.ts";
import { isAluOp, opRecord } from "../ops.ts";
import { PAUSE } from "../pace.ts";
import { Device } from "../runtime/registry.ts";
import { type Sint, sub } from "../shape/symbolic.ts";
import { type Shape, stridesFor } from "../shape/view.ts";
import { buffersOf, elements, split, type Use } from "./split.ts";

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
  /** every concrete node that is not computed yet, sources before users */
  readonly all: readonly LazyBuffer[];
}

const sameShape = (a: Shape, b: Shape): boolean => arraysEqual<Sint>(a, b);

/** `maxBuffers`: how many buffers a kernel of a device may have. */
export const fuse = (...args: Parameters<typeof fuseSteps>): Fusion => runSync(fuseSteps(...args), "fuse");
/** The same, and it could stop after every few nodes. */
export function* fuseSteps(
  outs: readonly LazyBuffer[],
  maxBuffers: (device: string) => number = buffersOf,
): Step<Fusion> {
  const graph = new Graph();
  yield* graph.build(outs);
  yield* graph.storeUnsafePads();
  // Try to fuse all candidates back at once. A reduction that ends up in two kernels, or is seen through
  // another view, is stored after all; then try the remaining ones again.
  let fused = graph.fuseBackCandidates();
  for (let round = 0; ; round++) {
    const realizes = yield* graph.groupReduces(fused, yield* graph.stacked(fused));
    const kept = new Set<LazyBuffer>();
    yield* each(fused, (r) => graph.fusesBack(r, realizes) && kept.add(r), FOLLOWED);
    if (kept.size === fused.size) {
      yield* split(realizes, { ...graph, fused, maxBuffers });
      yield* graph.protectTargets(realizes);
      return { realizes, all: graph.all };
    }
    fused = round < MAX_ROUNDS ? kept : new Set();
  }
}

class Graph {
  readonly all: LazyBuffer[] = [];
  /** stored whatever else is decided */
  readonly #stored = new Set<LazyBuffer>();
  readonly #simplePads = new Set<LazyBuffer>();
  /**
   * an expanded node -> the reductions whose result it continues; it is stored, unless all of them stay in
   * the kernel of their input
   */
  readonly #expanded = new Map<LazyBuffer, readonly LazyBuffer[]>();
  readonly uses = new Map<LazyBuffer, Use[]>();

  *build(outs: readonly LazyBuffer[]): Step<void> {
    const bases = outs.map((x) => x.base).filter((b) => b.realized === undefined);
    for (const b of bases) this.#stored.add(b);
    yield* this.#collect(bases);
    yield* each(this.all, (b) => {
      for (const s of b.srcs ?? []) this.#look(s);
    });
  }

  /** Lists all nodes, sources first, and their users. Applies the rules for loads, forced nodes, copies. */
  *#collect(bases: readonly LazyBuffer[]): Step<void> {
    const sources = (b: LazyBuffer): LazyBuffer[] => {
      const found: LazyBuffer[] = [];
      for (const through of b.srcs ?? []) {
        const { base } = through;
        const uses = this.uses.get(base);
        if (uses === undefined) this.uses.set(base, [{ by: b, through }]);
        else uses.push({ by: b, through });
        if (base.realized === undefined) found.push(base);
      }
      return found;
    };
    yield* each(yield* toposortSteps(bases, sources), (b) => {
      this.all.push(b);
      // counting is cheaper than reading: an ARANGE is computed wherever it is needed
      if (b.forcedRealize || (b.isLoad && b.op !== "ARANGE")) this.#stored.add(b);
      if (b.op === "COPY") this.#storeCopySource(b.srcs?.[0]);
    });
  }

  #storeCopySource(src: LazyBuffer | undefined): void {
    if (src === undefined || !src.st.contiguous || src.size !== src.base.size) {
      throw new InternalError("COPY reads a whole contiguous buffer; copyToDevice makes one");
    }
    if (src.base.realized === undefined) this.#stored.add(src.base);
  }

  /** A view with more elements than its base: an expanded base is stored, a padded one only if necessary. */
  #look(view: LazyBuffer): void {
    const { base } = view;
    if (
      view === base ||
      base.realized !== undefined ||
      base.op === "ARANGE" ||
      elements(base.shape) >= elements(view.shape)
    )
      return;
    if (env.FUSE && this.#widensFreely(base)) return;
    const mask = view.st.views.length === 1 ? view.st.views[0]?.mask : undefined;
    const shown = mask === undefined ? Infinity : elements(mask.map(([lo, hi]) => sub(hi, lo)));
    if (elements(base.shape) >= shown) this.#simplePads.add(base);
    else if (env.FUSE && !this.#stored.has(base)) {
      const below = this.#reducesBelow(base);
      // a base larger than a reduction below it is expanded already: softmax(x) before a matmul is stored
      if (below?.every((r) => elements(r.shape) === elements(base.shape))) this.#expanded.set(base, below);
      else this.#stored.add(base);
    } else this.#stored.add(base);
  }

  /**
   * A cast to a wider float, on a device that converts for free. The narrow source is stored instead, which
   * takes fewer bytes: the operands of a matmul reach its kernel in their narrow type.
   */
  #widensFreely(b: LazyBuffer): boolean {
    const src = b.op === "CAST" ? b.srcs?.[0] : undefined;
    if (src === undefined || !src.dtype.isFloat || src.dtype.itemsize >= b.dtype.itemsize) return false;
    const target = Device.isOpen(b.device) ? Device.get(b.device).renderer : undefined;
    if (target?.gpu === undefined && target?.support(src.dtype) !== "native") return false;
    if (this.#reducesBelow(b)?.length !== 0 || this.#stored.has(b)) return false;
    if (src.base.realized === undefined) this.#stored.add(src.base);
    return true;
  }

  /**
   * The reductions whose elementwise epilogue ends in `node`, which has their reduced shape; undefined if too
   * many nodes lie between.
   */
  #reducesBelow(node: LazyBuffer): LazyBuffer[] | undefined {
    const found = new Set<LazyBuffer>();
    const seen = new Set<LazyBuffer>();
    const todo = [node];
    for (let b = todo.pop(); b !== undefined; b = todo.pop()) {
      if (seen.has(b) || b.realized !== undefined || this.#stored.has(b)) continue;
      seen.add(b);
      if (seen.size > MAX_EPILOGUE || found.size > MAX_BELOW) return undefined;
      if (b.isReduce) found.add(b);
      else for (const s of b.srcs ?? []) todo.push(s.base);
    }
    return [...found];
  }

  /**
   * A kernel may read the buffer it assigns to only where it writes; otherwise the value is stored first. All
   * that such a kernel computes goes through the value, so this comes last and splits nothing else.
   */
  *protectTargets(stored: Set<LazyBuffer>): Step<void> {
    yield* each(
      this.all.filter((b) => b.op === "ASSIGN"),
      (b) => this.#protect(b, stored),
      FOLLOWED,
    );
  }
  #protect(assign: LazyBuffer, stored: Set<LazyBuffer>): void {
    const [value, target] = assign.srcs as readonly [LazyBuffer, LazyBuffer];
    const visited = [new Set<LazyBuffer>(), new Set<LazyBuffer>()];
    const todo = [{ x: value, moved: false }];
    for (let at = todo.pop(); at !== undefined; at = todo.pop()) {
      const { base, st } = at.x;
      const moved = at.moved || !(st.contiguous && sameShape(st.shape, target.shape));
      if (base.realized !== undefined || stored.has(base)) {
        if (!moved || base.buffer !== target.base.buffer) continue;
        if (value.base.realized === undefined) stored.add(value.base);
        return;
      }
      const seen = visited[moved ? 1 : 0] as Set<LazyBuffer>;
      if (seen.has(base)) continue;
      seen.add(base);
      for (const x of base.srcs ?? []) todo.push({ x, moved: moved || base.isReduce });
    }
  }

  /** Padding adds zeros: it may move below ops only if op(0) is 0 for all of them. */
  *storeUnsafePads(): Step<void> {
    if (this.#simplePads.size === 0) return;
    const unsafe = new Set<LazyBuffer>();
    yield* each(this.all, (b) => {
      const own = b.op !== undefined && isAluOp(b.op) && !opRecord(b.op).padSafe;
      if (!own && !b.srcs?.some((s) => unsafe.has(s.base))) return;
      if (this.#simplePads.has(b)) this.#stored.add(b);
      if (!this.#stored.has(b)) unsafe.add(b);
    });
  }

  fuseBackCandidates(): Set<LazyBuffer> {
    return new Set([...this.#expanded.values()].flat());
  }

  /**
   * The nodes to store so that no stack of fused reductions is higher than MAX_STACKED: one more reduction
   * would compute the whole stack again. A softmax of a softmax is two kernels.
   */
  *stacked(fused: ReadonlySet<LazyBuffer>): Step<ReadonlySet<LazyBuffer>> {
    const found = new Set<LazyBuffer>();
    const heights = new Map<LazyBuffer, number>();
    for (let i = 0; i < this.all.length; i++) {
      if (i % PORTION === PORTION - 1) yield PAUSE;
      const b = this.all[i] as LazyBuffer;
      if (this.#stored.has(b) || found.has(b) || (b.isReduce && !fused.has(b))) continue;
      let height = 0;
      for (const s of b.sources) height = Math.max(height, heights.get(s.base) ?? 0);
      heights.set(b, b.isReduce ? height + 1 : height);
      if (!b.isReduce || height < MAX_STACKED) continue;
      const tall = this.#tallest(b, height, heights);
      found.add(tall);
      heights.delete(tall);
      // only nodes after it can change their heights
      i = this.all.lastIndexOf(tall, i) - 1;
    }
    return found;
  }
  /** In the stack of this height below `b`: what the topmost reduction reads. */
  #tallest(b: LazyBuffer, height: number, heights: ReadonlyMap<LazyBuffer, number>): LazyBuffer {
    let top = (b.sources[0] as LazyBuffer).base;
    while (!top.isReduce)
      top = top.sources.map((s) => s.base).find((s) => heights.get(s) === height) as LazyBuffer;
    const reduced = (top.sources[0] as LazyBuffer).base;
    // operands that were expanded to meet, as in a matmul: never store the product, it is larger than both
    const grown = reduced.sources.every((s) => elements(s.base.shape) < elements(reduced.shape));
    return grown ? top : reduced;
  }

  /**
   * The stored nodes, given the reductions that are fused back and the nodes from `stacked`. Every other
   * reduction gets a kernel together with its epilogue.
   */
  *groupReduces(fused: ReadonlySet<LazyBuffer>, stacked: ReadonlySet<LazyBuffer>): Step<Set<LazyBuffer>> {
    const stored = new Set([...this.#stored, ...stacked]);
    for (const [b, below] of this.#expanded) {
      if (below.length === 0 || !below.every((r) => fused.has(r))) stored.add(b);
    }
    const taken = new Set<LazyBuffer>();
    const reduces = this.all.filter((r) => r.isReduce && !fused.has(r));
    yield* each(
      reduces,
      (r) => {
        const root = stored.has(r) ? r : (this.#soleRoot(r, stored, taken) ?? this.#chase(r, stored, fused));
        taken.add(root);
        stored.add(root);
      },
      FOLLOWED,
    );
    return stored;
  }

  #follows(use: Use, r: LazyBuffer): boolean {
    return use.through.st.contiguous && elements(use.through.shape) === elements(r.shape) && !use.by.isReduce;
  }

  /** The one stored node to which all elementwise paths from `r` lead, if no reduction has taken it yet. */
  #soleRoot(
    r: LazyBuffer,
    stored: ReadonlySet<LazyBuffer>,
    taken: ReadonlySet<LazyBuffer>,
  ): LazyBuffer | undefined {
    let root: LazyBuffer | undefined;
    const seen = new Set<LazyBuffer>();
    const todo = [r];
    for (let b = todo.pop(); b !== undefined; b = todo.pop()) {
      for (const use of this.uses.get(b) ?? []) {
        if (!this.#follows(use, r)) return undefined;
        if (stored.has(use.by)) {
          if (root !== undefined && root !== use.by) return undefined;
          root = use.by;
        } else if (!seen.has(use.by)) {
          seen.add(use.by);
          todo.push(use.by);
        }
      }
      if (seen.size > MAX_EPILOGUE) return undefined;
    }
    return root === undefined || taken.has(root) ? undefined : root;
  }

  /** The end of the chain of single elementwise users after `r`. It ends where another reduction joins. */
  #chase(r: LazyBuffer, stored: ReadonlySet<LazyBuffer>, fused: ReadonlySet<LazyBuffer>): LazyBuffer {
    let at = r;
    const budget = { left: MAX_EPILOGUE };
    while (!stored.has(at)) {
      const uses = this.uses.get(at) ?? [];
      const next = uses[0]?.by;
      if (next === undefined || next.isLoad || !uses.every((u) => u.by === next && this.#follows(u, r)))
        break;
      if (this.#meetsReduce(next, at, stored, fused, budget)) break;
      at = next;
    }
    return at;
  }
  /** `budget`: how many nodes may still be visited; beyond that a reduction is assumed. */
  #meetsReduce(
    node: LazyBuffer,
    except: LazyBuffer,
    stored: ReadonlySet<LazyBuffer>,
    fused: ReadonlySet<LazyBuffer>,
    budget: { left: number },
  ): boolean {
    const seen = new Set([except]);
    const todo = (node.srcs ?? []).map((s) => s.base);
    for (let b = todo.pop(); b !== undefined; b = todo.pop()) {
      if (seen.has(b) || b.realized !== undefined || stored.has(b)) continue;
      seen.add(b);
      if ((b.isReduce && !fused.has(b)) || budget.left-- <= 0) return true;
      for (const s of b.srcs ?? []) todo.push(s.base);
    }
    return false;
  }

  /**
   * Whether reduction `r` can stay inside a kernel: all its users end in one kernel, which runs over the
   * elements that `r` reduces. The loop of `r` then runs once per row and never once per element.
   */
  fusesBack(r: LazyBuffer, stored: ReadonlySet<LazyBuffer>): boolean {
    if (stored.has(r)) return false;
    const full = (r.sources[0] as LazyBuffer).shape;
    const axes = r.arg as readonly number[];
    const few = elements(r.shape);
    // one compute unit of a GPU works on a whole row
    if (elements(full) >= MANY_ELEMENTS && few < Device.unitsOf(r.device)) return false;
    const roots = new Set<LazyBuffer>();
    const seen = new Set<LazyBuffer>();
    const todo = [r];
    for (let b = todo.pop(); b !== undefined; b = todo.pop()) {
      const reduced = elements(b.shape) === few;
      for (const { by, through } of this.uses.get(b) ?? []) {
        const stays =
          through === b || (through.st.contiguous && elements(through.shape) === elements(b.shape));
        const fits = stays
          ? reduced || sameShape(through.shape, full)
          : reduced && expandsBack(through, full, axes);
        if (!fits) return false;
        if (by.isReduce) {
          const again = !sameShape(through.shape, full) || !arraysEqual(by.arg as readonly number[], axes);
          if (again) return false;
        }
        if (stored.has(by)) roots.add(by);
        else if (!seen.has(by)) {
          seen.add(by);
          todo.push(by);
        }
      }
      if (seen.size > MAX_FOLLOWED) return false;
    }
    return roots.size === 1;
  }
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
