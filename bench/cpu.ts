// `npm run bench -- cpu`: the workloads of cpu/workloads.ts on gradloom (WASM, CLANG, OPENCL), next to peers
// and to the limits of the machine. An engine is a process that runs one workload at a time; the engines
// alternate, so that a disturbance affects all of them. Then whole processes, from their start to their
// first result. FLAGS selects workloads, engines and the clock.

import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { type Medians, TARGETS } from "./cpu/targets.ts";
import { WORKLOADS, type WorkloadName } from "./cpu/workloads.ts";
import { isInstalled, log, SKIP } from "./processes.ts";
import { startRows } from "./starts.ts";
import { type Report, type Row, type Summary, summarize } from "./stats.ts";

const here = join(import.meta.dirname, "cpu");
const WARM_MS = 800;
const ROUND_MS = 150;
const ROUNDS = 5;
/** A workload that takes longer is run less often. */
const LONG_MS = 700;

/** For the usage text: `npm run bench -- cpu --help`. */
export const CPU_FLAGS: Readonly<Record<string, string>> = {
  "--only=WORKLOAD,…": `only these workloads: ${[...Object.keys(WORKLOADS), "start"].join(", ")}`,
  "--engines=NAME,…":
    "only engines whose name starts with one of these: limit, WASM, CLANG, OPENCL, jax-js, tfjs, ort-node, ort-web",
  "--nodes=this|current|both":
    "gradloom on this Node, on the one of bench/package.json, or on both (the default)",
  "--busy": "measure processor time instead of wall time: for a machine that has other work",
};
export const listOf = (flags: ReadonlySet<string>, name: string): string[] | undefined =>
  [...flags]
    .find((f) => f.startsWith(`${name}=`))
    ?.slice(name.length + 1)
    .split(",");

export interface EngineSpec {
  readonly name: string;
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** a package of bench/package.json */
  readonly needs?: string;
}
export const child = (file: string, node: string = process.execPath): string[] => [
  node,
  "--expose-gc",
  "--import",
  "tsx",
  join(here, "child.ts"),
  file,
];

/**
 * The package that holds a current Node for this machine; npm's own `node` would
 * fetch it in an install script.
 */
const NODE_PACKAGE = `node-${process.platform === "win32" ? "win" : process.platform}-${process.arch}`;

/** gradloom on both devices, with one thread and with two. */
export const ours = (node: string, suffix: string, needs?: string): EngineSpec[] =>
  ["WASM", "CLANG"].flatMap((DEV) =>
    [1, 2].map((n) => ({
      name: `${DEV} ${n} t${suffix}`,
      command: child("gradloom.ts", node),
      env: { DEV, THREADS: String(n) },
      ...(needs === undefined ? {} : { needs }),
    })),
  );
function onNodes(which: string): EngineSpec[] {
  const at = join(here, "../node_modules", NODE_PACKAGE);
  const file = join(at, process.platform === "win32" ? "bin/node.exe" : "bin/node");
  const { version = "" } = isInstalled(NODE_PACKAGE)
    ? (JSON.parse(readFileSync(join(at, "package.json"), "utf8")) as { version: string })
    : {};
  const major = version === "" ? "current" : version.split(".")[0];
  return [
    ...(which === "current" ? [] : ours(process.execPath, "")),
    ...(which === "this" ? [] : ours(file, `, Node ${major}`, NODE_PACKAGE)),
  ];
}

