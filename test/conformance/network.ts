// torch.nn.functional: activations, convolution, pooling, normalisation, losses, attention.

import { type Handler, invoke, type Table, Unsupported } from "./call.ts";
import type { Arg } from "./sample.ts";

const F = "nn.functional.";
const functional = (table: Table): Table =>
  Object.fromEntries(Object.entries(table).map(([name, how]) => [`${F}${name}`, how]));

const given = (options: Readonly<Record<string, Arg>>): Record<string, Arg> =>
  Object.fromEntries(Object.entries(options).filter(([, v]) => v !== undefined));

const maxPool =
  (dims: number): Handler =>
  (c) => {
    const a = c.named("kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices");
    const options = given({
      stride: orNone(a.stride),
      padding: a.padding,
      dilation: a.dilation,
      ceilMode: a.ceil_mode,
    });
    return invoke(
      c.tensor,
      `maxPool${dims}d${a.return_indices === true ? "WithIndices" : ""}`,
      a.kernel_size,
      options,
    );
  };
const avgPool =
  (dims: number): Handler =>
  (c) => {
    const a = c.named(
      "kernel_size",
      "stride",
      "padding",
      "ceil_mode",
      "count_include_pad",
      "divisor_override",
    );
    const options = {
      stride: orNone(a.stride),
      padding: a.padding,
      ceilMode: a.ceil_mode,
      countIncludePad: a.count_include_pad,
      divisorOverride: a.divisor_override,
    };
    return invoke(c.tensor, `avgPool${dims}d`, a.kernel_size, given(options));
  };
/** An empty stride is the kernel's size. */
const orNone = (x: Arg): Arg => (Array.isArray(x) && x.length === 0 ? undefined : x);
const adaptive =
  (kind: "Avg" | "Max", dims: number): Handler =>
  (c) => {
    const { output_size, return_indices } = c.named("output_size", "return_indices");
    const size = Array.isArray(output_size) ? output_size.map((n) => n ?? null) : output_size;
    return invoke(
      c.tensor,
      `adaptive${kind}Pool${dims}d${return_indices === true ? "WithIndices" : ""}`,
      size,
    );
  };
const conv = "weight bias *stride *padding *dilation *groups";
const convTranspose = "weight bias *stride *padding *output_padding *groups *dilation";

const attention: Handler = (c) => {
  const a = c.named("key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa");
  if (Number(a.dropout_p ?? 0) !== 0) throw new Unsupported("dropout draws other random numbers than torch");
  const options = { attnMask: a.attn_mask, isCausal: a.is_causal, scale: a.scale, enableGqa: a.enable_gqa };
  return invoke(c.tensor, "scaledDotProductAttention", a.key, a.value, given(options));
};
const batchNorm: Handler = (c) => {
  const a = c.named("running_mean", "running_var", "weight", "bias", "training", "momentum", "eps");
  const options = given({
    weight: a.weight,
    bias: a.bias,
    training: a.training,
    momentum: a.momentum,
    eps: a.eps,
  });
  return invoke(c.tensor, "batchNorm", a.running_mean, a.running_var, options);
};
const instanceNorm: Handler = (c) => {
  const a = c.named("running_mean", "running_var", "weight", "bias", "use_input_stats", "momentum", "eps");
  return invoke(c.tensor, "instanceNorm", {
    ...given({
      runningMean: a.running_mean,
      runningVar: a.running_var,
      weight: a.weight,
      bias: a.bias,
      useInputStats: a.use_input_stats,
      momentum: a.momentum,
      eps: a.eps,
    }),
  });
};
const interpolate: Handler = (c) => {
  const a = c.named("size", "scale_factor", "mode", "align_corners", "recompute_scale_factor", "antialias");
  const options = {
    size: a.size,
    scaleFactor: a.scale_factor,
    mode: a.mode,
    alignCorners: a.align_corners,
    recomputeScaleFactor: a.recompute_scale_factor,
    antialias: a.antialias,
  };
  return invoke(c.tensor, "interpolate", given(options));
};
/** A loss: its target, then options; `reduce` and `size_average` are torch's old spelling of `reduction`. */
const loss = (spec = ""): string => `target ${spec} *reduction`;
const crossEntropy: Handler = (c) => {
  const a = c.named(
    "target",
    "weight",
    "size_average",
    "ignore_index",
    "reduce",
    "reduction",
    "label_smoothing",
  );
  const options = {
    weight: a.weight,
    ignoreIndex: a.ignore_index,
    reduction: a.reduction,
    labelSmoothing: a.label_smoothing,
  };
  return invoke(c.tensor, "crossEntropy", a.target, given(options));
};
const nllLoss: Handler = (c) => {
  const a = c.named("target", "weight", "size_average", "ignore_index", "reduce", "reduction");
  const options = { weight: a.weight, ignoreIndex: a.ignore_index, reduction: a.reduction };
  return invoke(c.tensor, "nllLoss", a.target, given(options));
};
const dropout: Handler = () => {
  throw new Unsupported("dropout draws other random numbers than torch");
};

