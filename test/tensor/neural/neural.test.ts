// Normalisation, losses, distances and attention: values against formulas written out on plain numbers,
// gradients against finite differences, the corners that torch defines, and the number of
// kernels with the reason for it.

import { Tensor } from "gradloom";
import { describe, expect, it } from "vitest";
import { gap, gradientGap, kernelsOf, numbers, tensor, values } from "../numeric.ts";

const f64 = (t: Tensor): Tensor => t.cast("float64");
const ints = (...xs: number[]): Tensor => new Tensor(xs, { dtype: "int32" });
const floats = (...xs: number[]): Tensor => new Tensor(xs, { dtype: "float32" });
const leafOf = (t: Tensor): Tensor => new Tensor(t.lazydata, { requiresGrad: true });
const mean = (xs: readonly number[]): number => xs.reduce((a, b) => a + b, 0) / xs.length;
const positive = (x: number): number => x + 1.5;

describe("normalisation", () => {
  it("gives mean 0 and variance 1 over its dims", () => {
    const x = tensor([3, 4, 5]);
    const check = (y: Tensor, rows: (t: Tensor) => Tensor): void => {
      const seen = rows(y);
      const n = seen.shape.at(-1) as number;
      const flat = numbers(seen);
      for (let i = 0; i < flat.length; i += n) {
        const row = flat.slice(i, i + n);
        expect(Math.abs(mean(row))).toBeLessThan(1e-5);
        expect(Math.abs(mean(row.map((v) => v * v)) - 1)).toBeLessThan(1e-4);
      }
    };
    const options = { eps: 0 };
    check(x.layerNorm(5, options), (y) => y);
    check(x.layerNorm([4, 5], options), (y) => y.reshape(3, 20));
    check(x.groupNorm(2, options), (y) => y.reshape(6, 10));
    check(x.instanceNorm(options), (y) => y);
    check(x.batchNorm(null, null, { ...options, training: true }), (y) => y.permute(1, 0, 2).reshape(4, 15));
  });

  it("scales by weight and shifts by bias, a channel or an element each", () => {
    const x = tensor([2, 4, 3]);
    const [w, b] = [tensor([4], 5), tensor([4], 6)];
    const channel = (t: Tensor): Tensor => t.reshape(1, 4, 1);
    for (const f of [
      (o: object) => x.groupNorm(2, o),
      (o: object) => x.instanceNorm(o),
      (o: object) => x.batchNorm(null, null, { ...o, training: true }),
    ]) {
      const want = f({}).mul(channel(w)).add(channel(b));
      expect(gap(numbers(f({ weight: w, bias: b })), numbers(want))).toBeLessThan(1e-6);
    }
    const [lw, lb] = [tensor([4, 3], 5), tensor([4, 3], 6)];
    const want = x.layerNorm([4, 3]).mul(lw).add(lb);
    expect(gap(numbers(x.layerNorm([4, 3], { weight: lw, bias: lb })), numbers(want))).toBeLessThan(1e-6);
  });

  it("has the gradients of finite differences, and their gradients", () => {
    const w = (_: Tensor, a: Tensor, b: Tensor) => ({ weight: a, bias: b, eps: 0.1 });
    const train = (x: Tensor, a: Tensor, b: Tensor) =>
      x.batchNorm(null, null, { ...w(x, a, b), training: true });
    expect(gradientGap(train, [[3, 2, 4], [2], [2]])).toBeLessThan(1e-6);
    expect(
      gradientGap(
        (x, a, b) => x.layerNorm([2, 3], w(x, a, b)),
        [
          [2, 2, 3],
          [2, 3],
          [2, 3],
        ],
      ),
    ).toBeLessThan(1e-6);
    expect(gradientGap((x, a, b) => x.groupNorm(2, w(x, a, b)), [[2, 4, 3], [4], [4]])).toBeLessThan(1e-6);
    expect(gradientGap((x, a) => x.rmsNorm(4, { weight: a }), [[3, 4], [4]])).toBeLessThan(1e-6);
    const second = (x: Tensor): Tensor => {
      const leaf = x.requiresGrad ? x : leafOf(x);
      leaf.layerNorm(4, { eps: 0.1 }).exp().sum().backward(undefined, { createGraph: true });
      const g = leaf.grad as Tensor;
      leaf.grad = undefined;
      return g;
    };
    expect(gradientGap(second, [[2, 4]])).toBeLessThan(1e-5);
  });

  it("in training moves the running statistics towards those of the batch, with the unbiased variance", async () => {
    const [m, v] = [floats(0), floats(1)].map((t) => t.realizeSync()) as [Tensor, Tensor];
    const x = floats(1, 3, 5, 7).reshape(4, 1);
    const y = x.batchNorm(m, v, { training: true, momentum: 0.5 });
    await Tensor.realize(y, m, v);
    expect(await m.tolist()).toEqual([2]);
    expect(gap(numbers(v), [0.5 + 0.5 * (20 / 3)])).toBeLessThan(1e-6);
    // outside training they are what x is normalised by
    expect(gap(numbers(x.batchNorm(floats(1), floats(4), { eps: 0 })), [0, 1, 2, 3])).toBeLessThan(1e-6);
    expect(m.requiresGrad || v.requiresGrad).toBe(false);
  });

  it("takes the kernels that it must", () => {
    const x = tensor([4, 6, 3, 3]);
    const rows = tensor([8, 16]);
    const [w, b] = [tensor([6]), tensor([6], 2)];
    // mean, variance and result are loops of one kernel, run a row (or a channel) at a time
    expect(kernelsOf(rows.softmax()).length).toBe(1);
    expect(kernelsOf(rows.layerNorm(16, { weight: tensor([16]), bias: tensor([16]) })).length).toBe(1);
    expect(kernelsOf(rows.rmsNorm(16)).length).toBe(1);
    expect(kernelsOf(x.groupNorm(3, { weight: w, bias: b })).length).toBe(1);
    expect(kernelsOf(x.instanceNorm()).length).toBe(1);
    expect(kernelsOf(x.batchNorm(null, null, { training: true, weight: w, bias: b })).length).toBe(1);
    // elementwise: the root is taken in place
    expect(
      kernelsOf(x.batchNorm(tensor([6]), tensor([6]).square().realizeSync(), { weight: w })).length,
    ).toBe(1);
    // with running statistics mean and variance have two readers each and are stored, by one
    // kernel; the result, both updates
    const [m, v] = [tensor([6]), tensor([6]).square().realizeSync()];
    expect(kernelsOf(x.batchNorm(m, v, { training: true }), m, v).length).toBe(3);
    // with gradients: mean, variance and the gradients of weight and bias, which are reduces of the same
    // elements; the loss; the gradient of x
    const leaves = [leafOf(x), leafOf(w), leafOf(b)] as const;
    const options = { training: true, weight: leaves[1], bias: leaves[2] };
    const loss = leaves[0].batchNorm(null, null, options).square().sum();
    loss.backward();
    expect(kernelsOf(loss, ...leaves.map((l) => l.grad as Tensor)).length).toBe(3);
  });
});

