// What runs inside the page of `npm run bench -- page`: work, while messages and frames are counted.

import { Device, GlobalCounters, nn, Tensor, TinyJit } from "gradloom";
import "gradloom/all";
import { Convnet } from "../../examples/convnet.ts";

/** How the page fared meanwhile. */
export interface Watched {
  readonly seconds: number;
  /** milliseconds between two messages that the page sent itself, at most */
  readonly longest: number;
  readonly frames: number;
}

/** Runs something while messages go round and frames are drawn. */
async function watched(run: () => Promise<unknown>): Promise<Watched> {
  let [longest, frames, going] = [0, 0, true];
  let last = performance.now();
  const { port1, port2 } = new MessageChannel();
  const look = (): void => {
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
  };
  port1.onmessage = () => {
    look();
    // not at once: a message that waits for another would take all the time
    if (going) setTimeout(() => port2.postMessage(0), 1);
  };
  const frame = (): void => {
    frames++;
    if (going) requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  port2.postMessage(0);
  await new Promise((resolve) => setTimeout(resolve, 20));
  longest = 0;
  frames = 0;
  const start = performance.now();
  last = start;
  await run();
  const seconds = (performance.now() - start) / 1000;
  look();
  going = false;
  return { seconds, longest, frames };
}

function mnist(batch: number): () => Promise<Tensor> {
  Tensor.manualSeed(1);
  const model = new Convnet();
  const optimizer = new nn.optim.Adam(nn.getParameters(model));
  const [digits, labels] = [Tensor.rand(512, 1, 28, 28), Tensor.randint(0, 10, [512])];
  return async () => {
    const { x, y } = nn.datasets.sample({ x: digits, y: labels }, batch);
    const loss = Tensor.train(() => model.forward(x)).crossEntropy(y);
    optimizer.zeroGrad();
    loss.backward();
    await optimizer.step(loss);
    return loss;
  };
}
function mlp(): () => Promise<Tensor> {
  Tensor.manualSeed(1);
  const model = new nn.Sequential(new nn.Linear(64, 64), (x) => x.relu(), new nn.Linear(64, 10));
  const optimizer = new nn.optim.Adam(nn.getParameters(model));
  const [x, y] = [Tensor.rand(32, 64), Tensor.randint(0, 10, [32])];
  return async () => {
    optimizer.zeroGrad();
    const loss = model.forward(x).crossEntropy(y).backward();
    await optimizer.step(loss);
    return loss;
  };
}
const repeat = async (step: () => Promise<Tensor>, times: number): Promise<void> => {
  for (let i = 0; i < times; i++) await (await step()).item();
};
const memoryOf = (): number =>
  (Device.get("WASM").allocator as unknown as { memory: WebAssembly.Memory }).memory.buffer.byteLength;

const page = {
  /** The first steps: all kernels are compiled. */
  firstSteps: (batch: number) => watched(() => repeat(mnist(batch), 2)),
  async steps(kind: "mnist" | "mlp", jitted: boolean, times: number): Promise<Watched> {
    const step = kind === "mnist" ? mnist(32) : mlp();
    const run = jitted ? new TinyJit(step) : step;
    await repeat(run, 3);
    return watched(() => repeat(run, times));
  },
  /** Steps in which nothing is read. */
  async product(n: number, times: number): Promise<Watched> {
    const a = await Tensor.rand(n, n).realize();
    await a.matmul(a).realize();
    return watched(async () => {
      for (let i = 0; i < times; i++) await a.matmul(a).realize();
      await a.matmul(a).sum().item();
    });
  },
  /** Bytes of WebAssembly memory after each of some eager steps, and what is in use. */
  async memory(steps: readonly number[]) {
    const step = mnist(32);
    const rows: { at: number; memory: number; used: number; buffers: number; seconds: number }[] = [];
    let done = 0;
    const start = performance.now();
    for (const at of steps) {
      await repeat(step, at - done);
      done = at;
      const seconds = (performance.now() - start) / 1000;
      rows.push({
        at,
        memory: memoryOf(),
        used: GlobalCounters.memUsed,
        buffers: GlobalCounters.buffers,
        seconds,
      });
    }
    return rows;
  },
  /** Allocates and drops, again and again. */
  async large(bytes: number, times: number) {
    for (let i = 0; i < times; i++)
      await Tensor.full([bytes / 4], i)
        .contiguous()
        .realize();
    return memoryOf();
  },
};
export type BenchPage = typeof page;
Object.assign(globalThis, { gradloomBench: page });
