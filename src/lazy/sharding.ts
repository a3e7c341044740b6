// Which device has which elements of a tensor: one axis is cut, and each device has an interval of it. Pure arithmetic
// on shapes and intervals; multi.ts applies it to nodes. The intervals cover the axis without overlap, none is empty,
// and they need not be equal, nor in the order of the devices (a flip turns them around).

import { ShapeError } from "../errors.ts";
import { idiv, mod, mul, type Sint, sprod } from "../shape/symbolic.ts";
import type { Interval, Shape } from "../shape/view.ts";

export type Span = readonly [lo: number, hi: number];
/** Undefined in its place means that every device has everything. */
export interface Sharding {
  readonly axis: number;
  /** what each device has of the axis */
  readonly spans: readonly Span[];
}

/** `n` spans of `size` elements, as equal as can be: the first ones are one longer where it does not come out even. */
export function spansOf(size: number, n: number): Span[] {
  const start = (i: number): number => i * Math.floor(size / n) + Math.min(i, size % n);
  return Array.from({ length: n }, (_, i) => [start(i), start(i + 1)]);
}

/** Axis `axis` of a tensor of this shape over `n` devices. */
export function shardingOf(shape: Shape, axis: number, n: number): Sharding {
  const size = shape[axis];
  if (typeof size !== "number") {
    throw new ShapeError(
      `shard: dim ${axis} of shape [${shape}] has no fixed size; shard along one that has`,
    );
  }
  if (size < n) {
    throw new ShapeError(
      `shard: dim ${axis} of shape [${shape}] has ${size} elements for ${n} devices, and each must get one; ` +
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

/** Where a dim of every interval has this one instead: what one device keeps of a whole tensor. */
export const cutsFor = (shape: Shape, axis: number, span: Interval): Interval[] =>
  shape.map((d, i) => (i === axis ? span : [0, d]));

/** The part of `cut` that lies in `span`, in the whole tensor's numbers; undefined where there is none. */
export function overlap([lo, hi]: Span, [from, to]: Span): Span | undefined {
  const both: Span = [Math.max(lo, from), Math.min(hi, to)];
  return both[0] < both[1] ? both : undefined;
}

/**
 * The sharding after a reshape, undefined where no axis of the new shape could be cut at the same places: the elements
 * before the axis must be those of whole dims, and every cut must fall between two rows of the new dim.
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
    ? { axis: at, spans: scaled as unknown as Span[] }
    : undefined;
}

/** One span after every `step`-th element was kept: what is left of it, and where it begins in the span. */
export function strided([lo, hi]: Span, step: number): { span: Span; start: number } {
  const span: Span = [Math.ceil(lo / step), Math.ceil(hi / step)];
  return { span, start: span[0] * step - lo };
}
