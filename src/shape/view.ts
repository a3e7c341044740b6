// One view of a flat buffer: shape, strides, offset and, for padding, a mask of the part that is backed by
// memory. In: a View and a movement. Out: a new View, or undefined if one View cannot express it (the
// ShapeTracker then stacks a second one). Views are canonical: stride 0 on dims with a single readable index,
// no mask that hides nothing, one form for a view that hides everything. `shapetracker.ts` validates user
// arguments.
import { arraysEqual, mapped } from "../helpers.ts";
import { decided } from "./guards.ts";
import {
  add,
  and,
  boundValue,
  coefficients,
  ge,
  idiv,
  intervals,
  keyOf,
  le,
  lt,
  mod,
  mul,
  ownVariable,
  type Sint,
  smin,
  sprod,
  sub,
} from "./symbolic.ts";

export type Shape = readonly Sint[];
/** Half-open: the valid indexes of a dim. */
export type Interval = readonly [lo: Sint, hi: Sint];
type Mask = readonly Interval[];

/** Row-major strides, 0 where the size is 1. */
export function stridesFor(shape: Shape): Sint[] {
  const strides = new Array<Sint>(shape.length);
  let step: Sint = 1;
  for (let i = shape.length - 1; i >= 0; i--) {
    const s = shape[i]!;
    strides[i] = s === 1 ? 0 : step;
    step = typeof step === "number" && typeof s === "number" ? step * s : mul(step, s);
  }
  return strides;
}

/** The coordinates of a flat, row-major index. */
export function unflatten(index: Sint, shape: Shape): Sint[] {
  const coords = new Array<Sint>(shape.length);
  let rest = index;
  for (let i = shape.length - 1; i >= 0; i--) {
    const s = shape[i]!;
    if (s === 0)
      coords[i] = 0; // nothing has this coordinate; dividing by it must not fail
    else {
      coords[i] = mod(rest, s);
      rest = idiv(rest, s);
    }
  }
  return coords;
}

/** Equal for the bound values: 5 and v.bind(5) are the same size. */
export function sameSize(a: Sint, b: Sint): boolean {
  if (a === b) return true;
  if (typeof a === "number" && typeof b === "number") return false;
  const x = boundValue(a);
  if (x === undefined || x !== boundValue(b)) return false;
  decided(sub(a, b));
  return true;
}

const isNumber = (x: Sint): boolean => typeof x === "number";
const isFull = ([lo, hi]: Interval, size: Sint): boolean => lo === 0 && hi === size;
const isSingle = ([lo, hi]: Interval): boolean => sub(hi, lo) === 1;

/** The larger or smaller of two, if that is known for all values. */
const larger = (a: Sint, b: Sint): Sint | undefined => (ge(a, b) === 1 ? a : le(a, b) === 1 ? b : undefined);
const smaller = (a: Sint, b: Sint): Sint | undefined => (le(a, b) === 1 ? a : ge(a, b) === 1 ? b : undefined);

function intersect(a: Interval, b: Interval): Interval | undefined {
  const lo = larger(a[0], b[0]);
  const hi = smaller(a[1], b[1]);
  if (lo === undefined || hi === undefined) return undefined;
  return ge(lo, hi) === 1 ? [0, 0] : [lo, hi];
}

/** One view of a flat buffer: shape, strides, offset, mask. */
export class View {
  static readonly name: string = "View";
  readonly shape: Shape;
  readonly strides: readonly Sint[];
  readonly offset: Sint;
  readonly mask: Mask | undefined;
  readonly contiguous: boolean;
  #key: string | undefined;
  #isNumeric: boolean | undefined;

  private constructor(
    shape: Shape,
    strides: readonly Sint[],
    offset: Sint,
    mask: Mask | undefined,
    contiguous: boolean,
  ) {
    this.shape = shape;
    this.strides = strides;
    this.offset = offset;
    this.mask = mask;
    this.contiguous = contiguous;
  }

