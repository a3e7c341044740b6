// A choice between two nodes by a box: a mask that is 1 in one part of the shape. It is how concatenation and
// padding with a value are written in the lazy graph. In: the operands of a WHERE. Out: a Concat or a Pad.

import { type ExportNode, fillingOf, type GraphBuilder, paddingOf } from "./graph.ts";

interface Box {
  readonly from: readonly number[];
  readonly to: readonly number[];
}
/** The part of a condition that is true, if that is a box. */
function boxOf(c: ExportNode): Box | undefined {
  if (c.op !== "Pad" || fillingOf(c) !== 0) return undefined;
  const { inner, before } = paddingOf(c);
  const source = inner.op === "Expand" ? (inner.inputs[0] as ExportNode) : inner;
  if (source.op !== "Number" || source.values[0] !== 1) return undefined;
  return { from: before, to: before.map((n, d) => n + (inner.shape[d] as number)) };
}

/** The choice; undefined where it is not one by a box. */
export function boxSelected(
  b: GraphBuilder,
  [c, yes, no]: readonly ExportNode[],
  shape: readonly number[],
): ExportNode | undefined {
  const box = c === undefined ? undefined : boxOf(c);
  if (c === undefined || yes === undefined || no === undefined || box === undefined) return undefined;
  if (yes.op === "Pad" && no.op === "Number") {
    const { inner, before, after } = paddingOf(yes);
    const isFull = (d: number): boolean => c.shape[d] === 1 && box.to[d] === 1;
    const isSame = before.every((n, d) => {
      const end = n + (inner.shape[d] as number);
      return isFull(d) ? n === 0 && after[d] === 0 : n === box.from[d] && end === box.to[d];
    });
    if (isSame) return b.pad(inner, before, after, no.values[0]);
  }
  const axes = box.from.flatMap((lo, d) => (lo !== 0 || box.to[d] !== c.shape[d] ? [d] : []));
  const [axis] = axes;
  if (axis === undefined || axes.length > 1) return undefined;
  const [lo, hi] = [box.from[axis] as number, box.to[axis] as number];
  const whole = (x: ExportNode): ExportNode =>
    b.expand(
      x.shape.length === 0
        ? b.reshape(
            x,
            shape.map(() => 1),
          )
        : x,
      shape,
    );
  const part = (x: ExportNode, from: number, to: number): ExportNode[] =>
    to > from ? [b.slice(x, axis, from, to - from)] : [];
  const size = shape[axis] as number;
  const [first, second] = [whole(yes), whole(no)];
  return b.concat([...part(second, 0, lo), ...part(first, lo, hi), ...part(second, hi, size)], axis);
}
