// Normalisations and dropout. Means and variances are formed in float32 for halves, as the standard wants it.

import { dtypes } from "../../dtype.ts";
import { range } from "../../helpers.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { typeOfCode } from "../elements.ts";
import { asChannels, bool, cast, sizeOf, sizes, widened, wideOf } from "./common.ts";
import { type Call, flag, float, int, ints, type OpTable, type Output, op, random, versions } from "./op.ts";
import { uniform } from "./random.ts";

export const centred = (x: Tensor, axes: number[], epsilon: number): Tensor =>
  x.sub(x.mean(axes, true)).mul(x.var(axes, true, 0).add(epsilon).rsqrt());

interface BatchAttributes {
  readonly epsilon: number;
  readonly momentum: number;
  readonly training_mode?: boolean;
}
function batchNorm(c: Call<BatchAttributes>): readonly Output[] {
  const { epsilon, momentum, training_mode } = c.attr;
  const given = c.t(0);
  const x = cast(given, wideOf(given.dtype));
  const fitted = (t: Tensor): Tensor => asChannels(cast(t, x.dtype), x.ndim);
  const [scale, bias] = [fitted(c.t(1)), fitted(c.t(2))];
  const finish = (mean: Tensor, variance: Tensor): Tensor =>
    cast(x.sub(mean).mul(variance.add(epsilon).rsqrt()).mul(scale).add(bias), given.dtype);
  if (training_mode !== true) return [finish(fitted(c.t(3)), fitted(c.t(4)))];
  const axes = range(x.ndim).filter((d) => d !== 1);
  const [mean, variance] = [x.mean(axes), x.var(axes, false, 0)];
  const running = (before: Tensor, now: Tensor): Tensor =>
    cast(
      cast(before, x.dtype)
        .mul(momentum)
        .add(now.mul(1 - momentum)),
      before.dtype,
    );
  return [finish(fitted(mean), fitted(variance)), running(c.t(3), mean), running(c.t(4), variance)];
}
const BATCH = { epsilon: float(1e-5), momentum: float(0.9) };

function instanceNorm(c: Call<{ epsilon: number }>): Tensor {
  const fitted = (t: Tensor): Tensor => asChannels(t, c.t(0).ndim);
  return widened(c.t(0), (x) =>
    centred(x, range(x.ndim).slice(2), c.attr.epsilon)
      .mul(cast(fitted(c.t(1)), x.dtype))
      .add(cast(fitted(c.t(2)), x.dtype)),
  );
}

interface Stashed {
  readonly axis: number;
  readonly epsilon: number;
  readonly stash_type: number;
}
export const STASHED = { axis: int(-1), epsilon: float(1e-5), stash_type: int(1) };
/** Statistics are formed in the type that `stash_type` names. */
const stash = (c: Call<{ stash_type: number }>, x: Tensor): Tensor => {
  const { dtype } = typeOfCode(c.attr.stash_type, c.where);
  return cast(x, x.dtype.bits > dtype.bits ? x.dtype : dtype);
};
function layerNorm(c: Call<Stashed>): readonly Output[] {
  const given = c.t(0);
  const axes = range(given.ndim).slice(c.axis(c.attr.axis, given.ndim));
  const x = stash(c, given);
  const mean = x.mean(axes, true);
  const deviation = x.sub(mean);
  const inverse = deviation.square().mean(axes, true).add(c.attr.epsilon).rsqrt();
  const scaled = cast(deviation.mul(inverse), given.dtype).mul(c.t(1));
  const bias = c.maybe(2);
  return [bias === undefined ? scaled : scaled.add(bias), mean, inverse];
}
/** The second output is the inverse of the size. */
export function rmsNorm(c: Call<Stashed>): readonly Output[] {
  const given = c.t(0);
  const axes = range(given.ndim).slice(c.axis(c.attr.axis, given.ndim));
  const x = stash(c, given);
  const inverse = x.square().mean(axes, true).add(c.attr.epsilon).rsqrt();
  return [cast(cast(x.mul(inverse), given.dtype).mul(c.t(1)), c.t(1).dtype), inverse];
}