describe("class losses", () => {
  const logits = tensor([4, 3, 2], 7);
  const target = ints(0, 2, 1, 2, 0, 1, 1, 2).reshape(4, 2);
  const weight = floats(0.5, 1, 2);
  /** The loss of each place, from the definition. */
  const plain = (smooth: number, w: readonly number[]): { losses: number[]; weights: number[] } => {
    const [x, t] = [numbers(logits), numbers(target)];
    const losses: number[] = [];
    for (let n = 0; n < 4; n++) {
      for (let p = 0; p < 2; p++) {
        const row = [0, 1, 2].map((c) => x[n * 6 + c * 2 + p] as number);
        const total = Math.log(row.reduce((a, b) => a + Math.exp(b), 0));
        const goal = (c: number) => (t[n * 2 + p] === c ? 1 - smooth : 0) + smooth / 3;
        losses.push(row.reduce((a, v, c) => a - goal(c) * (w[c] as number) * (v - total), 0));
      }
    }
    return { losses, weights: t.map((c) => w[c] as number) };
  };

  it("are the definition, with weights, smoothing and every reduction", () => {
    for (const smooth of [0, 0.2]) {
      for (const w of [undefined, weight]) {
        const { losses, weights } = plain(smooth, w === undefined ? [1, 1, 1] : numbers(w));
        const options = { labelSmoothing: smooth, weight: w ?? null };
        const got = (reduction: "none" | "sum" | "mean") =>
          numbers(logits.crossEntropy(target, { ...options, reduction }));
        expect(gap(got("none"), losses)).toBeLessThan(1e-5);
        expect(gap(got("sum"), [mean(losses) * 8])).toBeLessThan(1e-5);
        expect(gap(got("mean"), [(mean(losses) * 8) / (mean(weights) * 8)])).toBeLessThan(1e-5);
        const sparse = logits
          .permute(0, 2, 1)
          .sparseCategoricalCrossentropy(target, { ...options, reduction: "none" });
        expect(gap(numbers(sparse), losses)).toBeLessThan(1e-5);
      }
    }
  });

  it("ignore what they are told to: nothing counts, and no gradient flows", async () => {
    const x = leafOf(floats(1, 2, 3, 4, 5, 6).reshape(2, 3));
    const loss = x.crossEntropy(ints(1, -100), { labelSmoothing: 0.1 });
    loss.backward();
    expect(numbers(x.grad as Tensor).slice(3)).toEqual([0, 0, 0]);
    expect(await x.crossEntropy(ints(1, 0), { ignoreIndex: 0 }).item()).toBe(
      await x.crossEntropy(ints(1, -100)).item(),
    );
    expect(await x.crossEntropy(ints(-100, -100)).item()).toBeNaN();
    expect(await x.nllLoss(ints(-100, 2), { reduction: "none" }).add(0).tolist()).toEqual([0, -6]);
  });

  it("take probabilities as targets, and one sample without a batch", () => {
    const soft = logits.softmax(1).realizeSync();
    const want = logits.logSoftmax(1).mul(soft).sum(1).neg().mean();
    expect(gap(numbers(logits.crossEntropy(soft)), numbers(want))).toBeLessThan(1e-6);
    expect(gap(numbers(floats(0, 0).crossEntropy(new Tensor(1))), [Math.LN2])).toBeLessThan(1e-6);
  });

  it("have the gradients of finite differences", () => {
    const t = ints(0, 2, 1);
    for (const o of [
      {},
      { weight: f64(weight) },
      { labelSmoothing: 0.3, weight: f64(weight) },
      { ignoreIndex: 2 },
    ]) {
      expect(gradientGap((x) => x.crossEntropy(t, o), [[3, 3]])).toBeLessThan(1e-6);
    }
    expect(
      gradientGap(
        (x, y) => x.crossEntropy(y, { labelSmoothing: 0.1 }),
        [
          [3, 3],
          [3, 3],
        ],
      ),
    ).toBeLessThan(1e-6);
    expect(gradientGap((x) => x.nllLoss(t, { weight: f64(weight) }), [[3, 3]])).toBeLessThan(1e-6);
  });

  it("take two kernels, and five with the gradient", () => {
    const [x, t] = [leafOf(tensor([16, 10])), ints(...values(16).map((_, i) => i % 10)).realizeSync()];
    // the loss of each row (maximum, sum and the chosen class in one), then
    // their mean over the rows that count
    const loss = x.crossEntropy(t);
    expect(kernelsOf(loss).length).toBe(2);
    // with the gradient the count is stored, because it divides there too; then 1
    // / count a row, and the gradient
    loss.backward();
    expect(kernelsOf(loss, x.grad as Tensor).length).toBe(5);
  });
});

