// A variational autoencoder: a convolutional encoder to four numbers, a decoder of transposed convolutions,
// and the loss of both parts. Samples of the prior are shown as text.

import { nn, Tensor, TinyJit } from "gradloom";

const steps = Number(process.env.STEPS ?? 300);
const [SIZE, LATENT, BATCH] = [16, 4, 64];

class VAE extends nn.Module {
  encoder = new nn.Sequential(
    new nn.Conv2d(1, 16, 4, { stride: 2, padding: 1 }),
    new nn.ReLU(),
    new nn.Conv2d(16, 32, 4, { stride: 2, padding: 1 }),
    new nn.ReLU(),
    new nn.Flatten(),
    new nn.Linear(32 * 4 * 4, 2 * LATENT),
  );
  decoder = new nn.Sequential(
    new nn.Linear(LATENT, 32 * 4 * 4),
    new nn.ReLU(),
    new nn.Unflatten(1, [32, 4, 4]),
    new nn.ConvTranspose2d(32, 16, 4, { stride: 2, padding: 1 }),
    new nn.ReLU(),
    new nn.ConvTranspose2d(16, 1, 4, { stride: 2, padding: 1 }),
  );
  forward(x: Tensor): { logits: Tensor; mean: Tensor; logVariance: Tensor } {
    const codes = this.encoder.forward(x);
    const [mean, logVariance] = [codes.narrow(1, 0, LATENT), codes.narrow(1, LATENT, LATENT)];
    const z = mean.add(logVariance.mul(0.5).exp().mul(mean.randnLike()));
    return { logits: this.decoder.forward(z), mean, logVariance };
  }
}

/** Soft disks at random places. */
function disks(n: number): Tensor {
  const at = Tensor.arange(SIZE).float();
  const [x, y] = [Tensor.uniform([n, 1, 1, 1], 4, 12), Tensor.uniform([n, 1, 1, 1], 4, 12)];
  return at.sub(x).square().add(at.unsqueeze(1).sub(y).square()).div(-8).exp();
}

Tensor.manualSeed(0);
const model = new VAE();
const optimizer = new nn.optim.Adam(model, { lr: 2e-3 });
const step = new TinyJit(async (x: Tensor) => {
  const { logits, mean, logVariance } = model.forward(x);
  const picture = logits.bceWithLogits(x, { reduction: "sum" }).div(BATCH);
  const kl = logVariance
    .add(1)
    .sub(mean.square())
    .sub(logVariance.exp())
    .sum()
    .mul(-0.5 / BATCH);
  const loss = picture.add(kl);
  optimizer.zeroGrad();
  loss.backward();
  await optimizer.step(loss, kl);
  return { loss, kl };
});
for (let i = 1; i <= steps; i++) {
  const { loss, kl } = await step(disks(BATCH));
  if (i > 1 && i % Math.ceil(steps / 4) !== 0) continue;
  console.log(`step ${i}: loss ${(await loss.item()).toFixed(1)}, of it KL ${(await kl.item()).toFixed(1)}`);
}

const x = disks(BATCH);
const [error, blank] = Tensor.noGrad(() => {
  const again = model.forward(x).logits.sigmoid();
  return [again.sub(x).abs().mean(), x.sub(x.mean(0)).abs().mean()];
});
console.log(
  `error by pixel ${(await error.item()).toFixed(3)}; of the mean picture ${(await blank.item()).toFixed(3)}`,
);
const drawn = Tensor.noGrad(() => model.decoder.forward(Tensor.randn(4, LATENT)).sigmoid());
const rows: number[][] = await drawn.squeeze(1).permute(1, 0, 2).flatten(1).tolist();
for (const row of rows.filter((_, y) => y % 2 === 0)) {
  console.log(
    row
      .map((v) => " .:+#"[Math.min(4, Math.floor(v * 5))])
      .join("")
      .trimEnd(),
  );
}
