// What runs inside the page of the workers' test: large kernels while a timer counts,
// in a page that may share memory.

import { Device, nn, Tensor, TinyJit } from "gradloom";
import "gradloom/losses";
import { setSlice } from "../../src/pace.ts";
import { device, forever, ints, launch } from "../devices/wasm/kernels.ts";

interface Hardware {
  readonly memory: { readonly shared: boolean };
  readonly computing: boolean;
  readonly workers: { readonly present: boolean; readonly ids: readonly number[] };
}
const hardware = (): Hardware => (Device.get("WASM") as unknown as { hardware: Hardware }).hardware;

/** Runs something while a timer counts: how often it fired, and the longest it had to wait. */
async function timed<T>(run: () => Promise<T>) {
  let [ticks, longest, last] = [0, 0, performance.now()];
  const look = () => {
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
  };
  const timer = setInterval(() => {
    ticks++;
    look();
  }, 4);
  const start = performance.now();
  const result = await run();
  const ms = performance.now() - start;
  look();
  clearInterval(timer);
  return { result, ms, ticks, longest };
}

/** The workers of the page, the dead ones too: no event of a worker says that it was terminated. */
const made: Worker[] = [];
let isHeard = true;
let comingUp = Infinity;
globalThis.Worker = class extends Worker {
  constructor(...args: ConstructorParameters<typeof Worker>) {
    super(...args);
    made.push(this);
  }
  /** What it is to run does not reach one that is kept from coming up. */
  override postMessage(...args: unknown[]): void {
    if (made.indexOf(this) < comingUp) super.postMessage(...(args as [unknown]));
  }
  /** A worker that is ended at once is not heard: so the message of its start may be lost. */
  override set onmessage(listen: Worker["onmessage"]) {
    if (isHeard) super.onmessage = listen;
  }
};

const page = {
  /**
   * Ends all workers while one is in a kernel; what who waits heard, and a product afterwards. `couldSay`:
   * they could say before that they had come up. Only the first `up` of them did.
   */
  async killed(couldSay: boolean, up: number) {
    isHeard = couldSay;
    comingUp = up;
    await page.products(64, 1);
    while (!hardware().workers.present) await new Promise((resolve) => setTimeout(resolve, 5));
    const d = device("WASM");
    launch(forever(d, "endless"), [ints("WASM", [0])]);
    while (!hardware().computing) await new Promise((resolve) => setTimeout(resolve, 1));
    const heard = Promise.resolve(d.synchronize()).then(String, String);
    for (const worker of made.splice(0)) worker.terminate();
    isHeard = true;
    comingUp = Infinity;
    const said = await heard;
    // the page itself computes a product whose worker turns out to be gone; new ones start with the next
    let after = await page.products(640, 1);
    for (let i = 0; i < 20 && made.length === 0; i++) after = await page.products(640, 1);
    return { heard: said, after, fresh: made.length };
  },
  /** Products of large matrices; how often a timer fired meanwhile, and the longest it had to wait. */
  async products(n: number, rounds: number) {
    const a = await Tensor.full([n, n], 0.5).contiguous().realize();
    const b = await Tensor.full([n, n], 2).contiguous().realize();
    const { result: values, ...times } = await timed(async () => {
      const values: number[] = [];
      for (let i = 0; i < rounds; i++) values.push(Number(await a.matmul(b).sum().item()));
      return values;
    });
    const { memory, workers } = hardware();
    return {
      values,
      ...times,
      shared: memory.shared,
      workers: workers.ids.length,
      up: workers.present,
    };
  },
  /** A training step, eager or captured: the losses, and how the timer fared from the third step on. */
  async training(jitted: boolean, steps: number) {
    Tensor.manualSeed(1);
    const model = new nn.Sequential(new nn.Linear(512, 512), (x) => x.relu(), new nn.Linear(512, 10));
    const optimizer = new nn.optim.Adam(nn.getParameters(model));
    let runs = 0;
    const body = async (x: Tensor, y: Tensor) => {
      runs++;
      optimizer.zeroGrad();
      const loss = model.forward(x).crossEntropy(y).backward();
      await optimizer.step(loss);
      return loss;
    };
    const step = jitted ? new TinyJit(body) : body;
    const once = async () =>
      Number(await (await step(Tensor.rand(256, 512), Tensor.randint(0, 10, [256]))).item());
    const losses = [await once(), await once()];
    const { result, ...times } = await timed(async () => {
      const later: number[] = [];
      for (let i = 2; i < steps; i++) later.push(await once());
      return later;
    });
    return { losses: [...losses, ...result], runs, ...times };
  },
  /** How often a message of the page came through while steps were trained, with a slice for each part. */
  async messages(jitted: boolean, steps: number) {
    const { port1, port2 } = new MessageChannel();
    let messages = 0;
    port1.onmessage = () => {
      messages++;
      port2.postMessage(0);
    };
    port2.postMessage(0);
    setSlice(0);
    const { losses } = await page.training(jitted, steps);
    setSlice(10);
    port1.close();
    return { messages, losses };
  },
  /** Two devices, each with work of its own, and a copy between them. */
  async twoDevices() {
    const x = await Tensor.full([128, 128], 1).contiguous().realize();
    const y = x
      .matmul(x)
      .to("WASM:1")
      .add(1)
      .matmul(Tensor.full([128, 128], 1, { device: "WASM:1" }));
    return Number(await y.to("WASM").sum().item());
  },
  load: async (address: string) => Object.keys(await nn.safeLoad(address)).join(" "),
  sync(n: number) {
    const a = Tensor.full([n, n], 1).contiguous().realizeSync();
    return Number(a.matmul(a).sum().itemSync());
  },
};

export type WorkersPage = typeof page;
Object.assign(globalThis, { gradloomWorkers: page });
