// Values that several runs compute: they are stored by the third, if reading them is cheaper. Kernels are
// counted; what stays cheap, is a small part or was asked for twice only is computed as before.

import { GlobalCounters, nn, scan, Tensor, TinyJit } from "gradloom";
import { describe, expect, test } from "vitest";
import { ready } from "./count.ts";

const isStored = (t: Tensor): boolean => t.lazydata.base.realized !== undefined;
async function kernelsOf(work: () => Promise<unknown>): Promise<number> {
  GlobalCounters.reset();
  await work();
  return GlobalCounters.kernelCount;
}

describe("data made by lazy ops and read in every step", () => {
  /** The kernels of each step of a regression. */
  async function regression(realized: boolean): Promise<{ counts: number[]; loss: number }> {
    Tensor.manualSeed(3);
    const x = Tensor.rand(500).mul(2).sub(1);
    const y = x.mul(3).add(2).add(Tensor.randn(500).mul(0.1));
    if (realized) await Tensor.realize(x, y);
    const [w, b] = [Tensor.zeros(1, { requiresGrad: true }), Tensor.zeros(1, { requiresGrad: true })];
    const opt = new nn.optim.SGD([w, b], { lr: 0.1 });
    const counts: number[] = [];
    let loss = w;
    for (let i = 0; i < 6; i++) {
      const step = async () => {
        loss = x.mul(w).add(b).sub(y).square().mean();
        opt.zeroGrad();
        loss.backward();
        await opt.step(loss);
      };
      counts.push(await kernelsOf(step));
    }
    expect(isStored(x) && isStored(y)).toBe(true);
    return { counts: counts.slice(3), loss: await loss.item() };
  }
  test("from the fourth step on the kernels are those of data in memory, and so are the values", async () => {
    const lazy = await regression(false);
    const stored = await regression(true);
    expect(lazy.counts).toEqual(stored.counts);
    expect(lazy.loss).toBeCloseTo(stored.loss, 5);
  });
  test("the third reader stores it, the second does not", async () => {
    const x = Tensor.randn(300);
    await x.sum().item();
    await x.mean().item();
    expect(isStored(x)).toBe(false);
    await x.square().sum().item();
    expect(isStored(x)).toBe(true);
  });
  test("a reduction counts as work", async () => {
    const a = ready([64, 512]);
    const total = a.mul(a).sum(1).add(1);
    for (let i = 0; i < 3; i++) await total.mul(i).sum().item();
    expect(isStored(total)).toBe(true);
  });
  test("in the steps of a loop, too", async () => {
    const x = Tensor.randn(8, 300);
    for (let i = 0; i < 4; i++) {
      const [last] = scan((c: Tensor, row: Tensor) => [c.add(row), c], Tensor.zeros(300), x);
      await last.sum().item();
    }
    expect(isStored(x)).toBe(true);
  });
  test("a captured step does not compute it", async () => {
    const x = Tensor.randn(400);
    const w = await Tensor.ones(1).contiguous().realize();
    const f = new TinyJit(async () => x.mul(w).sum().realize());
    for (let i = 0; i < 3; i++) await f();
    const own = await kernelsOf(f);
    const y = await Tensor.randn(400).realize();
    const g = new TinyJit(async () => y.mul(w).sum().realize());
    for (let i = 0; i < 3; i++) await g();
    expect(own).toBe(await kernelsOf(g));
  });
});

describe("what is computed where it is read, as often as it is", () => {
  test.each([
    ["a few cheap operations", () => ready([1000]).mul(2).add(1)],
    ["a cast of bytes", () => new Tensor(new Uint8Array(1000)).cast("float32").div(255)],
    [
      "dequantised weights, which are larger",
      () => {
        const packed = new Tensor(new Uint8Array(512)).realizeSync().reshape([8, 64]);
        const scale = new Tensor(new Float32Array(32).fill(0.5)).realizeSync().reshape([8, 4]);
        const format = { values: "int4", block: 32, scale: "float32" } as const;
        return nn.dequantize(format, packed, scale).cast("float16");
      },
    ],
  ])("%s", async (_, make) => {
    const t = make();
    for (let i = 0; i < 5; i++) await t.mul(i).sum().item();
    expect(isStored(t)).toBe(false);
  });
  test("a value of which little is read", async () => {
    const x = Tensor.randn(100, 100);
    for (let i = 0; i < 5; i++) await x.narrow(0, i, 1).sum().item();
    expect(isStored(x)).toBe(false);
  });
});