  static create(shape: Shape, strides?: readonly Sint[], offset: Sint = 0, mask?: Mask): View {
    const plain = stridesFor(shape);
    if (shape.includes(0) || (strides === undefined && offset === 0 && mask === undefined)) {
      return new View(shape, plain, 0, undefined, true);
    }
    const steps = mapped(shape, (s, i) => (s === 1 ? 0 : (strides ?? plain)[i]!));
    if (mask !== undefined) {
      if (mask.some(([lo, hi]) => ge(lo, hi) === 1)) return View.nothing(shape);
      mask.forEach((part, i) => {
        if (steps[i] === 0 || !isSingle(part)) return;
        offset = add(offset, mul(part[0], steps[i]!));
        steps[i] = 0;
      });
      if (mask.every((part, i) => isFull(part, shape[i]!))) mask = undefined;
    }
    return new View(
      shape,
      steps,
      offset,
      mask,
      offset === 0 && mask === undefined && arraysEqual<Sint>(steps, plain),
    );
  }

  /** A view in which no element is valid. */
  private static nothing(shape: Shape): View {
    const zeros = shape.map(() => 0);
    return new View(
      shape,
      zeros,
      0,
      shape.map((): Interval => [0, 0]),
      false,
    );
  }

  get size(): Sint {
    return sprod(this.shape);
  }

  /** Whether the mask leaves nothing. */
  get hidesAll(): boolean {
    return this.mask?.[0]?.[1] === 0;
  }

  /** The valid part of dim i. */
  interval(i: number): Interval {
    return this.mask?.[i] ?? [0, this.shape[i]!];
  }

  /** Whether all of its numbers are plain ones. */
  get isNumeric(): boolean {
    this.#isNumeric ??= this.parts().every(isNumber);
    return this.#isNumeric;
  }

  /** Every number in this view. */
  parts(): Sint[] {
    return [...this.shape, ...this.strides, this.offset, ...(this.mask?.flat() ?? [])];
  }

  /** The view with each of its numbers replaced. */
  map(f: (x: Sint) => Sint): View {
    const mask = this.mask?.map(([lo, hi]): Interval => [f(lo), f(hi)]);
    return View.create(this.shape.map(f), this.strides.map(f), f(this.offset), mask);
  }

  get key(): string {
    if (this.#key === undefined) {
      const list = (xs: readonly Sint[]): string => (xs.every(isNumber) ? xs : xs.map(keyOf)).join(",");
      const mask = this.mask === undefined ? "" : `:${this.mask.map(list).join("|")}`;
      this.#key = this.contiguous
        ? `[${list(this.shape)}]`
        : `[${list(this.shape)}:${list(this.strides)}:${keyOf(this.offset)}${mask}]`;
    }
    return this.#key;
  }

  toString(): string {
    const mask =
      this.mask === undefined ? "" : `, mask=[${this.mask.map(([lo, hi]) => `${lo}:${hi}`).join(", ")}]`;
    const layout = this.contiguous
      ? ""
      : `, strides=[${this.strides.join(", ")}], offset=${this.offset}${mask}`;
    return `View([${this.shape.join(", ")}]${layout})`;
  }

  /** The flat index of an element and whether it is valid. An invalid index has no meaning. */
  expr(idxs: readonly Sint[]): { index: Sint; valid: Sint } {
    let index = this.offset;
    for (let i = 0; i < idxs.length; i++) {
      if (this.strides[i] !== 0) index = add(index, mul(idxs[i]!, this.strides[i]!));
    }
    if (this.mask === undefined) return { index, valid: 1 };
    if (this.hidesAll) return { index, valid: 0 };
    const parts: Sint[] = [];
    this.mask.forEach(([lo, hi], i) => {
      if (lo !== 0) parts.push(ge(idxs[i]!, lo));
      if (hi !== this.shape[i]) parts.push(lt(idxs[i]!, hi));
    });
    return { index, valid: and(...parts) };
  }

  permute(axes: readonly number[]): View {
    const pick = <T>(xs: readonly T[]): T[] => mapped(axes, (a) => xs[a]!);
    return View.create(pick(this.shape), pick(this.strides), this.offset, this.mask && pick(this.mask));
  }

  /** Expands dims of size 1 to any size. */
  expand(shape: Shape): View {
    if (this.hidesAll) return shape.includes(0) ? View.create(shape) : View.nothing(shape);
    const mask = this.mask?.map((part, i): Interval => (this.shape[i] === shape[i] ? part : [0, shape[i]!]));
    return View.create(shape, this.strides, this.offset, mask);
  }

