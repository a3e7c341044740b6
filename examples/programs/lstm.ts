// An LSTM reads sequences of different lengths and says which of two letters was more frequent.

import { nn, Tensor, TinyJit } from "gradloom";

const steps = Number(process.env.STEPS ?? 200);
const LONGEST = 12;

class Reader {
  letters = new nn.Embedding(4, 8, { paddingIdx: 0 });
  lstm = new nn.LSTM(8, 24, { batchFirst: true });
  head = new nn.Linear(24, 2);
  forward(text: Tensor, lengths: Tensor): Tensor {
    const [, [h]] = this.lstm.forward(this.letters.forward(text), undefined, { lengths });
    return this.head.forward(h.get(-1)); // the state at the end of each sequence
  }
}

/** Sequences of the letters 1, 2 and 3, padded with 0; label 1: there are more 1 than 2. */
function batch(size: number): [text: Tensor, lengths: Tensor, label: Tensor] {
  const lengths = Tensor.randint(4, LONGEST + 1, [size]);
  const isText = Tensor.arange(LONGEST).lt(lengths.unsqueeze(1));
  const text = Tensor.randint(1, 4, [size, LONGEST]).mul(isText);
  return [text, lengths, text.eq(1).sum(1).gt(text.eq(2).sum(1)).int()];
}

Tensor.manualSeed(0);
const model = new Reader();
const parameters = nn.getParameters(model);
const optimizer = new nn.optim.Adam(parameters, { lr: 0.01 });
const step = new TinyJit(async (text: Tensor, lengths: Tensor, label: Tensor) => {
  optimizer.zeroGrad();
  const loss = model.forward(text, lengths).crossEntropy(label);
  loss.backward();
  nn.clipGradNorm(parameters, 1);
  await optimizer.step(loss);
  return loss;
});

const recent = new nn.metrics.Mean();
for (let i = 1; i <= steps; i++) {
  await recent.update(await step(...batch(32)));
  if (i % Math.ceil(steps / 5) !== 0) continue;
  console.log(`step ${i}: loss ${recent.compute().toFixed(2)}`);
  recent.reset();
}

const [text, lengths, label] = batch(500);
const scores = Tensor.noGrad(() => model.forward(text, lengths));
const right = await nn.metrics.accuracy(scores, label).item();
console.log(`${(100 * right).toFixed(1)} % of 500 new sequences are right`);