const engines = (limits: string | undefined, nodes: string): EngineSpec[] => [
  ...(limits === undefined
    ? []
    : [1, 2].map((n) => ({ name: `limit ${n} t`, command: [limits, String(n)] }))),
  ...onNodes(nodes),
  {
    name: "OPENCL 2 t",
    command: child("gradloom.ts"),
    env: { DEV: "OPENCL", POCL_MAX_PTHREAD_COUNT: "2" },
  },
  { name: "jax-js", command: child("jax.mjs"), needs: "@jax-js/jax" },
  { name: "tfjs", command: child("tfjs.mjs"), needs: "@tensorflow/tfjs" },
  ...[1, 2].map((n) => ({
    name: `ort-node ${n} t`,
    command: child("ort.mjs"),
    env: { THREADS: String(n) },
    needs: "onnxruntime-node",
  })),
  { name: "ort-web 2 t", command: child("ortweb.mjs"), env: { THREADS: "2" }, needs: "onnxruntime-web" },
];

/** A process that answers each line with a line of JSON. */
export class Engine {
  readonly name: string;
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #lines: Interface;
  #answer: ((line: string) => void) | undefined;
  #end: ((e: Error) => void) | undefined;
  workloads: readonly WorkloadName[] = [];

  constructor({ name, command, env = {} }: EngineSpec) {
    this.name = name;
    const [file = "", ...args] = command;
    this.#process = spawn(file, args, { cwd: join(here, "../.."), env: { ...process.env, ...env } });
    this.#lines = createInterface({ input: this.#process.stdout });
    // libraries print messages on the same output: only JSON is an answer
    this.#lines.on("line", (line) => line.startsWith("{") && this.#answer?.(line));
    const errors: string[] = [];
    this.#process.stderr.on("data", (chunk) => errors.push(String(chunk)));
    this.#process.on("close", () =>
      this.#end?.(new Error(`${name} ended:\n${errors.join("").slice(-2000)}`)),
    );
  }
  async ask<T>(line: string): Promise<T> {
    const text = await new Promise<string>((resolve, reject) => {
      this.#answer = resolve;
      this.#end = reject;
      this.#process.stdin.write(`${line}\n`);
    });
    const { value, error } = JSON.parse(text) as { value: T; error?: string };
    if (error !== undefined) throw new Error(`${this.name}: ${line}: ${error}`);
    return value;
  }
  close(): void {
    this.#end = undefined;
    this.#process.stdin.end();
  }
}

/** Starts the process of an engine; undefined where it is not installed or does not open. */
export async function openEngine(spec: EngineSpec, skipped: string[]): Promise<Engine | undefined> {
  if (spec.needs !== undefined && !isInstalled(spec.needs)) {
    skipped.push(`${spec.name}: ${spec.needs} ${SKIP}`);
    return undefined;
  }
  const engine = new Engine(spec);
  try {
    engine.workloads = await engine.ask<WorkloadName[]>("workloads");
    return engine;
  } catch (e) {
    const lines = (e as Error).message.split("\n").filter((l) => l.trim() !== "");
    skipped.push(lines.find((l) => /Error: /.test(l)) ?? lines.slice(0, 3).join(" "));
    return undefined;
  }
}

export async function cpu(flags: ReadonlySet<string>): Promise<Report> {
  const folder = mkdtempSync(join(tmpdir(), "gradloom-bench-"));
  const skipped: string[] = [];
  const open: Engine[] = [];
  try {
    const starts = listOf(flags, "--engines");
    const [nodes = "both"] = listOf(flags, "--nodes") ?? [];
    const specs = engines(compileLimits(folder, skipped), nodes);
    for (const spec of specs.filter((e) => starts?.some((s) => e.name.startsWith(s)) ?? true)) {
      const engine = await openEngine(spec, skipped);
      if (engine !== undefined) open.push(engine);
    }
    const rows: Row[] = [];
    const only = listOf(flags, "--only");
    const wanted = (name: string): boolean => only === undefined || only.includes(name);
    for (const name of (Object.keys(WORKLOADS) as WorkloadName[]).filter(wanted)) {
      rows.push(...(await measure(name, open, flags.has("--busy"), skipped)));
    }
    for (const engine of open) engine.close();
    return { title: "cpu", rows: [...rows, ...(wanted("start") ? await startRows(folder) : [])], skipped };
  } finally {
    for (const engine of open) engine.close();
    rmSync(folder, { recursive: true });
  }
}

