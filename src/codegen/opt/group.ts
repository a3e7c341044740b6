// GROUP (multiple accumulators): a reduction gets several accumulators. They can be the lanes of a vector.

import { divisions, type OptDoc, type OptRecord } from "./record.ts";
import { factorRefusal } from "./split.ts";

export const GROUP_DOC: OptDoc = {
  textbook: "multiple accumulators",
  summary:
    "Neighbours of a reduce axis have an accumulator each, as lanes of a vector where the target has them: no " +
    "addition waits for the one before. They are combined after the loop.",
  picture: `
for k in 0..8: s += x[k]      GROUP(0, accumulators=2)
for k in 0..4:
  s0 += x[2k]; s1 += x[2k+1]
s = s0 + s1`,
};

export const GROUP: OptRecord<"GROUP"> = {
  name: "GROUP",
  params: {
    axis: { meaning: "a reduce axis", least: 0 },
    accumulators: { meaning: "how many there are", least: 1 },
  },
  takes: "reduce",
  expected: "a divisor of what is left",
  part: "group",
  refusal: (axis, { accumulators }, target) => factorRefusal(axis, accumulators, "group", target),
  candidates: (kernel) =>
    divisions(kernel, "reduce").map(({ axis, factor }) => ({ op: "GROUP", axis, accumulators: factor })),
};
