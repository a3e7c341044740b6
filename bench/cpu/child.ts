// A process of one engine: `child.ts ENGINE` reads lines from its input and answers each with one line of
// JSON. `open WORKLOAD` prepares, `run MS` repeats the workload for this long and returns the milliseconds of
// each run (wall time and processor time), `close` frees.

import { createInterface } from "node:readline";
import type { Engine, Workload, WorkloadName } from "./workloads.ts";

const [name = ""] = process.argv.slice(2);
const { engine } = (await import(`./${name}`)) as { engine: Engine };

let workload: Workload | undefined;
const COMMANDS: Record<string, (arg: string) => Promise<unknown>> = {
  async workloads() {
    return Object.keys(engine);
  },
  async open(arg) {
    const open = engine[arg as WorkloadName];
    if (open === undefined) throw new Error(`${name} has no ${arg}`);
    workload = await open();
    return true;
  },
  async run(arg) {
    if (workload === undefined) throw new Error("open a workload first");
    const samples: [wall: number, cpu: number][] = [];
    const end = performance.now() + Number(arg);
    do {
      const [start, before] = [performance.now(), process.cpuUsage()];
      await workload.run();
      const { user, system } = process.cpuUsage(before);
      samples.push([performance.now() - start, (user + system) / 1000]);
    } while (performance.now() < end);
    return samples;
  },
  async close() {
    workload?.close?.();
    workload = undefined;
    (globalThis as { gc?: () => void }).gc?.();
    return true;
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const [command = "", arg = ""] = line.split(" ");
  try {
    process.stdout.write(`${JSON.stringify({ value: await COMMANDS[command]?.(arg) })}\n`);
  } catch (e) {
    process.stdout.write(`${JSON.stringify({ error: (e as Error).stack ?? String(e) })}\n`);
  }
}
process.exit();
