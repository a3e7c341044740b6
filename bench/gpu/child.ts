// A process of one GPU device: `child.ts DEVICE [WORK…]` measures the works one after the other and prints a
// line of JSON for each: milliseconds a run, in batches that are long enough for
// the clock, or why it could not.

import { Device } from "../../src/index.ts";
import { flushFreed } from "../../src/runtime/cache.ts";
import { WORKS } from "./works.ts";

/** A batch takes about this long; so many are measured. */
const [BATCH_MS, BATCHES] = [40, 9];
/** After a rest the clock of a GPU is low; under NV it takes this long to rise. */
const WARM_MS = 400;

/** What one work came to; pytorch.py prints the same lines. */
export interface Line {
  readonly work: string;
  readonly gpu?: string;
  readonly ms?: readonly number[];
  /** until the host is free again, of one run */
  readonly hostMs?: number;
  readonly kernels?: number;
  readonly error?: string;
}

async function measure(name: string): Promise<Line> {
  const device = Device.get(Device.DEFAULT);
  const work = WORKS[name];
  if (work === undefined) return { work: name, error: "no such work" };
  const run = await work.prepare();
  await device.synchronize();
  const batch = async (n: number): Promise<{ all: number; host: number }> => {
    const start = performance.now();
    for (let i = 0; i < n; i++) await run();
    const host = (performance.now() - start) / n;
    await device.synchronize();
    return { all: (performance.now() - start) / n, host };
  };
  let n = 3;
  for (const start = performance.now(); performance.now() - start < WARM_MS; ) {
    const { all } = await batch(n);
    n = Math.max(1, Math.min(500, Math.round(BATCH_MS / all)));
  }
  const found: { all: number; host: number }[] = [];
  for (let i = 0; i < BATCHES; i++) found.push(await batch(n));
  const hosts = found.map((f) => f.host).sort((a, b) => a - b);
  return {
    work: name,
    ms: found.map((f) => f.all),
    hostMs: hosts[BATCHES >> 1] ?? NaN,
    kernels: run.kernels(),
  };
}

const [name = "", ...chosen] = process.argv.slice(2);
Device.DEFAULT = name;
await Device.open(name);
for (const work of chosen.length > 0 ? chosen : Object.keys(WORKS)) {
  let line: Line;
  try {
    line = await measure(work);
  } catch (e) {
    line = { work, error: (e as Error).message };
  }
  process.stdout.write(`${JSON.stringify(line)}\n`);
  (globalThis as { gc?: () => void }).gc?.();
  await new Promise((next) => setTimeout(next, 10));
  flushFreed(Device.get(name));
}
process.exit();
