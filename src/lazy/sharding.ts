// Which device has which elements of a tensor: each device has an interval of one axis. Pure arithmetic on
// shapes and intervals; multi.ts applies it to nodes. The intervals cover the axis without overlap and are
// not empty. They need not be equal, nor in the order of the devices (a flip reverses them).

import { ShapeError } from "../errors.ts";
import { idiv, mod, mul, type Sint, sprod } from "../shape/symbolic.ts";
import type { Interval, Shape } from "../shape/view.ts";

export type DeviceSpan = readonly [lo: number, hi: number];
/** Undefined instead of a sharding means replicated. */
export interface Sharding {
  readonly axis: number;
  /** the interval of each device */
  readonly spans: readonly DeviceSpan[];
}

/**
 * `n` intervals of `size` elements, as equal as possible: the first ones are one longer if `n` does not
 * divide.
 */
export function spansOf(size: number, n: number): DeviceSpan[] {
  const start = (i: number): number => i * Math.floor(size / n) + Math.min(i, size % n);
  return Array.from({ length: n }, (_, i) => [start(i), start(i + 1)]);
}

/** The sharding of a tensor of this shape along axis `axis` over `n` devices. */
export function shardingOf(shape: Shape, axis: number, n: number): Sharding {
  const size = shape[axis];
  if (typeof size !== "number") {
    throw new ShapeError(
      `shard: dim ${axis} of shape [${shape}] has a symbolic size; shard along a dim of fixed size`,
    );
  }
  if (size < n) {
    throw new ShapeError(
      `shard: dim ${axis} of shape [${shape}] has ${size} elements for ${n} devices, expected at least one each; ` +
        "name fewer devices or another dim, or leave the dim out for a copy on each",
    );
  }
  return { axis, spans: spansOf(size, n) };
}

export const sameSharding = (a: Sharding | undefined, b: Sharding | undefined): boolean =>
  a === b ||
  (a !== undefined &&
    b !== undefined &&
    a.axis === b.axis &&
    a.spans.every(([lo, hi], i) => lo === b.spans[i]?.[0] && hi === b.spans[i]?.[1]));

/** Bounds that select `span` of one axis and everything of the others. */
export const boundsFor = (shape: Shape, axis: number, span: Interval): Interval[] =>
  shape.map((d, i) => (i === axis ? span : [0, d]));

/** The intersection of two intervals; undefined if it is empty. */
export function overlap([lo, hi]: DeviceSpan, [from, to]: DeviceSpan): DeviceSpan | undefined {
  const both: DeviceSpan = [Math.max(lo, from), Math.min(hi, to)];
  return both[0] < both[1] ? both : undefined;
}

/**
 * The sharding after a reshape; undefined if no axis of the new shape can be split at the same elements. The
 * dims before the axis must have the same product, and every boundary must fall between two rows of the new
 * dim.
 */
export function reshaped(shape: Shape, { axis, spans }: Sharding, wanted: Shape): Sharding | undefined {
  const before = sprod(shape.slice(0, axis));
  let product: Sint = 1;
  let at = -1;
  wanted.forEach((d, i) => {
    if (product === before) at = i; // the last one: dims of size 1 in front cannot be cut
    product = mul(product, d);
  });
  if (at < 0) return undefined;
  const [row, newRow] = [sprod(shape.slice(axis + 1)), sprod(wanted.slice(at + 1))];
  if (row === newRow) return { axis: at, spans };
  const scaled = spans.map((span) =>
    span.map((x) => (mod(mul(x, row), newRow) === 0 ? idiv(mul(x, row), newRow) : undefined)),
  );
  return scaled.flat().every((x) => typeof x === "number")
    ? { axis: at, spans: scaled as unknown as DeviceSpan[] }
    : undefined;
}

/**
 * An interval after keeping every `step`-th element: the new interval, and the offset of its first element in
 * the old one.
 */
export function strided([lo, hi]: DeviceSpan, step: number): { span: DeviceSpan; start: number } {
  const span: DeviceSpan = [Math.ceil(lo / step), Math.ceil(hi / step)];
  return { span, start: span[0] * step - lo };
}
