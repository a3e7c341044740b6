// How OptOps split an axis of a kernel: into a loop, threads of a workgroup, lanes that are written out, and
// sides of matrices for tensor cores. In goes the size of an axis, out come the RANGEs it became and its
// index as a sum of them.

import {
  add,
  idiv,
  mentions,
  mul,
  ownVariable,
  type Sint,
  sub,
  type Variable,
} from "../../shape/symbolic.ts";
import type { UOpArena } from "../../uop/arena.ts";
import type { Axis, Expr, Range } from "../../uop/node.ts";
import type { OptOp } from "../opt/opts.ts";
import { splitAxis } from "../opt/split.ts";
import type { Target } from "../target.ts";
import type { Indexes } from "./indexes.ts";

/** A dim, or several merged ones, as the loops it became. */
export interface AxisLoops {
  readonly dims: readonly number[];
  /** the index, in the variables of the loops, and their ranges */
  readonly at: Sint;
  readonly ranges: readonly Range[];
  /** those of the ranges that are threads of a workgroup */
  readonly threads: readonly Range[];
  /** false beyond the end of an axis that the workgroup does not divide */
  readonly inBounds: Expr | undefined;
}

/** Where a reduction is evaluated, and the threads already used by another axis of the same reduction. */
export interface ReduceSite {
  readonly idx: readonly Sint[];
  readonly busy: readonly Range[];
}

/** Threads of a workgroup. An index that mentions one of `users` depends on them. */
interface Threads {
  readonly size: number;
  readonly variable: Variable;
  readonly range: Range;
  readonly users: Variable[];
}

export interface SplitterOptions {
  readonly opts: readonly OptOp[];
  readonly target: Target;
  /** the side of a matrix that a warp multiplies, by the number of its axis */
  readonly tiles: ReadonlyMap<number, number>;
}

export class AxisSplitter {
  /** all axes made so far, by id */
  readonly axes: Axis[] = [];
  readonly #threads: Threads[] = [];
  readonly #arena: UOpArena;
  readonly #indexes: Indexes;
  readonly #options: SplitterOptions;
  #numbered = 0;

  constructor(arena: UOpArena, indexes: Indexes, options: SplitterOptions) {
    this.#arena = arena;
    this.#indexes = indexes;
    this.#options = options;
  }

  /** How many axes OptOps can name so far. */
  get numbered(): number {
    return this.#numbered;
  }
  /** The threads of the workgroup. */
  get threads(): readonly Range[] {
    return this.#threads.map((t) => t.range);
  }

  /**
   * The loops of merged dims of this size, of the output or of a reduction. A size of 1 needs no loop.
   * `isJoined`: no buffer has one stride across all of the dims, so their indexes come by division.
   */
  split(dims: readonly number[], size: Sint, reduce: ReduceSite | undefined, isJoined = false): AxisLoops {
    if (size === 1) return { dims, at: 0, ranges: [], threads: [], inBounds: undefined };
    const of = this.#numbered++;
    const output = reduce === undefined;
    const { opts, target, tiles } = this.#options;
    const tile = tiles.get(of) ?? 1;
    const axis = { number: of, size, isOutput: output, tile };
    const { rest, padded, ragged, gated, ...parts } = splitAxis(opts, axis, target);
    const lanes = output ? "upcast" : "unroll";
    let at: Sint = 0;
    let inBounds: Expr | undefined;
    const ranges: Range[] = [];
    const users: Variable[] = [];
    const nest = (n: Sint, { variable, range }: { variable: Variable; range: Range }): void => {
      at = add(mul(at, n), variable);
      users.push(variable);
      ranges.push(range);
    };
    if (rest !== 1) nest(1, this.#range(rest, output ? "output" : "reduce", of));
    if (parts.far !== 1) nest(parts.far, this.#range(parts.far, lanes, of));
    const threads = parts.local === 1 ? undefined : this.#workgroup(parts.local, reduce, of);
    if (threads !== undefined) nest(parts.local, threads);
    const inner = parts.lanes * parts.group * tile;
    const even = !gated && typeof size === "number" && size % inner === 0;
    const guard = (end: Sint): void => {
      const variable = ownVariable(`b${of}`, 0, sub(end, 1));
      const index = this.#indexes.toExpr(at);
      inBounds = this.#arena.alu("CMPLT", ...this.#indexes.alike(index, this.#indexes.toExpr(end)));
      this.#indexes.bind(variable, index, inBounds);
      users.push(variable);
      at = variable;
    };
    if (ragged && even) guard(idiv(size, inner));
    if (padded) {
      const first = this.#overlapped(at, parts.lanes, size, of);
      users.push(first);
      at = first;
    } else at = mul(at, parts.lanes);
    if (parts.lanes !== 1) nest(1, this.#range(parts.lanes, lanes, of));
    if (parts.group !== 1) nest(parts.group, this.#range(parts.group, "group", of));
    if (tile !== 1) nest(tile, this.#range(tile, "tile", of));
    if (ragged && !even) guard(size);
    else if (isJoined) {
      // as one variable: a quotient of the sum would be taken apart
      const whole = ownVariable(`c${of}`, 0, sub(size, 1));
      this.#indexes.bind(whole, this.#indexes.toExpr(at), inBounds);
      users.push(whole);
      at = whole;
    }
    threads?.users.push(...users);
    return { dims, at, ranges, threads: threads === undefined ? [] : [threads.range], inBounds };
  }

  /**
   * The size of a workgroup whose threads share a reduction although it is evaluated at indexes that depend
   * on them: an error.
   */
  sharedByItsUsers(threads: readonly Range[], idx: readonly Sint[]): number | undefined {
    return this.#threads.find((t) => threads.includes(t.range) && idx.some((i) => mentions(i, t.users)))
      ?.size;
  }

  /** Threads of a workgroup. Those of one axis also serve every reduction that does not depend on them. */
  #workgroup(size: number, reduce: ReduceSite | undefined, of: number): Threads {
    const isIdle = (t: Threads): boolean =>
      reduce?.busy.includes(t.range) === false && !reduce.idx.some((i) => mentions(i, t.users));
    const idle = this.#threads.find((t) => t.size === size && isIdle(t));
    if (idle !== undefined) return idle;
    const made = { size, users: [], ...this.#range(size, reduce === undefined ? "local" : "top", of) };
    this.#threads.push(made);
    return made;
  }
  /** The first of `lanes` elements in an iteration, never so far that the last of them is beyond `size`. */
  #overlapped(iteration: Sint, lanes: number, size: Sint, of: number): Variable {
    const [first, last] = this.#indexes.alike(
      this.#indexes.toExpr(mul(iteration, lanes)),
      this.#indexes.toExpr(sub(size, lanes)),
    );
    const fits = this.#arena.alu("CMPLT", first, last);
    const variable = ownVariable(`b${of}`, 0, sub(size, lanes));
    this.#indexes.bind(variable, this.#arena.alu("WHERE", fits, first, last));
    return variable;
  }

  #range(size: Sint, kind: Axis["kind"], of: number): { variable: Variable; range: Range } {
    const range = this.#arena.range({ size, kind, of }, this.#indexes.toExpr(size));
    const variable = ownVariable(`r${range.axis.id}`, 0, typeof size === "number" ? size - 1 : sub(size, 1));
    this.axes.push(range.axis);
    this.#indexes.bind(variable, range);
    return { variable, range };
  }
}
