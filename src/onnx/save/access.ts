// Data seen through windows: views in which two indexes move along one dim, a place and a tap. In: a node
// of the lazy graph under a reduction. Out: for each dim of the data what moves along it, and the data as
// the ops of the standard want it.

import { arraysEqual, prod, range } from "../../helpers.ts";
import type { LazyBuffer } from "../../lazy/lazybuffer.ts";
import { ShapeTracker } from "../../shape/shapetracker.ts";
import type { View } from "../../shape/view.ts";
import { alu } from "./elementwise.ts";
import { type ExportNode, fillingOf, type GraphBuilder, type NodeAttributes, paddingOf } from "./graph.ts";
import type { GraphReader } from "./lower.ts";
import { boxSelected } from "./select.ts";
import {
  type AffineMap,
  areBlocks,
  loopsAlong,
  type MapLoop,
  prepared,
  seenOf,
  stepOf,
  through,
  whole,
} from "./views.ts";

/** A node seen through one affine map, each dim of the view moving at most one index. */
export interface WindowAccess {
  readonly x: ExportNode;
  readonly map: AffineMap;
  /** the dim of each loop, where a dim of the view that has several is as many dims */
  readonly dimOf: readonly number[];
  /** the sizes of the dims that a dim of the view is */
  readonly parts: readonly (readonly number[])[];
}
/** The last view of a node, over what is below it; WHERE of the same windows is seen through them, too. */
function accessOf(l: GraphReader, lb: LazyBuffer, splits: boolean): WindowAccess | undefined {
  const { b } = l;
  if (lb === lb.base && lb.op === "WHERE" && lb.realized === undefined) return chosenAccess(l, lb, splits);
  const { views } = lb.st.simplify();
  const shapes = [lb.base.shape, ...views.map((v) => v.shape)].map((shape) => shape.map(whole));
  // as many of the last views as are one map
  for (let n = 0; n < views.length; n++) {
    const under =
      n === 0 ? l.value(lb.base) : through(b, l.value(lb.base), shapes[0] as number[], before(views, n));
    if (under.shape.length !== shapes[n]?.length) continue;
    const map = mapOver(views.slice(n), under, shapes.slice(n), splits);
    if (map === undefined) continue;
    const shape = shapes.at(-1) as number[];
    const order = map.dims.flatMap((own, d) => (own.length === 0 ? [-1 - d] : own));
    const dimOf = map.loops.map((_, i) => order.indexOf(i));
    const parts = map.dims.map((own, d) =>
      own.length === 0 ? [shape[d] as number] : own.map((i) => (map.loops[i] as MapLoop).size),
    );
    return { x: prepared(b, under, shapes[n] as number[], map), map, dimOf, parts };
  }
  return undefined;
}
const before = (views: readonly View[], n: number): ShapeTracker => ShapeTracker.fromViews(views.slice(0, n));

/** Views over a node as one map; undefined where they pad, flip, or where one is not a map of a map. */
function mapOver(
  views: readonly View[],
  x: ExportNode,
  shapes: readonly (readonly number[])[],
  splits: boolean,
): AffineMap | undefined {
  let map: AffineMap | undefined;
  for (const [i, view] of views.entries()) {
    const below = shapes[i] as readonly number[];
    const s = i === 0 ? seenOf(view, x, below, splits) : seenOf(view, { shape: below }, below, false);
    if (s.flipped.length > 0 || s.shape.some((n, d) => s.from[d] !== 0 || s.to[d] !== n)) return undefined;
    map = map === undefined ? s.map : composed(map, s.map, below);
    if (map === undefined) return undefined;
  }
  return map;
}
/** A map of what a map gives, whose shape is `shape`. */
function composed(lower: AffineMap, upper: AffineMap, shape: readonly number[]): AffineMap | undefined {
  if (!arraysEqual(upper.below, shape) || lower.dims.some((own) => own.length > 1)) return undefined;
  /** how far one step along a dim of the lower view moves along dim `d` below it */
  const moved = (dim: number, d: number): number => {
    const [loop] = lower.dims[dim] as readonly number[];
    return loop === undefined ? 0 : stepOf(lower, loop, d);
  };
  const total = (steps: readonly number[], d: number): number =>
    steps.reduce((sum, step, dim) => sum + step * moved(dim, d), 0);
  return {
    below: lower.below,
    starts: lower.starts.map((start, d) => start + total(upper.starts, d)),
    loops: upper.loops.map(({ size, steps }) => ({
      size,
      steps: lower.below.map((_, d) => total(steps, d)),
    })),
    dims: upper.dims,
  };
}
const isSameMap = (a: AffineMap, b: AffineMap): boolean =>
  arraysEqual(a.below, b.below) &&
  arraysEqual(a.starts, b.starts) &&
  JSON.stringify(a.dims) === JSON.stringify(b.dims) &&
  a.loops.length === b.loops.length &&
  a.loops.every((x, i) => x.size === b.loops[i]?.size);
