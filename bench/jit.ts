// `npm run bench -- jit`: what a captured step costs. (a) 200 tiny kernels, each on the result of the one before: what the
// host pays to submit them, and how long until they are done, beside jax-js in the same run; (b) the training step of
// examples/beautiful_mnist.ts: the host's share of it; (c) its memory, with and without the planner.

import { Device, nn, Tensor, TinyJit } from "../src/index.ts";
import { type Report, type Row, summarize } from "./stats.ts";

const KERNELS = 200;
const SIDE = 4;
const BATCH = 128;

export async function jit(): Promise<Report> {
  const skipped: string[] = [];
  return { title: "jit", rows: [...(await chain(skipped)), ...(await mnist())], skipped };
}

const ms = async (fn: () => unknown): Promise<number> => {
  const start = performance.now();
  await fn();
  return performance.now() - start;
};
const matrix = (seed: number): number[][] =>
  Array.from({ length: SIDE }, (_, i) =>
    Array.from({ length: SIDE }, (_, j) => ((i * SIDE + j + seed) % 7) / 14),
  );

/** One call of a chain of products: until the host is free again, and until the result is there. */
interface Chain {
  readonly name: string;
  readonly call: () => Promise<{ host: number; all: number }>;
}

async function ours(): Promise<Chain> {
  const w = await new Tensor(matrix(1)).realize();
  const inputs = await Promise.all([2, 3].map((s) => new Tensor(matrix(s)).realize()));
  const step = new TinyJit((x: Tensor) => {
    let y = x;
    for (let i = 0; i < KERNELS; i++) y = y.dot(w);
    return y;
  });
  for (let i = 0; i < 3; i++) step.sync(inputs[i % 2] as Tensor);
  const kernels = step.jitCache.length;
  if (kernels !== KERNELS) throw new Error(`the chain has ${kernels} kernels, not ${KERNELS}`);
  const device = Device.get(Device.DEFAULT);
  let n = 0;
  return {
    name: "gradloom",
    call: async () => {
      const x = inputs[n++ % 2] as Tensor;
      const start = performance.now();
      step.sync(x);
      const host = performance.now() - start;
      await device.synchronize();
      return { host, all: performance.now() - start };
    },
  };
}

async function theirs(): Promise<Chain> {
  const { init, defaultDevice, jit: jaxJit, numpy: np } = await import("@jax-js/jax");
  await init("wasm");
  defaultDevice("wasm");
  const w = np.array(matrix(1));
  type Arr = typeof w;
  const f = jaxJit((x: Arr, by: Arr) => {
    let y = x;
    for (let i = 0; i < KERNELS; i++) y = np.dot(y, i === KERNELS - 1 ? by : by.ref);
    return y;
  });
  const inputs = [2, 3].map((s) => np.array(matrix(s)));
  const run = (i: number) => f((inputs[i % 2] as Arr).ref, w.ref) as Arr;
  for (let i = 0; i < 3; i++) await run(i).jsAsync();
  let n = 0;
  return {
    name: "jax-js (wasm, jit)",
    call: async () => {
      const start = performance.now();
      const y = run(n++);
      const host = performance.now() - start;
      await y.jsAsync();
      return { host, all: performance.now() - start };
    },
  };
}

