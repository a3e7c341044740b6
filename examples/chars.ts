// A small transformer learns to write, letter by letter, from sentences that this script generates. STEPS is
// the number of training steps, LENGTH the number of letters it sees, BATCH the number of texts at a time,
// DEV the device.

import { Device, nn, Tensor } from "gradloom";

const setting = (name: string, otherwise: number): number => Number(process.env[name] ?? otherwise);
const STEPS = setting("STEPS", 300);
const LENGTH = setting("LENGTH", 32);
const BATCH = setting("BATCH", 16);
const SAMPLE = setting("SAMPLE", 160);
const WIDTH = 64;
Tensor.manualSeed(1);

/** Sentences of a small grammar: each kind of subject has its own verbs. */
function sentences(count: number): string {
  let state = 7;
  const pick = <T>(xs: readonly T[]): T => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return xs[Math.floor((state / 2 ** 32) * xs.length)] as T;
  };
  const kinds = [
    { who: ["the cat", "the dog", "a small fox"], does: ["sleeps", "runs home", "looks for food"] },
    { who: ["the river", "a warm rain"], does: ["falls", "runs down the hill", "fills the lake"] },
    { who: ["my sister", "an old man"], does: ["reads a book", "sings", "looks at the sky"] },
  ] as const;
  const one = (): string => {
    const { who, does } = pick(kinds);
    return `${pick<string>(who)} ${pick<string>(does)}${pick([" at night", " today", ""])}.\n`;
  };
  return Array.from({ length: count }, one).join("");
}

class Model {
  letters: nn.Embedding;
  places = new nn.Embedding(LENGTH, WIDTH);
  blocks = [new nn.TransformerBlock(WIDTH, 4), new nn.TransformerBlock(WIDTH, 4)];
  norm = new nn.LayerNorm(WIDTH);
  head: nn.Linear;
  constructor(alphabet: number) {
    this.letters = new nn.Embedding(alphabet, WIDTH);
    this.head = new nn.Linear(WIDTH, alphabet);
  }
  /** [batch, LENGTH] of letters -> [batch, LENGTH, alphabet]: the logits of the next letter. */
  forward(x: Tensor): Tensor {
    const start = this.letters.forward(x).add(this.places.forward(Tensor.arange(LENGTH)));
    const seen = this.blocks.reduce((y, block) => block.forward(y, { isCausal: true }), start);
    return this.head.forward(this.norm.forward(seen));
  }
}

const text = sentences(200);
const alphabet = [...new Set(text)].sort();
const encode = (s: string): number[] => [...s].map((c) => alphabet.indexOf(c));
// every window of LENGTH letters, and the same window one letter later: the labels
const pieces = new Tensor(encode(text)).unfold(0, LENGTH, 1);
const n = (pieces.shape[0] as number) - 1;
const data = { x: pieces.narrow(0, 0, n), y: pieces.narrow(0, 1, n) };
console.log(`${text.length} letters of ${alphabet.length} kinds; device ${Device.DEFAULT}`);

const model = new Model(alphabet.length);
const optimizer = new nn.optim.AdamW(nn.getParameters(model), { lr: 3e-3 });
for (let step = 1; step <= STEPS; step++) {
  const { x, y } = nn.datasets.sample(data, BATCH);
  const guess = model.forward(x);
  const loss = guess.flatten(0, 1).crossEntropy(y.flatten());
  optimizer.zeroGrad();
  loss.backward();
  await optimizer.step(loss);
  if (step === 1 || step === STEPS || step % 25 === 0) {
    console.log(`step ${String(step).padStart(4)}  loss ${Number(await loss.item()).toFixed(3)}`);
  }
}

// Generate: feed the last LENGTH letters (the mask hides what follows), then draw the next one.
let story = encode("the ");
while (story.length < SAMPLE) {
  const seen = story.slice(-LENGTH);
  const input = new Tensor([[...seen, ...new Array<number>(LENGTH - seen.length).fill(0)]]);
  const last = new Tensor([seen.length - 1]); // a tensor, so that all letters run the same kernels
  const drawn = Tensor.noGrad(() =>
    model.forward(input).flatten(0, 1).indexSelect(0, last).div(0.5).softmax(-1).multinomial(1),
  );
  story = [...story, Number(await drawn.item())];
}
console.log(`\n${story.map((id) => alphabet[id]).join("")}`);
