// LOCAL (workgroup): threads along an output axis, or an inner loop where the target has no grid.

import { divisions, type OptDoc, type OptRecord, workgroups } from "./record.ts";
import { factorRefusal } from "./split.ts";

export const LOCAL_DOC: OptDoc = {
  textbook: "workgroup (thread block); strip mining where there is no grid",
  summary:
    "Neighbours of an output axis are threads of one workgroup. Where the target runs a grid they do not have to " +
    "divide the axis: threads beyond its end do nothing. Without a grid they are an inner loop.",
  picture: `
for i in 0..1000: y[i] = f(x[i])      LOCAL(0, threads=256)
workgroup g in 0..4:
  thread t in 0..256:
    if 256g+t < 1000: y[256g+t] = f(x[256g+t])`,
};

export const LOCAL: OptRecord<"LOCAL"> = {
  name: "LOCAL",
  params: {
    axis: { meaning: "an output axis", least: 0 },
    threads: { meaning: "the threads of the workgroup along it", least: 1 },
  },
  takes: "output",
  expected: "a divisor of what is left, or on a grid up to what is left",
  part: "local",
  refusal: (axis, { threads }, target) => factorRefusal(axis, threads, "local", target),
  candidates: (kernel, { target }) => [
    ...divisions(kernel, "output").map(
      ({ axis, factor }) => ({ op: "LOCAL", axis, threads: factor }) as const,
    ),
    ...workgroups(kernel, "output", target).map((w) => ({ op: "LOCAL", ...w }) as const),
  ],
};
