// `npm run bench -- onnx`: models of npm packages on gradloom beside onnxruntime, with equal threads. First
// the warm time of a run, engines alternating; then, in processes of their own, loading and the first run
// with an empty cache and a filled one, and the memory that tensors held at most.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { child, type Engine, type EngineSpec, listOf, openEngine } from "./cpu.ts";
import { isThere, WORKS } from "./onnx/works.ts";
import { log } from "./processes.ts";
import { type Report, type Row, type Summary, summarize } from "./stats.ts";

const WARM_MS = 1500;
const ROUND_MS = 300;
const ROUNDS = 7;
const FIRST_SAMPLES = 5;
const PACKAGES = "npm install --prefix examples/models --ignore-scripts";

export const ONNX_FLAGS: Readonly<Record<string, string>> = {
  "--only=WORK,…": `only these models: ${Object.keys(WORKS).join(", ")}`,
  "--threads=1|2": "threads of every engine (1 and 2 are both measured by default)",
  "--first": "only loading and first runs",
  "--warm": "only warm runs",
};

/** A device of ours, the peer it is measured beside, and the ratio that it should reach. */
const PAIRS = [
  { own: "WASM", peer: "ort-web", target: 1 },
  { own: "CLANG", peer: "ort-node", target: 0.8 },
] as const;

const specs = (threads: string): EngineSpec[] => [
  ...PAIRS.map(({ own }) => ({
    name: `${own} ${threads} t`,
    command: child("../onnx/gradloom.ts"),
    env: { DEV: own, THREADS: threads },
  })),
  {
    name: `ort-web ${threads} t`,
    command: child("../onnx/ortweb.mjs"),
    env: { THREADS: threads },
    needs: "onnxruntime-web",
  },
  {
    name: `ort-node ${threads} t`,
    command: child("../onnx/ort.mjs"),
    env: { THREADS: threads },
    needs: "onnxruntime-node",
  },
];

export async function onnx(flags: ReadonlySet<string>): Promise<Report> {
  const skipped: string[] = [];
  const only = listOf(flags, "--only");
  const names = Object.keys(WORKS).filter((name) => only?.includes(name) ?? true);
  const there = names.filter((name) => isThere(WORKS[name]!));
  for (const name of names.filter((n) => !there.includes(n)))
    skipped.push(`${name}: ${WORKS[name]?.package} is not installed: ${PACKAGES}`);
  const rows: Row[] = [];
  const [threads = ["1", "2"]] = [listOf(flags, "--threads")];
  if (!flags.has("--first")) for (const t of threads) rows.push(...(await warmRows(there, t, skipped)));
  if (!flags.has("--warm")) for (const name of there) rows.push(...firstRows(name));
  return { title: "onnx", rows, skipped };
}

// ---- warm runs ----

async function warmRows(names: readonly string[], threads: string, skipped: string[]): Promise<Row[]> {
  const open: Engine[] = [];
  try {
    for (const spec of specs(threads)) {
      const engine = await openEngine(spec, skipped);
      if (engine !== undefined) open.push(engine);
    }
    const rows: Row[] = [];
    for (const name of names) rows.push(...(await warm(name, open, threads, skipped)));
    return rows;
  } finally {
    for (const engine of open) engine.close();
  }
}

async function warm(
  name: string,
  engines: readonly Engine[],
  threads: string,
  skipped: string[],
): Promise<Row[]> {
  const { what } = WORKS[name]!;
  log(`${what}, ${threads} threads`);
  const times = new Map<Engine, number[]>();
  for (const engine of engines) {
    try {
      await engine.ask(`open ${name}`);
      await engine.ask(`run ${WARM_MS}`);
      times.set(engine, []);
    } catch (e) {
      skipped.push((e as Error).message.split("\n")[0] as string);
    }
  }
  for (let round = 0; round < ROUNDS; round++)
    for (const [engine, list] of times)
      list.push(...(await engine.ask<[number, number][]>(`run ${ROUND_MS}`)).map(([wall]) => wall));
  for (const engine of times.keys()) await engine.ask("close");
  const figures = new Map([...times].map(([e, list]) => [e.name, summarize(list)]));
  return [...figures].map(([engine, figure]) => ({
    what: `${what}: ${engine}`,
    ...figure,
    note: ratio(engine, figures, threads),
  }));
}
function ratio(engine: string, figures: ReadonlyMap<string, Summary>, threads: string): string {
  const pair = PAIRS.find(({ own }) => engine === `${own} ${threads} t`);
  const [own, peer] = [figures.get(engine), figures.get(`${pair?.peer} ${threads} t`)];
  if (pair === undefined || own === undefined || peer === undefined) return "";
  return verdict(peer.median / own.median, `of ${pair.peer}'s speed`, pair.target);
}
const verdict = (x: number, of: string, least: number): string =>
  `${x.toFixed(2)} x ${of}, target ${least}: ${x >= least ? "met" : "MISSED"}`;

// ---- the first result ----

interface First {
  readonly times: readonly number[];
  readonly peak?: number;
}
const first = (engine: string, name: string, env: Readonly<Record<string, string>>, runs = 1): First => {
  const program = join(import.meta.dirname, "onnx/first.ts");
  const args = ["--import", "tsx", program, engine, name, String(runs)];
  const { stdout, stderr } = spawnSync(process.execPath, args, {
    env: { ...process.env, THREADS: "1", ...env },
    encoding: "utf8",
  });
  const line = stdout.split("\n").find((l) => l.startsWith("{"));
  if (line === undefined)
    throw new Error(`${engine} printed no figures for ${name}:\n${stderr.slice(-2000)}`);
  return JSON.parse(line) as First;
};

function firstRows(name: string): Row[] {
  const { what } = WORKS[name]!;
  log(`${what}, first result`);
  const folder = mkdtempSync(join(tmpdir(), "gradloom-bench-"));
  const sums: Record<"peer" | "cold" | "cached", number[]> = { peer: [], cold: [], cached: [] };
  const total = ({ times: [load = 0, run = 0] }: First): number => load + run;
  try {
    for (let i = 0; i < FIRST_SAMPLES; i++) {
      const own = { DEV: "WASM", CACHE: join(folder, String(i)) };
      sums.peer.push(total(first("ortweb.mjs", name, {})));
      sums.cold.push(total(first("gradloom.ts", name, own)));
      sums.cached.push(total(first("gradloom.ts", name, own)));
    }
    const peer = summarize(sums.peer);
    const row = (label: string, samples: readonly number[], most: number): Row => {
      const figure = summarize(samples);
      const x = figure.median / peer.median;
      const note = `${x.toFixed(2)} x ort-web's time, target ${most}: ${x <= most ? "met" : "MISSED"}`;
      return { what: `${what}, load and first run: ${label}`, ...figure, note };
    };
    return [
      { what: `${what}, load and first run: ort-web 1 t`, ...peer },
      row("WASM 1 t, empty cache", sums.cold, 2),
      row("WASM 1 t, filled cache", sums.cached, 1),
      memoryRow(name, join(folder, "0")),
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** After the first run: that is when a captured run is not planned yet. */
function memoryRow(name: string, cache: string): Row {
  const runs = [1, 4].map((n) => first("gradloom.ts", name, { DEV: "WASM", CACHE: cache }, n).peak ?? NaN);
  const megabytes = runs.map((bytes) => bytes / 1e6);
  return {
    what: `${WORKS[name]?.what}, most bytes in tensors: WASM`,
    ...summarize([Math.max(...megabytes)]),
    unit: "MB",
    note: `${megabytes[0]?.toFixed(0)} MB after the first run`,
  };
}
