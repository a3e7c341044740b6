// Bags, Bilinear, padding, losses of margins, distances, and `maximize`: each against its definition.

import { ArgumentError, nn, ShapeError, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";

const near = (got: unknown, wanted: number): void => expect(Number(got)).toBeCloseTo(wanted, 5);

describe("EmbeddingBag", () => {
  const table = [
    [1, -2],
    [3, 5],
    [-7, 11],
    [100, 100],
  ];
  const make = (options: nn.EmbeddingBagOptions) => {
    const bag = new nn.EmbeddingBag(4, 2, options);
    bag.weight = new Tensor(table, { dtype: "float32", requiresGrad: true });
    return bag;
  };
  const x = new Tensor([0, 1, 2, 1]);
  const offsets = new Tensor([0, 1, 1]); // bags [0], [] and [1, 2, 1]
  test.each([
    [
      "sum",
      [
        [1, -2],
        [0, 0],
        [-1, 21],
      ],
    ],
    ["mean", [[1, -2], [0, 0], [-1 / 3, 7].map(Math.fround)]],
    [
      "max",
      [
        [1, -2],
        [0, 0],
        [3, 11],
      ],
    ],
  ] as const)("%s of bags by offsets", async (mode, wanted) => {
    expect(await make({ mode }).forward(x, offsets).tolist()).toEqual(wanted);
  });
  test.each([
    [
      "sum",
      [
        [4, 3],
        [-7, 11],
        [0, 0],
      ],
    ],
    [
      "mean",
      [
        [2, 1.5],
        [-7, 11],
        [0, 0],
      ],
    ],
    [
      "max",
      [
        [3, 5],
        [-7, 11],
        [0, 0],
      ],
    ],
  ] as const)("%s of rows, without padding", async (mode, wanted) => {
    const rows = new Tensor([
      [0, 1],
      [2, 3],
      [3, 3],
    ]);
    expect(await make({ mode, paddingIdx: 3 }).forward(rows).tolist()).toEqual(wanted);
    expect(
      await make({ mode, paddingIdx: 3 })
        .forward(new Tensor([0, 1, 2, 3, 3]), new Tensor([0, 2, 4]))
        .tolist(),
    ).toEqual(wanted);
  });
  test("weights of samples, gradients, and what is refused", async () => {
    const bag = make({ mode: "sum" });
    const y = bag.forward(x, offsets, new Tensor([2, 1, 1, 0.5]));
    expect(await y.tolist()).toEqual([
      [2, -4],
      [0, 0],
      [-2.5, 18.5],
    ]);
    y.sum().backward();
    expect(await (bag.weight.grad as Tensor).tolist()).toEqual([
      [2, 2],
      [1.5, 1.5],
      [1, 1],
      [0, 0],
    ]);
    expect(() => make({}).forward(x)).toThrow(ShapeError);
    expect(() => make({}).forward(x, offsets, x)).toThrow(/perSampleWeights are for mode "sum", not "mean"/);
    expect(() => make({ mode: "min" as "max" })).toThrow(ArgumentError);
  });
});

test("Bilinear is the sum over both inputs", async () => {
  const layer = new nn.Bilinear(2, 3, 2);
  layer.weight = Tensor.arange(12, { dtype: "float32" }).reshape(2, 2, 3);
  layer.bias = new Tensor([0.5, -1]);
  const [a, b] = [[[1, 2]], [[3, -1, 2]]] as const;
  const sum = (o: number) =>
    [0, 1]
      .flatMap((i) => [0, 1, 2].map((j) => (a[0][i] ?? 0) * (6 * o + 3 * i + j) * (b[0][j] ?? 0)))
      .reduce((s, v) => s + v);
  const y = layer.forward(
    new Tensor(a as never, { dtype: "float32" }),
    new Tensor(b as never, { dtype: "float32" }),
  );
  expect(await y.tolist()).toEqual([[sum(0) + 0.5, sum(1) - 1]]);
  expect(new nn.Bilinear(2, 3, 4, { bias: false }).bias).toBe(undefined);
  expect(() => layer.forward(Tensor.ones(1, 3), Tensor.ones(1, 3))).toThrow(
    /expected \[\.\.\., 2\] and \[\.\.\., 3\]/,
  );
});

interface Layer {
  forward(x: Tensor): Tensor;
}

describe("padding", () => {
  const row = new Tensor([[[1, 2, 3]]]);
  test.each<[string, { forward(x: Tensor): Tensor }, number[]]>([
    ["zeros", new nn.ZeroPad1d([1, 2]), [0, 1, 2, 3, 0, 0]],
    ["a value", new nn.ConstantPad1d([1, 2], 7), [7, 1, 2, 3, 7, 7]],
    ["the mirror image", new nn.ReflectionPad1d([1, 2]), [2, 1, 2, 3, 2, 1]],
    ["the edge", new nn.ReplicationPad1d([1, 2]), [1, 1, 2, 3, 3, 3]],
    ["the other end", new nn.CircularPad1d([1, 2]), [3, 1, 2, 3, 1, 2]],
  ])("%s", async (_, layer, wanted) => expect(await layer.forward(row).tolist()).toEqual([[wanted]]));
  test.each<[string, Layer, Layer]>([
    ["ZeroPad", new nn.ZeroPad2d([1, 0, 2, 1]), new nn.ZeroPad3d([1, 0, 2, 1, 0, 3])],
    ["ReflectionPad", new nn.ReflectionPad2d([1, 0, 2, 1]), new nn.ReflectionPad3d([1, 0, 2, 1, 0, 3])],
    ["ReplicationPad", new nn.ReplicationPad2d([1, 0, 2, 1]), new nn.ReplicationPad3d([1, 0, 2, 1, 0, 3])],
    ["CircularPad", new nn.CircularPad2d([1, 0, 2, 1]), new nn.CircularPad3d([1, 0, 2, 1, 0, 3])],
  ])("%s in 2 and 3 dims", (_, plane, space) => {
    expect(plane.forward(Tensor.ones(1, 1, 4, 4)).shape).toEqual([1, 1, 7, 5]);
    expect(space.forward(Tensor.ones(1, 1, 4, 4, 4)).shape).toEqual([1, 1, 7, 7, 5]);
  });
  test("ConstantPad, and amounts that do not fit", async () => {
    expect(await new nn.ConstantPad2d(1, 9).forward(Tensor.zeros(1, 1, 1)).tolist()).toEqual([
      [
        [9, 9, 9],
        [9, 0, 9],
        [9, 9, 9],
      ],
    ]);
    expect(new nn.ConstantPad3d(1, 9).forward(Tensor.zeros(1, 1, 1, 1)).shape).toEqual([1, 3, 3, 3]);
    expect(() => new nn.ZeroPad2d([1, 2])).toThrow(
      /ZeroPad2d: padding is \[1,2\], expected an integer, or 4/,
    );
  });
});
test("ChannelShuffle", async () => {
  const x = Tensor.arange(6).reshape(1, 6, 1);
  expect(await new nn.ChannelShuffle(2).forward(x).flatten().tolist()).toEqual([0, 3, 1, 4, 2, 5]);
});

test("losses of margins and distributions by their definitions", async () => {
  const [a, b] = [
    new Tensor(
      [
        [1, 2],
        [0.5, -1],
      ],
      { dtype: "float32" },
    ),
    new Tensor(
      [
        [2, -1],
        [1, 1],
      ],
      { dtype: "float32" },
    ),
  ];
  const cos = (u: number[], v: number[]) => {
    const dot = (p: number[], q: number[]) => p.reduce((s, x, i) => s + x * (q[i] as number), 0);
    return dot(u, v) / Math.sqrt(dot(u, u) * dot(v, v));
  };
  const [c0, c1] = [cos([1, 2], [2, -1]), cos([0.5, -1], [1, 1])];
  const signs = new Tensor([1, -1]);
  near(
    await new nn.CosineEmbeddingLoss({ margin: -0.5 }).forward(a, b, signs).item(),
    (1 - c0 + Math.max(0, c1 + 0.5)) / 2,
  );
  const [u, v] = [new Tensor([1, 2], { dtype: "float32" }), new Tensor([3, -1], { dtype: "float32" })];
  near(await new nn.MarginRankingLoss({ margin: 0.5 }).forward(u, v, signs).item(), (2.5 + 3.5) / 2);
  near(await new nn.TripletMarginLoss().forward(a, b, b).item(), 1);
  near(
    await new nn.HingeEmbeddingLoss({ reduction: "sum" }).forward(new Tensor([0.3, 0.4]), signs).item(),
    0.3 + 0.6,
  );
  near(
    await new nn.SoftMarginLoss({ reduction: "sum" }).forward(u, signs).item(),
    Math.log1p(Math.exp(-1)) + Math.log1p(Math.exp(2)),
  );
  near(await new nn.MultiMarginLoss({ p: 2 }).forward(a, new Tensor([0, 0])).item(), (4 / 2 + 0) / 2);
  near(
    await new nn.MultiLabelMarginLoss()
      .forward(
        a,
        new Tensor([
          [0, -1],
          [1, -1],
        ]),
      )
      .item(),
    (2 / 2 + 2.5 / 2) / 2,
  );
  const softplus = (x: number) => Math.log1p(Math.exp(x));
  near(
    await new nn.MultiLabelSoftMarginLoss()
      .forward(
        a,
        new Tensor([
          [1, 0],
          [0, 1],
        ]),
      )
      .item(),
    (softplus(-1) + softplus(2) + softplus(0.5) + softplus(1)) / 4,
  );
  near(await new nn.PoissonNLLLoss().forward(u, v).item(), (Math.exp(1) - 3 + Math.exp(2) + 2) / 2);
  near(
    await new nn.GaussianNLLLoss().forward(u, v, new Tensor([4, 0.5])).item(),
    (Math.log(4) / 2 + 4 / 8 + Math.log(0.5) / 2 + 9) / 2,
  );
  near(await new nn.CosineSimilarity().forward(a, b).get(0).item(), c0);
  near(await new nn.PairwiseDistance({ p: 1, eps: 0 }).forward(a, b).get(1).item(), 2.5);
  expect(() => new nn.TripletMarginLoss({ magrin: 1 } as object)).toThrow(ArgumentError);
});

describe("maximize is torch's: the gradient changes its sign before all else", () => {
  const OPTIMIZERS = ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam"] as const;
  const trained = async (
    name: (typeof OPTIMIZERS)[number],
    maximize: boolean,
    byGroup = false,
  ): Promise<unknown> => {
    const w = new Tensor([1, -2, 0.5], { requiresGrad: true });
    const options = { lr: 0.1, weightDecay: 0.1 };
    const opt = byGroup
      ? new nn.optim[name]([{ params: [w], maximize }], options)
      : new nn.optim[name]([w], { ...options, maximize });
    for (let i = 0; i < 3; i++) {
      opt.zeroGrad();
      const loss = w
        .mul(new Tensor([1, 2, 3], { dtype: "float32" }))
        .sum()
        .add(w.square().sum());
      (maximize ? loss.neg() : loss).backward();
      await opt.step();
    }
    return w.tolist();
  };
  test.each(OPTIMIZERS)("%s", async (name) => {
    const wanted = await trained(name, false);
    expect(await trained(name, true)).toEqual(wanted);
    expect(await trained(name, true, true)).toEqual(wanted);
  });
  test("SGD by hand", async () => {
    const w = new Tensor([2.0], { dtype: "float32", requiresGrad: true });
    const opt = new nn.optim.SGD([w], { lr: 0.5, weightDecay: 0.25, maximize: true });
    w.mul(3).sum().backward();
    await opt.step();
    expect(await w.tolist()).toEqual([2 - 0.5 * (-3 + 0.25 * 2)]);
  });
});
