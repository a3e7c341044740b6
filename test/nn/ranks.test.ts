// Layers that exist for 1, 2 and 3 dims agree with each other: a dim of size 1, or dims that are merged,
// change nothing. The other ranks have their values tested in layers.test.ts.

import { nn, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { expectClose, numbers } from "./close.ts";

const values = (shape: readonly number[], seed = 1): Tensor =>
  new Tensor(numbers(seed)(shape.reduce((a, b) => a * b, 1))).reshape([...shape]);
type Nested = Parameters<typeof expectClose>[1];

describe("norms over merged dims", () => {
  const norms = [
    ["BatchNorm2d", new nn.BatchNorm2d(3), new nn.BatchNorm1d(3), [2, 3, 2, 4]],
    ["BatchNorm3d", new nn.BatchNorm3d(3), new nn.BatchNorm1d(3), [2, 3, 2, 2, 2]],
    ["InstanceNorm2d", new nn.InstanceNorm2d(3), new nn.InstanceNorm1d(3), [2, 3, 2, 4]],
    ["InstanceNorm3d", new nn.InstanceNorm3d(3), new nn.InstanceNorm1d(3), [2, 3, 2, 2, 2]],
  ] as const;
  test.each(norms)("%s", async (_, norm, plain, shape) => {
    const x = values(shape);
    const got = Tensor.train(() => norm.forward(x));
    const wanted = Tensor.train(() => plain.forward(x.flatten(2)));
    expect(got.shape).toEqual(shape);
    await expectClose(got.flatten(2), (await wanted.tolist()) as Nested);
  });
});

describe("convolutions over a dim of size 1", () => {
  const options = { stride: 2, padding: 1 };
  test("ConvTranspose1d", async () => {
    const line = new nn.ConvTranspose1d(2, 3, 3, options);
    const plane = new nn.ConvTranspose2d(2, 3, [1, 3], { stride: [1, 2], padding: [0, 1] });
    await plane.weight.assign(line.weight.unsqueeze(2)).realize();
    if (line.bias !== undefined) await plane.bias?.assign(line.bias).realize();
    const x = values([2, 2, 5]);
    const got = line.forward(x);
    expect(got.shape).toEqual([2, 3, 9]);
    await expectClose(got, (await plane.forward(x.unsqueeze(2)).squeeze(2).tolist()) as Nested);
  });
});
