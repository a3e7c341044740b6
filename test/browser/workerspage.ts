// What runs inside the page of the workers' test: large kernels while a timer counts, in a page that may share memory.

import { Device, Tensor } from "gradloom";

interface Hardware {
  readonly memory: { readonly shared: boolean };
  readonly workers: { readonly present: boolean; readonly ids: readonly number[] };
}
const hardware = (): Hardware => (Device.get("WASM") as unknown as { hardware: Hardware }).hardware;

const page = {
  /** Products of large matrices; how often a timer fired meanwhile, and the longest it had to wait. */
  async products(n: number, rounds: number) {
    const a = await Tensor.full([n, n], 0.5).contiguous().realize();
    const b = await Tensor.full([n, n], 2).contiguous().realize();
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
    const values: number[] = [];
    for (let i = 0; i < rounds; i++) values.push(Number(await a.matmul(b).sum().item()));
    const ms = performance.now() - start;
    look();
    clearInterval(timer);
    const { memory, workers } = hardware();
    return {
      values,
      ms,
      ticks,
      longest,
      shared: memory.shared,
      workers: workers.ids.length,
      up: workers.present,
    };
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
  sync(n: number) {
    const a = Tensor.full([n, n], 1).contiguous().realizeSync();
    return Number(a.matmul(a).sum().itemSync());
  },
};

export type WorkersPage = typeof page;
Object.assign(globalThis, { gradloomWorkers: page });
