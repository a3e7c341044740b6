// The AST of a kernel and a list of OptOps in, one UOp graph out: a SINK of STOREs in which loops are RANGE
// nodes and reduces are REDUCE nodes over them. An op is lowered at symbolic indexes, one for each of its
// dims; views turn indexes into other indexes, reduces put fresh ranges in their place. linearize.ts decides
// where loops open.

import { lowerImages } from "#codegen/images";
import { unpackTypes } from "#codegen/narrow";
import { axisOrder, collapsed, findKeepable, inBlocks, mergeDims, requireValid } from "#codegen/tuning";
import { type DType, dtypes, type Value } from "../../dtype.ts";
import { ArgumentError, InternalError, ShapeError } from "../../errors.ts";
import { arraysEqual, getOrMake, mapped } from "../../helpers.ts";
import { isAluOp, isReduceOp, REDUCE, type ReduceOp } from "../../ops.ts";
import { astNodes, isParametric, type LazyOp } from "../../schedule/lazyop.ts";
import { and, type Sint, sprod } from "../../shape/symbolic.ts";
import { type Shape, stridesFor, unflatten } from "../../shape/view.ts";
import { UOpArena } from "../../uop/arena.ts";
import type { Axis, DefineGlobal, Expr, Range, Sink, Store } from "../../uop/node.ts";
import { Parameter } from "../../uop/parameter.ts";
import type { Linearize } from "../linear/linearize.ts";
import type { Keepable, Producer } from "../opt/keep.ts";
import { axisOf, type OptOp, showOpts } from "../opt/opts.ts";
import { recordOf } from "../opt/record.ts";
import type { ScatterLoops } from "../passes/scatter.ts";
import { requireSupport, type Target } from "../target.ts";
import { type AxisLoops, AxisSplitter } from "./axes.ts";
import { Indexes } from "./indexes.ts";

export interface KernelGraph {
  readonly sink: Sink;
  readonly arena: UOpArena;
  /** all axes of the kernel, by id */
  readonly axes: readonly Axis[];
  /** the output, local and top axes, outermost first */
  readonly order: readonly Axis[];
  /** the threads of the workgroup */
  readonly threads: readonly Range[];
  /** symbolic integers as nodes of the graph */
  readonly indexes: Indexes;
  /** values that KEEP could keep */
  readonly keepable: readonly Keepable[];
  /** undefined: the loops go over results, and inside over what is reduced */
  readonly scatter?: ScatterLoops;
  /** undefined: that of the target */
  readonly linearize?: Linearize;
}

export function lower(ast: readonly LazyOp[], opts: readonly OptOp[], target: Target): KernelGraph {
  const lanes = target.simd?.widths.at(-1);
  const isPacked = astNodes(ast).some((u) => u.dtype.isPacked);
  return (
    lowerImages(ast, opts, target, lower) ??
    (isPacked
      ? new Lowering(unpackTypes(ast, target), opts, target, false)
      : new Lowering(lanes === undefined ? ast : inBlocks(ast, lanes), opts, target, true)
    ).run()
  );
}

/**
 * A site of evaluation: where an op of the AST is computed. `idx` has an index for each of its dims, and the
 * result is only used where `gate` holds. `done` has what the ops evaluated here became.
 */
export interface Site {
  readonly idx: readonly Sint[];
  readonly gate: Sint;
  readonly done: Map<LazyOp, Expr>;
}

/** What is known of an AST whatever the OptOps: most kernels are lowered twice. */
interface AstFacts {
  /** dims that are merged into one loop, by the STORE or reduction */
  readonly merged: Map<LazyOp, readonly (readonly number[])[]>;
  /**
   * The longest chain of reductions below a node, itself included. Reductions of the same height never depend
   * on each other.
   */
  readonly heights: ReadonlyMap<LazyOp, number>;
}
function factsOf(ast: readonly LazyOp[]): AstFacts {
  const heights = new Map<LazyOp, number>();
  for (const u of astNodes(ast)) {
    const below = u.srcs.reduce((n, x) => Math.max(n, heights.get(x) ?? 0), 0);
    heights.set(u, below + (isReduceOp(u.op) ? 1 : 0));
  }
  return { merged: new Map(), heights };
}
const facts = new WeakMap<readonly LazyOp[], AstFacts>();

