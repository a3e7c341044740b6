// A process of one GPU device: `child.ts DEVICE [WORKLOAD…]` measures the workloads one after the other and
// prints a line of JSON for each: milliseconds per run, in batches that are long enough for the clock, or the
// reason for a failure.

import { Device } from "../../src/index.ts";
import { flushFreed } from "../../src/runtime/cache.ts";
import { GRADLOOM } from "../webgpu/gradloom.ts";
import type { WorkName } from "../webgpu/works.ts";
import { WORKLOADS } from "./workloads.ts";

/** How long a batch takes, and how many are measured. */
const [BATCH_MS, BATCHES] = [40, 9];
/** After a pause the clock of a GPU is low; with NV it takes this long to rise. */
const WARM_MS = 400;

/** The result of one workload; pytorch.py prints the same lines. */
export interface Line {
  readonly workload: string;
  readonly gpu?: string;
  readonly ms?: readonly number[];
  /** the time until the host is free again, for one run */
  readonly hostMs?: number;
  readonly kernels?: number;
  readonly error?: string;
}

async function measure(name: string): Promise<Line> {
  const device = Device.get(Device.DEFAULT);
  const workload =
    WORKLOADS[name] ?? (Object.hasOwn(GRADLOOM, name) ? GRADLOOM[name as WorkName] : undefined);
  if (workload === undefined) return { workload: name, error: "no such workload" };
  const run = await workload.prepare();
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
    workload: name,
    ms: found.map((f) => f.all),
    hostMs: hosts[BATCHES >> 1] ?? NaN,
    kernels: run.kernels(),
  };
}

const [name = "", ...chosen] = process.argv.slice(2);
Device.DEFAULT = name;
await Device.open(name);
for (const workload of chosen.length > 0 ? chosen : Object.keys(WORKLOADS)) {
  let line: Line;
  try {
    line = await measure(workload);
  } catch (e) {
    line = { workload, error: (e as Error).message };
  }
  process.stdout.write(`${JSON.stringify(line)}\n`);
  (globalThis as { gc?: () => void }).gc?.();
  await new Promise((next) => setTimeout(next, 10));
  flushFreed(Device.get(name));
}
process.exit();
