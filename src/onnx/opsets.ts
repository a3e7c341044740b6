// From which version of the standard's ops on an op exists, for those that are not of the first one. A file
// of an older version that has such a node is damaged, or means another op.

const INTRODUCED: Readonly<Record<number, string>> = {
  7: "Acos Asin Atan Cos Multinomial Sin Tan",
  8: "Expand Scan",
  9:
    "Acosh Asinh Atanh Compress ConstantOfShape Cosh Erf EyeLike IsNaN MaxUnpool NonZero OneHot Scatter Shrink " +
    "Sign Sinh TfIdfVectorizer Where",
  10:
    "ConvInteger DequantizeLinear IsInf MatMulInteger Mod NonMaxSuppression QLinearConv QLinearMatMul " +
    "QuantizeLinear Resize ReverseSequence RoiAlign StringNormalizer",
  11:
    "BitShift ConcatFromSequence CumSum Det DynamicQuantizeLinear GatherElements GatherND Range Round " +
    "ScatterElements ScatterND SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert " +
    "SequenceLength SplitToSequence Unique",
  12: "Celu Einsum GreaterOrEqual LessOrEqual NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss",
  14: "HardSwish Trilu",
  15: "Bernoulli CastLike Optional OptionalGetElement OptionalHasElement",
  16: "GridSample",
  17: "BlackmanWindow DFT HammingWindow HannWindow MelWeightMatrix STFT SequenceMap",
  18: "BitwiseAnd BitwiseNot BitwiseOr BitwiseXor CenterCropPad Col2Im GroupNormalization Mish",
  19: "DeformConv",
  20: "AffineGrid Gelu ImageDecoder RegexFullMatch StringConcat StringSplit",
  23: "Attention RMSNormalization RotaryEmbedding",
  24: "Swish TensorScatter",
  26: "BitCast CumProd",
  27: "CausalConvWithState LinearAttention",
  28: "SwiGLU",
};
// LayerNormalization, MeanVarianceNormalization and ThresholdedRelu are not here: files had them before the
// standard did

const SINCE = new Map(
  Object.entries(INTRODUCED).flatMap(([version, names]) =>
    names.split(" ").map((name) => [name, Number(version)] as const),
  ),
);
/** The first version of the standard's ops that has this op. */
export const introducedIn = (op: string): number => SINCE.get(op) ?? 1;
