// `npm run bench -- deep`: how the time to build, schedule, compile and run grows with the graph, with the
// fitted exponent for graphs of many shapes; a training step through an unrolled LSTM; and what small eager
// steps cost. Each figure is from processes of its own (deep/samples.ts). Returns rows; run.ts prints them.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GRAPHS } from "./deep/graphs.ts";
import type { Measured } from "./deep/samples.ts";
import { bundle, log } from "./processes.ts";
import { type Report, type Row, summarize } from "./stats.ts";

const SIZES = [3_000, 12_000, 50_000] as const;
export const DEEP_FLAGS = {
  "--small": "graphs of at most 12,000 nodes",
  "--steps": "only the LSTM and the small eager steps",
} as const;

export async function deep(flags: ReadonlySet<string>): Promise<Report> {
  const dir = mkdtempSync(join(tmpdir(), "gradloom-bench-"));
  try {
    const file = join(dir, "samples.mjs");
    await bundle("deep/samples.ts", file);
    const sizes = SIZES.slice(0, flags.has("--small") ? 2 : undefined);
    const graphs = flags.has("--steps") ? [] : Object.keys(GRAPHS).map((name) => graphRow(file, name, sizes));
    return { title: "deep", rows: [...stepRows(file), ...graphs], skipped: [] };
  } finally {
    rmSync(dir, { recursive: true });
  }
}

function measure(file: string, part: string, count: number): Measured {
  log(`${part}: ${count}`);
  const { status, stdout, stderr } = spawnSync(process.execPath, [file, part, String(count)], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`${part} failed:\n${stderr}`);
  return JSON.parse(stdout);
}

/** The exponent p of the best fit of time = c * nodes^p. */
export function exponent(points: readonly (readonly [nodes: number, ms: number])[]): number {
  const logs = points.map(([x, y]) => [Math.log(x), Math.log(y)] as const);
  const mean = (i: 0 | 1): number => logs.reduce((sum, p) => sum + p[i], 0) / logs.length;
  const [mx, my] = [mean(0), mean(1)];
  const above = logs.reduce((sum, [x, y]) => sum + (x - mx) * (y - my), 0);
  return above / logs.reduce((sum, [x]) => sum + (x - mx) ** 2, 0);
}

function graphRow(file: string, name: string, sizes: readonly number[]): Row {
  const runs = sizes.map((n) => measure(file, name, n));
  const points = runs.map(({ nodes, cpu }) => [nodes ?? NaN, cpu[0] ?? NaN] as const);
  const [nodes, cpu] = points.at(-1) as readonly [number, number];
  return {
    what: `${name}: ${nodes} nodes, built and realised`,
    ...summarize(runs.at(-1)?.ms ?? []),
    limit: 3000,
    note: `exponent ${exponent(points).toFixed(2)}, ${cpu.toFixed(0)} ms of the processor`,
  };
}

/** The first samples of a part are cold. */
function stepRows(file: string): Row[] {
  const warm = (part: string, what: string, rounds: number, cold: number, limit: number): Row => {
    const { ms, cpu } = measure(file, part, rounds);
    const processor = summarize(cpu.slice(cold)).median;
    const note = `${processor.toPrecision(3)} ms of the processor`;
    return { what, ...summarize(ms.slice(cold)), limit, note };
  };
  const first = measure(file, "LSTM, eager", 1);
  const note = `${first.cpu[0]?.toFixed(0)} ms of the processor`;
  return [
    { what: "LSTM of 40 steps: first training step", ...summarize(first.ms), limit: 2000, note },
    warm("LSTM, eager", "LSTM of 40 steps: later steps, eager", 40, 20, 150),
    warm("LSTM, jitted", "LSTM of 40 steps: later steps, jitted", 20, 5, 20),
    warm("flips", "3,000 times s.add(s.flip(0)).mul(0.5)", 3000, 0, 1000),
    warm("dqn", "DQN step, eager", 2000, 1000, 1.5),
    warm("eager", "an elementwise op of a known kernel, host time", 60, 30, 0.015),
    warm("topk", "topk(50) of 32,000", 400, 200, 2),
    warm("multinomial", "multinomial of 32,000", 400, 200, 2),
    warm("svd", "svd of 64 x 64", 40, 20, 50),
  ];
}
