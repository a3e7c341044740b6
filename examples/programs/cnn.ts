// A convolutional network with batch norm and dropout, on pictures that are moved and mirrored at random. It
// is tested on pictures that it has never seen, as they are.

import { nn, Tensor, TinyJit } from "gradloom";

const { Compose, Normalize, RandomCrop, RandomHorizontalFlip } = nn.transforms;
const epochs = Number(process.env.STEPS ?? 5);
const SIZE = 12;

/** Noise with a horizontal bar, a vertical bar, a square or a cross, in turn. */
function pictures(n: number): Tensor {
  const [x, y] = [Tensor.arange(SIZE).reshape(1, SIZE), Tensor.arange(SIZE).reshape(SIZE, 1)];
  const at = Tensor.randint(3, 9, [n / 4, 1, 1]);
  const [row, column] = [y.sub(at).add(x.mul(0)).eq(0), x.sub(at).add(y.mul(0)).eq(0)];
  const square = x.sub(6).abs().maximum(y.sub(6).abs()).eq(3).expand(row.shape);
  const shapes = Tensor.stack([row, column, square, row.logicalOr(column)], 1).reshape(n, 1, SIZE, SIZE);
  return shapes.mul(0.7).add(Tensor.rand(n, 1, SIZE, SIZE).mul(0.3));
}
Tensor.manualSeed(0);
const all = await pictures(400).realize();
const samples = all.unbind(0).map((x, i) => ({ x, y: i % 4 }));

class Net extends nn.Module {
  features = new nn.Sequential(
    new nn.Conv2d(1, 8, 3, { padding: 1 }),
    new nn.BatchNorm2d(8, { warmUp: true }),
    new nn.ReLU(),
    new nn.MaxPool2d(2),
    new nn.Conv2d(8, 16, 3, { padding: 1 }),
    new nn.BatchNorm2d(16, { warmUp: true }),
    new nn.ReLU(),
    new nn.MaxPool2d(2),
  );
  drop = new nn.Dropout(0.2);
  head = new nn.Linear(16 * 3 * 3, 4);
  forward(x: Tensor): Tensor {
    return this.head.forward(this.drop.forward(this.features.forward(x).flatten(1)));
  }
}

const model = new Net();
const optimizer = new nn.optim.AdamW(model, { lr: 3e-3, weightDecay: 0.01 });
const step = new TinyJit(async (x: Tensor, y: Tensor) => {
  optimizer.zeroGrad();
  const loss = model.forward(x).crossEntropy(y, { labelSmoothing: 0.05 });
  loss.backward();
  await optimizer.step(loss);
  return loss;
});

const normalize = new Normalize([0.3], [0.3]);
const augment = new Compose([new RandomCrop(SIZE, { padding: 1 }), new RandomHorizontalFlip(), normalize]);
const loader = new nn.DataLoader(samples.slice(0, 320), {
  batchSize: 32,
  shuffle: true,
  transform: ({ x, y }) => ({ x: augment.forward(x), y }),
});
model.train();
for (let epoch = 1; epoch <= epochs; epoch++) {
  const mean = new nn.metrics.Mean();
  for await (const { x, y } of loader) await mean.update(await step(x, y));
  console.log(`epoch ${epoch}: loss ${mean.compute().toFixed(2)}`);
}

model.eval();
const accuracy = new nn.metrics.Accuracy();
const tests = new nn.DataLoader(samples.slice(320), {
  batchSize: 40,
  transform: ({ x, y }) => ({ x: normalize.forward(x), y }),
});
for await (const { x, y } of tests) await accuracy.update(model.forward(x), y);
console.log(`${(100 * accuracy.compute()).toFixed(1)} % of 80 new pictures are right`);
