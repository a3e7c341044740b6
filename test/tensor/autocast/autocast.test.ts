// Tensor.autocast: the type of each method's result by its class, gradients of casts, weights that are cast
// once, and what else has scopes or runs functions again: jits, scans, checkpoints, async tasks.

import { createSchedule, Device, func, nn, scan, Tensor, TinyJit, withEnv } from "gradloom";
import { CUDARenderer } from "gradloom/render";
import { describe, expect, test } from "vitest";
import { Scopes } from "../../../src/engine/scope.ts";
import { makeAsyncScope } from "../../../src/host/browser.ts";
import { CLASSES } from "../../../src/tensor/autocast/classes.ts";
import { registerOracle } from "../../devices/oracle.ts";

type Call = (t: (...shape: number[]) => Tensor) => Tensor | readonly Tensor[];
const LABELS = new Tensor([0, 1]);
const ONES = new Tensor([1, -1]);

/** A call of each method that has a class; `t` makes operands. */
const CALLS: Readonly<Record<string, Call>> = {
  dot: (t) => t(2, 3).dot(t(3, 2)),
  matmul: (t) => t(2, 3).matmul(t(3, 2)),
  mm: (t) => t(2, 3).mm(t(3, 2)),
  bmm: (t) => t(2, 2, 3).bmm(t(2, 3, 2)),
  mv: (t) => t(2, 3).mv(t(3)),
  vdot: (t) => t(3).vdot(t(3)),
  inner: (t) => t(3).inner(t(3)),
  addmm: (t) => t(2, 2).addmm(t(2, 3), t(3, 2)),
  addmv: (t) => t(2).addmv(t(2, 3), t(3)),
  addbmm: (t) => t(2, 2).addbmm(t(2, 2, 3), t(2, 3, 2)),
  baddbmm: (t) => t(2, 2, 2).baddbmm(t(2, 2, 3), t(2, 3, 2)),
  addr: (t) => t(2, 3).addr(t(2), t(3)),
  tensordot: (t) => t(2, 3).tensordot(t(3, 2), 1),
  chainMatmul: (t) => t(2, 3).chainMatmul(t(3, 2), t(2, 2)),
  multiDot: (t) => Tensor.multiDot([t(2, 3), t(3, 2), t(2, 2)]),
  einsum: (t) => Tensor.einsum("ij,jk->ik", t(2, 3), t(3, 2)),
  linear: (t) => t(2, 3).linear(t(4, 3), t(4)),
  conv1d: (t) => t(1, 2, 5).conv1d(t(3, 2, 2), t(3)),
  conv2d: (t) => t(1, 2, 5, 5).conv2d(t(3, 2, 2, 2)),
  conv3d: (t) => t(1, 2, 3, 3, 3).conv3d(t(3, 2, 2, 2, 2)),
  convTranspose1d: (t) => t(1, 2, 5).convTranspose1d(t(2, 3, 2)),
  convTranspose2d: (t) => t(1, 2, 5, 5).convTranspose2d(t(2, 3, 2, 2)),
  convTranspose3d: (t) => t(1, 2, 3, 3, 3).convTranspose3d(t(2, 3, 2, 2, 2)),
  scaledDotProductAttention: (t) =>
    t(2, 3, 4).scaledDotProductAttention(t(2, 3, 4), t(2, 3, 4), { attnMask: t(3, 3) }),
  prelu: (t) => t(2, 3).prelu(t(1)),
  pow: (t) => t(2).pow(2.5),
  floatPower: (t) => t(2).floatPower(2).float(),
  hypot: (t) => t(2).hypot(t(2)),
  logaddexp: (t) => t(2).logaddexp(t(2)),
  logaddexp2: (t) => t(2).logaddexp2(t(2)),
  xlogy: (t) => t(2).xlogy(t(2)),
  polygamma: (t) => t(2).polygamma(1),
  mvlgamma: (t) => t(2).add(1).mvlgamma(1),
  acosh: (t) => t(2).add(1).acosh(),
  logsumexp: (t) => t(2, 3).logsumexp(1),
  logcumsumexp: (t) => t(2, 3).logcumsumexp(1),
  cumsum: (t) => t(2, 3).cumsum(1),
  cumprod: (t) => t(2, 3).cumprod(1),
  varMean: (t) => t(2, 3).varMean(),
  stdMean: (t) => t(2, 3).stdMean(),
  trapezoid: (t) => t(3).trapezoid(),
  trace: (t) => t(2, 2).trace(),
  layerNorm: (t) => t(2, 3).layerNorm(3, { weight: t(3), bias: t(3) }),
  groupNorm: (t) => t(2, 4, 3).groupNorm(2),
  rmsNorm: (t) => t(2, 3).rmsNorm(3),
  matrixNorm: (t) => t(2, 2).matrixNorm(),
  dist: (t) => t(2).dist(t(2)),
  cdist: (t) => t(2, 3).cdist(t(2, 3)),
  pairwiseDistance: (t) => t(2, 3).pairwiseDistance(t(2, 3)),
  cosineSimilarity: (t) => t(2, 3).cosineSimilarity(t(2, 3)),
  solve: (t) => spd(t).solve(t(2, 1)),
  solveTriangular: (t) => spd(t).solveTriangular(t(2, 1), { upper: true }),
  inverse: (t) => spd(t).inverse(),
  inv: (t) => spd(t).inv(),
  pinv: (t) => spd(t).pinv(),
  lstsq: (t) => spd(t).lstsq(t(2, 1)).solution,
  det: (t) => spd(t).det(),
  slogdet: (t) => spd(t).slogdet(),
  logdet: (t) => spd(t).logdet(),
  matrixPower: (t) => spd(t).matrixPower(3),
  cholesky: (t) => spd(t).cholesky(),
  qr: (t) => spd(t).qr(),
  svd: (t) => spd(t).svd(),
  svdvals: (t) => spd(t).svdvals(),
  eigh: (t) => spd(t).eigh(),
  eigvalsh: (t) => spd(t).eigvalsh(),
  crossEntropy: (t) => t(2, 3).crossEntropy(LABELS),
  nllLoss: (t) => t(2, 3).nllLoss(LABELS),
  sparseCategoricalCrossentropy: (t) => t(2, 3).sparseCategoricalCrossentropy(LABELS),
  poissonNllLoss: (t) => t(2).poissonNllLoss(t(2)),
  gaussianNllLoss: (t) => t(2).gaussianNllLoss(t(2), t(2)),
  hingeEmbeddingLoss: (t) => t(2).hingeEmbeddingLoss(ONES),
  marginRankingLoss: (t) => t(2).marginRankingLoss(t(2), ONES),
  tripletMarginLoss: (t) => t(2, 3).tripletMarginLoss(t(2, 3), t(2, 3)),
  cosineEmbeddingLoss: (t) => t(2, 3).cosineEmbeddingLoss(t(2, 3), ONES),
  softMarginLoss: (t) => t(2).softMarginLoss(ONES),
  multiMarginLoss: (t) => t(2, 3).multiMarginLoss(LABELS),
  multilabelMarginLoss: (t) =>
    t(2, 3).multilabelMarginLoss(
      new Tensor([
        [0, -1, 0],
        [1, -1, 0],
      ]),
    ),
};
/** A matrix that has an inverse and a Cholesky factor, made of an operand. */
const spd = (t: (...shape: number[]) => Tensor): Tensor =>
  t(2, 2)
    .mul(0)
    .add(
      new Tensor(
        [
          [2, 0.5],
          [0.5, 1],
        ],
        { dtype: t(1).dtype },
      ),
    );
