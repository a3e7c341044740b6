// `npm run bench -- jit`: what a captured step costs. (a) 200 tiny kernels, each on the previous result: the
// host time to submit them and the time until they are done, next to jax-js in the same run; (b) the training
// step of examples/beautiful_mnist.ts: the host's share of its time; (c) its memory with and without the
// planner; (d) two devices: how much of the copy time overlaps with kernels in the trace.

import { Convnet } from "../examples/convnet.ts";
import { Device, nn, profiler, type Span, Tensor, TinyJit, withEnv } from "../src/index.ts";
import { type Report, type Row, summarize } from "./stats.ts";

const KERNELS = 200;
const SIDE = 4;
const BATCH = 128;

export async function jit(): Promise<Report> {
  const skipped: string[] = [];
  return { title: "jit", rows: [...(await chain(skipped)), ...(await mnist()), await overlap()], skipped };
}

const matrix = (seed: number): number[][] =>
  Array.from({ length: SIDE }, (_, i) =>
    Array.from({ length: SIDE }, (_, j) => ((i * SIDE + j + seed) % 7) / 14),
  );

/** One call of a chain of products: time until the host is free again, and until the result is there. */
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

async function mnist(): Promise<Row[]> {
  process.stderr.write("the training step\n");
  Tensor.manualSeed(1);
  const model = new Convnet();
  const optimizer = new nn.optim.Adam(nn.getParameters(model));
  const body = async (x: Tensor, y: Tensor) => {
    const loss = Tensor.train(() => model.forward(x)).crossEntropy(y);
    optimizer.zeroGrad();
    loss.backward();
    await optimizer.step(loss);
    return loss;
  };
  const step = new TinyJit(body);
  const device = Device.get(Device.DEFAULT);
  const batch = async (): Promise<[Tensor, Tensor]> => {
    const [x, y] = [
      Tensor.randint(0, 256, [BATCH, 1, 28, 28], { dtype: "uint8" }),
      Tensor.randint(0, 10, [BATCH]),
    ];
    await Tensor.realize(x, y);
    await device.synchronize();
    return [x, y];
  };
  /** Milliseconds until the host is free again, and until the device is. */
  const timed = async (run: (x: Tensor, y: Tensor) => unknown): Promise<[host: number, all: number]> => {
    const args = await batch();
    const start = performance.now();
    await run(...args);
    const host = performance.now() - start;
    await device.synchronize();
    return [host, performance.now() - start];
  };
  const first = [await timed(step), await timed(step)].map(([, all]) => all);
  const [eager, replays]: [[number, number][], [number, number][]] = [[], []];
  for (let i = 0; i < 6; i++) {
    eager.push(await timed(body));
    replays.push(await timed(step));
  }
  const { memory } = step;
  if (memory === undefined) throw new Error("nothing was captured");
  const part = (runs: [number, number][], i: 0 | 1) => summarize(runs.map((r) => r[i]));
  const [h, a] = [part(replays, 0), part(replays, 1)];
  const share = (100 * memory.totalPlanned) / memory.totalApart;
  const mb = (n: number): string => `${(n / 1e6).toFixed(1)} MB`;
  const what = `(b) MNIST step, batch ${BATCH}`;
  return [
    { what: `${what}: call 0, call 1`, ...summarize(first), note: "compiles; captures" },
    { what: `${what}: eager`, ...part(eager, 1) },
    { what: `${what}: a replay`, ...a, note: `${step.jitCache.length} kernels` },
    { what: `${what}: the host's part, eager`, ...part(eager, 0) },
    {
      what: `${what}: the host's part of a replay`,
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

/** The time in which a span overlaps with one of the others, in microseconds. */
function beside(span: Span, others: readonly Span[]): number {
  const parts = others
    .map((o) => [Math.max(o.start, span.start), Math.min(o.end, span.end)] as const)
    .filter(([from, to]) => to > from)
    .sort(([a], [b]) => a - b);
  let [total, until] = [0, 0];
  for (const [from, to] of parts) {
    total += Math.max(0, to - Math.max(from, until));
    until = Math.max(until, to);
  }
  return total;
}

/** Each of two devices multiplies matrices while the other sends the weights of its next product. */
async function overlap(): Promise<Row> {
  process.stderr.write("two devices\n");
  const devices = ["WASM", "WASM:1"];
  const side = 384;
  const weights = await Promise.all(devices.map((device) => Tensor.rand(4 * 2 ** 20, { device }).realize()));
  const step = new TinyJit((a: Tensor, b: Tensor) =>
    [a, b].map((x, i) => {
      const moved = (weights[1 - i] as Tensor).to(devices[i] as string);
      let y = x;
      for (let k = 0; k < 3; k++) y = y.dot(x).contiguous();
      return y.sum().add(moved.sum());
    }),
  );
  const shares: number[] = [];
  await withEnv({ PROFILE: 1 }, async () => {
    const inputs = devices.map((device) => Tensor.rand(side, side, { device }));
    await Tensor.realize(...inputs);
    for (let i = 0; i < 23; i++) {
      profiler.reset();
      step.sync(...(inputs as [Tensor, Tensor]));
      for (const d of devices) await Device.get(d).synchronize();
      if (i < 3) continue;
      const { spans } = profiler;
      const copies = spans.filter((s) => s.kind === "copy" && s.device !== "host");
      const kernels = spans.filter((s) => s.kind === "kernel");
      const all = copies.reduce((sum, s) => sum + s.end - s.start, 0);
      shares.push((100 * copies.reduce((sum, s) => sum + beside(s, kernels), 0)) / all);
    }
    profiler.reset();
  });
  return {
    what: "(d) two devices: the part of the copies' time with kernels beside it, from the trace",
    ...summarize(shares),
    unit: "%",
    note: "copies of 16 MB, products of 384 × 384",
  };
}
