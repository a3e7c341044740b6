// Layers against plain-array versions of torch's formulas, their names and initial values, what training
// changes in them, and what they refuse.

import { nn, Tensor } from "gradloom";
import { afterEach, describe, expect, test } from "vitest";
import { expectClose, matmul, numbers, rows, transpose } from "./close.ts";

type Mat = number[][];
afterEach(() => Tensor.manualSeed(0));

const data = async (t: Tensor | undefined) => (await (t as Tensor).tolist()) as Mat;
const vec = async (t: Tensor | undefined) => (await (t as Tensor).tolist()) as unknown as number[];
const affine = (x: Mat, w: Mat, b?: number[]): Mat =>
  matmul(x, transpose(w)).map((r) => r.map((y, j) => y + (b?.[j] ?? 0)));
const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));
const mean = (xs: number[]): number => xs.reduce((a, b) => a + b, 0) / xs.length;
const variance = (xs: number[]): number => mean(xs.map((x) => (x - mean(xs)) ** 2));
const standard = (xs: number[], eps = 1e-5): number[] =>
  xs.map((x) => (x - mean(xs)) / Math.sqrt(variance(xs) + eps));

describe("Linear, Embedding, Dropout, Sequential", () => {
  test("Linear", async () => {
    const lin = new nn.Linear(3, 2);
    const x = rows(numbers(1)(12), 3);
    await expectClose(lin.forward(new Tensor(x)), affine(x, await data(lin.weight), await vec(lin.bias)));
    const plain = new nn.Linear(3, 2, { bias: false });
    await expectClose(plain.forward(new Tensor(x)), affine(x, await data(plain.weight)));
    expect(() => lin.forward(Tensor.ones(2, 4))).toThrow(/linear: input \[2, 4\] and weight \[2, 3\]/);
    expect(() => new nn.Linear(0, 2)).toThrow(/Linear: inFeatures is 0/);
  });
  test("Embedding", async () => {
    const e = new nn.Embedding(4, 3, { paddingIdx: -1 });
    const w = await data(e.weight);
    expect(w[3]).toEqual([0, 0, 0]);
    const out = e.forward(new Tensor([[1, 3], [1, 0]])); // biome-ignore format: a matrix
    await expectClose(out, [
      [w[1], w[3]],
      [w[1], w[0]],
    ] as number[][][]);
    out.sum().backward();
    await expectClose(e.weight.grad as Tensor, [
      [1, 1, 1],
      [2, 2, 2],
      [0, 0, 0],
      [0, 0, 0],
    ]);
    expect(() => new nn.Embedding(4, 3, { paddingIdx: 4 })).toThrow(/paddingIdx 4 is not one of the 4 rows/);
  });
  test("Dropout drops in training only, and keeps the mean", async () => {
    const d = new nn.Dropout(0.25);
    const x = Tensor.ones(4000);
    expect(Tensor.noGrad(() => d.forward(x))).toBe(x);
    const y = await vec(d.forward(x));
    expect(new Set(y.map((v) => v.toFixed(4)))).toEqual(new Set(["0.0000", "1.3333"]));
    expect(Math.abs(mean(y) - 1)).toBeLessThan(0.05);
    expect(() => new nn.Dropout(1.5)).toThrow(/p is 1\.5/);
  });
  test("Sequential takes layers, functions, an array of them, other models", async () => {
    class Double {
      forward(x: Tensor): Tensor {
        return x.mul(2);
      }
    }
    const seq = new nn.Sequential([new Double(), (x) => x.add(1), new nn.Sequential(new Double())]);
    expect(await seq.forward(new Tensor([1, 2])).tolist()).toEqual([6, 10]);
    expect(() => new nn.Sequential(3 as unknown as Double)).toThrow(
      /^Sequential: layers is 3, expected a function/,
    );
  });
});

