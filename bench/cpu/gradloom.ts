// The workloads in gradloom, on the device DEV. Single functions are built and realised each time, like a
// user's line of code; training steps and model steps go through TinyJit.

import { Convnet } from "../../examples/convnet.ts";
import { Device, nn, Tensor, TinyJit } from "../../src/index.ts";
import { mlp } from "./mlp.ts";
import { type Engine, GPT2, numbers, type Workload } from "./workloads.ts";

const device = await Device.open();

async function tensor(seed: number, ...shape: number[]): Promise<Tensor> {
  const t = new Tensor(
    numbers(
      shape.reduce((a, b) => a * b, 1),
      seed,
    ),
  )
    .reshape(...shape)
    .contiguous();
  await t.realize();
  return t;
}
const done = async (...ts: Tensor[]): Promise<void> => {
  await Tensor.realize(...ts);
  await device.synchronize();
};
/** The result is freed at once, as in the other engines: its memory is used for the next one. */
async function finish(t: Tensor): Promise<void> {
  await done(t);
  t.dispose();
}
const workload = (f: () => Tensor): Workload => ({ run: () => finish(f()) });

const rows = (): Promise<Tensor> => tensor(1, 4096, 1024);

/** A training step on one batch, again and again. */
async function training(model: { forward(x: Tensor): Tensor }, shape: readonly number[]): Promise<Workload> {
  Tensor.manualSeed(1);
  const optimizer = new nn.optim.Adam(nn.getParameters(model));
  const [x, y] = [await tensor(1, ...shape), Tensor.randint(0, 10, [shape[0] as number]).contiguous()];
  await done(y);
  const step = new TinyJit(async (bx: Tensor, by: Tensor) => {
    const loss = Tensor.train(() => model.forward(bx)).crossEntropy(by);
    optimizer.zeroGrad();
    loss.backward();
    await optimizer.step(loss);
    return loss;
  });
  return { run: async () => finish(await step(x, y)) };
}

// ---- GPT-2 ----

const { layers, dim, heads, vocab, positions, keys } = GPT2;
const head = dim / heads;

async function weights(...shape: number[]): Promise<Tensor> {
  const t = Tensor.rand(...shape)
    .sub(0.5)
    .mul(0.05)
    .contiguous();
  await done(t);
  return t;
}
/** The logits of the next token after `keys - 1` others whose keys and values are cached. */
async function gpt2(): Promise<Workload> {
  const linear = async (i: number, o: number) => ({ w: await weights(i, o), b: await weights(o) });
  const norm = async () => ({ g: await weights(dim), b: await weights(dim) });
  const layer = async () => ({
    ln1: await norm(),
    qkv: await linear(dim, 3 * dim),
    k: await weights(heads, keys - 1, head),
    v: await weights(heads, keys - 1, head),
    out: await linear(dim, dim),
    ln2: await norm(),
    up: await linear(dim, 4 * dim),
    down: await linear(4 * dim, dim),
  });
  const [wte, wpe] = [await weights(vocab, dim), await weights(positions, dim)];
  const blocks = [await layer()];
  while (blocks.length < layers) blocks.push(await layer());
  const last = await norm();
  type Affine = { readonly g: Tensor; readonly b: Tensor };
  type Matrix = { readonly w: Tensor; readonly b: Tensor };
  const apply = (x: Tensor, { w, b }: Matrix): Tensor => x.dot(w).add(b);
  const normed = (x: Tensor, { g, b }: Affine): Tensor => x.layerNorm(dim).mul(g).add(b);
  const forward = (start: Tensor): Tensor => {
    let x = start.add(wpe.narrow(0, keys - 1, 1));
    for (const block of blocks) {
      const qkv = apply(normed(x, block.ln1), block.qkv).reshape(3, heads, 1, head);
      const [q, k, v] = [0, 1, 2].map((i) => qkv.narrow(0, i, 1).squeeze(0)) as [Tensor, Tensor, Tensor];
      const scores = q.matmul(block.k.cat(k, 1).transpose(1, 2)).div(Math.sqrt(head));
      const seen = scores.softmax().matmul(block.v.cat(v, 1));
      x = x.add(apply(seen.reshape(1, dim), block.out));
      x = x.add(apply(apply(normed(x, block.ln2), block.up).gelu("tanh"), block.down));
    }
    return normed(x, last).dot(wte.T);
  };
  const token = await weights(1, dim);
  const step = new TinyJit(async (x: Tensor) => forward(x).realize());
  return { run: async () => finish(await step(token)) };
}

export const engine: Engine = {
  async matmul() {
    const [a, b] = [await tensor(1, 1024, 1024), await tensor(2, 1024, 1024)];
    return workload(() => a.matmul(b));
  },
  async relu() {
    const [a, b, c] = [await tensor(1, 2 ** 24), await tensor(2, 2 ** 24), await tensor(3, 2 ** 24)];
    return workload(() => a.mul(b).add(c).relu().mul(0.5));
  },
  async sum() {
    const a = await tensor(1, 2 ** 24);
    return workload(() => a.sum());
  },
  async softmax() {
    const a = await rows();
    return workload(() => a.softmax());
  },
  async layernorm() {
    const a = await rows();
    return workload(() => a.layerNorm(1024));
  },
  async var() {
    const a = await rows();
    return workload(() => a.var(1));
  },
  async conv() {
    const [x, w] = [await tensor(1, 8, 32, 56, 56), await tensor(2, 64, 32, 3, 3)];
    return workload(() => x.conv2d(w, undefined, { padding: 1 }));
  },
  mlp: () => training(mlp(), [128, 784]),
  mnist: () => training(new Convnet(), [128, 1, 28, 28]),
  gpt2,
};
