// A generator learns to make points on a circle from noise, against a discriminator: two optimisers in one
// captured step, and a detach.

import { nn, Tensor, TinyJit } from "gradloom";

const steps = Number(process.env.STEPS ?? 2000);
const BATCH = 128;

Tensor.manualSeed(0);
const network = (inputs, outputs) =>
  new nn.Sequential(
    new nn.Linear(inputs, 32),
    new nn.LeakyReLU(0.2),
    new nn.Linear(32, 32),
    new nn.LeakyReLU(0.2),
    new nn.Linear(32, outputs),
  );
const [generator, discriminator] = [network(4, 2), network(2, 1)];
const optG = new nn.optim.Adam(generator, { lr: 1e-3, betas: [0.5, 0.999] });
const optD = new nn.optim.Adam(discriminator, { lr: 1e-3, betas: [0.5, 0.999] });
const criterion = new nn.BCEWithLogitsLoss();
const [isReal, isFake] = [Tensor.ones(BATCH, 1), Tensor.zeros(BATCH, 1)];

function circle() {
  const angle = Tensor.rand(BATCH).mul(2 * Math.PI);
  return Tensor.stack([angle.cos(), angle.sin()], 1).add(Tensor.randn(BATCH, 2).mul(0.05));
}

const step = new TinyJit(async () => {
  const fake = generator.forward(Tensor.randn(BATCH, 4));
  const ofReal = criterion.forward(discriminator.forward(circle()), isReal);
  const ofFake = criterion.forward(discriminator.forward(fake.detach()), isFake);
  const lossD = ofReal.add(ofFake);
  optD.zeroGrad();
  lossD.backward();
  await optD.step(lossD);

  const lossG = criterion.forward(discriminator.forward(fake), isReal);
  optG.zeroGrad();
  lossG.backward();
  await optG.step(lossG);
  return [lossD, lossG];
});

/** How far from the origin 1000 made points are: mean and standard deviation. */
async function radius() {
  const points = Tensor.noGrad(() => generator.forward(Tensor.randn(1000, 4)));
  const [spread, mean] = points.square().sum(1).sqrt().stdMean();
  return `radius ${(await mean.item()).toFixed(2)}, give or take ${(await spread.item()).toFixed(2)}`;
}

console.log(`before: ${await radius()}`);
for (let i = 1; i <= steps; i++) {
  const [lossD, lossG] = await step();
  if (i % Math.ceil(steps / 4) !== 0) continue;
  console.log(`step ${i}: losses ${(await lossD.item()).toFixed(2)} and ${(await lossG.item()).toFixed(2)}`);
}
console.log(`after: ${await radius()}`);
