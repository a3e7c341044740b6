// `npm run bench -- gpu`: the workloads of gpu/workloads.ts on CUDA and NV, and on PyTorch if python3 has it,
// all in one run on one GPU. Each device is a process of its own, one after the other. `--only=NAME` measures
// one workload.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Line } from "./gpu/child.ts";
import { KERNELS, WORKLOADS, type Workload } from "./gpu/workloads.ts";
import { type Report, type Row, summarize } from "./stats.ts";

export const GPU_FLAGS = { "--only=NAME": "one workload: add, sum, fused, softmax …" };

const DEVICES = ["CUDA", "NV"];

/** The lines that a program prints, or the reason why it prints none. */
export function linesOf<T = Line>(command: string, args: readonly string[]): T[] | string {
  const answer = spawnSync(command, args, { encoding: "utf8", maxBuffer: 2 ** 26, timeout: 600_000 });
  const lines = (answer.stdout ?? "").split("\n").filter((l) => l.startsWith("{"));
  if (lines.length > 0) return lines.map((l) => JSON.parse(l) as T);
  const words = answer.error?.message ?? answer.stderr;
  return (
    words
      .trim()
      .split("\n")
      .find((l) => /Error: /.test(l)) ??
    words.trim().split("\n").at(-1) ??
    "it printed nothing"
  );
}

/** The path of a part of this program: a source, or a bundle made for a machine without npm. */
export function part(...names: readonly string[]): string {
  const found = names.map((n) => join(import.meta.dirname, n)).find((p) => existsSync(p));
  if (found === undefined) throw new Error(`bench: ${names[0]} is missing`);
  return found;
}

export async function gpu(flags: ReadonlySet<string>): Promise<Report> {
  const only = [...flags].find((f) => f.startsWith("--only="))?.slice("--only=".length);
  if (only !== undefined && !Object.hasOwn(WORKLOADS, only))
    throw new Error(`bench gpu: no workload ${only}; there are ${Object.keys(WORKLOADS).join(", ")}`);
  const chosen = only === undefined ? [] : [only];
  const skipped: string[] = [];
  const child = part("gpu/child.ts", "child.mjs");
  const found = new Map<string, Line[]>();
  for (const device of DEVICES) {
    process.stderr.write(`${device}\n`);
    const lines = linesOf(process.execPath, [...process.execArgv, "--expose-gc", child, device, ...chosen]);
    if (typeof lines === "string") skipped.push(`${device}: ${lines}`);
    else found.set(device, lines);
  }
  process.stderr.write("PyTorch\n");
  const torch = linesOf("python3", [part("gpu/pytorch.py", "pytorch.py"), ...chosen]);
  if (typeof torch === "string") skipped.push(`PyTorch: ${torch}`);
  const theirs = typeof torch === "string" ? [] : torch;
  const rows = Object.entries(WORKLOADS).flatMap(([name, workload]) =>
    rowsOf(name, workload, found, theirs, skipped),
  );
  const card = theirs.find((l) => l.gpu !== undefined)?.gpu;
  return { title: "gpu", rows, skipped, ...(card === undefined ? {} : { facts: { gpu: card } }) };
}

function rowsOf(
  name: string,
  workload: Workload,
  found: ReadonlyMap<string, readonly Line[]>,
  torch: readonly Line[],
  skipped: string[],
): Row[] {
  const beside = torch.find((l) => l.workload === name);
  const theirs = beside?.ms === undefined ? undefined : summarize(beside.ms).median;
  if (beside?.error !== undefined) skipped.push(`PyTorch's ${workload.what}: ${beside.error}`);
  const ours = [...found].flatMap(([device, lines]): Row[] => {
    const line = lines.find((l) => l.workload === name);
    if (line?.error !== undefined)
      skipped.push(`${workload.what} on ${device}: ${line.error.split("\n")[0]}`);
    if (line?.ms === undefined) return [];
    const times = summarize(line.ms);
    const limit = limitOf(workload, theirs);
    const ratio = theirs === undefined ? "" : `, ${(theirs / times.median).toFixed(2)} × PyTorch`;
    const kernels = line.kernels === undefined ? "" : `, ${line.kernels} kernels`;
    const host = line.hostMs === undefined ? "" : `, host ${(1000 * line.hostMs).toFixed(0)} µs`;
    const note = `${rate(workload, times.median)}${ratio}${kernels}${host}`;
    return [
      { what: `${workload.what}: ${device}`, ...times, note, ...(limit === undefined ? {} : { limit }) },
    ];
  });
  if (beside?.ms === undefined || theirs === undefined) return ours;
  return [
    ...ours,
    { what: `${workload.what}: PyTorch`, ...summarize(beside.ms), note: rate(workload, theirs) },
  ];
}

/** The target in milliseconds. */
function limitOf({ target, amount, unit }: Workload, theirs: number | undefined): number | undefined {
  const three = (ms: number): number => Number(ms.toPrecision(3));
  if ("most" in target) return three(unit === "ms" ? target.most : (target.most * KERNELS) / 1000);
  if ("least" in target) return amount === undefined ? undefined : three(amount / target.least / 1e9);
  return theirs === undefined ? undefined : three(theirs / target.ratio);
}

export function rate({ amount, unit }: Workload, ms: number): string {
  if (amount !== undefined) return `${(amount / ms / 1e9).toPrecision(3)} ${unit}`;
  return unit === "ms" ? `${ms.toPrecision(3)} ms` : `${((1000 * ms) / KERNELS).toPrecision(3)} ${unit}`;
}