describe("other losses", () => {
  const pair = [
    [2, 3],
    [2, 3],
  ];
  it("have the gradients of finite differences", () => {
    const list: Record<string, (x: Tensor, t: Tensor) => Tensor> = {
      mseLoss: (x, t) => x.mseLoss(t),
      l1Loss: (x, t) => x.l1Loss(t, { reduction: "sum" }),
      smoothL1Loss: (x, t) => x.smoothL1Loss(t, { beta: 0.3 }),
      huberLoss: (x, t) => x.huberLoss(t, { delta: 0.3, reduction: "none" }),
      bceWithLogits: (x, t) =>
        x.bceWithLogits(t, { posWeight: f64(floats(2)), weight: f64(floats(1, 2, 3)) }),
      klDiv: (x, t) => x.klDiv(t.add(2), { reduction: "batchmean" }),
      klDivLog: (x, t) => x.klDiv(t, { logTarget: true }),
      softMarginLoss: (x, t) => x.softMarginLoss(t),
      hingeEmbeddingLoss: (x) => x.hingeEmbeddingLoss(ints(1, -1, 1)),
      marginRankingLoss: (x, t) => x.marginRankingLoss(t, ints(1, -1, 1), { margin: 0.5 }),
      cosineEmbeddingLoss: (x, t) => x.cosineEmbeddingLoss(t, ints(1, -1)),
      poissonNllLoss: (x, t) => x.poissonNllLoss(t.add(3), { full: true }),
      gaussianNllLoss: (x, t) => x.gaussianNllLoss(t, t.square().add(0.5)),
      tripletMarginLoss: (x, t) => x.tripletMarginLoss(t, t.mul(0.3), { swap: true }),
      cosineSimilarity: (x, t) => x.cosineSimilarity(t),
      pairwiseDistance: (x, t) => x.pairwiseDistance(t, { p: 3 }),
      normalize: (x) => x.normalize({ p: 3 }),
      cdist: (x, t) => x.cdist(t.mul(2), 1.5),
      cdistMax: (x, t) => x.cdist(t.mul(2.3), Infinity),
    };
    for (const [name, f] of Object.entries(list)) {
      const used = /\(x\)/.test(f.toString()) ? pair.slice(0, 1) : pair;
      expect(gradientGap(f as (...xs: Tensor[]) => Tensor, used), name).toBeLessThan(1e-5);
    }
    const bce = (x: Tensor, t: Tensor) => x.mul(0.2).binaryCrossEntropy(t.mul(0.2));
    expect(gradientGap(bce, pair, positive)).toBeLessThan(1e-5);
    const poisson = (x: Tensor, t: Tensor) => x.poissonNllLoss(t, { logInput: false });
    expect(gradientGap(poisson, pair, positive)).toBeLessThan(1e-5);
  });

  it("stay finite at the ends of the probabilities", async () => {
    const p = leafOf(floats(0, 1, 0, 1));
    const loss = p.binaryCrossEntropy(floats(0, 1, 1, 0), { reduction: "none" });
    expect(await loss.add(0).tolist()).toEqual([0, 0, 100, 100]);
    loss.sum().backward();
    expect(numbers(p.grad as Tensor)).toEqual([0, 0, -1e12, 1e12].map(Math.fround));
    expect(await floats(200, -200).bceWithLogits(floats(0, 1)).item()).toBe(200);
    const z = leafOf(floats(0));
    z.bceWithLogits(floats(0)).backward();
    expect(numbers(z.grad as Tensor)).toEqual([0.5]);
    expect(await floats(-1, -2).klDiv(floats(0, 0), { reduction: "sum" }).item()).toBe(0);
  });

  it("have slope 0 where a distance is 0, as torch has", () => {
    const x = leafOf(floats(1, 2, 3, 4).reshape(2, 2));
    for (const p of [0, 0.5, 1, 1.5, 2, 3]) {
      x.grad = undefined;
      x.cdist(new Tensor(x.lazydata), p).sum().backward();
      expect(numbers(x.grad as unknown as Tensor).every(Number.isFinite), `p ${p}`).toBe(true);
    }
    x.grad = undefined;
    x.sub(new Tensor(x.lazydata)).normalize().sum().backward();
    expect(numbers(x.grad as unknown as Tensor)).toEqual(Array(4).fill(Math.fround(1e12)));
    x.grad = undefined;
    x.l1Loss(new Tensor(x.lazydata)).backward();
    expect(numbers(x.grad as unknown as Tensor)).toEqual([0, 0, 0, 0]);
  });

  it("of distances are one kernel", () => {
    const [a, b] = [tensor([5, 8]), tensor([5, 8], 2)];
    for (const y of [a.cdist(b), a.cosineSimilarity(b), a.normalize(), a.pairwiseDistance(b), a.mseLoss(b)]) {
      expect(kernelsOf(y).length).toBe(1);
    }
  });
});

