// Losses over classes, and the steps of optimizers that the standard has for training.

import { dtypes } from "../../dtype.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { bool, cast, sizes, widened } from "./common.ts";
import { type Call, float, int, type OpTable, type Output, op, string } from "./op.ts";

interface Loss {
  readonly ignore_index: number | undefined;
  readonly reduction: string;
}
const LOSS = { ignore_index: int(), reduction: string("mean") };

/** The negative log likelihood of the target class at each place, weighted. */
function likelihood(c: Call<Loss>, logs: Tensor, target: Tensor, weight: Tensor | undefined): Tensor {
  const { ignore_index, reduction } = c.attr;
  const at = cast(target, dtypes.int32);
  const isIgnored = ignore_index === undefined ? bool(at.zerosLike()) : at.eq(ignore_index);
  const safe = isIgnored.where(at.zerosLike(), at);
  const picked = logs.gather(1, safe.unsqueeze(1)).reshape(sizes(at)).neg();
  const own =
    weight === undefined
      ? picked.onesLike()
      : cast(weight, logs.dtype)
          .indexSelect(0, safe.reshape([-1]))
          .reshape(sizes(at));
  const weights = isIgnored.where(own.zerosLike(), own);
  const losses = picked.mul(weights);
  if (reduction === "none") return losses;
  if (reduction === "sum") return losses.sum();
  if (reduction !== "mean") return c.fail(`reduction is "${reduction}", expected none, sum or mean`);
  return losses.sum().div(weights.sum());
}

function crossEntropy(c: Call<Loss>): readonly Output[] {
  const scores = c.t(0);
  const logs = widened(scores, (x) => x.logSoftmax(1));
  return [cast(likelihood(c, logs, c.t(1), c.maybe(2)), scores.dtype), logs];
}

// ---- optimizers: a rate, a count of steps, then all weights, all gradients, and all of each state ----

interface Regularised {
  readonly norm_coefficient: number;
}
type StateUpdate = (
  x: Tensor,
  gradient: Tensor,
  states: readonly Tensor[],
  rate: Tensor,
  step: Tensor,
) => readonly Tensor[];
function optimizer(c: Call<Regularised>, states: number, update: StateUpdate): readonly Output[] {
  const [rate, step, ...rest] = c.all() as [Tensor, Tensor, ...Tensor[]];
  const n = rest.length / (2 + states);
  if (!Number.isInteger(n))
    c.fail(`${rest.length} tensors are not lists of ${2 + states} of the same length`);
  const steps = Array.from({ length: n }, (_, i) => {
    const [x, g, ...own] = Array.from({ length: 2 + states }, (_, k) => rest[k * n + i] as Tensor) as [
      Tensor,
      Tensor,
      ...Tensor[],
    ];
    return update(
      x,
      g.add(x.mul(c.attr.norm_coefficient)),
      own,
      cast(rate.reshape([]), x.dtype),
      step.reshape([]),
    );
  });
  return Array.from({ length: 1 + states }, (_, k) => steps.map((s) => s[k] as Tensor)).flat();
}

const adagrad = op({ decay_factor: float(0), epsilon: float(0), norm_coefficient: float(0) }, (c) =>
  optimizer(c, 1, (x, g, [h], rate, step) => {
    const r = rate.div(cast(step, x.dtype).mul(c.attr.decay_factor).add(1));
    const sum = (h as Tensor).add(g.square());
    return [x.sub(r.mul(g).div(sum.sqrt().add(c.attr.epsilon))), sum];
  }),
);
const adam = op(
  {
    alpha: float(0.9),
    beta: float(0.999),
    epsilon: float(0),
    norm_coefficient: float(0),
    norm_coefficient_post: float(0),
  },
  (c) =>
    optimizer(c, 2, (x, g, [v, h], rate, step) => {
      const { alpha, beta, epsilon, norm_coefficient_post } = c.attr;
      const first = (v as Tensor).mul(alpha).add(g.mul(1 - alpha));
      const second = (h as Tensor).mul(beta).add(g.square().mul(1 - beta));
      const t = cast(step, x.dtype);
      const bias = (b: number): Tensor => t.fullLike(b).pow(t).neg().add(1);
      const adjusted = rate.mul(bias(beta).sqrt()).div(bias(alpha));
      const r = step.gt(0).where(adjusted, rate);
      const moved = x.sub(r.mul(first).div(second.sqrt().add(epsilon)));
      return [moved.mul(1 - norm_coefficient_post), first, second];
    }),
);
const momentum = op(
  { alpha: float.required, beta: float.required, mode: string.required, norm_coefficient: float.required },
  (c) =>
    optimizer(c, 1, (x, g, [v], rate, step) => {
      const { alpha, beta, mode } = c.attr;
      const share = step.gt(0).where(Tensor.full([], beta, { dtype: x.dtype, ...c.on }), 1);
      const now = (v as Tensor).mul(alpha).add(g.mul(cast(share, x.dtype)));
      const by = mode === "nesterov" ? g.add(now.mul(alpha)) : now;
      return [x.sub(rate.mul(by)), now];
    }),
);

export const loss: OpTable = {
  NegativeLogLikelihoodLoss: op(LOSS, (c) => cast(likelihood(c, c.t(0), c.t(1), c.maybe(2)), c.t(0).dtype)),
  SoftmaxCrossEntropyLoss: op(LOSS, crossEntropy),
  "ai.onnx.preview.training.Adagrad": adagrad,
  "ai.onnx.preview.training.Adam": adam,
  "ai.onnx.preview.training.Momentum": momentum,
};
