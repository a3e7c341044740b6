// What deep.ts measures, inside one process: `samples.mjs PART ARG` prints milliseconds as JSON. Bundled like
// the package and run in plain node, so that no loader of TypeScript is part of the figures.

import "../../src/tensor/ondemand/all.ts";
import { realize } from "../../src/engine/realize.ts";
import { toposort } from "../../src/helpers.ts";
import { nn, Tensor, TinyJit } from "../../src/index.ts";
import { GRAPHS, lstm } from "./graphs.ts";

/** Milliseconds, and for graphs how many nodes there were. */
export interface Measured {
  readonly ms: readonly number[];
  readonly nodes?: number;
  /** processor time of the process, in ms: on a busy machine the better figure */
  readonly cpu: readonly number[];
}

const cpuNow = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};
async function repeated(rounds: number, work: (i: number) => unknown): Promise<Measured> {
  const [ms, cpu]: [number[], number[]] = [[], []];
  for (let i = 0; i < rounds; i++) {
    const [start, before] = [performance.now(), cpuNow()];
    await work(i);
    ms.push(performance.now() - start);
    cpu.push(cpuNow() - before);
  }
  return { ms, cpu };
}

/** Builds and realises a graph of about `n` nodes. */
async function graph(name: string, n: number): Promise<Measured> {
  const build = GRAPHS[name];
  if (build === undefined) throw new Error(`no graph is called ${name}`);
  let nodes = 0;
  await realize(build(40).map((t) => t.lazydata)); // opens the device
  const result = await repeated(1, async () => {
    const outs = build(n).map((t) => t.lazydata);
    nodes = toposort(
      outs.map((o) => o.base),
      (x) => (x.srcs ?? []).map((s) => s.base),
    ).length;
    await realize(outs);
  });
  return { ...result, nodes };
}

const [STEPS, BATCH, WIDTH] = [40, 32, 64];
async function lstmSteps(jitted: boolean, rounds: number): Promise<Measured> {
  Tensor.manualSeed(1);
  const weights = {
    wx: Tensor.randn(WIDTH, 4 * WIDTH).mul(0.1),
    wh: Tensor.randn(WIDTH, 4 * WIDTH).mul(0.1),
    b: Tensor.zeros(4 * WIDTH).contiguous(),
  };
  const params = Object.values(weights);
  const [x, y] = [Tensor.randn(STEPS, BATCH, WIDTH), Tensor.randn(BATCH, WIDTH)];
  await Tensor.realize(...params, x, y);
  for (const p of params) p.requiresGrad = true;
  const optimizer = new nn.optim.Adam(params);
  const step = async (input: Tensor, target: Tensor): Promise<Tensor> => {
    const loss = lstm(weights, input, target);
    optimizer.zeroGrad();
    loss.backward();
    await optimizer.step(loss);
    return loss;
  };
  const run = jitted ? new TinyJit(step) : step;
  return repeated(rounds, async () => (await run(x, y)).item());
}

async function flips(n: number): Promise<Measured> {
  let s = await Tensor.rand(1024).realize();
  return repeated(1, async () => {
    for (let i = 0; i < n; i++) s = s.add(s.flip(0)).mul(0.5);
    await s.realize();
  });
}

/** A step of deep Q-learning, eager: two networks, a gather, the smooth L1 loss, Adam. */
async function dqn(rounds: number): Promise<Measured> {
  Tensor.manualSeed(1);
  const network = () =>
    new nn.Sequential(
      new nn.Linear(4, 128),
      (x) => x.relu(),
      new nn.Linear(128, 128),
      (x) => x.relu(),
      new nn.Linear(128, 2),
    );
  const [policy, target] = [network(), network()];
  const optimizer = new nn.optim.Adam(nn.getParameters(policy));
  const [state, next] = [Tensor.randn(128, 4), Tensor.randn(128, 4)];
  const [action, reward] = [Tensor.randint(0, 2, [128, 1]), Tensor.randn(128)];
  await Tensor.realize(state, next, action, reward, ...nn.getParameters(target));
  return repeated(rounds, async () => {
    const q = policy.forward(state).gather(1, action).squeeze(1);
    const best = Tensor.noGrad(() => target.forward(next).max(1).mul(0.99).add(reward));
    const loss = q.smoothL1Loss(best);
    optimizer.zeroGrad();
    loss.backward();
    await optimizer.step(loss);
  });
}

/** Host time of one eager op whose kernel is compiled, over many. */
async function eager(rounds: number): Promise<Measured> {
  const [a, b] = [await Tensor.rand(16).realize(), await Tensor.rand(16).realize()];
  const many = 1000;
  const { ms, cpu } = await repeated(rounds, () => {
    for (let i = 0; i < many; i++) a.add(b).realizeSync();
  });
  return { ms: ms.map((x) => x / many), cpu: cpu.map((x) => x / many) };
}

async function topk(rounds: number): Promise<Measured> {
  const x = await Tensor.rand(32_000).realize();
  return repeated(rounds, async () => Tensor.realize(...x.topk(50)));
}
async function multinomial(rounds: number): Promise<Measured> {
  const x = await Tensor.rand(32_000).realize();
  return repeated(rounds, () => x.multinomial(1).realize());
}
async function svd(rounds: number): Promise<Measured> {
  const x = await Tensor.randn(64, 64).realize();
  return repeated(rounds, async () => Tensor.realize(...x.svd()));
}

const PARTS: Readonly<Record<string, (rounds: number) => Promise<Measured>>> = {
  "LSTM, eager": (n) => lstmSteps(false, n),
  "LSTM, jitted": (n) => lstmSteps(true, n),
  flips,
  dqn,
  eager,
  topk,
  multinomial,
  svd,
};

const [part = "", count = "1"] = process.argv.slice(2);
console.log(JSON.stringify(await (PARTS[part]?.(Number(count)) ?? graph(part, Number(count)))));
