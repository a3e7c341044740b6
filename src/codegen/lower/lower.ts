// The AST of a kernel and a list of OptOps in, one UOp graph out: a SINK of STOREs in which loops are RANGE nodes and
// reduces are REDUCE nodes over them. An op is lowered at symbolic indexes, one for each of its dims; views turn
// indexes into other indexes, reduces put fresh ranges in their place. linearize.ts decides where loops open.

import { type DType, dtypes, PtrDType } from "../../dtype.ts";
import { ArgumentError, InternalError, ShapeError } from "../../errors.ts";
import { arraysEqual, getOrMake, range, toposort } from "../../helpers.ts";
import { isAluOp, isReduceOp, REDUCE, type ReduceOp } from "../../ops.ts";
import type { LazyOp } from "../../schedule/lazyop.ts";
import type { ShapeTracker } from "../../shape/shapetracker.ts";
import {
  add,
  and,
  fold,
  idiv,
  mentions,
  mul,
  type Sint,
  sprod,
  sub,
  Variable,
  type Visitor,
  vars,
} from "../../shape/symbolic.ts";
import { type Shape, stridesFor, unflatten } from "../../shape/view.ts";
import { type UOp, UOpArena } from "../../uop/uops.ts";
import { findStages, type Home, keepStages, type Stage } from "../opt/keep.ts";
import { axisOrder, type OptOp, requireKnown, showOpts, splitAxis } from "../opt/opts.ts";
import { requireSupport, type Target } from "../target.ts";
import { mergeDims } from "./merge.ts";

/**
 * A loop of the kernel. `output` and `local` axes run over the result, `reduce` axes inside a REDUCE, and `top` axes are
 * the items of a workgroup that share a REDUCE. The others are no loops in the end, expand.ts writes them out: `upcast`
 * lanes of the result, and of a reduce those that are combined in every turn (`unroll`) or after the last one (`group`).
 * `tile` axes are the sides of the matrices that a warp multiplies, until tensorcore.ts makes a `warp` and lanes of them.
 */
export interface Axis {
  readonly id: number;
  readonly size: Sint;
  readonly kind: "output" | "local" | "top" | "reduce" | "upcast" | "unroll" | "group" | "tile" | "warp";
  /** the axis of the kernel, as OptOps number them, that this is a part of */
  readonly of: number;
}

/** Whether the axis is an index of the workgroup. A REDUCE over one combines what the items have. */
export const isItem = (a: Axis | undefined): boolean =>
  a?.kind === "local" || a?.kind === "top" || a?.kind === "warp";

export interface Lowered {
  readonly sink: UOp;
  readonly arena: UOpArena;
  /** by their id */
  readonly axes: readonly Axis[];
  /** the output, local and top axes, outermost first */
  readonly order: readonly Axis[];
  /** values that STAGE could keep */
  readonly stages: readonly Stage[];
}

export function lower(ast: readonly LazyOp[], opts: readonly OptOp[], target: Target): Lowered {
  return new Lowering(ast, opts, target).run();
}

/** Where an op is evaluated: an index for each of its dims, and whether the result is looked at at all. */
export interface Place {
  readonly idx: readonly Sint[];
  readonly gate: Sint;
  readonly done: Map<LazyOp, UOp>;
}

/** A dim or several merged ones as the loops it became. */
interface Loops {
  readonly dims: readonly number[];
  /** the index, in the variables of the loops, and their ranges */
  readonly at: Sint;
  readonly ranges: readonly UOp[];
  /** the part of them that is items of a workgroup */
  readonly items: readonly UOp[];
  /** false beyond the end of an axis that workgroups do not divide */
  readonly there: UOp | undefined;
}
/** Items of a workgroup, and whose: an index that mentions one of `users` depends on them. */
interface Items {
  readonly size: number;
  readonly variable: Variable;
  readonly range: UOp;
  readonly users: Variable[];
}

/** Where a reduce is looked at, and the items that share it already, along another of its axes. */
interface Reduce {
  readonly place: Place;
  readonly busy: readonly UOp[];
}

/** Dims that are one loop, by the STORE or reduce: OptOps do not change them, and most kernels are lowered twice. */
const groups = new WeakMap<LazyOp, readonly (readonly number[])[]>();

/** How many reduces wait for one another below a node, itself included: one never waits for another of its height. */
const heights = new WeakMap<LazyOp, number>();
function heightOf(root: LazyOp): number {
  for (const u of toposort([root], (x) => (heights.has(x) ? [] : x.srcs))) {
    if (heights.has(u)) continue;
    const below = u.srcs.reduce((n, x) => Math.max(n, heights.get(x) as number), 0);
    heights.set(u, below + (isReduceOp(u.op) ? 1 : 0));
  }
  return heights.get(root) as number;
}

