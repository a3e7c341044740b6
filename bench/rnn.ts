// `npm run bench -- rnn`: a training step (forward, backward, Adam) of nn.LSTM: 40 steps, batch 32, 128
// features in and 128 hidden. Each device trains in processes of its own, so that every first step is cold.
// Called as `rnn.ts STEPS`, this file is such a process and prints samples. DEV is the device.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { GlobalCounters, nn, Tensor, TinyJit } from "../src/index.ts";
import { type Report, type Row, summarize } from "./stats.ts";

const [TIME, BATCH, INPUT, HIDDEN, CLASSES] = [40, 32, 128, 128, 10];
const PROCESSES = 2;
const STEPS = 20;
const DEVICES = ["WASM", "CLANG"] as const;

/** Milliseconds and kernels of each step: without and with a jit; and the time of all cores in it. */
interface Run {
  readonly eagerCpu: readonly number[];
  readonly jittedCpu: readonly number[];
  readonly eager: readonly number[];
  readonly jitted: readonly number[];
  readonly kernels: number;
  /** different kernels among them */
  readonly kinds: number;
}

export async function rnn(): Promise<Report> {
  const rows: Row[] = [];
  const skipped: string[] = [];
  for (const device of DEVICES) {
    process.stderr.write(`LSTM on ${device}: ${2 * STEPS} steps in each of ${PROCESSES} processes\n`);
    const runs = Array.from({ length: PROCESSES }, () => runOf(device));
    const failed = runs.find((r) => typeof r === "string");
    if (failed === undefined) rows.push(...rowsOf(device, runs as Run[]));
    else skipped.push(`LSTM on ${device}: ${failed}`);
  }
  return { title: "rnn", rows, skipped };
}

function runOf(device: string): Run | string {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ["--import", "tsx", import.meta.filename, String(STEPS)],
    {
      cwd: join(import.meta.dirname, ".."),
      encoding: "utf8",
      env: { ...process.env, DEV: device },
    },
  );
  return status === 0 ? JSON.parse(stdout) : (stderr.match(/^.*Error.*$/m)?.[0] ?? stderr);
}

function rowsOf(device: string, runs: readonly Run[]): Row[] {
  const what = `LSTM ${TIME} x ${BATCH} x ${HIDDEN} on ${device}`;
  const [{ kernels, kinds }] = runs as [Run];
  const first = summarize(runs.map((r) => r.eager[0] as number));
  const later = summarize(runs.flatMap((r) => r.eager.slice(1)));
  // call 0 runs the function, call 1 captures it
  const jitted = summarize(runs.flatMap((r) => r.jitted.slice(2)));
  const cpu = (samples: readonly number[]): string =>
    `${summarize(samples).median.toFixed(0)} ms of all cores`;
  return [
    {
      what: `${what}: the first step of a process`,
      ...first,
      limit: 2000,
      note: `${kinds} different kernels, ${cpu(runs.map((r) => r.eagerCpu[0] as number))}`,
    },
    {
      what: `${what}: a step, eager`,
      ...later,
      limit: 150,
      note: `${kernels} kernels, ${cpu(runs.flatMap((r) => r.eagerCpu.slice(1)))}`,
    },
    {
      what: `${what}: a step, jitted`,
      ...jitted,
      limit: 20,
      note: cpu(runs.flatMap((r) => r.jittedCpu.slice(2))),
    },
  ];
}

// ---- in a process of its own ----

async function measure(steps: number): Promise<Run> {
  Tensor.manualSeed(1);
  const model = { lstm: new nn.LSTM(INPUT, HIDDEN), head: new nn.Linear(HIDDEN, CLASSES) };
  const optimizer = new nn.optim.Adam(nn.getParameters(model));
  const [x, y] = [Tensor.randn(TIME, BATCH, INPUT), Tensor.randint(0, CLASSES, [BATCH])];
  await Tensor.realize(x, y, ...nn.getParameters(model));
  const step = async (x: Tensor, y: Tensor): Promise<Tensor> => {
    const [output] = model.lstm.forward(x);
    const loss = model.head.forward(output.select(0, TIME - 1)).crossEntropy(y);
    optimizer.zeroGrad();
    loss.backward();
    await optimizer.step(loss);
    return loss;
  };
  const timed = async (run: typeof step, ms: number[], cpu: number[]): Promise<void> => {
    const [start, used] = [performance.now(), process.cpuUsage()];
    const loss = Number(await (await run(x, y)).item());
    const { user, system } = process.cpuUsage(used);
    if (!Number.isFinite(loss)) throw new Error(`the loss is ${loss}`);
    ms.push(performance.now() - start);
    cpu.push((user + system) / 1000);
  };
  const names = new Set<string>();
  const [eager, eagerCpu]: [number[], number[]] = [[], []];
  for (let i = 0; i < steps; i++) {
    GlobalCounters.reset();
    await timed(step, eager, eagerCpu);
  }
  const kernels = GlobalCounters.kernelCount;
  const jit = new TinyJit(step);
  const [jitted, jittedCpu]: [number[], number[]] = [[], []];
  for (let i = 0; i < steps; i++) await timed(jit, jitted, jittedCpu);
  for (const { runner } of jit.jitCache) names.add(runner.name);
  return { eager, eagerCpu, jitted, jittedCpu, kernels, kinds: names.size };
}

if (process.argv[1] === import.meta.filename) {
  console.log(JSON.stringify(await measure(Number(process.argv[2]))));
}
