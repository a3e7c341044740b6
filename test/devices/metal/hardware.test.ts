// METAL on a Mac's own GPU, where there is one: products of matrices, reductions, captured steps with a
// variable, and copies between queues, beside the JS device. The device suite runs there, too.

import { Device, DeviceError, dtypes, Tensor, TinyJit, Variable } from "gradloom";
import { beforeAll, expect, type TestContext, test } from "vitest";

let closed: string | undefined;
beforeAll(async () => {
  try {
    await Device.open("METAL");
  } catch (e) {
    if (!(e instanceof DeviceError)) throw e;
    closed = e.message;
  }
});
const needsMac = (ctx: TestContext): void => ctx.skip(closed !== undefined, closed);

/** Small whole numbers: sums of their products are exact. */
const numbers = (device: string, ...shape: number[]): Tensor => {
  const n = shape.reduce((a, b) => a * b, 1);
  const all = Array.from({ length: n }, (_, i) => ((i * 7) % 9) - 4);
  return new Tensor(all, { device })
    .cast(dtypes.float32)
    .reshape(...shape)
    .contiguous();
};
const PROGRAMS: Readonly<Record<string, (device: string) => Tensor>> = {
  "a product of float32": (d) => numbers(d, 128, 96).matmul(numbers(d, 96, 128)),
  "a product of float16": (d) =>
    numbers(d, 64, 64)
      .cast(dtypes.float16)
      .matmul(numbers(d, 64, 64).cast(dtypes.float16)),
  "a product that no core fits": (d) => numbers(d, 63, 50).matmul(numbers(d, 50, 65)),
  "a sum of all": (d) => numbers(d, 70000).sum(),
  "the largest of rows": (d) => numbers(d, 40, 3000).max(1),
  "a convolution": (d) => numbers(d, 2, 4, 18, 18).conv2d(numbers(d, 8, 4, 3, 3)),
};
test.for(Object.keys(PROGRAMS))("%s", async (name, ctx) => {
  needsMac(ctx);
  const program = PROGRAMS[name] as (device: string) => Tensor;
  expect([...(await program("METAL").data())]).toEqual([...(await program("JS").data())]);
});

test("a captured step with a variable", async (ctx) => {
  needsMac(ctx);
  const n = Variable("n", 1, 8);
  const data = await Tensor.arange(8 * 96, { device: "METAL" })
    .reshape(8, 96)
    .contiguous()
    .realize();
  const step = new TinyJit(async (x: Tensor) => x.mul(3).contiguous().sum().realize());
  for (const k of [2, 1, 3, 4, 5, 8, 1]) {
    const part = data.shrink([
      [0, n.bind(k)],
      [0, 96],
    ]);
    expect(await (await step(part)).item(), `n = ${k}`).toBe(3 * ((96 * k * (96 * k - 1)) / 2));
  }
});
test("copies between queues", async (ctx) => {
  needsMac(ctx);
  const a = Tensor.arange(100, { device: "METAL" }).mul(3);
  expect(await a.to("METAL:1").add(1).to("METAL").sub(a).sum().item()).toBe(100);
});
