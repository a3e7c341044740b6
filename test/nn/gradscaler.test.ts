// Training in mixed precision: it reaches the loss of float32; a step that overflows is skipped, also in a
// jit; master weights and a state of bfloat16; all of it goes on exactly after a save.

import { nn, Tensor, TinyJit } from "gradloom";
import { describe, expect, test } from "vitest";

type Precision = "float32" | "bfloat16" | "float16";
interface Trained {
  readonly loss: number;
  readonly scale: number;
}

/** So many steps in a jit: the mean loss of the last ten, and the scale at the end. */
async function train(
  precision: Precision,
  model: nn.optim.Model,
  lossOf: () => Tensor,
  steps: number,
  options: Partial<nn.optim.AdamOptions> = {},
): Promise<Trained> {
  const optimizer = new nn.optim.AdamW(model, { lr: 0.01, ...options });
  const scaler = new nn.GradScaler({ enabled: precision === "float16", growthInterval: 20 });
  const step = new TinyJit(async () => {
    optimizer.zeroGrad();
    const loss = Tensor.autocast(precision === "float32" ? false : precision, lossOf);
    scaler.scale(loss).backward();
    scaler.unscale_(optimizer);
    nn.clipGradNorm(model, 1);
    await scaler.step(optimizer, loss);
    await scaler.update();
    return loss;
  });
  const losses: number[] = [];
  for (let i = 0; i < steps; i++) losses.push(await ((await step()) as Tensor).item());
  expect(nn.getParameters(model).map((p) => p.dtype.name)).toEqual(
    nn.getParameters(model).map(() => "float32"),
  );
  return { loss: losses.slice(-10).reduce((a, b) => a + b) / 10, scale: await scaler.scaling.item() };
}

describe("training reaches the loss of float32", () => {
  const compare = async (
    make: () => Promise<readonly [nn.optim.Model, () => Tensor]>,
    steps: number,
    part: number,
    options = {},
  ) => {
    const run = async (precision: Precision, own = {}) => {
      Tensor.manualSeed(7);
      return train(precision, ...(await make()), steps, own);
    };
    const { loss } = await run("float32");
    const [narrow, half] = [await run("bfloat16", options), await run("float16", options)];
    for (const found of [narrow.loss, half.loss]) {
      expect(found).not.toBe(loss);
      expect(Math.abs(found - loss) / loss).toBeLessThan(part);
    }
    // some scales overflowed or grew: the loss was scaled
    expect(half.scale).not.toBe(1);
    expect(narrow.scale).toBe(2 ** 16);
  };
  test.for([{}, { stateDtype: "bfloat16" }])("an MLP, state %o", { timeout: 60_000 }, async (options) => {
    await compare(
      async () => {
        const x = await Tensor.randn(128, 8).realize();
        const noise = Tensor.randn(128, 1).mul(0.3);
        const y = await x
          .narrow(1, 0, 1)
          .mul(x.narrow(1, 1, 1))
          .add(noise)
          .realize();
        const model = new nn.Sequential(new nn.Linear(8, 16), new nn.Tanh(), new nn.Linear(16, 1));
        return [model, () => model.forward(x).mseLoss(y)];
      },
      60,
      0.06,
      options,
    );
  });
  test("a convnet with batch norm", { timeout: 60_000 }, async () => {
    await compare(
      async () => {
        const x = await Tensor.rand(32, 1, 8, 8).realize();
        const y = await x.mean([1, 2, 3]).gt(0.5).cast("int32").realize();
        const model = new nn.Sequential(
          new nn.Conv2d(1, 4, 3),
          new nn.BatchNorm2d(4),
          new nn.ReLU(),
          new nn.MaxPool2d(2),
          new nn.Flatten(),
          new nn.Linear(36, 2),
        );
        return [model, () => model.forward(x).crossEntropy(y)];
      },
      25,
      0.08,
    );
  });
  test("a GPT", { timeout: 60_000 }, async () => {
    await compare(
      async () => {
        const text = await Tensor.randint(0, 8, [4, 9]).realize();
        const [x, y] = [text.narrow(1, 0, 8), text.narrow(1, 1, 8)];
        const embed = new nn.Embedding(8, 16);
        const block = new nn.TransformerBlock(16, 2, { dimFeedforward: 32 });
        const head = new nn.Linear(16, 8);
        const forward = (ids: Tensor) => head.forward(block.forward(embed.forward(ids), { isCausal: true }));
        const model = { embed, block, head, forward };
        return [model, () => forward(x).flatten(0, 1).crossEntropy(y.flatten())];
      },
      30,
      0.06,
    );
  });
});