describe("initial values are those of torch", () => {
  const within = async (t: Tensor | undefined, bound: number) => {
    const xs = (await (t as Tensor).flatten().tolist()) as number[];
    expect(Math.max(...xs.map(Math.abs))).toBeLessThanOrEqual(bound);
    expect(Math.max(...xs.map(Math.abs))).toBeGreaterThan(0.9 * bound);
    if (xs.length > 500) expect(Math.sqrt(variance(xs))).toBeCloseTo(bound / Math.sqrt(3), 2);
  };
  test("Linear and convolutions: ±1 / sqrt(inputs of one output)", async () => {
    await within(new nn.Linear(100, 50).weight, 0.1);
    await within(new nn.Linear(100, 50).bias, 0.1);
    const conv = new nn.Conv2d(4, 50, 5, { groups: 2 });
    expect(conv.weight.shape).toEqual([50, 2, 5, 5]);
    await within(conv.weight, 1 / Math.sqrt(50));
    const turned = new nn.ConvTranspose2d(50, 4, 5);
    expect(turned.weight.shape).toEqual([50, 4, 5, 5]);
    await within(turned.weight, 0.1);
  });
  test("cells ±1 / sqrt(hidden), attention Glorot, embedding normal, norms 1 and 0", async () => {
    await within(new nn.GRUCell(8, 25).weightIh, 0.2);
    const mha = new nn.MultiHeadAttention(16, 4);
    await within(mha.inProjWeight, Math.sqrt(6 / 64));
    expect(await mha.inProjBias?.abs().sum().item()).toBe(0);
    expect(await mha.outProj.bias?.abs().sum().item()).toBe(0);
    const e = (await new nn.Embedding(100, 30).weight.flatten().tolist()) as number[];
    expect(Math.abs(mean(e))).toBeLessThan(0.08);
    expect(Math.abs(variance(e) - 1)).toBeLessThan(0.1);
    const norm = new nn.LayerNorm([2, 2]);
    expect(await norm.weight?.tolist()).toEqual([
      [1, 1],
      [1, 1],
    ]);
    expect(await norm.bias?.sum().item()).toBe(0);
  });
  test("the same seed gives the same model; types and devices can be chosen", async () => {
    const make = () => {
      Tensor.manualSeed(5);
      return new nn.Linear(3, 2);
    };
    expect(await make().weight.tolist()).toEqual(await make().weight.tolist());
    const other = new nn.Conv1d(1, 1, 3, { dtype: "float64", device: "JS" });
    expect([other.weight.dtype.name, other.weight.device]).toEqual(["float64", "JS"]);
    expect(nn.getParameters(other).every((p) => p.requiresGrad)).toBe(true);
  });
});

