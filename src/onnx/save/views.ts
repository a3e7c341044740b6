// A view as movements of the standard. A View is an affine map: the place of an element in the buffer is a
// sum of strides. It is read as one map for each dim of what is below it: a dim with one index is a Slice,
// one with several is a Reshape where they are blocks, and else a Gather (windows). In: a node and the View
// of its elements. Out: nodes.

import { prod, range } from "../../helpers.ts";
import type { ShapeTracker } from "../../shape/shapetracker.ts";
import { boundValue, type Sint } from "../../shape/symbolic.ts";
import type { View } from "../../shape/view.ts";
import { OnnxError } from "../errors.ts";
import type { ExportNode, GraphBuilder } from "./graph.ts";

/** The size as a number: what is symbolic has the value it is bound to. */
export function whole(x: Sint): number {
  const value = boundValue(x);
  if (value === undefined) throw new OnnxError(`save: a size of a view is ${x}, which has no value`);
  return value;
}

/** One index of a view, and by how much it moves along each dim of what is below. */
export interface MapLoop {
  readonly size: number;
  readonly steps: readonly number[];
}
/** A view without mask, flips and repeated dims: dim d of `below` is starts[d] + sum of step * index. */
export interface AffineMap {
  /** the sizes that the node below is seen with */
  readonly below: readonly number[];
  readonly starts: readonly number[];
  readonly loops: readonly MapLoop[];
  /** the loops of each dim of the view: none where it is repeated, several where it is split */
  readonly dims: readonly (readonly number[])[];
}
/** A view: an affine map, then flips, then padding to its shape. */
export interface SeenView {
  readonly map: AffineMap;
  readonly shape: readonly number[];
  /** what is there: the part of each dim that is not padding */
  readonly from: readonly number[];
  readonly to: readonly number[];
  readonly flipped: readonly number[];
}

const stridesOf = (shape: readonly number[]): number[] => {
  const out = new Array<number>(shape.length);
  for (let d = shape.length - 1, n = 1; d >= 0; n *= shape[d--] as number) out[d] = n;
  return out;
};
/** A place or stride in each dim, largest first. */
function spread(flat: number, shape: readonly number[]): number[] {
  let rest = flat;
  return stridesOf(shape).map((stride) => {
    const n = stride === 0 ? 0 : Math.floor(rest / stride);
    rest -= n * stride;
    return n;
  });
}

interface RawDim {
  readonly size: number;
  readonly stride: number;
  /** the dim of the view */
  readonly of: number;
}

/** How a view is read. */
interface Reading {
  /** all elements along this dim of what is below are one */
  readonly isRepeated: (d: number) => boolean;
  /** whether dims below are split where indexes are blocks */
  readonly splits: boolean;
}

/** The view over a node of shape `below`. */
function seen(view: View, below: readonly number[], how: Reading): SeenView {
  const shape = view.shape.map(whole);
  const from = shape.map((_, d) => (view.mask === undefined ? 0 : whole((view.mask[d] as [Sint, Sint])[0])));
  const to = shape.map((s, d) => (view.mask === undefined ? s : whole((view.mask[d] as [Sint, Sint])[1])));
  const strides = view.strides.map(whole);
  let offset = whole(view.offset);
  const flipped: number[] = [];
  const raw: RawDim[] = [];
  strides.forEach((stride, d) => {
    const [lo, size] = [from[d] as number, (to[d] as number) - (from[d] as number)];
    offset += stride * lo;
    if (stride === 0 || size <= 1) return;
    if (stride < 0) {
      flipped.push(d);
      offset += stride * (size - 1);
    }
    raw.push({ size, stride: Math.abs(stride), of: d });
  });
  const isEmpty = shape.some((_, d) => (to[d] as number) <= (from[d] as number));
  const map = isEmpty
    ? nothing(shape.length, below)
    : new MapFinder(raw, offset, below, how).find(shape.length);
  return { map, shape, from, to, flipped };
}
const nothing = (rank: number, below: readonly number[]): AffineMap => ({
  below,
  starts: below.map(() => 0),
  loops: [],
  dims: range(rank).map(() => []),
});