class Lowering {
  readonly #arena: UOpArena;
  readonly #indexes: Indexes;
  readonly #splitter: AxisSplitter;
  readonly #sites: Site[] = [];
  readonly #reduceLoops = new Map<LazyOp, readonly AxisLoops[]>();
  /** the loops of reductions, by the site where these are evaluated: equal loops are shared */
  readonly #sharedLoops = new Map<Site, Map<string, readonly AxisLoops[]>>();
  readonly #producers: Producer[] = [];
  /** axes that COLLAPSE made parts of others */
  #joined = 0;
  /** float constants by their value; undefined: the constants are not those of the AST as it came */
  readonly #parameters: Map<number, Parameter> | undefined;
  readonly #ast: readonly LazyOp[];
  readonly #facts: AstFacts;
  readonly #opts: readonly OptOp[];
  readonly #target: Target;

  constructor(ast: readonly LazyOp[], opts: readonly OptOp[], target: Target, isParametric: boolean) {
    this.#arena = new UOpArena(target.ieee);
    this.#ast = ast;
    this.#facts = getOrMake(facts, ast, () => factsOf(ast));
    this.#parameters = isParametric ? new Map() : undefined;
    this.#opts = opts;
    this.#target = target;
    this.#indexes = new Indexes(this.#arena, target);
    requireValid(opts, target);
    const tiles = matrixSides(ast, opts, target);
    this.#splitter = new AxisSplitter(this.#arena, this.#indexes, { opts, target, tiles });
  }

