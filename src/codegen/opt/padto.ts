// PADTO (overlapped tail): an axis that lanes do not divide. The last iteration overlaps the one before
// instead of being peeled off.

import { smin } from "../../shape/symbolic.ts";
import { constantAxes, type OptDoc, type OptRecord } from "./record.ts";
import { showAxis } from "./split.ts";

/** The multiple that is tried: the lanes of the narrowest vectors. */
const LANES = 4;

export const PADTO_DOC: OptDoc = {
  textbook: "overlapped tail, instead of loop peeling",
  summary:
    "An output axis is rounded up to a multiple, so that lanes divide it. The last iteration starts earlier and " +
    "computes some elements again. A symbolic size must be that large at least. Not for a kernel that writes what " +
    "it reads.",
  picture: `
for i in 0..6: y[i] = f(x[i])         PADTO(0, multiple=4) UPCAST(0, lanes=4)
for i in 0..2:
  j = min(4i, 2)
  y[j..j+3] = f(x[j..j+3])`,
};

export const PADTO: OptRecord<"PADTO"> = {
  name: "PADTO",
  params: {
    axis: { meaning: "an output axis", least: 0 },
    multiple: { meaning: "its size becomes a multiple of this", least: 1 },
  },
  takes: "output",
  expected: "a multiple up to its size, before any other op on it",
  repeats: true,
  refusal: (axis, { multiple }) => {
    const { left, isWhole, isRagged } = axis;
    const fits = isWhole && !isRagged && multiple <= smin(left);
    return fits ? undefined : showAxis(axis);
  },
  candidates: (kernel, { inPlace }) =>
    constantAxes(kernel, "output")
      .filter(({ size }) => !inPlace && size > LANES && size % LANES !== 0)
      .map(({ axis }) => ({ op: "PADTO", axis, multiple: LANES })),
};
