// Arithmetic of shapes that several families of ops share: broadcasting, slices. In: shapes as the host knows
// them. Out: shapes and bounds.

import { range } from "../../helpers.ts";
import { decided } from "../../shape/guards.ts";
import { add, idiv, lt, type Sint, sub } from "../../shape/symbolic.ts";
import { sameSize } from "../../shape/view.ts";
import { OnnxError } from "../errors.ts";
import type { Call } from "./op.ts";

/** The shape that all broadcast to, from the last dim. */
export function broadcastShapes<S extends Sint>(shapes: readonly (readonly S[])[]): (S | 1)[] {
  const n = Math.max(0, ...shapes.map((s) => s.length));
  return range(n).map((d) => {
    const sizes = shapes.map((s) => s[d - n + s.length] ?? 1).filter((x) => x !== 1);
    if (sizes.some((x) => !sameSize(x, sizes[0] as Sint))) {
      throw new OnnxError(`shapes ${shapes.map((s) => `[${s.join(", ")}]`).join(" and ")} do not broadcast`);
    }
    return sizes[0] ?? 1;
  });
}

export interface SlicePiece<S extends Sint = number> {
  readonly start: S;
  readonly step: number;
  readonly count: S;
}
/** Of symbolic sizes the comparison is decided for their present values. */
const isBelow = (x: Sint, y: Sint): boolean => decided(lt(x, y)) === 1;
const clamp = (x: Sint, lo: Sint, hi: Sint): Sint => (isBelow(x, lo) ? lo : isBelow(hi, x) ? hi : x);

/** What is taken of each dim; ends far outside mean the end. */
export function sliceBounds<S extends Sint>(
  call: Call,
  shape: readonly S[],
  starts: readonly S[],
  ends: readonly S[],
  axes: readonly number[] = range(starts.length),
  steps: readonly number[] = starts.map(() => 1),
): SlicePiece<S>[] {
  if (starts.length !== ends.length || axes.length !== starts.length || steps.length !== starts.length)
    call.fail(`${starts.length} starts, ${ends.length} ends, ${axes.length} axes and ${steps.length} steps`);
  const cuts: SlicePiece<Sint>[] = shape.map((count) => ({ start: 0, step: 1, count }));
  call.axes(axes, shape.length).forEach((axis, i) => {
    const size = shape[axis] as Sint;
    const [s, e, step] = [starts[i] as Sint, ends[i] as Sint, steps[i] as number];
    if (step === 0) call.fail("a slice has step 0");
    const from = isBelow(s, 0) ? add(s, size) : s;
    const to = isBelow(e, 0) ? add(e, size) : e;
    const last = sub(size, 1);
    const start = step > 0 ? clamp(from, 0, size) : clamp(from, 0, last);
    const end = step > 0 ? clamp(to, 0, size) : clamp(to, -1, last);
    const [span, by] = [step > 0 ? sub(end, start) : sub(start, end), Math.abs(step)];
    const count = isBelow(span, 1) ? 0 : idiv(add(span, by - 1), by);
    cuts[axis] = { start, step, count };
  });
  return cuts as SlicePiece<S>[];
}
