// A ShapeTracker maps each element of a tensor to its place in the buffer, after any chain of movement ops.
// In: a shape, then movements. Out: a stack of Views, usually one, and the index expressions of `expr`: the
// flat index in the buffer, and whether the element is backed by memory. Immutable. The arguments of
// movements are checked here; movements within one view are done in `view.ts`.

import { ShapeError } from "../errors.ts";
import { arraysEqual } from "../helpers.ts";
import { decided } from "./guards.ts";
import {
  add,
  and,
  coefficients,
  complexity,
  ge,
  le,
  mentions,
  mul,
  ownVariable,
  rebind,
  type Sint,
  type Sym,
  smax,
  smin,
  sprod,
  sub,
  substitute,
  unbind,
  type Variable,
  vars,
} from "./symbolic.ts";
import { type Interval, merge, type Shape, sameSize, unflatten, View } from "./view.ts";

export { unflatten };

const show = (xs: readonly unknown[]): string =>
  `[${xs.map((x) => (Array.isArray(x) ? show(x) : String(x))).join(",")}]`;

const isAxis = (a: number, rank: number): boolean => Number.isSafeInteger(a) && a >= 0 && a < rank;
const isSint = (x: Sint): boolean => typeof x !== "number" || Number.isSafeInteger(x);
/** Whether a comparison can hold, and does hold for the bound values. */
const mayHold = (condition: Sint): boolean => condition !== 0 && decided(condition) !== 0;

function checkShape(op: string, shape: Shape): void {
  for (const s of shape) {
    if (typeof s === "number" ? Number.isSafeInteger(s) && s >= 0 : s.min >= 0) continue;
    throw new ShapeError(
      `${op}: got shape ${show(shape)}; each size must be an integer >= 0 or symbolic with min >= 0`,
    );
  }
}

/** So many more views in a stack are tried to be merged. */
const MANY_VIEWS = 8;

/** Maps each element of a tensor to its place in the buffer, after any chain of movement ops. */
export class ShapeTracker {
  static readonly name: string = "ShapeTracker";
  /** views[0] indexes the buffer; each later view indexes the elements of the previous one. */
  readonly views: readonly View[];
  readonly shape: Shape;
  #key: string | undefined;
  #simplified: ShapeTracker | undefined;
  #realSize: number | undefined;

  private constructor(views: readonly View[]) {
    this.views = views;
    this.shape = views[views.length - 1]!.shape;
  }

  static fromShape(shape: Shape): ShapeTracker {
    checkShape("fromShape", shape);
    return new ShapeTracker([View.create([...shape])]);
  }

  /** A single element, seen at every index of `shape`. */
  static repeating(shape: Shape): ShapeTracker {
    const st = ShapeTracker.fromShape(shape);
    return new ShapeTracker([View.create(st.shape, new Array(shape.length).fill(0))]);
  }

  /** From matching views; the first one indexes the buffer. */
  static fromViews(views: readonly View[]): ShapeTracker {
    if (views.length === 0) throw new ShapeError("fromViews: got no views; give at least one");
    return new ShapeTracker(views);
  }

  get size(): Sint {
    return sprod(this.shape);
  }

  get contiguous(): boolean {
    return this.views.length === 1 && this.views[0]!.contiguous;
  }

  /** One unmasked view whose elements are contiguous and in order, at any offset. */
  get consecutive(): boolean {
    const view = this.views[0]!;
    return (
      this.views.length === 1 && view.mask === undefined && View.create(view.shape, view.strides).contiguous
    );
  }

  get key(): string {
    this.#key ??= this.views.map((v) => v.key).join("");
    return this.#key;
  }

  toString(): string {
    return `ShapeTracker(${this.views.join(", ")})`;
  }

