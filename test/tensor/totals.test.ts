// Gradients of weights that a scan sums after its loop: the values are those of a loop that sums in every
// step, and no step launches a kernel for them.

import { GlobalCounters, nn, type ScanOptions, scan, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { numbers } from "../nn/close.ts";

type Body = (w: Tensor, s: Tensor, x: Tensor) => Tensor;
interface Sizes {
  readonly length: number;
  readonly batch: number;
  readonly size: number;
}

/** The gradients of weights, first state and rows, and how many kernels forward and backward take. */
async function gradients(
  body: Body,
  { length, batch, size }: Sizes,
  options: ScanOptions = {},
  ofWeights = true,
) {
  const draw = numbers(7);
  const make = (...shape: number[]): Tensor =>
    nn.parameter(new Tensor(draw(shape.reduce((a, b) => a * b))).reshape(shape));
  const [w, h, x] = [make(size, size), make(batch, size), make(length, batch, size)];
  await Tensor.realize(w, h, x);
  GlobalCounters.reset();
  const [last, ys] = scan((s: Tensor, r: Tensor) => [body(w, s, r), s.mul(r)], h, x, options);
  last.square().sum().add(ys.sum()).backward();
  const grads = [...(ofWeights ? [w] : []), h, x].map((t) => t.grad as Tensor);
  await Tensor.realize(...grads);
  const kernels = GlobalCounters.kernelCount;
  return { values: await Promise.all(grads.map(async (g) => [...(await g.data())].map(Number))), kernels };
}

const BODIES: Readonly<Record<string, Body>> = {
  "a product of the carry": (w, s, x) => s.matmul(w).add(x).tanh(),
  "its transpose": (w, s, x) => s.matmul(w.transpose(0, 1)).add(x).tanh(),
  "a part of the weights": (w, s, x) =>
    s
      .shrink([null, [0, 3]])
      .matmul(w.shrink([[1, 4], null]))
      .add(x),
  "two uses": (w, s, x) => s.matmul(w).add(x.matmul(w)).tanh(),
  "a product of both": (w, s, x) => s.mul(x).matmul(w).tanh(),
  "an elementwise use": (w, s, x) => s.mul(w.select(0, 1)).add(x),
};
const SIZES: readonly Sizes[] = [
  { length: 5, batch: 2, size: 6 },
  { length: 4, batch: 1, size: 6 },
  { length: 1, batch: 3, size: 8 },
  { length: 3, batch: 20, size: 4 },
];

describe("values", () => {
  for (const [name, body] of Object.entries(BODIES)) {
    test(`of ${name}, in both directions`, async () => {
      for (const sizes of SIZES)
        for (const reverse of [false, true]) {
          const after = await gradients(body, sizes, { reverse });
          // a scan that saves little sums in the loop
          const within = await gradients(body, sizes, { reverse, checkpoint: true });
          after.values.forEach((v, i) => {
            v.forEach((x, k) => void expect(x).toBeCloseTo(within.values[i]?.[k] as number, 4));
          });
        }
    });
  }
});

test("no step launches a kernel for the gradient of a weight", async () => {
  const perStep = async (isTrained: boolean): Promise<number> => {
    const counts: number[] = [];
    for (const length of [4, 10]) {
      const body: Body = (w, s, x) =>
        s
          .matmul(isTrained ? w : w.detach())
          .add(x)
          .tanh();
      counts.push((await gradients(body, { length, batch: 2, size: 8 }, {}, isTrained)).kernels);
    }
    return ((counts[1] as number) - (counts[0] as number)) / 6;
  };
  expect(await perStep(true)).toBe(await perStep(false));
});
