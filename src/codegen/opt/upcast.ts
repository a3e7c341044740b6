// UPCAST (register tiling and vectorisation): lanes of an output axis become vectors where memory is
// contiguous, scalars otherwise.

import { divisions, type OptDoc, type OptRecord } from "./record.ts";
import { factorRefusal } from "./split.ts";

export const UPCAST_DOC: OptDoc = {
  textbook: "register tiling and vectorisation",
  summary:
    "Neighbours of an output axis are computed side by side, as vectors where the target has them. After LOCAL " +
    "on the same axis the lanes are as far apart as the workgroup is wide.",
  picture: `
for i in 0..8:
  y[i] = f(x[i])              UPCAST(0, lanes=4)
for i in 0..2:
  y[4i..4i+3] = f(x[4i..4i+3])`,
};

export const UPCAST: OptRecord<"UPCAST"> = {
  name: "UPCAST",
  params: {
    axis: { meaning: "an output axis", least: 0 },
    lanes: { meaning: "the neighbours that are computed at once", least: 1 },
  },
  takes: "output",
  expected: "a divisor of what is left",
  part: "lanes",
  refusal: (axis, { lanes }, target) => factorRefusal(axis, lanes, "lanes", target),
  candidates: (kernel) =>
    divisions(kernel, "output").map(({ axis, factor }) => ({ op: "UPCAST", axis, lanes: factor })),
};