  get #last(): View {
    return this.views[this.views.length - 1]!;
  }

  #withLast(view: View | undefined, otherwise: () => View): ShapeTracker {
    if (view === this.#last) return this;
    const views = this.views.slice(0, view === undefined ? undefined : -1);
    const made = new ShapeTracker([...views, view ?? otherwise()]);
    // a long stack is merged on the way, so that a chain of movements is linear
    return view === undefined && made.views.length % MANY_VIEWS === 0 ? made.simplify() : made;
  }

  #replaceLast(view: View): ShapeTracker {
    return this.#withLast(view, () => view);
  }

  reshape(shape: Shape): ShapeTracker {
    checkShape("reshape", shape);
    const have = this.size,
      want = sprod(shape);
    if (!sameSize(have, want)) {
      throw new ShapeError(
        `reshape: cannot view shape ${show(this.shape)} (${have} elements) as ${show(shape)} (${want} elements); ` +
          "the element counts must match",
      );
    }
    return this.#withLast(this.#last.reshape(shape), () => View.create(shape));
  }

  permute(axes: readonly number[]): ShapeTracker {
    const rank = this.shape.length;
    if (axes.length !== rank || new Set(axes).size !== rank || axes.some((a) => !isAxis(a, rank))) {
      throw new ShapeError(
        `permute: got axes ${show(axes)} for shape ${show(this.shape)}; give each of its ${rank} axes exactly once`,
      );
    }
    return axes.every((a, i) => a === i) ? this : this.#replaceLast(this.#last.permute(axes));
  }

  expand(shape: Shape): ShapeTracker {
    checkShape("expand", shape);
    if (
      shape.length !== this.shape.length ||
      shape.some((s, i) => s !== this.shape[i] && this.shape[i] !== 1)
    ) {
      throw new ShapeError(
        `expand: cannot expand shape ${show(this.shape)} to ${show(shape)}; ` +
          "the ranks must match and only axes of size 1 can change (reshape to add axes)",
      );
    }
    return shape.every((s, i) => s === this.shape[i]) ? this : this.#replaceLast(this.#last.expand(shape));
  }

  /**
   * Adds [before, after] elements to each axis. They are not backed by memory: `expr` marks them as invalid.
   */
  pad(amounts: readonly Interval[]): ShapeTracker {
    this.#checkPairs(
      "pad",
      amounts,
      "[before, after] amounts >= 0",
      ([b, a]) => smin(b) >= 0 && smin(a) >= 0,
    );
    return this.#replaceLast(this.#last.pad(amounts));
  }

  /** Keeps the elements [from, to) of each axis. */
  shrink(cuts: readonly Interval[]): ShapeTracker {
    const fits = ([from, to]: Interval, i: number): boolean =>
      mayHold(ge(from, 0)) && mayHold(le(from, to)) && mayHold(le(to, this.shape[i]!));
    this.#checkPairs("shrink", cuts, "[from, to] with 0 <= from <= to <= size", fits);
    return this.#withLast(this.#last.shrink(cuts), () => View.create(this.shape).shrink(cuts)!);
  }

  /** Every |step|th element of each axis, counted from the end if the step is negative. */
  stride(steps: readonly number[]): ShapeTracker {
    if (steps.length !== this.shape.length || steps.some((m) => !Number.isSafeInteger(m) || m === 0)) {
      throw new ShapeError(
        `stride: got steps ${show(steps)} for shape ${show(this.shape)}; give one nonzero integer per axis`,
      );
    }
    return this.#replaceLast(this.#last.stride(steps));
  }

  flip(axes: readonly number[]): ShapeTracker {
    if (new Set(axes).size !== axes.length || axes.some((a) => !isAxis(a, this.shape.length))) {
      throw new ShapeError(
        `flip: got axes ${show(axes)} for shape ${show(this.shape)}; give distinct axes from 0 to ${this.shape.length - 1}`,
      );
    }
    return this.#replaceLast(this.#last.flip(axes));
  }

  #checkPairs(
    op: string,
    pairs: readonly Interval[],
    expected: string,
    fits: (pair: Interval, i: number) => boolean,
  ): void {
    const ok = (pair: Interval, i: number): boolean =>
      pair.length === 2 && pair.every(isSint) && fits(pair, i);
    if (pairs.length === this.shape.length && pairs.every(ok)) return;
    throw new ShapeError(
      `${op}: got ${show(pairs)} for shape ${show(this.shape)}; give one pair per axis, ${expected}`,
    );
  }

  /**
   * This tracker seen through `other`, whose base must have this tracker's size. This one is applied to the
   * data first.
   */
  add(other: ShapeTracker): ShapeTracker {
    if (other.contiguous && arraysEqual<Sint>(other.shape, this.shape)) return this;
    if (other.views.length === 1 && extent(other.views[0]!) > smax(this.size)) {
      throw new ShapeError(
        `add: ${other} reaches element ${extent(other.views[0]!) - 1} of shape ${show(this.shape)} ` +
          `(${this.size} elements); stack only a tracker that was made for this size`,
      );
    }
    let st: ShapeTracker = this;
    for (const view of other.views) {
      st = view.contiguous && sameSize(view.size, st.size) ? st.reshape(view.shape) : st.#stack(view);
    }
    return st;
  }

  #stack(view: View): ShapeTracker {
    return new ShapeTracker(this.contiguous ? [view] : [...this.views, view]);
  }

  /** An equivalent tracker with as few views as can be found. */
  simplify(): ShapeTracker {
    if (this.views.length === 1) return this;
    this.#simplified ??= this.#simplify();
    return this.#simplified;
  }

  #simplify(): ShapeTracker {
    const views: View[] = [];
    for (const view of this.views) {
      let top = view;
      for (let below = views.at(-1); below !== undefined; below = views.at(-1)) {
        const one = merge(top, below);
        if (one === undefined) break;
        views.pop();
        top = one;
      }
      views.push(top);
    }
    return views.length === this.views.length ? this : new ShapeTracker(views);
  }

  /** The flat index in the buffer, and a 0/1 value: whether it is valid. An invalid index has no meaning. */
  expr(idxs: readonly Sint[]): { index: Sint; valid: Sint } {
    if (idxs.length !== this.shape.length) {
      throw new ShapeError(
        `expr: got ${idxs.length} indexes for shape ${show(this.shape)}; give one for each of its ${this.shape.length} axes`,
      );
    }
    if (this.views.length === 1) return this.views[0]!.expr(idxs);
    const { views } = this.simplify();
    const plain = through(views, idxs, false);
    if (!views.some((v) => v.mask !== undefined) || typeof plain.index === "number") return plain;
    const narrow = through(views, idxs, true);
    return complexity(narrow.index) + complexity(narrow.valid) <
      complexity(plain.index) + complexity(plain.valid)
      ? narrow
      : plain;
  }

  /** One variable per axis; a constant if the axis has at most one index. */
  #indexes(): Sint[] {
    return this.shape.map((s, i) => (smax(s) <= 1 ? 0 : ownVariable(`dim${i}`, 0, sub(s, 1))));
  }

  /** The stride of each axis in the buffer; undefined if it is not constant. */
  realStrides(): (Sint | undefined)[] {
    const { views } = this.simplify();
    if (views.length === 1) return [...views[0]!.strides];
    const idxs = this.#indexes();
    const dims = idxs.filter((x) => typeof x !== "number");
    const { index } = this.expr(idxs);
    return idxs.map((x) => {
      if (typeof x === "number") return 0;
      const stride = coefficients(index, [x])?.coefs[0];
      return stride === undefined || mentions(stride, dims) ? undefined : stride;
    });
  }

  /**
   * The number of elements the buffer needs to hold every valid index; an upper bound if views are stacked.
   */
  realSize(): number {
    this.#realSize ??= this.#findRealSize();
    return this.#realSize;
  }
  #findRealSize(): number {
    const { views } = this.simplify();
    const own = extent(views[0]!);
    if (views.length === 1 || own === 0) return own;
    const { index, valid } = this.expr(this.#indexes());
    return valid === 0 || this.shape.includes(0) ? 0 : Math.min(own, smax(index) + 1);
  }

  /** Whether an element's validity depends on the index along this axis. */
  axisIsMasked(axis: number): boolean {
    if (!isAxis(axis, this.shape.length)) {
      throw new ShapeError(
        `axisIsMasked: got axis ${axis} for shape ${show(this.shape)}; give one of its axes`,
      );
    }
    const idxs = this.#indexes();
    const index = idxs[axis]!;
    return typeof index !== "number" && mentions(this.expr(idxs).valid, [index]);
  }

  vars(): Set<Variable> {
    const found = new Set<Variable>();
    for (const view of this.views) for (const x of view.parts()) for (const v of vars(x)) found.add(v);
    return found;
  }

  /**
   * Replaces bound variables by plain ones and returns their values: trackers that differ only in values
   * become equal.
   */
  unbind(): [ShapeTracker, Map<Variable, number>] {
    const values = new Map<Variable, number>();
    if (this.views.every((view) => view.isNumeric)) return [this, values];
    const bare = (x: Sint): Sint => {
      const [y, bound] = unbind(x);
      for (const [variable, value] of bound) {
        const before = values.get(variable);
        if (before !== undefined && before !== value) {
          throw new ShapeError(
            `unbind: ${variable} is bound to both ${before} and ${value} in ${this}; bind it to one value per kernel`,
          );
        }
        values.set(variable, value);
      }
      return y;
    };
    return [new ShapeTracker(this.views.map((view) => view.map(bare))), values];
  }

  /** Rebinds variables that are bound already. */
  rebind(values: ReadonlyMap<Variable, number>): ShapeTracker {
    if (values.size === 0 || this.views.every((v) => v.isNumeric)) return this;
    return new ShapeTracker(this.views.map((view) => view.map((x) => rebind(x, values))));
  }

  /**
   * The tracker that undoes this one and restores `shape`; undefined if elements were dropped, added or
   * repeated.
   */
  invert(shape: Shape): ShapeTracker | undefined {
    checkShape("invert", shape);
    let st = ShapeTracker.fromShape(this.shape);
    for (let i = this.views.length - 1; i >= 0; i--) {
      const view = this.views[i]!;
      const ordered = inOrder(view);
      if (ordered === undefined || !sameSize(st.size, view.size)) return undefined;
      st = st.reshape(view.shape).flip(ordered.flipped).permute(ordered.axes);
    }
    return sameSize(st.size, sprod(shape)) ? st.reshape(shape) : undefined;
  }
}

