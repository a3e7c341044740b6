// `npm run bench -- scatter`: scatters, running sums and sorting beside plain loops over typed arrays in the
// same process, with random shapes; `--seed=N` gives the same ones again. Each device has a process of its
// own (scatter/samples.ts). Returns rows; run.ts prints them.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { bundle, log } from "./processes.ts";
import type { MeasuredWork } from "./scatter/samples.ts";
import { WORKS } from "./scatter/works.ts";
import { type Report, type Row, summarize } from "./stats.ts";

const ROUNDS = 9;
/** How many times as long as plain loops a work may take on one thread. */
const GOAL = 3;
const DEVICES = [
  ["WASM", 1],
  ["WASM", 2],
  ["CLANG", 1],
] as const;

export const SCATTER_FLAGS: Readonly<Record<string, string>> = {
  "--seed=N": "the shapes of an earlier run; otherwise they are new",
  "--only=WORK,…": `only these works: ${Object.keys(WORKS).join(", ")}`,
  "--rounds=N": `how often each is run, ${ROUNDS} by default`,
};
const flagValue = (flags: ReadonlySet<string>, name: string): string | undefined =>
  [...flags].find((f) => f.startsWith(`${name}=`))?.slice(name.length + 1);

export async function scatter(flags: ReadonlySet<string>): Promise<Report> {
  const seed = flagValue(flags, "--seed") ?? String(Date.now() % 1_000_000);
  const only = flagValue(flags, "--only") ?? Object.keys(WORKS).join(",");
  const rounds = flagValue(flags, "--rounds") ?? String(ROUNDS);
  // where koffi is found
  const dir = mkdtempSync(join(import.meta.dirname, "../node_modules/.gradloom-bench-"));
  try {
    const file = join(dir, "samples.mjs");
    await bundle("scatter/samples.ts", file);
    const rows = DEVICES.flatMap(([device, threads]) => {
      const name = `${device} ${threads} t`;
      log(`${name}, seed ${seed}`);
      return rowsOf(name, measure(file, [seed, rounds, only], { DEV: device, THREADS: String(threads) }));
    });
    return { title: "scatter", rows, skipped: [], facts: { seed } };
  } finally {
    rmSync(dir, { recursive: true });
  }
}

function measure(file: string, args: readonly string[], env: Readonly<Record<string, string>>) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [file, ...args], {
    encoding: "utf8",
    env: { ...process.env, ...env },
  });
  if (status !== 0) throw new Error(`${env.DEV} failed:\n${stderr}`);
  return JSON.parse(stdout) as readonly MeasuredWork[];
}

const rowsOf = (device: string, works: readonly MeasuredWork[]): Row[] =>
  works.map(({ name, ours, plain }) => {
    const [mine, theirs] = [summarize(ours), summarize(plain)];
    const ratio = mine.median / theirs.median;
    const goal = device.endsWith("1 t") ? `, goal ${GOAL}${ratio < GOAL ? "" : ": MISSED"}` : "";
    const note = `plain arrays ${theirs.median.toPrecision(3)} ms: ratio ${ratio.toFixed(2)}${goal}`;
    return { what: `${name}: ${device}`, ...mine, note };
  });