function chosenAccess(l: GraphReader, lb: LazyBuffer, splits: boolean): WindowAccess | undefined {
  const [c, yes, no] = lb.sources as readonly [LazyBuffer, LazyBuffer, LazyBuffer];
  const other = l.operand(no);
  const [first, second] = [accessOf(l, c, splits), accessOf(l, yes, splits)];
  if (other.op !== "Number" || first === undefined || second === undefined) return undefined;
  if (!isSameMap(first.map, second.map)) return undefined;
  // where only one of them is repeated, the other says what an index does
  const loops = second.map.loops.map((x, i): MapLoop => {
    const also = (first.map.loops[i] as MapLoop).steps;
    return { size: x.size, steps: x.steps.map((s, d) => (s === 0 ? (also[d] as number) : s)) };
  });
  const xs = [first.x, second.x, other];
  const shape = second.x.shape.map((n, d) => (n === 1 ? (first.x.shape[d] as number) : n));
  const x = boxSelected(l.b, xs, shape) ?? alu(l.b, "WHERE", xs);
  return x.shape.length === second.x.shape.length
    ? { ...second, x, map: { ...second.map, loops } }
    : undefined;
}

/** Sizes and axes where dims of the view are split. */
export function refined(
  { parts }: WindowAccess,
  axes: readonly number[],
): { shape: number[]; axes: number[] } {
  let at = 0;
  const inner = parts.flatMap((own, d) => {
    at += own.length;
    return axes.includes(d) ? range(own.length).map((i) => at - own.length + i) : [];
  });
  return { shape: parts.flat(), axes: inner };
}

/** A dim of the data: where it starts, and the dims of the view that move along it. */
export interface DataDim {
  /** of the node */
  readonly axis: number;
  readonly start: number;
  readonly place: number | undefined;
  readonly step: number;
  readonly tap: number | undefined;
  readonly dilation: number;
}
/** The dims of the data, each with one index, or with a place and a tap. */
export function dataDims(
  { x, map, dimOf }: WindowAccess,
  isTap: (dim: number) => boolean,
): DataDim[] | undefined {
  const found: DataDim[] = [];
  for (const axis of range(map.below.length)) {
    const loops = x.shape[axis] === 1 && map.below[axis] !== 1 ? [] : loopsAlong(map, axis);
    const dims = loops.map((i) => dimOf[i] as number);
    const taps = loops.filter((_, i) => isTap(dims[i] as number));
    const places = loops.filter((_, i) => !isTap(dims[i] as number));
    if (taps.length > 1 || places.length > 1) return undefined;
    const [tap, place] = [taps[0], places[0]];
    found.push({
      axis,
      start: map.starts[axis] as number,
      place: place === undefined ? undefined : (dimOf[place] as number),
      step: place === undefined ? 1 : stepOf(map, place, axis),
      tap: tap === undefined ? undefined : (dimOf[tap] as number),
      dilation: tap === undefined ? 1 : stepOf(map, tap, axis),
    });
  }
  return found;
}
/**
 * Windows as they are, where at least one overlaps or there are several; else blocks are dims of their
 * own.
 */