/** The permutation and flips that make a view contiguous, if there are any. */
function inOrder(view: View): { axes: number[]; flipped: number[] } | undefined {
  const flipped = view.strides.flatMap((s, i) => (smax(s) < 0 ? [i] : []));
  const forward = view.flip(flipped);
  const further = (i: number, j: number): number => smax(forward.strides[j]!) - smax(forward.strides[i]!);
  const axes = view.shape.map((_, i) => i).sort((i, j) => further(i, j) || i - j);
  return forward.permute(axes).contiguous ? { axes, flipped } : undefined;
}

/** The largest valid index of a view, plus one. */
function extent(view: View): number {
  if (view.shape.includes(0) || view.hidesAll) return 0;
  let last = view.offset;
  view.strides.forEach((stride, i) => {
    const [lo, hi] = view.interval(i);
    last = add(last, mul(stride, smax(stride) > 0 ? sub(hi, 1) : lo));
  });
  return smax(last) + 1;
}

/**
 * The index through a stack of views. With `narrow` only valid elements matter, so each coordinate below a
 * mask is assumed to lie inside it: a substitute variable with that range lets more divisions simplify.
 */
function through(
  views: readonly View[],
  idxs: readonly Sint[],
  narrow: boolean,
): { index: Sint; valid: Sint } {
  const real = new Map<Sym, Sint>();
  let coords = idxs,
    valid: Sint = 1;
  for (let at = views.length - 1; ; at--) {
    const view = views[at]!;
    let { index, valid: here } = view.expr(coords);
    valid = and(valid, here);
    if (valid === 0) return { index: 0, valid: 0 };
    if (at === 0) return { index: substitute(index, real), valid: substitute(valid, real) };
    if (narrow && view.mask !== undefined) index = view.expr(standIns(view, coords, at, real)).index;
    coords = unflatten(index, views[at - 1]!.shape);
  }
}

function standIns(view: View, coords: readonly Sint[], level: number, real: Map<Sym, Sint>): Sint[] {
  return coords.map((x, i) => {
    const [lo, hi] = view.interval(i);
    if (typeof x === "number" || typeof lo !== "number" || typeof hi !== "number") return x;
    if (x.min >= lo && x.max < hi) return x;
    if (hi - lo === 1) return lo;
    const stand = ownVariable(`${level}.${i}`, lo, hi - 1);
    real.set(stand, substitute(x, real));
    return stand;
  });
}
