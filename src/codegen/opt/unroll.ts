// UNROLL (loop unrolling of a reduction): terms are combined in pairs before they meet the accumulator.

import { divisions, type OptDoc, type OptRecord } from "./record.ts";
import { factorRefusal } from "./split.ts";

export const UNROLL_DOC: OptDoc = {
  textbook: "loop unrolling",
  summary:
    "Several terms of a reduction are computed in one iteration and combined before they are added to the " +
    "accumulator. After GROUPTOP on the same axis they are as far apart as the workgroup is wide.",
  picture: `
for k in 0..8:
  s += x[k]                   UNROLL(0, factor=2)
for k in 0..4:
  s += x[2k] + x[2k+1]`,
};

export const UNROLL: OptRecord<"UNROLL"> = {
  name: "UNROLL",
  params: {
    axis: { meaning: "a reduce axis", least: 0 },
    factor: { meaning: "the terms of one iteration", least: 1 },
  },
  takes: "reduce",
  expected: "a divisor of what is left",
  part: "lanes",
  refusal: (axis, { factor }, target) => factorRefusal(axis, factor, "lanes", target),
  candidates: (kernel) =>
    divisions(kernel, "reduce").map(({ axis, factor }) => ({ op: "UNROLL", axis, factor })),
};