const COUNTED =
  /^(?:sum|mean|var|std|prod|nansum|nanmean|softmax|logSoftmax|softmin|norm|normalize|vectorNorm|linalgNorm|matrixRank)$/;
type AnyMethod = (...args: unknown[]) => Tensor;
function callOf(method: string): Call {
  const own = CALLS[method];
  if (own !== undefined) return own;
  const call = (x: Tensor, ...args: unknown[]) => (x[method as keyof Tensor] as AnyMethod).call(x, ...args);
  if (COUNTED.test(method)) return (t) => call(t(2, 3));
  // losses of two tensors of one shape, and functions of one
  return /Loss$|^klDiv|bce|^binary/.test(method) ? (t) => call(t(2), t(2)) : (t) => call(t(2));
}
const operand =
  (dtype: "float32" | "bfloat16" | "float16" | "float64") =>
  (...shape: number[]): Tensor =>
    Tensor.full(shape, 0.25, { dtype });
const typesOf = (made: Tensor | readonly Tensor[]): string[] =>
  (made instanceof Tensor ? [made] : made).map((t) => t.dtype.name);

const methods = (name: string) => [...CLASSES].filter(([, c]) => c === name).map(([method]) => method);

describe("classes of methods", () => {
  const cast = (
    type: "bfloat16" | "float16",
    call: Call,
    from: "float32" | "bfloat16" | "float16" | "float64",
  ) => typesOf(Tensor.autocast(type, () => call(operand(from))));
  test.for(methods("narrow"))("%s takes float32 as the narrow type", (method) => {
    const call = callOf(method);
    for (const type of ["bfloat16", "float16"] as const) {
      expect(new Set(cast(type, call, "float32"))).toEqual(new Set([type]));
    }
    // one of them is not narrowed, so that the other one need not be
    expect(cast("bfloat16", call, "float64")).toEqual(["float64"]);
    expect(typesOf(call(operand("float32")))).toEqual(["float32"]);
    expect(
      typesOf(Tensor.autocast("float16", () => Tensor.autocast(false, () => call(operand("float32"))))),
    ).toEqual(["float32"]);
  });
  test.for(methods("float32"))("%s takes the narrow type as float32", (method) => {
    const call = callOf(method);
    const wide = typesOf(call(operand("float32")));
    for (const type of ["bfloat16", "float16"] as const) expect(cast(type, call, type)).toEqual(wide);
    expect(wide).not.toContain("bfloat16");
  });
  test("every class names methods of Tensor", () => {
    const known = [...CLASSES.keys()].filter((m) => !(m in Tensor.prototype) && !(m in Tensor));
    expect(known).toEqual([]);
  });
  test("all else promotes as outside", async () => {
    const [x, low] = [Tensor.ones(2, 3), Tensor.ones([2, 3], { dtype: "bfloat16" })];
    const made = Tensor.autocast("bfloat16", () => [
      low.add(x),
      low.mul(2),
      low.relu(),
      low.max(),
      x.tanh(),
      low.gelu(),
    ]);
    expect(typesOf(made)).toEqual(["float32", "bfloat16", "bfloat16", "bfloat16", "float32", "bfloat16"]);
  });
  test("arrays in the place of Tensors, integers and numbers of 64 bits", () => {
    const x = Tensor.ones(2, 2);
    const made = Tensor.autocast("bfloat16", () => [
      x.matmul([
        [1.5, 2],
        [3, 4],
      ] as unknown as Tensor),
      x.matmul(
        new Tensor([
          [1, 2],
          [3, 4],
        ]),
      ),
      x.matmul(Tensor.ones([2, 2], { dtype: "float64" })),
      new Tensor([[1, 2]]).matmul(new Tensor([[1], [2]])),
    ]);
    expect(typesOf(made)).toEqual(["bfloat16", "bfloat16", "float64", "int32"]);
  });
  test("batch norm gives the type of its input, in training and after it", () => {
    const bn = new nn.BatchNorm2d(2);
    const x = Tensor.ones([2, 2, 3, 3], { dtype: "bfloat16" });
    const made = Tensor.autocast("bfloat16", () => [bn.forward(x), nn.evaluate(bn).forward(x)]);
    expect(typesOf(made)).toEqual(["bfloat16", "bfloat16"]);
    expect(bn.runningMean?.dtype.name).toBe("float32");
  });
  test("a sum of products adds up in float32", async () => {
    // in bfloat16 256 + 1 is 256
    const x = Tensor.ones(1, 1000);
    const y = Tensor.autocast("bfloat16", () => x.matmul(Tensor.ones(1000, 1)));
    expect(await y.item()).toBe(1000);
  });
});

