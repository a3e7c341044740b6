// LoRA: a trained model is frozen, its linear layers get small factors of low rank that learn another task,
// and at the end the factors are merged into the weights.

import { nn, Tensor, TinyJit } from "gradloom";

const steps = Number(process.env.STEPS ?? 150);

class LoRA {
  readonly base: nn.Linear;
  readonly scale: number;
  readonly down: Tensor;
  readonly up: Tensor;
  constructor(base: nn.Linear, { rank = 2, scale = 2 } = {}) {
    const [outputs = 0, inputs = 0] = base.weight.shape;
    for (const p of nn.getParameters(base)) p.requiresGrad = false;
    this.base = base;
    this.scale = scale;
    this.down = nn.parameter(Tensor.randn(rank, inputs).mul(0.1));
    this.up = nn.parameter(Tensor.zeros(outputs, rank)); // at first nothing is different
  }
  forward(x: Tensor): Tensor {
    return this.base.forward(x).add(x.linear(this.down).linear(this.up).mul(this.scale));
  }
  merged(): nn.Linear {
    this.base.weight.assign(this.base.weight.add(this.up.matmul(this.down).mul(this.scale)));
    return this.base;
  }
}

Tensor.manualSeed(0);
const x = await Tensor.randn(300, 8).realize();
const model = new nn.Sequential(new nn.Linear(8, 64), new nn.Tanh(), new nn.Linear(64, 3));

/** Which of three inputs is the largest: the first three, or those from `start` on. */
async function learn(start: number): Promise<string> {
  const y = await x.narrow(1, start, 3).argmax(1).realize();
  const parameters = nn.getParameters(model);
  const optimizer = new nn.optim.AdamW(parameters, { lr: 0.02 });
  const step = new TinyJit(async () => {
    optimizer.zeroGrad();
    const loss = model.forward(x).crossEntropy(y);
    loss.backward();
    await optimizer.step(loss);
    return loss;
  });
  for (let i = 0; i < steps; i++) await step();
  const right = await nn.metrics
    .accuracy(
      Tensor.noGrad(() => model.forward(x)),
      y,
    )
    .item();
  const count = parameters.reduce((sum, p) => sum + p.size, 0);
  return `${count} parameters trained, ${(100 * right).toFixed(1)} % right`;
}

console.log(`first task: ${await learn(0)}`);
const before = await Promise.all(nn.getParameters(model).map((p) => p.clone().realize()));
for (const [i, layer] of model.layers.entries()) {
  if (layer instanceof nn.Linear) model.layers[i] = new LoRA(layer);
}
console.log(`second task, with LoRA: ${await learn(1)}`);

const state = nn.getStateDict(model);
const frozen = ["0.base.weight", "0.base.bias", "2.base.weight", "2.base.bias"].map((name) => state[name]!);
const same = await Promise.all(frozen.map((p, i) => p.equal(before[i]!).item<boolean>()));
const adapter = Object.entries(state).filter(([name]) => /\.(down|up)$/.test(name));
const bytes = await nn.safeSave(Object.fromEntries(adapter));
console.log(
  `the frozen weights are as before: ${same.every(Boolean)}; the adapter has ${bytes.length} bytes`,
);

const apart = await Tensor.noGrad(() => model.forward(x)).realize();
for (const [i, layer] of model.layers.entries()) {
  if (layer instanceof LoRA) model.layers[i] = layer.merged();
}
const merged = Tensor.noGrad(() => model.forward(x));
const isClose = await merged.allclose(apart, { atol: 1e-4 }).item<boolean>();
const tensors = Object.keys(nn.getStateDict(model));
console.log(`merged into ${tensors.join(", ")}; the same outputs: ${isClose}`);
