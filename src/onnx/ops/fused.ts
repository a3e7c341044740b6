// Ops of com.microsoft that optimisers make of several nodes of floats, and older names of what the standard
// has by now.

import { dtypes } from "../../dtype.ts";
import { prod, range } from "../../helpers.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { TYPES } from "../elements.ts";
import type { TensorValue } from "../values.ts";
import { cast, positive, sizeOf, sizes, typed, widened, wideOf } from "./common.ts";
import { CONV, convolve, type Windows } from "./conv.ts";
import { centred } from "./norm.ts";
import { type Call, flag, float, floats, int, type OpTable, type Output, op, string } from "./op.ts";
import { GEMM, type GemmOptions, gemm } from "./reduce.ts";

// ---- products with an activation behind them ----

type ActivationNumbers = readonly [a: number, b: number, c: number];
const ACTIVATIONS: Readonly<Record<string, (x: Tensor, numbers: ActivationNumbers) => Tensor>> = {
  "": (x) => x,
  Relu: (x) => x.relu(),
  Tanh: (x) => x.tanh(),
  Sigmoid: (x) => x.sigmoid(),
  Elu: (x, [a]) => x.elu(a),
  Softplus: (x) => x.softplus(),
  Softsign: (x) => x.softsign(),
  LeakyRelu: (x, [a]) => x.lt(0).where(x.mul(a), x),
  ThresholdedRelu: (x, [a]) => x.gt(a).where(x, x.zerosLike()),
  ParametricSoftplus: (x, [a, b]) => x.mul(b).softplus().mul(a),
  ScaledTanh: (x, [a, b]) => x.mul(b).tanh().mul(a),
  Selu: (x, [a, b]) => x.elu(a).mul(b),
  Clip: (x, [low, high]) => x.maximum(low).minimum(high),
  HardSigmoid: (x, [a, b]) => x.mul(a).add(b).maximum(0).minimum(1),
  HardSwish: (x, [a, b]) => x.mul(x.mul(a).add(b).maximum(0).minimum(1)),
  Gelu: (x) => x.gelu("none"),
};
function activated(c: Call, x: Tensor, name: string, numbers: ActivationNumbers): Tensor {
  const f = Object.hasOwn(ACTIVATIONS, name) ? ACTIVATIONS[name] : undefined;
  return f === undefined ? c.unsupported(`activation "${name}"`) : widened(x, (y) => f(y, numbers));
}

type FusedConv = Windows & {
  readonly group: number;
  readonly activation: string;
  readonly activation_params: readonly number[];
};
/** A convolution, the sum with a fourth input, and an activation. */
function fusedConv(c: Call<FusedConv>): Tensor {
  const [a = 0, b = 0, d = 0] = c.attr.activation_params;
  const y = convolve(c, c.t(0), c.t(1), c.maybe(2));
  const sum = c.maybe(3);
  return activated(c, sum === undefined ? y : y.add(sum), c.attr.activation, [a, b, d]);
}

interface FusedGemm extends GemmOptions {
  readonly activation: string;
  readonly activation_alpha: number;
  readonly activation_beta: number;
  readonly activation_gamma: number;
}
const fusedGemm = (c: Call<FusedGemm>): Tensor =>
  activated(c, gemm(c), c.attr.activation, [
    c.attr.activation_alpha,
    c.attr.activation_beta,
    c.attr.activation_gamma,
  ]);

// ---- normalisations ----

interface ChannelGroups {
  readonly epsilon: number;
  readonly groups: number;
  readonly activation: number;
  readonly channels_last: boolean;
}
const GROUPS = {
  epsilon: float(1e-5),
  groups: int.required,
  activation: int.required,
  channels_last: flag(true),
};
function groupNorm(c: Call<ChannelGroups>, given: Tensor): Tensor {
  const { epsilon, groups, activation, channels_last } = c.attr;
  if (activation !== 0 && activation !== 1) c.fail(`activation is ${activation}, expected 0 or 1`);
  const front = channels_last ? given.movedim(given.ndim - 1, 1) : given;
  const [n, channels] = sizes(front) as [number, number];
  if (channels % groups !== 0) c.fail(`${channels} channels do not make ${groups} groups`);
  const wide = wideOf(given.dtype);
  const normal = centred(cast(front, wide).reshape([n, groups, -1]), [2], epsilon).reshape(sizes(front));
  const fitted = (i: number): Tensor =>
    cast(c.t(i), wide).reshape(range(front.ndim).map((d) => (d === 1 ? channels : 1)));
  const scaled = normal.mul(fitted(1)).add(fitted(2));
  const y = cast(activation === 1 ? scaled.silu() : scaled, given.dtype);
  return channels_last ? y.movedim(1, y.ndim - 1) : y;
}
/** Input, gamma, beta, what is added, and a bias. */
function skipGroupNorm(c: Call<ChannelGroups>): readonly Output[] {
  const [x, skip] = [c.t(0), c.t(3)];
  const channel = c.attr.channels_last ? x.ndim - 1 : 1;
  const ofChannels = (t: Tensor): Tensor =>
    t.reshape(range(x.ndim).map((d) => (d === channel ? -1 : d === 0 && t.ndim === 2 ? sizeOf(t, 0) : 1)));
  const added = x.add(skip.ndim === 2 ? ofChannels(skip) : skip);
  const bias = c.maybe(4);
  const sum = bias === undefined ? added : added.add(ofChannels(bias));
  return [groupNorm(c, sum), sum];
}