/** Undefined without a C compiler. */
function compileLimits(folder: string, skipped: string[]): string | undefined {
  const out = join(folder, "limits");
  const native = process.arch === "arm64" ? "-mcpu=native" : "-march=native";
  for (const compiler of ["clang", "gcc", "cc"]) {
    const args = ["-O2", native, "-ffp-contract=fast", join(here, "limits.c"), "-o", out, "-lpthread"];
    if (spawnSync(compiler, args).status === 0) return out;
  }
  skipped.push("the machine's limits: no C compiler (clang, gcc, cc) could compile cpu/limits.c");
  return undefined;
}

// ---- one workload on all engines ----

type Sample = readonly [wall: number, cpu: number];

async function measure(
  name: WorkloadName,
  all: readonly Engine[],
  busy: boolean,
  skipped: string[],
): Promise<Row[]> {
  return rowsOf(name, await figuresOf(name, all, busy, skipped));
}
/** The figures of one workload by engine; they alternate. */
export async function figuresOf(
  name: WorkloadName,
  all: readonly Engine[],
  busy: boolean,
  skipped: string[],
): Promise<ReadonlyMap<string, Summary>> {
  log(WORKLOADS[name].what);
  const times = new Map<Engine, number[]>();
  const one = ([wall, cpu]: Sample): number => (busy ? cpu : wall);
  for (const engine of all.filter((e) => e.workloads.includes(name))) {
    try {
      await engine.ask(`open ${name}`);
      await engine.ask(`run ${WARM_MS}`);
      times.set(engine, []);
    } catch (e) {
      skipped.push((e as Error).message.split("\n")[0] as string);
    }
  }
  for (let round = 0; round < ROUNDS; round++) {
    for (const [engine, list] of times) {
      if (round >= 2 && summarize(list).median > LONG_MS) continue;
      list.push(...(await engine.ask<Sample[]>(`run ${ROUND_MS}`)).map(one));
    }
  }
  for (const engine of times.keys()) await engine.ask("close");
  return new Map([...times].map(([e, list]) => [e.name, summarize(list)]));
}

function rowsOf(name: WorkloadName, figures: ReadonlyMap<string, Summary>): Row[] {
  const medians: Medians = Object.fromEntries([...figures].map(([n, f]) => [n, f.median]));
  return [...figures].map(([engine, figure]): Row => {
    const notes = [rate(name, figure.median), share(engine, medians), verdict(name, engine, medians)];
    const note = notes.filter((n) => n !== "").join("; ");
    return { what: `${WORKLOADS[name].what}: ${engine}`, ...figure, note };
  });
}
export function rate(name: WorkloadName, ms: number): string {
  const { flops = 0, bytes = 0 } = WORKLOADS[name] as { flops?: number; bytes?: number };
  if (flops > 0) return `${(flops / ms / 1e6).toFixed(1)} GFLOP/s`;
  return bytes > 0 ? `${(bytes / ms / 1e6).toFixed(1)} GB/s` : "";
}
function share(engine: string, medians: Medians): string {
  const limit = medians[/ 2 t(,|$)/.test(engine) ? "limit 2 t" : "limit 1 t"];
  const own = medians[engine];
  if (limit === undefined || own === undefined || engine.startsWith("limit")) return "";
  return `${((100 * limit) / own).toFixed(0)} % of the limit`;
}
function verdict(name: WorkloadName | "start", engine: string, medians: Medians): string {
  const promises = TARGETS.filter((t) => t.workload === name && t.engine === engine);
  return promises
    .map(({ what, met }) => {
      const [met1, ratio] = met(medians);
      const how = Number.isNaN(ratio) ? "not measured" : `${ratio.toFixed(2)}, ${met1 ? "met" : "MISSED"}`;
      return `${what}: ${how}`;
    })
    .join("; ");
}
