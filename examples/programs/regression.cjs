// Linear and logistic regression, loaded with require. The weights that made the data are found again.

const { nn, Tensor } = require("gradloom");

const steps = Number(process.env.STEPS ?? 100);

/** Fits one linear layer with a loss, and returns it with the losses of all steps. */
async function regress(x, y, loss, optimizerOf) {
  const layer = new nn.Linear(3, 1);
  const optimizer = optimizerOf(layer);
  const losses = [];
  for (let step = 0; step < steps; step++) {
    const value = loss.forward(layer.forward(x), y);
    optimizer.zeroGrad();
    value.backward();
    await optimizer.step(value);
    losses.push(await value.item());
  }
  return { layer, losses };
}

async function main() {
  Tensor.manualSeed(0);
  const x = Tensor.randn(200, 3);
  const weights = new Tensor([[2], [-3.4], [0.5]]);
  const score = x.matmul(weights).add(4.2);

  const y = score.add(Tensor.randn(200, 1).mul(0.01));
  const linear = await regress(x, y, new nn.MSELoss(), (model) => new nn.optim.SGD(model, { lr: 0.1 }));
  const found = [...(await linear.layer.weight.data()), await linear.layer.bias.item()];
  console.log(`linear: loss ${linear.losses[0].toFixed(2)} to ${linear.losses.at(-1).toFixed(4)}`);
  console.log(`  weights and bias ${found.map((w) => w.toFixed(2)).join(", ")}; made with 2, -3.4, 0.5, 4.2`);

  const label = score.gt(0).float();
  const { layer, losses } = await regress(
    x,
    label,
    new nn.BCEWithLogitsLoss(),
    (model) => new nn.optim.Adam(model, 0.1),
  );
  const right = Tensor.noGrad(() => layer.forward(x).gt(0).eq(label).mean());
  console.log(`logistic: loss ${losses[0].toFixed(2)} to ${losses.at(-1).toFixed(2)}`);
  console.log(`  ${(100 * (await right.item())).toFixed(1)} % of the labels are right`);
}
main();
