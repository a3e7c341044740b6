// COLLAPSE (loop collapsing): two axes of a kernel become one, whose index is divided to find theirs. So a
// convolution is a product of two matrices: its pictures, rows and columns are one axis, its channels and the
// taps of its filter another. Lowering takes the groups of dims from here.

import { ArgumentError } from "../../errors.ts";
import { type OptOp, showOpts } from "./opts.ts";
import type { OptDoc, OptRecord } from "./record.ts";

export const COLLAPSE_DOC: OptDoc = {
  textbook: "loop collapsing",
  summary:
    "Two output axes, or two axes of a reduction, become one, which stands where the first stood; axes after the " +
    "second are renumbered. These ops come first in a list, those of output axes before those of a reduction.",
  picture: `
for i in 0..4: for j in 0..6:
  y[i, j] = f(x[i, j])        COLLAPSE(first=0, second=1)
for k in 0..24:
  y[k / 6, k % 6] = f(x[k / 6, k % 6])`,
};

export const COLLAPSE: OptRecord<"COLLAPSE"> = {
  name: "COLLAPSE",
  params: {
    first: { meaning: "an axis", least: 0 },
    second: { meaning: "another axis of the same kind", least: 0 },
  },
  takes: undefined,
  expected: "two output axes, or two axes of one reduction",
  // it changes what the numbers in the rest of a list mean: only a heuristic that makes whole lists uses it
  candidates: () => [],
};

/** Dims of a kernel that are one loop. */
type Dims = readonly number[];

export interface CollapseContext {
  readonly opts: readonly OptOp[];
  /** dims that need a loop: others have no number */
  readonly isLoop: (dims: Dims) => boolean;
  /** the number of the first axis of a reduction; undefined: the groups are of the output */
  readonly from: number | undefined;
  /** how many output axes there are before any is collapsed */
  readonly outputs: number;
}

/** The groups of dims of the output, or of a reduction, after the COLLAPSEs that name them. */
export function collapsed(groups: readonly Dims[], context: CollapseContext): readonly Dims[] {
  const { opts, isLoop, from = 0 } = context;
  let left = groups;
  let { outputs } = context;
  for (const o of opts) {
    if (o.op !== "COLLAPSE") continue;
    const namesOutputs = Math.max(o.first, o.second) < outputs;
    if (namesOutputs) outputs--;
    if (namesOutputs !== (context.from === undefined)) continue;
    const loops = left.filter(isLoop);
    const [first, second] = [loops[o.first - from], loops[o.second - from]];
    if (first === undefined || second === undefined || first === second) {
      throw new ArgumentError(
        `${showOpts([o])}: axes ${from} to ${from + loops.length - 1} are left here; COLLAPSE takes two output axes, ` +
          "or two axes of one reduction",
      );
    }
    const joined = [...first, ...second].sort((a, b) => a - b);
    left = left.filter((g) => g !== second).map((g) => (g === first ? joined : g));
  }
  return left;
}