describe("layers", () => {
  const x = Tensor.full([2, 3, 8], 0.5);
  const image = Tensor.full([1, 2, 6, 6], 0.5);
  const LAYERS: Readonly<Record<string, readonly [string, () => Tensor]>> = {
    Linear: ["bfloat16", () => new nn.Linear(8, 4).forward(x)],
    Conv2d: ["bfloat16", () => new nn.Conv2d(2, 3, 3).forward(image)],
    ConvTranspose2d: ["bfloat16", () => new nn.ConvTranspose2d(2, 3, 3).forward(image)],
    Bilinear: ["bfloat16", () => new nn.Bilinear(8, 8, 4, { bias: false }).forward(x, x).bfloat16()],
    PReLU: ["bfloat16", () => new nn.PReLU().forward(x)],
    MultiHeadAttention: ["bfloat16", () => new nn.MultiHeadAttention(8, 2).forward(x)],
    RNNCell: ["bfloat16", () => new nn.RNNCell(8, 4).forward(x.select(1, 0))],
    LayerNorm: ["float32", () => new nn.LayerNorm(8).forward(x.bfloat16())],
    GroupNorm: ["float32", () => new nn.GroupNorm(1, 3).forward(x.bfloat16())],
    Softmax: ["float32", () => new nn.Softmax(-1).forward(x.bfloat16())],
    MSELoss: ["float32", () => new nn.MSELoss().forward(x.bfloat16(), x)],
    CrossEntropyLoss: [
      "float32",
      () => new nn.CrossEntropyLoss().forward(Tensor.ones([2, 3], { dtype: "bfloat16" }), LABELS),
    ],
    CosineSimilarity: ["float32", () => new nn.CosineSimilarity().forward(x.bfloat16(), x.bfloat16())],
    TransformerBlock: ["float32", () => new nn.TransformerBlock(8, 2).forward(x)],
  };
  test.for(Object.keys(LAYERS))("%s as the methods that it is made of", (name) => {
    const [type, forward] = LAYERS[name] as (typeof LAYERS)[string];
    expect(Tensor.autocast("bfloat16", forward).dtype.name).toBe(type);
  });
  test.for(["RNN", "LSTM", "GRU"] as const)(
    "%s: gates in the narrow type, the state as it was",
    async (name) => {
      Tensor.manualSeed(3);
      const layer = new nn[name](8, 4, { numLayers: 2 });
      const sequence = Tensor.randn(5, 2, 8);
      const [output] = Tensor.autocast("bfloat16", () => layer.forward(sequence));
      expect(output.dtype.name).toBe("float32");
      const exact = layer.forward(sequence)[0];
      const apart = await output.sub(exact).abs().max().item();
      expect(apart).toBeGreaterThan(0);
      expect(apart).toBeLessThan(0.03);
      output.sum().backward();
      expect(nn.getParameters(layer).map((p) => p.grad?.dtype.name)).toEqual(
        nn.getParameters(layer).map(() => "float32"),
      );
    },
  );
});