describe("GradScaler", () => {
  const make = (options: nn.GradScalerOptions = {}) => {
    const w = nn.parameter(Tensor.ones(2));
    const optimizer = new nn.optim.Adam([w], { lr: 0.5 });
    return { w, optimizer, scaler: new nn.GradScaler(options) };
  };
  const keep = async (w: Tensor, optimizer: nn.optim.Adam) =>
    Promise.all([w, ...Object.values(nn.getStateDict(optimizer.state))].map((t) => t.tolist()));

  test("a step that overflows changes nothing and halves the scale", async () => {
    const { w, optimizer, scaler } = make();
    const step = async (factor: number) => {
      optimizer.zeroGrad();
      scaler.scale(w.mul(factor).sum()).backward();
      await scaler.step(optimizer);
      await scaler.update();
    };
    await step(1);
    const before = await keep(w, optimizer);
    expect(before[0]).not.toEqual([1, 1]);
    for (const [factor, scale] of [
      [Infinity, 2 ** 15],
      [NaN, 2 ** 14],
      [3e38, 2 ** 13],
    ] as const) {
      await step(factor);
      expect(await keep(w, optimizer)).toEqual(before);
      expect(await scaler.scaling.item()).toBe(scale);
    }
    await step(1);
    expect(await keep(w, optimizer)).not.toEqual(before);
    expect(await scaler.growthTracker.item()).toBe(1);
  });
  test("the same in a jit, with what float16 cannot hold", async () => {
    const { w, optimizer, scaler } = make({ growthInterval: 2, initScale: 4 });
    const step = new TinyJit(async (x: Tensor) => {
      optimizer.zeroGrad();
      const y = Tensor.autocast("float16", () => x.dot(w));
      scaler.scale(y).backward();
      await scaler.step(optimizer, y);
      await scaler.update();
      return y;
    });
    const scales: number[] = [];
    const moved: boolean[] = [];
    for (const value of [1, 1, 1, 30_000, 60_000, 1, 1]) {
      const before = await w.tolist();
      await step(await new Tensor([value, 1], { dtype: "float32" }).realize());
      moved.push(JSON.stringify(await w.tolist()) !== JSON.stringify(before));
      scales.push(await scaler.scaling.item());
    }
    // 8 * 30000 is beyond float16, and so is 4 * 60000
    expect(moved).toEqual([true, true, true, false, false, true, true]);
    expect(scales).toEqual([4, 8, 8, 4, 2, 2, 4]);
    expect(step.jitCache.length).toBeGreaterThan(0);
  });
  test("steps are those without a scaler, where nothing overflows", async () => {
    const [plain, scaled] = [make(), make()];
    for (let i = 0; i < 3; i++) {
      plain.optimizer.zeroGrad();
      plain.w.square().sum().backward();
      await plain.optimizer.step();
      scaled.optimizer.zeroGrad();
      scaled.scaler.scale(scaled.w.square().sum()).backward();
      await scaled.scaler.step(scaled.optimizer);
      await scaled.scaler.update();
    }
    expect(await keep(scaled.w, scaled.optimizer)).toEqual(await keep(plain.w, plain.optimizer));
  });
  test("gradients are clipped as they are without a scale", async () => {
    const { w, optimizer, scaler } = make();
    scaler.scale(w.mul(new Tensor([3.0, 4.5]).mul(2)).sum()).backward();
    scaler.unscale_(optimizer);
    const norm = nn.clipGradNorm([w], 1);
    expect(await norm.item()).toBeCloseTo(Math.hypot(6, 9), 4);
    expect(await w.grad?.square().sum().item()).toBeCloseTo(1, 4);
    // what overflowed is skipped, whatever clipping made of it
    await scaler.step(optimizer);
    await scaler.update();
    const before = await w.tolist();
    optimizer.zeroGrad();
    scaler.scale(w.mul(Infinity).sum()).backward();
    scaler.unscale_(optimizer);
    nn.clipGradNorm([w], 1);
    await scaler.step(optimizer);
    expect(await w.tolist()).toEqual(before);
  });
  test("a plain step after a skipped one is made", async () => {
    const { w, optimizer, scaler } = make();
    scaler.scale(w.mul(NaN).sum()).backward();
    await scaler.step(optimizer);
    optimizer.zeroGrad();
    w.sum().backward();
    await optimizer.step();
    expect(await w.tolist()).toEqual([0.5, 0.5]);
  });
  test("each of two optimisers is skipped by its own gradients, and the scale by both", async () => {
    const [a, b] = [make(), make()];
    const { scaler } = a;
    scaler.scale(a.w.sum().add(b.w.mul(Infinity).sum())).backward();
    for (const { optimizer } of [a, b]) await scaler.step(optimizer);
    await scaler.update();
    expect(await a.w.tolist()).toEqual([0.5, 0.5]);
    expect(await b.w.tolist()).toEqual([1, 1]);
    expect(await scaler.scaling.item()).toBe(2 ** 15);
  });
  test("a parameter without a gradient keeps what it shares with others", async () => {
    const [w, idle] = [nn.parameter(Tensor.ones(2)), nn.parameter(Tensor.ones(2))];
    const optimizer = new nn.optim.Adam([w, idle], { lr: 0.5 });
    const scaler = new nn.GradScaler();
    for (let i = 0; i < 2; i++) {
      optimizer.zeroGrad();
      scaler.scale(w.sum()).backward();
      await scaler.step(optimizer);
      await scaler.update();
    }
    const [first, second] = optimizer.state as [nn.optim.State, nn.optim.State];
    expect(await first.c1?.item()).toBeCloseTo(1 - 0.9 ** 2, 5);
    expect(await second.c1?.item()).toBe(0);
  });
  test("parameters on two devices", async () => {
    const devices = ["WASM:0", "WASM:1"];
    const w = nn.parameter(Tensor.ones(4).shard(devices, 0));
    const optimizer = new nn.optim.SGD([w], { lr: 0.5, momentum: 0.9 });
    const scaler = new nn.GradScaler();
    for (const factor of [1, Infinity, 1]) {
      optimizer.zeroGrad();
      scaler.scale(w.mul(factor).sum()).backward();
      await scaler.step(optimizer);
      await scaler.update();
    }
    const values = (await w.tolist()) as number[];
    for (const x of values) expect(x).toBeCloseTo(1 - 0.5 - 0.95, 5);
  });
  test("switched off, it passes all on", async () => {
    const { w, optimizer, scaler } = make({ enabled: false });
    const loss = w.sum();
    expect(scaler.scale(loss)).toBe(loss);
    loss.backward();
    await scaler.step(optimizer);
    await scaler.update();
    expect(await w.tolist()).toEqual([0.5, 0.5]);
  });
  test("calls out of order are refused", async () => {
    const { w, optimizer, scaler } = make();
    expect(() => scaler.unscale_(optimizer)).toThrow("GradScaler.unscale_: no parameter has a gradient");
    await expect(scaler.update()).rejects.toThrow("GradScaler.update: no optimizer has stepped");
    scaler.scale(w.sum()).backward();
    scaler.unscale_(optimizer);
    expect(() => scaler.unscale_(optimizer)).toThrow("GradScaler.unscale_: called twice");
    await scaler.step(optimizer);
    await expect(scaler.step(optimizer)).rejects.toThrow("GradScaler.step: called twice");
  });
  test.for([
    [{ initScale: 0 }, "initScale is 0"],
    [{ growthFactor: 1 }, "growthFactor is 1"],
    [{ backoffFactor: 1 }, "backoffFactor is 1"],
    [{ growthInterval: 0.5 }, "growthInterval is 0.5"],
    [{ growth: 2 }, "unknown option growth"],
  ] as const)("%o is refused", ([options, message]) => {
    expect(() => new nn.GradScaler(options as nn.GradScalerOptions)).toThrow(`GradScaler: ${message}`);
  });
});