describe("convolutions", () => {
  test("Conv1d is a sum of products under a window", async () => {
    const conv = new nn.Conv1d(2, 3, 2, { stride: 2, padding: 1 });
    const x = [rows(numbers(2)(10), 5)];
    const [w, b] = [(await conv.weight.tolist()) as number[][][], await vec(conv.bias)];
    const at = (c: number, i: number): number => x[0]?.[c]?.[i] ?? 0;
    const expected = w.map((filter, o) =>
      [0, 1, 2].map((p) =>
        filter.reduce(
          (s, taps, c) => s + taps.reduce((t, v, k) => t + v * at(c, 2 * p + k - 1), 0),
          b[o] as number,
        ),
      ),
    );
    await expectClose(conv.forward(new Tensor(x)), [expected]);
  });
  test("a transposed convolution is the gradient of a convolution", async () => {
    const turned = new nn.ConvTranspose2d(2, 3, 3, { stride: 2, padding: 1, outputPadding: 1, bias: false });
    const y = new Tensor([rows(numbers(4)(18), 9)]).reshape(1, 2, 3, 3);
    const x = new Tensor(new Float32Array(108)).reshape(1, 3, 6, 6).detach();
    x.requiresGrad = true;
    x.conv2d(turned.weight.detach(), undefined, { stride: 2, padding: 1 }).mul(y).sum().backward();
    await expectClose(turned.forward(y), (await (x.grad as Tensor).tolist()) as number[]);
  });
  test.each([
    [
      "Conv3d",
      () => new nn.Conv3d(2, 4, [1, 2, 3]).forward(Tensor.ones(1, 2, 3, 3, 3)).shape,
      [1, 4, 3, 2, 1],
    ],
    [
      "ConvTranspose3d",
      () => new nn.ConvTranspose3d(2, 1, 2).forward(Tensor.ones(1, 2, 2, 2, 2)).shape,
      [1, 1, 3, 3, 3],
    ],
    [
      "same padding",
      () => new nn.Conv2d(1, 1, 3, { padding: "same" }).forward(Tensor.ones(1, 1, 5, 4)).shape,
      [1, 1, 5, 4],
    ],
    ["groups", () => new nn.Conv2d(4, 8, 1, { groups: 4 }).weight.shape, [8, 1, 1, 1]],
  ])("%s", (_, shape, expected) => {
    expect(shape()).toEqual(expected);
  });
  test("what is refused", () => {
    expect(() => new nn.Conv2d(3, 4, 3, { groups: 2 })).toThrow(/Conv2d: groups 2 must divide inChannels 3/);
    expect(() => new nn.Conv2d(3, 4, [3, 3, 3])).toThrow(
      /kernelSize is \[3,3,3\], expected one integer or 2/,
    );
    expect(() => new nn.Conv2d(3, 4, 3).forward(Tensor.ones(1, 2, 5, 5))).toThrow(
      /conv2d: input \[1, 2, 5, 5\]/,
    );
  });
});