describe("gradients", () => {
  test("are those of casts written by hand, in float32", async () => {
    Tensor.manualSeed(4);
    const x = await Tensor.randn(6, 5).realize();
    const [w, v] = [nn.parameter(Tensor.randn(4, 5)), nn.parameter(Tensor.randn(3, 4))];
    const b = nn.parameter(Tensor.randn(4));
    const take = async (loss: Tensor) => {
      loss.backward();
      const found = [w, v, b].map((p) => p.grad as Tensor);
      for (const p of [w, v, b]) p.grad = undefined;
      expect(typesOf(found)).toEqual(["float32", "float32", "float32"]);
      return Promise.all([loss, ...found].map((g) => g.tolist()));
    };
    const hand = x
      .bfloat16()
      .linear(w.bfloat16(), b.bfloat16())
      .gelu()
      .linear(v.bfloat16())
      .float()
      .square()
      .mean();
    const auto = Tensor.autocast("bfloat16", () => x.linear(w, b).gelu().linear(v).square().mean());
    expect(await take(auto)).toEqual(await take(hand));
  });
  test("backward gives the same inside of autocast and after it", async () => {
    const w = nn.parameter(Tensor.rand(3, 3));
    const grads: unknown[] = [];
    for (const inside of [true, false]) {
      w.grad = undefined;
      const loss = Tensor.autocast("bfloat16", () => {
        const y = w.matmul(w).exp().sum();
        if (inside) y.backward();
        return y;
      });
      if (!inside) loss.backward();
      grads.push(await (w.grad as unknown as Tensor).tolist());
    }
    expect(grads[0]).toEqual(grads[1]);
  });
  test("a checkpoint and a scan are computed again as they were", async () => {
    const w = nn.parameter(Tensor.rand(3, 3));
    const f = (x: Tensor) => x.matmul(w).tanh();
    const x = Tensor.rand(2, 3);
    const gradOf = async (y: Tensor) => {
      w.grad = undefined;
      y.sum().backward();
      return (await (w.grad as unknown as Tensor).tolist()) as number[][];
    };
    const plain = await gradOf(Tensor.autocast("bfloat16", () => f(x)));
    expect(await gradOf(Tensor.autocast("bfloat16", () => Tensor.checkpoint(f, x)))).toEqual(plain);
    // a gradient of a gradient calls the body of a scan once more
    const looped = Tensor.autocast(
      "bfloat16",
      () =>
        scan(
          (c: Tensor, r: Tensor) => [c.add(f(r.unsqueeze(0)).float().sum()), undefined],
          Tensor.zeros(1),
          x,
        )[0],
    );
    w.grad = undefined;
    looped.sum().backward(undefined, { createGraph: true });
    const [near, found] = [
      plain.flat(),
      ((await (w.grad as unknown as Tensor).tolist()) as number[][]).flat(),
    ];
    for (const [i, g] of found.entries()) expect(g).toBeCloseTo(near[i] as number, 1);
    const exact = await gradOf(f(x));
    expect(found).not.toEqual(exact.flat());
  });
  test("func.grad and func.vmap", async () => {
    const [w, x] = [Tensor.rand(3, 3), Tensor.rand(4, 3)];
    const loss = (v: Tensor) => x.matmul(v).square().mean();
    const auto = Tensor.autocast("bfloat16", () => func.grad(loss, w));
    expect(auto.dtype.name).toBe("float32");
    const hand = func.grad((v) => x.bfloat16().matmul(v.bfloat16()).float().square().mean(), w);
    expect(await auto.tolist()).toEqual(await hand.tolist());
    const rows = Tensor.autocast("bfloat16", () => func.vmap((r) => w.mv(r))(x));
    expect(rows.dtype.name).toBe("bfloat16");
    expect(await rows.float().tolist()).toEqual(
      await Tensor.autocast("bfloat16", () => x.linear(w))
        .float()
        .tolist(),
    );
  });
  test("on two devices", async () => {
    Tensor.manualSeed(5);
    const w = nn.parameter(Tensor.rand(3, 4));
    const x = await Tensor.rand(6, 4).realize();
    const loss = (x: Tensor, w: Tensor) => Tensor.autocast("bfloat16", () => x.linear(w).square().mean());
    loss(x, w).backward();
    const devices = ["WASM:0", "WASM:1"];
    const both = nn.parameter(w.detach().shard(devices));
    const y = loss(x.shard(devices, 0), both);
    y.backward();
    expect(both.grad?.dtype.name).toBe("float32");
    const [a, b] = await Promise.all(
      [w, both].map(async (p) => ((await (p.grad as unknown as Tensor).tolist()) as number[][]).flat()),
    );
    for (const [i, g] of (a ?? []).entries()) expect(b?.[i]).toBeCloseTo(g, 2);
    expect(a).toHaveLength(12);
  });
});

