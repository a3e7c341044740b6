// GROUPTOP (parallel reduction in a workgroup): threads share a reduction and combine what they have, by
// shuffles or shared memory.

import { type OptDoc, type OptRecord, workgroups } from "./record.ts";
import { factorRefusal } from "./split.ts";

export const GROUPTOP_DOC: OptDoc = {
  textbook: "parallel reduction in a workgroup",
  summary:
    "Threads of a workgroup reduce a part of the axis each and combine what they have at the end. They do not have " +
    "to divide the axis: threads beyond its end add nothing.",
  picture: `
for k in 0..1024: s += x[k]   GROUPTOP(0, threads=32)
thread t in 0..32:
  for k in 0..32: p += x[32k+t]
s = sum of p over the threads`,
};

export const GROUPTOP: OptRecord<"GROUPTOP"> = {
  name: "GROUPTOP",
  params: {
    axis: { meaning: "a reduce axis", least: 0 },
    threads: { meaning: "the threads that share it", least: 1 },
  },
  takes: "reduce",
  expected: "a divisor of what is left, or up to what is left; without workgroups use GROUP",
  part: "local",
  refusal: (axis, { threads }, target) =>
    target.grid !== undefined
      ? factorRefusal(axis, threads, "local", target)
      : `${target.name} does not have workgroups`,
  candidates: (kernel, { target }) =>
    workgroups(kernel, "reduce", target).map((w) => ({ op: "GROUPTOP", ...w })),
};