  run(): KernelGraph {
    const results = this.#ast.filter((u) => u.op === "STORE");
    const [root] = results;
    if (root === undefined || results.length < this.#ast.length)
      throw new InternalError("a kernel is made of STOREs");
    const { shape } = root;
    const merged = getOrMake(this.#facts.merged, root, () => mergeDims(this.#ast));
    const loops = this.#split(merged, shape, undefined);
    const outputs = this.#outputOrder(loops);
    const site = this.#site(indexes(loops, shape), 1);
    const stores = mapped(results, (store) => this.#store(store, site));
    this.#requireAxes();
    const sink = this.#arena.sink(stores);
    const { axes, threads } = this.#splitter;
    const order = [...outputs, ...axes.filter((a) => a.kind === "top")];
    const keepable = findKeepable(this.#producers, this.#sites);
    return { sink, arena: this.#arena, axes, order, threads, indexes: this.#indexes, keepable };
  }

  /** The loops of groups of dims, of which COLLAPSE joins some. `idx`: where a reduction is evaluated. */
  #split(
    merged: readonly (readonly number[])[],
    shape: Shape,
    idx: readonly Sint[] | undefined,
  ): AxisLoops[] {
    const groups = collapsedDims(merged, shape, this.#ast, this.#opts, idx && this.#splitter.numbered);
    this.#joined += merged.length - groups.length;
    const busy: Range[] = [];
    return mapped(groups, (dims) => {
      const site = idx && { idx, busy };
      const made = this.#splitter.split(dims, sizeOfDims(dims, shape), site, !merged.includes(dims));
      busy.push(...made.threads);
      return made;
    });
  }

  /** Every OptOp names an axis that the kernel has. */
  #requireAxes(): void {
    const { numbered } = this.#splitter;
    const collapses = this.#opts.filter((o) => o.op === "COLLAPSE");
    const unused = collapses.length > this.#joined ? collapses.at(-1) : undefined;
    const stray = unused ?? this.#opts.find((o) => (axisOf(o) ?? -1) >= numbered);
    if (stray === undefined) return;
    throw new ArgumentError(`${showOpts([stray])}: this kernel has the axes 0 to ${numbered - 1}`);
  }

  /** The loops in the order that SWAP leaves, then the threads. */
  #outputOrder(loops: readonly AxisLoops[]): Axis[] {
    const real = loops.filter((l) => l.ranges.length > 0);
    const sorted = axisOrder(this.#opts, real.length).map((i) => real[i]!);
    const axes = sorted.flatMap((l) => l.ranges.map((r) => r.axis));
    return [...axes.filter((a) => a.kind === "output"), ...axes.filter((a) => a.kind === "local")];
  }

  #store(store: LazyOp<"STORE">, site: Site): Store {
    const value = this.#lower(store.srcs[0], site);
    const { index } = store.arg.st.expr(site.idx);
    const gate = this.#indexes.inBounds(index);
    return this.#arena.store(this.#buffer(store), this.#indexes.toAddress(index), value, gate);
  }

  #lower(op: LazyOp, site: Site): Expr {
    return getOrMake(site.done, op, () => this.#lowerNew(op, site));
  }
  #lowerNew(op: LazyOp, site: Site): Expr {
    requireSupport(this.#target, op.dtype, op.op);
    const a = this.#arena;
    switch (op.op) {
      case "LOAD":
        return this.#load(op, site);
      case "CONST": {
        const { valid } = op.arg.st.expr(site.idx);
        return this.#where(valid, a.constant(op.dtype, this.#value(op)), op.dtype);
      }
      case "ARANGE": {
        const { index, valid } = op.arg.expr(site.idx);
        const isShort = op.dtype === dtypes.int32;
        const number = isShort ? this.#indexes.toAddress(index) : this.#indexes.toExpr(index);
        return this.#where(valid, a.cast(number, op.dtype), op.dtype);
      }
      case "VIEW": {
        const [src] = op.srcs;
        const { index, valid } = op.arg.expr(site.idx);
        const inner = this.#site(unflatten(index, src.shape), and(site.gate, valid));
        return this.#where(valid, this.#lower(src, inner), op.dtype);
      }
      case "CAST":
        return a.cast(this.#lower(op.srcs[0], site), op.dtype);
      case "BITCAST": {
        const operand = this.#lower(op.srcs[0], site);
        if (op.dtype !== dtypes.bool || operand.dtype === dtypes.bool) return a.bitcast(operand, op.dtype);
        // a bool has two values, whatever the byte is
        return a.alu("CMPNE", a.bitcast(operand, dtypes.uint8), a.constant(dtypes.uint8, 0));
      }
      case "SUM":
      case "REDUCE_MAX":
      case "PROD":
        return this.#reduce(op, site);
      default: {
        if (!isAluOp(op.op)) throw new InternalError(`${op.op} cannot be lowered to a kernel`);
        const made = a.alu(op.op, ...op.srcs.map((s) => this.#lower(s, site)));
        // decompose.ts reads this mark: exp2 of such a value needs no clamp from above
        if (isLessLargest(op)) a.notPositive.add(made);
        return made;
      }
    }
  }

  #value(op: LazyOp<"CONST">): Value | Parameter {
    const { val } = op.arg;
    if (this.#parameters === undefined || !isParametric(op)) return val;
    return getOrMake(this.#parameters, op.arg.val, () => new Parameter(op.arg.val));
  }

  #load(op: LazyOp<"LOAD">, site: Site): Expr {
    const { index, valid } = op.arg.st.expr(site.idx);
    const needed = and(site.gate, valid);
    const zero = this.#arena.constant(op.dtype, 0);
    if (needed === 0) return zero;
    const buffer = this.#buffer(op);
    const at = this.#indexes.toAddress(index);
    const inBounds = this.#indexes.inBounds(index);
    if (needed === 1 && inBounds === undefined) return this.#arena.load(buffer, at);
    const wanted = this.#indexes.toExpr(needed);
    const gate =
      inBounds === undefined ? wanted : needed === 1 ? inBounds : this.#arena.alu("AND", wanted, inBounds);
    return this.#arena.load(buffer, at, { gate, otherwise: zero });
  }

  #reduce(op: LazyOp<ReduceOp>, site: Site): Expr {
    const a = this.#arena;
    const [src] = op.srcs;
    const loops = getOrMake(this.#reduceLoops, op, () => this.#loopsOf(op, src, site));
    const fresh = indexes(loops, src.shape);
    const idx = mapped(site.idx, (at, d) => (op.arg.includes(d) ? fresh[d]! : at));
    const inner = this.#site(idx, site.gate);
    let value = this.#lower(src, inner);
    for (const { inBounds } of loops) {
      if (inBounds === undefined) continue;
      const identity = a.constant(op.dtype, REDUCE[op.op].identity(op.dtype));
      value = a.alu("WHERE", inBounds, value, identity);
    }
    const threads = loops.flatMap((l) => l.threads);
    this.#requireIndependent(threads, site);
    const ranges = loops.flatMap((l) => l.ranges).filter((r) => !threads.includes(r));
    const [first] = ranges;
    const isKnown = this.#producers.some((p) => p.site === inner && p.ranges[0] === first);
    if (first !== undefined && threads.length === 0 && !isKnown)
      this.#producers.push({ dims: op.arg, axis: first.axis.of, ranges, site: inner });
    return a.reduce(op.op, a.reduce(op.op, value, ranges), threads);
  }
  /**
   * Reductions over the same dims that do not depend on each other share their loops: what both read is read
   * once.
   */
  #loopsOf(op: LazyOp<ReduceOp>, src: LazyOp, site: Site): readonly AxisLoops[] {
    const { merged: all, heights } = this.#facts;
    const merged = getOrMake(all, op, () => mergeDims([src], op.arg));
    const key = [heights.get(op), src.shape, op.arg, ...merged].join("|");
    const known = getOrMake(this.#sharedLoops, site, () => new Map<string, readonly AxisLoops[]>());
    return getOrMake(known, key, () => this.#split(merged, src.shape, site.idx));
  }
  /** A reduction may not be evaluated at indexes that depend on the threads that share it. */
  #requireIndependent(threads: readonly Range[], { idx }: Site): void {
    const size = this.#splitter.sharedByItsUsers(threads, idx);
    if (size === undefined) return;
    throw new ArgumentError(
      `GROUPTOP: ${size} threads of a workgroup share a reduce, but each of them needs a different one; use GROUP`,
    );
  }

  #site(idx: readonly Sint[], gate: Sint): Site {
    const known = this.#sites.find((p) => p.gate === gate && arraysEqual(p.idx, idx));
    if (known !== undefined) return known;
    const made = { idx, gate, done: new Map() };
    this.#sites.push(made);
    return made;
  }

  #where(valid: Sint, value: Expr, dtype: DType): Expr {
    if (valid === 1) return value;
    return this.#arena.alu("WHERE", this.#indexes.toExpr(valid), value, this.#arena.constant(dtype, 0));
  }

  #buffer(op: LazyOp<"LOAD" | "STORE">): DefineGlobal {
    const { idx, dtype, st } = op.arg;
    requireSupport(this.#target, dtype, op.op);
    const extent = st.realSize();
    if (extent > 2 ** 31) {
      throw new ShapeError(
        `kernel: a buffer of ${extent} elements cannot be indexed with 32 bits; split the tensor`,
      );
    }
    return this.#arena.global(dtype, idx, idx < this.#ast.length);
  }
}

const sizeOfDims = (dims: readonly number[], shape: Shape): Sint => sprod(dims.map((d) => shape[d]!));

/** The groups after COLLAPSE. `from`: the number of a reduction's first axis; undefined: of the output. */
function collapsedDims(
  groups: readonly (readonly number[])[],
  shape: Shape,
  ast: readonly LazyOp[],
  opts: readonly OptOp[],
  from?: number,
): readonly (readonly number[])[] {
  if (!opts.some((o) => o.op === "COLLAPSE")) return groups;
  const outputs = from === undefined ? loopsIn(groups, shape) : loopsIn(mergeDims(ast), ast[0]?.shape ?? []);
  const isLoop = (dims: readonly number[]): boolean => sizeOfDims(dims, shape) !== 1;
  return collapsed(groups, { opts, isLoop, from, outputs });
}
const loopsIn = (groups: readonly (readonly number[])[], shape: Shape): number =>
  groups.filter((dims) => sizeOfDims(dims, shape) !== 1).length;

/** The sides of the matrices that warps multiply, by the number of their axis. */
function matrixSides(ast: readonly LazyOp[], opts: readonly OptOp[], target: Target): Map<number, number> {
  const shape = ast[0]?.shape ?? [];
  const outputs = (): number => loopsIn(collapsedDims(mergeDims(ast), shape, ast, opts), shape);
  return new Map(
    opts.flatMap((o) => [...(recordOf(target, o.op)?.tiles?.(outputs(), o, target, opts) ?? [])]),
  );
}

/** x - max(x), where each x is compared with the maximum of its own row: what a softmax takes the exp of. */
function isLessLargest(op: LazyOp): boolean {
  const [x, view] = op.srcs;
  const largest = view?.op === "VIEW" ? view.srcs[0] : view;
  if (op.op !== "SUB" || largest?.op !== "REDUCE_MAX" || largest.srcs[0] !== x) return false;
  const { shape } = x;
  const kept = stridesFor(largest.shape).map((s, d) => (largest.shape[d] === 1 ? 0 : s));
  if (view?.op !== "VIEW") return true;
  const [v] = view.arg.views;
  return (
    view.arg.views.length === 1 &&
    v?.offset === 0 &&
    v.mask === undefined &&
    arraysEqual(v.shape, shape) &&
    arraysEqual(v.strides, kept)
  );
}

/**
 * One index for each dim. Merged dims are taken apart again; in an address the index simplifier recombines
 * them.
 */
function indexes(loops: readonly AxisLoops[], shape: Shape): Sint[] {
  const idx = mapped(shape, (): Sint => 0);
  for (const l of loops) {
    const sizes = l.dims.map((d) => shape[d]!);
    const parts = l.dims.length === 1 ? [l.at] : unflatten(l.at, sizes);
    l.dims.forEach((d, j) => {
      idx[d] = parts[j]!;
    });
  }
  return idx;
}
