// Which axis of a long reduction is split, and into how many parts, so that threads can share the first half.
// In: a shape and the axes that are reduced. Out: the split, or undefined where it would not pay.

import type { Shape } from "../shape/view.ts";

/** A split reduction: the axis that is split, and into how many parts. */
export interface AxisSplit {
  readonly axis: number;
  readonly count: number;
}

/**
 * A reduction of at least MIN_SPLIT elements to at most MAX_KEPT is split into one of these numbers of parts.
 */
const MIN_SPLIT = 1 << 17;
const MAX_KEPT = 16;
const PARTS = [64, 32, 48, 16, 40, 24, 20, 12, 10, 8] as const;
/** With this many elements more parts cost nothing, and they help a machine with many compute units. */
const MIN_MANY_PARTS = 1 << 24;
const MANY_PARTS = [1024, 960, 768, 512, 640, 384, 256, ...PARTS] as const;

export function axisSplitFor(shape: Shape, axes: readonly number[]): AxisSplit | undefined {
  const product = (sizes: Shape): number =>
    sizes.reduce<number>((n, s) => n * (typeof s === "number" ? s : NaN), 1);
  const total = product(axes.map((a) => shape[a] as Shape[number]));
  if (!(total >= MIN_SPLIT) || !(product(shape) / total <= MAX_KEPT)) return undefined;
  const counts = total >= MIN_MANY_PARTS ? MANY_PARTS : PARTS;
  for (const axis of axes) {
    const count = counts.find((n) => (shape[axis] as number) % n === 0 && shape[axis] !== n);
    if (count !== undefined) return { axis, count };
  }
  return undefined;
}
