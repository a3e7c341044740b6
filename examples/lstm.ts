// An LSTM learns to write, letter by letter, from sentences of different lengths. STEPS is the number of
// training steps, BATCH the number of sentences at a time, HIDDEN the size of the LSTM, DEV the device.

import { Device, nn, Tensor, TinyJit } from "gradloom";

const setting = (name: string, otherwise: number): number => Number(process.env[name] ?? otherwise);
const STEPS = setting("STEPS", 200);
const BATCH = setting("BATCH", 32);
const HIDDEN = setting("HIDDEN", 128);
Tensor.manualSeed(1);

const WHO = ["the cat", "a small fox", "the river", "my sister", "an old man"];
const DOES = ["sleeps", "runs home", "looks at the sky", "sings", "falls"];
const WHEN = ["", " today", " at night", " again and again"];
const sentences = WHO.flatMap((who) => DOES.flatMap((does) => WHEN.map((when) => `${who} ${does}${when}.`)));

/** 0 pads, 1 starts a sentence. */
const alphabet = ["", "^", ...new Set(sentences.join(""))];
const encode = (s: string): number[] => [...s].map((c) => alphabet.indexOf(c));
const longest = Math.max(...sentences.map((s) => s.length));
const padded = (ids: number[]): number[] => [...ids, ...new Array<number>(longest - ids.length).fill(0)];
const data = {
  x: new Tensor(sentences.map((s) => padded([1, ...encode(s.slice(0, -1))]))),
  y: new Tensor(sentences.map((s) => padded(encode(s)))),
};

class Model {
  letters = new nn.Embedding(alphabet.length, 32);
  lstm = new nn.LSTM(32, HIDDEN, { batchFirst: true });
  head = new nn.Linear(HIDDEN, alphabet.length);
  /** The logits of the next letter at every place, and the last state. */
  forward(x: Tensor, options: nn.SequenceOptions = {}, state?: [Tensor, Tensor]): [Tensor, [Tensor, Tensor]] {
    const [output, last] = this.lstm.forward(this.letters.forward(x), state, options);
    return [this.head.forward(output), last];
  }
}

const model = new Model();
const optimizer = new nn.optim.Adam(nn.getParameters(model), { lr: 5e-3 });
const step = new TinyJit(async (x: Tensor, y: Tensor) => {
  const [logits] = model.forward(x, { lengths: y.ne(0).sum(-1) });
  const loss = logits.flatten(0, 1).crossEntropy(y.flatten(), { ignoreIndex: 0 });
  optimizer.zeroGrad();
  loss.backward();
  await optimizer.step(loss);
  return loss;
});
console.log(`${sentences.length} sentences of up to ${longest} letters; device ${Device.DEFAULT}`);
for (let i = 1; i <= STEPS; i++) {
  const { x, y } = nn.datasets.sample(data, BATCH);
  const loss = await step(x.contiguous(), y.contiguous());
  if (i === 1 || i === STEPS || i % 25 === 0)
    console.log(`step ${String(i).padStart(4)}  loss ${Number(await loss.item()).toFixed(3)}`);
}

// Generate: one letter at a time, with the state of the letter before.
for (let i = 0; i < 3; i++) {
  let [text, letter] = ["", 1];
  let state: [Tensor, Tensor] | undefined;
  while (text.length < longest && !text.endsWith(".")) {
    const [logits, next] = Tensor.noGrad(() => model.forward(new Tensor([[letter]]), {}, state));
    letter = Number(await logits.flatten().div(0.7).softmax(-1).multinomial(1).item());
    await Tensor.realize(...next);
    state = next;
    text += alphabet[letter];
  }
  console.log(text);
}