describe("weights are cast once", () => {
  const kernels = (...outs: (Tensor | undefined)[]) =>
    createSchedule(outs.map((t) => (t as Tensor).lazydata)).filter(({ ast }) => ast.length > 0);
  /** The kernels of a step of an MLP, by the number of weights. */
  async function step(device: string, type: "bfloat16" | false, byHand = false): Promise<number> {
    Tensor.manualSeed(0);
    const place = { device };
    const x = Tensor.rand([64, 16], place).contiguous();
    const y = Tensor.rand([64, 1], place).contiguous();
    Tensor.realizeSync(x, y);
    const layers = [new nn.Linear(16, 32, place), new nn.Linear(32, 32, place), new nn.Linear(32, 1, place)];
    const params = nn.getParameters(layers);
    Tensor.realizeSync(...params);
    const low = (t: Tensor) => (byHand ? t.bfloat16() : t);
    const forward = (h: Tensor) =>
      layers.reduce((z, l, i) => {
        const out = byHand ? low(z).linear(low(l.weight), low(l.bias as Tensor)) : l.forward(z);
        return i < 2 ? out.relu() : out;
      }, h);
    const optimizer = new nn.optim.SGD(params, { lr: 0.1 });
    const jit = new TinyJit(async () => {
      optimizer.zeroGrad();
      const loss = Tensor.autocast(type, () => forward(x).float().mseLoss(y));
      loss.backward();
      await optimizer.step(loss);
      return loss;
    });
    for (let i = 0; i < 2; i++) await jit();
    return jit.jitCache.length;
  }
  test.for(["WASM", registerOracle("AUTOCASTGPU", CUDARenderer)])(
    "a step on %s has no more kernels than in float32 and for the casts",
    async (device) => {
      await Device.open(device);
      const wide = await step(device, false);
      const [narrow, byHand] = [await step(device, "bfloat16"), await step(device, false, true)];
      // the input, and three weights with their biases
      expect(narrow).toBeGreaterThan(wide);
      expect(narrow).toBeLessThanOrEqual(wide + 7);
      expect(narrow).toBeLessThanOrEqual(byHand);
    },
  );
  test("products on a GPU read what is narrow, and each weight is narrowed by one kernel", async () => {
    const device = "AUTOCASTGPU";
    await Device.open(device);
    const [x, w] = [Tensor.rand([64, 64], { device }), Tensor.rand([64, 64], { device })];
    await Tensor.realize(x, w);
    w.requiresGrad = true;
    const y = Tensor.autocast("bfloat16", () => x.linear(w).relu().linear(w).linear(w));
    const all = kernels(y);
    const read = all.map(({ inputs }) => inputs.map((b) => b.dtype.name));
    expect(read.filter((types) => types.includes("float32"))).toEqual([["float32"], ["float32"]]);
    expect(all).toHaveLength(5);
  });
  test("a weight that changed is cast again", async () => {
    const w = nn.parameter(Tensor.ones(2, 2));
    const x = Tensor.ones(1, 2);
    const values = await Tensor.autocast("bfloat16", async () => {
      const first = await x.matmul(w).tolist();
      await w.assign(Tensor.full([2, 2], 2, { dtype: "float32" })).realize();
      const second = await x.matmul(w).tolist();
      const jit = new TinyJit(() => w.assign(w.add(1)).realize());
      for (let i = 0; i < 3; i++) await jit();
      return [first, second, await x.matmul(w).tolist()];
    });
    expect(values).toEqual([[[2, 2]], [[4, 4]], [[10, 10]]]);
  });
  test("what noGrad cast does not cut the gradient off", () => {
    const w = nn.parameter(Tensor.ones(2, 2));
    Tensor.autocast("bfloat16", () => {
      expect(Tensor.noGrad(() => w.matmul(w)).requiresGrad).toBe(false);
      w.matmul(w).sum().backward();
    });
    expect(w.grad?.dtype.name).toBe("float32");
  });
});

