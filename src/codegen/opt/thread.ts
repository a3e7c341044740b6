// THREAD (multithreading of a loop): parts of an output loop run on several threads of the CPU. linearize
// makes the loop the grid of the kernel.

import { constantAxes, type OptDoc, type OptRecord } from "./record.ts";

export const THREAD_DOC: OptDoc = {
  textbook: "multithreading of a loop",
  summary:
    "The loop over an output axis becomes the grid of a kernel that otherwise has none: parts of it run on different " +
    "threads.",
  picture: `
for i in 0..1000:
  y[i] = f(x[i])              THREAD(0)
each thread, for its i in 0..1000:
  y[i] = f(x[i])`,
};

export const THREAD: OptRecord<"THREAD"> = {
  name: "THREAD",
  params: { axis: { meaning: "an output axis", least: 0 } },
  takes: "output",
  expected: "nothing else",
  once: true,
  onlyLinearize: true,
  candidates: (kernel, { target }) =>
    target.hasThreads ? constantAxes(kernel, "output").map(({ axis }) => ({ op: "THREAD", axis })) : [],
};