describe("attention", () => {
  const [q, k, v] = [tensor([2, 4, 3, 8], 1), tensor([2, 4, 5, 8], 2), tensor([2, 4, 5, 6], 3)];

  it("is softmax(q k^T / sqrt(E)) v", () => {
    const want = q.dot(k.transpose()).div(Math.sqrt(8)).softmax().dot(v);
    expect(gap(numbers(q.scaledDotProductAttention(k, v)), numbers(want))).toBeLessThan(1e-5);
    const scaled = q.dot(k.transpose()).mul(2).softmax().dot(v);
    expect(gap(numbers(q.scaledDotProductAttention(k, v, { scale: 2 })), numbers(scaled))).toBeLessThan(1e-5);
  });

  it("masks: causal as a mask, bool as minus infinity, float as an addend", () => {
    const lower = [0, 1, 2].map((i) => [0, 1, 2, 3, 4].map((j) => j <= i));
    const mask = new Tensor(lower);
    const causal = numbers(q.scaledDotProductAttention(k, v, { isCausal: true }));
    const added = new Tensor(
      lower.map((row) => row.map((b) => (b ? 0 : -Infinity))),
      { dtype: "float32" },
    );
    for (const attnMask of [mask, added]) {
      expect(gap(numbers(q.scaledDotProductAttention(k, v, { attnMask })), causal)).toBeLessThan(1e-6);
    }
  });

  it("gives 0, and no NaN gradient, to a query that may see nothing", () => {
    const mask = new Tensor([
      [true, false],
      [false, false],
    ]);
    const [a, b, c] = [tensor([2, 4], 1), tensor([2, 4], 2), tensor([2, 4], 3)].map(leafOf) as [
      Tensor,
      Tensor,
      Tensor,
    ];
    const y = a.scaledDotProductAttention(b, c, { attnMask: mask });
    expect(numbers(y).slice(4)).toEqual([0, 0, 0, 0]);
    y.sum().backward();
    for (const t of [a, b, c]) expect(numbers(t.grad as Tensor).every(Number.isFinite)).toBe(true);
  });

  it("shares the heads of keys and values (GQA)", () => {
    const [k2, v2] = [tensor([2, 2, 5, 8], 2), tensor([2, 2, 5, 6], 3)];
    const twice = (t: Tensor): Tensor => {
      const [n, h, s, e] = t.shape as [number, number, number, number];
      return t
        .reshape(n, h, 1, s, e)
        .expand(n, h, 2, s, e)
        .reshape(n, 2 * h, s, e);
    };
    const want = numbers(q.scaledDotProductAttention(twice(k2), twice(v2)));
    expect(gap(numbers(q.scaledDotProductAttention(k2, v2, { enableGqa: true })), want)).toBeLessThan(1e-6);
  });

  it("has the gradients of finite differences", () => {
    const mask = new Tensor([
      [true, false, true],
      [true, true, false],
    ]);
    const shapes = [
      [2, 2, 4],
      [2, 3, 4],
      [2, 3, 2],
    ];
    for (const o of [{}, { isCausal: true }, { attnMask: mask }]) {
      expect(gradientGap((a, b, c) => a.scaledDotProductAttention(b, c, o), shapes)).toBeLessThan(1e-6);
    }
  });

  it("takes three kernels: the scores, their softmax, the product with the values", () => {
    // both products read each weight many times, so scores and weights are stored
    expect(kernelsOf(q.scaledDotProductAttention(k, v)).length).toBe(3);
    expect(kernelsOf(q.scaledDotProductAttention(k, v, { isCausal: true })).length).toBe(3);
    const attnMask = tensor([3, 5]).gt(0).realizeSync();
    expect(kernelsOf(q.scaledDotProductAttention(k, v, { attnMask })).length).toBe(3);
  });

  it("drops weights where asked", () => {
    Tensor.manualSeed(1);
    const all = numbers(q.scaledDotProductAttention(k, v));
    expect(gap(numbers(q.scaledDotProductAttention(k, v, { dropoutP: 0.5 })), all)).toBeGreaterThan(0.01);
  });
});

