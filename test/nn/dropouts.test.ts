// Dropouts of channels and of self-normalising networks: what is dropped, what the rest is scaled by, and
// that nothing happens outside of training.

import { ArgumentError, nn, ShapeError, Tensor } from "gradloom";
import { beforeEach, describe, expect, test } from "vitest";

beforeEach(() => Tensor.manualSeed(5));

describe.each([
  ["Dropout1d", [40, 50, 3], [60, 4]],
  ["Dropout2d", [40, 50, 2, 2], [40, 50, 3]],
  ["Dropout3d", [40, 50, 2, 1, 2], [60, 2, 2, 2]],
] as const)("%s", (name, shape, other) => {
  const make = (p?: number) => new nn[name](p);
  test("drops whole channels, and scales the rest", async () => {
    const y = await make(0.25)
      .train()
      .forward(Tensor.ones([...shape]))
      .reshape(2000, -1)
      .tolist<number[][]>();
    expect(y.every((row) => row.every((v) => v === row[0]))).toBe(true);
    expect(new Set(y.flat())).toEqual(new Set([0, Math.fround(4 / 3)]));
    const dropped = y.filter(([v]) => v === 0).length;
    expect(Math.abs(dropped - 500)).toBeLessThan(100);
  });
  test("the other shape", async () => {
    const x = Tensor.ones([...other]);
    // without a batch dim 0 has the channels; Dropout2d takes three dims for a batch of [c, length], as torch
    const rows = name === "Dropout2d" ? 2000 : 60;
    const y = await make().train().forward(x).reshape(rows, -1).tolist<number[][]>();
    expect(y.every((row) => row.every((v) => v === row[0]))).toBe(true);
    expect(new Set(y.flat())).toEqual(new Set([0, 2]));
  });
  test("not outside of training; 0 and 1; gradients; what is refused", async () => {
    const x = Tensor.rand([...shape]).add(1);
    expect(make().eval().forward(x)).toBe(x);
    expect(make(0).train().forward(x)).toBe(x);
    expect(await make(1).train().forward(x).sum().item()).toBe(0);
    const w = Tensor.ones([...shape], { requiresGrad: true });
    const y = make().train().forward(w);
    y.sum().backward();
    expect(await (w.grad as Tensor).tolist()).toEqual(await y.tolist());
    expect(() => make(2)).toThrow(ArgumentError);
    expect(() => make(2)).toThrow(`${name}: p is 2`);
    expect(() => make().forward(Tensor.ones(2))).toThrow(ShapeError);
    expect(make().train().forward(w.cast("float16")).dtype.name).toBe("float16");
  });
});

describe.each(["AlphaDropout", "FeatureAlphaDropout"] as const)("%s", (name) => {
  test("keeps mean and variance; dropped elements have one value", async () => {
    const p = 0.3;
    const limit = -1.7580993408473766;
    const scale = 1 / Math.sqrt((1 - p) * (1 + p * limit ** 2));
    const y = new nn[name](p).train().forward(Tensor.randn(200, 100));
    expect(Math.abs(Number(await y.mean().item()))).toBeLessThan(0.05);
    expect(Math.abs(Number(await y.var().item()) - 1)).toBeLessThan(0.08);
    const values = (await y.tolist<number[][]>()).flat();
    const dropped = values.filter((v) => Math.abs(v - scale * limit * (1 - p)) < 1e-5).length;
    expect(Math.abs(dropped / values.length - p)).toBeLessThan(0.03);
    const kept = new nn[name](p).train().forward(Tensor.full([50, 20], 2));
    const wanted = [scale * limit * (1 - p), scale * 2 - scale * limit * p];
    for (const v of new Set((await kept.tolist<number[][]>()).flat()))
      expect(Math.min(...wanted.map((w) => Math.abs(w - v)))).toBeLessThan(1e-5);
  });
  test("ends of p, and evaluation", async () => {
    const x = Tensor.ones(2, 3);
    expect(new nn[name]().eval().forward(x)).toBe(x);
    expect(new nn[name](0).train().forward(x)).toBe(x);
    expect(await new nn[name](1).train().forward(x).sum().item()).toBe(0);
    expect(() => new nn[name](-1)).toThrow(`${name}: p is -1`);
  });
});
test("FeatureAlphaDropout drops channels as wholes", async () => {
  const y = await new nn.FeatureAlphaDropout(0.5)
    .train()
    .forward(Tensor.ones(20, 10, 4))
    .reshape(200, 4)
    .tolist<number[][]>();
  expect(y.every((row) => row.every((v) => v === row[0]))).toBe(true);
  expect(new Set(y.flat()).size).toBe(2);
});