/**
 * Words, segments, their table, that of positions, that of segments, gamma, beta, mask, positions: three
 * rows of tables added up and normalised.
 */
function embedLayerNorm(c: Call<{ epsilon: number; mask_index_type: number }>): readonly Output[] {
  const [batch, time] = c.shape(0) as [number, number];
  const rows = (table: number, index: Tensor): Tensor =>
    c
      .t(table)
      .indexSelect(0, positive(index, sizeOf(c.t(table), 0)).reshape([-1]))
      .reshape([...sizes(index), sizeOf(c.t(table), 1)]);
  const line = Tensor.arange(time, { dtype: dtypes.int32, ...c.on }).reshape([1, time]);
  const words = rows(2, c.t(0)).add(rows(3, c.maybe(8) ?? line));
  const sum = c.has(4) ? words.add(rows(4, c.t(1))) : words;
  const x = cast(sum, wideOf(sum.dtype));
  const y = cast(centred(x, [2], c.attr.epsilon), sum.dtype)
    .mul(c.t(5))
    .add(c.t(6));
  const mask = c.maybe(7);
  const counts =
    mask === undefined
      ? Tensor.zeros([batch], { dtype: dtypes.int32, ...c.on })
      : cast(mask.ne(0), dtypes.int32).sum(1);
  return [y, typed(counts, TYPES.int32), sum];
}

// ---- others ----

function biasSplitGelu(c: Call): Tensor {
  const x = c.t(0).add(c.t(1));
  const half = sizeOf(x, -1) / 2;
  const part = (from: number): Tensor =>
    x.shrink(range(x.ndim).map((d) => (d === x.ndim - 1 ? [from, from + half] : null)));
  return part(0).mul(widened(part(half), (y) => y.gelu("none")));
}

/** Distances of the rows of two matrices. */
function cdist(c: Call<{ metric: string }>): Tensor {
  const { metric } = c.attr;
  if (metric !== "sqeuclidean" && metric !== "euclidean") c.unsupported(`metric "${metric}"`);
  const squares = c.t(0).unsqueeze(1).sub(c.t(1).unsqueeze(0)).square().sum(2);
  return metric === "euclidean" ? squares.sqrt() : squares;
}

/** A dim of 1 more, at the place that the second input says. */
async function expandDims(c: Call): Promise<TensorValue> {
  const x = c.t(0);
  const at = c.axis(await c.scalar(1), x.ndim + 1);
  return typed(x.reshape(sizes(x).toSpliced(at, 0, 1)), c.type(0));
}

export const fused: OpTable = {
  "com.microsoft.FusedConv": op(
    { ...CONV, activation: string(""), activation_params: floats([]) },
    fusedConv,
  ),
  "com.microsoft.FusedGemm": op(
    {
      ...GEMM,
      activation: string(""),
      activation_alpha: float(0),
      activation_beta: float(0),
      activation_gamma: float(0),
    },
    fusedGemm,
  ),
  "com.microsoft.GroupNorm": op(GROUPS, (c) => groupNorm(c, c.t(0))),
  "com.microsoft.SkipGroupNorm": op(GROUPS, skipGroupNorm),
  "com.microsoft.EmbedLayerNormalization": op(
    { epsilon: float(1e-12), mask_index_type: int(0) },
    embedLayerNorm,
  ),
  "com.microsoft.BiasSplitGelu": op({}, biasSplitGelu),
  "com.microsoft.BiasAdd": op({}, (c) => c.t(0).add(c.t(1)).add(c.t(2))),
  "com.microsoft.CDist": op({ metric: string("sqeuclidean") }, cdist),
  "com.microsoft.ExpandDims": op({}, expandDims),
  "com.microsoft.Inverse": op({}, (c) => widened(c.t(0), (x) => (prod(sizes(x)) === 0 ? x : x.inverse()))),
};