describe("linear", () => {
  it("is x W^T + b in one kernel, for vectors, matrices and batches", () => {
    const [w, b] = [tensor([4, 3]), tensor([4], 2)];
    for (const shape of [[3], [2, 3], [2, 5, 3]]) {
      const x = tensor(shape, 3);
      const y = x.linear(w, b);
      expect(y.shape).toEqual([...shape.slice(0, -1), 4]);
      expect(kernelsOf(y).length).toBe(1);
      expect(gap(numbers(y), numbers(x.dot(w.transpose()).add(b)))).toBe(0);
    }
  });
});

describe("bad input is refused with the method, what came and the rule", () => {
  const x = tensor([2, 4, 3]);
  it.each([
    [() => x.linear(tensor([5, 4])), /^linear: input \[2, 4, 3\] and weight \[5, 4\] do not fit/],
    [() => x.layerNorm([4]), /^layerNorm: normalizedShape is \[4\], expected the last sizes of \[2, 4, 3\]/],
    [
      () => x.layerNorm(3, { weight: tensor([4]) }),
      /^layerNorm: weight and bias have the normalised shape \[3\], got \[4\]/,
    ],
    [() => x.groupNorm(3), /^groupNorm: shape \[2, 4, 3\] with 3 groups/],
    [() => x.groupNorm(2, { weight: tensor([3]) }), /^groupNorm: weight has shape \[3\], expected \[4\]/],
    [() => x.batchNorm(), /^batchNorm: .* needs runningMean and runningVar/],
    [() => tensor([1, 4]).batchNorm(null, null, { training: true }), /^batchNorm: .* needs at least two/],
    [() => tensor([2, 4]).instanceNorm(), /^instanceNorm: shape \[2, 4\] has no spatial dims/],
    [() => x.crossEntropy(ints(1, 2)), /^crossEntropy: input \[2, 4, 3\] .* target is \[2, 3\] .* got \[2\]/],
    [
      () => x.crossEntropy(floats(1, 1, 1, 1, 1, 1).reshape(2, 3)),
      /^crossEntropy: class numbers are integers, got float32/,
    ],
    [
      () => x.crossEntropy(x.cast("int32")),
      /^crossEntropy: a target of the input's shape holds probabilities/,
    ],
    [() => x.crossEntropy(x, { labelSmoothing: 2 }), /^crossEntropy: labelSmoothing is 2/],
    [
      () => x.crossEntropy(x, { weight: tensor([3]) }),
      /^crossEntropy: weight has shape \[3\], expected one number for each of the 4/,
    ],
    [
      () => x.bceWithLogits(tensor([4])),
      /^bceWithLogits: input \[2, 4, 3\] and target \[4\] must have the same shape/,
    ],
    [() => x.mseLoss(x, { reduction: "most" as "mean" }), /^mseLoss: reduction is "most"/],
    [() => x.cdist(tensor([2, 4])), /^cdist: got \[2, 4, 3\] and \[2, 4\]/],
    [() => x.cdist(x, -1), /^cdist: p is -1/],
    [
      () => x.scaledDotProductAttention(tensor([2, 4, 2]), x),
      /^scaledDotProductAttention: query \[2, 4, 3\]/,
    ],
  ])("%s", (f, message) => {
    expect(f).toThrow(message);
  });
});
