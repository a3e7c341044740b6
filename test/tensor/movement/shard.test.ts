// Tensors over several devices: whatever one device computes, values and gradients, several compute too, with
// as many kernels and copies as it takes and no more.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSchedule, Device, GlobalCounters, nn, Tensor, TinyJit, Variable, withEnv } from "gradloom";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Convnet } from "../../../examples/convnet.ts";
import { worst } from "../../schedule/count.ts";

const TWO = ["WASM:1", "WASM:2"];
const THREE = [...TWO, "WASM:3"];
const folder = mkdtempSync(join(tmpdir(), "gradloom-shard-"));
beforeAll(async () => {
  for (const d of THREE) await Device.open(d);
});
afterAll(() => rmSync(folder, { recursive: true }));

const values = (shape: readonly number[], seed = 1, options = {}): Tensor => {
  const size = shape.reduce((a, b) => a * b, 1);
  const data = Float32Array.from({ length: size }, (_, i) => (((i + seed) * 37) % 101) / 50 - 1);
  return new Tensor(data, options).reshape(shape);
};
function counts(...ts: readonly Tensor[]): { kernels: number; copies: number } {
  const ops = createSchedule(ts.map((t) => t.lazydata)).map((si) => si.ast[0]?.op);
  return {
    kernels: ops.filter((op) => op === "STORE").length,
    copies: ops.filter((op) => op === "COPY").length,
  };
}
const close = async (got: Tensor, want: Tensor, tolerance = 1e-5): Promise<void> => {
  expect(got.shape).toEqual(want.shape);
  expect(worst(await got.data(), await want.data())).toBeLessThanOrEqual(tolerance);
};

describe("where the values are", () => {
  test("shares along a dim, or a copy on each", async () => {
    const t = values([6, 4]);
    const x = t.shard(TWO, 0);
    expect([x.device, x.devices, x.shardDim, x.shape]).toEqual(["WASM:1,WASM:2", TWO, 0, [6, 4]]);
    expect(x.lazydata.parts.map((p) => [p.device, p.shape])).toEqual([
      ["WASM:1", [3, 4]],
      ["WASM:2", [3, 4]],
    ]);
    expect([t.shard(TWO, -1).shardDim, t.shardDim, t.devices]).toEqual([1, undefined, ["WASM"]]);
    const w = t.shard(TWO);
    expect([w.shardDim, w.devices]).toEqual([undefined, TWO]);
    expect(t.shard(TWO, null).shardDim).toBeUndefined();
    for (const s of [x, w, t.shard(THREE, 1)]) expect(await s.tolist()).toEqual(await t.tolist());
    expect(x.tolistSync()).toEqual(t.tolistSync());
    expect(String(x)).toBe("<Tensor [6, 4] float32 on WASM:1,WASM:2>");
  });
  test("shares that are not equal", async () => {
    const t = values([7, 2]);
    const x = t.shard(THREE, 0);
    expect(x.lazydata.parts.map((p) => p.shape[0])).toEqual([3, 2, 2]);
    await close(x.mul(x).sum(0), t.mul(t).sum(0));
    await close(x.T.matmul(x), t.T.matmul(t));
  });
  test("one device in the list is that device", () => {
    const x = values([4]).shard(["wasm:1"], 0);
    expect([x.device, x.shardDim]).toEqual(["WASM:1", undefined]);
  });
  test("to() gathers on any device, and replicates on several", async () => {
    const t = values([4, 2]);
    const x = t.shard(TWO, 0);
    for (const device of ["WASM:1", "WASM", "JS"]) {
      expect(x.to(device).device).toBe(device);
      expect(await x.to(device).tolist()).toEqual(await t.tolist());
    }
    expect(x.to(x.device).lazydata).toBe(x.lazydata);
    expect(t.to("WASM:1,WASM:2").shardDim).toBeUndefined();
    expect(await t.to("wasm:1, wasm:2").device).toBe(x.device);
    expect(await x.to("WASM:2,WASM:3").tolist()).toEqual(await t.tolist());
  });
  test("another dim or other devices: shard again", async () => {
    const t = values([4, 6]);
    const x = await t.shard(TWO, 0).realize();
    expect([x.shard(TWO, 1).shardDim, x.shard(TWO).shardDim]).toEqual([1, undefined]);
    for (const y of [x.shard(TWO, 1), x.shard(TWO), x.shard(THREE, 1), x.shard(TWO).shard(TWO, 1)]) {
      expect(await y.tolist()).toEqual(await t.tolist());
    }
    expect(counts(x.shard(TWO, 0))).toEqual({ kernels: 0, copies: 0 });
    // a quarter each way
    expect(counts(x.shard(TWO, 1))).toEqual({ kernels: 4, copies: 2 });
  });
  test("item, and sums over everything", async () => {
    const x = values([6]).shard(TWO, 0);
    expect(await x.sum().item()).toBeCloseTo(await values([6]).sum().item(), 5);
    expect(x.max().itemSync()).toBe(values([6]).max().itemSync());
  });
  test("new tensors on a group are copies; those like another are cut like it", async () => {
    const device = TWO.join(",");
    const made = [new Tensor([1, 2], { device }), Tensor.zeros(2, { device }), Tensor.arange(3, { device })];
    for (const t of [...made, Tensor.rand(2, 2, { device }), new Tensor(3, { device })]) {
      expect([t.devices, t.shardDim]).toEqual([TWO, undefined]);
    }
    const x = values([4, 2]).shard(TWO, 0);
    for (const t of [
      x.zerosLike(),
      x.fullLike(2),
      x.emptyLike(),
      x.randLike(),
      x.randintLike(0, 9),
      x.onesLike(),
    ]) {
      expect([t.devices, t.shardDim]).toEqual([TWO, 0]);
    }
    expect(x.fullLike(2, { device: "WASM" }).device).toBe("WASM");
    expect(await x.fullLike(2).tolist()).toEqual([
      [2, 2],
      [2, 2],
      [2, 2],
      [2, 2],
    ]);
  });
});