interface Groups {
  readonly epsilon: number;
  readonly num_groups: number;
  readonly stash_type: number;
}
function groupNorm(c: Call<Groups>, isPerGroup: boolean): Tensor {
  const given = c.t(0);
  const { num_groups, epsilon } = c.attr;
  const [n, channels] = sizes(given) as [number, number];
  if (channels % num_groups !== 0) c.fail(`${channels} channels do not make ${num_groups} groups`);
  const x = stash(c, given).reshape([n, num_groups, -1]);
  const normal = cast(centred(x, [2], epsilon), given.dtype).reshape(sizes(given));
  const each = channels / num_groups;
  const fitted = (t: Tensor): Tensor =>
    asChannels(isPerGroup ? t.reshape([-1, 1]).expand([num_groups, each]).reshape([-1]) : t, given.ndim);
  return normal.mul(fitted(c.t(1))).add(fitted(c.t(2)));
}
const GROUPS = { epsilon: float(1e-5), num_groups: int.required, stash_type: int(1) };

const lpNormalization = op({ axis: int(-1), p: int(2) }, (c) =>
  widened(c.t(0), (x) => {
    const axis = c.axis(c.attr.axis, x.ndim);
    const size = c.attr.p === 1 ? x.abs().sum(axis, true) : x.square().sum(axis, true).sqrt();
    return size.eq(0).where(x.zerosLike(), x.div(size));
  }),
);

/** Each element by the squares of its neighbours in the channels. */
const lrn = op({ alpha: float(0.0001), beta: float(0.75), bias: float(1), size: int.required }, (c) =>
  widened(c.t(0), (x) => {
    const { alpha, beta, bias, size } = c.attr;
    const before = Math.floor((size - 1) / 2);
    const amounts = sizes(x).map((_, d) =>
      d === 1 ? ([before, size - 1 - before] as const) : ([0, 0] as const),
    );
    const sums = x.square().pad(amounts).unfold(1, size, 1).sum(-1);
    return x.div(
      sums
        .mul(alpha / size)
        .add(bias)
        .pow(beta),
    );
  }),
);
const meanVariance = op({ axes: ints([0, 2, 3]) }, (c) =>
  widened(c.t(0), (x) => {
    const axes = c.axes(c.attr.axes, x.ndim);
    const mean = x.mean(axes, true);
    const deviation = x.square().mean(axes, true).sub(mean.square()).sqrt();
    return x.sub(mean).div(deviation.add(1e-9));
  }),
);

/** Without training everything passes. */
const passing = (c: Call): readonly Output[] => [
  c.any(0),
  bool(Tensor.ones([...c.shape(0)], { dtype: dtypes.bool, ...c.on })),
];
function dropped(c: Call<{ seed: number | undefined }>, ratio: number): readonly Output[] {
  const x = c.t(0);
  const keeps = uniform(c, sizes(x), c.attr.seed, { type: c.type(0) }).ge(ratio);
  return [keeps.where(x.mul(1 / (1 - ratio)), x.zerosLike()), keeps];
}
const dropout = versions(
  op({ ratio: float(0.5), is_test: flag(true), seed: int() }, passing),
  random(
    op(
      { seed: int() },
      async (c) => {
        const isTraining = c.has(2) && (await c.scalar(2)) !== 0;
        const ratio = c.has(1) ? await c.scalar(1) : 0.5;
        return isTraining && ratio > 0 ? dropped(c, ratio) : passing(c);
      },
      12,
    ),
  ),
);

export const norm: OpTable = {
  BatchNormalization: versions(
    op({ ...BATCH, spatial: flag(true), is_test: flag(true) }, batchNorm),
    op({ ...BATCH, training_mode: flag(false) }, batchNorm, 14),
  ),
  InstanceNormalization: op({ epsilon: float(1e-5) }, instanceNorm),
  LayerNormalization: op(STASHED, layerNorm),
  RMSNormalization: op(STASHED, rmsNorm),
  GroupNormalization: versions(
    op(GROUPS, (c) => groupNorm(c, sizeOf(c.t(1), 0) === c.attr.num_groups), 18),
    op(GROUPS, (c) => groupNorm(c, false), 21),
  ),
  LpNormalization: lpNormalization,
  LRN: lrn,
  MeanVarianceNormalization: meanVariance,
  Dropout: dropout,
};
