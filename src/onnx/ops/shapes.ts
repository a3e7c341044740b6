// Arithmetic of shapes that several families of ops share: broadcasting, slices. In: shapes as the host knows
// them. Out: shapes and bounds.

import { range } from "../../helpers.ts";
import { OnnxError } from "../errors.ts";
import type { Call } from "./op.ts";

/** The shape that all broadcast to, from the last dim. */
export function broadcastShapes(shapes: readonly (readonly number[])[]): number[] {
  const n = Math.max(0, ...shapes.map((s) => s.length));
  return range(n).map((d) => {
    const sizes = shapes.map((s) => s[d - n + s.length] ?? 1).filter((x) => x !== 1);
    if (sizes.some((x) => x !== sizes[0])) {
      throw new OnnxError(`shapes ${shapes.map((s) => `[${s.join(", ")}]`).join(" and ")} do not broadcast`);
    }
    return sizes[0] ?? 1;
  });
}

export interface SlicePiece {
  readonly start: number;
  readonly step: number;
  readonly count: number;
}
const clamp = (x: number, lo: number, hi: number): number => Math.min(Math.max(x, lo), hi);

/** What is taken of each dim; ends far outside mean the end. */
export function sliceBounds(
  call: Call,
  shape: readonly number[],
  starts: readonly number[],
  ends: readonly number[],
  axes: readonly number[] = range(starts.length),
  steps: readonly number[] = starts.map(() => 1),
): SlicePiece[] {
  if (starts.length !== ends.length || axes.length !== starts.length || steps.length !== starts.length)
    call.fail(`${starts.length} starts, ${ends.length} ends, ${axes.length} axes and ${steps.length} steps`);
  const cuts: SlicePiece[] = shape.map((count) => ({ start: 0, step: 1, count }));
  call.axes(axes, shape.length).forEach((axis, i) => {
    const size = shape[axis] as number;
    const [s, e, step] = [starts[i] as number, ends[i] as number, steps[i] as number];
    if (step === 0) call.fail("a slice has step 0");
    const from = s < 0 ? s + size : s;
    const to = e < 0 ? e + size : e;
    const [start, end] =
      step > 0
        ? [clamp(from, 0, size), clamp(to, 0, size)]
        : [clamp(from, 0, size - 1), clamp(to, -1, size - 1)];
    cuts[axis] = { start, step, count: Math.max(0, Math.ceil((end - start) / step)) };
  });
  return cuts;
}