describe("scopes", () => {
  test("it holds as long as an async function runs, and in no other task", async () => {
    const w = Tensor.ones(2, 2);
    const seen: string[] = [];
    const task = async (): Promise<void> => {
      for (let i = 0; i < 2; i++) {
        seen.push(w.matmul(w).dtype.name);
        await new Promise((resolve) => setTimeout(resolve, 0));
      }
    };
    await Promise.all([Tensor.autocast("bfloat16", task), task(), Tensor.autocast("float16", task)]);
    expect(seen.sort()).toEqual(["bfloat16", "bfloat16", "float16", "float16", "float32", "float32"]);
    expect(w.matmul(w).dtype.name).toBe("float32");
  });
  test("nested in noGrad and train, and switched off inside", () => {
    const w = nn.parameter(Tensor.ones(2, 2));
    const types = Tensor.autocast("bfloat16", () => [
      Tensor.noGrad(() => w.matmul(w)),
      Tensor.train(() => w.matmul(w)),
      Tensor.autocast("float16", () => w.matmul(w)),
      Tensor.autocast(false, () => w.matmul(w)),
      w.matmul(w),
    ]);
    expect(typesOf(types)).toEqual(["bfloat16", "bfloat16", "float16", "float32", "bfloat16"]);
  });
  test("in a page, what runs beside an async function is refused", async () => {
    const scopes = new Scopes(makeAsyncScope());
    let done = (): void => {};
    const under = scopes.run(
      { autocast: Tensor.ones(1).bfloat16().dtype },
      () => new Promise<void>((r) => (done = r)),
    );
    expect(() => scopes.get("autocast")).toThrow(/autocast is under way/);
    expect(scopes.get("recording")).toBe(true);
    done();
    await under;
    expect(scopes.get("autocast")).toBe(undefined);
  });
  test.for(["float32", "int8", "half precision", undefined, true])("%s is refused", (dtype) => {
    expect(() => Tensor.autocast(dtype as "bfloat16", () => 1)).toThrow(/^autocast: /);
  });
  test("a DType, and a name of torch's", () => {
    const w = Tensor.ones(2, 2);
    const { dtype } = w.half();
    expect(Tensor.autocast(dtype, () => w.matmul(w)).dtype.name).toBe("float16");
  });
});

