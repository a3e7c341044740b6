// Mixed precision: weights, optimiser and loss in float32, layers in float16 or bfloat16. The loss is scaled so
// that small gradients are not lost in float16; a step whose gradients overflow changes nothing and halves
// the scale.

import { nn, Tensor, TinyJit } from "gradloom";

const steps = Number(process.env.STEPS ?? 200);

/** A linear layer that keeps its weights in float32 and computes in a narrower type. */
class NarrowLinear extends nn.Linear {
  constructor(inputs, outputs, dtype) {
    super(inputs, outputs);
    this.compute = dtype;
  }
  forward(x) {
    return x.cast(this.compute).linear(this.weight.cast(this.compute), this.bias.cast(this.compute));
  }
}

async function train(dtype) {
  Tensor.manualSeed(0);
  const x = await Tensor.randn(256, 8).realize();
  const y = await x.square().mean(1, true).realize();
  const model = new nn.Sequential(
    new NarrowLinear(8, 64, dtype),
    new nn.ReLU(),
    new NarrowLinear(64, 1, dtype),
  );
  const parameters = nn.getParameters(model);
  const optimizer = new nn.optim.SGD(parameters, { lr: 0.1 });
  const scale = new Tensor([2 ** 20], { dtype: "float32" });

  const step = new TinyJit(async () => {
    const loss = model.forward(x).float().mseLoss(y);
    optimizer.zeroGrad();
    loss.mul(scale).sum().backward();
    // back to the size of the loss; nothing where any of them is infinite or NaN
    const fine = parameters.map((p) => p.grad.isfinite().all()).reduce((a, b) => a.logicalAnd(b));
    for (const p of parameters) p.grad = fine.where(p.grad.div(scale), 0);
    const scaled = scale.assign(fine.where(scale, scale.mul(0.5)));
    await optimizer.step(loss, scaled, fine);
    return { loss, fine };
  });

  let [loss, skipped] = [NaN, 0];
  for (let i = 0; i < steps; i++) {
    const result = await step();
    loss = await result.loss.item();
    if (!(await result.fine.item())) skipped++;
  }
  const exponent = Math.log2(await scale.item());
  const { weight } = model[0];
  console.log(
    `${dtype}: loss ${loss.toFixed(3)}, ${skipped} steps skipped, scale 2^${exponent}, weights ${weight.dtype.name}`,
  );
}

for (const dtype of ["float32", "bfloat16", "float16"]) await train(dtype);
