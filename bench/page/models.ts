// Models whose first step is a lot of work for a page: a GPT of six layers, a recurrent network unrolled over
// 40 steps, and beautiful_mnist. Each gives a function that trains one step and returns the loss.

import { nn, Tensor } from "gradloom";
import "gradloom/all";
import { Convnet } from "../../examples/convnet.ts";

export type TrainStep = () => Promise<Tensor>;

/** What a program does itself, at once, is a task of its own with a mark: a call cannot interrupt it. */
export async function own<T>(build: () => T): Promise<T> {
  await new Promise((resolve) => setTimeout(resolve, 0));
  performance.mark("own");
  return build();
}

const trained =
  (optimizer: nn.optim.Optimizer, forward: () => Tensor): TrainStep =>
  async () => {
    const loss = await own(forward);
    await own(() => {
      optimizer.zeroGrad();
      loss.backward();
    });
    // its updates are built at once, too
    await own(() => undefined);
    await optimizer.step(loss);
    return loss;
  };

export function mnist(batch: number): TrainStep {
  Tensor.manualSeed(1);
  const model = new Convnet();
  const optimizer = new nn.optim.Adam(nn.getParameters(model));
  const [digits, labels] = [Tensor.rand(512, 1, 28, 28), Tensor.randint(0, 10, [512])];
  return trained(optimizer, () => {
    const { x, y } = nn.datasets.sample({ x: digits, y: labels }, batch);
    return Tensor.train(() => model.forward(x)).crossEntropy(y);
  });
}

export function mlp(): TrainStep {
  Tensor.manualSeed(1);
  const model = new nn.Sequential(new nn.Linear(64, 64), (x) => x.relu(), new nn.Linear(64, 10));
  const optimizer = new nn.optim.Adam(nn.getParameters(model));
  const [x, y] = [Tensor.rand(32, 64), Tensor.randint(0, 10, [32])];
  return trained(optimizer, () => model.forward(x).crossEntropy(y));
}

class Block {
  readonly width: number;
  readonly heads: number;
  readonly norms: nn.LayerNorm[];
  readonly qkv: nn.Linear;
  readonly out: nn.Linear;
  readonly up: nn.Linear;
  readonly down: nn.Linear;
  constructor(width: number, heads: number) {
    this.width = width;
    this.heads = heads;
    this.norms = [new nn.LayerNorm(width), new nn.LayerNorm(width)];
    this.qkv = new nn.Linear(width, 3 * width);
    this.out = new nn.Linear(width, width);
    this.up = new nn.Linear(width, 4 * width);
    this.down = new nn.Linear(4 * width, width);
  }
  forward(x: Tensor): Tensor {
    const [batch, length] = x.shape as [number, number];
    const [before, after] = this.norms as [nn.LayerNorm, nn.LayerNorm];
    const all = this.qkv.forward(before.forward(x));
    const [q, k, v] = all
      .chunk(3, -1)
      .map((t) => t.reshape(batch, length, this.heads, -1).transpose(1, 2)) as [Tensor, Tensor, Tensor];
    const mixed = q.scaledDotProductAttention(k, v, { isCausal: true });
    const y = x.add(this.out.forward(mixed.transpose(1, 2).reshape(batch, length, this.width)));
    return y.add(this.down.forward(this.up.forward(after.forward(y)).gelu()));
  }
}

export function gpt(layers: number): TrainStep {
  Tensor.manualSeed(1);
  const [vocabulary, width, length, batch] = [64, 64, 32, 4];
  const model = {
    tokens: new nn.Embedding(vocabulary, width),
    places: new nn.Embedding(length, width),
    blocks: Array.from({ length: layers }, () => new Block(width, 4)),
    norm: new nn.LayerNorm(width),
    head: new nn.Linear(width, vocabulary),
  };
  const optimizer = new nn.optim.AdamW(nn.getParameters(model));
  const text = Tensor.randint(0, vocabulary, [batch, length]);
  return trained(optimizer, () => {
    let x = model.tokens.forward(text).add(model.places.forward(Tensor.arange(length)));
    for (const block of model.blocks) x = block.forward(x);
    const logits = model.head.forward(model.norm.forward(x)).reshape(-1, vocabulary);
    return logits.crossEntropy(text.reshape(-1));
  });
}

/** Cells in plain ops: every step of the sequence is in the graph. */
export function lstm(steps: number): TrainStep {
  Tensor.manualSeed(1);
  const [inputs, hidden, batch] = [16, 32, 8];
  const cells = { wx: new nn.Linear(inputs, 4 * hidden), wh: new nn.Linear(hidden, 4 * hidden) };
  const optimizer = new nn.optim.Adam(nn.getParameters(cells));
  const [x, y] = [Tensor.rand(steps, batch, inputs), Tensor.rand(batch, hidden)];
  return trained(optimizer, () => {
    let [h, c] = [Tensor.zeros(batch, hidden), Tensor.zeros(batch, hidden)];
    for (let t = 0; t < steps; t++) {
      const z = cells.wx.forward(x.get(t)).add(cells.wh.forward(h));
      const [i, f, g, o] = z.chunk(4, -1) as [Tensor, Tensor, Tensor, Tensor];
      c = f.sigmoid().mul(c).add(i.sigmoid().mul(g.tanh()));
      h = o.sigmoid().mul(c.tanh());
    }
    return h.sub(y).square().mean();
  });
}