/** What a function gives on one device and on several, with the gradients of its inputs. */
async function sameOn(
  devices: readonly string[],
  fn: (...xs: Tensor[]) => Tensor,
  inputs: readonly (readonly [shape: readonly number[], dim: number | null])[],
  tolerance = 2e-5,
): Promise<Tensor> {
  const leaves = inputs.map(([shape], i) => values(shape, 3 + 5 * i, { requiresGrad: true }).detach());
  const spread = leaves.map((t, i) => t.shard(devices, inputs[i]?.[1]).detach());
  for (const t of [...leaves, ...spread]) t.requiresGrad = true;
  const [one, many] = [fn(...leaves), fn(...spread)];
  await close(many, one, tolerance);
  const seed = values(one.shape, 11);
  one.mul(seed).sum().backward();
  many.mul(seed.shard(devices)).sum().backward();
  for (const [i, leaf] of leaves.entries()) {
    const grad = spread[i]?.grad as Tensor;
    expect([grad.devices, grad.shardDim]).toEqual([devices, inputs[i]?.[1] ?? undefined]);
    await close(grad, leaf.grad as Tensor, tolerance);
  }
  return many;
}

describe("values and gradients are those of one device, and gradients lie where the values lie", () => {
  const B = [8, 6] as const;
  test.each([
    [
      "matmul, batch sharded",
      (x, w) => x.matmul(w),
      [
        [B, 0],
        [[6, 5], null],
      ],
      0,
    ],
    [
      "matmul, outputs sharded",
      (x, w) => x.matmul(w),
      [
        [B, null],
        [[6, 4], 1],
      ],
      1,
    ],
    [
      "matmul, inner dim sharded",
      (x, w) => x.matmul(w),
      [
        [B, 1],
        [[6, 5], 0],
      ],
      undefined,
    ],
    [
      "matmul, operands cut differently",
      (x, w) => x.matmul(w),
      [
        [B, 0],
        [[6, 5], 0],
      ],
      0,
    ],
    [
      "linear with bias",
      (x, w, b) => x.linear(w, b).relu(),
      [
        [B, 0],
        [[4, 6], null],
        [[4], null],
      ],
      0,
    ],
    ["softmax across devices", (x) => x.softmax(0), [[B, 0]], 0],
    ["log softmax on a device", (x) => x.logSoftmax(1), [[B, 0]], 0],
    ["mean and variance", (x) => x.var(0).add(x.mean(0)), [[B, 0]], undefined],
    ["max", (x) => x.max(0), [[B, 0]], undefined],
    [
      "a copy times a share",
      (x, y) => x.mul(y),
      [
        [B, null],
        [B, 0],
      ],
      0,
    ],
    [
      "shares along two dims",
      (x, y) => x.mul(y),
      [
        [B, 1],
        [B, 0],
      ],
      1,
    ],
    [
      "broadcast of a row",
      (x, y) => x.sub(y),
      [
        [B, 0],
        [[1, 6], null],
      ],
      0,
    ],
    ["layer norm", (x) => x.layerNorm([6]), [[B, 0]], 0],
    [
      "cat along another dim",
      (x, y) => x.cat(y, 1),
      [
        [B, 0],
        [[8, 2], 0],
      ],
      0,
    ],
    [
      "cat along the dim",
      (x, y) => x.cat(y, 0),
      [
        [B, 0],
        [[4, 6], 0],
      ],
      0,
    ],
    [
      "stack",
      (x, y) => x.stack(y),
      [
        [B, 0],
        [B, 0],
      ],
      1,
    ],
    ["a row of one device", (x) => x.get(6).mul(2), [[B, 0]], undefined],
    ["flip and back", (x) => x.flip(0).mul(x), [[B, 0]], 0],
    ["every third row", (x) => x.stride(3, 1), [[B, 0]], 0],
    ["padding at both ends", (x) => x.pad([[1, 2], null], 3), [[B, 0]], 0],
    ["transpose and flatten", (x) => x.reshape(8, 2, 3).transpose(1, 2).flatten(1), [[B, 0]], 0],
    ["running sums on a device", (x) => x.cumsum(1), [[B, 0]], 0],
    ["norms", (x) => x.square().sum(1).sqrt(), [[B, 0]], 0],
    [
      "where",
      (x, y) => x.gt(0).where(x, y),
      [
        [B, 0],
        [B, null],
      ],
      0,
    ],
  ] as readonly (readonly [
    string,
    (...xs: Tensor[]) => Tensor,
    Parameters<typeof sameOn>[2],
    number | undefined,
  ])[])("%s", async (_, fn, inputs, dim) => {
    expect((await sameOn(TWO, fn, inputs)).shardDim).toBe(dim);
    await withEnv({ RING: 2 }, () => sameOn(THREE, fn, inputs));
  });

  test.each([
    ["conv2d", (x: Tensor, w: Tensor, b: Tensor) => x.conv2d(w, b, { padding: 1 })],
    [
      "conv2d with a stride, relu and pooling",
      (x: Tensor, w: Tensor, b: Tensor) => x.conv2d(w, b).relu().maxPool2d(2),
    ],
    ["average pooling", (x: Tensor, w: Tensor, b: Tensor) => x.avgPool2d(2).conv2d(w, b, { padding: 2 })],
  ])("%s on a batch", async (_, fn) => {
    const made = await sameOn(TWO, fn as (...xs: Tensor[]) => Tensor, [
      [[4, 2, 6, 6], 0],
      [[3, 2, 3, 3], null],
      [[3], null],
    ]);
    expect(made.shardDim).toBe(0);
  });

  test("cross entropy and picking by index", async () => {
    const labels = new Tensor([0, 3, 2, 1, 5, 4, 0, 2]);
    const loss = (x: Tensor) => x.crossEntropy(labels.shard(x.devices, x.shardDim));
    expect((await sameOn(TWO, loss, [[[8, 6], 0]])).shape).toEqual([]);
    // a batch out of data with a copy on each device: every device picks its own rows
    const pick = (x: Tensor) => x.indexSelect(0, labels.shard(x.devices, 0));
    expect((await sameOn(TWO, pick, [[[8, 6], null]])).shardDim).toBe(0);
    // out of data that is sharded: every device gives what it has of each row
    const gather = (x: Tensor) => x.indexSelect(0, labels.to(x.device));
    expect((await sameOn(TWO, gather, [[[8, 6], 0]])).shardDim).toBeUndefined();
  });

  test("attention", async () => {
    const shape = [4, 2, 5, 3];
    const attend = (q: Tensor, k: Tensor, v: Tensor) => q.scaledDotProductAttention(k, v, { isCausal: true });
    await sameOn(TWO, attend, [
      [shape, 0],
      [shape, 0],
      [shape, 0],
    ]);
    await sameOn(TWO, attend, [
      [shape, 1],
      [shape, 1],
      [shape, 1],
    ]);
  });

  test("custom gradients, checkpoints and second derivatives", async () => {
    const cube = Tensor.custom({
      forward: (x: Tensor) => x.pow(3),
      backward: (g, [x]) => g.mul(x.square()).mul(3),
    });
    await sameOn(TWO, (x) => cube(x), [[[6, 2], 0]]);
    await sameOn(TWO, (x, w) => Tensor.checkpoint((a: Tensor, b: Tensor) => a.matmul(b).tanh(), x, w), [
      [[6, 2], 0],
      [[2, 3], null],
    ]);
    const second = async (x: Tensor): Promise<Tensor> => {
      x.requiresGrad = true;
      x.pow(3).sum().backward(undefined, { createGraph: true });
      const { grad } = x as { grad: Tensor };
      x.grad = undefined;
      grad.square().sum().backward();
      return x.grad as unknown as Tensor;
    };
    const got = await second(values([6, 2]).shard(TWO, 0).detach());
    expect(got.shardDim).toBe(0);
    await close(got, await second(values([6, 2])), 1e-4);
  });

  test("moving is differentiated too: a gradient goes back to where the value came from", async () => {
    const t = values([4, 2], 1, { requiresGrad: true }).detach();
    t.requiresGrad = true;
    t.shard(TWO, 0).square().sum().backward();
    expect(t.grad?.device).toBe("WASM");
    await close(t.grad as Tensor, t.detach().mul(2));
    const x = values([4, 2]).shard(TWO, 0).detach();
    x.requiresGrad = true;
    x.to("WASM").square().sum().backward();
    expect([x.grad?.device, x.grad?.shardDim]).toEqual([x.device, 0]);
    await close(x.grad as Tensor, t.detach().mul(2));
  });

  test("a size that is a variable, beside the dim that is cut", async () => {
    const n = Variable("n", 1, 6).bind(3);
    const cut = (t: Tensor) =>
      t
        .shrink([null, [0, n]])
        .mul(2)
        .sum(1);
    await close(cut(values([4, 6]).shard(TWO, 0)), cut(values([4, 6])));
  });
});