  /** Adds [before, after] invalid elements to each dim. */
  pad(amounts: readonly Interval[]): View {
    if (amounts.every(([before, after]) => before === 0 && after === 0)) return this;
    const shape = this.shape.map((s, i) => add(s, add(amounts[i]![0], amounts[i]![1])));
    let offset = this.offset;
    const mask = amounts.map(([before], i): Interval => {
      const [lo, hi] = this.interval(i);
      offset = sub(offset, mul(before, this.strides[i]!));
      return [add(lo, before), add(hi, before)];
    });
    return View.create(shape, this.strides, offset, mask);
  }

  /** Keeps [from, to) of each dim; undefined if a symbolic bound cannot be compared with the mask. */
  shrink(cuts: readonly Interval[]): View | undefined {
    if (cuts.every((cut, i) => isFull(cut, this.shape[i]!))) return this;
    let offset = this.offset;
    const shape = cuts.map(([from, to]) => sub(to, from));
    cuts.forEach(([from], i) => {
      offset = add(offset, mul(from, this.strides[i]!));
    });
    if (this.mask === undefined) return View.create(shape, this.strides, offset);
    const mask: Interval[] = [];
    for (let i = 0; i < cuts.length; i++) {
      const part = intersect(this.mask[i]!, cuts[i]!);
      if (part === undefined) return undefined;
      mask.push(part[1] === 0 ? part : [sub(part[0], cuts[i]![0]), sub(part[1], cuts[i]![0])]);
    }
    return View.create(shape, this.strides, offset, mask);
  }

  /** Every |step|th element of each dim, counted from the end if the step is negative. */
  stride(steps: readonly number[]): View {
    if (steps.every((m) => m === 1)) return this;
    let offset = this.offset;
    const shape: Sint[] = [],
      strides: Sint[] = [],
      mask: Interval[] = [];
    steps.forEach((m, i) => {
      const size = this.shape[i]!,
        by = Math.abs(m);
      let [lo, hi] = this.interval(i);
      if (m < 0) {
        offset = add(offset, mul(sub(size, 1), this.strides[i]!));
        [lo, hi] = [sub(size, hi), sub(size, lo)];
      }
      const ceil = (x: Sint): Sint => (by === 1 ? x : idiv(add(x, by - 1), by));
      shape.push(ceil(size));
      strides.push(mul(this.strides[i]!, m));
      mask.push([ceil(lo), ceil(hi)]);
    });
    return View.create(shape, strides, offset, this.mask && mask);
  }

  flip(axes: readonly number[]): View {
    return this.stride(this.shape.map((_, i) => (axes.includes(i) ? -1 : 1)));
  }

  /** The same elements in the same order under another shape; undefined if one view cannot express it. */
  reshape(shape: Shape): View | undefined {
    if (arraysEqual<Sint>(shape, this.shape)) return this;
    if (this.contiguous) return View.create(shape);
    // A scalar has no axis that could be masked, so a second view must keep the mask.
    if (this.hidesAll) return shape.length === 0 ? undefined : View.nothing(shape);
    const strides: Sint[] = [],
      mask: Interval[] = [];
    let offset = this.offset;
    let i = 0,
      j = 0;
    while (i < this.shape.length || j < shape.length) {
      const firstOld = i,
        firstNew = j;
      let a = this.shape[i++] ?? 1,
        b = shape[j++] ?? 1;
      while (!sameSize(a, b)) {
        // Sizes that cannot be compared are merged into one group; a group that never closes ends the walk.
        const smallerOld = lt(a, b),
          smallerNew = lt(b, a);
        if ((smallerOld !== 1 && j >= shape.length) || (smallerNew !== 1 && i >= this.shape.length))
          return undefined;
        if (smallerNew !== 1) a = mul(a, this.shape[i++]!);
        if (smallerOld !== 1) b = mul(b, shape[j++]!);
      }
      const run = this.#join(firstOld, Math.min(i, this.shape.length));
      const parts = run && divide(run, shape.slice(firstNew, j));
      if (run === undefined || parts === undefined) return undefined;
      offset = add(offset, run.shift);
      strides.push(...parts.strides);
      mask.push(...parts.mask);
    }
    return View.create(shape, strides, offset, this.mask && mask);
  }