describe("norms", () => {
  const x = rows(numbers(9)(12), 3); // 4 samples, 3 channels
  test("BatchNorm in training: the batch's own statistics, and the running ones move by a tenth", async () => {
    const bn = new nn.BatchNorm1d(3);
    await nn.loadStateDict(
      bn,
      { weight: new Tensor([1, 2, 3]), bias: new Tensor([0, 1, 0]) },
      { strict: false },
    );
    const y = Tensor.train(() => bn.forward(new Tensor(x)));
    const columns = transpose(x);
    const expected = columns.map((c, i) => standard(c).map((v) => v * (i + 1) + (i === 1 ? 1 : 0)));
    await expectClose(y, transpose(expected));
    await expectClose(
      bn.runningMean as Tensor,
      columns.map((c) => 0.1 * mean(c)),
    );
    await expectClose(
      bn.runningVar as Tensor,
      columns.map((c) => 0.9 + (0.1 * variance(c) * 4) / 3),
    );
    expect(await bn.numBatchesTracked?.item()).toBe(1n);
    Tensor.train(() => bn.forward(new Tensor(x)));
    await expectClose(
      bn.runningMean as Tensor,
      columns.map((c) => 0.19 * mean(c)),
    );
    expect(await bn.numBatchesTracked?.item()).toBe(2n);
  });
  test("BatchNorm after training: the running statistics, unchanged", async () => {
    const bn = new nn.BatchNorm2d(1, { eps: 0 });
    const state = { runningMean: new Tensor([2]), runningVar: new Tensor([4]) };
    await nn.loadStateDict(bn, state, { strict: false });
    const y = Tensor.noGrad(() => bn.forward(new Tensor([4, 6]).reshape(1, 1, 1, 2)));
    expect(await y.tolist()).toEqual([[[[1, 2]]]]);
    expect(await bn.numBatchesTracked?.item()).toBe(0n);
  });
  test("momentum null: the plain average of the batches", async () => {
    const bn = new nn.BatchNorm1d(3, { momentum: null });
    const other = rows(numbers(10)(12), 3);
    for (const batch of [x, other]) Tensor.train(() => bn.forward(new Tensor(batch)));
    const both = [transpose(x), transpose(other)] as const;
    await expectClose(
      bn.runningMean as Tensor,
      both[0].map((c, i) => (mean(c) + mean(both[1][i] as number[])) / 2),
    );
  });
  test("warmUp: the average of the batches, until their number makes momentum the larger weight", async () => {
    const bn = new nn.BatchNorm1d(3, { momentum: 0.4, warmUp: true });
    const seen = [x, rows(numbers(10)(12), 3), rows(numbers(11)(12), 3)];
    for (const batch of seen) Tensor.train(() => bn.forward(new Tensor(batch)));
    const [a, b, c] = seen.map((batch) => transpose(batch)) as [number[][], number[][], number[][]];
    const moved = (f: (column: number[]) => number): number[] =>
      a.map((column, i) => 0.3 * (f(column) + f(b[i] as number[])) + 0.4 * f(c[i] as number[]));
    await expectClose(bn.runningMean as Tensor, moved(mean));
    await expectClose(
      bn.runningVar as Tensor,
      moved((column) => (variance(column) * 4) / 3),
    );
  });
  test("without statistics it always takes the batch's; without a scale it has none", async () => {
    const bn = new nn.BatchNorm1d(3, { trackRunningStats: false, affine: false });
    expect(nn.getStateDict(bn)).toEqual({});
    await expectClose(bn.forward(new Tensor(x)), transpose(transpose(x).map((c) => standard(c))));
  });
  test("an optimiser step computes the pending updates of batch norm, and none accumulate", async () => {
    const model = new nn.Sequential(new nn.BatchNorm1d(3), new nn.Linear(3, 1));
    const bn = model[0] as nn.BatchNorm1d;
    const opt = new nn.optim.SGD(nn.getParameters(model), { lr: 0.1 });
    const input = new Tensor(x);
    for (let i = 0; i < 3; i++) {
      opt.zeroGrad();
      Tensor.train(() => model.forward(input))
        .square()
        .mean()
        .backward();
      await opt.step();
      for (const t of [bn.runningMean, bn.runningVar, bn.numBatchesTracked]) {
        expect(t?.lazydata.base.realized).toBeDefined();
      }
    }
    expect(await bn.numBatchesTracked?.item()).toBe(3n);
  });
  test("LayerNorm, RMSNorm, GroupNorm, InstanceNorm", async () => {
    const t = new Tensor(x);
    await expectClose(
      new nn.LayerNorm(3).forward(t),
      x.map((r) => standard(r)),
    );
    await expectClose(new nn.LayerNorm([4, 3]).forward(t), rows(standard(x.flat()), 3));
    const rms = x.map((r) => r.map((v) => v / Math.sqrt(mean(r.map((u) => u * u)) + 2 ** -23)));
    await expectClose(new nn.RMSNorm(3).forward(t), rms);
    const image = t.reshape(1, 4, 3);
    await expectClose(new nn.InstanceNorm1d(4).forward(image), [x.map((r) => standard(r))]);
    await expectClose(
      new nn.InstanceNorm1d(4).forward(t),
      x.map((r) => standard(r)),
    );
    const groups = rows([...standard(x.slice(0, 2).flat()), ...standard(x.slice(2).flat())], 3);
    await expectClose(new nn.GroupNorm(2, 4).forward(image), [groups]);
  });
  test("InstanceNorm that tracks", async () => {
    const norm = new nn.InstanceNorm1d(4, { trackRunningStats: true });
    Tensor.train(() => norm.forward(new Tensor([x])));
    await expectClose(
      norm.runningMean as Tensor,
      x.map((r) => 0.1 * mean(r)),
    );
  });
  test("what is refused", () => {
    expect(() => new nn.BatchNorm2d(3).forward(Tensor.ones(2, 3))).toThrow(
      /BatchNorm2d: shape \[2, 3\] has 2 dims, expected 4/,
    );
    expect(() => new nn.BatchNorm1d(3).forward(Tensor.ones(2, 4))).toThrow(
      /has 4 channels in dim 1, the layer has 3/,
    );
    expect(() => Tensor.train(() => new nn.BatchNorm1d(3).forward(Tensor.ones(1, 3)))).toThrow(
      /at least two/,
    );
    expect(() => new nn.GroupNorm(3, 4)).toThrow(/GroupNorm: 3 groups do not divide 4 channels/);
    expect(() => new nn.LayerNorm(3).forward(Tensor.ones(2, 4))).toThrow(
      /layerNorm: normalizedShape is \[3\]/,
    );
  });
});