describe("random numbers are those of one device", () => {
  test("draws, dropout and bernoulli", async () => {
    const x = values([8, 3]);
    const draw = (t: Tensor) => {
      Tensor.manualSeed(5);
      return [
        t.randLike(),
        t.randnLike(),
        t.randintLike(0, 50),
        t.dropout(0.4, true),
        t.fullLike(0.5).bernoulli(),
      ];
    };
    const [one, two] = [draw(x), draw(x.shard(TWO, 0))];
    for (const [i, t] of two.entries()) {
      expect(t.shardDim).toBe(0);
      expect(await t.tolist()).toEqual(await one[i]?.tolist());
    }
  });
  test("a device draws no more than its share", async () => {
    const x = await values([64, 8]).shard(TWO, 0).realize();
    GlobalCounters.reset();
    await x.dropout(0.5, true).realize();
    expect([GlobalCounters.kernelCount, GlobalCounters.copyCount]).toEqual([2, 2]);
    const ops = GlobalCounters.globalOps;
    GlobalCounters.reset();
    await (await values([64, 8]).realize()).dropout(0.5, true).realize();
    expect(ops).toBeLessThan(GlobalCounters.globalOps * 1.01);
  });
  test("nn.datasets.sample: each device picks its share out of its copy", async () => {
    const data = { x: values([20, 3]), y: Tensor.arange(20) };
    const pick = (devices: readonly string[]) => {
      Tensor.manualSeed(9);
      const [x, y] = [data.x.shard(devices), data.y.shard(devices)];
      return nn.datasets.sample({ x, y }, 6, { sharded: true });
    };
    const [one, two] = [pick(["WASM"]), pick(TWO)];
    expect([two.x.shardDim, two.y.shardDim]).toEqual([0, 0]);
    expect(await two.x.tolist()).toEqual(await one.x.tolist());
    expect(await two.y.tolist()).toEqual(await one.y.tolist());
  });
});

