// Which axes share a dimension of a kernel's grid, or of its threads where there are no workgroups.

import { smax } from "../../shape/symbolic.ts";
import type { Axis } from "../../uop/node.ts";

const DIMS = 3;

/**
 * The axes of each dimension, innermost first: one axis each, the remaining axes in the last dimension, or
 * all axes in one where a limit is exceeded.
 */
export function dimsOf(axes: readonly Axis[], limits: readonly number[]): (readonly Axis[])[] {
  const inner = axes.toReversed();
  const apart = inner.slice(0, DIMS - 1).map((a) => [a]);
  const dims = inner.length < DIMS ? apart : [...apart, inner.slice(DIMS - 1)];
  const fits = dims.every((d, i) => d.reduce((n, a) => n * smax(a.size), 1) <= (limits[i] ?? Infinity));
  return fits || inner.length === 0 ? dims : [inner];
}
