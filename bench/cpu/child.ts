// A process of one engine: `child.ts ENGINE` reads lines from its input and answers each with one line of
// JSON. `open WORK` prepares, `run MS` repeats the work for so long and gives the milliseconds of each time,
// of the clock and of the processor, `close` lets go.

import { createInterface } from "node:readline";
import type { Engine, Work, WorkName } from "./works.ts";

const [name = ""] = process.argv.slice(2);
const { engine } = (await import(`./${name}`)) as { engine: Engine };

let work: Work | undefined;
const COMMANDS: Record<string, (arg: string) => Promise<unknown>> = {
  async works() {
    return Object.keys(engine);
  },
  async open(arg) {
    const open = engine[arg as WorkName];
    if (open === undefined) throw new Error(`${name} has no ${arg}`);
    work = await open();
    return true;
  },
  async run(arg) {
    if (work === undefined) throw new Error("open a work first");
    const samples: [wall: number, cpu: number][] = [];
    const end = performance.now() + Number(arg);
    do {
      const [start, before] = [performance.now(), process.cpuUsage()];
      await work.run();
      const { user, system } = process.cpuUsage(before);
      samples.push([performance.now() - start, (user + system) / 1000]);
    } while (performance.now() < end);
    return samples;
  },
  async close() {
    work?.close?.();
    work = undefined;
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