describe("assign", () => {
  test("writes into each device's memory", async () => {
    const x = await values([4, 2]).shard(TWO, 0).realize();
    const buffers = x.lazydata.parts.map((p) => p.base.buffer);
    x.assign(x.add(1));
    expect(counts(x)).toEqual({ kernels: 2, copies: 0 });
    await close(x, values([4, 2]).add(1));
    expect(x.lazydata.parts.map((p) => p.base.buffer)).toEqual(buffers);
    // a copy on each is cut to the shares; shares go to all
    await close(await x.assign(values([4, 2], 5).shard(TWO)).realize(), values([4, 2], 5));
    expect(x.shardDim).toBe(0);
    const w = await values([4, 2]).shard(TWO).realize();
    await close(await w.assign(values([4, 2], 6).shard(TWO, 1)).realize(), values([4, 2], 6));
    expect(w.shardDim).toBeUndefined();
  });
  test("setitem", async () => {
    const write = (t: Tensor) => t.setitem([[1, 5], 0], 9).setitem([5], 4);
    expect(await write(values([6, 2]).shard(TWO, 0)).tolist()).toEqual(await write(values([6, 2])).tolist());
  });
  test("dispose gives the memory of all devices back", async () => {
    const x = await values([6, 2]).shard(TWO, 0).realize();
    x.dispose();
    for (const part of x.lazydata.parts) expect(part.base.buffer.isAllocated).toBe(false);
  });
});