describe("cells", () => {
  const x = rows(numbers(20)(6), 3);
  const [h, c] = [rows(numbers(21)(4), 2), rows(numbers(22)(4), 2)];
  const weights = async (cell: nn.GRUCell | nn.LSTMCell) => ({
    i: affine(x, await data(cell.weightIh), await vec(cell.biasIh)),
    h: affine(h, await data(cell.weightHh), await vec(cell.biasHh)),
  });
  test("LSTMCell: input, forget, cell and output gate stacked", async () => {
    const cell = new nn.LSTMCell(3, 2);
    const w = await weights(cell);
    const [nextH, nextC] = cell.forward(new Tensor(x), [new Tensor(h), new Tensor(c)]);
    const gate = (b: number, k: number, j: number) =>
      (w.i[b]?.[2 * k + j] as number) + (w.h[b]?.[2 * k + j] as number);
    const newC = c.map((r, b) =>
      r.map((v, j) => sigmoid(gate(b, 1, j)) * v + sigmoid(gate(b, 0, j)) * Math.tanh(gate(b, 2, j))),
    );
    await expectClose(nextC, newC);
    await expectClose(
      nextH,
      newC.map((r, b) => r.map((v, j) => sigmoid(gate(b, 3, j)) * Math.tanh(v))),
    );
  });
  test("GRUCell: reset, update and new gate stacked", async () => {
    const cell = new nn.GRUCell(3, 2);
    const w = await weights(cell);
    const i = (b: number, k: number, j: number) => w.i[b]?.[2 * k + j] as number;
    const g = (b: number, k: number, j: number) => w.h[b]?.[2 * k + j] as number;
    const expected = h.map((row, b) =>
      row.map((old, j) => {
        const r = sigmoid(i(b, 0, j) + g(b, 0, j));
        const z = sigmoid(i(b, 1, j) + g(b, 1, j));
        const n = Math.tanh(i(b, 2, j) + r * g(b, 2, j));
        return (1 - z) * n + z * old;
      }),
    );
    await expectClose(cell.forward(new Tensor(x), new Tensor(h)), expected);
  });
  test("without a state they start at zero; wrong sizes are named", async () => {
    const cell = new nn.GRUCell(3, 2);
    const zero = cell.forward(new Tensor(x), Tensor.zeros(2, 2));
    expect(await cell.forward(new Tensor(x)).tolist()).toEqual(await zero.tolist());
    expect(() => cell.forward(Tensor.ones(2, 4))).toThrow(
      /GRUCell: input has shape \[2, 4\], expected 3 features/,
    );
    expect(() => cell.forward(Tensor.ones(2, 3), Tensor.ones(2, 3))).toThrow(
      /state has shape \[2, 3\], expected \[2, 2\]/,
    );
  });
});

