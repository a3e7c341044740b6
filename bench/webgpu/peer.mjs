// A process of a peer on WebGPU: `peer.mjs jax|tfjs WORK…` measures the works one after the other and prints
// a line of JSON for each, as gpu/child.ts does: batches that run without waiting, and then one value that is
// read back, since only that says that the GPU is done.

import { installGpu } from "./dawn.mjs";

const [name = "", ...works] = process.argv.slice(2);
await installGpu();
const { engine } = await import(`./${name}.mjs`);

/** How long a batch takes, how many are measured, and how long the engine runs before. */
const [BATCH_MS, BATCHES, WARM_MS] = [40, 9, 400];

async function measure(workload) {
  const { run, wait } = await engine[workload]();
  const batch = async (n) => {
    const start = performance.now();
    for (let i = 0; i < n; i++) await run();
    const host = (performance.now() - start) / n;
    await wait();
    return { all: (performance.now() - start) / n, host };
  };
  let n = 3;
  for (const start = performance.now(); performance.now() - start < WARM_MS; ) {
    const { all } = await batch(n);
    n = Math.max(1, Math.min(500, Math.round(BATCH_MS / all)));
  }
  const found = [];
  for (let i = 0; i < BATCHES; i++) found.push(await batch(n));
  const hosts = found.map((f) => f.host).sort((a, b) => a - b);
  return { workload, ms: found.map((f) => f.all), hostMs: hosts[BATCHES >> 1] };
}

for (const workload of works) {
  let line;
  try {
    line = engine[workload] === undefined ? { workload, error: "not written" } : await measure(workload);
  } catch (e) {
    line = { workload, error: e.message };
  }
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
process.exit();
