// Mixed precision: weights, optimiser and loss in float32, products in float16 or bfloat16. For float16 the
// loss is scaled so that small gradients are not lost; a step whose gradients overflow changes nothing and
// halves the scale.

import { nn, Tensor, TinyJit } from "gradloom";

const steps = Number(process.env.STEPS ?? 200);

async function train(dtype) {
  Tensor.manualSeed(0);
  const x = await Tensor.randn(256, 8).realize();
  const y = await x.square().mean(1, true).realize();
  const model = new nn.Sequential(new nn.Linear(8, 64), new nn.ReLU(), new nn.Linear(64, 1));
  const optimizer = new nn.optim.SGD(model, { lr: 0.1 });
  const scaler = new nn.GradScaler({ initScale: 2 ** 20, enabled: dtype === "float16" });
  const narrow = dtype === "float32" ? false : dtype;

  const step = new TinyJit(async () => {
    optimizer.zeroGrad();
    const loss = Tensor.autocast(narrow, () => model.forward(x).mseLoss(y));
    scaler.scale(loss).backward();
    await scaler.step(optimizer, loss);
    await scaler.update();
    return loss;
  });

  let [loss, skipped, scale] = [NaN, 0, 2 ** 20];
  for (let i = 0; i < steps; i++) {
    loss = await (await step()).item();
    const next = await scaler.scaling.item();
    if (next < scale) skipped++;
    scale = next;
  }
  const { weight } = model[0];
  console.log(
    `${dtype}: loss ${loss.toFixed(3)}, ${skipped} steps skipped, scale 2^${Math.log2(scale)}, weights ${weight.dtype.name}`,
  );
}

for (const dtype of ["float32", "bfloat16", "float16"]) await train(dtype);
