// Deep and wide graphs of many shapes, each of about `n` nodes: what `npm run bench -- deep` measures and
// what test/schedule/deep.test.ts counts. Nothing is computed here; the result is what to realise.

import { Tensor } from "../../src/index.ts";

type Build = (n: number) => readonly Tensor[];

const ready = (...shape: number[]): Tensor => Tensor.zeros(shape).contiguous().realizeSync();
function weight(...shape: number[]): Tensor {
  const made = ready(...shape);
  made.requiresGrad = true;
  return made;
}
const repeat = (n: number, first: Tensor, next: (x: Tensor, i: number) => Tensor): Tensor => {
  let x = first;
  for (let i = 0; i < n; i++) x = next(x, i);
  return x;
};
const list = <T>(n: number, make: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => make(i));
/** The gradients of the weights, after a backward through the sum. */
function gradients(result: Tensor, weights: readonly Tensor[]): Tensor[] {
  result.sum().backward();
  return weights.map((w) => w.grad as Tensor);
}

/** A network of `steps` LSTM cells, unrolled, in plain ops; the loss, and the gradients of its weights. */
export function lstm(
  { wx, wh, b }: { readonly wx: Tensor; readonly wh: Tensor; readonly b: Tensor },
  x: Tensor,
  y: Tensor,
): Tensor {
  const [steps, batch, inputs] = x.shape as [number, number, number];
  const hidden = wh.shape[0] as number;
  let [h, c] = [Tensor.zeros(batch, hidden), Tensor.zeros(batch, hidden)];
  for (let t = 0; t < steps; t++) {
    const now = x.shrink([
      [t, t + 1],
      [0, batch],
      [0, inputs],
    ]);
    const z = now.reshape(batch, inputs).dot(wx).add(h.dot(wh)).add(b);
    const [i, f, g, o] = list(4, (k) =>
      z.shrink([
        [0, batch],
        [k * hidden, (k + 1) * hidden],
      ]),
    ) as [Tensor, Tensor, Tensor, Tensor];
    c = f.sigmoid().mul(c).add(i.sigmoid().mul(g.tanh()));
    h = o.sigmoid().mul(c.tanh());
  }
  return h.sub(y).square().mean();
}
function lstmGradients(steps: number): Tensor[] {
  const weights = { wx: weight(8, 32), wh: weight(8, 32), b: weight(32) };
  const loss = lstm(weights, ready(steps, 4, 8), ready(4, 8));
  loss.backward();
  return [loss, ...Object.values(weights).map((w) => w.grad as Tensor)];
}