const convnet = () =>
  new nn.Sequential(
    new nn.Conv2d(1, 4, 3),
    (x) => x.relu(),
    new nn.BatchNorm2d(4),
    (x) => x.maxPool2d(2),
    (x) => x.flatten(1),
    new nn.Dropout(0.2),
    new nn.Linear(36, 5),
  );
type Step = (x: Tensor) => Promise<Tensor>;
type Make = (params: Tensor[]) => nn.optim.Optimizer;

/** A few steps of training: the losses, the state at the end, and what the last step took. */
async function train(devices: readonly string[], make: Make, steps = 5) {
  Tensor.manualSeed(3);
  const model = convnet();
  for (const t of Object.values(nn.getStateDict(model))) t.shard_(devices);
  const optimizer = make(nn.getParameters(model));
  const [x, y] = [values([16, 1, 8, 8]), Tensor.arange(16).fmod(5)];
  const losses: number[] = [];
  for (let step = 0; step < steps; step++) {
    const [xs, ys] = [x, y].map((t) => t.shard(devices, 0)) as [Tensor, Tensor];
    await Tensor.realize(xs, ys);
    GlobalCounters.reset();
    const loss = Tensor.train(() => model.forward(xs)).crossEntropy(ys);
    optimizer.zeroGrad();
    loss.backward();
    await optimizer.step(loss);
    losses.push(await loss.item());
  }
  return { model, optimizer, losses, copies: GlobalCounters.copyCount };
}