async function chain(skipped: string[]): Promise<Row[]> {
  process.stderr.write(`a chain of ${KERNELS} kernels\n`);
  const chains = [await ours()];
  try {
    chains.push(await theirs());
  } catch (e) {
    skipped.push(`the chain on jax-js: ${(e as Error).message.split("\n")[0]} (npm install --prefix bench)`);
  }
  const found = chains.map(() => ({ host: [] as number[], all: [] as number[] }));
  for (let round = 0; round < 300; round++) {
    for (const [i, c] of chains.entries()) {
      const { host, all } = await c.call();
      found[i]?.host.push(host);
      found[i]?.all.push(all);
    }
  }
  return chains.flatMap(({ name }, i): Row[] => {
    const [host, all] = [summarize(found[i]?.host ?? []), summarize(found[i]?.all ?? [])];
    const each = ({ median }: { median: number }) => `${((1000 * median) / KERNELS).toFixed(2)} µs a kernel`;
    const [x, y] = [found[i], found[0]];
    const ratio = (summarize(x?.all ?? []).median / summarize(y?.all ?? []).median).toFixed(1);
    const limits = i === 0 ? [{ limit: KERNELS / 1000 }, { limit: (4 * KERNELS) / 1000 }] : [{}, {}];
    return [
      { what: `(a) ${KERNELS} kernels: host, ${name}`, ...host, ...limits[0], note: each(host) },
      {
        what: `(a) ${KERNELS} kernels: until done, ${name}`,
        ...all,
        ...limits[1],
        note: `${each(all)}${i === 0 ? "" : `; ${ratio} times gradloom's`}`,
      },
    ];
  });
}

const convnet = () =>
  new nn.Sequential(
    new nn.Conv2d(1, 32, 5),
    (x) => x.relu(),
    new nn.Conv2d(32, 32, 5),
    (x) => x.relu(),
    new nn.BatchNorm2d(32),
    (x) => x.maxPool2d(2),
    new nn.Conv2d(32, 64, 3),
    (x) => x.relu(),
    new nn.Conv2d(64, 64, 3),
    (x) => x.relu(),
    new nn.BatchNorm2d(64),
    (x) => x.maxPool2d(2),
    (x) => x.flatten(1),
    new nn.Linear(576, 10),
  );

async function mnist(): Promise<Row[]> {
  process.stderr.write("the training step\n");
  Tensor.manualSeed(1);
  const model = convnet();
  const optimizer = new nn.optim.Adam(nn.getParameters(model));
  const step = new TinyJit(async (x: Tensor, y: Tensor) => {
    const loss = Tensor.train(() => model.forward(x)).crossEntropy(y);
    optimizer.zeroGrad();
    loss.backward();
    await optimizer.step(loss);
    return loss;
  });
  const batch = async (): Promise<[Tensor, Tensor]> => {
    const [x, y] = [Tensor.rand(BATCH, 1, 28, 28), Tensor.randint(0, 10, [BATCH])];
    await Tensor.realize(x, y);
    return [x, y];
  };
  const eager = [
    await ms(async () => step(...(await batch()))),
    await ms(async () => step(...(await batch()))),
  ];
  const device = Device.get(Device.DEFAULT);
  const [host, all]: [number[], number[]] = [[], []];
  for (let i = 0; i < 6; i++) {
    const args = await batch();
    await device.synchronize();
    const start = performance.now();
    step.sync(...args);
    host.push(performance.now() - start);
    await device.synchronize();
    all.push(performance.now() - start);
  }
  const { memory } = step;
  if (memory === undefined) throw new Error("nothing was captured");
  const [h, a] = [summarize(host), summarize(all)];
  const share = (100 * memory.totalPlanned) / memory.totalApart;
  const mb = (n: number): string => `${(n / 1e6).toFixed(1)} MB`;
  return [
    {
      what: `(b) MNIST step, batch ${BATCH}: call 0, call 1`,
      ...summarize(eager),
      note: "compiling; capturing",
    },
    { what: `(b) MNIST step, batch ${BATCH}: a replay`, ...a, note: `${step.jitCache.length} kernels` },
    {
      what: `(b) MNIST step, batch ${BATCH}: the host's part of it`,
      ...h,
      limit: Number((0.03 * a.median).toPrecision(3)),
      note: `${((100 * h.median) / a.median).toFixed(2)} %`,
    },
    {
      what: `(c) MNIST step: planned memory, of ${mb(memory.totalApart)} (of what only kernels see: ${mb(memory.planned)} of ${mb(memory.apart)})`,
      ...summarize([share]),
      unit: "%",
      limit: 45,
    },
  ];
}
