// `npm run bench -- busy`: what another busy process costs. Captured steps and single kernels on WASM and
// CLANG, with one thread and with two, alone and beside a process that computes without end. The four cases
// alternate. With two threads nothing may take longer than LIMIT times as long as with one.

import { type ChildProcess, spawn } from "node:child_process";
import { WORKLOADS, type WorkloadName } from "./cpu/workloads.ts";
import { Engine, ours } from "./cpu.ts";
import { log } from "./processes.ts";
import { type Report, type Row, summarize } from "./stats.ts";

const NAMES: readonly WorkloadName[] = ["mnist", "mlp", "matmul", "softmax", "relu", "conv"];
const LIMIT = 1.15;
const WARM_MS = 1500;
/** Each sample covers many slices of the scheduler. */
const ROUND_MS = 700;
/** Until the runtime has noticed the other load. */
const SETTLE_MS = 300;
const ROUNDS = 5;
const LOADS = ["quiet", "busy"] as const;

export const BUSY_FLAGS: Readonly<Record<string, string>> = {
  "--only=WORKLOAD,…": `only these workloads: ${NAMES.join(", ")}`,
  "--rounds=N": `how often the cases alternate, ${ROUNDS} by default`,
};
const flagValue = (flags: ReadonlySet<string>, name: string): string | undefined =>
  [...flags].find((f) => f.startsWith(`${name}=`))?.slice(name.length + 1);

/** A process that computes until it is ended; in a session of its own, as if from another terminal. */
function startLoad(): Promise<ChildProcess> {
  return new Promise((resolve, reject) => {
    const load = spawn(process.execPath, ["-e", "console.log(1); for (;;);"], {
      stdio: ["ignore", "pipe", "ignore"],
      detached: true,
    });
    load.once("error", reject);
    load.stdout.once("data", () => resolve(load));
  });
}

export async function busy(flags: ReadonlySet<string>): Promise<Report> {
  const rows: Row[] = [];
  const only = flagValue(flags, "--only")?.split(",");
  const rounds = Number(flagValue(flags, "--rounds") ?? ROUNDS);
  for (const device of ["WASM", "CLANG"]) {
    const specs = ours(process.execPath, "").filter(({ name }) => name.startsWith(device));
    for (const name of NAMES.filter((n) => only?.includes(n) ?? true)) {
      log(`${device}: ${name}`);
      rows.push(...(await measure(name, specs, rounds)));
    }
  }
  return { title: "busy", rows, skipped: [] };
}

async function measure(name: WorkloadName, specs: ReturnType<typeof ours>, rounds: number): Promise<Row[]> {
  const engines = specs.map((spec) => new Engine(spec));
  const times = new Map<string, number[]>();
  const keyOf = (engine: Engine, load: string): string => `${engine.name}, ${load}`;
  try {
    for (const engine of engines) {
      await engine.ask(`open ${name}`);
      await engine.ask(`run ${WARM_MS}`);
      for (const load of LOADS) times.set(keyOf(engine, load), []);
    }
    for (let round = 0; round < rounds; round++) {
      for (const kind of LOADS) {
        const load = kind === "busy" ? await startLoad() : undefined;
        try {
          for (const engine of round % 2 === 0 ? engines : engines.toReversed()) {
            await engine.ask(`run ${SETTLE_MS}`);
            const samples = await engine.ask<[wall: number, cpu: number][]>(`run ${ROUND_MS}`);
            // the mean, not the median: one run that waits long counts
            const mean = samples.reduce((sum, [wall]) => sum + wall, 0) / samples.length;
            times.get(keyOf(engine, kind))?.push(mean);
          }
        } finally {
          load?.kill();
        }
      }
    }
  } finally {
    for (const engine of engines) engine.close();
  }
  return LOADS.flatMap((load) =>
    engines.map((engine, i): Row => {
      const figures = summarize(times.get(keyOf(engine, load)) ?? []);
      const what = `${WORKLOADS[name].what}: ${keyOf(engine, load)}`;
      if (i === 0) return { what, ...figures };
      const one = summarize(times.get(keyOf(engines[0] as Engine, load)) ?? []).median;
      const note = `${(figures.median / one).toFixed(2)} x one thread`;
      return { what, ...figures, limit: Number((LIMIT * one).toPrecision(4)), note };
    }),
  );
}