export const network: Table = functional({
  adaptive_avg_pool1d: adaptive("Avg", 1),
  adaptive_avg_pool2d: adaptive("Avg", 2),
  adaptive_avg_pool3d: adaptive("Avg", 3),
  adaptive_max_pool1d: adaptive("Max", 1),
  adaptive_max_pool2d: adaptive("Max", 2),
  adaptive_max_pool3d: adaptive("Max", 3),
  avg_pool1d: avgPool(1),
  avg_pool2d: avgPool(2),
  avg_pool3d: avgPool(3),
  batch_norm: batchNorm,
  binary_cross_entropy: loss("*weight ~size_average ~reduce"),
  binary_cross_entropy_with_logits: `${loss("*weight ~size_average ~reduce")} *pos_weight`,
  celu: "alpha ~inplace",
  conv1d: conv,
  conv2d: conv,
  conv3d: conv,
  conv_transpose1d: convTranspose,
  conv_transpose2d: convTranspose,
  conv_transpose3d: convTranspose,
  cosine_similarity: "x2 *dim *eps",
  cross_entropy: crossEntropy,
  dropout,
  elu: "alpha ~inplace",
  gelu: "approximate",
  glu: "dim",
  group_norm: "num_groups *weight *bias *eps",
  hardshrink: "lambd",
  hardsigmoid: "~inplace",
  hardswish: "~inplace",
  hardtanh: "min_val max_val ~inplace",
  huber_loss: "target *reduction *delta",
  instance_norm: instanceNorm,
  interpolate,
  kl_div: "target *size_average *reduce *reduction *log_target",
  l1_loss: loss("~size_average ~reduce"),
  layer_norm: "normalized_shape *weight *bias *eps",
  leaky_relu: "negative_slope ~inplace",
  linear: "weight bias",
  logsigmoid: "",
  max_pool1d: maxPool(1),
  max_pool2d: maxPool(2),
  max_pool3d: maxPool(3),
  mish: "~inplace",
  mse_loss: loss("~size_average ~reduce"),
  nll_loss: nllLoss,
  normalize: "*p *dim *eps",
  pixel_shuffle: "upscale_factor",
  pixel_unshuffle: "downscale_factor",
  prelu: "weight",
  relu: "~inplace",
  relu6: "~inplace",
  rms_norm: "normalized_shape *weight *eps",
  scaled_dot_product_attention: attention,
  selu: "~inplace",
  silu: "~inplace",
  smooth_l1_loss: "target ~size_average ~reduce *reduction *beta",
  softplus: "beta threshold",
  softshrink: "lambd",
  softsign: "",
  tanhshrink: "",
  threshold: "threshold value ~inplace",
  unfold: (c) => {
    const { kernel_size, dilation, padding, stride } = c.named(
      "kernel_size",
      "dilation",
      "padding",
      "stride",
    );
    return invoke(c.tensor, "imUnfold", kernel_size, given({ dilation, padding, stride }));
  },
});