class Lowering {
  readonly #arena = new UOpArena();
  readonly #axes: Axis[] = [];
  readonly #ranges = new Map<Variable, UOp>();
  readonly #places: Place[] = [];
  /** what each symbolic integer became */
  readonly #indexes = new Map<Sint, UOp>();
  readonly #reduceLoops = new Map<LazyOp, readonly Loops[]>();
  /** the loops of reduces by the place where these are looked at: what runs alike runs together */
  readonly #alike = new Map<Place, Map<string, readonly Loops[]>>();
  readonly #homes: Home[] = [];
  readonly #items: Items[] = [];
  /** the side of a matrix that a warp multiplies, by the number of its axis */
  readonly #tiles = new Map<number, number>();
  /** of an index that may be beyond the end: whether it is not */
  readonly #guards = new Map<Variable, UOp>();
  readonly #ast: readonly LazyOp[];
  readonly #opts: readonly OptOp[];
  readonly #target: Target;
  /** how many axes OptOps can name so far */
  #numbered = 0;

  constructor(ast: readonly LazyOp[], opts: readonly OptOp[], target: Target) {
    this.#ast = ast;
    this.#opts = opts;
    this.#target = target;
  }

  run(): Lowered {
    requireKnown(this.#opts, this.#target.hasLocal, this.#target.gpu?.copiesAhead === true);
    const { shape } = this.#ast[0] as LazyOp;
    this.#chooseTiles(shape);
    const merged = getOrMake(groups, this.#ast[0] as LazyOp, () => mergeDims(this.#ast));
    const loops = merged.map((dims) =>
      this.#loops(dims, sprod(dims.map((d) => shape[d] as Sint)), undefined),
    );
    const outputs = this.#outputOrder(loops);
    const place = this.#place(indexes(loops, shape), 1);
    const stores = this.#ast.map((store) => {
      if (store.op !== "STORE") throw new InternalError(`a kernel starts with STORE, not ${store.op}`);
      return this.#store(store, place);
    });
    const stray = this.#opts.find(
      (o) => o.op !== "SWAP" && o.op !== "NOLOCALS" && !range(this.#numbered).includes(o.axis),
    );
    if (stray !== undefined) {
      throw new ArgumentError(`${showOpts([stray])}: this kernel has the axes 0 to ${this.#numbered - 1}`);
    }
    const sink = this.#arena.make("SINK", undefined, stores, undefined);
    const [arena, axes, target] = [this.#arena, this.#axes, this.#target];
    const stages = findStages(this.#homes, this.#places);
    const items = this.#items.map((t) => t.range);
    const index = (x: Sint): UOp => this.#index(x);
    const staging = { arena, axes, items, target, index, there: (x: Sint) => this.#there(x) };
    const order = [...outputs, ...axes.filter((a) => a.kind === "top")];
    return { sink: keepStages(sink, stages, this.#opts, staging), arena, axes, order, stages };
  }

  /** TC takes the last two output axes and the reduce axis that it names. */
  #chooseTiles(shape: Shape): void {
    const tc = this.#opts.find((o) => o.op === "TC");
    if (tc === undefined) return;
    const outputs = mergeDims(this.#ast).filter(
      (dims) => sprod(dims.map((d) => shape[d] as Sint)) !== 1,
    ).length;
    const core = this.#target.gpu?.tensorCores[tc.amount];
    if (core === undefined || outputs < 2 || tc.axis < outputs) {
      throw new ArgumentError(
        `${showOpts([tc])}: expected a reduce axis of a kernel with two output axes, and a step of ${this.#target.name}: ` +
          `${this.#target.gpu?.tensorCores.map((c, i) => `${i} ${c.name}`).join(", ") || "it has none"}`,
      );
    }
    this.#tiles
      .set(outputs - 2, core.m)
      .set(outputs - 1, core.n)
      .set(tc.axis, core.k);
  }

  /** Rest axes in the order that SWAP leaves, then the local ones. */
  #outputOrder(loops: readonly Loops[]): Axis[] {
    const real = loops.filter((l) => l.ranges.length > 0);
    const sorted = axisOrder(this.#opts, real.length).map((i) => real[i] as Loops);
    const axes = sorted.flatMap((l) => l.ranges.map((r) => this.#axes[r.arg as number] as Axis));
    return [...axes.filter((a) => a.kind === "output"), ...axes.filter((a) => a.kind === "local")];
  }

  #store(store: LazyOp<"STORE">, place: Place): UOp {
    const value = this.#lower(store.srcs[0] as LazyOp, place);
    const { index } = store.arg.st.expr(place.idx);
    const there = this.#there(index);
    const gate = there === undefined ? [] : [there];
    const srcs = [this.#buffer(store), this.#index(index), value, ...gate];
    return this.#arena.make("STORE", undefined, srcs, undefined);
  }

  #lower(op: LazyOp, place: Place): UOp {
    return getOrMake(place.done, op, () => this.#lowerNew(op, place));
  }
  #lowerNew(op: LazyOp, place: Place): UOp {
    requireSupport(this.#target, op.dtype, op.op);
    const a = this.#arena;
    switch (op.op) {
      case "LOAD":
        return this.#load(op, place);
      case "CONST": {
        const { valid } = op.arg.st.expr(place.idx);
        return this.#where(valid, a.constant(op.dtype, op.arg.val), op.dtype);
      }
      case "ARANGE": {
        const { index, valid } = op.arg.expr(place.idx);
        return this.#where(valid, this.#index(index), op.dtype);
      }
      case "VIEW": {
        const src = op.srcs[0] as LazyOp;
        const { index, valid } = op.arg.expr(place.idx);
        const inner = this.#place(unflatten(index, src.shape), and(place.gate, valid));
        return this.#where(valid, this.#lower(src, inner), op.dtype);
      }
      case "CAST":
        return a.cast(this.#lower(op.srcs[0] as LazyOp, place), op.dtype);
      case "BITCAST":
        return a.bitcast(this.#lower(op.srcs[0] as LazyOp, place), op.dtype);
      case "SUM":
      case "REDUCE_MAX":
      case "PROD":
        return this.#reduce(op, place);
      default: {
        if (!isAluOp(op.op)) throw new InternalError(`${op.op} cannot be lowered to a kernel`);
        const made = a.alu(op.op, ...op.srcs.map((s) => this.#lower(s, place)));
        if (isLessLargest(op)) a.notPositive.add(made);
        return made;
      }
    }
  }

  #load(op: LazyOp<"LOAD">, place: Place): UOp {
    const { index, valid } = op.arg.st.expr(place.idx);
    const gate = and(place.gate, valid);
    const zero = this.#arena.constant(op.dtype, 0);
    if (gate === 0) return zero;
    const at = [this.#buffer(op), this.#index(index)];
    const there = this.#there(index);
    if (gate === 1 && there === undefined) return this.#arena.make("LOAD", op.dtype, at, undefined);
    const wanted = this.#index(gate);
    const both = there === undefined ? wanted : gate === 1 ? there : this.#arena.alu("AND", wanted, there);
    return this.#arena.make("LOAD", op.dtype, [...at, both, zero], undefined);
  }
  /** Whether an index is not beyond the end of its axes; undefined where it never is. */
  #there(index: Sint): UOp | undefined {
    if (this.#guards.size === 0) return undefined;
    const guards = [...vars(index)].flatMap((v) => this.#guards.get(v) ?? []);
    return guards.length === 0 ? undefined : guards.reduce((x, y) => this.#arena.alu("AND", x, y));
  }

  #reduce(op: LazyOp<ReduceOp>, place: Place): UOp {
    const a = this.#arena;
    const src = op.srcs[0] as LazyOp;
    const loops = getOrMake(this.#reduceLoops, op, () => this.#loopsOf(op, src, place));
    const idx = [...place.idx];
    const fresh = indexes(loops, src.shape);
    for (const d of op.arg) idx[d] = fresh[d] as Sint;
    const inner = this.#place(idx, place.gate);
    let value = this.#lower(src, inner);
    for (const { there } of loops) {
      if (there !== undefined)
        value = a.alu("WHERE", there, value, a.constant(op.dtype, REDUCE[op.op].identity(op.dtype)));
    }
    const items = loops.flatMap((l) => l.items);
    this.#requireFree(items, place);
    const ranges = loops.flatMap((l) => l.ranges).filter((r) => !items.includes(r));
    const [first] = ranges;
    const isHome = this.#homes.some((h) => h.place === inner && h.ranges[0] === first);
    if (first !== undefined && items.length === 0 && !isHome) {
      const axis = (this.#axes[first.arg as number] as Axis).of;
      this.#homes.push({ dims: op.arg, axis, ranges, place: inner });
    }
    const own = ranges.length === 0 ? value : a.make("REDUCE", op.dtype, [value, ...ranges], op.op);
    return items.length === 0 ? own : a.make("REDUCE", op.dtype, [own, ...items], op.op);
  }
  /** Reduces of the same dims that do not wait for each other are one loop: what both read is read once. */
  #loopsOf(op: LazyOp<ReduceOp>, src: LazyOp, place: Place): readonly Loops[] {
    const merged = getOrMake(groups, op, () => mergeDims([src], op.arg));
    const key = [heightOf(op), src.shape, op.arg, ...merged].join("|");
    return getOrMake(
      getOrMake(this.#alike, place, () => new Map<string, readonly Loops[]>()),
      key,
      () => {
        const busy: UOp[] = [];
        return merged.map((dims) => {
          const made = this.#loops(dims, sprod(dims.map((d) => src.shape[d] as Sint)), { place, busy });
          busy.push(...made.items);
          return made;
        });
      },
    );
  }
  /** Where a reduce is looked at may not depend on the items that share it. */
  #requireFree(items: readonly UOp[], { idx }: Place): void {
    const taken = this.#items.find((t) => items.includes(t.range) && idx.some((i) => mentions(i, t.users)));
    if (taken === undefined) return;
    throw new ArgumentError(
      `GROUPTOP: a reduce is shared by ${taken.size} items of a workgroup, but each of them needs another; use GROUP`,
    );
  }

  /** Loops for merged dims of the given size, of the output or of a reduce at a place. A size of 1 needs none. */
  #loops(dims: readonly number[], size: Sint, reduce: Reduce | undefined): Loops {
    if (size === 1) return { dims, at: 0, ranges: [], items: [], there: undefined };
    const of = this.#numbered++;
    const output = reduce === undefined;
    const grid = this.#target.hasLocal;
    const tile = this.#tiles.get(of) ?? 1;
    const { rest, padded, ragged, ...parts } = splitAxis(this.#opts, of, size, output, grid, tile);
    const lanes = output ? "upcast" : "unroll";
    let at: Sint = 0;
    const ranges: UOp[] = [];
    const users: Variable[] = [];
    const nest = (n: Sint, { variable, range }: { variable: Variable; range: UOp }): void => {
      at = add(mul(at, n), variable);
      users.push(variable);
      ranges.push(range);
    };
    if (rest !== 1) nest(1, this.#range(rest, output ? "output" : "reduce", of));
    if (parts.far !== 1) nest(parts.far, this.#range(parts.far, lanes, of));
    const items = parts.local === 1 ? undefined : this.#workgroup(parts.local, reduce, of);
    if (items !== undefined) nest(parts.local, items);
    const inner = parts.lanes * parts.group * tile;
    const even = typeof size === "number" && size % inner === 0;
    let there: UOp | undefined;
    const guard = (end: Sint): void => {
      const variable = Variable(`b${of}`, 0, sub(end, 1));
      const index = this.#index(at);
      there = this.#arena.alu("CMPLT", index, this.#index(end));
      this.#ranges.set(variable, index);
      this.#guards.set(variable, there);
      users.push(variable);
      at = variable;
    };
    if (ragged && even) guard(idiv(size, inner));
    if (padded) {
      const first = this.#stopped(at, parts.lanes, size as number, of);
      users.push(first);
      at = first;
    } else at = mul(at, parts.lanes);
    if (parts.lanes !== 1) nest(1, this.#range(parts.lanes, lanes, of));
    if (parts.group !== 1) nest(parts.group, this.#range(parts.group, "group", of));
    if (tile !== 1) nest(tile, this.#range(tile, "tile", of));
    if (ragged && !even) guard(size);
    items?.users.push(...users);
    return { dims, at, ranges, items: items === undefined ? [] : [items.range], there };
  }
  /** Items of a workgroup: those of an output axis or of a reduce serve every reduce that does not depend on them. */
  #workgroup(size: number, reduce: Reduce | undefined, of: number): Items {
    const isIdle = (t: Items): boolean =>
      reduce?.busy.includes(t.range) === false && !reduce.place.idx.some((i) => mentions(i, t.users));
    const idle = this.#items.find((t) => t.size === size && isIdle(t));
    if (idle !== undefined) return idle;
    const made = { size, users: [], ...this.#range(size, reduce === undefined ? "local" : "top", of) };
    this.#items.push(made);
    return made;
  }
  /** The first of `lanes` elements at turn `turn`, never so far that the last is beyond `size`. */
  #stopped(turn: Sint, lanes: number, size: number, of: number): Variable {
    const last = this.#arena.constant(dtypes.int32, size - lanes);
    const first = this.#index(mul(turn, lanes));
    const fits = this.#arena.alu("CMPLT", first, last);
    const variable = Variable(`b${of}`, 0, size - lanes);
    this.#ranges.set(variable, this.#arena.alu("WHERE", fits, first, last));
    return variable;
  }

  #range(size: Sint, kind: Axis["kind"], of: number): { variable: Variable; range: UOp } {
    const id = this.#axes.push({ id: this.#axes.length, size, kind, of }) - 1;
    const variable = Variable(`r${id}`, 0, typeof size === "number" ? size - 1 : sub(size, 1));
    const ends = [this.#arena.constant(dtypes.int32, 0), this.#index(size)];
    const made = this.#arena.make("RANGE", dtypes.int32, ends, id);
    this.#ranges.set(variable, made);
    return { variable, range: made };
  }

  #place(idx: readonly Sint[], gate: Sint): Place {
    const known = this.#places.find((p) => p.gate === gate && arraysEqual(p.idx, idx));
    if (known !== undefined) return known;
    const made = { idx, gate, done: new Map() };
    this.#places.push(made);
    return made;
  }

  #where(valid: Sint, value: UOp, dtype: DType): UOp {
    if (valid === 1) return value;
    return this.#arena.alu("WHERE", this.#index(valid), value, this.#arena.constant(dtype, 0));
  }

  #buffer(op: LazyOp<"LOAD" | "STORE">): UOp {
    const { idx, dtype, st } = op.arg;
    requireSupport(this.#target, dtype, op.op);
    if (extent(st) > 2 ** 31) {
      throw new ShapeError(
        `kernel: a buffer of ${extent(st)} elements is indexed with 32 bits; split the tensor`,
      );
    }
    return this.#arena.make(
      "DEFINE_GLOBAL",
      PtrDType(dtype),
      [],
      [idx, `data${idx}`, idx < this.#ast.length],
    );
  }

  /** A symbolic integer as UOps: int32 for indexes, bool for conditions. */
  #index(x: Sint): UOp {
    return fold(x, this.#visitor, this.#indexes);
  }
  /** A dividend that is never negative: symbolic division rounds down, IDIV and MOD towards zero. */
  #lifted(x: UOp, y: UOp, lift: number): UOp {
    return this.#arena.alu("ADD", x, this.#arena.alu("MUL", y, this.#arena.constant(dtypes.int32, lift)));
  }
  readonly #visitor: Visitor<UOp> = {
    const: (n) => this.#arena.constant(dtypes.int32, n),
    variable: (v) => this.#ranges.get(v) ?? this.#arena.make("DEFINE_VAR", dtypes.int32, [], v),
    add: (x, y) => this.#arena.alu("ADD", x, y),
    mul: (x, y) => this.#arena.alu("MUL", x, y),
    idiv: (x, y, lift) => {
      const quotient = this.#arena.alu("IDIV", this.#lifted(x, y, lift), y);
      return this.#arena.alu("ADD", quotient, this.#arena.constant(dtypes.int32, -lift));
    },
    mod: (x, y, lift) => this.#arena.alu("MOD", this.#lifted(x, y, lift), y),
    lt: (x, y) => this.#arena.alu("CMPLT", x, y),
    and: (x, y) => this.#arena.alu("AND", x, y),
  };
}

/** x - max(x), the maximum seen wherever x is: what a softmax takes the exp of. */
function isLessLargest(op: LazyOp): boolean {
  const [x, view] = op.srcs;
  const largest = view?.op === "VIEW" ? view.srcs[0] : view;
  if (op.op !== "SUB" || largest?.op !== "REDUCE_MAX" || largest.srcs[0] !== x || x === undefined)
    return false;
  // each element sees the maximum of its own row
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

const extent = (st: ShapeTracker): number => st.realSize();

/** One index a dim: a merged dim is taken apart again, which the simplifier undoes in the address. */
function indexes(loops: readonly Loops[], shape: Shape): Sint[] {
  const idx: Sint[] = shape.map(() => 0);
  for (const l of loops) {
    const sizes = l.dims.map((d) => shape[d] as Sint);
    const parts = l.dims.length === 1 ? [l.at] : unflatten(l.at, sizes);
    l.dims.forEach((d, j) => {
      idx[d] = parts[j] as Sint;
    });
  }
  return idx;
}
