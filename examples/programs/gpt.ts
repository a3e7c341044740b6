// A small GPT that learns a proverb by letters: tied embeddings, causal attention, dropout, AdamW with
// groups, warm-up and cosine, clipped gradients, a checkpoint in the middle from which it is resumed, a jit,
// and sampling by temperature among the likeliest letters.

import { nn, Tensor, TinyJit } from "gradloom";

const steps = Number(process.env.STEPS ?? 120);
const text = "the quick brown fox jumps over the lazy dog. ".repeat(20);
const letters = [...new Set(text)].sort();
const encode = (s: string): number[] => [...s].map((c) => letters.indexOf(c));
const [VOCABULARY, LENGTH, WIDTH, HEADS, BATCH] = [letters.length, 32, 48, 4, 16];

class GPT extends nn.Module {
  letters = new nn.Embedding(VOCABULARY, WIDTH);
  places = new nn.Embedding(LENGTH, WIDTH);
  blocks = [0, 1].map(() => new nn.TransformerBlock(WIDTH, HEADS, { dropout: 0.05 }));
  norm = new nn.LayerNorm(WIDTH);
  head = new nn.Linear(WIDTH, VOCABULARY, { bias: false });
  constructor() {
    super();
    this.head.weight = this.letters.weight; // tied
    for (const p of nn.getParameters(this)) if (p.ndim === 2) nn.init.normal_(p, 0, 0.02);
  }
  forward(tokens: Tensor): Tensor {
    let x = this.letters.forward(tokens).add(this.places.forward(Tensor.arange(LENGTH)));
    for (const block of this.blocks) x = block.forward(x, { isCausal: true });
    return this.head.forward(this.norm.forward(x));
  }
}

/** All that a training needs; two of them start the same. */
function training() {
  Tensor.manualSeed(1337);
  const data = new Tensor(encode(text));
  const model = new GPT();
  const parameters = nn.getParameters(model);
  const groups = [
    { params: parameters.filter((p) => p.ndim >= 2), weightDecay: 0.1 },
    { params: parameters.filter((p) => p.ndim < 2), weightDecay: 0 },
  ];
  const optimizer = new nn.optim.AdamW(groups, { lr: 3e-3, betas: [0.9, 0.95] });
  const rule = nn.optim.warmup(10, nn.optim.cosine({ steps, min: 3e-4 }));
  const schedule = new nn.optim.LRScheduler(optimizer, rule);
  const step = new TinyJit(async () => {
    const at = Tensor.randint(0, text.length - LENGTH, [BATCH, 1]).add(Tensor.arange(LENGTH));
    optimizer.zeroGrad();
    const loss = model
      .forward(data.get(at))
      .flatten(0, 1)
      .crossEntropy(data.get(at.add(1)).flatten());
    loss.backward();
    nn.clipGradNorm(parameters, 1);
    await optimizer.step(loss);
    return loss;
  });
  const run = async (count: number): Promise<number> => {
    let loss = NaN;
    for (let i = 0; i < count; i++) {
      loss = await (await step()).item();
      schedule.step();
    }
    return loss;
  };
  return { model, run, parts: { model, optimizer, schedule } };
}

const first = training();
const half = Math.floor(steps / 2);
console.log(`step 1: loss ${(await first.run(1)).toFixed(2)}`);
console.log(`step ${half}: loss ${(await first.run(half - 1)).toFixed(2)}`);
const checkpoint = await nn.save({ ...first.parts, step: half }); // or save(…, path)
const last = await first.run(steps - half);
console.log(`step ${steps}: loss ${last.toFixed(2)}`);

const second = training();
const { step } = await nn.load<{ step: number }>(checkpoint, second.parts);
console.log(`resumed at step ${step}, the same loss: ${(await second.run(steps - step)) === last}`);

/** The window has a fixed length, so that one captured function serves every letter. */
const next = new TinyJit((window: Tensor, place: Tensor, temperature: number) => {
  const logits = Tensor.noGrad(() => first.model.forward(window))
    .indexSelect(1, place)
    .squeeze(1);
  const [likeliest, tokens] = logits.div(temperature).topk(5);
  return tokens.gather(1, likeliest.softmax(-1).multinomial(1)).flatten();
});
const written = encode("the ");
for (let i = 0; i < 56; i++) {
  const recent = written.slice(-LENGTH);
  const window = [...recent, ...Array<number>(LENGTH - recent.length).fill(0)];
  const token = await next(new Tensor([window]), new Tensor([recent.length - 1]), 0.5);
  written.push(await token.item());
}
console.log(written.map((i) => letters[i]).join(""));
