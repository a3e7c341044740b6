// What runs inside the page of `npm run bench -- page`: work, while messages and frames are counted.

import { Device, GlobalCounters, Tensor, TinyJit } from "gradloom";
import { gpt, lstm, mlp, mnist, own, type TrainStep } from "./models.ts";

const MODELS: Readonly<Record<string, () => TrainStep>> = {
  convnet: () => mnist(32),
  gpt: () => gpt(6),
  lstm: () => lstm(40),
};

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
  performance.mark("own"); // what asks for it
  await run();
  const seconds = (performance.now() - start) / 1000;
  look();
  going = false;
  return { seconds, longest, frames };
}

const repeat = async (step: TrainStep, times: number): Promise<void> => {
  for (let i = 0; i < times; i++) await (await step()).item();
};
const memoryOf = (): number =>
  (Device.get("WASM").allocator as unknown as { memory: WebAssembly.Memory }).memory.buffer.byteLength;

const page = {
  /** The first steps: all kernels are compiled. */
  firstSteps: (model: string, jitted: boolean) =>
    watched(async () => {
      const step = await own(MODELS[model] as () => TrainStep);
      await repeat(jitted ? new TinyJit(step) : step, jitted ? 3 : 2);
    }),
  async steps(kind: "mnist" | "mlp", jitted: boolean, times: number): Promise<Watched> {
    performance.mark("own"); // what asks for it
    const step = await own(() => (kind === "mnist" ? mnist(32) : mlp()));
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
  async memory(model: "mnist" | "mlp", steps: readonly number[]) {
    const step = model === "mnist" ? mnist(32) : mlp();
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
