// A process of its own for the first result of a model: `first.ts ENGINE WORK RUNS` prints the milliseconds
// of loading and of each run, and, of gradloom, the most bytes that tensors held.

import type { Workload } from "../cpu/workloads.ts";

const [name = "", work = "", runs = "1"] = process.argv.slice(2);
const { engine, peakBytes } = (await import(`./${name}`)) as {
  engine: Readonly<Record<string, () => Promise<Workload>>>;
  peakBytes?: () => number;
};
const start = performance.now();
const workload = await engine[work]?.();
const times = [performance.now() - start];
for (let i = 0; i < Number(runs); i++) {
  const before = performance.now();
  await workload?.run();
  times.push(performance.now() - before);
}
console.log(JSON.stringify({ times, peak: peakBytes?.() }));
process.exit();
