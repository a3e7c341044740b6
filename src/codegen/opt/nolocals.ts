// NOLOCALS (a grid without workgroups): linearize gives each thread a workgroup of its own.

import type { OptDoc, OptRecord } from "./record.ts";

export const NOLOCALS_DOC: OptDoc = {
  textbook: "a grid without workgroups",
  summary: "The kernel has no workgroups: every iteration of the output loops is a workgroup of one thread.",
  picture: `
for i in 0..1000:
  y[i] = f(x[i])              NOLOCALS
workgroup i in 0..1000:
  y[i] = f(x[i])`,
};

export const NOLOCALS: OptRecord<"NOLOCALS"> = {
  name: "NOLOCALS",
  params: {},
  takes: undefined,
  expected: "nothing",
  onlyLinearize: true,
  excludes: ["LOCAL", "GROUPTOP"],
  candidates: () => [],
};
