// The smallest problem that one layer cannot solve: exclusive or, learned by eight hidden units.

import { nn, Tensor } from "gradloom";

Tensor.manualSeed(3);
const x = new Tensor([[0, 0], [0, 1], [1, 0], [1, 1]], { dtype: "float32" }); // biome-ignore format: a table
const y = new Tensor([[0], [1], [1], [0]], { dtype: "float32" });

const model = new nn.Sequential(new nn.Linear(2, 8), (h) => h.tanh(), new nn.Linear(8, 1));
const optimizer = new nn.optim.Adam(nn.getParameters(model), { lr: 0.05 });

const steps = Number(process.env.STEPS ?? 200);
for (let step = 1; step <= steps; step++) {
  const loss = model.forward(x).bceWithLogits(y);
  optimizer.zeroGrad();
  loss.backward();
  await optimizer.step(loss);
  if (step % 50 === 0) console.log(`step ${step}: loss ${Number(await loss.item()).toFixed(4)}`);
}

const truth = (await model.forward(x).sigmoid().round().cast("int32").flatten().tolist()) as number[];
console.log("0^0, 0^1, 1^0, 1^1 =", truth.join(", "));