  /** Dims from..to-1 as one dim, if one stride and one interval describe them. */
  #join(from: number, to: number): DimRun | undefined {
    let run: DimRun | undefined;
    for (let i = from; i < to; i++) {
      const size = this.shape[i]!,
        stride = this.strides[i]!;
      if (size === 1) continue;
      const part = this.interval(i);
      if (run === undefined) {
        run = { size, stride, part, shift: 0 };
        continue;
      }
      const [lo, hi] = run.part;
      const base = mul(lo, size);
      const total = mul(run.size, size);
      if (isSingle(run.part)) {
        // Only one outer index is valid, so the inner stride decides and the outer index becomes an offset.
        const shift: Sint = add(run.shift, mul(lo, sub(run.stride, mul(stride, size))));
        run = { size: total, stride, part: [add(base, part[0]), add(base, part[1])], shift };
      } else if (isFull(part, size) && run.stride === mul(stride, size)) {
        run = { size: total, stride, part: [base, mul(hi, size)], shift: run.shift };
      } else return undefined;
    }
    return run ?? { size: 1, stride: 0, part: [0, 1], shift: 0 };
  }
}

interface DimRun {
  readonly size: Sint;
  readonly stride: Sint;
  readonly part: Interval;
  /** What merging dims adds to the offset. */
  readonly shift: Sint;
}

/** One dim split into dims of these sizes, if its interval is a box in them. */
function divide(run: DimRun, sizes: Shape): { strides: Sint[]; mask: Interval[] } | undefined {
  const strides: Sint[] = [],
    mask: Interval[] = [];
  let { stride, part } = run;
  let full = isFull(part, run.size);
  for (let i = sizes.length - 1; i >= 0; i--) {
    const s = sizes[i]!;
    const [lo, hi] = part;
    strides.unshift(stride);
    stride = mul(stride, s);
    if (full || s === 1) {
      mask.unshift([0, s]);
      continue;
    }
    const row = idiv(lo, s);
    if (mod(lo, s) === 0 && mod(hi, s) === 0) {
      mask.unshift([0, s]);
      part = [row, idiv(hi, s)];
    } else if (row === idiv(sub(hi, 1), s)) {
      mask.unshift([sub(lo, mul(row, s)), sub(hi, mul(row, s))]);
      part = [row, add(row, 1)];
    } else return undefined;
    full = false;
  }
  return { strides, mask };
}

/**
 * One view for `outer` seen through `inner`: outer's flat indexes are positions in inner's shape. The index
 * is computed with one variable per dim; if the result is affine and the mask a box, it is a view.
 */
export function merge(outer: View, inner: View): View | undefined {
  if (inner.contiguous || outer.hidesAll) return outer;
  if (outer.shape.includes(0)) return View.create(outer.shape);
  if (outer.contiguous && sameSize(outer.size, inner.size)) return inner.reshape(outer.shape);
  const idxs: Sint[] = [];
  for (let i = 0; i < outer.shape.length; i++) {
    const [lo, hi] = outer.interval(i);
    if (typeof lo !== "number" || smin(hi) < lo + 1) return undefined;
    // Outside outer's own mask any result is allowed, so the variable need not range there.
    idxs.push(sub(hi, lo) === 1 ? lo : ownVariable(`dim${i}`, lo, sub(hi, 1)));
  }
  const over = idxs.filter((x) => typeof x !== "number");
  const { index, valid } = inner.expr(unflatten(outer.expr(idxs).index, inner.shape));
  const flat = coefficients(index, over);
  const boxes = intervals(valid, over);
  if (flat === undefined || boxes === undefined) return undefined;
  let at = 0;
  const strides: Sint[] = [],
    mask: Interval[] = [];
  for (let i = 0; i < idxs.length; i++) {
    const own = outer.interval(i);
    if (typeof idxs[i] === "number") {
      strides.push(0);
      mask.push(own);
      continue;
    }
    const [lo, hi] = boxes[at]!;
    const part = intersect(own, [lo ?? own[0], hi ?? own[1]]);
    if (part === undefined) return undefined;
    strides.push(flat.coefs[at++]!);
    mask.push(part);
  }
  if (valid === 0) {
    if (mask.length === 0) return undefined;
    mask.fill([0, 0]);
  }
  return View.create(outer.shape, strides, flat.offset, mask);
}