describe("in a jit", () => {
  const step = () => {
    const w = nn.parameter(Tensor.rand(8, 8));
    return { w, jit: new TinyJit((x: Tensor) => x.matmul(w).realize()) };
  };
  const input = () => Tensor.rand(2, 8).realize();
  test("a capture inside of autocast is replayed in its type", async () => {
    const { w, jit } = step();
    for (let i = 0; i < 4; i++) {
      const x = await input();
      const y = (await Tensor.autocast("bfloat16", () => jit(x))) as Tensor;
      expect(y.dtype.name).toBe("bfloat16");
      const want = Tensor.autocast("bfloat16", () => x.matmul(w)).float();
      expect(await y.float().tolist()).toEqual(await want.tolist());
    }
  });
  test("a replay in another type is refused, either way", async () => {
    const [inside, outside] = [step(), step()];
    for (let i = 0; i < 3; i++) {
      await Tensor.autocast("bfloat16", async () => inside.jit(await input()));
      await outside.jit(await input());
    }
    const x = await input();
    await expect(inside.jit(x)).rejects.toThrow("TinyJit: autocast is undefined, and was dtypes.bfloat16");
    await expect(Tensor.autocast("float16", () => inside.jit(x))).rejects.toThrow("autocast is dtypes.half");
    await expect(Tensor.autocast("bfloat16", () => outside.jit(x))).rejects.toThrow(
      "TinyJit: autocast is dtypes.bfloat16, and was undefined",
    );
    inside.jit.reset();
    expect(((await inside.jit(x)) as Tensor).dtype.name).toBe("float32");
  });
  test("a scope that the function opens is the same in every call", async () => {
    const w = nn.parameter(Tensor.rand(8, 8));
    const jit = new TinyJit((x: Tensor) => Tensor.autocast("bfloat16", () => x.matmul(w)).realize());
    for (let i = 0; i < 4; i++) expect(((await jit(await input())) as Tensor).dtype.name).toBe("bfloat16");
  });
  test("weights that were cast before a capture are cast in it", async () => {
    const w = nn.parameter(Tensor.ones(4, 4));
    const x = await Tensor.ones(1, 4).realize();
    const jit = new TinyJit((x: Tensor) => x.matmul(w).realize());
    await Tensor.autocast("bfloat16", async () => {
      await x.matmul(w).realize();
      for (let i = 0; i < 3; i++) await jit(x);
      await w.assign(Tensor.full([4, 4], 3, { dtype: "float32" })).realize();
      expect(await ((await jit(x)) as Tensor).float().tolist()).toEqual([[12, 12, 12, 12]]);
    });
  });
});

test("FUSE=0 gives the same", async () => {
  const [x, w] = [Tensor.rand(4, 4), nn.parameter(Tensor.rand(4, 4))];
  await Tensor.realize(x, w);
  const y = () => Tensor.autocast("bfloat16", () => x.linear(w).softmax(-1).matmul(w)).float();
  expect(await withEnv({ FUSE: 0 }, () => y().tolist())).toEqual(await y().tolist());
});