/** Splits dims of the view, and splits or merges dims below, until every index stays within its dim. */
class MapFinder {
  #raw: RawDim[];
  #offset: number;
  #below: number[];
  readonly #of: readonly number[];
  readonly #how: Reading;

  constructor(raw: readonly RawDim[], offset: number, of: readonly number[], how: Reading) {
    this.#raw = [...raw];
    this.#offset = offset;
    this.#below = [...of];
    this.#of = of;
    this.#how = how;
  }
  find(rank: number): AffineMap {
    for (let isFirst = true; ; ) {
      const starts = spread(this.#offset, this.#below);
      const loops = this.#raw.map((r): MapLoop => ({ size: r.size, steps: spread(r.stride, this.#below) }));
      if (this.#fits(starts, loops)) continue;
      if (isFirst && this.#below.length === this.#of.length) this.#forget(starts, loops);
      if (isFirst) {
        isFirst = false;
        continue;
      }
      const twice = loops.find(({ steps }) => steps.filter((s) => s !== 0).length > 1);
      if (twice !== undefined) {
        this.#below = merged(
          this.#below,
          twice.steps.findLastIndex((s) => s !== 0),
        );
        continue;
      }
      if (this.#how.splits && this.#splitBlocks(starts, loops)) continue;
      const dims = range(rank).map((d) => this.#raw.flatMap((r, i) => (r.of === d ? [i] : [])));
      return { below: this.#below, starts, loops, dims };
    }
  }
  /** Whether something had to change because an index leaves its dim. */
  #fits(starts: readonly number[], loops: readonly MapLoop[]): boolean {
    const ends = starts.map((start, d) =>
      loops.reduce((n, { size, steps }) => n + (size - 1) * (steps[d] as number), start),
    );
    // the innermost first: what it cannot hold goes on in the next
    const bad = ends.findLastIndex((end, d) => end >= (this.#below[d] as number));
    if (bad < 0) return false;
    const split = splitOf(this.#raw, loops, bad, this.#below[bad] as number, starts[bad] as number);
    if (split !== undefined) this.#raw = split;
    else if (bad > 0) this.#below = merged(this.#below, bad);
    else throw new OnnxError(`save: internal: a view reads outside of [${this.#of.join(", ")}]`);
    return true;
  }
  /** Where all elements along a dim are one, an index counts for nothing. */
  #forget(starts: readonly number[], loops: readonly MapLoop[]): void {
    const strides = stridesOf(this.#below);
    this.#below.forEach((_, d) => {
      if (!this.#how.isRepeated(d)) return;
      const stride = strides[d] as number;
      this.#offset -= (starts[d] as number) * stride;
      this.#raw = this.#raw.map((r, i) => ({
        ...r,
        stride: r.stride - ((loops[i] as MapLoop).steps[d] as number) * stride,
      }));
    });
  }
  /** Splits a dim whose indexes fall into outer and inner ones, if there is one. */
  #splitBlocks(starts: readonly number[], loops: readonly MapLoop[]): boolean {
    for (const [d, size] of this.#below.entries()) {
      const own = loops.flatMap(({ size, steps }) =>
        steps[d] === 0 ? [] : [[size, steps[d] as number] as const],
      );
      const block = own
        .map(([, step]) => step)
        .sort((x, y) => y - x)
        .find((m) => {
          const inner = own.filter(([, step]) => step < m);
          const isWhole = own.every(([, step]) => step < m || step % m === 0) && size % m === 0;
          const end = inner.reduce((n, [k, step]) => n + (k - 1) * step, (starts[d] as number) % m);
          return isWhole && inner.length > 0 && end < m;
        });
      if (block === undefined) continue;
      this.#below = [...this.#below.slice(0, d), size / block, block, ...this.#below.slice(d + 1)];
      return true;
    }
    return false;
  }
}
const merged = (shape: readonly number[], d: number): number[] => [
  ...shape.slice(0, d - 1),
  (shape[d - 1] as number) * (shape[d] as number),
  ...shape.slice(d + 1),
];
/** The only index of a dim, split where it goes on in the next dim outside. */
function splitOf(
  raw: readonly RawDim[],
  loops: readonly MapLoop[],
  d: number,
  size: number,
  start: number,
): RawDim[] | undefined {
  const users = loops.flatMap(({ steps }, i) => (steps[d] === 0 ? [] : [i]));
  const [i, other] = users;
  if (i === undefined || other !== undefined) return undefined;
  const { size: n, stride, of } = raw[i] as RawDim;
  const step = (loops[i] as MapLoop).steps[d] as number;
  if (size % step !== 0 || start >= step) return undefined;
  const inner = size / step;
  if (inner < 2 || n % inner !== 0 || n === inner) return undefined;
  const parts = [
    { size: n / inner, stride: stride * inner, of },
    { size: inner, stride, of },
  ];
  return [...raw.slice(0, i), ...parts, ...raw.slice(i + 1)];
}

/** The loops that move along a dim, the widest step first. */
export const loopsAlong = (map: AffineMap, d: number): number[] =>
  map.loops
    .flatMap(({ steps }, i) => (steps[d] === 0 ? [] : [i]))
    .sort((i, j) => stepOf(map, j, d) - stepOf(map, i, d));
export const stepOf = (map: AffineMap, loop: number, d: number): number =>
  (map.loops[loop] as MapLoop).steps[d] as number;
const sizeOf = (map: AffineMap, loop: number): number => (map.loops[loop] as MapLoop).size;

/** Whether these indexes of a dim are blocks: each outer step clears all that is inside. */
export function areBlocks(map: AffineMap, d: number): boolean {
  const loops = loopsAlong(map, d);
  return loops.every((l, i) => {
    const inside = loops.slice(i + 1).reduce((n, k) => n + (sizeOf(map, k) - 1) * stepOf(map, k, d), 0);
    return i === loops.length - 1 || inside < stepOf(map, l, d);
  });
}

/** The node with the dims that a map is over; where it is repeated it keeps size 1. */
export function prepared(
  b: GraphBuilder,
  x: ExportNode,
  shape: readonly number[],
  { below }: AffineMap,
): ExportNode {
  const sizes = [...x.shape];
  const target: number[] = [];
  let [i, j] = [0, 0];
  while (i < shape.length || j < below.length) {
    let [n, m] = [shape[i] ?? 1, below[j] ?? 1];
    const [from, to] = [i++, j++];
    while (n !== m) {
      if (n < m) n *= shape[i++] as number;
      else m *= below[j++] as number;
    }
    const isOne = x.shape.slice(from, i).every((s) => s === 1);
    if (!isOne) for (let d = from; d < i; d++) sizes[d] = shape[d] as number;
    for (let d = to; d < j; d++) target.push(isOne ? 1 : (below[d] as number));
  }
  return b.reshape(b.expand(x, sizes), target);
}

/** The node with one dim a loop, in the order of the dims below; `loops` says which. */
function taken(b: GraphBuilder, given: ExportNode, map: AffineMap): { x: ExportNode; loops: number[] } {
  let x = given;
  let at = 0;
  const loops: number[] = [];
  map.below.forEach((size, d) => {
    const here = loopsAlong(map, d);
    const start = map.starts[d] as number;
    const isRepeated = x.shape[at] === 1 && size > 1;
    if (isRepeated) {
      // each element is the same one: the loops come back as dims of size 1
      x = b.reshape(x, [...x.shape.slice(0, at), ...here.map(() => 1), ...x.shape.slice(at + 1)]);
    } else if (here.length <= 1) {
      const [loop] = here;
      x = b.slice(
        x,
        at,
        start,
        loop === undefined ? 1 : sizeOf(map, loop),
        loop === undefined ? 1 : stepOf(map, loop, d),
      );
      if (loop === undefined) x = b.reshape(x, [...x.shape.slice(0, at), ...x.shape.slice(at + 1)]);
    } else
      x = severalAlong(
        b,
        x,
        at,
        here.map((l) => [sizeOf(map, l), stepOf(map, l, d)] as const),
        start,
      );
    loops.push(...here);
    at += here.length;
  });
  return { x, loops };
}
/** Several indexes along one axis: blocks are a Reshape, windows a Gather. */
function severalAlong(
  b: GraphBuilder,
  x: ExportNode,
  axis: number,
  loops: readonly (readonly [size: number, step: number])[],
  start: number,
): ExportNode {
  const [first, ...rest] = loops as readonly [readonly [number, number], ...(readonly [number, number])[]];
  const [n, step] = first;
  if (rest.length === 0) return b.slice(x, axis, start, n, step);
  const size = x.shape[axis] as number;
  const inside = rest.reduce((sum, [m, s]) => sum + (m - 1) * s, 0);
  // blocks begin earlier where the last one would end after the axis
  const late = Math.max(0, start + n * step - size);
  if (inside + late < step && late <= start) {
    const cut = b.slice(x, axis, start - late, n * step);
    const split = b.reshape(cut, [...x.shape.slice(0, axis), n, step, ...x.shape.slice(axis + 1)]);
    return severalAlong(b, split, axis + 1, rest, late);
  }
  const sizes = loops.map(([m]) => m);
  const indices = b.lattice(
    start,
    loops.map(([, s]) => s),
    sizes,
  );
  const shape = [...x.shape.slice(0, axis), ...sizes, ...x.shape.slice(axis + 1)];
  return b.node("Gather", { inputs: [x, indices], attributes: { axis }, shape, dtype: x.dtype });
}

/** The elements of `x`, a node that can be broadcast to `shape`, seen so; repeated dims have size 1. */
export function applied(b: GraphBuilder, x: ExportNode, shape: readonly number[], s: SeenView): ExportNode {
  const isPadded = s.shape.some((n, d) => s.from[d] !== 0 || s.to[d] !== n);
  if (s.shape.some((_, d) => (s.to[d] as number) <= (s.from[d] as number))) {
    return b.expand(b.number(x.dtype.isBig ? 0n : 0, x.dtype), s.shape);
  }
  const { x: parts, loops } = taken(b, prepared(b, x, shape, s.map), s.map);
  // a loop along which all is one has no dim
  const own = s.map.dims.flat();
  const there = own.filter((l) => loops.includes(l));
  const ordered = b.transpose(
    parts,
    there.map((l) => loops.indexOf(l)),
  );
  const list = own.map((l) => (loops.includes(l) ? (ordered.shape[there.indexOf(l)] as number) : 1));
  let at = 0;
  const sizes = s.map.dims.map((mine) => {
    at += mine.length;
    return prod(list.slice(at - mine.length, at));
  });
  const inner = s.map.dims.map((mine) => prod(mine.map((l) => sizeOf(s.map, l))));
  // a dim that is split, and repeated in one of its parts only, has all its elements
  const isUneven = sizes.some((n, d) => n !== 1 && n !== inner[d]);
  const full = isUneven
    ? b.expand(
        b.reshape(ordered, list),
        own.map((l) => sizeOf(s.map, l)),
      )
    : ordered;
  const shaped = b.reshape(full, isUneven ? inner : sizes);
  const forward = b.flip(
    shaped,
    s.flipped.filter((d) => shaped.shape[d] !== 1),
  );
  if (!isPadded) return forward;
  // what is padded along a dim is there in its full size
  const real = s.shape.map((n, d) =>
    s.from[d] !== 0 || s.to[d] !== n
      ? (s.to[d] as number) - (s.from[d] as number)
      : (forward.shape[d] as number),
  );
  const before = s.from;
  const after = s.shape.map((n, d) => n - (s.to[d] as number));
  return b.pad(b.expand(forward, real), before, after);
}

export const seenOf = (
  view: View,
  x: { readonly shape: readonly number[] },
  shape: readonly number[],
  splits = true,
): SeenView => seen(view, shape, { isRepeated: (d) => x.shape[d] === 1 && shape[d] !== 1, splits });

/** The elements of `x` through all views; a node that can be broadcast to the last one's shape. */
export function through(
  b: GraphBuilder,
  x: ExportNode,
  shape: readonly number[],
  st: ShapeTracker,
): ExportNode {
  let [node, sizes] = [x, shape];
  for (const view of st.simplify().views) {
    const s = seenOf(view, node, sizes);
    node = applied(b, node, sizes, s);
    sizes = s.shape;
  }
  return node;
}