describe("training", () => {
  const optimizers: readonly (readonly [string, Make])[] = [
    ["SGD", (p) => new nn.optim.SGD(p, { lr: 0.05, momentum: 0.9, weightDecay: 1e-3 })],
    ["AdamW", (p) => new nn.optim.AdamW(p, { lr: 0.01 })],
    ["LAMB", (p) => new nn.optim.LAMB(p, { lr: 0.01 })],
  ];
  test.each(optimizers)(
    "%s, a batch over 2 and 3 devices: the losses and weights of one device",
    async (_, make) => {
      const one = await train(["WASM"], make);
      const weights = nn.getStateDict(one.model);
      for (const devices of [TWO, THREE]) {
        const many = await train(devices, make);
        expect(worst(many.losses, one.losses)).toBeLessThan(1e-4);
        for (const [name, t] of Object.entries(nn.getStateDict(many.model))) {
          expect([t.devices, t.shardDim]).toEqual([devices, undefined]);
          await close(t, weights[name] as Tensor, 1e-3);
          // the copies never drift apart, running statistics included
          const [first, ...rest] = await Promise.all(t.lazydata.parts.map((p) => new Tensor(p).data()));
          for (const other of rest) expect(other).toEqual(first);
        }
      }
      expect(one.losses.at(-1)).toBeLessThan(one.losses[0] as number);
    },
  );

  test("the gradients of the MNIST example's convnet are those of one device", async () => {
    const gradients = async (devices: readonly string[]) => {
      Tensor.manualSeed(3);
      const model = new Convnet();
      for (const t of Object.values(nn.getStateDict(model))) t.shard_(devices);
      for (const p of nn.getParameters(model)) p.requiresGrad = true;
      const [x, y] = [values([32, 1, 28, 28]).mul(255), Tensor.arange(32).fmod(10)];
      const [xs, ys] = [x, y].map((t) => t.shard(devices, 0)) as [Tensor, Tensor];
      Tensor.train(() => model.forward(xs))
        .crossEntropy(ys)
        .backward();
      return Promise.all(nn.getParameters(model).map((p) => (p.grad as Tensor).data()));
    };
    const [one, two] = [await gradients(["WASM"]), await gradients(TWO)];
    one.forEach((want, i) => {
      const largest = Math.max(...[...(want as Float32Array)].map(Math.abs));
      // sums in another order, behind two batch norms: as far apart as WASM and CLANG are
      expect(worst(two[i] as Float32Array, want as Float32Array), `${i}`).toBeLessThan(5e-5 * largest);
    });
  });
  test("a step copies gradients and sums, and no weights", async () => {
    const x = await values([8, 6]).shard(TWO, 0).realize();
    const layer = new nn.Linear(6, 3);
    for (const p of nn.getParameters(layer)) p.shard_(TWO);
    const optimizer = new nn.optim.AdamW(nn.getParameters(layer));
    const step = async () => {
      GlobalCounters.reset();
      const loss = layer.forward(x).square().mean();
      optimizer.zeroGrad();
      loss.backward();
      await optimizer.step(loss);
      return GlobalCounters.copyCount;
    };
    await step();
    // weight, bias and loss, each from either device to the other
    expect(await step()).toBe(2 * 3);
  });

  test("weights that are sharded themselves: their state and gradients are cut like them", async () => {
    const run = async (devices: readonly string[]) => {
      Tensor.manualSeed(8);
      const [up, down] = [new nn.Linear(6, 8), new nn.Linear(8, 4)];
      for (const t of [up.weight, up.bias as Tensor]) t.shard_(devices, 0);
      down.weight.shard_(devices, 1);
      (down.bias as Tensor).shard_(devices);
      const optimizer = new nn.optim.Adam(nn.getParameters([up, down]), { lr: 0.01 });
      const x = values([5, 6]).shard(devices);
      for (let i = 0; i < 3; i++) {
        const loss = down.forward(up.forward(x).gelu()).square().mean();
        optimizer.zeroGrad();
        loss.backward();
        await optimizer.step();
      }
      return { weights: [up.weight, up.bias, down.weight, down.bias] as Tensor[], state: optimizer.state };
    };
    const [one, two] = [await run(["WASM"]), await run(TWO)];
    expect(two.weights.map((w) => w.shardDim)).toEqual([0, 0, 1, undefined]);
    expect(two.state.map((s) => s.m?.shardDim)).toEqual([0, 0, 1, undefined]);
    for (const [i, w] of two.weights.entries()) await close(w, one.weights[i] as Tensor, 1e-4);
  });

  test("a step that a jit replays on two devices has the losses of one device, random numbers included", async () => {
    const run = async (devices: readonly string[], wrap: (fn: Step) => Step) => {
      Tensor.manualSeed(3);
      const layer = new nn.Linear(6, 4);
      for (const t of nn.getParameters(layer)) t.shard_(devices);
      const optimizer = new nn.optim.SGD(nn.getParameters(layer), { lr: 0.1 });
      const step = wrap(async (x) => {
        const loss = layer.forward(x.dropout(0.5, true)).square().mean();
        optimizer.zeroGrad();
        loss.backward();
        await optimizer.step(loss);
        return loss;
      });
      const losses: number[] = [];
      for (let i = 0; i < 6; i++) {
        const x = await values([8, 6], 7 * i)
          .shard(devices, 0)
          .realize();
        losses.push(await (await step(x)).item());
      }
      return losses;
    };
    const eager = await run(["WASM"], (fn) => fn);
    expect(worst(await run(TWO, (fn) => new TinyJit(fn)), eager)).toBeLessThan(1e-5);
    expect(new Set(eager).size).toBe(6);
  });

  test("the statistics of a batch norm are those of the whole batch", async () => {
    const run = (devices: readonly string[]) => {
      const norm = new nn.BatchNorm2d(3);
      for (const t of Object.values(nn.getStateDict(norm))) t.shard_(devices);
      const y = Tensor.train(() => norm.forward(values([6, 3, 2, 2]).shard(devices, 0)));
      return [y, norm.runningMean, norm.runningVar] as Tensor[];
    };
    const [one, two] = [run(["WASM"]), run(TWO)];
    for (const [i, t] of two.entries()) await close(t, one[i] as Tensor);
  });

  test("state dicts: sharded is saved as one, and loaded into whatever the model has", async () => {
    const { model, losses } = await train(TWO, (p) => new nn.optim.Adam(p), 2);
    expect(losses.length).toBe(2);
    const state = nn.getStateDict(model);
    const path = join(folder, "model.safetensors");
    await nn.safeSave(state, path);
    const plain = convnet();
    await nn.loadStateDict(plain, await nn.safeLoad(path));
    const spread = convnet();
    for (const t of Object.values(nn.getStateDict(spread))) {
      t.shard_(TWO, (t.shape[0] ?? 0) >= 2 ? 0 : null);
    }
    await nn.loadStateDict(spread, await nn.safeLoad(path));
    const again = convnet();
    await nn.loadStateDict(again, state); // from two devices to one
    for (const [name, t] of Object.entries(state)) {
      for (const loaded of [plain, spread, again]) {
        expect(await nn.getStateDict(loaded)[name]?.tolist()).toEqual(await t.tolist());
      }
    }
    expect(nn.getStateDict(spread)["0.weight"]?.shardDim ?? nn.getParameters(spread)[0]?.shardDim).toBe(0);
    expect(nn.getParameters(again).every((p) => p.device === "WASM")).toBe(true);
  });
});