describe("attention", () => {
  /** One head after the other, in plain numbers. */
  async function attend(
    mha: nn.MultiHeadAttention,
    q: Mat,
    k: Mat,
    v: Mat,
    allowed: (i: number, j: number) => boolean,
  ) {
    const [w, b] = [await data(mha.inProjWeight), await vec(mha.inProjBias)];
    const e = mha.embedDim;
    const d = e / mha.numHeads;
    const [pq, pk, pv] = [q, k, v].map((x, i) =>
      affine(x, w.slice(i * e, (i + 1) * e), b.slice(i * e, (i + 1) * e)),
    ) as [Mat, Mat, Mat];
    const out: Mat = q.map(() => []);
    for (let head = 0; head < mha.numHeads; head++) {
      const part = (m: Mat): Mat => m.map((r) => r.slice(head * d, (head + 1) * d));
      const scores = matmul(part(pq), transpose(part(pk))).map((r, i) =>
        r.map((s, j) => (allowed(i, j) ? Math.exp(s / Math.sqrt(d)) : 0)),
      );
      const shares = scores.map((r) => r.map((s) => s / r.reduce((a, c) => a + c, 0)));
      matmul(shares, part(pv)).forEach((r, i) => void out[i]?.push(...r));
    }
    return affine(out, await data(mha.outProj.weight), await vec(mha.outProj.bias));
  }
  const x = rows(numbers(30)(20), 4);
  const y = rows(numbers(31)(12), 4);

  test("of a sequence to itself, all or only the past", async () => {
    const mha = new nn.MultiHeadAttention(4, 2);
    const t = new Tensor([x]);
    await expectClose(mha.forward(t), [await attend(mha, x, x, x, () => true)]);
    const causal = [await attend(mha, x, x, x, (i, j) => j <= i)];
    await expectClose(mha.forward(t, t, t, { isCausal: true }), causal);
    const mask = new Tensor(x.map((_, i) => x.map((_, j) => j <= i)));
    await expectClose(mha.forward(t, t, t, { mask }), causal);
  });
  test("to another sequence", async () => {
    const mha = new nn.MultiHeadAttention(4, 2);
    await expectClose(mha.forward(new Tensor(x), new Tensor(y)), await attend(mha, x, y, y, () => true));
  });
  test("what is refused", () => {
    expect(() => new nn.MultiHeadAttention(5, 2)).toThrow(/2 heads do not divide a width of 5/);
    expect(() => new nn.MultiHeadAttention(4, 2).forward(Tensor.ones(3, 5))).toThrow(
      /shape \[3, 5\] is not \[\.\.\., length, 4\]/,
    );
  });
  test.each([true, false])("TransformerBlock, norm first: %s", async (normFirst) => {
    const block = new nn.TransformerBlock(4, 2, { dimFeedforward: 6, normFirst });
    const norm = (m: Mat) => m.map((r) => standard(r));
    const sum = (a: Mat, b: Mat) => a.map((r, i) => r.map((v, j) => v + (b[i]?.[j] as number)));
    const [l1, l2] = [block.linear1, block.linear2];
    const feed = async (m: Mat) => {
      const inner = affine(m, await data(l1.weight), await vec(l1.bias)).map((r) =>
        r.map((v) => Math.max(0, v)),
      );
      return affine(inner, await data(l2.weight), await vec(l2.bias));
    };
    const see = (m: Mat) => attend(block.selfAttn, m, m, m, () => true);
    const seen = normFirst ? sum(x, await see(norm(x))) : norm(sum(x, await see(x)));
    const expected = normFirst ? sum(seen, await feed(norm(seen))) : norm(sum(seen, await feed(seen)));
    await expectClose(block.forward(new Tensor([x])), [expected], 1e-4);
    expect(Object.keys(nn.getStateDict(block))).toEqual([
      "selfAttn.inProjWeight",
      "selfAttn.inProjBias",
      "selfAttn.outProj.weight",
      "selfAttn.outProj.bias",
      "linear1.weight",
      "linear1.bias",
      "linear2.weight",
      "linear2.bias",
      "norm1.weight",
      "norm1.bias",
      "norm2.weight",
      "norm2.bias",
    ]);
  });
  test("gradients reach every parameter of a block", () => {
    const block = new nn.TransformerBlock(4, 2, { dropout: 0.1 });
    Tensor.train(() => block.forward(Tensor.ones(1, 3, 4), { isCausal: true }))
      .square()
      .sum()
      .backward();
    expect(nn.getParameters(block).filter((p) => p.grad === undefined)).toEqual([]);
  });
});