export function windowsOf<T>(
  l: GraphReader,
  lb: LazyBuffer,
  read: (a: WindowAccess) => T | undefined,
): T | undefined {
  const plain = accessOf(l, lb, false);
  if (plain !== undefined) {
    const several = range(plain.map.below.length).filter((d) => loopsAlong(plain.map, d).length > 1);
    const isWindowed = several.length > 1 || several.some((d) => !areBlocks(plain.map, d));
    const found = isWindowed || several.length === 0 ? read(plain) : undefined;
    if (found !== undefined) return found;
  }
  const split = accessOf(l, lb, true);
  return split === undefined ? undefined : read(split);
}
export const isWindow = (d: DataDim): boolean => d.place !== undefined && d.tap !== undefined;

/** How an op of the standard moves its windows. */
export interface WindowFrame {
  readonly attributes: NodeAttributes;
  /** the part of the data that the windows touch, without padding that the op adds itself */
  readonly x: ExportNode;
}
/** Cuts the data to what the windows touch, each spatial dim as the op expects it. */
export function cut(
  b: GraphBuilder,
  given: ExportNode,
  dims: readonly DataDim[],
  spatial: ReadonlySet<DataDim>,
  shape: readonly number[],
): ExportNode {
  let x = given;
  for (const d of dims) {
    const count = d.place === undefined ? 1 : (shape[d.place] as number);
    if (x.shape[d.axis] === 1) continue;
    if (spatial.has(d)) {
      const taps = d.tap === undefined ? 1 : (shape[d.tap] as number);
      const reach = (taps - 1) * d.dilation + 1;
      const left = (x.shape[d.axis] as number) - d.start;
      // an end that is too short for one more place may stay
      const isEnough = Math.floor((left - reach) / d.step) + 1 === count;
      x = b.slice(x, d.axis, d.start, isEnough ? left : (count - 1) * d.step + reach);
    } else if (d.tap !== undefined) x = b.slice(x, d.axis, d.start, shape[d.tap] as number, d.dilation);
    else x = b.slice(x, d.axis, d.start, count, d.step);
  }
  return x;
}
/** The attributes of the windows; padding with `filling` becomes theirs. */
export function frameOf(
  x: ExportNode,
  spatial: readonly DataDim[],
  shape: readonly number[],
  filling: number,
): WindowFrame {
  const sizes = spatial.map((d) => (d.tap === undefined ? 1 : (shape[d.tap] as number)));
  const n = spatial.length;
  let inner = x;
  let pads = new Array<number>(2 * n).fill(0);
  if (x.op === "Pad" && Number(fillingOf(x)) === filling) {
    const { inner: under, before, after } = paddingOf(x);
    const isLead = [...before.slice(0, 2), ...after.slice(0, 2)].every((p) => p === 0);
    if (isLead) {
      inner = under;
      pads = [...before.slice(2), ...after.slice(2)];
    }
  }
  const attributes: NodeAttributes = {
    kernel_shape: sizes,
    strides: spatial.map((d) => d.step),
    dilations: spatial.map((d) => (d.tap === undefined ? 1 : d.dilation)),
    pads,
  };
  return { attributes, x: inner };
}

/** The order of the data that the standard wants: all that is batch, all that is channel, what is spatial. */
export function nchw(
  b: GraphBuilder,
  x: ExportNode,
  batch: readonly DataDim[],
  channels: readonly DataDim[],
  spatial: readonly DataDim[],
): ExportNode {
  const used = [...batch, ...channels, ...spatial].map((d) => d.axis);
  const rest = range(x.shape.length).filter((a) => !used.includes(a));
  const size = (dims: readonly DataDim[]): number => prod(dims.map((d) => x.shape[d.axis] as number));
  const ordered = b.transpose(x, [...rest, ...used]);
  return b.reshape(ordered, [size(batch), size(channels), ...spatial.map((d) => x.shape[d.axis] as number)]);
}
