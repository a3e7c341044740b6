// `npm run bench -- overhead`: what a program costs besides its arithmetic. (a) from the start of a process
// to its first printed result, next to bare node and peers, alternating in one run; (b) a new small kernel;
// (c) a graph of 2,000 nodes; (d) a kernel that is compiled already; (e) from the start of a process to the
// end of the first training step; (f) WebAssembly's own compiler, sync and async. Returns rows; run.ts prints
// them.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Samples } from "./pipeline.ts";
import { buildIfStale, bundle, isInstalled, log, type Program, SKIP, timeToPrint } from "./processes.ts";
import { startRows } from "./starts.ts";
import { type Report, type Row, summarize } from "./stats.ts";

export async function overhead(): Promise<Report> {
  buildIfStale();
  const start = await startup(25);
  const pipeline = await pipelineRows();
  const first = await firstSteps();
  return { title: "overhead", rows: [...start.rows, ...pipeline, ...first], skipped: start.skipped };
}

// ---- (a) a process ----

const PROGRAMS: readonly (Program & { readonly needs?: string })[] = [
  { name: "bare node", file: "node.mjs", prints: "11" },
  { name: "gradloom", file: "gradloom.mjs", prints: "11" },
  { name: "gradloom, CODECACHE=0", file: "gradloom.mjs", prints: "11", env: { CODECACHE: "0" } },
  { name: "jax-js (wasm)", file: "jax.mjs", prints: "11", needs: "@jax-js/jax" },
  { name: "tfjs (wasm)", file: "tfjs.mjs", prints: "11", needs: "@tensorflow/tfjs-backend-wasm" },
];

async function startup(rounds: number): Promise<{ rows: Row[]; skipped: string[] }> {
  const isThere = ({ needs }: (typeof PROGRAMS)[number]): boolean =>
    needs === undefined || isInstalled(needs);
  const programs = PROGRAMS.filter(isThere);
  const skipped = PROGRAMS.filter((p) => !isThere(p)).map((p) => `${p.name}: ${p.needs} ${SKIP}`);
  const times = new Map(programs.map((p) => [p, [] as number[]]));
  log(`starting ${programs.map((p) => p.name).join(", ")}, ${rounds} times each`);
  // the first run of each fills the cache of files, and keeps V8's code
  for (const p of programs) await timeToPrint(p);
  for (let i = 0; i < rounds; i++) {
    for (const [p, list] of times) list.push(await timeToPrint(p));
  }
  const figures = programs.map((p) => ({ name: p.name, ...summarize(times.get(p) ?? []) }));
  const own = figures.find((f) => f.name === "gradloom")?.median ?? NaN;
  const rows = figures.map(({ name, ...figure }): Row => {
    const what = `(a) start to printed dot product: ${name}`;
    return name === "gradloom"
      ? { what, ...figure, limit: 350, target: 200 }
      : { what, ...figure, note: `gradloom takes ${(own / figure.median).toFixed(2)} of this` };
  });
  return { rows, skipped };
}

// ---- (e) the first step of training ----

async function firstSteps(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "gradloom-bench-"));
  try {
    const rows = await startRows(folder, "beautiful_mnist");
    return rows.map((row) => ({ ...row, what: `(e) ${row.what}` }));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

// ---- (b), (c), (d), (f) in a process ----

async function pipelineRows(): Promise<Row[]> {
  const dir = mkdtempSync(join(tmpdir(), "gradloom-bench-"));
  try {
    const outfile = join(dir, "pipeline.mjs");
    await bundle("pipeline.ts", outfile);
    const run = (part: string, rounds: number, processes: number): Samples[] => {
      log(`${part}: ${rounds} rounds in each of ${processes} processes`);
      return Array.from({ length: processes }, () => samplesOf(outfile, part, rounds));
    };
    return [
      ...["dot", "elementwise", "matmul", "softmax"].flatMap((kind) => kernelRows(kind, run(kind, 400, 3))),
      ...graphRows(run("graphs", 21, 5)),
      ...realizeRows(run("realizes", 2000, 2)),
      {
        what: "(d) new layer of a known structure: its runner",
        ...summarize(warm(run("known", 2000, 2), "known")),
      },
      ...moduleRows(run("modules", 8, 3)),
    ];
  } finally {
    rmSync(dir, { recursive: true });
  }
}

function samplesOf(file: string, part: string, rounds: number): Samples {
  const { status, stdout, stderr } = spawnSync(process.execPath, [file, part, String(rounds)], {
    encoding: "utf8",
    maxBuffer: 1 << 28,
  });
  if (status !== 0) throw new Error(`${part} failed:\n${stderr}`);
  return JSON.parse(stdout);
}

/** The first sample of each process, and (warm) those after the first quarter. */
const cold = (runs: readonly Samples[], name: string): number[] => runs.map((s) => s[name]?.[0] ?? NaN);
const warm = (runs: readonly Samples[], name: string): number[] =>
  runs.flatMap((s) => s[name]?.slice(Math.ceil((s[name]?.length ?? 0) / 4)) ?? []);

function kernelRows(kind: string, runs: readonly Samples[]): Row[] {
  const what = `(b) fresh ${kind} kernel`;
  const stages = ["schedule", "lower", "render", "compile"].map(
    (stage): Row => ({ what: `${what}: ${stage}`, ...summarize(warm(runs, stage)) }),
  );
  return [
    { what: `${what}, warm`, ...summarize(warm(runs, "all")), limit: 1, target: 0.3 },
    ...stages,
    { what: `${what}, first of a process`, ...summarize(cold(runs, "all")) },
  ];
}

function graphRows(runs: readonly Samples[]): Row[] {
  const [nodes, kernels] = [runs[0]?.nodes?.[0], runs[0]?.kernels?.[0]];
  const what = `(c) ${nodes} nodes, ${kernels} kernels`;
  const sum = (pick: typeof warm): number[] => {
    const lower = pick(runs, "lower");
    return pick(runs, "schedule").map((ms, i) => ms + (lower[i] as number));
  };
  return [
    { what: `${what}: schedule + lower, warm`, ...summarize(sum(warm)), limit: 150 },
    { what: `${what}: schedule`, ...summarize(warm(runs, "schedule")) },
    { what: `${what}: lower`, ...summarize(warm(runs, "lower")) },
    { what: `${what}: schedule + lower, first of a process`, ...summarize(sum(cold)), limit: 150 },
  ];
}

function moduleRows(runs: readonly Samples[]): Row[] {
  const what = `(f) ${runs[0]?.modules?.[0]} WebAssembly modules`;
  return [
    { what: `${what}: one after the other`, ...summarize(warm(runs, "sync")) },
    { what: `${what}: WebAssembly.compile, all at once`, ...summarize(warm(runs, "async")) },
  ];
}

function realizeRows(runs: readonly Samples[]): Row[] {
  const row = (name: string, what: string): Row => ({
    what: `(d) cached kernel: ${what}`,
    ...summarize(warm(runs, name)),
  });
  return [
    row("build", "a.add(b)"),
    row("sync", "realizeSync()"),
    row("async", "await realize()"),
    row("read", "dataSync() (kernel and copy out)"),
  ];
}