describe("optimisers that keep narrow values", () => {
  const low = () => nn.parameter(Tensor.ones([4], { dtype: "bfloat16" }));
  const step = async (w: Tensor, optimizer: nn.optim.Optimizer) => {
    optimizer.zeroGrad();
    w.float().sum().backward();
    await optimizer.step();
  };
  test("master weights take steps that the parameter's type would lose", async () => {
    const [plain, kept] = [low(), low()];
    const optimizers = [
      new nn.optim.SGD([plain], { lr: 1e-4 }),
      new nn.optim.SGD([kept], { lr: 1e-4, masterWeights: true }),
    ] as const;
    for (let i = 0; i < 60; i++) {
      await step(plain, optimizers[0]);
      await step(kept, optimizers[1]);
    }
    expect(await plain.float().tolist()).toEqual([1, 1, 1, 1]);
    const master = optimizers[1].state[0]?.master as Tensor;
    expect(master.dtype.name).toBe("float32");
    expect(((await master.tolist()) as number[])[0]).toBeCloseTo(1 - 60e-4, 5);
    expect(await kept.float().tolist()).toEqual(await master.bfloat16().float().tolist());
    expect(await kept.float().tolist()).not.toEqual([1, 1, 1, 1]);
  });
  test("a float32 parameter is its own master", async () => {
    const w = nn.parameter(Tensor.ones(2));
    const optimizer = new nn.optim.Adam([w], { lr: 0.5, masterWeights: true });
    await step(w, optimizer);
    expect(Object.keys(optimizer.state[0] as object)).not.toContain("master");
    expect(await w.tolist()).toEqual([0.5, 0.5]);
  });
  test.for(["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "LAMB", "LARS"] as const)(
    "%s with a state of bfloat16 goes the way of float32",
    async (name) => {
      Tensor.manualSeed(1);
      const goal = await Tensor.randn(64).realize();
      const run = async (options: object) => {
        const w = nn.parameter(Tensor.full([64], 0.5));
        const momentum = name === "SGD" || name === "LARS" ? { momentum: 0.9 } : {};
        const optimizer = new nn.optim[name]([w], { lr: 0.05, ...momentum, ...options });
        for (let i = 0; i < 12; i++) {
          optimizer.zeroGrad();
          w.sub(goal).square().sum().backward();
          await optimizer.step();
        }
        const kept = Object.values(optimizer.state[0] as object) as Tensor[];
        return {
          w: (await w.tolist()) as number[],
          types: kept.filter((t) => t.ndim > 0).map((t) => t.dtype.name),
        };
      };
      const [wide, narrow] = [await run({}), await run({ stateDtype: "bfloat16" })];
      expect(new Set(wide.types)).toEqual(new Set(["float32"]));
      expect(new Set(narrow.types)).toEqual(new Set(["bfloat16"]));
      const moved = Math.max(...wide.w.map((x) => Math.abs(x - 0.5)));
      for (const [i, x] of narrow.w.entries())
        expect(Math.abs(x - (wide.w[i] as number))).toBeLessThan(0.05 * moved);
    },
  );
  test("the state is right on average: means of squares do not stay where they were", async () => {
    const w = nn.parameter(Tensor.ones(512));
    const optimizer = new nn.optim.Adam([w], { lr: 0, stateDtype: "bfloat16" });
    const step = new TinyJit(async (g: Tensor) => {
      optimizer.zeroGrad();
      w.mul(g).sum().backward();
      await optimizer.step();
    });
    for (let i = 0; i < 60; i++)
      await step(
        await Tensor.full([1], i < 1 ? 4 : 0)
          .contiguous()
          .realize(),
      );
    const v = optimizer.state[0]?.v as Tensor;
    // a step takes 0.1 % off, less than half of bfloat16's last digit: rounded to the nearest it would stay
    const mean = await v.float().mean().item();
    expect(mean / (16 * 0.001 * 0.999 ** 59)).toBeCloseTo(1, 2);
  });
  test("infinities and NaN stay what they are", async () => {
    const w = nn.parameter(Tensor.ones(3));
    const optimizer = new nn.optim.SGD([w], { lr: 0, momentum: 1, stateDtype: "bfloat16" });
    w.mul(new Tensor([Infinity, -Infinity, NaN]))
      .sum()
      .backward();
    await optimizer.step();
    expect(await optimizer.state[0]?.momentum?.float().tolist()).toEqual([Infinity, -Infinity, NaN]);
  });
  test("options of a group", async () => {
    const [a, b] = [nn.parameter(Tensor.ones(2)), nn.parameter(Tensor.ones(2))];
    const groups = [{ params: [a] }, { params: [b], stateDtype: "float32" }] as const;
    const optimizer = new nn.optim.Adam(groups, { stateDtype: "bfloat16" });
    expect(optimizer.state.map((s) => s.m?.dtype.name)).toEqual(["bfloat16", "float32"]);
    const own = [{ params: [low()], masterWeights: true }, { params: [low()] }] as const;
    const mixed = new nn.optim.Adam(own, { masterWeights: false, stateDtype: "bfloat16" });
    expect(mixed.state.map((s) => [s.master?.dtype.name, s.m?.dtype.name])).toEqual([
      ["float32", "bfloat16"],
      [undefined, "bfloat16"],
    ]);
    expect(() => new nn.optim.Adam([{ params: [b], stateDtype: "bfloat16" }])).toThrow(
      "Adam: unknown option stateDtype of a group",
    );
  });
  test.for([
    [{ stateDtype: "float16" }, 'Adam: stateDtype is "float16", expected "bfloat16" or "float32"'],
    [{ stateDtype: 3 }, "Adam: option stateDtype is 3"],
    [{ masterWeights: 1 }, "Adam: option masterWeights is 1"],
  ] as const)("%o is refused", ([options, message]) => {
    expect(() => new nn.optim.Adam([low()], options as object)).toThrow(message);
  });
  test("a failing update leaves parameters and state as they were", async () => {
    class Failing extends nn.optim.Optimizer {
      protected override fresh(p: Tensor) {
        return { sum: this.zeros(p) };
      }
      protected update({ state, grad }: nn.optim.Update<nn.optim.CommonOptions>): void {
        state.sum?.assign(state.sum.add(grad));
        throw new RangeError("no");
      }
    }
    const w = low();
    const optimizer = new Failing([w], { lr: 1, stateDtype: "bfloat16", masterWeights: true });
    const before = { ...optimizer.state[0] };
    await expect(step(w, optimizer)).rejects.toThrow("no");
    expect(optimizer.state[0]).toEqual(before);
    expect(await optimizer.state[0]?.sum?.float().tolist()).toEqual([0, 0, 0, 0]);
  });
});

test("a saved training goes on exactly: scale, master weights, a state of bfloat16", async () => {
  const make = () => {
    Tensor.manualSeed(11);
    const model = new nn.Linear(4, 2, { dtype: "bfloat16" });
    const optimizer = new nn.optim.AdamW(model, { lr: 0.05, stateDtype: "bfloat16", masterWeights: true });
    return { model, optimizer, scaler: new nn.GradScaler({ growthInterval: 3 }) };
  };
  const step = async ({ model, optimizer, scaler }: ReturnType<typeof make>, factor = 1) => {
    optimizer.zeroGrad();
    const loss = Tensor.autocast("bfloat16", () =>
      model.forward(Tensor.ones(3, 4)).square().mean().mul(factor),
    );
    scaler.scale(loss).backward();
    await scaler.step(optimizer, loss);
    await scaler.update();
    return loss.item();
  };
  const first = make();
  for (const factor of [1, 1, Infinity, 1]) await step(first, factor);
  const bytes = await nn.save(first);
  const rest = [await step(first), await step(first), await step(first)];
  const second = make();
  await nn.load(bytes, second);
  expect(await second.scaler.scaling.item()).toBe(2 ** 15);
  expect([await step(second), await step(second), await step(second)]).toEqual(rest);
  expect(await second.scaler.scaling.item()).toBe(await first.scaler.scaling.item());
  expect(await second.optimizer.state[0]?.master?.tolist()).toEqual(
    await first.optimizer.state[0]?.master?.tolist(),
  );
});