describe("what is refused", () => {
  const x = () => values([4, 6]).shard(TWO, 0);
  test.each<[string, () => unknown, RegExp]>([
    [
      "an unknown device",
      () => values([4]).shard(["WASM", "TPU"], 0),
      /device TPU does not exist; this build has/,
    ],
    [
      "a device that only holds",
      () => values([4]).shard(["WASM", "EXT"], 0),
      /EXT holds data and cannot compute/,
    ],
    ["a device twice", () => values([4]).shard(["WASM:1", "wasm:1"], 0), /WASM:1 is named twice/],
    ["a group with a device twice", () => values([4]).to("WASM:1,WASM:1"), /WASM:1 is named twice/],
    ["no devices", () => values([4]).shard([], 0), /got no devices; expected an array of names/],
    [
      "a name for a list",
      () => values([4]).shard("WASM" as unknown as string[], 0),
      /^shard: devices is the string "WASM", expected an array/,
    ],
    ["a dim out of range", () => values([4]).shard(TWO, 1), /shard: dim 1 is out of range for shape \[4\]/],
    [
      "a dim that is too short",
      () => values([2, 4]).shard(THREE, 0),
      /has 2 elements for 3 devices.*name fewer/s,
    ],
    [
      "a variable size",
      () =>
        values([6])
          .shrink([[0, Variable("m", 1, 6).bind(4)]])
          .shard(TWO, 0),
      /symbolic size/,
    ],
    [
      "sharded with unsharded",
      () => x().add(values([4, 6])),
      /operands are on WASM:1,WASM:2 and WASM; put both/,
    ],
    [
      "unsharded with sharded",
      () => values([4, 6]).add(x()),
      /operands are on WASM and WASM:1,WASM:2; move one/,
    ],
    [
      "other devices",
      () => x().add(values([4, 6]).shard(THREE, 0)),
      /on WASM:1,WASM:2 and WASM:1,WASM:2,WASM:3/,
    ],
    [
      "another order",
      () => x().add(values([4, 6]).shard([...TWO].reverse(), 0)),
      /same devices, in the same order/,
    ],
    [
      "a reshape across shares",
      () => values([6, 4]).shard(TWO, 1).reshape(24),
      /sharded along dim 1.*t\.shard\(\[/s,
    ],
    ["a wrong reshape", () => x().reshape(5, 5), /cannot view shape \[4,6\]/],
    [
      "assign from elsewhere",
      () => x().assign(values([4, 6])),
      /the devices must be equal: x\.to\("WASM:1,WASM:2"\)/,
    ],
    [
      "shard_ of a result",
      () => new Tensor([1, 2], { dtype: "float32", requiresGrad: true }).mul(2).shard_(TWO),
      /was computed from others/,
    ],
    [
      "a custom op",
      () => Tensor.customOp(() => {}, [4, 6], [x()]),
      /fills one buffer, and WASM:1,WASM:2 are several/,
    ],
    [
      "a group as the default",
      () => {
        Device.DEFAULT = TWO.join(",");
      },
      /names several devices, where one is wanted/,
    ],
  ])("%s", (_, run, message) => {
    expect(run).toThrow(message);
  });

  test("an optimizer that was made before its parameters were sharded", async () => {
    const w = values([4], 1, { requiresGrad: true });
    const p = new Tensor(w.lazydata, { requiresGrad: true });
    const optimizer = new nn.optim.Adam([p]);
    p.shard_(TWO);
    p.square().sum().backward();
    await expect(optimizer.step()).rejects.toThrow(
      /is on WASM:1,WASM:2, its state on WASM; create the optimizer after moving/,
    );
  });
});