/** By name: a chain, a tree, shared values, many reductions, many outputs, joins, and gradients of them. */
export const GRAPHS: Readonly<Record<string, Build>> = {
  chain: (n) => [repeat(n / 2, ready(16), (s) => s.add(1))],
  "chain of flips": (n) => [repeat(n / 3, ready(16), (s) => s.add(s.flip(0)).mul(0.5))],
  tree: (n) => {
    const leaf = ready(16);
    let level = list(n / 4, (i) => leaf.mul(i));
    while (level.length > 1)
      level = list(level.length >> 1, (i) => (level[2 * i] as Tensor).add(level[2 * i + 1] as Tensor));
    return level;
  },
  "shared values": (n) => [repeat(n / 3, ready(16), (s) => s.exp2().mul(s.sqrt()))],
  fibonacci: (n) => {
    let [a, b] = [ready(16), ready(16)];
    for (let i = 0; i < n / 3; i++) [a, b] = [b, a.add(b).mul(0.5)];
    return [b];
  },
  "chain of reductions": (n) => {
    const x = ready(8, 4);
    return [repeat(n / 4, ready(1), (s) => s.add(x.mul(s).sum()))];
  },
  "sum of reductions": (n) => {
    const x = ready(8, 4);
    return [repeat(n / 4, ready(1), (s, i) => s.add(x.mul(i).sum()))];
  },
  softmaxes: (n) => [repeat(n / 11, ready(4, 8), (s) => s.softmax(-1).mul(2).add(s))],
  norms: (n) => [repeat(n / 16, ready(4, 8), (s) => s.layerNorm([8]).relu().add(s))],
  matmuls: (n) => {
    const w = ready(8, 8);
    return [repeat(n / 4, ready(4, 8), (x) => x.dot(w).relu())];
  },
  "many outputs": (n) => {
    const x = ready(16);
    return list(n / 2, (i) => x.add(i));
  },
  "outputs of a chain": (n) => {
    let x = ready(16);
    return list(n / 2, (i) => {
      x = x.add(i);
      return x;
    });
  },
  stack: (n) => {
    const x = ready(4);
    return [Tensor.stack(list(n / 4, (i) => x.mul(i)))];
  },
  assigns: (n) => {
    const x = ready(n >> 2, 4);
    return list(n >> 2, (i) => {
      const w = ready(4);
      return w.assign(
        w.mul(0.9).add(
          x
            .shrink([
              [i, i + 1],
              [0, 4],
            ])
            .reshape(4),
        ),
      );
    });
  },
  "chain, backward": (n) => {
    const w = weight(16);
    return gradients(
      repeat(n / 8, w, (s) => s.mul(0.9).exp2()),
      [w],
    );
  },
  "matmuls, backward": (n) => {
    const weights = list(n / 13, () => weight(8, 8));
    return gradients(
      repeat(weights.length, ready(4, 8), (x, i) => x.dot(weights[i] as Tensor).relu()),
      weights,
    );
  },
  "norms, backward": (n) => {
    const w = weight(4, 8);
    return gradients(
      repeat(n / 36, w, (s) => s.layerNorm([8]).relu().add(s)),
      [w],
    );
  },
  "stack, backward": (n) => {
    const weights = list(n / 6, () => weight(4));
    return gradients(Tensor.stack(weights).square(), weights);
  },
  "join of one value, backward": (n) => {
    const w = weight(4);
    return gradients(
      Tensor.cat(
        list(n / 6, (i) => w.mul(i)),
        0,
      ).square(),
      [w],
    );
  },
  "leaves, summed": (n) => [list(n / 2, () => ready(16)).reduce((a, b) => a.add(b))],
  "host data, joined": (n) => [Tensor.stack(list(n / 4, (i) => new Tensor([i, 1])))],
  "views that merge": (n) => [
    repeat(n / 2, ready(16), (s) => s.reshape(4, 4).permute([1, 0]).reshape(16).add(1)),
  ],
  "views that do not merge": (n) => [
    repeat(n / 3, ready(30), (s, i) => {
      const turned = s.reshape(i % 2 === 0 ? [3, 10] : [2, 15]).permute([1, 0]);
      return turned.flip(0).reshape(30);
    }).add(1),
  ],
  "rows of a matrix": (n) => {
    const x = ready(n >> 1, 4);
    return list(n >> 1, (i) => x.select(0, i).mul(2));
  },
  "residual network, backward": (n) => {
    const weights = list(n / 16, () => weight(8, 8));
    const block = (x: Tensor, i: number) => x.add(x.dot(weights[i] as Tensor).relu());
    return gradients(repeat(weights.length, ready(4, 8), block), weights);
  },
  "assigns to one tensor": (n) => {
    const w = ready(16);
    for (let i = 0; i < n / 5; i++) w.assign(w.mul(0.9).add(1));
    return [w];
  },
  "LSTM, backward": (n) => lstmGradients(Math.ceil(n / 346)),
  "training step": (n) => {
    const weights = list(n / 16, () => weight(8, 8));
    gradients(
      repeat(weights.length, ready(4, 8), (x, i) => x.dot(weights[i] as Tensor).relu()),
      weights,
    );
    return Tensor.noGrad(() => weights.map((w) => w.assign(w.sub((w.grad as Tensor).mul(0.1)))));
  },
};
